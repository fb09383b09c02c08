"""Finer releases: what `Release.refine` asks of the kernel, in this process or across a wire, and what it makes of it.

The kernel keeps the chain of an answer and draws its levels (`kernel/refinement.py`). Here are public values alone: the
levels become releases of the same kind as the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privet.kernel import (
    AveragedGaussian,
    ChainLevel,
    Domain,
    IntegerGaussian,
    IntegerLaplace,
    PerPart,
    Question,
    Unit,
)
from privet.release import About, Refinable, refined_by

Amounts = Callable[[object, int], PerPart[Fraction]]  # what parts are charged for an epsilon, or for one each
Levels = Callable[[Sequence[int], PerPart[Fraction]], Sequence[ChainLevel]]  # parts at these losses, or finer


@dataclass(frozen=True, eq=False)
class Refining:
    """What the releases of one question are refined by."""

    question: Question[Any]
    domain: Domain
    unit: Unit
    first: Refinable
    amounts: Amounts
    levels: Levels

    def refined(self, parts: Sequence[int], epsilon: object) -> list[Any]:
        """Return releases of some parts, each with at least this epsilon: one for all, or one for each."""
        levels = self.levels(parts, self.amounts(epsilon, len(parts)))
        notes = PerPart.of((level.loss, level.entry, level.private) for level in levels).map(
            lambda own: self._note(*own)
        )
        releases = []
        for part, level, (noise, about) in zip(parts, levels, notes, strict=True):
            value = level.value
            if isinstance(noise, AveragedGaussian):
                value = np.rint(value).astype(np.int64).tolist()
            releases.append(self.question.release(value, noise, about, self.domain, part))
        refined_by(self, parts, releases)
        return releases

    def _note(self, loss: Fraction, entry: int, private: bool) -> tuple[IntegerLaplace | IntegerGaussian, About]:
        """Return the noise of a level, and what its release says about itself."""
        noise, own = self.first.noise, self.unit.of_record(loss, self.domain.rows_per_person)
        about = self.unit.about(self.question.words, loss, private, entry)
        if isinstance(noise, IntegerLaplace):
            return IntegerLaplace(own, noise.sensitivity), about
        assert isinstance(noise, IntegerGaussian)
        kind = IntegerGaussian if entry == self.first.about.entry else AveragedGaussian
        return kind(own, noise.squared), about
