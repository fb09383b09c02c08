"""Identity: what a question, rows, a criterion, a model, a domain and a plan are, whatever Python calls them.

The golden file holds their canonical JSON forms and hashes. A change of it makes keys in ledgers and shipped policies
mean something else: give the form a new version instead. PRIVET_UPDATE_GOLDEN=1 writes the file anew.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.choice.arms import ARMS
from privet.errors import KeyReused, QuestionError
from privet.kernel import (
    AdditiveModel,
    Date,
    Domain,
    InfoGain,
    Max,
    Nominal,
    Numeric,
    PerPart,
    Quality,
    Question,
    Rows,
    WeightedMax,
    digest,
)
from privet.kernel.criteria import Gini, LargestCell
from privet.kernel.public_values import canonical
from privet.kernel.questions.counts import (
    ChooseQuestion,
    CountQuestion,
    GroupCellsQuestion,
    GroupedHistogramQuestion,
    HistogramQuestion,
    HistogramsQuestion,
    MajorityQuestion,
)
from privet.kernel.questions.numbers import MeanQuestion, QuantileQuestion, SumQuestion
from privet.kernel.questions.released_models import (
    BestQuestion,
    CountCorrectQuestion,
    MergedColumn,
    ResidualChoiceQuestion,
    ResidualSumsQuestion,
    ResidualTablesQuestion,
    TopTablesQuestion,
)
from privet.kernel.questions.splits import SelectQuestion, SelectThresholdQuestion
from privet.kernel.rows import Condition, Split
from privet.learners.presets import PRESETS
from privet.question_json import QUESTIONS, READERS, criterion_from_json, forms_of, question_from_json

GOLDEN = Path(__file__).parent / "golden" / "identities.json"

DOMAIN = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), edges=(Fraction(30), Fraction(60)), missing=True),
        Nominal("job", ("clerk", "Bäcker"), other=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    max_rows=1000,
    rows_per_person=2,
)
DATED = Domain((Date("admitted", "2019-11-15", "2020-12-31", "3 months", missing=True),))
MODEL = AdditiveModel((10, -10), ((("job",), np.array([[1, -1], [2, -2], [3, -3]])),))
ROWS = {
    "table": Rows(),
    "kept": Rows().keep([0], (Condition("job", (0, 2)), Condition("age", None, 30, 60))),
    "divided": Rows().divide([Split("job")], DOMAIN).divide([Split("age", (40,)), None, Split("ill")], DOMAIN),
    "scattered": Rows().scatter(3, 2**63),
}
CRITERIA = (Max(), Gini(), LargestCell(), InfoGain(1000), WeightedMax((1024, 7)))
ASKED: tuple[Question[Any], ...] = (
    CountQuestion(),
    HistogramQuestion(("job", "ill")),
    HistogramsQuestion(PerPart.of([(("job",), ("age", "ill")), (("ill",),)])),
    MajorityQuestion("job"),
    GroupCellsQuestion(("job",), (0, 2, 1), Fraction(5, 2)),
    GroupedHistogramQuestion(("job",), (0, 1, 0)),
    SumQuestion("age"),
    MeanQuestion("age"),
    QuantileQuestion("age", Fraction(9, 10)),
    SelectQuestion(Gini(), PerPart.of([("job", ("age", 40)), ("job",), ("job",)]), "noisy-max", monotone=False),
    SelectThresholdQuestion(WeightedMax((1024, 7)), PerPart.same(("age", "job"), 3)),
    ResidualChoiceQuestion(MODEL, (("job",), ("age", "job")), (1024, 5)),
    ResidualSumsQuestion(MODEL, ("age",), (1024, 5)),
    CountCorrectQuestion(MODEL),
    BestQuestion((("model", MODEL), ("the old", (Condition("age", None, 60, 100),)))),
    ResidualTablesQuestion(
        MODEL, ((), (MergedColumn("age", (0, 0, 1, 1)),)), (Fraction(1, 3), Fraction(1, 100)), 512, signs_apart=True
    ),
    TopTablesQuestion(MODEL, ((MergedColumn("age"),), (MergedColumn("age"), MergedColumn("job"))), 1, 512, (0, 7)),
    ChooseQuestion((("few", Quality(["ill"], [0, 1])), ("many", Quality(["job"], [3, 0, -2]))), 2),
)


def identities() -> dict[str, Any]:
    """Everything that has an identity, as the golden file holds it."""
    written: dict[str, Any] = {}
    for question in ASKED:
        written[f"question {question.kind}"] = [question.to_json(), question.identity(), question.fingerprint]
    for name, rows in ROWS.items():
        written[f"rows {name}"] = [rows.to_json(), rows.fingerprint]
    for rule in CRITERIA:
        written[f"criterion {rule.name}"] = [rule.to_json(), digest(rule.to_json())]
    written["model"] = [MODEL.to_json(), MODEL.fingerprint]
    written["domain"] = [DOMAIN.to_json(), DOMAIN.fingerprint]
    written["domain of dates"] = [DATED.to_json(), DATED.fingerprint]
    for name, preset in PRESETS.items():
        plan = preset.plan(privet.datasets.census_domain())
        written[f"plan {name}"] = [plan.to_json(), digest(plan.to_json())]
    for name, arm in ARMS.items():
        written[f"arm {name}"] = [arm.to_json(), arm.fingerprint]
    result: dict[str, Any] = json.loads(canonical(written))
    return result


def test_identities_are_those_of_the_golden_file() -> None:
    if os.environ.get("PRIVET_UPDATE_GOLDEN"):
        lines = [f"{json.dumps(name)}: {canonical(form)}" for name, form in identities().items()]
        GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    now = identities()
    assert now.keys() == golden.keys()
    for name, form in golden.items():
        assert now[name] == form, name


def test_every_question_has_an_identity_in_the_golden_file() -> None:
    assert [question.kind for question in ASKED] == list(QUESTIONS)


def test_every_form_of_a_field_can_be_read() -> None:
    read = {form.what for question in QUESTIONS.values() for form in forms_of(question).values()}
    assert read == {form.what for form in READERS.values()}


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.kind)
def test_a_question_is_read_back_from_its_json(question: Question[Any]) -> None:
    again = question_from_json(json.loads(canonical(question.to_json())))
    assert type(again) is type(question)
    assert canonical(again.to_json()) == canonical(question.to_json())
    assert again.fingerprint == question.fingerprint
    again.check(DOMAIN, _rows_for(question))


def _rows_for(question: Question[Any]) -> Rows:
    """Rows with as many parts as a question has values for."""
    per_part = [value for value in vars(question).values() if isinstance(value, PerPart)]
    return Rows().scatter(len(per_part[0]), 1) if per_part else Rows()


@pytest.mark.parametrize("rule", CRITERIA, ids=lambda rule: rule.name)
def test_a_criterion_is_read_back_from_its_json(rule: Any) -> None:
    assert criterion_from_json(json.loads(canonical(rule.to_json()))) == rule


HUGE = 10**30
FORGED: tuple[Any, ...] = (
    None,
    [],
    "count",
    {},
    {"question": "count"},
    {"question": "count", "version": 2},
    {"question": "count", "version": True},
    {"question": "count", "version": 1, "epsilon": 1},
    {"question": ["count"], "version": 1},
    {"question": "drop table", "version": 1},
    {"question": "__class__", "version": 1},
    {"question": "histogram", "version": 1},
    {"question": "histogram", "version": 1, "columns": "age"},
    {"question": "histogram", "version": 1, "columns": [1]},
    {"question": "histogram", "version": 1, "columns": {"age": 1}},
    {"question": "quantile", "version": 1, "column": "age", "rank": 0.5},
    {"question": "quantile", "version": 1, "column": "age", "rank": "1/0"},
    {"question": "quantile", "version": 1, "column": "age", "rank": "9" * 1000},
    {"question": "quantile", "version": 1, "column": "age", "rank": "0x1"},
    {"question": "histograms", "version": 1, "groups": {"all": [["job"]], "parts": 0}},
    {"question": "histograms", "version": 1, "groups": {"values": [[["job"]]], "index": [0, 1]}},
    {"question": "histograms", "version": 1, "groups": {"values": [[["job"]]], "index": [-1]}},
    {"question": "select", "version": 1, "criterion": {"criterion": "gain-ratio", "version": 1}},
    {"question": "count-correct", "version": 1, "model": {"sha256": MODEL.fingerprint}},
    {"question": "count-correct", "version": 1, "model": {**MODEL.to_json(), "intercept": [HUGE, 0]}},  # type: ignore[dict-item]
    {"question": "count-correct", "version": 1, "model": {**MODEL.to_json(), "intercept": [0.5, 0]}},  # type: ignore[dict-item]
    {"question": "best", "version": 1, "candidates": [["a", {"where": [{"column": "age"}]}]]},
    {"question": "choose", "version": 1, "bound": 1, "mechanism": "exponential", "candidates": [{"name": "a"}]},
)


@pytest.mark.parametrize("content", FORGED, ids=lambda content: str(content)[:60])
def test_json_that_is_no_question_is_refused_in_one_sentence(content: Any) -> None:
    with pytest.raises(QuestionError) as refused:
        question_from_json(content)
    text = str(refused.value)
    assert text.endswith(".") and "\n" not in text and len(text) < 300
    assert refused.value.__cause__ is None


UNFIT: tuple[Question[Any], ...] = (
    HistogramQuestion(("age", "age")),
    HistogramQuestion(("nobody",)),
    HistogramsQuestion(PerPart.same((), 1)),
    QuantileQuestion("age", Fraction(3, 2)),
    QuantileQuestion("age", Fraction(1, 10**9)),
    SelectQuestion(Max(), PerPart.same((("age", 0),), 1)),
    SelectQuestion(Max(), PerPart.same((("age", 100),), 1)),
    SelectQuestion(Max(), PerPart.same(("ill",), 1)),
    SelectQuestion(Max(), PerPart.same(("job",), 2)),
    SelectQuestion(WeightedMax((1, 2, 3)), PerPart.same(("job",), 1)),
    SelectQuestion(Max(), PerPart.same(("job",), 1), "guess"),
    SelectThresholdQuestion(Max(), PerPart.same((), 1)),
    BestQuestion((("a", (Condition("job", (3,)),)), ("b", ()))),
    BestQuestion((("a", (Condition("age", None, 0, 101),)), ("b", ()))),
    BestQuestion((("a", (Condition("job", None, 0, 1),)), ("b", ()))),
    BestQuestion((("a", ()), ("a", ()))),
    ResidualSumsQuestion(MODEL, ("age",), (1025, 5)),
    ResidualSumsQuestion(MODEL, ("ill",), (1, 5)),
    CountCorrectQuestion(AdditiveModel((1, 2, 3))),
)


@pytest.mark.parametrize("question", UNFIT, ids=str)
def test_a_question_that_does_not_fit_the_domain_is_refused_before_a_charge(question: Question[Any]) -> None:
    """Whatever a wire brings: the fluent methods are not the only way to make one."""
    frame = pd.DataFrame({"age": [40], "job": ["clerk"], "ill": ["no"]})
    table = privet.open(frame, DOMAIN, budget=1)
    with pytest.raises(privet.errors.PrivetError) as refused:
        table._session.ask(question, table._sets, PerPart.same(Fraction(1), 1))
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")
    assert table.budget.spent == 0 and table.budget.entries == []


def test_a_key_belongs_to_a_question_its_rows_and_its_epsilon() -> None:
    frame = pd.DataFrame({"age": [40] * 50, "job": ["clerk"] * 50, "ill": ["no"] * 50})
    table = privet.open(frame, DOMAIN, budget=10)
    first = table.where(job="clerk").count(1, key="k")
    assert table.where({"job": {"clerk"}}).count("1.0", key="k") == first  # written otherwise, and the same
    for other in (
        lambda: table.count(1, key="k"),
        lambda: table.where(job="clerk").count(2, key="k"),
        lambda: table.where(job="Bäcker").count(1, key="k"),
        lambda: table.where(job="clerk").histogram("ill", epsilon=1, key="k"),
    ):
        with pytest.raises(KeyReused):
            other()
    assert table.budget.spent == 1
