"""Counts that need no pass over the rows of their own. Trusted, and switched off in the reference configuration.

*Recall*: a level of a tree asks how large its nodes are, then for a table of every attribute by class. A node is
divided by one of these attributes, so its table already holds the sizes and the classes of its children: only the
tables of a level take a pass over the rows.

*Margins*: what a table of an attribute by class costs a database is one look-up in a hash table for every row. A level
of few nodes has few cells, so tables of several attributes together are still small: one look-up counts all of them,
and sums over their cells are the tables that were asked for.

Exact counts stay where the rows are, in the engine.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, cell_count
from privet.kernel.rows import Divide, Keep, Rows

_CELLS = 2**14  # of a table, in all parts: more of them cost more to look up and to send than they save
_KEPT = 4  # answers
_LARGEST = 2**22  # counts that are kept in all

Columns = tuple[str, ...]


class Recall:
    """The last tables an engine counted, and what they say about parts of their parts.

    Without `shortcuts` nothing is kept, and every query is asked.
    """

    def __init__(self, domain: Domain, shortcuts: bool = True) -> None:
        self._domain, self._shortcuts = domain, shortcuts
        self._lock = threading.Lock()
        self._tables: OrderedDict[Rows, dict[Columns, Counts]] = OrderedDict()

    def counts(self, query: CountQuery, ask: Callable[[CountQuery], list[Counts]]) -> list[Counts]:
        """The answer to a query: made of what is known about the rows above, or asked for."""
        if not self._shortcuts:
            return ask(query)
        with self._lock:
            tables = [self._below(query.rows, group) for group in query.groups]
        recalled = [table for table in tables if table is not None]
        if len(recalled) == len(tables):
            return recalled
        exact = ask(query)
        self._keep(query, exact)
        return exact

    def forget(self) -> None:
        with self._lock:
            self._tables.clear()

    def _keep(self, query: CountQuery, exact: list[Counts]) -> None:
        answers = zip(query.groups, exact, strict=True)
        tables = {group: table for group, table in answers if group and not repeats(group)}
        if not tables or sum(table.size for table in exact) > _LARGEST:
            return
        for table in tables.values():
            table.setflags(write=False)  # whoever has an answer cannot change what later ones are made of
        with self._lock:
            self._tables[query.rows] = {**self._tables.pop(query.rows, {}), **tables}
            while len(self._tables) > _KEPT or self._size() > _LARGEST:
                self._tables.popitem(last=False)

    def _size(self) -> int:
        return sum(table.size for tables in self._tables.values() for table in tables.values())

    def _known(self, rows: Rows, columns: Columns) -> Counts | None:
        """A table over these columns: one that was counted, without the columns too many, or one from above."""
        for names, table in self._tables.get(rows, {}).items():
            if set(columns) <= set(names):
                return margin(table, names, columns)
        return self._below(rows, columns)

    def _below(self, rows: Rows, columns: Columns) -> Counts | None:
        """A table over these columns, from one of the rows above."""
        above, step = rows.parent, rows.step
        if above is None or len(columns) > self._widest() or repeats(columns):
            return None
        if isinstance(step, Keep) and not step.conditions:
            table = self._known(above, columns)
            return None if table is None else table[list(step.parts)]
        if not isinstance(step, Divide) or any(split and split.thresholds is not None for split in step.splits):
            return None
        tables: dict[str, Counts] = {}
        children = [np.zeros((0, *(self._domain[name].size for name in columns)), dtype=np.int64)]
        for part, split in enumerate(step.splits):
            if split is None:
                continue
            if split.column not in tables:
                table = None if split.column in columns else self._known(above, (split.column, *columns))
                if table is None:
                    return None
                tables[split.column] = table
            children.append(tables[split.column][part])
        return np.concatenate(children)

    def _widest(self) -> int:
        return max((len(names) for tables in self._tables.values() for names in tables), default=-1)


def asked_together(
    query: CountQuery, domain: Domain, ask: Callable[[CountQuery], list[Counts]], shortcuts: bool = True
) -> list[Counts]:
    """The answer to a query, from one about fewer and larger tables; without `shortcuts`, from the query itself."""
    if not shortcuts:
        return ask(query)
    larger = together(query, domain)
    exact = ask(CountQuery(query.rows, tuple(larger)))
    margins = {
        group: margin(table, names, group)
        for table, (names, groups) in zip(exact, larger.items(), strict=True)
        for group in groups
    }
    return [margins[group] for group in query.groups]


def together(query: CountQuery, domain: Domain) -> dict[Columns, list[Columns]]:
    """The tables that are counted, and those of the query that each of them holds: as many as leave it small."""
    tables: dict[Columns, list[Columns]] = {}
    names: Columns = ()
    for group in dict.fromkeys(query.groups):
        if repeats(group):
            tables[group] = [group]
            continue
        joined = (*names, *(name for name in group if name not in names))
        groups = tables.pop(names, [])
        if groups and query.rows.parts * cell_count(domain, joined) > _CELLS:
            tables[names] = groups
            joined, groups = group, tables.pop(group, [])
        tables[joined] = [*tables.get(joined, []), *groups, group]
        names = joined
    return tables


def repeats(columns: Columns) -> bool:
    """Whether a column stands there twice: a table over it has an axis for each, and is no margin of another."""
    return len(set(columns)) < len(columns)


def margin(table: Counts, names: Columns, columns: Columns) -> Counts:
    """The table over some columns of another, which has an axis for its parts and one for each of its columns."""
    if names == columns:
        return table
    summed = table.sum(axis=tuple(1 + at for at, name in enumerate(names) if name not in columns))
    left = [name for name in names if name in columns]
    return np.asarray(summed.transpose(0, *(1 + left.index(name) for name in columns)))
