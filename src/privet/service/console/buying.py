"""What an epsilon would buy: models tried on rows that nobody has, invented from the public domain.

No private row is read and nothing is charged. What comes out says how an algorithm does on rows of this shape and
number, and nothing about the people in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privet.domain_file import parse
from privet.errors import PrivetError
from privet.lab.invented import invent
from privet.open_table import open_table

EPSILONS = tuple(Fraction(text) for text in ("1/20", "1/10", "1/5", "1/2", "1", "2"))
ROWS, MOST_ROWS = 10_000, 20_000  # where the domain does not say how many, and at most
TESTED = 5_000  # rows that models are tried on, which they were not fitted to
TIMES = 3  # fits for each epsilon
_LEFT, _TOP, _RIGHT, _BOTTOM = 48.0, 14.0, 430.0, 220.0  # pixels of the drawing, inside its axes


@dataclass(frozen=True)
class Bought:
    """How often models of one epsilon are right: the mean, the worst and the best of some fits, in percent."""

    epsilon: Fraction
    right: float
    worst: float
    best: float


@dataclass(frozen=True)
class Purchase:
    """What an algorithm does on invented rows, for several epsilons."""

    rows: int
    guess: float  # percent that are right by always naming the largest class
    bought: tuple[Bought, ...]
    problem: str = ""


@lru_cache(maxsize=64)
def purchase(domain_text: str, delta: str | None, algorithm: str) -> Purchase:
    """Return what an algorithm does on rows that are invented from a domain.

    Parameters
    ----------
    domain_text : str
        The text of the domain file.
    delta : str, optional
        That of the table.
    algorithm : str
        One that can be fitted on a server.
    """
    from privet.choice.auto import CLASSIFIERS  # scikit-learn takes a second

    domain = parse(domain_text)
    domain = domain if domain.person is None else domain.with_person(None, domain.rows_per_person)
    count = max(100, min(domain.rows or ROWS, MOST_ROWS))
    made = invent(domain, count + TESTED, seed=1)
    rows, tested = made.iloc[:count], made.iloc[count:]
    truth, target = tested[domain.target_column.name].to_numpy(), domain.target_column.name
    guess = 100 * float((truth == rows[target].mode()[0]).mean())
    bought = []
    try:
        for epsilon in EPSILONS:
            right = []
            for _ in range(TIMES):
                table = open_table(rows, domain, budget=epsilon, delta=delta)
                found = CLASSIFIERS[algorithm](epsilon).fit(table).predict(tested.drop(columns=[target]))
                right.append(100 * float((np.asarray(found) == truth).mean()))
            bought.append(Bought(epsilon, sum(right) / TIMES, min(right), max(right)))
    except PrivetError as error:
        return Purchase(count, guess, (), str(error))
    return Purchase(count, guess, tuple(bought))


@dataclass(frozen=True)
class Plot:
    """A purchase as points of a drawing, in pixels."""

    points: tuple[tuple[float, float, float, float, str], ...]  # x, y, y of the worst and of the best, label
    guess: float
    ticks: tuple[tuple[float, str], ...]

    @property
    def line(self) -> str:
        """The path through all points."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, *_ in self.points)


def plot(made: Purchase) -> Plot:
    """Return where everything stands: epsilons from left to right, shares from below up."""
    values = [made.guess, *(value for one in made.bought for value in (one.worst, one.best))]
    low, high = 10 * int(min(values) // 10), 10 * int(-(-max(values) // 10))
    high = max(high, low + 10)

    def at(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low), 1)

    step = (_RIGHT - _LEFT) / max(len(made.bought), 1)
    points = tuple(
        (round(_LEFT + step * (number + 0.5), 1), at(one.right), at(one.worst), at(one.best), f"{float(one.epsilon):g}")
        for number, one in enumerate(made.bought)
    )
    ticks = tuple((at(value), f"{value}%") for value in range(low, high + 1, 10))
    return Plot(points, at(made.guess), ticks)
