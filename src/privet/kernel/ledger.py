"""The durable record of every charge: append-only, exact, idempotent.

Charge first, ask second: an entry is on disk before the engine is asked, so a crash
may waste budget and never leaks it. Losses are fractions written as text; nothing is
rounded. Each entry carries the totals after it, which are checked when the ledger is
opened. Triggers refuse to change or delete what was written.

A data set has a cap over all analysts, an analyst may have a cap of their own; caps
are appended too, and the last one counts. Many threads and processes may share a
ledger: a charge is one transaction, and nobody else writes during it.

A hold reserves a part of a budget for one analyst until it ends. Holds only decide
who may use what is left: that no cap is passed never depends on them.

The lines are in a SQLite file, or on a PostgreSQL server that several machines share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path

from privet.bounds import is_path, shown
from privet.column import decimal_text
from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError
from privet.kernel.ledger_store import FORMAT, Run, Store, corrupt
from privet.kernel.sqlite_store import MEMORY, SQLiteStore

__all__ = ["MEMORY", "Charge", "Entry", "Hold", "Ledger"]


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
            raise BudgetExceeded(
                f"cannot {asked}: {decimal_text(loss)} of it reaches {self.whose}, which has {decimal_text(left)} left "
                f"of {decimal_text(self.cap)}{reserved}. Lower epsilon, or ask the data owner for more.",
                requested=loss,
                remaining=left,
            )


def _parted(written: str) -> tuple[str, str]:
    """What a charge was written for, which has no blanks, and where it was made; older ledgers do not say that."""
    fingerprint, _, place = str(written).partition(" ")
    return fingerprint, place


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Ledger:
    """A ledger in a file, on a server, or in memory for as long as the process lives.

    >>> ledger = Ledger.open(MEMORY)
    >>> ledger.register("patients", source="a frame", budget=Fraction(1))
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

        `path` is a file, or `postgresql://user@host/database?schema=NAME`.
        """
        ledger = cls(_store(str(path), create), clock)
        if ledger.durable:
            ledger._upgrade()
            with ledger._transaction("read the ledger", write=False) as run:
                ledger._check(run)
        return ledger

    @staticmethod
    def on_server(path: str | Path) -> bool:
        """Whether a path is the address of a ledger on a server and no file."""
        return str(path).startswith(("postgresql:", "postgres:"))  # of two slashes a Path would keep one

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
            number = run.append(
                "entries",
                dataset=dataset,
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
                hold=hold,
                hold_spent=None if held is None else str(min(held.epsilon, held.spent + charge.loss)),
            )
            entry = next(self._entries(run, "id = ?", number))
        return entry, True

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """The charge that stands under a key, if there is one."""
        with self._transaction("read the ledger", write=False) as run:
            return self._standing(run, dataset, analyst, key, fingerprint)

    def fingerprint(self, dataset: str, key: str) -> str | None:
        """What the charge under a key was written for, if there is one."""
        with self._transaction("read the ledger", write=False) as run:
            found = run("SELECT fingerprint FROM entries WHERE dataset = ? AND key = ?", dataset, key).fetchone()
        return None if found is None else _parted(found[0])[0]

    def answer(self, entry: int) -> str:
        """The stored answer of an entry that has one."""
        with self._transaction("read the ledger", write=False) as run:
            return str(run("SELECT answer FROM answers WHERE entry = ?", entry).fetchone()[0])

    def store(self, entry: int, answer: str) -> str:
        """Store an answer; the one stored first is the only one that may be released."""
        with self._transaction("store an answer") as run:
            run("INSERT INTO answers VALUES (?, ?, ?) ON CONFLICT DO NOTHING", entry, answer, self._clock())
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
            return run.append("holds", dataset=dataset, analyst=analyst, epsilon=str(epsilon), at=self._clock())

    def end(self, hold: int) -> Fraction:
        """End a hold, once or again; what it had left, which everybody may charge now."""
        with self._transaction("end a reservation") as run:
            found = run("SELECT dataset FROM holds WHERE id = ?", hold).fetchone()
            if found is None:
                raise LedgerError(
                    f"the ledger '{self.path}' has no reservation {hold}; `privet budget show` lists the open ones."
                )
            left = sum((each.left for each in self._holds(run, found[0]) if each.id == hold), Fraction(0))
            run("INSERT INTO ends VALUES (?, ?) ON CONFLICT DO NOTHING", hold, self._clock())
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
                "SELECT analyst FROM entries WHERE dataset = ? UNION "
                "SELECT analyst FROM holds WHERE dataset = ? UNION "
                "SELECT analyst FROM caps WHERE dataset = ? AND analyst IS NOT NULL ORDER BY 1"
            )
            return [name for (name,) in run(query, dataset, dataset, dataset)]

    # -- inside one transaction -------------------------------------------------------------

    def _known(self, run: Run, dataset: str) -> None:
        if run("SELECT 1 FROM datasets WHERE name = ?", dataset).fetchone() is None:
            raise LedgerError(f"the ledger '{self.path}' has no data set '{dataset}'; `privet budget show` lists them.")

    def _standing(self, run: Run, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
        query = "SELECT analyst, fingerprint, id FROM entries WHERE dataset = ? AND key = ?"
        found = None if key is None else run(query, dataset, key).fetchone()
        if found is None:
            return None
        if (found[0], _parted(found[1])[0]) != (analyst, fingerprint):
            raise KeyReused(
                f"the key '{key}' stands for another analyst, scope, question or epsilon; use a new key for this."
            )
        return next(self._entries(run, "id = ?", found[2]))

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
        query = (
            "SELECT id, analyst, epsilon, at, "
            "(SELECT hold_spent FROM entries WHERE hold = holds.id ORDER BY entries.id DESC LIMIT 1) "
            "FROM holds WHERE dataset = ? AND id NOT IN (SELECT hold FROM ends) ORDER BY id"
        )
        return [
            Hold(number, analyst, Fraction(epsilon), Fraction(spent or 0), at)
            for number, analyst, epsilon, at, spent in run(query, dataset)
        ]

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
            query = "SELECT dataset_spent FROM entries WHERE dataset = ? ORDER BY id DESC LIMIT 1"
            row = run(query, dataset).fetchone()
        else:
            query = "SELECT analyst_spent FROM entries WHERE dataset = ? AND analyst = ? ORDER BY id DESC LIMIT 1"
            row = run(query, dataset, analyst).fetchone()
        return Fraction(0) if row is None else Fraction(row[0])

    def _caps(self, run: Run, dataset: str, analyst: str | None) -> Fraction | None:
        whose, values = ("analyst IS NULL", ()) if analyst is None else ("analyst = ?", (analyst,))
        query = f"SELECT cap FROM caps WHERE dataset = ? AND {whose} ORDER BY id DESC LIMIT 1"
        row = run(query, dataset, *values).fetchone()
        return None if row is None else Fraction(row[0])

    def _cap(self, run: Run, dataset: str, analyst: str | None, cap: Fraction) -> None:
        run.append("caps", dataset=dataset, analyst=analyst, cap=str(cap), at=self._clock())

    def _entries(self, run: Run, condition: str, *values: object) -> Iterator[Entry]:
        query = (
            "SELECT id, analyst, scope, question, epsilon, loss, key, entries.at, answer, fingerprint FROM entries "
            f"LEFT JOIN answers ON entry = id WHERE {condition} ORDER BY id"
        )
        for row in run(query, *values):
            number, analyst, scope, question, epsilon, loss, key, at, answer, written = row
            yield Entry(number, analyst, scope, question, epsilon, Fraction(loss), key, at, answer, _parted(written)[1])

    def _upgrade(self) -> None:
        """Bring a ledger of an older format to this one, as a whole or not at all; no line of it changes."""

        def steps(run: Run) -> Sequence[str]:
            found = run("SELECT version FROM format").fetchall()
            return self._store.upgrades.get(found[0][0], ()) if len(found) == 1 else ()

        if not self._store.upgrades:
            return
        with self._transaction("read the ledger", write=False) as run:
            old = steps(run)
        if old:
            with self._transaction("upgrade the ledger") as run:
                if steps(run):  # nobody else was faster
                    for statement in old:
                        run(statement)
                    run("UPDATE format SET version = ?", FORMAT)
                self._check(run)  # a damaged ledger stays as it is

    def _check(self, run: Run) -> None:
        """Refuse what is no whole ledger, or one whose totals do not follow from its entries.

        That takes a look at every line, once for an opening; a charge looks at the last totals alone.
        """
        number_of = cache(Fraction)  # losses repeat, and to read one takes longer than to add it
        sound = self._store.is_whole(run)
        if sound:
            holds = {
                number: (dataset, analyst, number_of(epsilon))
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


def _store(place: str, create: bool) -> Store:
    if not Ledger.on_server(place):
        if not is_path(place):
            raise LedgerError(f"no ledger can be at '{shown(place)}': no file can have this name; choose another.")
        return SQLiteStore.open(place, create)
    try:
        from privet.kernel.postgres_store import PostgresStore
    except ImportError:
        raise LedgerError("a ledger on PostgreSQL needs psycopg: pip install 'privet[postgres]'.") from None
    return PostgresStore.open(place, create)
