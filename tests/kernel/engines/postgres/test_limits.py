"""PostgreSQL: limits of a role or a server that a number of rows would meet."""

from __future__ import annotations

from fractions import Fraction
from urllib.parse import quote

import pytest
from kernel.engines.postgres.tables import engine_of, limited, make, opened, raising, said
from postgres_server import Server
from sqlglot import exp

from privet.errors import DataError, EngineFailed
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import GridQuery, SumQuery
from privet.kernel.engines.postgres import link as postgres_link
from privet.kernel.engines.sql import sql
from privet.kernel.rows import Condition, Rows

WIDE = Domain((Numeric("w", Fraction(0), Fraction(2**20), Fraction(1)), Nominal("y", ("a", "b"))), target="y")
SMALL_MEMORY = {"options": quote("-c work_mem=64kB")}


def wide(server: Server, rows: int) -> str:
    return make(server, "w int, y text", ((i, "ab"[i % 2]) for i in range(rows)))


def searched(server: Server, table: str, user: str) -> list[str]:
    """What an analyst sees who searches for the number of rows at which an answer becomes an error."""
    seen = []
    with opened(server, table, WIDE, user=user, parameters=SMALL_MEMORY) as opened_table:
        low, high = 0, 2**15
        while high - low > 1:
            middle = (low + high) // 2
            try:
                opened_table.where(w=(None, middle)).median("w", "1e-9")
                low = middle
            except EngineFailed:
                high = middle
            seen.append("answered" if low == middle else "failed")
    return seen


def test_a_limit_on_temporary_files_tells_no_number_of_rows(server: Server) -> None:
    """It answered a median of 8,219 rows and failed for 8,220, each time: a bisection found the number for nothing."""
    for rows in (8_000, 12_000):
        table = wide(server, rows)
        user = limited(server, table, "temp_file_limit = '256kB'")
        for _ in range(2):
            with pytest.raises(DataError) as caught:
                searched(server, table, user)
            assert str(caught.value) == (
                f"the server ends every statement of user '{user}' whose temporary files are larger than 256kB, so "
                "that the number of rows would decide which questions are answered; its superuser lifts the limit "
                f'with ALTER ROLE "{user}" SET temp_file_limit = -1.'
            )
            said(caught.value)
        server.run(f'ALTER ROLE "{user}" SET temp_file_limit = -1')
        assert set(searched(server, table, user)) == {"answered"}


def test_a_limit_that_the_user_may_lift_is_lifted(server: Server) -> None:
    table = wide(server, 12_000)
    user = limited(server, table, "temp_file_limit = '256kB'", more="SUPERUSER")
    assert set(searched(server, table, user)) == {"answered"}


def test_a_limit_that_is_set_meanwhile_fails_every_question_alike(mortal: Server) -> None:
    """Also those that stay below it: an answer would tell that the others did not."""
    table = wide(mortal, 12_000)
    try:
        for rows in (1, 2**20):
            user = limited(mortal, table)
            with opened(mortal, table, WIDE, user=user, parameters=SMALL_MEMORY) as opened_table:
                assert opened_table.count(300).value == 12_000
                mortal.run("ALTER SYSTEM SET temp_file_limit = '256kB'", "SELECT pg_reload_conf()")
                link = opened_table._session.engine._link
                while link.rows("SHOW temp_file_limit", ()) != [("256kB",)]:
                    pass
                with pytest.raises(EngineFailed, match=r"could not answer .* entry 2 .*: a new try is a new charge.$"):
                    opened_table.where(w=(None, rows)).median("w", 1)
                assert opened_table.budget.spent == 301
                with pytest.raises(DataError, match="SET temp_file_limit = -1"):
                    opened_table.count(1)
                assert opened_table.budget.spent == 301
            mortal.run("ALTER SYSTEM RESET temp_file_limit", "SELECT pg_reload_conf()")
            while mortal.run("SHOW temp_file_limit") != [("-1",)]:
                pass
    finally:
        mortal.run("ALTER SYSTEM RESET temp_file_limit", "SELECT pg_reload_conf()")


def test_no_time_out_of_a_role_or_an_address_ends_a_question(server: Server) -> None:
    view = raising(server, "PERFORM pg_sleep(0.001);")
    outs = ["statement_timeout", "lock_timeout", "transaction_timeout", "idle_session_timeout"]
    user = limited(server, view, *(f"{each} = '20ms'" for each in outs if each != "idle_session_timeout"))
    server.run(f"ALTER ROLE \"{user}\" SET idle_session_timeout = '1h'")
    options = quote("-c statement_timeout=20ms -c enable_parallel_hash=on")
    with opened(server, view, user=user, parameters={"options": options}) as table:
        link = table._session.engine._link
        assert [link.rows(f"SHOW {each}", ())[0][0] for each in outs] == ["0"] * 4
        assert link.rows("SHOW enable_parallel_hash", ()) == [("off",)]  # its memory is what /dev/shm has
        assert link.rows("SHOW client_connection_check_interval", ()) == [("10s",)]
        assert table.count(300).value == 30


def test_a_sum_stops_at_the_largest_whole_number(server: Server) -> None:
    """A few billion rows of a fine grid reach it; PostgreSQL would end the statement."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))
    engine = engine_of(server, make(server, "x int"), domain)
    for values in ([2**62, 2**62 - 1], [2**62, 2**62], [2**63 - 1] * 3):
        rows = exp.values([(value, 0) for value in values], alias="huge", columns=["g0", "node"])
        found = sql.read_sums(
            engine._fetch(sql.sums(SumQuery(Rows(), "x"), exp.From(this=rows), domain)), SumQuery(Rows(), "x")
        )
        assert [each.tolist() for each in found] == [[len(values)], [2**63 - 1]]
    engine.close()


def test_no_idle_time_out_ends_a_transaction_while_noise_for_many_values_is_drawn(server: Server) -> None:
    """The question would be asked again, and fail. It is so for any number of values, for a lost one shows."""
    idle = "SHOW idle_in_transaction_session_timeout"
    for rows in (0, 101):
        with opened(server, wide(server, rows), WIDE) as table:
            link = table._session.engine._link
            for ask, expected in (
                (table.count, "5min"),
                (lambda e, t=table: t.median("w", e), "0"),
                (table.count, "5min"),
            ):
                ask(1)
                assert link.rows(idle, ()) == [(expected,)]


@pytest.mark.parametrize("chunk", [1, 100, 2**22])
def test_answers_of_any_length_are_read_in_batches(server: Server, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "_CHUNK", chunk)
    engine = engine_of(server, wide(server, 300), WIDE)
    (found,) = engine.exact_grid(GridQuery(Rows(), ("w",), "y"))
    assert found.index.tolist() == list(range(300)) and found.exact_counts.tolist() == [[1, 0], [0, 1]] * 150
    nothing = Rows().keep([0], (Condition("w", None, 2**19, 2**20),))
    assert engine.exact_grid(GridQuery(nothing, ("w",)))[0].index.tolist() == []
    for broken in ("SELECT 1 AS n UNION ALL SELECT NULL", "SELECT NULL::int AS n"):
        with pytest.raises(ValueError, match=r"^(a field|a record|the copy) "):
            engine._link.numbers(broken, ["n"])
    engine.close()
