"""Growth: what a fit spends, what it refuses before it spends anything, and what it may depend on."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import BudgetExceeded, NotPrivate, PrivacyError, PrivetError, QuestionError, UndeclaredDomain
from privet.kernel import ProtectedTable, WeightedMax
from privet.kernel.accounting import GRAIN, as_epsilon
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.limits import decimal_text
from privet.lab import GainRatio, open_public
from privet.learners import plan as plans
from privet.learners import splitting
from privet.learners.estimators import CLASSIFIERS
from privet.learners.grow import grow, refill
from privet.learners.plan import Plan, above_noise, even, fixed, half_or_log, leaves_only, with_points
from privet.learners.presets import PRESETS, preset
from privet.learners.progress import Progress
from privet.learners.structure import draw
from privet.models.tree import Ensemble, Tree
from privet.testing import seeded_noise

PRIVATE = [name for name in PRESETS if name not in ("id3", "c45")]
FORESTS = ["jagannathan", "patil-singh", "snr-forest", "maxforest", "hanisch-forest"]
VARIANTS = ("corrected", "published")
CASES = [(name, variant) for name in PRIVATE for variant in PRESETS[name].variants]
LARGE = 1_000_000
SURE = as_epsilon(100_000)  # no noise is to be seen, so no stop rule fires where there is a row
ODD = [as_epsilon(text) for text in ("1/3", "0.07", "7/90")]


def _binary(attributes: int = 11, cells: int = 2, **bounds: int) -> Domain:
    columns = (Nominal(f"a{i}", tuple(range(cells))) for i in range(attributes))
    return Domain((*columns, Nominal("y", ("no", "yes"))), target="y", **bounds)


BINARY = _binary(max_rows=1000)
MIXED = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=3, missing=True),
        Nominal("sex", ("f", "m"), other=True),
        Nominal("grade", (3, 1, 2)),
        Numeric("wage", Fraction(0), Fraction(5), Fraction("0.5"), bins=2),
        Nominal("town", ("a", "b", "c"), missing=True),
    ),
    target="grade",
    max_rows=1000,
)
DOMAINS = {"binary": BINARY, "mixed": MIXED}


def _frame(domain: Domain, rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    content: dict[str, Any] = {}
    for column in domain:
        if isinstance(column, Nominal):
            values = [*column.values, *["elsewhere"] * column.other, *[None] * column.missing]
            content[column.name] = rng.choice(np.array(values, dtype=object), rows)
        else:
            low, high = float(column.low), float(column.high)
            content[column.name] = rng.uniform(low - 1, high + 1, rows)
            if column.missing:
                content[column.name][rng.random(rows) < 0.1] = np.nan
    return pd.DataFrame(content)


FRAMES = {name: _frame(domain) for name, domain in DOMAINS.items()}
FRAMES["binary"]["y"] = np.where(FRAMES["binary"]["a0"] == FRAMES["binary"]["a3"], "yes", "no")


def _open(frame: pd.DataFrame, domain: Domain, plan: Plan | None = None, budget: Any = LARGE) -> ProtectedTable:
    """A protected table; rows that are public where the plan is not private."""
    if plan is not None and plan.errata:
        return open_public(frame, domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges)
    return privet.open(frame, domain, budget=budget)


def _grow(table: ProtectedTable, plan: Plan, epsilon: Any, seed: int = 0) -> Ensemble:
    return grow(table, plan, as_epsilon(epsilon), np.random.default_rng(seed))


def _check_ledger(table: ProtectedTable, model: Ensemble) -> None:
    """The ledger has written down what the model says it cost, question by question."""
    record = model.privacy
    assert table.budget.spent == record.spent <= record.epsilon
    entries = {entry.id: entry for entry in table.budget.entries}
    assert [step.entry for step in record.steps] == sorted(entries)
    for step in record.steps:
        assert step.entry is not None
        assert entries[step.entry].epsilon == decimal_text(step.epsilon)
    assert sum((entry.loss for entry in entries.values()), Fraction(0)) == record.spent


def _prior(model: Ensemble) -> Fraction:
    return sum((step.epsilon for step in model.privacy.steps if step.tree < 0), Fraction(0))


def _published_share(name: str, share: Fraction, depth: int) -> Fraction:
    """What a path of full length pays by the paper."""
    if not name.startswith("max"):
        return share
    harmonic = 1 + sum(Fraction(1, k) for k in range(1, depth + 1))
    return share * (1 + sum(Fraction(1, k**2) for k in range(1, depth + 1))) / harmonic


# -- what a fit spends --------------------------------------------------------------------------


@pytest.mark.parametrize("data", DOMAINS)
@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_path_spends_what_it_may_at_every_depth(name: str, variant: str, data: str) -> None:
    domain, frame = DOMAINS[data], FRAMES[data]
    for depth in range(1, 11):
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


# -- what a fit may not depend on ---------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
def test_empty_tables_and_tables_of_one_class_fit_like_any_other(name: str) -> None:
    for domain in (BINARY, MIXED):
        whole = _frame(domain, 200)
        target = domain.target_column
        for frame in (whole.iloc[:0], whole.assign(**{target.name: target.values[1]}), whole.iloc[:1]):
            for epsilon in (as_epsilon(1), SURE):
                plan = preset(name).plan(domain, max_depth=2)
                with _open(frame, domain) as table:
                    model = _grow(table, plan, epsilon)
                    _check_ledger(table, model)
                assert model.privacy.spent == epsilon
                assert np.isfinite(model.predict_proba(whole)).all()
                assert model.predict(whole).shape == (200,)


def _nodes(tree: Tree) -> list[Any]:
    return [tree.column.tolist(), tree.at.tolist()]


@pytest.mark.parametrize("numeric", ["bins", "joint"])
def test_a_random_structure_is_the_same_for_every_table(numeric: str) -> None:
    plan = replace(preset("hanisch-forest").plan(MIXED, max_depth=4), numeric=numeric)
    drawn = []
    for frame in (FRAMES["mixed"], FRAMES["mixed"].iloc[:0]):
        for epsilon in (1, SURE):
            with _open(frame, MIXED) as table:
                model = _grow(table, plan, epsilon, seed=5)
            assert len({tuple(tree.column) for tree in model.trees}) > 1
            drawn.append([_nodes(tree) for tree in model.trees])
            asked = [step.parts for step in model.privacy.steps if step.tree >= 0]
            assert sum(asked) == sum(tree.leaves for tree in model.trees)  # every leaf, empty or not
    assert drawn[1:] == drawn[:1] * 3
    other = _grow(_open(FRAMES["mixed"], MIXED), plan, 1, seed=6)
    assert [_nodes(tree) for tree in other.trees] != drawn[0]


@pytest.mark.parametrize("name", ["sulq-id3", "diffpid3", "diffpc45", "mohammed", "maxtree"])
def test_every_cell_of_a_split_becomes_a_node(name: str) -> None:
    # all rows are alike, so nearly all cells are empty; without a stop rule all of them are asked to the last level
    domain = _binary(4, 5, max_rows=1000)
    frame = pd.DataFrame({**{f"a{i}": [0] * 100 for i in range(4)}, "y": ["no", "yes"] * 50})
    plan = replace(preset(name).plan(domain, max_depth=3), prune="none", consistency="none")
    with _open(frame, domain) as table:
        model = _grow(table, plan, SURE)
    tree = model.tree
    assert (tree.arity[~tree.is_leaf] == 5).all()
    asked: dict[int, int] = {}
    for step in model.privacy.steps:
        if step.question in ("class counts", "label"):
            asked[step.level] = step.parts
    assert asked == {depth: int((tree.is_leaf & (tree.depths == depth)).sum()) for depth in asked}
    assert sum(asked.values()) == tree.leaves
    if plan.stop == "never":
        assert tree.leaves == 5**3


COUNTED = replace(MIXED, rows=300)
ON_PROTECTED_TABLES = [(name, variant) for name, variant in CASES if not preset(name).plan(COUNTED, variant).errata]


@pytest.mark.parametrize(("name", "variant"), ON_PROTECTED_TABLES)
def test_both_engines_grow_the_same_tree(name: str, variant: str, tmp_path: Path) -> None:
    domain = COUNTED
    frame = FRAMES["mixed"]
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    trees = {"n_estimators": 2} if name in FORESTS else {}
    plan = preset(name).plan(domain, variant, max_depth=2, **trees)
    texts = []
    for data in (frame, f"duckdb:///{path}?table=people"):
        with privet.testing.open(data, domain, budget=20, seed=4) as table:
            texts.append(grow(table, plan, as_epsilon(20), np.random.default_rng(3), variant=variant).to_json())
    assert texts[0] == texts[1]
    content = json.loads(texts[0])
    assert content["privacy"]["private"] is False
    assert content["privacy"]["reasons"] == ["its noise was seeded, or its rows are public"]
    assert len(content["trees"][0]) > 3


def test_both_engines_scatter_rows_alike(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame = FRAMES["mixed"]
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute(f"COPY frame TO '{path}' (FORMAT parquet)")
    plan = replace(preset("diffpid3").plan(MIXED, max_depth=2), rows="disjoint", trees=3)
    texts = []
    for data in (frame, path):
        with privet.testing.open(data, MIXED, budget=50, seed=4) as table:
            texts.append(_grow(table, plan, 50, seed=9).to_json())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["jagannathan", "snr-forest", "hanisch-tree", "hanisch-forest"])
def test_random_state_fixes_the_structure_and_not_the_noise(name: str) -> None:
    make = CLASSIFIERS[name]
    with privet.open(FRAMES["mixed"], MIXED, budget=10) as table:
        first, second, other = (make(1, max_depth=3, random_state=seed).fit(table).model_ for seed in (7, 7, 8))
    trees = list(zip(first.trees, second.trees, strict=True))
    if name != "snr-forest":  # it is pruned by what the noise made of its counts
        assert [_nodes(tree) for tree, _ in trees] == [_nodes(tree) for _, tree in trees]
        assert [_nodes(tree) for tree in other.trees] != [_nodes(tree) for tree in first.trees]
    # two fits that share their noise agree in all of their some hundred counts; those that do not, never
    assert any(tree.counts.shape != twin.counts.shape or (tree.counts != twin.counts).any() for tree, twin in trees)


def test_random_state_does_not_seed_the_noise_of_trees_that_look() -> None:
    with privet.open(FRAMES["binary"], BINARY, budget=10) as table:
        twins = [privet.MohammedTreeClassifier(0.1, random_state=7).fit(table).model_.to_json() for _ in range(2)]
    assert twins[0] != twins[1]


def test_a_random_tree_draws_thresholds_that_divide_what_is_left() -> None:
    plan = Plan("p", leaves_only, depth=6, split="random", numeric="joint")
    for seed in range(30):
        tree = draw(plan, MIXED, 6, np.random.default_rng(seed))
        grid = {name: (0, MIXED.numeric(name).grid_size) for name in ("age", "wage")}
        waiting = [(0, grid)]
        while waiting:
            node, bounds = waiting.pop()
            if tree.at[node] >= 0:
                name, at = MIXED.attributes[tree.column[node]], int(tree.at[node])
                low, high = bounds[name]
                assert low < at < high
                first = int(tree.first[node])
                waiting += [(first, {**bounds, name: (low, at)}), (first + 1, {**bounds, name: (at, high)})]
            elif tree.first[node] >= 0:
                waiting += [(int(tree.first[node]) + cell, bounds) for cell in range(int(tree.arity[node]))]


# -- greedy trees choose what is best where noise does not matter --------------------------------


def _questions(model: Ensemble) -> list[tuple[int, str, int]]:
    return [(step.level, step.question, step.parts) for step in model.privacy.steps]


@pytest.mark.parametrize("criterion", ["max", "gini", "infogain"])
def test_a_tree_without_noise_to_speak_of_is_the_tree_of_the_rows(criterion: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2, (2, 800))
    frame = pd.DataFrame({"a0": a, "a1": rng.integers(0, 2, 800), "a2": b, "a3": rng.integers(0, 2, 800)})
    # to the majority vote no split of "a or b" is better than none, so that it gets an easier task
    frame["y"] = np.where(a + b > 0 if criterion != "max" else a > 0, "yes", "no")
    domain = _binary(4, max_rows=1000)
    for variant in VARIANTS:
        with _open(frame, domain) as table:
            plan = preset("diffpid3").plan(domain, variant, criterion=criterion, max_depth=2)
            model = _grow(table, plan, SURE)
        used = [domain.attributes[column] for column in model.tree.column if column >= 0]
        assert used[0] in (("a0", "a2") if criterion != "max" else ("a0",))
        assert (model.predict(frame) == frame["y"]).all()
        assert model.tree.size[0] == 800
        assert model.tree.counts[0].tolist() == frame["y"].value_counts().loc[["no", "yes"]].tolist()


@pytest.mark.parametrize("name", ["sulq-id3", "diffpid3", "diffpc45", "patil-singh", "mohammed", "maxtree"])
def test_nodes_asked_in_batches_pay_as_one_level(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("split", "all counts")
    # so few cells at a time that every node is a batch of its own
    monkeypatch.setattr(splitting, "MAX_CELLS", 1)
    for variant in VARIANTS:
        plan = preset(name).plan(MIXED, variant, max_depth=2)
        if plan.errata:
            continue
        for epsilon in (as_epsilon("1/3"), SURE):
            with _open(FRAMES["mixed"], MIXED) as table:
                model = _grow(table, plan, epsilon)
                assert table.budget.spent == model.privacy.spent <= epsilon
                assert len(table.budget.entries) > len(model.privacy.steps) or epsilon != SURE
            assert variant == "published" or model.privacy.spent == epsilon
            for tree, share in enumerate(plan.tree_shares(epsilon)):
                assert variant == "published" or set(model.privacy.paths(tree)) == {share}
            if epsilon == SURE:
                tree = model.trees[0]
                sizes = {step.level: step.parts for step in model.privacy.steps if step.question in asked}
                assert plan.prune != "none" or sizes[1] == ((tree.depths == 1) & ~tree.is_leaf).sum()


def test_the_record_lists_one_question_of_a_kind_a_level() -> None:
    model = _grow(_open(FRAMES["binary"], BINARY), preset("diffpid3").plan(BINARY, max_depth=2), SURE)
    assert _questions(model) == [
        (0, "size", 1),
        (0, "split", 1),
        (1, "size", 2),
        (1, "split", 2),
        (2, "class counts", 4),
    ]
    plan = preset("diffpc45").plan(MIXED, "published", max_depth=1)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, SURE)
    names = [question for _, question, _ in _questions(model)]
    assert names == ["size", "threshold of age", "threshold of wage", "split", "size", "class counts"]
    model = _grow(_open(FRAMES["mixed"], MIXED), replace(plan, leaf="label"), SURE)
    assert _questions(model)[-1][1] == "label"
    assert set(model.tree.counts[model.tree.is_leaf].sum(axis=1)) <= {0.0, 1.0} or plan.consistency != "none"


def test_progress_is_told_a_line_at_a_time() -> None:
    told: list[Progress] = []
    with _open(FRAMES["binary"], BINARY) as table:
        grow(
            table,
            preset("maxforest").plan(BINARY, n_estimators=2, max_depth=1),
            as_epsilon(1),
            np.random.default_rng(0),
            progress=told.append,
        )
    assert [each.what for each in told] == [
        "tree 1 of 2, level 0 of 1: 1 node",
        "tree 1 of 2, level 1 of 1: 2 nodes",
        "tree 2 of 2, level 0 of 1: 1 node",
        "tree 2 of 2, level 1 of 1: 2 nodes",
    ]


# -- later rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["jagannathan", "snr-forest", "hanisch-tree", "hanisch-forest"])
def test_rows_added_later_are_counted_into_the_same_leaves(name: str, variant: str) -> None:
    domain = replace(MIXED, rows=300)
    plan = replace(preset(name).plan(domain, variant, max_depth=2), errata=(), rounded_noise=False)
    first, second = _frame(domain, 300, seed=1), _frame(domain, 200, seed=2)
    with _open(first, domain) as old, _open(second, domain) as new:
        model = _grow(old, plan, SURE)
        spent = old.budget.spent
        more = refill(new, model, plan, SURE)
        assert old.budget.spent == spent
        assert new.budget.spent == SURE
    assert [_nodes(tree) for tree in more.trees] == [_nodes(tree) for tree in model.trees]
    assert more.privacy.added == (SURE,)
    assert more.privacy.steps == model.privacy.steps
    with _open(pd.concat([first, second]), domain) as both:
        direct = refill(both, _emptied(model), plan, SURE)
    for tree, whole in zip(more.trees, direct.trees, strict=True):
        assert tree.counts.tolist() == whole.counts.tolist()
        assert tree.counts[0].sum() == 500
    for tree, before in zip(more.trees, model.trees, strict=True):
        assert (tree.deviation >= before.deviation).all()
    if model.prior is not None:
        counts = pd.concat([first, second])[domain.target].value_counts()
        assert more.prior == pytest.approx([counts[value] for value in domain.classes])  # each tree counts all of them


def _emptied(model: Ensemble) -> Ensemble:
    return replace(model, trees=tuple(tree.with_counts(tree.counts * 0, tree.deviation * 0) for tree in model.trees))


def test_rows_added_later_cost_epsilon_once_in_a_forest_of_disjoint_rows() -> None:
    plan = replace(preset("hanisch-forest").plan(MIXED), rows="disjoint", trees=5)
    with _open(FRAMES["mixed"], MIXED) as old, _open(FRAMES["mixed"], MIXED, budget=1) as new:
        more = refill(new, _grow(old, plan, 1), plan, Fraction(1))
        assert new.budget.spent == 1
    assert more.privacy.added == (1,)


def test_rows_of_another_domain_are_not_added() -> None:
    plan = preset("hanisch-tree").plan(MIXED)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, 1)
    other = replace(MIXED, max_rows=999)
    with privet.open(FRAMES["mixed"], other, budget=1) as table:
        with pytest.raises(QuestionError, match="another domain than the model"):
            refill(table, model, plan, Fraction(1))
        with pytest.raises(QuestionError, match="another domain"):
            clf = privet.HanischTreeClassifier(1).fit(_open(FRAMES["mixed"], MIXED))
            clf.partial_fit(table)
        assert table.budget.spent == 0
    with privet.open(FRAMES["mixed"], MIXED, budget="0.5") as table:
        with pytest.raises(BudgetExceeded, match=r"0\.5 left"):
            refill(table, model, plan, Fraction(1))
        assert table.budget.spent == 0


def test_noise_of_added_rows_that_is_seeded_marks_the_model() -> None:
    plan = preset("hanisch-tree").plan(MIXED)
    model = _grow(_open(FRAMES["mixed"], MIXED), plan, 1)
    assert model.private
    with seeded_noise(1):
        more = refill(_open(FRAMES["mixed"], MIXED), model, plan, Fraction(1))
    assert not more.private
    twice = refill(_open(FRAMES["mixed"], MIXED), more, plan, Fraction(1))
    assert not twice.private and twice.privacy.added == (1, 1)


# -- what a model tells -------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIVATE)
def test_a_model_says_nothing_of_who_asked_where_and_when(name: str, tmp_path: Path) -> None:
    frame = FRAMES["mixed"]
    texts = []
    for word in ("mallory", "wallace"):
        with seeded_noise(1), privet.open(frame, MIXED, budget=5, analyst=f"{word}-a", name=f"{word}-b") as table:
            text = _grow(table, preset(name).plan(MIXED, max_depth=2), 2).to_json()
            times = [entry.at for entry in table.budget.entries]
        assert word not in text and tmp_path.name not in text
        assert not any(at[:10] in text for at in times)
        texts.append(text)
    assert texts[0] == texts[1]
    keys: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            keys.update(value)
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            collect(each)

    collect(json.loads(texts[0]))
    assert keys <= {
        *("format", "version", "privacy", "domain", "vote", "prior", "trees"),
        *("algorithm", "variant", "private", "reasons", "epsilon", "spent", "rows_per_person", "disjoint", "added"),
        *("steps", "tree", "level", "question", "parts", "entry"),
        *("split", "at", "size", "counts", "deviation"),
    }


@pytest.mark.parametrize(("rows", "found"), [(1_000, False), (10**7, True)])
def test_id3_plus_looks_closer_where_there_is_signal(rows: int, found: bool) -> None:
    """All cells have one majority: max sees nothing, gini which attribute matters; public rows decide between them."""
    columns = [Nominal(f"a{i}", (0, 1)) for i in range(12)]
    domain = Domain((*columns, Nominal("y", (0, 1))), target="y", rows=rows)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (2_000, 12)), columns=[column.name for column in columns])
    frame["y"] = (rng.random(2_000) < 0.05 + 0.35 * frame["a7"]).astype(int)
    with privet.open(frame, domain, budget=100) as table:
        roots = {
            privet.ID3PlusClassifier(epsilon=10, max_depth=1).fit(table).model_.tree.root.attribute for _ in range(8)
        }
    assert (roots == {"a7"}) is found
