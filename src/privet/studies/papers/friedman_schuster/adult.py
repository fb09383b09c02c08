"""Adult by ten-fold cross-validation: figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from privet.studies.estimate import corrected_t_test
from privet.studies.findings import Claim, ClaimReading, Findings, Panel
from privet.studies.papers.friedman_schuster.claims import AS_PRINTED, JOINTLY, ON_THE_LEFT, PLOT, RANGES, said
from privet.studies.papers.friedman_schuster.runs import (
    REREAD,
    Method,
    Runs,
    diffpc45,
    is_reread,
    points,
    with_sensitivity,
)
from privet.studies.trial import Outcome, Trial
from privet.studies.verdict import all_of

DEPTH = 5
FOLDS = 10
CONFIDENCE = 0.05
ENOUGH = 100  # folds, as the paper had: what ten cross-validations do not find is not there
DATA = "adult/all"  # complete rows, with all 14 attributes

PUBLISHED = diffpc45(DEPTH)
CORRECTED = diffpc45(DEPTH, "corrected")

BUDGETS = {
    "tiny": ("1",),
    "quick": ("0.75", "3"),
    "medium": ("0.75", "1.5", "3"),
    "full": ("0.75", "1", "1.5", "2", "3", "4"),
}
CORRECTED_BUDGETS = {"tiny": (), "quick": ("3",), "medium": ("3",), "full": BUDGETS["full"]}
REPEATS = {"tiny": 2, "quick": FOLDS, "medium": 10 * FOLDS, "full": 10 * FOLDS}
ROWS = {"tiny": 2000, "quick": None, "medium": None, "full": None}


WITH_SENSITIVITY = with_sensitivity(PUBLISHED)


def figure_8_trials(size: str) -> list[Trial]:
    return [
        method.trial(DATA, epsilon=budget, seed=seed, rows=ROWS[size], folds=FOLDS, **settings)
        for methods, budgets, settings in (
            (PUBLISHED, BUDGETS[size], {}),
            (WITH_SENSITIVITY, BUDGETS[size], REREAD),
            (CORRECTED, CORRECTED_BUDGETS[size], {}),
        )
        for method in methods
        for budget in budgets
        for seed in range(REPEATS[size])
    ]


def read_figure_8(outcomes: Sequence[Outcome]) -> Findings:
    as_printed = [outcome for outcome in outcomes if not is_reread(outcome)]
    runs = Runs(as_printed, [*PUBLISHED, *CORRECTED], lambda trial: float(trial.epsilon))
    other = Runs(list(filter(is_reread, outcomes)), WITH_SENSITIVITY, lambda trial: float(trial.epsilon))
    cells = (*runs.cells(), *other.cells())
    panel = Panel("Adult, depth up to 5, ten-fold cross-validation", "privacy budget B", cells, log=True)
    read = {
        AS_PRINTED: _in_order(runs, PUBLISHED, said("adult")),
        ON_THE_LEFT: _in_order(other, WITH_SENSITIVITY, ""),
    }
    readings = [ClaimReading(name, found.holds, found.evidence) for name, found in read.items()]
    why = next(iter(read.values())).erratum
    claims = (
        Claim.read(said("adult"), readings, erratum=f"{why} {RANGES}".strip()),
        _in_order(runs, CORRECTED, "Ours, not the paper's: the same for the corrected variant, which is private"),
        _more_budget(runs),
    )
    return Findings((panel,), claims, (PLOT, RANGES, JOINTLY, AXIS, *_spread(runs)))


def _significant(differences: Sequence[float]) -> int:
    """1 where they are above 0 by the corrected test, -1 where below, 0 where it cannot tell."""
    if len(differences) < 2 or corrected_t_test(differences, 1 / FOLDS) >= CONFIDENCE:
        return 0
    return 1 if np.mean(differences) > 0 else -1


def _in_order(runs: Runs, methods: Sequence[Method], text: str, erratum: str = "") -> Claim:
    """Max over Gini, and both over InfoGain, at most of the budgets."""
    infogain, gini, best = (method.name for method in methods)
    verdicts, told, means = [], [], []
    for one, other in ((best, gini), (best, infogain), (gini, infogain)):
        gaps = {at: runs.differences(one, other, [at]) for at in runs.shared(one, other)}
        signs = [_significant(gap) for gap in gaps.values()]
        folds = min((len(gap) for gap in gaps.values()), default=0)
        verdicts.append(_most(signs, folds))
        pooled = [gap for each in gaps.values() for gap in each]
        means.append(sum(pooled))
        told.append(
            f"{one} over {other}: significantly better at {signs.count(1)} of {len(signs)} budgets, worse at "
            f"{signs.count(-1)}, {points(pooled)}"
        )
    holds = all_of(verdicts)
    why = [*([ON_AVERAGE] if min(means) > 0 else []), *([erratum] if erratum else [])]
    return Claim(text, holds, "; ".join(told), "" if holds else " ".join(why))


def _most(signs: Sequence[int], folds: int) -> bool | None:
    """Better at most budgets; not so where it is worse at most, or as many folds as the paper's do not show it."""
    if 2 * signs.count(1) > len(signs):
        return True
    return False if 2 * signs.count(-1) > len(signs) or (signs and folds >= ENOUGH) else None


def _more_budget(runs: Runs) -> Claim:
    """The largest budget against the smallest, on the same folds."""
    verdicts, told = [], []
    for method in PUBLISHED:
        places = runs.places(method.name)
        gap = runs.growth(method.name, places[0], places[-1]) if len(places) > 1 else []
        sign = _significant(gap)
        verdicts.append(True if sign == 1 else False if sign == -1 else None)
        told.append(f"{method.name} {points(gap)}")
    return Claim(said("budget"), all_of(verdicts), f"from the smallest budget to the largest: {'; '.join(told)}")


def _spread(runs: Runs) -> list[str]:
    found = [runs.estimate(method.name, at) for method in PUBLISHED for at in runs.places(method.name)]
    deviations = [each.sd for each in found if each is not None and each.n > 1]
    if not deviations:
        return []
    return [
        f"The paper's typical standard deviation is 0.5 points; ours over folds is {median(deviations):.1f} in the "
        f"middle of all cells, {min(deviations):.1f} to {max(deviations):.1f}."
    ]


ON_AVERAGE = (
    "The means are in this order. A test that knows that folds share rows does not find it; our folds vary by more "
    "than the 0.5 points that the paper reports."
)
AXIS = (
    "The budgets are ours: those of the paper's figure are not named in its text, which says that larger ones than "
    "usual were taken."
)
