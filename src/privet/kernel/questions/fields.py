"""What the fields of questions share: how they are written as JSON, and how many cells they may need."""

from __future__ import annotations

import math
from collections.abc import Iterable

from privet.errors import QuestionError
from privet.kernel.additive import AdditiveModel
from privet.kernel.domain import Domain
from privet.kernel.session import JsonField

TEXT = JsonField("a text")
TEXTS = JsonField("a list of texts")
GROUPS = JsonField("a list of lists of texts")
FLAG = JsonField("true or false")
WHOLE = JsonField("a whole number")
WHOLES = JsonField("a list of whole numbers")
FRACTION = JsonField("a fraction in a text, such as 1/3", lambda value, brief: str(value))
MODEL = JsonField("a model", AdditiveModel.to_json)
CRITERION = JsonField("a criterion", lambda rule, brief: rule.to_json())


def per_part(what: str) -> JsonField:
    """Return the form of a field with a value for each part."""
    return JsonField(f"{what} for each part", lambda values, brief: values.to_json(lambda value: value))


def cell_sum(domain: Domain, tables: Iterable[Iterable[str]]) -> int:
    """Return how many cells tables of columns have together."""
    return sum(math.prod(domain[name].size for name in columns) for columns in tables)


def check_cells(cells: int, most: int) -> None:
    """Refuse a question that needs more cells than one may."""
    if cells > most:
        number = str(cells) if cells < 10**15 else "more than 10**15"  # of many columns it has thousands of digits
        raise QuestionError(f"this needs {number} cells, at most {most} are possible; use fewer columns or parts.")
