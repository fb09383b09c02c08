"""DPComp's view: histograms of one and two columns bought in three ways, and true, noisy and error of every cell.

After Hay et al., Principled evaluation of differentially private algorithms using DPBench, SIGMOD 2016. The ways are
branches of a NoisyIf (`privet.choice.histograms`), which is run beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.histograms import WAYS, histogram_choice
from privet.datasets import Dataset, load
from privet.kernel import Numeric, as_epsilon, seeded_noise
from privet.open_table import open_table
from privet.release import Public
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, ClaimReading, Findings, Panel
from privet.studies.fit import seed
from privet.studies.published import printed
from privet.studies.rows import complete
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial, Work
from privet.studies.verdict import CERTAIN, positive

SOURCE = "Hay et al., Principled evaluation of differentially private algorithms using DPBench, SIGMOD 2016"
TASK = "dpcomp"
CHOICE = "noisy-if"
WEAK, STRONG = 2.0, 50.0  # rows of a cell times epsilon, below and above which a histogram is faint or plain
DRAWN = "0.1"  # the epsilon of what is drawn cell by cell


@dataclass(frozen=True)
class PublicHistogram:
    """A histogram of a public table: its columns, and finer bins for the first of them."""

    data: str
    columns: tuple[str, ...]
    bins: int | None = None
    drawn: bool = True  # cell by cell; one with thousands of cells is not

    @property
    def name(self) -> str:
        finer = f", {self.bins} cells" if self.bins else ""
        return f"{self.data}: {' by '.join(self.columns)}{finer}"

    def load(self) -> Dataset:
        """Return the rows that fit the domain of the table, with the finer bins."""
        table = _complete(self.data)
        if self.bins is None:
            return table
        finer = replace(table.domain[self.columns[0]], bins=self.bins, edges=None)  # type: ignore[arg-type]
        assert isinstance(finer, Numeric)
        columns = tuple(finer if column.name == finer.name else column for column in table.domain)
        return Dataset(table.frame, replace(table.domain, columns=columns))


@lru_cache(maxsize=4)
def _complete(name: str) -> Dataset:
    return complete(load(name))


HISTOGRAMS = {
    histogram.name: histogram
    for histogram in (
        PublicHistogram("adult", ("age",), 73),
        PublicHistogram("adult", ("capital-gain",), 1000, drawn=False),
        PublicHistogram("adult", ("age", "education-num")),
        PublicHistogram("adult", ("capital-gain", "capital-loss"), drawn=False),
        PublicHistogram("mushroom", ("gill-color",)),
        PublicHistogram("mushroom", ("gill-color", "odor")),
        PublicHistogram("nursery", ("has_nurs",)),
        PublicHistogram("nursery", ("has_nurs", "children")),
        PublicHistogram("house-votes", ("physician-fee-freeze",)),
        PublicHistogram("house-votes", ("physician-fee-freeze", "el-salvador-aid")),
    )
}
EPSILONS = {
    "tiny": ("0.1",),
    "quick": ("0.001", "0.01", "0.1", "1"),
    "medium": ("0.001", "0.01", "0.03", "0.1", "1"),
    "full": ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3"),
}
REPEATS = {"tiny": 2, "quick": 4, "medium": 12, "full": 100}


def trials(size: str) -> list[Trial]:
    """Return each way, and the choice, for each histogram and epsilon."""
    histograms = list(HISTOGRAMS)[-2:] if size == "tiny" else list(HISTOGRAMS)
    return [
        Trial(HISTOGRAMS[name].data, way, epsilon, repeat, settings=(("task", TASK), ("histogram", name)))
        for name in histograms
        for epsilon in EPSILONS[size]
        for way in (*WAYS, CHOICE)
        for repeat in range(REPEATS[size])
    ]


def buy(trial: Trial) -> Mapping[str, Any]:
    """Return the errors of a histogram: of a cell, and of a sum over a quarter of the cells, on average.

    The rows are public: errors are what a study may compute and an analyst may not.
    """
    asked = HISTOGRAMS[str(dict(trial.settings)["histogram"])]
    table, epsilon = asked.load(), as_epsilon(trial.epsilon)
    codes = [table.domain[name].encode(table.frame[name]) for name in asked.columns]
    shape = tuple(table.domain[name].size for name in asked.columns)
    fits = np.all([code >= 0 for code in codes], axis=0)
    true = np.zeros(shape)
    np.add.at(true, tuple(code[fits] for code in codes), 1)
    branch = trial.learner
    with seeded_noise(seed(trial)), open_table(table.frame, table.domain, epsilon) as opened:
        if trial.learner == CHOICE:
            rows = Public(float(fits.sum()), origin="the rows of a public table")
            outcome = histogram_choice(table.domain, asked.columns, epsilon, rows).run(opened)
            noisy, branch = np.asarray(outcome.value), outcome.branch
        else:
            noisy = WAYS[trial.learner](opened, asked.columns, epsilon)
        spent: Fraction = opened.budget.spent
    assert spent == epsilon
    off = noisy - true
    found: dict[str, Any] = {
        "error": float(np.abs(off).mean()),
        "range error": float(np.abs(_ranges(off)).mean()),
        "signal": float(fits.sum()) * float(epsilon) / true.size,
        "branch": branch,
    }
    if trial.seed == 0 and trial.epsilon == DRAWN and asked.drawn:
        labels = [list(table.domain[name].labels) for name in asked.columns]
        found |= {"true": true.tolist(), "noisy": np.round(noisy, 1).tolist(), "labels": labels}
    return found


def _ranges(off: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the errors of all sums over a quarter of the cells: of an interval, or of a rectangle."""
    sums = off
    for axis in range(off.ndim):
        length = max(off.shape[axis] // (4 if off.ndim == 1 else 2), 1)
        zero = np.zeros_like(np.take(sums, [0], axis=axis))
        ends = np.concatenate([zero, np.cumsum(sums, axis=axis)], axis=axis)
        later, earlier = (np.arange(length, ends.shape[axis]), np.arange(ends.shape[axis] - length))
        sums = np.take(ends, later, axis=axis) - np.take(ends, earlier, axis=axis)
    return np.asarray(sums)


# -- what came of it ------------------------------------------------------------------------------

Errors = dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]]  # histogram, epsilon -> way -> results


def read(outcomes: Sequence[Outcome]) -> Findings:
    """Return errors by epsilon, cells as they are and as they were bought, and what holds of the claims."""
    errors: Errors = {}
    for outcome in outcomes:
        assert outcome.result is not None
        place = str(dict(outcome.trial.settings)["histogram"]), outcome.trial.epsilon
        errors.setdefault(place, {}).setdefault(outcome.trial.learner, []).append(outcome.result)
    names = list(dict.fromkeys(name for name, _ in errors))
    panels = [panel for name in names for panel in (_by_epsilon(name, errors), *_drawn(name, errors))]
    claims = (_none(errors), _few(errors), _many(errors), _levels(errors), _chosen(errors))
    return Findings(tuple(panels) or (Panel("Errors", "epsilon", ()),), claims, (UNITS, READ_CELLS))


def _by_epsilon(name: str, errors: Errors) -> Panel:
    cells = tuple(
        Cell(way, float(epsilon), Estimate.of([math.log10(max(result["error"], 1e-3)) for result in results]))
        for (histogram, epsilon), ways in errors.items()
        if histogram == name
        for way, results in ways.items()
    )
    return Panel(name, "epsilon", cells, "error of a cell, log10 of rows", log=True)


def _drawn(name: str, errors: Errors) -> Iterator[Panel]:
    """One column: true and noisy cells in rows below each other, and errors; two: a map for each."""
    ways = {way: result for way, results in errors.get((name, DRAWN), {}).items() for result in results[:1]}
    kept = {way: result for way, result in ways.items() if "noisy" in result and way != CHOICE}
    if not kept:
        return
    labels, true = next((result["labels"], np.array(result["true"])) for result in kept.values())
    maps = {"true": true, **{way: np.array(result["noisy"]) for way, result in kept.items()}}
    off = {way: noisy - true for way, noisy in maps.items() if way != "true"}
    at, rows, wrong = f"epsilon {DRAWN}", f"{name}: rows", f"{name}: error in rows"
    if true.ndim == 1:
        yield Panel(f"{name}, cell by cell at {at}", "cell", _strip(labels[0], maps), rows, "cells")
        yield Panel(f"{name}, errors at {at}", "cell", _strip(labels[0], off), wrong, "cells")
        return
    for titles, arrays, y in (("{}", maps, rows), ("error of {}", off, wrong)):
        for way, values in arrays.items():
            strips = dict(zip(labels[0], values, strict=True))
            x, bought = str(HISTOGRAMS[name].columns[1]), "" if way == "true" else f" at {at}"
            yield Panel(f"{name}, {titles.format(way)}{bought}", x, _strip(labels[1], strips), y, "cells")


def _strip(labels: Sequence[str], rows: Mapping[str, NDArray[Any]]) -> tuple[Cell, ...]:
    return tuple(
        Cell(str(series), str(label), Estimate(float(value), 0.0, 1))
        for series, values in rows.items()
        for label, value in zip(labels, values, strict=True)
    )


def _gaps(ways: Mapping[str, Sequence[Mapping[str, Any]]], one: str, other: str, what: str = "error") -> list[float]:
    """Return by how many rows the error of one way is below that of another, run by run."""
    return [b[what] - a[what] for a, b in zip(ways.get(one, ()), ways.get(other, ()), strict=False)]


def _best(ways: Mapping[str, Sequence[Mapping[str, Any]]], what: str = "error") -> str:
    return min((way for way in ways if way != CHOICE), key=lambda way: float(np.mean([r[what] for r in ways[way]])))


def _none(errors: Errors) -> Claim:
    """Whether different ways are surely best at different places."""
    certain = CERTAIN / max(len(errors), 1)
    wins: dict[str, int] = {}
    for ways in errors.values():
        best = _best(ways)
        others = [way for way in ways if way not in (best, CHOICE)]
        if others and all(positive(_gaps(ways, best, other), certain) for other in others):
            wins[best] = wins.get(best, 0) + 1
    told = ", ".join(f"{way} {count}" for way, count in sorted(wins.items())) or "none"
    evidence = f"surely best at so many of {len(errors)} places, by the error of a cell: {told}"
    return Claim(said("none"), True if len(wins) > 1 else None, evidence)


def _pooled(errors: Errors, keep: Any, one: str, other: str, what: str = "error") -> tuple[list[float], int]:
    """Return the relative gain of one way over another at each place that is kept, and how many there are."""
    gains = []
    for ways in errors.values():
        results = [result for results in ways.values() for result in results]
        if results and keep(results[0]["signal"]) and ways.get(one) and ways.get(other):
            ours, theirs = (float(np.mean([result[what] for result in ways[way]])) for way in (one, other))
            gains.append(100 * (1 - ours / theirs) if theirs > ours else -100 * (1 - theirs / ours))
    return gains, len(gains)


def _few(errors: Errors) -> Claim:
    gains, places = _pooled(errors, lambda signal: signal < WEAK, "data-aware", "identity")
    return Claim(said("few"), positive(gains), _percent("data-aware", "identity", f"below {WEAK:g}", gains, places))


def _many(errors: Errors) -> Claim:
    """Whether identity is as good on average over places, and at every single one."""
    gains, places = _pooled(errors, lambda signal: signal > STRONG, "identity", "data-aware")
    plain = {place: ways for place, ways in errors.items() if next(iter(ways.values()))[0]["signal"] > STRONG}
    certain = CERTAIN / max(len(plain), 1)
    behind = [place for place, ways in plain.items() if positive(_gaps(ways, "data-aware", "identity"), certain)]
    told = "; ".join(f"{name} at {epsilon}" for name, epsilon in behind)
    readings = [
        ClaimReading(
            "on average over places",
            positive(gains),
            _percent("identity", "data-aware", f"above {STRONG:g}", gains, places),
        ),
        ClaimReading(
            "at every place",
            False if behind else positive(gains),
            f"it is surely behind at {len(behind)} of {places}{f': {told}' if told else ''}",
        ),
    ]
    return Claim.read(said("many"), readings, erratum=EMPTY if behind else "")


def _levels(errors: Errors) -> Claim:
    """Sums over a quarter of the cells, where these are many; and single cells."""
    large = {place: ways for place, ways in errors.items() if _cells_of(place[0]) >= 500}
    gains, places = _pooled(large, lambda signal: True, "hierarchical", "identity", "range error")
    single, _ = _pooled(errors, lambda signal: True, "identity", "hierarchical")
    verdicts = positive(gains), positive(single)
    holds = None if None in verdicts else all(verdicts)
    evidence = (
        f"sums over a quarter of 500 cells or more: hierarchical below identity by "
        f"{np.mean(gains) if gains else 0:.0f}% of the error, {places} places; single cells: above it by "
        f"{np.mean(single) if single else 0:.0f}%"
    )
    return Claim(said("levels"), holds, evidence)


def _cells_of(name: str) -> int:
    asked = HISTOGRAMS[name]
    if asked.bins:
        return asked.bins
    domain = load(asked.data).domain
    return math.prod(domain[column].size for column in asked.columns)


def _chosen(errors: Errors) -> Claim:
    """What the NoisyIf loses to the best way in hindsight, beside one way throughout."""
    lost: dict[str, list[float]] = {}
    for ways in errors.values():
        least = float(np.mean([result["error"] for result in ways[_best(ways)]]))
        for way, results in ways.items():
            lost.setdefault(way, []).append(100 * (float(np.mean([r["error"] for r in results])) / least - 1))
    means = {way: float(np.mean(values)) for way, values in lost.items()}
    evidence = "above the best in hindsight, on average over places: " + ", ".join(
        f"{way} {mean:.0f}%" for way, mean in means.items()
    )
    fixed = min((way for way in means if way != CHOICE), key=lambda way: means[way], default=None)
    if fixed is None or CHOICE not in lost:
        return Claim(OURS, None, evidence)
    holds = positive([other - own for own, other in zip(lost[CHOICE], lost[fixed], strict=True)])
    return Claim(OURS, holds, evidence)


def _percent(one: str, other: str, where: str, gains: Sequence[float], places: int) -> str:
    mean = f"{np.mean(gains):.0f}% ± {Estimate.of(gains).se:.0f}" if gains else "nothing"
    return (
        f"{one} takes {mean} off the error of {other} where rows of a cell times epsilon are {where}: {places} places"
    )


def said(claim: str) -> str:
    """Return a sentence of the paper, in our words."""
    return str(printed("dpcomp")["claims"][claim])


OURS = "Ours, not the paper's: a NoisyIf that reads rows, epsilon and cells errs less than any one way throughout"
EMPTY = (
    "Where most cells are empty, or alike by design, groups of cells save noise however many rows there are: a place "
    "is called plain here by its rows alone."
)
UNITS = "Errors are rows, means over cells; sums over a quarter of the cells are those of all intervals or rectangles."
READ_CELLS = (
    "Cells are drawn for one run at epsilon 0.1: the darker the more rows, by the square root; negative numbers in "
    "red with a bar below them. Two columns are walked along Hilbert's curve."
)

STUDIES: tuple[Study, ...] = (
    Study(
        "dpcomp-histograms",
        "Histograms bought in three ways: true, noisy and error of every cell",
        SOURCE,
        trials,
        read,
        data=("adult", "mushroom", "nursery", "house-votes"),
        about="Histograms of one and two columns of four public tables, cell by cell, in levels, and in groups of like "
        "cells as DAWA makes them; and a NoisyIf that chooses between them.",
    ),
)
TASKS: dict[str, Work] = {TASK: buy}
