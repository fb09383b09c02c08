"""A question as a form says it: the JSON that the API takes, and before it is paid, how far off its answer will be.

Everything here is made of the public domain, the unit of the table and what somebody wrote into a form. No row and no
ledger is in reach.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any

from privet.conditions import conditions, point_of, rank, split_texts
from privet.errors import QuestionError
from privet.kernel import (
    LARGEST_EPSILON,
    Answers,
    Date,
    Divide,
    Domain,
    Keep,
    Mechanism,
    Numeric,
    PerPart,
    Question,
    Split,
    Unit,
    as_epsilon,
    cells_of,
    digest,
    fraction_of,
)
from privet.question_json import question_from_json, step_to_json
from privet.release import About, Release, Releases
from privet.text import quoted, short_text

# What may be asked by a form, in the order in which it lists them: what it is called, and which columns it takes.
KINDS = {
    "count": "How many rows",
    "histogram": "How many rows of each kind",
    "mean": "The mean of a number",
    "sum": "The sum of a number",
    "quantile": "A median or another quantile",
    "majority": "The most frequent value",
}
CONFIDENCE = 0.95
USUAL_EPSILON = Fraction(1, 10)  # of the count by which pages say what an amount is worth
USUAL_ROWS = 1000  # that a mean is of, where nothing is public about the number of rows
_MOST_LISTED = 200  # values of a column that a form lists
_SMALLEST = 1e-6  # epsilon that is tried for an accuracy
_DIGITS = 3  # of an epsilon that was made for an accuracy
_OF_FORM = re.compile(r"console \w+")  # the key of a question that was asked by a form


@dataclass(frozen=True)
class Form:
    """What somebody wrote: fields with their values, in order."""

    fields: Mapping[str, Sequence[str]]

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a field, without blanks around it."""
        values = self.fields.get(name, ())
        return values[-1].strip() if values else default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return all values of a field."""
        return tuple(self.fields.get(name, ()))

    def number(self, name: str, what: str) -> Fraction:
        """Return a number that is greater than 0. QuestionError if the field has none."""
        text = self.text(name).replace(",", "").removeprefix("±").strip()
        value = fraction_of(text) if text else None
        if value is None or not 0 < value < 10**15:
            given = f", not {quoted(text)}" if text else ""
            raise QuestionError(f"{what} must be a number greater than 0, as 0.1{given}.")
        return value


@dataclass(frozen=True)
class Accuracy:
    """How far off an answer will be, before it is asked: with 95% confidence no further than this."""

    size: float  # in the unit of the words
    words: str  # "± 30 rows"
    remark: str = ""


@dataclass(frozen=True)
class Draft:
    """A question about some rows of a table, not asked yet.

    Parameters
    ----------
    question : Question
    domain : Domain
    unit : Unit
        What the table is counted in.
    steps : tuple
        The way to the rows: conditions, and the column by whose values they are divided.
    labels : tuple of str
        One for each part; a single empty one without a division.
    scope : str
        The rows, in words.
    expected : int, default 0
        The number of rows that somebody expects there: what a mean is off depends on it.
    by : str, default ""
        The column by whose values they are divided.
    """

    question: Question[Any]
    domain: Domain
    unit: Unit
    steps: tuple[Keep | Divide, ...]
    labels: tuple[str, ...]
    scope: str
    expected: int = 0
    by: str = ""

    @property
    def title(self) -> str:
        """The question in words, with the columns that it is about."""
        column, columns = getattr(self.question, "column", ""), getattr(self.question, "columns", ())
        match self.question.kind:
            case "histogram":
                return f"How many rows of each {' and '.join(columns)}"
            case "quantile":
                share: Fraction = self.question.rank  # type: ignore[attr-defined]
                return f"The {'median' if share == Fraction(1, 2) else f'{short_text(share)} quantile'} of {column}"
            case "majority":
                return f"The most frequent {column}"
            case "mean" | "sum" as kind:
                return f"The {kind} of {column}"
            case kind:
                return KINDS[kind]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The steps to the rows, as the API takes them."""
        return [{"id": uuid.uuid4().hex, **step_to_json(step)} for step in self.steps]

    def amounts(self, epsilon: Fraction) -> PerPart[Fraction]:
        """Return what each part is charged for an epsilon, in the unit of the table."""
        return PerPart.same(self.unit.amount(epsilon), len(self.labels))

    def mechanisms(self, amounts: PerPart[Fraction]) -> PerPart[Mechanism]:
        """Return what draws the noise for what each part is charged: every record of a person gets its share."""
        losses = amounts.map(lambda own: self.unit.of_record(own, self.domain.rows_per_person))
        return self.question.mechanisms(self.domain, losses, self.unit)

    def accuracy(self, epsilon: Fraction) -> Accuracy:
        """Return how far off the answer of each part will be, for an epsilon."""
        kind, size = self.question.kind, self._size(self.unit.amount(epsilon))
        each, remark = " in each group" if len(self.labels) > 1 else "", ""
        words = self._off(size)
        if kind == "mean":
            column = self.domain.numeric(self.question.column)  # type: ignore[attr-defined]
            remark = f"if about {self.expected:,} rows count{each}; with fewer it is further off"
            if size >= float(column.top - column.low) / 2:
                remark += ". That is as much as the whole range: the answer would say nothing"
            return Accuracy(size, words, remark)
        if kind == "quantile":
            remark = "counted in rows" + (f", of the {self.expected:,} that you expect" if self.expected else "")
        if kind == "histogram":
            each = " in each cell of each group" if each else " in each cell"
        return Accuracy(size, words + each, remark)

    def off(self, amount: Fraction) -> str:
        """Return how far off the answer of one part is, in words, for what it was charged in the unit of the table."""
        return self._off(self._size(amount))

    def _off(self, size: float) -> str:
        kind = self.question.kind
        whole = kind in ("count", "histogram", "quantile", "majority") or size >= 100
        number = f"{math.ceil(size):,}" if whole else f"{size:.3g}"
        rows = f"{number}\N{NO-BREAK SPACE}row{'s' * (number != '1')}"
        if kind in ("count", "histogram"):
            return f"±\N{NO-BREAK SPACE}{rows}"
        if kind == "quantile":
            return f"within {rows} of the true one"
        return f"at most {rows} behind the most frequent" if kind == "majority" else f"±\N{NO-BREAK SPACE}{number}"

    def _size(self, amount: Fraction) -> float:
        """Return how far off one answer is at most, with 95% confidence, for what its part is charged."""
        mechanism: Any = self.mechanisms(PerPart.same(amount, len(self.labels)))[0]
        kind = self.question.kind
        if kind in ("count", "histogram"):
            return float(mechanism.error(CONFIDENCE))
        noisy = [0, self.expected] if kind == "mean" else 0
        example: Any = self.question.release(noisy, mechanism, About("", Fraction(1)), self.domain, 0)
        if kind == "quantile":
            return float(example.rank_error(CONFIDENCE))
        if kind == "majority":
            return float(example.shortfall(CONFIDENCE))
        low, high = example.interval(CONFIDENCE)
        return float(high - low) / 2

    def epsilon_for(self, size: Fraction) -> Fraction:
        """Return the smallest epsilon, of three digits, whose answer is at most so far off.

        Raises
        ------
        QuestionError
            None that may be charged is enough.
        """
        most = float(LARGEST_EPSILON)
        low, high = math.log(_SMALLEST), math.log(most)

        def off(number: float) -> float:
            return self._size(self.unit.amount(as_epsilon(rounded(number))))

        if off(most) > size:
            raise QuestionError(f"no epsilon brings this answer within {short_text(size)}; ask for less accuracy.")
        for _ in range(40):  # the error never grows with epsilon
            middle = (low + high) / 2
            low, high = (low, middle) if off(math.exp(middle)) <= size else (middle, high)
        return as_epsilon(rounded(math.exp(high)))

    def releases(
        self, amounts: PerPart[Fraction], noisy: list[Any], private: bool, entry: int | None
    ) -> Releases[Release]:
        """Return the answers of all parts, made of what the API has answered and what each part was charged."""
        mechanisms, records = self.mechanisms(amounts), self.domain.rows_per_person
        losses = mechanisms.map(lambda own: self.unit.of_person(self.unit.loss(own), records))
        return Answers(noisy, mechanisms, losses, private, entry, self.unit).releases(self.question, self.domain)


def rounded(number: float) -> Fraction:
    """Return a number with three digits, rounded up, at most the largest epsilon.

    >>> rounded(0.10203), rounded(3.0)
    (Fraction(103, 1000), Fraction(3, 1))
    """
    value = Decimal(repr(number))
    step = Decimal(1).scaleb(value.adjusted() - _DIGITS + 1)
    up = value.quantize(step, rounding=ROUND_CEILING)
    return min(Fraction(up), LARGEST_EPSILON)


def in_counts(amount: Fraction, unit: Unit, rows_per_person: int, more: str = "more ") -> str:
    """Return what an amount of budget is worth in words: how many counts it pays, and how far off each is.

    >>> from privet.kernel import unit_with
    >>> pure = unit_with(None)
    >>> in_counts(Fraction(6, 5), pure, 1), in_counts(Fraction(1, 20), pure, 1, more="")
    ('about 12 more counts at ±\xa030\xa0rows', 'one count at ±\xa060\xa0rows')
    """
    if amount <= 0:
        return "nothing left" if more else "nothing"
    loss = unit.amount(USUAL_EPSILON)
    times = how_often(amount, loss)
    mechanism = unit.noise(unit.of_record(loss if times else amount, rows_per_person))
    rows = math.ceil(mechanism.error(CONFIDENCE))
    number = "one" if times == 0 or (times == 1 and not more) else f"about {times:,}"
    off = f"±\N{NO-BREAK SPACE}{rows:,}\N{NO-BREAK SPACE}row{'s' * (rows != 1)}"
    return f"{number} {more}count{'s' * (times > 1)} at {off}"


def how_often(left: Fraction, loss: Fraction) -> int:
    """Return how many more times something can be charged."""
    return int(left / loss)


def draft(form: Form, domain: Domain, unit: Unit) -> Draft:
    """Return the question of a form.

    Parameters
    ----------
    form : Form
        `kind`; `column` and `column2`; `rank`; `by`; for the column number i values `in{i}`, or bounds `from{i}` and
        `to{i}`; `expected` rows.
    domain : Domain
    unit : Unit

    Raises
    ------
    QuestionError
        It is none, in one sentence.
    """
    kind = form.text("kind", "count") or "count"
    if kind not in KINDS:
        raise QuestionError("choose what to ask from the list.")
    content: dict[str, Any] = {"question": kind, "version": Question.version}
    if kind == "histogram":
        names = dict.fromkeys(name for name in (form.text("column"), form.text("column2")) if name)
        if not names:
            raise QuestionError("choose the column whose values are counted.")
        content["columns"] = [domain[name].name for name in names]
    elif kind != "count":
        name = form.text("column")
        if not name:
            raise QuestionError("choose the column that the question is about.")
        content["column"] = domain[name].name
        if kind != "majority" and not isinstance(domain[name], Numeric):
            raise QuestionError(
                f"'{name}' holds no numbers; choose a column that does, or count the rows of each kind."
            )
    if kind == "quantile":
        content["rank"] = str(rank(form.text("rank", "0.5") or "0.5"))
    question = question_from_json(content)
    wanted = _wanted(form, domain)
    parsed, scope = conditions(wanted, domain)
    steps: list[Keep | Divide] = [Keep((0,), parsed)] if parsed else []
    labels: tuple[str, ...] = ("",)
    by = form.text("by")
    if by:
        steps.append(Divide(PerPart.same(Split(domain[by].name), 1)))
        labels = tuple(domain[by].labels)
    expected = _expected(form, domain)
    return Draft(
        question, domain, unit, tuple(steps), labels, scope or "all rows", expected, domain[by].name if by else ""
    )


def asked_before(charge: Mapping[str, Any], parts: int, domain: Domain, unit: Unit) -> Draft | None:
    """Return the question of a form from what the ledger says of it, to tell its answer with its bounds again.

    Parameters
    ----------
    charge : mapping
        The body of its line.
    parts : int
        How many answers it got.
    domain : Domain
    unit : Unit

    Returns
    -------
    Draft or None
        None if a program asked it, the domain has other cells since, or the line leaves a doubt about what was asked.
    """
    known = {"domain": digest(cells_of(domain)), "rows_per_person": domain.rows_per_person, "unit": unit.name}
    if not _OF_FORM.fullmatch(str(charge.get("key"))) or any(charge[name] != value for name, value in known.items()):
        return None
    words, scope = charge["question"], charge["scope"]
    named = [column.name for column in domain.columns if column.name in words]
    share = fraction_of(words.rpartition(", ")[2].removesuffix(")"))  # the rank of a quantile, as the ledger says it
    contents: list[dict[str, Any]] = [{"question": "count"}]
    for name in named:
        contents += [{"question": kind, "column": name} for kind in ("mean", "sum", "majority")]
        contents += [{"question": "quantile", "column": name, "rank": str(share)}] if share is not None else []
        contents += [{"question": "histogram", "columns": [name]}]
        contents += [{"question": "histogram", "columns": [name, other]} for other in named if other != name]
    questions = [question_from_json({"version": Question.version, **content}) for content in contents]
    meant = [question for question in questions if question.words == words]
    labels: tuple[str, ...] = ("",)
    by: list[str] = []
    if parts > 1:  # no other division is in a form than one by all values of a column
        splits = {column.name: split_texts(Split(column.name), domain) for column in domain.columns}
        by = [name for name, (own, texts) in splits.items() if len(own) == parts and scope.endswith(f" / {texts[0]}")]
        if len(by) != 1:
            return None
        own, texts = splits[by[0]]
        labels, scope = tuple(own), scope.removeprefix(f"{parts} parts, first ").removesuffix(f" / {texts[0]}")
    scope = scope.removeprefix("all rows where ")
    return Draft(meant[0], domain, unit, (), labels, scope, by=by[0] if by else "") if len(meant) == 1 else None


def _expected(form: Form, domain: Domain) -> int:
    text = form.text("expected")
    return min(int(form.number("expected", "the number of rows you expect")), 10**12) if text else _usual(domain)


def _usual(domain: Domain) -> int:
    return domain.rows or USUAL_ROWS


def _wanted(form: Form, domain: Domain) -> dict[str, object]:
    """Return the conditions on rows, by column."""
    wanted: dict[str, object] = {}
    for number, column in enumerate(domain.columns):
        labels = form.texts(f"in{number}")
        if labels:
            wanted[column.name] = set(labels)
        if isinstance(column, Numeric):
            low, high = (_bound(form.text(f"{side}{number}"), column) for side in ("from", "to"))
            if low is not None or high is not None:
                wanted[column.name] = (low, high)
    return wanted


def _bound(text: str, column: Numeric) -> Fraction | None:
    if not text:
        return None
    value = point_of(column, text) if isinstance(column, Date) else fraction_of(text)
    if value is None:
        kind = "a date as 2020-12-31" if isinstance(column, Date) else "a number"
        raise QuestionError(f"a bound of '{column.name}' is {kind}, not {quoted(text)}.")
    return value


@dataclass(frozen=True)
class ColumnFacts:
    """A column of a domain, as pages show it."""

    number: int
    name: str
    kind: str
    text: str  # what values it has
    values: tuple[str, ...]  # those that a form lists
    hidden: int  # values that it does not
    numeric: bool
    measurable: bool  # has a sum and a mean
    low: str = ""
    top: str = ""
    target: bool = False


def columns_of(domain: Domain) -> list[ColumnFacts]:
    """Return what is public about each column."""
    facts = []
    for number, column in enumerate(domain.columns):
        target = column.name == domain.target
        if isinstance(column, Numeric):
            dated = isinstance(column, Date)
            low, top = column.text(column.low), column.text(column.top)
            step = "" if dated else f", in steps of {short_text(column.step)}"
            text = f"{low} to {top}{step}; {column.bin_count} bins{', or missing' * column.missing}"
            kind = "date" if dated else "number"
            facts.append(ColumnFacts(number, column.name, kind, text, (), 0, True, not dated, low, top, target))
        else:
            labels = column.labels
            listed = labels[:_MOST_LISTED]
            shown = ", ".join(labels[:12]) + f" and {len(labels) - 12} more" * (len(labels) > 12)
            kind = "ordered kinds" if column.ordered else "kinds"
            hidden = len(labels) - len(listed)
            facts.append(ColumnFacts(number, column.name, kind, shown, listed, hidden, False, False, target=target))
    return facts
