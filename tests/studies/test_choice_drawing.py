"""Pictures of the study of choice: any report gives an SVG that every reader can bear, with every arm in it."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from privet.choice.arms import ARMS
from privet.choice.features import FEATURES
from privet.choice.history import History
from privet.studies.choice import run
from privet.studies.choice_drawing import BINS, BOTTOM, FEW, REGRET, TOP, WIDTH, regret_by_epsilon, where_arms_win
from privet.studies.histories import Run, add

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script x="1">&\x00\u202e'


def report(arms: tuple[str, ...] = tuple(ARMS), runs: tuple[int, ...] = (40, 300, 20)) -> dict[str, Any]:
    """Three bins, the first open below and the last above; the first arm falls far, the last is the default."""
    edges = (0, 3, 10, None)
    bins = [
        {
            "from": edges[place],
            "to": edges[place + 1],
            "runs": number,
            "ahead": {arm: (len(arms) - 1 - at) * (1.0 - 3 * place) for at, arm in enumerate(arms)},
            "standard error": {arm: 0.0 if arm == "boosted" else 0.5 for arm in arms},
        }
        for place, number in enumerate(runs)
    ]
    return {"objective": "accuracy", BINS: bins}


def with_regret(top: float = 9.0, **more: list[float]) -> dict[str, Any]:
    """The policy has the least regret, and each arm a point more than the one after it."""
    cells = {f"always {arm}": [top - at, 2.0, 1.0] for at, arm in enumerate(ARMS)}
    cells |= {"policy": [0.5, -0.1, 0.0], "random arm": [6.0, 6.0, 6.0], **more}
    ways = {way: {"mean": float(np.mean(row)), "by epsilon": row} for way, row in cells.items()}
    return {"objective": "accuracy", REGRET: {"epsilons": ["0.01", "0.1", "1"], "ways": ways}}


def texts(drawn: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter(f"{SVG}text")]


def labels(drawn: str) -> list[ElementTree.Element]:
    """What stands right of the frame, from top to bottom."""
    found = [each for each in ElementTree.fromstring(drawn).iter(f"{SVG}text") if float(each.get("x", "0")) > 700]
    return sorted(found, key=lambda each: float(each.get("y", "0")))


@pytest.mark.parametrize("drawn", [where_arms_win(report()), regret_by_epsilon(with_regret())])
def test_a_picture_stands_alone_on_light_and_dark_paper(drawn: str) -> None:
    root = ElementTree.fromstring(drawn)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and root.get("aria-label")
    assert "prefers-color-scheme: dark" in drawn
    assert not re.search(r"<script|href|url\(|@import|<image|\son\w+=", drawn)
    assert drawn.count("http") == 1  # the namespace
    assert not re.search(r"\b(nan|inf)\b", drawn)


@pytest.mark.parametrize("end", [7.9, 0.0, -19.9, -60.0])
def test_every_arm_has_a_label_and_no_two_share_a_place(end: float) -> None:
    content = report()
    content[BINS][-1]["ahead"] = {arm: end + 0.01 * at for at, arm in enumerate(ARMS)}
    found = labels(where_arms_win(content))
    assert {re.sub(r" ↓.*", "", each.text or "") for each in found} == set(ARMS)
    heights = [float(each.get("y", "0")) for each in found]
    assert all(below - above >= 16 for above, below in pairwise(heights))
    assert TOP <= heights[0] and heights[-1] <= BOTTOM + 5


def test_an_arm_that_falls_out_of_the_picture_says_how_far() -> None:
    told = texts(where_arms_win(report()))
    assert "prior ↓ \u221240" in told  # 8 * -5
    assert any("fall below \u221220 leave the picture" in each for each in told)


def test_a_win_is_never_cut_off() -> None:
    content = report()
    content[BINS][0]["ahead"]["prior"] = 31.4
    root = ElementTree.fromstring(where_arms_win(content))
    lines = [each.get("d", "") for each in root.iter(f"{SVG}path") if each.get("class") == "line"]
    assert min(float(y) for line in lines for y in re.findall(r"[ML][\d.]+ ([\d.-]+)", line)) >= TOP
    assert "+30" in texts(where_arms_win(content))


def test_the_runs_of_each_bin_and_of_all_are_told() -> None:
    told = texts(where_arms_win(report(runs=(40, 1300, 20))))
    assert {"40", "1,300", "20", "3", "10", "runs"} <= set(told)
    assert any("of accuracy ahead of boosted tables on 1,360 generated runs" in each for each in told)
    assert any("of AUC ahead" in each for each in texts(where_arms_win({**report(), "objective": "auc"})))


def test_a_bin_with_few_runs_has_pale_marks_and_no_band() -> None:
    full, few = where_arms_win(report()), where_arms_win(report(runs=(40, 300, FEW - 1)))
    assert full.count('class="marks pale"') == 0 and few.count('class="marks pale"') == len(ARMS)
    pieces = [re.search(r'class="band" d="([^"]*)"', drawn) for drawn in (full, few)]
    assert [each and each[1].count("Z") for each in pieces] == [2, 1]
    assert f"fewer than {FEW} runs" in few and "fewer than" not in full
    assert 'class="band"' not in where_arms_win(report(runs=(2, 2, 2)))


@pytest.mark.parametrize("kept", [[0], [1], [2], [0, 2]])
def test_bins_that_had_no_runs_are_missing(kept: list[int]) -> None:
    content = report()
    content[BINS] = [content[BINS][place] for place in kept]
    assert len(labels(where_arms_win(content))) == len(ARMS)


def test_without_bins_or_public_tables_there_is_no_picture() -> None:
    assert where_arms_win({**report(), BINS: []}) == ""
    assert regret_by_epsilon(report()) == ""


@pytest.mark.parametrize("name", [HOSTILE, "]]>", '"/><g onload="x"', "}</style>", "A" * 500, ""])
def test_hostile_names_are_words_and_nothing_else(name: str) -> None:
    drawn = where_arms_win(report((name, "prior", "boosted")))
    plain = where_arms_win(report(("x", "prior", "boosted")))
    for one, other in zip(ElementTree.fromstring(drawn).iter(), ElementTree.fromstring(plain).iter(), strict=True):
        assert one.tag == other.tag and (one.tag != f"{SVG}style" or one.text == other.text)
        assert one.attrib == other.attrib
    assert max(len(each.text or "") for each in labels(drawn)) < 30
    drawn = regret_by_epsilon(with_regret(**{f"always {name}": [0.0, 0.0, 0.0]}))
    assert ElementTree.fromstring(drawn) is not None and "<script" not in drawn and 'onload="' not in drawn


def test_regret_shows_the_policy_the_default_the_next_best_arms_and_a_random_one() -> None:
    told = [each.text or "" for each in labels(regret_by_epsilon(with_regret()))]
    assert {re.sub(r", [\d.-]+$", "", each) for each in told} == {
        "policy",
        "always boosted",
        "always naive-bayes",
        "always id3plus gini 3",
        "always id3plus gini 2",
        "random arm",
    }
    assert {"0.01", "0.1", "1"} <= set(texts(regret_by_epsilon(with_regret())))


def test_regret_above_the_ceiling_leaves_the_picture_and_says_so() -> None:
    content = with_regret(random=[1.0, 1.0, 1.0])
    assert not any("leave the picture" in each for each in texts(regret_by_epsilon(content)))
    content[REGRET]["ways"]["random arm"]["by epsilon"] = [6.0, 18.0, 24.0]
    told = texts(regret_by_epsilon(content))
    assert any("lines above 20 leave the picture" in each for each in told)
    assert any(each.startswith("random arm") and each.endswith("↑ 24") for each in told)


def test_a_policy_that_is_always_right_can_be_drawn() -> None:
    content = with_regret()
    for row in content[REGRET]["ways"].values():
        row["by epsilon"] = [0.0, 0.0, 0.0]
    assert len(labels(regret_by_epsilon(content))) == 6


def test_a_study_writes_its_pictures(tmp_path: Path) -> None:
    """The names of the parts of a report are those the pictures look for."""
    rng = np.random.default_rng(0)

    def made(name: str, data: str, origin: str) -> Run:
        signal = float(rng.uniform(1, 9))
        context = {feature: float(rng.normal()) for feature in FEATURES} | {"log signal": signal, "classes": 2.0}
        points = {arm: float(rng.uniform(50, 90)) for arm in ARMS}
        return Run(name, data, origin, context, {"accuracy": points, "auc": points})

    def pictures(runs: list[Run]) -> set[str]:
        history = History(tmp_path / "history.db")
        for each in runs:
            add(history, each)
        history.close()
        run(tmp_path, sets=0, public=False)
        for path in tmp_path.glob("*.svg"):
            assert ElementTree.fromstring(path.read_text(encoding="utf-8")).get("width") == str(WIDTH)
        return {path.name for path in tmp_path.glob("*.svg")}

    generated = [made(f"trees {n} {k}", f"trees {n}", f"synthetic: trees {n}") for n in range(12) for k in range(5)]
    assert pictures(generated) == {"where.svg", "where-auc.svg"}
    public = [made(f"car {e} {k}", f"car {e}", "public: car") for e in ("0.1", "1") for k in range(4)]
    assert pictures(public) == {"where.svg", "where-auc.svg", "regret.svg"}
    assert len(labels((tmp_path / "regret.svg").read_text(encoding="utf-8"))) == 6
