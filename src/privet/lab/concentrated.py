"""What a run loses as rho between two neighbours: computed from the exact values behind each of its releases.

A run is repeated on both tables with a source of entropy that draws nothing. It notes for each release the mechanism
and the exact values, and publishes the same outcomes on both tables. Of each release the Renyi divergences between its
two distributions are then known in full.

The recorder knows the exact value behind every release, so nothing made here is private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.kernel import Domain, Entropy, ExponentialOverRanges, Rho, session_in_memory
from privet.lab.distributions import probabilities
from privet.table import InProcess, ProtectedTable

ORDERS = (1.0001, 1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)
Chances = NDArray[np.float64]


def lost_rho(left: Chances, right: Chances) -> float:
    """Return the largest Renyi divergence between two distributions, over its order, in either direction.

    >>> even, uneven = np.array([0.5, 0.5]), np.array([0.6, 0.4])
    >>> round(lost_rho(even, uneven), 4), lost_rho(even, np.array([1.0, 0.0]))
    (0.0204, inf)
    """
    return max(_one_way(left, right), _one_way(right, left))


def _one_way(one: Chances, other: Chances) -> float:
    shown = one > 0
    if (other[shown] <= 0).any():
        return math.inf
    log_one, log_other = np.log(one[shown]), np.log(other[shown])
    return max(
        float(np.logaddexp.reduce(order * log_one - (order - 1) * log_other)) / (order - 1) / order for order in ORDERS
    )


class _Release(NamedTuple):
    """What a mechanism was given."""

    kind: str
    mechanism: Any
    exact: Any


class _Recorder(Entropy):
    """Notes what is given to every mechanism, and publishes outcomes that are given, else some that may occur.

    Without a generator these are exact values and the best candidates.
    """

    def __init__(self, outcomes: Sequence[Any] = (), rng: np.random.Generator | None = None) -> None:
        self._given, self._rng = list(outcomes), rng
        self.outcomes: list[Any] = []
        self.releases: list[_Release] = []

    @property
    def script(self) -> _Recorder:
        return self

    def take(self, count: int) -> bytes:
        raise AssertionError("nothing is drawn here")

    def _publish(self, release: _Release, first: Any) -> Any:
        at = len(self.outcomes)
        self.releases.append(release)
        self.outcomes.append(self._given[at] if at < len(self._given) else first)
        return self.outcomes[-1]

    def gaussian(self, noises: Any, exact_values: NDArray[Any], which: NDArray[np.intp]) -> NDArray[Any]:
        variances = np.array([float(noise.variance) for noise in noises])[which]
        noise = 0 if self._rng is None else np.rint(self._rng.normal(size=np.shape(exact_values)) * np.sqrt(variances))
        outcome = np.asarray(exact_values + noise, dtype=np.int64)
        return np.asarray(self._publish(_Release("gaussian", variances, exact_values), outcome))

    def choice(self, mechanism: Any, exact_scores: NDArray[Any]) -> int:
        outcome = np.argmax(exact_scores) if self._rng is None else self._rng.integers(len(exact_scores))
        return int(self._publish(_Release("choice", mechanism, exact_scores.tolist()), int(outcome)))

    def point(self, mechanism: ExponentialOverRanges, exact_scores: NDArray[Any], exact_sizes: Sequence[int]) -> int:
        sizes = [int(size) for size in exact_sizes]
        outcome = 0 if self._rng is None else int(self._rng.integers(sum(sizes)))
        return int(self._publish(_Release("point", mechanism, (exact_scores.tolist(), sizes)), outcome))


def concentrated_loss(
    run: Callable[[ProtectedTable], Hashable],
    left: Any,
    right: Any,
    domain: Domain,
    delta: Any,
    seed: int | None = None,
) -> float:
    """Return what a run loses as rho between two neighbours, added up over its releases.

    Parameters
    ----------
    run : callable
        Takes a ProtectedTable that is counted in rho, asks it, and returns what it would publish.
    left, right : frame
        The rows of two neighbours.
    domain : Domain
    delta : Fraction
        Of the tables.
    seed : int, optional
        Draws outcomes that both tables publish; without one they are the exact values of the left table.

    Returns
    -------
    float
        Infinite where the two tables publish different things from the same outcomes.
    """
    published: list[Hashable] = []
    recorders: list[_Recorder] = []
    for rows in (left, right):
        rng = None if seed is None else np.random.default_rng(seed)
        recorder = _Recorder(recorders[0].outcomes if recorders else (), rng)
        session = session_in_memory(rows, domain, Rho(10**9).value, recorder, delta=delta)
        with ProtectedTable(InProcess(session), session.whole_table()) as table:
            published.append(run(table))
        recorders.append(recorder)
    pairs = list(zip(*(recorder.releases for recorder in recorders), strict=False))
    if published[0] != published[1] or len({len(recorder.releases) for recorder in recorders}) > 1:
        return math.inf
    return sum(_lost(one, other) for one, other in pairs)


def _lost(one: _Release, other: _Release) -> float:
    """What one release loses: the exact values of the two tables are told apart by the same mechanism."""
    if one.kind != other.kind or (np.shape(one.exact) != np.shape(other.exact) and one.kind == "gaussian"):
        return math.inf
    if one.kind == "gaussian":
        moved = np.asarray(one.exact, dtype=np.float64) - np.asarray(other.exact, dtype=np.float64)
        return float((moved**2 / (2 * one.mechanism)).sum())
    if one.kind == "choice":
        return lost_rho(probabilities(one.mechanism, one.exact), probabilities(other.mechanism, other.exact))
    return lost_rho(_points(one), _points(other))


def _points(release: _Release) -> Chances:
    """The probability of every point of a line."""
    scores, sizes = release.exact
    chances = probabilities(release.mechanism, scores, sizes) / np.array(sizes)
    return np.repeat(chances, sizes)
