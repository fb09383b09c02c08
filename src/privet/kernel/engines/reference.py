"""The reference engine: every answer as a loop over rows, in Python's own integers.

The contract of all engines, in one sentence: *a row's cells depend on that row alone, an exact
answer is a sum over rows, and no row, nor any number of rows, makes an engine raise, stop, drop
or reread anything.*

This file defines what the other engines compute, and `tests/kernel/engines` compares them with it. It is
plain on purpose: each row is coded by the scalar definitions of its column, each query reads all
rows again, and nothing is remembered between rows or between queries. It is never opened for an
analyst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from privet.kernel.additive import EXP_BITS, EXP_ONE, RESIDUAL_GRID, AdditiveModel, exp_factors
from privet.kernel.column import Column, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import FIXED, LARGEST_SUM, Counts
from privet.kernel.person import order, person_text
from privet.kernel.rows import COIN_PRIME, Condition, Divide, Keep, Rows, Scatter

_FACTORS = exp_factors()


class Row(NamedTuple):
    """A row that fits the domain.

    `codes` holds the cell of each column. `indices` holds the grid index of a numeric column, -1
    where it has no number, and the code of a nominal one. A row counts `weight` times.
    """

    codes: dict[str, int]
    indices: dict[str, int]
    weight: int


def _cell(column: Column, index: int) -> int:
    """The cell at an index of a row: of a nominal column it is the index itself."""
    if not isinstance(column, Numeric):
        return index
    if index < 0:
        assert column.missing_code is not None
        return column.missing_code
    return sum(threshold <= index for threshold in column.thresholds)


def first_of_each(domain: Domain, rows: Sequence[Row | None], persons: Sequence[object]) -> list[Row]:
    """Return the rows that count: the first `rows_per_person` of each person, in the order of `person.order`."""
    owned: dict[str, list[tuple[str, Row]]] = {}
    for row, value in zip(rows, persons, strict=True):
        name = person_text(value)
        if row is not None and name is not None:
            codes = [row.codes[column.name] for column in domain]
            codes += [row.indices[column.name] for column in domain if isinstance(column, Numeric)]
            owned.setdefault(name, []).append((order(name, codes), row))
    return [
        row for mine in owned.values() for _, row in sorted(mine, key=lambda pair: pair[0])[: domain.rows_per_person]
    ]


class ReferenceEngine:
    """Answers queries by counting rows one by one.

    Parameters
    ----------
    domain : Domain
    rows : sequences of values
        In the order of the domain's columns, and then whose row it is, where the domain names a person column.
        Rows that do not fit the domain are left out, and so are surplus rows of a person.
    weights : whole numbers above 0, optional
        How often each row counts; once where they are left out.
    """

    name = "reference"
    closed = False
    holds_rows = True
    version = FIXED

    def __init__(self, domain: Domain, rows: Iterable[Sequence[object]], weights: Iterable[int] | None = None) -> None:
        values, columns = [tuple(row) for row in rows], len(domain.columns)
        counted = [1] * len(values) if weights is None else [int(weight) for weight in weights]
        coded = [row_of(domain, row[:columns], weight) for row, weight in zip(values, counted, strict=True)]
        self.domain = domain
        self.rows = [row for row in coded if row is not None]
        if domain.person is not None:
            assert weights is None
            self.rows = first_of_each(domain, coded, [row[columns] for row in values])

    def close(self) -> None:
        self.closed = True
        self.rows = []

    def in_cells(self, cells: contract.Cells) -> ReferenceEngine:
        engine = ReferenceEngine(cells.domain, [])
        for row in self.rows:
            indices = {name: row.indices[cells.source(name)] for name in cells.domain.names}
            codes = {column.name: _cell(column, indices[column.name]) for column in cells.domain}
            engine.rows.append(Row(codes, indices, row.weight))
        return engine

    def exact_counts(self, query: contract.CountQuery) -> list[Counts]:
        placed, answers = self.placed(query.rows), []
        for group in query.groups:
            exact: Counter[tuple[int, ...]] = Counter()
            for part, row in placed:
                exact[part, *(row.codes[name] for name in group)] += row.weight
            answers.append(_array(exact, (query.rows.parts, *(self.domain[name].size for name in group))))
        return answers

    def exact_grid(self, query: contract.GridQuery) -> list[contract.GridCounts]:
        classes = 1 if query.target is None else self.domain[query.target].size
        placed, answers = self.placed(query.rows), []
        for name in query.columns:
            exact: dict[tuple[int, int], list[int]] = {}
            for part, row in placed:
                label = 0 if query.target is None else row.codes[query.target]
                exact.setdefault((part, row.indices[name]), [0] * classes)[label] += row.weight
            occupied = sorted(exact)
            answers.append(
                contract.GridCounts(
                    part=np.array([part for part, _ in occupied], dtype=np.int64),
                    index=np.array([index for _, index in occupied], dtype=np.int64),
                    exact_counts=np.array([exact[pair] for pair in occupied], dtype=np.int64).reshape(-1, classes),
                )
            )
        return answers

    def exact_sums(self, query: contract.SumQuery) -> tuple[Counts, Counts]:
        exact_rows: Counter[tuple[int, ...]] = Counter()
        exact_sums: Counter[tuple[int, ...]] = Counter()
        for part, row in self.placed(query.rows):
            index = row.indices[query.column]
            if index >= 0:
                exact_rows[part,] += row.weight
                exact_sums[part,] += row.weight * index
        limited = Counter({part: min(exact, LARGEST_SUM) for part, exact in exact_sums.items()})
        return _array(exact_rows, (query.rows.parts,)), _array(limited, (query.rows.parts,))

    def exact_residuals(self, query: contract.ResidualQuery) -> list[contract.Residuals]:
        classes, answers = len(query.caps), []
        added = [(part, row, *residuals_of(row, query)) for part, row in self.placed(query.rows)]
        for table in query.tables:
            exact_own: Counter[tuple[int, ...]] = Counter()
            exact_others: Counter[tuple[int, ...]] = Counter()
            for part, row, mine, shares in added:
                cell = cell_of(row, table, self.domain)
                exact_own[part, cell, row.codes[query.target]] += row.weight * mine
                for label, share in enumerate(shares):
                    exact_others[part, cell, label] += row.weight * share
            shape = (query.rows.parts, self.domain.cell_count(table), classes)
            answers.append(
                contract.Residuals(_array(exact_own, shape), _array(exact_others, shape) if classes > 2 else None)
            )
        return answers

    def exact_correct(self, query: contract.CorrectQuery) -> Counts:
        exact: Counter[tuple[int, ...]] = Counter()
        for part, row in self.placed(query.rows):
            logits = logits_of(row, query.model)
            if logits.index(max(logits)) == row.codes[query.target]:  # `index`: the first of equals
                exact[part,] += row.weight
        return _array(exact, (query.rows.parts,))

    def placed(self, rows: Rows) -> list[tuple[int, Row]]:
        """The rows that lie in a part, each with the number of its part."""
        parts = [(part_of(row, rows, self.domain), row) for row in self.rows]
        return [(part, row) for part, row in parts if part is not None]


# -- one row ------------------------------------------------------------------------------------


def row_of(domain: Domain, values: Sequence[object], weight: int = 1) -> Row | None:
    """The codes and indices of a row's values; None where a value fits no cell of its column."""
    codes: dict[str, int] = {}
    indices: dict[str, int] = {}
    for column, value in zip(domain, values, strict=True):
        code = column.code(value)
        if code is None:
            return None
        codes[column.name] = indices[column.name] = code
        if isinstance(column, Numeric):
            index = column.grid(value)
            indices[column.name] = -1 if index is None else index
    return Row(codes, indices, weight)


def part_of(row: Row, rows: Rows, domain: Domain) -> int | None:
    """The part in which a row lies after all steps; None where a step leaves it out."""
    if rows.parent is None or rows.step is None:
        return 0
    part = part_of(row, rows.parent, domain)
    if part is None:
        return None
    if isinstance(rows.step, Keep):
        return _kept(row, part, rows.step)
    if isinstance(rows.step, Divide):
        return _divided(row, part, rows.step, domain)
    return part * rows.step.parts + coin_of(row, rows.step, domain)


def _kept(row: Row, part: int, step: Keep) -> int | None:
    """A part that is kept is numbered by its place in the list."""
    if part not in step.parts or not all(_meets(row, condition) for condition in step.conditions):
        return None
    return step.parts.index(part)


def _meets(row: Row, condition: Condition) -> bool:
    if condition.codes is not None:
        return row.codes[condition.column] in condition.codes
    index = row.indices[condition.column]
    return index >= 0 and condition.low <= index < condition.high


def _divided(row: Row, part: int, step: Divide, domain: Domain) -> int | None:
    """The children of all parts are numbered in a row, part after part."""
    split = step.splits[part]
    if split is None:
        return None
    first = sum(other.children(domain) for other in step.splits[:part] if other is not None)
    if split.thresholds is None:
        return first + row.codes[split.column]
    index = row.indices[split.column]
    if index < 0:
        return first + len(split.thresholds) + 1
    return first + sum(threshold <= index for threshold in split.thresholds)


def coin_of(row: Row, step: Scatter, domain: Domain) -> int:
    """The public hash of a row's cells, as a number below `step.parts`.

    With p = COIN_PRIME, index i of each column, and factors f and constants k from
    `Scatter.coefficients`: h is the sum over columns of (i + 1) * f + k, modulo p; then twice
    h becomes h^2 * f + k, modulo p. The part is floor(h * parts / p).
    """
    *columns, square, last = step.coefficients(domain)
    hashed = 0
    for column, (factor, constant) in zip(domain, columns, strict=True):
        hashed += (row.indices[column.name] + 1) * factor + constant
    hashed %= COIN_PRIME
    for factor, constant in (square, last):
        hashed = (hashed**2 * factor + constant) % COIN_PRIME
    return hashed * step.parts // COIN_PRIME


def cell_of(row: Row, columns: Sequence[str], domain: Domain) -> int:
    """The cell of a row in a table of these columns, in row-major order."""
    cell = 0
    for name in columns:
        cell = cell * domain[name].size + row.codes[name]
    return cell


# -- a released model ---------------------------------------------------------------------------


def logits_of(row: Row, model: AdditiveModel) -> list[int]:
    """The logit of each class: the intercept plus one entry of each table, in multiples of 1 / LOGIT_GRID."""
    logits = list(model.intercept)
    for columns, table in model.terms:
        for label, value in enumerate(table[tuple(row.codes[name] for name in columns)]):
            logits[label] += int(value)
    return logits


def residuals_of(row: Row, query: contract.ResidualQuery) -> tuple[int, list[int]]:
    """What a row adds to its own class, and to each of the others, in multiples of 1 / RESIDUAL_GRID.

    E_c is `exponential` of the distance from the logit of class c to the largest one, T is the sum
    of all E_c, and y is the row's class. Every quotient is rounded down:

        own = min(RESIDUAL_GRID * (T - E_y) / T, cap_y)
        share_c = own * E_c / (T - E_y), for c other than y; 0 where T = E_y
    """
    logits, label = logits_of(row, query.model), row.codes[query.target]
    weights = [exponential(max(logits) - logit) for logit in logits]
    wrong = sum(weights) - weights[label]
    own = min(RESIDUAL_GRID * wrong // sum(weights), query.caps[label])
    shares = [own * weight // wrong if wrong > 0 else 0 for weight in weights]
    shares[label] = 0
    return own, shares


def exponential(distance: int) -> int:
    """exp(-distance / LOGIT_GRID) in units of 1 / EXP_ONE; 0 from a distance of 2^EXP_BITS on.

    It is a product of one factor for each bit of the distance that is set, rounded down after each.
    """
    if distance >= 2**EXP_BITS:
        return 0
    value = EXP_ONE
    for bit, factor in enumerate(_FACTORS):
        if distance >> bit & 1:
            value = value * factor // EXP_ONE
    return value


def _array(exact: Counter[tuple[int, ...]], shape: tuple[int, ...]) -> Counts:
    array = np.zeros(shape, dtype=np.int64)
    for index, number in exact.items():
        array[index] = number
    return array
