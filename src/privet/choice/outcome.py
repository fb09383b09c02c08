"""What a NoisyIf chose, why, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from privet.models.privacy_record import Decision
from privet.release import Public, Release
from privet.text import decimal_text


@dataclass(frozen=True)
class Picked:
    """A branch, by how many points each was ahead of the default, and why."""

    branch: str
    margins: Mapping[str, float]
    why: str
    deciding: tuple[str, ...] = ()
    policy: str = field(default="", compare=False)
    learned: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Outcome:
    """What was chosen, why, what came of it and what it cost. All but `value` is published with what is made of it.

    `policy` has a fingerprint of what the choice was learned from, and `learned` says where that came from. `reward`
    is what the execution was judged by, if it was.
    """

    site: str
    branch: str
    value: Any
    spent: Fraction
    margins: Mapping[str, float] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    policy: str = ""
    why: str = ""
    deciding: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    reward: Release | Public | None = None

    @property
    def decision(self) -> Decision:
        """The choice as a model records it."""
        return Decision(
            self.site,
            self.branch,
            1,
            tuple((name, round(float(value), 3)) for name, value in self.margins.items()),
            tuple((name, _short(value)) for name, value in self.context.items()),
            self.policy,
            self.why,
            self.learned,
        )

    def explain(self) -> str:
        """The choice for people: what was taken, by which margin, and what decided."""
        lines = [f"{self.site}: {self.branch}, {self.why}", f"spent {decimal_text(self.spent)}"]
        if self.deciding:
            shown = (f"{name} {_short(self.context[name])}" for name in self.deciding if name in self.context)
            lines.append(f"decided mostly by {', '.join(shown)}")
        if self.learned:
            lines.append(f"learned from {'; '.join(self.learned)}")
        ranked = sorted(self.margins.items(), key=lambda item: -item[1])
        lines += [f"  {name:<16} {points:+.2f} points" for name, points in ranked]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.site}: {self.branch}, spent {decimal_text(self.spent)}>"


def _short(value: Any) -> float | str:
    """A context value as it is published: a number or a short text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)[:200]
    return float(f"{number:.6g}") if math.isfinite(number) else str(number)
