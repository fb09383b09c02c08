"""A page about a verification: what was claimed, what was found, how far attacks got; one file, which loads nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.text import decimal_text
from privet.trees.axis import Axis
from privet.trees.layout import safe
from privet.trees.notebook import card, table
from privet.verification import curves
from privet.verification.attacks.result import AttackResult
from privet.verification.marks import MARKS, cell, heads, icon, key_of
from privet.verification.verdict import BROKEN, HEADLINES, HOLDS, POOR, UNDECIDED, Finding, Report, Verdict, number

KINDS = {
    "mechanism": "Mechanisms",
    "question": "Questions",
    "preset": "Presets",
    "estimator": "Estimators",
    "peer": "Other people's estimators",
    "function": "Functions",
    "known-bad": "Known to be bad",
}

SHOWN = 12  # findings in a notebook

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2a22; --soft: #5d6b62; --line: #d8ded9; --leaf: #2f7d4f; --truth: #b4541a;
  --paper: #fbfcfa; --card: #ffffff; --alarm: #b3261e; --alarmed: #fdeceb; --caught: #2567a8; --held: #eef6f0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #33403a; --leaf: #66c08a;
  --truth: #f0975a; --paper: #141a17; --card: #1b2320; --alarm: #ff8a80; --alarmed: #3b1d1b; --caught: #7db5ee;
  --held: #1a2b21; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
  margin: 2.5rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; print-color-adjust: exact; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
h3 { font-size: .95rem; margin: 1rem 0 .2rem; } p { margin: .4rem 0; } sup { line-height: 0; } a { color: inherit; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: 1.1rem 0;
  padding: 1.1rem 1.4rem; }
ul { margin: .4rem 0; padding-left: 1.2rem; }
.soft { color: var(--soft); } .big { font-size: 1.5rem; font-weight: 600; line-height: 1.3; margin: 0; }
.good { border: 2px solid var(--leaf); background: var(--held); } .good .big { color: var(--leaf); }
.alarm { border: 2px solid var(--alarm); background: var(--alarmed); } .alarm .big { color: var(--alarm); }
.unsure { border: 2px solid var(--truth); } .unsure .big { color: var(--truth); }
.passed { color: var(--leaf); } .caught { color: var(--caught); } .failed { color: var(--alarm); font-weight: 700; }
.unknown { color: var(--soft); } .undecided { color: var(--truth); font-weight: 700; }
.other { color: var(--truth); } .word { white-space: nowrap; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem 2rem; margin: .9rem 0 .2rem; }
.tiles div { display: flex; flex-direction: column; line-height: 1.35; } .tiles b { font-size: 1.25rem; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .9rem; margin: .5rem 0; align-items: center; }
.key svg, .word svg { vertical-align: -2px; margin-right: .35rem; }
.row { display: grid; grid-template: "name plot told word" / 12.5rem 1fr 4.2rem 7.6rem; column-gap: .8rem;
  align-items: center; font-size: .85rem; break-inside: avoid; }
.row .name { grid-area: name; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; text-decoration: none; }
.row a.name:hover { text-decoration: underline; } .row .plot { grid-area: plot; } .row .word { grid-area: word; }
.row .told { grid-area: told; text-align: right; font-variant-numeric: tabular-nums; }
.plot { display: block; overflow: visible; width: 100%; } .figure { display: block; width: 100%; height: auto; }
.figure text { font-size: 13px; } svg text.label { fill: var(--ink); }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); } .claim { stroke: var(--ink); stroke-width: 2.5; }
.stem { stroke: currentColor; stroke-width: 4; opacity: .3; } .band { fill: var(--soft); opacity: .16; }
.mark { fill: currentColor; stroke: var(--card); stroke-width: 1.2; } .cross { stroke: currentColor; fill: none;
  stroke-width: 2.6; } .hollow { fill: var(--card); stroke: currentColor; stroke-width: 2; }
.line { fill: none; stroke: currentColor; stroke-width: 2; } .thin { stroke-width: 1.2; }
.dashed { stroke-dasharray: 6 4; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; overflow-wrap: break-word; }
td, th { padding: .35rem 1rem .35rem 0; vertical-align: baseline; text-align: left;
  font-variant-numeric: tabular-nums; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; } tr { break-inside: avoid; }
.number { text-align: right; }
th.group { color: var(--ink); padding-top: 1.1rem; } tr.line2 td { padding-top: 0; } .first td { padding-top: .55rem; }
tr.rule > * { border-bottom: 1px solid var(--line); } tr:target td { background: var(--held); }
.findings tbody tr:last-child > * { border-bottom: 0; }
.verdicts td:last-child, .verdicts th:last-child { padding-right: 0; }
.findings { font-size: .85rem; margin: .4rem 0 .6rem; min-width: 52rem; }
.attacks td:first-child { width: 1.5rem; } .attacks td:nth-child(2) { width: 54%; }
summary { cursor: pointer; font-size: .9rem; color: var(--soft); padding-left: 1.1rem; text-indent: -1.1rem; }
td small { display: block; font-size: .85rem; }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: .9rem; margin: .3rem 0 .6rem; }
.figure + .key { margin: .2rem 0 .4rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem 2rem; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; }
@media (max-width: 44rem) { section { padding: .9rem 1rem; } .row { grid-template: "name told word" auto
  "plot plot plot" auto / 1fr auto 7.6rem; margin: .25rem 0; }
  .verdicts > thead, .attacks thead { display: none; }
  .verdicts, .verdicts > tbody, .verdicts > tbody > tr, .line2 > td, .group { display: block; }
  .verdicts > tbody > .first { display: flex; flex-wrap: wrap; column-gap: .8rem; } .first td { padding: .1rem 0; }
  .first td:nth-child(-n + 2) { flex: 1 1 7.6rem; padding-top: .5rem; } .first td:first-child { flex-basis: 55%; }
  .first td:nth-child(5) { flex: 1 1 100%; order: 1; }
  .first .number::before { color: var(--soft); } .first td:nth-child(3)::before { content: "claim "; }
  .first td:nth-child(4)::before { content: "lower bound "; } .first td:nth-child(6)::before { content: "runs "; }
  .attacks tr { display: grid; grid-template-columns: 2.4rem 1fr;
  border-bottom: 1px solid var(--line); } .attacks tr.rule > td { width: auto; border: 0; padding-bottom: .1rem; }
  .attacks td:last-child { grid-column: 2; } }
@media print { :root { font-size: 11.5px; } body { margin: 0; max-width: none; font-size: 1rem; }
  .scroll { overflow: visible; }
  .findings { min-width: 0; } details::details-content { content-visibility: visible;
  block-size: auto; } }
"""


def notebook_card(verdict: Verdict) -> str:
    """What a notebook shows of a verdict: the outcome, the evidence and what would have been found."""
    findings = sorted(verdict.findings, key=lambda finding: -finding.bound)
    rows = [
        (number(max(0.0, finding.bound)), finding.method, f"{finding.runs:,}", finding.tables, finding.event)
        for finding in findings[:SHOWN]
    ]
    claim = f"claims epsilon {decimal_text(verdict.claim)}, loses at least {number(verdict.lower_bound)}"
    power = [] if verdict.outcome == BROKEN else verdict.power_sentences
    headline = f"{verdict.subject}: {HEADLINES[verdict.outcome]}"
    return card(
        f"Verdict on {headline}",
        f'<p class="big{"" if verdict.passed else " warn"}">{safe(headline)}</p>',
        f"<p>{safe(claim)}</p>",
        table(("at least", "method", "runs", "tables", "event"), rows, len(findings) - SHOWN, "finding"),
        *(f'<p class="soft">{safe(sentence)}</p>' for sentence in power),
    )


def page(report: Report) -> str:
    """A whole page about a report: what held, what was found, how far attacks got; it loads nothing."""
    groups = _groups(report.verdicts)
    title = "Does it leak more than it says?"
    if len(report.verdicts) == 1:
        title = f"Does {safe(report.verdicts[0].subject, 100)} leak more than it says?"
    sections = (
        _headline(report, groups),
        _chart(groups),
        _table(groups),
        _attacks(report),
        curves.section(report.curves),
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>{_STYLE}</style></head><body>
<h1>{title}</h1><p class="soft">Do not believe a claim of privacy, test it.</p>
{"".join(sections)}{_reading(report)}
<p class="soft">Written by privet verify.</p>
</body></html>
"""


# -- verdicts in words ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A verdict and its place on the page."""

    place: int
    verdict: Verdict

    @property
    def word(self) -> str:
        if self.verdict.must_fail:
            return "caught" if self.verdict.as_expected else "NOT CAUGHT"
        return {HOLDS: "holds", UNDECIDED: "UNDECIDED", BROKEN: "BROKEN"}[self.verdict.outcome]

    @property
    def style(self) -> str:
        if self.verdict.as_expected:
            return "caught" if self.verdict.must_fail else "passed"
        return "undecided" if self.undecided else "failed"

    @property
    def undecided(self) -> bool:
        """An honest subject that no test with power was held against."""
        return self.verdict.outcome == UNDECIDED and not self.verdict.must_fail

    @property
    def name(self) -> str:
        return safe(self.verdict.subject, 100)

    @property
    def claim(self) -> str:
        exact = decimal_text(self.verdict.claim)
        return exact if len(exact) <= 12 else f"{float(self.verdict.claim):.6g}"

    @property
    def bound(self) -> str:
        return _bound(self.verdict.lower_bound, self.verdict)

    @property
    def link(self) -> str:
        return f'<a href="#v{self.place}">{self.name}</a>'


Groups = dict[str, list[_Row]]


def _groups(verdicts: Sequence[Verdict]) -> Groups:
    """The verdicts of each kind, known kinds first and those known to be bad last."""
    kinds = dict.fromkeys([*list(KINDS)[:-1], *(verdict.kind for verdict in verdicts)])
    order = [kind for kind in kinds if kind != "known-bad"] + ["known-bad"]
    rows = [_Row(place, verdict) for place, verdict in enumerate(verdicts)]
    groups = {kind: [row for row in rows if row.verdict.kind == kind] for kind in order}
    return {kind: group for kind, group in groups.items() if group}


def _title(kind: str) -> str:
    return safe(KINDS.get(kind, kind.capitalize()), 60)


def _bound(bound: float, verdict: Verdict) -> str:
    """Three digits, or as many as it takes to see that a bound is above the claim."""
    bound, claim = max(0.0, bound), float(verdict.claim)
    digits = next((few for few in (3, 5) if bound <= claim or round(bound, few) > claim), 8)
    return number(bound, 3 if verdict.outcome != BROKEN else digits)


def _power(finding: Finding, row: _Row) -> str:
    if math.isinf(finding.power):
        return "may miss a mechanism of any epsilon"
    if not finding.alpha and finding.power <= float(row.verdict.claim) * (1 + 1e-3):
        return "any loss above the claim would have been found"
    return f"a mechanism of epsilon {number(finding.power)}, sold as {row.claim}, would have been found"


def _odds(alpha: float) -> str:
    """A small probability as people say it, rounded up."""
    if alpha >= 0.01:
        return f"{alpha:.2g}"
    times = 1 / alpha
    unit = 10 ** (math.floor(math.log10(times)) - 1)
    return f"1 in {math.floor(times / unit + 1e-9) * unit:,.0f}"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


# -- the headline -----------------------------------------------------------------------------


def _headline(report: Report, groups: Groups) -> str:
    rows = [row for group in groups.values() for row in group]
    wrong = [row for row in rows if not row.verdict.as_expected and not row.undecided]
    unsure = [row for row in rows if row.undecided]
    through = [result for result in report.attacks if result.held is False]
    above = [told for curve in report.curves for told in curves.above(curve)]
    said = _what_held(report) if report.passed else _what_failed(wrong, unsure, through, len(rows))
    items = [_failure(row) for row in wrong] + [_doubt(row) for row in unsure]
    items += [f"Attack {each.number}, {safe(each.name)}, got through: {safe(' '.join(each.found))}" for each in through]
    items += [f'<b class="failed">Look at the curves:</b> {told}' for told in above]
    listed = f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""
    tested = bool(report.verdicts or report.attacks)
    style = ' class="good"' * (tested and not above) if report.passed else ' class="alarm"'
    style = ' class="unsure"' if report.outcome == UNDECIDED else style
    return f'<section{style}><p class="big">{said}</p>{listed}{_totals(report)}</section>'


def _what_failed(wrong: list[_Row], unsure: list[_Row], through: list[AttackResult], tested: int) -> str:
    looser = sum(not row.verdict.must_fail for row in wrong)
    missed = len(wrong) - looser
    said = []
    if looser:
        more = "loses more than it says" if looser == 1 else "lose more than they say"
        said.append(f"Broken: {_many(looser, 'subject')} {more}")
    if missed:
        said.append(f"{_many(missed, 'known-bad fixture')} {'was' if missed == 1 else 'were'} not caught")
    if through:
        said.append(f"{_many(len(through), 'attack')} got through")
    if unsure:
        about = f" about {_many(len(unsure), 'subject')}" if tested > 1 else ""
        said.append(f"Undecided{about}: no power is no pass")
    return ", ".join(said)


def _what_held(report: Report) -> str:
    honest = any(not verdict.must_fail for verdict in report.verdicts) or any(each.held for each in report.attacks)
    bad = any(verdict.must_fail for verdict in report.verdicts)
    if len(report.verdicts) == 1 and not report.attacks:
        return "Known to be bad, and caught" if bad else "It holds as far as tested"
    if honest and bad:
        return "Everything honest holds as far as tested, everything known to be bad was caught"
    if honest or bad:
        return "Everything holds as far as tested" if honest else "Everything known to be bad was caught"
    if report.attacks:
        return "Nothing was decided"
    return "No claim was tested" if report.curves else "Nothing was tested"


def _failure(row: _Row) -> str:
    shown = f"{row.link} claims epsilon {row.claim} and loses at least {row.bound}"
    if row.verdict.must_fail:
        return f"{shown}: it is known to be bad and was not caught: with these runs such a flaw is missed."
    worst = row.verdict.worst
    return f"{shown}: {safe(worst.event)} ({safe(worst.method)} on {safe(worst.tables)})."


def _doubt(row: _Row) -> str:
    return (
        f"{row.link} claims epsilon {row.claim} and no more than {row.bound} was shown, by a test that would miss "
        f"{POOR} times the claim: {safe(row.verdict.power_sentences[0])}."
    )


def _totals(report: Report) -> str:
    honest = [verdict for verdict in report.verdicts if not verdict.must_fail]
    bad = len(report.verdicts) - len(honest)
    alpha = sum(verdict.alpha for verdict in honest)
    runs = sum(finding.runs for verdict in report.verdicts for finding in verdict.findings)
    tiles = [
        (str(len(honest)), f"subject{'s' * (len(honest) != 1)} tested", bool(honest)),
        (str(bad), f"known to be bad, {'all caught' if _all_caught(report) else 'NOT all caught'}", bad > 0),
        (*_held(report.attacks), bool(report.attacks)),
        (f"{runs:,}", "runs", bool(report.verdicts)),
        (_odds(alpha) if alpha else "0", "chance of any false alarm, at most", bool(honest)),
    ]
    shown = "".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label, there in tiles if there)
    return f'<div class="tiles">{shown}</div>' if shown else ""


def _all_caught(report: Report) -> bool:
    return all(verdict.as_expected for verdict in report.verdicts if verdict.must_fail)


def _held(attacks: Sequence[AttackResult]) -> tuple[str, str]:
    undecided = sum(result.held is None for result in attacks)
    rest = f", {undecided} not decided" if undecided else ""
    return f"{sum(result.held is True for result in attacks)} of {len(attacks)}", f"attacks held off{rest}"


# -- all claims in one picture ----------------------------------------------------------------

_HEIGHT = 24


def _chart(groups: Groups) -> str:
    rows = [row for group in groups.values() for row in group]
    if not rows:
        return ""
    axis = _scale([row.verdict for row in rows])
    drawn = "".join(
        f"<h3>{_title(kind)}</h3>" + "".join(_drawn(row, axis) for row in group) for kind, group in groups.items()
    )
    words = {
        "passed": "holds: no more than the claim was found, by a test that would have found it",
        "undecided": f"UNDECIDED: the test would miss {POOR} times the claim",
        "caught": "caught: known to be bad, and shown to be",
        "failed": "BROKEN, or known to be bad and NOT CAUGHT",
    }
    used = {row.style for row in rows}
    key = [(style, style, told) for style, told in words.items() if style in used]
    key += [("claim", "", "the claim")]
    if any(_hidden(row) for row in rows):
        key += [("band", "", "could still hide from the samples")]
    scale = "a logarithmic scale" if axis.log else "a linear scale"
    return (
        "<section><h2>What is claimed, and what was found</h2><p>A mark is the loss that was shown, in epsilon, on "
        f"{scale}: up to its tick the claim stands, right of it the claim is disproved.</p>{key_of(key)}"
        f"{_scale_row(axis)}{drawn}{_scale_row(axis) if len(rows) > 12 else ''}</section>"
    )


def _scale(verdicts: Sequence[Verdict]) -> Axis:
    """A scale for every claim and bound, in percent of the width: logarithmic where they are far apart."""
    claims = [float(verdict.claim) for verdict in verdicts if verdict.claim > 0] or [1.0]
    bounds = [verdict.lower_bound for verdict in verdicts]
    top = max([*claims, *(bound for bound in bounds if math.isfinite(bound))])
    log = top > 3 * min(claims)
    end = 93.0 if math.inf in bounds else 100.0
    return Axis(min(claims) / 10 if log else 0.0, top * (1.3 if log else 1.15), 0.0, end, 100.0, log)


def _hidden(row: _Row) -> bool:
    """True where some looser noise might have passed as well."""
    return row.verdict.outcome != BROKEN and row.verdict.drawn_power > float(row.verdict.claim) * 1.001


def _drawn(row: _Row, axis: Axis) -> str:
    verdict, middle = row.verdict, _HEIGHT // 2
    claim, bound = axis.at(float(verdict.claim)), axis.at(verdict.lower_bound)
    parts = [_gridline(axis.at(tick)) for tick in axis.ticks]
    if _hidden(row):
        width = axis.at(verdict.drawn_power) - claim
        parts.append(f'<rect class="band" x="{claim:.2f}%" y="{middle - 5}" width="{width:.2f}%" height="10"/>')
    parts.append(f'<line class="stem" x1="0" x2="{bound:.2f}%" y1="{middle}" y2="{middle}"/>')
    parts.append(f'<line class="claim" x1="{claim:.2f}%" x2="{claim:.2f}%" y1="2" y2="{_HEIGHT - 2}"/>')
    mark = MARKS[row.style]
    if math.isinf(verdict.lower_bound):
        mark = f'<path class="cross" d="M-7 -7L0 0L-7 7"/><g transform="translate(-14 0)">{mark}</g>'
    parts.append(f'<svg x="{bound:.2f}%" y="{middle}" overflow="visible">{mark}</svg>')
    told = safe(f"{verdict.subject} claims {row.claim}, loses at least {row.bound}: {row.word}", 200)
    return (
        f'<div class="row"><a class="name" href="#v{row.place}" title="{safe(verdict.line, 200)}">{row.name}</a>'
        f'<svg class="plot {row.style}" height="{_HEIGHT}" role="img" aria-label="{told}"><title>{told}</title>'
        f'{"".join(parts)}</svg><span class="told">{row.bound}</span>{_word(row)}</div>'
    )


def _gridline(x: float) -> str:
    return f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{_HEIGHT}"/>'


def _word(row: _Row) -> str:
    return f'<span class="word {row.style}">{icon(row.style)}{row.word}</span>'


def _scale_row(axis: Axis) -> str:
    """The numbers of the scale; what lies left of a logarithmic one stands at its edge."""
    ticks = [(axis.at(tick), f"{tick:g}") for tick in axis.ticks]
    if axis.log:
        ticks = [(0.0, f"≤ {axis.low:g}"), *(tick for tick in ticks if tick[0] > 12)]
    if axis.edge > axis.end:
        ticks = [*(tick for tick in ticks if tick[0] < 92), (100.0, "∞")]
    drawn = "".join(
        f'<text x="{x:.2f}%" y="14" text-anchor="{"start" if x < 1 else "end" if x > 98 else "middle"}">{told}</text>'
        for x, told in ticks
    )
    return (
        '<div class="row" aria-hidden="true"><span class="name soft">epsilon</span>'
        f'<svg class="plot" height="20">{drawn}</svg><span class="told soft">at least</span></div>'
    )


# -- all claims in one table ------------------------------------------------------------------


def _table(groups: Groups) -> str:
    if not groups:
        return ""
    body = "".join(
        f'<tbody><tr class="rule"><th class="group" colspan="6" scope="rowgroup">{_title(kind)}</th></tr>'
        f"{''.join(map(_lines, group))}</tbody>"
        for kind, group in groups.items()
    )
    return (
        "<section><h2>The evidence</h2><p>The event that showed most stands below each subject; open it for all "
        'findings.</p><div class="scroll"><table class="verdicts">'
        f"{heads('subject', 'verdict', '#claim', '#lower bound', 'power', '#runs')}{body}</table></div></section>"
    )


def _lines(row: _Row) -> str:
    """Two lines of the table: the numbers, and the evidence."""
    verdict = row.verdict
    runs = sum(finding.runs for finding in verdict.findings)
    power = "more than the claim was found"
    if verdict.outcome != BROKEN:
        power = "; ".join(verdict.power_sentences[:2])
    shown = f"{safe(verdict.worst.method)} on {safe(verdict.worst.tables)}: {safe(verdict.worst.event)}"
    return (
        f'<tr class="first" id="v{row.place}"><td><b>{row.name}</b><small class="soft">{safe(verdict.line)}</small>'
        f"</td><td>{_word(row)}</td>{cell(row.claim)}{cell(row.bound)}<td><small>{safe(power)}</small></td>"
        f'{cell(f"{runs:,}")}</tr><tr class="line2 rule"><td colspan="6"><details><summary>{shown}</summary>'
        f"{_findings(row)}</details></td></tr>"
    )


def _findings(row: _Row) -> str:
    named = heads("method", "tables", "event", "#lower bound", "#runs", "#alpha", "power")
    listed = "".join(_finding(finding, row) for finding in row.verdict.findings)
    return f'<div class="scroll"><table class="findings">{named}<tbody>{listed}</tbody></table></div>'


def _finding(finding: Finding, row: _Row) -> str:
    note = f'<small class="soft">{safe(finding.note)}</small>' if finding.note else ""
    numbers = (_bound(finding.bound, row.verdict), f"{finding.runs:,}", f"{finding.alpha:.1g}")
    return (
        f'<tr class="rule"><td>{safe(finding.method)}</td><td>{safe(finding.tables)}</td><td>{safe(finding.event)}'
        f"{note}</td>{''.join(map(cell, numbers))}<td>{_power(finding, row)}</td></tr>"
    )


# -- attacks on a layer -----------------------------------------------------------------------

_HELD = {True: ("passed", "held"), False: ("failed", "GOT THROUGH"), None: ("unknown", "not decided")}


def _attacks(report: Report) -> str:
    if not report.attacks:
        return ""
    on = f" on {safe(report.layer, 200)}" if report.layer else ""
    return (
        f"<section><h2>{_many(len(report.attacks), 'attack')}{on}</h2><p>Ways around the noise that are known from "
        'other privacy layers.</p><div class="scroll"><table class="attacks">'
        f"{heads('', 'attack, and what it would have leaked', 'what came of it')}"
        f"<tbody>{''.join(map(_attack, report.attacks))}</tbody></table></div></section>"
    )


def _attack(result: AttackResult) -> str:
    style, word = _HELD[result.held]
    found = "".join(f"<small>{safe(sentence)}</small>" for sentence in result.found)
    return (
        f'<tr class="rule">{cell(str(result.number))}<td><b>{safe(result.name)}</b>'
        f'<small class="soft">{safe(result.leak)}</small></td>'
        f'<td><span class="word {style}">{icon(style)}{word}</span>{found}</td></tr>'
    )


# -- how to read it ---------------------------------------------------------------------------


def _reading(report: Report) -> str:
    terms = [
        (
            "Claim",
            "The epsilon that is promised: with or without one person, nothing that can be published becomes more than "
            "e<sup>epsilon</sup> times as likely.",
        ),
        (
            "Lower bound",
            "What was shown: on two tables that differ by one person, some event is so much more likely on one of them "
            "that the true loss is at least this. Above the claim it disproves the claim, up to alpha.",
        ),
        (
            "Power",
            "How sharp the test was: a mechanism of this larger epsilon, sold as the claim, would have "
            "been found with probability 99%. What lies between the claim and it could still hide. What is computed "
            "shows any excess if draws follow their formulas; samples alone have a power of their own.",
        ),
        (
            "Undecided",
            f"A test that would miss {POOR} times the claim decides nothing, and is no pass: the usual mistakes cost a "
            "factor of two. More runs, or tables that differ more, may decide.",
        ),
        (
            "Alpha",
            "The probability that a lower bound is too large by chance, and an honest subject fails. It is 0 where "
            "outcomes were computed and nothing was sampled.",
        ),
    ]
    if any(verdict.must_fail for verdict in report.verdicts):
        terms.append(
            (
                "Known to be bad",
                "Mechanisms with a known flaw that sell less privacy than they claim. They test the test: one that is "
                "not caught says that this bench would miss such a flaw elsewhere too.",
            )
        )
    listed = "".join(f"<dt>{term}</dt><dd>{words}</dd>" for term, words in terms)
    return (
        "<section><h2>How to read this</h2><p>To hold is not a proof: it says that what was tried found no more than "
        "the claim. The proofs are in docs/explanation/privacy.md. Broken is a disproof, wrong with probability alpha "
        f"at most.</p><dl>{listed}</dl></section>"
    )
