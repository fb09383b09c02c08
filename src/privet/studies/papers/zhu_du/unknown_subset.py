"""Zhu and Du's open question: what a tree tells somebody who does not know whose rows it was grown on.

A tree of Adult is grown on a random part of the people. One adversary knows whose rows were drawn, another one only
which share of them; both know everybody's quasi-identifiers, and see the tree with its counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privet.learners.estimators import ID3Classifier
from privet.risk import audit
from privet.risk.findings import MAXIMUM
from privet.studies.adult_trees import SENSITIVE
from privet.studies.adult_trees import people as people_of_adult
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Panel
from privet.studies.papers.zhu_du.trees import claimed
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.studies.verdict import all_of, positive

TASK = "audit-unknown-subset"
WHO = {"known": "knows whose rows", "unknown": "knows their share alone"}
SHARES = {"tiny": ("1", "0.5"), "quick": ("1", "0.5", "0.1"), "medium": ("1", "0.75", "0.5", "0.25", "0.1")}
REPEATS = {"tiny": 2, "quick": 8, "medium": 30, "full": 100}
PEOPLE = {"tiny": 500, "quick": 6000, "medium": 6000, "full": None}


def trials(size: str) -> list[Trial]:
    """Return trees of several shares of the people, each seen by both adversaries."""
    options = (("criterion", "gini"), ("max_depth", 2))
    return [
        Trial("adult", "id3", "", seed, PEOPLE[size], options, (("task", TASK), ("share", share), ("training", who)))
        for share in SHARES.get(size, SHARES["medium"])
        for who in WHO
        for seed in range(REPEATS[size])
    ]


def measured(trial: Trial) -> Mapping[str, Any]:
    """Return how many percent of the people one adversary is sure of, guesses right, and how far the belief is off."""
    frame, domain = people_of_adult(trial.rows)
    settings = dict(trial.settings)
    share = float(str(settings["share"]))
    drawn = np.random.default_rng(trial.seed).random(len(frame)) < share
    training = frame[drawn]
    classifier = ID3Classifier(domain=domain, max_leaves=5_000_000, **dict(trial.options))  # type: ignore[arg-type]
    model = classifier.fit(training.drop(columns=SENSITIVE), training[SENSITIVE]).model_
    knows: dict[str, Any] = {"training": drawn.tolist()}
    if settings["training"] == "unknown":
        knows = {"training": "unknown", "share": share}
    found = audit(
        model,
        frame,
        sensitive=SENSITIVE,
        measure="posterior",
        truth=frame,
        published="counts",
        criterion="none",
        worlds=False,
        remedies=False,
        **knows,
    ).overall[MAXIMUM]
    return {
        "known": 100 * found.known / found.people,
        "guessed": 100 * float(found.guessed or 0.0),
        "divergence": float(found.overall_floored or 0.0),
        "most frequent": 100 * float(frame[SENSITIVE].value_counts(normalize=True).iloc[0]),
    }


def read(outcomes: Sequence[Outcome]) -> Findings:
    """Return what both adversaries learn, by the share of the people that the tree was grown on."""
    found: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
    for outcome in outcomes:
        settings = dict(outcome.trial.settings)
        assert outcome.result is not None
        place = str(settings["training"]), str(settings["share"])
        found.setdefault(place, {})[outcome.trial.seed] = outcome.result
    panels = tuple(
        Panel(
            title,
            "share of the people whose rows were drawn",
            tuple(
                Cell(WHO[who], float(share), Estimate.of([float(result[key]) for result in results.values()]))
                for (who, share), results in found.items()
            ),
            y,
        )
        for title, key, y in (
            ("People of whose value the adversary is sure (posterior from 0.8)", "known", "percent of the people"),
            ("People whose value the likeliest guess gets right", "guessed", "percent of the people"),
            ("How far beliefs are from the truth", "divergence", "overall divergence, floor 1e-4"),
        )
    )
    return Findings(panels, (_less(found), _still(found)), (SETTING,))


def _less(found: Mapping[tuple[str, str], Mapping[int, Mapping[str, Any]]]) -> Claim:
    """Whether fewer are known, at every share below one, sample by sample."""
    verdicts, told = [], []
    for share in sorted({share for _, share in found if float(share) < 1}, key=float):
        both = [found.get((who, share), {}) for who in WHO]
        gaps = [both[0][seed]["known"] - both[1][seed]["known"] for seed in sorted(both[0].keys() & both[1].keys())]
        verdicts.append(positive(gaps))
        means = [np.mean([result["known"] for result in results.values()]) for results in both if results]
        told.append(f"share {share}: " + " against ".join(f"{mean:.2f}%" for mean in means))
    return Claim(
        claimed("unknown"),
        all_of(verdicts),
        f"people known, by who knows the sample and who does not: {'; '.join(told)}",
    )


def _still(found: Mapping[tuple[str, str], Mapping[int, Mapping[str, Any]]]) -> Claim:
    """Whether a tree of the smallest sample still tells somebody's value to who does not know it."""
    shares = sorted({share for who, share in found if who == "unknown" and float(share) < 1}, key=float)
    if not shares:
        return Claim(STILL, None, "not run")
    known = [float(result["known"]) for result in found["unknown", shares[0]].values()]
    return Claim(STILL, positive(known), f"share {shares[0]}: {np.mean(known):.3f}% of the people")


STILL = "Ours, not the paper's: some people's values are told all the same"
SETTING = (
    "Trees of depth 2 by Gini with their counts; education is sensitive. Who knows the sample is asked about people "
    "in it, who does not about everybody. A sample that nobody knows is no promise: what it hides depends on the tree."
)
STUDY = Study(
    "zhu-du-unknown-subset",
    "A tree of some of the people: does it matter that nobody knows of whom?",
    "Zhu and Du, Understanding privacy risk of publishing decision trees, DBSec 2010, section 6",
    trials,
    read,
    data=("adult",),
    about="The paper lets the adversary know whose rows a tree was grown on, and leaves the other case to future work.",
)
