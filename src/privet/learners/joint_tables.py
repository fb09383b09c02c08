"""Joint tables: a sum of tables whose tables are all learned together, on a data set that is counted in rho.

Boosted tables pay for one table at a time, because pure epsilon adds up over tables. Rho adds up over squares of what
a record moves, so that one step can update every table for the price of a few. A fit does this:

1. Class counts give the first model, the same for every row. With little signal one attribute is chosen then, and its
   table is bought by itself: where one attribute says nearly everything, a little of all would drown it in noise.
2. A *probe* buys the residuals of that model in the cells of every attribute, positive and negative ones apart. Their
   sums say how many rows a cell has that can still be moved, its *curvature*; their differences say how large effects
   are, attribute by attribute (empirical Bayes).
3. Thirty *steps* follow. A step buys the residuals of the model so far in all tables at once, and moves every cell by
   its sum, divided by its curvature and damped by how much of it is noise. Attributes whose effects can be told from
   noise get more of the budget. This is a preconditioned gradient step for a logistic regression on all cells.
4. Ordered attributes have a table for each of their dyadic levels: cells by twos, fours, eights... So wide cells learn
   what fine ones are too noisy for. The levels of an attribute are one table in the end.
5. Three times in between, the pairs of attributes in which the model errs most are chosen, probed and added. In a
   pair that would have more than 64 cells an attribute has at most eight, merged by what the probe released.
6. Where signal is ample, classes may follow from conjunctions of three attributes and more. Twice tables that joined
   are offered with an attribute more, and those in which the model errs by more than luck join, too.
7. The model is the average of the second half of the steps, or of those after the last tables joined.

Everything but the questions works on releases, so the charges of the kernel are the whole cost. They add up to the
rho of the fit exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, count

import numpy as np
from numpy.typing import NDArray

from privet.conditions import merged_tables
from privet.kernel import (
    GRAIN,
    LOGIT_GRID,
    MAX_CELLS,
    RESIDUAL_GRID,
    AdditiveModel,
    Domain,
    MergedTable,
    MergedTables,
    Numeric,
    Rho,
)
from privet.learners.algorithm import Meter
from privet.learners.cells import divided
from privet.learners.log_odds import (
    AskedQuestion,
    Learned,
    centred_log,
    class_shares,
    from_counts,
    ordered_cells,
    table_title,
    told_shares,
)
from privet.models.model import Floats
from privet.models.tables import Table
from privet.release import Histogram, Release, ResidualTables
from privet.table import ProtectedTable

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class JointConstants:
    """The constants of the algorithm; one set for all data sets (docs/explanation/boosted.md).

    "Signal" is the number of rows times the square root of 2 rho / weight, where the weights of all tables are added:
    the number of rows over the deviation of the noise of a sum that costs an even share.
    """

    least_rows: float = 4.0  # rows over the noise of a sum that costs all of rho: below, the model is the class shares
    least_signal: float = 45.0  # with two classes, times sqrt(classes / 2): below it, pure epsilon buys more
    first_share: float = 0.6  # of rho, for a first table: first_share / (1 + (signal / first_signal)^2) ...
    first_signal: float = 50.0
    lone_share: float = 0.9  # ... and this much below lone_signal, where hardly more than one table can be told
    lone_signal: float = 10.0
    first_least: float = 0.1  # ... or nothing, if that is less than this
    first_choice: float = 0.4  # the part of it that chooses the attribute
    steps: int = 30
    probe: float = 0.10  # share of rho for the probe of all attributes
    cap: int = 512  # of a residual, in units of 1 / RESIDUAL_GRID
    damping: float = 0.75  # a step moves a cell by log(1 + signal / noise) / (damping * steps) of the whole way ...
    most: float = 0.3  # ... but by no more than this
    tau_one: float = 0.25  # how large effects are expected, in log odds: of attributes, divided by sqrt(levels)
    tau_pair: float = 0.4  # of pairs
    tau_zero: float = 0.2  # of the intercept
    tau_deviation: float = 0.7  # how unsure their logarithms are
    level_weight: float = 1.69  # of all levels of an ordered attribute, where one without an order has 1
    least_run: int = 6  # ordered cells of an attribute that has levels
    reallocated: float = 0.9  # part of a step's budget that follows its expected use
    averaged: float = 0.5  # the model is the average of the steps after this part
    insertions: tuple[int, ...] = (4, 9, 13)  # the steps before which pairs join
    pair_signal: float = 100.0  # so many pairs join at a time: sqrt(signal / pair_signal)
    pick: float = 0.01  # share of rho of one choice, at most ...
    pick_signal: float = 2.8e4  # ... pick_signal / (signal^2 * weight)
    widenings: tuple[int, ...] = (15, 19)  # the steps before which tables with an attribute more join ...
    wide_signal: float = 1200.0  # ... from this signal on, with two classes, times sqrt(classes / 2)
    widest: int = 4  # attributes of a table
    wide_most: int = 5  # so many join at a time, at most: what several share moves by the sum of their steps
    wide_pick: int = 4  # what their choice costs, where one of pairs costs 1
    tau_wide: float = 0.1  # how large their effects are expected
    luck: float = 5.0  # how far a table must be ahead to join, in deviations of the sampling error of one cell
    wide_cells: int = 2**14  # of a table with more than two attributes, in the finest cells of each
    offered: int = 200  # such tables compete at most
    max_cells: int = 128  # of a pair, and of a table of more attributes ...
    cell_signal: float = 4.0  # ... which needs at least this signal for each cell
    penalty: float = 0.8  # what a choice subtracts for a pair, in deviations of the sampling error of its cells
    coarse: int = 8  # cells of an attribute in a pair
    fine: int = 512  # cells of a number ...
    fine_signal: float = 1000.0  # ... from this signal on


JOINT = JointConstants()
COUNT_SHARE = Fraction(15, 1000)  # of rho, for the class counts
TAUS = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
ROUNDS = 30  # of the rule that divides a step's budget


@dataclass(frozen=True)
class JointTable:
    """One table that is updated: an attribute, a level of one, a pair, or a few attributes together.

    Parameters
    ----------
    columns : tuple of str
        Columns of the table that is asked.
    codes : tuple of arrays
        For each of them the cell of the group that each of its cells belongs to.
    weight : float
        Its share of the budget before anything is known.
    tau : float
        How large its effects are expected.
    """

    columns: tuple[str, ...]
    codes: tuple[Codes, ...]
    weight: float
    tau: float

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many cells it has along each column."""
        return tuple(int(codes.max()) + 1 for codes in self.codes)

    @cached_property
    def size(self) -> int:
        """How many cells it has."""
        return math.prod(self.shape)

    @cached_property
    def asked(self) -> MergedTable:
        """The group as the kernel is asked for it."""
        columns = [
            name if np.array_equal(codes, np.arange(len(codes))) else (name, codes.tolist())
            for name, codes in zip(self.columns, self.codes, strict=True)
        ]
        return merged_tables([columns])[0]

    @property
    def spread(self) -> Codes:
        """The cell of the group that each cell of its columns lies in, one row after the other."""
        return np.ravel_multi_index(np.ix_(*self.codes), self.shape).ravel()


class JointTables:
    """The tables that are updated, whose cells lie one table after the other.

    Parameters
    ----------
    groups : sequence of JointTable
    numbers : int
        How many values a cell has.
    """

    def __init__(self, groups: Sequence[JointTable], numbers: int) -> None:
        self.groups, self._numbers = tuple(groups), numbers
        self.sizes = np.array([group.size for group in groups])
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.asked = merged_tables([group.asked for group in groups])
        self.asked_and_all_rows = merged_tables([*self.asked, ()])
        # for each cell of all columns of a term, one term after the other: the cells that are added up to it
        shapes = {group.columns: tuple(map(len, group.codes)) for group in groups}
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        self._terms = dict(zip(shapes, zip(shapes.values(), ends, strict=True), strict=True))
        spread = [group.spread for group in groups]
        self._from = np.concatenate([cells + start for cells, start in zip(spread, self.starts, strict=True)])
        last = [self._terms[group.columns][1] for group in groups]
        to = np.concatenate([np.arange(end - len(cells), end) for cells, end in zip(spread, last, strict=True)])
        self._to = (to[:, None] * numbers + np.arange(numbers)).ravel()

    def terms(self, values: Floats) -> dict[tuple[str, ...], Floats]:
        """Return values [cell, number] as tables over their columns; levels of one attribute are added up."""
        ends = [end for _, end in self._terms.values()]
        sums = np.zeros(ends[-1] * self._numbers)
        np.add.at(sums, self._to, values[self._from].ravel())
        tables = np.split(sums.reshape(-1, self._numbers), ends[:-1])
        return {
            columns: own.reshape(*shape, self._numbers)
            for (columns, (shape, _)), own in zip(self._terms.items(), tables, strict=True)
        }


def joint_signal(domain: Domain, rows: float, rho: Fraction, constants: JointConstants = JOINT) -> float:
    """Return the number of rows over the noise of a sum that costs an even share of rho.

    Parameters
    ----------
    domain : Domain
    rows : float
    rho : Fraction
        Of a person.
    constants : JointConstants, optional

    Returns
    -------
    float
    """
    weight = 1.0 + sum(
        constants.level_weight if ordered_cells(domain, name) >= constants.least_run else 1.0
        for name in domain.attributes
    )
    return rows / domain.rows_per_person * math.sqrt(2 * float(rho) / weight)


def enough_signal(domain: Domain, signal: float, constants: JointConstants = JOINT) -> bool:
    """Return whether rho buys more than the pure epsilon it stands for: with little signal it does not."""
    return signal >= constants.least_signal * math.sqrt(len(domain.classes) / 2)


def enough_rows(domain: Domain, rows: float, rho: Fraction, constants: JointConstants = JOINT) -> bool:
    """Return whether a table is worth its noise; if not, the model is the class shares."""
    return rows / domain.rows_per_person * math.sqrt(2 * float(rho)) >= constants.least_rows


def learn_jointly(
    table: ProtectedTable,
    rho: Fraction,
    counts: Histogram,
    rows: float,
    meter: Meter,
    *,
    pairs: bool = True,
    constants: JointConstants = JOINT,
) -> Learned:
    """Learn all tables together, for what `counts` leave of `rho`.

    Parameters
    ----------
    table : ProtectedTable
        Of a data set that is counted in rho.
    rho : Fraction
        What the whole fit costs, `counts` included.
    counts : Histogram
        Released class counts.
    rows : float
        The number of rows, public or released.
    meter : Meter
        Where progress is reported.
    pairs : bool, default True
        Use tables of several attributes too.
    constants : JointConstants, optional

    Returns
    -------
    Learned
    """
    return _JointFit(table, rho, counts, rows, meter, pairs, constants).run()


class _JointFit:
    """One fit of joint tables: its groups, and for each of their cells its value and what is known of it."""

    def __init__(
        self,
        table: ProtectedTable,
        rho: Fraction,
        counts: Histogram,
        rows: float,
        meter: Meter,
        pairs: bool,
        constants: JointConstants,
    ) -> None:
        self._declared, self._constants, self._meter = table.domain, constants, meter
        self._classes = len(table.domain.classes)
        self._numbers = 1 if self._classes == 2 else self._classes
        self._asked = [AskedQuestion("class counts", counts, 0)]
        self._total, self._left = rho, rho - (counts.rho or 0)
        self._signal = joint_signal(table.domain, rows, rho, constants)
        self._attribute_of = {name: name for name in table.domain.attributes}
        self._base = table
        self._table = self._with_fine_cells(table)
        self._tables = JointTables(self._one_way(), self._numbers)
        self._single = self._tables.groups
        self._weight = 1.0 + sum(group.weight for group in self._single)
        # the square of how far a record moves one table, and with its squared records a person
        cap = constants.cap / RESIDUAL_GRID
        self._squared = cap**2 * (1 if self._classes == 2 else 2) * table.domain.rows_per_person**2
        self._counts, self._rows = counts, rows
        self._set_shares(class_shares(counts))
        self._values, self._curvatures, self._taus = (np.zeros((0, self._numbers)) for _ in range(3))
        self._born = np.zeros(0)
        pairable = pairs and len(table.domain.attributes) > 1
        self._insertions = constants.insertions if pairable else ()
        self._widenings = constants.widenings if pairable and self._room_for_wider() else ()
        most = math.ceil(math.comb(len(table.domain.attributes), 2) / max(1, len(self._insertions)))
        self._joining = max(1, min(round(math.sqrt(self._signal / constants.pair_signal)), most))
        pick = min(constants.pick, constants.pick_signal / (self._signal**2 * self._weight))
        self._pick_share = pick * self._joining
        self._pair_share = constants.probe * min(self._joining / self._weight, 1.0)
        self._first: dict[tuple[str, ...], tuple[Floats, Floats]] = {}  # values and deviations of the first table
        self._merged: dict[str, tuple[str, Codes]] = {}
        self._pairs: dict[tuple[str, ...], JointTable] = {}  # those that may join
        self._owned: list[tuple[str, ...]] = []  # tables of several attributes that joined

    def _set_shares(self, shares: Floats) -> None:
        """Begin with a model of constant class shares."""
        logs, products = np.array(centred_log(shares)), shares * (1 - shares)
        self._intercept = np.array([logs[1] - logs[0]]) if self._numbers == 1 else logs
        self._bound = self._rows * (products[:1] if self._numbers == 1 else products)  # the curvature of the model
        self._curvature = self._bound

    # -- the order of things ------------------------------------------------------------------

    def run(self) -> Learned:
        """Probe, take the steps, and return the average of the later ones."""
        constants = self._constants
        share = constants.lone_share if self._signal < constants.lone_signal else constants.first_share
        first = share / (1 + (self._signal / constants.first_signal) ** 2)
        if first >= constants.first_least and len(self._declared.attributes) > 1:
            self._buy_first(first)
            self._total = self._left  # shares are those of what is left for all tables
        self._pick, self._pair_probe = self._share(self._pick_share), self._share(self._pair_share)
        probed = self._probe(self._tables, self._share(constants.probe), "probe of all attributes")
        rhos = self._plan_steps(0)
        self._values = self._values + self._centred(self._gains * probed)
        sums, intercepts, kept = np.zeros_like(self._values), np.zeros_like(self._intercept), 0
        for step in range(constants.steps):
            self._meter.at(f"step {step + 1} of {constants.steps}", step, constants.steps, asked=len(self._asked))
            if step in self._insertions + self._widenings:
                if self._insert(step):  # the average is of models with the same tables
                    sums, intercepts, kept = np.zeros_like(self._values), np.zeros_like(self._intercept), 0
                rhos = self._plan_steps(step)
                sums = np.concatenate([sums, np.zeros((len(self._values) - len(sums), self._numbers))])
            self._step(step, rhos if step < constants.steps - 1 else divided_rho(self._left, self._shares))
            if step >= constants.averaged * constants.steps:
                sums, intercepts, kept = sums + self._values, intercepts + self._intercept, kept + 1
        self._values, self._intercept = sums / kept, intercepts / kept
        return self._learned()

    def _share(self, part: float) -> Fraction:
        """Return a part of what there was at the beginning, on the grid of losses."""
        return Rho(self._total * Fraction(max(1, int(part * 10**9)), 10**9)).value

    def _plan_steps(self, step: int) -> list[Fraction]:
        """Plan the steps until the next tables join; return what each costs, table by table."""
        later = [self._price_of_choice(other) for other in self._insertions + self._widenings if other > step]
        reserved = sum(later, Fraction(0)) + len(later) * self._pair_probe
        price = (self._left - reserved) / (self._constants.steps - step)
        self._plan(float(price))
        return divided_rho(price, self._shares)

    def _price_of_choice(self, step: int) -> Fraction:
        """Return what the choice of the tables that join before a step costs."""
        return self._pick * (self._constants.wide_pick if step in self._widenings else 1)

    # -- questions ------------------------------------------------------------------------------

    def _ask(
        self, tables: MergedTables, rhos: Sequence[Fraction], title: str, signs_apart: bool = False
    ) -> ResidualTables:
        """Buy the residuals of the model in some tables."""
        cap = self._constants.cap
        release = self._table.residual_tables(self._model(), tables, rhos, cap=cap, signs_apart=signs_apart)
        self._record(title, release)
        return release

    def _record(self, title: str, release: Release) -> None:
        self._asked.append(AskedQuestion(title, release, 0))
        self._left -= release.about.loss

    def _buy_first(self, part: float) -> None:
        """Choose the attribute in which a model of constant shares errs most, and buy its table by itself.

        The residuals of such a model are functions of counts, which also say how large the classes are. Shares are even
        as far as noise hides how large they are: else noise would weigh one class more than another in the choice.
        """
        constants, domain, price = self._constants, self._declared, self._share(part)
        self._set_shares(told_shares(self._counts))
        sizes = [domain[name].size for name in domain.attributes]
        paid = self._share(part * constants.first_choice)
        chosen = self._base.top_residual_tables(
            self._model(),
            [(name,) for name in domain.attributes],
            1,
            Rho(paid),
            cap=constants.cap,
            penalties=self._penalties(sizes),
        )
        self._record("choice of an attribute", chosen)
        columns = (domain.attributes[chosen.indices[0]],)
        counts = self._base.histogram(*columns, domain.target_column.name, epsilon=Rho(price - paid))
        self._record(table_title(columns), counts)
        shares = told_shares(self._counts, counts)
        self._set_shares(shares)
        values, deviation = from_counts(domain, columns, counts, shares)
        if self._numbers == 1:  # log odds of the second class, instead of half of them for each
            values, deviation = values[..., 1:] - values[..., :1], 2 * deviation[..., 1:]
        self._first[columns] = values, deviation

    def _penalties(self, sizes: Sequence[int]) -> list[int]:
        """Return what a choice subtracts for tables of so many cells: the sampling error of their sums."""
        penalty = self._constants.penalty * math.sqrt(float(self._curvature.sum())) * RESIDUAL_GRID
        return [int(penalty * math.sqrt(size)) for size in sizes]

    def _probe(self, tables: JointTables, price: Fraction, title: str) -> Floats:
        """Probe tables that join: note their curvatures and effects, and return their residual sums."""
        weights, sizes = np.array([group.weight for group in tables.groups]), tables.sizes
        self._values = np.concatenate([self._values, np.zeros((sizes.sum(), self._numbers))])
        answer = self._ask(tables.asked, divided_rho(price, weights / weights.sum()), title, signs_apart=True)
        assert answer.negative is not None
        positive, negative = answer.positive / RESIDUAL_GRID, answer.negative / RESIDUAL_GRID
        deviations = np.array([noise.deviation / RESIDUAL_GRID for noise in answer.noises])
        noise = np.repeat(deviations, sizes)[:, None]
        sums, halves = positive - negative, (positive + negative) / 2
        totals = np.add.reduceat(positive + negative, tables.starts) / 2
        # inverse variances: of the totals of each table, and of the curvature so far, which has shrunk by a tenth or so
        errors = np.concatenate(
            [
                np.repeat((deviations**2 / 2 * sizes)[:, None], self._numbers, axis=1),
                (0.1 * self._curvature[None] + 1) ** 2,
            ]
        )
        precision = (1 / errors).sum(axis=0)
        average = (np.concatenate([totals, self._curvature[None]]) / errors).sum(axis=0) / precision
        shrunk = mean_above_zero(average, 1 / np.sqrt(precision), self._bound / 2)
        self._curvature = np.minimum(shrunk, self._bound)
        prior = self._curvature / np.repeat(sizes, sizes)[:, None]
        curvatures = np.maximum(mean_above_zero(halves, noise / math.sqrt(2), prior), 1e-3 * prior + 1e-6)
        taus = np.empty_like(curvatures)
        for group, start in zip(tables.groups, tables.starts, strict=True):
            cells = slice(start, start + group.size)
            for number in range(self._numbers):
                taus[cells, number] = effect_size(
                    sums[cells, number],
                    curvatures[cells, number],
                    2 * float(noise[start, 0]) ** 2,
                    group.tau,
                    self._constants.tau_deviation,
                )
        self._curvatures = np.concatenate([self._curvatures, curvatures])
        self._taus = np.concatenate([self._taus, taus])
        return np.asarray(sums)

    def _step(self, step: int, rhos: Sequence[Fraction]) -> None:
        """Take one step in all tables and the intercept."""
        answer = self._ask(self._tables.asked_and_all_rows, rhos, f"step {step + 1}")
        sums = answer.positive / RESIDUAL_GRID
        self._values = self._values + self._centred(self._gains * sums[:-1])
        move = self._intercept_gain * sums[-1]
        self._intercept = self._intercept + (move if self._numbers == 1 else move - move.mean())

    def _insert(self, step: int) -> bool:
        """Choose the pairs, or the tables of more attributes, in which the model errs most; return whether any join.

        Tables of more attributes compete with some of a single one, which are there already: where one of these is
        chosen, none of the others errs by more than the best of so many would by luck.
        """
        if not self._merged:
            self._merge_cells()
            self._pairs = self._candidates(combinations(self._declared.attributes, 2))
        wider = step in self._widenings
        groups = self._candidates(self._wider()) if wider else self._pairs
        names = list(groups)
        if not names:
            return False
        joining = min(self._joining, len(names), self._constants.wide_most if wider else len(names))
        price = Rho(self._price_of_choice(step) * joining / self._joining)
        known = sorted(self._single, key=lambda group: group.size)[:joining] if wider else []
        ahead = int(self._constants.luck * math.sqrt(float(self._curvature.sum())) * RESIDUAL_GRID)
        what = "larger tables" if wider else "pairs"
        chosen = self._table.top_residual_tables(
            self._model(),
            [group.asked for group in [*groups.values(), *known]],
            joining,
            price,
            cap=self._constants.cap,
            penalties=[*self._penalties([group.size for group in groups.values()]), *[-ahead] * len(known)],
        )
        self._record(f"choice of {what}", chosen)
        joined = {names[index]: groups[names[index]] for index in chosen.indices if index < len(names)}
        if not joined:
            return False
        self._owned += joined
        self._pairs = {pair: group for pair, group in self._pairs.items() if pair not in joined}
        tables, before = JointTables([*joined.values()], self._numbers), len(self._values)
        self._born = np.concatenate([self._born, np.full(tables.sizes.sum(), step)])
        self._tables = JointTables([*self._tables.groups, *tables.groups], self._numbers)
        probed = self._probe(tables, self._pair_probe, f"probe of {what}")
        self._plan_steps(step)
        moves = np.zeros_like(self._values)
        moves[before:] = self._gains[before:] * probed
        self._values = self._values + self._centred(moves)
        return True

    def _candidates(self, offered: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], JointTable]:
        """Return the groups of attributes that are offered and have cells enough, but not too many, by attributes."""
        limit = min(self._constants.max_cells, self._signal / self._constants.cell_signal)
        groups = {names: self._together(names) for names in offered if names not in self._owned}
        return {names: group for names, group in groups.items() if group.size <= limit and min(group.shape) > 1}

    # -- what follows from releases -------------------------------------------------------------

    def _plan(self, price: float) -> None:
        """Divide the budget of a step among groups and intercept by what it will teach, and set the gains that follow.

        A cell with curvature h and effects of size tau gains about tau^4 h^3 times what is paid for it, until noise is
        no more what hides it; the shares x where all gain alike are found by x <- x sqrt(gain).
        """
        constants, steps = self._constants, self._constants.steps
        sizes = self._tables.sizes
        member = np.append(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        base = np.array([*(group.weight for group in self._tables.groups), 1.0])
        base /= base.sum()
        noise = self._squared / (2 * price)  # the variance of a number that costs the whole step
        curvatures = np.concatenate([self._curvatures, self._curvature[None]])
        taus = np.concatenate([self._taus, np.full((1, self._numbers), constants.tau_zero)])
        top = 0.5 * curvatures**3 * taus**4 * steps * noise
        slope = (taus**2 * curvatures**2 + curvatures) * steps
        shares = base.copy()
        for _ in range(ROUNDS):
            use = np.bincount(member, (top / (slope * shares[member][:, None] + noise) ** 2).sum(axis=1))
            shares = np.maximum(shares * np.sqrt(use), 1e-300)
            shares = np.maximum(shares / shares.sum(), 1e-6)
            shares /= shares.sum()
        self._shares = constants.reallocated * shares + (1 - constants.reallocated) * base
        if len(self._born) < len(self._values):
            self._born = np.concatenate([self._born, np.zeros(len(self._values) - len(self._born))])
        left = steps - np.append(self._born, 0)[:, None]
        variance = (noise / self._shares[member])[:, None]
        self._ratios = taus**2 * curvatures**2 * left / (variance + curvatures * left)
        gains = np.minimum(np.log1p(self._ratios) / (constants.damping * left), constants.most) / curvatures
        gains *= 1.0 if self._numbers == 1 else (self._classes - 1) / self._classes
        self._gains, self._intercept_gain = gains[:-1], gains[-1]

    def _centred(self, moves: Floats) -> Floats:
        """Subtract from each group its mean, weighted by curvature, and from each cell the mean of its classes."""
        starts = self._tables.starts
        means = np.add.reduceat(moves * self._curvatures, starts) / np.add.reduceat(self._curvatures, starts)
        centred = moves - np.repeat(means, self._tables.sizes, axis=0)
        return centred if self._numbers == 1 else centred - centred.mean(axis=1, keepdims=True)

    def _model(self) -> AdditiveModel:
        """Return the model so far, on the kernel's grid of log odds."""

        def on_grid(values: Floats) -> NDArray[np.int32]:
            whole = np.zeros((*values.shape[:-1], self._classes), dtype=np.int32)
            np.rint(values * LOGIT_GRID, out=whole[..., -self._numbers :], casting="unsafe")
            return whole

        terms = tuple((columns, on_grid(values)) for columns, values in self._terms().items())
        return AdditiveModel(tuple(on_grid(self._intercept).tolist()), terms)

    def _terms(self) -> dict[tuple[str, ...], Floats]:
        """Return the values of all tables, with the first one in that of its attribute."""
        terms = self._tables.terms(self._values) if len(self._values) else {}  # none before the probe
        for columns, (values, _) in self._first.items():
            terms[columns] = terms.get(columns, 0.0) + values
        return terms

    def _learned(self) -> Learned:
        """Return one table for each attribute, and the pairs, over the declared columns in the cells that were used."""

        def by_class(values: Floats) -> Floats:
            return values if self._numbers > 1 else np.concatenate([-values, values], axis=-1) / 2

        # posterior variance of a cell: that of its effects, over 1 + signal to noise of all steps
        variances = self._tables.terms(self._taus**2 / (1 + self._ratios[:-1]))
        for columns, (_, deviation) in self._first.items():
            variances[columns] = variances[columns] + deviation**2
        finest = {name: self._declared[name] for name in self._declared.attributes}
        for columns in variances:
            for column in columns:
                name = self._attribute_of[column]
                if self._table.domain[column].size > finest[name].size:
                    finest[name] = self._table.domain.numeric(column).named(name)
        tables = []
        for columns, values in self._terms().items():
            own, deviation = by_class(values), np.abs(by_class(np.sqrt(variances[columns])))
            names = tuple(self._attribute_of[column] for column in columns)
            for axis, (column, name) in enumerate(zip(columns, names, strict=True)):
                source, target = self._table.domain[column], finest[name]
                if isinstance(source, Numeric) and isinstance(target, Numeric) and source.size < target.size:
                    bins = _cells_of(source, target)
                    own, deviation = own.take(bins, axis=axis), deviation.take(bins, axis=axis)
            tables.append(Table(names, own, deviation))
        domain = replace(
            self._declared, columns=tuple(finest.get(column.name, column) for column in self._declared.columns)
        )
        intercept = self._intercept - self._intercept.mean() if self._numbers > 1 else by_class(self._intercept)
        return Learned(tuple(intercept.tolist()), tuple(tables), tuple(self._asked), domain=domain)

    # -- cells ------------------------------------------------------------------------------------

    def _with_fine_cells(self, table: ProtectedTable) -> ProtectedTable:
        """Return the table with a copy of each number in fine cells, if there is enough signal for them."""
        self._fine: dict[str, str] = {}
        if self._signal < self._constants.fine_signal:
            return table
        copies = []
        for name in table.domain.attributes:
            column = table.domain[name]
            if isinstance(column, Numeric):
                fine = divided(column, self._constants.fine // column.bin_count)
                if fine != column:
                    copies.append(self._copy(name, fine))
        finer = self._with_copies(table, copies)
        self._fine = {self._attribute_of[copy.name]: copy.name for copy in copies if copy.name in finer.domain}
        return finer

    def _copy(self, name: str, column: Numeric) -> Numeric:
        """Return a column under a name of its own, as a copy of an attribute."""
        used = {*self._declared.names, self._declared.person, *self._attribute_of}
        names = (f"{name[:900]} (cells {number})" for number in count(1))
        copy = column.named(next(other for other in names if other not in used))
        self._attribute_of[copy.name] = name
        return copy

    def _with_copies(self, table: ProtectedTable, copies: Sequence[Numeric]) -> ProtectedTable:
        if not copies:
            return table
        domain = replace(table.domain, columns=(*table.domain.columns, *copies))
        return table.with_cells(domain, {copy.name: self._attribute_of[copy.name] for copy in copies})

    def _one_way(self) -> list[JointTable]:
        """Return the groups of single attributes: levels of ordered ones, and others as they are."""
        constants, groups = self._constants, []
        for name in self._declared.attributes:
            column = self._fine.get(name, name)
            size, run = self._table.domain[column].size, ordered_cells(self._table.domain, column)
            if run < constants.least_run:
                groups.append(JointTable((column,), (np.arange(size),), 1.0, constants.tau_one))
                continue
            levels = [level for level in range(run.bit_length()) if (run - 1) >> level >= 1]
            for level in levels:
                codes = np.arange(size)
                codes[:run] >>= level
                codes[run:] += codes[run - 1] + 1 - run  # missing and other values have cells of their own
                weight, tau = constants.level_weight / len(levels), constants.tau_one / math.sqrt(len(levels))
                groups.append(JointTable((column,), (codes,), weight, tau))
        return groups

    def _merge_cells(self) -> None:
        """Merge the cells of each attribute to a few of equal curvature, for pairs.

        Ordered cells are merged in their order, others in the order of their values. Numbers get a copy in these
        cells, so that a pair of two of them has few cells wherever it is counted.
        """
        copies: list[Numeric] = []
        curvatures, values = (np.split(own, self._tables.starts[1:]) for own in (self._curvatures, self._values))
        merged: dict[str, Codes] = {}
        coarse: dict[str, str] = {}
        for name in self._declared.attributes:
            column = self._fine.get(name, name)
            finest = next(index for index, group in enumerate(self._tables.groups) if group.columns == (column,))
            own = self._table.domain[column]
            run, mass = ordered_cells(self._table.domain, column), curvatures[finest].sum(axis=1)
            if own.size <= self._constants.coarse:
                merged[name] = np.arange(own.size)
                continue
            leveled = run >= self._constants.least_run
            order = np.arange(run) if leveled else np.argsort(values[finest][:, 0], kind="stable")
            middle = (np.cumsum(mass[order]) - mass[order] / 2) / mass[order].sum()
            segment = np.minimum((middle * self._constants.coarse).astype(np.int64), self._constants.coarse - 1)
            codes = np.empty(own.size, dtype=np.int64)
            codes[order] = np.unique(segment, return_inverse=True)[1]
            if leveled:
                codes[run:] = codes[run - 1] + 1 + np.arange(own.size - run)
            merged[name] = codes
            if leveled and isinstance(own, Numeric):
                cuts = np.flatnonzero(np.diff(codes[:run])) + 1
                starts = (0, *own.thresholds)
                edges = tuple(own.value_at(starts[cut]) for cut in cuts)
                if edges:
                    copies.append(self._copy(name, replace(own, bins=None, edges=edges)))
                    coarse[name] = copies[-1].name
        fine = [self._table.domain.numeric(copy) for copy in self._fine.values()]
        self._table = self._with_copies(self._base, [*fine, *copies])
        for name in self._declared.attributes:
            copy = coarse.get(name)
            if copy is not None and copy in self._table.domain:
                self._merged[name] = copy, np.arange(self._table.domain[copy].size)
            else:
                self._merged[name] = self._fine.get(name, name), merged[name]

    def _together(self, names: tuple[str, ...]) -> JointTable:
        """Return the group of some attributes, merged as far as it takes to have few cells: the largest one first.

        Cells without an order are merged by what they add alone, which says little of what they add together.
        """
        columns = [self._merged[name] for name in names]
        codes = [np.arange(self._table.domain[column].size) for column, _ in columns]
        for place in sorted(range(len(names)), key=lambda place: -len(codes[place])):
            if math.prod(int(own.max()) + 1 for own in codes) > self._constants.coarse**2:
                codes[place] = columns[place][1]
        tau = self._constants.tau_pair if len(names) == 2 else self._constants.tau_wide
        return JointTable(tuple(column for column, _ in columns), tuple(codes), 1.0, tau)

    def _room_for_wider(self) -> bool:
        """Return whether there is signal for tables of more than two attributes, and attributes few enough cells."""
        least = self._constants.wide_signal * math.sqrt(self._classes / 2)
        smallest = sorted(map(self._finest_size, self._declared.attributes))[:3]
        return self._signal >= least and len(smallest) == 3 and math.prod(smallest) <= self._constants.wide_cells

    def _finest_size(self, name: str) -> int:
        """Return how many cells an attribute has in the model."""
        return self._table.domain[self._fine.get(name, name)].size

    def _wider(self) -> list[tuple[str, ...]]:
        """Return the tables of several attributes that joined, with an attribute more each, as far as cells allow."""
        names, classes = self._declared.attributes, self._classes
        found: dict[tuple[str, ...], int] = {}
        room = MAX_CELLS // (2 * classes) - sum(len(group.codes[0]) for group in self._single)
        for table in self._owned:
            for other in names:
                wider = tuple(name for name in names if name in table or name == other)
                cells = math.prod(map(self._finest_size, wider))
                if not len(table) < len(wider) <= self._constants.widest or cells > self._constants.wide_cells:
                    continue
                if wider not in found and len(found) < self._constants.offered and cells <= room:
                    found[wider] = cells
                    room -= cells
        return list(found)


def _cells_of(source: Numeric, target: Numeric) -> Codes:
    """Return the cell of a coarser column that each cell of a finer one lies in; missing values are last in both."""
    return source.bin_of(np.array([0, *target.thresholds, *([-1] * target.missing)], dtype=np.int64))


def divided_rho(price: Fraction, shares: Floats) -> list[Fraction]:
    """Return what each share of a price costs, rounded down to grains; the last one takes the rest.

    >>> divided_rho(Fraction(1, 2), np.array([0.25, 0.75]))
    [Fraction(1, 8), Fraction(3, 8)]
    """
    above, below = price.numerator * GRAIN, price.denominator
    grains = [max(round(share * 10**9), 1) * above // (below * 10**9) for share in shares[:-1].tolist()]
    return [Fraction(own, GRAIN) for own in (*grains, above // below - sum(grains))]


# -- estimates ------------------------------------------------------------------------------------


def mean_above_zero(seen: Floats, error: Floats, prior: Floats) -> Floats:
    """Return the posterior mean of numbers above 0 that were seen with normal errors.

    Parameters
    ----------
    seen, error : arrays of float
        What was seen, and the standard deviation of its error.
    prior : array of float
        The mean of the exponential prior.

    Returns
    -------
    array of float

    >>> mean_above_zero(np.array([50.0, -50.0]), np.array([1.0, 10.0]), np.array([100.0, 100.0])).round(1).tolist()
    [50.0, 1.8]
    >>> mean_above_zero(np.array([-1e9]), np.array([1.0]), np.array([1.0])).round(12).tolist()
    [1e-09]
    """
    from scipy.special import log_ndtr  # with the first fit: it takes long to import

    middle = seen - error**2 / prior
    scaled = middle / error
    mean = middle + error * np.exp(-(scaled**2) / 2 - math.log(2 * math.pi) / 2 - log_ndtr(scaled))
    # far below zero the sum cancels: there it is error / |scaled|, up to a part of 2 / scaled^2 (Mills' ratio)
    return np.asarray(np.where(scaled < -30, -error / np.minimum(scaled, -1), mean))


def effect_size(sums: Floats, curvatures: Floats, variance: float, expected: float, deviation: float) -> float:
    """Return how large the effects of a table are: the root of the posterior mean of tau^2.

    Parameters
    ----------
    sums : array of float
        Residual sums of its cells, of variance tau^2 h^2 + h + `variance` where h is the curvature.
    curvatures : array of float
    variance : float
        Of the noise.
    expected, deviation : float
        A priori log tau is normal around log `expected`.

    Returns
    -------
    float
    """
    variances = TAUS[:, None] ** 2 * curvatures**2 + variance + curvatures
    logs = -0.5 * (np.log(variances) + sums**2 / variances).sum(axis=1)
    logs -= 0.5 * (np.log(TAUS / expected) / deviation) ** 2
    weights = np.exp(logs - logs.max())
    return math.sqrt(float((weights * TAUS**2).sum() / weights.sum()))
