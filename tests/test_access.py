"""The access to the rows: what is public decides, and what is said of it follows from nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import spark_session
from postgres_server import shared_server

import privet
from privet.access import WAYS, choose, size_of
from privet.errors import QuestionError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.opening import largest_table

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
    assert choose("auto", largest_table(domain), remote=remote, streams=streams).how == how


@pytest.mark.parametrize("asked", WAYS[1:])
def test_a_path_that_is_asked_for_is_taken(asked: str) -> None:
    way = choose(asked, largest_table(WIDE), remote=True, streams=True)
    assert (way.how, way.why) == (asked, "it was asked for")


MB = 2**20


@pytest.mark.parametrize(
    ("domain", "remote", "limit", "how", "why"),
    [
        (SMALL, True, 40, "snapshot", "bounds the coded table by 40 bytes, and up to 40 bytes are copied"),
        (SMALL, True, 39, "push-down", "may be larger than the 39 bytes that are copied: the domain bounds it by 40"),
        (SMALL, False, 0, "stream", "may be larger than the 0 bytes that are copied"),
        (SMALL, False, 1000 * MB, "snapshot", "up to 1000 MB are copied"),
        (WIDE, True, 200 * MB, "push-down", "may be larger than the 200 MB that are copied"),
        (replace(WIDE, rows=1000), True, MB, "snapshot", "bounds the coded table by 76.2 kB, and up to 1 MB are"),
        (WIDE, False, MB, "stream", "that are copied: the domain bounds it by more than 1000 TB"),
        (replace(WIDE, max_rows=10**8), False, 2**42, "snapshot", "by 3.63 GB, and up to 4 TB are copied"),
    ],
)
def test_a_limit_that_was_given_decides_on_a_server_too_and_is_told(
    domain: Domain, remote: bool, limit: int, how: str, why: str
) -> None:
    way = choose("auto", largest_table(domain), remote=remote, streams=not remote, limit=limit)
    assert way.how == how and why in way.why


def test_what_nobody_bounded_is_told() -> None:
    endless = Domain((*(Nominal(f"a{i}", tuple(range(99))) for i in range(200)), Nominal("y", (0, 1))), target="y")
    assert choose("auto", largest_table(endless), remote=True, streams=False, limit=2**40).why.endswith(
        "larger than the 1 TB that are copied: the domain declares neither rows nor max_rows"
    )


@pytest.mark.parametrize(
    ("text", "size"),
    [("200MB", 200 * MB), ("200 mb", 200 * MB), (" 0 ", 0), ("7", 7), ("1.5kB", 1536), ("2TB", 2**41), (2**26, 2**26)],
)
def test_a_limit_is_read_as_people_write_it(text: str | int, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(
    "limit", ["", "much", "-1", "1e9", "5PB", "MB", "\u0661MB", -1, True, 1.5, 2**63, b"1", "9" * 400]
)
def test_a_limit_that_is_none_is_one_sentence_before_anything_is_made(limit: Any, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    for data in (frame(), tmp_path / "rows.csv", "postgresql://nobody@127.0.0.1:1/none?table=t"):
        with pytest.raises(
            QuestionError, match=r"^snapshot_limit must be a size such as '200MB', .* or 0 for no copy.$"
        ):
            privet.open(data, SMALL, budget=1, ledger=tmp_path / "ledger", snapshot_limit=limit)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


@pytest.mark.parametrize("asked", WAYS[1:])
def test_a_limit_beside_a_path_that_was_asked_for_is_refused(asked: str, tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    for data in (frame(), tmp_path / "rows.csv"):
        with pytest.raises(QuestionError, match=f"decides nothing where access is {asked}; leave out one of them"):
            privet.open(data, SMALL, budget=1, access=asked, snapshot_limit="1GB")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_what_cannot_be_read_in_batches_is_refused() -> None:
    with pytest.raises(QuestionError, match="cannot be read in batches"):
        choose("stream", largest_table(SMALL), remote=True, streams=False)


@pytest.mark.parametrize("asked", ["", "pull", "memory", "Snapshot"])
def test_an_unknown_path_is_refused_before_anything_is_made(asked: str, tmp_path: Path) -> None:
    rows = privet.datasets.census(10)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    for data in (rows, tmp_path / "rows.csv"):
        with pytest.raises(QuestionError, match=f"there is no access '{asked}'.*; choose one of auto, snapshot"):
            privet.open(data, privet.datasets.census_domain(), budget=1, access=asked)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_the_bound_of_a_table_is_that_of_its_distinct_rows() -> None:
    assert largest_table(SMALL) == (8 + 2) * 4
    assert largest_table(replace(SMALL, max_rows=3)) == (8 + 2) * 3
    assert largest_table(replace(SMALL, rows=1)) == (8 + 2) * 2


# -- what is told of a table that is open --------------------------------------------------------


def frame(rows: int = 30) -> pd.DataFrame:
    return pd.DataFrame({"a": ["x", "y", "x"] * (rows // 3), "y": [0, 1] * (rows // 2)})


@contextmanager
def opened(storage: str, folder: Path, rows: int = 30, **more: Any) -> Iterator[Any]:
    """The same rows in a storage."""
    data: Any = frame(rows)
    if storage == "csv":
        data.to_csv(folder / "rows.csv", index=False)
        data = folder / "rows.csv"
    elif storage == "postgres":
        data = postgres_table(rows)
    elif storage == "spark":
        data, _ = spark_session.frame(["a", "y"], ["VARCHAR", "BIGINT"], data.to_numpy().tolist())
    with privet.open(data, SMALL, budget=100, ledger=":memory:", **more) as table:
        yield table


def postgres_table(rows: int = 30, user: str = "postgres") -> str:
    """The address of a new table."""
    server = shared_server()
    filled = [f"INSERT INTO explained VALUES ('{a}', {y})" for a, y in frame(rows).itertuples(index=False)]
    server.run("DROP TABLE IF EXISTS explained", "CREATE TABLE explained (a text, y int)", *filled)
    server.run("GRANT SELECT ON explained TO PUBLIC")
    return server.address(user=user, table="explained")


MERGED = "identical coded rows were merged, with a weight, into memory; a level of a tree is one pass over them."
COUNTED = "all nodes and attributes of a level of a tree are counted by"
STAYS = 'the table is on a server, and its rows stay there unless access="snapshot" or a snapshot_limit fetches them.'
BOUND = "Taken because the domain bounds the coded table by 40 bytes, and up to"
SPARK = pytest.mark.xdist_group("spark")  # one process starts a Spark, and no other


@pytest.mark.parametrize(
    ("storage", "more", "text"),
    [
        (
            "frame",
            {},
            "memory engine, memory: the rows are in memory; a level of a tree is one pass over them. "
            "Taken because a frame is in memory already.",
        ),
        ("csv", {}, f"memory engine, snapshot: {MERGED} {BOUND} 64 MB are copied."),
        ("csv", {"snapshot_limit": "1.5 kB"}, f"memory engine, snapshot: {MERGED} {BOUND} 1.5 kB are copied."),
        (
            "csv",
            {"snapshot_limit": 39},
            "duckdb engine, stream: a level of a tree reads the coded rows once, in batches, and counts them in memory."
            " Taken because the coded table may be larger than the 39 bytes that are copied: the domain bounds it by "
            "40 bytes.",
        ),
        (
            "csv",
            {"access": "push-down"},
            f"duckdb engine, push-down: {COUNTED} one statement over the coded rows, after one that writes their node "
            "numbers; counts alone come back. Taken because it was asked for.",
        ),
        (
            "postgres",
            {},
            f"postgres engine, push-down: {COUNTED} one statement on the server; counts alone come back. "
            f"Taken because {STAYS}",
        ),
        ("postgres", {"snapshot_limit": "64MB"}, f"memory engine, snapshot: {MERGED} {BOUND} 64 MB are copied."),
        ("postgres", {"access": "snapshot"}, f"memory engine, snapshot: {MERGED} Taken because it was asked for."),
        (
            "postgres",
            {"snapshot_limit": 0},
            f"postgres engine, push-down: {COUNTED} one statement on the server; counts alone come back. Taken because "
            "the coded table may be larger than the 0 bytes that are copied: the domain bounds it by 40 bytes.",
        ),
        pytest.param(
            "spark",
            {},
            f"spark engine, push-down: {COUNTED} one job on the cluster; counts alone come back. Taken because {STAYS}",
            marks=SPARK,
        ),
        pytest.param(
            "spark",
            {"snapshot_limit": 40},
            f"memory engine, snapshot: {MERGED} {BOUND} 40 bytes are copied.",
            marks=SPARK,
        ),
    ],
)
def test_a_table_explains_its_path(storage: str, more: dict[str, Any], text: str, tmp_path: Path) -> None:
    with opened(storage, tmp_path, **more) as table:
        text += "\nepsilon is per person, if no person has more than 1 row"
        assert table.explain() == text
        assert isinstance(table._session.engine, MemoryEngine) == text.startswith("memory engine")
        assert table.partition("a").count(50).array().tolist() == [20, 10]
        assert table.explain() == text and len(table.budget.entries) == 1  # it neither changes nor costs anything


@pytest.mark.parametrize("storage", ["frame", "csv", "postgres", pytest.param("spark", marks=SPARK)])
def test_what_is_told_does_not_depend_on_a_row(storage: str, tmp_path: Path) -> None:
    told = set()
    for rows in (30, 6, 0):
        with opened(storage, tmp_path, rows) as table:
            told.add(table.explain())
    assert len(told) == 1


def test_explaining_sends_no_statement_by_the_servers_own_log() -> None:
    server = shared_server()
    server.run("DROP ROLE IF EXISTS explainer", "CREATE ROLE explainer LOGIN")
    server.run("ALTER ROLE explainer SET log_statement = 'all'")
    log = server.folder / "log"
    with privet.open(postgres_table(user="explainer"), SMALL, budget=1, ledger=":memory:") as table:
        before = log.stat().st_size

        def sent() -> int:
            return len(re.findall(rb"LOG:  (?:execute|statement)", log.read_bytes()[before:]))

        assert "on the server" in table.explain()
        assert sent() == 0
        table.count(1)
        assert sent() > 0  # the log would have shown it
