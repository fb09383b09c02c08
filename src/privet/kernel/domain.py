"""The public domain of a table: which columns exist and which values they may take.

A domain is declared by the data owner in a small TOML file, never read from
private rows. Columns it does not declare do not exist.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import DomainError, QuestionError, UndeclaredDomain, did_you_mean
from privet.kernel import limits
from privet.kernel.column import Column, Nominal, Numeric, Scalar
from privet.kernel.date import Date
from privet.kernel.limits import (
    Json,
    clean,
    digest,
    fraction_of,
    quoted,
    read_text,
    shown,
    whole_of,
)

# More parts than this, joined by dots, name no setting: tomllib copies all parts for each of them.
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+[.][ \t]*+){20}""")

_VERSION = 1  # of the JSON form of a domain


@dataclass(frozen=True)
class Domain:
    """The public description of a table.

    Parameters
    ----------
    columns : tuple of Nominal, Numeric and Date
    target : str, optional
        The column that models predict.
    rows : int, optional
        About how many rows the table has: a public order of magnitude.
    max_rows : int, optional
        A public upper bound of the number of rows.
    rows_per_person : int, default 1
        How many rows of a person count at most.
    person : str, optional
        The column that says whose row it is. It is no attribute and in no answer: surplus rows of a person are left
        out by it (`person.py`), so that `rows_per_person` holds whatever the data. Without it, the promise holds for
        those who have no more rows than that.
    notes : tuple of str, default ()
        Comments at the top of the domain file, such as why a draft left columns out. They mean nothing: equal domains
        may have different notes.

    Raises
    ------
    DomainError
        The declaration contradicts itself, or is too large.

    >>> domain = Domain.parse('''
    ... target = "income"
    ... max_rows = 50000
    ... [columns.age]
    ... kind = "numeric"
    ... low = 17
    ... high = 90
    ... bins = 4
    ... [columns.income]
    ... kind = "nominal"
    ... values = ["<=50K", ">50K"]
    ... ''')
    >>> print(domain)
    target income, at most 50000 rows, 1 row per person
    column  kind     cells  values
    age     numeric  4      17 to 90, step 1: [17, 36) [36, 54) [54, 72) [72, 90]
    income  nominal  2      <=50K, >50K
    >>> Domain.parse(domain.to_toml()) == domain
    True
    """

    columns: tuple[Column, ...]
    target: str | None = None
    rows: int | None = None
    max_rows: int | None = None
    rows_per_person: int = 1
    person: str | None = None
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    # Drafting a domain from public rows is no task of the kernel: `privet` sets this to `privet.draft_domain`.
    draft: ClassVar[Callable[..., Domain]]

    def __post_init__(self) -> None:
        if isinstance(self.columns, str | Nominal | Numeric) or not isinstance(self.columns, Iterable):
            raise DomainError(f"columns are a list of privet.Nominal and privet.Numeric, not {quoted(self.columns)}.")
        object.__setattr__(self, "columns", tuple(self.columns))
        self._check_kinds(self.columns)
        object.__setattr__(self, "_by_name", {column.name: column for column in self.columns})
        if not self.columns:
            raise DomainError("the domain declares no columns; add a [columns.NAME] section for each.")
        self._check_sizes()
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise DomainError(f"the domain declares the column '{twice[0]}' twice; keep one of them.")
        if self.target is not None:
            target = self._by_name.get(self.target)
            if target is None:
                meant = did_you_mean(self.target, self.names)
                raise DomainError(f"the target '{self.target}' is not among the declared columns{meant}; declare it.")
            if not isinstance(target, Nominal):
                kind = "numeric" if target.kind == "numeric" else "a date"
                raise DomainError(f"the target '{self.target}' is {kind}; a target is nominal: list its classes.")
            if target.other or target.missing:
                raise DomainError(f"the target '{self.target}' may not have other or missing cells; list its classes.")
        if self.person is not None:
            if not isinstance(self.person, str) or not 0 < len(self.person) <= limits.LONGEST_TEXT:
                raise DomainError(f"person is the name of a column, not {quoted(self.person)}.")
            if self.person in self._by_name:
                raise DomainError(
                    f"the person column '{shown(self.person)}' is declared as a column, too; take its section out: "
                    "who a row belongs to is no attribute."
                )
        for name, least, most in (
            ("rows", 0, limits.MOST_ROWS),
            ("max_rows", 1, limits.MOST_ROWS),
            ("rows_per_person", 1, limits.MOST_ROWS_PER_PERSON),
        ):
            value = getattr(self, name)
            if value is not None and whole_of(value, least, most) is None:
                raise DomainError(
                    f"{name} = {quoted(value)} is not possible; it is a whole number, at least {least} and at most "
                    f"{most}."
                )
        if self.rows is not None and self.max_rows is not None and self.rows > self.max_rows:
            raise DomainError(f"rows = {self.rows} is above max_rows = {self.max_rows}; one of them is wrong.")

    @staticmethod
    def _check_kinds(columns: Iterable[object]) -> None:
        """Refuse what is no column."""
        for column in columns:
            if not isinstance(column, Nominal | Numeric):
                raise DomainError(f"a column is a privet.Nominal or privet.Numeric, not {quoted(column)}.")

    def _check_sizes(self) -> None:
        """Refuse more columns, cells or letters than can be held and shown."""
        if len(self.columns) > limits.MOST_COLUMNS:
            most = f"at most {limits.MOST_COLUMNS} are possible"
            raise DomainError(f"the domain declares {len(self.columns)} columns, {most}.")
        for column in self.columns:
            values = column.values if isinstance(column, Nominal) else ()
            if not isinstance(column.name, str) or len(column.name) > limits.LONGEST_TEXT:
                longest = f"a text of at most {limits.LONGEST_TEXT} characters"
                raise DomainError(f"the name of a column is {longest}, not {quoted(column.name)}.")
            if any(isinstance(value, str) and len(value) > limits.LONGEST_TEXT for value in values):
                raise DomainError(
                    f"column '{shown(column.name)}' declares a value of more than {limits.LONGEST_TEXT} characters; "
                    "shorten it, or leave the column out."
                )
        cells = sum(column.size for column in self.columns)
        if cells > limits.MOST_CELLS:
            raise DomainError(
                f"the columns of the domain have {cells} cells together, at most {limits.MOST_CELLS} are possible; "
                "declare fewer values or coarser bins."
            )

    def __getitem__(self, name: str) -> Column:
        column = self._by_name.get(name) if isinstance(name, str) else None
        if column is None:
            raise UndeclaredDomain(
                f"column {quoted(name)} has no declared domain{did_you_mean(name, self.names)}. List its values or "
                "bounds in the domain file; reading them from the table would reveal data without a charge.",
                column=name,
            )
        return column

    def with_bins_of(self, other: Domain) -> Domain:
        """Return this domain with the bins that numeric columns of the same name have in another."""
        pairs = [(column, other._by_name.get(column.name)) for column in self.columns]
        columns = [
            replace(column, bins=like.bins, edges=like.edges)
            if isinstance(column, Numeric) and isinstance(like, Numeric) and column.grid_is_of(like)
            else column
            for column, like in pairs
        ]
        return replace(self, columns=tuple(columns))

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def numeric(self, name: str) -> Numeric:
        """Return a numeric column.

        Raises
        ------
        UndeclaredDomain, QuestionError
            The column is not declared, or is nominal.
        """
        column = self[name]
        if not isinstance(column, Numeric):
            raise QuestionError(f"column '{name}' is nominal; sums, means, quantiles and thresholds need numbers.")
        return column

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def stored_names(self) -> tuple[str, ...]:
        """The columns that are read where the rows are: the declared ones, and the person column if there is one."""
        return self.names if self.person is None else (*self.names, self.person)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns a model may look at: all but the target."""
        return tuple(name for name in self.names if name != self.target)

    @cached_property
    def branches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many children a split of each attribute has, by cells and at a threshold; in the last place 0, for none.

        Computed once: a model may have thousands of trees over thousands of columns.
        """
        columns = [self[name] for name in self.attributes]
        cells, sides = [column.size for column in columns], [2 + column.missing for column in columns]
        return np.array([*cells, 0], dtype=np.int64), np.array([*sides, 0], dtype=np.int64)

    @property
    def target_column(self) -> Nominal:
        if self.target is None:
            raise UndeclaredDomain('the domain declares no target; add target = "COLUMN" to the domain file.')
        column = self[self.target]
        assert isinstance(column, Nominal)
        return column

    @property
    def classes(self) -> tuple[Scalar, ...]:
        return self.target_column.values

    # -- edits: each returns a new domain, and raises what a new declaration would -------------

    def with_target(self, target: str | None) -> Domain:
        """Return the same domain with another target.

        Parameters
        ----------
        target : str or None
            A declared column that is nominal; None for no target.

        Raises
        ------
        DomainError
            There is no such column, or it cannot be a target.
        """
        return replace(self, target=target)

    def with_column(self, *columns: Column) -> Domain:
        """Return the same domain with more columns; one that has the name of a declared column takes its place.

        Parameters
        ----------
        *columns : Nominal or Numeric

        Raises
        ------
        DomainError
            A column is none, or cannot be declared here.

        >>> domain = Domain((Nominal("ill", ["no", "yes"]), Numeric("age", 0, 99)), target="ill")
        >>> domain.with_column(Numeric("age", 18, 90, bins=6), Nominal("sex", ["f", "m"])).without("ill")
        Traceback (most recent call last):
        privet.errors.DomainError: 'ill' is the target; name another one by with_target first.
        >>> domain.with_column(Nominal("sex", ["f", "m"])).with_person("id", rows_per_person=5).stored_names
        ('ill', 'age', 'sex', 'id')
        """
        self._check_kinds(columns)
        return replace(self, columns=tuple({**self._by_name, **{column.name: column for column in columns}}.values()))

    def without(self, *names: str) -> Domain:
        """Return the same domain without some columns.

        Parameters
        ----------
        *names : str
            Declared columns; not the target.

        Raises
        ------
        DomainError
            There is no such column, it is the target, or none would be left.
        """
        for name in names:
            if name not in self.names:
                raise DomainError(f"the domain has no column {quoted(name)}{did_you_mean(name, self.names)}.")
            if name == self.target:
                raise DomainError(f"'{shown(name)}' is the target; name another one by with_target first.")
        return replace(self, columns=tuple(column for column in self.columns if column.name not in names))

    def with_person(self, person: str | None, rows_per_person: int | None = None) -> Domain:
        """Return the same domain with another column that says whose row it is; a declaration of that column goes.

        Parameters
        ----------
        person : str or None
            The column; None for no such column.
        rows_per_person : int, optional
            How many rows of a person count at most; as before if left out.

        Raises
        ------
        DomainError
            It cannot be the person column, or the number is not possible.
        """
        bound = self.rows_per_person if rows_per_person is None else rows_per_person
        rest = self.without(person) if person in self.names and person is not None else self
        return replace(rest, person=person, rows_per_person=bound)

    def with_rows(self, rows: int | None = None, max_rows: int | None = None) -> Domain:
        """Return the same domain with other public numbers of rows.

        Parameters
        ----------
        rows : int, optional
            About how many rows there are; as before if left out.
        max_rows : int, optional
            An upper bound; as before if left out.

        Raises
        ------
        DomainError
            A number is not possible, or `rows` is above `max_rows`.
        """
        rows, max_rows = self.rows if rows is None else rows, self.max_rows if max_rows is None else max_rows
        return replace(self, rows=rows, max_rows=max_rows)

    # -- files ------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Domain:
        """Read a domain file.

        Parameters
        ----------
        path : str or Path
            A TOML file in UTF-8.

        Returns
        -------
        Domain

        Raises
        ------
        DomainError
            The file cannot be read, or declares no possible domain.
        """
        where = shown(str(path), limits.LONGEST_TEXT)
        try:
            text = read_text(path, limits.LONGEST_DOMAIN, "utf-8-sig")
        except UnicodeDecodeError:
            raise DomainError(f"the domain file '{where}' is not UTF-8 text; save it as UTF-8.") from None
        except OSError as error:
            raise DomainError(f"cannot read the domain file '{where}' ({error.strerror}); check the path.") from None
        if text is None:
            raise DomainError(
                f"the domain file '{where}' has more than {limits.LONGEST_DOMAIN} characters; shorten it."
            )
        if str(path).lower().endswith(".csv"):
            raise DomainError(f"'{where}' is a table, not the domain file that describes it; name the .toml file.")
        try:
            return cls.parse(text)
        except DomainError as error:
            raise DomainError(f"{where}: {error}") from None

    @classmethod
    def parse(cls, text: str) -> Domain:
        """Read the text of a domain file; raise a DomainError as `load` does."""
        if len(text) > limits.LONGEST_DOMAIN:
            raise DomainError(f"the domain has more than {limits.LONGEST_DOMAIN} characters; declare fewer values.")
        if _DOTTED.search(text):
            raise DomainError("the domain joins more than 20 words by dots, which names no setting; mend it.")
        try:
            content = tomllib.loads(text, parse_float=_decimal)
        except ValueError as error:
            quotes = '; names with spaces or signs stand in quotes, as [columns."blood group"]'
            hint = quotes * ("declaration" in str(error) or "after a key" in str(error))
            hint = "; for a file use Domain.load" if text.endswith(".toml") and "\n" not in text else hint
            raise DomainError(f"the domain is not valid TOML: {shown(str(error), 200)}{hint}.") from None
        except RecursionError:
            raise DomainError("the domain is not valid TOML: its lists stand too deep in one another.") from None
        notes = takewhile(lambda line: line.startswith("#"), text.splitlines())
        return replace(cls.from_dict(content), notes=tuple(line[1:].strip() for line in notes))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Domain:
        """Build a domain from the content of a domain file; raise a DomainError as `load` does."""
        _only(content, ("target", "rows", "max_rows", "rows_per_person", "person", "columns"), "the domain")
        columns = content.get("columns", {})
        if not isinstance(columns, Mapping) or not all(isinstance(entry, Mapping) for entry in columns.values()):
            raise DomainError("columns must be sections like [columns.age].")
        target, person = content.get("target"), content.get("person")
        for name, text in (("target", target), ("person", person)):
            if text is not None and not isinstance(text, str):
                raise DomainError(f"{name} must be a text.")
        numbers = {name: _whole(content, name) for name in ("rows", "max_rows", "rows_per_person") if name in content}
        declared = tuple(_column(str(name), entry) for name, entry in columns.items())
        return cls(declared, target, person=person, notes=(), **numbers)

    def save(self, path: str | Path) -> None:
        """Write a domain file; loading it gives an equal domain."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def to_json(self) -> Json:
        """Return the canonical JSON form: what the domain means, however its file is written."""
        columns = [{"name": column.name, "ordered": column.ordered, "cells": column.cells()} for column in self.columns]
        return {
            "domain": columns,
            "version": _VERSION,
            "target": self.target,
            "rows": self.rows,
            "max_rows": self.max_rows,
            "rows_per_person": self.rows_per_person,
            **({} if self.person is None else {"person": self.person}),
        }

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the JSON form: the same for the same domain, in every process."""
        return digest(self.to_json())

    def to_toml(self) -> str:
        """Return the text of a domain file, which begins with the notes; parsing it gives an equal domain."""
        lines = [*(f"# {clean(note)}".rstrip() for note in self.notes), *[""] * bool(self.notes)]
        lines += [f"target = {_toml(self.target)}"] if self.target is not None else []
        lines += [f"{name} = {value}" for name in ("rows", "max_rows") if (value := getattr(self, name)) is not None]
        lines += [f"person = {_toml(self.person)}"] if self.person is not None else []
        lines += [f"rows_per_person = {self.rows_per_person}"]
        for column in self.columns:
            lines += ["", f"[columns.{_toml(column.name)}]"]
            if isinstance(column, Nominal):
                lines += ['kind = "nominal"', f"values = {_toml(column.values)}"]
                lines += [f"{flag} = true" for flag in ("ordered", "other", "missing") if getattr(column, flag)]
                continue
            lines += [f'kind = "{column.kind}"', *(f"{name} = {value}" for name, value in _settings(column).items())]
            lines += ["missing = true"] * column.missing
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        people = f"{self.rows_per_person} row{'s' * (self.rows_per_person > 1)} per person"
        people += f" counted, by '{self.person}'" if self.person is not None else ""
        facts = [f"target {self.target}" if self.target else "no target"]
        facts += [f"about {self.rows} rows"] * (self.rows is not None)
        facts += [f"at most {self.max_rows} rows"] * (self.max_rows is not None)
        table = [("column", "kind", "cells", "values")]
        for column in self.columns:
            if isinstance(column, Nominal):
                kind, values = "nominal", ", ".join(column.labels)
            else:
                step = f", step {written}" if (written := column.declared_step()) is not None else ""
                labels = (", " if isinstance(column, Date) else " ").join(column.labels)
                kind, values = column.kind, f"{column.text(column.low)} to {column.text(column.high)}{step}: {labels}"
            table.append((column.name, kind, str(column.size), values if len(values) <= 100 else values[:97] + "..."))
        widths = [max(len(row[i]) for row in table) for i in range(3)]
        lines = [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}" for row in table]
        return "\n".join([", ".join([*facts, people]), *lines])


def _only(content: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in content:
        if name not in known:
            if where != "the domain" and name in ("target", "person", "rows", "max_rows", "rows_per_person"):
                raise DomainError(
                    f"{name} stands in the section of {where}; it belongs at the top of the file, before the first "
                    "[columns.NAME]."
                )
            meant = did_you_mean(name, known)
            raise DomainError(f"{where} has an unknown setting {quoted(name)}{meant}; known are {', '.join(known)}.")


def _column(name: str, entry: Mapping[str, Any]) -> Column:
    kind = entry.get("kind")
    where = f"column '{shown(name)}'"
    if kind == "nominal":
        _only(entry, ("kind", "values", "ordered", "other", "missing"), where)
        values = entry.get("values")
        if not isinstance(values, list) or not all(isinstance(v, str | int | float | bool | Decimal) for v in values):
            raise DomainError(f"{where} needs values = [...], a list of texts, numbers or true/false.")
        plain = tuple(float(value) if isinstance(value, Decimal) else value for value in values)
        return Nominal(name, plain, *(_flag(entry, flag, where) for flag in ("ordered", "other", "missing")))
    if kind in ("numeric", "date"):
        return _numeric(name, entry, where)
    raise DomainError(f'{where} needs kind = "nominal", kind = "numeric" or kind = "date".')


def _numeric(name: str, entry: Mapping[str, Any], where: str) -> Numeric:
    """Return a column of numbers or dates."""
    _only(entry, ("kind", "low", "high", "step", "bins", "edges", "missing"), where)
    lacking = [bound for bound in ("low", "high") if bound not in entry]
    if lacking:
        raise DomainError(f"{where} needs {lacking[0]} = ..., a public bound; values beyond it are clamped to it.")
    edges = entry.get("edges")
    if edges is not None and not isinstance(edges, list):
        raise DomainError(
            f"{where} needs edges = [...], a rising list of {entry['kind'].replace('numeric', 'number')}s."
        )
    bins = _whole(entry, "bins", f"{where}: ") if "bins" in entry else None
    missing = _flag(entry, "missing", where)
    if entry["kind"] == "date":
        return Date(name, entry["low"], entry["high"], entry.get("step"), edges, bins, missing)
    low, high = _fraction(entry["low"], where, "low"), _fraction(entry["high"], where, "high")
    points = None if edges is None else tuple(_fraction(edge, where, "edges") for edge in edges)
    step = _fraction(entry["step"], where, "step") if "step" in entry else None
    return Numeric(name, low, high, step, points, bins, missing)


def _settings(column: Numeric) -> dict[str, str]:
    """Return the bounds and cells of a column as a domain file writes them."""
    settings = {"low": column.text(column.low), "high": column.text(column.high)}
    step = column.declared_step()
    if step is not None:
        settings["step"] = step if column.kind == "numeric" else _toml(step)
    if column.bins is not None:
        settings["bins"] = str(column.bins)
    if column.edges is not None and (step is None or column.kind == "numeric"):
        settings["edges"] = f"[{', '.join(column.text(edge) for edge in column.edges)}]"
    return settings


def _fraction(value: object, where: str, name: str) -> Fraction:
    number = None if isinstance(value, str) else fraction_of(value)
    if number is None:
        raise DomainError(f"{where} needs a finite number for {name}, of at most {limits.LONGEST_DECLARED} characters.")
    if len(str(value)) > limits.LONGEST_DECLARED or (number and not Fraction(1, 10**15) <= abs(number) <= 10**18):
        raise DomainError(
            f"{where} has a number for {name} of more than {limits.LONGEST_DECLARED} characters, or not between 1e-15 "
            "and 1e18 in size; round it, or use another unit."
        )
    return number


def _decimal(text: str) -> Decimal:
    """A number of a domain file; one whose exponent has more digits than a Decimal can hold is a ValueError."""
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError("a number has an exponent of too many digits") from None


def _flag(entry: Mapping[str, Any], name: str, where: str) -> bool:
    value = entry.get(name, False)
    if not isinstance(value, bool):
        raise DomainError(f"{where} needs {name} = true or {name} = false.")
    return value


def _whole(content: Mapping[str, Any], name: str, where: str = "") -> int:
    value = whole_of(content[name], -limits.MOST_ROWS, limits.MOST_ROWS)
    if value is None:
        raise DomainError(f"{where}{name} must be a whole number, at most {limits.MOST_ROWS}.")
    return value


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        escaped = "".join(
            f"\\u{ord(char):04x}" if ord(char) < 32 or ord(char) == 127 else "\\" + char if char in '"\\' else char
            for char in value
        )
        return f'"{escaped}"'
    return str(value)
