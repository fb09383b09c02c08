"""A first domain file, drafted from a public sample or codebook and meant to be reviewed line by line.

A domain must not be read from private rows: what it lists would be released
without noise. So a draft starts from something public: a sample that was
published, a synthetic file of the same form, or a C4.5/UCI `.names` codebook.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from privet.errors import DataError, DomainError
from privet.kernel import MISSING, OTHER, UNWRITABLE, Column, Domain, Nominal, Numeric, number_of, text_of

FEW_NUMBERS = 12  # up to here different numbers are drafted as a list of values
MANY_TEXTS = 1000  # from here on different texts are taken for an identifier
FINEST_GRID = 10**7  # steps from bound to bound, at most
FARTHEST = 10**9  # steps from zero, at most, where steps are decimals: floats must tell them apart
BLANKS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # what stands for no number among numbers


def draft(path: str | Path) -> str:
    """The text of a commented domain file, from a public CSV or Parquet sample or a `.names` codebook.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = Path(folder) / "sample.csv"
    ...     _ = sample.write_text("sex,age\\n" + "".join(f"{'fm'[age % 2]},{age}\\n" for age in range(18, 88)))
    ...     text = draft(sample)
    >>> print(text[text.index("[columns"):])
    [columns."sex"]
    kind = "nominal"
    values = ["f", "m"]
    # other = true    # a cell for any other value; without it such rows are left out
    <BLANKLINE>
    [columns."age"]
    kind = "numeric"
    # low and high must come from knowledge of the quantity, not from the sample: values beyond are clamped
    low = 10
    high = 90
    step = 1
    bins = 10
    <BLANKLINE>
    >>> Domain.parse(text).names
    ('sex', 'age')
    """
    path = Path(path)
    try:
        if path.suffix.lower() == ".names":
            return _codebook(path.name, _entries(path))
        rows = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _csv(path)
        return _sample(path.name, next(rows), rows)
    except OSError as error:
        raise DataError(f"cannot read '{path}' ({error.strerror}); check the path.") from None
    except UnicodeDecodeError:
        raise DataError(f"'{path}' is not UTF-8 text; save it as UTF-8, or as Parquet named .parquet.") from None


# --- the text ---------------------------------------------------------------------------------------------------------

_HEADER = """\
# DRAFT of a domain, made from the public {origin} {name}.
# Review it line by line before you use it: what is written here becomes public.
# A domain must never be made from the private rows: their values would be released without noise.
# rows and the other settings at the top are left empty on purpose: only you can say what may be public.

{line}
# rows =               # public order of magnitude, fill in or leave out
# max_rows =           # public upper bound, fill in or leave out
# rows_per_person =    # at most this many rows belong to one person; 1 where left out
"""
_OTHER_HINT = "# other = true    # a cell for any other value; without it such rows are left out"
_MISSING_HINT = "# missing = true    # a cell for missing values; without it such rows are left out"
_BOUNDS_HINT = "# low and high must come from knowledge of the quantity, not from the sample: values beyond are clamped"
_FEW_HINT = '# if it is a quantity: kind = "numeric" with low, high and step in place of values'


def _header(name: str, origin: str, target: str | None) -> str:
    if target is None:
        line = "# target =             # the column to predict, fill in or leave out"
    else:
        quoted = _section(Nominal(target, ("-",)))[0].removeprefix("[columns.").removesuffix("]")
        line = f"target = {quoted}    # codebooks often leave it unnamed: rename it here and in its section"
    return _HEADER.format(name=repr(name), origin=origin, line=line)


def _section(column: Column) -> list[str]:
    """The lines of a column in a domain file."""
    return Domain((column,)).to_toml().split("\n\n", 1)[1].rstrip("\n").split("\n")


# --- from a sample ----------------------------------------------------------------------------------------------------


def _sample(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    seen = [_Seen(column) for column in header]
    count = 0
    for row in rows:
        count += 1
        for column, value in zip(seen, row, strict=True):
            column.add(value)
    if count == 0:
        raise DataError(f"'{name}' has a header but no rows; a draft needs a sample of public rows.")
    sections = [column.lines() for column in seen]
    if not any(lines[0].startswith("[") for lines in sections):
        raise DataError(f"'{name}' has no column that a domain can describe; write the domain file by hand.")
    return "\n".join([_header(name, "sample", None), *("\n".join(lines) + "\n" for lines in sections)])


@dataclass
class _Seen:
    """What a sample showed of one column, in bounded memory."""

    name: str
    texts: set[str] = field(default_factory=set)
    empty: bool = False
    blank: bool = False  # something that stands for no number, such as "?"
    numeric: bool = True
    low: Decimal | None = None
    high: Decimal | None = None
    decimals: int = 0

    def add(self, value: object) -> None:
        text = text_of(value)
        if text is None or text == "":
            self.empty = True
            return
        if len(self.texts) <= MANY_TEXTS:
            self.texts.add(text)
        if not self.numeric:
            return
        if text.strip().lower() in BLANKS:
            self.blank = True
            return
        number = number_of(value)
        self.numeric = number is not None and not isinstance(value, bool)
        if number is not None and self.numeric and math.isfinite(number):
            exact = Decimal(str(value).strip()) if abs(number) > 1e-15 else Decimal(0)
            self.low = exact if self.low is None else min(self.low, exact)
            self.high = exact if self.high is None else max(self.high, exact)
            self.decimals = max(self.decimals, _decimals(exact))

    def lines(self) -> list[str]:
        """The lines of this column: a section that a domain accepts, or a comment that says why there is none."""
        try:
            if self.numeric and len(self.texts) > FEW_NUMBERS and self.low is not None and self.high is not None:
                lines = _section(_numeric(self.name, self.low, self.high, self.decimals, self.empty or self.blank))
                return [*lines[:2], _BOUNDS_HINT, *lines[2:]]
            if len(self.texts) > MANY_TEXTS:
                return [f"# column {self.name!r} is left out: more than {MANY_TEXTS} texts, probably an identifier."]
            values = tuple(sorted(self.texts - {OTHER, MISSING, UNWRITABLE}, key=_numbers_first))
            few = [_FEW_HINT] * (self.numeric and self.low is not None)
            return [*_section(Nominal(self.name, values, missing=self.empty)), _OTHER_HINT, *few]
        except DomainError as error:
            return [f"# column {self.name!r} is left out: {str(error)!r}"]


def _numbers_first(text: str) -> tuple[bool, float, str]:
    number = number_of(text)
    return number is None, number or 0.0, text


def _decimals(number: Decimal) -> int:
    """The decimals needed to write a number.

    >>> _decimals(Decimal("1.50")), _decimals(Decimal("2e3"))
    (1, 0)
    """
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _numeric(name: str, low: Decimal, high: Decimal, decimals: int, missing: bool) -> Numeric:
    """A numeric column with its bounds rounded outwards to tidy numbers.

    >>> column = _numeric("wage", Decimal("3.25"), Decimal("187.4"), 2, missing=False)
    >>> column.low, column.high, column.step
    (Fraction(0, 1), Fraction(200, 1), Fraction(1, 100))
    """
    unit = Fraction(10) ** (high - low).adjusted()
    bottom, top = Fraction(low) // unit * unit, -(-Fraction(high) // unit) * unit
    step = Fraction(1, 10 ** min(decimals, 15))
    # Floats hold whole numbers exactly; decimals far from zero they do not.
    reach = Fraction(0) if decimals == 0 else max(abs(bottom), abs(top))
    while (top - bottom) / step > FINEST_GRID or reach / step > FARTHEST:
        step *= 10
    return Numeric(name, bottom, top, step, bins=10, missing=missing)


def _csv(path: Path) -> Iterator[Sequence[str]]:
    """The header and the rows of a CSV file, as texts."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = _checked_header(path, next(reader, []))
            yield header
            for row in reader:
                if len(row) == len(header):
                    yield row
                elif row:  # not just a blank line
                    raise DataError(
                        f"line {reader.line_num} of '{path}' has {len(row)} cells, the header names {len(header)}; "
                        "repair the line."
                    )
        except csv.Error:
            raise DataError(f"line {reader.line_num} of '{path}' is not CSV; check its quotes.") from None


def _checked_header(path: Path, header: list[str]) -> list[str]:
    if not any(name.strip() for name in header):
        raise DataError(f"'{path}' is empty or has an empty first line; its first line must name the columns.")
    if any("\0" in name for name in header):
        raise DataError(f"'{path}' is not a CSV file; give a CSV or Parquet sample or a .names codebook.")
    if len(header) == 1 and re.search(r"[;\t|]", header[0]):
        raise DataError(f"'{path}' does not separate its cells by commas; save it as comma-separated CSV.")
    odd = [name for name in header if not name.strip() or number_of(name) is not None or header.count(name) > 1]
    if odd:
        raise DataError(f"'{path}' has no header: its first line must name every column once, {odd[0]!r} is no name.")
    return header


def _parquet(path: Path) -> Iterator[Sequence[Any]]:
    """The header and the rows of a Parquet file."""
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
    """The entries of a C4.5 codebook: each ends with a dot at the end of a line; `|` starts a comment."""
    text = path.read_text(encoding="utf-8-sig")
    if "\0" in text:
        raise DataError(f"'{path}' is not a text file; give a CSV or Parquet sample or a .names codebook.")
    plain = "\n".join(line.split("|")[0].rstrip() for line in text.split("\n"))
    # An entry may run over several lines; a line with a colon starts a new one even where a dot was forgotten.
    return [" ".join(entry.split()) for entry in re.split(r"\.(?:\n|$)|\n(?=[^\n:]*:)", plain) if entry.strip()]


def _codebook(name: str, entries: list[str]) -> str:
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
    target = "class"
    if classes in columns:  # the newer form: the first entry names the target, which is listed like a column
        target, classes = classes, columns.pop(classes)
    while target in columns:
        target += "_"
    try:
        sections = [_described(column, values) for column, values in columns.items()]
        sections.append(_section(Nominal(target, _list(classes))))
    except DomainError as error:
        raise DataError(f"'{name}' cannot be drafted: {error}") from None
    return "\n".join([_header(name, "codebook", target), *("\n".join(lines) + "\n" for lines in sections)])


def _described(name: str, values: str) -> list[str]:
    """The lines of a codebook's column."""
    if values == "ignore":
        return [f"# column {name!r} is left out: the codebook says to ignore it."]
    if values == "continuous":
        return [
            _section(Nominal(name, ("-",)))[0],
            'kind = "numeric"',
            "# low =     # the codebook gives no bounds: fill in low, high and step, the draft does not load without",
            "# high =",
            "# step =    # the resolution at which values are read, say 1",
            _MISSING_HINT,
        ]
    if re.fullmatch(r"discrete( \d+)?", values):
        return [
            _section(Nominal(name, ("-",)))[0],
            'kind = "nominal"',
            "# values = []    # the codebook does not list them: fill in, the draft does not load without",
            _OTHER_HINT,
            _MISSING_HINT,
        ]
    return [*_section(Nominal(name, _list(values))), _OTHER_HINT, _MISSING_HINT]


def _list(values: str) -> tuple[str, ...]:
    return tuple(value.strip().strip('"') for value in values.split(",") if value.strip())
