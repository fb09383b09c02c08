"""Questions from JSON that somebody sent. Not trusted: the kernel checks what is read as it checks every question.

A question of the kernel says for each of its fields how it is written, and calls that form by its name. Here is how
the forms are read: JSON becomes a question of the list, or is refused in one sentence. Nothing is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import QuestionError
from privet.kernel import (
    MAX_PARTS,
    AdditiveModel,
    Condition,
    PerPart,
    Quality,
    Question,
    criterion_from_json,
    fraction_of,
    json_forms,
)
from privet.kernel.questions import choose, counts, numbers, released_models, residual_tables, splits

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
        residual_tables.ResidualTablesQuestion,
        residual_tables.TopTablesQuestion,
        choose.ChooseQuestion,
    )
}


def question_from_json(content: object) -> Question[Any]:
    """Return the question that its JSON form describes; `Question.check` then holds it against a domain.

    Parameters
    ----------
    content : object
        What `json.loads` returns.

    Returns
    -------
    Question

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
    if content.get("version") is not Question.version:
        raise QuestionError(f"a question of this version of privet has the version {Question.version}.")
    forms = json_forms(QUESTIONS[kind])
    if set(content) != {"question", "version", *forms}:
        raise QuestionError(f"the fields of the question '{kind}' are {', '.join(forms) or 'none'}.")
    values = {name: READERS[form.what](content[name]) for name, form in forms.items()}
    for name, value in values.items():
        if value is None:
            raise QuestionError(f"the field '{name}' of the question '{kind}' must be {forms[name].what}.")
    return QUESTIONS[kind](**values)


# -- readers: each returns None for what it refuses ---------------------------------------------

Reader = Callable[[object], Any]


def _list_of(read: Reader) -> Reader:
    def read_all(value: object) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(read(item) for item in value)
        return None if any(item is None for item in items) else items

    return read_all


def _per_part(read: Reader) -> Reader:
    def read_all(value: object) -> PerPart[Any] | None:
        if not isinstance(value, Mapping):
            return None
        if set(value) == {"all", "parts"}:
            count, item = _whole(value["parts"]), read(value["all"])
            return None if count is None or not 1 <= count <= MAX_PARTS or item is None else PerPart.same(item, count)
        if set(value) != {"values", "index"}:
            return None
        values, numbers = _list_of(read)(value["values"]), _list_of(_whole)(value["index"])
        if values is None or numbers is None or not all(0 <= number < len(values) for number in numbers):
            return None
        return PerPart.of(values[number] for number in numbers)

    return read_all


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fraction(value: object) -> Fraction | None:
    number = fraction_of(value) if isinstance(value, str) and value.isascii() else None
    return number if number is not None and str(number) == value else None  # one text for one number


_texts, _wholes = _list_of(_text), _list_of(_whole)


def _numbers(value: object) -> tuple[int, ...] | None:
    """Read a list of whole numbers that 64 bits hold, at least one."""
    numbers: tuple[int, ...] | None = _wholes(value)
    return numbers if numbers and all(abs(number) < 2**63 for number in numbers) else None


def _model(value: object) -> AdditiveModel | None:
    names = {"model", "version", "intercept", "terms"}
    if not isinstance(value, Mapping) or set(value) != names:
        return None
    if value["model"] != "additive" or value["version"] != AdditiveModel.version:
        return None
    intercept, terms = _numbers(value["intercept"]), _list_of(_term)(value["terms"])
    return None if intercept is None or terms is None else AdditiveModel(intercept, terms)


def _term(value: object) -> tuple[tuple[str, ...], Any] | None:
    """Read a table of a model, with its columns."""
    if not isinstance(value, Mapping) or set(value) != {"columns", "shape", "table"}:
        return None
    columns, shape, table = _texts(value["columns"]), _numbers(value["shape"]), _numbers(value["table"])
    if columns is None or shape is None or table is None or math.prod(shape) != len(table) or min(shape) < 1:
        return None
    return columns, np.array(table).reshape(shape)


def _merged_column(value: object) -> residual_tables.MergedColumn | None:
    """Read a column of a table, in its own cells or merged ones."""
    if not isinstance(value, Mapping) or not isinstance(value.get("column"), str):
        return None
    if set(value) == {"column"}:
        return residual_tables.MergedColumn(value["column"])
    codes = _wholes(value.get("codes"))
    return (
        None
        if codes is None or set(value) != {"column", "codes"}
        else residual_tables.MergedColumn(value["column"], codes)
    )


def _candidate(value: object) -> splits.Candidate | None:
    """Read what competes to split a part: a column, or a column and a grid index."""
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int:
        return value[0], value[1]
    return _text(value)


def _condition(value: object) -> Condition | None:
    if not isinstance(value, Mapping) or not isinstance(value.get("column"), str):
        return None
    column = value["column"]
    if set(value) == {"column", "codes"}:
        codes = _wholes(value["codes"])
        return None if codes is None else Condition(column, codes)
    if set(value) == {"column", "low", "high"} and type(value["low"]) is type(value["high"]) is int:
        return Condition(column, None, value["low"], value["high"])
    return None


def _competitor(value: object) -> tuple[str, released_models.Competitor] | None:
    """Read a name with a model or conditions."""
    name, content = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
    candidate: released_models.Competitor | None = None
    if isinstance(content, dict) and set(content) == {"model"}:
        candidate = _model(content["model"])
    elif isinstance(content, dict) and set(content) == {"where"}:
        candidate = _list_of(_condition)(content["where"])
    return (name, candidate) if isinstance(name, str) and candidate is not None else None


def _quality(value: object) -> tuple[str, Quality] | None:
    """Read a name with a quality."""
    if not isinstance(value, dict) or set(value) != {"name", "columns", "shape", "table"}:
        return None
    columns, shape, table = _texts(value["columns"]), _wholes(value["shape"]), _wholes(value["table"])
    if not isinstance(value["name"], str) or columns is None or shape is None or table is None:
        return None
    if math.prod(shape) != len(table) or min(shape, default=1) < 1:
        return None
    return value["name"], Quality(columns, np.array(table, dtype=object).reshape(shape))


READERS: dict[str, Reader] = {  # by the names of the forms, which errors quote
    "a text": _text,
    "a list of texts": _texts,
    "a list of lists of texts": _list_of(_texts),
    "true or false": _flag,
    "a whole number": _whole,
    "a list of whole numbers": _wholes,
    "a fraction in a text, such as 1/3": _fraction,
    "a list of fractions in texts": _list_of(_fraction),
    "a list of tables of columns": _list_of(_list_of(_merged_column)),
    "a model": _model,
    "a criterion": criterion_from_json,
    "lists of columns for each part": _per_part(_list_of(_texts)),
    "candidates for each part": _per_part(_list_of(_candidate)),
    "columns for each part": _per_part(_texts),
    "a list of names with models or conditions": _list_of(_competitor),
    "a list of qualities": _list_of(_quality),
}
