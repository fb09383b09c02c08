"""An audit as small tables: for a terminal, and for `str`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from privet.risk.findings import Audit, plain, probability
from privet.risk.measures import Exposure
from privet.risk.words import UNKNOWN, accuracy, before, difference, measures, notes, ordered, promise, verdict

EXPOSED, WIDTH = 10, 100  # rows of a table, columns of a text


def summary(audit: Audit) -> str:
    """An audit as plain text."""
    paper = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False)
    with paper.capture() as printed:
        show(audit, paper)
    return "\n".join(line.rstrip() for line in printed.get().splitlines())


def show(audit: Audit, console: Console, beside: Audit | None = None) -> None:
    """The verdict, the adversaries, the most exposed, the remedies and the notes; of two audits in one table."""
    both = [audit] if beside is None else [audit, beside]
    for each in both:
        named = Text(f"{plain(each.name)}: ", style="bold")
        console.print(named.append(verdict(each), style="green" if each.safe else "red"), highlight=False)
        _say(console, before(each), promise(each), _about(each))
        if beside is not None:
            console.print()
    if beside is not None:
        _say(console, difference(audit, beside))
    _heading(console, "Three numbers")
    console.print(_three(both))
    _heading(console, "What can be inferred, whether the own row helped or not")
    console.print(_adversaries(both))
    for each in both:
        model = "" if beside is None else f": {plain(each.name)}"
        if each.exposures:
            _heading(console, f"Who is concerned{model}")
            console.print(_exposed(each, each.exposures[:EXPOSED]))
        if each.remedies:
            _heading(console, f"What would help{model}")
            console.print(_remedies(each))
        if said := notes(each):
            _heading(console, f"Notes{model}")
            console.print(_bullets(said))


def _about(audit: Audit) -> str:
    about = f"{audit.people.total:,} people in {len(audit.people):,} profiles, {len(audit.values)} values"
    return about + ("." if audit.counted is None else f"; constraints: {plain(str(audit.counted))}.")


def _say(console: Console, *sentences: str) -> None:
    for sentence in filter(None, sentences):
        console.print(Text(sentence), highlight=False)


def _heading(console: Console, words: str) -> None:
    console.print(Text(f"\n{words}", style="bold"), highlight=False)


def _grid(headed: bool = True) -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim", show_header=headed)


def _bullets(sentences: Iterable[str]) -> Table:
    grid = _grid(headed=False)
    for sentence in sentences:
        grid.add_row("-", Text(plain(sentence)))
    return grid


def _adversaries(audits: Sequence[Audit]) -> Table:
    """A terminal of 80 columns has room for those measures that no other one implies; a page and JSON have all."""
    without_truth = any(audit.truth is None for audit in audits)
    left_out = ("alpha, k", "D", "D floored", "right") if without_truth else ("alpha, k", "mean")
    columns = [each for each in measures(audits[0]) if each.head not in left_out]
    grid = _grid()
    grid.add_column("adversary", min_width=15, max_width=15, overflow="fold")
    for column in columns:
        grid.add_column(Text(column.head.replace(" ", "\n")), justify="right")
    for audit in audits:
        if len(audits) > 1:
            grid.add_row(Text(plain(audit.name), style="bold"))
        for name in ordered(audit):
            grid.add_row(name, *(Text(column.told(audit.overall[name])) for column in columns))
    return grid


def _three(audits: Sequence[Audit]) -> Table:
    """Baseline, inference and disclosure."""
    grid = _grid()
    grid.add_column("number", min_width=15)
    for head in ("on average", "most", "people concerned"):
        grid.add_column(head, justify="right")
    for audit in audits:
        if len(audits) > 1:
            grid.add_row(Text(plain(audit.name), style="bold"))
        for name, numbers in audit.summary.items():
            bound = name == "disclosure" and not audit.own.is_computed
            cells = [f"{'at most ' * bound}{probability(numbers[each])}" for each in ("mean", "most")]
            many = f"{audit.known:,}" if name == "disclosure" and audit.by_own_row and not bound else ""
            grid.add_row(name, *map(Text, cells), many)
    return grid


def _exposed(audit: Audit, exposures: Iterable[Exposure]) -> Table:
    grid = _grid()
    heads = ("baseline", "inference", "disclosure") if audit.by_own_row else ("posterior", "before")
    for head in (*heads, "people"):
        grid.add_column(head, justify="right")
    grid.add_column("value", max_width=18)
    grid.add_column("who, where and why" if audit.names else "where and why")
    for each in exposures:
        why = Text(f"{plain(each.who)}\n" * audit.names)
        why.append(f"{plain(each.path)}: {plain(each.because)}", style="dim")
        shares = (
            (each.baseline, each.inference, each.disclosure) if audit.by_own_row else (each.posterior, each.baseline)
        )
        people = each.people if audit.names else each.everybody
        grid.add_row(*map(Text, map(probability, shares)), f"{people:,}", Text(plain(each.value)), why)
    return grid


def _remedies(audit: Audit) -> Table:
    grid = _grid()
    grid.add_column("")
    for head in ("most", "people", "accuracy"):
        grid.add_column(head, justify="right")
    grid.add_column("what")
    marked = audit.best
    for each in audit.remedies:
        mark = "enough" if each.enough else "not known" if each.is_unknown else "not enough"
        mark = "best" if each is marked else mark
        known = UNKNOWN if each.known is None else f"{each.known:,}"
        numbers = (probability(each.worst), known, accuracy(each))
        grid.add_row(Text(mark, style="bold" if each is marked else ""), *map(Text, numbers), Text(plain(each.told)))
    return grid
