"""What trials take: the CPU seconds that a run recorded, and an estimate where it has not come to all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from privet.studies.trial import Outcome, Trial


@dataclass(frozen=True)
class Cost:
    """CPU seconds of some trials, and of how many they were measured; those of the others are estimated."""

    trials: int
    measured: int
    seconds: float

    def __str__(self) -> str:
        seconds = f"{self.seconds:.1f} seconds" if self.seconds < 10 else f"{self.seconds:.0f} seconds"
        told = f"{self.seconds / 60:,.0f} minutes" if self.seconds >= 120 else seconds
        text = f"{self.trials:,} trials take {told} of CPU time"
        return text if self.measured == self.trials else f"{text}, estimated from {self.measured:,} of them"


def cost(trials: Iterable[Trial], found: Mapping[str, Outcome]) -> Cost | None:
    """What these trials take, each counted once, by what a file of results has recorded.

    A trial that was not measured is taken to cost what the middle one of those costs that differ from it in their seed
    alone, or the mean of all where there is none.

    Parameters
    ----------
    trials : iterable of Trial
        Those that are asked about.
    found : mapping of str to Outcome
        Outcomes by the key of their trial, as `recorded` reads them.

    Returns
    -------
    Cost or None
        None if none of them was measured.
    """
    wanted = {trial.key: trial for trial in trials}
    measured = {key: found[key].cpu for key in wanted if key in found}
    known = {key: seconds for key, seconds in measured.items() if seconds is not None}
    if not known:
        return None
    by_kind: dict[Trial, list[float]] = {}
    for key, seconds in known.items():
        by_kind.setdefault(replace(wanted[key], seed=0), []).append(seconds)
    usual = {kind: median(each) for kind, each in by_kind.items()}
    mean = fmean(known.values())
    others = [usual.get(replace(trial, seed=0), mean) for key, trial in wanted.items() if key not in known]
    return Cost(len(wanted), len(known), sum(known.values()) + sum(others))
