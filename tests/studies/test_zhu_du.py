"""Zhu and Du's figures: run on a generated census and on their example, read on made-up results, and on Adult."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privet.studies.catalog import study, work
from privet.studies.findings import FAILS, INCOMPARABLE, Claim, Findings
from privet.studies.folder import gather, outcomes
from privet.studies.memory import forget_peak, held, peak
from privet.studies.papers.zhu_du.example import EXAMPLES, reversed_boundary
from privet.studies.papers.zhu_du.figures import STUDIES, paper_averages
from privet.studies.papers.zhu_du.trees import ALL, CASES, GAIN, GINI, MEASURES, PLAIN, TWOS, UNRATED, Two, trials
from privet.studies.published import numbers
from privet.studies.tree_audit import AVERAGED, TABLES
from privet.studies.trial import Outcome, Trial, recorded

needs_adult = pytest.mark.skipif(
    not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA names no folder with the UCI files (adult)"
)
NAMES = [each.name for each in STUDIES]
CENSUS = next(two for two in TWOS if two.data == "census")
PAPERS, ONE_RULE = TWOS[0], next(two for two in TWOS if two.gini == two.gain)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("studies")
    gather(folder, [trial for each in STUDIES for trial in each.trials("tiny")], work)
    return folder


def findings(name: str, folder: Path) -> Findings:
    return study(name).read(outcomes(study(name), "tiny", recorded(folder / "results.jsonl")))


def made(two: Two, **results: float | Callable[[str, str], Any]) -> list[Outcome]:
    """Results of two trees in all cases, each number a constant or a function of measure and case."""
    usual: dict[str, Any] = {"D": 0.8, "D floored": 0.8, "cpu": 1.0, "gb": 0.3, "gb before": 0.2, "D of leaves": 0.9}
    usual |= dict.fromkeys(
        ("profiles", "rates", "labels", "internal", "leaves", "steps", "marginal", "fell", "rose"), 7
    )
    usual |= {"falls": [[1.0, 1.0, 2.0]] * 10, "mean falls": [[1, 1.5], [10, 1.0]], "mean of the largest rises": 3.0}
    usual |= {name.replace("_", " "): value for name, value in results.items()}
    return [
        Outcome(
            two.trial(measure, case),
            {name: value(measure, case) if callable(value) else value for name, value in usual.items()},
        )
        for measure in MEASURES
        for case in CASES
    ]


def claims(figure: int, *found: list[Outcome]) -> tuple[Claim, ...]:
    return study(f"zhu-du-figure-{figure}").read([each for some in found for each in some]).claims


# -- trials ------------------------------------------------------------------------------------


def test_figures_share_their_audits() -> None:
    assert NAMES == [f"zhu-du-figure-{figure}" for figure in range(3, 10)]
    for size, many in {"tiny": 6, "quick": 9, "full": 18}.items():
        asked = [trial for each in STUDIES for trial in each.trials(size) if trial.data != "example 1"]
        assert len({trial.key for trial in asked}) == many and set(asked) == set(trials(size, tuple(CASES)))
        for each in STUDIES:
            wanted = [trial.key for trial in each.trials(size)]
            assert wanted and len(wanted) == len(set(wanted))
    assert {trial.data for each in STUDIES for trial in each.trials("tiny")} == {"census", "example 1"}


def test_only_the_example_needs_no_public_table() -> None:
    assert [each.name for each in STUDIES if not each.data] == ["zhu-du-figure-5"]
    assert all(each.about and each.source.endswith(each.name[-1]) for each in STUDIES)


# -- what is run -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_from_end_to_end(name: str, tiny: Path) -> None:
    found = findings(name, tiny)
    assert found.panels and all(panel.cells for panel in found.panels)
    assert found.claims and all(claim.evidence and claim.text for claim in found.claims)
    assert all(claim.erratum for claim in found.claims if claim.verdict == FAILS)
    for panel in found.panels:
        places = [(cell.series, cell.at) for cell in panel.cells]
        assert len(places) == len(set(places))
        assert all(math.isfinite(cell.ours.mean) and cell.ours.n == 1 for cell in panel.cells)
        if name != "zhu-du-figure-5":  # the paper's numbers are of Adult
            assert all(cell.paper is None for cell in panel.cells)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_without_results(name: str) -> None:
    found = study(name).read([])
    assert all(claim.holds is None for claim in found.claims)


def test_audits_of_a_generated_census(tiny: Path) -> None:
    found = {
        (measure, case): recorded(tiny / "results.jsonl")[CENSUS.trial(measure, case).key].result
        for measure in MEASURES
        for case in CASES
    }
    for measure in MEASURES:
        everything, plain, unrated = (found[measure, case] for case in CASES)
        assert everything and plain and unrated
        # even shares meet every label and every choice
        assert unrated["D"] == pytest.approx(unrated["uniform"]) and unrated["rates"] == 0
        assert everything["D of leaves"] == pytest.approx(plain["D"]) and plain["internal"] == 0
        # more constraints leave less entropy
        assert everything["entropy"] <= plain["entropy"] + 1e-9 <= unrated["entropy"] + 2e-9
        assert everything["leaves"] == everything["rates"] == plain["leaves"] == everything["labels"] / 6
        assert everything["unsolved"] == 0 and everything["violation"] <= 2e-6 and plain["binding"] == 0
        assert len(json.dumps(everything)) < 3000


def test_individual_divergences_are_sorted_by_what_they_fall(tiny: Path) -> None:
    result = recorded(tiny / "results.jsonl")[CENSUS.trial(GAIN, ALL).key].result
    assert result and result["binding"] > 0 and result["falls"][0][0] > 0
    falls = [fall for fall, _, _ in result["falls"]]
    assert falls == sorted(falls, reverse=True)
    assert all(fall == pytest.approx(before - after, abs=2e-6) for fall, after, before in result["falls"])
    means = dict(result["mean falls"])
    assert means[1] == pytest.approx(falls[0]) and means[10] == pytest.approx(sum(falls) / 10, abs=2e-6)
    assert set(means) == {k for k in AVERAGED if k <= result["profiles"]}


def test_an_audit_is_the_same_in_every_run(tiny: Path) -> None:
    for trial in (CENSUS.trial(GAIN, ALL), *EXAMPLES.values()):
        first = dict(recorded(tiny / "results.jsonl")[trial.key].result or {})
        again = json.loads(json.dumps(work(trial)))
        for each in (first, again):
            each.update(dict.fromkeys(("cpu", "gb", "gb before")))
        assert first == again


def test_a_sample_of_a_census_has_no_gaps() -> None:
    frame = TABLES["census"](200, 3)
    assert not frame.isna().any(axis=None) and not (frame == "nan").any(axis=None) and 150 < len(frame) <= 200
    assert frame.columns[-1] == "education" and frame.equals(TABLES["census"](200, 3))


# -- what the paper prints ---------------------------------------------------------------------


def test_the_printed_differences_are_those_of_the_printed_divergences() -> None:
    paper = numbers("zhu_du", "figure-7")
    for rank in map(str, range(1, 11)):
        difference, with_, without = (paper[rank, name].value for name in ("difference", "KL1", "KL2"))
        assert difference == pytest.approx(without - with_, abs=1.5e-3)
    assert [paper_averages()[k].value for k in (1, 2)] == pytest.approx([1.492, (1.492 + 1.371) / 2])


def test_the_printed_labels_are_fifteen_of_each_leaf() -> None:
    paper = numbers("zhu_du", "constraints")
    assert all(paper[measure, "labels"].value == 15 * paper[measure, "rates"].value for measure in MEASURES)


def test_figure_5_beside_the_closed_form_and_the_erratum(tiny: Path) -> None:
    found = findings("zhu-du-figure-5", tiny)
    cells = {(cell.series, cell.at): cell for cell in found.panels[0].cells}
    for at in ("x20", "x31", "Do", "Dq2", "Dq3"):
        met, missed, told = (cells[series, at] for series in ("SA", "SB", "SB, reversed"))
        assert met.paper and missed.paper and told.paper and met.closed and missed.closed
        assert met.ours.mean == pytest.approx(met.paper.value, abs=5e-4)
        assert missed.ours.mean == pytest.approx(missed.closed.value, abs=1e-6) == met.ours.mean
        assert abs(missed.ours.mean - missed.paper.value) > 0.1
        if at != "x31":  # printed in the column of x30
            assert told.ours.mean == pytest.approx(told.paper.value, abs=1.5e-3)
    assert all(
        cells["possible worlds", f"x{i}{j}"].ours == cells["SO", f"x{i}{j}"].ours for i in range(1, 5) for j in (0, 1)
    )
    example, confidence = found.claims
    assert example.holds is False and "wrong way round" in example.erratum
    assert confidence.holds is True and "6 are known" in confidence.evidence
    assert -math.log(reversed_boundary()) / 3 == pytest.approx(0.068, abs=5e-4)


# -- claims on made-up results -----------------------------------------------------------------


def test_claims_about_error_rates() -> None:
    def drop(gini: float, gain: float) -> list[Outcome]:
        lost = {GINI: gini, GAIN: gain}
        return made(PAPERS, D_floored=lambda m, case: 1.4 if case == UNRATED else 1.4 - lost[m])

    for more, severe in (((0.5, 0.6), (True, True)), ((0.6, 0.5), (True, False)), ((-0.1, 0.5), (False, True))):
        assert tuple(claim.holds for claim in claims(3, drop(*more))) == severe
    evidence = claims(3, drop(0.5, 0.6))[1].evidence
    assert "0.6000 from information gain and 0.5000 from Gini" in evidence


def test_trees_most_like_the_papers_decide_and_others_are_explained() -> None:
    larger = made(PAPERS, D_floored=lambda m, case: 0.9 if m == GINI else 0.7)
    smaller = made(ONE_RULE, D_floored=lambda m, case: 0.7 if m == GINI else 0.9)
    (alone,) = claims(4, larger)
    assert alone.holds is True and not alone.erratum
    (both,) = claims(4, smaller, larger)
    assert both.holds is True and "number of leaves" in both.erratum and str(ONE_RULE) in both.evidence
    (other,) = claims(4, smaller)
    assert other.holds is False and other.erratum


def test_claims_about_implicit_information() -> None:
    def changed(gini: float, gain: float) -> tuple[bool | None, ...]:
        after = {GINI: 1 + gini, GAIN: 1 + gain}
        found = made(PAPERS, D_floored=lambda m, case: 1.0 if case == PLAIN else after[m])
        return tuple(claim.holds for claim in claims(6, found))

    assert changed(-0.05, 0.01) == (True, True)
    assert changed(-0.01, 0.05) == (False, False)
    assert changed(-0.05, -0.05) == (True, False)


def test_claims_about_individual_divergences() -> None:
    (fell,) = claims(7, made(PAPERS))
    assert fell.holds is True and "50 percent smaller" in fell.evidence
    (hardly,) = claims(7, made(PAPERS, falls=[[0.1, 1.9, 2.0]] * 10))
    assert hardly.holds is False and hardly.erratum
    (none,) = claims(7, made(PAPERS, falls=[[0.0, 0.0, 0.0]]))
    assert none.holds is False
    (decreasing,) = claims(8, made(PAPERS))
    assert decreasing.holds is True and "+0.1000" in decreasing.evidence
    (flat,) = claims(8, made(PAPERS, mean_falls=[[1, 0.0], [2, 0.0]]))
    assert flat.holds is False


def test_claims_about_time_and_memory() -> None:
    seconds = {ALL: 10.0, PLAIN: 1.0, UNRATED: 100.0}
    as_printed = made(
        PAPERS,
        cpu=lambda m, case: seconds[case] * (1 if m == GINI else 3),
        gb=lambda m, case: 1.2 if m == GINI else 2.5,
    )
    assert [claim.holds for claim in claims(9, as_printed)] == [True, True, True, True]
    opposite = made(
        PAPERS,
        cpu=lambda m, case: 1 / seconds[case] / (1 if m == GINI else 3),
        gb=lambda m, case: 2.5 if m == GINI else 1.2,
    )
    told = claims(9, opposite)
    assert [claim.holds for claim in told] == [False, False, False, False]
    assert [claim.verdict for claim in told] == [FAILS, INCOMPARABLE, INCOMPARABLE, FAILS]  # another solver
    assert all(claim.erratum or "KNITRO" in claim.told for claim in told)
    near = claims(9, made(PAPERS, cpu=lambda m, case: 1.0 if m == GINI else 1.4))
    assert [claim.holds for claim in near] == [None, False, None, None]
    unknown = made(PAPERS, gb=lambda m, case: None)
    assert claims(9, unknown)[1].holds is None
    assert not any(panel.y == "GB" for panel in study("zhu-du-figure-9").read(unknown).panels)


def test_paper_and_ours_stand_side_by_side() -> None:
    found = study("zhu-du-figure-9").read(made(PAPERS))
    memory = {(cell.series, cell.at): cell for panel in found.panels if panel.y == "GB" for cell in panel.cells}
    printed = [memory[ALL, measure].paper for measure in MEASURES]
    assert [number.value for number in printed if number] == [1.2, 2.5]
    (curve,) = study("zhu-du-figure-8").read(made(PAPERS)).panels
    first, tenth = curve.cells
    assert first.paper and first.paper.value == 1.492 and tenth.paper and first.ours.mean == 1.5
    assert first.difference(first.paper) is None  # there is no noise, and so no standard error


# -- memory ------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux forgets the peak of a process")
def test_a_peak_is_that_of_the_last_work() -> None:
    block = bytearray(300_000_000)
    assert forget_peak() and (high := peak()) is not None and high > 0.3
    del block
    assert forget_peak() and (low := peak()) is not None and low < high - 0.2
    now = held()
    assert now is not None and now <= low + 0.05


def test_where_there_is_no_linux_there_is_no_peak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("privet.studies.memory.STATUS", tmp_path / "none" / "status")
    monkeypatch.setattr("privet.studies.memory.CLEAR", tmp_path / "none" / "clear")
    assert not forget_peak() and peak() is None and held() is None
    assert work(CENSUS.trial(GINI, PLAIN))["gb"] is None


# -- Adult -------------------------------------------------------------------------------------


@needs_adult
def test_adult_without_error_rates_and_without_implicit_information() -> None:
    unrated, plain = (work(ONE_RULE.trial(GINI, case)) for case in (UNRATED, PLAIN))
    assert (plain["people"], plain["profiles"], plain["leaves"]) == (30162, 4480, 921)
    assert unrated["D"] == pytest.approx(1.4588, abs=5e-5) and plain["marginal"] == pytest.approx(0.7055, abs=5e-5)
    assert plain["D"] == pytest.approx(0.8765, abs=5e-5)
    fewer = work(Trial("adult", "id3", rows=500, options=ONE_RULE.gini.options(GINI), settings=(("task", "audit"),)))
    assert fewer["people"] == 500
