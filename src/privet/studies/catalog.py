"""Every study by name, and the work behind a trial of any of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from privet.errors import QuestionError, did_you_mean
from privet.studies import reading
from privet.studies.fit import fit
from privet.studies.papers import dpcomp, friedman_schuster, hanisch, jostle, liu, zhu_du
from privet.studies.study import Study
from privet.studies.trial import Trial, Work

PAPERS: tuple[ModuleType, ...] = (friedman_schuster, zhu_du, hanisch, liu, jostle, dpcomp)

STUDIES: dict[str, Study] = {study.name: study for paper in PAPERS for study in paper.STUDIES}

# what a trial's setting "task" names; without one a learner is fitted and tested
TASKS: dict[str, Work] = {
    "fit": fit,
    **reading.TASKS,
    **{name: task for paper in PAPERS for name, task in paper.TASKS.items()},
}


def study(name: str) -> Study:
    """A study by its name."""
    found = STUDIES.get(name)
    if found is None:
        meant = did_you_mean(name, [*STUDIES, "all", "choice"])
        raise QuestionError(f"there is no study '{name}'{meant}; `privet study list` names them all.")
    return found


def work(trial: Trial) -> Mapping[str, Any]:
    """The result of a trial of any study: a trial says itself what it is."""
    return TASKS[str(dict(trial.settings).get("task", "fit"))](trial)
