"""What a run of the tests leaves out, and what it says at its end."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterator
from datetime import date
from itertools import groupby
from typing import Any

import pytest
import sizes

# Seconds after which no further test begins (`make test-long TIME=1800`); 0 for no limit.
TIME = float(os.environ.get("PRIVET_TESTS_TIME") or 0)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sized: does less than at full size (tests/sizes.py), unless PRIVET_TESTS=full")
    config.addinivalue_line("markers", "long: runs at full size alone (PRIVET_TESTS=full)")
    _hear_ctrl_c()


def _hear_ctrl_c() -> None:
    """Let Ctrl-C interrupt: a shell starts what runs in its background deaf to it.

    Tests that press Ctrl-C would wait there without an end.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let no test read or write what this user's programs remember."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The Chromium of this machine."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no Chromium here")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def table() -> Any:
    """A few people, with a budget that no test uses up."""
    from kernel.people import DOMAIN, FRAME, LARGE

    import privet

    return privet.open(FRAME, DOMAIN, budget=LARGE)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _keep_groups(config, items)
    _draw_fewer(items)
    if TIME:
        _begin_elsewhere_each_day(items)
    if sizes.FULL:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def _draw_fewer(items: list[pytest.Item]) -> None:
    """Mark property tests as smaller than at full size, but for those that have a size of their own."""
    tests = {}
    for item in items:
        test = getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))
        if getattr(test, "is_hypothesis_test", False) and not item.get_closest_marker("sized"):
            item.add_marker(sizes.sized)
            tests[id(test)] = test
    if not sizes.FULL:
        for test in tests.values():
            sizes.fewer_examples(test)


def _begin_elsewhere_each_day(items: list[pytest.Item]) -> None:
    """Begin with another file each day, so that runs which have no time for all of them reach all in the end."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    first = date.today().toordinal() % len(files) if files else 0
    items[:] = [item for tests in files[first:] + files[:first] for item in tests]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if TIME and time.monotonic() - _began > TIME:
        pytest.skip(f"the {TIME:.0f} seconds for these tests are over")


def _keep_groups(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Write the group of a test behind its id, by which pytest-xdist sends a group to one process.

    It does so itself, but where pytest 9.2 no longer looks: then every process would start a Spark of its own.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        group = item.get_closest_marker("xdist_group")
        if group and not item.nodeid.endswith(f"@{group.args[0]}"):
            item._id = type(item.id).parse(f"{item.nodeid}@{group.args[0]}")


def pytest_collection_finish() -> None:
    """Keep what collection made out of sight of the collector: tests that call it would pay for all of it each time."""
    global _began, _spent
    gc.collect()
    gc.freeze()
    _began, _spent = time.monotonic(), _processor_seconds()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Note with each report the seconds of the processor since the last one."""
    global _spent
    report = yield
    before, _spent = _spent, _processor_seconds()
    report.processor = _spent - before
    return report


def _processor_seconds() -> float:
    """What this process has used, and what those that it started and that have ended have."""
    return sum(os.times()[:4])


_began = _spent = 0.0


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how much every known-bad fixture was shown to lose, what was smaller than at full size, and its power."""
    said = {"caught": set(), "power": set()}
    for report in terminalreporter.stats.get("passed", []):
        for name, text in report.user_properties:
            if name in said:
                said[name].add(text)
    smaller = [] if sizes.FULL else [f"{name}: {found}" for name, found in sizes.SIZES.items()]
    seconds = _seconds_by_file(terminalreporter) if terminalreporter.config.option.durations else []
    for title, lines in (
        ("known to be bad, and caught", sorted(said["caught"])),
        ("the power of statistical tests at this size, for each mutant", sorted(said["power"])),
        ("smaller than at full size (make test-all)", smaller),
        ("seconds of the processor by file", seconds),
    ):
        if lines:
            terminalreporter.write_sep("=", title)
            for line in lines:
                terminalreporter.write_line(line)


def _seconds_by_file(terminalreporter: Any, most: int = 30) -> list[str]:
    """Where the work of a run went, the most first: on a machine that others use too, clocks do not tell."""
    spent: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                spent[report.nodeid.split("::")[0]] += getattr(report, "processor", 0.0)
    total = sum(spent.values())
    return [f"{seconds:7.1f} {seconds / total:6.1%}  {file}" for file, seconds in spent.most_common(most)]
