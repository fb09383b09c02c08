"""Data sets with a delta: what is asked, charged, drawn and refused where losses are counted in rho."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivacyError, PrivetError, QuestionError
from privet.kernel import (
    AboveThreshold,
    AdditiveModel,
    Domain,
    Exponential,
    ExponentialOverRanges,
    IntegerGaussian,
    Ledger,
    Nominal,
    Numeric,
    Rho,
    TopK,
    epsilon_of,
    race,
    rho_of,
    unit_with,
)
from privet.kernel.accounting import root_below
from privet.release import Release

DELTA = Fraction(1, 10**6)
COLUMNS = (
    Nominal("sex", ("f", "m")),
    Numeric("age", Fraction(0), Fraction(100), Fraction(1), bins=5),
    Nominal("ill", ("no", "yes")),
)
DOMAIN = Domain(COLUMNS, target="ill")
FRAME = pd.DataFrame({"sex": ["f", "m"] * 200, "age": np.arange(400) % 100, "ill": ["no", "no", "no", "yes"] * 100})
MODEL = AdditiveModel((0, 0))
UNIT = unit_with(DELTA)


def opened(budget: object = 1, delta: object = "1e-6", rows_per_person: int = 1, **more: Any) -> privet.ProtectedTable:
    domain = Domain(COLUMNS, target="ill", rows_per_person=rows_per_person)
    return privet.open(FRAME, domain, budget=budget, delta=delta, **more)


# -- what an epsilon means ---------------------------------------------------------------------------

QUESTIONS: dict[str, Any] = {
    "count": lambda t, e: t.count(e),
    "histogram": lambda t, e: t.histogram("sex", "ill", epsilon=e),
    "sum": lambda t, e: t.sum("age", e),
    "mean": lambda t, e: t.mean("age", e),
    "median": lambda t, e: t.median("age", e),
    "majority": lambda t, e: t.majority("sex", e),
    "select": lambda t, e: t.select("max", e),
    "thresholds": lambda t, e: t.select("gini", e, thresholds=True),
    "permute-and-flip": lambda t, e: t.select("max", e, mechanism="permute-and-flip"),
    "noisy-max": lambda t, e: t.select("max", e, mechanism="noisy-max"),
    "residual-sums": lambda t, e: t.residual_sums(MODEL, ("sex",), (512, 512), e),
    "select-residuals": lambda t, e: t.select_residuals(MODEL, [("sex",), ("age",)], (512, 512), e),
    "correct": lambda t, e: t.count_correct(MODEL, e),
    "best": lambda t, e: t.best({"a": MODEL, "f": {"sex": "f"}}, e),
    "top": lambda t, e: t.top_residual_tables(MODEL, [("sex",), ("age",), ("sex", "age")], 2, e),
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_costs_what_it_alone_would_cost_with_the_delta(name: str, rows: int) -> None:
    """Of choices the square root is rounded down: they cost less than a millionth less."""
    with opened(5, rows_per_person=rows) as table:
        release: Release = QUESTIONS[name](table, "0.25")
        wanted = rho_of(Fraction(1, 4), DELTA)
        assert release.epsilon == Fraction(1, 4) and release.delta == DELTA
        assert wanted * (1 - Fraction(1, 10**9)) <= release.rho <= wanted
        assert table.budget.spent == release.rho == table.budget.entries[0].loss
        assert "epsilon 0.25, delta 1e-06" in repr(release)
        (entry,) = table.budget.entries
        assert entry.epsilon == "0.25"


@pytest.mark.parametrize("rows", [1, 3])
def test_the_noise_is_made_for_a_record_and_the_charge_for_a_person(rows: int) -> None:
    """A person with k records loses k^2 times what one does: a noise of k times the scale."""
    with opened(5, rows_per_person=rows) as table:
        count = table.count(Rho("0.01"))
        assert count.noise == IntegerGaussian(Fraction(1, 100 * rows**2)) and count.rho == Fraction(1, 100)
        assert table.sum("age", Rho("0.01")).noise.squared == 100**2
        mean = table.mean("age", Rho("0.01"))
        assert mean.rho == Fraction(1, 100) and mean.deviation.noise.rho == Fraction(1, 200 * rows**2)
        one, two = table.parts().histograms([[("sex",), ("ill", "age")]], Rho("0.01"))[0]
        assert one.noise.variance == two.noise.variance == 100 * rows**2  # two tables: sensitivity sqrt 2
        assert one.rho == two.rho == Fraction(1, 200)
        median = table.median("age", Rho("0.02"))
        assert isinstance(median.mechanism, ExponentialOverRanges) and median.mechanism.epsilon <= Fraction(
            4, 10 * rows
        )
        choice = table.majority("sex", Rho("0.02"))
        assert isinstance(choice.mechanism, Exponential)
        top = table.top_residual_tables(MODEL, [("sex",), ("age",)], 2, Rho("0.04"), cap=100)
        assert isinstance(top.mechanism, TopK) and top.mechanism.sensitivity == 100
        assert top.mechanism.epsilon <= Fraction(4, 10 * rows)


def test_a_budget_of_one_answers_a_quarter_and_says_what_is_left() -> None:
    """The largest pure answer that it could pay is .22; what it promises is (1, 1e-6)."""
    with opened("1.0") as table:
        assert table.budget.remaining == rho_of(Fraction(1), DELTA)
        assert table.budget.buys == 1 and "one answer of epsilon 1 with delta 1e-06" in repr(table)
        table.count(0.25)
        left = rho_of(Fraction(1), DELTA) - rho_of(Fraction(1, 4), DELTA)
        assert table.budget.remaining == left
        assert rho_of(table.budget.buys, DELTA) <= left < rho_of(table.budget.buys * Fraction(10001, 10000), DELTA)
        table.count(table.budget.buys)
        with pytest.raises(BudgetExceeded, match=r"rho .* of it reaches ledger 'frame', which has rho .* left"):
            table.count(0.5)
        assert "with delta 1e-06" in table.explain()


def test_a_part_costs_the_dearest_and_parts_share_it() -> None:
    with opened() as table:
        parts = table.partition("sex")
        parts.count([Rho("0.001"), Rho("0.003")])
        assert table.budget.spent == Fraction(3, 1000)
        parts["f"].count(Rho("0.002"))
        assert table.budget.spent == Fraction(3, 1000)
        table.count(Rho("0.001"))
        assert table.budget.spent == Fraction(4, 1000)


amounts = st.lists(st.fractions(Fraction(1, 10**6), Fraction(1, 50), max_denominator=10**9), min_size=1, max_size=8)


@given(amounts, st.integers(1, 4))
@settings(derandomize=True, deadline=None, max_examples=25)
def test_rhos_add_exactly_and_no_sequence_passes_the_budget(rhos: list[Fraction], rows: int) -> None:
    with opened(rows_per_person=rows) as table:
        cap, spent = table.budget.remaining, Fraction(0)
        for rho in rhos:
            amount = Rho(rho).value
            try:
                assert table.count(Rho(rho)).rho == amount
                spent += amount
            except BudgetExceeded:
                assert spent + amount > cap
            assert table.budget.spent == spent <= cap


@given(st.fractions(Fraction(1, 10**9), 10, max_denominator=10**12))
@settings(derandomize=True, deadline=None)
def test_mechanisms_of_a_loss_never_lose_more(loss: Fraction) -> None:
    made = (
        UNIT.noise(loss),
        UNIT.noise(loss, 7),
        UNIT.noise(loss, 3, 3),
        UNIT.sum_and_count(loss, 9),
        UNIT.residual_noise(loss, (2, 5)),
        UNIT.residual_noise(loss, (2, 5, 7)),
        UNIT.choice(loss, 3, True),
        UNIT.choice(loss, 3, False, "permute-and-flip"),
        UNIT.choice(loss, 3, True, "noisy-max"),
        UNIT.ranges(loss, 2, False),
        UNIT.top(loss, 2, False, 5),
        UNIT.watch(loss, 2, 3),
    )
    for mechanism in made:
        assert loss * (1 - Fraction(1, 10**8)) <= UNIT.loss(mechanism) <= loss
    assert UNIT.of_person(UNIT.of_record(loss, 7), 7) == loss and UNIT.of_person(loss, 7) == 49 * loss
    assert root_below(loss) ** 2 <= loss


# -- fits, allotments, reservations ------------------------------------------------------------------


def test_a_fit_divides_its_rho_as_its_plan_divides_epsilon() -> None:
    with opened() as table:
        scope, whole = table.spending("0.5"), rho_of(Fraction(1, 2), DELTA)
        assert scope.count("0.1").rho == pytest.approx(whole / 5)
        scope.partition("sex").count("0.3")
        scope.count("0.1")
        assert whole * (1 - Fraction(1, 10**9)) < table.budget.spent <= whole
        with pytest.raises(BudgetExceeded, match="allotment"):
            scope.count("0.001")
    with privet.open(FRAME, DOMAIN, budget=1) as pure:
        assert pure.spending("0.5").count("0.5").epsilon == Fraction(1, 2)


def test_reservations_and_allotments_are_of_rho() -> None:
    with opened() as table:
        whole = table.budget.remaining
        with table.reserve("0.5") as scope:
            assert scope.budget.remaining == rho_of(Fraction(1, 2), DELTA)
            assert table.budget.remaining == whole - rho_of(Fraction(1, 2), DELTA)
            scope.count("0.5")
        with pytest.raises(BudgetExceeded, match="cannot reserve rho"), table.reserve(5):
            pass
        with pytest.raises(BudgetExceeded, match="cannot charge rho="):
            table.allot("0.1").count("0.2")


def test_an_answer_is_refined_by_a_fresh_draw_for_the_difference() -> None:
    with opened(4) as table:
        first = table.count("0.5")
        finer = first.refine("1.0")
        assert table.budget.spent == rho_of(Fraction(1), DELTA) == finer.rho
        assert finer.epsilon == 1 and finer.noise.variance == 1 / (2 * rho_of(Fraction(1), DELTA))
        low, high = finer.interval(0.95)
        assert low <= int(finer) <= high
        assert first.refine("0.7") == finer and table.budget.spent == finer.rho  # what is released already is free
        parts = table.partition("sex").count("0.1").refine(["0.2", "0.3"])
        assert [part.epsilon for part in parts] == [Fraction(1, 5), Fraction(3, 10)]
        shares = table.histogram("sex", epsilon="0.1").refine("0.4")
        assert shares.value.shape == (2,) and shares.value.dtype == np.int64


def test_the_mean_of_two_draws_has_the_variance_of_both_rhos() -> None:
    """n = 300 of 200 parts: within 5 standard errors of the variance, and far from that of the first draw."""
    domain = Domain((Nominal("a", tuple(range(3000))),))
    with privet.open(pd.DataFrame({"a": [0]}), domain, budget=50, delta="1e-6") as table:
        finer = table.histogram("a", epsilon=Rho("0.001")).refine(Rho("0.004"))
    found = finer.value[1:].var()
    assert found == pytest.approx(125, rel=5 * np.sqrt(2 / 3000))


def test_a_monitor_is_paid_as_rho_and_the_threshold_is_pure() -> None:
    with opened(4) as table:
        monitor = table.monitor(0.5, "0.5")
        assert isinstance(monitor._mechanism, AboveThreshold)
        assert monitor._mechanism.epsilon**2 / 2 == table.budget.spent <= rho_of(Fraction(1, 2), DELTA)
        assert monitor.epsilon == Fraction(1, 2) and "delta 1e-06" in repr(monitor)
        assert monitor.reached(AdditiveModel((10**4, 0))) in (True, False)


def test_the_runs_of_a_race_are_pure_and_cost_half_of_the_square() -> None:
    with opened(4) as table:
        units = []

        def run(shadow: Any) -> tuple[Any, Any]:
            units.append(shadow.unit.name)
            with pytest.raises(QuestionError, match="counted in epsilon"):
                shadow.count(Rho("0.1"))
            return 1, shadow.count("0.01")

        won = race(table, [run], "0.01")
        assert set(units) == {"epsilon"}
        assert table.budget.spent == Fraction(3, 100) ** 2 / 2
        assert won is not None and won.epsilon == epsilon_of(table.budget.spent, DELTA)


# -- what the ledger pins ----------------------------------------------------------------------------


def test_the_ledger_pins_unit_and_delta(tmp_path: Path) -> None:
    FRAME.to_csv(path := tmp_path / "people.csv", index=False)
    with privet.open(path, DOMAIN, budget="1.0", delta="1e-6") as table:
        table.count("0.25", key="k")
        spent = table.budget.spent
    for delta, text in ((None, "counted in rho, with delta 1e-06"), ("1e-5", "open it with delta 1e-06")):
        with pytest.raises(PrivacyError, match=text):
            privet.open(path, DOMAIN, delta=delta)
    with privet.open(path, DOMAIN, delta="1e-6") as table:
        table.count("0.25", key="k")  # the same key finds the answer
        assert table.budget.spent == spent
    with pytest.raises(PrivacyError, match="is above the rho"):
        privet.open(path, DOMAIN, budget=2, delta="1e-6")
    ledger = Ledger.open(tmp_path / "people.csv.ledger")
    assert ledger.delta("people") == DELTA and ledger.cap("people") == rho_of(Fraction(1), DELTA)
    register = ledger.lines()[0].body
    assert (register["unit"], register["delta"]) == ("rho", "1/1000000")
    charged = next(line.body for line in ledger.lines() if line.kind == "charge")
    assert (charged["unit"], charged["delta"], charged["loss"]) == ("rho", "1/1000000", str(spent))


def test_a_pure_data_set_never_answers_with_a_delta(tmp_path: Path) -> None:
    FRAME.to_csv(path := tmp_path / "people.csv", index=False)
    with privet.open(path, DOMAIN, budget=1) as table:
        for ask in (
            lambda: table.count(Rho("0.1")),
            lambda: table.allot(Rho("0.1")),
            lambda: table.residual_tables(MODEL, [("sex",)], ["0.1"]),
        ):
            with pytest.raises(QuestionError, match="counted in epsilon"):
                ask()
        assert not table.budget.entries and table.budget.buys == 1
    with pytest.raises(PrivacyError, match="counted in epsilon, without a delta; open it without one"):
        privet.open(path, DOMAIN, budget=1, delta="1e-6")


def test_more_rows_of_a_person_make_what_was_spent_dearer_by_the_square() -> None:
    ledger = Ledger.open(":memory:")
    table = privet.open(FRAME, DOMAIN, budget=2, delta="1e-6", ledger=ledger, name="people")
    table.count("0.5")
    spent = ledger.spent("people")
    added = ledger.declare("people", Domain(COLUMNS, target="ill", rows_per_person=3))
    assert added == 8 * spent and ledger.spent("people") == 9 * spent
    assert ledger.delta("people") == DELTA


def test_an_analysts_cap_is_of_rho() -> None:
    ledger = Ledger.open(":memory:")
    table = privet.open(FRAME, DOMAIN, budget=2, delta="1e-6", ledger=ledger, name="people", analyst="ada")
    ledger.set_cap("people", "ada", rho_of(Fraction(1, 10), DELTA))
    assert table.budget.buys == Fraction(1, 10)
    table.count("0.1")
    with pytest.raises(BudgetExceeded, match="the budget of 'ada' on 'people', which has rho 0 left"):
        table.count("0.01")


@pytest.mark.parametrize("delta", [0, "x", 2, -1, "1e-20"])
def test_a_wrong_delta_is_refused_in_one_sentence(delta: object) -> None:
    with pytest.raises(QuestionError, match="delta must be a number"):
        opened(delta=delta)


def test_a_budget_in_rho_can_be_opened_with_less(tmp_path: Path) -> None:
    FRAME.to_csv(path := tmp_path / "people.csv", index=False)
    privet.open(path, DOMAIN, budget=2, delta="1e-6").close()
    with privet.open(path, DOMAIN, budget="0.5", delta="1e-6") as table:
        assert table.budget.remaining == rho_of(Fraction(1, 2), DELTA)
    with pytest.raises(LedgerError, match="has no budget yet"):
        privet.open(FRAME, DOMAIN, delta="1e-6")


def test_releases_in_rho_can_be_copied_and_derived() -> None:
    with opened(4) as table:
        count = table.count("0.5")
        again = pickle.loads(pickle.dumps(count))
        assert (again.rho, again.delta, again.interval()) == (count.rho, count.delta, count.interval())
        derived = count.map(lambda n: n / 2)
        assert derived.delta == DELTA and derived.rho == count.rho


def test_a_seeded_table_in_rho_repeats_and_says_so() -> None:
    found = [privet.testing.open(FRAME, DOMAIN, 1, seed=seed, delta="1e-6").count("0.5") for seed in (1, 1, 2)]
    assert found[0] == found[1] and not found[0].private and "NOT PRIVATE" in repr(found[0])


def test_errors_in_rho_say_nothing_of_rows() -> None:
    with opened() as table:
        texts = set()
        for part in table.partition("sex"):
            with pytest.raises(PrivetError) as refused:
                part.count(50)
            texts.add(str(refused.value).replace("sex = f", "").replace("sex = m", ""))
        assert len(texts) == 1


def test_noise_that_takes_a_millisecond_a_number_is_not_for_free() -> None:
    """A rho next to nothing, an answer, a table or a refinement of it: refused before a charge."""
    frame = pd.DataFrame({"sex": ["f", "m"] * 50, "y": [0, 1] * 50})
    domain, tiny = Domain((Nominal("sex", ("f", "m")), Nominal("y", (0, 1))), target="y"), Rho(Fraction(1, 10**22))
    model = AdditiveModel((0, 0))
    with privet.open(frame, domain, budget=1, delta="1e-6") as table:
        count = table.count(Rho("0.001"))
        table.count("1e-9")  # the smallest epsilon is worth more
        asks: list[Callable[[], object]] = [
            lambda: table.count(tiny),
            lambda: table.monitor("0.9", tiny),
            lambda: count.refine(Rho("0.001") + tiny),
            lambda: table.residual_tables(model, [(), ("sex",)], [tiny, "0.01"]),
        ]
        for ask in asks:
            with pytest.raises(QuestionError, match="at least"):
                ask()
        assert len(table.budget.entries) == 2
    with privet.open(frame, domain, budget=1) as table:
        first = table.count("0.1")
        with pytest.raises(QuestionError, match="at least"):
            first.refine("0.10000000001")
        assert table.budget.spent == Fraction(1, 10)
