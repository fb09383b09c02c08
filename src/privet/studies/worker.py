"""A process that runs trials: a line of JSON in is a trial, a line of JSON out its result or its error.

`python -m privet.studies.worker module:function [ARGUMENT ...]` calls the function with the trial and the arguments. It
runs in our interpreter for ours and in another one for peers that need other versions of what we need. With `--about`
it says which learners cannot be run there and why, and ends.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from privet.studies.learners import LEARNERS
from privet.studies.trial import Trial

ABOUT = "--about"


def main(arguments: Sequence[str]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    if list(arguments) == [ABOUT]:
        problems = {name: learner.problem() for name, learner in LEARNERS.items()}
        print(json.dumps(problems), file=answers, flush=True)
        return
    module, name = arguments[0].split(":")
    work = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        print(json.dumps(_answer(work, line, arguments[1:])), file=answers, flush=True)


def _answer(work: Callable[..., Any], line: str, arguments: Sequence[str]) -> dict[str, object]:
    try:
        return {"result": work(Trial.parse(json.loads(line)), *arguments)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
