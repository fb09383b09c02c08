"""What all algorithms share: what people see of one, the checks before a fit, what it records, and its progress.

Whoever runs a fit sees its progress, so nothing in it may depend on a row:

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

import math
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TextIO

from privet.errors import BudgetExceeded, QuestionError
from privet.kernel import Domain
from privet.models.privacy_record import Step
from privet.release import Histogram
from privet.table import ProtectedTable
from privet.text import decimal_text, duration

_CELLS = 16  # letters of a bar on a terminal


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its name and its source.

    Parameters
    ----------
    name : str
        What `algorithm=` and `--algorithm` call it.
    line : str
        What it does, in one line.
    citation : str
        Where it was published.
    private : bool, default True
        False for algorithms that were never meant to be private.
    """

    name: str
    line: str
    citation: str
    private: bool = field(default=True, kw_only=True)

    @property
    def variants(self) -> tuple[str, ...]:
        """The values that `variant` may have."""
        return ("corrected",)

    def check_variant(self, variant: str) -> None:
        """Refuse a variant that the algorithm does not have.

        Parameters
        ----------
        variant : str

        Raises
        ------
        QuestionError
            `variant` is unknown, or the algorithm has no published variant.
        """
        if variant not in ("corrected", "published"):
            raise QuestionError(f"variant is 'corrected' or 'published', not {variant!r}.")
        if variant not in self.variants:
            raise QuestionError(f"{self.name} is privet's own and has no published variant; leave out variant.")


def check_target(domain: Domain) -> None:
    """Raise `QuestionError` if the target has fewer than two classes."""
    if len(domain.target_column.values) < 2:
        raise QuestionError(
            f"the target '{domain.target}' has one class, so there is nothing to predict; declare its other classes."
        )


def check_attributes(domain: Domain) -> None:
    """Raise `QuestionError` if the domain has no column besides the target."""
    if not domain.attributes:
        raise QuestionError("the domain declares no column besides the target; declare what to predict it from.")


@dataclass(frozen=True)
class Exchange:
    """What shares of the epsilon of a fit cost, and what they are worth.

    Pure epsilon costs itself, and is worth itself. Where losses are counted in rho, a share of epsilon costs the same
    share of the rho of the fit. Gaussian noise that costs rho has the deviation 1 / sqrt(2 rho), as much as Laplace
    noise for an epsilon of 2 sqrt(rho): so much the share is worth to rules that weigh rows against noise.

    Parameters
    ----------
    rate : Fraction, optional
        The rho of an epsilon of 1; None where losses are counted in epsilon.
    """

    rate: Fraction | None = None

    @classmethod
    def of(cls, table: ProtectedTable, epsilon: Fraction) -> Exchange:
        """Return what shares of an epsilon cost that a fit divides on a table."""
        return cls() if table.unit.delta is None else cls(table.amount(epsilon) / epsilon)

    def loss(self, share: Fraction) -> Fraction:
        """Return what a share costs."""
        return share if self.rate is None else share * self.rate

    def share(self, loss: Fraction) -> Fraction:
        """Return the share that a loss is."""
        return loss if self.rate is None else loss / self.rate

    def worth(self, share: Fraction) -> Fraction:
        """Return the pure epsilon whose noise is as wide as that of a share."""
        return share if self.rate is None else Fraction(2 * math.sqrt(self.rate * share))


def cost_of_counts(counts: Histogram | None, domain: Domain, exchange: Exchange) -> Fraction:
    """Return what class counts cost that were bought before a fit.

    Parameters
    ----------
    counts : Histogram or None
        A released histogram of the target, or None if none was bought.
    domain : Domain
    exchange : Exchange
        What shares of the epsilon of the fit cost.

    Returns
    -------
    Fraction
        Their share of the epsilon of the fit; 0 without any.

    Raises
    ------
    QuestionError
        `counts` is not a histogram of the target alone.
    """
    if counts is None:
        return Fraction(0)
    if not isinstance(counts, Histogram) or counts.columns != (domain.target_column.name,):
        raise QuestionError(f"counts are what table.histogram('{domain.target_column.name}', ...) released.")
    return exchange.share(counts.about.loss)


def check_budget(table: ProtectedTable, name: str, epsilon: Fraction) -> None:
    """Refuse a fit whose whole epsilon the table cannot pay: part of a model is of no use.

    Parameters
    ----------
    table : ProtectedTable
    name : str
        The algorithm, for the message.
    epsilon : Fraction
        What the fit will charge in all.

    Raises
    ------
    BudgetExceeded
        The table has less than `epsilon` left. Nothing was charged.
    """
    remaining = table.budget.remaining
    if table.amount(epsilon) > remaining:
        buys = table.budget.buys
        raise BudgetExceeded(
            f"cannot fit {name} with epsilon={decimal_text(epsilon)}: the table has {decimal_text(buys)} left. "
            f"{'Lower epsilon, or ask' if buys else 'Ask'} the data owner for more.",
            requested=epsilon,
            remaining=buys,
        )


class Record:
    """Collects the steps of a fit as they are taken.

    Attributes
    ----------
    steps : list of Step
    reasons : list of str
        Why the model is not private; empty if it is.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reasons: list[str] = []

    def add(self, tree: int, level: int, question: str, releases: Sequence[Any], path: Fraction | None = None) -> None:
        """Add one question.

        Parameters
        ----------
        tree, level, question, path
            As in `Step`.
        releases : sequence of Release
            What was released for each node. All of them cost the same.
        """
        first = releases[0]
        self.steps.append(Step(tree, level, question, len(releases), first.about.loss, first.about.entry, path))
        if not first.private:
            self.reasons.append("its noise was seeded, or its rows are public")

    def extend(self, other: Record) -> None:
        """Add all that another record has collected."""
        self.steps += other.steps
        self.reasons += other.reasons


# -- progress -----------------------------------------------------------------------------------


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
        left = "" if self.left is None else f"; about {duration(self.left)} left"
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


class ProgressBar:
    """Shows the progress of one fit where it runs: what `verbose=True` means.

    In a notebook it is one bar, and on a terminal one line, that is written anew with each step; in a file or a pipe
    each step has a line of its own.

    Parameters
    ----------
    stream : text file, optional
        Where lines go; standard error if left out.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._display = _notebook_display()
        self._handle: Any = None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Show a step that begins."""
        self._last = progress
        if self._display is not None:
            self._show(progress.done, str(progress))
        elif self._stream.isatty():
            self._write("\r", _line(progress), "\x1b[K")
        else:
            self._write(str(progress), "\n")

    def close(self, finished: bool) -> None:
        """Show that the fit has ended.

        Parameters
        ----------
        finished : bool
            Whether it has its model; else the bar stays where it is.
        """
        last = self._last
        if last is None:
            return
        if self._display is not None and finished:
            self._show(last.total or 1, "fitted")
        elif self._display is None and self._stream.isatty():
            self._write(*["\r", "fitted", "\x1b[K"] * finished, "\n")

    def _write(self, *texts: str) -> None:
        self._stream.write("".join(texts))
        self._stream.flush()

    def _show(self, done: int, text: str) -> None:
        """Draw the bar, or draw it anew."""
        assert self._display is not None and self._last is not None
        total = self._last.total
        from privet.report.rendering import fragment  # in notebooks alone

        bundle = {"text/plain": text, "text/html": fragment("cards.html", "progress", text, done, total)}
        if self._handle is None:
            self._handle = self._display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _notebook_display() -> Callable[..., Any] | None:
    """Return IPython's `display` if this process is the kernel of a notebook; else None."""
    module = sys.modules.get("IPython")  # not imported: no notebook runs without it
    shell = getattr(module, "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    display: Callable[..., Any] | None = getattr(sys.modules.get("IPython.display"), "display", None)
    return display


def _line(progress: Progress) -> str:
    """Return a step with a bar before it, as much as fits on the terminal."""
    filled = round(_CELLS * progress.done / progress.total) if progress.total else 0
    line = f"{'█' * filled}{'░' * (_CELLS - filled)} {progress}" if progress.total else str(progress)
    return line[: max(20, shutil.get_terminal_size().columns - 1)]
