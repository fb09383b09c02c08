"""Every outcome of a run, with its probability: how a loss is bounded without a sample.

Inside `worst_loss` mechanisms draw nothing. They follow a script: a run on one table is
repeated with every choice and, for noise, with the outcomes at which its loss is extreme;
each is then forced on the neighbour, and the two probabilities are compared. What a run
does between its releases is the code that runs in production. Nothing made here is
private, and everything here is for tables that the caller made: one whose ledger is on
disk does not answer a script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.kernel.mechanisms import AboveThreshold, ExponentialOverRanges, IntegerLaplace, Refinement, follow

# Noise this far out makes every decision that depends on a noisy number go one way.
FAR = 10**4


@dataclass(frozen=True)
class WorstLoss:
    """The largest loss over the outcomes that were tried, and the outcomes that show it."""

    loss: float
    outcomes: tuple[Any, ...]
    tried: int
    complete: bool  # False: there were more outcomes than the limit


class _Script:
    """One run: outcomes that are given, then the first or a random one; the probability of all of them together."""

    def __init__(
        self, steps: Sequence[int] = (), outcomes: Sequence[Any] | None = None, rng: np.random.Generator | None = None
    ) -> None:
        self._steps, self._given, self._rng = steps, outcomes, rng
        self.outcomes: list[Any] = []
        self.options: list[int] = []
        self.log_probability = 0.0

    def _next(self, options: Callable[[], list[Any]]) -> Any:
        """The outcome of the next release."""
        place = len(self.outcomes)
        if self._given is not None:
            outcome = self._given[place] if place < len(self._given) else None
        else:
            found = options()
            further = 0 if self._rng is None else int(self._rng.integers(len(found)))
            step = self._steps[place] if place < len(self._steps) else further
            self.options.append(len(found))
            outcome = found[step]
        self.outcomes.append(outcome)
        return outcome

    def noise(self, mechanism: IntegerLaplace, exact_values: NDArray[Any]) -> NDArray[Any]:
        """A noisy vector: for a loss only the side matters, for what follows perhaps also how far."""
        near = mechanism.sensitivity
        values = np.asarray(exact_values, dtype=np.int64)
        wanted = self._next(lambda: [(values + shift).tolist() for shift in (-near, near, -FAR, FAR)])
        rate = float(mechanism.epsilon) / near
        if wanted is None or np.shape(wanted) != values.shape:  # another question than on the first table
            self.log_probability = -math.inf
            return values
        drawn = np.array(wanted, dtype=np.int64)
        self.log_probability += values.size * math.log(math.tanh(rate / 2)) - rate * float(np.abs(drawn - values).sum())
        return drawn

    def refine(self, mechanism: Refinement, exact_values: NDArray[Any], released: NDArray[Any]) -> NDArray[Any]:
        """A finer noisy vector: what was released before, or as for noise."""
        near = mechanism.sensitivity
        values, coarse = np.asarray(exact_values, dtype=np.int64), np.asarray(released, dtype=np.int64)
        wanted = self._next(
            lambda: [coarse.tolist(), *((values + shift).tolist() for shift in (-near, near, -FAR, FAR))]
        )
        if wanted is None or np.shape(wanted) != values.shape:
            self.log_probability = -math.inf
            return values
        drawn = np.array(wanted, dtype=np.int64)
        self.log_probability += float(mechanism.log_probabilities(coarse - values, drawn - values).sum())
        return drawn

    def choice(self, mechanism: Any, exact_scores: NDArray[Any]) -> int:
        """An index."""
        chances = mechanism.probabilities(exact_scores.tolist())
        index = self._next(lambda: np.flatnonzero(chances > 0).tolist())
        if not isinstance(index, int) or index >= len(chances) or chances[index] <= 0:
            self.log_probability = -math.inf
            return 0
        self.log_probability += math.log(chances[index])
        return index

    def point(
        self, mechanism: ExponentialOverRanges, exact_scores: NDArray[Any], exact_sizes: Sequence[int]
    ) -> tuple[int, int]:
        """A point: neighbours cut a line into other ranges, so an outcome is its place on the whole line."""
        ends = np.cumsum([int(size) for size in exact_sizes])
        starts = ends - np.array(exact_sizes, dtype=np.int64)
        # a record cuts a range at most once: both of its parts hold an end
        place = self._next(lambda: sorted({*starts.tolist(), *(ends - 1).tolist()}))
        if not isinstance(place, int) or place >= ends[-1]:
            self.log_probability = -math.inf
            return 0, 0
        chosen = int(np.searchsorted(ends, place, side="right"))
        chance = mechanism.probabilities(exact_scores.tolist(), exact_sizes)[chosen] / exact_sizes[chosen]
        self.log_probability += math.log(chance) if chance > 0 else -math.inf
        return chosen, int(place - starts[chosen])

    def reached(self, mechanism: AboveThreshold, exact_scores: Sequence[int]) -> bool:
        """Whether the last score reaches a hidden threshold that the ones before it did not reach.

        Yes comes first: a run that asks until it hears one then ends.
        """
        answer = self._next(lambda: [True, False])
        if not isinstance(answer, bool):
            self.log_probability = -math.inf
            return True
        before = mechanism.log_probability(exact_scores[:-1], False)
        self.log_probability += mechanism.log_probability(exact_scores, answer) - before
        return answer


def worst_loss(run: Callable[[Any], Hashable], left: Any, right: Any, limit: int = 2_000) -> WorstLoss:
    """The largest loss of `run` between two neighbours, over all outcomes or, where they are more than `limit`, some.

    `run` asks a table and returns what it would publish. The loss of an outcome is the
    logarithm of how much more likely it is on one of the tables; where equal outcomes of
    all mechanisms lead to another publication, something was published that no mechanism
    released, and the loss is infinite.
    """
    found = [_one_way(run, left, right, limit // 2), _one_way(run, right, left, limit // 2)]
    worst = max(found, key=lambda each: each.loss)
    return WorstLoss(
        worst.loss, worst.outcomes, sum(each.tried for each in found), all(each.complete for each in found)
    )


def _one_way(run: Callable[[Any], Hashable], first: Any, second: Any, limit: int) -> WorstLoss:
    """Outcomes of the first table, forced on the second: in order and, if they are too many, then any."""
    worst, shown, tried, many = -math.inf, (), 0, False
    rng = np.random.default_rng(0)
    steps: list[int] | None = []
    while steps is not None and tried < limit:
        script = _Script(rng=rng) if many and tried > limit // 2 else _Script(steps)
        published = _followed(script, run, first)
        forced = _Script(outcomes=script.outcomes)
        again = _followed(forced, run, second)
        same = published == again and len(forced.outcomes) == len(script.outcomes)
        loss = script.log_probability - forced.log_probability if same else math.inf
        if loss > worst:
            worst, shown = loss, tuple(script.outcomes)
        tried += 1
        many = many or math.prod(script.options) > limit
        steps = _following(steps, script.options) if not many or tried <= limit // 2 else steps
    return WorstLoss(worst, shown, tried, steps is None)


def _followed(script: _Script, run: Callable[[Any], Hashable], table: Any) -> Hashable:
    with follow(script):
        return run(table)


def _following(steps: Sequence[int], options: Sequence[int]) -> list[int] | None:
    """The next sequence of choices, as an odometer counts; None after the last."""
    taken = [*steps, *[0] * (len(options) - len(steps))]
    for place in range(len(options) - 1, -1, -1):
        if taken[place] + 1 < options[place]:
            return [*taken[:place], taken[place] + 1]
    return None
