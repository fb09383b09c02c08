"""Events that tell two tables apart: chosen on some runs, tested on others.

What runs published is a frame of observations, a row for each run and a named column for
each thing seen. Candidates are thresholds and single values of each column and, where there
are several columns, of a learned score: the logarithm of the likelihood ratio of independent
noisy counts is a sum of steps, and no test is better than a threshold of it (Neyman and
Pearson), so a logistic regression on steps of all columns learns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.verification.bounds import loss_at_least

MOST = 64  # values or thresholds of one column that are candidates
STEPS = 4  # steps of one column in a learned score
SCORE = "the score"

Bools = NDArray[np.bool_]
Observations = pd.DataFrame


@dataclass(frozen=True)
class Event:
    """Something a run may show; `on_left` says on which table it is the more likely one."""

    text: str
    happens: Callable[[Observations], Bools]
    on_left: bool = True


def choose(left: Observations, right: Observations, runs: int, alpha: float) -> tuple[Event, float]:
    """The event that `runs` other runs would bound best, and the bound if they went as these did.

    The second is a hope and no bound, as the event was chosen for it. One run more than was seen is
    counted on the side where an event is rare: what was never seen is not impossible.
    """
    events = [event for name in left.columns for event in _of_column(str(name), left[name], right[name])]
    score = _learned(left, right)
    if score is not None:
        left, right = (frame.assign(**{SCORE: score.of(frame)}) for frame in (left, right))
        events += [score.event(event) for event in _of_column(SCORE, left[SCORE], right[SCORE])]
    if not events:  # everything seen was the same in all runs
        return Event("anything at all", lambda frame: np.ones(len(frame), dtype=np.bool_)), 0.0
    here, there = _times(events, left), _times(events, right)
    scale = runs / max(1, len(left))
    rare = np.minimum(scale * (np.stack([there, here]) + 1), runs)
    bounds = loss_at_least(scale * np.stack([here, there]), rare, runs, alpha)
    side, best = np.unravel_index(int(np.argmax(bounds)), bounds.shape)
    return replace(events[best], on_left=bool(side == 0)), float(bounds[side, best])


def _times(events: Sequence[Event], frame: Observations) -> NDArray[np.int64]:
    return np.array([np.count_nonzero(event.happens(frame)) for event in events])


def _of_column(name: str, left: pd.Series, right: pd.Series) -> list[Event]:
    """Thresholds and single values of one column."""
    both = pd.concat([left, right])
    known = both.dropna()
    events = []
    if len(known) < len(both):
        events.append(Event(f"{name} is absent", lambda frame: frame[name].isna().to_numpy()))
    values = known.value_counts().index[:MOST].tolist()
    if len(values) + len(events) > 1:
        events += [_equal(name, value) for value in values]
    if pd.api.types.is_numeric_dtype(both) and len(values) > 2:
        events += [make(name, point) for point in _points(known) for make in (_at_most, _at_least)]
    return events


def _points(known: pd.Series) -> list[float]:
    """Where a threshold may lie: at every value where they are few, else at some quantiles."""
    values = np.unique(known.to_numpy(dtype=np.float64))
    if len(values) > MOST:
        values = np.unique(np.quantile(known, np.linspace(0.001, 0.999, MOST), method="nearest"))
    return [float(value) for value in values]


def _equal(name: str, value: object) -> Event:
    return Event(f"{name} is {value}", lambda frame: frame[name].to_numpy() == value)


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
