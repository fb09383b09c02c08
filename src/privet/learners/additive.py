"""Learners whose model is a sum of tables: boosted tables, naive Bayes, and class shares alone.

A learner sees a table whose allotment is the epsilon of the fit, and releases alone: the charges of the
kernel are the whole cost, and each adds up to epsilon exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import QuestionError
from privet.kernel import MAX_RELEASED, SMALLEST_EPSILON, Domain, Histogram, ProtectedTable, decimal_text
from privet.learners.algorithm import Algorithm, check_attributes, check_budget, check_target, paid_for
from privet.learners.boosting import CONSTANTS, boost
from privet.learners.learned import Asked, Learned, centred_log, class_shares, prior_alone, table_of
from privet.learners.log_odds import from_likelihoods
from privet.learners.progress import Meter, Tell
from privet.models.privacy_record import Privacy, Step
from privet.models.tables import Table, Tables

SHARE = Fraction(1, 20)  # of epsilon, for the class counts of naive Bayes


@dataclass(frozen=True)
class Learner(Algorithm):
    """An algorithm that learns tables."""

    learn: Callable[..., Learned]
    looks: bool = True  # at attributes


def learn(
    table: ProtectedTable,
    learner: Learner,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    counts: Histogram | None = None,
    reasons: Sequence[str] = (),
    progress: Tell = lambda told: None,
    **choices: Any,
) -> Tables:
    """Learn a sum of tables within `epsilon`. What cannot be done is refused before anything is charged.

    `counts` are class counts of the table that were bought before; what they cost is part of `epsilon`.
    """
    domain = table.domain
    check_target(domain)
    if learner.looks:
        _check_attributes(domain, epsilon)
    left = epsilon - paid_for(counts, domain)
    check_budget(table, learner.name, left)
    found = learner.learn(table.allot(left), epsilon, rng, Meter(progress, domain), counts, **choices)
    return published(domain, learner.name, epsilon, found, reasons)


def published(
    domain: Domain, name: str, epsilon: Fraction, found: Learned, reasons: Sequence[str] = (), *more: Step
) -> Tables:
    """What was learned as a model, with the record of what it cost."""
    steps = tuple(
        Step(-1, number, question, 1, release.epsilon, release.about.entry) for question, release, number in found.asked
    )
    noisy = all(release.private for _, release, _ in found.asked)
    why = (*reasons, *(() if noisy else ("its noise was seeded, or its rows are public",)))
    privacy = Privacy(name, "corrected", epsilon, domain.rows_per_person, (*steps, *more), why)
    return Tables(domain, found.intercept, found.tables, privacy, found.note)


def _check_attributes(domain: Domain, epsilon: Fraction) -> None:
    """Refuse tables that are too large, and an epsilon that cannot be divided among all of them."""
    check_attributes(domain)
    cells = sum(domain[name].size for name in domain.attributes) * len(domain.classes)
    if cells > MAX_RELEASED:
        largest = max(domain.attributes, key=lambda name: domain[name].size)
        raise QuestionError(
            f"the tables of all attributes need {cells} cells, at most {MAX_RELEASED} are possible; declare coarser "
            f"bins, of '{largest}' first."
        )
    least = 2 * SMALLEST_EPSILON * max(len(domain.attributes), SHARE.denominator)
    if epsilon < least:
        raise QuestionError(
            f"epsilon={decimal_text(epsilon)} is too small to be divided among {len(domain.attributes)} attributes; "
            f"take at least {decimal_text(least)}."
        )


def _boosted(
    table: ProtectedTable,
    epsilon: Fraction,
    rng: np.random.Generator,
    meter: Meter,
    counts: Histogram | None,
    *,
    pairs: bool = True,
) -> Learned:
    return boost(table, epsilon, rng, CONSTANTS if pairs else replace(CONSTANTS, max_cells=0), meter, counts)


def _naive_bayes(
    table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, meter: Meter, counts: Histogram | None
) -> Learned:
    """Class counts, and for each attribute a histogram with the class, all at the same price."""
    target, names = table.domain.target_column.name, table.domain.attributes
    meter.at("counting classes", 0, 2, asked=0)
    if counts is None:
        counts = table.histogram(target, epsilon=epsilon * SHARE)
    meter.at(f"counting {len(names)} tables", 1, 2, asked=1)
    # one question: where the rows are on a server, every question reads all of them
    (tables,) = table.parts().histograms([[(name, target) for name in names]], epsilon - counts.epsilon)
    return naive_bayes(table.domain, counts, tables)


def naive_bayes(domain: Domain, counts: Histogram, tables: Sequence[Histogram]) -> Learned:
    """What class counts, and histograms of attributes with the class, say by Bayes' rule: post-processing alone."""
    shares = class_shares(counts)
    asked: list[Asked] = [("class counts", counts, 0)]
    found = []
    for number, each in enumerate(tables, start=1):
        name = each.columns[0]
        asked.append((table_of([name]), each, number))
        found.append(Table((name,), *from_likelihoods(domain, (name,), each, shares), each.epsilon))
    return Learned(centred_log(shares), tuple(found), tuple(asked))


def _prior(
    table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, meter: Meter, counts: Histogram | None
) -> Learned:
    """The whole budget for the class counts."""
    meter.at("counting classes", 0, 1, asked=0)
    return prior_alone(table, epsilon, counts)


LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        Learner(
            "boosted",
            "a sum of small tables, each bought where the ones before err most",
            "privet, after Friedman 2001 and Nori et al. 2021",
            _boosted,
        ),
        Learner(
            "naive-bayes", "a noisy histogram for each attribute", "privet, after Vaidya et al. 2013", _naive_bayes
        ),
        Learner("prior", "the class shares alone: what every learner has to beat", "privet", _prior, looks=False),
    )
}
