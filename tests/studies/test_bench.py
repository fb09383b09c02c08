"""The benchmark from end to end, on few rows and without peers: what it writes, and that a second run does nothing."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from privet.studies import Outcome, Trial
from privet.studies.crew import problems
from privet.studies.learners import LEARNERS

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ lies beside tests/ and is not installed
main: Any = importlib.import_module("bench.__main__")
bounds: Any = importlib.import_module("bench.bounds")
data: Any = importlib.import_module("bench.data")
split: Any = importlib.import_module("bench.split")
summary: Any = importlib.import_module("bench.summary")


def test_a_tiny_run_writes_everything_and_a_second_one_measures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "accuracy --data pairs --learners id3plus diffpid3 --epsilons 0.1 1 --repeats 2 --rows 400".split()
    asked += ["--folder", str(tmp_path)]
    assert main.main(asked) == 0
    first = (tmp_path / "results.jsonl").read_bytes()
    assert "8 of 8" in capsys.readouterr().err

    content = json.loads((tmp_path / "bench.json").read_text())
    assert sorted((cell["learner"], cell["epsilon"]) for cell in content["accuracy"]) == [
        (learner, epsilon) for learner in ("diffpid3", "id3plus") for epsilon in ("0.1", "1")
    ]
    for cell in content["accuracy"]:
        assert cell["accuracy"]["n"] == 2
        assert cell["accuracy"]["low"] <= cell["accuracy"]["mean"] <= cell["accuracy"]["high"]
        assert cell["log loss"]["mean"] > 0 < cell["fit"]["mean"]
    assert content["data"]["pairs"]["rows"] == 400
    page = (tmp_path / "index.html").read_text()
    assert "<h2>pairs</h2>" in page
    assert "http" not in page.replace("http-equiv", "")  # it loads nothing
    assert "<script" not in page

    assert main.main(asked) == 0
    assert (tmp_path / "results.jsonl").read_bytes() == first
    assert " of 8" not in capsys.readouterr().err


def test_each_promise_has_a_panel_of_its_own(tmp_path: Path) -> None:
    """Would catch a learner with a delta drawn among those that promise pure epsilon."""
    asked = (
        "accuracy --data pairs --learners boosted boosted-delta noisy-gd --epsilons 1 --repeats 2 --rows 2000".split()
    )
    assert main.main([*asked, "--folder", str(tmp_path)]) in (0, 1)  # bounds are those of whole tables
    cells = json.loads((tmp_path / "bench.json").read_text())["accuracy"]
    assert {cell["learner"] for cell in cells} == {"boosted", "boosted-delta", "noisy-gd"}
    for cell in cells:
        assert {"accuracy", "auroc", "log loss", "miscalibration"} <= set(cell)
        assert 0 <= cell["miscalibration"]["mean"] < 0.3
    frontier: Any = importlib.import_module("bench.frontier")
    drawn = {name for names in frontier.PROMISES.values() for name in names}
    for promise, names in frontier.PROMISES.items():
        private = [LEARNERS[name] for name in names if LEARNERS[name].private]
        assert private and all(learner.delta == ("delta" in promise) for learner in private)
    assert all(learner in main.LEARNERS for learner in drawn)
    page = (tmp_path / "index.html").read_text()
    assert "accuracy, pure epsilon" in page and "accuracy, with a delta" in page


def test_the_best_without_privacy_reads_the_bins_too() -> None:
    """Would catch a ceiling on the bins that sees the numbers."""
    rows = split.split(Trial("pairs", "xgboost-bins", "", 0, rows=500)).train
    assert rows.seen_by(LEARNERS["xgboost-bins"])[0] is rows.cells
    assert rows.seen_by(LEARNERS["xgboost"])[0] is rows.numbers
    assert rows.seen_by(LEARNERS["boosted"])[0] is rows.frame


def test_peers_that_are_not_there_are_named_and_left_out(tmp_path: Path) -> None:
    nowhere = tmp_path / "python"
    assert problems(["id3plus", "xgboost"], nowhere) == {
        "id3plus": "",
        "xgboost": f"XGBoost is left out: there is no '{nowhere}' with privet and its peers",
    }


def test_a_data_set_is_one_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the docstring, to the letter."""
    example = data.__doc__.split("with a domain beside them:\n")[1].split("The domain names")[0]
    lines = [line.removeprefix("    ") for line in example.splitlines()]
    (tmp_path / "my_bank.py").write_text("\n".join(lines))
    (tmp_path / "bank.csv").write_text("job,y\nchef,no\nclerk,yes\npilot,yes\n")
    nominal = '[columns.{}]\nkind = "nominal"\nvalues = {}\n'
    text = nominal.format("job", '["chef", "clerk"]') + nominal.format("y", '["no", "yes"]')
    (tmp_path / "bank.toml").write_text(f'target = "y"\n{text}')
    monkeypatch.setattr(data, "__path__", [*data.__path__, str(tmp_path)])
    monkeypatch.setenv("PRIVET_DATA", str(tmp_path))
    assert data.names()[:2] == ["adult", "mushroom"]
    assert "my-bank" in data.names()
    assert data.about("my-bank") == "Bank: does a customer subscribe?"
    assert data.load("my-bank").frame["job"].tolist() == ["chef", "clerk"]  # no pilot in the domain


@pytest.mark.parametrize("name", ["logistic", "pairs", "random-trees"])
def test_generated_rows_are_those_of_their_seed(name: str) -> None:
    """Would catch interpreters that measure on different rows, and repeats that are all the same."""
    marks = []
    for seed in (0, 0, 1):
        data.load.cache_clear()
        marks.append(split.split(Trial(name, "boosted", "1", seed)).mark)
    assert marks[0] == marks[1] != marks[2]


def test_a_split_shares_no_row_and_loses_none() -> None:
    found = split.split(Trial("pairs", "boosted", "1", 3, rows=1000))
    train, test = set(found.train.frame.index), set(found.test.frame.index)
    assert (len(train), len(test), len(train | test)) == (900, 100, 1000)


def _outcome(learner: str, seed: int, accuracy: float, mark: int = 1) -> Outcome:
    facts = {"mark": mark, "version": "privet 0.1.0"}
    known = dict.fromkeys(("auroc", "log loss", "majority", "predict", "memory", "steps"))
    return Outcome(Trial("adult", learner, "1", seed), {**known, "accuracy": accuracy, "fit": 1.0, "facts": facts})


def test_leads_are_those_of_pairs() -> None:
    """Would catch a lead between means of different splits."""
    found = summary.Summary(
        [
            *(_outcome("boosted", seed, 0.8 + seed / 100) for seed in range(3)),
            *(_outcome("dp-ebm-05", seed, 0.79 + seed / 100) for seed in range(2)),
        ]
    )
    place = summary.Place("adult", "boosted", "1")
    lead = found.lead(place, summary.Place("adult", "dp-ebm-05", "1"))
    assert (lead.n, round(lead.mean, 9), round(lead.sd, 9)) == (2, 0.01, 0.0)
    assert found.lead(place, summary.Place("adult", "xgboost", "")) is None


def test_bounds_tell_what_holds_and_what_is_missed() -> None:
    held = {
        result.name: result
        for result in bounds.held(
            summary.Summary([_outcome("boosted", 0, 0.8), _outcome("dp-ebm-05", 0, 0.81, mark=2)])
        )
    }
    rows, lead, fit = held.values()
    assert (rows.value, rows.verdict) == (1, "MISSED")  # another mark, so other rows
    assert (round(lead.value, 6), lead.verdict, lead.limits()) == (-1.0, "MISSED", (">= 0", ""))
    assert (fit.value, fit.verdict) == (1.0, "MISSED")


def test_what_was_measured_is_published_for_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("build", "docs", "evidence"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(main, "ROOT", tmp_path)
    asked = ["publish", "--folder", str(tmp_path / "build")]
    assert main.main(asked) == 2  # nothing was measured yet
    (tmp_path / "build" / "engines.json").write_text("[]")
    assert main.main(asked) == 0
    assert [path.name for path in (tmp_path / "evidence").iterdir()] == ["engines.json"]
    (tmp_path / "build" / "results.jsonl").write_text("")
    (tmp_path / "build" / "bench.json").write_text("{}")
    (tmp_path / "build" / "frontier.svg").write_text("<svg/>")
    assert main.main(asked) == 0
    assert (tmp_path / "evidence" / "bench.json").read_text() == "{}"
    assert (tmp_path / "docs" / "frontier.svg").read_text() == "<svg/>"


def test_an_interval_is_students() -> None:
    found = summary.Estimate.of([1.0, 2.0, 3.0])
    assert (found.mean, found.sd, found.n) == (2.0, 1.0, 3)
    assert found.half == pytest.approx(4.302653 / 3**0.5, abs=1e-6)
    assert summary.Estimate.of([1.0]).half == 0.0


def test_a_walk_says_which_files_and_functions_were_crossed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walks: Any = importlib.import_module("bench.walks")
    table = walks.pieces()["count"]
    monkeypatch.setattr(walks, "pieces", lambda: {"count": table})
    assert main.main(["walks", "--folder", str(tmp_path)]) == 0
    (name,) = content = json.loads((tmp_path / "walks.json").read_text())
    files = content[name]["files"]
    assert {"table.py", "kernel/session.py", "kernel/questions/counts.py"} <= set(files)
    assert len(files) <= content[name]["functions"] and content[name]["calls"] >= len(files) - 1
    assert content[name]["lines"] > 1000
    assert "calls between files" in capsys.readouterr().out
    again = walks.walk(table)
    assert list(again.files) == files and again.calls == content[name]["calls"]
