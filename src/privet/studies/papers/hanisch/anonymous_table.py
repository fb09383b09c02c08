"""A k-anonymous table, a tree and a private tree before an adversary who knows the values of others.

The seminar paper motivates differential privacy with a 2-anonymous table. Here rows of Adult are published in classes
of at least k people (Mondrian, LeFevre et al. 2006), beside an ID3 tree, whose leaves are such classes too, and a
private tree. k, l and t of all of them are those of `privet.risk.measures`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.kernel import Domain, seeded_noise
from privet.learners.estimators import ID3Classifier, ID3PlusClassifier
from privet.risk import audit
from privet.risk.findings import MAXIMUM
from privet.risk.measures import measure
from privet.risk.people import Belief, People
from privet.studies.adult_trees import SENSITIVE
from privet.studies.adult_trees import people as people_of_adult
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Panel
from privet.studies.fit import seed
from privet.studies.published import printed
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.studies.verdict import positive

TASK = "anonymous-table"
SOURCE = "Hanisch, Differential Privacy for Decision Trees, seminar paper, TU Braunschweig"
CERTAIN = 0.8  # a posterior that counts as knowing
EPSILON = "0.5"
TREE, PRIVATE = "ID3 tree with counts", f"private tree, epsilon {EPSILON}"
KS = {"tiny": (2,), "quick": (2, 10), "medium": (2, 5, 10, 25), "full": (2, 5, 10, 25, 100)}
KNOWN = ("0", "0.5", "0.9", "1")  # the share of all others whose values the adversary knows
REPEATS = {"tiny": 2, "quick": 5, "medium": 20, "full": 50}
PEOPLE = {"tiny": 400, "quick": 6000, "medium": 6000, "full": None}

Integers = NDArray[np.int64]


def trials(size: str) -> list[Trial]:
    """Return every publication before every adversary; whom the adversary knows is drawn by the seed."""
    ways = [*(f"{k}-anonymous table" for k in KS[size]), TREE, PRIVATE]
    return [
        Trial("adult", way, EPSILON if way == PRIVATE else "", number, PEOPLE[size], (), (("task", TASK), ("known", b)))
        for way in ways
        for b in KNOWN
        for number in range(REPEATS[size] if b in ("0.5", "0.9") or way == PRIVATE else 1)
    ]


def mondrian(codes: Integers, k: int) -> Integers:
    """Return the class of each row: cells of an even grid that are halved while both halves have k rows.

    The attribute with the most values in a class is divided at the middle of its rows.

    >>> mondrian(np.array([[0], [0], [1], [1], [2]]), 2).tolist()
    [0, 0, 1, 1, 1]
    """
    classes, waiting, number = np.zeros(len(codes), dtype=np.int64), [np.arange(len(codes))], 0
    while waiting:
        group = waiting.pop()
        spread = [len(np.unique(codes[group, column])) for column in range(codes.shape[1])]
        for column in np.argsort(spread)[::-1]:
            middle = np.sort(codes[group, column])[len(group) // 2]
            below = group[codes[group, column] < middle]
            above = group[codes[group, column] >= middle]
            if min(len(below), len(above)) >= k:
                waiting += [above, below]
                break
        else:
            classes[group], number = number, number + 1
    return classes


def measured(trial: Trial) -> Mapping[str, Any]:
    """Return k, l and t of a publication, and of how many people the adversary then knows what was not known before."""
    frame, domain = people_of_adult(trial.rows)
    known = float(str(dict(trial.settings)["known"]))
    columns = [name for name in frame.columns if name != SENSITIVE]
    values = domain.target_column.encode(frame[SENSITIVE]).astype(np.int64)
    shares = np.bincount(values, minlength=len(domain.classes)) / len(values)
    if trial.learner == PRIVATE:
        return _private(trial, frame, domain, known, float(shares.max()))
    if trial.learner == TREE:
        tree = ID3Classifier(domain=domain, criterion="gini", max_depth=2, max_leaves=5_000_000)
        classes = tree.fit(frame[columns], frame[SENSITIVE]).model_.apply(frame)[:, 0]
    else:
        codes = np.array([domain[name].encode(frame[name]) for name in columns], dtype=np.int64).T
        classes = mondrian(codes, int(trial.learner.partition("-")[0]))
    classes = np.unique(classes, return_inverse=True)[1].ravel()
    people = People.of(pd.DataFrame({"class": classes}), ["class"])
    counts = np.zeros((len(people), len(domain.classes)))
    np.add.at(counts, (people.profile, values), 1)
    told = measure(people, Belief("table", counts / counts.sum(axis=1, keepdims=True)), threshold=CERTAIN)
    secret = np.random.default_rng(seed(trial)).random(len(values)) >= known
    if known == 1:  # of everybody in turn all others are known: what is left of a class is one value
        share = 1.0
    else:
        left = np.zeros_like(counts)
        np.add.at(left, (people.profile[secret], values[secret]), 1)
        largest = left.max(axis=1) / np.maximum(left.sum(axis=1), 1)
        share = float(np.mean(largest[people.profile[secret]] >= CERTAIN))
    return {"sure": 100 * share, "k": told.k, "l": told.distinct, "entropy l": told.diversity, "t": told.closeness}


def _private(trial: Trial, frame: pd.DataFrame, domain: Domain, known: float, prior: float) -> Mapping[str, Any]:
    """Return the same of a private tree: its audit before somebody who knows nobody, its bound before all others.

    Epsilon bounds the odds of a value by exp(epsilon) times those before, whatever is known of all others.
    """
    with seeded_noise(seed(trial)):
        classifier = ID3PlusClassifier(epsilon=EPSILON, domain=domain, max_depth=2, random_state=trial.seed)
        model = classifier.fit(frame.drop(columns=SENSITIVE), frame[SENSITIVE]).model_
    found = audit(
        model, frame, sensitive=SENSITIVE, measure="posterior", worlds=False, remedies=False, criterion="none"
    ).overall[MAXIMUM]
    odds = prior / (1 - prior) * math.exp(float(EPSILON))
    bound = odds / (1 + odds)
    sure = 100 * found.known / found.people if known == 0 else 100.0 * (bound >= CERTAIN)
    return {
        "sure": sure,
        "bound": bound,
        "k": found.k,
        "l": found.distinct,
        "entropy l": found.diversity,
        "t": found.closeness,
    }


def read(outcomes: Sequence[Outcome]) -> Findings:
    """Return of how many the adversary is sure, by what was known before, and k, l and t."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for outcome in outcomes:
        assert outcome.result is not None
        place = outcome.trial.learner, str(dict(outcome.trial.settings)["known"])
        found.setdefault(place, []).append(outcome.result)
    sure = tuple(
        Cell(way, f"{100 * float(known):.0f}%", Estimate.of([result["sure"] for result in results]))
        for (way, known), results in found.items()
    )
    measures = tuple(
        Cell(way, name, Estimate.of([float(result[name]) for result in results]))
        for (way, known), results in found.items()
        if known == "0"
        for name in ("k", "l", "entropy l", "t")
    )
    panels = (
        Panel("People of whom the adversary becomes sure", "others known before", sure, "percent of the rest", "heat"),
        Panel("k, l and t", "measure", measures, "people, values, and a distance from 0 to 1", "heat"),
    )
    return Findings(panels, (_background(found), _bounded(found)), (SETTING, BOUND))


def _said(claim: str) -> str:
    return str(printed("hanisch")["anonymous-table"]["claims"][claim])


def _background(found: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> Claim:
    """Of a 2-anonymous table: whether more become known the more of the others are."""
    table = {
        known: [result["sure"] for result in results] for (way, known), results in found.items() if way[:2] == "2-"
    }
    if not {"0", "0.5", "0.9"} <= table.keys():
        return Claim(_said("background"), None, "not run")
    before = float(np.mean(table["0"]))
    told = ", ".join(f"{np.mean(values):.1f}% with {100 * float(known):.0f}% known" for known, values in table.items())
    return Claim(_said("background"), positive([value - before for value in table["0.9"]]), f"sure of {told}")


def _bounded(found: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> Claim:
    """Whether the bound of epsilon stays below what counts as knowing, where an exact table is an open book."""
    bounds = [result["bound"] for (way, _), results in found.items() if way == PRIVATE for result in results]
    tables = [
        float(np.mean([result["sure"] for result in results]))
        for (way, known), results in found.items()
        if way != PRIVATE and known == "1"
    ]
    if not bounds or not tables:
        return Claim(_said("private"), None, "not run")
    evidence = (
        f"with all others known every exact table, and the exact tree, tell {min(tables):.0f}%; epsilon {EPSILON} lets "
        f"nobody be surer than {max(bounds):.3f} of what was believed with the most frequent value's share before"
    )
    return Claim(_said("private"), max(bounds) < CERTAIN < min(tables), evidence)


SETTING = (
    "People of Adult with eight quasi-identifiers, education is sensitive, in our words: the paper's own table has "
    "a few rows. A class publishes the values of its people. l is the fewest different values of a class, t the "
    "largest total variation distance of a class from all people. Who knows others takes their values off their class."
)
BOUND = (
    "The private tree's row is its audit where nobody is known, and elsewhere the bound that epsilon sets: the odds of "
    "a value grow at most by exp(epsilon), whoever else is known."
)
STUDY = Study(
    "hanisch-anonymous-table",
    "A k-anonymous table and a tree before somebody who knows others",
    f"{SOURCE}, section 2",
    trials,
    read,
    data=("adult",),
    about="Background knowledge undoes k-anonymity. How much of it does, and what becomes of a tree and a private one?",
)
