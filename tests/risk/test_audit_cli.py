"""`privet audit` as a person meets it: its output, its files, its exit code."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import command
import pandas as pd
import pytest

import privet
from privet.models.tree import Ensemble

KNOWN = ["sex", "education", "occupation"]
OWN = ("--qi", "people.csv", "--sensitive", "income", "--columns", ",".join(KNOWN))
ASK = (*OWN, "--measure", "posterior")


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return command.run("audit", *words, cwd=cwd)


def fails(*words: str, cwd: Path) -> str:
    """The one sentence a failing command says."""
    done = run(*words, cwd=cwd)
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("privet: ")
    assert "unexpected" not in done.stderr
    return done.stderr


def audited(*words: str, cwd: Path) -> Any:
    """The audit as a program reads it."""
    done = run(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty people, an exact tree of them and a private one."""
    folder = tmp_path_factory.mktemp("audit")
    people = privet.datasets.census(80, seed=4)
    people["occupation"] = people["occupation"].cat.add_categories("?").fillna("?")
    domain = privet.datasets.census_domain()
    domain = replace(domain, columns=tuple(each for each in domain if each.name in (*KNOWN, "income")))
    people.to_csv(folder / "people.csv", index=False)
    raw = privet.ID3Classifier(max_depth=2, domain=domain, unsafe=True).fit(people[KNOWN], people["income"])
    raw.model_.save(folder / "raw.json")
    private = privet.DiffPID3Classifier(1, max_depth=1, domain=domain).fit(people[KNOWN], people["income"])
    private.model_.save(folder / "private.json")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The same, to write into."""
    for path in made.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_tree_is_audited_and_exposed_people_are_no_error(folder: Path) -> None:
    done = run("raw.json", *ASK, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).startswith("raw.json: Do not publish: The 'income' of ")
    for words in ("Three numbers", "maximum entropy", "possible worlds", "Who is concerned", "What would help"):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""
    assert run("raw.json", *ASK, "--no-remedies", "--strict", cwd=folder).returncode == 3


def test_a_report_and_everybody_are_written(folder: Path) -> None:
    done = run("raw.json", *ASK, "--no-remedies", "-o", "report.html", "--individuals", "each.csv", cwd=folder)
    assert done.returncode == 0 and done.stderr == "wrote report.html and each.csv\n"
    assert "<h1>What <em>raw.json</em> tells about income</h1>" in (folder / "report.html").read_text(encoding="utf-8")
    each = pd.read_csv(folder / "each.csv")
    assert each["people"].sum() == 80 and set(KNOWN) < set(each.columns)


def test_a_program_reads_json_from_a_file_and_from_the_output(folder: Path) -> None:
    found = audited("raw.json", *ASK, "--no-remedies", "--truth", "people.csv", "-o", "audit.json", cwd=folder)
    assert found == json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert found["people"] == 80 and found["known"] > 0 and found["remedies"] == []
    assert found["adversaries"]["maximum entropy"]["overall"] < found["adversaries"]["uniform"]["overall"]


def test_the_fixed_tree_is_a_model_that_exposes_nobody(folder: Path) -> None:
    """Would catch a merged tree whose own audit finds somebody again, or that cannot be used as a model."""
    asked = ("--threshold", "0.9")
    before = audited("raw.json", *ASK, *asked, "--no-remedies", cwd=folder)
    done = run("raw.json", *ASK, *asked, "--fix", "-o", "safe.json", "--html", "report.html", "--strict", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote report.html and safe.json, where the worst posterior is 0." in done.stderr
    assert "What to do about it" in (folder / "report.html").read_text(encoding="utf-8")
    after = audited("safe.json", *ASK, *asked, cwd=folder)
    assert before["worst"] >= 0.9 > after["worst"]
    assert isinstance(Ensemble.load(folder / "safe.json"), Ensemble)
    assert run("safe.json", *ASK, *asked, "--strict", cwd=folder).returncode == 0
    again = run("safe.json", *ASK, *asked, "--fix", "-o", "same.json", cwd=folder)
    assert "the tree as it is: nobody is known with probability 0.9" in again.stderr
    assert (folder / "same.json").read_bytes() == (folder / "safe.json").read_bytes()


def test_what_cannot_be_fixed_says_why(folder: Path) -> None:
    said = fails("raw.json", *ASK, "--threshold", "0.6", "--fix", "-o", "safe.json", "--html", "r.html", cwd=folder)
    assert "--fix cannot bring every posterior of 'raw.json' below 0.6 by merging leaves: among all people, low" in said
    assert not (folder / "safe.json").exists()
    assert (folder / "r.html").exists()  # the report tells more


def test_fix_writes_no_more_than_was_to_be_published(folder: Path) -> None:
    asked = ("--published", "labels", "--threshold", "0.95", "--fix")
    said = fails("raw.json", *ASK, *asked, "-o", "safe.json", cwd=folder)
    assert "labels alone are to be published; write the tree as text, as -o safe.txt" in said
    assert not (folder / "safe.json").exists()
    done = run("raw.json", *ASK, *asked, "-o", "safe.txt", cwd=folder)
    assert done.returncode == 0, done.stderr
    text = (folder / "safe.txt").read_text()
    assert "Number of Leaves" in text and "(" not in text


def test_two_trees_stand_side_by_side(folder: Path) -> None:
    words = ("raw.json", "private.json", *ASK, "--truth", "people.csv", "--no-remedies")
    done = run(*words, "-o", "report.html", "--individuals", "each.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "people known" in said and "Somebody who knows all about everybody else" in said
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<em>raw.json</em> and <em>private.json</em> tell about income" in page
    assert set(pd.read_csv(folder / "each.csv")["model"]) == {"raw.json", "private.json"}
    assert [each["epsilon"] for each in audited(*words, cwd=folder)] == [None, 1.0]


def test_private_trees_are_tried_as_a_remedy(folder: Path) -> None:
    words = ("raw.json", *ASK, "--truth", "people.csv", "--threshold", "0.9")
    told = [each["told"] for each in audited(*words, cwd=folder)["remedies"]]
    assert any("private tree with epsilon" in each for each in told)
    told = [each["told"] for each in audited(*words, "--no-epsilon-trials", cwd=folder)["remedies"]]
    assert not any("private tree with epsilon" in each for each in told)


def test_what_was_published_and_which_values_there_are_can_be_said(folder: Path) -> None:
    (folder / "values.txt").write_text("low\nhigh\nvery high\n", encoding="utf-8")
    (folder / "shares.json").write_text('{"low": 0.85, "high": 0.15}', encoding="utf-8")
    pd.read_csv(folder / "people.csv").head(24).to_csv(folder / "few.csv", index=False)
    quick = ("--qi", "few.csv", *ASK[2:], "--no-remedies", "--published", "labels")
    assert audited("raw.json", *quick, "--values", "low,high", cwd=folder)["values"] == ["low", "high"]
    assert audited("raw.json", *quick, "--values", "@values.txt", cwd=folder)["values"][2] == "very high"
    for marginal in ("low=0.85,high=0.15", "shares.json"):
        found = audited("raw.json", *quick, "--marginal", marginal, cwd=folder)
        assert found["adversaries"]["marginal"]["worst"] == pytest.approx(0.85)
    assert audited("raw.json", *quick, "--criterion", "none", cwd=folder)["constraints"]["internal"] == 0
    assert len(audited("raw.json", *quick, "--top", "3", cwd=folder)["most exposed"]) == 3


def test_a_text_of_a_tree_is_audited_and_mended_too(tmp_path: Path) -> None:
    (tmp_path / "j48.txt").write_text("sex = f: flu (3.0/1.0)\nsex = m: ulcer (3.0)\n", encoding="utf-8")
    (tmp_path / "people.csv").write_text("sex\nf\nf\nf\nm\nm\nm\n", encoding="utf-8")
    ask = ("--qi", "people.csv", "-s", "illness", "--measure", "posterior")
    done = run("j48.txt", *ask, "--fix", "-o", "safe.txt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert audited("safe.txt", *ask, "--values", "flu,ulcer", cwd=tmp_path)["worst"] < 0.8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope.json", *ASK], "cannot read the tree 'nope.json'"),
        (["people.csv", *ASK], "speaks of 'age'"),
        (["raw.json", "--qi", "nope.csv", "-s", "income"], "no file 'nope.csv'"),
        (["raw.json", "--qi", "raw.json", "-s", "income"], "rows come as a .csv or .parquet file"),
        (["raw.json", "--qi", "people.csv", "-s", "income", "--columns", "sex,zip"], "no column 'zip'"),
        (["raw.json", "--qi", "people.csv", "-s", "income", "--columns", "sex"], "the tree looks at '"),
        (["raw.json", "--qi", "people.csv", "-s", "wage"], "the model predicts 'income'"),
        (["raw.json", *ASK, "--values", "low,middling"], "high"),
        (["raw.json", *ASK, "--values", ","], "names no value"),
        (["raw.json", *ASK, "--values", "@nope.txt"], "cannot read 'nope.txt'"),
        (["raw.json", *ASK, "--marginal", "low"], "write it as v=0.3,w=0.7"),
        (["raw.json", *ASK, "--marginal", "nope.json"], "cannot read 'nope.json'"),
        (["raw.json", *ASK, "--marginal", "raw.json"], "write it as v=0.3,w=0.7"),
        (["raw.json", *ASK, "--marginal", "middling=1"], "middling"),
        (["raw.json", *ASK, "--criterion", "luck"], "not 'luck'"),
        (["raw.json", *ASK, "--published", "luck"], "not 'luck'"),
        (["raw.json", *ASK, "--threshold", "0"], "the threshold is a probability"),
        (["raw.json", *ASK, "--training", "zip"], "training names 'zip'"),
        (["raw.json", *ASK, "--truth", "empty.csv"], "empty.csv"),
        (["raw.json", *ASK, "-o", "report.pdf"], "cannot tell what to write to 'report.pdf'"),
        (["raw.json", *ASK, "-o", "no/report.html"], "there is no folder 'no'"),
        (["raw.json", *ASK, "-o", "raw.json"], "is the tree that is audited"),
        (["raw.json", *ASK, "--fix"], "--fix needs a file"),
        (["raw.json", *ASK, "--fix", "-o", "report.html"], "write the report with --html"),
        (["raw.json", *ASK, "--fix", "-o", "safe.json", "--no-remedies"], "leave out --no-remedies"),
        (["raw.json", *ASK, "--individuals", "people.csv"], "'people.csv' is the table that is read"),
        (["raw.json", "private.json", *ASK, "--fix", "-o", "safe.json"], "--fix mends one tree"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder: Path, words: list[str], said: str) -> None:
    (folder / "empty.csv").write_text("", encoding="utf-8")
    before = sorted(path.name for path in folder.iterdir())
    assert said in fails(*words, cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_table_that_contradicts_the_tree_is_refused_by_the_leaf(folder: Path) -> None:
    lines = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    (folder / "people.csv").write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    said = fails("raw.json", *ASK, cwd=folder)
    assert "the leaf '" in said and "people of the table are there" in said
    (folder / "people.csv").write_text(lines[0] + "\n", encoding="utf-8")
    assert "has no rows" in fails("raw.json", *ASK, cwd=folder)


def test_help_shows_examples() -> None:
    helped = run("--help", cwd=Path.cwd()).stdout
    assert "privet audit raw.json --qi people.csv -s income --fix -o safe.json" in helped
    for option in ("--qi", "--sensitive", "--columns", "--values", "--marginal", "--training", "--fix", "--strict"):
        assert option in helped


def test_own_rows_decide_unless_posteriors_are_asked_for(folder: Path) -> None:
    """Verdict, threshold, --fix and --fail-above follow what own rows add; nobody is named unless --names says so."""
    found = audited("raw.json", *OWN, cwd=folder)
    assert found["measure"] == "disclosure" and found["threshold"] == 0.1
    assert found["verdict"]["kind"] == "publish after these changes" and found["known"] > 0
    assert found["disclosure"]["most"] == found["worst"] > 0.1
    assert all("who" not in each for each in found["most exposed"])
    assert all("who" in each for each in audited("raw.json", *OWN, "--names", cwd=folder)["most exposed"])
    assert run("raw.json", *OWN, "--no-remedies", "--fail-above", "0.1", cwd=folder).returncode == 3
    assert run("raw.json", *OWN, "--no-remedies", "--fail-above", "1", cwd=folder).returncode == 0
    percent = run("raw.json", *OWN, "--no-remedies", "--fail-above", "10", cwd=folder)  # would never fail
    assert percent.returncode == 1 and "--fail-above 10 is no probability" in percent.stderr
    done = run("raw.json", *OWN, "--fix", "-o", "safe.json", cwd=folder)
    assert done.returncode == 0 and "safe.json, where the worst disclosure is 0.0" in done.stderr, done.stderr
    after = audited("safe.json", *OWN, cwd=folder)
    assert after["verdict"]["kind"] == "publish" and after["worst"] < 0.1
    assert run("safe.json", *OWN, "--fail-above", "0.1", "--strict", cwd=folder).returncode == 0


def test_both_models_are_held_against_one_baseline(folder: Path) -> None:
    raw, private = audited("raw.json", "private.json", *OWN, "--no-remedies", cwd=folder)
    assert raw["baseline"] == private["baseline"]
    assert private["verdict"]["kind"] == "publish" and "e^2 = 7.39 times" in private["verdict"]["reason"]
    assert private["bound"] == pytest.approx(0.46211715726)
    assert private["disclosure"]["most"] <= private["bound"]


def test_the_json_is_what_its_schema_says(folder: Path) -> None:
    path = Path(__file__).parents[2] / "docs" / "reference" / "audit.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    for words in (("raw.json", *OWN), ("raw.json", *ASK, "--no-remedies"), ("private.json", *OWN)):
        assert_fits(audited(*words, cwd=folder), schema, schema["$defs"])


def test_acro_loads_the_part_for_output_checkers(folder: Path) -> None:
    """Every field that ACRO's `Record` is made of (acro/record.py, load_records), in the form it is read in."""
    entry = json.loads(json.dumps(audited("raw.json", *OWN, "--no-remedies", cwd=folder)["sacro"]))
    fields = ("uid", "status", "type", "properties", "command", "summary", "comments", "exception", "timestamp")
    assert all(name in entry for name in fields) and entry["status"] in ("pass", "review", "fail")
    assert [set(file) for file in entry["files"]] == [{"name", "sdc"}]
    outcome = pd.DataFrame.from_dict(entry["outcome"])  # load_outcome
    assert outcome.columns.tolist() == ["concerned", "most"] and len(outcome) == 1
    assert entry["files"][0]["sdc"]["summary"]["suppressed"] is False  # what generate_summary asks for


def assert_fits(value: Any, schema: dict[str, Any], named: dict[str, Any]) -> None:
    """What the schema uses of JSON Schema: types, enumerations, constants, required properties, items, references."""
    if "$ref" in schema:
        schema = named[schema["$ref"].rsplit("/", 1)[1]]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    kinds["null"] = type(None)
    if "type" in schema:
        wanted = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        assert any(isinstance(value, kinds[kind]) for kind in wanted), (value, schema)
    assert value in schema.get("enum", [value]) and value == schema.get("const", value)
    if isinstance(value, dict):
        assert not set(schema.get("required", ())) - set(value)
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for key, each in value.items():
            assert_fits(each, properties.get(key, others), named)
    if isinstance(value, list):
        for each in value:
            assert_fits(each, schema.get("items", {}), named)
