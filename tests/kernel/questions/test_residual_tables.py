"""Residual sums of many tables: alike on every engine; one record moves them by no more than the noise is for."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet.errors import BudgetExceeded, QuestionError
from privet.kernel import AdditiveModel, Domain, Nominal, Numeric, PerPart, Rho, Rows, unit_with
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.questions.released_models import (
    MergedColumn,
    MergedTables,
    ResidualTablesQuestion,
    TopTablesQuestion,
    exact_sums,
    lengths,
    squared_reach,
)
from privet.kernel.rows import Split
from privet.kernel.zcdp import LARGEST_RHO

CAP = 512
UNIT = unit_with(Fraction(1, 10**6))


def domain_of(classes: int) -> Domain:
    age = Numeric("age", Fraction(0), Fraction(8), Fraction(1), bins=8)
    named = Nominal("b", ("x", "y", "z")), Nominal("c", ("k", "l")), Nominal("y", tuple(range(classes)))
    return Domain((age, *named), target="y")


def rows_of(classes: int, count: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {name: rng.choice(values, count) for name, values in (("age", range(8)), ("b", [*"xyz"]), ("c", [*"kl"]))}
    return pd.DataFrame({**columns, "y": rng.integers(0, classes, count)})


def model_of(domain: Domain, seed: int) -> AdditiveModel:
    rng, classes = np.random.default_rng(seed), len(domain.classes)
    tables = ((("age",), (8, classes)), (("b", "age"), (3, 8, classes)))
    terms = tuple((columns, rng.integers(-4000, 4000, shape)) for columns, shape in tables)
    return AdditiveModel(tuple(rng.integers(-2000, 2000, classes).tolist()), terms)


HALVES, THIRDS = tuple(code >> 1 for code in range(8)), tuple(code % 3 for code in range(8))
TABLES = (
    (),
    (MergedColumn("age"),),
    (MergedColumn("age", HALVES),),
    (MergedColumn("b"), MergedColumn("age", THIRDS)),
    (MergedColumn("age", HALVES), MergedColumn("b", (0, 0, 1))),
    (MergedColumn("c"), MergedColumn("age", THIRDS), MergedColumn("b")),
)


def plain_sums(frame: pd.DataFrame, domain: Domain, model: AdditiveModel) -> Iterator[tuple[Any, Any]]:
    """The same sums row by row, from residuals of the reference engine: [cell] -> number for each sign."""
    from privet.kernel.engines.contract import ResidualQuery
    from privet.kernel.engines.reference import residuals_of

    engine = ReferenceEngine(domain, frame.itertuples(index=False))
    classes = len(domain.classes)
    query = ResidualQuery(Rows(), model, (("age",),), "y", (CAP,) * classes)
    for table in TABLES:
        sizes = [column.size(domain) for column in table]
        positive = np.zeros((*sizes, classes), dtype=np.int64)
        negative = np.zeros_like(positive)
        for row in engine.rows:
            own, shares = residuals_of(row, query)
            cell = tuple(
                row.codes[column.name] if column.codes is None else column.codes[row.codes[column.name]]
                for column in table
            )
            label = row.codes["y"]
            positive[(*cell, label)] += own
            if classes == 2:
                negative[(*cell, 1 - label)] += own
            else:
                negative[cell] += np.array(shares)
        yield positive, negative


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("shortcuts", [True, False])
def test_merged_sums_are_those_of_single_rows(classes: int, shortcuts: bool) -> None:
    """All tables, of every engine in memory: the sums by hand, and the signs apart."""
    domain, frame = domain_of(classes), rows_of(classes, 60)
    model = model_of(domain, 1)
    engines = (
        ReferenceEngine(domain, frame.itertuples(index=False)),
        MemoryEngine.from_frame(frame, domain, shortcuts=shortcuts),
    )
    for engine in engines:
        found = exact_sums(engine, Rows(), domain, model, TABLES, CAP)
        for (positive, negative), (own, others) in zip(found, plain_sums(frame, domain, model), strict=True):
            numbers = slice(1, 2) if classes == 2 else slice(None)
            assert positive[0].ravel().tolist() == own[..., numbers].ravel().tolist()
            assert negative[0].ravel().tolist() == others[..., numbers].ravel().tolist()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_one_record_moves_every_table_by_no_more_than_the_noise_is_for(classes: int) -> None:
    """300 random models and records, with signs and without: the largest use of the bound is nearly all of it."""
    domain = domain_of(classes)
    bound, used, moved = squared_reach(CAP, domain), 0.0, 0
    for seed in range(300):
        frame, model = rows_of(classes, 12, seed), model_of(domain, seed)
        with_one, without = (
            [pair for pair in exact_sums(MemoryEngine.from_frame(rows, domain), Rows(), domain, model, TABLES, CAP)]
            for rows in (frame, frame[:-1])
        )
        for (positive, negative), (less_positive, less_negative) in zip(with_one, without, strict=True):
            signed = (positive - negative) - (less_positive - less_negative)
            apart = ((positive - less_positive) ** 2).sum() + ((negative - less_negative) ** 2).sum()
            assert (signed**2).sum() <= bound and apart <= bound
            used = max(used, float((signed**2).sum() / bound))
            scores = [lengths(p - n).sum() for p, n in ((positive, negative), (less_positive, less_negative))]
            moved = max(moved, abs(int(scores[0] - scores[1])))
    root = math.isqrt(bound)
    assert used > 0.95 and 0.9 * root < moved <= root + (root**2 < bound)


def test_the_reach_of_a_score_is_the_next_whole_number() -> None:
    for classes, reach in ((2, 512), (3, 725)):
        question = TopTablesQuestion(model_of(domain_of(classes), 1), (TABLES[1],), 1, CAP, (0,))
        (mechanism,) = question.mechanisms(domain_of(classes), PerPart.same(Fraction(1, 100), 1), UNIT)
        assert mechanism.sensitivity == reach and not mechanism.monotone
        assert mechanism.rho <= Fraction(1, 100)


def test_the_noise_of_each_table_is_made_for_its_rho() -> None:
    domain = domain_of(3)
    rhos = (*(Fraction(1, number) for number in (100, 50, 1000, 7, 3, 9)),)
    for apart in (False, True):
        question = ResidualTablesQuestion(model_of(domain, 1), TABLES, rhos, CAP, apart)
        (mechanism,) = question.mechanisms(domain, PerPart.same(sum(rhos) / 4, 1), UNIT)  # a person with two records
        assert mechanism.rhos == tuple(rho / 4 for rho in rhos) and mechanism.rho == sum(rhos) / 4
        assert [noise.variance for noise in mechanism.noises] == [2 * CAP**2 * 4 / (2 * rho) for rho in rhos]
        assert mechanism.sizes == tuple(3 * (2 if apart else 1) * cells for cells in (1, 8, 4, 9, 8, 18))


@pytest.mark.parametrize("classes", [2, 4])
def test_answers_have_the_shape_of_their_tables_and_cost_the_sum_of_their_rhos(classes: int) -> None:
    domain, frame = domain_of(classes), rows_of(classes, 3000)
    numbers = 1 if classes == 2 else classes
    tables = [(), ("age",), [("age", HALVES)], ("b", ("age", np.array(THIRDS)))]
    with privet.open(frame, domain, budget=20, delta="1e-6") as table:
        model = model_of(domain, 3)
        answer = table.residual_tables(model, tables, ["0.1", 0.2, Rho("0.3"), Fraction(1, 7)])
        assert table.budget.spent == Fraction(6, 10) + Fraction(1, 7) == answer.rho
        assert [own.sums.shape for own in answer.tables] == [(numbers,), (8, numbers), (4, numbers), (3, 3, numbers)]
        apart = table.residual_tables(model, tables[:2], [1, 1], signs_apart=True)
        assert apart.tables[1].positive.shape == apart.tables[1].negative.shape == (8, numbers)
        engine = MemoryEngine.from_frame(frame, domain)
        exact = exact_sums(engine, Rows(), domain, model, ((), (MergedColumn("age"),)), CAP)
        for own, (positive, negative) in zip(apart.tables, exact, strict=True):
            for noisy, true in ((own.positive, positive), (own.negative, negative)):
                assert np.abs(noisy.ravel() - true.ravel()).max() < 9 * own.deviation
        parts = table.partition("b").residual_tables(model, [()], ["0.5"])
        assert len(parts) == 3 and table.budget.entries[-1].loss == Fraction(1, 2)
        assert isinstance(answer.to_dict()["tables"], list) and "epsilon" in repr(answer)


def test_the_tables_in_which_a_model_errs_most_are_found() -> None:
    """With noise that decides nothing: the three scores are far apart, and a penalty turns them round."""
    domain = domain_of(2)
    frame = rows_of(2, 4000).assign(y=lambda rows: (rows["age"] > 3).astype(int))
    with privet.open(frame, domain, budget=900, delta="1e-6") as table:
        offered = [("b",), ("age",), [("age", (0,) * 8)]]
        best = table.top_residual_tables(AdditiveModel((0, 0)), offered, 1, Rho(50))
        assert best.indices == (1,) and best.names == ("age",) and best.value == [1]
        best = table.top_residual_tables(
            AdditiveModel((0, 0)), offered, 2, Rho(50), penalties=[0, 10**9, np.int64(5 * 10**8)]
        )
        assert best.indices == (0, 2)
        assert table.parts().top_residual_tables(AdditiveModel((0, 0)), offered, 1, Rho(50))[0].indices == (1,)


def test_long_sums_have_exact_lengths() -> None:
    """Squares beyond what a float, or 64 bits, hold."""
    vectors = np.array([[2**40, 2**40 + 1, 1], [3, 4, 0], [94906267, 94906266, 1], [2**31, 2**31, 2**31]])
    for own in (vectors, vectors[1:2], np.array([[3, 4, 12]])):
        expected = [math.isqrt(sum(value**2 for value in vector)) for vector in own.tolist()]
        assert lengths(own).tolist() == expected
    rng = np.random.default_rng(0)
    small = rng.integers(-20000, 20000, (5000, 3))
    assert lengths(small).tolist() == [math.isqrt(sum(v * v for v in vector)) for vector in small.tolist()]


def test_tables_of_too_many_cells_are_refused_before_any_array_is_made() -> None:
    """Else a question that is never charged takes the memory of a server; all rows are read from a table, too."""
    wide = Numeric("wide", Fraction(0), Fraction(2**16), Fraction(1), bins=2**16)
    few = tuple(Nominal(f"c{number}", ("k", "l")) for number in range(200))
    domain = Domain((wide, *few, Nominal("y", (0, 1))), target="y")
    tables = MergedTables((MergedColumn("wide"), MergedColumn(column.name)) for column in few)
    tracemalloc.start()
    try:
        with pytest.raises(QuestionError, match="this needs 26214400 cells"):
            tables.layout(domain)
        assert tracemalloc.get_traced_memory()[1] < 10**7  # the arrays would take ten times as much
    finally:
        tracemalloc.stop()
    assert MergedTables([()]).layout(domain).fine_cells == 2**16


WRONG: list[tuple[str, Any]] = [
    ("at least one table", lambda t, m: t.residual_tables(m, [], ["0.1"])),
    ("a rho above 0", lambda t, m: t.residual_tables(m, [()], ["0.1", "0.1"])),
    ("rho must be a number above 0", lambda t, m: t.residual_tables(m, [()], [0])),
    ("epsilon must be a number", lambda t, m: t.residual_tables(m, [()], [])),
    ("at most four different columns", lambda t, m: t.residual_tables(m, [("age", "age")], ["0.1"])),
    ("at most four different columns", lambda t, m: t.residual_tables(m, [tuple("abcde")], ["0.1"])),
    ("may not look at the target", lambda t, m: t.residual_tables(m, [("y",)], ["0.1"])),
    ("whole numbers, one for each of its cells", lambda t, m: t.residual_tables(m, [[("age", (0, 1))]], ["0.1"])),
    ("without a gap", lambda t, m: t.residual_tables(m, [[("age", (0, 2) * 4)]], ["0.1"])),
    ("every table once", lambda t, m: t.residual_tables(m, [("age",), ("age",)], ["0.1", "0.1"])),
    ("every table once", lambda t, m: t.top_residual_tables(m, [("age",), ("age",)], 1, "0.1")),
    ("a cap is a whole number", lambda t, m: t.residual_tables(m, [()], ["0.1"], cap=2000)),
    ("its name with the merged cell", lambda t, m: t.residual_tables(m, [[("age", 3)]], ["0.1"])),
    ("one to four different columns", lambda t, m: t.top_residual_tables(m, [()], 1, "0.1")),
    ("k is a whole number from 1 to 1", lambda t, m: t.top_residual_tables(m, [("age",)], 2, "0.1")),
    ("penalties are", lambda t, m: t.top_residual_tables(m, [("age",)], 1, "0.1", penalties=[0.5])),
    ("an AdditiveModel", lambda t, m: t.residual_tables("m", [()], ["0.1"])),
]


@pytest.mark.parametrize(("text", "ask"), WRONG, ids=[f"{text} {number}" for number, (text, _) in enumerate(WRONG)])
def test_what_does_not_fit_is_refused_before_a_charge(text: str, ask: Any) -> None:
    domain = domain_of(2)
    with privet.open(rows_of(2, 5), domain, budget=1, delta="1e-6") as table:
        with pytest.raises(QuestionError, match=text):
            ask(table, model_of(domain, 1))
        with pytest.raises(BudgetExceeded):
            table.residual_tables(model_of(domain, 1), [()], [5])
        assert not table.budget.entries


def test_rhos_that_make_long_sums_are_refused() -> None:
    """The sum of n fractions of 60 digits has 60 n, and each table is divided by it: days, for 4000 of them."""
    domain, tables = domain_of(2), tuple((MergedColumn("age", codes),) for codes in itertools.islice(_merges(), 100))
    odd = tuple(Fraction(1, 10**59 + 2 * number + 1) for number in range(len(tables)))
    for rhos in (odd, (LARGEST_RHO + 1,) * len(tables)):
        with pytest.raises(QuestionError, match="a rho above 0"):
            ResidualTablesQuestion(model_of(domain, 1), tables, rhos, CAP).check(domain, Rows())
    own = tuple(Rho(rho * 10**59).value for rho in odd)
    ResidualTablesQuestion(model_of(domain, 1), tables, own, CAP).check(domain, Rows())


def _merges() -> Iterator[tuple[int, ...]]:
    """Yield different ways to merge eight cells into two."""
    return ((0, 1, *codes) for codes in itertools.product((0, 1), repeat=6))


def test_tables_of_many_cells_count_each_by_itself() -> None:
    """They share one fine table, and each is merged from it."""
    columns = [
        Numeric(name, Fraction(0), Fraction(bins), Fraction(1), bins=bins) for name, bins in (("n", 1024), ("m", 512))
    ]
    wide = Domain((*columns, Nominal("y", (0, 1))), target="y")
    codes = [(0,) * (1023 - first) + (1,) * (first + 1) for first in range(5)]
    model, tables = AdditiveModel((0, 0)), tuple((MergedColumn("n", own), MergedColumn("m")) for own in codes)
    ResidualTablesQuestion(model, tables[:4], (Fraction(1),) * 4, CAP).check(wide, Rows())
    with pytest.raises(QuestionError, match="at most 8388608"):
        ResidualTablesQuestion(model, tables, (Fraction(1),) * 5, CAP).check(wide, Rows())


def test_a_key_finds_the_answer_and_other_rhos_are_another_question() -> None:
    domain = domain_of(2)
    with privet.open(rows_of(2, 50), domain, budget=1, delta="1e-6") as table:
        asked = [table.residual_tables(model_of(domain, 1), [()], ["0.001"], key="k") for _ in range(2)]
        assert asked[0].tables[0].sums.tolist() == asked[1].tables[0].sums.tolist()
        assert len(table.budget.entries) == 1
        with pytest.raises(privet.errors.KeyReused):
            table.residual_tables(model_of(domain, 1), [()], ["0.002"], key="k")


def test_parts_have_their_own_sums() -> None:
    domain, frame = domain_of(3), rows_of(3, 90)
    model, engine = model_of(domain, 2), MemoryEngine.from_frame(frame, domain)
    parts = Rows().divide([Split("b")], domain)
    for table, (positive, _) in zip(TABLES, exact_sums(engine, parts, domain, model, TABLES, CAP), strict=True):
        for part, value in itertools.product(range(3), "xyz"):
            if "xyz"[part] == value:
                alone = MemoryEngine.from_frame(frame[frame["b"] == value], domain)
                ((expected, _),) = exact_sums(alone, Rows(), domain, model, (table,), CAP)
                assert positive[part].tolist() == expected[0].tolist()


@pytest.mark.parametrize("access", ["snapshot", "stream", "push-down"])
def test_every_access_gives_the_same_answers(access: str, tmp_path: Path) -> None:
    """The same seed draws the same noise, so that the sums under it are those of the frame in memory."""
    domain, frame = domain_of(3), rows_of(3, 200)
    frame.to_csv(path := tmp_path / "rows.csv", index=False)
    model, tables = model_of(domain, 5), [(), ("age",), [("age", HALVES)], ("b", ("age", THIRDS)), ("b", "c", "age")]
    with (
        privet.testing.open(frame, domain, 5, seed=3, delta="1e-6") as here,
        privet.testing.open(path, domain, 5, seed=3, delta="1e-6", access=access) as there,
    ):
        for apart in (False, True):
            one, other = (
                table.residual_tables(model, tables, ["0.01"] * 5, signs_apart=apart).to_dict()
                for table in (here, there)
            )
            assert one == other
        chosen = [
            table.top_residual_tables(model, [("age",), ("b",), ("b", "age"), ("c", "b", "age")], 2, "0.5")
            for table in (here, there)
        ]
        assert chosen[0].indices == chosen[1].indices
