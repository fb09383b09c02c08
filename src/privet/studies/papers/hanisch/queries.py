"""One noisy question: how many millionaires, or which share of a class. Figures 2 and 9.

Every answer is asked of privet's kernel, on generated rows or on the rebalanced census.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kurtosis

from privet.kernel import Domain, IntegerLaplace, Nominal, seeded_noise
from privet.open_table import open_table
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Findings, Number, Panel
from privet.studies.fit import seed
from privet.studies.papers.hanisch.shared import DATA, NEEDS, NO_PLOT, SOURCE, TABLE, claim, number
from privet.studies.rows import table
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.table import ProtectedTable

ANSWERS = {"tiny": 100, "quick": 300, "medium": 1000, "full": 2000}
SEEDS = {"tiny": 2, "quick": 10, "medium": 25, "full": 50}
LN_2 = "0.69314718055994530941723212145818"


def trials(data: str, task: str, learner: str, epsilon: str, size: str) -> list[Trial]:
    """As many answers in each trial as a size has, with noise of its own."""
    settings = (("task", task), ("answers", ANSWERS[size]))
    return [Trial(data, learner, epsilon, seed=repeat, settings=settings) for repeat in range(SEEDS[size])]


def opened(frame: pd.DataFrame, domain: Domain, trial: Trial) -> ProtectedTable:
    """The rows with the budget for the answers of a trial."""
    return open_table(frame, domain, budget=Fraction(trial.epsilon) * int(str(dict(trial.settings)["answers"])))


def times(trial: Trial) -> range:
    return range(int(str(dict(trial.settings)["answers"])))


def results_of(outcomes: Sequence[Outcome], task: str) -> list[tuple[Trial, Mapping[str, Any]]]:
    return [
        (outcome.trial, outcome.result)
        for outcome in outcomes
        if outcome.result is not None and dict(outcome.trial.settings).get("task") == task
    ]


# -- figure 2: a count ----------------------------------------------------------------------------

COUNT = "hanisch-count"
PEOPLE = {"with Bill Gates": 26412, "without him": 26411}
REACH = 6  # how far from the truth answers are drawn


def count(trial: Trial) -> Mapping[str, Any]:
    """How often each number was answered, of tables with one more millionaire and without him."""
    domain = Domain((Nominal("millionaire", ("yes",)),))
    found: dict[str, Any] = {}
    with seeded_noise(seed(trial)):
        for name, people in PEOPLE.items():
            frame = pd.DataFrame({"millionaire": ["yes"] * people})
            with opened(frame, domain, trial) as asked:
                found[name] = Counter(str(int(asked.count(trial.epsilon))) for _ in times(trial))
    return found


def _read_count(outcomes: Sequence[Outcome]) -> Findings:
    results = [result for _, result in results_of(outcomes, COUNT)]
    cells, noise, middle = [], IntegerLaplace(Fraction(LN_2)), PEOPLE["with Bill Gates"]
    drawn = {name: sum((Counter(each[name]) for each in results), Counter()) for name in PEOPLE}
    for name, people in PEOPLE.items():
        n = sum(drawn[name].values())
        for answer in range(middle - REACH, middle + REACH + 1) if n else ():
            share = drawn[name][str(answer)] / n
            ours = Estimate(share, math.sqrt(share * (1 - share)), n)
            cells.append(Cell(name, answer, ours, closed=Number(noise.probability(answer - people))))
    curve = Panel("Chance of each answer", "answer", tuple(cells), y="share of the answers")
    if not cells:
        return Findings((curve,), (), (NO_PLOT,))

    def above(name: str, result: Mapping[str, Any]) -> float:
        """The share of answers that are the truth with Bill Gates, or more."""
        more = sum(often for answer, often in result[name].items() if int(answer) >= middle)
        return float(more / sum(result[name].values()))

    ratio = Estimate.of([above("with Bill Gates", each) / above("without him", each) for each in results])
    guess = Estimate.of([(above("with Bill Gates", each) + 1 - above("without him", each)) / 2 for each in results])
    table = Panel(
        "What an answer tells",
        "",
        (
            Cell("answers of 26,412 or more", "with him / without him", ratio, closed=Number(2.0)),
            Cell("best guess whether he is in", "share right", guess, closed=Number(2 / 3)),
        ),
        y="",
        kind="table",
    )
    asked = min(sum(each.values()) for each in drawn.values())
    means = {name: sum(int(k) * v for k, v in each.items()) / sum(each.values()) for name, each in drawn.items()}
    error = noise.deviation / math.sqrt(asked)
    off = max(abs(mean - PEOPLE[name]) for name, mean in means.items())
    bound = 2 / 3 + 4 * math.sqrt(1 / 9 / asked)  # of half the sum of two shares of a third and two thirds
    claims = (
        claim(
            *("figure-2", "around", off < 4 * error),
            f"The mean answers are {' and '.join(f'{mean:,.2f}' for mean in means.values())}, each ± {error:.2f}.",
            "Noise that does not have a mean of 0 would be no Laplace noise.",
        ),
        claim(
            *("figure-2", "secret", guess.mean < bound),
            f"Who guesses from one answer, knowing all others, is right in {100 * guess.mean:.1f}% of cases; the "
            "bound is 66.7%, and a coin has 50%. No answer is more than twice as likely with him as without.",
            "More than the bound: the noise would be too small for its epsilon.",
        ),
    )
    notes = (
        "Noise is two-sided geometric, the Laplace distribution on whole numbers, so that the largest ratio is "
        "exactly e^epsilon = 2: for every answer of 26,412 or more.",
        NO_PLOT,
    )
    return Findings((curve, table), claims, notes)


# -- figure 9: the ratio of two counts ------------------------------------------------------------

RATIO = "hanisch-ratio"
RATIO_EPSILON = "0.001"
STEPS = tuple(range(36, 71, 2))  # of the ratio, in percent


def ratio(trial: Trial) -> Mapping[str, Any]:
    """The share of the larger class, from two noisy counts, again and again."""
    found = table(trial.data)
    target = found.domain.target_column.name
    domain = Domain((found.domain[target],), target)
    exact = np.sort(found.frame[target].value_counts().to_numpy())[::-1]
    with seeded_noise(seed(trial)), opened(found.frame[[target]], domain, trial) as asked:
        counts = np.array([asked.histogram(target, epsilon=trial.epsilon).values for _ in times(trial)])
    shares = 100 * counts[:, 0] / counts.sum(axis=1)
    inside = np.histogram(shares, [-np.inf, *STEPS, np.inf])[0] / len(shares)
    return {
        "mean": float(shares.mean()),
        "median": float(np.median(shares)),
        "deviation": float(np.std(shares, ddof=1)),
        "kurtosis": float(kurtosis(shares, bias=False)),
        "shares": inside.tolist(),
        "counts": [int(each) for each in exact],
    }


def ratio_below(percent: float, first: float, second: float, scale: float) -> float:
    """The chance that a / (a + b) is below a share, for counts a and b with Laplace noise and a sum above 0.

    It is if (1 - r) a - r b is below 0: a number plus two Laplace numbers of scales (1 - r) s and r s.

    >>> round(ratio_below(50, 100, 100, 10), 6), round(ratio_below(60, 100, 100, 10), 4)
    (0.5, 0.9706)
    """
    r = percent / 100
    a, b = (1 - r) * scale, r * scale
    gap = (1 - r) * first - r * second
    if math.isclose(a, b):
        above = 0.5 * math.exp(-abs(gap) / a) * (1 + abs(gap) / (2 * a))
    else:
        above = (a * a * math.exp(-abs(gap) / a) - b * b * math.exp(-abs(gap) / b)) / (2 * (a * a - b * b))
    return above if gap > 0 else 1 - above


def _read_ratio(outcomes: Sequence[Outcome]) -> Findings:
    results = [result for _, result in results_of(outcomes, RATIO)]
    if not results:
        return Findings((), (), (TABLE, NO_PLOT))
    first, second = results[0]["counts"]
    scale, truth = float(1 / Fraction(RATIO_EPSILON)), 100 * first / (first + second)
    shares = np.array([each["shares"] for each in results])
    cells = tuple(
        Cell(
            "larger class",
            (low + high) / 2,
            Estimate.of(shares[:, i + 1].tolist()),
            closed=Number(ratio_below(high, first, second, scale) - ratio_below(low, first, second, scale)),
        )
        for i, (low, high) in enumerate(pairwise(STEPS))
    )
    p = truth / 100
    parts = (1 - p) ** 2, p**2
    excess = 3 * (parts[0] ** 2 + parts[1] ** 2) / sum(parts) ** 2
    found = {name: Estimate.of([each[name] for each in results]) for name in ("median", "deviation", "kurtosis")}
    deviation = 100 * math.sqrt(2 * sum(parts)) * scale / (first + second)
    paper = number("figure-9", "larger class", "ratio in percent")
    panels = (
        Panel("Share of the larger class from two noisy counts", "share in percent", cells, y="share of the answers"),
        Panel(
            "The ratio",
            "",
            (
                Cell("larger class", "middle, percent", found["median"], paper, Number(truth)),
                Cell("larger class", "standard deviation, points", found["deviation"], closed=Number(deviation)),
                Cell("larger class", "excess kurtosis", found["kurtosis"], closed=Number(excess)),
            ),
            y="",
            kind="table",
        ),
    )
    sharp, enough = found["kurtosis"], len(results) > 1
    claims = (
        claim(
            *(
                "figure-9",
                "around",
                abs(found["median"].mean - paper.value) < 0.05 + 4 * found["median"].se if enough else None,
            ),
            f"The middle of the answers is {found['median'].mean:.2f}% ± {found['median'].se:.2f}, their standard "
            f"deviation {found['deviation'].mean:.2f} points.",
        ),
        claim(
            *("figure-9", "shape", None if not enough or abs(sharp.mean) < 3 * sharp.se else sharp.mean > 0),
            f"The excess kurtosis is {sharp.mean:.2f} ± {sharp.se:.2f}: more peaked than the normal distribution, "
            "which has 0, and less than Laplace's, which has 3. A ratio has the noise of two counts, for which "
            f"{excess:.2f} is expected.",
        ),
    )
    return Findings(panels, claims, (TABLE, "Closed forms of the table are those of small noise.", NO_PLOT))


STUDIES = (
    Study(
        "hanisch-figure-2",
        "A noisy count of millionaires, with one of them and without",
        f"{SOURCE}, figure 2",
        lambda size: trials("millionaires", COUNT, "count", LN_2, size),
        _read_count,
        (),
        "A count query at epsilon ln 2 about 26,412 millionaires, one of whom an adversary asks for.",
    ),
    Study(
        "hanisch-figure-9",
        "The share of a class from two noisy counts",
        f"{SOURCE}, figure 9",
        lambda size: trials(DATA, RATIO, "histogram", RATIO_EPSILON, size),
        _read_ratio,
        NEEDS,
        "How far the share of the larger class is off when both classes are counted with epsilon 0.001.",
    ),
)
TASKS = {COUNT: count, RATIO: ratio}
