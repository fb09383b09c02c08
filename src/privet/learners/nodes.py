"""The open nodes of one level, and what their paths have paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privet.kernel import PerPart, Public, Release
from privet.learners.splitting import Attributes, Room

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """The nodes of one level, in order: their tree, what their path has left to split by, and what it has paid."""

    level: int
    tree: Integers
    unused: PerPart[Attributes]
    estimate: NDArray[np.float64]  # rows, as if every split divided them evenly
    room: Sequence[Room]  # where coins may cut; empty where no coin is tossed
    paid: PerPart[Fraction]
    sizes: Sequence[Release | Public] = ()  # where they were asked

    @classmethod
    def roots(cls, trees: int, attributes: Attributes, rows: float, room: Room) -> Nodes:
        """The root of every tree: nothing is used up, and nothing paid."""
        return cls(
            0,
            np.arange(trees),
            PerPart.same(attributes, trees),
            np.full(trees, rows),
            [room] * trees if room else (),
            PerPart.same(Fraction(0), trees),
        )

    def take(self, some: Integers) -> Nodes:
        """Those that go on: their sizes have served."""
        return Nodes(
            self.level,
            self.tree[some],
            self.unused.take(some),
            self.estimate[some],
            [self.room[node] for node in some.tolist()] if self.room else (),
            self.paid.take(some),
        )

    def below(
        self, children: Integers, unused: PerPart[Attributes], room: Sequence[Room], paid: PerPart[Fraction]
    ) -> Nodes:
        """The children of each node, which have what is `unused` and `room` left; their paths have paid the same."""
        return Nodes(
            self.level + 1,
            np.repeat(self.tree, children),
            unused,
            np.repeat(self.estimate / children, children),
            room,
            paid.repeat(children),
        )
