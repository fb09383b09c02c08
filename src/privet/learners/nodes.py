"""The open nodes of one level, and what their paths have paid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Public, Release
from privet.learners.splitting import Attributes, Room

T = TypeVar("T")


@dataclass(frozen=True)
class Nodes:
    """The nodes of one level, in order: their tree, what their path has left to split by, and what it has paid."""

    level: int
    tree: NDArray[np.int64]
    unused: list[Attributes]
    estimate: NDArray[np.float64]  # rows, as if every split divided them evenly
    room: list[Room]
    paid: list[Fraction]  # one object for many: most paths of a level have paid the same
    sizes: Sequence[Release | Public] = ()  # where they were asked

    @classmethod
    def roots(cls, trees: int, attributes: Attributes, rows: float, room: Room) -> Nodes:
        """The root of every tree: nothing is used up, and nothing paid."""
        return cls(
            0, np.arange(trees), [attributes] * trees, np.full(trees, rows), [room] * trees, [Fraction(0)] * trees
        )

    def take(self, some: NDArray[np.int64]) -> Nodes:
        """Those that go on: their sizes have served."""
        picked = some.tolist()
        return Nodes(
            self.level,
            self.tree[some],
            [self.unused[node] for node in picked],
            self.estimate[some],
            [self.room[node] for node in picked],
            [self.paid[node] for node in picked],
        )

    def below(
        self, children: Sequence[int], unused: list[Attributes], room: list[Room], paid: Sequence[Fraction]
    ) -> Nodes:
        """The children of each node, which have what is `unused` and `room` left; their paths have paid the same."""
        return Nodes(
            self.level + 1,
            np.repeat(self.tree, children),
            unused,
            np.repeat(self.estimate / children, children),
            room,
            repeated(paid, children),
        )


def for_each(amounts: Sequence[Fraction], of: Callable[[Fraction], T]) -> list[T]:
    """A function of each amount, worked out once for all that are one object, as those of most nodes are."""
    distinct = {id(each): each for each in amounts}
    found = {key: of(each) for key, each in distinct.items()}
    return [found[id(each)] for each in amounts]


def places(amounts: Sequence[Fraction]) -> dict[Fraction, list[int]]:
    """Where each amount stands."""
    found: dict[Fraction, list[int]] = {}
    for place, among in enumerate(for_each(amounts, lambda each: found.setdefault(each, []))):
        among.append(place)
    return found


def repeated(values: Sequence[T], times: Sequence[int]) -> list[T]:
    return [value for value, often in zip(values, times, strict=True) for _ in range(often)]
