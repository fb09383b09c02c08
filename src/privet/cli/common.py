"""What the commands share: options, opening a table, and output."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privet
from privet.errors import LedgerError, QuestionError
from privet.kernel import Domain, as_epsilon
from privet.models.epsilon import belief, factor, percent
from privet.table import ProtectedTable
from privet.text import decimal_text

if TYPE_CHECKING:
    from privet.service.client import Connection

STYLE: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv or .parquet file, or an address: duckdb:///file.db?table=NAME, postgresql://host/db?table=NAME "
        "or mssql://host/db?table=NAME.",
    ),
]
OptionalDomainOption = Annotated[
    Path | None, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file; a server has its own.")
]
PermitOption = Annotated[
    str | None, typer.Option("--permit", help="The data permit of a server under which everything is asked.")
]
PurposeOption = Annotated[str | None, typer.Option("--purpose", help="One of the purposes of --permit.")]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask this server, where DATA is the name of a table; the token is read from PRIVET_TOKEN.",
    ),
]
DomainOption = Annotated[Path, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file.")]
LedgerArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA|LEDGER", help="The data, its .ledger file or postgresql:// ledger, or a server's configuration."
    ),
]
DatasetOption = Annotated[str | None, typer.Option("--name", help="The data set, where the ledger holds several.")]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", "-b", help="What the data set may spend in all; needed the first time.")
]
DeltaOption = Annotated[
    str | None,
    typer.Option("--delta", help="Count the data set in rho: its budget is (epsilon, delta), as 1e-6; recorded once."),
]
AnalystOption = Annotated[str, typer.Option(help="Who asks.")]
LedgerOption = Annotated[
    str | None, typer.Option(help="A ledger other than the one beside the data: a file, or a postgresql:// address.")
]
IgnoreSpendingOption = Annotated[
    bool,
    typer.Option(
        "--ignore-spending",
        help="Do not count what the ledger beside the data says was spent on them. For the owner of the data: the "
        "people in them lose both.",
    ),
]
NameOption = Annotated[str | None, typer.Option(help="The data set's name in the ledger.")]
AccessOption = Annotated[
    str,
    typer.Option(help="How questions reach the rows: auto, snapshot, stream, push-down (docs/reference/engines.md)."),
]
LimitOption = Annotated[
    str | None,
    typer.Option(
        "--snapshot-limit",
        metavar="SIZE",
        help="Merge the table into memory where the domain bounds it by this, as 200MB; without it by 64MB, and "
        "nothing from a server.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class TableOptions:
    """The options by which a command opens a table.

    Parameters
    ----------
    data : str
        A file or an address.
    budget, analyst, ledger, name, access, snapshot_limit, ignore_spending
        As in `privet.open`.
    server : str or None
        The address of a server, whose table `data` names.
    delta : str or None
        As in `privet.open`.
    permit, purpose : str or None
        As in `Connection.table`.
    """

    data: str
    budget: str | None
    analyst: str
    ledger: str | None
    ignore_spending: bool
    name: str | None
    access: str
    snapshot_limit: str | None
    server: str | None = None
    delta: str | None = None
    permit: str | None = None
    purpose: str | None = None

    def load_domain(self, path: Path | None) -> Domain | None:
        """Return the domain of a file; None for a server, which has its own."""
        if self.server is None:
            if self.permit is not None or self.purpose is not None:
                raise QuestionError("permits are a server's; give --server URL, or leave out --permit and --purpose.")
            if path is None:
                raise QuestionError("a table is opened with its public domain; give --domain FILE, or --server URL.")
            return Domain.load(path)
        given = {
            "--domain": path,
            "--budget": self.budget,
            "--delta": self.delta,
            "--ledger": self.ledger,
            "--name": self.name,
            "--snapshot-limit": self.snapshot_limit,
            "--ignore-spending": self.ignore_spending or None,
            "--access": None if self.access == "auto" else self.access,
            "--analyst": None if self.analyst == "local" else self.analyst,
        }
        for option, value in given.items():
            if value is not None:
                raise QuestionError(f"a server has its own domain, ledger and analysts; leave out {option}.")
        return None

    def open(self, domain: Domain | None) -> ProtectedTable:
        """Open the table.

        Parameters
        ----------
        domain : Domain or None
            None for the table of a server.

        Returns
        -------
        ProtectedTable

        Raises
        ------
        LedgerError
            The ledger ends with the command, and the owner does not insist.
        """
        if self.server is not None:
            return connection_to(self.server).table(self.data, permit=self.permit, purpose=self.purpose)
        assert domain is not None
        if self.budget is not None:
            as_epsilon(self.budget, "--budget")
        return privet.open(
            self.data,
            domain,
            budget=self.budget,
            ledger=lasting_ledger(self.ledger, self.ignore_spending),
            name=self.name,
            analyst=self.analyst,
            access=self.access,
            snapshot_limit=self.snapshot_limit,
            ignore_spending=self.ignore_spending,
            delta=self.delta,
        )


def connection_to(server: str) -> Connection:
    """Return a connection to a server, with the token of the environment.

    Raises
    ------
    QuestionError
        There is no token.
    """
    return privet.connect(server, token_of_environment())


def token_of_environment() -> str:
    """Return the token of the environment; QuestionError if there is none."""
    token = os.environ.get("PRIVET_TOKEN", "")
    if not token:
        raise QuestionError("a server needs a token; put the one that its owner gave you into PRIVET_TOKEN.")
    return token


def lasting_ledger(ledger: str | None, ignore_spending: bool) -> str | None:
    """Return where the ledger is, and refuse one that ends with the command unless the owner insists.

    Parameters
    ----------
    ledger : str or None
        A file, an address, or None for the one beside the data.
    ignore_spending : bool
        Whether the owner insists.

    Returns
    -------
    str or None

    Raises
    ------
    LedgerError
    """
    if ledger == ":memory:" and not ignore_spending:
        raise LedgerError(
            "a ledger in memory ends with this command, so that its spending would be forgotten; name a file, or, as "
            "the owner of the data, insist with --ignore-spending."
        )
    return ledger


@contextmanager
def progress_shown(title: str, *, quiet: bool) -> Iterator[Callable[[object], None]]:
    """Show one line of progress and elapsed time on a terminal.

    Parameters
    ----------
    title : str
        What is shown first.
    quiet : bool
        Show nothing. Nothing is shown either if standard error is not a terminal.

    Yields
    ------
    callable
        Called with an object whose text becomes the line.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(table_column=Column(min_width=1)),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    silent = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, expand=True, disable=silent) as line:
        task = line.add_task(title, total=None)
        yield lambda progress: line.update(task, description=str(progress), refresh=True)


def print_json(value: object) -> None:
    """Print a value as indented JSON on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr)


_LARGE = 10  # from above this on, an epsilon promises little


def warn_if_large(**epsilons: Fraction | str | None) -> None:
    """Print one warning if an epsilon or a budget is above 10: what it still promises.

    Parameters
    ----------
    **epsilons
        By the name of their option.
    """
    for name, given in epsilons.items():
        if given is None:
            continue
        epsilon = as_epsilon(given)
        if epsilon > _LARGE:
            likely = percent(belief(0.5, float(epsilon)))
            say(
                f"privet: warning: {name} {decimal_text(epsilon)} is above {_LARGE}: with it, what is published may be "
                f"{factor(float(epsilon))}, times as likely because of one person, and who thought it 50% likely that "
                f"they are in the table may think it {likely} likely; 1 or less is usual"
            )
            return


# Sentences of the library speak of Python's arguments; on the command line they name options.
_PHRASES = (
    (' (in Python budget="1.0")', ""),
    (", in Python ignore_spending=True", ""),
    ("; in Python key=", "; "),
    ("; use a range (low, high) of dates.", "; use a range, as in 2020-01-01..2020-07-01."),
    (
        "give a day as '2020-12-31', a range (low, high) or a set of its cells.",
        "give a day as 2020-12-31, or a range as in 2020-01-01..2020-07-01.",
    ),
    ("; use a range (low, high).", "; use a range, as in 30..40."),
    ("give a number, a range (low, high) or a set of its bins.", "give a number, or a range as in 30..40."),
    ("pass ledger=", "give --ledger "),
    ("as ledger=", "as --ledger "),
    ("with ledger=", "with --ledger "),
    ("variant='corrected', or unsafe=True on", "--variant corrected, or --unsafe on"),
    ("leave out variant.", "leave out --variant."),
    ("fit it on public rows with fit(X, y).", "if the rows are public, say so with --unsafe."),
    ("fit(X, y) with unsafe=True.", "--unsafe."),
    (", or pass a WeightedMax.", "."),
    ('access="snapshot" or a snapshot_limit fetches', "--access snapshot or --snapshot-limit fetches"),
    ("open it with access='push-down'", "open it with --access push-down"),
)
_ARGUMENTS = {
    "max_depth": "--depth",
    "max_leaves": "--max-leaves",
    "snapshot_limit": "--snapshot-limit",
    "random_state": "--random-state",
    "n_estimators": "--trees",
    "objective is": "--objective is",
    "variant is": "--variant is",
    "score is": "--score is",
    "numeric is": "--numeric is",
    "trees must": "--trees must",
    "a plan's vote": "--vote",
    "epsilon must": "--epsilon must",
    "analyst must": "--analyst must",
    "name must": "--name must",
    "key must": "--key must",
    "effort multiplies": "--effort multiplies",
}


def with_options(sentence: str) -> str:
    """Return a sentence of the library as the command line says it: with options in the place of Python's arguments.

    >>> with_options("lower max_depth, or raise max_leaves=10. Column 'max_depth' stays.")
    "lower --depth, or raise --max-leaves 10. Column 'max_depth' stays."
    >>> with_options("give a day as '2020-12-31', a range (low, high) or a set of its cells.")
    'give a day as 2020-12-31, or a range as in 2020-01-01..2020-07-01.'
    """
    for phrase, option in _PHRASES:
        sentence = sentence.replace(phrase, option)
    for argument, option in _ARGUMENTS.items():
        # not within quotes, where it is the name of a column
        sentence = re.sub(rf"(?<!['\w-]){argument}=", f"{option} ", sentence)
        sentence = re.sub(rf"(?<!['\w-]){argument}\b(?!')", option, sentence)
    return sentence
