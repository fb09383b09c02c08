"""Which rows lie in which part: a chain of steps from the whole table, each for all parts at once.

Everything here is public: built from the domain and from released values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privet.errors import QuestionError
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.public_values import Json, PerPart, Positions, digest, whole_of

COIN_PRIME = 2**31 - 1  # coins are hashes modulo this prime: products stay within 64 bits
MAX_PARTS = 2**19  # of a partition
MAX_STEPS = 200  # from the whole table to a part of a part of a part ...


_VERSION = 1  # of the JSON form of rows


@dataclass(frozen=True)
class Condition:
    """Rows whose code is one of `codes`, or whose grid index lies in [low, high)."""

    column: str
    codes: tuple[int, ...] | None = None
    low: int = 0
    high: int = 0

    def check(self, domain: Domain) -> None:
        """Refuse a condition that the domain has no cells for."""
        column = domain[self.column]
        if self.codes is not None and all(0 <= code < column.size for code in self.codes):
            return
        if self.codes is None and isinstance(column, Numeric) and 0 <= self.low and self.high <= column.grid_size:
            return
        raise QuestionError(f"a condition on '{column.name}' names cells that the column does not have.")

    def to_json(self) -> Json:
        if self.codes is None:
            return {"column": self.column, "low": self.low, "high": self.high}
        return {"column": self.column, "codes": self.codes}


@dataclass(frozen=True)
class Split:
    """How one part is divided: by the cells of a column, or at grid indices of a numeric one.

    With thresholds t1 < t2 < ... child i holds the rows with i thresholds at or
    below their grid index; rows without a value form a last child where declared.
    """

    column: str
    thresholds: tuple[int, ...] | None = None

    def children(self, domain: Domain) -> int:
        """Return how many parts it makes."""
        column = domain[self.column]
        if self.thresholds is None:
            return column.size
        return len(self.thresholds) + 1 + column.missing

    def check(self, domain: Domain) -> None:
        """Refuse thresholds that do not rise, or lie outside the bounds of their column."""
        if self.thresholds is None:
            domain[self.column]
            return
        column = domain.numeric(self.column)
        if not self.thresholds or any(a >= b for a, b in itertools.pairwise(self.thresholds)):
            raise QuestionError(f"edges for '{column.name}' must rise by at least a step each.")
        if not 1 <= self.thresholds[0] <= self.thresholds[-1] < column.grid_size:
            raise QuestionError(
                f"a threshold for '{column.name}' lies outside its bounds {column.text(column.low)} to "
                f"{column.text(column.high)}, or at their end."
            )

    def to_json(self) -> Json:
        return {"column": self.column, "thresholds": self.thresholds}


@dataclass(frozen=True)
class Keep:
    """Keep some parts, and of these the rows that meet every condition."""

    parts: tuple[int, ...]
    conditions: tuple[Condition, ...] = ()

    def check(self, domain: Domain, parts: int) -> None:
        """Refuse to keep what is not there, or anything twice: parts would share rows."""
        numbers = np.unique(np.asarray(self.parts, dtype=np.intp))
        if len(numbers) < len(self.parts) or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < parts):
            raise QuestionError(f"take different parts by their numbers, 0 to {parts - 1}.")
        for condition in self.conditions:
            condition.check(domain)

    def to_json(self) -> Json:
        return {"keep": self.parts, "where": [condition.to_json() for condition in self.conditions]}


@dataclass(frozen=True)
class Divide:
    """Divide each part by its split; a part without one is dropped."""

    splits: PerPart[Split | None]

    def check(self, domain: Domain, parts: int) -> None:
        """Refuse splits that the domain has no cells for, and too many parts."""
        if len(self.splits) != parts:
            raise QuestionError(f"{len(self.splits)} splits were given for {parts} parts; give one for each.")
        for split in self.splits.values:
            if split is not None:
                split.check(domain)
        _check_parts(int(self.children(domain).sum()))

    def children(self, domain: Domain) -> Positions:
        """Return how many parts it makes of each."""
        return self.splits.map(lambda split: 0 if split is None else split.children(domain)).array()

    def to_json(self) -> Json:
        return {"divide": self.splits.to_json(lambda split: None if split is None else split.to_json())}


@dataclass(frozen=True)
class Scatter:
    """Divide each part into `parts` by coins: the part of a row is a public hash of its own cells.

    A public function of the row alone: one record more or less changes one part and
    leaves every other row where it is, even for someone who knows the seed. Rows with
    the same cells stay together.
    """

    parts: int
    seed: int

    def check(self, domain: Domain, parts: int) -> None:
        """Refuse a number of parts, or a seed, that coins are not made for."""
        if whole_of(self.parts, 1, 10_000) is None:
            raise QuestionError("scatter takes a whole number of parts, 1 to 10000.")
        if whole_of(self.seed, 0, 2**64 - 1) is None:
            raise QuestionError("random_state must be a whole number from 0 to 2**64 - 1.")
        _check_parts(self.parts * parts)

    def coefficients(self, domain: Domain) -> list[tuple[int, int]]:
        """Return a multiplier and a constant below COIN_PRIME for each column, and for two last rounds."""
        rng = np.random.default_rng(self.seed)
        drawn = rng.integers(1, COIN_PRIME, size=(len(domain.columns) + 2, 2))
        return [(int(factor), int(constant)) for factor, constant in drawn]

    def to_json(self) -> Json:
        return {"scatter": self.parts, "seed": str(self.seed)}


def _check_parts(parts: int) -> None:
    if parts > MAX_PARTS:
        raise QuestionError(f"this makes {parts} parts, at most {MAX_PARTS} are possible; split by fewer values.")


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
        """Return some of the parts, and of these the rows that meet every condition."""
        return Rows(len(parts), self, Keep(tuple(parts), conditions), self.depth + 1)

    def divide(self, splits: Sequence[Split | None], domain: Domain) -> Rows:
        """Return the parts that these parts are divided into, each by its split."""
        step = Divide(splits if isinstance(splits, PerPart) else PerPart.of(splits))
        return Rows(int(step.children(domain).sum()), self, step, self.depth + 1)

    def scatter(self, parts: int, seed: int) -> Rows:
        """Return the parts that these parts are divided into by coins."""
        return Rows(self.parts * parts, self, Scatter(parts, seed), self.depth + 1)

    @property
    def by_cells(self) -> frozenset[str]:
        """The columns by whose cells a step says which rows lie in which part."""
        if self.parent is None or self.step is None:
            return frozenset()
        if isinstance(self.step, Keep):
            used = {condition.column for condition in self.step.conditions if condition.codes is not None}
        elif isinstance(self.step, Divide):
            splits = self.step.splits.values
            used = {split.column for split in splits if split is not None and split.thresholds is None}
        else:
            used = set()  # coins are a hash of grid indices
        return self.parent.by_cells | used

    @property
    def by_coins(self) -> bool:
        """Whether a step says by coins which rows lie in which part."""
        return self.parent is not None and (isinstance(self.step, Scatter) or self.parent.by_coins)

    def to_json(self) -> Json:
        """Return the steps from the whole table, the first one first."""
        steps: list[Json] = []
        rows: Rows | None = self
        while rows is not None and rows.step is not None:
            steps.append(rows.step.to_json())
            rows = rows.parent
        return {"rows": steps[::-1], "version": _VERSION}

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same rows, in every process: a hash of the last step and of the rows before it."""
        if self.parent is None or self.step is None:
            return digest({"rows": [], "version": _VERSION})
        return digest({"rows": self.parent.fingerprint, "step": self.step.to_json(), "version": _VERSION})
