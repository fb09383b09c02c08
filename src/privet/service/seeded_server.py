"""For tests: a server on this machine, with noise that a seed repeats. Nothing that it answers is private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.kernel import Domain, Session
from privet.open_table import open_seeded
from privet.service.client import Connection, connect
from privet.service.config import Config, Grant, Limits
from privet.service.running import Running, in_thread
from privet.service.server import Service
from privet.service.tokens import ANALYST, OWNER

UNLIMITED = Limits(rate=1e9, burst=10**9, refresh=0)  # as fast as a test asks, and tokens as they are now


@dataclass(frozen=True)
class Served:
    """A server that a test has started."""

    running: Running
    tables: Sequence[str]

    @property
    def url(self) -> str:
        """Where it is."""
        return self.running.url

    @property
    def service(self) -> Service:
        """What it knows."""
        return self.running.service

    def token(self, name: str = "ada", role: str = ANALYST, tables: tuple[str, ...] | None = None) -> str:
        """Return a new token for an analyst, who is granted all tables if they have no grant yet."""
        service = self.service
        if role == OWNER:
            owners = tuple({*service.config.owners, name})
            service.config = replace(service.config, owners=owners)
        elif name not in (service.config.analysts or {}):
            grants = {**(service.config.analysts or {}), name: Grant(dict.fromkeys(self.tables))}
            service.config = replace(service.config, analysts=grants)
        service.reload(service.config.analysts, service.config.owners)
        return service.access.tokens.create(name, role, tables)[0]

    def connect(self, name: str = "ada") -> Connection:
        """Return a connection of an analyst."""
        return connect(self.url, self.token(name), tries=3)


@contextmanager
def serve_seeded(
    data: Any,
    domain: Domain | str | Path,
    budget: int | float | str | Fraction,
    *,
    seed: int,
    name: str = "people",
    limits: Limits = UNLIMITED,
    tick: float = 0,
) -> Iterator[Served]:
    """Serve a table on a free port of this machine until the block ends, its ledger in memory.

    Parameters
    ----------
    data, domain, budget, name
        As for `privet.open`.
    seed : int
        Of the noise: that of `privet.testing.open`, which gives the same answers in the same order.
    limits : Limits, optional
    tick : float, default 0
        Seconds after which answers leave.

    Yields
    ------
    Served
    """
    session = open_seeded(data, domain, budget, seed=seed, name=name)._session
    with serve_sessions({name: session}, limits=limits, tick=tick) as served:
        yield served


@contextmanager
def serve_sessions(
    sessions: dict[str, Session], *, limits: Limits = UNLIMITED, tick: float = 0, **settings: Any
) -> Iterator[Served]:
    """Serve tables that are open already, in the ledger of the first."""
    ledger = next(iter(sessions.values())).ledger
    config = Config((), None, port=0, limits=limits, **{"analysts": {}, **settings})
    service = Service(sessions, ledger, config, dict.fromkeys(sessions, tick))
    with in_thread(service) as running:
        yield Served(running, tuple(sessions))
