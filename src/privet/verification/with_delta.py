"""Claims of (epsilon, delta): what samples and arithmetic show against them, and what is known to break them.

Two bounds are made of an event and its probabilities p and q on two tables. Whatever keeps (epsilon, delta) has
p <= e^epsilon q + delta, so that epsilon is at least ln((p - delta) / q). Whatever loses rho has a Renyi divergence of
at most alpha rho at every order alpha, also between coins that show whether the event happened (data processing); so
rho is at least the largest of these divergences over alpha, and epsilon what that rho is with delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from privet.kernel import (
    AdditiveModel,
    Exponential,
    GaussianTables,
    IntegerGaussian,
    PermuteAndFlip,
    ResidualGaussian,
    Rho,
    TopK,
    epsilon_of,
    rho_of,
    unit_with,
)
from privet.lab.concentrated import ORDERS, concentrated_loss, lost_rho
from privet.lab.distributions import probabilities
from privet.open_table import open_table
from privet.verification import observe
from privet.verification.checks import CanaryCheck, Check, NeighbourCheck, Neighbours, Sampler, guessed, thresholds
from privet.verification.events import Columns, Event, Guess, Observations, choose
from privet.verification.questions import QUALITIES, monitored, race_checks
from privet.verification.subject import Effort, Subject
from privet.verification.tables import DOMAIN, Pair, boundary_pairs, climb, known_pairs, random_pair
from privet.verification.verdict import Finding

DELTA = Fraction(1, 10**6)  # of what is verified by name
RUNS = 200_000
CLIMBED = 25  # steps of a hill climb for the worst pair of tables

Draw = Callable[[Fraction, int, int], NDArray[Any]]  # for an epsilon, on the left or right table, so many runs


def event_bounds(
    here: tuple[int, int], there: tuple[int, int], delta: float, alpha: float, concentrated: bool
) -> float:
    """Return a lower bound of epsilon from (times, runs) of an event on two tables, wrong with probability `alpha`."""
    (hits, runs), (others, other_runs) = here, there
    p = float(beta.ppf(alpha / 2, hits, runs - hits + 1)) if hits else 0.0
    q = float(beta.ppf(1 - alpha / 2, others + 1, other_runs - others)) if others < other_runs else 1.0
    if p <= q:
        return 0.0
    bound = math.log((p - delta) / q) if p > delta else 0.0
    if concentrated:
        rho = max(_coins(p, q, order) / order for order in ORDERS)
        bound = max(bound, float(epsilon_of(Fraction(rho), Fraction(delta))))
    return max(bound, 0.0)


def _coins(p: float, q: float, order: float) -> float:
    """The Renyi divergence between two coins."""
    logs = [order * math.log(a) - (order - 1) * math.log(b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0]
    return float(np.logaddexp.reduce(logs)) / (order - 1)


@dataclass(frozen=True)
class DeltaNeighbourCheck(Check):
    """Run on neighbours; choose events on a third of the runs, and test them on the others.

    `concentrated` says that the claim is a rho, of which (epsilon, delta) follows.
    """

    pair: Neighbours
    runs: int
    delta: float
    concentrated: bool = False

    def find(self, claim: float, alpha: float) -> Finding:
        trained = self.runs // 3
        training = [sampler(trained) for sampler in (self.pair.left, self.pair.right)]
        left, right = (sampler(self.runs - trained) for sampler in (self.pair.left, self.pair.right))
        columns = list(dict.fromkeys([*training[0].columns, *training[1].columns]))
        left, right, *training = (frame.reindex(columns=columns) for frame in (left, right, *training))
        events = _events(choose(training[0], training[1], len(left), alpha), training)
        bounds, seen = [], [Columns(frame) for frame in (left, right)]
        for event, of_left in events:
            times = [(int(np.count_nonzero(event.happens(own))), own.runs) for own in seen]
            here, there = times if of_left else times[::-1]
            part = alpha / len(events)
            bounds.append(event_bounds(here, there, self.delta, part, self.concentrated))
        best = int(np.argmax(bounds))
        bound, runs = bounds[best], 2 * self.runs
        power = claim * max(claim / bound, 1.0) if bound else math.inf
        text = events[best][0].text if bound else "nothing that tells the tables apart"
        return Finding("neighbours", self.pair.name, text, bound, runs, alpha, power, f"delta {self.delta:g}")


def _events(rules: Sequence[Guess], training: Sequence[Observations]) -> list[tuple[Event, bool]]:
    """The events of some rules, each with the table on which it is more likely."""
    found = [
        (event, left) for rule in rules for event, left in ((rule.left, True), (rule.right, False)) if event.values
    ]
    numbers = [name for name in training[0].columns if training[0][name].dtype.kind in "iuf"]
    for name in numbers:  # the middle shows most of a shift that is small
        middle = float(pd.concat([frame[name] for frame in training]).median())
        above = Event(f"{name} is above {middle:g}", partial(_above, name, middle))
        more = np.argmax([np.count_nonzero(above.happens(Columns(frame))) / max(len(frame), 1) for frame in training])
        found.append((above, more == 0))
    return found


def _above(name: str, point: float, seen: Columns) -> NDArray[np.bool_]:
    return np.asarray(seen.numbers(name) > point)


@dataclass(frozen=True)
class DeltaCanaryCheck(Check):
    """Guesses who of many canaries is in the table, against a claim with a delta.

    Steinke, Nasr and Jagielski (2023), theorem 5.2: of m canaries in each of n runs, right guesses are at most as many
    as heads of coins with probability e^epsilon / (1 + e^epsilon), but for a probability of 2 m n delta at most.
    """

    check: CanaryCheck
    delta: float

    def find(self, claim: float, alpha: float) -> Finding:
        high, low = thresholds(*self.check.sample(max(1, self.check.runs // 3)), alpha)
        there, scores = self.check.sample(max(1, self.check.runs - self.check.runs // 3))
        right, guesses = guessed(there, scores, high, low)
        left = alpha - 2 * len(there) * self.delta
        bound = 0.0
        if left > 0 and right:
            share = float(beta.ppf(left, right, guesses - right + 1))
            bound = max(0.0, math.log(share / (1 - share)))
        power = claim * max(claim / bound, 1.0) if bound else math.inf
        note = f"{right} of {guesses} guesses right, delta {self.delta:g}"
        return Finding("canaries", self.check.name, "guesses by thresholds", bound, self.check.runs, alpha, power, note)


@dataclass(frozen=True)
class ConcentratedCheck(Check):
    """What is lost as rho, computed: `cases` are names of neighbours, and functions that return it."""

    cases: Sequence[tuple[str, Callable[[], float]]]
    delta: Fraction
    sampled: ClassVar[bool] = False

    def find(self, claim: float, alpha: float) -> Finding:
        losses = [(lost(), name) for name, lost in self.cases]
        rho, name = max(losses)
        # sums of floats, and an epsilon that is rounded up to six digits
        sure = Fraction(0) if math.isinf(rho) else Fraction(rho) * (1 - Fraction(1, 10**5))
        bound = math.inf if math.isinf(rho) else float(epsilon_of(sure, self.delta))
        note = f"rho {rho:.6g} of {len(losses)} pairs of tables"
        power = claim * max(claim / bound, 1.0) if bound else math.inf
        return Finding(
            "every order", name, "the Renyi divergences of all releases", bound, len(losses), 0.0, power, note
        )


def approximate(check: Check, delta: Fraction) -> Check | None:
    """Return the same check for a claim with a delta; None for one that is about pure epsilon alone."""
    if isinstance(check, NeighbourCheck):
        return DeltaNeighbourCheck(check.pairs[0], check.runs, float(delta))
    if isinstance(check, CanaryCheck):
        return DeltaCanaryCheck(check, float(delta))
    return None


# -- mechanisms ----------------------------------------------------------------------------------------


def _gaussian_rho(variance: float, moved: int) -> float:
    """What discrete Gaussian noise loses as rho, from the logarithms of its probabilities at every order."""
    reach = math.ceil(1.1 * max(ORDERS) * moved + 40 * math.sqrt(variance))
    points = np.arange(-reach, reach + 1)
    here, there = (-((points - shift) ** 2) / (2 * variance) for shift in (0, moved))
    total = np.logaddexp.reduce(here)
    mixed = [(order, np.logaddexp.reduce(order * there - (order - 1) * here) - total) for order in ORDERS]
    return max(float(log) / (order - 1) / order for order, log in mixed)


def _sampler(release: Callable[[int], NDArray[Any]]) -> Sampler:
    return lambda runs: pd.DataFrame(np.asarray(release(runs)).reshape(runs, -1)).add_prefix("output ")


def _noise_checks(noise: Any, moves: Sequence[int], rho: float, effort: Effort) -> list[Check]:
    """Noise on numbers that one record moves: computed, and drawn."""
    left, right = np.zeros(len(moves), dtype=np.int64), np.array(moves)
    pair = Neighbours(
        f"{left.tolist()} and {right.tolist()}",
        _sampler(lambda runs: noise.release(np.tile(left, (runs, 1)))),
        _sampler(lambda runs: noise.release(np.tile(right, (runs, 1)))),
    )
    return [
        ConcentratedCheck([(pair.name, lambda: rho)], DELTA),
        DeltaNeighbourCheck(pair, effort.of(RUNS), float(DELTA), concentrated=True),
    ]


def _integer(epsilon: Fraction, effort: Effort, moves: Sequence[int]) -> list[Check]:
    noise = IntegerGaussian(rho_of(epsilon, DELTA), sum(move**2 for move in moves))
    rho = sum(_gaussian_rho(float(noise.variance), move) for move in moves)
    return _noise_checks(noise, moves, rho, effort)


def _tables(epsilon: Fraction, effort: Effort) -> list[Check]:
    total = rho_of(epsilon, DELTA)
    noise = GaussianTables((total / 4, 3 * total / 4), (1, 1), 9)
    return _noise_checks(noise, (3, 3), sum(9 / (2 * float(own.variance)) for own in noise.noises), effort)


def _residuals(epsilon: Fraction, effort: Effort) -> list[Check]:
    noise = ResidualGaussian(rho_of(epsilon, DELTA), (2, 5))
    rho = 25 / (2 * float(noise.own[1].variance))

    class Own:
        """The sums of the own class alone: there are no others."""

        def release(self, values: NDArray[Any]) -> NDArray[Any]:
            return noise.release((values, None))[0]

    return _noise_checks(Own(), (0, 5), rho, effort)


def _choices(mechanism: Any, scores: Sequence[int], runs: int) -> NDArray[Any]:
    return np.array([mechanism.release(np.array(scores)) for _ in range(runs)])


def _choice_checks(mechanism: Any, epsilon: Fraction, effort: Effort) -> list[Check]:
    """A choice between two candidates; a record moves one score up and, where it may, the other down."""
    pairs = [([gap, 0], [gap + 1, 0 if mechanism.monotone else -1]) for gap in range(-6, 7)]

    def lost(one: Sequence[int], other: Sequence[int]) -> float:
        return lost_rho(probabilities(mechanism, one), probabilities(mechanism, other))

    worst = max(pairs, key=lambda pair: lost(*pair))
    pair = Neighbours(
        f"{worst[0]} and {worst[1]}",
        *(_sampler(partial(_choices, mechanism, scores)) for scores in worst),
    )
    return [
        ConcentratedCheck([(f"{one} and {other}", partial(lost, one, other)) for one, other in pairs], DELTA),
        DeltaNeighbourCheck(pair, effort.of(8_000), float(DELTA), concentrated=True),
    ]


def _exponential(epsilon: Fraction, effort: Effort, monotone: bool) -> list[Check]:
    return _choice_checks(unit_with(DELTA).choice(rho_of(epsilon, DELTA), 1, monotone), epsilon, effort)


def _top(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Two of three candidates, one after the other: each draw is an exponential mechanism."""
    mechanism: TopK = unit_with(DELTA).top(rho_of(epsilon, DELTA), 1, False, 2)
    single, left, right = mechanism.single, [3, 0, 0], [4, -1, -1]

    def lost() -> float:
        orders = [(a, b) for a in range(3) for b in range(3) if a != b]

        def chances(scores: Sequence[int]) -> NDArray[np.float64]:
            first = probabilities(single, scores)
            joint = []
            for a, b in orders:
                rest = [at for at in range(3) if at != a]
                joint.append(first[a] * probabilities(single, [scores[at] for at in rest])[rest.index(b)])
            return np.array(joint)

        return lost_rho(chances(left), chances(right))

    pair = Neighbours(
        f"{left} and {right}",
        *(_sampler(partial(_choices, mechanism, scores)) for scores in (left, right)),
    )
    return [
        ConcentratedCheck([(pair.name, lost)], DELTA),
        DeltaNeighbourCheck(pair, effort.of(6_000), float(DELTA), concentrated=True),
    ]


# A name, what it is, what is tried on it, and the class that it is of.
MECHANISMS: tuple[tuple[str, str, Callable[[Fraction, Effort], list[Check]], type], ...] = (
    ("integer-gaussian", "discrete Gaussian noise on a count", partial(_integer, moves=(1,)), IntegerGaussian),
    ("integer-gaussian-vector", "the same on two numbers", partial(_integer, moves=(2, 1)), IntegerGaussian),
    ("gaussian-tables", "the same on several tables, each with a rho of its own", _tables, GaussianTables),
    ("residual-gaussian", "the same on residual sums of two classes", _residuals, ResidualGaussian),
    ("exponential-rho", "the exponential mechanism, in rho", partial(_exponential, monotone=True), Exponential),
    ("exponential-rho-two-way", "the same both ways", partial(_exponential, monotone=False), Exponential),
    ("top-k", "the best two of three candidates, in rho", _top, TopK),
)

# -- questions -----------------------------------------------------------------------------------------

_SURE, _UNSURE = AdditiveModel((2**15, 0)), AdditiveModel((0, 0))
_OFFERED = [("a",), ("b",), ("a", "b")]

_ONE_CELL = [0] * DOMAIN["x"].size  # all bins merged

Ask = Callable[[Any, Rho], Any]
QUESTIONS: tuple[tuple[str, str, Ask], ...] = (
    ("rho-count", "how many rows, in rho", lambda t, r: t.count(r)),
    ("rho-histogram", "rows of every cell, in rho", lambda t, r: t.histogram("a", "y", epsilon=r)),
    ("rho-histograms", "several histograms, in rho", lambda t, r: t.parts().histograms([[("a",), ("b", "y")]], r)),
    ("rho-sum", "the sum of a number, in rho", lambda t, r: t.sum("x", r)),
    ("rho-mean", "the mean of a number, in rho", lambda t, r: t.mean("x", r)),
    ("rho-median", "the median of a number, in rho", lambda t, r: t.median("x", r)),
    ("rho-majority", "the most frequent value, in rho", lambda t, r: t.majority("a", r)),
    ("rho-select", "the best attribute, in rho", lambda t, r: t.select("gini", r, attributes=["a", "b"])),
    (
        "rho-threshold",
        "the best attribute or threshold, in rho",
        lambda t, r: t.select("max", r, attributes=["a", "b", "x"], thresholds=True),
    ),
    ("rho-correct", "rows that a model classifies right, in rho", lambda t, r: t.count_correct(_SURE, r)),
    (
        "rho-residual-sums",
        "sums of residuals, in rho",
        lambda t, r: t.residual_sums(_SURE, ("a",), (1024, 512), r),
    ),
    (
        "rho-select-residuals",
        "the table in which residuals disagree most, in rho",
        lambda t, r: t.select_residuals(_UNSURE, _OFFERED, (512, 512), r),
    ),
    (
        "residual-tables",
        "residual sums of several tables at once",
        lambda t, r: t.residual_tables(_SURE, [(), ("a",), ("a", "b")], [r / 2, r / 4, r / 4], cap=1024),
    ),
    (
        "residual-tables-apart",
        "the same with signs apart",
        lambda t, r: t.residual_tables(
            _UNSURE, [("a",), [("x", [0] * DOMAIN["x"].size)]], [r / 2, r / 2], signs_apart=True
        ),
    ),
    (
        "top-residual-tables",
        "the tables in which a model errs most",
        lambda t, r: t.top_residual_tables(_UNSURE, _OFFERED, 2, r, penalties=[0, 5, 9]),
    ),
    (
        "rho-best",
        "the best of models and conditions, in rho",
        lambda t, r: t.best({"1": _SURE, "a": {"a": "1"}, "b": {"b": "0"}}, r),
    ),
    ("rho-choose", "the best by a quality of one's own, in rho", lambda t, r: t.choose(QUALITIES, r, bound=3)),
    ("rho-partition", "rows of every part, in rho", lambda t, r: t.partition("a").count(r)),
    ("rho-refined", "a count that is refined, in rho", lambda t, r: (c := t.count(r / 2), c.refine(r))),
)


def _question(ask: Ask, epsilon: Fraction, effort: Effort) -> list[Check]:
    rho = Rho(rho_of(epsilon, DELTA))

    def published(table: Any) -> tuple[Any, ...]:
        return tuple(observe.seen(ask(table, rho)).items())

    def lost(pair: Pair) -> float:
        return concentrated_loss(published, pair.left, pair.right, DOMAIN, DELTA)

    rng = np.random.default_rng(effort.seed)
    worst = climb(random_pair(rng), lost, CLIMBED, rng)
    cases = [(pair.name, partial(lost, pair)) for pair in (*known_pairs(), *boundary_pairs(), worst)]
    return [ConcentratedCheck(cases, DELTA)]


def _monitor_chances(scores: Sequence[int], rate: float) -> NDArray[np.float64]:
    """The probability that each of several scores is the first to reach 0, and that none does.

    Given the threshold rho, a score s reaches it with probability min(1, e^(-rate (rho - s))), as nu is geometric.
    """
    hidden = np.arange(math.ceil(60 / rate))
    below, chances = (1 - math.exp(-rate)) * np.exp(-rate * hidden), []
    for score in scores:
        reaches = np.exp(-rate * np.maximum(hidden - score, 0))
        chances.append(float((below * reaches).sum()))
        below = below * (1 - reaches)
    return np.array([*chances, float(below.sum())])


def _monitored(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Scores that one record moves apart, as a released model's number of hits does: computed, and drawn."""
    watch = unit_with(DELTA).watch(rho_of(epsilon, DELTA), 1, 2)
    pairs = [([gap, gap], [gap - 1, gap + 1]) for gap in range(-8, 3)]

    def lost(one: Sequence[int], other: Sequence[int]) -> float:
        return lost_rho(*(_monitor_chances(scores, float(watch.rate)) for scores in (one, other)))

    def rows(pair: Pair, table: str) -> Sampler:
        def sample(runs: int) -> Observations:
            with open_table(getattr(pair, table), DOMAIN, budget=10**6, delta=DELTA) as opened:
                return observe.runs(lambda: {"reached": monitored(opened, Rho(rho_of(epsilon, DELTA)))}, runs)

        return sample

    pair = known_pairs()[3]
    return [
        ConcentratedCheck([(f"{one} and {other}", partial(lost, one, other)) for one, other in pairs], DELTA),
        DeltaNeighbourCheck(
            Neighbours(pair.name, rows(pair, "left"), rows(pair, "right")), effort.of(400), float(DELTA), True
        ),
    ]


# -- known to be bad -----------------------------------------------------------------------------------


def _sampled(draw: Draw, runs: int, concentrated: bool = False) -> Callable[[Fraction, Effort], list[Check]]:
    def checks(epsilon: Fraction, effort: Effort) -> list[Check]:
        sides = (_sampler(partial(draw, epsilon, side)) for side in (0, 1))
        pair = Neighbours("a number and its neighbour", *sides)
        return [DeltaNeighbourCheck(pair, effort.of(runs), float(DELTA), concentrated)]

    return checks


def _by_l1(epsilon: Fraction, side: int, runs: int) -> NDArray[Any]:
    """Sixteen tables that one record is in, with noise for one: its author took the largest move for the L2 norm."""
    noise = IntegerGaussian(rho_of(epsilon, DELTA))
    return np.asarray(noise.release(np.full((runs, 16), side)).sum(axis=1))


def _added_wrongly(epsilon: Fraction, side: int, runs: int) -> NDArray[Any]:
    """Ten answers of (epsilon, delta) each, charged once: as if their rhos shared a maximum."""
    noise = IntegerGaussian(rho_of(epsilon, DELTA))
    return np.asarray(noise.release(np.full((runs, 10), side)).sum(axis=1))


def _delta_forgotten(epsilon: Fraction, side: int, runs: int) -> NDArray[Any]:
    """A count that is told as it is once in a thousand runs, for a delta of a millionth."""
    noise = IntegerGaussian(rho_of(epsilon, DELTA)).release(np.full(runs, side))
    exact = np.random.default_rng().random(runs) < 1e-3
    return np.where(exact, 10**6 + side, noise)


def _cheap_flip(epsilon: Fraction, effort: Effort) -> list[Check]:
    """Permute-and-flip for the square root of 8 rho: the range of its losses is not bounded by epsilon."""
    sold = Exponential(Fraction(1), 1, True).rho  # what the exponential mechanism of epsilon 1 loses
    assert sold == Fraction(1, 8)
    root = Fraction(math.isqrt(int(8 * rho_of(epsilon, DELTA) * 10**18)), 10**9)
    return _choice_checks(PermuteAndFlip(root, 1, monotone=True), epsilon, effort)[:1]


FIXTURES = (
    ("gaussian-by-l1", "Gaussian noise for the largest move, not for the L2 norm", _sampled(_by_l1, 30_000, True)),
    ("rho-added-wrongly", "ten answers for the price of one", _sampled(_added_wrongly, 30_000, True)),
    ("delta-forgotten", "the exact count once in a thousand runs, delta 1e-6", _sampled(_delta_forgotten, 500_000)),
    ("cheap-flip", "permute-and-flip sold for epsilon^2 / 8", _cheap_flip),
)


def subjects() -> Iterator[Subject]:
    """Everything that is counted in rho, by name; each claims (epsilon, 1e-6)."""
    for name, line, checks, _ in MECHANISMS:
        yield Subject(name, "mechanism", line, checks, delta=DELTA)
    for name, line, ask in QUESTIONS:
        yield Subject(name, "question", line, partial(_question, ask), delta=DELTA)
    yield Subject("rho-monitor", "question", "whether models are accurate enough, in rho", _monitored, delta=DELTA)
    # a race is pure there too, and pays half of the square: the claim is the pure epsilon
    yield Subject(
        "rho-race", "question", "the best of private runs, in a data set in rho", partial(race_checks, delta=DELTA)
    )
    for name, line, checks in FIXTURES:
        yield Subject(name, "known-bad", line, checks, must_fail=True, delta=DELTA)
