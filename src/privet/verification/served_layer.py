"""A server under attack: every question of an attack crosses a real one, on this machine or at an address."""

from __future__ import annotations

import time
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from scipy.stats import mannwhitneyu

from privet.errors import BudgetExceeded
from privet.kernel import Domain, RowSets
from privet.service.client import Connection
from privet.service.seeded_server import serve_sessions
from privet.table import Backend, ProtectedTable
from privet.text import short_text
from privet.verification.attacks.result import Undecided
from privet.verification.layer import SURE, Clocked, LocalLayer

if TYPE_CHECKING:
    import pandas as pd

TICK, CLOCKED = 0.03, 60  # seconds after which answers leave, and answers that are timed of each table
NEEDED = Fraction(1)  # of the budget of a table that somebody else serves: attacks ask it in thousandths


class ServedTable(ProtectedTable):
    """A table of a server that stops when the table is closed."""

    def __init__(self, backend: Backend, sets: RowSets, running: ExitStack | None = None) -> None:
        super().__init__(backend, sets)
        self._running = running

    def close(self) -> None:
        """Stop the server, and close what it served."""
        if self._running is not None:
            self._running.close()


class ServedLayer(LocalLayer):
    """Tables behind servers.

    Rows that attacks make are stored here, and served by a server of their own on loopback. The table under attack is
    served in the same way; with a `connection` it is a table of that server, and what is asked is charged to whoever
    has connected.

    Parameters
    ----------
    source : frame, str or Path
        The table under attack, or one that is stored as planted rows are to be.
    domain : Domain
    connection : Connection, optional
        To a server that runs.
    table : str, default ""
        The name of the table under attack there.
    """

    def __init__(self, source: Any, domain: Domain, *, connection: Connection | None = None, table: str = "") -> None:
        super().__init__(source, domain, access="auto")
        self._connection, self._table = connection, table
        self.name = f"{self.name} behind a server"
        if connection is not None:
            self.name = f"the table '{table}' of {connection.url}"

    def live(self, *, budget: int | str | Fraction) -> Any:
        """The table under attack; nothing but a server knows its rows."""
        if budget not in self._live:
            if self._connection is None:
                self._live[budget] = _served(super().live(budget=budget))
            else:
                self._live[budget] = table = self._connection.table(self._table)
                left = table.budget.buys
                if left < NEEDED:
                    raise BudgetExceeded(
                        f"attacks on a table that is served are charged, and need epsilon {NEEDED} to be left of its "
                        f"budget; there is {short_text(left)}. Serve the table for the attacks with a ledger of its "
                        "own.",
                        requested=NEEDED,
                        remaining=left,
                    )
        return self._live[budget]

    def open(
        self,
        rows: pd.DataFrame,
        domain: Domain,
        *,
        budget: int | str | Fraction,
        analyst: str = "local",
        ledger: Path | None = None,
        seed: int | None = None,
        memory: int | None = None,
    ) -> Any:
        """Rows of an attack behind a server of their own."""
        own = super().open(rows, domain, budget=budget, analyst=analyst, ledger=ledger, seed=seed, memory=memory)
        return _served(own, analyst)

    def clock(self, plain: pd.DataFrame, neighbour: pd.DataFrame, domain: Domain) -> Clocked | None:
        """How well answers about two tables are told apart by their times, at servers with ticks."""
        if (
            self._connection is not None
            and not self._connection.get(f"/v1/tables/{quote(self._table, safe='')}")["tick"]
        ):
            raise Undecided("answers of this table leave when they are there, its tick is 0: their times hide nothing.")
        times: list[list[float]] = [[], []]
        with ExitStack() as stack:
            tables = [
                stack.enter_context(_served(super(ServedLayer, self).open(rows, domain, budget=1000), tick=TICK))
                for rows in (plain, neighbour)
            ]
            for number in range(CLOCKED):
                for own in (0, 1) if number % 2 else (1, 0):
                    start = time.perf_counter()
                    tables[own].count("0.001")
                    times[own].append(time.perf_counter() - start)
        return clocked(*times)

    def reopen(self, file: Path, domain: Domain, **settings: Any) -> Any:
        """A file that `store` made, opened by whoever serves it."""
        return _served(super().reopen(file, domain, **settings))


def clocked(first: list[float], second: list[float]) -> Clocked:
    """Compare two lists of times, and find how much later the second could have been without being found."""
    shifts = (TICK * 0.9**number for number in range(100, -1, -1))
    shown = next((own for own in shifts if _unlike(first, [time + own for time in second]) < SURE), TICK)
    return Clocked(_unlike(first, second), shown, TICK)


def _unlike(first: list[float], second: list[float]) -> float:
    return float(mannwhitneyu(first, second).pvalue)


def _served(table: ProtectedTable, analyst: str = "local", tick: float = 0) -> ServedTable:
    """Put a table behind a server on this machine; an analyst is connected to it."""
    with ExitStack() as stack:
        name = "planted"
        served = stack.enter_context(serve_sessions({name: table._session}, tick=tick))
        connection = stack.enter_context(served.connect(analyst))
        remote = connection.table(name)
        return ServedTable(remote._backend, remote._sets, stack.pop_all())
