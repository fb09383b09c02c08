"""What the runs say beside tables 2 and 3 and figures 7 to 10 of Liu et al."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from privet.studies.findings import Cell, Claim, Findings, Panel
from privet.studies.papers.liu.runs import (
    EPSILONS,
    MAXIMAL,
    PAPER,
    PRINTED_K,
    RANDOM,
    READINGS,
    SMALL_K,
    Folds,
    Line,
    Runs,
    ahead,
    claim,
    estimate,
    listed,
    means,
    over,
    points,
    spread,
    steadier,
)
from privet.studies.published import numbers, printed
from privet.studies.trial import Outcome
from privet.studies.verdict import CERTAIN, all_of, positive

BUDGET = "0.1"  # of figures 9 and 10
SMALL = 0.1  # budgets to which the paper has k = 3 itself
SHALLOW = f"with k = {SMALL_K} throughout"


def _cells(runs: Runs, table: str, k: int | None) -> list[Cell]:
    """Both learners in both readings beside the one number that the paper has for each learner."""
    paper = numbers(PAPER, table)
    return [
        Cell(f"{name}, {read}", float(epsilon), estimate(folds), paper.get((name, float(epsilon))))
        for learner, name in MAXIMAL.items()
        for score, read in READINGS.items()
        for epsilon, folds in runs.line(learner, score, k).items()
    ]


def _titles(data: str, runs: Runs) -> dict[int | None, str]:
    ks = ", ".join(str(PRINTED_K[epsilon]) for epsilon in runs.epsilons)
    return {None: f"{data}, k as the paper has it: {ks}", SMALL_K: f"{data}, k = {SMALL_K} at every epsilon"}


def _notes(data: str, *first: str) -> tuple[str, ...]:
    names = (*first, "readings", "useless", f"depth-{data}", "bootstrap", "tuned", "proof", f"rows-{data}")
    return tuple(printed(PAPER)["notes"][name] for name in names)


# -- tables 2 and 3 -------------------------------------------------------------------------------


def read_table(data: str, place: str, outcomes: Sequence[Outcome]) -> Findings:
    """Accuracy and standard deviation by budget."""
    runs = Runs(outcomes)
    panels = [
        Panel(title, "epsilon", tuple(_cells(runs, place, k)), kind="table") for k, title in _titles(data, runs).items()
    ]
    claims = [each for score in READINGS for each in _table_claims(place, score, runs)]
    return Findings(tuple(panels), tuple(claims), _notes(data, "spread"))


def _table_claims(place: str, score: str, runs: Runs) -> list[Claim]:
    forest, tree = (runs.line(learner, score) for learner in ("maxforest", "maxtree"))
    shallow_forest, shallow_tree = (runs.line(learner, score, SMALL_K) for learner in ("maxforest", "maxtree"))
    both, read = [epsilon for epsilon in forest if epsilon in tree], f"Read as the {READINGS[score]}"
    if not both:
        return []
    few, many = both[0], both[-1]
    low, high = ahead(tree[few], forest[few]), over(forest, tree, SMALL)
    return [
        claim(
            *(place, "steadier", read, steadier(forest, tree)),
            f"Standard deviations of MaxForest and MaxTree: {_spreads(forest, tree)}; {SHALLOW} "
            f"{_spreads(shallow_forest, shallow_tree)}. In the paper's table the forest's is smaller at "
            f"{_smaller_in(place)} of {len(EPSILONS)} budgets.",
            "steadier",
        ),
        claim(
            *(place, "settles", read, all_of(steadier({"": line[many]}, {"": line[few]}) for line in (forest, tree))),
            f"From epsilon {few} to {many} the standard deviation of MaxForest goes from {spread(forest, few)} to "
            f"{spread(forest, many)}, that of MaxTree from {spread(tree, few)} to {spread(tree, many)}.",
            "settles",
        ),
        claim(
            *(place, "ensemble", read, all_of([positive(low), positive(high)])),
            f"MaxTree less MaxForest at {few}: {points(low)}. MaxForest less MaxTree from {SMALL} on: {points(high)}; "
            f"{SHALLOW} {points(over(shallow_forest, shallow_tree, SMALL))}.",
            "ensemble",
        ),
    ]


def _spreads(forest: Line, tree: Line) -> str:
    both = [epsilon for epsilon in forest if epsilon in tree]
    told = ", ".join(f"{spread(forest, epsilon)} and {spread(tree, epsilon)} at {epsilon}" for epsilon in both)
    return f"{told} (smaller at {sum(_narrower(forest[e], tree[e]) for e in both)} of {len(both)})"


def _narrower(one: Folds, other: Folds) -> bool:
    return estimate(one).sd < estimate(other).sd


def _smaller_in(place: str) -> int:
    """At how many budgets the paper's own table has a smaller deviation for the forest."""
    paper = numbers(PAPER, place)
    pairs = [(paper["MaxForest", float(e)].sd, paper["MaxTree", float(e)].sd) for e in EPSILONS]
    return sum(one < other for one, other in pairs if one is not None and other is not None)


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
        Panel(title, "epsilon", (*_cells(runs, table, k), *beside), log=True, levels=runs.majority)
        for k, title in _titles(data, runs).items()
    ]
    claims = [_grows(place, name, "grows-random", runs.line(learner)) for learner, name in RANDOM.items()]
    for score, read in READINGS.items():
        forest, erratum = runs.line("maxforest", score), "grows" if score == "sum" else "grows-literal"
        shallow = runs.line("maxforest", score, SMALL_K)
        claims.append(_grows(place, f"MaxForest, read as the {read}", erratum, forest, shallow))
        claims += _mushroom_claims(score, runs) if data == "mushroom" else _adult_claims(score, runs)
    return Findings(tuple(panels), tuple(each for each in claims if each is not None), _notes(data, "drawn"))


def _grows(place: str, who: str, erratum: str, line: Line, shallow: Line | None = None) -> Claim | None:
    """Whether more budget is better: the last than the first, and none clearly worse than one before it."""
    if len(line) < 2:
        return None
    along = list(line.values())
    best = max(along, key=lambda folds: estimate(folds).mean)
    steps = [ahead(after, before) for before, after in [*pairwise(along), (best, along[-1])]]
    worse = any(positive(step, CERTAIN / len(steps)) is False for step in steps)
    whole = ahead(along[-1], along[0])
    beside = f"; {SHALLOW} {means(shallow)}" if shallow else ""
    return claim(place, "grows", who, False if worse else positive(whole), f"{means(line)}{beside}.", erratum)


def _mushroom_claims(score: str, runs: Runs) -> list[Claim]:
    forest, shallow, read = _forest(score, runs), _forest(score, runs, SMALL_K), f"Read as the {READINGS[score]}"
    if not forest:
        return []
    beyond, shallow_beyond = (
        {f"MaxForest less {name}": over(line, runs.line(of), least=0.02) for of, name in RANDOM.items()}
        for line in (forest, shallow)
    )
    first = next(iter(forest))
    least = {
        f"{name} less MaxForest": ahead(runs.line(of).get(first, {}), forest[first]) for of, name in RANDOM.items()
    }
    return [
        claim(
            *("figure-7", "better", read, all_of(map(positive, beyond.values()))),
            f"From 0.05 on: {listed(beyond)}; {SHALLOW}: {listed(shallow_beyond)}.",
            "better",
        ),
        claim(
            *("figure-7", "poorer", read, all_of(map(positive, least.values()))),
            f"At {first}: {listed(least)}.",
            "poorer",
        ),
    ]


def _forest(score: str, runs: Runs, k: int | None = None) -> Line:
    return runs.line("maxforest", score, k)


def _adult_claims(score: str, runs: Runs) -> list[Claim]:
    def beyond(k: int | None, most: float = 2.0) -> dict[str, list[float]]:
        pairs = ((learner, of) for learner in MAXIMAL for of in RANDOM)
        return {
            f"{MAXIMAL[learner]} less {RANDOM[of]}": over(runs.line(learner, score, k), runs.line(of), most=most)
            for learner, of in pairs
        }

    tree, forest, read = runs.line("maxtree", score), _forest(score, runs), f"Read as the {READINGS[score]}"
    if not tree or not forest:
        return []
    first = next(iter(tree))
    low, small, everywhere = ahead(tree[first], forest.get(first, {})), beyond(None, SMALL), beyond(None)
    return [
        claim(
            *("figure-8", "better", read, all_of(map(positive, (*small.values(), *everywhere.values())))),
            f"To epsilon {SMALL}: {listed(small)}. At all budgets: {listed(everywhere)}; {SHALLOW}: "
            f"{listed(beyond(SMALL_K))}.",
            "better-adult",
        ),
        claim(
            *("figure-8", "tree", read, positive(low)),
            f"At {first} MaxTree less MaxForest: {points(low)}.",
            "tree",
        ),
    ]


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
    claims = [_peak(place, score, lines["maxforest", score]) for score in READINGS]
    return Findings((panel,), tuple(each for each in claims if each is not None), _notes(data, "unprinted"))


def _peak(place: str, score: str, line: Mapping[int, Folds]) -> Claim | None:
    """Whether the best from 2 to 4 attributes is better than the best of fewer or more."""
    around = [k for k in line if 2 <= k <= 4]
    others = [k for k in line if not 2 <= k <= 4]
    if not around or not others:
        return None
    best, beside = (max(some, key=lambda k: estimate(line[k]).mean) for some in (around, others))
    found = ahead(line[best], line[beside])
    told = ", ".join(f"{estimate(folds).mean:.1f} with {k}" for k, folds in line.items())
    return claim(
        *(place, "peak", f"Read as the {READINGS[score]}", positive(found)),
        f"MaxForest: {told}. The best from 2 to 4 less the best of the others: {points(found)}.",
        "peak",
    )
