"""Public values that the kernel is made of: numbers and texts from outside, JSON with its hash, a value for each part.

Python computes 10**100000000 for whoever writes `1e100000000`, and that takes minutes. So every number from outside
becomes exact by `fraction_of`, which looks at its length first. docs/reference/limits.md lists the figures.

A question, a set of rows, a criterion, a model and a domain each have a JSON form with a version number. It names no
Python class; numbers in it are whole, fractions are texts such as "1/3". Its fingerprint is the SHA-256 hash of the
canonical text: keys sorted, no blanks, ASCII only. Golden files in the tests hold the forms.

A *PerPart* keeps one value for each part as a few values and an array that says which part has which. The thousands of
nodes of a tree level mostly share an epsilon, a mechanism, a list of candidates and an amount spent. What is done for
all of them is done once for each of these values, and the rest is array work.

>>> epsilons = PerPart.of(["1/10", "1/10", "1/5"])
>>> epsilons.map(lambda text: text + "!").take([2, 0])
PerPart('1/5!', '1/10!')
>>> len(PerPart.same("1/10", 7000)), PerPart.same("1/10", 7000).values
(7000, ('1/10',))
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", covariant=True)
U = TypeVar("U")
V = TypeVar("V")

Positions = NDArray[np.intp]

Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | bool | None

LONGEST_WRITTEN = 64  # characters of a number in words
LONGEST_DECLARED = 40  # characters of low, high, step and edges in a domain file
LONGEST_NAME = 200  # characters of a key, an analyst or a data set
LONGEST_TEXT = 1000  # characters of a column's name, or of a declared value
LONGEST_QUESTION = 10_000  # characters of a question in words
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

# Every loss is a multiple of 1 / GRAIN: decimals of 20 places and all fractions with
# denominators to 100 are, others are rounded down to one. So sums of any number of
# them stay short, and no choice of epsilons can make a ledger unreadable.
GRAIN = math.lcm(*range(1, 101)) * 10**20

_BITS = 1100  # every float, and every decimal of its size, is a fraction of two integers this long
_DECIMAL = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]{1,4})?", re.IGNORECASE)
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]*[1-9][0-9]*")


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
    number: Fraction | None
    if type(value) is Fraction:
        number = value
    elif isinstance(value, str):
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
    above, below = number.numerator.bit_length(), number.denominator.bit_length()
    if max(above, below) > _BITS:
        return False
    return above - below < sys.float_info.max_exp - 1 or abs(number) <= sys.float_info.max  # the first is quick


def sum_of(numbers: Sequence[Fraction]) -> Fraction:
    """Return the sum of fractions, over one denominator: much faster than one after the other.

    >>> sum_of([Fraction(1, 2), Fraction(1, 3)])
    Fraction(5, 6)
    """
    below = math.lcm(*(number.denominator for number in numbers))
    return Fraction(sum(number.numerator * (below // number.denominator) for number in numbers), below)


def is_name(text: object, length: int = LONGEST_NAME) -> bool:
    """Is it a printable text of 1 to `length` characters?"""
    return isinstance(text, str) and 0 < len(text) <= length and text.isprintable()


def whole_of(value: object, least: int, most: int) -> int | None:
    """Return a whole number between two bounds; None for anything else.

    >>> whole_of(3, 1, 9), whole_of(10**10000, 1, 9), whole_of(2.5, 1, 9), whole_of(True, 0, 9)
    (3, None, None, None)
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value) if least <= value <= most else None


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Json) -> str:
    """Return the one text of a JSON value.

    >>> canonical({"b": [1, None], "a": "é"})
    '{"a":"\\\\u00e9","b":[1,null]}'
    """
    return _encode(value)


def joined(texts: Mapping[str, str]) -> str:
    """Return the canonical text of an object, from those of its values.

    >>> joined({"b": "[1,null]", "a": "2"})
    '{"a":2,"b":[1,null]}'
    """
    return "{" + ",".join(f"{_encode(name)}:{texts[name]}" for name in sorted(texts)) + "}"


def hash_of(text: str) -> str:
    """Return the SHA-256 hash of a canonical text, in hexadecimal."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest(value: Json) -> str:
    """Return the SHA-256 hash of a JSON value's canonical text, in hexadecimal.

    >>> digest({"question": "count", "version": 1})[:16]
    '62658fab3e540da8'
    """
    return hash_of(canonical(value))


# -- a value for each part ----------------------------------------------------------------------


def numbered(numbers: Positions, count: int) -> tuple[Positions, Positions]:
    """Return which numbers below `count` occur, rising, and for each its position among these.

    As `np.unique` with its inverse, without sorting.
    """
    if count > 4 * len(numbers) + 1000:
        used, index = np.unique(numbers, return_inverse=True)
        return used, index.reshape(-1)
    used = np.flatnonzero(np.bincount(numbers, minlength=count))
    position = np.zeros(count, dtype=np.intp)
    position[used] = np.arange(len(used))
    return used, position[numbers]


class PerPart(Sequence[T], Generic[T]):
    """A value for each part.

    Parameters
    ----------
    values : sequence of T
        The values that occur. Some may be equal, and some may belong to no part.
    which : array of int
        For each part the position of its value in `values`.
    """

    __slots__ = ("values", "which")

    def __init__(self, values: Iterable[T], which: Positions) -> None:
        self.values = tuple(values)
        self.which = which

    @classmethod
    def of(cls, values: Iterable[T]) -> PerPart[T]:
        """Return these values, one for each part."""
        numbers: dict[T, int] = {}
        index = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), dtype=np.intp)
        return cls(numbers, index)

    @classmethod
    def same(cls, value: T, parts: int) -> PerPart[T]:  # type: ignore[misc]
        """Return one value for all parts."""
        return cls((value,), np.zeros(parts, dtype=np.intp))

    # -- a sequence -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, part: int) -> T: ...

    @overload
    def __getitem__(self, part: slice) -> PerPart[T]: ...

    def __getitem__(self, part: int | slice) -> T | PerPart[T]:
        if isinstance(part, slice):
            return PerPart(self.values, self.which[part])
        return self.values[int(self.which[part])]

    def __iter__(self) -> Iterator[T]:
        if len(self.values) == 1:
            return itertools.repeat(self.values[0], len(self))
        return map(self.values.__getitem__, self.which.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PerPart):
            return NotImplemented
        mine, theirs = self.compact(), other.compact()
        return mine.values == theirs.values and np.array_equal(mine.which, theirs.which)

    def __hash__(self) -> int:
        mine = self.compact()
        return hash((mine.values, mine.which.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:8]) + ", ..." * (len(self) > 8)
        return f"PerPart({shown})"

    # -- work on all parts at once ----------------------------------------------------------

    def take(self, parts: Sequence[int] | Positions) -> PerPart[T]:
        """Return the values of some parts, in this order."""
        return PerPart(self.values, self.which[np.asarray(parts, dtype=np.intp)])

    def repeat(self, times: Positions) -> PerPart[T]:
        """Return the value of each part so many times, one after the other: that of the parts it is divided into."""
        return PerPart(self.values, np.repeat(self.which, times))

    def map(self, function: Callable[[T], U]) -> PerPart[U]:
        """Return what a function makes of every value. It is called once for each that occurs."""
        mine = self.compact()
        return PerPart([function(value) for value in mine.values], mine.which)

    def combine(self, function: Callable[[T, U], V], other: PerPart[U]) -> PerPart[V]:
        """Return what a function makes of the two values of each part. It is called once for each pair that occurs."""
        if len(self.values) == len(other.values) == 1:
            return PerPart((function(self.values[0], other.values[0]),), self.which)
        both = self.which * len(other.values) + other.which
        pairs, index = numbered(both, len(self.values) * len(other.values))
        first, second = np.divmod(pairs, max(1, len(other.values)))
        values = [function(self.values[a], other.values[b]) for a, b in zip(first, second, strict=True)]
        return PerPart(values, index)

    def replaced(self, parts: Positions, new: PerPart[T]) -> PerPart[T]:
        """Return the same with new values for some parts."""
        index = self.which.copy()
        if len(parts) == len(index):  # nothing is left of the values before
            index[parts] = new.which
            return PerPart(new.values, index)
        index[parts] = new.which + len(self.values)
        made: PerPart[T] = PerPart((*self.values, *new.values), index)
        return made if len(made.values) <= 2 * len(index) + 16 else made.compact()

    def largest(self: PerPart[Any], groups: Positions, count: int) -> PerPart[Any]:
        """Return the largest value of each of `count` groups; `groups` says which one each part belongs to."""
        order = sorted(range(len(self.values)), key=self.values.__getitem__)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        best = np.full(count, -1, dtype=np.intp)
        np.maximum.at(best, groups, rank[self.which])
        assert best.min(initial=0) >= 0, "every group has a part"
        return PerPart([self.values[number] for number in order], best)

    def groups(self) -> Iterator[tuple[T, Positions]]:
        """Return every value that occurs, with its parts in rising order."""
        mine = self.compact()
        order = np.argsort(mine.which, kind="stable")
        ends = np.cumsum(np.bincount(mine.which, minlength=len(mine.values)))
        return zip(mine.values, np.split(order, ends), strict=False)  # after the last end nothing is left

    def compact(self) -> PerPart[T]:
        """Return the same with every value once, in the order of first appearance."""
        if len(self.values) == 1 and len(self.which):
            return self
        used, index = numbered(self.which, len(self.values))
        first = np.zeros(len(used), dtype=np.intp)
        first[index[::-1]] = np.arange(len(index))[::-1]  # of several the last assignment stays
        numbers: dict[T, int] = {}
        for position in np.argsort(first):
            numbers.setdefault(self.values[used[position]], len(numbers))
        new = np.array([numbers[self.values[number]] for number in used], dtype=np.intp)
        return PerPart(numbers, new[index])

    # -- identity ---------------------------------------------------------------------------

    def to_json(self, write: Callable[[T], Json]) -> Json:
        """Return the canonical JSON form: the values in order of first appearance, and which part has which."""
        mine = self.compact()
        values = [write(value) for value in mine.values]
        if len(values) == 1:
            return {"all": values[0], "parts": len(self)}
        return {"values": values, "index": mine.which.tolist()}

    def array(self) -> NDArray[Any]:
        """Return the values, plain numbers, as an array."""
        return np.array(self.values)[self.which] if len(self) else np.zeros(0, dtype=np.intp)
