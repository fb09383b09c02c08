"""The processes that measure: one of ours and one of the peers for each thread that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bench.learners import LEARNERS
from privet.studies import Trial

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-bench" / "bin" / "python"
LIMIT = 1800.0  # seconds for one trial: a peer was seen to hang


class Crew:
    """Measures trials, each in a process of the interpreter that its learner needs.

    With `fresh` every trial has a process of its own, so that none is measured in what another left behind.
    """

    def __init__(self, fresh: bool = False, peers: Path = PEERS) -> None:
        self._fresh, self._interpreters = fresh, {True: Path(sys.executable), False: peers}
        self._workers: dict[tuple[int, bool], _Worker] = {}

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()

    def __call__(self, trial: Trial) -> Mapping[str, Any]:
        ours = LEARNERS[trial.learner].ours
        place = threading.get_ident(), ours
        worker = self._workers.setdefault(place, _Worker(self._interpreters[ours]))
        try:
            return worker.ask(trial)
        finally:
            if self._fresh:
                worker.close()

    def problems(self, names: Sequence[str]) -> dict[str, str]:
        """For each of these learners why it cannot be measured here, or nothing."""
        said = {name: LEARNERS[name].problem() for name in names if LEARNERS[name].ours}
        theirs = [name for name in names if not LEARNERS[name].ours]
        peers = self._interpreters[False]
        if theirs and not peers.exists():
            why = "there is no .venv-bench, which `make bench` makes"
            said |= {name: f"{LEARNERS[name].title} is left out: {why}" for name in theirs}
        elif theirs:
            command = [str(peers), "-m", "bench.worker", "--about"]
            done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
            known = json.loads(done.stdout)
            said |= {name: known[name] for name in theirs}
        return said


class _Worker:
    """One process, started when it is first asked and again after it ended."""

    def __init__(self, interpreter: Path) -> None:
        self._interpreter = interpreter
        self._process: subprocess.Popen[str] | None = None

    def ask(self, trial: Trial) -> Mapping[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [str(self._interpreter), "-m", "bench.worker"],
                cwd=ROOT,
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
