"""Declarations of domains: their files, edits of them, and how they are printed.

The kernel checks what is declared and codes rows by it. How a declaration is read, changed and written is not its
task: `privet` adds these functions to `Domain` as methods. Nothing here sees a row.

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

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import takewhile
from pathlib import Path
from typing import Any

from privet.errors import DomainError, did_you_mean
from privet.kernel import (
    LONGEST_DECLARED,
    LONGEST_DOMAIN,
    LONGEST_TEXT,
    MOST_ROWS,
    Column,
    Date,
    Domain,
    Nominal,
    Numeric,
    fraction_of,
    whole_of,
)
from privet.text import clean, quoted, read_text, shown

# More parts than this, joined by dots, name no setting: tomllib copies all parts for each of them.
_DOTTED = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+[.][ \t]*+){20}""")


# -- edits: each returns a new domain, and raises what a new declaration would ----------------------


def with_target(domain: Domain, target: str | None) -> Domain:
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
    return replace(domain, target=target)


def with_column(domain: Domain, *columns: Column) -> Domain:
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
    Domain.check_kinds(columns)
    by_name = {column.name: column for column in (*domain.columns, *columns)}
    return replace(domain, columns=tuple(by_name.values()))


def without(domain: Domain, *names: str) -> Domain:
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
        if name not in domain.names:
            raise DomainError(f"the domain has no column {quoted(name)}{did_you_mean(name, domain.names)}.")
        if name == domain.target:
            raise DomainError(f"'{shown(name)}' is the target; name another one by with_target first.")
    return replace(domain, columns=tuple(column for column in domain.columns if column.name not in names))


def with_person(domain: Domain, person: str | None, rows_per_person: int | None = None) -> Domain:
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
    bound = domain.rows_per_person if rows_per_person is None else rows_per_person
    rest = without(domain, person) if person in domain.names and person is not None else domain
    return replace(rest, person=person, rows_per_person=bound)


def with_rows(domain: Domain, rows: int | None = None, max_rows: int | None = None) -> Domain:
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
    rows, max_rows = domain.rows if rows is None else rows, domain.max_rows if max_rows is None else max_rows
    return replace(domain, rows=rows, max_rows=max_rows)


# -- files ------------------------------------------------------------------------------


def load(path: str | Path) -> Domain:
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
    where = shown(str(path), LONGEST_TEXT)
    try:
        text = read_text(path, LONGEST_DOMAIN, "utf-8-sig")
    except UnicodeDecodeError:
        raise DomainError(f"the domain file '{where}' is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise DomainError(f"cannot read the domain file '{where}' ({error.strerror}); check the path.") from None
    if text is None:
        raise DomainError(f"the domain file '{where}' has more than {LONGEST_DOMAIN} characters; shorten it.")
    if str(path).lower().endswith(".csv"):
        raise DomainError(f"'{where}' is a table, not the domain file that describes it; name the .toml file.")
    try:
        return parse(text)
    except DomainError as error:
        raise DomainError(f"{where}: {error}") from None


def parse(text: str) -> Domain:
    """Read the text of a domain file; raise a DomainError as `load` does."""
    if len(text) > LONGEST_DOMAIN:
        raise DomainError(f"the domain has more than {LONGEST_DOMAIN} characters; declare fewer values.")
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
    return replace(from_dict(content), notes=tuple(line[1:].strip() for line in notes))


def from_dict(content: Mapping[str, Any]) -> Domain:
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
    return Domain(declared, target, person=person, notes=(), **numbers)


def save(domain: Domain, path: str | Path) -> None:
    """Write a domain file; loading it gives an equal domain."""
    Path(path).write_text(to_toml(domain), encoding="utf-8")


def to_toml(domain: Domain) -> str:
    """Return the text of a domain file, which begins with the notes; parsing it gives an equal domain."""
    lines = [*(f"# {clean(note)}".rstrip() for note in domain.notes), *[""] * bool(domain.notes)]
    lines += [f"target = {_toml(domain.target)}"] if domain.target is not None else []
    lines += [f"{name} = {value}" for name in ("rows", "max_rows") if (value := getattr(domain, name)) is not None]
    lines += [f"person = {_toml(domain.person)}"] if domain.person is not None else []
    lines += [f"rows_per_person = {domain.rows_per_person}"]
    for column in domain.columns:
        lines += ["", f"[columns.{_toml(column.name)}]"]
        if isinstance(column, Nominal):
            lines += ['kind = "nominal"', f"values = {_toml(column.values)}"]
            lines += [f"{flag} = true" for flag in ("ordered", "other", "missing") if getattr(column, flag)]
            continue
        lines += [f'kind = "{column.kind}"', *(f"{name} = {value}" for name, value in _settings(column).items())]
        lines += ["missing = true"] * column.missing
    return "\n".join(lines) + "\n"


def table_text(domain: Domain) -> str:
    people = f"{domain.rows_per_person} row{'s' * (domain.rows_per_person > 1)} per person"
    people += f" counted, by '{domain.person}'" if domain.person is not None else ""
    facts = [f"target {domain.target}" if domain.target else "no target"]
    facts += [f"about {domain.rows} rows"] * (domain.rows is not None)
    facts += [f"at most {domain.max_rows} rows"] * (domain.max_rows is not None)
    table = [("column", "kind", "cells", "values")]
    for column in domain.columns:
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
        raise DomainError(f"{where} needs a finite number for {name}, of at most {LONGEST_DECLARED} characters.")
    if len(str(value)) > LONGEST_DECLARED or (number and not Fraction(1, 10**15) <= abs(number) <= 10**18):
        raise DomainError(
            f"{where} has a number for {name} of more than {LONGEST_DECLARED} characters, or not between 1e-15 "
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
    value = whole_of(content[name], -MOST_ROWS, MOST_ROWS)
    if value is None:
        raise DomainError(f"{where}{name} must be a whole number, at most {MOST_ROWS}.")
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


METHODS: Mapping[str, object] = {
    "load": staticmethod(load),
    "parse": staticmethod(parse),
    "from_dict": staticmethod(from_dict),
    "save": save,
    "to_toml": to_toml,
    "with_target": with_target,
    "with_column": with_column,
    "without": without,
    "with_person": with_person,
    "with_rows": with_rows,
    "__str__": table_text,
}
