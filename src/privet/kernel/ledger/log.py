"""The log of a ledger: numbered lines that are only ever appended, each under one hash.

A line has two parts, both canonical JSON. The *line* itself is what a receipt may show to the
person it concerns: what was charged to which data set, the totals then, the day. It names
analysts and sources by ids, and has no time of day. The *note* is what the ledger needs
besides: the time, the question as JSON, the answer. The line holds the hash of its note, and
`leaf` is the hash of the line (RFC 6962: SHA-256 of a zero byte and the text). So the leaf
covers everything, and a Merkle tree over the leaves would cover the log.

Both parts hold random bytes. So a hash tells nothing to somebody who guesses the text under it.

Lines are found by columns that repeat what they say. Every line that is read is compared with
its leaf and with its columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from privet.kernel.ledger.store import Run, Store
from privet.kernel.limits import Json, canonical

# What each kind of line says: docs/ledger.md#the-format. The kinds in OWNER_KINDS are the data owner's.
KINDS = ("register", "source", "cap", "charge", "answer", "model", "hold", "end", "key", "config")
# These are written after rows were asked, so their time of day would tell how long that took. An answer has not even
# a day of its own, but that of its charge.
WITHOUT_TIME = ("answer", "model", "end")
UNKNOWN = ""  # the id of an analyst whom no line names
_COLUMNS = "number, kind, serial, dataset, analyst, key, reference, line, note, leaf"
_ANALYSTS = "SELECT id, name, secret FROM analysts"
_SOURCES = "SELECT id, dataset, source, secret FROM sources"
_PAGE = 200  # lines; a driver may keep all that one statement returns

_decode: Callable[[str], tuple[Any, int]] = json.JSONDecoder().raw_decode  # takes no blanks around it


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
    """Return the hash of a line, as a leaf of RFC 6962's tree."""
    return hashlib.sha256(b"\0" + text.encode()).hexdigest()


def commitment(secret: str, *texts: str) -> str:
    """Return an id for texts. It tells nothing about them without the secret, and fits no others."""
    return sha256(canonical([secret, *texts]))[:32]


class Log:
    """The log inside one transaction.

    Parameters
    ----------
    store : Store
    run : callable
        Runs a statement in the transaction.
    ledger_id : str
        Stands in every line, so that no line passes for one of another ledger.
    clock : callable
        Returns the time now, as text: a day, and after a "T" the time of day.
    random_bytes : callable
        Returns so many random bytes.
    """

    def __init__(
        self, store: Store, run: Run, ledger_id: str, clock: Callable[[], str], random_bytes: Callable[[int], bytes]
    ) -> None:
        self.path = store.path
        self.run = run
        self._last_number = store.last_number
        self.ledger_id = ledger_id
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
        note: Mapping[str, Json] | None = None,
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
            What the line says.
        note : mapping, optional
            What stands with it besides.
        day : str, optional
            Default: today.

        Returns
        -------
        Line
        """
        assert kind in KINDS
        serial = f"(SELECT max(serial) FROM lines WHERE kind = '{kind}')"
        number, serial = self.run(f"SELECT {self._last_number} + 1, coalesce({serial}, 0) + 1").fetchone()
        at = self._clock() if day is None else day
        day = at.partition("T")[0]
        note_text = canonical({**(note or {}), "at": day if kind in WITHOUT_TIME else at, "salt": self._salt()})
        line = {
            "analyst": analyst,
            "body": body,
            "dataset": dataset,
            "day": day,
            "kind": kind,
            "ledger": self.ledger_id,
            "note": sha256(note_text),
            "number": number,
            "salt": self._salt(),
            "serial": serial,
        }
        text = canonical(line)
        leaf = leaf_hash(text)
        insert = f"INSERT INTO lines ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self.run(insert, *_found_by(line), text, note_text, leaf)
        if kind == "hold":
            self.run("INSERT INTO open_holds (hold, dataset) VALUES (?, ?)", serial, dataset)
        elif kind == "end":
            self.run("DELETE FROM open_holds WHERE hold = ?", body["reservation"])
        return _line_of(line, text, note_text, leaf)

    def lines(self, condition: str, *values: object) -> list[Line]:
        """Return the lines that an SQL condition holds for; ValueError if one is damaged."""
        rows, lines = self.run(f"SELECT {_COLUMNS} FROM lines WHERE {condition}", *values).fetchall(), []
        for *columns, text, note_text, leaf in rows:
            line, end = _decode(text)
            if (
                leaf_hash(text) != leaf
                or end != len(text)
                or line["note"] != sha256(note_text)
                or line["ledger"] != self.ledger_id
                or _found_by(line) != columns
            ):
                raise ValueError(f"line {columns[0]} is damaged")
            lines.append(_line_of(line, text, note_text, leaf))
        return lines

    def every_line(self) -> Iterator[Line]:
        """Return all lines in order, a page at a time."""
        number = 0
        while page := self.lines(f"number > ? ORDER BY number LIMIT {_PAGE}", number):
            yield from page
            number = page[-1].number

    def last(self, kind: str, **columns: str | int | None) -> Line | None:
        """Return the last line of a kind with these values in its columns, if there is one."""
        conditions = [f"{name} IS NULL" if value is None else f"{name} = ?" for name, value in columns.items()]
        condition = " AND ".join([f"kind = '{kind}'", *conditions])
        values = [value for value in columns.values() if value is not None]
        return next(iter(self.lines(f"{condition} ORDER BY number DESC LIMIT 1", *values)), None)

    # -- names behind ids -------------------------------------------------------------------

    def analyst_id(self, name: str) -> str:
        """Return the id of an analyst; UNKNOWN if no line names them."""
        if name not in self._analyst_ids:
            rows = self._named(f"{_ANALYSTS} WHERE name = ?", name)
            self._analyst_ids[name] = rows[0][0] if rows else UNKNOWN
        return self._analyst_ids[name]

    def new_analyst_id(self, name: str) -> str:
        """Return the id of an analyst, who gets one if they have none."""
        if self.analyst_id(name) == UNKNOWN:
            secret = self._salt()
            self._analyst_ids[name] = commitment(secret, name)
            self.run("INSERT INTO analysts VALUES (?, ?, ?)", self._analyst_ids[name], name, secret)
        return self._analyst_ids[name]

    def analyst_name(self, analyst: str | None) -> str:
        ((_, name),) = self._named(f"{_ANALYSTS} WHERE id = ?", analyst)
        return str(name)

    def analysts(self) -> dict[str, str]:
        """Return the names of all analysts by their ids."""
        return dict(self._named(_ANALYSTS))

    def dataset_of(self, source: str) -> str | None:
        """Return the data set that a source belongs to, if there is one."""
        rows = self._named(f"{_SOURCES} WHERE source = ?", source)
        return rows[0][1] if rows else None

    def sources(self) -> list[tuple[str, str, str]]:
        """Return the id, the data set and the text of every source."""
        return self._named(_SOURCES)

    def new_source_id(self, dataset: str, source: str) -> str:
        secret = self._salt()
        identity = commitment(secret, dataset, source)
        self.run("INSERT INTO sources VALUES (?, ?, ?, ?)", identity, dataset, source, secret)
        return identity

    def _named(self, query: str, *values: object) -> list[Any]:
        """Return rows of `analysts` or `sources` without their secrets; ValueError if one does not fit its id."""
        rows = self.run(query, *values).fetchall()
        for identity, *texts, secret in rows:
            if commitment(secret, *texts) != identity:
                raise ValueError("the text behind an id is damaged")
        return [row[:-1] for row in rows]

    def _salt(self) -> str:
        return self._random_bytes(16).hex()


def _found_by(line: Mapping[str, Any]) -> list[Any]:
    """Return the columns that a line is found by; `reference` is the serial number of the line that it is about."""
    kind, body = line["kind"], line["body"]
    if kind == "answer":
        return [line["number"], kind, line["serial"], None, None, None, body["entry"]]
    key = body.get("key") if kind == "charge" else None
    return [line["number"], kind, line["serial"], line["dataset"], line["analyst"], key, body.get("reservation")]


def _line_of(line: Mapping[str, Any], text: str, note_text: str, leaf: str) -> Line:
    numbers = line["number"], line["kind"], line["serial"]
    return Line(*numbers, line["dataset"], line["analyst"], line["day"], line["body"], text, note_text, leaf)
