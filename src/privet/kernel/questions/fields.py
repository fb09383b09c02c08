"""How the fields of questions are written as JSON, and read from JSON that somebody sent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from privet.errors import QuestionError
from privet.kernel.additive import AdditiveModel
from privet.kernel.criteria import criterion_from_json
from privet.kernel.domain import Domain
from privet.kernel.limits import fraction_of
from privet.kernel.per_part import PerPart
from privet.kernel.rows import MAX_PARTS
from privet.kernel.session import JsonField


def list_of(read: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...] | None]:
    """Return a function that reads a list, or gives None where `read` refuses an item."""

    def read_all(value: object) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(read(item) for item in value)
        return None if any(item is None for item in items) else items

    return read_all


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fraction(value: object) -> Fraction | None:
    number = fraction_of(value) if isinstance(value, str) and value.isascii() else None
    return number if number is not None and str(number) == value else None  # one text for one number


def per_part(read: Callable[[object], Any], what: str) -> JsonField:
    """Return the form of a field with a value for each part."""

    def read_all(value: object) -> PerPart[Any] | None:
        if not isinstance(value, Mapping):
            return None
        if set(value) == {"all", "parts"}:
            count, item = _whole(value["parts"]), read(value["all"])
            return None if count is None or not 1 <= count <= MAX_PARTS or item is None else PerPart.same(item, count)
        if set(value) != {"values", "index"}:
            return None
        values, numbers = list_of(read)(value["values"]), list_of(_whole)(value["index"])
        if values is None or numbers is None or not all(0 <= number < len(values) for number in numbers):
            return None
        return PerPart.of(values[number] for number in numbers)

    return JsonField(f"{what} for each part", read_all, lambda values, brief: values.to_json(lambda value: value))


read_texts = list_of(_text)
read_groups = list_of(read_texts)
TEXT = JsonField("a text", _text)
TEXTS = JsonField("a list of texts", read_texts)
GROUPS = JsonField("a list of lists of texts", read_groups)
FLAG = JsonField("true or false", lambda value: value if isinstance(value, bool) else None)
WHOLE = JsonField("a whole number", _whole)
WHOLES = JsonField("a list of whole numbers", list_of(_whole))
FRACTION = JsonField("a fraction in a text, such as 1/3", _fraction, lambda value, brief: str(value))
MODEL = JsonField("a model", AdditiveModel.from_json, AdditiveModel.to_json)
CRITERION = JsonField("a criterion", criterion_from_json, lambda rule, brief: rule.to_json())


def cell_sum(domain: Domain, tables: Iterable[Iterable[str]]) -> int:
    """Return how many cells tables of columns have together."""
    return sum(math.prod(domain[name].size for name in columns) for columns in tables)


def check_cells(cells: int, most: int) -> None:
    """Refuse a question that needs more cells than one may."""
    if cells > most:
        number = str(cells) if cells < 10**15 else "more than 10**15"  # of many columns it has thousands of digits
        raise QuestionError(f"this needs {number} cells, at most {most} are possible; use fewer columns or parts.")
