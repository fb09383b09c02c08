"""`python -m evidence.studies FINDINGS...`: what came of the papers' claims, as evidence/studies.json and in the docs.

FINDINGS are files findings.json that `privet study run` writes: of `all`, or of some studies that were run again. The
section of docs/studies.md between its marks is made from evidence/studies.json and from nothing else.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import privet
from privet.studies.catalog import PAPERS, STUDIES
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, VERDICTS, Claim, ClaimReading

RESULT = Path(__file__).with_name("studies.json")
PAGE = Path(__file__).parents[1] / "docs" / "studies.md"
MARKED = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)
COMMAND = "privet study run all --quick"
TOLD = {FAILS: "Does not hold", DEPENDS: "Depends on the reading", INCOMPARABLE: "Not comparable", OPEN: "Open"}


def main() -> int:
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    for name in sys.argv[1:]:
        found = json.loads(Path(name).read_text(encoding="utf-8"))
        for study, findings in found.items():
            content["studies"][study] = {
                "source": STUDIES[study].source,
                "claims": [_written(claim_of(each)) for each in findings["claims"]],
            }
    content["privet"], content["command"] = privet.__version__, COMMAND
    content["studies"] = {name: content["studies"][name] for name in STUDIES if name in content["studies"]}
    content["counts"] = {name: counts(study["claims"]) for name, study in content["studies"].items()}
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(content), encoding="utf-8")
    print(table(content))
    return 0


def claim_of(content: Mapping[str, Any]) -> Claim:
    """A claim as it was recorded."""
    readings = tuple(ClaimReading(**each) for each in content.get("readings", ()))
    texts = {name: content.get(name, "") for name in ("erratum", "incomparable")}
    return Claim(content["text"], content["holds"], content.get("evidence", ""), readings=readings, **texts)


def _written(claim: Claim) -> dict[str, Any]:
    readings = [{"name": each.name, "holds": each.holds, "evidence": each.evidence} for each in claim.readings]
    found = {
        "text": claim.text,
        "verdict": claim.verdict,
        "holds": claim.holds,
        "evidence": claim.evidence,
        "erratum": claim.erratum,
        "readings": readings,
        "incomparable": claim.incomparable,
    }
    return {name: value for name, value in found.items() if value not in ("", [])}


def counts(claims: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many claims have each verdict."""
    verdicts = [claim_of(claim).verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def table(content: Mapping[str, Any]) -> str:
    """A row for each study: how many of its claims have each verdict."""
    lines = ["| study | hold | do not | open | depend on the reading | not comparable |", "|---|---|---|---|---|---|"]
    for name, study in content["studies"].items():
        lines.append(f"| {name} | {' | '.join(str(number) for number in counts(study['claims']).values())} |")
    return "\n".join(lines)


def page(content: Mapping[str, Any]) -> str:
    """Return docs/studies.md with what this content says of the papers."""
    text = f"{_papers(content)}\n\n{table(content)}\n"
    return MARKED.sub(lambda _: text, PAGE.read_text(encoding="utf-8"))


def _papers(content: Mapping[str, Any]) -> str:
    parts = []
    for paper in PAPERS:
        names = [study.name for study in paper.STUDIES if study.name in content["studies"]]
        claims = [(name, claim_of(each)) for name in names for each in content["studies"][name]["claims"]]
        held = sum(claim.verdict == HOLDS for _, claim in claims)
        source = STUDIES[names[0]].source.split(", figure")[0].split(", table")[0]
        parts.append(f"### {source}\n\n{held} of {len(claims)} claims hold. The others:\n")
        for verdict in (FAILS, DEPENDS, INCOMPARABLE):
            for name, claim in claims:
                if claim.verdict == verdict:
                    note = f" {claim.erratum}" if claim.erratum else ""
                    parts.append(f'* **{TOLD[verdict]}** ({name}): "{claim.text}" {claim.told}{note}')
        open_ones = [(name, claim) for name, claim in claims if claim.verdict == OPEN]
        if open_ones:
            listed = ", ".join(dict.fromkeys(name for name, _ in open_ones))
            parts.append(f"* **Open at this size**: {len(open_ones)} claims of {listed}.")
        parts.append("")
    return "\n".join(parts).rstrip()


if __name__ == "__main__":
    sys.exit(main())
