"""A drawing of known size: for a page that has the style, or as a file of its own for light and dark paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privet.studies.pages.look import Look, sample, style
from privet.trees.layout import LETTER, safe, shortened, width_of

PAPER = """
:root { --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --card: #ffffff; --leaf: #2f7d4f; }
@media (prefers-color-scheme: dark) {
:root { --ink: #e6ece7; --soft: #9aa89f; --line: #2f3b35; --card: #141a17; --leaf: #66c08a; } }
.paper-edge { fill: var(--card); stroke: var(--line); }
svg text.head { font-size: 17px; font-weight: 600; fill: var(--ink); }
"""
GAP = 16


@dataclass(frozen=True)
class Drawn:
    width: float
    height: float
    shapes: str
    label: str  # for whoever cannot see it

    @property
    def svg(self) -> str:
        """For a page that has the style."""
        return (
            f'<svg viewBox="0 0 {self.width:.0f} {self.height:.0f}" width="{self.width:.0f}" role="img" '
            f'aria-label="{safe(self.label, 300)}">{self.shapes}</svg>'
        )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", most: int = 140) -> str:
    said = f' class="{kind}"' if kind else ""
    turned = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{said} x="{x:.1f}" y="{y:.1f}"{turned}>{safe(words, most)}</text>'


def sheet(
    title: str, subtitle: str, drawings: Sequence[Drawn], key: Iterable[tuple[Look, str]], below: str = ""
) -> str:
    """Drawings side by side as one file, with a key and a line below them."""
    wide = sum(each.width for each in drawings) + GAP * (len(drawings) - 1)
    width, tall = max(wide + 2 * GAP, 420.0), max(each.height for each in drawings)
    letters = int((width - 2 * GAP) / LETTER)
    shapes, left, top = text(GAP, 30, title, "head", most=letters), float(GAP), 42.0
    if subtitle:
        shapes, top = shapes + text(GAP, 50, subtitle, most=letters), 62.0
    for each in drawings:
        shapes += f'<g transform="translate({left:.0f} {top:.0f})">{each.shapes}</g>'
        left += each.width + GAP
    shown = list(key)
    entries, rows = _key(shown, width)
    bottom = top + tall + 24 * rows + 12
    shapes += f'<g transform="translate(0 {top + tall + 12:.0f})">{entries}</g>'
    if below:
        shapes += text(GAP, bottom + 6, below, most=letters)
        bottom += 20
    told = safe(f"{title}. {subtitle} {'; '.join(each.label for each in drawings)}", 600)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom:.0f}" width="{width:.0f}" '
        f'height="{bottom:.0f}" role="img" aria-label="{told}"><style>{PAPER}'
        f"{style(look for look, _ in shown)}</style>"
        f'<rect class="paper-edge" x=".5" y=".5" width="{width - 1:.0f}" height="{bottom - 1:.0f}" rx="8"/>'
        f"{shapes}</svg>\n"
    )


def _key(entries: Iterable[tuple[Look, str]], width: float) -> tuple[str, int]:
    """What is drawn how, in as many rows as it takes."""
    told, left, row = "", float(GAP), 0
    for look, title in entries:
        words = shortened(title, 60)
        needed = 50 + LETTER * width_of(words)
        if left + needed > width and left > GAP:
            left, row = float(GAP), row + 1
        told += (
            f'<g transform="translate({left + 14:.1f} {24 * row + 4})">{sample(look)}{text(21, 4, words, "label")}</g>'
        )
        left += needed
    return told, row + 1 if told else 0
