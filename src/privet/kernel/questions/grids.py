"""Counts along the grids of columns, part by part: what quantiles and thresholds are chosen from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Counts, Engine, GridCounts, GridQuery, index_count
from privet.kernel.rows import Rows

_POINTS = 2**25  # that an engine which does not hold the rows is asked about at once; docs/scale.md tells their memory


class Grid(NamedTuple):
    """What is counted along one column in one part: occupied indices, counts [index, class], rows without one."""

    at: Counts
    exact_counts: Counts
    exact_missing: Counts


def grids(
    engine: Engine, rows: Rows, columns: Sequence[str], target: str | None, domain: Domain
) -> Iterator[tuple[Grid, ...]]:
    """For each part, the grid of each column.

    An engine that holds the rows is asked about all parts at once. Any other one is asked about so many parts at a time
    that there cannot be more than `_POINTS` points, so that the domain bounds the memory that an answer takes, and not
    the rows.
    """
    points = sum(index_count(domain[name]) + 1 for name in columns)
    together = max(1, _POINTS // points)
    if engine.holds_rows or (domain.max_rows is not None and domain.max_rows * len(columns) <= _POINTS):
        together = rows.parts
    for first in range(0, rows.parts, max(1, together)):
        some = rows if together >= rows.parts else rows.keep(range(first, min(first + together, rows.parts)))
        exact = engine.exact_grid(GridQuery(some, tuple(columns), target))
        yield from zip(*(_by_part(grid, some.parts) for grid in exact), strict=True)


def _by_part(exact: GridCounts, parts: int) -> list[Grid]:
    bounds = np.searchsorted(exact.part, np.arange(parts + 1))
    split = []
    for part in range(parts):
        mine = slice(bounds[part], bounds[part + 1])
        index, exact_counts = exact.index[mine], exact.exact_counts[mine]
        missing = exact_counts[index < 0].sum(axis=0)
        split.append(Grid(index[index >= 0], exact_counts[index >= 0], missing))
    return split
