"""The log of a ledger: numbered lines that are only ever appended, each under one hash; and what they say now.

A line has two parts, both canonical JSON. The *line* itself is what a receipt may show to the
person it concerns: what was charged to which data set, the totals then, the day. It names
analysts and sources by ids, and has no time of day. The *note* is what the ledger needs
besides: the time, the question as JSON, the answer. The line holds the hash of its note, and
`leaf` is the hash of the line (RFC 6962: SHA-256 of a zero byte and the text). So the leaf
covers everything, and a Merkle tree over the leaves would cover the log. Both parts hold random
bytes, so a hash tells nothing to somebody who guesses the text under it.

Lines are found by columns that repeat what they say. Every line that is read is compared with
its leaf and with its columns. Nothing is added up: a charge carries the totals after it, so the
last one is looked up.

The *terms* of a data set say what its charges mean: what the budget is counted in, how many
rows a person may have, and the cells of every declared column. A table whose domain says
anything else is refused until the owner declares it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError
from privet.kernel.domain import Domain
from privet.kernel.ledger.store import Run, Store
from privet.kernel.public_values import Json, canonical, digest
from privet.text import decimal_text, short_text
from privet.version import __version__

# What each kind of line says: docs/reference/ledger.md#the-format.
KINDS = ("register", "source", "cap", "charge", "answer", "model", "hold", "end", "key", "config")
UNCHARGED = ("model", "key", "config")  # no charge rests on these: `privet.ledger_lines`
# These are written after rows were asked, so their time of day would tell how long that took. An answer has not even
# a day of its own, but that of its charge.
WITHOUT_TIME = ("answer", "model", "end")
EPSILON, RHO = "epsilon", "rho"  # units of a budget
UNKNOWN = ""  # the id of an analyst whom no line names
ZERO = Fraction(0)
_COLUMNS = "number, kind, serial, dataset, analyst, key, reference, line, note, leaf"
_ANALYSTS = "SELECT id, name, secret FROM analysts"
_SOURCES = "SELECT id, dataset, source, secret FROM sources"
_PAGE = 200  # lines; a driver may keep all that one statement returns

Body = Mapping[str, Json]
_decode: Callable[[str], tuple[Any, int]] = json.JSONDecoder().raw_decode  # takes no blanks around it


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def leaf_hash(text: str) -> str:
    """Return the hash of a line, as a leaf of RFC 6962's tree."""
    return hashlib.sha256(b"\0" + text.encode()).hexdigest()


def commitment(secret: str, *texts: str) -> str:
    """Return an id for texts. It tells nothing about them without the secret, and fits no others."""
    return sha256(canonical([secret, *texts]))[:32]


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
        return dict(json.loads(self.note_text))


def _line_of(line: Mapping[str, Any], text: str, note_text: str, leaf: str) -> Line:
    numbers = line["number"], line["kind"], line["serial"]
    return Line(*numbers, line["dataset"], line["analyst"], line["day"], line["body"], text, note_text, leaf)


def _found_by(line: Mapping[str, Any]) -> list[Any]:
    """Return the columns that a line is found by; `reference` is the serial number of the line that it is about."""
    kind, body = line["kind"], line["body"]
    if kind == "answer":
        return [line["number"], kind, line["serial"], None, None, None, body["entry"]]
    key = body.get("key") if kind == "charge" else body.get("permit") if kind == "cap" else None
    return [line["number"], kind, line["serial"], line["dataset"], line["analyst"], key, body.get("reservation")]


# -- what lines say -----------------------------------------------------------------------------


def cells_of(domain: Domain) -> dict[str, str]:
    """Return for every declared column a hash of all that decides which cell a value falls into.

    The target, `rows`, `max_rows`, whether values are `ordered` and how edges were written are not in it: no cell
    depends on them.

    >>> from privet.kernel.column import Nominal
    >>> plain, ordered = (Domain((Nominal("size", ("S", "M"), ordered=ordered),)) for ordered in (False, True))
    >>> cells_of(plain) == cells_of(ordered), cells_of(plain) == cells_of(Domain((Nominal("size", ("M", "S")),)))
    (True, False)
    """
    return {column.name: digest(column.cells()) for column in domain}


def terms_of(domain: Domain | None, delta: str | None) -> dict[str, Json]:
    """Return the terms of tables with a domain, as a register line says them; with a delta they count in rho."""
    cells = {} if domain is None else cells_of(domain)
    rows, person = (1, None) if domain is None else (domain.rows_per_person, domain.person)
    persons: dict[str, Json] = {"rows_per_person": rows, "person": person}
    unit: dict[str, Json] = {"unit": EPSILON if delta is None else RHO, "delta": delta}
    return {**unit, **persons, "cells": cells, "domain": digest(cells)}


@dataclass(frozen=True)
class Terms:
    """What the charges of a data set mean: whom they protect, and which cells they are about."""

    serial: int  # of the register line
    dataset: str
    unit: str
    delta: str | None  # if the unit is rho
    rows_per_person: int
    person: str | None  # the column that says whose row it is
    cells: dict[str, str]  # by column
    domain: str  # the hash of the cells
    others: tuple[str, ...] = ()  # what else it pins

    @classmethod
    def read(cls, line: Line) -> Terms:
        """Return the terms that a register line has recorded."""
        pins = {name: line.body[name] for name in ("unit", "delta", "rows_per_person", "person", "cells", "domain")}
        return cls(line.serial, str(line.dataset), **pins, others=tuple(sorted({*line.body} - {*pins, "sources"})))

    @cached_property
    def in_charges(self) -> dict[str, Json]:
        """What every charge repeats of the terms, so that it can be read alone."""
        unit: dict[str, Json] = {"unit": self.unit} if self.delta is None else {"unit": self.unit, "delta": self.delta}
        return {"terms": self.serial, **unit, "rows_per_person": self.rows_per_person, "domain": self.domain}

    def refuse_unknown(self) -> None:
        """Raise LedgerError if only a later version of privet can charge the data set."""
        known = self.unit in (EPSILON, RHO)
        if not known or self.others:
            what = f"it pins '{self.others[0]}'" if known else f"its budget is counted in {self.unit}"
            raise LedgerError(
                f"the data set '{self.dataset}' cannot be used: {what}, which this version of privet does not know; "
                "open it with the version that registered it."
            )

    def refuse_unit(self, delta: str | None) -> None:
        """Raise PrivacyError if a table is opened with another delta than the charges have, or with none."""
        if delta == self.delta:
            return
        if self.delta is None:
            counted, mend = "epsilon, without a delta", "without one"
        else:
            shown = f"{float(Fraction(self.delta)):g}"
            counted, mend = f"rho, with delta {shown}", f"with delta {shown} (--delta, in Python delta=)"
        raise PrivacyError(
            f"the budget of '{self.dataset}' is counted in {counted}; open it {mend}, or begin a new ledger."
        )

    def words(self, loss: Fraction) -> str:
        """Return an amount of its budget in words."""
        return decimal_text(loss) if self.unit == EPSILON else f"{self.unit} {short_text(loss)}"

    def refuse_weaker(self, domain: Domain) -> None:
        """Raise PrivacyError if a domain breaks the promise of the charges so far.

        It may not say otherwise whose rows are whose, for losses of other people do not add, nor allow a person fewer
        rows than the charges protect.
        """
        if domain.person != self.person:
            names = (self.person, domain.person)
            before, now = (f"by the column '{name}'" if name else "without a column" for name in names)
            raise PrivacyError(
                f"the charges on '{self.dataset}' say {before} who a person is, and the domain says it {now}; open it "
                "with the domain as it was, or begin a new ledger."
            )
        if domain.rows_per_person < self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' protect persons with up to {self.rows_per_person} row(s), and the "
                f"domain says {domain.rows_per_person}; write rows_per_person = {self.rows_per_person} or more in the "
                "domain file."
            )

    def dearer(self, rows: int) -> Fraction:
        """Return how many times as much a person with so many rows has lost: in rho the square of that in epsilon."""
        return Fraction(rows, self.rows_per_person) ** (1 if self.unit == EPSILON else 2)

    def refuse_others(self, domain: Domain) -> None:
        """Raise PrivacyError if a domain says anything that only `Ledger.declare` may change, or nobody."""
        self.refuse_weaker(domain)
        mend = "let its owner record the change with `privet budget declare`, or open it with the domain as it was."
        if domain.rows_per_person > self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' were made for persons with up to {self.rows_per_person} row(s), and "
                f"the domain says {domain.rows_per_person}: what was spent so far costs such a person "
                f"{decimal_text(self.dearer(domain.rows_per_person))} times as much; {mend}"
            )
        cells = cells_of(domain)
        for name in sorted({*self.cells, *cells}) if self.cells else ():  # none: it was registered without a domain
            if cells.get(name) != self.cells.get(name):
                what = "is new" if name not in self.cells else "is gone" if name not in cells else "has other cells"
                raise PrivacyError(
                    f"the domain of '{self.dataset}' is not the one in its ledger: the column '{name}' {what}; {mend}"
                )


class Under(NamedTuple):
    """The data permit that a charge is made under, whose analysts may share a cap, and what for."""

    permit: str
    purpose: str | None = None


@dataclass(frozen=True)
class Charge:
    """What the ledger writes before a question is asked."""

    question: str  # in words
    question_json: str  # canonical JSON
    fingerprint: str  # what makes it this question, on these rows, for this epsilon, and no other
    scope: str
    epsilon: str
    loss: Fraction  # what reaches the table
    key: str | None = None
    opening_token: str = ""  # see `Session.opening_token`
    terms: int | None = None  # the number that `Ledger.register` returned to its table
    under: Under | None = None


@dataclass(frozen=True)
class Entry:
    """A charge in the ledger, with its answer if one is stored."""

    id: int
    analyst: str
    scope: str
    question: str
    epsilon: str
    loss: Fraction
    key: str | None
    at: str
    answer: str | None
    opening_token: str = field(default="", repr=False)

    @classmethod
    def read(cls, line: Line, analyst: str, answer: str | None) -> Entry:
        """Return the entry that the line of a charge is."""
        body, note = line.body, line.note
        words = (body["scope"], body["question"], body["epsilon"])
        loss, key = Fraction(body["loss"]), body.get("key")
        return cls(line.serial, analyst, *words, loss, key, note["at"], answer, note["opening"])


class Answer(NamedTuple):
    """A stored answer."""

    text: str  # what was released, as JSON
    opening_token: str  # of the opening of the table in which it was drawn

    @classmethod
    def read(cls, line: Line) -> Answer:
        """Return the answer in a line; ValueError if the line was written for another."""
        note = line.note
        if sha256(note["answer"]) != line.body["sha256"]:
            raise ValueError(f"the answer in line {line.number} is another")
        return cls(note["answer"], note["opening"])


@dataclass(frozen=True)
class Hold:
    """An open reservation: a part of a budget that is kept for one analyst."""

    id: int
    analyst: str
    epsilon: Fraction
    spent: Fraction
    at: str
    permit: str | None = None

    @property
    def left(self) -> Fraction:
        return max(self.epsilon - self.spent, ZERO)  # so that no hold can add to a budget


class CapChange(NamedTuple):
    """What an owner's word does to a cap: it becomes `base + more`, or grows by `more`; without a cap none is made."""

    dataset: str
    analyst: str | None  # None: the data set's own
    base: Fraction | None
    more: Fraction
    permit: str | None = None  # or that of a permit


class Account(NamedTuple):
    """What was spent on a data set, by everybody or by one analyst, and what is left to a charge.

    Write `open` for what the open holds have left: for the data set everybody's, for an analyst their own. A new
    hold, and a charge outside, need `spent + open + loss <= cap`. A charge that its hold can pay needs `spent + loss
    <= cap`; one that goes beyond needs room for what the other holds have left, too.

    So `spent <= cap` after every charge, whatever the holds say. And `spent + open <= cap` while no cap is lowered:
    what a hold pays moves from `open` to `spent`, all else was checked against the sum, and an end only lowers it.
    Hence a charge that its hold can pay is never refused: `spent + loss <= spent + open`.
    """

    whose: str
    spent: Fraction
    cap: Fraction | None = None  # None: there is no cap
    limit: Fraction = ZERO  # the cap, or less in this opening of the data; a hold had to pass it when it was made
    left: Fraction = ZERO
    reserved: Fraction = ZERO  # by others
    words: Callable[[Fraction], str] = decimal_text  # an amount in words

    def refuse_beyond(self, loss: Fraction, asked: str) -> None:
        """Raise BudgetExceeded if too little is left for a loss."""
        if self.cap is not None and loss > self.left:
            left = max(self.left, ZERO)
            reserved = f" beside {self.words(self.reserved)} in reservations" if self.reserved else ""
            mend = "Lower epsilon, or ask" if left else "Ask"
            raise BudgetExceeded(
                f"cannot {asked}: {self.words(loss)} of it reaches {self.whose}, which has {self.words(left)} left "
                f"of {self.words(self.limit)}{reserved}. {mend} the data owner for more.",
                requested=loss,
                remaining=left,
            )


# -- the log ------------------------------------------------------------------------------------


class PermitTotals:
    """What was charged under each permit, as far as the charges of a data set were read.

    A charge under a permit carries the total after it. No column finds the last one, so every charge is read once, and
    what follows is read when it is needed. Only lines that are committed may be read here: numbers of others come back.
    """

    def __init__(self) -> None:
        self._read: dict[str, tuple[int, dict[str, Fraction]]] = {}  # by data set: the last line, and totals by permit
        self._lock = threading.Lock()

    def of(self, log: Log, dataset: str) -> Mapping[str, Fraction]:
        """Return the totals of a data set's permits, in a transaction that has written nothing yet."""
        with self._lock:
            number, totals = self._read.get(dataset, (0, {}))
            condition = f"kind = 'charge' AND dataset = ? AND number > ? ORDER BY number LIMIT {_PAGE}"
            while page := log.lines(condition, dataset, number):
                number = page[-1].number
                spent = {line.body["permit"]: line.body["permit_spent"] for line in page if "permit" in line.body}
                totals = {**totals, **{permit: Fraction(total) for permit, total in spent.items()}}
            self._read[dataset] = number, totals
            return totals


@dataclass
class Log:
    """The log inside one transaction."""

    store: Store
    run: Run  # runs a statement in the transaction
    ledger_id: str  # stands in every line, so that no line passes for one of another ledger
    clock: Callable[[], str]  # returns the time now, as text: a day, and after a "T" the time of day
    random_bytes: Callable[[int], bytes]  # returns so many
    permit_totals: PermitTotals = field(default_factory=PermitTotals)
    _analyst_ids: dict[str, str] = field(default_factory=dict)  # those that were looked up

    def append(
        self, kind: str, dataset: str | None, analyst: str | None, body: Body, note: Body | None = None, at: str = ""
    ) -> Line:
        """Write a line of one of the `KINDS` under the next number; return it.

        `analyst` is an id, `body` what the line says, `note` what stands with it besides. `at` is a time, or now.
        """
        assert kind in KINDS
        serial = f"(SELECT max(serial) FROM lines WHERE kind = '{kind}')"
        number, serial = self.run(f"SELECT {self.store.last_number} + 1, coalesce({serial}, 0) + 1").fetchone()
        at = at or self.clock()
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
            whole = leaf_hash(text) == leaf and end == len(text) and line["note"] == sha256(note_text)
            if not whole or line["ledger"] != self.ledger_id or _found_by(line) != columns:
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

    def new_analyst_id(self, name: str | None) -> str | None:
        """Return the id of an analyst, who gets one if they have none; None for nobody."""
        if name is not None and self.analyst_id(name) == UNKNOWN:
            secret = self._salt()
            self._analyst_ids[name] = commitment(secret, name)
            self.run("INSERT INTO analysts VALUES (?, ?, ?)", self._analyst_ids[name], name, secret)
        return None if name is None else self._analyst_ids[name]

    def analyst_names(self) -> dict[str, str]:
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
        if any(commitment(secret, *texts) != identity for identity, *texts, secret in rows):
            raise ValueError("the text behind an id is damaged")
        return [row[:-1] for row in rows]

    def _salt(self) -> str:
        return self.random_bytes(16).hex()

    # -- what it says now -------------------------------------------------------------------

    def terms(self, dataset: str) -> Terms | None:
        """Return the terms of a data set, if it is registered."""
        line = self.last("register", dataset=dataset, analyst=None)
        return None if line is None else Terms.read(line)

    def known_terms(self, dataset: str, mend: str = "`privet budget show` lists them") -> Terms:
        """Return the terms of a data set; LedgerError if it is not registered."""
        terms = self.terms(dataset)
        if terms is None:
            raise LedgerError(f"the ledger '{self.store.path}' has no data set '{dataset}'; {mend}.")
        return terms

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what was charged to a data set, by everybody or by one analyst."""
        columns = {} if analyst is None else {"analyst": self.analyst_id(analyst)}
        line = self.last("charge", dataset=dataset, **columns)
        return Fraction(0 if line is None else line.body["analyst_spent" if columns else "dataset_spent"])

    def cap(self, dataset: str, analyst: str | None = None, permit: str | None = None) -> Fraction | None:
        """Return what may be spent on a data set in all, or by one analyst or under a permit if that was set."""
        whose = None if analyst is None else self.analyst_id(analyst)
        line = self.last("cap", dataset=dataset, analyst=whose, key=permit)
        return None if line is None else Fraction(line.body["cap"])

    def accounts(
        self,
        terms: Terms,
        analyst: str,
        holds: Collection[Hold],
        limit: Fraction | None,
        held: Hold | None,
        permit: str | None = None,
    ) -> Iterator[Account]:
        """Return the account of the data set of these terms, an analyst's own on it, and a permit's if there is one.

        `holds` are the open ones of the data set, `held` is the one that pays, and `limit` caps the data set's total
        in this opening of the data.
        """
        dataset, words = terms.dataset, terms.words
        whole = self.cap(dataset)
        if whole is None:
            raise ValueError("a data set has a cap from its first line on")

        def account(
            whose: str, spent: Fraction, cap: Fraction | None, own: list[Hold], limit: Fraction | None = None
        ) -> Account:
            if cap is None:
                return Account(whose, spent)
            lower = cap if limit is None else min(cap, limit)
            reserved = sum((hold.left for hold in own if hold != held), ZERO)
            inside = min(held.left, cap - spent) if held else min(ZERO, lower - spent)
            return Account(whose, spent, cap, lower, max(inside, lower - spent - reserved), reserved, words)

        yield account(f"ledger '{dataset}'", self.spent(dataset), whole, list(holds), limit)
        cap, own = self.cap(dataset, analyst), [hold for hold in holds if hold.analyst == analyst]
        yield account(f"the budget of '{analyst}' on '{dataset}'", self.spent(dataset, analyst), cap, own)
        if permit is not None:
            cap, own = self.cap(dataset, permit=permit), [hold for hold in holds if hold.permit == permit]
            spent = self.permit_totals.of(self, dataset).get(permit, ZERO)
            yield account(f"the permit '{permit}' on '{dataset}'", spent, cap, own)

    def shares(self, dataset: str) -> list[tuple[str, Under | None, Fraction]]:
        """Return what each analyst has spent on a data set under each permit, and under none."""
        names, spent = self.analyst_names(), defaultdict[tuple[str, str | None], Fraction](Fraction)
        for line in self.every_line():
            if line.kind == "charge" and line.dataset == dataset:
                spent[names[str(line.analyst)], line.body.get("permit")] += Fraction(line.body["loss"])
        shares = sorted(spent.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        return [(name, None if permit is None else Under(permit), total) for (name, permit), total in shares]

    def analysts(self, dataset: str) -> list[str]:
        """Return the names of everyone with an entry, a reservation or a cap of their own."""
        query = "SELECT 1 FROM lines WHERE dataset = ? AND analyst = ? AND kind IN ('charge', 'hold', 'cap') LIMIT 1"
        names = self.analyst_names().items()
        return sorted(name for identity, name in names if self.run(query, dataset, identity).fetchone())

    def open_holds(self, dataset: str) -> dict[int, Hold]:
        """Return the holds that have not ended, by their numbers."""
        holds = {}
        for (number,) in self.run("SELECT hold FROM open_holds WHERE dataset = ? ORDER BY hold", dataset).fetchall():
            line, paid = self.last("hold", serial=number), self.last("charge", reference=number)
            assert line is not None
            used = Fraction(0 if paid is None else paid.body["reservation_spent"])
            ((_, name),) = self._named(f"{_ANALYSTS} WHERE id = ?", line.analyst)
            permit = line.body.get("permit")
            holds[number] = Hold(number, name, Fraction(line.body["held"]), used, line.note["at"], permit)
        return holds

    def keyed(self, dataset: str, analyst: str, key: str) -> Line | None:
        """Return the charge under an analyst's key, if there is one."""
        return self.last("charge", dataset=dataset, analyst=self.analyst_id(analyst), key=key)

    def standing(self, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
        """Return the entry under an analyst's key, if there is one; KeyReused if it is for something else."""
        line = None if key is None else self.keyed(dataset, analyst, key)
        if line is None:
            return None
        if line.note["fingerprint"] != fingerprint:
            raise KeyReused(f"the key '{key}' stands for another scope, question or epsilon; use a new key for this.")
        answer = self.answer(line.serial)
        return Entry.read(line, analyst, None if answer is None else answer.text)

    def answer(self, entry: int) -> Answer | None:
        """Return the stored answer of an entry, if there is one."""
        line = self.last("answer", reference=entry)
        return None if line is None else Answer.read(line)

    def entries(self, dataset: str, analyst: str | None) -> list[Entry]:
        """Return all charges to a data set, or those of one analyst, with their answers."""
        names = self.analyst_names()
        condition, values = "kind = 'charge' AND dataset = ?", [dataset]
        if analyst is not None:
            condition, values = f"{condition} AND analyst = ?", [dataset, self.analyst_id(analyst)]
        answered = f"kind = 'answer' AND reference IN (SELECT serial FROM lines WHERE {condition})"
        answers = {line.body["entry"]: Answer.read(line).text for line in self.lines(answered, *values)}
        charges = self.lines(f"{condition} ORDER BY number", *values)
        return [Entry.read(line, names[str(line.analyst)], answers.get(line.serial)) for line in charges]

    def page(self, dataset: str, analyst: str, after: int, most: int) -> list[tuple[Entry, bool]]:
        """Return so many charges of an analyst after an entry, and whether each is answered; no answer is read."""
        condition = "kind = 'charge' AND dataset = ? AND analyst = ? AND serial > ? ORDER BY number LIMIT ?"
        values = dataset, self.analyst_id(analyst), after, most
        within = f"SELECT serial FROM lines WHERE {condition}"
        query = f"SELECT reference FROM lines WHERE kind = 'answer' AND reference IN ({within})"
        answered = {entry for (entry,) in self.run(query, *values).fetchall()}
        charges = self.lines(condition, *values)
        return [(Entry.read(line, analyst, None), line.serial in answered) for line in charges]

    def change_cap(self, change: CapChange) -> None:
        """Write the cap that follows from what there is."""
        self.known_terms(change.dataset)
        cap = self.cap(change.dataset, change.analyst, change.permit) if change.base is None else change.base
        if cap is not None:
            body: dict[str, Json] = {"cap": str(max(cap + change.more, ZERO))}
            body |= {} if change.permit is None else {"permit": change.permit}
            self.append("cap", change.dataset, self.new_analyst_id(change.analyst), body)

    def write_charge(
        self, analyst: str, charge: Charge, terms: Terms, accounts: Iterable[Account], held: Hold | None = None
    ) -> Entry:
        """Write the line of a charge; `accounts` and `held` are those before it."""
        everybody, own, *shared = accounts
        body = {
            "key": charge.key,
            "question": charge.question,
            "scope": charge.scope,
            "epsilon": charge.epsilon,
            "loss": str(charge.loss),
            "dataset_spent": str(everybody.spent + charge.loss),
            "dataset_cap": str(everybody.cap),
            "analyst_spent": str(own.spent + charge.loss),
            "analyst_cap": None if own.cap is None else str(own.cap),
            "reservation": None if held is None else held.id,
            "reservation_spent": None if held is None else str(min(held.epsilon, held.spent + charge.loss)),
            "version": __version__,
            **terms.in_charges,
        }
        if charge.under is not None:
            (permit,) = shared
            body |= {
                **charge.under._asdict(),
                "permit_spent": str(permit.spent + charge.loss),
                "permit_cap": None if permit.cap is None else str(permit.cap),
            }
        body = {name: value for name, value in body.items() if value is not None}
        # a hash of the place of the rows among others: whoever saw it could check a guess of a path
        note = {"fingerprint": charge.fingerprint, "opening": charge.opening_token, "question": charge.question_json}
        words, at = (charge.scope, charge.question, charge.epsilon), self.clock()
        line = self.append("charge", terms.dataset, self.new_analyst_id(analyst), body, note, at)
        return Entry(line.serial, analyst, *words, charge.loss, charge.key, at, None, charge.opening_token)

    def write_answer(self, charge: Line, answer: Answer, private: bool) -> None:
        """Write the line of an answer to a charge; `private` says whether its noise is real."""
        body: dict[str, Json] = {"entry": charge.serial, "private": private, "sha256": sha256(answer.text)}
        note = {"answer": answer.text, "opening": answer.opening_token}
        self.append("answer", charge.dataset, charge.analyst, body, note, charge.day)
