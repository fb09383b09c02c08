"""`python -m bench fits`: what a fit on Adult takes, ours beside DP-EBM and noisy gradient descent.

CPU seconds of one thread, as `bench.measure` takes them: coding the rows is part of a fit. The median of five splits,
on which all take turns, so that a busy machine slows all alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

from rich.table import Table

from bench import PEERS, ROOT, trials
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.worker_pool import WorkerPool, problems

DATA, EPSILONS, REPEATS = "adult", ("0.1", "1"), 5
NAMES = ("boosted", "boosted-delta", "noisy-gd", "dp-ebm-05", "dp-ebm")
PEER = "dp-ebm-05"  # the faster setting of DP-EBM that loses no accuracy

Fits = Mapping[str, Mapping[str, float]]  # CPU seconds by learner and epsilon


def measure(say: Callable[[str], None]) -> Fits:
    """Return the CPU seconds of a fit, for each learner that can be run here."""
    why = problems(NAMES, PEERS)
    for problem in filter(None, why.values()):
        say(problem)
    learners = [LEARNERS[name] for name in NAMES if not why[name]]
    taken: dict[str, dict[str, list[float]]] = {
        learner.name: {epsilon: [] for epsilon in EPSILONS} for learner in learners
    }
    with WorkerPool("bench.measure:measure", peers=PEERS, home=ROOT) as workers:
        for trial in trials.accuracy([DATA], learners, EPSILONS, REPEATS):
            taken[trial.learner][trial.epsilon].append(workers(trial)["fit"])
    return {
        name: {epsilon: statistics.median(times) for epsilon, times in of_epsilon.items()}
        for name, of_epsilon in taken.items()
    }


def shown(fits: Fits) -> Table:
    """Return the figures for a terminal, with how often ours fit goes into DP-EBM's."""
    table = Table(title=f"CPU seconds of a fit on {DATA}, median of {REPEATS}", title_justify="left")
    for heading in ("learner", *(f"epsilon {epsilon}" for epsilon in EPSILONS), *(f"of {PEER}" for _ in EPSILONS)):
        table.add_column(heading, justify="left" if heading == "learner" else "right")
    peer: Mapping[str, Any] = fits.get(PEER, {})
    for name, times in fits.items():
        ratios = [f"{times[epsilon] / peer[epsilon]:.2f}" if peer else "" for epsilon in EPSILONS]
        table.add_row(LEARNERS[name].title, *(f"{times[epsilon]:.3f}" for epsilon in EPSILONS), *ratios)
    return table
