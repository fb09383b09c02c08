"""What a server knows while it runs, and how its life goes: start, new grants, stop.

Requests pass the boundary (`boundary`), are answered by the functions of `handlers`, and `routes` says which path is
which function.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privet import ledger_lines
from privet.errors import LedgerError, QuestionError
from privet.kernel import FIXED, Ledger, Session
from privet.receipts import Receipts, key_of_server
from privet.service.config import Config, Grant, Limits, load
from privet.service.decisions import Whose
from privet.service.jobs import Jobs
from privet.service.pacing import PacedLedger
from privet.service.permissions import AuditTrail, Buckets, Permissions
from privet.service.permits import Permit
from privet.service.sittings import Sittings


@dataclass
class Service:
    """What a server knows while it runs.

    Parameters
    ----------
    sessions : mapping of str to Session
        One for each table; every sitting has its own copy.
    ledger : Ledger
        Where tokens and events are; that of the tables.
    config : Config
    ticks : mapping of str to float
        For each table the seconds after which answers leave; 0 for at once.
    clock : callable, optional
        Returns seconds that only grow, for tests.
    """

    sessions: Mapping[str, Session]
    ledger: Ledger
    config: Config
    ticks: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic
    access: Permissions = field(init=False)
    sittings: Sittings = field(init=False)
    audit: AuditTrail = field(init=False)
    counts: Counter[tuple[str, str]] = field(init=False, default_factory=Counter)
    stopping: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self.sleep: Callable[[float], bool] = self._stopped.wait  # until then, or until the server stops
        self.sessions = {table: self._paced(table, session) for table, session in self.sessions.items()}
        limits, names = self.limits, {table: session.dataset for table, session in self.sessions.items()}
        self.access = Permissions(
            self.ledger,
            self.config.analysts,
            self.config.owners,
            names,
            self.clock,
            limits.refresh,
            self.config.permits,
        )
        self.access.announce(self._amount, self.config.analysts, self.config.owners, self.config.permits)
        self.sittings = Sittings(self.clock, limits.idle, limits.sittings)
        self.audit = AuditTrail(self.ledger)
        self.rates = Buckets(limits.rate, limits.burst, self.clock)
        self.failures = Buckets(1, 20, self.clock)
        self.workers = ThreadPoolExecutor(limits.workers, "privet-question")
        self.clerks = ThreadPoolExecutor(limits.workers, "privet-ledger")  # what asks no engine waits for no engine
        self.guards = ThreadPoolExecutor(2, "privet-boundary")  # and who may enter is found out beside all requests
        self.jobs = Jobs(self.clock, limits.jobs, limits.workers)
        # while a question is answered there, nobody else charges its sitting: see `Session.answer`
        self.changing = {table for table, session in self.sessions.items() if session.engine.version != FIXED}
        self.asking: Counter[str] = Counter()  # questions of each analyst that are under way
        self.reading: Counter[str] = Counter()  # and requests that ask no engine
        self.coming: Counter[str] = Counter()  # and those whose body is on its way
        self.streams: Counter[str] = Counter()  # jobs that each analyst follows
        self.keys: set[tuple[str, str, str]] = set()  # analyst, table and key of what is under way
        self._signing = threading.Lock()
        self._receipts: Receipts | None = None

    def _paced(self, table: str, session: Session) -> Session:
        """Return a session whose answers are written at ticks."""
        tick = self.ticks.get(table, 0.0)
        return replace(
            session, ledger=PacedLedger.around(session.ledger, tick, self.clock, lambda own: self.sleep(own))
        )

    def _amount(self, table: str, epsilon: Fraction) -> Fraction:
        return self.sessions[table].unit.amount(epsilon)

    def limit(self, table: str) -> Fraction | None:
        """Return what a table may spend in all where its configuration says less than the ledger.

        What owners have raised it by comes on top, as it does in the ledger.
        """
        session = self.sessions[table]
        raised = self.access.decisions.raised[Whose(session.dataset)]
        return None if session.limit is None else session.limit + raised

    @property
    def receipts(self) -> Receipts | None:
        """What makes receipts, with the key of the ledger, which is made if there is none; None without a key."""
        with self._signing:
            if self._receipts is None and key_of_server(self.ledger) is not None:
                self._receipts = Receipts(self.ledger)
            return self._receipts

    @property
    def limits(self) -> Limits:
        return self.config.limits

    def unit(self, session: Session) -> tuple[str, str | None]:
        """Return what the budget of a table is counted in, and its delta."""
        unit = session.unit
        return unit.name, None if unit.delta is None else str(unit.delta)

    def log(self, operation: str | None, error: BaseException) -> None:
        """Tell the owner what kind of error it was: its words may quote a row or a secret."""
        where = "" if operation is None else f" in {operation}"
        self._say(f"{type(error).__name__}{where}")

    @staticmethod
    def _say(words: str) -> None:
        print(f"privet: {words}", file=sys.stderr, flush=True)

    # -- the life of a server ---------------------------------------------------------------

    def reload(
        self,
        grants: Mapping[str, Grant] | None,
        owners: tuple[str, ...],
        permits: Mapping[str, Permit] | None = None,
    ) -> None:
        """Take new grants and permits without a restart; whoever has lost something loses their sittings."""
        permits = self.access.permits if permits is None else permits
        self.access.announce(self._amount, grants, owners, permits)
        lost = self.access.grant(grants, owners, permits)
        for name in lost:
            self.end_of(name)

    def reread(self) -> None:
        """Take the grants of the configuration file as it is now, and tell where the server runs how that went.

        Raises
        ------
        QuestionError
            There is no file, or it has a mistake; the words name nothing that is in it.
        """
        if self.config.path is None:
            raise QuestionError("this server was started without a configuration file, so there is none to read.")
        try:
            fresh = load(self.config.path)
        except QuestionError as error:
            self._say(f"grants stay as they were: {error}")
            raise QuestionError(
                "the configuration has a mistake, so grants stay as they were; the server's own output says where."
            ) from None
        self.reload(fresh.analysts, fresh.owners, fresh.permits)
        new = sorted({table.name for table in fresh.tables} - set(self.sessions))
        self._say("grants were read again" + (f"; served after a restart: {', '.join(new)}" if new else ""))

    def end_of(self, analyst: str, table: str | None = None) -> None:
        """End the sittings and fits of an analyst who has lost a table, or with None any."""
        self.sittings.close_of(analyst, table)
        self.jobs.cancel_of(analyst, table)

    def close(self) -> None:
        """Finish what was charged, end all sittings, and let go of the engines."""
        self.stopping = True
        self._stopped.set()
        self.jobs.close()
        self.workers.shutdown(wait=True)
        self.clerks.shutdown(wait=True)
        self.guards.shutdown(wait=True)
        self.sittings.sweep(all_of_them=True)
        try:
            self.audit.flush()
        except LedgerError as error:
            self.log(None, error)
        for session in self.sessions.values():
            session.engine.close()

    def ready(self) -> bool:
        """Return whether the ledger can be read and no engine is closed."""
        try:
            ledger_lines.events(self.ledger, 2**53, 1)
        except LedgerError:
            return False
        return not self.stopping and not any(session.engine.closed for session in self.sessions.values())
