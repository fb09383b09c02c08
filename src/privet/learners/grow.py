"""ProtectedTable + Plan -> Ensemble: what can be refused is refused first, then trees are grown.

The schedules, the structures that coins draw and the choices of a plan's sites follow from what is
public or was released, as does everything that `Growth` asks then: the kernel's charges are the whole
cost (docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from privet.errors import QuestionError
from privet.kernel import Domain, Histogram, ProtectedTable, Public, Release, as_epsilon
from privet.lab import PublicTable
from privet.learners.algorithm import check_attributes, check_budget, check_target, paid_for
from privet.learners.criteria import followed, usable
from privet.learners.growth import Begin, Growth
from privet.learners.node_sites import NodeSites
from privet.learners.plan import BY_SIGNAL, WEIGHTED, Plan, Schedule
from privet.learners.progress import Meter, Tell
from privet.learners.sites import Decisions, rows_in, settled, view_of
from privet.learners.structure import draw
from privet.models.privacy_record import Privacy, Record
from privet.models.tree import Ensemble, Tree


def grow(
    table: ProtectedTable,
    plan: Plan,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    variant: str = "corrected",
    counts: Histogram | None = None,
    reasons: Sequence[str] = (),
    progress: Tell = lambda told: None,
) -> Ensemble:
    """Fit a plan within `epsilon`. What cannot be done is refused before anything is charged.

    `counts` are class counts of the table that were bought before; what they cost is part of `epsilon`.
    """
    domain = table.domain
    _check(table, plan, epsilon - paid_for(counts, domain))
    record, meter = Record(), Meter(progress, domain)
    scope = table if plan.is_exact else table.allot(epsilon - paid_for(counts, domain))
    bought = _prior_share(plan, domain, epsilon) if counts is None else counts.epsilon
    decisions, has_sites = Decisions({}), bool(plan.sites)
    if has_sites:
        if counts is None and bought and domain.rows is None:  # all of them may ask how many rows there are
            counts = _class_counts(scope, bought)
        decisions = Decisions(view_of(domain, epsilon, _rows_seen(domain, counts)))
        plan = plan.decided(decisions)
        _check_choices(table, plan)
        if plan.depth != 0:
            plan.schedule(domain, epsilon, 1)  # a budget that has nothing for what others chose is refused now
    shares = plan.tree_shares(epsilon - bought)
    rows = _known_rows(scope, plan, bought, has_sites)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng)
    prior = _prior(scope, bought, counts, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, bought=True)
    seen = decisions.view.get("rows", Public(rows) if plan.wants_rows else None)
    follow = partial(followed, domain=domain, epsilon=epsilon, rows=None if seen is None else rows, prior=prior)
    if plan.criterion in (WEIGHTED, BY_SIGNAL):
        plan = replace(plan, criterion=follow(plan.criterion))
    node_sites = NodeSites(plan, domain, decisions, rng, seen, follow) if plan.decides_at_nodes else None
    schedules, structures = planned
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = 0 if plan.rows == "all" else int(rng.integers(2**31))
    trees: list[Tree] = []
    if plan.rows == "disjoint":
        many = settled(plan.trees)
        begin = _teller(meter, record, schedules[:1], 0, f"{many} trees, ")
        parts = scope.scatter(many, coins)
        trees = Growth(
            parts, plan, schedules[0], shares[0], record, 0, structures, begin, rows / many, node_sites
        ).run()
    else:
        for number, (share, schedule) in enumerate(zip(shares, schedules, strict=True)):
            begin = _teller(meter, record, schedules, number)
            own = scope if plan.is_exact else scope.allot(share)
            if plan.rows == "bootstrap":
                assert isinstance(own, PublicTable)
                own = own.bootstrap(coins + number)
            given = structures[number : number + 1]
            trees += Growth(own.parts(), plan, schedule, share, record, number, given, begin, rows, node_sites).run()
    if plan.fallback and prior is None:
        prior = tuple(float(count) for count in sum(tree.counts[0] for tree in trees) / len(trees))
    elif not plan.fallback:
        prior = None
    found = list(dict.fromkeys([*reasons, *plan.errata, *([] if plan.errata else record.reasons)]))
    if plan.is_exact:
        found = ["it reads public rows without noise"]
    privacy = Privacy(
        plan.name,
        variant,
        epsilon,
        domain.rows_per_person,
        tuple(record.steps),
        tuple(found),
        disjoint=plan.rows == "disjoint",
        decisions=decisions.record,
        criterion=plan.criterion if plan.is_exact and isinstance(plan.criterion, str) else "",
    )
    return Ensemble(domain, tuple(trees), privacy, settled(plan.vote), prior)


def refill(
    table: ProtectedTable, model: Ensemble, plan: Plan, epsilon: Fraction, progress: Tell = lambda told: None
) -> Ensemble:
    """Add the rows of another table to the leaves of a model: a new charge on the new rows, none on the old."""
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
        begin = _teller(meter, record, schedules, number)
        own = scope.allot(share).parts()
        (new,) = Growth(own, plan, schedule, share, record, number, [tree], begin).run()
        both = np.sqrt(tree.deviation**2 + new.deviation**2)
        trees.append(tree.with_counts(tree.counts + new.counts, both))
    # old and new rows are different records: a person in one of them loses what that one paid
    reasons = tuple(dict.fromkeys([*model.privacy.reasons, *record.reasons]))
    privacy = replace(model.privacy, added=(*model.privacy.added, epsilon), reasons=reasons)
    prior = model.prior
    if prior is not None:  # every tree counts the same new rows
        added = sum(new.counts[0] - old.counts[0] for new, old in zip(trees, model.trees, strict=True)) / len(trees)
        prior = tuple(float(count) for count in np.array(prior) + added)
    return replace(model, trees=tuple(trees), privacy=privacy, prior=prior)


def _teller(meter: Meter, record: Record, schedules: Sequence[Schedule], number: int, name: str | None = None) -> Begin:
    """Tells of each level of one of several trees that are grown one after the other."""
    steps = [len(schedule.levels) + 1 for schedule in schedules]
    title = name if name is not None else f"tree {number + 1} of {len(steps)}, " if len(steps) > 1 else ""

    def begin(level: int, nodes: int) -> None:
        what = f"{title}level {level} of {steps[number] - 1}: {nodes} {'node' if nodes == 1 else 'nodes'}"
        meter.at(what, sum(steps[:number]) + level, sum(steps), asked=len(record.steps))

    return begin


# -- before anything is charged ---------------------------------------------------------------


def _check(table: ProtectedTable, plan: Plan, epsilon: Fraction) -> None:
    domain = table.domain
    check_target(domain)
    check_attributes(domain)
    _check_choices(table, plan)
    if not plan.is_exact:
        check_budget(table, plan.name, epsilon)


def _check_choices(table: ProtectedTable, plan: Plan) -> None:
    if (plan.errata or plan.rows == "bootstrap") and not isinstance(table, PublicTable):
        raise QuestionError(
            "an algorithm that is not private runs on rows that its caller declares public: fit(X, y) with unsafe=True."
        )
    waits = {"budget", "criterion"} & {*plan.sites} or plan.criterion in (WEIGHTED, BY_SIGNAL)
    if plan.split == "select" and not waits and not plan.is_exact:
        usable(plan, table.domain, settled(plan.criterion))  # unknown, or without a bound: said now


def _check_leaves(
    plan: Plan,
    domain: Domain,
    schedules: Sequence[Schedule],
    structures: Sequence[Tree],
    rows: float,
    epsilon: Fraction,
) -> None:
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
    """What buys class counts of the whole table: for a depth or site where rows are not public, or as a fallback."""
    by_rows = plan.wants_rows or plan.sites
    needed = plan.fallback or plan.criterion == WEIGHTED or (by_rows and domain.rows is None)
    return as_epsilon(epsilon * plan.prior) if plan.prior and needed else Fraction(0)


def _known_rows(scope: ProtectedTable, plan: Plan, bought: Fraction, has_sites: bool) -> float | None:
    """The number of rows as far as a depth needs it or sites have seen it; None where it has to be bought."""
    if scope.domain.rows is not None and (plan.wants_rows or has_sites):
        return float(scope.domain.rows)
    if bought and (plan.wants_rows or has_sites):
        return None
    # the size as it is: only on rows that are public (erratum E-9)
    return float(scope.count(math.inf)) if plan.wants_rows else 0.0


def _rows_seen(domain: Domain, counts: Histogram | None) -> Release | Public | None:
    """The number of rows for sites to see: the public one, or what class counts tell that were bought."""
    if domain.rows is not None:
        return Public(domain.rows)
    return None if counts is None else rows_in(counts)


def _class_counts(scope: ProtectedTable, share: Fraction) -> Histogram:
    return scope.histogram(scope.domain.target_column.name, epsilon=share)


def _prior(
    scope: ProtectedTable, share: Fraction, counts: Histogram | None, record: Record
) -> tuple[float, ...] | None:
    """The class counts of the whole table, if they are bought, now or before."""
    if not share:
        return None
    if counts is None:
        counts = _class_counts(scope, share)
    record.add(-1, 0, "prior", [counts])
    return tuple(float(count) for count in counts.values)


def _planned(
    plan: Plan, domain: Domain, shares: Sequence[Fraction], rows: float, rng: np.random.Generator, bought: bool = False
) -> tuple[list[Schedule], list[Tree]]:
    """The schedule of each tree, and the structures of those that are drawn without looking at a row.

    A tree whose depth somebody asked for is refused if it does not fit. One whose depth follows from the
    number of rows is made less deep, and so is one that shows only after that number was bought.
    """
    depths = [plan.depth_for(domain, rows, share) for share in shares]
    while True:
        try:
            schedules = [plan.schedule(domain, share, depth) for share, depth in zip(shares, depths, strict=True)]
            structures = [draw(plan, domain, depth, rng) for depth in depths] if plan.is_drawn_before else []
            if not plan.is_exact:  # public rows bound the size of their tree themselves
                _check_leaves(plan, domain, schedules, structures, rows, max(shares))
            return schedules, structures
        except QuestionError:
            if not (bought or plan.has_depth_rule) or not any(depths):
                raise
        depths = [min(depth, max(depths) - 1) for depth in depths]
