"""Two tests with proven error rates, shared by all statistical tests.

Production noise has no seed, so a false alarm must be practically impossible: both
tests bound its probability for every sample size, without a normal approximation.
Each is run on the honest mechanism, which must pass, and on mutants, which must not.
The full number of draws misses a mutant as rarely as it gives a false alarm. The small
one misses more often: then a mutant is drawn up to three times, and the end of a run says
with which probability once is enough.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import power
import pytest
import sizes
from scipy.stats import beta

TRIES = 1 if sizes.FULL else 3  # of a mutant

Sampler = Callable[[Fraction], Iterable[Any]]


def p_bound(sample: Iterable[Any], pmf: Mapping[Any, float]) -> float:
    """An upper bound for the probability of a sample this far from `pmf`; outcomes it does not name are one cell.

    For n draws of k cells, P(n KL(observed, pmf) >= x) <= exp(-x) (e x / (k - 1))^(k - 1) for x > k - 1, for every n
    (Agrawal 2020, arXiv 1904.02291, theorem 1.2).
    """
    seen: Counter[Any] = Counter(outcome if outcome in pmf else "elsewhere" for outcome in sample)
    cells = {**pmf, "elsewhere": max(1 - sum(pmf.values()), 0.0)}
    n, freedom = seen.total(), len(cells) - 1
    divergence = 0.0
    for outcome, times in seen.items():
        if cells[outcome] < 1e-12:
            return 0.0  # what cannot happen was seen
        divergence += times * math.log(times / n / cells[outcome])
    if divergence <= freedom:
        return 1.0
    return math.exp(-divergence + freedom * (1 + math.log(divergence / freedom)))


@pytest.fixture
def assert_follows(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`assert_follows(sample, pmf, alpha=1e-9, detects=(0.8, 1.25))`.

    `sample(factor)` draws from the mechanism with its scale multiplied by `factor`. Hypothesis: at factor 1 the draws
    follow `pmf`. It is rejected with probability below `alpha` if true; the same test must reject each factor in
    `detects`.
    """

    def check(
        sample: Sampler,
        pmf: Mapping[Any, float],
        alpha: float = 1e-9,
        detects: Sequence[float] = (0.8, 1.25),
    ) -> None:
        assert sum(pmf.values()) <= 1 + 1e-9
        p = p_bound(sample(Fraction(1)), pmf)
        assert p > alpha, f"p = {p:.3g}"
        for factor in detects:
            for _ in range(TRIES):
                drawn = list(sample(Fraction(str(factor))))
                p = p_bound(drawn, pmf)
                note(request, f"scale times {factor}", power.miss_of_divergence(drawn, pmf, alpha))
                if p <= alpha:
                    break
            assert p <= alpha, f"scale times {factor}: p = {p:.3g}"

    return check


def note(request: pytest.FixtureRequest, mutant: str, miss: float) -> None:
    """Tell the end of the run how probably a test of this size rejects a mutant."""
    request.node.user_properties.append(
        ("power", f"{request.node.name}: {mutant} is rejected with probability {power.stated(miss)}")
    )


def epsilon_at_least(likely: int, unlikely: int, n: int, alpha: float = 1e-6) -> float:
    """A lower bound for epsilon, wrong with probability `alpha` at most (Clopper and Pearson).

    An event fixed beforehand was seen `likely` times in n runs on one table and `unlikely` times in n runs on a
    neighbour.
    """
    if likely == 0:
        return -math.inf
    lowest = float(beta.ppf(alpha / 2, likely, n - likely + 1))
    highest = 1.0 if unlikely == n else float(beta.ppf(1 - alpha / 2, unlikely + 1, n - unlikely))
    return math.log(lowest / highest)


@pytest.fixture
def assert_private(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`assert_private(events, claimed=1, mutants=("1.25",))`.

    `events(epsilon)` runs the mechanism with noise for `epsilon` n times on a table and n times on a neighbour and
    says in which runs an event happened that is likely on the first. Hypothesis: no event is more than exp(claimed)
    times as likely on the neighbour. With noise for `claimed` it is rejected with probability 1e-6 at most; noise for
    a mutant, sold as `claimed`, must be caught.
    """

    def check(
        events: Callable[[Fraction], tuple[Any, Any]], claimed: float = 1, mutants: Sequence[str] = ("1.25",)
    ) -> None:
        likely, unlikely, n = counted(events(Fraction(claimed)))
        found = epsilon_at_least(likely, unlikely, n)
        assert found <= claimed, f"noise for {claimed}: at least {found:.4f}"
        for mutant in mutants:
            for _ in range(TRIES):
                likely, unlikely, n = counted(events(Fraction(mutant)))
                found = epsilon_at_least(likely, unlikely, n)
                miss = power.miss_of_neighbours(likely, unlikely, n, claimed, 1e-6)
                note(request, f"noise for {mutant} sold as {claimed}", miss)
                if found > claimed:
                    break
            assert found > claimed, f"noise for {mutant} sold as {claimed}: at least {found:.4f}"

    return check


def counted(happened: tuple[Any, Any]) -> tuple[int, int, int]:
    """How often an event happened on a table and on its neighbour, and in how many runs on each."""
    first, second = happened
    assert len(first) == len(second)
    return int(sum(first)), int(sum(second)), len(first)
