"""Friedman and Schuster again: every study on a tiny size, what is printed as data, and when a claim holds."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.studies import catalog, folder
from privet.studies.findings import Claim, Findings
from privet.studies.papers.friedman_schuster import STUDIES, adult, closed_form, deep_trees, single_split
from privet.studies.papers.friedman_schuster.claims import said, table_1
from privet.studies.papers.friedman_schuster.runs import Method, Runs
from privet.studies.published import printed
from privet.studies.rows import split
from privet.studies.trial import Outcome, Trial

CORRECTED = single_split.CORRECTED
NAMES = [f"friedman-schuster-{what}" for what in ("table-1", *(f"figure-{i}" for i in range(2, 9)))]
Accuracy = Callable[[Trial], float]


def _study(what: str) -> Any:
    return catalog.study(f"friedman-schuster-{what}")


def _made(trials: Sequence[Trial], accuracy: Accuracy, spread: float = 1.0) -> list[Outcome]:
    """Outcomes that somebody made up: an accuracy for each trial, and chance of its own."""
    rng = np.random.default_rng(7)
    return [Outcome(trial, {"accuracy": accuracy(trial) + spread * rng.normal()}) for trial in trials]


def _claim(found: Findings, about: str) -> Claim:
    (claim,) = [claim for claim in found.claims if claim.text.startswith(said(about))]
    return claim


def _holds(what: str, about: str, accuracy: Accuracy, size: str = "quick", spread: float = 1.0) -> bool | None:
    study = _study(what)
    return _claim(study.read(_made(study.trials(size), accuracy, spread)), about).holds


def _of(trial: Trial) -> str:
    """What a trial is known by: its learner, and its scorer where it has one."""
    return str(dict(trial.options).get("criterion", trial.learner))


def _by(points: Mapping[str, float]) -> Accuracy:
    return lambda trial: points.get(_of(trial), 60.0)


# -- end to end -----------------------------------------------------------------------------------


def test_every_table_and_figure_is_there() -> None:
    assert [study.name for study in STUDIES] == [*NAMES, "friedman-schuster-grid", "friedman-schuster-tactics"]
    assert all(study.title and study.about and "KDD 2010" in study.source for study in STUDIES)


@pytest.mark.parametrize("name", NAMES)
def test_a_study_runs_and_reads(name: str, tmp_path: Path) -> None:
    study = catalog.study(name)
    if study.data and not os.environ.get("PRIVET_DATA"):
        pytest.skip("PRIVET_DATA names no folder with the UCI files")
    outcomes = folder.gather(tmp_path, study.trials("tiny"), catalog.work)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    found = study.read(outcomes)
    assert all(40 < cell.ours.mean <= 100 for panel in found.panels for cell in panel.cells)
    assert found.panels[0].cells and found.claims and found.notes
    assert study.read(outcomes[: len(outcomes) // 2]).panels[0].cells  # half of them failed


@pytest.mark.parametrize("name", NAMES)
def test_without_outcomes_nothing_is_claimed(name: str) -> None:
    found = catalog.study(name).read([])
    assert found.panels[0].cells == ()
    assert [claim.holds for claim in found.claims] == [None] * len(found.claims)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_grow_and_trials_are_told_apart(name: str) -> None:
    tiny, quick, full = (catalog.study(name).trials(size) for size in ("tiny", "quick", "full"))
    assert len(tiny) < len(quick) < len(full)
    for trials in (tiny, quick, full):
        assert len({trial.key for trial in trials}) == len(trials)


def test_full_is_the_size_of_the_paper() -> None:
    table = [trial for trial in _study("table-1").trials("full") if trial.learner == "sulq-id3"]
    assert len(table) == 5 * 200 and {trial.epsilon for trial in table} == {"0.1"}
    trees = [trial for trial in _study("figure-6").trials("full") if trial.rows == 50_000 and trial.epsilon]
    assert len(trees) == 4 * 20 * 20 and {trial.epsilon for trial in trees} == {"1"}
    folds = [trial.seed for trial in _study("figure-8").trials("full") if trial.epsilon == "2" and _of(trial) == "gini"]
    assert sorted(set(folds)) == list(range(100))


def test_what_two_studies_have_in_common_is_run_once() -> None:
    def keys(what: str) -> set[str]:
        return {trial.key for trial in _study(what).trials("quick")}

    table = {
        trial.key for trial in _study("table-1").trials("quick") if trial.options != single_split.CORRECTED.options
    }
    assert table < keys("figure-3")
    assert len(keys("figure-3") & keys("figure-4")) == 16 * 10  # Max on a binary attribute
    assert len(keys("figure-2") & keys("figure-6")) == 4 * 10  # trees, at epsilon 1 and 50,000 rows


# -- rows and the closed form ---------------------------------------------------------------------


def test_runs_come_from_one_tree_after_another_and_are_tested_without_noise() -> None:
    def rows(seed: int, learner: str = "id3", **settings: Any) -> Any:
        given = {"runs": 20, "p_noise": 0.2, **settings}
        return split(Trial("random-tree", learner, seed=seed, rows=300, settings=tuple(given.items())))

    first, second, other = rows(0), rows(19), rows(20)
    assert len(first.train) == 300 and len(first.test) == 10_000
    assert first.train.equals(rows(0, "diffpid3").train)  # learners share rows
    assert not first.train.equals(second.train)
    columns = list(first.domain.attributes)

    def rule(found: Any) -> dict[Any, int]:
        classes = found.test.groupby(columns)["class"]
        assert (classes.nunique() == 1).all()
        return dict(classes.first())

    assert rule(first) == rule(second) != rule(other)


def test_the_trial_of_a_single_split_says_what_to_expect() -> None:
    (trial, *_) = [each for each in _study("table-1").trials("quick") if _of(each) == "max" and each.rows == 2000]
    result = catalog.work(trial)
    assert result["expected"] == pytest.approx(100, abs=0.5)
    assert 0 <= result["variance"] < 25
    assert "expected" not in closed_form.single_split(
        Trial("random-tree", "diffpid3", "0.1", 0, 300, trial.options, trial.settings)
    )


@pytest.mark.parametrize(("by", "low", "high"), [("infogain", 0.1, 0.2), ("gini", 0.3, 0.6), ("max", 0.9, 1.0)])
def test_the_closed_form_prefers_the_right_attribute_by_the_scorer(by: str, low: float, high: float) -> None:
    rows = split(Trial("random-tree", "id3", rows=1000, settings=tuple(closed_form.SINGLE_SPLIT.items())))
    chance, accuracy = closed_form.closed_form(by, rows.train.to_numpy(), np.random.default_rng(0))
    assert chance.sum() == pytest.approx(1)
    assert low < chance[0] < high and chance[0] == chance.max()
    assert accuracy.tolist() == [1.0] + [0.5] * 9


# -- what is printed ------------------------------------------------------------------------------


def test_table_1_is_stored_as_it_is_printed() -> None:
    numbers = table_1()
    assert len(numbers) == 25
    assert {number.runs for number in numbers.values()} == {200}
    assert str(numbers["DiffPID3-Gini", 4000]) == "99.75 ± 3.5"
    assert numbers["SuLQ-based ID3", 5000].se == pytest.approx(21.5 / math.sqrt(200))
    assert all(sentence and not sentence.endswith(".") for sentence in printed("friedman_schuster")["claims"].values())


def test_the_paper_stands_beside_ours_in_table_1_and_figure_3() -> None:
    for what in ("table-1", "figure-3"):
        study = _study(what)
        (panel,) = study.read(_made(study.trials("quick"), _by({}))).panels
        assert sum(cell.paper is not None for cell in panel.cells) == 25


# -- when a claim holds ---------------------------------------------------------------------------

SCORERS = [("table-1", "scorers"), ("figure-3", "scorers"), ("figure-4", "numeric scorers")]


@pytest.mark.parametrize(("what", "about"), [*SCORERS, ("figure-6", "few"), ("figure-7", "few")])
def test_the_order_of_the_scorers(what: str, about: str) -> None:
    better = {"max": 90.0, "gini": 80.0, "infogain": 60.0}
    assert _holds(what, about, _by(better)) is True
    assert _holds(what, about, _by({**better, "gini": 95.0})) is False
    assert _holds(what, about, _by({**better, "gini": 90.0})) is None
    assert _holds(what, about, _by(better), size="tiny") is None  # two runs say nothing


def test_whether_the_papers_numbers_follow_from_its_algorithms() -> None:
    paper = table_1()
    names = {method.options: method.name for method in (*single_split.SCORERS, single_split.SULQ)}

    def claim(off: float) -> bool | None:
        outcomes = []
        for trial in _study("table-1").trials("quick"):
            number = paper.get((names.get(trial.options, ""), trial.rows or 0))
            if number is not None:
                result = {"accuracy": number.value, "expected": number.value + off, "variance": (number.sd or 0) ** 2}
                outcomes.append(Outcome(trial, result))
        return _study("table-1").read(outcomes).claims[1].holds

    assert claim(0.0) is True
    assert claim(2.0) is False  # the best rows are off by many of their errors


def test_id3_that_is_perfect_does_not_overfit() -> None:
    assert _holds("table-1", "id3", _by({"id3": 90.0})) is True
    assert _holds("table-1", "id3", _by({"id3": 100.0}), spread=0.0) is False


def _rising(needed: Mapping[str, float], top: float = 100.0) -> Accuracy:
    """An accuracy that is at 90% with so many rows, or slightly below at a lower top."""
    return lambda trial: 50 + (top - 50) / (1 + (needed.get(_of(trial), 800.0) / (trial.rows or 1)) ** 2 / 4)


def test_an_order_of_magnitude_fewer_samples() -> None:
    assert _holds("figure-3", "fewer", _rising({"max": 700.0, "sulq-id3": 15_000.0})) is True
    assert _holds("figure-3", "fewer", _rising({"max": 700.0, "sulq-id3": 2000.0})) is False
    assert _holds("figure-3", "fewer", _rising({"max": 700.0, "sulq-id3": 7000.0}), spread=10) is None
    # not even twenty thousand are enough: at least so many times as many
    assert _holds("figure-3", "fewer", _rising({"max": 700.0, "sulq-id3": 90_000.0})) is True
    assert _holds("figure-3", "fewer", _rising({"max": 90_000.0, "sulq-id3": 90_000.0})) is None
    trees = {"max": 3000.0, "gini": 3000.0, "infogain": 9000.0}
    assert _holds("figure-6", "fewer", _rising({**trees, "sulq-id3": 9000.0})) is False
    assert _holds("figure-6", "fewer", _rising({**trees, "sulq-id3": 36_000.0, "gini": 1500.0})) is True


def test_the_erratum_is_printed_where_a_claim_does_not_hold() -> None:
    study = _study("figure-6")
    needed = {"max": 3000.0, "gini": 3000.0, "infogain": 9000.0, "sulq-id3": 9000.0}
    claim = _claim(study.read(_made(study.trials("quick"), _rising(needed))), "fewer")
    assert claim.holds is False and "single split" in claim.erratum and "times as many" in claim.evidence


def test_excellent_accuracy_at_1500() -> None:
    assert _holds("figure-3", "excellent", _by({"max": 99.0})) is True
    assert _holds("figure-3", "excellent", _by({"max": 80.0})) is False
    assert _holds("figure-3", "excellent", _by({"max": 95.0})) is None


def test_a_threshold_needs_more_samples_than_a_binary_attribute() -> None:
    def needs(numeric: float) -> Accuracy:
        rows = {"diffpid3": 800.0, "diffpc45": numeric}
        return lambda trial: 50 + 50 / (1 + (rows.get(trial.learner, 500.0) / (trial.rows or 1)) ** 2 / 4)

    assert _holds("figure-4", "more samples", needs(2000.0)) is True
    assert _holds("figure-4", "more samples", needs(500.0)) is False
    assert _holds("figure-4", "more samples", needs(800.0), spread=5) is None


def test_thresholds_and_bins_cross() -> None:
    def crossing(at: float) -> Accuracy:
        bins = {"diffpid3": 90.0}
        return lambda trial: bins.get(trial.learner, 85.0 if 600 < (trial.rows or 0) < at else 95.0)

    def verdicts(accuracy: Accuracy) -> list[bool | None]:
        study = _study("figure-5")
        found = study.read(_made(study.trials("quick"), accuracy))
        return [claim.holds for claim in found.claims if claim.text.startswith(said("crossing"))]

    assert verdicts(crossing(1500)) == [True, True]  # Max, and Gini
    assert verdicts(crossing(100)) == [False, False]  # thresholds are always ahead
    assert verdicts(crossing(10_000)) == [False, False]  # bins are
    assert verdicts(_by({})) == [None, None]


def test_max_with_many_samples() -> None:
    others = {"gini": 93.0, "infogain": 92.0, "sulq-id3": 93.0, "max": 89.0}
    for what in ("figure-6", "figure-7"):
        assert _holds(what, "many", _by(others)) is True
        assert _holds(what, "many", _by({**others, "max": 99.0})) is False
        assert _holds(what, "many", _by({**others, "infogain": 89.0})) is None
    assert _holds("figure-6", "constrained", lambda trial: 94.0 if _of(trial) == "infogain" else 90.0) is True
    assert _holds("figure-6", "constrained", _by({"infogain": 90.0, "max": 94.0})) is False


def test_the_deviation_of_runs_is_told_over_all_and_on_one_tree() -> None:
    def apart(trial: Trial) -> float:
        return 50.0 + 10 * (trial.seed // 20 % 2) + trial.seed % 20  # trees differ by ten points

    study = _study("figure-6")
    (once,) = [note for note in study.read(_made(study.trials("quick"), apart)).notes if said("spread") in note]
    assert "ours over all runs is 5." in once and "on one tree" not in once
    seeds = [trial for trial in study.trials("full") if trial.seed % 20 < 3 and trial.rows == 1000]
    (several,) = [note for note in study.read(_made(seeds, apart, 0.0)).notes if said("spread") in note]
    assert "ours over all runs is 5." in several and "and 1.0 between runs on one tree" in several


def test_a_frontier_that_turns_and_one_that_is_dominated() -> None:
    def strict(trial: Trial) -> bool:
        return float(trial.epsilon or 1) < 0.05

    def turning(trial: Trial) -> float:
        first, second = ("max", "gini") if strict(trial) else ("gini", "max")
        return {first: 90.0, second: 80.0, "sulq-id3": 60.0}.get(_of(trial), 70.0)

    assert _holds("figure-2", "pareto", turning) is True
    assert _holds("figure-2", "pareto", _by({"max": 90.0, "gini": 80.0})) is False
    assert _holds("figure-2", "pareto", turning, size="tiny") is None
    assert _holds("figure-2", "dominated", turning) is True
    assert _holds("figure-2", "dominated", lambda trial: turning(trial) if strict(trial) else 90.0) is True
    assert _holds("figure-2", "dominated", _by({"sulq-id3": 99.0})) is False
    (panel,) = _study("figure-2").read(_made(_study("figure-2").trials("quick"), turning)).panels
    assert panel.frontier and panel.log and "50,000 rows" in panel.title


def test_adult_by_the_corrected_test() -> None:
    better = {"max": 83.0, "gini": 82.0, "infogain": 81.0}
    assert _holds("figure-8", "adult", _by(better), spread=0.3) is True
    assert (
        _holds("figure-8", "adult", _by({**better, "gini": 83.0}), spread=0.3) is None
    )  # ten folds, and no difference
    assert _holds("figure-8", "adult", _by({**better, "gini": 83.0}), size="full", spread=0.3) is False
    assert _holds("figure-8", "adult", _by({**better, "gini": 85.0}), spread=0.3) is False
    # a difference that overlapping training sets explain: an ordinary t-test would call it significant
    assert _holds("figure-8", "adult", _by(better), spread=2.0) is None
    more = {"0.75": 80.0, "3": 83.0}
    assert _holds("figure-8", "budget", lambda trial: more[trial.epsilon]) is True
    assert _holds("figure-8", "budget", lambda trial: -more[trial.epsilon]) is False
    assert _holds("figure-8", "budget", _by(better)) is None


def test_the_errata_of_thresholds_are_told_where_they_are_used() -> None:
    for what in ("figure-4", "figure-5", "figure-7", "figure-8"):
        assert any("without 2 S(q)" in note for note in _study(what).read([]).notes)
    published = [method for method in adult.PUBLISHED if dict(method.options).get("unsafe")]
    assert [method.name for method in published] == ["DiffPC4.5-InfoGain", "DiffPC4.5-Gini"]


# -- runs side by side ----------------------------------------------------------------------------

ONE, OTHER = Method("one", "diffpid3"), Method("other", "sulq-id3")


def _runs(found: Mapping[tuple[Method, int], Sequence[float]]) -> Runs:
    outcomes = [
        Outcome(method.trial("random-tree", epsilon="1", seed=seed, rows=rows), {"accuracy": value})
        for (method, rows), values in found.items()
        for seed, value in enumerate(values)
    ]
    return Runs(outcomes, [ONE, OTHER], lambda trial: float(trial.rows or 0))


def test_differences_are_between_runs_on_the_same_rows() -> None:
    runs = _runs({(ONE, 100): [80, 90, 70], (OTHER, 100): [70, 70], (ONE, 200): [90, 95], (OTHER, 200): [90, 90]})
    assert runs.differences("one", "other", [100.0]) == [10, 20]  # the third has no partner
    assert runs.differences("one", "other", [100.0, 200.0]) == [5, 12.5]
    assert runs.differences("one", "other", [100.0], group=2) == [15]  # both from one tree
    assert runs.growth("one", 100.0, 200.0) == [10, 5]
    assert runs.shared("one", "other") == [100, 200] and runs.shared("other", "nobody") == []


def test_rows_needed_are_read_between_sizes_that_were_tried() -> None:
    runs = _runs({(ONE, 100): [50], (ONE, 1000): [70], (ONE, 10_000): [90], (OTHER, 100): [90], (OTHER, 1000): [85]})
    assert runs.rows_needed("one", 80) == pytest.approx(1000 * math.sqrt(10))
    assert runs.rows_needed("one", 95) == math.inf
    assert runs.rows_needed("one", 40) == 100
    assert runs.rows_needed("other", 88) == math.inf  # it was there and fell again
    assert runs.rows_needed("nobody", 50) == math.inf
    assert runs.saving("other", "one", 80)[0] == pytest.approx(10 * math.sqrt(10))
    assert runs.saving("other", "one", 95) == (0, 0, 0)  # nobody gets there
    assert runs.saving("one", "other", 88)[0] == pytest.approx(1000 / runs.rows_needed("one", 88))  # at least


def test_methods_without_privacy_have_no_epsilon() -> None:
    plain, private = (method.trial("random-tree", epsilon="1", seed=0) for method in (deep_trees.PLAIN[0], ONE))
    assert (plain.epsilon, private.epsilon) == ("", "1")
