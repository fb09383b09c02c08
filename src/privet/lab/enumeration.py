"""Enumeration: every outcome of a run with its probability, which gives the loss without sampling.

The tables that `worst_loss` opens draw nothing. They follow a script. A run on one table is repeated
with every choice and, for noise, with the outcomes at which its loss is extreme. Each outcome is then
forced on the neighbour, and the two probabilities are compared. What a run does between its releases
is the code that runs in production.

A script knows the exact value behind every release, so nothing made here is private. It works for
tables that are opened here, from frames of the caller, and for mechanisms that are given its source
of entropy. It cannot be attached to a table that was opened elsewhere.
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
    IntegerLaplace,
    Refinement,
    session_in_memory,
)
from privet.lab.distributions import answers_log_probability, probabilities, refinement_log_probabilities
from privet.lab.public import PublicRows, open_public
from privet.table import InProcess, ProtectedTable

# Noise of this size decides every comparison of a noisy number.
FAR = 10**4


@dataclass(frozen=True)
class WorstLoss:
    """The largest loss over the outcomes that were tried.

    Parameters
    ----------
    loss : float
        The largest logarithm of a ratio of probabilities; may be infinite.
    outcomes : tuple
        The outcomes of the mechanisms that show it.
    tried : int
        How many outcomes were tried.
    complete : bool
        Whether these were all; False if there were more than the limit.
    """

    loss: float
    outcomes: tuple[Any, ...]
    tried: int
    complete: bool


class _Script:
    """The outcomes of one run: those that are given, then the first or a random one; and their joint probability."""

    def __init__(
        self, steps: Sequence[int] = (), outcomes: Sequence[Any] | None = None, rng: np.random.Generator | None = None
    ) -> None:
        self._steps, self._given, self._rng = steps, outcomes, rng
        self.outcomes: list[Any] = []
        self.options: list[int] = []
        self.log_probability = 0.0

    def _next(self, options: Callable[[], list[Any]]) -> Any:
        """Return the outcome of the next release; None if a forced run releases more than the first one."""
        index = len(self.outcomes)
        if self._given is not None:
            outcome = self._given[index] if index < len(self._given) else None
        else:
            choices = options()
            further = 0 if self._rng is None else int(self._rng.integers(len(choices)))
            step = self._steps[index] if index < len(self._steps) else further
            self.options.append(len(choices))
            outcome = choices[step]
        self.outcomes.append(outcome)
        return outcome

    def noise(self, mechanism: IntegerLaplace, exact_values: NDArray[Any]) -> NDArray[Any]:
        """Return a noisy vector.

        Its loss depends only on the side of the exact values on which it lies. What the run does next may depend on
        the distance too, so near and far outcomes are tried.
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
        """Return a finer noisy vector: the one that was released before, or one as in `noise`."""
        near, values, coarse = mechanism.sensitivity, exact_values, released
        wanted = self._next(
            lambda: [coarse.tolist(), *((values + shift).tolist() for shift in (-near, near, -FAR, FAR))]
        )
        if wanted is None or np.shape(wanted) != values.shape:
            self.log_probability = -math.inf
            return values
        drawn = np.array(wanted, dtype=np.int64)
        self.log_probability += float(refinement_log_probabilities(mechanism, coarse - values, drawn - values).sum())
        return drawn

    def choice(self, mechanism: Any, exact_scores: NDArray[Any]) -> int:
        """Return the index of a candidate."""
        chances = probabilities(mechanism, exact_scores.tolist())
        index = self._next(lambda: np.flatnonzero(chances > 0).tolist())
        if not isinstance(index, int) or index >= len(chances) or chances[index] <= 0:
            self.log_probability = -math.inf
            return 0
        self.log_probability += math.log(chances[index])
        return index

    def point(self, mechanism: ExponentialOverRanges, exact_scores: NDArray[Any], exact_sizes: Sequence[int]) -> int:
        """Return a point of a line, which neighbours divide into different ranges."""
        ends = list(accumulate(int(size) for size in exact_sizes))  # beyond 64 bits where grids are fine
        starts = [0, *ends[:-1]]
        # a record divides a range at most once, and both parts contain an end of it: the ends are enough
        point = self._next(lambda: sorted({*starts, *(end - 1 for end in ends)}))
        if not isinstance(point, int) or point >= ends[-1]:
            self.log_probability = -math.inf
            return 0
        chosen = bisect_right(ends, point)
        chance = probabilities(mechanism, exact_scores.tolist(), exact_sizes)[chosen] / exact_sizes[chosen]
        self.log_probability += math.log(chance) if chance > 0 else -math.inf
        return point

    def reached(self, mechanism: AboveThreshold, exact_scores: Sequence[int]) -> bool:
        """Return whether the last score reaches a hidden threshold that no score before it reached.

        True is tried first, so that a run ends that asks until the threshold is reached.
        """
        answer = self._next(lambda: [True, False])
        if not isinstance(answer, bool):
            self.log_probability = -math.inf
            return True
        before = answers_log_probability(mechanism, exact_scores[:-1], False)
        self.log_probability += answers_log_probability(mechanism, exact_scores, answer) - before
        return answer


class _ScriptedEntropy(Entropy):
    """The source of entropy of an enumerated run: its script decides every outcome, and nothing is drawn."""

    def __init__(self) -> None:
        self._script: _Script | None = None

    @property
    def script(self) -> _Script:
        """The script of the run that is under way."""
        if self._script is None:
            raise PrivacyError("this table was opened to enumerate its outcomes, and that is over; open it anew.")
        return self._script

    def take(self, count: int) -> bytes:
        """Refuse to draw."""
        raise PrivacyError("outcomes are enumerated here, and nothing is drawn.")

    def follow(self, script: _Script, run: Callable[[], Hashable]) -> Hashable:
        """Return what a run publishes under a script."""
        self._script = script
        try:
            return run()
        finally:
            self._script = None


_Play = Callable[[_Script], Hashable]  # returns what is published about one of two neighbours under a script


def worst_loss(
    run: Callable[[ProtectedTable], Hashable],
    left: Any,
    right: Any,
    domain: Domain,
    *,
    public: PublicRows | None = None,
    limit: int = 2_000,
) -> WorstLoss:
    """Return the largest loss of `run` between two neighbours.

    All outcomes are tried or, if there are more than `limit`, some of them. The loss of an outcome is the logarithm
    of how much more likely it is on one of the tables. If the same outcomes of all mechanisms lead to different
    publications, something was published that no mechanism released, and the loss is infinite.

    Parameters
    ----------
    run : callable
        Takes a ProtectedTable, asks it, and returns what it would publish. It is called for every outcome, on two
        tables that are opened here and closed at the end.
    left, right : frame
        The rows of two neighbours. A table that is open already cannot be enumerated.
    domain : Domain
    public : PublicRows, optional
        Open tables of public rows instead, which answer exactly and repeat these errors of papers.
    limit : int, default 2000
        The most outcomes that are tried, of both tables together.

    Returns
    -------
    WorstLoss

    Raises
    ------
    QuestionError, DataError
        `left` or `right` is not a frame.
    """
    with ExitStack() as stack:
        plays = (_on_table(run, stack, left, domain, public), _on_table(run, stack, right, domain, public))
        return _both_ways(*plays, limit)


def worst_loss_of_draws(
    run: Callable[[Any, Entropy], Hashable], left: Any, right: Any, *, limit: int = 2_000
) -> WorstLoss:
    """Return the largest loss of a `run` that draws from mechanisms itself.

    All outcomes are tried or, if there are more than `limit`, some of them.

    Parameters
    ----------
    run : callable
        Takes `left` or `right`, and a source of entropy that it passes to every mechanism; returns what it would
        publish.
    left, right : object
        The exact values of two neighbours, such as counts or scores.
    limit : int, default 2000
        The most outcomes that are tried, of both together.

    Returns
    -------
    WorstLoss
    """
    return _both_ways(_on_values(run, left), _on_values(run, right), limit)


def _on_table(
    run: Callable[[ProtectedTable], Hashable], stack: ExitStack, rows: Any, domain: Domain, public: PublicRows | None
) -> _Play:
    """Open a table of its own for one neighbour, and return how it is run under a script."""
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
    """Return how the values of one neighbour are run under a script."""
    entropy = _ScriptedEntropy()
    return lambda script: entropy.follow(script, lambda: run(values, entropy))


def _both_ways(left: _Play, right: _Play, limit: int) -> WorstLoss:
    """Return the larger loss of both directions."""
    losses = [_one_way(left, right, limit // 2), _one_way(right, left, limit // 2)]
    worst = max(losses, key=lambda result: result.loss)
    return WorstLoss(
        worst.loss, worst.outcomes, sum(result.tried for result in losses), all(result.complete for result in losses)
    )


def _one_way(first: _Play, second: _Play, limit: int) -> WorstLoss:
    """Try outcomes of the first table on the second: in order and, if there are too many, half of them at random."""
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
    """Return the next sequence of choices, as an odometer counts; None after the last."""
    taken = [*steps, *[0] * (len(options) - len(steps))]
    for index in range(len(options) - 1, -1, -1):
        if taken[index] + 1 < options[index]:
            return [*taken[:index], taken[index] + 1]
    return None
