"""Which rows lie in which part: a chain of steps from the whole table.

Everything here is public: built from the domain and from released values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privet.errors import QuestionError
from privet.kernel.domain import Domain

COIN_PRIME = 2**31 - 1  # coins are hashes modulo this prime: products stay within 64 bits
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
