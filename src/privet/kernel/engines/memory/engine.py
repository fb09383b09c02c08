"""The in-memory engine: coded columns and numba loops; and what every engine remembers of its counts.

*Recall* is trusted, and switched off in the reference configuration: a level of a tree asks how large its nodes are,
then for a table of every attribute by class. A node is divided by one of these attributes, so its table already holds
the sizes and the classes of its children: only the tables of a level take a pass over the rows. Exact counts stay where
the rows are, in the engine.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.compiled import compiled
from privet.errors import DataError, did_you_mean
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Numeric, as_series
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import FIXED, LARGEST_SUM, Counts, index_count, numeric_columns
from privet.kernel.engines.memory import residuals
from privet.kernel.engines.memory.residuals import Margins, Scored
from privet.kernel.person import counted
from privet.kernel.rows import COIN_PRIME, Divide, Keep, Rows, Scatter

Nodes = NDArray[np.int32]
Columns = tuple[str, ...]

_DENSE = 2**20  # counts of a grid: with more of them, only points that occur are counted
_KEPT = 4  # node numberings kept for the next level, others are computed again from these; and answers that are kept
_LARGEST = 2**22  # counts that are kept in all


class Recall:
    """The last tables an engine counted, and what they say about parts of their parts.

    Without `shortcuts` nothing is kept, and every query is asked.
    """

    def __init__(self, domain: Domain, shortcuts: bool = True) -> None:
        self._domain, self._shortcuts = domain, shortcuts
        self._lock = threading.Lock()
        self._tables: OrderedDict[Rows, dict[Columns, Counts]] = OrderedDict()

    def counts(self, query: contract.CountQuery, ask: Callable[[contract.CountQuery], list[Counts]]) -> list[Counts]:
        """The answer to a query: made of what is known about the rows above, or asked for."""
        if not self._shortcuts:
            return ask(query)
        with self._lock:
            tables = [self._below(query.rows, group) for group in query.groups]
        recalled = [table for table in tables if table is not None]
        if len(recalled) == len(tables):
            return recalled
        exact = ask(query)
        self._keep(query, exact)
        return exact

    def forget(self) -> None:
        with self._lock:
            self._tables.clear()

    def _keep(self, query: contract.CountQuery, exact: list[Counts]) -> None:
        answers = zip(query.groups, exact, strict=True)
        tables = {group: table for group, table in answers if group and not repeats(group)}
        if not tables or sum(table.size for table in exact) > _LARGEST:
            return
        for table in tables.values():
            table.setflags(write=False)  # whoever has an answer cannot change what later ones are made of
        with self._lock:
            self._tables[query.rows] = {**self._tables.pop(query.rows, {}), **tables}
            while len(self._tables) > _KEPT or self._size() > _LARGEST:
                self._tables.popitem(last=False)

    def _size(self) -> int:
        return sum(table.size for tables in self._tables.values() for table in tables.values())

    def _known(self, rows: Rows, columns: Columns) -> Counts | None:
        """A table over these columns: one that was counted, without the columns too many, or one from above."""
        for names, table in self._tables.get(rows, {}).items():
            if set(columns) <= set(names):
                return margin(table, names, columns)
        return self._below(rows, columns)

    def _below(self, rows: Rows, columns: Columns) -> Counts | None:
        """A table over these columns, from one of the rows above."""
        above, step = rows.parent, rows.step
        if above is None or len(columns) > self._widest() or repeats(columns):
            return None
        if isinstance(step, Keep) and not step.conditions:
            table = self._known(above, columns)
            return None if table is None else table[list(step.parts)]
        if not isinstance(step, Divide):
            return None
        counts, groups = step.children(self._domain), list(step.splits.groups())
        exact = np.zeros((rows.parts, *(self._domain[name].size for name in columns)), dtype=np.int64)
        first = np.cumsum(counts) - counts  # of the children of each part
        for split, parts in groups:
            if split is None:
                continue
            if split.thresholds is not None or split.column in columns:
                return None
            table = self._known(above, (split.column, *columns))
            if table is None:
                return None
            for child in range(table.shape[1]):
                exact[first[parts] + child] = table[parts, child]
        return exact

    def _widest(self) -> int:
        return max((len(names) for tables in self._tables.values() for names in tables), default=-1)


def repeats(columns: Columns) -> bool:
    """Whether a column stands there twice: a table over it has an axis for each, and is no margin of another."""
    return len(set(columns)) < len(columns)


def margin(table: Counts, names: Columns, columns: Columns) -> Counts:
    """The table over some columns of another, which has an axis for its parts and one for each of its columns."""
    if names == columns:
        return table
    summed = table.sum(axis=tuple(1 + at for at, name in enumerate(names) if name not in columns))
    left = [name for name in names if name in columns]
    return np.asarray(summed.transpose(0, *(1 + left.index(name) for name in columns)))


class MemoryEngine:
    """Rows as small integers: one code per column, one grid index per numeric column, an optional weight per row.

    `shortcuts`: see `Engine`.
    """

    name = "memory"
    closed = False
    holds_rows = True
    version = FIXED

    def __init__(
        self,
        domain: Domain,
        codes: Mapping[str, NDArray[Any]],
        grids: Mapping[str, NDArray[Any]],
        weights: NDArray[np.int64] | None = None,
        *,
        shortcuts: bool = True,
    ) -> None:
        self._domain, self._shortcuts = domain, shortcuts
        self._position = {name: position for position, name in enumerate(domain.names)}
        self._sizes = tuple(column.size for column in domain)
        self._codes = np.array([codes[name] for name in domain.names], dtype=_narrowest(max(self._sizes)))
        self._grid_position = {column.name: position for position, column in enumerate(numeric_columns(domain))}
        shape = len(self._grid_position), self._codes.shape[1]  # said, for there may be no numeric column
        self._grids = np.array([grids[name] for name in self._grid_position], dtype=np.int32).reshape(shape)
        self._weights = np.empty(0, dtype=np.int64) if weights is None else weights
        self._nodes: OrderedDict[Rows, Nodes]
        self._margins: tuple[AdditiveModel, Margins] | None
        self._forget()

    @classmethod
    def merged(cls, domain: Domain, answer: Mapping[str, NDArray[Any]], *, shortcuts: bool = True) -> MemoryEngine:
        """From the answer to `sql.snapshot`: every row that occurs, with how often it does."""
        codes = {column.name: answer[f"c{i}"] for i, column in enumerate(domain)}
        grids = {column.name: answer[f"g{i}"] for i, column in enumerate(domain) if isinstance(column, Numeric)}
        return cls(domain, codes, grids, answer["n"].astype(np.int64), shortcuts=shortcuts)

    @classmethod
    def from_frame(cls, frame: Any, domain: Domain, *, shortcuts: bool = True) -> MemoryEngine:
        """Code a pandas, polars or Arrow frame; rows that do not fit the domain are left out."""
        names = list(getattr(frame, "column_names", frame.columns))  # an Arrow table's columns are its data
        for name in domain.stored_names:
            if names.count(name) != 1:
                problem = "no column" if name not in names else "several columns"
                meant = "" if name in names else did_you_mean(name, map(str, names))
                raise DataError(f"the table has {problem} '{name}', which the domain declares{meant}; check both.")
        codes: dict[str, NDArray[Any]] = {}
        grids: dict[str, NDArray[Any]] = {}
        for column in domain:
            values = as_series(frame[column.name])
            if getattr(values.dtype, "kind", "") in ("M", "m") and not isinstance(column, Date):
                raise DataError(
                    f"column '{column.name}' holds times; privet reads texts, numbers and booleans: cast it, or "
                    'declare it with kind = "date".'
                )
            if isinstance(column, Numeric):
                grid = column.to_grid(values)
                coded = column.bin_of(grid)
                grids[column.name] = grid.astype(np.int32)
            else:
                coded = column.encode(values)
            codes[column.name] = coded.astype(np.int16 if column.size < 2**15 else np.int32)  # all columns at once
        counts = np.ones(len(codes[domain.names[0]]), dtype=np.bool_)
        for code in codes.values():
            counts &= code >= 0
        if domain.person is not None:
            fitting = [code[counts] for code in (*codes.values(), *grids.values())]
            counts[counts] = counted(as_series(frame[domain.person])[counts], fitting, domain.rows_per_person)
        if not counts.all():
            codes, grids = ({name: of[counts] for name, of in each.items()} for each in (codes, grids))
        return cls(domain, codes, grids, shortcuts=shortcuts)

    def close(self) -> None:
        self.closed = True
        self._nodes.clear()
        self._recall.forget()
        self._margins = None
        # copies: a view of nothing would keep all rows in memory
        self._codes, self._grids = self._codes[:, :0].copy(), self._grids[:, :0].copy()

    # -- the protocol -----------------------------------------------------------------------

    def exact_counts(self, query: contract.CountQuery) -> list[Counts]:
        return self._recall.counts(query, self._counts)

    def _counts(self, query: contract.CountQuery) -> list[Counts]:
        nodes, parts = self._assign(query.rows), query.rows.parts
        last = {group[-1] for group in query.groups if len(group) == 2}
        level = len(last) == 1 and len(query.groups) > 1 and all(len(group) == 2 for group in query.groups)
        if level and self._shortcuts:
            return self._level(nodes, parts, [group[0] for group in query.groups], last.pop())
        answers = []
        for group in query.groups:
            shape = [self._domain[name].size for name in group]
            columns = np.array([self._position[name] for name in group], dtype=np.int64)
            cells = math.prod(shape)
            exact = np.zeros((parts + 1) * cells, dtype=np.int64)
            _count_cells(self._codes, columns, np.array(shape, dtype=np.int64), nodes, parts, self._weights, exact)
            answers.append(exact[: parts * cells].reshape(parts, *shape))
        return answers

    def _level(self, nodes: Nodes, parts: int, attributes: list[str], target: str) -> list[Counts]:
        """All (attribute, class) tables of all parts in one pass over the rows."""
        classes = self._domain[target].size
        sizes = [self._domain[name].size * classes for name in attributes]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        stride = int(offsets[-1])
        columns = np.array([self._position[name] for name in attributes], dtype=np.int64)
        exact = np.zeros(parts * stride, dtype=np.int64)
        label = self._codes[self._position[target]]
        _count_level(self._codes, columns, offsets, label, classes, nodes, self._weights, exact)
        table = exact.reshape(parts, stride)
        ends = itertools.pairwise(offsets)
        return [table[:, start:end].reshape(parts, (end - start) // classes, classes) for start, end in ends]

    def exact_grid(self, query: contract.GridQuery) -> list[contract.GridCounts]:
        nodes, parts = self._assign(query.rows), query.rows.parts
        classes = 1 if query.target is None else self._domain[query.target].size
        label = self._codes[self._position[query.target or self._domain.names[0]]]
        answers = []
        for name in query.columns:
            points = index_count(self._domain[name]) + 1
            grid = self._grid_position.get(name)
            index = self._codes[self._position[name]] if grid is None else self._grids[grid]
            if parts * points * classes <= _DENSE:
                exact = np.zeros((parts * points, classes), dtype=np.int64)
                _count_points(nodes, index, points, label, classes, self._weights, exact)
                distinct = np.flatnonzero(exact.any(axis=1))
                exact = exact[distinct]
            else:
                inside = np.flatnonzero(nodes >= 0)
                pairs = nodes[inside].astype(np.int64) * points + index[inside] + 1
                distinct, position = np.unique(pairs, return_inverse=True)
                exact = np.zeros((len(distinct), classes), dtype=np.int64)
                weights = self._weights[inside] if self._weights.size else 1
                own: Any = label[inside] if classes > 1 else 0
                np.add.at(exact, (position, own), weights)
            answers.append(contract.GridCounts(distinct // points, distinct % points - 1, exact))
        return answers

    def exact_sums(self, query: contract.SumQuery) -> tuple[Counts, Counts]:
        exact = np.zeros((2, query.rows.parts), dtype=np.int64)
        grid = self._grids[self._grid_position[query.column]]
        _sum_grid(grid, self._assign(query.rows), self._weights, exact)
        return exact[0], exact[1]

    def exact_residuals(self, query: contract.ResidualQuery) -> list[contract.Residuals]:
        parts, classes = query.rows.parts, len(query.caps)
        width = classes if classes == 2 else 2 * classes
        tables = tuple(tuple(self._position[name] for name in group) for group in query.tables)
        inner = max(parts, 1) * width  # of no parts, the empty slice of one
        wanted = residuals.cover(tables, self._sizes, inner, self._shortcuts)
        with self._margins_lock:  # until the margins have been read: the next model changes them in place
            exact = residuals.sum_residuals(self._scored(query), query.caps, wanted)
        answers = []
        for start, end in itertools.pairwise(wanted.starts):
            sums = exact[start:end].reshape(max(parts, 1), width, -1)[:parts].transpose(0, 2, 1)
            answers.append(contract.Residuals(sums[..., :classes], sums[..., classes:] if classes > 2 else None))
        return answers

    def exact_correct(self, query: contract.CorrectQuery) -> Counts:
        exact = np.zeros(query.rows.parts, dtype=np.int64)
        with self._margins_lock:
            residuals.count_correct(tuple(self._scored(query)), exact)
        return exact

    # -- cached work ------------------------------------------------------------------------

    def _assign(self, rows: Rows) -> Nodes:
        """The part of each row, -1 for none; one step from the nearest numbering that is kept."""
        with self._lock:
            if rows in self._nodes:
                self._nodes.move_to_end(rows)
                return self._nodes[rows]
            if rows.parent is None:
                nodes = np.zeros(self._codes.shape[1], dtype=np.int32)
            elif isinstance(rows.step, Keep):
                nodes = self._keep(self._assign(rows.parent), rows.parent.parts, rows.step)
            elif isinstance(rows.step, Scatter):
                nodes = self._scatter(self._assign(rows.parent), rows.step)
            else:
                assert isinstance(rows.step, Divide)
                nodes = self._divide(self._assign(rows.parent), rows.step)
            if self._shortcuts:
                self._nodes[rows] = nodes
            while len(self._nodes) > _KEPT:
                self._nodes.popitem(last=False)
            return nodes

    def _keep(self, nodes: Nodes, parts: int, step: Keep) -> Nodes:
        number = np.full(parts + 1, -1, dtype=np.int32)  # the last entry serves -1
        number[list(step.parts)] = np.arange(len(step.parts))
        kept = number[nodes]
        for condition in step.conditions:
            if condition.codes is None:
                grid = self._grids[self._grid_position[condition.column]]
                kept[(grid < condition.low) | (grid >= condition.high)] = -1
            else:
                allowed = np.zeros(self._domain[condition.column].size, dtype=np.bool_)
                allowed[list(condition.codes)] = True
                kept[~allowed[self._codes[self._position[condition.column]]]] = -1
        return kept

    def _divide(self, nodes: Nodes, step: Divide) -> Nodes:
        children = step.children(self._domain)
        # of each part: the code column that divides it, or the grid column and where its thresholds start and end
        column, grid, start, end = np.full((4, len(children)), -1, dtype=np.int64)
        thresholds: list[int] = []
        for split, parts in step.splits.groups():
            if split is None:
                continue
            if split.thresholds is None:
                column[parts] = self._position[split.column]
            else:
                grid[parts], start[parts] = self._grid_position[split.column], len(thresholds)
                thresholds += split.thresholds
                end[parts] = len(thresholds)
        splits = column, grid, start, end, np.cumsum(children) - children
        divided = np.empty_like(nodes)
        _divide_rows(self._codes, self._grids, nodes, splits, np.array(thresholds, dtype=np.int64), divided)
        return divided

    def _scatter(self, nodes: Nodes, step: Scatter) -> Nodes:
        *columns, square, last = step.coefficients(self._domain)
        hashed = np.zeros(len(nodes), dtype=np.int64)
        for name, (factor, constant) in zip(self._domain.names, columns, strict=True):
            grid = self._grid_position.get(name)
            cell = self._codes[self._position[name]] if grid is None else self._grids[grid]
            hashed += ((cell.astype(np.int64) + 1) * factor + constant) % COIN_PRIME
        hashed %= COIN_PRIME
        for factor, constant in (square, last):
            hashed = (hashed * hashed % COIN_PRIME * factor + constant) % COIN_PRIME
        coin = hashed * step.parts // COIN_PRIME
        return np.where(nodes >= 0, nodes * step.parts + coin, -1).astype(np.int32)

    def resampled(self, seed: int) -> MemoryEngine:
        """As many rows drawn with replacement. A row may come often: for public tables alone (erratum E-1)."""
        engine = copy(self)
        drawn = np.random.default_rng(seed).integers(0, self._codes.shape[1], self._codes.shape[1])
        # not [:, drawn], which would lay out one row after the other
        engine._codes, engine._grids = self._codes.take(drawn, axis=1), self._grids.take(drawn, axis=1)
        engine._forget()
        return engine

    def in_cells(self, cells: contract.Cells) -> MemoryEngine:
        engine, domain = copy(self), cells.domain
        engine._domain, engine._sizes = domain, tuple(column.size for column in domain)
        engine._position = {name: position for position, name in enumerate(domain.names)}
        numeric = [column.name for column in numeric_columns(domain)]
        engine._grid_position = {name: self._grid_position[cells.source(name)] for name in numeric}
        codes = dict(zip(self._position, self._codes, strict=True))
        for column in cells.recut(self._domain):
            codes[column.name] = column.bin_of(self._grids[engine._grid_position[column.name]])
        engine._codes = np.array([codes[name] for name in domain.names], dtype=_narrowest(max(engine._sizes)))
        engine._forget()
        return engine

    def _forget(self) -> None:
        """Begin with empty caches, and a lock for each of the first two."""
        self._lock, self._margins_lock = threading.RLock(), threading.RLock()
        self._nodes, self._margins = OrderedDict(), None
        self._recall = Recall(self._domain, self._shortcuts)

    def _scored(self, query: contract.ResidualQuery | contract.CorrectQuery) -> Scored:
        label, nodes = self._codes[self._position[query.target]], self._assign(query.rows)
        return Scored(self._codes, label, nodes, self._weights, self._score(query.model))

    def _score(self, model: AdditiveModel) -> Margins:
        """Margins of a released model, continued from the last one where it only added terms."""
        last, self._margins = self._margins, None  # what is interrupted half way is of no use
        if last is not None and self._shortcuts and _continues(model, last[0]):
            margins, new = last[1], model.terms[len(last[0].terms) :]
        else:
            margins, new = residuals.constant_margins(model.intercept, self._codes.shape[1]), model.terms
        for columns, table in new:
            residuals.add_term(self._codes, [self._position[name] for name in columns], table, margins)
        self._margins = (model, margins)
        return margins


def _narrowest(cells: int) -> type[np.unsignedinteger[Any]]:
    """The type that holds codes of so many cells."""
    return np.uint8 if cells <= 2**8 else np.uint16 if cells <= 2**16 else np.uint32


def _continues(model: AdditiveModel, last: AdditiveModel) -> bool:
    return model is last or (
        model.intercept == last.intercept
        and len(model.terms) >= len(last.terms)
        and all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(model.terms, last.terms, strict=False))
    )


@compiled
def _count_level(
    codes: Any, columns: Any, offsets: Any, target: Any, classes: int, nodes: Any, weights: Any, exact: Any
) -> None:
    # unsigned indices: with signed ones every access asks whether it counts from the end
    stride, width = np.uint64(offsets[-1]), np.uint64(classes)
    block = 4096
    base = np.empty(block, dtype=np.uint64)
    own = np.empty(block, dtype=np.uint64)  # the rows of the block that lie in a part
    for start in range(0, len(target), block):
        size = min(block, len(target) - start)
        inside = 0
        for i in range(size):
            node = nodes[start + i]
            base[inside] = np.uint64(node) * stride + np.uint64(target[start + i])
            own[inside] = np.uint64(i)
            inside += node >= 0
        for position in range(len(columns)):
            column = codes[columns[position], start : start + size]
            offset = np.uint64(offsets[position])
            if len(weights):
                for i in range(inside):
                    row = own[i]
                    exact[base[i] + offset + np.uint64(column[row]) * width] += weights[np.uint64(start) + row]
            elif inside == size:
                for i in range(size):
                    exact[base[i] + offset + np.uint64(column[i]) * width] += 1
            else:
                for i in range(inside):
                    exact[base[i] + offset + np.uint64(column[own[i]]) * width] += 1


@compiled
def _count_cells(codes: Any, columns: Any, shape: Any, nodes: Any, parts: int, weights: Any, exact: Any) -> None:
    for row in range(len(nodes)):
        key = nodes[row] if nodes[row] >= 0 else parts
        for position in range(len(columns)):
            key = key * shape[position] + codes[columns[position], row]
        exact[key] += weights[row] if len(weights) else 1


@compiled
def _count_points(nodes: Any, index: Any, points: int, label: Any, classes: int, weights: Any, exact: Any) -> None:
    for row in range(len(nodes)):
        if nodes[row] >= 0:
            point = np.int64(nodes[row]) * points + np.int64(index[row]) + 1
            exact[point, label[row] if classes > 1 else 0] += weights[row] if len(weights) else 1


@compiled
def _sum_grid(grid: Any, nodes: Any, weights: Any, exact: Any) -> None:
    """Sums of numbers at or above 0, which stop at the largest: 2^32 rows at the end of a fine grid reach it."""
    for row in range(len(nodes)):
        if nodes[row] >= 0 and grid[row] >= 0:
            weight = weights[row] if len(weights) else 1
            index, node = np.int64(grid[row]), nodes[row]
            exact[0, node] += weight
            room = LARGEST_SUM - exact[1, node]  # a product beyond 64 bits would be small again
            enough = index <= room if weight == 1 else index == 0 or weight <= room // index
            exact[1, node] = exact[1, node] + weight * index if enough else LARGEST_SUM


@compiled
def _divide_rows(codes: Any, grids: Any, nodes: Any, splits: Any, thresholds: Any, divided: Any) -> None:
    column, grid, start, end, first = splits
    for row in range(len(nodes)):
        node = nodes[row]
        divided[row] = -1
        if node < 0:
            continue
        if column[node] >= 0:
            divided[row] = first[node] + codes[column[node], row]
        elif grid[node] >= 0:
            index = grids[grid[node], row]
            cuts = end[node] - start[node]
            child = cuts + 1  # no value: the last child
            if index >= 0:
                child = 0
                while child < cuts and thresholds[start[node] + child] <= index:
                    child += 1
            divided[row] = first[node] + child
