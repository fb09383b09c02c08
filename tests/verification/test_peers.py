"""What the documentation says of a peer is what was measured."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_quotes_what_was_measured() -> None:
    """A number that nobody measured, about somebody else's software, would be slander."""
    measured = json.loads((ROOT / "evidence" / "peers.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "how-to" / "verify.md").read_text(encoding="utf-8")
    assert (
        f"diffprivlib {measured['versions']['diffprivlib']} with scikit-learn {measured['versions']['scikit-learn']}"
        in page
    )
    for model, verdict in measured["verdicts"].items():
        assert f"| `{model}` | {verdict['lower_bound']:.2f} |" in page
        assert verdict["claim"] == "1" and verdict["alpha"] <= 1e-8
