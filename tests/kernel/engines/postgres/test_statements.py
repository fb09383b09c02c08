"""PostgreSQL: one statement a question, by the log of the server."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernel.engines.postgres.tables import CANARY, engine_of, limited, make, opened, role
from postgres_server import Server
from sizes import long

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Rows, Split

# Beside it a question asks the server for its limit on temporary files, which no row is read for.
STATEMENT = r"LOG:  (?:execute [^:]*|statement): (?!SELECT pg_catalog[.]current_setting\('temp_file_limit')"


def test_every_question_is_one_statement_in_the_servers_own_log(server: Server) -> None:
    eight = tuple(str(i) for i in range(8))
    names = ("a", "b", "c", "d", "e")
    columns = (*(Nominal(name, eight) for name in names), Numeric("x", Fraction(0), Fraction(9), Fraction(1)))
    domain = Domain((*columns, Nominal("y", ("0", "1"))), target="y")
    rows = np.random.default_rng(1).integers(0, 8, (500, 7))
    rows[:, -1] %= 2
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    user = role(server, f'SELECT ON "{table}"')
    server.run(f"ALTER ROLE \"{user}\" SET log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        parts = opened_table.partition("a").partition("b")
        questions = [
            lambda: parts.select("max", 1),
            lambda: parts.count(1),
            lambda: parts.histogram("c", "y", epsilon=1),
            lambda: parts.select("gini", 1, thresholds=True),
            lambda: parts.mean("x", 1),
            lambda: parts.median("x", 1),
            lambda: parts.histograms([[("x",), ("a", "y")]] * 64, 1),
            lambda: parts.partition(parts.select("max", 1)).count(1),
            lambda: parts.select_residuals(privet.kernel.AdditiveModel((0, 0)), [("a",), ("a", "x")], (9, 9), 1),
        ]
        for number, question in enumerate(questions):
            before, entries = log.stat().st_size, len(opened_table.budget.entries)
            question()
            written = log.read_text()[before:]
            asked = len(opened_table.budget.entries) - entries
            assert len(re.findall(STATEMENT, written)) == 1
            assert asked == 1 + (number == 7)  # the sizes of children are known from the tables above them
            assert written.count("WITH numbered AS (") == 1


def test_a_level_of_a_fit_is_one_statement_in_the_servers_own_log(server: Server) -> None:
    """One for the size of the root, and one for each level, whatever the number of nodes and attributes."""
    domain = Domain((*(Nominal(name, (0, 1, 2, 3)) for name in "abcde"), Nominal("y", (0, 1))), target="y")
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, domain[name].size, 5000) for name in domain.names])
    table = make(server, ", ".join(f"{name} int" for name in domain.names), rows.tolist())
    user = role(server, f'SELECT ON "{table}"')
    server.run(f"ALTER ROLE \"{user}\" SET log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        before = log.stat().st_size
        tree = privet.DiffPID3Classifier(500, max_depth=3).fit(opened_table).model_.tree
        assert tree.depth == 3 and tree.leaves == 64
        assert len(re.findall(STATEMENT, log.read_text()[before:])) == 1 + 3


def test_naive_bayes_reads_the_rows_twice_whatever_the_number_of_attributes(server: Server) -> None:
    """Once for the classes, and once for the tables of all attributes."""
    domain = Domain((*(Nominal(f"a{i}", (0, 1)) for i in range(40)), Nominal("y", (0, 1))), target="y")
    rows = np.random.default_rng(1).integers(0, 2, (50, 41))
    table = make(server, ", ".join(f"{name} int" for name in domain.names), rows.tolist())
    user = limited(server, table, "log_statement = 'all'")
    log = server.folder / "log"
    with opened(server, table, domain, user=user) as opened_table:
        before = log.stat().st_size
        model = privet.NaiveBayesClassifier(5).fit(opened_table).model_
        assert len(model.tables) == 40 and opened_table.budget.spent == 5
        assert len(re.findall(STATEMENT, log.read_text()[before:])) == 2


def test_counts_cross_the_wire_and_no_row_does(server: Server, tmp_path: Path) -> None:
    """By libpq's own record of every message: numbers of cells come back, whatever the number of rows."""
    rows = [(CANARY if i % 5 else "f", ["no", "yes"][i % 2], CANARY) for i in range(5000)]
    with opened(server, make(server, "sex text, ill text, name text", rows)) as table:
        (connection,) = table._session.engine._link._held
        with (tmp_path / "wire").open("wb") as record:
            connection.pgconn.trace(record.fileno())
            assert table.histogram("sex", "ill", epsilon=300).values.tolist() == [[500, 500], [0, 0], [2000, 2000]]
            table.select("max", 1)
            connection.pgconn.untrace()
        wire = (tmp_path / "wire").read_text()
    assert 0 < wire.count("CopyData") <= 2 * (1 + 6 + 1) and wire.count("DataRow") == 2  # the server's limit
    assert CANARY not in wire and len(wire) < 20_000


@pytest.mark.parametrize("cells", [1, 30, 10**9])
def test_attributes_are_counted_together_or_a_few_at_a_time(
    server: Server, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the processor has at hand, the statement is one, and counts the same."""
    monkeypatch.setattr("privet.kernel.engines.postgres.engine._AT_HAND", cells)
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), other=True) for i in range(6)))
    rows = np.random.default_rng(3).integers(0, 3, (200, 6))
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    memory = MemoryEngine.from_frame(pd.DataFrame(rows.astype(str), columns=domain.names), domain)
    engine = engine_of(server, table, domain)
    query = CountQuery(Rows().divide([Split("a0")], domain), tuple(itertools.combinations(domain.names, 2)))
    for one, other in zip(engine.exact_counts(query), memory.exact_counts(query), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()


@long
def test_more_groups_than_one_aggregation_takes_are_one_statement(server: Server) -> None:
    domain = Domain(tuple(Nominal(f"a{i}", ("0", "1"), other=True) for i in range(300)))
    rows = np.random.default_rng(2).integers(0, 3, (20, 300))
    table = make(server, ", ".join(f"{name} text" for name in domain.names), rows.tolist())
    memory = MemoryEngine.from_frame(pd.DataFrame(rows.astype(str), columns=domain.names), domain)
    engine = engine_of(server, table, domain)
    singles = [(name,) for name in domain.names]
    query = CountQuery(Rows().scatter(3, 1), (*singles, *itertools.pairwise(domain.names), *singles, ()))
    assert len(query.groups) == 900
    for one, other in zip(engine.exact_counts(query), memory.exact_counts(query), strict=True):
        np.testing.assert_array_equal(one, other)
    engine.close()
