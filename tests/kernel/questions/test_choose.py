"""A quality function of one's own: its scores, what clipping costs, and exact losses over all small neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import FULL, long, sized

import privet
from privet.errors import BudgetExceeded, KeyReused, QuestionError, UndeclaredDomain
from privet.kernel import PerPart, Quality
from privet.kernel.accounting import PURE
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.questions.counts import LARGEST_BOUND, ChooseQuestion
from privet.kernel.rows import Rows, Split
from privet.kernel.selections import SELECTIONS
from privet.lab import worst_loss
from privet.question_json import question_from_json
from privet.release import Choice

DOMAIN = Domain(
    (
        Nominal("a", ("0", "1")),
        Nominal("b", ("0", "1", "2")),
        Numeric("x", Fraction(0), Fraction(3), Fraction(1), bins=2),
    )
)
SIZES = {"a": 2, "b": 3, "x": 2}
GROUPS = [(), ("a",), ("b",), ("x",), ("b", "a"), ("a", "x", "b")]
RECORDS = list(itertools.product("01", "012", (0, 3)))
Record = tuple[Any, ...]


def frame(rows: Sequence[Record]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["a", "b", "x"])


def codes(row: Record) -> dict[str, int]:
    return {"a": int(row[0]), "b": int(row[1]), "x": int(row[2] >= 1.5)}


def opened(rows: Sequence[Record] = RECORDS, **more: Any) -> privet.ProtectedTable:
    return privet.open(frame(rows), DOMAIN, **{"budget": 10**6, **more})


# -- scores -----------------------------------------------------------------------------------------------------------


@st.composite
def qualities(draw: Callable[..., Any], numbers: st.SearchStrategy[int]) -> dict[str, Quality]:
    made = {}
    for name in "pqr"[: draw(st.integers(2, 3))]:
        columns = draw(st.sampled_from(GROUPS))
        shape = tuple(SIZES[column] for column in columns)
        cells = draw(st.lists(numbers, min_size=math.prod(shape), max_size=math.prod(shape)))
        made[name] = Quality(columns, np.array(cells, dtype=object).reshape(shape))
    return made


@given(
    qualities(st.integers(-9, 9) | st.integers(-(10**30), 10**30)),
    st.lists(st.sampled_from(RECORDS), max_size=12),
    st.integers(1, 5) | st.just(LARGEST_BOUND),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_a_score_is_the_sum_of_what_the_table_says_of_each_row(
    candidates: dict[str, Quality], rows: list[Record], bound: int
) -> None:
    """In every part, with numbers of any size, which are cut to the bound."""
    question = ChooseQuestion(tuple(candidates.items()), bound)
    parts = Rows().divide([Split("a")], DOMAIN)
    question.check(DOMAIN, parts)
    exact = question.exact(MemoryEngine.from_frame(frame(rows), DOMAIN), parts, DOMAIN)
    expected = [[0] * len(candidates) for _ in range(2)]
    for row, (at, quality) in itertools.product(rows, enumerate(candidates.values())):
        cell = np.array(quality.table, dtype=object).reshape(quality.shape)
        for column in quality.columns:
            cell = cell[codes(row)[column]]
        number = int(cell if isinstance(cell, int) else cell.item())
        expected[codes(row)["a"]][at] += max(-bound, min(bound, number))
    assert exact.tolist() == expected


@pytest.mark.parametrize("mechanism", SELECTIONS)
def test_the_best_candidate_of_every_part_is_chosen(mechanism: str) -> None:
    table = opened([*RECORDS, ("0", "2", 0), ("1", "1", 3)])
    numbers = {name: Quality(("b",), [5 * (name == "no"), 1, -1]) for name in ("one", "no", "other")}
    candidates = {**numbers, "two": Quality(("b", "x"), [[0, 0], [9, 9], [0, 0]])}
    choice = table.choose(candidates, 10**4, bound=9, mechanism=mechanism)
    assert isinstance(choice, Choice) and choice == "two" and choice.point is None
    assert choice.about.question == "choose(4 candidates)" and choice.epsilon == 10**4
    assert isinstance(choice.mechanism, SELECTIONS[mechanism])  # type: ignore[arg-type]
    assert list(table.partition("b").choose(candidates, 10**4, bound=9, mechanism=mechanism)) == ["no", "two", "two"]
    assert choice.shortfall(0.95) <= 1


def test_an_answer_is_stored_under_its_key() -> None:
    table = opened()
    candidates = {"a": Quality(("a",), [1, 0]), "b": Quality(("a",), [0, 1])}
    first = table.choose(candidates, "0.01", bound=1, key="k")
    assert {str(table.choose(candidates, "0.01", bound=1, key="k")) for _ in range(20)} == {str(first)}
    assert table.budget.spent == Fraction(1, 100)
    for other in (
        lambda: table.choose(candidates, "0.01", bound=2, key="k"),
        lambda: table.choose(candidates, "0.01", bound=1, mechanism="noisy-max", key="k"),
        lambda: table.choose({**candidates, "b": Quality(("a",), [0, 2])}, "0.01", bound=1, key="k"),
        lambda: table.choose(candidates, "0.02", bound=1, key="k"),
    ):
        with pytest.raises(KeyReused):
            other()


def test_the_json_form_makes_the_same_question() -> None:
    candidates = (("a", Quality((), -(10**40))), ("b", Quality(("b", "a"), [[1, 2], [3, 4], [-5, 6]])))
    question = ChooseQuestion(candidates, 7, "noisy-max")
    again = question_from_json(question.to_json())
    assert again == question and again.fingerprint == question.fingerprint
    others = [ChooseQuestion(candidates, 8, "noisy-max"), ChooseQuestion(candidates[::-1], 7, "noisy-max")]
    assert len({each.fingerprint for each in (question, *others)}) == 3


# -- the loss ---------------------------------------------------------------------------------------------------------

TWO_WAYS = {
    "p": Quality(("a", "b"), [[50, 0, -50], [1, -1, 3]]),
    "q": Quality(("a",), [-70, 2]),
    "r": Quality((), 0),
}
RISING = {"p": Quality(("a", "b"), [[50, 0, 0], [1, 1, 3]]), "q": Quality(("a",), [0, 2]), "r": Quality((), 0)}
FALLING = {name: Quality(each.columns, -np.reshape(each.table, each.shape)) for name, each in RISING.items()}
SMALL = [row for row in RECORDS if row[2] == 0]
TABLES = (
    [rows for size in (0, 1, 2) for rows in itertools.combinations_with_replacement(SMALL, size)]
    if FULL
    else [(), *((row, row) for row in SMALL)]  # where the loss comes closest to epsilon
)
NEIGHBOURS = [(rows, (*rows, person)) for rows in TABLES for person in SMALL]
EPSILON = Fraction(3, 2)


def largest_loss(candidates: dict[str, Quality], bound: int, mechanism: str = "permute-and-flip") -> float:
    """The worst loss over all tables of at most two rows, or some of them, and a person more, of every outcome."""

    def run(table: Any) -> str:
        return str(table.choose(candidates, EPSILON, bound=bound, mechanism=mechanism))

    found = [worst_loss(run, frame(left), frame(right), DOMAIN) for left, right in NEIGHBOURS]
    assert all(each.complete for each in found)
    return max(each.loss for each in found)


@sized
@pytest.mark.parametrize("candidates", [TWO_WAYS, RISING, FALLING], ids=["two ways", "rising", "falling"])
@pytest.mark.parametrize("bound", [1, *(pytest.param(bound, marks=long) for bound in (2, 70))])
@pytest.mark.parametrize("mechanism", SELECTIONS)
def test_a_bound_costs_accuracy_and_never_privacy(candidates: dict[str, Quality], bound: int, mechanism: str) -> None:
    """The numbers go to 70, so that the bounds 1 and 2 are understated: the loss stays below epsilon, and comes close
    enough that noise for 1.25 epsilon would show.
    """
    worst = largest_loss(candidates, bound, mechanism)
    assert worst <= float(EPSILON) + 1e-9
    if mechanism == "permute-and-flip" and bound <= 2:  # the records that the bound is made for are among these
        assert worst > 0.95 * float(EPSILON)


@sized
def test_scores_that_were_not_clipped_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a bound of 1 is believed, and a record moves a score by 50."""
    monkeypatch.setattr(Quality, "clipped", lambda self, bound: np.array(self.table, dtype=np.int64))
    assert largest_loss(RISING, 1) > 10 * float(EPSILON)


@sized
def test_scores_that_move_both_ways_and_pass_for_rising_ones_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChooseQuestion, "monotone", True)
    assert 1.95 * float(EPSILON) < largest_loss(TWO_WAYS, 2) <= 2 * float(EPSILON) + 1e-9


def test_a_bound_that_is_too_small_costs_accuracy() -> None:
    table = opened([("0", "0", 0)] * 3 + [("1", "0", 0)])
    candidates = {"rare": Quality(("a",), [0, 10]), "common": Quality(("a",), [1, 0])}
    assert table.choose(candidates, 10**4, bound=10) == "rare"  # 10 against 3
    assert table.choose(candidates, 10**4, bound=2) == "common"  # 2 against 3


@pytest.mark.parametrize(
    ("tables", "monotone"),
    [
        ([[0, 5], [3, 0]], True),
        ([[0, -5], [-3, 0]], True),
        ([[0, 0], [0, 0]], True),
        ([[0, 5], [-1, 0]], False),
        ([[-1, 5], [0, 0]], False),
    ],
)
def test_a_selection_is_monotone_where_no_two_numbers_have_different_signs(
    tables: list[list[int]], monotone: bool
) -> None:
    """Of all candidates together: one that rises while another falls moves their difference by twice the bound."""
    candidates = tuple((str(at), Quality(("a",), table)) for at, table in enumerate(tables))
    for kind, mechanism in SELECTIONS.items():
        (made,) = ChooseQuestion(candidates, 5, kind).mechanisms(DOMAIN, PerPart.same(EPSILON, 1), PURE)
        assert made == mechanism(EPSILON, 5, monotone)
        assert made.loss == EPSILON


def test_a_person_with_several_rows_loses_epsilon_in_all() -> None:
    domain = Domain(DOMAIN.columns, rows_per_person=2)
    table = privet.open(frame(RECORDS), domain, budget=1)
    choice = table.choose({"p": Quality(("a",), [0, 1]), "q": Quality(("a",), [1, 0])}, 1, bound=1)
    assert choice.epsilon == 1 == table.budget.spent and choice.mechanism.loss == Fraction(1, 2)


# -- large tables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 3, LARGEST_BOUND])
@pytest.mark.parametrize("weights", [(2**62, 1), (2**61, 2**61), (5, 2**40), (2**31, 2**31)])
def test_scores_of_large_tables_are_exact_and_one_more_row_moves_them_by_the_bound(
    bound: int, weights: tuple[int, int]
) -> None:
    """Rows times the bound are beyond 64 bits long before the rows are."""
    candidates = (
        ("p", Quality(("a",), [bound, -bound])),
        ("q", Quality((), bound)),
        ("r", Quality(("a",), [0, 2**70])),
    )
    question = ChooseQuestion(candidates, bound)
    rows = [("0", "0", 0), ("1", "0", 0)]

    def scores(*more: int) -> list[int]:
        given = [*zip(rows, weights, strict=True), *((rows[at], 1) for at in more)]
        engine = ReferenceEngine(DOMAIN, [row for row, _ in given], [weight for _, weight in given])
        (found,) = question.exact(engine, Rows(), DOMAIN).tolist()
        return found  # type: ignore[no-any-return]

    first, second = weights
    assert scores() == [bound * (first - second), bound * (first + second), bound * second]
    for at in (0, 1):
        moved = [after - before for before, after in zip(scores(), scores(at), strict=True)]
        assert max(map(abs, moved)) == bound


# -- bad input --------------------------------------------------------------------------------------------------------

GOOD = {"p": Quality(("a",), [0, 1]), "q": Quality(("a",), [1, 0])}

WRONG: dict[str, tuple[Callable[[privet.ProtectedTable], Any], type[Exception]]] = {
    "a list": (lambda t: t.choose(list(GOOD.values()), 1, bound=1), QuestionError),
    "nothing": (lambda t: t.choose({}, 1, bound=1), QuestionError),
    "one": (lambda t: t.choose({"p": GOOD["p"]}, 1, bound=1), QuestionError),
    "no name": (lambda t: t.choose({**GOOD, "": GOOD["p"]}, 1, bound=1), QuestionError),
    "a name of two lines": (lambda t: t.choose({**GOOD, "a\nb": GOOD["p"]}, 1, bound=1), QuestionError),
    "a long name": (lambda t: t.choose({**GOOD, "a" * 201: GOOD["p"]}, 1, bound=1), QuestionError),
    "a number as name": (lambda t: t.choose({**GOOD, 3: GOOD["p"]}, 1, bound=1), QuestionError),
    "a table that is no quality": (lambda t: t.choose({**GOOD, "r": [0, 1]}, 1, bound=1), QuestionError),
    "an unknown column": (lambda t: t.choose({**GOOD, "r": Quality(("z",), [0, 1])}, 1, bound=1), UndeclaredDomain),
    "too few numbers": (lambda t: t.choose({**GOOD, "r": Quality(("b",), [0, 1])}, 1, bound=1), QuestionError),
    "too few axes": (lambda t: t.choose({**GOOD, "r": Quality(("a", "b"), [0, 1])}, 1, bound=1), QuestionError),
    "axes in another order": (
        lambda t: t.choose({**GOOD, "r": Quality(("a", "b"), np.zeros((3, 2), int))}, 1, bound=1),
        QuestionError,
    ),
    "a column twice": (
        lambda t: t.choose({**GOOD, "r": Quality(("a", "a"), [[0, 1], [2, 3]])}, 1, bound=1),
        QuestionError,
    ),
    "no numbers": (lambda t: t.choose({**GOOD, "r": Quality(("a",), np.zeros(0, int))}, 1, bound=1), QuestionError),
    "a text as columns": (lambda t: Quality("a", [0, 1]), QuestionError),
    "a number as columns": (lambda t: Quality(3, [0, 1]), QuestionError),  # type: ignore[arg-type]
    "numbers as columns": (lambda t: Quality((3,), [0, 1]), QuestionError),  # type: ignore[arg-type]
    "halves": (lambda t: Quality(("a",), [0.5, 1]), QuestionError),
    "floats": (lambda t: Quality(("a",), [0.0, 1.0]), QuestionError),
    "truths": (lambda t: Quality(("a",), [True, False]), QuestionError),
    "truths among objects": (lambda t: Quality(("a",), np.array([True, 2**70], dtype=object)), QuestionError),
    "texts": (lambda t: Quality(("a",), ["0", "1"]), QuestionError),
    "none": (lambda t: Quality(("a",), None), QuestionError),
    "rows of different lengths": (lambda t: Quality(("a", "b"), [[0, 1], [2]]), QuestionError),
    "a bound of 0": (lambda t: t.choose(GOOD, 1, bound=0), QuestionError),
    "a bound below 0": (lambda t: t.choose(GOOD, 1, bound=-1), QuestionError),
    "a bound of halves": (lambda t: t.choose(GOOD, 1, bound=1.5), QuestionError),
    "a bound of words": (lambda t: t.choose(GOOD, 1, bound="1"), QuestionError),
    "a true bound": (lambda t: t.choose(GOOD, 1, bound=True), QuestionError),
    "too large a bound": (lambda t: t.choose(GOOD, 1, bound=LARGEST_BOUND + 1), QuestionError),
    "an unknown selection": (lambda t: t.choose(GOOD, 1, bound=1, mechanism="best"), QuestionError),
    "a list of selections": (lambda t: t.choose(GOOD, 1, bound=1, mechanism=["exponential"]), QuestionError),
    "no epsilon": (lambda t: t.choose(GOOD, 0, bound=1), QuestionError),
    "two epsilons": (lambda t: t.choose(GOOD, [1, 1], bound=1), QuestionError),
    "an empty key": (lambda t: t.choose(GOOD, 1, bound=1, key=""), QuestionError),
    "too much": (lambda t: t.choose(GOOD, 10, bound=1), BudgetExceeded),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_bad_input_is_refused_in_a_sentence_and_charged_nothing(wrong: str) -> None:
    table = opened(budget=5)
    ask, error = WRONG[wrong]
    with pytest.raises(error) as caught:
        ask(table)
    text = str(caught.value)
    assert text.endswith(".") and "\n" not in text and len(text) < 400
    assert table.budget.entries == [] and table.budget.spent == 0


def test_too_many_cells_are_refused_before_anything_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.kernel.questions.counts.MAX_CELLS", 9)
    table = opened(budget=5)
    candidates = {"p": Quality(("a",), [0, 1]), "q": Quality(("b",), [1, 0, 0]), "r": Quality(("a",), [1, 0])}
    assert table.choose(candidates, 1, bound=1) in candidates  # 5 cells: those of one column count once
    with pytest.raises(QuestionError, match="10 cells, at most 9"):
        table.partition("a").choose(candidates, 1, bound=1)
    assert table.budget.spent == 1


WRONG_JSON: list[Callable[[dict[str, Any]], Any]] = [
    lambda json: json.update(bound="1"),
    lambda json: json.update(bound=True),
    lambda json: json.update(mechanism=3),
    lambda json: json.update(more=1),
    lambda json: json.update(candidates={}),
    lambda json: json.update(candidates=[["p", [0, 1]]]),
    lambda json: json["candidates"][0].update(shape=[3]),
    lambda json: json["candidates"][0].update(shape=[-1, -2]),
    lambda json: json["candidates"][0].update(shape=[0], table=[]),
    lambda json: json["candidates"][0].update(table=[0.5, 1]),
    lambda json: json["candidates"][0].update(table=[[0, 1]]),
    lambda json: json["candidates"][0].update(columns="a"),
    lambda json: json["candidates"][0].update(name=3),
    lambda json: json["candidates"][0].update(code="lambda: 1"),
    lambda json: json["candidates"][0].pop("name"),
]


@pytest.mark.parametrize("change", WRONG_JSON, ids=range(len(WRONG_JSON)))
def test_json_that_describes_no_such_question_is_refused_in_a_sentence(change: Callable[[Any], Any]) -> None:
    good = ChooseQuestion(tuple(GOOD.items()), 1).to_json()
    candidates = [dict(each) for each in good["candidates"]]  # type: ignore[call-overload, index, arg-type]
    bad = {**good, "candidates": candidates}  # type: ignore[dict-item]
    assert question_from_json(bad) == ChooseQuestion(tuple(GOOD.items()), 1)
    change(bad)
    with pytest.raises(QuestionError, match=r"\.$"):
        question_from_json(bad)
