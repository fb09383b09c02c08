"""Growth: a tree level by level, one batch of questions a level.

A level asks the sizes of its nodes if the plan wants them, closes the nodes that stop, asks for the splits
of the others, and divides them. Everything it sees is a release, and everything it decides is a function of
releases and of public coins, so the kernel's charges are the whole cost (docs/privacy.md#partition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel import Criterion, Parts, PerPart, Public
from privet.learners import prune
from privet.learners.node_sites import NodeSites
from privet.learners.nodes import Nodes
from privet.learners.plan import NOW, Level, Plan, Schedule
from privet.learners.sites import settled
from privet.learners.splitting import (
    Attributes,
    Room,
    SplitOf,
    attribute_of,
    children_of,
    cut_of,
    find_splits,
    left_to_coins,
    room_of,
    rooms_below,
    split_by_coins,
)
from privet.learners.structure import splits_at
from privet.models.privacy_record import Record
from privet.models.tree import Tree

Begin = Callable[[int, int], None]  # is told of each level, and how many nodes it has
Way = tuple[str, Criterion | None]  # how a node finds its split, and by which criterion if not by the plan's


class Growth:
    """One tree, or several on disjoint rows at once: each part is the root of one.

    Where `structures` are given, they are filled; otherwise nodes look for their splits.
    """

    def __init__(
        self,
        parts: Parts,
        plan: Plan,
        schedule: Schedule,
        budget: Fraction,
        record: Record,
        number: int,
        structures: Sequence[Tree],
        begin: Begin,
        rows: float = 0.0,
        node_sites: NodeSites | None = None,
    ) -> None:
        self._parts, self._plan, self._schedule, self._budget, self._record = parts, plan, schedule, budget, record
        self._number, self._structures, self._begin = number, structures, begin
        self._rows, self._node_sites = rows, node_sites
        self._domain, self._target = parts.domain, parts.domain.target_column
        self._position = {name: i for i, name in enumerate(self._domain.attributes)}
        self._sites = frozenset(plan.sites)  # of nodes alone: those of the run have spoken
        by_coins = not structures and ("split" in self._sites or plan.split == "random")
        self._room: Room = room_of(plan, self._domain) if by_coins else {}
        self._mixed = False  # have nodes of one level been asked different questions?
        self._levels: list[dict[str, Any]] = []

    def run(self) -> list[Tree]:
        parts, trees = self._parts, len(self._parts)
        nodes = Nodes.roots(trees, self._domain.attributes, self._rows, self._room)
        while len(parts):
            self._begin(nodes.level, len(parts))
            parts, nodes = self._level(parts, nodes)
        return [self._finished(tree) for tree in range(trees)]

    def _level(self, parts: Parts, nodes: Nodes) -> tuple[Parts, Nodes]:
        """The children of the nodes of a level that are divided; what was found out about all is kept."""
        shares = self._schedule.levels[nodes.level] if nodes.level < len(self._schedule.levels) else None
        found = self._nothing_known(nodes)
        self._levels.append(found)
        nodes = self._sized(parts, found, nodes, self._schedule.leaf_size if shares is None else shares.size)
        closing = self._closing(found, nodes, shares)
        ways = self._ways(nodes, shares, closing)
        self._close(parts, found, nodes, np.flatnonzero(closing))
        open_nodes = np.flatnonzero(~closing)
        if not len(open_nodes):
            return parts.take([]), nodes
        assert shares is not None
        rest, nodes = parts.take(open_nodes), nodes.take(open_nodes)
        if self._structures:
            at_level = (split for tree in self._structures for split in splits_at(tree, nodes.level, self._domain))
            splits, paid = PerPart.of(at_level), nodes.paid
        else:
            splits, paid = self._split(rest, nodes, ways, shares)
        found["column"][open_nodes] = splits.map(lambda split: self._position[attribute_of(split)]).array()
        found["at"][open_nodes] = splits.map(lambda split: cut_of(split, self._domain)).array()
        children = splits.map(lambda split: children_of(split, self._domain)).array()
        unused, room = self._left_below(nodes, splits, ways, children)
        return rest.partition(splits), nodes.below(children, unused, room, paid)

    def _nothing_known(self, nodes: Nodes) -> dict[str, Any]:
        """The arrays of a level, as those of leaves that nobody has asked about."""
        count = len(nodes.tree)
        return {
            "tree": nodes.tree,
            "column": np.full(count, -1),
            "at": np.full(count, -1),
            "size": np.full(count, np.nan),
            "size_deviation": np.zeros(count),
            "counts": np.zeros((count, len(self._target.values))),
            "deviation": np.zeros(count),
        }

    # -- what becomes of a node -------------------------------------------------------------

    def _sized(self, parts: Parts, found: dict[str, Any], nodes: Nodes, share: Fraction) -> Nodes:
        """The nodes with their sizes, where there is a share for them or rows are public."""
        if self._plan.is_exact:
            exact = parts.histogram(self._target.name, epsilon=math.inf)
            found["counts"] = exact.array().astype(np.float64)
            found["size"] = found["counts"].sum(axis=1)
            return replace(nodes, sizes=[Public(size) for size in found["size"].tolist()] if self._sites else ())
        if not share:
            return nodes
        sizes = parts.count(share)
        found["size"] = sizes.array().astype(np.float64)
        found["size_deviation"][:] = sizes[0].noise.deviation
        return replace(nodes, paid=self._pay(nodes.level, "size", sizes, nodes.paid), sizes=sizes)

    def _closing(self, found: dict[str, Any], nodes: Nodes, shares: Level | None) -> NDArray[np.bool_]:
        """Which nodes become leaves, by what was released about them and what is public."""
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
                stops.setdefault(self._node_sites.decide("stop", nodes, node, self._budget), []).append(node)
        else:
            stops[settled(self._plan.stop)] = going
        for stop, some in stops.items():
            closing[some] = self._stopped(stop, found, nodes, some, shares)
        # the public bound was checked before; luck against all odds must not fill the memory
        if sum(len(each["tree"]) for each in self._levels) > 4 * self._plan.max_leaves * len(self._parts):
            closing[:] = True
        return closing

    def _stopped(
        self, stop: str, found: dict[str, Any], nodes: Nodes, some: Sequence[int], shares: Level
    ) -> NDArray[np.bool_] | bool:
        """Which of some nodes a rule makes leaves."""
        classes = len(self._target.values)
        if stop == "noise":
            self._plan.check_shares(shares, "size")
            children = nodes.unused.take(some).map(
                lambda names: max(self._plan.children(self._domain, name) for name in names)
            )
            largest = children.array()
            return np.asarray(found["size"][some] / (largest * classes) < math.sqrt(2) / float(shares.size))
        if stop == "estimate":
            if self._node_sites is not None and self._node_sites.rows is None:
                raise QuestionError(
                    "to stop by an estimated size takes the number of rows: declare rows in the domain, or give the "
                    "plan a prior share that buys it."
                )
            enough = nodes.paid.take(some).map(lambda paid: self._plan.enough(classes, self._budget - paid))
            return np.asarray(nodes.estimate[some] < enough.array())
        if stop == "pure":
            few = found["size"][some] < self._plan.min_rows
            return np.asarray(few | ((found["counts"][some] > 0).sum(axis=1) < 2))
        return stop == NOW

    def _ways(self, nodes: Nodes, shares: Level | None, closing: NDArray[np.bool_]) -> PerPart[Way]:
        """How each node that goes on finds its split; one that coins should divide and cannot becomes a leaf."""
        going = [] if self._structures else np.flatnonzero(~closing).tolist()
        split: str = "" if "split" in self._sites else settled(self._plan.split)
        if split != "random" and not self._sites & {"split", "criterion"}:
            return PerPart.same((split, None), len(going))
        ways: list[Way] = []
        for node in going:
            assert self._node_sites is not None and shares is not None
            way = split or self._node_sites.decide("split", nodes, node, self._budget)
            if way == "random":
                closing[node] = not left_to_coins(nodes.unused[node], self._room_of(nodes, node))
            if not closing[node]:
                selects = way == "select"
                ways.append((way, self._node_sites.criterion(nodes, node, self._budget, shares) if selects else None))
        return PerPart.of(ways)

    @staticmethod
    def _room_of(nodes: Nodes, node: int) -> Room:
        return nodes.room[node] if nodes.room else {}

    def _split(
        self, parts: Parts, nodes: Nodes, ways: PerPart[Way], shares: Level
    ) -> tuple[PerPart[SplitOf], PerPart[Fraction]]:
        """The split of each node, and what its path has paid then.

        Nodes that look for it in different ways are different rows: they are asked in turn, and
        the level pays as if they were asked together (docs/privacy.md#partition).
        """
        groups = list(ways.groups())
        splits: dict[int, SplitOf] = {}
        asked: dict[str, tuple[list[Any], list[int]]] = {}
        for (kind, rule), among in groups:
            some = among.tolist()
            if kind == "random":
                assert self._node_sites is not None
                coins, room = self._node_sites.rng, self._room_of
                drawn = [split_by_coins(nodes.unused[i], room(nodes, i), self._domain, coins) for i in some]
                splits |= zip(some, drawn, strict=True)
                continue
            plan = self._plan if rule is None else replace(self._plan, criterion=rule)
            plan = plan if plan.split == kind else replace(plan, split=kind)
            asking = parts.take(among) if len(groups) > 1 else parts
            chosen, questions = find_splits(asking, nodes.unused.take(among), plan, shares)
            if len(groups) == 1:  # nearly always: nothing has to be put together
                paid = nodes.paid
                for question, releases in questions.items():
                    paid = self._pay(nodes.level, question, releases, paid)
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
            paid = paid.replaced(among, self._pay(nodes.level, question, releases, paid.take(among)))
        return PerPart.of(splits[node] for node in range(len(ways))), paid

    def _left_below(
        self, nodes: Nodes, splits: PerPart[SplitOf], ways: PerPart[Way], children: NDArray[np.int64]
    ) -> tuple[PerPart[Attributes], Sequence[Room]]:
        """What the children of each node may split by, and where coins may cut."""
        left = nodes.unused.combine(self._left, splits)
        if not self._room:
            return left.repeat(children), ()
        unused: list[Attributes] = []
        rooms: list[Room] = []
        for names, room, split, (kind, _) in zip(left, nodes.room, splits, ways, strict=True):
            below = rooms_below(room, split, self._domain)
            rooms += below
            name = attribute_of(split)
            for low, high in (side.get(name, (0, 1)) for side in below):
                # coins do not come back to a number that they cannot cut any more
                unused.append(self._left(names, name) if kind == "random" and low >= high else names)
        return PerPart.of(unused), rooms

    @staticmethod
    def _left(names: Attributes, split: SplitOf) -> Attributes:
        """The attributes a path may still use: a threshold does not use a column up."""
        return names if isinstance(split, tuple) else tuple(name for name in names if name != split)

    def _close(self, parts: Parts, found: dict[str, Any], nodes: Nodes, closing: NDArray[np.int64]) -> None:
        """Ask the leaves of this level what their rows are."""
        if not len(closing) or self._plan.is_exact:
            return
        for paid, among in nodes.paid.take(closing).groups():
            some = closing[among]
            leaves = parts.take(some)
            # the path ledger: what a leaf's path has not spent, nobody else can
            share = self._budget - paid if self._schedule.leaf is None else self._schedule.leaf
            path = paid + share if self._mixed else None
            if self._plan.leaf == "label":
                choices = leaves.majority(self._target.name, share)
                self._record.add(self._number, nodes.level, "label", choices, path)
                code = [self._target.texts.index(str(choice)) for choice in choices]
                found["counts"][some, code] = 1
                continue
            counts = leaves.histogram(self._target.name, epsilon=share)
            self._record.add(self._number, nodes.level, "class counts", counts, path)
            found["counts"][some] = counts.array()
            found["deviation"][some] = counts[0].noise.deviation

    def _pay(self, level: int, question: str, releases: Sequence[Any], paid: PerPart[Fraction]) -> PerPart[Fraction]:
        """Write down a question, and what the nodes that it was asked of have paid then; public rows pay nothing."""
        if not releases[0].epsilon:
            return paid
        self._record.add(self._number, level, question, releases)
        return paid.map(releases[0].epsilon.__add__)

    def _finished(self, tree: int) -> Tree:
        """The arrays of one tree, made consistent and pruned."""
        arrays = {
            name: np.concatenate([level[name][level["tree"] == tree] for level in self._levels])
            for name in ("column", "at", "counts", "deviation", "size", "size_deviation")
        }
        variance = arrays.pop("size_deviation") ** 2
        if self._plan.is_exact:
            arrays["size"] = np.full(len(variance), np.nan)
        grown = Tree.grown(self._domain, **arrays)
        if self._plan.consistency == "least-squares":
            grown = prune.least_squares(grown, variance)
        elif self._plan.consistency == "rescale":
            grown = prune.rescale(grown)
        if self._plan.prune == "error":
            grown = prune.by_error(grown, self._plan.certainty)
        elif self._plan.prune == "signal":
            grown = prune.by_signal(grown)
        return grown
