"""Growth: a tree level by level, one batch of questions for each level.

A level buys the sizes of its nodes if the plan wants them, turns the nodes that stop into leaves,
asks for the splits of the others, and divides them. Everything it sees is a release, and everything
it decides is a function of releases and of public coins. So the charges of the kernel are the whole
cost (docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError, QuestionError
from privet.kernel import Criterion, Domain, PerPart, Public, Release
from privet.learners import prune
from privet.learners.algorithm import Record
from privet.learners.plan import NOW, Level, Plan, Schedule, checked_at_node
from privet.learners.sites import Decisions, estimate_of, is_site, settled, signal_of
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
    selectable_criterion,
    splittable,
)
from privet.learners.structure import splits_at
from privet.models.model import Floats, Integers
from privet.models.tree import Tree
from privet.table import Parts

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
    """

    epsilon: Fraction
    schedule: Schedule
    record: Record
    number: int
    on_level: LevelCallback

    def pay(self, level: int, question: str, releases: Sequence[Any], paid: PerPart[Fraction]) -> PerPart[Fraction]:
        """Record a question to some nodes of a level, and return what their paths have paid afterwards."""
        if not releases[0].epsilon:  # public rows pay nothing
            return paid
        self.record.add(self.number, level, question, releases)
        return paid.map(releases[0].epsilon.__add__)


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
    Whatever a node is asked then, its own rows pay for it (docs/privacy.md#partition).

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
    """

    plan: Plan
    domain: Domain
    decisions: Decisions
    rng: np.random.Generator
    rows: Release | Public | None
    resolve: Callable[[Any], str | Criterion]

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
        view: dict[str, Release | Public] = {
            "depth": Public(nodes.level),
            "left": Public(len(nodes.unused[node])),
            "budget": Public(float(epsilon - nodes.paid[node])),
        }
        if nodes.sizes:
            view["rows"] = nodes.sizes[node]
        elif self.rows is not None:
            view["rows"] = estimate_of(self.rows, float(nodes.estimate[node]))
        if "rows" in view:
            view["signal"] = signal_of(view["rows"], float(epsilon - nodes.paid[node]))
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
            return np.asarray(arrays.size[some] / (largest * classes) < math.sqrt(2) / float(shares.size))
        if stop == "estimate":
            if self._node_sites is not None and self._node_sites.rows is None:
                raise QuestionError(
                    "to stop by an estimated size takes the number of rows: declare rows in the domain, or give the "
                    "plan a prior share that buys it."
                )
            least = nodes.paid.take(some).map(lambda paid: self._plan.rows_to_split(classes, self._epsilon - paid))
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
            path = paid + share if self._mixed else None
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
        pays as if all were asked together (docs/privacy.md#partition).
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
