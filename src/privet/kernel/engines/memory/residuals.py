"""Sums of residuals for many tables in one pass over the rows (the arithmetic: `query.ResidualQuery`).

Tables of one or two columns share histograms: a few larger groups of columns cover all of
them, a row adds to one cell of each group, and a table is a sum over the cells of a group.
A table of more columns is a group of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.compiled import compiled
from privet.kernel.additive import EXP_BITS, RESIDUAL_GRID, exp_table
from privet.kernel.engines.contract import Counts

Margins = NDArray[np.int32]  # [class - 1, row]: the logit of each class but the first, minus the logit of the first

_LARGEST_GROUP = 2**14  # entries: 64 kB, so that a histogram stays near the processor
_BLOCK = 2**13  # rows whose residuals are at hand while all groups take them
_STRETCH = 2**20  # rows whose residuals, at most RESIDUAL_GRID each, cannot overflow 32 bits
_REACH = 2**EXP_BITS  # a class so far behind weighs nothing
_EXP = exp_table()


def _errors() -> NDArray[np.int16]:
    """Residuals with two classes, uncut: [by how much the other class leads, from -_REACH to _REACH]."""
    behind = np.append(_EXP, 0)
    leads, trails = RESIDUAL_GRID * _EXP[0] // (_EXP[0] + behind), RESIDUAL_GRID * behind // (_EXP[0] + behind)
    return np.concatenate([trails[:0:-1], leads]).astype(np.int16)


_ERRORS = _errors()


# -- margins of a model ---------------------------------------------------------------------------


def constant_margins(intercept: tuple[int, ...], rows: int) -> Margins:
    return np.repeat(_margins(np.array([intercept])), rows, axis=1)


def add_term(codes: NDArray[Any], columns: Sequence[int], table: NDArray[np.int32], margins: Margins) -> None:
    """Add a term of a model to the margins of every row."""
    strides = [math.prod(table.shape[at + 1 : -1]) for at in range(len(columns))]
    added = _margins(table.reshape(-1, table.shape[-1]))
    wide = _wide(added.shape[1])
    cell = np.empty(_BLOCK, dtype=wide)
    _add_cells(codes, np.array(columns, dtype=np.int64), np.array(strides, dtype=wide), cell, added, margins)


def _wide(cells: int) -> np.dtype[Any]:
    """Return the type of numbers of so many cells. It is the same for most tables, so that loops are compiled once."""
    return np.promote_types(np.uint16, np.min_scalar_type(cells))


def _margins(logits: NDArray[Any]) -> Margins:
    """[class - 1, cell] of [cell, class]."""
    return np.ascontiguousarray((logits[:, 1:] - logits[:, :1]).T, dtype=np.int32)


@compiled
def _add_cells(codes: Any, columns: Any, strides: Any, cell: Any, table: Any, margins: Any) -> None:
    for start in range(0, margins.shape[1], _BLOCK):
        stop = min(start + _BLOCK, margins.shape[1])
        for i in range(_BLOCK):
            cell[i] = 0
        _add_codes(codes, columns, strides, start, stop, cell)
        for c in range(len(table)):
            values, sums = table[c], margins[c, start:stop]
            for i in range(len(sums)):
                sums[i] += values[cell[i]]


@compiled
def _add_codes(codes: Any, columns: Any, strides: Any, start: int, stop: int, key: Any) -> None:
    for position in range(len(columns)):
        column, stride = codes[columns[position], start:stop], strides[position]
        for i in range(len(column)):
            key[i] += column[i] * stride


@compiled
def count_correct(rows: Any, exact: Any) -> None:
    """Rows of each part whose own class has the largest logit; the logit of the first class is 0 here."""
    _, target, nodes, weights, margins = rows
    for row in range(len(target)):
        if nodes[row] < 0:
            continue
        best, largest = 0, 0
        for c in range(len(margins)):
            if margins[c, row] > largest:  # of equals the class declared first
                best, largest = c + 1, margins[c, row]
        if best == target[row]:
            exact[nodes[row]] += weights[row] if len(weights) else 1


# -- which tables share a histogram -------------------------------------------------------------


class Groups(NamedTuple):
    """Groups of columns: a row adds to one cell of each."""

    members: Counts  # columns of all groups, one group after the other
    strides: NDArray[Any]  # cells from a code of each member to its next; as wide as the number of an entry
    bounds: Counts  # where the members of each group start, and the end
    cells: NDArray[Any]  # of each group


@dataclass(frozen=True)
class Cover:
    """Groups of columns, and each table as a sum over the cells of one group.

    A group has `inner` numbers for each of its cells, a table for each of its own: [inner, cell].
    """

    groups: Groups
    sums: Counts  # for each table: see `_sum_cells`
    starts: tuple[int, ...]  # where the entries of each table start, and the end
    inner: int


@lru_cache(maxsize=256)
def cover(tables: tuple[tuple[int, ...], ...], sizes: tuple[int, ...], inner: int, shortcuts: bool = True) -> Cover:
    """Groups for tables of columns, which are given by their positions.

    Without `shortcuts` every table is a group of its own.
    """

    def cells(columns: tuple[int, ...]) -> int:
        return math.prod(sizes[column] for column in columns)

    wide = list(dict.fromkeys(table for table in tables if len(table) > 2))
    narrow = tuple(table for table in tables if len(table) <= 2)
    if shortcuts:
        groups = _groups(narrow, np.array(sizes, dtype=np.int64), _LARGEST_GROUP // inner)
    else:
        groups = list(dict.fromkeys(tuple(sorted(table)) for table in narrow))
    shared = len(groups) if shortcuts else 0  # of these groups every column and pair is a table that may be asked
    groups += wide
    offsets = list(itertools.accumulate((inner * cells(group) for group in groups), initial=0))
    starts = list(itertools.accumulate((inner * cells(table) for table in tables), initial=0))
    home = {}  # later groups tend to be smaller: a table takes the last one that covers it
    for at, (group, offset) in enumerate(zip(groups, offsets, strict=False)):
        within = [*((column,) for column in group), *itertools.combinations(group, 2)] if at < shared else [group]
        home.update(dict.fromkeys(within, (group, offset)))
    sums = []
    for table, start in zip(tables, starts, strict=False):
        if len(table) > 2:
            sums.append((home[table][1], start, 1, cells(table), 1, 1, 1, 1, 1))
            continue
        group, offset = home[tuple(sorted(table))]
        first, last = min(map(group.index, table)), max(map(group.index, table))
        before, between, after = cells(group[:first]), cells(group[first + 1 : last]), cells(group[last + 1 :])
        rows, columns = sizes[group[first]], sizes[group[last]] if last > first else 1
        row_stride, column_stride = (columns, 1) if table[0] == group[first] else (1, rows)
        sums.append((offset, start, before, rows, between, columns, after, row_stride, column_stride))
    number = _wide(inner * max(map(cells, groups)))
    covering = Groups(
        members=np.array([column for group in groups for column in group], dtype=np.int64),
        strides=np.array([cells(group[at:]) for group in groups for at in range(1, len(group) + 1)], dtype=number),
        bounds=np.cumsum([0, *map(len, groups)]),
        cells=np.array([cells(group) for group in groups], dtype=number),
    )
    return Cover(covering, np.array(sums, dtype=np.int64), tuple(starts), inner)


def _groups(tables: tuple[tuple[int, ...], ...], sizes: Counts, largest: int) -> list[tuple[int, ...]]:
    """Groups of columns that contain every table; next is always the one that contains most of those left.

    A group grows from each column, by the column that adds most tables, to `largest` cells.
    A table with more is a group of its own.
    """
    every = np.arange(len(sizes))
    paired = {column for table in tables if len(table) == 2 for column in table}
    left = np.zeros((len(sizes), len(sizes)), dtype=np.int64)  # tables of one column are on the diagonal
    for table in tables:
        if len(table) == 2 or table[0] not in paired:
            left[table[0], table[-1]] = left[table[-1], table[0]] = 1
    groups = []
    while left.any():
        inside, cells = np.eye(len(sizes), dtype=np.bool_), sizes  # of the group grown from each column
        covered = left.diagonal()
        gain = left + covered  # [group, column]: how many tables the column adds
        fits = (left > 0) | (np.multiply.outer(cells, sizes) <= largest)
        while True:
            worth = np.where(fits & ~inside, gain, 0)
            chosen = (worth * (sizes.max() + 1) - sizes).argmax(axis=1)  # of equals the smallest, which leaves room
            grows = worth[every, chosen] > 0
            if not grows.any():
                break
            inside[every, chosen] |= grows
            cells = np.where(grows, cells * sizes[chosen], cells)
            covered = covered + grows * gain[every, chosen]
            gain = gain + grows[:, None] * left[chosen]
            fits = np.multiply.outer(cells, sizes) <= largest
        group = np.flatnonzero(inside[covered.argmax()])
        left[np.ix_(group, group)] = 0
        groups.append(tuple(group.tolist()))
    return groups


# -- the pass over the rows -----------------------------------------------------------------------


class Scored(NamedTuple):
    """Coded rows, their classes, parts and weights, and the margins that a model gives them.

    numba is given plain tuples: its cache on disk would name a class, and fail to load where that was renamed.
    """

    codes: NDArray[Any]  # [column, row]
    target: NDArray[Any]
    nodes: NDArray[np.int32]
    weights: Counts  # none: every row counts once
    margins: Margins


def sum_residuals(rows: Scored, caps: tuple[int, ...], wanted: Cover) -> Counts:
    """Return the entries of all tables: [part, own of each class and, of more than two, others of each, cell]."""
    sums, limits = np.zeros(wanted.starts[-1], dtype=np.int64), np.array(caps, dtype=np.int64)
    width = np.int64 if len(rows.weights) else np.int32
    errors, exponential = (None, _EXP) if len(caps) > 2 else (_ERRORS, None)  # one is None: its loop is not compiled
    entries = np.empty(wanted.inner * int(wanted.groups.cells.sum()), dtype=width)
    keys, weights = np.empty((2, _BLOCK), dtype=wanted.groups.strides.dtype), np.empty((2, _BLOCK), dtype=width)
    scratch = (*keys, *weights, np.empty((len(caps), _BLOCK), dtype=width))
    for start in range(0, len(rows.target), _STRETCH):
        entries[:] = 0
        stop = min(start + _STRETCH, len(rows.target))
        _sum_groups(
            tuple(rows), limits, errors, exponential, tuple(wanted.groups), wanted.inner, start, stop, scratch, entries
        )
        _sum_cells(entries, wanted.sums, wanted.inner, sums)
    return sums


@compiled
def _sum_groups(
    rows: Any,
    caps: Any,
    errors: Any,
    exponential: Any,
    groups: Any,
    inner: int,
    begin: int,
    end: int,
    scratch: Any,
    entries: Any,
) -> None:
    codes, target, nodes, weights, margins = rows
    members, strides, bounds, cells = groups
    first, key, weight, own, others = scratch  # of the rows of a block; `first` is the part and class of a row
    # unsigned indices: with signed ones every access asks whether it counts from the end
    classes = len(caps)
    width = 2 if exponential is None else 2 * classes
    for start in range(begin, end, _BLOCK):
        stop = min(start + _BLOCK, end)
        size, label, node = stop - start, target[start:stop], nodes[start:stop]
        for i in range(size):
            first[i] = max(node[i], 0) * width + label[i]
            weight[i] = node[i] >= 0  # a row in no part adds nothing, to the first part
        if len(weights):
            for i in range(size):
                weight[i] *= weights[start + i]
        if errors is not None:
            _look_up_errors(margins[0, start:stop], label, caps, errors, weight, own)
        if exponential is not None:
            _share_errors(margins[:, start:stop], label, caps, exponential, weight, own, others)
        offset = 0
        for group in range(len(cells)):
            stride, within = cells[group], slice(bounds[group], bounds[group + 1])
            for i in range(size):
                key[i] = first[i] * stride
            _add_codes(codes, members[within], strides[within], start, stop, key)
            mine = entries[offset : offset + inner * stride]
            offset += len(mine)
            for i in range(size):
                mine[key[i]] += own[i]
            if exponential is not None:
                for i in range(size):
                    key[i] -= label[i] * stride
                for c in range(classes):
                    rest, other = mine[(classes + c) * stride :], others[c]
                    for i in range(size):
                        rest[key[i]] += other[i]


@compiled
def _look_up_errors(margin: Any, label: Any, caps: Any, errors: Any, weight: Any, own: Any) -> None:
    for i in range(len(label)):  # a loop of its own: this one has no look-ups and takes many rows at once
        own[i] = (1 - 2 * label[i]) * max(min(margin[i], _REACH), -_REACH) + _REACH
    for i in range(len(label)):
        own[i] = weight[i] * min(errors[np.uint32(own[i])], caps[label[i]])


@compiled
def _share_errors(margins: Any, label: Any, caps: Any, exponential: Any, weight: Any, own: Any, others: Any) -> None:
    classes = len(caps)
    logit, power = np.zeros(classes, dtype=np.int64), np.empty(classes, dtype=np.int64)
    for i in range(len(label)):
        best = 0
        for c in range(1, classes):
            logit[c] = margins[c - 1, i]
            best = max(best, logit[c])
        total = 0
        for c in range(classes):
            distance = best - logit[c]
            power[c] = exponential[distance] if distance < _REACH else 0
            total += power[c]
        wrong = total - power[label[i]]
        mine = min(RESIDUAL_GRID * wrong // total, caps[label[i]])
        own[i] = weight[i] * mine
        for c in range(classes):
            others[c, i] = weight[i] * (mine * power[c] // wrong) if c != label[i] and wrong > 0 else 0


@compiled
def _sum_cells(entries: Any, tables: Any, inner: int, sums: Any) -> None:
    """A group's cells have five axes; of these the second and the fourth are the table's, the others are summed."""
    for t in range(len(tables)):
        at, start, before, rows, between, columns, after, row_stride, column_stride = tables[t]
        for _ in range(inner):
            for _ in range(before):
                for row in range(rows):
                    for _ in range(between):
                        cell = start + row * row_stride
                        if after == 1:  # short sums are slow
                            for column in range(columns):
                                sums[np.uint64(cell + column * column_stride)] += entries[np.uint64(at + column)]
                            at += columns
                        else:
                            for column in range(columns):
                                total = np.int64(0)
                                for i in range(at, at + after):
                                    total += entries[np.uint64(i)]
                                sums[np.uint64(cell + column * column_stride)] += total
                                at += after
            start += rows * columns
