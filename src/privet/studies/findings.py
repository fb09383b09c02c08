"""What a study found: our numbers beside the paper's and the closed form's, and whether each claim holds.

Everything here is a plain value made from recorded results: tables, plots and pages are
functions of it, and none of them runs anything again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.studies.estimate import Estimate

At = float | str  # where a number stands: on a scale, or under a heading


@dataclass(frozen=True)
class Number:
    """A number of somebody else. One that was read off a plot carries the error of reading it."""

    value: float
    sd: float | None = None
    runs: int | None = None
    reading: float = 0.0

    @property
    def se(self) -> float:
        return self.sd / math.sqrt(self.runs) if self.sd is not None and self.runs else 0.0

    def __str__(self) -> str:
        spread = "" if self.sd is None else f" ± {self.sd:g}"
        return f"{self.value:g}{spread}" + (f" (read off, ± {self.reading:g})" if self.reading else "")


@dataclass(frozen=True)
class Cell:
    """One number of ours, and what it stands beside."""

    series: str  # the line of a plot, the row of a table
    at: At
    ours: Estimate
    paper: Number | None = None
    closed: Number | None = None  # what a closed form lets expect of the algorithm

    def difference(self, other: Number) -> float | None:
        """How many standard errors ours is from another number, what its reader may have misread left out."""
        se = math.hypot(self.ours.se, other.se)
        gap = self.ours.mean - other.value
        gap = math.copysign(max(abs(gap) - other.reading, 0.0), gap)
        return None if se == 0 else gap / se


@dataclass(frozen=True)
class Panel:
    """Cells that belong in one drawing."""

    title: str
    x: str
    cells: tuple[Cell, ...]
    y: str = "accuracy in percent"
    kind: str = "lines"  # or "heat", "cells": at is the column, the series the row; or "bars", "table"
    log: bool = False  # of the horizontal scale
    levels: tuple[tuple[str, Estimate], ...] = ()  # horizontal lines, such as the majority class
    frontier: bool = False  # emphasise where nothing left of a number, and at no smaller `at`, is as high

    @property
    def series(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.series for cell in self.cells))

    def line(self, series: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.series == series)


HOLDS, FAILS, OPEN = "holds", "does not hold", "open at this size"
DEPENDS, INCOMPARABLE = "depends on the reading", "not comparable"
VERDICTS = (HOLDS, FAILS, OPEN, DEPENDS, INCOMPARABLE)


@dataclass(frozen=True)
class ClaimReading:
    """A way to read what a paper leaves open, whether its claim holds so, and by which numbers."""

    name: str
    holds: bool | None
    evidence: str = ""

    @property
    def told(self) -> str:
        """Its verdict in words."""
        return {True: HOLDS, False: FAILS, None: OPEN}[self.holds]

    def __str__(self) -> str:
        return f"{self.name}: {self.told}" + (f" ({self.evidence})" if self.evidence else "")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, whether it holds in our runs, and what they say. None: too few runs to tell.

    Where a claim does not hold the erratum says why. Where the paper can be read in several ways all of them stand in
    `readings`, and it is fair to say that the claim does not hold only if it holds in none. `incomparable` says why
    ours cannot be held against the paper's: another solver, another machine.
    """

    text: str
    holds: bool | None
    evidence: str
    erratum: str = ""
    readings: tuple[ClaimReading, ...] = ()
    incomparable: str = ""

    @classmethod
    def read(cls, text: str, readings: Sequence[ClaimReading], evidence: str = "", erratum: str = "") -> Claim:
        """A claim that was tried in several readings: it holds if it does in all, and does not if in none."""
        found = {reading.holds for reading in readings}
        holds = found.pop() if len(found) == 1 else None
        return cls(text, holds, evidence, "" if holds is True else erratum, tuple(readings))

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`."""
        if self.incomparable:
            return INCOMPARABLE
        if len({reading.holds for reading in self.readings}) > 1 and any(each.holds for each in self.readings):
            return DEPENDS
        return {True: HOLDS, False: FAILS, None: OPEN}[self.holds]

    @property
    def told(self) -> str:
        """All that our runs say of it."""
        read = "; ".join(map(str, self.readings))
        return " ".join(
            words for words in (self.evidence, f"Read as {read}." if read else "", self.incomparable) if words
        )


@dataclass(frozen=True)
class Findings:
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()  # errata, and what could not be read in the paper
