"""Sites: a choice made while a tree grows changes no charge, sees nothing private, and is held to the plan's rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import few, long
from sklearn.base import clone

import privet
from privet.datasets import census, census_domain
from privet.errors import QuestionError
from privet.kernel import IntegerLaplace, as_epsilon
from privet.kernel.column import Nominal, Numeric
from privet.kernel.criteria import Gini
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery
from privet.kernel.rows import Rows
from privet.lab import open_public, worst_loss
from privet.learners.growth import grow, refill
from privet.learners.plan import (
    NODE_SITES,
    RUN_SITES,
    Plan,
    Schedule,
    Site,
    above_noise,
    even,
    exact,
    fixed,
    half_or_log,
    harmonic,
    leaves_only,
    with_points,
)
from privet.learners.presets import PRESETS, preset
from privet.models.privacy_record import Privacy, Step
from privet.models.tree import Ensemble
from privet.release import Count, Derived, Histogram, Public, Release
from privet.table import ProtectedTable
from privet.testing import seeded_noise

PEOPLE = census(3000)
CENSUS = census_domain()
DOMAINS = {"rows bought": CENSUS, "rows public": replace(CENSUS, rows=3000)}
FORESTS = ["jagannathan", "patil-singh", "snr-forest", "maxforest", "hanisch-forest"]
CASES: list[tuple[str, str, dict[str, Any]]] = [
    *((name, variant, {}) for name, found in PRESETS.items() if found.private for variant in found.variants),
    ("diffpc45", "published", {"criterion": "gini"}),  # as printed it is not private
]
SINGLY = ("sulq-id3", "diffpid3", "diffpc45", "jagannathan", "id3plus")  # each field by itself, too
ONE = as_epsilon(1)
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
ROWS = pd.DataFrame(
    {
        "age": np.random.default_rng(0).uniform(0, 99, 300),
        "sex": np.random.default_rng(1).choice(["f", "m", "x"], 300),
        "grade": np.random.default_rng(2).choice([1, 2, 3], 300),
        "wage": np.random.default_rng(3).uniform(0, 5, 300),
        "town": np.random.default_rng(4).choice(["a", "b", "c"], 300),
    }
)

View = Mapping[str, Release | Public]


@dataclass(frozen=True)
class Always:
    """A site that says one thing."""

    setting: Any

    def decide(self, view: View) -> Any:
        return self.setting


@dataclass(frozen=True)
class By:
    """A site that follows a rule of the view."""

    rule: Callable[[View], Any]
    name: str = "by rule"

    def decide(self, view: View) -> Any:
        return self.rule(view)


@dataclass
class InTurn:
    """A site that says one thing after the other, and remembers what it was shown and said."""

    settings: tuple[Any, ...]
    seen: list[View] = field(default_factory=list)
    said: list[Any] = field(default_factory=list)

    def decide(self, view: View) -> Any:
        self.seen.append(view)
        self.said.append(self.settings[len(self.said) % len(self.settings)])
        return self.said[-1]


def _open(frame: pd.DataFrame, domain: Domain, plan: Plan | None = None) -> ProtectedTable:
    if plan is not None and not plan.is_private:
        return open_public(frame, domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges)
    return privet.open(frame, domain, budget=100)


def _grow(table: ProtectedTable, plan: Plan, epsilon: Any = 1, seed: int = 0) -> Ensemble:
    return grow(table, plan, as_epsilon(epsilon), np.random.default_rng(seed))


def _content(frame: pd.DataFrame, domain: Domain, plan: Plan, noise: int = 7) -> tuple[dict[str, Any], Any]:
    """A model without its decisions, and these."""
    with seeded_noise(noise), _open(frame, domain, plan) as table:
        content = json.loads(_grow(table, plan).to_json())
    return content, content["privacy"].pop("decisions", [])


def _paid(table: ProtectedTable, model: Ensemble) -> None:
    """The ledger and the record tell the same, and what a reader of the file can add up is within the promise."""
    record = model.privacy
    assert table.budget.spent == record.spent <= record.epsilon
    losses = {entry.id: entry.loss for entry in table.budget.entries}
    assert sum(losses.values(), Fraction(0)) == record.spent
    assert {step.entry for step in record.steps} <= set(losses)
    again = Ensemble.from_json(model.to_json())
    assert again.privacy == record and again.to_json() == model.to_json()


# -- a site that says what the plan said before changes nothing -----------------------------------


@pytest.mark.parametrize("rows", few(DOMAINS, ("rows bought",)))
@pytest.mark.parametrize(("name", "variant", "choices"), CASES)
def test_a_site_that_always_says_the_same_is_that_setting(
    name: str, variant: str, choices: dict[str, Any], rows: str
) -> None:
    """Same noise, same coins: every field of every plan as a site, one at a time and all at once."""
    domain = DOMAINS[rows]
    plan = preset(name).plan(domain, variant, **choices, **({"n_estimators": 2} if name in FORESTS else {}))
    expected, nothing = _content(PEOPLE, domain, plan)
    assert nothing == []
    assert len(expected["trees"][0]) > 1
    fields = (*RUN_SITES, *NODE_SITES)
    alone = fields if rows == "rows bought" and name in SINGLY else ()
    for some in (*((each,) for each in alone), fields):
        sites = replace(plan, **{each: Always(getattr(plan, each)) for each in some})
        found, decisions = _content(PEOPLE, domain, sites)
        assert found == expected, some
        asked = {decision["site"] for decision in decisions}
        assert asked <= set(some) and asked >= set(some) & set(RUN_SITES)
        assert all(decision["nodes"] == 1 for decision in decisions if decision["site"] in RUN_SITES)


@pytest.mark.parametrize("numeric", ["bins", "joint", "separate"])
def test_coins_at_nodes_are_the_coins_of_structures(numeric: str) -> None:
    """Also where they cut numbers, which have less and less room along a path."""
    plan = Plan("p", leaves_only, depth=5, split="random", numeric=numeric, trees=2, max_leaves=10**6)
    expected, _ = _content(ROWS, MIXED, plan)
    for sites in ({"split": Always("random")}, {"stop": Always("never")}):
        found, _ = _content(ROWS, MIXED, replace(plan, **sites))
        assert found == expected


@pytest.mark.parametrize("name", ["id3", "c45"])
def test_sites_of_plans_for_public_rows(name: str) -> None:
    plan = preset(name).plan(CENSUS, max_depth=3)
    expected, _ = _content(PEOPLE, CENSUS, plan)
    fields = (*RUN_SITES, *NODE_SITES)
    found, _ = _content(PEOPLE, CENSUS, replace(plan, **{each: Always(getattr(plan, each)) for each in fields[1:]}))
    assert expected["privacy"].pop("criterion") == plan.criterion  # where each node may have its own, none is named
    assert found == expected
    with open_public(PEOPLE, CENSUS) as table:
        chosen = _grow(table, replace(plan, budget=Always(exact)))
    assert json.loads(chosen.to_json())["trees"] == expected["trees"]
    assert chosen.privacy.reasons == ("it reads public rows without noise",)


# -- choices at nodes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        lambda view: "gini" if view["depth"].value else "max",
        lambda view: Gini() if view["rows"].value > 60 else "max",
        lambda view: ("max", "gini", "infogain", "largest-cell")[int(view["rows"].value) % 4],
    ],
)
@pytest.mark.parametrize("numeric", ["bins", "joint", "separate"])
def test_nodes_with_criteria_of_their_own_pay_as_one_level(rule: Any, numeric: str) -> None:
    budget = with_points if numeric == "separate" else even
    plan = Plan("p", budget, depth=3, criterion=By(rule), stop="noise", numeric=numeric)
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan, 50)
        _paid(table, model)
        entries = [entry.question for entry in table.budget.entries]
    assert table.budget.spent == model.privacy.spent == 50
    assert set(model.privacy.paths(0)) == {50}
    assert all(step.path is None for step in model.privacy.steps)  # all nodes of a level pay the same
    splits = [step for step in model.privacy.steps if step.question == "split"]
    assert [step.level for step in splits] == sorted({step.level for step in splits})  # one line for each level
    taken = {decision.branch: decision.nodes for decision in model.privacy.decisions}
    assert sum(taken.values()) == sum(step.parts for step in splits) == (~model.tree.is_leaf).sum()
    assert {f"select({branch})" for branch in taken} == {text for text in entries if text.startswith("select")}


def test_criteria_may_follow_from_what_was_bought() -> None:
    plan = Plan("p", fixed, depth=2, criterion=InTurn(("by-signal", "weighted-max")), prior=Fraction(1, 20))
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan)
        _paid(table, model)
        asked = {entry.question for entry in table.budget.entries}
    assert model.privacy.spent == 1
    assert {"select(max)", "select(weighted max)"} <= asked
    assert {decision.branch for decision in model.privacy.decisions} == {"by-signal", "weighted-max"}


def _expected_leaves(model: Ensemble, said: list[str], shares: list[Fraction], epsilon: Fraction) -> list[Fraction]:
    """What each leaf should have got: all that its path did not pay for selections."""
    tree, turn = model.tree, iter(said)
    paid = {0: Fraction(0)}
    leaves = []
    for node in range(len(tree)):  # breadth first, as nodes are asked
        if tree.is_leaf[node]:
            leaves.append(epsilon - paid[node])
            continue
        more = shares[tree.depths[node]] if next(turn) == "select" else 0
        for child in range(tree.first[node], tree.first[node] + tree.arity[node]):
            paid[child] = paid[node] + more
    assert next(turn, None) is None
    return leaves


@pytest.mark.parametrize("budget", [fixed, harmonic])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(7, 90), Fraction(20)])
@pytest.mark.parametrize("turns", [("select", "random"), ("random", "select", "select"), ("random",), ("select",)])
def test_a_random_split_leaves_its_share_to_the_leaves_below(budget: Any, epsilon: Fraction, turns: Any) -> None:
    site = InTurn(turns)
    plan = Plan("p", budget, depth=3, split=site)
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan, epsilon)
        _paid(table, model)
        assert table.budget.spent == epsilon
    assert model.privacy.spent == epsilon
    assert set(model.privacy.paths(0)) == {epsilon}
    tree = model.tree
    shares = [level.split for level in budget(plan, epsilon, 3, 0).levels]
    expected = _expected_leaves(model, site.said, shares, epsilon)
    assert tree.deviation[tree.is_leaf].tolist() == [IntegerLaplace(share).deviation for share in expected]
    assert len(set(expected)) > 1 or len(set(turns)) == 1
    asked = [step for step in model.privacy.steps if step.question == "class counts"]
    assert sum(step.parts for step in asked) == tree.leaves
    assert {step.epsilon for step in asked} == set(expected)
    assert {decision.branch: decision.nodes for decision in model.privacy.decisions} == {
        turn: site.said.count(turn) for turn in site.said
    }
    assert all(step.path in (None, epsilon) for step in asked)
    assert all(step.path is None for step in model.privacy.steps if step not in asked)


def test_a_node_stops_now_and_its_path_keeps_what_the_others_go_on_to_pay() -> None:
    site = By(lambda view: "now" if view["rows"].value < 80 else "noise")
    plan = Plan("p", even, depth=3, stop=site)
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan, 30)
        _paid(table, model)
    assert set(model.privacy.paths(0)) == {30}
    tree = model.tree
    early = tree.is_leaf & (tree.depths < 3)
    assert early.any() and (tree.size[early] < 80).all()
    assert (tree.size[~tree.is_leaf] >= 80).all()
    assert {decision.branch for decision in model.privacy.decisions} == {"now", "noise"}
    with _open(ROWS, MIXED) as table:
        root = _grow(table, replace(plan, stop=Always("now")))
    assert len(root.tree) == 1 and root.privacy.spent == 1


def test_coins_stop_where_a_site_says_so() -> None:
    plan = Plan("p", leaves_only, depth=3, split="random", stop=By(lambda view: ("never", "now")[view["depth"].value]))
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan)
        _paid(table, model)
    assert model.tree.depth == 1 and model.privacy.spent == 1


BUDGETS: dict[Any, tuple[str, ...]] = {
    even: ("never", "noise", "estimate", "now"),
    with_points: ("never", "noise", "estimate", "now"),
    fixed: ("never", "estimate", "now"),
    harmonic: ("never", "estimate", "now"),
}


@st.composite
def restless(drawn: st.DrawFn) -> Plan:
    """A plan whose nodes all do something else."""
    budget = drawn(st.sampled_from(list(BUDGETS)))
    numeric = drawn(st.sampled_from(["bins", "joint", "separate"] if budget is with_points else ["bins", "joint"]))
    turns = lambda *settings: InTurn(tuple(drawn(st.lists(st.sampled_from(settings), min_size=1, max_size=7))))  # noqa: E731
    return Plan(
        "restless",
        turns(budget),
        depth=turns(2, 3, half_or_log, above_noise),
        split=turns("select", "random", "noisy-counts"),
        criterion=turns("max", "gini", "infogain", "largest-cell", "by-signal"),
        mechanism=turns("permute-and-flip", "exponential", "noisy-max"),
        numeric=Always(numeric),
        stop=turns(*BUDGETS[budget]),
        leaf=turns("counts", "label"),
        remainder=drawn(st.booleans()),
        consistency=turns("none", "least-squares", "rescale"),
        prune=turns("none", "error", "signal"),
        trees=turns(1, 2, 3),
        rows=turns("all", "disjoint"),
        vote=turns("majority", "average", "weighted"),
        prior=Fraction(1, 20),
        fallback=drawn(st.booleans()),
        max_leaves=10**6,
    )


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    restless(),
    st.sampled_from([MIXED, replace(MIXED, rows=300), replace(MIXED, rows_per_person=2)]),
    st.sampled_from([as_epsilon("1/3"), as_epsilon(3), as_epsilon(90)]),
)
def test_whatever_nodes_decide_the_dearest_path_pays_epsilon(plan: Plan, domain: Domain, epsilon: Fraction) -> None:
    with _open(ROWS, domain) as table:
        model = _grow(table, plan, epsilon)
        _paid(table, model)
    record = model.privacy
    bought = sum((step.epsilon for step in record.steps if step.tree < 0), Fraction(0))
    assert plan.remainder is False or record.spent == record.epsilon
    shares = replace(plan, trees=len(model.trees), rows="disjoint" if record.disjoint else "all").tree_shares(
        record.epsilon - bought
    )
    for tree in range(1 if record.disjoint else len(model.trees)):
        paths = record.paths(tree)
        assert set(paths) == {shares[tree]} if plan.remainder else max(paths) <= shares[tree]
    assert model.private
    assert model.predict(ROWS).shape == (300,)


# -- what sites see -------------------------------------------------------------------------------


SHOWN = {"site", "epsilon", "attributes", "classes", "arity", "ordered"}


@pytest.mark.parametrize("rows", [None, 300])
@pytest.mark.parametrize("prior", [Fraction(0), Fraction(1, 20)])
@pytest.mark.parametrize("budget", [even, fixed])
def test_sites_see_what_is_public_or_released_and_it_says_which(budget: Any, prior: Fraction, rows: int | None) -> None:
    domain = replace(MIXED, rows=rows)
    run = {name: InTurn((getattr(Plan("p", budget), name),)) for name in RUN_SITES}
    nodes = {"stop": InTurn(("never",)), "split": InTurn(("select", "random")), "criterion": InTurn(("max", "gini"))}
    with _open(ROWS, domain) as table:
        model = _grow(table, Plan("p", **{**run, **nodes, "budget": run["budget"]}, prior=prior), 2)  # type: ignore[arg-type]
        _paid(table, model)
    assert model.privacy.spent == 2
    for name, site in (*run.items(), *nodes.items()):
        assert site.seen
        for view in site.seen:
            assert all(isinstance(value, Public | Release) for value in view.values())
            assert view.keys() >= SHOWN
            assert view["site"] == Public(name)
            assert (view["epsilon"].value, view["attributes"].value, view["classes"].value) == (2.0, 4, 3)
            assert view["arity"].value == pytest.approx(np.mean(np.log([4, 3, 2, 4])))
            assert view["ordered"].value == 0.5
    for place, name in enumerate(RUN_SITES):  # each sees those before it
        (view,) = run[name].seen
        assert {key for key in view if key.startswith("plan.")} == {f"plan.{each}" for each in RUN_SITES[:place]}
        if rows is not None:
            assert view["rows"] == Public(300)
        elif prior:
            assert isinstance(view["rows"], Derived) and view["rows"].epsilon == Fraction(1, 10)
        else:
            assert "rows" not in view
    assert run["vote"].seen[0]["plan.budget"] == Public(budget.__name__)
    assert run["vote"].seen[0]["plan.depth"] == Public(3)
    for site in nodes.values():
        for view in site.seen:
            level, left = view["depth"], view["left"]
            assert isinstance(level, Public) and isinstance(left, Public)
            assert level.value in (0, 1, 2) and left.value == 4 - level.value
            assert 0 < view["budget"].value <= 2 and isinstance(view["budget"], Public)
            if budget is even:
                assert isinstance(view["rows"], Count)
            elif rows is not None:
                assert isinstance(view["rows"], Public) and view["rows"].value <= 300
            elif prior:
                assert isinstance(view["rows"], Derived)
            else:
                assert "rows" not in view
    assert nodes["stop"].seen[0]["budget"].value == pytest.approx(
        2 - (0.1 if prior and rows is None else 0) - (0.25 if budget is even else 0), abs=0.02
    )


def test_an_estimate_divides_the_rows_evenly() -> None:
    site = InTurn(("never",))
    plan = Plan("p", fixed, depth=2, stop=site, trees=2, rows="disjoint")
    with _open(ROWS, replace(MIXED, rows=300)) as table:
        model = _grow(table, plan)
    for view, node in zip(site.seen, [0, 0, *range(1, model.trees[0].arity[0] + 1)], strict=False):
        share = 1 if node == 0 else int(model.trees[0].arity[0])
        assert view["rows"].value == pytest.approx(150 / share)


def test_counts_that_were_bought_before_are_seen() -> None:
    site = InTurn((2,))
    with _open(ROWS, MIXED) as table:
        counts = table.histogram("grade", epsilon="0.1")
        model = grow(table, Plan("p", fixed, depth=site), ONE, np.random.default_rng(0), counts=counts)
        assert table.budget.spent == model.privacy.spent == 1
    assert isinstance(counts, Histogram)
    assert site.seen[0]["rows"].value == max(counts.values.sum(), 1)
    assert model.tree.depth == 2


def test_the_run_is_decided_in_order_and_each_decision_holds() -> None:
    plan = Plan(
        "p",
        Always(fixed),
        depth=By(lambda view: 1 if view["plan.budget"].value == "fixed" else 3),
        trees=By(lambda view: view["plan.depth"].value + 1),
        rows=By(lambda view: "disjoint" if view["plan.trees"].value == 2 else "all"),
        leaf=Always("label"),
        vote=By(lambda view: "average" if view["plan.rows"].value == "disjoint" else "majority"),
    )
    with _open(ROWS, MIXED) as table:
        model = _grow(table, plan)
        _paid(table, model)
    assert len(model.trees) == 2 and model.privacy.disjoint and model.vote == "average"
    assert {tree.depth for tree in model.trees} == {1}
    assert {step.question for step in model.privacy.steps} == {"split", "label"}
    assert [(decision.site, decision.branch, decision.nodes) for decision in model.privacy.decisions] == [
        ("budget", "fixed", 1),
        ("depth", "1", 1),
        ("trees", "2", 1),
        ("rows", "disjoint", 1),
        ("leaf", "label", 1),
        ("vote", "average", 1),
    ]
    assert dict(model.privacy.decisions[0].context)["attributes"] == 4


# -- what cannot be done --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("budget", "even", "a plan's budget is a function that shares epsilon, not 'even'"),
        ("depth", -1, "max_depth must be a whole number from 0 to 100, not -1"),
        ("depth", 2.5, "max_depth must be a whole number"),
        ("trees", 0, "trees must be a whole number from 1 to 10000, not 0"),
        ("rows", "some", "a plan's rows is one of all, disjoint, bootstrap, not 'some'"),
        ("numeric", "grid", "a plan's numeric is one of bins, joint, separate, not 'grid'"),
        ("leaf", None, "a plan's leaf is one of counts, label, not 'None'"),
        ("consistency", "yes", "a plan's consistency is one of none, least-squares, rescale, not 'yes'"),
        ("prune", ["error"], "a plan's prune is one of none, error, signal"),
        ("vote", "product", "a plan's vote is one of majority, average, weighted, not 'product'"),
        ("mechanism", "best", "a plan's mechanism is one of permute-and-flip, exponential, noisy-max, not 'best'"),
    ],
)
def test_a_decision_that_is_none_of_the_list_is_refused_before_anything_is_charged(
    name: str, said: Any, message: str
) -> None:
    plain: dict[str, Any] = {"budget": fixed, name: said}
    with pytest.raises(QuestionError, match=message):
        Plan("p", **plain)
    _refused({name: Always(said)}, message)
    _refused({name: Always(Always(fixed))}, "not .*Always")  # a site may not pass the question on


def _refused(sites: dict[str, Any], message: str, **more: Any) -> Fraction:
    plan = Plan("p", **{"budget": fixed, **more, **sites})
    with _open(ROWS, MIXED) as table:
        with pytest.raises(QuestionError, match=message) as caught:
            _grow(table, plan)
        assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
        assert table.budget.spent == 0 or not set(sites) <= set(RUN_SITES)
        return table.budget.spent


def test_decisions_of_a_run_that_do_not_go_together_are_refused_before_anything_is_charged() -> None:
    nothing = "the budget 'leaves_only' leaves nothing for the split of a node"
    _refused({"budget": Always(leaves_only)}, nothing)
    _refused({"budget": Always(leaves_only)}, nothing, depth=half_or_log, criterion="by-signal")
    _refused({"budget": Always(fixed)}, "leaves nothing for the size of a node", stop="noise")
    _refused({"numeric": Always("separate")}, "the budget 'fixed' leaves nothing for the points of a node")
    _refused({"rows": Always("bootstrap")}, "not private runs on rows that its caller declares public")
    _refused({"budget": Always(exact)}, "epsilon must be a number")
    _refused({"depth": Always(3)}, "max_leaves=2 are allowed", max_leaves=2)
    _refused({"depth": Always(above_noise)}, "epsilon must be a number")  # rows that nobody knows


def test_where_rows_were_bought_for_sites_nothing_else_is_charged_for_what_is_refused() -> None:
    prior = Fraction(1, 20)
    with _open(ROWS, MIXED) as table:
        for sites in ({"budget": Always(leaves_only)}, {"numeric": Always("separate")}, {"leaf": Always("bush")}):
            before = table.budget.spent
            with pytest.raises(QuestionError):
                _grow(table, Plan("p", **{"budget": fixed, **sites}, prior=prior))
            assert table.budget.spent - before == prior
        # a tree that turns out too large after that is made smaller, not refused
        model = _grow(table, Plan("p", fixed, depth=Always(3), prior=prior, max_leaves=5))
    assert model.tree.depth == 1 and model.privacy.spent == 1


def test_decisions_at_nodes_are_checked_as_they_are_made() -> None:
    assert _refused({"stop": Always("soon")}, "a plan's stop is one of never, noise, estimate, pure, not 'soon'") == 0
    assert _refused({"split": Always("best")}, "a plan's split is one of select, noisy-counts, random, not 'best'") == 0
    assert _refused({"criterion": Always("entropy")}, "there is no criterion 'entropy'; choose max, gini") == 0
    assert _refused({"criterion": Always(["max"])}, "there is no criterion") == 0
    assert _refused({"criterion": Always("gain-ratio")}, "gain ratio of a split has no bounded sensitivity") == 0
    assert _refused({"criterion": Always("by-signal")}, "follows from the number of rows") == 0
    assert _refused({"criterion": Always("weighted-max")}, "follows from class counts") == 0
    assert _refused({"stop": Always("noise")}, "the budget 'fixed' leaves nothing for the size of a node") == 0
    assert _refused({"stop": Always("estimate")}, "takes the number of rows: declare rows in the domain") == 0
    nothing = "the budget 'leaves_only' leaves nothing for the split of a node"
    assert _refused({"split": Always("select")}, nothing, budget=leaves_only) == 0
    nothing = "the budget 'fixed' leaves nothing for the points of a node"
    assert _refused({"split": Always("select")}, nothing, numeric="separate") == 0
    later = By(lambda view: "max" if view["depth"].value == 0 else "entropy")
    spent = _refused({"criterion": later}, "there is no criterion 'entropy'")
    assert spent == Fraction(1, 4)  # the level before stands
    with _open(ROWS, replace(MIXED, max_rows=None)) as table:
        with pytest.raises(QuestionError, match="declare max_rows in the domain file"):
            _grow(table, Plan("p", fixed, criterion=Always("infogain")))
        assert table.budget.spent == 0


def test_the_largest_tree_that_nodes_could_decide_on_must_fit() -> None:
    domain = replace(MIXED, rows=100)
    stops = Plan("p", even, depth=3, stop="noise", max_leaves=40)
    never = replace(stops, stop="never")
    limit = never.most_leaves(domain, never.schedule(domain, ONE, 3))
    assert stops.most_leaves(domain, stops.schedule(domain, ONE, 3)) < 40 < limit
    site = replace(stops, stop=Always("noise"))
    assert site.most_leaves(domain, site.schedule(domain, ONE, 3)) == limit
    with _open(ROWS, domain) as table:
        with pytest.raises(QuestionError, match=f"may have {limit} leaves, at most max_leaves=40"):
            _grow(table, site)
        assert table.budget.spent == 0


@pytest.mark.parametrize("name", ["name", "monotone", "remainder", "certainty", "prior", "max_leaves", "errata"])
def test_other_fields_are_no_sites(name: str) -> None:
    choices: dict[str, Any] = {"name": "p", "budget": fixed, name: Always(1)}
    with pytest.raises(QuestionError, match=f"a plan's {name} cannot be decided while a tree grows"):
        Plan(**choices)


# -- what it costs --------------------------------------------------------------------------------


TINY = Domain((Nominal("a", (0, 1)), Nominal("b", (0, 1)), Nominal("y", (0, 1))), target="y", max_rows=9)
FEW = [(0, 0, 0), (0, 1, 1), (1, 0, 1)]
BY_ROWS: dict[str, dict[str, Any]] = {
    "criterion": {"criterion": By(lambda view: "gini" if view["rows"].value > 1 else "max")},
    "split": {"split": By(lambda view: "random" if view["rows"].value > 1 else "select")},
    "stop": {"stop": By(lambda view: "now" if view["rows"].value > 1 else "never")},
    "depth": {"depth": By(lambda view: 1 if view["rows"].value > 2 else 2), "prior": Fraction(1, 20)},
    "budget": {"budget": By(lambda view: fixed if view["rows"].value > 2 else even), "prior": Fraction(1, 20)},
}


def _tiny(rows: list[tuple[int, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["a", "b", "y"])


def _published(plan: Plan, epsilon: Fraction) -> Callable[[Any], str]:
    def run(table: Any) -> str:
        content = json.loads(_grow(table, plan, epsilon).to_json())
        for step in content["privacy"]["steps"]:
            del step["entry"]
        return json.dumps(content)

    return run


@pytest.mark.parametrize("person", [(0, 0, 1), pytest.param((1, 1, 0), marks=long)])
@pytest.mark.parametrize(
    "which", [which if number < 2 else pytest.param(which, marks=long) for number, which in enumerate(BY_ROWS)]
)
def test_neighbours_that_release_the_same_decide_the_same_and_lose_at_most_epsilon(
    which: str, person: tuple[int, ...]
) -> None:
    """Computed from outcomes of all mechanisms: would catch a decision that saw a row, a path that paid too little."""
    plan = Plan("p", **{"budget": even, "depth": 2, **BY_ROWS[which]})
    found = worst_loss(_published(plan, ONE), _tiny(FEW), _tiny([*FEW, person]), TINY, limit=100)
    assert 0.3 < found.loss <= 1 + 1e-9


def test_a_site_that_looks_at_the_rows_is_found_out() -> None:
    def run(table: Any) -> str:
        (exact,) = table._session.engine.exact_counts(CountQuery(Rows(), ((),)))
        peeks = By(lambda view: "random" if exact[0] > 3 else "select")
        return _published(Plan("p", even, depth=1, split=peeks), ONE)(table)

    assert worst_loss(run, _tiny(FEW), _tiny([*FEW, (1, 1, 0)]), TINY, limit=40).loss == np.inf


# -- the record -----------------------------------------------------------------------------------


def test_a_record_of_mixed_paths_is_read_as_it_was_written() -> None:
    steps = (
        Step(0, 0, "split", 1, Fraction(1, 4)),
        Step(0, 1, "split", 1, Fraction(1, 4)),
        Step(0, 2, "class counts", 2, Fraction(1, 2), path=Fraction(1)),
        Step(0, 2, "class counts", 2, Fraction(3, 4), path=Fraction(1)),
    )
    record = Privacy("p", "corrected", Fraction(1), steps=steps)
    assert record.spent == 1 and record.paths(0) == [1, 1]
    content = record.to_dict()
    assert Privacy.from_dict(content) == record
    assert ["path" in step for step in content["steps"]] == [False, False, True, True]
    without = {**content, "steps": [{key: step[key] for key in step if key != "path"} for step in content["steps"]]}
    with pytest.raises(privet.errors.ModelError, match="spends more than it promises"):
        Privacy.from_dict(without)
    for path in ("1/4", 1, "-1", "1/0"):
        wrong = {**content, "steps": [*content["steps"][:3], {**content["steps"][3], "path": path}]}
        with pytest.raises(privet.errors.ModelError, match="incomplete"):
            Privacy.from_dict(wrong)


# -- where plans come from ------------------------------------------------------------------------


def test_a_plan_with_sites_is_described_by_their_names() -> None:
    plan = Plan("p", By(lambda view: fixed, name="shares by rows"), depth=Always(3), stop=By(lambda view: "never"))
    written: Any = plan.to_json()
    described = written["plan"]
    assert (described["budget"], described["depth"], described["stop"]) == ("shares by rows", "Always", "by rule")
    assert json.dumps(written)
    assert plan.sites == ("budget", "depth", "stop")
    assert all(isinstance(getattr(plan, name), Site) for name in plan.sites)
    assert Plan("p", fixed).sites == () and not Plan("p", fixed, depth=Always(2)).decides_at_nodes
    assert not any(isinstance(value, Site) for value in (fixed, "max", 3, Gini(), Fraction(1)))


def test_estimators_take_sites_for_their_choices() -> None:
    site = By(lambda view: "gini" if view["depth"].value else "max")
    classifier = privet.DiffPID3Classifier(5, max_depth=Always(2), criterion=site)  # type: ignore[arg-type]
    with _open(ROWS, MIXED) as table:
        model = clone(classifier).fit(table).model_
        assert table.budget.spent == 5
    assert {decision.site for decision in model.privacy.decisions} == {"depth", "criterion"}
    assert "chosen depth: 2" in str(model.privacy)


def test_rows_are_added_to_a_model_of_a_plan_with_sites() -> None:
    sites = {
        "depth": Always(2),
        "stop": Always("never"),
        "split": InTurn(("random", "select")),
        "leaf": Always("counts"),
    }
    for plan in (Plan("p", fixed, **sites), Plan("p", Always(fixed), **sites)):  # type: ignore[arg-type]
        with _open(ROWS, MIXED) as old, _open(ROWS[:100], MIXED) as new:
            model = _grow(old, plan, 50)
            more = refill(new, model, plan, as_epsilon(50))
            assert new.budget.spent == 50
        assert more.privacy.added == (50,) and more.privacy.spent == 50
        assert more.tree.counts[0].sum() == pytest.approx(400, abs=40)
    with _open(ROWS, MIXED) as table:
        forest = privet.HanischTreeClassifier(5, max_depth=Always(2)).fit(table)  # type: ignore[arg-type]
        forest.partial_fit(table)
    assert forest.privacy_.added == (5,)


def test_schedules_of_plans_with_sites_are_those_of_their_budgets() -> None:
    plan = Plan("p", fixed, split=Always("random"), stop=Always("never"))
    assert plan.schedule(MIXED, ONE, 2) == Schedule(fixed(plan, ONE, 2, 0).levels)
