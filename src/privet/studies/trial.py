"""Trials that are run once: every result is a line of a file, and a run that was killed goes on where it stopped.

A study is a list of trials and a function that runs one of them. The file is the whole
state: whoever has it draws every table and plot again without running anything.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from privet.errors import DataError

VERSION = version("privet")

Plain = str | int | float | bool | None
Pairs = tuple[tuple[str, Plain], ...]
Work = Callable[["Trial"], Mapping[str, Any]]
Clock = Callable[[], float]  # seconds since some moment
Timed = tuple[Mapping[str, Any], float | None]  # a result, and the seconds that it took


@dataclass(frozen=True)
class Trial:
    """What is run, in plain values: the same trial has the same key in every process, today and in a year.

    Epsilon is a text, which says 0.1 exactly; without one the learner is not private. The seed
    is that of the split or repeat: trials that share it share their rows and can be compared in pairs.

    >>> trial = Trial("adult", "boosted", epsilon="0.1", options=(("rate", 0.8), ("max_cells", 128)))
    >>> trial.options
    (('max_cells', 128), ('rate', 0.8))
    >>> trial.key[:16]
    '9c9ef1995a7c96bb'
    >>> Trial.parse(json.loads(trial.json)) == trial
    True
    """

    data: str
    learner: str
    epsilon: str = ""
    seed: int = 0
    rows: int | None = None  # at most; None are all
    options: Pairs = ()  # of the learner
    settings: Pairs = ()  # of everything else

    def __post_init__(self) -> None:
        for name in ("options", "settings"):
            object.__setattr__(self, name, tuple(sorted((str(key), value) for key, value in getattr(self, name))))

    @property
    def json(self) -> str:
        """The canonical text. Defaults are left out: a field that is added later changes no key of today."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        kept = {each.name: said[each.name] for each in fields(self) if said[each.name] != each.default}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def key(self) -> str:
        return hashlib.sha256(self.json.encode()).hexdigest()

    @classmethod
    def parse(cls, content: Mapping[str, Any]) -> Trial:
        """A trial from its JSON, in which pairs have become lists."""
        pairs = {name: tuple((key, value) for key, value in content.get(name, ())) for name in ("options", "settings")}
        return cls(**{**content, **pairs})


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: its result, or the sentence that says why there is none."""

    trial: Trial
    result: Mapping[str, Any] | None
    error: str = ""
    cpu: float | None = None  # seconds of the whole trial, with reading or drawing its rows; None: not measured


def cpu_seconds() -> float:
    """CPU seconds of this process so far, and of processes of its own that ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def run(
    trials: Sequence[Trial],
    work: Work,
    path: Path,
    progress: Callable[[str], None] = lambda text: None,
    executor: Executor | None = None,
    clock: Clock | None = None,
) -> list[Outcome]:
    """Run the trials that have no result in the file yet; the outcomes of all, in their order.

    A trial that fails is recorded with its error and tried again by the next run. An executor
    runs several at once: a pool of processes where `work` can be pickled, one of threads where
    `work` waits for processes of its own. A clock is read before and after each trial, in the
    process that runs it, and the difference recorded as its `cpu`.
    """
    found = {key: outcome for key, outcome in recorded(path).items() if outcome.result is not None}
    waiting = list({trial.key: trial for trial in trials if trial.key not in found}.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" * torn)  # what was torn stays a line of its own
        for done, (trial, finished) in enumerate(_finished(waiting, partial(_timed, work, clock), executor), 1):
            line = _tried(trial, finished)
            file.write(line + "\n")
            file.flush()
            found[trial.key] = outcome = _parsed(line)  # as a later run reads it
            progress(f"{done} of {len(waiting)}: {trial.json} {outcome.error}".rstrip())
    return [found[trial.key] for trial in trials]


def recorded(path: Path) -> dict[str, Outcome]:
    """The last outcome of every trial in the file, by key; a line that was torn when a run was killed is none."""
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
        try:
            outcome = _parsed(line)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        found[outcome.trial.key] = outcome
    return found


def check_version(path: Path) -> None:
    """Refuse a file with results of another version of privet: their numbers do not mix with ours."""
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else ():
        try:
            written = json.loads(line)["privet"]
        except (ValueError, TypeError, KeyError):
            continue
        if written != VERSION:
            raise DataError(
                f"'{path}' has results of privet {written} and this is {VERSION}: their numbers do not mix; "
                "choose another folder, or delete the file."
            )


def forget(trials: Iterable[Trial], path: Path) -> None:
    """Take trials out of the file, so that the next run runs them again."""
    left = recorded(path)
    for trial in trials:
        left.pop(trial.key, None)
    scratch = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text("".join(f"{_line(outcome)}\n" for outcome in left.values()), encoding="utf-8")
    scratch.replace(path)


def _timed(work: Work, clock: Clock | None, trial: Trial) -> Timed:
    """The result of a trial, and the seconds that it took by the clock."""
    start = clock() if clock else 0.0
    result = work(trial)
    return result, round(clock() - start, 4) if clock else None


def _finished(
    trials: Sequence[Trial], work: Callable[[Trial], Timed], executor: Executor | None
) -> Iterator[tuple[Trial, Callable[[], Timed]]]:
    """Each trial in its turn, with what gives its result or raises its error."""
    if executor is None:
        yield from ((trial, partial(work, trial)) for trial in trials)
        return
    futures = {executor.submit(work, trial): trial for trial in trials}
    try:
        yield from ((futures[future], future.result) for future in as_completed(futures))
    finally:  # who interrupts a run does not wait for the rest of it
        for future in futures:
            future.cancel()


def _tried(trial: Trial, finished: Callable[[], Timed]) -> str:
    try:
        result, seconds = finished()
        return _line(Outcome(trial, result, cpu=seconds))
    except Exception as error:  # whatever it is: the other trials go on
        return _line(Outcome(trial, None, " ".join(f"{type(error).__name__}: {error}".split())))


def _line(outcome: Outcome) -> str:
    answer = {"error": outcome.error} if outcome.result is None else {"result": outcome.result}
    known: dict[str, str | float] = {"key": outcome.trial.key, "privet": VERSION}
    if outcome.cpu is not None:
        known["cpu"] = outcome.cpu
    content = {**known, "trial": json.loads(outcome.trial.json), **answer}
    return json.dumps(content, allow_nan=False)


def _parsed(line: str) -> Outcome:
    content = json.loads(line)
    return Outcome(Trial.parse(content["trial"]), content.get("result"), content.get("error", ""), content.get("cpu"))
