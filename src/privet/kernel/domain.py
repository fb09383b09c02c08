"""The public domain of a table: which columns exist and which values they may take.

A domain is declared by the data owner in a small TOML file, never read from
private rows. Columns it does not declare do not exist.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import DomainError, QuestionError, UndeclaredDomain, did_you_mean
from privet.kernel import public_values as limits
from privet.kernel.column import Column, Nominal, Numeric, Scalar
from privet.kernel.public_values import Json, digest, whole_of
from privet.text import quoted, shown

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
    """

    columns: tuple[Column, ...]
    target: str | None = None
    rows: int | None = None
    max_rows: int | None = None
    rows_per_person: int = 1
    person: str | None = None
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    # Files, edits and texts of a declaration are no task of the kernel: `privet` adds these methods (`domain_file`).
    if TYPE_CHECKING:
        draft: ClassVar[Callable[..., Domain]]
        load: ClassVar[Callable[[str | Path], Domain]]
        parse: ClassVar[Callable[[str], Domain]]
        from_dict: ClassVar[Callable[[Mapping[str, object]], Domain]]

        def save(self, path: str | Path) -> None: ...
        def to_toml(self) -> str: ...
        def with_target(self, target: str | None) -> Domain: ...
        def with_column(self, *columns: Column) -> Domain: ...
        def without(self, *names: str) -> Domain: ...
        def with_person(self, person: str | None, rows_per_person: int | None = None) -> Domain: ...
        def with_rows(self, rows: int | None = None, max_rows: int | None = None) -> Domain: ...

    def __post_init__(self) -> None:
        if isinstance(self.columns, str | Nominal | Numeric) or not isinstance(self.columns, Iterable):
            raise DomainError(f"columns are a list of privet.Nominal and privet.Numeric, not {quoted(self.columns)}.")
        object.__setattr__(self, "columns", tuple(self.columns))
        self.check_kinds(self.columns)
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
    def check_kinds(columns: Iterable[object]) -> None:
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
        if column is None and name == self.person and name is not None:
            raise UndeclaredDomain(
                f"column {quoted(name)} says whose row it is, and no question can read it; ask about other columns.",
                column=name,
            )
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

    def cell_count(self, columns: Iterable[str]) -> int:
        """Return the number of cells of a group of columns."""
        return math.prod(self[name].size for name in columns)

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
