"""Trees of Adult to audit, set up as Zhu and Du (2010) had theirs.

Education is the sensitive attribute: 30162 complete rows of adult.data, 4480 profiles of eight quasi-identifiers, 16
values. The paper does not say when its trees stop growing, and no rule that was tried gives its numbers of leaves and
constraints, so there are several trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from privet.datasets import load
from privet.kernel import Domain, Nominal
from privet.learners.estimators import ID3Classifier
from privet.models.tree import Ensemble

COLUMNS = "workclass marital-status occupation relationship race sex native-country income".split()
SENSITIVE = "education"
TREES: dict[str, dict[str, Any]] = {
    "Gini depth 3": {"criterion": "gini", "max_depth": 3},
    "IG depth 3": {"criterion": "infogain", "max_depth": 3},
    "IG min 7 rows depth 7": {"criterion": "infogain", "max_depth": 7, "min_rows": 7},
    "Gini full": {"criterion": "gini", "max_depth": 8},
    "IG full": {"criterion": "infogain", "max_depth": 8},
}


def rows() -> pd.DataFrame:
    """The complete rows of adult.data."""
    frame = load("adult").frame.iloc[:32561]  # adult.test comes after
    return frame.loc[(frame != "?").all(axis=1), [*COLUMNS, SENSITIVE]].reset_index(drop=True)


@lru_cache(maxsize=4)
def people(count: int | None) -> tuple[pd.DataFrame, Domain]:
    """So many of the rows, or all of them, and a domain of the values that occur."""
    frame = rows() if count is None else rows().sample(count, random_state=0).reset_index(drop=True)
    columns = tuple(Nominal(name, tuple(sorted(frame[name].unique()))) for name in frame.columns)
    return frame, Domain(columns, target=SENSITIVE)


def grown(frame: pd.DataFrame, choices: Mapping[str, Any], sensitive: str = SENSITIVE) -> Ensemble:
    """A plain ID3 tree of all rows, by all their columns."""
    columns = tuple(Nominal(name, tuple(sorted(frame[name].unique()))) for name in frame.columns)
    domain = Domain(columns, target=sensitive)
    classifier = ID3Classifier(domain=domain, max_leaves=5_000_000, **choices)
    return classifier.fit(frame.drop(columns=sensitive), frame[sensitive]).model_
