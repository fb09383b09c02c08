"""The rows behind a published forest: the reconstruction attack of the literature, turned on our own models.

A forest that counts without noise gives its training rows away (Ferry, Fukasawa, Pascal and Vidal 2024, "Trained
random forests completely reveal your dataset"). The sequel (Gorgé, Ferry, Gambs and Vidal 2025, "Training set
reconstruction from differentially private forests: how effective is DP?", arXiv 2502.05307) asks the same of noisy
counts. Its attacker knows what a model file tells: the structure of the trees, the noisy class counts of their leaves
and the scale of the noise. They look for the data set of maximum likelihood.

Rows are exchangeable, so a data set is a number n >= 0 for each cell of the public domain, classes included. A leaf
count is a sum of such numbers, A n in all, and two-sided geometric noise makes the released y less likely by
exp(-rate |y - A n|). The best n minimises the sum of rate |y - A n|: a mixed integer linear program. Its relaxation,
rounded, is a first answer and a bound; branch and bound improves on both while there is time. What remains between
them is the `gap`.

Where noise drowns the counts the likelihood alone puts all rows into a few cells, which is worse than a blind guess.
An attacker who knows that rows are independent and uniform knows better: n stands for rows! / product of n! tables,
so a k-th row in the same cell costs log k. That is convex, so the program stays linear.

Nothing that epsilon promises forbids to reconstruct something: it bounds what is learned about one person. So the
second attacker knows everything but the class of one person and guesses it by the likelihood ratio. To change a class
is to take a row out and to put one in, which costs 2 epsilon: they are right at most with probability
e^(2 epsilon) / (1 + e^(2 epsilon)). Who does better has found a broken promise.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import QuestionError
from privet.kernel import OTHER, Column, Domain, Nominal, Numeric, as_epsilon, text_of
from privet.learners.estimator import TreeClassifier
from privet.learners.estimators import JagannathanForestClassifier
from privet.models.model import Floats, Integers
from privet.models.tree import Ensemble

Make = Callable[[Fraction, Domain, int], TreeClassifier]  # epsilon, domain, seed of the public coins
Progress = Callable[[str], None]

MOST_CELLS = 5000
SILENT = as_epsilon(100_000)  # an epsilon at which no noise is to be seen
BLIND = 20  # how many random tables blind guessing is the mean of
FALSE_ALARM = 1e-6
TOLERANCE = 1e-6  # of the solver
COPIES = 4  # the program asks log k of a k-th row in a cell up to here, and no more of later ones


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """The rows found, the logarithm of their likelihood, and how far below the best they may be, in the same unit.

    With `uniform` the best are the most probable ones: the likelihood times the number of tables they stand for.
    """

    rows: pd.DataFrame
    likelihood: float
    gap: float


def reconstruct(
    model: Ensemble, *, rows: int | None = None, uniform: bool = False, seconds: float = 10.0
) -> Reconstruction:
    """The rows that make the counts of a model most likely, `rows` of them where their number is known.

    With `uniform` they are the most probable ones for somebody who knows that rows are independent and uniform. Every
    tree must have counted every row once. Counts that were changed after their release, by pruning or by
    consistency, are taken for noisy ones with the deviation that the model states. A number is found as the middle of
    its cell: a bin, cut where a tree cuts it.
    """
    _check(model)
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 0):
        raise QuestionError(f"rows must be a whole number from 0, not {rows!r}.")
    if uniform and rows is None:
        raise QuestionError("how probable uniform rows are depends on their number; give rows.")
    if not 0 < seconds < math.inf:
        raise QuestionError(f"seconds must be a number above 0, not {seconds!r}.")
    cells = _cells(model)
    program = _program(model, cells, rows, uniform)
    found, gap = _solved(program, seconds)
    table = cells.loc[np.repeat(cells.index, found)].reset_index(drop=True).infer_objects()
    return Reconstruction(table, program.likelihood(found), gap)


def mismatch(found: pd.DataFrame, truth: pd.DataFrame) -> float:
    """The share of wrong values after the best matching of rows; all values of a row without a partner are wrong.

    >>> truth = pd.DataFrame({"sex": ["f", "m"], "ill": [0, 1]})
    >>> mismatch(truth[::-1], truth), mismatch(pd.DataFrame({"sex": ["m", "m"], "ill": [1, 0]}), truth)
    (0.0, 0.25)
    """
    from scipy.optimize import linear_sum_assignment

    if set(found.columns) != set(truth.columns):
        raise QuestionError("the two tables have different columns; compare those of one domain.")
    most = max(len(found), len(truth))
    if most == 0 or truth.shape[1] == 0:
        return 0.0
    wrong = np.zeros((len(found), len(truth)))
    for name in truth.columns:
        wrong += _texts(found[name])[:, None] != _texts(truth[name])[None, :]
    pairs = wrong[linear_sum_assignment(wrong)]
    return float(pairs.sum() / truth.shape[1] + most - len(pairs)) / most


def inference(model: Ensemble, truth: pd.DataFrame) -> Floats:
    """The chance that the class of each row is guessed right by somebody who knows all the rest of the table.

    They take the class that makes the leaf counts most likely, and toss a coin between equals. Only leaves are looked
    at: persons who share none, in any tree, are independent trials.
    """
    _check(model)
    own, classes = _classes(model, truth), len(model.domain.classes)
    losses = np.zeros((len(truth), classes))
    for tree, ends in zip(model.trees, _ends(model, truth), strict=True):
        counts = np.zeros_like(tree.counts)
        np.add.at(counts, (ends, own), 1)
        left = tree.counts[ends] - (counts[ends] - np.eye(classes)[own])  # what the others do not account for
        losses += _rates(tree.deviation)[ends, None] * (np.abs(left - 1) - np.abs(left))
    best = losses <= losses.min(axis=1, keepdims=True) + 1e-9
    return np.asarray(best[np.arange(len(own)), own] / best.sum(axis=1))


def ceiling(epsilon: Fraction | float, classes: int = 2) -> float:
    """The probability, at most, of guessing the class of one row right, all classes being as likely before.

    >>> round(ceiling(0.5), 3), round(ceiling(0.5, classes=10), 3), ceiling(1000)
    (0.731, 0.232, 1.0)
    """
    return 1 / (1 + (classes - 1) * math.exp(-2 * float(epsilon)))


def forest(epsilon: Fraction, domain: Domain, seed: int) -> TreeClassifier:
    """The forest that `curve` attacks: thirty random trees tell every row apart where there is no noise."""
    return JagannathanForestClassifier(epsilon, domain=domain, n_estimators=30, max_depth=3, random_state=seed)


def curve(
    epsilons: Iterable[object],
    *,
    make: Make = forest,
    rows: int = 30,
    attributes: int = 6,
    repeats: int = 3,
    persons: int = 2000,
    seconds: float = 10.0,
    rng: np.random.Generator,
    progress: Progress = lambda text: None,
) -> list[dict[str, Any]]:
    """Both attacks at each epsilon, and last without noise (epsilon None): a dict of numbers for each.

    Tables of independent, uniform bits are reconstructed, `rows` being known, the same tables and structures at every
    epsilon. `mismatch` is the mean over `repeats` of them, `informed` that of an attacker who knows that rows are
    uniform, `blind` that of random tables of as many rows, `gap` the largest gap. `inference` is the share of classes
    guessed right and `ceiling` its bound: above it by more than `margin` happens to a forest that keeps its promise
    less than once in a million runs. For this every one of `persons` people has a leaf of their own, so that their
    noise is independent; the others are known anyway.
    """
    for name, value in (("rows", rows), ("attributes", attributes), ("repeats", repeats), ("persons", persons)):
        if value < 1:
            raise QuestionError(f"{name} must be at least 1, not {value}.")
    domain = _domain(*(Nominal(f"a{i}", (0, 1)) for i in range(attributes)))
    alone = _domain(Nominal("person", tuple(range(persons))))
    tables = [(_uniform(domain, rows, rng), int(rng.integers(2**31))) for _ in range(repeats)]
    blind = [mismatch(_uniform(domain, rows, rng), truth) for truth, _ in tables for _ in range(BLIND)]
    margin = math.sqrt(-math.log(FALSE_ALARM) / (2 * persons))  # Hoeffding
    points: list[dict[str, Any]] = []
    for epsilon in [*(as_epsilon(each) for each in epsilons), None]:
        asked = SILENT if epsilon is None else epsilon
        progress("reconstructing without noise" if epsilon is None else f"reconstructing at epsilon {float(asked):g}")
        wrong, gaps = [], []
        for truth, seed in tables:
            model = _fitted(make, asked, domain, truth, seed)
            both = [reconstruct(model, rows=rows, uniform=known, seconds=seconds) for known in (False, True)]
            wrong.append([mismatch(each.rows, truth) for each in both])
            gaps += [each.gap for each in both]
        likeliest, informed = np.mean(wrong, axis=0).tolist()
        people = _uniform(alone, persons, rng).assign(person=np.arange(persons))
        guessed = inference(_fitted(make, asked, alone, people, int(rng.integers(2**31))), people)
        points.append(
            {
                "epsilon": None if epsilon is None else float(epsilon),
                "mismatch": likeliest,
                "informed": informed,
                "blind": float(np.mean(blind)),
                "gap": max(gaps),
                "inference": float(guessed.mean()),
                "ceiling": 1.0 if epsilon is None else ceiling(epsilon),
                "margin": margin,
            }
        )
    return points


# -- what is attacked -------------------------------------------------------------------------


def _domain(*attributes: Nominal) -> Domain:
    return Domain((*attributes, Nominal("class", (0, 1))), target="class")


def _uniform(domain: Domain, rows: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame({column.name: rng.integers(column.size, size=rows) for column in domain})


def _fitted(make: Make, epsilon: Fraction, domain: Domain, truth: pd.DataFrame, seed: int) -> Ensemble:
    return make(epsilon, domain, seed).fit(truth[list(domain.attributes)], truth[domain.target]).model_


# -- from a model to a program ----------------------------------------------------------------


def _check(model: Ensemble) -> None:
    if any(step.question == "label" for step in model.privacy.steps):
        raise QuestionError("the leaves of the model carry labels and no counts; attack a model with class counts.")
    if model.privacy.disjoint:
        raise QuestionError("the trees of the model saw different rows; attack a model whose trees saw all of them.")


def _cells(model: Ensemble) -> pd.DataFrame:
    """Every row that the domain allows, as values: one for each cell."""
    domain = model.domain
    values = [_values(model, column) for column in domain]
    size = math.prod(len(each) for each in values)
    if size > MOST_CELLS:
        raise QuestionError(
            f"the domain has {size} cells, at most {MOST_CELLS} can be searched; attack a model of fewer columns or "
            "coarser bins."
        )
    return pd.DataFrame(list(itertools.product(*values)), columns=list(domain.names), dtype=object)


def _values(model: Ensemble, column: Column) -> list[object]:
    """A value for each cell of a column; bins are cut further where a tree cuts them."""
    missing = [None] * column.missing
    if isinstance(column, Nominal):
        return [*column.values, *[OTHER] * column.other, *missing]
    position = model.domain.attributes.index(column.name)
    cuts = {int(at) for tree in model.trees for at in tree.at[(tree.column == position) & (tree.at >= 0)]}
    edges = sorted({0, column.grid_size, *column.thresholds, *cuts})
    middles = [column.value_at((start + end) // 2) for start, end in itertools.pairwise(edges)]
    return [*(column.number(middle) for middle in middles), *missing]


def _ends(model: Ensemble, frame: pd.DataFrame) -> list[Integers]:
    """The leaf of each tree in which each row ends."""
    domain = model.domain
    codes = np.stack([domain[name].encode(frame[name]) for name in domain.attributes])
    if (codes < 0).any():
        raise QuestionError("some rows fit no cell of the model's domain, so no tree counted them; leave them out.")
    columns = [(domain[name], frame[name]) for name in domain.attributes]
    grids = np.stack([c.to_grid(v) if isinstance(c, Numeric) else np.zeros(len(v), dtype=np.int64) for c, v in columns])
    return [tree.find(codes.astype(np.int32), grids.astype(np.int32)) for tree in model.trees]


def _classes(model: Ensemble, frame: pd.DataFrame) -> Integers:
    target = model.domain.target_column
    codes = target.encode(frame[target.name])
    if (codes < 0).any():
        raise QuestionError(f"some rows have no class of the target '{target.name}', so no tree counted them.")
    return codes


def _rates(deviation: Floats) -> Floats:
    """The rate of two-sided geometric noise: its variance is 1 / (cosh(rate) - 1). Without noise, one beyond doubt."""
    return np.asarray(2 * np.arcsinh(1 / (math.sqrt(2) * np.maximum(deviation, 1e-9))))


def _program(model: Ensemble, cells: pd.DataFrame, rows: int | None, uniform: bool) -> _Program:
    """The released counts of a model as sums of cells."""
    from scipy.sparse import csr_array, vstack

    own, classes = _classes(model, cells), len(model.domain.classes)
    one, each = np.ones(len(cells)), np.arange(len(cells))
    sums, released, rates = [], [], []
    for tree, ends in zip(model.trees, _ends(model, cells), strict=True):
        leaf = np.flatnonzero(tree.is_leaf)
        rank = np.cumsum(tree.is_leaf) - 1
        sums.append(csr_array((one, (rank[ends] * classes + own, each)), shape=(len(leaf) * classes, len(cells))))
        released.append(tree.counts[leaf].ravel())
        rates.append(np.repeat(_rates(tree.deviation[leaf]), classes))
    bought = [step.epsilon for step in model.privacy.steps if step.question == "prior"]
    if bought and model.prior is not None and not model.privacy.added:  # class counts of the whole table
        sums.append(csr_array((one, (own, each)), shape=(classes, len(cells))))
        released.append(np.array(model.prior))
        rates.append(np.full(classes, float(bought[0]) / model.privacy.rows_per_person))
    return _Program(vstack(sums, format="csr"), np.concatenate(released), np.concatenate(rates), rows, uniform)


# -- solving it -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Program:
    """Every released count, which cells it adds up and the rate of its noise; and what else is known."""

    sums: Any  # a sparse matrix [count, cell]
    released: Floats
    rates: Floats
    rows: int | None
    uniform: bool

    def likelihood(self, numbers: Integers) -> float:
        """The logarithm of the probability of the counts where the cells hold so many rows."""
        wrong = np.abs(self.released - self.sums @ numbers)
        return float(np.log(np.tanh(self.rates / 2)).sum() - self.rates @ wrong)

    def loss(self, numbers: Integers) -> float:
        """What is minimised."""
        from scipy.special import gammaln

        wrong = np.abs(self.released - self.sums @ numbers)
        return float(self.rates @ wrong + (gammaln(numbers + 1).sum() if self.uniform else 0))

    @property
    def copies(self) -> int:
        return COPIES if self.uniform else 1

    @property
    def linear(self) -> _Linear:
        """The unknowns: a first row in each cell, a second, ...; by how much each count is too small; too large."""
        from scipy.sparse import csr_array, eye_array, hstack, vstack

        counts, cells = self.sums.shape
        again = np.log(np.arange(1, self.copies + 1))  # what a first row costs, a second, ...
        cost = np.concatenate([np.repeat(again, cells), self.rates, self.rates])
        whole = np.repeat([1, 0], [self.copies * cells, 2 * counts])
        most = np.repeat([1, np.inf], [(self.copies - 1) * cells, cells + 2 * counts])
        left = hstack([self.sums] * self.copies + [eye_array(counts), -eye_array(counts)], format="csr")
        if self.rows is None:
            return _Linear(cost, whole, most, left, self.released)
        total = csr_array(whole[None, :])
        return _Linear(cost, whole, most, vstack([left, total], format="csr"), np.append(self.released, self.rows))

    def rounded(self, unknowns: Floats) -> Integers:
        """The whole number of rows in each cell, with the right sum: the largest remainders are rounded up."""
        cells = self.sums.shape[1]
        numbers = unknowns[: self.copies * cells].reshape(self.copies, cells).sum(axis=0)
        down: Integers = np.floor(np.maximum(numbers, 0) + TOLERANCE).astype(np.int64)
        rows = round(float(numbers.sum())) if self.rows is None else self.rows
        up = np.argsort(down - numbers, kind="stable")[: max(rows - int(down.sum()), 0)]
        down[up] += 1
        return down


@dataclass(frozen=True)
class _Linear:
    """Minimise cost x where left x = right, 0 <= x <= most, and x is whole where `whole` is 1."""

    cost: Floats
    whole: Integers
    most: Floats
    left: Any
    right: Floats


def _solved(program: _Program, seconds: float) -> tuple[Integers, float]:
    """The best number of rows found for each cell, and how far from the best of all it may be."""
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    start, linear = time.monotonic(), program.linear
    found, bound = [], 0.0
    # by interior points: where all counts are right the simplex takes minutes
    relaxed: Any = linprog(
        linear.cost,
        A_eq=linear.left,
        b_eq=linear.right,
        bounds=[(0.0, most) for most in linear.most.tolist()],
        method="highs-ipm",
        options={"time_limit": seconds},
    )
    if relaxed.status == 0:
        found.append(program.rounded(relaxed.x))
        bound = relaxed.fun
    rest = seconds - (time.monotonic() - start)
    if rest > 0 and not (found and program.loss(found[0]) <= bound + TOLERANCE):
        searched: Any = milp(
            linear.cost,
            integrality=linear.whole,
            bounds=Bounds(0, linear.most),
            constraints=LinearConstraint(linear.left, linear.right, linear.right),
            options={"time_limit": rest},
        )
        if searched.x is not None:
            found.append(program.rounded(searched.x))
        if searched.mip_dual_bound is not None:
            bound = max(bound, searched.mip_dual_bound)
    if not found:
        raise QuestionError(f"no rows were found in {seconds:g} seconds; allow more, or attack a smaller model.")
    best = min(found, key=program.loss)
    gap = float(program.loss(best) - bound)
    return best, gap if gap > TOLERANCE else 0.0


def _texts(values: pd.Series[Any]) -> np.ndarray[Any, Any]:
    return np.array([text_of(value) for value in values], dtype=object)
