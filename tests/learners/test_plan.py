"""Plans and presets: shares add up to epsilon exactly, depths follow from what is public, bad choices are refused."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import QuestionError
from privet.kernel.accounting import GRAIN, as_epsilon
from privet.kernel.column import Column, Nominal, Numeric
from privet.kernel.domain import Domain
from privet.learners.plan import (
    BudgetRule,
    Plan,
    Schedule,
    above_noise,
    even,
    exact,
    fixed,
    half_or_log,
    harmonic,
    harmonic_squared,
    leaves_only,
    with_points,
)
from privet.learners.presets import PRESETS, preset
from privet.learners.structure import draw

PROPERTY = settings(derandomize=True, deadline=None, max_examples=100)
DEPTHS = range(11)
EPSILONS = [as_epsilon(text) for text in ("1", "1/3", "0.07", "7/90", "1000000", "0.0001")]


def binary(attributes: int, cells: int = 2, **bounds: int) -> Domain:
    columns = (Nominal(f"a{i}", tuple(range(cells))) for i in range(attributes))
    return Domain((*columns, Nominal("y", ("no", "yes"))), target="y", **bounds)


def longest_path(schedule: Schedule) -> Fraction:
    """What a path that never stops pays, where the leaf has a share of its own."""
    assert schedule.leaf is not None
    levels = sum((level.size + level.points + level.split for level in schedule.levels), Fraction(0))
    return levels + schedule.leaf + schedule.leaf_size


# -- the shares of a path -----------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("budget", [even, with_points, fixed, leaves_only], ids=lambda each: each.__name__)
def test_a_published_path_pays_exactly_epsilon(budget: BudgetRule, epsilon: Fraction) -> None:
    plan = Plan("p", budget, remainder=False)
    for depth, numeric in itertools.product(DEPTHS, (0, 1, 6)):
        schedule = budget(plan, epsilon, depth, numeric)
        assert len(schedule.levels) == depth
        assert longest_path(schedule) == epsilon, (depth, numeric)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("budget", [harmonic, harmonic_squared], ids=lambda each: each.__name__)
def test_harmonic_paths_pay_the_published_sum(budget: BudgetRule, epsilon: Fraction) -> None:
    plan = Plan("p", budget, remainder=False)
    power = 2 if budget is harmonic_squared else 1
    for depth in DEPTHS:
        schedule = budget(plan, epsilon, depth, 0)
        total = 1 + sum(Fraction(1, k) for k in range(1, depth + 1))
        expected = epsilon * (1 + sum(Fraction(1, k**power) for k in range(1, depth + 1))) / total
        # a share that is no multiple of the grain of the ledger is rounded down to one
        assert 0 <= expected - longest_path(schedule) < Fraction(depth + 1, GRAIN)
        assert depth > 4 or longest_path(schedule) == expected
        shares = [level.split for level in schedule.levels]
        assert shares == sorted(shares)  # more for deeper levels


def test_paths_with_a_remainder_leave_it_to_the_leaf() -> None:
    for budget in (even, with_points, fixed, harmonic, harmonic_squared, leaves_only):
        for epsilon, depth in itertools.product(EPSILONS, DEPTHS):
            open_end = budget(Plan("p", budget), epsilon, depth, 3)
            closed = budget(Plan("p", budget, remainder=False), epsilon, depth, 3)
            assert open_end.leaf is None and open_end.leaf_size == 0
            assert open_end.levels == closed.levels
            inner = sum((level.size + level.points + level.split for level in open_end.levels), Fraction(0))
            assert inner < epsilon  # something is left for the leaf


def test_friedman_and_schusters_share_is_the_published_one() -> None:
    level = even(Plan("p", even), Fraction(1), 3, 0).levels[0]
    assert (level.size, level.split, level.points) == (Fraction(1, 8), Fraction(1, 8), 0)
    level = with_points(Plan("p", with_points), Fraction(1), 3, 6).levels[0]
    assert (level.size, level.split, level.points) == (Fraction(1, 26), Fraction(1, 26), Fraction(6, 26))


@PROPERTY
@given(st.integers(1, 10_000), st.integers(1, 10**6), st.integers(1, 10**8))
def test_the_trees_of_a_forest_share_epsilon_exactly(trees: int, numerator: int, denominator: int) -> None:
    epsilon = as_epsilon(max(Fraction(numerator, denominator), Fraction(1, 10_000)))
    shares = Plan("p", fixed, trees=trees).tree_shares(epsilon)
    assert len(shares) == trees
    assert sum(shares) == epsilon
    assert max(shares) - min(shares) <= Fraction(trees, GRAIN)
    assert Plan("p", fixed, trees=trees, rows="disjoint").tree_shares(epsilon) == [epsilon] * trees


def test_a_share_too_small_for_any_answer_is_refused() -> None:
    with pytest.raises(QuestionError, match="epsilon must be a number between"):
        Plan("p", fixed, trees=1000).tree_shares(Fraction(1, 10**8))
    with pytest.raises(QuestionError, match="epsilon must be a number between"):
        Plan("p", even).schedule(binary(2), Fraction(1, 10**9), 3)


@pytest.mark.parametrize(
    ("choices", "nothing"),
    [
        ({"budget": leaves_only}, "split"),
        ({"budget": leaves_only, "split": "noisy-counts"}, "split"),
        ({"budget": fixed, "stop": "noise"}, "size"),
        ({"budget": harmonic, "stop": "noise"}, "size"),
        ({"budget": even, "numeric": "separate"}, "points"),
    ],
)
def test_a_budget_without_a_share_for_what_the_plan_asks_is_refused(choices: dict[str, Any], nothing: str) -> None:
    domain = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)), Nominal("y", ("a", "b"))), target="y")
    plan = Plan("p", **choices)
    with pytest.raises(QuestionError, match=f"leaves nothing for the {nothing} of a node"):
        plan.schedule(domain, Fraction(1), 2)
    assert plan.schedule(domain, Fraction(1), 0).levels == ()  # a lone leaf asks for none of it
    assert len(replace(plan, split="random").schedule(domain, Fraction(1), 2).levels) == 2


# -- how deep, and how wide ---------------------------------------------------------------------


def test_depth_is_a_number_within_what_the_domain_has() -> None:
    numeric = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1)), Nominal("y", ("a", "b"))), target="y")
    assert Plan("p", fixed, depth=9).depth_for(binary(4), 0, Fraction(1)) == 4
    assert Plan("p", fixed, depth=2).depth_for(binary(4), 0, Fraction(1)) == 2
    assert Plan("p", fixed, depth=9).depth_for(numeric, 0, Fraction(1)) == 1
    for thresholds in ("joint", "separate"):  # a number can be split again
        assert Plan("p", fixed, depth=9, numeric=thresholds).depth_for(numeric, 0, Fraction(1)) == 9
        assert Plan("p", fixed, depth=9, numeric=thresholds).depth_for(binary(4), 0, Fraction(1)) == 4


def test_depth_rules_are_the_published_formulas() -> None:
    domain, plan = binary(10, cells=4), Plan("p", leaves_only)
    for rows in (1, 4, 15, 17, 100, 1000, 10**6):
        log = math.log(rows, 4) + 1e-12
        assert half_or_log(plan, domain, rows, Fraction(1)) == min(5, math.floor(log) - 1)
        for epsilon in (Fraction(1, 10), Fraction(2)):
            deepest = above_noise(plan, domain, rows, epsilon)
            deviation = math.sqrt(2) / float(epsilon)
            if deepest > 0:
                assert rows / (2 * 4**deepest) >= deviation > rows / (2 * 4 ** (deepest + 1))
    for rule in (half_or_log, above_noise):
        bounded = replace(plan, depth=rule)
        depths = [bounded.depth_for(domain, rows, Fraction(1)) for rows in (0, 1, 5, 50, 5000, 10**7, 10**12)]
        assert depths == sorted(depths)
        assert depths[0] == 0 and depths[-1] <= 10


@st.composite
def columns(draw_from: st.DrawFn, name: str) -> Column:
    missing = draw_from(st.booleans())
    if draw_from(st.booleans()):
        return Nominal(name, tuple(range(draw_from(st.integers(1, 4)))), missing=missing)
    return Numeric(name, Fraction(0), Fraction(draw_from(st.integers(1, 5))), Fraction(1), bins=2, missing=missing)


@st.composite
def domains(draw_from: st.DrawFn) -> Domain:
    attributes = [draw_from(columns(name)) for name in "abc"[: draw_from(st.integers(1, 3))]]
    return Domain((*attributes, Nominal("y", ("no", "yes"))), target="y")


@PROPERTY
@given(domains(), st.integers(0, 5), st.sampled_from(["bins", "joint", "separate"]), st.integers(0, 2**32))
def test_no_random_tree_is_larger_than_the_public_bound(domain: Domain, depth: int, numeric: str, seed: int) -> None:
    plan = Plan("p", leaves_only, depth=depth, split="random", numeric=numeric)
    allowed = plan.depth_for(domain, 0, Fraction(1))
    tree = draw(plan, domain, allowed, np.random.default_rng(seed))
    assert tree.leaves <= plan.most_leaves(domain, plan.schedule(domain, Fraction(1), allowed))
    assert tree.depth <= allowed
    # no attribute twice on a path unless by other thresholds, which leave something on both sides
    for visit in tree.walk():
        names = [text.split()[0] for text in visit.path if "<=" not in text and ">" not in text]
        assert len(set(names)) == len(names)


def test_the_public_bound_is_reached_where_all_attributes_are_alike() -> None:
    for cells, depth in ((2, 10), (3, 5), (20, 3)):
        plan = Plan("p", fixed, depth=depth)
        assert plan.most_leaves(binary(10, cells), plan.schedule(binary(10, cells), Fraction(1), depth)) == cells**depth


def test_a_public_number_of_rows_bounds_a_tree_that_stops() -> None:
    plan = Plan("p", even, stop="noise", depth=10)
    endless = plan.most_leaves(binary(10, 20), plan.schedule(binary(10, 20), Fraction(1), 10))
    assert endless == 20**10
    for bounds in ({"rows": 5000}, {"max_rows": 5000}):
        domain = binary(10, 20, **bounds)
        assert plan.most_leaves(domain, plan.schedule(domain, Fraction(1), 10)) < 5000
    never = Plan("p", fixed, depth=10)  # the rows do not stop it
    assert never.most_leaves(domain, never.schedule(domain, Fraction(1), 10)) == 20**10


# -- plans that are no plans --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["split", "numeric", "stop", "leaf", "consistency", "prune", "rows", "vote"], ids=lambda name: name
)
def test_an_unknown_choice_is_named(name: str) -> None:
    with pytest.raises(QuestionError, match=f"a plan's {name} is one of .*, not 'sideways'"):
        Plan("p", fixed, **{name: "sideways"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"trees": 0}, "trees must be a whole number from 1 to 10000, not 0"),
        ({"trees": 2.0}, "trees must be a whole number"),
        ({"trees": True}, "trees must be a whole number"),
        ({"depth": -1}, "max_depth must be a whole number from 0 to 100, not -1"),
        ({"depth": 101}, "max_depth must be a whole number"),
        ({"depth": 2.5}, "max_depth must be a whole number"),
        ({"depth": "3"}, "max_depth must be a whole number"),
        ({"depth": None}, "max_depth must be a whole number"),
        ({"depth": True}, "max_depth must be a whole number"),
        ({"max_leaves": 0}, "max_leaves must be a whole number"),
        ({"certainty": 0}, "certainty factor of pruning lies between 0 and 1, not 0"),
        ({"certainty": 1.0}, "certainty factor"),
        ({"certainty": math.nan}, "certainty factor"),
    ],
)
def test_numbers_out_of_bounds_are_named(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        Plan("p", fixed, **choices)


def test_numbers_of_numpy_are_numbers() -> None:
    plan = Plan("p", fixed, depth=np.int64(2), trees=np.int32(3), max_leaves=np.uint16(9))  # type: ignore[arg-type]
    assert (plan.depth, plan.trees, plan.max_leaves) == (2, 3, 9)
    assert all(type(value) is int for value in (plan.depth, plan.trees, plan.max_leaves))
    assert sum(plan.tree_shares(Fraction(1))) == 1


def test_a_plan_is_described_by_names() -> None:
    written: Any = Plan("p", harmonic, depth=above_noise).to_json()
    assert written["plan"]["budget"] == "harmonic" and written["plan"]["depth"] == "above-noise"
    assert json.dumps(written)


# -- presets ------------------------------------------------------------------------------------


def test_every_preset_has_both_plans_a_line_and_a_citation() -> None:
    assert PRESETS
    for name, found in PRESETS.items():
        assert preset(name) is found and found.name == name
        assert found.line and found.citation
        for variant in found.variants:
            plan = found.plan(binary(4, max_rows=10), variant)
            assert plan.name == name
            assert plan.is_exact == (name in ("id3", "c45")) == (not found.private)
            assert variant == "published" or not plan.errata
            assert plan.remainder == (variant == "corrected") or plan.is_exact


def test_unknown_presets_and_variants_are_named() -> None:
    with pytest.raises(QuestionError, match="there is no algorithm 'cart'; choose one of sulq-id3, "):
        preset("cart")
    with pytest.raises(QuestionError, match="variant is 'corrected' or 'published', not 'fixed'"):
        preset("maxtree").plan(binary(3), "fixed")
    with pytest.raises(QuestionError, match="score is 'sum' or 'literal', not 'product'"):
        preset("maxforest").plan(binary(3), score="product")
    with pytest.raises(QuestionError, match="numeric is 'thresholds' or 'bins', not 'grid'"):
        preset("diffpc45").plan(binary(3), numeric="grid")


PUBLIC, UNKNOWN = {"rows": 100, "max_rows": 200}, {"max_rows": 200}
NOT_PRIVATE: list[tuple[str, dict[str, int], dict[str, Any], str]] = [
    ("jagannathan", UNKNOWN, {}, "E-9"),
    ("snr-forest", UNKNOWN, {}, "E-9"),
    ("patil-singh", PUBLIC, {}, "E-1"),
    ("maxforest", PUBLIC, {}, "E-1"),
    ("diffpc45", PUBLIC, {"criterion": "gini"}, "E-4"),
    ("diffpc45", PUBLIC, {"criterion": "infogain"}, "E-4"),
    ("hanisch-tree", PUBLIC, {}, "E-8"),
    ("hanisch-forest", PUBLIC, {}, "E-8"),
]
PRIVATE: list[tuple[str, dict[str, int], dict[str, Any]]] = [
    ("sulq-id3", UNKNOWN, {}),
    *(("diffpid3", UNKNOWN, {"criterion": criterion}) for criterion in ("max", "gini", "infogain")),
    ("diffpc45", UNKNOWN, {"criterion": "max"}),
    ("diffpc45", UNKNOWN, {"criterion": "gini", "numeric": "bins"}),  # no ranges, so none are weighted wrongly
    ("mohammed", UNKNOWN, {}),
    ("jagannathan", PUBLIC, {}),
    ("jagannathan", UNKNOWN, {"max_depth": 2}),
    ("snr-forest", PUBLIC, {}),
    ("snr-forest", UNKNOWN, {"max_depth": 2}),
    ("maxtree", UNKNOWN, {}),
    ("maxtree", UNKNOWN, {"score": "literal"}),
]


@pytest.mark.parametrize(("name", "bounds", "choices", "erratum"), NOT_PRIVATE)
def test_published_plans_that_are_not_private_say_which_erratum(
    name: str, bounds: dict[str, int], choices: dict[str, Any], erratum: str
) -> None:
    (found,) = preset(name).plan(binary(4, **bounds), "published", **choices).errata
    assert found.startswith(f"{erratum}:")
    assert not preset(name).plan(binary(4, **bounds), "corrected", **choices).errata


@pytest.mark.parametrize(("name", "bounds", "choices"), PRIVATE)
def test_published_plans_that_are_private_have_no_errata(
    name: str, bounds: dict[str, int], choices: dict[str, Any]
) -> None:
    assert preset(name).plan(binary(4, **bounds), "published", **choices).errata == ()


def test_both_lists_together_hold_every_preset() -> None:
    published = {name for name, found in PRESETS.items() if found.published is not None}
    assert {each[0] for each in (*NOT_PRIVATE, *PRIVATE)} == published


def test_what_no_paper_has_cannot_be_run_as_published() -> None:
    with pytest.raises(QuestionError, match="id3plus is privet's own and has no published variant"):
        preset("id3plus").plan(binary(4), "published")


def test_more_signal_is_worth_more_levels() -> None:
    """The rule is public: it reads the number of rows, public or bought, and epsilon."""
    plan = preset("id3plus").plan(binary(9))
    depths = [plan.depth_for(binary(9), rows, Fraction(1, 2)) for rows in (10, 100, 1_000, 10_000, 40_000, 10**7)]
    assert depths == [1, 1, 2, 3, 4, 5]
    assert preset("id3plus").plan(binary(9), max_depth=5).depth_for(binary(9), 10, Fraction(1)) == 5


def test_snr_grows_a_tree_for_each_attribute() -> None:
    assert preset("snr-forest").plan(binary(7, max_rows=10)).trees == 7
    assert preset("snr-forest").plan(binary(7, max_rows=10), n_estimators=2).trees == 2


def test_exact_plans_charge_nothing() -> None:
    make: Callable[..., Schedule] = exact
    assert make(Plan("p", exact), Fraction(1), 3, 2).leaf == 0
