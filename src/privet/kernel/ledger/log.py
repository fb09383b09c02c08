"""The log of a ledger: numbered lines that are only ever appended, each under one hash.

A line has two parts, both canonical JSON. The *line* itself is what a receipt may show to
whoever it concerns: what was charged to which data set, the totals then, the day. It names
analysts and sources by ids, and tells no time of day. The *note* is what the ledger needs
besides: the time, the question as JSON, the answer. The line holds the hash of its note, and
`leaf` is the hash of the line (RFC 6962: SHA-256 of a zero byte and the text). So the leaf
covers everything, and the Merkle tree over the leaves covers the log.

Both parts hold random bytes: neighbours in a proof tell nothing about each other's lines to
somebody who guesses them, and a line that is shown tells nothing about its note.

What lines are found by stands in columns of its own. Every line that is read is held against
its leaf, and its columns against the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from privet.kernel.canonical import Json, canonical
from privet.kernel.ledger.store import LINES, OPEN_HOLDS, Run

# What each kind of line says: docs/ledger.md#the-format. The kinds in OWNER_KINDS are the data owner's.
KINDS = ("register", "source", "cap", "charge", "answer", "model", "hold", "end", "key", "config")
# These are written after rows were asked, so that their time of day would tell how long that took. An answer does not
# even have a day of its own, but that of its charge.
WITHOUT_TIME = ("answer", "model", "end")
UNKNOWN = ""  # the id of an analyst whom no line names
_COLUMNS = "number, kind, serial, dataset, analyst, key, reference, line, note, leaf"
_NOTHING: Mapping[str, Json] = {}
_PAGE = 200  # lines; a driver may hold all that one statement returns

_decode: Callable[[str], tuple[Any, int]] = json.JSONDecoder().raw_decode  # without a look for blanks around it


class Line(NamedTuple):
    """One line of the log."""

    number: int  # in the log, from 1
    kind: str
    serial: int  # among the lines of its kind, from 1: charge 5 is "entry 5", hold 3 is "reservation 3"
    dataset: str | None
    analyst: str | None  # an id
    day: str
    body: dict[str, Any]  # what is particular to its kind
    text: str  # the line as it was hashed
    note_text: str
    leaf: str

    @property
    def note(self) -> dict[str, Any]:
        """What stands with the line and is no part of what a receipt shows."""
        note: dict[str, Any] = json.loads(self.note_text)
        return note


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def leaf_hash(text: str) -> str:
    """The hash of a leaf of RFC 6962's tree."""
    return hashlib.sha256(b"\0" + text.encode()).hexdigest()


def commitment(secret: str, *texts: str) -> str:
    """An id for texts: it tells nothing about them without the secret, and fits no others."""
    return sha256(canonical([secret, *texts]))[:32]


class Log:
    """The log inside one transaction.

    Parameters
    ----------
    run : Run
        The transaction.
    ledger_id : str
        Stands in every line, so that no line passes for one of another ledger.
    clock : callable
        Returns the time now, as text: a day, and after a "T" the time of day.
    random_bytes : callable
        Returns so many random bytes.
    """

    def __init__(
        self, run: Run, ledger_id: str, clock: Callable[[], str], random_bytes: Callable[[int], bytes]
    ) -> None:
        self.run = run
        self._ledger_id = ledger_id
        self._clock = clock
        self._random_bytes = random_bytes
        self._analyst_ids: dict[str, str] = {}  # those that were looked up

    # -- lines ------------------------------------------------------------------------------

    def append(
        self,
        kind: str,
        dataset: str | None,
        analyst: str | None,
        body: Mapping[str, Json],
        note: Mapping[str, Json] = _NOTHING,
        day: str | None = None,
    ) -> Line:
        """Write a line under the next number.

        Parameters
        ----------
        kind : str
            One of `KINDS`.
        dataset : str or None
        analyst : str or None
            The id of the analyst whose line it is.
        body : mapping
            What the line says, in values that JSON has.
        note : mapping, optional
            What stands with it besides.
        day : str, optional
            Default: today.
        """
        assert kind in KINDS
        number, serial = (last + 1 for last in self.run.last_numbers(kind))
        at = self._clock() if day is None else day
        day = at.partition("T")[0]
        note_text = canonical({**note, "at": day if kind in WITHOUT_TIME else at, "salt": self._salt()})
        line = {
            "analyst": analyst,
            "body": body,
            "dataset": dataset,
            "day": day,
            "kind": kind,
            "ledger": self._ledger_id,
            "note": sha256(note_text),
            "number": number,
            "salt": self._salt(),
            "serial": serial,
        }
        text = canonical(line)
        leaf = leaf_hash(text)
        self.run(
            f"INSERT INTO {LINES} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, kind, serial, *_found_by(kind, line), text, note_text, leaf),
        )
        return Line(number, kind, serial, dataset, analyst, day, dict(body), text, note_text, leaf)

    def lines(self, condition: str, *values: object) -> list[Line]:
        """Some lines, in their order; ValueError where one is damaged."""
        rows = self.run(f"SELECT {_COLUMNS} FROM {LINES} WHERE {condition}", *values).fetchall()
        return [_read(row, self._ledger_id) for row in rows]

    def every_line(self) -> Iterator[Line]:
        """All lines by their numbers, a page at a time."""
        number = 0
        while page := self.lines(f"number > ? ORDER BY number LIMIT {_PAGE}", number):
            yield from page
            number = page[-1].number

    def last(self, kind: str, condition: str, *values: object) -> Line | None:
        """The last line of a kind that a condition holds for, if there is one."""
        lines = self.lines(f"kind = '{kind}' AND {condition} ORDER BY number DESC LIMIT 1", *values)
        return lines[0] if lines else None

    def last_of(self, kind: str, dataset: str, analyst: str | None) -> Line | None:
        """The last line of a kind about a data set that is an analyst's, or nobody's."""
        if analyst is None:
            return self.last(kind, "dataset = ? AND analyst IS NULL", dataset)
        return self.last(kind, "dataset = ? AND analyst = ?", dataset, analyst)

    def find(self, kind: str, serial: int) -> Line | None:
        """The line of a kind with a serial number, if there is one."""
        return self.last(kind, "serial = ?", serial)

    # -- what lines name by an id -----------------------------------------------------------

    def analyst_id(self, name: str) -> str:
        """The id of an analyst; UNKNOWN if no line names them."""
        if name not in self._analyst_ids:
            row = self.run("SELECT id, name, secret FROM analysts WHERE name = ?", name).fetchone()
            self._analyst_ids[name] = UNKNOWN if row is None else _checked(*row)[0]
        return self._analyst_ids[name]

    def new_analyst_id(self, name: str) -> str:
        """The id of an analyst, who gets one if they have none."""
        if self.analyst_id(name) == UNKNOWN:
            secret = self._salt()
            self._analyst_ids[name] = commitment(secret, name)
            self.run("INSERT INTO analysts VALUES (?, ?, ?)", self._analyst_ids[name], name, secret)
        return self._analyst_ids[name]

    def analyst_name(self, analyst: str) -> str:
        row = self.run("SELECT id, name, secret FROM analysts WHERE id = ?", analyst).fetchone()
        return _checked(*row)[1]

    def analysts(self) -> dict[str, str]:
        """The names of all analysts by their ids."""
        return dict(_checked(*row) for row in self.run("SELECT id, name, secret FROM analysts").fetchall())

    def dataset_of(self, source: str) -> str | None:
        """The data set that a source belongs to, if there is one."""
        row = self.run("SELECT id, dataset, source, secret FROM sources WHERE source = ?", source).fetchone()
        return None if row is None else _checked_source(*row)[1]

    def sources(self) -> list[tuple[str, str, str]]:
        """Of every source its id, its data set and its text."""
        rows = self.run("SELECT id, dataset, source, secret FROM sources").fetchall()
        return [_checked_source(*row) for row in rows]

    def new_source_id(self, dataset: str, source: str) -> str:
        secret = self._salt()
        identity = commitment(secret, dataset, source)
        self.run("INSERT INTO sources VALUES (?, ?, ?, ?)", identity, dataset, source, secret)
        return identity

    # -- which holds are open ---------------------------------------------------------------

    def open_holds(self, dataset: str) -> list[int]:
        rows = self.run(f"SELECT hold FROM {OPEN_HOLDS} WHERE dataset = ? ORDER BY hold", dataset).fetchall()
        return [hold for (hold,) in rows]

    def every_open_hold(self) -> dict[int, str]:
        """The data sets of all open holds."""
        return dict(self.run(f"SELECT hold, dataset FROM {OPEN_HOLDS}").fetchall())

    def mark_open(self, hold: int, dataset: str) -> None:
        self.run(f"INSERT INTO {OPEN_HOLDS} (hold, dataset) VALUES (?, ?)", hold, dataset)

    def mark_ended(self, hold: int) -> None:
        self.run(f"DELETE FROM {OPEN_HOLDS} WHERE hold = ?", hold)

    def _salt(self) -> str:
        return self._random_bytes(16).hex()


def _found_by(kind: str, line: Mapping[str, Any]) -> tuple[str | None, str | None, str | None, int | None]:
    """What a line is found by: data set, analyst, key, and the serial number of the line that it is about."""
    body = line["body"]
    if kind == "answer":
        return None, None, None, body["entry"]
    return line["dataset"], line["analyst"], body.get("key") if kind == "charge" else None, body.get("reservation")


def _read(row: tuple[Any, ...], ledger_id: str) -> Line:
    number, kind, serial, dataset, analyst, key, reference, text, note_text, leaf = row
    line, end = _decode(text)
    if (
        leaf_hash(text) != leaf
        or end != len(text)
        or line["note"] != sha256(note_text)
        or line["ledger"] != ledger_id
        or (line["number"], line["kind"], line["serial"]) != (number, kind, serial)
        or _found_by(kind, line) != (dataset, analyst, key, reference)
    ):
        raise ValueError(f"line {number} is damaged")
    return Line(
        number, kind, serial, line["dataset"], line["analyst"], line["day"], line["body"], text, note_text, leaf
    )


def _checked(identity: str, name: str, secret: str) -> tuple[str, str]:
    if commitment(secret, name) != identity:
        raise ValueError("the name of an analyst is damaged")
    return identity, name


def _checked_source(identity: str, dataset: str, source: str, secret: str) -> tuple[str, str, str]:
    if commitment(secret, dataset, source) != identity:
        raise ValueError("a source is damaged")
    return identity, dataset, source
