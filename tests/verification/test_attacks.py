"""The attack suite: honest layers hold against it, and every attack catches a layer that is broken its way."""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from sizes import few, long, size, sized

import privet
from privet.errors import BudgetExceeded, DataError, EngineFailed, PrivetError, UndeclaredDomain
from privet.kernel import SYSTEM, IntegerLaplace, Ledger, PerPart, as_epsilon, opening
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.release import Count
from privet.verification import attacks
from privet.verification.attacks import ATTACKS, AttackResult, attack, attack_by_paths, boundary
from privet.verification.attacks.planted import CANARY, SMALL, rows
from privet.verification.attacks.steps import stopped_late
from privet.verification.layer import LocalLayer

MEMORY, TYPES, HATCHES, FORGOTTEN = 16, 17, 18, 19
TIMING = 11  # what no clock is asked about cannot be decided
SOURCES = ("frame", "csv", "parquet", "duckdb", "snapshot", "stream", "auto")
FRAME = rows(SMALL, 60)


def store(frame: pd.DataFrame, kind: str, folder: Path) -> Any:
    """A frame where an owner would keep it."""
    if kind == "frame":
        return frame
    frame.to_csv(folder / "people.csv", index=False)
    if kind in ("csv", "snapshot", "stream", "auto"):
        return folder / "people.csv"
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.execute(f"CREATE TABLE people AS FROM read_csv('{folder}/people.csv')")
        if kind == "parquet":
            connection.execute(f"COPY people TO '{folder}/people.parquet' (FORMAT parquet)")
            return folder / "people.parquet"
    return f"duckdb:///{folder}/people.db?table=people"


def path(kind: str) -> str:
    return kind if kind in ("snapshot", "stream", "auto") else "push-down"


def assert_held(results: list[AttackResult]) -> None:
    assert [(result.number, result.found) for result in results if result.held is False] == []
    assert [result.number for result in results if result.held is None] == [TIMING]


def test_attacks_are_numbered_in_order() -> None:
    assert [each.number for each in ATTACKS] == list(range(1, 20))
    assert len({each.name for each in ATTACKS}) == 19
    for each in ATTACKS:
        assert each.leak.endswith(".") and each.run.__doc__


# -- honest layers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    few(SOURCES, ("frame",)),  # and PostgreSQL in test_attacks_on_servers.py
)
def test_every_source_holds_and_nothing_of_its_owner_is_touched(kind: str, tmp_path: Path) -> None:
    source = store(FRAME, kind, tmp_path)
    with privet.open(source, SMALL, budget=1, ledger=tmp_path / "people.ledger") as table:
        table.count("0.5")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*")}
    with LocalLayer(source, SMALL, access=path(kind)) as layer:
        results = attack(layer)
        scratch = Path(layer._scratch.name)
        assert scratch.exists()
    assert_held(results)
    assert not scratch.exists()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_the_ledger_beside_the_data_is_not_made(kind: str, tmp_path: Path) -> None:
    source = store(FRAME, kind, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with LocalLayer(source, SMALL) as layer:
        layer.live(budget=1).count("0.5")
        assert layer.live(budget=1).budget.spent == Fraction(1, 2)
        assert layer.live(budget=2).budget.spent == 0
        with layer.open(FRAME, SMALL, budget=1) as table:
            table.count("0.5")
    assert sorted(tmp_path.rglob("*")) == before


DOMAINS = {
    "nominal columns only": Domain((Nominal("a", ("x", "y"), missing=True), Nominal("b", (1, 2, 3)))),
    "nominal with a target": Domain((Nominal("a", (True, False)), Nominal("b", ("u", "v"))), target="b"),
    "numbers only": Domain((Numeric("n", Fraction(-1), Fraction(1), Fraction(1, 10)),)),
    "many values": Domain((Nominal("many", tuple(f"v{i}" for i in range(3000))),)),
    "one cell": Domain((Nominal("only", ("one",)),), target="only"),
    "several rows per person": replace(SMALL, rows_per_person=7),
    "odd names": Domain(
        (
            Nominal('quo"te', ("?", "'", "(select 1)")),
            Numeric("two words", Fraction(0), Fraction(2**40), Fraction(2**20)),
        )
    ),
}


@pytest.mark.parametrize("name", few(DOMAINS, {*DOMAINS} - {"odd names", "nominal columns only"}))
def test_any_domain_holds(name: str, tmp_path: Path) -> None:
    domain, kind = DOMAINS[name], "duckdb" if name == "odd names" else "frame"
    with LocalLayer(store(rows(domain), kind, tmp_path), domain) as layer:
        assert_held(attack(layer))


@long
def test_the_census_holds(tmp_path: Path) -> None:
    source, domain = tmp_path / "census.csv", tmp_path / "census.toml"
    privet.datasets.census(2000).to_csv(source, index=False)
    privet.datasets.census_domain().save(domain)
    said: list[str] = []
    with LocalLayer(source, domain) as layer:
        assert layer.name == "csv file census.csv"
        results = attack(layer, said.append)
    assert_held(results)
    assert said[0] == "attack 1 of 19: low-order bits of float noise" and len(said) == 19
    told = json.loads(json.dumps([result.to_dict() for result in results]))
    assert told[TIMING - 1]["held"] is None and "not hidden" in told[TIMING - 1]["found"][0]
    assert told[0] == {**told[0], "number": 1, "held": True, "found": []}


def test_a_table_of_nobody_holds() -> None:
    with LocalLayer(FRAME.iloc[:0], SMALL) as layer:
        assert_held(attack(layer))


def test_rows_of_an_attack_are_stored_as_the_table_is(tmp_path: Path) -> None:
    odd = pd.DataFrame(
        {"x": [10**30, None], "y": [True, False], "z": [float("nan"), 1.5], "t": ["a", None]}, dtype=object
    )
    domain = Domain(
        (
            Numeric("x", Fraction(0), Fraction(9), Fraction(1), missing=True),
            Nominal("y", (True, False), other=True),
            Numeric("z", Fraction(0), Fraction(9), Fraction(1, 2), missing=True),
            Nominal("t", ("a",), missing=True),
        )
    )
    names = ("a frame", "csv file", "parquet file", "duckdb table people of", "csv", "csv", "csv")
    for kind, name in zip(SOURCES, names, strict=True):
        folder = tmp_path / kind
        folder.mkdir()
        with LocalLayer(store(FRAME, kind, folder), SMALL, access=path(kind)) as layer:
            assert layer.name.startswith(name)
            with layer.open(odd, domain, budget=1_000_000) as table:
                assert table.count(10_000) == 2
                assert table.where(x="<missing>", t="<missing>").count(10_000) == 1
                assert table.where(z=1.5).count(10_000) == 1
                assert table.sum("x", 10_000) == 9


def test_without_fork_the_rest_is_still_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with LocalLayer(FRAME, SMALL) as layer:
        for number in (8, 14):
            result = ATTACKS[number - 1].against(layer)
            assert result.held is None and "no fork" in result.found[0]


def test_nothing_is_cleaned_up_while_a_question_is_watched() -> None:
    """To throw away objects of Spark takes steps: with them a question would be stopped before it is charged."""
    collects: list[bool] = []
    stopped_late(None, lambda _: collects.append(gc.isenabled()), 90)(None)
    assert collects == [True, False, False]  # to warm up, to count its steps, and to be stopped
    assert gc.isenabled()


def test_an_error_nobody_expected_is_told_by_its_type_alone() -> None:
    class Failing(LocalLayer):
        def open(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError(CANARY)

    with Failing(FRAME, SMALL) as layer:
        results = attack(layer)
    assert {result.found for result in results} == {
        ("the layer raised RuntimeError where it should have answered.",),
        (),
    }
    assert sum(result.held is False for result in results) == 17  # the others look at the live table alone


def test_a_table_that_cannot_be_opened_is_no_finding() -> None:
    with LocalLayer(FRAME.drop(columns="ill"), SMALL) as layer, pytest.raises(DataError, match="no column 'ill'"):
        attack(layer)


# -- broken layers: each is caught by its attack ------------------------------------------------


class Proxy:
    """A table that answers like the one behind it; its rows are known where an attack made them."""

    def __init__(self, table: Any, frame: pd.DataFrame) -> None:
        self.table, self.rows = table, frame

    def __getattr__(self, name: str) -> Any:
        if name in ("table", "rows"):  # while it is copied
            raise AttributeError(name)
        return getattr(self.table, name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.table.close()


class FloatNoise(Proxy):
    def count(self, *words: Any, **more: Any) -> float:
        return float(self.table.count(*words, **more)) + np.random.default_rng().laplace()


class FloatMean(Proxy):
    def mean(self, *words: Any, **more: Any) -> Any:
        mean = self.table.mean(*words, **more)
        return SimpleNamespace(count=mean.count, deviation=mean.deviation * 1.1)


class SwallowedNoise(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        return float(self.rows[column].sum() + np.random.default_rng().laplace())


class FloatSum(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        return float(np.add.reduce(self.rows[column].to_numpy(dtype=float)))


class Overflowing(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        return float(self.rows[column].clip(-(10**4), 2**53).astype(np.int64).to_numpy().sum())


class NaNSum(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        return float(sum(float(value) for value in self.rows[column]))


class NaNIsHigh(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        top = float(self.table.domain[column].high)
        return float(self.table.sum(column, epsilon) + top * self.rows[column].isna().sum())


class NaNCount(Proxy):
    def count(self, epsilon: Any) -> float:
        return float("nan") if self.rows.isna().any(axis=None) else self.table.count(epsilon)


class QuotesTheRow(Proxy):
    def sum(self, column: str, epsilon: Any) -> float:
        return float(self.rows[column].astype(float).sum())


class ListsColumns(Proxy):
    def histogram(self, *columns: str, **more: Any) -> Any:
        unknown = [name for name in columns if name not in self.table.domain]
        if unknown:
            raise UndeclaredDomain(f"there is no column '{unknown[0]}'; there are {list(self.rows)}.")
        return self.table.histogram(*columns, **more)


class TakesSQL(Proxy):
    def where(self, conditions: Any = None, /, **more: Any) -> Any:
        with suppress(PrivetError):
            return self.table.where(conditions, **more)
        return self


class FreeWhereNobodyIs(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        return self.table.count(epsilon, **more) if len(self.rows) else 0


class RefusesByRows(Proxy):
    def sum(self, column: str, epsilon: Any) -> Any:
        if column not in self.table.domain:
            raise UndeclaredDomain(f"none of the {len(self.rows)} rows has a '{column}'.")
        return self.table.sum(column, epsilon)


class Purse(Proxy):
    """A table that says about its budget what it likes."""

    paid_back = Fraction(0)

    @property
    def budget(self) -> Any:
        true = self.table.budget
        spent, left = true.spent - self.paid_back, true.remaining + self.paid_back
        return SimpleNamespace(spent=spent, remaining=left, entries=true.entries)


class PaysBack(Purse):
    def count(self, epsilon: Any, **more: Any) -> Any:
        before = self.table.budget.spent
        try:
            return self.table.count(epsilon, **more)
        except BaseException:
            self.paid_back += self.table.budget.spent - before
            raise


class ChargesRefusals(Purse):
    def sum(self, column: str, epsilon: Any) -> Any:
        if column not in self.table.domain:
            self.paid_back -= Fraction(epsilon)
        return self.table.sum(column, epsilon)


class FreeAtZero(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        return len(self.rows) if epsilon in (0, "0") else self.table.count(epsilon, **more)


class FloatLedger(Proxy):
    """Ten times 0.1 is 0.9999999999999999 in floats."""

    floats = 0.0

    @property
    def budget(self) -> Any:
        return SimpleNamespace(spent=self.floats, remaining=1 - self.floats, entries=[])

    def count(self, epsilon: Any, **more: Any) -> Any:
        answer = self.table.count(epsilon, **more)
        self.floats += float(epsilon)
        return answer


class ForgetsKeys(Proxy):
    def count(self, epsilon: Any, *, key: Any = None) -> Any:
        return self.table.count(epsilon)


class LooksThenLeaps(Proxy):
    """Looks whether enough is left, and charges when all others have looked too."""

    start = threading.Barrier(8)

    def count(self, epsilon: Any, **more: Any) -> Any:
        asked = as_epsilon(epsilon)
        enough = 10**6 - self.table.budget.remaining + asked <= 1
        if threading.current_thread() is not threading.main_thread():
            self.start.wait()
        if not enough:
            raise BudgetExceeded("not enough.", requested=asked, remaining=Fraction(0))
        return self.table.count(epsilon, **more)


class FreeConditions(Proxy):
    def where(self, *words: Any, **more: Any) -> Any:
        return SimpleNamespace(count=lambda epsilon: 0)


class LabelsFromRows(Proxy):
    def partition(self, by: Any, **more: Any) -> Any:
        parts = self.table.partition(by, **more)
        if isinstance(by, str):
            parts._labels = PerPart.of(str(value) for value in self.rows[by].unique())
        return parts


class SeveralParts(Proxy):
    """Rows without a key lie in every part."""

    def partition(self, by: Any, **more: Any) -> Any:
        parts, column = self.table.partition(by, **more), by if isinstance(by, str) else by[0]
        lost = int(self.rows[column].isna().sum())
        counts = parts.count
        parts.count = lambda epsilon: [count + lost for count in counts(epsilon)]
        return parts


class CallsFunctions(Proxy):
    def where(self, conditions: Any = None, /, **more: Any) -> Any:
        if callable(conditions):
            conditions(self.rows)
            raise UndeclaredDomain("only words.")
        return self.table.where(conditions, **more)


class TakesMasks(Proxy):
    def where(self, conditions: Any = None, /, **more: Any) -> Any:
        return self if isinstance(conditions, np.ndarray) else self.table.where(conditions, **more)


class ReadsPickles(Proxy):
    def where(self, conditions: Any = None, /, **more: Any) -> Any:
        for value in conditions.values() if isinstance(conditions, dict) else ():
            if isinstance(value, bytes):
                pickle.loads(value)
        return self.table.where(conditions, **more)


class CanBePickled(Proxy):
    def __reduce__(self) -> Any:
        return pd.DataFrame, (self.rows.to_dict(),)


class CanBeListed(Proxy):
    def __iter__(self) -> Iterator[Any]:
        return self.rows.itertuples()


class CanBeCopied(Proxy):
    def __copy__(self) -> Any:
        return privet.open(self.rows, self.table.domain, budget=1)


class WorksMoreForSome(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        for value in self.rows.iloc[:, 0]:
            if len(str(value)) > 1000:
                re.sub("(9+)+", "", str(value))
        return self.table.count(epsilon, **more)


class FreeRetries(Proxy):
    last = None

    def count(self, epsilon: Any, **more: Any) -> Any:
        if self.last is None:
            self.last = self.table.count(epsilon, **more)
            return self.last
        return self.last + int(np.random.default_rng().geometric(0.01))


class DropsEmptyCells(Proxy):
    def histogram(self, *columns: str, **more: Any) -> Any:
        found = self.table.histogram(*columns, **more)
        if len(columns) > 1:
            return found
        full = [label for label in found.labels[0] if label in set(self.rows[columns[0]])]
        found.labels = (tuple(full),)
        found._values = found.values[: len(full)]
        return found


class NoNoiseOnEmptyCells(Proxy):
    def histogram(self, *columns: str, **more: Any) -> Any:
        found = self.table.histogram(*columns, **more)
        if len(self.rows) == 0:
            found._values = np.zeros_like(found.values)
        return found


class NumpyNoise(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        self.table.count(epsilon, **more)
        return len(self.rows) + np.random.geometric(0.001)


class InheritedNoise(Proxy):
    noise = np.random.default_rng()

    def count(self, epsilon: Any, **more: Any) -> Any:
        return int(self.table.count(epsilon, **more)) * 0 + int(self.noise.geometric(0.001))


class SeededFromOutside(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        source = opening._seeded.get() or SYSTEM
        return IntegerLaplace(as_epsilon("0.001")).release(np.array([len(self.rows)]), source)[0]


class UnchargedCopies(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        with suppress(PrivetError):
            return self.table.count(epsilon, **more)
        return len(self.rows) + int(np.random.default_rng().geometric(0.001))


class UnstampedSeeds(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        count = self.table.count(epsilon, **more)
        return Count(int(count), count.noise, replace(count.about, private=True))


class FreshNoiseForAKey(Proxy):
    def count(self, epsilon: Any, *, key: Any = None) -> Any:
        answer = self.table.count(epsilon, key=key)
        return answer if key is None else int(answer) + int(np.random.default_rng().geometric(0.001))


class OneAnswerForAKey(Proxy):
    known: dict[Any, Any]

    def count(self, epsilon: Any, *, key: Any = None) -> Any:
        known = self.__dict__.setdefault("known", {})
        if key in known:
            return known[key]
        answer = self.table.count(epsilon, key=key)
        if key is not None:
            known[key] = answer
        return answer


class GivesUp(Proxy):
    """An engine whose memory ends where many rows match."""

    def where(self, *words: Any, **more: Any) -> Any:
        part, wanted = self.table.where(*words, **more), more.get("w", (None, None))[1]
        if wanted is not None and int((self.rows["w"] < wanted).sum()) > 100_000:
            return SimpleNamespace(median=self.fail)
        return part

    def fail(self, *_: Any) -> Any:
        raise EngineFailed("the engine could not answer.")


class Wraps(Proxy):
    """Cells of an int8 column by a difference in the type of the column."""

    def histogram(self, *columns: str, **more: Any) -> Any:
        found = self.table.histogram(*columns, **more)
        column = self.rows[columns[0]] if len(columns) == 1 else None
        if column is not None and column.dtype == np.int8 and int(column.max()) - int(column.min()) > 127:
            found._values = np.roll(found.values, 1)
        return found


class RepeatsItself(Proxy):
    def count(self, epsilon: Any, **more: Any) -> Any:
        return int(self.table.count(epsilon, **more)) * 0 + len(self.rows)


class OpensWithASeed(LocalLayer):
    def open(self, frame: pd.DataFrame, domain: Domain, *, ledger: Any = None, **settings: Any) -> Any:
        return super().open(frame, domain, **{"seed": 1, **settings})


class RefusesLongTexts(LocalLayer):
    def open(self, frame: pd.DataFrame, *words: Any, **settings: Any) -> Any:
        if frame.astype(str).map(len).to_numpy().max(initial=0) > 10**6:
            raise DataError("cannot read the table.")
        return super().open(frame, *words, **settings)


class LedgerForEachDeclaration(LocalLayer):
    def open(self, frame: pd.DataFrame, domain: Domain, *, ledger: Any = None, **settings: Any) -> Any:
        own = ledger.with_name(f"{ledger.name} {domain.rows_per_person}") if ledger else None
        return super().open(frame, domain, ledger=own, **settings)


class OpensFilesAfresh(LocalLayer):
    """Files whose ledger is in memory, whoever opens them."""

    def store(self, frame: pd.DataFrame, folder: Path) -> Path:
        frame.to_csv(folder / "planted.csv", index=False)
        return folder / "planted.csv"

    def reopen(self, file: Path, domain: Domain, **settings: Any) -> Any:
        return privet.open(pd.read_csv(file), domain, budget=1)


class Wrapped(LocalLayer):
    """A layer whose tables are wrapped."""

    def __init__(self, wrapper: Callable[[Any, pd.DataFrame], Any] = Proxy) -> None:
        super().__init__(FRAME, SMALL)
        self.wrapper = wrapper

    def live(self, **settings: Any) -> Any:
        return self.wrapper(super().live(**settings), FRAME)

    def open(self, frame: pd.DataFrame, domain: Domain, **settings: Any) -> Any:
        return self.wrapper(super().open(frame, domain, **settings), frame)


class LedgerInMemory(LocalLayer):
    """One ledger for all that open it, gone with the process."""

    def open(self, *words: Any, ledger: Any = None, **settings: Any) -> Any:
        books = self.__dict__.setdefault("books", {})
        if ledger is not None and (ledger, os.getpid()) not in books:
            books[ledger, os.getpid()] = Ledger.open(":memory:")
        return super().open(*words, ledger=books.get((ledger, os.getpid())), **settings)


class LedgerForEach(LocalLayer):
    def open(self, *words: Any, ledger: Any = None, analyst: str = "local", **settings: Any) -> Any:
        own = ledger.with_name(f"{ledger.name} {analyst}") if ledger else None
        return super().open(*words, analyst=analyst, ledger=own, **settings)


class NoNames(LocalLayer):
    def open(self, *words: Any, analyst: str = "local", **settings: Any) -> Any:
        return super().open(*words, **settings)


class Unlimited(Wrapped):
    """The budget is looked after by `LooksThenLeaps` alone."""

    def open(self, frame: pd.DataFrame, domain: Domain, **settings: Any) -> Any:
        return super().open(frame, domain, **{**settings, "budget": 10**6})


BROKEN: list[tuple[int, Any, str]] = [
    (1, FloatNoise, "a count has bits"),
    (1, FloatMean, "a mean has bits"),
    (2, SwallowedNoise, "without noise"),
    (3, FloatSum, "order of rows"),
    (3, FloatSum, "drifts"),
    (3, Overflowing, "overflows"),
    (4, NaNSum, "NaN or null in a row spoils the sum"),
    (4, NaNIsHigh, "NaN or null in a row spoils the sum"),
    (4, NaNCount, "changes the count"),
    (5, QuotesTheRow, "makes sum fail with ValueError and quotes the row"),
    (5, ListsColumns, "in other words"),
    (6, TakesSQL, "SQL text is taken as a value"),
    (7, FreeWhereNobodyIs, "what questions cost depends on the rows"),
    (7, RefusesByRows, "the words of a refusal depend on the rows"),
    (7, PaysBack, "interrupted costs nothing"),
    (7, ChargesRefusals, "must be refused is answered or charged"),
    (8, FreeAtZero, "no price is answered"),
    (8, FloatLedger, "ten times 0.1 is less than 1"),
    (8, lambda: LedgerInMemory(FRAME, SMALL), "killed process was answered is not in the ledger"),
    (8, lambda: LedgerForEach(FRAME, SMALL), "two analysts together"),
    (8, lambda: Unlimited(LooksThenLeaps), "more than one winner"),
    (8, ForgetsKeys, "charged again"),
    (9, FreeConditions, "conditions that overlap cost other"),
    (9, LabelsFromRows, "parts are named after values of rows"),
    (9, SeveralParts, "in several parts"),
    (10, CallsFunctions, "was run"),
    (10, TakesMasks, "a mask is taken as a condition"),
    (10, ReadsPickles, "was run"),
    (10, CanBePickled, "pickled"),
    (10, CanBeListed, "listed"),
    (10, CanBeCopied, "a budget of its own"),
    (11, WorksMoreForSome, "depends on one row"),
    (12, FreeRetries, "'count' is not charged again"),
    (12, PaysBack, "a try that failed"),
    (13, DropsEmptyCells, "other cells than the public domain"),
    (13, NoNoiseOnEmptyCells, "empty cells have no noise"),
    (14, NumpyNoise, "sets a seed"),
    (14, SeededFromOutside, "opened before it"),
    (14, InheritedNoise, "two forked processes draw the same noise"),
    (14, UnchargedCopies, "forked copy of an open table answers for nothing"),
    (14, UnstampedSeeds, "passes for a private one"),
    (15, FreshNoiseForAKey, "fresh noise"),
    (15, OneAnswerForAKey, "a larger epsilon"),
    (15, lambda: NoNames(FRAME, SMALL), "someone else's key"),
    (16, GivesUp, "depends on how many rows match"),
    (16, lambda: RefusesLongTexts(FRAME, SMALL), "one row with a long text"),
    (17, Wraps, "in a column of type int8."),
    (18, RepeatsItself, "a seed for tests reaches a table"),
    (18, lambda: OpensWithASeed(FRAME, SMALL), "opened with a seed for tests"),
    (19, lambda: LedgerForEachDeclaration(FRAME, SMALL), "declared anew"),
    (19, lambda: OpensFilesAfresh(FRAME, SMALL), "with a ledger in memory"),
    (19, lambda: OpensFilesAfresh(FRAME, SMALL), "by a hard link"),
]


def test_every_attack_has_a_layer_to_catch() -> None:
    assert {number for number, _, _ in BROKEN} == set(range(1, 20))


def test_a_layer_that_is_only_wrapped_holds() -> None:
    with Wrapped() as layer:
        assert_held(attack(layer))


@pytest.mark.parametrize(("number", "broken", "words"), BROKEN)
def test_a_broken_layer_is_caught_by_its_attack(number: int, broken: Any, words: str) -> None:
    with Wrapped(broken) if isinstance(broken, type) else broken() as layer:
        result = ATTACKS[number - 1].against(layer)
    assert result.held is False
    assert words in " ".join(result.found)
    assert CANARY not in " ".join(result.found)


def test_outcomes_of_an_open_table_that_can_be_listed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An enumeration that takes tables which somebody else opened, as themselves and as shadows of a race."""
    listed = SimpleNamespace(outcomes=([7],))
    monkeypatch.setattr(boundary, "worst_loss", lambda run, left, right, *more: listed)
    with LocalLayer(FRAME, SMALL) as layer:
        result = ATTACKS[HATCHES - 1].against(layer)
    assert "the outcomes of an open table can be listed" in " ".join(result.found)
    assert "a candidate of a race can list the outcomes" in " ".join(result.found)


# -- several paths to one table -------------------------------------------------------------------


@sized
def test_every_path_is_attacked_and_what_one_of_them_lets_through_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would catch attacks that try push-down, which nobody gets by default."""
    tried = ATTACKS[: size("attacks on every path")]
    monkeypatch.setattr(attacks, "ATTACKS", tried)
    source = store(FRAME, "csv", tmp_path)
    said: list[str] = []
    with (
        LocalLayer(source, SMALL, access="auto") as default,
        LocalLayer(source, SMALL) as other,
        Wrapped(NaNSum) as bad,
    ):
        assert str(default.live(budget=1)).count("snapshot") or "memory" in str(default.live(budget=1))
        held = attack_by_paths({"one": default, "other": other}, said.append)
        through = attack_by_paths({"one": default, "other": bad})
    assert [result.held for result in held] == [None if result.number == TIMING else True for result in held]
    assert len(said) == 2 * len(tried) and said[0].endswith(", one") and said[-1].endswith(", other")
    poison = through[3]
    assert poison.held is False and poison.found[0].startswith("other: NaN")
