"""Attacks on a privacy layer that can touch the kernel: each test says what its attack would have leaked."""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import tokenize
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    KeyReused,
    NotPrivate,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel import Ledger, Release, Session
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, GridQuery, ResidualQuery, SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Rows
from privet.lab import GainRatio, open_public, paper_noise

EXACT = 10_000  # at this epsilon no noise is to be seen
LARGE = 1_000_000
SOURCES = ("frame", "csv", "parquet", "duckdb", "snapshot")
each_source = pytest.mark.parametrize("kind", SOURCES)

DOMAIN = Domain(
    (
        Nominal("job", ("clerk", "nurse"), other=True),
        Numeric("wage", Fraction(0), Fraction(1000), Fraction(1, 4), bins=4, missing=True),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    max_rows=1000,
)
MODEL = privet.AdditiveModel((0, 100), ((("job",), np.array([[5, 0], [0, 7], [1, 1]], np.int32)),))

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda table: table.count(1),
    "where": lambda table: table.where(job="clerk", wage=(10, 20)).count(1),
    "sum": lambda table: table.sum("wage", 1),
    "mean": lambda table: table.mean("wage", 1),
    "median": lambda table: table.median("wage", 1),
    "quantile": lambda table: table.quantile("wage", 0.9, 1),
    "histogram": lambda table: table.histogram("job", "wage", epsilon=1),
    "select": lambda table: table.select("infogain", 1),
    "thresholds": lambda table: table.select("gini", 1, thresholds=True),
    "select residuals": lambda table: table.select_residuals(MODEL, [("job",), ("job", "wage")], (9, 9), 1),
    "residual sums": lambda table: table.residual_sums(MODEL, ("job", "wage"), (9, 9), 1),
    "parts": lambda table: table.partition("job").partition("wage").count(1),
    "level": lambda table: table.partition("wage").select("max", 1),
    "pairs": lambda table: table.select("gini", 1, attributes=["job", ("wage", 99.5)], mechanism="noisy-max"),
    "exponential": lambda table: table.select("max", 1, mechanism="exponential", monotone=False),
    "majority": lambda table: table.partition("job").majority("wage", 1),
    "histograms": lambda table: table.parts().histograms([[("job",), ("wage", "ill")]], 1),
    "coins": lambda table: table.scatter(3, 7).select("max", 1, attributes=["job", ("wage", 500)]),
    "taken": lambda table: table.partition("job").take([2, 0]).count(1),
}


def module(name: str) -> Any:
    """An optional library: a skip that names it here, a failure where everything must be there."""
    if os.environ.get("CI"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def people(size: int = 40) -> pd.DataFrame:
    rng = random.Random(size)
    rows = [
        (rng.choice(["clerk", "nurse", "poet"]), rng.randrange(4000) / 4, rng.choice(["no", "yes"]))
        for _ in range(size)
    ]
    return pd.DataFrame(rows, columns=["job", "wage", "ill"]).astype({"wage": object})


def store(frame: pd.DataFrame, kind: str, folder: Path, types: dict[str, str] | None = None) -> Any:
    """A frame where an owner would keep it; columns are texts unless a type is given."""
    if kind == "frame":
        return frame
    if kind in ("csv", "snapshot"):
        frame.to_csv(folder / "people.csv", index=False)
        return folder / "people.csv"
    types = {name: (types or {}).get(name, "VARCHAR") for name in frame.columns}
    with duckdb.connect(str(folder / "people.db")) as connection:
        columns = ", ".join(f'"{name}" {each}' for name, each in types.items())
        connection.execute(f"CREATE OR REPLACE TABLE people ({columns})")
        rows = [
            [
                None if each == "VARCHAR" and pd.isna(value) else value
                for value, each in zip(row, types.values(), strict=True)
            ]
            for row in frame.itertuples(index=False)
        ]
        if rows:
            connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(types))})", rows)
        if kind == "parquet":
            connection.execute(f"COPY people TO '{folder}/people.parquet' (FORMAT parquet)")
            return folder / "people.parquet"
    return f"duckdb:///{folder}/people.db?table=people"


def opened(
    frame: pd.DataFrame, kind: str, folder: Path, types: dict[str, str] | None = None, **settings: Any
) -> privet.ProtectedTable:
    folder.mkdir(exist_ok=True)
    source = store(frame, kind, folder, types)
    return (privet.testing.open if "seed" in settings else privet.open)(
        source,
        **{"domain": DOMAIN, "budget": LARGE, "access": "snapshot" if kind == "snapshot" else "push-down", **settings},
    )


def neighbours(row: list[Any] | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table, and the same one with one more row."""
    one = people()
    return one, pd.concat([one, pd.DataFrame([row or ["poet", None, "yes"]], columns=one.columns)], ignore_index=True)


# --- 1, 2: noise that does not hide ----------------------------------------------------------------------------------


@each_source
def test_low_order_bits(kind: str, tmp_path: Path) -> None:
    """Float noise lands on different grids for neighbouring tables (Mironov): one odd bit would tell a row is there."""
    table = opened(people(), kind, tmp_path)
    for _ in range(20):
        assert type(int(table.count(0.3))) is int
        assert (float(table.sum("wage", 0.3)) * 4).is_integer()
        mean = table.mean("wage", 0.3)
        assert (float(mean.deviation) * 8).is_integer() and isinstance(mean.count, int)
        assert (float(table.median("wage", 0.3)) * 4).is_integer()
    assert np.asarray(table.histogram("job", epsilon=0.3)).dtype == np.int64
    assert table.residual_sums(MODEL, ("job",), (9, 9), 0.3).own.dtype == np.int64
    stored = "".join(str(entry.answer) for entry in table.budget.entries)
    assert "." not in stored and "e" not in stored.replace("answer", "").replace("private", "").replace("true", "")
    table.close()


def test_large_values_swallowing_noise() -> None:
    """Where the true value is large, small float noise rounds away (Haney) and the exact answer shows."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(2**53), Fraction(2**30)),))
    frame = pd.DataFrame({"x": [2.0**53] * 500})
    table = privet.open(frame, domain, budget=LARGE)
    answers = {float(table.sum("x", 1)) for _ in range(30)}
    assert len(answers) == 30
    assert all((answer / 2**30).is_integer() for answer in answers)


def test_noise_at_the_ends_of_64_bits_is_still_noise() -> None:
    """A sum that overflows, or noise that does, would be an error only large tables can cause."""
    domain = Domain((Numeric("x", Fraction(-(2**31)), Fraction(2**31 - 256), Fraction(256)),))
    grids = {"x": np.array([2**31 - 1, 0], dtype=np.int64)}
    engine = MemoryEngine(domain, {"x": np.array([9, 0])}, grids, weights=np.array([2**31, 1], dtype=np.int64))
    count, total = engine.exact_sums(SumQuery(Rows(), "x"))
    assert (int(count[0]), int(total[0])) == (2**31 + 1, 2**31 * (2**31 - 1))
    table = privet.open(pd.DataFrame({"x": [2**31 - 1]}), domain, budget=LARGE)
    table._session.engine.exact_sums = lambda query: (np.array([2**40]), np.array([2**62]))
    for epsilon in ("1e-9", 1, LARGE // 4):
        assert math.isfinite(table.sum("x", epsilon))
        assert math.isfinite(table.mean("x", epsilon))


@each_source
@pytest.mark.parametrize("epsilon", ["1e-9", 1e5])
def test_extreme_epsilons_are_answered(kind: str, tmp_path: Path, epsilon: Any) -> None:
    """Noise that overflows would fail more often on one of two neighbouring tables."""
    table = opened(people(), kind, tmp_path)
    table.count(epsilon)
    table.sum("wage", epsilon)
    table.mean("wage", epsilon)
    table.median("wage", epsilon)
    table.select("gini", epsilon)
    table.select("infogain", epsilon, thresholds=True)
    table.residual_sums(MODEL, ("job",), (1024, 1), epsilon)
    table.close()


# --- 3: sums ---------------------------------------------------------------------------------------------------------


@each_source
def test_float_sums(kind: str, tmp_path: Path) -> None:
    """2^53 plus a thousand ones is 2^53 in floats, or not, by the order of rows: a sum must be exact and orderless."""
    low, high = -(2**23), 2**23 - 1
    domain = Domain((Numeric("x", Fraction(low), Fraction(high), Fraction(1)),))
    values = [2.0**53, -(2.0**53), 1e300, -1e300, *[1.0] * 1000]
    truth = 2 * (high - low) + 0 + 1000 * (1 - low)  # in steps above the lower bound, clamped to the bounds
    for seed in range(3):
        random.Random(seed).shuffle(values)
        with opened(pd.DataFrame({"x": values}), kind, tmp_path / f"{seed}", {"x": "DOUBLE"}, domain=domain) as table:
            count, total = table._session.engine.exact_sums(SumQuery(Rows(), "x"))
            assert (count.tolist(), total.tolist()) == ([1004], [truth])


# --- 4: numbers that are none ----------------------------------------------------------------------------------------


@each_source
@pytest.mark.parametrize("poison", [math.nan, None, math.inf, -math.inf, 1e308, -0.0], ids=str)
def test_nan_inf_and_null_poisoning(kind: str, tmp_path: Path, poison: float | None) -> None:
    """One NaN makes a SUM NaN, or is clamped to the upper bound: either tells that its row is there."""
    _, frame = neighbours(["clerk", poison, "no"])
    # A CSV file holds texts, and 'inf' is no number there.
    absent = poison is None or math.isnan(poison) or (math.isinf(poison) and kind in ("csv", "snapshot"))
    wages = [float(wage) for wage in frame["wage"][:-1]] + ([] if absent else [min(max(poison or 0.0, 0.0), 1000.0)])
    with opened(frame, kind, tmp_path, {"wage": "DOUBLE"}) as table:
        assert table.sum("wage", 300_000) == sum(wages)
        assert table.mean("wage", 600_000) == pytest.approx(sum(wages) / len(wages), abs=1e-9)
        assert sorted(wages)[18] <= table.median("wage", EXACT) <= sorted(wages)[22]
        assert table.count(EXACT) == 41
        assert table.where(wage="<missing>").count(EXACT) == absent


# --- 5: errors that only some rows cause -----------------------------------------------------------------------------

NASTY: dict[str, list[Any]] = {
    "text where a number is": ["clerk", "CANARY", "yes"],
    "a number beyond all types": ["clerk", "9" * 5000, "yes"],
    "an exponent beyond all types": ["clerk", "1e99999999999999999999", "yes"],
    "nothing at all": [None, None, None],
    "empty texts": ["", "", ""],
    "a quote": ['"', '"', '"'],
    "line breaks": ["a\nb", "1\n2", "yes\n"],
    "carriage returns": ["a\r\nb", "\r", "\r"],
    "separators": ["a,b", "1,5", ",,,"],
    "a zero byte": ["a\0b", "1\0", "yes"],
    "a very long text": ["x" * 300_000, "1" * 300_000, "yes"],
    "unprintable characters": ["\x01\x1a\x1b\x7f\u202e\ufeff", "\u00a05", "yes"],
    "sql": ["'); DROP TABLE coded; --", "(SELECT 1)", "yes' OR '1'='1"],
    "arabic digits": ["clerk", "\u0661\u0662", "yes"],
    "hexadecimal": ["clerk", "0x10", "yes"],
}


@each_source
@pytest.mark.parametrize("nasty", NASTY)
def test_data_dependent_errors(kind: str, tmp_path: Path, nasty: str) -> None:
    """A row that makes a cast, an overflow or the reader fail turns every answer into one about that row."""
    _, frame = neighbours(NASTY[nasty])
    with opened(frame, kind, tmp_path) as table:
        assert table.count(EXACT) in (40, 41)
        table.sum("wage", 1)
        table.partition("job").median("wage", 1)


@each_source
def test_every_question_is_answered_whatever_the_rows_are(kind: str, tmp_path: Path) -> None:
    """The same for all questions: each is one statement, and every expression in it must be total."""
    frame = pd.concat([people(), pd.DataFrame(NASTY.values(), columns=people().columns)], ignore_index=True)
    with opened(frame, kind, tmp_path) as table:
        for ask in QUESTIONS.values():
            ask(table)
        assert len(table.budget.entries) == len(QUESTIONS)


@each_source
@pytest.mark.parametrize(
    ("sql_type", "value"),
    [("HUGEINT", 10**38), ("HUGEINT", -(10**38)), ("DOUBLE", 1.7e308), ("DECIMAL(38,0)", 10**37), ("BOOLEAN", True)],
)
def test_data_dependent_errors_of_wide_types(kind: str, tmp_path: Path, sql_type: str, value: Any) -> None:
    """An overflow in the largest types of an engine would be an error that depends on one row."""
    frame = people().assign(wage=[1] * 39 + [value])
    with opened(frame, kind, tmp_path, {"wage": sql_type}) as table:
        assert table.count(EXACT) == 40
        table.sum("wage", 1)
        table.partition("job").median("wage", 1)


STRANGE = [b"\xff\xfe\x80,1,no", b"clerk", b"clerk,1,no,4,5,6", b"\x00" * 50, b'clerk"s,1,no', b'"two\nlines",1,no']


@pytest.mark.parametrize("line", STRANGE, ids=repr)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_data_dependent_errors_of_the_csv_reader(tmp_path: Path, line: bytes, first: bool) -> None:
    """A line that is no record must be left out like any row that does not fit: an error would tell it is there."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(1 if first else len(body), line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) in (40, 41)


@pytest.mark.parametrize("line", [b'clerk,"1,no', b'"', b'"clerk'])
@pytest.mark.parametrize("at", [1, 20, 40])
def test_an_open_quote_is_refused_before_anyone_pays(tmp_path: Path, line: bytes, at: int) -> None:
    """Everything after an open quote is one field: a single line would make all rows behind it vanish."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(at, line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    with pytest.raises(DataError, match="ends inside quotes"):
        privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE)
    assert not (tmp_path / "people.csv.ledger").exists()


QUOTED = [b' "', b'clerk, "1,no', b'clerk,"1"x"2,no', b'"clerk" "x,1,no', b'"cl"erk,1,no', b'"clerk"",1,no"']


@pytest.mark.parametrize("line", QUOTED, ids=repr)
def test_a_line_with_quotes_is_refused_at_once_or_harms_no_other(tmp_path: Path, line: bytes) -> None:
    """A quote after a space, or after a field that was closed, opens one too: all rows behind it would vanish."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(20, line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    try:
        table = privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE)
    except DataError as refused:
        assert "\n" not in str(refused)
        return
    assert table.count(EXACT) in (40, 41)
    table.close()


# --- 6: words that become code ---------------------------------------------------------------------------------------

WORDS = [
    "1); DROP TABLE coded; --",
    "(select count(*) from coded)",
    "' OR 1=1 --",
    'x" OR "1"="1',
    "\\'; ATTACH 'x'",
    "?",
]


@each_source
@pytest.mark.parametrize("word", WORDS)
def test_subqueries_and_sql_text(kind: str, tmp_path: Path, word: str) -> None:
    """SQL in a value, a name or a key would ask the engine something that no noise is added to."""
    with opened(people(), kind, tmp_path) as table:
        for value in (word, [word], {word}, (word, "clerk")):
            with pytest.raises(QuestionError):
                table.where(job=value)
        for value in (word, (word, None), (None, word), [word]):
            with pytest.raises(QuestionError):
                table.where(wage=value)
        for ask in (
            lambda: table.where({word: 1}),
            lambda: table.partition(word),
            lambda: table.partition((word, 5)),
            lambda: table.histogram(word, epsilon=1),
            lambda: table.sum(word, 1),
            lambda: table.select("max", 1, attributes=[word]),
            lambda: table.select_residuals(MODEL, [(word,)], (9, 9), 1),
        ):
            with pytest.raises(UndeclaredDomain):
                ask()
        with pytest.raises(QuestionError):
            table.select(word, 1)
        for bad in (word, lambda row: True):
            with pytest.raises((TypeError, QuestionError)):
                table.where(bad)
        assert table.budget.entries == []
        assert table.count(EXACT, key=word) == 40
        assert table.count(EXACT, key=word) == 40
        assert [entry.key for entry in table.budget.entries] == [word]


@pytest.mark.parametrize("word", ["x'); DROP TABLE entries; --", 'x"; DELETE FROM caps; --', "é\U0001f333"])
def test_sql_text_in_the_ledger(tmp_path: Path, word: str) -> None:
    """SQL in the name of an analyst or a data set would rewrite the ledger and win back the budget."""
    source = store(people(), "csv", tmp_path)
    with privet.open(source, DOMAIN, budget=1, analyst=word, name=word) as table:
        table.count(0.75)
    with privet.open(source, DOMAIN, analyst=word, name=word) as table:
        assert table.budget.remaining == Fraction(1, 4)
        assert [entry.analyst for entry in table.budget.entries] == [word]


def test_a_domain_full_of_sql_is_only_data(tmp_path: Path) -> None:
    """Names and values are the owner's, but a domain file may come from anyone who drafted it."""
    names = ['a"; DROP TABLE coded; --', "b'); SELECT 1; --", "select", "order by 1"]
    domain = Domain(tuple(Nominal(name, ("'); DROP TABLE coded; --", '"', "x")) for name in names))
    frame = pd.DataFrame({name: ["x", '"', "'); DROP TABLE coded; --", "y"] for name in names})
    for kind in ("csv", "frame"):
        with opened(frame, kind, tmp_path, domain=domain) as table:
            assert np.asarray(table.histogram(*names[:2], epsilon=EXACT)).trace() == 3


# --- 7: the budget as a channel --------------------------------------------------------------------------------------


def _written(table: privet.ProtectedTable) -> list[tuple[Any, ...]]:
    return [(e.id, e.analyst, e.scope, e.question, e.epsilon, e.loss, e.key) for e in table.budget.entries]


@each_source
def test_budget_as_a_channel(kind: str, tmp_path: Path) -> None:
    """A cost that depends on the rows is a release of its own, and a free one (Haeberlen)."""
    ledgers = []
    for number, frame in enumerate([*neighbours(), people().iloc[:0]]):
        with opened(frame, kind, tmp_path / f"{number}", name="same") as table:
            for ask in QUESTIONS.values():
                ask(table)
            ledgers.append((_written(table), table.budget.spent, table.budget.remaining))
    assert ledgers[0] == ledgers[1] == ledgers[2]


@each_source
def test_refusals_reveal_nothing(kind: str, tmp_path: Path) -> None:
    """A refusal whose words depend on the rows is an answer without noise."""
    words = []
    for number, frame in enumerate(neighbours()):
        said = []
        with opened(frame, kind, tmp_path / f"{number}", name="same", budget=1) as table:
            table.count(0.5)
            for ask in (
                lambda table=table: table.count(0.75),
                lambda table=table: table.where(job="clerk").count(0.75),
                lambda table=table: table.partition("job").histogram("wage", epsilon=0.75),
                lambda table=table: table.allot(0.25).select("max", 0.5),
                lambda table=table: table.where(job="poet"),
                lambda table=table: table.sum("name", 1),
            ):
                with pytest.raises(PrivetError) as caught:
                    ask()
                said.append((type(caught.value), str(caught.value), vars(caught.value)))
            said.append(_written(table))
        words.append(said)
    assert words[0] == words[1]


@each_source
def test_exceptions_still_charge(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that fails for free can be asked until it fails no more: failing would be a free bit."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        for method in ("exact_counts", "exact_grid", "exact_sums", "exact_residuals"):
            monkeypatch.setattr(engine, method, _raiser("row"))
        for number, ask in enumerate(QUESTIONS.values(), start=1):
            with pytest.raises(EngineFailed):
                ask(table)
            assert table.budget.spent == number


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_the_work_an_engine_does_is_the_same_for_neighbours(kind: str, tmp_path: Path) -> None:
    """A statement, a retry or an error path that only one row causes could be timed."""
    seen = []
    for number, frame in enumerate(neighbours(["CANARY", "CANARY", "yes"])):
        with opened(frame, kind, tmp_path / f"{number}", seed=1) as table:
            engine = table._session.engine
            statements: list[str] = []
            run = engine._run
            engine._run = lambda tree, run=run, statements=statements: (statements.append(tree.sql()), run(tree))[1]
            for ask in list(QUESTIONS.values()):
                ask(table)
            seen.append([each.replace(str(tmp_path / f"{number}"), "") for each in statements])
    assert seen[0] == seen[1]


# --- 9: partition games ----------------------------------------------------------------------------------------------


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(people(), DOMAIN, budget=100)


def test_overlapping_conditions_add(table: privet.ProtectedTable) -> None:
    """Conditions that overlap count a record twice: charged as a maximum they would halve its price."""
    table.where(wage=(0, 500)).count(1)
    table.where(wage=(400, None)).count(1)
    assert table.budget.spent == 2
    part = table.partition("job")["clerk"]
    part.where(wage=(0, 500)).count(1)
    part.where(wage=(400, None)).count(1)
    assert table.budget.spent == 4


def test_a_parent_used_after_its_parts_adds(table: privet.ProtectedTable) -> None:
    """Parts and their parent hold the same record: together they lose the sum."""
    parts = table.partition("job")
    parts.count(1)
    table.count(1)
    parts.count(1)
    parts[0].partition("wage").count(1)
    parts[0].count(1)
    assert table.budget.spent == 5


def test_the_same_partition_twice_adds(table: privet.ProtectedTable) -> None:
    """Two partitions by one column are two looks at every record."""
    for _ in range(3):
        table.partition("job").count(1)
    assert table.budget.spent == 3
    again = table.partition("job")
    again["clerk"].count(1)
    again["nurse"].count(1)
    again[0].count(1)
    assert table.budget.spent == 5


def test_siblings_taken_from_different_partitions_add(table: privet.ProtectedTable) -> None:
    """The clerks of one partition and the nurses of another may share records if charged as siblings."""
    by_job, by_wage = table.partition("job"), table.partition("wage")
    by_job[0].count(1)
    by_wage[0].count(1)
    assert table.budget.spent == 2


def test_a_tree_costs_its_dearest_path(table: privet.ProtectedTable) -> None:
    """Charging less than the dearest path would give the records on it away; charging more wastes the budget."""
    level = table.partition("job")
    level.select("max", [1, 2, 3])
    below = level.partition(["wage", None, ("wage", 500)])
    below.count([5] * 5 + [1] * 3)
    assert table.budget.spent == 6  # 1 + 5 and 3 + 1
    assert level.remaining == [94, 98, 96]


@each_source
def test_null_keys_lie_in_no_second_part(kind: str, tmp_path: Path) -> None:
    """A row without a key that lay in several parts, or in one of its own, would be charged once and seen often."""
    frame = people()
    frame.loc[:9, "wage"] = None
    frame.loc[5:14, "job"] = None
    with opened(frame, kind, tmp_path, {"wage": "DOUBLE"}) as table:
        total = table.count(EXACT)
        for parts in (
            table.partition("wage"),
            table.partition(("wage", 300)),
            table.partition("job"),
            table.partition("job").partition("wage"),
            table.partition("wage", edges=[100, 900]).partition("job"),
        ):
            assert sum(parts.count(EXACT)) == total
        assert total == 30  # job has no cell for missing values


@each_source
def test_keys_are_never_read_from_data(kind: str, tmp_path: Path) -> None:
    """Parts named after values that occur would show which values occur."""
    labels = []
    for number, frame in enumerate([people(), people().iloc[:0], people().assign(job="CANARY")]):
        with opened(frame, kind, tmp_path / f"{number}") as table:
            parts = table.partition("job").partition("wage")
            labels.append((table.partition("job").labels, parts.labels, parts.paths, len(parts.count(1))))
    assert labels[0] == labels[1] == labels[2]
    assert labels[0][0] == ["clerk", "nurse", "<other>"]


@each_source
def test_whoever_knows_the_seed_of_the_coins_sees_one_part_change(kind: str, tmp_path: Path) -> None:
    """Coins that depend on other rows, or on their order, would move rows between parts: all parts would tell."""
    row = ["nurse", 250.25, "yes"]
    before, after = neighbours(row)
    first = pd.concat([after.iloc[-1:], before], ignore_index=True)  # the row may come at any place
    for seed in range(4):
        exact, noisy = [], []
        for number, frame in enumerate((before, after, first)):
            with opened(frame, kind, tmp_path / f"{seed} {number}", {"wage": "DOUBLE"}, seed=1) as table:
                parts = table.scatter(5, random_state=seed)
                engine, rows = table._session.engine, parts._sets.rows
                (grid,) = engine.exact_grid(GridQuery(rows, ("wage",), "ill"))
                cells = {
                    (p, i): n for p, i, n in zip(grid.part, grid.index, map(tuple, grid.exact_counts), strict=True)
                }
                exact.append((engine.exact_counts(CountQuery(rows, (DOMAIN.names,)))[0], cells))
                noisy.append(parts.count(1).array())
        assert np.array_equal(exact[1][0], exact[2][0]) and exact[1][1] == exact[2][1]
        change = exact[1][0] - exact[0][0]
        assert change.sum() == np.abs(change).sum() == 1
        assert len(set(exact[1][1].items()) - set(exact[0][1].items())) == 1
        # what is asked of the other parts is the same, noise included
        assert np.count_nonzero(noisy[1] - noisy[0]) == 1


# --- 12, 13, 15: asking again, asking about nobody ------------------------------------------------------------------


def test_retry_until_good(table: privet.ProtectedTable) -> None:
    """Who may throw away answers for free gets the one they like: each try has its price."""
    small = table.allot(1)
    for _ in range(10):
        small.count(0.1)
    with pytest.raises(BudgetExceeded):
        small.count(0.1)
    assert table.budget.spent == 1


@each_source
def test_group_existence(kind: str, tmp_path: Path) -> None:
    """A cell that appears only where someone is in it tells that someone is."""
    frames = [people(), people()[people()["job"] != "clerk"], people().iloc[:0]]
    shapes = []
    for number, frame in enumerate(frames):
        with opened(frame, kind, tmp_path / f"{number}") as table:
            found = table.histogram("job", "wage", epsilon=0.01)
            shapes.append(
                (found.labels, np.asarray(found).shape, list(found.to_frame().iloc[:, :2].itertuples(index=False)))
            )
            assert (np.asarray(found) != 0).mean() > 0.5  # empty cells have noise like the others
    assert shapes[0] == shapes[1] == shapes[2]


@each_source
def test_cached_answers(kind: str, tmp_path: Path) -> None:
    """Fresh noise for free averages away; a stored answer for free does not, and is the same one."""
    with opened(people(), kind, tmp_path) as table:
        fresh = [int(table.count(0.001)) for _ in range(20)]
        assert len(set(fresh)) > 10
        assert table.budget.spent == Fraction(20, 1000)
        kept = [int(table.count(0.001, key="once")) for _ in range(20)]
        assert len(set(kept)) == 1
        assert table.budget.spent == Fraction(21, 1000)


def test_a_key_of_someone_else(tmp_path: Path) -> None:
    """A stored answer found by guessing another analyst's key would be a release nobody granted."""
    source = store(people(), "csv", tmp_path)
    with privet.open(source, DOMAIN, budget=1, analyst="ada") as ada, privet.open(source, DOMAIN, analyst="eve") as eve:
        ada.histogram("ill", epsilon=0.1, key="secret")
        eve.count(0.1, key="secret")  # her own key of that name: charged, and nothing says that there is another
        assert eve.budget.spent == Fraction(1, 10)
        assert ada.histogram("ill", epsilon=0.1, key="secret").about.entry == 1


# --- 14: randomness and forks ----------------------------------------------------------------------------------------

FORK = """
import json, os
from fractions import Fraction
import numpy as np, pandas as pd, privet
from privet import Domain, Nominal
from privet.kernel import ExponentialOverRanges, IntegerLaplace, PermuteAndFlip, Ranges

def in_child(work):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode()
"""


def run_script(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FORK + script, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


def test_forked_processes_do_not_share_noise() -> None:
    """Two processes that draw the same noise for two questions give away the difference of the answers."""
    lines = run_script(
        """
noise = IntegerLaplace(Fraction(1, 10**6))
choose = ExponentialOverRanges(Fraction(1, 1000), 1, True)
pick = PermuteAndFlip(Fraction(1, 10**6), 1, True)

def draw():
    return [
        noise.release(np.zeros(4, dtype=np.int64)).tolist(),
        [choose.release(Ranges(np.array([0]), [2**60])) for _ in range(4)],
        [pick.release(np.zeros(1000, dtype=np.int64)) for _ in range(8)],
    ]

draw()
for _ in range(3):
    print(in_child(draw))
print(json.dumps(draw()))
"""
    )
    drawn = [json.loads(line) for line in lines]
    for kind in range(3):
        assert len({tuple(each[kind]) for each in drawn}) == 4


@pytest.mark.parametrize("ledger", ["memory", "file"])
def test_forked_processes_do_not_share_a_budget(tmp_path: Path, ledger: str) -> None:
    """Each copy of a table that thinks the dearest part is already paid would spend it again."""
    lines = run_script(
        f"""
domain = Domain((Nominal("sex", ("f", "m")),))
ledger = None if {ledger!r} == "memory" else {str(tmp_path / "ledger")!r}
table = privet.open(pd.DataFrame({{"sex": ["f", "m"]}}), domain, budget=1, ledger=ledger)
parts = table.partition("sex")
parts[0].count(0.5)

def spend():
    said = []
    for ask in (lambda: parts[1].count(0.5), lambda: table.count(0.1)):
        try:
            said.append(int(ask()))
        except privet.PrivacyError as error:
            said.append(str(error))
    return said

for _ in range(2):
    print(in_child(spend))
print(table.budget.spent, len(table.budget.entries))
"""
    )
    for line in lines[:2]:
        first, second = json.loads(line)
        assert "another process" in first and "another process" in second
    assert lines[2] == "1/2 1"


def test_seeds_are_for_tests_and_leave_a_mark(table: privet.ProtectedTable) -> None:
    """Noise from a seed can be drawn again and taken off; an answer made with it may not pass for a private one."""
    np.random.seed(1)
    random.seed(1)
    one = [int(table.count(0.001)) for _ in range(5)]
    np.random.seed(1)
    random.seed(1)
    assert [int(table.count(0.001)) for _ in range(5)] != one
    with privet.testing.seeded_noise(1):
        seeded = privet.open(people(), DOMAIN, budget=100)
        assert table.count(1, key="k").private  # it was opened before
    marked = seeded.count(1, key="k")
    assert not marked.private and not seeded.count(1, key="k").private  # also when it comes from the ledger


# --- exact answers are for public rows -------------------------------------------------------------------------------

ENDLESS = [math.inf, np.float64("inf"), np.float32("inf"), Decimal("Infinity"), "inf", "Infinity", 1e999, math.nan]
ENDLESS += [[math.inf], (math.inf,), np.array([math.inf]), [math.nan], -math.inf, 10**400, Fraction(10**400), None]


ASK_WITH: list[Callable[[Any, Any], Any]] = [
    lambda parts, epsilon: parts.count(epsilon),
    lambda parts, epsilon: parts.histogram("job", epsilon=epsilon),
    lambda parts, epsilon: parts.histograms([[("job",), ("ill",)]], epsilon),
    lambda parts, epsilon: parts.majority("job", epsilon),
    lambda parts, epsilon: parts.sum("wage", epsilon),
    lambda parts, epsilon: parts.median("wage", epsilon),
    lambda parts, epsilon: parts.select("max", epsilon),
    lambda parts, epsilon: parts.select("max", epsilon, mechanism="noisy-max"),
    lambda parts, epsilon: parts.select("max", epsilon, thresholds=True),
]


@each_source
def test_no_epsilon_is_so_large_that_an_answer_is_exact(kind: str, tmp_path: Path) -> None:
    """Public rows are asked with epsilon=inf; the same words to a private table would be an answer without noise."""
    with opened(people(), kind, tmp_path) as table:
        for each in (table, table.where(job="clerk"), table.partition("job")["clerk"], table.scatter(2, 1)[0]):
            for epsilon in ENDLESS:
                for ask in ASK_WITH:
                    with pytest.raises(QuestionError):
                        ask(each.parts(), epsilon)
        assert table.budget.entries == [] and table.budget.spent == 0


@each_source
def test_what_papers_did_wrong_is_not_on_offer(kind: str, tmp_path: Path) -> None:
    """The gain ratio has no sensitivity, and a bootstrap counts a row as often as it is drawn: both cost more than
    any epsilon says.
    """
    with opened(people(), kind, tmp_path) as table:
        parts = table.partition("job")
        for each in (table, table.allot(1), table.where(job="clerk"), parts, parts[0], parts.take([1]), table.parts()):
            assert not hasattr(each, "bootstrap") and not hasattr(each, "resampled")
            for rule in ("gain-ratio", GainRatio()):
                for epsilon in (1, math.inf):
                    for more in ({}, {"thresholds": True}, {"attributes": [("wage", 10)]}, {"mechanism": "noisy-max"}):
                        with pytest.raises(NotPrivate):
                            each.select(rule, epsilon, **more)
            for own in (paper_noise.ExactChoice, paper_noise.ExactChoice(), paper_noise.ExactValues, "exact", "max"):
                with pytest.raises(QuestionError):
                    each.select("max", 1, mechanism=own)
        assert table.budget.entries == []
        assert type(table._session) is Session and table._session.private_rows
    with pytest.raises(TypeError):
        privet.open(people(), DOMAIN, budget=1, rounded_noise=True)  # type: ignore[call-arg]


def releases_of(answer: Any) -> Iterator[Release]:
    if isinstance(answer, Release):
        yield answer
    else:
        for each in answer:
            yield from releases_of(each)


@pytest.mark.parametrize("rules", [{}, {"rounded_noise": True, "printed_ranges": True}], ids=["plain", "printed"])
def test_what_public_rows_answer_never_passes_for_private(rules: dict[str, bool]) -> None:
    """An answer of a table without a budget to defend, stamped as private, would be published as if it were."""
    table = open_public(people(), DOMAIN, **rules)
    for each in (table, table.allot(1000), table.bootstrap(3), table.where(job="clerk"), table.partition("ill")[0]):
        answers = [ask(each) for ask in QUESTIONS.values()]
        answers += [each.count(math.inf), each.histogram("job", epsilon=math.inf), each.select("gini", math.inf)]
        answers += [each.partition("job").count(math.inf), each.select("gain-ratio", math.inf, thresholds=True)]
        for release in releases_of(answers):
            assert not release.private and not pickle.loads(pickle.dumps(release)).private
            assert "NOT PRIVATE" in repr(release)
    for _ in range(2):  # also when it comes from the ledger
        assert not table.count(1, key="k").private
    for release in releases_of([ask(privet.open(people(), DOMAIN, budget=1)) for ask in QUESTIONS.values()]):
        assert release.private and "NOT PRIVATE" not in repr(release)


# --- what errors carry -----------------------------------------------------------------------------------------------

CANARY = "CANARY-93b1"


def _raiser(text: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        try:
            raise ValueError(f"could not convert string to float: '{text}'")
        except ValueError as cause:
            error = RuntimeError(f"row 17: {text}")
            error.add_note(f"the row was {text}")
            raise error from cause

    return fail


def everything_of(error: BaseException) -> str:
    """All that a program or a person could read from an exception, locals of its frames included."""
    seen = io.StringIO()
    print(str(error), repr(error), error.args, vars(error), getattr(error, "__notes__", ""), file=seen)
    print(error.__cause__, error.__context__, file=seen)
    print("".join(traceback.format_exception(error)), file=seen)
    print("".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()), file=seen)
    return seen.getvalue()


def assert_silent(error: BaseException, word: str = CANARY) -> None:
    assert word not in everything_of(error)
    assert error.__cause__ is None and error.__context__ is None
    assert "\n" not in str(error)


@each_source
def test_error_texts_and_chained_exceptions(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An engine's message quotes the row it stumbled over, and a chained exception carries the message along."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        for method in ("exact_counts", "exact_grid", "exact_sums", "exact_residuals"):
            monkeypatch.setattr(engine, method, _raiser(CANARY))
        for ask in (*QUESTIONS.values(), lambda each: each.count(1, key="again")):
            with pytest.raises(EngineFailed) as caught:
                ask(table)
            assert_silent(caught.value)
        assert CANARY not in "".join(str(entry) for entry in table.budget.entries)
    assert "".join(capfd.readouterr()) == ""


def misread(connection: Any) -> Any:
    """Run a statement that DuckDB answers with an error which quotes a value."""
    return connection.execute(f"SELECT CAST('{CANARY}' AS INTEGER)")


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_real_engine_errors_stay_inside(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB prints the value that a cast could not read. What no statement answers is read in passing."""
    with opened(people(), kind, tmp_path) as table:
        engine = table._session.engine
        with pytest.raises(duckdb.Error, match=CANARY):
            misread(engine._connection)
        monkeypatch.setattr(engine, "_run", lambda tree: misread(engine._connection))
        for ask in QUESTIONS.values():
            ask(table)
    with opened(people(), kind, tmp_path / "again") as table:
        broken = table._session.engine
        monkeypatch.setattr(broken, "_run", lambda tree: misread(broken._connection))
        monkeypatch.setattr(broken, "_batches", lambda columns: misread(broken._connection))
        for ask in QUESTIONS.values():
            with pytest.raises(EngineFailed) as caught:
                ask(table)
            assert_silent(caught.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_source_that_changes_after_opening_speaks_of_no_row(kind: str, tmp_path: Path) -> None:
    """What was opened is what answers: a file that is replaced or removed later is not looked at again."""
    table = opened(people(), kind, tmp_path)
    path = tmp_path / f"people.{kind}"
    path.write_bytes(f"{CANARY},{CANARY}\n".encode() * 1000)
    assert table.count(EXACT) == 40
    path.unlink()
    assert table.count(EXACT) == 40
    table.close()


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_opening_speaks_of_no_row(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while a snapshot is taken would quote a row before any budget is there to pay for it."""
    from privet.kernel.engines.duckdb.engine import DuckDBEngine

    source = store(people(), kind, tmp_path)
    monkeypatch.setattr(DuckDBEngine, "snapshot", _raiser(CANARY))
    with pytest.raises(DataError) as caught:
        privet.open(source, DOMAIN, budget=1, access="snapshot")
    assert_silent(caught.value)


@each_source
def test_refusals_have_no_second_voice(kind: str, tmp_path: Path) -> None:
    """A refusal chained to an inner exception shows how far the question went."""
    with opened(people(), kind, tmp_path, budget=1) as table:
        for ask in (
            lambda: table.count(2),
            lambda: table.allot(0.5).count(1),
            lambda: table.where(job="poet"),
            lambda: table.sum("nothing", 1),
            lambda: table.count("abc"),
            lambda: pickle.dumps(table),
        ):
            with pytest.raises(PrivetError) as caught:
                ask()
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None


# --- what files carry ------------------------------------------------------------------------------------------------


@pytest.fixture
def canaries() -> pd.DataFrame:
    """Rows with words that no answer may contain: in an undeclared column, and out of the domain."""
    frame = people().assign(name=[f"{CANARY}-name-{i}" for i in range(40)], ssn=[f"90210-{i:04}" for i in range(40)])
    frame.loc[::2, "job"] = f"{CANARY}-job"
    frame.loc[3, "ill"] = f"{CANARY}-ill"
    frame.loc[5, "wage"] = 987654321.125
    return frame


SECRETS = (CANARY.encode(), b"90210-", b"987654321")


def assert_no_secret(folder: Path, *besides: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in besides:
            content = path.read_bytes()
            assert not [word for word in SECRETS if word in content], path.name


@each_source
def test_ledger_and_scratch_files_hold_no_row(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canaries: pd.DataFrame
) -> None:
    """A value in the ledger, in a temporary file or in a pickled answer leaves the kernel without noise."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    data = {
        "frame": "",
        "csv": "people.csv",
        "snapshot": "people.csv",
        "parquet": "people.parquet",
        "duckdb": "people.db",
    }
    with opened(canaries, kind, tmp_path / "data", ledger=tmp_path / "the.ledger") as table:
        answers = [ask(table) for ask in QUESTIONS.values()]
        with pytest.raises(BudgetExceeded):
            table.count(LARGE)
        assert_no_secret(scratch)
        assert_no_secret(tmp_path, data[kind], "people.db")
        spoken = repr(table) + repr(table.partition("job")) + repr(answers) + repr(table.budget.entries)
        payload = pickle.dumps(answers) + spoken.encode()
        assert not [word for word in SECRETS if word in payload]
    assert_no_secret(tmp_path, data[kind], "people.db")
    stored = "SELECT count(*) FROM lines WHERE kind = 'answer'"
    assert sqlite3.connect(tmp_path / "the.ledger").execute(stored).fetchone() == (len(QUESTIONS),)


@each_source
def test_undeclared_columns_do_not_exist(kind: str, tmp_path: Path, canaries: pd.DataFrame) -> None:
    """Another word for a column that is there than for one that is not would list the columns of a private table."""
    with opened(canaries, kind, tmp_path) as table:
        for ask in (
            lambda name: table.where({name: 1}),
            lambda name: table.partition(name),
            lambda name: table.partition((name, 1)),
            lambda name: table.histogram(name, epsilon=1),
            lambda name: table.sum(name, 1),
            lambda name: table.median(name, 1),
            lambda name: table.select("max", 1, attributes=[name]),
        ):
            said = []
            for name in ("name", "nope"):
                with pytest.raises(UndeclaredDomain) as caught:
                    ask(name)
                said.append(str(caught.value).replace(name, "*"))
            assert said[0] == said[1]
        assert "name" not in repr(table) and table.domain.names == ("job", "wage", "ill")
        assert table.budget.entries == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "arrow", "polars"])
def test_undeclared_columns_may_hold_anything(kind: str, tmp_path: Path) -> None:
    """A column that does not exist cannot make a table fail to open, or its rows be left out."""
    frame = people().astype({"wage": float})
    if kind in ("arrow", "polars"):
        arrow = module("pyarrow")
        clean = arrow.Table.from_pandas(frame, preserve_index=False)
        bad = arrow.Array.from_buffers(
            arrow.string(), 40, [None, arrow.py_buffer(np.arange(41, dtype=np.int32)), arrow.py_buffer(b"\xff" * 40)]
        )
        source = clean.append_column("note", bad)
        if kind == "polars":
            times = arrow.array([np.datetime64("0001-01-01", "us")] * 40)
            source = module("polars").from_arrow(clean.append_column("note", times))
    elif kind == "csv":
        frame.assign(note='"\n,' * 3).to_csv(tmp_path / "people.csv", index=False)
        source = tmp_path / "people.csv"
    else:
        with duckdb.connect(str(tmp_path / "people.db")) as connection:
            connection.register("frame", frame)
            connection.execute(
                "CREATE TABLE people AS SELECT *, TIMESTAMP '2000-01-01' AS note, [1, 2] AS l, {'a': 1} AS s, "
                "'\\xFF'::BLOB AS b FROM frame"
            )
            connection.execute(f"COPY people TO '{tmp_path}/people.parquet' (FORMAT parquet)")
        source = tmp_path / "people.parquet" if kind == "parquet" else f"duckdb:///{tmp_path}/people.db?table=people"
    with privet.open(source, DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) == 40


# --- the source itself -----------------------------------------------------------------------------------------------

PACKAGE = Path(privet.__file__).parent


def _names(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NAME:
                yield token.string


def test_exact_values_have_names_in_the_kernel_only() -> None:
    """A name for something un-noised outside the kernel means that something un-noised is there.

    The lab enumerates outcomes on rows that its caller made: nothing in it is private.
    """
    outside = [path for path in PACKAGE.rglob("*.py") if not {PACKAGE / "kernel", PACKAGE / "lab"} & {*path.parents}]
    assert len(outside) > 5
    found = {(path.name, name) for path in outside for name in _names(path) if name.startswith("exact_")}
    assert found == set()
    inside = [name for path in (PACKAGE / "kernel").rglob("*.py") for name in _names(path)]
    assert any(name.startswith("exact_") for name in inside)  # the test would notice one


# --- what a review found ----------------------------------------------------------------------------------------------


def test_an_interrupt_during_the_commit_buys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an interrupted charge were forgotten, every retry under its key would be a free answer on that part."""
    table = privet.open(people(), DOMAIN, budget=1, ledger=tmp_path / "ledger")
    parts = table.partition("job")
    parts[0].count(1)  # the table has paid 1: its other parts are free up to 1
    write = Ledger.charge

    def interrupted(*words: Any, **more: Any) -> Any:
        write(*words, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parts[1].count(1, key="k")
    parts[1].count(1, key="k")  # finishes under the charge that stands
    with pytest.raises(BudgetExceeded):
        parts[1].count(1, key="another")


@pytest.mark.parametrize(
    "terms",
    [
        ((("job",), np.full((3, 2), -(2**63), dtype=np.int64)),),
        ((("job",), np.full((3, 2), 2**24)),),
        ((("job",), np.zeros((3, 2))),),
    ],
)
def test_a_model_that_would_leave_the_tables_of_the_engine_is_refused(terms: Any) -> None:
    """An index outside a table reads foreign memory, or crashes the process exactly when a row is there."""
    with pytest.raises(QuestionError):
        privet.AdditiveModel((1, 1), terms)
    for intercept in ((float("nan"), 0), (0.7, 0), (2**25, 0)):
        with pytest.raises(QuestionError):
            privet.AdditiveModel(intercept)  # type: ignore[arg-type]


def test_a_model_is_a_copy_that_nobody_can_change() -> None:
    """A model changed after it was fingerprinted would get the answers of another."""
    values = np.zeros((3, 2), dtype=np.int32)
    model = privet.AdditiveModel((0, 0), ((("job",), values),))
    before = model.fingerprint
    values[:] = 7
    assert privet.AdditiveModel((0, 0), model.terms).fingerprint == before
    with pytest.raises(ValueError, match="read-only"):
        model.terms[0][1][:] = 7


def test_names_with_wildcards_and_partitions_are_names(tmp_path: Path) -> None:
    """DuckDB would read `data1.csv` for `data[1].csv`, and a column from a folder called `job=clerk`."""
    people().to_csv(tmp_path / "data1.csv", index=False)
    people().head(10).to_csv(tmp_path / "data[1].csv", index=False)
    with privet.open(tmp_path / "data[1].csv", DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) == 10
    folder = tmp_path / "job=nobody"
    folder.mkdir()
    people().to_csv(folder / "people.csv", index=False)
    people().to_parquet(folder / "people.parquet")
    for name in ("people.csv", "people.parquet"):
        with privet.open(folder / name, DOMAIN, budget=LARGE) as table:
            assert table.count(EXACT) == 40


def test_a_link_or_another_spelling_is_no_new_budget(tmp_path: Path) -> None:
    """The same rows under another name would come with a fresh ledger."""
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "link.csv").symlink_to(tmp_path / "people.csv")
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=1) as table:
        table.count(1)
    with privet.open(tmp_path / "link.csv", DOMAIN, budget=1) as table:
        assert table.budget.remaining == 0
    source = store(people(), "duckdb", tmp_path)
    with privet.open(source, DOMAIN, budget=1) as table:
        table.count(1)
    address, _, name = str(source).rpartition("=")
    with privet.open(f"{address}={name.upper()}", DOMAIN) as table:
        assert table.budget.remaining == 0


def test_a_key_of_other_data_is_refused(tmp_path: Path) -> None:
    """One ledger, one name, two files: an answer about one must not be given for the other."""
    for folder, rows in (("a", 40), ("b", 5)):
        (tmp_path / folder).mkdir()
        people().head(rows).to_csv(tmp_path / folder / "p.csv", index=False)
    with privet.open(tmp_path / "a" / "p.csv", DOMAIN, budget=10, ledger=tmp_path / "ledger") as table:
        table.count(1, key="k")
    with privet.open(tmp_path / "b" / "p.csv", DOMAIN, ledger=tmp_path / "ledger") as table:
        with pytest.raises(KeyReused):
            table.count(1, key="k")
        assert table.budget.spent == 1


def test_fewer_rows_per_person_than_promised_are_refused(tmp_path: Path) -> None:
    """The budget spent so far protects persons with two rows; a domain that says one would break that promise."""
    frame, ledger = people(), tmp_path / "ledger"
    privet.open(frame, replace(DOMAIN, rows_per_person=2), budget=1, ledger=ledger).count(0.5)
    with pytest.raises(PrivacyError, match=r"up to 2 row\(s\)"):
        privet.open(frame, DOMAIN, ledger=ledger)


def test_threads_do_not_mix_their_models() -> None:
    """A cache shared without a lock gave one thread the logits of another."""
    engine = MemoryEngine.from_frame(people(20_000), DOMAIN)
    table = np.array([[0, 1], [1, 0], [0, 0]])
    queries = [
        ResidualQuery(
            Rows(), privet.AdditiveModel((0, 9), ((("job",), table * shift),)), (("job",),), "ill", (1024, 1024)
        )
        for shift in range(0, 4000, 500)
    ]
    wanted = [engine.exact_residuals(query)[0].exact_own.tolist() for query in queries]
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(20):
            if engine.exact_residuals(queries[number])[0].exact_own.tolist() != wanted[number]:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(queries))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_closed_table_answers_nothing_and_charges_nothing() -> None:
    """A table without rows would go on answering 0, for money."""
    table = privet.open(people(), DOMAIN, budget=1)
    table.close()
    with pytest.raises(DataError, match="was closed"):
        table.count(1)
    assert table.budget.spent == 0


class Secret:
    """A value that tells its row when it is looked at."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)

    __hash__ = __str__  # type: ignore[assignment]


def test_a_value_that_cannot_be_read_fits_no_cell() -> None:
    """An error from inside a frame would tell that the value is there, and quote it."""
    frame = people().assign(job=pd.Series([Secret(), *["clerk"] * 39], dtype=object))
    table = privet.open(frame, DOMAIN, budget=LARGE)
    assert table.count(EXACT) in (39, 40)
    assert table.where(job="clerk").count(EXACT) == 39
