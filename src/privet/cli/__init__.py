"""The command line. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import privet
from privet.cli import audit, budget, domain, models, query, receipt, serve, study, token, verify
from privet.cli.common import STYLE, say, with_options
from privet.cli.usage import usage_sentence
from privet.errors import PrivetError, QuestionError

INTERRUPTED = 130  # the usual exit code after an interrupt

app = typer.Typer(
    help="Mine a table you are not allowed to see.",
    add_completion=False,
    pretty_exceptions_enable=False,
    **STYLE,
)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Print the version if it is asked for."""
    if version:
        print(privet.__version__)
        raise typer.Exit


app.command()(query.query)
app.command(help=models.FIT_HELP)(models.fit)
app.command()(models.predict)
app.command(short_help="Show a model, what it promises and what it cost.")(models.show)
app.command(short_help="Try to prove that something loses more than it claims.")(verify.verify)
app.command()(audit.audit)
app.command(short_help="Serve tables to analysts over HTTP.")(serve.serve)
app.add_typer(budget.app, name="budget")
app.add_typer(domain.app, name="domain")
app.add_typer(receipt.app, name="receipt")
app.add_typer(study.app, name="study")
app.add_typer(token.app, name="token")


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the generated data, the ledger and the report go.")] = Path(
        "privet-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, max=20_000_000, help="How many people to generate.")] = 50_000,
) -> None:
    """Show the whole story on generated data and write a report.

    Five questions to a private table, their answers with error bars, two models, what a tree gives away, the ledger;
    then an owner who serves a table, an analyst who mines it up to its cap, and two attacks that fail.
    The folder also gets the files that the commands in README run on: people.csv, people.toml, public_sample.csv and
    new.csv.

    Example: privet demo --folder privet-demo
    """
    from privet.demo import run

    if folder.exists() and not folder.is_dir():
        raise QuestionError(f"'{folder}' is a file; name a folder with --folder.")
    run(folder, rows)


def main() -> None:
    """Run the `privet` command. An error becomes one sentence and an exit code other than 0."""
    try:
        sys.exit(app(prog_name="privet", standalone_mode=False))
    except PrivetError as error:
        from privet.text import LONG, clean, shortened

        # the message may quote a label of a file
        say(f"privet: {with_options(shortened(clean(str(error)), LONG))}")
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort, SystemExit) as stopped:
        if isinstance(stopped, SystemExit) and stopped.code != INTERRUPTED:
            raise
        say(f"privet: {_interrupted(sys.argv[1:2])}")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # whoever reads the output has closed it, as `head` does
        sys.stdout = None
        sys.exit(1)
    except OSError as error:
        say(f"privet: {error.strerror or 'the system refused'}: {error.filename or 'a file'}")
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of typer
            without_words = type(error).__name__ == "NoArgsIsHelpError"
            say(error.format_message() if without_words else f"privet: {usage_sentence(error)}")
            sys.exit(2)
        # The message may quote a row, so only the type is shown.
        say(f"privet: an unexpected {type(error).__name__} stopped this command; please report it")
        sys.exit(70)


def _interrupted(command: list[str]) -> str:
    """Return the sentence after an interrupt; commands that charge nothing do not speak of charges."""
    if command and command[0] in ("query", "fit"):
        return "interrupted; what was charged stands in the ledger"
    return "interrupted"
