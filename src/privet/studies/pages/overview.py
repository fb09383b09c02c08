"""The page of many studies: what holds of their claims, how far they are from the papers, and their pictures."""

from __future__ import annotations

from collections.abc import Sequence

from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, Claim, Findings
from privet.studies.pages.explorer import MARKS
from privet.studies.pages.explorer import STYLE as PAGE
from privet.studies.pages.listing import largest_difference
from privet.studies.pages.look import CLOSED, FRONTIER, LEVELS, OTHERS, PAPER, looks, style
from privet.studies.pages.plot import drawing, looks_of, shared_span
from privet.studies.pages.words import errors_text
from privet.studies.study import Study
from privet.trees.layout import safe
from privet.trees.page_parts import document

PICTURES = 3  # of each study

STYLE = """
.study { display: grid; grid-template-columns: minmax(0, 22rem) 13rem minmax(0, 1fr); gap: .4rem 1.6rem;
  break-inside: avoid; } .study h2 { margin-bottom: .2rem; } .study p { margin: .15rem 0; }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem; align-items: flex-start; } .pictures svg { display: block;
  width: 12.5rem; height: auto; } .pictures svg text { display: none; } .pictures svg .line { stroke-width: 3.5; }
.pictures svg .round { stroke-width: 20; } .summary { display: flex; flex-wrap: wrap; gap: .2rem 2rem; }
.summary span { font-size: 1.1rem; } .broken { list-style: none; padding: 0; margin: 0; font-size: 1rem; }
.broken li { padding: .3rem 0; }
@media (max-width: 60rem) { .study { grid-template-columns: minmax(0, 1fr); } .pictures svg { width: 8.6rem; } }
"""


def report(found: Sequence[tuple[Study, Findings]], command: str) -> str:
    """One row for each study; the page of a study lies beside this one and has its name."""
    claims = [claim for _, findings in found for claim in findings.claims]
    broken = [(study, claim) for study, findings in found for claim in findings.claims if claim.verdict == FAILS]
    why = '<a href="#broken">what does not hold, and why</a>' if broken else ""
    parts = [
        "<h1>The papers, run again</h1>",
        f'<p class="soft">{len(found)} studies, written by <code>{safe(command, 200)}</code>. Differences are between '
        "ours and the published numbers, in standard errors, beyond what may have been misread.</p>",
        f'<section><p class="summary">{_tally(claims)}{why}</p></section>' if claims else "",
        *(_study(study, findings) for study, findings in found),
        _broken(broken),
        '<p class="soft">Rows are public or generated, and noise is seeded, so that every trial can be run again: '
        "nothing here is private.</p>",
    ]
    most = max((len(looks_of(findings.panels)) for _, findings in found), default=1)
    shown = looks(str(place) for place in range(most))  # each study starts with the first look
    styles = PAGE + style([*shown.values(), PAPER, CLOSED, FRONTIER, OTHERS, *LEVELS]) + STYLE
    return document("The papers, run again", [part for part in parts if part], styles)


def _study(study: Study, findings: Findings) -> str:
    shown = looks_of(findings.panels)
    panels = [panel for panel in findings.panels if panel.cells]
    pictures = "".join(
        f"<div>{drawing(panel, shown, shared_span(panel, panels)).svg}</div>" for panel in panels[:PICTURES]
    )
    more = f"<p>and {len(panels) - PICTURES} more</p>" if len(panels) > PICTURES else ""
    far = largest_difference(findings)
    apart = f"<p>largest difference {safe(errors_text(far))}</p>" if far is not None else ""
    address = f"{safe(study.name, 100)}.html"
    return (
        f'<section class="study"><div><h2><a href="{address}">{safe(study.title, 200)}</a></h2>'
        f'<p class="soft">{safe(study.source, 300)}</p><p><code>{safe(study.name, 100)}</code></p></div>'
        f'<div>{_tally(findings.claims, "p")}{apart}</div><div class="pictures">{pictures}{more}</div></section>'
    )


def _tally(claims: Sequence[Claim], tag: str = "span") -> str:
    """How many claims hold, do not, or cannot be told; who has none has nothing to say."""
    told = ""
    for verdict, kind, one, many in (
        (HOLDS, "held", "claim holds", "claims hold"),
        (FAILS, "not", "claim does not", "claims do not"),
        (DEPENDS, "", "depends on the reading", "depend on the reading"),
        (INCOMPARABLE, "", "not comparable", "not comparable"),
        (OPEN, "", "open at this size", "open at this size"),
    ):
        number = sum(claim.verdict == verdict for claim in claims)
        words = one if number == 1 else many
        told += f'<{tag} class="verdict {kind}">{MARKS[verdict]} {number} {words}</{tag}>' if number else ""
    return told


def _broken(broken: Sequence[tuple[Study, Claim]]) -> str:
    """Claims that do not hold, and why: what a reader looks for first."""
    items = "".join(
        f'<li><b>{safe(claim.text)}</b> <span class="soft">{safe(study.name, 100)}: {safe(claim.told)}</span>'
        f"{f'<br>Why: {safe(claim.erratum)}' if claim.erratum else ''}</li>"
        for study, claim in broken
    )
    return (
        f'<section id="broken"><h2>What does not hold, and why</h2><ul class="broken">{items}</ul></section>'
        if items
        else ""
    )
