"""Whether something holds in repeated runs: yes, no, or not to be said from so few."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.stats import t

CERTAIN = 0.01  # the p-value below which a difference is one; repeats that share rows make it a little too small


def p_value(differences: Sequence[float]) -> float:
    """That paired differences are zero on average, by Student's test: noise is drawn anew in every repeat."""
    n, mean = len(differences), abs(float(np.mean(differences))) if len(differences) else 0.0
    if n < 2:
        return 1.0
    se = float(np.std(differences, ddof=1)) / math.sqrt(n)
    if se <= 1e-9 * mean:
        return 0.0 if n > 2 and mean else 1.0  # two that are equal may be so by chance
    return float(2 * t.sf(mean / se, n - 1))


def positive(differences: Sequence[float], certain: float = CERTAIN) -> bool | None:
    """Whether differences are above zero on average; None where chance may have done it.

    >>> positive([2.0, 3.0, 2.5, 2.2]), positive([-2.0, -3.0, -2.5, -2.2]), positive([2.0, -3.0]), positive([2.0])
    (True, False, None, None)
    """
    return float(np.mean(differences)) > 0 if p_value(differences) < certain else None


def below(values: Sequence[float], most: float, certain: float = CERTAIN) -> bool | None:
    """Whether values are below a bound on average."""
    return positive([most - value for value in values], certain)


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all parts of a claim hold: one that does not is enough, one that is open leaves it open.

    >>> all_of([True, None]), all_of([None, False]), all_of([True, True]), all_of([])
    (None, False, True, None)
    """
    found = list(verdicts)
    return False if False in found else None if None in found or not found else True


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether one part of a claim holds, which is enough.

    >>> any_of([True, None]), any_of([None, False]), any_of([False, False]), any_of([])
    (True, None, False, None)
    """
    found = list(verdicts)
    return True if True in found else None if None in found or not found else False
