"""What is asked of an engine: values, never text.

`Rows` says which rows lie in which part, as a chain of steps from the whole table.
A query asks for exact numbers about all parts at once; an engine answers it in one
pass. Everything here is public: built from the domain and from released values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privet.column import Column, Numeric
from privet.domain import Domain
from privet.errors import QuestionError

Counts = NDArray[np.int64]

LOGIT_GRID = 2**10  # logits of a released model are multiples of 1 / LOGIT_GRID
RESIDUAL_GRID = 2**10  # residuals are rounded down to multiples of 1 / RESIDUAL_GRID
EXP_BITS = 14  # exp(-d / LOGIT_GRID) is 0 for d >= 2^EXP_BITS
EXP_ONE = 2**20
LARGEST_LOGIT = 2**24
COIN_PRIME = 2**31 - 1  # coins are hashes modulo this prime: products stay within 64 bits
LARGEST_SUM = 2**63 - 1  # of grid indices
# What a question may need at most is known before it is charged; each takes less than 1 GB in this process.
MAX_CELLS = 2**23  # that are counted for a question, or that a model has: some 70 bytes each
MAX_RELEASED = 2**22  # cells that are released, and written to the ledger: some 140 bytes each
MAX_PARTS = 2**19  # of a partition: some 800 bytes each once a question has been asked of them
MAX_STEPS = 200  # from the whole table to a part of a part of a part ...


@dataclass(frozen=True)
class Condition:
    """Rows whose code is one of `codes`, or whose grid index lies in [low, high)."""

    column: str
    codes: tuple[int, ...] | None = None
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Split:
    """How one part is divided: by the cells of a column, or at grid indices of a numeric one.

    With thresholds t1 < t2 < ... child i holds the rows with i thresholds at or
    below their grid index; rows without a value form a last child where declared.
    """

    column: str
    thresholds: tuple[int, ...] | None = None

    def children(self, domain: Domain) -> int:
        column = domain[self.column]
        if self.thresholds is None:
            return column.size
        return len(self.thresholds) + 1 + column.missing


@dataclass(frozen=True)
class Keep:
    """Keep some parts, and of these the rows that meet every condition."""

    parts: tuple[int, ...]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Divide:
    """Divide each part by its split; a part without one is dropped."""

    splits: tuple[Split | None, ...]


@dataclass(frozen=True)
class Scatter:
    """Divide each part into `parts` by coins: the part of a row is a public hash of its own cells.

    A public function of the row alone: one record more or less changes one part and
    leaves every other row where it is, even for someone who knows the seed. Rows with
    the same cells stay together.
    """

    parts: int
    seed: int

    def coefficients(self, domain: Domain) -> list[tuple[int, int]]:
        """A multiplier and a constant below COIN_PRIME for each column, and for two last rounds."""
        rng = np.random.default_rng(self.seed)
        drawn = rng.integers(1, COIN_PRIME, size=(len(domain.columns) + 2, 2))
        return [(int(factor), int(constant)) for factor, constant in drawn]


@dataclass(frozen=True, eq=False)
class Rows:
    """Disjoint parts of the table, numbered from 0. Compared by identity, so that engines can cache them."""

    parts: int = 1
    parent: Rows | None = None
    step: Keep | Divide | Scatter | None = None
    depth: int = 0

    def __post_init__(self) -> None:
        if self.depth > MAX_STEPS:
            raise QuestionError(f"these rows are more than {MAX_STEPS} conditions and partitions away from the table.")

    def keep(self, parts: Sequence[int], conditions: tuple[Condition, ...] = ()) -> Rows:
        return Rows(len(parts), self, Keep(tuple(parts), conditions), self.depth + 1)

    def divide(self, splits: Sequence[Split | None], domain: Domain) -> Rows:
        children = sum(split.children(domain) for split in splits if split is not None)
        return Rows(children, self, Divide(tuple(splits)), self.depth + 1)

    def scatter(self, parts: int, seed: int) -> Rows:
        return Rows(self.parts * parts, self, Scatter(parts, seed), self.depth + 1)

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same rows, in every process."""
        above = self.parent.fingerprint if self.parent is not None else ""
        return hashlib.sha256(f"{above}|{self.step!r}".encode()).hexdigest()


@dataclass(frozen=True)
class CountQuery:
    """For each group of columns: how many rows of each part lie in each of its cells."""

    rows: Rows
    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class GridQuery:
    """For each column: how many rows of each part lie at each occupied index, by class of `target`.

    The index is the grid index of a numeric column and the code of a nominal one.
    """

    rows: Rows
    columns: tuple[str, ...]
    target: str | None = None


@dataclass(frozen=True)
class GridCounts:
    """Occupied (part, grid index) pairs in rising order, with a count for each class. Index -1: no value."""

    part: Counts
    index: Counts
    exact_counts: Counts  # [pair, class]


@dataclass(frozen=True)
class SumQuery:
    """How many rows of each part have a value in a numeric column, and the sum of their grid indices.

    A sum stops at LARGEST_SUM: so no number of rows makes an engine raise, or a sum small again.
    One row changes the sum by no more than without a limit.
    """

    rows: Rows
    column: str


@dataclass(frozen=True)
class AdditiveModel:
    """A released model: logits are an intercept plus a table look-up per term, all multiples of 1 / LOGIT_GRID.

    `terms` holds (columns, table) pairs; a table has an axis for each column and a last one for the classes.
    """

    intercept: tuple[int, ...]
    terms: tuple[tuple[tuple[str, ...], NDArray[np.int32]], ...] = ()

    def __post_init__(self) -> None:
        """Keep copies that nobody can change, of whole numbers that cannot overflow."""
        intercept = np.asarray(self.intercept)
        tables = [(tuple(columns), np.asarray(table)) for columns, table in self.terms]
        for numbers in (intercept, *(table for _, table in tables)):
            if numbers.ndim < 1 or not np.issubdtype(numbers.dtype, np.integer):
                raise QuestionError("a model consists of arrays of whole numbers, multiples of 1 / 1024.")
        # Python's integers: the absolute value of the smallest int64 overflows
        reach = sum(
            max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
            for numbers in (intercept, *(table for _, table in tables))
        )
        if reach > LARGEST_LOGIT:
            raise QuestionError("the model's logits are too large; scale its tables down.")
        frozen = []
        for columns, table in tables:
            copy = table.astype(np.int32)
            copy.flags.writeable = False
            frozen.append((columns, copy))
        object.__setattr__(self, "intercept", tuple(int(value) for value in intercept))
        object.__setattr__(self, "terms", tuple(frozen))

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.intercept).encode())
        for columns, table in self.terms:
            digest.update(repr((columns, table.shape)).encode() + np.ascontiguousarray(table, dtype="<i4").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class ResidualQuery:
    """Sums of clipped residuals of a released model, for each table of one or two columns.

    With E_c = exp(logit_c - largest logit) and T their sum, a row of class y adds
    own = min((T - E_y) / T, cap_y) to its cell of class y and, with more than two
    classes, own * E_c / (T - E_y) to the same cell of every other class c; all in
    whole multiples of 1 / RESIDUAL_GRID, rounded down. The arithmetic is integer
    arithmetic, so every engine computes the same numbers.
    """

    rows: Rows
    model: AdditiveModel
    tables: tuple[tuple[str, ...], ...]
    target: str
    caps: tuple[int, ...]


@dataclass(frozen=True)
class Residuals:
    """Answers to one table of a ResidualQuery: [part, cell, class], cells in row-major order."""

    exact_own: Counts
    exact_others: Counts | None


@dataclass(frozen=True)
class CorrectQuery:
    """How many rows of each part a released model classifies right: their own class has the largest logit.

    Of equal logits the one of the class declared first counts as the largest. Logits are
    whole numbers, so every engine counts the same rows.
    """

    rows: Rows
    model: AdditiveModel
    target: str


FIXED = 0


class Lost(Exception):
    """The rows were out of reach in the middle of a question; it may be asked again, of those that are there then."""


class Engine(Protocol):
    """Where the rows are. Answers are exact and stay inside the kernel.

    A row's cells depend on that row alone, an exact answer is a sum over rows, and no row, nor any
    number of rows, makes an engine raise, stop, drop or reread anything. `engines/reference.py` is
    the definition of every answer.

    Engines take `shortcuts=False` when they are made, in tests alone: then every table of every
    query is counted from the coded rows. With shortcuts an answer may also come from counts,
    numberings of parts and logits that were kept from earlier queries (`recall.py`, and each
    engine), from a larger table that several tables of a query share (`margins.py`,
    `residuals.py`), or from one pass that counts several tables. Answers must be the same.
    """

    name: str
    closed: bool
    holds_rows: bool  # in memory: an answer as large as the table takes no more than a multiple of what it has

    @property
    def version(self) -> int:
        """Of the rows, which do not change within one; `FIXED` where they never do. Told before a question is paid for:
        where the rows cannot be reached any more it raises a DataError."""
        ...

    def exact_counts(self, query: CountQuery) -> list[Counts]: ...

    def exact_grid(self, query: GridQuery) -> list[GridCounts]: ...

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]: ...

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]: ...

    def exact_correct(self, query: CorrectQuery) -> Counts: ...

    def close(self) -> None: ...


def exp_factors() -> list[int]:
    """exp(-2^bit / LOGIT_GRID) in units of 1 / EXP_ONE: what each bit of d multiplies into exp(-d / LOGIT_GRID)."""
    return [round(EXP_ONE * float(np.exp(-(2**bit) / LOGIT_GRID))) for bit in range(EXP_BITS)]


def exp_table() -> Counts:
    """exp(-d / LOGIT_GRID) in units of 1 / EXP_ONE, for d below 2^EXP_BITS; SQL multiplies the same factors."""
    d = np.arange(2**EXP_BITS, dtype=np.int64)
    value = np.full(d.shape, EXP_ONE, dtype=np.int64)
    for bit, factor in enumerate(exp_factors()):
        value = value * np.where(d >> bit & 1, factor, EXP_ONE) // EXP_ONE
    return value


def index_count(column: Column) -> int:
    """How many indices a column has in a GridQuery."""
    return column.grid_size if isinstance(column, Numeric) else column.size


def cell_count(domain: Domain, columns: Sequence[str]) -> int:
    """The number of cells of a group of columns."""
    size = 1
    for name in columns:
        size *= domain[name].size
    return size


def numeric_columns(domain: Domain) -> list[Numeric]:
    return [column for column in domain if isinstance(column, Numeric)]
