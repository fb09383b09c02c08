"""Ctrl-C as a person presses it."""

from __future__ import annotations

import os
import signal
import threading

PATIENCE_SECONDS = 5.0


def press_ctrl_c(noticed: threading.Event) -> None:
    """Press Ctrl-C until somebody notices.

    CPython hears a signal late that comes at the very moment in which its main thread falls asleep.
    """
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN, "nobody would ever notice"
    while not noticed.is_set():
        os.kill(os.getpid(), signal.SIGINT)
        noticed.wait(PATIENCE_SECONDS)
