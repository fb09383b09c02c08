"""Learners whose model is a sum of tables: boosted tables, naive Bayes, and class shares alone.

A learner gets a table that may spend the epsilon of the fit and no more, and it sees releases alone.
So the charges of the kernel are the whole cost, and they add up to epsilon exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import QuestionError
from privet.kernel import MAX_RELEASED, SMALLEST_EPSILON, Domain, Rho, rho_of
from privet.learners.algorithm import (
    Algorithm,
    Exchange,
    Meter,
    ProgressCallback,
    check_attributes,
    check_budget,
    check_target,
    cost_of_counts,
    ignore_progress,
)
from privet.learners.boosting import CONSTANTS, NO_TABLE, boost
from privet.learners.joint_tables import COUNT_SHARE, enough_rows, enough_signal, joint_signal, learn_jointly
from privet.learners.log_odds import (
    AskedQuestion,
    Learned,
    centred_log,
    class_shares,
    from_likelihoods,
    prior_alone,
    table_title,
)
from privet.models.privacy_record import Privacy, Step
from privet.models.tables import Table, Tables
from privet.release import Histogram
from privet.table import ProtectedTable
from privet.text import decimal_text

SHARE = Fraction(1, 20)  # of epsilon, for the class counts of naive Bayes
LITTLE = "with so little signal a data set without a delta would have given more for the same epsilon"


@dataclass(frozen=True)
class Learner(Algorithm):
    """An algorithm that learns tables.

    Parameters
    ----------
    name, line, citation, private
        As in `Algorithm`.
    learn : callable
        ``learn(table, epsilon, rng, meter, counts, **choices)`` returns a `Learned`. `counts` are class
        counts that were bought before, or None; `table` may spend what they leave of `epsilon`.
    looks : bool, default True
        Whether the learner looks at any attribute.
    """

    learn: Callable[..., Learned]
    looks: bool = True


def learn(
    table: ProtectedTable,
    learner: Learner,
    epsilon: Fraction,
    rng: np.random.Generator,
    *,
    counts: Histogram | None = None,
    reasons: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
    **choices: Any,
) -> Tables:
    """Learn a sum of tables within `epsilon`. What cannot be done is refused before anything is charged.

    Parameters
    ----------
    table : ProtectedTable
    learner : Learner
    epsilon : Fraction
        The cost of the whole fit, per person.
    rng : numpy.random.Generator
        Public coins; noise is never drawn from it.
    counts : Histogram, optional
        Class counts of the table that were bought before. Their cost is part of `epsilon`.
    reasons : sequence of str, default ()
        Why the model is not private, if it is not.
    progress : callable, optional
        Called with a `Progress` at each step.
    **choices
        Options of the learner.

    Returns
    -------
    Tables

    Raises
    ------
    QuestionError
        The domain or epsilon does not suit the learner. Nothing was charged.
    BudgetExceeded
        The table cannot pay the whole fit. Nothing was charged.
    """
    domain = table.domain
    check_target(domain)
    if learner.looks:
        _check_attributes(domain, epsilon)
    if table.unit.delta is not None and counts is not None and learner.name != "boosted":
        raise QuestionError(f"{learner.name} buys its own class counts in a data set with a delta; leave out counts.")
    remaining = epsilon - cost_of_counts(counts, domain, Exchange.of(table, epsilon))
    check_budget(table, learner.name, remaining)
    scope = table.spending(remaining)  # a fit divides its epsilon: of a data set with a delta, the rho of it
    learned = learner.learn(scope, epsilon, rng, Meter(progress, domain), counts, **choices)
    return published_model(domain, learner.name, epsilon, learned, reasons)


def published_model(
    domain: Domain, name: str, epsilon: Fraction, learned: Learned, reasons: Sequence[str] = (), *more: Step
) -> Tables:
    """Return what was learned as a model, with the record of what it cost.

    Parameters
    ----------
    domain : Domain
    name : str
        The algorithm.
    epsilon : Fraction
        What the model promises, per person.
    learned : Learned
    reasons : sequence of str, default ()
        Why the model is not private, if it is not.
    *more : Step
        Steps of the record that no question of `learned` stands for.

    Returns
    -------
    Tables
    """
    steps = tuple(
        Step(-1, number, question, 1, release.about.loss, release.about.entry)
        for question, release, number in learned.asked
    )
    delta = next((release.delta for _, release, _ in learned.asked), None)
    rho = None if delta is None else rho_of(epsilon, delta)
    noisy = all(release.private for _, release, _ in learned.asked)
    why = (*reasons, *(() if noisy else ("its noise was seeded, or its rows are public",)))
    privacy = Privacy(
        name,
        "corrected",
        epsilon,
        domain.rows_per_person,
        (*steps, *more),
        why,
        person=domain.person or "",
        delta=delta,
        rho=rho,
    )
    return Tables(learned.domain or domain, learned.intercept, learned.tables, privacy, learned.note)


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
    """Learn boosted tables, of several attributes too if `pairs` is true; with a delta, all tables together."""
    constants = CONSTANTS if pairs else replace(CONSTANTS, max_cells=0)
    domain = table.domain
    if table.unit.delta is None:
        return boost(table, epsilon, rng, constants, meter, counts)
    rho = table.amount(epsilon)
    if counts is None:
        counts = table.histogram(domain.target_column.name, epsilon=Rho(rho * COUNT_SHARE))
    else:  # a little less: what they cost was rounded up as a share of epsilon
        rho *= 1 - Fraction(1, 10**30)
    rows = float(domain.rows or max(np.maximum(counts.values, 0).sum(), 1.0))
    if enough_rows(domain, rows, rho):
        learned = learn_jointly(table, rho, counts, rows, meter, pairs=pairs)
        return learned if enough_signal(domain, joint_signal(domain, rows, rho)) else replace(learned, note=LITTLE)
    # what the counts cost as a share of epsilon, rounded up to millionths
    paid = epsilon * Fraction(math.ceil(counts.about.loss / rho * 10**6), 10**6)
    return replace(prior_alone(table, epsilon, counts, paid), note=NO_TABLE)


def _naive_bayes(
    table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, meter: Meter, counts: Histogram | None
) -> Learned:
    """Buy class counts, and a histogram of each attribute with the class, all at the same price."""
    target, names = table.domain.target_column.name, table.domain.attributes
    meter.at("counting classes", 0, 2, asked=0)
    paid = epsilon * SHARE if counts is None else counts.epsilon
    if counts is None:
        counts = table.histogram(target, epsilon=paid)
    meter.at(f"counting {len(names)} tables", 1, 2, asked=1)
    # one question: where the rows are on a server, every question reads all of them
    (histograms,) = table.parts().histograms([[(name, target) for name in names]], epsilon - paid)
    return naive_bayes(table.domain, counts, histograms)


def naive_bayes(domain: Domain, counts: Histogram, histograms: Sequence[Histogram]) -> Learned:
    """Return the naive Bayes model of released histograms. It is post-processing and costs nothing.

    Parameters
    ----------
    domain : Domain
    counts : Histogram
        Released class counts.
    histograms : sequence of Histogram
        Released counts of an attribute with the class, one for each attribute.

    Returns
    -------
    Learned
    """
    shares = class_shares(counts)
    asked = [AskedQuestion("class counts", counts, 0)]
    tables = []
    for number, histogram in enumerate(histograms, start=1):
        name = histogram.columns[0]
        asked.append(AskedQuestion(table_title([name]), histogram, number))
        tables.append(Table((name,), *from_likelihoods(domain, (name,), histogram, shares), histogram.epsilon))
    return Learned(centred_log(shares), tuple(tables), tuple(asked))


def _prior(
    table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, meter: Meter, counts: Histogram | None
) -> Learned:
    """Spend the whole budget on class counts."""
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
