"""A study as a value: which trials it needs, and what their results say beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privet.studies.findings import Findings
from privet.studies.trial import Outcome, Trial

SIZES = ("tiny", "quick", "medium", "full")  # for tests, for minutes, what is published, and what the paper ran


@dataclass(frozen=True)
class Study:
    """A figure, table or question of a paper, run again.

    Trials are plain values with everything that decides about their results, so that studies in one folder
    share those they have in common. `read` is given outcomes with results alone, in the order of `trials`,
    and must make do with fewer than all: some may have failed.
    """

    name: str  # paper-figure-number
    title: str
    source: str  # as one would cite it
    trials: Callable[[str], Sequence[Trial]]  # for a size
    read: Callable[[Sequence[Outcome]], Findings]
    data: tuple[str, ...] = ()  # public tables without which it cannot run
    about: str = ""  # what the paper did, in a sentence or two
