"""The peers of `bench.trees`, in their own interpreter: a line in is a turn, a line of JSON out what it took.

Called as `peers.py ROWS.npz DEPTH VALUES`; imports nothing of privet.
"""

import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier


def main(path: str, depth: int, values: int) -> None:
    warnings.simplefilter("ignore")
    content = np.load(path)
    rows, label = content["rows"], content["label"]
    plain = DecisionTreeClassifier(max_depth=depth)
    private: Any = None
    try:
        models = importlib.import_module("diffprivlib.models")
    except ImportError:
        say({"problem": "diffprivlib is not in .venv-bench, pip could not install it: scikit-learn is measured alone"})
    else:
        bounds = ([0] * rows.shape[1], [values - 1] * rows.shape[1])
        private = models.DecisionTreeClassifier(
            max_depth=depth, epsilon=1.0, bounds=bounds, classes=sorted(set(label.tolist()))
        )
        say({"problem": ""})
    for _ in sys.stdin:
        taken = {"scikit-learn fit": cpu(lambda: plain.fit(rows, label))}
        taken["scikit-learn predict"] = min(cpu(lambda: plain.predict(rows)) for _ in range(3))
        if private is not None:
            taken["diffprivlib fit"] = min(cpu(lambda: private.fit(rows, label)) for _ in range(2))
        say(taken)


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
