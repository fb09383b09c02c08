"""`privet domain`: the public description of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.common import STYLE, DataArgument, DomainOption, say
from privet.errors import QuestionError
from privet.kernel import Domain, print_outside

app = typer.Typer(help="The public description of a table.", **STYLE)


@app.command("draft")
def draft(
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
        say(f"wrote {output}: review it line by line before you open a table with it")


@app.command("check")
def check(data: DataArgument, domain: DomainOption) -> None:
    """Show the data owner what falls outside a domain: exact facts, on the terminal only, not a release.

    Example: privet domain check adult.csv -d adult.toml
    """
    print_outside(data, Domain.load(domain))


@app.command("show")
def show(domain: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")]) -> None:
    """Print a domain file as an aligned table.

    Example: privet domain show adult.toml
    """
    print(Domain.load(domain))
