"""How a series is drawn: what its colour says, its mark and its dashes say too.

Colours are classes, so that one drawing serves light and dark paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """A colour on light and on dark paper, a mark, and a line."""

    name: str  # of its class in a style
    light: str
    dark: str
    mark: str  # around its own middle
    width: float = 1.8
    dash: str = ""


_COLOURS = (  # dark enough to be read as words on light paper, and light enough on dark
    ("#1d7a46", "#5fd08f"),
    ("#c2540a", "#ff9d52"),
    ("#2567a8", "#7db5ee"),
    ("#93348f", "#e79be2"),
    ("#7a5c00", "#e8c55a"),
    ("#b3261e", "#ff8a80"),
    ("#0b6b72", "#6fd6dd"),
    ("#4b5750", "#b9c6be"),
)
_MARKS = (  # closed, so that each can be filled (ours) and hollow (published)
    '<circle r="4"/>',
    '<path d="M-3.6 -3.6H3.6V3.6H-3.6Z"/>',
    '<path d="M0 -4.8L4.5 3.4H-4.5Z"/>',
    '<path d="M0 -5.2L5.2 0L0 5.2L-5.2 0Z"/>',
    '<path d="M0 4.8L4.5 -3.4H-4.5Z"/>',
    '<path d="M-1.7 -4.8H1.7V-1.7H4.8V1.7H1.7V4.8H-1.7V1.7H-4.8V-1.7H-1.7Z"/>',
    '<path d="M-4.4 -4.4H4.4L-4.4 4.4H4.4Z"/>',
    '<path d="M0 -5.6L1.5 -1.7L5.4 -1.6L2.3 .9L3.4 4.7L0 2.5L-3.4 4.7L-2.3 .9L-5.4 -1.6L-1.5 -1.7Z"/>',
)
_DASHES = ("", "8 3", "2 3", "10 3 2 3", "14 4", "5 2", "8 2 2 2 2 2")

# what is no series: the same in every drawing
PAPER = Look("from-paper", "#1d2a22", "#e6ece7", '<circle class="paper" r="5"/>', 0)
CLOSED = Look("from-form", "#1d2a22", "#e6ece7", '<path class="paper" d="M-4.6 -4.6L4.6 4.6M-4.6 4.6L4.6 -4.6"/>', 0)
FRONTIER = Look("frontier", "#f2dd9a", "#5c4c17", "", 12)
OTHERS = Look("others", "#b4beb7", "#56635b", '<circle r="1.8"/>', 1)  # of many lines those that lead nowhere
LEVELS = tuple(
    Look(f"level-{i}", "#4b5750", "#b9c6be", "", 1.4, dash)
    for i, dash in enumerate(("1 4", "12 4", "6 6", "12 4 1 4", "3 9"))
)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, by its place: two of the first 56 differ in more than their colour.

    >>> [look.name for look in looks(["max", "gini"]).values()]
    ['look-0', 'look-1']
    """
    found = {}
    for place, name in enumerate(dict.fromkeys(names)):
        light, dark = _COLOURS[place % len(_COLOURS)]
        mark, dash = _MARKS[place % len(_MARKS)], _DASHES[place % len(_DASHES)]
        found[name] = Look(f"look-{place}", light, dark, mark, dash=dash)
    return found


def sample(look: Look) -> str:
    """A short piece of a line with its mark, for a key."""
    return f'<g class="{look.name}"><path class="line" d="M-14 0H14"/><g class="marks">{look.mark}</g></g>'


def style(drawn: Iterable[Look]) -> str:
    """The classes of these looks, and of everything that a frame is drawn with."""
    shown = list(drawn)
    light = "".join(
        f".{look.name} {{ color: {look.light}; --width: {look.width}; --dash: {look.dash or 'none'}; }}\n"
        for look in shown
    )
    dark = "".join(f".{look.name} {{ color: {look.dark}; }}\n" for look in shown)
    return f"{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n{_FRAME}"


_FRAME = """svg text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--soft); }
svg text.title { font-weight: 600; font-size: 14px; fill: var(--ink); } svg text.label { fill: var(--ink); }
svg text.value { fill: currentColor; font-weight: 600; font-size: 11.5px; }
.grid { stroke: var(--line); } .axis { stroke: var(--soft); }
.line { fill: none; stroke: currentColor; stroke-width: var(--width); stroke-dasharray: var(--dash);
  stroke-linejoin: round; }
.band { fill: currentColor; opacity: .13; } .marks { fill: currentColor; stroke: var(--card); stroke-width: 1; }
.open { fill: none; stroke: currentColor; stroke-width: 2; }
.hollow { fill: var(--card); stroke: currentColor; stroke-width: 1.8; }
.paper { fill: none; stroke: currentColor; stroke-width: 1.4; } .whisker { fill: none; stroke: currentColor; }
.interval { fill: none; stroke: currentColor; stroke-width: 3; opacity: .45; } .round { stroke-linecap: round; }
.column { fill: currentColor; fill-opacity: .25; stroke: currentColor; }
svg .cell { fill: #1b5e37; stroke: var(--card); stroke-width: 1.5; }
svg .cell.under { fill: #b3261e; }
svg .cell.small { stroke-width: .5; }
@media (prefers-color-scheme: dark) { svg .cell { fill: #7fd6a2; } svg .cell.under { fill: #ff8a80; } }
svg text.on { fill: var(--card); } svg text.off { fill: var(--ink); } svg text.small { font-size: 10.5px; }
svg text.number { font-size: 12.5px; font-weight: 600; }
"""
