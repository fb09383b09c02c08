"""What a notebook shows of domains, tables' budgets, releases, parts and privacy records: a few lines of HTML.

`privet` attaches `notebook_html` to the classes of the kernel, which draws nothing itself; `Audit` and `Verdict` make
their own cards of `card` and `table`. Everything here is released or public already, and every text is cleaned,
shortened and escaped. Colours follow the text of the cell, so a card is readable in light and dark notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import islice

import numpy as np

from privet.kernel import Domain, Entry
from privet.models.privacy_record import Privacy
from privet.release import Histogram, Release, Releases
from privet.table import Budget, Parts
from privet.text import protected, short_text
from privet.trees.axis import Axis
from privet.trees.drawing import COLOURS
from privet.trees.effects import more
from privet.trees.layout import LABEL, LETTER, LONG, NAME, ROW, safe, shortened, text_at, width_of
from privet.trees.page import cost
from privet.trees.page_parts import PART_STYLE, budget_bar, decided, details, domain_table, promise

CELLS, ENTRIES, PARTS = 40, 20, 50  # at most drawn: cells of a histogram, lines of a ledger, parts of a table
CHART, NUMBER = 320.0, 90.0  # pixels: the longest bar, and a number beside it

# Nested, so that nothing outside the card is styled. The pages' rules, with colours made of the colour of the text.
_STYLE = f""".privet-card {{ font: 14px/1.5 system-ui, sans-serif; max-width: 62rem; overflow-wrap: break-word;
  --soft: color-mix(in srgb, currentColor 68%, transparent); --line: color-mix(in srgb, currentColor 24%, transparent);
  --leaf: {COLOURS[0]}; --alarm: {COLOURS[6]}; --alarmed: transparent;
  {PART_STYLE}
  p {{ margin: .2rem 0; }} h2 {{ font-size: 1em; margin: .7rem 0 .2rem; }} sup {{ line-height: 0; }}
  .big {{ font-size: 1.25em; }} .alarm {{ border-radius: .4rem; padding: .4rem .8rem; }}
  .warn {{ color: var(--alarm); }}
  table {{ width: auto; margin: 0; }} th {{ font-weight: 600; white-space: nowrap; }}
  summary {{ cursor: pointer; color: var(--soft); }}
  svg text {{ font: 12px system-ui, sans-serif; fill: currentColor; font-variant-numeric: tabular-nums; }}
  svg .aside {{ opacity: .72; }} svg .end {{ text-anchor: end; }} svg .middle {{ text-anchor: middle; opacity: .72; }}
  svg .grid {{ stroke: currentColor; opacity: .2; }}
  svg .error {{ stroke: currentColor; stroke-width: 1.5; fill: none; }}
  svg rect {{ fill: var(--leaf); opacity: .75; }} }}"""


def card(label: str, *parts: str) -> str:
    """Return a cell's HTML.

    Parameters
    ----------
    label : str
        What the card is, for whoever hears it.
    *parts : str
        HTML; every text in it is escaped.
    """
    return (
        f'<div class="privet-card" role="group" aria-label="{safe(label)}"><style>{_STYLE}</style>'
        f"{''.join(parts)}</div>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], hidden: int = 0, what: str = "row") -> str:
    """Return an HTML table of plain texts, and how many rows are not shown."""
    head = "".join(f"<th>{safe(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{safe(text, 300)}</td>' for text in row)}</tr>" for row in rows)
    drawn = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return drawn + _more(hidden, what)


def _more(hidden: int, what: str) -> str:
    return "".join(f'<p class="soft">{words}</p>' for words in more(hidden, what, "…"))


@singledispatch
def notebook_html(value: object) -> str:
    """Return what a notebook shows of a value."""
    raise TypeError(f"there is no picture of a {type(value).__name__}.")


@notebook_html.register
def _(domain: Domain) -> str:
    people = protected(domain.person, domain.rows_per_person)
    people += f"; at most {domain.rows_per_person:,} of them count" if domain.person else ""
    facts = [f"target {domain.target}" if domain.target else "no target"]
    sizes = (("about", domain.rows), ("at most", domain.max_rows))
    facts += [f"{words} {rows:,} rows" for words, rows in sizes if rows is not None]
    notes = "".join(f"<p>{safe(note)}</p>" for note in domain.notes[:CELLS])
    return card(
        f"Domain of {len(domain.columns)} columns",
        f'<p><b>{safe(", ".join(facts))}</b></p><p class="soft">epsilon is {safe(people)}</p>',
        domain_table(domain),
        details("Notes", notes) if notes else "",
    )


@notebook_html.register
def _(budget: Budget) -> str:
    spent, left, entries = budget.spent, budget.remaining, budget.entries
    words, counted = f"{short_text(spent)} spent, {short_text(left)} left", "epsilon"
    if budget.unit.delta is not None:
        words = f"{words}: one answer of epsilon {short_text(budget.buys)} with delta {float(budget.unit.delta):g}"
        counted = budget.unit.name
    paid = _by_question(entries)
    pieces = [(kind, loss, f"{kind}: {short_text(loss)} in {times:,}") for kind, (loss, times) in paid.items()]
    if sum((loss for _, loss, _ in pieces), Fraction(0)) != spent:  # a part of the table: its entries are the table's
        pieces = [("spent", spent, f"spent: {short_text(spent)}")] * (spent > 0)
    last = reversed(entries[-ENTRIES:])
    rows = ((str(entry.id), entry.question, entry.scope, entry.epsilon, short_text(entry.loss)) for entry in last)
    ledger = table(("entry", "question", "on", "epsilon", "charged"), rows, len(entries) - ENTRIES, "charge")
    return card(
        f"Budget: {words}",
        f'<p class="big">{counted}: {words}</p>{budget_bar(pieces, left)}',
        ledger if entries else "",
    )


def _by_question(entries: Iterable[Entry]) -> dict[str, tuple[Fraction, int]]:
    """What each kind of question cost in all, and how often it was asked."""
    paid: dict[str, tuple[Fraction, int]] = {}
    for entry in entries:
        kind = entry.question.partition("(")[0]
        loss, times = paid.get(kind, (Fraction(0), 0))
        paid[kind] = loss + entry.loss, times + 1
    return paid


@notebook_html.register
def _(release: Release) -> str:
    value, note = _value_and_note(release)
    warning = "" if release.private else ' <b class="warn">NOT PRIVATE</b>'
    question = safe(release.about.question, 200)
    return card(
        f"{value} {note}",
        f'<p><span class="big">{safe(value)}</span> <span class="soft">{safe(note)} · {question}</span>{warning}</p>',
    )


def _value_and_note(release: object) -> tuple[str, str]:
    """A release as people read it: its value, and what stands in parentheses behind it."""
    value, bracket, note = repr(release).rpartition(" (")
    return (value, note.removesuffix(")").removesuffix(", NOT PRIVATE")) if bracket else (note, "")


@notebook_html.register
def _(releases: Releases) -> str:  # type: ignore[type-arg]
    if any(isinstance(release, Histogram) for release in releases):
        charts = [f"<h2>part {part}</h2>{_chart(release)}" for part, release in enumerate(releases[: CELLS // 4])]
        return card("Histograms of parts", *charts, _more(len(releases) - len(charts), "part"))
    rows = ((str(part), *_value_and_note(release)) for part, release in enumerate(releases[:PARTS]))
    return card(
        f"Releases of {len(releases)} parts", table(("part", "value", "error"), rows, len(releases) - PARTS, "part")
    )


@notebook_html.register
def _(histogram: Histogram) -> str:
    warning = "" if histogram.private else ' <b class="warn">NOT PRIVATE</b>'
    error = f"± {histogram.noise.error(0.95):,} at 95% in each cell, epsilon {short_text(histogram.epsilon)}"
    return card(
        f"Histogram of {', '.join(histogram.columns)}",
        f"<p><b>{safe(', '.join(histogram.columns), 200)}</b> "
        f'<span class="soft">rows, {safe(error)}</span>{warning}</p>',
        _chart(histogram),
    )


def _chart(histogram: Histogram) -> str:
    """Bars with error whiskers, a line for each cell."""
    cells = list(islice(np.ndindex(histogram.values.shape), CELLS))
    names = [", ".join(labels[at] for labels, at in zip(histogram.labels, cell, strict=True)) for cell in cells]
    names = [shortened(name, 2 * LABEL) for name in names]
    low, high = histogram.interval(0.95)
    start = 8 + LETTER * max(width_of(name) for name in names)
    top = max(1.0, *(float(max(high[cell], histogram.values[cell])) for cell in cells))
    axis = Axis(0.0, top, start, start + CHART, start + CHART)
    height = ROW * len(cells) + 6
    ticks = [tick for tick in axis.ticks if tick == int(tick)][:8]
    drawn = [f'<path class="grid" d="{"".join(f"M{axis.at(tick):.1f} 0V{height}" for tick in ticks)}"/>']
    drawn += [text_at(axis.at(tick), height + 12, f"{tick:,.0f}", NAME, "middle") for tick in ticks]
    for row, (cell, name) in enumerate(zip(cells, names, strict=True)):
        value, least, most = (float(numbers[cell]) for numbers in (histogram.values, low, high))
        drawn.append(_bar(axis, ROW * row + 12, name, value, least, most))
    words = "; ".join(
        f"{name} {histogram.values[cell]:,}, {low[cell]:,} to {high[cell]:,}"
        for name, cell in zip(names, cells, strict=True)
    )
    width = start + CHART + NUMBER
    size = f'viewBox="0 0 {width:.0f} {height + 18}" width="{width:.0f}" height="{height + 18}"'
    return (
        f'<div class="scroll"><svg xmlns="http://www.w3.org/2000/svg" {size} role="img" '
        f'aria-label="{safe(f"Noisy counts with 95% bounds: {words}", 5 * LONG)}">{"".join(drawn)}</svg></div>'
        f"{_more(histogram.values.size - len(cells), 'cell')}"
    )


def _bar(axis: Axis, y: int, name: str, value: float, low: float, high: float) -> str:
    """One cell: its name, a bar from zero, the bounds of its true count, and the number."""
    left, right = axis.at(low), axis.at(high)
    whisker = f"M{left:.1f} {y}H{right:.1f}M{left:.1f} {y - 4}v8M{right:.1f} {y - 4}v8"
    words = f"{name}: {value:,.0f}, {low:,.0f} to {high:,.0f} at 95%"
    return (
        f"<g><title>{safe(words)}</title>{text_at(axis.start - 6, y + 4, name, 2 * LABEL, 'end')}"
        f'<rect x="{axis.start:.1f}" y="{y - 6}" width="{max(axis.at(value) - axis.start, 0):.1f}" height="12"/>'
        f'<path class="error" d="{whisker}"/>{text_at(axis.end + 10, y + 4, f"{value:,.0f}", LABEL, "count")}</g>'
    )


@notebook_html.register
def _(parts: Parts) -> str:
    places = zip(parts.labels[:PARTS], parts.paths[:PARTS], parts.remaining[:PARTS], strict=True)
    rows = ((label, path, short_text(left)) for label, path, left in places)
    return card(
        f"{len(parts)} parts",
        f"<p><b>{len(parts):,} disjoint parts</b> "
        '<span class="soft">a question to all of them costs what the dearest costs</span></p>',
        table(("part", "rows", "epsilon left"), rows, len(parts) - PARTS, "part"),
    )


@notebook_html.register
def _(privacy: Privacy) -> str:
    about = f"{privacy.algorithm}, {privacy.variant} variant"
    return card(
        f"Privacy record of {about}",
        f'<p class="soft">{safe(about)}</p>{promise(privacy)}{decided(privacy)}{cost(privacy)}',
    )
