"""Jostle's tree (2018, figure 7): one grower whose every choice is a NoisyIf; constant choices are the presets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privet
from privet import Branch, NoisyIf
from privet.kernel import as_epsilon
from privet.lab import open_public
from privet.learners.growth import grow
from privet.learners.plan import NODE_SITES, RUN_SITES, Plan
from privet.learners.presets import PRESETS

PEOPLE = privet.datasets.census(2000)
CENSUS = privet.datasets.census_domain()
DOMAIN = replace(CENSUS, rows=2000)  # public, so that published forests are private
CASES = [(name, variant) for name, found in PRESETS.items() if found.private for variant in found.variants]
SITES = (*RUN_SITES, *NODE_SITES)


def constant(site: str, value: Any) -> NoisyIf:
    """A choice between what a preset has and nothing else."""
    return NoisyIf(site, {"as the preset": Branch.of(value)}, default="as the preset")


def grown(plan: Plan) -> dict[str, Any]:
    """The model of a plan as it is published, with seeded noise and coins, and without what was decided."""
    options = {"rounded_noise": plan.rounded_noise, "printed_ranges": plan.printed_ranges}
    with privet.testing.seeded_noise(7):
        table = privet.open(PEOPLE, DOMAIN, budget=1) if plan.is_private else open_public(PEOPLE, DOMAIN, **options)
    with table:
        content = json.loads(grow(table, plan, as_epsilon(1), np.random.default_rng(3)).to_json())
    content["privacy"].pop("decisions", None)
    return content


@pytest.mark.parametrize(("name", "variant"), CASES, ids=lambda each: str(each))
def test_constant_choices_are_the_preset(name: str, variant: str) -> None:
    plan = PRESETS[name].plan(DOMAIN, variant)
    chosen = replace(plan, **{site: constant(site, getattr(plan, site)) for site in SITES})
    assert grown(chosen) == grown(plan)


def test_a_choice_at_every_node_is_recorded_and_costs_nothing() -> None:
    by_size = NoisyIf(
        "criterion",
        {"max": Branch.of("max"), "gini": Branch.of("gini")},
        default="max",
        advice=lambda known: "gini" if known["rows"] > 600 else "max",
    )
    table = privet.open(PEOPLE, DOMAIN, budget=1)
    plan = replace(PRESETS["id3plus"].plan(DOMAIN, max_depth=3), criterion=by_size)
    model = grow(table, plan, as_epsilon(1), np.random.default_rng(0))
    assert table.budget.spent == model.privacy.spent == 1
    taken = {decision.branch: decision.nodes for decision in model.privacy.decisions}
    assert set(taken) == {"max", "gini"} and taken["gini"] >= 1


def test_a_branch_of_a_plan_has_no_cost() -> None:
    costly = NoisyIf("leaf", {"a": Branch(lambda view: "counts", cost=1)}, default="a")
    table = privet.open(PEOPLE, DOMAIN, budget=1)
    with pytest.raises(privet.errors.QuestionError, match="has a cost"):
        grow(table, replace(PRESETS["id3plus"].plan(DOMAIN), leaf=costly), as_epsilon(1), np.random.default_rng(0))
    assert table.budget.spent == 0
