"""Histories for a policy: every arm on every table, with one probe, on generated and on public rows.

Every arm is run, so there is nothing to explore. Noise is seeded, so that the same numbers give the same
history in every process; nothing fitted here is private.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.choice.arms import ARMS
from privet.choice.features import FEATURES, PROBE, context
from privet.choice.history import PUBLIC, SYNTHETIC, History
from privet.datasets import Dataset, load
from privet.kernel import Column, Domain, Nominal, Numeric, seeded_noise
from privet.open_table import open_table
from privet.release import Public
from privet.studies.processes import processes
from privet.studies.synthetic import KINDS, draw, one_digit

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

OBJECTIVES = ("accuracy", "auc")
EPSILONS = 3  # for each generated table, from the whole range
WEAK = 2  # and as many where the signal is weak: there a choice matters most, and is hardest
TEST_ROWS = 3000  # beside those that are learned from
GRID = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2")  # on public tables


@dataclass(frozen=True)
class Run:
    """All arms on one table at one epsilon: the probe's context, and the points of each arm by objective."""

    name: str
    data: str
    origin: str
    context: Mapping[str, float]
    points: Mapping[str, Mapping[str, float]]


# -- one table ------------------------------------------------------------------------------------


def run_arms(
    train: pd.DataFrame, test: pd.DataFrame, domain: Domain, epsilon: Fraction, seed: int
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The features that one probe gives, and what every arm comes to with the same probe."""
    target = domain.target_column
    codes = target.encode(test[target.name])
    with seeded_noise(seed), open_table(train, domain, budget=epsilon * len(ARMS)) as table:
        counts = table.histogram(target.name, epsilon=epsilon * PROBE)
        known = {name: float(value.value) for name, value in context(domain, epsilon, counts).items()}
        points: dict[str, dict[str, float]] = {objective: {} for objective in OBJECTIVES}
        for arm in ARMS.values():
            model = arm.fit(table, epsilon, counts, np.random.default_rng(seed), [], lambda text: None)
            shares = model.predict_proba(test)
            points["accuracy"][arm.name] = 100 * float(np.mean(model.predict_codes(test) == codes))
            points["auc"][arm.name] = 100 * auc(shares, codes)
    return known, points


def auc(shares: Floats, codes: NDArray[np.integer[Any]]) -> float:
    """The area under the ROC curve: the chance that a row of a class is ranked above another, over the classes."""
    from scipy.stats import rankdata

    areas = []
    for code in range(shares.shape[1]) if shares.shape[1] > 2 else (1,):
        own = codes == code
        inside, outside = int(own.sum()), int((~own).sum())
        if inside and outside:
            ranks = rankdata(shares[:, code])
            areas.append((float(ranks[own].sum()) - inside * (inside + 1) / 2) / (inside * outside))
    return float(np.mean(areas)) if areas else 0.5


def generated_runs(number: int) -> list[Run]:
    """The runs on the data set of this number: its kind, size and epsilons follow from it."""
    rng = np.random.default_rng([6, number])
    kind = KINDS[number % len(KINDS)]
    rows = round(math.exp(rng.uniform(math.log(300), math.log(60_000))))
    found = draw(kind, number, rows + TEST_ROWS)
    domain = found.domain if rng.random() < 0.5 else _with_numbers(found.domain)
    if domain.rows is not None:  # of what is learned from
        domain = replace(domain, rows=one_digit(rows), max_rows=None)
    train, test = found.frame.iloc[:rows], found.frame.iloc[rows:]
    runs = []
    for level in range(EPSILONS + WEAK):
        low, high = (0.008, 4.0) if level < EPSILONS else (4 / rows, 200 / rows)
        epsilon = Fraction(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")
        known, points = run_arms(train, test, domain, epsilon, (EPSILONS + WEAK) * number + level)
        name = f"{kind} {number}"
        runs.append(Run(f"{name} {level}", name, f"{SYNTHETIC}: {name}", known, points))
    return runs


def _with_numbers(domain: Domain) -> Domain:
    """The same rows with numbers where values have an order: trees then look for thresholds."""

    def number(column: Column) -> Column:
        if not isinstance(column, Nominal) or not column.ordered or column.size < 4:
            return column
        edges = tuple(Fraction(value) for value in range(1, column.size))
        return Numeric(column.name, Fraction(0), Fraction(column.size - 1), Fraction(1), edges)

    return replace(domain, columns=tuple(number(column) for column in domain))


# -- public tables --------------------------------------------------------------------------------

TABLES = ("adult", "mushroom", "nursery", "nursery2", "house-votes")
REPEATS = 12
SMALL, SMALL_REPEATS = 1000, 36  # rows below which a repeat is noisier


def public_runs(name: str, repeat: int) -> list[Run]:
    """All arms on a tenth split off a public table, at every epsilon of the grid."""
    found = public_table(name)
    order = np.random.default_rng([7, repeat]).permutation(len(found.frame))
    cut = len(order) // 10
    train, test = found.frame.iloc[order[cut:]], found.frame.iloc[order[:cut]]
    runs = []
    for epsilon in GRID:
        known, points = run_arms(train, test, found.domain, Fraction(epsilon), 10_000 + repeat)
        runs.append(Run(f"{name} {epsilon} {repeat}", f"{name} {epsilon}", f"{PUBLIC}: {name}", known, points))
    return runs


@lru_cache(maxsize=1)
def public_table(name: str) -> Dataset:
    """A public table, the rows that fit its domain; nursery2 is nursery with the question: special priority or not?"""
    found = load("nursery" if name == "nursery2" else name)
    frame, domain = found.frame, found.domain
    if name == "nursery2":
        frame = frame.assign(**{"class": frame["class"].where(frame["class"] == "spec_prior", "rest")})
        target = Nominal("class", ("rest", "spec_prior"))
        domain = replace(domain, columns=tuple(target if each.name == "class" else each for each in domain))
    fits = np.all([column.encode(frame[column.name]) >= 0 for column in domain], axis=0)
    return Dataset(frame.loc[fits, list(domain.names)].reset_index(drop=True), domain)


def public_repeats(name: str) -> int:
    return SMALL_REPEATS if len(public_table(name).frame) < SMALL else REPEATS


# -- histories ------------------------------------------------------------------------------------


def add(history: History, run: Run) -> None:
    """Write a run down, under one site for each objective."""
    known = {name: Public(value) for name, value in run.context.items()}
    for objective, points in run.points.items():
        rewards = {arm: Public(value, run.origin) for arm, value in points.items()}
        history.extend(site(objective), known, rewards, run=run.name, data=run.data)


def site(objective: str) -> str:
    """The name of an objective in a history: runs of other versions of the arms have another."""
    version = json.dumps([{name: arm.fingerprint for name, arm in ARMS.items()}, FEATURES])
    return f"learner by {objective} {hashlib.sha256(version.encode()).hexdigest()[:8]}"


def gather(
    history: History,
    *,
    first: int = 0,
    sets: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    progress: Progress = lambda text: None,
) -> int:
    """Run data sets that the history has not yet, until there are `sets` or `seconds` have passed; how many runs."""
    last = f" {EPSILONS + WEAK - 1}"  # runs of a data set are written in their order
    done = {run.removesuffix(last) for run in history.runs(site(OBJECTIVES[-1])) if run.endswith(last)}
    end = None if seconds is None else time.monotonic() + seconds
    numbers = (n for n in _count(first, sets) if f"{KINDS[n % len(KINDS)]} {n}" not in done)
    added = 0
    for runs in _finished(generated_runs, ((number,) for number in numbers), jobs, end):
        for run in runs:
            add(history, run)
        added += len(runs)
        progress(f"{added} runs on generated tables")
    return added


def gather_public(history: History, *, jobs: int = 1, progress: Progress = lambda text: None) -> int:
    """Run the public tables that the history has not yet; how many runs."""
    done = history.runs(site(OBJECTIVES[-1]))
    tasks = [
        (name, repeat)
        for name in TABLES
        for repeat in range(public_repeats(name))
        if f"{name} {GRID[-1]} {repeat}" not in done
    ]
    added = 0
    for runs in _finished(public_runs, iter(tasks), jobs, None):
        for run in runs:
            add(history, run)
        added += len(runs)
        progress(f"{added} of {len(tasks) * len(GRID)} runs on public tables")
    return added


def _count(first: int, sets: int | None) -> Iterator[int]:
    number = first
    while sets is None or number < first + sets:
        yield number
        number += 1


def _finished(
    work: Callable[..., list[Run]], tasks: Iterator[tuple[Any, ...]], jobs: int, end: float | None
) -> Iterator[list[Run]]:
    """What comes of the tasks, until there are no more or time is up; several at once in processes of their own."""
    tasks = itertools.takewhile(lambda _: end is None or time.monotonic() < end, tasks)
    if jobs == 1:
        yield from itertools.starmap(work, tasks)
        return
    with processes(jobs) as pool:
        waiting: set[Future[list[Run]]] = set()
        for task in tasks:
            waiting.add(pool.submit(work, *task))
            if len(waiting) > 2 * jobs:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        yield from (future.result() for future in waiting)
