"""Scales, marks and tables of a report: what a colour says, a shape and a word say too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """Numbers from low to high on paper from start to end; infinity has a place of its own, the edge."""

    low: float
    high: float
    start: float
    end: float
    edge: float
    log: bool = False

    def at(self, value: float) -> float:
        if value == math.inf:
            return self.edge
        scale: Callable[[float], float] = math.log if self.log else float
        low, high, here = (scale(each) for each in (self.low, self.high, min(max(value, self.low), self.high)))
        return self.start + (self.end - self.start) * (here - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """At most eight round numbers."""
        if not self.log:
            return _round_steps(self.low, self.high)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for within in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{digit}e{decade}") for decade in decades for digit in within]
            found = [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
            if len(found) <= 8:
                return found
        return found[:: math.ceil(len(found) / 8)]


def _round_steps(low: float, high: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(part * power for part in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if (high - low) / (part * power) <= 7)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(each * step, 12) for each in range(first, last + 1)]


# Each around its own middle: what a colour says a shape says too.
MARKS = {
    "passed": '<circle class="mark" r="5.5"/>',
    "caught": '<path class="mark" d="M0 -7L7 0L0 7L-7 0Z"/>',
    "failed": '<path class="cross" d="M-5 -5L5 5M-5 5L5 -5"/>',
    "unknown": '<circle class="hollow" r="4.5"/>',
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
