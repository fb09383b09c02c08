"""Boosted tables: an additive model, learned one small table of log odds at a time.

The budget buys class counts first, then steps. A step does three things:

1. It chooses the table of one or two attributes in which the model so far errs most
   (permute-and-flip on monotone scores). Where there are steps for most attributes, the first ones choose among
   attributes that no table has yet.
2. It buys noisy sums of the residuals in the cells of this table.
3. It adds what the sums tell about the cells to the model.

A public plan, made from the number of rows, epsilon and the domain, says how many steps there are,
what each costs and which tables are candidates. Everything that is seen is a release, so the
charges of the kernel are the whole cost. They add up to epsilon exactly, on every branch of the
plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from privet.kernel import LOGIT_GRID, MAX_CELLS, RESIDUAL_GRID, AdditiveModel, Domain, as_epsilon
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
    told_shares,
)
from privet.models.model import Floats
from privet.models.tables import Table
from privet.release import Histogram
from privet.table import ProtectedTable


@dataclass(frozen=True)
class Constants:
    """The constants of the algorithm, chosen on nine data sets, three of them by leaving each out.

    docs/explanation/boosted.md tells how.

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
    # steps add an attribute each that no table has yet if there are at least new_steps steps for each attribute,
    # and if less than the share new_fit of all pairs is small enough, in its declared bins, to be a candidate;
    # from all_steps steps on for each attribute all of them have their turn, and none is chosen
    new_steps: float = 0.6
    all_steps: float = 0.9
    new_fit: float = 0.5
    looks: int = 2  # at most so many steps look closer at one number,
    look_steps: int = 9  # one in this many,
    look_weight: float = 2.0  # and cost this many times as much as others
    # below this signal the first model has even shares, and the first table also says how large the classes are
    even_below: float = 200.0


CONSTANTS = Constants()
MOST_ROWS = 10**10  # a plan is made for at most this many rows
NO_TABLE = "there is too little signal for a table: the model is the class shares alone"


@dataclass(frozen=True)
class BoostPlan:
    """The steps of a fit and the tables they choose from; both follow from what is public or released.

    Parameters
    ----------
    new : int
        How many steps come first, each of which adds an attribute that no table has yet.
    order : tuple of str
        These attributes, if all of them have their turn; else they are chosen.
    looks : int
        How many steps come next, each of which looks closer at one number.
    free : int
        How many steps follow, each of which may choose any candidate.
    choice : Fraction
        What the choice of a table costs.
    merge : bool
        Whether numbers enter tables of two in merged bins.
    candidates : tuple of tuple of str
        The attributes of each candidate table.
    """

    new: int
    order: tuple[str, ...]
    looks: int
    free: int
    choice: Fraction
    merge: bool
    candidates: tuple[tuple[str, ...], ...]

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.new + self.looks + self.free


def plan(
    domain: Domain,
    sizes: Mapping[str, int],
    looks: int,
    rows: float,
    epsilon: Fraction,
    whole: Fraction,
    rng: np.random.Generator,
    constants: Constants,
) -> BoostPlan:
    """Divide `epsilon` into steps.

    Parameters
    ----------
    domain : Domain
    sizes : mapping of str to int
        How many cells each attribute has in merged bins.
    looks : int
        How many numbers can be looked at more closely.
    rows : float
        The number of rows, public or released.
    epsilon : Fraction
        What all steps may cost together, per person.
    whole : Fraction
        What the whole fit costs.
    rng : numpy.random.Generator
        Public coins for the order of attributes.
    constants : Constants

    Returns
    -------
    BoostPlan
    """
    names = domain.attributes
    of_record = float(whole) / domain.rows_per_person
    steps = float(min(max(1.0, (rows * of_record / constants.scale) ** constants.power), constants.max_steps))

    def largest(part: float) -> float:
        """The most cells that a table may have whose sums cost this part."""
        return min(constants.max_cells, of_record * part * rows / constants.cell_signal)

    pairs = list(combinations(names, 2))
    fits = [domain[a].size * domain[b].size <= largest(0.6 / steps) for a, b in pairs]
    few_fit = float(np.mean(fits or [False])) < constants.new_fit
    many = steps >= constants.new_steps * len(names) and few_fit
    every = many and steps >= constants.all_steps * len(names)
    steps = max(steps, len(names)) if every else steps
    new = min(round(steps), len(names)) if many else 0
    looks = min(looks, constants.looks, int(steps / constants.look_steps), round(steps) - new) if many else 0
    order = tuple(names[index] for index in rng.permutation(len(names))) if every else ()
    unit = 1 / round(steps)
    enough = constants.choice_cap / max(rows, 1.0) / of_record
    choice = max(min(constants.choice_share * unit, enough), 0.001 * unit)
    if not many:  # with few steps pairs must be small as they are declared
        sizes = {name: domain[name].size for name in names}

    def cells(pair: tuple[str, str]) -> int:
        return sizes[pair[0]] * sizes[pair[1]]

    small = sorted((pair for pair in pairs if cells(pair) <= largest(unit - choice)), key=cells)
    # with many classes fewer pairs: all candidates together have at most the cells of one question
    small = small[: min(constants.max_pairs, MAX_CELLS // 2 // max(1, constants.max_cells * len(domain.classes)))]
    candidates = (*((name,) for name in names), *(_ordered(domain, pair) for pair in small))
    return BoostPlan(new, order, looks, round(steps) - new - looks, _share(epsilon, choice), many, candidates)


def _share(epsilon: Fraction, part: float) -> Fraction:
    """Return a part of epsilon, rounded down to millionths of it, which a ledger can show."""
    return epsilon * max(1, int(part * 10**6)) / 10**6


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
        of_record = float(self._epsilon) / self._domain.rows_per_person
        if rows * of_record < least:
            return replace(prior_alone(self._table, self._epsilon, counts), note=NO_TABLE)
        # a cell needs rows, and no epsilon makes more of them
        self._finer = FinerTable(self._table, rows * min(of_record, 1 / self._domain.rows_per_person))
        self._budget = self._epsilon - counts.epsilon  # of all steps
        names = self._domain.attributes
        paired = zip(names, self._finer.merged_columns(names), strict=True)
        sizes = {name: self._finer.domain[column].size for name, column in paired}
        self._plan = plan(
            self._domain, sizes, len(self._finer.looks), rows, self._budget, self._epsilon, self._rng, self._constants
        )
        weak = rows * of_record < self._constants.even_below
        table, self._shares = self._first_step(counts, weak)
        intercept, tables = centred_log(self._shares), [table]
        while len(tables) < self._plan.steps:
            tables.append(self._step(intercept, tables))
        domain, merged = self._finer.merged(tables)
        return Learned(intercept, merged, tuple(self._asked), domain=domain)

    def _candidates(self, tables: Sequence[Table]) -> dict[str, tuple[str, ...]]:
        """Return what the next step chooses from, by the names that the kernel gives the tables."""
        used = {table.columns for table in tables}
        if len(tables) < self._plan.new:
            unused = [name for name in self._domain.attributes if self._finer.columns([name]) not in used]
            columns = [self._finer.columns([name]) for name in self._plan.order[len(tables) :][:1] or unused]
        elif len(tables) < self._plan.new + self._plan.looks:
            columns = [column for column in self._finer.looks if column not in used]
        else:
            columns = [self._finer.columns(names, self._plan.merge) for names in self._plan.candidates]
        # a column called "a, b" wins over the pair of a and b
        return {", ".join(names): names for names in reversed(columns)}

    def _prices(
        self, candidates: Iterable[tuple[str, ...]], tables: Sequence[Table]
    ) -> dict[tuple[str, ...], Fraction]:
        """Return what a step costs that takes one of these. The last takes the remainder: prices add up exactly.

        A new attribute of many cells gets more than one of few: by the cubic root of their number, on average the
        same as any other step.
        """
        remaining = self._budget - sum((table.epsilon for table in tables), Fraction(0))
        left = self._plan.steps - len(tables)

        def price(weight: float) -> Fraction:
            return _share(self._budget, min(weight / left, 0.5) * float(remaining / self._budget))

        if left == 1:
            return dict.fromkeys(candidates, remaining)
        if len(tables) < self._plan.new:
            used = {table.columns for table in tables}
            unused = {column for name in self._domain.attributes if (column := self._finer.columns([name])) not in used}
            roots = {column: self._finer.domain[column[0]].size ** (1 / 3) for column in unused}
            average = float(np.mean(list(roots.values())))
            return {columns: price(roots[columns] / average) for columns in candidates}
        looks = len(tables) < self._plan.new + self._plan.looks
        return dict.fromkeys(candidates, price(self._constants.look_weight if looks else 1.0))

    def _caps(self, shares: Floats, first: bool) -> tuple[int, ...]:
        """Return where residuals are cut.

        A model of constant shares, which the first step has, never errs by more than 1 minus the share of a class.
        """
        slack = np.where(shares == shares.max(), self._constants.major_slack, self._constants.minor_slack)
        caps = np.minimum(1.0, 1 - shares + (0.0 if first else slack))
        return tuple(int(cap) for cap in np.clip(np.ceil(caps * RESIDUAL_GRID), 1, RESIDUAL_GRID))

    def _choose(
        self, model: AdditiveModel, tables: Sequence[Table], caps: tuple[int, ...]
    ) -> tuple[tuple[str, ...], Fraction, Fraction]:
        """Return the columns of the next table, what the step costs, and what is left of that for the sums."""
        number, steps = len(tables) + 1, self._plan.steps
        self._meter.at(f"table {number} of {steps}", number - 1, steps, asked=len(self._asked))
        candidates = self._candidates(tables)
        prices = self._prices(candidates.values(), tables)
        (columns, price), paid = next(iter(prices.items())), Fraction(0)
        if len(candidates) > 1:
            # among new attributes a second best does little harm: the best is still there for the next step
            paid = min(self._plan.choice / (2 if len(tables) < self._plan.new else 1), min(prices.values()) / 2)
            choice = self._finer.table.select_residuals(model, list(prices), caps, paid)
            self._record("choice of a table", choice, number)
            columns = candidates[str(choice)]
            price = prices[columns]
        return columns, price, price - paid

    def _first_step(self, counts: Histogram, weak: bool) -> tuple[Table, Floats]:
        """Return the first table and the class shares. The model errs by the counts of the cells, which it asks for."""
        classes = len(self._domain.classes)
        shares = np.full(classes, 1 / classes) if weak else class_shares(counts)
        model = _on_grid(centred_log(shares), ())
        columns, price, epsilon = self._choose(model, (), self._caps(shares, first=True))
        cells = self._finer.table.histogram(*columns, self._target, epsilon=epsilon)
        self._record(table_title(self._finer.names(columns)), cells, 1)
        if weak:  # class counts alone say little
            shares = told_shares(counts, cells)
        return Table(columns, *from_counts(self._finer.domain, columns, cells, shares), price), shares

    def _step(self, intercept: tuple[float, ...], tables: Sequence[Table]) -> Table:
        """Return the table that a later step adds to the model."""
        model = _on_grid(intercept, tables)
        caps = self._caps(self._shares, first=False)
        columns, price, epsilon = self._choose(model, tables, caps)
        sums = self._finer.table.residual_sums(model, columns, caps, epsilon)
        self._record(table_title(self._finer.names(columns)), sums, len(tables) + 1)
        values, deviation = from_residuals(self._finer.domain, columns, sums, caps)
        rate = 1.0 if len(tables) < self._plan.new else self._constants.rate
        return Table(columns, rate * values, rate * deviation, price)

    def _record(self, question: str, release: Any, table: int) -> None:
        """Write down a question that was asked."""
        self._asked.append(AskedQuestion(question, release, table))


def _on_grid(intercept: Sequence[float], tables: Sequence[Table]) -> AdditiveModel:
    """Return a model on the kernel's grid of log odds."""
    terms = tuple((table.columns, np.rint(table.values * LOGIT_GRID).astype(np.int32)) for table in tables)
    return AdditiveModel(tuple(round(logit * LOGIT_GRID) for logit in intercept), terms)
