"""How much the long tests do: enough for every change, or all of it.

`make test` runs the small sizes and `make test-all` the full ones, with PRIVET_TESTS=full. Two marks say what the first
leaves out: a test that asks for a size is `sized`, one that runs at full size alone is `long`. `make test-long` runs
the tests with either mark, at full size. The end of a run lists every size below its full one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings

FULL = os.environ.get("PRIVET_TESTS") == "full"

sized = pytest.mark.sized
long = pytest.mark.long


@dataclass(frozen=True)
class Size:
    """A number for every change and one for the full run."""

    small: float
    full: float
    unit: str
    cases: bool = False  # each is a trial by itself: what shows in one of four is missed with probability (3/4)^n

    @property
    def now(self) -> float:
        return self.full if FULL else self.small

    def __str__(self) -> str:
        line = f"{self.now:g} of {self.full:g} {self.unit}"
        if self.cases:
            line += f"; what shows in one of four is found with probability {1 - 0.75**self.now:.4f}"
        return line


SIZES = {
    "statistical draws": Size(0.6, 1, "of the draws that a test names"),
    "registry runs": Size(0.25, 1, "of the runs on neighbours of a registered subject, at epsilon 1 alone"),
    "registry runs without power": Size(0.05, 1, "of them where only the listed outcomes must show a loss"),
    "registry outcomes": Size(0.1, 1, "of the outcomes that are listed for it"),
    "killed processes": Size(17, 50, "processes, for each store of a ledger", cases=True),
    "longest texts of a model": Size(0.2, 1, "of as many lists, names, levels and steps as a file of a model may have"),
    "charges of a race": Size(200, 1000, "charges that 16 processes race for, in each store"),
    "ledgers opened at once": Size(1, 4, "PostgreSQL schemas, and three times as many files"),
    "attacks on every path": Size(5, 19, "attacks"),
    "examples of an engine": Size(0.25, 1, "of the tables and questions that are drawn for each storage"),
    "examples of a container": Size(17, 40, "examples of each container that a column is read from", cases=True),
    "racing analysts": Size(8, 64, "analysts at two servers with one PostgreSQL ledger"),
    "killed servers": Size(2, 50, "times that one of them is killed and started again"),
    "requests of a route": Size(8, 100, "requests drawn from the OpenAPI document for each route, valid and invalid"),
    "depths of a tree": Size(5, 10, "depths at which every path of every preset is added up"),
    "drawn examples": Size(0.3, 1, "of the examples that are drawn for a property, but 17 of them at least"),
    "folds of a printed mean": Size(0.25, 1, "of ten folds, a hundred times, as Liu et al. ran"),
    "examples of maximum entropy": Size(8, 25, "published trees", cases=True),
}


def size(name: str) -> int:
    """The number by this name, small or full."""
    found = SIZES[name].now
    assert found == int(found), f"the size '{name}' is a share, not a number"
    return int(found)


def part_of(number: int, name: str) -> int:
    """As much of `number` as the share by this name says, rounded up."""
    return -int(-number * SIZES[name].now // 1)


def few(values: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """Parameters of a test: those that are kept run at every change, the others at full size alone.

    A tuple is a value for each of several names.
    """
    return [
        value if value in kept else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=long)
        for value in values
    ]


def draws(number: int) -> int:
    """As many of the draws that a statistical test names as are made today."""
    return part_of(number, "statistical draws")


def fewer_examples(test: Any) -> None:
    """Draw a part of the examples that a property test of Hypothesis has at full size.

    What shows in one of four is found by 17 with probability 0.9925.
    """
    asked = test._hypothesis_internal_use_settings  # the settings that are in force, named by the test or not
    few = max(17, part_of(asked.max_examples, "drawn examples"))
    test._hypothesis_internal_use_settings = settings(asked, max_examples=min(asked.max_examples, few))


def examples(name: str, base: settings) -> Callable[[Any], Any]:
    """Settings of Hypothesis with so many examples, and the mark that says so."""
    found = settings(base, max_examples=size(name))
    return lambda test: sized(found(test))
