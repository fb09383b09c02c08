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

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bench.kernel import cpu
from bench.learners import LEARNERS, Learner
from bench.split import Part, Split, split
from privet.studies import Trial

CLIP = 1e-6  # of probabilities, for the log loss
WARM_ROWS = 2000

_warm: set[tuple[str, str]] = set()


def measure(trial: Trial) -> dict[str, Any]:
    """The measures of a trial, and what they were measured on."""
    warnings.simplefilter("ignore")
    learner, rows = LEARNERS[trial.learner], split(trial)
    if (trial.learner, trial.data) not in _warm:
        few = rows.train.taken(slice(None, WARM_ROWS))
        warm = learner.build(replace(trial, epsilon="1" if learner.private else ""), rows.domain)
        warm.fit(*_seen(learner, few)).predict(_seen(learner, few)[0])
        _warm.add((trial.learner, trial.data))
    model, (given, labels) = learner.build(trial, rows.domain), _seen(learner, rows.train)
    before = _reset_peak()
    fit = cpu(lambda: model.fit(given, labels))
    memory = _peak(before)
    asked = _seen(learner, rows.test)[0]
    predict = cpu(lambda: model.predict(asked))
    return {
        **_quality(learner, model, asked, rows),
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


def _seen(learner: Learner, part: Part) -> tuple[Any, Any]:
    """The rows and classes as a learner reads them."""
    return (part.frame, part.labels) if learner.ours else (part.numbers, part.codes)


def _quality(learner: Learner, model: Any, asked: Any, rows: Split) -> dict[str, float | None]:
    truth, target, classes = rows.test.codes, rows.domain.target_column, len(rows.domain.classes)
    said, order = model.predict(asked), model.classes_
    if learner.ours:
        said, order = target.encode(said), target.encode(order)
    probability = np.zeros((len(truth), classes))
    probability[:, np.asarray(order, dtype=np.int64)] = model.predict_proba(asked)
    probability[~np.isfinite(probability).all(axis=1)] = 1 / classes  # a forest may have seen no class at all
    likely = np.clip(probability[np.arange(len(truth)), truth], CLIP, 1)
    most = np.bincount(rows.train.codes, minlength=classes).argmax()
    return {
        "accuracy": float(np.mean(np.asarray(said) == truth)),
        "auroc": _auroc(truth, probability[:, 1]) if classes == 2 else None,
        "log loss": float(-np.log(likely).mean()),
        "majority": float(np.mean(truth == most)),
    }


def _auroc(truth: NDArray[np.int64], score: NDArray[np.float64]) -> float | None:
    return float(roc_auc_score(truth, score)) if 0 < truth.sum() < len(truth) else None


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
