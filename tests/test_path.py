"""The path to the rows: what is public decides, and what is said of it follows from nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import privet
from privet.column import Nominal
from privet.domain import Domain
from privet.errors import QuestionError
from privet.kernel.path import PATHS, choose, largest_table

SMALL = Domain((Nominal("a", ("x", "y")), Nominal("y", (0, 1))), target="y")
WIDE = Domain((*(Nominal(f"a{i}", tuple(range(9))) for i in range(30)), Nominal("y", (0, 1))), target="y")


@pytest.mark.parametrize(
    ("domain", "remote", "streams", "how"),
    [
        (SMALL, False, True, "snapshot"),
        (SMALL, True, False, "push-down"),
        (WIDE, False, True, "stream"),
        (WIDE, False, False, "push-down"),
        (WIDE, True, False, "push-down"),
        (replace(WIDE, max_rows=1000), False, True, "snapshot"),
        (replace(WIDE, rows=1000), False, True, "snapshot"),
        (replace(WIDE, rows=10**8), False, True, "stream"),
    ],
)
def test_where_a_table_is_and_how_large_it_may_be_decides(
    domain: Domain, remote: bool, streams: bool, how: str
) -> None:
    assert choose("auto", domain, remote=remote, streams=streams).how == how


@pytest.mark.parametrize("asked", PATHS[1:])
def test_a_path_that_is_asked_for_is_taken(asked: str) -> None:
    way = choose(asked, WIDE, remote=True, streams=True)
    assert (way.how, way.why) == (asked, "it was asked for")


def test_what_cannot_be_read_in_passing_is_refused() -> None:
    with pytest.raises(QuestionError, match="cannot be read in passing"):
        choose("stream", SMALL, remote=True, streams=False)


@pytest.mark.parametrize("asked", ["", "pull", "memory", "Snapshot"])
def test_an_unknown_path_is_refused_before_anything_is_made(asked: str, tmp_path: Path) -> None:
    rows = privet.datasets.census(10)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for data in (rows, tmp_path / "rows.csv"):
        with pytest.raises(QuestionError, match=f"there is no path '{asked}'; choose one of auto, snapshot"):
            privet.open(data, privet.datasets.census_domain(), budget=1, path=asked)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_the_bound_of_a_table_is_that_of_its_distinct_rows() -> None:
    assert largest_table(SMALL) == (8 + 2) * 4
    assert largest_table(replace(SMALL, max_rows=3)) == (8 + 2) * 3
    assert largest_table(replace(SMALL, rows=1)) == (8 + 2) * 2
