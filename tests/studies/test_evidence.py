"""What the pages say about the papers' claims is what was recorded."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from privet.studies.catalog import STUDIES

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
studies: Any = importlib.import_module("evidence.studies")


def test_the_table_of_the_page_is_that_of_the_evidence() -> None:
    content = json.loads((ROOT / "evidence" / "studies.json").read_text())
    assert list(content["studies"]) == list(STUDIES)
    assert studies.table(content) in (ROOT / "docs" / "studies.md").read_text()


def test_what_does_not_hold_is_explained() -> None:
    content = json.loads((ROOT / "evidence" / "studies.json").read_text())
    claims = [claim for study in content["studies"].values() for claim in study["claims"]]
    assert len(claims) > 100
    assert all(claim["evidence"] for claim in claims)
    assert all(claim["erratum"] for claim in claims if claim["holds"] is False)
