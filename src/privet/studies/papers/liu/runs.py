"""What was run of Liu et al., compared fold by fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import Claim, ClaimReading
from privet.studies.published import printed
from privet.studies.trial import Outcome
from privet.studies.verdict import p_value, positive

PAPER = "liu"
SMALL_K = 3

READINGS = {"literal": "largest cell", "sum": "sum of cells"}
FREQUENCY, BOTH_FILES = "liu-frequency", "liu-both-files"  # forms of Adult: five bins of equal frequency


@dataclass(frozen=True)
class TreeReading:
    """A reading of the paper: the score, how many attributes k are on a path, and what is done with them.

    Without k it is the paper's for each budget. `cut` is where growth stops, with the noise of k. `form` is that of
    the table.
    """

    name: str
    score: str
    k: int | None = None
    cut: int = 0
    form: str = "liu"


WAYS = tuple(
    TreeReading(f"the {name}{more}", score, k)
    for k, more in ((None, ", k as printed"), (SMALL_K, f", k = {SMALL_K} throughout"))
    for score, name in READINGS.items()
)
_WEKA = "the largest cell, k = 2 throughout, Weka's bins of equal frequency"
OTHERS = {  # readings that were found by looking for the printed numbers: hypotheses
    "adult": (
        TreeReading(_WEKA, "literal", 2, form=FREQUENCY),
        TreeReading(f"{_WEKA}, both files of Adult", "literal", 2, form=BOTH_FILES),
    ),
    "mushroom": (TreeReading("the largest cell, k as printed, growth stopped at depth 4", "literal", cut=4),),
}


def ways_of(data: str) -> tuple[TreeReading, ...]:
    """The readings of a table: by score and k, and those found afterwards."""
    return (*WAYS, *OTHERS[data])


MAXIMAL = {"maxtree": "MaxTree", "maxforest": "MaxForest"}
RANDOM = {"jagannathan": "JDPForest", "snr-forest": "SNRForest"}

_SETUP = printed(PAPER)["setup"]
EPSILONS: tuple[str, ...] = tuple(_SETUP["epsilon"])
PRINTED_K: dict[str, int] = dict(zip(EPSILONS, _SETUP["k"], strict=True))

Folds = Mapping[int, float]  # percent right by fold
Line = Mapping[str, Folds]  # by epsilon


class Runs:
    """Percent right by learner, score, k and epsilon, form and cut; a random forest has neither score nor k."""

    def __init__(self, outcomes: Iterable[Outcome]) -> None:
        self._found: dict[tuple[str, str, int, str, str, int], dict[int, float]] = {}
        self._majority: dict[int, float] = {}
        for outcome in outcomes:
            if outcome.result is not None:
                trial, options = outcome.trial, dict(outcome.trial.options)
                k, form = int(options.get("max_depth") or 0), trial.data.partition("/")[2]
                score, cut = str(options.get("score", "")), int(options.get("cut") or 0)
                key = trial.learner, score, k, trial.epsilon, form, cut
                self._found.setdefault(key, {})[trial.seed] = float(outcome.result["accuracy"])
                self._majority[trial.seed] = float(outcome.result["majority"])

    @property
    def epsilons(self) -> list[str]:
        return sorted({key[3] for key in self._found}, key=float)

    @property
    def ks(self) -> list[int]:
        return sorted({key[2] for key in self._found if key[2]})

    def folds(self, learner: str, score: str, k: int, epsilon: str, form: str = "liu", cut: int = 0) -> Folds:
        return self._found.get((learner, score, k, epsilon, form, cut), {})

    def of(self, learner: str, way: TreeReading) -> Line:
        """A learner in a reading, by epsilon in order."""
        depths = {epsilon: PRINTED_K[epsilon] if way.k is None else way.k for epsilon in self.epsilons}
        found = {
            epsilon: self.folds(learner, way.score, k, epsilon, way.form, way.cut) for epsilon, k in depths.items()
        }
        return {epsilon: folds for epsilon, folds in found.items() if folds}

    def line(self, learner: str, score: str = "", k: int | None = None) -> Line:
        """By epsilon in order, with this k or with the paper's for each."""
        depths = {epsilon: 0 if not score else PRINTED_K[epsilon] if k is None else k for epsilon in self.epsilons}
        found = {epsilon: self.folds(learner, score, depth, epsilon) for epsilon, depth in depths.items()}
        return {epsilon: folds for epsilon, folds in found.items() if folds}

    @property
    def majority(self) -> tuple[tuple[str, Estimate], ...]:
        return (("majority class", Estimate.of(list(self._majority.values()))),) if self._majority else ()


def estimate(folds: Folds) -> Estimate:
    return Estimate.of(list(folds.values()))


def ahead(one: Folds, other: Folds) -> list[float]:
    """By how many points one is ahead of the other in each fold that both have."""
    return [one[fold] - other[fold] for fold in one if fold in other]


def over(one: Line, other: Line, least: float = 0.0, most: float = np.inf) -> list[float]:
    """By how many points one is ahead in each fold, on average over the budgets from `least` to `most`."""
    both = [epsilon for epsilon in one if epsilon in other and least <= float(epsilon) <= most]
    folds = sorted(set.intersection(*(set(one[e]) & set(other[e]) for e in both))) if both else []
    return [float(np.mean([one[e][fold] - other[e][fold] for e in both])) for fold in folds]


# -- how steady -------------------------------------------------------------------------------------


def steadier(one: Line, other: Line) -> bool | None:
    """Whether folds lie closer to their median, all budgets together (after Brown and Forsythe 1974).

    At each budget distances are taken in units of their mean over both, so that none outweighs the others.
    """
    gains: list[float] = []
    for epsilon in one:
        near, far = _distances(one[epsilon]), _distances(other.get(epsilon, {}))
        usual = float(np.mean([*near.values(), *far.values()])) if near and far else 0.0
        gains += [(far[fold] - near[fold]) / usual for fold in near if fold in far] if usual else []
    return positive(gains)


def _distances(folds: Folds) -> dict[int, float]:
    if len(folds) < 3:
        return {}
    middle = float(np.median(list(folds.values())))
    return {fold: abs(value - middle) for fold, value in folds.items()}


# -- words ----------------------------------------------------------------------------------------


def claim(place: str, name: str, who: str, holds: bool | None, evidence: str, erratum: str) -> Claim:
    """A sentence of the paper about a learner, and what came of it."""
    why = printed(PAPER)["errata"][erratum] if holds is False else ""
    return Claim(f"{printed(PAPER)[place]['claims'][name]} {who}.", holds, evidence, why)


def read_claim(place: str, name: str, readings: Sequence[ClaimReading], erratum: str, who: str = "") -> Claim:
    """A sentence of the paper in every reading that was run."""
    text = printed(PAPER)[place]["claims"][name] + (f" {who}." if who else "")
    return Claim.read(text, readings, erratum=printed(PAPER)["errata"][erratum])


def points(differences: Sequence[float]) -> str:
    if not differences:
        return "(not run)"
    return f"{float(np.mean(differences)):+.2f} points (p {p_value(differences):.2g}, {len(differences)} folds)"


def listed(found: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{name} {points(each)}" for name, each in found.items())


def means(line: Line) -> str:
    return ", ".join(f"{estimate(folds).mean:.1f} at {epsilon}" for epsilon, folds in line.items())


def spread(line: Line, epsilon: str) -> str:
    return f"{estimate(line[epsilon]).sd:.1f}" if epsilon in line else "(not run)"
