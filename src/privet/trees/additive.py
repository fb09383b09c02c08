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

from privet.column import decimal_text
from privet.domain import Domain
from privet.errors import QuestionError
from privet.kernel import MAX_CELLS, SMALLEST_EPSILON, ProtectedTable
from privet.trees.algorithm import Algorithm, check_attributes, check_budget, check_target
from privet.trees.boost import CONSTANTS, boost
from privet.trees.learned import Asked, Learned, centred_log, class_shares, table_of
from privet.trees.log_odds import from_likelihoods
from privet.trees.record import Privacy, Step
from privet.trees.tables import Table, Tables

Progress = Callable[[str], None]

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
    reasons: Sequence[str] = (),
    progress: Progress = lambda text: None,
    **choices: Any,
) -> Tables:
    """Learn a sum of tables within `epsilon`. What cannot be done is refused before anything is charged."""
    domain = table.domain
    check_target(domain)
    if learner.looks:
        _check_attributes(domain, epsilon)
    check_budget(table, learner.name, epsilon)
    found = learner.learn(table.allot(epsilon), epsilon, rng, progress, **choices)
    steps = tuple(
        Step(-1, number, question, 1, release.epsilon, release.about.entry) for question, release, number in found.asked
    )
    noisy = all(release.private for _, release, _ in found.asked)
    why = (*reasons, *(() if noisy else ("its noise was seeded, or its rows are public",)))
    privacy = Privacy(learner.name, "corrected", epsilon, domain.rows_per_person, steps, why)
    return Tables(domain, found.intercept, found.tables, privacy, found.note)


def _check_attributes(domain: Domain, epsilon: Fraction) -> None:
    """Refuse tables that are too large, and an epsilon that cannot be divided among all of them."""
    check_attributes(domain)
    for name in domain.attributes:
        cells = domain[name].size * len(domain.classes)
        if cells > MAX_CELLS:
            raise QuestionError(
                f"a table of '{name}' needs {cells} cells, at most {MAX_CELLS} are possible; declare coarser bins."
            )
    least = 2 * SMALLEST_EPSILON * max(len(domain.attributes), SHARE.denominator)
    if epsilon < least:
        raise QuestionError(
            f"epsilon={decimal_text(epsilon)} is too small to be divided among {len(domain.attributes)} attributes; "
            f"take at least {decimal_text(least)}."
        )


def _boosted(
    table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, progress: Progress, *, pairs: bool = True
) -> Learned:
    return boost(table, epsilon, rng, CONSTANTS if pairs else replace(CONSTANTS, max_cells=0), progress)


def _naive_bayes(table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, progress: Progress) -> Learned:
    """Class counts, and for each attribute a histogram with the class, all at the same price."""
    target, names = table.domain.target_column.name, table.domain.attributes
    first = epsilon * SHARE
    counts = table.histogram(target, epsilon=first)
    asked: list[Asked] = [("class counts", counts, 0)]
    shares = class_shares(counts)
    left, tables = epsilon - first, []
    for number, name in enumerate(names, start=1):
        progress(f"table {number} of {len(names)}")
        share = left / (len(names) - number + 1)
        left -= share
        found = table.histogram(name, target, epsilon=share)
        asked.append((table_of([name]), found, number))
        tables.append(Table((name,), *from_likelihoods(table.domain, (name,), found, shares), share))
    return Learned(centred_log(shares), tuple(tables), tuple(asked))


def _prior(table: ProtectedTable, epsilon: Fraction, rng: np.random.Generator, progress: Progress) -> Learned:
    """The whole budget for the class counts."""
    progress("counting classes")
    counts = table.histogram(table.domain.target_column.name, epsilon=epsilon)
    shares = np.maximum(counts.values.astype(np.float64), 0.5)
    return Learned(centred_log(shares / shares.sum()), (), (("class counts", counts, 0),))


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
