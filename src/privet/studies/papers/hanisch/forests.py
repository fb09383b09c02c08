"""Private random forests on the rebalanced census: figures 15, 16 and 17."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Findings, Number, Panel
from privet.studies.papers.hanisch.random_trees import MANY, Key, RandomTreeRuns, expectations, grid, listed, long
from privet.studies.papers.hanisch.shared import NEEDS, NO_PLOT, SOURCE, agreed, claim
from privet.studies.study import Study
from privet.studies.trial import Outcome


def _read_heat(outcomes: Sequence[Outcome]) -> Findings:
    found = RandomTreeRuns.of(outcomes)
    panels = []
    for epsilon in sorted({key[0] for key in found.runs}, key=float):
        keys = sorted(key for key in found.runs if key[0] == epsilon)
        cells = tuple(found.cell(key, f"depth {key[2]}", key[1]) for key in sorted(keys, key=lambda key: key[2]))
        panels.append(Panel(f"Forests at epsilon {epsilon}", "trees", cells, kind="heat"))
    if not found.exact:
        return Findings(tuple(panels), (), found.notes(NO_PLOT))
    splits, epsilons, trees = range(len(found.exact)), found.epsilons, found.trees()
    for e in epsilons:
        mean = np.array([found.grid(split, e) for split in splits])
        cells = tuple(
            Cell(f"depth {depth + 1}", many, Estimate.of(mean[:, i, depth].tolist()))
            for depth in range(mean.shape[2])
            for i, many in enumerate(trees)
        )
        panels.append(Panel(f"Expected at epsilon {e}, the mean over splits", "trees", cells, kind="heat"))
    high = [e for e in epsilons if 1 <= float(e) <= 10]
    deeper = [all(np.diff(found.grid(split, e), axis=1).min() > 0 for e in high) for split in splits]
    best = {e: [int(found.grid(split, e).mean(axis=0).argmax()) + 1 for split in splits] for e in epsilons}
    order = np.array(list(best.values()))  # [epsilon, split]
    moves = (np.diff(order, axis=0).min(axis=0) >= 0) & (order[0] < order[-1])
    least = epsilons[0]
    useless = [float(found.grid(split, least).min()) < found.naive(split) for split in splits]
    gains = {e: [float((found.grid(s, e)[-1] - found.grid(s, e)[0]).mean()) for s in splits] for e in epsilons}
    unconfirmed = [min(gain[s] for gain in gains.values()) < 0 for s in splits]
    claims = (
        claim(
            *("figure-15", "deeper", agreed(deeper)),
            "The best depth by number of trees, "
            + "; ".join(
                f"epsilon {e}: "
                + ", ".join(f"{d + 1} ({t})" for t, d in zip(trees, found.grid(0, e).argmax(axis=1), strict=True))
                for e in high
            )
            + ".",
            "It holds for one tree. Every tree of a forest has its part of epsilon, so that the deepest of many are "
            "already too deep, and their votes agree most at the greatest depth, where they all ask the same.",
        ),
        claim(
            *("figure-15", "moves", agreed(moves.tolist())),
            "The best depth, numbers of trees averaged: "
            + ", ".join(f"{v[0]} at epsilon {e}" for e, v in best.items())
            + ".",
        ),
        claim(
            *("figure-15", "useless", agreed(useless)),
            f"The lowest expected accuracy at epsilon {least} is {found.grid(0, least).min():.2f}%, the most frequent "
            f"class has {found.naive(0):.2f}%.",
        ),
        claim(
            *("figure-15", "trees", agreed(unconfirmed)),
            f"From 1 to {trees[-1]} trees, mean over depths: "
            + ", ".join(f"{np.mean(gain):+.2f} points at epsilon {e}" for e, gain in gains.items())
            + ".",
        ),
    )
    return Findings(tuple(panels), claims, found.notes(NO_PLOT))


def _read_influence(outcomes: Sequence[Outcome]) -> Findings:
    found = RandomTreeRuns.of(outcomes)
    panels = tuple(
        Panel(
            f"Influence of the {name}, the other averaged out",
            name,
            tuple(_averaged(found, place)),
            levels=found.levels,
        )
        for name, place in (("depth", 2), ("trees", 1))
    )
    if not found.exact:
        return Findings(panels, (), found.notes(NO_PLOT))
    splits, epsilons = range(len(found.exact)), found.epsilons
    ends: dict[str, list[tuple[float, float]]] = {}
    for e in epsilons:
        grids = [found.grid(split, e) for split in splits]
        ends[e] = [(float((g[-1] - g[0]).mean()), float((g[:, -1] - g[:, 0]).mean())) for g in grids]
    large, small = [e for e in epsilons if float(e) >= 1], [e for e in epsilons if float(e) <= 0.01]

    def told(some: Sequence[str]) -> str:
        means = {e: np.mean(ends[e], axis=0) for e in some}
        return "; ".join(f"epsilon {e}: {t:+.2f} and {d:+.2f}" for e, (t, d) in means.items())

    most = found.trees()[-1]
    what = f"Points from 1 to {most} trees, and from depth 1 to 7, the other averaged out: "
    claims = (
        claim(
            *("figure-16", "large", agreed(all(min(ends[e][s]) > 0 for e in large) for s in splits) if large else None),
            f"{what}{told(large)}.",
        ),
        claim(
            *("figure-16", "small", agreed(all(max(ends[e][s]) < 0 for e in small) for s in splits) if small else None),
            f"{what}{told(small)}. Between the ends there is a maximum: a second level, and a few trees where they "
            "are shallow, still help at epsilon 0.01.",
        ),
    )
    return Findings(panels, claims, found.notes(NO_PLOT))


def _averaged(found: RandomTreeRuns, place: int) -> Iterable[Cell]:
    """The means by epsilon and one of number of trees and depth, over runs that share everything but the other."""
    groups: dict[tuple[str, int], list[Key]] = {}
    for key in found.runs:
        groups.setdefault((key[0], int(key[place])), []).append(key)
    for (epsilon, at), keys in groups.items():
        runs = list(zip(*(found.runs[key] for key in keys), strict=False))
        closed = [found.closed(*key) for key in keys]
        known = [each.value for each in closed if each is not None]
        exact = Number(float(np.mean(known))) if len(known) == len(keys) else None
        yield Cell(f"epsilon {epsilon}", at, Estimate.of([float(np.mean(each)) for each in runs]), closed=exact)


def _read_many(outcomes: Sequence[Outcome]) -> Findings:
    found = RandomTreeRuns.of(outcomes)
    cells = tuple(found.cell(key, f"depth {key[2]}", key[1]) for key in sorted(found.runs, key=lambda key: key[2]))
    panels = [Panel("Forests at epsilon 0.01", "trees", cells, levels=found.levels, log=True)]
    trees = found.trees(MANY[-1]) if found.exact else []
    if "0.01" not in found.epsilons or len(trees) < 2:
        return Findings(tuple(panels), (), found.notes(NO_PLOT))
    splits = range(len(found.exact))
    mean = np.array([[found.mean(split, "0.01", many) for many in trees] for split in splits])  # [split, trees, depth]
    exact = tuple(
        Cell(f"depth {depth + 1}", many, Estimate.of(mean[:, i, depth].tolist()))
        for depth in range(mean.shape[2])
        for i, many in enumerate(trees)
    )
    panels.append(
        Panel("Expected at epsilon 0.01, the mean over splits", "trees", exact, levels=found.levels, log=True)
    )
    start = trees.index(10) if 10 in trees else 0
    change = mean[:, -1] - mean[:, start]  # [split, depth]
    peaks = [trees[i] for i in mean.mean(axis=0).argmax(axis=0)]
    seven = mean[:, :, -1].mean(axis=0)
    claims = (
        claim(
            *("figure-17", "falls", agreed(bool((each < 0).all()) for each in change)),
            f"From {trees[start]} to {trees[-1]} trees at depth 1 to 7: {listed(change.mean(axis=0))} points. Before "
            f"that a few trees help shallow ones: the best numbers of trees are {', '.join(map(str, peaks))}.",
        ),
        claim(
            *("figure-17", "seven", agreed(bool(each[-1] > 0) for each in change)),
            f"At depth seven the expectation goes from {seven[0]:.2f}% with one tree to {seven[-1]:.2f}% with "
            f"{trees[-1]}.",
            "The paper suspects that it had too few runs, and so it is.",
        ),
    )
    return Findings(tuple(panels), claims, found.notes(NO_PLOT))


STUDIES = (
    Study(
        "hanisch-figure-15",
        "Private random forests by depth, number of trees and epsilon",
        f"{SOURCE}, figure 15",
        lambda size: [*grid(size), *expectations(size)],
        _read_heat,
        NEEDS,
        "A majority vote of private random trees, each of which pays its share of epsilon.",
    ),
    Study(
        "hanisch-figure-16",
        "What depth and number of trees do to private random forests",
        f"{SOURCE}, figure 16",
        lambda size: [*grid(size), *expectations(size)],
        _read_influence,
        NEEDS,
        "The same runs, averaged over the number of trees and over the depth.",
    ),
    Study(
        "hanisch-figure-17",
        "Private random forests of up to a hundred trees at epsilon 0.01",
        f"{SOURCE}, figure 17",
        lambda size: [*long(size), *expectations(size)],
        _read_many,
        NEEDS,
        "Whether more trees help where there is little epsilon for each.",
    ),
)
