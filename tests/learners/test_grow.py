"""Growing trees: what a fit spends under any plan, and what is refused before anything is charged."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.grown import (
    BINARY,
    CASES,
    DOMAINS,
    FORESTS,
    FRAMES,
    LARGE,
    MIXED,
    PRIVATE,
    SURE,
    VARIANTS,
    _binary,
    _check_ledger,
    _frame,
    _grow,
    _open,
)
from sizes import size, sized

import privet
from privet.errors import BudgetExceeded, NotPrivate, PrivacyError, PrivetError, QuestionError, UndeclaredDomain
from privet.kernel import WeightedMax
from privet.kernel.accounting import GRAIN, as_epsilon
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.lab import GainRatio
from privet.learners import plan as plans
from privet.learners.estimators import CLASSIFIERS
from privet.learners.plan import Plan, above_noise, even, fixed, half_or_log, leaves_only, with_points
from privet.learners.presets import preset
from privet.models.tree import Ensemble
from privet.table import ProtectedTable
from privet.testing import seeded_noise

ODD = [as_epsilon(text) for text in ("1/3", "0.07", "7/90")]


def _prior(model: Ensemble) -> Fraction:
    return sum((step.epsilon for step in model.privacy.steps if step.tree < 0), Fraction(0))


def _published_share(name: str, share: Fraction, depth: int) -> Fraction:
    """What a path of full length pays by the paper."""
    if not name.startswith("max"):
        return share
    harmonic = 1 + sum(Fraction(1, k) for k in range(1, depth + 1))
    return share * (1 + sum(Fraction(1, k**2) for k in range(1, depth + 1))) / harmonic


# -- what a fit spends --------------------------------------------------------------------------


DEPTHS = (1, 2, 3, 4, 9, 5, 6, 7, 8, 10)  # those of a small size first


@sized
@pytest.mark.parametrize("data", DOMAINS)
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_path_spends_what_it_may_at_every_depth(name: str, variant: str, data: str) -> None:
    domain, frame = DOMAINS[data], FRAMES[data]
    for depth in DEPTHS[: size("depths of a tree")]:
        trees = {"n_estimators": 2} if name in FORESTS else {}
        plan = preset(name).plan(domain, variant, max_depth=depth, **trees)
        epsilon = SURE if depth % 3 == 0 else [*ODD, SURE][depth % 4]
        with _open(frame, domain, plan) as table:
            model = _grow(table, plan, epsilon, seed=depth)
            _check_ledger(table, model)
        shares = plan.tree_shares(epsilon - _prior(model))
        deepest = min(depth, len(domain.attributes)) if plan.numeric == "bins" or data == "binary" else depth
        for tree, share in enumerate(shares):
            paths = model.privacy.paths(tree)
            assert paths
            if variant == "corrected":
                assert set(paths) == {share}, (depth, tree)
                continue
            full = _published_share(name, share, deepest)
            slack = Fraction(0) if deepest <= 4 or not name.startswith("max") else Fraction(deepest + 1, GRAIN)
            assert max(paths) <= full <= share
            if epsilon == SURE or plan.stop == "never":  # no stop rule fires where there are rows
                last = max(step.level for step in model.privacy.steps if step.tree == tree)
                levels = 0 if plan.split == "random" else deepest
                assert last >= levels
                assert full - slack <= paths[-1] <= full, (depth, tree)
        if variant == "corrected":
            assert model.privacy.spent == epsilon


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("trees", [7, 13])
@pytest.mark.parametrize("name", FORESTS)
def test_forests_spend_their_shares_and_no_more(name: str, trees: int, variant: str) -> None:
    for epsilon in (*ODD, SURE):
        plan = preset(name).plan(BINARY, variant, max_depth=3, n_estimators=trees)
        with _open(FRAMES["binary"], BINARY, plan) as table:
            model = _grow(table, plan, epsilon)
            _check_ledger(table, model)
        spent = _prior(model) + sum(max(model.privacy.paths(tree)) for tree in range(trees))
        assert len(model.trees) == trees
        assert spent == model.privacy.spent
        tight = variant == "corrected" or plan.stop == "never" or epsilon == SURE
        assert spent == _published_share(name, epsilon, 3) if variant == "published" and tight else spent <= epsilon
        assert variant == "published" or spent == epsilon


@pytest.mark.parametrize("name", ["jagannathan", "snr-forest"])
def test_a_depth_by_rule_spends_epsilon_whether_rows_are_public_or_bought(name: str) -> None:
    for bounds in ({}, {"rows": 300}):
        domain = _binary(**bounds)
        plan = preset(name).plan(domain, n_estimators=3)
        for epsilon in (*ODD, as_epsilon(30)):
            with _open(FRAMES["binary"], domain) as table:
                model = _grow(table, plan, epsilon)
                _check_ledger(table, model)
            assert model.privacy.spent == epsilon
            assert _prior(model) == (0 if bounds else as_epsilon(epsilon / 20))
            assert model.prior is None  # it served the depth alone


def test_hanisch_buys_a_fallback_and_keeps_it() -> None:
    model = _grow(_open(FRAMES["binary"], BINARY), preset("hanisch-tree").plan(BINARY), SURE)
    assert _prior(model) == SURE / 20
    counts = FRAMES["binary"]["y"].value_counts()
    assert model.prior == (counts["no"], counts["yes"])


@pytest.mark.parametrize("name", PRIVATE)
def test_trees_on_disjoint_rows_pay_once(name: str) -> None:
    for domain in (BINARY, MIXED):
        plan = replace(preset(name).plan(domain, max_depth=2), rows="disjoint", trees=5)
        for epsilon in (*ODD, SURE):
            with _open(_frame(domain), domain) as table:
                model = _grow(table, plan, epsilon)
                _check_ledger(table, model)
            assert len(model.trees) == 5
            assert model.privacy.spent == epsilon
            assert set(model.privacy.paths(0)) == {epsilon - _prior(model)}
    rows = sum(tree.counts[0].sum() for tree in model.trees)
    assert rows == 300  # each row is in one of them
    assert all(tree.counts[0].sum() < 150 for tree in model.trees)


def test_several_rows_of_a_person_cost_the_same_and_are_told_with_more_noise() -> None:
    # an empty table: leaf counts are noise alone, 2048 of them; the seed is fixed, so the bound of a tenth is no gamble
    deviations = []
    for people in (1, 3):
        domain = _binary(rows_per_person=people)
        plan = replace(preset("hanisch-tree").plan(domain, max_depth=10), prior=Fraction(0))
        with seeded_noise(people), _open(_frame(domain, 0), domain) as table:
            model = _grow(table, plan, "0.5")
            _check_ledger(table, model)
        assert model.privacy.spent == Fraction(1, 2)
        assert model.privacy.rows_per_person == people
        leaves = model.tree.is_leaf
        (deviation,) = set(model.tree.deviation[leaves])
        assert model.tree.counts[leaves].std() == pytest.approx(deviation, rel=0.1)
        deviations.append(deviation)
    assert deviations[1] == pytest.approx(3 * deviations[0], rel=0.01)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_person_with_several_rows_is_charged_epsilon_at_every_step(name: str) -> None:
    domain = replace(MIXED, rows_per_person=3)
    with _open(FRAMES["mixed"], domain) as table:
        model = _grow(table, preset(name).plan(domain, max_depth=2), "1/3")
        _check_ledger(table, model)
    assert model.privacy.spent == Fraction(1, 3)


# -- any plan at all ----------------------------------------------------------------------------


@st.composite
def any_plan(drawn: st.DrawFn) -> Plan:
    """Any combination of choices, most of which no paper has."""

    def one_of(*choices: Any) -> Any:
        return drawn(st.sampled_from(choices))

    split = one_of(*plans.SPLITS)
    numeric = one_of(*plans.NUMERIC)
    stop = one_of("never", "noise", "pure")
    budgets = [even, with_points, fixed, plans.harmonic, plans.harmonic_squared, leaves_only]
    if not drawn(st.integers(0, 9)) == 0:  # mostly a budget that has a share for everything that is asked
        budgets = budgets if split == "random" else budgets[:2] if stop == "noise" else budgets[:5]
        budgets = [with_points] if numeric == "separate" and split == "select" else budgets
    return Plan(
        "any",
        one_of(*budgets),
        depth=one_of(0, 1, 2, 3, half_or_log, above_noise),
        split=split,
        criterion=one_of("max", "gini", "infogain", "largest-cell", WeightedMax((9, 1024, 3))),
        mechanism=one_of("permute-and-flip", "exponential", "noisy-max"),
        monotone=one_of(True, False),
        marginals=one_of(True, False),
        numeric=numeric,
        stop=stop,
        leaf=one_of(*plans.LEAVES),
        remainder=one_of(True, False),
        consistency=one_of(*plans.CONSISTENCY),
        prune=one_of(*plans.PRUNING),
        trees=one_of(1, 2, 3),
        rows=one_of("all", "disjoint"),
        vote=one_of("majority", "average", "weighted"),
        prior=one_of(Fraction(0), Fraction(1, 20), Fraction(2, 3)),
        fallback=one_of(True, False),
    )


def _is_legal(plan: Plan, domain: Domain) -> bool:
    buys_sizes = plan.budget in (even, with_points)
    if plan.split != "random" and (plan.budget is leaves_only or (plan.stop == "noise" and not buys_sizes)):
        return plan.depth == 0
    if plan.split != "random" and plan.numeric == "separate" and plan.budget is not with_points:
        return plan.depth == 0
    return isinstance(plan.depth, int) or bool(plan.prior) or domain.rows is not None


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    any_plan(),
    st.sampled_from([MIXED, replace(MIXED, rows=300), replace(MIXED, rows_per_person=2)]),
    st.sampled_from([*ODD, SURE, as_epsilon(2)]),
    st.integers(0, 5),
)
def test_no_plan_spends_more_than_epsilon_and_what_it_cannot_do_it_refuses_first(
    plan: Plan, domain: Domain, epsilon: Fraction, seed: int
) -> None:
    with _open(FRAMES["mixed"], domain) as table:
        try:
            model = _grow(table, plan, epsilon, seed)
        except QuestionError:
            assert not _is_legal(plan, domain)
            assert table.budget.spent == 0
            return
        _check_ledger(table, model)
    assert len(model.trees) == plan.trees
    trees = range(1 if plan.rows == "disjoint" else plan.trees)
    for tree, share in zip(trees, plan.tree_shares(epsilon - _prior(model)), strict=False):
        paths = set(model.privacy.paths(tree))
        assert paths == {share} if plan.remainder else max(paths) <= share
    assert model.privacy.spent == epsilon or not plan.remainder
    assert model.private
    assert Ensemble.from_json(model.to_json()).to_json() == model.to_json()
    assert model.predict(FRAMES["mixed"]).shape == (300,)


# -- refused before anything is charged ---------------------------------------------------------


def _refused(table: ProtectedTable, classifier: Any, error: type[PrivetError], message: str) -> None:
    """One sentence, and nothing is charged."""
    with pytest.raises(error, match=message) as caught:
        classifier.fit(table)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert table.budget.spent == 0 and table.budget.entries == []
    assert not hasattr(classifier, "model_")


@pytest.mark.parametrize("name", [name for name in PRIVATE if name != "id3plus"])  # its rows bound its leaves
def test_a_tree_that_may_be_too_large_is_refused(name: str) -> None:
    for bounds, limit in (({"max_rows": LARGE}, 1000), ({"max_rows": 10**9}, 10_000)):
        domain = _binary(10, 20, **bounds)
        with privet.open(_frame(domain, 50), domain, budget=2) as table:
            classifier = CLASSIFIERS[name](epsilon=1, max_depth=10, max_leaves=limit)  # type: ignore[call-arg]
            _refused(table, classifier, QuestionError, f"max_leaves={limit} .*lower max_depth.*Nothing was charged")


def test_a_deep_multiway_tree_fits_where_a_public_number_of_rows_bounds_it() -> None:
    domain = _binary(10, 20, rows=500)
    with privet.open(_frame(domain, 500), domain, budget=2) as table:
        model = privet.DiffPID3Classifier(epsilon=1, max_depth=10).fit(table).model_
    assert table.budget.spent == 1
    assert len(model.tree) < 100_000


@pytest.mark.parametrize("name", ["jagannathan", "snr-forest"])
def test_a_depth_from_a_bought_number_of_rows_is_lowered_rather_than_refused(name: str) -> None:
    domain = _binary(6)
    with privet.open(_frame(domain), domain, budget=LARGE) as table:
        model = _grow(table, preset(name).plan(domain, n_estimators=2, max_leaves=5), SURE)
        assert table.budget.spent == SURE
        assert 1 < max(tree.leaves for tree in model.trees) <= 5
        free = _grow(table, preset(name).plan(domain, n_estimators=2), SURE)
        assert max(tree.leaves for tree in free.trees) > 5


@pytest.mark.parametrize("name", ["diffpid3", "diffpc45", "mohammed", "patil-singh"])
def test_criteria_that_cannot_be_used_are_refused(name: str) -> None:
    unbounded = _binary(4)
    for domain, criterion, error, message in (
        (BINARY, "entropy", QuestionError, "there is no criterion 'entropy'; choose max, gini, infogain"),
        (BINARY, None, QuestionError, "there is no criterion 'None'"),
        (BINARY, "gain-ratio", NotPrivate, "gain ratio of a split has no bounded sensitivity"),
        (BINARY, GainRatio(), NotPrivate, "gain ratio of a split has no bounded sensitivity"),
        (BINARY, WeightedMax((1, 2, 3)), QuestionError, "one weight for each of the 2 classes"),
        (unbounded, "infogain", PrivacyError, "declare max_rows in the domain file, or choose max or gini"),
    ):
        with privet.open(_frame(domain, 20), domain, budget=2) as table:
            classifier = CLASSIFIERS[name](epsilon=1, criterion=criterion)  # type: ignore[call-arg]
            _refused(table, classifier, error, message)


@pytest.mark.parametrize("name", [*PRIVATE])
def test_domains_with_nothing_to_predict_are_refused(name: str) -> None:
    one_class = Domain((Nominal("a", (0, 1)), Nominal("y", ("only",))), target="y", max_rows=10)
    no_attributes = Domain((Nominal("y", ("no", "yes")),), target="y", max_rows=10)
    no_target = Domain((Nominal("a", (0, 1)), Nominal("y", ("no", "yes"))), max_rows=10)
    for domain, error, message in (
        (one_class, QuestionError, "the target 'y' has one class, so there is nothing to predict"),
        (no_attributes, QuestionError, "declares no column besides the target"),
        (no_target, UndeclaredDomain, "the domain declares no target"),
    ):
        with privet.open(_frame(domain, 20), domain, budget=2) as table:
            _refused(table, CLASSIFIERS[name](epsilon=1), error, message)


@pytest.mark.parametrize("name", PRIVATE)
def test_budgets_that_are_none_are_refused(name: str) -> None:
    make = CLASSIFIERS[name]
    with privet.open(FRAMES["binary"], BINARY, budget="0.999") as table:
        _refused(table, make(), QuestionError, "needs an epsilon, the privacy budget of the whole fit, as epsilon=0.5")
        for epsilon in (math.nan, -1, 0, math.inf, "many", True, 10**7):
            _refused(table, make(epsilon=epsilon), QuestionError, "epsilon must be a number between")
        _refused(table, make(epsilon=1), BudgetExceeded, f"cannot fit {name} with epsilon=1: the table has 0.999 left")
        _refused(table, make(epsilon="1e-9"), QuestionError, "epsilon must be a number between 0.000000001 and")
        assert make(epsilon="0.999").fit(table).privacy_.spent == table.budget.spent == Fraction("0.999")


def test_a_part_of_a_table_is_refused_what_it_has_not_left() -> None:
    table = privet.open(FRAMES["binary"], BINARY, budget=2)
    table.count(1)
    with pytest.raises(BudgetExceeded, match="the table has 1 left") as caught:
        privet.DiffPID3Classifier(epsilon=1.5).fit(table)
    assert (caught.value.requested, caught.value.remaining) == (Fraction(3, 2), 1)
    with pytest.raises(BudgetExceeded, match=r"the table has 0\.5 left"):
        privet.DiffPID3Classifier(epsilon=1).fit(table.allot(0.5))
    assert table.budget.spent == 1


NOT_PRIVATE = {
    "jagannathan": ({}, "E-9"),
    "snr-forest": ({}, "E-9"),
    "patil-singh": ({}, "E-1"),
    "maxforest": ({}, "E-1"),
    "diffpc45": ({"criterion": "gini"}, "E-4"),
    "hanisch-tree": ({}, "E-8"),
    "hanisch-forest": ({}, "E-8"),
}


@pytest.mark.parametrize("name", [name for name, variant in CASES if variant == "published"])
def test_published_algorithms_that_are_not_private_run_on_public_rows_alone(name: str) -> None:
    choices, erratum = NOT_PRIVATE.get(name, ({}, None))
    make = CLASSIFIERS[name]
    X, y = FRAMES["binary"].drop(columns="y"), FRAMES["binary"]["y"]
    with privet.open(FRAMES["binary"], BINARY, budget=2) as table:
        if erratum is None:
            assert make(epsilon=1, variant="published").fit(table).privacy_.private
            assert 0 < table.budget.spent <= 1
            return
        published = make(epsilon=1, variant="published", **choices)
        _refused(table, published, NotPrivate, f"not differentially private \\({erratum}: ")
        with pytest.raises(NotPrivate, match=erratum):
            make(epsilon=1, variant="published", domain=BINARY, **choices).fit(X, y)
        unsafe = make(epsilon=1, variant="published", unsafe=True, **choices)
        _refused(table, unsafe, NotPrivate, f"{erratum}.*fit it on public rows")
        with pytest.raises(QuestionError, match="not private"):
            _grow(table, preset(name).plan(BINARY, "published", **choices), 1)
        assert table.budget.spent == 0
    model = make(epsilon=1, variant="published", unsafe=True, domain=BINARY, **choices).fit(X, y).model_
    assert not model.private
    assert any(reason.startswith(f"{erratum}:") for reason in model.privacy.reasons)
    assert '"private": false' in model.to_json() and "NOT PRIVATE" in str(model.privacy)
    safe = make(epsilon=1, unsafe=True, domain=BINARY, **choices).fit(X, y)  # the corrected one, whatever unsafe says
    assert safe.privacy_.private


@pytest.mark.parametrize("name", ["id3", "c45"])
def test_plain_trees_do_not_read_a_protected_table(name: str) -> None:
    with privet.open(FRAMES["binary"], BINARY, budget=2) as table:
        _refused(table, CLASSIFIERS[name](), NotPrivate, "it reads rows without noise.*fit it on public rows")
        with pytest.raises(PrivetError):  # nor by the back door
            _grow(table, preset(name).plan(BINARY), 1)
        assert table.budget.spent == 0


def test_a_plan_by_hand_cannot_draw_rows_twice_from_a_protected_table() -> None:
    plan = replace(preset("maxforest").plan(BINARY), rows="bootstrap", errata=())
    with privet.open(FRAMES["binary"], BINARY, budget=2) as table:
        with pytest.raises(QuestionError, match="not private runs on rows that its caller declares public"):
            _grow(table, plan, 1)
        assert table.budget.spent == 0


def test_a_rule_for_the_depth_needs_rows_that_are_public_or_bought() -> None:
    plan = replace(preset("jagannathan").plan(BINARY), prior=Fraction(0))
    with privet.open(FRAMES["binary"], BINARY, budget=2) as table:
        with pytest.raises(QuestionError):
            _grow(table, plan, 1)
        assert table.budget.spent == 0


FORESTS = (privet.JagannathanForestClassifier, privet.PatilSinghForestClassifier, privet.MaxForestClassifier)


@pytest.mark.parametrize("make", FORESTS, ids=lambda make: make.algorithm)
def test_a_forest_is_the_same_whatever_the_number_of_jobs(make: Any) -> None:
    """Would catch noise that depends on which thread asks first, steps out of order, and charges that are lost."""
    people, domain = privet.datasets.census(3000), privet.datasets.census_domain()
    models = []
    for jobs in (1, 2, 5):
        with seeded_noise(4):
            table = privet.open(people, domain, budget=1)
        models.append(make(epsilon="0.5", random_state=0, n_jobs=jobs).fit(table).model_)
        assert table.budget.spent == Fraction(1, 2)
    first = models[0]
    for other in models[1:]:
        for tree, same in zip(first.trees, other.trees, strict=True):
            assert tree.column.tolist() == same.column.tolist()
            assert tree.counts.tolist() == same.counts.tolist()
        steps = [replace(step, entry=None) for step in first.privacy.steps]
        assert steps == [replace(step, entry=None) for step in other.privacy.steps]


def test_jobs_that_cannot_be_are_refused_for_nothing() -> None:
    table = privet.open(privet.datasets.census(100), privet.datasets.census_domain(), budget=1)
    for jobs in (0, -2, 1.5, True, "two"):
        with pytest.raises(QuestionError, match="n_jobs must be a whole number from 1, or -1"):
            privet.JagannathanForestClassifier(epsilon=1, n_jobs=jobs).fit(table)
    assert table.budget.spent == 0


def test_trees_at_once_spend_no_more_than_their_forest() -> None:
    """Of a table that cannot pay all of it nothing is charged, however many trees would begin at once."""
    table = privet.open(privet.datasets.census(100), privet.datasets.census_domain(), budget="0.4")
    with pytest.raises(privet.BudgetExceeded):
        privet.JagannathanForestClassifier(epsilon="0.5", n_jobs=4).fit(table)
    assert table.budget.spent == 0
