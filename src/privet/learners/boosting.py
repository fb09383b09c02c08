"""Boosted tables: ProtectedTable -> an additive model, one small table of log odds at a time.

The budget buys class counts, then steps. A step chooses the table of one or two attributes
in which the model so far errs most (permute-and-flip on monotone scores), buys the noisy sums of
the residuals in its cells, and adds what they say about the cells to the model. How many
steps there are, what each costs and which tables are candidates is a public plan, made from
the number of rows, epsilon and the domain. Everything seen is a release, so the charges of
the kernel are the whole cost: they add up to epsilon exactly, on every branch of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from privet.kernel import (
    LOGIT_GRID,
    MAX_CELLS,
    RESIDUAL_GRID,
    AdditiveModel,
    Domain,
    Histogram,
    ProtectedTable,
    as_epsilon,
)
from privet.learners.learned import Asked, Learned, centred_log, class_shares, prior_alone, table_of
from privet.learners.log_odds import from_counts, from_residuals, run_of
from privet.learners.plan import signal
from privet.learners.progress import Meter
from privet.models.model import Floats
from privet.models.tables import Table


@dataclass(frozen=True)
class Constants:
    """What was chosen on nine data sets, three of them by leaving each out (docs/boosted.md)."""

    prior_share: Fraction = Fraction(1, 20)  # of epsilon, for the class counts
    least_signal: float = 12.0  # noisy rows times epsilon below which no table is worth its noise
    least_public_signal: float = 16.0  # the same where the number of rows is public
    scale: float = 95.0  # steps = (rows * epsilon / scale) ** power
    power: float = 0.45
    max_steps: float = 500.0
    choice_share: float = 0.40  # of a step, for the choice of its table ...
    choice_cap: float = 300.0  # ... but never more than choice_cap / rows
    max_cells: int = 128  # of a table of two attributes ...
    cell_signal: float = 20.0  # ... with at least so many rows times epsilon for each cell
    max_pairs: int = 5000  # candidates, the smallest first
    major_slack: float = 0.25  # residuals of a class are cut at 1 - its share + slack: for the largest class,
    minor_slack: float = 0.10  # and for the others
    rate: float = 0.8  # how far a step goes, after the first
    pass_steps: float = 0.6  # so many steps for each attribute, and most pairs too large: visit every attribute first
    pass_fit: float = 0.5


CONSTANTS = Constants()
MOST_ROWS = 10**10  # that a plan is made for


@dataclass(frozen=True)
class Planned:
    """One step of a plan: what it pays, and its table where no choice is bought."""

    epsilon: Fraction  # for the sums
    choice: Fraction = Fraction(0)
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BoostPlan:
    """The steps of a fit, and the tables that they choose from: functions of what is public or released."""

    steps: tuple[Planned, ...]
    candidates: tuple[tuple[str, ...], ...]

    @property
    def loss(self) -> Fraction:
        return sum((step.choice + step.epsilon for step in self.steps), Fraction(0))


def plan(domain: Domain, rows: float, epsilon: Fraction, rng: np.random.Generator, constants: Constants) -> BoostPlan:
    """How `epsilon` is divided into steps; the last takes the remainder, so that the shares add up exactly."""
    names = domain.attributes
    sizes = {name: domain[name].size for name in names}
    budget = float(epsilon) / domain.rows_per_person  # of a record, which is what noise depends on
    steps = min(max(1.0, (rows * budget / constants.scale) ** constants.power), constants.max_steps)

    def largest(share: float) -> float:
        return min(constants.max_cells, share * rows / constants.cell_signal)

    pairs = list(combinations(names, 2))
    fits = [sizes[a] * sizes[b] <= largest(0.6 * budget / steps) for a, b in pairs]
    visits: list[tuple[str | None, float]] = []
    if steps >= constants.pass_steps * len(names) and np.mean(fits or [False]) < constants.pass_fit:
        weights = np.array([sizes[name] for name in names]) ** (1 / 3)
        visits = [(names[at], float(weights[at] / weights.mean())) for at in rng.permutation(len(names))]
        steps -= len(names)
    visits += [(None, 1.0)] * max(0, round(steps))
    unit = budget / sum(weight for _, weight in visits)
    choice = max(min(constants.choice_share * unit, constants.choice_cap / max(rows, 1.0)), 0.001 * unit)
    small = [pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] <= largest(unit - choice)]
    small = sorted(small, key=lambda pair: sizes[pair[0]] * sizes[pair[1]])
    # with many classes fewer pairs: all candidates together have at most the cells of one question
    small = small[: min(constants.max_pairs, MAX_CELLS // 2 // max(1, constants.max_cells * len(domain.classes)))]
    candidates = (*((name,) for name in names), *(_ordered(domain, pair) for pair in small))
    parts = [
        (name, weight * unit / budget, choice / budget if name is None and len(candidates) > 1 else 0.0)
        for name, weight in visits
    ]
    return BoostPlan(_shares(parts, epsilon), candidates)


def _shares(parts: Sequence[tuple[str | None, float, float]], epsilon: Fraction) -> tuple[Planned, ...]:
    """What each step pays in all and for its choice, from its parts of epsilon."""

    def share(part: float) -> Fraction:
        """In millionths of the whole, which a ledger can show."""
        return epsilon * max(1, round(part * 10**6)) / 10**6

    left = epsilon
    found = []
    for place, (name, part, choice) in enumerate(parts):
        whole = share(part) if place < len(parts) - 1 else left
        left -= whole
        chosen = share(choice) if choice else Fraction(0)
        found.append(Planned(whole - chosen, chosen, None if name is None else (name,)))
    return tuple(found)


def _ordered(domain: Domain, pair: tuple[str, str]) -> tuple[str, ...]:
    """A pair with the attribute last whose neighbouring cells may be alike: an ordered one, else the larger."""
    return tuple(sorted(pair, key=lambda name: (run_of(domain, name) > 0, domain[name].size)))


# -- the fit ----------------------------------------------------------------------------------


def boost(
    table: ProtectedTable,
    epsilon: Fraction,
    rng: np.random.Generator,
    constants: Constants = CONSTANTS,
    meter: Meter | None = None,
    counts: Histogram | None = None,
) -> Learned:
    """Learn boosted tables within `epsilon`, which is also what class counts have cost that are there already."""
    return _Fit(table, epsilon, rng, constants, meter or Meter(lambda told: None, table.domain)).run(counts)


class _Fit:
    def __init__(
        self,
        table: ProtectedTable,
        epsilon: Fraction,
        rng: np.random.Generator,
        constants: Constants,
        meter: Meter,
    ) -> None:
        self._table, self._domain, self._epsilon = table, table.domain, epsilon
        self._rng, self._constants, self._meter = rng, constants, meter
        self._target = table.domain.target_column.name
        self._classes = len(table.domain.classes)
        self._asked: list[Asked] = []

    def run(self, counts: Histogram | None) -> Learned:
        if counts is None:
            share = as_epsilon(self._epsilon * self._constants.prior_share)
            counts = self._table.histogram(self._target, epsilon=share)
        self._ask("class counts", counts, 0)
        public = self._domain.rows
        rows = max(float(np.maximum(counts.values, 0).sum()), 1.0) if public is None else float(min(public, MOST_ROWS))
        least = self._constants.least_signal if public is None else self._constants.least_public_signal
        if signal(self._domain, rows, self._epsilon) < least:
            return replace(
                prior_alone(self._table, self._epsilon, counts),
                note="there is too little signal for a table: the model is the class shares alone",
            )
        shares = class_shares(counts)
        planned = plan(self._domain, rows, self._epsilon - counts.epsilon, self._rng, self._constants)
        intercept = centred_log(shares)
        model = AdditiveModel(tuple(round(each * LOGIT_GRID) for each in intercept))
        # as the kernel names them; of a column "a, b" and the pair of a and b the column stays
        candidates = {", ".join(each): each for each in reversed(planned.candidates)}
        tables: list[Table] = []
        steps = len(planned.steps)
        for number, step in enumerate(planned.steps):
            self._meter.at(f"table {number + 1} of {steps}", number, steps, asked=len(self._asked))
            found = self._step(model, step, candidates, shares, number)
            tables.append(found)
            grid = np.rint(found.values * LOGIT_GRID).astype(np.int32)
            model = AdditiveModel(model.intercept, (*model.terms, (found.columns, grid)))
        return Learned(intercept, tuple(tables), tuple(self._asked))

    def _ask(self, question: str, release: Any, step: int) -> None:
        self._asked.append((question, release, step))

    def _caps(self, shares: Floats, first: bool) -> tuple[int, ...]:
        """Where residuals are cut; those of a constant model are never larger than 1 minus the share of their class."""
        slack = np.where(shares == shares.max(), self._constants.major_slack, self._constants.minor_slack)
        caps = np.minimum(1.0, 1 - shares + (0.0 if first else slack))
        return tuple(int(cap) for cap in np.clip(np.ceil(caps * RESIDUAL_GRID), 1, RESIDUAL_GRID))

    def _step(
        self,
        model: AdditiveModel,
        step: Planned,
        candidates: Mapping[str, tuple[str, ...]],
        shares: Floats,
        number: int,
    ) -> Table:
        first = number == 0
        caps = self._caps(shares, first)
        columns = step.columns or next(iter(candidates.values()))
        if step.choice:
            choice = self._table.select_residuals(model, list(candidates.values()), caps, step.choice)
            self._ask("choice of a table", choice, number + 1)
            columns = candidates[str(choice)]
        if first and self._classes > 2:
            counts = self._table.histogram(*columns, self._target, epsilon=step.epsilon)
            self._ask(table_of(columns), counts, number + 1)
            values, deviation = from_counts(self._domain, columns, counts, shares)
        else:
            sums = self._table.residual_sums(model, columns, caps, step.epsilon)
            self._ask(table_of(columns), sums, number + 1)
            values, deviation = from_residuals(self._domain, columns, sums, caps)
        rate = 1.0 if first or step.columns else self._constants.rate
        return Table(columns, rate * values, rate * deviation, step.choice + step.epsilon)
