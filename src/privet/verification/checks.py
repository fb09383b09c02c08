"""Three ways to hold a claim against runs: neighbours, canaries, and every outcome there is.

Each is a `Check`: given the claim and the probability with which it may be wrong, it
returns the loss it can prove.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.lab import WorstLoss
from privet.verification.bounds import detectable_guesses, detectable_rarity, loss_at_least
from privet.verification.events import Guess, Observations, choose
from privet.verification.verdict import Finding

RAISED = "raised"  # the column that says which error a run ended with
PILOT_ALPHA = 0.05  # of bounds by which a pair is chosen; no verdict depends on it

Sampler = Callable[[int], Observations]  # that many runs, a row for each


class Check(ABC):
    """One way to look for a loss."""

    sampled: ClassVar[bool] = True  # False: it computes probabilities and cannot be wrong by chance

    @abstractmethod
    def find(self, claim: float, alpha: float) -> Finding:
        """The loss that is shown, wrong with probability `alpha` at most."""


@dataclass(frozen=True)
class Neighbours:
    """Two tables that differ by one person."""

    name: str
    left: Sampler
    right: Sampler


@dataclass(frozen=True)
class NeighbourCheck(Check):
    """Run on neighbouring tables; choose the pair, then rules to guess the table, then test them, each on own runs.

    A fair coin says for each tested run which table it is on, so that the bound is that of guesses.
    """

    pairs: Sequence[Neighbours]
    runs: int  # on each table, on average: a third to choose the rules, the others to test them
    pilot: int = 0  # runs on each table of each pair to choose the pair; needed for more than one

    def find(self, claim: float, alpha: float) -> Finding:
        pair, tried = self._chosen()
        trained, tested = self.runs // 3, max(1, self.runs - self.runs // 3)
        training = _aligned(_sampled(pair.left, trained), _sampled(pair.right, trained))
        rules = choose(*training, tested, alpha)
        samples: list[tuple[Observations, Observations]] = []
        look = tested // 10  # at so many runs first: they are enough where much is lost
        for runs, part in ((look, alpha / 10), (tested - look, 9 * alpha / 10)):
            if not runs:
                continue
            samples.append(_by_coins(pair, runs, training[0].columns))
            first, second = (_joined(frames) for frames in zip(*samples, strict=True))
            finding = self._tested(pair, rules, (*training, first, second), claim, part)
            if finding.bound > claim:
                break
        return replace(finding, runs=tried + 2 * trained + len(first) + len(second), alpha=alpha)

    def _tested(
        self, pair: Neighbours, rules: Sequence[Guess], frames: Sequence[Observations], claim: float, alpha: float
    ) -> Finding:
        """What guesses by these rules show; the frames are of training and of tests, on the left and on the right."""
        if kinds := _raised_always(frames):
            raise QuestionError(f"every run ended with an error ({kinds}), so there is nothing to verify.")
        tests = len(frames[2]) + len(frames[3])
        rarity = detectable_rarity(tests // 2, claim, alpha / len(rules))
        finding = partial(Finding, "neighbours", pair.name, runs=tests, alpha=alpha, rarity=rarity)
        # so many errors on one side alone are more than the claim allows, and no noise: the loss has no bound
        if (raised := _raised_on_one(frames)) and loss_at_least(tests, tests, alpha) > claim:
            return finding(raised, math.inf, power=claim)
        counts = [rule.counts(*frames[2:]) for rule in rules]
        bounds = [float(loss_at_least(*count, alpha / len(rules))) for count in counts]
        best = int(np.argmax(bounds))
        (right, guesses), bound = counts[best], bounds[best]
        note = f"{right} of {guesses} guesses right, {100 * right / max(guesses, 1):.3g}%, in {tests} runs"
        text = rules[best].text if bound > 0 else "nothing that tells the tables apart"
        return finding(text, bound, power=_power(right, guesses, bound, claim, alpha / len(rules)), note=note)

    def _chosen(self) -> tuple[Neighbours, int]:
        """The pair that looks worst in a few runs."""
        if len(self.pairs) == 1:
            return self.pairs[0], 0
        looks = []
        for pair in self.pairs:
            frames = _aligned(pair.left(self.pilot), pair.right(self.pilot))
            if _raised_always(frames):
                looks.append(-math.inf)
            else:
                looks.append(math.inf if _raised_on_one(frames) else _pilot_bound(frames))
        return self.pairs[int(np.argmax(looks))], 2 * self.pilot * len(self.pairs)


def _pilot_bound(frames: tuple[Observations, Observations]) -> float:
    """What a few runs show for 19 times in 20: rules chosen on every other run, tried on the runs between; and back.

    Rules tried on the runs they were chosen on would make equal tables look different.
    """
    halves = [(frames[0].iloc[start::2], frames[1].iloc[start::2]) for start in (0, 1)]
    bounds = []
    for trained, tested in (halves, halves[::-1]):
        rules = choose(*trained, len(trained[0]), PILOT_ALPHA)
        right, guesses = np.array([rule.counts(*tested) for rule in rules]).T
        bounds.append(max(0.0, float(loss_at_least(right, guesses, PILOT_ALPHA).max())))
    return sum(bounds) / 2


def _sampled(sampler: Sampler, runs: int) -> Observations:
    return sampler(runs) if runs else pd.DataFrame()


def _by_coins(pair: Neighbours, runs: int, columns: Any) -> tuple[Observations, Observations]:
    """Twice as many runs, each on the table that a fair coin says."""
    on_left = int(np.random.default_rng().binomial(2 * runs, 0.5))
    return _aligned(_sampled(pair.left, on_left), _sampled(pair.right, 2 * runs - on_left), columns)


def _joined(frames: Sequence[Observations]) -> Observations:
    full = [frame for frame in frames if len(frame)]
    return pd.concat(full, ignore_index=True) if full else frames[0]


def _power(right: int, guesses: int, bound: float, claim: float, alpha: float) -> float:
    """The smallest epsilon whose noise, sold as the claim, as many guesses would have shown.

    A looser mechanism shows more by the same guesses, in proportion to its epsilon. Where nothing was shown it is
    infinite: there is nothing to be in proportion to. What is above the claim counts as the claim: it may be chance.
    """
    if bound <= 0:
        return math.inf
    shown = math.log(right / (guesses - right)) if right < guesses else math.inf
    return claim * detectable_guesses(guesses, claim, alpha) / min(shown, claim)


def _aligned(left: Observations, right: Observations, columns: Any = None) -> tuple[Observations, Observations]:
    """The same columns for both: what one table's runs never showed is absent there."""
    if columns is None:
        columns = list(dict.fromkeys([*left.columns, *right.columns]))
    return left.reindex(columns=columns), right.reindex(columns=columns)


def _shares_raised(frames: Sequence[Observations]) -> list[float]:
    return [float(frame[RAISED].notna().mean()) if RAISED in frame and len(frame) else 0.0 for frame in frames]


def _raised_always(frames: Sequence[Observations]) -> str:
    """The errors, where every run on both tables ended with one."""
    if min(_shares_raised(frames)) < 1:
        return ""
    return ", ".join(sorted({str(kind) for frame in frames for kind in frame[RAISED].unique()}))


def _raised_on_one(frames: Sequence[Observations]) -> str:
    """What every run on one table raised and none on the other."""
    shares = _shares_raised(frames)
    left, right = shares[::2], shares[1::2]
    for one, other, frame in ((left, right, frames[0]), (right, left, frames[1])):
        if min(one) == 1 and max(other) == 0:
            return f"it raises {frame[RAISED].iloc[0]} on one table, in every run, and never on the other"
    return ""


@dataclass(frozen=True)
class CanaryCheck(Check):
    """Many people, each in the table by a fair coin: guess who is there from what is published about each.

    One run is an experiment for every canary, so that few runs prove much (Steinke, Nasr
    and Jagielski 2023). `run` returns who was there and a number for each of them that
    tends to be larger where they are.
    """

    name: str
    run: Callable[[], tuple[NDArray[np.bool_], NDArray[np.float64]]]
    runs: int  # a third to choose where to guess, the others to test it

    def find(self, claim: float, alpha: float) -> Finding:
        high, low = thresholds(*self.sample(max(1, self.runs // 3)), alpha)
        there, scores = self.sample(max(1, self.runs - self.runs // 3))
        right, guesses = guessed(there, scores, high, low)
        bound = float(loss_at_least(right, guesses, alpha))
        told = f"in where {self.published} is at least {high:g}" if math.isfinite(high) else ""
        told += " and " if told and math.isfinite(low) else ""
        told += f"out where it is at most {low:g}" if math.isfinite(low) else ""
        note = f"{right} of {guesses} guesses right: {100 * right / max(guesses, 1):.3g}%"
        power = _power(right, guesses, bound, claim, alpha)
        return Finding("canaries", self.name, f"guess {told or 'nobody'}", bound, self.runs, alpha, power, note)

    published: str = "the count of their cell"

    def sample(self, runs: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Who was there and what was published about them, in all of these runs."""
        there, scores = zip(*(self.run() for _ in range(runs)), strict=True)
        return np.concatenate(there), np.concatenate(scores)


def guessed(there: NDArray[np.bool_], scores: NDArray[np.float64], high: float, low: float) -> tuple[int, int]:
    """Right guesses and guesses: in from `high` on, out up to `low`, else no guess."""
    say_in, say_out = scores >= high, scores <= low
    return int(np.count_nonzero(there & say_in) + np.count_nonzero(~there & say_out)), int((say_in | say_out).sum())


def thresholds(there: NDArray[np.bool_], scores: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """From where on to guess "in" and up to where "out", so that the bound would be largest."""
    values = np.unique(scores)
    if len(values) > 40:
        values = np.unique(np.quantile(scores, np.linspace(0, 1, 40), method="nearest"))
    rules = [(float(high), float(low)) for high in (*values, math.inf) for low in (-math.inf, *values) if low < high]
    counts = np.array([guessed(there, scores, *rule) for rule in rules])
    return rules[int(np.argmax(loss_at_least(counts[:, 0], counts[:, 1], alpha)))]


@dataclass(frozen=True)
class ExactCheck(Check):
    """Every outcome on tables that can be enumerated: no sampling, no doubt.

    `cases` are names of neighbours and `worst_loss` or `worst_loss_of_draws` of them, but for the limit.
    """

    cases: Sequence[tuple[str, Callable[..., WorstLoss]]]
    limit: int = 500
    sampled: ClassVar[bool] = False

    def find(self, claim: float, alpha: float) -> Finding:
        found = [(enumerated(limit=self.limit), name) for name, enumerated in self.cases]
        worst, name = max(found, key=lambda each: each[0].loss)
        tried = sum(each.tried for each, _ in found)
        if math.isinf(worst.loss):
            event = "something is published that no mechanism released"
        else:
            event = f"the mechanisms release {_shown(worst.outcomes)}"
        whole = all(each.complete for each, _ in found)
        note = f"{'all' if whole else 'some'} {tried} outcomes of {len(found)} pairs of tables"
        # a loss is computed, so a mechanism that is looser by any factor shows it, in proportion to its epsilon
        power = claim * claim / worst.loss if worst.loss > 0 else math.inf
        return Finding("every outcome", name, event, worst.loss, tried, 0.0, max(power, claim), note)


@dataclass(frozen=True)
class FiniteCheck(Check):
    """Two distributions over finitely many outputs, known in full."""

    name: str
    left: Mapping[Any, float]
    right: Mapping[Any, float]
    sampled: ClassVar[bool] = False

    def find(self, claim: float, alpha: float) -> Finding:
        outputs = [*dict.fromkeys([*self.left, *self.right])]
        losses = [_ratio(self.left.get(output, 0.0), self.right.get(output, 0.0)) for output in outputs]
        worst = int(np.argmax(losses))
        event, note = f"the output is {outputs[worst]}", f"all {len(outputs)} outputs"
        return Finding("every outcome", self.name, event, losses[worst], len(outputs), power=claim, note=note)


def _ratio(one: float, other: float) -> float:
    """How much more likely an output is on one of the tables, in logarithms."""
    if one and other:
        return abs(math.log(one / other))
    return math.inf if one or other else 0.0  # what happens on neither table tells nothing


def _shown(outcomes: Sequence[Any]) -> str:
    text = ", ".join(str(outcome) for outcome in outcomes)
    return text if len(text) <= 90 else f"{text[:87]}..."


def observed(rows: Sequence[dict[str, Any]]) -> Observations:
    """Observations of several runs."""
    return pd.DataFrame(list(rows))
