"""Waiting: whatever comes of the work, and whenever an interrupt comes, nothing goes on behind anybody's back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from privet.kernel.engines import waiting
from privet.kernel.engines.waiting import wait_for


def nothing() -> None:
    raise AssertionError("nobody asked to stop")


def test_what_the_work_returns_or_raises_is_handed_on() -> None:
    assert wait_for(lambda: None, nothing) is None
    assert wait_for(threading.current_thread, nothing) is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 // 0, nothing)


def test_work_of_other_threads_is_done_there() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(wait_for(threading.current_thread, nothing)))
    thread.start()
    thread.join()
    assert found == [thread]


def test_an_interrupt_stops_the_work_and_waits_until_it_has_ended() -> None:
    stopped, log = threading.Event(), []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        stopped.wait()
        log.append("ended")

    with pytest.raises(KeyboardInterrupt):
        wait_for(work, stopped.set)
    assert log == ["ended"]


def test_work_that_hears_late_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)
    told = []
    enough = threading.Event()

    def stop() -> None:
        told.append("stop")
        if len(told) == 3:
            enough.set()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        enough.wait()

    with pytest.raises(KeyboardInterrupt):
        wait_for(work, stop)
    assert len(told) >= 3


def test_an_interrupt_while_the_thread_starts_leaves_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            self.late = threading.Timer(0, self._target)  # the thread runs after the interrupt
            threads.append(self.late)
            raise KeyboardInterrupt

    threads: list[threading.Timer] = []
    with monkeypatch.context() as patch:
        patch.setattr(waiting.threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            wait_for(lambda: done.append("work"), nothing)
    threads[0].start()
    threads[0].join()
    assert done == []
