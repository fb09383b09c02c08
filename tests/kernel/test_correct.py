"""Questions about released models: how many rows one classifies right, and which of several candidates has most."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet import AdditiveModel
from privet.errors import BudgetExceeded, KeyReused, QuestionError, UndeclaredDomain
from privet.kernel import LOGIT_GRID, IntegerLaplace
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import open_public, worst_loss
from privet.models.privacy_record import Privacy
from privet.models.tables import Table, Tables

EXACT = 10_000  # at this epsilon an answer is the true one
LARGE = 10**6

DOMAIN = Domain(
    (
        Nominal("job", ("clerk", "nurse", "smith")),
        Nominal("sex", ("f", "m")),
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), edges=(Fraction(30), Fraction(60))),
        Nominal("y", ("no", "yes")),
    ),
    target="y",
)
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "job": RNG.choice(["clerk", "nurse", "smith"], 200),
        "sex": RNG.choice(["f", "m"], 200),
        "age": RNG.integers(0, 100, 200),
        "y": RNG.choice(["no", "yes"], 200),
    }
)
NO, YES = AdditiveModel((1, 0)), AdditiveModel((0, 1))
TIED = AdditiveModel((5, 5))
# of nurses and of men above 60 it says yes, of all others no
JOINT = AdditiveModel(
    (1, 0),
    (
        (("job",), np.array([[0, 0], [0, 2], [0, 0]])),
        (("sex", "age"), np.array([[[0, 0]] * 3, [[0, 0], [0, 0], [0, 2]]])),
    ),
)
SAYS_YES = (FRAME["job"] == "nurse") | ((FRAME["sex"] == "m") & (FRAME["age"] >= 60))
RIGHT = SAYS_YES == (FRAME["y"] == "yes")


@pytest.fixture(params=["memory", "csv", "snapshot"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[privet.ProtectedTable]:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    data = FRAME if request.param == "memory" else tmp_path / "people.csv"
    with privet.open(
        data, DOMAIN, budget=LARGE, access="snapshot" if request.param == "snapshot" else "push-down"
    ) as table:
        yield table


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=LARGE)


# -- how many rows are classified right -----------------------------------------------------------


def test_the_rows_that_a_model_classifies_right_are_counted(people: privet.ProtectedTable) -> None:
    assert people.count_correct(JOINT, EXACT) == RIGHT.sum()
    assert people.count_correct(YES, EXACT) == (FRAME["y"] == "yes").sum()


def test_of_equal_logits_the_class_declared_first_counts(people: privet.ProtectedTable) -> None:
    assert people.count_correct(TIED, EXACT) == people.count_correct(NO, EXACT) == (FRAME["y"] == "no").sum()


def test_a_term_may_look_at_many_columns(people: privet.ProtectedTable) -> None:
    """A table of three columns that knows the majority of every cell is at least as good as any other model."""
    codes = [FRAME["job"].map({"clerk": 0, "nurse": 1, "smith": 2}), FRAME["sex"].map({"f": 0, "m": 1})]
    codes += [np.digitize(FRAME["age"], [30, 60]), (FRAME["y"] == "yes").astype(int)]
    counts = np.zeros((3, 2, 3, 2), dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    assert (
        people.count_correct(AdditiveModel((0, 0), ((("job", "sex", "age"), counts),)), EXACT)
        == counts.max(axis=-1).sum()
    )


def test_parts_and_conditions_are_counted_by_themselves(people: privet.ProtectedTable) -> None:
    by_job = people.partition("job").count_correct(JOINT, EXACT)
    assert list(by_job) == [(RIGHT & (FRAME["job"] == job)).sum() for job in ("clerk", "nurse", "smith")]
    assert (
        people.where(sex="m", age=(60, None)).count_correct(JOINT, EXACT)
        == ((FRAME["sex"] == "m") & (FRAME["age"] >= 60) & (FRAME["y"] == "yes")).sum()
    )
    assert list(people.partition("sex").count_correct(YES, [EXACT, 2 * EXACT])) == [
        ((FRAME["sex"] == sex) & (FRAME["y"] == "yes")).sum() for sex in "fm"
    ]


def test_the_same_rows_are_right_as_for_the_published_model_of_the_same_logits() -> None:
    """`Tables.predict_codes`, of logits that are on the grid; with few different ones many rows have ties."""
    rng = np.random.default_rng(5)
    terms = [((), (2,)), (("job",), (3, 2)), (("sex", "age"), (2, 3, 2))]
    with privet.open(FRAME, DOMAIN, budget=LARGE) as table:
        for _ in range(20):
            intercept, *tables = [(columns, rng.integers(-1, 2, shape)) for columns, shape in terms]
            floats = tuple(Table(columns, values / LOGIT_GRID, np.zeros(values.shape)) for columns, values in tables)
            logits = tuple((intercept[1] / LOGIT_GRID).tolist())
            published = Tables(DOMAIN, logits, floats, Privacy("prior", "corrected", Fraction(1), 1, ()))
            right = (published.predict_codes(FRAME) == (FRAME["y"] == "yes")).sum()
            assert table.count_correct(AdditiveModel(tuple(intercept[1].tolist()), tuple(tables)), 100) == right


def test_it_is_charged_once_and_its_noise_is_that_of_a_count(table: privet.ProtectedTable) -> None:
    found = table.count_correct(JOINT, "0.25")
    assert (found.epsilon, found.noise, found.private) == (Fraction(1, 4), IntegerLaplace(Fraction(1, 4)), True)
    assert [(each.question, each.loss) for each in table.budget.entries] == [("count_correct", Fraction(1, 4))]
    table.partition("job").count_correct(JOINT, "0.25")
    assert table.budget.spent == Fraction(1, 2)


def test_people_with_several_rows_get_more_noise() -> None:
    domain = Domain(DOMAIN.columns, target="y", rows_per_person=4)
    with privet.open(FRAME, domain, budget=2) as table:
        assert table.count_correct(YES, 2).noise == IntegerLaplace(Fraction(1, 2))
        assert table.budget.remaining == 0


def test_a_key_brings_back_the_same_answer_and_belongs_to_one_model(table: privet.ProtectedTable) -> None:
    first = table.count_correct(JOINT, 1, key="k")
    assert table.count_correct(AdditiveModel(JOINT.intercept, JOINT.terms), 1, key="k") == first
    with pytest.raises(KeyReused):
        table.count_correct(YES, 1, key="k")
    assert table.budget.spent == 1


def test_it_can_be_refined(table: privet.ProtectedTable) -> None:
    assert table.count_correct(JOINT, 1).refine(EXACT) == RIGHT.sum()
    assert table.budget.spent == EXACT


def test_public_rows_answer_exactly() -> None:
    assert open_public(FRAME, DOMAIN).count_correct(JOINT, math.inf) == RIGHT.sum()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_a_person_loses_exactly_epsilon_if_they_are_classified_right_and_nothing_else(epsilon: Fraction) -> None:
    for answer, loss in (("no", float(epsilon)), ("yes", 0.0)):
        person = pd.DataFrame([{"job": "smith", "sex": "f", "age": 1, "y": answer}])
        more = pd.concat([FRAME[:5], person])
        found = worst_loss(lambda asked: int(asked.count_correct(JOINT, epsilon)), FRAME[:5], more, DOMAIN)
        assert found.loss == pytest.approx(loss, abs=1e-9)


# -- the best of several candidates ---------------------------------------------------------------


def test_the_best_is_the_candidate_with_the_most_rows(people: privet.ProtectedTable) -> None:
    """Models and conditions in one competition."""
    everyone = {"joint": JOINT, "yes": YES, "no": NO, "nurses": {"job": "nurse"}, "all": {}}
    best = people.best(everyone, EXACT)
    assert best == "all" and isinstance(best, privet.Release)
    del everyone["all"]
    counts = {"joint": RIGHT.sum(), "yes": (FRAME["y"] == "yes").sum(), "no": (FRAME["y"] == "no").sum()}
    counts["nurses"] = (FRAME["job"] == "nurse").sum()
    assert people.best(everyone, EXACT) == max(counts, key=counts.__getitem__)
    assert people.best({"old": {"age": (60, None)}, "young": {"age": (0, 10), "sex": {"f", "m"}}}, EXACT) == "old"


def test_every_part_has_its_own_best(people: privet.ProtectedTable) -> None:
    by_job = people.partition("job").best({"no": NO, "nurses": {"job": "nurse"}}, EXACT)
    assert list(by_job) == ["no", "nurses", "no"]


def test_conditions_need_no_target() -> None:
    with privet.open(FRAME, Domain(DOMAIN.columns), budget=LARGE) as table:
        assert table.best({"some": {"sex": "f"}, "all": {}}, EXACT) == "all"
        with pytest.raises(UndeclaredDomain):
            table.best({"some": {"sex": "f"}, "model": NO}, EXACT)


def test_a_best_is_charged_once_however_many_candidates_there_are(table: privet.ProtectedTable) -> None:
    best = table.best({f"{age} or more": {"age": (age, None)} for age in range(50)}, "0.5")
    assert best.epsilon == table.budget.spent == Fraction(1, 2)
    assert best.shortfall(0.95) == pytest.approx(math.log(50 / 0.05) / 0.5)
    assert table.budget.entries[0].question == "best(50 candidates)"


def test_a_key_tells_choices_apart_by_their_names_and_candidates(table: privet.ProtectedTable) -> None:
    first = {"a": NO, "b": {"sex": "f"}}
    chosen = table.best(first, 1, key="k")
    assert table.best(dict(first), 1, key="k") == chosen
    for other in ({"a": YES, "b": {"sex": "f"}}, {"a": NO, "b": {"sex": "m"}}, {"a": NO, "c": {"sex": "f"}}):
        with pytest.raises(KeyReused):
            table.best(other, 1, key="k")


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_a_best_loses_epsilon_where_a_tie_is_broken_and_never_more(epsilon: Fraction) -> None:
    """Would catch scores of which one person lowers some: the exponent is that of scores that only rise."""
    candidates = {"yes": YES, "no": NO, "nurses": {"job": "nurse"}}
    losses = []
    for person in ({"y": "yes"}, {"y": "no", "job": "nurse"}, {"job": "nurse", "y": "yes"}):
        row = pd.DataFrame([{"job": "smith", "sex": "f", "age": 1, "y": "no"} | person])
        for rows in (FRAME[:0], FRAME[:6]):
            more = pd.concat([rows, row])
            losses.append(worst_loss(lambda asked: str(asked.best(candidates, epsilon)), rows, more, DOMAIN).loss)
    assert max(losses) <= float(epsilon) * (1 + 1e-9)
    assert max(losses) == pytest.approx(float(epsilon), rel=0.05)


# -- questions that are refused ---------------------------------------------------------------------

WIDE = AdditiveModel((0, 0), ((("job", "sex"), np.zeros((3, 3, 2), dtype=int)),))
PEEKS = AdditiveModel((0, 0), ((("y",), np.array([[9, 0], [0, 9]])),))
WRONG: dict[str, Callable[[privet.ProtectedTable], Any]] = {
    "no model": lambda table: table.count_correct("a tree", 1),
    "a classifier": lambda table: table.count_correct(privet.BoostedTablesClassifier(), 1),
    "three classes": lambda table: table.count_correct(AdditiveModel((0, 0, 0)), 1),
    "another shape": lambda table: table.count_correct(WIDE, 1),
    "a model that looks at the target": lambda table: table.count_correct(PEEKS, 1),
    "one candidate": lambda table: table.best({"a": NO}, 1),
    "a list of candidates": lambda table: table.best([NO, YES], 1),
    "no candidate": lambda table: table.best({}, 1),
    "a candidate without a name": lambda table: table.best({"": NO, "b": YES}, 1),
    "a number as a name": lambda table: table.best({1: NO, "b": YES}, 1),
    "an unprintable name": lambda table: table.best({"a\n": NO, "b": YES}, 1),
    "a text as a candidate": lambda table: table.best({"a": "job = nurse", "b": YES}, 1),
    "an unknown value": lambda table: table.best({"a": {"job": "poet"}, "b": YES}, 1),
    "a candidate that looks at the target": lambda table: table.best({"a": PEEKS, "b": YES}, 1),
    "an epsilon of nothing": lambda table: table.best({"a": NO, "b": YES}, 0),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_question_is_refused_in_a_sentence_and_not_charged(table: privet.ProtectedTable, wrong: str) -> None:
    with pytest.raises(QuestionError, match=r"\.$") as caught:
        WRONG[wrong](table)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []


def test_a_model_with_too_many_cells_is_refused(table: privet.ProtectedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.kernel.additive.MAX_CELLS", 10)
    asks: list[Callable[[], Any]] = [
        lambda: table.count_correct(JOINT, 1),
        lambda: table.best({"a": JOINT, "b": NO}, 1),
        lambda: table.residual_sums(JOINT, ("sex",), (1, 1), 1),
    ]
    for ask in asks:
        with pytest.raises(QuestionError, match="18 cells, at most 10"):
            ask()
    assert table.budget.entries == []


def test_a_candidate_too_far_from_the_table_is_refused_before_it_is_charged(table: privet.ProtectedTable) -> None:
    far: Any = table
    for _ in range(200):
        far = far.where(sex={"f", "m"})
    with pytest.raises(QuestionError, match="more than 200 conditions"):
        far.best({"a": {"sex": "f"}, "b": NO}, 1)
    assert table.budget.entries == []


def test_a_charge_beyond_the_budget_is_refused() -> None:
    with privet.open(FRAME, DOMAIN, budget=1) as table:
        for ask in (lambda: table.count_correct(NO, 2), lambda: table.best({"a": NO, "b": YES}, 2)):
            with pytest.raises(BudgetExceeded):
                ask()
