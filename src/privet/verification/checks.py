"""Three ways to hold a claim against runs: neighbours, canaries, and every outcome there is.

Each is a `Check`: given the claim and the probability with which it may be wrong, it
returns the loss it can prove.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel import WorstLoss
from privet.verification.bounds import detectable_guesses, detectable_loss, guesses_at_least, loss_at_least
from privet.verification.events import Observations, choose
from privet.verification.verdict import Finding

RAISED = "raised"  # the column that says which error a run ended with

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
    """Run on neighbouring tables; choose the pair, then an event, then test it, each on runs of its own."""

    pairs: Sequence[Neighbours]
    runs: int  # on each table: a third to choose the event, the others to test it
    pilot: int = 0  # runs on each table of each pair to choose the pair; needed for more than one

    def find(self, claim: float, alpha: float) -> Finding:
        pair, tried = self._chosen(alpha)
        tested = max(1, self.runs - self.runs // 3)
        training = _aligned(pair.left(self.runs // 3), pair.right(self.runs // 3))
        event, _ = choose(*training, tested, alpha)
        first, second = _aligned(pair.left(tested), pair.right(tested), columns=training[0].columns)
        runs = tried + 2 * self.runs
        frames = (*training, first, second)
        if kinds := _raised_always(frames):
            raise QuestionError(f"every run ended with an error ({kinds}), so there is nothing to verify.")
        # so many errors on one side alone are more than the claim allows, and no noise: the loss has no bound
        if (raised := _raised_on_one(frames)) and loss_at_least(tested, 0, tested, alpha) > claim:
            return Finding("neighbours", pair.name, raised, math.inf, runs, alpha, power=claim)
        here, there = (int(np.count_nonzero(event.happens(frame))) for frame in (first, second))
        likely, unlikely = (here, there) if event.on_left else (there, here)
        bound = float(loss_at_least(likely, unlikely, tested, alpha))
        share, rare = likely / tested, max(unlikely, 0.5) / tested
        note = f"seen in {100 * share:.3g}% of {tested} runs and in {100 * unlikely / tested:.3g}% on the neighbour"
        shown = math.log(share / rare) if share > rare else 0.0
        # a looser mechanism shows more on the same event, in proportion to its epsilon
        power = claim * detectable_loss(share, tested, claim, alpha) / shown if shown else math.inf
        text = event.text if bound > 0 else "nothing that tells the tables apart"
        return Finding("neighbours", pair.name, text, bound, runs, alpha, max(power, claim), note)

    def _chosen(self, alpha: float) -> tuple[Neighbours, int]:
        """The pair that looks worst in a few runs."""
        if len(self.pairs) == 1:
            return self.pairs[0], 0
        looks = []
        for pair in self.pairs:
            frames = _aligned(pair.left(self.pilot), pair.right(self.pilot))
            if _raised_always(frames):
                looks.append(-math.inf)
            else:
                looks.append(math.inf if _raised_on_one(frames) else choose(*frames, self.runs, alpha)[1])
        return self.pairs[int(np.argmax(looks))], 2 * self.pilot * len(self.pairs)


def _aligned(left: Observations, right: Observations, columns: Any = None) -> tuple[Observations, Observations]:
    """The same columns for both: what one table's runs never showed is absent there."""
    if columns is None:
        columns = list(dict.fromkeys([*left.columns, *right.columns]))
    return left.reindex(columns=columns), right.reindex(columns=columns)


def _shares_raised(frames: Sequence[Observations]) -> list[float]:
    return [float(frame[RAISED].notna().mean()) if RAISED in frame else 0.0 for frame in frames]


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
        bound = guesses_at_least(right, guesses, alpha)
        told = f"in where {self.published} is at least {high:g}" if math.isfinite(high) else ""
        told += " and " if told and math.isfinite(low) else ""
        told += f"out where it is at most {low:g}" if math.isfinite(low) else ""
        note = f"{right} of {guesses} guesses right: {100 * right / max(guesses, 1):.3g}%"
        share = right / max(guesses, 1)
        shown = math.log(share / (1 - share)) if 0.5 < share < 1 else math.inf if share == 1 else 0.0
        power = claim * detectable_guesses(guesses, claim, alpha) / shown if shown else math.inf
        return Finding(
            "canaries", self.name, f"guess {told or 'nobody'}", bound, self.runs, alpha, max(power, claim), note
        )

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
    return max(rules, key=lambda rule: guesses_at_least(*guessed(there, scores, *rule), alpha))


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
        # the smallest excess: a loss is computed, so a mechanism that is looser by any factor shows it
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
