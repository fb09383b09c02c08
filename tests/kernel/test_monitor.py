"""A monitor of released models: one loss for all checks, exactly that, and a threshold that nobody sees.

Losses are computed: probabilities of all answer sequences, summed over the hidden threshold, on scores that one record
can turn into others. Draws are held to the same probabilities in `statistical/test_above_threshold.py`.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import AdditiveModel
from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel import AboveThreshold, selections
from privet.kernel import monitor as kernel_monitor
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab import worst_loss, worst_loss_of_draws
from privet.lab.distributions import answers_log_probability, probabilities

LARGE = 10**6
ONE = Fraction(1)
EPSILONS = [Fraction(1, 10), ONE, Fraction(4)]
ACCURACIES = [Fraction(1, 3), Fraction(1, 2), Fraction(4, 5), Fraction(2, 3)]
DOMAIN = Domain((Nominal("a", ("0", "1")), Nominal("y", ("no", "yes"))), target="y")
NO, YES = AdditiveModel((1, 0)), AdditiveModel((0, 1))


def rows(no: int, yes: int) -> pd.DataFrame:
    return pd.DataFrame({"a": ["0"] * (no + yes), "y": ["no"] * no + ["yes"] * yes})


def opened(no: int, yes: int, **more: Any) -> privet.ProtectedTable:
    return privet.open(rows(no, yes), DOMAIN, **{"budget": LARGE, **more})


def answers(monitor: Any, models: Sequence[AdditiveModel]) -> tuple[bool, ...]:
    """What a monitor says, up to its first yes."""
    found: list[bool] = []
    while len(found) < len(models) and not (found and found[-1]):
        found.append(monitor.reached(models[len(found)]))
    return tuple(found)


# -- the mechanism: probabilities -----------------------------------------------------------------


def chance(mechanism: AboveThreshold, scores: Sequence[int], reached: bool) -> float:
    """All but the last stay below and the last does as said: term by term over the threshold, with no logarithms."""
    ratio = math.exp(-float(mechanism.rate))

    def tail(at_least: int) -> float:
        return ratio ** max(at_least, 0)

    total = 0.0
    for threshold in range(4000):
        term = (1 - ratio) * ratio**threshold
        for score in scores[:-1]:
            term *= 1 - tail(threshold - score)
        last = tail(threshold - scores[-1])
        total += term * (last if reached else 1 - last)
    return total


@pytest.mark.parametrize("scores", [(0,), (-7, 3), (5, 5, 5), (-2, -9, 0, 4), (30, -30, 1)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_are_sums_over_the_threshold(epsilon: Fraction, scores: tuple[int, ...]) -> None:
    mechanism = AboveThreshold(epsilon, 2)
    for upto in range(1, len(scores) + 1):
        for reached in (True, False):
            found = math.exp(answers_log_probability(mechanism, scores[:upto], reached))
            assert found == pytest.approx(chance(mechanism, scores[:upto], reached), rel=1e-9, abs=1e-300)
    assert probabilities(mechanism, scores).sum() == pytest.approx(1, abs=1e-12)


def test_both_noises_have_one_mean() -> None:
    """A score at the threshold is as likely to pass as one at -1 is to fail, whatever the noise: no bias to either."""
    for epsilon in EPSILONS:
        mechanism = AboveThreshold(epsilon, 3)
        assert probabilities(mechanism, [0])[0] == pytest.approx(probabilities(mechanism, [-1])[1], rel=1e-9)


def losses(mechanism: AboveThreshold, scores: Sequence[int], others: Sequence[int]) -> float:
    """The largest loss of any answer sequence, in both directions."""
    found = []
    for upto in range(1, len(scores) + 1):
        for reached in (True, False):
            one, other = (answers_log_probability(mechanism, each[:upto], reached) for each in (scores, others))
            found.append(abs(one - other))
    return max(found)


@given(
    accuracy=st.sampled_from(ACCURACIES),
    epsilon=st.sampled_from(EPSILONS),
    data=st.data(),
)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_no_record_can_make_an_answer_sequence_likelier_than_epsilon_says(
    accuracy: Fraction, epsilon: Fraction, data: st.DataObject
) -> None:
    """A record that a model classifies right raises its score by q - p, any other lowers it by p: every mixture of
    both over up to six models, from random scores, and back.
    """
    rise, fall = accuracy.denominator - accuracy.numerator, accuracy.numerator
    mechanism = AboveThreshold(epsilon, max(rise, fall), rise + fall)
    scores = data.draw(st.lists(st.integers(-12, 12), min_size=1, max_size=6))
    right = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    moved = [score + (rise if mine else -fall) for score, mine in zip(scores, right, strict=True)]
    assert losses(mechanism, scores, moved) <= float(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("more", [0, 1, 5])
@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_is_attained(epsilon: Fraction, accuracy: Fraction, more: int) -> None:
    """Those that stay below move up as far as they can and the last one down: exactly epsilon is lost. With the noise
    of an epsilon 25% larger it would be 1.25 epsilon, and this test would fail.
    """
    rise, fall = accuracy.denominator - accuracy.numerator, accuracy.numerator
    up, down = max(rise, fall), min(rise, fall)
    mechanism = AboveThreshold(epsilon, up, rise + fall)
    zeros = [0] * (2 + more)
    assert losses(mechanism, zeros, [up] * (1 + more) + [-down]) == pytest.approx(float(epsilon), rel=1e-9)


def test_scores_that_move_both_ways_need_three_times_the_sensitivity() -> None:
    """Without a spread the rate is epsilon / 3 S; with a spread of S, sold to such scores, it would be too loose."""
    assert AboveThreshold(ONE, 4).rate == Fraction(1, 12)
    assert losses(AboveThreshold(ONE, 4), (0, 0), (4, -4)) == pytest.approx(1)
    assert losses(AboveThreshold(ONE, 4, 4), (0, 0), (4, -4)) == pytest.approx(1.5)


@pytest.mark.parametrize("spread", [0, 3, 9])
def test_a_spread_that_no_scores_have_is_refused(spread: int) -> None:
    """Would be noise for less than the scores move: below the sensitivity alone, above twice that never."""
    with pytest.raises(QuestionError, match="between their sensitivity and twice that"):
        AboveThreshold(ONE, 4, spread)


@pytest.mark.parametrize("epsilon", [ONE, Fraction(5, 4)])
def test_noise_for_a_quarter_more_than_it_is_sold_for_is_caught(epsilon: Fraction) -> None:
    verdict = privet.verify(AboveThreshold(epsilon, 2, 3), 1, effort=0.02)
    assert verdict.passed == (epsilon == ONE)
    assert verdict.lower_bound == pytest.approx(float(epsilon), rel=1e-6)


def test_a_second_yes_from_the_same_threshold_would_lose_more() -> None:
    """Why a monitor closes: of yes, yes both noises have to move, and no shift of the threshold helps."""
    mechanism, reach = AboveThreshold(ONE, 1), 3000
    ratio = math.exp(-float(mechanism.rate))
    thresholds = np.arange(reach)

    def twice(scores: Sequence[int]) -> float:
        # one that stays below, then three that reach the threshold
        below = 1 - ratio ** np.maximum(thresholds - scores[0], 0)
        above = np.prod([ratio ** np.maximum(thresholds - score, 0) for score in scores[1:]], axis=0)
        return float(((1 - ratio) * ratio**thresholds * below * above).sum())

    assert math.log(twice((0, 0, 0, 0)) / twice((1, -1, -1, -1))) > 2


def test_the_script_of_an_enumeration_knows_the_answers_before() -> None:
    """Every sequence of three answers has the probability that it has by itself."""
    mechanism, scores = AboveThreshold(ONE, 1), (0, -1, 2)
    found = worst_loss_of_draws(mechanism.release, scores, (1, 0, 1))
    assert (found.tried, found.complete) == (8, True)  # four outcomes on either table
    assert found.loss == pytest.approx(losses(mechanism, scores, (1, 0, 1)))


# -- through the table ------------------------------------------------------------------------------

PAIRS = [((0, 0), (1, 0)), ((4, 0), (4, 1)), ((2, 1), (2, 2)), ((3, 2), (4, 2)), ((1, 3), (2, 3))]


@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_all_checks_together_lose_epsilon_and_no_more(epsilon: Fraction, accuracy: Fraction) -> None:
    """One person more or less, three models. Some pair of tables attains the bound, none exceeds it."""
    found = []
    for models in itertools.product((NO, YES), repeat=3):

        def run(table: Any, models: Sequence[AdditiveModel] = models) -> tuple[bool, ...]:
            return answers(table.monitor(accuracy, epsilon), models)

        found += [worst_loss(run, rows(*one), rows(*other), DOMAIN).loss for one, other in PAIRS]
    assert max(found) <= float(epsilon) * (1 + 1e-9)
    assert max(found) == pytest.approx(float(epsilon), rel=1e-9)


def test_a_person_with_two_rows_is_protected_where_two_are_declared() -> None:
    def run(table: Any) -> tuple[bool, ...]:
        return answers(table.monitor("1/3", 1), (YES, NO))

    for declared, loss in ((2, 1), (1, 2)):  # with one declared nobody promised otherwise
        domain = Domain(DOMAIN.columns, target="y", rows_per_person=declared)
        assert worst_loss(run, rows(0, 0), rows(0, 2), domain).loss == pytest.approx(loss, rel=1e-9)


def test_a_run_that_asks_until_it_hears_a_yes_can_be_enumerated() -> None:
    def run(table: Any) -> int:
        monitor = table.monitor(0.5, 1)
        while not monitor.reached(NO):
            pass
        return int(monitor.checks)

    found = worst_loss(run, rows(0, 0), rows(1, 0), DOMAIN, limit=60)
    assert found.loss <= 1 + 1e-9 and not found.complete


@pytest.mark.parametrize("source", ["memory", "csv", "snapshot"])
def test_it_says_no_up_to_the_first_model_that_is_accurate_enough(source: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["0", "1"] * 500, "y": ["no", "yes"] * 400 + ["yes", "no"] * 100})
    frame.to_csv(tmp_path / "people.csv", index=False)
    by_a = AdditiveModel((0, 0), ((("a",), np.array([[1, 0], [0, 1]])),))  # right for 800 of 1000
    data = frame if source == "memory" else tmp_path / "people.csv"
    with privet.open(data, DOMAIN, budget=20, access="snapshot" if source == "snapshot" else "push-down") as table:
        monitor = table.monitor(0.75, 10)  # a wrong answer has a probability below 1e-100
        assert [monitor.reached(model) for model in (NO, YES, NO, by_a)] == [False, False, False, True]
        assert (monitor.checks, monitor.closed, monitor.private) == (4, True, True)
        assert (monitor.epsilon, monitor.accuracy) == (10, Fraction(3, 4))
        assert monitor.margin(0.999) < 50
        stricter = table.monitor("0.85", 10)
        assert not stricter.reached(by_a) and not stricter.closed
        assert table.budget.remaining == 0


def test_settings_of_numpy_make_no_score_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine underflows today; one that did would tell of a row."""
    tiny, exact_lead = np.array([5e-324]), kernel_monitor.exact_lead
    monkeypatch.setattr(kernel_monitor, "exact_lead", lambda *asked: exact_lead(*asked) + int((tiny / 3)[0]))
    with np.errstate(all="raise"):
        assert opened(4, 1).monitor("1/2", 10**5).reached(NO)


def test_exactly_the_share_is_enough() -> None:
    assert opened(4, 1).monitor("4/5", 10**5).reached(NO)
    assert not opened(3, 1).monitor("4/5", 10**5).reached(NO)  # a fifth of a row below


def test_a_part_of_a_table_is_monitored_by_itself() -> None:
    frame = pd.DataFrame({"a": ["0"] * 300 + ["1"] * 300, "y": ["no"] * 300 + ["yes"] * 300})
    table = privet.open(frame, DOMAIN, budget=LARGE)
    assert not table.monitor(0.75, 100).reached(NO)
    assert table.where(a="0").monitor(0.75, 100).reached(NO)
    assert table.partition("a")["1"].monitor(0.75, 100).reached(YES)


# -- what it costs, and when it ends ----------------------------------------------------------------


def test_it_is_charged_once_however_many_models_are_tried() -> None:
    table = opened(0, 1000)
    monitor = table.monitor(0.5, "0.5")
    for _ in range(50):
        assert not monitor.reached(NO)  # a yes has a probability below 1e-60
    assert (monitor.checks, monitor.closed) == (50, False)
    assert table.budget.spent == monitor.epsilon == Fraction(1, 2)
    assert [each.question for each in table.budget.entries] == ["monitor(0.5)"]


def test_what_does_not_fit_the_budget_is_refused() -> None:
    with pytest.raises(BudgetExceeded):
        opened(1, 1, budget=1).monitor(0.5, 2)
    with pytest.raises(BudgetExceeded):
        opened(1, 1, budget=10).allot(1).monitor(0.5, 2)


def test_after_its_first_yes_it_says_nothing_more() -> None:
    monitor = opened(500, 0).monitor(0.5, 10)
    assert monitor.reached(NO)
    for model in (NO, YES):
        with pytest.raises(QuestionError, match=r"closed after 1 checks.*table\.monitor\.$"):
            monitor.reached(model)
    assert monitor.checks == 1


def test_of_many_threads_one_hears_the_yes() -> None:
    table = opened(500, 0)
    for _ in range(5):
        monitor = table.monitor(0.5, 10)
        heard: list[object] = []
        ready = threading.Barrier(8)

        def ask(monitor: Any = monitor, heard: list[object] = heard, ready: threading.Barrier = ready) -> None:
            ready.wait()
            try:
                heard.append(monitor.reached(NO))
            except QuestionError as refusal:
                heard.append(type(refusal))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert heard.count(True) == 1 and heard.count(QuestionError) == 7


def test_an_interrupt_while_it_answers_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a second try for an answer that was drawn and not heard: whoever stops a process chooses when."""
    monitor = opened(0, 500).monitor(0.5, 10)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(selections, "geometric", stop)
        with pytest.raises(KeyboardInterrupt):
            monitor.reached(NO)
    assert monitor.closed
    with pytest.raises(QuestionError):
        monitor.reached(NO)


def test_a_closed_table_gives_no_answers() -> None:
    table = opened(5, 5)
    monitor = table.monitor(0.5, 1)
    table.close()
    with pytest.raises(DataError, match="was closed"):
        monitor.reached(NO)
    with pytest.raises(DataError, match="was closed"):
        table.monitor(0.5, 1)


def test_an_engine_that_fails_is_told_without_its_words_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(500, 0)
    monitor = table.monitor(0.5, 10)

    def fail(*_: object) -> None:
        raise RuntimeError("the row of CANARY")

    with monkeypatch.context() as patch:
        patch.setattr(table._session.engine, "exact_correct", fail)
        with pytest.raises(EngineFailed) as caught:
            monitor.reached(NO)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert monitor.checks == 0
    assert monitor.reached(NO)


def test_it_dies_with_its_process() -> None:
    """Two processes with one threshold could hear two yeses."""
    monitor = opened(500, 0).monitor(0.5, 10)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        try:
            monitor.reached(NO)
            os.write(writer, b"answered")
        except PrivacyError as refusal:
            os.write(writer, str(refusal).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        assert "begun in another process" in said.read()
    os.waitpid(child, 0)
    assert monitor.reached(NO)


# -- what nobody sees -------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_it_cannot_be_copied(take: Callable[[Any], Any]) -> None:
    monitor = opened(5, 5).monitor(0.5, 1)
    for secret in (monitor, monitor._watch):
        with pytest.raises(PrivacyError, match="cannot be copied or pickled"):
            take(secret)


def test_the_threshold_is_in_no_text_and_in_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold that no other number looks like: it is drawn, it decides, and it is written nowhere."""
    drawn = iter([31415926535, 0, 0, 27182818284])
    monkeypatch.setattr(selections, "geometric", lambda rate, count, entropy: np.array([next(drawn)] * count))
    rows(500, 0).to_csv(tmp_path / "people.csv", index=False)
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=1) as table:
        monitor = table.monitor("4/5", 1)
        assert not monitor.reached(NO) and not monitor.reached(NO)  # though every row is right
        texts = [repr(monitor), str(monitor), repr(monitor._watch), repr(table), repr(table.budget.entries)]
        texts.append(repr(monitor.margin(0.95)))
        with pytest.raises(PrivetError) as caught:
            monitor.reached(AdditiveModel((0, 0, 0)))
        texts.append(repr(caught.value))
        (entry,) = table.budget.entries
        stored = json.loads(entry.answer or "")
        assert stored == {"answer": ["begun"], "private": True}
    for path in tmp_path.iterdir():
        texts.append(path.read_bytes().decode("latin-1"))
    assert not [text for text in texts if "31415926535" in text]


def test_what_is_written_does_not_depend_on_the_rows(tmp_path: Path) -> None:
    written = []
    for number, size in enumerate((0, 300)):
        table = opened(size, 3, ledger=tmp_path / f"{number}.ledger", budget=5)
        monitor = table.monitor(0.7, 1)
        written.append([(each.question, each.epsilon, each.loss, each.answer) for each in table.budget.entries])
        answers(monitor, (YES, NO, YES))
        assert written[-1] == [(each.question, each.epsilon, each.loss, each.answer) for each in table.budget.entries]
    assert written[0] == written[1]


def test_a_script_decides_for_no_monitor_that_was_begun_outside() -> None:
    """A script knows the exact scores behind an answer: of rows that are somebody's it would tell them."""
    table = opened(500, 3)

    def run(_: Any) -> tuple[bool, ...]:
        return answers(table.monitor(0.7, "0.001"), (YES, NO))

    assert worst_loss(run, rows(1, 1), rows(1, 2), DOMAIN, limit=2).outcomes == ()
    kept: list[Any] = []

    def begin(each: Any) -> bool:
        kept.append(each.monitor(0.5, 1))
        return len(kept) < 4 or bool(kept[0].reached(NO))  # of another run on the same table

    with pytest.raises(PrivacyError, match="begun in the same run"):
        worst_loss(begin, rows(1, 1), rows(1, 2), DOMAIN)
    with pytest.raises(DataError, match="was closed"):
        kept[0].reached(NO)


def test_seeded_noise_repeats_and_says_so() -> None:
    def run() -> list[bool]:
        monitor = opened(10, 10).monitor(0.5, "0.1")
        assert not monitor.private and "NOT PRIVATE" in repr(monitor)
        found = []
        while not monitor.closed:
            found.append(monitor.reached(NO))
        return found

    found = []
    for seed in (1, 1, 2, 3, 4, 5):
        with privet.testing.seeded_noise(seed):
            found.append(run())
    assert found[0] == found[1] and len({len(each) for each in found}) > 1
    monitor = opened(0, 500).monitor(0.5, 10)
    with privet.testing.seeded_noise(1):
        monitor.reached(NO)
    assert monitor.private  # its table was opened before


# -- how good it is -----------------------------------------------------------------------------------


def test_the_margin_is_known_before_anything_is_asked_and_grows_slowly() -> None:
    monitor = opened(0, 2000).monitor("4/5", 1)
    before = monitor.margin(0.95)
    # P(nu - rho > t) <= 0.025 with rate 1 / 9: t = 27 fifths of a row
    assert before == 6
    for _ in range(30):
        monitor.reached(NO)
    assert before < monitor.margin(0.95) < 5 * before
    assert monitor.margin(0.5) < monitor.margin(0.999)
    for confidence in (0, 1, -1, math.nan):
        with pytest.raises(QuestionError, match="between 0 and 1"):
            monitor.margin(confidence)


def test_more_epsilon_makes_a_smaller_margin_and_several_rows_a_larger_one() -> None:
    table = opened(1, 1)
    assert table.monitor(0.8, 10).margin() < table.monitor(0.8, 1).margin() < table.monitor(0.8, 0.1).margin()
    domain = Domain(DOMAIN.columns, target="y", rows_per_person=10)
    shared = privet.open(rows(1, 1), domain, budget=LARGE)
    assert shared.monitor(0.8, 10).margin() == table.monitor(0.8, 1).margin()


# -- questions that are refused ---------------------------------------------------------------------

WRONG_ACCURACIES = [0, 1, -0.5, 1.5, "", "x", "4/0", "0/5", math.nan, math.inf, True, None, 1e-9, "1e-99", "9" * 100]
WRONG_ACCURACIES += [[0.5], 10**400, "1e999999999", "\u0661/2"]


@pytest.mark.parametrize("accuracy", WRONG_ACCURACIES, ids=lambda each: repr(each)[:20])
def test_a_wrong_accuracy_is_refused_in_a_sentence_and_not_charged(accuracy: Any) -> None:
    table = opened(1, 1)
    with pytest.raises(QuestionError, match="lies between 0 and 1") as caught:
        table.monitor(accuracy, 1)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []


@pytest.mark.parametrize("accuracy", [0.8, "0.8", "4/5", Fraction(4, 5), np.float64(0.8), ".8", "8e-1"])
def test_an_accuracy_may_be_written_in_many_ways(accuracy: Any) -> None:
    assert opened(1, 1).monitor(accuracy, 1).accuracy == Fraction(4, 5)


def test_a_wrong_epsilon_or_table_is_refused() -> None:
    table = opened(1, 1)
    for epsilon in (0, -1, math.inf, "x", None):
        with pytest.raises(QuestionError):
            table.monitor(0.5, epsilon)
    assert table.budget.entries == []
    with pytest.raises(UndeclaredDomain):
        privet.open(rows(1, 1), Domain(DOMAIN.columns), budget=1).monitor(0.5, 1)
    alone = Domain((Nominal("a", ("0", "1")), Nominal("y", ("no",))), target="y")
    with pytest.raises(QuestionError, match="two classes"):
        privet.open(rows(1, 1), alone, budget=1).monitor(0.5, 1)


def test_a_wrong_model_is_refused_and_not_counted() -> None:
    monitor = opened(1, 1).monitor(0.5, 1)
    for model in (AdditiveModel((0, 0, 0)), "a model", None, AdditiveModel((0, 0), ((("y",), np.zeros((2, 2), int)),))):
        with pytest.raises(QuestionError):
            monitor.reached(model)  # type: ignore[arg-type]
    assert monitor.checks == 0 and not monitor.closed
