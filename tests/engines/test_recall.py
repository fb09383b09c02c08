"""What is made of earlier counts is what would have been counted, and takes no pass over the rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.column import Nominal, Numeric
from privet.domain import Domain
from privet.kernel.engines import recall
from privet.kernel.engines.duckdb import DuckDBEngine
from privet.kernel.engines.memory import MemoryEngine
from privet.kernel.query import Condition, CountQuery, Counts, Rows, Split

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
    """An engine's counts, with and without a memory, and how often the rows were read."""

    def __init__(self, seed: int = 0, size: int = 200) -> None:
        rng = np.random.default_rng(seed)
        grid = rng.integers(-1, 19, size)
        x = DOMAIN["x"]
        assert isinstance(x, Numeric)
        codes = {"a": rng.integers(0, 4, size), "b": rng.integers(0, 2, size), "y": rng.integers(0, 3, size)}
        self._engine = MemoryEngine(DOMAIN, {**codes, "x": x.bin_of(grid)}, {"x": grid})
        self._recall = recall.Recall(DOMAIN)
        self.passes = 0

    def __call__(self, rows: Rows, *groups: tuple[str, ...]) -> list[Counts]:
        query = CountQuery(rows, groups)
        found = self._recall.counts(query, self._pass)
        for one, other in zip(found, self._engine._counts(query), strict=True):
            assert one.shape == other.shape and (one == other).all()
        return found

    def _pass(self, query: CountQuery) -> list[Counts]:
        self.passes += 1
        return self._engine._counts(query)


steps = st.recursive(
    st.just(Rows()),
    lambda above: above.flatmap(
        lambda rows: st.one_of(
            st.lists(st.sampled_from([None, "a", "b", "x"]), min_size=rows.parts, max_size=rows.parts).map(
                lambda names: rows.divide([None if name is None else Split(name) for name in names], DOMAIN)
            ),
            st.lists(st.integers(0, max(rows.parts - 1, 0)), unique=True, max_size=rows.parts).map(rows.keep),
            st.just(rows.keep(range(rows.parts), (Condition("b", (1,)),))),
            st.just(rows.divide([Split("x", (3, 9))] * rows.parts, DOMAIN)),
            st.just(rows.scatter(2, 5)),
        )
    ),
    max_leaves=5,
)
GROUPS = [(), ("y",), ("a",), ("y", "b"), ("b", "y"), ("a", "b", "y"), ("x", "a")]


@settings(deadline=None, max_examples=150)
@given(st.data(), st.integers(0, 2**32), steps)
def test_it_is_what_would_have_been_counted(data: st.DataObject, seed: int, rows: Rows) -> None:
    """Any questions to a chain of rows, in any order."""
    chain = [rows]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    ask = Asked(seed, data.draw(st.integers(0, 40)))
    for _ in range(6):
        ask(data.draw(st.sampled_from(chain)), *data.draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=3)))


def test_a_tree_takes_a_pass_for_its_root_and_one_for_each_level() -> None:
    ask = Asked()
    ask(Rows(), ())
    rows = Rows()
    for level, names in enumerate([["a"], ["b", "x", "b", "b"]]):
        ask(rows, *LEVEL)
        rows = rows.divide([Split(name) for name in names], DOMAIN)
        ask(rows, ())
        ask(rows.keep([2, 0]), ("y",))  # of leaves
        assert ask.passes == level + 2


def test_rows_that_were_not_counted_by_their_split_are_asked_about() -> None:
    ask = Asked()
    ask(Rows(), ("a", "y"), ("x", "y"))
    for parts in (
        Rows().divide([Split("b")], DOMAIN),
        Rows().divide([Split("x", (4,))], DOMAIN),
        Rows().keep([0], (Condition("a", (1,)),)),
        Rows().scatter(2, 1),
    ):
        before = ask.passes
        ask(parts, ())
        assert ask.passes == before + 1


def test_large_tables_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "_LARGEST", 11)
    ask = Asked()
    ask(Rows(), ("a", "y"))
    ask(Rows().divide([Split("a")], DOMAIN), ())
    assert ask.passes == 2


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
    path: str, tmp_path: Path, record_statements: Callable[[Any], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for the size of the root, and one for each level, whatever the number of nodes and attributes."""
    domain = Domain((*(Nominal(name, (0, 1, 2, 3)) for name in "abcde"), Nominal("y", (0, 1))), target="y")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({name: rng.integers(0, domain[name].size, 5000) for name in domain.names})
    rows.to_csv(tmp_path / "t.csv", index=False)
    passes: list[object] = []
    read = DuckDBEngine._batches
    monkeypatch.setattr(
        DuckDBEngine, "_batches", lambda self, columns: (passes.append(columns), read(self, columns))[1]
    )
    with privet.open(tmp_path / "t.csv", domain, budget=1000, path=path) as table:
        statements = record_statements(table._session.engine) if path == "push-down" else []
        tree = privet.DiffPID3Classifier(500, max_depth=3).fit(table).model_.tree
        assert tree.depth == 3 and tree.leaves == 64
        numbered = [each for each in statements if each.startswith("CREATE TABLE nodes")]
        assert len(passes) + len(statements) - len(numbered) == 1 + 3
        assert len(numbered) == (2 if path == "push-down" else 0)  # the children of the last level are not asked about
