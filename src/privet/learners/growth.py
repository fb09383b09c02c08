"""Growth of trees: `grow` fits a plan on a table, and `Growth` grows a tree level by level.

What can be refused is refused first. Then each level asks one batch of questions. It buys the sizes of
its nodes if the plan wants them, turns the nodes that stop into leaves, asks for the splits of the
others, and divides them. Everything it sees is a release, and everything it decides is a function of
releases and of public coins, as are schedules, drawn structures and the decisions of sites. So the
charges of the kernel are the whole cost (docs/explanation/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel import PURE, Criterion, Domain, PerPart, as_epsilon, rho_of
from privet.lab import PublicTable
from privet.learners import prune
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
from privet.learners.plan import BY_SIGNAL, NOW, WEIGHTED, Level, Plan, Schedule, checked_at_node
from privet.learners.sites import Decisions, estimate_of, is_site, rows_in, settled, signal_of, view_of
from privet.learners.splitting import (
    Attributes,
    CutRanges,
    NodeSplit,
    attribute_of,
    children_of,
    cut_of,
    cut_ranges,
    cut_ranges_below,
    find_splits,
    random_split,
    resolved_criterion,
    selectable_criterion,
    splittable,
)
from privet.learners.structure import draw, splits_at
from privet.models.model import Floats, Integers
from privet.models.privacy_record import Privacy
from privet.models.tree import Ensemble, Tree
from privet.release import Histogram, Public, Release
from privet.table import Parts, ProtectedTable

LevelCallback = Callable[[int, int], None]  # called with each level and the number of its nodes
SplitMethod = tuple[str, Criterion | None]  # how a node finds its split, and its criterion if not the plan's


@dataclass(frozen=True)
class TreeSpending:
    """What one tree may spend, and where its questions are recorded and reported.

    Parameters
    ----------
    epsilon : Fraction
        The budget of the tree.
    schedule : Schedule
        How it is shared along a path.
    record : Record
        Where the questions are written down.
    number : int
        The number of the tree in the record.
    on_level : callable
        Called with each level and the number of its nodes.
    exchange : Exchange
        What shares of epsilon cost.
    """

    epsilon: Fraction
    schedule: Schedule
    record: Record
    number: int
    on_level: LevelCallback
    exchange: Exchange

    def pay(self, level: int, question: str, releases: Sequence[Any], paid: PerPart[Fraction]) -> PerPart[Fraction]:
        """Record a question to some nodes of a level, and return what their paths have paid afterwards."""
        loss = releases[0].about.loss
        if not loss:  # public rows pay nothing
            return paid
        self.record.add(self.number, level, question, releases)
        return paid.map(self.exchange.share(loss).__add__)


@dataclass(frozen=True)
class Nodes:
    """The open nodes of one level, in order.

    Parameters
    ----------
    level : int
    tree : array of int
        The tree of each node.
    unused : PerPart of tuple of str
        The attributes that its path may still split by.
    estimate : array of float
        Its number of rows, as if every split divided them evenly.
    ranges : sequence of mapping
        Where coins may cut; empty if no coin is tossed.
    paid : PerPart of Fraction
        What its path has paid.
    sizes : sequence of Release or Public, default ()
        Its number of rows; empty if it was not asked.
    """

    level: int
    tree: Integers
    unused: PerPart[Attributes]
    estimate: Floats
    ranges: Sequence[CutRanges]
    paid: PerPart[Fraction]
    sizes: Sequence[Release | Public] = ()

    @classmethod
    def roots(cls, trees: int, attributes: Attributes, rows: float, ranges: CutRanges) -> Nodes:
        """Return the roots of trees, which have used and paid nothing."""
        return cls(
            0,
            np.arange(trees),
            PerPart.same(attributes, trees),
            np.full(trees, rows),
            [ranges] * trees if ranges else (),
            PerPart.same(Fraction(0), trees),
        )

    def take(self, nodes: Integers) -> Nodes:
        """Return some of the nodes, without their sizes."""
        return Nodes(
            self.level,
            self.tree[nodes],
            self.unused.take(nodes),
            self.estimate[nodes],
            [self.ranges[node] for node in nodes.tolist()] if self.ranges else (),
            self.paid.take(nodes),
        )

    def below(
        self, children: Integers, unused: PerPart[Attributes], ranges: Sequence[CutRanges], paid: PerPart[Fraction]
    ) -> Nodes:
        """Return the nodes of the next level.

        Parameters
        ----------
        children : array of int
            How many children each node has.
        unused : PerPart of tuple of str
            The attributes that each child may split by.
        ranges : sequence of mapping
            Where coins may cut in each child.
        paid : PerPart of Fraction
            What the path of each node has paid; its children inherit it.

        Returns
        -------
        Nodes
        """
        return Nodes(
            self.level + 1,
            np.repeat(self.tree, children),
            unused,
            np.repeat(self.estimate / children, children),
            ranges,
            paid.repeat(children),
        )

    def ranges_of(self, node: int) -> CutRanges:
        """Return where coins may cut a node."""
        return self.ranges[node] if self.ranges else {}


@dataclass(frozen=True)
class LevelArrays:
    """What is known of the nodes of one level, in arrays that are filled in as answers arrive.

    Parameters
    ----------
    tree : array of int
        The tree of each node.
    column : array of int
        The position of the attribute that it splits by, -1 for a leaf.
    at : array of int
        The grid index from which on rows go right, -1 for a split into cells.
    size : array of float
        Its number of rows, NaN if it was not asked.
    size_deviation : array of float
        The standard deviation of the noise in its size.
    counts : array of float
        The class counts of a leaf, [node, class].
    deviation : array of float
        The standard deviation of the noise in a class count.
    """

    tree: Integers
    column: Integers
    at: Integers
    size: Floats
    size_deviation: Floats
    counts: Floats
    deviation: Floats

    @classmethod
    def unknown(cls, nodes: Nodes, classes: int) -> LevelArrays:
        """Return the arrays of nodes of which nothing is known: leaves without counts."""
        count = len(nodes.tree)
        return cls(
            nodes.tree,
            np.full(count, -1),
            np.full(count, -1),
            np.full(count, np.nan),
            np.zeros(count),
            np.zeros((count, classes)),
            np.zeros(count),
        )

    def __len__(self) -> int:
        return len(self.tree)


@dataclass(frozen=True)
class NodeSites:
    """The sites of a plan that decide anew at every node, and what they are shown.

    They see public facts and what was released about the path of a node, so their decisions are post-processing.
    Whatever a node is asked then, its own rows pay for it (docs/explanation/privacy.md#partition).

    Parameters
    ----------
    plan : Plan
    domain : Domain
    decisions : Decisions
        Asks the sites and records their decisions.
    rng : numpy.random.Generator
        Public coins.
    rows : Release, Public or None
        The number of rows of the table, if it is known.
    resolve : callable
        Returns a criterion that depends on nothing any more, as `resolved_criterion` does.
    exchange : Exchange
        What shares of epsilon are worth.
    """

    plan: Plan
    domain: Domain
    decisions: Decisions
    rng: np.random.Generator
    rows: Release | Public | None
    resolve: Callable[[Any], str | Criterion]
    exchange: Exchange

    def decide(
        self, name: str, nodes: Nodes, node: int, epsilon: Fraction, check: Callable[[Any], Any] | None = None
    ) -> Any:
        """Ask the site of a field about one node.

        Parameters
        ----------
        name : str
            The field of the plan.
        nodes : Nodes
        node : int
            The index of the node in its level.
        epsilon : Fraction
            The budget of its tree.
        check : callable, optional
            Returns the value to use, or raises; else the checks of the field.

        Returns
        -------
        object

        Raises
        ------
        QuestionError
            The site decided something that cannot be done.
        """
        worth = self.exchange.worth(epsilon - nodes.paid[node])
        view: dict[str, Release | Public] = {
            "depth": Public(nodes.level),
            "left": Public(len(nodes.unused[node])),
            "budget": Public(float(worth)),
        }
        if nodes.sizes:
            view["rows"] = nodes.sizes[node]
        elif self.rows is not None:
            view["rows"] = estimate_of(self.rows, float(nodes.estimate[node]))
        if "rows" in view:
            view["signal"] = signal_of(view["rows"], float(worth))
        site = getattr(self.plan, name)
        return self.decisions.ask(name, site, check or partial(checked_at_node, name), view)

    def criterion(self, nodes: Nodes, node: int, epsilon: Fraction, shares: Level) -> Criterion:
        """Return the criterion by which a node selects its split.

        Parameters
        ----------
        nodes : Nodes
        node : int
            The index of the node in its level.
        epsilon : Fraction
            The budget of its tree.
        shares : Level
            What the node may pay.

        Returns
        -------
        Criterion

        Raises
        ------
        QuestionError
            The level has no budget for a selection, or the criterion cannot be used.
        """
        if not self.plan.is_exact:
            points = self.plan.numeric == "separate" and bool(cut_ranges(self.plan, self.domain))
            self.plan.check_shares(shares, "split", *["points"] * points)
        if is_site(self.plan.criterion):
            rule: Criterion = self.decide("criterion", nodes, node, epsilon, self._usable)
            return rule
        return self._usable(self.plan.criterion)

    def _usable(self, choice: Any) -> Criterion:
        """Return a criterion, or refuse it as a wrong question."""
        try:
            return selectable_criterion(self.plan, self.domain, self.resolve(choice))
        except PrivacyError as error:  # nothing was asked, so no promise is in danger
            raise QuestionError(str(error)) from None


class Growth:
    """Grows one tree, or several on disjoint rows at once.

    Parameters
    ----------
    parts : Parts
        The rows of each tree; each part is the root of one.
    plan : Plan
        Its sites of the run have decided.
    spending : TreeSpending
        What each tree may spend.
    structures : sequence of Tree
        Given structures, one for each part, whose leaves are counted; if empty, nodes look for their splits.
    rows : float, default 0.0
        The number of rows of each part, for sizes that are estimated.
    node_sites : NodeSites, optional
        The sites that decide at every node, if the plan has some.
    """

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        spending: TreeSpending,
        structures: Sequence[Tree],
        rows: float = 0.0,
        node_sites: NodeSites | None = None,
    ) -> None:
        self._parts, self._plan, self._spending = parts, plan, spending
        self._structures, self._rows, self._node_sites = structures, rows, node_sites
        self._schedule, self._epsilon = spending.schedule, spending.epsilon
        self._domain, self._target = parts.domain, parts.domain.target_column
        self._position = {name: i for i, name in enumerate(self._domain.attributes)}
        self._sites = frozenset(plan.sites)  # those of nodes: the others have decided
        by_coins = not structures and ("split" in self._sites or plan.split == "random")
        self._ranges: CutRanges = cut_ranges(plan, self._domain) if by_coins else {}
        self._mixed = False  # whether nodes of one level were asked different questions
        self._levels: list[LevelArrays] = []

    def run(self) -> list[Tree]:
        """Grow the trees, one for each part."""
        parts, trees = self._parts, len(self._parts)
        nodes = Nodes.roots(trees, self._domain.attributes, self._rows, self._ranges)
        while len(parts):
            self._spending.on_level(nodes.level, len(parts))
            parts, nodes = self._level(parts, nodes)
        return [self._finished(tree) for tree in range(trees)]

    def _level(self, parts: Parts, nodes: Nodes) -> tuple[Parts, Nodes]:
        """Ask what a level asks, keep the answers, and return the nodes of the next level with their rows."""
        shares = self._schedule.levels[nodes.level] if nodes.level < len(self._schedule.levels) else None
        arrays = LevelArrays.unknown(nodes, len(self._target.values))
        self._levels.append(arrays)
        nodes = self._sized(parts, arrays, nodes, self._schedule.leaf_size if shares is None else shares.size)
        closing = self._closing(arrays, nodes, shares)
        methods = self._split_methods(nodes, shares, closing)
        self._close(parts, arrays, nodes, np.flatnonzero(closing))
        open_nodes = np.flatnonzero(~closing)
        if not len(open_nodes):
            return parts.take([]), nodes
        assert shares is not None
        open_parts, nodes = parts.take(open_nodes), nodes.take(open_nodes)
        if self._structures:
            at_level = (split for tree in self._structures for split in splits_at(tree, nodes.level, self._domain))
            splits, paid = PerPart.of(at_level), nodes.paid
        else:
            splits, paid = self._split(open_parts, nodes, methods, shares)
        arrays.column[open_nodes] = splits.map(lambda split: self._position[attribute_of(split)]).array()
        arrays.at[open_nodes] = splits.map(lambda split: cut_of(split, self._domain)).array()
        children = splits.map(lambda split: children_of(split, self._domain)).array()
        unused, ranges = self._left_below(nodes, splits, methods, children)
        return open_parts.partition(splits), nodes.below(children, unused, ranges, paid)

    # -- which nodes become leaves ----------------------------------------------------------

    def _sized(self, parts: Parts, arrays: LevelArrays, nodes: Nodes, share: Fraction) -> Nodes:
        """Return the nodes with their sizes, if there is a share for them or the rows are public."""
        if self._plan.is_exact:
            exact = parts.histogram(self._target.name, epsilon=math.inf)
            arrays.counts[:] = exact.array()
            arrays.size[:] = arrays.counts.sum(axis=1)
            return replace(nodes, sizes=[Public(size) for size in arrays.size.tolist()] if self._sites else ())
        if not share:
            return nodes
        sizes = parts.count(share)
        arrays.size[:] = sizes.array()
        arrays.size_deviation[:] = sizes[0].noise.deviation
        return replace(nodes, paid=self._spending.pay(nodes.level, "size", sizes, nodes.paid), sizes=sizes)

    def _closing(self, arrays: LevelArrays, nodes: Nodes, shares: Level | None) -> NDArray[np.bool_]:
        """Return which nodes become leaves, by what was released about them and what is public."""
        if shares is None:
            return np.ones(len(nodes.tree), dtype=np.bool_)
        if self._structures:
            return np.concatenate([tree.is_leaf[tree.depths == nodes.level] for tree in self._structures])
        closing = nodes.unused.map(lambda names: not names).array()
        going = np.flatnonzero(~closing)
        stops: dict[str, Any] = {}
        if "stop" in self._sites:
            assert self._node_sites is not None
            for node in going.tolist():
                stops.setdefault(self._node_sites.decide("stop", nodes, node, self._epsilon), []).append(node)
        else:
            stops[settled(self._plan.stop)] = going
        for stop, stopping in stops.items():
            closing[stopping] = self._stopped(stop, arrays, nodes, stopping, shares)
        # the public bound was checked before growth; extreme noise must not fill the memory all the same
        if sum(len(level) for level in self._levels) > 4 * self._plan.max_leaves * len(self._parts):
            closing[:] = True
        return closing

    def _stopped(
        self, stop: str, arrays: LevelArrays, nodes: Nodes, some: Sequence[int], shares: Level
    ) -> NDArray[np.bool_] | bool:
        """Return which of some nodes become leaves by one rule."""
        classes = len(self._target.values)
        if stop == "noise":
            self._plan.check_shares(shares, "size")
            children = nodes.unused.take(some).map(
                lambda names: max(self._plan.children(self._domain, name) for name in names)
            )
            largest = children.array()
            deviation = math.sqrt(2) / float(self._spending.exchange.worth(shares.size))
            return np.asarray(arrays.size[some] / (largest * classes) < deviation)
        if stop == "estimate":
            if self._node_sites is not None and self._node_sites.rows is None:
                raise QuestionError(
                    "to stop by an estimated size takes the number of rows: declare rows in the domain, or give the "
                    "plan a prior share that buys it."
                )
            left = nodes.paid.take(some).map(lambda paid: self._spending.exchange.worth(self._epsilon - paid))
            least = left.map(lambda worth: self._plan.rows_to_split(classes, worth))
            return np.asarray(nodes.estimate[some] < least.array())
        if stop == "pure":
            few = arrays.size[some] < self._plan.min_rows
            return np.asarray(few | ((arrays.counts[some] > 0).sum(axis=1) < 2))
        return stop == NOW

    def _close(self, parts: Parts, arrays: LevelArrays, nodes: Nodes, closing: Integers) -> None:
        """Buy the class counts, or the labels, of the leaves of this level."""
        if not len(closing) or self._plan.is_exact:
            return
        record, number = self._spending.record, self._spending.number
        for paid, among in nodes.paid.take(closing).groups():
            some = closing[among]
            leaves = parts.take(some)
            # a leaf may spend what its path has left: nobody else can
            share = self._epsilon - paid if self._schedule.leaf is None else self._schedule.leaf
            path = self._spending.exchange.loss(paid + share) if self._mixed else None
            if self._plan.leaf == "label":
                choices = leaves.majority(self._target.name, share)
                record.add(number, nodes.level, "label", choices, path)
                code = [self._target.texts.index(str(choice)) for choice in choices]
                arrays.counts[some, code] = 1
                continue
            counts = leaves.histogram(self._target.name, epsilon=share)
            record.add(number, nodes.level, "class counts", counts, path)
            arrays.counts[some] = counts.array()
            arrays.deviation[some] = counts[0].noise.deviation

    # -- how the others are split -----------------------------------------------------------

    def _split_methods(self, nodes: Nodes, shares: Level | None, closing: NDArray[np.bool_]) -> PerPart[SplitMethod]:
        """Return how each open node finds its split. A node that coins should split and cannot is marked a leaf."""
        going = [] if self._structures else np.flatnonzero(~closing).tolist()
        split: str = "" if "split" in self._sites else settled(self._plan.split)
        if split != "random" and not self._sites & {"split", "criterion"}:
            return PerPart.same((split, None), len(going))
        methods: list[SplitMethod] = []
        for node in going:
            assert self._node_sites is not None and shares is not None
            kind = split or self._node_sites.decide("split", nodes, node, self._epsilon)
            if kind == "random":
                closing[node] = not splittable(nodes.unused[node], nodes.ranges_of(node))
            if not closing[node]:
                rule = None
                if kind == "select":
                    rule = self._node_sites.criterion(nodes, node, self._epsilon, shares)
                methods.append((kind, rule))
        return PerPart.of(methods)

    def _split(
        self, parts: Parts, nodes: Nodes, methods: PerPart[SplitMethod], shares: Level
    ) -> tuple[PerPart[NodeSplit], PerPart[Fraction]]:
        """Return the split of each node, and what its path has paid then.

        Nodes with different methods have different rows. They are asked one method after the other, and the level
        pays as if all were asked together (docs/explanation/privacy.md#partition).
        """
        groups = list(methods.groups())
        splits: dict[int, NodeSplit] = {}
        asked: dict[str, tuple[list[Any], list[int]]] = {}  # of each question the releases, and the nodes
        for (kind, rule), among in groups:
            some = among.tolist()
            if kind == "random":
                assert self._node_sites is not None
                coins = self._node_sites.rng
                drawn = [random_split(nodes.unused[i], nodes.ranges_of(i), self._domain, coins) for i in some]
                splits |= zip(some, drawn, strict=True)
                continue
            plan = self._plan if rule is None else replace(self._plan, criterion=rule)
            plan = plan if plan.split == kind else replace(plan, split=kind)
            asking = parts.take(among) if len(groups) > 1 else parts
            chosen, questions = find_splits(asking, nodes.unused.take(among), plan, shares)
            if len(groups) == 1:  # nearly always: nothing has to be put together
                paid = nodes.paid
                for question, releases in questions.items():
                    paid = self._spending.pay(nodes.level, question, releases, paid)
                return PerPart.of(chosen), paid
            splits |= zip(some, chosen, strict=True)
            for question, releases in questions.items():
                everything, askers = asked.setdefault(question, ([], []))
                everything += releases
                askers += some
        paid = nodes.paid
        for question, (releases, askers) in asked.items():
            self._mixed |= len(askers) < len(paid)
            among = np.array(askers, dtype=np.intp)
            paid = paid.replaced(among, self._spending.pay(nodes.level, question, releases, paid.take(among)))
        return PerPart.of(splits[node] for node in range(len(methods))), paid

    def _left_below(
        self, nodes: Nodes, splits: PerPart[NodeSplit], methods: PerPart[SplitMethod], children: Integers
    ) -> tuple[PerPart[Attributes], Sequence[CutRanges]]:
        """Return the attributes that each child may split by, and where coins may cut it."""
        left = nodes.unused.combine(self._left, splits)
        if not self._ranges:
            return left.repeat(children), ()
        unused: list[Attributes] = []
        ranges: list[CutRanges] = []
        for names, above, split, (kind, _) in zip(left, nodes.ranges, splits, methods, strict=True):
            below = cut_ranges_below(above, split, self._domain)
            ranges += below
            name = attribute_of(split)
            for low, high in (side.get(name, (0, 1)) for side in below):
                # coins do not come back to a number that they cannot cut any more
                unused.append(self._left(names, name) if kind == "random" and low >= high else names)
        return PerPart.of(unused), ranges

    @staticmethod
    def _left(names: Attributes, split: NodeSplit) -> Attributes:
        """Return the attributes that a path may still use: a threshold does not use one up."""
        return names if isinstance(split, tuple) else tuple(name for name in names if name != split)

    # -- the trees --------------------------------------------------------------------------

    def _finished(self, tree: int) -> Tree:
        """Return one tree, made consistent and pruned."""

        def whole(array: Callable[[LevelArrays], NDArray[Any]]) -> NDArray[Any]:
            """The nodes of this tree, level after level."""
            return np.concatenate([array(level)[level.tree == tree] for level in self._levels])

        variance = whole(lambda level: level.size_deviation) ** 2
        grown = Tree.grown(
            self._domain,
            whole(lambda level: level.column),
            whole(lambda level: level.at),
            whole(lambda level: level.counts),
            whole(lambda level: level.deviation),
            np.full(len(variance), np.nan) if self._plan.is_exact else whole(lambda level: level.size),
        )
        if self._plan.consistency == "least-squares":
            grown = prune.least_squares(grown, variance)
        elif self._plan.consistency == "rescale":
            grown = prune.rescale(grown)
        if self._plan.prune == "error":
            grown = prune.by_error(grown, self._plan.certainty)
        elif self._plan.prune == "signal":
            grown = prune.by_signal(grown)
        return grown


# -- a fit --------------------------------------------------------------------------------------


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
    decisions, has_sites = Decisions({}), bool(plan.sites)
    if has_sites:
        if counts is None and prior_share and domain.rows is None:  # every site may look at the number of rows
            counts = _class_counts(scope, prior_share)
        decisions = Decisions(view_of(domain, exchange.worth(epsilon), _rows_for_sites(domain, counts)))
        plan = _with_least_error(plan.decided(decisions), scope)
        _check_choices(table, plan)
        if plan.depth != 0:
            plan.schedule(domain, epsilon, 1)  # refuses a budget that has nothing for what other sites chose
    shares = plan.tree_shares(epsilon - prior_share)
    rows = _known_rows(scope, plan, prior_share, has_sites)
    planned = None if rows is None else _planned(plan, domain, shares, rows, rng, exchange)
    prior = _prior(scope, prior_share, counts, record)
    if rows is None or planned is None:
        assert prior is not None
        rows = max(sum(prior), 1.0)
        planned = _planned(plan, domain, shares, rows, rng, exchange, bought=True)
    known_rows = decisions.view.get("rows", Public(rows) if plan.wants_rows else None)
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
    if plan.decides_at_nodes:
        node_sites = NodeSites(plan, domain, decisions, rng, known_rows, resolve, exchange)
    schedules, structures = planned
    # coins before growth: the same seed scatters and draws the same, whatever the releases are
    coins = 0 if plan.rows == "all" else int(rng.integers(2**31))
    trees: list[Tree] = []
    if plan.rows == "disjoint":
        count = settled(plan.trees)
        on_level = _level_reporter(meter, record, schedules[:1], 0, f"{count} trees, ")
        spending = TreeSpending(shares[0], schedules[0], record, 0, on_level, exchange)
        trees = Growth(scope.scatter(count, coins), plan, spending, structures, rows / count, node_sites).run()
    else:
        parallel = jobs is not None and node_sites is None  # sites toss coins, one node after the other
        tables = [scope if plan.is_exact else scope.allot(share) for share in shares]
        if parallel:
            tables = [tree_table.apart() for tree_table in tables]
        records = [Record() if parallel else record for _ in shares]

        def tree(number: int) -> list[Tree]:
            tree_table, own = tables[number], records[number]
            if plan.rows == "bootstrap":
                assert isinstance(tree_table, PublicTable)
                tree_table = tree_table.bootstrap(coins + number)
            on_level = _ignore_level if parallel else _level_reporter(meter, own, schedules, number)
            spending = TreeSpending(shares[number], schedules[number], own, number, on_level, exchange)
            structure = structures[number : number + 1]
            return Growth(tree_table.parts(), plan, spending, structure, rows, node_sites).run()

        for number, grown in enumerate(_in_order(tree, len(shares), jobs if parallel else 1)):
            trees += grown
            if parallel:
                record.extend(records[number])
                meter.at(f"tree {number + 1} of {len(shares)}", number + 1, len(shares), asked=len(record.steps))
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
    record, meter = Record(), Meter(progress, table.domain)
    scope = table.spending(epsilon)
    exchange = Exchange.of(scope, epsilon)
    filled = list(zip(model.trees, plan.tree_shares(epsilon), strict=True))
    schedules = [plan.schedule(table.domain, share, tree.depth) for tree, share in filled]
    trees = []
    for number, ((tree, share), schedule) in enumerate(zip(filled, schedules, strict=True)):
        on_level = _level_reporter(meter, record, schedules, number)
        spending = TreeSpending(share, schedule, record, number, on_level, exchange)
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


def _ignore_level(level: int, nodes: int) -> None:
    """Report nothing: trees that grow at once have no order of levels."""


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
        selectable_criterion(plan, table.domain, settled(plan.criterion))


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
