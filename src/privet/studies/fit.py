"""The usual trial: fit a learner on rows and test it on rows that it never saw.

All rows are public or generated. Noise is seeded by the key of the trial, so that a trial gives the same result in
every process; nothing fitted here is private.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from privet.choice.auto import CLASSIFIERS
from privet.errors import QuestionError
from privet.kernel import seeded_noise
from privet.learners.estimator import PrivateClassifier
from privet.studies.histories import auc
from privet.studies.model_example import model_example
from privet.studies.rows import Split, split
from privet.studies.trial import Trial


def classifier(trial: Trial, rows: Split) -> PrivateClassifier:
    """The estimator of a trial, not yet fitted; the learner is an algorithm of privet by name."""
    if trial.learner not in CLASSIFIERS:
        raise QuestionError(f"there is no algorithm '{trial.learner}'; choose one of {', '.join(CLASSIFIERS)}.")
    options: dict[str, Any] = dict(trial.options)
    if trial.epsilon:
        options["epsilon"] = trial.epsilon
    return CLASSIFIERS[trial.learner](domain=rows.domain, random_state=seed(trial), **options)


def seed(trial: Trial) -> int:
    """Of the noise and the public coins of a trial."""
    return int(trial.key[:7], 16)


def fit(trial: Trial) -> Mapping[str, Any]:
    """Percent right and the area under the ROC curve on the rows held out, and what the fit took."""
    rows = split(trial)
    target = rows.domain.target_column
    codes, seen = target.encode(rows.test[target.name]), target.encode(rows.train[target.name])
    model = classifier(trial, rows)
    with seeded_noise(seed(trial)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(rows.train.drop(columns=target.name), rows.train[target.name])
        taken = time.process_time() - start
    published = model.model_
    found: dict[str, Any] = {
        "accuracy": 100 * float(np.mean(published.predict_codes(rows.test) == codes)),
        "auroc": 100 * auc(published.predict_proba(rows.test), codes),
        "majority": 100 * float(np.mean(codes == np.bincount(seen[seen >= 0]).argmax())),
        "cpu": round(taken, 4),
    }
    if trial.seed == 0 and not dict(trial.settings).get("repeat"):  # one to look at is enough
        found["specimen"] = model_example(published, rows.train)
    return found
