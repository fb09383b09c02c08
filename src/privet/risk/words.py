"""An audit in words: sentences and numbers that its report and its summary share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privet.risk.findings import BASELINES, WORLDS, Audit, Remedy
from privet.risk.measures import FLOOR, Disclosure
from privet.trees.layout import clean, shortened

UNKNOWN = "—"
LETTERS = 300  # of a label

ADVERSARIES = {
    "uniform": "knows the values and nothing else: all are alike",
    "marginal": "knows how frequent each value is among all people",
    "maximum entropy": "believes what was published and assumes nothing besides",
    "leaves alone": "the same without what the choice of splits tells",
    "possible worlds": "counts the tables that agree with what was published",
    "prediction": "believes what the model predicts for a person",
}


# -- words --------------------------------------------------------------------------------------


def plain(words: str) -> str:
    """A label that comes from data or from a file, as a terminal can bear it."""
    return shortened(clean(words), LETTERS)


def probability(share: float | None) -> str:
    """Three digits; what is not certain never looks certain, and what is possible never impossible.

    >>> [probability(share) for share in (1.0, 0.99999, 0.8335, 0.00001, 0.0, None)]
    ['1.000', '>.999', '0.834', '<.001', '0.000', '—']
    """
    if share is None:
        return UNKNOWN
    if 0.9995 <= share < 1 - 1e-9:
        return ">.999"
    return "<.001" if 1e-9 < share < 0.0005 else f"{share:.3f}"


def verdict(audit: Audit) -> str:
    """How many are known, how well the best known is, and by whom: one sentence."""
    worst = f"the worst posterior is {_spoken(audit.worst)}, by {surest(audit)}"
    what = f"'{plain(audit.sensitive)}'"
    if audit.undecided and audit.worst < audit.threshold:
        weighted = audit.publication is not None and any(map(audit.publication.unclear, audit.publication.leaves))
        why = (
            "the rows of the tree were weighted, so the shares in their leaves are not known"
            if weighted
            else "their leaves are pure if the tree was grown without max_depth (say so with stopping, full or none)"
        )
        return f"No verdict about the {what} of {audit.undecided:,} of {audit.people.total:,} people: {why}; {worst}."
    if audit.safe:
        return f"Nobody's {what} is known with probability {audit.threshold:g}: {worst}."
    people = f"{audit.known:,} of {audit.people.total:,} people"
    return f"The {what} of {people} is known with probability {audit.threshold:g} or more: {worst}."


def _spoken(share: float) -> str:
    return "1, which is certainty" if share > 1 - 1e-9 else probability(share)


def surest(audit: Audit) -> str:
    """The adversary of the worst posterior, the first of equals."""
    return next(name for name in audit.adversaries if audit.overall[name].worst > audit.worst - 1e-9)


def before(audit: Audit) -> str:
    """What somebody believes who has not seen the model: one sentence."""
    name = audit.baseline.adversary
    worst = audit.overall[name].worst
    how = "from the shares of the values alone" if name == "marginal" else "with all values alike"
    if worst >= audit.threshold:
        return (
            f"Without the model it would be {probability(worst)}, {how}: the most frequent value reaches the threshold "
            "by itself, whatever is published."
        )
    return f"Without the model it would be {probability(worst)}, {how}."


def promise(audit: Audit) -> str:
    """Of a private model: that its numbers are computed all the same, and what a single row adds to them."""
    if audit.epsilon is None:
        return ""
    said = (
        f"The model is private with epsilon {audit.epsilon:g}; the numbers here are computed from what it says, "
        "not concluded from that promise. It tells what holds of many people alike, and that is believed of a person "
        "with or without their row."
    )
    if WORLDS in audit.overall:
        worst = probability(audit.overall[WORLDS].worst)
        said += f" Whoever takes people for independent and values for even, as possible worlds does, gets to {worst}."
    return said


def difference(audit: Audit, beside: Audit) -> str:
    """Two audits in one sentence: who is known, and how well."""
    first, second = plain(audit.name), plain(beside.name)
    known = (
        f"{first} and {second} both make {audit.known:,} people known"
        if audit.known == beside.known
        else f"{first} makes {audit.known:,} people known and {second} {beside.known:,}, "
        f"{abs(audit.known - beside.known):,} {'fewer' if beside.known < audit.known else 'more'}"
    )
    return f"{known}; the worst posterior is {probability(audit.worst)} and {probability(beside.worst)}."


def best(remedies: Sequence[Remedy]) -> Remedy | None:
    """The remedy that is enough and costs the least accuracy; one whose cost is not known comes last."""
    enough = [remedy for remedy in remedies if remedy.enough]
    return min(enough, key=lambda each: (each.cost is None, each.cost or 0.0), default=None)


def accuracy(remedy: Remedy) -> str:
    """Before and after."""
    if remedy.accuracy_before is None and remedy.accuracy is None:
        return UNKNOWN
    return f"{_share(remedy.accuracy_before)} → {_share(remedy.accuracy)}"


# -- the measures of an adversary ---------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A column of the table of adversaries."""

    head: str
    means: str
    told: Callable[[Disclosure], str]


def measures(audit: Audit) -> list[Measure]:
    """The columns that an audit can fill: some need the true values."""
    threshold = f"{audit.threshold:g}"
    found = [
        Measure("worst", "the largest posterior: how surely the best known value of anybody is known", _worst),
        Measure("mean", "the largest posterior of an average person", lambda each: probability(each.mean)),
        Measure("known", f"people with a value of probability {threshold} or more", lambda each: f"{each.known:,}"),
        Measure(
            "entropy loss",
            "what is learnt about an average person, in nats, by whoever held all values for alike; "
            f"at most {math.log(len(audit.values)):.3f}, the logarithm of the number of values",
            lambda each: f"{max(each.entropy_loss, 0.0):.3f}",
        ),
    ]
    if audit.truth is not None:
        found += [
            Measure(
                "D",
                "D_overall, how far beliefs are from the truth on average (Kullback-Leibler divergence in nats): 0 for "
                "whoever knows the shares of each profile",
                lambda each: _number(each.overall),
            ),
            Measure(
                "D floored",
                f"the same with {FLOOR:g} of every belief shared evenly by all values: a stable number, where D grows "
                "without bound as a belief in something true nears 0",
                lambda each: _number(each.overall_floored),
            ),
            Measure("right", "people whose value the likeliest guess gets right", lambda each: _share(each.guessed)),
        ]
    return [
        *found,
        Measure(
            "l",
            "l-diversity: the best known profile is as uncertain as l equally likely values; in brackets the fewest "
            "values that a profile may have at all; 1 is certainty",
            lambda each: f"{each.diversity:.2f} ({each.distinct})",
        ),
        Measure(
            "alpha, k",
            "(alpha, k)-anonymity: no value is likelier than alpha for anybody, and k people share every profile",
            lambda each: f"{probability(each.alpha)}, {each.k}",
        ),
        Measure(
            "t",
            "t-closeness: the largest distance (total variation) of a profile's shares from those of all people",
            lambda each: probability(each.closeness),
        ),
    ]


def _worst(each: Disclosure) -> str:
    return probability(each.worst)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1%}"


def ordered(audit: Audit) -> list[str]:
    """The adversaries, baselines first."""
    return sorted(audit.beliefs, key=lambda name: name not in BASELINES)


def notes(audit: Audit) -> list[str]:
    """What there is to say of the audit and of each adversary, each sentence once."""
    said = [*audit.notes]
    for name in ordered(audit):
        said += [f"{name}: {note}" for note in audit.beliefs[name].notes if note not in audit.notes]
    return said
