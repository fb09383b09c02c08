"""A folder of studies: killed at any moment it loses what was under way and nothing else, and runs nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sizes import long

from privet.errors import DataError
from privet.studies import Outcome, Trial, recorded
from privet.studies.catalog import work
from privet.studies.findings import Findings
from privet.studies.folder import RESULTS, gather, outcomes, ready
from privet.studies.processes import processes
from privet.studies.study import Study

TRIALS = [Trial("nothing", "counted", seed=seed) for seed in range(8)]


def squared(trial: Trial) -> Mapping[str, Any]:
    if trial.seed == 99:
        raise ValueError("no such square")
    return {"square": trial.seed**2}


def test_every_trial_is_run_once_and_told_with_the_time_left(tmp_path: Path) -> None:
    told: list[tuple[int, int, float | None]] = []
    found = gather(tmp_path, [*TRIALS, *TRIALS[:3]], squared, None, lambda *each: told.append(each))
    assert [outcome.result for outcome in found] == [{"square": n**2} for n in range(8)]
    assert [(done, of) for done, of, _ in told] == [(n, 8) for n in range(9)]
    assert told[0][2] is None
    assert all(left is not None and left >= 0 for _, _, left in told[1:])
    assert told[-1][2] == 0

    told.clear()
    again = gather(tmp_path, TRIALS, squared, None, lambda *each: told.append(each))
    assert again == found
    assert told == [(0, 0, None)]


@long
def test_a_fit_gives_the_same_result_in_processes_of_its_own(tmp_path: Path) -> None:
    trials = [Trial("census", name, "1", seed, 300) for name in ("prior", "diffpid3") for seed in (0, 1)]
    here = gather(tmp_path / "here", trials, work)
    with processes(2) as executor:
        there = gather(tmp_path / "there", trials, work, executor)
    assert [_told(outcome) for outcome in here] == [_told(outcome) for outcome in there]


def _told(outcome: Outcome) -> tuple[str, dict[str, Any]]:
    assert outcome.result is not None, outcome.error
    return outcome.trial.key, {name: value for name, value in outcome.result.items() if name != "cpu"}


# a killed run is this program with an end in the middle: it kills itself while a trial is under way
KILLED = """
import os, signal, sys
from pathlib import Path
from privet.studies import Trial
from privet.studies.folder import gather
trials = [Trial("nothing", "counted", seed=seed) for seed in range(8)]
def work(trial):
    if trial.seed == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    with open(Path(sys.argv[1]) / "log", "a") as log:
        log.write(f"{trial.seed}\\n")
    return {"square": trial.seed**2}
gather(Path(sys.argv[1]), trials, work)
"""


@long
def test_a_run_killed_in_the_middle_resumes_without_repeating_or_losing_a_trial(tmp_path: Path) -> None:
    for stop in (0, 3, 4, -1):
        done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(stop)], check=False)
        assert done.returncode == (-signal.SIGKILL if stop >= 0 else 0)
    asked = Counter((tmp_path / "log").read_text().split())
    assert asked == {str(seed): 1 for seed in range(8)}
    found = recorded(tmp_path / RESULTS)
    assert [found[trial.key].result for trial in TRIALS] == [{"square": n**2} for n in range(8)]


def test_failures_are_told_and_left_out_of_what_is_read(tmp_path: Path) -> None:
    bad = Trial("nothing", "counted", seed=99)
    study = Study("s", "t", "u", lambda size: [bad, *TRIALS[:2]], lambda found: Findings(()))
    found = gather(tmp_path, study.trials("quick"), squared)
    assert [outcome.error for outcome in found if outcome.error] == ["ValueError: no such square"]
    known = outcomes(study, "quick", recorded(tmp_path / RESULTS))
    assert [outcome.trial for outcome in known] == TRIALS[:2]


def test_results_of_another_version_are_refused_in_one_sentence_and_kept(tmp_path: Path) -> None:
    gather(tmp_path, TRIALS[:2], squared)
    path = tmp_path / RESULTS
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["privet"] = "0.0.1"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    before = path.read_bytes()
    with pytest.raises(
        DataError, match=r"has results of privet 0\.0\.1 .* choose another folder, or delete the file\.$"
    ):
        gather(tmp_path, TRIALS, squared)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write to '.*file/inside' \(.*\); choose another folder with -o\."):
        ready(tmp_path / "file" / "inside")
    assert ready(tmp_path / "a" / "b").is_dir()
    assert os.access(tmp_path / "a" / "b", os.W_OK)
