"""The report of an audit, for whoever decides about publishing: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privet.risk.drawing import STYLE, key, posteriors
from privet.risk.findings import BASELINES, WORLDS, Audit, Remedy, probability
from privet.risk.measures import SAME, Exposure
from privet.risk.tree_drawing import LEAVES, exposed_tree
from privet.risk.words import (
    ADVERSARIES,
    UNKNOWN,
    accuracy,
    before,
    difference,
    measures,
    notes,
    ordered,
    promise,
    verdict,
)
from privet.trees.layout import safe
from privet.trees.notebook import card, table
from privet.trees.page_parts import document

NUMBERS = {
    "baseline": "from the shares of the values among all people alone",
    "inference": "from the model, about anybody with these attributes, by the rows of the others",
    "disclosure": "what a person's own row adds to that: the part that publishing is responsible for",
}
EXPOSED = 5  # people who are listed in a notebook
VALUES = 30  # of the sensitive attribute, that are listed

_STYLE = """
body { print-color-adjust: exact; } h3 { font-size: .95rem; margin: 1rem 0 .3rem; }
ul { margin: .4rem 0; padding-left: 1.2rem; } dl { margin: .6rem 0 0; font-size: .9rem; }
dt { font-weight: 600; } dd { margin: 0; } .big { font-size: 1.35rem; line-height: 1.35; margin-bottom: .5rem; }
.good { border: 2px solid var(--leaf); } .pair, .legend { display: grid; gap: 0 1.4rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
.pair { align-items: stretch; } .pair section { margin-bottom: 0; }
.facts { display: grid; grid-template-columns: 9.5rem 1fr; gap: .25rem 1rem; margin: 0;
  align-content: start; }
.facts dt { color: var(--soft); } .legend div { padding: .2rem 0; } .legend dt, .legend dd { display: inline; }
.legend dt::after { content: ": "; }
.number { text-align: right; } td.number { white-space: nowrap; } tr { break-inside: avoid; }
th { font-weight: 600; vertical-align: bottom; white-space: nowrap; } th[title] { cursor: help; }
.wide > p { max-width: 68rem; }
td, th { padding-right: .9rem; } td:last-child, th:last-child { padding-right: 0; }
tbody tr:last-child > td { border-bottom: 0; }
td small { display: block; color: var(--soft); font-size: .85rem; white-space: normal; max-width: 17rem; }
.text td:first-child { white-space: normal; } .text td { line-height: 1.4; } tr.same > td { border-bottom: 0; }
.chip { display: inline-block; border: 1px solid currentColor; border-radius: 1rem; padding: 0 .55rem;
  font-size: .8rem; color: var(--leaf); white-space: nowrap; } .reached { color: var(--alarm); font-weight: 600; }
.best > td { background: color-mix(in srgb, var(--leaf) 10%, transparent); }
.key { align-items: center; } .key svg { margin-right: .4rem; vertical-align: -1px; }
.key path { fill: none; stroke: var(--ink); stroke-width: 1.5; } .key .at { stroke: var(--alarm); }
.key .uniform { stroke: var(--soft); stroke-dasharray: 4 3; }
@media (max-width: 44rem) { body { margin: 1.4rem auto; } section { padding: .9rem 1rem; } .facts { display: block; }
  .facts dd { margin-bottom: .5rem; } thead { display: none; } table, tbody, tr, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } tr:last-child, tr.same { border: 0; }
  td { border: 0; padding: .1rem 0; } td[data-head] { display: flex; justify-content: space-between; gap: 1rem; }
  td[data-head]::before { content: attr(data-head); color: var(--soft); } td.told { display: block; }
  .text td.told::before { display: block; } td:first-child { font-weight: 600; white-space: normal; }
  .best { background: color-mix(in srgb, var(--leaf) 10%, transparent); } .best > td { background: none; } }
@media print { :root { font-size: 11.5px; } body { margin: 0; max-width: none; font-size: 1rem; }
  section { break-inside: auto; } h2, h3 { break-after: avoid; } .scroll { overflow: visible; }
  .scroll svg { max-width: 100%; height: auto; } .wide { position: static; transform: none; width: auto; } }
"""


def page(audit: Audit, beside: Audit | None = None) -> str:
    """A whole page about an audit, or about two side by side; it loads nothing and runs nothing."""
    both = [audit] if beside is None else [audit, beside]
    models = " and ".join(f"<em>{safe(each.name, 100)}</em>" for each in both)
    tells = "tells" if beside is None else "tell"
    parts = [
        f"<h1>What {models} {tells} about {safe(audit.sensitive, 100)}</h1>",
        _verdicts(both),
        _three(both),
        *(_remedies(each, len(both) > 1) for each in both),
        *(_exposed(each, len(both) > 1) for each in both if each.exposures),
        _histograms(both),
        *(_tree(each) for each in both if each.publication is not None),
        _about(both),
        _against(both),
        _listed("What is assumed", [(each.name, each.assumptions) for each in both]),
        _listed("Notes of the adversaries", [(each.name, notes(each)) for each in both]),
        _reading(both),
        '<p class="soft">Written by privet audit. Point at the head of a column, or at a leaf, to read more.</p>',
    ]
    title = f"{' and '.join(each.name for each in both)}: what is told about {audit.sensitive}"
    return document(title, parts, STYLE + _STYLE)


def notebook_card(audit: Audit) -> str:
    """What a notebook shows of an audit: the verdict, the adversaries and the most exposed."""
    columns = measures(audit)
    overall = [(name, *(column.told(audit.overall[name]) for column in columns)) for name in ordered(audit)]
    exposed = [
        (
            *map(probability, (each.baseline, each.inference, each.disclosure, each.posterior)),
            f"{each.people:,}",
            each.value,
            each.who if audit.names else each.path,
        )
        for each in audit.exposures[:EXPOSED]
    ]
    sentences = "".join(f"<p>{safe(sentence)}</p>" for sentence in (before(audit), promise(audit)) if sentence)
    who = "who" if audit.names else "where"
    most = "<h2>Who is concerned</h2>" + table(
        ("baseline", "inference", "disclosure", "posterior", "people", "value", who),
        exposed,
    )
    return card(
        f"Audit of {audit.name}",
        f'<p class="soft">what {safe(audit.name, 100)} tells about {safe(audit.sensitive, 100)}</p>',
        f'<p class="big{"" if audit.safe else " warn"}">{safe(verdict(audit))}</p>{sentences}',
        table(("adversary", *(column.head for column in columns)), overall),
        most if exposed else "",
    )


def _verdicts(audits: Sequence[Audit]) -> str:
    cards = []
    for each in audits:
        name = f'<p class="soft">{safe(each.name, 100)}</p>' if len(audits) > 1 else ""
        said = f"<p>{safe(promise(each))}</p>" if each.epsilon is not None else ""
        cards.append(
            f'<section class="{"good" if each.safe else "alarm"}">{name}<p class="big">{safe(each.verdict.title)}</p>'
            f"<p><b>{safe(each.verdict.sentence)}</b></p><p>{safe(before(each))}</p>{said}</section>"
        )
    if len(audits) == 1:
        return cards[0]
    return f'<div class="pair">{"".join(cards)}</div><section><p>{safe(difference(*audits))}</p></section>'


def _three(audits: Sequence[Audit]) -> str:
    """Baseline, inference and disclosure, apart."""
    rows = []
    for name, means in NUMBERS.items():
        for each in audits:
            numbers = each.summary[name]
            model = f"<small>{safe(each.name, 60)}</small>" if len(audits) > 1 else ""
            bound = name == "disclosure" and not each.own.is_computed
            cells = [probability(numbers["mean"]), probability(numbers["most"])]
            cells = ["at most " + cell for cell in cells] if bound else cells
            cells.append(f"{each.known:,}" if name == "disclosure" and each.by_own_row and not bound else UNKNOWN)
            shown = "".join(map(_cell, ("on average", "most", "people concerned"), cells))
            same = ' class="same"' if each is not audits[-1] else ""
            rows.append(f'<tr{same}><td>{name}{model}</td>{shown}<td class="told">{means}</td></tr>')
    heads = "<th>number</th>" + "".join(
        f'<th class="number">{head}</th>' for head in ("on average", "most", "people concerned")
    )
    return (
        "<section><h2>Three numbers</h2><p>The probability of a person's true value (or, where that is not known, of "
        "each value as it is believed).</p>"
        f'<div class="scroll"><table class="text"><thead><tr>{heads}<th>what it is</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _about(audits: Sequence[Audit]) -> str:
    columns = []
    for each in audits:
        rows = "".join(f"<dt>{head}</dt><dd>{told}</dd>" for head, told in _facts(each))
        columns.append(f'<dl class="facts">{rows}</dl>')
    inside = columns[0] if len(columns) == 1 else f'<div class="pair">{"".join(columns)}</div>'
    return f"<section><h2>What this is about</h2>{inside}</section>"


def _facts(audit: Audit) -> Iterable[tuple[str, str]]:
    private = "not private" if audit.epsilon is None else f"noise for epsilon {audit.epsilon:g}"
    yield "model", f"{safe(audit.name, 100)}, {private}"
    more = f", … {len(audit.values) - VALUES} more" if len(audit.values) > VALUES else ""
    values = ", ".join(safe(value, 60) for value in audit.values[:VALUES])
    yield "sensitive attribute", f"{safe(audit.sensitive, 100)}: {values}{more}"
    yield "people", f"{audit.people.total:,}"
    yield "profiles", f"{len(audit.people):,} different combinations of {safe(', '.join(audit.people.names), 400)}"
    if audit.publication is not None:
        noisy, leaves = "noisy " * audit.publication.noisy, len(audit.publication.leaves)
        yield "published", f"the tree with the {noisy}{audit.publication.level} of its {leaves:,} leaves with people"
    if audit.counted is not None:
        yield "constraints", safe(str(audit.counted), 500)
    if audit.by_own_row:
        yield "threshold", f"a person is concerned if their own row adds {audit.threshold:g} or more"
    else:
        yield "threshold", f"a value counts as known from probability {audit.threshold:g} on"


# -- adversaries --------------------------------------------------------------------------------


def _against(audits: Sequence[Audit]) -> str:
    columns = measures(max(audits, key=lambda each: each.truth is not None))
    heads = "".join(f'<th class="number" title="{safe(each.means)}">{each.head}</th>' for each in columns)
    rows = []
    for name in dict.fromkeys(name for each in audits for name in ordered(each)):
        having = [each for each in audits if name in each.beliefs]
        for each in having:
            cells = "".join(_cell(column.head, column.told(each.overall[name])) for column in columns)
            model = f"<small>{safe(each.name, 60)}</small>" if len(audits) > 1 else ""
            same = ' class="same"' if each is not having[-1] else ""
            rows.append(f"<tr{same}><td>{safe(name, 60)}{model}</td>{cells}</tr>")
    who = "".join(
        f"<div><dt>{name}</dt><dd>{means}</dd></div>"
        for name, means in ADVERSARIES.items()
        if any(name in each.beliefs for each in audits)
    )
    what = "".join(f"<div><dt>{each.head}</dt><dd>{safe(each.means)}</dd></div>" for each in columns)
    return (
        "<section><h2>What can be inferred, whether the own row helped or not</h2><p>Each row is somebody with other "
        "knowledge; the first have not seen the model. These are posteriors (Zhu and Du 2010): they count what holds "
        'of many people alike, too.</p><div class="scroll"><table><thead><tr><th>adversary</th>'
        f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f'<h3>Who they are</h3><dl class="legend">{who}</dl><h3>What the columns say</h3><dl class="legend">{what}</dl>'
        "</section>"
    )


def _cell(head: str, told: str) -> str:
    return f'<td class="number" data-head="{head}">{safe(told)}</td>'


def _histograms(audits: Sequence[Audit]) -> str:
    drawn = [posteriors(each) for each in audits]
    baselines = [name for name in reversed(BASELINES) if any(name in each.beliefs for each in audits)]
    baselines = [] if audits[0].by_own_row else baselines
    outline = "".join(
        f'<span><svg width="22" height="12" aria-hidden="true"><path class="{name}" d="M1 1H21V11H1"/></svg>'
        f"everybody, as {name} believes</span>"
        for name in baselines
    )
    line = '<span><svg width="22" height="12" aria-hidden="true"><path class="at" d="M0 6H22"/></svg>threshold</span>'
    told = (
        "<p>For everybody what their own row adds to the probability of their value. The further up, the more.</p>"
        if audits[0].by_own_row
        else "<p>For everybody the probability of the value that is likeliest for them, to whichever adversary is "
        "surest of it. The further up, the surer.</p>"
    )
    legend = f'{key(audits[0])}<p class="key">{outline}{line}</p>'
    if len(drawn) == 1:
        inside = f'<div class="pair"><div>{drawn[0]}</div><div>{told}{legend}</div></div>'
    else:
        figures = "".join(
            f"<div><h3>{safe(each.name, 100)}</h3>{figure}</div>" for each, figure in zip(audits, drawn, strict=True)
        )
        inside = f'{told}<div class="pair">{figures}</div>{legend}'
    title = "How much own rows add" if audits[0].by_own_row else "How surely people are known"
    return f"<section><h2>{title}</h2>{inside}</section>"


def _tree(audit: Audit) -> str:
    assert audit.publication is not None
    if not audit.publication.leaves:
        return ""
    empty = len(audit.publication.tree.leaves) - len(audit.publication.leaves)
    left = f" {empty:,} lea{'f' if empty == 1 else 'ves'} that nobody is in are left out." if empty else ""
    many = len(audit.publication.leaves) > LEAVES
    what = "the most that the own row adds for one" if audit.by_own_row else "the largest posterior"
    folded = (
        f" It has more than {LEAVES} leaves: those parts are unfolded where most people are concerned." if many else ""
    )
    return (
        f'<section class="wide"><h2>Where they are in {safe(audit.name, 100)}</h2><p>A bar shows {what} '
        "of the people in a leaf and the line in it the threshold; then what the leaf predicts, its people, and how "
        f'many of them are concerned.{left}{folded}</p>{key(audit)}<div class="scroll">{exposed_tree(audit)}</div>'
        "</section>"
    )


# -- people and remedies ------------------------------------------------------------------------


def _exposed(audit: Audit, named: bool) -> str:
    of = f" by {safe(audit.name, 100)}" if named else ""
    shown = [each for each in audit.exposures if _score(audit, each) >= audit.threshold - SAME] or audit.exposures[:3]
    rows = "".join(_exposure(each, audit) for each in shown)
    who = "who" if audit.names else "where"
    heads = f'<th>{who}</th><th class="number">people</th><th>value</th>'
    for head in ("baseline", "inference", "disclosure") if audit.by_own_row else ("posterior", "before"):
        heads += f'<th class="number">{head}</th>'
    heads += "<th>where, and why</th>" if audit.names else "<th>why</th>"
    hidden = "" if audit.names else " Who they are is left out; --names shows their quasi-identifiers."
    return (
        f"<section><h2>Who is concerned{of}</h2><p>The most exposed people of a leaf or group, the value of theirs "
        f"that is, and its numbers.{hidden}</p>"
        f'<div class="scroll"><table class="text"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        "</section>"
    )


def _score(audit: Audit, each: Exposure) -> float:
    return each.disclosure if audit.by_own_row else each.posterior


def _exposure(each: Exposure, audit: Audit) -> str:
    reached = " reached" if _score(audit, each) >= audit.threshold - SAME else ""
    if audit.by_own_row:
        numbers = {"baseline": each.baseline, "inference": each.inference, "disclosure": each.disclosure}
    else:
        numbers = {"posterior": each.posterior, "before": each.baseline}
    cells = "".join(
        f'<td class="number{reached * (head in ("disclosure", "posterior"))}" data-head="{head}">'
        f"{safe(probability(number))}</td>"
        for head, number in numbers.items()
    )
    people = each.people if audit.names else each.everybody
    why = f'<span class="soft">{safe(each.because, 400)}</span>'
    return (
        f'<tr><td>{safe(each.who if audit.names else each.path, 400)}</td><td class="number" data-head="people">'
        f'{people:,}</td><td data-head="value">{safe(each.value, 60)}</td>{cells}'
        f'<td class="told">{f"{safe(each.path, 400)}<br>" * audit.names}{why}</td></tr>'
    )


def _remedies(audit: Audit, named: bool) -> str:
    title = f"What to do about {safe(audit.name, 100)}" if named else "What to do about it"
    if audit.safe:
        return ""
    if not audit.remedies:
        return ""
    marked = audit.best
    rows = "".join(_remedy(each, each is marked) for each in audit.remedies)
    heads = '<th>what</th><th class="number">most</th><th class="number">people</th>'
    heads += '<th class="number">accuracy</th><th>enough?</th>'
    return (
        f"<section><h2>{title}</h2><p>Each was tried and audited again, with the accuracy of the labels before and "
        "after; a private model that was not grown is judged by its promise.</p>"
        f'<div class="scroll"><table class="text"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        "</section>"
    )


def _remedy(each: Remedy, is_best: bool) -> str:
    word = '<span class="chip">yes, the best</span>' if is_best else "yes" if each.enough else "no"
    known = UNKNOWN if each.known is None else f"{each.known:,}"
    kind = ' class="best"' if is_best else ""
    return (
        f"<tr{kind}><td>{safe(each.told, 600)}</td>"
        + _cell("most", probability(each.worst))
        + _cell("people", known)
        + _cell("accuracy", accuracy(each))
        + f'<td data-head="enough?">{word}</td></tr>'
    )


# -- sentences ----------------------------------------------------------------------------------


def _listed(title: str, said: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Sentences of each audit; those that all share stand once."""
    shared = [words for words in said[0][1] if all(words in sentences for _, sentences in said)]
    parts = [_items(shared)]
    for name, sentences in said:
        own = [words for words in sentences if words not in shared]
        if own:
            parts.append((f"<h3>{safe(name, 100)}</h3>" if len(said) > 1 else "") + _items(own))
    inside = "".join(parts)
    return f"<section><h2>{title}</h2>{inside}</section>" if inside else ""


def _items(sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{safe(words)}</li>" for words in sentences)
    return f"<ul>{items}</ul>" if items else ""


def _reading(audits: Sequence[Audit]) -> str:
    """How to read the adversaries of these audits, and no others."""
    parts = [_READ_OWN] * audits[0].by_own_row
    parts += [_READ_PREDICTION] * any("prediction" in each.beliefs for each in audits)
    parts += [_READ_GROUPS] * any(each.publication is None and WORLDS in each.beliefs for each in audits)
    parts += [_READ_TREE] * any(each.publication is not None for each in audits)
    return f"<section><h2>How to read this</h2>\n{''.join(parts)}</section>"


_READ_OWN = """<p><b>Disclosure</b> is what a person's own row adds: the probability of their value with it, less that
without it. That people with these attributes have a value more often is learnt from the others, and would be believed
of somebody who was never in the table. Without the own row the leaf has its other people, and the baseline stands for
one more. What the choice of splits tells of some people of a leaf and not of others is added whole. Several people who
agree to be in the table, or not, can give away more together than each of them alone.</p>
"""
_READ_PREDICTION = """<p><b>Prediction</b> is an adversary who takes the model at its word: what it predicts for
somebody with these quasi-identifiers is what the adversary believes of them. So a posterior is what somebody will
believe of a person, right or not.</p>
"""
_READ_GROUPS = """<p><b>Possible worlds</b> counts every data set of these people that agrees with all numbers, also
with those that follow from others: what a table suppresses, its margins may tell. <b>Without</b> one's own row, the
smallest group that a number is known of has its other people. Groups of which nothing is known say nothing.</p>
"""
_READ_TREE = """<p><b>Maximum entropy</b> is an adversary who believes everything that was published and makes up
nothing besides: of all beliefs that agree with it, the most even one. What is shown is a belief, not a bound:
two values that the tree cannot tell apart look alike to it, even where only one of them was possible.</p>
<p><b>Possible worlds</b> is an adversary who knows that people come whole: every table that would have led to this
very publication is as likely as any other, and the posterior of a value is the share of the tables in which a person
has it. Where one table is left, everybody is known, however even maximum entropy finds them.</p>
<p>Saying more never raises the maximum entropy: with every constraint the beliefs that are left become fewer. It may
raise <i>D</i>, the distance from the truth: who knows more can be misled, and be surer of something wrong. So a
posterior is what somebody will believe of a person, right or not.</p>
"""
