"""`python -m evidence.peers`: diffprivlib on the bench of `privet verify`, in the environment that it needs.

Writes evidence/peers.json, which docs/how-to/verify.md quotes.
"""

from __future__ import annotations

import importlib
import json
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import privet
from privet.verification import Verdict

RESULT = Path(__file__).with_name("peers.json")
# three rows, the last of them in question
X, Y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([0, 1, 1])
PAIR = (X[:-1], Y[:-1]), (X, Y)
COMMON: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 1), "classes": [0, 1]}


def main() -> int:
    try:
        known = {name: version(name) for name in ("diffprivlib", "scikit-learn", "numpy", "privet")}
        models: Any = importlib.import_module("diffprivlib.models")
    except (ImportError, PackageNotFoundError):
        print("diffprivlib is not installed here; `make evidence` installs it where it can be had", file=sys.stderr)
        return 0
    tree = models.DecisionTreeClassifier(max_depth=1, **COMMON)
    trials: dict[str, Callable[[], Verdict]] = {
        "DecisionTreeClassifier(max_depth=1)": lambda: privet.verify(tree, 1, effort=8, pairs=[PAIR]),
        "RandomForestClassifier(n_estimators=10, max_depth=1)": lambda: privet.verify("diffprivlib-slices", 1),
        "RandomForestClassifier(n_estimators=1, max_depth=1)": lambda: privet.verify("diffprivlib-seeds", 1),
    }
    found = {}
    for name, trial in trials.items():
        print(name, file=sys.stderr)
        verdict = trial()
        print(verdict)
        found[name] = verdict.to_dict()
    content = {"command": "make evidence", "python": platform.python_version(), "versions": known, "verdicts": found}
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
