"""`python -m evidence.studies FINDINGS`: what came of the papers' claims, as evidence/studies.json and a table of docs.

FINDINGS is the findings.json that `privet study run all --quick` writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import privet
from privet.studies.catalog import STUDIES

RESULT = Path(__file__).with_name("studies.json")
COMMAND = "privet study run all --quick"


def main() -> int:
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    content = {
        "privet": privet.__version__,
        "command": COMMAND,
        "studies": {
            name: {"source": STUDIES[name].source, "claims": [_claim(each) for each in findings["claims"]]}
            for name, findings in found.items()
        },
    }
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(content))
    return 0


def _claim(claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: claim[name] for name in ("text", "holds", "evidence", "erratum") if claim[name] != ""}


def table(content: Mapping[str, Any]) -> str:
    """A row for each study: how many of its claims hold, do not, or are open at this size."""
    lines = ["| study | hold | do not | open |", "|---|---|---|---|"]
    for name, study in content["studies"].items():
        counts = [sum(claim["holds"] is verdict for claim in study["claims"]) for verdict in (True, False, None)]
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
