"""Scratch files: in a folder nobody else may enter, gone when the engine is, and nowhere else."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from sizes import long

from privet.errors import DataError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.duckdb.engine import DuckDBEngine, DuckDBSource
from privet.kernel.rows import Rows, Split

DOMAIN = Domain((Nominal("sex", ("f", "m")), Numeric("age", Fraction(0), Fraction(100), Fraction(1))))

# What a child process runs first: it opens the table named by its first argument and asks two questions.
OPEN = """
import gc, os, signal, sys
from pathlib import Path
from fractions import Fraction
from privet import Domain, Nominal, Numeric
from privet.kernel.engines.duckdb.engine import DuckDBEngine
from privet.kernel.engines.duckdb.engine import DuckDBSource
from privet.kernel.engines.contract import CountQuery
from privet.kernel.rows import (Rows, Split)

domain = Domain((Nominal("sex", ("f", "m")), Numeric("age", Fraction(0), Fraction(100), Fraction(1))))
engine = DuckDBEngine(DuckDBSource(Path(sys.argv[1])), domain)
parts = Rows().divide([Split("sex")], domain)

def counts(rows=parts):
    return engine.exact_counts(CountQuery(rows, ((),)))[0].tolist()

assert counts() == [2, 1]
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, empty at first."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "people.csv"
    path.write_text("sex,age\nf,30\nm,40\nf,50\n")
    return path


def asked(source: DuckDBSource) -> DuckDBEngine:
    engine = DuckDBEngine(source, DOMAIN)
    assert engine.exact_counts(CountQuery(Rows().divide([Split("sex")], DOMAIN), ((),)))[0].tolist() == [2, 1]
    return engine


def run(script: str, data: Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", OPEN + script, str(data)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_only_the_owner_may_enter_the_folder(scratch: Path, data: Path) -> None:
    old = os.umask(0)
    try:
        engine = asked(DuckDBSource(data))
    finally:
        os.umask(old)
    (folder,) = scratch.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [path.name for path in folder.iterdir() if not path.name.startswith("coded.duckdb")] == ["lock"]
    engine.close()


def test_closing_removes_the_folder_and_may_be_done_twice(scratch: Path, data: Path) -> None:
    engine = asked(DuckDBSource(data))
    engine.close()
    assert list(scratch.iterdir()) == []
    engine.close()


def test_a_forgotten_engine_leaves_nothing(scratch: Path, data: Path) -> None:
    engine = asked(DuckDBSource(data))
    assert len(list(scratch.iterdir())) == 1
    del engine
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_the_end_of_the_interpreter_removes_the_folder(scratch: Path, data: Path) -> None:
    done = run(f"print(len(os.listdir({str(scratch)!r})))", data)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert list(scratch.iterdir()) == []


def test_an_uncaught_error_removes_the_folder(scratch: Path, data: Path) -> None:
    done = run("raise SystemExit(3)", data)
    assert done.returncode == 3
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("content", ["sex,sex\nf,f\n", "", "age\n1\n"], ids=["same name", "empty", "column absent"])
def test_a_table_that_cannot_be_opened_leaves_nothing(scratch: Path, data: Path, content: str) -> None:
    data.write_text(content)
    with pytest.raises(DataError):
        DuckDBEngine(DuckDBSource(data), DOMAIN)
    assert list(scratch.iterdir()) == []


def test_what_a_killed_process_left_is_swept_by_the_next_engine(scratch: Path, data: Path) -> None:
    done = run("os.kill(os.getpid(), signal.SIGKILL)", data)
    assert done.returncode == -signal.SIGKILL
    (left,) = scratch.iterdir()
    assert any(left.iterdir())
    engine = asked(DuckDBSource(data))
    assert not left.exists()
    engine.close()
    assert list(scratch.iterdir()) == []


def test_the_folder_of_a_living_process_and_foreign_folders_stay(scratch: Path, data: Path) -> None:
    first = asked(DuckDBSource(data))
    (mine,) = scratch.iterdir()
    foreign = [scratch / name for name in ("privet-scratch-", "privet-scratch-x-y", "other-1", f"privet-{os.getpid()}")]
    for folder in foreign:
        folder.mkdir()
    second = asked(DuckDBSource(data))
    assert mine.exists() and all(folder.exists() for folder in foreign)
    second.close()
    assert first.exact_counts(CountQuery(Rows(), ((),)))[0].tolist() == [3]
    first.close()


@pytest.mark.parametrize(
    "end",
    [
        pytest.param("sys.exit(0)", marks=long),
        "engine.close(); sys.exit(0)",
        pytest.param("del engine; gc.collect(); os._exit(0)", marks=long),
    ],
)
def test_a_forked_child_that_ends_leaves_its_parents_folder_alone(scratch: Path, data: Path, end: str) -> None:
    script = f"""
(folder,) = Path({str(scratch)!r}).iterdir()
files = sorted(os.listdir(folder))
child = os.fork()
if child == 0:
    {end}
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), sorted(os.listdir(folder)) == files)
print(counts(), counts(parts.divide([Split("age", (45,)), None], domain)), counts(Rows()))
"""
    done = run(script, data)
    assert done.stdout.splitlines() == ["0 True", "[2, 1] [1, 1] [3]"]
    assert done.returncode == 0
    assert list(scratch.iterdir()) == []


def test_nothing_is_written_anywhere_else(scratch: Path, data: Path, tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    script = f"print(*sorted(os.listdir({str(data.parent)!r}) + os.listdir() + os.listdir({str(home)!r})))"
    done = run(script, data, cwd, HOME=str(home), XDG_CACHE_HOME=str(home))
    assert (done.returncode, done.stdout) == (0, "people.csv\n")
    assert [*home.iterdir(), *cwd.iterdir(), *scratch.iterdir()] == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "table"])
def test_the_source_is_never_modified(scratch: Path, data: Path, kind: str) -> None:
    frame = pd.read_csv(data)
    if kind == "parquet":
        frame.to_parquet(data.with_suffix(".parquet"))
    elif kind == "table":
        with duckdb.connect(str(data.with_suffix(".db"))) as connection:
            connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    path = data.with_suffix({"csv": ".csv", "parquet": ".parquet", "table": ".db"}[kind])
    os.utime(path, (1_000_000_000, 1_000_000_000))
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, path.stat().st_ino
    files = sorted(path.parent.iterdir())
    engine = asked(DuckDBSource(path, "people" if kind == "table" else None))
    engine.snapshot()
    assert sorted(path.parent.iterdir()) == files
    engine.close()
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert sorted(path.parent.iterdir()) == files


def test_a_source_that_may_only_be_read_is_enough(scratch: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir()
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM (VALUES ('f', 1), ('f', 2), ('m', 3)) AS t(sex, age)")
    (folder / "people.db").chmod(0o400)
    folder.chmod(0o500)
    try:
        asked(DuckDBSource(folder / "people.db", "people")).close()
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def test_processes_in_other_containers_leave_a_folder_alone(scratch: Path, data: Path) -> None:
    """In another PID namespace the number of a living process means nothing: only its lock does."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this machine makes no PID namespaces")
    engine = asked(DuckDBSource(data))
    (mine,) = scratch.iterdir()
    code = "from privet.kernel.engines.duckdb.scratch import Scratch; Scratch().close()"
    subprocess.run([*unshare, sys.executable, "-c", code], check=True)
    assert mine.is_dir()
    assert engine.exact_counts(CountQuery(Rows(), (("sex",),)))[0].sum() == 3
    engine.close()
