"""`python -m evidence.first_screen`: the picture of README, a private tree beside what epsilon buys.

The tree is grown on generated people with real noise, so its numbers differ with every run. The curves are those of
evidence/bench_quick.json, as is docs/frontier.svg. Writes docs/first-screen.svg.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import privet

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "first-screen.svg"
EPSILON = "1"
LEARNERS = {  # by the names of evidence/bench_quick.json
    "boosted-delta": ("privet, with a delta", "ours"),
    "boosted": ("privet, pure", "ours"),
    "dp-ebm-05": ("DP-EBM, with a delta", "peer"),
    "diffprivlib-tree": ("diffprivlib, tree", "peer"),
}
WITHOUT_PRIVACY = ("xgboost", "XGBoost, not private")

WIDTH, HEIGHT = 1000, 330
LEFT, RIGHT, TOP, BOTTOM = 620, 840, 64, 276  # of the curves' frame
SPACE = 530, 250  # for the tree
LINE = 13  # from one word beside a curve to the next
STYLE = """
:root { --ink: #1d2a22; --soft: #5d6b62; --line: #dfe5e0; --card: #ffffff; --ours: #1d7a46; --peer: #b4541a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ece7; --soft: #9aa89f; --line: #2f3b35; --card: #141a17; --ours: #5fd08f; --peer: #ff9d52; } }
svg { color: var(--ink); } text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; } .soft { fill: var(--soft); } .card { fill: var(--card); }
.grid { stroke: var(--line); } .curve { fill: none; stroke-width: 2; }
.ours { stroke: var(--ours); stroke-width: 3.2; } .peer { stroke: var(--peer); } .none { stroke: var(--soft); }
.none { stroke-dasharray: 6 4; }
"""


def tree() -> str:
    """Return a tree that was grown privately on 50,000 generated people, as an SVG."""
    people = privet.datasets.census(50_000, seed=0).dropna(subset="wage")
    domain = privet.datasets.census_domain()
    domain = domain.with_column(replace(domain["wage"], missing=False))
    with privet.open(people, domain, budget=EPSILON) as table:
        found = privet.DiffPC45Classifier(epsilon=EPSILON, max_depth=3, criterion="gini").fit(table)
    drawn = re.search(r"<svg.*?</svg>", found.model_._repr_html_(), re.DOTALL)
    assert drawn is not None
    sized = re.sub(r'width="\d+" height="\d+"', f'width="{SPACE[0]}" height="{SPACE[1]}"', drawn[0], count=1)
    return sized.replace("<svg ", '<svg x="16" y="96" preserveAspectRatio="xMinYMin" ', 1)


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


def picture() -> str:
    """Return the picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-label="A decision tree that was learned privately, and accuracy against epsilon on Adult">'
        f'<style>{STYLE}</style><rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="10"/>'
        f'<text class="title" x="20" y="30">Who earns more? A private tree, epsilon {EPSILON}</text>'
        f'<text class="soft" x="20" y="48">50,000 people; every number has noise, and says how much</text>{tree()}'
        f'<text class="title" x="{LEFT - 34}" y="30">How good is it? Right about people it never saw</text>'
        f'<text class="soft" x="{LEFT - 34}" y="48">Adult (UCI); make bench measures it</text>{curves()}</svg>\n'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
