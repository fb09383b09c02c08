"""What earlier counts already say: the rows of a child are one row of its parent's table.

A level of a tree asks how large its nodes are, then for a table of every attribute by class. A node is divided by one
of these attributes, so its table already holds the sizes and the classes of its children: only the tables of a level
take a pass over the rows. Exact counts stay where the rows are, in the engine.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts
from privet.kernel.engines.margins import margin, repeats
from privet.kernel.rows import Divide, Keep, Rows

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
            found = [self._below(query.rows, group) for group in query.groups]
        known = [table for table in found if table is not None]
        if len(known) == len(found):
            return known
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
        if not isinstance(step, Divide) or any(
            each is not None and each.thresholds is not None for each in step.splits
        ):
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
