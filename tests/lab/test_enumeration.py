"""Every outcome with its probability: losses that theory knows are found, and what nobody paid for is infinite.

Losses are computed: nothing is sampled, and a test compares with a formula of its own. One test draws from the real
samplers; its false alarm has probability below 1e-9.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import privet
from privet.errors import DataError, PrivacyError, QuestionError
from privet.kernel import (
    SYSTEM,
    Entropy,
    Exponential,
    ExponentialOverRanges,
    IntegerLaplace,
    NoisyMax,
    PermuteAndFlip,
    Ranges,
    ResidualLaplace,
)
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import enumeration, worst_loss, worst_loss_of_draws
from privet.lab.distributions import probabilities

Run = Callable[[Any, Entropy], Hashable]

ONE = Fraction(1)
NOISE = IntegerLaplace(ONE)
EPSILONS = [Fraction(1, 10), ONE, Fraction(4)]
DOMAIN = Domain(
    (
        Nominal("sex", ("f", "m")),
        Numeric("age", Fraction(0), Fraction(9), Fraction(1)),
        Nominal("y", ("no", "yes")),
    ),
    target="y",
)
ROWS = [("f", 3, "no"), ("m", 8, "yes"), ("f", 0, "yes")]
PERSON = ("m", 9, "no")


def frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["sex", "age", "y"])


def table(rows: Sequence[tuple[Any, ...]]) -> privet.ProtectedTable:
    return privet.open(frame(rows), DOMAIN, budget=10**6)


NEIGHBOURS = frame(ROWS), frame([*ROWS, PERSON])


def chosen(mechanism: Any) -> Callable[[Any, Entropy], int]:
    """A run whose tables are score vectors."""
    return lambda scores, entropy: int(mechanism.release(np.array(scores), entropy))


def pointed(mechanism: ExponentialOverRanges) -> Callable[[Any, Entropy], int]:
    """A run whose tables are (scores, sizes), and which publishes a point of the whole line."""

    def run(ranges: Any, entropy: Entropy) -> int:
        scores, sizes = ranges
        return mechanism.release(Ranges(np.array(scores), sizes), entropy)

    return run


# -- losses that theory knows -----------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_count_loses_exactly_epsilon(epsilon: Fraction) -> None:
    """Would catch probabilities that are not those of the noise, and a side on which nobody looks."""
    left, right = NEIGHBOURS
    for one, other in ((left, right), (right, left)):
        found = worst_loss(lambda asked: int(asked.count(epsilon)), one, other, DOMAIN)
        assert found.loss == pytest.approx(float(epsilon), abs=1e-9)
        assert found.complete


@pytest.mark.parametrize(
    ("ask", "loss"),
    [
        (lambda asked: asked.histogram("sex", "y", epsilon=1).values.tobytes(), 1),
        (lambda asked: float(asked.sum("age", 1)), 1),
        (lambda asked: float(asked.mean("age", 1)), 1),  # half for the sum, half for the count
        (lambda asked: (int(asked.count(1)), int(asked.count(2))), 3),
        (lambda asked: float(asked.sum("age", 1) * 0), 1),  # it is not seen, but it was released
        (lambda asked: "nothing", 0),
    ],
)
def test_questions_lose_what_they_are_charged(ask: Callable[[Any], Hashable], loss: float) -> None:
    """A person at the end of a bound, in one cell: noise on vectors and several questions add up as the ledger says."""
    assert worst_loss(ask, *NEIGHBOURS, DOMAIN).loss == pytest.approx(loss, abs=1e-9)


def test_a_person_in_the_middle_of_a_sum_loses_less() -> None:
    """Would catch a loss that is read from the mechanism and not from the tables: 9 of 9 years lose all, 3 a third."""
    more = frame([*ROWS, ("f", 3, "no")])
    found = worst_loss(lambda asked: float(asked.sum("age", 1)), frame(ROWS), more, DOMAIN)
    assert found.loss == pytest.approx(1 / 3, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("caps", "own", "others"), [((3, 5), [0, 5], None), ((3, 5), [2, 0], None), ((2, 2, 2), [0, 0, 2], [2, 0, 0])]
)
def test_residual_noise_loses_what_the_caps_say(
    epsilon: Fraction, caps: tuple[int, ...], own: list[int], others: list[int] | None
) -> None:
    """Would catch a cap of one class used for another: 5 of 5 lose all, 2 of 3 two thirds, and halves add up."""

    def run(sums: Any, entropy: Entropy) -> Hashable:
        found = ResidualLaplace(epsilon, caps).release(sums, entropy)
        return tuple(part.tobytes() for part in found if part is not None)

    zeros = np.zeros(len(caps), dtype=np.int64)
    left = (zeros, None if others is None else zeros)
    right = (np.array(own), None if others is None else np.array(others))
    share = 2 / 3 if own[0] == 2 else 1
    assert worst_loss_of_draws(run, left, right).loss == pytest.approx(float(epsilon) * share, abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_permute_and_flip_loses_epsilon_where_a_tie_is_broken(epsilon: Fraction) -> None:
    run = chosen(PermuteAndFlip(epsilon, 1, monotone=True))
    found = worst_loss_of_draws(run, (0, 0), (1, 0))
    assert found.loss == pytest.approx(float(epsilon), abs=1e-9)
    assert found.outcomes == (1,)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_scores_that_move_both_ways_cost_twice_where_the_exponent_is_that_of_monotone_ones(epsilon: Fraction) -> None:
    """One score wins a point and the other loses one. Would catch a bench to which both exponents look alike."""
    for monotone, loss in ((True, 2 * epsilon), (False, epsilon)):
        run = chosen(PermuteAndFlip(epsilon, 1, monotone))
        assert worst_loss_of_draws(run, (1, 1), (2, 0)).loss == pytest.approx(float(loss), abs=1e-9)


@pytest.mark.parametrize("rivals", [1, 2, 30])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_exponential_mechanism_comes_close_to_epsilon_with_rivals(epsilon: Fraction, rivals: int) -> None:
    """One candidate of weight 1 against rivals that all win a point; McSherry and Talwar's two factors in one."""
    e = float(epsilon)
    found = worst_loss_of_draws(chosen(Exponential(epsilon, 1, monotone=True)), (0, *[0] * rivals), (0, *[1] * rivals))
    assert found.loss == pytest.approx(math.log((1 + rivals * math.exp(e)) / (1 + rivals)), abs=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_noisy_maximum_loses_what_a_sum_over_its_noise_says(epsilon: Fraction) -> None:
    """The first of two wins where its noise is not below that of the other, less its lead."""
    e, reach = float(epsilon), 400
    noise = [math.tanh(e / 2) * math.exp(-e * abs(k)) for k in range(-reach, reach + 1)]

    def second(lead: int) -> float:
        below = np.concatenate([[0.0], np.cumsum(noise)])  # the noise of the first lies below k - lead
        return sum(chance * below[max(0, k - lead)] for k, chance in enumerate(noise))

    found = worst_loss_of_draws(chosen(NoisyMax(epsilon, 1, monotone=True)), (0, 0), (1, 0))
    assert found.loss == pytest.approx(math.log(second(0) / second(1)), rel=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_record_that_cuts_a_range_is_followed_to_both_parts(epsilon: Fraction) -> None:
    """Ten points of one score become four that lose a point and six that win one; an outcome is a place on the line."""
    half = float(epsilon) / 2
    total = 4 * math.exp(-half) + 6 * math.exp(half)
    losses = [abs(math.log(math.exp(side * half) / total * 10)) for side in (-1, 1)]
    for left, right in ((([0], [10]), ([-1, 1], [4, 6])), (([-1, 1], [4, 6]), ([0], [10]))):
        found = worst_loss_of_draws(pointed(ExponentialOverRanges(epsilon, 1, monotone=False)), left, right)
        assert found.loss == pytest.approx(max(losses), abs=1e-9)
        assert found.complete


def test_a_median_loses_no_more_than_it_says_and_something() -> None:
    """Through the table: neighbours cut the line of values elsewhere."""
    for rows, person in ((ROWS, PERSON), ([("f", 5, "no")], ("f", 9, "no")), ([], PERSON)):
        more = frame([*rows, person])
        found = worst_loss(lambda asked: float(asked.median("age", 1)), frame(rows), more, DOMAIN)
        assert 0.1 < found.loss <= 1 + 1e-9


def test_what_follows_a_choice_is_run_for_every_choice() -> None:
    """A count that only the second choice leads to. Would catch runs that are followed to their first outcome alone."""

    def run(scores_and_count: Any, entropy: Entropy) -> Hashable:
        scores, count = scores_and_count
        index = PermuteAndFlip(ONE, 1, monotone=True).release(np.array(scores), entropy)
        return index, int(NOISE.release(np.array([count]), entropy)[0]) if index == 1 else None

    found = worst_loss_of_draws(run, ((0, 0), 0), ((1, 0), 1))
    assert found.loss == pytest.approx(2, abs=1e-9)
    assert found.outcomes[0] == 1 and len(found.outcomes) == 2
    assert (found.tried, found.complete) == (10, True)  # on each table one choice alone, one with four noises


# -- what nobody paid for ---------------------------------------------------------------------


def their_number(rows: list[int], entropy: Entropy) -> Hashable:
    return len(rows)


def unpaid_length(rows: list[int], entropy: Entropy) -> Hashable:
    return int(NOISE.release(np.array([0]), entropy)[0]), len(rows)


def one_release_a_row(rows: list[int], entropy: Entropy) -> Hashable:
    return tuple(int(NOISE.release(np.array([0]), entropy)[0]) for _ in rows)


def longer_with_every_row(rows: list[int], entropy: Entropy) -> Hashable:
    return NOISE.release(np.zeros(len(rows), dtype=np.int64), entropy).tobytes()


def one_candidate_a_row(rows: list[int], entropy: Entropy) -> Hashable:
    return PermuteAndFlip(ONE, 1, monotone=True).release(np.zeros(len(rows), dtype=np.int64), entropy)


def one_point_a_row(rows: list[int], entropy: Entropy) -> Hashable:
    return ExponentialOverRanges(ONE, 1, monotone=True).release(
        Ranges(np.zeros(1, dtype=np.int64), [len(rows)]), entropy
    )


def noise_or_a_choice(rows: list[int], entropy: Entropy) -> Hashable:
    return one_candidate_a_row([0, 0], entropy) if len(rows) > 2 else int(NOISE.release(np.array([0]), entropy)[0])


@pytest.mark.parametrize(
    "run",
    [
        their_number,
        unpaid_length,
        one_release_a_row,
        longer_with_every_row,
        one_candidate_a_row,
        one_point_a_row,
        noise_or_a_choice,
    ],
)
def test_what_no_mechanism_released_is_an_infinite_loss(run: Run) -> None:
    """Would catch a bench that sees only what mechanisms say: the number of rows comes out beside them."""
    for left, right in (([7, 7], [7, 7, 7]), ([7, 7, 7], [7, 7])):
        assert worst_loss_of_draws(run, left, right).loss == math.inf


def test_a_release_that_ignores_the_table_loses_nothing() -> None:
    """Would catch an infinity for runs that publish the same whatever the rows are."""
    assert worst_loss_of_draws(lambda rows, entropy: one_release_a_row([0, 0], entropy), [7], [7, 7]).loss == 0


# -- probabilities ----------------------------------------------------------------------------


def every_outcome(run: Run, of: Any) -> dict[Hashable, float]:
    """What a run publishes for every outcome of its mechanisms, with the probability that the script computes."""
    found: Counter[Hashable] = Counter()
    play = enumeration._on_values(run, of)
    steps: list[int] | None = []
    while steps is not None:
        script = enumeration._Script(steps)
        published = play(script)
        found[published] += math.exp(script.log_probability)  # type: ignore[assignment]
        steps = enumeration._following(steps, script.options)
    return dict(found)


def two_choices(scores: Any, entropy: Entropy) -> Hashable:
    """The second choice is among what the first left."""
    first = int(PermuteAndFlip(ONE, 1, monotone=True).release(np.array(scores), entropy))
    left = [score for place, score in enumerate(scores) if place != first]
    second = int(NoisyMax(ONE, 1, monotone=True).release(np.array(left), entropy))
    return first, second


RUNS: dict[str, tuple[Run, Any]] = {
    "permute-and-flip": (chosen(PermuteAndFlip(ONE, 1, monotone=True)), (3, 2, 0)),
    "exponential": (chosen(Exponential(ONE, 1, monotone=False)), (3, 2, 0)),
    "noisy-max": (chosen(NoisyMax(ONE, 1, monotone=True)), (3, 2, 0)),
    "one after another": (two_choices, (2, 1, 1)),
}


@pytest.mark.parametrize("name", RUNS)
def test_enumerated_probabilities_are_those_of_the_sampler(name: str) -> None:
    """n = 4,000. They sum to 1, and each outcome is seen as often as they say: a false alarm has probability 1e-9.

    Would catch a script that describes another mechanism than the one that draws, here by 0.06 in a probability.
    """
    run, of = RUNS[name]
    chances = every_outcome(run, of)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    n, alpha = 4_000, 1e-9 / len(chances)
    seen = Counter(run(of, SYSTEM) for _ in range(n))
    assert set(seen) <= set(chances)
    for outcome, chance in chances.items():
        low, high = binom.ppf(alpha / 2, n, chance), binom.isf(alpha / 2, n, chance)
        assert low <= seen[outcome] <= high, f"{outcome}: {seen[outcome]} of {n}, not {chance:.3f}"
        assert (high - low) / n < 0.12


def test_a_place_in_a_range_is_as_probable_as_the_range_says() -> None:
    """Only the ends of a range are tried, each with the chance of one point; three points have one more between."""
    mechanism = ExponentialOverRanges(ONE, 1, monotone=True)
    scores, sizes = [0, 1, 0], [2, 1, 3]
    chances = every_outcome(pointed(mechanism), (scores, sizes))
    total = 5 + math.e
    expected = {0: 1 / total, 1: 1 / total, 2: math.e / total, 3: 1 / total, 5: 1 / total}
    assert chances == pytest.approx(expected)


# -- nothing that is made here is private -----------------------------------------------------


def test_nothing_made_in_a_script_says_that_it_is_private() -> None:
    """Would catch a release that carries numbers of a script out into the world as private."""
    seen = []

    def run(asked: Any) -> Hashable:
        release = asked.count(1)
        seen.append((release.private, asked.select("max", 1).private, asked.monitor(0.5, 1).private))
        return int(release)

    worst_loss(run, *NEIGHBOURS, DOMAIN)
    assert set(seen) == {(False, False, False)}
    assert table(ROWS).count(1).private


def test_a_script_decides_for_no_other_table() -> None:
    """Would catch a script that reaches tables which were not opened for it: theirs is noise as everywhere."""
    before = table(ROWS)
    noisy: list[Any] = []

    def run(asked: Any) -> Hashable:
        noisy.extend([before.count("0.001"), table(ROWS).count("0.001")])
        thread = threading.Thread(target=lambda: noisy.append(before.count("0.001")))
        thread.start()
        thread.join()
        noisy.extend(IntegerLaplace(Fraction(1, 1000)).release(np.zeros(3, dtype=int)).tolist())
        return int(asked.count(1))

    assert worst_loss(run, *NEIGHBOURS, DOMAIN, limit=8).loss == pytest.approx(1)
    assert all(each.private for each in noisy if not isinstance(each, int))
    assert len({int(each) for each in noisy}) > len(noisy) // 2  # false alarm below 1e-20


@pytest.mark.parametrize("fails", [False, True])
def test_a_table_of_a_script_answers_no_longer_when_the_run_is_over(fails: bool) -> None:
    """Nothing is there that could draw for it: neither a script nor entropy."""
    kept: list[Any] = []

    def run(asked: Any) -> Hashable:
        kept.append(asked)
        asked.count(1)
        if fails:
            raise RuntimeError("the run failed")
        return 0

    with pytest.raises(RuntimeError, match="the run failed") if fails else nullcontext():
        worst_loss(run, *NEIGHBOURS, DOMAIN, limit=2)
    with pytest.raises(DataError, match="was closed"):
        kept[0].count(1)
    with pytest.raises(PrivacyError, match="that is over"):
        NOISE.release(np.array([7]), kept[0]._session.entropy)


# -- how many outcomes ------------------------------------------------------------------------


def test_a_limit_is_kept_and_said() -> None:
    """Would catch a bound over some outcomes that is sold as one over all."""
    run = chosen(PermuteAndFlip(ONE, 1, monotone=True))
    whole = worst_loss_of_draws(run, (0, 0, 0), (1, 0, 0))
    assert (whole.tried, whole.complete) == (6, True)  # three outcomes on either table
    exactly = worst_loss_of_draws(run, (0, 0, 0), (1, 0, 0), limit=6)
    assert (exactly.tried, exactly.complete) == (6, True)
    some = worst_loss_of_draws(run, (0, 0, 0), (1, 0, 0), limit=2)
    assert (some.tried, some.complete) == (2, False)
    assert some.loss <= whole.loss
    none = worst_loss_of_draws(run, (0, 0, 0), (1, 0, 0), limit=0)
    assert (none.tried, none.complete, none.outcomes) == (0, False, ())


def test_a_limit_leaves_no_release_at_its_first_outcome() -> None:
    """A choice, then six counts: 8192 outcomes, and the loss is in the second choice. Would catch outcomes that are
    tried in order up to the limit, so that what was released first never changes.
    """

    def run(scores: Any, entropy: Entropy) -> Hashable:
        index = PermuteAndFlip(ONE, 1, monotone=True).release(np.array(scores), entropy)
        return index, tuple(int(NOISE.release(np.array([0]), entropy)[0]) for _ in range(6))

    found = worst_loss_of_draws(run, (0, 0), (1, 0), limit=100)
    assert found.loss == pytest.approx(1, abs=1e-9)
    assert (found.tried, found.complete) == (100, False)


def test_the_outcomes_that_are_shown_have_the_loss() -> None:
    """Would catch a report that shows another event than the one its bound is about."""
    mechanism = Exponential(ONE, 1, monotone=True)
    found = worst_loss_of_draws(chosen(mechanism), (0, 3, 1), (1, 3, 2))
    (index,) = found.outcomes
    one, other = (probabilities(mechanism, scores)[index] for scores in ((0, 3, 1), (1, 3, 2)))
    assert found.loss == pytest.approx(abs(math.log(one / other)))


def test_only_frames_are_enumerated(tmp_path: Path) -> None:
    """Would give away exact counts: an outcome of a script is an exact value plus a known number."""
    rows = frame(ROWS)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    open_already = table(ROWS)
    for other in (open_already, open_already.where(sex="f"), open_already.parts(), tmp_path / "rows.csv", 7):
        for pair in ((other, rows), (rows, other)):
            with pytest.raises((QuestionError, DataError), match=r"cannot open a|pass them as a frame"):
                worst_loss(lambda asked: int(asked.count(1)), *pair, DOMAIN)
    assert open_already.budget.entries == []
