"""A queue of processes that wait for the same file: they get it in the order in which they came.

Left alone, writers of SQLite look again and again whether the database is free, and whoever looks at the right moment
has it: of many, some wait for minutes. Here one at a time looks, the one that holds the lock of a file beside it. The
others sleep in the operating system, which wakes them in order. This is for fairness alone: that no two write at the
same time rests on SQLite.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress


@contextmanager
def turn(queue: str, seconds: float) -> Iterator[None]:
    """Be first in a queue, which is a file, for the length of the block; wait for it so many seconds.

    If there can be no such file, or no lock on it, go on without. The lock of a process that dies is gone with it.

    Raises
    ------
    TimeoutError
        Others were first for too long.
    """
    file = None
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # the second: another user has made it
        with suppress(OSError):
            file = os.open(queue, flags | os.O_CLOEXEC, 0o666)
            break
    if file is None:
        yield
        return
    _queued.add(file)
    sleeper: Future[None] | None = None  # done when a thread that waits for the lock has it
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleeper = Future()
            _wait_for_lock(file, sleeper, seconds)
        except OSError:  # a file system without locks
            pass
        if sleeper is not None and not sleeper.done():
            raise TimeoutError("locked")
        yield
    finally:
        if sleeper is None or not sleeper.cancel():  # else the thread leaves when its turn comes
            _leave(file)


def _wait_for_lock(file: int, granted: Future[None], seconds: float) -> None:
    """Wait for the lock of a file. `flock` has no time limit, so a thread waits in it."""

    def wait() -> None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if granted.set_running_or_notify_cancel():
            granted.set_result(None)
        else:
            _leave(file)

    sleeper = threading.Thread(target=wait, daemon=True)
    try:
        sleeper.start()
    except RuntimeError:  # there can be no more threads: go on without the lock
        granted.set_result(None)
    else:
        sleeper.join(seconds)


_queued: set[int] = set()  # the files of all who queue


def _leave(file: int) -> None:
    if file in _queued:
        _queued.discard(file)
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may have the file open, too
        os.close(file)


def _leave_queues() -> None:
    """In a forked child: close the files of queues, for the locks are its parent's."""
    for file in _queued:
        with suppress(OSError):
            os.close(file)
    _queued.clear()


os.register_at_fork(after_in_child=_leave_queues)
