"""The classifiers by kind, and people whom each of them can learn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sizes import few

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.learners.estimator import PrivateClassifier, TablesClassifier
from privet.learners.estimators import CLASSIFIERS

EVERY = list(CLASSIFIERS.values())
PRIVATE = [make for make in EVERY if make.algorithm not in ("id3", "c45")]
PLAIN = [make for make in EVERY if make not in PRIVATE]
FORESTS = [make for make in EVERY if "n_estimators" in make.__dataclass_fields__]
FILLABLE = [make for make in EVERY if hasattr(make, "partial_fit")]
LEARNING = [make for make in EVERY if make is not privet.PriorClassifier]  # it looks at no attribute
TABLES = [make for make in EVERY if issubclass(make, TablesClassifier)]
SURE = 100_000  # no noise is to be seen

every = pytest.mark.parametrize("make", EVERY, ids=lambda make: make.algorithm)
# one of each kind, for what they have from the classes that they share
KINDS = ("diffpid3", "hanisch-tree", "hanisch-forest", "jagannathan", "boosted")
each_kind = pytest.mark.parametrize(
    "make", few(PRIVATE, [make for make in PRIVATE if make.algorithm in KINDS]), ids=lambda make: make.algorithm
)
each_learning_kind = pytest.mark.parametrize(
    "make", few(LEARNING, [make for make in LEARNING if make.algorithm in KINDS]), ids=lambda make: make.algorithm
)
every_learner = pytest.mark.parametrize("make", LEARNING, ids=lambda make: make.algorithm)
every_private = pytest.mark.parametrize("make", PRIVATE, ids=lambda make: make.algorithm)
every_fillable = pytest.mark.parametrize("make", FILLABLE, ids=lambda make: make.algorithm)

DOMAIN = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=4, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Nominal("ill", ("yes", "no")),
        Nominal("town", ("a", "b", "c")),
    ),
    target="ill",
    max_rows=1000,
)


def _people(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(rows)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "sex": rng.choice(["f", "m", "x"], rows),
            "town": rng.choice(["a", "b", "c"], rows),
        }
    )
    return frame, np.where(frame["age"] >= 50, "yes", "no")


X, Y = _people()


def _new(make: Any, **choices: Any) -> PrivateClassifier:
    """A classifier without noise to speak of, on a domain, small where it is a forest or boosted."""
    defaults: dict[str, Any] = {"epsilon": SURE, "domain": DOMAIN, "random_state": 0}
    if make in FORESTS:
        defaults["n_estimators"] = 5
    if make is privet.BoostedTablesClassifier:
        defaults["epsilon"] = 1_000  # 42 tables: with more epsilon it buys hundreds
    found = make(**{**defaults, **choices})
    assert isinstance(found, PrivateClassifier)
    return found
