"""A trial of an algorithm in another reading of its paper: a preset's plan with some fields changed.

Settings that start with `plan.` name the fields, such as `("plan.stop", "never")`; a rule for the budget goes by the
name that it has in the JSON form of a plan. Rows are public and noise is seeded, as in the usual trial.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privet.kernel import as_epsilon, seeded_noise
from privet.lab import open_public
from privet.learners.growth import grow
from privet.learners.plan import BUDGETS
from privet.learners.presets import preset
from privet.studies.fit import seed
from privet.studies.rows import split
from privet.studies.trial import Trial

TASK = "reading"
FIELD = "plan."


def reread(trial: Trial) -> Mapping[str, Any]:
    """Percent right on the rows held out, of the tree that the changed plan grows."""
    rows, options = split(trial), dict(trial.options)
    variant = str(options.pop("variant", "published"))
    changes: dict[str, Any] = {name[len(FIELD) :]: value for name, value in trial.settings if name.startswith(FIELD)}
    if "budget" in changes:
        changes["budget"] = BUDGETS[changes["budget"]]
    plan = replace(preset(trial.learner).plan(rows.domain, variant, **options), **changes)
    target = rows.domain.target_column
    codes, seen = target.encode(rows.test[target.name]), target.encode(rows.train[target.name])
    start = time.process_time()
    with (
        seeded_noise(seed(trial)),
        open_public(
            rows.train, rows.domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges
        ) as table,
    ):
        model = grow(table, plan, as_epsilon(trial.epsilon), np.random.default_rng(seed(trial)))
    return {
        "accuracy": 100 * float(np.mean(model.predict_codes(rows.test) == codes)),
        "majority": 100 * float(np.mean(codes == np.bincount(seen[seen >= 0]).argmax())),
        "cpu": round(time.process_time() - start, 4),
    }


TASKS = {TASK: reread}
