"""Marks and tables of a report: what a colour says, a shape and a word say too."""

from __future__ import annotations

from collections.abc import Iterable

# Each around its own middle: what a colour says a shape says too.
MARKS = {
    "passed": '<circle class="mark" r="5.5"/>',
    "caught": '<path class="mark" d="M0 -7L7 0L0 7L-7 0Z"/>',
    "failed": '<path class="cross" d="M-5 -5L5 5M-5 5L5 -5"/>',
    "unknown": '<circle class="hollow" r="4.5"/>',
    "undecided": '<circle class="hollow" r="5.5"/>',
    "other": '<path class="hollow" d="M0 -6L6 0L0 6L-6 0Z"/>',
    "attack": '<circle class="mark" r="5"/>',
    "claim": '<path class="claim" d="M0 -8V8"/>',
    "band": '<rect class="band" x="-9" y="-5" width="18" height="10"/>',
    "line": '<path class="line" d="M-9 0H9"/>',
    "dashed": '<path class="line dashed" d="M-9 0H9"/>',
}


def icon(mark: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<svg{kind} width="18" height="16" viewBox="-9 -8 18 16" aria-hidden="true">{MARKS[mark]}</svg>'


def key_of(entries: Iterable[tuple[str, str, str]]) -> str:
    return f'<p class="key">{"".join(f"<span>{icon(mark, style)}{words}</span>" for mark, style, words in entries)}</p>'


def heads(*names: str) -> str:
    """The head of a table; # marks a column of numbers."""
    cells = (cell(name[1:], "th") if name.startswith("#") else f"<th>{name}</th>" for name in names)
    return f'<thead><tr class="rule">{"".join(cells)}</tr></thead>'


def cell(told: str, tag: str = "td") -> str:
    return f'<{tag} class="number">{told}</{tag}>'
