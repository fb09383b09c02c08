"""A scale: numbers on paper, evenly or by their logarithm, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable
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
