"""How often a fit of boosted tables reads the rows, where they are not held: once for each question."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from postgres_server import shared_server
from sizes import long

import privet
from privet.kernel import Domain, Nominal, Numeric
from privet.kernel.engines.duckdb import engine as duckdb
from privet.kernel.engines.postgres.engine import PostgresEngine

ROWS = 6_000  # enough for fine cells of numbers at epsilon 4
DOMAIN = Domain(
    (
        Nominal("town", tuple("abcdef")),
        Numeric("wage", 0, 999, 1, bins=20),
        Nominal("sex", ("f", "m")),
        Nominal("y", (0, 1)),
    ),
    target="y",
    rows=ROWS,
)
QUESTIONS = {  # of a fit with a delta: class counts, probe, thirty steps; and pairs, three times chosen and probed
    True: 2 + 30 + 3 * 2 + 2,  # and larger tables, offered twice: nothing is left for them to learn
    False: 2 + 30,
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    town, wage, sex = rng.integers(0, 6, ROWS), rng.integers(0, 1000, ROWS), rng.integers(0, 2, ROWS)
    score = (wage - 500) / 200 + np.where((town < 3) ^ (sex == 1), 1.5, -1.5)
    names = {"town": np.array(list("abcdef"))[town], "wage": wage, "sex": np.array(["f", "m"])[sex]}
    return pd.DataFrame({**names, "y": (score + rng.logistic(size=ROWS) > 0).astype(int)})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was read since the table was opened: batches of the coded rows, or statements to a server."""
    seen: list[str] = []
    batches, fetch = duckdb._batches, PostgresEngine._fetch

    def noted(*arguments: Any) -> Iterator[Any]:
        seen.append("batches")
        return batches(*arguments)

    def fetched(*arguments: Any, **options: Any) -> Any:
        seen.append("statement")
        return fetch(*arguments, **options)

    def asked(run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            seen.append("statement")
            return run(*arguments)

        return wrapped

    monkeypatch.setattr(duckdb, "_batches", noted)
    monkeypatch.setattr(PostgresEngine, "_fetch", fetched)
    monkeypatch.setattr(duckdb.DuckDBEngine, "_fetched", asked(duckdb.DuckDBEngine._fetched))
    return seen


def address_of(access: str, folder: Path) -> str:
    """Where the rows lie."""
    if access != "postgres":
        people().to_parquet(folder / "people.parquet")
        return str(folder / "people.parquet")
    server, rows = shared_server(), people()
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS passes; CREATE TABLE passes (town text, wage int, sex text, y int)")
        with connection.cursor() as cursor, cursor.copy("COPY passes FROM STDIN") as copy:
            for row in rows.itertuples(index=False):
                copy.write_row(row)
    return server.address(table="passes")


CASES = [*itertools.product(("stream", "push-down"), (True, False)), ("postgres", False)]
CASES.append(pytest.param("postgres", True, marks=long))  # ten seconds of the server


@pytest.mark.parametrize(("access", "pairs"), CASES)
def test_a_question_reads_the_rows_once(access: str, pairs: bool, reads: list[str], tmp_path: Path) -> None:
    """Would catch a question that is asked of the server for each of its tables, or rows coded anew for finer cells."""
    path = "push-down" if access == "postgres" else access
    with privet.testing.open(
        address_of(access, tmp_path), DOMAIN, budget=4, delta="1e-6", access=path, seed=1
    ) as table:
        reads.clear()
        fitted = privet.BoostedTablesClassifier(4, pairs=pairs).fit(table)
        assert len(fitted.privacy_.steps) == len(reads) == QUESTIONS[pairs]
        wage = fitted.model_.domain["wage"]
        assert wage.size > DOMAIN["wage"].size  # in finer cells, which are no reading of their own


@pytest.mark.parametrize("access", ["stream", "push-down"])
def test_a_pure_fit_reads_the_rows_once_for_each_question_too(access: str, reads: list[str], tmp_path: Path) -> None:
    with privet.testing.open(address_of(access, tmp_path), DOMAIN, budget=4, access=access, seed=1) as table:
        reads.clear()
        fitted = privet.BoostedTablesClassifier(4, random_state=1).fit(table)
        assert len(reads) <= len(fitted.privacy_.steps)  # counts that follow from others are not read again
