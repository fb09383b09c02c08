"""Where the parts of a drawn tree stand, and words that a terminal and a page can bear.

A label is whatever somebody wrote into a domain, a table or a model file: every one is cleaned of control
characters, shortened and escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from privet.text import LONG as LONG
from privet.text import clean as clean
from privet.text import shortened as shortened
from privet.text import width_of as width_of

ROW, LETTER, BOLD, GAP = 18, 6.9, 7.8, 12.0  # pixels
LABEL, NAME = 24, 20  # letters


def safe(words: str, width: int = LONG) -> str:
    return html.escape(shortened(clean(words), width))


# -- places -------------------------------------------------------------------------------------


def columns(places: Sequence[tuple[int, str, str]]) -> tuple[list[float], list[float]]:
    """Where the edges that lead to each depth begin, and where its nodes; of each place the depth, the label on the
    edge to it and, if it splits, its name."""
    depths = 1 + max(depth for depth, _, _ in places)
    labels, names = [0] * depths, [0] * depths
    for depth, label, name in places:
        labels[depth] = max(labels[depth], width_of(shortened(label, LABEL)))
        names[depth] = max(names[depth], width_of(shortened(name, NAME)))
    edges, nodes, x = [], [], 0.0
    for label_width, name_width in zip(labels, names, strict=True):
        edges.append(x)
        nodes.append(x + GAP + LETTER * label_width)
        x = nodes[-1] + 8 + BOLD * name_width + GAP
    return edges, nodes


def heights_of(above: Sequence[int]) -> list[int]:
    """A row for each place without places below it, and others in the middle of their children; `above` is the place
    of the parent, places in depth-first order."""
    heights = [0] * len(above)
    spans: dict[int, tuple[int, int]] = {}
    row = len(above) - len(set(above) - {-1})
    for place in range(len(above) - 1, -1, -1):
        if place in spans:
            heights[place] = round(sum(spans[place]) / 2)
        else:
            row -= 1
            heights[place] = 4 + ROW * row + ROW // 2
        y = heights[place]
        spans[above[place]] = (y, spans.get(above[place], (y, y))[1])
    return heights


def edge_to(x: float, parent: int, child: int, end: float, outer: bool) -> str:
    """A line from the spine of a parent to a child; the outer children draw the spine."""
    bend = max(-5, min(5, child - parent)) if outer else 0
    spine = f"M{x:.0f} {parent}V{child - bend}q0 {bend} 5 {bend}" if outer else f"M{x:.0f} {child}"
    return f"{spine}H{end:.0f}"


def text_at(x: float, y: int, words: str, width: int, kind: str, title: str = "") -> str:
    told = f"<title>{safe(title)}</title>" if title else ""
    return f'<text class="{kind}" x="{x:.0f}" y="{y}">{told}{safe(words, width)}</text>'
