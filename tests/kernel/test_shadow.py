"""Races of private runs: what the winner loses, what the others leave behind, and what a run can do.

Losses are computed from the probabilities of one run. The loop itself is held to the same probabilities, with real
coins, in `statistical/test_racing.py`.
"""

from __future__ import annotations

import gc
import itertools
import math
import pickle
import traceback
import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel import AdditiveModel, IntegerLaplace, Raced, SystemEntropy, race
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab import open_public, worst_loss
from privet.release import Public

LARGE = 10**6
DOMAIN = Domain((Nominal("a", ("0", "1")), Nominal("y", ("no", "yes"))), target="y")
FRAME = pd.DataFrame({"a": ["0"] * 60 + ["1"] * 40, "y": ["no", "yes"] * 50})


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=LARGE)


def counted(shadow: Any) -> tuple[Any, Any]:
    count = shadow.where(a="0").count(1)
    return count, count


# -- what is lost ---------------------------------------------------------------------------------
#
# One run is a list of chances, of outcomes in rising order of score; `ties` says which outcomes score the same.


def best_of(chances: Sequence[float], ties: Sequence[int], stop: float) -> list[float]:
    """The probability of each outcome of a race, by the formula of its proof."""
    found = []
    for chance, rank in zip(chances, ties, strict=True):
        worse = sum(each for each, other in zip(chances, ties, strict=True) if other < rank)
        same = sum(each for each, other in zip(chances, ties, strict=True) if other == rank)
        factors = (stop + (1 - stop) * (1 - worse)) * (stop + (1 - stop) * (1 - worse - same))
        found.append(stop * chance / factors)
    return found


def first_to_reach(chances: Sequence[float], reaching: int, stop: float) -> list[float]:
    """The same with a target that the last `reaching` outcomes reach; last, the probability of None."""
    reached = sum(chances[len(chances) - reaching :])
    total = stop + (1 - stop) * reached
    return [each / total for each in chances[len(chances) - reaching :]] + [stop * (1 - reached) / total]


def by_hand(chances: Sequence[float], ties: Sequence[int], stop: float, target: int | None) -> dict[Any, float]:
    """Every sequence of up to 7 runs, played as the rules say; what is left over has not stopped yet."""
    found: dict[Any, float] = {}
    for length in range(1, 8):
        for runs in itertools.product(range(len(chances)), repeat=length):
            chance = math.prod(chances[each] for each in runs) * (1 - stop) ** (length - 1)
            if target is None:
                best = max(runs, key=lambda each: ties[each])  # of equals the first
                found[best] = found.get(best, 0) + chance * stop
            elif all(ties[each] < target for each in runs[:-1]):
                reached = ties[runs[-1]] >= target
                outcome = runs[-1] if reached else None
                found[outcome] = found.get(outcome, 0) + chance * (1 if reached else stop)
    return found


@pytest.mark.parametrize("ties", [(0, 1, 2, 3), (0, 1, 1, 2), (0, 0, 1, 1)])
def test_the_formulas_of_the_proof_are_sums_over_all_courses_of_a_race(ties: tuple[int, ...]) -> None:
    chances, stop = [0.4, 0.1, 0.2, 0.3], 0.9  # after seven runs 1e-7 is left
    found = by_hand(chances, ties, stop, None)
    assert [found[each] for each in range(4)] == pytest.approx(best_of(chances, ties, stop), abs=1e-6)
    target = ties[2]
    reaching = sum(each >= target for each in ties)
    found = by_hand(chances, ties, stop, target)
    wanted = first_to_reach(chances, reaching, stop)
    assert [found[each] for each in (*range(4 - reaching, 4), None)] == pytest.approx(wanted, abs=1e-6)
    assert sum(wanted) == pytest.approx(1) == sum(best_of(chances, ties, stop))


def neighbours(rng: np.random.Generator, epsilon: float, size: int) -> tuple[list[float], list[float]]:
    """Chances of one run, and what a neighbour may make of them: no event, and so no outcome, beyond exp(epsilon)."""
    one = rng.dirichlet(rng.choice([0.1, 1, 5], size))
    # up for some outcomes, down for the others, as far as both may go and the sum allows
    up = rng.random(size) < 0.5
    rise, fall = math.expm1(epsilon) * one[up].sum(), -math.expm1(-epsilon) * one[~up].sum()
    moved = min(rise, fall)
    other = one.copy()
    other[up] *= 1 + math.expm1(epsilon) * moved / max(rise, 1e-300)
    other[~up] *= 1 + math.expm1(-epsilon) * moved / max(fall, 1e-300)
    assert other.sum() == pytest.approx(1)
    return one.tolist(), other.tolist()


def loss(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True) if a > 1e-290 and b > 1e-290)


# A rare outcome that becomes more likely while all better ones, not so rare, become less likely.
RARE = ([0.9, 1e-9, 0.1 - 1e-9], lambda e: [1 - 0.1 / math.exp(e), 1e-9 * math.exp(e), 0.1 / math.exp(e) - 1e-9])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("stop", [0.001, 0.25, 0.9])
def test_no_neighbour_makes_an_outcome_likelier_than_is_charged(epsilon: float, stop: float) -> None:
    """2,000 random runs of 2 to 5 outcomes, with ties, and neighbours at the edge of what a run may lose."""
    rng = np.random.default_rng(0)
    worst = {"best": 0.0, "target": 0.0}
    for _ in range(2_000):
        size = int(rng.integers(2, 6))
        one, other = neighbours(rng, epsilon, size)
        assert loss(one, other) <= epsilon * (1 + 1e-9)
        ties = np.sort(rng.integers(0, size, size)).tolist()
        found = loss(best_of(one, ties, stop), best_of(other, ties, stop))
        worst["best"] = max(worst["best"], found)
        reaching = int(rng.integers(1, size))
        found = loss(first_to_reach(one, reaching, stop), first_to_reach(other, reaching, stop))
        worst["target"] = max(worst["target"], found)
    assert epsilon < worst["best"] <= 3 * epsilon * (1 + 1e-9)
    assert worst["target"] <= 2 * epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_less_than_three_and_two_epsilons_would_be_too_little(epsilon: float) -> None:
    """Of neighbours that show it: with few stops the loss is all but three times, and twice, that of a run."""
    one, move = RARE
    other = move(epsilon)
    assert loss(one, other) == pytest.approx(epsilon, rel=1e-6)
    lost = loss(best_of(one, (0, 1, 2), 0.001), best_of(other, (0, 1, 2), 0.001))
    assert 2.9 * epsilon < lost <= 3 * epsilon
    # an outcome that reaches the target becomes rarer while the others that do become more likely
    lost = loss(first_to_reach(one, 2, 0.001), first_to_reach(other, 2, 0.001))
    assert 1.9 * epsilon < lost <= 2 * epsilon


def test_a_run_that_raises_is_an_outcome_that_is_covered() -> None:
    """It ends the race at once, so that all others are returned before it and never after it."""
    rng = np.random.default_rng(1)
    for stop, epsilon in itertools.product((0.001, 0.25), (0.1, 1.0)):
        for _ in range(500):
            one, other = neighbours(rng, epsilon, 4)  # the last outcome is an error
            found = []
            for raised, *chances in ((each[-1], *each[:-1]) for each in (one, other)):
                upto = np.concatenate([[0], np.cumsum(chances)])
                best = stop * upto / (1 - (1 - stop) * upto)
                found.append([*np.diff(best).tolist(), raised / (stop + (1 - stop) * raised)])
            assert sum(found[0]) == pytest.approx(1)
            assert loss(*found) <= 3 * epsilon * (1 + 1e-9)


# -- the course of a race -------------------------------------------------------------------------


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[tuple[int, bool]]], None]:
    """Decide which candidate runs and whether the race then stops."""

    def decide(rounds: Sequence[tuple[int, bool]]) -> None:
        drawn = itertools.chain.from_iterable((index, 0 if stops else 3) for index, stops in rounds)
        monkeypatch.setattr(SystemEntropy, "below", lambda self, bound: next(drawn))

    return decide


def scored(*scores: float) -> list[Callable[[Any], tuple[str, Public]]]:
    """Candidates whose runs have these scores, one after the other."""
    return [lambda shadow, score=score: (f"run with {score}", Public(score)) for score in scores]


@pytest.mark.parametrize(
    ("rounds", "winner"),
    [
        ([(0, True)], 0),
        ([(0, False), (1, True)], 1),
        ([(1, False), (0, True)], 1),
        ([(1, False), (2, False), (0, True)], 1),  # of equals the first
        ([(2, False), (1, True)], 2),
        ([(0, False), (0, False), (3, False), (1, True)], 3),
    ],
)
def test_the_best_run_up_to_the_stop_wins(
    table: privet.ProtectedTable, coins: Any, rounds: list[tuple[int, bool]], winner: int
) -> None:
    coins(rounds)
    won = race(table, scored(1, 5, 5.0, 7), 1)
    assert won.index == winner and won.score.value == (1, 5, 5.0, 7)[winner]
    assert won.output == f"run with {(1, 5, 5.0, 7)[winner]}"
    assert won.epsilon == 3


@pytest.mark.parametrize(
    ("rounds", "winner"),
    [
        ([(1, False)], 1),  # exactly the target is enough, and no coin is tossed
        ([(0, False), (3, False)], 3),
        ([(0, False), (0, True)], None),
        ([(0, True)], None),
    ],
)
def test_the_first_run_to_reach_a_target_wins(
    table: privet.ProtectedTable, coins: Any, rounds: list[tuple[int, bool]], winner: int | None
) -> None:
    coins(rounds)
    won = race(table, scored(1, 5, 6, 7), 1, target=5)
    assert (None if won is None else won.index) == winner
    assert table.budget.spent == 2


def test_scores_are_compared_exactly(table: privet.ProtectedTable, coins: Any) -> None:
    """Would catch numbers that become equal as floats, and so an order that is none."""
    coins([(0, False), (1, False), (2, True)])
    assert race(table, scored(2**60, 2**60 + 1, float(2**60)), 1).index == 1  # type: ignore[arg-type]


def test_a_race_finds_the_better_candidate(table: privet.ProtectedTable) -> None:
    """A wrong winner has a probability below 1e-40: ten rows below the target, at epsilon 10."""
    candidates = [lambda shadow, a=a: (a, shadow.where(a=a).count(10)) for a in ("1", "0")]
    for _ in range(4):
        won = race(table, candidates, 10, stop="0.01", target=50)
        assert won is None or (won.output, won.index) == ("0", 1)
    assert table.budget.spent == 80


# -- what it costs --------------------------------------------------------------------------------


def test_one_entry_is_written_before_the_first_run_and_none_for_the_runs(tmp_path: Path) -> None:
    with privet.open(FRAME, DOMAIN, budget=7, ledger=tmp_path / "ledger") as table:
        seen = []

        def run(shadow: Any) -> tuple[Any, Any]:
            seen.append((table.budget.spent, len(table.budget.entries)))
            return counted(shadow)

        race(table, [run], 1)
        race(table, [run], 2, target=-(10**6))
        assert set(seen) == {(3, 1), (7, 2)}
        stored = '{"answer":["begun"],"private":true}'
        assert [(each.question, each.loss, each.answer) for each in table.budget.entries] == [
            ("race(1 candidates)", 3, stored),
            ("race(1 candidates)", 4, stored),
        ]


def test_a_race_beyond_the_budget_is_refused_before_any_run() -> None:
    table = privet.open(FRAME, DOMAIN, budget=2)
    ran: list[object] = []
    for where in (table, table.allot(1).where(a="0")):
        with pytest.raises(BudgetExceeded):
            race(where, [ran.append], 1)  # type: ignore[list-item]
    assert not ran and table.budget.spent == 0
    race(table, [counted], 1, target=-(10**6))
    assert table.budget.remaining == 0


def test_parts_share_what_races_cost() -> None:
    table = privet.open(FRAME, DOMAIN, budget=3)
    for part in table.partition("a"):
        race(part, [counted_all], 1)
    assert table.budget.remaining == 0


def counted_all(shadow: Any) -> tuple[Any, Any]:
    count = shadow.count(1)
    return count, count


# -- what a run gets ------------------------------------------------------------------------------


def test_a_run_sees_the_same_rows_and_has_epsilon_to_spend(table: privet.ProtectedTable) -> None:
    seen = []

    def run(shadow: Any) -> tuple[Any, Any]:
        assert shadow.domain is table.domain and shadow.budget.entries == []
        seen.append((shadow.budget.remaining, shadow.count(200)))
        with pytest.raises(BudgetExceeded):
            shadow.count("0.1")
        with pytest.raises(BudgetExceeded):
            shadow.partition("a").count("0.1")
        return seen[-1], seen[-1][1]

    race(table.where(a="0"), [run], 200)
    race(table.partition("a")["1"], [run], 200, target=0)
    assert set(seen) == {(200, 60), (200, 40)}


def test_a_run_has_its_whole_budget_whatever_the_runs_before_it_spent(table: privet.ProtectedTable, coins: Any) -> None:
    coins([(0, False), (1, False), (0, True)])
    left = []

    def run(shadow: Any) -> tuple[Any, Any]:
        left.append(shadow.budget.remaining)
        shadow.count(1, key="the same key")
        return None, shadow.count(1)

    race(table, [run, run], 2)
    assert left == [2, 2, 2]


def test_people_with_several_rows_get_more_noise() -> None:
    domain = Domain(DOMAIN.columns, target="y", rows_per_person=4)
    table = privet.open(FRAME, domain, budget=3)
    won = race(table, [counted], 1)
    assert won.output.noise == IntegerLaplace(Fraction(1, 4))
    assert table.budget.remaining == 0


def test_releases_of_a_run_name_no_entry_and_cannot_be_refined(table: privet.ProtectedTable) -> None:
    """The entries of a run are in a ledger that is gone, and the winner of a race is no first answer."""
    won = race(table, [counted], 2)
    assert (won.output.epsilon, won.output.private, won.output.about.entry) == (1, True, None)
    with pytest.raises(PrivetError):
        won.output.refine(2)


def test_a_run_that_wants_more_than_its_budget_ends_the_race_with_that_refusal(table: privet.ProtectedTable) -> None:
    with pytest.raises(BudgetExceeded, match="has 1 left of 1") as caught:
        race(table, [lambda shadow: (0, shadow.count(2))], 1)
    assert caught.value.requested == 2
    assert table.budget.spent == 3


def test_a_run_may_hold_a_race_of_its_own(table: privet.ProtectedTable) -> None:
    def run(shadow: Any) -> tuple[Any, Any]:
        won = race(shadow, [counted], 1)
        assert shadow.budget.remaining == 0
        return won.output, won.score

    assert race(table, [run], 3).epsilon == table.budget.spent == 9


def test_a_run_may_fit_a_model_and_score_it(table: privet.ProtectedTable) -> None:
    """What races are for: each candidate learns something, and pays for its score out of the same epsilon."""

    def run(shadow: Any) -> tuple[AdditiveModel, Any]:
        model = AdditiveModel((1, 0)) if shadow.majority("y", 50) == "no" else AdditiveModel((0, 1))
        return model, shadow.count_correct(model, 50)

    won = race(table, [run], 100)
    assert won.score == 50


def test_on_public_rows_nothing_says_that_it_is_private() -> None:
    won = race(open_public(FRAME, DOMAIN), [counted], 1)
    assert not won.output.private


def test_seeded_coins_and_noise_repeat() -> None:
    found = []
    for seed in (1, 1, 2, 3, 4):
        with privet.testing.seeded_noise(seed):
            won = race(privet.open(FRAME, DOMAIN, budget=LARGE), [counted] * 1000, 1)
            found.append((won.index, int(won.output), won.output.private))
    assert found[0] == found[1] and len(set(found)) == 4
    assert not any(private for _, _, private in found)


def test_a_race_cannot_be_enumerated() -> None:
    with pytest.raises(PrivacyError, match="cannot be enumerated"):
        worst_loss(lambda each: race(each, [counted], 1).index, FRAME, FRAME, DOMAIN)


# -- attacks: the runs that did not win -------------------------------------------------------------


class Output:
    """Something that can be seen to be gone."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_nothing_refers_to_a_run_that_did_not_win(table: privet.ProtectedTable, coins: Any) -> None:
    coins([(0, False), (2, False), (1, False), (0, True)])
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    def runs(name: str, score: int) -> Callable[[Any], tuple[Any, Any]]:
        def run(shadow: Any) -> tuple[Any, Any]:
            output = Output(name)
            alive.add(output)
            alive.add(shadow)
            shadow.count(1)
            return output, Public(score, origin="this test")

        return run

    won = race(table, [runs("worst", 1), runs("best", 3), runs("middle", 2)], 1)
    gc.collect()
    assert won.output.name == "best"
    assert [each.name for each in alive if isinstance(each, Output)] == ["best"]
    assert not [each for each in alive if not isinstance(each, Output)]


def test_runs_that_did_not_win_are_in_no_file_text_or_pickle(tmp_path: Path, coins: Any) -> None:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=3) as table:
        coins([(0, False), (1, True)])
        won = race(table, [lambda shadow: ("LOSER", Public(271828, origin="this test")), *scored(10**9)], 1)
        texts = [repr(won), repr(table), repr(table.budget.entries), pickle.dumps(won).decode("latin-1")]
    for path in tmp_path.iterdir():
        texts.append(path.read_bytes().decode("latin-1"))
    assert won.index == 1
    assert not [text for text in texts if "LOSER" in text or "271828" in text]
    assert Raced.__dataclass_fields__.keys() == {"index", "output", "score", "epsilon"}  # no number of runs


@pytest.mark.parametrize("source", ["memory", "csv"])
def test_a_table_that_a_run_keeps_gives_no_answers_after_it(source: str, tmp_path: Path) -> None:
    """It had budget left, so that only the end of the run stands in the way."""
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    kept: list[Any] = []

    def run(shadow: Any) -> tuple[Any, Any]:
        count = shadow.count("0.1")
        parts = shadow.partition("a")
        kept.append((shadow, parts, shadow.allot(1), shadow.monitor(0.5, "0.1"), count, parts.count("0.1")))
        return shadow, count

    with privet.open(FRAME if source == "memory" else tmp_path / "people.csv", DOMAIN, budget=LARGE) as table:
        won = race(table, [run], 10)
        for shadow, parts, allotted, monitor, count, counts in kept:
            asks: list[Callable[[], Any]] = [
                lambda shadow=shadow: shadow.count(1),
                lambda shadow=shadow: shadow.count("0.1", key="k"),
                lambda shadow=shadow: shadow.count_correct(AdditiveModel((0, 0)), 1),
                lambda shadow=shadow: race(shadow, [counted], 1),
                lambda parts=parts: parts.histogram("y", epsilon=1),
                lambda allotted=allotted: allotted.where(a="0").count(1),
                lambda monitor=monitor: monitor.reached(AdditiveModel((0, 0))),
                lambda won=won: won.output.count(1),
            ]
            for ask in asks:
                with pytest.raises(DataError, match="was closed"):
                    ask()
            for release in (count, counts):
                with pytest.raises(PrivetError):
                    release.refine(5)
        assert table.budget.spent == 30
        assert table.count(1000) == 100  # the table itself is as open as before


def test_a_run_that_closes_its_table_closes_no_other(table: privet.ProtectedTable) -> None:
    def run(shadow: Any) -> tuple[Any, Any]:
        count = shadow.count(1)
        with shadow:
            pass
        with pytest.raises(DataError):
            shadow.count(1)
        return count, count

    race(table, [run], 10)
    assert table.count(1000) == 100


def test_an_error_of_a_run_comes_without_its_words_and_without_the_runs_before_it(
    table: privet.ProtectedTable, coins: Any
) -> None:
    coins([(1, False), (0, False)])

    def fails(shadow: Any) -> Any:
        secret = shadow.count(1)
        raise RuntimeError(f"CANARY {int(secret)}")

    with pytest.raises(
        EngineFailed, match=r"a candidate of the race failed; the charge of the race stands\."
    ) as caught:
        race(table, [fails, *scored(31415926)], 1)
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None
    frames = list(traceback.walk_tb(error.__traceback__))
    assert "CANARY" not in "".join(traceback.format_exception(error))
    assert not [frame for frame, _ in frames if "31415926" in repr(frame.f_locals) and frame.f_code.co_name == "_run"]
    assert {frame.f_code.co_name for frame, _ in frames} == {
        "test_an_error_of_a_run_comes_without_its_words_and_without_the_runs_before_it",
        "race",
    }
    assert table.budget.spent == 3


def test_an_error_of_privet_is_raised_as_it_is(table: privet.ProtectedTable) -> None:
    def asks(shadow: Any) -> Any:
        try:
            raise ValueError("CANARY")
        except ValueError:
            shadow.histogram("zip", epsilon=1)

    with pytest.raises(UndeclaredDomain, match="'zip' has no declared domain") as caught:
        race(table, [asks], 1)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert table.budget.spent == 3


def test_an_interrupt_passes_and_closes_the_table_of_the_run(table: privet.ProtectedTable) -> None:
    kept: list[Any] = []

    def stopped(shadow: Any) -> Any:
        kept.append(shadow)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race(table, [stopped], 1)
    with pytest.raises(DataError):
        kept[0].count(1)
    assert table.budget.spent == 3


# -- scores that are none ---------------------------------------------------------------------------

BAD_RUNS: dict[str, tuple[Callable[[Any], Any], type[PrivetError]]] = {
    "a bare number": (lambda shadow: (0, 0.9), PrivacyError),
    "a number made of a release without map": (lambda shadow: (0, shadow.count(1) + 1), PrivacyError),
    "no score": (lambda shadow: shadow.count(1), QuestionError),
    "nothing": (lambda shadow: None, QuestionError),
    "a text": (lambda shadow: (0, shadow.majority("y", 1)), QuestionError),
    "a table of numbers": (lambda shadow: (0, shadow.histogram("y", epsilon=1)), QuestionError),
    "not a number": (lambda shadow: (0, Public(math.nan, origin="this test")), QuestionError),
    "an infinity": (lambda shadow: (0, Public(math.inf, origin="this test")), QuestionError),
    "yes or no": (lambda shadow: (0, Public(True, origin="this test")), QuestionError),
    "a number made by unknown code": (lambda shadow: (0, shadow.count(1).map(lambda n: 3)), PrivacyError),
}


@pytest.mark.parametrize("bad", BAD_RUNS)
def test_a_score_is_a_finite_number_made_of_releases(table: privet.ProtectedTable, bad: str) -> None:
    """An order needs numbers that can be compared, and a score that is no release may come from anywhere."""
    run, kind = BAD_RUNS[bad]
    with pytest.raises(kind) as caught:
        race(table, [run], 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make", [int, float, Fraction, np.int64, np.float64, np.float32], ids=lambda each: each.__name__
)
def test_a_score_may_be_any_number(table: privet.ProtectedTable, make: Callable[[int], Any]) -> None:
    assert race(table, [lambda shadow: (0, Public(make(3), origin="this test"))], 1).epsilon == 3


# -- questions that are refused ---------------------------------------------------------------------

WRONG: dict[str, Callable[[Any], Any]] = {
    "no table": lambda table: race(FRAME, [counted], 1),  # type: ignore[call-overload]
    "parts": lambda table: race(table.partition("a"), [counted], 1),
    "no candidate": lambda table: race(table, [], 1),
    "one function": lambda table: race(table, counted, 1),  # type: ignore[call-overload]
    "texts": lambda table: race(table, ["counted"], 1),  # type: ignore[list-item]
    "a text": lambda table: race(table, "counted", 1),  # type: ignore[arg-type]
    "a mapping": lambda table: race(table, {"a": counted}, 1),  # type: ignore[call-overload]
    "no epsilon": lambda table: race(table, [counted], 0),
    "never stops": lambda table: race(table, [counted], 1, stop=0),
    "always stops": lambda table: race(table, [counted], 1, stop=1),
    "hardly stops": lambda table: race(table, [counted], 1, stop="0.0001"),
    "a coin that is none": lambda table: race(table, [counted], 1, stop="often"),
    "a target that is none": lambda table: race(table, [counted], 1, target="high"),  # type: ignore[call-overload]
    "an infinite target": lambda table: race(table, [counted], 1, target=math.inf),
    "a target that is no number": lambda table: race(table, [counted], 1, target=math.nan),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_race_is_refused_in_a_sentence_and_not_charged(table: privet.ProtectedTable, wrong: str) -> None:
    with pytest.raises(QuestionError, match=r"\.$") as caught:
        WRONG[wrong](table)
    assert "\n" not in str(caught.value)
    assert table.budget.entries == []


def test_a_closed_table_holds_no_race(table: privet.ProtectedTable) -> None:
    table.close()
    with pytest.raises(DataError, match="was closed"):
        race(table, [counted], 1)
