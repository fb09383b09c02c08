"""The tests of a published tree: which values of a column lead to a child."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Column, Numeric, canonical_text, number_of, text_of
from privet.models.tree import cell_text

Mask = NDArray[np.bool_]


class Condition(Protocol):
    """Says of each distinct value of one column whether a row with it goes to this child; `str` tells it to people."""

    @property
    def column(self) -> str: ...

    def holds(self, values: Sequence[object]) -> Mask: ...


@dataclass(frozen=True)
class Equals:
    """Rows with one value of a nominal column.

    >>> str(Equals("sex", "Female")), Equals("sex", "Female").holds(["Male", "Female"]).tolist()
    ('sex = Female', [False, True])
    """

    column: str
    value: str

    def holds(self, values: Sequence[object]) -> Mask:
        wanted = canonical_text(self.value)  # a tree writes it as the program that grew it does
        return np.array([text_of(value) == wanted for value in values], dtype=np.bool_)

    def __str__(self) -> str:
        return cell_text(self.column, self.value)


@dataclass(frozen=True)
class AtMost:
    """Rows whose number is at most a threshold; with `single` the number is rounded to 32 bits first, as
    scikit-learn does."""

    column: str
    threshold: float
    single: bool = False

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values, self.single) <= self.threshold)  # NaN is neither below nor above

    def __str__(self) -> str:
        return f"{self.column} <= {self.threshold:.6g}"


@dataclass(frozen=True)
class Above:
    """Rows whose number is above a threshold."""

    column: str
    threshold: float
    single: bool = False

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values, self.single) > self.threshold)

    def __str__(self) -> str:
        return f"{self.column} > {self.threshold:.6g}"


@dataclass(frozen=True)
class InCell:
    """Rows in one cell of a column of a public domain."""

    declared: Column
    code: int

    @property
    def column(self) -> str:
        return self.declared.name

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(cells_of(self.declared, values) == self.code)

    def __str__(self) -> str:
        return cell_text(self.column, self.declared.labels[self.code])


@dataclass(frozen=True)
class OnSide:
    """Rows on one side of a threshold on the grid of a numeric column: 0 below, 1 from it on, 2 without a number."""

    declared: Numeric
    at: int
    side: int

    @property
    def column(self) -> str:
        return self.declared.name

    def holds(self, values: Sequence[object]) -> Mask:
        grid = np.array([-1 if (index := self.declared.grid(value)) is None else index for value in values])
        return np.asarray(np.where(grid < 0, 2, np.where(grid >= self.at, 1, 0)) == self.side)

    def __str__(self) -> str:
        if self.side == 2:
            return cell_text(self.column, "<missing>")
        point = self.declared.text(self.declared.value_at(self.at - 1))
        return f"{self.column} {'>' if self.side else '<='} {point}"


def cells_of(declared: Column, values: Sequence[object]) -> NDArray[np.int64]:
    """The cell of each distinct value of a column, -1 where the domain has none for it."""
    return np.array([-1 if (code := declared.code(value)) is None else code for value in values], dtype=np.int64)


def numbers_of(values: Sequence[object], single: bool = False) -> NDArray[np.float64]:
    """Values as numbers, NaN where there is none."""
    numbers = np.array([np.nan if (number := number_of(value)) is None else number for value in values])
    return numbers.astype(np.float32).astype(np.float64) if single else numbers.astype(np.float64)
