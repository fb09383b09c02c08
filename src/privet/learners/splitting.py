"""How nodes find their splits: by a private selection, by noisy counts, or by public coins.

Where numbers are split at thresholds, a node either selects the threshold together with the
attribute or buys one for each numeric attribute before it selects.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.conditions import criterion
from privet.errors import NotPrivate, QuestionError
from privet.kernel import MAX_CELLS, Criterion, Domain, InfoGain, Numeric, PerPart, WeightedMax
from privet.lab import GainRatio, Unrounded
from privet.learners.plan import BY_SIGNAL, SHARPER, WEIGHTED, Level, Plan, signal
from privet.learners.sites import settled
from privet.release import Histogram
from privet.table import Parts

NodeSplit = str | tuple[str, Fraction]  # an attribute that is split into its cells, or one with a threshold
Attributes = tuple[str, ...]
ReleasesByQuestion = dict[str, list[Any]]  # for each question what it released for every node
# Where coins may cut numeric attributes: the grid index where the right side begins lies in [low, high).
CutRanges = Mapping[str, tuple[int, int]]


def find_splits(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level
) -> tuple[list[NodeSplit], ReleasesByQuestion]:
    """Find the split of each node.

    Parameters
    ----------
    parts : Parts
        The rows of each node.
    unused : PerPart of tuple of str
        The attributes that the path of each node has not used.
    plan : Plan
        Its `split`, `criterion`, `numeric` and `mechanism` are used.
    shares : Level
        What each node pays.

    Returns
    -------
    splits : list of NodeSplit
        One for each node.
    releases : dict of str to list
        What was asked, and the release for each node.
    """
    splits: list[NodeSplit] = []
    releases: ReleasesByQuestion = {}
    for nodes in _batches(parts):
        batch, names = parts.take(nodes), unused.take(nodes)
        if plan.split == "noisy-counts":
            splits += _by_noisy_counts(batch, names, plan, shares, releases)
        else:
            splits += _by_selection(batch, names, plan, shares, releases)
    return splits, releases


def attribute_of(split: NodeSplit) -> str:
    """Return the attribute of a split."""
    return split if isinstance(split, str) else split[0]


def cut_of(split: NodeSplit, domain: Domain) -> int:
    """Return the grid index from which on rows go right; -1 for a split into cells."""
    if not isinstance(split, tuple):
        return -1
    column = domain.numeric(split[0])
    return int((split[1] - column.low) / column.step) + 1


def split_at(name: str, cut: int, domain: Domain) -> NodeSplit:
    """Return the split of an attribute at a grid index, as `cut_of` gives it; -1 splits it into cells."""
    return name if cut < 0 else (name, domain.numeric(name).value_at(cut - 1))


def children_of(split: NodeSplit, domain: Domain) -> int:
    """Return how many children a split has."""
    column = domain[attribute_of(split)]
    return 2 + column.missing if isinstance(split, tuple) else column.size


def _batches(parts: Parts) -> Iterator[NDArray[np.intp]]:
    """Yield as many nodes at a time as one question may have cells. Disjoint parts share the charge all the same."""
    domain = parts.domain
    cells = sum(domain[name].size for name in domain.attributes) * len(domain.classes)
    most = max(1, MAX_CELLS // cells)
    for start in range(0, len(parts), most):
        yield np.arange(start, min(start + most, len(parts)))


def _by_selection(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level, releases: ReleasesByQuestion
) -> list[NodeSplit]:
    """Select the split of each node privately."""
    rule = plan_criterion(plan, parts.domain, settled(plan.criterion))
    candidates: Sequence[Any] = unused
    if plan.numeric == "separate":
        candidates = _with_thresholds(parts, unused, plan, rule, shares, releases)
    choices = parts.select(
        rule,
        math.inf if plan.is_exact else shares.split,
        attributes=candidates,
        thresholds=plan.numeric == "joint",
        mechanism=settled(plan.mechanism),
        monotone=plan.monotone,
    )
    releases.setdefault("split", []).extend(choices)
    return [str(choice) if choice.point is None else (str(choice), choice.point) for choice in choices]


def _with_thresholds(
    parts: Parts,
    unused: PerPart[Attributes],
    plan: Plan,
    rule: Criterion,
    shares: Level,
    releases: ReleasesByQuestion,
) -> list[list[Any]]:
    """Buy a threshold for each numeric attribute of each node; return the candidates of each node."""
    domain = parts.domain
    numeric = [name for name in domain.attributes if isinstance(domain[name], Numeric)]
    # by information gain where the criterion is C4.5's gain ratio, as Quinlan does
    by = InfoGain(domain.max_rows or 2**40) if isinstance(rule, GainRatio) else rule
    choices = {}
    for name in numeric:
        epsilon = math.inf if plan.is_exact else shares.points / len(numeric)
        choices[name] = parts.select(by, epsilon, attributes=[name], thresholds=True)
        releases.setdefault(f"threshold of {name}", []).extend(choices[name])
    return [
        [(name, choices[name][node].point) if name in choices else name for name in names]
        for node, names in enumerate(unused)
    ]


def _by_noisy_counts(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level, releases: ReleasesByQuestion
) -> list[NodeSplit]:
    """Return the attribute with the best score of each node, by noisy counts that are all bought (SuLQ)."""
    target = parts.domain.target_column.name

    def groups_of(names: Attributes) -> tuple[tuple[str, ...], ...]:
        """The histograms to buy for these attributes."""
        joint = tuple((name, target) for name in names)
        return joint + tuple((name,) for name in names) if plan.marginals else joint

    groups = unused.map(groups_of)
    splits: list[NodeSplit] = []
    for names, histograms in zip(unused, parts.histograms(groups, shares.split), strict=True):
        releases.setdefault("all counts", []).append(_OneStep(histograms))
        tables = [histogram.values for histogram in histograms]
        totals: Sequence[Any] = tables[len(names) :] or [None] * len(names)
        scores = [_noisy_gain(counts, total) for counts, total in zip(tables, totals, strict=False)]
        splits.append(names[int(np.argmax(scores))])
    return splits


class _OneStep:
    """Several histograms of one node, recorded as one step that costs their sum."""

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        loss = sum((histogram.about.loss for histogram in histograms), Fraction(0))
        self.about, self.private = replace(histograms[0].about, loss=loss), histograms[0].private


def _noisy_gain(counts: NDArray[Any], totals: NDArray[Any] | None) -> float:
    """Return sum n_jc lg(n_jc / n_j) over noisy counts, without those that are not above 0."""
    cells = counts.astype(np.float64)
    rows = np.maximum(cells, 0).sum(axis=1) if totals is None else totals.astype(np.float64)
    rows = np.broadcast_to(rows[:, None], cells.shape)
    positive = (cells > 0) & (rows > 0)
    return float((cells[positive] * np.log2(cells[positive] / rows[positive])).sum())


# -- public coins -------------------------------------------------------------------------------


def cut_ranges(plan: Plan, domain: Domain) -> CutRanges:
    """Return where coins may cut numeric attributes at the root: nowhere if numbers are split into their bins."""
    if plan.numeric == "bins":
        return {}
    return {name: (1, c.grid_size) for name in domain.attributes if isinstance(c := domain[name], Numeric)}


def cut_ranges_below(ranges: CutRanges, split: NodeSplit, domain: Domain) -> list[CutRanges]:
    """Return where coins may cut in each child of a split.

    Parameters
    ----------
    ranges : mapping of str to (int, int)
        Where they may cut in the node itself.
    split : NodeSplit
    domain : Domain

    Returns
    -------
    list of mapping
        One for each child, in order.
    """
    column = domain[attribute_of(split)]
    if not isinstance(split, tuple) or not isinstance(column, Numeric):
        return [ranges] * column.size
    low, high = ranges[column.name]
    cut = cut_of(split, domain)
    sides = [(low, min(cut, high)), (max(low, cut + 1), high), *[(0, 0)] * column.missing]
    return [{**ranges, column.name: side} for side in sides]


def splittable(unused: Attributes, ranges: CutRanges) -> Attributes:
    """Return the attributes by which coins can split a node: a numeric one needs a range for its threshold."""
    if not ranges:
        return unused
    return tuple(name for name in unused if name not in ranges or ranges[name][0] < ranges[name][1])


def random_split(unused: Attributes, ranges: CutRanges, domain: Domain, rng: np.random.Generator) -> NodeSplit:
    """Draw an attribute, and for a numeric one a threshold. No row is looked at.

    Parameters
    ----------
    unused : tuple of str
        The attributes that the path has not used.
    ranges : mapping of str to (int, int)
        Where numeric attributes may be cut.
    domain : Domain
    rng : numpy.random.Generator
        Public coins.

    Returns
    -------
    NodeSplit
    """
    names = splittable(unused, ranges)
    name = names[int(rng.integers(len(names)))]
    return split_at(name, int(rng.integers(*ranges[name])) if name in ranges else -1, domain)


# -- the criteria that plans name ---------------------------------------------------------------


def plan_criterion(plan: Plan, domain: Domain, choice: str | Criterion) -> Criterion:
    """Return the criterion that a plan names. On public rows its scores are not rounded.

    Parameters
    ----------
    plan : Plan
    domain : Domain
    choice : str or Criterion
        What the plan, or a site of it, chose.

    Returns
    -------
    Criterion

    Raises
    ------
    QuestionError
        There is no such criterion, or the domain lacks what it needs.
    """
    if plan.is_exact and isinstance(choice, str) and choice in ("gini", "infogain"):
        return Unrounded(choice)
    if isinstance(choice, GainRatio | Unrounded):
        return choice
    if choice == GainRatio.name:
        return GainRatio()
    return criterion(choice, domain)


def selectable_criterion(plan: Plan, domain: Domain, choice: str | Criterion) -> Criterion:
    """Return the criterion that a plan names, if it may select splits by it.

    Parameters
    ----------
    plan, domain, choice
        As in `plan_criterion`.

    Returns
    -------
    Criterion

    Raises
    ------
    QuestionError
        There is no such criterion, or the domain lacks what it needs.
    NotPrivate
        The criterion has no bounded sensitivity and the rows are private.
    """
    rule = plan_criterion(plan, domain, choice)
    if isinstance(rule, GainRatio) and not plan.is_exact:
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
    return rule


def resolved_criterion(
    choice: Any, domain: Domain, epsilon: Fraction, rows: float | None, prior: Sequence[float] | None
) -> str | Criterion:
    """Return a criterion that depends on nothing any more.

    Parameters
    ----------
    choice : str or Criterion
        "by-signal" becomes "max" or "gini" by the number of rows, "weighted-max" gets weights from class counts;
        any other criterion is returned as it is.
    domain : Domain
    epsilon : Fraction
        The budget of the whole fit.
    rows : float or None
        The number of rows, if it is known.
    prior : sequence of float or None
        Released class counts of the whole table, if there are any.

    Returns
    -------
    str or Criterion

    Raises
    ------
    QuestionError
        What the criterion depends on is not known.
    """
    if choice == WEIGHTED and prior is not None:
        return _weighted(prior)
    if choice == BY_SIGNAL and rows is not None:
        return "max" if signal(domain, rows, epsilon) < SHARPER else "gini"
    if choice in (WEIGHTED, BY_SIGNAL):
        raise QuestionError(
            f"the criterion '{choice}' follows from {'class counts' if choice == WEIGHTED else 'the number of rows'}, "
            "which this plan does not know; give it a prior share that buys them, or choose max or gini."
        )
    resolved: str | Criterion = choice
    return resolved


def _weighted(prior: Sequence[float]) -> WeightedMax:
    """Return majorities in which rows of rare classes weigh more.

    They tell cells apart that all have the same majority.
    """
    shares = np.clip(np.array(prior) / max(sum(prior), 1.0), 0.05, 0.95)
    return WeightedMax.of((1 / shares).tolist())
