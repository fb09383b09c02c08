"""`privet receipt` as a person meets it: keys, receipts, checkpoints, and one sentence for every mistake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import run

import privet
from privet.receipts import LIMITS

FIT = ("fit", "people.csv", "-d", "people.toml", "-e", "0.3", "-a", "diffpid3", "--depth", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    privet.datasets.census(300, seed=1).to_csv(tmp_path / "people.csv", index=False)
    privet.datasets.census_domain().save(tmp_path / "people.toml")
    assert (
        run("query", "people.csv", "count", "-d", "people.toml", "-e", "0.1", "-b", "2", cwd=tmp_path).returncode == 0
    )
    return tmp_path


def says(*words: str, cwd: Path) -> str:
    done = run(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(*words: str, cwd: Path) -> str:
    done = run(*words, cwd=cwd)
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (done.stdout, done.stderr)
    return done.stderr


def test_a_model_and_an_answer_get_receipts_that_anybody_checks(folder: Path) -> None:
    says(*FIT, "-o", "before.json", cwd=folder)
    assert not (folder / "before.json.receipt").exists()
    assert "privet receipt key new" in fails("receipt", "make", "people.csv", "before.json", cwd=folder)
    vkey = says("receipt", "key", "new", "people.csv", "--name", "hospital.example", cwd=folder).strip()
    assert says("receipt", "key", "show", "people.csv", cwd=folder).strip() == vkey
    assert (folder / "people.csv.ledger.key").stat().st_mode & 0o777 == 0o600

    says("receipt", "make", "people.csv", "before.json", cwd=folder)  # it was written down when it was fitted
    fitted = json.loads(says(*FIT, "-o", "model.json", "--json", cwd=folder))
    assert fitted["receipt"] == "model.json.receipt"
    for model in ("before.json", "model.json"):
        text = says("receipt", "check", model, "--key", vkey, cwd=folder)
        assert (
            text.startswith(f"good: {model} is a model of 'people', ") and LIMITS in text and "compare it" not in text
        )
        assert "charged 0.3 in " in text
    named = says("receipt", "check", "model.json.receipt", "--key", vkey, cwd=folder)
    assert named == text  # whoever names the receipt means the model beside it
    says("receipt", "make", "people.csv", "--entry", "1", "-o", "answer.json", cwd=folder)
    text = says("receipt", "check", "answer.json", cwd=folder)
    assert "asked count on all rows" in text and "compare it with what the owner has published" in text
    facts = json.loads(says("receipt", "check", "answer.json", "--json", cwd=folder))
    assert (facts["charged"], facts["entries"], facts["trusted"], facts["good"]) == ("1/10", [1], False, True)

    program = says("receipt", "verifier", cwd=folder)
    (folder / "check_receipt.py").write_text(program, encoding="utf-8")
    bare = [sys.executable, "-I", "-S", "check_receipt.py", "model.json", vkey]
    assert subprocess.run(bare, cwd=folder, capture_output=True, check=False).returncode == 0

    model = (folder / "model.json").read_text(encoding="utf-8")
    (folder / "model.json").write_text(model.replace("diffpid3", "diffpid4"), encoding="utf-8")
    assert "what it is about was changed" in fails("receipt", "check", "model.json", cwd=folder)
    new = says("receipt", "key", "rotate", "people.csv", cwd=folder).strip()
    shown = run("receipt", "key", "show", "people.csv", cwd=folder)
    assert shown.stdout.split() == [vkey, new] and "the signing key, replaced since:" in shown.stderr
    signed = [line for line in says("budget", "show", "people.csv", cwd=folder).splitlines() if "signing key" in line]
    assert signed == [f"signing key: {new}"]
    says("receipt", "make", "people.csv", "before.json", cwd=folder)
    assert vkey not in says("receipt", "check", "before.json", "--key", new, cwd=folder)
    says("receipt", "check", "before.json", "--key", vkey, cwd=folder)


def test_a_second_key_signs_elsewhere_and_a_restored_ledger_is_noticed(folder: Path) -> None:
    shutil.copy(folder / "people.csv.ledger", folder / "older")
    vkey = says("receipt", "key", "new", "people.csv", "--name", "hospital.example", cwd=folder).strip()
    second = ("--second", "--key-file", "stick/second.key")
    other = says("receipt", "key", "new", "people.csv", *second, cwd=folder).strip()
    says("receipt", "checkpoint", "people.csv", "-o", "first", cwd=folder)
    assert other.partition("/")[0] == vkey.partition("/")[0] == "hospital.example"
    shutil.copy(folder / "people.csv.ledger", folder / "backup")
    says(*FIT, "-o", "model.json", cwd=folder)
    says("receipt", "checkpoint", "people.csv", "--since", "first", "-o", "next", cwd=folder)
    assert "and continues the one of" in says("receipt", "check", "next", "--key", vkey, "--since", "first", cwd=folder)
    sign = ("receipt", "cosign", "next", "--key", vkey, "--key-file", "stick/second.key", "--since", "first")
    says(*sign, "-o", "signed", cwd=folder)
    says("receipt", "make", "people.csv", "model.json", "--under", "signed", cwd=folder)
    says("receipt", "check", "model.json", "--key", vkey, "--key", other, cwd=folder)
    says("receipt", "make", "people.csv", "model.json", "--since", "first", cwd=folder)
    assert "trust" in fails("receipt", "check", "model.json", "--key", vkey, "--key", other, cwd=folder)
    says("receipt", "check", "model.json", "--since", "first", cwd=folder)
    os.unlink(folder / "model.json.checkpoint")
    assert "no proof" in fails("receipt", "check", "model.json", "--since", "first", cwd=folder)

    assert "continues the checkpoint" in says("receipt", "check", "people.csv", "--since", "signed", cwd=folder)
    shutil.copy(folder / "backup", folder / "people.csv.ledger")
    assert "the ledger went back" in fails("receipt", "check", "people.csv", "--since", "signed", cwd=folder)
    shutil.copy(folder / "older", folder / "people.csv.ledger")  # of before the keys: it does not know who signed
    unknown = ("receipt", "check", "people.csv", "--since", "signed")
    assert "went back to before the key was made" in fails(*unknown, cwd=folder)
    assert "the ledger went back" in fails(*unknown, "--key", vkey, "--key", other, cwd=folder)
    says("receipt", "check", "people.csv", cwd=folder)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("check", "people.toml"), "people.toml"),
        (("check", "nothing.json"), "there is no file 'nothing.json'"),
        (("check", "empty.json"), "there is no receipt beside 'empty.json'"),
        (("check", "nothing-in-it.json"), "is no receipt and no checkpoint: it is empty"),
        (("check", "noise.json"), "is no receipt and no checkpoint. Ask whoever gave it to you"),
        (("check", "huge.receipt"), "it is longer than 67,108,864 bytes, as none is"),
        (("check", "cut.json"), "it cannot be read as a receipt of privet"),
        (("check", "empty.json", "--key", "notakey"), "'notakey' is no public key"),
        (("make", "people.csv"), "a receipt is of a model or of an entry"),
        (("make", "people.csv", "--entry", "7"), "no signing key"),
        (("checkpoint", "people.csv"), "no signing key"),
        (("key", "rotate", "people.csv"), "no signing key"),
        (("key", "new", "people.csv", "--second"), "--key-file"),
        (("key", "new", "people.csv", "--name", "a b"), "letters"),
        (("check", "empty.json", "--since", "people.toml"), "no checkpoint"),
        (("cosign", "people.toml", "--key", "x", "--key-file", "y"), "no checkpoint"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, words: tuple[str, ...], sentence: str) -> None:
    (folder / "empty.json").write_text("{}")
    (folder / "nothing-in-it.json").write_text("")
    (folder / "noise.json").write_bytes(bytes(range(256)))
    (folder / "cut.json").write_text('{\n "checkpoint": "privet/0d')
    with (folder / "huge.receipt").open("wb") as file:
        file.truncate(2**26 + 1)  # which takes no room
    assert sentence in fails("receipt", *words, cwd=folder)
