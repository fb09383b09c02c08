"""Events that tell two tables apart, and guesses by them: chosen on some runs, tested on others.

What runs published is a frame of observations, a row for each run and a named column for
each thing seen. Candidates are thresholds, single values and sets of values of each column
and, where there are several columns, of a learned score: the logarithm of the likelihood
ratio of independent noisy counts is a sum of steps, and no test is better than a threshold
of it (Neyman and Pearson), so a logistic regression on steps of all columns learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Event:
    """Something a run may show."""

    text: str
    happens: Callable[[Observations], Bools]
    values: int = 1  # that were picked for it: each of them may have looked better than it is


NEVER = Event("nothing", lambda frame: np.zeros(len(frame), dtype=np.bool_), 0)


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
        here, there = self._guesses(left), self._guesses(right)
        correct = np.count_nonzero(here == 1) + np.count_nonzero(there == -1)
        return int(correct), int(np.count_nonzero(here) + np.count_nonzero(there))

    def _guesses(self, frame: Observations) -> NDArray[np.int8]:
        """1 for left, -1 for right, 0 for no guess."""
        is_left = self.left.happens(frame)
        return np.where(is_left, 1, np.where(self.right.happens(frame), -1, 0)).astype(np.int8)


def choose(left: Observations, right: Observations, runs: int, alpha: float) -> list[Guess]:
    """The rules that `runs` other runs on each table would bound best.

    The first rule is the best of all, the second the best by an event that one table alone has shown: it may be
    rare. What these runs promise is optimistic, because the rules are chosen on them. To make up for it, every value
    that a rule picked counts as one more wrong guess.
    """
    events = [event for name in left.columns for event in _of_column(str(name), left[name], right[name])]
    score = _learned(left, right)
    if score is not None:
        left, right = (frame.assign(**{SCORE: score.of(frame)}) for frame in (left, right))
        events += [score.event(event) for event in _of_column(SCORE, left[SCORE], right[SCORE])]
    if not events:  # everything seen was the same in all runs
        return [Guess(left=Event("anything at all", lambda frame: np.ones(len(frame), dtype=np.bool_)))]
    here, there = _times(events, left), _times(events, right)
    scale = runs / max(1, len(left))
    hits = np.stack([here, there])
    picked = np.array([event.values for event in events])
    bounds = _hopes(hits, hits[::-1] + picked, scale, alpha)
    best = [[events[i] for i in np.argsort(-bounds[side], kind="stable")[:JOINED]] for side in (0, 1)]
    rules = [Guess(left=best[0][0]), Guess(right=best[1][0])]
    rules += [Guess(one, other) for one in best[0] for other in best[1]]
    rules += [Guess(one, _not(one)) for one in best[0]] + [Guess(_not(one), one) for one in best[1]]
    counts = np.array([rule.counts(left, right) for rule in rules])
    picked = np.array([rule.left.values + rule.right.values for rule in rules])
    hopes = _hopes(counts[:, 0], counts[:, 1] - counts[:, 0] + picked, scale, alpha)
    chosen = [rules[int(np.argmax(hopes))]]
    alone = np.where(hits[::-1] == 0, hits, 0)
    if alone.any():
        side, place = np.unravel_index(int(np.argmax(alone)), alone.shape)
        rare = Guess(right=events[place]) if side else Guess(left=events[place])
        chosen += [rare] * (rare not in chosen)
    return chosen


def _hopes(right: NDArray[np.int64], wrong: NDArray[np.int64], scale: float, alpha: float) -> NDArray[np.float64]:
    """The bounds of guesses as right and as wrong as these."""
    return loss_at_least(scale * right, scale * (right + wrong), alpha)


def _not(event: Event) -> Event:
    return Event(OTHERWISE, lambda frame: ~event.happens(frame), 0)


def _times(events: Sequence[Event], frame: Observations) -> NDArray[np.int64]:
    return np.array([np.count_nonzero(event.happens(frame)) for event in events])


def _of_column(name: str, left: pd.Series, right: pd.Series) -> list[Event]:
    """Thresholds, single values and two sets of values of one column."""
    both = pd.concat([left, right])
    known = both.dropna()
    events = []
    if len(known) < len(both):
        events.append(Event(f"{name} is absent", lambda frame: frame[name].isna().to_numpy()))
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
    return Event(f"{name} is {value}", lambda frame: frame[name].to_numpy() == value)


def _among(name: str, values: Sequence[object]) -> Event:
    shown = ", ".join(str(value) for value in values[:3]) + (", ..." if len(values) > 3 else "")
    text = f"{name} is one of {len(values)} values ({shown})"
    return Event(text, lambda frame: frame[name].isin(values).to_numpy(), len(values))


def _at_most(name: str, point: float) -> Event:
    return Event(f"{name} is at most {point:g}", lambda frame: _numbers(frame[name]) <= point)


def _at_least(name: str, point: float) -> Event:
    return Event(f"{name} is at least {point:g}", lambda frame: _numbers(frame[name]) >= point)


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    """A column as numbers; what is none is beyond every threshold's reach."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(dtype=np.float64)
    return np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)


@dataclass(frozen=True)
class _Score:
    """A sum of weighted steps."""

    steps: tuple[Event, ...]
    weights: NDArray[np.float64]

    def of(self, frame: Observations) -> NDArray[np.float64]:
        return np.asarray((_indicators(self.steps, frame) @ self.weights).round(4))

    def event(self, event: Event) -> Event:
        """An event of this score, as one of what was seen."""
        heavy = np.argsort(-np.abs(self.weights))[:3]
        made_of = "; ".join(f"{self.weights[i]:+.2f} if {self.steps[i].text}" for i in heavy)
        return Event(
            f"{event.text}, learned from {len(self.steps)} steps ({made_of})",
            lambda frame: event.happens(frame if SCORE in frame else frame.assign(**{SCORE: self.of(frame)})),
            event.values,
        )


def _learned(left: Observations, right: Observations) -> _Score | None:
    """A score that is high on the right; None where there is one column, or nothing to learn."""
    from sklearn.linear_model import LogisticRegression

    steps = [_steps(str(name), left[name], right[name]) for name in left.columns]
    if sum(map(bool, steps)) < 2:
        return None
    flat = tuple(step for each in steps for step in each)
    seen = np.concatenate([_indicators(flat, left), _indicators(flat, right)])
    model = LogisticRegression(C=0.1, max_iter=500).fit(seen, np.repeat([0, 1], [len(left), len(right)]))
    return _Score(flat, np.asarray(model.coef_[0]))


def _indicators(steps: Sequence[Event], frame: Observations) -> NDArray[np.float64]:
    return np.stack([step.happens(frame) for step in steps], axis=1).astype(np.float64)


def _steps(name: str, left: pd.Series, right: pd.Series) -> list[Event]:
    """The events of one column that tell the tables apart best."""
    events = _of_column(name, left, right)
    gaps = np.abs(_times(events, pd.DataFrame({name: left})) - _times(events, pd.DataFrame({name: right})))
    return [events[i] for i in np.argsort(-gaps, kind="stable")[:STEPS]]
