"""Texts for people, and from them: numbers as they are written, quotes in errors, names of files and of servers.

No privacy rests on these functions: they are given public values alone.
"""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

SHOWN = 60  # characters of the input that an error quotes
LONG = 1000  # characters of a text that is drawn
LONGEST_ADDRESS = 4096  # characters of a path or of an address: what Linux takes
_LONGEST_FILE_NAME = 255  # bytes, on Linux, macOS and Windows
_BITS = 1100  # of a number that an error quotes

# Control characters, half surrogates, line separators and marks that turn the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
_SEVERAL_PARTS = re.compile(r"(\d+) parts, first (.*)", re.DOTALL)  # rows, as a ledger says them


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


def rows_in_words(scope: str) -> str:
    """Return the rows that a line of a ledger is about, as people read it.

    >>> rows_in_words("12 parts, first all rows where sex = Female / region = capital")
    '12 parts; the first: rows where sex = Female, region = capital'
    >>> rows_in_words("all rows / age = 30"), rows_in_words("all rows")
    ('rows where age = 30', 'all rows')
    """
    several = _SEVERAL_PARTS.fullmatch(scope)
    if several is not None:
        return f"{several[1]} parts; the first: {rows_in_words(several[2])}"
    first, *below = scope.split(" / ")
    kept = [] if first == "all rows" else [first.removeprefix("all rows where ")]
    return f"rows where {', '.join([*kept, *below])}" if kept or below else "all rows"


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
    if isinstance(value, Fraction):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if bits > _BITS or abs(value) > sys.float_info.max:
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


def plain_words(value: object) -> str:
    """Return a JSON value as people read it.

    >>> plain_words({"by": "hedy", "granted": True, "tables": ["a", "b"], "caps": {"a": "1/4"}, "delta": None})
    'by: hedy, granted: yes, tables: a and b, caps: (a: 1/4), delta: none'
    """
    if isinstance(value, dict):
        nested = (
            (name, f"({plain_words(own)})" if isinstance(own, dict) else plain_words(own))
            for name, own in value.items()
        )
        return ", ".join(f"{name}: {words}" for name, words in nested)
    if isinstance(value, list):
        return " and ".join(map(plain_words, value)) or "none"
    return "none" if value is None else {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def width_of(words: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> width_of("ab"), width_of("漢")
    (2, 2)
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words)


def shortened(words: str, width: int) -> str:
    """Return as much of a text as fits into some columns.

    >>> shortened("abc", 3), shortened("abcd", 3)
    ('abc', 'ab…')
    """
    if len(words) <= width and width_of(words) <= width:
        return words
    kept = words[: width - 1]
    while width_of(kept) > width - 1:
        kept = kept[:-1]
    return kept + "…"


def protected(person: str | None, rows_per_person: int) -> str:
    """Return whom a promise is for, in words.

    >>> protected(None, 1)
    'per person, if no person has more than 1 row'
    >>> protected("patient_id", 5)
    "per person, whom 'patient_id' names, with all their rows"
    """
    if person:
        return f"per person, whom '{person}' names, with all their rows"
    return f"per person, if no person has more than {rows_per_person} row{'s' * (rows_per_person > 1)}"


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


def duration(seconds: float) -> str:
    """Return a time in words.

    >>> duration(0.2), duration(61), duration(3 * 3600 + 301)
    ('1 s', '1 min', '3 h 5 min')
    """
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Countdown:
    """Says how far a list of steps is, and about how long the rest takes if it goes on as it went.

    >>> clock = iter([0.0, 0.0, 30.0]).__next__
    >>> steps = Countdown(4, clock)
    >>> steps.next(), steps.next()
    ('1 of 4', '2 of 4, about 2 min left')

    Parameters
    ----------
    total : int
        How many steps there are.
    clock : callable
        Seconds from some moment on.
    """

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.done = total, 0
        self._clock, self._begin = clock, clock()

    def next(self) -> str:
        """The step that begins now, and how long it and the rest take."""
        elapsed, done = self._clock() - self._begin, self.done
        self.done += 1
        left = f", about {duration(elapsed / done * (self.total - done))} left" if done and elapsed > 1 else ""
        return f"{self.done:,} of {self.total:,}{left}"
