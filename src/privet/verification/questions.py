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

from privet.column import Nominal
from privet.kernel import RESIDUAL_GRID, AdditiveModel, WeightedMax, open_table, worst_loss
from privet.verification import observe
from privet.verification.checks import Check, ExactCheck, NeighbourCheck, Neighbours
from privet.verification.events import Observations
from privet.verification.subject import Effort, Subject
from privet.verification.tables import DOMAIN, Pair, climb, known_pairs, random_pair

UNLIMITED = 10**6
CLIMBED = 15  # steps of a hill climb
PILOT = 300
REOPEN = 100  # questions to one opened table: a ledger in memory grows with every charge
CERTAIN = 2**15  # a logit beyond which the other class has probability 0

Ask = Callable[[Any, Fraction], Any]


@dataclass(frozen=True)
class Question:
    """A question by name; it is asked of a table, or of all parts of one."""

    name: str
    line: str
    ask: Ask
    runs: int = 20_000
    copied: bool = (
        True  # False: its answer speaks of several parts at once, so it is asked of one table again and again
    )


_SURE = AdditiveModel((CERTAIN, 0))  # every residual of class 1 is as large as can be
_UNSURE = AdditiveModel((0, 0))  # every residual is a half
_CAPS = (RESIDUAL_GRID, RESIDUAL_GRID // 2)
_HALVES = (RESIDUAL_GRID // 2, RESIDUAL_GRID // 2)
_TABLES = [("a",), ("b",), ("a", "b")]


def _select(criterion: Any, attributes: Sequence[str] = ("a", "b"), **more: Any) -> Ask:
    return lambda table, epsilon: table.select(criterion, epsilon, attributes=list(attributes), **more)


def _histograms(table: Any, epsilon: Fraction) -> Any:
    ((one, two),) = table.parts().histograms([[("a",), ("b", "y")]], epsilon)
    return np.concatenate([one.values.ravel(), two.values.ravel()])


QUESTIONS: tuple[Question, ...] = (
    Question("count", "how many rows", lambda t, e: t.count(e)),
    Question("where-count", "how many rows fit conditions", lambda t, e: t.where(a="0", x=(0, 5)).count(e)),
    Question("histogram", "rows of every cell", lambda t, e: t.histogram("a", "y", epsilon=e)),
    Question("sum", "the sum of a number", lambda t, e: t.sum("x", e)),
    Question("mean", "the mean of a number", lambda t, e: t.mean("x", e), 10_000),
    Question("median", "the median of a number", lambda t, e: t.median("x", e), 10_000),
    Question("quantile", "a quantile of a number", lambda t, e: t.quantile("x", 0.9, e), 10_000),
    Question("majority", "the most frequent value", lambda t, e: t.majority("a", e)),
    *(
        Question(f"select-{name}", f"the best attribute by {name}", _select(name), 10_000)
        for name in ("max", "largest-cell", "gini", "infogain")
    ),
    Question("select-weighted", "the best attribute by weighted max", _select(WeightedMax.of((1, 3))), 10_000),
    *(
        Question(
            f"threshold-{name}",
            f"the best attribute or threshold by {name}",
            _select(name, ("a", "b", "x"), thresholds=True),
            4_000,
        )
        for name in ("max", "gini", "infogain")
    ),
    *(
        Question(f"select-by-{name}", f"the best attribute by {name}", _select("max", mechanism=name), 8_000)
        for name in ("exponential", "noisy-max")
    ),
    Question(
        "select-residuals",
        "the table in which residuals disagree most",
        lambda t, e: t.select_residuals(_UNSURE, _TABLES, _HALVES, e),
        10_000,
    ),
    Question("residual-sums", "sums of residuals", lambda t, e: t.residual_sums(_SURE, ("a",), _CAPS, e), 5_000),
    Question("partition-count", "rows of every part", lambda t, e: t.partition("a").count(e), 2_000, copied=False),
    Question("scatter-count", "rows of random parts", lambda t, e: t.scatter(3, 7).count(e), 2_000, copied=False),
    Question("histograms", "several histograms for one price", _histograms, 2_000, copied=False),
)


def subjects() -> Iterator[Subject]:
    for question in QUESTIONS:
        yield Subject(question.name, "question", question.line, _checks(question))


def _checks(question: Question) -> Callable[[Fraction, Effort], list[Check]]:
    def checks(epsilon: Fraction, effort: Effort) -> list[Check]:
        pairs = (*known_pairs(), _climbed(question, effort.seed))
        cases = [(pair.name, _publishes(question, epsilon), *_opened(question, pair)) for pair in pairs]
        sample = _copies if question.copied else _again
        sampled = [
            Neighbours(pair.name, sample(question, pair.left, epsilon), sample(question, pair.right, epsilon))
            for pair in pairs
        ]
        pilot = effort.of(PILOT if question.copied else PILOT // 5)
        return [ExactCheck(cases), NeighbourCheck(sampled, effort.of(question.runs), pilot)]

    return checks


def _opened(question: Question, pair: Pair) -> tuple[Any, Any]:
    left, right = (open_table(rows, DOMAIN, budget=UNLIMITED) for rows in (pair.left, pair.right))
    return left, right


def _publishes(question: Question, epsilon: Fraction) -> Callable[[Any], Hashable]:
    return lambda table: tuple(observe.seen(question.ask(table, epsilon)).items())


def _loss(question: Question, pair: Pair) -> float:
    """The exact loss of a pair at epsilon 1."""
    return worst_loss(_publishes(question, Fraction(1)), *_opened(question, pair)).loss


@lru_cache
def _climbed(question: Question, seed: int) -> Pair:
    """The worst pair that hill climbing finds from a random start."""
    rng = np.random.default_rng(seed)
    return climb(random_pair(rng), lambda pair: _loss(question, pair), CLIMBED, rng)


def _copies(question: Question, rows: pd.DataFrame, epsilon: Fraction) -> Callable[[int], Observations]:
    """A question to many copies of the rows at once."""

    def sample(runs: int) -> Observations:
        copy = Nominal("copy", tuple(range(runs)))
        domain = replace(DOMAIN, columns=(copy, *DOMAIN.columns))
        frame = rows.iloc[np.tile(np.arange(len(rows)), runs)].assign(copy=np.repeat(np.arange(runs), len(rows)))
        with open_table(frame, domain, budget=UNLIMITED) as table:
            answers = question.ask(table.partition("copy"), epsilon)
        return observe.with_low_bits(pd.DataFrame([observe.seen(answer) for answer in answers]))

    return sample


def _again(question: Question, rows: pd.DataFrame, epsilon: Fraction) -> Callable[[int], Observations]:
    """A question to one table, again and again."""

    def sample(runs: int) -> Observations:
        frames = []
        for start in range(0, runs, REOPEN):
            with open_table(rows, DOMAIN, budget=UNLIMITED) as table:
                frames.append(observe.runs(partial(question.ask, table, epsilon), min(REOPEN, runs - start)))
        return pd.concat(frames, ignore_index=True)

    return sample
