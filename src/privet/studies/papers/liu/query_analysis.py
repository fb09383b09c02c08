"""Section 4 of Liu et al.: how many counts a tree asks for, how far they err, and what fewer of them are worth.

Noise is that of the kernel: counts of generated rows are asked by the usual questions, and what they lose is what the
ledger says. Trees are grown on the paper's two tables, all to depth 3 with the same epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.kernel import Domain, Nominal, seeded_noise
from privet.open_table import open_table
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, ClaimReading, Findings, Number, Panel
from privet.studies.fit import seed
from privet.studies.papers.liu.runs import EPSILONS, PAPER, READINGS, SMALL_K, Line, over, points
from privet.studies.published import printed
from privet.studies.reading import TASK as REREAD
from privet.studies.trial import Outcome, Pairs, Trial, Work
from privet.studies.verdict import all_of, positive

PLACE, TASK = "query-analysis", "liu-node"
TABLES = ("mushroom", "adult")
VALUES = {"tiny": (2, 5), "quick": (2, 3, 5, 10), "medium": (2, 3, 5, 10), "full": (2, 3, 4, 5, 7, 10, 20)}
SEEDS = {"tiny": 2, "quick": 10, "medium": 30, "full": 100}
ANSWERS = {"tiny": 20, "quick": 200, "medium": 500, "full": 1000}
FOLDS, OF = {"tiny": 2, "quick": 4, "medium": 30, "full": 1000}, 10
BUDGETS = {"tiny": ("0.1", "1"), "quick": ("0.1", "0.5", "1"), "medium": EPSILONS, "full": EPSILONS}
EPSILON, ROWS, CLASSES, CANDIDATES = "0.1", 40, 2, 3  # of a count; rows of each value; classes; attributes that compete

# -- a node --------------------------------------------------------------------------------------

EACH, RECONCILED, ACCUMULATED = "each by itself", "each, reconciled by least squares", "the parts, added up"
CLOSED: dict[
    str, Callable[[int], int]
] = {  # squared errors of a node and its i parts together, times epsilon squared, where 2 epsilon are lost
    EACH: lambda i: 2 * (i + 1),
    RECONCILED: lambda i: 2 * i,
    ACCUMULATED: lambda i: i,
}
SAID = 4  # the same, in the paper's words, for any number of parts


def node(trial: Trial) -> Mapping[str, Any]:
    """Squared errors of the counts of a node and of its parts, and what each way to get them is charged.

    With 2 epsilon to lose, the node and its parts are counted with epsilon each, or the parts alone with all of it.
    """
    settings = dict(trial.settings)
    values, answers = int(str(settings["values"])), int(str(settings["answers"]))
    names = [f"v{value}" for value in range(values)]
    others = [Nominal(f"a{at}", tuple(names)) for at in range(CANDIDATES)]
    domain = Domain((*others, Nominal("class", ("no", "yes"))), target="class", max_rows=values * ROWS)
    rows = pd.DataFrame({**{each.name: np.repeat(names, ROWS) for each in others}, "class": "no"})
    epsilon, errors = Fraction(trial.epsilon), {way: 0.0 for way in CLOSED}
    charged: dict[str, str] = {}
    with seeded_noise(seed(trial)), open_table(rows, domain, budget=10**6) as table:

        def lost(name: str, before: Fraction) -> Fraction:
            charged[name] = str((table.budget.spent - before) / epsilon)
            return table.budget.spent

        for _ in range(answers):
            start = table.budget.spent
            whole = int(table.count(epsilon)) - values * ROWS
            parts = table.histogram("a0", epsilon=epsilon).value - ROWS
            start = lost(EACH, start)
            finer = table.histogram("a0", epsilon=2 * epsilon).value - ROWS
            lost(ACCUMULATED, start)
            fitted = parts + (whole - parts.sum()) / (values + 1)
            for way, (root, leaves) in {
                EACH: (whole, parts),
                RECONCILED: (fitted.sum(), fitted),
                ACCUMULATED: (finer.sum(), finer),
            }.items():
                errors[way] += float(root**2 + (leaves**2).sum()) * float(epsilon) ** 2 / answers
        start, numbers = table.budget.spent, 0
        for each in others:
            numbers = table.histogram(each.name, "class", epsilon=epsilon).value.size
        start = lost("counts", start)
        table.select("infogain", epsilon=epsilon)
        lost("choice", start)
    return {"errors": errors, "charged": charged, "numbers": numbers}


# -- trees -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TreeQueries:
    """How a tree gets its splits and its counts: a learner as published, at depth 3."""

    learner: str
    options: Pairs = ()
    settings: Pairs = ()

    def trial(self, data: str, epsilon: str, fold: int, rows: int | None) -> Trial:
        options: Pairs = (("max_depth", SMALL_K), ("variant", "published"), *self.options)
        return Trial(f"{data}/liu", self.learner, epsilon, fold, rows, options, (("folds", OF), *self.settings))


ALL, CHOICE, BOUGHT, LEAVES = (
    "all counts of InfoGain (SuLQ-based ID3)",
    "one choice by InfoGain",
    "one choice by Max, sizes of nodes bought",
    "one choice by Max, counts of leaves alone",
)
VOTES = {score: f"maximal votes (MaxTree), the {name}" for score, name in READINGS.items()}
TREES = {
    ALL: TreeQueries("sulq-id3"),
    CHOICE: TreeQueries("diffpid3", (("criterion", "infogain"),)),
    BOUGHT: TreeQueries("diffpid3", (("criterion", "max"),)),
    LEAVES: TreeQueries(
        "diffpid3", (("criterion", "max"),), (("task", REREAD), ("plan.budget", "fixed"), ("plan.stop", "never"))
    ),
    **{name: TreeQueries("maxtree", (("score", score),), (("task", "walk"),)) for score, name in VOTES.items()},
}


def trials(size: str) -> list[Trial]:
    """Return counts of nodes with several numbers of values, and trees in every way on both tables."""
    of_nodes = []
    for values in VALUES[size]:
        settings: Pairs = (("answers", ANSWERS[size]), ("task", TASK), ("values", values))
        of_nodes += [Trial("generated", "counts", EPSILON, repeat, settings=settings) for repeat in range(SEEDS[size])]
    rows = 500 if size == "tiny" else None
    return of_nodes + [
        way.trial(data, epsilon, fold, rows)
        for data in TABLES
        for way in TREES.values()
        for epsilon in BUDGETS[size]
        for fold in range(FOLDS[size])
    ]


# -- what they say -----------------------------------------------------------------------------------


def read(outcomes: Sequence[Outcome]) -> Findings:
    """Return how far the counts of a node err, and how good trees are that ask for more or fewer of them."""
    nodes: dict[int, list[Mapping[str, Any]]] = {}
    trees: dict[str, dict[str, dict[str, dict[int, float]]]] = {data: {} for data in TABLES}
    names = {kind(way.trial("", "", 0, None)): name for name, way in TREES.items()}
    for outcome in outcomes:
        trial, result = outcome.trial, outcome.result
        assert result is not None
        if dict(trial.settings).get("task") == TASK:
            nodes.setdefault(int(str(dict(trial.settings)["values"])), []).append(result)
        else:
            line = trees[trial.data.partition("/")[0]].setdefault(names[kind(trial)], {})
            line.setdefault(trial.epsilon, {})[trial.seed] = float(result["accuracy"])
    errors = {
        way: {i: Estimate.of([found["errors"][way] for found in results]) for i, results in sorted(nodes.items())}
        for way in CLOSED
    }
    panels = [
        Panel(
            "A node and its i parts, 2 epsilon lost",
            "parts i",
            tuple(
                Cell(way, i, found, Number(CLOSED[EACH](i)) if way == EACH else None, Number(CLOSED[way](i)))
                for way, line in errors.items()
                for i, found in line.items()
            ),
            "sum of squared errors x epsilon squared",
            levels=((f"said to be enough: {SAID}", Estimate(SAID, 0.0, 1)),),
        )
    ]
    for data, lines in trees.items():
        if lines:
            cells = (
                Cell(name, float(epsilon), Estimate.of(list(folds.values())))
                for name in TREES
                for epsilon, folds in sorted(lines.get(name, {}).items(), key=lambda each: float(each[0]))
            )
            panels.append(Panel(f"{data}, depth {SMALL_K}", "epsilon", tuple(cells), log=True))
    claims = (*(_of_nodes(nodes, errors) if nodes else ()), *_of_trees(trees))
    return Findings(tuple(panels), claims, tuple(printed(PAPER)["notes"][name] for name in ("node", "unpublished")))


def kind(trial: Trial) -> tuple[str, Pairs, Pairs]:
    """Return what the trials of one way have in common."""
    return trial.learner, trial.options, trial.settings


def _of_nodes(
    nodes: Mapping[int, list[Mapping[str, Any]]], errors: Mapping[str, Mapping[int, Estimate]]
) -> list[Claim]:
    """What is said of the counts of a node."""
    charged = nodes[min(nodes)][0]["charged"]
    asked = {i: int(results[0]["numbers"]) for i, results in sorted(nodes.items())}
    printed_as = {i: (CLASSES + 1) * i + 1 for i in asked}
    counted = [
        ClaimReading("sums are asked too, as algorithm 1 does", True, f"{_numbers(printed_as)}, of two classes"),
        ClaimReading("sums are added up", asked == printed_as, _numbers(asked)),
    ]
    sensitivity = [
        ClaimReading(
            "the counts are released", charged["counts"] == str(CANDIDATES), _times(charged["counts"], "counts of")
        ),
        ClaimReading(
            "the choice alone is released",
            charged["choice"] == str(CANDIDATES),
            _times(charged["choice"], "one choice among"),
        ),
    ]
    off = max((abs(each.mean - CLOSED[EACH](i)) / each.se for i, each in errors[EACH].items() if each.se), default=None)
    least = {i: min(errors, key=lambda way, i=i: errors[way][i].mean) for i in sorted(nodes)}  # type: ignore[misc]
    best = ", ".join(f"{errors[way][i].mean:.1f} with {i} ({way})" for i, way in least.items())
    gains = {
        i: [found["errors"][EACH] - found["errors"][ACCUMULATED] for found in results] for i, results in nodes.items()
    }
    return [
        _read("many", counted, "many"),
        _read("sensitivity", sensitivity, "sensitivity"),
        _claim(
            "pessimistic",
            None if off is None else off < 4,
            f"{_means(errors[EACH])}, within {off or 0:.1f} standard errors; {charged[EACH]} epsilon are lost",
        ),
        _claim(
            "two",
            all_of(positive([SAID - found["errors"][least[i]] for found in nodes[i]]) for i in least),
            f"times epsilon squared, for the same {charged[EACH]} epsilon, the best of three ways has {best}",
        ),
        _claim(
            "accumulate",
            all_of(positive(gap) for gap in gains.values()),
            f"{_means(errors[ACCUMULATED])}, against {_means(errors[EACH])} where each is counted, for "
            f"{charged[ACCUMULATED]} epsilon each",
        ),
    ]


def _of_trees(trees: Mapping[str, Mapping[str, Line]]) -> list[Claim]:
    """What is said of trees that ask for all counts, and of those that know them only at leaves."""

    def against(one: str, other: str) -> dict[str, list[float]]:
        return {data: over(lines.get(one, {}), lines.get(other, {})) for data, lines in trees.items()}

    def reading(name: str, one: str, other: str) -> ClaimReading:
        gaps = against(one, other)
        told = ", ".join(f"{points(gap)} on {data}" for data, gap in gaps.items())
        return ClaimReading(name, all_of(map(positive, gaps.values())), f"ahead by {told}")

    trivial = [
        reading("beside one choice by the same criterion", CHOICE, ALL),
        *(reading(f"beside {name}", name, ALL) for name in VOTES.values()),
    ]
    gaps = against(LEAVES, BOUGHT)
    told = ", ".join(f"{points(gap)} on {data}" for data, gap in gaps.items())
    behind = [positive([-each for each in gap]) for gap in gaps.values()]
    return [
        _read("trivial", trivial, "trivial"),
        _claim(
            "impractical",
            all_of(behind),
            f"a tree that buys the counts of its leaves alone, less one that buys sizes too: {told}",
        ),
    ]


def _numbers(found: Mapping[int, int]) -> str:
    return ", ".join(f"{number} with {i} values" for i, number in found.items())


def _means(line: Mapping[int, Estimate]) -> str:
    return ", ".join(f"{found.mean:.1f} with {i}" for i, found in line.items())


def _times(charged: str, what: str) -> str:
    return f"{what} {CANDIDATES} attributes: {charged} epsilon"


def _read(name: str, readings: Sequence[ClaimReading], erratum: str) -> Claim:
    found = printed(PAPER)[PLACE]
    return Claim.read(found["claims"][name], readings, erratum=found["errata"][erratum])


def _claim(name: str, holds: bool | None, evidence: str) -> Claim:
    found = printed(PAPER)[PLACE]
    return Claim(found["claims"][name], holds, evidence, found["errata"][name] if holds is False else "")


TASKS: dict[str, Work] = {TASK: node}
