"""Somebody's function of a table as a subject: all that is known of it is what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from privet.verification import observe
from privet.verification.checks import Check, NeighbourCheck, Neighbours, Sampler
from privet.verification.subject import Effort
from privet.verification.tables import boundary_pairs, known_pairs

# Runs on each table. Two thirds of them test: 10,000 find what one table alone shows in 1 of 100 runs (it takes 61
# such runs and none on the other table, for alpha 1e-8 and a claim of 1), and noise for 1.13 sold as 1.
RUNS = 15_000
PILOT = 1_000  # on each table, shared by all pairs, but at least a tenth of it for each


def checks(
    function: Callable[[Any], Any], effort: Effort, pairs: Sequence[tuple[Any, Any]] | None = None
) -> list[Check]:
    """What is tried on a function of a table, on the pairs that were given or on frames of a small public domain."""
    if pairs is None:
        own = (*known_pairs(), *boundary_pairs(large=True))
        named = [(pair.name, pair.left, pair.right) for pair in own]
    else:
        named = [(f"given pair {number + 1}", *pair) for number, pair in enumerate(pairs)]

    def sampler(table: Any) -> Sampler:
        return lambda runs: observe.with_low_bits(observe.runs(lambda: function(table), runs))

    neighbours = [Neighbours(name, sampler(left), sampler(right)) for name, left, right in named]
    return [NeighbourCheck(neighbours, effort.of(RUNS), max(PILOT // len(neighbours), PILOT // 10))]
