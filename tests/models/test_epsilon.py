"""What epsilon means for a person: the limit is Bayes' rule, it is reached, and every text says the same numbers."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet import Nominal
from privet.models.epsilon import belief, factor, percent, sentence

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
evidence: Any = importlib.import_module("evidence.epsilon")


def geometric(values: np.ndarray, epsilon: float) -> np.ndarray:
    """The probabilities of two-sided geometric noise, as a count of epsilon has it."""
    q = math.exp(-epsilon)
    return np.asarray((1 - q) / (1 + q) * q ** np.abs(values))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("prior", [0.001, 0.5, 0.9])
def test_no_answer_makes_anybody_surer_than_the_limit_and_one_reaches_it(prior: float, epsilon: float) -> None:
    """Somebody who knows all others sees a count of them, and of the person if they are in: 0 or 1 beyond the known."""
    released = np.arange(-30, 31)
    there, absent = geometric(released - 1, epsilon), geometric(released, epsilon)
    posterior = prior * there / (prior * there + (1 - prior) * absent)
    assert posterior.max() == pytest.approx(belief(prior, epsilon))
    assert posterior.min() == pytest.approx(belief(prior, -epsilon))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_a_fact_of_a_member_moves_the_odds_by_twice_epsilon_and_no_more(epsilon: float) -> None:
    """A histogram of two cells, in one of which the person is known to be."""
    left, right = np.meshgrid(np.arange(-20, 21), np.arange(-20, 21))
    yes = geometric(left - 1, epsilon) * geometric(right, epsilon)
    no = geometric(left, epsilon) * geometric(right - 1, epsilon)
    assert (yes / (yes + no)).max() == pytest.approx(belief(0.5, 2 * epsilon))


def test_the_sentence_has_the_numbers_of_the_limit() -> None:
    assert "at most about 62% likely" in sentence(0.5) and "from 50% to at most about 73%." in sentence(0.5)
    assert percent(belief(0.5, 1)) == "73%" and factor(1) == "e^1 = 2.72"
    assert "at most about 100% likely" in sentence(50)  # which protects nobody, and says so


def quoted(text: str) -> str:
    """A page without the marks of quotations and the ends of its lines."""
    return " ".join(text.replace("\n> ", " ").split())


def test_the_page_says_what_the_function_computes() -> None:
    page = evidence.PAGE.read_text(encoding="utf-8")
    assert sentence(0.5) in quoted(page)
    assert evidence.TABLE.search(page)[0] == evidence.table(), "run python -m evidence.epsilon"
    assert evidence.PICTURE.read_text(encoding="utf-8") == evidence.picture(), "run python -m evidence.epsilon"
    assert "could not become surer than about 62%" in quoted(page)


def test_the_page_is_linked_where_people_begin() -> None:
    for name in ("explanation/privacy.md", "how-to/which.md", "reference/ledger.md", "reference/domain.md"):
        assert "epsilon.md" in (ROOT / "docs" / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("learner", [privet.PriorClassifier, privet.MaxTreeClassifier])
def test_pages_of_models_say_it_and_name_the_page(learner: type) -> None:
    domain = privet.Domain((Nominal("sex", ("f", "m")), Nominal("ill", ("yes", "no"))), target="ill")
    rows = pd.DataFrame({"sex": ["f", "m"] * 50, "ill": ["yes", "no"] * 50})
    with privet.open(rows, domain, budget=1) as table:
        page = learner("0.5").fit(table).model_.to_html()
    assert sentence(0.5) in page and "Epsilon for a person (docs/explanation/epsilon.md)" in page


def test_a_model_that_is_not_private_promises_nothing() -> None:
    domain = privet.Domain((Nominal("sex", ("f", "m")), Nominal("ill", ("yes", "no"))), target="ill")
    rows = pd.DataFrame({"sex": ["f", "m"] * 50, "ill": ["yes", "no"] * 50})
    page = privet.ID3Classifier(domain=domain).fit(rows[["sex"]], rows["ill"]).model_.to_html()
    assert "NOT PRIVATE" in page and "likely" not in page


def test_a_belief_of_zero_or_one_stays() -> None:
    assert belief(0.0, 5.0) == 0 and belief(1.0, 5.0) == 1
