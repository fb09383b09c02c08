"""An audit in words: sentences and numbers that its report and its summary share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privet.models.epsilon import sentence
from privet.risk.findings import BASELINES, Audit, Remedy, plain, probability
from privet.risk.measures import FLOOR, Disclosure

UNKNOWN = "—"

ADVERSARIES = {
    "uniform": "knows the values and nothing else: all are alike",
    "marginal": "knows how frequent each value is among all people",
    "maximum entropy": "believes what was published and assumes nothing besides",
    "leaves alone": "the same without what the choice of splits tells",
    "possible worlds": "counts the tables that agree with what was published",
    "all together": "holds all trees against each other",
    "prediction": "believes what the model predicts for a person",
}


# -- words --------------------------------------------------------------------------------------


def verdict(audit: Audit) -> str:
    """What to do about publishing, and why."""
    return str(audit.verdict)


def before(audit: Audit) -> str:
    """The three numbers of an average person: one sentence."""
    numbers = {name: probability(each["mean"]) for name, each in audit.summary.items()}
    said = (
        f"Of an average person the true value is believed with {numbers['baseline']} from the shares of the values "
        f"alone (baseline), and with {numbers['inference']} from the model by the rows of others (inference)"
    )
    if not audit.own.is_computed:
        return f"{said}; what the own row adds is not computed, only bounded."
    return f"{said}; the own row adds {numbers['disclosure']} (disclosure)."


def promise(audit: Audit) -> str:
    """What the epsilon of a private model means for a person, in the words of all pages."""
    return "" if not audit.epsilon else sentence(audit.epsilon)


def difference(audit: Audit, beside: Audit) -> str:
    """Two audits in one sentence: whose rows give something away, and how much."""
    first, second = plain(audit.name), plain(beside.name)
    if audit.by_own_row:
        added = f"{probability(audit.worst)} at most and {probability(beside.worst)}"
        many = f"{audit.known:,} people's own rows add {audit.threshold:g} or more with {first} and {beside.known:,}"
        return f"{many} with {second}; the rows add {added}{'' if beside.own.is_computed else ' by its promise'}."
    known = (
        f"{first} and {second} both make {audit.known:,} people known"
        if audit.known == beside.known
        else f"{first} makes {audit.known:,} people known and {second} {beside.known:,}, "
        f"{abs(audit.known - beside.known):,} {'fewer' if beside.known < audit.known else 'more'}"
    )
    return f"{known}; the worst posterior is {probability(audit.worst)} and {probability(beside.worst)}."


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
    threshold = f"{next(iter(audit.overall.values())).threshold:g}"
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
