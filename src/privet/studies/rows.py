"""The rows of a trial: learned from, tested on, and the public domain of both.

The seed of a trial decides about its rows alone, so that trials which share data, seed and
number of rows are run on the same ones and can be compared in pairs; noise and public coins follow from the
key of the trial.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.datasets import Dataset, census, census_domain, load, random_tree
from privet.datasets.rebalanced import rebalanced
from privet.errors import DataError
from privet.kernel import Column, Domain, Nominal, Numeric
from privet.studies.histories import public_table
from privet.studies.synthetic import KINDS, draw, one_digit
from privet.studies.trial import Trial

TEST_ROWS = 10_000  # of generated tables


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows to test on, with their target."""

    train: pd.DataFrame
    test: pd.DataFrame
    domain: Domain


def split(trial: Trial) -> Split:
    """The rows of a trial.

    With the setting "folds" the seed counts folds, those of one shuffle after those of another; without it a
    tenth of the rows is held out at random.
    """
    settings = dict(trial.settings)
    if trial.data in GENERATED:
        return GENERATED[trial.data](trial, settings)
    whole = table(trial.data)
    train, test = places(trial, len(whole.frame))
    return Split(whole.frame.iloc[train], whole.frame.iloc[test], whole.domain)


def places(trial: Trial, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of so many rows a trial learns from, and which it tests on."""
    settings = dict(trial.settings)
    folds = int(settings.get("folds") or 10)
    repeat, fold = divmod(trial.seed, folds) if "folds" in settings else (trial.seed, 0)
    order = np.random.default_rng([zlib.crc32(trial.data.partition("/")[0].encode()), repeat]).permutation(rows)
    held = np.zeros(rows, dtype=np.bool_)
    held[fold::folds] = True
    return order[~held][: trial.rows], order[held]


@lru_cache(maxsize=4)
def table(name: str) -> Dataset:
    """A public table by name; a form of it stands after a stroke, such as adult/bins: five bins of equal width."""
    base, _, form = name.partition("/")
    if form not in FORMS:
        raise DataError(f"there is no form '{form}' of a table; known are {', '.join(filter(None, FORMS))}.")
    return FORMS[form](base)


# Adult's numbers in five bins of equal width, as Liu et al. have them: public bounds
BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (12285, 1484705),
    "education-num": (1, 16),
    "capital-gain": (0, 99999),
    "capital-loss": (0, 4356),
    "hours-per-week": (1, 99),
}
ADULT_DATA = 32_561  # rows of adult.data, which stand before those of adult.test


def in_bins(found: Dataset) -> Dataset:
    """All columns of a public file: numbers in five bins, or the values that occur, "?" among them where it does."""

    def column(name: str) -> Column:
        if name in BOUNDS:
            low, high = BOUNDS[name]
            return Numeric(name, Fraction(low), Fraction(high), Fraction(1), bins=5)
        return Nominal(name, tuple(sorted(set(found.frame[name]))))

    return Dataset(found.frame, replace(found.domain, columns=tuple(column(name) for name in found.frame.columns)))


def complete(found: Dataset) -> Dataset:
    """The rows that fit the domain of a table: those of Adult without a "?"."""
    fits = np.all([column.encode(found.frame[column.name]) >= 0 for column in found.domain], axis=0)
    return Dataset(found.frame[fits].reset_index(drop=True), found.domain)


def _liu(name: str) -> Dataset:
    """In bins, of Adult the first file alone, and a "?" is a value: so many rows and attributes as Liu et al. count."""
    found = load(name)
    if name == "adult":
        found = Dataset(found.frame.iloc[:ADULT_DATA], replace(found.domain, rows=30_000))
    return in_bins(found)


def _liu_frequency(name: str) -> Dataset:
    """The same with five bins of equal frequency, as Weka's Discretize makes them."""
    return _in_equal_frequency(_liu(name))


def _liu_both_files(name: str) -> Dataset:
    """The same of all rows of Adult, those that are meant to be tested on among them."""
    return _in_equal_frequency(in_bins(load(name)))


def _in_equal_frequency(found: Dataset) -> Dataset:
    """Numbers in five bins of equal frequency."""

    def column(known: Column) -> Column:
        if known.name not in BOUNDS:
            return known
        low, high = BOUNDS[known.name]
        edges = [edge for edge in equal_frequency(found.frame[known.name].to_numpy(), 5) if low < edge <= high]
        return Numeric(known.name, Fraction(low), Fraction(high), Fraction(1), edges=tuple(map(Fraction, edges)))

    return Dataset(found.frame, replace(found.domain, columns=tuple(column(each) for each in found.domain)))


def equal_frequency(values: NDArray[Any], bins: int) -> list[int]:
    """Where Weka's Discretize begins new bins of equal frequency, for whole numbers.

    A value that has more rows than a bin fills one by itself, and the rest is divided evenly into the bins that are
    left. A cut that misses the number of rows is moved back one value if that misses it by less.

    >>> equal_frequency(np.array([0] * 90 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), 3)
    [1, 6]
    """
    found, counts = np.unique(values.astype(np.int64), return_counts=True)
    wanted, left, counter, before, at_before = len(values) / bins, len(values), 0, 0, -1
    edges: list[int] = []
    for at, count in enumerate(counts.tolist()[:-1]):
        counter, left = counter + count, left - count
        if len(edges) == bins - 1:
            break
        if counter < wanted:
            before, at_before = counter, at
            continue
        if at_before >= 0 and wanted - before < counter - wanted:
            edges.append(int(found[at_before + 1]))
            counter -= before
            before, at_before = counter, at
        else:
            edges.append(int(found[at + 1]))
            counter, before, at_before = 0, 0, -1
        wanted = (left + counter) / (bins - len(edges))
    return edges


def _all_columns(name: str) -> Dataset:
    """Also the columns that the packaged domain leaves out: numbers in their bounds, or the values that occur."""
    found = complete(load(name))

    def column(left_out: str) -> Column:
        if left_out in BOUNDS:
            low, high = BOUNDS[left_out]
            return Numeric(left_out, Fraction(low), Fraction(high), Fraction(1))
        return Nominal(left_out, tuple(sorted(set(found.frame[left_out]))))

    more = [column(each) for each in found.frame.columns if each not in found.domain]
    return Dataset(found.frame, replace(found.domain, columns=(*found.domain, *more)))


def _census(trial: Trial, settings: Mapping[str, Any]) -> Split:
    rows = 50_000 if trial.rows is None else trial.rows
    both = census(rows + TEST_ROWS, trial.seed)
    return Split(both.iloc[:rows], both.iloc[rows:], census_domain())


def _random_tree(trial: Trial, settings: Mapping[str, Any]) -> Split:
    """Rows that a random tree classifies, its parameters in the settings; those to test on are without noise.

    With the setting "runs" the seed counts runs, those on one tree after those on another; without it all are on one.
    """
    shape = {name: settings[name] for name in RANDOM_TREE if name in settings}
    tree = trial.seed // int(settings["runs"]) if "runs" in settings else 0
    rows = 50_000 if trial.rows is None else trial.rows
    train, test = (np.random.default_rng([trial.seed, part]) for part in (0, 1))
    learned = random_tree(rows, tree_seed=tree, seed=train, **shape)
    tested = random_tree(TEST_ROWS, tree_seed=tree, seed=test, **{**shape, "p_noise": 0, "max_rows": TEST_ROWS})
    return Split(learned.frame, tested.frame, learned.domain)


def _synthetic(kind: str, trial: Trial, settings: Mapping[str, Any]) -> Split:
    """A table of a kind by its number; the shipped policies were learned from tables of smaller numbers."""
    return _drawn(kind, UNSEEN + trial.seed, 10_000 if trial.rows is None else trial.rows)


@lru_cache(maxsize=2)
def _drawn(kind: str, number: int, rows: int) -> Split:
    found = draw(kind, number, rows + TEST_ROWS)
    domain, about = found.domain, one_digit(rows)  # what is declared is about the rows that are learned from
    if domain.rows is not None:
        domain = replace(domain, rows=about, max_rows=2 * about)
    return Split(found.frame.iloc[:rows], found.frame.iloc[rows:], domain)


UNSEEN = 100_000
RANDOM_TREE = ("depth", "attributes", "arity", "classes", "numeric", "p_leaf", "p_noise", "max_rows")
FORMS: dict[str, Callable[[str], Dataset]] = {
    "": public_table,
    "all": _all_columns,
    "bins": lambda name: in_bins(complete(load(name))),
    "liu": _liu,
    "liu-frequency": _liu_frequency,
    "liu-both-files": _liu_both_files,
    "rebalanced": lambda name: rebalanced(public_table(name)),
}
GENERATED: dict[str, Callable[[Trial, Mapping[str, Any]], Split]] = {
    "census": _census,
    "random-tree": _random_tree,
    **{f"synthetic/{kind}": partial(_synthetic, kind) for kind in KINDS},
}
