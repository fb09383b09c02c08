"""`privet verify`: test whether something loses more than the epsilon it claims."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from privet.cli.common import JsonOption, print_json, say
from privet.cli.outputs import check_output, write_text
from privet.errors import QuestionError
from privet.kernel import Domain
from privet.text import decimal_text

if TYPE_CHECKING:
    from privet.verification import Report, Verdict

EXIT_CODES = {"holds": 0, "broken": 1, "undecided": 3}


def verify(
    subject: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A preset, mechanism, question or known-bad fixture.")
    ] = None,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="The claim to test, as 1 or 1/2.")] = "1",
    everything: Annotated[bool, typer.Option("--all", help="Everything there is, some five minutes.")] = False,
    attacks: Annotated[
        str | None, typer.Option("--attacks", metavar="DATA", help="Attack the layer that answers about this table.")
    ] = None,
    domain: Annotated[
        Path | None,
        typer.Option("--domain", "-d", metavar="FILE", help="The domain of --attacks; else DATA's name with .toml."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Print the names and exit.")] = False,
    hours: Annotated[
        float | None, typer.Option(min=0, help="Search this long: more presets, epsilons, tables and runs.")
    ] = None,
    record: Annotated[
        Path, typer.Option(metavar="FILE", help="Where --hours keeps its verdicts; a search goes on from it.")
    ] = Path("privet-verify.jsonl"),
    effort: Annotated[float, typer.Option(help="Multiplies the runs.")] = 1.0,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a report here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Try to prove that something loses more than the epsilon it claims.

    The test looks for two tables that differ by one person and an event that is more than
    exp(epsilon) times as likely on one of them. It prints a lower bound of the loss, the event
    that shows it, the number of runs, the probability that the bound is wrong, and the power:
    the smallest true epsilon that the test would have found.

    A claim is broken, holds as far as tested, or is undecided: a test that would miss twice the
    claim does not pass it. The exit code is 0 if all honest claims hold and all known-bad ones
    are caught, 3 if a claim is undecided, else 1.

    --attacks runs all known attacks on the layer that answers questions about a table, both with
    the default access and with statements that run where the rows are. It uses ledgers of its
    own, which it deletes with all answers; nothing is charged.

    \b
    Examples:
      privet verify diffpid3 --epsilon 1
      privet verify --all --html report.html
      privet verify --attacks adult.csv -d adult.toml
      privet verify --hours 8 --record overnight.jsonl
    """
    from privet import verification

    modes = [name for name, given in _modes(subject, everything, attacks, listed, hours).items() if given]
    if len(modes) != 1:
        raise QuestionError(
            "verify takes one of NAME, --all, --attacks DATA, --hours H and --list"
            + (f", not {' and '.join(modes)} together." if modes else ", as `privet verify diffpid3 --epsilon 1`.")
        )
    if hours is not None and not hours < float("inf"):
        raise QuestionError(f"--hours is a number of hours, not {hours}.")
    check_output(html, reads=(attacks, domain))
    if listed:
        _list(as_json)
        return
    with Console(stderr=True).status("verifying") as status:
        if attacks is not None:
            report = verification.attack_table(attacks, _domain(attacks, domain), progress=status.update)
        elif hours is not None:
            report = verification.search(hours, record, progress=status.update)
        elif everything:
            report = verification.verify_all(effort=effort, progress=status.update)
        else:
            verdict = verification.verify(subject, epsilon, effort=effort, progress=status.update)
            report = verification.Report((verdict,))
    if html is not None:
        write_text(html, report.to_html())
    _print(report, as_json)
    if html is not None:
        say(f"wrote {html}")
    raise typer.Exit(EXIT_CODES[report.outcome])


def _domain(data: str, given: Path | None) -> Domain:
    """Load the domain that was given, or the .toml file beside the data."""
    beside = Path(data).with_suffix(".toml")
    if given is None and not beside.is_file():
        raise QuestionError(
            f"--attacks needs the table's public domain, as --domain adult.toml; there is no '{beside.name}' beside it."
        )
    return Domain.load(given or beside)


def _modes(
    subject: str | None, everything: bool, attacks: str | None, listed: bool, hours: float | None
) -> dict[str, bool]:
    """Return the modes of the command, and which of them were asked for."""
    return {
        f"'{subject}'": subject is not None,
        "--all": everything,
        "--attacks": attacks is not None,
        "--list": listed,
        "--hours": hours is not None,
    }


def _list(as_json: bool) -> None:
    """Print everything that can be verified."""
    from privet import verification

    subjects = verification.registry().values()
    if as_json:
        print_json([{"name": subject.name, "kind": subject.kind, "line": subject.line} for subject in subjects])
        return
    for subject in subjects:
        print(f"{subject.name:<32} {subject.kind:<10} {subject.line}")


def _print(report: Report, as_json: bool) -> None:
    """Print a report."""
    if as_json:
        print_json(report.to_dict())
        return
    if len(report.verdicts) == 1:
        print(report.verdicts[0])
    elif report.verdicts:
        _print_verdicts(report)
    if report.attacks:
        _print_attacks(report)


def _print_verdicts(report: Report) -> None:
    """Print a table of verdicts and a summary."""
    from privet.verification.verdict import number

    console = Console(width=None if Console().is_terminal else 160)
    wide = console.width >= 120  # a narrower terminal does not show the events; the page and the JSON do
    table = Table(show_edge=False)
    for heading in ("what", "claim", "loses at least", "power", "verdict", *(("shown by",) if wide else ())):
        table.add_column(heading, overflow="fold", justify="right" if heading in _NUMBERS else "left")
    for verdict in report.verdicts:
        numbers = decimal_text(verdict.claim), number(verdict.lower_bound), number(verdict.power)
        event = f"{verdict.worst.method}: {verdict.worst.event}"[:70]
        table.add_row(verdict.subject, *numbers, _word(verdict), *((event,) if wide else ()))
    console.print(table)
    honest = [verdict for verdict in report.verdicts if not verdict.must_fail]
    bad = [verdict for verdict in report.verdicts if verdict.must_fail]
    outcomes = [verdict.outcome for verdict in honest]
    print(f"{len(honest)} honest claims: {outcomes.count('holds')} hold as far as tested, ", end="")
    print(f"{outcomes.count('undecided')} undecided, {outcomes.count('broken')} broken")
    print(f"{sum(verdict.as_expected for verdict in bad)} of {len(bad)} known-bad ones were caught")
    print(f"a false alarm anywhere had probability {sum(verdict.alpha for verdict in honest):.1g} at most")
    if report.outcome == "undecided":
        print("UNDECIDED: no power is no pass; raise --effort")


def _print_attacks(report: Report) -> None:
    """Print the result of each attack."""
    print(f"attacks on {report.layer}")
    for result in report.attacks:
        word = {True: "held", False: "GOT THROUGH", None: "not decided"}[result.held]
        print(f"{result.number:>2} {result.name}: {word}")
        for sentence in result.found:
            print(textwrap.fill(sentence, 80, initial_indent=" " * 5, subsequent_indent=" " * 5))


_NUMBERS = ("claim", "loses at least", "power")


def _word(verdict: Verdict) -> str:
    """Return a verdict in one word, in capitals if it is not as expected."""
    if verdict.must_fail:
        return "caught" if verdict.as_expected else "MISSED"
    return verdict.outcome if verdict.passed else verdict.outcome.upper()
