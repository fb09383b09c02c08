"""The durable record of every charge: append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash may waste
budget and never leaks it. Losses are fractions written as text; nothing is rounded. All that
happens is a line of one log (`log`). A charge carries the totals after it, so that the next
one need not add up all before (`state`). When a ledger is opened, every line is checked
(`replay`). Triggers refuse to change or delete what was written.

A data set has a cap over all analysts, and an analyst may have a cap of their own. Caps are
appended too, and the last one counts. Many threads and processes may share a ledger: a charge
is one transaction, and nobody else writes during it.

A data set also has terms, which say what its charges mean, and sources, which say where its
rows are or were. A source belongs to one data set, so that what was spent on it is never left
behind under another name.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide who may use
what is left: that no cap is passed never depends on them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from privet.errors import LedgerError, PrivacyError
from privet.kernel.domain import Domain
from privet.kernel.ledger import replay, state
from privet.kernel.ledger.log import Line, Log, sha256
from privet.kernel.ledger.sqlite import MEMORY, SQLiteStore
from privet.kernel.ledger.state import Answer, Charge, Entry, Hold, Room, Terms
from privet.kernel.ledger.store import READ, Purpose, Store
from privet.kernel.limits import Json, canonical, decimal_text, is_path, shown

if TYPE_CHECKING:
    from privet.kernel.ledger.postgres import PostgresStore

_LOOK = "`privet budget show` tells"
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
_REGISTER = Purpose("register the data set in the ledger", unknown="open the table again")
_SET_CAP = Purpose("change a budget in the ledger", "the budget stays as it was", _LOOK)
_DECLARE = Purpose("declare a domain in the ledger", "nothing was changed", f"{_LOOK}, and to declare it again is safe")
_RECORD = Purpose("write to the ledger", unknown=_LOOK)


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
        self.path = store.path  # of an address all but the password
        self.durable = store.durable  # whether the lines outlive the process
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
        """Open a ledger; make one if there is none.

        Parameters
        ----------
        path : str or Path
            A file, a link to one or to an address, `postgresql://user@host/database?schema=NAME`, or ":memory:".
        create : bool, default True
            Whether to make one if there is none.
        clock : callable, optional
            Returns the time as text, for tests.
        random_bytes : callable, optional
            Returns so many bytes for salts and ids, for tests.

        Raises
        ------
        LedgerError
            If there is none, or it is damaged, of another format or out of reach.
        """
        target, new_id = _target(path), random_bytes(16).hex()
        if cls.on_server(target):
            return cls(_postgres().open(target, create, new_id), clock, random_bytes)
        if not is_path(target):
            raise LedgerError(f"no ledger can be at '{shown(target)}': no file can have this name; choose another.")
        return cls(SQLiteStore.open(target, create, new_id), clock, random_bytes)

    @staticmethod
    def on_server(path: str | Path) -> bool:
        """Return whether a path is the address of a ledger on a server, and no file."""
        return str(path).startswith(("postgresql:", "postgres:"))  # a Path would keep one of two slashes

    @staticmethod
    def identity_of(path: str | Path | Ledger) -> str:
        """Return the same text for every path to the same ledger, without opening it.

        Parameters
        ----------
        path : str, Path or Ledger
            Of an address on a server, the user makes no difference.
        """
        if isinstance(path, Ledger):
            return path._store.identity
        target = _target(path)
        if Ledger.on_server(target):
            return _postgres()(target).identity
        return os.path.realpath(target) if target != MEMORY and is_path(target) else target

    def check(self) -> None:
        """Check every line against those before it.

        Raises
        ------
        LedgerError
            If the ledger is damaged.
        """
        with self._reading() as log:
            self.id = log.ledger_id = self._store.check(log.run)
            replay.check(log)

    def close(self) -> None:
        """Close the file or the connection; what was charged stays."""
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
            The number of the terms, which every charge of this opening is compared with.

        Raises
        ------
        PrivacyError
            If the domain is not the one that the data set's charges were made under, or the budget is larger.
        LedgerError
            If the ledger knows the source under another name, or there is no budget yet.
        """
        with self._transaction(_REGISTER) as log:
            datasets = {text: log.dataset_of(text) for text in (source, *aliases)}
            for name in datasets.values():
                if name not in (None, dataset):
                    raise LedgerError(
                        f"the ledger '{self.path}' knows this data as '{name}', not as '{dataset}'; open it under that "
                        "name, so that its spending goes on."
                    )
            new_sources = [text for text, name in datasets.items() if name is None]
            terms = state.terms_in(log, dataset)
            if terms is None:
                if budget is None:
                    raise state.no_budget(dataset)
                sources = [log.new_source_id(dataset, text) for text in new_sources]
                line = log.append("register", dataset, None, {**state.terms_of(domain), "sources": sources})
                log.append("cap", dataset, None, {"cap": str(budget)})
                return line.serial
            terms.refuse_unknown()
            if domain is not None:
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

        A person with k rows instead of j has lost k/j times what was written: each of their records has lost the
        same. So an entry for every analyst adds (k/j - 1) times what they have spent, even if that is more than a cap
        leaves. Other cells change no price: releases under the old and the new ones are about the same people, whose
        losses add.

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
        with self._transaction(_DECLARE) as log:
            before = state.known_terms(log, dataset)
            before.refuse_unknown()
            before.refuse_other_persons(domain)
            before.refuse_fewer(domain.rows_per_person)
            if (before.rows_per_person, before.cells) == (domain.rows_per_person, state.cells_of(domain)):
                return Fraction(0)
            terms = Terms.read(log.append("register", dataset, None, {**state.terms_of(domain), "sources": []}))
            factor = Fraction(domain.rows_per_person, before.rows_per_person) - 1
            added = Fraction(0)
            for analyst in state.analysts(log, dataset) if factor else ():
                accounts = state.accounts(log, dataset, analyst)
                more = factor * accounts[1].spent
                if more:
                    what = f"re-price for {domain.rows_per_person} rows per person, not {before.rows_per_person}"
                    charge = Charge(what, canonical({"question": what}), "", "all rows", decimal_text(more), more)
                    state.write_charge(log, analyst, charge, terms, accounts)
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
        with self._transaction(_CHARGE) as log:
            standing = state.standing(log, dataset, analyst, charge.key, charge.fingerprint)
            if standing is not None:
                return standing, False
            accounts = state.accounts(log, dataset, analyst)
            terms = state.known_terms(log, dataset)
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
            line = state.write_charge(log, analyst, charge, terms, accounts, held)
        return state.entry_of(line, analyst, None), True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """Return the charge that stands under an analyst's key, if there is one.

        Raises
        ------
        KeyReused
            If it has another fingerprint: it is for another scope, question or epsilon.
        """
        with self._reading() as log:
            return state.standing(log, dataset, analyst, key, fingerprint)

    def question_json(self, dataset: str, analyst: str, key: str) -> str | None:
        """Return the question of the charge under an analyst's key, as JSON, if there is one."""
        with self._reading() as log:
            line = state.keyed(log, dataset, analyst, key)
        return None if line is None else line.note["question"]

    def answer(self, entry: int) -> Answer:
        """Return the stored answer of an entry that has one."""
        with self._reading() as log:
            answer = state.answer(log, entry)
            assert answer is not None
            return answer

    def store(self, entry: int, answer: str, *, private: bool = True, opening_token: str = "") -> str:
        """Store an answer. Only the one stored first may be released.

        Parameters
        ----------
        entry : int
        answer : str
            What is to be released, as JSON.
        private : bool, default True
            Whether its noise is real.
        opening_token : str, default ""
            See `Session.opening_token`.

        Returns
        -------
        str
            The answer that was stored first: this one, or another.
        """
        with self._transaction(_STORE) as log:
            first = state.answer(log, entry)
            if first is not None:
                return first.text
            charge = log.last("charge", serial=entry)
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
        with self._transaction(_HOLD) as log:
            holds = state.open_holds(log, dataset)
            outer = None if within is None else state.open_hold(holds, dataset, analyst, within, epsilon, text)
            for room in state.rooms(state.accounts(log, dataset, analyst), holds, analyst, limit, outer):
                room.refuse_beyond(epsilon, text)
            if outer is not None:
                Room(f"reservation {outer.id}", outer.epsilon, outer.left).refuse_beyond(epsilon, text)
                return outer.id
            return log.append("hold", dataset, log.new_analyst_id(analyst), {"held": str(epsilon)}).serial

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
        with self._transaction(_END) as log:
            line = log.last("hold", serial=hold)
            if line is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            assert line.dataset is not None
            held = state.open_holds(log, line.dataset).get(hold)
            if held is None:
                return Fraction(0)
            log.append("end", line.dataset, line.analyst, {"reservation": hold})
        return held.left

    def holds(self, dataset: str) -> list[Hold]:
        """Return the open reservations of a data set."""
        with self._reading() as log:
            return list(state.open_holds(log, dataset).values())

    def set_cap(self, dataset: str, analyst: str | None, cap: Fraction) -> None:
        """Set what may be spent on a data set in all. For its owner.

        Parameters
        ----------
        dataset : str
        analyst : str or None
            Whose cap it is; None for the cap over all analysts.
        cap : Fraction

        Raises
        ------
        LedgerError
            If there is no such data set, or the ledger cannot be used.
        """
        with self._transaction(_SET_CAP) as log:
            state.known_terms(log, dataset)
            log.append("cap", dataset, None if analyst is None else log.new_analyst_id(analyst), {"cap": str(cap)})

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
        with self._transaction(_RECORD) as log:
            state.known_terms(log, dataset)
            who, charges = log.analyst_id(analyst), [log.last("charge", serial=entry) for entry in entries]
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
        with self._transaction(_RECORD) as log:
            if dataset is not None:
                state.known_terms(log, dataset)
            return log.append(kind, dataset, None if analyst is None else log.new_analyst_id(analyst), body).number

    def lines(self, after: int = 0, most: int = 1000) -> list[Line]:
        """Return the lines of the log after a number, in order, at most so many."""
        with self._reading() as log:
            return log.lines("number > ? ORDER BY number LIMIT ?", after, most)

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what was charged to a data set, by everybody or by one analyst."""
        with self._reading() as log:
            return state.spent(log, dataset, analyst)

    def cap(self, dataset: str, analyst: str | None = None) -> Fraction | None:
        """Return the cap of a data set, or an analyst's own cap on it if one was set."""
        with self._reading() as log:
            return state.cap(log, dataset, analyst)

    def remaining(self, dataset: str, analyst: str, limit: Fraction | None = None, hold: int | None = None) -> Fraction:
        """Return the largest loss that an analyst may charge now; the parameters are those of `charge`."""
        with self._reading() as log:
            holds = state.open_holds(log, dataset)
            if hold is not None and hold not in holds:
                return Fraction(0)
            held = None if hold is None else holds[hold]
            rooms = state.rooms(state.accounts(log, dataset, analyst), holds, analyst, limit, held)
            return max(min(room.left for room in rooms), Fraction(0))

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        """Return all charges to a data set, or those of one analyst, with their answers."""
        with self._reading() as log:
            return state.entries(log, dataset, analyst)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._reading() as log:
            query = "SELECT DISTINCT dataset FROM lines WHERE kind = 'register' ORDER BY dataset"
            return [name for (name,) in log.run(query)]

    def name_of(self, sources: Sequence[str]) -> str | None:
        """Return the data set of the first of these sources that belongs to one, if any does."""
        with self._reading() as log:
            return next((name for source in sources if (name := log.dataset_of(source)) is not None), None)

    def knows_file(self, file: str) -> bool:
        """Return whether a file, or a table in it, is a source of any data set."""
        with self._reading() as log:
            return any(source == file or source.startswith(f"{file}?table=") for *_, source in log.sources())

    def analysts(self, dataset: str) -> list[str]:
        """Return the names of everyone with an entry, a reservation or a cap of their own."""
        with self._reading() as log:
            state.known_terms(log, dataset)
            return state.analysts(log, dataset)

    @contextmanager
    def _transaction(self, purpose: Purpose, write: bool = True) -> Iterator[Log]:
        with self._store.transaction(purpose, write) as run:
            yield Log(self._store, run, self.id, self._clock, self._random_bytes)

    def _reading(self) -> AbstractContextManager[Log]:
        return self._transaction(READ, write=False)


def _target(path: str | Path) -> str:
    """Follow a link beside data whose ledger is on a server; return any other path as it is."""
    try:
        target = os.readlink(path)
    except (OSError, ValueError):
        return str(path)
    return target if Ledger.on_server(target) else str(path)


def _postgres() -> type[PostgresStore]:
    try:
        from privet.kernel.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError("a ledger on PostgreSQL needs psycopg: pip install 'privet[postgres]'.") from None
    return PostgresStore
