"""PostgreSQL: rows that change while a table is open."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from kernel.engines.postgres.tables import _numbers, ended, failing, make, opened, people, role
from postgres_server import Server

import privet
from privet.errors import BudgetExceeded, DataError, EngineFailed, QuestionError
from privet.kernel import monitor as kernel_monitor
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.postgres import link as postgres_link
from privet.kernel.ledger.ledger import Ledger
from privet.kernel.refinement import Chain


def changed(server: Server, name: str) -> None:
    """Everybody moves from one part to another."""
    server.run(f"UPDATE \"{name}\" SET sex = translate(sex, 'fmx', 'mxf')")


def test_rows_are_those_of_the_opening_whatever_others_write(server: Server) -> None:
    name = people(server, 31)
    with opened(server, name) as table:
        parts = table.partition("sex")
        before = [part.count(300).value for part in parts]
        changed(server, name)
        server.run(f"INSERT INTO \"{name}\" VALUES ('f', 'no', '')")
        assert [part.count(300).value for part in parts] == before == [11, 10, 10]
        assert table.budget.spent == 600
    with opened(server, name) as table:
        assert table.count(300).value == 32


def test_parts_share_nothing_that_was_paid_before_rows_may_have_changed(server: Server) -> None:
    """Otherwise a person who moved meanwhile would be asked about twice, and paid for once."""
    name = people(server)
    with opened(server, name) as table:
        first, second, third = table.partition("sex")
        first.count(300)
        ended(server, table)
        changed(server, name)
        second.count(300)
        assert table.budget.spent == 600
        third.count(300)
        assert table.budget.spent == 600


def test_a_lost_connection_is_made_again_for_rows_in_other_cells(server: Server) -> None:
    """Also with a copy of a column, which the server does not have; and parts share nothing that was paid before."""
    name = make(server, "age int4", [(age,) for age in range(40)])
    age = Numeric("age", Fraction(0), Fraction(39), Fraction(1), bins=2)
    with opened(server, name, Domain((age,))) as table:
        copied = table.with_cells(Domain((age, replace(age, name="again", bins=4))), {"again": "age"})
        first, second, *_ = copied.partition("again")
        assert first.count(200) == 10
        ended(server, table)
        server.run(f'UPDATE "{name}" SET age = (age + 10) % 40')
        assert second.count(200) == 10 and table.budget.spent == 400
        assert copied.histogram("again", epsilon=200).values.tolist() == [10] * 4


def test_counts_of_rows_as_they_were_are_not_recalled(server: Server) -> None:
    name = people(server)
    with opened(server, name, budget=3000) as table:
        assert table.histogram("sex", "ill", epsilon=900).values.sum() == 30
        ended(server, table)
        server.run(f"INSERT INTO \"{name}\" VALUES ('f', 'no', '')")
        assert table.partition("sex").count(900).array().tolist() == [11, 10, 10]


def test_an_answer_about_other_rows_is_given_only_where_it_was_paid_in_full(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = people(server)
    lost = postgres_link._lost

    def moving(error: BaseException, connection: Any) -> bool:
        changed(server, name)
        return lost(error, connection)

    with opened(server, name, budget=3000) as table:
        first, second, _ = table.partition("sex")
        first.count(300)
        monkeypatch.setattr(postgres_link, "_lost", moving)
        monkeypatch.setattr(postgres_link, "_lives", lambda connection: True)  # its end is heard of in the statement
        ended(server, table)
        with pytest.raises(EngineFailed, match=r"entry 2 \(epsilon=300\) stands: the rows may have changed meanwhile"):
            second.count(300, key="k")  # it shared what the first part had paid
        with pytest.raises(QuestionError, match=r"^cannot finish ledger entry 2: .* Ask under another key.$"):
            second.count(300, key="k")
        assert table.budget.spent == 300
        ended(server, table)
        assert second.count(300, key="l").value == 10  # paid in full, and nobody shares it
        assert table.budget.spent == 600
        ended(server, table)
        assert table.count(300).value == 30


def test_a_charge_that_other_parts_may_have_shared_pays_for_no_other_rows(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = people(server)
    with opened(server, name, budget=3000) as table:
        first, second, _ = table.partition("sex")
        with monkeypatch.context() as patch, pytest.raises(OSError, match="disk"):
            patch.setattr(Ledger, "store", failing)
            first.count(300, key="k")
        assert second.count(300).value == 10  # free: the first part has paid
        with pytest.raises(BudgetExceeded):
            table.count(30_000)
        ended(server, table)
        changed(server, name)
        with pytest.raises(QuestionError, match="cannot finish ledger entry 1"):
            first.count(300, key="k")
        assert table.budget.spent == 300


def test_a_refinement_is_drawn_for_the_rows_of_its_first_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they change between the look and the charge."""
    name = people(server)
    with opened(server, name, budget=3000) as table:
        count = table.count(1)
        read = Chain._read

        def lost_afterwards(chain: Any) -> Any:
            found = read(chain)
            ended(server, table)
            changed(server, name)
            return found

        monkeypatch.setattr(Chain, "_read", lost_afterwards)
        with pytest.raises(QuestionError, match="whose rows may have been others"):
            count.refine(2)
        assert len(table.budget.entries) == 1


def test_a_monitor_scores_a_model_on_rows_of_one_version(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = people(server)
    model = privet.kernel.AdditiveModel((0, 0))
    with opened(server, name, budget=3000) as table:
        monitor, of_a_part = table.monitor("0.9", 1), table.partition("sex")[0].monitor("0.9", 1)
        engine, scores, score = table._session.engine, [], kernel_monitor.exact_lead
        right = engine.exact_correct

        def lost_between(query: Any) -> Any:  # how many are right, and how many there are
            found = right(query)
            if not scores:
                ended(server, table)
                server.run(f"DELETE FROM \"{name}\" WHERE ill = 'no'")
            return found

        def scored(*words: Any) -> int:
            scores.append(score(*words))
            return scores[-1]

        monkeypatch.setattr(engine, "exact_correct", lost_between)
        monkeypatch.setattr(kernel_monitor, "exact_lead", scored)
        monitor.reached(model)
        assert scores == [10 * 15 - 9 * 15, -9 * 15]  # the first is of no table, and is not used
        with pytest.raises(QuestionError, match="begun for rows that may have changed"):
            of_a_part.reached(model)


def test_a_race_is_run_on_rows_of_one_version(server: Server) -> None:
    with opened(server, people(server), budget=3000) as table:

        def loses(shadow: Any) -> Any:
            ended(server, table)
            return "", shadow.count(1)

        with pytest.raises(EngineFailed, match="the rows may have changed during the race"):
            privet.kernel.race(table, [loses], 1, stop="0.9")
        assert table.budget.spent == 3


@pytest.mark.parametrize("parent", ["plain", "partitioned", "inherited"])
def test_a_part_that_is_attached_later_is_not_seen(server: Server, parent: str) -> None:
    """It would be, in a transaction that began before, and with it people who were moved into it: twice."""
    name, more = f"parent {next(_numbers)}", f"more {next(_numbers)}"
    first = f"first {next(_numbers)}"
    columns = "sex text, ill text"
    if parent == "partitioned":
        server.run(
            f'CREATE TABLE "{name}" ({columns}) PARTITION BY LIST (sex)',
            f'CREATE TABLE "{first}" PARTITION OF "{name}" FOR VALUES IN (\'f\')',
        )
    else:
        server.run(f'CREATE TABLE "{name}" ({columns})')
        if parent == "inherited":
            server.run(f'CREATE TABLE "{first}" () INHERITS ("{name}")')
    holds = name if parent == "plain" else first
    server.run(
        f"INSERT INTO \"{holds}\" SELECT 'f', 'no' FROM generate_series(1, 10)",
        f'CREATE TABLE "{more}" ({columns})',
        f"INSERT INTO \"{more}\" SELECT 'm', 'no' FROM generate_series(1, 10)",
    )
    attach = f'ALTER TABLE "{more}" INHERIT "{name}"'
    if parent == "partitioned":
        attach = f'ALTER TABLE "{name}" ATTACH PARTITION "{more}" FOR VALUES IN (\'m\')'
    with opened(server, name, budget=3000, user=role(server, f'SELECT ON "{name}"')) as table:
        with server.connect() as connection, connection.transaction():
            connection.execute(f'DELETE FROM "{holds}"')
            connection.execute(attach)
        assert table.partition("sex").count(300).array().tolist() == [10, 0, 0]
    if parent == "plain":
        return
    with opened(server, name, budget=3000) as table:
        assert table.partition("sex").count(300).array().tolist() == [0, 10, 0]
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'privet' AND wait_event_type = 'Lock'"
    with opened(server, name, budget=3000) as table, ThreadPoolExecutor(1) as pool:
        ended(server, table)
        with server.connect() as loader, loader.transaction():  # it was seen as it was, and is another one now
            loader.execute(f'TRUNCATE "{more}"')
            with loader.cursor() as cursor, cursor.copy(f'COPY "{more}" FROM STDIN (FREEZE)') as copy:
                copy.write_row(("m", "yes"))
            answer = pool.submit(lambda: table.partition("sex").count(300).array().tolist())
            while not server.run(waits):
                pass
        assert answer.result() == [0, 0, 0]
    if parent == "partitioned":
        column_alone = role(server, f'SELECT (sex, ill) ON "{name}"')
        with pytest.raises(DataError, match=f'GRANT SELECT ON "public"."{name}" TO "{column_alone}"'):
            opened(server, name, user=column_alone)


def test_a_table_that_was_dropped_meanwhile_is_one_sentence(server: Server) -> None:
    name = people(server)
    with opened(server, name) as table:
        ended(server, table)
        server.run(f'DROP TABLE "{name}"')
        with pytest.raises(DataError) as caught:
            table.count(1)
        assert str(caught.value) == (
            f"there is no table 'public.{name}' of database 'postgres' any more; it was dropped, renamed or moved "
            "since it was opened."
        )
        assert table.budget.spent == 0


def test_a_table_that_was_altered_meanwhile_is_opened_again(server: Server) -> None:
    """What no row can break depends on how a column is stored."""
    table = make(server, "x int", [(i % 9,) for i in range(90)])
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)),))
    with opened(server, table, domain, budget=3000) as opened_table:
        assert opened_table.count(300).value == 90
        ended(server, opened_table)
        server.run(f'ALTER TABLE "{table}" ALTER x TYPE numeric', f'INSERT INTO "{table}" VALUES (1e400)')
        with pytest.raises(DataError, match="was altered since it was opened; open it again"):
            opened_table.count(300)
        assert opened_table.budget.spent == 300
    with opened(server, table, domain, budget=3000) as opened_table:
        assert opened_table.count(300).value == 91
