"""A fit of trees: `grow` carries out a plan on a table, and `refill` counts new rows into the trees of a model.

What can be refused is refused before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from privet.errors import QuestionError
from privet.kernel import PURE, Domain, as_epsilon, rho_of
from privet.lab import PublicTable
from privet.learners.algorithm import (
    Exchange,
    Meter,
    ProgressCallback,
    Record,
    check_attributes,
    check_budget,
    check_target,
    cost_of_counts,
    ignore_progress,
)
from privet.learners.levels import Growth, LevelCallback, TreeSpending
from privet.learners.plan import BY_SIGNAL, WEIGHTED, Plan, Schedule, resolved_criterion, settled
from privet.learners.sites import Decisions, NodeSites, rows_in, view_of
from privet.learners.structure import draw
from privet.models.privacy_record import Privacy
from privet.models.tree import Ensemble, Tree
from privet.release import Histogram, Public, Release
from privet.table import Parts, ProtectedTable


@dataclass(frozen=True)
class TreeFit:
    """The trees of one fit, and what they share.

    Parameters
    ----------
    table : ProtectedTable
        It may spend what the trees cost, and no more.
    plan : Plan
        Its sites of the run have decided.
    shares : sequence of Fraction
        The budget of each tree.
    schedules : sequence of Schedule
        How each tree shares its budget along a path.
    structures : sequence of Tree
        The structure of each tree if it is given, else empty.
    exchange : Exchange
        What shares of epsilon cost.
    record : Record
        Where questions are written down.
    meter : Meter
        Where progress is reported.
    rows : float, default 0.0
        The number of rows of the table, for sizes that are estimated.
    node_sites : NodeSites, optional
        The sites that decide at every node, if the plan has some.
    """

    table: ProtectedTable
    plan: Plan
    shares: Sequence[Fraction]
    schedules: Sequence[Schedule]
    structures: Sequence[Tree]
    exchange: Exchange
    record: Record
    meter: Meter
    rows: float = 0.0
    node_sites: NodeSites | None = None

    def grow(self, coins: int = 0, jobs: int | None = None) -> list[Tree]:
        """Grow all trees.

        Parameters
        ----------
        coins : int, default 0
            The public seed for trees that see some of the rows.
        jobs : int, optional
            How many trees grow at once, as in `grow`.
        """
        if self.plan.rows == "disjoint":
            count = settled(self.plan.trees)
            on_level = self._reporter(self.schedules[:1], 0, f"{count} trees, ")
            parts = self.table.scatter(count, coins)
            return self._grown(parts, 0, self.structures, self.rows / count, self.record, on_level)
        parallel = jobs is not None and self.node_sites is None  # sites toss coins, one node after the other
        tables = [self.table if self.plan.is_exact else self.table.allot(share) for share in self.shares]
        if parallel:
            tables = [table.apart() for table in tables]
        records = [Record() if parallel else self.record for _ in tables]

        def tree(number: int) -> list[Tree]:
            table = tables[number]
            if self.plan.rows == "bootstrap":
                assert isinstance(table, PublicTable)
                table = table.bootstrap(coins + number)
            # trees that grow at once have no order of levels
            on_level = _ignore_level if parallel else self._reporter(self.schedules, number)
            structure = self.structures[number : number + 1]
            return self._grown(table.parts(), number, structure, self.rows, records[number], on_level)

        trees = []
        for number, grown in enumerate(_in_order(tree, len(tables), jobs if parallel else 1)):
            trees += grown
            if parallel:
                self.record.extend(records[number])
                title = f"tree {number + 1} of {len(tables)}"
                self.meter.at(title, number + 1, len(tables), asked=len(self.record.steps))
        return trees

    def _grown(
        self,
        parts: Parts,
        number: int,
        structures: Sequence[Tree],
        rows: float,
        record: Record,
        on_level: LevelCallback,
    ) -> list[Tree]:
        """Grow one tree, or several on disjoint rows at once."""
        spending = TreeSpending(self.shares[number], self.schedules[number], record, number, on_level, self.exchange)
        return Growth(parts, self.plan, spending, structures, rows, self.node_sites).run()

    def _reporter(self, schedules: Sequence[Schedule], number: int, name: str | None = None) -> LevelCallback:
        """Return a callback that reports each level of one of several trees that are grown one after the other."""
        steps = [len(schedule.levels) + 1 for schedule in schedules]
        title = name if name is not None else f"tree {number + 1} of {len(steps)}, " if len(steps) > 1 else ""

        def report(level: int, nodes: int) -> None:
            what = f"{title}level {level} of {steps[number] - 1}: {nodes} {'node' if nodes == 1 else 'nodes'}"
            self.meter.at(what, sum(steps[:number]) + level, sum(steps), asked=len(self.record.steps))

        return report


def _ignore_level(level: int, nodes: int) -> None:
    """Report nothing."""


def _in_order(tree: Callable[[int], list[Tree]], count: int, jobs: int | None) -> Iterator[list[Tree]]:
    """Yield what becomes of each tree, in their order, `jobs` of them at work at once."""
    if jobs is None or jobs == 1:
        yield from map(tree, range(count))
        return
    with ThreadPoolExecutor(jobs, "privet-tree") as pool:
        waiting = [pool.submit(tree, number) for number in range(count)]
        try:
            for grown in waiting:
                yield grown.result()
        finally:
            for rest in waiting:  # after an error no further tree is begun, and nothing more is charged
                rest.cancel()


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
    jobs: int | None = None,
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
    jobs : int, optional
        How many trees grow at once, in threads. The trees are the same whatever the number. By default they grow one
        after the other; those that see disjoint rows always grow together, and so do the nodes that sites decide on
        one after the other.

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
    domain, delta = table.domain, table.unit.delta
    if delta is not None and plan.is_exact:
        raise QuestionError(f"{plan.name} reads rows without noise: fit it to public rows.")
    bought = cost_of_counts(counts, domain, Exchange() if plan.is_exact else Exchange.of(table, epsilon))
    remaining = epsilon - bought
    _check(table, plan, remaining)
    record, meter = Record(), Meter(progress, domain)
    # where losses are counted in rho, a share of epsilon costs the same share of the rho of the fit
    scope = table if plan.is_exact else table.spending(remaining)
    exchange = Exchange() if plan.is_exact else Exchange.of(scope, remaining)
    plan = _with_least_error(plan, scope)
    prior_share = _prior_share(plan, domain, epsilon) if counts is None else bought
    decisions = None
    if plan.sites:
        if counts is None and prior_share and domain.rows is None:  # every site may look at the number of rows
            counts = _class_counts(scope, prior_share)
        decisions = Decisions(view_of(domain, exchange.worth(epsilon), _rows_for_sites(domain, counts)))
        plan = _with_least_error(decisions.decided(plan), scope)
        _check_choices(table, plan)
        if plan.depth != 0:
            plan.schedule(domain, epsilon, 1)  # refuses a budget that has nothing for what other sites chose
    shares = plan.tree_shares(epsilon - prior_share)
    rows = _known_rows(scope, plan, prior_share, decisions is not None)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng, exchange)
    prior = _prior(scope, prior_share, counts, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, exchange, bought=True)
    known_rows: Release | Public | None = Public(rows) if plan.wants_rows else None
    if decisions is not None:
        known_rows = decisions.view.get("rows", known_rows)
    resolve = partial(
        resolved_criterion,
        domain=domain,
        epsilon=exchange.worth(epsilon),
        rows=None if known_rows is None else rows,
        prior=prior,
    )
    if plan.criterion in (WEIGHTED, BY_SIGNAL):
        plan = replace(plan, criterion=resolve(plan.criterion))
    node_sites = None
    if decisions is not None and plan.decides_at_nodes:
        node_sites = NodeSites(plan, domain, decisions, rng, known_rows, resolve, exchange)
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = 0 if plan.rows == "all" else int(rng.integers(2**31))
    trees = TreeFit(scope, plan, shares, *planned, exchange, record, meter, rows, node_sites).grow(coins, jobs)
    if not plan.fallback:
        prior = None
    elif prior is None:
        prior = tuple(float(count) for count in sum(tree.counts[0] for tree in trees) / len(trees))
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
        decisions=() if decisions is None else decisions.record,
        criterion=plan.criterion if plan.is_exact and isinstance(plan.criterion, str) else "",
        person=domain.person or "",
        delta=delta,
        rho=None if delta is None else rho_of(epsilon, delta),
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
    record, scope, shares = Record(), table.spending(epsilon), plan.tree_shares(epsilon)
    schedules = [
        plan.schedule(table.domain, share, tree.depth) for tree, share in zip(model.trees, shares, strict=True)
    ]
    exchange, meter = Exchange.of(scope, epsilon), Meter(progress, table.domain)
    counted = TreeFit(scope, plan, shares, schedules, model.trees, exchange, record, meter).grow()
    trees = [
        old.with_counts(old.counts + new.counts, np.sqrt(old.deviation**2 + new.deviation**2))
        for old, new in zip(model.trees, counted, strict=True)
    ]
    # old and new rows are different records: a person in one of them loses what that one paid
    reasons = tuple(dict.fromkeys([*model.privacy.reasons, *record.reasons]))
    privacy = replace(model.privacy, added=(*model.privacy.added, epsilon), reasons=reasons)
    prior = model.prior
    if prior is not None:  # every tree counts the same new rows
        added = sum(new.counts[0] - old.counts[0] for new, old in zip(trees, model.trees, strict=True)) / len(trees)
        prior = tuple(float(count) for count in np.array(prior) + added)
    return replace(model, trees=tuple(trees), privacy=privacy, prior=prior)


# -- before anything is charged ---------------------------------------------------------------


def _check(table: ProtectedTable, plan: Plan, epsilon: Fraction) -> None:
    """Refuse a plan that the table cannot answer or pay."""
    domain = table.domain
    check_target(domain)
    check_attributes(domain)
    _check_choices(table, plan)
    if not plan.is_exact:
        check_budget(table, plan.name, epsilon)


def _with_least_error(plan: Plan, table: ProtectedTable) -> Plan:
    """Return the plan with the selection that has the least error where losses are counted in rho.

    Permute-and-flip for epsilon costs epsilon^2 / 2 there, the exponential mechanism a quarter of it.
    """
    changes = table.unit.delta is not None and plan.mechanism == PURE.selection
    return replace(plan, mechanism=table.unit.selection) if changes else plan


def _check_choices(table: ProtectedTable, plan: Plan) -> None:
    """Refuse what is not private on private rows, and a criterion that is unknown or has no bounded sensitivity."""
    if (plan.errata or plan.rows == "bootstrap") and not isinstance(table, PublicTable):
        raise QuestionError(
            "an algorithm that is not private runs on rows that its caller declares public: fit(X, y) with unsafe=True."
        )
    waits = {"budget", "criterion"} & {*plan.sites} or plan.criterion in (WEIGHTED, BY_SIGNAL)
    if plan.split == "select" and not waits and not plan.is_exact:
        plan.usable_criterion(table.domain, settled(plan.criterion))


def _check_leaves(
    plan: Plan,
    domain: Domain,
    schedules: Sequence[Schedule],
    structures: Sequence[Tree],
    rows: float,
    epsilon: Fraction,
    exchange: Exchange,
) -> None:
    """Refuse trees that may have more than `max_leaves` leaves."""
    most = max(
        [plan.most_leaves(domain, schedule, rows, epsilon, exchange.worth) for schedule in schedules]
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
    plan: Plan,
    domain: Domain,
    shares: Sequence[Fraction],
    rows: float,
    rng: np.random.Generator,
    exchange: Exchange,
    bought: bool = False,
) -> tuple[list[Schedule], list[Tree]]:
    """Return the schedule of each tree, and the structures that are drawn without a look at any row.

    A tree that may have too many leaves is refused if the user chose its depth. It is made less deep if the depth
    follows from the number of rows, or if that number was bought already.
    """
    depths = [plan.depth_for(domain, rows, exchange.worth(share)) for share in shares]
    while True:
        try:
            schedules = [plan.schedule(domain, share, depth) for share, depth in zip(shares, depths, strict=True)]
            structures = [draw(plan, domain, depth, rng) for depth in depths] if plan.is_drawn_before else []
            if not plan.is_exact:  # a tree of public rows has no more leaves than rows
                _check_leaves(plan, domain, schedules, structures, rows, max(shares), exchange)
            return schedules, structures
        except QuestionError:
            if not (bought or plan.has_depth_rule) or not any(depths):
                raise
        depths = [min(depth, max(depths) - 1) for depth in depths]
