"""Pages of studies: everything that was found is told, everything that was run can be picked, nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Number, Panel
from privet.studies.pages.explorer import explorer
from privet.studies.pages.group import groups, measures
from privet.studies.pages.overview import report
from privet.studies.study import Study
from privet.studies.trial import Outcome, Trial

EVIL = "</template></script><script>alert(1)</script><img src=x onerror='alert(2)'>\" onclick=\"alert(3)&amp;"
VOID = {"meta", "br", "img", "input", "link", "hr"}
LEARNERS = {"diffpid3": 3.0, "boosted": 5.0, "prior": 0.0}

STUDY = Study("paper-figure-1", "Four criteria", "A and B 2010, figure 1", lambda size: (), lambda found: Findings(()))


def specimen(word: str = "age") -> dict[str, Any]:
    bars = [[f"{word} in [0, 10)", [41, 3], [38.5, -2]], [f"{word} in [10, 20)", [1012, 7], [1019, 6]]]
    return {
        "text": f"a tree\n├── {word}",
        "what": "Rows of each class",
        "classes": ["no", "yes"],
        "bars": bars,
        "left": 5,
    }


def outcome(data: str, learner: str, epsilon: str, rows: int | None, seed: int, word: str = "age") -> Outcome:
    accuracy = 75.0 + LEARNERS.get(learner, 1.0) * (float(epsilon) if epsilon else 2) + seed / 8
    result: dict[str, Any] = {"accuracy": accuracy, "auroc": accuracy + 5, "majority": 75.125, "flag": True}
    if seed == 0 and epsilon:
        result["specimen"] = specimen(word)
    return Outcome(Trial(data, learner, epsilon, seed, rows, (("max_depth", 3),), (("folds", 10),)), result)


def outcomes(word: str = "age", data: Sequence[str] = ("adult", "nursery")) -> list[Outcome]:
    """Not everything was run with everything: nursery at one epsilon only."""
    found = [
        outcome(name, learner, epsilon, rows, seed, word)
        for name in data
        for rows in (1000, None)
        for learner in LEARNERS
        for epsilon in (("0.1", "1", "10") if name == data[0] else ("1",))
        for seed in range(4)
    ]
    found += [outcome(data[0], "c45", "", None, seed) for seed in range(4)]
    return [*found, Outcome(Trial(data[0], "boosted", "7"), None, "it failed")]


def findings(word: str = "max") -> Findings:
    cells = tuple(
        Cell(word, e, Estimate(80.25, 1.0, 16), Number(81.5, reading=0.5), Number(80.75)) for e in (0.1, 1.0, 10.0)
    )
    heat = Panel("Depth", "trees", (Cell("depth 2", 4.0, Estimate(66.5, 1.0, 4)),), kind="heat")
    claims = (
        Claim(f"{word} is best", True, "by 2 points"),
        Claim("deeper is better", False, "it is not", f"noise {word}"),
        Claim("more is more", None, "two runs"),
    )
    return Findings((Panel("Adult", "epsilon", cells, log=True), heat), claims, (f"a note on {word}",))


class Reader(HTMLParser):
    """What a browser would find: elements that are open at the end, what loads, what runs, and all words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[dict[str, str | None]] = []
        self.loads: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "srcset", "action", "data") or (name == "href" and not str(value).startswith("#")):
                self.loads.append(f"{tag} {value}")
        assert tag not in ("img", "iframe", "link", "object", "base", "embed"), tag

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                raise AssertionError(f"something is open within {tag}")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_a_page_tells_everything_and_loads_nothing() -> None:
    page = explorer(replace(STUDY, about="What they did."), findings(), outcomes(), "quick", "privet study run x")
    found = Reader(page)
    assert found.open == [] and found.loads == []
    words = " ".join(found.words)
    for each in ("Four criteria", "A and B 2010, figure 1", "What they did.", "quick", "privet study run x"):
        assert each in words
    for each in ("max is best", "holds", "by 2 points", "does not hold", "noise max", "open at this size"):
        assert each in words
    for each in ("81.5 (±0.5)", "80.75", "80.25 ± 0.25 (16)", "\u22123.0", "\u22122.0", "a note on max", "66.5"):
        assert each in words
    assert "http" not in page.replace("http-equiv", "")
    assert page == explorer(
        replace(STUDY, about="What they did."), findings(), outcomes(), "quick", "privet study run x"
    )


def test_the_policy_of_a_page_allows_its_own_script_alone() -> None:
    page = explorer(STUDY, findings(), outcomes(), "quick")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy is not None and script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert [each.get("type") for each in Reader(page).scripts] == ["application/json", None]
    assert "<script" not in explorer(STUDY, findings(), [], "quick") and "script-src" not in report([], "all")


@pytest.mark.parametrize("page", ["study", "report"])
def test_hostile_texts_are_words_and_nothing_else(page: str) -> None:
    def written(word: str) -> str:
        study = replace(STUDY, title=word, source=word, about=word)
        if page == "report":
            return report([(study, findings(word))], word)
        return explorer(study, findings(word), outcomes(word, (word, "b")), word, word)

    evil, plain = Reader(written(EVIL)), Reader(written("word"))
    assert evil.open == [] and evil.loads == plain.loads and evil.scripts == plain.scripts
    assert "<img" not in written(EVIL) and "alert(1)</script>" not in written(EVIL)


def test_without_scripts_the_best_of_the_first_data_set_is_shown() -> None:
    page = explorer(STUDY, Findings(()), outcomes(), "quick")
    static = page.split('<div id="spread">')[1].split("<script")[0]
    assert "adult, all rows, epsilon 1, boosted, max_depth 3" in static
    assert "80.188 ± 0.081 (4)" in static  # 80, 80.125, 80.25, 80.375
    assert static.count('class="dot"') == 4 * 4  # three learners, and the one that is not private
    assert 'class="level"' in static and "not private" in static
    assert "41 → 38.5" in static and "3 → \u22122" in static and "1,012 → 1,019" in static
    assert "├── age" in static and "5 smaller ones are not shown" in static
    assert '<form id="picker" hidden>' in page and "<noscript>" in page


def test_what_was_run_can_be_picked_and_what_failed_cannot() -> None:
    found = groups(outcomes())
    assert len(found) == 2 * 3 * 3 + 2 * 3 + 1 and measures(found) == ["accuracy", "auroc"]
    page = explorer(STUDY, Findings(()), outcomes(), "quick")
    listed = {name: re.findall(r'<option value="([^"]*)"', _select(page, name)) for name in ("data", "rows", "epsilon")}
    assert listed == {
        "data": ["adult", "nursery"],
        "rows": ["1,000 rows", "all rows"],
        "epsilon": ["0.1", "1", "10", "not private"],
    }
    index = json.loads(re.findall(r'id="index">(.*?)</script>', page)[0])
    assert len(index["groups"]) == len(found)
    for number, place in enumerate(index["places"]):
        assert f'<template id="model-{number}">' in page
        assert all(f'<template id="spread-{place}-{measure}">' in page for measure in (0, 1))


def _select(page: str, name: str) -> str:
    return page.split(f'<select name="{name}"')[1].split("</select>")[0]


def test_a_study_without_outcomes_has_a_page_too() -> None:
    page = explorer(STUDY, findings(), [], "quick")
    assert "Adult" in page and "Explore" not in page and Reader(page).open == []


def test_a_report_has_a_row_for_each_study() -> None:
    other = replace(STUDY, name="paper-table-2", title="Another")
    page = report([(STUDY, findings()), (other, Findings(()))], "privet study run all --quick")
    found = Reader(page)
    assert found.open == [] and found.loads == ["a paper-figure-1.html", "a paper-table-2.html"]
    words = " ".join(found.words)
    for each in (
        "Four criteria",
        "A and B 2010, figure 1",
        "✓ 1 claim holds",
        "✗ 1 claim does not",
        "? 1 open at this size",
    ):
        assert each in words
    assert "largest difference \u22123.0" in words  # 1.25 less the 0.5 of reading, in quarters
    assert "deeper is better" in words and "Why: noise max" in words
    assert page.count('<svg class="chart"') == 2 and "privet study run all --quick" in words


# -- in a browser -------------------------------------------------------------------------------


def _browsed(browser: str, page: Path, fragment: str = "") -> str:
    """The page after its script has run; whatever the browser complains about fails the test."""
    flags = "--headless --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom".split()
    profile = f"--user-data-dir={page.parent / 'profile'}"
    done = subprocess.run(
        [browser, *flags, profile, page.as_uri() + fragment], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in done.stderr
    return done.stdout


def test_picking_changes_the_picture_in_a_real_browser(tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no Chromium here")
    page = tmp_path / "study.html"
    page.write_text(explorer(replace(STUDY, title=EVIL), findings(), outcomes(EVIL), "quick"), encoding="utf-8")

    def shown(fragment: str) -> tuple[str, str]:
        content = _browsed(browser, page, fragment)
        assert '<form id="picker">' in content  # the script ran
        told = content.split('<div id="model">')[1].split("</b>")[0]
        lane = content.split('<div id="spread">')[1].split('class="lane chosen"')[1]
        return re.sub("<[^>]*>", "", told), re.findall(r'class="said">([^<]*)', lane)[0]

    assert shown("") == ("adult, all rows, epsilon 1, boosted, max_depth 3", "80.188 ± 0.081 (4)")
    picked = {"rows": "1,000 rows", "epsilon": "10", "algorithm": "diffpid3, max_depth 3", "measure": "auroc"}
    assert shown(f"#{urlencode(picked)}") == (
        "adult, 1,000 rows, epsilon 10, diffpid3, max_depth 3",
        "110.188 ± 0.081 (4)",  # 75 + 30 + 5
    )
    assert shown(f"#{urlencode({'data': 'nursery'})}")[0].startswith("nursery, all rows, epsilon 1")
