"""What a study found, for a terminal of a hundred columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from privet.studies.findings import FAILS, VERDICTS, Claim, Findings, Panel
from privet.studies.pages.explorer import MARKS
from privet.studies.pages.frontier import best_where
from privet.studies.pages.listing import largest_difference, listing, reading
from privet.studies.pages.words import errors_text
from privet.studies.study import Study
from privet.text import clean, shortened, width_of

WIDTH = 100


def lines(study: Study, findings: Findings) -> Iterator[str]:
    """Numbers beside the paper's, then what holds of its claims, and why not."""
    yield shortened(clean(f"{study.name}: {study.title}"), WIDTH)
    yield from _wrapped(study.source)
    yield from _wrapped(study.about)
    for panel in findings.panels:
        yield ""
        yield from _panel(panel)
    if findings.panels:
        yield ""
        yield from _wrapped(reading(findings.panels))
    if findings.claims:
        yield ""
        yield "Claims"
        for claim in findings.claims:
            yield from _claim(claim)
    if findings.notes:
        yield ""
        yield "Notes"
        for note in findings.notes:
            yield from _wrapped(note, "- ", "  ")


def summary(study: Study, findings: Findings) -> Iterator[str]:
    """Where there are many studies: a line for each, then the claims that do not hold, and why."""
    tally = "  ".join(
        f"{MARKS[verdict]} {sum(claim.verdict == verdict for claim in findings.claims)}" for verdict in VERDICTS
    )
    far = largest_difference(findings)
    apart = "" if far is None else f"   farthest from the paper {errors_text(far)}"
    yield f"{study.name:<28} {tally}{apart}"
    for claim in findings.claims:
        if claim.verdict == FAILS:
            yield from _claim(claim)


def _panel(panel: Panel) -> Iterator[str]:
    yield shortened(clean(f"{panel.title}, {panel.y}"), WIDTH)
    if panel.kind == "cells":
        yield f"  {len(panel.cells)} cells, drawn on the page"
        return
    found = listing(panel)
    rows = [tuple(clean(words) for words in row) for row in (found.heads, *found.rows)]
    widths = [max(width_of(row[i]) for row in rows) for i in range(len(found.heads))]
    over = sum(widths) + 2 * len(widths) - WIDTH
    for i in (0, 1):  # names give way, numbers never
        less = min(max(over, 0), max(widths[i] - 12, 0))
        widths[i], over = widths[i] - less, over - less
    before = ""
    for row in rows:
        shown = ("" if row[0] == before else row[0], *row[1:])
        before = row[0]
        told = (_padded(words, width, i > 1) for i, (words, width) in enumerate(zip(shown, widths, strict=True)))
        yield ("  " + "  ".join(told)).rstrip()
    if panel.frontier:
        yield from (f"  {words}" for each in best_where(panel) for words in _wrapped(f"best at {each}"))


def _claim(claim: Claim) -> Iterator[str]:
    yield from _wrapped(f"{claim.text} {claim.verdict.capitalize()}: {claim.told}", f"{MARKS[claim.verdict]} ", "  ")
    if claim.erratum:
        because = "Why" if claim.verdict == FAILS else "Note"
        yield from _wrapped(f"{because}: {claim.erratum}", "  ", "  ")


def _padded(words: str, width: int, right: bool) -> str:
    kept = shortened(words, width)
    space = " " * (width - width_of(kept))
    return space + kept if right else kept + space


def _wrapped(words: str, first: str = "", others: str = "") -> Iterable[str]:
    """A text in lines; a word that is longer than a line is cut."""
    line, found = first, []
    for word in clean(words).split():
        kept = shortened(word, WIDTH - len(others))
        if line.strip() and line != first and width_of(line) + 1 + width_of(kept) > WIDTH:
            found.append(line)
            line = others + kept
        else:
            line = line + kept if line in (first, others) else f"{line} {kept}"
    return [*found, line] if line.strip() else []
