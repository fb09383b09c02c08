"""Rows as every learner reads them, a frame for ours and numbers for the peers, and how good a learner is on them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.datasets import Dataset
from privet.kernel import Domain, Nominal
from privet.studies.histories import auc
from privet.studies.learners import Learner, bounds

CLIP = 1e-6  # of probabilities, for the log loss
BINS = 10  # in which miscalibration is measured


@dataclass(frozen=True)
class Part:
    """Rows in both forms, and the codes of their classes."""

    frame: pd.DataFrame
    labels: pd.Series[Any]
    numbers: NDArray[np.float64]
    cells: NDArray[np.int32]  # of the domain
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, found: Dataset) -> Part:
        attributes = list(found.domain.attributes)
        labels = found.frame[found.domain.target_column.name]
        numbers = np.stack([_numbers(found, name) for name in attributes], axis=1)
        cells = [found.domain[name].encode(found.frame[name]) for name in attributes]
        codes = found.domain.target_column.encode(labels)
        return cls(found.frame[attributes], labels, numbers, np.stack(cells, axis=1).astype(np.int32), codes)

    def taken(self, rows: Any) -> Part:
        arrays = (self.numbers[rows], self.cells[rows], self.codes[rows])
        return Part(self.frame.iloc[rows], self.labels.iloc[rows], *arrays)

    def seen_by(self, learner: Learner) -> tuple[Any, Any]:
        """The rows and classes as a learner reads them."""
        if learner.ours:
            return self.frame, self.labels
        return self.cells if learner.binned else self.numbers, self.codes


@dataclass(frozen=True)
class Parts:
    """Rows to learn from and rows to test on."""

    train: Part
    test: Part
    domain: Domain

    @property
    def mark(self) -> int:
        """A checksum of rows and order, by which results from several interpreters show that they belong together."""
        sums = (part.numbers.sum(axis=1) + part.codes for part in (self.train, self.test))
        return zlib.crc32(b"".join(each.astype(np.float32).tobytes() for each in sums))

    def quality(self, learner: Learner, model: Any) -> dict[str, float | None]:
        """Of a fitted model on the test rows: accuracy, AUROC for two classes, log loss, how far its shares are from
        how often it is right; and the largest class."""
        truth, target, classes = self.test.codes, self.domain.target_column, len(self.domain.classes)
        asked = self.test.seen_by(learner)[0]
        said, order = model.predict(asked), model.classes_
        if learner.ours:
            said, order = target.encode(said), target.encode(order)
        probability = np.zeros((len(truth), classes))
        probability[:, np.asarray(order, dtype=np.int64)] = model.predict_proba(asked)
        probability[~np.isfinite(probability).all(axis=1)] = 1 / classes  # a forest may have seen no class at all
        likely = np.clip(probability[np.arange(len(truth)), truth], CLIP, 1)
        most = np.bincount(self.train.codes, minlength=classes).argmax()
        return {
            "accuracy": float(np.mean(np.asarray(said) == truth)),
            "auroc": auc(probability, truth) if classes == 2 and 0 < truth.sum() < len(truth) else None,
            "log loss": float(-np.log(likely).mean()),
            "miscalibration": miscalibration(probability, truth),
            "majority": float(np.mean(truth == most)),
        }


def miscalibration(probability: NDArray[np.float64], truth: NDArray[np.int64]) -> float:
    """Return by how much a model is more, or less, sure of its likeliest class than it is right.

    The mean over ten bins of about equally many rows, in the order of how sure it is.

    Parameters
    ----------
    probability : array of float
        [row, class].
    truth : array of int

    Returns
    -------
    float

    >>> sure = np.array([[0.8, 0.2]] * 100)
    >>> round(miscalibration(sure, np.arange(100) % 5 // 4), 9)  # right in 80 of 100 rows, in all bins alike
    0.0
    >>> round(miscalibration(sure, np.zeros(100, dtype=np.int64)), 9)
    0.2
    """
    sure, right = probability.max(axis=1), probability.argmax(axis=1) == truth
    bins = [rows for rows in np.array_split(np.argsort(sure, kind="stable"), BINS) if len(rows)]
    return float(np.mean([abs(sure[rows].mean() - right[rows].mean()) for rows in bins]))


def _numbers(found: Dataset, name: str) -> NDArray[np.float64]:
    """Codes of nominal values, numbers within their bounds; what is missing is the least of them."""
    column, values = found.domain[name], found.frame[name]
    if isinstance(column, Nominal):
        return column.encode(values).astype(np.float64)
    low, high = bounds(found.domain, name)
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(np.clip(np.nan_to_num(numbers, nan=low), low, high))
