"""Attacks through words: nothing that an analyst or a domain says becomes code."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernel.attacks.attacked import DOMAIN, EXACT, LARGE, MODEL, each_source, opened, people, store

import privet
from privet.errors import QuestionError, UndeclaredDomain
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain

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


# --- what a review found ----------------------------------------------------------------------------------------------


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
