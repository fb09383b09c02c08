"""The durable record of every charge: append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash
may waste budget and never leaks it. Losses are fractions written as text; nothing is
rounded. Each entry carries the totals after it, and each line a checksum; both are checked
when the ledger is opened. Triggers refuse to change or delete what was written.

A data set has a cap over all analysts, an analyst may have a cap of their own; caps
are appended too, and the last one counts. Many threads and processes may share a
ledger: a charge is one transaction, and nobody else writes during it.

A data set also has terms, which say what its charges mean: how many rows a person may
have, and the cells of every declared column. A table whose domain says anything else is
refused until the owner declares it (`declare`), which re-prices what was spent so far.

A data set also has sources, which say where its rows are or were. A source belongs to one
data set, so that what was spent on it is never left behind under another name.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide
who may use what is left: that no cap is passed never depends on them.

The lines are in a SQLite file, or on a PostgreSQL server that several machines share.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError
from privet.kernel.column import Nominal, Numeric, decimal_text
from privet.kernel.domain import Domain
from privet.kernel.ledger.sqlite import MEMORY, SQLiteStore
from privet.kernel.ledger.store import COLUMNS, OPEN_HOLDS, READ, Purpose, Run, Store, corrupt
from privet.kernel.limits import is_path, shown

if TYPE_CHECKING:
    from privet.kernel.ledger.postgres import PostgresStore

__all__ = ["MEMORY", "Charge", "Entry", "Hold", "Ledger", "cells_of"]

_LOOK = "`privet budget show` tells"
_REGISTER = Purpose("register the data set in the ledger", "nothing was written", "open the table again")
_CHARGE = Purpose(
    "charge the ledger",
    "nothing was charged",
    "`privet budget show --entries` tells; the same question with the same key finds the charge or makes it, without a "
    "key a new try is a new charge",
)
_STORE = Purpose(
    "store an answer in the ledger", "the answer was neither stored nor released", "the answer is not released"
)
_HOLD = Purpose("reserve in the ledger", "nothing was reserved", f"{_LOOK}, and `privet budget release` ends it")
_END = Purpose(
    "end a reservation in the ledger",
    "the reservation stays open until `privet budget release` ends it",
    f"{_LOOK}, and `privet budget release` ends it",
)
_SET_CAP = Purpose("change a budget in the ledger", "the budget stays as it was", _LOOK)
_DECLARE = Purpose("declare a domain in the ledger", "nothing was changed", f"{_LOOK}, and to declare it again is safe")


@dataclass(frozen=True)
class Charge:
    """What is to be written down before a question is asked."""

    question: str
    scope: str
    epsilon: str
    loss: Fraction
    fingerprint: str
    key: str | None = None
    place: str = ""  # where it is made: see `Session.place`
    terms: int | None = None  # the terms that its table was opened with


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
    place: str = field(default="", repr=False)


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
            mend = "Lower epsilon, or ask" if left else "Ask"
            raise BudgetExceeded(
                f"cannot {asked}: {decimal_text(loss)} of it reaches {self.whose}, which has {decimal_text(left)} left "
                f"of {decimal_text(self.cap)}{reserved}. {mend} the data owner for more.",
                requested=loss,
                remaining=left,
            )


def no_budget(dataset: str) -> LedgerError:
    """Return the error of a data set that is opened for the first time without a budget."""
    return LedgerError(
        f"the data set '{dataset}' has no budget yet; give one the first time, with --budget 1.0 (in Python "
        'budget="1.0").'
    )


def _parted(written: str) -> tuple[str, str]:
    """What a charge was written for, which has no blanks, and where it was made."""
    fingerprint, _, place = str(written).partition(" ")
    return fingerprint, place


def cells_of(domain: Domain) -> dict[str, str]:
    """Of every declared column a hash of all that decides which cell a value falls into.

    Not in it, because no cell depends on it: the target, `rows`, `max_rows`, whether values are `ordered`, and how
    edges were written.

    >>> plain, ordered = (Domain((Nominal("size", ("S", "M"), ordered=ordered),)) for ordered in (False, True))
    >>> cells_of(plain) == cells_of(ordered), cells_of(plain) == cells_of(Domain((Nominal("size", ("M", "S")),)))
    (True, False)
    """

    def written(column: Nominal | Numeric) -> list[object]:
        if isinstance(column, Nominal):
            return ["nominal", *column.texts, column.other, column.missing]
        bounds = [decimal_text(number) for number in (column.low, column.high, column.step)]
        return ["numeric", *bounds, *column.thresholds, column.missing]

    return {column.name: hashlib.sha256(json.dumps(written(column)).encode()).hexdigest() for column in domain}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """A ledger in a file, on a server, or in memory for as long as the process lives.

    >>> ledger = Ledger.open(MEMORY)
    >>> terms = ledger.register("patients", source="a frame", budget=Fraction(1))
    >>> entry, new = ledger.charge("patients", "ada", Charge("count", "all rows", "0.4", Fraction(2, 5), "f1", key="k"))
    >>> ledger.store(entry.id, "[42]")
    '[42]'
    >>> entry, new = ledger.charge("patients", "ada", Charge("count", "all rows", "0.4", Fraction(2, 5), "f1", key="k"))
    >>> new, entry.answer, ledger.spent("patients")
    (False, '[42]', Fraction(2, 5))
    """

    def __init__(self, store: Store, clock: Callable[[], str] = _now) -> None:
        self._store = store
        self._transaction = store.transaction
        self._clock = clock

    @classmethod
    def open(cls, path: str | Path, *, create: bool = True, clock: Callable[[], str] = _now) -> Ledger:
        """Open a ledger, creating it where it does not exist.

        Parameters
        ----------
        path : str or Path
            A file, a link to one or to an address, `postgresql://user@host/database?schema=NAME`, or ":memory:".
        create : bool, default True
            Whether to make one where there is none.

        Raises
        ------
        LedgerError
            Where there is none, or it is damaged, of another format or out of reach.
        """
        ledger = cls(_store(_followed(str(path)), create), clock)
        if ledger.durable:
            with ledger._transaction(READ, write=False) as run:
                ledger._check(run)
        return ledger

    @staticmethod
    def on_server(path: str | Path) -> bool:
        """Whether a path is the address of a ledger on a server and no file."""
        return str(path).startswith(("postgresql:", "postgres:"))  # of two slashes a Path would keep one

    @staticmethod
    def identity_of(path: str | Path | Ledger) -> str:
        """The same text for every path to the same ledger, without opening it; of a server, whoever connects."""
        if isinstance(path, Ledger):
            return path._store.identity
        place = _followed(str(path))
        if Ledger.on_server(place):
            return _postgres().identity_at(place)
        return os.path.realpath(place) if place != MEMORY and is_path(place) else place

    @property
    def path(self) -> str:
        """Where the ledger is; of an address all but the password."""
        return self._store.path

    @property
    def durable(self) -> bool:
        """Whether the lines outlive the process."""
        return self._store.durable

    def close(self) -> None:
        """Let go of the file or the connection; what was charged stays."""
        self._store.close()

    def register(
        self,
        dataset: str,
        *,
        source: str,
        budget: Fraction | None,
        domain: Domain | None = None,
        aliases: Sequence[str] = (),
    ) -> int:
        """Record a data set at its first opening; check its terms and the budget at later ones.

        Every source of a data set is recorded, and none can ever be one of another data set.

        Parameters
        ----------
        dataset : str
        source : str
            Where the data are.
        budget : Fraction or None
            What may be spent in all; None for a data set that has one.
        domain : Domain, optional
        aliases : sequence of str, default ()
            Other sources that are the same data.

        Returns
        -------
        int
            The number of the terms, which every charge of this opening is held against.

        Raises
        ------
        PrivacyError
            If the domain is not the one that the data set's charges were made under, or the budget is larger.
        LedgerError
            If the ledger knows the source under another name, or there is no budget yet.
        """
        with self._transaction(_REGISTER) as run:
            sources = {source: None, **dict.fromkeys(aliases)}
            names = {each: self._name_of(run, each) for each in sources}
            for name in names.values():
                if name not in (None, dataset):
                    raise LedgerError(
                        f"the ledger '{self.path}' knows this data as '{name}', not as '{dataset}'; open it under that "
                        "name, so that its spending goes on."
                    )
            terms = self._terms(run, dataset)
            if terms is None:
                if budget is None:
                    raise no_budget(dataset)
                run.insert("datasets", name=dataset, at=self._clock())
                number = self._write_terms(run, dataset, domain)
                self._cap(run, dataset, None, budget)
            else:
                number = terms.id
                if domain is not None:
                    terms.refuse_fewer(domain.rows_per_person)
                    terms.refuse_others(domain)
            recorded = self._caps(run, dataset, None)
            if budget is not None and recorded is not None and budget > recorded:
                raise PrivacyError(
                    f"the budget {decimal_text(budget)} asked for '{dataset}' is above the {decimal_text(recorded)} in "
                    "its ledger; open it with that or less, or let its owner raise it with `privet budget grant`."
                )
            for each, name in names.items():
                if name is None:
                    run.append("sources", dataset=dataset, source=each, at=self._clock())
        return number

    def declare(self, dataset: str, domain: Domain) -> Fraction:
        """Record a changed domain and re-price what was spent so far. For the owner of the data.

        With k rows a person instead of j every charge so far costs such a person k/j times what was written: each
        record of theirs has lost what it has lost. So for every analyst an entry adds (k/j - 1) times what they
        have spent, which may be more than a cap leaves. Other cells change no price: what was released under the old
        ones and what will be under the new ones are answers about the same people, whose losses add.

        Parameters
        ----------
        dataset : str
        domain : Domain
            What tables of the data set are opened with from now on. Those that are open must be opened again.

        Returns
        -------
        Fraction
            What has been added to the spending on the data set.

        Raises
        ------
        PrivacyError
            If it allows a person fewer rows than before: the promise made so far is for more.
        """
        with self._transaction(_DECLARE) as run:
            self._known(run, dataset)
            terms = self._terms(run, dataset)
            assert terms is not None
            terms.refuse_fewer(domain.rows_per_person)
            if (terms.rows_per_person, terms.cells) == (domain.rows_per_person, cells_of(domain)):
                return Fraction(0)
            number = self._write_terms(run, dataset, domain)
            before = self._spent(run, dataset, None)
            factor = Fraction(domain.rows_per_person, terms.rows_per_person) - 1
            for analyst in self._analysts(run, dataset) if factor else ():
                more = factor * self._spent(run, dataset, analyst)
                what = f"re-price for {domain.rows_per_person} rows per person, not {terms.rows_per_person}"
                charge = Charge(what, "all rows", decimal_text(more), more, "")
                if more:
                    self._write_entry(run, dataset, analyst, charge, number, None)
            return self._spent(run, dataset, None) - before

    def charge(
        self, dataset: str, analyst: str, charge: Charge, limit: Fraction | None = None, hold: int | None = None
    ) -> tuple[Entry, bool]:
        """Write a charge, or find the one under the same key. Return (entry, whether it is new).

        Parameters
        ----------
        dataset, analyst : str
        charge : Charge
        limit : Fraction, optional
            Caps the data set's total for this call, on top of the recorded caps.
        hold : int, optional
            An open hold of the analyst. It pays for charges until it is used up; what goes beyond is charged as
            without it.

        Raises
        ------
        BudgetExceeded
            If a cap leaves less than the charge, or the hold has ended.
        PrivacyError
            If the owner has declared another domain since the table was opened.
        KeyReused
            If the key stands for another scope, question or epsilon.
        LedgerError
            If there is no such data set, or the ledger cannot be used.
        """
        with self._transaction(_CHARGE) as run:
            standing = self._standing(run, dataset, analyst, charge.key, charge.fingerprint)
            if standing is not None:
                return standing, False
            terms = self._terms(run, dataset)
            if terms is None:
                raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; open the table again.")
            if charge.terms not in (None, terms.id):
                raise PrivacyError(
                    f"the owner has declared another domain for '{dataset}' since this table was opened; open it again "
                    "with that one."
                )
            asked = f"charge epsilon={charge.epsilon} for {charge.question} on {charge.scope}"
            held = None if hold is None else self._open_hold(run, dataset, analyst, hold, charge.loss, asked)
            for room in self._rooms(run, dataset, analyst, limit, held):
                room.refuse_beyond(charge.loss, asked)
            number = self._write_entry(run, dataset, analyst, charge, terms.id, held)
            entry = next(self._entries(run, "id = ?", number))
        return entry, True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """The charge that stands under a key, if there is one."""
        with self._transaction(READ, write=False) as run:
            return self._standing(run, dataset, analyst, key, fingerprint)

    def fingerprint(self, dataset: str, analyst: str, key: str) -> str | None:
        """What the charge under an analyst's key was written for, if there is one."""
        query = "SELECT fingerprint FROM entries WHERE dataset = ? AND analyst = ? AND key = ?"
        with self._transaction(READ, write=False) as run:
            found = run(query, dataset, analyst, key).fetchone()
        return None if found is None else _parted(found[0])[0]

    def answer(self, entry: int) -> str:
        """The stored answer of an entry that has one."""
        with self._transaction(READ, write=False) as run:
            return self._answer(run, entry)

    def store(self, entry: int, answer: str) -> str:
        """Store an answer; the one stored first is the only one that may be released."""
        with self._transaction(_STORE) as run:
            run.insert("answers", entry=entry, answer=answer, at=self._clock())
            return self._answer(run, entry)

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
        """Reserve a part of the budget for an analyst until `end`. Return the number of the hold.

        Parameters
        ----------
        dataset, analyst : str
        epsilon : Fraction
            What nobody else can spend until then.
        limit : Fraction, optional
            Caps the data set's total for this call, on top of the recorded caps.
        asked : Fraction, optional
            What the analyst asked for, where less of it reaches the ledger.
        within : int, optional
            An open hold of the analyst. Nothing is written then: that one goes on if it has so much left.

        Raises
        ------
        BudgetExceeded
            If a cap, or the outer hold, leaves less than `epsilon`, or the outer hold has ended.
        LedgerError
            If the ledger cannot be used.
        """
        text = f"reserve epsilon={decimal_text(epsilon if asked is None else asked)}"
        with self._transaction(_HOLD) as run:
            outer = None if within is None else self._open_hold(run, dataset, analyst, within, epsilon, text)
            for room in self._rooms(run, dataset, analyst, limit, outer):
                room.refuse_beyond(epsilon, text)
            if outer is not None:
                _Room(f"reservation {outer.id}", outer.epsilon, outer.left).refuse_beyond(epsilon, text)
                return outer.id
            number = run.append("holds", dataset=dataset, analyst=analyst, epsilon=str(epsilon), at=self._clock())
            run(f"INSERT INTO {OPEN_HOLDS} (hold, dataset) VALUES (?, ?)", number, dataset)
            return number

    def end(self, hold: int) -> Fraction:
        """End a hold; ending it again does nothing. Return what it had left.

        Parameters
        ----------
        hold : int

        Returns
        -------
        Fraction
            What everybody may charge now; 0 if the hold had ended before.

        Raises
        ------
        LedgerError
            If there is no such hold, or the ledger cannot be used.
        """
        with self._transaction(_END) as run:
            found = run("SELECT dataset FROM holds WHERE id = ?", hold).fetchone()
            if found is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            left = sum((each.left for each in self._holds(run, found[0]) if each.id == hold), Fraction(0))
            run.insert("ends", hold=hold, at=self._clock())
            run(f"DELETE FROM {OPEN_HOLDS} WHERE hold = ?", hold)
        return left

    def holds(self, dataset: str) -> list[Hold]:
        """The open reservations of a data set."""
        with self._transaction(READ, write=False) as run:
            return self._holds(run, dataset)

    def set_cap(self, dataset: str, analyst: str | None, cap: Fraction) -> None:
        """Set what a data set, or one analyst on it, may spend in all. For its owner."""
        with self._transaction(_SET_CAP) as run:
            self._known(run, dataset)
            self._cap(run, dataset, analyst, cap)

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        with self._transaction(READ, write=False) as run:
            return self._spent(run, dataset, analyst)

    def cap(self, dataset: str, analyst: str | None = None) -> Fraction | None:
        """The cap of a data set, or an analyst's own cap on it where one was set."""
        with self._transaction(READ, write=False) as run:
            return self._caps(run, dataset, analyst)

    def remaining(self, dataset: str, analyst: str, limit: Fraction | None = None, hold: int | None = None) -> Fraction:
        """The largest loss that this analyst may charge now, to a hold or without; other holds keep what is theirs."""
        with self._transaction(READ, write=False) as run:
            held = next((each for each in self._holds(run, dataset) if each.id == hold), None)
            if held is None and hold is not None:
                return Fraction(0)
            return max(min(room.left for room in self._rooms(run, dataset, analyst, limit, held)), Fraction(0))

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        with self._transaction(READ, write=False) as run:
            if analyst is None:
                return list(self._entries(run, "dataset = ?", dataset))
            return list(self._entries(run, "dataset = ? AND analyst = ?", dataset, analyst))

    def datasets(self) -> list[str]:
        with self._transaction(READ, write=False) as run:
            return [name for (name,) in run("SELECT name FROM datasets ORDER BY name")]

    def name_of(self, sources: Sequence[str]) -> str | None:
        """The data set that the first known of these sources belongs to."""
        with self._transaction(READ, write=False) as run:
            return next((name for each in sources if (name := self._name_of(run, each)) is not None), None)

    def knows_file(self, file: str) -> bool:
        """Whether a file, or a table in it, is a source of any data set."""
        with self._transaction(READ, write=False) as run:
            return any(source == file or source.startswith(f"{file}?table=") for *_, source, _ in run.lines("sources"))

    def analysts(self, dataset: str) -> list[str]:
        """Everyone with an entry, a reservation or a cap of their own."""
        with self._transaction(READ, write=False) as run:
            self._known(run, dataset)
            return self._analysts(run, dataset)

    # -- inside one transaction -------------------------------------------------------------

    def _known(self, run: Run, dataset: str) -> None:
        if run("SELECT 1 FROM datasets WHERE name = ?", dataset).fetchone() is None:
            raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; `privet budget show` lists them.")

    def _name_of(self, run: Run, source: str) -> str | None:
        line = run.line("sources", "source = ?", source)
        return None if line is None else str(line[1])

    def _analysts(self, run: Run, dataset: str) -> list[str]:
        query = (
            "SELECT analyst FROM entries WHERE dataset = ? UNION "
            "SELECT analyst FROM holds WHERE dataset = ? UNION "
            "SELECT analyst FROM caps WHERE dataset = ? AND analyst IS NOT NULL ORDER BY 1"
        )
        return [name for (name,) in run(query, dataset, dataset, dataset)]

    def _standing(self, run: Run, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
        query = "SELECT fingerprint, id FROM entries WHERE dataset = ? AND analyst = ? AND key = ?"
        found = None if key is None else run(query, dataset, analyst, key).fetchone()
        if found is None:
            return None
        if _parted(found[0])[0] != fingerprint:
            raise KeyReused(f"the key '{key}' stands for another scope, question or epsilon; use a new key for this.")
        return next(self._entries(run, "id = ?", found[1]))

    def _terms(self, run: Run, dataset: str) -> _Terms | None:
        line = run.line("terms", "dataset = ? ORDER BY id DESC", dataset)
        return None if line is None else _Terms(line[0], dataset, line[2], json.loads(line[3]))

    def _write_terms(self, run: Run, dataset: str, domain: Domain | None) -> int:
        cells = json.dumps({} if domain is None else cells_of(domain), sort_keys=True)
        rows_per_person = 1 if domain is None else domain.rows_per_person
        return run.append("terms", dataset=dataset, rows_per_person=rows_per_person, cells=cells, at=self._clock())

    def _write_entry(self, run: Run, dataset: str, analyst: str, charge: Charge, terms: int, held: Hold | None) -> int:
        total, own = self._spent(run, dataset, None), self._spent(run, dataset, analyst)
        return run.append(
            "entries",
            dataset=dataset,
            terms=terms,
            analyst=analyst,
            scope=charge.scope,
            question=charge.question,
            epsilon=charge.epsilon,
            loss=str(charge.loss),
            key=charge.key,
            fingerprint=f"{charge.fingerprint} {charge.place}",
            at=self._clock(),
            dataset_spent=str(total + charge.loss),
            analyst_spent=str(own + charge.loss),
            hold=None if held is None else held.id,
            hold_spent=None if held is None else str(min(held.epsilon, held.spent + charge.loss)),
        )

    def _answer(self, run: Run, entry: int) -> str:
        line = run.line("answers", "entry = ?", entry)
        assert line is not None
        return str(line[2])

    def _rooms(
        self, run: Run, dataset: str, analyst: str, limit: Fraction | None, hold: Hold | None
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

    def _holds(self, run: Run, dataset: str) -> list[Hold]:
        """The open holds; those that have ended are not looked at."""
        holds = []
        for (hold,) in run(f"SELECT hold FROM {OPEN_HOLDS} WHERE dataset = ? ORDER BY hold", dataset).fetchall():
            line = run.line("holds", "id = ?", hold)
            assert line is not None
            paid = run("SELECT hold_spent FROM entries WHERE hold = ? ORDER BY id DESC LIMIT 1", hold).fetchone()
            holds.append(Hold(hold, line[2], Fraction(line[3]), Fraction(paid[0] if paid else 0), line[4]))
        return holds

    def _open_hold(self, run: Run, dataset: str, analyst: str, hold: int, loss: Fraction, asked: str) -> Hold:
        for each in self._holds(run, dataset):
            if (each.id, each.analyst) == (hold, analyst):
                return each
        raise BudgetExceeded(
            f"cannot {asked}: reservation {hold} of '{analyst}' on '{dataset}' has ended. Reserve again, or ask the "
            "table itself.",
            requested=loss,
            remaining=Fraction(0),
        )

    def _spent(self, run: Run, dataset: str, analyst: str | None) -> Fraction:
        if analyst is None:
            line = run.line("entries", "dataset = ? ORDER BY id DESC", dataset)
        else:
            line = run.line("entries", "dataset = ? AND analyst = ? ORDER BY id DESC", dataset, analyst)
        return Fraction(0) if line is None else Fraction(line[_TOTAL if analyst is None else _TOTAL + 1])

    def _caps(self, run: Run, dataset: str, analyst: str | None) -> Fraction | None:
        whose, values = ("analyst IS NULL", ()) if analyst is None else ("analyst = ?", (analyst,))
        line = run.line("caps", f"dataset = ? AND {whose} ORDER BY id DESC", dataset, *values)
        return None if line is None else Fraction(line[3])

    def _cap(self, run: Run, dataset: str, analyst: str | None, cap: Fraction) -> None:
        run.append("caps", dataset=dataset, analyst=analyst, cap=str(cap), at=self._clock())

    def _entries(self, run: Run, condition: str, *values: object) -> Iterator[Entry]:
        lines = list(run.lines("entries", f"{condition} ORDER BY id", *values))
        chosen = f"entry IN (SELECT id FROM entries WHERE {condition})"
        answers = {entry: answer for _, entry, answer, _ in run.lines("answers", chosen, *values)}
        for number, _, _, analyst, scope, question, epsilon, loss, key, written, at, *_ in lines:
            place, answer = _parted(written)[1], answers.get(number)
            yield Entry(number, analyst, scope, question, epsilon, Fraction(loss), key, at, answer, place)

    def _check(self, run: Run) -> None:
        """Refuse what is no whole ledger, or one whose totals do not follow from its entries.

        That takes a look at every line, once for an opening; a charge looks at the last totals alone.
        """
        number_of = cache(Fraction)  # losses repeat, and to read one takes longer than to add it
        sound = self._store.is_whole(run)
        if sound:
            for table in ("datasets", "caps", "answers"):
                for _ in run.lines(table):
                    pass
            names: dict[str, str] = {}
            for _, dataset, source, _ in run.lines("sources"):
                sound = sound and names.setdefault(source, dataset) == dataset
            people: dict[str, int] = {}
            for _, dataset, rows_per_person, *_ in run.lines("terms", "TRUE ORDER BY id"):
                sound = sound and rows_per_person >= people.get(dataset, 1)
                people[dataset] = rows_per_person
            holds = {
                number: (dataset, analyst, number_of(epsilon))
                for number, dataset, analyst, epsilon, _ in run.lines("holds")
            }
            ended = {hold for _, hold, _ in run.lines("ends")}
            sound = sound and all(epsilon >= 0 for _, _, epsilon in holds.values()) and ended <= set(holds)
            open_holds = {hold: dataset for hold, dataset in run(f"SELECT hold, dataset FROM {OPEN_HOLDS}")}
            sound = sound and open_holds == {hold: holds[hold][0] for hold in holds if hold not in ended}
            totals: dict[tuple[str, str | None], Fraction] = {}
            paid: dict[int, Fraction] = {}
            for line in run.lines("entries", "TRUE ORDER BY id"):
                dataset, analyst, loss = line[1], line[3], line[7]
                *_, dataset_spent, analyst_spent, hold, hold_spent = line
                for whose, total in (((dataset, None), dataset_spent), ((dataset, analyst), analyst_spent)):
                    totals[whose] = totals.get(whose, Fraction(0)) + number_of(loss)
                    sound = sound and str(totals[whose]) == total  # as it was written
                if hold is None:
                    sound = sound and hold_spent is None
                else:
                    *owner, epsilon = holds[hold]
                    paid[hold] = min(paid.get(hold, Fraction(0)) + number_of(loss), epsilon)
                    sound = sound and owner == [dataset, analyst] and str(paid[hold]) == hold_spent
        if not sound:
            raise LedgerError(corrupt(self.path))


_TOTAL = 1 + COLUMNS["entries"].index("dataset_spent")  # in a line, after its number


@dataclass(frozen=True)
class _Terms:
    """What the charges of a data set mean: for whom they are, and what they are about."""

    id: int
    dataset: str
    rows_per_person: int
    cells: dict[str, str]  # by column

    def refuse_fewer(self, rows_per_person: int) -> None:
        if rows_per_person < self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' protect persons with up to {self.rows_per_person} row(s), and the "
                f"domain says {rows_per_person}; write rows_per_person = {self.rows_per_person} or more in the domain "
                "file."
            )

    def refuse_others(self, domain: Domain) -> None:
        """Refuse what only `Ledger.declare` may change."""
        mend = "let its owner record the change with `privet budget declare`, or open it with the domain as it was."
        if domain.rows_per_person > self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' were made for persons with up to {self.rows_per_person} row(s), and "
                f"the domain says {domain.rows_per_person}: what was spent so far costs such a person "
                f"{decimal_text(Fraction(domain.rows_per_person, self.rows_per_person))} times as much; {mend}"
            )
        cells = cells_of(domain)
        for name in sorted({*self.cells, *cells}) if self.cells else ():  # none: it was registered without a domain
            before, now = self.cells.get(name), cells.get(name)
            if before != now:
                what = "is new" if before is None else "is gone" if now is None else "has other cells"
                raise PrivacyError(
                    f"the domain of '{self.dataset}' is not the one in its ledger: the column '{name}' {what}; {mend}"
                )


def _followed(path: str) -> str:
    """Where a link leads that stands beside data whose ledger is on a server; every other path as it is."""
    try:
        target = os.readlink(path)
    except (OSError, ValueError):
        return path
    return target if Ledger.on_server(target) else path


def _store(place: str, create: bool) -> Store:
    if Ledger.on_server(place):
        return _postgres().open(place, create)
    if not is_path(place):
        raise LedgerError(f"no ledger can be at '{shown(place)}': no file can have this name; choose another.")
    return SQLiteStore.open(place, create)


def _postgres() -> type[PostgresStore]:
    try:
        from privet.kernel.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError("a ledger on PostgreSQL needs psycopg: pip install 'privet[postgres]'.") from None
    return PostgresStore
