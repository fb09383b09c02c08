"""A private folder for the files of one engine, removed when the engine closes or its process ends.

Only this user may enter it. Its owner holds a lock on a file in it, which the operating system releases when the last
process that has the file open ends. A folder whose lock is free is left over and may be removed. Process numbers would
not do: containers that share the folder for temporary files do not see each other's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

_PREFIX = "privet-scratch-"
_NEW = "privet-new-"  # until it is locked
_LOCK = "lock"


class Scratch:
    """A folder of its own: `folder`, until `close`.

    >>> scratch = Scratch()
    >>> scratch.folder.is_dir()
    True
    >>> scratch.close()
    >>> scratch.folder.exists()
    False
    """

    def __init__(self) -> None:
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=_NEW))
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.folder = folder.with_name(_PREFIX + folder.name.removeprefix(_NEW))
        folder.rename(self.folder)
        self._remove = weakref.finalize(self, _remove, self.folder, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder; once is enough."""
        self._remove()


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() == process:  # a forked child must not remove its parent's folder
        shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _sweep() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # somebody works in it
        finally:
            os.close(lock)
