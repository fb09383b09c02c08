"""The explorer of a study: pick a data set, a size, an epsilon and an algorithm, and see every repeat of it.

All that can be shown stands in the page as templates, drawn beforehand: the script of the page only swaps them, and
what is shown without it is the best.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from privet.studies.pages import histogram, spread
from privet.studies.pages.group import PICKED, Group
from privet.studies.pages.words import ours_text
from privet.trees.layout import safe

TITLES = {
    "accuracy": "accuracy, percent",
    "auroc": "area under the ROC curve, percent",
    "cpu": "CPU seconds of a fit",
}
ROOM = 4_000_000  # characters of models, at most

STYLE = """
#picker { display: flex; flex-wrap: wrap; gap: .6rem 1.2rem; margin: .6rem 0; } #picker label { font-size: .85rem;
  color: var(--soft); display: grid; gap: .15rem; } #picker[hidden] { display: none; }
select { font: inherit; font-size: 1rem; color: var(--ink); background: var(--card); border: 1px solid var(--soft);
  border-radius: .35rem; padding: .3rem .4rem; max-width: min(24rem, 100%); }
.shown { border-top: 1px solid var(--line); padding-top: .8rem; } #model h3 { margin-top: 1rem; }
@media (max-width: 44rem) { #picker label { width: 100%; } select { width: 100%; max-width: none; } }
@media print { #picker, #moved { display: none; } .lane { break-inside: avoid; } pre { white-space: pre-wrap; } }
"""


@dataclass(frozen=True)
class Picker:
    """Every group of repeats, and the parts of the page that show one of them."""

    groups: Sequence[Group]
    measures: Sequence[str]

    @cached_property
    def places(self) -> list[int]:
        """Groups that differ in their algorithm alone stand in one picture."""
        known: dict[tuple[str, ...], int] = {}
        return [known.setdefault(group.words[:3], len(known)) for group in self.groups]

    @cached_property
    def chosen(self) -> int:
        """What is shown first: of the first data set the best at most rows and the epsilon nearest to 1."""

        def order(number: int) -> tuple[float, ...]:
            group = self.groups[number]
            values = group.values(self.measures[0]) or [-math.inf]
            far = abs(math.log(group.budget)) if group.private and group.budget > 0 else math.inf
            return (group.data == self.groups[0].data, group.private, group.size, -far, sum(values) / len(values))

        return max(range(len(self.groups)), key=order)

    @property
    def html(self) -> str:
        static = self._spread(self.places[self.chosen], 0)
        return (
            '<section id="explore"><h2>Explore</h2>'
            "<noscript><p>With scripts allowed, everything that was run can be picked here; "
            "shown is the best of it.</p></noscript>"
            f'<form id="picker" hidden>{"".join(self._selects())}</form>'
            '<p id="moved" class="soft" role="status" hidden>That was not run; shown is the nearest that was.</p>'
            '<p class="soft">A dot is a repeat, the bar their mean, the box its 95% interval'
            f"{', the dotted line the majority class' * ('accuracy' in self.measures)}. The scale is the same for all "
            f'of a data set.</p><div id="spread">{static}</div><div id="model">{self._model(self.chosen)}</div>'
            f'<script type="application/json" id="index">{self.index}</script>{"".join(self._templates())}</section>'
        )

    @property
    def index(self) -> str:
        """What the script needs to find its way; no text can end the element that it stands in."""
        content = {
            "names": list(PICKED),
            "measures": list(self.measures),
            "groups": [group.words for group in self.groups],
            "places": self.places,
            "chosen": self.chosen,
        }
        return json.dumps(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

    def _selects(self) -> Iterator[str]:
        by: dict[str, Callable[[Group], float]] = {
            "rows": lambda group: group.size,
            "epsilon": lambda group: group.budget,
        }
        for i, (name, title) in enumerate(PICKED.items()):
            order = sorted(self.groups, key=by[name]) if name in by else self.groups
            words = list(dict.fromkeys(group.words[i] for group in order))
            yield _select(name, title, words, self.groups[self.chosen].words[i])
        titles = [TITLES.get(name, name) for name in self.measures]
        yield _select("measure", "measure", self.measures, self.measures[0], titles)

    def _templates(self) -> Iterator[str]:
        for place in sorted(set(self.places)):
            for number in range(len(self.measures)):
                yield f'<template id="spread-{place}-{number}">{self._spread(place, number)}</template>'
        room = ROOM
        for number in range(len(self.groups)):
            drawn = self._model(number)
            room -= len(drawn)
            yield f'<template id="model-{number}">{drawn if room > 0 else self._model(number, bare=True)}</template>'

    def _spread(self, place: int, measure: int) -> str:
        """All algorithms at a place, and beside them those that are not private."""
        here = self.groups[self.places.index(place)]
        among = [
            (i, group)
            for i, group in enumerate(self.groups)
            if group.words[:2] == here.words[:2] and (group.epsilon == here.epsilon or not group.private)
        ]
        name = self.measures[measure]
        axis = spread.axis_of([group for group in self.groups if group.data == here.data], name)
        return f"<h3>{safe(TITLES.get(name, name), 60)}</h3>{spread.spread(among, name, axis, self.chosen)}"

    def _model(self, number: int, bare: bool = False) -> str:
        group = self.groups[number]
        known = ((name, group.estimate(name)) for name in (*self.measures, "majority"))
        told = "; ".join(f"{name} {ours_text(each)}" for name, each in known if each is not None)
        head = f'<div class="shown"><p><b>{safe(group.told, 300)}</b>: {safe(told)}</p></div>'
        specimen = group.specimen
        if specimen is None or bare:
            why = "the page would be too large" if bare else "none was kept of these trials"
            return f'{head}<p class="soft">No model is shown: {why}.</p>'
        return (
            f"{head}<h3>One of the models</h3>{histogram.text_of(specimen)}"
            f"<h3>Before and after the noise</h3>{histogram.histogram(specimen)}"
        )


def _select(name: str, title: str, words: Sequence[str], chosen: str, titles: Sequence[str] = ()) -> str:
    options = "".join(
        f'<option value="{safe(word)}"{" selected" * (word == chosen)}>{safe(told)}</option>'
        for word, told in zip(words, titles or words, strict=True)
    )
    return f'<label>{title}<select name="{name}" autocomplete="off">{options}</select></label>'
