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

from markupsafe import Markup

from privet.studies.pages.group import PICKED, Group
from privet.studies.pages.histogram import Example, example
from privet.studies.pages.spread import Spread, axis_of, spread
from privet.studies.pages.words import ours_text

TITLES = {
    "accuracy": "accuracy, percent",
    "auroc": "area under the ROC curve, percent",
    "cpu": "CPU seconds of a fit",
}
ROOM, LARGER = 4_000_000, 5  # characters of models, at most; and how many a specimen becomes on a page


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
    def index(self) -> Markup:
        """What the script needs to find its way; no text can end the element that it stands in."""
        content = {
            "names": list(PICKED),
            "measures": list(self.measures),
            "groups": [group.words for group in self.groups],
            "places": self.places,
            "chosen": self.chosen,
        }
        return Markup(json.dumps(content).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))

    @property
    def selects(self) -> Iterator[tuple[str, str, list[tuple[str, str]], str]]:
        """What can be picked: a name, a title, words with what is said of them, and what is picked first."""
        by: dict[str, Callable[[Group], float]] = {
            "rows": lambda group: group.size,
            "epsilon": lambda group: group.budget,
        }
        for i, (name, title) in enumerate(PICKED.items()):
            order = sorted(self.groups, key=by[name]) if name in by else self.groups
            options = dict.fromkeys(group.words[i] for group in order)
            yield name, title, [(word, word) for word in options], self.groups[self.chosen].words[i]
        yield "measure", "measure", [(name, TITLES.get(name, name)) for name in self.measures], self.measures[0]

    @property
    def spreads(self) -> list[tuple[int, int]]:
        """Every place with every measure."""
        return [(place, number) for place in sorted(set(self.places)) for number in range(len(self.measures))]

    @property
    def models(self) -> Iterator[tuple[int, bool]]:
        """Every group, and whether its model would make the page too large."""
        room = ROOM
        for number, group in enumerate(self.groups):
            room -= LARGER * len(json.dumps(group.specimen)) if group.specimen is not None else 0
            yield number, room <= 0

    def spread(self, place: int, measure: int) -> Spread:
        """All algorithms at a place, and beside them those that are not private."""
        here = self.groups[self.places.index(place)]
        among = [
            (i, group)
            for i, group in enumerate(self.groups)
            if group.words[:2] == here.words[:2] and (group.epsilon == here.epsilon or not group.private)
        ]
        name = self.measures[measure]
        axis = axis_of([group for group in self.groups if group.data == here.data], name)
        return spread(TITLES.get(name, name), among, name, axis, self.chosen)

    def model(self, number: int, bare: bool = False) -> tuple[str, str, Example | None, str]:
        """What was picked, its measures, and one of its models, or why there is none."""
        group = self.groups[number]
        measured = ((name, group.estimate(name)) for name in (*self.measures, "majority"))
        told = "; ".join(f"{name} {ours_text(each)}" for name, each in measured if each is not None)
        shown = None if group.specimen is None or bare else example(group.specimen)
        return group.told, told, shown, "the page would be too large" if bare else "none was kept of these trials"
