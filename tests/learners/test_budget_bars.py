"""The bars in docs/trees-*.md are drawn from the real schedules: they cannot rot.

`PRIVET_UPDATE_DOCS=1 pytest tests/learners/test_budget_bars.py` draws them anew. A bar stands below a line
`<!-- bar: NAME -->`, for the plan that the preset of that name has for the census with depth 3.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import pytest

import privet
from privet import datasets
from privet.kernel.column import Numeric
from privet.learners.estimators import CLASSIFIERS
from privet.learners.plan import Level, Plan, Schedule
from privet.learners.presets import PRESETS

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"<!-- bar: ([\w-]+) -->\n```text\n(.*?)```", re.DOTALL)
DEPTH, WIDTH, LABEL = 3, 72, 13
PRIVATE = [name for name, preset in PRESETS.items() if preset.private]

Piece = tuple[str, str, Fraction]  # how it is drawn, what it buys, which part of B it costs


def drawn(groups: list[list[Piece]], budget: Fraction) -> str:
    """A bar as long as the budget, a | between levels or trees, dots for what nobody spends."""

    def cells(share: Fraction) -> int:
        return round(WIDTH * share / budget)

    left = budget - sum((share for group in groups for _, _, share in group), Fraction(0))
    bar = ["".join(sign * cells(share) for sign, _, share in group) for group in groups]
    return "|".join(each for each in [*bar, "·" * cells(left)] if each)


def told(group: list[Piece]) -> str:
    return "  ".join(f"{sign} {what} {share}" for sign, what, share in group if share) or "nothing: coins decide"


def path(plan: Plan, schedule: Schedule, share: Fraction) -> list[tuple[str, list[Piece]]]:
    """What the nodes of each level pay, down to the leaves of the last."""
    split = "all counts" if plan.split == "noisy-counts" else "split"

    def level(each: Level) -> list[Piece]:
        return [("░", "size", each.size), ("▒", "thresholds", each.points), ("▓", split, each.split)]

    levels = [(f"level {depth}", level(each)) for depth, each in enumerate(schedule.levels)]
    above = sum((part for _, group in levels for _, _, part in group), Fraction(0))
    leaf = share - above if schedule.leaf is None else schedule.leaf
    return [*levels, ("leaves", [("░", "size", schedule.leaf_size), ("█", "class counts", leaf)])]


def variant_lines(name: str, variant: str) -> list[str]:
    domain = datasets.census_domain()
    plan = PRESETS[name].plan(domain, variant)
    # as the grower does: class counts of the table are bought where the depth or a fallback needs them
    prior = plan.prior if plan.fallback or plan.wants_rows else Fraction(0)
    shares = plan.tree_shares(1 - prior)
    levels = path(plan, plan.schedule(domain, shares[0], DEPTH), shares[0])
    one = sum((part for _, group in levels for _, _, part in group), Fraction(0))
    spent = prior + one * (1 if plan.rows == "disjoint" else plan.trees)
    charged = "B is charged" if spent == 1 else f"{spent} of B is charged"
    promise = f"NOT PRIVATE ({', '.join(text.split(':')[0] for text in plan.errata)})" if plan.errata else "private"
    lines = [f"{variant}, {promise}, {charged}"]
    before = [("before", [("▪", "class counts of the table", prior)])] if prior else []
    if plan.trees == 1:
        levels = before + levels
        lines.append(drawn([group for _, group in levels], Fraction(1)))
    else:
        rows = " on rows of its own" * (plan.rows == "disjoint")
        trees = ("trees", [("█", f"{plan.trees} trees, each{rows}", shares[0])])
        paying = 1 if rows else plan.trees  # disjoint rows share a maximum: one tree stands for all
        lines.append(drawn([group for _, group in [*before, *[trees] * paying]], Fraction(1)))
        lines += [f"{where.ljust(LABEL)}{told(group)}" for where, group in [*before, trees]]
        if plan.split != "random":
            lines[-1] += "; one of them:"
            lines.append(drawn([group for _, group in levels], shares[0]))
    for (text, _), same in groupby(levels, key=lambda each: (told(each[1]), each[0] in ("before", "leaves"))):
        names = [each for each, _ in same]
        where = names[0] if len(names) == 1 else f"levels {names[0][-1]}-{names[-1][-1]}"
        lines.append(f"{where.ljust(LABEL)}{text}")
    return lines


def bars(name: str) -> str:
    """The budget of a preset, corrected and published."""
    return "\n\n".join("\n".join(variant_lines(name, variant)) for variant in PRESETS[name].variants) + "\n"


def test_the_census_has_three_numeric_attributes_as_the_pages_say() -> None:
    domain = datasets.census_domain()
    assert sum(isinstance(domain[name], Numeric) for name in domain.attributes) == 3
    assert domain.rows is None


def test_every_bar_in_the_documentation_is_the_schedule_of_the_code() -> None:
    shown = []
    for page in sorted(DOCS.rglob("trees-*.md")):
        text = page.read_text(encoding="utf-8")
        if os.environ.get("PRIVET_UPDATE_DOCS"):
            text = BLOCK.sub(lambda found: f"<!-- bar: {found[1]} -->\n```text\n{bars(found[1])}```", text)
            page.write_text(text, encoding="utf-8")
        for name, content in BLOCK.findall(text):
            assert content == bars(name), f"{page.name}: the bar of {name}"
            shown.append(name)
    assert sorted(shown) == sorted(PRIVATE)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_bar_of_a_corrected_variant_is_the_whole_budget(name: str) -> None:
    assert variant_lines(name, "corrected")[0] == "corrected, private, B is charged"


@pytest.mark.parametrize("rows", ["all", "disjoint"])
def test_a_bar_is_as_wide_as_the_budget_also_for_trees_on_disjoint_rows(
    rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = PRESETS["maxforest"]
    monkeypatch.setitem(
        PRESETS, "maxforest", replace(preset, corrected=lambda domain: replace(preset.plan(domain), rows=rows))
    )
    bar = variant_lines("maxforest", "corrected")[1]
    assert abs(len(bar.replace("|", "")) - WIDTH) <= len(bar.split("|"))


@pytest.mark.parametrize("name", PRIVATE)
def test_a_fit_pays_what_its_bar_shows(name: str) -> None:
    domain = datasets.census_domain()
    table = privet.open(datasets.census(100_000), domain, budget=1)
    by_rule = {"max_depth": DEPTH} if name == "id3plus" else {}  # with so much signal the rule would go deeper
    privacy = CLASSIFIERS[name](epsilon=1, **by_rule).fit(table).privacy_
    shown = " ".join(variant_lines(name, "corrected")) + " "
    drawn_by_coins = PRESETS[name].plan(domain).split == "random"
    for step in privacy.steps:
        # a leaf above the last level has the rest of a shorter path
        early = step.question == "class counts" and step.level < DEPTH and not drawn_by_coins
        if step.tree <= 0 and not early:
            assert f" {step.epsilon} " in shown, step
