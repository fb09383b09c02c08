"""The durable record of every charge: one SQLite file, append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash
may waste budget and never leaks it. Losses are fractions written as text; nothing is
rounded. Each entry carries the totals after it, which are checked when the file is
opened. Triggers refuse to change or delete what was written.

A data set has a cap over all analysts, an analyst may have a cap of their own; caps
are appended too, and the last one counts. Many threads and processes may share the
file: a charge is one immediate transaction.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide
who may use what is left: that no cap is passed never depends on them.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

from privet.column import decimal_text
from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError

FORMAT = 2
MEMORY = ":memory:"
_WAIT_SECONDS = 120.0

_SCHEMA = """
BEGIN;
CREATE TABLE format (version INTEGER NOT NULL);
CREATE TABLE datasets (
    name TEXT PRIMARY KEY, source TEXT NOT NULL, rows_per_person INTEGER NOT NULL, at TEXT NOT NULL);
CREATE TABLE caps (
    id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, analyst TEXT, cap TEXT NOT NULL,
    at TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, analyst TEXT NOT NULL,
    scope TEXT NOT NULL, question TEXT NOT NULL, epsilon TEXT NOT NULL, loss TEXT NOT NULL, key TEXT,
    fingerprint TEXT NOT NULL, at TEXT NOT NULL, dataset_spent TEXT NOT NULL, analyst_spent TEXT NOT NULL,
    UNIQUE (dataset, key));
CREATE TABLE answers (entry INTEGER PRIMARY KEY REFERENCES entries, answer TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX by_analyst ON entries (dataset, analyst);
"""


def _append_only(*tables: str) -> list[str]:
    return [
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for table in tables
        for verb in ("UPDATE", "DELETE")
    ]


# From format 1 to 2, which has holds. A new file takes the same steps as an old one, so that both are alike.
_UPGRADE = (
    "CREATE TABLE holds (id INTEGER PRIMARY KEY AUTOINCREMENT, dataset TEXT NOT NULL REFERENCES datasets, "
    "analyst TEXT NOT NULL, epsilon TEXT NOT NULL, at TEXT NOT NULL)",
    "CREATE TABLE ends (hold INTEGER PRIMARY KEY REFERENCES holds, at TEXT NOT NULL)",
    "ALTER TABLE entries ADD COLUMN hold INTEGER REFERENCES holds",
    "ALTER TABLE entries ADD COLUMN hold_spent TEXT",
    "CREATE INDEX by_hold ON entries (hold) WHERE hold IS NOT NULL",
    "CREATE INDEX by_dataset ON entries (dataset)",  # the last total is found without sorting all of them
    *_append_only("holds", "ends"),
)
_SCHEMA += "".join(f"{each};\n" for each in (*_append_only("datasets", "caps", "entries", "answers"), *_UPGRADE))
_SCHEMA += f"INSERT INTO format VALUES ({FORMAT});\nCOMMIT;\n"
_NAMES = set(re.findall(r"CREATE (?:TABLE|INDEX|TRIGGER) (\w+)", _SCHEMA))


@dataclass(frozen=True)
class Charge:
    """What is to be written down before a question is asked."""

    question: str
    scope: str
    epsilon: str
    loss: Fraction
    fingerprint: str
    key: str | None = None


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    id: int
    analyst: str
    scope: str
    question: str
    epsilon: str
    loss: Fraction
    key: str | None
    at: str
    answer: str | None


@dataclass(frozen=True)
class Hold:
    """An open reservation: so much of a budget is kept for one analyst."""

    id: int
    analyst: str
    epsilon: Fraction
    spent: Fraction
    at: str

    @property
    def left(self) -> Fraction:
        return max(self.epsilon - self.spent, Fraction(0))  # so that no hold can add to a budget


@dataclass(frozen=True)
class _Room:
    """What a cap, or a hold, leaves to a charge."""

    whose: str
    cap: Fraction
    left: Fraction
    reserved: Fraction = Fraction(0)  # by others

    def refuse_beyond(self, loss: Fraction, asked: str) -> None:
        if loss > self.left:
            left = max(self.left, Fraction(0))
            reserved = f" beside {decimal_text(self.reserved)} in reservations" if self.reserved else ""
            raise BudgetExceeded(
                f"cannot {asked}: {decimal_text(loss)} of it reaches {self.whose}, which has {decimal_text(left)} left "
                f"of {decimal_text(self.cap)}{reserved}. Lower epsilon, or ask the data owner for more.",
                requested=loss,
                remaining=left,
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """A ledger file, or a ledger in memory that lives as long as the process.

    >>> ledger = Ledger.open(MEMORY)
    >>> ledger.register("patients", source="a frame", budget=Fraction(1))
    >>> entry, new = ledger.charge("patients", "ada", Charge("count", "all rows", "0.4", Fraction(2, 5), "f1", key="k"))
    >>> ledger.store(entry.id, "[42]")
    '[42]'
    >>> entry, new = ledger.charge("patients", "ada", Charge("count", "all rows", "0.4", Fraction(2, 5), "f1", key="k"))
    >>> new, entry.answer, ledger.spent("patients")
    (False, '[42]', Fraction(2, 5))
    """

    def __init__(self, path: str, clock: Callable[[], str] = _now) -> None:
        self.path = path
        self._clock = clock
        self._connect()

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True, clock: Callable[[], str] = _now) -> Ledger:
        """Open a ledger file, creating it where it does not exist."""
        text = str(path)
        if text == MEMORY:
            ledger = cls(text, clock)
            ledger._connection.executescript(_SCHEMA)
            return ledger
        if not Path(text).exists():
            if not create:
                raise LedgerError(f"there is no ledger at '{text}'; open the table once, or check the path.")
            _create(Path(text))
        ledger = cls(text, clock)
        ledger._upgrade()
        with ledger._transaction("read the ledger", write=False) as run:
            ledger._check(run)
        return ledger

    @property
    def durable(self) -> bool:
        return self.path != MEMORY

    def register(self, dataset: str, *, source: str, budget: Fraction | None, rows_per_person: int = 1) -> None:
        """Record a data set at its first opening; check the budget at later ones."""
        with self._transaction("register the data set") as run:
            for (name,) in run("SELECT name FROM datasets WHERE source = ? AND name <> ?", source, dataset):
                raise LedgerError(
                    f"the ledger '{self.path}' knows this data as '{name}', not as '{dataset}'; open it under that "
                    "name, so that its spending goes on."
                )
            known = run("SELECT rows_per_person FROM datasets WHERE name = ?", dataset).fetchone()
            if known is not None and known[0] > rows_per_person:
                raise PrivacyError(
                    f"the ledger of '{dataset}' was begun for persons with up to {known[0]} rows, the domain now says "
                    f"{rows_per_person}; the promise made so far is for {known[0]}: declare that or more."
                )
            if known is None:
                if budget is None:
                    raise LedgerError(
                        f"the data set '{dataset}' has no budget yet; give one at its first opening, as budget=\"1.0\"."
                    )
                run("INSERT INTO datasets VALUES (?, ?, ?, ?)", dataset, source, rows_per_person, self._clock())
                self._cap(run, dataset, None, budget)
            recorded = self._caps(run, dataset, None)
            if budget is not None and recorded is not None and budget > recorded:
                raise PrivacyError(
                    f"the budget {decimal_text(budget)} asked for '{dataset}' is above the {decimal_text(recorded)} in "
                    "its ledger; open it with that or less, or let its owner raise it with `privet budget grant`."
                )

    def charge(
        self, dataset: str, analyst: str, charge: Charge, limit: Fraction | None = None, hold: int | None = None
    ) -> tuple[Entry, bool]:
        """Write a charge; or find the one that stands under the same key. The flag says whether it is new.

        `limit` caps the data set's total for this call, on top of the recorded caps. A
        `hold` pays the first epsilon of its charges; what goes beyond is charged as
        without it.
        """
        with self._transaction("write to the ledger") as run:
            standing = self._standing(run, dataset, analyst, charge.key, charge.fingerprint)
            if standing is not None:
                return standing, False
            asked = f"charge epsilon={charge.epsilon} for {charge.question} on {charge.scope}"
            held = None if hold is None else self._open_hold(run, dataset, analyst, hold, charge.loss, asked)
            for room in self._rooms(run, dataset, analyst, limit, held):
                room.refuse_beyond(charge.loss, asked)
            total, own = self._spent(run, dataset, None), self._spent(run, dataset, analyst)
            cursor = run(
                "INSERT INTO entries (dataset, analyst, scope, question, epsilon, loss, key, fingerprint, at, "
                "dataset_spent, analyst_spent, hold, hold_spent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(dataset, analyst, charge.scope, charge.question, charge.epsilon, str(charge.loss), charge.key),
                *(charge.fingerprint, self._clock(), str(total + charge.loss), str(own + charge.loss), hold),
                None if held is None else str(min(held.epsilon, held.spent + charge.loss)),
            )
            entry = next(self._entries(run, "id = ?", cursor.lastrowid))
        return entry, True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """The charge that stands under a key, if there is one."""
        with self._transaction("read the ledger", write=False) as run:
            return self._standing(run, dataset, analyst, key, fingerprint)

    def fingerprint(self, dataset: str, key: str) -> str | None:
        """What the charge under a key was written for, if there is one."""
        with self._transaction("read the ledger", write=False) as run:
            found = run("SELECT fingerprint FROM entries WHERE dataset = ? AND key = ?", dataset, key).fetchone()
        return None if found is None else str(found[0])

    def answer(self, entry: int) -> str:
        """The stored answer of an entry that has one."""
        with self._transaction("read the ledger", write=False) as run:
            return str(run("SELECT answer FROM answers WHERE entry = ?", entry).fetchone()[0])

    def store(self, entry: int, answer: str) -> str:
        """Store an answer; the one stored first is the only one that may be released."""
        with self._transaction("store an answer") as run:
            run("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", entry, answer, self._clock())
            return str(run("SELECT answer FROM answers WHERE entry = ?", entry).fetchone()[0])

    def hold(
        self,
        dataset: str,
        analyst: str,
        epsilon: Fraction,
        limit: Fraction | None = None,
        *,
        asked: Fraction | None = None,
        within: int | None = None,
    ) -> int:
        """Hold a part of the budget for an analyst until `end`: nobody else can spend it. The number of the hold.

        `asked` is what the analyst asked for, where less of it reaches the ledger.
        `within` a hold nothing is written: that one goes on if it has so much left.
        """
        text = f"reserve epsilon={decimal_text(epsilon if asked is None else asked)}"
        with self._transaction("write to the ledger") as run:
            outer = None if within is None else self._open_hold(run, dataset, analyst, within, epsilon, text)
            for room in self._rooms(run, dataset, analyst, limit, outer):
                room.refuse_beyond(epsilon, text)
            if outer is not None:
                _Room(f"reservation {outer.id}", outer.epsilon, outer.left).refuse_beyond(epsilon, text)
                return outer.id
            query = "INSERT INTO holds (dataset, analyst, epsilon, at) VALUES (?, ?, ?, ?)"
            return int(run(query, dataset, analyst, str(epsilon), self._clock()).lastrowid)

    def end(self, hold: int) -> Fraction:
        """End a hold, once or again; what it had left, which everybody may charge now."""
        with self._transaction("end a reservation") as run:
            found = run("SELECT dataset FROM holds WHERE id = ?", hold).fetchone()
            if found is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            left = sum((each.left for each in self._holds(run, found[0]) if each.id == hold), Fraction(0))
            run("INSERT OR IGNORE INTO ends VALUES (?, ?)", hold, self._clock())
        return left

    def holds(self, dataset: str) -> list[Hold]:
        """The open reservations of a data set."""
        with self._transaction("read the ledger", write=False) as run:
            return self._holds(run, dataset)

    def set_cap(self, dataset: str, analyst: str | None, cap: Fraction) -> None:
        """Set what a data set, or one analyst on it, may spend in all. For its owner."""
        with self._transaction("change a budget") as run:
            self._known(run, dataset)
            self._cap(run, dataset, analyst, cap)

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        with self._transaction("read the ledger", write=False) as run:
            return self._spent(run, dataset, analyst)

    def cap(self, dataset: str, analyst: str | None = None) -> Fraction | None:
        """The cap of a data set, or an analyst's own cap on it where one was set."""
        with self._transaction("read the ledger", write=False) as run:
            return self._caps(run, dataset, analyst)

    def remaining(self, dataset: str, analyst: str, limit: Fraction | None = None, hold: int | None = None) -> Fraction:
        """The largest loss that this analyst may charge now, to a hold or without; other holds keep what is theirs."""
        with self._transaction("read the ledger", write=False) as run:
            held = next((each for each in self._holds(run, dataset) if each.id == hold), None)
            if held is None and hold is not None:
                return Fraction(0)
            return max(min(room.left for room in self._rooms(run, dataset, analyst, limit, held)), Fraction(0))

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        with self._transaction("read the ledger", write=False) as run:
            if analyst is None:
                return list(self._entries(run, "dataset = ?", dataset))
            return list(self._entries(run, "dataset = ? AND analyst = ?", dataset, analyst))

    def datasets(self) -> list[str]:
        with self._transaction("read the ledger", write=False) as run:
            return [name for (name,) in run("SELECT name FROM datasets ORDER BY name")]

    def analysts(self, dataset: str) -> list[str]:
        """Everyone with an entry, a reservation or a cap of their own."""
        with self._transaction("read the ledger", write=False) as run:
            self._known(run, dataset)
            query = (
                "SELECT analyst FROM entries WHERE dataset = ?1 UNION "
                "SELECT analyst FROM holds WHERE dataset = ?1 UNION "
                "SELECT analyst FROM caps WHERE dataset = ?1 AND analyst IS NOT NULL ORDER BY 1"
            )
            return [name for (name,) in run(query, dataset)]

    # -- inside one transaction -------------------------------------------------------------

    def _known(self, run: _Run, dataset: str) -> None:
        if run("SELECT 1 FROM datasets WHERE name = ?", dataset).fetchone() is None:
            raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; `privet budget show` lists them.")

    def _standing(self, run: _Run, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
        query = "SELECT analyst, fingerprint, id FROM entries WHERE dataset = ? AND key = ?"
        found = None if key is None else run(query, dataset, key).fetchone()
        if found is None:
            return None
        if found[:2] != (analyst, fingerprint):
            raise KeyReused(
                f"the key '{key}' stands for another analyst, scope, question or epsilon; use a new key for this."
            )
        return next(self._entries(run, "id = ?", found[2]))

    def _rooms(
        self, run: _Run, dataset: str, analyst: str, limit: Fraction | None, hold: Hold | None
    ) -> Iterator[_Room]:
        """What the cap of the data set, and the analyst's own where there is one, leave to a charge.

        Write `open` for what the open holds have left: for the data set everybody's, for
        an analyst their own. A new hold, and a charge outside, need `spent + open + loss <=
        cap`. A charge that its hold can pay needs `spent + loss <= cap`; one that goes
        beyond needs room for what the other holds have left, too.

        So `spent <= cap` after every charge, whatever the holds say. And `spent + open <=
        cap` while no cap is lowered: what a hold pays moves from `open` to `spent`, all
        else was checked against the sum, and an end only lowers it. Hence a charge that
        its hold can pay is never refused: `spent + loss <= spent + open`.

        `limit` belongs to one opening of the data; a hold had to pass it when it was made.
        """
        holds = self._holds(run, dataset)
        for who in (None, analyst):
            cap = self._caps(run, dataset, who)
            if cap is None and who is None:
                raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; open the table again.")
            if cap is None:
                continue
            whose = f"ledger '{dataset}'" if who is None else f"the budget of '{who}' on '{dataset}'"
            lower = cap if who is not None or limit is None else min(cap, limit)
            spent = self._spent(run, dataset, who)
            others = (each.left for each in holds if who in (None, each.analyst) and (not hold or each.id != hold.id))
            reserved = sum(others, Fraction(0))
            inside = min(hold.left, cap - spent) if hold else min(Fraction(0), lower - spent)
            yield _Room(whose, lower, max(inside, lower - spent - reserved), reserved)

    def _holds(self, run: _Run, dataset: str) -> list[Hold]:
        query = (
            "SELECT id, analyst, epsilon, at, "
            "(SELECT hold_spent FROM entries WHERE hold = holds.id ORDER BY entries.id DESC LIMIT 1) "
            "FROM holds WHERE dataset = ? AND id NOT IN (SELECT hold FROM ends) ORDER BY id"
        )
        return [
            Hold(number, analyst, Fraction(epsilon), Fraction(spent or 0), at)
            for number, analyst, epsilon, at, spent in run(query, dataset)
        ]

    def _open_hold(self, run: _Run, dataset: str, analyst: str, hold: int, loss: Fraction, asked: str) -> Hold:
        for each in self._holds(run, dataset):
            if (each.id, each.analyst) == (hold, analyst):
                return each
        raise BudgetExceeded(
            f"cannot {asked}: reservation {hold} of '{analyst}' on '{dataset}' has ended. Reserve again, or ask the "
            "table itself.",
            requested=loss,
            remaining=Fraction(0),
        )

    def _spent(self, run: _Run, dataset: str, analyst: str | None) -> Fraction:
        if analyst is None:
            query = "SELECT dataset_spent FROM entries WHERE dataset = ? ORDER BY id DESC LIMIT 1"
            row = run(query, dataset).fetchone()
        else:
            query = "SELECT analyst_spent FROM entries WHERE dataset = ? AND analyst = ? ORDER BY id DESC LIMIT 1"
            row = run(query, dataset, analyst).fetchone()
        return Fraction(0) if row is None else Fraction(row[0])

    def _caps(self, run: _Run, dataset: str, analyst: str | None) -> Fraction | None:
        row = run(
            "SELECT cap FROM caps WHERE dataset = ? AND analyst IS ? ORDER BY id DESC LIMIT 1", dataset, analyst
        ).fetchone()
        return None if row is None else Fraction(row[0])

    def _cap(self, run: _Run, dataset: str, analyst: str | None, cap: Fraction) -> None:
        run(
            "INSERT INTO caps (dataset, analyst, cap, at) VALUES (?, ?, ?, ?)",
            dataset,
            analyst,
            str(cap),
            self._clock(),
        )

    def _entries(self, run: _Run, condition: str, *values: object) -> Iterator[Entry]:
        query = (
            "SELECT id, analyst, scope, question, epsilon, loss, key, entries.at, answer FROM entries "
            f"LEFT JOIN answers ON entry = id WHERE {condition} ORDER BY id"
        )
        for row in run(query, *values):
            yield Entry(row[0], row[1], row[2], row[3], row[4], Fraction(row[5]), row[6], row[7], row[8])

    def _upgrade(self) -> None:
        """Bring a file of format 1 to this one, as a whole or not at all; no line of it changes."""

        def is_old(run: _Run) -> bool:
            return bool(run("SELECT version FROM format").fetchall() == [(1,)])

        with self._transaction("read the ledger", write=False) as run:
            old = is_old(run)
        if old:
            with self._transaction("upgrade the ledger") as run:
                if is_old(run):  # nobody else was faster
                    for statement in _UPGRADE:
                        run(statement)
                    run("UPDATE format SET version = ?", FORMAT)
                self._check(run)  # a damaged file stays as it is

    def _check(self, run: _Run) -> None:
        """Refuse a file that is no whole ledger, or whose totals do not follow from its entries."""
        found = {name for (name,) in run("SELECT name FROM sqlite_master")}
        sound = found >= _NAMES and run("SELECT version FROM format").fetchall() == [(FORMAT,)]
        sound = sound and run("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        if sound:
            for table in ("datasets", "caps", "entries", "answers", "holds", "ends"):
                for _ in run(f"SELECT * FROM {table}"):  # raises where a text is no text any more
                    pass
            # Numbers are given out one by one and remembered apart: a line that is lost leaves a gap.
            for table in ("entries", "caps", "holds"):
                last = run("SELECT seq FROM sqlite_sequence WHERE name = ?", table).fetchone() or (0,)
                count = run(f"SELECT count(*), coalesce(max(id), 0) FROM {table}").fetchone()
                sound = sound and count == (last[0], last[0])
            holds = {
                number: (dataset, analyst, Fraction(epsilon))
                for number, dataset, analyst, epsilon in run("SELECT id, dataset, analyst, epsilon FROM holds")
            }
            sound = sound and all(epsilon >= 0 for _, _, epsilon in holds.values())
            sound = sound and all(hold in holds for (hold,) in run("SELECT hold FROM ends"))
            totals: dict[tuple[str, str | None], Fraction] = {}
            paid: dict[int, Fraction] = {}
            rows = run(
                "SELECT dataset, analyst, loss, dataset_spent, analyst_spent, hold, hold_spent FROM entries ORDER BY id"
            )
            for dataset, analyst, loss, dataset_spent, analyst_spent, hold, hold_spent in rows:
                for whose, total in (((dataset, None), dataset_spent), ((dataset, analyst), analyst_spent)):
                    totals[whose] = totals.get(whose, Fraction(0)) + Fraction(loss)
                    sound = sound and totals[whose] == Fraction(total)
                if hold is None:
                    sound = sound and hold_spent is None
                else:
                    *owner, epsilon = holds[hold]
                    paid[hold] = min(paid.get(hold, Fraction(0)) + Fraction(loss), epsilon)
                    sound = sound and owner == [dataset, analyst] and paid[hold] == Fraction(hold_spent)
        if not sound:
            raise LedgerError(_corrupt(self.path))

    # -- the connection ---------------------------------------------------------------------

    def _connect(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        # mode=rw: a ledger that has gone must not be begun anew
        place = f"file:{quote(str(Path(self.path).absolute()))}?mode=rw" if self.durable else self.path
        try:
            self._connection = sqlite3.connect(
                place, uri=self.durable, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            # With a rollback journal EXTRA means: a commit is on the disk before it returns, power loss included.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._file = os.stat(self.path).st_ino if self.durable else 0
            self._finalizer = weakref.finalize(self, _close, self._connection, self._process)
            problem: Exception | None = None
        except (sqlite3.Error, OSError, ValueError) as error:
            problem = error
        if problem is not None:
            raise LedgerError(self._explain("open the ledger", problem))

    @contextmanager
    def _transaction(self, purpose: str, write: bool = True) -> Iterator[_Run]:
        if os.getpid() != self._process:
            if not self.durable:
                raise PrivacyError(
                    "this ledger lives in the memory of another process; open the table again, or with ledger=FILE."
                )
            _abandoned.append(self._connection)  # a connection must not be used, nor closed, after a fork
            self._connect()
        if write and self.durable and not self._in_place():
            raise LedgerError(f"the ledger '{self.path}' was moved or removed; put it back, or open the table again.")
        problem: Exception | None = None
        with self._lock:
            try:
                try:
                    self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    yield lambda sql, *values: self._connection.execute(sql, values)
                    self._connection.execute("COMMIT")
                finally:  # an interrupt can come anywhere
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
            except (sqlite3.Error, ArithmeticError, LookupError, TypeError, ValueError) as error:
                problem = error  # all but the first kind: what was read is not what this class writes
        if problem is not None:
            raise LedgerError(self._explain(purpose, problem))

    def _in_place(self) -> bool:
        """Whether the path still leads to the open file: SQLite would go on writing to one that was removed."""
        try:
            return os.stat(self.path).st_ino == self._file
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the file; what was charged stays in it."""
        self._finalizer()

    def _explain(self, purpose: str, error: Exception) -> str:
        text = str(error)
        if "locked" in text:
            return f"cannot {purpose} '{self.path}': another process holds it for too long; try again."
        if "readonly" in text or "unable to open" in text or "disk I/O" in text:
            return f"cannot {purpose} '{self.path}': it cannot be written there; make it writable, or pass ledger=FILE."
        if "full" in text:
            return f"cannot {purpose} '{self.path}': the disk is full; nothing was charged."
        return _corrupt(self.path)


_Run = Callable[..., Any]
_abandoned: list[sqlite3.Connection] = []


def _close(connection: sqlite3.Connection, process: int) -> None:
    if os.getpid() == process:  # a connection must not be closed after a fork
        connection.close()
    else:
        _abandoned.append(connection)


def _corrupt(path: str) -> str:
    return (
        f"the ledger '{path}' is damaged or not a privet ledger, and nothing can be charged to it; "
        "restore it from a backup: without it the spending so far is unknown."
    )


def _create(path: Path) -> None:
    """Make an empty ledger at once: it is there as a whole or not at all, whoever else makes it too."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        draft.unlink()  # of a process that was killed
    try:
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.executescript(f"PRAGMA synchronous = EXTRA;\n{_SCHEMA}")
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(draft, path)
        problem = False
    except (sqlite3.Error, OSError):
        problem = True
    with suppress(OSError):
        draft.unlink()
    if problem:
        raise LedgerError(
            f"cannot make the ledger '{path}': it cannot be written there; make it writable, or pass ledger=FILE."
        )
