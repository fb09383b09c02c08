"""The durable record of every charge: append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash
may waste budget and never leaks it. Losses are fractions written as text; nothing is
rounded. All that happens is a line of one log (`log`). A charge carries the totals
after it, so that the next one need not add up all before; when a ledger is opened, every
line is checked (`replay`). Triggers refuse to change or delete what was written.

A data set has a cap over all analysts, an analyst may have a cap of their own; caps
are appended too, and the last one counts. Many threads and processes may share a
ledger: a charge is one transaction, and nobody else writes during it.

A data set also has terms, which say what its charges mean (`terms`), and sources,
which say where its rows are or were. A source belongs to one data set, so that what was
spent on it is never left behind under another name.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide
who may use what is left: that no cap is passed never depends on them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from privet.errors import LedgerError, PrivacyError
from privet.kernel.canonical import Json, canonical
from privet.kernel.domain import Domain
from privet.kernel.ledger import address, replay, state
from privet.kernel.ledger.log import Line, Log, sha256
from privet.kernel.ledger.sqlite import MEMORY
from privet.kernel.ledger.state import Account, Answer, Charge, Entry, Hold, Room, no_budget
from privet.kernel.ledger.store import (
    CHARGE,
    DECLARE,
    END,
    HOLD,
    READ,
    RECORD,
    REGISTER,
    SET_CAP,
    STORE,
    Purpose,
    Run,
    Store,
    corrupt,
)
from privet.kernel.ledger.terms import Terms, cells_of, terms_of
from privet.kernel.limits import decimal_text

__all__ = ["MEMORY", "Answer", "Charge", "Entry", "Hold", "Ledger", "cells_of", "no_budget"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """A ledger in a file, on a server, or in memory for as long as the process lives.

    >>> ledger = Ledger.open(MEMORY)
    >>> terms = ledger.register("patients", source="a frame", budget=Fraction(1))
    >>> charge = Charge("count", '{"question":"count"}', "f1", "all rows", "0.4", Fraction(2, 5), key="k")
    >>> entry, new = ledger.charge("patients", "ada", charge)
    >>> ledger.store(entry.id, "[42]")
    '[42]'
    >>> entry, new = ledger.charge("patients", "ada", charge)
    >>> new, entry.answer, ledger.spent("patients")
    (False, '[42]', Fraction(2, 5))
    """

    def __init__(self, store: Store, clock: Callable[[], str], random_bytes: Callable[[int], bytes]) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes
        self.id = ""
        self.check()

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        create: bool = True,
        clock: Callable[[], str] = _now,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> Ledger:
        """Open a ledger, creating it where it does not exist.

        Parameters
        ----------
        path : str or Path
            A file, a link to one or to an address, `postgresql://user@host/database?schema=NAME`, or ":memory:".
        create : bool, default True
            Whether to make one where there is none.
        clock : callable, optional
            Returns the time as text, for tests.
        random_bytes : callable, optional
            Returns so many bytes for salts and ids, for tests.

        Raises
        ------
        LedgerError
            Where there is none, or it is damaged, of another format or out of reach.
        """
        return cls(address.open_store(path, create, random_bytes(16).hex()), clock, random_bytes)

    @staticmethod
    def on_server(path: str | Path) -> bool:
        """Whether a path is the address of a ledger on a server and no file."""
        return address.on_server(path)

    @staticmethod
    def identity_of(path: str | Path | Ledger) -> str:
        """The same text for every path to the same ledger, without opening it; of a server, whoever connects."""
        return path._store.identity if isinstance(path, Ledger) else address.identity_of(path)

    @property
    def path(self) -> str:
        """Where the ledger is; of an address all but the password."""
        return self._store.path

    @property
    def durable(self) -> bool:
        """Whether the lines outlive the process."""
        return self._store.durable

    def check(self) -> None:
        """Read every line, and hold it against those before it; LedgerError where the ledger is not whole."""
        with self._store.transaction(READ, write=False) as run:
            if self.durable and not self._store.is_whole(run):
                raise LedgerError(corrupt(self.path))
            self.id = run("SELECT ledger FROM format").fetchone()[0]
            replay.check(self._log(run))

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
        with self._transaction(REGISTER) as log:
            datasets = {text: log.dataset_of(text) for text in (source, *aliases)}
            for name in datasets.values():
                if name not in (None, dataset):
                    raise LedgerError(
                        f"the ledger '{self.path}' knows this data as '{name}', not as '{dataset}'; open it under that "
                        "name, so that its spending goes on."
                    )
            new_sources = [text for text, name in datasets.items() if name is None]
            terms = state.terms(log, dataset)
            if terms is None:
                if budget is None:
                    raise no_budget(dataset)
                sources = [log.new_source_id(dataset, text) for text in new_sources]
                line = log.append("register", dataset, None, {**terms_of(domain), "sources": sources})
                self._write_cap(log, dataset, None, budget)
                return line.serial
            terms.refuse_unknown()
            if domain is not None:
                terms.refuse_fewer(domain.rows_per_person)
                terms.refuse_others(domain)
            recorded = state.cap(log, dataset, None)
            if budget is not None and recorded is not None and budget > recorded:
                raise PrivacyError(
                    f"the budget {decimal_text(budget)} asked for '{dataset}' is above the {decimal_text(recorded)} in "
                    "its ledger; open it with that or less, or let its owner raise it with `privet budget grant`."
                )
            if new_sources:
                sources = [log.new_source_id(dataset, text) for text in new_sources]
                log.append("source", dataset, None, {"sources": sources})
        return terms.serial

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
        with self._transaction(DECLARE) as log:
            before = self._known(log, dataset)
            before.refuse_unknown()
            before.refuse_fewer(domain.rows_per_person)
            if (before.rows_per_person, before.cells) == (domain.rows_per_person, cells_of(domain)):
                return Fraction(0)
            terms = Terms.read(log.append("register", dataset, None, {**terms_of(domain), "sources": []}))
            factor = Fraction(domain.rows_per_person, before.rows_per_person) - 1
            added = Fraction(0)
            for analyst in state.analysts(log, dataset) if factor else ():
                accounts = self._accounts(log, dataset, analyst)
                more = factor * accounts[1].spent
                if more:
                    what = f"re-price for {domain.rows_per_person} rows per person, not {before.rows_per_person}"
                    charge = Charge(what, canonical({"question": what}), "", "all rows", decimal_text(more), more)
                    self._write_charge(log, analyst, charge, terms, accounts, None)
                    added += more
            return added

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
        with self._transaction(CHARGE) as log:
            standing = state.standing(log, dataset, analyst, charge.key, charge.fingerprint)
            if standing is not None:
                return standing, False
            accounts = self._accounts(log, dataset, analyst)
            terms = self._known(log, dataset)
            terms.refuse_unknown()
            if charge.terms not in (None, terms.serial):
                raise PrivacyError(
                    f"the owner has declared another domain for '{dataset}' since this table was opened; open it again "
                    "with that one."
                )
            asked = f"charge epsilon={charge.epsilon} for {charge.question} on {charge.scope}"
            holds = state.open_holds(log, dataset)
            held = None if hold is None else state.open_hold(holds, dataset, analyst, hold, charge.loss, asked)
            for room in state.rooms(accounts, holds, analyst, limit, held):
                room.refuse_beyond(charge.loss, asked)
            line = self._write_charge(log, analyst, charge, terms, accounts, held)
        return state.entry_of(line, analyst, None), True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """The charge that stands under a key, if there is one."""
        with self._transaction(READ, write=False) as log:
            return state.standing(log, dataset, analyst, key, fingerprint)

    def question_json(self, dataset: str, analyst: str, key: str) -> str | None:
        """The question that the charge under an analyst's key was written for, if there is one."""
        with self._transaction(READ, write=False) as log:
            line = state.keyed(log, dataset, analyst, key)
        return None if line is None else line.note["question"]

    def answer(self, entry: int) -> Answer:
        """The stored answer of an entry that has one."""
        with self._transaction(READ, write=False) as log:
            answer = state.answer(log, entry)
            assert answer is not None
            return answer

    def store(self, entry: int, answer: str, *, private: bool = True, opening_token: str = "") -> str:
        """Store an answer; the one stored first is the only one that may be released.

        Parameters
        ----------
        entry : int
        answer : str
            What is to be released, as JSON.
        private : bool, default True
            Whether its noise is real.
        opening_token : str, default ""
            Of the opening of the table in which it was drawn.

        Returns
        -------
        str
            The answer that was stored first: this one, or another.
        """
        with self._transaction(STORE) as log:
            first = state.answer(log, entry)
            if first is not None:
                return first.text
            charge = log.find("charge", entry)
            assert charge is not None
            body: dict[str, Json] = {"entry": entry, "private": private, "sha256": sha256(answer)}
            note = {"answer": answer, "opening": opening_token}
            log.append("answer", charge.dataset, charge.analyst, body, note, charge.day)
        return answer

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
        with self._transaction(HOLD) as log:
            holds = state.open_holds(log, dataset)
            outer = None if within is None else state.open_hold(holds, dataset, analyst, within, epsilon, text)
            for room in state.rooms(self._accounts(log, dataset, analyst), holds, analyst, limit, outer):
                room.refuse_beyond(epsilon, text)
            if outer is not None:
                Room(f"reservation {outer.id}", outer.epsilon, outer.left).refuse_beyond(epsilon, text)
                return outer.id
            number = log.append("hold", dataset, log.new_analyst_id(analyst), {"held": str(epsilon)}).serial
            log.mark_open(number, dataset)
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
        with self._transaction(END) as log:
            line = log.find("hold", hold)
            if line is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            assert line.dataset is not None
            for each in state.open_holds(log, line.dataset):
                if each.id == hold:
                    log.append("end", line.dataset, line.analyst, {"reservation": hold})
                    log.mark_ended(hold)
                    return each.left
        return Fraction(0)

    def holds(self, dataset: str) -> list[Hold]:
        """The open reservations of a data set."""
        with self._transaction(READ, write=False) as log:
            return state.open_holds(log, dataset)

    def set_cap(self, dataset: str, analyst: str | None, cap: Fraction) -> None:
        """Set what a data set, or one analyst on it, may spend in all. For its owner."""
        with self._transaction(SET_CAP) as log:
            self._known(log, dataset)
            self._write_cap(log, dataset, analyst, cap)

    def record_model(
        self, dataset: str, analyst: str, name: str, sha256: str, epsilon: Fraction, entries: Sequence[int]
    ) -> int:
        """Record that a model was made from answers.

        Parameters
        ----------
        dataset, analyst : str
        name : str
            What the model is called.
        sha256 : str
            The hash of its file.
        epsilon : Fraction
            What it promises.
        entries : sequence of int
            The analyst's entries that paid for it; what reached the table by them is recorded as `spent`.

        Returns
        -------
        int
            The number of the line.

        Raises
        ------
        LedgerError
            If an entry is not the analyst's on this data set.
        """
        with self._transaction(RECORD) as log:
            self._known(log, dataset)
            who, charges = log.analyst_id(analyst), [log.find("charge", entry) for entry in entries]
            for entry, line in zip(entries, charges, strict=True):
                if line is None or (line.dataset, line.analyst) != (dataset, who):
                    raise LedgerError(
                        f"cannot record the model '{name}': '{analyst}' has no entry {entry} on '{dataset}'."
                    )
            spent = sum((Fraction(line.body["loss"]) for line in charges if line), Fraction(0))
            body: dict[str, Json] = {
                "name": name,
                "sha256": sha256,
                "epsilon": decimal_text(epsilon),
                "entries": list(entries),
                "spent": str(spent),
            }
            return log.append("model", dataset, log.new_analyst_id(analyst), body).number

    def record(
        self,
        kind: Literal["key", "config"],
        body: Mapping[str, Json],
        dataset: str | None = None,
        analyst: str | None = None,
    ) -> int:
        """Record a signing key or a setting of whatever serves the ledger. For its owner.

        Parameters
        ----------
        kind : {"key", "config"}
        body : mapping
            What the line says, in values that JSON has.
        dataset, analyst : str, optional
            Whom it concerns.

        Returns
        -------
        int
            The number of the line.

        Raises
        ------
        LedgerError
            If there is no such data set, or the ledger cannot be used.
        """
        if kind not in ("key", "config"):
            raise ValueError(f"what is recorded is a key or a config, not '{kind}'")
        with self._transaction(RECORD) as log:
            if dataset is not None:
                self._known(log, dataset)
            return log.append(kind, dataset, None if analyst is None else log.new_analyst_id(analyst), body).number

    def lines(self, after: int = 0, most: int = 1000) -> list[Line]:
        """The lines of the log behind a number, in their order, at most so many."""
        with self._transaction(READ, write=False) as log:
            return log.lines("number > ? ORDER BY number LIMIT ?", after, most)

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        """What was charged to a data set, by everybody or by one analyst."""
        with self._transaction(READ, write=False) as log:
            return state.spent(log, dataset, None if analyst is None else log.analyst_id(analyst))

    def cap(self, dataset: str, analyst: str | None = None) -> Fraction | None:
        """The cap of a data set, or an analyst's own cap on it where one was set."""
        with self._transaction(READ, write=False) as log:
            return state.cap(log, dataset, None if analyst is None else log.analyst_id(analyst))

    def remaining(self, dataset: str, analyst: str, limit: Fraction | None = None, hold: int | None = None) -> Fraction:
        """The largest loss that this analyst may charge now, to a hold or without; other holds keep what is theirs."""
        with self._transaction(READ, write=False) as log:
            holds = {each.id: each for each in state.open_holds(log, dataset)}
            if hold is not None and hold not in holds:
                return Fraction(0)
            held = None if hold is None else holds[hold]
            rooms = state.rooms(self._accounts(log, dataset, analyst), list(holds.values()), analyst, limit, held)
            return max(min(room.left for room in rooms), Fraction(0))

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        """All charges to a data set, or those of one analyst, with their answers."""
        with self._transaction(READ, write=False) as log:
            return state.entries(log, dataset, analyst)

    def datasets(self) -> list[str]:
        """The names of all data sets."""
        with self._transaction(READ, write=False) as log:
            query = "SELECT DISTINCT dataset FROM lines WHERE kind = 'register' ORDER BY dataset"
            return [name for (name,) in log.run(query)]

    def name_of(self, sources: Sequence[str]) -> str | None:
        """The data set that the first known of these sources belongs to."""
        with self._transaction(READ, write=False) as log:
            return next((name for source in sources if (name := log.dataset_of(source)) is not None), None)

    def knows_file(self, file: str) -> bool:
        """Whether a file, or a table in it, is a source of any data set."""
        with self._transaction(READ, write=False) as log:
            return any(source == file or source.startswith(f"{file}?table=") for *_, source in log.sources())

    def analysts(self, dataset: str) -> list[str]:
        """Everyone with an entry, a reservation or a cap of their own."""
        with self._transaction(READ, write=False) as log:
            self._known(log, dataset)
            return state.analysts(log, dataset)

    # -- inside one transaction -------------------------------------------------------------

    @contextmanager
    def _transaction(self, purpose: Purpose, write: bool = True) -> Iterator[Log]:
        with self._store.transaction(purpose, write) as run:
            yield self._log(run)

    def _log(self, run: Run) -> Log:
        return Log(run, self.id, self._clock, self._random_bytes)

    def _known(self, log: Log, dataset: str) -> Terms:
        """The terms of a data set, for its owner."""
        terms = state.terms(log, dataset)
        if terms is None:
            raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; `privet budget show` lists them.")
        return terms

    def _accounts(self, log: Log, dataset: str, analyst: str) -> tuple[Account, Account]:
        accounts = state.accounts(log, dataset, analyst)
        if accounts is None:
            raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; open the table again.")
        return accounts

    def _write_charge(
        self, log: Log, analyst: str, charge: Charge, terms: Terms, accounts: Sequence[Account], held: Hold | None
    ) -> Line:
        body = state.charge_body(charge, terms, accounts, held)
        note = {"opening": charge.opening_token, "question": charge.question_json}
        return log.append("charge", terms.dataset, log.new_analyst_id(analyst), body, note)

    def _write_cap(self, log: Log, dataset: str, analyst: str | None, cap: Fraction) -> None:
        log.append("cap", dataset, None if analyst is None else log.new_analyst_id(analyst), {"cap": str(cap)})
