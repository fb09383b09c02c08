"""Options that no other test of a command takes: each does what its help says."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command import run

import privet

TREE = """age <= 30: low (145.0/14.0)
age > 30
|   hours <= 45: low (389.0/84.0)
|   hours > 45: low (66.0/22.0)
"""
PURE = """|--- hours <= 39.50
|   |--- class: low
|--- hours >  39.50
|   |--- class: high
"""


@pytest.fixture
def people(tmp_path: Path) -> pd.DataFrame:
    """The 600 people of a tree, in known.csv; their table in people.csv."""
    found = privet.datasets.census(600, seed=1)
    found.to_csv(tmp_path / "people.csv", index=False)
    found[["age", "hours"]].to_csv(tmp_path / "known.csv", index=False)
    privet.datasets.census_domain().save(tmp_path / "people.toml")
    (tmp_path / "tree.txt").write_text(TREE)
    return found


def printed(*words: str, cwd: Path) -> str:
    """What a command prints that does its work, without line breaks."""
    done = run(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_a_second_publication_is_held_against_the_first(people: pd.DataFrame, tmp_path: Path) -> None:
    lows = int((people.income[people.age <= 31] == "low").sum())
    number = int((people.age <= 31).sum())
    rest, low = len(people) - number, int((people.income == "low").sum()) - lows
    (tmp_path / "other.txt").write_text(
        f"age <= 31: low ({number}.0/{number - lows}.0)\nage > 31: low ({rest}.0/{rest - low}.0)\n"
    )
    words = ("audit", "tree.txt", "--qi", "known.csv", "-s", "income", "--values", "low,high")
    alone, both = printed(*words, cwd=tmp_path), printed(*words, "--also", "other.txt", cwd=tmp_path)
    assert "tree.txt with other.txt" in both and "other.txt" not in alone
    refused = run(*words, "--also", "missing.txt", cwd=tmp_path)
    assert refused.returncode == 1 and "missing.txt" in refused.stderr


def test_what_an_adversary_knew_before_and_on_which_rows_a_tree_grew_can_be_said(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    words = ("audit", "tree.txt", "--qi", "known.csv", "-s", "income", "--values", "low,high")
    assert "baseline 0.520 0.600" in printed(*words, "--baseline", "low=0.6,high=0.4", cwd=tmp_path)
    refused = run(*words, "--share", "0.5", cwd=tmp_path)
    assert refused.returncode == 1 and "share is the part of people" in refused.stderr
    (tmp_path / "half.txt").write_text("age <= 30: low (72.0/7.0)\nage > 30: low (228.0/53.0)\n")
    drawn = ("audit", "half.txt", *words[2:], "--training", "unknown", "--share", "0.5")
    assert "600 people" in printed(*drawn, cwd=tmp_path)


def test_a_tree_that_was_grown_until_its_leaves_are_pure_says_so_of_everybody(
    people: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "pure.txt").write_text(PURE)
    words = ("audit", "pure.txt", "--qi", "known.csv", "-s", "income", "--values", "high,low")
    full, none = (printed(*words, "--stopping", rule, cwd=tmp_path) for rule in ("full", "none"))
    assert "the leaf says that all of its" in full and "the leaf says that all of its" not in none


def test_a_file_of_another_country_is_converted_and_drafted_from(people: pd.DataFrame, tmp_path: Path) -> None:
    place = ["Zürich" if row % 2 else "Genf" for row in range(600)]
    table = people.assign(place=place, visit_of=[row // 2 for row in range(600)])
    table.to_csv(tmp_path / "visits.txt", index=False, sep="|", encoding="latin-1")
    form = ("--delimiter", "bar", "--encoding", "latin-1")
    printed("domain", "convert", "visits.txt", *form, "-o", "visits.csv", cwd=tmp_path)
    assert pd.read_csv(tmp_path / "visits.csv").place.tolist() == place
    draft = ("domain", "draft", "visits.txt", *form, "--target", "income", "--person", "visit_of")
    printed(*draft, "--rows-per-person", "3", "-o", "plain.toml", cwd=tmp_path)
    printed(*draft, "--quantiles", "-o", "quantiles.toml", cwd=tmp_path)
    plain, quantiles = (privet.Domain.load(tmp_path / f"{name}.toml") for name in ("plain", "quantiles"))
    assert (plain.person, plain.rows_per_person, quantiles.rows_per_person) == ("visit_of", 3, 1)
    assert plain["place"].labels[:2] == ("Genf", "Zürich")
    assert plain["wage"] != quantiles["wage"]
    assert "edges are quantiles of the sample" in (tmp_path / "quantiles.toml").read_text(encoding="utf-8")


def test_a_bundle_says_who_wrote_the_domain_and_who_checks(people: pd.DataFrame, tmp_path: Path) -> None:
    ask = ("query", "people.csv", "count", "-d", "people.toml", "--epsilon", "0.1", "--budget", "1")
    printed(*ask, cwd=tmp_path)
    words = ("--domain-by", "the registry", "--checked-by", "the data office")
    found = json.loads(printed("budget", "export", "people.csv", "--format", "bundle", *words, cwd=tmp_path))
    assert found["checked_by"] == "the data office" and "the registry" in json.dumps(found["unprotected"])


def test_a_receipt_lies_elsewhere_and_a_token_ends(people: pd.DataFrame, tmp_path: Path) -> None:
    fit = ("fit", "people.csv", "-d", "people.toml", "-a", "prior", "--epsilon", "0.2", "--budget", "1")
    printed(*fit, "--ignore-spending", "-o", "model.json", cwd=tmp_path)
    printed("receipt", "key", "new", "people.csv", "--name", "hospital.example", cwd=tmp_path)
    printed("receipt", "make", "people.csv", "model.json", cwd=tmp_path)
    (tmp_path / "model.json.receipt").rename(tmp_path / "elsewhere.receipt")
    check = ("receipt", "check", "model.json")
    assert "there is no receipt beside" in run(*check, cwd=tmp_path).stderr
    assert "good: model.json is a model of 'people'" in printed(*check, "--receipt", "elsewhere.receipt", cwd=tmp_path)
    refused = run("receipt", "cosign", "missing.checkpoint", "--key", "none", "--key-file", "none", cwd=tmp_path)
    assert refused.returncode == 1 and "missing.checkpoint" in refused.stderr

    printed("token", "create", "people.csv", "--analyst", "ada", "--days", "3", cwd=tmp_path)
    printed("token", "create", "people.csv", "--analyst", "bob", "--days", "30", cwd=tmp_path)
    first, second = json.loads(printed("token", "list", "people.csv", "--json", cwd=tmp_path))
    ends = [pd.Timestamp(token["expires"]) for token in (first, second)]
    assert abs(ends[1] - ends[0]) // pd.Timedelta(days=1) in (26, 27)


def test_a_comparison_says_which_learners_are_missing(people: pd.DataFrame, tmp_path: Path) -> None:
    words = ("study", "compare", "people.csv", "-d", "people.toml", "--epsilon", "1", "--peers", "missing-python")
    refused = run(*words, "--full", "--medium", cwd=tmp_path)
    assert refused.returncode == 1 and "a study has one size" in refused.stderr
    assert "scikit-learn tree is left out: there is no 'missing-python' with privet and its peers" in refused.stderr
