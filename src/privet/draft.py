"""A first domain file, drafted from a public sample or codebook: it loads as it is, and says line by line why.

A domain must not be read from private rows: what it lists would be released without noise. So a draft starts from
something public: a sample that was published, a synthetic file of the same form, or a C4.5/UCI `.names` codebook.

What a draft decides, column by column:

* identifiers, free text, and columns that are empty or constant are left out, with a comment that says why;
* dates get bounds of whole years and cells of the calendar, if they are written as YYYY-MM-DD; else they are left out;
* numbers get round bounds and edges that follow from the bounds alone: even, or on a ladder such as 1, 2, 5, 10. The
  sample only says which of the two spreads its rows better;
* other texts are listed, and get the cells `<other>` and `<missing>` unless the sample is large enough to show that
  hardly any row needs them.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privet.calendar_cells import iso_text
from privet.delimited import DelimitedFile
from privet.errors import DataError, DomainError
from privet.kernel import (
    MISSING,
    OTHER,
    UNWRITABLE,
    Column,
    Date,
    Domain,
    Nominal,
    Numeric,
    as_series,
    day_of,
    number_of,
    text_of,
    whole_of,
)
from privet.text import quoted

MOST_VALUES = 50  # values of a text column that are listed, the most frequent ones; the others are <other>
MOST_CLASSES = 100  # values of a target
MOST_TEXTS = 100_000  # different texts of a column that are remembered
MOST_CELLS = 20  # cells of a numeric column
SELDOM = 0.01  # share of the sample's rows below which a value of a long list is not listed
SHORT = 12  # values of a list that are listed however seldom they are
FEW_ROWS = 20  # a sample with fewer rows does not show what is an identifier
RARE = Fraction(1, 100)  # share of rows that may be left out for want of a cell
FINEST_GRID = 10**7  # steps from bound to bound, at most
FARTHEST = 10**9  # steps from zero, at most, where steps are decimals: floats must tell them apart
BLANKS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # what stands for no number among numbers

# The first decade of each ladder of edges, from coarse to fine.
LADDERS = tuple(
    tuple(Fraction(rung) for rung in rungs.split())
    for rungs in (
        "1",
        "1 3",
        "1 2 5",
        "1 1.5 2 3 5 7",
        "1 1.2 1.5 2 2.5 3 4 5 6 8",
        "1 1.1 1.2 1.4 1.6 1.8 2 2.2 2.5 3 3.5 4 4.5 5 5.5 6 7 8 9",
    )
)


@dataclass(frozen=True)
class Wishes:
    """What the owner says about a draft: the target, the person, and how edges are made."""

    target: str | None = None
    person: str | None = None
    rows_per_person: int | None = None
    quantiles: bool = False


def draft(
    source: object,
    *,
    target: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    quantiles: bool = False,
) -> str:
    """Return the text of a commented domain file, drafted from a public sample or codebook.

    Parameters
    ----------
    source : path or frame
        A public sample: a CSV or Parquet file, or a pandas, polars or Arrow frame; or a C4.5 `.names` codebook. Never
        the private rows.
    target : str, optional
        The column to predict. Its values become the classes.
    person : str, optional
        The column that says whose row it is. It is written as a setting and is not among the columns.
    rows_per_person : int, optional
        At most this many rows of a person count; 1 if left out.
    names : sequence of str, optional
        The names of the columns, for a CSV file without a header.
    delimiter, encoding : str, optional
        How the cells of a CSV file are separated, and how its text is written. Without them the delimiter is detected
        and the text is UTF-8.
    quantiles : bool, default False
        Put the edges of numbers at quantiles of the sample. The domain then shows them.

    Returns
    -------
    str

    Raises
    ------
    DataError
        The source cannot be read, has no such target or person, or no column that a domain can describe.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = Path(folder) / "sample.csv"
    ...     rows = (f"p{k},{'fm'[k % 2]},{18 + k * 7 % 71}\\n" for k in range(2000))
    ...     _ = sample.write_text("case_no,sex,age\\n" + "".join(rows))
    ...     text = draft(sample, target="sex")
    >>> print(text[text.index("target"):])
    target = "sex"
    # rows =               # public order of magnitude, fill in or leave out
    # max_rows =           # public upper bound, fill in or leave out
    # person =             # the column that says whose row it is, fill in or leave out
    # rows_per_person =    # at most this many rows belong to one person; 1 where left out
    <BLANKLINE>
    # left out: 'case_no' has a different value in nearly every row: an identifier
    <BLANKLINE>
    [columns."sex"]
    kind = "nominal"
    values = ["f", "m"]
    <BLANKLINE>
    [columns."age"]
    kind = "numeric"
    low = 15
    high = 90
    step = 1
    bins = 15
    <BLANKLINE>
    >>> Domain.parse(text).names
    ('sex', 'age')
    """
    wishes = Wishes(target, person, rows_per_person, quantiles)
    if rows_per_person is not None and whole_of(rows_per_person, 1, 10**6) is None:
        raise DataError(f"rows_per_person is a whole number from 1 to 1000000, not {quoted(rows_per_person)}.")
    if target is not None and target == person:
        raise DataError(f"'{target}' cannot be both the target and the person; name two columns.")
    if not isinstance(source, str | Path):
        return _Sample(wishes, "frame").of_frame(source).text()
    path = Path(source)
    try:
        if path.suffix.lower() == ".names":
            return _codebook(path.name, _entries(path), wishes)
        if path.suffix.lower() in (".parquet", ".pq"):
            rows = _parquet(path)
            return _Sample(wishes, repr(path.name)).of_rows(next(rows), rows).text()
        file = DelimitedFile(path, names=names, delimiter=delimiter, encoding=encoding)
        sample = _Sample(wishes, repr(path.name), file.notes).of_rows(file.names, file.rows(), file.repeats)
        file.check_header([column.counts for column in sample.columns])
        return sample.text()
    except OSError as error:
        raise DataError(f"cannot read '{path}' ({error.strerror}); check the path.") from None


def draft_domain(
    source: object,
    *,
    target: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    quantiles: bool = False,
) -> Domain:
    """Return a domain drafted from a public sample or codebook; also `Domain.draft`.

    The parameters, and what is refused, are those of `privet.draft.draft`, which returns the same domain as a
    commented file.

    Parameters
    ----------
    source : path or frame
        A public sample: a CSV or Parquet file, or a pandas, polars or Arrow frame; or a C4.5 `.names` codebook. Never
        the private rows.
    target, person : str, optional
        The column to predict, and the column that says whose row it is.
    rows_per_person : int, optional
        At most this many rows of a person count; 1 if left out.
    names, delimiter, encoding
        How a CSV file is read, if it has no header, or is not UTF-8.
    quantiles : bool, default False
        Put the edges of numbers at quantiles of the sample. The domain then shows them.

    Returns
    -------
    Domain
        Its `notes` say what was left out, and why.

    Raises
    ------
    DataError
        The source cannot be read, has no such target or person, or no column that a domain can describe.

    >>> import pandas as pd
    >>> visits = [k * k % 5 for k in range(3000)]
    >>> sample = pd.DataFrame({"id": range(3000), "visits": visits, "ill": ["y", "n"] * 1500})
    >>> print(draft_domain(sample, target="ill"))
    target ill, 1 row per person
    column  kind     cells  values
    visits  numeric  5      0 to 4, step 1: [0, 1) [1, 2) [2, 3) [3, 4) [4, 4]
    ill     nominal  2      n, y
    """
    text = draft(
        source,
        target=target,
        person=person,
        rows_per_person=rows_per_person,
        names=names,
        delimiter=delimiter,
        encoding=encoding,
        quantiles=quantiles,
    )
    domain = Domain.parse(text)
    left_out = (line.removeprefix("# ") for line in text.splitlines() if line.startswith("# left out: "))
    return replace(domain, notes=(*domain.notes, *left_out))


# --- the text ---------------------------------------------------------------------------------------------------------

_WARNING = """\
# DRAFT of a domain, made from the public {origin} {name}.
# Review it line by line before you use it: what is written here becomes public.
# A domain must never be made from the private rows: their values would be released without noise.
# rows and max_rows are left empty on purpose: only you can say what may be public.
"""
_SETTINGS = {
    "target": "# target =             # the column to predict, fill in or leave out",
    "rows": "# rows =               # public order of magnitude, fill in or leave out",
    "max_rows": "# max_rows =           # public upper bound, fill in or leave out",
    "person": "# person =             # the column that says whose row it is, fill in or leave out",
    "rows_per_person": "# rows_per_person =    # at most this many rows belong to one person; 1 where left out",
}


def _header(origin: str, name: str, wishes: Wishes, notes: Iterable[str], person_note: str = "") -> str:
    """Return the top of a domain file: warnings, notes and settings."""
    lines = dict(_SETTINGS)
    if wishes.target is not None:
        lines["target"] = f"target = {_toml(wishes.target)}"
    if wishes.person is not None:
        lines["person"] = f"person = {_toml(wishes.person)}    # whose row it is; not an attribute"
    bound = wishes.rows_per_person or (1 if wishes.person is not None else None)
    if bound is not None:
        lines["rows_per_person"] = f"rows_per_person = {bound}{person_note}"
    comments = _WARNING.format(origin=origin, name=name) + "".join(f"# {note}\n" for note in notes)
    return "\n".join([comments, *lines.values(), ""])


def _section(column: Column) -> list[str]:
    """Return the lines of a column in a domain file."""
    return Domain((column,)).to_toml().split("\n\n", 1)[1].rstrip("\n").split("\n")


def _toml(text: str) -> str:
    """Return a text as a domain file writes it."""
    return _section(Nominal(text, ("-",)))[0].removeprefix("[columns.").removesuffix("]")


def _left_out(name: str, why: str) -> list[str]:
    return [f"# left out: {name!r} {why}"]


def _check_name(names: Sequence[str], name: str | None, role: str, origin: str) -> None:
    """Refuse a target or a person that is no column."""
    if name is None or name in names:
        return
    near = difflib.get_close_matches(name, names, 1, 0.6) or [n for n in names if n.lower() == name.lower()]
    hint = f"did you mean '{near[0]}'?" if near else f"its columns are {', '.join(map(repr, names[:20]))}."
    raise DataError(f"the {origin} has no column '{name}' for the {role}; {hint}")


# --- from a sample ----------------------------------------------------------------------------------------------------


class _Sample:
    """A public sample, read column by column in bounded memory."""

    def __init__(self, wishes: Wishes, name: str, notes: Sequence[str] = ()) -> None:
        self.wishes, self.name, self.notes = wishes, name, notes
        self.columns: list[_Seen] = []
        self.rows = 0

    def of_rows(
        self, header: Sequence[str], rows: Iterable[Sequence[object]], repeats: Mapping[int, int] | None = None
    ) -> _Sample:
        """Read rows; `repeats` says which columns had the name of an earlier one."""
        self.columns = [_Seen(name) for name in header]
        copies = dict(repeats or {})
        for row in rows:
            self.rows += 1
            for column, value in zip(self.columns, row, strict=True):
                column.add(value)
            copies = {copy: first for copy, first in copies.items() if row[copy] == row[first]} if copies else copies
        for copy, first in copies.items():
            self.columns[copy].copy_of = header[first]
        return self

    def of_frame(self, frame: Any) -> _Sample:
        names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)  # of Arrow, of the others
        if names is None or isinstance(names, np.ndarray):
            raise DataError("a draft needs a path, or a pandas, polars or Arrow frame of public rows.")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise DataError("the columns of a frame need names that are different texts; rename them.")
        self.columns = [_Seen(name) for name in names]
        for column in self.columns:
            for value in as_series(frame[column.name]):
                column.add(value)
        self.rows = len(frame)
        return self

    def text(self) -> str:
        """Return the domain file."""
        if self.rows == 0:
            raise DataError(f"the sample {self.name} has no rows; a draft needs a sample of public rows.")
        names = [column.name for column in self.columns if column.name.strip()]
        for role, name in (("target", self.wishes.target), ("person", self.wishes.person)):
            _check_name(names, name, role, f"sample {self.name}")
        # By the rule of succession, what no row of a column shows is expected in one of as many rows.
        shows_all = Fraction(len(self.columns), self.rows) <= RARE
        sections = [self._lines(column, shows_all) for column in self.columns]
        if not any(lines[0].startswith("[") for lines in sections):
            raise DataError(
                f"the sample {self.name} has no column that a domain can describe ({sections[0][0][2:]}); write the "
                "domain file by hand."
            )
        header = _header("sample", self.name, self.wishes, self.notes, self._person_note())
        return "\n".join([header, *("\n".join(lines) + "\n" for lines in sections)])

    def _lines(self, column: _Seen, shows_all: bool) -> list[str]:
        """Return the section of a column, or a comment that says why it has none."""
        if not column.name.strip():
            return [f"# left out: column {self.columns.index(column) + 1} has no name"]
        if column.name == self.wishes.person:
            return _left_out(column.name, "says whose row it is: the person, above")
        try:
            if column.name == self.wishes.target:
                return _target(column)
            return column.lines(shows_all, self.wishes.quantiles)
        except DomainError as error:
            return _left_out(column.name, f"cannot be declared: {str(error)!r}")

    def _person_note(self) -> str:
        """Return a comment on `rows_per_person`: how many rows a person of the sample has."""
        most = max((max(c.counts.values(), default=1) for c in self.columns if c.name == self.wishes.person), default=1)
        bound = self.wishes.rows_per_person or 1
        if most <= bound:
            return ""
        counted = f"{bound} count{'s' * (bound == 1)}"
        return f"    # a person of the sample has up to {most} rows: of those, {counted}; more cost more noise"


def _target(column: _Seen) -> list[str]:
    """Return the section of the target: all values of the sample are classes."""
    values = column.values()
    if len(values) < 2:
        raise DataError(f"the target '{column.name}' has fewer than two values in the sample; add rows of each class.")
    if len(values) > MOST_CLASSES:
        raise DataError(
            f"the target '{column.name}' has {len(values)} different values in the sample, at most {MOST_CLASSES} can "
            "be classes; name another target, or group its values first."
        )
    note = ["# rows without a class are left out: a target has no cell for them"] * (column.empty > 0)
    classes: tuple[str, ...] = tuple(sorted(values, key=_numbers_first))
    return [*_section(Nominal(column.name, classes)), *note, *_spellings(classes)]


def _spellings(values: Iterable[str], most: int = 5) -> list[str]:
    """Return a comment for each group of listed values that differ in capitals and blanks alone.

    >>> _spellings(["F", "M", "f"])
    ["# 'F', 'f' differ in capitals or blanks alone: 2 cells; if they mean the same, write them alike everywhere"]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(" ".join(value.casefold().split()), []).append(value)
    return [
        f"# {', '.join(map(repr, group[:most]))}{', ...' * (len(group) > most)} differ in capitals or blanks alone: "
        f"{len(group)} cells; if they mean the same, write them alike everywhere"
        for group in groups.values()
        if len(group) > 1
    ]


@dataclass
class _Seen:
    """What a sample showed of one column, in bounded memory."""

    name: str
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # rows by their text
    beyond: int = 0  # rows whose text is not among those that are remembered
    empty: int = 0  # rows without any text
    blank: int = 0  # different texts that stand for no number, such as "?"
    numbers: int = 0  # different texts that are numbers; dates, codes and words alike
    dates: int = 0
    days: int = 0  # those of them that a domain reads
    first_day: int | None = None
    last_day: int | None = None
    codes: int = 0  # numbers that begin with a zero, as 007
    words: int = 0  # words of all different texts
    low: Decimal | None = None
    high: Decimal | None = None
    least: Decimal | None = None  # the least size of a number but 0
    decimals: int = 0
    rising: bool = True
    falling: bool = True
    copy_of: str | None = None  # the column that this one repeats in every row
    _last: Decimal | None = None

    def add(self, value: object) -> None:
        self.rows += 1
        text = text_of(value)
        if text is None or text == "":
            self.empty += 1
        elif text in self.counts:
            self.counts[text] += 1
            self.rising = self.falling = False
        elif len(self.counts) < MOST_TEXTS:
            self.counts[text] = 1
            self._add_text(text)
        else:
            self.beyond += 1
            self._add_text(text)

    def _add_text(self, text: str) -> None:
        """Look at a text that was not seen before."""
        number = number_of(text)
        if number is not None and math.isfinite(number):
            self.numbers += 1
            self.codes += bool(re.match(r"\s*-?0[0-9]", text))
            self.dates += _is_date(text)
            self._add_number(Decimal(text.strip()) if abs(number) > 1e-15 else Decimal(0))
        elif text.strip().lower() in BLANKS:
            self.blank += 1
        elif (day := day_of(text)) is not None:
            self.dates += 1
            self.days += 1
            if _is_date(text):  # not of the year 9999, which stands for never
                self.first_day = day if self.first_day is None else min(self.first_day, day)
                self.last_day = day if self.last_day is None else max(self.last_day, day)
        else:
            self.dates += _is_date(text)
            self.words += len(text.split())

    def _add_number(self, number: Decimal) -> None:
        self.low = number if self.low is None else min(self.low, number)
        self.high = number if self.high is None else max(self.high, number)
        if number:
            self.least = abs(number) if self.least is None else min(self.least, abs(number))
        self.decimals = max(self.decimals, _decimals(number))
        if self._last is not None:
            self.rising &= number > self._last
            self.falling &= number < self._last
        self._last = number

    @property
    def different(self) -> int:
        """The number of different texts, without those that stand for nothing."""
        return len(self.counts) - self.blank + self.beyond

    @property
    def filled(self) -> int:
        """The number of rows with a text that stands for something."""
        shown = sum(count for text, count in self.counts.items() if text.strip().lower() not in BLANKS)
        return shown + self.beyond

    @property
    def numeric(self) -> bool:
        return 0 < self.numbers >= self.different and self.codes == 0

    @property
    def of_days(self) -> bool:
        """Whether all texts are dates that a domain reads."""
        return self.first_day is not None and self.days == self.different

    @property
    def is_code(self) -> bool:
        """Whether numbers stand for names: by the column's name, two of them, or 1 to a few without a rare one."""
        if self.different <= 2 or _says(self.name, _CODES):
            return True
        first = self.different <= 6 and self.low == 1 and self.high == self.different and self.decimals == 0
        return first and min(self.counts.values()) >= max(3, SELDOM * self.filled)

    def values(self) -> list[str]:
        """Return the texts that a domain can list, the most frequent first."""
        return [text for text, _ in self.counts.most_common() if text not in (OTHER, MISSING, UNWRITABLE)]

    def lines(self, shows_all: bool, quantiles: bool) -> list[str]:
        """Return the section of this column, or a comment that says why there is none.

        Parameters
        ----------
        shows_all : bool
            Whether the sample is so large that hardly any row holds what it does not show.
        quantiles : bool
            Whether edges are quantiles of the sample.
        """
        if why := self._why_not():
            return _left_out(self.name, why)
        missing = not shows_all or self.empty > 0
        if self.of_days:
            return _section(_date_column(self, missing or self.blank > 0))
        if self.numeric and not self.is_code:
            column = _numeric(self, missing or self.blank > 0, quantiles)
            note = ["# edges are quantiles of the sample: they show it"] * (quantiles and column.edges is not None)
            return [*_section(column), *note]
        values = self.values()
        often = [text for text in values[:MOST_VALUES] if self.counts[text] >= SELDOM * self.filled]
        listed = tuple(sorted(values if len(values) <= SHORT else often, key=_numbers_first))
        seen_enough = shows_all and min(self.counts.values()) > 2
        other = len(values) > len(listed) or not (seen_enough or set(listed) <= {"true", "false"})
        note = [f"# the {len(listed)} most frequent of {len(values)} values in the sample"]
        section = Nominal(self.name, listed, self.numeric and len(values) > 2, other, missing)
        return [*_section(section), *note * (len(values) > len(listed)), *_spellings(listed)]

    def _why_not(self) -> str:
        """Return why this column is left out, or an empty text."""
        if self.copy_of is not None:
            return f"repeats {self.copy_of!r} in every row"
        if self.different == 0:
            return "is empty in every row of the sample"
        if self.dates == self.different and not self.of_days:
            return _why_no_dates()
        if self.different == 1 and not (self.empty or self.blank):
            return "has the same value in every row of the sample: it tells nothing"
        if self.of_days:
            return ""
        unique = self.different / self.filled
        if self.filled >= FEW_ROWS and _is_identifier(self, unique):
            if unique > 0.9:
                return "has a different value in nearly every row: an identifier"
            return (
                f"looks like an identifier: {self.different} values in {self.filled} rows; if it says whose row it is, "
                "draft again with it as the person"
            )
        if self.numeric or self.filled < FEW_ROWS:
            return ""
        listed = sum(n for _, n in self.counts.most_common(MOST_VALUES) if n >= SELDOM * self.filled)
        if self.different > SHORT and 2 * listed < self.filled:
            if self.words / self.different >= 3:
                return "holds free text"
            return f"has {self.different} different values in {self.filled} rows: too many to list"
        return ""


def _why_no_dates() -> str:
    """Return why a column of dates is left out: they can be read in several ways, or not at all."""
    return (
        "holds dates that are not written as YYYY-MM-DD: write them so, in the private table too, and draft again; or "
        "derive a number, such as a year"
    )


def _date_column(seen: _Seen, missing: bool) -> Date:
    """Return a column of dates with bounds of whole years; its step makes few cells of them."""
    assert seen.first_day is not None and seen.last_day is not None
    years = iso_text(seen.first_day)[:4], iso_text(seen.last_day)[:4]
    return Date(seen.name, f"{years[0]}-01-01", f"{years[1]}-12-31", missing=missing)


# --- what a column is -------------------------------------------------------------------------------------------------

_IDENTIFIERS = frozenset("id ids uid uuid guid pid ssn mrn seqn identifier caseid patientid personid userid".split())
_NUMBERED = frozenset("nr no number key index case".split())
_CODES = frozenset("zip zipcode postcode postal plz icd icd9 icd10 fips naics sic isco code codes".split())
_YEAR, _DAY = r"(?:1[6-9]|2[01])\d\d", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH, _WORD = r"(?:0?[1-9]|1[0-2])", r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_TIME = r"(?:[ t]\d{1,2}:\d{2}(?::\d{2}(?:[.]\d+)?)?(?: ?[ap]m)?(?: ?(?:z|utc|[+-]\d{2}:?\d{2}))?)?"
_DATES = (
    rf"{_YEAR}-{_MONTH}(?:-{_DAY}{_TIME})?",  # 2024-03-31, 2024-03
    rf"{_YEAR}([/.]){_MONTH}\1{_DAY}{_TIME}",  # 2024/03/31
    r"(?:1[89]|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])",  # 20240331
    rf"\d{{1,2}}([-/.])\d{{1,2}}\1(?:\d\d|{_YEAR}){_TIME}",  # 31.3.2024
    rf"{_MONTH}[-/]{_YEAR}",  # 03/2024
    rf"(?:{_DAY}[-. ]{{0,2}})?{_WORD}[-., ]{{0,2}}(?:{_DAY},? )?(?:\d\d|{_YEAR}){_TIME}",  # 31 March 2024, Mar-24
)
_dates = [re.compile(pattern, re.IGNORECASE) for pattern in _DATES]


def _is_date(text: str) -> bool:
    """Return whether a text looks like a date.

    >>> [_is_date(text) for text in ("2024-03-31", "31.3.24", "3/31/2024 10:15", "20240331", "Mar-2018")]
    [True, True, True, True, True]
    >>> [_is_date(text) for text in ("2024", "12.5", "1234567", "May", "a-b-c", "1-2", "12:30", "2024.5")]
    [False, False, False, False, False, False, False, False]
    """
    return len(text) <= 40 and any(date.fullmatch(text.strip()) for date in _dates)


def _says(name: str, words: frozenset[str]) -> bool:
    """Return whether the first or last word of a column's name is one of these.

    >>> [_says(name, _IDENTIFIERS) for name in ("patient_id", "PatientID", "caseId", "SEQN", "paid", "idle")]
    [True, True, True, True, False, False]
    """
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    split = re.findall(r"[a-z0-9]+", parts)
    return bool(split) and (split[0] in words or split[-1] in words)


def _is_identifier(column: _Seen, unique: float) -> bool:
    """Return whether a column names rows or people.

    Numbers that differ in nearly every row may be amounts. They are an identifier if their name says so, if they rise
    or fall from row to row, if none repeats though random numbers of this range would, or if they are long and of one
    length.
    """
    if column.different > FEW_ROWS and _says(column.name, _IDENTIFIERS):
        return True
    if unique < 0.9 or column.words / column.different >= 3:
        return False
    if not column.numeric or _says(column.name, _NUMBERED):
        return True
    if column.decimals or column.low is None or column.high is None or unique < 0.98:
        return False
    lengths = {len(text) for text in column.counts}
    # n numbers drawn at random from a range r are all different with a probability below exp(-n^2 / 2r).
    drawn = unique == 1 and column.filled**2 > 20 * (column.high - column.low)
    return column.rising or column.falling or drawn or (len(lengths) == 1 and min(lengths) >= 7)


def _numbers_first(text: str) -> tuple[bool, float, str]:
    number = number_of(text)
    return number is None, number or 0.0, text


def _decimals(number: Decimal) -> int:
    """Return the decimals needed to write a number.

    >>> _decimals(Decimal("1.50")), _decimals(Decimal("2e3"))
    (1, 0)
    """
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


# --- numbers: bounds and edges ----------------------------------------------------------------------------------------


def _numeric(seen: _Seen, missing: bool, quantiles: bool) -> Numeric:
    """Return a numeric column with round bounds.

    Its edges are even, or on a ladder that reaches down to the least number or some decades below the largest: the form
    that spreads the rows of the sample most evenly over its cells.
    """
    assert seen.low is not None and seen.high is not None and seen.least is not None
    low, high, least = Fraction(seen.low), Fraction(seen.high), Fraction(seen.least)
    step = _step(low, high, seen.decimals)
    even = _even(seen.name, low, high, step, missing)
    forms = [even]
    if even.bin_count < even.grid_size:  # else every number has a cell of its own
        reaches = [least, *(max(abs(low), abs(high)) / 10**decades for decades in (1, 2, 3, 4))]
        ladders = [_ladder(seen.name, low, high, reach, step, missing) for reach in reaches if reach >= least]
        forms += [form for form in ladders if form is not None]
    texts = [text for text in seen.counts if number_of(text) is not None]
    weights = np.array([seen.counts[text] for text in texts])
    if quantiles and even.bin_count < even.grid_size:
        numbers = np.array([float(text) for text in texts])
        return _at_quantiles(even, numbers, weights)
    return max(forms, key=lambda form: _entropy(form, texts, weights))


def _step(low: Fraction, high: Fraction, decimals: int) -> Fraction:
    """Return the resolution at which numbers are read: their decimals, but coarser where the grid would be too fine."""
    step = Fraction(1, 10 ** min(decimals, 15))
    # Floats hold whole numbers exactly; decimals far from zero they do not.
    reach = Fraction(0) if decimals == 0 else 2 * max(abs(low), abs(high))
    while 2 * (high - low) / step > FINEST_GRID or reach / step > FARTHEST:
        step *= 10
    return step


def _even(name: str, low: Fraction, high: Fraction, step: Fraction, missing: bool) -> Numeric:
    """Return cells of one round width, with bounds that are multiples of it.

    >>> wage = _even("wage", Fraction("3.25"), Fraction("187.4"), Fraction("0.01"), missing=False)
    >>> int(wage.low), int(wage.high), wage.bins
    (0, 190, 19)
    >>> _even("children", Fraction(0), Fraction(7), Fraction(1), missing=False).labels[-2:]
    ('[7, 8)', '[8, 8]')
    """
    if (span := (high - low) / step) <= MOST_CELLS:  # a cell for each number
        unit = step * next(unit for most, unit in ((5, 1), (10, 2), (MOST_CELLS, 5)) if span <= most)
        least, most = low // unit * unit, -(-high // unit) * unit
        least = Fraction(1) if least < 1 == step <= low else least  # from 1 on, not from 0
        return Numeric(name, least, most, step, bins=int((most - least) / step) + 1, missing=missing)
    widths = (mantissa * Fraction(10) ** power for power in range(-16, 400) for mantissa in (1, 2, 5))
    width = next(w for w in widths if w >= step and -(-high // w) - low // w <= MOST_CELLS)
    bottom, top = low // width * width, -(-high // width) * width
    if top == bottom:
        top += width
    return Numeric(name, bottom, top, step, bins=int((top - bottom) / width), missing=missing)


def _ladder(name: str, low: Fraction, high: Fraction, least: Fraction, step: Fraction, missing: bool) -> Numeric | None:
    """Return cells that widen with the size of numbers, on the finest ladder that has few enough rungs.

    Parameters
    ----------
    low, high : Fraction
        What the numbers lie between.
    least : Fraction
        Where the ladder begins, on each side of 0.

    >>> fee = _ladder("fee", Fraction(0), Fraction(87_000), Fraction(4), Fraction(1), missing=False)
    >>> [int(edge) for edge in (fee.low, *fee.edges, fee.high)]
    [0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]
    """
    for rungs in reversed(LADDERS):
        top, bottom = _rounded_up(high, rungs), -_rounded_up(-low, rungs)
        sizes = [rung for rung in _rungs(least, max(abs(top), abs(bottom)), rungs) if rung % step == 0]
        inner = sorted(
            {rung for rung in sizes if bottom < rung < top} | {-rung for rung in sizes if bottom < -rung < top}
        )
        if low < 0 < high:
            inner = sorted({*inner, Fraction(0)})
        if len(inner) < MOST_CELLS:
            try:
                return Numeric(name, bottom, top, step, edges=tuple(inner), missing=missing) if inner else None
            except DomainError:
                return None
    return None


def _rungs(least: Fraction, most: Fraction, rungs: Sequence[Fraction]) -> list[Fraction]:
    """Return the numbers of a ladder from just below `least` to `most`."""
    powers = range(_power(least), _power(most) + 1)
    numbers = [rung * Fraction(10) ** power for power in powers for rung in rungs]
    first = max((number for number in numbers if number <= least), default=numbers[0])
    return [number for number in numbers if first <= number <= most]


def _rounded_up(number: Fraction, rungs: Sequence[Fraction]) -> Fraction:
    """Return the next number of a ladder at or above this one; for a negative one, the next further from 0 is below it.

    >>> [int(_rounded_up(Fraction(n), LADDERS[2])) for n in (0, 7, 21, 50, -7)]
    [0, 10, 50, 50, -5]
    """
    if number == 0:
        return number
    size = abs(number)
    numbers = [rung * Fraction(10) ** power for power in (_power(size), _power(size) + 1) for rung in rungs]
    if number > 0:
        return min(rung for rung in numbers if rung >= size)
    return -max(rung for rung in numbers if rung <= size)


def _power(number: Fraction) -> int:
    """Return the power of ten at or below a positive number.

    >>> _power(Fraction(1000)), _power(Fraction(999)), _power(Fraction("0.01"))
    (3, 2, -2)
    """
    power = len(str(number.numerator)) - len(str(number.denominator))
    return power if Fraction(10) ** power <= number else power - 1


def _at_quantiles(even: Numeric, numbers: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Numeric:
    """Return a column with edges at quantiles of the sample, on the column's grid."""
    order = np.argsort(numbers)
    shares = np.cumsum(weights[order]) / weights.sum()
    cuts = numbers[order][np.searchsorted(shares, np.arange(1, MOST_CELLS) / MOST_CELLS)]
    points = sorted({even.value_at(round((Fraction(float(cut)) - even.low) / even.step)) for cut in cuts})
    inner = tuple(point for point in points if even.low < point < even.high)
    if not inner:
        return even
    return Numeric(even.name, even.low, even.high, even.step, edges=inner, missing=even.missing)


def _entropy(column: Numeric, texts: Sequence[str], weights: np.ndarray[Any, Any]) -> float:
    """Return how evenly rows are spread over the cells of a column, in nats."""
    codes = np.array([column.code(text) for text in texts])
    shares = np.bincount(codes, weights=weights) / weights.sum()
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())


# --- files ------------------------------------------------------------------------------------------------------------


def _parquet(path: Path) -> Iterator[Sequence[Any]]:
    """Yield the header and the rows of a Parquet file."""
    import duckdb

    path.open("rb").close()  # a missing file is an OSError, as it is for CSV
    try:
        with duckdb.connect() as connection:
            cursor = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            yield [str(entry[0]) for entry in cursor.description]
            narrow = [str(entry[1]) == "FLOAT" for entry in cursor.description]  # Python's floats have longer texts
            while rows := cursor.fetchmany(10_000):
                for row in rows:
                    yield [np.float32(v) if n and v is not None else v for v, n in zip(row, narrow, strict=True)]
    except duckdb.Error:
        raise DataError(f"'{path}' is not a Parquet file; give a CSV or Parquet sample or a .names codebook.") from None


# --- from a codebook --------------------------------------------------------------------------------------------------


def _entries(path: Path) -> list[str]:
    """Return the entries of a C4.5 codebook: each ends with a dot at the end of a line; `|` starts a comment."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"'{path}' is not UTF-8 text; save it as UTF-8.") from None
    if "\0" in text:
        raise DataError(f"'{path}' is not a text file; give a CSV or Parquet sample or a .names codebook.")
    plain = "\n".join(line.split("|")[0].rstrip() for line in text.split("\n"))
    # An entry may run over several lines; a line with a colon starts a new one even where a dot was forgotten.
    return [" ".join(entry.split()) for entry in re.split(r"\.(?:\n|$)|\n(?=[^\n:]*:)", plain) if entry.strip()]


def _codebook(name: str, entries: list[str], wishes: Wishes) -> str:
    if not entries:
        raise DataError(f"'{name}' is empty; a codebook lists the classes first, then name: values. for each column.")
    classes, *attributes = entries
    if ":" in classes or not attributes:
        raise DataError(f"'{name}' is not a C4.5 codebook: its first entry lists the classes, the others are columns.")
    columns: dict[str, str] = {}
    for entry in attributes:
        column, colon, values = (part.strip() for part in entry.partition(":"))
        if not (column and colon and values) or column in columns:
            raise DataError(
                f"'{name}' has the entry {entry[:40]!r}, which is not a new column; write 'name: continuous.' or "
                "'name: a, b, c.'"
            )
        columns[column] = values
    notes = []
    if classes in columns:  # the newer form: the first entry names the target, which is listed like a column
        target, classes = classes, columns.pop(classes)
    elif wishes.target is not None and wishes.target not in columns:
        target = wishes.target
    else:
        target = "class"
        while target in columns:
            target += "_"
        notes = [f"The codebook does not name its target, here {target!r}: draft again with its name as the target."]
    columns[target] = classes
    _check_name(list(columns), wishes.target, "target", f"codebook '{name}'")
    _check_name([c for c in columns if c != target], wishes.person, "person", f"codebook '{name}'")
    target = wishes.target or target
    try:
        sections = [_described(column, values) for column, values in columns.items() if column != target]
        sections.append(_section(Nominal(target, _list(columns[target]))))
    except DomainError as error:
        raise DataError(f"'{name}' cannot be drafted: {error}") from None
    settled = Wishes(target, wishes.person, wishes.rows_per_person)
    sections = [
        _left_out(column, "says whose row it is: the person, above") if column == wishes.person else lines
        for column, lines in zip([*(c for c in columns if c != target), target], sections, strict=True)
    ]
    header = _header("codebook", repr(name), settled, notes)
    return "\n".join([header, *("\n".join(lines) + "\n" for lines in sections)])


def _described(name: str, values: str) -> list[str]:
    """Return the lines of a codebook's column. It cannot show which other values there are."""
    first = _section(Nominal(name, ("-",)))[0]
    if values == "ignore":
        return _left_out(name, "is to be ignored, the codebook says")
    if values == "continuous":
        why = "is a number, and the codebook gives no bounds: fill them in, and remove the # before these lines"
        lines = [first, 'kind = "numeric"', "low =", "high =", "step = 1", "missing = true"]
        return [*_left_out(name, why), *(f"# {line}" for line in lines)]
    if re.fullmatch(r"discrete( \d+)?", values):
        why = "has values that the codebook does not list: fill them in, and remove the # before these lines"
        lines = [first, 'kind = "nominal"', "values = []", "other = true", "missing = true"]
        return [*_left_out(name, why), *(f"# {line}" for line in lines)]
    return _section(Nominal(name, _list(values), other=True, missing=True))


def _list(values: str) -> tuple[str, ...]:
    return tuple(value.strip().strip('"') for value in values.split(",") if value.strip())
