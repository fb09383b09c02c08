"""Every outcome of a run, with its probability: how a loss is bounded without a sample.

Tables that `worst_loss` opens draw nothing. They follow a script: a run on one table is
repeated with every choice and, for noise, with the outcomes at which its loss is extreme;
each is then forced on the neighbour, and the two probabilities are compared. What a run
does between its releases is the code that runs in production.

A script knows the exact value behind every release, so nothing made here is private. It
decides for the tables that are opened here, from frames that the caller made, and for
mechanisms that are handed its source; no table that somebody else opened can be given one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import PrivacyError
from privet.kernel import (
    LARGEST_EPSILON,
    AboveThreshold,
    Domain,
    Entropy,
    ExponentialOverRanges,
    InProcess,
    IntegerLaplace,
    ProtectedTable,
    Refinement,
    session_in_memory,
)
from privet.lab.public import PublicRows, open_public

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
        """Return a noisy vector.

        Its loss depends on the side of the exact values alone; what the run does next may depend on the distance, so
        near and far outcomes are tried.
        """
        near, values = mechanism.sensitivity, exact_values
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
        near, values, coarse = mechanism.sensitivity, exact_values, released
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

    def point(self, mechanism: ExponentialOverRanges, exact_scores: NDArray[Any], exact_sizes: Sequence[int]) -> int:
        """A point of the line: neighbours cut it into other ranges."""
        ends = list(accumulate(int(size) for size in exact_sizes))  # beyond 64 bits where grids are fine
        starts = [0, *ends[:-1]]
        # a record cuts a range at most once: both of its parts hold an end
        place = self._next(lambda: sorted({*starts, *(end - 1 for end in ends)}))
        if not isinstance(place, int) or place >= ends[-1]:
            self.log_probability = -math.inf
            return 0
        chosen = bisect_right(ends, place)
        chance = mechanism.probabilities(exact_scores.tolist(), exact_sizes)[chosen] / exact_sizes[chosen]
        self.log_probability += math.log(chance) if chance > 0 else -math.inf
        return place

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


class _ScriptedEntropy(Entropy):
    """The source of what is enumerated: during a run its script decides, and there is nothing to draw."""

    def __init__(self) -> None:
        self._script: _Script | None = None

    @property
    def script(self) -> _Script:
        if self._script is None:
            raise PrivacyError("this table was opened to enumerate its outcomes, and that is over; open it anew.")
        return self._script

    def take(self, count: int) -> bytes:
        raise PrivacyError("outcomes are enumerated here, and nothing is drawn.")

    def follow(self, script: _Script, run: Callable[[], Hashable]) -> Hashable:
        """What a run publishes if this script decides."""
        self._script = script
        try:
            return run()
        finally:
            self._script = None


_Play = Callable[[_Script], Hashable]  # what is published from one of two neighbours under a script


def worst_loss(
    run: Callable[[ProtectedTable], Hashable],
    left: Any,
    right: Any,
    domain: Domain,
    *,
    public: PublicRows | None = None,
    limit: int = 2_000,
) -> WorstLoss:
    """The largest loss of `run` between two neighbours, over all outcomes or, where they are more than `limit`, some.

    The loss of an outcome is the logarithm of how much more likely it is on one of the tables; where equal
    outcomes of all mechanisms lead to another publication, something was published that no mechanism released,
    and the loss is infinite.

    Parameters
    ----------
    run : callable
        Asks the table that it is given and returns what it would publish. It is called for every outcome, on two
        tables that are opened here; they answer nothing after it.
    left, right : frame
        The rows of two neighbours. A table that is open already cannot be enumerated.
    domain : Domain
    public : PublicRows, optional
        Open public tables, which answer exactly and repeat the errors of papers that are named here.
    limit : int, default 2000
        How many outcomes are tried at most, of both tables together.

    Returns
    -------
    WorstLoss

    Raises
    ------
    QuestionError, DataError
        Where `left` or `right` is not a frame.
    """
    with ExitStack() as stack:
        plays = (_on_table(run, stack, left, domain, public), _on_table(run, stack, right, domain, public))
        return _both_ways(*plays, limit)


def worst_loss_of_draws(
    run: Callable[[Any, Entropy], Hashable], left: Any, right: Any, *, limit: int = 2_000
) -> WorstLoss:
    """Return the largest loss of a `run` that draws from mechanisms itself.

    It is the largest over all outcomes or, if there are more than `limit`, some.

    Parameters
    ----------
    run : callable
        Takes `left` or `right` and the source that it hands to every mechanism; returns what it would publish.
    left, right : object
        What neighbours make of a computation: counts, scores.
    limit : int, default 2000

    Returns
    -------
    WorstLoss
    """
    return _both_ways(_on_values(run, left), _on_values(run, right), limit)


def _on_table(
    run: Callable[[ProtectedTable], Hashable], stack: ExitStack, rows: Any, domain: Domain, public: PublicRows | None
) -> _Play:
    entropy = _ScriptedEntropy()
    table: ProtectedTable
    if public is None:
        session = session_in_memory(rows, domain, LARGEST_EPSILON, entropy)
        table = ProtectedTable(InProcess(session), session.whole_table())
    else:
        table = open_public(
            rows,
            domain,
            rounded_noise=public.rounded_noise,
            printed_ranges=public.printed_ranges,
            entropy=entropy,
        )
    stack.enter_context(table)
    return lambda script: entropy.follow(script, lambda: run(table))


def _on_values(run: Callable[[Any, Entropy], Hashable], values: Any) -> _Play:
    entropy = _ScriptedEntropy()
    return lambda script: entropy.follow(script, lambda: run(values, entropy))


def _both_ways(left: _Play, right: _Play, limit: int) -> WorstLoss:
    losses = [_one_way(left, right, limit // 2), _one_way(right, left, limit // 2)]
    worst = max(losses, key=lambda each: each.loss)
    return WorstLoss(
        worst.loss, worst.outcomes, sum(each.tried for each in losses), all(each.complete for each in losses)
    )


def _one_way(first: _Play, second: _Play, limit: int) -> WorstLoss:
    """Outcomes of the first table, forced on the second: in order and, if they are too many, then any."""
    worst, shown, tried, many = -math.inf, (), 0, False
    rng = np.random.default_rng(0)
    steps: list[int] | None = []
    while steps is not None and tried < limit:
        script = _Script(rng=rng) if many and tried > limit // 2 else _Script(steps)
        published = first(script)
        forced = _Script(outcomes=script.outcomes)
        again = second(forced)
        same = published == again and len(forced.outcomes) == len(script.outcomes)
        loss = script.log_probability - forced.log_probability if same else math.inf
        if loss > worst:
            worst, shown = loss, tuple(script.outcomes)
        tried += 1
        many = many or math.prod(script.options) > limit
        steps = _following(steps, script.options) if not many or tried <= limit // 2 else steps
    return WorstLoss(worst, shown, tried, steps is None)


def _following(steps: Sequence[int], options: Sequence[int]) -> list[int] | None:
    """The next sequence of choices, as an odometer counts; None after the last."""
    taken = [*steps, *[0] * (len(options) - len(steps))]
    for place in range(len(options) - 1, -1, -1):
        if taken[place] + 1 < options[place]:
            return [*taken[:place], taken[place] + 1]
    return None
