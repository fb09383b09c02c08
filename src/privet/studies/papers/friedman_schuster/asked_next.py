"""What the paper tried without printing it, and what it asks for next: the grid of section 5.1.2, budgets and variance.

Section 5.1.2 learned trees of three depths from attributes and classes of three arities and printed a subset. The
conclusion asks for other stopping rules, for other tactics to distribute the budget, and whether good accuracy can be
guaranteed in place of being obtained on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Panel
from privet.studies.papers.friedman_schuster.claims import said
from privet.studies.papers.friedman_schuster.runs import SCORERS, diffpid3, points
from privet.studies.reading import TASK
from privet.studies.trial import Outcome, Pairs, Trial
from privet.studies.verdict import CERTAIN, positive

# -- the grid of section 5.1.2 --------------------------------------------------------------------

DEPTHS = (3, 5, 10)
ARITIES = (2, 3, 5)
RUNS = 20  # on each tree, in the paper
GRID_ROWS = {
    "tiny": (500, 1000),
    "quick": (1000, 20_000),
    "medium": (1000, 50_000),
    "full": (1000, 5000, 20_000, 50_000),
}
GRID_TREES = {"tiny": 2, "quick": 4, "medium": 30, "full": 10}
GRID_REPEATS = {"tiny": 1, "quick": 1, "medium": 1, "full": RUNS}


def grid_trials(size: str) -> list[Trial]:
    """Return each scorer on trees of each depth and arity, with few rows and with many."""
    depths, arities = ((3,), (2, 3)) if size == "tiny" else (DEPTHS, ARITIES)
    seeds = [RUNS * tree + run for tree in range(GRID_TREES[size]) for run in range(GRID_REPEATS[size])]
    return [
        method.trial(
            "random-tree", epsilon="1", seed=seed, rows=rows, runs=RUNS, depth=depth, arity=arity, classes=arity
        )
        for depth, arity, rows in product(depths, arities, GRID_ROWS[size])
        for method in diffpid3(depth)
        for seed in seeds
    ]


Place = tuple[int, int, int]  # depth, arity, rows
Accuracies = dict[str, dict[int, float]]  # of each scorer, by seed


def read_grid(outcomes: Sequence[Outcome]) -> Findings:
    """Return who is ahead in each cell of the grid, and whether figure 6 stands for all of it."""
    found: dict[Place, Accuracies] = {}
    for outcome in outcomes:
        settings, trial = dict(outcome.trial.settings), outcome.trial
        place = int(str(settings["depth"])), int(str(settings["arity"])), trial.rows or 0
        scorer = SCORERS[str(dict(trial.options)["criterion"])]
        assert outcome.result is not None
        found.setdefault(place, {}).setdefault(scorer, {})[trial.seed] = float(outcome.result["accuracy"])
    sizes = sorted({rows for _, _, rows in found}) or [0]
    panels = tuple(
        Panel(
            f"{rows:,} rows, B = 1",
            "scorer",
            tuple(
                Cell(f"depth {depth}, {arity} values", scorer, Estimate.of(list(values.values())))
                for (depth, arity, there), scorers in sorted(found.items())
                if there == rows
                for scorer, values in scorers.items()
            ),
            kind="heat",
        )
        for rows in sizes
    )
    few, many = ({place: found[place] for place in found if place[2] == rows} for rows in (sizes[0], sizes[-1]))
    claims = (
        _over_grid(few, ("Max", "InfoGain"), f"{said('representative')}: few rows, where Max is ahead of InfoGain"),
        _over_grid(
            many, ("InfoGain", "Max"), f"{said('representative')}: many rows, where Max is behind", DEEP_OR_WIDE
        ),
    )
    return Findings(panels, claims, (PRINTED_NOWHERE,))


def _over_grid(found: Mapping[Place, Accuracies], pair: tuple[str, str], text: str, erratum: str = "") -> Claim:
    """Return whether one scorer is ahead of another in most cells of the grid and behind in none."""
    gaps = {place: _gaps(scorers, *pair) for place, scorers in found.items()}
    signs = {place: positive(gap, CERTAIN / max(len(gaps), 1)) for place, gap in gaps.items()}
    behind = [place for place, sign in signs.items() if sign is False]
    ahead = sum(sign is True for sign in signs.values())
    told = "; ".join(f"depth {depth}, {arity} values {points(gap)}" for (depth, arity, _), gap in gaps.items())
    holds = False if behind else True if 2 * ahead > len(signs) else None
    evidence = f"{pair[0]} over {pair[1]}: ahead in {ahead} of {len(signs)} cells, behind in {len(behind)}: {told}"
    return Claim(text, holds, evidence, "" if holds else erratum)


def _gaps(scorers: Accuracies, one: str, other: str) -> list[float]:
    """Return by how much one scorer is ahead on each tree."""
    ours, theirs = scorers.get(one, {}), scorers.get(other, {})
    trees: dict[int, list[float]] = {}
    for seed in sorted(ours.keys() & theirs.keys()):
        trees.setdefault(seed // RUNS, []).append(ours[seed] - theirs[seed])
    return [float(np.mean(gaps)) for gaps in trees.values()]


# -- tactics for the budget, and what can be relied upon -----------------------------------------------

PRINTED = "evenly, sizes bought (printed)"
# name -> learner, options, changed fields of its plan; the number of rows is public where a size is estimated
_MAX: Pairs = (("criterion", "max"), ("max_depth", 5), ("variant", "published"))
WAYS: dict[str, tuple[str, Pairs, Pairs]] = {
    PRINTED: ("diffpid3", _MAX, ()),
    "evenly, a leaf takes what is left": ("diffpid3", _MAX, (("plan.remainder", True),)),
    "evenly, no sizes, stop by estimate": ("diffpid3", _MAX, (("plan.budget", "fixed"), ("plan.stop", "estimate"))),
    "evenly, no sizes, never stop": ("diffpid3", _MAX, (("plan.budget", "fixed"), ("plan.stop", "never"))),
    "half for the leaves, stop by estimate": (
        "diffpid3",
        _MAX,
        (("plan.budget", "halves"), ("plan.stop", "estimate")),
    ),
    "more below, 1/k, stop by estimate": ("diffpid3", _MAX, (("plan.budget", "harmonic"), ("plan.stop", "estimate"))),
    "depth by rows times epsilon (ID3+)": ("id3plus", (), ()),
    "no tree: boosted tables": ("boosted", (), ()),
}
STOPS = ("evenly, no sizes, stop by estimate", "evenly, no sizes, never stop")
SPREAD = ("half for the leaves, stop by estimate", "more below, 1/k, stop by estimate")
TREES = {"tiny": 2, "quick": 5, "medium": 20, "full": 20}
REPEATS = {"tiny": 2, "quick": 4, "medium": 6, "full": RUNS}
PLACES = {
    "tiny": ((500, "1"),),
    "quick": ((1000, "1"), (10_000, "0.1"), (10_000, "1")),
    "medium": ((1000, "1"), (10_000, "0.1"), (10_000, "1"), (50_000, "1")),
    "full": tuple(product((1000, 5000, 10_000, 50_000), ("0.1", "1"))),
}
LOWEST = 0.1  # the share of runs that are worse than what is called relied upon


def tactics_trials(size: str) -> list[Trial]:
    """Return each way to spend the budget, several times on each of several trees."""
    seeds = [RUNS * tree + run for tree in range(TREES[size]) for run in range(REPEATS[size])]
    settings: dict[str, Pairs] = {
        name: (("runs", RUNS), *((("task", TASK), *changes) if learner == "diffpid3" else changes))
        for name, (learner, _, changes) in WAYS.items()
    }
    return [
        Trial("random-tree", learner, epsilon, seed, rows, options, settings[name])
        for name, (learner, options, _) in WAYS.items()
        for rows, epsilon in PLACES[size]
        for seed in seeds
    ]


Runs = dict[str, dict[tuple[int, str], dict[int, float]]]  # way -> rows, epsilon -> seed -> accuracy


def read_tactics(outcomes: Sequence[Outcome]) -> Findings:
    """Return the mean of each way, what nine of ten runs reach, and what to take where."""
    keys = {
        (learner, tuple(sorted(options)), tuple(sorted(changes))): name
        for name, (learner, options, changes) in WAYS.items()
    }
    runs: Runs = {}
    for outcome in outcomes:
        trial = outcome.trial
        changes = tuple(pair for pair in trial.settings if pair[0].startswith("plan."))
        name = keys[trial.learner, trial.options, changes]
        assert outcome.result is not None
        accuracy = float(outcome.result["accuracy"])
        runs.setdefault(name, {}).setdefault((trial.rows or 0, trial.epsilon), {})[trial.seed] = accuracy
    places = sorted(
        {place for found in runs.values() for place in found}, key=lambda place: (place[0], float(place[1]))
    )
    at = "rows, epsilon"
    panels = (
        Panel("Mean accuracy", at, _cells(runs, places), kind="heat"),
        Panel("Reached by nine of ten runs on a tree", at, _lowest(runs, places), kind="heat"),
        Panel("Deviation between runs on one tree", at, _deviations(runs, places), y="points", kind="heat"),
    )
    claims = (
        _better(runs, places, SPREAD, said("tactics")),
        _better(runs, places, STOPS, said("stops")),
        _steadier(runs, places),
    )
    return Findings(panels, claims, (_recommended(runs, places), FUTURE))


def _at(place: tuple[int, str]) -> str:
    return f"{place[0]:,}, {place[1]}"


def _by_tree(values: Mapping[int, float]) -> list[list[float]]:
    trees: dict[int, list[float]] = {}
    for seed, value in sorted(values.items()):
        trees.setdefault(seed // RUNS, []).append(value)
    return list(trees.values())


def _cells(runs: Runs, places: Iterable[tuple[int, str]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(name, _at(place), Estimate.of(list(runs[name][place].values())))
        for name in WAYS
        for place in places
        if name in runs and place in runs[name]
    )


def _lowest(runs: Runs, places: Iterable[tuple[int, str]]) -> tuple[Cell, ...]:
    """The accuracy that nine of ten runs on a tree reach, on average over trees."""
    return tuple(
        Cell(name, _at(place), Estimate.of([_low(tree) for tree in _by_tree(runs[name][place])]))
        for name in WAYS
        for place in places
        if name in runs and place in runs[name]
    )


def _low(values: Sequence[float]) -> float:
    return float(np.quantile(values, LOWEST))


def _deviations(runs: Runs, places: Iterable[tuple[int, str]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(name, _at(place), Estimate.of([float(np.std(tree, ddof=1)) for tree in trees]))
        for name in WAYS
        for place in places
        if name in runs and place in runs[name]
        for trees in [[tree for tree in _by_tree(runs[name][place]) if len(tree) > 1]]
        if trees
    )


def _differences(runs: Runs, name: str, place: tuple[int, str]) -> list[float]:
    """By how much a way is ahead of the printed one, a number for each tree."""
    ours, printed = runs.get(name, {}).get(place, {}), runs.get(PRINTED, {}).get(place, {})
    gaps = {seed: ours[seed] - printed[seed] for seed in ours.keys() & printed.keys()}
    return [float(np.mean(tree)) for tree in _by_tree(gaps)]


def _better(runs: Runs, places: Sequence[tuple[int, str]], names: Sequence[str], text: str) -> Claim:
    """Return whether one of some ways is better than the printed one somewhere, and what each gains."""
    gaps = {name: [_differences(runs, name, place) for place in places] for name in names}
    certain = CERTAIN / max(len(names) * len(places), 1)
    signs = [positive(gap, certain) for each in gaps.values() for gap in each if gap]
    told = "; ".join(
        f"{name}: " + ", ".join(f"{points(gap)} at {_at(place)}" for gap, place in zip(each, places, strict=True))
        for name, each in gaps.items()
    )
    holds = True if True in signs else False if signs and all(sign is False for sign in signs) else None
    return Claim(text, holds, f"against {PRINTED}: {told}")


def _steadier(runs: Runs, places: Sequence[tuple[int, str]]) -> Claim:
    """Return whether some way has both a higher mean and runs that differ less, where rows are few."""
    place = places[0] if places else (0, "")
    if place not in runs.get(PRINTED, {}):
        return Claim(said("guaranteed"), None, "not run")
    printed = [_low(tree) for tree in _by_tree(runs[PRINTED][place])]
    gaps = {
        name: [_low(tree) - low for tree, low in zip(_by_tree(runs[name][place]), printed, strict=False)]
        for name in runs
        if name != PRINTED and place in runs[name]
    }
    if not gaps:
        return Claim(said("guaranteed"), None, "not run")
    best = max(gaps, key=lambda name: float(np.mean(gaps[name])))
    evidence = (
        f"at {_at(place)} nine of ten runs of the printed way reach {np.mean(printed):.1f}%, of the best other, "
        f"{best}, {np.mean(printed) + np.mean(gaps[best]):.1f}% ({points(gaps[best])})"
    )
    return Claim(said("guaranteed"), positive(gaps[best], CERTAIN / len(gaps)), evidence)


def _recommended(runs: Runs, places: Sequence[tuple[int, str]]) -> str:
    """A sentence that says what to take where, among trees and among all."""
    told = []
    for place in places:
        means = {name: float(np.mean(list(runs[name][place].values()))) for name in runs if place in runs[name]}
        lows = {
            name: float(np.mean([_low(tree) for tree in _by_tree(runs[name][place])]))
            for name in runs
            if place in runs[name]
        }
        trees = {name: mean for name, mean in means.items() if not name.startswith("no tree")}
        best, steady = max(trees, key=lambda name: trees[name]), max(lows, key=lambda name: lows[name])
        told.append(
            f"{_at(place)}: of trees '{best}' ({means[best]:.1f}%, printed {means.get(PRINTED, float('nan')):.1f}%), "
            f"to rely upon '{steady}' ({lows[steady]:.1f}% in nine of ten runs)"
        )
    return f"What we would take, at rows and epsilon of {'; '.join(told)}." if told else "Nothing was run."


PRINTED_NOWHERE = (
    "The paper names this grid and prints a subset of it, figure 6: depth 5, two values. Attributes and classes have "
    "the same number of values, and trees are learned to the depth that made the rows."
)
DEEP_OR_WIDE = "What figure 6 shows at depth 5 and two values is not so everywhere in the grid."
FUTURE = (
    "The conclusion of the paper asks for these; it has no numbers for them. Trees of depth 5 over ten binary "
    "attributes by Max, several runs on the rows of each tree. Where a size is estimated, the number of all rows is "
    "public; it is divided evenly at every split."
)
