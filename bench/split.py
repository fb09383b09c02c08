"""The rows of a trial: the same for every learner, as a frame for ours and as numbers for the peers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench import data
from bench.learners import bounds
from bench.trees import generate
from privet.column import Nominal
from privet.datasets import Dataset
from privet.domain import Domain
from privet.studies import Trial

GROWTH = "growth"  # the name of the rows that grow
TEST_ROWS = 10_000  # beside those


@dataclass(frozen=True)
class Part:
    """Rows in both forms, and the codes of their classes."""

    frame: pd.DataFrame
    labels: pd.Series[Any]
    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]

    def taken(self, rows: Any) -> Part:
        return Part(self.frame.iloc[rows], self.labels.iloc[rows], self.numbers[rows], self.codes[rows])


@dataclass(frozen=True)
class Split:
    train: Part
    test: Part
    domain: Domain

    @property
    def mark(self) -> int:
        """A checksum of rows and order, by which results from several interpreters show that they belong together."""
        sums = (part.numbers.sum(axis=1) + part.codes for part in (self.train, self.test))
        return zlib.crc32(b"".join(each.astype(np.float32).tobytes() for each in sums))


def split(trial: Trial) -> Split:
    """Nine tenths for training and one for testing, drawn anew for each seed."""
    if trial.data == GROWTH:
        whole, domain = _growing(trial.rows or 0)
        rows = np.arange(len(whole.codes))
        return Split(whole.taken(slice(None, -TEST_ROWS)), whole.taken(rows[-TEST_ROWS:]), domain)
    whole, domain = _whole(trial.data, trial.seed if data.drawn(trial.data) or trial.rows else 0, trial.rows)
    order = np.random.default_rng([trial.seed, zlib.crc32(trial.data.encode())]).permutation(len(whole.codes))
    cut = len(order) // 10
    return Split(whole.taken(order[cut:]), whole.taken(order[:cut]), domain)


@lru_cache(maxsize=2)
def _whole(name: str, seed: int, rows: int | None) -> tuple[Part, Domain]:
    found = data.load(name, seed, rows)
    return _part(found), found.domain


@lru_cache(maxsize=2)
def _growing(rows: int) -> tuple[Part, Domain]:
    codes, label = generate(rows + TEST_ROWS)
    found = data.generated(codes, (int(codes.max()) + 1,) * codes.shape[1], label)
    return _part(found), found.domain


def _part(found: Dataset) -> Part:
    attributes = list(found.domain.attributes)
    labels = found.frame[found.domain.target_column.name]
    numbers = np.stack([_numbers(found, name) for name in attributes], axis=1)
    return Part(found.frame[attributes], labels, numbers, found.domain.target_column.encode(labels))


def _numbers(found: Dataset, name: str) -> NDArray[np.float64]:
    """Codes of nominal values, numbers within their bounds; what is missing is the least of them."""
    column, values = found.domain[name], found.frame[name]
    if isinstance(column, Nominal):
        return column.encode(values).astype(np.float64)
    low, high = bounds(found.domain, name)
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(np.clip(np.nan_to_num(numbers, nan=low), low, high))
