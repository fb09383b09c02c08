"""The durable record of every charge: append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash may waste
budget and never leaks it. Losses are fractions written as text; nothing is rounded. All that
happens is a line of one log (`log`), and when a ledger is opened, every line is checked
(`replay`). Many threads and processes may share a ledger: a charge is one transaction, and
nobody else writes during it (`store`).

A data set has a cap over all analysts, and an analyst may have a cap of their own. Caps are
appended too, and the last one counts. A data set also has terms, which say what its charges
mean, and sources, which say where its rows are or were. A source belongs to one data set, so
that what was spent on it is never left behind under another name.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide who may use
what is left: that no cap is passed never depends on them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import BudgetExceeded, LedgerError, PrivacyError
from privet.kernel.domain import Domain
from privet.kernel.ledger import replay
from privet.kernel.ledger.log import (
    UNCHARGED,
    Account,
    Answer,
    CapChange,
    Charge,
    Entry,
    Hold,
    Line,
    Log,
    PermitTotals,
    Terms,
    cells_of,
    terms_of,
)
from privet.kernel.ledger.store import MEMORY, READ, Purpose, SQLiteStore, Store
from privet.kernel.public_values import Json, canonical
from privet.text import is_path, shown

if TYPE_CHECKING:
    from privet.kernel.ledger.postgres import PostgresStore

_LOOK = "`privet budget show` tells"
_RELEASE = f"{_LOOK}, and `privet budget release` ends it"
_CHARGE = Purpose(
    "charge the ledger",
    "nothing was charged",
    "`privet budget show --entries` tells; the same question with the same key finds the charge or makes it, without a "
    "key a new try is a new charge",
)
_STORE = Purpose(
    "store an answer in the ledger", "the answer was neither stored nor released", "the answer is not released"
)
_OPEN_STILL = "the reservation stays open until `privet budget release` ends it"
_HOLD = Purpose("reserve in the ledger", "nothing was reserved", _RELEASE)
_END = Purpose("end a reservation in the ledger", _OPEN_STILL, _RELEASE)
_REGISTER = Purpose("register the data set in the ledger", unknown="open the table again")
_SET_CAP = Purpose("change a budget in the ledger", "the budget stays as it was", _LOOK)
_RECORD = Purpose("write an event to the ledger", "nothing was changed", f"{_LOOK}, and to do it again is safe")
_DECLARE = Purpose("declare a domain in the ledger", "nothing was changed", f"{_LOOK}, and to declare it again is safe")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def no_budget(dataset: str) -> LedgerError:
    """Return the error of a data set that is opened for the first time without a budget."""
    return LedgerError(
        f"the data set '{dataset}' has no budget yet; give one the first time, with --budget 1.0 (in Python "
        'budget="1.0").'
    )


class Ledger:
    """A ledger in a file, on a server, or in memory for as long as the process lives.

    Every method raises LedgerError if the ledger is damaged or out of reach, and so do those that write about a data
    set, or end a hold, that is not there. Nothing is written then, unless the sentence says that nobody can tell.

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
        self._permit_totals = PermitTotals()
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
        if not (cls.on_server(target) or is_path(target)):
            raise LedgerError(f"no ledger can be at '{shown(target)}': no file can have this name; choose another.")
        store_type = _postgres() if cls.on_server(target) else SQLiteStore
        return cls(store_type.open(target, create, new_id), clock, random_bytes)

    @staticmethod
    def on_server(path: str | Path) -> bool:
        """Return whether a path is the address of a ledger on a server, and no file."""
        return str(path).startswith(("postgresql:", "postgres:"))  # a Path would keep one of two slashes

    @staticmethod
    def identity_of(path: str | Path | Ledger) -> str:
        """Return the same text for every path to the same ledger, whoever its user is, without opening it."""
        if isinstance(path, Ledger):
            return path._store.identity
        target = _target(path)
        if Ledger.on_server(target):
            return _postgres()(target).identity
        return os.path.realpath(target) if target != MEMORY and is_path(target) else target

    def check(self) -> None:
        """Check every line against those before it."""
        with self._transaction() as log:
            self.id = log.ledger_id = self._store.check(log.run)
            replay.check(log)

    def close(self) -> None:
        """Close the file or the connection; what was charged stays."""
        self._store.close()

    # -- what the owner of the data does ----------------------------------------------------

    def register(
        self,
        dataset: str,
        *,
        source: str,
        budget: Fraction | None,
        domain: Domain | None = None,
        aliases: Sequence[str] = (),
        delta: Fraction | None = None,
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
        delta : Fraction, optional
            With one, the budget and all charges are counted in rho.

        Returns
        -------
        int
            The number of the terms, which every charge of this opening is compared with.

        Raises
        ------
        PrivacyError
            If the domain or the delta is not the one that the data set's charges were made under, or the budget is
            larger.
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
            terms, recorded = log.terms(dataset), log.cap(dataset)
            if terms is not None:
                terms.refuse_unknown()
                terms.refuse_unit(None if delta is None else str(delta))
                if domain is not None:
                    terms.refuse_others(domain)
            elif budget is None:
                raise no_budget(dataset)
            if budget is not None and recorded is not None and budget > recorded:
                assert terms is not None
                raise PrivacyError(
                    f"the budget {terms.words(budget)} asked for '{dataset}' is above the {terms.words(recorded)} in "
                    "its ledger; open it with that or less, or let its owner raise it with `privet budget grant`."
                )
            sources = [log.new_source_id(dataset, text) for text, name in datasets.items() if name is None]
            if terms is None:
                pins = terms_of(domain, None if delta is None else str(delta))
                terms = Terms.read(log.append("register", dataset, None, {**pins, "sources": sources}))
                log.append("cap", dataset, None, {"cap": str(budget)})
            elif sources:
                log.append("source", dataset, None, {"sources": sources})
            return terms.serial

    def declare(self, dataset: str, domain: Domain) -> Fraction:
        """Record a changed domain and re-price what was spent so far. For the owner of the data.

        A person with k rows instead of j has lost k/j times what was written: each of their records has lost the
        same. Of a rho it is (k/j)^2. So an entry for every analyst adds (k/j - 1) times what they have spent, or
        (k/j)^2 - 1 times, even if that is more than a cap leaves. Other cells change no price: releases under the old
        and the new ones are about the same people, whose losses add.

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
            If it says otherwise whose rows are whose, or allows a person fewer rows: the promise so far is for more.
        """
        with self._transaction(_DECLARE) as log:
            before, rows, added = log.known_terms(dataset), domain.rows_per_person, Fraction(0)
            before.refuse_unknown()
            before.refuse_weaker(domain)
            if (before.rows_per_person, before.cells) == (rows, cells_of(domain)):
                return added
            terms = Terms.read(log.append("register", dataset, None, {**terms_of(domain, before.delta), "sources": []}))
            what = f"re-price for {rows} rows per person, not {before.rows_per_person}"
            for analyst, under, spent in log.shares(dataset) if rows > before.rows_per_person else ():
                more = (before.dearer(rows) - 1) * spent
                if more:
                    words = before.words(more)
                    charge = Charge(what, canonical({"question": what}), "", "all rows", words, more, under=under)
                    log.permit_totals = PermitTotals()  # of this transaction, whose lines are not committed yet
                    permit = None if under is None else under.permit
                    accounts = [*log.accounts(terms, analyst, (), None, None, permit)]
                    log.write_charge(analyst, charge, terms, accounts)
                    added += more
            return added

    def set_cap(self, dataset: str, analyst: str | None, cap: Fraction) -> None:
        """Set what one analyst, or everybody if that is None, may spend on a data set in all. For its owner."""
        with self._transaction(_SET_CAP) as log:
            log.known_terms(dataset)
            log.append("cap", dataset, log.new_analyst_id(analyst), {"cap": str(cap)})

    # -- what an analyst does ---------------------------------------------------------------

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
        """
        with self._transaction(_CHARGE) as log:
            standing = log.standing(dataset, analyst, charge.key, charge.fingerprint)
            if standing is not None:
                return standing, False
            terms = log.known_terms(dataset, "open the table again")
            terms.refuse_unknown()
            if charge.terms not in (None, terms.serial):
                raise PrivacyError(
                    f"the owner has declared another domain for '{dataset}' since this table was opened; open it again "
                    "with that one."
                )
            asked = f"charge epsilon={charge.epsilon} for {charge.question} on {charge.scope}"
            holds = log.open_holds(dataset)
            permit = None if charge.under is None else charge.under.permit
            held = _open_hold(holds, dataset, analyst, hold, charge.loss, asked, permit)
            accounts = [*log.accounts(terms, analyst, holds.values(), limit, held, permit)]
            for account in accounts:
                account.refuse_beyond(charge.loss, asked)
            return log.write_charge(analyst, charge, terms, accounts, held), True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """Return the charge under an analyst's key, if there is one; KeyReused if it has another fingerprint."""
        with self._transaction() as log:
            return log.standing(dataset, analyst, key, fingerprint)

    def question_json(self, dataset: str, analyst: str, key: str) -> str | None:
        """Return the question of the charge under an analyst's key, as JSON, if there is one."""
        with self._transaction() as log:
            line = log.keyed(dataset, analyst, key)
            return None if line is None else line.note["question"]

    def entry_of(self, dataset: str, analyst: str, key: str) -> int | None:
        """Return the number of the charge under an analyst's key, if there is one."""
        with self._transaction() as log:
            line = log.keyed(dataset, analyst, key)
            return None if line is None else line.serial

    def fingerprint(self, entry: int) -> str:
        """Return the fingerprint of a charge."""
        with self._transaction() as log:
            line = log.last("charge", serial=entry)
            assert line is not None
            return str(line.note["fingerprint"])

    def answer(self, entry: int) -> Answer:
        """Return the stored answer of an entry that has one."""
        with self._transaction() as log:
            answer = log.answer(entry)
            assert answer is not None
            return answer

    def store(self, entry: int, answer: str, *, private: bool = True, opening_token: str = "") -> str:
        """Store an answer, and return the one that was stored first: only that may be released.

        Parameters
        ----------
        entry : int
        answer : str
            What is to be released, as JSON.
        private : bool, default True
            Whether its noise is real.
        opening_token : str, default ""
            See `Session.opening_token`.
        """
        with self._transaction(_STORE) as log:
            first = log.answer(entry)
            if first is not None:
                return first.text
            charge = log.last("charge", serial=entry)
            assert charge is not None
            log.write_answer(charge, Answer(answer, opening_token), private)
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
        permit: str | None = None,
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
        permit : str, optional
            The data permit whose cap it counts against as well.

        Raises
        ------
        BudgetExceeded
            If a cap, or the outer hold, leaves less than `epsilon`, or the outer hold has ended.
        """
        with self._transaction(_HOLD) as log:
            terms = log.known_terms(dataset, "open the table again")
            wanted = terms.words(epsilon if asked is None else asked)
            text = f"reserve {wanted}" if wanted.startswith("rho") else f"reserve epsilon={wanted}"
            holds = log.open_holds(dataset)
            outer = _open_hold(holds, dataset, analyst, within, epsilon, text, permit)
            for account in log.accounts(terms, analyst, holds.values(), limit, outer, permit):
                account.refuse_beyond(epsilon, text)
            if outer is not None:
                whole = Account(f"reservation {outer.id}", outer.spent, outer.epsilon, outer.epsilon, outer.left)
                whole.refuse_beyond(epsilon, text)
                return outer.id
            body: dict[str, Json] = (
                {"held": str(epsilon)} if permit is None else {"held": str(epsilon), "permit": permit}
            )
            return log.append("hold", dataset, log.new_analyst_id(analyst), body).serial

    def end(self, hold: int) -> Fraction:
        """End a hold; ending it again does nothing. Return what it had left, which is 0 if it had ended before."""
        with self._transaction(_END) as log:
            line = log.last("hold", serial=hold)
            if line is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            held = log.open_holds(str(line.dataset)).get(hold)
            if held is None:
                return Fraction(0)
            log.append("end", line.dataset, line.analyst, {"reservation": hold})
            return held.left

    # -- lines that no charge rests on ------------------------------------------------------

    def annotate(
        self,
        kind: str,
        dataset: str | None,
        analyst: str | None,
        body: Mapping[str, Json],
        note: Mapping[str, Json] | None = None,
        *,
        seen: int | None = None,
        caps: Sequence[CapChange] = (),
    ) -> Line | None:
        """Write a line that no charge rests on: see `privet.ledger_lines`.

        Parameters
        ----------
        kind : str
            An event of a server is `config`; the others are `model` and `key`.
        dataset, analyst : str or None
            Whom it concerns.
        body : mapping
            What it says.
        note : mapping, optional
            What the ledger keeps beside the line, under its hash.
        seen : int, optional
            The number of the last line of this kind that the caller knows.
        caps : sequence of CapChange, default ()
            Changes of caps that follow from it, written in the same transaction.

        Returns
        -------
        Line or None
            None, and nothing is written, if there are lines of this kind after `seen`.
        """
        assert kind in UNCHARGED
        with self._transaction(_STORE if kind == "model" else _RECORD) as log:
            if seen is not None and log.lines(f"kind = '{kind}' AND number > ? LIMIT 1", seen):
                return None
            if dataset is not None:
                log.known_terms(dataset)
            line = log.append(kind, dataset, log.new_analyst_id(analyst), body, note)
            for own in caps:
                log.change_cap(own)
            return line

    def find(self, condition: str, *values: object) -> list[Line]:
        """Return the lines that an SQL condition on the columns of the log holds for, as `number > ?`."""
        with self._transaction() as log:
            return log.lines(condition, *values)

    def leaves(self, after: int = 0, most: int = 100_000) -> list[str]:
        """Return the hashes of the lines after a number, in order, at most so many."""
        with self._transaction() as log:
            query = "SELECT leaf FROM lines WHERE number > ? ORDER BY number LIMIT ?"
            return [leaf for (leaf,) in log.run(query, after, most).fetchall()]

    def analyst_names(self) -> dict[str, str]:
        """Return the names of all analysts by their ids."""
        with self._transaction() as log:
            return log.analyst_names()

    # -- what is written --------------------------------------------------------------------

    def lines(self, after: int = 0, most: int = 1000) -> list[Line]:
        """Return the lines of the log after a number, in order, at most so many."""
        with self._transaction() as log:
            return log.lines("number > ? ORDER BY number LIMIT ?", after, most)

    def delta(self, dataset: str) -> Fraction | None:
        """Return the delta of a data set that is counted in rho; None for one that is counted in epsilon."""
        with self._transaction() as log:
            text = log.known_terms(dataset).delta
            return None if text is None else Fraction(text)

    def spent(self, dataset: str, analyst: str | None = None) -> Fraction:
        """Return what was charged to a data set, by everybody or by one analyst."""
        with self._transaction() as log:
            return log.spent(dataset, analyst)

    def permit_spent(self, dataset: str, permit: str) -> Fraction:
        """Return what was charged to a data set under a permit."""
        with self._transaction() as log:
            return self._permit_totals.of(log, dataset).get(permit, Fraction(0))

    def permits(self, dataset: str) -> dict[str, Fraction]:
        """Return what was charged to a data set under each permit that was used."""
        with self._transaction() as log:
            return dict(sorted(self._permit_totals.of(log, dataset).items()))

    def cap(self, dataset: str, analyst: str | None = None, permit: str | None = None) -> Fraction | None:
        """Return the cap of a data set, or that of an analyst or of a permit on it if one was set."""
        with self._transaction() as log:
            return log.cap(dataset, analyst, permit)

    def remaining(
        self,
        dataset: str,
        analyst: str,
        limit: Fraction | None = None,
        hold: int | None = None,
        permit: str | None = None,
    ) -> Fraction:
        """Return the largest loss that an analyst may charge now; the parameters are those of `charge`."""
        with self._transaction() as log:
            holds = log.open_holds(dataset)
            if hold is not None and hold not in holds:
                return Fraction(0)
            held = None if hold is None else holds[hold]
            terms = log.known_terms(dataset, "open the table again")
            accounts = log.accounts(terms, analyst, holds.values(), limit, held, permit)
            return max(min(account.left for account in accounts if account.cap is not None), Fraction(0))

    def holds(self, dataset: str) -> list[Hold]:
        """Return the open reservations of a data set."""
        with self._transaction() as log:
            return list(log.open_holds(dataset).values())

    def entries(self, dataset: str, analyst: str | None = None) -> list[Entry]:
        """Return all charges to a data set, or those of one analyst, with their answers."""
        with self._transaction() as log:
            return log.entries(dataset, analyst)

    def page(self, dataset: str, analyst: str, after: int, most: int) -> list[tuple[Entry, bool]]:
        """Return charges of an analyst after an entry, at most so many, and whether each is answered.

        Answers are left out: all that an analyst has may be larger than memory.
        """
        with self._transaction() as log:
            return log.page(dataset, analyst, after, most)

    def datasets(self) -> list[str]:
        """Return the names of all data sets."""
        with self._transaction() as log:
            query = "SELECT DISTINCT dataset FROM lines WHERE kind = 'register' ORDER BY dataset"
            return [name for (name,) in log.run(query)]

    def name_of(self, sources: Sequence[str]) -> str | None:
        """Return the data set of the first of these sources that belongs to one, if any does."""
        with self._transaction() as log:
            return next((name for source in sources if (name := log.dataset_of(source)) is not None), None)

    def knows_file(self, file: str) -> bool:
        """Return whether a file, or a table in it, is a source of any data set."""
        with self._transaction() as log:
            return any(source == file or source.startswith(f"{file}?table=") for *_, source in log.sources())

    def analysts(self, dataset: str) -> list[str]:
        """Return the names of everyone with an entry, a reservation or a cap of their own."""
        with self._transaction() as log:
            log.known_terms(dataset)
            return log.analysts(dataset)

    @contextmanager
    def _transaction(self, purpose: Purpose = READ, write: bool | None = None) -> Iterator[Log]:
        with self._store.transaction(purpose, purpose is not READ if write is None else write) as run:
            yield Log(self._store, run, self.id, self._clock, self._random_bytes, self._permit_totals)


def _open_hold(
    holds: Mapping[int, Hold],
    dataset: str,
    analyst: str,
    hold: int | None,
    loss: Fraction,
    asked: str,
    permit: str | None,
) -> Hold | None:
    """Return an analyst's open hold under a permit, if one is asked for; BudgetExceeded if it has ended."""
    held = None if hold is None else holds.get(hold)
    if hold is not None and (held is None or (held.analyst, held.permit) != (analyst, permit)):
        raise BudgetExceeded(
            f"cannot {asked}: reservation {hold} of '{analyst}' on '{dataset}' has ended. Reserve again, or ask the "
            "table itself.",
            requested=loss,
            remaining=Fraction(0),
        )
    return held


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
