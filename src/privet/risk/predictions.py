"""Models that are no single tree, audited by what their cells predict: sums of tables, and forests."""

from __future__ import annotations

from typing import Any

import numpy as np

from privet.errors import ModelError
from privet.models.model import Model
from privet.risk.people import Belief


def predictions(model: Model, profiles: Any) -> Belief:
    """What an adversary believes of each profile who takes the model at its word, one row of the frame for each.

    Of a private model no more is certain: its numbers are noisy and each draws on many people. The counts of a forest
    or of tables without noise are several views of the same rows, which together may determine them.
    """
    if not model.private:
        raise ModelError(
            f"the model consists of {model.summary} and is not private: its parts are several views of the same rows, "
            "and what they determine together is not computed; audit one tree, or a private model."
        )
    note = (
        f"The model consists of {model.summary}: it is audited by what it predicts for each profile, which is what an "
        "adversary believes who takes it at its word."
    )
    return Belief("prediction", np.asarray(model.predict_proba(profiles)), False, (note,))
