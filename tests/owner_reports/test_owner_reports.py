"""What owners print: a registry entry that is valid, and a bundle and a page that say what the ledger says."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from command import run

import privet
from privet import ledger_lines
from privet.errors import LedgerError, QuestionError
from privet.kernel import Charge, Ledger, Under
from privet.owner_reports import SCHEMA, OwnerWords, audit_bundle, bundle_page, registry_entry, to_yaml
from privet.receipts import new_key

VALIDATOR = jsonschema.Draft7Validator(yaml.safe_load(SCHEMA.read_text(encoding="utf-8")))
NASTY = "<script>alert(1)</script>&\"'"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Two analysts, one of whom has a name that no page should run, a model, events of a server."""
    ledger = Ledger.open(tmp_path / "people.ledger")
    ledger.register("people", source="secret-place.csv", budget=Fraction(1), domain=privet.datasets.census_domain())
    ledger.set_cap("people", NASTY, Fraction(1, 3))
    for analyst, question in (("ada", "count"), (NASTY, f"mean of {NASTY}"), ("ada", "histogram(sex)")):
        entry, _ = ledger.charge("people", analyst, Charge(question, "{}", "f", "all rows", "0.1", Fraction(1, 10)))
        ledger.store(entry.id, f'{{"answer":[{4000 + entry.id}],"private":true}}')
    ledger.charge("people", "ada", Charge("never answered", "{}", "f", "all rows", "0.1", Fraction(1, 10)))
    facts = {"entries": [1, 3], "algorithm": "diffpid3", "epsilon": "1/5", "spent": "1/5"}
    ledger_lines.store_model(ledger, "people", "ada", None, "{}", facts, keep=False)
    ledger_lines.record(ledger, "start", facts={"tables": ["people"]})
    ledger_lines.record(ledger, "login", analyst="ada")
    ledger_lines.record(
        ledger, "token", analyst=NASTY, facts={"token": "3f2a"}, held_back={"sha256": "the-hash-of-a-token"}
    )
    return ledger


def valid(entry: dict[str, Any]) -> dict[str, Any]:
    """Hold an entry against the schema, as YAML that somebody else reads."""
    VALIDATOR.validate(entry)
    assert yaml.safe_load(to_yaml(entry)) == entry
    return entry


def test_a_registry_entry_is_valid_and_names_nobody(ledger: Ledger) -> None:
    entry = valid(registry_entry(ledger, "people"))
    loss = entry["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 1.0} and "Spent so far: 0.4, exactly" in str(loss)
    assert entry["deployment"]["basic"]["data_product_type"] == "Interactive API"
    words = OwnerWords(curator="Example Hospital", region="Switzerland", sector="Healthcare", author="data office")
    text = to_yaml(valid(registry_entry(ledger, "people", words)))
    for word in ("ada", "alert", "secret-place", "4001"):
        assert not re.search(rf"\b{word}\b", text)
    for name in ('Universitätsspital 🏥 "Zürich"', "a: b # c", "{}", "null", "ﬁ 漢 \u00a0", "\\ud83d\\udfe5"):
        read = yaml.safe_load(to_yaml(valid(registry_entry(ledger, "people", OwnerWords(curator=name, author=name)))))
        assert read["deployment"]["basic"]["data_curators"] == [name]
        assert read["deployment"]["administrative"]["registry_authors"][0].encode() == name.encode()
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**entry, "tier": 4})


def test_a_data_set_in_rho_is_registered_as_such(tmp_path: Path) -> None:
    frame = privet.datasets.census(300)
    table = privet.open(
        frame, privet.datasets.census_domain(), budget=1, delta="1e-6", ledger=tmp_path / "rho.ledger", name="people"
    )
    table.where(sex="Female").partition("income").count("0.1")
    privet.BoostedTablesClassifier(epsilon="0.3").fit(table)  # whose loss in rho is a fraction of many digits
    entry = valid(registry_entry(Ledger.open(tmp_path / "rho.ledger"), "people"))
    assert "Spent so far: about 0.00" in entry["deployment"]["privacy_loss"]["privacy_parameters_details"]
    parameters = entry["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters["delta"] == 1e-6 and 0.99 < parameters["epsilon"] <= 1 and 0 < parameters["rho"] < 0.1
    assert entry["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    page = bundle_page(audit_bundle(Ledger.open(tmp_path / "rho.ledger"), "people"))
    assert "answer of epsilon" in page and "count on 2 parts; the first: rows where sex = Female, income = " in page
    assert not re.search("[0-9]{13,}", page.partition("Unprotected</h2>")[0])  # amounts are short: the JSON is exact
    for words in (("show",), ("show", "--entries")):
        shown = run("budget", words[0], "rho.ledger", *words[1:], cwd=tmp_path)
        assert shown.returncode == 0 and not re.search("[0-9]{13,}", shown.stdout.partition("signing key")[0])


def test_a_bundle_has_every_point_that_an_auditor_asks(ledger: Ledger) -> None:
    new_key(ledger, "hospital.example")
    bundle = json.loads(
        json.dumps(audit_bundle(ledger, "people", checked_by="two people", domain_by="the data office"))
    )
    assert bundle["promise"]["rows_per_person"] == 1 and "one person" in bundle["promise"]["neighbours"]
    budget = bundle["budget"]
    assert (budget["cap"], budget["spent"], budget["left"], budget["refresh"]) == ("1", "2/5", "3/5", "never")
    assert {line["analyst"]: line["spent"] for line in budget["analysts"]} == {"ada": "3/10", NASTY: "1/10"}
    assert bundle["unprotected"]["columns"] and bundle["unprotected"]["written_by"] == "the data office"
    assert [line["released"] for line in bundle["releases"]] == [True, True, True, False]
    assert all(line["kept"] for line in bundle["criteria"]) and len(bundle["criteria"]) == 5
    assert bundle["models"]["released"][0]["entries"] == [1, 3] and bundle["checked_by"] == "two people"
    assert [line["event"] for line in bundle["events"]] == ["start", "login", "token"]
    assert bundle["ledger"]["checkpoint"].startswith("hospital.example/") and bundle["side_channels"]["not_covered"]
    assert [one["safe"] for one in bundle["five_safes"]] == ["projects", "people", "data", "settings", "outputs"]
    assert all(part in bundle for one in bundle["five_safes"] for part in one["here"])
    page = bundle_page(bundle)
    assert page.count("<dt>safe ") == 5 and "<dt>who checks</dt><dd>two people</dd>" in page
    text = json.dumps(bundle)
    for word in ("secret-place", "4001", "the-hash-of-a-token", "PRIVATE+KEY"):
        assert word not in text


def test_a_bundle_of_one_analyst_names_no_other(ledger: Ledger) -> None:
    bundle = audit_bundle(ledger, "people", analyst="ada")
    assert "alert" not in json.dumps(bundle) and [line["entry"] for line in bundle["releases"]] == [1, 3, 4]
    other = audit_bundle(ledger, "people", analyst=NASTY)
    assert '"ada"' not in json.dumps(other) and other["models"]["released"] == []
    for wrong in ({"analyst": "adda"}, {"permit": "none"}):
        with pytest.raises(LedgerError, match="it has"):
            audit_bundle(ledger, "people", **wrong)
    with pytest.raises(LedgerError, match="did you mean 'people'"):
        audit_bundle(ledger, "peopl")


def test_a_bundle_of_one_permit_has_its_charges_alone(ledger: Ledger) -> None:
    under = Under("permit-7", "a study")
    charge = Charge("count", "{}", "f", "all rows", "0.1", Fraction(1, 10), under=under)
    entry, _ = ledger.charge("people", "ada", charge)
    bundle = audit_bundle(ledger, "people", permit="permit-7")
    assert [(line["entry"], line["permit"]) for line in bundle["releases"]] == [(entry.id, "permit-7")]
    assert bundle["models"]["released"] == [] and "permit-7" in bundle_page(bundle)
    assert "alert" not in json.dumps(bundle)  # who asked nothing under it is not named
    assert [line["analyst"] for line in bundle["budget"]["analysts"]] == ["ada"]
    assert bundle["permits"] == [{"permit": "permit-7", "cap": None, "spent": "1/10", "since": None, "policy": {}}]
    assert [line["event"] for line in bundle["events"]] == ["login"]
    assert [line["purpose"] for line in bundle["releases"]] == ["a study"]


def test_a_bundle_says_what_a_permit_allows_and_who_decided(ledger: Ledger) -> None:
    policy = {
        "analysts": ["ada", "bob"],
        "spenders": ["ada"],
        "purposes": ["a study"],
        "expires": "2027-06-30",
        "approvals": 2,
        "release": ["models"],
    }
    for event, facts in (
        ("permit", {"permit": "heart", "tables": {"people": "1/2", "others": None}, **policy}),
        ("permit", {"permit": "lung", "tables": {"others": None}, **policy}),
    ):
        ledger_lines.record(ledger, event, facts=facts)
    ledger_lines.record(
        ledger, "request", dataset="people", analyst="bob", facts={"permit": "heart", "purpose": "x", "epsilon": "1"}
    )
    number = ledger_lines.events(ledger)[-1].number
    ledger_lines.record(ledger, "approval", dataset="people", analyst="bob", facts={"request": number, "by": "grace"})
    ledger.charge("people", "ada", Charge("count", "{}", "f", "", "0.1", Fraction(1, 10), under=Under("heart", "x")))
    ledger.charge("people", NASTY, Charge("count", "{}", "f", "", "0.1", Fraction(1, 10), under=Under("heart", "x")))
    (heart,) = audit_bundle(ledger, "people")["permits"]
    assert (heart["permit"], heart["spent"], heart["policy"]) == ("heart", "1/5", policy)
    of_permit = audit_bundle(ledger, "people", permit="heart")
    assert [line["event"] for line in of_permit["events"]][-3:] == ["permit", "request", "approval"]
    of_ada = audit_bundle(ledger, "people", analyst="ada")
    assert of_ada["permits"][0]["policy"]["analysts"] == ["ada"] and "bob" not in json.dumps(of_ada)
    page = bundle_page(of_permit)
    assert "2027-06-30" in page and "heart: x" in page and "lung" not in page


def test_seeded_noise_breaks_a_criterion(ledger: Ledger) -> None:
    entry, _ = ledger.charge("people", "ada", Charge("count", "{}", "f", "all rows", "0.1", Fraction(1, 10)))
    ledger.store(entry.id, "[1]", private=False)
    bundle = audit_bundle(ledger, "people")
    assert [line["kept"] for line in bundle["criteria"]] == [True, True, False, True, True]
    assert "BROKEN" in bundle_page(bundle) and "NOT PRIVATE" in bundle_page(bundle)


def test_the_page_escapes_what_the_ledger_says_and_loads_nothing(ledger: Ledger) -> None:
    page = bundle_page(audit_bundle(ledger, "people"))
    assert "<script" not in page and "&lt;script&gt;" in page and "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"(?!#)", page)
    for heading in ("Promise", "Budget", "Unprotected", "Criteria", "Releases", "Models", "Access", "Ledger"):
        assert f"<h2>{heading}</h2>" in page


def test_the_command_writes_all_three(tmp_path: Path, ledger: Ledger) -> None:
    ledger.close()
    export = ("budget", "export", "people.ledger")
    (tmp_path / "words.toml").write_text('curator = "Example Hospital"\nsector = "Healthcare"\n')
    for form, file in (("registry", "registry.yaml"), ("bundle", "bundle.json"), ("page", "page.html")):
        words = ("--words", "words.toml") if form == "registry" else ("--analyst", "ada")
        assert run(*export, "--format", form, *words, "-o", file, cwd=tmp_path).returncode == 0
    entry = valid(yaml.safe_load((tmp_path / "registry.yaml").read_text()))
    assert entry["deployment"]["basic"]["data_curators"] == ["Example Hospital"]
    assert json.loads((tmp_path / "bundle.json").read_text())["only"] == {"analyst": "ada", "permit": None}
    assert "Audit of people, analyst ada" in (tmp_path / "page.html").read_text()
    assert "leave out --analyst" in run(*export, "--format", "registry", "--analyst", "ada", cwd=tmp_path).stderr
    for text, said in (
        ("size = 3", "says 'size'"),
        ("curator = 3", "no text"),
        ('sector = "Space"', "Healthcare"),
        ("[", "TOML"),
    ):
        (tmp_path / "words.toml").write_text(text)
        with pytest.raises(QuestionError, match=said):
            OwnerWords.load(tmp_path / "words.toml")


def test_the_ledger_of_the_demo_is_exported(tmp_path: Path) -> None:
    from privet.demo import run as demo

    demo(tmp_path / "demo", 500)
    ledger = Ledger.open(tmp_path / "demo" / "census.duckdb.ledger")
    entry, bundle = valid(registry_entry(ledger, "people")), audit_bundle(ledger, "people")
    assert entry["deployment"]["basic"]["data_product_type"] == "Machine learning model"
    assert len(bundle["models"]["released"]) == 2 and all(line["kept"] for line in bundle["criteria"])
    assert bundle_page(bundle).count("<section") == 11
