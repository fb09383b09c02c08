"""Every kind of page in a real Chromium: nothing serious for axe, no page wider than its window, no label on another.

Skips by name where there is no Chromium.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published import EXAMPLE, posterior_audit

import privet
from privet import demo
from privet.kernel.ledger.ledger import Ledger
from privet.owner_reports import audit_bundle, bundle_page
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Number, Panel
from privet.studies.pages.explorer import explorer
from privet.studies.pages.overview import report
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial
from privet.verification import Finding, Verdict
from privet.verification.page import page as verification_page
from privet.verification.verdict import Report

pytestmark = pytest.mark.xdist_group("pages in a browser")

# Labels that lie on each other: by more than a fifth of the smaller one.
OVERLAPS = """() => [...document.querySelectorAll('svg[role=img]')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].filter(t => t.textContent && getComputedStyle(t).display != 'none')
    .map(t => [t.lastChild.textContent, t.getBoundingClientRect()]).filter(([, b]) => b.width && b.height);
  return boxes.flatMap(([word, a], i) => boxes.slice(i + 1).filter(([, b]) => {
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return wide > 0 && high > 0 && wide * high > 0.2 * Math.min(a.width * a.height, b.width * b.height);
  }).map(([other]) => `${word} | ${other}`));
})"""
# Drawings that no sheet of paper can hold: they would be cut between two.
TALL = """() => [...document.querySelectorAll('main svg[role=img]')]
  .filter(svg => svg.getBoundingClientRect().height > 1000).map(svg => svg.getAttribute('aria-label').slice(0, 60))"""
A4 = 696  # pixels of a line between the margins
# Drawings that reach beyond what holds them where nothing scrolls.
CUT = """() => [...document.querySelectorAll('main svg[role=img]')].filter(svg => {
  const held = svg.parentElement.getBoundingClientRect();
  return !svg.closest('.scroll') && svg.getBoundingClientRect().right > held.right + 1;
}).map(svg => svg.getAttribute('aria-label').slice(0, 60))"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `privet demo` writes."""
    folder = tmp_path_factory.mktemp("demo")
    demo.run(folder, 3000)
    return folder


def _study_page(_: Path) -> str:
    cells = tuple(
        Cell(name, at, Estimate(75.0 + place + at, 1.0, 10), Number(76.0, reading=0.5) if not place else None)
        for place, name in enumerate(("max", "gini", "infogain"))
        for at in (0.1, 1.0, 10.0)
    )
    panels = tuple(Panel(kind, "epsilon", cells, kind=kind, log=True) for kind in ("lines", "bars", "heat", "table"))
    claims = (Claim("max is best", True, "by 2 points"), Claim("deeper is better", False, "it is not", "noise"))
    trials = [Trial("adult", "boosted", "1", seed, None, (("max_depth", 3),), ()) for seed in range(4)]
    outcomes = [Outcome(trial, {"accuracy": 80.0 + trial.seed, "majority": 75.0}) for trial in trials]
    return explorer(_STUDY, Findings(panels, claims, ("a note",)), outcomes, "quick", "privet study run")


def _studies_page(_: Path) -> str:
    cells = tuple(Cell("max", at, Estimate(75.0 + at, 1.0, 10)) for at in (0.1, 1.0, 10.0))
    claims = (Claim("max is best", True, "by 2 points"), Claim("deeper is better", False, "it is not", "noise"))
    return report(
        [(_STUDY, Findings((Panel("Adult", "epsilon", cells, log=True),), claims, ()))], "privet study run all"
    )


_STUDY = Study("paper-figure-1", "Four criteria", "A and B 2010, figure 1", lambda size: (), lambda _: Findings(()))


def _verification_page(_: Path) -> str:
    def verdict(name: str, bound: float, power: float, kind: str, bad: bool = False) -> Verdict:
        finding = Finding("neighbours", "a pair", "output is at most 0", bound, 16_000, 1e-8, power, "seen in 72%")
        return Verdict(name, kind, f"what {name} is", Fraction(1), (finding,), bad)

    curve = {
        "curve": "membership",
        "subject": "a forest",
        "points": [
            {"epsilon": e, "accuracy": 0.6, "ceiling": 1 / (1 + np.exp(-e)), "guesses": 27_000, "low": 0.5, "high": 0.7}
            for e in (1.0, 2.0, 4.0)
        ],
    }
    verdicts = (
        verdict("integer-laplace", 0.9, 1.3, "mechanism"),
        verdict("my-laplace", 1.4, 1.3, "function"),
        verdict("half-noise", 1.9, 1.3, "known-bad", True),
    )
    return verification_page(Report(verdicts, (), "a table", (curve,)))


def _large_tree_page(_: Path) -> str:
    table = privet.open(privet.datasets.census(2000), privet.datasets.census_domain(), budget=1)
    return privet.HanischTreeClassifier(epsilon="1").fit(table).model_.page()


def _bundle_page(folder: Path) -> str:
    return bundle_page(audit_bundle(Ledger.open(folder / f"{demo._TABLE}.ledger"), "people"))


PAGES: dict[str, Callable[[Path], str]] = {
    "demo": lambda folder: (folder / "report.html").read_text(encoding="utf-8"),
    "tree": lambda folder: privet.Model.load(folder / "tree.json").page(),
    "large tree": _large_tree_page,
    "tables": lambda folder: (folder / "auto.html").read_text(encoding="utf-8"),
    "two audits": lambda folder: (folder / "audit.html").read_text(encoding="utf-8"),
    "audit": lambda _: posterior_audit(
        "age = Youth: <=50K (2.0)\nage = Senior: <=50K (2.0/1.0)\nage = MiddleAge: >50K (2.0)\n",
        EXAMPLE.drop(columns="salary"),
        sensitive="salary",
        values=["<=50K", ">50K"],
    ).to_html(),
    "verification": _verification_page,
    "study": _study_page,
    "studies": _studies_page,
    "bundle": _bundle_page,
}


def serious(page: Any) -> list[str]:
    """What axe finds on a page that is serious or worse."""
    from axe_playwright_python.sync_playwright import Axe

    grave = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in grave]


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_for_everybody(kind: str, browser: Any, story: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGES[kind](story), encoding="utf-8")
    for width, scheme in ((1280, "light"), (400, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message, heard=messages: heard.append(message.text))
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{kind} is too wide at {width}"
        assert page.evaluate(CUT) == [] and page.evaluate(OVERLAPS) == [], (kind, width)
        assert serious(page) == [], (kind, width)
        assert page.evaluate("document.querySelectorAll('h1').length") == 1 and messages == []
        context.close()


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_fits_on_paper(kind: str, browser: Any, story: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(PAGES[kind](story), encoding="utf-8")
    page = browser.new_page(viewport={"width": A4, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= A4, kind
    assert page.evaluate(TALL) == [] and page.evaluate(OVERLAPS) == [], kind
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(248, 250, 247)"  # light, too
    page.close()


def test_a_tree_too_large_for_a_drawing_is_an_outline(story: Path) -> None:
    large = _large_tree_page(story)
    assert 'class="outline"' in large and '<svg class="privet-tree"' not in large
    assert 'class="outline"' not in privet.Model.load(story / "tree.json").page()
