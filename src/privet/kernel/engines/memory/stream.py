"""Rows in passing: batches of coded rows go through the in-memory kernel, and what each of them says is added up.

No answer needs two rows at once, so the whole table is never in memory; a batch is. For a table in this
process that is faster than SQL, which groups rows by a hash of their cells where the kernel counts in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    FIXED,
    LARGEST_SUM,
    CorrectQuery,
    CountQuery,
    Counts,
    GridCounts,
    GridQuery,
    ResidualQuery,
    Residuals,
    SumQuery,
)
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.shortcuts import Recall
from privet.kernel.rows import Divide, Keep, Rows, Scatter

Batch = Mapping[str, NDArray[Any]]  # arrays named as everywhere after coding: c3, g3
Batches = Callable[[Sequence[str]], Iterator[Batch]]  # of these columns

Q = TypeVar("Q")
A = TypeVar("A")


class StreamEngine:
    """Answers queries over batches of coded rows, read anew for each query. `shortcuts`: see `Engine`."""

    closed = False
    holds_rows = False
    version = FIXED

    def __init__(
        self, name: str, domain: Domain, batches: Batches, close: Callable[[], None], *, shortcuts: bool = True
    ) -> None:
        self.name, self._domain, self._batches, self._close = name, domain, batches, close
        self._shortcuts = shortcuts
        self._position = {column: position for position, column in enumerate(domain.names)}
        self._recall = Recall(domain, shortcuts)

    def exact_counts(self, query: CountQuery) -> list[Counts]:
        return self._recall.counts(query, self._counts)

    def _counts(self, query: CountQuery) -> list[Counts]:
        used = {name for group in query.groups for name in group}
        shapes = [(query.rows.parts, *(self._domain[name].size for name in group)) for group in query.groups]
        exact = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        for engine in self._engines(query.rows, used):
            for total, part in zip(exact, engine.exact_counts(query), strict=True):
                total += part
        return exact

    def exact_grid(self, query: GridQuery) -> list[GridCounts]:
        used = {*query.columns, *([] if query.target is None else [query.target])}
        exact = self._nothing().exact_grid(query)
        later: list[list[GridCounts]] = []
        for engine in self._engines(query.rows, used):
            later.append(engine.exact_grid(query))
            # merged when they are as many points as before: every point is merged a few times, and no more are kept
            if sum(len(grid.index) for grids in later for grid in grids) > sum(len(grid.index) for grid in exact):
                exact, later = _merged([exact, *later]), []
        return _merged([exact, *later])

    def exact_sums(self, query: SumQuery) -> tuple[Counts, Counts]:
        exact = np.zeros((2, query.rows.parts), dtype=np.int64)
        for engine in self._engines(query.rows, {query.column}):
            count, total = engine.exact_sums(query)
            exact[0] += count
            exact[1] += np.minimum(total, LARGEST_SUM - exact[1])
        return exact[0], exact[1]

    def exact_residuals(self, query: ResidualQuery) -> list[Residuals]:
        used = {query.target, *(name for table in query.tables for name in table), *_looked_at(query.model.terms)}
        exact = self._nothing().exact_residuals(query)
        for engine in self._engines(query.rows, used):
            exact = [_sum(total, part) for total, part in zip(exact, engine.exact_residuals(query), strict=True)]
        return exact

    def exact_correct(self, query: CorrectQuery) -> Counts:
        exact = np.zeros(query.rows.parts, dtype=np.int64)
        for engine in self._engines(query.rows, {query.target, *_looked_at(query.model.terms)}):
            exact += engine.exact_correct(query)
        return exact

    def close(self) -> None:
        self.closed = True
        self._recall.forget()
        self._close()

    def _engines(self, rows: Rows, used: set[str]) -> Iterator[MemoryEngine]:
        """An engine over each batch; columns that nobody asks about are read as their first cell."""
        wanted = used | _divided_by(rows, self._domain)
        columns = [f"c{self._position[name]}" for name in self._domain.names if name in wanted]
        columns += [
            f"g{self._position[name]}"
            for name in self._domain.names
            if name in wanted and isinstance(self._domain[name], Numeric)
        ]
        for batch in self._batches(columns or ["c0"]):
            size = len(next(iter(batch.values())))
            nothing = np.zeros(size, dtype=np.int8)
            codes = {name: batch.get(f"c{at}", nothing) for name, at in self._position.items()}
            grids = {
                name: batch.get(f"g{at}", nothing)
                for name, at in self._position.items()
                if isinstance(self._domain[name], Numeric)
            }
            yield MemoryEngine(self._domain, codes, grids, shortcuts=self._shortcuts)

    def _nothing(self) -> MemoryEngine:
        empty = np.empty(0, dtype=np.int32)
        nothing = dict.fromkeys(self._domain.names, empty)
        return MemoryEngine(self._domain, nothing, nothing, shortcuts=self._shortcuts)


def _divided_by(rows: Rows, domain: Domain) -> set[str]:
    """The columns that say in which part a row lies."""
    found: set[str] = set()
    at: Rows | None = rows
    while at is not None and at.step is not None:
        if isinstance(at.step, Keep):
            found |= {condition.column for condition in at.step.conditions}
        elif isinstance(at.step, Divide):
            found |= {split.column for split in at.step.splits if split is not None}
        elif isinstance(at.step, Scatter):
            found |= set(domain.names)  # coins are a hash of all cells
        at = at.parent
    return found


def _looked_at(terms: Sequence[tuple[tuple[str, ...], Any]]) -> set[str]:
    return {name for columns, _ in terms for name in columns}


def _merged(answers: Sequence[Sequence[GridCounts]]) -> list[GridCounts]:
    """The occupied points of several batches, each once: for each column."""
    return [_merged_column(grids) for grids in zip(*answers, strict=True)]


def _merged_column(grids: Sequence[GridCounts]) -> GridCounts:
    part = np.concatenate([grid.part for grid in grids])
    index = np.concatenate([grid.index for grid in grids])
    exact = np.concatenate([grid.exact_counts for grid in grids])
    width = int(index.max(initial=0)) + 2  # indices begin at -1
    points, position = np.unique(part.astype(np.int64) * width + index + 1, return_inverse=True)
    total = np.zeros((len(points), exact.shape[1]), dtype=np.int64)
    np.add.at(total, position, exact)
    return GridCounts(points // width, points % width - 1, total)


def _sum(left: Residuals, right: Residuals) -> Residuals:
    others = None if left.exact_others is None or right.exact_others is None else left.exact_others + right.exact_others
    return Residuals(left.exact_own + right.exact_own, others)
