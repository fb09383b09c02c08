"""The processes that run trials of ours and of peers: one of each for each thread that asks.

Peers have an interpreter of their own, because they need other versions of what we need.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from privet.studies.learners import LEARNERS
from privet.studies.trial import Trial
from privet.studies.worker import ABOUT

LIMIT = 1800.0  # seconds for one trial: a peer was seen to hang


class WorkerPool:
    """Runs trials by a function `module:name`, each in a process of the interpreter that its learner needs.

    With `fresh` every trial has a process of its own, so that none is measured in what another left behind.
    """

    def __init__(self, work: str, *arguments: str, peers: Path, home: Path | None = None, fresh: bool = False) -> None:
        self._work, self._home, self._fresh = (work, *arguments), home, fresh
        self._interpreters = {True: Path(sys.executable), False: peers}
        self._workers: dict[tuple[int, bool], _Worker] = {}

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()

    def __call__(self, trial: Trial) -> Mapping[str, Any]:
        ours = LEARNERS[trial.learner].ours
        place = threading.get_ident(), ours
        command = [str(self._interpreters[ours]), *_MODULE, *self._work]
        worker = self._workers.setdefault(place, _Worker(command, self._home))
        try:
            return worker.ask(trial)
        finally:
            if self._fresh:
                worker.close()


def problems(names: Sequence[str], peers: Path) -> dict[str, str]:
    """For each of these learners why it cannot be run here, or nothing; peers are looked for in their interpreter."""
    said = {name: LEARNERS[name].problem() for name in names if LEARNERS[name].ours}
    theirs = [name for name in names if not LEARNERS[name].ours]
    known = _said_by(peers) if theirs else {}
    why = f"there is no '{peers}' with privet and its peers"
    return said | {name: known.get(name, f"{LEARNERS[name].title} is left out: {why}") for name in theirs}


def _said_by(interpreter: Path) -> dict[str, str]:
    try:
        command = [str(interpreter), *_MODULE, ABOUT]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, str] = json.loads(done.stdout)
    return found


_MODULE = ("-m", "privet.studies.worker")


class _Worker:
    """One process, started when it is first asked and again after it ended."""

    def __init__(self, command: Sequence[str], home: Path | None) -> None:
        self._command, self._home = command, home  # where it is started, for modules that are not installed
        self._process: subprocess.Popen[str] | None = None

    def ask(self, trial: Trial) -> Mapping[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._home,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        alarm = threading.Timer(LIMIT, self._process.kill)
        alarm.start()
        try:
            print(trial.json, file=_pipe(self._process.stdin), flush=True)
            line = _pipe(self._process.stdout).readline()
        except BrokenPipeError:
            line = ""
        finally:
            alarm.cancel()
        if not line:
            code = self._process.wait()
            self._process = None
            raise RuntimeError(f"the process that measured it ended with code {code}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        result: Mapping[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        if self._process is not None:
            _pipe(self._process.stdin).close()
            self._process.wait()
            _pipe(self._process.stdout).close()
            self._process = None


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
