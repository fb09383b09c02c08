"""The trials of the benchmark: every learner on the same splits at every epsilon, and on more and more rows.

Growth goes to ten million rows for ours. Peers stop at a million: DP-EBM takes half a minute for a fit there, the
others up to twelve seconds, and ten times the rows would take minutes each and gigabytes beside the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.split import GROWTH
from privet.studies import Trial
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.learners import Learner

EPSILONS = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2", "4", "10")
QUICK_EPSILONS = ("0.1", "1")
REPEATS, QUICK_REPEATS = 10, 2
ROWS, QUICK_ROWS = (10**4, 10**5, 10**6, 10**7), (10**4, 10**5)
PEERS_ROWS = 10**6  # at most
GROWTH_REPEATS = 3


def accuracy(
    sets: Iterable[str], learners: Sequence[Learner], epsilons: Sequence[str], repeats: int, rows: int | None = None
) -> Iterator[Trial]:
    """Ours and the peers take turns on one split after the other, so that a busy machine slows all alike."""
    for data in sets:
        for seed in range(repeats):
            for epsilon in epsilons:
                for learner in learners:
                    if learner.private:
                        yield Trial(data, learner.name, epsilon, seed, rows, learner.options)
            for learner in learners:
                if not learner.private:
                    yield Trial(data, learner.name, "", seed, rows, learner.options)


def growth(learners: Sequence[Learner], sizes: Sequence[int], repeats: int) -> Iterator[Trial]:
    for rows in sizes:
        for seed in range(min(repeats, GROWTH_REPEATS)):
            for learner in learners:
                if learner.grows and (learner.ours or rows <= PEERS_ROWS):
                    yield Trial(GROWTH, learner.name, "1" if learner.private else "", seed, rows, learner.options)


def current(trial: Trial) -> bool:
    """True where this is what the benchmark would run today: results of other options are of another benchmark."""
    learner = LEARNERS.get(trial.learner)
    return learner is not None and trial.options == learner.options
