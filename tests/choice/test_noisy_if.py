"""NoisyIf: what a choice may read, what it costs, and that it is the same for the same releases."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet import Branch, NoisyIf, Public
from privet.choice import Advice, Fixed, derive
from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.kernel.engines.contract import CountQuery
from privet.kernel.rows import Rows
from privet.lab import worst_loss
from privet.release import Derived, derivation


@pytest.fixture
def table() -> Any:
    return privet.open(privet.datasets.census(500), privet.datasets.census_domain(), budget=1)


def count(epsilon: str) -> Branch:
    return Branch(lambda part: part.count(epsilon), cost=epsilon)


BRANCHES = {"cheap": count("0.1"), "dear": count("0.4")}


def choice(**more: Any) -> NoisyIf:
    return NoisyIf("size", BRANCHES, default="cheap", **more)


# -- what it may read -----------------------------------------------------------------------------


def test_a_raw_number_in_the_context_is_refused(table: Any) -> None:
    rows = table.count(0.1)
    for bare in (500, rows + 0, float(rows) * 2, np.float64(0.83), "Male", None, [rows], {"rows": rows}):
        with pytest.raises(PrivacyError, match=r"release\.map\(\.\.\.\), or Public"):
            choice(context={"rows": bare})
    assert choice(context={"a": rows, "b": rows.map(np.sqrt), "c": Public(500)}).pick().branch == "cheap"


def test_an_error_about_a_raw_value_does_not_quote_it(table: Any) -> None:
    with pytest.raises(PrivacyError) as refused:
        choice(context={"accuracy": 0.8312345})
    assert "8312" not in str(refused.value)


def test_a_table_is_no_context(table: Any) -> None:
    with pytest.raises(PrivacyError):
        choice(context={"table": table})


def test_advice_sees_plain_values_and_nothing_else(table: Any) -> None:
    seen: list[Any] = []
    rows = table.count(0.1)
    choice(context={"rows": rows, "depth": Public(3)}, advice=lambda known: seen.append(known)).pick()
    assert seen == [{"rows": int(rows), "depth": 3}]
    assert all(type(value) is int for value in seen[0].values())


def test_made_of_releases_stays_a_release(table: Any) -> None:
    men = table.where(sex="Male").count(0.1)
    rows = table.count(0.1)
    share = men.map(lambda some, all_of_them: some / max(all_of_them, 1), rows)
    assert share.value == int(men) / max(int(rows), 1)
    assert share.private and share.about.question == "count"
    with pytest.raises(PrivacyError):
        men.map(lambda some, all_of_them: some / all_of_them, 500)  # type: ignore[arg-type]


def test_what_unknown_code_makes_of_a_release_is_marked_and_refused(table: Any) -> None:
    rows, secret = table.count(0.1), 0.8312345
    made: list[Any] = [
        rows.map(lambda _: secret),
        rows.map(functools.partial(max, secret)),
        rows.map(secret.__add__),
        rows.map(lambda _: secret).map(float),  # a clean function does not wash it
        rows.map(derive._ratio, rows.map(lambda _: secret)),
        Derived(secret, (rows,)),
    ]
    for value in made:
        assert not value.clean and "by unknown code" in repr(value)
        for refused in (
            lambda value=value: choice(context={"rows": value}),
            lambda value=value: choice().pick({"rows": value}),
            lambda value=value: privet.History().append("s", {}, "a", value, run="r"),
            lambda value=value: privet.History().append("s", {"x": value}, "a", Public(1, "public: p"), run="r"),
        ):
            with pytest.raises(PrivacyError, match="code of your own") as error:
                refused()
            assert "8312" not in str(error.value)
    vouched = Public(made[0].value, origin="the number of rows, declared in the catalogue")
    assert choice(context={"rows": vouched}).known() == {"rows": secret}  # one word to search for


def test_named_functions_of_releases_are_clean(table: Any) -> None:
    rows, ages = table.count(0.1), table.histogram("age", epsilon=0.1)
    made = {
        "ratio": derive.ratio(rows, Public(2)),
        "percent": derive.percent(rows, rows),
        "product": derive.product(rows, Public(0.5)),
        "difference": derive.difference(rows, Public(1)),
        "log": derive.log(rows),
        "total": derive.total(ages),
        "largest share": derive.largest_share(ages),
        "root": rows.map(np.sqrt),
    }
    assert all(value.clean and value.private for value in made.values())
    known = choice(context=made).known()
    assert known["percent"] == 100 and known["ratio"] == known["product"] == int(rows) / 2
    assert known["log"] == pytest.approx(np.log(max(int(rows), 1))) and known["difference"] == int(rows) - 1
    assert known["total"] == max(ages.value.sum(), 1) and 0 < known["largest share"] <= 1


def test_only_functions_of_privet_can_be_derivations() -> None:
    def closure() -> Any:
        secret = 3
        return lambda _: secret

    for function in (lambda x: x, closure(), print, functools.partial(max, 3)):
        with pytest.raises(PrivacyError, match="only functions of privet's modules"):
            derivation(function)


def test_seeded_releases_say_so_when_they_are_made_into_others() -> None:
    people, domain = privet.datasets.census(20), privet.datasets.census_domain()
    with privet.testing.seeded_noise(1), privet.open(people, domain, budget=1) as table:
        rows = table.count(0.1)
    assert not rows.map(float).private


# -- what it costs --------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["cheap", "dear"])
def test_the_chosen_branch_is_charged_and_no_other(table: Any, branch: str) -> None:
    outcome = choice(policy=Fixed(branch)).run(table)
    assert outcome.branch == branch
    assert outcome.spent == table.budget.spent == BRANCHES[branch].cost
    assert len(table.budget.entries) == 1


def test_the_dearest_branch_must_fit_before_anything_starts(table: Any) -> None:
    table.count("0.7")
    before = (table.budget.spent, table.budget.remaining, len(table.budget.entries))
    with pytest.raises(BudgetExceeded):
        choice(policy=Fixed("cheap")).run(table)
    assert (table.budget.spent, table.budget.remaining, len(table.budget.entries)) == before


def test_what_was_reserved_and_not_spent_is_free_again(table: Any) -> None:
    choice().run(table)
    assert table.budget.remaining == Fraction(9, 10)


def test_a_branch_cannot_spend_more_than_its_cost(table: Any) -> None:
    greedy = NoisyIf("g", {"a": Branch(lambda part: part.count("0.5"), cost="0.1")}, default="a")
    with pytest.raises(BudgetExceeded):
        greedy.run(table)
    assert table.budget.spent == 0 and table.budget.remaining == 1


def test_a_branch_without_a_cost_gets_no_table(table: Any) -> None:
    found = NoisyIf("f", {"a": Branch(lambda part: part is None)}, default="a").run(table)
    assert found.value is True and found.spent == 0 and table.budget.spent == 0


def test_a_branch_that_fails_gives_the_reservation_back(table: Any) -> None:
    def fails(part: Any) -> None:
        part.count("0.1")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        NoisyIf("f", {"a": Branch(fails, cost="0.5")}, default="a").run(table)
    assert table.budget.spent == Fraction(1, 10) and table.budget.remaining == Fraction(9, 10)


def test_it_works_on_parts_of_a_table(table: Any) -> None:
    for part in table.partition("sex"):
        choice(policy=Fixed("dear")).run(part)
    assert table.budget.spent == Fraction(4, 10)


# -- how it chooses -------------------------------------------------------------------------------


def test_advice_is_taken_without_a_policy_and_the_default_without_both(table: Any) -> None:
    assert choice().pick().why == "the default"
    assert choice(advice=lambda known: "dear").pick().branch == "dear"
    assert choice(advice=lambda known: {"dear": 0.2, "cheap": 0.9}).pick().branch == "cheap"
    assert choice(advice=lambda known: None).pick().branch == "cheap"


def test_hard_advice_overrides_a_policy(table: Any) -> None:
    assert choice(policy=Fixed("cheap"), advice=lambda known: "dear").pick().branch == "cheap"
    hard = choice(policy=Fixed("cheap"), advice=lambda known: Advice("dear", hard=True))
    assert hard.run(table).branch == "dear"
    assert "whatever the policy says" in hard.pick().why


def test_equal_releases_choose_alike_on_neighbouring_tables() -> None:
    """The branch is a function of releases: enumerated, the whole loses what it is charged and no more."""
    people = privet.datasets.census(30)
    domain = privet.datasets.census_domain()

    def run(table: Any) -> Any:
        rows = table.count("0.3")
        outcome = choice(context={"rows": rows}, advice=lambda known: "dear" if known["rows"] > 30 else "cheap").run(
            table
        )
        return outcome.branch, int(outcome.value), int(rows)

    found = worst_loss(run, people, people.iloc[1:], domain)
    assert found.complete
    assert found.loss == pytest.approx(0.7)  # 0.3 and the dearer branch


def test_a_choice_that_looks_at_the_rows_would_be_caught() -> None:
    people = privet.datasets.census(30)
    domain = privet.datasets.census_domain()

    def leaky(table: Any) -> Any:
        (exact,) = table._session.engine.exact_counts(CountQuery(Rows(), ((),)))
        size = Public(int(exact[0]))  # which is a lie
        asked = choice(context={"rows": size}, advice=lambda known: "dear" if known["rows"] > 29 else "cheap")
        return asked.run(table).branch

    assert worst_loss(leaky, people, people.iloc[1:], domain).loss == float("inf")


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.lists(st.floats(0.001, 0.3), min_size=1, max_size=5), st.integers(0, 4))
def test_the_ledger_is_exact_for_any_costs(costs: list[float], taken: int) -> None:
    table = privet.open(privet.datasets.census(50), privet.datasets.census_domain(), budget=1)
    exact = [Fraction(str(round(cost, 6))) for cost in costs]
    branches = {str(place): count(str(cost)) for place, cost in enumerate(exact)}
    branch = str(taken % len(costs))
    outcome = NoisyIf("site", branches, default="0", policy=Fixed(branch)).run(table)
    assert outcome.spent == table.budget.spent == exact[int(branch)]
    assert NoisyIf("site", branches, default="0").reservation == max(exact)


# -- what it says ---------------------------------------------------------------------------------


def test_an_outcome_explains_itself(table: Any) -> None:
    outcome = choice(context={"rows": Public(500)}, advice=lambda known: "dear").run(table)
    text = outcome.explain()
    assert "size: dear, ahead of the default 'cheap' by 3.00 points" in text
    assert "spent 0.4" in text and "+3.00 points" in text
    decision = outcome.decision
    assert (decision.site, decision.branch, decision.context) == ("size", "dear", (("rows", 500.0),))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"default": "none"}, "is none of cheap, dear"),
        ({"branches": {}}, "branches are a mapping"),
        ({"branches": {"cheap": 3}}, "branches are a mapping"),
        ({"site": ""}, "needs a name"),
        ({"policy": "best"}, "a policy is one of"),
        ({"mode": "race"}, "with what it needs"),
    ],
)
def test_what_is_not_a_choice_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(QuestionError, match=says):
        NoisyIf(**{"site": "size", "branches": BRANCHES, "default": "cheap", **more})


def test_branches_are_checked() -> None:
    with pytest.raises(QuestionError, match=r"Branch\.of"):
        Branch("max")  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="cost must be a number"):
        Branch(print, cost=-1)
    assert Branch.of("max").run(None) == "max" and Branch.of("max").cost == 0


def test_advice_about_an_unknown_branch_is_refused() -> None:
    with pytest.raises(QuestionError, match="the advice names 'none'"):
        choice(advice=lambda known: "none").pick()
