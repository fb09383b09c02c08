"""`privet study compare`: every learner on one's own public rows, or on rows drawn from a public domain.

Choosing an algorithm by trying all of them on private rows is itself a release that nobody paid for, so this is for
rows that are public, or that nobody has (`privet.lab.invented`). Ours and the peers run on the same rows and
splits, peers in their own process.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privet.datasets import Dataset
from privet.errors import DataError, QuestionError, did_you_mean
from privet.kernel import Domain, as_epsilon, seeded_noise
from privet.rows import read
from privet.studies.encoded_rows import EncodedRows, EncodedSplit
from privet.studies.estimate import Estimate, reached
from privet.studies.findings import Cell, Findings, Panel
from privet.studies.fit import seed
from privet.studies.learners import LEARNERS
from privet.studies.model_example import model_example
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.text import decimal_text

LEAST_ROWS = 100
SHRUNK = (16, 4, 1)  # the number of rows is divided by these, to see how many are needed
PLAIN = ("sklearn-tree", "sklearn-forest")  # without privacy, what can be hoped for
PEERS = ("diffprivlib-tree", "diffprivlib-forest", "dp-ebm", "dp-ebm-05")
REPEATS = {"tiny": 2, "quick": 3, "medium": 6, "full": 10}


# -- what is asked --------------------------------------------------------------------------------


def epsilons(text: str) -> tuple[str, ...]:
    """A list such as 0.1,1 or a range such as 0.01:10, three values a decade.

    >>> epsilons("0.01:10")
    ('0.01', '0.02', '0.05', '0.1', '0.2', '0.5', '1', '2', '5', '10')
    """
    if ":" not in text:
        return tuple(decimal_text(as_epsilon(part)) for part in text.split(","))
    low, high = (as_epsilon(part) for part in text.split(":", 1))
    if low > high:
        turned = f"{decimal_text(high)}:{decimal_text(low)}"
        raise QuestionError(f"the range {text} of epsilon is upside down; write {turned}.")
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    round_ones = (f"{digit}e{decade}" for decade in decades for digit in (1, 2, 5))
    within = [each for each in map(as_epsilon, round_ones) if low <= each <= high]
    return tuple(decimal_text(each) for each in sorted({low, *within, high}))


@dataclass(frozen=True)
class Comparison:
    """What is compared: rows in a file, their domain, and the learners that can be run."""

    data: Path
    domain: Path
    learners: tuple[str, ...]
    epsilons: tuple[str, ...]
    target: float | None = None  # accuracy in percent, for the number of rows that it takes

    @property
    def name(self) -> str:
        """The file with a mark of its content: other rows under the same name are other trials."""
        content = self.data.read_bytes() + self.domain.read_bytes()
        return f"{self.data.stem} {hashlib.sha256(content).hexdigest()[:12]}"

    @property
    def invented(self) -> bool:
        """Whether the rows were made by `invented.invent`, as their file's name says."""
        return self.data.name.startswith("invented-")

    def study(self) -> Study:
        return Study(
            "compare",
            f"Which learner for {'invented rows' if self.invented else self.data.name}?",
            f"all learners on {self.data.name}, from epsilon {self.epsilons[0]} to {self.epsilons[-1]}",
            self.trials,
            self.read,
            about="Every algorithm of privet and the peers that are installed, on the same rows and splits."
            + " The rows are INVENTED from the domain: nobody's, and no measure of a real table." * self.invented,
        )

    def trials(self, size: str) -> list[Trial]:
        data, rows = self.name, len(table(self.data, self.domain).frame)
        repeats = REPEATS[size]
        found = []
        for part in SHRUNK if size == "full" else SHRUNK[1:]:
            for repeat in range(repeats if part == 1 else math.ceil(repeats / 2)):
                for name in self.learners:
                    learner = LEARNERS[name]
                    number = None if part == 1 else rows * 9 // 10 // part
                    for epsilon in self.epsilons if learner.private else ("",):
                        found.append(Trial(data, name, epsilon, repeat, number, learner.options))
        return found

    def read(self, outcomes: Sequence[Outcome]) -> Findings:
        whole = [outcome for outcome in outcomes if outcome.trial.rows is None]
        if not whole:
            return Findings((), notes=("nothing was measured yet",))
        panels = [_against_epsilon(whole, "accuracy"), _against_epsilon(whole, "auroc")]
        target = self.target if self.target is not None else _reachable(whole)
        needed = rows_needed(outcomes, target, len(table(self.data, self.domain).frame) * 9 // 10)
        if needed:
            panels.append(
                Panel(f"Rows needed for {target:.1f}%", "epsilon", tuple(needed), "rows", kind="table", log=True)
            )
        return Findings(tuple(panel for panel in panels if panel.cells), notes=_notes(self.learners))


# -- one trial ------------------------------------------------------------------------------------


def measure(trial: Trial, data: str, domain: str) -> Mapping[str, Any]:
    """A learner on nine tenths of the rows, tested on the others; percent."""
    learner, parts = LEARNERS[trial.learner], split(trial, Path(data), Path(domain))
    model = learner.build(trial, parts.domain)
    with seeded_noise(seed(trial)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(*parts.train.seen_by(learner))
        taken = time.process_time() - start
        quality = parts.quality(learner, model)
    found: dict[str, Any] = {
        name: None if quality[name] is None else 100 * float(quality[name] or 0)
        for name in ("accuracy", "auroc", "majority")
    }
    found["cpu"] = round(taken, 4)
    found["rows"] = len(parts.train.codes)
    # weights of gradient descent are no model that a page can show
    if learner.ours and trial.seed == 0 and trial.rows is None and hasattr(model, "model_"):
        target = parts.domain.target_column.name
        found["specimen"] = model_example(model.model_, parts.train.frame.assign(**{target: parts.train.labels}))
    return found


def split(trial: Trial, data: Path, domain: Path) -> EncodedSplit:
    whole, declared = _whole(data, domain)
    order = np.random.default_rng([11, trial.seed]).permutation(len(whole.codes))
    cut = len(order) // 10
    return EncodedSplit(whole.taken(order[cut:][: trial.rows]), whole.taken(order[:cut]), declared)


@lru_cache(maxsize=1)
def _whole(data: Path, domain: Path) -> tuple[EncodedRows, Domain]:
    found = table(data, domain)
    return EncodedRows.of(found), found.domain


@lru_cache(maxsize=1)
def table(data: Path, domain: Path) -> Dataset:
    """The public rows that fit their domain."""
    declared = Domain.load(domain)
    target = declared.target_column  # says so where none is declared
    frame = pd.concat(list(read(data)), ignore_index=True)
    missing = [name for name in declared.names if name not in frame.columns]
    if missing:
        meant = did_you_mean(missing[0], map(str, frame.columns))
        raise DataError(f"'{data}' has no column '{missing[0]}', which the domain declares{meant}; check both.")
    fits = np.all([column.encode(frame[column.name]) >= 0 for column in declared], axis=0)
    frame = frame.loc[fits, list(declared.names)].reset_index(drop=True)
    if len(frame) < LEAST_ROWS:
        raise DataError(
            f"{len(frame)} rows of '{data}' fit the domain; comparing takes {LEAST_ROWS} or more, so check its values."
        )
    if len(target.values) < 2:
        raise QuestionError(f"the target '{target.name}' has one class; there is nothing to compare.")
    return Dataset(frame, declared)


# -- what is found --------------------------------------------------------------------------------


def _values(outcomes: Sequence[Outcome], measure: str) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        value = (outcome.result or {}).get(measure)
        if value is not None:
            found.setdefault((outcome.trial.learner, outcome.trial.epsilon), []).append(float(value))
    return found


def _against_epsilon(outcomes: Sequence[Outcome], measure: str) -> Panel:
    known = _values(outcomes, measure)
    cells = [
        Cell(LEARNERS[name].title, float(epsilon), Estimate.of(values))
        for (name, epsilon), values in known.items()
        if epsilon
    ]
    y = {"accuracy": "accuracy in percent", "auroc": "AUROC in percent"}[measure]
    levels = [(LEARNERS[name].title, Estimate.of(values)) for (name, epsilon), values in known.items() if not epsilon]
    if measure == "accuracy":
        most = [float(outcome.result["majority"]) for outcome in outcomes if outcome.result is not None]
        levels.append(("always the most frequent class", Estimate.of(most)))
    title = f"{y.partition(' ')[0].capitalize() if measure == 'accuracy' else 'AUROC'} against epsilon"
    return Panel(title, "epsilon", tuple(cells), y, log=True, levels=tuple(levels), frontier=True)


def _reachable(outcomes: Sequence[Outcome]) -> float:
    """Nine tenths of the way from the most frequent class to the best of all: some learners get there, not all."""
    best = max(float(np.mean(values)) for values in _values(outcomes, "accuracy").values())
    most = float(np.mean([outcome.result["majority"] for outcome in outcomes if outcome.result is not None]))
    return round(most + 0.9 * max(best - most, 0.0), 1)


def rows_needed(outcomes: Sequence[Outcome], target: float, most: int) -> list[Cell]:
    """The number of rows at which the mean of a learner reaches an accuracy, where it does, for each epsilon.

    Between numbers that were tried it is read off a straight line over the logarithm of rows.
    """
    known: dict[tuple[str, str], dict[int, list[float]]] = {}
    for outcome in outcomes:
        if outcome.result is not None and outcome.trial.epsilon:
            place = outcome.trial.learner, outcome.trial.epsilon
            by_rows = known.setdefault(place, {})
            by_rows.setdefault(outcome.trial.rows or most, []).append(float(outcome.result["accuracy"]))
    cells = []
    for (name, epsilon), by_rows in known.items():
        means = {rows: float(np.mean(values)) for rows, values in sorted(by_rows.items())}
        found = reached(list(means), list(means.values()), target)
        if math.isfinite(found):
            cells.append(Cell(LEARNERS[name].title, float(epsilon), Estimate(round(found, -1), 0.0, 1)))
    return cells


def _notes(names: Sequence[str]) -> tuple[str, ...]:
    notes = ["Only for public rows: choosing by trying on private rows is a release that nobody paid for."]
    if any(name.startswith("dp-ebm") for name in names):
        notes.append("DP-EBM has a delta of 1e-6 besides epsilon, and reads nominal values from the rows for nothing.")
    return tuple(notes)


def available(domain: Domain, found: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the learners that can be run, and a sentence for each that cannot.

    `found` says which of them have no package here.
    """
    classes = len(domain.target_column.values)
    names = [name for name, learner in LEARNERS.items() if learner.ours and learner.private]
    names += [*PEERS, *PLAIN]
    said = [problem for name in names if (problem := found.get(name))]
    binary = [name for name in names if LEARNERS[name].binary and classes > 2 and not found.get(name)]
    said += [f"{LEARNERS[name].title} is left out: it knows two classes only" for name in binary]
    unbounded = [
        name for name in names if LEARNERS[name].ours and domain.max_rows is None and LEARNERS[name].needs_max_rows
    ]
    said += [f"{LEARNERS[name].title} is left out: it needs max_rows in the domain file" for name in unbounded]
    return [name for name in names if not found.get(name) and name not in (*binary, *unbounded)], said
