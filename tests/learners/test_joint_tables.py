"""Tables learned together on data sets with a delta: every branch costs its rho, and they learn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import BudgetExceeded, QuestionError
from privet.kernel import Domain, Nominal, Numeric, Rho, rho_of
from privet.learners.additive import published_model
from privet.learners.algorithm import Meter, ignore_progress
from privet.learners.estimators import UNUSED_DELTA
from privet.learners.joint_tables import COUNT_SHARE, JOINT, effect_size, joint_signal, learn_jointly, mean_above_zero
from privet.models.model import Model

DELTA = "1e-6"


def domain_of(classes: int = 2, rows: int | None = None) -> Domain:
    columns = (
        Nominal("town", tuple("abcdefghijkl")),
        Numeric("wage", Fraction(0), Fraction(999), Fraction(1), bins=20, missing=True),
        Nominal("sex", ("f", "m")),
        Nominal("size", ("s", "m", "l", "xl", "xxl", "3xl", "4xl"), ordered=True),
        Nominal("eyes", ("blue", "brown", "green")),
        Nominal("hair", ("dark", "fair", "red", "none")),
    )
    return Domain((*columns, Nominal("y", tuple(range(classes)))), target="y", rows=rows)


def rows_of(size: int, classes: int = 2, seed: int = 0) -> pd.DataFrame:
    """Rows whose class follows from wages, from towns, and from town and sex together."""
    rng = np.random.default_rng(seed)
    town, wage = rng.integers(0, 12, size), rng.integers(0, 1000, size)
    sex, width = rng.integers(0, 2, size), rng.integers(0, 7, size)
    score = (wage - 500) / 150 + np.sin(town) + 2.5 * np.where((town < 6) ^ (sex == 1), 1, -1)
    cuts = np.linspace(-2, 2, classes + 1)[1:-1]
    frame = pd.DataFrame(
        {
            "town": np.array(list("abcdefghijkl"))[town],
            "wage": wage.astype(object),
            "sex": np.array(["f", "m"])[sex],
            "size": np.array(["s", "m", "l", "xl", "xxl", "3xl", "4xl"])[width],
            "eyes": rng.choice(["blue", "brown", "green"], size),
            "hair": rng.choice(["dark", "fair", "red", "none"], size),
            "y": np.searchsorted(cuts, score + rng.logistic(size=size)),
        }
    )
    frame.loc[::17, "wage"] = None
    return frame


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("size", "epsilon", "questions"),
    [(0, "0.1", 2), (300, "0.05", 2), (300, "1", None), (2_000, "0.5", None), (8_000, "1", 38)],
)
@pytest.mark.parametrize("public", [True, False])
def test_every_branch_costs_its_rho_and_nothing_more(
    classes: int, size: int, epsilon: str, questions: int | None, public: bool
) -> None:
    """No rows, class shares alone, a first table, all tables together; with a public number of rows and a noisy one."""
    domain = domain_of(classes, rows=max(size, 1) if public else None)
    table = privet.testing.open(rows_of(size, classes), domain, budget=3, delta=DELTA, seed=size)
    fitted = privet.BoostedTablesClassifier(epsilon).fit(table)
    rho = rho_of(Fraction(epsilon), Fraction(DELTA))
    assert fitted.privacy_.rho == rho and fitted.privacy_.spent == table.budget.spent <= rho
    assert rho - table.budget.spent < rho / 10**9  # a choice costs the square of a rounded root
    assert len(table.budget.entries) == len(fitted.privacy_.steps)
    if questions is not None and (public or size > 1_000):
        assert len(fitted.privacy_.steps) == questions


def test_thirty_eight_passes_over_the_rows_are_all() -> None:
    """Counts, a probe and thirty steps; and three times a choice and a probe of pairs, if there are pairs."""
    table = privet.testing.open(rows_of(12_000), domain_of(rows=12_000), budget=2, delta=DELTA, seed=1)
    with_pairs = privet.BoostedTablesClassifier(1).fit(table)
    without = privet.BoostedTablesClassifier(1, pairs=False).fit(table)
    assert len(with_pairs.privacy_.steps) == 38 and len(without.privacy_.steps) == 32
    assert {len(own.columns) for own in without.model_.tables} == {1}
    assert sorted(own.columns[0] for own in without.model_.tables) == ["eyes", "hair", "sex", "size", "town", "wage"]


@pytest.mark.parametrize(("classes", "least"), [(2, 0.82), (3, 0.72)])
def test_it_learns_single_attributes_and_pairs(classes: int, least: float) -> None:
    train, test = rows_of(20_000, classes), rows_of(5_000, classes, seed=9)
    table = privet.testing.open(train, domain_of(classes, rows=20_000), budget=1, delta=DELTA, seed=3)
    fitted = privet.BoostedTablesClassifier(1).fit(table)
    assert fitted.score(test, test.y) > least
    assert {"town", "sex"} in [set(own.columns) for own in fitted.model_.tables]
    assert all(np.isfinite(own.values).all() and (own.deviation > 0).all() for own in fitted.model_.tables)
    assert len({own.columns for own in fitted.model_.tables}) == len(fitted.model_.tables)  # levels are one table


def conjunctions_of(size: int, seed: int) -> pd.DataFrame:
    """Rows whose class follows from three answers: half of it cannot be told by two of them."""
    rng = np.random.default_rng([7, seed])
    frame = pd.DataFrame({name: rng.integers(0, 3, size) for name in "abcdef"})
    said = np.where(
        frame["a"] == 0, frame["b"] == frame["c"], np.where(frame["b"] == 1, frame["c"] == 2, frame["d"] > 0)
    )
    return frame.assign(y=np.where(rng.random(size) < 0.1, 1 - said, said))


CONJUNCTIONS = Domain((*(Nominal(name, (0, 1, 2)) for name in "abcdef"), Nominal("y", (0, 1))), target="y", rows=20_000)


def test_with_ample_signal_it_learns_conjunctions_of_three() -> None:
    """Better than tables of two attributes; four questions more; the model is kept, drawn and told as others are."""
    train, test = conjunctions_of(20_000, 0), conjunctions_of(5_000, 1)
    fits = []
    for widenings in ((), JOINT.widenings):
        table = privet.testing.open(train, CONJUNCTIONS, budget=2, delta=DELTA, seed=3)
        rho = table.amount(Fraction(2))
        counts = table.histogram("y", epsilon=Rho(rho * COUNT_SHARE))
        constants = replace(JOINT, widenings=widenings)
        learned = learn_jointly(table, rho, counts, 20_000.0, Meter(ignore_progress, CONJUNCTIONS), constants=constants)
        assert rho * (1 - Fraction(1, 10**9)) < table.budget.spent <= rho
        fits.append(published_model(CONJUNCTIONS, "boosted", Fraction(2), learned))
    pairs, wider = fits
    target = test.y.to_numpy()
    right = [np.mean(model.predict_codes(test) == target) for model in fits]
    assert right[1] > right[0] + 0.02
    assert max(len(own.columns) for own in pairs.tables) == 2 and len(pairs.privacy.steps) == 38
    largest = max(wider.tables, key=lambda own: len(own.columns))
    assert {"a", "b", "c"} in [set(own.columns) for own in wider.tables] and len(wider.privacy.steps) <= 42
    again = Model.from_json(wider.to_json())
    assert np.allclose(again.predict_proba(test), wider.predict_proba(test))
    assert np.allclose(wider.to_trees().predict_proba(test), wider.predict_proba(test))
    assert " and ".join(largest.columns) in wider.page() and " and ".join(largest.columns) in wider.text()
    assert sum(wider.importance.values()) > 0 and len(wider.merged().tables) == len(wider.tables)


def test_larger_tables_join_only_where_there_is_more_to_learn_than_luck() -> None:
    """Six attributes of which one says something, alone: a choice of larger tables takes none, and pays no probe."""
    rng = np.random.default_rng(0)
    frame = conjunctions_of(20_000, 2)
    frame["y"] = np.where(rng.random(len(frame)) < 0.2, rng.integers(0, 2, len(frame)), frame["a"] == 1).astype(int)
    table = privet.testing.open(frame, CONJUNCTIONS, budget=2, delta=DELTA, seed=4)
    fitted = privet.BoostedTablesClassifier(2).fit(table)
    asked = [step.question for step in fitted.privacy_.steps]
    assert "choice of larger tables" in asked and len(asked) < 42
    assert fitted.privacy_.rho is not None and fitted.privacy_.rho - table.budget.spent < fitted.privacy_.rho / 10**9


def test_a_delta_buys_accuracy() -> None:
    """At the same epsilon, on the same rows: all tables together against one after the other."""
    train, test = rows_of(20_000), rows_of(5_000, seed=9)
    pure, delta = (
        np.mean(
            [
                privet.BoostedTablesClassifier("0.25")
                .fit(privet.testing.open(train, domain_of(rows=20_000), budget=1, delta=chance, seed=seed))
                .score(test, test.y)
                for seed in range(3)
            ]
        )
        for chance in (None, DELTA)
    )
    assert delta > pure


def test_a_seed_repeats_the_model_and_files_keep_it() -> None:
    models = [
        privet.BoostedTablesClassifier(1)
        .fit(privet.testing.open(rows_of(8_000), domain_of(rows=8_000), budget=1, delta=DELTA, seed=5))
        .model_
        for _ in range(2)
    ]
    assert models[0].to_json() == models[1].to_json()
    again = Model.from_json(models[0].to_json())
    assert again.privacy == models[0].privacy and again.privacy.delta == Fraction(DELTA)
    assert "rho" in str(again.privacy)
    page = models[0].page()
    assert "NOT PRIVATE" in page  # seeded


def test_a_page_and_a_name_tell_the_delta() -> None:
    table = privet.open(rows_of(8_000), domain_of(rows=8_000), budget=1, delta=DELTA)
    model = privet.BoostedTablesClassifier(1).fit(table).model_
    assert "delta 1e-06" in repr(model) and "delta 1e-06" in model.page() and "Approximate" in model.page()


def test_rows_of_ones_own_are_pure_where_that_is_better() -> None:
    """The public number of rows decides, so the choice between the two is free."""
    rows = rows_of(8_000)
    few, many = (
        privet.BoostedTablesClassifier(epsilon, delta=DELTA, domain=domain_of(rows=8_000))
        .fit(rows.drop(columns="y"), rows.y)
        .privacy_
        for epsilon in ("0.05", "1")
    )
    assert few.delta is None and few.spent == Fraction("0.05")
    assert many.delta == Fraction(DELTA) and many.rho == rho_of(Fraction(1), Fraction(DELTA))


@pytest.mark.parametrize(("epsilon", "rows"), [("0.0001", 8_000), ("0.05", 8_000), ("0.5", 400)])
def test_a_delta_that_is_not_used_changes_no_model_and_no_charge(epsilon: str, rows: int) -> None:
    """With little signal the fit is the pure one, noise for noise; it says so, and its promise has no delta."""
    frame, domain = rows_of(rows), domain_of(rows=rows)
    models = []
    for delta in (None, DELTA):
        with privet.testing.seeded_noise(7):
            own = privet.BoostedTablesClassifier(epsilon, delta=delta, domain=domain, random_state=0)
            models.append(own.fit(frame.drop(columns="y"), frame.y).model_)
    pure, unused = models
    assert replace(unused, note=pure.note).to_json() == pure.to_json()
    assert unused.note.endswith(UNUSED_DELTA) and UNUSED_DELTA not in pure.note
    assert unused.privacy.delta is None and unused.privacy.rho is None
    assert unused.privacy.spent == sum(step.epsilon for step in unused.privacy.steps) == Fraction(epsilon)


def test_a_model_says_where_a_delta_does_not_pay() -> None:
    """Whose ledger counts rho cannot buy pure epsilon for its price, and should know that it would have bought more."""
    few, many = 400, 12_000
    for size, said in ((few, True), (many, False)):
        table = privet.testing.open(rows_of(size), domain_of(rows=size), budget=1, delta=DELTA, seed=2)
        note = privet.BoostedTablesClassifier("0.5").fit(table).model_.note
        assert ("without a delta would have given more" in note) == said
    pure = privet.testing.open(rows_of(few), domain_of(rows=few), budget=1, seed=2)
    assert privet.BoostedTablesClassifier("0.5").fit(pure).model_.note == ""


def test_what_cannot_be_done_is_refused_and_costs_nothing() -> None:
    pure = privet.open(rows_of(100), domain_of(), budget=1)
    delta = privet.open(rows_of(100), domain_of(), budget="0.5", delta=DELTA)
    with pytest.raises(QuestionError, match="delta"):
        privet.BoostedTablesClassifier(1, delta=DELTA).fit(pure)
    with pytest.raises(QuestionError, match="delta"):
        privet.BoostedTablesClassifier("0.1", delta="1e-5").fit(delta)
    with pytest.raises(BudgetExceeded, match=r"has 0\.5 left"):
        privet.BoostedTablesClassifier("0.6").fit(delta)
    with pytest.raises(BudgetExceeded, match=r"cannot fit auto.* has 0\.5 left"):
        privet.AutoClassifier("0.6").fit(delta)
    assert pure.budget.spent == delta.budget.spent == 0


def test_a_person_of_several_rows_pays_the_square() -> None:
    """Five rows a person: the noise is that of a twenty-fifth of rho, and the signal is a fifth."""
    one, five = domain_of(rows=10_000), replace(domain_of(rows=10_000), rows_per_person=5)
    rho = Fraction(1, 100)
    assert joint_signal(five, 1e4, rho) == pytest.approx(joint_signal(one, 1e4, rho / 25))
    table = privet.testing.open(rows_of(10_000), five, budget=2, delta=DELTA, seed=2)
    fitted = privet.BoostedTablesClassifier(2).fit(table)
    assert table.budget.spent <= rho_of(Fraction(2), Fraction(DELTA)) and len(fitted.model_.tables) >= 1


def test_estimates_of_curvatures_and_effects() -> None:
    """What is clear is kept, what is noise is shrunk, and nothing is negative."""
    seen, error, prior = np.array([1000.0, 0.0, -300.0]), np.full(3, 10.0), np.full(3, 50.0)
    mean = mean_above_zero(seen, error, prior)
    assert mean[0] == pytest.approx(998, abs=3) and 0 < mean[2] < mean[1] < 10
    rng = np.random.default_rng(0)
    curvatures = np.full(200, 100.0)
    for tau in (0.05, 0.4, 1.6):
        sums = rng.normal(0, tau * 100, 200) + rng.normal(0, 10, 200)
        assert effect_size(sums, curvatures, 0.0, 0.25, JOINT.tau_deviation) == pytest.approx(tau, rel=0.5)


def test_declared_rows_may_be_wrong_by_far() -> None:
    """Nobody there, a million declared, and few pairs: a plan is paid whatever the rows are, and nothing fails."""
    for size, rows in ((0, 10**6), (40, 10**7), (3_000, 10**9)):
        domain = replace(domain_of(rows=rows), columns=domain_of().columns[2:])
        table = privet.testing.open(rows_of(size), domain, budget=2, delta=DELTA, seed=2)
        fitted = privet.BoostedTablesClassifier(2).fit(table)
        assert table.budget.spent == fitted.privacy_.spent <= fitted.privacy_.rho
        assert all(np.isfinite(own.values).all() for own in fitted.model_.tables)


def test_with_little_signal_one_attribute_comes_first() -> None:
    """Town, of twelve cells, says a little, an attribute more or less everything: it is bought by itself."""
    rows = rows_of(2_000)
    rows["eyes"] = np.where(rows.y == 1, "blue", np.where(rows.index % 2 == 0, "brown", "green"))
    table = privet.testing.open(rows, domain_of(rows=2_000), budget=1, delta=DELTA, seed=3)
    fitted = privet.BoostedTablesClassifier("0.1").fit(table)
    assert [step.question for step in fitted.privacy_.steps][1:3] == ["choice of an attribute", "table of eyes"]
    assert fitted.score(rows, rows.y) > 0.95
    much = privet.testing.open(rows_of(20_000), domain_of(rows=20_000), budget=1, delta=DELTA, seed=3)
    steps = privet.BoostedTablesClassifier(1).fit(much).privacy_.steps
    assert "choice of an attribute" not in [step.question for step in steps]
