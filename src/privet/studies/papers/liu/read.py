"""What the runs say beside tables 2 and 3 and figures 7 to 10 of Liu et al."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from privet.studies.findings import Cell, Claim, ClaimReading, Findings, Panel
from privet.studies.papers.liu.runs import (
    MAXIMAL,
    OTHERS,
    PAPER,
    PRINTED_K,
    RANDOM,
    READINGS,
    SMALL_K,
    WAYS,
    Folds,
    Line,
    Runs,
    TreeReading,
    ahead,
    claim,
    estimate,
    listed,
    means,
    over,
    points,
    read_claim,
    spread,
    steadier,
    ways_of,
)
from privet.studies.published import numbers, printed
from privet.studies.trial import Outcome
from privet.studies.verdict import CERTAIN, all_of, positive

BUDGET = "0.1"  # of figures 9 and 10
WIDE = 3.0  # points: three standard errors of ours with which numbers cannot be said to be the same
SMALL = 0.1  # budgets to which the paper has k = 3 itself


def _cells(runs: Runs, table: str, ways: Sequence[TreeReading]) -> list[Cell]:
    """Both learners in some readings beside the one number that the paper has for each learner."""
    paper = numbers(PAPER, table)
    return [
        Cell(f"{name}, {way.name}", float(epsilon), estimate(folds), paper.get((name, float(epsilon))))
        for learner, name in MAXIMAL.items()
        for way in ways
        for epsilon, folds in runs.of(learner, way).items()
    ]


def _panels(data: str, runs: Runs) -> dict[str, tuple[TreeReading, ...]]:
    """The readings that stand in one panel, by its title."""
    ks = ", ".join(str(PRINTED_K[epsilon]) for epsilon in runs.epsilons)
    return {
        f"{data}, k as the paper has it: {ks}": WAYS[:2],
        f"{data}, k = {SMALL_K} at every epsilon": WAYS[2:],
        **{f"{data}, in another reading: {way.name}": (way,) for way in OTHERS[data]},
    }


def _notes(data: str, *first: str) -> tuple[str, ...]:
    names = (*first, "readings", "useless", f"depth-{data}", "bootstrap", "tuned", "proof", f"rows-{data}")
    return tuple(printed(PAPER)["notes"][name] for name in names)


# -- tables 2 and 3 -------------------------------------------------------------------------------


def read_table(data: str, place: str, outcomes: Sequence[Outcome]) -> Findings:
    """Accuracy and standard deviation by budget."""
    runs = Runs(outcomes)
    panels = [
        Panel(title, "epsilon", tuple(_cells(runs, place, ways)), kind="table")
        for title, ways in _panels(data, runs).items()
    ]
    return Findings(tuple(panels), tuple(_table_claims(data, place, runs)), _notes(data, "spread"))


def _table_claims(data: str, place: str, runs: Runs) -> list[Claim]:
    lines = {way: (runs.of("maxforest", way), runs.of("maxtree", way)) for way in ways_of(data)}
    lines = {way: both for way, both in lines.items() if both[0].keys() & both[1].keys()}
    if not lines:
        return []
    return [
        *(
            read_claim(place, "printed", [_near(place, way, name, runs) for way in lines], "printed", name)
            for name in MAXIMAL.values()
        ),
        read_claim(place, "steadier", [_steadier(way, *both) for way, both in lines.items()], "steadier"),
        read_claim(place, "settles", [_settles(way, *both) for way, both in lines.items()], "settles"),
        read_claim(place, "ensemble", [_ensemble(way, *both) for way, both in lines.items()], "ensemble"),
    ]


def _near(place: str, way: TreeReading, name: str, runs: Runs) -> ClaimReading:
    """How many of a learner's printed means are within a point of ours, or within three standard errors of both.

    Errors of more than a few points can show that numbers differ, and not that they are the same.
    """
    near = far = wide = 0
    apart = []
    for cell in _cells(runs, place, [way]):
        if cell.paper is not None and cell.series.startswith(name):
            gap = abs(cell.ours.mean - cell.paper.value)
            error = 3 * math.hypot(cell.ours.se, cell.paper.se)
            near += gap <= max(1.0, error)
            far += gap > 1.0 + error
            wide += 3 * cell.ours.se > WIDE
            apart.append(gap)
    holds = None if not apart else False if far else True if near == len(apart) and not wide else None
    return ClaimReading(
        way.name,
        holds,
        f"{near} of {len(apart)} within a point or three standard errors, the farthest "
        f"{max(apart, default=0):.1f} points off",
    )


def _steadier(way: TreeReading, forest: Line, tree: Line) -> ClaimReading:
    return ClaimReading(
        way.name, steadier(forest, tree), f"standard deviations of MaxForest and MaxTree {_spreads(forest, tree)}"
    )


def _settles(way: TreeReading, forest: Line, tree: Line) -> ClaimReading:
    few, many = _ends(forest, tree)
    holds = all_of(steadier({"": line[many]}, {"": line[few]}) for line in (forest, tree)) if few != many else None
    return ClaimReading(
        way.name,
        holds,
        f"from epsilon {few} to {many} that of MaxForest goes from {spread(forest, few)} to {spread(forest, many)}, "
        f"that of MaxTree from {spread(tree, few)} to {spread(tree, many)}",
    )


def _ensemble(way: TreeReading, forest: Line, tree: Line) -> ClaimReading:
    few, _ = _ends(forest, tree)
    low, high = ahead(tree[few], forest[few]), over(forest, tree, SMALL)
    told = f"MaxTree less MaxForest at {few} {points(low)}, MaxForest less MaxTree from {SMALL} on {points(high)}"
    return ClaimReading(way.name, all_of([positive(low), positive(high)]), told)


def _ends(forest: Line, tree: Line) -> tuple[str, str]:
    both = [epsilon for epsilon in forest if epsilon in tree]
    return both[0], both[-1]


def _spreads(forest: Line, tree: Line) -> str:
    both = [epsilon for epsilon in forest if epsilon in tree]
    told = ", ".join(f"{spread(forest, epsilon)} and {spread(tree, epsilon)} at {epsilon}" for epsilon in both)
    return f"{told}: smaller at {sum(_narrower(forest[e], tree[e]) for e in both)} of {len(both)}"


def _narrower(one: Folds, other: Folds) -> bool:
    return estimate(one).sd < estimate(other).sd


# -- figures 7 and 8 ------------------------------------------------------------------------------


def read_figure(data: str, place: str, table: str, outcomes: Sequence[Outcome]) -> Findings:
    """Accuracy by budget beside forests of random trees."""
    runs = Runs(outcomes)
    beside = [
        Cell(name, float(epsilon), estimate(folds))
        for learner, name in RANDOM.items()
        for epsilon, folds in runs.line(learner).items()
    ]
    panels = [
        Panel(title, "epsilon", (*_cells(runs, table, ways), *beside), log=True, levels=runs.majority)
        for title, ways in _panels(data, runs).items()
    ]
    claims = []
    for learner, name in RANDOM.items():
        holds, told = _grows(runs.line(learner))
        claims.append(claim(place, "grows", name, holds, f"{told}.", "grows-random"))
    ways = [way for way in ways_of(data) if runs.of("maxforest", way) and runs.of("maxtree", way)]
    if ways:
        grown = [ClaimReading(way.name, *_grows(runs.of("maxforest", way))) for way in ways]
        claims.append(read_claim(place, "grows", grown, "grows", "MaxForest"))
        claims += _mushroom_claims(runs, ways) if data == "mushroom" else _adult_claims(runs, ways)
    return Findings(tuple(panels), tuple(claims), _notes(data, "drawn"))


def _grows(line: Line) -> tuple[bool | None, str]:
    """Whether more budget is better: the last than the first, and none clearly worse than one before it."""
    if len(line) < 2:
        return None, "not run"
    along = list(line.values())
    best = max(along, key=lambda folds: estimate(folds).mean)
    steps = [ahead(after, before) for before, after in [*pairwise(along), (best, along[-1])]]
    worse = any(positive(step, CERTAIN / len(steps)) is False for step in steps)
    return False if worse else positive(ahead(along[-1], along[0])), means(line)


def _mushroom_claims(runs: Runs, ways: Sequence[TreeReading]) -> list[Claim]:
    better, poorer = [], []
    for way in ways:
        forest = runs.of("maxforest", way)
        first = next(iter(forest))
        beyond = {f"MaxForest less {name}": over(forest, runs.line(of), least=0.02) for of, name in RANDOM.items()}
        least = {
            f"{name} less MaxForest": ahead(runs.line(of).get(first, {}), forest[first]) for of, name in RANDOM.items()
        }
        better.append(ClaimReading(way.name, all_of(map(positive, beyond.values())), f"from 0.05 on {listed(beyond)}"))
        poorer.append(ClaimReading(way.name, all_of(map(positive, least.values())), f"at {first} {listed(least)}"))
    return [read_claim("figure-7", "better", better, "better"), read_claim("figure-7", "poorer", poorer, "poorer")]


def _adult_claims(runs: Runs, ways: Sequence[TreeReading]) -> list[Claim]:
    better, lone = [], []
    for way in ways:
        tree, forest = runs.of("maxtree", way), runs.of("maxforest", way)
        first = next(iter(tree))

        def beyond(most: float, tree: Line = tree, forest: Line = forest) -> dict[str, list[float]]:
            return {
                f"{name} less {RANDOM[of]}": over(line, runs.line(of), most=most)
                for name, line in (("MaxTree", tree), ("MaxForest", forest))
                for of in RANDOM
            }

        small, everywhere, low = beyond(SMALL), beyond(2.0), ahead(tree[first], forest.get(first, {}))
        holds = all_of(map(positive, (*small.values(), *everywhere.values())))
        better.append(ClaimReading(way.name, holds, f"to epsilon {SMALL} {listed(small)}; at all {listed(everywhere)}"))
        lone.append(ClaimReading(way.name, positive(low), f"at {first} MaxTree less MaxForest {points(low)}"))
    return [read_claim("figure-8", "better", better, "better-adult"), read_claim("figure-8", "tree", lone, "tree")]


# -- figures 9 and 10 -----------------------------------------------------------------------------


def read_by_k(data: str, place: str, outcomes: Sequence[Outcome]) -> Findings:
    """Accuracy by the number of attributes on a path."""
    runs = Runs(outcomes)
    lines = {
        (learner, score): {k: folds for k in runs.ks if (folds := runs.folds(learner, score, k, BUDGET))}
        for learner in MAXIMAL
        for score in READINGS
    }
    cells = tuple(
        Cell(f"{MAXIMAL[learner]}, {READINGS[score]}", k, estimate(folds))
        for (learner, score), line in lines.items()
        for k, folds in line.items()
    )
    flat = tuple((name, estimate(folds)) for of, name in RANDOM.items() if (folds := runs.folds(of, "", 0, BUDGET)))
    panel = Panel(f"{data}, epsilon {BUDGET}", "number of attributes k", cells, levels=flat)
    readings = [_peak(f"the {name}", lines["maxforest", score]) for score, name in READINGS.items()]
    run = [each for each in readings if each is not None]
    claims = (read_claim(place, "peak", run, "peak"),) if run else ()
    return Findings((panel,), claims, _notes(data, "unprinted"))


def _peak(name: str, line: Mapping[int, Folds]) -> ClaimReading | None:
    """Whether the best from 2 to 4 attributes is better than the best of fewer or more."""
    around = [k for k in line if 2 <= k <= 4]
    others = [k for k in line if not 2 <= k <= 4]
    if not around or not others:
        return None
    best, beside = (max(some, key=lambda k: estimate(line[k]).mean) for some in (around, others))
    found = ahead(line[best], line[beside])
    told = ", ".join(f"{estimate(folds).mean:.1f} with {k}" for k, folds in line.items())
    return ClaimReading(
        name, positive(found), f"{told}; the best from 2 to 4 less the best of the others {points(found)}"
    )
