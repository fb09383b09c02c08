"""Imola and Yang, Automatic, Fine-Grained Algorithmic Choice for Differential Privacy, 2018.

The paper asks which algorithm wins where, and has no experiments. Here the algorithms of its table, and those of this
package, are run on generated tables of eight kinds, several sizes and budgets. The policy of AutoClassifier that is
tried here was learned by `privet study run choice`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from privet.studies.papers.jostle.by_node import by_node
from privet.studies.papers.jostle.read import ALGORITHMS, AUTO, BY_NODE, CONSTANT, Way, read_nodes, read_wins
from privet.studies.study import Study
from privet.studies.synthetic import KINDS
from privet.studies.trial import Pairs, Trial, Work

SOURCE = "Imola and Yang, Automatic, Fine-Grained Algorithmic Choice for Differential Privacy, 2018"


@dataclass(frozen=True)
class Extent:
    """How many tables of which kinds, and with which rows and epsilons."""

    tables: int
    kinds: tuple[str, ...]
    places: tuple[tuple[int, str], ...]


APART = 1000  # numbers of tables between one place and the next
EXTENTS = {
    "tiny": Extent(2, KINDS[:1], ((200, "0.1"), (400, "2"))),
    "quick": Extent(2, KINDS, ((1000, "0.1"), (10_000, "0.1"), (10_000, "1"))),
    "medium": Extent(8, KINDS, ((1000, "0.1"), (10_000, "0.1"), (10_000, "1"))),
    "full": Extent(25, KINDS, tuple((n, e) for n in (1000, 10_000, 50_000) for e in ("0.01", "0.1", "1"))),
}


NODE_EXTENTS = {**EXTENTS, "medium": replace(EXTENTS["medium"], tables=40)}  # three short runs on each


def _tables(extent: Extent) -> list[Trial]:
    """A trial for each table, without a learner yet; none is used twice, so that they are independent."""
    return [
        Trial(f"synthetic/{kind}", "", epsilon, APART * at + number, rows)
        for kind in extent.kinds
        for at, (rows, epsilon) in enumerate(extent.places)
        for number in range(extent.tables)
    ]


def _everything(size: str) -> list[Trial]:
    ways = {**ALGORITHMS, **AUTO}
    return [
        replace(on, learner=learner, options=options)
        for on in _tables(EXTENTS[size])
        for learner, options in ways.values()
    ]


def _nodes(size: str) -> list[Trial]:
    tasks: list[tuple[dict[str, Way], Pairs]] = [(CONSTANT, ()), (BY_NODE, (("task", "by-node"),))]
    return [
        replace(on, learner=learner, options=options, settings=settings)
        for on in _tables(NODE_EXTENTS[size])
        for ways, settings in tasks
        for learner, options in ways.values()
    ]


STUDIES: tuple[Study, ...] = (
    Study(
        "jostle-which-wins",
        "Which algorithm wins where, and what a choice is worth",
        SOURCE,
        _everything,
        read_wins,
        about="The algorithms of the paper's table and those of this package on generated tables, by kind and by rows "
        "times epsilon; the regret of each, of a random one and of AutoClassifier, which chooses by a NoisyIf.",
    ),
    Study(
        "jostle-per-node",
        "Whether a choice at every node of a tree pays",
        SOURCE,
        _nodes,
        read_nodes,
        about="ID3+ of depth 3 with one criterion throughout, and with a NoisyIf at every node.",
    ),
)
TASKS: dict[str, Work] = {"by-node": by_node}
