"""Public rows: exact answers, bootstraps, and the rules that papers printed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kernel.people import AGE, DOMAIN, FRAME, SEX

from privet.errors import BudgetExceeded, DataError, KeyReused, NotPrivate, QuestionError
from privet.kernel import SystemEntropy
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import PublicTable, open_public


@pytest.fixture
def public() -> PublicTable:
    return open_public(FRAME, DOMAIN)


@pytest.mark.parametrize("exactly", [math.inf, np.float64("inf")], ids=repr)
def test_public_rows_answer_exactly_where_no_epsilon_is_given(public: PublicTable, exactly: float) -> None:
    count = public.count(exactly)
    assert count == len(FRAME) and count.interval() == (300, 300) and count.noise.deviation == 0
    found = public.partition("sex").histogram("income", epsilon=exactly)
    assert (
        found.array().tolist()
        == pd.crosstab(SEX, FRAME["income"]).loc[list(DOMAIN["sex"].labels), ["low", "high"]].to_numpy().tolist()
    )
    best = public.select("max", exactly, thresholds=True)
    assert (best, best.threshold, best.shortfall()) == ("age", 50, 0)
    assert public.select("infogain", exactly, attributes=["sex", ("age", 50), ("age", 30)]).threshold == 50
    for answer in (count, *found, best):
        assert (answer.epsilon, answer.private) == (0, False)
        assert "epsilon 0, NOT PRIVATE" in repr(answer)
    assert public.budget.entries == []


def test_public_rows_have_no_exact_answer_to_other_questions_and_charge_for_noisy_ones(public: PublicTable) -> None:
    for ask in (
        lambda: public.sum("age", math.inf),
        lambda: public.median("age", math.inf),
        lambda: public.partition("income").count([1, math.inf]),
        lambda: public.count("inf"),
        lambda: public.allot(math.inf),
    ):
        with pytest.raises(QuestionError, match=r"not '?inf"):
            ask()
    with pytest.raises(NotPrivate):
        public.select("gain-ratio", 1)
    assert public.budget.spent == 0
    some = public.allot(1)
    some.count(1)
    assert isinstance(some, PublicTable) and public.budget.spent == 1
    with pytest.raises(BudgetExceeded):
        some.count(1)


def entropy(counts: Any) -> float:
    shares = np.array([n / sum(counts) for n in counts if n])
    return float(-(shares * np.log2(shares)).sum())


def test_the_gain_ratio_is_that_of_c45(public: PublicTable) -> None:
    """The highest ratio among the candidates whose gain is at least the average."""
    income = FRAME["income"]
    sides = {
        f"age {at}": AGE.map(lambda age, at=at: 2 if math.isnan(age) else int(age > at)) for at in (0, 2, 20, 45, 60)
    }
    sides |= {"sex": SEX, "body height": FRAME["body height"] >= 1.5}
    gains, ratios = {}, {}
    for name, side in sides.items():
        table = pd.crosstab(side, income).to_numpy()
        within = sum(cell.sum() / len(FRAME) * entropy(cell) for cell in table)
        gains[name] = entropy(table.sum(axis=0)) - within
        ratios[name] = gains[name] / entropy(table.sum(axis=1))
    guarded = 0
    for some in (each for size in (1, 2, 3) for each in itertools.combinations(sides, size)):
        average = sum(gains[name] for name in some) / len(some)
        expected = max((name for name in some if gains[name] >= average - 1e-12), key=ratios.__getitem__)
        guarded += expected != max(some, key=ratios.__getitem__)
        candidates = [("age", int(name[4:])) if name.startswith("age") else name for name in some]
        found = public.select("gain-ratio", math.inf, attributes=candidates)
        assert (str(found) if found.threshold is None else f"{found} {found.threshold}") == expected
    assert guarded  # a high ratio of a low gain is among them


def test_a_bootstrap_draws_as_many_rows_with_replacement() -> None:
    domain = Domain((Nominal("id", tuple(range(300))), Numeric("x", Fraction(0), Fraction(600), Fraction(1), bins=600)))
    table = open_public(pd.DataFrame({"id": range(300), "x": range(0, 600, 2)}), domain)
    drawn = {seed: np.asarray(table.bootstrap(seed).histogram("id", epsilon=math.inf)) for seed in (1, 2)}
    for seed, times in drawn.items():
        assert times.sum() == 300 and 0.55 < (times > 0).mean() < 0.71  # 1 - 1/e are drawn at least once
        assert np.array_equal(times, np.asarray(table.bootstrap(seed).histogram("id", epsilon=math.inf)))
        values = table.bootstrap(seed).partition("x", edges=list(range(1, 599, 2))).count(math.inf).array()
        assert np.array_equal(values, times)  # rows stay whole
    assert not np.array_equal(drawn[1], drawn[2])
    assert (np.asarray(table.histogram("id", epsilon=math.inf)) == 1).all()


def test_a_key_of_the_table_is_not_one_of_its_bootstrap(public: PublicTable) -> None:
    public.histogram("sex", epsilon=1, key="k")
    with pytest.raises(KeyReused):
        public.bootstrap(1).histogram("sex", epsilon=1, key="k")


def test_a_closed_public_table_gives_no_answers(public: PublicTable) -> None:
    public.close()
    with pytest.raises(DataError, match="was closed"):
        public.count(math.inf)


def test_rounded_noise_is_bounded_and_has_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six digits of a uniform number have a last one: below it there is no noise, and a gap before it."""
    table = open_public(FRAME, DOMAIN, rounded_noise=True)
    digits = iter([0, 1, 2, 3, 500_000, 999_998, 999_999])
    monkeypatch.setattr(SystemEntropy, "below", lambda self, bound: next(digits))
    found = [table.count(Fraction(1, 100)) - len(FRAME) for _ in range(7)]
    assert found == [-1312, -1312, -1243, -1202, 0, 1243, 1312]
    assert not table._session.errors.printed_ranges


def test_printed_ranges_leave_the_sensitivity_out(public: PublicTable) -> None:
    printed = open_public(FRAME, DOMAIN, printed_ranges=True)
    for rule, grid, sensitivity in (("max", 1, 1), ("gini", 1024, 2048)):
        rates = [each.select(rule, 1, thresholds=True).mechanism.rate for each in (printed, public)]
        assert rates == [Fraction(1, grid), Fraction(1, sensitivity)]
        assert printed.select(rule, 1).mechanism.rate == Fraction(1, sensitivity)  # of ranges alone
