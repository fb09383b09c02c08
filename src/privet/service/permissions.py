"""Who may do what: a token says who it is, the configuration and owners what they may use; all else is refused."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Literal

from privet import ledger_lines
from privet.kernel import Json, Ledger
from privet.service.config import Grant
from privet.service.decisions import OwnersWord, Whose
from privet.service.permits import NoSuchPermit, NotPermitted, Permit
from privet.service.tokens import OWNER, Token, Tokens

GrantSource = Literal["configuration", "owner", "token"]


@dataclass(frozen=True)
class Caller:
    """Whoever has presented a live token."""

    name: str
    role: str
    token: Token


def _now() -> datetime:
    return datetime.now(UTC)


class Permissions:
    """Tokens and grants of a server.

    Parameters
    ----------
    ledger : Ledger
        Where tokens are, and events are written.
    grants : mapping of str to Grant, or None
        What each analyst may use; None for a server without a configuration, where a token is a grant.
    owners : collection of str
        Whose tokens may be an owner's.
    tables : mapping of str to str
        The names of all tables, and under which each is in the ledger.
    clock : callable
        Returns seconds that only grow.
    refresh : float
        Seconds after which tokens are read again.
    permits : mapping of str to Permit
    now : callable, optional
        Returns the time, for tests.
    """

    def __init__(
        self,
        ledger: Ledger,
        grants: Mapping[str, Grant] | None,
        owners: tuple[str, ...],
        tables: Mapping[str, str],
        clock: Callable[[], float],
        refresh: float,
        permits: Mapping[str, Permit],
        now: Callable[[], datetime] = _now,
    ) -> None:
        self.tokens, self.decisions = Tokens(ledger, now), OwnersWord(ledger)
        self._grants, self._owners, self._tables = grants, owners, tables
        self._clock, self._refresh, self._now = clock, refresh, now
        self.permits = permits
        self._read = clock()

    @property
    def stale(self) -> bool:
        """Whether it is time to read tokens and decisions again."""
        return self._clock() - self._read >= self._refresh

    def refresh_stale(self) -> None:
        """Read tokens and decisions again if it is time."""
        if self.stale:
            self.refresh()

    def refresh(self) -> None:
        """Read tokens and decisions again."""
        self._read = self._clock()
        self.tokens.refresh()
        self.decisions.refresh()

    def caller(self, header: str | None) -> Caller | None:
        """Return who a request comes from, by its Authorization header; None if that is nobody."""
        scheme, _, secret = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            return None
        return self._caller(self.tokens.find(secret))

    def caller_of(self, identity: str) -> Caller | None:
        """Return whose token has this id; None if it has ended, was revoked or lost its grant."""
        return self._caller(self.tokens.live(identity))

    def _caller(self, token: Token | None) -> Caller | None:
        if token is None:
            return None
        if token.role == OWNER:
            known = self.is_owner(token.name)
        else:
            known = self._grants is None or token.name in self._grants or self._is_granted(token.name)
        return Caller(token.name, token.role, token) if known else None

    def is_owner(self, name: str) -> bool:
        """Return whether a name may have an owner's token."""
        return self._grants is None or name in self._owners

    def _is_granted(self, analyst: str) -> bool:
        """Whether an owner, or a permit, has named the analyst."""
        named = any(name == analyst for name, _ in list(self.decisions.grants))
        return named or any(analyst in permit.analysts for permit in self.permits.values())

    def tables(self, caller: Caller) -> list[str]:
        """Return the tables that a caller may use, in order."""
        own = caller.token.tables
        allowed = list(self._tables) if caller.role == OWNER else self.allowed(caller.name)
        return [name for name in allowed if own is None or name in own]

    def allowed(self, analyst: str) -> list[str]:
        """Return the tables that an analyst may use now, by a grant or under a permit, in order."""
        permitted = {table for permit in self.permits_of(analyst) for table in permit.tables}
        return [table for table in self._tables if table in permitted or self.source(analyst, table) is not None]

    def permits_of(self, analyst: str) -> list[Permit]:
        """Return the permits of an analyst that have not ended, without tables that an owner has withdrawn."""
        live = [own for own in self.permits.values() if analyst in own.analysts and not own.ended(self.today)]
        return [replace(own, tables=self._not_withdrawn(analyst, own)) for own in live]

    def _not_withdrawn(self, analyst: str, permit: Permit) -> dict[str, Fraction | None]:
        withdrawn = self.decisions.withdrawn
        return {
            table: cap for table, cap in permit.tables.items() if (analyst, self._tables.get(table)) not in withdrawn
        }

    @property
    def today(self) -> date:
        """The day now, in UTC."""
        return self._now().date()

    def under(self, analyst: str, table: str, permit: str | None, purpose: str | None) -> Permit | None:
        """Return the permit that an analyst uses a table under; None for their own grant.

        Raises
        ------
        NoSuchPermit, NotPermitted
        """
        if permit is None:
            if self.source(analyst, table) is None:
                raise NotPermitted("this table is yours under a permit alone; name the permit, and a purpose.")
            return None
        own = self.permits.get(permit)
        if own is None or analyst not in own.analysts or table not in self._not_withdrawn(analyst, own):
            raise NoSuchPermit
        own.check(self.today)
        own.check_purpose(purpose)
        return own

    def source(self, analyst: str, table: str) -> GrantSource | None:
        """Return who has granted a table to an analyst; None if it is not theirs now."""
        pair, today = (analyst, self._tables[table]), self._now().date()
        if pair in self.decisions.withdrawn:
            return None
        if self._grants is None:
            return "token"
        grant = self._grants.get(analyst)
        if grant is not None and table in grant.tables and (grant.expires is None or today <= grant.expires):
            return "configuration"
        own = self.decisions.grants.get(pair)
        return "owner" if own is not None and (own.expires is None or today <= own.expires) else None

    def check_release(self, analyst: str, table: str, permit: str | None, what: str) -> None:
        """Refuse to let out what was paid for under a grant or a permit that does not let it out now, to this analyst.

        Raises
        ------
        NoSuchPermit, NotPermitted
        """
        if permit is None:
            if self.source(analyst, table) is None:
                raise NotPermitted("this was made under a grant of your own, which has ended; ask the owner.")
            return
        own = self.permits.get(permit)
        if own is None or analyst not in own.analysts or table not in own.tables:
            raise NoSuchPermit
        own.check(self.today)
        own.check_release(what)

    def configured(self, analyst: str) -> Grant | None:
        """Return what the configuration grants an analyst."""
        return (self._grants or {}).get(analyst)

    def analysts(self) -> list[str]:
        """Return all who are, or were by an owner, granted something, in order."""
        decided = {name for name, _ in [*self.decisions.grants, *self.decisions.withdrawn]}
        permitted = {name for permit in self.permits.values() for name in permit.analysts}
        return sorted({*(self._grants or {}), *decided, *permitted})

    def grant(
        self, grants: Mapping[str, Grant] | None, owners: tuple[str, ...], permits: Mapping[str, Permit]
    ) -> set[str]:
        """Take new grants; return who has lost something."""
        lost: set[str] = set()
        old, new = self._grants or {}, grants or {}
        for permit in self.permits.values():
            if permits.get(permit.name) != permit:
                lost.update(permit.analysts)
        for name in sorted({*new, *old}):
            before, after = old.get(name), new.get(name)
            if before is not None and (after is None or not set(before.tables) <= set(after.tables)):
                lost.add(name)
        self._grants, self._owners, self.permits = grants, owners, permits
        return lost

    def announce(
        self,
        amount: Callable[[str, Fraction], Fraction],
        grants: Mapping[str, Grant] | None,
        owners: tuple[str, ...],
        permits: Mapping[str, Permit],
    ) -> None:
        """Write down grants, owners and permits that have changed, and set the caps that follow; see `decisions`.

        It is done before these are taken: nobody uses a new one while it has no cap.

        Parameters
        ----------
        amount : callable
            Returns what an epsilon on a table is in the unit of its ledger.
        grants, owners, permits
            As `grant` takes them.
        """
        if grants is not None:
            self.decisions.announce_owners(owners)
            for name in sorted({*grants, *self.decisions.configured}):
                self.decisions.announce_grant(name, _written(grants.get(name)))
        for name, grant in (grants or {}).items():
            self._set_bases(grant.tables, amount, name, None)
        for permit in permits.values():
            self.decisions.announce_permit(permit.name, permit.to_json())
            self._set_bases(permit.tables, amount, None, permit.name)

    def _set_bases(
        self,
        caps: Mapping[str, Fraction | None],
        amount: Callable[[str, Fraction], Fraction],
        analyst: str | None,
        permit: str | None,
    ) -> None:
        """Write down caps of an analyst or a permit; those of a table that is new in the file wait for a restart."""
        for table, epsilon in caps.items():
            if epsilon is not None and table in self._tables:
                self.decisions.set_base(Whose(self._tables[table], analyst, permit), amount(table, epsilon))


def _written(grant: Grant | None) -> dict[str, Json]:
    if grant is None:
        return {"tables": None, "expires": None}
    caps: dict[str, Json] = {name: None if cap is None else str(Fraction(cap)) for name, cap in grant.tables.items()}
    return {"tables": caps, "expires": None if grant.expires is None else grant.expires.isoformat()}


@dataclass
class AuditTrail:
    """Writes refusals and logins to the ledger: the first of a kind at once, repetitions as a number.

    So nobody can fill a ledger with failures.
    """

    ledger: Ledger
    _counts: Counter[tuple[str, str | None, str | None]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: str, table: str | None = None, analyst: str | None = None) -> None:
        """Write an event, or count it if its like was written since the last `flush`."""
        with self._lock:
            self._counts[event, table, analyst] += 1
            if self._counts[event, table, analyst] > 1:
                return
        ledger_lines.record(self.ledger, event, dataset=table, analyst=analyst)

    def flush(self) -> None:
        """Write how often events were repeated, and begin to count anew."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        for (event, table, analyst), count in counts.items():
            if count > 1:
                ledger_lines.record(self.ledger, event, dataset=table, analyst=analyst, facts={"repeated": count - 1})


class Buckets:
    """A rate for each name: tokens that fill up with time, one taken by each request.

    Parameters
    ----------
    rate : float
        Requests a second, on average.
    burst : int
        Requests at once.
    clock : callable
        Returns seconds.
    """

    _MOST = 10_000  # names; those that are full again are forgotten

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def wait(self, name: str) -> float:
        """Take one; return 0, or the seconds after which there will be one."""
        now = self._clock()
        level, then = self._levels.get(name, (float(self._burst), now))
        level = min(float(self._burst), level + (now - then) * self._rate)
        if level < 1:
            self._levels[name] = level, now
            return (1 - level) / self._rate if self._rate else 1.0
        if len(self._levels) >= self._MOST:
            self._levels = {
                key: (old, at) for key, (old, at) in self._levels.items() if old + (now - at) * self._rate < self._burst
            }
        self._levels[name] = level - 1, now
        return 0.0
