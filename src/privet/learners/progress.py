"""Progress of a fit: how far it is, by what is public or was released.

Whoever runs a fit sees its progress, so nothing in it may come from a row. The steps of a plan are public, the
nodes of a level follow from releases, and rows are counted as the domain declares them: a question reads the
table at most once, so that many questions read at most so many times the declared rows. What an engine has
read of a table is not told, neither rows nor batches: the last number would be the size of the table, which
is private. How long a step took is known to whoever waits for it; what is left is estimated from that alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from privet.kernel import Domain


@dataclass(frozen=True)
class Progress:
    """How far a fit is.

    >>> print(Progress("level 2 of 5: 34 nodes", 2, 6, rows=3_000_000, elapsed=21.0))
    level 2 of 5: 34 nodes; about 42 s left; up to 3,000,000 rows read
    """

    what: str  # is done now
    done: int = 0  # steps: levels of all trees, or tables
    total: int = 0  # 0 where it is not known yet
    rows: int | None = None  # read so far, by the number that the domain declares; None where it declares none
    elapsed: float = 0.0  # seconds

    @property
    def left(self) -> float | None:
        """Seconds, if the steps that are left take as long as those before; None before the first is done."""
        return self.elapsed / self.done * (self.total - self.done) if self.done and self.total else None

    def __str__(self) -> str:
        left = "" if self.left is None else f"; about {_span(self.left)} left"
        return self.what + left + (f"; up to {self.rows:,} rows read" if self.rows else "")


Tell = Callable[[Progress], None]


class Meter:
    """Tells how far one fit is."""

    def __init__(self, tell: Tell, domain: Domain, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock, self._start = tell, clock, clock()
        self._rows = domain.max_rows if domain.rows is None else domain.rows

    def at(self, what: str, done: int, total: int, asked: int) -> None:
        """Begin a step, after `done` of `total` steps and `asked` questions."""
        rows = None if self._rows is None else asked * self._rows
        self._tell(Progress(what, done, total, rows, self._clock() - self._start))


def _span(seconds: float) -> str:
    """A time as people read it.

    >>> _span(0.2), _span(61), _span(3 * 3600 + 301)
    ('1 s', '1 min', '3 h 5 min')
    """
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
