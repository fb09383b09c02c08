"""How questions reach the rows: from memory, from a merged copy of them, in batches, or as statements where they lie.

The access is chosen from what is public: how large the domain lets the table be, and where it is. No privacy rests on
it, and saying which one it is tells nothing about the rows.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from privet.errors import QuestionError, did_you_mean

SNAPSHOT, STREAM, PUSH_DOWN, IN_MEMORY = "snapshot", "stream", "push-down", "memory"
WAYS = ("auto", SNAPSHOT, STREAM, PUSH_DOWN)
SNAPSHOT_BYTES = 2**26  # the largest coded table that is copied into memory, and from a server none, unless told

_DESCRIBED = {
    IN_MEMORY: "the rows are in memory; a level of a tree is one pass over them",
    SNAPSHOT: "identical coded rows were merged, with a weight, into memory; a level of a tree is one pass over them",
    STREAM: "a level of a tree reads the coded rows once, in batches, and counts them in memory",
    PUSH_DOWN: "all nodes and attributes of a level of a tree are counted by {}; counts alone come back",
}
_ON_SERVER = "one statement on the server"
_PUSHED = {"postgres": _ON_SERVER, "mssql": _ON_SERVER, "spark": "one job on the cluster"}
_IN_DUCKDB = "one statement over the coded rows, after one that writes their node numbers"
_UNITS = {"TB": 2**40, "GB": 2**30, "MB": 2**20, "kB": 2**10}
_SIZE = re.compile(r"([0-9]{1,15}(?:[.][0-9]{1,15})?) ?([kmgt]b)?", re.IGNORECASE)
_LARGEST = 2**62


@dataclass(frozen=True)
class Access:
    """One way to the rows, and why it was taken."""

    how: str
    why: str
    kind: str = "duckdb"  # of the source

    def __str__(self) -> str:
        described = _DESCRIBED[self.how].format(_PUSHED.get(self.kind, _IN_DUCKDB))
        return f"{self.how}: {described}. Taken because {self.why}."


def size_of(limit: int | str) -> int:
    """Return the bytes of a limit, as people write it.

    >>> size_of("1.5 MB"), size_of("0"), size_of(10**6)
    (1572864, 0, 1000000)
    """
    size: float = -1
    if isinstance(limit, int) and not isinstance(limit, bool):
        size = limit
    elif isinstance(limit, str) and (written := _SIZE.fullmatch(limit.strip())):
        units = {name.lower(): of for name, of in _UNITS.items()}
        size = float(written[1]) * units.get((written[2] or "").lower(), 1)
    if not 0 <= size <= _LARGEST:
        raise QuestionError("snapshot_limit must be a size such as '200MB', a number of bytes, or 0 for no copy.")
    return int(size)


def check(asked: str, limit: int | None = None) -> None:
    """Refuse an access that does not exist, and a limit that nothing is chosen by."""
    if asked not in WAYS:
        raise QuestionError(
            f"there is no access '{asked}'{did_you_mean(asked, WAYS)}; choose one of {', '.join(WAYS)}."
        )
    if limit is not None and asked != "auto":
        raise QuestionError(f"snapshot_limit decides nothing where access is {asked}; leave out one of them.")


def choose(
    asked: str, bound: float, *, remote: bool, streams: bool, limit: int | None = None, kind: str = "duckdb"
) -> Access:
    """Return the access that was asked for, or the one that suits what is public about a table.

    Parameters
    ----------
    asked : {"auto", "snapshot", "stream", "push-down"}
    bound : float
        How many bytes the coded table takes at most, by what its domain declares.
    remote, streams : bool
        Whether the table is on a server, and whether its coded rows can be read in batches.
    limit : int, optional
        The bytes of the largest table that is copied into memory. Default: 64 MB, nothing from a server.
    kind : str
        The kind of the source, which the access names.

    Raises
    ------
    QuestionError
        There is no such access, the table has none, or the limit decides nothing.

    >>> print(choose("auto", 10**6, remote=True, streams=False).why)
    the table is on a server, and its rows stay there unless access="snapshot" or a snapshot_limit fetches them
    """
    check(asked, limit)
    if asked == STREAM and not streams:
        raise QuestionError("this table cannot be read in batches; choose the access push-down, or leave it out.")
    if asked != "auto":
        return Access(asked, "it was asked for", kind)
    if limit is None and remote:
        stay = 'its rows stay there unless access="snapshot" or a snapshot_limit fetches them'
        return Access(PUSH_DOWN, f"the table is on a server, and {stay}", kind)
    limit = SNAPSHOT_BYTES if limit is None else limit
    if bound <= limit:
        small = f"the domain bounds the coded table by {_size_text(bound)}, and up to {_size_text(limit)} are copied"
        return Access(SNAPSHOT, small, kind)
    what = f"bounds it by {_size_text(bound)}" if math.isfinite(bound) else "declares neither rows nor max_rows"
    why = f"the coded table may be larger than the {_size_text(limit)} that are copied: the domain {what}"
    return Access(STREAM if streams else PUSH_DOWN, why, kind)


def _size_text(size: float) -> str:
    if size > 1000 * _UNITS["TB"]:
        return "more than 1000 TB"
    for unit, of in _UNITS.items():
        if size >= of:
            return f"{size / of:{'.0f' if 1000 * of <= size < 1024 * of else '.3g'}} {unit}"
    return f"{size:.0f} bytes"
