"""What analysts may say about rows: values, sets and ranges of declared columns, names of criteria, and nothing else.

Everything is checked against the public domain and turned into codes and grid
indices here, before any charge: no expression, no SQL and no code passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privet.calendar_cells import FIRST, LAST
from privet.errors import NotPrivate, PrivacyError, QuestionError, did_you_mean
from privet.kernel import (
    MAX_COLUMN_CELLS,
    MISSING,
    AdditiveModel,
    Column,
    Condition,
    Criterion,
    Date,
    Divide,
    Domain,
    InfoGain,
    Keep,
    Numeric,
    PerPart,
    Positions,
    Scatter,
    Split,
    check_criterion,
    day_of,
    fraction_of,
    is_name,
    named_criteria,
    text_of,
)
from privet.kernel.questions.numbers import FINEST_RANK
from privet.kernel.questions.released_models import Competitor, MergedColumn, MergedTables
from privet.kernel.questions.splits import Candidate, Candidates
from privet.release import Choice, Releases
from privet.text import decimal_text, quoted, shown

_LISTED = 20  # values that a text names
_FINEST_PRICE = 10**6


def conditions(wanted: Mapping[str, object], domain: Domain) -> tuple[tuple[Condition, ...], str]:
    """Return the conditions of a `where`, and how they read.

    Raises
    ------
    UndeclaredDomain, QuestionError
        A column is not declared, or a value is none of its column.
    """
    parsed = tuple(_condition(domain[name], value) for name, value in wanted.items())
    return parsed, conditions_text(parsed, domain)


def conditions_text(wanted: Sequence[Condition], domain: Domain) -> str:
    """Return how conditions read; the domain has checked them."""
    return " and ".join(_condition_text(condition, domain[condition.column]) for condition in wanted)


def _condition_text(condition: Condition, column: Column) -> str:
    if condition.codes is not None:
        labels = [column.labels[code] for code in condition.codes]
        shortened = ", ".join(labels[:_LISTED]) + f", ... ({len(labels)} values)" * (len(labels) > _LISTED)
        return f"{column.name} = {labels[0]}" if len(labels) == 1 else f"{column.name} in {{{shortened}}}"
    assert isinstance(column, Numeric)
    low, high = condition.low, condition.high
    if high - low == 1:
        return f"{column.name} = {column.text(column.value_at(low))}"
    if low >= high:
        return f"{column.name} in no value"
    sides = (
        "" if low == 0 else _shown(column, column.value_at(low)),
        "" if high == column.grid_size else _shown(column, column.value_at(high)),
    )
    return f"{column.name} in [{sides[0]}, {sides[1]})"


def step_names(
    step: Keep | Divide | Scatter, parts: int, domain: Domain
) -> tuple[Positions, PerPart[str], PerPart[str]]:
    """Return how the parts that a step makes of others are called.

    Parameters
    ----------
    step : Keep, Divide or Scatter
        One that the domain has checked.
    parts : int
        How many there are before it.
    domain : Domain

    Returns
    -------
    parents : array of int
        For each new part, the one that it was made from.
    labels : PerPart of str
        The cell that each stands for; of kept parts "".
    texts : PerPart of str
        What its path has more than that of its parent.
    """
    if isinstance(step, Keep):
        kept = np.asarray(step.parts, dtype=np.intp)
        text = f" where {conditions_text(step.conditions, domain)}" if step.conditions else ""
        return kept, PerPart.same("", len(kept)), PerPart.same(text, len(kept))
    if isinstance(step, Scatter):
        number = np.tile(np.arange(step.parts), parts)
        labels = PerPart([f"coin {coin + 1} of {step.parts}" for coin in range(step.parts)], number)
        return np.repeat(np.arange(parts), step.parts), labels, labels.map(" / {}".format)
    splits = step.splits.compact()
    texts = [([], []) if split is None else split_texts(split, domain) for split in splits.values]
    counts = np.array([len(labels) for labels, _ in texts], dtype=np.intp)
    children = counts[splits.which] if len(splits) else np.zeros(0, dtype=np.intp)
    parents = np.repeat(np.arange(parts), children)
    within = np.arange(len(parents)) - np.repeat(np.cumsum(children) - children, children)
    number = (np.cumsum(counts) - counts)[splits.which[parents]] + within
    labels = PerPart([label for labels, _ in texts for label in labels], number)
    return parents, labels, PerPart([f" / {path}" for _, paths in texts for path in paths], number)


def _condition(column: Column, value: object) -> Condition:
    if isinstance(column, Numeric) and isinstance(value, tuple):
        if len(value) != 2:
            raise QuestionError(f"a range of '{column.name}' is a pair (low, high), either of them None for open.")
        low, high = (None if side is None else _number(column, side) for side in value)
        if low is not None and high is not None and low > high:
            raise QuestionError(
                f"the range of '{column.name}' from {_shown(column, low)} to {_shown(column, high)} is reversed, so "
                "that no value lies in it; write the lower bound first."
            )
        first = 0 if low is None else column.index_at_or_above(low)
        end = column.grid_size if high is None else column.index_at_or_above(high)
        inside = max(0, min(first, column.grid_size)), max(0, min(end, column.grid_size))
        return Condition(column.name, None, *inside)
    if isinstance(column, Numeric) and (not isinstance(value, str | AbstractSet | list) or _is_day(column, value)):
        number = _number(column, value)
        index, off_grid = divmod(number - column.low, column.step)
        if off_grid or not 0 <= index < column.grid_size:
            dated = isinstance(column, Date)
            steps = "" if dated else f" in steps of {decimal_text(column.step)}"
            raise QuestionError(
                f"column '{column.name}' has no value {_shown(column, number)}: it has {column.text(column.low)} to "
                f"{column.text(column.top)}{steps}; use a range (low, high){' of dates' * dated}."
            )
        return Condition(column.name, None, index, index + 1)
    values = list(value) if isinstance(value, AbstractSet | list | tuple) else [value]
    if len(values) > MAX_COLUMN_CELLS:
        raise QuestionError(
            f"a condition on '{column.name}' lists at most {MAX_COLUMN_CELLS} values, not {len(values)}."
        )
    code_of = {label: code for code, label in enumerate(column.labels)}
    return Condition(column.name, tuple(sorted({_cell(column, listed, code_of) for listed in values})))


def _cell(column: Column, value: object, code_of: Mapping[str, int]) -> int:
    # the texts of other objects could be of any length, or run any code
    text = text_of(value) if isinstance(value, str | int | float | np.generic | Decimal | date) else None
    if text is None or text not in code_of:
        labels = ", ".join(shown(label) for label in column.labels[:_LISTED]) + ", ..." * (len(column.labels) > _LISTED)
        meant = did_you_mean(text, column.labels)
        ranges = "; give a number, a range (low, high) or a set of its bins" * isinstance(column, Numeric)
        if isinstance(column, Date):
            ranges = "; give a day as '2020-12-31', a range (low, high) or a set of its cells"
        raise QuestionError(
            f"column '{column.name}' has no declared value {quoted(value)}{meant}; it has {labels}{ranges}."
        )
    return code_of[text]


def point_of(column: Numeric, value: object) -> Fraction | None:
    """Return a value of a numeric column that somebody wrote in a program; None for what is none."""
    if not isinstance(column, Date):
        return None if isinstance(value, str) else fraction_of(value)
    if isinstance(value, Fraction):  # of a choice, or the day after one that somebody wrote
        return value if FIRST <= value <= LAST + 1 else None
    day = day_of(value)
    return None if day is None else Fraction(day)


def _is_day(column: Numeric, value: object) -> bool:
    """Is it a day of a column of dates, and no label of its cells?"""
    return isinstance(column, Date) and value not in column.labels and point_of(column, value) is not None


def _number(column: Numeric, value: object) -> Fraction:
    number = point_of(column, value)
    if number is not None:
        return number
    if isinstance(column, Date):
        raise QuestionError(
            f"column '{column.name}' holds dates; give a day as '2020-12-31', a range (low, high) or a set of its "
            "cells."
        )
    if isinstance(value, int | float | np.number | Fraction | Decimal) and not isinstance(value, bool):
        raise QuestionError(
            f"column '{column.name}' needs a finite number of at most 300 digits; leave a side of a range open with "
            "None."
        )
    raise QuestionError(f"column '{column.name}' is numeric; give a number, a range (low, high) or a set of its bins.")


def _shown(column: Numeric, number: Fraction) -> str:
    """A number as an error or a scope quotes it: exact where that is short."""
    return shown(column.text(number))


SplitKey = tuple[Any, ...]


def splits(wanted: object, parts: int) -> PerPart[SplitKey]:
    """Return how each part is to be divided: all in one way, or each as a list says. `split` reads the keys.

    Raises
    ------
    QuestionError
        There are not as many as parts, or one is no split.
    """
    if not isinstance(wanted, list | Releases):
        return PerPart.same(_split_key(wanted), parts)
    if len(wanted) != parts:
        raise QuestionError(f"{len(wanted)} splits were given for {parts} parts; give one for each.")
    return PerPart.of(_split_key(split) for split in wanted)


def _split_key(wanted: object) -> SplitKey:
    """A split as a tuple that is equal for equal splits only: True is no 1, and a choice no column."""
    if wanted is None:
        return ()
    if isinstance(wanted, Choice) and wanted.point is not None:
        return str(wanted), Fraction, wanted.point
    if isinstance(wanted, str):
        return (str(wanted),)
    if not isinstance(wanted, tuple):
        raise QuestionError(f"cannot split by a {type(wanted).__name__}; give a column or a pair (column, threshold).")
    if len(wanted) != 2:
        raise QuestionError("a split at a threshold is a pair (column, threshold); give one split per part as a list.")
    name, threshold = wanted
    if not isinstance(name, str) or not isinstance(
        threshold, str | int | float | np.generic | Fraction | Decimal | date
    ):
        raise QuestionError("a split at a threshold is a pair of a column and a number or date.")
    return str(name), type(threshold), threshold


def split(wanted: SplitKey, edges: Sequence[int | float] | None, domain: Domain) -> Split | None:
    """Return the split that a key of `splits` stands for.

    Raises
    ------
    QuestionError
        A threshold or an edge lies outside the bounds of its column.
    """
    if not wanted:
        return None
    if len(wanted) > 1:
        column = domain.numeric(wanted[0])
        # value <= threshold goes left: the right child begins at the next grid point
        at = math.floor((_number(column, wanted[2]) - column.low) / column.step) + 1
        division = Split(column.name, (at,))
    elif edges is None:
        return Split(domain[wanted[0]].name)
    else:
        if not isinstance(edges, list | tuple) or len(edges) > MAX_COLUMN_CELLS:
            raise QuestionError(f"edges must be a list of at most {MAX_COLUMN_CELLS} numbers.")
        column = domain.numeric(wanted[0])
        division = Split(column.name, tuple(column.index_at_or_above(_number(column, edge)) for edge in edges))
    division.check(domain)
    return division


def split_texts(division: Split, domain: Domain) -> tuple[list[str], list[str]]:
    """Return the labels of the parts that a split makes, and how they read as conditions."""
    column = domain[division.column]
    labels, relation = list(column.labels), "= "
    if isinstance(column, Numeric):
        relation = "in "
        if division.thresholds is not None:
            labels = column.spans(division.thresholds)
            if len(division.thresholds) == 1:
                last = column.text(column.value_at(division.thresholds[0] - 1))
                labels, relation = [f"<= {last}", f"> {last}"], ""
            labels += [MISSING] * column.missing
    texts = [f"{column.name} {'= ' if label == MISSING else relation}{label}" for label in labels]
    return labels, texts


def rank(value: object) -> Fraction:
    """Return the rank of a quantile as a fraction with a small denominator."""
    number = fraction_of(value)
    if number is None or not 0 <= number <= 1:
        raise QuestionError(f"the rank of a quantile lies between 0 and 1, not at {quoted(value)}.")
    return number.limit_denominator(FINEST_RANK)


def price(value: object) -> Fraction:
    """Return the price of a group of cells, in rows; the kernel checks its size."""
    number = fraction_of(value)
    if number is None:
        raise QuestionError(f"the price of a group is a number of rows, such as 10, not {quoted(value)}.")
    return number.limit_denominator(_FINEST_PRICE)


def cell_numbers(values: object, what: str) -> tuple[int, ...]:
    """Return a number for each cell, from an array of any shape; the kernel checks them."""
    try:
        flat = np.asarray(values).ravel()
    except ValueError:  # of nested lists
        flat = np.array([])
    if not np.issubdtype(flat.dtype, np.integer) or not flat.size:
        raise QuestionError(f"{what} are whole numbers, one for each cell.")
    return tuple(flat.tolist())


def competitors(wanted: object, domain: Domain) -> tuple[tuple[str, Competitor], ...]:
    """Return what `best` chooses from: released models, and conditions as those of a `where`, by name."""
    if not isinstance(wanted, Mapping) or len(wanted) < 2:
        raise QuestionError("candidates are a mapping of at least two names to models or conditions.")
    parsed: list[tuple[str, Competitor]] = []
    for name, candidate in wanted.items():
        if not is_name(name):
            raise QuestionError("the name of a candidate is a text of 1 to 200 printable characters.")
        if isinstance(candidate, AdditiveModel):
            parsed.append((str(name), candidate))
        elif isinstance(candidate, Mapping):
            parsed.append((str(name), conditions(candidate, domain)[0]))
        else:
            raise QuestionError(
                f"candidate '{name}' is a {type(candidate).__name__}; give an AdditiveModel or a mapping of conditions."
            )
    return tuple(parsed)


def attributes(wanted: object, parts: int, domain: Domain) -> PerPart[Candidates]:
    """Return what each part may choose from."""
    if isinstance(wanted, PerPart):
        own: PerPart[tuple[object, ...]] = wanted
    else:
        listed = domain.attributes if wanted is None else (wanted,) if isinstance(wanted, str) else wanted
        if isinstance(listed, list | tuple) and all(_is_candidate(name) for name in listed):
            own = PerPart.same(tuple(listed), parts)
        elif not isinstance(listed, list | tuple) or not all(isinstance(names, list | tuple) for names in listed):
            raise QuestionError("attributes are a list of columns, or a list of such lists, one for each part.")
        elif not all(_is_candidate(name) for names in listed for name in names):
            raise QuestionError("an attribute to choose from is a column or a pair (column, threshold).")
        else:
            own = PerPart.of(tuple(names) for names in listed)
    if len(own) != parts:
        raise QuestionError(f"attributes were given for {len(own)} of {parts} parts; give one list for each.")
    declared: dict[str, Candidate] = {}  # the lists of a level's nodes name the same columns

    def read(name: object) -> Candidate:
        if not isinstance(name, str):
            return _candidate(name, domain)
        if name not in declared:
            declared[name] = _candidate(name, domain)
        return declared[name]

    return own.map(lambda names: tuple(map(read, names)))


def _is_candidate(value: object) -> bool:
    if isinstance(value, str):
        return True
    pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)
    return pair and isinstance(value[1], int | float | np.number | Fraction | Decimal | date)  # type: ignore[index]


def _candidate(wanted: Any, domain: Domain) -> Candidate:
    if isinstance(wanted, str):
        return domain[str(wanted)].name
    division = split(_split_key(wanted), None, domain)
    assert division is not None and division.thresholds is not None
    return division.column, division.thresholds[0]


def plain(candidates: Candidates) -> tuple[str, ...]:
    """Return candidates that have no thresholds of their own.

    Raises
    ------
    QuestionError
        One of them has.
    """
    if not all(isinstance(candidate, str) for candidate in candidates):
        raise QuestionError("name columns alone where their thresholds are to be chosen.")
    return tuple(str(candidate) for candidate in candidates)


def column_groups(wanted: object) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns that one part asks for."""
    if not isinstance(wanted, list | tuple):
        raise QuestionError("a part's groups are a list of tuples of columns.")
    for group in wanted:
        if not isinstance(group, tuple) or not all(isinstance(name, str) for name in group):
            raise QuestionError("a group is a tuple of the names of different columns.")
    return tuple(wanted)


def tables(wanted: object) -> tuple[tuple[str, ...], ...]:
    """Return tables of columns as tuples."""
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise QuestionError("name at least one table of columns.")
    for columns in wanted:
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise QuestionError("a table is a tuple of one or two different columns.")
    return tuple(tuple(str(name) for name in columns) for columns in wanted)


def merged_tables(wanted: object) -> MergedTables:
    """Return tables whose columns are names, or pairs of a name and the merged cell of each of its cells."""
    if isinstance(wanted, MergedTables):
        return wanted
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise QuestionError("name at least one table of columns.")
    return MergedTables(tuple(_merged_column(column) for column in _columns_of(table)) for table in wanted)


def _columns_of(table: object) -> Sequence[object]:
    if isinstance(table, str) or not isinstance(table, Sequence):
        raise QuestionError("a table is a tuple of at most two different columns.")
    return table


def _merged_column(column: object) -> MergedColumn:
    if isinstance(column, MergedColumn):
        return column
    if isinstance(column, str):
        return MergedColumn(str(column))
    if isinstance(column, Sequence) and len(column) == 2 and isinstance(column[0], str):
        codes = column[1].tolist() if isinstance(column[1], np.ndarray) else column[1]
        if isinstance(codes, Sequence) and not isinstance(codes, str):
            plain = set(map(type, codes)) <= {int}  # lists are long: looked at one by one only where it takes it
            own = codes if plain else (int(code) if isinstance(code, np.integer) else code for code in codes)
            return MergedColumn(str(column[0]), tuple(own))
    raise QuestionError("a column of a table is its name, or its name with the merged cell of each of its cells.")


def wholes(wanted: Sequence[object]) -> tuple[Any, ...]:
    """Return whole numbers as Python's; others are left for the check."""
    return tuple(int(value) if isinstance(value, int | np.integer) else value for value in wanted)


def caps(wanted: Sequence[int]) -> tuple[int, ...]:
    """Return what a record of each class may add, as Python's integers; others are left for the check."""
    return tuple(int(cap) if isinstance(cap, int | np.integer) else cap for cap in wanted)


def criterion(choice: object, domain: Domain) -> Criterion:
    """Return a criterion by its name, or one that is on the kernel's list already.

    Parameters
    ----------
    choice : str or Criterion
    domain : Domain
        Whose `max_rows` bounds the sensitivity of information gain.

    Raises
    ------
    QuestionError
        There is no such criterion.
    PrivacyError
        It has no bounded sensitivity here.

    >>> from privet.kernel import Nominal
    >>> criterion("gini", Domain((Nominal("y", ("a", "b")),), target="y")).sensitivity
    2048
    """
    if isinstance(choice, Criterion):
        check_criterion(choice, domain)
        return choice
    if choice == "gain-ratio":
        raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
    if choice == InfoGain.name:
        if domain.max_rows is None:
            raise PrivacyError(
                "information gain has no bounded sensitivity without a public bound on the size; declare max_rows in "
                "the domain file, or choose max or gini."
            )
        return InfoGain(domain.max_rows)
    known = named_criteria()
    if isinstance(choice, str) and choice in known:
        return known[choice]
    names = list(known)
    names.insert(2, InfoGain.name)
    raise QuestionError(
        f"there is no criterion '{choice}'{did_you_mean(choice, known)}; choose {', '.join(names)}, or pass a "
        "WeightedMax."
    )
