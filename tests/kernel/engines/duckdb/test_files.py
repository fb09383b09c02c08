"""DuckDB: CSV and Parquet files as the world writes them, by their name and nothing else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.rows import Rows

TWO = Domain((Nominal("n", ("a", "b"), other=True, missing=True), Nominal("y", ("0", "1"), missing=True)))


def counts_of(path: Path, domain: Domain = TWO) -> list[list[int]]:
    engine = DuckDBEngine(DuckDBSource(path), domain)
    try:
        (total,) = engine.exact_counts(CountQuery(Rows(), (("n", "y"),)))
        return [list(cell) for cell in total[0].tolist()]
    finally:
        engine.close()


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_files_of_every_system_are_read(tmp_path: Path, newline: str, mark: str) -> None:
    lines = ["n,y", "a,0", '"b","1"', ",0", "é,1"]
    (tmp_path / "t.csv").write_text(mark + newline.join(lines) + newline, encoding="utf-8", newline="")
    assert counts_of(tmp_path / "t.csv") == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_the_end_of_a_csv_file_adds_no_row(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_text("n,y\na,0" + end)
    assert counts_of(tmp_path / "t.csv") == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "line",
    [
        b"a",
        b"a,0,1,2",
        b'a"b,0',
        b"\xff\xfe,0",
        b"a\x00b,0",
        b'"x\ny",0',
        b'"x\r\ny",0',
        b",",
        b'"",""',
        b" ",
    ],
    ids=repr,
)
def test_a_strange_line_disturbs_no_other(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"n,y\n" + b"a,0\n" * 3 + line + b"\n" + b"b,1\n" * 4)
    found = counts_of(tmp_path / "t.csv")
    assert 3 <= found[0][0] <= 4 and found[1][1] == 4
    assert 7 <= sum(map(sum, found)) <= 8


def test_a_quoted_line_break_far_into_a_large_file_is_part_of_its_field(tmp_path: Path) -> None:
    few = b"a,0\n" * 400_000 + b'"line\nbreak",1\n' + b"b,1\n" * 400_000
    (tmp_path / "t.csv").write_bytes(b"n,y\n" + few)
    assert counts_of(tmp_path / "t.csv") == [[400_000, 0, 0], [0, 400_000, 0], [0, 1, 0], [0, 0, 0]]


def test_a_line_beyond_all_measure_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"n,y\na,0\n" + b"x" * (2**24 + 10) + b",0\nb,1\n")
    found = counts_of(tmp_path / "t.csv")
    assert found[0][0] == 1 and found[1][1] == 1


@pytest.mark.parametrize("name", ["t[1].csv", "t*.csv", "t?.csv", "{t1,t2}.csv"])
def test_a_file_is_read_by_its_name_and_never_as_a_pattern(tmp_path: Path, name: str) -> None:
    (tmp_path / "t1.csv").write_text("n,y\n" + "b,1\n" * 5)
    (tmp_path / name).write_text("n,y\na,0\n")
    assert counts_of(tmp_path / name) == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_folders_of_a_file_are_no_columns(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "n=b"
    folder.mkdir()
    frame = pd.DataFrame({"n": ["a", "a"], "y": ["0", "1"]})
    if ending == "csv":
        frame.to_csv(folder / "t.csv", index=False)
    else:
        frame.to_parquet(folder / "t.parquet")
    assert counts_of(folder / f"t.{ending}") == [[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("header", [",n,y", "N,n,y", 'n,"a\nb",y', "n, n,y", 'n,"é""x",y', "n,a'b,y"])
def test_undeclared_columns_may_have_any_name(tmp_path: Path, header: str) -> None:
    names = next(iter(header.split("\n"))) if "\n" not in header else header
    position = 0 if names.startswith(("N", ",")) else 1
    fields = ["a", "0"]
    fields.insert(position, "zzz")
    (tmp_path / "t.csv").write_text(header + "\n" + ",".join(fields) + "\n")
    assert counts_of(tmp_path / "t.csv")[0] == [1, 0, 0]
