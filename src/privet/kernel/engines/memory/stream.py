"""Rows in batches: coded rows go through the in-memory kernel, and what each of them says is added up.

No answer needs two rows at once, so the whole table is never in memory; a batch is. For a table in this
process that is faster than SQL, which groups rows by a hash of their cells where the kernel counts in arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import FIXED, LARGEST_SUM, Counts, numeric_columns
from privet.kernel.engines.memory.engine import MemoryEngine, Recall
from privet.kernel.rows import Divide, Keep, Rows

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

    def exact_counts(self, query: contract.CountQuery) -> list[Counts]:
        return self._recall.counts(query, self._counts)

    def _counts(self, query: contract.CountQuery) -> list[Counts]:
        used = {name for group in query.groups for name in group}
        shapes = [(query.rows.parts, *(self._domain[name].size for name in group)) for group in query.groups]
        exact = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        for engine in self._engines(query.rows, used):
            for total, part in zip(exact, engine.exact_counts(query), strict=True):
                total += part
        return exact

    def exact_grid(self, query: contract.GridQuery) -> list[contract.GridCounts]:
        used = {*query.columns, *([] if query.target is None else [query.target])}
        exact = self._nothing().exact_grid(query)
        later: list[list[contract.GridCounts]] = []
        for engine in self._engines(query.rows, used):
            later.append(engine.exact_grid(query))
            # merged when they are as many points as before: every point is merged a few times, and no more are kept
            if sum(len(grid.index) for grids in later for grid in grids) > sum(len(grid.index) for grid in exact):
                exact, later = _merged([exact, *later]), []
        return _merged([exact, *later])

    def exact_sums(self, query: contract.SumQuery) -> tuple[Counts, Counts]:
        exact = np.zeros((2, query.rows.parts), dtype=np.int64)
        for engine in self._engines(query.rows, {query.column}):
            count, total = engine.exact_sums(query)
            exact[0] += count
            exact[1] += np.minimum(total, LARGEST_SUM - exact[1])
        return exact[0], exact[1]

    def exact_residuals(self, query: contract.ResidualQuery) -> list[contract.Residuals]:
        used = {query.target, *(name for table in query.tables for name in table), *_looked_at(query.model.terms)}
        exact = self._nothing().exact_residuals(query)
        for engine in self._engines(query.rows, used):
            exact = [_sum(total, part) for total, part in zip(exact, engine.exact_residuals(query), strict=True)]
        return exact

    def exact_correct(self, query: contract.CorrectQuery) -> Counts:
        exact = np.zeros(query.rows.parts, dtype=np.int64)
        for engine in self._engines(query.rows, {query.target, *_looked_at(query.model.terms)}):
            exact += engine.exact_correct(query)
        return exact

    def in_cells(self, cells: contract.Cells) -> StreamEngine:
        position = {name: at for at, name in enumerate(cells.domain.names)}
        grids = {f"g{position[copy]}": f"g{position[source]}" for copy, source in cells.copies.items()}
        recut = {f"c{position[column.name]}": column for column in cells.recut(self._domain)}

        def stored(name: str) -> str:
            """The coded column that a column is made of."""
            grid = f"g{name[1:]}" if name in recut else name
            return grids.get(grid, grid)

        def batches(columns: Sequence[str]) -> Iterator[Batch]:
            for batch in self._batches(list(dict.fromkeys(map(stored, columns)))):
                yield {
                    name: recut[name].bin_of(batch[stored(name)]) if name in recut else batch[stored(name)]
                    for name in columns
                }

        return StreamEngine(self.name, cells.domain, batches, lambda: None, shortcuts=self._shortcuts)

    def close(self) -> None:
        self.closed = True
        self._recall.forget()
        self._close()

    def _engines(self, rows: Rows, used: set[str]) -> Iterator[MemoryEngine]:
        """An engine over each batch; columns that nobody asks about are read as their first cell."""
        wanted = used | _divided_by(rows, self._domain)
        numeric = [column.name for column in numeric_columns(self._domain)]
        columns = [f"c{at}" for name, at in self._position.items() if name in wanted]
        columns += [f"g{self._position[name]}" for name in numeric if name in wanted]
        for batch in self._batches(columns or ["c0"]):
            nothing = np.zeros(len(next(iter(batch.values()))), dtype=np.int8)
            codes = {name: batch.get(f"c{at}", nothing) for name, at in self._position.items()}
            grids = {name: batch.get(f"g{self._position[name]}", nothing) for name in numeric}
            yield MemoryEngine(self._domain, codes, grids, shortcuts=self._shortcuts)

    def _nothing(self) -> MemoryEngine:
        nothing = dict.fromkeys(self._domain.names, np.empty(0, dtype=np.int32))
        return MemoryEngine(self._domain, nothing, nothing, shortcuts=self._shortcuts)


def _divided_by(rows: Rows, domain: Domain) -> set[str]:
    """The columns that say in which part a row lies."""
    if rows.parent is None or rows.step is None:
        return set()
    if isinstance(rows.step, Keep):
        columns = {condition.column for condition in rows.step.conditions}
    elif isinstance(rows.step, Divide):
        columns = {split.column for split in rows.step.splits if split is not None}
    else:
        columns = set(domain.names)  # coins are a hash of all cells
    return columns | _divided_by(rows.parent, domain)


def _looked_at(terms: Sequence[tuple[tuple[str, ...], Any]]) -> set[str]:
    return {name for columns, _ in terms for name in columns}


def _merged(answers: Sequence[Sequence[contract.GridCounts]]) -> list[contract.GridCounts]:
    """The occupied points of several batches, each once: for each column."""
    return [_merged_column(grids) for grids in zip(*answers, strict=True)]


def _merged_column(grids: Sequence[contract.GridCounts]) -> contract.GridCounts:
    part = np.concatenate([grid.part for grid in grids])
    index = np.concatenate([grid.index for grid in grids])
    exact = np.concatenate([grid.exact_counts for grid in grids])
    width = int(index.max(initial=0)) + 2  # indices begin at -1
    points, position = np.unique(part.astype(np.int64) * width + index + 1, return_inverse=True)
    total = np.zeros((len(points), exact.shape[1]), dtype=np.int64)
    np.add.at(total, position, exact)
    return contract.GridCounts(points // width, points % width - 1, total)


def _sum(left: contract.Residuals, right: contract.Residuals) -> contract.Residuals:
    others = None if left.exact_others is None or right.exact_others is None else left.exact_others + right.exact_others
    return contract.Residuals(left.exact_own + right.exact_own, others)
