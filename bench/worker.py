"""A process that measures trials: a line of JSON in is a trial, a line of JSON out its result or its error.

`python -m bench.worker` runs in our interpreter for ours and in that of .venv-bench for the peers, which need
another scikit-learn. With `--about` it says what cannot be measured there and why, and ends.
"""

from __future__ import annotations

import json
import os
import sys

from bench.learners import LEARNERS
from bench.measure import measure
from privet.studies import Trial


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    if "--about" in sys.argv[1:]:
        problems = {name: learner.problem() for name, learner in LEARNERS.items()}
        print(json.dumps(problems), file=answers, flush=True)
        return
    for line in sys.stdin:
        print(json.dumps(_answer(line)), file=answers, flush=True)


def _answer(line: str) -> dict[str, object]:
    try:
        return {"result": measure(Trial.parse(json.loads(line)))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
