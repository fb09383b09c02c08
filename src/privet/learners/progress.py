"""Progress of a fit, told from public facts and releases alone.

Whoever runs a fit sees its progress, so nothing in it may depend on a row.

* The steps of a plan are public, and the number of nodes of a level follows from releases.
* Rows that were read are estimated from the number that the domain declares: a question reads the
  table at most once, so n questions read at most n times the declared rows. A bound (`max_rows`) is no
  such number, it may be a thousand times too large: where it is all that is declared, passes are told.
* What an engine has really read is not reported, neither rows nor batches: the last such number
  would be the size of the table, which is private.
* The time that a step took is known to whoever waits for it. The time that is left is estimated
  from that alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from privet.kernel import Domain


@dataclass(frozen=True)
class Progress:
    """The progress of a fit at one moment.

    Parameters
    ----------
    what : str
        What is being done now.
    done : int, default 0
        Steps that are finished: levels of all trees, or tables.
    total : int, default 0
        All steps; 0 if the number is not known yet.
    rows : int, optional
        The most rows that were read so far, by the `rows` that the domain declares; None if it declares none.
    elapsed : float, default 0.0
        Seconds since the fit began.
    passes : int, default 0
        The most passes over the rows so far: questions that were asked.

    Examples
    --------
    >>> print(Progress("level 2 of 5: 34 nodes", 2, 6, rows=3_000_000, elapsed=21.0))
    level 2 of 5: 34 nodes; about 42 s left; up to 3,000,000 rows read
    >>> print(Progress("level 2 of 5: 34 nodes", 2, 6, elapsed=21.0, passes=4))
    level 2 of 5: 34 nodes; about 42 s left; up to 4 passes over the rows
    """

    what: str
    done: int = 0
    total: int = 0
    rows: int | None = None
    elapsed: float = 0.0
    passes: int = 0

    @property
    def left(self) -> float | None:
        """Estimated seconds that are left, if all steps take equally long; None before the first is done."""
        return self.elapsed / self.done * (self.total - self.done) if self.done and self.total else None

    def __str__(self) -> str:
        left = "" if self.left is None else f"; about {_duration(self.left)} left"
        done = f"; up to {self.passes} pass{'es' * (self.passes > 1)} over the rows" if self.passes else ""
        return self.what + left + (f"; up to {self.rows:,} rows read" if self.rows else done)


ProgressCallback = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """Do nothing: the callback of a fit that nobody watches."""


class Meter:
    """Reports the progress of one fit.

    Parameters
    ----------
    report : callable
        Called with a `Progress` at the beginning of each step.
    domain : Domain
    clock : callable, optional
        Returns a time in seconds; for tests.
    """

    def __init__(self, report: ProgressCallback, domain: Domain, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock, self._start = report, clock, clock()
        self._rows = domain.rows

    def at(self, what: str, done: int, total: int, asked: int) -> None:
        """Report that a step begins.

        Parameters
        ----------
        what : str
            The step, in words.
        done, total : int
            Steps that are finished, and all steps.
        asked : int
            Questions that were asked so far.
        """
        rows = None if self._rows is None else asked * self._rows
        self._report(Progress(what, done, total, rows, self._clock() - self._start, asked))


def _duration(seconds: float) -> str:
    """Return a time in words.

    >>> _duration(0.2), _duration(61), _duration(3 * 3600 + 301)
    ('1 s', '1 min', '3 h 5 min')
    """
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
