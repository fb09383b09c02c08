"""Nothing that was paid for is lost: outputs are tried before a charge, written whole, and found again by their key."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run

import privet
from privet.cli import outputs
from privet.errors import EngineFailed, KeyReused, QuestionError
from privet.learners.estimators import BoostedTablesClassifier, DiffPID3Classifier
from privet.models.model import Model

FIT = ("fit", "people.csv", "-d", "people.toml", "-b", "1", "-e", "1", "-a", "naive-bayes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    privet.datasets.census(300, seed=1).to_csv(tmp_path / "people.csv", index=False)
    privet.datasets.census_domain().save(tmp_path / "people.toml")
    return tmp_path


def spent(folder: Path) -> str:
    shown = run("budget", "show", "people.csv", "--json", cwd=folder)
    return str(json.loads(shown.stdout)["people"]["spent"]) if shown.returncode == 0 else "nothing"


def questions(folder: Path) -> list[str]:
    shown = json.loads(run("budget", "show", "people.csv", "--entries", "--json", cwd=folder).stdout)
    return [entry["question"] for entry in shown["people"]["entries"]]


# -- before a charge ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (["-o", "models"], "'models' is a folder; name a file in it, as models/model.json"),
        (["-o", "none/m.json"], "there is no folder 'none' to write 'm.json' to; make it first"),
        (["-o", "people.toml/m.json"], "'people.toml' is a file"),
        (["-o", "/proc/m.json"], "cannot write '/proc/m.json'"),
        (["-o", "paid.json"], "'paid.json' exists already; name another file with -o"),
        (["-o", "people.csv"], "'people.csv' exists already"),
        (["-o", "people.csv", "--force"], "'people.csv' is no model"),
        (["-o", "notes.txt", "--force"], "'notes.txt' is no model"),
        (["-o", "new.ledger"], "'new.ledger' is the name of a ledger"),
        (["-o", "m.json", "--html", "paid.json"], "'paid.json' is a model, which would be lost"),
        (["-o", "m.json", "--html", "people.csv"], "'people.csv' is a file that this command reads"),
        (["-o", "m.json", "--html", "m.json"], "'m.json' cannot be the model and its picture"),
        (["-o", "m.json", "--html", "models"], "'models' is a folder"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_table_is_opened(
    folder: Path, output: list[str], sentence: str
) -> None:
    (folder / "models").mkdir()
    (folder / "paid.json").write_text('{"format": "privet-model", "version": 1}')
    (folder / "notes.txt").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*FIT, *output, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert sentence in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_takes_no_file_is_refused_before_a_charge(
    folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A read-only folder, one without permission and a full disk, as the system reports them."""

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    done = run(*FIT, "-o", "m.json", cwd=folder)
    assert done.returncode == 1 and f"cannot write 'm.json' ({os.strerror(code)})" in done.stderr
    assert spent(folder) == "nothing" and {path.name for path in folder.iterdir()} == {"people.csv", "people.toml"}


def test_a_model_is_overwritten_with_force_alone(folder: Path) -> None:
    assert run(*FIT, "-e", "0.25", "-o", "m.json", cwd=folder).returncode == 0
    first = (folder / "m.json").read_text()
    assert "--force" in run(*FIT, "-e", "0.25", "-o", "m.json", cwd=folder).stderr
    assert (folder / "m.json").read_text() == first and spent(folder) == "0.25"
    assert run(*FIT, "-e", "0.25", "-o", "m.json", "--force", cwd=folder).returncode == 0
    assert (folder / "m.json").read_text() != first and spent(folder) == "0.5"


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "m.json", "people.csv", "-o", "m.json"],
        ["predict", "m.json", "people.csv", "-o", "people.csv"],
        ["predict", "m.json", "people.csv", "-o", "people.csv.ledger"],
        ["predict", "m.json", "people.csv", "-o", "."],
        ["show", "m.json", "--html", "m.json"],
        ["show", "m.json", "--html", "none/m.html"],
        ["show", "m.json", "--trees", "m.json"],
        ["audit", "m.json", "--qi", "people.csv", "-s", "income", "-o", "m.json"],
        ["audit", "m.json", "--qi", "people.csv", "-s", "income", "--individuals", "people.csv"],
        ["audit", "m.json", "--qi", "people.csv", "-s", "income", "-o", "a.html", "--html", "a.html"],
        ["audit", "m.json", "--qi", "people.csv", "-s", "income", "--html", "people.csv.ledger"],
        ["verify", "prior", "--html", "m.json"],
        ["verify", "prior", "--html", "none/v.html"],
    ],
)
def test_no_command_overwrites_a_model_a_ledger_or_what_it_reads(folder: Path, words: list[str]) -> None:
    assert run(*FIT, "-o", "m.json", cwd=folder).returncode == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_predictions_that_stop_half_way_leave_no_file(folder: Path) -> None:
    assert run(*FIT, "-o", "m.json", cwd=folder).returncode == 0
    (folder / "half.csv").write_text((folder / "people.csv").read_text() + 'an "open, quote\n"')
    (folder / "old.csv").write_text("old")
    assert run("predict", "m.json", "half.csv", "-o", "old.csv", cwd=folder).returncode == 1
    assert (folder / "old.csv").read_text() == "old" and not list(folder.glob(".*"))


# -- after a charge -------------------------------------------------------------------------------


def test_a_model_whose_folder_is_gone_after_the_charge_is_written_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "models").mkdir()
    write = outputs.write_text

    def gone(path: Path, text: str) -> None:
        if path.parent.name == "models":
            path.parent.rmdir()
        write(path, text)

    monkeypatch.setattr(outputs, "write_text", gone)
    done = run(*FIT, "-o", "models/m.json", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "cannot write 'models/m.json' (No such file or directory), so the model was written to '" in done.stderr
    (saved,) = folder.glob("m-*.json")
    assert str(saved) in done.stderr and "its charge stands" in done.stderr
    assert Model.load(saved).privacy.epsilon == 1 and spent(folder) == "1"


def test_a_model_that_no_disk_takes_is_printed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(outputs, "write_text", full)
    done = run(*FIT, "-o", "m.json", "--key", "monday", cwd=folder)
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert "the same command with --key monday writes it again at no cost" in done.stderr
    assert Model.from_json(done.stdout).privacy.epsilon == 1


KILLED = """
import os, signal
from unittest.mock import patch
from privet.cli import main
calls = []
def die(*words, **named):
    calls.append(1)
    if len(calls) > {survives}:
        os.kill(os.getpid(), signal.SIGKILL)
    return {call}(*words, **named)
from {module} import {owner}
{call} = {owner}.{name}
with patch.object({owner}, "{name}", die):
    main()
"""


def killed(folder: Path, module: str, owner: str, name: str, survives: int, *words: str) -> None:
    """Run a command in a process of its own that is killed when it calls a method for the n-th time."""
    script = KILLED.format(module=module, owner=owner, name=name, survives=survives, call="unhurt")
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


STREAM = ("privet.kernel.engines.memory.stream", "StreamEngine", "exact_counts")


@pytest.mark.parametrize("answers", [0, 1])
def test_a_fit_killed_between_charge_and_answer_is_finished_by_its_key_at_no_cost(folder: Path, answers: int) -> None:
    keyed = (*FIT, "-o", "m.json", "--key", "monday")
    killed(folder, *STREAM, answers, *keyed)
    assert spent(folder) == "1" and not (folder / "m.json").exists()
    done = run(*keyed, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert spent(folder) == "1" and questions(folder) == ["fit(naive-bayes)"]
    assert Model.load(folder / "m.json").privacy.private


def test_a_fit_killed_before_its_model_is_written_is_found_by_its_key(folder: Path) -> None:
    keyed = (*FIT, "-o", "m.json", "--key", "monday", "--json")
    killed(folder, "privet.cli", "models", "write_paid_model", 0, *keyed)
    assert spent(folder) == "1" and not (folder / "m.json").exists()
    first = run(*keyed, cwd=folder)
    assert first.returncode == 0, first.stderr
    again = run(*FIT, "-o", "again.json", "--key", "monday", cwd=folder)
    assert again.returncode == 0 and spent(folder) == "1"
    assert (folder / "again.json").read_text() == (folder / "m.json").read_text()
    assert {step.entry for step in Model.load(folder / "m.json").privacy.steps} == {1}


def test_a_fit_killed_before_its_charge_is_charged_once(folder: Path) -> None:
    keyed = (*FIT, "-o", "m.json", "--key", "monday")
    killed(folder, "privet.kernel.ledger.ledger", "Ledger", "charge", 0, *keyed)
    assert spent(folder) == "0"
    assert run(*keyed, cwd=folder).returncode == 0
    assert spent(folder) == "1"


def test_a_killed_write_leaves_the_old_model(folder: Path) -> None:
    assert run(*FIT, "-e", "0.5", "-o", "m.json", cwd=folder).returncode == 0
    first = (folder / "m.json").read_text()
    killed(folder, "privet.cli.outputs", "os", "replace", 0, *FIT, "-e", "0.5", "-o", "m.json", "--force")
    assert (folder / "m.json").read_text() == first and spent(folder) == "1"


# -- keys in Python -------------------------------------------------------------------------------


def opened(budget: object = 1) -> privet.ProtectedTable:
    return privet.open(privet.datasets.census(300, seed=1), privet.datasets.census_domain(), budget=budget)


def test_a_key_finds_the_same_model_and_costs_nothing_again() -> None:
    table = opened()
    first = BoostedTablesClassifier(epsilon=1).fit(table, key="k")
    again = BoostedTablesClassifier(epsilon=1).fit(table, key="k")
    assert first.model_.to_json() == again.model_.to_json() and table.budget.remaining == 0
    assert first.predict(privet.datasets.census(10, seed=2)).shape == (10,)


def test_a_key_of_another_fit_is_refused_and_charges_nothing() -> None:
    table = opened(3)
    DiffPID3Classifier(epsilon=1, max_depth=1).fit(table, key="k")
    for other in (
        DiffPID3Classifier(epsilon=1, max_depth=2),
        DiffPID3Classifier(epsilon=2, max_depth=1),
        BoostedTablesClassifier(epsilon=1),
    ):
        with pytest.raises(KeyReused, match="the key 'k' stands for another"):
            other.fit(table, key="k")
    assert table.budget.spent == 1


def test_what_cannot_be_fitted_under_a_key_is_refused_before_the_charge() -> None:
    table = opened()
    with pytest.raises(QuestionError, match="at most max_leaves=2 are allowed"):
        DiffPID3Classifier(epsilon=1, max_depth=3, max_leaves=2).fit(table, key="k")
    with pytest.raises(privet.errors.BudgetExceeded, match="has 1 left of 1"):
        DiffPID3Classifier(epsilon=2).fit(table, key="l")
    assert table.budget.spent == 0


def test_a_key_needs_a_whole_table_with_a_ledger() -> None:
    people = privet.datasets.census(300, seed=1)
    with pytest.raises(QuestionError, match=r"open it with privet\.open"):
        BoostedTablesClassifier(epsilon=1, domain=privet.datasets.census_domain()).fit(
            people.drop(columns="income"), people["income"], key="k"
        )
    (part, *_) = opened().partition("sex")
    with pytest.raises(QuestionError, match="not of a part of a partition"):
        BoostedTablesClassifier(epsilon=1).fit(part, key="k")


def test_a_run_that_fails_after_its_charge_cannot_be_tried_until_it_comes_out_differently() -> None:
    """Else each try would tell something for nothing; failures of an engine can be repeated under the charge."""
    table, tries = opened(), []

    class Fails(BoostedTablesClassifier):
        problem: Exception = QuestionError("the noise was unkind.")

        def _learn(self, scope: privet.ProtectedTable, reasons: list[str]) -> Model:
            scope.count(Fraction(1, 10))
            tries.append(1)
            if len(tries) < 3:
                raise self.problem
            return super()._learn(scope.allot(Fraction(9, 10)), reasons)

    for _ in range(2):
        with pytest.raises(EngineFailed, match=r"the noise was unkind\. Ledger entry 1 stands"):
            Fails(epsilon=1).fit(table, key="k")
    assert tries == [1] and table.budget.spent == 1

    tries.clear()
    table = opened()
    Fails.problem = EngineFailed("the engine of a shadow failed.")
    for _ in range(2):
        with pytest.raises(EngineFailed, match="retry with the key 'k' to finish under it") as failed:
            Fails(epsilon=1).fit(table, key="k")
        assert "shadow" not in str(failed.value)
    assert tries == [1, 1] and table.budget.spent == 1


def test_a_fit_under_a_key_reports_no_progress_that_a_crash_would_leave_behind() -> None:
    seen: list[object] = []
    BoostedTablesClassifier(epsilon=1, verbose=seen.append).fit(opened(), key="k")
    assert seen == []
    BoostedTablesClassifier(epsilon=1, verbose=seen.append).fit(opened())
    assert seen


class _Peek:
    """A choice of the caller's that would see answers of a run."""

    def decide(self, view: object) -> str:
        raise OSError


@pytest.mark.parametrize("more", [{"criterion": _Peek()}, {"random_state": np.random.RandomState(0)}])
def test_no_code_of_the_callers_runs_under_a_key(more: dict[str, Any]) -> None:
    """It could keep what runs told that leave nothing, and let the run be tried again."""
    table = opened()
    with pytest.raises(QuestionError, match="takes plain parameters"):
        DiffPID3Classifier(epsilon=1, **more).fit(table, key="k")
    assert table.budget.spent == 0


def test_of_two_runs_under_a_key_nothing_of_the_second_leaves(tmp_path: Path) -> None:
    """A second process begins before the first has stored its model: it gets that model, and no counts of its own."""
    file, domain = tmp_path / "people.csv", privet.datasets.census_domain()
    privet.datasets.census(300, seed=1).to_csv(file, index=False)

    class Slow(privet.AutoClassifier):  # type: ignore[misc]
        def _learn(self, scope: privet.ProtectedTable, reasons: list[str]) -> Model:
            model = super()._learn(scope, reasons)
            if not firsts:
                with privet.open(file, domain) as other:
                    firsts.append(None)
                    firsts[0] = Slow(epsilon=1).fit(other, key="k")
            return model

    firsts: list[Any] = []
    with privet.open(file, domain, budget=1) as table:
        second = Slow(epsilon=1).fit(table, key="k")
    assert second.model_.to_json() == firsts[0].model_.to_json()
    assert hasattr(firsts[0], "choice_") and not hasattr(second, "choice_")


def test_an_interrupt_under_a_key_holds_nothing_of_the_run() -> None:
    table = opened()

    class Stopped(BoostedTablesClassifier):
        def _learn(self, scope: privet.ProtectedTable, reasons: list[str]) -> Model:
            released = scope.count(Fraction(1, 10))
            raise KeyboardInterrupt(released)

    with pytest.raises(KeyboardInterrupt) as stopped:
        Stopped(epsilon=1).fit(table, key="k")
    assert stopped.value.args == () and stopped.value.__context__ is None
    assert "_learn" not in [entry.name for entry in stopped.traceback]
    BoostedTablesClassifier(epsilon=1).fit(table, key="k")
    assert table.budget.spent == 1
