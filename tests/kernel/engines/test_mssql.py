"""SQL Server: statements as they would be sent, their logic run elsewhere, a server where PRIVET_MSSQL names one."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from command import run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mssql_stand_in import StandIn, in_duckdb
from sqlglot import exp

import privet
from privet.errors import DataError, EngineFailed
from privet.kernel import Ledger
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import Nominal, Numeric, number_of
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.mssql import engine as mssql
from privet.kernel.engines.mssql.engine import DIALECT, MssqlEngine, MssqlSource
from privet.kernel.engines.sql import sql
from privet.kernel.engines.sql.coding import Kind
from privet.kernel.engines.sql.sql import _squared
from privet.kernel.rows import Condition, Rows, Split

GOLDEN = Path(__file__).parent / "golden" / "mssql"
UPDATE = os.environ.get("PRIVET_UPDATE_GOLDEN") == "1"
HOSTILE = ("f'); DROP TABLE t; --", "m]", "trailing ")
DOMAIN = Domain(
    (
        Nominal('sex"]; DROP TABLE t; --', HOSTILE, other=True),
        Numeric("order", Fraction(0), Fraction(9), Fraction(1, 2), edges=(Fraction(3),), missing=True),
        Nominal("select", (True, False)),
        Numeric("read", Fraction(-5), Fraction(5), Fraction(1), missing=True),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)
TYPES = ["nvarchar", "float", "bit", "varchar", "varchar"]
PARTS = Rows().keep([0], (Condition("order", None, 2, 15),)).divide([Split("select")], DOMAIN)
MODEL = AdditiveModel((10, -20, 0), ((("select", "y"), np.arange(18, dtype=np.int32).reshape(2, 3, 3) % 5),))


class Recorder:
    """A connection that remembers statements: a catalogue of one table, and rows that it is told to answer with."""

    def __init__(
        self, types: Sequence[str] = TYPES, isolated: int = 1, rows: Sequence[tuple[int, ...]] = (), **more: Any
    ) -> None:
        self.statements: list[str] = []
        self._isolated, self._answer = isolated, rows
        self._types = dict(zip(DOMAIN.names, types, strict=False))
        self._asked: Callable[[], object] = more.get("asked", lambda: None)  # when a question has come
        self.closed = False

    def cursor(self) -> Recorder:
        return self

    def execute(self, statement: str, *values: Any) -> Recorder:
        self.statements.append(statement)
        return self

    def fetchall(self) -> list[Any]:
        if "sys.databases" in self.statements[-1]:
            return [("the ] clinic", self._isolated)]
        if "INFORMATION_SCHEMA" in self.statements[-1]:
            return list(self._types.items())
        self._asked()
        return self._answered(self.statements[-1])

    def _answered(self, statement: str) -> list[Any]:
        return list(self._answer)

    def commit(self) -> None:
        self.statements.append("COMMIT")

    def close(self) -> None:
        self.closed = True


ASK: dict[str, Callable[[MssqlEngine], Any]] = {
    # what Hanisch's laplacianCount asks: the rows of each class that meet the conditions along a path
    "noisy_count": lambda engine: engine.exact_counts(CountQuery(PARTS, (("y",),))),
    "counts": lambda engine: engine.exact_counts(CountQuery(PARTS, ((), ("order", "y"), ("read", "y")))),
    "grid": lambda engine: engine.exact_grid(GridQuery(PARTS, ("order", "select"), "y")),
    "sums": lambda engine: engine.exact_sums(SumQuery(Rows(), "order")),
    "correct": lambda engine: engine.exact_correct(CorrectQuery(PARTS, MODEL, "y")),
    "residuals": lambda engine: engine.exact_residuals(
        ResidualQuery(PARTS, MODEL, (("order",), ("order", "select")), "y", (1024, 512, 100))
    ),
    "coins": lambda engine: engine.exact_counts(CountQuery(PARTS.scatter(3, 7), ((),))),
}


@pytest.mark.parametrize("name", list(ASK))
def test_the_compiled_sql_is_the_golden_one(name: str) -> None:
    server = Recorder()
    ASK[name](MssqlEngine(lambda: server, ("dbo", "it's [t]"), DOMAIN))
    limits, allowed, *isolated, catalogue, _ = server.statements  # one statement for the question
    assert limits == "SET QUERY_GOVERNOR_COST_LIMIT 0; SET LOCK_TIMEOUT -1; SET ROWCOUNT 0"
    assert "sys.databases" in allowed and "INFORMATION_SCHEMA" in catalogue
    assert isolated == ["COMMIT", "SET TRANSACTION ISOLATION LEVEL SNAPSHOT"]
    text = sqlglot.parse_one(server.statements[-1], read="tsql").sql(dialect="tsql", pretty=True) + ";\n"
    path = GOLDEN / f"{name}.sql"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(ASK))
def test_what_people_wrote_stands_only_inside_quotes(name: str) -> None:
    server = Recorder()
    ASK[name](MssqlEngine(lambda: server, ("dbo", "it's [t]"), DOMAIN))
    bare = re.sub(r"N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]", "", server.statements[-1])
    assert not re.search(r"drop|sex|maybe|trailing|read|--|;|['\"\[\]]", bare, re.IGNORECASE)


def test_t_sql_has_no_truth_values_arrays_or_new_functions() -> None:
    for ask in ASK.values():
        server = Recorder()
        ask(MssqlEngine(lambda server=server: server, ("t",), DOMAIN))
        tree = sqlglot.parse_one(server.statements[-1], read="tsql")
        assert not list(tree.find_all(exp.Boolean, exp.Array, exp.Least, exp.Greatest, exp.RegexpLike))
        words = set(re.findall(r"\b[A-Z_]+(?=\()", server.statements[-1]))
        known = set("CAST TRY_CAST COUNT_BIG SUM FLOOR COALESCE REPLACE NCHAR LTRIM RTRIM UPPER CHARINDEX LEFT".split())
        known |= set("SUBSTRING LEN DATALENGTH NULLIF IN AND OR NOT AS FROM WHEN JSON_VALUE NVARCHAR NUMERIC".split())
        assert words <= known


@pytest.mark.parametrize(
    ("types", "words"),
    [
        (["nvarchar", "float", "bit", "xml", "varchar"], "column 'read' has type xml"),
        (["nvarchar", "float", "bit", "varchar"], "the table has no column 'y'"),
    ],
)
def test_columns_that_cannot_be_read_are_one_sentence(types: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        MssqlEngine(lambda: Recorder(types), ("t",), DOMAIN)


def test_settings_of_the_driver_are_those_that_cannot_take_a_promise_back() -> None:
    source = MssqlSource.parse("mssql://h/d?table=t&Encrypt=strict&TrustServerCertificate=yes")
    assert source.settings == (("Encrypt", "strict"), ("TrustServerCertificate", "yes"))
    for words in ("ApplicationIntent=ReadWrite", "Encrypt=no;APP=x", "encrypt=yes"):
        with pytest.raises(
            DataError, match=r"takes Encrypt=yes\|no\|strict, TrustServerCertificate=yes\|no, and nothing"
        ):
            MssqlSource.parse(f"mssql://h/d?table=t&{words}")


@pytest.mark.parametrize(
    "text", ["mssql://h/d", "mssql:///d?table=t", "mssql://u:secret@h?table=t", "mssql://h:x/d?table=t"]
)
def test_an_address_that_is_incomplete_is_one_sentence(text: str) -> None:
    with pytest.raises(DataError, match="address of the SQL Server table is incomplete") as raised:
        MssqlSource.parse(text)
    assert "secret" not in str(raised.value)


def test_the_password_stays_out_of_sight() -> None:
    source = MssqlSource.parse("mssql://sa:p%40ss@host/patients?table=dbo.t")
    assert source.password == "p@ss" and source.table == ("dbo", "t")
    assert not any("p@ss" in text for text in (repr(source), source.address, source.title, source.label))
    with pytest.raises(DataError, match="name one, as ledger="):
        assert source.ledger


def test_a_server_that_is_gone_is_one_sentence() -> None:
    def gone() -> Any:
        raise OSError("login failed for 'sa' with password 'secret'")

    with pytest.raises(DataError) as raised:
        MssqlEngine(gone, ("t",), DOMAIN)
    assert "cannot reach SQL Server" in str(raised.value) and "secret" not in str(raised.value)
    assert raised.value.__context__ is None or "secret" not in str(raised.value.__context__)


def test_rows_that_may_move_while_they_are_counted_are_refused() -> None:
    with pytest.raises(DataError, match="does not keep rows as they were") as raised:
        MssqlEngine(lambda: Recorder(isolated=0), ("t",), DOMAIN)
    assert str(raised.value).endswith("with ALTER DATABASE [the ]] clinic] SET ALLOW_SNAPSHOT_ISOLATION ON.")


def test_a_lost_connection_is_another_version_of_the_rows_and_a_server_that_is_gone_is_told_before_anyone_pays() -> (
    None
):
    servers = [Recorder(), Recorder()]
    engine = MssqlEngine(lambda: servers.pop(0), ("t",), DOMAIN)
    before = engine.version
    assert engine.version == before
    engine._link._connection.cursor = None  # it breaks
    with pytest.raises(ConnectionError):
        engine.exact_counts(CountQuery(Rows(), ((),)))
    assert engine.version == before + 1
    engine._link._connection = None
    with pytest.raises(DataError, match="cannot reach SQL Server"):
        assert engine.version


def test_parts_in_other_cells_share_nothing_that_was_paid_before_rows_may_have_changed(
    connects: Callable[..., None],
) -> None:
    """Otherwise a person who moved meanwhile would be asked about twice, and paid for once."""
    domains = [Domain((Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=bins),)) for bins in (2, 4)]
    server, later = (StandIn(("age",), ["DOUBLE"], [[age]] * 30) for age in (10.0, 40.0))
    connects(server, later)
    with privet.open(ADDRESS, domains[0], budget=1000, ledger=":memory:") as table:
        first, second, *_ = table.with_cells(domains[1]).partition("age")
        assert first.count(100) == 30 and table.budget.spent == 100
        server.cursor = None  # type: ignore[assignment, method-assign]  # it breaks
        with pytest.raises(EngineFailed):
            first.count(100)
        assert second.count(100) == 30 and table.budget.spent == 300
        assert table.count(100) == 30


# -- numbers and whole quotients; `test_contract.py` runs the statements, in translation -----------


VALUES: list[list[Any]] = [
    [*HOSTILE, "M]", "trailing", "", None],
    [0, 0.5, 2.75, 3, 9, 12, -1e300, 1e300, None],
    [0, 1],
    ["1", " 2 ", "\t-3", "+.5e1", "1e400", "-1e400", "1e-400", "x", "", "1.2.3", "4\n", None],
    ["no", "yes", "maybe", "Yes", "yes "],
]
_rng = np.random.default_rng(1)
ROWS = [[values[_rng.integers(len(values))] for values in VALUES] for _ in range(400)]
STORED = ["VARCHAR", "DOUBLE", "BOOLEAN", "VARCHAR", "VARCHAR"]
FRAME = pd.DataFrame([[*row[:2], bool(row[2]), *row[3:]] for row in ROWS], columns=list(DOMAIN.names), dtype=object)


READ = in_duckdb(f"SELECT {DIALECT.sql(DIALECT.read_number(sql.col('t')))} FROM texts")
ODD = st.text(alphabet=" \t+-.0123456789eEx", max_size=9)


@settings(deadline=None, max_examples=300)
@given(ODD)
@example("1e400")
@example("-1e400")
@example("1e-400")
@example("9" * 400)
@example("1e")
@example("e5")
@example(".")
@example("+.5e+1 ")
@example("1.2.3")
@example("--1")
def test_numbers_are_read_as_everywhere(words: str) -> None:
    ((found,),) = duckdb.execute(f"WITH texts AS (SELECT ?::VARCHAR AS t) {READ}", [words]).fetchall()
    expected = number_of(words)
    if expected is None or found is None:
        assert found is expected
    else:
        bounds = (-1.7e308, 1.7e308)
        assert np.clip(found, *bounds) == pytest.approx(np.clip(expected, *bounds), rel=1e-12, abs=1e-300)


def test_the_square_of_a_coin_divides_whole_numbers() -> None:
    tree = sql.quotient(_squared(sql.col("h"), 5, 7), sql.num(3))
    assert "FLOAT" not in DIALECT.sql(tree)


@pytest.mark.parametrize("values", [[2**62, 2**62 - 1], [2**62, 2**62], [2**63 - 1] * 3])
def test_a_sum_stops_at_the_largest_whole_number(values: list[int]) -> None:
    """SQL Server would end the statement: a few billion rows of a fine grid are enough."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))
    statement = in_duckdb(DIALECT.sql(sql.sums(SumQuery(Rows(), "x"), exp.From(this=exp.to_table("huge")), domain)))
    huge = ", ".join(f"({value}, 0)" for value in values)
    found = duckdb.execute(f'WITH huge(g0, "node") AS (VALUES {huge}) {statement}').fetchall()
    assert found == [(0, 0, len(values), 2**63 - 1)]


def test_counts_and_sums_are_never_of_the_type_of_their_rows() -> None:
    """COUNT and SUM of an int end a statement at 2^31."""
    for ask in ASK.values():
        server = Recorder()
        ask(MssqlEngine(lambda server=server: server, ("t",), DOMAIN))
        tree = sqlglot.parse_one(server.statements[-1], read="tsql")
        assert all(each.args.get("big_int") for each in tree.find_all(exp.Count))
        assert all(each.this.is_type("DECIMAL(38, 0)") for each in tree.find_all(exp.Sum))


def test_of_a_text_no_more_is_read_than_tells_that_it_is_no_declared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 2 GB a text cannot be made longer, nor wider: one row would end every statement."""
    monkeypatch.setattr(mssql, "_LONGEST", 9)
    rows = [["trailing ", 1, 0, "1", "no"], ["trailing -", 1, 0, "1", "no"], [HOSTILE[1], 1, 0, "1234567890", "no"]]
    domain = Domain((Nominal(DOMAIN.names[0], HOSTILE[1:], other=True), *DOMAIN.columns[1:]), target="y")
    engine = MssqlEngine(lambda: StandIn(DOMAIN.names, STORED, rows), ("dbo", "stays"), domain)
    assert engine.exact_counts(CountQuery(Rows(), ((DOMAIN.names[0],),)))[0].tolist() == [[1, 1, 1]]


# -- as a user opens it -----------------------------------------------------------------------------

ADDRESS = "mssql://ann:s3cret@db.example/clinic?table=dbo.stays"
CANARY = "Ann Canary, 31"


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Connections to SQL Server, one after the other; after the last the server is gone."""

    def to(*servers: Recorder) -> None:
        left = list(servers)
        monkeypatch.setattr(mssql, "connector", lambda *place: lambda: left.pop(0))

    return to


def said(error: BaseException) -> str:
    """All that an error shows."""
    assert error.__cause__ is None and error.__context__ is None
    return "".join(traceback.format_exception(error))


def test_a_question_is_charged_before_the_server_is_asked(connects: Callable[..., None], tmp_path: Path) -> None:
    ledger = tmp_path / "stays.ledger"
    seen: list[Any] = []
    server = Recorder(rows=[(0, 0, 30)], asked=lambda: seen.extend(Ledger.open(ledger).entries("stays")))
    connects(server)
    with privet.open(ADDRESS, DOMAIN, budget=1000, ledger=ledger) as table:
        assert table.budget.spent == 0 and not seen
        assert table.count(100).value == 30
        (entry,) = table.budget.entries
        assert [(each.id, each.question, each.loss, each.answer) for each in seen] == [(1, "count", 100, None)]
        assert entry.answer is not None
        assert (
            table.explain().startswith("mssql engine, push-down: ") and "one statement on the server" in table.explain()
        )
    assert server.closed
    assert b"s3cret" not in ledger.read_bytes()


@pytest.mark.parametrize("key", [None, "k"])
def test_what_the_server_says_about_a_row_is_never_shown_and_the_charge_stands(
    connects: Callable[..., None], key: str | None, tmp_path: Path
) -> None:
    def fails() -> None:
        raise RuntimeError(f"Conversion failed when converting the varchar value '{CANARY}' to data type int.")

    connects(Recorder(asked=fails), Recorder(rows=[(0, 0, 30)]))
    with privet.open(ADDRESS, DOMAIN, budget=1000, ledger=tmp_path / "l") as table:
        with pytest.raises(EngineFailed) as caught:
            table.count(100, key=key)
        assert CANARY not in said(caught.value)
        assert str(caught.value) == (
            "the mssql engine could not answer count on 'stays'. Ledger entry 1 (epsilon=100) stands: "
            + ("a new try is a new charge." if key is None else "retry with the key 'k' to finish under it.")
        )
        assert table.budget.spent == 100
        assert table.count(100, key=key).value == 30  # on a new connection
        assert table.budget.spent == (200 if key is None else 100)


def test_a_server_that_goes_away_between_two_questions_costs_nothing(
    connects: Callable[..., None], tmp_path: Path
) -> None:
    def goes() -> None:
        raise OSError(CANARY)

    connects(Recorder(asked=goes))
    with privet.open(ADDRESS, DOMAIN, budget=1, ledger=tmp_path / "l") as table:
        with pytest.raises(EngineFailed):
            table.count("0.1")
        with pytest.raises(
            DataError, match="cannot reach SQL Server; check host, database, user and password"
        ) as caught:
            table.count("0.1")
        assert CANARY not in said(caught.value)
        assert table.budget.spent == Fraction(1, 10) and len(table.budget.entries) == 1


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (
            [Recorder(types=[])],
            "there is no table 'dbo.stays' that this user may read; check the name, or GRANT SELECT.",
        ),
        (
            [Recorder(types=TYPES[:-1])],
            "the table has no column 'y', which the domain declares; check the domain file.",
        ),
        ([Recorder(isolated=0)], "SET ALLOW_SNAPSHOT_ISOLATION ON."),
        ([], "cannot reach SQL Server; check host, database, user and password, and that it runs."),
    ],
)
def test_a_table_that_cannot_be_opened_is_one_sentence_and_makes_no_ledger(
    connects: Callable[..., None], servers: list[Recorder], words: str, tmp_path: Path
) -> None:
    connects(*servers)
    with pytest.raises(DataError) as caught:
        privet.open(ADDRESS, DOMAIN, budget=1, ledger=tmp_path / "l")
    assert str(caught.value).endswith(words) and "s3cret" not in said(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, 'SQL Server needs pyodbc; install it with pip install "privet[mssql]".'),
        (
            SimpleNamespace(drivers=lambda: ["SQLite3"]),
            "this machine has no ODBC driver for SQL Server; install Microsoft's msodbcsql18.",
        ),
    ],
)
def test_a_missing_driver_is_told_to_the_user(
    driver: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyodbc", driver)
    DOMAIN.save(tmp_path / "stays.toml")
    with pytest.raises(DataError) as caught:
        privet.open(ADDRESS, DOMAIN, budget=1, ledger=tmp_path / "l")
    assert str(caught.value) == words
    ask = ("-d", "stays.toml", "-e", "1", "-b", "1", "--ledger", "l")
    for verb in (("query", ADDRESS, "count"), ("fit", ADDRESS, "-o", "m.json")):
        done = run(*verb, *ask, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"privet: {words}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["stays.toml"]


def test_the_driver_is_told_to_read_only_and_no_word_of_an_address_is_a_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    server = Recorder(rows=[(0, 0, 30)])

    def connect(text: str, **more: Any) -> Recorder:
        asked.append((text, more))
        return server

    drivers = ["SQLite3", "ODBC Driver 17 for SQL Server", "ODBC Driver 18 for SQL Server", "MySQL"]
    monkeypatch.setitem(sys.modules, "pyodbc", SimpleNamespace(drivers=lambda: drivers, connect=connect))
    address = "mssql://ann%7D%3BUID%3Dsa:p%7D%3BApplicationIntent%3DReadWrite@db.example:1444/clin%3Bic?table=stays"
    with privet.open(address, DOMAIN, budget=1000, ledger=":memory:") as table:
        assert table.count(100).value == 30
    assert asked == [
        (
            "DRIVER={ODBC Driver 18 for SQL Server};SERVER=db.example,1444;DATABASE={clin;ic};UID={ann}};UID=sa};"
            "PWD={p}};ApplicationIntent=ReadWrite};ApplicationIntent=ReadOnly;APP=privet",
            {"readonly": True},
        )
    ]
    assert server.timeout == 0  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="address of the SQL Server table is incomplete"):
        privet.open("mssql://db;ApplicationIntent=ReadWrite/clinic?table=t", DOMAIN, budget=1, ledger=":memory:")


def test_a_tree_is_that_of_memory(connects: Callable[..., None]) -> None:
    trees = []
    for data in (FRAME, ADDRESS):
        connects(StandIn(DOMAIN.names, STORED, ROWS))
        with privet.testing.open(data, DOMAIN, budget=10, seed=7) as table:
            trees.append(privet.DiffPID3Classifier("9", max_depth=2, random_state=0).fit(table).model_.to_json())
    assert trees[0] == trees[1]


def test_a_limit_merges_the_rows_into_memory(connects: Callable[..., None]) -> None:
    server = StandIn(DOMAIN.names, STORED, ROWS)
    connects(server, server)
    with (
        privet.open(ADDRESS, DOMAIN, budget=1000, ledger=":memory:") as remote,
        privet.open(ADDRESS, DOMAIN, budget=1000, ledger=":memory:", snapshot_limit="1MB") as merged,
    ):
        assert "mssql engine, push-down" in remote.explain() and "up to 1 MB are copied" in merged.explain()
        before = len(server.statements)
        found = merged.partition("select").partition("order").count(100).array().tolist()
        assert len(server.statements) == before and server.closed
        assert found == remote.partition("select").partition("order").count(100).array().tolist()


# -- a real server ------------------------------------------------------------------------------

FEW = {Kind.TEXT: ("no", "yes"), Kind.BOOLEAN: (True, False), Kind.INTEGER: (0, 1), Kind.FLOAT: (0, 1)}


def ask_a_table(address: str) -> None:
    """Whatever is in a table, a domain with cells for anything covers it: counts are those of its own COUNT(*)."""
    source = MssqlSource.parse(address)
    connection = mssql.connector(source)()
    listed = "SELECT COLUMN_NAME, DATA_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = ?"
    kinds = {str(name): mssql._KINDS.get(stored) for name, stored in connection.execute(listed, source.name).fetchall()}
    columns: list[Any] = []
    for name, kind in kinds.items():
        if kind in (Kind.INTEGER, Kind.FLOAT) and columns:
            columns.append(Numeric(name, Fraction(0), Fraction(100), Fraction(1), bins=4, missing=True))
        elif kind is not None:
            columns.append(Nominal(name, FEW[kind], other=True, missing=True))
    table = exp.table_(source.name, db=source.table[0] if source.table[1:] else None, quoted=True)
    ((rows,),) = connection.execute(f"SELECT COUNT_BIG(*) FROM {table.sql(dialect='tsql')}").fetchall()
    connection.close()
    with privet.open(address, Domain(tuple(columns)), budget=1000, ledger=":memory:") as opened:
        assert opened.count(100).value == rows
        for column in columns[:5]:
            assert sum(opened.partition(column.name).count(100).array().tolist()) == rows
    of = next(column for column in reversed(columns) if isinstance(column, Nominal))
    classes = replace(of, other=False, missing=False)  # of a target every class has a name
    domain = Domain((*(column for column in columns if column is not of), classes), target=of.name)
    with privet.open(address, domain, budget=1000, ledger=":memory:") as opened:
        parts = opened.partition(domain.names[0])
        assert len(parts.select("max", 1)) == len(parts)
        assert opened.select("gini", 1).value in domain.names
        assert opened.select("gini", 1, thresholds=True) is not None
        assert opened.count(100).value <= rows
        assert len(opened.budget.entries) == 4 and all(entry.answer is not None for entry in opened.budget.entries)


def test_what_is_asked_of_a_real_server_is_asked_of_one_that_stands_in(connects: Callable[..., None]) -> None:
    server = StandIn(DOMAIN.names, STORED, ROWS)
    connects(server, server, server)
    ask_a_table(ADDRESS)


@pytest.mark.skipif(not os.environ.get("PRIVET_MSSQL"), reason="PRIVET_MSSQL names no SQL Server (mssql://…?table=t)")
def test_a_real_server_answers() -> None:
    ask_a_table(os.environ["PRIVET_MSSQL"])
