"""The experiment of Zhu and Du on Adult: small trees here, large ones in evidence/audit.json."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from published import posterior_audit

from privet.risk.constraints import choices_of
from privet.studies.adult_trees import COLUMNS, SENSITIVE, TREES, grown, rows

sys.path.insert(0, str(Path(__file__).parents[2]))  # evidence/ lies beside tests/ and is not installed
evidence: Any = importlib.import_module("evidence.audit")

needs_adult = pytest.mark.skipif(
    not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA names no folder with the UCI files (adult)"
)

# without internal constraints; the least entropy and the floored divergence with them
EXPECTED = {
    "Gini depth 3": (0.8765, 2.1648, 0.833),
    "IG depth 3": (0.8901, 2.1950, 0.861),
    "IG min 7 rows depth 7": (0.7390, 2.0311, 0.746),
    "Gini full": (0.6159, 1.8972, 0.569),
    "IG full": (0.6159, 1.9088, 0.622),
}


@needs_adult
@pytest.mark.parametrize("name", ["Gini depth 3", "IG depth 3"])
def test_a_small_tree_of_adult(name: str) -> None:
    alone, entropy, floored = EXPECTED[name]
    frame = rows()
    model = grown(frame, TREES[name])
    found = posterior_audit(
        model,
        frame[COLUMNS],
        sensitive=SENSITIVE,
        truth=frame,
        published="rates",
        worlds=False,
        remedies=False,
    )
    assert (found.people.total, len(found.people)) == (30162, 4480)
    assert found.overall["uniform"].overall == pytest.approx(1.4588, abs=5e-5)
    assert found.overall["marginal"].overall == pytest.approx(0.7055, abs=5e-5)
    assert found.overall["leaves alone"].overall == pytest.approx(alone, abs=5e-5)
    disclosed = found.overall["maximum entropy"]
    assert disclosed.entropy >= entropy and disclosed.entropy <= found.overall["leaves alone"].entropy
    assert disclosed.overall_floored == pytest.approx(floored, abs=0.003)
    belief = found.beliefs["maximum entropy"]
    assert belief.facts["unsolved"] == 0 and found.publication is not None
    masses = belief.shares * found.people.sizes[:, None]
    assert min(gap for choice in choices_of(found.publication) for _, gap in choice.gaps(masses)) >= -2e-6


@needs_adult
def test_labels_alone_say_nothing_to_maximum_entropy_whatever_the_tree() -> None:
    frame = rows()
    found = posterior_audit(
        grown(frame, TREES["Gini depth 3"]),
        frame[COLUMNS],
        sensitive=SENSITIVE,
        truth=frame,
        published="labels",
        worlds=False,
        remedies=False,
    )
    assert found.overall["maximum entropy"].overall == pytest.approx(1.4588, abs=5e-5)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_the_evidence_is_within_its_bounds(name: str) -> None:
    alone, entropy, floored = EXPECTED[name]
    found = json.loads(evidence.RESULT.read_text(encoding="utf-8"))[name]
    assert found["D without internal constraints"] == pytest.approx(alone, abs=6e-5)
    assert found["entropy"] >= entropy
    assert found["D floored"] == pytest.approx(floored, abs=0.003)
    assert found["worst violation"] <= 2e-6 and found["worst rate"] <= 1e-9 and found["worst sum"] <= 1e-9
    assert found["facts"]["unsolved"] == found["facts"]["left out"] == 0
    assert found["CPU seconds"] <= 90 and found["peak GB"] <= 0.3


def test_the_documentation_shows_the_evidence() -> None:
    found = json.loads(evidence.RESULT.read_text(encoding="utf-8"))
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "audit.md").read_text(encoding="utf-8")
    assert evidence.table(found) in page
