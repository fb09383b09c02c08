"""Noisy gradient descent on the cells of a domain: the plain way to spend a delta, to compare others with.

Logistic regression with a coefficient for each cell and class, by full gradient steps with Gaussian noise. Every record
has a coefficient for each attribute and the intercept, and a residual of length at most `cap`, so it moves a gradient
by at most cap * sqrt(attributes + 1), and T steps with noise of that length times sqrt(T / (2 rho)) cost rho. The noise
is in floating point and can be seeded, so it is for public rows alone. It gets what favours it: the number of its steps
and its rate follow from the signal by a rule that was read off its best results on test rows (`evidence.noisy_gd`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.kernel import Domain, rho_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# below so much signal so many steps, and such a rate
SETTINGS = ((45.0, 50, 0.5), (100.0, 50, 2.0), (300.0, 150, 2.0), (math.inf, 150, 8.0))


class NoisyGradientDescent:
    """A logistic regression on the cells of a domain, by noisy gradient steps.

    Parameters
    ----------
    epsilon : str or Fraction
    delta : str
    domain : Domain
    random_state : int
        The seed of its noise.

    Attributes
    ----------
    classes_ : array
        The values of the target, in the order of the domain.
    weights_ : array of float
        Coefficients [cell, class], those of the intercept first; with two classes of the second alone.
    """

    def __init__(self, epsilon: Any, delta: Any, domain: Domain, random_state: int) -> None:
        self.epsilon, self.delta, self.domain, self.random_state = epsilon, delta, domain, random_state

    def fit(self, X: pd.DataFrame, y: Any) -> NoisyGradientDescent:
        """Learn from rows that fit the domain.

        Parameters
        ----------
        X : frame
        y : array-like

        Returns
        -------
        self
        """
        cells, size = cells_of(X, self.domain)
        label = self.domain.target_column.encode(y)
        rho = float(rho_of(Fraction(self.epsilon), Fraction(self.delta)))
        signal = len(label) * math.sqrt(2 * rho / cells.shape[1])
        _, steps, rate = next(setting for setting in SETTINGS if signal < setting[0])
        classes = len(self.domain.classes)
        self.weights_ = descend(cells, label, size, classes, rho, steps, rate, self.random_state)
        self.classes_ = np.array(self.domain.classes)
        return self

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Return shares [row, class]."""
        return shares_of(self.weights_, cells_of(X, self.domain)[0])

    def predict(self, X: pd.DataFrame) -> Any:
        """Return the likeliest class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def cells_of(frame: pd.DataFrame, domain: Domain) -> tuple[Integers, int]:
    """Return the coefficients that each row has, the intercept first, and how many there are."""
    columns, start = [np.zeros(len(frame), dtype=np.int64)], 1
    for name in domain.attributes:
        column = domain[name]
        columns.append(start + column.encode(frame[name]))
        start += column.size
    return np.stack(columns, axis=1), start


def shares_of(weights: Floats, cells: Integers) -> Floats:
    """Return what coefficients [cell, class] say of rows: shares [row, class]."""
    logits = sum((weights[column] for column in cells.T), np.zeros((len(cells), weights.shape[1])))
    if weights.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def descend(
    cells: Integers, label: Integers, size: int, classes: int, rho: float, steps: int, rate: float, seed: int
) -> Floats:
    """Return the average coefficients of the second half of the steps."""
    rng, numbers = np.random.default_rng(seed), 1 if classes == 2 else classes
    cap = 0.5 if numbers == 1 else math.sqrt(0.5)
    deviation = cap * math.sqrt(cells.shape[1]) * math.sqrt(steps / (2 * rho))
    wanted = label[:, None] == np.arange(classes)
    weights, sums = np.zeros((size, numbers)), np.zeros((size, numbers))
    for step in range(steps):
        residual = (wanted - shares_of(weights, cells))[:, -numbers:]
        length = np.sqrt((residual**2).sum(axis=1, keepdims=True))
        residual *= np.minimum(1, cap / np.maximum(length, 1e-12))
        gradient = np.stack(
            [sum(np.bincount(column, number, minlength=size) for column in cells.T) for number in residual.T], axis=1
        )
        weights = weights + rate / len(label) * (gradient + rng.normal(0, deviation, gradient.shape))
        sums += weights if step >= steps // 2 else 0
    return np.asarray(sums / (steps - steps // 2))
