"""Where in its course a question can be stopped or killed, and how long that course is, without a clock.

A step is a call of a function, or the end of one. Python tells about each of them
(`sys.setprofile`), so nothing has to be known about the layer that is watched.
"""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from privet.errors import PrivetError
from privet.verification.attacks.planted import Ask
from privet.verification.attacks.result import Undecided

_FAILED = "failed"
_PATIENCE = 120  # seconds until a process that says nothing is given up
Say = Callable[[object], None]


class _Stop(BaseException):
    """What an analyst's interrupt looks like to the layer."""


@contextmanager
def _watched(step: Callable[[FrameType, str], None]) -> Iterator[None]:
    """Let `step` be called at every step of this thread."""
    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()  # what it would clean up is not the question's work
    sys.setprofile(lambda frame, event, argument: step(frame, event))
    try:
        yield
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()


def steps(table: Any, ask: Ask) -> int:
    """The number of steps a question takes: the same for the same work, whatever else the machine does."""
    taken = 0

    def step(*_: object) -> None:
        nonlocal taken
        taken += 1

    with _watched(step):
        ask(table)
    return taken


def stopped_late(table: Any, ask: Ask, share: int) -> Ask:
    """The question, to be stopped at so many hundredths of its course, as by someone who sends a signal."""
    ask(table)  # what is done only once is done
    at = steps(table, ask) * share // 100
    taken = 0

    def step(frame: FrameType, event: str) -> None:
        nonlocal taken
        taken += 1
        # signals arrive where a function begins; what goes wrong while a generator is thrown away is not raised
        if taken >= at and event == "call" and not frame.f_code.co_flags & inspect.CO_GENERATOR:
            raise _Stop

    def stopped(each: Any) -> None:
        with suppress(_Stop, PrivetError), _watched(step):
            ask(each)

    return stopped


class Changes:
    """Counts how often the files of a folder change while a question is asked, and may kill the process at one."""

    def __init__(self, folder: Path, kill_at: int | None = None) -> None:
        self.folder = folder
        self.kill_at = kill_at
        self.seen = 0

    def during(self, ask: Callable[[], Any]) -> Any:
        """The answer to a question; none if it is killed."""
        self._files = self._look()
        with _watched(self._step):
            return ask()

    def _step(self, *_: object) -> None:
        now = self._look()
        if now != self._files:
            self._files = now
            self.seen += 1
            if self.seen == self.kill_at:
                kill()

    def _look(self) -> list[tuple[str, int, int]]:
        with os.scandir(self.folder) as files:
            return sorted((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)


def kill() -> None:
    """End this process at once, with nothing closed, flushed or undone."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[Say], None], folder: Path) -> list[Any]:
    """What a forked process says before it ends or is killed; its temporary files go to `folder`."""
    if not hasattr(os, "fork"):
        raise Undecided("forked and killed processes cannot be tried: this system has no fork.")
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)

    def run() -> None:
        tempfile.tempdir = str(folder)
        try:
            work(writer.send)
        except BaseException:
            writer.send(_FAILED)
        os._exit(0)  # nothing of the parent is closed or flushed a second time

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = context.Process(target=run, daemon=True)
        child.start()
    writer.close()
    said = []
    try:
        while reader.poll(_PATIENCE):
            said.append(reader.recv())
            if said[-1] == _FAILED:
                raise ChildProcessError
        raise TimeoutError
    except EOFError:
        return said
    finally:
        reader.close()
        child.kill()
        child.join()
        child.close()
