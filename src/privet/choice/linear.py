"""Bayesian regression of the rewards of a site: the learner that the Jostle paper has in mind.

It learns from any history, also one where every run tried one branch. The model is hierarchical:

    reward = level of the run + curve that all branches share + deviation of the branch + noise

The curve and the deviations are quadratic in the context. The prior of a deviation has mean 0 and a scale that is
learned, as are the scale of the curve, that of the runs and the noise: every pair of ratios on a grid is weighed by its
marginal likelihood, with the noise integrated out. The noise is a curve of the context too, without prior knowledge
of its shape: where rewards are steady they count for more. The level of the curve has a flat prior, and rewards are
standardised first. So neither their origin nor their unit changes a choice, and a branch that was run seldom is
compared with the others at the same context, not with 0.

Advice moves the prior mean of a branch by one scale of the deviations. In a Gaussian model that moves the posterior
mean by its variance over that of the prior: all where nothing is known, next to nothing where the branch was run often.

With coins, a branch is drawn as often as it may be the best (Thompson 1933), which is how a choice that is wrong finds
out. A run only teaches if its reward comes back, from public rows or by a charged question
(docs/explanation/choice.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from privet.choice.history import HistoryRow, check_kept
from privet.choice.policy import Advised, Context, Policy, Weights, as_number
from privet.errors import QuestionError
from privet.kernel import Json, digest

Floats = NDArray[np.float64]

# Ratios to the noise that are weighed against each other.
CURVES = (0.5, 4.0)  # of the curve that branches share
DEVIATIONS = (0.2, 1.0, 5.0, 25.0)  # of a branch from it, on average over contexts
SLOPES = (0.3, 1.5)  # of how a deviation changes with the context, over the deviation
LEVELS = (0.0, 1.0, 10.0, 100.0)  # of what can be reached in a run at all; only runs of several branches tell

FLAT = 1e6  # prior variance of the level, over that of the noise
NOISE_SHAPE, NOISE_SCALE = 0.5, 0.001  # inverse gamma prior of the variance of the noise; rewards have variance 1
ADVICE = 1.0  # scales of the deviations by which advice moves the mean of a branch
FARTHEST = 2.0  # deviations from the mean of a feature: beyond, a curve would go on for ever
NEGLIGIBLE = 1e-4  # weight below which ratios are forgotten
ROUNDS = 2  # of fits, each weighed by the noise that the one before found at each context
SAME_NOISE = 4.0  # so many rows say that the noise does not depend on the context
STEADIEST = 10.0  # times the average is what a row counts at most for the noise at its context, and the least likewise

HIGHEST, LOWEST = "highest", "lowest"


@dataclass(frozen=True)
class Posterior:
    """What is believed with one choice of ratios: the coefficients, in units of the standardised rewards."""

    weight: float
    mean: Floats
    inverse: Floats  # covariance over the variance of the noise
    noise: float
    prior: Floats  # variances over that of the noise


@dataclass(frozen=True)
class BayesianLinear(Policy):
    """Takes the branch with the highest expected reward or, with coins, of a draw from what is believed.

    Made by `BayesianLinear.fit`.
    """

    features: tuple[str, ...]
    branches: tuple[str, ...]
    centre: Floats
    scale: Floats
    unit: float
    posteriors: tuple[Posterior, ...]
    origins: tuple[str, ...] = ()
    fingerprint: str = ""
    thompson: np.random.Generator | str | None = None

    kind = "bayesian-linear"

    @classmethod
    def fit(
        cls,
        rows: Sequence[HistoryRow],
        features: Sequence[str],
        thompson: np.random.Generator | str | None = None,
        *,
        best: str = HIGHEST,
        weights: Sequence[float] | None = None,
    ) -> BayesianLinear:
        """Learn from the rows of a history.

        Parameters
        ----------
        rows : sequence of HistoryRow
        features : sequence of str
            The names in the contexts that rewards may depend on; each is a number in every row.
        thompson : numpy.random.Generator or str, optional
            Coins, to draw a branch as often as it may be the best. With a text they follow from it and from the
            context, so that the same question has the same answer.
        best : str, default "highest"
            "lowest" if rewards are errors or costs.
        weights : sequence of float, optional
            How much each row counts, at most 1; rows of a run count alike.

        Returns
        -------
        BayesianLinear

        Raises
        ------
        QuestionError
            There are no rows, or one lacks a feature.
        PrivacyError
            A row is none of a history.
        """
        if not rows:
            raise QuestionError("the history is empty; without one use advice, or Fixed(branch).")
        check_kept(rows)
        if best not in (HIGHEST, LOWEST):
            raise QuestionError(f"best is '{HIGHEST}' or '{LOWEST}', not {best!r}.")
        sign = 1.0 if best == HIGHEST else -1.0
        branches = tuple(sorted({branch for row in rows for branch, _, _ in row.choices}))
        counts = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
        values = [[_values(context, features) for _, _, context in row.choices] for row in rows]
        listed = [value for own in values for value in own]
        every = np.array(listed, dtype=np.float64).reshape(len(listed), len(features))
        centre, scale = every.mean(axis=0), every.std(axis=0)
        scale = np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, np.inf)  # a constant tells nothing
        rewards = sign * np.array([row.reward for row in rows])
        level = float(np.average(rewards, weights=counts))
        unit = math.sqrt(float(np.average((rewards - level) ** 2, weights=counts)))
        posteriors: tuple[Posterior, ...] = ()
        if unit > 1e-12 * (1 + abs(level)):  # else all rewards are one number, and nothing says how far apart they are
            design = np.zeros((len(rows), (1 + 2 * len(features)) * (1 + len(branches))))
            for place, (row, own) in enumerate(zip(rows, values, strict=True)):
                for (branch, share, _), value in zip(row.choices, own, strict=True):
                    at = _standard(value, centre, scale)
                    design[place] += share * _design(at, branches.index(branch), len(branches))
            runs = np.unique([row.run for row in rows], return_inverse=True)[1]
            standard, steady = (rewards - level) / unit, np.ones(len(rows))
            for last in range(ROUNDS + 1):
                posteriors = _posteriors(design, standard, counts * steady, runs, len(features), len(branches))
                if last < ROUNDS:
                    steady = _steadiness(design, standard, counts, posteriors, 1 + 2 * len(features))
        learned: Json = {
            "rows": [[row.site, row.run, row.branch, repr(row.reward), row.origin, row.source] for row in rows],
            "weights": [repr(float(count)) for count in counts],
            "features": list(features),
            "best": best,
        }
        origins = tuple(
            f"{origin} ({count} rewards)" for origin, count in Counter(row.described for row in rows).items()
        )
        return cls(tuple(features), branches, centre, scale, unit, posteriors, origins, digest(learned)[:12], thompson)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.fingerprint}"

    @property
    def learned(self) -> tuple[str, ...]:
        return self.origins

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        values = [as_number(context.get(name)) for name in self.features]
        seen = [value for value in values if value is not None]
        if len(seen) < len(values):
            return dict.fromkeys(branches, 0.0)
        if not self.posteriors:
            return Advised().margins(context, branches, default, advised)
        at = _curve(_standard(seen, self.centre, self.scale))
        towards = np.array([advised.get(branch, 0.0) for branch in branches])
        if self.thompson is None:
            ahead = np.zeros(len(branches))
            for posterior in self.posteriors:
                ahead += posterior.weight * self._believed(posterior, at, branches, towards)[0]
        else:
            ahead = self._drawn(self._coins(context), at, branches, towards)
        own = list(branches).index(default)
        # as many digits as are certain: what is equal shall be a tie
        return {branch: round(float(ahead[place] - ahead[own]), 9) * self.unit for place, branch in enumerate(branches)}

    def _believed(
        self, posterior: Posterior, at: Floats, branches: Sequence[str], towards: Floats
    ) -> tuple[Floats, Floats]:
        """Mean and covariance of the deviations of branches at a context, after advice."""
        own = np.concatenate([[1.0], at])
        size = len(own)
        prior = posterior.prior[size : 2 * size]  # of any branch
        variance = float(prior @ own**2)
        pick = np.zeros((len(branches), len(posterior.mean)))
        covariance = np.zeros((len(branches), len(branches)))
        for place, branch in enumerate(branches):
            if branch in self.branches:
                start = size * (1 + self.branches.index(branch))
                pick[place, start : start + size] = own
            else:  # nothing is known of it but that it is a branch
                covariance[place, place] = variance
        covariance += pick @ posterior.inverse @ pick.T
        shift = ADVICE * posterior.noise * towards / math.sqrt(variance)
        return pick @ posterior.mean + covariance @ shift, posterior.noise**2 * covariance

    def _drawn(self, coins: np.random.Generator, at: Floats, branches: Sequence[str], towards: Floats) -> Floats:
        """Deviations of the branches, drawn from what is believed."""
        weights = np.array([posterior.weight for posterior in self.posteriors])
        posterior = self.posteriors[int(coins.choice(len(weights), p=weights))]
        mean, covariance = self._believed(posterior, at, branches, towards)
        size, axes = np.linalg.eigh(covariance)
        return np.asarray(mean + axes @ (np.sqrt(np.maximum(size, 0)) * coins.standard_normal(len(mean))))

    def _coins(self, context: Context) -> np.random.Generator:
        if isinstance(self.thompson, np.random.Generator):
            return self.thompson
        shown = {name: repr(float(context[name])) for name in self.features}
        return np.random.default_rng(int(digest({"seed": str(self.thompson), "context": dict(shown)})[:16], 16))


def _values(context: Mapping[str, object], features: Sequence[str]) -> list[float]:
    """The features of a context."""
    found = []
    for name in features:
        value = as_number(context.get(name))
        if value is None:
            raise QuestionError(f"a run of the history has no number '{name}' in its context; leave this feature out.")
        found.append(value)
    return found


def _standard(values: Sequence[float], centre: Floats, scale: Floats) -> Floats:
    return np.asarray(np.clip((np.array(values) - centre) / scale, -FARTHEST, FARTHEST), dtype=np.float64)


def _curve(standard: Floats) -> Floats:
    """The values and their squares, so that a coefficient of 1 each makes a curve whose variance is about 1."""
    terms = np.concatenate([standard, (standard**2 - 1) / math.sqrt(2)])
    return np.asarray(terms / math.sqrt(max(len(terms), 1)))


def _design(standard: Floats, branch: int, branches: int) -> Floats:
    """A row of the regression: level and curve, and again in the place of the branch."""
    own = np.concatenate([[1.0], _curve(standard)])
    row = np.zeros(len(own) * (1 + branches))
    row[: len(own)] = own
    row[len(own) * (1 + branch) : len(own) * (2 + branch)] = own
    return row


def _steadiness(design: Floats, rewards: Floats, counts: Floats, posteriors: Sequence[Posterior], curve: int) -> Floats:
    """Return how much more than others each row counts, by the noise at its context; 1 on average.

    The logarithm of the squared error that is expected of a row, after all that is believed, is fitted by a curve.
    """
    expected = np.zeros(len(rewards))
    for posterior in posteriors:
        uncertain = np.einsum("ij,jk,ik->i", design, posterior.inverse, design)
        expected += posterior.weight * ((rewards - design @ posterior.mean) ** 2 + posterior.noise**2 * uncertain)
    errors = np.log(expected / expected.mean() + NEGLIGIBLE)
    at = design[:, :curve]
    prior = np.diag([0.0, *[SAME_NOISE] * (curve - 1)])
    fitted = at @ np.linalg.solve(at.T * counts @ at + prior, at.T * counts @ errors)
    steady = np.clip(np.exp(np.average(fitted, weights=counts) - fitted), 1 / STEADIEST, STEADIEST)
    return np.asarray(steady * counts.sum() / (counts @ steady))


def _posteriors(
    design: Floats, rewards: Floats, counts: Floats, runs: NDArray[np.int64], features: int, branches: int
) -> tuple[Posterior, ...]:
    """The posteriors of all ratios, each with its weight."""
    sizes = np.bincount(runs)
    totals = np.bincount(runs, counts) / sizes
    counts = totals[runs]  # rows of a run count alike
    amount = float(counts.sum())
    found: list[tuple[float, Floats, Floats, Floats, float]] = []
    for shared in LEVELS if sizes.max() > 1 else LEVELS[:1]:
        # rows of a run have the covariance 1 + shared^2 J: this is its inverse square root
        shrunk = 1 - 1 / np.sqrt(1 + sizes * shared**2)
        whitened = np.column_stack([design, rewards])
        means = np.zeros((len(sizes), whitened.shape[1]))
        np.add.at(means, runs, whitened / sizes[runs, None])
        whitened = (whitened - (shrunk[:, None] * means)[runs]) * np.sqrt(counts)[:, None]
        x, y = whitened[:, :-1], whitened[:, -1]
        determinant = float(totals @ np.log1p(-shrunk))
        products, moments, square = x.T @ x, x.T @ y, float(y @ y)
        for curve, deviation, slope in product(CURVES, DEVIATIONS, SLOPES if features else SLOPES[:1]):
            of_branch = [deviation**2, *[(deviation * slope) ** 2] * (2 * features)]
            prior = np.array([FLAT, *[curve**2] * (2 * features), *of_branch * branches])
            factor = np.linalg.cholesky(products + np.diag(1 / prior))
            half = np.linalg.solve(factor, moments)
            left = NOISE_SCALE + max(square - float(half @ half), 0.0) / 2
            evidence = determinant - float(np.log(np.diag(factor)).sum() + np.log(prior).sum() / 2)
            evidence -= (NOISE_SHAPE + amount / 2) * math.log(left)
            found.append((evidence, prior, factor, half, math.sqrt(left / (NOISE_SHAPE + amount / 2))))
    best = max(entry[0] for entry in found)
    weights = np.array([math.exp(entry[0] - best) for entry in found])
    kept = np.flatnonzero(weights > NEGLIGIBLE)
    whole = float(weights[kept].sum())
    posteriors = []
    for place in kept.tolist():
        _, prior, factor, half, noise = found[place]
        root = np.linalg.inv(factor)
        posteriors.append(Posterior(float(weights[place]) / whole, root.T @ half, root.T @ root, noise, prior))
    return tuple(posteriors)
