"""Growth of trees, level by level.

Each level asks one batch of questions. It buys the sizes of its nodes if the plan wants them, turns the
nodes that stop into leaves, asks for the splits of the others, and divides them. Everything it sees is a
release, and everything it decides is a function of releases and of public coins, as are schedules, drawn
structures and the decisions of sites. So the charges of the kernel are the whole cost
(docs/explanation/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel import MAX_CELLS, Criterion, Domain, InfoGain, Numeric, PerPart, Split
from privet.lab import GainRatio
from privet.learners import prune
from privet.learners.algorithm import Exchange, Record
from privet.learners.plan import NOW, Level, Plan, Schedule, settled
from privet.learners.sites import NodeFacts, NodeSites
from privet.learners.structure import (
    Attributes,
    CutRanges,
    cut_ranges,
    cut_ranges_below,
    random_split,
    splits_at,
    splittable,
)
from privet.models.model import Floats, Integers
from privet.models.tree import Tree
from privet.release import Choice, Histogram, Public, Release
from privet.table import Parts

LevelCallback = Callable[[int, int], None]  # called with each level and the number of its nodes
SplitMethod = tuple[str, Criterion | None]  # how a node finds its split, and its criterion if not the plan's
ReleasesByQuestion = dict[str, list[Any]]  # for each question what it released for every node


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
        """Return the nodes of the next level. Children inherit what the path of their parent has paid.

        Parameters
        ----------
        children : array of int
            How many children each node has.
        unused, ranges
            As in `Nodes`, for each child.
        paid : PerPart of Fraction
            What the path of each node has paid.
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

    def facts(self, node: int, epsilon: Fraction) -> NodeFacts:
        """Return what is known of a node, in a tree with this budget."""
        size = self.sizes[node] if self.sizes else None
        unspent = epsilon - self.paid[node]
        return NodeFacts(self.level, len(self.unused[node]), unspent, float(self.estimate[node]), size)


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
        arrays.column[open_nodes] = splits.map(lambda split: self._position[split.column]).array()
        arrays.at[open_nodes] = splits.map(lambda split: split.thresholds[0] if split.thresholds else -1).array()
        children = splits.map(lambda split: split.children(self._domain)).array()
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
                stops.setdefault(self._node_sites.decide("stop", nodes.facts(node, self._epsilon)), []).append(node)
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
        if not len(closing) or self._plan.is_exact or self._schedule.leaf == 0:
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
            facts = nodes.facts(node, self._epsilon)
            kind = split or self._node_sites.decide("split", facts)
            if kind == "random":
                closing[node] = not splittable(nodes.unused[node], nodes.ranges_of(node))
            if not closing[node]:
                methods.append((kind, self._node_sites.criterion(facts, shares) if kind == "select" else None))
        return PerPart.of(methods)

    def _split(
        self, parts: Parts, nodes: Nodes, methods: PerPart[SplitMethod], shares: Level
    ) -> tuple[PerPart[Split], PerPart[Fraction]]:
        """Return the split of each node, and what its path has paid then.

        Nodes with different methods have different rows. They are asked one method after the other, and the level
        pays as if all were asked together (docs/explanation/privacy.md#partition).
        """
        groups = list(methods.groups())
        splits: dict[int, Split] = {}
        asked: dict[str, tuple[list[Any], list[int]]] = {}  # of each question the releases, and the nodes
        for (kind, rule), among in groups:
            some = among.tolist()
            if kind == "random":
                assert self._node_sites is not None
                coins = self._node_sites.rng
                drawn = [random_split(nodes.unused[i], nodes.ranges_of(i), coins) for i in some]
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
        self, nodes: Nodes, splits: PerPart[Split], methods: PerPart[SplitMethod], children: Integers
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
            for low, high in (side.get(split.column, (0, 1)) for side in below):
                # coins do not come back to a number that they cannot cut any more
                gone = kind == "random" and low >= high
                unused.append(self._left(names, Split(split.column)) if gone else names)
        return PerPart.of(unused), ranges

    @staticmethod
    def _left(names: Attributes, split: Split) -> Attributes:
        """Return the attributes that a path may still use: a threshold does not use one up."""
        return names if split.thresholds else tuple(name for name in names if name != split.column)

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


# -- how nodes find their splits ----------------------------------------------------------------


def find_splits(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level
) -> tuple[list[Split], ReleasesByQuestion]:
    """Find the split of each node: by a private selection, or by noisy counts.

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
    splits : list of Split
        One for each node.
    releases : dict of str to list
        What was asked, and the release for each node.
    """
    splits: list[Split] = []
    releases: ReleasesByQuestion = {}
    find = _by_noisy_counts if plan.split == "noisy-counts" else _by_selection
    domain = parts.domain
    cells = sum(domain[name].size for name in domain.attributes) * len(domain.classes)
    most = max(1, MAX_CELLS // cells)  # nodes in one question; disjoint parts share the charge all the same
    for start in range(0, len(parts), most):
        nodes = np.arange(start, min(start + most, len(parts)))
        splits += find(parts.take(nodes), unused.take(nodes), plan, shares, releases)
    return splits, releases


def _by_selection(
    parts: Parts, unused: PerPart[Attributes], plan: Plan, shares: Level, releases: ReleasesByQuestion
) -> list[Split]:
    """Select the split of each node privately."""
    rule = plan.usable_criterion(parts.domain, settled(plan.criterion))
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
    return [_split_of(choice, parts.domain) for choice in choices]


def _split_of(choice: Choice, domain: Domain) -> Split:
    """Return the split that was selected: values up to a threshold go left, the next grid index begins the right."""
    if choice.point is None:
        return Split(str(choice))
    column = domain.numeric(str(choice))
    return Split(column.name, (int((choice.point - column.low) / column.step) + 1,))


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
) -> list[Split]:
    """Return the attribute with the best score of each node, by noisy counts that are all bought (SuLQ)."""
    target = parts.domain.target_column.name

    def groups_of(names: Attributes) -> tuple[tuple[str, ...], ...]:
        """The histograms to buy for these attributes."""
        joint = tuple((name, target) for name in names)
        return joint + tuple((name,) for name in names) if plan.marginals else joint

    groups = unused.map(groups_of)
    splits: list[Split] = []
    for names, histograms in zip(unused, parts.histograms(groups, shares.split), strict=True):
        releases.setdefault("all counts", []).append(_OneStep(histograms))
        tables = [histogram.values for histogram in histograms]
        totals: Sequence[Any] = tables[len(names) :] or [None] * len(names)
        scores = [_noisy_gain(counts, total) for counts, total in zip(tables, totals, strict=False)]
        splits.append(Split(names[int(np.argmax(scores))]))
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
