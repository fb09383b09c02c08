"""How probably a statistical test misses what it must reject: computed from the draws of the mutant itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm


def stated(miss: float) -> str:
    """The power in full: how close it is to 1 is what matters."""
    return f"{1 - miss:.4f}" if miss > 1e-3 else f"1 - {max(miss, 1e-99):.0e}"


def miss_of_divergence(sample: Iterable[Any], pmf: Mapping[Any, float], alpha: float) -> float:
    """The probability that as many draws as these, from where these came from, are taken for draws from `pmf`.

    Parameters
    ----------
    sample : iterable
        Draws from the mutant.
    pmf : mapping
        Probabilities of the honest mechanism; what it does not name is one cell more.
    alpha : float
        Below which the bound of Agrawal (2020) rejects.

    Returns
    -------
    float
        By the normal approximation of the log likelihood ratio, with the frequencies of the draws.
    """
    seen: Counter[Any] = Counter(outcome if outcome in pmf else "elsewhere" for outcome in sample)
    cells = {**pmf, "elsewhere": max(1 - sum(pmf.values()), 0.0)}
    n, freedom = seen.total(), len(cells) - 1
    shares = np.array([times / n for times in seen.values()])
    honest = np.array([cells[outcome] for outcome in seen])
    impossible = float(shares[honest < 1e-12].sum())
    if impossible:
        return (1 - impossible) ** n
    ratios = np.log(shares / honest)
    mean = float(shares @ ratios)
    deviation = math.sqrt(max(float(shares @ ratios**2) - mean**2, 1e-30) / n)
    # the divergence at which the bound is alpha
    needed = brentq(lambda x: -x + freedom * (1 + math.log(x / freedom)) - math.log(alpha), freedom, 1e6) / n
    return float(norm.sf((mean - needed) / deviation))


def miss_of_neighbours(likely: int, unlikely: int, n: int, claimed: float, alpha: float) -> float:
    """The probability that n runs on each of two tables do not put the loss above `claimed`.

    The event happens as often as it did in runs of the mutant: `likely` times in n on the first table, `unlikely` times
    on the second.
    """
    rare = np.arange(*binom.interval(1 - 1e-12, n, unlikely / n), dtype=float)
    highest = np.where(rare >= n, 1.0, beta.ppf(1 - alpha / 2, rare + 1, np.maximum(n - rare, 1e-9)))
    # a lower bound of Clopper and Pearson exceeds t where as many or more are improbable under t
    most = binom.isf(alpha / 2, n, np.minimum(math.exp(claimed) * highest, 1.0))
    return float(binom.pmf(rare, n, unlikely / n) @ binom.cdf(most, n, likely / n))
