"""The page of a study: what was claimed and what we found, and an explorer of every repeat.

Its only script swaps parts that stand in the page already; without scripts the best of them is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from privet.report import chart, rendering
from privet.report.chart import Look
from privet.report.svg import Drawing
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, Findings, Panel
from privet.studies.pages.frontier import best_where
from privet.studies.pages.group import groups, measures
from privet.studies.pages.listing import Listing, listing, reading
from privet.studies.pages.picker import Picker
from privet.studies.pages.plot import drawing, key, looks_of, shared_span
from privet.studies.study import Study
from privet.studies.trial import Outcome

MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?", DEPENDS: "±", INCOMPARABLE: "≠"}


CELLS = "cells"  # the kind of panels that stand side by side, to be compared


class ShownPanel(NamedTuple):
    """A panel as a page shows it."""

    kind: str
    title: str
    drawing: Drawing
    key: Markup
    listing: Listing
    best: str


def explorer(study: Study, findings: Findings, outcomes: Sequence[Outcome], size: str, command: str = "") -> str:
    """Return the whole page."""
    shown = looks_of(findings.panels)
    repeats = groups(outcomes)
    picker = Picker(repeats, measures(repeats)) if measures(repeats) else None
    kinds = {HOLDS: " held", FAILS: " not"}
    panels = [_panel(panel, shown, findings.panels) for panel in findings.panels if panel.cells]
    return rendering.page(
        "study.html",
        study.title,
        script=script() if picker else "",
        study=study,
        picker=picker,
        claims=[
            (claim, kinds.get(claim.verdict, ""), MARKS[claim.verdict], "Why" if claim.verdict == FAILS else "Note")
            for claim in findings.claims
        ],
        has_panels=bool(findings.panels),
        reading=reading(findings.panels),
        panels=[(tiled, list(run)) for tiled, run in groupby(panels, lambda panel: panel.kind == CELLS)],
        notes=findings.notes,
        trials=len(outcomes),
        size=size,
        command=command,
    )


def script() -> str:
    """Return what the page runs."""
    return resources.files("privet.studies.pages").joinpath("explorer.js").read_text(encoding="utf-8")


def _panel(panel: Panel, shown: Mapping[str, Look], panels: Sequence[Panel]) -> ShownPanel:
    best = "; ".join(best_where(panel)) if panel.frontier else ""
    drawn = drawing(panel, shown, shared_span(panel, panels))
    return ShownPanel(panel.kind, panel.title, drawn, chart.key(key(panel, shown)), listing(panel), best)
