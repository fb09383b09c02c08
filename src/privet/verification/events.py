"""Events that tell two tables apart, and guesses by them: chosen on some runs, tested on others.

What runs published is a frame of observations, a row for each run and a named column for
each thing seen. Candidates are thresholds, single values and sets of values of each column
and, where there are several columns, of a learned score: the logarithm of the likelihood
ratio of independent noisy counts is a sum of steps, and no test is better than a threshold
of it (Neyman and Pearson), so a logistic regression on steps of all columns learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.verification.bounds import loss_at_least

MOST = 64  # values or thresholds of one column that are candidates
JOINED = 6  # of the best events on either side are tried together
STEPS = 4  # steps of one column in a learned score
SCORE = "the score"
OTHERWISE = "otherwise"

Bools = NDArray[np.bool_]
Observations = pd.DataFrame


class Columns:
    """Observations by column, each turned into arrays once: hundreds of events look at the same column.

    Parameters
    ----------
    frame : Observations
    """

    def __init__(self, frame: Observations) -> None:
        self.runs = len(frame)
        self._series = {str(name): frame[name] for name in frame.columns}
        self._values: dict[str, NDArray[Any]] = {}
        self._numbers: dict[str, NDArray[np.float64]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._series

    def plus(self, name: str, values: NDArray[np.float64]) -> Columns:
        """The same columns and one more."""
        more = copy(self)
        more._series = {**self._series, name: pd.Series(values)}
        more._values, more._numbers = {**self._values, name: values}, {**self._numbers, name: values}
        return more

    def series(self, name: str) -> pd.Series:
        return self._series[name]

    def values(self, name: str) -> NDArray[Any]:
        """A column as it was observed."""
        if name not in self._values:
            self._values[name] = self._series[name].to_numpy()
        return self._values[name]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; what is none is beyond every threshold's reach."""
        if name not in self._numbers:
            series = self._series[name]
            plain = series if series.dtype.kind in "iuf" else pd.to_numeric(series, errors="coerce")
            self._numbers[name] = np.asarray(plain, dtype=np.float64)
        return self._numbers[name]


@dataclass(frozen=True)
class Event:
    """Something a run may show."""

    text: str
    happens: Callable[[Columns], Bools]
    values: int = 1  # that were picked for it: each of them may have looked better than it is


NEVER = Event("nothing", lambda seen: np.zeros(seen.runs, dtype=np.bool_), 0)


@dataclass(frozen=True)
class Guess:
    """A rule to guess which table a run was on: one event says the left one, another the right one, else none."""

    left: Event = NEVER
    right: Event = NEVER

    @property
    def text(self) -> str:
        texts = [event.text for event in (self.left, self.right) if event is not NEVER]
        if OTHERWISE in texts:
            return f"whether {next(text for text in texts if text != OTHERWISE)}"
        return ", and on the neighbour ".join(texts)

    def counts(self, left: Observations, right: Observations) -> tuple[int, int]:
        """Right guesses, and guesses, about runs on the left and on the right table."""
        return _counts([self], Columns(left), Columns(right))[0]


def choose(left: Observations, right: Observations, runs: int, alpha: float) -> list[Guess]:
    """The rules that `runs` other runs on each table would bound best.

    The first rule is the best of all, the second the best by an event that one table alone has shown: it may be
    rare. What these runs promise is optimistic, because the rules are chosen on them. To make up for it, every value
    that a rule picked counts as one more wrong guess.
    """
    here, there = Columns(left), Columns(right)
    by_column = [_of_column(str(name), here, there) for name in left.columns]
    events = [event for own in by_column for event in own]
    hits = _hits(events, here, there)
    score = _learned(by_column, hits, here, there)
    if score is not None:
        here, there = (seen.plus(SCORE, score.of(seen)) for seen in (here, there))
        more = [score.event(event) for event in _of_column(SCORE, here, there)]
        events, hits = events + more, np.concatenate([hits, _hits(more, here, there)], axis=1)
    if not events:  # everything seen was the same in all runs
        return [Guess(left=Event("anything at all", lambda seen: np.ones(seen.runs, dtype=np.bool_)))]
    scale = runs / max(1, len(left))
    picked = np.array([event.values for event in events])
    bounds = _hopes(hits, hits[::-1] + picked, scale, alpha)
    best = [[events[i] for i in np.argsort(-bounds[side], kind="stable")[:JOINED]] for side in (0, 1)]
    rules = [Guess(left=best[0][0]), Guess(right=best[1][0])]
    rules += [Guess(one, other) for one in best[0] for other in best[1]]
    rules += [Guess(one, _not(one)) for one in best[0]] + [Guess(_not(one), one) for one in best[1]]
    counts = np.array(_counts(rules, here, there))
    picked = np.array([rule.left.values + rule.right.values for rule in rules])
    hopes = _hopes(counts[:, 0], counts[:, 1] - counts[:, 0] + picked, scale, alpha)
    chosen = [rules[int(np.argmax(hopes))]]
    alone = np.where(hits[::-1] == 0, hits, 0)
    if alone.any():
        side, place = np.unravel_index(int(np.argmax(alone)), alone.shape)
        rare = Guess(right=events[place]) if side else Guess(left=events[place])
        chosen += [rare] * (rare not in chosen)
    return chosen


def _counts(rules: Sequence[Guess], here: Columns, there: Columns) -> list[tuple[int, int]]:
    """For each rule the right guesses, and the guesses; what says left and right at once says left."""
    events = dict.fromkeys(event for rule in rules for event in (rule.left, rule.right))
    shown = {event: (event.happens(here), event.happens(there)) for event in events}
    counts = []
    for rule in rules:
        (left_here, left_there), (right_here, right_there) = shown[rule.left], shown[rule.right]
        correct = np.count_nonzero(left_here) + np.count_nonzero(right_there & ~left_there)
        guesses = np.count_nonzero(left_here | right_here) + np.count_nonzero(left_there | right_there)
        counts.append((int(correct), int(guesses)))
    return counts


def _hits(events: Sequence[Event], *tables: Columns) -> NDArray[np.int64]:
    """How many runs on each table show each event."""
    times = [[np.count_nonzero(event.happens(seen)) for event in events] for seen in tables]
    return np.array(times, dtype=np.int64)


def _hopes(right: NDArray[np.int64], wrong: NDArray[np.int64], scale: float, alpha: float) -> NDArray[np.float64]:
    """The bounds of guesses as right and as wrong as these."""
    return loss_at_least(scale * right, scale * (right + wrong), alpha)


def _not(event: Event) -> Event:
    return Event(OTHERWISE, lambda seen: ~event.happens(seen), 0)


def _of_column(name: str, here: Columns, there: Columns) -> list[Event]:
    """Thresholds, single values and two sets of values of one column."""
    left, right = here.series(name), there.series(name)
    both = pd.concat([left, right])
    known = both.dropna()
    events = []
    if len(known) < len(both):
        events.append(Event(f"{name} is absent", lambda seen: seen.series(name).isna().to_numpy()))
    values = known.value_counts().index[:MOST].tolist()
    if len(values) + len(events) > 1:
        events += [_equal(name, value) for value in values]
    if len(values) > 2:
        events += _sets(name, values, left, right)
    if pd.api.types.is_numeric_dtype(both) and len(values) > 2:
        events += [make(name, point) for point in _points(known) for make in (_at_most, _at_least)]
    return events


def _sets(name: str, values: Sequence[object], left: pd.Series, right: pd.Series) -> list[Event]:
    """The values that one table showed at least twice as often as the other, for either table."""
    counts = [column.value_counts().to_dict() for column in (left, right)]
    here, there = (np.array([count.get(value, 0) for value in values]) for count in counts)
    events = []
    for often, seldom in ((here, there), (there, here)):
        chosen = [values[int(i)] for i in np.flatnonzero((often > 2 * seldom) & (often > 1))]
        if len(chosen) > 1:
            events.append(_among(name, chosen))
    return events


def _points(known: pd.Series) -> list[float]:
    """Where a threshold may lie: at every value where they are few, else at some quantiles."""
    values = np.unique(known.to_numpy(dtype=np.float64))
    if len(values) > MOST:
        values = np.unique(np.quantile(known, np.linspace(0.001, 0.999, MOST), method="nearest"))
    return [float(value) for value in values]


def _equal(name: str, value: object) -> Event:
    return Event(f"{name} is {value}", lambda seen: seen.values(name) == value)


def _among(name: str, values: Sequence[object]) -> Event:
    shown = ", ".join(str(value) for value in values[:3]) + (", ..." if len(values) > 3 else "")
    text = f"{name} is one of {len(values)} values ({shown})"
    return Event(text, lambda seen: seen.series(name).isin(values).to_numpy(), len(values))


def _at_most(name: str, point: float) -> Event:
    return Event(f"{name} is at most {point:g}", lambda seen: seen.numbers(name) <= point)


def _at_least(name: str, point: float) -> Event:
    return Event(f"{name} is at least {point:g}", lambda seen: seen.numbers(name) >= point)


@dataclass(frozen=True)
class _Score:
    """A sum of weighted steps."""

    steps: tuple[Event, ...]
    weights: NDArray[np.float64]

    def of(self, seen: Columns) -> NDArray[np.float64]:
        return np.asarray((_indicators(self.steps, seen) @ self.weights).round(4))

    def event(self, event: Event) -> Event:
        """An event of this score, as one of what was seen."""
        heavy = np.argsort(-np.abs(self.weights))[:3]
        made_of = "; ".join(f"{self.weights[i]:+.2f} if {self.steps[i].text}" for i in heavy)
        return Event(
            f"{event.text}, learned from {len(self.steps)} steps ({made_of})",
            lambda seen: event.happens(seen if SCORE in seen else seen.plus(SCORE, self.of(seen))),
            event.values,
        )


def _learned(
    by_column: Sequence[Sequence[Event]], hits: NDArray[np.int64], here: Columns, there: Columns
) -> _Score | None:
    """A score that is high on the right; None where there is one column, or nothing to learn.

    Its steps are the events of each column that tell the tables apart best, by the runs that show them.
    """
    from sklearn.linear_model import LogisticRegression

    if sum(map(bool, by_column)) < 2:
        return None
    gaps = np.split(np.abs(hits[0] - hits[1]), np.cumsum([len(own) for own in by_column])[:-1])
    steps = tuple(
        own[i]
        for own, own_gaps in zip(by_column, gaps, strict=True)
        for i in np.argsort(-own_gaps, kind="stable")[:STEPS]
    )
    seen = np.concatenate([_indicators(steps, here), _indicators(steps, there)])
    model = LogisticRegression(C=0.1, max_iter=500).fit(seen, np.repeat([0, 1], [here.runs, there.runs]))
    return _Score(steps, np.asarray(model.coef_[0]))


def _indicators(steps: Sequence[Event], seen: Columns) -> NDArray[np.float64]:
    return np.stack([step.happens(seen) for step in steps], axis=1).astype(np.float64)
