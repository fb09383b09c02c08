"""A study is run once: kills, torn lines and errors cost what they interrupted and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from privet.studies import Trial, forget, recorded, run

TRIALS = [Trial("adult", "boosted", epsilon, seed) for epsilon in ("0.1", "1") for seed in range(3)]


class Counted:
    """Work that remembers what it was asked, and fails or stops where told."""

    def __init__(self, fails: tuple[int, ...] = (), stops_at: int | None = None) -> None:
        self.asked: list[Trial] = []
        self._fails, self._stops_at = fails, stops_at

    def __call__(self, trial: Trial) -> Mapping[str, Any]:
        if len(self.asked) == self._stops_at:
            raise KeyboardInterrupt
        self.asked.append(trial)
        if trial.seed in self._fails:
            raise ValueError("rows ran\n  out")
        return result_of(trial)


def result_of(trial: Trial) -> Mapping[str, Any]:
    return {"score": float(trial.epsilon) + trial.seed, "pair": (1, 2)}


def test_results_come_in_the_order_of_the_trials_and_are_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "results.jsonl"
    first = run(TRIALS, Counted(), path)
    again = Counted()
    second = run(TRIALS[::-1], again, path)
    assert [outcome.trial for outcome in first] == TRIALS
    assert [outcome.result["score"] for outcome in first if outcome.result] == [0.1, 1.1, 2.1, 1.0, 2.0, 3.0]
    assert second == first[::-1]  # also the pair, which JSON makes a list: fresh and recorded results are alike
    assert again.asked == []


def test_a_line_holds_the_key_the_trial_and_the_result(tmp_path: Path) -> None:
    run(TRIALS[:1], result_of, tmp_path / "r")
    content = json.loads((tmp_path / "r").read_text())
    assert content["key"] == TRIALS[0].key
    assert Trial.parse(content["trial"]) == TRIALS[0]
    assert content["result"] == {"score": 0.1, "pair": [1, 2]}


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    killed, rest = Counted(stops_at=2), Counted()
    with pytest.raises(KeyboardInterrupt):
        run(TRIALS, killed, tmp_path / "r")
    outcomes = run(TRIALS, rest, tmp_path / "r")
    assert (killed.asked, rest.asked) == (TRIALS[:2], TRIALS[2:])
    assert all(outcome.result for outcome in outcomes)


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_torn_last_line_is_run_again_and_spoils_no_other(tmp_path: Path, cut: int) -> None:
    """Would catch a run that appends to the torn line: the first new result would be lost with it."""
    path = tmp_path / "r"
    run(TRIALS[:3], result_of, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = Counted()
    run(TRIALS, again, path)
    # cut at the newline alone, the line is whole
    assert again.asked == (TRIALS[3:] if cut == 1 else TRIALS[2:])
    assert set(recorded(path)) == {trial.key for trial in TRIALS}
    last = Counted()
    run(TRIALS, last, path)
    assert last.asked == []


def test_a_failure_is_recorded_as_a_sentence_and_tried_again_by_the_next_run(tmp_path: Path) -> None:
    first = run(TRIALS, Counted(fails=(1,)), tmp_path / "r")
    assert [outcome.error for outcome in first][:3] == ["", "ValueError: rows ran out", ""]
    assert first[1].result is None
    again = Counted()
    second = run(TRIALS, again, tmp_path / "r")
    assert again.asked == [trial for trial in TRIALS if trial.seed == 1]
    assert all(outcome.result and not outcome.error for outcome in second)


def test_a_result_that_is_no_json_is_a_failure(tmp_path: Path) -> None:
    (outcome,) = run(TRIALS[:1], lambda trial: {"score": float("nan")}, tmp_path / "r")
    assert outcome.result is None
    assert outcome.error.startswith("ValueError: Out of range float values")


def test_the_same_trial_twice_is_run_once(tmp_path: Path) -> None:
    work = Counted()
    outcomes = run([TRIALS[0], TRIALS[0]], work, tmp_path / "r")
    assert len(work.asked) == 1
    assert outcomes[0] == outcomes[1]


def test_what_is_forgotten_is_run_again(tmp_path: Path) -> None:
    run(TRIALS, result_of, tmp_path / "r")
    forget(TRIALS[:2], tmp_path / "r")
    work = Counted()
    run(TRIALS, work, tmp_path / "r")
    assert work.asked == TRIALS[:2]


def test_keys_are_the_same_in_another_process_and_next_year() -> None:
    """Would catch a key made of `hash`, and a field that is added without a default that leaves keys alone."""
    trial = Trial("nursery", "id3plus", "0.05", 7, 1000, (("b", 1.5), ("a", None)), (("part", "ü"),))
    code = f"from privet.studies import Trial; print({trial!r}.key)"
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert there == trial.key == "f4983bf94ce51a1ca926660d2d33c7fe7182d16ff9604e62eef14a824576450b"
    assert trial.key == Trial("nursery", "id3plus", "0.05", 7, 1000, (("a", None), ("b", 1.5)), (("part", "ü"),)).key


def test_different_trials_have_different_keys() -> None:
    trials = [
        Trial("a", "b"),
        Trial("b", "a"),
        Trial("a", "b", "1"),
        Trial("a", "b", "1.0"),
        Trial("a", "b", seed=1),
        Trial("a", "b", rows=1),
        Trial("a", "b", options=(("x", 1),)),
        Trial("a", "b", options=(("x", "1"),)),
        Trial("a", "b", options=(("x", True),)),
        Trial("a", "b", settings=(("x", 1),)),
    ]
    assert len({trial.key for trial in trials}) == len(trials)


def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    # `asdict` is work that another process can import
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parallel = run(TRIALS, asdict, tmp_path / "parallel", executor=pool)
    assert parallel == run(TRIALS, asdict, tmp_path / "alone")


def test_an_interrupted_pool_keeps_what_was_done(tmp_path: Path) -> None:
    said: list[str] = []

    def stop(text: str) -> None:
        said.append(text)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        run(TRIALS, result_of, tmp_path / "r", stop, pool)
    assert len(recorded(tmp_path / "r")) == len(said) == 1


def test_progress_names_the_trial_and_its_error(tmp_path: Path) -> None:
    said: list[str] = []
    run(TRIALS[:2], Counted(fails=(1,)), tmp_path / "r", said.append)
    assert said == [f"1 of 2: {TRIALS[0].json}", f"2 of 2: {TRIALS[1].json} ValueError: rows ran out"]
