"""Waiting for work that Ctrl-C ends: a driver that computes in C may notice it late, as an error, or not at all."""

from __future__ import annotations

import signal
import threading
from _thread import start_new_thread
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.1


def wait_for(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """What `work` returns or raises, done in another thread; an interrupt stops it and is raised once it has ended.

    The caller's steps are the same however long it takes: `threading.Thread` and `Event` look first whether they need
    to wait at all, which would tell something of the rows.

    >>> wait_for(lambda: 6 * 7, stop=lambda: None)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # no other thread is interrupted
    signal.siginterrupt(signal.SIGINT, True)  # polars lets a wait go on after Ctrl-C, and only then hands it on
    job = _Job(work)
    try:
        start_new_thread(job.run, ())
        job.ended.acquire()
    except KeyboardInterrupt:
        job.cancel(stop)
        raise
    if job.error is not None:
        raise job.error
    return job.returned[0]


class _Job(Generic[T]):
    """Work that is begun once, unless it was cancelled before: an interrupt may come while its thread starts."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._lock = work, threading.Lock()
        self._begun = self._cancelled = self._done = False
        self.ended = threading.Lock()  # released at the end
        self.ended.acquire()
        self.returned: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        with self._lock:
            if self._cancelled:
                return
            self._begun = True
        try:
            self.returned.append(self._work())
        except BaseException as error:
            self.error = error
        finally:
            self._done = True
            self.ended.release()

    def cancel(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._cancelled = True
        while self._begun and not self._done:
            stop()  # again and again: what has only just begun may not hear it yet
            self.ended.acquire(timeout=_PAUSE_SECONDS)
