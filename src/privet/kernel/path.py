"""How questions reach the rows: from memory, from a merged copy of them, in passing, or as statements where they lie.

The path is chosen from what is public (the domain, and where the table is), so that saying which one it is tells
nothing about the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.column import Numeric
from privet.domain import Domain
from privet.errors import QuestionError

SNAPSHOT, STREAM, PUSH_DOWN, IN_MEMORY = "snapshot", "stream", "push-down", "memory"
PATHS = ("auto", SNAPSHOT, STREAM, PUSH_DOWN)
SNAPSHOT_BYTES = 2**26  # the largest coded table that is copied into memory unless asked for

_TOLD = {
    IN_MEMORY: "the rows are in memory; a level of a tree is one pass over them",
    SNAPSHOT: "identical coded rows were merged, with a weight, into memory; a level of a tree is one pass over them",
    STREAM: "a level of a tree reads the coded rows once, in batches, and counts them in memory",
    PUSH_DOWN: "a level of a tree is one statement where the rows lie, whatever the number of nodes and attributes; "
    "counts alone come back",
}


@dataclass(frozen=True)
class Way:
    """One way to the rows, and why it was taken."""

    how: str
    why: str

    def __str__(self) -> str:
        return f"{self.how}: {_TOLD[self.how]}. Taken because {self.why}."


def check(asked: str) -> None:
    """Refuse a path that does not exist."""
    if asked not in PATHS:
        raise QuestionError(f"there is no path '{asked}'; choose one of {', '.join(PATHS)}.")


def choose(asked: str, domain: Domain, *, remote: bool, streams: bool, limit: int = SNAPSHOT_BYTES) -> Way:
    """The path that was asked for, or the one that suits what is public about a table.

    >>> from privet.column import Nominal
    >>> print(choose("auto", Domain((Nominal("y", (0, 1)),)), remote=True, streams=False).why)
    the table is on a server, and its rows stay there unless path="snapshot" fetches them
    """
    check(asked)
    if asked == STREAM and not streams:
        raise QuestionError("this table cannot be read in passing; choose the path push-down, or leave it out.")
    if asked != "auto":
        return Way(asked, "it was asked for")
    if remote:
        return Way(PUSH_DOWN, 'the table is on a server, and its rows stay there unless path="snapshot" fetches them')
    bound = largest_table(domain)
    if bound <= limit:
        small = f"the domain bounds the coded table by {_told(bound)}, and up to {_told(limit)} are copied"
        return Way(SNAPSHOT, small)
    what = f"bounds it by {_told(bound)}" if math.isfinite(bound) else "declares neither rows nor max_rows"
    why = f"the coded table may be larger than the {_told(limit)} that are copied: the domain {what}"
    return Way(STREAM if streams else PUSH_DOWN, why)


def largest_table(domain: Domain) -> float:
    """The most bytes that distinct coded rows may take, by what the domain declares."""
    width = 8  # the weight
    distinct = 1.0
    for column in domain:
        width += 1 if column.size <= 2**8 else 2 if column.size <= 2**16 else 4
        distinct *= column.size
        if isinstance(column, Numeric):
            width += 4
            distinct *= column.grid_size / column.bin_count + column.missing
    rows = [distinct]
    rows += [domain.max_rows] if domain.max_rows is not None else []
    rows += [2 * domain.rows] if domain.rows is not None else []  # a round number: twice as many are allowed for
    return width * min(rows)


def _told(size: float) -> str:
    for unit, of in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size >= of:
            return f"{size / of:.3g} {unit}"
    return f"{size:.0f} bytes"
