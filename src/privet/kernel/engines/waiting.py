"""Waiting for work that Ctrl-C ends: a driver that computes in C may notice it late, as an error, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.1


def wait_for(work: Callable[[], T], stop: Callable[[], None]) -> T:
    """What `work` returns or raises, done in another thread; an interrupt stops it and is raised once it has ended.

    >>> wait_for(lambda: 6 * 7, stop=lambda: None)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # no other thread is interrupted
    job = _Job(work)
    try:
        threading.Thread(target=job.run, daemon=True).start()
        job.ended.wait()
    except KeyboardInterrupt:
        job.cancel(stop)
        raise
    if job.error is not None:
        raise job.error
    return job.found[0]


class _Job(Generic[T]):
    """Work that is begun once, unless it was cancelled before: an interrupt may come while its thread starts."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._lock = work, threading.Lock()
        self._begun = self._cancelled = False
        self.ended = threading.Event()
        self.found: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        with self._lock:
            if self._cancelled:
                return
            self._begun = True
        try:
            self.found.append(self._work())
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def cancel(self, stop: Callable[[], None]) -> None:
        with self._lock:
            self._cancelled = True
        while self._begun and not self.ended.is_set():
            stop()  # again and again: what has only just begun may not hear it yet
            self.ended.wait(_PAUSE_SECONDS)
