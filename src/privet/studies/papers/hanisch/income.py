"""Mean against median in a town with a billionaire: figure 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from privet.kernel import Domain, Numeric, seeded_noise
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, ClaimReading, Findings, Number, Panel
from privet.studies.fit import seed
from privet.studies.papers.hanisch.queries import opened, results_of, times, trials
from privet.studies.papers.hanisch.shared import NO_PLOT, SOURCE, claim, number, read_claim
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.table import ProtectedTable

Floats = NDArray[np.float64]

INCOME = "hanisch-income"
BILLION = 10**9
RESIDENTS, AVERAGE = 100, 23_426
FEWER = 59  # residents, with whom both printed numbers come out
SUM, SUM_OF_FEWER, MEAN, MEDIAN = "sum / 100", "sum / 59", "mean", "median"
DIVISORS = {SUM: RESIDENTS, SUM_OF_FEWER: FEWER}
SCALES = {name: BILLION / residents / 0.5 / 1e6 for name, residents in DIVISORS.items()}  # of the noise, in millions
SCALE = SCALES[SUM]
DEVIATION, NEAR = "standard deviation, million dollars", "within a million dollars, percent"
BINS = tuple(range(-100, 101, 20))  # of answers, in millions


def town(billionaire: bool, residents: int = RESIDENTS) -> pd.DataFrame:
    """Residents whose incomes have the average of Booneville; with a billionaire, one more."""
    incomes = np.random.default_rng(0).lognormal(sigma=0.7, size=residents)
    incomes = np.rint(incomes * AVERAGE / incomes.mean())
    return pd.DataFrame({"income": np.append(incomes, [BILLION] * billionaire)})


def income(trial: Trial) -> Mapping[str, Any]:
    """Answers about the town without and with a billionaire, in dollars, and how far apart the two are.

    The learner is the question. `sum / 100` is what the text computes: the sum, whose noise is that of a billion,
    divided by a hundred that everybody knows; `sum / 59` is the same for a town of 59.
    """
    residents = DIVISORS.get(trial.learner, RESIDENTS)
    domain = Domain((Numeric("income", Fraction(0), Fraction(BILLION), Fraction(100), bins=10),))
    answers: dict[str, Floats] = {}
    with seeded_noise(seed(trial)):
        for name, billionaire in (("without", False), ("with", True)):
            frame = town(billionaire, residents)
            with opened(frame, domain, trial) as asked:
                answers[name] = np.array([_income(asked, trial) for _ in times(trial)])
    truth = _truth(trial.learner, town(False, residents))
    noise = answers["without"] - truth
    edges = np.array([-np.inf, *BINS, np.inf]) * 1e6
    return {
        "deviation": float(np.std(noise, ddof=1)) / 1e6,
        "near": 100 * float(np.mean(np.abs(noise) <= 1e6)),
        "answers": len(noise),
        "apart": float(ks_2samp(answers["without"], answers["with"]).statistic),
        **{
            name: [float(each) for each in np.quantile(values, [0.025, 0.5, 0.975])] for name, values in answers.items()
        },
        "shares": (np.histogram(noise, edges)[0] / len(noise)).tolist(),
    }


def _income(asked: ProtectedTable, trial: Trial) -> float:
    if trial.learner in DIVISORS:
        return float(asked.sum("income", trial.epsilon)) / DIVISORS[trial.learner]
    return float(getattr(asked, trial.learner)("income", trial.epsilon))


def _truth(question: str, frame: pd.DataFrame) -> float:
    return float(frame["income"].median() if question == MEDIAN else frame["income"].mean())


def _read_income(outcomes: Sequence[Outcome]) -> Findings:
    by_question: dict[str, list[Mapping[str, Any]]] = {}
    for trial, result in results_of(outcomes, INCOME):
        by_question.setdefault(trial.learner, []).append(result)
    estimates = {
        question: {name: Estimate.of([float(each[name]) for each in found]) for name in ("deviation", "near", "apart")}
        for question, found in by_question.items()
    }
    middle = {
        question: {name: Estimate.of([each[name][1] / 1e3 for each in found]) for name in ("without", "with")}
        for question, found in by_question.items()
    }
    paper = {at: number("figure-3", "noise on the mean of 100", at) for at in (DEVIATION, NEAR)}
    closed = {
        name: {DEVIATION: math.sqrt(2) * scale, NEAR: 100 * -math.expm1(-1 / scale)} for name, scale in SCALES.items()
    }
    told = {
        SUM: "noise on the mean of 100",
        SUM_OF_FEWER: "noise on the mean of 59",
        MEAN: "privet's mean",
        MEDIAN: "privet's median",
    }
    noise = tuple(
        Cell(
            told[question],
            at,
            estimates[question][name],
            *((paper[at], Number(closed[question][at])) if question in closed else ()),
        )
        for question in estimates
        for at, name in ((DEVIATION, "deviation"), (NEAR, "near"))
    )
    answers = tuple(
        Cell(
            told[question], f"{name} the billionaire", ours, closed=Number(_truth(question, town(name == "with")) / 1e3)
        )
        for question in middle
        if question != SUM_OF_FEWER
        for name, ours in middle[question].items()
    )
    panels = [
        Panel(
            "Possible answers",
            "million dollars from the truth",
            _curve(by_question.get(SUM, [])),
            y="share of the answers",
        ),
        Panel("Noise", "", noise, y="", kind="table"),
        Panel("Answers in the middle, and the truth", "", answers, y="thousand dollars", kind="table"),
    ]
    claims: list[Claim] = []
    if min(len(by_question.get(name, ())) for name in DIVISORS) > 1:
        for name, at, unit, digits in (("deviation", DEVIATION, "million", 0.5), ("near", NEAR, "percent", 0.5)):
            ours = {question: estimates[question][name] for question in DIVISORS}
            claims.append(_printed(name, paper[at], {q: closed[q][at] for q in DIVISORS}, ours, unit, digits))
    if min(len(by_question.get(name, ())) for name in (SUM, MEDIAN)) > 1:
        claims += _median_claims(estimates, middle, by_question[MEDIAN][0]["answers"])
    notes = (
        "Both numbers of the text fit 59 residents, 1 billion / 59 / 0.5 times the root of 2 = 47.9 million and 2.9%; "
        "for the 100 that it names they are 28.3 million and 4.9%. We do not know which number of residents was meant.",
        "privet's mean does not take the number of residents for public: it asks for it too, with half of epsilon, "
        "and keeps the answer between the bounds, so that about half of its answers are 0.",
        "Incomes are drawn once, log-normal, with the average that the paper prints.",
        NO_PLOT,
    )
    return Findings(tuple(panels), tuple(claims), notes)


def _curve(found: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """The shares of answers in ranges of 20 million, by the middle of the range."""

    def below(x: float) -> float:
        return 0.5 * math.exp(x / SCALE) if x < 0 else 1 - 0.5 * math.exp(-x / SCALE)

    shares = np.array([each["shares"] for each in found])
    return tuple(
        Cell("mean of 100", (a + b) / 2, Estimate.of(shares[:, i + 1].tolist()), closed=Number(below(b) - below(a)))
        for i, (a, b) in enumerate(pairwise(BINS))
        if len(shares)
    )


def _printed(
    name: str, paper: Number, closed: Mapping[str, float], ours: Mapping[str, Estimate], unit: str, digits: float
) -> Claim:
    """Whether a printed number comes out with a hundred residents, as the text has them, or with fewer.

    It does if ours is within what whole numbers leave open and three standard errors.
    """
    readings = [
        ClaimReading(
            f"{DIVISORS[question]} residents",
            abs(found.mean - paper.value) <= digits + 3 * found.se,
            f"ours {found.mean:.2f} ± {found.se:.2f} {unit}, the closed form {closed[question]:.2f}",
        )
        for question, found in ours.items()
    ]
    return read_claim(
        *("figure-3", name, readings),
        f"The paper prints {paper.value:g} {unit}. With the hundred residents of its text 1 billion / 100 / 0.5 is a "
        "scale of 20 million; 59 residents give what is printed.",
    )


def _median_claims(
    estimates: Mapping[str, Mapping[str, Estimate]], middle: Mapping[str, Mapping[str, Estimate]], answers: int
) -> list[Claim]:
    moves = {name: middle[name]["with"].mean - middle[name]["without"].mean for name in (SUM, MEDIAN)}
    deviation = {name: 1e3 * estimates[name]["deviation"].mean for name in (SUM, MEDIAN)}
    apart = {name: estimates[name]["apart"] for name in (SUM, MEDIAN)}
    # what two samples of one distribution are apart on average: the mean of Kolmogorov's distribution
    chance = math.sqrt(math.pi / 2) * math.log(2) * math.sqrt(2 / answers)
    hint = apart[MEDIAN]
    near = True if hint.mean + 3 * hint.se < chance + 0.02 else None
    return [
        claim(
            *("figure-3", "skew", abs(moves[MEDIAN]) < 0.01 * abs(moves[SUM])),
            f"With the billionaire the median's middle answer moves by {moves[MEDIAN]:+.2f} thousand dollars and the "
            f"mean's by {moves[SUM]:+,.0f}; the answers have a standard deviation of {deviation[MEDIAN]:.2f} and "
            f"{deviation[SUM]:,.0f}.",
            remark="The reason is another mechanism, not another sensitivity. That of a median is half of the range of "
            "incomes or more, and noise of its size would be worse; privet draws an income that is close in rank.",
        ),
        claim(
            *("figure-3", "hint", False if hint.mean - 3 * hint.se > chance else near),
            f"Answers with and without the billionaire are {hint.mean:.3f} apart (the largest difference of shares "
            f"below a value), those about the mean {apart[SUM].mean:.3f}; chance alone gives {chance:.3f}, and "
            f"epsilon 0.5 allows {math.tanh(0.25):.3f}.",
            "Both give a hint, and epsilon bounds it for both alike: nobody is right in more than 62.2% of cases. The "
            "median is more useful, not more private.",
        ),
    ]


STUDIES = (
    Study(
        "hanisch-figure-3",
        "Mean against median in a town with a billionaire",
        f"{SOURCE}, figure 3",
        lambda size: [
            each for name in (SUM, SUM_OF_FEWER, MEAN, MEDIAN) for each in trials("town", INCOME, name, "0.5", size)
        ],
        _read_income,
        (),
        "The average income of a hundred residents at epsilon 0.5, where one income may be a billion.",
    ),
)
TASKS = {INCOME: income}
