"""Accounting: arbitrary programs against a simple reference, exact to the last digit; a refusal changes nothing."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import privet
from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.kernel import PerPart, accounting, as_epsilon
from privet.kernel.accounting import GRAIN, Refused, Scopes, alone, charge
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.table import Parts, ProtectedTable

PROPERTY = settings(derandomize=True, deadline=None)

HAIR = Fraction(1, 10**9)
SIZES = {"a": 2, "b": 3}
DOMAIN = Domain(tuple(Nominal(name, tuple(range(size))) for name, size in SIZES.items()))


def tiny_table(budget: object = 1, rows_per_person: int = 1) -> ProtectedTable:
    domain = Domain(DOMAIN.columns, rows_per_person=rows_per_person)
    return privet.open(pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 2]}), domain, budget=budget)


# -- what people write --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        (" 1e-3 ", Fraction(1, 1000)),
        ("1/3", Fraction(1, 3)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        (2, Fraction(2)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float64(1e-9), Fraction(1, 10**9)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Fraction(2, 7), Fraction(2, 7)),
        ("1000000", Fraction(10**6)),
    ],
)
def test_epsilon_is_what_was_written(written: object, meant: Fraction) -> None:
    assert as_epsilon(written) == meant


BAD = [
    0,
    0.0,
    "0",
    -1,
    "-1",
    -0.1,
    float("nan"),
    float("inf"),
    float("-inf"),
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    "abc",
    "1e-400",
    "1e400",
    1e-320,
    "1/0",
    "0/5",
    True,
    False,
    np.True_,
    None,
    "nan",
    "inf",
    10**7,
    10**400,
    Fraction(1, 10**10),
    "",
    " ",
    "1 000",
    "1_000",
    "0x1",
    "1/2/3",
    "٣",
    "1" * 1000,
    [0.1],
    b"0.1",
    1j,
    "1; DROP TABLE entries",
]


@pytest.mark.parametrize(
    "odd", [Fraction(10**101 + 1, 10**101), Fraction(1, 101), Fraction(10**6, 2**31 - 1), Fraction(22, 7)]
)
def test_a_fraction_finer_than_the_grain_is_rounded_down_to_it(odd: Fraction) -> None:
    """Otherwise an analyst could make the ledger's totals too long to read."""
    epsilon = as_epsilon(odd)
    assert odd - Fraction(1, 10**50) < epsilon <= odd
    assert (epsilon * GRAIN).denominator == 1


@pytest.mark.parametrize("bad", BAD, ids=lambda value: f"{type(value).__name__} {str(value)[:20]}")
def test_an_epsilon_that_is_none_is_refused_in_one_sentence(bad: object) -> None:
    with pytest.raises(QuestionError) as caught:
        as_epsilon(bad)
    text = str(caught.value)
    assert text.startswith("epsilon must be a number") and text.endswith(".")
    assert "\n" not in text and len(text) < 250
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("bad", [0, -1, float("nan"), "abc", "1e-400", True, None, [], [0.1, 0.2], ["x"]], ids=repr)
def test_a_question_with_a_bad_epsilon_is_not_charged(bad: Any) -> None:
    table = tiny_table()
    with pytest.raises(QuestionError):
        table.count(bad)
    with pytest.raises(QuestionError):
        table.partition("b").count(bad)
    assert table.budget.spent == 0 and table.budget.entries == []


@given(st.lists(st.decimals(Decimal("0.000001"), 2, places=6), min_size=1, max_size=30))
@PROPERTY
def test_losses_add_without_rounding(losses: list[Decimal]) -> None:
    root = Scopes()
    for loss in losses:
        charge(root, as_epsilon(float(loss)), lambda reaches_root: None)
    assert root.spent == sum(map(Fraction, losses))


def test_a_tenth_ten_times_is_exactly_one() -> None:
    table = tiny_table(1)
    for _ in range(10):
        table.count(0.1)
    assert table.budget.spent == 1 and table.budget.remaining == 0
    with pytest.raises(BudgetExceeded):
        table.count(HAIR)


# -- the reference: costs recomputed from nothing but what was charged where --------------------


@dataclass
class Node:
    """A set of rows in the reference: what was charged to it, and how it was divided."""

    cap: Fraction | None = None
    charges: list[tuple[int, Fraction]] = field(default_factory=list)  # with the version of the rows they were for
    divisions: list[list[Node]] = field(default_factory=list)

    def cost(self) -> Fraction:
        """What the record loses that loses most, wherever it lies in each version of the rows: these add."""
        return sum((self.cost_of(version) for version in self.versions()), Fraction(0))

    def cost_of(self, version: int) -> Fraction:
        """Charges add; of each division only the dearest part counts."""
        own = sum((loss for charged, loss in self.charges if charged == version), Fraction(0))
        return own + sum((max(part.cost_of(version) for part in d) for d in self.divisions), Fraction(0))

    def versions(self) -> set[int]:
        inside = (part.versions() for division in self.divisions for part in division)
        return {version for version, _ in self.charges}.union(*inside)

    def fits(self) -> bool:
        """Is every cap in here respected?"""
        inside = all(part.fits() for division in self.divisions for part in division)
        return inside and (self.cap is None or self.cost() <= self.cap)


def fits_with(root: Node, more: Sequence[tuple[Node, Fraction]], version: int) -> bool:
    """Would these charges, made at once, respect every cap?"""
    for node, loss in more:
        node.charges.append((version, loss))
    fits = root.fits()
    for node, _ in more:
        node.charges.pop()
    return fits


@dataclass
class Place:
    """The same rows in the reference and in the system."""

    node: Node
    scope: Scopes
    table: ProtectedTable | None = None


def refuse(reaches_root: Fraction) -> None:
    raise Refused


# A step names a place by a number (taken modulo how many there are) and says what happens there.
TENTHS = st.integers(1, 12).map(lambda n: Fraction(n, 10)) | st.fractions(Fraction(1, 30), 1, max_denominator=30)
WHERE = st.integers(0, 100)
STEPS = st.one_of(
    st.tuples(st.just("charge"), WHERE, st.lists(TENTHS, min_size=3, max_size=3)),
    st.tuples(st.just("charge"), WHERE, st.lists(TENTHS, min_size=3, max_size=3)),
    st.tuples(st.just("charge parts"), WHERE, st.lists(TENTHS, min_size=3, max_size=3)),
    st.tuples(st.just("spend the rest"), WHERE, st.just([])),
    st.tuples(st.just("divide"), WHERE, st.sampled_from(["a", "b"])),
    st.tuples(st.just("allot"), WHERE, TENTHS),
    st.tuples(st.just("where"), WHERE, st.just(None)),
    st.tuples(st.just("rows change"), WHERE, st.just(None)),
)
PROGRAMS = st.lists(STEPS, max_size=14)
BUDGETS = st.sampled_from([Fraction(1), Fraction(5, 2), Fraction(1, 3)])


class Run:
    """One program on both sides."""

    def __init__(self, budget: Fraction, table: ProtectedTable | None) -> None:
        self.budget = budget
        self.table = table
        self.entries = 0
        self.version = 0
        root = Node(cap=budget)
        scope = Scopes(cap=budget) if table is None else table._sets.scopes
        self.places = [Place(root, scope, table)]
        self.divisions: list[tuple[list[Place], Parts | None]] = []

    @property
    def root(self) -> Place:
        return self.places[0]

    def step(self, verb: str, where: int, what: Any) -> None:
        place = self.places[where % len(self.places)]
        if verb == "charge":
            self.charge([place], [what[0]], lambda: place.table and place.table.count(what[0]))
        elif verb == "spend the rest":
            self.spend_the_rest(place)
        elif verb == "charge parts" and self.divisions:
            places, parts = self.divisions[where % len(self.divisions)]
            losses = what[: len(places)]
            one = len(set(losses)) == 1
            self.charge(places, losses, lambda: parts and parts.count(losses[0] if one else losses))
        elif verb == "divide":
            self.divide(place, what)
        elif verb == "allot":
            node = Node(cap=what)
            place.node.divisions.append([node])
            allotted = place.table and place.table.allot(what)
            self.places.append(Place(node, allotted._sets.scopes if allotted else place.scope.allot(what), allotted))
        elif verb == "where" and place.table:
            self.places.append(Place(place.node, place.scope, place.table.where(a=0)))
        elif verb == "rows change":
            self.change()

    def change(self) -> None:
        self.version += 1
        if self.table:
            self.table._session.engine.version = self.version  # type: ignore[misc]
        with pytest.raises((Refused, BudgetExceeded)):  # whoever is refused has seen which version the rows have
            charge(self.root.scope, HAIR, refuse, self.version)

    def divide(self, place: Place, by: str) -> None:
        nodes = [Node() for _ in range(SIZES[by])]
        place.node.divisions.append(nodes)
        parts = place.table and place.table.partition(by)
        scopes = parts._sets.scopes if parts else place.scope.divide(SIZES[by])
        tables: Sequence[ProtectedTable | None] = list(parts) if parts else [None] * len(nodes)
        made = [Place(*each) for each in zip(nodes, scopes, tables, strict=True)]
        self.places += made
        self.divisions.append((made, parts or None))

    def spend_the_rest(self, place: Place) -> None:
        """Exactly what is said to remain can be charged; a hair more cannot."""
        left = self.remaining(place)
        assert left >= 0
        self.charge([place], [left + HAIR], lambda: place.table and place.table.count(left + HAIR), expected=False)
        if left:
            self.charge([place], [left], lambda: place.table and place.table.count(left), expected=True)
            assert self.remaining(place) == 0

    def remaining(self, place: Place) -> Fraction:
        if place.table:
            return place.table.budget.remaining
        return place.scope.headroom(self.budget - self.root.scope.spent)[0]

    def charge(
        self, places: list[Place], losses: list[Fraction], ask: Callable[[], Any], expected: bool | None = None
    ) -> None:
        paid = [(place.node, loss) for place, loss in zip(places, losses, strict=True)]
        allowed = fits_with(self.root.node, paid, self.version)
        assert expected in (None, allowed)
        before = self.state()
        try:
            if self.table:
                ask()
            else:
                own = [place.scope for place in places]  # of one level
                scopes = Scopes._of(own[0]._level, np.concatenate([scope._at for scope in own]))
                charge(scopes, PerPart.of(losses), lambda reaches_root: None, self.version)
        except BudgetExceeded as refused:
            assert not allowed
            assert refused.remaining < refused.requested
            assert self.state() == before
            return
        assert allowed
        self.entries += 1
        for node, loss in paid:
            node.charges.append((self.version, loss))

    def state(self) -> object:
        entries = self.table.budget.entries if self.table else []
        return entries, [(self.spent(place), self.remaining(place)) for place in self.places]

    def spent(self, place: Place) -> Fraction:
        return place.table.budget.spent if place.table else place.scope.spent

    def check(self) -> None:
        assert self.root.node.cost() <= self.budget
        for place in self.places:
            assert self.spent(place) == place.node.cost()
        if self.table:
            entries = self.table.budget.entries
            assert len(entries) == self.entries
            assert sum((entry.loss for entry in entries), Fraction(0)) == self.root.node.cost()


@given(BUDGETS, PROGRAMS)
@settings(PROPERTY, max_examples=300)
def test_programs_of_scopes_cost_what_the_reference_says(budget: Fraction, program: list[Any]) -> None:
    run = Run(budget, None)
    for step in program:
        run.step(*step)
        run.check()


@given(BUDGETS, PROGRAMS)
@example(Fraction(1), [("divide", 0, "a"), ("spend the rest", 1, []), ("spend the rest", 2, []), ("allot", 2, HAIR)])
@settings(PROPERTY, max_examples=150)
def test_programs_of_questions_cost_what_the_reference_says(budget: Fraction, program: list[Any]) -> None:
    run = Run(budget, tiny_table(budget))
    for step in program:
        run.step(*step)
    run.check()


@given(PROGRAMS, st.tuples(WHERE, TENTHS))
@PROPERTY
def test_alone_is_what_reaches_the_root_where_nothing_was_paid_for_these_rows(
    program: list[Any], then: tuple[int, Fraction]
) -> None:
    run = Run(Fraction(10**6), None)
    for step in program:
        if step[0] not in ("allot", "spend the rest"):
            run.step(*step)
    where, loss = then
    scope = run.places[where % len(run.places)].scope
    expected = alone(scope, loss)
    run.change()
    reached: list[Fraction] = []
    charge(scope, loss, reached.append, run.version)
    assert reached == [expected]


# -- the rules one by one -----------------------------------------------------------------------


def test_two_partitions_of_one_table_add_even_by_the_same_column() -> None:
    table = tiny_table()
    table.partition("a").count("0.25")
    table.partition("a").count("0.25")
    assert table.budget.spent == Fraction(1, 2)


def test_siblings_share_a_maximum() -> None:
    table = tiny_table()
    left, right = table.partition("a")
    left.count("0.3")
    right.count("0.2")
    assert (table.budget.spent, left.budget.spent, right.budget.spent) == (
        Fraction(3, 10),
        Fraction(3, 10),
        Fraction(1, 5),
    )
    right.count("0.1")  # up to what its sibling has made the table pay: free
    assert table.budget.spent == Fraction(3, 10)
    right.count("0.1")
    assert table.budget.spent == Fraction(2, 5)


def test_siblings_share_nothing_that_was_paid_for_other_rows() -> None:
    """A person may have moved from one part to the other."""
    table = tiny_table()
    left, right = table.partition("a")
    left.count("0.3")
    table._session.engine.version = 1  # type: ignore[misc]
    right.count("0.2")
    assert table.budget.spent == Fraction(1, 2)
    left.count("0.2")  # both for the rows as they are now
    assert table.budget.spent == Fraction(1, 2)


def test_a_fit_that_goes_on_with_other_rows_is_refused_beyond_its_epsilon_and_says_why() -> None:
    table = tiny_table().allot("0.5")
    left, right = table.partition("a")
    left.count("0.5")  # a leaf, with all that its path has left
    table._session.engine.version = 1  # type: ignore[misc]
    with pytest.raises(BudgetExceeded, match=r"since the connection was lost.*has 0 left\. Begin again"):
        right.count("0.5")


def test_a_parent_asked_after_its_parts_adds() -> None:
    table = tiny_table()
    parts = table.partition("a")
    parts.count("0.25")
    table.count("0.25")
    parts[0].count("0.25")
    assert table.budget.spent == Fraction(3, 4)


def test_each_part_may_have_an_epsilon_of_its_own() -> None:
    table = tiny_table()
    releases = table.partition("b").count(["0.1", 0.3, "1/5"])
    assert [release.epsilon for release in releases] == [Fraction(1, 10), Fraction(3, 10), Fraction(1, 5)]
    assert table.budget.spent == Fraction(3, 10)
    with pytest.raises(QuestionError):
        table.partition("b").count([0.1, 0.1])


def test_a_tree_costs_its_dearest_path_and_a_leaf_may_spend_the_rest_of_its_own() -> None:
    table = tiny_table()
    left, right = table.partition("a")
    left.count("0.2")
    deep = left.partition("b")
    deep.count("0.3")
    assert table.budget.spent == Fraction(1, 2)
    assert [part.budget.remaining for part in deep] == deep.remaining == [Fraction(1, 2)] * 3
    assert right.budget.remaining == 1
    right.count(right.budget.remaining)
    assert table.budget.remaining == 0
    assert deep.remaining == [Fraction(1, 2)] * 3  # what the sibling has made the table pay
    deep.count(deep.remaining)
    assert table.budget.spent == 1 and deep.remaining == [0] * 3


def test_parts_are_charged_all_or_none() -> None:
    table = tiny_table()
    parts = table.partition("a")
    with pytest.raises(BudgetExceeded):
        parts.count(["0.5", "1.5"])
    assert table.budget.spent == 0 and [part.budget.spent for part in parts] == [0, 0]


def test_an_allotment_limits_all_its_parts_together_and_says_so() -> None:
    table = tiny_table()
    little = table.allot("0.3")
    little.partition("a").count("0.2")
    with pytest.raises(BudgetExceeded, match="allotment") as refused:
        little.count("0.2")
    assert (refused.value.requested, refused.value.remaining) == (Fraction(1, 5), Fraction(1, 10))
    little.count("0.1")
    assert little.budget.remaining == 0 and table.budget.spent == Fraction(3, 10)


@pytest.mark.parametrize("rows_per_person", [1, 3, 7])
def test_epsilon_is_charged_per_person_whatever_the_rows(rows_per_person: int) -> None:
    table = tiny_table(rows_per_person=rows_per_person)
    count = table.count("0.1")
    assert count.epsilon == table.budget.spent == Fraction(1, 10)
    assert count.noise.epsilon == Fraction(1, 10) / rows_per_person


def test_a_charge_that_was_refused_changes_no_scope() -> None:
    root = Scopes()
    left, right = parts = root.divide(2)

    def refuses(reaches_root: Fraction) -> None:
        assert reaches_root == Fraction(3, 10)
        raise BudgetExceeded("no", requested=reaches_root, remaining=Fraction(0))

    with pytest.raises(BudgetExceeded):
        charge(parts, PerPart.of([Fraction(1, 10), Fraction(3, 10)]), refuses)
    assert root.spent == left.spent == right.spent == 0
    charge(left, Fraction(1, 10), lambda reaches_root: None)
    assert root.spent == Fraction(1, 10)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_a_charge_that_was_stopped_counts_as_lost_and_never_as_paid(stop: type[BaseException]) -> None:
    """It may be on disk: the scope keeps the loss. It may not be: nobody may spend under it."""
    root = Scopes()
    left, right = root.divide(2)

    def stops(reaches_root: Fraction) -> None:
        raise stop

    with pytest.raises(stop):
        charge(left, Fraction(1, 10), stops)
    assert left.spent == Fraction(1, 10)
    paid = []
    charge(right, Fraction(1, 10), paid.append)  # nothing of the stopped charge is free for a sibling
    charge(left, Fraction(1, 10), paid.append)  # nor for the part itself
    assert paid == [Fraction(1, 10), Fraction(1, 10)]


@contextmanager
def interrupted_at(step: int) -> Iterator[list[int]]:
    """Press Ctrl-C before a line of the accounting; what is yielded has all lines that ran."""
    lines: list[int] = []

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != accounting.__file__:
            return None
        if event == "line":
            lines.append(frame.f_lineno)
            if len(lines) == step:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("refused", [True, False])
def test_an_interrupt_at_any_line_of_a_charge_makes_nothing_free(refused: bool) -> None:
    """Not even while a refusal is undone, with nothing on disk.

    In a thread of its own: one that is interrupted in a handler takes its exception for the cause of all later ones.
    """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_interrupt_at_every_line, refused).result()


def _interrupt_at_every_line(refused: bool) -> None:
    for step in itertools.count(1):
        root = Scopes()
        parts = root.divide(3)
        paid: list[Fraction] = []

        def commit(reaches_root: Fraction) -> None:
            if refused:
                raise Refused
            paid.append(reaches_root)  # noqa: B023

        with interrupted_at(step) as lines, contextlib.suppress(Refused):
            charge(parts, Fraction(1), commit)
        for part in parts:  # each is asked once, and may be answered
            charge(part, Fraction(1), paid.append)
        assert sum(paid) >= 1 and root.spent <= sum(paid)
        if len(lines) < step:
            assert step > 20
            break


def test_no_loss_is_below_zero_and_gives_back_what_was_spent() -> None:
    root = Scopes()
    with pytest.raises(PrivacyError, match="would give back"):
        charge(root, Fraction(-1), print)

    class Odd(Fraction):
        """A number that passes for one and is multiplied as another."""

        def __mul__(self, other: object) -> Fraction:
            return Fraction(-(10**99))

    table = tiny_table()
    assert table.count(Odd(1, 10)).epsilon == table.budget.spent == Fraction(1, 10)


@pytest.mark.parametrize("unit", (accounting.PURE, accounting.unit_with(Fraction(1, 10**6))), ids=("epsilon", "rho"))
def test_what_a_unit_draws_for_a_loss_costs_just_that_in_this_unit(unit: accounting.Unit) -> None:
    """A unit that left one of these to the other unit would draw too much noise, or too little."""
    loss = Fraction(1, 8)
    drawn = {
        "noise": unit.noise(loss),
        "residual noise": unit.residual_noise(loss, (3, 3)),
        "choice": unit.choice(loss, 1, True),
        "ranges": unit.ranges(loss, 1, True),
        "top": unit.top(loss, 1, False, 3),
        "intervals": unit.intervals(loss, 1, 4, 2),
        "watch": unit.watch(loss, 1, 2),
        "sum and count": unit.sum_and_count(loss, 5),
    }
    costs = {name: float(unit.loss(mechanism) / loss) for name, mechanism in drawn.items()}
    assert all(0.999 < cost <= 1 for cost in costs.values()), costs
