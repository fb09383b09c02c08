"""Published tables of counts, and generalised rows: read as statements about groups of people.

Four forms are read, from a frame or a .csv or .parquet file: a column with the sensitive value and one with counts; a
column of counts for each value; a column with the sensitive value alone, where each line is one person (k-anonymous
rows); and any of these with generalised attributes: `20-29`, `[20, 30)`, `<30`, `65+`, `476**`, `{a, b}`, `*`. An empty
cell or `*` of an attribute means all of its values, as in margins. Counts may be suppressed (empty, `*`, `x`, `c`,
`..`) or ranges (`<5`, `1-4`, `10+`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd

from privet.errors import ModelError
from privet.kernel import MOST_ROWS, number_of, text_of
from privet.risk.statements import Statement, Statements
from privet.risk.tree import Above, AtLeast, AtMost, Below, Between, Condition, Equals, Masked, OneOf, Values
from privet.text import quoted, shown

SOURCE = "the table"
MOST_LINES = 200_000
COUNTS = ("count", "counts", "n", "freq", "frequency", "number", "people", "persons", "rows", "cases")
TOTALS = ("total", "all", "any", "sum", "margin", "*", "")
SUPPRESSED = ("", "*", "**", "x", "c", "s", ".", "..", "...", "-", "\u2013", "—", "na", "n/a", "nan", "suppressed")

_NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?"
_RANGE = re.compile(rf"({_NUMBER})\s*(?:-|\u2013|\.\.|to)\s*({_NUMBER})")
_BRACKETS = re.compile(rf"([\[(])\s*({_NUMBER}|-inf)\s*[,;]\s*({_NUMBER}|inf)\s*([\])])")
_SIGN = re.compile(rf"(<=|>=|<|>|≤|≥)\s*({_NUMBER})")
_PLUS = re.compile(rf"({_NUMBER})\s*\+")
_MASK = re.compile(r"[^*\s][^*]*\*+")
_SIGNS: dict[str, type[AtMost] | type[AtLeast] | type[Below] | type[Above]] = {
    "<=": AtMost,
    "≤": AtMost,
    ">=": AtLeast,
    "≥": AtLeast,
    "<": Below,
    ">": Above,
}


def parse(
    frame: pd.DataFrame, known: Sequence[str], sensitive: str, values: Sequence[object] | None = None
) -> Statements:
    """The statements of a published table.

    Parameters
    ----------
    frame : DataFrame
    known : sequence of str
        The columns of the people: those of the table that have such a name are attributes.
    sensitive : str
        The sensitive attribute.
    values : sequence, optional
        Its public values; else those that the table names.

    Returns
    -------
    Statements

    Raises
    ------
    ModelError
        If the table has none of the forms that are read.

    >>> found = parse(pd.DataFrame({"age": ["<30", "30+"], "ill": [2, "<5"], "well": [18, ""]}), ["age"], "state")
    >>> [(each.where, each.low, each.high) for each in found.said]
    [('age < 30', (2.0, 18.0), (2.0, 18.0)), ('age >= 30', (0.0, 0.0), (4.0, inf))]
    """
    names = [str(name) for name in frame.columns]
    frame = frame.set_axis(names, axis=1)
    if len(frame) > MOST_LINES:
        raise ModelError(f"the table has more than {MOST_LINES} lines; publish a smaller one.")
    attributes = [name for name in names if name in known and name != sensitive]
    others = [name for name in names if name not in attributes and name != sensitive]
    if sensitive not in names:
        return _wide(frame, attributes, others, sensitive, values)
    counts = [name for name in others if name.strip().lower() in COUNTS]
    odd = next((name for name in others if name not in counts[:1]), None)
    if odd is not None:
        raise ModelError(
            f"the table has a column {quoted(shown(odd))}, which is neither one of the people's, nor the sensitive one "
            f"('{sensitive}'), nor a count (named {', '.join(COUNTS[:4])}); leave it out or name it so."
        )
    return _long(frame, attributes, sensitive, counts[0] if counts else None, values)


def _long(
    frame: pd.DataFrame, attributes: Sequence[str], sensitive: str, count: str | None, values: Sequence[object] | None
) -> Statements:
    """A line for each group and value; without a count each line is a person."""
    told = [str(text_of(value) or "").strip() for value in frame[sensitive]]
    seen = [text for text in told if text.lower() not in TOTALS]
    if values is None and not seen:
        raise ModelError(f"the table has no line with a value of '{sensitive}'; it may be cut short.")
    public = Values.seen(seen) if values is None else Values.of(values)
    groups: dict[tuple[Condition, ...], list[tuple[int, int | None, tuple[float, float]]]] = {}
    conditions = _conditions(frame, attributes)
    numbers = [(1.0, 1.0)] * len(frame) if count is None else [_count(v, at) for at, v in enumerate(frame[count], 2)]
    for at, (where, text, number) in enumerate(zip(conditions, told, numbers, strict=True), start=2):
        value = None if text.lower() in TOTALS and public.find(text) is None else public.number(text)
        if value is None and count is None:
            raise ModelError(f"line {at} of the table has no value of '{sensitive}'; each line is a person.")
        groups.setdefault(where, []).append((at, value, number))
    said = []
    for where, lines in groups.items():
        low, high, size = [0.0] * len(public), [0.0 if count is None else math.inf] * len(public), None
        for at, value, (least, most) in lines:
            if value is None:
                size = least if least == most else None
            elif count is None:
                low[value] += 1
                high[value] += 1
            elif low[value] > 0 or high[value] < math.inf:
                raise ModelError(f"line {at} of the table says a second time what an earlier one says.")
            else:
                low[value], high[value] = least, most
        said.append(Statement(where, tuple(low), tuple(high), size, line=lines[0][0]))
    if count is None:
        return _rows(said, public)
    return Statements(tuple(_completed(each) for each in said), public.texts, SOURCE)


def _rows(said: Sequence[Statement], public: Values) -> Statements:
    """Generalised rows. Where others meet the same words (overlapping classes) they say only how many at least."""
    sized = tuple(Statement(each.conditions, each.low, each.high, sum(each.low), line=each.line) for each in said)
    totals = tuple(float(sum(each.low[value] for each in said)) for value in range(len(public)))
    everybody = Statement((), totals, totals, sum(totals))
    return Statements((*sized, everybody), public.texts, SOURCE, is_loose=True)


def _wide(
    frame: pd.DataFrame,
    attributes: Sequence[str],
    others: Sequence[str],
    sensitive: str,
    values: Sequence[object] | None,
) -> Statements:
    """A column of counts for each value, and perhaps one of totals."""
    sizes = [name for name in others if name.strip().lower() in (*COUNTS, *TOTALS)]
    named = [name for name in others if name not in sizes]
    if not named or not attributes:
        raise ModelError(
            f"the table has no column '{sensitive}' and none named like its values, or none of the people's columns; "
            "it needs attributes with a value and a count on each line, or a column of counts for each value."
        )
    public = Values.seen(named) if values is None else Values.of(values)
    at = {name: public.number(name) for name in named}
    if len(set(at.values())) < len(at):
        raise ModelError("two columns of the table count the same value; keep one.")
    said = []
    for line, (where, row) in enumerate(zip(_conditions(frame, attributes), frame.to_dict("records"), strict=True), 2):
        low, high = [0.0] * len(public), [math.inf] * len(public)
        for name in named:
            low[at[name]], high[at[name]] = _count(row[name], line)
        size = _count(row[sizes[0]], line) if sizes else (0.0, math.inf)
        each = Statement(where, tuple(low), tuple(high), size[0] if size[0] == size[1] else None, line=line)
        said.append(_completed(each))
    return Statements(tuple(said), public.texts, SOURCE)


def _completed(each: Statement) -> Statement:
    """The size follows where all counts are said; a value that no line names is nobody's only if sizes agree."""
    if each.size is None and each.low == each.high:
        return Statement(each.conditions, each.low, each.high, float(sum(each.low)), line=each.line)
    return each


def _count(value: object, line: int) -> tuple[float, float]:
    """A count, or between which numbers it is.

    >>> _count("7", 2), _count("<5", 2), _count("1 - 4", 2), _count("x", 2), _count("10+", 2)
    ((7.0, 7.0), (0.0, 4.0), (1.0, 4.0), (0.0, inf), (10.0, inf))
    """
    text = str(text_of(value) or "").strip().lower()
    number = number_of(text.replace(",", "") if re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+", text) else text)
    if number is not None:
        low = high = number
    elif text in SUPPRESSED:
        return 0.0, math.inf
    elif found := _RANGE.fullmatch(text):
        low, high = float(found[1]), float(found[2])
    elif found := _PLUS.fullmatch(text):
        low, high = float(found[1]), math.inf
    elif found := _SIGN.fullmatch(text):
        edge, sign = float(found[2]), found[1]
        low = edge if sign in (">=", "≥") else edge + 1 if sign == ">" else 0.0
        high = edge if sign in ("<=", "≤") else edge - 1 if sign == "<" else math.inf
    else:
        low = high = -1.0
    if not 0 <= low <= high or low > MOST_ROWS or (low == high and low != int(low)):
        raise ModelError(
            f"line {line} of the table has the count {quoted(shown(text))}; a count is a whole number, a range like "
            "1-4, <5 or 10+, or suppressed (empty, *, x, c, ..)."
        )
    return low, high


# -- attributes -----------------------------------------------------------------------------------


def _conditions(frame: pd.DataFrame, attributes: Sequence[str]) -> list[tuple[Condition, ...]]:
    """The conditions of each line."""
    found: list[list[Condition]] = [[] for _ in range(len(frame))]
    for name in attributes:
        known: dict[str, Condition | None] = {}
        for at, value in enumerate(frame[name]):
            text = str(text_of(value) or "").strip()
            if text not in known:
                known[text] = condition(name, text)
            each = known[text]
            if each is not None:
                found[at].append(each)
    return [tuple(each) for each in found]


def condition(name: str, text: str) -> Condition | None:
    """What a cell says of an attribute; None where it says nothing, as in a margin.

    >>> [str(condition("age", text)) for text in ("30", "20-29", "[20, 30)", "<30", "65+", "3*", "{30, 40}", "total")]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['age = 30', 'age = 20-29', 'age in [20, 30)', 'age < 30', 'age >= 65', 'age = 3*', 'age in {30, 40}', 'None']
    """
    if text.lower() in TOTALS:
        return None
    if found := _RANGE.fullmatch(text):
        return Between(name, float(found[1]), float(found[2]))
    if found := _BRACKETS.fullmatch(text):
        return Between(name, float(found[2]), float(found[3]), found[4] == "]", found[1] == "(")
    if found := _SIGN.fullmatch(text):
        return _SIGNS[found[1]](name, float(found[2]))
    if found := _PLUS.fullmatch(text):
        return AtLeast(name, float(found[1]))
    if _MASK.fullmatch(text):
        return Masked(name, text)
    if text.startswith("{") and text.endswith("}"):
        return OneOf(name, tuple(each.strip() for each in text[1:-1].split(",")))
    if set(text) == {"*"}:
        return None
    return Equals(name, text)
