"""Columns of a public domain: how each value becomes a small integer, its *code*.

Declared values or bins come first, then the cells `<other>` and `<missing>`
where the owner declared them. A value that fits no cell takes its whole row out
of the table, silently: an error would tell that the row exists.

The scalar methods `code` and `grid` are the definition; `encode`, `to_grid` and
the SQL compiler are tested against them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from privet.errors import DomainError
from privet.kernel.public_values import Json, fraction_of, whole_of
from privet.text import decimal_text, quoted

if TYPE_CHECKING:
    import pandas as pd

OTHER = "<other>"
MISSING = "<missing>"
UNWRITABLE = "<unwritable>"  # the text of a value that has none, or a numeral too long: no declared value can match it

Scalar = str | int | float | bool
Exactly = Fraction | Decimal | int | float | str  # what becomes an exact number
Codes = NDArray[np.int64]

# No character can be matched by two neighbouring repetitions. Otherwise a backtracking matcher would try every way to
# divide a long run of digits, and the time of a question would show that such a text exists.
NUMBER = r"[ \t]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*"
LONGEST_NUMBER = 2**16  # characters: a longer text is no number, for not every engine could match it
_number = re.compile(NUMBER)

# Spellings of one value, docs/reference/domain.md#one-text-for-a-value: a table and two shapes, and no floating point.
_BOOLEANS = {word: word.lower() for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
LONGEST_NUMERAL = 400  # characters; every float is shorter
_numeral = re.compile(r"(-?)(0|[1-9][0-9]*)(?:[.]([0-9]*))?")
_scientific = re.compile(r"(-?)([1-9])(?:[.]([0-9]+))?[eE](-|[+]?)([1-9][0-9]{0,2}|0[1-9])")
_whole = re.compile(r"-?(0|[1-9][0-9]*)")
_PLAIN_POWERS = range(-4, 15)  # programs write numbers of these powers of ten without an exponent
_EXACT_WHOLE = 2**53  # floats below it are whole numbers to the last digit

# A value a millionth of a step below a grid point counts as that point, so that
# 0.3 with step 0.1 is the third point although 0.3 / 0.1 is below 3 in floating
# point. Every engine evaluates the same three IEEE operations.
GRID_SLACK = 1e-6
MAX_GRID = 2**24  # a quantile may meet a row at every point: this bounds its memory, whatever the rows
MAX_COLUMN_CELLS = 2**16
MAX_BOUND = 2**53


def text_of(value: object) -> str | None:
    """Return the text by which a nominal value is compared on every engine; None where it is missing.

    Booleans, numbers and the texts that spell them have one text: `canonical_text` says which. Two decimals
    that round to the same float are different values and have different texts.

    >>> text_of(1.0), text_of(True), text_of("True"), text_of("a"), text_of(float("nan")), text_of("")
    ('1', 'true', 'true', 'a', None, '')
    >>> text_of(1e-05), text_of("0.000010"), text_of(Decimal("2.50")), text_of(np.float32(0.1))
    ('0.00001', '0.00001', '2.5', '0.1')
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return canonical_text(str.__str__(value))
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        whole = int(value)
        return canonical_text(str(whole)) if whole.bit_length() < 4 * LONGEST_NUMERAL else UNWRITABLE
    if isinstance(value, float | np.floating):
        return _text_of_float(value)
    if isinstance(value, Decimal):
        return _text_of_decimal(value)
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return None
    try:
        return canonical_text(str(value))
    except Exception:  # of nested lists and foreign objects: it would tell that such a row exists
        return UNWRITABLE


def canonical_text(text: str) -> str:
    """Return the one spelling of a text: lower-case booleans, numerals without zeros at their end, others as they are.

    >>> [canonical_text(text) for text in ("TRUE", "0.0", "-0", "12.50", "5.", "1e-05", "1.0E-5")]
    ['true', '0', '0', '12.5', '5', '0.00001', '0.00001']
    >>> [canonical_text(text) for text in ("007", "1e5", ".5", "+1", " 1", "1,0", "tRUE")]
    ['007', '1e5', '.5', '+1', ' 1', '1,0', 'tRUE']
    """
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if not ("0" <= text[:1] <= "9" or text[:1] == "-"):
        return text
    if parts := _numeral.fullmatch(text):
        return _joined(parts[1], parts[2], parts[3] or "") if len(text) <= LONGEST_NUMERAL else UNWRITABLE
    if parts := _scientific.fullmatch(text):
        sign, first, rest, minus, digits = parts.groups(default="")
        power = -int(digits) if minus == "-" else int(digits)
        normal = rest == "0" or not rest.endswith("0")
        if normal and power not in _PLAIN_POWERS and (positional := _positional(sign, first + rest, power)):
            return positional
    return text


def spellings(text: str) -> tuple[str, ...]:
    """Return every text with this canonical one, but for the zeros and the point that may end a numeral.

    >>> spellings("true"), spellings("0"), spellings("a"), spellings("1.5")
    (('true', 'True', 'TRUE'), ('0', '-0'), ('a',), ('1.5',))
    >>> spellings("0.00001")[:3]
    ('0.00001', '1e-5', '1e-05')
    """
    if text in _BOOLEANS:
        return tuple(word for word, same in _BOOLEANS.items() if same == text)
    if text == "0":
        return ("0", "-0")
    parts = _numeral.fullmatch(text)
    if parts is None:
        return (text,)
    sign, whole, fraction = parts.groups(default="")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 - (len(whole + fraction) - len(digits))
    if power in _PLAIN_POWERS:
        return (text,)
    digits = digits.rstrip("0")
    mantissas = [digits[0] + "." + digits[1:]] if digits[1:] else [digits, digits + ".0"]
    size = str(abs(power))
    powers = [f"-{size}", *([f"-0{size}"] if len(size) == 1 else [])] if power < 0 else [size, f"+{size}"]
    written = itertools.product(mantissas, "eE", powers)
    return (text, *(f"{sign}{mantissa}{letter}{exponent}" for mantissa, letter, exponent in written))


def is_numeral(text: str) -> bool:
    """Return whether a text is a number without an exponent, as 12, -0.5 or 3.00."""
    return _numeral.fullmatch(text) is not None


def _joined(sign: str, whole: str, fraction: str) -> str:
    """Return a numeral without the zeros at the end of its fraction; there is one zero."""
    fraction = fraction.rstrip("0")
    if whole == "0" and not fraction:
        return "0"
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole


def _positional(sign: str, digits: str, power: int) -> str | None:
    """Return d.ddd times ten to a power without an exponent, or None where that is too long."""
    if abs(power) > LONGEST_NUMERAL or len(digits) > LONGEST_NUMERAL:
        return None
    if power < 0:
        text = _joined(sign, "0", "0" * (-power - 1) + digits)
    else:
        text = _joined(sign, digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :])
    return text if len(text) <= LONGEST_NUMERAL else None


def _text_of_float(value: Any) -> str | None:
    """Return a whole number as it is, any other as the shortest decimal that reads back as the same float."""
    with np.errstate(over="ignore"):  # a warning would tell of a row
        number = float(value)
    if math.isnan(number):
        return None
    if abs(number) < _EXACT_WHOLE and number.is_integer() and number == value:
        return str(int(number))
    if np.isinf(value):
        return UNWRITABLE
    if isinstance(value, float):
        return canonical_text(format(Decimal(repr(number)), "f"))
    return canonical_text(np.format_float_positional(value, trim="-"))


def _text_of_decimal(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    if not value:
        return "0"
    if value.is_infinite():
        return UNWRITABLE
    digits = "".join(map(str, value.as_tuple().digits)).lstrip("0")
    return _positional("-" * value.is_signed(), digits.rstrip("0"), value.adjusted()) or UNWRITABLE


def number_of(value: object) -> float | None:
    """Return the number that a value is or spells; None if there is none.

    `Numeric.grid` also reads the words for booleans.

    >>> number_of(" 1.5e1 "), number_of("abc"), number_of(10**400), number_of(True)
    (15.0, None, inf, 1.0)
    """
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER or not _number.fullmatch(value):
            return None
    elif not isinstance(value, bool | np.bool_ | int | np.integer | float | np.floating | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf if int(value) > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return None
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class Nominal:
    """A column with a declared list of values.

    Parameters
    ----------
    name : str
    values : sequence of str, int, float or bool
        The declared values; each has a cell. Kept as a tuple.
    ordered : bool, default False
        Whether the values rise in the order in which they are listed.
    other, missing : bool, default False
        Whether all other values, and missing ones, have a cell. Without it a row that has one is left out.

    Raises
    ------
    DomainError
        A value is listed twice, is reserved or is too long; or there are none or too many.

    >>> sex = Nominal("sex", ["Female", "Male"], other=True)
    >>> sex.labels, sex.code("Male"), sex.code("x"), sex.code(None)
    (('Female', 'Male', '<other>'), 1, 2, None)
    """

    name: str
    values: tuple[Scalar, ...]
    ordered: bool = False
    other: bool = False
    missing: bool = False

    kind = "nominal"

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            listed = "a list of texts, numbers or true/false"
            raise DomainError(f"column '{self.name}' needs values as {listed}, not {quoted(self.values)}.")
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise DomainError(f"column '{self.name}' declares no values; list them as values = [...].")
        if len(self.values) > MAX_COLUMN_CELLS:
            raise DomainError(
                f"column '{self.name}' declares more than {MAX_COLUMN_CELLS} values; group them, or leave it out."
            )
        texts = [text_of(value) for value in self.values]
        if any(text is None or text in (OTHER, MISSING, UNWRITABLE) for text in texts):
            raise DomainError(
                f"column '{self.name}' declares a value that is reserved, not a value, or a numeral of more than "
                f"{LONGEST_NUMERAL} characters; write other = true or missing = true for the cells {OTHER} and "
                f"{MISSING}."
            )
        first: dict[str | None, Scalar] = {}
        for value, text in zip(self.values, texts, strict=True):
            if text in first:
                raise DomainError(
                    f"column '{self.name}' declares the value '{text}' twice, as {first[text]!r} and as {value!r}; "
                    "list each value once."
                )
            first[text] = value

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The declared values as they are compared."""
        return tuple(str(text_of(value)) for value in self.values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return self.texts + (OTHER,) * self.other + (MISSING,) * self.missing

    @property
    def size(self) -> int:
        return len(self.values) + self.other + self.missing

    @property
    def missing_code(self) -> int | None:
        return self.size - 1 if self.missing else None

    @property
    def other_code(self) -> int | None:
        return len(self.values) if self.other else None

    def cells(self) -> Json:
        """Return as JSON all that decides which cell a value falls into."""
        return {"kind": "nominal", "values": self.texts, "other": self.other, "missing": self.missing}

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self.texts)}

    def code(self, value: object) -> int | None:
        """Return the cell of a value, or None where the row does not fit."""
        text = text_of(value)
        if text is None or (text == "" and "" not in self._codes):
            return self.missing_code
        return self._codes.get(text, self.other_code)

    @cached_property
    def whole_numbers(self) -> tuple[tuple[int, int], ...]:
        """The declared values that are whole numbers, rising, each with its code."""
        return tuple(sorted((int(text), code) for code, text in enumerate(self.texts) if _whole.fullmatch(text)))

    def floats(self, kind: type[np.floating[Any]] = np.float64) -> tuple[tuple[np.floating[Any], int], ...]:
        """The floats of a width that have a declared text, rising, each with its code."""
        pairs = []
        with np.errstate(over="ignore", under="ignore"):
            for code, text in enumerate(self.texts):
                if not is_numeral(text):
                    continue
                nearest = kind(text)
                # read by way of a double, a narrow float may be the neighbour of the right one
                near = (nearest, np.nextafter(nearest, kind(-np.inf)), np.nextafter(nearest, kind(np.inf)))
                pairs += [(number, code) for number in near if text_of(number) == text][:1]
        return tuple(sorted(pairs))

    def encode(self, values: object) -> Codes:
        """Return the cells of a column of values; -1 where the row does not fit."""
        series = as_series(values)
        missing = -1 if self.missing_code is None else self.missing_code
        numbers = _plain_numbers(series)
        if numbers is None:
            return _by_value(series, self.encode, self.code, missing)
        array, absent = numbers
        codes = self._codes_of(array)
        if absent is not None:
            np.putmask(codes, absent, missing)
        return codes

    def _codes_of(self, numbers: NDArray[Any]) -> Codes:
        """Return the cells of an array of booleans, whole numbers or floats, none of which is missing."""
        other = -1 if self.other_code is None else self.other_code
        if numbers.dtype.kind == "b":
            return np.array([self._codes.get("false", other), self._codes.get("true", other)])[numbers.astype(np.int8)]
        if numbers.dtype.kind == "f":
            return _looked_up(numbers, self.floats(numbers.dtype.type), other)
        bounds = np.iinfo(numbers.dtype)
        declared = [(number, code) for number, code in self.whole_numbers if bounds.min <= number <= bounds.max]
        return _looked_up_whole(numbers, declared, other)


@dataclass(frozen=True, init=False)
class Numeric:
    """A column of numbers in declared bounds, read on the grid `low + k * step` and counted in bins.

    Values outside the bounds are clamped to them. A bin is `[edge, next edge)`.

    Parameters
    ----------
    name : str
    low, high : Fraction, int, float or str
        Public bounds. A decimal means what it says: 0.1 is one tenth.
    step : Fraction, int, float or str, optional
        The resolution at which values are read; 1 if left out, which needs bounds and edges that are whole.
    edges : sequence of Fraction, int, float or str, optional
        Where bins begin, rising.
    bins : int, optional
        The number of bins of equal width, instead of edges. Default: 10, or one for each grid point if these are fewer.
    missing : bool, default False
        Whether values that are no number have a cell. Without it a row that has one is left out.

    Raises
    ------
    DomainError
        The numbers contradict each other, or make too many cells or grid points.

    >>> age = Numeric("age", 17, 90, edges=[30, 60])
    >>> age.labels, age.grid(30), age.code(30), age.code(1000), age.code("abc")
    (('[17, 30)', '[30, 60)', '[60, 90]'), 13, 1, 2, None)
    """

    name: str
    low: Fraction
    high: Fraction
    step: Fraction
    edges: tuple[Fraction, ...] | None = None
    bins: int | None = None
    missing: bool = False

    ordered = True
    kind = "numeric"

    def __init__(
        self,
        name: str,
        low: Exactly,
        high: Exactly,
        step: Exactly | None = None,
        edges: Sequence[Exactly] | None = None,
        bins: int | None = None,
        missing: bool = False,
    ) -> None:
        if edges is not None and (isinstance(edges, str) or not isinstance(edges, Iterable)):
            raise DomainError(f"column '{name}' needs edges as a rising list of numbers, not {quoted(edges)}.")
        if bins is not None and whole_of(bins, -(2**62), 2**62) is None:
            raise DomainError(f"column '{name}' needs a whole number of bins, not {quoted(bins)}.")
        points = None if edges is None else tuple(_exactly(name, "edges", edge) for edge in edges)
        bounds = {"low": _exactly(name, "low", low), "high": _exactly(name, "high", high)}
        if step is None and any(number.denominator != 1 for number in (*bounds.values(), *(points or ()))):
            raise DomainError(
                f"column '{name}' needs step = ..., the resolution at which its values are read, say 0.01."
            )
        resolution = Fraction(1) if step is None else _exactly(name, "step", step)
        values = {"name": name, **bounds, "step": resolution, "edges": points, "bins": bins, "missing": missing}
        for field, value in values.items():
            object.__setattr__(self, field, value)
        if (problem := self._problem()) is not None:
            raise DomainError(f"column '{self.name}' {problem}")

    def _problem(self) -> str | None:
        """Return what is wrong with the declaration, or None. Each check relies on the ones before it."""
        edges = self.edges or ()
        if not all(_is_short_decimal(number) for number in (self.low, self.high, self.step, *edges)):
            return "has a low, high, step or edge that no short decimal writes; round it, or use another unit."
        if not self.low < self.high:
            return f"needs low < high, not {self.text(self.low)} and {self.text(self.high)}."
        if self.step <= 0:
            return "needs a step above 0: the resolution at which its values are read."
        if self.grid_size > MAX_GRID:
            points = f"{self.grid_size} grid points between low and high, at most {MAX_GRID} are possible"
            return f"has {points}; declare a larger step."
        if self.grid_size < 2:
            return "has a step larger than high - low; declare a smaller step."
        if not self._readable:
            return "has bounds too large for its step; declare a larger step."
        if self.edges is not None and self.bins is not None:
            return "declares bins and edges; keep one of them."
        if self.bins is not None and self.bins < 1:
            return f"needs at least one bin, not {self.bins}."
        if max(self.bins or 0, len(edges)) > min(self.grid_size, MAX_COLUMN_CELLS):
            return f"has more bins than its {self.grid_size} grid points, or than {MAX_COLUMN_CELLS}; use fewer."
        if any(a >= b for a, b in itertools.pairwise(edges)):
            return "has edges that do not rise; sort them and list each once."
        if outside := [edge for edge in edges if not self.low <= edge <= self.high]:
            return f"has the edge {self.text(outside[0])} outside its bounds; edges lie between low and high."
        if any(a >= b for a, b in itertools.pairwise((0, *self.thresholds, self.grid_size))):
            bins = "its edges must rise, lie inside the bounds and be at least a step apart"
            return f"has an empty bin: {bins} ({self.grid_size} grid points)."
        return None

    def named(self, name: str) -> Self:
        """Return the same column under another name: nothing else is to be checked again."""
        other = copy(self)
        object.__setattr__(other, "name", name)
        return other

    @cached_property
    def grid_size(self) -> int:
        """The number of grid points from low to high."""
        return math.floor((self.high - self.low) / self.step) + 1

    def grid_is_of(self, other: Numeric) -> bool:
        """Return whether both columns read every value at the same grid index."""
        return (self.low, self.high, self.step) == (other.low, other.high, other.step)

    def cells(self) -> Json:
        """Return as JSON all that decides which cell and which grid point a value falls into."""
        bounds = {"low": self.text(self.low), "high": self.text(self.high), "step": decimal_text(self.step)}
        return {"kind": self.kind, **bounds, "thresholds": self.thresholds, "missing": self.missing}

    def declared_step(self) -> str | None:
        """Return `step` as a domain file writes it."""
        return decimal_text(self.step)

    @cached_property
    def unit(self) -> Fraction:
        """The largest fraction of which low and step are both whole multiples."""
        denominator = math.lcm(self.low.denominator, self.step.denominator)
        return Fraction(math.gcd(int(self.low * denominator), int(self.step * denominator)), denominator)

    @property
    def _readable(self) -> bool:
        """Does the float of every grid point lead back to it?"""
        bound = max(abs(self.low), abs(self.high))
        binary = self.unit.denominator & (self.unit.denominator - 1) == 0
        if binary and bound * self.unit.denominator <= MAX_BOUND:
            return True  # floats hold every grid point exactly
        # Each operation of `grid` errs by at most 2**-53 of its result; together they must stay below the slack.
        error = (2 * bound / self.step + 4 * self.grid_size) / 2**53
        return bound / self.unit <= MAX_BOUND and error < GRID_SLACK

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """The grid index at which each bin but the first begins."""
        if self.edges is None:
            bins = min(10, self.grid_size) if self.bins is None else self.bins
            inner = [self.low + (self.high - self.low) * i / bins for i in range(1, bins)]
        else:
            inner = [edge for edge in self.edges if self.low < edge <= self.high]  # high: a bin for the top point alone
        return tuple(self.index_at_or_above(edge) for edge in inner)

    def index_at_or_above(self, value: Fraction) -> int:
        """Return the first grid index whose value is not below `value`; it may lie outside the grid."""
        (low, of_low), (step, of_step), (own, of_own) = (
            number.as_integer_ratio() for number in (self.low, self.step, value)
        )
        # the quotient of two fractions, rounded up: edges are thousands, and fractions are slow
        return -((low * of_own - own * of_low) * of_step // (step * of_low * of_own))

    def value_at(self, index: int) -> Fraction:
        return self.low + index * self.step

    @property
    def top(self) -> Fraction:
        """The last grid point: the largest value a row can have."""
        return self.value_at(self.grid_size - 1)

    @property
    def middle(self) -> Fraction:
        return (self.low + self.top) / 2

    def number(self, value: Fraction) -> int | float | str:
        """Return a value of this column for people: an int where the grid is whole, else a float."""
        return int(value) if self.unit.denominator == 1 and value.denominator == 1 else float(value)

    def text(self, value: Fraction) -> str:
        """Return a value of this column as it is written."""
        return decimal_text(value)

    @property
    def bin_count(self) -> int:
        return len(self.thresholds) + 1

    @property
    def size(self) -> int:
        return self.bin_count + self.missing

    @property
    def missing_code(self) -> int | None:
        return self.size - 1 if self.missing else None

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return (*self.spans(self.thresholds), *(MISSING,) * self.missing)

    def spans(self, thresholds: Sequence[int]) -> list[str]:
        """Return labels of the ranges that begin at low and at each of these grid indices."""
        starts = [self.text(self.low), *(self.text(self.value_at(index)) for index in thresholds)]
        return [*(f"[{a}, {b})" for a, b in itertools.pairwise(starts)), f"[{starts[-1]}, {self.text(self.high)}]"]

    def read(self, value: object) -> float | None:
        """Return the number that a stored value is or spells, before clamping; None where there is none."""
        return number_of(_BOOLEANS[value] == "true" if isinstance(value, str) and value in _BOOLEANS else value)

    def grid(self, value: object) -> int | None:
        """Return the grid index of a value after clamping; None where there is no number."""
        number = self.read(value)
        if number is None:
            return None
        low, high = float(self.low), float(self.high)
        index = math.floor((min(max(number, low), high) - low) / float(self.step) + GRID_SLACK)
        return min(index, self.grid_size - 1)

    def code(self, value: object) -> int | None:
        """Return the cell of a value, or None where the row does not fit."""
        index = self.grid(value)
        if index is None:
            return self.missing_code
        return int(np.searchsorted(self.thresholds, index, side="right"))

    def to_grid(self, values: object) -> Codes:
        """Return the grid indices of a column of values; -1 where there is no number."""
        series = as_series(values)
        numbers = self.plain_numbers(series)
        if numbers is None:
            return _by_value(series, self.to_grid, self.grid, -1)
        array, absent = numbers
        with np.errstate(over="ignore"):  # a warning would tell of a row
            doubles = array.astype(np.float64)
        low, high = float(self.low), float(self.high)
        present = ~np.isnan(doubles) if absent is None else ~absent
        clamped = np.clip(np.where(present, doubles, low), low, high)
        index = np.floor((clamped - low) / float(self.step) + GRID_SLACK).astype(np.int64)
        return np.where(present, np.minimum(index, self.grid_size - 1), -1)

    def plain_numbers(self, series: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None] | None:
        """Return a column as an array of what `read` gives, and which are missing; None where each is read by itself.

        By the type of the column alone.
        """
        return _plain_numbers(series)

    def bin_of(self, grid: Codes) -> Codes:
        """Return the cells of grid indices; -1 where the row does not fit."""
        codes = np.searchsorted(np.asarray(self.thresholds, dtype=np.int64), grid, side="right")
        return np.where(grid >= 0, codes, -1 if self.missing_code is None else self.missing_code)

    def encode(self, values: object) -> Codes:
        """Return the cells of a column of values; -1 where the row does not fit."""
        return self.bin_of(self.to_grid(values))


Column = Nominal | Numeric

_FEW = 12  # declared numbers are compared one after the other
_LOOK_UP = 2**16  # declared whole numbers this close together are looked up in a table


def _exactly(column: str, name: str, value: object) -> Fraction:
    """Return a number of a declaration, or refuse what is none."""
    number = fraction_of(value)
    if number is None:
        raise DomainError(f"column '{column}' needs a finite number for {name}, not {quoted(value)}.")
    return number


def _is_short_decimal(number: Fraction) -> bool:
    """Can a domain file write a number that `fraction_of` has read, and read it back?"""
    text = decimal_text(number)
    return "/" not in text and len(text) <= 40 and (number == 0 or 1e-15 <= abs(float(number)) <= 1e18)


# --- columns of values ------------------------------------------------------------------------------------------------
#
# The cell of a row is a function of that row alone. So the route is chosen by the type of the column and by what is
# declared, never by what rows hold; numbers are compared in their own type and computed with in 64 bits, where what is
# declared fits; and values are coded together only where equal ones have equal texts.


def as_series(values: Any) -> pd.Series[Any]:
    """Return a column of a pandas, polars or Arrow frame, an array or a list as a series.

    Every element keeps its own type: numpy would read [1.0, "a"] as texts, and pandas whole numbers beside a missing
    one as floats.
    """
    import pandas as pd

    if isinstance(values, pd.Series):
        dense: pd.Series[Any] = values.sparse.to_dense() if isinstance(values.dtype, pd.SparseDtype) else values  # type: ignore[attr-defined]
        return dense
    library = type(values).__module__.partition(".")[0]
    if library == "polars" and str(values.dtype) in ("Object", "Int128", "UInt128"):  # Arrow has no such types
        return pd.Series(values.to_list(), dtype=object)
    if library in ("polars", "pyarrow"):
        return _of_arrow(values.to_arrow() if library == "polars" else values)
    if not hasattr(values, "dtype") or getattr(values.dtype, "kind", "") in "US":
        return pd.Series(list(values), dtype=object)
    # no guessing among objects: a huge integer would overflow
    return as_series(pd.Series(values, dtype=values.dtype))


def _of_arrow(values: Any) -> pd.Series[Any]:
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.large_string())  # pandas cannot count the different values of a view
    return pd.Series(pd.arrays.ArrowExtensionArray(values))  # type: ignore[attr-defined, unused-ignore]


def _plain_numbers(series: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None] | None:
    """Return a column of booleans, whole numbers or floats as an array, and which are missing; None of another type."""
    dtype: Any = series.dtype
    if getattr(dtype, "kind", "O") not in "biuf":
        return None
    if isinstance(dtype, np.dtype):
        array, absent = series.to_numpy(), None
    elif hasattr(dtype, "numpy_dtype"):
        absent = series.isna().to_numpy(dtype=np.bool_)
        array = series.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0))
    else:
        return None
    if array.dtype.kind == "f":
        absent = np.isnan(array) if absent is None else absent | np.isnan(array)
    return array, absent


def _looked_up(numbers: NDArray[Any], declared: Sequence[tuple[Any, int]], other: int) -> Codes:
    """Return the codes of numbers that are declared, `other` of those that are not; `declared` rises."""
    keys = np.array([number for number, _ in declared], dtype=numbers.dtype)
    if len(keys) <= _FEW:
        cells = np.full(len(numbers), other, dtype=np.int64)
        for key, (_, code) in zip(keys, declared, strict=True):
            np.putmask(cells, numbers == key, code)
        return cells
    codes = np.array([code for _, code in declared], dtype=np.int64)
    position = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.where(keys[position] == numbers, codes[position], other)


def _looked_up_whole(numbers: NDArray[Any], declared: Sequence[tuple[int, int]], other: int) -> Codes:
    """`_looked_up` of whole numbers: those between the declared ones are places of a table."""
    if not declared or declared[-1][0] - declared[0][0] > _LOOK_UP or max(abs(n) for n, _ in declared) >= 2**62:
        return _looked_up(numbers, declared, other)
    bounds = np.iinfo(numbers.dtype)
    first, last = declared[0][0] - 1, declared[-1][0] + 1  # neither is declared
    table = np.full(last - first + 1, other, dtype=np.int64)
    for number, code in declared:
        table[number - first] = code
    within = [np.array(bound, dtype=numbers.dtype) for bound in (max(first, bounds.min), min(last, bounds.max))]
    position = np.clip(numbers, *within).astype(np.int64, copy=False)
    position -= first
    return table.take(position)


def _by_value(
    series: pd.Series[Any], encode: Callable[[object], Codes], code: Callable[[object], int | None], missing: int
) -> Codes:
    """Apply a scalar rule to a column without plain numbers: to each category, each different text, or each row."""
    import pandas as pd

    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        table = np.append(encode(pd.Series(dtype.categories, dtype=dtype.categories.dtype)), missing)
        return np.asarray(table[series.cat.codes.to_numpy()])
    if series.dtype == object:
        return _by_typed_value(series.to_numpy().tolist(), code)
    if not isinstance(dtype, pd.StringDtype) and str(dtype) not in ("string[pyarrow]", "large_string[pyarrow]"):
        return _by_typed_value(elements(series.array), code)
    positions, texts = pd.factorize(series.array)
    return np.append(_by_typed_value(elements(texts), code), missing)[positions]


def elements(array: Any) -> list[Any]:
    """Return the elements of an array.

    `UNWRITABLE` stands in place of one that Python cannot represent, such as a date after 9999.
    """
    try:
        return list(array)
    except Exception:  # it would tell that such a row exists
        elements = []
    for position in range(len(array)):
        try:
            elements.append(array[position])
        except Exception:
            elements.append(UNWRITABLE)
    return elements


def _by_typed_value(values: Sequence[Any], code: Callable[[object], int | None]) -> Codes:
    # 1, 1.0 and True are equal and not of one text: remember what was seen for each type. Values of other types may be
    # equal and differ in text, or not be hashable: ask for each.
    seen: dict[type, dict[object, int]] = {str: {}, float: {}, int: {}, bool: {}, date: {}}
    codes = []
    for value in values:
        cells = seen.get(type(value))
        cell = cells.get(value) if cells else None
        if cell is None:
            fitting = code(value)
            cell = -1 if fitting is None else fitting
            if cells is not None:
                cells[value] = cell
        codes.append(cell)
    return np.array(codes, dtype=np.int64)
