"""Attacks on the noise: low bits, large values, forks, seeds and answers that pass for exact."""

from __future__ import annotations

import json
import math
import pickle
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.attacks.attacked import DOMAIN, LARGE, MODEL, QUESTIONS, each_source, opened, people, run_script

import privet
from privet.errors import NotPrivate, QuestionError
from privet.kernel import Session
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import SumQuery
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.rows import Rows
from privet.lab import GainRatio, open_public, paper_noise
from privet.release import Release

# --- 1, 2: noise that does not hide ----------------------------------------------------------------------------------


@each_source
def test_low_order_bits(kind: str, tmp_path: Path) -> None:
    """Float noise lands on different grids for neighbouring tables (Mironov): one odd bit would tell a row is there."""
    table = opened(people(), kind, tmp_path)
    for _ in range(20):
        assert type(int(table.count(0.3))) is int
        assert (float(table.sum("wage", 0.3)) * 4).is_integer()
        mean = table.mean("wage", 0.3)
        assert (float(mean.deviation) * 8).is_integer() and isinstance(mean.count, int)
        assert (float(table.median("wage", 0.3)) * 4).is_integer()
    assert np.asarray(table.histogram("job", epsilon=0.3)).dtype == np.int64
    assert table.residual_sums(MODEL, ("job",), (9, 9), 0.3).own.dtype == np.int64
    stored = "".join(str(entry.answer) for entry in table.budget.entries)
    assert "." not in stored and "e" not in stored.replace("answer", "").replace("private", "").replace("true", "")
    table.close()


def test_large_values_swallowing_noise() -> None:
    """Where the true value is large, small float noise rounds away (Haney) and the exact answer shows."""
    domain = Domain((Numeric("x", Fraction(0), Fraction(2**53), Fraction(2**30)),))
    frame = pd.DataFrame({"x": [2.0**53] * 500})
    table = privet.open(frame, domain, budget=LARGE)
    answers = {float(table.sum("x", 1)) for _ in range(30)}
    assert len(answers) == 30
    assert all((answer / 2**30).is_integer() for answer in answers)


def test_noise_at_the_ends_of_64_bits_is_still_noise() -> None:
    """A sum that overflows, or noise that does, would be an error only large tables can cause."""
    domain = Domain((Numeric("x", Fraction(-(2**31)), Fraction(2**31 - 256), Fraction(256)),))
    grids = {"x": np.array([2**31 - 1, 0], dtype=np.int64)}
    engine = MemoryEngine(domain, {"x": np.array([9, 0])}, grids, weights=np.array([2**31, 1], dtype=np.int64))
    count, total = engine.exact_sums(SumQuery(Rows(), "x"))
    assert (int(count[0]), int(total[0])) == (2**31 + 1, 2**31 * (2**31 - 1))
    table = privet.open(pd.DataFrame({"x": [2**31 - 1]}), domain, budget=LARGE)
    table._session.engine.exact_sums = lambda query: (np.array([2**40]), np.array([2**62]))
    for epsilon in ("1e-9", 1, LARGE // 4):
        assert math.isfinite(table.sum("x", epsilon))
        assert math.isfinite(table.mean("x", epsilon))


@each_source
@pytest.mark.parametrize("epsilon", ["1e-9", 1e5])
def test_extreme_epsilons_are_answered(kind: str, tmp_path: Path, epsilon: Any) -> None:
    """Noise that overflows would fail more often on one of two neighbouring tables."""
    table = opened(people(), kind, tmp_path)
    table.count(epsilon)
    table.sum("wage", epsilon)
    table.mean("wage", epsilon)
    table.median("wage", epsilon)
    table.select("gini", epsilon)
    table.select("infogain", epsilon, thresholds=True)
    table.residual_sums(MODEL, ("job",), (1024, 1), epsilon)
    table.close()


# --- 3: sums ---------------------------------------------------------------------------------------------------------


@each_source
def test_float_sums(kind: str, tmp_path: Path) -> None:
    """2^53 plus a thousand ones is 2^53 in floats, or not, by the order of rows: a sum must be exact and orderless."""
    low, high = -(2**23), 2**23 - 1
    domain = Domain((Numeric("x", Fraction(low), Fraction(high), Fraction(1)),))
    values = [2.0**53, -(2.0**53), 1e300, -1e300, *[1.0] * 1000]
    truth = 2 * (high - low) + 0 + 1000 * (1 - low)  # in steps above the lower bound, clamped to the bounds
    for seed in range(3):
        random.Random(seed).shuffle(values)
        with opened(pd.DataFrame({"x": values}), kind, tmp_path / f"{seed}", {"x": "DOUBLE"}, domain=domain) as table:
            count, total = table._session.engine.exact_sums(SumQuery(Rows(), "x"))
            assert (count.tolist(), total.tolist()) == ([1004], [truth])


# --- 14: randomness and forks ----------------------------------------------------------------------------------------


def test_forked_processes_do_not_share_noise() -> None:
    """Two processes that draw the same noise for two questions give away the difference of the answers."""
    lines = run_script(
        """
noise = IntegerLaplace(Fraction(1, 10**6))
choose = ExponentialOverRanges(Fraction(1, 1000), 1, True)
pick = PermuteAndFlip(Fraction(1, 10**6), 1, True)

def draw():
    return [
        noise.release(np.zeros(4, dtype=np.int64)).tolist(),
        [choose.release(Ranges(np.array([0]), [2**60])) for _ in range(4)],
        [pick.release(np.zeros(1000, dtype=np.int64)) for _ in range(8)],
    ]

draw()
for _ in range(3):
    print(in_child(draw))
print(json.dumps(draw()))
"""
    )
    drawn = [json.loads(line) for line in lines]
    for kind in range(3):
        assert len({tuple(each[kind]) for each in drawn}) == 4


def test_seeds_are_for_tests_and_leave_a_mark(table: privet.ProtectedTable) -> None:
    """Noise from a seed can be drawn again and taken off; an answer made with it may not pass for a private one."""
    np.random.seed(1)
    random.seed(1)
    one = [int(table.count(0.001)) for _ in range(5)]
    np.random.seed(1)
    random.seed(1)
    assert [int(table.count(0.001)) for _ in range(5)] != one
    with privet.testing.seeded_noise(1):
        seeded = privet.open(people(), DOMAIN, budget=100)
        assert table.count(1, key="k").private  # it was opened before
    marked = seeded.count(1, key="k")
    assert not marked.private and not seeded.count(1, key="k").private  # also when it comes from the ledger


# --- exact answers are for public rows -------------------------------------------------------------------------------


ENDLESS = [math.inf, np.float64("inf"), np.float32("inf"), Decimal("Infinity"), "inf", "Infinity", 1e999, math.nan]
ENDLESS += [[math.inf], (math.inf,), np.array([math.inf]), [math.nan], -math.inf, 10**400, Fraction(10**400), None]


ASK_WITH: list[Callable[[Any, Any], Any]] = [
    lambda parts, epsilon: parts.count(epsilon),
    lambda parts, epsilon: parts.histogram("job", epsilon=epsilon),
    lambda parts, epsilon: parts.histograms([[("job",), ("ill",)]], epsilon),
    lambda parts, epsilon: parts.majority("job", epsilon),
    lambda parts, epsilon: parts.sum("wage", epsilon),
    lambda parts, epsilon: parts.median("wage", epsilon),
    lambda parts, epsilon: parts.select("max", epsilon),
    lambda parts, epsilon: parts.select("max", epsilon, mechanism="noisy-max"),
    lambda parts, epsilon: parts.select("max", epsilon, thresholds=True),
]


@each_source
def test_no_epsilon_is_so_large_that_an_answer_is_exact(kind: str, tmp_path: Path) -> None:
    """Public rows are asked with epsilon=inf; the same words to a private table would be an answer without noise."""
    with opened(people(), kind, tmp_path) as table:
        for each in (table, table.where(job="clerk"), table.partition("job")["clerk"], table.scatter(2, 1)[0]):
            for epsilon in ENDLESS:
                for ask in ASK_WITH:
                    with pytest.raises(QuestionError):
                        ask(each.parts(), epsilon)
        assert table.budget.entries == [] and table.budget.spent == 0


@each_source
def test_what_papers_did_wrong_is_not_on_offer(kind: str, tmp_path: Path) -> None:
    """The gain ratio has no sensitivity, and a bootstrap counts a row as often as it is drawn: both cost more than
    any epsilon says.
    """
    with opened(people(), kind, tmp_path) as table:
        parts = table.partition("job")
        for each in (table, table.allot(1), table.where(job="clerk"), parts, parts[0], parts.take([1]), table.parts()):
            assert not hasattr(each, "bootstrap") and not hasattr(each, "resampled")
            for rule in ("gain-ratio", GainRatio()):
                for epsilon in (1, math.inf):
                    for more in ({}, {"thresholds": True}, {"attributes": [("wage", 10)]}, {"mechanism": "noisy-max"}):
                        with pytest.raises(NotPrivate):
                            each.select(rule, epsilon, **more)
            for own in (paper_noise.ExactChoice, paper_noise.ExactChoice(), paper_noise.ExactValues, "exact", "max"):
                with pytest.raises(QuestionError):
                    each.select("max", 1, mechanism=own)
        assert table.budget.entries == []
        assert type(table._session) is Session and table._session.private_rows
    with pytest.raises(TypeError):
        privet.open(people(), DOMAIN, budget=1, rounded_noise=True)  # type: ignore[call-arg]


def releases_of(answer: Any) -> Iterator[Release]:
    if isinstance(answer, Release):
        yield answer
    else:
        for each in answer:
            yield from releases_of(each)


@pytest.mark.parametrize("rules", [{}, {"rounded_noise": True, "printed_ranges": True}], ids=["plain", "printed"])
def test_what_public_rows_answer_never_passes_for_private(rules: dict[str, bool]) -> None:
    """An answer of a table without a budget to defend, stamped as private, would be published as if it were."""
    table = open_public(people(), DOMAIN, **rules)
    for each in (table, table.allot(1000), table.bootstrap(3), table.where(job="clerk"), table.partition("ill")[0]):
        answers = [ask(each) for ask in QUESTIONS.values()]
        answers += [each.count(math.inf), each.histogram("job", epsilon=math.inf), each.select("gini", math.inf)]
        answers += [each.partition("job").count(math.inf), each.select("gain-ratio", math.inf, thresholds=True)]
        for release in releases_of(answers):
            assert not release.private and not pickle.loads(pickle.dumps(release)).private
            assert "NOT PRIVATE" in repr(release)
    for _ in range(2):  # also when it comes from the ledger
        assert not table.count(1, key="k").private
    for release in releases_of([ask(privet.open(people(), DOMAIN, budget=1)) for ask in QUESTIONS.values()]):
        assert release.private and "NOT PRIVATE" not in repr(release)
