"""What an analyst can ask a table, as subjects: through the public interface, down to the engine.

One table holds many copies of a few rows, told apart by a public column, and a question to
all copies at once is a run for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from privet.kernel import RESIDUAL_GRID, AdditiveModel, Nominal, PermuteAndFlip, Quality, WeightedMax, race
from privet.lab import WorstLoss, probabilities, worst_loss
from privet.open_table import open_table
from privet.release import Releases
from privet.verification import observe
from privet.verification.checks import Check, ExactCheck, FiniteCheck, NeighbourCheck, Neighbours
from privet.verification.events import Observations
from privet.verification.subject import Effort, Subject
from privet.verification.tables import DOMAIN, ROW, Pair, boundary_pairs, climb, known_pairs, random_pair

UNLIMITED = 10**6
CLIMBED = 15  # steps of a hill climb
CLIMBED_OUTCOMES = 40  # tried at each step; the pair that is found is then tried with more
CROSSED = 40  # outcomes of each pair that crosses a boundary
PILOT = 300
REOPEN = 100  # questions to one opened table: a ledger in memory grows with every charge
CERTAIN = 2**15  # a logit beyond which the other class has probability 0

Ask = Callable[[Any, Fraction], Any]


@dataclass(frozen=True)
class QuestionCase:
    """A question by name; it is asked of a table, or of all parts of one."""

    name: str
    line: str
    ask: Ask
    runs: int = 20_000
    copied: bool = (
        True  # False: its answer speaks of several parts at once, so it is asked of one table again and again
    )


_SURE = AdditiveModel((CERTAIN, 0))  # every residual of class 1 is as large as can be
_OTHER = AdditiveModel((0, CERTAIN))  # sure of class 1
_UNSURE = AdditiveModel((0, 0))  # every residual is a half
_CAPS = (RESIDUAL_GRID, RESIDUAL_GRID // 2)
_HALVES = (RESIDUAL_GRID // 2, RESIDUAL_GRID // 2)
_TABLES = [("a",), ("b",), ("a", "b")]


def _select(criterion: Any, attributes: Sequence[str] = ("a", "b"), **more: Any) -> Ask:
    return lambda table, epsilon: table.select(criterion, epsilon, attributes=list(attributes), **more)


def _histograms(table: Any, epsilon: Fraction) -> Any:
    ((one, two),) = table.parts().histograms([[("a",), ("b", "y")]], epsilon)
    return np.concatenate([one.values.ravel(), two.values.ravel()])


def _grouped(table: Any, epsilon: Fraction) -> Any:
    return table.grouped_histogram("a", "y", groups=[0, 1, 1, 0], epsilon=epsilon)


def _other_cells(table: Any, epsilon: Fraction) -> Any:
    """A number that is read a second time, in bins that were not declared."""
    again = replace(DOMAIN.numeric("x"), name="x again", bins=3)
    finer = replace(DOMAIN, columns=(*DOMAIN.columns, again))
    return table.with_cells(finer, {"x again": "x"}).histogram("a", "x again", epsilon=epsilon)


def _refined(table: Any, epsilon: Fraction) -> Any:
    """All levels of a count, of a table or of every part: together they cost the last epsilon."""
    first = table.count(epsilon / 4)
    levels = first, (half := first.refine(epsilon / 2)), half.refine(epsilon)
    return list(zip(*levels, strict=True)) if isinstance(first, Releases) else levels


def monitored(table: Any, epsilon: Any) -> list[bool]:
    """A record that the first model classifies right and the second does not moves their scores apart."""
    monitor = table.monitor(Fraction(1, 3), epsilon)
    answers = []
    for model in (_OTHER, _SURE, _SURE):
        answers.append(monitor.reached(model))
        if monitor.closed:
            break
    return answers


# A row adds up to 3 to a score, or takes as much; some add to one score and take from the other.
QUALITIES = {"plus": Quality(("a", "y"), [[0, 3], [1, -3]]), "minus": Quality(("y",), [3, -3])}
# Numbers beyond the bound are clipped to it, and none is negative.
_ONE_SIDED = {"a": Quality(("a",), [0, 9]), "b": Quality(("b",), [2, 1]), "all": Quality((), 1)}

QUESTIONS: tuple[QuestionCase, ...] = (
    QuestionCase("count", "how many rows", lambda t, e: t.count(e)),
    QuestionCase("where-count", "how many rows fit conditions", lambda t, e: t.where(a="0", x=(0, 5)).count(e)),
    QuestionCase("refined-count", "how many rows, refined twice", _refined, 6_000),
    QuestionCase("histogram", "rows of every cell", lambda t, e: t.histogram("a", "y", epsilon=e)),
    QuestionCase("grouped-histogram", "rows of groups of cells", _grouped),
    QuestionCase(
        "group-cells", "which cells have equal counts", lambda t, e: t.group_cells("a", epsilon=e, price=1), 10_000
    ),
    QuestionCase("sum", "the sum of a number", lambda t, e: t.sum("x", e)),
    QuestionCase("mean", "the mean of a number", lambda t, e: t.mean("x", e), 10_000),
    QuestionCase("median", "the median of a number", lambda t, e: t.median("x", e), 10_000),
    QuestionCase("quantile", "a quantile of a number", lambda t, e: t.quantile("x", 0.9, e), 10_000),
    QuestionCase("majority", "the most frequent value", lambda t, e: t.majority("a", e)),
    *(
        QuestionCase(f"select-{name}", f"the best attribute by {name}", _select(name), 10_000)
        for name in ("max", "largest-cell", "gini", "infogain")
    ),
    QuestionCase("select-weighted", "the best attribute by weighted max", _select(WeightedMax.of((1, 3))), 10_000),
    *(
        QuestionCase(
            f"threshold-{name}",
            f"the best attribute or threshold by {name}",
            _select(name, ("a", "b", "x"), thresholds=True),
            4_000,
        )
        for name in ("max", "gini", "infogain")
    ),
    *(
        QuestionCase(f"select-by-{name}", f"the best attribute by {name}", _select("max", mechanism=name), 8_000)
        for name in ("exponential", "noisy-max")
    ),
    QuestionCase(
        "select-residuals",
        "the table in which residuals disagree most",
        lambda t, e: t.select_residuals(_UNSURE, _TABLES, _HALVES, e),
        10_000,
    ),
    QuestionCase("correct", "rows that a released model classifies right", lambda t, e: t.count_correct(_OTHER, e)),
    QuestionCase("best", "the best of models and conditions", lambda t, e: t.best({"1": _OTHER, "a": {"a": "1"}}, e)),
    QuestionCase("choose", "the best by a quality of one's own", lambda t, e: t.choose(QUALITIES, e, bound=3), 10_000),
    QuestionCase(
        "choose-one-sided",
        "the same of scores that only rise, by permute-and-flip",
        lambda t, e: t.choose(_ONE_SIDED, e, bound=2, mechanism="permute-and-flip"),
        10_000,
    ),
    QuestionCase("monitor", "whether models are accurate enough, for one price", monitored, 2_000, copied=False),
    QuestionCase("residual-sums", "sums of residuals", lambda t, e: t.residual_sums(_SURE, ("a",), _CAPS, e), 5_000),
    QuestionCase("partition-count", "rows of every part", lambda t, e: t.partition("a").count(e), 2_000, copied=False),
    QuestionCase("scatter-count", "rows of random parts", lambda t, e: t.scatter(3, 7).count(e), 2_000, copied=False),
    QuestionCase("histograms", "several histograms for one price", _histograms, 2_000, copied=False),
    QuestionCase("other-cells", "rows of other cells of a number", _other_cells, 2_000, copied=False),
)


def subjects() -> Iterator[Subject]:
    for question in QUESTIONS:
        yield Subject(question.name, "question", question.line, _checks(question))
    yield Subject("race", "question", "the best of private runs, for three times the price of one", race_checks)


def _checks(question: QuestionCase) -> Callable[[Fraction, Effort], list[Check]]:
    def checks(epsilon: Fraction, effort: Effort) -> list[Check]:
        pairs = (*known_pairs(), _climbed(question, effort.seed))
        # a boundary that exact values cross shows in what is computed, so that these need no runs and few outcomes
        known, crossed = (
            [(pair.name, _enumerated(question, pair, epsilon)) for pair in some] for some in (pairs, boundary_pairs())
        )
        sample = _copies if question.copied else _again
        sampled = [
            Neighbours(pair.name, sample(question, pair.left, epsilon), sample(question, pair.right, epsilon))
            for pair in pairs
        ]
        pilot = effort.of(PILOT if question.copied else PILOT // 5)
        runs = effort.of(question.runs)
        return [ExactCheck(known), ExactCheck(crossed, limit=CROSSED), NeighbourCheck(sampled, runs, pilot)]

    return checks


def _enumerated(question: QuestionCase, pair: Pair, epsilon: Fraction) -> Callable[..., WorstLoss]:
    def publish(table: Any) -> Hashable:
        return tuple(observe.seen(question.ask(table, epsilon)).items())

    return partial(worst_loss, publish, pair.left, pair.right, DOMAIN)


def _loss(question: QuestionCase, pair: Pair) -> float:
    """The exact loss of a pair at epsilon 1, as far as a few outcomes show it."""
    return _enumerated(question, pair, Fraction(1))(limit=CLIMBED_OUTCOMES).loss


@lru_cache
def _climbed(question: QuestionCase, seed: int) -> Pair:
    """The worst pair that hill climbing finds from a random start."""
    rng = np.random.default_rng(seed)
    return climb(random_pair(rng), lambda pair: _loss(question, pair), CLIMBED, rng)


def _copies(question: QuestionCase, rows: pd.DataFrame, epsilon: Fraction) -> Callable[[int], Observations]:
    """A question to many copies of the rows at once."""

    def sample(runs: int) -> Observations:
        copy = Nominal("copy", tuple(range(runs)))
        domain = replace(DOMAIN, columns=(copy, *DOMAIN.columns))
        frame = rows.iloc[np.tile(np.arange(len(rows)), runs)].assign(copy=np.repeat(np.arange(runs), len(rows)))
        with open_table(frame, domain, budget=UNLIMITED) as table:
            answers = question.ask(table.partition("copy"), epsilon)
        return observe.with_low_bits(pd.DataFrame([observe.seen(answer) for answer in answers]))

    return sample


def _again(
    question: QuestionCase, rows: pd.DataFrame, epsilon: Fraction, delta: Fraction | None = None
) -> Callable[[int], Observations]:
    """A question to one table, again and again."""

    def sample(runs: int) -> Observations:
        frames = []
        for start in range(0, runs, REOPEN):
            with open_table(rows, DOMAIN, budget=UNLIMITED, delta=delta) as table:
                frames.append(observe.runs(partial(question.ask, table, epsilon), min(REOPEN, runs - start)))
        return pd.concat(frames, ignore_index=True)

    return sample


# -- races: how many runs there are has no end, so their outcomes are summed and not enumerated ---

_RACERS: dict[str, dict[str, object]] = {"0": {"a": "1"}, "1": {"y": "1"}, "2": {"a": "1", "b": "1"}}
_STOP = Fraction(1, 4)
_RACES = 150


def _race(table: Any, epsilon: Fraction) -> str:
    """One candidate: a noisy choice, whose score is its number. What is returned is the best of some choices."""

    def run(shadow: Any) -> tuple[str, Any]:
        choice = shadow.best(_RACERS, epsilon / 3)
        return str(choice), choice.map(int)

    won = race(table, [run], epsilon / 3, stop=_STOP)
    assert won is not None, "without a target a run always wins"
    return str(won.output)


def _raced(rows: pd.DataFrame, epsilon: Fraction) -> dict[str, float]:
    """The probability of each output, from those of one run: a sum over the number of runs."""
    counts = [int((rows[list(wanted)] == pd.Series(wanted)).all(axis=1).sum()) for wanted in _RACERS.values()]
    single = probabilities(PermuteAndFlip(epsilon / 3, 1, monotone=True), counts)
    upto = np.concatenate([[0], np.cumsum(single)])
    best = float(_STOP) * upto / (1 - (1 - float(_STOP)) * upto)  # all runs are at most this good
    return dict(zip(_RACERS, np.diff(best).tolist(), strict=True))


def race_checks(epsilon: Fraction, effort: Effort, delta: Fraction | None = None) -> list[Check]:
    """A race of pure runs; with a delta, in a data set that is counted in rho, where it is as pure."""
    pair = Pair("a person who makes the worst run more likely", (), {**ROW, "a": "1"})
    question = QuestionCase("race", "", _race)
    sides = (_again(question, rows, epsilon, delta) for rows in (pair.left, pair.right))
    sampled = Neighbours(pair.name, *sides)
    return [
        FiniteCheck(pair.name, _raced(pair.left, epsilon), _raced(pair.right, epsilon)),
        NeighbourCheck([sampled], effort.of(_RACES)),
    ]
