"""The page of many studies: what holds of their claims, how far they are from the papers, and their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from privet.report import rendering
from privet.report.svg import Drawing
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, Claim, Findings
from privet.studies.pages.explorer import MARKS
from privet.studies.pages.listing import largest_difference
from privet.studies.pages.plot import drawing, looks_of, shared_span
from privet.studies.pages.words import errors_text
from privet.studies.study import Study

PICTURES = 3  # of each study
VERDICTS = (
    (HOLDS, "held", "claim holds", "claims hold"),
    (FAILS, "not", "claim does not", "claims do not"),
    (DEPENDS, "", "depends on the reading", "depend on the reading"),
    (INCOMPARABLE, "", "not comparable", "not comparable"),
    (OPEN, "", "open at this size", "open at this size"),
)


class StudyRow(NamedTuple):
    """A study in the list of all."""

    study: Study
    tally: list[tuple[str, str, int, str]]
    apart: str  # from the paper, at most
    drawings: list[Drawing]
    hidden: int


def report(found: Sequence[tuple[Study, Findings]], command: str) -> str:
    """Return a page with one row for each study; the page of a study lies beside this one and has its name."""
    return rendering.page(
        "studies.html",
        "The papers, run again",
        rows=[_row(study, findings) for study, findings in found],
        command=command,
        tally=_tally([claim for _, findings in found for claim in findings.claims]),
        broken=[(study, claim) for study, findings in found for claim in findings.claims if claim.verdict == FAILS],
    )


def _row(study: Study, findings: Findings) -> StudyRow:
    shown = looks_of(findings.panels)  # each study starts with the first look
    panels = [panel for panel in findings.panels if panel.cells]
    drawings = [drawing(panel, shown, shared_span(panel, panels)) for panel in panels[:PICTURES]]
    far = largest_difference(findings)
    apart = errors_text(far) if far is not None else ""
    return StudyRow(study, _tally(findings.claims), apart, drawings, len(panels) - PICTURES)


def _tally(claims: Sequence[Claim]) -> list[tuple[str, str, int, str]]:
    """How many claims hold, do not, or cannot be told; who has none has nothing to say."""
    counted = []
    for verdict, kind, one, many in VERDICTS:
        number = sum(claim.verdict == verdict for claim in claims)
        if number:
            counted.append((kind, MARKS[verdict], number, one if number == 1 else many))
    return counted
