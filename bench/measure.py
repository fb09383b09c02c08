"""One trial, measured: how good a learner is on rows that it never saw, and what it took.

CPU time, not wall time, of one thread. Memory is the peak of the process during the fit above what
it held before, rows included (Linux only). The first fit of a learner on a data set in a process
compiles and fills caches: it is done before, on few rows, and not counted.
"""

from __future__ import annotations

import ctypes
import gc
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.kernel import cpu
from bench.split import split
from privet.studies import Trial
from privet.studies.learners import BENCHED as LEARNERS

WARM_ROWS = 2000

_warm: set[tuple[str, str]] = set()


def measure(trial: Trial) -> dict[str, Any]:
    """The measures of a trial, and what they were measured on."""
    warnings.simplefilter("ignore")
    learner, rows = LEARNERS[trial.learner], split(trial)
    if (trial.learner, trial.data) not in _warm:
        few = rows.train.taken(slice(None, WARM_ROWS))
        warm = learner.build(replace(trial, epsilon="1" if learner.private else ""), rows.domain)
        warm.fit(*few.seen_by(learner)).predict(few.seen_by(learner)[0])
        _warm.add((trial.learner, trial.data))
    model, (given, labels) = learner.build(trial, rows.domain), rows.train.seen_by(learner)
    before = _reset_peak()
    fit = cpu(lambda: model.fit(given, labels))
    memory = _peak(before)
    asked = rows.test.seen_by(learner)[0]
    predict = cpu(lambda: model.predict(asked))
    return {
        **rows.quality(learner, model),
        "fit": fit,
        "predict": predict,
        "memory": memory,
        "steps": _steps(model),
        "facts": {
            "rows": len(rows.train.codes) + len(rows.test.codes),
            "attributes": len(rows.domain.attributes),
            "classes": len(rows.domain.classes),
            "mark": rows.mark,
            "version": learner.version(),
        },
    }


def _steps(model: Any) -> int | None:
    """How many tables an additive model has, by which its cost is divided."""
    tables = getattr(getattr(model, "model_", None), "tables", None)
    return None if tables is None else len(tables)


def _reset_peak() -> float | None:
    """Give back what is free, begin to measure the peak anew, and say what is held, in MB."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except (OSError, AttributeError):
        return None
    return _status("VmRSS")


def _peak(before: float | None) -> float | None:
    return None if before is None else max(0.0, _status("VmHWM") - before)


def _status(name: str) -> float:
    return int(Path("/proc/self/status").read_text(encoding="ascii").split(f"{name}:")[1].split()[0]) / 1024
