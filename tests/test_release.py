"""Releases: their values, what they say of their cost, and intervals that hold the truth."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.people import AGE, DOMAIN, EXACT, FRAME, LARGE
from scipy.stats import binom

import privet
from privet.errors import QuestionError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.release import Choice, Count, Histogram, Mean, Quantile, Sum


def test_a_count_is_an_int(table: privet.ProtectedTable) -> None:
    answer = table.count(EXACT)
    assert isinstance(answer, Count) and isinstance(answer, int) and isinstance(answer, privet.Release)
    assert answer + 1 == 301 and f"{answer}" == str(answer) == "300" and int(answer) == 300
    assert repr(answer) == "300 (± 0 at 95%, epsilon 10000)"
    assert list(range(3))[: answer - 298] == [0, 1]


def test_a_sum_a_mean_and_a_quantile_are_floats(table: privet.ProtectedTable) -> None:
    for answer, kind in (
        (table.sum("age", EXACT), Sum),
        (table.mean("age", EXACT), Mean),
        (table.median("age", EXACT), Quantile),
    ):
        assert isinstance(answer, kind) and isinstance(answer, float) and isinstance(answer, privet.Release)
        assert str(answer) == str(float(answer)) and answer / 2 == float(answer) / 2
        assert "epsilon 10000" in repr(answer)


def test_a_choice_is_a_text(table: privet.ProtectedTable) -> None:
    plain = table.select("max", EXACT)
    assert isinstance(plain, Choice) and isinstance(plain, str)
    assert str(plain) == plain == "age" and plain.threshold is None and plain.upper() == "AGE"
    joint = table.select("max", EXACT, thresholds=True)
    assert repr(joint).startswith("'age' <= 50 (score within ")
    assert table.select("max", EXACT, attributes=["body height"], thresholds=True).threshold in np.arange(
        1, 2, 0.1
    ).round(1)


def test_every_release_knows_what_it_answers_and_costs(table: privet.ProtectedTable) -> None:
    model = privet.AdditiveModel((0, 0))
    answers: dict[str, privet.Release] = {
        "count": table.count(2),
        "sum(age)": table.sum("age", 2),
        "mean(age)": table.mean("age", 2),
        "quantile(age, 0.5)": table.median("age", 2),
        "histogram(sex, age)": table.histogram("sex", "age", epsilon=2),
        "select(max)": table.select("max", 2),
        "majority(sex)": table.majority("sex", 2),
        "residual_sums(sex)": table.residual_sums(model, ("sex",), (1, 1), 2),
    }
    for number, (question, answer) in enumerate(answers.items(), start=1):
        assert (answer.about.question, answer.epsilon, answer.private, answer.about.entry) == (
            question,
            2,
            True,
            number,
        )
    assert [entry.question for entry in table.budget.entries] == list(answers)


def test_releases_can_be_pickled_and_copied(table: privet.ProtectedTable) -> None:
    model = privet.AdditiveModel((0, 0))
    answers = [
        table.count(1),
        table.sum("body height", 1),
        table.mean("age", 1),
        table.median("age", 1),
        table.histogram("sex", "age", epsilon=1),
        table.select("max", 1),
        table.select("max", 1, thresholds=True),
        table.select("max", 1, attributes=[("age", 30)], mechanism="noisy-max"),
        table.majority("sex", 1),
        table.residual_sums(model, ("sex",), (1, 1), 1),
        table.partition("sex").count(1),
    ]
    for answer in answers:
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(answer, protocol))
            assert type(again) is type(answer) and repr(again) == repr(answer)
        assert repr(copy.copy(answer)) == repr(copy.deepcopy(answer)) == repr(answer)
        assert vars(copy.copy(answer)).keys() == vars(answer).keys()
        payload = pickle.dumps(answer)
        assert b"person " not in payload and b"ledger" not in payload


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan])
def test_a_confidence_lies_between_0_and_1(table: privet.ProtectedTable, confidence: float) -> None:
    release = table.count(1)
    assert isinstance(release, privet.Release)
    for ask in (release.interval, table.median("age", 1).rank_error, table.select("max", 1).shortfall):
        with pytest.raises(QuestionError):
            ask(confidence)


def test_intervals_of_counts_do_not_go_below_0() -> None:
    nobody = privet.open(FRAME.iloc[:0], DOMAIN, budget=LARGE)
    for _ in range(20):
        low, high = nobody.count(Fraction(1, 10)).interval(0.9)
        assert 0 <= low <= high
    low, high = nobody.histogram("sex", epsilon=Fraction(1, 10)).interval(0.9)
    assert (low >= 0).all() and (low <= high).all()


def test_a_mean_and_its_interval_stay_in_the_bounds() -> None:
    for frame in (FRAME.iloc[:0], FRAME.iloc[:5], FRAME):
        table = privet.open(frame, DOMAIN, budget=LARGE)
        for _ in range(20):
            answer = table.mean("age", 1)
            low, high = answer.interval(0.99)
            assert 0 <= low <= high <= 100
            assert 0 <= answer <= 100
    empty = privet.open(FRAME.iloc[:0], DOMAIN, budget=LARGE)
    assert empty.mean("age", EXACT).interval() == (0, 100)


def test_a_quantile_says_how_many_rows_it_may_be_off(table: privet.ProtectedTable) -> None:
    answer = table.median("age", 1)
    assert 0 < answer.rank_error(0.5) < answer.rank_error(0.95) < answer.rank_error(0.999)
    assert table.median("age", 10).rank_error() == pytest.approx(answer.rank_error() / 10)
    with pytest.raises(QuestionError, match="rank_error"):
        answer.interval()


def test_a_histogram_is_named_by_labels_and_reads_as_array_and_frame(table: privet.ProtectedTable) -> None:
    found = table.histogram("sex", "income", epsilon=EXACT)
    assert isinstance(found, Histogram)
    assert np.asarray(found).shape == (4, 2) and np.asarray(found).sum() == 300
    assert np.array(found, dtype=float).dtype == np.float64
    cell = found["Male", "high"]
    assert isinstance(cell, Count) and cell == np.asarray(found)[1, 1] and cell.interval() == (cell, cell)
    frame = found.to_frame()
    assert list(frame.columns) == ["sex", "income", "count", "low", "high"]
    assert len(frame) == 8 and frame["count"].sum() == 300
    assert list(frame.iloc[3, :2]) == ["Male", "high"]
    assert repr(found).splitlines()[0].split() == ["sex", "income", "count", "low", "high"]
    single = table.histogram("age", epsilon=EXACT)
    assert single["[0, 20)"] == (AGE < 20).sum()


@pytest.mark.parametrize("cell", ["Male", ("Male", "high", "x"), ("Martian", "high"), ("Male", "<missing>")], ids=str)
def test_a_cell_that_is_not_there_is_refused(table: privet.ProtectedTable, cell: Any) -> None:
    with pytest.raises(QuestionError):
        table.histogram("sex", "income", epsilon=1)[cell]


def test_a_long_histogram_prints_its_first_cells() -> None:
    wide = Domain((Nominal("n", tuple(range(100))),))
    shown = repr(privet.open(pd.DataFrame({"n": [1]}), wide, budget=1).histogram("n", epsilon=1))
    assert "... 70 more cells" in shown


def test_releases_of_parts_become_arrays(table: privet.ProtectedTable) -> None:
    parts = table.partition("income")
    assert parts.count(EXACT).array().tolist() == [(FRAME["income"] == label).sum() for label in ("low", "high")]
    assert parts.mean("age", EXACT).array().dtype == np.float64
    assert parts.histogram("sex", "age", epsilon=EXACT).array().shape == (2, 4, 5)
    assert parts.select("max", EXACT).array().dtype.kind == "U"
    assert parts.count(EXACT).interval(0.9) == [(n, n) for n in parts.count(EXACT)]


# Hypothesis: the stated interval holds the truth at least as often as it says, and a count's exactly as often as the
# noise does. n = 20,000 cells of production noise, false alarm below 1e-9 a side; catches a scale 10% off.
def test_intervals_of_counts_cover_the_truth_as_often_as_they_say() -> None:
    wide = Domain((Nominal("a", tuple(range(200))), Nominal("b", tuple(range(100)))))
    frame = pd.DataFrame({"a": [3] * 50, "b": [7] * 50})
    found = privet.open(frame, wide, budget=1).histogram("a", "b", epsilon=Fraction(1, 10))
    truth = np.zeros((200, 100))
    truth[3, 7] = 50
    for confidence in (0.5, 0.9, 0.99):
        error = found.noise.error(confidence)
        # before the cut at 0, which only helps
        covered = int((np.abs(np.asarray(found) - truth) <= error).sum())
        share = sum(found.noise.probability(t) for t in range(-error, error + 1))
        assert share >= confidence
        assert binom.ppf(1e-9, truth.size, share) <= covered <= binom.isf(1e-9, truth.size, share)
        low, high = found.interval(confidence)
        assert ((low <= truth) & (truth <= high)).sum() >= covered


# Hypothesis: sums, means and quantiles of 600 parts hold the truth at least as often as they say; false alarm 1e-9.
@pytest.mark.parametrize("question", ["sum", "mean", "quantile"])
def test_intervals_of_numbers_cover_the_truth(question: str) -> None:
    domain = Domain((Nominal("part", tuple(range(600))), Numeric("x", Fraction(-5), Fraction(20), Fraction(1, 4))))
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"part": np.repeat(np.arange(600), 40), "x": rng.integers(-20, 80, 600 * 40) / 4})
    parts = privet.open(frame, domain, budget=LARGE).partition("part")
    groups = [group.to_numpy() for _, group in frame.groupby("part")["x"]]
    covered = 0
    if question == "quantile":
        for answer, values in zip(parts.quantile("x", 0.25, 1), groups, strict=True):
            below, above = (values < answer).sum(), (values > answer).sum()
            covered += abs(0.75 * below - 0.25 * above) <= answer.rank_error(0.9) + 20  # ties at the best point
    else:
        answers = parts.sum("x", 1) if question == "sum" else parts.mean("x", 2)
        truths = [values.sum() if question == "sum" else values.mean() for values in groups]
        for answer, truth in zip(answers, truths, strict=True):
            low, high = answer.interval(0.9)
            covered += low - 1e-9 <= truth <= high + 1e-9
    assert covered >= binom.ppf(1e-9, 600, 0.9)
