"""One class for each question that can be asked of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.errors import QuestionError
from privet.kernel.questions.choose import ChooseQuestion, Quality
from privet.kernel.questions.counts import CountQuestion, HistogramQuestion, HistogramsQuestion, MajorityQuestion
from privet.kernel.questions.numbers import MeanQuestion, QuantileQuestion, SumQuestion
from privet.kernel.questions.question import VERSION, Question, json_forms
from privet.kernel.questions.released_models import (
    BestQuestion,
    CountCorrectQuestion,
    ResidualChoiceQuestion,
    ResidualSumsQuestion,
)
from privet.kernel.questions.splits import SelectQuestion, SelectThresholdQuestion

QUESTIONS: dict[str, type[Question[Any]]] = {
    question.kind: question
    for question in (
        CountQuestion,
        HistogramQuestion,
        HistogramsQuestion,
        MajorityQuestion,
        SumQuestion,
        MeanQuestion,
        QuantileQuestion,
        SelectQuestion,
        SelectThresholdQuestion,
        ResidualChoiceQuestion,
        ResidualSumsQuestion,
        CountCorrectQuestion,
        BestQuestion,
        ChooseQuestion,
    )
}

__all__ = [
    "QUESTIONS",
    "BestQuestion",
    "ChooseQuestion",
    "CountCorrectQuestion",
    "CountQuestion",
    "HistogramQuestion",
    "HistogramsQuestion",
    "MajorityQuestion",
    "MeanQuestion",
    "Quality",
    "QuantileQuestion",
    "Question",
    "ResidualChoiceQuestion",
    "ResidualSumsQuestion",
    "SelectQuestion",
    "SelectThresholdQuestion",
    "SumQuestion",
    "question_from_json",
]


def question_from_json(content: object) -> Question[Any]:
    """Return the question that its JSON form describes; `Question.check` then holds it against a domain.

    Raises
    ------
    QuestionError
        It is none, or of another version.

    >>> question_from_json({"question": "histogram", "version": 1, "columns": ["sex"]})
    HistogramQuestion(columns=('sex',))
    """
    kind = content.get("question") if isinstance(content, Mapping) else None
    if not isinstance(content, Mapping) or not isinstance(kind, str) or kind not in QUESTIONS:
        raise QuestionError(f"the JSON form of a question names one of {', '.join(QUESTIONS)}.")
    if content.get("version") is not VERSION:
        raise QuestionError(f"a question of this version of privet has the version {VERSION}.")
    question = QUESTIONS[kind]
    forms = json_forms(question)
    if set(content) != {"question", "version", *forms}:
        raise QuestionError(f"the fields of the question '{question.kind}' are {', '.join(forms) or 'none'}.")
    values = {name: form.read(content[name]) for name, form in forms.items()}
    for name, value in values.items():
        if value is None:
            raise QuestionError(f"the field '{name}' of the question '{question.kind}' must be {forms[name].what}.")
    return question(**values)
