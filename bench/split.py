"""The rows of a trial: the same for every learner."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np

from bench import data
from bench.trees import generate
from privet.kernel import Domain
from privet.studies import Trial
from privet.studies.encoded_rows import EncodedRows, EncodedSplit

GROWTH = "growth"  # the name of the rows that grow
TEST_ROWS = 10_000  # beside those


def split(trial: Trial) -> EncodedSplit:
    """Nine tenths for training and one for testing, drawn anew for each seed."""
    if trial.data == GROWTH:
        whole, domain = _growing(trial.rows or 0)
        rows = np.arange(len(whole.codes))
        return EncodedSplit(whole.taken(slice(None, -TEST_ROWS)), whole.taken(rows[-TEST_ROWS:]), domain)
    whole, domain = _whole(trial.data, trial.seed if data.drawn(trial.data) or trial.rows else 0, trial.rows)
    order = np.random.default_rng([trial.seed, zlib.crc32(trial.data.encode())]).permutation(len(whole.codes))
    cut = len(order) // 10
    return EncodedSplit(whole.taken(order[cut:]), whole.taken(order[:cut]), domain)


@lru_cache(maxsize=2)
def _whole(name: str, seed: int, rows: int | None) -> tuple[EncodedRows, Domain]:
    found = data.load(name, seed, rows)
    return EncodedRows.of(found), found.domain


@lru_cache(maxsize=2)
def _growing(rows: int) -> tuple[EncodedRows, Domain]:
    codes, label = generate(rows + TEST_ROWS)
    found = data.generated(codes, (int(codes.max()) + 1,) * codes.shape[1], label)
    return EncodedRows.of(found), found.domain
