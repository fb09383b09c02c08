"""Values that cross the boundary: how long what comes in may be, and the one text of what is written down.

Python computes 10**100000000 for whoever writes `1e100000000`, and that takes minutes. So every number that
somebody writes or passes becomes exact by `fraction_of`, which looks at its length before it computes anything, and
every file is read by `read_text`, which stops at a length. docs/limits.md lists the figures.

What a question, a set of rows, a criterion, a model or a domain *is* does not depend on the names of Python
classes. Each has a JSON form with a version number; its fingerprint is the SHA-256 hash of that form, written
canonically: keys sorted, no blanks, ASCII only. Numbers are whole; fractions are texts such as "1/3". Golden files
in the tests hold the forms.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | bool | None

LONGEST_WRITTEN = 64  # characters of a number in words
LONGEST_DECLARED = 40  # characters of low, high, step and edges in a domain file
LONGEST_NAME = 200  # characters of a key, an analyst or a data set
LONGEST_TEXT = 1000  # characters of a column's name, or of a declared value
LONGEST_QUESTION = 10_000  # characters of a question in words
LONGEST_ADDRESS = 4096  # characters of a path or of an address: what Linux takes
LONGEST_DOMAIN = 2**22  # characters of a domain file
LONGEST_MODEL = 2**25  # characters of a model or of a published tree: as JSON they take up to 25 bytes each to read
DEEPEST_TREE = 1000  # levels of a published tree
MOST_COLUMNS = 10_000  # of a domain
MOST_CELLS = 2**20  # of all columns of a domain together
MOST_ROWS = 10**15  # rows of a table
MOST_ROWS_PER_PERSON = 10**6  # rows of a person: epsilon is divided by it, and noise must stay within 64 bits
# What a question may need at most is known before it is charged; each takes less than 1 GB in this process.
MAX_CELLS = 2**23  # that are counted for a question, or that a model has: some 70 bytes each
MAX_RELEASED = 2**22  # cells that are released, and written to the ledger: some 140 bytes each
SHOWN = 60  # characters of the input that an error quotes

_BITS = 1100  # every float, and every decimal of its size, is a fraction of two integers this long
_DECIMAL = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]{1,4})?", re.IGNORECASE)
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]*[1-9][0-9]*")
_LONGEST_FILE_NAME = 255  # bytes, on Linux, macOS and Windows
# Control characters, half surrogates, line separators and marks that turn the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def fraction_of(value: object) -> Fraction | None:
    """Return a number from outside as a fraction: a decimal means what it says, 0.1 one tenth.

    Parameters
    ----------
    value : object
        A text (`0.1`, `1e-3`, `1/3`) of at most `LONGEST_WRITTEN` characters, a Python or numpy number, a
        Decimal or a Fraction.

    Returns
    -------
    Fraction or None
        None for what is no number, is not finite, or is longer or larger than a float can be.

    >>> fraction_of(0.1), fraction_of("1/3"), fraction_of(" 1e3 "), fraction_of("1e100000000"), fraction_of(True)
    (Fraction(1, 10), Fraction(1, 3), Fraction(1000, 1), None, None)
    """
    if isinstance(value, str):
        number = _from_text(value)
    elif isinstance(value, bool | np.bool_):
        return None
    elif isinstance(value, int | np.integer):
        number = Fraction(int(value)) if int(value).bit_length() <= _BITS else None
    elif isinstance(value, Fraction):
        number = Fraction(value)  # of a subclass a plain one: what is compared is what is charged
    elif isinstance(value, Decimal):
        number = _from_decimal(value)
    elif isinstance(value, float | np.floating):
        number = _from_decimal(Decimal(str(value)))
    else:
        return None
    return number if number is not None and _is_short(number) else None


def _from_text(text: str) -> Fraction | None:
    if len(text) > LONGEST_WRITTEN:
        return None
    text = text.strip()
    if _DECIMAL.fullmatch(text):
        return _from_decimal(Decimal(text))
    return Fraction(text) if _RATIO.fullmatch(text) else None


def _from_decimal(number: Decimal) -> Fraction | None:
    if not number.is_finite():
        return None
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return Fraction(number) if len(digits) <= _BITS and abs(exponent) <= _BITS else None


def _is_short(number: Fraction) -> bool:
    """Can it be added, printed and turned into a float without much work?"""
    short = max(number.numerator.bit_length(), number.denominator.bit_length()) <= _BITS
    return short and abs(number) <= sys.float_info.max


def quoted(value: object) -> str:
    """Return a value from outside as an error shows it: short, on one line, and without a look into containers.

    >>> quoted("x" * 100)[-5:], quoted("a\\nb"), quoted(3), quoted(float("nan")), quoted([1, 2])
    ("xxx…'", "'a␊b'", '3', 'nan', 'a list')
    """
    if isinstance(value, str):
        return f"'{shown(value)}'"
    if value is None or isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer) and int(value).bit_length() > _BITS:
        return "a number of that many digits"
    if isinstance(value, Fraction) and not _is_short(value):
        return "a fraction of that many digits"
    if isinstance(value, int | float | np.number | Decimal | Fraction):
        return shown(str(value))
    return f"a {type(value).__name__}"


def shown(text: str, length: int = SHOWN) -> str:
    """Return as much of a text as an error quotes, control characters as pictures of themselves.

    >>> shown("a" * 100, 5)
    'aaaa…'
    """
    return clean(text if len(text) <= length else text[: length - 1] + "…")


def clean(words: str) -> str:
    """Return a text that a terminal and an XML reader can bear: control characters become pictures of themselves."""
    return _UNSAFE.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", words)


def is_name(text: object, length: int = LONGEST_NAME) -> bool:
    """Is it a printable text of 1 to `length` characters?"""
    return isinstance(text, str) and 0 < len(text) <= length and text.isprintable()


def is_path(path: str | Path) -> bool:
    """Can a file have this path, as far as its length and its characters go?"""
    text = str(path)
    if not 0 < len(text) <= LONGEST_ADDRESS or "\0" in text:
        return False
    try:
        return all(len(os.fsencode(name)) <= _LONGEST_FILE_NAME for name in Path(text).parts)
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def is_host(text: str) -> bool:
    """Can it be looked up as the name of a server? `a..b`, and a label of more than 63 characters, cannot."""
    if text.startswith(("/", "@")):  # the folder of a socket
        return is_path(text)
    try:
        text.removesuffix(".").encode("idna")
    except UnicodeError:
        return False
    return "\0" not in text


def read_text(path: str | Path, longest: int, encoding: str = "utf-8") -> str | None:
    """Return the text of a file, None where it has more than `longest` characters.

    Raises
    ------
    OSError, UnicodeDecodeError
        The file cannot be read, or is no text. A name that no file can have is an OSError as well.
    """
    if not is_path(path):
        raise OSError(0, "no file can have this name")
    with open(path, encoding=encoding) as file:
        text = file.read(longest + 1)
    return None if len(text) > longest else text


def whole_of(value: object, least: int, most: int) -> int | None:
    """Return a whole number between two bounds; None for anything else.

    >>> whole_of(3, 1, 9), whole_of(10**10000, 1, 9), whole_of(2.5, 1, 9), whole_of(True, 0, 9)
    (3, None, None, None)
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value) if least <= value <= most else None


def decimal_text(number: Fraction) -> str:
    """A fraction as a decimal where it has one, else as a fraction.

    >>> decimal_text(Fraction(1, 8)), decimal_text(Fraction(17)), decimal_text(Fraction(1, 3))
    ('0.125', '17', '1/3')
    """
    if number.denominator == 1:
        return str(number.numerator)
    twos = fives = 0
    rest = number.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return ("-" if number < 0 else "") + digits[:-places] + "." + digits[-places:]


def short_text(number: Fraction) -> str:
    """A fraction as people read it: exact where that is short, else six digits.

    >>> short_text(Fraction(1, 8)), short_text(Fraction(1, 3)), short_text(Fraction(10**9, 3**20))
    ('0.125', '1/3', '0.286797')
    """
    exact = decimal_text(number)
    return exact if len(exact) <= 12 else f"{float(number):.6g}"


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Json) -> str:
    """Return the one text of a JSON value.

    >>> canonical({"b": [1, None], "a": "é"})
    '{"a":"\\\\u00e9","b":[1,null]}'
    """
    return _encode(value)


def digest(value: Json) -> str:
    """Return the SHA-256 hash of a JSON value's canonical text, in hexadecimal.

    >>> digest({"question": "count", "version": 1})[:16]
    '62658fab3e540da8'
    """
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
