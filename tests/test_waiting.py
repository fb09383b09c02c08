"""Waiting: whatever comes of the work, and whenever an interrupt comes, nothing goes on behind anybody's back."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

import pytest
from keyboard import press_ctrl_c

from privet import waiting
from privet.waiting import wait_for


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
        press_ctrl_c(stopped)
        log.append("ended")

    with pytest.raises(KeyboardInterrupt):
        wait_for(work, stopped.set)
    assert log == ["ended"]


def test_an_interrupt_is_heard_where_another_library_lets_waits_go_on() -> None:
    """As polars does from its first query on: Ctrl-C would be heard when the work has ended."""
    stopped = threading.Event()
    signal.siginterrupt(signal.SIGINT, False)
    with pytest.raises(KeyboardInterrupt):
        wait_for(lambda: press_ctrl_c(stopped), stopped.set)


def test_work_that_hears_late_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)
    told = []
    enough = threading.Event()

    def stop() -> None:
        told.append("stop")
        if len(told) == 3:
            enough.set()

    def work() -> None:
        press_ctrl_c(enough)

    with pytest.raises(KeyboardInterrupt):
        wait_for(work, stop)
    assert len(told) >= 3


def test_an_interrupt_while_the_thread_starts_leaves_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def interrupted(run: Callable[[], None], _: tuple[()]) -> None:
        late.append(run)  # the thread runs after the interrupt
        raise KeyboardInterrupt

    late: list[Callable[[], None]] = []
    monkeypatch.setattr(waiting, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wait_for(lambda: done.append("work"), nothing)
    late[0]()
    assert done == []


def test_the_callers_steps_are_the_same_however_long_it_takes() -> None:
    """Would catch a wait that looks first whether it must: how soon work ends depends on the rows."""

    def steps(work: Callable[[], object]) -> int:
        taken = 0

        def step(*_: object) -> None:
            nonlocal taken
            taken += 1

        sys.setprofile(step)
        try:
            wait_for(work, nothing)
        finally:
            sys.setprofile(None)
        return taken

    counted = {steps(work) for work in (lambda: 1, lambda: sum(range(10**6))) for _ in range(50)}
    assert len(counted) == 1
