"""`privet domain`: draft, check and show the public domain of a table, and convert files to what tables are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from privet.cli.common import STYLE, DataArgument, DomainOption, say
from privet.cli.outputs import check_output
from privet.errors import DataError, QuestionError
from privet.kernel import Domain, print_outside

app = typer.Typer(help="The public description of a table.", **STYLE)


NamesOption = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="The names of the columns, for a CSV file without a header.")
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What separates the cells of a CSV file: a character, or comma, semicolon, tab, bar, space. Detected if "
        "left out.",
    ),
]
EncodingOption = Annotated[
    str | None, typer.Option(help="How the text of a CSV file is written, as latin-1; UTF-8 if left out.")
]


@app.command("draft")
def draft(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A public sample (.csv, .parquet) or a codebook (.names).")
    ],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.")] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says whose row it is, as patient_id.")
    ] = None,
    rows_per_person: Annotated[
        int | None, typer.Option(metavar="K", help="At most this many rows of a person count; 1 if left out.")
    ] = None,
    names: NamesOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
    quantiles: Annotated[
        bool,
        typer.Option(
            "--quantiles",
            help="Put the edges of numbers at quantiles of the sample. It must be public: the edges will show it.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
) -> None:
    """Draft a domain file from a PUBLIC sample or codebook. It loads as it is; review it all the same.

    Identifiers and free text are left out, with the reason. Never run this on the private rows: what a domain
    lists becomes public.

    Example: privet domain draft public_sample.csv --target income --person person_id -o people.toml
    """
    from privet.draft import draft

    text = draft(
        file,
        target=target,
        person=person,
        rows_per_person=rows_per_person,
        names=_names(names),
        delimiter=delimiter,
        encoding=encoding,
        quantiles=quantiles,
    )
    if output is None:
        print(text, end="")
        return
    _refuse_existing(output)
    output.write_text(text, encoding="utf-8")
    say(f"wrote {output}: review it line by line before you open a table with it")
    if "privet domain convert" in text:
        say("tables are not opened from files of this form: the draft says how to convert them")


@app.command("convert")
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of cells with delimiters.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .csv file to write.")],
    names: NamesOption = None,
    delimiter: DelimiterOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Convert the owner's file to what tables are opened from: comma-separated UTF-8, each column named once.

    Cells may be separated by semicolons, tabs, bars or spaces; decimal commas become points; a repeated name gets a
    number, as x and x.1. The file written holds the same rows: guard it alike.

    Example: privet domain convert visits.txt --encoding latin-1 -o visits.csv
    """
    from privet.delimited import convert

    _refuse_existing(output)
    convert(file, output, names=_names(names), delimiter=delimiter, encoding=encoding)
    say(f"wrote {output}")


def _names(names: str | None) -> list[str] | None:
    return None if names is None else names.split(",")


def _refuse_existing(output: Path) -> None:
    """Refuse to write where a file is, or where no folder is."""
    check_output(output)
    if output.exists():
        raise QuestionError(f"'{output}' exists already; name another file, or remove it first.")


@app.command("check")
def check(
    data: DataArgument,
    domain: DomainOption,
    person: Annotated[
        str | None,
        typer.Option("--person", metavar="COLUMN", help="Count the rows of each person, by this column."),
    ] = None,
) -> None:
    """Show the data owner what lies outside a domain: exact numbers, for the terminal only, not a release.

    With a person column, of the domain or by --person, it also shows how many rows a person has, and what each
    rows_per_person would leave out.

    Example: privet domain check visits.csv -d visits.toml --person patient_id
    """
    declared = Domain.load(domain)
    if person is None:
        print_outside(data, declared)
        return
    try:
        print_outside(data, replace(declared, person=person))
    except DataError as error:
        if f"'{person}', which the domain declares" not in str(error):
            raise
        raise DataError(f"'{data}' has no column '{person}', which --person names; check its spelling.") from None


@app.command("show")
def show(domain: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")]) -> None:
    """Print a domain file as an aligned table.

    Example: privet domain show adult.toml
    """
    print(Domain.load(domain))
