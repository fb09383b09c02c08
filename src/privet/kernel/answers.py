"""How exact numbers of an engine become noisy answers, for all parts at once.

Each function takes the mechanisms of the parts and the table's source of entropy, asks the
engine one query and returns plain JSON values: what is stored in the ledger and released.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Numeric
from privet.kernel.criteria import Criterion, GainRatio, roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    CorrectQuery,
    CountQuery,
    Counts,
    Engine,
    GridCounts,
    GridQuery,
    ResidualQuery,
    Residuals,
    SumQuery,
    index_count,
)
from privet.kernel.mechanisms import ExponentialOverRanges, IntegerLaplace, PermuteAndFlip, ResidualLaplace
from privet.kernel.rows import Rows
from privet.kernel.sampling import Entropy

_POINTS = 2**25  # that an engine which does not hold the rows is asked about at once; docs/scale.md tells their memory


def histogram(
    engine: Engine, rows: Rows, columns: tuple[str, ...], noises: Sequence[IntegerLaplace], entropy: Entropy
) -> list[Any]:
    """Noisy counts of all cells: a record lies in one cell of one part."""
    (exact,) = engine.exact_counts(CountQuery(rows, (columns,)))
    return _release(noises, exact, entropy)


def histograms(
    engine: Engine,
    rows: Rows,
    groups: Sequence[Sequence[tuple[str, ...]]],
    noises: Sequence[IntegerLaplace],
    entropy: Entropy,
) -> list[list[Any]]:
    """Noisy counts of several groups of columns for each part."""
    wanted = list(dict.fromkeys(group for own in groups for group in own))
    exact_tables = dict(zip(wanted, engine.exact_counts(CountQuery(rows, tuple(wanted))), strict=True))
    answers = []
    for part, own in enumerate(groups):
        exact = np.concatenate([exact_tables[group][part].ravel() for group in own])
        ends = np.cumsum([exact_tables[group][part].size for group in own])
        noisy = np.split(noises[part].release(exact, entropy=entropy), ends[:-1])
        answers.append(
            [each.reshape(exact_tables[group][part].shape).tolist() for each, group in zip(noisy, own, strict=True)]
        )
    return answers


def majority(
    engine: Engine, rows: Rows, column: str, mechanisms: Sequence[PermuteAndFlip], entropy: Entropy
) -> list[int]:
    """The noisily most frequent code of a column."""
    (exact,) = engine.exact_counts(CountQuery(rows, ((column,),)))
    return [mechanism.release(exact[part], entropy=entropy) for part, mechanism in enumerate(mechanisms)]


def total(engine: Engine, rows: Rows, column: Numeric, noises: Sequence[IntegerLaplace], entropy: Entropy) -> list[int]:
    """Noisy sums in multiples of `column.unit`."""
    exact_rows, exact_indices = engine.exact_sums(SumQuery(rows, column.name))
    low, step = int(column.low / column.unit), int(column.step / column.unit)
    exact = [low * int(n) + step * int(index) for n, index in zip(exact_rows, exact_indices, strict=True)]
    return _release(noises, np.array(exact, dtype=object), entropy)  # the mechanism clamps what no int64 holds


def deviation(
    engine: Engine,
    rows: Rows,
    column: Numeric,
    sum_noises: Sequence[IntegerLaplace],
    count_noises: Sequence[IntegerLaplace],
    entropy: Entropy,
) -> list[tuple[int, int]]:
    """Noisy sums of deviations from the middle, in half steps, and noisy numbers of rows with a value."""
    exact_rows, exact_indices = engine.exact_sums(SumQuery(rows, column.name))
    exact = [
        2 * int(index) - (column.grid_size - 1) * int(n) for n, index in zip(exact_rows, exact_indices, strict=True)
    ]
    sums = _release(sum_noises, np.array(exact, dtype=object), entropy)
    counts = _release(count_noises, exact_rows, entropy)
    return list(zip(sums, counts, strict=True))


def _release(noises: Sequence[IntegerLaplace], exact_values: NDArray[Any], entropy: Entropy) -> list[Any]:
    """Noise on the numbers of each part."""
    if len({id(noise) for noise in noises}) == 1:  # one batch is much faster than a call for each part
        return list(noises[0].release(exact_values, entropy=entropy).tolist())
    return [
        noise.release(exact_values[part : part + 1], entropy=entropy)[0].tolist() for part, noise in enumerate(noises)
    ]


def quantile(
    engine: Engine,
    rows: Rows,
    column: Numeric,
    rank: Fraction,
    domain: Domain,
    mechanisms: Sequence[ExponentialOverRanges],
    entropy: Entropy,
) -> list[int]:
    """Noisy quantiles as grid indices."""
    answers = []
    for part, ((index, exact_counts, _),) in enumerate(_grids(engine, rows, (column.name,), None, domain)):
        start, size, score = quantile_ranges(index, exact_counts.sum(axis=1), column.grid_size, rank)
        chosen, offset = mechanisms[part].release(score, size, entropy=entropy)
        answers.append(int(start[chosen]) + offset)
    return answers


def quantile_ranges(
    index: Counts, exact_counts: Counts, points: int, rank: Fraction
) -> tuple[Counts, Counts, NDArray[Any]]:
    """Ranges of grid points with equal score: first point, number of points, score.

    With `below`, `at` and `above` rows beside a point and the rank a / b, its score is
    minus the larger of (b - a) * below - a * (at + above) and a * above - (b - a) * (below + at),
    or 0 where both are negative: how far, in rows times b, it is from being the quantile.
    One record changes either term by at most max(a, b - a), up or down.
    """
    a, b = rank.numerator, rank.denominator
    exact_counts = roomy(exact_counts, b, axes=(-1,))
    before = np.concatenate([[0], np.cumsum(exact_counts)])
    # an occupied point each, and before each and after the last a range of empty ones
    start = np.empty(2 * len(index) + 1, dtype=np.int64)
    start[0], start[1::2], start[2::2] = 0, index, index + 1
    size = np.diff(start, append=points)
    full = np.flatnonzero(size)
    start, size = start[full], size[full]
    below = np.empty(2 * len(index) + 1, dtype=exact_counts.dtype)
    below[0::2], below[1::2] = before, before[:-1]
    at = np.zeros_like(below)
    at[1::2] = exact_counts
    below, at = below[full], at[full]
    above = before[-1] - below - at
    too_high, too_low = (b - a) * below - a * (at + above), a * above - (b - a) * (below + at)
    return start, size, -np.maximum(0, np.maximum(too_high, too_low))


def attribute(
    engine: Engine,
    rows: Rows,
    candidates: Sequence[Sequence[str | tuple[str, int]]],
    domain: Domain,
    criterion: Criterion,
    mechanisms: Sequence[Any],
    entropy: Entropy,
) -> list[tuple[str, int | None]]:
    """The noisily best of each part's candidates: attributes by their cells, or (attribute, grid index) pairs."""
    target = domain.target_column
    names = list(dict.fromkeys(each for own in candidates for each in own if isinstance(each, str)))
    split = list(dict.fromkeys(each[0] for own in candidates for each in own if not isinstance(each, str)))
    exact_tables = engine.exact_counts(CountQuery(rows, tuple((name, target.name) for name in names))) if names else []
    exact_scores = {name: criterion.exact_scores(exact) for name, exact in zip(names, exact_tables, strict=True)}
    exact_gains: dict[Any, Any] = {}
    if isinstance(criterion, GainRatio):
        exact_gains = {name: criterion.exact_gains(exact) for name, exact in zip(names, exact_tables, strict=True)}
    answers: list[tuple[str, int | None]] = []
    if not split and not exact_gains:  # attributes alone: all scores in one table
        by_name = np.stack([exact_scores[name] for name in names], axis=1)
        place = {name: i for i, name in enumerate(names)}
        known: dict[int, list[int]] = {}
        for part, own in enumerate(candidates):
            at = known.get(id(own))
            if at is None:
                at = known[id(own)] = [place[str(each)] for each in own]
            answers.append((str(own[mechanisms[part].release(by_name[part, at], entropy=entropy)]), None))
        return answers
    exact_grids = _grids(engine, rows, split, domain.target, domain) if split else itertools.repeat(())
    for part, (own, exact_columns) in enumerate(zip(candidates, exact_grids, strict=False)):
        scores, gains = [], []
        by_column = dict(zip(split, exact_columns, strict=True))
        for each in own:
            if isinstance(each, str):
                scores.append(exact_scores[each][part])
                gains += [exact_gains[each][part]] if exact_gains else []
                continue
            exact = _two_sides(domain.numeric(each[0]), each[1], *by_column[each[0]])
            scores.append(criterion.exact_scores(exact[None])[0])
            gains += [criterion.exact_gains(exact[None])[0]] if isinstance(criterion, GainRatio) else []
        if gains:  # Quinlan's guard: only candidates of at least average gain
            scores = [
                score if gain >= np.mean(gains) - 1e-12 else -1.0 for score, gain in zip(scores, gains, strict=True)
            ]
        large = any(isinstance(score, int) for score in scores)  # of Python's, as a criterion has them where it must
        exact = np.array(scores, dtype=object if large else None)
        chosen = own[mechanisms[part].release(exact, entropy=entropy)]
        # a threshold goes left: the last grid index on that side
        answers.append((chosen, None) if isinstance(chosen, str) else (chosen[0], chosen[1] - 1))
    return answers


def _two_sides(column: Numeric, at: int, index: Counts, exact_counts: Counts, exact_missing: Counts) -> Counts:
    """The class counts below a grid index, from it on and, where declared, without a value."""
    left = exact_counts[index < at].sum(axis=0)
    sides = [left, exact_counts.sum(axis=0) - left]
    return np.stack(sides + [exact_missing] * column.missing)


def threshold(
    engine: Engine,
    rows: Rows,
    attributes: Sequence[Sequence[str]],
    domain: Domain,
    criterion: Criterion,
    mechanisms: Sequence[ExponentialOverRanges],
    entropy: Entropy,
) -> list[tuple[str, int | None]]:
    """The noisily best of each part's nominal attributes and (numeric attribute, grid index) pairs, jointly.

    Each attribute has base measure 1: a numeric one spreads it evenly over its grid points.
    """
    names = list(dict.fromkeys(name for own in attributes for name in own))
    numeric = [column for name in names if isinstance(column := domain[name], Numeric)]
    whole = math.lcm(*(column.grid_size - 1 for column in numeric))
    answers: list[tuple[str, int | None]] = []
    exact_grids = _grids(engine, rows, names, domain.target, domain)
    for part, (own, exact_columns) in enumerate(zip(attributes, exact_grids, strict=True)):
        tables = dict(zip(names, exact_columns, strict=True))
        kind = np.int64 if whole * len(own) < 2**62 else object  # of weights, which add up to this
        ranges: list[tuple[str, Counts | None, int]] = []  # attribute, first grid indices, weight of a grid point
        weights: list[NDArray[Any]] = []
        scores: list[NDArray[Any]] = []
        for name in own:
            column = domain[name]
            index, exact_counts, exact_missing = tables[name]
            if isinstance(column, Numeric):
                start, size, score = threshold_ranges(column, index, exact_counts, exact_missing, criterion)
                point = whole // (column.grid_size - 1)
                ranges.append((name, start, point))
                weights.append(size.astype(kind) * point)
                scores.append(score)
            else:
                dense = np.zeros((index_count(column), exact_counts.shape[1]), dtype=np.int64)
                dense[index] = exact_counts
                ranges.append((name, None, 1))
                weights.append(np.array([whole], dtype=kind))
                scores.append(criterion.exact_scores(dense[None]))
        chosen, offset = mechanisms[part].release(np.concatenate(scores), np.concatenate(weights), entropy=entropy)
        ends = np.cumsum([len(sizes) for sizes in weights])
        which = int(np.searchsorted(ends, chosen, side="right"))
        name, starts, point = ranges[which]
        first = None if starts is None else int(starts[chosen - ends[which]])  # counted from the last of the attribute
        answers.append((name, None if first is None else first + offset // point))
    return answers


def threshold_ranges(
    column: Numeric, index: Counts, exact_counts: Counts, exact_missing: Counts, criterion: Criterion
) -> tuple[Counts, Counts, NDArray[Any]]:
    """Ranges of thresholds s (rows with index <= s go left) with equal score: first s, number of them, score."""
    classes = exact_counts.shape[1]
    left = np.concatenate([np.zeros((1, classes), dtype=np.int64), np.cumsum(exact_counts, axis=0)])
    cells = [left, left[-1] - left]
    if column.missing:
        cells.append(np.broadcast_to(exact_missing, left.shape))
    score = criterion.exact_scores(np.stack(cells, axis=1))
    start = np.concatenate([[0], index])
    size = np.diff(np.concatenate([start, [column.grid_size - 1]]))
    full = np.flatnonzero(size > 0)
    return start[full], size[full], score[full]


def _grids(
    engine: Engine, rows: Rows, columns: Sequence[str], target: str | None, domain: Domain
) -> Iterator[tuple[tuple[Counts, Counts, Counts], ...]]:
    """For each part, what `_by_part` says of each column.

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


def _by_part(exact: GridCounts, parts: int) -> list[tuple[Counts, Counts, Counts]]:
    """For each part: occupied indices, their counts, and the counts of rows without a value."""
    bounds = np.searchsorted(exact.part, np.arange(parts + 1))
    split = []
    for part in range(parts):
        mine = slice(bounds[part], bounds[part + 1])
        index, exact_counts = exact.index[mine], exact.exact_counts[mine]
        missing = exact_counts[index < 0].sum(axis=0)
        split.append((index[index >= 0], exact_counts[index >= 0], missing))
    return split


def residual_choice(
    engine: Engine, query: ResidualQuery, mechanisms: Sequence[PermuteAndFlip], entropy: Entropy
) -> list[int]:
    """The table in which the residuals disagree most, for each part."""
    exact_scores = np.stack([residual_scores(exact) for exact in engine.exact_residuals(query)], axis=1)
    return [mechanism.release(exact_scores[part], entropy=entropy) for part, mechanism in enumerate(mechanisms)]


def residual_scores(exact: Residuals) -> Counts:
    """Two classes: sum over cells of the larger class. More: sum over cells and classes of own or others.

    A record adds to the entries it touches, so scores only rise: by at most its own
    clipped residual, twice that with more than two classes.
    """
    exact_own = roomy(exact.exact_own, 2)
    if exact.exact_others is None:
        return np.asarray(exact_own.max(axis=-1).sum(axis=-1))
    return np.asarray(np.maximum(exact_own, roomy(exact.exact_others, 2)).sum(axis=(-1, -2)))


def residual_sums(
    engine: Engine, query: ResidualQuery, noises: Sequence[ResidualLaplace], entropy: Entropy
) -> list[Any]:
    """Noisy residual sums of one table, for each part."""
    (exact,) = engine.exact_residuals(query)
    answers = []
    for part, noise in enumerate(noises):
        others = None if exact.exact_others is None else exact.exact_others[part]
        own, rest = noise.release(exact.exact_own[part], others, entropy)
        answers.append([own.tolist(), None if rest is None else rest.tolist()])
    return answers


def correct(engine: Engine, query: CorrectQuery, noises: Sequence[IntegerLaplace], entropy: Entropy) -> list[int]:
    """Noisy numbers of rows that a released model classifies right: a record adds at most one."""
    return _release(noises, engine.exact_correct(query), entropy)


def best(
    engine: Engine,
    rows: Rows,
    candidates: Sequence[AdditiveModel | Rows],
    target: str | None,
    mechanisms: Sequence[PermuteAndFlip],
    entropy: Entropy,
) -> list[int]:
    """The candidate with the most rows, for each part: rows that a model classifies right, or rows that are kept.

    A record adds at most one to every number and takes nothing from any.
    """
    exact_scores = []
    for candidate in candidates:
        if isinstance(candidate, Rows):
            (exact,) = engine.exact_counts(CountQuery(candidate, ((),)))
        else:
            assert target is not None
            exact = engine.exact_correct(CorrectQuery(rows, candidate, target))
        exact_scores.append(exact)
    by_part = np.stack(exact_scores, axis=1)
    return [mechanism.release(by_part[part], entropy=entropy) for part, mechanism in enumerate(mechanisms)]


def exact_lead(engine: Engine, query: CorrectQuery, accuracy: Fraction) -> int:
    """By how much the rows that a model classifies right exceed this share of all rows, times its denominator.

    For p / q it is q * right - p * rows: a record raises it by q - p or lowers it by p.
    """
    (exact_right,) = engine.exact_correct(query).tolist()
    ((exact_rows,),) = (exact.tolist() for exact in engine.exact_counts(CountQuery(query.rows, ((),))))
    return int(accuracy.denominator * exact_right - accuracy.numerator * exact_rows)
