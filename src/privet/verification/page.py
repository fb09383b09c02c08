"""A page about a verification: what was claimed, what was found, how far attacks got."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from privet.report import rendering
from privet.report.chart import MARKS, Axis, icon
from privet.report.notebook import finding_card
from privet.text import decimal_text
from privet.verification import curves
from privet.verification.attacks.result import AttackResult
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
# What a colour says a shape and a word say too: the mark and the words of each outcome.
OUTCOMES = {
    "passed": ("circle", "holds: no more than the claim was found, by a test that would have found it"),
    "undecided": ("ring", f"UNDECIDED: the test would miss {POOR} times the claim"),
    "caught": ("diamond", "caught: known to be bad, and shown to be"),
    "failed": ("cross", "BROKEN, or known to be bad and NOT CAUGHT"),
}
_HELD = {
    True: ("circle", "passed", "held"),
    False: ("cross", "failed", "GOT THROUGH"),
    None: ("ring", "unknown", "not decided"),
}
SHOWN = 12  # findings in a notebook


def notebook_card(verdict: Verdict) -> str:
    """Return what a notebook shows of a verdict: the outcome, the evidence and what would have been found."""
    findings = sorted(verdict.findings, key=lambda finding: -finding.bound)
    rows = [
        (number(max(0.0, finding.bound)), finding.method, f"{finding.runs:,}", finding.tables, finding.event)
        for finding in findings[:SHOWN]
    ]
    claim = f"claims epsilon {decimal_text(verdict.claim)}, loses at least {number(verdict.lower_bound)}"
    power = [] if verdict.outcome == BROKEN else verdict.power_sentences
    headline = f"{verdict.subject}: {HEADLINES[verdict.outcome]}"
    heads = ("at least", "method", "runs", "tables", "event")
    return finding_card(
        f"Verdict on {headline}",
        headline,
        not verdict.passed,
        [claim, *power],
        heads,
        rows,
        hidden=len(findings) - SHOWN,
        what="finding",
    )


def page(report: Report) -> str:
    """Return a whole page about a report: what held, what was found, how far attacks got."""
    groups = _groups(report.verdicts)
    rows = [row for group in groups.values() for row in group]
    title = "Does it leak more than it says?"
    if len(report.verdicts) == 1:
        title = f"Does {report.verdicts[0].subject[:100]} leak more than it says?"
    used = {row.style for row in rows}
    key = [(mark, style, told) for style, (mark, told) in OUTCOMES.items() if style in used]
    key.append(("claim", "", "the claim"))
    key += [("hidden band", "", "could still hide from the samples")] * any(row.hides for row in rows)
    return rendering.page(
        "verification.html",
        title,
        head=_headline(report, rows),
        groups=groups,
        key=key,
        scale=_scale([row.verdict for row in rows]),
        several=len(rows) > 12,
        marks=MARKS,
        icon=icon,
        attacks=[(result, *_HELD[result.held]) for result in report.attacks],
        layer=report.layer,
        curves=curves.drawn(report.curves),
        poor=POOR,
        has_bad=any(verdict.must_fail for verdict in report.verdicts),
    )


# -- verdicts in words ------------------------------------------------------------------------


class OnScale(NamedTuple):
    """Where a verdict stands on the scale of all, in percent."""

    claim: str
    bound: str
    hidden: str  # how much looser noise might have passed as well
    beyond: bool  # any scale


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
    def mark(self) -> str:
        return OUTCOMES[self.style][0]

    @property
    def undecided(self) -> bool:
        """An honest subject that no test with power was held against."""
        return self.verdict.outcome == UNDECIDED and not self.verdict.must_fail

    @property
    def claim(self) -> str:
        exact = decimal_text(self.verdict.claim)
        return exact if len(exact) <= 12 else f"{float(self.verdict.claim):.6g}"

    @property
    def bound(self) -> str:
        return self.shown(self.verdict.lower_bound)

    @property
    def told(self) -> str:
        return f"{self.verdict.subject[:100]} claims {self.claim}, loses at least {self.bound}: {self.word}"

    @property
    def runs(self) -> int:
        return sum(finding.runs for finding in self.verdict.findings)

    @property
    def hides(self) -> bool:
        """True where some looser noise might have passed as well."""
        return self.verdict.outcome != BROKEN and self.verdict.drawn_power > float(self.verdict.claim) * 1.001

    @property
    def power(self) -> str:
        if self.verdict.outcome == BROKEN:
            return "more than the claim was found"
        return "; ".join(self.verdict.power_sentences[:2])

    def shown(self, bound: float) -> str:
        return _bound(bound, self.verdict)

    def power_of(self, finding: Finding) -> str:
        if math.isinf(finding.power):
            return "may miss a mechanism of any epsilon"
        if not finding.alpha and finding.power <= float(self.verdict.claim) * (1 + 1e-3):
            return "any loss above the claim would have been found"
        return f"a mechanism of epsilon {number(finding.power)}, sold as {self.claim}, would have been found"

    def on(self, axis: Axis) -> OnScale:
        claim, bound = axis.at(float(self.verdict.claim)), axis.at(self.verdict.lower_bound)
        hidden = axis.at(self.verdict.drawn_power) - claim if self.hides else 0.0
        beyond = math.isinf(self.verdict.lower_bound) and self.verdict.lower_bound > 0
        return OnScale(f"{claim:.2f}", f"{bound:.2f}", f"{hidden:.2f}" if hidden else "", beyond)


Groups = dict[str, list[_Row]]


def _groups(verdicts: Sequence[Verdict]) -> Groups:
    """The verdicts of each kind by its title, known kinds first and those known to be bad last."""
    kinds = dict.fromkeys([*list(KINDS)[:-1], *(verdict.kind for verdict in verdicts)])
    order = [kind for kind in kinds if kind != "known-bad"] + ["known-bad"]
    rows = [_Row(place, verdict) for place, verdict in enumerate(verdicts)]
    groups = {kind: [row for row in rows if row.verdict.kind == kind] for kind in order}
    return {KINDS.get(kind, kind.capitalize()): group for kind, group in groups.items() if group}


def _bound(bound: float, verdict: Verdict) -> str:
    """Three digits, or as many as it takes to see that a bound is above the claim."""
    bound, claim = max(0.0, bound), float(verdict.claim)
    digits = next((few for few in (3, 5) if bound <= claim or round(bound, few) > claim), 8)
    return number(bound, 3 if verdict.outcome != BROKEN else digits)


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


class Headline(NamedTuple):
    """What came of everything, and what is wrong."""

    said: str
    style: str
    wrong: list[tuple[_Row, str]]
    through: list[str]
    above: list[str]  # ceilings of curves
    tiles: list[tuple[str, str]]


def _headline(report: Report, rows: list[_Row]) -> Headline:
    wrong = [row for row in rows if not row.verdict.as_expected and not row.undecided]
    unsure = [row for row in rows if row.undecided]
    through = [result for result in report.attacks if result.held is False]
    above = [told for curve in report.curves for told in curves.above(curve)]
    said = _what_held(report) if report.passed else _what_failed(wrong, unsure, through, len(rows))
    style = "" if report.passed else "alarm"
    if report.passed and (report.verdicts or report.attacks) and not above:
        style = "good"
    return Headline(
        said,
        "unsure" if report.outcome == UNDECIDED else style,
        [(row, _failure(row)) for row in wrong] + [(row, _doubt(row)) for row in unsure],
        [f"Attack {each.number}, {each.name}, got through: {' '.join(each.found)}" for each in through],
        above,
        _totals(report),
    )


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
    shown = f"claims epsilon {row.claim} and loses at least {row.bound}"
    if row.verdict.must_fail:
        return f"{shown}: it is known to be bad and was not caught: with these runs such a flaw is missed."
    worst = row.verdict.worst
    return f"{shown}: {worst.event} ({worst.method} on {worst.tables})."


def _doubt(row: _Row) -> str:
    return (
        f"claims epsilon {row.claim} and no more than {row.bound} was shown, by a test that would miss "
        f"{POOR} times the claim: {row.verdict.power_sentences[0]}."
    )


def _totals(report: Report) -> list[tuple[str, str]]:
    honest = [verdict for verdict in report.verdicts if not verdict.must_fail]
    bad = [verdict for verdict in report.verdicts if verdict.must_fail]
    alpha = sum(verdict.alpha for verdict in honest)
    runs = sum(finding.runs for verdict in report.verdicts for finding in verdict.findings)
    caught = "all caught" if all(verdict.as_expected for verdict in bad) else "NOT all caught"
    undecided = sum(result.held is None for result in report.attacks)
    held = f"{sum(result.held is True for result in report.attacks)} of {len(report.attacks)}"
    tiles = [
        (str(len(honest)), f"subject{'s' * (len(honest) != 1)} tested", bool(honest)),
        (str(len(bad)), f"known to be bad, {caught}", bool(bad)),
        (held, f"attacks held off{f', {undecided} not decided' if undecided else ''}", bool(report.attacks)),
        (f"{runs:,}", "runs", bool(report.verdicts)),
        (_odds(alpha) if alpha else "0", "chance of any false alarm, at most", bool(honest)),
    ]
    return [(value, label) for value, label, there in tiles if there]


# -- all claims in one picture ----------------------------------------------------------------


class Tick(NamedTuple):
    """A number of the scale, and where it stands in percent."""

    x: float
    told: str


class ClaimScale(NamedTuple):
    """The scale of all claims and bounds, in percent of the width."""

    axis: Axis
    lines: list[str]
    words: list[Tick]

    @property
    def log(self) -> bool:
        return self.axis.log


def _scale(verdicts: Sequence[Verdict]) -> ClaimScale:
    """A scale for every claim and bound: logarithmic where they are far apart."""
    claims = [float(verdict.claim) for verdict in verdicts if verdict.claim > 0] or [1.0]
    bounds = [verdict.lower_bound for verdict in verdicts]
    top = max([*claims, *(bound for bound in bounds if math.isfinite(bound))])
    log = top > 3 * min(claims)
    end = 93.0 if math.inf in bounds else 100.0
    axis = Axis(
        min(claims) / 10 if log else 0.0, top * (1.3 if log else 1.15), 0.0, end, 100.0, math.log if log else float
    )
    ticks = [Tick(axis.at(tick), f"{tick:g}") for tick in axis.ticks]
    words = ticks
    if axis.log:  # what lies left of the scale stands at its edge
        words = [Tick(0.0, f"≤ {axis.low:g}"), *(tick for tick in words if tick.x > 12)]
    if axis.edge > axis.end:
        words = [*(tick for tick in words if tick.x < 92), Tick(100.0, "∞")]
    return ClaimScale(axis, [f"{tick.x:.2f}" for tick in ticks], words)
