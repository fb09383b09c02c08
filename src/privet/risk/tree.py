"""A published tree as an adversary holds it: tests, leaves, and the values that they speak of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelError
from privet.kernel import Column, Numeric, canonical_text, number_of, text_of
from privet.models.tree import cell_text
from privet.text import quoted, shown

# -- The tests of a published tree: which values of a column lead to a child.

Mask = NDArray[np.bool_]


class Condition(Protocol):
    """Says of each distinct value of one column whether a row with it goes to this child; `str` tells it to people."""

    @property
    def column(self) -> str: ...

    def holds(self, values: Sequence[object]) -> Mask: ...


@dataclass(frozen=True)
class Equals:
    """Rows with one value of a nominal column.

    >>> str(Equals("sex", "Female")), Equals("sex", "Female").holds(["Male", "Female"]).tolist()
    ('sex = Female', [False, True])
    """

    column: str
    value: str

    def holds(self, values: Sequence[object]) -> Mask:
        wanted = canonical_text(self.value)  # a tree writes it as the program that grew it does
        return np.array([text_of(value) == wanted for value in values], dtype=np.bool_)

    def __str__(self) -> str:
        return cell_text(self.column, self.value)


@dataclass(frozen=True)
class AtMost:
    """Rows whose number is at most a threshold; with `single` the number is rounded to 32 bits first, as
    scikit-learn does."""

    column: str
    threshold: float
    single: bool = False

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values, self.single) <= self.threshold)  # NaN is neither below nor above

    def __str__(self) -> str:
        return f"{self.column} <= {self.threshold:.6g}"


@dataclass(frozen=True)
class Above:
    """Rows whose number is above a threshold."""

    column: str
    threshold: float
    single: bool = False

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values, self.single) > self.threshold)

    def __str__(self) -> str:
        return f"{self.column} > {self.threshold:.6g}"


@dataclass(frozen=True)
class Below:
    """Rows whose number is below a threshold."""

    column: str
    threshold: float

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values) < self.threshold)

    def __str__(self) -> str:
        return f"{self.column} < {self.threshold:.6g}"


@dataclass(frozen=True)
class AtLeast:
    """Rows whose number is a threshold or more."""

    column: str
    threshold: float

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(numbers_of(values) >= self.threshold)

    def __str__(self) -> str:
        return f"{self.column} >= {self.threshold:.6g}"


@dataclass(frozen=True)
class OneOf:
    """Rows with one of some values of a nominal column."""

    column: str
    listed: tuple[str, ...]

    def holds(self, values: Sequence[object]) -> Mask:
        wanted = {canonical_text(value) for value in self.listed}
        return np.array([text_of(value) in wanted for value in values], dtype=np.bool_)

    def __str__(self) -> str:
        return f"{self.column} in {{{', '.join(self.listed)}}}"


@dataclass(frozen=True)
class NotEquals:
    """Rows with any value of a nominal column but one."""

    column: str
    value: str

    def holds(self, values: Sequence[object]) -> Mask:
        texts = [text_of(value) for value in values]
        return np.array([text is not None and text != self.value for text in texts], dtype=np.bool_)

    def __str__(self) -> str:
        return f"{self.column} != {self.value}"


@dataclass(frozen=True)
class Between:
    """Rows whose number is in an interval, as generalised tables have them.

    >>> Between("age", 20, 30, False).holds([19, 20, 29, 30]).tolist(), str(Between("age", 20, 29))
    ([False, True, True, False], 'age = 20-29')
    """

    column: str
    low: float
    high: float
    is_closed: bool = True  # is the upper end inside?
    is_open: bool = False  # is the lower end outside?

    def holds(self, values: Sequence[object]) -> Mask:
        numbers = numbers_of(values)
        above = numbers > self.low if self.is_open else numbers >= self.low
        return np.asarray(above & (numbers <= self.high if self.is_closed else numbers < self.high))

    def __str__(self) -> str:
        if self.is_closed and not self.is_open:
            return f"{self.column} = {self.low:g}-{self.high:g}"
        first, last = "(" if self.is_open else "[", "]" if self.is_closed else ")"
        return f"{self.column} in {first}{self.low:g}, {self.high:g}{last}"


@dataclass(frozen=True)
class Masked:
    """Rows whose text begins so, where the rest was masked by stars, one for a character.

    >>> Masked("zip", "476**").holds(["47677", "4767", "48000"]).tolist()
    [True, False, False]
    """

    column: str
    mask: str

    def holds(self, values: Sequence[object]) -> Mask:
        start = self.mask.rstrip("*")
        texts = [text_of(value) for value in values]
        return np.array(
            [text is not None and len(text) == len(self.mask) and text.startswith(start) for text in texts],
            dtype=np.bool_,
        )

    def __str__(self) -> str:
        return cell_text(self.column, self.mask)


@dataclass(frozen=True)
class InCell:
    """Rows in one cell of a column of a public domain."""

    declared: Column
    code: int

    @property
    def column(self) -> str:
        return self.declared.name

    def holds(self, values: Sequence[object]) -> Mask:
        return np.asarray(cells_of(self.declared, values) == self.code)

    def __str__(self) -> str:
        return cell_text(self.column, self.declared.labels[self.code])


@dataclass(frozen=True)
class OnSide:
    """Rows on one side of a threshold on the grid of a numeric column: 0 below, 1 from it on, 2 without a number."""

    declared: Numeric
    at: int
    side: int

    @property
    def column(self) -> str:
        return self.declared.name

    def holds(self, values: Sequence[object]) -> Mask:
        grid = np.array([-1 if (index := self.declared.grid(value)) is None else index for value in values])
        return np.asarray(np.where(grid < 0, 2, np.where(grid >= self.at, 1, 0)) == self.side)

    def __str__(self) -> str:
        if self.side == 2:
            return cell_text(self.column, "<missing>")
        point = self.declared.text(self.declared.value_at(self.at - 1))
        return f"{self.column} {'>' if self.side else '<='} {point}"


def cells_of(declared: Column, values: Sequence[object]) -> NDArray[np.int64]:
    """The cell of each distinct value of a column, -1 where the domain has none for it."""
    return np.array([-1 if (code := declared.code(value)) is None else code for value in values], dtype=np.int64)


def numbers_of(values: Sequence[object], single: bool = False) -> NDArray[np.float64]:
    """Values as numbers, NaN where there is none."""
    numbers = np.array([np.nan if (number := number_of(value)) is None else number for value in values])
    return numbers.astype(np.float32).astype(np.float64) if single else numbers.astype(np.float64)


# -- The public values of the sensitive attribute, and how the labels of a published tree are found among them.


@dataclass(frozen=True)
class Values:
    """The values in their public order, as they were given.

    Trees are written by programs with different habits: a class that is 1 in the table may be 1.0 in the tree, and
    true may be True. A label is looked up as it is compared everywhere, then as Python prints it, then as a number.

    >>> values = Values.of([True, False])
    >>> values.texts, values.find("False"), values.find("maybe")
    (('true', 'false'), 1, None)
    >>> Values.of(["1", "2"]).find("2.0")
    1
    """

    given: tuple[object, ...]

    @classmethod
    def of(cls, values: Iterable[object]) -> Values:
        """The values as the caller lists them."""
        given = tuple(values)
        texts = [text_of(value) for value in given]
        if not texts or None in texts:
            raise ModelError("the sensitive attribute needs at least one value, and none of them may be missing.")
        if len(set(texts)) < len(texts):
            twice = next(text for text, times in Counter(texts).items() if times > 1)
            raise ModelError(
                f"the public values of the sensitive attribute name {quoted(twice)} twice; list each once."
            )
        return cls(given)

    @classmethod
    def seen(cls, labels: Iterable[str]) -> Values:
        """The labels that occur in a text, sorted."""
        return cls(tuple(rising(dict.fromkeys(labels))))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(str(text_of(value)) for value in self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __str__(self) -> str:
        return ", ".join(shown(text) for text in self.texts[:10]) + ", …" * (len(self) > 10)

    @cached_property
    def _numbers_by_text(self) -> dict[str, int]:
        found = {text: number for number, text in enumerate(self.texts)}
        for number, value in enumerate(self.given):
            found.setdefault(str(value), number)
        return found

    def find(self, label: object) -> int | None:
        """The number of the value that a label means; None where it means none, or no single one."""
        for text in (str(text_of(label)), str(label)):
            if text in self._numbers_by_text:
                return self._numbers_by_text[text]
        wanted = number_of(label)
        alike = [] if wanted is None else [i for i, value in enumerate(self.given) if number_of(value) == wanted]
        return alike[0] if len(alike) == 1 else None

    def number(self, label: object) -> int:
        """The number of the value that a label of a tree means; one sentence where there is none."""
        found = self.find(label)
        if found is None:
            raise ModelError(self.unknown(str(text_of(label))))
        return found

    def unknown(self, label: str) -> str:
        return f"the tree says {quoted(label)}, which is not among the public values ({self}); list it or mend them."


def rising(labels: Iterable[str]) -> Sequence[str]:
    """Labels in the order in which a learner would number them: by size if all are numbers, else by letters."""
    found = list(labels)
    numbers = {label: number_of(label) for label in found}
    if None in numbers.values():
        return sorted(found)
    return sorted(found, key=lambda label: (numbers[label], label))


# -- A published tree as an adversary holds it, wherever it came from: tests that lead to leaves, and what leaves say.

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GINI, ENTROPY = "gini", "entropy"
SCIKIT, WEKA = "scikit-learn", "Weka"


@dataclass(frozen=True)
class Node:
    """One node: the condition under which rows of its parent come here and, if it is a leaf, what it says of them."""

    parent: int = -1
    condition: Condition | None = None  # None for the root alone
    label: int | None = None  # the number of the sensitive value that a leaf predicts; None for a split
    size: float | None = None  # rows, where published
    wrong: float | None = None  # rows of other values, where published
    counts: tuple[float, ...] | None = None  # rows of each value, where published
    weights: tuple[float, ...] | None = None  # of the rows of each value, where rows were weighted: no counts
    deviation: float = 0.0  # of the noise in each count
    line: int | None = None  # where it stands in the text it was read from


@dataclass(frozen=True)
class Stopping:
    """Where scikit-learn stops dividing rows that differ in value: at a depth, or when they are few.

    A leaf above that depth with enough rows, which some threshold divides with enough of them on either side, is pure:
    otherwise it would have been divided. That holds whatever its criterion, and with random splits too where one row on
    either side is enough; but these never part rows that miss a number from others that are alike.
    """

    depth: int | None = None
    rows: int = 2
    least: int = 1  # rows on either side of a threshold
    is_random: bool = False  # are thresholds drawn at random?
    is_assumed: bool = False  # is the depth only that of the tree, as nothing says whether one was set?

    def divides(self, depth: int, rows: int) -> bool:
        """Would rows of several values have been divided at this depth, if a threshold can divide them?"""
        return (self.depth is None or depth < self.depth) and rows >= self.rows


@dataclass(frozen=True, eq=False)
class PublishedTree:
    """Nodes, parents before their children; the sensitive values; and what is known of how it was grown.

    `criterion` is "gini" or "entropy" where each split was the best of its node by it, and None otherwise; then
    `silent` says why the choice of splits tells nothing that can be used. `features` are the columns that could
    have been chosen, where that is known. `order` numbers the values as the learner does: of those that are most
    frequent in a leaf the first is its label. None where that is not known.
    """

    nodes: tuple[Node, ...]
    values: tuple[str, ...]
    source: str  # "privet", "scikit-learn" or "Weka"
    criterion: str | None = None
    silent: str = "the criterion that chose its splits is not known"
    is_set_aside: bool = False  # did whoever asks say that nobody uses the choice of splits?
    features: tuple[str, ...] | None = None
    declared: tuple[Column, ...] = ()  # of a privet model: a row that fits none of the cells of these was left out
    order: tuple[int, ...] | None = None  # the rank of each value
    stopping: Stopping | None = None  # None where nothing follows from a leaf that was not divided
    pruned: str = ""  # why a leaf that was not divided tells something that is not computed
    epsilon: Fraction | None = None  # of a private model: its counts are noisy, and its choices too
    model: Any = field(default=None, repr=False)  # what it was read from, to write a safer one

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ModelError("the published tree has no nodes; it may be cut short.")
        for number, node in enumerate(self.nodes):
            if (node.parent < 0) != (number == 0) or node.parent >= number:
                raise ModelError("the nodes of the published tree do not form a tree.")
            if (node.label is None) != bool(self.children[number]):
                where = f" at line {node.line}" if node.line else ""
                raise ModelError(
                    f"the published tree has a branch{where} that ends without a leaf; it may be cut short."
                )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            if node.parent >= 0:
                found[node.parent].append(number)
        return tuple(map(tuple, found))

    @property
    def leaves(self) -> tuple[int, ...]:
        return tuple(number for number, node in enumerate(self.nodes) if node.label is not None)

    @property
    def depth(self) -> int:
        return max(len(self.ancestors(leaf)) for leaf in self.leaves)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns its tests look at."""
        return tuple(dict.fromkeys(node.condition.column for node in self.nodes if node.condition is not None))

    def split_column(self, number: int) -> str:
        """The column by which a node divides its rows."""
        condition = self.nodes[self.children[number][0]].condition
        assert condition is not None
        return condition.column

    def ancestors(self, number: int) -> list[int]:
        """The nodes above one, the root last."""
        above = []
        while (number := self.nodes[number].parent) >= 0:
            above.append(number)
        return above

    def path(self, number: int) -> tuple[str, ...]:
        """The conditions that lead to a node."""
        along = [number, *self.ancestors(number)]
        return tuple(str(self.nodes[each].condition) for each in reversed(along) if self.nodes[each].condition)

    def where(self, number: int) -> str:
        """A node as people find it in the tree, each threshold of a column once: the last is the tightest.

        >>> ends = (AtMost("age", 30), Above("age", 30)), (AtMost("age", 20), Above("age", 20))
        >>> nodes = [Node(), *(Node(0, each, label) for each, label in zip(ends[0], (None, 0)))]
        >>> nodes += [Node(1, each, 1) for each in ends[1]]
        >>> tree = PublishedTree(tuple(nodes), ("a", "b"), SCIKIT)
        >>> tree.path(4), tree.where(3)
        (('age <= 30', 'age > 20'), 'age <= 20')
        """
        by_column: dict[str, dict[object, Condition]] = {}
        for each in reversed([number, *self.ancestors(number)]):
            condition = self.nodes[each].condition
            if condition is not None:
                kept = by_column.setdefault(condition.column, {})
                kind: object = type(condition) if isinstance(condition, AtMost | Above | Below | AtLeast) else each
                kept.pop(kind, None)
                kept[kind] = condition
        return " and ".join(str(each) for kept in by_column.values() for each in kept.values()) or "all rows"

    def below(self, number: int) -> Iterator[int]:
        """A node and all that are below it."""
        waiting = [number]
        while waiting:
            yield (here := waiting.pop())
            waiting += reversed(self.children[here])
