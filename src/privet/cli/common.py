"""What the verbs share: their options, and how they speak."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from privet.errors import LedgerError

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
DomainOption = Annotated[Path, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file.")]
LedgerArgument = Annotated[
    str, typer.Argument(metavar="DATA|LEDGER", help="The data, or its .ledger file or postgresql:// ledger.")
]
DatasetOption = Annotated[str | None, typer.Option("--name", help="The data set, where the ledger holds several.")]
BudgetOption = Annotated[
    str | None, typer.Option("--budget", "-b", help="What the data set may spend in all; needed the first time.")
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
    str, typer.Option(help="How questions reach the rows: auto, snapshot, stream or push-down; see docs/engines.md.")
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


@contextmanager
def output_of(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def progress_shown(title: str, *, quiet: bool) -> Iterator[Callable[[object], None]]:
    """One line that shows how far a verb is and for how long it runs; nothing where nobody watches a terminal."""
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
        yield lambda told: line.update(task, description=str(told), refresh=True)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str) -> None:
    print(text, file=sys.stderr)


def lasting(ledger: str | None, ignore_spending: bool) -> str | None:
    """Return where the ledger is; refuse one that ends with the command, unless the owner insists."""
    if ledger == ":memory:" and not ignore_spending:
        raise LedgerError(
            "a ledger in memory ends with this command, so that its spending would be forgotten; name a file, or, as "
            "the owner of the data, insist with --ignore-spending."
        )
    return ledger
