"""Boosted tables: an additive model, learned one small table of log odds at a time.

The budget buys class counts first, then steps. A step does three things:

1. It chooses the table of one or two attributes in which the model so far errs most
   (permute-and-flip on monotone scores).
2. It buys noisy sums of the residuals in the cells of this table.
3. It adds what the sums tell about the cells to the model.

A public plan, made from the number of rows, epsilon and the domain, says how many steps there are,
what each costs and which tables are candidates. Everything that is seen is a release, so the
charges of the kernel are the whole cost. They add up to epsilon exactly, on every branch of the
plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from privet.kernel import LOGIT_GRID, MAX_CELLS, RESIDUAL_GRID, AdditiveModel, Domain, Histogram, as_epsilon
from privet.learners.algorithm import Meter, ignore_progress
from privet.learners.cells import FinerTable
from privet.learners.log_odds import (
    AskedQuestion,
    Learned,
    centred_log,
    class_shares,
    from_counts,
    from_residuals,
    ordered_cells,
    prior_alone,
    table_title,
)
from privet.learners.plan import signal
from privet.models.model import Floats
from privet.models.tables import Table
from privet.table import ProtectedTable


@dataclass(frozen=True)
class Constants:
    """The constants of the algorithm, chosen on nine data sets, three of them by leaving each out (docs/boosted.md).

    "Signal" is the number of rows times epsilon of a record.
    """

    prior_share: Fraction = Fraction(1, 20)  # of epsilon, for the class counts
    least_signal: float = 12.0  # below this noisy signal no table is worth its noise
    least_public_signal: float = 16.0  # the same where the number of rows is public
    scale: float = 95.0  # steps = (signal / scale) ** power
    power: float = 0.45
    max_steps: float = 500.0
    choice_share: float = 0.40  # of a step, for the choice of its table ...
    choice_cap: float = 300.0  # ... but never more than choice_cap / rows
    max_cells: int = 128  # of a table of two attributes ...
    cell_signal: float = 20.0  # ... which needs at least this signal for each cell
    max_pairs: int = 5000  # candidate pairs, the smallest first
    major_slack: float = 0.25  # residuals are cut at 1 - share of the class + slack: for the largest class,
    minor_slack: float = 0.10  # and for the others
    rate: float = 0.8  # learning rate of all steps but the first
    # every attribute is visited once before tables are chosen if there are at least pass_steps steps for
    # each attribute, and if less than the share pass_fit of all pairs is small enough to be a candidate
    pass_steps: float = 0.6
    pass_fit: float = 0.5


CONSTANTS = Constants()
MOST_ROWS = 10**10  # a plan is made for at most this many rows


@dataclass(frozen=True)
class PlannedStep:
    """One step of a plan.

    Parameters
    ----------
    epsilon : Fraction
        What the sums of the residuals cost.
    choice : Fraction, default 0
        What the choice of the table costs; 0 if none is bought.
    columns : tuple of str, optional
        The table, where no choice is bought.
    """

    epsilon: Fraction
    choice: Fraction = Fraction(0)
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BoostPlan:
    """The steps of a fit and the tables they choose from; both follow from what is public or released.

    Parameters
    ----------
    steps : tuple of PlannedStep
    candidates : tuple of tuple of str
        The columns of each candidate table.
    """

    steps: tuple[PlannedStep, ...]
    candidates: tuple[tuple[str, ...], ...]

    @property
    def loss(self) -> Fraction:
        """What all steps cost together."""
        return sum((step.choice + step.epsilon for step in self.steps), Fraction(0))


def plan(domain: Domain, rows: float, epsilon: Fraction, rng: np.random.Generator, constants: Constants) -> BoostPlan:
    """Divide `epsilon` into steps. The last step takes the remainder, so that the shares add up exactly.

    Parameters
    ----------
    domain : Domain
    rows : float
        The number of rows, public or released.
    epsilon : Fraction
        What all steps may cost together, per person.
    rng : numpy.random.Generator
        Public coins for the order in which attributes are visited.
    constants : Constants

    Returns
    -------
    BoostPlan
    """
    names = domain.attributes
    sizes = {name: domain[name].size for name in names}
    budget = float(epsilon) / domain.rows_per_person  # of a record, which is what noise depends on
    steps = min(max(1.0, (rows * budget / constants.scale) ** constants.power), constants.max_steps)

    def largest(share: float) -> float:
        """The most cells that a table may have whose sums cost this share."""
        return min(constants.max_cells, share * rows / constants.cell_signal)

    pairs = list(combinations(names, 2))
    fits = [sizes[a] * sizes[b] <= largest(0.6 * budget / steps) for a, b in pairs]
    visits: list[tuple[str | None, float]] = []  # an attribute, None for a choice, and the weight of the step
    if steps >= constants.pass_steps * len(names) and np.mean(fits or [False]) < constants.pass_fit:
        weights = np.array([sizes[name] for name in names]) ** (1 / 3)
        visits = [(names[index], float(weights[index] / weights.mean())) for index in rng.permutation(len(names))]
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
    return BoostPlan(_steps(parts, epsilon), candidates)


def _steps(parts: Sequence[tuple[str | None, float, float]], epsilon: Fraction) -> tuple[PlannedStep, ...]:
    """Return the steps; a part is an attribute or None, and the shares of epsilon of the step and of its choice."""

    def share(part: float) -> Fraction:
        """Round to millionths of epsilon, which a ledger can show."""
        return epsilon * max(1, round(part * 10**6)) / 10**6

    remaining = epsilon
    steps = []
    for index, (name, part, choice_part) in enumerate(parts):
        whole = share(part) if index < len(parts) - 1 else remaining
        remaining -= whole
        choice = share(choice_part) if choice_part else Fraction(0)
        steps.append(PlannedStep(whole - choice, choice, None if name is None else (name,)))
    return tuple(steps)


def _ordered(domain: Domain, pair: tuple[str, str]) -> tuple[str, ...]:
    """Return a pair with the attribute last whose neighbouring cells may be alike: an ordered one, else the larger."""
    return tuple(sorted(pair, key=lambda name: (ordered_cells(domain, name) > 0, domain[name].size)))


# -- the fit ----------------------------------------------------------------------------------


def boost(
    table: ProtectedTable,
    epsilon: Fraction,
    rng: np.random.Generator,
    constants: Constants = CONSTANTS,
    meter: Meter | None = None,
    counts: Histogram | None = None,
) -> Learned:
    """Learn boosted tables within `epsilon`.

    Parameters
    ----------
    table : ProtectedTable
        May spend what `counts` leave of `epsilon`.
    epsilon : Fraction
        What the whole fit costs, `counts` included.
    rng : numpy.random.Generator
        Public coins.
    constants : Constants, optional
    meter : Meter, optional
        Where progress is reported.
    counts : Histogram, optional
        Class counts that were bought before.

    Returns
    -------
    Learned
        The class shares alone if there is too little signal for a table; its note says so.
    """
    return _Fit(table, epsilon, rng, constants, meter or Meter(ignore_progress, table.domain)).run(counts)


class _Fit:
    """One fit of boosted tables, and what it has asked so far."""

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
        self._asked: list[AskedQuestion] = []

    def run(self, counts: Histogram | None) -> Learned:
        """Buy class counts if there are none, make the plan, and take its steps."""
        if counts is None:
            share = as_epsilon(self._epsilon * self._constants.prior_share)
            counts = self._table.histogram(self._target, epsilon=share)
        self._record("class counts", counts, 0)
        public = self._domain.rows
        rows = max(float(np.maximum(counts.values, 0).sum()), 1.0) if public is None else float(min(public, MOST_ROWS))
        least = self._constants.least_signal if public is None else self._constants.least_public_signal
        if signal(self._domain, rows, self._epsilon) < least:
            return replace(
                prior_alone(self._table, self._epsilon, counts),
                note="there is too little signal for a table: the model is the class shares alone",
            )
        # a cell needs rows, and no epsilon makes more of them
        self._finer = FinerTable(self._table, signal(self._domain, rows, min(self._epsilon, Fraction(1))))
        shares = class_shares(counts)
        planned = plan(self._domain, rows, self._epsilon - counts.epsilon, self._rng, self._constants)
        intercept = centred_log(shares)
        model = AdditiveModel(tuple(round(logit * LOGIT_GRID) for logit in intercept))
        # by the names that the kernel gives them; a column called "a, b" wins over the pair of a and b
        candidates = {", ".join(columns): columns for columns in map(self._finer.columns, reversed(planned.candidates))}
        tables: list[Table] = []
        steps = len(planned.steps)
        for number, step in enumerate(planned.steps):
            self._meter.at(f"table {number + 1} of {steps}", number, steps, asked=len(self._asked))
            table = self._step(model, step, candidates, shares, number)
            tables.append(table)
            grid = np.rint(table.values * LOGIT_GRID).astype(np.int32)
            model = AdditiveModel(model.intercept, (*model.terms, (table.columns, grid)))
        domain, merged = self._finer.merged(tables)
        return Learned(intercept, merged, tuple(self._asked), domain=domain)

    def _record(self, question: str, release: Any, table: int) -> None:
        """Write down a question that was asked."""
        self._asked.append(AskedQuestion(question, release, table))

    def _caps(self, shares: Floats, first: bool) -> tuple[int, ...]:
        """Return where residuals are cut.

        A model of constant shares, which the first step has, never errs by more than 1 minus the share of a class.
        """
        slack = np.where(shares == shares.max(), self._constants.major_slack, self._constants.minor_slack)
        caps = np.minimum(1.0, 1 - shares + (0.0 if first else slack))
        return tuple(int(cap) for cap in np.clip(np.ceil(caps * RESIDUAL_GRID), 1, RESIDUAL_GRID))

    def _step(
        self,
        model: AdditiveModel,
        step: PlannedStep,
        candidates: Mapping[str, tuple[str, ...]],
        shares: Floats,
        number: int,
    ) -> Table:
        """Take one step: return the table that it adds to the model."""
        first = number == 0
        caps = self._caps(shares, first)
        table = self._finer.table
        columns = next(iter(candidates.values())) if step.columns is None else self._finer.columns(step.columns)
        if step.choice:
            choice = table.select_residuals(model, list(candidates.values()), caps, step.choice)
            self._record("choice of a table", choice, number + 1)
            columns = candidates[str(choice)]
        if first and self._classes > 2:
            counts = table.histogram(*columns, self._target, epsilon=step.epsilon)
            self._record(table_title(self._finer.names(columns)), counts, number + 1)
            values, deviation = from_counts(self._finer.domain, columns, counts, shares)
        else:
            sums = table.residual_sums(model, columns, caps, step.epsilon)
            self._record(table_title(self._finer.names(columns)), sums, number + 1)
            values, deviation = from_residuals(self._finer.domain, columns, sums, caps)
        rate = 1.0 if first or step.columns else self._constants.rate
        return Table(columns, rate * values, rate * deviation, step.choice + step.epsilon)
