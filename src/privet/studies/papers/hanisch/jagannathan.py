"""Jagannathan, Pillaipakkamnatt and Wright 2012, as Hanisch quotes them: their table, and mushrooms by 1/epsilon.

Their private ID3 asks noisy counts for every score, as SuLQ-ID3 does; that is the nearest of privet's algorithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privet.datasets import domain
from privet.studies.estimate import Estimate, corrected_t_test
from privet.studies.findings import Cell, Claim, ClaimReading, Findings, Panel
from privet.studies.papers.hanisch import shared
from privet.studies.published import numbers, printed
from privet.studies.reading import TASK
from privet.studies.rows import table
from privet.studies.study import Study
from privet.studies.trial import Outcome, Plain, Trial, Work
from privet.studies.verdict import CERTAIN, p_value

SOURCE = "Jagannathan, Pillaipakkamnatt and Wright, Transactions on Data Privacy 5, 2012"
TABLES = ("nursery", "house-votes", "mushroom")
ATTRIBUTES = {name: len(domain(name).attributes) for name in TABLES}
EPSILON = "0.5"
FOLDS = {"tiny": 2, "quick": 20, "medium": 60, "full": 100}  # of ten, again and again
TINY_ROWS = 200
SIZE = "jagannathan-size"
SHALLOW = 3
UNSTOPPED = {"nursery": 5, "house-votes": 8}  # depths without a stop rule; a tree of more leaves is too large to grow
LIKE = 13.0  # points from the most frequent class that the paper's own table calls like it
UNSTOPPED_FOLDS = {"tiny": 2, "quick": 10, "medium": 60, "full": 100}

NEAREST = (
    "Private ID3 is run as SuLQ-ID3 in its published variant, the nearest algorithm here: it scores attributes by "
    "noisy counts too. It stops where a node has fewer rows than noise, which is Friedman and Schuster's rule; whether "
    "theirs does is not in what is quoted, so it is also run without a stop rule."
)


NEVER = "sulq-id3, never stops"


def size_of(trial: Trial) -> Mapping[str, Any]:
    """How many rows and attributes a table has."""
    found = table(trial.data)
    return {"rows": len(found.frame), "attributes": len(found.domain.attributes)}


def _trial(data: str, learner: str, epsilon: str, seed: int, size: str, **options: Plain) -> Trial:
    rows = TINY_ROWS if size == "tiny" else None
    return Trial(data, learner, epsilon, seed, rows, tuple(options.items()), (("folds", 10),))


def private_id3(data: str, epsilon: str, depth: int, seed: int, size: str) -> Trial:
    return _trial(data, "sulq-id3", epsilon, seed, size, max_depth=depth, variant="published")


def unstopped(data: str, depth: int, seed: int, size: str) -> Trial:
    """Private ID3 that divides every node down to its depth."""
    trial = private_id3(data, EPSILON, 2 if size == "tiny" else depth, seed, size)
    return replace(trial, settings=(*trial.settings, ("task", TASK), ("plan.stop", "never")))


def forest(epsilon: str, seed: int, size: str, depth: int | None = None) -> Trial:
    """Ten random trees; their depth follows from the rows, unless it is given."""
    options: dict[str, Plain] = (
        {"variant": "published"} if depth is None else {"max_depth": depth, "variant": "published"}
    )
    return _trial("mushroom", "jagannathan", epsilon, seed, size, **options)


def accuracies(
    outcomes: Sequence[Outcome], name: str = "accuracy"
) -> dict[tuple[str, str, str, int], dict[int, float]]:
    """By table, learner, epsilon and depth (0 where it was not given), then by fold."""
    found: dict[tuple[str, str, str, int], dict[int, float]] = {}
    for outcome in outcomes:
        if outcome.result is not None and name in outcome.result:
            trial = outcome.trial
            depth = int(str(dict(trial.options).get("max_depth", 0)))
            never = "plan.stop" in dict(trial.settings)
            key = trial.data, f"{trial.learner}, never stops" if never else trial.learner, trial.epsilon, depth
            found.setdefault(key, {})[trial.seed] = float(outcome.result[name])
    return found


# -- the table ------------------------------------------------------------------------------------


def _table_trials(size: str) -> list[Trial]:
    found = [Trial(name, "rows", settings=(("task", SIZE),)) for name in TABLES]
    for name in TABLES:
        for fold in range(FOLDS[size]):
            found.append(_trial(name, "id3", "", fold, size))
            found += [private_id3(name, EPSILON, depth, fold, size) for depth in (ATTRIBUTES[name], SHALLOW)]
    found += [
        unstopped(name, depth, fold, size) for name, depth in UNSTOPPED.items() for fold in range(UNSTOPPED_FOLDS[size])
    ]
    return found


def _read_table(outcomes: Sequence[Outcome]) -> Findings:
    paper = numbers("jagannathan", "table")
    sizes, accuracy = [], []
    found, majority = accuracies(outcomes), accuracies(outcomes, "majority")
    for outcome in outcomes:
        if outcome.result is not None and "rows" in outcome.result:
            name, k = outcome.trial.data, outcome.result["attributes"]
            for at, value in (("rows", outcome.result["rows"]), ("queries", k * (k + 1) // 2)):
                sizes.append(Cell(name, at, Estimate(float(value), 0.0, 1), paper.get((name, at))))
    for name in TABLES:
        deep = name, "sulq-id3", EPSILON, ATTRIBUTES[name]
        columns = {
            "original ID3": found.get((name, "id3", "", 0)),
            "most frequent class": majority.get(deep),
            "private ID3": found.get(deep),
            f"private ID3 of depth {SHALLOW}": found.get((name, "sulq-id3", EPSILON, SHALLOW)),
            "private ID3 without a stop rule": found.get((name, NEVER, EPSILON, UNSTOPPED.get(name, 0))),
        }
        for at, values in columns.items():
            if values:
                accuracy.append(Cell(name, at, Estimate.of(list(values.values())), paper.get((name, at))))
    panels = (
        Panel("The tables", "", tuple(sizes), y="", kind="table"),
        Panel("Accuracy at epsilon 0.5", "", tuple(accuracy), kind="table"),
    )
    scales = ", ".join(f"{k * (k + 1):,} on {name}" for name, k in ATTRIBUTES.items())
    notes = (
        NEAREST,
        "The column without a heading is k (k + 1) / 2 for k attributes: the scores along a path that uses all of "
        "them. Theirs is run here as a tree that may be as deep as there are attributes. If epsilon is divided among "
        f"so many, one count has noise of scale {scales}.",
        "House-votes has 40% in the paper, less than labels drawn by a coin have on average: many runs would not.",
    )
    return Findings(panels, _table_claims(found, majority), notes)


def _table_claims(
    found: Mapping[tuple[str, str, str, int], Mapping[int, float]],
    majority: Mapping[tuple[str, str, str, int], Mapping[int, float]],
) -> tuple[Claim, ...]:
    """Is private ID3 as good as the most frequent class, as the paper has it, or worse?"""
    stopping = {name: (name, "sulq-id3", EPSILON, ATTRIBUTES[name]) for name in TABLES}
    never = {name: (name, NEVER, EPSILON, depth) for name, depth in UNSTOPPED.items()}
    sentences = printed("jagannathan")["table"]["claims"]
    if any(len(found.get(key, ())) < 2 for keys in (stopping, never) for key in keys.values()):
        return tuple(Claim(text, None, "Not every table was run.") for text in sentences.values())
    ways = {
        "with the stop rule of Friedman and Schuster, as deep as there are attributes": _above(
            found, majority, stopping
        ),
        f"without a stop rule, {' and '.join(f'{name} to depth {depth}' for name, depth in UNSTOPPED.items())}": _above(
            found, majority, never
        ),
    }
    shallow = {name: found.get((name, "sulq-id3", EPSILON, SHALLOW)) for name in TABLES}
    told = ", ".join(f"{np.mean(list(own.values())):.1f}% on {name}" for name, own in shallow.items() if own)
    return (
        Claim.read(
            sentences["naive"],
            [ClaimReading(name, _naive(above), _points(above)) for name, above in ways.items()],
            erratum=f"A tree of at most three levels has {told} for the same epsilon: depth makes it naive, more than "
            "noisy counts. Without a stop rule trees of mushroom are too large to grow below depth 5.",
        ),
        Claim.read(
            sentences["worse"],
            [ClaimReading(name, _worse(above), _points(above)) for name, above in ways.items()],
            erratum="With a stop rule a table too small for its noise is a single leaf, which says the most frequent "
            "class.",
        ),
    )


Above = Mapping[str, tuple[Estimate, float]]  # points over the most frequent class, and how likely they are by chance


def _above(
    found: Mapping[tuple[str, str, str, int], Mapping[int, float]],
    majority: Mapping[tuple[str, str, str, int], Mapping[int, float]],
    keys: Mapping[str, tuple[str, str, str, int]],
) -> Above:
    apart = {name: [found[key][fold] - majority[key][fold] for fold in found[key]] for name, key in keys.items()}
    return {name: (Estimate.of(points), p_value(points)) for name, points in apart.items()}


def _points(above: Above) -> str:
    return "above the most frequent class by " + ", ".join(
        f"{points.mean:+.1f} points on {name} (p = {p:.2g})" for name, (points, p) in above.items()
    )


def _naive(above: Above) -> bool | None:
    """Like a naive classifier: within as many points as the paper's own table, which has 46% where that has 33%."""
    if any(points.mean - points.half > LIKE for points, _ in above.values()):
        return False
    return True if all(abs(points.mean) <= LIKE for points, _ in above.values()) else None


def _worse(above: Above) -> bool | None:
    """Worse in one case. The sentence is about these tables, not about others like them: folds count as they are."""
    if any(points.mean < 0 and p < CERTAIN for points, p in above.values()):
        return True
    return False if min(points.low for points, _ in above.values()) > -1 else None


# -- mushrooms by 1 / epsilon ---------------------------------------------------------------------

INVERSE = {
    "tiny": ("1", "0.01"),
    "quick": ("1", "0.5", "0.1", "0.02", "0.01", "0.001"),
    "medium": ("1", "0.5", "0.1", "0.02", "0.01", "0.001"),
    "full": ("10", "2", "1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01", "0.005", "0.002", "0.001"),
}
MUSHROOM_FOLDS = {"tiny": 2, "quick": 5, "medium": 20, "full": 30}
DEEP = ATTRIBUTES["mushroom"]
LINES = {
    ("sulq-id3", DEEP): "private ID3, any depth",
    ("sulq-id3", SHALLOW): f"private ID3 of depth {SHALLOW}",
    ("jagannathan", 0): "ten random trees, depth by the rows",
    ("jagannathan", 2): "ten random trees of depth 2",
}


def _id3_trials(size: str) -> list[Trial]:
    return [
        private_id3("mushroom", epsilon, depth, fold, size)
        for epsilon in INVERSE[size]
        for depth in (DEEP, SHALLOW)
        for fold in range(MUSHROOM_FOLDS[size])
    ]


def _forest_trials(size: str) -> list[Trial]:
    return [
        forest(epsilon, fold, size, depth)
        for epsilon in INVERSE[size]
        for depth in (None, 2)
        for fold in range(MUSHROOM_FOLDS[size])
    ]


def _curves(outcomes: Sequence[Outcome], title: str) -> Panel:
    cells = tuple(
        Cell(LINES[learner, depth], 1 / float(epsilon), Estimate.of(list(values.values())))
        for (_, learner, epsilon, depth), values in accuracies(outcomes).items()
        if (learner, depth) in LINES
    )
    majority = [value for values in accuracies(outcomes, "majority").values() for value in values.values()]
    levels = (("most frequent class", Estimate.of(majority)),) if majority else ()
    return Panel(title, "1 / epsilon", cells, log=True, levels=levels)


def _read_id3(outcomes: Sequence[Outcome]) -> Findings:
    found = accuracies(outcomes)
    ends = [found.get(("mushroom", "sulq-id3", epsilon, DEEP), {}) for epsilon in ("1", "0.01")]
    apart = [ends[0][fold] - ends[1][fold] for fold in ends[0] if fold in ends[1]]
    p = corrected_t_test(apart, 0.1) if len(apart) > 1 else 1.0
    told = [float(np.mean(list(each.values()))) if each else 0.0 for each in ends]
    claims = (
        shared.claim(
            *("figure-6", "falls", None if p > 0.05 else told[0] > told[1]),
            f"From epsilon 1 to 0.01 the accuracy goes from {told[0]:.1f}% to {told[1]:.1f}% (p = {p:.2g}).",
        ),
    )
    panel = _curves(outcomes, "Private ID3 on mushroom")
    return Findings((panel,), claims, (NEAREST, shared.NO_PLOT))


def _read_forest(outcomes: Sequence[Outcome]) -> Findings:
    found, majority = accuracies(outcomes), accuracies(outcomes, "majority")

    def values(learner: str, epsilon: str, depth: int) -> dict[int, float]:
        return found.get(("mushroom", learner, epsilon, depth), {})

    def mean(learner: str, epsilon: str, depth: int) -> float:
        return float(np.mean(list(values(learner, epsilon, depth).values()) or [np.nan]))

    low, high, naive = (
        values("jagannathan", "0.01", 0),
        values("jagannathan", "1", 0),
        majority.get(("mushroom", "jagannathan", "0.01", 0), {}),
    )
    folds = sorted(low.keys() & high.keys() & naive.keys())
    # good: at least half of what epsilon 1 has above the most frequent class
    lead = [low[fold] - (high[fold] + naive[fold]) / 2 for fold in folds]
    p = corrected_t_test(lead, 0.1) if len(lead) > 1 else 1.0
    claims = [
        shared.claim(
            *("figure-7", "good", None if p > 0.05 else float(np.mean(lead)) > 0),
            f"At epsilon 0.01 ten trees have {mean('jagannathan', '0.01', 0):.1f}%, at epsilon 1 "
            f"{mean('jagannathan', '1', 0):.1f}%; good is taken for half of the way to the most frequent class, or "
            f"more (p = {p:.2g}).",
            "Each of ten trees pays 0.001, so that a class count has noise of scale 1,000, and their depth, which the "
            "rule takes from the number of rows alone, leaves a few rows to a leaf. At depth 2 they have "
            f"{mean('jagannathan', '0.01', 2):.1f}%.",
        )
    ]
    gaps = {}
    for epsilon in dict.fromkeys(key[2] for key in found):
        ours, theirs = values("jagannathan", epsilon, 0), values("sulq-id3", epsilon, DEEP)
        gaps[epsilon] = [ours[fold] - theirs[fold] for fold in ours if fold in theirs]
    tested = {e: (float(np.mean(gap)), corrected_t_test(gap, 0.1)) for e, gap in gaps.items() if len(gap) > 1}
    ahead, behind = ([e for e, (gap, p) in tested.items() if p < 0.05 and sign * gap > 0] for sign in (1, -1))
    claims.append(
        shared.claim(
            *("figure-7", "better", True if ahead else False if behind else None),
            "Random trees are above private ID3 by "
            + ", ".join(f"{gap:+.1f} points at epsilon {e} (p = {p:.2g})" for e, (gap, p) in tested.items())
            + f". Private ID3 of depth {SHALLOW} has {mean('sulq-id3', '1', SHALLOW):.1f}% at epsilon 1 and "
            f"{mean('sulq-id3', '0.01', SHALLOW):.1f}% at 0.01.",
        )
    )
    panel = _curves(outcomes, "Private random trees on mushroom, and private ID3")
    return Findings((panel,), tuple(claims), (NEAREST, shared.NO_PLOT))


STUDIES: tuple[Study, ...] = (
    Study(
        "jagannathan-table",
        "Private ID3 on nursery, house-votes and mushroom at epsilon 0.5",
        f"{SOURCE}, quoted by Hanisch as figure 5",
        _table_trials,
        _read_table,
        TABLES,
        "ID3, the most frequent class and a private ID3 that asks noisy counts, on three tables of the UCI repository.",
    ),
)
FIGURES = (  # that Hanisch shows
    Study(
        "hanisch-figure-6",
        "Private ID3 on mushroom, by 1/epsilon",
        f"{SOURCE}, quoted by Hanisch as figure 6",
        _id3_trials,
        _read_id3,
        ("mushroom",),
        "A private ID3 that asks noisy counts, on a scale of 1/epsilon.",
    ),
    Study(
        "hanisch-figure-7",
        "Private random trees on mushroom, by 1/epsilon",
        f"{SOURCE}, quoted by Hanisch as figure 7",
        lambda size: [*_forest_trials(size), *_id3_trials(size)],
        _read_forest,
        ("mushroom",),
        "Ten random trees whose leaves alone are asked, on the same scale.",
    ),
)
TASKS: dict[str, Work] = {SIZE: size_of}
