"""The page of the benchmark: a function of what was recorded, in one file that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench import data
from bench.chart import LOOKS, STYLE
from bench.frontier import epsilons, lines, majority
from bench.result import Result
from bench.split import GROWTH
from bench.summary import Place, Summary
from bench.trials import EPSILONS, PEERS_ROWS, ROWS
from privet.studies.estimate import Estimate
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.pages.frame import FEW, Frame, Line, power_of_ten, scale
from privet.studies.pages.look import sample
from privet.trees.axis import Axis
from privet.trees.layout import safe
from privet.verification.marks import cell, heads

TITLES = {
    "accuracy": "accuracy",
    "auroc": "area under the ROC curve",
    "log loss": "log loss (less is better)",
    "miscalibration": "how far shares are from truth (less is better)",
}
LESS = ("log loss", "miscalibration")  # is better
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 452, 34, 262  # the frame of a figure, of 468 x 312

_PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --leaf: #2f7d4f; --paper: #fbfcfa;
  --card: #ffffff; --alarm: #b3261e; --alarmed: #fdeceb; --held: #eef6f0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #33403a; --leaf: #66c08a;
  --paper: #141a17; --card: #1b2320; --alarm: #ff8a80; --alarmed: #3b1d1b; --held: #1a2b21; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 86rem;
  margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.15rem; margin: 0 0 .2rem; }
p { margin: .4rem 0; } .soft { color: var(--soft); } code { font-size: .92em; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: 1.1rem 0;
  padding: 1.1rem 1.4rem; }
.big { font-size: 1.5rem; font-weight: 600; line-height: 1.3; margin: 0; }
.good { border: 2px solid var(--leaf); background: var(--held); } .good .big { color: var(--leaf); }
.alarm { border: 2px solid var(--alarm); background: var(--alarmed); } .alarm .big, .missed { color: var(--alarm); }
.missed { font-weight: 700; } .ok { color: var(--leaf); }
.key { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .1rem 1.3rem; font-size: .9rem;
  background: var(--paper); border-bottom: 1px solid var(--line); padding: .5rem 0; margin: 0; }
.key span { white-space: nowrap; } .key svg { vertical-align: -4px; margin-right: .4rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: .6rem 1.6rem; }
figure { margin: 0; break-inside: avoid; } figure svg { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; color: var(--soft); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { padding: .3rem 1rem .3rem 0; vertical-align: baseline; text-align: left; font-variant-numeric: tabular-nums; }
td:last-child, th:last-child { padding-right: 0; } th { color: var(--soft); font-weight: 600; }
.number { text-align: right; white-space: nowrap; } tr.rule > * { border-bottom: 1px solid var(--line); }
small { color: var(--soft); } details { margin-top: .6rem; } summary { cursor: pointer; color: var(--soft); }
td.best { font-weight: 700; }
"""


def page(summary: Summary, results: Sequence[Result], command: str) -> str:
    """A whole page about what was measured."""
    sets = [name for name in data.names() if any(place.data == name for place in summary.places)]
    sections = (
        _headline(results),
        _key(summary),
        *(_data(summary, name) for name in sets),
        _costs(summary, sets),
        _growth(summary),
        _bounds(results),
        _reading(summary, command),
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>privet and its peers</title><style>{_PAGE_STYLE}{STYLE}</style></head><body>
<h1>privet and its peers</h1>
<p class="soft">How much privacy costs in accuracy, and what a fit costs in time and memory: same rows, same splits,
same run.</p>
{"".join(sections)}
<p class="soft">Written by <code>{safe(command, 200)}</code>. Point at a mark to read its numbers.</p>
</body></html>
"""


def _headline(results: Sequence[Result]) -> str:
    bound = [result for result in results if result.bound is not None]
    if not bound:
        return ""
    missed = [result for result in bound if not result.holds]
    if not missed:
        return f'<section class="good"><p class="big">All {len(bound)} bounds hold</p></section>'
    listed = "".join(f"<li>{safe(result.name)}: {safe(result.shown())}</li>" for result in missed)
    said = f"{len(missed)} of {len(bound)} bounds {'is' if len(missed) == 1 else 'are'} missed"
    return f'<section class="alarm"><p class="big">{said}</p><ul>{listed}</ul></section>'


def _key(summary: Summary) -> str:
    used = {place.learner for place in summary.places}
    told = {name: learner.title for name, learner in LEARNERS.items() if name in used}
    told = {name: title if LEARNERS[name].private else f"{title}, not private" for name, title in told.items()}
    entries = {**told, "majority": "majority class"} if told else {}
    return (
        '<p class="key">'
        + "".join(
            f'<span><svg width="30" height="16" viewBox="-15 -8 30 16" aria-hidden="true">{sample(LOOKS[name])}</svg>'
            f"{safe(title, 60)}</span>"
            for name, title in entries.items()
        )
        + "</p>"
    )


# -- one data set -----------------------------------------------------------------------------


def _data(summary: Summary, name: str) -> str:
    facts = summary.facts(name)
    told = f"{facts['rows']:,} rows, {facts['attributes']} attributes, {facts['classes']} classes"
    figures = "".join(_figure(summary, name, measure, delta) for measure in TITLES for delta in (False, True))
    tables = "".join(_numbers(summary, name, measure) for measure in TITLES)
    return (
        f'<section><h2>{safe(name)}</h2><p>{safe(data.about(name), 400)} <span class="soft">{told}.</span></p>'
        f'<div class="figures">{figures}</div><details><summary>the numbers</summary>{tables}</details></section>'
    )


def _figure(summary: Summary, name: str, measure: str, delta: bool) -> str:
    """A measure against epsilon: of who promises pure epsilon, or epsilon and a delta."""
    names = [other for other in LEARNERS if (other, measure) != ("prior", "auroc")]  # one half, always
    every = lines(summary, name, names, measure)
    found = lines(summary, name, [other for other in names if _beside(other, delta)], measure)
    if not any(line.points for line in found):
        return ""
    least = majority(summary, name) if measure == "accuracy" else None
    found, every = ([*drawn, *([] if least is None else [least])] for drawn in (found, every))
    ceiling = _ceiling(summary, name) if measure == "log loss" else 1.0
    y = scale(every, _BOTTOM, _TOP, ceiling=ceiling)
    shares = measure in ("accuracy", "miscalibration")
    tell: Callable[[float], str] = (lambda share: f"{100 * share:g}%") if shares else "{:g}".format
    title = f"{TITLES[measure].split(' (')[0]}, {'with a delta' if delta else 'pure epsilon'}"
    frame = Frame(epsilons(_LEFT, _RIGHT), y, title, "epsilon", tell)
    highest = {line.title: max((each.mean for _, each in line.points), default=0.0) for line in found}
    off = ", ".join(f"{title} up to {high:.2g}" for title, high in highest.items() if high > y.high)
    caption = f"Above the scale: {safe(off, 300)}." if off else ""
    return _svg(frame, found, f"{title} against epsilon, {name}", caption)


def _beside(name: str, delta: bool) -> bool:
    """Whether a learner is drawn in the figure of this promise; what is not private stands in both."""
    return not LEARNERS[name].private or LEARNERS[name].delta == delta


def _ceiling(summary: Summary, name: str) -> float:
    """A log loss far above that of the class counts alone is worse than no model, and would flatten all others."""
    known = [summary.estimate(Place(name, "prior", epsilon), "log loss") for epsilon in EPSILONS]
    return 1.5 * min((each.mean for each in known if each is not None), default=1.0)


def _svg(frame: Frame, found: Sequence[Line], label: str, caption: str = "") -> str:
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure><svg viewBox="0 0 468 312" role="img" aria-label="{safe(label, 200)}">{frame.drawn(found)}</svg>'
        f"{below}</figure>"
    )


def _numbers(summary: Summary, name: str, measure: str) -> str:
    """Means and half widths of the intervals, a learner a row; the best private mean of each epsilon is bold."""
    known = {
        (learner, epsilon): each
        for learner in LEARNERS
        for epsilon in (*EPSILONS, "")
        if (each := summary.estimate(Place(name, learner, epsilon), measure)) is not None
    }
    shown = [epsilon for epsilon in EPSILONS if any(at == epsilon for _, at in known)]
    best = {
        epsilon: (min if measure in LESS else max)(each.mean for (_, at), each in known.items() if at == epsilon)
        for epsilon in shown
    }
    body = ""
    for learner in dict.fromkeys(learner for learner, _ in known):
        if not LEARNERS[learner].private:
            told = f"<td class='number' colspan='{len(shown)}'>{_told(known[learner, ''])}, not private</td>"
        else:
            told = "".join(_best(known.get((learner, epsilon)), best[epsilon]) for epsilon in shown)
        body += f'<tr class="rule"><td>{safe(LEARNERS[learner].title)}</td>{told}</tr>'
    if not body:
        return ""
    named = heads(TITLES[measure], *(f"#{epsilon}" for epsilon in shown))
    return f'<div class="scroll"><table>{named}<tbody>{body}</tbody></table></div>'


def _best(each: Estimate | None, best: float) -> str:
    if each is None:
        return cell("")
    return f'<td class="number best">{_told(each)}</td>' if each.mean == best else cell(_told(each))


def _told(each: Estimate) -> str:
    return f"{each.mean:.3f} <small>± {each.half:.3f}</small>"


# -- what it costs ----------------------------------------------------------------------------


def _costs(summary: Summary, sets: Sequence[str]) -> str:
    fit = _cost(summary, sets, "fit", "CPU seconds of a fit")
    if not fit:
        return ""
    predict = _cost(summary, sets, "predict", "CPU seconds to predict the tenth")
    memory = _cost(summary, sets, "memory", "MB at the peak of a fit, above before")
    return (
        "<section><h2>What a fit costs</h2><p>At epsilon 1, or without privacy; in brackets as a multiple of boosted "
        "tables, which is what carries over to another machine. Ours read a frame with texts, the peers an array of "
        f"numbers.</p>{fit}<details><summary>predictions and memory</summary>{predict}{memory}</details></section>"
    )


def _cost(summary: Summary, sets: Sequence[str], measure: str, words: str) -> str:
    known = {
        (name, learner): each
        for name in sets
        for learner in LEARNERS
        if (each := _at_one(summary, Place(name, learner, ""), measure)) is not None
    }
    body = ""
    for learner in dict.fromkeys(learner for _, learner in known):
        told = ""
        for name in sets:
            each, ours = known.get((name, learner)), known.get((name, "boosted"))
            told += cell("" if each is None else _amount(each) + _multiple(each, ours))
        body += f'<tr class="rule"><td>{safe(LEARNERS[learner].title)}</td>{told}</tr>'
    named = heads(words, *(f"#{safe(name)}" for name in sets))
    return f'<div class="scroll"><table>{named}<tbody>{body}</tbody></table></div>' if body else ""


def _at_one(summary: Summary, place: Place, measure: str) -> Estimate | None:
    epsilon = "1" if LEARNERS[place.learner].private else ""
    return summary.estimate(Place(place.data, place.learner, epsilon, place.rows), measure)


def _amount(each: Estimate) -> str:
    return f"{each.mean:.4f}" if each.mean < 0.01 else f"{each.mean:.3g}" if each.mean < 100 else f"{each.mean:,.0f}"


def _multiple(each: Estimate, ours: Estimate | None) -> str:
    if ours is None or ours.mean <= 0 or each is ours:
        return ""
    return f" <small>({each.mean / ours.mean:.2g}x)</small>"


def _growth(summary: Summary) -> str:
    places = [place for place in summary.places if place.data == GROWTH]
    if not places:
        return ""
    figures, tables = "", ""
    for measure, words in (("fit", "CPU seconds of a fit"), ("memory", "MB at the peak, above the rows")):
        found = _grown(summary, measure)
        if found:
            x = Axis(ROWS[0] / 1.3, ROWS[-1] * 1.3, _LEFT, _RIGHT, _RIGHT, log=True)
            frame = Frame(x, scale(found, _BOTTOM, _TOP, log=True), words, "rows", "{:g}".format, power_of_ten)
            figures += _svg(frame, found, f"{words} against rows")
        tables += _sizes(summary, measure, words)
    return (
        "<section><h2>More and more rows</h2><p>14 attributes of 8 values, 2 classes, epsilon 1; both scales are "
        f"logarithmic, and every mark is a process of its own. Peers stop at {PEERS_ROWS:,} rows, where one of "
        f'them takes half a minute.</p><div class="figures">{figures}</div>{tables}</section>'
    )


def _grown(summary: Summary, measure: str) -> list[Line]:
    found = []
    for name, learner in LEARNERS.items():
        known = ((rows, _at_one(summary, Place(GROWTH, name, "", rows), measure)) for rows in ROWS)
        points = [(float(rows), each) for rows, each in known if each is not None and each.mean > 0]
        if points:
            found.append(Line(LOOKS[name], learner.title, points))
    return found


def _sizes(summary: Summary, measure: str, words: str) -> str:
    body = ""
    for learner in LEARNERS:
        known = [_at_one(summary, Place(GROWTH, learner, "", rows), measure) for rows in ROWS]
        if any(known):
            told = ""
            for rows, each in zip(ROWS, known, strict=True):
                ours = _at_one(summary, Place(GROWTH, "boosted", "", rows), measure)
                mine = "" if learner == "boosted" or each is None else _multiple(each, ours)
                told += cell("" if each is None else _amount(each) + mine)
            body += f'<tr class="rule"><td>{safe(LEARNERS[learner].title)}</td>{told}</tr>'
    named = heads(words, *(f"#{power_of_ten(rows)} rows" for rows in ROWS))
    return f'<div class="scroll"><table>{named}<tbody>{body}</tbody></table></div>' if body else ""


# -- bounds, and how to read it ---------------------------------------------------------------


def _bounds(results: Sequence[Result]) -> str:
    if not results:
        return ""
    body = ""
    for result in results:
        style = "ok" if result.holds else "missed"
        verdict = f'<td class="{style}">{result.verdict}</td>'
        limits = (safe(each) for each in result.limits())
        body += f'<tr class="rule"><td>{safe(result.name, 200)}</td>{cell(safe(result.shown()))}'
        body += f"{''.join(map(cell, limits))}{verdict}</tr>"
    named = heads("measurement", "#value", "#bound", "#aim", "")
    return (
        "<section><h2>Bounds</h2><p>Leads are means of differences on the same splits, the least of epsilon 0.05 to 2; "
        f'times are ratios from one run.</p><div class="scroll"><table>{named}<tbody>{body}</tbody></table></div>'
        "</section>"
    )


def _reading(summary: Summary, command: str) -> str:
    versions = ", ".join(summary.versions())
    if not versions:
        return ""
    return f"""<section><h2>How it was measured</h2>
<p>Every repeat draws nine tenths of the rows for training and tests on the rest; all learners get the same rows. Bands
and ± are 95% intervals over the repeats, drawn from {FEW} repeats on; as the splits of a real table share rows they are
a little too narrow.
Generated tables are drawn anew for each repeat, so their bands hold the difference between tables too.</p>
<p>Figures on the left are of who promises pure epsilon, figures on the right of who promises epsilon and a delta of
10⁻⁶, which is less: boosted tables with a delta, noisy gradient descent, DP-EBM. Peers get what favours them: codes in
the order of the public value lists, bounds and classes from the public domain, a depth, a learning rate and steps that
were picked on test accuracy. DP-EBM knows two classes only and is left out on others. XGBoost without privacy reads
numbers as they are, and once the bins of the domain: the ceilings.</p>
<p>CPU time of one thread; a first fit compiles and is not counted. Probabilities are cut at 10⁻⁶ for the log loss. How
far shares are from truth: in ten bins of rows, by how sure the model is of the class it says, the mean distance of that
share from how often it is right. On few test rows chance makes most of it.</p>
<p>{safe(versions, 1000)}. <code>{safe(command, 200)}</code></p></section>"""


def facts(summary: Summary) -> Mapping[str, Mapping[str, object]]:
    """What is known of every data set, for JSON."""
    told = {}
    for name in data.names():
        if any(place.data == name for place in summary.places):
            known = summary.facts(name)
            told[name] = {
                "about": data.about(name),
                **{each: known[each] for each in ("rows", "attributes", "classes")},
            }
    return told
