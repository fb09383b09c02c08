"""Questions, and steps to rows, from JSON that somebody sent. Not trusted: the kernel checks all of it.

The type of a field of a question decides how it is written, and how it is read here: JSON becomes a question of the
list, or is refused in one sentence. Nothing is evaluated.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from privet.errors import QuestionError
from privet.kernel import (
    LARGEST_EPSILON,
    LONGEST_TEXT,
    MAX_PARTS,
    AdditiveModel,
    Allot,
    Condition,
    Criterion,
    Divide,
    InfoGain,
    Json,
    Keep,
    PerPart,
    Quality,
    Question,
    Rho,
    Scatter,
    Split,
    Step,
    WeightedMax,
    fraction_of,
    named_criteria,
)
from privet.kernel.questions import counts, numbers, released_models, splits

QUESTIONS: dict[str, type[Question[Any]]] = {
    question.kind: question
    for question in (
        counts.CountQuestion,
        counts.HistogramQuestion,
        counts.HistogramsQuestion,
        counts.MajorityQuestion,
        counts.GroupCellsQuestion,
        counts.GroupedHistogramQuestion,
        numbers.SumQuestion,
        numbers.MeanQuestion,
        numbers.QuantileQuestion,
        splits.SelectQuestion,
        splits.SelectThresholdQuestion,
        released_models.ResidualChoiceQuestion,
        released_models.ResidualSumsQuestion,
        released_models.CountCorrectQuestion,
        released_models.BestQuestion,
        released_models.ResidualTablesQuestion,
        released_models.TopTablesQuestion,
        counts.ChooseQuestion,
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
    forms = forms_of(QUESTIONS[kind])
    if set(content) != {"question", "version", *forms}:
        raise QuestionError(f"the fields of the question '{kind}' are {', '.join(forms) or 'none'}.")
    values = {name: form.read(content[name]) for name, form in forms.items()}
    for name, value in values.items():
        if value is None:
            raise QuestionError(f"the field '{name}' of the question '{kind}' must be {forms[name].what}.")
    return QUESTIONS[kind](**values)


def step_from_json(content: object) -> Step:
    """Return the step from some rows to others that its JSON form describes; `Step.check` holds it against a domain.

    Parameters
    ----------
    content : object
        What `json.loads` returns.

    Returns
    -------
    Keep, Divide, Scatter or Allot

    Raises
    ------
    QuestionError
        It is none.

    >>> step_from_json({"keep": [0], "where": [{"column": "sex", "codes": [1]}]})
    Keep(parts=(0,), conditions=(Condition(column='sex', codes=(1,), low=0, high=0),))
    >>> step_from_json({"allot": "1/2"})
    Allot(cap=Fraction(1, 2))
    """
    names = set(content) if isinstance(content, Mapping) else set()
    for name, (fields, read) in _STEPS.items():
        if isinstance(content, Mapping) and names == {name, *fields}:
            step = read(content)
            if step is not None:
                return step
    raise QuestionError(f"the JSON form of a step to rows names one of {', '.join(_STEPS)}, and what it needs.")


def step_to_json(step: Step) -> dict[str, Json]:
    """Return the JSON form of a step, which `step_from_json` reads."""
    if isinstance(step, Allot):
        return {"allot": str(step.cap)}
    content = step.to_json()
    assert isinstance(content, Mapping)
    return dict(content)


def amounts_from_json(content: object, parts: int) -> PerPart[Fraction]:
    """Return the epsilon of each part; the kernel checks their size.

    Raises
    ------
    QuestionError
        They are none, or not as many as parts.
    """
    amounts: PerPart[Fraction] | None = _per_part(_amount)(content)
    if amounts is None or len(amounts) != parts:
        raise QuestionError(f"epsilon is a fraction in a text, such as 1/3, for each of the {parts} parts.")
    return amounts


def model_from_json(content: object) -> AdditiveModel:
    """Return the additive model that its JSON form describes. QuestionError if it is none."""
    model = _model(content)
    if model is None:
        raise QuestionError("a model is an additive one, with its intercept and its terms.")
    return model


def _keep(content: Mapping[str, Any]) -> Keep | None:
    parts, conditions = _wholes(content["keep"]), _list_of(_condition)(content["where"])
    if parts is None or conditions is None or not all(0 <= part < MAX_PARTS for part in parts):
        return None
    return Keep(parts, conditions)


def _divide(content: Mapping[str, Any]) -> Divide | None:
    splits = _per_part(_split)(content["divide"])
    return None if splits is None else Divide(splits.map(lambda split: None if split is _CLOSED else split))


def _split(value: object) -> Split | None:
    """Read how a part is divided; None in JSON closes it."""
    if value is None:
        return _CLOSED
    if not isinstance(value, Mapping) or set(value) != {"column", "thresholds"} or _text(value["column"]) is None:
        return None
    if value["thresholds"] is None:
        return Split(value["column"])
    thresholds = _numbers(value["thresholds"])
    return None if thresholds is None else Split(value["column"], thresholds)


def _scatter(content: Mapping[str, Any]) -> Scatter | None:
    seed, parts = _fraction(content["seed"]), _whole(content["scatter"])
    if parts is None or seed is None or seed.denominator != 1:
        return None
    return Scatter(parts, int(seed))


def _allot(content: Mapping[str, Any]) -> Allot | None:
    """Read an allotment, in the unit of the table: rhos are smaller than epsilons."""
    cap = _amount(content["allot"])
    return None if cap is None or not 0 < cap <= LARGEST_EPSILON else Allot(Rho(cap).value)  # rounded as every loss


def amount_from_json(content: object) -> Fraction:
    """Return an epsilon; the kernel checks its size. QuestionError if it is none."""
    if (amount := _amount(content)) is None:
        raise QuestionError("epsilon is a fraction in a text, such as 1/3.")
    return amount


def _amount(value: object) -> Fraction | None:
    """Read an exact epsilon: multiples of 1 / GRAIN have up to 61 digits on either side."""
    if not isinstance(value, str) or not _AMOUNT.fullmatch(value):
        return None
    number = Fraction(value)
    return number if str(number) == value else None  # one text for one number


_AMOUNT = re.compile(r"[0-9]{1,70}(/[1-9][0-9]{0,69})?")
MOST_AXES = 32  # of a table of numbers: as many as arrays have in every version of numpy
_CLOSED = Split("")  # in the place of None, which readers return for what they refuse
_STEPS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Step | None]]] = {
    "keep": (("where",), _keep),
    "divide": ((), _divide),
    "scatter": (("seed",), _scatter),
    "allot": ((), _allot),
}


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
    return value if isinstance(value, str) and len(value) <= LONGEST_TEXT else None


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


def criterion_from_json(content: object) -> Criterion | None:
    """Return the criterion that a JSON form names, or None. Only what is on the kernel's list can be named."""
    if not isinstance(content, Mapping) or content.get("version") != Criterion.version:
        return None
    name = content.get("criterion")
    fields = {key: value for key, value in content.items() if key not in ("criterion", "version")}
    if name == WeightedMax.name and set(fields) == {"weights"} and isinstance(fields["weights"], list | tuple):
        return WeightedMax(tuple(fields["weights"]))
    if name == InfoGain.name and set(fields) == {"max_rows"} and type(fields["max_rows"]) is int:
        return InfoGain(fields["max_rows"]) if 1 <= fields["max_rows"] <= InfoGain.largest else None
    return named_criteria().get(str(name)) if not fields else None


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
    columns, table = _texts(value["columns"]), _shaped(_numbers(value["table"]), _numbers(value["shape"]))
    return None if columns is None or table is None else (columns, table)


def _shaped(numbers: tuple[int, ...] | None, shape: tuple[int, ...] | None, dtype: Any = None) -> Any:
    """Return numbers as an array of some shape; None if they do not fill it, or it has too many axes."""
    # the product of a long list of large numbers would take minutes, in which Python runs nothing else
    if numbers is None or shape is None or len(shape) > MOST_AXES or min(shape, default=1) < 1:
        return None
    return np.array(numbers, dtype=dtype).reshape(shape) if math.prod(shape) == len(numbers) else None


def _merged_column(value: object) -> released_models.MergedColumn | None:
    """Read a column of a table, in its own cells or merged ones."""
    if not isinstance(value, Mapping) or not isinstance(value.get("column"), str):
        return None
    if set(value) == {"column"}:
        return released_models.MergedColumn(value["column"])
    codes = _wholes(value.get("codes"))
    return (
        None
        if codes is None or set(value) != {"column", "codes"}
        else released_models.MergedColumn(value["column"], codes)
    )


def _merged_tables(value: object) -> released_models.MergedTables | None:
    """Read tables of columns."""
    tables = _list_of(_list_of(_merged_column))(value)
    return None if tables is None else released_models.MergedTables(tables)


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
    columns, table = _texts(value["columns"]), _shaped(_wholes(value["table"]), _wholes(value["shape"]), object)
    if not isinstance(value["name"], str) or columns is None or table is None:
        return None
    return value["name"], Quality(columns, table)


class FieldForm(NamedTuple):
    """How fields of a type are read from JSON."""

    what: str  # in words, which errors quote
    read: Reader


READERS: dict[Any, FieldForm] = {  # by the types of the fields of questions
    str: FieldForm("a text", _text),
    tuple[str, ...]: FieldForm("a list of texts", _texts),
    released_models.Tables: FieldForm("a list of lists of texts", _list_of(_texts)),
    bool: FieldForm("true or false", _flag),
    int: FieldForm("a whole number", _whole),
    tuple[int, ...]: FieldForm("a list of whole numbers", _wholes),
    Fraction: FieldForm("a fraction in a text, such as 1/3", _fraction),
    tuple[Fraction, ...]: FieldForm("a list of fractions in texts", _list_of(_amount)),
    tuple[released_models.MergedTable, ...]: FieldForm("a list of tables of columns", _merged_tables),
    AdditiveModel: FieldForm("a model", _model),
    Criterion: FieldForm("a criterion", criterion_from_json),
    PerPart[counts.Groups]: FieldForm("lists of columns for each part", _per_part(_list_of(_texts))),
    PerPart[splits.Candidates]: FieldForm("candidates for each part", _per_part(_list_of(_candidate))),
    PerPart[tuple[str, ...]]: FieldForm("columns for each part", _per_part(_texts)),
    tuple[tuple[str, released_models.Competitor], ...]: FieldForm(
        "a list of names with models or conditions", _list_of(_competitor)
    ),
    tuple[tuple[str, Quality], ...]: FieldForm("a list of qualities", _list_of(_quality)),
}


@cache
def forms_of(question: type[Question[Any]]) -> dict[str, FieldForm]:
    """Return how each field of a question is read, by its type."""
    types = get_type_hints(question)
    return {own.name: READERS[types[own.name]] for own in dataclasses.fields(question)}  # type: ignore[arg-type]
