"""What is made of earlier counts is what would have been counted, and takes no pass over the rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.engines.comparison import ask, assert_same, memory_of

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Counts
from privet.kernel.engines.memory import engine as memory
from privet.kernel.engines.memory.engine import MemoryEngine, Recall
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.engines.sql import statement
from privet.kernel.rows import Condition, Rows, Split

DOMAIN = Domain(
    (
        Nominal("a", (0, 1, 2), other=True),
        Nominal("b", ("p", "q")),
        Numeric("x", Fraction(0), Fraction(9), Fraction(1, 2), bins=4, missing=True),
        Nominal("y", ("no", "yes", "maybe")),
    ),
    target="y",
)
LEVEL = tuple((name, "y") for name in ("a", "b", "x"))


class Asked:
    """Counts with a memory, which must be those of the reference, and how often the rows were read."""

    def __init__(self, seed: int = 0, size: int = 200) -> None:
        rng = random.Random(seed)
        numbers = [None, *(half / 2 for half in range(19))]
        values = [[0, 1, 2, "another"], ["p", "q"], numbers, ["no", "yes", "maybe"]]
        self._reference = ReferenceEngine(DOMAIN, [[rng.choice(each) for each in values] for _ in range(size)])
        self._engine = memory_of(self._reference)
        self._recall = Recall(DOMAIN)
        self.passes = 0

    def __call__(self, rows: Rows, *groups: tuple[str, ...]) -> list[Counts]:
        query = CountQuery(rows, groups)
        found = self._recall.counts(query, self._pass)
        assert_same(found, ask(self._reference, query))
        return found

    def _pass(self, query: CountQuery) -> list[Counts]:
        self.passes += 1
        return self._engine._counts(query)


@st.composite
def chains(draw: st.DrawFn) -> list[Rows]:
    """The whole table, parts of it, parts of these ..."""
    chain = [Rows()]
    for _ in range(draw(st.integers(0, 4))):
        above = chain[-1]
        names = st.lists(st.sampled_from([None, "a", "b", "x"]), min_size=above.parts, max_size=above.parts)
        some = st.lists(st.integers(0, max(above.parts - 1, 0)), unique=True, max_size=above.parts)
        below = st.one_of(
            names.map(lambda each, above=above: above.divide([name and Split(name) for name in each], DOMAIN)),
            some.map(above.keep),
            st.just(above.keep(range(above.parts), (Condition("b", (1,)),))),
            st.just(above.divide([Split("x", (3, 9))] * above.parts, DOMAIN)),
            st.just(above.scatter(2, 5)),
        )
        chain.append(draw(below))
    return chain


GROUPS = [(), ("y",), ("a",), ("y", "b"), ("b", "y"), ("a", "b", "y"), ("x", "a")]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.data(), st.integers(0, 2**32), chains())
def test_it_is_what_would_have_been_counted(data: st.DataObject, seed: int, chain: list[Rows]) -> None:
    """Any questions to a chain of rows, in any order."""
    asked = Asked(seed, data.draw(st.integers(0, 40)))
    for _ in range(6):
        asked(data.draw(st.sampled_from(chain)), *data.draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=3)))


def test_a_tree_takes_a_pass_for_its_root_and_one_for_each_level() -> None:
    asked = Asked()
    asked(Rows(), ())
    rows = Rows()
    for level, names in enumerate([["a"], ["b", "x", "b", "b"]]):
        asked(rows, *LEVEL)
        rows = rows.divide([Split(name) for name in names], DOMAIN)
        asked(rows, ())
        asked(rows.keep([2, 0]), ("y",))  # of leaves
        assert asked.passes == level + 2


def test_parts_that_are_all_closed_have_no_cells() -> None:
    assert [table.shape for table in Asked()(Rows().divide([None], DOMAIN), ("y", "b"), ("a", "y"))] == [
        (0, 3, 2),
        (0, 4, 3),
    ]


def test_rows_that_were_not_counted_by_their_split_are_asked_about() -> None:
    asked = Asked()
    asked(Rows(), ("a", "y"), ("x", "y"))
    for parts in (
        Rows().divide([Split("b")], DOMAIN),
        Rows().divide([Split("x", (4,))], DOMAIN),
        Rows().keep([0], (Condition("a", (1,)),)),
        Rows().scatter(2, 1),
    ):
        before = asked.passes
        asked(parts, ())
        assert asked.passes == before + 1


def test_large_tables_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_LARGEST", 11)
    asked = Asked()
    asked(Rows(), ("a", "y"))
    asked(Rows().divide([Split("a")], DOMAIN), ())
    assert asked.passes == 2


def test_nothing_is_recalled_of_rows_that_are_drawn_anew() -> None:
    """A copy of the engine with other rows has a memory of its own."""
    engine = MemoryEngine.from_frame(
        pd.DataFrame({"a": [0, 1, 2], "b": ["p", "q", "q"], "x": [1.0, 2.0, 3.0], "y": ["no", "yes", "no"]}), DOMAIN
    )
    engine.exact_counts(CountQuery(Rows(), LEVEL))
    children = CountQuery(Rows().divide([Split("a")], DOMAIN), ((),))
    drawn = [engine.resampled(seed) for seed in range(8)]
    for each in drawn:
        assert (each.exact_counts(children)[0] == each._counts(children)[0]).all()
    assert any((each.exact_counts(children)[0] != engine.exact_counts(children)[0]).any() for each in drawn)


@pytest.mark.parametrize("path", ["push-down", "stream"])
def test_a_level_of_a_fit_is_one_statement(
    path: str, tmp_path: Path, statements: Callable[[Any], Callable[[], list[str]]]
) -> None:
    """One for the size of the root, and one for each level, whatever the number of nodes and attributes."""
    domain = Domain((*(Nominal(name, (0, 1, 2, 3)) for name in "abcde"), Nominal("y", (0, 1))), target="y")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({name: rng.integers(0, domain[name].size, 5000) for name in domain.names})
    rows.to_csv(tmp_path / "t.csv", index=False)
    with privet.open(tmp_path / "t.csv", domain, budget=1000, access=path) as table:
        engine: Any = table._session.engine
        log = statements(engine if path == "push-down" else engine._batches.__self__)
        tree = privet.DiffPID3Classifier(500, max_depth=3).fit(table).model_.tree
        assert tree.depth == 3 and tree.leaves == 64
        numbered = [each for each in log() if each.startswith("CREATE TABLE nodes")]
        assert len(log()) - len(numbered) == 1 + 3
        assert len(numbered) == (2 if path == "push-down" else 0)  # the children of the last level are not asked about


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(GROUPS), min_size=1), st.sampled_from([1, 20, 100, 10**4]))
def test_margins_of_larger_tables_are_the_tables_that_were_asked_for(seed: int, groups: Any, cells: int) -> None:
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, DOMAIN[name].size, 50) for name in DOMAIN.names}
    engine = MemoryEngine(DOMAIN, codes, {"x": np.zeros(50, dtype=np.int32)})
    query = CountQuery(Rows().divide([Split("b")], DOMAIN), tuple(groups))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statement, "_CELLS", cells)
        larger = statement.together(query, DOMAIN)
        found = statement.asked_together(query, DOMAIN, engine._counts)
    assert sum(len(held) for held in larger.values()) == len(set(groups))
    for one, other in zip(found, engine._counts(query), strict=True):
        assert one.shape == other.shape and (one == other).all()


def test_tables_are_counted_together_while_they_are_small() -> None:
    """14 attributes of 8 values: 4 tables for one node, one for each attribute where nodes are many."""
    eight = tuple(range(8))
    domain = Domain((*(Nominal(f"a{i}", eight) for i in range(14)), Nominal("y", (0, 1))), target="y")
    level = tuple((f"a{i}", "y") for i in range(14))
    tables = {parts: len(statement.together(CountQuery(Rows(parts), level), domain)) for parts in (1, 8, 64, 512, 4096)}
    assert tables == {1: 4, 8: 5, 64: 7, 512: 14, 4096: 14}


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "duckdb"])
def test_nobody_changes_what_is_kept_and_a_closed_engine_keeps_nothing(stored: bool, tmp_path: Path) -> None:
    """An answer that a caller changed would be part of later ones; counts of a closed table have no reason to be."""
    frame = pd.DataFrame({"a": [0, 1], "b": ["p", "q"], "x": [1.0, 2.0], "y": ["no", "yes"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    table = privet.open(tmp_path / "rows.csv" if stored else frame, DOMAIN, budget=10)
    engine: Any = table._session.engine
    (exact,) = engine.exact_counts(CountQuery(Rows(), (("a", "y"),)))
    assert not exact.flags.writeable
    assert engine._recall._tables
    table.close()
    assert not engine._recall._tables
