"""`privet budget`: what was spent, and who may spend how much."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from privet.cli.common import (
    STYLE,
    DatasetOption,
    DomainOption,
    JsonOption,
    LedgerArgument,
    print_json,
    say,
    warn_if_large,
)
from privet.cli.outputs import check_output, written_whole
from privet.errors import LedgerError, QuestionError, did_you_mean
from privet.kernel import Domain, Ledger, as_epsilon, source_of, unit_with
from privet.receipts import vkeys
from privet.text import decimal_text, short_text

app = typer.Typer(help="What was spent and who may spend how much.", **STYLE)


@app.command("show", short_help="Show what was spent, by whom, and what is left.")
def show(
    ledger: LedgerArgument,
    entries: Annotated[bool, typer.Option("--entries", help="List every charge.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what was spent on each data set, by whom, what is reserved and what is left.

    Numbers of more than twelve characters are rounded to six digits; --json has each in full.

    Example: privet budget show adult.csv --entries
    """
    book = open_book(ledger)
    state = {name: _state(book, name, entries) for name in book.datasets()}
    if as_json:
        print_json(state)
        return
    console = Console()
    for name, facts in state.items():
        table = Table(title=f"{name}: {_title(facts)}", title_justify="left")
        left = "left, permits aside" if facts["permits"] else "left"
        for heading in ("analyst", "spent", "own budget", left):
            table.add_column(heading, justify="left" if heading == "analyst" else "right")
        for row in facts["analysts"]:
            own = "-" if row["budget"] is None else _short(row["budget"])
            table.add_row(row["analyst"], _short(row["spent"]), own, _short(row["left"]))
        console.print(table)
        for row in facts["permits"]:
            of = "" if row["budget"] is None else f" of {_short(row['budget'])}"
            console.print(f"permit {row['permit']}: {_short(row['spent'])}{of} spent", markup=False, highlight=False)
        if facts["reservations"]:
            reservations = Table(title="open reservations", title_justify="left", show_edge=False)
            for heading in ("id", "analyst", "held", "spent of it", "since"):
                reservations.add_column(heading, overflow="fold")
            for line in facts["reservations"]:
                amounts = _short(line["epsilon"]), _short(line["spent"])
                reservations.add_row(str(line["id"]), line["analyst"], *amounts, line["since"])
            console.print(reservations)
        if entries:
            console.print("\n".join(_entry_lines(facts["entries"], console.width)), markup=False, highlight=False)
    for key in vkeys(book)[-1:]:
        console.print(f"signing key: {key}", markup=False, highlight=False, soft_wrap=True)
    if not state:
        say("the ledger holds no data set yet")


@app.command("grant")
def grant(
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
    if analyst is not None and not analyst.strip():
        raise LedgerError("--analyst needs a name, as --analyst ada; leave it out to set what the data set may spend.")
    book = open_book(ledger)
    dataset = _dataset(book, name)
    unit = unit_with(book.delta(dataset))
    warn_if_large(budget=as_epsilon(epsilon, "the budget"))
    cap = unit.amount(epsilon, "the budget")
    book.set_cap(dataset, analyst, cap)
    whose = f"'{analyst}' on '{dataset}'" if analyst else f"the data set '{dataset}'"
    say(f"{whose} may now spend {unit.text(cap)} in all; {unit.text(book.spent(dataset, analyst))} is spent")


@app.command("revoke")
def revoke(
    ledger: LedgerArgument,
    analyst: Annotated[str | None, typer.Option(help="Stop this analyst; without it, everyone.")] = None,
    name: DatasetOption = None,
) -> None:
    """Stop all further spending, by one analyst or by everyone. What was spent stays recorded.

    Example: privet budget revoke adult.csv --analyst ada
    """
    book = open_book(ledger)
    dataset = _dataset(book, name)
    known = book.analysts(dataset)
    if analyst is not None and analyst not in known:
        raise LedgerError(
            f"there is no analyst '{analyst}' on '{dataset}'{did_you_mean(analyst, known)}; known are "
            f"{', '.join(known) or 'none yet'}."
        )
    book.set_cap(dataset, analyst, Fraction(0))
    say(f"{f'{analyst!r} may' if analyst else 'nobody may'} {'not ' if analyst else ''}spend any more on '{dataset}'")


@app.command("declare", short_help="Record a changed domain, and re-price what was spent.")
def declare(ledger: LedgerArgument, domain: DomainOption, name: DatasetOption = None) -> None:
    """Record a changed domain, and re-price what was spent so far if a person may have more rows.

    Afterwards tables are opened with the declared domain only. Other columns, values or bins change no price.
    With k times as many rows per person, everything that was spent costs k times as much, and counted in rho k^2
    times. Fewer are refused.

    Example: privet budget declare adult.csv -d adult.toml
    """
    book = open_book(ledger)
    dataset = _dataset(book, name)
    declared = Domain.load(domain)
    more = book.declare(dataset, declared)
    unit = unit_with(book.delta(dataset))
    spent = f"{unit.text(book.spent(dataset))} is spent"
    added = f", {unit.text(more)} more than before" * (more > 0)
    say(f"'{dataset}' may be opened with {domain} from now on; {spent}{added}")


@app.command("release", short_help="End a reservation that a process has left open.")
def release(
    ledger: LedgerArgument,
    reservation: Annotated[int, typer.Argument(metavar="ID", help="The reservation, as `budget show` numbers it.")],
) -> None:
    """End a reservation that a process has left open; what was not spent of it can be spent again.

    Example: privet budget release adult.csv 3
    """
    freed = open_book(ledger).end(reservation)
    say(f"reservation {reservation} has ended; {decimal_text(freed)} is free again")


class ExportFormat(StrEnum):
    """What `privet budget export` writes."""

    BUNDLE = "bundle"
    PAGE = "page"
    REGISTRY = "registry"


@app.command("export", short_help="Print what auditors, permits and registries ask for.")
def export(
    ledger: LedgerArgument,
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="bundle: all about the data set, as JSON; page: the same to read; registry: an entry for the OpenDP "
            "deployments registry, as YAML.",
        ),
    ] = ExportFormat.PAGE,
    name: DatasetOption = None,
    analyst: Annotated[str | None, typer.Option(help="Only what concerns this analyst; names no other.")] = None,
    permit: Annotated[str | None, typer.Option(help="Only what was charged under this permit.")] = None,
    words: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What only you can say, for the registry: TOML; see docs/how-to/export.md."),
    ] = None,
    checked_by: Annotated[str | None, typer.Option(help="Who checks what leaves, for the bundle.")] = None,
    domain_by: Annotated[str | None, typer.Option(help="Who wrote the domain, for the bundle.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
) -> None:
    """Print what a ledger says about a data set: for an audit, for a permit, or for a public registry.

    A bundle has names of analysts and times, and is for the owner and whoever examines it. A registry entry
    names nobody. No answer stands in either, and nothing that depends on a row.

    \b
    Examples:
      privet budget export people.csv -o audit.html
      privet budget export people.csv --format bundle --analyst ada -o ada.json
      privet budget export people.csv --format registry --words words.toml -o registry.yaml
    """
    from privet import owner_reports

    check_output(output, reads=(ledger, words))
    book = open_book(ledger)
    dataset = _dataset(book, name)
    if form is ExportFormat.REGISTRY:
        if analyst is not None or permit is not None:
            raise QuestionError("an entry of a registry is about the whole data set; leave out --analyst and --permit.")
        own = None if words is None else owner_reports.OwnerWords.load(words)
        text = owner_reports.to_yaml(owner_reports.registry_entry(book, dataset, own))
    else:
        bundle = owner_reports.audit_bundle(
            book, dataset, analyst=analyst, permit=permit, checked_by=checked_by, domain_by=domain_by
        )
        page = form is ExportFormat.PAGE
        text = owner_reports.bundle_page(bundle) if page else json.dumps(bundle, indent=1, ensure_ascii=False) + "\n"
    with written_whole(output) as file:
        file.write(text)
    if output is not None:
        say(f"wrote {output}")
    if form is ExportFormat.REGISTRY and (missing := text.count(owner_reports.SAY)):
        say(f'{missing} fields say "{owner_reports.SAY}": answer them in a file, and name it with --words')


def _entry_lines(entries: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Return two lines or more for each charge: who, when and how much, and below it what was asked, in whole words."""
    rows = [("entry", "when", "analyst", "epsilon", "charged")]
    for entry in entries:
        minute = entry["at"][:16].replace("T", " ")
        rows.append((str(entry["id"]), minute, entry["analyst"], entry["epsilon"], _short(entry["loss"])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    heads = ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines, indent = heads[:1], " " * (widths[0] + 2)
    for entry, head in zip(entries, heads[1:], strict=True):
        asked = f"{entry['question']} on {entry['scope']}"
        options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        lines += [head, *wrap(asked, width, initial_indent=indent, subsequent_indent=indent, **options)]
    return lines


def _short(exact: str) -> str:
    """Return an amount of JSON as people read it: losses in rho are fractions of hundreds of digits."""
    return short_text(Fraction(exact))


def open_book(target: str) -> Ledger:
    """Open the ledger that is named, the one beside the data, or the one of a server's configuration."""
    if target.lower().endswith(".toml"):
        from privet.service.config import load

        ledger = load(Path(target)).ledger
        assert ledger is not None
        return Ledger.open(ledger, create=False)
    is_ledger = target.endswith(".ledger") or Ledger.on_server(target)
    return Ledger.open(target if is_ledger else source_of(target).ledger, create=False)


def _title(facts: dict[str, Any]) -> str:
    """Return what was spent of a budget, and in rho what the rest would buy."""
    if "unit" not in facts:
        return f"{facts['spent']} of {facts['budget']} spent"
    spent, budget = (short_text(Fraction(facts[name])) for name in ("spent", "budget"))
    left = f"one answer of epsilon {short_text(Fraction(facts['buys']))} with delta {facts['delta']} is left"
    return f"rho {spent} of {budget} spent; {left}"


def _dataset(book: Ledger, name: str | None) -> str:
    """Return the data set that is named, or the only one of the ledger."""
    known = book.datasets()
    if name is not None:
        if name not in known:
            raise LedgerError(
                f"the ledger has no data set '{name}'{did_you_mean(name, known)}; it has {', '.join(known) or 'none'}."
            )
        return name
    if len(known) != 1:
        raise LedgerError(f"the ledger holds {len(known)} data sets ({', '.join(known)}); choose one with --name.")
    return known[0]


def _state(book: Ledger, dataset: str, entries: bool) -> dict[str, Any]:
    """Return what the ledger holds of a data set, as a dict for JSON."""
    cap = book.cap(dataset) or Fraction(0)
    unit, spent = unit_with(book.delta(dataset)), book.spent(dataset)
    facts: dict[str, Any] = {"budget": decimal_text(cap), "spent": decimal_text(spent)}
    if unit.delta is not None:
        buys = unit.buys(max(cap - spent, Fraction(0)))
        facts |= {"unit": unit.name, "delta": f"{float(unit.delta):g}", "buys": decimal_text(buys)}
    facts["analysts"] = [
        {
            "analyst": analyst,
            "spent": decimal_text(book.spent(dataset, analyst)),
            "budget": None if (own := book.cap(dataset, analyst)) is None else decimal_text(own),
            "left": decimal_text(book.remaining(dataset, analyst)),
        }
        for analyst in book.analysts(dataset)
    ]
    facts["permits"] = [
        {
            "permit": permit,
            "spent": decimal_text(spent),
            "budget": None if (shared := book.cap(dataset, permit=permit)) is None else decimal_text(shared),
        }
        for permit, spent in book.permits(dataset).items()
    ]
    facts["reservations"] = [
        {
            "id": hold.id,
            "analyst": hold.analyst,
            "epsilon": decimal_text(hold.epsilon),
            "spent": decimal_text(hold.spent),
            "since": hold.at,
        }
        for hold in book.holds(dataset)
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
