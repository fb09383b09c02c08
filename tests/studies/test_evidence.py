"""What the pages say about the papers' claims is what was recorded."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from privet.cli.study import run
from privet.studies.catalog import STUDIES
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, Claim, ClaimReading

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
studies: Any = importlib.import_module("evidence.studies")


def recorded() -> Any:
    return json.loads((ROOT / "evidence" / "studies.json").read_text())


def test_the_page_is_made_of_the_evidence() -> None:
    assert list(recorded()["studies"]) == list(STUDIES)
    assert studies.page(recorded()) == (ROOT / "docs" / "reference" / "studies.md").read_text()


def test_the_evidence_is_of_the_studies_as_they_are() -> None:
    """Sizes were enlarged once, and the page told verdicts of the smaller ones."""
    for name, study in recorded()["studies"].items():
        assert study["trials"] == len(STUDIES[name].trials(study["size"])), name


def test_what_a_run_takes_is_told_as_it_was_measured() -> None:
    content = recorded()
    for name, study in content["studies"].items():
        assert study["cost"]["trials"] == len({trial.key for trial in STUDIES[name].trials(study["size"])}), name
    told = re.search(r"about (\d+) minutes of CPU\s+time with --quick and about (\d+) with --medium", run.__doc__ or "")
    assert told is not None
    for minutes, size in zip(told.groups(), ("quick", "medium"), strict=True):
        spent = content["cost"][size]
        assert spent["trials"] == len({trial.key for trial in studies.all_trials(size)})
        assert abs(60 * int(minutes) - spent["CPU seconds"]) < spent["CPU seconds"] / 5


def test_an_estimate_is_told_from_a_measurement() -> None:
    def took(measured: int) -> str:
        cost = {"trials": 30, "measured": measured, "CPU seconds": 1234.4}
        study = {"size": "medium", "trials": 30, "claims": [], "cost": cost}
        text: str = studies.table({"studies": {"s": study}})
        return text.splitlines()[-1].split(" | ")[3]

    assert (took(30), took(29)) == ("1,234", "about 1,234")


def test_verdicts_and_their_counts_are_those_of_the_claims() -> None:
    content = recorded()
    for name, study in content["studies"].items():
        for claim in study["claims"]:
            assert claim.get("verdict") in (None, studies.claim_of(claim).verdict)
        assert content["counts"][name] == studies.counts(study["claims"])
        assert sum(content["counts"][name].values()) == len(study["claims"])


def test_what_does_not_hold_is_explained() -> None:
    claims = [studies.claim_of(claim) for study in recorded()["studies"].values() for claim in study["claims"]]
    assert len(claims) > 90
    assert all(claim.told for claim in claims)
    assert all(claim.erratum for claim in claims if claim.verdict in (FAILS, DEPENDS))


def test_trials_that_would_tell_are_those_that_the_numbers_ask_for() -> None:
    def asked(evidence: str, **more: Any) -> int | None:
        found: int | None = studies.needed(Claim("c", None, evidence), 100, **more)
        return found

    assert asked("+1.0 ± 0.5 points") == 300  # (3.42 / 2)^2 times as many
    assert asked("(p = 0.0455)") == 300  # the same, by its p-value
    assert asked("ahead by +3.0 ± 0.1 points") is None  # that is not what leaves it open
    # splits of one table share rows: of the error 1 / 20 + 1 / 9 all but 1 / 9 goes, however many there are
    assert asked("(p = 0.0455)", splits=20) is None
    assert asked("(p = 0.0027)", splits=20) == 400  # (1 / 20 + 1 / 9) (3 / 3.42)^2 = 1 / 77 + 1 / 9


def test_a_claim_fails_only_if_no_reading_holds() -> None:
    def verdict(*holds: bool | None) -> str:
        return Claim.read("c", [ClaimReading(f"{i}", one) for i, one in enumerate(holds)]).verdict

    assert verdict(True, True) == HOLDS and verdict(False, False) == FAILS and verdict(None, None) == OPEN
    assert verdict(True, False) == verdict(True, None) == verdict(True, False, None) == DEPENDS
    assert verdict(False, None) == OPEN
    assert Claim("c", False, "e", incomparable="another solver").verdict == INCOMPARABLE
