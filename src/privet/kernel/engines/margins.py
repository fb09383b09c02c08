"""Small tables as margins of a larger one: rows are grouped once where they would be grouped for each of them.

What a table of an attribute by class costs a database is one look-up in a hash table for every row. A level of few
nodes has few cells, so tables of several attributes together are still small: one look-up counts all of them, and
sums over their cells are the tables that were asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts, cell_count

_CELLS = 2**14  # of a table, in all parts: more of them cost more to look up and to send than they save

Columns = tuple[str, ...]


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
    found: dict[Columns, list[Columns]] = {}
    names: Columns = ()
    for group in dict.fromkeys(query.groups):
        if repeats(group):
            found[group] = [group]
            continue
        joined = (*names, *(name for name in group if name not in names))
        groups = found.pop(names, [])
        if groups and query.rows.parts * cell_count(domain, joined) > _CELLS:
            found[names] = groups
            joined, groups = group, found.pop(group, [])
        found[joined] = [*found.get(joined, []), *groups, group]
        names = joined
    return found


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
