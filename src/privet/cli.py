"""The command line: one verb each, results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import privet
from privet.column import decimal_text
from privet.domain import Domain
from privet.errors import LedgerError, PrivetError, QuestionError
from privet.kernel import Ledger, as_epsilon, ledger_path, print_outside
from privet.question import Question

_STYLE: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

app = typer.Typer(
    help="Mine a table you are not allowed to see.",
    add_completion=False,
    pretty_exceptions_enable=False,
    **_STYLE,
)
budget_app = typer.Typer(help="What was spent and who may spend how much.", **_STYLE)
domain_app = typer.Typer(help="The public description of a table.", **_STYLE)
app.add_typer(budget_app, name="budget")
app.add_typer(domain_app, name="domain")

DataArgument = Annotated[
    str, typer.Argument(metavar="DATA", help="A .csv or .parquet file, or duckdb:///file.db?table=NAME.")
]
DomainOption = Annotated[Path, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file.")]
LedgerArgument = Annotated[str, typer.Argument(metavar="DATA|LEDGER", help="The data, or its .ledger file.")]
DatasetOption = Annotated[str | None, typer.Option("--name", help="The data set, where the ledger holds several.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(privet.__version__)
        raise typer.Exit


@app.command()
def query(
    data: DataArgument,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; see above.")],
    domain: DomainOption,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What the answer may cost, as 0.1 or 1/10.")],
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", help="What the data set may spend in all; needed the first time.")
    ] = None,
    analyst: Annotated[str, typer.Option(help="Who asks.")] = "local",
    ledger: Annotated[Path | None, typer.Option(help="A ledger other than the one beside the data.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name in the ledger.")] = None,
    key: Annotated[
        str | None, typer.Option(help="An idempotency key: the same question with it gives the same answer, once paid.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a private table one noisy question.

    \b
    A question is
      count | sum COLUMN | mean COLUMN | median COLUMN | quantile COLUMN RANK
      histogram COLUMN, COLUMN, ... | select max|gini|infogain [thresholds]
    followed, if you like, by
      by COLUMN                 for each of its values or bins, for the price of one
      where CONDITION and ...   COLUMN = VALUE, COLUMN in {A, B}, COLUMN in 30..40, COLUMN < 40
    with "quotes" around names and values that have spaces or signs.

    \b
    Examples:
      privet query adult.csv "count where sex = Female" -d adult.toml -b 1.0 -e 0.1
      privet query adult.csv "mean age by sex where hours-per-week in 30..40" -d adult.toml -e 0.1
      privet query adult.csv "histogram sex, income" -d adult.toml -e 0.1 --json
      privet query "duckdb:///census.db?table=people" "quantile wage 0.9" -d census.toml -e 0.1
    """
    asked = Question.parse(question)
    with privet.open(data, Domain.load(domain), budget=budget, ledger=ledger, name=name, analyst=analyst) as table:
        answers = asked.ask(table, epsilon, key)
        left, entry = table.budget.remaining, answers[0][1].about.entry
        path = table.budget.ledger_path
    if as_json:
        _print_json(
            {
                "question": question,
                "epsilon": decimal_text(as_epsilon(epsilon)),
                "answers": [{"part": label, **release.to_dict()} for label, release in answers],
                "private": all(release.private for _, release in answers),
                "remaining": decimal_text(left),
                "entry": entry,
                "ledger": path,
            }
        )
        return
    for label, release in answers:
        print(f"{label}: {release!r}" if label is not None else repr(release))
    _say(f"ledger entry {entry} in {path}; {decimal_text(left)} left")


@budget_app.command("show")
def budget_show(
    ledger: LedgerArgument,
    entries: Annotated[bool, typer.Option("--entries", help="List every charge.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what was spent on each data set, by whom, and what is left.

    Example: privet budget show adult.csv --entries
    """
    book = _ledger(ledger)
    state = {name: _state(book, name, entries) for name in book.datasets()}
    if as_json:
        _print_json(state)
        return
    console = Console()
    for name, facts in state.items():
        table = Table(title=f"{name}: {facts['spent']} of {facts['budget']} spent", title_justify="left")
        for heading in ("analyst", "spent", "own budget", "left"):
            table.add_column(heading, justify="left" if heading == "analyst" else "right")
        for row in facts["analysts"]:
            table.add_row(row["analyst"], row["spent"], row["budget"] or "-", row["left"])
        console.print(table)
        if entries:
            lines = Table(show_edge=False)
            for heading in ("entry", "analyst", "question", "on", "epsilon", "charged", "when"):
                lines.add_column(heading, overflow="fold")
            for line in facts["entries"]:
                lines.add_row(
                    *(str(line[field]) for field in ("id", "analyst", "question", "scope", "epsilon", "loss", "at"))
                )
            console.print(lines)
    if not state:
        _say("the ledger holds no data set yet")


@budget_app.command("grant")
def budget_grant(
    ledger: LedgerArgument,
    epsilon: Annotated[
        str, typer.Argument(metavar="EPSILON", help="What may be spent in all, spending so far included.")
    ],
    analyst: Annotated[
        str | None, typer.Option(help="Give this analyst a budget of their own; without it, the data set.")
    ] = None,
    name: DatasetOption = None,
) -> None:
    """Set what a data set, or one analyst on it, may spend in all.

    \b
    Examples:
      privet budget grant adult.csv 2.0
      privet budget grant adult.csv 0.5 --analyst ada
    """
    book = _ledger(ledger)
    dataset = _dataset(book, name)
    cap = as_epsilon(epsilon, "the budget")
    book.set_cap(dataset, analyst, cap)
    whose = f"'{analyst}' on '{dataset}'" if analyst else f"the data set '{dataset}'"
    _say(f"{whose} may now spend {decimal_text(cap)} in all; {decimal_text(book.spent(dataset, analyst))} is spent")


@budget_app.command("revoke")
def budget_revoke(
    ledger: LedgerArgument,
    analyst: Annotated[str | None, typer.Option(help="Stop this analyst; without it, everyone.")] = None,
    name: DatasetOption = None,
) -> None:
    """Stop all further spending, by one analyst or by everyone. What was spent stays recorded.

    Example: privet budget revoke adult.csv --analyst ada
    """
    book = _ledger(ledger)
    dataset = _dataset(book, name)
    book.set_cap(dataset, analyst, Fraction(0))
    _say(f"{f'{analyst!r} may' if analyst else 'nobody may'} {'not ' if analyst else ''}spend any more on '{dataset}'")


@domain_app.command("draft")
def domain_draft(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A public sample (.csv, .parquet) or a codebook (.names).")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
) -> None:
    """Draft a domain file from a PUBLIC sample or codebook. The draft must be reviewed.

    Never run this on the private rows: what a domain lists becomes public.

    Example: privet domain draft public_sample.csv -o adult.toml
    """
    from privet.draft import draft

    text = draft(file)
    if output is None:
        print(text, end="")
    elif output.exists():
        raise QuestionError(f"'{output}' exists already; name another file, or remove it first.")
    else:
        output.write_text(text, encoding="utf-8")
        _say(f"wrote {output}: review it line by line before you open a table with it")


@domain_app.command("check")
def domain_check(data: DataArgument, domain: DomainOption) -> None:
    """Show the data owner what falls outside a domain: exact facts, on the terminal only, not a release.

    Example: privet domain check adult.csv -d adult.toml
    """
    print_outside(data, Domain.load(domain))


@domain_app.command("show")
def domain_show(domain: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")]) -> None:
    """Print a domain file as an aligned table.

    Example: privet domain show adult.toml
    """
    print(Domain.load(domain))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the generated data, the ledger and the report go.")] = Path(
        "privet-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, max=20_000_000, help="How many people to generate.")] = 5_000,
) -> None:
    """Show the whole story on generated data and write a report.

    Five questions to a private table, their answers with error bars, and the ledger.

    Example: privet demo --folder privet-demo
    """
    from privet.demo import run

    run(folder, rows)


def _ledger(target: str) -> Ledger:
    path = Path(target) if target.endswith(".ledger") else ledger_path(target)
    return Ledger.open(path, create=False)


def _dataset(book: Ledger, name: str | None) -> str:
    known = book.datasets()
    if name is not None:
        return name
    if len(known) != 1:
        raise LedgerError(f"the ledger holds {len(known)} data sets ({', '.join(known)}); choose one with --name.")
    return known[0]


def _state(book: Ledger, dataset: str, entries: bool) -> dict[str, Any]:
    cap = book.cap(dataset) or Fraction(0)
    facts: dict[str, Any] = {"budget": decimal_text(cap), "spent": decimal_text(book.spent(dataset))}
    facts["analysts"] = [
        {
            "analyst": analyst,
            "spent": decimal_text(book.spent(dataset, analyst)),
            "budget": None if (own := book.cap(dataset, analyst)) is None else decimal_text(own),
            "left": decimal_text(book.remaining(dataset, analyst)),
        }
        for analyst in book.analysts(dataset)
    ]
    if entries:
        facts["entries"] = [
            {
                **{
                    name: getattr(entry, name)
                    for name in ("id", "at", "analyst", "question", "scope", "epsilon", "key")
                },
                "loss": decimal_text(entry.loss),
                "answered": entry.answer is not None,
            }
            for entry in book.entries(dataset)
        ]
    return facts


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """The `privet` command: one sentence and a code that is not 0 where something stands in the way."""
    try:
        app()
    except PrivetError as error:
        _say(f"privet: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        _say("privet: interrupted; what was charged stands in the ledger")
        sys.exit(130)
    except OSError as error:
        _say(f"privet: {error.strerror or 'the system refused'}: {error.filename or 'a file'}")
        sys.exit(1)
    except Exception as error:
        # Its text may quote a row, so only its kind is shown.
        _say(f"privet: an unexpected {type(error).__name__} stopped this command; please report it")
        sys.exit(70)
