"""Two tests with proven error rates, shared by all statistical tests.

Production noise has no seed, so a false alarm must be practically impossible: both
tests bound its probability for every sample size, without a normal approximation.
Each is run on the honest mechanism, which must pass, and on mutants, which must not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import beta

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
def assert_follows() -> Callable[..., None]:
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
        for factor in (1, *detects):
            p = p_bound(sample(Fraction(str(factor))), pmf)
            honest = factor == 1
            assert (p > alpha) == honest, f"scale times {factor}: p = {p:.3g}"

    return check


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
def assert_private() -> Callable[..., None]:
    """`assert_private(events, claimed=1, mutants=("1.25",))`.

    `events(epsilon)` runs the mechanism with noise for `epsilon` n times on a table and n times on a neighbour and
    says in which runs an event happened that is likely on the first. Hypothesis: no event is more than exp(claimed)
    times as likely on the neighbour. With noise for `claimed` it is rejected with probability 1e-6 at most; noise for
    a mutant, sold as `claimed`, must be caught.
    """

    def check(
        events: Callable[[Fraction], tuple[Any, Any]], claimed: float = 1, mutants: Sequence[str] = ("1.25",)
    ) -> None:
        for epsilon in (Fraction(claimed), *map(Fraction, mutants)):
            first, second = events(epsilon)
            assert len(first) == len(second)
            found = epsilon_at_least(int(sum(first)), int(sum(second)), len(first))
            honest = epsilon <= claimed
            assert (found <= claimed) == honest, f"noise for {epsilon} sold as {claimed}: at least {found:.4f}"

    return check
