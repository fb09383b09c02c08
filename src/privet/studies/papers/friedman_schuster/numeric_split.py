"""A single split of one of three numbers: figures 4 and 5."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.studies.findings import Claim, Findings, Panel
from privet.studies.pages.words import amount
from privet.studies.papers.friedman_schuster.claims import JOINTLY, PLOT, RANGES, said
from privet.studies.papers.friedman_schuster.runs import (
    Method,
    Runs,
    diffpc45,
    diffpid3,
    in_order,
    points,
    rows_text,
)
from privet.studies.papers.friedman_schuster.single_split import BEST, LEVEL, by_rows, figure_3_trials, split_trials
from privet.studies.trial import Outcome, Trial
from privet.studies.verdict import all_of, positive

CUT = diffpc45(1)
BINNED = diffpid3(1)
JOINT = diffpc45(1, "corrected")[-1]
JOINT_BINNED = diffpid3(1, "corrected")[-1]
J48 = tuple(
    Method(name, "c45", (("certainty", certainty), ("max_depth", 20)))
    # at a certainty near 1 hardly a subtree that errs less than a leaf is cut
    for name, certainty in (("J48", 0.25), ("J48, unpruned", 0.999))
)

ROWS = {
    "tiny": (300, 1000),
    "quick": (500, 1000, 2000, 3000, 5000),
    "medium": (500, 1000, 2000, 3000, 5000),
    "full": (100, 250, 500, *range(1000, 5001, 500)),
}
J48_ROWS = {**ROWS, "quick": (500, 2000, 5000), "medium": (500, 2000, 5000)}
BINNED_ROWS = {
    "tiny": (600, 1000),
    "quick": (500, 750, 1000, 2000, 5000),
    "medium": (500, 750, 1000, 2000, 5000),
    "full": (100, 250, 500, 750, *range(1000, 5001, 500)),
}
REPEATS = {"tiny": 2, "quick": 16, "medium": 60, "full": 200}
J48_REPEATS = {"tiny": 1, "quick": 2, "medium": 8, "full": 50}  # half a second each, and they vary little


# -- figure 4 ------------------------------------------------------------------------------------


def figure_4_trials(size: str) -> list[Trial]:
    return [
        *split_trials([*CUT, JOINT], ROWS[size], REPEATS[size], numeric=3),
        *split_trials(J48, J48_ROWS[size], J48_REPEATS[size], numeric=3),
        *(trial for trial in figure_3_trials(size) if trial.options == BEST.options),
    ]


def read_figure_4(outcomes: Sequence[Outcome]) -> Findings:
    runs = Runs(outcomes, [*J48, *CUT, JOINT], by_rows)
    panel = Panel("One split of a number at 35, B = 0.1, p_noise = 0.1", "training rows", runs.cells(), log=True)
    names = [method.name for method in reversed(CUT)]
    where = [at for at in runs.shared(*names) if 500 <= at <= 3000]
    order = Claim(said("numeric scorers"), *in_order(runs, names, where))
    both = Runs(outcomes, [CUT[-1], BEST], by_rows)
    return Findings((panel,), (order, _more_samples(both)), (PLOT, RANGES, JOINTLY, C45))


def _more_samples(runs: Runs) -> Claim:
    """Rows that a threshold needs, against those that a binary attribute does."""
    nominal, numeric = BEST.name, CUT[-1].name
    told = (f"{name} {rows_text(runs.rows_needed(name, LEVEL))}" for name in (nominal, numeric))
    evidence = f"rows for {LEVEL:.0f}%: {', '.join(told)}"
    factor, low, high = runs.saving(nominal, numeric, LEVEL)
    if not factor:
        return Claim(said("more samples"), None, evidence)
    evidence += f"; {factor:.1f} times as many (95% interval {low:.1f} to {high:.1f})"
    return Claim(said("more samples"), True if low > 1 else False if high < 1 else None, evidence)


# -- figure 5 ------------------------------------------------------------------------------------


def figure_5_trials(size: str) -> list[Trial]:
    scorers = slice(None) if size == "full" else slice(1, None)  # InfoGain needs more rows and says the same
    methods = [*CUT[scorers], *BINNED[scorers], JOINT, JOINT_BINNED]
    return split_trials(methods, BINNED_ROWS[size], REPEATS[size], epsilon="0.2", numeric=3, p_noise=0.0)


def read_figure_5(outcomes: Sequence[Outcome]) -> Findings:
    runs = Runs(outcomes, [*CUT, *BINNED, JOINT, JOINT_BINNED], by_rows)
    title = "A number cut at a threshold (DiffPC4.5) or in ten bins (DiffPID3), B = 0.2, p_noise = 0"
    panel = Panel(title, "training rows", runs.cells(), log=True)
    pairs = [(cut.name, binned.name) for cut, binned in zip(reversed(CUT), reversed(BINNED), strict=True)]
    crossings = [_crossing(runs, *pair) for pair in pairs if runs.shared(*pair)]
    return Findings((panel,), (*crossings, _never_behind(runs)), (PLOT, TEN_BINS, RANGES, JOINTLY))


def _crossing(runs: Runs, cut: str, binned: str) -> Claim:
    """Bins are ahead where rows are few but enough to divide ten ways, and thresholds where they are most."""
    places = runs.shared(cut, binned)
    few = runs.differences(binned, cut, [at for at in places if TEN_WAYS < at <= FEW])
    many = runs.differences(cut, binned, [at for at in places[-1:] if at > FEW])
    text = f"{said('crossing')} ({cut} and {binned})"
    return Claim(text, all_of([positive(few), positive(many)]), _signs(runs, cut, binned)[1], STOP)


def _never_behind(runs: Runs) -> Claim:
    """What becomes of the trade-off where thresholds cost nothing by themselves."""
    signs, evidence = _signs(runs, JOINT.name, JOINT_BINNED.name)
    holds = False if False in signs else True if signs and signs[-1] else None
    text = (
        "Ours, not the paper's: with both corrected, threshold and attribute chosen together, bins are better nowhere"
    )
    return Claim(text, holds, evidence)


def _signs(runs: Runs, cut: str, binned: str) -> tuple[list[bool | None], str]:
    """At each number of rows, is the threshold ahead?"""
    gaps = {at: runs.differences(cut, binned, [at]) for at in runs.shared(cut, binned)}
    told = "; ".join(f"at {amount(at)} {points(gap)}" for at, gap in gaps.items())
    return [positive(gap) for gap in gaps.values()], f"threshold over bins: {told or 'not run'}"


TEN_WAYS, TWO_WAYS = 20 * math.sqrt(2) / 0.05, 4 * math.sqrt(2) / (0.2 / 7)  # rows that the stop rule wants
FEW = 1000
C45 = "J48 is Weka's C4.5; ours is privet's, with and without error-based pruning, at most 20 levels deep."
TEN_BINS = "Ten bins get 95% at best: the bin from 30 to 40 has as many rows of one class as of the other."
STOP = (
    f"Smaller is not smallest: the stop rule lets nobody divide ten ways below {TEN_WAYS:.0f} rows, and two ways below "
    f"{TWO_WAYS:.0f}. Between these a tree on bins is a leaf, and a threshold is better once more; such rows are left "
    "out of the verdict."
)
