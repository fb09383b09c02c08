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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privet.bounds import fraction_of
from privet.errors import DomainError

if TYPE_CHECKING:
    import pandas as pd

OTHER = "<other>"
MISSING = "<missing>"
INFINITE = "<infinite>"  # the text of a number too large for one in a nominal column; no declared value can match it

Scalar = str | int | float | bool
Codes = NDArray[np.int64]

# No letter can be taken by two repetitions in a row: otherwise those who look back would try every way to share many
# digits, and one long text would be seen in the time of a question.
NUMBER = r"[ \t]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*"
LONGEST_NUMBER = 2**16  # characters: a longer text is no number, for not every engine could match it
_number = re.compile(NUMBER)

# A value a millionth of a step below a grid point counts as that point, so that
# 0.3 with step 0.1 is the third point although 0.3 / 0.1 is below 3 in floating
# point. Every engine evaluates the same three IEEE operations.
GRID_SLACK = 1e-6
MAX_GRID = 2**31
MAX_CELLS = 2**16
MAX_BOUND = 2**53


def text_of(value: object) -> str | None:
    """The text by which a nominal value is compared on every engine; None where it is missing.

    >>> text_of(1.0), text_of(True), text_of("a"), text_of(float("nan")), text_of("")
    ('1', 'true', 'a', None, '')
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        try:
            return str(int(value))
        except ValueError:  # thousands of digits: Python declines to write them
            return INFINITE
    if isinstance(value, float | np.floating | Decimal):
        number = number_of(value)
        if number is None:
            return None
        if math.isinf(number):
            return INFINITE
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def number_of(value: object) -> float | None:
    """The number a numeric column reads from a value; None where there is none.

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


@dataclass(frozen=True)
class Nominal:
    """A column with a declared list of values.

    >>> sex = Nominal("sex", ("Female", "Male"), other=True)
    >>> sex.labels, sex.code("Male"), sex.code("x"), sex.code(None)
    (('Female', 'Male', '<other>'), 1, 2, None)
    """

    name: str
    values: tuple[Scalar, ...]
    ordered: bool = False
    other: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise DomainError(f"column '{self.name}' declares no values; list them as values = [...].")
        if len(self.values) > MAX_CELLS:
            raise DomainError(
                f"column '{self.name}' declares more than {MAX_CELLS} values; group them, or leave it out."
            )
        texts = [text_of(value) for value in self.values]
        if any(text is None or text in (OTHER, MISSING, INFINITE) for text in texts):
            raise DomainError(
                f"column '{self.name}' declares a value that is reserved or not a value; write other = true or "
                f"missing = true for the cells {OTHER} and {MISSING}."
            )
        if len(set(texts)) < len(texts):
            twice = next(text for text, times in Counter(texts).items() if times > 1)
            raise DomainError(f"column '{self.name}' declares the value '{twice}' twice; list each value once.")

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

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: code for code, text in enumerate(self.texts)}

    def code(self, value: object) -> int | None:
        """The cell of a value, or None where the row does not fit."""
        text = text_of(value)
        if text is None or (text == "" and "" not in self._codes):
            return self.missing_code
        return self._codes.get(text, self.other_code)

    def encode(self, values: object) -> Codes:
        """The cells of a column of values; -1 where the row does not fit."""
        return _by_distinct_value(values, self.code, self.missing_code)


@dataclass(frozen=True)
class Numeric:
    """A column of numbers in declared bounds, read on the grid `low + k * step` and counted in bins.

    Values outside the bounds are clamped to them. A bin is `[edge, next edge)`.

    >>> age = Numeric("age", low=Fraction(17), high=Fraction(90), step=Fraction(1), edges=(Fraction(30), Fraction(60)))
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

    @property
    def ordered(self) -> bool:
        return True

    def __post_init__(self) -> None:
        name = self.name
        if not all(_is_short_decimal(number) for number in (self.low, self.high, self.step, *(self.edges or ()))):
            raise DomainError(
                f"column '{name}' has a low, high, step or edge that no short decimal writes; round it, or use "
                "another unit."
            )
        if not self.low < self.high:
            raise DomainError(
                f"column '{name}' needs low < high, not {decimal_text(self.low)} and {decimal_text(self.high)}."
            )
        if self.step <= 0:
            raise DomainError(f"column '{name}' needs a step above 0: the resolution at which its values are read.")
        if self.grid_size > MAX_GRID:
            raise DomainError(
                f"column '{name}' has {self.grid_size} grid points between low and high, at most {MAX_GRID} are "
                "possible; declare a larger step."
            )
        if self.grid_size < 2:
            raise DomainError(f"column '{name}' has a step larger than high - low; declare a smaller step.")
        if not self._readable:
            raise DomainError(f"column '{name}' has bounds too large for its step; declare a larger step.")
        if self.edges is not None and self.bins is not None:
            raise DomainError(f"column '{name}' declares bins and edges; keep one of them.")
        if self.bins is not None and self.bins < 1:
            raise DomainError(f"column '{name}' needs at least one bin, not {self.bins}.")
        if max(self.bins or 0, len(self.edges or ())) > min(self.grid_size, MAX_CELLS):
            raise DomainError(
                f"column '{name}' has more bins than its {self.grid_size} grid points, or than {MAX_CELLS}; use fewer."
            )
        if any(a >= b for a, b in itertools.pairwise(self.edges or ())):
            raise DomainError(f"column '{name}' has edges that do not rise; sort them and list each once.")
        thresholds = self.thresholds
        if any(a >= b for a, b in zip((0, *thresholds), (*thresholds, self.grid_size), strict=True)):
            raise DomainError(
                f"column '{name}' has an empty bin: its edges must rise, lie inside the bounds and be at least a step "
                f"apart ({self.grid_size} grid points)."
            )

    @cached_property
    def grid_size(self) -> int:
        """The number of grid points from low to high."""
        return math.floor((self.high - self.low) / self.step) + 1

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
            inner = [edge for edge in self.edges if self.low < edge < self.high]
            outside = [edge for edge in self.edges if not self.low <= edge <= self.high]
            if outside:
                raise DomainError(
                    f"column '{self.name}' has the edge {decimal_text(outside[0])} outside its bounds; edges lie "
                    "between low and high."
                )
            if self.edges and self.edges[-1] == self.high:
                inner.append(self.high)  # a last bin for the top grid point alone
        return tuple(self.index_at_or_above(edge) for edge in inner)

    def index_at_or_above(self, value: Fraction) -> int:
        """The first grid index whose value is not below `value` (it may lie outside the grid)."""
        return math.ceil((value - self.low) / self.step)

    def value_at(self, index: int) -> Fraction:
        return self.low + index * self.step

    @property
    def top(self) -> Fraction:
        """The last grid point: the largest value a row can have."""
        return self.value_at(self.grid_size - 1)

    @property
    def middle(self) -> Fraction:
        return (self.low + self.top) / 2

    def number(self, value: Fraction) -> int | float:
        """A value of this column for people: an int where the grid is whole, else a float."""
        return int(value) if self.unit.denominator == 1 and value.denominator == 1 else float(value)

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
        starts = [decimal_text(self.low), *(decimal_text(self.value_at(index)) for index in self.thresholds)]
        spans = [f"[{a}, {b})" for a, b in itertools.pairwise(starts)]
        return (*spans, f"[{starts[-1]}, {decimal_text(self.high)}]") + (MISSING,) * self.missing

    def grid(self, value: object) -> int | None:
        """The grid index of a value after clamping; None where there is no number."""
        number = number_of(value)
        if number is None:
            return None
        low, high = float(self.low), float(self.high)
        index = math.floor((min(max(number, low), high) - low) / float(self.step) + GRID_SLACK)
        return min(index, self.grid_size - 1)

    def code(self, value: object) -> int | None:
        """The cell of a value, or None where the row does not fit."""
        index = self.grid(value)
        if index is None:
            return self.missing_code
        return int(np.searchsorted(self.thresholds, index, side="right"))

    def to_grid(self, values: object) -> Codes:
        """The grid indices of a column of values; -1 where there is no number."""
        series = _series(values)
        if series.dtype.kind not in "biuf":
            return _by_distinct_value(series, self.grid, None)
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        low, high = float(self.low), float(self.high)
        present = ~np.isnan(numbers)
        clamped = np.clip(np.where(present, numbers, low), low, high)
        index = np.floor((clamped - low) / float(self.step) + GRID_SLACK).astype(np.int64)
        return np.where(present, np.minimum(index, self.grid_size - 1), -1)

    def bin_of(self, grid: Codes) -> Codes:
        """The cells of grid indices; -1 where the row does not fit."""
        codes = np.searchsorted(np.asarray(self.thresholds, dtype=np.int64), grid, side="right")
        return np.where(grid >= 0, codes, -1 if self.missing_code is None else self.missing_code)

    def encode(self, values: object) -> Codes:
        """The cells of a column of values; -1 where the row does not fit."""
        return self.bin_of(self.to_grid(values))


Column = Nominal | Numeric

_LOOK_UP = 1024  # whole numbers this close together are looked up in a table


def _is_short_decimal(number: Fraction) -> bool:
    """Can a domain file write it, and read it back?"""
    if fraction_of(number) is None:  # before its digits are counted
        return False
    text = decimal_text(number)
    return "/" not in text and len(text) <= 40 and (number == 0 or 1e-15 <= abs(float(number)) <= 1e18)


def _series(values: Any) -> pd.Series[Any]:
    """A column as a series in which every element keeps its own type: numpy would read [1.0, "a"] as texts."""
    import pandas as pd

    if isinstance(values, pd.Series):
        return values
    if not hasattr(values, "dtype") or getattr(values.dtype, "kind", "") in "US":
        return pd.Series(list(values), dtype=object)
    series: pd.Series[Any] = pd.Series(values, dtype=values.dtype)
    return series  # no guessing among objects: a huge integer would overflow


def _by_distinct_value(values: object, code: Callable[[object], int | None], missing: int | None) -> Codes:
    """Apply a scalar rule once per distinct value: columns have few of them."""
    import pandas as pd

    series = _series(values)
    if series.dtype == object:
        return _by_typed_value(series.to_numpy(), code)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" and len(series):
        whole = series.to_numpy()
        low, high = int(whole.min()), int(whole.max())
        if high - low < _LOOK_UP:
            cells = [code(value) for value in range(low, high + 1)]
            table = np.array([-1 if cell is None else cell for cell in cells], dtype=np.int64)
            return np.asarray(table[whole - low if low else whole])
    positions, distinct = pd.factorize(series.array)
    cells = [code(value) for value in distinct]
    table = np.array([-1 if cell is None else cell for cell in cells] + [-1 if missing is None else missing])
    return np.asarray(table[positions], dtype=np.int64)


def _by_typed_value(array: NDArray[Any], code: Callable[[object], int | None]) -> Codes:
    # 1, 1.0 and True are equal and have three different texts: remember what was seen for each type. Values of other
    # types may be equal and differ in text, or not be hashable: ask for each.
    seen: dict[type, dict[object, int]] = {str: {}, float: {}, int: {}, bool: {}}
    codes = []
    for value in array.tolist():
        known = seen.get(type(value), {})
        cell = known.get(value) if known else None
        if cell is None:
            found = code(value)
            cell = -1 if found is None else found
            if type(value) in seen:
                seen[type(value)][value] = cell
        codes.append(cell)
    return np.array(codes, dtype=np.int64)
