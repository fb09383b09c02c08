"""What a notebook shows of models, domains, budgets, releases, parts and privacy records.

Everything here is released or public already. Colours follow the text of the cell, so a card is readable in light and
dark notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import islice

import numpy as np

from privet.kernel import Domain, Entry
from privet.models.privacy_record import Privacy
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.release import Histogram, Release, Releases
from privet.report import table_picture, tree_picture
from privet.report.chart import CountBar, bars_from_zero
from privet.report.model_page import budget_bar, costs
from privet.report.rendering import fragment
from privet.report.svg import Drawing
from privet.table import Budget, Parts
from privet.text import protected, short_text

CELLS, ENTRIES, PARTS = 40, 20, 50  # at most drawn: cells of a histogram, lines of a ledger, parts of a table


def _card(name: str, *values: object) -> str:
    return fragment("cards.html", name, *values).strip()


def finding_card(
    label: str,
    headline: str,
    alarming: bool,
    sentences: Sequence[str],
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    about: str = "",
    hidden: int = 0,
    what: str = "row",
    second: tuple[str, Sequence[str], Sequence[Sequence[str]]] = ("", (), ()),
) -> str:
    """Return the card of a finding.

    Parameters
    ----------
    label : str
        What the card is, for whoever hears it.
    headline : str
    alarming : bool
    sentences : sequence of str
        Below the headline.
    heads, rows : sequences
        A table.
    about : str, optional
        Above the headline.
    hidden : int, optional
        How many rows the table does not show.
    what : str, optional
        What a row is.
    second : tuple, optional
        The title, heads and rows of another table.
    """
    return _card("finding", label, about, headline, alarming, sentences, heads, rows, hidden, what, *second)


@singledispatch
def picture(value: object) -> str:
    """Return what a notebook shows of a value."""
    raise TypeError(f"there is no picture of a {type(value).__name__}.")


@picture.register
def _(model: Ensemble) -> str:
    return tree_picture.svg(model.trees[0])


@picture.register
def _(model: Tables) -> str:
    return table_picture.svg(model)


@picture.register
def _(domain: Domain) -> str:
    people = protected(domain.person, domain.rows_per_person)
    people += f"; at most {domain.rows_per_person:,} of them count" if domain.person else ""
    facts = [f"target {domain.target}" if domain.target else "no target"]
    sizes = (("about", domain.rows), ("at most", domain.max_rows))
    facts += [f"{words} {rows:,} rows" for words, rows in sizes if rows is not None]
    return _card("domain", domain, facts, people)


@picture.register
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
    rows = [(str(entry.id), entry.question, entry.scope, entry.epsilon, short_text(entry.loss)) for entry in last]
    return _card("budget", words, counted, budget_bar(pieces, left), rows, len(entries) - ENTRIES)


def _by_question(entries: Iterable[Entry]) -> dict[str, tuple[Fraction, int]]:
    """What each kind of question cost in all, and how often it was asked."""
    paid: dict[str, tuple[Fraction, int]] = {}
    for entry in entries:
        kind = entry.question.partition("(")[0]
        loss, times = paid.get(kind, (Fraction(0), 0))
        paid[kind] = loss + entry.loss, times + 1
    return paid


@picture.register
def _(release: Release) -> str:
    return _card("release", release, *_value_and_note(release))


def _value_and_note(release: object) -> tuple[str, str]:
    """A release as people read it: its value, and what stands in parentheses behind it."""
    value, bracket, note = repr(release).rpartition(" (")
    return (value, note.removesuffix(")").removesuffix(", NOT PRIVATE")) if bracket else (note, "")


@picture.register
def _(releases: Releases) -> str:  # type: ignore[type-arg]
    if any(isinstance(release, Histogram) for release in releases):
        charts = [(_chart(release).inline, _hidden(release)) for release in releases[: CELLS // 4]]
        return _card("histograms", charts, len(releases) - len(charts))
    rows = [(str(part), *_value_and_note(release)) for part, release in enumerate(releases[:PARTS])]
    return _card("releases", rows, len(releases) - PARTS, len(releases))


@picture.register
def _(histogram: Histogram) -> str:
    error = f"± {histogram.noise.error(0.95):,} at 95% in each cell, epsilon {short_text(histogram.epsilon)}"
    return _card("histogram", histogram, error, _chart(histogram).inline, _hidden(histogram))


def _hidden(histogram: Histogram) -> int:
    return max(histogram.values.size - CELLS, 0)


def _chart(histogram: Histogram) -> Drawing:
    """Bars with error whiskers, a line for each cell."""
    low, high = histogram.interval(0.95)
    counts = [
        CountBar(
            ", ".join(labels[at] for labels, at in zip(histogram.labels, cell, strict=True)),
            float(histogram.values[cell]),
            float(low[cell]),
            float(high[cell]),
        )
        for cell in islice(np.ndindex(histogram.values.shape), CELLS)
    ]
    heard = "; ".join(f"{each.name[:48]} {each.value:,.0f}, {each.low:,.0f} to {each.high:,.0f}" for each in counts)
    return bars_from_zero(counts, f"Noisy counts with 95% bounds: {heard}")


@picture.register
def _(parts: Parts) -> str:
    places = zip(parts.labels[:PARTS], parts.paths[:PARTS], parts.remaining[:PARTS], strict=True)
    rows = [(label, path, short_text(left)) for label, path, left in places]
    return _card("divided", rows, len(parts))


@picture.register
def _(privacy: Privacy) -> str:
    return _card("privacy", privacy, costs(privacy))
