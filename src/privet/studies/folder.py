"""The folder of studies: results that all of them share, and what was written about them.

`results.jsonl` is the whole state: a run that was stopped goes on with the trials that are
missing, and every table, plot and page is made from that file again without running anything.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privet.errors import DataError
from privet.studies.findings import Findings
from privet.studies.pages.explorer import explorer
from privet.studies.pages.overview import report
from privet.studies.study import Study
from privet.studies.trial import Clock, Outcome, Trial, check_version, recorded, run

RESULTS = "results.jsonl"
Work = Callable[[Trial], Mapping[str, Any]]
Tell = Callable[[int, int, float | None], None]  # done, of how many, seconds that are left


def gather(
    folder: Path,
    trials: Iterable[Trial],
    work: Work,
    executor: Executor | None = None,
    tell: Tell = lambda done, of, left: None,
    clock: Clock | None = None,
) -> list[Outcome]:
    """The outcomes of these trials, in their order and each once, run where the folder has no result.

    What a trial takes by the clock is recorded with its result.
    """
    wanted = list({trial.key: trial for trial in trials}.values())
    path = folder / RESULTS
    check_version(path)
    found = recorded(path)
    missing = sum(1 for trial in wanted if (known := found.get(trial.key)) is None or known.result is None)
    return run(wanted, work, path, _Countdown(missing, tell), executor, clock)


def outcomes(study: Study, size: str, found: Mapping[str, Outcome]) -> list[Outcome]:
    """What is known of the trials of a study, in their order; those that failed or never ran are left out."""
    known = (found.get(trial.key) for trial in study.trials(size))
    return [outcome for outcome in known if outcome is not None and outcome.result is not None]


def write(folder: Path, studies: Sequence[Study], size: str, command: str) -> dict[str, Findings]:
    """What the results say of each study: NAME.html for each, index.html for all, and findings.json."""
    path = folder / RESULTS
    check_version(path)
    found = recorded(path)
    read: dict[str, Findings] = {}
    for study in studies:
        known = outcomes(study, size, found)
        read[study.name] = study.read(known)
        page = explorer(study, read[study.name], known, size, command)
        (folder / f"{study.name}.html").write_text(page, encoding="utf-8")
    index = report([(study, read[study.name]) for study in studies], command)
    (folder / "index.html").write_text(index, encoding="utf-8")
    plain = {name: asdict(findings) for name, findings in read.items()}
    (folder / "findings.json").write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return read


def ready(folder: Path) -> Path:
    """The folder, made where there is none."""
    if folder.is_file():
        raise DataError(f"'{folder}' is a file; name a folder for results and pages with -o.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RESULTS).touch()
    except OSError as error:
        raise DataError(f"cannot write to '{folder}' ({error.strerror}); choose another folder with -o.") from None
    return folder


class _Countdown:
    """Counts what is done and says how long the rest will take, at the pace of what was done."""

    def __init__(self, missing: int, tell: Tell) -> None:
        self._of, self._tell, self._done, self._start = missing, tell, 0, time.monotonic()
        tell(0, missing, None)

    def __call__(self, text: str) -> None:
        self._done += 1
        pace = (time.monotonic() - self._start) / self._done
        self._tell(self._done, self._of, pace * (self._of - self._done))
