"""Known-bad: privacy that was published, sold or shipped and is broken, each in a few lines.

They are here to be caught: a bench that passes one of them is no bench. Numbers E-n are
those of docs/explanation/trees-errata.md.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import BaseEstimator

from privet.kernel import Domain, IntegerLaplace, Nominal
from privet.lab import PublicRows, worst_loss
from privet.learners.estimators import DiffPID3Classifier, JagannathanForestClassifier, MaxForestClassifier
from privet.verification import estimators, functions, observe
from privet.verification.checks import Check, ExactCheck, FiniteCheck, NeighbourCheck, Neighbours
from privet.verification.events import Observations
from privet.verification.subject import Checks, Effort, Subject
from privet.verification.tables import BINARY, DOMAIN, ROW, Pair, known_pairs


def subjects() -> Iterator[Subject]:
    """Every fixture; each claims the epsilon that its authors claim."""
    for name, line, checks in (
        ("bootstrap-count", "a count over a bootstrap sample, E-1", _sampled(_bootstrap_count, 400_000)),
        ("bootstrap-leaf", "a leaf's class counts over a bootstrap sample, charged once, E-1", _bootstrap_leaf),
        ("bootstrap-forest", "MaxForest's bootstrap as published, E-1", _bootstrap_forest),
        ("printed-ranges", "split points weighted without the sensitivity of infogain, E-4", _printed_ranges),
        ("smooth-leaves", "labels by smooth sensitivity, Fletcher and Islam 2017, E-7", _sampled(_smooth_leaf, 10_000)),
        ("rounded-noise", "Hanisch's noise, from a uniform number of six digits, E-8", _rounded_noise),
        ("unpaid-size", "a depth from the exact number of rows, E-9", _unpaid_size),
        ("domain-from-data", "classes and values read from the rows, E-12", _domain_from_data),
        ("float-noise", "Laplace noise in floating point, by its low bits, E-14", _sampled(_float_noise, 3_000)),
        ("stored-seed", "a model that keeps the seed of its noise", _stored_seed),
        ("cheap-noise", "charged for epsilon, noise for 1.1 epsilon", _sampled(_cheap_noise, 80_000)),
        ("rounded-count", "a count that is rounded to fives before its noise", _function(_rounded_count)),
        ("ordered-cells", "noisy cells, told in the order of their exact counts", _function(_ordered_cells)),
        ("ordered-names", "the same cells, as names of a dictionary", _function(_ordered_names)),
        ("rare-exact", "a noisy count, and the exact one in 1 of 100 runs", _function(_rare_exact)),
    ):
        yield Subject(name, "known-bad", line, checks, must_fail=True)
    if importlib.util.find_spec("diffprivlib"):
        seeds, slices = "diffprivlib's forest: seeds of its trees", "diffprivlib's forest: rows of its trees, E-10"
        yield Subject("diffprivlib-seeds", "known-bad", seeds, _kept_seeds, must_fail=True)
        yield Subject("diffprivlib-slices", "known-bad", slices, _shifted_slices, must_fail=True)


def _sampled(sample: Callable[[Fraction, int, int], Any], runs: int) -> Checks:
    """A mechanism that is a function of a number; one person makes it larger by one."""

    def checks(epsilon: Fraction, effort: Effort) -> list[Check]:
        def of(exactly: int) -> Callable[[int], Observations]:
            return lambda count: observe.with_low_bits(pd.DataFrame({"output": sample(epsilon, exactly, count)}))

        return [NeighbourCheck([Neighbours("a number and one more", of(0), of(1))], effort.of(runs))]

    return checks


def _bootstrap_count(epsilon: Fraction, matching: int, runs: int) -> NDArray[Any]:
    """Of 1000 rows drawn with replacement, a row that matches comes 0, 1, 2, ... times."""
    drawn = np.random.default_rng().binomial(1000, matching / 1000, size=runs)
    return IntegerLaplace(epsilon).release(drawn)


def _bootstrap_leaf(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Two class counts of one leaf, charged as one question: a row that comes M times takes the place of M - 1 others.

    So it moves one count by M and the other by M - 1. With all rows of one class and a person of the other, the event
    that the first count is far too low and the second far too high loses log E[exp(e M + e (M - 1))], which tends to
    exp(2e) - 1 - e: M is nearly a Poisson variable of mean 1.
    """
    rows, far = 1000, 40
    noise = IntegerLaplace(epsilon)
    without = _tail(noise, far) ** 2
    drawn = binom.pmf(np.arange(far), rows + 1, 1 / (rows + 1))
    with_them = sum(float(share) * _tail(noise, far - m) * _tail(noise, far - m + 1) for m, share in enumerate(drawn))
    left, right = ({"far off": p, "anything else": 1 - p} for p in (without, with_them))
    return [FiniteCheck("a thousand rows of a class, and a person of the other", left, right)]


def _tail(noise: IntegerLaplace, least: int) -> float:
    """The probability of noise of at least so much; two-sided geometric noise has a^k (1 - a) / (1 + a) at k and -k."""
    a = math.exp(-float(noise.epsilon))
    return a**least / (1 + a) if least > 0 else 1 - a ** (1 - least) / (1 + a)


def _cheap_noise(epsilon: Fraction, count: int, runs: int) -> NDArray[Any]:
    return IntegerLaplace(epsilon * Fraction(11, 10)).release(np.full(runs, count))


def _float_noise(epsilon: Fraction, count: int, runs: int) -> NDArray[Any]:
    return count + np.random.default_rng().laplace(0, float(1 / epsilon), size=runs)


def _smooth_leaf(epsilon: Fraction, more: int, runs: int) -> NDArray[Any]:
    """The label of a leaf whose classes differ by 1 or 2 rows: the exponent grows with the gap itself."""
    gap, e = 1 + more, float(epsilon)
    exponent = min(50.0, e / 2 * np.exp(gap * e))
    return np.asarray(np.random.default_rng().random(runs) < 1 / (1 + np.exp(exponent)))


def _rounded_noise(epsilon: Fraction, effort: Effort) -> list[Check]:
    """All numbers of six digits there are: the noise is bounded, so the largest output tells the count."""
    uniform = np.arange(1, 10**6) / 10**6 - 0.5
    noise = np.rint(-np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / float(epsilon)).astype(int)
    left, right = ({k: n / noise.size for k, n in Counter((noise + count).tolist()).items()} for count in (0, 1))
    return [FiniteCheck("a count of 0 and of 1", left, right)]


# -- functions of a table, on the tables that everybody's functions get --------------------------

TableFunction = Callable[[pd.DataFrame, Fraction], Any]


def _function(function: TableFunction) -> Checks:
    return lambda epsilon, effort: functions.checks(lambda table: function(table, epsilon), effort)


def _noisy(count: int, epsilon: Fraction, unit: int = 1) -> int:
    """A number with noise; one person moves it by `unit`."""
    return int(IntegerLaplace(epsilon, unit).release(np.array([count]))[0])


def _rounded_count(table: pd.DataFrame, epsilon: Fraction) -> int:
    """One person moves it by 5 or by nothing."""
    return _noisy(5 * round(len(table) / 5), epsilon)


def _ordered_cells(table: pd.DataFrame, epsilon: Fraction) -> list[tuple[str, int]]:
    ones = int(np.count_nonzero(table["a"].to_numpy() == "1"))
    cells = {"0": len(table) - ones, "1": ones}
    return [(cell, _noisy(cells[cell], epsilon)) for cell in sorted(cells, key=lambda c: -cells[c])]


def _ordered_names(table: pd.DataFrame, epsilon: Fraction) -> dict[str, int]:
    return dict(_ordered_cells(table, epsilon))


def _rare_exact(table: pd.DataFrame, epsilon: Fraction) -> float:
    """Noise on a grid of 1/1024, as for a sum of reals: it is exactly 0 in 1 of 2000 runs."""
    if np.random.default_rng().random() < 0.01:
        return float(len(table))
    return _noisy(1024 * len(table), epsilon, 1024) / 1024


# -- published algorithms, on rows that are public ----------------------------------------------


def _printed_ranges(epsilon: Fraction, effort: Effort) -> list[Check]:
    """A threshold below the person leaves a pure cell pure, one above them does not."""
    pair = Pair("40 rows at 0 and a person of another class at 3", ({**ROW, "x": 0},) * 40, {**ROW, "x": 3, "y": "1"})

    def asked(table: Any) -> Any:
        return tuple(observe.seen(table.select("infogain", epsilon, attributes=["x"], thresholds=True)).items())

    public = PublicRows(printed_ranges=True)
    return [ExactCheck([(pair.name, partial(worst_loss, asked, pair.left, pair.right, DOMAIN, public=public))])]


def _unpaid_size(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Four attributes of two values: from 15 rows to 16 the trees become a level deeper."""
    forest = JagannathanForestClassifier(epsilon, n_estimators=1, variant="published", unsafe=True, random_state=0)
    names = [f"a{i}" for i in range(8)]
    domain = Domain((*(Nominal(name, BINARY) for name in names), DOMAIN["y"]), target="y")
    rows = pd.DataFrame([{**dict.fromkeys(names, "0"), "y": "0"}] * 16)

    def fitted(table: Any) -> Any:
        return estimators.content(forest.fit(table).model_)

    public = PublicRows()
    return [
        ExactCheck(
            [("15 rows and one more", partial(worst_loss, fitted, rows[:-1], rows, domain, public=public))], limit=8
        )
    ]


def _bootstrap_forest(epsilon: Fraction, effort: Effort) -> list[Check]:
    """One tree of depth 0 has the whole budget, and its counts are those of a bootstrap sample."""
    forest = MaxForestClassifier(epsilon, n_estimators=1, max_depth=0, variant="published", unsafe=True)
    return [estimators.canaries(forest, effort.of(120))]


def _domain_from_data(epsilon: Fraction, effort: Effort) -> list[Check]:
    tree = DiffPID3Classifier(epsilon, max_depth=1)
    pair = known_pairs()[2]

    def fits(rows: pd.DataFrame) -> Callable[[int], Observations]:
        def fit() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it reads its domain from the rows is the point
                return tree.fit(rows.drop(columns="y"), rows["y"]).classes_

        return lambda runs: observe.runs(fit, runs)

    second = {**ROW, "y": "2"}
    left, right = (pd.DataFrame([*pair.left.to_dict("records"), {**ROW, "y": "1"}, *more]) for more in ([], [second]))
    return [NeighbourCheck([Neighbours("rows of two classes and one of a third", fits(left), fits(right))], 150)]


# -- a seed that is published -------------------------------------------------------------------


class SeededCounts(BaseEstimator):  # type: ignore[misc]
    """Noisy class counts; the seed is kept, as reproducible software does."""

    def __init__(self, epsilon: float = 1.0, random_state: int | None = None) -> None:
        self.epsilon, self.random_state = epsilon, random_state

    def fit(self, X: Any, y: Any) -> SeededCounts:
        seed = self.random_state if self.random_state is not None else np.random.default_rng().integers(2**31)
        self.seed_ = int(seed)
        noise = np.random.default_rng(self.seed_).laplace(0, 1 / self.epsilon, size=2)
        self.counts_ = np.bincount(y, minlength=2) + noise
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return np.full(len(X), int(np.argmax(self.counts_)))


def _stored_seed(epsilon: Fraction, effort: Effort) -> list[Check]:
    return estimators.peer_checks(SeededCounts(float(epsilon)), Effort(effort.times / 3))


# -- a peer, where it is installed --------------------------------------------------------------


def _forest(epsilon: Fraction, trees: int) -> Any:
    from diffprivlib.models import RandomForestClassifier

    return RandomForestClassifier(
        n_estimators=trees, epsilon=float(epsilon), bounds=(0, 1), classes=[0, 1], max_depth=1
    )


def _kept_seeds(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Every tree keeps the seed of its noise, also where the forest was given none."""
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([0, 1, 1])
    pair = (X[:-1], y[:-1]), (X, y)
    return estimators.peer_checks(_forest(epsilon, trees=1), Effort(2 * effort.times), [pair])


def _shifted_slices(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Each of ten trees sees the next tenth of the rows: one row more and nine of them see other rows, E-10."""
    X, y = np.zeros((21, 2)), np.tile([1, 1, 0, 0], 6)[:21]
    return estimators.peer_checks(_forest(epsilon, trees=10), effort, [((X[:-1], y[:-1]), (X, y))])
