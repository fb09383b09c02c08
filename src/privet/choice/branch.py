"""Branches of a NoisyIf, and advice about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet.errors import QuestionError
from privet.kernel import as_epsilon


@dataclass(frozen=True)
class Branch:
    """One way to go on: what runs, and what it costs at most.

    `run` gets a table that can be charged `cost` and no more; one that costs nothing gets None. In a mode that
    buys something first it gets that release as well.
    """

    run: Callable[..., Any]
    cost: Any = 0

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise QuestionError("the run of a branch is a function; for a constant write Branch.of(value).")
        free = self.cost == 0 and not isinstance(self.cost, bool)
        object.__setattr__(self, "cost", Fraction(0) if free else as_epsilon(self.cost, "cost"))

    @classmethod
    def of(cls, value: Any) -> Branch:
        """A branch that stands for a value, and costs nothing."""
        return cls(_Constant(value))


@dataclass(frozen=True)
class _Constant:
    value: Any

    def __call__(self, *_: object) -> Any:
        return self.value


@dataclass(frozen=True)
class Advice:
    """What advice may return besides a name or weights: a branch that is taken whatever the policy says."""

    branch: str
    hard: bool = False
