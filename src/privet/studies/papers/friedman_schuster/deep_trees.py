"""Trees of depth 5 on generated rows: figures 6 and 7, and the Pareto view of figure 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import At, Claim, ClaimReading, Findings, Panel
from privet.studies.pages.words import amount
from privet.studies.papers.friedman_schuster.claims import AS_PRINTED, JOINTLY, ON_THE_LEFT, PLOT, RANGES, said
from privet.studies.papers.friedman_schuster.runs import (
    REREAD,
    Method,
    Runs,
    ahead_of,
    diffpc45,
    diffpid3,
    in_order,
    is_reread,
    points,
    rows_text,
    sulq,
    with_sensitivity,
)
from privet.studies.trial import Outcome, Plain, Trial
from privet.studies.verdict import CERTAIN, all_of, positive

DEPTH = 5
FEWEST = 8  # runs, below which nothing is said of who is best
RUNS = 20  # on each tree
LEVEL = 85.0  # percent, at which rows needed are compared
FEW, MANY = 2000, 30_000  # rows up to which they are few, and from which on they are many

SULQ = sulq(DEPTH)
NOMINAL = diffpid3(DEPTH)
NUMERIC = diffpc45(DEPTH)
WITH_SENSITIVITY = with_sensitivity(NUMERIC)
JOINT = diffpc45(DEPTH, "corrected")
PLUS = Method("ID3+", "id3plus")
# without privacy, and with the same constraint on the depth
PLAIN = tuple(
    Method(f"ID3 by {name} to depth 5, not private", "id3", (("criterion", criterion), ("max_depth", DEPTH)))
    for name, criterion in (("InfoGain", "infogain"), ("Max", "max"))
)

NOMINAL_ROWS = {
    "tiny": (500, 2000),
    "quick": (1000, 3000, 10_000, 50_000),
    "medium": (1000, 3000, 10_000, 50_000),
    "full": (1000, 2000, 3000, 5000, 10_000, 20_000, 30_000, 40_000, 50_000),
}
NUMERIC_ROWS = {**NOMINAL_ROWS, "tiny": (500,), "quick": (1000, 5000, 50_000), "medium": (1000, 5000, 50_000)}
EPSILONS = {
    "tiny": ("0.3", "1"),
    "quick": ("0.01", "0.03", "0.1", "0.3", "1"),
    "medium": ("0.01", "0.03", "0.1", "0.3", "1"),
    "full": ("0.01", "0.02", "0.03", "0.05", "0.1", "0.2", "0.3", "0.5", "1", "2", "3"),
}
TREES = {"tiny": 2, "quick": 20, "medium": 120, "full": 20}  # the paper has ten; they differ more than runs on one do
FEWER_TREES = {**TREES, "quick": 10, "medium": 100}
MORE_TREES = {**FEWER_TREES, "medium": 600}  # with few rows, where runs are short and noise decides
REPEATS = {"tiny": 1, "quick": 1, "medium": 1, "full": RUNS}  # on each tree


def _trials(
    methods: Iterable[Method],
    rows: Sequence[int],
    trees: int,
    repeats: int,
    epsilons: Sequence[str] = ("1",),
    **settings: Plain,
) -> list[Trial]:
    seeds = [RUNS * tree + run for tree in range(trees) for run in range(repeats)]
    return [
        method.trial("random-tree", epsilon=epsilon, seed=seed, rows=some, runs=RUNS, **settings)
        for method in methods
        for epsilon in epsilons
        for some in rows
        for seed in seeds
    ]


def _by_rows(trial: Trial) -> At:
    return float(trial.rows or 0)


# -- figures 6 and 7 -----------------------------------------------------------------------------


def figure_6_trials(size: str) -> list[Trial]:
    rows, trees, repeats = NOMINAL_ROWS[size], TREES[size], REPEATS[size]
    return [*_trials([*NOMINAL, SULQ], rows, trees, repeats), *_trials(PLAIN, rows[-1:], trees, repeats)]


def read_figure_6(outcomes: Sequence[Outcome]) -> Findings:
    runs = Runs(outcomes, [*NOMINAL, SULQ, *PLAIN], _by_rows)
    panel = Panel("Depth 5, ten binary attributes, B = 1, p_leaf = 0.3", "training rows", runs.cells(), log=True)
    others = [*(method.name for method in NOMINAL[:2]), SULQ.name]
    claims = (
        _few(runs, [method.name for method in NOMINAL]),
        _many(runs, others, NOMINAL[-1].name),
        _constrained(runs),
        _fewer_samples(runs),
    )
    return Findings((panel,), claims, (PLOT, NO_NOISE, TWENTY, *_deviations(runs, [*NOMINAL, SULQ], "spread")))


def figure_7_trials(size: str) -> list[Trial]:
    methods = [*NUMERIC, *JOINT] if size == "full" else NUMERIC
    ways: tuple[tuple[Sequence[Method], dict[str, Plain]], ...] = ((methods, {}), (WITH_SENSITIVITY, REREAD))
    return [
        trial
        for few, *more in [NUMERIC_ROWS[size]]
        for rows, trees in (([few], MORE_TREES[size]), (more, FEWER_TREES[size]))
        for read, settings in ways
        for trial in _trials(read, rows, trees, REPEATS[size], ("1",), numeric=3, **settings)
    ]


def read_figure_7(outcomes: Sequence[Outcome]) -> Findings:
    runs = Runs([outcome for outcome in outcomes if not is_reread(outcome)], [*NUMERIC, *JOINT], _by_rows)
    other = Runs(list(filter(is_reread, outcomes)), WITH_SENSITIVITY, _by_rows)
    title = "Depth 5, seven binary and three numeric attributes, B = 1, p_leaf = 0.3"
    panel = Panel(title, "training rows", (*runs.cells(), *other.cells()), log=True)
    claims = (
        _reread(lambda found, scorers: _few(found, scorers), runs, other, RANGES),
        _reread(lambda found, scorers: _many(found, scorers[:2], scorers[2]), runs, other, RANGES),
    )
    notes = (PLOT, RANGES, JOINTLY, NO_NOISE, TWENTY, *_deviations(runs, NUMERIC, "spread, numeric"))
    return Findings((panel,), claims, notes)


def _reread(judge: Callable[[Runs, Sequence[str]], Claim], runs: Runs, other: Runs, erratum: str) -> Claim:
    """A claim in both readings of the equation that chooses ranges of thresholds."""
    found = {
        AS_PRINTED: judge(runs, [method.name for method in NUMERIC]),
        ON_THE_LEFT: judge(other, [method.name for method in WITH_SENSITIVITY]),
    }
    readings = [ClaimReading(name, claim.holds, claim.evidence) for name, claim in found.items()]
    return Claim.read(found[AS_PRINTED].text, readings, erratum=erratum)


def _few(runs: Runs, scorers: Sequence[str], erratum: str = "") -> Claim:
    """Max over Gini over InfoGain, in the order of what their scores are sensitive to."""
    names = list(reversed(scorers))
    where = [at for at in runs.shared(*names) if at <= FEW]
    return Claim(said("few"), *in_order(runs, names, where, RUNS), erratum)


def _many(runs: Runs, others: Sequence[str], worst: str) -> Claim:
    where = [at for at in runs.shared(worst, *others) if at >= MANY]
    return Claim(said("many"), *ahead_of(runs, [(other, worst) for other in others], where, RUNS))


def _constrained(runs: Runs) -> Claim:
    """The reason that the paper gives, without any noise."""
    infogain, best = (method.name for method in PLAIN)
    gap = runs.differences(infogain, best, runs.shared(infogain, best), RUNS)
    return Claim(said("constrained"), positive(gap), f"not private, both to depth 5: InfoGain over Max {points(gap)}")


def _fewer_samples(runs: Runs) -> Claim:
    """The abstract's claim, for trees of depth 5."""
    names = [*(method.name for method in NOMINAL), SULQ.name]
    needed = {name: runs.rows_needed(name, LEVEL) for name in names}
    evidence = f"rows for {LEVEL:.0f}%: {', '.join(f'{name} {rows_text(rows)}' for name, rows in needed.items())}"
    best = min(names[:-1], key=lambda name: needed[name])
    factor, low, high = runs.saving(best, SULQ.name, LEVEL, RUNS)
    if not factor:
        return Claim(said("fewer"), None, evidence)
    evidence += f"; SuLQ-based ID3 needs {factor:.1f} times as many as {best} (95% interval {low:.1f} to {high:.1f})"
    holds = True if low >= 10 else False if high < 10 else None
    return Claim(said("fewer"), holds, evidence, "" if holds else NOT_TEN)


def _deviations(runs: Runs, methods: Sequence[Method], sentence: str) -> list[str]:
    """What the paper says of the deviation, and ours in the two ways in which it can be meant."""
    places = [(method.name, at) for method in methods for at in runs.places(method.name)]
    over_all = [Estimate.of(runs.values(*place)).sd for place in places if len(runs.values(*place)) > 1]
    on_one = [sd for place in places if (sd := runs.deviation_within(*place, RUNS)) is not None]
    if not over_all:
        return []
    told = f"ours over all runs is {median(over_all):.1f} points in the middle of all places"
    told += f", and {median(on_one):.1f} between runs on one tree" if on_one else ""
    return [f"{said(sentence)}; {told}. The paper does not say which of both it means."]


# -- figure 2 ------------------------------------------------------------------------------------


def figure_2_trials(size: str) -> list[Trial]:
    methods, rows = [*NOMINAL, SULQ, PLUS], NOMINAL_ROWS[size][-1:]
    return _trials(methods, rows, FEWER_TREES[size], REPEATS[size], EPSILONS[size])


def read_figure_2(outcomes: Sequence[Outcome]) -> Findings:
    runs = Runs(outcomes, [*NOMINAL, SULQ, PLUS], lambda trial: float(trial.epsilon))
    rows = max((outcome.trial.rows or 0 for outcome in outcomes), default=0)
    title = f"What privacy costs at {rows:,} rows: trees of depth 5, ten binary attributes"
    panel = Panel(title, "epsilon", runs.cells(), log=True, frontier=True)
    return Findings((panel,), (_turns(runs), _dominated(runs)), (HYPOTHETICAL,))


def _turns(runs: Runs) -> Claim:
    """Is one algorithm ahead where privacy is strictest, and another where it is loosest?"""
    places = runs.shared(*runs.names) if runs.names else []
    if len(places) < 2:
        return Claim(said("pareto"), None, "too few epsilons")
    ends = places[0], places[-1]
    first, last = (_best(runs, runs.names, at) for at in ends)
    if first == last:
        enough = min(len(runs.values(first, at)) for at in ends) >= FEWEST
        evidence = f"{first} is the best at both ends; {_of_the_paper(runs)}"
        return Claim(said("pareto"), False if enough else None, evidence)
    gaps = [runs.differences(*pair, [at], RUNS) for pair, at in zip(((first, last), (last, first)), ends, strict=True)]
    evidence = (
        f"at epsilon {amount(ends[0])} {first} over {last} {points(gaps[0])}; at {amount(ends[1])} {last} over {first} "
        f"{points(gaps[1])}"
    )
    certain = CERTAIN / (len(runs.names) - 1)  # whoever is best by chance was looked for among all
    holds = all_of(positive(gap, certain) for gap in gaps)
    return Claim(said("pareto"), holds, f"{evidence}; {_of_the_paper(runs)}")


def _of_the_paper(runs: Runs) -> str:
    """The same question for two scorers of the paper, without ours."""
    _, gini, best = (method.name for method in NOMINAL)
    gaps = {at: runs.differences(best, gini, [at], RUNS) for at in runs.shared(best, gini)}
    return f"{best} over {gini}: " + ", ".join(f"at {amount(at)} {points(gap)}" for at, gap in gaps.items())


def _best(runs: Runs, names: Sequence[str], at: At) -> str:
    return max(names, key=lambda name: float(np.mean(runs.values(name, at))))


def _dominated(runs: Runs) -> Claim:
    """Is there a better one than SuLQ-based ID3 at every epsilon?"""
    names = [method.name for method in NOMINAL]
    gaps = {}
    for at in runs.shared(SULQ.name, *names):
        most = _best(runs, names, at)
        gaps[at] = most, runs.differences(most, SULQ.name, [at], RUNS)
    evidence = "; ".join(f"at epsilon {amount(at)} {name} {points(gap)}" for at, (name, gap) in gaps.items())
    signs = [positive(gap, CERTAIN / len(names)) for _, gap in gaps.values()]
    holds = False if False in signs else True if True in signs else None  # who is as good somewhere is dominated too
    return Claim(said("dominated"), holds, f"the best scorer over SuLQ-based ID3: {evidence}", LOOSE)


NO_NOISE = "Training rows are without noise: the paper names no p_noise for trees of depth 5."
TWENTY = (
    "The paper has ten trees and 20 runs on each, we have up to twenty trees: they differ more than runs on one do, "
    "and each counts as one difference."
)
NOT_TEN = (
    "Tenfold, and more, is what Max saves at a single split (figure 3); in trees of depth 5 the best scorer saves less."
)
HYPOTHETICAL = (
    "The paper's figure 2 is an example with three hypothetical algorithms and no numbers; ours are those of its "
    "section 5, and ID3+."
)
LOOSE = "Where privacy is loose they come out alike, and switching improves nothing."
