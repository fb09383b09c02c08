"""What analysts may say about rows: values, sets and ranges of declared columns, and nothing else.

Everything is checked against the public domain and turned into codes and grid
indices here, before any charge: no expression, no SQL and no code passes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privet.errors import QuestionError
from privet.kernel.additive import RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import MAX_CELLS as MAX_COLUMN_CELLS
from privet.kernel.column import Column, Nominal, Numeric, decimal_text, text_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import MAX_CELLS
from privet.kernel.limits import fraction_of, is_name, quoted, shown
from privet.kernel.release import Choice
from privet.kernel.rows import Condition, Split

_LISTED = 20  # values that a text names


def conditions(wanted: Mapping[str, object], domain: Domain) -> tuple[tuple[Condition, ...], str]:
    """The conditions of a `where`, and how they read."""
    parsed, texts = [], []
    for name, value in wanted.items():
        condition, text = _condition(domain[name], value)
        parsed.append(condition)
        texts.append(text)
    return tuple(parsed), " and ".join(texts)


def _condition(column: Column, value: object) -> tuple[Condition, str]:
    if isinstance(column, Numeric) and isinstance(value, tuple):
        if len(value) != 2:
            raise QuestionError(f"a range of '{column.name}' is a pair (low, high), either of them None for open.")
        low, high = (None if side is None else _number(column, side) for side in value)
        if low is not None and high is not None and low > high:
            raise QuestionError(
                f"the range of '{column.name}' from {_shown(low)} to {_shown(high)} is reversed, so that no value lies "
                "in it; write the lower bound first."
            )
        sides = ["" if side is None else _shown(side) for side in (low, high)]
        first = 0 if low is None else column.index_at_or_above(low)
        end = column.grid_size if high is None else column.index_at_or_above(high)
        inside = max(0, min(first, column.grid_size)), max(0, min(end, column.grid_size))
        return Condition(column.name, None, *inside), f"{column.name} in [{sides[0]}, {sides[1]})"
    if isinstance(column, Numeric) and not isinstance(value, str | AbstractSet | list):
        number = _number(column, value)
        index, off_grid = divmod(number - column.low, column.step)
        if off_grid or not 0 <= index < column.grid_size:
            raise QuestionError(
                f"column '{column.name}' has no value {_shown(number)}: it has {decimal_text(column.low)} to "
                f"{decimal_text(column.top)} in steps of {decimal_text(column.step)}; use a range (low, high)."
            )
        return Condition(column.name, None, index, index + 1), f"{column.name} = {decimal_text(number)}"
    values = list(value) if isinstance(value, AbstractSet | list | tuple) else [value]
    if len(values) > MAX_COLUMN_CELLS:
        raise QuestionError(
            f"a condition on '{column.name}' lists at most {MAX_COLUMN_CELLS} values, not {len(values)}."
        )
    code_of = {label: code for code, label in enumerate(column.labels)}
    codes = tuple(sorted({_cell(column, each, code_of) for each in values}))
    labels = [column.labels[code] for code in codes]
    listed = ", ".join(labels[:_LISTED]) + f", ... ({len(labels)} values)" * (len(labels) > _LISTED)
    text = f"{column.name} = {labels[0]}" if len(labels) == 1 else f"{column.name} in {{{listed}}}"
    return Condition(column.name, codes), text


def _cell(column: Column, value: object, code_of: Mapping[str, int]) -> int:
    # the texts of other objects could be of any length, or run any code
    text = text_of(value) if isinstance(value, str | int | float | np.generic | Decimal | date) else None
    if text is None or text not in code_of:
        known = ", ".join(shown(label) for label in column.labels[:_LISTED]) + ", ..." * (len(column.labels) > _LISTED)
        raise QuestionError(f"column '{column.name}' has no declared value {quoted(value)}; it has {known}.")
    return code_of[text]


def _number(column: Numeric, value: object) -> Fraction:
    number = None if isinstance(value, str) else fraction_of(value)
    if number is not None:
        return number
    if isinstance(value, int | float | np.number | Fraction | Decimal) and not isinstance(value, bool):
        raise QuestionError(
            f"column '{column.name}' needs a finite number of at most 300 digits; leave a side of a range open with "
            "None."
        )
    raise QuestionError(f"column '{column.name}' is numeric; give a number, a range (low, high) or a set of its bins.")


def _shown(number: Fraction) -> str:
    """A number as an error or a scope quotes it: exact where that is short."""
    return shown(decimal_text(number))


def _index(column: Numeric, value: object) -> int:
    return column.index_at_or_above(_number(column, value))


def split(
    wanted: str | Choice | tuple[str, int | float | Fraction] | None,
    edges: Sequence[int | float] | None,
    domain: Domain,
) -> Split | None:
    """How one part is divided."""
    if wanted is None:
        return None
    if isinstance(wanted, Choice) and wanted.point is not None:
        wanted = (str(wanted), wanted.point)
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise QuestionError(
                "a split at a threshold is a pair (column, threshold); give one split per part as a list."
            )
        column = domain.numeric(wanted[0])
        # value <= threshold goes left: the right child begins at the next grid point
        at = math.floor((_number(column, wanted[1]) - column.low) / column.step) + 1
        return Split(column.name, (_inside(column, at),))
    if not isinstance(wanted, str):
        raise QuestionError(f"cannot split by a {type(wanted).__name__}; give a column or a pair (column, threshold).")
    if edges is None:
        return Split(domain[str(wanted)].name)
    if not isinstance(edges, list | tuple) or len(edges) > MAX_COLUMN_CELLS:
        raise QuestionError(f"edges must be a list of at most {MAX_COLUMN_CELLS} numbers.")
    column = domain.numeric(str(wanted))
    thresholds = tuple(_inside(column, _index(column, edge)) for edge in edges)
    if any(a >= b for a, b in itertools.pairwise(thresholds)) or not thresholds:
        raise QuestionError(f"edges for '{column.name}' must rise by at least a step each.")
    return Split(column.name, thresholds)


def _inside(column: Numeric, index: int) -> int:
    if not 1 <= index < column.grid_size:
        raise QuestionError(
            f"a threshold for '{column.name}' lies outside its bounds {decimal_text(column.low)} to "
            f"{decimal_text(column.high)}, or at their end."
        )
    return index


def split_labels(division: Split, domain: Domain) -> list[str]:
    """The labels of the parts a split makes."""
    column = domain[division.column]
    if division.thresholds is None or isinstance(column, Nominal):
        return list(column.labels)
    points = [decimal_text(column.value_at(index)) for index in division.thresholds]
    if len(points) == 1:
        last = decimal_text(column.value_at(division.thresholds[0] - 1))
        labels = [f"<= {last}", f"> {last}"]
    else:
        starts = [decimal_text(column.low), *points]
        labels = [f"[{a}, {b})" for a, b in zip(starts, points, strict=False)]
        labels.append(f"[{points[-1]}, {decimal_text(column.high)}]")
    return labels + ["<missing>"] * column.missing


def split_paths(division: Split, domain: Domain) -> list[str]:
    """The parts a split makes, as conditions that read well."""
    column = domain[division.column]
    labels = split_labels(division, domain)
    if isinstance(column, Nominal):
        relations = ["= "] * len(labels)
    else:
        side = division.thresholds is not None and len(division.thresholds) == 1
        relations = ["" if side else "in "] * (len(labels) - column.missing) + ["= "] * column.missing
    return [f"{column.name} {relation}{label}" for relation, label in zip(relations, labels, strict=True)]


def rank(value: object) -> Fraction:
    """A quantile's rank as a fraction with a small denominator."""
    number = fraction_of(value)
    if number is None or not 0 <= number <= 1:
        raise QuestionError(f"the rank of a quantile lies between 0 and 1, not at {quoted(value)}.")
    return number.limit_denominator(10**6)


def share(value: object, name: str) -> Fraction:
    """A number between 0 and 1 from what people write, as a fraction with a small denominator."""
    number = fraction_of(value)
    exact = Fraction(0) if number is None else number.limit_denominator(10**6)
    if not 0 < exact < 1:
        raise QuestionError(f"{name} lies between 0 and 1, both left out, not at {quoted(value)}; write 0.8 or 4/5.")
    return exact


def competitors(wanted: object, domain: Domain) -> dict[str, AdditiveModel | tuple[Condition, ...]]:
    """What `best` chooses from: released models, and conditions as those of a `where`, by name."""
    if not isinstance(wanted, Mapping) or len(wanted) < 2:
        raise QuestionError("candidates are a mapping of at least two names to models or conditions.")
    parsed: dict[str, AdditiveModel | tuple[Condition, ...]] = {}
    for name, candidate in wanted.items():
        if not is_name(name):
            raise QuestionError("the name of a candidate is a text of 1 to 200 printable characters.")
        if isinstance(candidate, AdditiveModel):
            released_model(candidate, domain)
            parsed[str(name)] = candidate
        elif isinstance(candidate, Mapping):
            parsed[str(name)] = conditions(candidate, domain)[0]
        else:
            raise QuestionError(
                f"candidate '{name}' is a {type(candidate).__name__}; give an AdditiveModel or a mapping of conditions."
            )
    return parsed


Candidate = str | tuple[str, int]  # a column, or a numeric one with the grid index from which rows go right


def attributes(wanted: Sequence[Any] | None, parts: int, domain: Domain) -> list[list[Candidate]]:
    """What each part may choose from."""
    if wanted is None:
        own: list[Any] = [list(domain.attributes)] * parts
    elif isinstance(wanted, str):
        own = [[wanted]] * parts
    elif all(_is_candidate(name) for name in wanted):
        own = [list(wanted)] * parts
    else:
        own = list(wanted)
    if not all(isinstance(names, list | tuple) for names in own):
        raise QuestionError("attributes are a list of columns, or a list of such lists, one for each part.")
    if len(own) != parts:
        raise QuestionError(f"attributes were given for {len(own)} of {parts} parts; give one list for each.")
    checked: dict[int, list[Candidate]] = {}
    for names in own:
        if id(names) not in checked:
            checked[id(names)] = [_candidate(name, domain) for name in names]
            if not checked[id(names)]:
                raise QuestionError("there is no attribute to choose from; name at least one.")
    return [checked[id(names)] for names in own]


def _is_candidate(value: object) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and not isinstance(value[1], str | tuple | list)
    return isinstance(value, str) or (pair and isinstance(value[0], str))  # type: ignore[index]


def _candidate(wanted: Any, domain: Domain) -> Candidate:
    if not _is_candidate(wanted):
        raise QuestionError("an attribute to choose from is a column or a pair (column, threshold).")
    name = domain[str(wanted if isinstance(wanted, str) else wanted[0])].name
    if name == domain.target:
        raise QuestionError(f"'{name}' is the target; choose among the other columns.")
    if isinstance(wanted, str):
        return name
    division = split(wanted, None, domain)
    assert division is not None and division.thresholds is not None
    return name, division.thresholds[0]


def plain(candidates: Sequence[Candidate]) -> list[str]:
    """Candidates without thresholds of their own."""
    if not all(isinstance(candidate, str) for candidate in candidates):
        raise QuestionError("name columns alone where their thresholds are to be chosen.")
    return [str(candidate) for candidate in candidates]


def residuals(model: AdditiveModel, tables: Sequence[tuple[str, ...]], caps: Sequence[int], domain: Domain) -> None:
    """Check a question about the residuals of a model: shapes, caps and columns fit the domain."""
    classes = len(domain.classes)
    if len(caps) != classes:
        raise QuestionError(f"caps need one entry for each of the {classes} classes.")
    if not all(isinstance(cap, int | np.integer) and 1 <= cap <= RESIDUAL_GRID for cap in caps):
        raise QuestionError(f"caps are whole numbers from 1 to {RESIDUAL_GRID}, which stands for 1.")
    if not tables:
        raise QuestionError("name at least one table of columns.")
    for columns in tables:
        if isinstance(columns, str) or not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
            raise QuestionError("a table is a tuple of one or two different columns.")
        if domain.target in columns:
            raise QuestionError("a table may not look at the target.")
    released_model(model, domain)


def released_model(model: AdditiveModel, domain: Domain) -> None:
    """Check that a model fits the domain: classes, columns and shapes. A term may look at any number of columns."""
    if not isinstance(model, AdditiveModel):
        raise QuestionError(f"a released model is an AdditiveModel, not a {type(model).__name__}.")
    classes = len(domain.classes)
    if classes < 2:
        raise QuestionError("a model needs a target with at least two classes.")
    if len(model.intercept) != classes:
        raise QuestionError(f"the intercept of a model needs one entry for each of the {classes} classes.")
    cells = sum(table.size for _, table in model.terms)
    if cells > MAX_CELLS:
        raise QuestionError(f"this model has {cells} cells, at most {MAX_CELLS} are possible; use smaller tables.")
    for columns, table in model.terms:
        if domain.target in columns:
            raise QuestionError("a model may not look at the target.")
        shape = (*(domain[name].size for name in columns), classes)
        if tuple(table.shape) != shape:
            raise QuestionError(f"the table over {', '.join(columns)} must have the shape {shape}.")
