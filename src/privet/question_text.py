"""Questions in words, for the command line: `mean wage by sex where age in 30..40 and region = harbour`.

A question is parsed into values, checked against the public domain and asked of a table. Nothing of
its text reaches an engine.

    count | sum COLUMN | mean COLUMN | median COLUMN | quantile COLUMN RANK
    histogram COLUMN, COLUMN, ... | select max|gini|infogain [thresholds]
    ... by COLUMN                  for each value or bin; costs as much as one of them
    ... where CONDITION and ...    COLUMN = VALUE, COLUMN in {A, B}, COLUMN in 30..40 (40 excluded),
                                   COLUMN < 40, <= 40, > 30, >= 30; dates as 2020-12-31;
                                   "quote what has spaces or signs"
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privet.conditions import point_of
from privet.errors import QuestionError, did_you_mean
from privet.kernel import LONGEST_QUESTION, Date, Domain, Numeric, fraction_of
from privet.release import Release
from privet.table import ProtectedTable
from privet.text import quoted, shown

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{},=]|<=|>=|<|>|[^\s{},=<>"]+)')
_VERBS = ("count", "sum", "mean", "median", "quantile", "histogram", "select")


@dataclass(frozen=True)
class TextQuestion:
    """A question in words, parsed.

    Parameters
    ----------
    verb : str
        What is asked: count, sum, mean, median, quantile, histogram or select.
    words : tuple of str, default ()
        Columns, and the rank of a quantile or the criterion of a selection.
    by : str, optional
        The column by whose values or bins the rows are partitioned.
    where : tuple of (str, str, tuple of str), default ()
        Conditions: a column, a sign, and values.

    Examples
    --------
    >>> TextQuestion.parse("count where sex = Female and age in 30..40")
    TextQuestion(verb='count', words=(), by=None, where=(('sex', '=', ('Female',)), ('age', 'in', ('30', '40'))))
    """

    verb: str
    words: tuple[str, ...] = ()
    by: str | None = None
    where: tuple[tuple[str, str, tuple[str, ...]], ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> TextQuestion:
        """Parse a question in words.

        Parameters
        ----------
        text : str

        Returns
        -------
        TextQuestion

        Raises
        ------
        QuestionError
            The text is not a question, or longer than `privet.kernel.LONGEST_QUESTION`.
        """
        if not isinstance(text, str) or len(text) > LONGEST_QUESTION:
            raise QuestionError(f"a question is a text of at most {LONGEST_QUESTION} characters.")
        tokens = _tokens(text)
        if not tokens or tokens[0] not in _VERBS:
            meant = did_you_mean(tokens[0], _VERBS) if tokens else ""
            raise QuestionError(
                f"a question begins with {', '.join(_VERBS[:-1])} or {_VERBS[-1]}{meant}; for example: count where sex "
                "= Female."
            )
        verb, rest = tokens[0], tokens[1:]
        head, conditions = _cut(rest, "where")
        words, by = _cut(head, "by")
        if by is not None and len(by) != 1:
            raise QuestionError("'by' is followed by one column.")
        names = tuple(_word(word) for word in words if word != ",")
        needed = {"count": 0, "quantile": 2, "histogram": None, "select": None}.get(verb, 1)
        if needed is not None and len(names) != needed:
            example = {"count": "count", "quantile": "quantile age 0.9"}.get(verb, f"{verb} age")
            if not needed:
                raise QuestionError("'count' is followed by nothing, 'by' or 'where', as in: count by sex.")
            quotes = '; put "quotes" around a name of several words' if len(names) > needed else ""
            raise QuestionError(f"'{verb}' takes {needed} word{'s' * (needed != 1)}, as in: {example}{quotes}.")
        return cls(verb, names, _word(by[0]) if by else None, _conditions(conditions))

    def ask(self, table: ProtectedTable, epsilon: str, key: str | None = None) -> list[tuple[str | None, Release]]:
        """Ask a table.

        Parameters
        ----------
        table : ProtectedTable
        epsilon : str
            What the answer costs, such as "0.1" or "1/10".
        key : str, optional
            An idempotency key.

        Returns
        -------
        list of (str or None, Release)
            The label of each part, or None without `by`, and its answer.

        Raises
        ------
        QuestionError
            The question does not suit the domain. Nothing was charged.
        BudgetExceeded
            The table has less than `epsilon` left. Nothing was charged.
        """
        conditions = {name: _where_value(table.domain, name, sign, values) for name, sign, values in self.where}
        if len(conditions) < len(self.where):
            raise QuestionError("each column stands in one condition only; use in {A, B} or in LOW..HIGH.")
        rows = table.where(conditions) if conditions else table
        if self.by is None:
            return [(None, self._ask(rows, epsilon, key))]
        parts = rows.partition(self.by)
        return list(zip(parts.labels, self._ask(parts, epsilon, key), strict=True))

    def _ask(self, rows: Any, epsilon: str, key: str | None) -> Any:
        """Call the method of a table, or of its parts, that the verb names."""
        if self.verb == "count":
            return rows.count(epsilon, key=key)
        if self.verb == "histogram":
            return rows.histogram(*self.words, epsilon=epsilon, key=key)
        if self.verb == "select":
            if not 1 <= len(self.words) <= 2 or self.words[1:] not in ((), ("thresholds",)):
                raise QuestionError("'select' takes a criterion, as in: select gini, or: select gini thresholds.")
            return rows.select(self.words[0], epsilon, thresholds=len(self.words) == 2, key=key)
        if self.verb == "quantile":
            return rows.quantile(*self.words, epsilon, key=key)
        return getattr(rows, self.verb)(self.words[0], epsilon, key=key)


def _tokens(text: str) -> list[str]:
    """Return the words, quoted texts and signs of a question."""
    tokens, position, text = [], 0, text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise QuestionError(
                f"cannot read the question at {quoted(text[position : position + 20])}; close the quote."
            )
        tokens.append(match[1])
        position = match.end()
    return tokens


def _word(token: str) -> str:
    """Return a name or value without its quotes; refuse a sign."""
    if token.startswith('"'):
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    if token in ("{", "}", ",", "=", "<", ">", "<=", ">="):
        raise QuestionError(f"a name or value was expected, not '{token}'; put \"quotes\" around what has signs.")
    return token


def _cut(tokens: Sequence[str], word: str) -> tuple[list[str], list[str] | None]:
    """Return the tokens before a word and after it; None after it if it is not there."""
    if word not in tokens:
        return list(tokens), None
    index = list(tokens).index(word)
    return list(tokens[:index]), list(tokens[index + 1 :])


def _conditions(tokens: list[str] | None) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Parse conditions that are joined by `and`."""
    if tokens is None:
        return ()
    conditions = []
    while True:
        condition, more = _cut(tokens, "and")
        conditions.append(_condition(condition))
        if more is None:
            return tuple(conditions)
        tokens = more


def _condition(tokens: list[str]) -> tuple[str, str, tuple[str, ...]]:
    """Parse one condition: its column, sign and values."""
    if len(tokens) >= 3 and tokens[1] in ("=", "<", "<=", ">", ">=") and len(tokens) == 3:
        return _word(tokens[0]), tokens[1], (_word(tokens[2]),)
    if len(tokens) == 3 and tokens[1] == "in" and ".." in tokens[2]:
        low, _, high = tokens[2].partition("..")
        return _word(tokens[0]), "in", (low, high)
    if len(tokens) >= 5 and tokens[1:3] == ["in", "{"] and tokens[-1] == "}":
        return _word(tokens[0]), "one of", tuple(_word(token) for token in tokens[3:-1] if token != ",")
    raise QuestionError(
        f"cannot read the condition '{shown(' '.join(tokens))}'; write COLUMN = VALUE, COLUMN in {{A, B}}, COLUMN in "
        '30..40 or COLUMN < 40, with "quotes" around what has spaces or signs.'
    )


def _where_value(domain: Domain, name: str, sign: str, values: tuple[str, ...]) -> object:
    """Return a condition as `table.where` takes it."""
    column = domain[name]
    if sign == "one of":
        return set(values)
    if sign == "=":
        number = _point(column, values[0]) if isinstance(column, Numeric) and values[0] not in column.labels else None
        return values[0] if number is None else number
    if not isinstance(column, Numeric):
        raise QuestionError(f"column '{name}' is nominal and has no ranges; use = or in {{A, B}}.")
    bounds = [None if text == "" else _point(column, text) for text in values]
    for bound, text in zip(bounds, values, strict=True):
        if bound is None and text != "":
            known = "dates such as 2020-12-31" if isinstance(column, Date) else "numbers of ordinary size"
            raise QuestionError(f"column '{name}' is compared with {known}, not with {quoted(text)}.")
    if sign == "in":
        low, high = bounds
    else:
        bound = bounds[0]
        assert bound is not None
        beyond = column.value_at(math.floor((bound - column.low) / column.step) + 1)  # the next grid point
        low, high = {"<": (None, bound), "<=": (None, beyond), ">": (beyond, None), ">=": (bound, None)}[sign]
    _refuse_empty(column, low, high)
    return low, high


def _point(column: Numeric, text: str) -> Fraction | None:
    """Return the number or date that a word of a question is."""
    return point_of(column, text) if isinstance(column, Date) else fraction_of(text)


def _refuse_empty(column: Numeric, low: Fraction | None, high: Fraction | None) -> None:
    """Refuse a range in which no declared number lies: its answer is known, and would be charged."""
    above = column.low if low is None else low
    below = column.top + column.step if high is None else high
    if high is not None and low is not None and low > high:
        return  # refused with a better sentence
    if above >= below or above > column.top or below <= column.low:
        raise QuestionError(
            f"no declared value of '{column.name}' lies in this range: it has {column.text(column.low)} to "
            f"{column.text(column.top)}, and LOW..HIGH leaves HIGH out."
        )
