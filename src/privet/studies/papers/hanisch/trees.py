"""A private random tree on the rebalanced census: figures 13 and 14."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, ClaimReading, Findings, Number, Panel
from privet.studies.papers.hanisch import plain
from privet.studies.papers.hanisch.random_trees import RandomTreeRuns, expectations, listed, single
from privet.studies.papers.hanisch.shared import NEEDS, NO_PLOT, SOURCE, agreed, beyond, claim, number, read_claim
from privet.studies.study import Study
from privet.studies.trial import Outcome


def _read_tree(outcomes: Sequence[Outcome]) -> Findings:
    found = RandomTreeRuns.of(outcomes)
    cells = [found.cell(key, f"epsilon {key[0]}", key[2]) for key in found.runs]
    panel = Panel("Mean accuracy of a private random tree", "depth", tuple(cells), levels=found.levels)
    if not found.exact or not found.runs:
        return Findings((panel,), (), found.notes(NO_PLOT))
    best_key = max(found.runs, key=lambda key: float(np.mean(found.runs[key])))
    paper, tree = number("figure-13", "private random tree", "highest mean"), plain.best_tree(outcomes)
    rows = [
        Cell("private random tree", "highest mean", Estimate.of(found.runs[best_key]), paper, found.closed(*best_key))
    ]
    if tree is not None:
        rows.append(Cell("decision tree", "highest mean", tree[1], number("figure-10", "decision tree", "best")))
    top = Panel("Highest mean accuracy", "", tuple(rows), kind="table")
    epsilons, splits = found.epsilons, range(len(found.exact))
    by_epsilon = {e: np.array([found.mean(split, e, 1) for split in splits]) for e in epsilons}  # [split, depth]
    # where the noise is far below the counts, more epsilon changes nothing that could be seen
    steps = [float(np.diff([by_epsilon[e][split] for e in epsilons], axis=0).min()) for split in splits]
    best = {e: int(values.mean(axis=0).argmax()) + 1 for e, values in by_epsilon.items()}
    deeper = [all(np.diff(by_epsilon[e][split]).min() > 0 for e in epsilons) for split in splits]
    highest = [max(float(values[split].max()) for values in by_epsilon.values()) for split in splits]
    least = by_epsilon[epsilons[0]]
    better = [int((least[split] > found.naive(split)).sum()) for split in splits]
    ceiling = found.exact[0]["ceiling"]
    gap = None if tree is None else float(np.mean(highest)) - tree[1].mean
    claims = (
        claim(
            *("figure-13", "epsilon", agreed(step > -0.1 for step in steps)),
            f"Expected at epsilon {', '.join(epsilons)}, mean over depths: "
            f"{listed(v.mean() for v in by_epsilon.values())}%. The most that a depth loses from one epsilon to the "
            f"next is {max(0.0, -min(steps)):.2f} points.",
        ),
        claim(
            *("figure-13", "depth", agreed(deeper)),
            "The best depth is "
            + ", ".join(f"{depth} at epsilon {e}" for e, depth in best.items())
            + f". At epsilon {epsilons[0]} depth 1 to 7: {listed(least.mean(axis=0))}%.",
            "Every level divides the rows of a leaf, and its noise stays. Deeper is better only while leaves have "
            "many more rows than noise.",
        ),
        claim(
            *("figure-13", "above", None if gap is None or tree is None or abs(gap) < 2 * tree[1].se else gap > 0),
            f"The highest expected accuracy is {np.mean(highest):.2f}%"
            + ("." if tree is None else f", that of a decision tree without privacy {tree[1].mean:.2f}%."),
            f"{beyond(ceiling, paper.value)} A random tree of depth seven is a table of all combinations of values: "
            "tested on the rows it was filled from, one of about 4,000 rows would have 83.48%.",
        ),
        claim(
            *("figure-13", "naive", agreed(each <= least.shape[1] / 2 for each in better)),
            f"At epsilon {epsilons[0]} {' or '.join(map(str, sorted(set(better))))} of {least.shape[1]} depths are "
            "above the most frequent class, by "
            f"{(least.mean(axis=0) - np.mean([found.naive(s) for s in splits])).max():.2f} points at most.",
            "Leaves of shallow trees have thousands of rows here, as many as the noise; with fewer rows in the table "
            "it would hold.",
        ),
    )
    return Findings((panel, top), claims, found.notes(NO_PLOT))


def _read_variance(outcomes: Sequence[Outcome]) -> Findings:
    found = RandomTreeRuns.of(outcomes)
    cells = []
    for key, values in found.runs.items():
        n, known = len(values), found.exact and key[0] in found.exact[0]["spread"]
        variance = float(np.var(values, ddof=1)) if n > 1 else 0.0
        closed = Number(found.exact[0]["spread"][key[0]][key[2] - 1] ** 2) if known else None
        # that of a variance of n normal numbers: its own is too small where it came out too small
        error = (closed.value if closed else variance) * math.sqrt(2 * n / (n - 1)) if n > 1 else 0.0
        cells.append(Cell(f"epsilon {key[0]}", key[2], Estimate(variance, error, n), closed=closed))
    panel = Panel("Variance over runs", "depth", tuple(cells), y="variance of the accuracy, square points")
    if not found.exact:
        return Findings((panel,), (), found.notes(NO_PLOT))
    epsilons, splits = found.epsilons, range(len(found.exact))
    spread = {e: np.array([found.exact[split]["spread"][e] for split in splits]) for e in epsilons}
    coins = {
        e: np.array([found.exact[split].get("spread by coins", {}).get(e, [math.nan] * 7) for split in splits])
        for e in epsilons
    }
    falls = [all(np.diff(spread[e][split]).max() < 0 for e in epsilons) for split in splits]
    # nothing: below a tenth of a point
    zero = [all(spread[e][split][-1] < 0.1 for e in epsilons) for split in splits]
    ends = "; ".join(f"epsilon {e}: {v[:, 0].mean():.2f} and {v[:, -1].mean():.2f}" for e, v in spread.items())
    claims = (
        claim(
            *("figure-14", "falls", agreed(falls)),
            f"The exact standard deviation at depth 1 and 7, in points, is at {ends}.",
        ),
        read_claim(
            *("figure-14", "zero"),
            (
                ClaimReading(
                    "all of the variance",
                    agreed(zero),
                    f"the deviation at depth 7 is {listed(v[:, -1].mean() for v in spread.values())} points at epsilon "
                    f"{', '.join(epsilons)}",
                ),
                ClaimReading(
                    "the part that the attributes drawn for a tree make, which the rest of the sentence is about",
                    agreed(all(coins[e][split][-1] < 0.1 for e in epsilons) for split in splits),
                    f"at depth 1 {listed(v[:, 0].mean() for v in coins.values())} points, at depth 7 "
                    f"{listed(v[:, -1].mean() for v in coins.values())}",
                ),
            ),
            "All trees of depth seven ask for the same cells, as the paper says, so the draw makes no difference any "
            "more. The noise stays: at small epsilon the labels of cells are as good as coins, and a few cells hold a "
            "large part of the rows.",
        ),
    )
    return Findings((panel,), claims, found.notes(NO_PLOT))


STUDIES = (
    Study(
        "hanisch-figure-13",
        "A private random tree, by depth and epsilon",
        f"{SOURCE}, figure 13",
        lambda size: [*single(size), *expectations(size), *plain.trials(plain.TREE, size)],
        _read_tree,
        NEEDS,
        "A random tree whose leaves are filled by counting queries with Laplace noise, one split of the rows.",
    ),
    Study(
        "hanisch-figure-14",
        "How much a private random tree varies, by depth and epsilon",
        f"{SOURCE}, figure 14",
        lambda size: [*single(size), *expectations(size)],
        _read_variance,
        NEEDS,
        "The variance of the accuracy over the same runs.",
    ),
)
