"""`python -m evidence.first_screen`: the picture of README, a private tree beside what epsilon buys.

The tree is grown on generated people with real noise, so its numbers differ with every run. The curves are those of
evidence/bench_quick.json, as are those of docs/frontier.svg. Writes docs/first-screen.svg, and
docs/first-screen-narrow.svg for phones.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import privet

ROOT = Path(__file__).parents[1]
WIDE, NARROW = ROOT / "docs" / "first-screen.svg", ROOT / "docs" / "first-screen-narrow.svg"
EPSILON = "1"
LEARNERS = {  # by the names of evidence/bench_quick.json
    "boosted-delta": ("privet, with a delta", "ours"),
    "boosted": ("privet, pure", "ours"),
    "dp-ebm-05": ("DP-EBM, with a delta", "peer"),
    "diffprivlib-tree": ("diffprivlib, tree", "peer"),
}
WITHOUT_PRIVACY = ("xgboost", "XGBoost, not private")

LEFT, RIGHT, TOP, BOTTOM = 54, 290, 64, 276  # of the curves' frame, in a panel of 450 x 330
SPACE = 524, 180  # for the tree, in a panel of 550 x 330
LINE = 17  # from one word beside a curve to the next
STYLE = """
:root { --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --card: #ffffff; --ours: #1d7a46; --peer: #b4541a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ece7; --soft: #9aa89f; --line: #2f3b35; --card: #141a17; --ours: #5fd08f; --peer: #ff9d52; } }
svg { color: var(--ink); } text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.big { font-size: 22px; font-weight: 600; } .soft { fill: var(--soft); } .card { fill: var(--card); }
.grid { stroke: var(--line); } .curve { fill: none; stroke-width: 2; }
.ours { stroke: var(--ours); stroke-width: 3.2; } .peer { stroke: var(--peer); } .none { stroke: var(--soft); }
.none { stroke-dasharray: 6 4; } .low { fill: #3f90da; } .high { fill: #ffa90e; }
"""


def mined() -> tuple[str, str]:
    """Return a tree that was grown privately on 50,000 generated people, as an SVG, and a noisy count of some."""
    everybody = privet.datasets.census(50_000, seed=0)
    domain = privet.datasets.census_domain()
    with privet.open(everybody, domain, budget=EPSILON) as table:
        women = table.where(sex="Female", age=(30, 40)).count("0.1")
    people = everybody.dropna(subset="wage")  # so that the tree has no third branch for missing wages
    domain = domain.with_column(replace(domain["wage"], missing=False))
    with privet.open(people, domain, budget=EPSILON) as table:
        found = privet.DiffPC45Classifier(epsilon=EPSILON, max_depth=3, criterion="gini").fit(table)
    drawn = re.search(r"<svg.*?</svg>", found.model_._repr_html_(), re.DOTALL)
    assert drawn is not None
    sized = re.sub(r'width="\d+" height="\d+"', f'width="{SPACE[0]}" height="{SPACE[1]}"', drawn[0], count=1)
    counted = f"{int(women):,} ± {women.noise.error(0.95)}"
    return sized.replace("<svg ", '<svg x="16" y="68" preserveAspectRatio="xMinYMin" ', 1), counted


def accuracies(learner: str) -> list[tuple[float, float]]:
    """Return epsilon and mean test accuracy on Adult, of evidence/bench_quick.json."""
    cells = json.loads((ROOT / "evidence" / "bench_quick.json").read_text(encoding="utf-8"))["accuracy"]
    own = [cell for cell in cells if cell["data"] == "adult" and cell["learner"] == learner]
    return sorted((float(cell["epsilon"] or "nan"), cell["accuracy"]["mean"]) for cell in own)


def curves() -> str:
    """Return accuracy against epsilon, a curve for each learner and a line for what no privacy would give."""
    low, high, first, last = 0.74, 0.88, math.log(0.05), math.log(2)

    def across(epsilon: float) -> float:
        return LEFT + (RIGHT - LEFT) * (math.log(epsilon) - first) / (last - first)

    def down(accuracy: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (accuracy - low) / (high - low)

    parts = [
        f'<path class="grid" d="M{LEFT} {down(step / 100):.1f}H{RIGHT}"/>'
        f'<text class="soft" x="{LEFT - 8}" y="{down(step / 100) + 4:.1f}" text-anchor="end">{step}%</text>'
        for step in (75, 80, 85)
    ]
    parts += [
        f'<text class="soft" x="{across(epsilon):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{epsilon:g}</text>'
        for epsilon in (0.05, 0.1, 0.5, 1, 2)
    ]
    parts.append(f'<text class="soft" x="{LEFT}" y="{BOTTOM + 38}">epsilon: more privacy to the left</text>')
    ends: list[tuple[float, str]] = []
    for learner, (words, kind) in LEARNERS.items():
        points = [(epsilon, accuracy) for epsilon, accuracy in accuracies(learner) if 0.05 <= epsilon <= 2]
        path = " ".join(f"{across(epsilon):.1f},{down(max(accuracy, low)):.1f}" for epsilon, accuracy in points)
        parts.append(f'<polyline class="curve {kind}" points="{path}"/>')
        ends.append((down(points[-1][1]) + 4, words))
    ((_, best),) = accuracies(WITHOUT_PRIVACY[0])
    parts.append(f'<path class="curve none" d="M{LEFT} {down(best):.1f}H{RIGHT}"/>')
    lowest = -math.inf
    for height, words in sorted([*ends, (down(best), WITHOUT_PRIVACY[1])]):
        lowest = max(height, lowest + LINE)
        parts.append(f'<text x="{RIGHT + 8}" y="{lowest:.1f}">{words}</text>')
    return "".join(parts)


def picture(tree_panel: str, wide: bool) -> str:
    """Return the two panels, beside each other or one below the other."""
    width, height, across, down = (1000, 330, 550, 0) if wide else (550, 640, 0, 310)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-label="A decision tree that was learned privately, and accuracy against epsilon on Adult">'
        f'<style>{STYLE}</style><rect class="card" width="{width}" height="{height}" rx="10"/>{tree_panel}'
        f'<g transform="translate({across} {down})">'
        '<text class="title" x="20" y="30">How good is it?</text>'
        f'<text class="soft" x="20" y="48">Right about people it never saw; Adult (UCI), make bench</text>{curves()}'
        "</g></svg>\n"
    )


def tree_panel() -> str:
    """Return the tree with its title, what its bars and numbers mean, and an answer to a question."""
    tree, counted = mined()
    return (
        f'<text class="title" x="20" y="30">Who earns more? A private tree, epsilon {EPSILON}</text>'
        f'<text class="soft" x="20" y="48">learned from 50,000 people whom nobody may see</text>{tree}'
        '<rect class="low" x="20" y="182" width="12" height="12" rx="2"/><text x="38" y="192">low income</text>'
        '<rect class="high" x="120" y="182" width="12" height="12" rx="2"/><text x="138" y="192">high income</text>'
        '<text class="soft" x="240" y="192">and how many people of each, ± noise</text>'
        '<text class="title" x="20" y="248">Or ask: how many women are in their thirties?</text>'
        f'<text class="big" x="20" y="280">{counted}</text>'
        '<text class="soft" x="20" y="304">at epsilon 0.1; every answer says how far its noise reaches</text>'
    )


if __name__ == "__main__":
    panel = tree_panel()
    for path in (WIDE, NARROW):
        path.write_text(picture(panel, path == WIDE), encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
