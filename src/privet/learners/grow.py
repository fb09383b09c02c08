"""grow: fits a plan on a table. What can be refused is refused first, then the trees are grown.

The schedules, the structures that coins draw and the decisions of sites follow from what is public
or was released, and so does everything that `Growth` asks. So the charges of the kernel are the
whole cost (docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Domain, Histogram, Public, Release, as_epsilon
from privet.lab import PublicTable
from privet.learners.algorithm import (
    Meter,
    ProgressCallback,
    Record,
    check_attributes,
    check_budget,
    check_target,
    cost_of_counts,
    ignore_progress,
)
from privet.learners.growth import Growth, LevelCallback, NodeSites, TreeSpending
from privet.learners.plan import BY_SIGNAL, WEIGHTED, Plan, Schedule
from privet.learners.sites import Decisions, rows_in, settled, view_of
from privet.learners.splitting import resolved_criterion, selectable_criterion
from privet.learners.structure import draw
from privet.models.privacy_record import Privacy
from privet.models.tree import Ensemble, Tree
from privet.table import ProtectedTable


def grow(
    table: ProtectedTable,
    plan: Plan,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    variant: str = "corrected",
    counts: Histogram | None = None,
    reasons: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
) -> Ensemble:
    """Fit a plan within `epsilon`. What cannot be done is refused before anything is charged.

    Parameters
    ----------
    table : ProtectedTable
    plan : Plan
    epsilon : Fraction
        The cost of the whole fit, per person.
    rng : numpy.random.Generator
        Public coins; noise is never drawn from it.
    variant : str, default "corrected"
        For the privacy record.
    counts : Histogram, optional
        Class counts of the table that were bought before. Their cost is part of `epsilon`.
    reasons : sequence of str, default ()
        Why the model is not private, if it is not.
    progress : callable, optional
        Called with a `Progress` at each level.

    Returns
    -------
    Ensemble

    Raises
    ------
    QuestionError
        The plan cannot be carried out on this table. Nothing was charged, unless a site that had to see bought
        class counts chose what cannot be done.
    BudgetExceeded
        The table cannot pay the whole fit. Nothing was charged.
    """
    domain = table.domain
    remaining = epsilon - cost_of_counts(counts, domain)
    _check(table, plan, remaining)
    record, meter = Record(), Meter(progress, domain)
    scope = table if plan.is_exact else table.allot(remaining)
    prior_share = _prior_share(plan, domain, epsilon) if counts is None else counts.epsilon
    decisions, has_sites = Decisions({}), bool(plan.sites)
    if has_sites:
        if counts is None and prior_share and domain.rows is None:  # every site may look at the number of rows
            counts = _class_counts(scope, prior_share)
        decisions = Decisions(view_of(domain, epsilon, _rows_for_sites(domain, counts)))
        plan = plan.decided(decisions)
        _check_choices(table, plan)
        if plan.depth != 0:
            plan.schedule(domain, epsilon, 1)  # refuses a budget that has nothing for what other sites chose
    shares = plan.tree_shares(epsilon - prior_share)
    rows = _known_rows(scope, plan, prior_share, has_sites)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng)
    prior = _prior(scope, prior_share, counts, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, bought=True)
    known_rows = decisions.view.get("rows", Public(rows) if plan.wants_rows else None)
    resolve = partial(
        resolved_criterion, domain=domain, epsilon=epsilon, rows=None if known_rows is None else rows, prior=prior
    )
    if plan.criterion in (WEIGHTED, BY_SIGNAL):
        plan = replace(plan, criterion=resolve(plan.criterion))
    node_sites = NodeSites(plan, domain, decisions, rng, known_rows, resolve) if plan.decides_at_nodes else None
    schedules, structures = planned
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = 0 if plan.rows == "all" else int(rng.integers(2**31))
    trees: list[Tree] = []
    if plan.rows == "disjoint":
        count = settled(plan.trees)
        on_level = _level_reporter(meter, record, schedules[:1], 0, f"{count} trees, ")
        spending = TreeSpending(shares[0], schedules[0], record, 0, on_level)
        trees = Growth(scope.scatter(count, coins), plan, spending, structures, rows / count, node_sites).run()
    else:
        for number, (share, schedule) in enumerate(zip(shares, schedules, strict=True)):
            tree_table = scope if plan.is_exact else scope.allot(share)
            if plan.rows == "bootstrap":
                assert isinstance(tree_table, PublicTable)
                tree_table = tree_table.bootstrap(coins + number)
            spending = TreeSpending(share, schedule, record, number, _level_reporter(meter, record, schedules, number))
            structure = structures[number : number + 1]
            trees += Growth(tree_table.parts(), plan, spending, structure, rows, node_sites).run()
    if plan.fallback and prior is None:
        prior = tuple(float(count) for count in sum(tree.counts[0] for tree in trees) / len(trees))
    elif not plan.fallback:
        prior = None
    not_private = list(dict.fromkeys([*reasons, *plan.errata, *([] if plan.errata else record.reasons)]))
    if plan.is_exact:
        not_private = ["it reads public rows without noise"]
    privacy = Privacy(
        plan.name,
        variant,
        epsilon,
        domain.rows_per_person,
        tuple(record.steps),
        tuple(not_private),
        disjoint=plan.rows == "disjoint",
        decisions=decisions.record,
        criterion=plan.criterion if plan.is_exact and isinstance(plan.criterion, str) else "",
        person=domain.person or "",
    )
    return Ensemble(domain, tuple(trees), privacy, settled(plan.vote), prior)


def refill(
    table: ProtectedTable,
    model: Ensemble,
    plan: Plan,
    epsilon: Fraction,
    progress: ProgressCallback = ignore_progress,
) -> Ensemble:
    """Count the rows of another table into the leaves of a model.

    The new rows are charged `epsilon`; the rows that the model was fitted on are charged nothing.

    Parameters
    ----------
    table : ProtectedTable
        The new rows.
    model : Ensemble
    plan : Plan
        The plan that the model was fitted with.
    epsilon : Fraction
    progress : callable, optional
        Called with a `Progress` at each level.

    Returns
    -------
    Ensemble
        The same trees with the sums of old and new counts.

    Raises
    ------
    QuestionError
        The table has another domain than the model. Nothing was charged.
    BudgetExceeded
        The table cannot pay `epsilon`. Nothing was charged.
    """
    if table.domain.fingerprint != model.domain.fingerprint:
        raise QuestionError("the new rows have another domain than the model; open them with the model's domain.")
    plan = plan.for_counting()
    _check(table, plan, epsilon)
    # every tree sees all new rows, also where each saw rows of its own before
    plan = replace(
        plan, depth=100, prior=Fraction(0), prune="none", consistency="none", trees=len(model.trees), rows="all"
    )
    record, meter = Record(), Meter(progress, table.domain)
    scope = table.allot(epsilon)
    filled = list(zip(model.trees, plan.tree_shares(epsilon), strict=True))
    schedules = [plan.schedule(table.domain, share, tree.depth) for tree, share in filled]
    trees = []
    for number, ((tree, share), schedule) in enumerate(zip(filled, schedules, strict=True)):
        spending = TreeSpending(share, schedule, record, number, _level_reporter(meter, record, schedules, number))
        (new,) = Growth(scope.allot(share).parts(), plan, spending, [tree]).run()
        deviation = np.sqrt(tree.deviation**2 + new.deviation**2)
        trees.append(tree.with_counts(tree.counts + new.counts, deviation))
    # old and new rows are different records: a person in one of them loses what that one paid
    reasons = tuple(dict.fromkeys([*model.privacy.reasons, *record.reasons]))
    privacy = replace(model.privacy, added=(*model.privacy.added, epsilon), reasons=reasons)
    prior = model.prior
    if prior is not None:  # every tree counts the same new rows
        added = sum(new.counts[0] - old.counts[0] for new, old in zip(trees, model.trees, strict=True)) / len(trees)
        prior = tuple(float(count) for count in np.array(prior) + added)
    return replace(model, trees=tuple(trees), privacy=privacy, prior=prior)


def _level_reporter(
    meter: Meter, record: Record, schedules: Sequence[Schedule], number: int, name: str | None = None
) -> LevelCallback:
    """Return a callback that reports each level of one of several trees that are grown one after the other."""
    steps = [len(schedule.levels) + 1 for schedule in schedules]
    title = name if name is not None else f"tree {number + 1} of {len(steps)}, " if len(steps) > 1 else ""

    def report(level: int, nodes: int) -> None:
        what = f"{title}level {level} of {steps[number] - 1}: {nodes} {'node' if nodes == 1 else 'nodes'}"
        meter.at(what, sum(steps[:number]) + level, sum(steps), asked=len(record.steps))

    return report


# -- before anything is charged ---------------------------------------------------------------


def _check(table: ProtectedTable, plan: Plan, epsilon: Fraction) -> None:
    """Refuse a plan that the table cannot answer or pay."""
    domain = table.domain
    check_target(domain)
    check_attributes(domain)
    _check_choices(table, plan)
    if not plan.is_exact:
        check_budget(table, plan.name, epsilon)


def _check_choices(table: ProtectedTable, plan: Plan) -> None:
    """Refuse what is not private on private rows, and a criterion that is unknown or has no bounded sensitivity."""
    if (plan.errata or plan.rows == "bootstrap") and not isinstance(table, PublicTable):
        raise QuestionError(
            "an algorithm that is not private runs on rows that its caller declares public: fit(X, y) with unsafe=True."
        )
    waits = {"budget", "criterion"} & {*plan.sites} or plan.criterion in (WEIGHTED, BY_SIGNAL)
    if plan.split == "select" and not waits and not plan.is_exact:
        selectable_criterion(plan, table.domain, settled(plan.criterion))


def _check_leaves(
    plan: Plan,
    domain: Domain,
    schedules: Sequence[Schedule],
    structures: Sequence[Tree],
    rows: float,
    epsilon: Fraction,
) -> None:
    """Refuse trees that may have more than `max_leaves` leaves."""
    most = max(
        [plan.most_leaves(domain, schedule, rows, float(epsilon)) for schedule in schedules]
        if not structures
        else [tree.leaves for tree in structures]
    )
    if most > plan.max_leaves:
        hint = "" if domain.max_rows or domain.rows or plan.stop != "noise" else "declare rows in the domain, "
        raise QuestionError(
            f"a tree of this plan may have {most} leaves, at most max_leaves={plan.max_leaves} are allowed: lower "
            f"max_depth, declare coarser bins, {hint}or raise max_leaves. Nothing was charged."
        )


def _prior_share(plan: Plan, domain: Domain, epsilon: Fraction) -> Fraction:
    """Return what class counts of the whole table cost, 0 if nothing needs them.

    A depth rule or a site needs them if the number of rows is not public; so does a fallback.
    """
    by_rows = plan.wants_rows or plan.sites
    needed = plan.fallback or plan.criterion == WEIGHTED or (by_rows and domain.rows is None)
    return as_epsilon(epsilon * plan.prior) if plan.prior and needed else Fraction(0)


def _known_rows(scope: ProtectedTable, plan: Plan, prior_share: Fraction, has_sites: bool) -> float | None:
    """Return the number of rows, 0 if nothing depends on it, None if it has to be bought."""
    if scope.domain.rows is not None and (plan.wants_rows or has_sites):
        return float(scope.domain.rows)
    if prior_share and (plan.wants_rows or has_sites):
        return None
    # the exact size: only on rows that are public (erratum E-9)
    return float(scope.count(math.inf)) if plan.wants_rows else 0.0


def _rows_for_sites(domain: Domain, counts: Histogram | None) -> Release | Public | None:
    """Return the number of rows that sites may see: the public one, or the sum of class counts that were bought."""
    if domain.rows is not None:
        return Public(domain.rows)
    return None if counts is None else rows_in(counts)


def _class_counts(scope: ProtectedTable, share: Fraction) -> Histogram:
    """Buy the class counts of the whole table."""
    return scope.histogram(scope.domain.target_column.name, epsilon=share)


def _prior(
    scope: ProtectedTable, share: Fraction, counts: Histogram | None, record: Record
) -> tuple[float, ...] | None:
    """Return the class counts of the whole table, bought now or before; None without a share for them."""
    if not share:
        return None
    if counts is None:
        counts = _class_counts(scope, share)
    record.add(-1, 0, "prior", [counts])
    return tuple(float(count) for count in counts.values)


def _planned(
    plan: Plan, domain: Domain, shares: Sequence[Fraction], rows: float, rng: np.random.Generator, bought: bool = False
) -> tuple[list[Schedule], list[Tree]]:
    """Return the schedule of each tree, and the structures that are drawn without a look at any row.

    A tree that may have too many leaves is refused if the user chose its depth. It is made less deep if the depth
    follows from the number of rows, or if that number was bought already.
    """
    depths = [plan.depth_for(domain, rows, share) for share in shares]
    while True:
        try:
            schedules = [plan.schedule(domain, share, depth) for share, depth in zip(shares, depths, strict=True)]
            structures = [draw(plan, domain, depth, rng) for depth in depths] if plan.is_drawn_before else []
            if not plan.is_exact:  # a tree of public rows has no more leaves than rows
                _check_leaves(plan, domain, schedules, structures, rows, max(shares))
            return schedules, structures
        except QuestionError:
            if not (bought or plan.has_depth_rule) or not any(depths):
                raise
        depths = [min(depth, max(depths) - 1) for depth in depths]
