"""The list of all questions that can be asked of a table, and how one is read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.errors import QuestionError
from privet.kernel.questions import choose, counts, numbers, released_models, splits
from privet.kernel.session import VERSION, Question, json_forms

QUESTIONS: dict[str, type[Question[Any]]] = {
    question.kind: question
    for question in (
        counts.CountQuestion,
        counts.HistogramQuestion,
        counts.HistogramsQuestion,
        counts.MajorityQuestion,
        numbers.SumQuestion,
        numbers.MeanQuestion,
        numbers.QuantileQuestion,
        splits.SelectQuestion,
        splits.SelectThresholdQuestion,
        released_models.ResidualChoiceQuestion,
        released_models.ResidualSumsQuestion,
        released_models.CountCorrectQuestion,
        released_models.BestQuestion,
        choose.ChooseQuestion,
    )
}


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
    forms = json_forms(QUESTIONS[kind])
    if set(content) != {"question", "version", *forms}:
        raise QuestionError(f"the fields of the question '{kind}' are {', '.join(forms) or 'none'}.")
    values = {name: form.read(content[name]) for name, form in forms.items()}
    for name, value in values.items():
        if value is None:
            raise QuestionError(f"the field '{name}' of the question '{kind}' must be {forms[name].what}.")
    return QUESTIONS[kind](**values)
