"""Trees and forests without privacy on the rebalanced census, by scikit-learn: figures 10, 11 and 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.studies.estimate import Estimate, corrected_t_test
from privet.studies.findings import Cell, Claim, Findings, Panel
from privet.studies.papers.hanisch.shared import (
    DATA,
    NEEDS,
    NO_PLOT,
    SOURCE,
    TABLE,
    TINY_ROWS,
    agreed,
    beyond,
    claim,
    number,
)
from privet.studies.rows import Split, split
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.studies.verdict import CERTAIN

TASK = "hanisch-scikit"
TREE, FOREST = "scikit-tree", "scikit-forest"
MOST_TREES = 20
QUICK_DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20)
DEPTHS = {"tiny": (1, 3, 5), "quick": QUICK_DEPTHS, "medium": QUICK_DEPTHS, "full": tuple(range(1, 26))}
SPLITS = {"tiny": 2, "quick": 5, "medium": 20, "full": 30}
HELD_OUT = 0.1
OWN = (
    "Values are one column each, 0 or 1, for scikit-learn; everything but depth and number of trees is its default. "
    "The paper does not say how it coded values."
)
CEILING = (
    "No function of the seven attributes is right in more than {ceiling:.2f}% of the whole table: that is the "
    "majority of every combination of values, on the rows it was taken from. With the sixteen levels of schooling "
    "that Adult has it would be 82.2%. More than that is luck of a small test, or was tested on rows that were "
    "learned from."
)


def trial(learner: str, depth: int, seed: int, size: str) -> Trial:
    """One split; a forest is grown to its full number of trees and tested after each of them."""
    options: tuple[tuple[str, Any], ...] = (("max_depth", depth),)
    if learner == FOREST:
        options += (("n_estimators", MOST_TREES),)
    rows = TINY_ROWS if size == "tiny" else None
    return Trial(DATA, learner, seed=seed, rows=rows, options=options, settings=(("task", TASK),))


def trials(learner: str, size: str) -> list[Trial]:
    return [trial(learner, depth, seed, size) for depth in DEPTHS[size] for seed in range(SPLITS[size])]


def scikit(trial: Trial) -> Mapping[str, Any]:
    """Percent right of a tree, or of the first trees of a forest for each number of them, and the bounds of both."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    rows, options = split(trial), dict(trial.options)
    (train, learned), (test, wanted) = (_coded(rows, frame) for frame in (rows.train, rows.test))
    kind = DecisionTreeClassifier if trial.learner == TREE else RandomForestClassifier
    model = kind(random_state=trial.seed, **options).fit(train, learned)
    trees = [model] if trial.learner == TREE else model.estimators_
    votes = np.cumsum([tree.predict_proba(test) for tree in trees], axis=0)
    return {
        "accuracy": [100 * float(np.mean(model.classes_[vote.argmax(axis=1)] == wanted)) for vote in votes],
        "majority": 100 * float(np.mean(wanted == np.bincount(learned).argmax())),
        "ceiling": _ceiling(pd.concat([rows.train, rows.test]), rows.domain.target_column.name),
    }


def _coded(rows: Split, frame: pd.DataFrame) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    columns = [rows.domain[name] for name in rows.domain.attributes]
    coded = [np.eye(column.size, dtype=np.float32)[column.encode(frame[column.name])] for column in columns]
    target = rows.domain.target_column
    return np.concatenate(coded, axis=1), target.encode(frame[target.name])


def _ceiling(frame: pd.DataFrame, target: str) -> float:
    counts = frame.groupby(list(frame.columns), observed=True).size()
    attributes = [name for name in frame.columns if name != target]
    return 100 * float(counts.groupby(level=attributes, observed=True).max().sum() / len(frame))


# -- reading --------------------------------------------------------------------------------------


def accuracies(outcomes: Sequence[Outcome], learner: str) -> dict[int, dict[int, list[float]]]:
    """By depth and split, a number for every number of trees."""
    found: dict[int, dict[int, list[float]]] = {}
    for outcome in outcomes:
        if outcome.result is not None and outcome.trial.learner == learner:
            depth = int(str(dict(outcome.trial.options)["max_depth"]))
            found.setdefault(depth, {})[outcome.trial.seed] = outcome.result["accuracy"]
    return found


def best_tree(outcomes: Sequence[Outcome]) -> tuple[int, Estimate] | None:
    """The depth of the best decision tree, and its accuracy over splits."""
    found = {
        depth: Estimate.of([each[0] for each in by_split.values()])
        for depth, by_split in accuracies(outcomes, TREE).items()
    }
    return max(found.items(), key=lambda item: item[1].mean) if found else None


def _bounds(outcomes: Sequence[Outcome]) -> dict[str, Estimate]:
    by_split = {outcome.trial.seed: outcome.result for outcome in outcomes if outcome.result is not None}
    names = {"most frequent class": "majority", "no rule can be better": "ceiling"}
    return {told: Estimate.of([float(each[name]) for each in by_split.values()]) for told, name in names.items()}


def _read_tree(outcomes: Sequence[Outcome]) -> Findings:
    found, best = accuracies(outcomes, TREE), best_tree(outcomes)
    if best is None:
        return Findings((), (), (TABLE, OWN))
    bounds = _bounds(outcomes)
    series = {depth: Estimate.of([each[0] for each in found[depth].values()]) for depth in sorted(found)}
    curve = Panel(
        "Decision tree without privacy",
        "depth",
        tuple(Cell("decision tree", depth, ours) for depth, ours in series.items()),
        levels=tuple(bounds.items()),
    )
    paper = number("figure-10", "decision tree", "best")
    top = Panel("Best accuracy", "depth", (Cell("decision tree", "best", best[1], paper),), kind="table")
    naive, ceiling = bounds["most frequent class"].mean, bounds["no rule can be better"].mean
    deep = {depth: ours.mean for depth, ours in series.items() if depth > 3}
    splits = set.intersection(*(set(found[depth]) for depth in deep)) if deep else set()
    above = [all(found[depth][seed][0] > naive for depth in deep) for seed in sorted(splits)]
    gap = best[1].mean - paper.value
    claims = (
        claim(
            *("figure-10", "above", agreed(above)),
            f"The lowest of {len(deep)} depths above 3 is {min(deep.values(), default=0):.2f}%, the most frequent "
            f"class has {naive:.2f}%. Depth {min(series)} has {series[min(series)].mean:.2f}%.",
        ),
        claim(
            *("figure-10", "best", abs(gap) <= paper.reading + 2 * best[1].se if best[1].n > 1 else None),
            f"Ours is {best[1].mean:.2f}% at depth {best[0]}, {gap:+.2f} points from the paper's.",
            "On this table a tree does better. One attribute alone, the relationship, has about 75.9%, and "
            f"{ceiling:.2f}% is the most that any rule can have.",
        ),
        _overfit(found, best[0]),
    )
    return Findings((curve, top), claims, (TABLE, OWN, NO_PLOT, CEILING.format(ceiling=ceiling)))


def _overfit(found: Mapping[int, Mapping[int, Sequence[float]]], best: int) -> Claim:
    deepest = max(found)
    splits = sorted(found[deepest].keys() & found[best].keys())
    apart = [found[best][seed][0] - found[deepest][seed][0] for seed in splits]
    p = corrected_t_test(apart, HELD_OUT) if apart else 1.0
    mean = float(np.mean(apart)) if apart else 0.0
    holds = None if p > CERTAIN or best == deepest else mean > 0  # the best depth was looked for on the same splits
    evidence = (
        f"Depth {best} is {mean:.2f} points above depth {deepest} on the splits on which it was found to be the best "
        f"(corrected paired t-test, p = {p:.2g})."
    )
    return claim("figure-10", "overfit", holds, evidence)


def _read_forest(outcomes: Sequence[Outcome]) -> Findings:
    found = accuracies(outcomes, FOREST)
    if not found:
        return Findings((), (), (TABLE, OWN))
    bounds = _bounds(outcomes)
    grid = {
        (depth, trees): Estimate.of([each[trees - 1] for each in by_split.values()])
        for depth, by_split in sorted(found.items())
        for trees in range(1, len(next(iter(by_split.values()))) + 1)
    }
    shown = (1, 2, 3, 5, 7, 10, 15, 20)
    cells = tuple(Cell(f"depth {d}", trees, ours) for (d, trees), ours in grid.items() if trees in shown)
    heat = Panel("Mean accuracy of random forests without privacy", "trees", cells, kind="heat")
    (high_at, high), (low_at, low) = (choose(grid.items(), key=lambda item: item[1].mean) for choose in (max, min))
    single = max(accuracy for by_split in found.values() for each in by_split.values() for accuracy in each)
    paper = {
        name: number("figure-11", "random forest", name) for name in ("highest mean", "lowest mean", "highest single")
    }
    ours = {"highest mean": high, "lowest mean": low, "highest single": Estimate(single, 0.0, 1)}
    table = Panel(
        "What the text states",
        "accuracy",
        tuple(Cell("random forest", name, ours[name], paper[name]) for name in paper),
        kind="table",
    )
    ceiling = bounds["no rule can be better"].mean
    tree, stump = best_tree(outcomes), grid.get((1, 7))
    told = "" if stump is None else f" Seven trees of depth 1 have {stump.mean:.2f}% on average."
    apart: list[float] = []
    if tree is not None:
        alone, grown = accuracies(outcomes, TREE)[tree[0]], found[high_at[0]]
        apart = [grown[seed][high_at[1] - 1] - alone[seed][0] for seed in sorted(alone.keys() & grown.keys())]
    p = corrected_t_test(apart, HELD_OUT) if apart else 1.0
    claims = (
        claim(
            *("figure-11", "above", None if p > 0.05 else float(np.mean(apart)) > 0),
            f"The best forest has {high.mean:.2f}% ({high_at[1]} trees of depth {high_at[0]}), the best tree "
            + ("has not run." if tree is None else f"{tree[1].mean:.2f}% (depth {tree[0]}; p = {p:.2g})."),
            "The attributes have few values, so that a tree of a few levels already says what they tell.",
        ),
        claim(
            *("figure-11", "single", single >= paper["highest single"].value - 0.05),
            f"The highest of {sum(len(each) for by_split in found.values() for each in by_split.values())} accuracies "
            f"is {single:.2f}%.{told}",
            beyond(ceiling, paper["highest single"].value),
        ),
    )
    notes = (
        TABLE,
        OWN,
        NO_PLOT,
        CEILING.format(ceiling=ceiling),
        f"The lowest mean of ours is that of {low_at[1]} trees of depth {low_at[0]}; the paper does not say which its "
        "own is.",
    )
    return Findings((heat, table), claims, notes)


def _read_influence(outcomes: Sequence[Outcome]) -> Findings:
    found = accuracies(outcomes, FOREST)
    depths = sorted(found)
    splits = sorted(set.intersection(*(set(by_split) for by_split in found.values()))) if found else []
    if not splits:
        return Findings((), (), (TABLE, OWN))
    # [split, depth, trees]
    grid = np.array([[found[depth][seed] for depth in depths] for seed in splits])
    by_depth, by_trees = grid.mean(axis=2), grid.mean(axis=1)
    panels = tuple(
        Panel(
            f"Influence of the {name}, the other averaged out",
            name,
            tuple(
                Cell("random forest", at, Estimate.of(column.tolist()))
                for at, column in zip(places, found_by.T, strict=True)
            ),
            levels=tuple(_bounds(outcomes).items()),
        )
        for name, places, found_by in (
            ("depth", depths, by_depth),
            ("trees", range(1, grid.shape[2] + 1), by_trees),
        )
    )
    slopes = [float(np.corrcoef(np.arange(grid.shape[2]), each)[0, 1]) for each in by_trees]
    best = int(by_depth.mean(axis=0).argmax())
    drop = [float(each[best] - each[-1]) for each in by_depth]
    p = corrected_t_test(drop, HELD_OUT)
    falls = None if p > CERTAIN else float(np.mean(drop)) > 0  # the maximum was looked for on the same splits
    claims = (
        claim(
            *("figure-12", "trees", agreed(slope > 0 for slope in slopes)),
            f"The correlation of the number of trees, 1 to {grid.shape[2]}, with the accuracy is "
            f"{np.mean(slopes):.2f}; from one tree to {grid.shape[2]} it goes from {by_trees[:, 0].mean():.2f}% to "
            f"{by_trees[:, -1].mean():.2f}%.",
        ),
        claim(
            *("figure-12", "depth", falls if 0 < best < len(depths) - 1 else None),
            f"The maximum is at depth {depths[best]} with {by_depth[:, best].mean():.2f}%; depth {depths[-1]} has "
            f"{np.mean(drop):.2f} points less (p = {p:.2g}).",
        ),
    )
    return Findings(panels, claims, (TABLE, OWN, NO_PLOT))


def _both(size: str) -> list[Trial]:
    return [*trials(FOREST, size), *trials(TREE, size)]


STUDIES = (
    Study(
        "hanisch-figure-10",
        "A decision tree without privacy, by depth",
        f"{SOURCE}, figure 10",
        lambda size: trials(TREE, size),
        _read_tree,
        NEEDS,
        "scikit-learn's decision tree on the rebalanced census, to see what there is to learn.",
    ),
    Study(
        "hanisch-figure-11",
        "Random forests without privacy, by depth and number of trees",
        f"{SOURCE}, figure 11",
        _both,
        _read_forest,
        NEEDS,
        "Mean accuracy of scikit-learn's random forest; the text gives the highest and the lowest mean and the best "
        "run.",
    ),
    Study(
        "hanisch-figure-12",
        "What depth and number of trees do to random forests without privacy",
        f"{SOURCE}, figure 12",
        lambda size: trials(FOREST, size),
        _read_influence,
        NEEDS,
        "The same runs, averaged over the number of trees and over the depth.",
    ),
)
TASKS = {TASK: scikit}
