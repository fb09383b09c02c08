"""Who is in the table? The accuracy of the best guess, against what epsilon allows.

Canaries are in a table by fair coins. A count of one canary alone, with two-sided geometric
noise, is at least 1 more often where they are there, and no test of it is better than that
threshold (Neyman and Pearson). Whatever is published, a guess is right with probability
exp(epsilon) / (1 + exp(epsilon)) at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scipy.stats import beta

from privet.choice.auto import CLASSIFIERS
from privet.verification.checks import guessed
from privet.verification.estimators import canaries
from privet.verification.subject import Progress

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def ceiling(epsilon: float) -> float:
    """The largest probability with which anybody can guess whether a person is in a table."""
    return 1 / (1 + math.exp(-epsilon))


def curve(
    algorithm: str,
    epsilons: Sequence[float] = EPSILONS,
    fits: int = 5,
    progress: Progress = lambda text: None,
    **parameters: Any,
) -> dict[str, Any]:
    """Guesses about every canary of a few fits, for each epsilon, with intervals that hold with 95%."""
    points = []
    for epsilon in epsilons:
        progress(f"membership in {algorithm} at epsilon {epsilon:g}")
        check = canaries(CLASSIFIERS[algorithm](epsilon, **parameters), fits)
        there, counts = check.sample(fits)
        right, guesses = guessed(there, counts, high=0.5, low=0.5)
        low = float(beta.ppf(0.025, right, guesses - right + 1)) if right else 0.0
        high = float(beta.ppf(0.975, right + 1, guesses - right)) if right < guesses else 1.0
        points.append(
            {
                "epsilon": epsilon,
                "accuracy": right / guesses,
                "ceiling": ceiling(epsilon),
                "guesses": guesses,
                "low": low,
                "high": high,
            }
        )
    return {"curve": "membership", "subject": algorithm, "points": points}
