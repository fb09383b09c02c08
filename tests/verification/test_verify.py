"""`privet.verify` as its users meet it: whatever they pass is held to its claim, or refused in a sentence.

Noise is real. A bound is wrong with probability 1e-8 at most, so a false alarm of a test is as improbable; what must
be caught is far enough above its claim to be missed as seldom.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import few, long
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import privet
from privet.errors import DataError, QuestionError
from privet.kernel import IntegerLaplace, PermuteAndFlip
from privet.verification import Finding, Report, Verdict, registry, search, verify_all
from privet.verification.checks import Check
from privet.verification.registry import FALSE_ALARM
from privet.verification.search import EPSILONS, _subjects
from privet.verification.subject import Effort, Subject

ONE = Fraction(1)
FOUR = Fraction(4)


def noisy(epsilon: Any) -> Callable[[Any], int]:
    """A noisy number of rows."""
    noise = IntegerLaplace(Fraction(epsilon))
    return lambda rows: int(noise.release(np.array([len(rows)]))[0])


# -- what can be verified ---------------------------------------------------------------------


def test_a_name() -> None:
    verdict = privet.verify("permute-and-flip", 1, effort=0.05)
    assert (verdict.subject, verdict.kind, verdict.claim) == ("permute-and-flip", "mechanism", 1)
    assert verdict.passed and verdict.lower_bound == pytest.approx(1, abs=1e-6)
    assert privet.verify("rounded-noise", 1).outcome == "broken"


@pytest.mark.parametrize("epsilon", [1, 0.5, "1/2", Fraction(1, 2), "0.5"])
def test_a_claim_is_exact_in_every_spelling(epsilon: Any) -> None:
    assert privet.verify("rounded-noise", epsilon).claim == Fraction(str(epsilon))


def test_a_mechanism() -> None:
    assert privet.verify(IntegerLaplace(ONE), 1, effort=0.05).passed
    assert privet.verify(IntegerLaplace(Fraction(1, 2)), 1, effort=0.05).passed
    found = privet.verify(IntegerLaplace(Fraction(5, 4)), 1, effort=0.05)
    assert not found.passed and found.subject == "IntegerLaplace"


def test_a_function_with_pairs() -> None:
    """Tables are whatever the function takes."""
    pairs = [([7], [7]), ([7, 7], [7, 7, 7])]
    assert privet.verify(noisy(1), 1, pairs=pairs).passed
    found = privet.verify(noisy(4), 1, pairs=pairs)
    assert found.outcome == "broken" and found.lower_bound <= 4
    assert found.worst.tables == "given pair 2"
    exact = privet.verify(len, 1, pairs=pairs)
    assert exact.lower_bound > 4 and exact.subject == "len"


def test_a_function_without_pairs_gets_frames() -> None:
    """Would catch frames on which nothing depends on a person."""
    seen: list[Any] = []

    def count(frame: pd.DataFrame) -> int:
        seen.append(list(frame.columns))
        return noisy(1)(frame)

    assert privet.verify(count, 1, effort=0.2).outcome != "broken"  # so few runs may be undecided
    assert {tuple(each) for each in seen} == {("a", "b", "x", "y")}
    assert privet.verify(noisy(4), 1, effort=0.5).outcome == "broken"
    assert privet.verify(lambda frame: frame["x"].sum(), 1, effort=0.05).outcome == "broken"


def test_a_function_that_leaks_in_a_corner_of_what_it_returns() -> None:
    """Would catch observations that stop at the surface."""
    pairs = [([7, 7], [7, 7, 7])]
    for leak in (
        lambda rows: {"count": noisy(1)(rows), "debug": {"shape": [[len(rows)]]}},
        lambda rows: [0.0] * len(rows),
        lambda rows: 1 / (len(rows) - 3),
        lambda rows: 2.0**-40 * len(rows) + float(np.random.default_rng().integers(5)),
    ):
        assert privet.verify(leak, 1, pairs=pairs, effort=0.1).outcome == "broken"


def test_float_noise_is_caught_by_its_low_bits() -> None:
    """Laplace noise in floating point, of the right scale (Mironov 2012)."""
    rng = np.random.default_rng()
    found = privet.verify(lambda rows: len(rows) + rng.laplace(), 1, pairs=[([], [7])])
    assert found.outcome == "broken" and "finest bit" in found.worst.event


def test_a_classifier_without_an_epsilon_is_held_to_the_claim() -> None:
    """Would catch a classifier that is changed or fitted by being verified."""
    tree = privet.HanischTreeClassifier(max_depth=1, domain=privet.datasets.census_domain())  # of another table
    verdict = privet.verify(tree, 1, effort=0.05)
    assert verdict.passed and (verdict.subject, verdict.kind) == ("HanischTreeClassifier", "estimator")
    assert {finding.method for finding in verdict.findings} == {"every outcome", "neighbours", "canaries"}
    assert tree.epsilon is None and tree.domain is not None and not hasattr(tree, "model_")
    assert verdict.lower_bound == pytest.approx(1, abs=1e-6)


@long
def test_a_classifier_with_an_epsilon_of_its_own_is_held_to_the_claim() -> None:
    found = privet.verify(privet.HanischTreeClassifier(epsilon=2, max_depth=1), 1, effort=0.05)
    assert not found.passed
    assert found.lower_bound == pytest.approx(2, abs=1e-6)


class NoisyMajority(BaseEstimator):  # type: ignore[misc]
    """The class of more rows, after noise; it publishes both noisy numbers."""

    def __init__(self, epsilon: Fraction = ONE) -> None:
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any) -> NoisyMajority:
        self.counts_ = IntegerLaplace(self.epsilon).release(np.bincount(y, minlength=2))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), int(np.argmax(self.counts_)))


def test_somebody_elses_estimator() -> None:
    honest = privet.verify(NoisyMajority(), 1, effort=1.5)
    assert honest.passed and honest.kind == "peer"
    assert privet.verify(NoisyMajority(), 1, effort=0.1).outcome == "undecided"
    assert privet.verify(NoisyMajority(FOUR), 1).outcome == "broken"


@pytest.mark.parametrize(
    "estimator", [pytest.param(DecisionTreeClassifier(), marks=long), KNeighborsClassifier()], ids=str
)
def test_an_estimator_without_privacy_is_caught(estimator: Any) -> None:
    """Nearest neighbours need five rows: tables that do not suit an estimator are passed over."""
    assert privet.verify(estimator, 1, effort=0.3).outcome == "broken"


def test_an_estimator_with_pairs() -> None:
    """Arrays or frames, the larger table first or last; the row in question is the last one."""
    X, y = np.array([[0.0], [1.0], [0.0], [1.0], [5.0]]), np.array([0, 1, 0, 1, 1])
    arrays = ((X[:-1], y[:-1]), (X, y))
    frames = tuple((pd.DataFrame(each, columns=["x"]), pd.Series(target)) for each, target in arrays)
    for pair in (arrays, arrays[::-1], frames):
        found = privet.verify(DecisionTreeClassifier(), 1, pairs=[pair], effort=0.3)
        assert found.outcome == "broken" and found.worst.tables == "given pair 1"
    assert privet.verify(NoisyMajority(), 1, pairs=[arrays], effort=0.2).outcome == "undecided"


def test_progress_is_told() -> None:
    told: list[str] = []
    privet.verify("rounded-noise", 1, progress=told.append)
    assert told == ["rounded-noise: check 1 of 1"]


# -- what is hard to see ----------------------------------------------------------------------


ROUNDINGS: dict[str, Callable[[float], int]] = {"down": math.floor, "up": math.ceil, "to the nearest": round}


@pytest.mark.parametrize(
    ("multiple", "direction"),
    few(
        itertools.product((2, 5, 10, 25, 50, 100), ROUNDINGS),
        {(2, "to the nearest"), (5, "down"), (10, "up"), (25, "to the nearest"), (50, "down"), (100, "up")},
    ),
)
def test_a_count_that_is_rounded_before_its_noise_is_caught(multiple: int, direction: str) -> None:
    """One person moves it by a whole multiple or by nothing: the tables must cross where it jumps."""
    turned = ROUNDINGS[direction]

    def count(frame: pd.DataFrame) -> int:
        return noisy(1)([0] * (multiple * turned(len(frame) / multiple)))

    assert privet.verify(count, 1, effort=0.2).outcome == "broken"


@pytest.mark.parametrize("column", [pytest.param("a", marks=long), pytest.param("b", marks=long), "y"])
def test_a_cell_that_is_rounded_before_its_noise_is_caught(column: str) -> None:
    def cell(frame: pd.DataFrame) -> int:
        return noisy(1)([0] * (5 * round(int((frame[column].to_numpy() == "1").sum()) / 5)))

    assert privet.verify(cell, 1, effort=0.2).outcome == "broken"


@pytest.mark.parametrize("falling", [True, pytest.param(False, marks=long)])
@pytest.mark.parametrize(
    "shape",
    [dict, pytest.param(list, marks=long), pytest.param(pd.Series, marks=long), lambda cells: pd.DataFrame([cells])],
    ids=["dict", "list", "series", "frame"],
)
def test_cells_in_the_order_of_their_exact_counts_are_caught(shape: Any, falling: bool) -> None:
    """Every number has its noise, and the order has none."""

    def cells(frame: pd.DataFrame) -> Any:
        ones = int((frame["a"].to_numpy() == "1").sum())
        exact_counts = {"0": len(frame) - ones, "1": ones}
        ordered = sorted(exact_counts, key=lambda cell: exact_counts[cell], reverse=falling)
        told = {cell: noisy(1)([0] * exact_counts[cell]) for cell in ordered}
        return list(told.items()) if shape is list else shape(told)

    found = privet.verify(cells, 1, effort=0.05)
    assert found.outcome == "broken"


def test_an_exact_count_in_one_of_a_hundred_runs_is_caught_where_noise_does_not_hide_it() -> None:
    """Would catch a default that runs too seldom: a text beside the number, in 1 of 100 runs, and no text else."""
    rng = np.random.default_rng()

    def count(frame: pd.DataFrame) -> tuple[int, str]:
        return noisy(1)(frame), f"{len(frame)} rows" if rng.random() < 0.01 else ""

    found = privet.verify(count, 1)
    assert found.outcome == "broken"
    assert found.rarity < 0.01


def test_what_is_beyond_the_default_is_said_by_its_power() -> None:
    """An exact count among whole noisy ones, in 1 of 100 runs, loses 1.02; noise for 1.05 is as close to the claim.

    Neither can be told from noise for 1 by so few runs: the verdict must not say that it would have been found.
    """
    rng = np.random.default_rng()

    def sometimes_exact(rows: Any) -> int:
        return len(rows) if rng.random() < 0.01 else noisy(1)(rows)

    for function, loss in ((sometimes_exact, 1.022), (noisy("1.05"), 1.05)):
        found = privet.verify(function, 1, pairs=[([7, 7], [7, 7, 7])])
        assert found.outcome == "holds" and loss < found.power < 1.3


# -- what cannot ------------------------------------------------------------------------------

X, Y = np.arange(8.0)[:, None], np.array([0, 1] * 4)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: privet.verify("cuont", 1), "nothing to verify called 'cuont'; did you mean count"),
        (lambda: privet.verify("zzz", 1), "privet verify --list"),
        (lambda: privet.verify(PermuteAndFlip, 1), r"PermuteAndFlip is a class; pass one of it, as PermuteAndFlip\("),
        (lambda: privet.verify(privet.DiffPID3Classifier, 1), "DiffPID3Classifier is a class"),
        (lambda: privet.verify(DecisionTreeClassifier, 1), "DecisionTreeClassifier is a class"),
        (lambda: privet.verify(17, 1), "cannot verify a int"),
        (lambda: privet.verify(None, 1), "cannot verify a NoneType"),
        *((lambda e=epsilon: privet.verify("count", e), "epsilon must be") for epsilon in (0, -1, math.nan, "x", None)),
        *((lambda a=alpha: privet.verify("count", 1, alpha=a), "alpha is") for alpha in (0, -1, 0.5, math.nan)),
        *((lambda e=effort: privet.verify("count", 1, effort=e), "effort multip") for effort in (0, -1, 1e9, math.nan)),
        (lambda: privet.verify("count", 1, pairs=[(0, 1)]), "count brings its own tables; leave out pairs"),
        (lambda: privet.verify(privet.MaxTreeClassifier(), 1, pairs=[(0, 1)]), "brings its own tables"),
        (lambda: privet.verify(len, 1, pairs=[(1,)]), "pairs are pairs of neighbouring tables"),
        (lambda: privet.verify(LogisticRegression(), 1, pairs=[((X, Y), (X, Y))]), "of 8 and 8 rows; neighbours"),
        (lambda: privet.verify(LogisticRegression(), 1, pairs=[((X[1:], Y[1:]), (X, Y))]), "in more than a row"),
        (lambda: privet.verify(lambda rows: 1 / 0, 1, effort=0.01), "every run ended with an error"),
    ],
)
def test_what_cannot_be_verified_is_refused_in_a_sentence(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(QuestionError, match=said) as raised:
        call()
    assert "\n" not in str(raised.value)


@long
def test_an_effort_that_is_too_small_shows_nothing_and_does_not_crash() -> None:
    for subject in ("count", "exponential-over-ranges", "maxtree", "stored-seed", "float-noise", "bootstrap-forest"):
        verdict = privet.verify(subject, 1, effort=0.01)
        assert verdict.outcome != "broken" or registry()[subject].must_fail
    assert privet.verify("integer-laplace", 1, effort=1e-6).passed  # by what is computed
    assert privet.verify(lambda rows: len(rows), 1, effort=1e-6).outcome == "undecided"


# -- verdicts ---------------------------------------------------------------------------------

FOUND = Verdict(
    "a count",
    "mechanism",
    "a line",
    Fraction(1, 3),
    (
        Finding("neighbours", "0 and 1", "count is at most 0", 0.25, 1000, 5e-9, 0.4, "a note"),
        Finding("every outcome", "0 and 1", "the output is 3", 0.3, 8, 0.0, 1 / 3),
        Finding("canaries", "people", "guess nobody", -math.inf, 3, 5e-9),
    ),
)
CAUGHT = Verdict("bad", "known-bad", "a line", ONE, (Finding("neighbours", "a", "b", math.inf, 10, 1e-8, 1.0),), True)


def test_a_verdict_has_what_follows_from_its_findings() -> None:
    assert FOUND.lower_bound == 0.3 and FOUND.worst.method == "every outcome"
    assert FOUND.alpha == 1e-8
    assert FOUND.power == 1 / 3 and FOUND.drawn_power == 0.4
    assert FOUND.outcome == "holds" and FOUND.passed and FOUND.as_expected
    assert CAUGHT.outcome == "broken" and CAUGHT.as_expected and CAUGHT.lower_bound == math.inf
    nothing = Verdict("n", "mechanism", "l", ONE, (Finding("neighbours", "a", "b", -math.inf, 10, 1e-8),))
    assert nothing.lower_bound == 0 and nothing.power == math.inf
    assert nothing.outcome == "undecided" and not nothing.passed and not nothing.as_expected


def test_a_test_that_would_miss_twice_the_claim_is_no_pass() -> None:
    """Would catch a headline that says "passed" over a test without power."""
    for power, outcome in ((1.0, "holds"), (2.0, "holds"), (2.1, "undecided"), (2578.0, "undecided")):
        verdict = Verdict("n", "function", "l", ONE, (Finding("neighbours", "a", "b", 0.3, 10, 1e-8, power),))
        assert verdict.outcome == outcome
        assert ("no power is no pass" in str(verdict).splitlines()[0]) == (outcome == "undecided")
        assert json.loads(json.dumps(verdict.to_dict()))["outcome"] == outcome
    bad = Verdict("n", "known-bad", "l", ONE, verdict.findings, must_fail=True)
    assert not bad.as_expected and Report((bad,)).outcome == "broken"  # it was not caught
    assert Report((FOUND, verdict)).outcome == "undecided" and Report((FOUND, verdict, bad)).outcome == "broken"


def test_a_claim_that_is_met_exactly_is_no_failure() -> None:
    """Would catch an alarm at 1.0000000000000002, and a pass at 1.001."""
    for bound, passed in ((1 + 1e-12, True), (1.001, False)):
        verdict = Verdict("n", "mechanism", "l", ONE, (Finding("every outcome", "a", "b", bound, 10, power=1.0),))
        assert verdict.passed is passed


def test_a_verdict_is_printed_for_people() -> None:
    text = str(FOUND)
    assert text.startswith("a count: holds as far as tested\n  claims epsilon 1/3, loses at least 0.300\n")
    words = " ".join(text.split())
    assert "count is at most 0" in words and "right but for a probability of at most 1e-08 in all" in words
    assert "any loss above the claim on these tables is found by arithmetic; by samples alone epsilon 0.400 is" in words
    sampled, blind = (" ".join(str(replace(FOUND, findings=FOUND.findings[k : k + 1])).split()) for k in (0, 2))
    assert "a mechanism of epsilon 0.400, sold as 1/3, is found in 99 of 100 such tests" in sampled
    assert "no output told the tables apart, so this test may miss a mechanism of any epsilon" in blind
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "-inf" not in text and str(CAUGHT).startswith("bad: BROKEN, it loses more than it says\n")


@pytest.mark.parametrize("verdict", [FOUND, CAUGHT])
def test_a_verdict_comes_back_from_json(verdict: Verdict) -> None:
    """Would catch an infinity that no JSON reader takes, and a claim that comes back as a float."""
    text = json.dumps(verdict.to_dict(), allow_nan=False)
    assert Verdict.from_dict(json.loads(text)) == verdict


def test_a_verdict_writes_a_page(tmp_path: Path) -> None:
    content = FOUND.to_html(tmp_path / "verdict.html")
    assert (tmp_path / "verdict.html").read_text(encoding="utf-8") == content
    assert "a count" in content and content.lstrip().lower().startswith("<!doctype html")
    assert FOUND.to_html() == content


def test_a_report_passes_where_all_is_as_expected() -> None:
    """A known-bad one that is caught is as it should be; one that is missed is a bench that does not work."""
    missed = Verdict("bad", "known-bad", "a line", ONE, FOUND.findings, True)
    assert missed.outcome == "holds"
    loose = Verdict("honest", "mechanism", "a line", ONE, CAUGHT.findings)
    assert Report((FOUND, CAUGHT)).passed
    assert not Report((FOUND, missed)).passed and not Report((loose,)).passed
    report = json.loads(Report((FOUND, CAUGHT)).to_json())
    assert report["passed"] and report["alpha"] == 1e-8  # of what is honest
    assert [each["subject"] for each in report["verdicts"]] == ["a count", "bad"]


def test_everything_is_verified_with_one_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify_all` on a registry of two: would catch trials that each take the whole false alarm."""
    one, two = Counted("one"), Counted("two")
    planned = [(each.subject, epsilon, Effort(0.5)) for each in (one, two) for epsilon in (ONE, FOUR)]
    monkeypatch.setattr("privet.verification.trials", lambda: planned)
    told: list[str] = []
    report = verify_all(effort=2, curves=False, progress=told.append)
    assert [each.claim for each in report.verdicts] == [1, 4, 1, 4] and report.passed
    asked = one.asked + two.asked
    assert sum(alpha for _, _, alpha in asked) <= FALSE_ALARM * (1 + 1e-9)
    assert {effort.times for _, effort, _ in asked} == {1.0}
    assert told[0] == "1 of 4: one at epsilon 1"


# -- the long search --------------------------------------------------------------------------


@dataclass
class Counted:
    """A subject that remembers how it was asked."""

    name: str
    stops_at: int = 10**9
    asked: list[tuple[Fraction, Effort, float]] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        def checks(epsilon: Fraction, effort: Effort) -> list[Check]:
            return [_Remembers(self, epsilon, effort)]

        return Subject(self.name, "mechanism", "a line", checks)


@dataclass(frozen=True)
class _Remembers(Check):
    counted: Counted
    epsilon: Fraction
    effort: Effort

    def find(self, claim: float, alpha: float) -> Finding:
        if len(self.counted.asked) >= self.counted.stops_at:
            raise KeyboardInterrupt
        self.counted.asked.append((self.epsilon, self.effort, alpha))
        return Finding("neighbours", "a", "b\u2028c", 0.0, 1, alpha, power=claim)


class Clock:
    """A clock that goes on by a quarter of an hour whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 900
        return self.now


def searched(hours: float, path: Path, *counted: Counted) -> Report:
    return search(hours, path, clock=Clock(), subjects=[each.subject for each in counted])


def test_a_search_stops_in_time_and_writes_a_line_for_every_trial(tmp_path: Path) -> None:
    one, two, path = Counted("one"), Counted("two"), tmp_path / "found.jsonl"
    report = searched(1, path, one, two)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(lines) == len(report.verdicts) == len(one.asked) + len(two.asked) == 3  # a quarter of an hour each
    assert [line["trial"] for line in lines] == ["round 0: one at 0.05", "round 0: two at 0.05", "round 0: one at 0.1"]
    assert [Verdict.from_dict(line) for line in lines] == list(report.verdicts)


def test_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    """Would catch a trial that is repeated, whose alpha would count twice, or one that is left out."""
    one, two, path = Counted("one"), Counted("two"), tmp_path / "found.jsonl"
    for hours in (1, 0, 2, 1):
        report = searched(hours, path, one, two)
    trials = [json.loads(line)["trial"] for line in path.read_bytes().splitlines()]
    assert len(set(trials)) == len(trials) == len(report.verdicts) == 3 + 0 + 7 + 3
    assert len(one.asked) + len(two.asked) == 13
    whole = tmp_path / "whole.jsonl"
    searched(14 / 4, whole, Counted("one"), Counted("two"))
    assert [json.loads(line)["trial"] for line in whole.read_bytes().splitlines()] == trials


def test_a_search_that_is_interrupted_keeps_what_it_found(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    with pytest.raises(KeyboardInterrupt):
        searched(9, path, Counted("one", stops_at=2))
    assert len(path.read_bytes().splitlines()) == 2
    again = Counted("one")
    assert len(searched(1, path, again).verdicts) == 5
    assert [epsilon for epsilon, _, _ in again.asked] == list(EPSILONS[2:5])


def test_no_time_is_no_trial(tmp_path: Path) -> None:
    assert searched(0, tmp_path / "found.jsonl", Counted("one")).verdicts == ()
    assert not (tmp_path / "found.jsonl").exists()


@pytest.mark.parametrize(
    "damage", [b"{", b"[]", b"3", b'{"trial": "x"}', b"\xff\xfe\x00", b'{"trial": "x", "findings": [{"bound": 1}]}']
)
def test_a_damaged_record_is_refused_in_a_sentence(tmp_path: Path, damage: bytes) -> None:
    """Would catch a search that starts anew, or writes on, where it cannot read what was there."""
    path = tmp_path / "found.jsonl"
    searched(1, path, Counted("one"))
    path.write_bytes(path.read_bytes() + damage + b"\n")
    before, one = path.read_bytes(), Counted("one")
    with pytest.raises(DataError, match=r"line 4 of '.*' is no verdict of a search; name another file") as raised:
        searched(1, path, one)
    assert "\n" not in str(raised.value)
    assert path.read_bytes() == before and one.asked == []


def test_a_folder_that_is_not_there_is_said_before_anything_is_tried(tmp_path: Path) -> None:
    one = Counted("one")
    with pytest.raises(DataError, match="there is no folder"):
        searched(1, tmp_path / "no" / "found.jsonl", one)
    assert one.asked == []


def test_later_rounds_try_other_tables_with_more_runs_and_all_rounds_share_one_alpha(tmp_path: Path) -> None:
    """Six rounds of two subjects: the alphas of a round are half of those before, so all rounds stay below 1e-6."""
    counted = [Counted("one"), Counted("two")]
    trials = 6 * 2 * len(EPSILONS)
    report = searched((trials + 0.5) / 4, tmp_path / "found.jsonl", *counted)
    assert len(report.verdicts) == trials
    asked = [each for one in counted for each in one.asked]
    rounds = sorted({effort.seed for _, effort, _ in asked})
    assert rounds == list(range(6))
    spent = [sum(alpha for _, effort, alpha in asked if effort.seed == number) for number in rounds]
    assert all(later == pytest.approx(before / 2) for before, later in pairwise(spent))
    assert 2 * spent[0] <= 1e-6 * (1 + 1e-9)  # a geometric series
    times = [{effort.times for _, effort, _ in asked if effort.seed == number} for number in rounds]
    assert times == [{2.0**number} for number in rounds]
    for number in rounds:
        assert {epsilon for epsilon, effort, _ in asked if effort.seed == number} == set(EPSILONS)


def test_a_later_round_brings_tables_that_the_first_had_not() -> None:
    """Would catch a seed that is passed on and used by nobody."""
    for name in ("count", "hanisch-tree"):
        tables = []
        for seed in (0, 1):
            exact = registry()[name].checks(ONE, Effort(0.01, seed))[0]
            tables.append([enumerated.args[2].to_csv() for _, enumerated in exact.cases])  # the neighbour on the right
        assert tables[0] != tables[1]


def test_a_long_search_tries_everything_honest_and_more() -> None:
    """Would catch two trials of one name, of which a resumed search would skip one."""
    names = [subject.name for subject in _subjects()]
    assert len(set(names)) == len(names)
    honest = {name for name, subject in registry().items() if not subject.must_fail}
    assert honest < set(names)
    assert {"hanisch-tree depth 3", "diffpid3 gini depth 2"} <= set(names)
    assert not any(subject.must_fail for subject in _subjects())
