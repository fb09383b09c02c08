"""`python tests/risk/boosted/make.py`: the boosted models beside this file, written again by the real packages.

Those here were written by XGBoost 3.2.0 and LightGBM 4.7.0 (Python 3.11, numpy 2.4). Their rows are in people.csv.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
XGBOOST: dict[str, dict[str, Any]] = {
    "xgboost": {},
    "xgboost-exact": {"tree_method": "exact", "learning_rate": 0.1},
    "xgboost-half": {"base_score": 0.5},
    "xgboost-no-ridge": {"reg_lambda": 0},
    "xgboost-sampled": {"subsample": 0.5, "random_state": 0},
}


def main() -> None:
    from lightgbm import LGBMClassifier  # neither is needed by the tests
    from xgboost import XGBClassifier

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 5, (120, 3)).astype(float), columns=list("abc"))
    values = ((frame["a"] + 3 * rng.random(120)) > 4).to_numpy().astype(int)
    frame.assign(y=values).to_csv(HERE / "people.csv", index=False, lineterminator="\n")
    for name, chosen in XGBOOST.items():
        XGBClassifier(n_estimators=4, max_depth=3, **chosen).fit(frame, values).save_model(HERE / f"{name}.json")
    fitted = LGBMClassifier(n_estimators=4, num_leaves=6, min_child_samples=3, verbose=-1).fit(frame, values)
    text = json.dumps(fitted.booster_.dump_model(), separators=(",", ":"))
    (HERE / "lightgbm.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
