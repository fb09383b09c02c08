"""Records of a CSV file: those that Python's csv module reads, in bounded memory, wherever a buffer ends."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import DataError
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.duckdb import csv_records
from privet.kernel.engines.duckdb.csv_records import LONGEST_FIELD, CsvFile
from privet.kernel.engines.duckdb.engine import DuckDBSource
from privet.kernel.rows import Rows

BODIES = st.text(st.sampled_from(list('ab",,\n\r é"')), max_size=60)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("csv") / "rows.csv"


def read(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def ends_in_quotes(text: str) -> bool:
    """Whether a last line that is a record of its own becomes a part of the one before it."""
    return list(csv.reader(io.StringIO(text + "\n\0", newline="")))[-1] != ["\0"]


@settings(max_examples=500, deadline=None, derandomize=True)
@given(BODIES, st.integers(1, 9), st.integers(1, 40))
def test_records_are_those_of_pythons_csv_module(path: Path, body: str, chunk: int, piece: int) -> None:
    text = "x,y,z\n" + body
    path.write_bytes(text.encode())
    file = CsvFile(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "_CHUNK", chunk)
        patch.setattr(csv_records, "PIECE", piece)
        if ends_in_quotes(text):
            with pytest.raises(DataError, match="ends inside quotes"):
                list(file.pieces(["x", "z"]))
            return
        pieces = list(file.pieces(["z", "x"]))
    records = [record for record in csv.reader(io.StringIO(text, newline="")) if record]
    assert read(b"".join(pieces)) == [[record[0], record[2]] for record in records[1:] if len(record) == 3]
    assert file.records == len(records) - 1
    for content in pieces:
        assert not content or content.endswith(b'"\n')


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"\xef\xbb\xbfx,y\n", ["x", "y"]),
        (b'\n\r\n"x\ny",z\r1,2', ["x\ny", "z"]),
        (b'a"b,c\n"', ['a"b', "c"]),
        (b"x\n\xff\xfe", ["x"]),
    ],
)
def test_the_header_is_the_first_record(path: Path, content: bytes, names: list[str]) -> None:
    path.write_bytes(content)
    assert CsvFile(path).names == names


@pytest.mark.parametrize("content", [b"", b"\n", b",\n1,2\n", b"\xff,y\n1,2\n"])
def test_without_names_there_is_nothing_to_read(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"not a list of column names|is empty"):
        CsvFile(path)


def test_bytes_that_are_no_text_are_one_character_that_no_value_has(path: Path) -> None:
    path.write_bytes(b"x,y\n\xff\xc3,1\nb,\xc32\n")
    assert read(b"".join(CsvFile(path).pieces(["x", "y"]))) == [["\ufffd\ufffd", "1"], ["b", "\ufffd2"]]


def test_a_field_is_cut_where_no_value_and_no_number_reaches(path: Path) -> None:
    long = b"7" * (LONGEST_FIELD + 10**6)
    path.write_bytes(b'x,y\n"' + long + b'",1\n' + long[:LONGEST_FIELD] + b",2\nc,3\n")
    records = read_long(b"".join(CsvFile(path).pieces(["x", "y"])))
    assert [(len(x), y) for x, y in records] == [(LONGEST_FIELD, "1"), (LONGEST_FIELD, "2"), (1, "3")]


def read_long(content: bytes) -> list[list[str]]:
    return [[field.strip('"') for field in line.split('","')] for line in content.decode().splitlines()]


DOMAIN = Domain((Nominal("a", ("v1", "v2", "v3"), other=True), Nominal("b", ("x", "y"))))


@pytest.mark.parametrize("megabytes", [1, 3, 9, 33])
def test_a_long_field_in_quotes_is_one_field_of_one_record(tmp_path: Path, megabytes: int) -> None:
    """DuckDB alone read such a field as hundreds of thousands of records, or failed, by where a buffer ended."""
    line = b"v1,x,nnnnnnnnnn\n"
    field = b'v2,y,"' + b"v3,y,q\n" * (megabytes * 2**20 // 7) + b'"\n'
    (tmp_path / "t.csv").write_bytes(b"a,b,note\n" + line * 10_000 + field + line * 20_000)
    engine = DuckDBSource(tmp_path / "t.csv").open(DOMAIN)
    (counts,) = engine.exact_counts(CountQuery(Rows(), (("a",),)))
    engine.close()
    assert counts.tolist() == [[30_000, 1, 0, 0]]


MEMORY = """
import resource, sys
from pathlib import Path
from privet import Domain, Nominal
from privet.kernel.engines.duckdb.engine import DuckDBSource
from privet.kernel.engines.contract import CountQuery
from privet.kernel.rows import Rows

few = Path(sys.argv[1]); many = Path(sys.argv[2])
domain = Domain((Nominal("a", ("v1", "v2"), other=True), Nominal("b", ("x", "y"))))
DuckDBSource(few).open(domain).close()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
engine = DuckDBSource(many).open(domain)
print(engine.exact_counts(CountQuery(Rows(), ((),)))[0].tolist()[0])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """One process opens 3 MB, then 120 MB: it takes a piece, a buffer, and what DuckDB keeps of the coded rows."""
    line = b"v1,x,nnnnnnnnnn\n" * 10_000
    for name, times in (("few", 20), ("many", 750)):
        with (tmp_path / f"{name}.csv").open("wb") as file:
            file.write(b"a,b,note\n")
            for _ in range(times):
                file.write(line)
    script = [sys.executable, "-c", MEMORY, str(tmp_path / "few.csv"), str(tmp_path / "many.csv")]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    rows, grown = map(int, re.findall(r"\d+", done.stdout))
    assert rows == 7_500_000
    assert grown < 600 * 2**20


def test_records_with_another_number_of_fields_are_counted_apart(path: Path) -> None:
    path.write_bytes(b"x,y\n1,2\n3\n4,5,6\n\n7,8\n")
    file = CsvFile(path)
    assert b"".join(file.pieces(["x"])) == b'"1"\n"7"\n'
    assert (file.records, file.misshapen) == (4, 2)


def test_a_header_without_end_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_HEADER", 10)
    path.write_bytes(b"x,y,longer,than,allowed\n1,2,3,4,5\n")
    with pytest.raises(DataError, match="more than 10 characters"):
        CsvFile(path)
