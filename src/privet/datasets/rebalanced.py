"""The census that Hanisch tests his trees on: seven coarse attributes of Adult, and as good as as many rich as poor."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from privet.datasets.dataset import Dataset
from privet.datasets.uci import load
from privet.kernel import Domain, Nominal

MAJORITY = Fraction(526, 1000)  # the share of the larger class, as the paper has it
SEED = 0  # of the choice of rows

_EDUCATION = ("HS_or_below", "Some_college", "Associate", "Bachelors", "Masters", "Prof_or_Doctorate")
_DOMAIN = Domain(
    (
        Nominal("age", ("<=37", ">=38"), ordered=True),
        Nominal(
            "workclass",
            (
                *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"),
                "Without-pay",
            ),
        ),
        Nominal("education_level", _EDUCATION, ordered=True),
        Nominal("relationship", ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")),
        Nominal("race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")),
        Nominal("sex", ("Female", "Male")),
        Nominal("hours_per_week", ("<=36", "37-50", ">=51"), ordered=True),
        Nominal("income", (0, 1)),
    ),
    target="income",
)


def rebalanced_census() -> Dataset:
    """Adult as in Hanisch's section IV.D: seven attributes with few values, 52.6% of the rows with a low income.

    The paper prints the columns, the cuts of age and hours, some values and the share of the larger class. It does
    not print the rest, which is decided here: the complete rows of both files; schooling in six levels, everything
    up to high school in one; all rows with a high income, and of those with a low one as many, drawn once, as make
    52.6%; the other columns as they are.
    """
    return rebalanced(load("adult"))


def rebalanced(adult: Dataset) -> Dataset:
    """The rebalanced census from the rows of Adult, with or without those that are not complete."""
    import pandas as pd

    whole = adult.frame[~adult.frame.isin(["?"]).any(axis=1)]
    level = np.searchsorted([9, 10, 12, 13, 14], whole["education-num"])  # up to high school, some college, ...
    frame = pd.DataFrame(
        {
            "age": np.where(whole["age"] <= 37, "<=37", ">=38"),
            "workclass": whole["workclass"].to_numpy(),
            "education_level": np.array(_EDUCATION)[level],
            "relationship": whole["relationship"].to_numpy(),
            "race": whole["race"].to_numpy(),
            "sex": whole["sex"].to_numpy(),
            "hours_per_week": np.array(["<=36", "37-50", ">=51"])[np.searchsorted([36, 50], whole["hours-per-week"])],
            "income": (whole["income"] == ">50K").to_numpy().astype(np.int64),
        }
    )
    high, low = np.flatnonzero(frame["income"] == 1), np.flatnonzero(frame["income"] == 0)
    wanted = min(len(low), round(len(high) * MAJORITY / (1 - MAJORITY)))
    kept = np.concatenate([high, np.random.default_rng(SEED).permutation(low)[:wanted]])
    return Dataset(frame.iloc[np.sort(kept)].reset_index(drop=True), _DOMAIN)
