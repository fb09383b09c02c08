"""What no learner does: each refuses what it cannot pay, what is no epsilon, and a table read without noise."""

from __future__ import annotations

from typing import Any

import pytest

import privet
from privet.errors import BudgetExceeded, NotPrivate, QuestionError

PRIVATE = (
    privet.AutoClassifier,
    privet.BoostedTablesClassifier,
    privet.DiffPC45Classifier,
    privet.DiffPID3Classifier,
    privet.HanischForestClassifier,
    privet.HanischTreeClassifier,
    privet.ID3PlusClassifier,
    privet.JagannathanForestClassifier,
    privet.MaxForestClassifier,
    privet.MaxTreeClassifier,
    privet.MohammedTreeClassifier,
    privet.NaiveBayesClassifier,
    privet.PatilSinghForestClassifier,
    privet.PriorClassifier,
    privet.SNRForestClassifier,
    privet.SuLQID3Classifier,
)
ON_PUBLIC_ROWS = (privet.C45Classifier, privet.ID3Classifier)


@pytest.fixture(scope="module")
def table() -> privet.ProtectedTable:
    return privet.open(privet.datasets.census(300, seed=1), privet.datasets.census_domain(), budget="1.0")


def test_these_are_all_learners() -> None:
    names = {kind.__name__ for kind in (*PRIVATE, *ON_PUBLIC_ROWS)}
    assert names == {name for name in privet.__all__ if name.endswith("Classifier")}


@pytest.mark.parametrize("learner", PRIVATE)
def test_a_fit_that_cannot_be_paid_or_has_no_epsilon_is_refused_and_charges_nothing(
    learner: Any, table: privet.ProtectedTable
) -> None:
    with pytest.raises(BudgetExceeded, match="has 1 left"):
        learner(epsilon="1.5").fit(table)
    for epsilon in (None, 0, -1, "much", float("nan")):
        with pytest.raises(QuestionError, match="epsilon"):
            learner(epsilon=epsilon).fit(table)
    assert table.budget.spent == 0


@pytest.mark.parametrize("learner", ON_PUBLIC_ROWS)
def test_a_learner_without_noise_is_refused_by_a_table(learner: Any, table: privet.ProtectedTable) -> None:
    with pytest.raises(NotPrivate, match="fit it on public rows"):
        learner().fit(table)
    assert table.budget.spent == 0
