"""A synthetic census: a working population of any size in which nobody exists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet.datasets.dataset import packaged
from privet.errors import DataError
from privet.kernel import Domain, Nominal

if TYPE_CHECKING:
    import pandas as pd


def census_domain() -> Domain:
    """The public domain of the synthetic census.

    >>> census_domain().names
    ('age', 'sex', 'education', 'region', 'occupation', 'hours', 'wage', 'income')
    """
    return packaged("census")


def census(rows: int, seed: int = 0) -> pd.DataFrame:
    """A synthetic working population of any size: nobody in it exists.

    The columns depend on each other as in life: schooling rose over the years, hours
    and occupation depend on sex and schooling, the wage on all of them, and income on
    wage and hours. Some people do not state their occupation or wage. The same seed
    gives the same rows.

    >>> people = census(1000, seed=7)
    >>> people.shape, people.equals(census(1000, seed=7))
    ((1000, 8), True)
    >>> print(people.loc[people.income == "high", "wage"].median() > people.wage.median())
    True
    """
    import pandas as pd

    if rows < 0:
        raise DataError(f"a census of {rows} rows is not possible; ask for 0 or more.")
    rng = np.random.default_rng(seed)
    ages = np.arange(17, 91)
    age = _draw(rng, np.interp(ages, [17, 25, 55, 68, 90], [0.5, 1.0, 1.0, 0.2, 0.01]), rows) + 17
    male = rng.random(rows) < 0.53 - 0.001 * (age - 40)
    region = _draw(rng, 1 / np.arange(2, 14), rows)

    # Schooling: a score that was lower in earlier generations, cut into levels; the young are not done.
    score = rng.normal(size=rows) - 0.015 * (age - 40) + 0.35 * (region < 2)
    education = np.searchsorted([-2.0, -1.1, 0.0, 0.7, 1.5, 2.4], score)
    education = np.minimum(education, 1 + np.searchsorted([17, 20, 23, 26, 30], age, side="right"))

    # Occupation: every level of schooling has its place in the list of jobs; some jobs draw men, some women.
    place = np.array([0.0, 1.5, 3.5, 5.0, 7.0, 8.0, 8.2])[:, None]
    women = np.exp(-((place - np.arange(10)) ** 2) / 9)
    men = women * [1.6, 0.4, 3.0, 4.0, 2.0, 0.6, 0.8, 0.4, 0.9, 1.6]
    odds = np.stack([women, men], axis=1).reshape(14, 10)
    cuts = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    group, coin = 2 * education + male, rng.random(rows)
    occupation = np.zeros(rows, dtype=np.int64)
    for cut in cuts.T:
        occupation += coin > cut[group]

    # Hours: forty for most, fewer for many women, the young and the old, more for managers.
    usual = (rng.random(rows) < np.where(male, 0.55, 0.4)) & (age < 65)
    drift = 42 - 6.0 * ~male - 0.25 * np.maximum(age - 60, 0) - 8.0 * (age < 22) + 4.0 * (occupation == 9)
    hours = np.where(usual, 40, np.rint(rng.normal(drift, 10))).clip(1, 99).astype(np.int64)

    # Wage: the textbook equation in schooling and experience, plus job, region, sex and luck.
    experience = np.minimum(age - 17, 40)
    log_wage = 2.0 + 0.16 * education + 0.035 * experience - 0.0005 * experience**2 + 0.12 * male - 0.015 * region
    log_wage += np.array([-0.25, -0.3, 0.0, 0.05, 0.05, -0.15, 0.0, 0.05, 0.15, 0.35])[occupation]
    wage = np.exp(rng.normal(log_wage, 0.4)).clip(0, 200).round(2)
    yearly = wage * hours * 48 * np.exp(rng.normal(0, 0.15, rows))  # and a little that no column tells

    unstated = rng.random(rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": _texts("sex", male.astype(np.int64)),
            "education": _texts("education", education),
            "region": _texts("region", region),
            "occupation": _texts("occupation", np.where(unstated < 0.04, -1, occupation)),
            "hours": hours,
            "wage": np.where(unstated > 1 - 0.05 - 0.1 * (occupation == 0), np.nan, wage),
            "income": _texts("income", (yearly > 55_000).astype(np.int64)),
        }
    )


def _draw(rng: np.random.Generator, weights: NDArray[np.float64], rows: int) -> NDArray[np.int64]:
    """Independent draws from weighted numbers 0, 1, 2, ..."""
    return rng.choice(len(weights), size=rows, p=weights / weights.sum())


def _texts(name: str, codes: NDArray[np.int64]) -> pd.Categorical[str]:
    """The declared values of a census column; a code of -1 is missing."""
    import pandas as pd

    column = census_domain()[name]
    assert isinstance(column, Nominal)
    return pd.Categorical.from_codes(codes, categories=pd.Index(column.texts), ordered=column.ordered)
