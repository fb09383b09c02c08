"""A search for hours: more presets, more epsilons, more tables, more runs, in rounds.

Every trial is a line of a file, so that a search that was stopped goes on where it was.
The rounds are unbounded and the probability that any of them raises a false alarm is
not: round r may be wrong with probability 2^-(r + 1) of the whole.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.choice.auto import CLASSIFIERS
from privet.errors import DataError
from privet.learners.presets import PRESETS
from privet.text import decimal_text
from privet.verification import estimators
from privet.verification.registry import FALSE_ALARM, registry
from privet.verification.subject import Effort, Progress, Subject
from privet.verification.verdict import Report, Verdict

EPSILONS = tuple(Fraction(text) for text in ("0.05", "0.1", "0.25", "0.5", "1", "2", "4"))
DEPTHS = (1, 2, 3)
CRITERIA = ("max", "gini", "infogain")


@dataclass(frozen=True)
class Trial:
    """One verification of a long search."""

    round: int
    subject: Subject
    epsilon: Fraction

    @property
    def key(self) -> str:
        return f"round {self.round}: {self.subject.name} at {decimal_text(self.epsilon)}"


def search(
    hours: float,
    path: str | Path,
    *,
    progress: Progress = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
    subjects: list[Subject] | None = None,
) -> Report:
    """Verify for this long, or to the end of a trial after it; every verdict is kept in `path`, a JSON text a line."""
    file, end = Path(path), clock() + 3600 * hours
    if not file.parent.is_dir():
        raise DataError(f"there is no folder '{file.parent}' to keep '{file.name}' in; make it first.")
    done = _done(file)
    known = _subjects() if subjects is None else subjects
    for trial in _trials(known):
        if trial.key in done:
            continue
        if clock() >= end:
            break
        progress(f"{trial.key} ({len(done)} done)")
        alpha = FALSE_ALARM / 2 ** (trial.round + 1) / (len(known) * len(EPSILONS))
        verdict = trial.subject.verify(trial.epsilon, alpha, Effort(2.0**trial.round, seed=trial.round), progress)
        done[trial.key] = verdict
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"trial": trial.key, **verdict.to_dict()}, ensure_ascii=False) + "\n")
    return Report(tuple(done.values()))


def _trials(subjects: list[Subject]) -> Iterator[Trial]:
    """Rounds without an end; each tries everything with twice the runs of the one before and other tables."""
    number = 0
    while True:
        yield from (Trial(number, subject, epsilon) for epsilon in EPSILONS for subject in subjects)
        number += 1


def _done(file: Path) -> dict[str, Verdict]:
    """What a search before this one found."""
    if not file.exists():
        return {}
    found: dict[str, Verdict] = {}
    for number, line in enumerate(file.read_bytes().splitlines()):
        try:
            facts: dict[str, Any] = json.loads(line.decode())
            found[facts["trial"]] = Verdict.from_dict(facts)
        except (ValueError, KeyError, TypeError):
            raise DataError(
                f"line {number + 1} of '{file}' is no verdict of a search; name another file, or remove that line."
            ) from None
    return found


def _subjects() -> list[Subject]:
    """Everything honest, and every private preset with other depths and criteria than the registry's."""
    honest = [subject for subject in registry().values() if not subject.must_fail]
    return honest + [deeper for name in PRESETS for deeper in _variants(name)]


def _variants(name: str) -> Iterator[Subject]:
    if not PRESETS[name].private:
        return
    known = CLASSIFIERS[name]().get_params()
    trees = {"n_estimators": 2} if "n_estimators" in known else {}
    for criterion in CRITERIA if "criterion" in known else (None,):
        for depth in DEPTHS:
            choices = {"max_depth": depth, **trees, **({"criterion": criterion} if criterion else {})}
            text = f"{name} {' '.join(str(value) for value in (criterion, f'depth {depth}') if value)}"

            def checks(epsilon: Fraction, effort: Effort, choices: dict[str, Any] = choices) -> Any:
                return estimators.checks(CLASSIFIERS[name](epsilon, **choices), effort)

            yield Subject(text, "preset", PRESETS[name].line, checks)
