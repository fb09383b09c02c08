"""The page of a study: what was claimed and what we found, and an explorer of every repeat.

One file that loads nothing. Its only script swaps parts that stand in the page already; without scripts the best
of them is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, Claim, Findings, Panel
from privet.studies.pages import histogram, picker, spread
from privet.studies.pages.frontier import best_where
from privet.studies.pages.group import groups, measures
from privet.studies.pages.listing import listing, reading
from privet.studies.pages.look import CLOSED, FRONTIER, OTHERS, PAPER, Look, sample, style
from privet.studies.pages.plot import drawing, key, looks_of, shared_span
from privet.studies.study import Study
from privet.studies.trial import Outcome
from privet.trees.layout import safe
from privet.trees.page_parts import document

MARKS = {HOLDS: "✓", FAILS: "✗", OPEN: "?", DEPENDS: "±", INCOMPARABLE: "≠"}

STYLE = """
body { print-color-adjust: exact; } h3 { font-size: 1rem; margin: 0 0 .3rem; } code { font-size: .92em; }
a { color: var(--leaf); }
.claims { list-style: none; padding: 0; margin: 0; font-size: 1rem; } .claims li { display: grid;
  grid-template-columns: 11.5rem 1fr; gap: .1rem 1rem; padding: .6rem 0; border-top: 1px solid var(--line); }
.claims li:first-child { border-top: 0; } .claims p { margin: 0 0 .2rem; }
.verdict { font-weight: 600; white-space: nowrap; } .held { color: var(--leaf); } .not { color: var(--alarm); }
.panel { display: grid; grid-template-columns: minmax(0, 28rem) minmax(0, 1fr); gap: .4rem 1.8rem; }
.panel > h3, .panel > .why { grid-column: 1 / -1; } .panel figure { margin: 0; break-inside: avoid; }
.panel + .panel { border-top: 1px solid var(--line); margin-top: 1.1rem; padding-top: 1rem; }
figure > svg { display: block; max-width: 100%; height: auto; overflow: visible; }
.key { font-size: .85rem; margin: .3rem 0 0; gap: .1rem 1rem; } .key svg { vertical-align: -4px; margin-right: .35rem; }
.numbers { overflow: auto; max-height: max(25rem, var(--tall)); } .numbers table { font-size: .85rem; }
.numbers th { position: sticky; top: 0; background: var(--card); font-weight: 600; }
.numbers td, .numbers th { padding: .12rem .7rem .12rem 0; border: 0; white-space: nowrap; }
.numbers td:last-child, .numbers th:last-child { padding-right: .2rem; }
.numbers .first > * { border-top: 1px solid var(--line); } .numbers td.name { white-space: normal; min-width: 7rem; }
.number { text-align: right; }
@media (max-width: 60rem) { .panel { grid-template-columns: minmax(0, 1fr); } .numbers { max-height: 20rem; } }
@media (max-width: 44rem) { body { margin: 1.4rem auto; padding: 0 .8rem; } section { padding: .9rem 1rem; }
  .claims li { grid-template-columns: 1fr; } figure > svg text { font-size: 15px; }
  figure > svg text.number { font-size: 14px; } figure > svg text.small { font-size: 12px; } }
@media print { :root { font-size: 11px; } body { margin: 0; max-width: none; font-size: 1rem; }
  .screen { display: none; } section { border: 0; padding: .4rem 0; } .numbers { max-height: none; overflow: visible; }
  .numbers th { position: static; } h2, h3 { break-after: avoid; }
  .panel { grid-template-columns: 30rem minmax(0, 1fr); } tr, li { break-inside: avoid; } }
"""


def explorer(study: Study, findings: Findings, outcomes: Sequence[Outcome], size: str, command: str = "") -> str:
    """The whole page."""
    shown = looks_of(findings.panels)
    found = groups(outcomes)
    explored = picker.Picker(found, measures(found)) if measures(found) else None
    runs = f"{len(outcomes):,} trials of size <b>{safe(size, 40)}</b>"
    parts = [
        f"<h1>{safe(study.title, 200)}</h1>",
        f'<p class="soft">{safe(study.source, 300)}</p>',
        f"<p>{safe(study.about)}</p>" if study.about else "",
        "" if explored is None else '<p class="screen"><a href="#explore">Explore every run</a></p>',
        _claims(findings.claims),
        _panels(findings.panels, shown),
        _notes(findings.notes),
        "" if explored is None else explored.html,
        f'<p class="soft">{safe(study.name, 80)}: {runs}{_by(command)}. Noise is seeded, so that every trial can be '
        "run again: nothing on this page is private, and all rows are public or generated.</p>",
    ]
    styles = STYLE + picker.STYLE + spread.STYLE + histogram.STYLE
    styles += style([*shown.values(), PAPER, CLOSED, FRONTIER, OTHERS])
    return document(study.title, [part for part in parts if part], styles, script() if explored else "")


def script() -> str:
    return resources.files("privet.studies.pages").joinpath("explorer.js").read_text(encoding="utf-8")


# -- claims, panels, notes ----------------------------------------------------------------------


def _by(command: str) -> str:
    return f", written by <code>{safe(command, 200)}</code>" if command else ""


def _claims(claims: Sequence[Claim]) -> str:
    if not claims:
        return ""
    items = "".join(_claim(claim) for claim in claims)
    return f'<section><h2>What was claimed</h2><ul class="claims">{items}</ul></section>'


def _claim(claim: Claim) -> str:
    kind = {HOLDS: " held", FAILS: " not"}.get(claim.verdict, "")
    because = "Why" if claim.verdict == FAILS else "Note"
    why = f"<p><b>{because}:</b> {safe(claim.erratum)}</p>" if claim.erratum else ""
    return (
        f'<li><span class="verdict{kind}">{MARKS[claim.verdict]} {claim.verdict}</span><div><p>{safe(claim.text)}</p>'
        f'<p class="soft">{safe(claim.told)}</p>{why}</div></li>'
    )


def _panels(panels: Sequence[Panel], shown: Mapping[str, Look]) -> str:
    if not panels:
        return ""
    drawn = "".join(_panel(panel, shown, panels) for panel in panels if panel.cells)
    how = f'<p class="soft">{safe(reading(panels))} Bands and bars are 95% intervals. Point at a mark to read it.</p>'
    return f"<section><h2>What we found</h2>{how}{drawn}</section>"


def _panel(panel: Panel, shown: Mapping[str, Look], panels: Sequence[Panel]) -> str:
    best = "; ".join(best_where(panel)) if panel.frontier else ""
    why = f'<p class="why">Best at {safe(best)}.</p>' if best else ""
    drawn = drawing(panel, shown, shared_span(panel, panels))
    return (
        f'<div class="panel"><h3>{safe(panel.title, 200)}</h3><figure>{drawn.svg}'
        f'{key_html(panel, shown)}</figure><div class="numbers" tabindex="0" style="--tall:{drawn.height:.0f}px">'
        f"{listing(panel).html}</div>{why}</div>"
    )


def key_html(panel: Panel, shown: Mapping[str, Look]) -> str:
    entries = "".join(
        f'<span><svg width="30" height="16" viewBox="-15 -8 30 16" aria-hidden="true">{sample(look)}</svg>'
        f"{safe(title, 80)}</span>"
        for look, title in key(panel, shown)
    )
    return f'<p class="key">{entries}</p>' if entries else ""


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{safe(note)}</li>" for note in notes)
    return f"<section><h2>Notes</h2><ul>{items}</ul></section>" if items else ""
