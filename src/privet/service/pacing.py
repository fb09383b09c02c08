"""When answers are written down: at ticks too, and not when an engine happens to be done.

Whoever sees a checkpoint knows how many lines the ledger has, and a receipt or the number of an entry tells which lines
came before it. If an answer were written as soon as its engine is done, two analysts together, or one with two
requests, could see how long a question took, which may depend on rows; and what a fit asks next is charged right after.
So an answer is written half a tick after its charge, or at one of the long ticks if the engine takes longer. All that
follows, the next charge of a fit as well as the reply, then happens at times that depend on no row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from privet.kernel import Entry, Ledger

LONG = 100  # ticks: what is not there after one leaves after so many, or twice so many
_MOST = 10_000  # charges that wait for their answer; those of engines that failed stay until then
_thread = threading.local()


def slot_after(start: float, now: float, tick: float, early: float) -> float:
    """Return the next time at which something may be seen that began at `start`: after a tick, or after long ones.

    `early` is by how much it comes before the tick.

    >>> slot_after(0, 0.01, 0.1, 0.05), slot_after(0, 0.06, 0.1, 0.05), slot_after(0, 9.99, 0.1, 0.05)
    (0.05, 9.95, 19.95)
    """
    if now - start <= tick - early:
        return start + tick - early
    long = LONG * tick
    return start + long * -(-(now - start + early) // long) - early


def begin() -> None:
    """Forget in this thread that an answer was written at its time."""
    _thread.paced = False


def paced() -> bool:
    """Return whether the last thing that was asked of an engine in this thread was written down at its time."""
    return bool(getattr(_thread, "paced", False))


class PacedLedger(Ledger):
    """A ledger that writes answers at ticks."""

    _tick: float
    _seconds: Callable[[], float]
    _sleep: Callable[[float], object]
    _begun: dict[int, float]  # when the charges were made that have no answer yet

    @classmethod
    def around(
        cls, ledger: Ledger, tick: float, seconds: Callable[[], float], sleep: Callable[[float], object]
    ) -> Ledger:
        """Return the same ledger, whose answers are written at ticks; the ledger itself if there are none."""
        if not tick:
            return ledger
        paced = cls.__new__(cls)
        vars(paced).update(vars(ledger))
        paced._tick, paced._seconds, paced._sleep, paced._begun = tick, seconds, sleep, {}
        return paced

    def charge(self, *arguments: Any, **options: Any) -> tuple[Entry, bool]:
        """Write a charge, as every ledger does, and look at the clock."""
        entry, new = super().charge(*arguments, **options)
        self._begin(entry)
        return entry, new

    def standing(self, dataset: str, analyst: str, key: str, fingerprint: str) -> Entry | None:
        """Return the charge under a key, as every ledger does; if it has no answer yet, one may follow."""
        entry = super().standing(dataset, analyst, key, fingerprint)
        if entry is not None and entry.answer is None:
            self._begin(entry)
        return entry

    def store(self, entry: int, answer: str, *, private: bool = True, opening_token: str = "") -> str:
        """Wait for the slot of an answer, and store it."""
        now = self._seconds()
        start = self._begun.pop(entry, now)
        self._sleep(max(0.0, slot_after(start, now, self._tick, self._tick / 2) - now))
        stored = super().store(entry, answer, private=private, opening_token=opening_token)
        _thread.paced = True
        return stored

    def _begin(self, entry: Entry) -> None:
        _thread.paced = False  # what follows asks an engine
        self._begun[entry.id] = self._seconds()
        while len(self._begun) > _MOST:
            self._begun.pop(next(iter(self._begun)))
