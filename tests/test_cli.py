"""The command line as a person meets it: its output, its exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
from command import run
from postgres_server import Server, shared_server
from sizes import long

import privet
from privet.choice.arms import ARMS
from privet.choice.auto import checked, shipped
from privet.choice.catalog import ALGORITHMS
from privet.choice.policy import CautiousForest, PolicyTree
from privet.models.epsilon import sentence

COMMAND = [sys.executable, "-c", "from privet.cli import main; main()"]


def process(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False)


def fails(*words: str, cwd: Path) -> str:
    """The one sentence a failing command says."""
    done = run(*words, cwd=cwd)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("privet: ")
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    privet.datasets.census(300, seed=1).to_csv(tmp_path / "people.csv", index=False)
    privet.datasets.census_domain().save(tmp_path / "people.toml")
    return tmp_path


ASK = ("-d", "people.toml", "--epsilon", "0.1")


def test_a_budget_lasts_over_processes_and_cannot_be_overspent(folder: Path) -> None:
    first = process("query", "people.csv", "count", *ASK, "--budget", "0.25", cwd=folder)
    assert first.returncode == 0, first.stderr
    assert "± 30 at 95%" in first.stdout
    assert "0.15 left" in first.stderr
    again = run("query", "people.csv", "mean age by sex", *ASK, "--json", cwd=folder)
    answer = json.loads(again.stdout)
    assert [part["part"] for part in answer["answers"]] == ["Female", "Male"]
    assert (answer["remaining"], answer["entry"], answer["private"]) == ("0.05", 2, True)
    assert "0.05 left of 0.25" in fails("query", "people.csv", "count", *ASK, cwd=folder)
    assert "privet budget grant" in fails("query", "people.csv", "count", *ASK, "--budget", "3", cwd=folder)

    assert run("budget", "grant", "people.csv", "0.35", cwd=folder).returncode == 0
    assert run("query", "people.csv", "count", *ASK, "--key", "k", cwd=folder).returncode == 0
    kept = run("query", "people.csv", "count", *ASK, "--key", "k", cwd=folder)
    assert "0.05 left" in kept.stderr  # the same key: answered, not charged

    shown = json.loads(run("budget", "show", "people.csv", "--entries", "--json", cwd=folder).stdout)
    assert shown["people"]["spent"] == "0.3"
    assert [entry["question"] for entry in shown["people"]["entries"]] == ["count", "mean(age)", "count"]
    table = run("budget", "show", "people.csv.ledger", cwd=folder).stdout
    assert "people: 0.3 of 0.35 spent" in table

    assert run("budget", "grant", "people.csv", "0.02", "--analyst", "ada", cwd=folder).returncode == 0
    assert "budget of 'ada'" in fails(
        "query", "people.csv", "count", "-d", "people.toml", "-e", "0.03", "--analyst", "ada", cwd=folder
    )
    assert run("budget", "revoke", "people.csv", cwd=folder).returncode == 0
    assert "0 left of 0" in fails("query", "people.csv", "count", "-d", "people.toml", "-e", "0.01", cwd=folder)


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "abc", "1e-400", "inf", ""])
def test_a_bad_epsilon_is_named_and_nothing_is_charged(folder: Path, epsilon: str) -> None:
    sentence = fails("query", "people.csv", "count", "-d", "people.toml", f"--epsilon={epsilon}", "-b", "1", cwd=folder)
    assert "epsilon must be a number" in sentence
    if (folder / "people.csv.ledger").exists():
        assert json.loads(run("budget", "show", "people.csv", "--json", cwd=folder).stdout)["people"]["spent"] == "0"


def test_everything_else_that_can_be_wrong_gets_one_sentence(folder: Path) -> None:
    (folder / "half.toml").write_text('[columns.zip]\nkind = "nominal"\nvalues = ["a"]\n')
    (folder / "bad.toml").write_text("[columns")
    (folder / "bad.ledger").write_bytes(os.urandom(4096))
    (folder / "notes.txt").write_text("hello")
    query = ("query", "people.csv", "count")
    assert "no file 'nope.csv'" in fails("query", "nope.csv", "count", *ASK, "-b", "1", cwd=folder)
    assert "notes.txt" in fails("query", "notes.txt", "count", *ASK, "-b", "1", cwd=folder)
    assert "no column 'zip'" in fails(*query, "-d", "half.toml", "-e", "1", "-b", "1", cwd=folder)
    assert "not valid TOML" in fails(*query, "-d", "bad.toml", "-e", "1", "-b", "1", cwd=folder)
    assert "nope.toml" in fails(*query, "-d", "nope.toml", "-e", "1", "-b", "1", cwd=folder)
    assert "no budget yet" in fails(*query, *ASK, cwd=folder)
    assert "damaged" in fails(*query, *ASK, "-b", "1", "--ledger", "bad.ledger", cwd=folder)
    assert "cannot be written" in fails(*query, *ASK, "-b", "1", "--ledger", "/proc/none/x.ledger", cwd=folder)
    assert "'zip' has no declared domain" in fails("query", "people.csv", "sum zip", *ASK, "-b", "1", cwd=folder)
    assert "no ledger" in fails("budget", "show", "nope.ledger", cwd=folder)
    assert "cannot read 'none.csv'" in fails("domain", "draft", "none.csv", cwd=folder)
    assert "terminal only" in fails("domain", "check", "people.csv", "-d", "people.toml", cwd=folder)


def test_a_draft_is_written_once_and_says_that_it_must_be_reviewed(folder: Path) -> None:
    printed = run("domain", "draft", "people.csv", cwd=folder).stdout
    assert "Review it line by line" in printed
    assert "\n# rows =" in printed
    assert run("domain", "draft", "people.csv", "-o", "new.toml", cwd=folder).returncode == 0
    assert (folder / "new.toml").read_text() == printed
    assert "exists already" in fails("domain", "draft", "people.csv", "-o", "new.toml", cwd=folder)
    assert "wage" in run("domain", "show", "new.toml", cwd=folder).stdout


def test_a_draft_takes_target_and_names_and_a_file_of_another_form_is_converted(folder: Path) -> None:
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "other.txt").write_text("\n".join(line.replace(",", ";") for line in lines[1:]) + "\n")
    form = ("--names", lines[0])
    drafted = run("domain", "draft", "other.txt", *form, "--target", "sex", "-o", "other.toml", cwd=folder)
    assert "says how to convert" in drafted.stderr
    assert "did you mean 'sex'" in fails("domain", "draft", "other.txt", *form, "--target", "sexx", cwd=folder)
    assert "no folder" in fails("domain", "draft", "people.csv", "-o", "nowhere/x.toml", cwd=folder)
    assert run("domain", "convert", "other.txt", *form, "-o", "other.csv", cwd=folder).returncode == 0
    assert (folder / "other.csv").read_text().splitlines() == lines
    assert "exists already" in fails("domain", "convert", "other.txt", *form, "-o", "other.csv", cwd=folder)
    assert run("query", "other.csv", "count", "-d", "other.toml", "-e", "1", "-b", "1", cwd=folder).returncode == 0


def test_the_owner_sees_what_falls_outside_on_a_terminal(folder: Path) -> None:
    rows = (folder / "people.csv").read_text().splitlines()
    cells = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    odd = {**cells, "sex": "Klingon", "age": "999"}
    (folder / "people.csv").write_text("\n".join([*rows, ",".join(odd.values())]) + "\n")
    code, shown = checked_on_terminal("people.csv", "-d", "people.toml", cwd=folder)
    assert code == 0
    assert shown.startswith("not a release")
    assert "300 of 301 rows fit" in shown
    assert "sex: leaves out 1 row, 'Klingon' (1)" in shown
    assert "age: clamps 1 row, '999' (1)" in shown
    assert not (folder / "people.csv.ledger").exists()


def test_persons_are_drafted_counted_and_protected_by_the_options_that_name_them(folder: Path) -> None:
    people = privet.datasets.census(600, seed=1)
    people.assign(patient_id=[f"p{row // 5}" for row in range(600)]).to_csv(folder / "visits.csv", index=False)
    draft = ("domain", "draft", "visits.csv", "--target", "income", "--person", "patient_id", "-o", "visits.toml")
    assert run(*draft, cwd=folder).returncode == 0
    text = (folder / "visits.toml").read_text()
    assert 'person = "patient_id"' in text and "up to 5 rows: of those, 1 counts" in text

    code, shown = checked_on_terminal("visits.csv", "-d", "visits.toml", cwd=folder)
    assert code == 0 and "these are of 120 persons, up to 5 of each" in shown
    assert "rows_per_person = 1, as declared, leaves out 480 rows of 120 persons" in shown
    code, other = checked_on_terminal("visits.csv", "-d", "people.toml", "--person", "patient_id", cwd=folder)
    assert code == 0 and "these are of 120 persons" in other
    code, wrong = checked_on_terminal("visits.csv", "-d", "people.toml", "--person", "patient", cwd=folder)
    assert (
        code == 1 and wrong == "privet: 'visits.csv' has no column 'patient', which --person names; check its spelling."
    )

    ask = ("-d", "visits.toml")
    counted = run("query", "visits.csv", "count", "-e", "900", "-b", "1000", *ask, cwd=folder)
    assert counted.stdout.startswith("120 ")
    about = fails("query", "visits.csv", "count where patient_id = p1", "-e", "1", *ask, cwd=folder)
    assert "'patient_id' says whose row it is, and no question can read it" in about
    fit = run("fit", "visits.csv", "-e", "1", "-a", "hanisch-tree", "-o", "m.json", *ask, cwd=folder)
    assert "pure epsilon 1 per person, whom 'patient_id' names, with all their rows" in fit.stdout
    assert len(run("predict", "m.json", "people.csv", cwd=folder).stdout.splitlines()) == 301  # without the column


def checked_on_terminal(*words: str, cwd: Path) -> tuple[int, str]:
    """What `privet domain check` prints on a terminal, or its error."""
    screen, terminal = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "domain", "check", *words], cwd=cwd, stdout=terminal, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(terminal)
    try:
        shown = "" if done.returncode else os.read(screen, 65536).decode()
    finally:
        os.close(screen)
    return done.returncode, shown or done.stderr.strip()


def test_the_owner_sees_that_a_file_is_not_utf_8_where_values_are_lost_by_it(folder: Path) -> None:
    """A question cannot tell: what it said would depend on a row."""
    rows = (folder / "people.csv").read_text(encoding="utf-8")
    (folder / "people.csv").write_bytes(rows.replace("Female", "Weiblich\u00fc").encode("latin-1"))
    _, shown = checked_on_terminal("people.csv", "-d", "people.toml", cwd=folder)
    assert "sex: leaves out" in shown and "\ufffd stands for bytes that are not UTF-8; save the file as UTF-8" in shown


def test_the_demo_tells_the_story_and_can_be_run_twice(tmp_path: Path) -> None:
    for _ in range(2):
        done = run("demo", "--folder", "story", "--rows", "1000", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "5. Which attribute tells most about income?" in done.stdout
        assert "6. Who earns more? A tree" in done.stdout
        assert "7. Who earns more? Let the software choose" in done.stdout
        assert "The ledger: 2.3 of 2.5 spent" in done.stdout
        story = " ".join(done.stdout.split())
        for told in ("drafts a domain", "serves it", "The analyst connects", "lets the software choose"):
            assert told in story
        assert "refused: cannot charge epsilon=0.5 for count on all rows" in story
        assert (
            "refused, nothing charged: " in story and "4 answers (" in story and "then refused: cannot charge" in story
        )
    report = (tmp_path / "story" / "report.html").read_text(encoding="utf-8")
    assert report.count("<section>") == 11
    assert "<h2>At a glance</h2>" in report and "given away by the private tree" in report
    verdicts = report[report.index("What does a published tree give away?") :]
    assert len(re.findall(r'<section class="(?:good|alarm)">', verdicts)) == 2  # with privacy and without
    assert report.count('<div class="rows" role="img"') == 5  # accuracies and answers, as wide as a phone
    assert 'class="scroll"' in report and report.count("<svg") >= 2  # the tree, and a chart for each table
    assert "<th>on</th>" not in report and "mean(wage) on 2 parts, first all rows / sex = Female</td>" in report
    assert sentence(2.5) in report and sentence(0.5) in report and "docs/explanation/epsilon.md" in report
    assert {each.name for each in (tmp_path / "story").iterdir()} >= {
        "tree.json",
        "auto.json",
        "auto.html",
        "audit.html",
    }
    loads = report.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http://" not in loads and "https://" not in loads  # it opens without a network


def test_a_demo_does_not_overwrite_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("mine", encoding="utf-8")
    done = run("demo", "--folder", ".", "--rows", "1000", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "privet: 'people.csv' is of no demo; name another folder with --folder.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
    assert (tmp_path / "people.csv").read_text(encoding="utf-8") == "mine"


def test_a_model_is_fitted_shown_and_used(folder: Path) -> None:
    tree = ("--algorithm", "diffpid3", "-o", "model.json")
    done = run("fit", "people.csv", "-d", "people.toml", "-b", "1", "-e", "0.5", *tree, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "epsilon 0.5 per person" in done.stdout and "0.5 left" in done.stderr
    shown = run("show", "model.json", cwd=folder)
    assert shown.stdout.startswith("<diffpid3: a tree with") and "class counts" in shown.stdout
    assert run("show", "model.json", "--rules", cwd=folder).stdout.startswith("if ")
    assert json.loads(run("show", "model.json", "--json", cwd=folder).stdout)["privacy"]["private"] is True
    assert run("show", "model.json", "--html", "model.html", cwd=folder).returncode == 0
    assert "<svg" in (folder / "model.html").read_text(encoding="utf-8")
    predicted = run("predict", "model.json", "people.csv", "--shares", cwd=folder).stdout.splitlines()
    rows = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    assert predicted[0].startswith("prediction,share of ") and len(predicted) == len(rows)
    written = run("predict", "model.json", "people.csv", "-o", "found.csv", cwd=folder)
    assert written.returncode == 0
    assert [line.split(",")[0] for line in predicted] == (folder / "found.csv").read_text().splitlines()
    lines = run("predict", "model.json", "people.csv", "--json", cwd=folder).stdout.splitlines()
    assert json.loads(lines[0])["prediction"] == predicted[1].split(",")[0]
    more = ("fit", "people.csv", "-d", "people.toml", "-e", "0.6", "-o", "more.json")
    assert "the table has 0.5 left" in fails(*more, "--algorithm", "diffpid3", cwd=folder)
    assert "cannot reserve epsilon=0.6" in fails(*more, cwd=folder)  # whatever would be chosen
    assert not (folder / "more.json").exists()
    budget = json.loads(run("budget", "show", "people.csv", "--json", cwd=folder).stdout)
    assert next(iter(budget.values()))["spent"] == "0.5"


def spent(folder: Path) -> str:
    budget = json.loads(run("budget", "show", "people.csv", "--json", cwd=folder).stdout)
    return str(next(iter(budget.values()))["spent"])


def test_without_an_algorithm_the_software_chooses_and_explains(folder: Path) -> None:
    fit = ("fit", "people.csv", "-d", "people.toml", "-b", "3", "-e", "0.5", "-o", "model.json")
    plain = run(*fit, cwd=folder)
    assert plain.returncode == 0, plain.stderr
    assert "at other epsilons" not in plain.stdout and "chosen learner: " in plain.stdout
    done = run(*fit, "--explain", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 left" in done.stderr and spent(folder) == "1"
    lines = done.stdout.splitlines()
    (start,) = (place for place, line in enumerate(lines) if line.startswith("learner: "))
    chosen = lines[start].removeprefix("learner: ").partition(",")[0]
    assert chosen in ARMS and lines[start + 1] == "spent 0.5"
    titles = [line.partition(":")[0] for line in lines]  # what is about this table
    assert titles[-4:] == ["noisy class counts", "rows x epsilon", "domain", "at other epsilons"]
    assert not any(line.endswith(" points") for line in lines)  # and none of what every table has
    facts = json.loads(run("show", "model.json", "--json", cwd=folder).stdout)["privacy"]
    assert facts["decisions"][0]["branch"] == chosen and facts["algorithm"].startswith("auto: ")
    predicted = run("predict", "model.json", "people.csv", cwd=folder).stdout.splitlines()
    assert predicted[0] == "prediction" and len(predicted) == 301


@pytest.mark.parametrize("objective", ["accuracy", "auc"])
def test_the_objective_decides_which_policy_chooses(folder: Path, objective: str) -> None:
    fit = ("fit", "people.csv", "-d", "people.toml", "-b", "1", "-e", "1", "-o", "model.json", "--json")
    done = run(*fit, "--objective", objective, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["decisions"][0]["policy"] == shipped(objective).name


def test_a_policy_of_your_own_chooses_and_one_of_another_version_does_not(folder: Path) -> None:
    """The first has other trees: it always takes naive Bayes. The second knows another boosted."""
    own = shipped("accuracy")
    ahead = tuple(50 if name == "naive-bayes" else 0 for name in ARMS)
    own = replace(own, floor=None, trees=(PolicyTree((0,), (0.0,), (0,), (100,), (ahead,)),))
    other = replace(own, branches={**own.branches, "boosted": "0" * 16})
    (folder / "own.json").write_text(own.to_json())
    (folder / "other.json").write_text(other.to_json())
    fit = ("fit", "people.csv", "-d", "people.toml", "-b", "2", "-e", "1", "-o", "model.json")
    sentence = fails(*fit, "--policy", "other.json", cwd=folder)
    assert "was trained for other versions of boosted; train it again with `privet study run choice`" in sentence
    assert not (folder / "people.csv.ledger").exists() and not (folder / "model.json").exists()
    done = run(*fit, "--policy", "own.json", "--explain", cwd=folder)
    assert done.returncode == 0, done.stderr
    # one leaf for all tables: what it says of learners is no fact about this table
    assert "learner: naive-bayes, as on most tables: nothing about this table spoke for another" in done.stdout
    assert spent(folder) == "1"


def test_studies_are_listed_and_run(tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
    study = ("study", "run", "choice", "--no-public", "-o", "policies")
    assert "run at least two of them" in fails(*study, "--sets", "1", "--seconds", "3600", cwd=tmp_path)
    forest = ("--caution", "2.5", "--seed", "3")
    done = run(*study, "--sets", "2", *forest, cwd=tmp_path)  # the first table is there already
    assert done.returncode == 0, done.stderr
    assert "objective accuracy: synthetic (10 runs on 2 tables)" in done.stdout and "objective auc: " in done.stdout
    assert "wrote policies/history.db, accuracy.json, auc.json, report.json" in done.stderr
    written = {path.name for path in (tmp_path / "policies").iterdir()}
    assert written >= {"history.db", "accuracy.json", "auc.json", "report.json"}
    again = run(*study, "--sets", "2", *forest, "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == json.loads((tmp_path / "policies" / "report.json").read_text())
    policy = CautiousForest.load(tmp_path / "policies" / "accuracy.json")
    assert policy.caution == 2.5
    checked(policy)
    (tmp_path / "file").write_text("")
    assert "file" in fails("study", "run", "choice", "--sets", "2", "--no-public", "-o", "file", cwd=tmp_path)


def test_every_preset_is_listed_and_fits_by_name(folder: Path) -> None:
    helped = run("fit", "--help", cwd=folder).stdout
    for name, preset in ALGORITHMS.items():
        words = " ".join(helped.split())
        assert name in helped and preset.citation in words and preset.line in words
        flags = ["--unsafe", "--ignore-spending"] if not preset.private else ["-b", "100", "-e", "1"]
        words = ["fit", "people.csv", "-d", "people.toml", "-a", name, "--json", "-o", f"{name}.json", *flags]
        done = run(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["private"] is preset.private


def test_a_sum_of_tables_is_fitted_shown_explained_and_exported(folder: Path) -> None:
    boosted = ("-a", "boosted", "--no-pairs", "-b", "10", "-e", "10", "-o", "sum.json", "--html", "sum.html")
    fitted = run("fit", "people.csv", "-d", "people.toml", *boosted, cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    assert "tables for 'income', epsilon 10" in fitted.stdout and "class counts" in fitted.stdout
    assert "<svg" in (folder / "sum.html").read_text(encoding="utf-8")
    assert "weight" in run("show", "sum.json", cwd=folder).stdout
    assert "to begin with:" in run("show", "sum.json", "--rules", cwd=folder).stdout
    facts = json.loads(run("show", "sum.json", "--json", cwd=folder).stdout)
    assert all(len(table["columns"]) == 1 for table in facts["tables"]) and facts["importance"]
    explained = run("predict", "sum.json", "people.csv", "--explain", cwd=folder).stdout.splitlines()
    assert explained[0] == "row,table,log odds of low,log odds of high"
    assert len(explained) == 1 + 300 * (1 + len(facts["tables"]))
    assert run("show", "sum.json", "--trees", "trees.json", cwd=folder).returncode == 0
    same = [run("predict", model, "people.csv", "--shares", cwd=folder).stdout for model in ("sum.json", "trees.json")]
    assert same[0] == same[1] != ""
    assert "leave out --explain" in fails("predict", "trees.json", "people.csv", "--explain", cwd=folder)
    assert "leave out --trees" in fails("show", "trees.json", "--trees", "again.json", cwd=folder)


def test_too_little_signal_is_said(folder: Path) -> None:
    little = ("-a", "boosted", "-b", "1", "-e", "0.01", "-o", "m.json")
    done = run("fit", "people.csv", "-d", "people.toml", *little, cwd=folder)
    assert "too little signal for a table" in done.stdout or "1 table" in done.stdout  # the noisy counts decide


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-a", "nosuch", "-e", "1"], "there is no algorithm 'nosuch'"),
        ([], "fit needs --epsilon"),
        (["-e", "0"], "epsilon must be a number"),
        (["-a", "id3"], "say so with --unsafe"),
        (["-e", "1", "--unsafe"], "leave out --unsafe"),
        (["-e", "1", "-a", "jagannathan", "--criterion", "gini"], "jagannathan has no choice --criterion"),
        (["-e", "1", "-a", "diffpid3", "--no-pairs"], "diffpid3 has no choice --pairs"),
        (["-e", "1", "-a", "boosted", "--depth", "2"], "boosted has no choice --depth"),
        (["-e", "1", "-a", "prior", "--variant", "published"], "prior is privet's own and has no published variant"),
        (["-e", "1", "-a", "boosted", "--unsafe"], "boosted in this form is private; leave out --unsafe"),
        (["-e", "1", "-a", "diffpid3", "--criterion", "nice"], "there is no criterion 'nice'"),
        (["-e", "1", "-a", "diffpid3", "--depth", "-1"], "--depth must be a whole number"),
        (["-e", "1", "--depth", "2"], "auto has no choice --depth; leave it out"),
        (["-e", "1", "--variant", "published"], "auto is privet's own and has no published variant"),
        (["-e", "1", "--objective", "f1"], "objective is one of accuracy, auc, not 'f1'"),
        (["-e", "1", "-a", "boosted", "--objective", "auc"], "boosted has no choice --objective; leave it out"),
        (["-e", "1", "-a", "boosted", "--policy", "p.json"], "boosted has no choice --policy; leave it out"),
        (["-e", "1", "--access", "pull"], "there is no access 'pull'; choose one of auto, snapshot, stream, push-down"),
        (["-e", "1", "--snapshot-limit", "lots"], "--snapshot-limit must be a size such as '200MB'"),
        (["-e", "1", "--access", "stream", "--snapshot-limit", "1MB"], "--snapshot-limit decides nothing"),
        (["-a", "id3", "--unsafe", "--access", "stream"], "leave out --access"),
        (["-a", "id3", "--unsafe", "--snapshot-limit", "1MB"], "leave out --access and --snapshot-limit"),
        (["-e", "1", "--policy", "none.json"], "cannot read the policy 'none.json'; check the path"),
        (["-e", "1", "--policy", "people.toml"], "this is no policy that privet wrote"),
        (["-e", "1", "-a", "maxforest", "--variant", "published"], "E-1"),
        (["-e", "1", "-o", "no/such/folder.json"], "there is no folder"),
    ],
)
def test_a_fit_that_cannot_be_is_one_sentence_and_charges_nothing(folder: Path, words: list[str], said: str) -> None:
    assert said in fails("fit", "people.csv", "-d", "people.toml", "-b", "1", "-o", "m.json", *words, cwd=folder)
    if (folder / "people.csv.ledger").exists():
        budget = json.loads(run("budget", "show", "people.csv", "--json", cwd=folder).stdout)
        assert next(iter(budget.values()))["spent"] == "0"


@pytest.mark.parametrize(
    ("option", "value", "how", "why"),
    [
        ("--access", "auto", "stream", "the coded table may be larger than the 64 MB that are copied"),
        pytest.param("--access", "snapshot", "snapshot", "it was asked for", marks=long),
        pytest.param("--access", "stream", "stream", "it was asked for", marks=long),
        ("--access", "push-down", "push-down", "it was asked for"),
        ("--snapshot-limit", "1GB", "snapshot", "the domain bounds the coded table by 534 MB, and up to 1 GB are"),
        pytest.param(
            "--snapshot-limit",
            "9000",
            "stream",
            "the coded table may be larger than the 8.79 kB that are copied",
            marks=long,
        ),
    ],
)
def test_the_path_is_taken_and_explained(folder: Path, option: str, value: str, how: str, why: str) -> None:
    ask = ("query", "people.csv", "count", *ASK, "-b", "1", option, value)
    fit = ("fit", "people.csv", *ASK, "-b", "1", "-a", "prior", "-o", "m.json", "--force", option, value)
    for words in (ask, fit):
        told = run(*words, "--explain", cwd=folder)
        assert told.returncode == 0, told.stderr
        line, protected = told.stderr.splitlines()[-2:]
        assert protected == "epsilon is per person, if no person has more than 1 row"
        assert f" engine, {how}: " in line and f"Taken because {why}" in line
        assert "engine, " not in run(*words, cwd=folder).stderr
        assert json.loads(run(*words, "--json", cwd=folder).stdout)["access"] == line


def test_an_unknown_path_of_a_question_is_one_sentence_and_makes_no_ledger(folder: Path) -> None:
    said = fails("query", "people.csv", "count", *ASK, "-b", "1", "--access", "", cwd=folder)
    assert "there is no access ''; choose one of auto, snapshot, stream, push-down" in said
    assert not (folder / "people.csv.ledger").exists()


# -- a table on a server -------------------------------------------------------------------------


def on_server(server: Server, folder: Path) -> None:
    """The people as a table of a server."""
    rows = pd.read_csv(folder / "people.csv", dtype=object, keep_default_na=False)
    names = ", ".join(f'"{name}"' for name in rows.columns)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS people; CREATE TABLE people ({names.replace(',', ' text,')} text)")
        with cursor.copy(f"COPY people ({names}) FROM STDIN") as copy:
            for row in rows.itertuples(index=False, name=None):
                copy.write_row(row)


def test_a_table_on_a_server_is_asked_and_mined(folder: Path) -> None:
    on_server(shared_server(), folder)
    address, ledger = shared_server().address(table="people"), ("--ledger", "people.ledger")
    asked = process("query", address, "count", *ASK, *ledger, "--budget", "1", "--explain", cwd=folder)
    assert asked.returncode == 0, asked.stderr
    assert "± 30 at 95%" in asked.stdout
    entry, way, _ = asked.stderr.splitlines()
    assert entry == "ledger entry 1 in people.ledger; 0.9 left"
    assert way.startswith("postgres engine, push-down: ") and "its rows stay there" in way
    by = json.loads(run("query", address, "mean age by sex", *ASK, *ledger, "--json", cwd=folder).stdout)
    assert [part["part"] for part in by["answers"]] == ["Female", "Male"] and by["remaining"] == "0.8"
    fit = ("fit", address, "-d", "people.toml", "-e", "0.5", "-a", "diffpid3", "--depth", "2", *ledger)
    fitted = run(*fit, "-o", "model.json", cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    assert "epsilon 0.5 per person" in fitted.stdout
    assert fitted.stderr == "wrote model.json; 0.3 left in people.ledger\n"
    assert len(run("predict", "model.json", "people.csv", cwd=folder).stdout.splitlines()) == 301

    assert "the table has 0.3 left" in fails(*fit, "-o", "more.json", cwd=folder)
    shown = json.loads(run("budget", "show", "people.ledger", "--entries", "--json", cwd=folder).stdout)["people"]
    assert (shown["spent"], shown["budget"]) == ("0.7", "1")
    assert [entry["question"] for entry in shown["entries"]][:2] == ["count", "mean(age)"]
    assert not (folder / "more.json").exists()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server that asks Ann for her password."""
    own = Server()
    columns = ", ".join(f'"{name}" text' for name in privet.datasets.census_domain().names)
    own.run("CREATE ROLE ann LOGIN PASSWORD 'right'", "CREATE TABLE people (age int)", "GRANT SELECT ON people TO ann")
    own.run(f"CREATE TABLE shut ({columns})")
    rules = own.folder / "pg_hba.conf"
    rules.write_text("local all ann scram-sha-256\n" + rules.read_text())
    own.run("SELECT pg_reload_conf()")
    yield own
    own._server.cleanup()


@pytest.mark.parametrize("verb", ["query", "fit"])
@pytest.mark.parametrize(
    ("password", "table", "ledger", "said"),
    [
        ("wr0ng", "people", True, "does not let user 'ann' in; check the user's name and password."),
        ("", "people", True, "does not let user 'ann' in; check the user's name and password."),
        ("right", "peoples", True, "there is no table 'peoples' of database 'postgres' for user 'ann'; check both"),
        ("right", "people", True, "table 'public.people' of database 'postgres' has no column 'sex'"),
        ("right", "shut", True, 'their owner lets it with GRANT SELECT ON "public"."shut" TO "ann".'),
        ("right", "people", False, "there is no place for a ledger beside table 'public.people'"),
    ],
)
def test_a_table_on_a_server_that_cannot_be_opened_is_one_sentence_and_makes_no_ledger(
    guarded: Server, folder: Path, verb: str, password: str, table: str, ledger: bool, said: str
) -> None:
    address = guarded.address(user="ann", password=quote(password), table=table)
    words = [verb, address, *(["count"] if verb == "query" else ["-o", "m.json"]), *ASK, "-b", "1"]
    words += ["--ledger", "people.ledger"] if ledger else []
    before = sorted(folder.iterdir())
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("privet: ") and said in done.stderr
    assert not password or password not in done.stderr
    assert sorted(folder.iterdir()) == before


FIT = (*"fit people.csv -d people.toml -b 9 -e 1 -a maxtree --depth 2 -o m.json --force".split(),)


def on_terminal(*words: str, cwd: Path) -> tuple[int, str, str]:
    """A command whose standard error is a terminal: its code, its output, and what the terminal was sent."""
    screen, terminal = pty.openpty()
    shown = b""
    with subprocess.Popen([*COMMAND, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=terminal, text=True) as running:
        os.close(terminal)
        while True:
            try:
                shown += os.read(screen, 65536)
            except OSError:  # the other end is closed
                break
        assert running.stdout is not None
        out = running.stdout.read()
    os.close(screen)
    return running.returncode, out, shown.decode()


def test_a_terminal_shows_how_far_a_fit_is_and_nothing_else_does(folder: Path) -> None:
    code, out, shown = on_terminal(*FIT, cwd=folder)
    assert code == 0 and "level " not in out.splitlines()[0]
    for pattern in (
        r"opening people\.csv",
        r"level 0 of 2: 1 node",
        r"level 1 of 2: \d+ nodes; about ",  # how many there are depends on the column that noise chose
        r"up to 1 pass over the rows",
    ):
        assert re.search(pattern, shown), pattern
    code, out, shown = on_terminal(*FIT, "--json", cwd=folder)
    assert (code, shown) == (0, "") and json.loads(out)["epsilon"] == "1"
    assert "level 0" not in run(*FIT, cwd=folder).stderr  # no terminal


def test_an_interrupt_is_one_sentence_and_the_charge_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privet.kernel.engines.memory.stream.StreamEngine.exact_counts", interrupt)
    done = run(*FIT, cwd=folder)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "privet: interrupted; what was charged stands in the ledger\n"
    assert spent(folder) != "0" and not (folder / "m.json").exists()


def test_a_foreign_or_broken_model_is_one_sentence(folder: Path) -> None:
    (folder / "broken.json").write_text('{"format": "privet-model", "version": 1, "trees": [[{')
    for words in (["show", "broken.json"], ["show", "none.json"], ["predict", "broken.json", "people.csv"]):
        assert "json" in fails(*words, cwd=folder)
    random = ("-a", "hanisch-tree", "-b", "1", "-e", "1", "-o", "m.json")
    fitted = run("fit", "people.csv", "-d", "people.toml", *random, cwd=folder)
    assert fitted.returncode == 0, fitted.stderr
    (folder / "empty.csv").write_text("")
    (folder / "other.csv").write_text("colour\nred\n")
    for rows in ("empty.csv", "other.csv", "none.csv", "people.toml"):
        fails("predict", "m.json", rows, cwd=folder)


def test_version_and_usage() -> None:
    assert run("--version", cwd=Path.cwd()).stdout.strip() == privet.__version__
    assert run("query", cwd=Path.cwd()).returncode == 2
