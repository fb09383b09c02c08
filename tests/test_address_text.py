"""Addresses: what they name, and that none which cannot be read is shown with its password."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from privet.address_text import (
    file_of,
    kind_of,
    ledger_schema,
    names_a_server,
    postgres_table,
    shown_ledger,
    spark_table,
)
from privet.errors import DataError, LedgerError

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("people.CSV", "file"),
        ("a b/people.parquet", "file"),
        ("duckdb:///a.db?table=t", "duckdb"),
        ("postgres://h/d?table=t", "postgres"),
        ("postgresql://h/d?table=t", "postgres"),
        ("spark:///?table=t", "spark"),
        ("mssql://h/d?table=t", "mssql"),
    ],
)
def test_an_address_has_the_kind_that_its_scheme_says(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("t", ("", "t")),
        ("care.stays", ("care", "stays")),
        ("%22a.b%22.%22c%20%22%22d%22%22%22", ("a.b", 'c "d"')),
    ],
)
def test_a_table_of_postgresql_may_have_any_name(table: str, names: tuple[str, str]) -> None:
    assert postgres_table(f"postgresql://h/d?sslmode=require&table={table}") == (
        "postgresql://h/d?sslmode=require",
        *names,
    )


@pytest.mark.parametrize(
    ("read", "text", "error"),
    [
        (kind_of, f"mysql://ann:{SECRET}@h/d", DataError),
        (kind_of, f"ann:{SECRET}@h" * 1000, DataError),
        (postgres_table, f"postgresql://ann:{SECRET}@h/d", DataError),
        (postgres_table, f"postgresql://ann:a@{SECRET}@h/d?table=t", DataError),
        (kind_of, f"ann:{SECRET}://h/d", DataError),
        (kind_of, f"ann:{SECRET}@h", DataError),
        (file_of, f"duckdb://ann:{SECRET}@h/d.db", DataError),
        (spark_table, f"spark://ann:{SECRET}@h/?table=t", DataError),
        (postgres_table, f"postgresql://ann:{SECRET}%00@h/d?table=t", DataError),
        (ledger_schema, f"postgresql://ann:{SECRET}@more@h/d", LedgerError),
        (ledger_schema, f"postgresql://ann:h/{SECRET}@d", LedgerError),
        (ledger_schema, f"postgresql://ann:{SECRET}@[h/d", LedgerError),
    ],
)
def test_no_sentence_about_an_address_has_its_password(
    read: Callable[[str], object], text: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        read(text)
    assert SECRET not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize("text", ["spark:///", "spark://host/?table=t", "spark:///path?table=t", "spark://[?table=t"])
def test_an_address_of_spark_names_a_table_and_no_server(text: str) -> None:
    with pytest.raises(DataError, match=r"write .*spark:///\?table=NAME"):
        spark_table(text)


def test_a_file_is_there_and_an_address_of_duckdb_names_a_table() -> None:
    with pytest.raises(DataError, match=r"there is no file 'nowhere[.]csv'; check the path"):
        file_of("nowhere.csv")
    with pytest.raises(DataError, match=r"names no table; write duckdb:///file.db\?table=NAME"):
        file_of("duckdb:///people.db")


def test_a_ledger_is_shown_without_its_password_whatever_its_host() -> None:
    for host in ("db", "/run/postgresql", "a,b"):
        parameters = {"host": host, "port": "5432", "user": "ann", "password": SECRET, "dbname": "d"}
        assert names_a_server(parameters) and SECRET not in shown_ledger(parameters, "care")
    assert not names_a_server({"host": "db", "port": "x"})
