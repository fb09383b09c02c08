"""One value for each part of a table, kept as a few values and an array that says which part has which.

The thousands of nodes of a tree level mostly share an epsilon, a mechanism, a list of candidates and
an amount spent. What is done for all of them is done once for each of these values, and the rest is
array work.

>>> epsilons = PerPart.of(["1/10", "1/10", "1/5"])
>>> epsilons.map(lambda text: text + "!").take([2, 0])
PerPart('1/5!', '1/10!')
>>> len(PerPart.same("1/10", 7000)), PerPart.same("1/10", 7000).values
(7000, ('1/10',))
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from privet.kernel.limits import Json

T = TypeVar("T", covariant=True)
U = TypeVar("U")
V = TypeVar("V")

Positions = NDArray[np.intp]


def numbered(numbers: Positions, count: int) -> tuple[Positions, Positions]:
    """Return which numbers below `count` occur, rising, and for each its position among these.

    As `np.unique` with its inverse, without sorting.
    """
    if count > 4 * len(numbers) + 1000:
        used, index = np.unique(numbers, return_inverse=True)
        return used, index.reshape(-1)
    used = np.flatnonzero(np.bincount(numbers, minlength=count))
    position = np.zeros(count, dtype=np.intp)
    position[used] = np.arange(len(used))
    return used, position[numbers]


class PerPart(Sequence[T], Generic[T]):
    """A value for each part.

    Parameters
    ----------
    values : sequence of T
        The values that occur. Some may be equal, and some may belong to no part.
    which : array of int
        For each part the position of its value in `values`.
    """

    __slots__ = ("values", "which")

    def __init__(self, values: Iterable[T], which: Positions) -> None:
        self.values = tuple(values)
        self.which = which

    @classmethod
    def of(cls, values: Iterable[T]) -> PerPart[T]:
        """Return these values, one for each part."""
        numbers: dict[T, int] = {}
        index = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), dtype=np.intp)
        return cls(numbers, index)

    @classmethod
    def same(cls, value: T, parts: int) -> PerPart[T]:  # type: ignore[misc]
        """Return one value for all parts."""
        return cls((value,), np.zeros(parts, dtype=np.intp))

    # -- a sequence -------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, part: int) -> T: ...

    @overload
    def __getitem__(self, part: slice) -> PerPart[T]: ...

    def __getitem__(self, part: int | slice) -> T | PerPart[T]:
        if isinstance(part, slice):
            return PerPart(self.values, self.which[part])
        return self.values[int(self.which[part])]

    def __iter__(self) -> Iterator[T]:
        if len(self.values) == 1:
            return itertools.repeat(self.values[0], len(self))
        return map(self.values.__getitem__, self.which.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PerPart):
            return NotImplemented
        mine, theirs = self.compact(), other.compact()
        return mine.values == theirs.values and np.array_equal(mine.which, theirs.which)

    def __hash__(self) -> int:
        mine = self.compact()
        return hash((mine.values, mine.which.tobytes()))

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self[:8]) + ", ..." * (len(self) > 8)
        return f"PerPart({shown})"

    # -- work on all parts at once ----------------------------------------------------------

    def take(self, parts: Sequence[int] | Positions) -> PerPart[T]:
        """Return the values of some parts, in this order."""
        return PerPart(self.values, self.which[np.asarray(parts, dtype=np.intp)])

    def repeat(self, times: Positions) -> PerPart[T]:
        """Return the value of each part so many times, one after the other: that of the parts it is divided into."""
        return PerPart(self.values, np.repeat(self.which, times))

    def map(self, function: Callable[[T], U]) -> PerPart[U]:
        """Return what a function makes of every value. It is called once for each that occurs."""
        mine = self.compact()
        return PerPart([function(value) for value in mine.values], mine.which)

    def combine(self, function: Callable[[T, U], V], other: PerPart[U]) -> PerPart[V]:
        """Return what a function makes of the two values of each part. It is called once for each pair that occurs."""
        if len(self.values) == len(other.values) == 1:
            return PerPart((function(self.values[0], other.values[0]),), self.which)
        both = self.which * len(other.values) + other.which
        pairs, index = numbered(both, len(self.values) * len(other.values))
        first, second = np.divmod(pairs, max(1, len(other.values)))
        values = [function(self.values[a], other.values[b]) for a, b in zip(first, second, strict=True)]
        return PerPart(values, index)

    def replaced(self, parts: Positions, new: PerPart[T]) -> PerPart[T]:
        """Return the same with new values for some parts."""
        index = self.which.copy()
        if len(parts) == len(index):  # nothing is left of the values before
            index[parts] = new.which
            return PerPart(new.values, index)
        index[parts] = new.which + len(self.values)
        made: PerPart[T] = PerPart((*self.values, *new.values), index)
        return made if len(made.values) <= 2 * len(index) + 16 else made.compact()

    def largest(self: PerPart[Any], groups: Positions, count: int) -> PerPart[Any]:
        """Return the largest value of each of `count` groups; `groups` says which one each part belongs to."""
        order = sorted(range(len(self.values)), key=self.values.__getitem__)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        best = np.full(count, -1, dtype=np.intp)
        np.maximum.at(best, groups, rank[self.which])
        assert best.min(initial=0) >= 0, "every group has a part"
        return PerPart([self.values[number] for number in order], best)

    def groups(self) -> Iterator[tuple[T, Positions]]:
        """Return every value that occurs, with its parts in rising order."""
        mine = self.compact()
        order = np.argsort(mine.which, kind="stable")
        ends = np.cumsum(np.bincount(mine.which, minlength=len(mine.values)))
        return zip(mine.values, np.split(order, ends[:-1]), strict=True)

    def compact(self) -> PerPart[T]:
        """Return the same with every value once, in the order of first appearance."""
        if len(self.values) == 1 and len(self.which):
            return self
        used, index = numbered(self.which, len(self.values))
        first = np.zeros(len(used), dtype=np.intp)
        first[index[::-1]] = np.arange(len(index))[::-1]  # of several the last assignment stays
        numbers: dict[T, int] = {}
        for position in np.argsort(first):
            numbers.setdefault(self.values[used[position]], len(numbers))
        new = np.array([numbers[self.values[number]] for number in used], dtype=np.intp)
        return PerPart(numbers, new[index])

    # -- identity ---------------------------------------------------------------------------

    def to_json(self, write: Callable[[T], Json]) -> Json:
        """Return the canonical JSON form: the values in order of first appearance, and which part has which."""
        mine = self.compact()
        values = [write(value) for value in mine.values]
        if len(values) == 1:
            return {"all": values[0], "parts": len(self)}
        return {"values": values, "index": mine.which.tolist()}

    def array(self) -> NDArray[Any]:
        """Return the values, plain numbers, as an array."""
        return np.array(self.values)[self.which] if len(self) else np.zeros(0, dtype=np.intp)
