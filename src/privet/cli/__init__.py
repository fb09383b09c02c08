"""The command line: one verb each, results on standard output, everything else on standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import privet
from privet.cli import audit, budget, domain, models, query, study, verify
from privet.cli.common import STYLE, say
from privet.errors import PrivetError

INTERRUPTED = 130  # the exit code, by custom

app = typer.Typer(
    help="Mine a table you are not allowed to see.",
    add_completion=False,
    pretty_exceptions_enable=False,
    **STYLE,
)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(privet.__version__)
        raise typer.Exit


app.command()(query.query)
app.command(help=models.FIT_HELP)(models.fit)
app.command()(models.predict)
app.command()(models.show)
app.command()(verify.verify)
app.command()(audit.audit)
app.add_typer(budget.app, name="budget")
app.add_typer(domain.app, name="domain")
app.add_typer(study.app, name="study")


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the generated data, the ledger and the report go.")] = Path(
        "privet-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, max=20_000_000, help="How many people to generate.")] = 5_000,
) -> None:
    """Show the whole story on generated data and write a report.

    Five questions to a private table, their answers with error bars, two models, what a tree gives away, the ledger.

    Example: privet demo --folder privet-demo
    """
    from privet.demo import run

    run(folder, rows)


def main() -> None:
    """The `privet` command: one sentence and a code that is not 0 where something stands in the way."""
    try:
        app()
    except PrivetError as error:
        from privet.trees.layout import LONG, clean, shortened

        say(f"privet: {shortened(clean(str(error)), LONG)}")  # it may quote a label of somebody's file
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as stopped:
        if isinstance(stopped, SystemExit) and stopped.code != INTERRUPTED:
            raise
        say("privet: interrupted; what was charged stands in the ledger")  # typer makes an exit of an interrupt
        sys.exit(INTERRUPTED)
    except OSError as error:
        say(f"privet: {error.strerror or 'the system refused'}: {error.filename or 'a file'}")
        sys.exit(1)
    except Exception as error:
        # Its text may quote a row, so only its kind is shown.
        say(f"privet: an unexpected {type(error).__name__} stopped this command; please report it")
        sys.exit(70)
