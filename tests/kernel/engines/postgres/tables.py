"""Tables on a PostgreSQL server for the tests of its engine."""

from __future__ import annotations

import itertools
import traceback
from typing import Any
from urllib.parse import quote

import pytest
from postgres_server import Server

import privet
from privet.kernel import source_of
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain

pytest.importorskip("psycopg")
from privet.kernel.engines.postgres import link as postgres_link

DOMAIN = Domain((Nominal("sex", ("f", "m"), other=True), Nominal("ill", ("no", "yes"))), target="ill")
CANARY = "Ann Canary, 31"
_numbers = itertools.count()


def make(server: Server, columns: str, rows: Any = (), name: str | None = None) -> str:
    """A new table; its name."""
    name = name or f"made {next(_numbers)}"
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE {postgres_link.quoted(name)} ({columns})")
        with connection.cursor() as cursor, cursor.copy(f"COPY {postgres_link.quoted(name)} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return name


def people(server: Server, rows: int = 30) -> str:
    return make(
        server, "sex text, ill text, name text", [("fmx"[i % 3], ["no", "yes"][i % 2], CANARY) for i in range(rows)]
    )


def role(server: Server, *grants: str) -> str:
    """A user who may enter the database and has these rights."""
    name = f"user {next(_numbers)}"
    server.run(f'CREATE ROLE "{name}" LOGIN', *(f'GRANT {grant} TO "{name}"' for grant in grants))
    return name


def opened(server: Server, table: str, domain: Domain = DOMAIN, *, user: str = "postgres", **more: Any) -> Any:
    address = server.address(user=quote(user), table=quote(table), **more.pop("parameters", {}))
    return privet.open(address, domain, **{"budget": 1000, "ledger": ":memory:", **more})


def engine_of(server: Server, table: str, domain: Domain) -> Any:
    return source_of(server.address(table=quote(f'"{table}"'))).open(domain)


def said(error: BaseException) -> str:
    assert error.__cause__ is None and error.__context__ is None
    return "".join(traceback.format_exception(error))


def raising(server: Server, body: str) -> str:
    """A view over people whose function is called for each row."""
    table, name = people(server), f"view {next(_numbers)}"
    returns = "RETURNS text LANGUAGE plpgsql VOLATILE"
    server.run(
        f'CREATE FUNCTION "{name} f"(t text) {returns} AS $$ BEGIN {body} RETURN t; END $$',
        f'CREATE VIEW "{name}" AS SELECT "{name} f"(sex) AS sex, ill FROM "{table}"',
    )
    return name


def limited(server: Server, table: str, *settings: str, more: str = "") -> str:
    """A user who may read a table, with settings of the owner's choice."""
    user = role(server, f'SELECT ON "{table}"')
    server.run(*(f'ALTER ROLE "{user}" SET {setting}' for setting in settings), f'ALTER ROLE "{user}" LOGIN {more}')
    return user


def ended(server: Server, table: Any) -> None:
    """End the server's side of a table's connection."""
    (connection,) = table._session.engine._link._held
    server.run(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")


def failing(*words: Any, **settings: Any) -> Any:
    raise OSError("disk full")
