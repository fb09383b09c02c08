"""`python -m evidence.studies [SIZE=]FINDINGS...`: what came of the papers' claims, in evidence/studies.json and docs.

FINDINGS are files findings.json that `privet study run` writes: of `all`, or of some studies that were run again; the
size is quick unless it is named, as in medium=study/findings.json. What docs/reference/studies.md has between its
marks is made from evidence/studies.json and from nothing else.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import norm

import privet
from privet.studies.catalog import PAPERS, STUDIES
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, VERDICTS, Claim, ClaimReading

RESULT = Path(__file__).with_name("studies.json")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "studies.md"
MARKED = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- /claims -->)", re.DOTALL)
COMMAND = "privet study run all --medium"
DIFFERENCE = re.compile(r"([+-]\d+\.\d+) ± (\d+\.\d+) points")
WITH_ERROR = re.compile(r"([+-]\d+\.\d+) points \(standard error (\d+\.\d+)")
BELOW_ONE = re.compile(r"is (\d+\.\d+) points \((-?\d+\.\d+) to (-?\d+\.\d+)\)")  # a regret, held against 1
P_VALUE = re.compile(r"\(p =? ?(\d[\d.e-]*)")
ENOUGH = 2.576 + 0.842  # standard errors: found at the 1% level in four of five runs
WIDTH = 118
TOLD = {FAILS: "Does not hold", DEPENDS: "Depends on the reading", INCOMPARABLE: "Not comparable", OPEN: "Open"}


def main() -> int:
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    for name in sys.argv[1:]:
        size, _, path = name.rpartition("=")
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        for study, findings in found.items():
            trials = len(STUDIES[study].trials(size or "quick"))
            content["studies"][study] = {
                "source": STUDIES[study].source,
                "size": size or "quick",
                "trials": trials,
                "claims": [_written(claim_of(each), trials) for each in findings["claims"]],
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


def _written(claim: Claim, trials: int) -> dict[str, Any]:
    readings = [{"name": each.name, "holds": each.holds, "evidence": each.evidence} for each in claim.readings]
    found: dict[str, Any] = {
        "text": claim.text,
        "verdict": claim.verdict,
        "holds": claim.holds,
        "evidence": claim.evidence,
        "erratum": claim.erratum,
        "readings": readings,
        "incomparable": claim.incomparable,
    }
    if claim.verdict == OPEN:
        found["trials needed"] = needed(claim, trials)
    return {name: value for name, value in found.items() if value not in ("", [])}


def needed(claim: Claim, trials: int) -> int | None:
    """Return about how many trials would decide an open claim, from the numbers that left it open; None: no number can.

    A difference d with standard error s, of n repeats, is told from 0 at the 1% level in four of five runs if it is
    2.58 + 0.84 standard errors large: with (3.42 s / d)^2 times as many. A p-value says d / s. Of several that are too
    small the largest factor counts; a difference that is nothing at all needs more than can be run.
    """
    text = " ".join([claim.evidence, *(reading.evidence for reading in claim.readings if reading.holds is None)])
    differences = [*DIFFERENCE.findall(text), *WITH_ERROR.findall(text)]
    sizes = [abs(float(mean)) / max(float(error), 1e-9) for mean, error in differences]
    sizes += [abs(1 - float(mean)) / ((float(high) - float(low)) / 3.92) for mean, low, high in BELOW_ONE.findall(text)]
    sizes += [float(norm.isf(float(p) / 2)) for p in P_VALUE.findall(text)]
    unclear = [size for size in sizes if size < ENOUGH]
    if not unclear:
        return None
    factor = (ENOUGH / max(min(unclear), 0.01)) ** 2
    return int(round(trials * factor, 1 - len(str(int(trials * factor)))))


def counts(claims: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many claims have each verdict."""
    verdicts = [claim_of(claim).verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def table(content: Mapping[str, Any]) -> str:
    """A row for each study: how many of its claims have each verdict."""
    lines = [
        "| study | size | hold | do not | open | depend on the reading | not comparable |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, study in content["studies"].items():
        numbers = " | ".join(str(number) for number in counts(study["claims"]).values())
        lines.append(f"| {name} | {study.get('size', 'quick')} | {numbers} |")
    return "\n".join(lines)


def page(content: Mapping[str, Any]) -> str:
    """Return docs/reference/studies.md with what this content says of the papers."""
    text = f"{_papers(content)}\n\n{table(content)}\n"
    return MARKED.sub(lambda _: text, PAGE.read_text(encoding="utf-8"))


def _papers(content: Mapping[str, Any]) -> str:
    parts = []
    for paper in PAPERS:
        names = [study.name for study in paper.STUDIES if study.name in content["studies"]]
        claims = [(name, claim_of(each)) for name in names for each in content["studies"][name]["claims"]]
        held = sum(claim.verdict == HOLDS for _, claim in claims)
        source = STUDIES[names[0]].source.split(", figure")[0].split(", table")[0]
        source = source.split(", section")[0]
        parts.append(f"### {source}\n\n{held} of {len(claims)} claims hold. The others:\n")
        for verdict in (FAILS, DEPENDS, INCOMPARABLE):
            for name, claim in claims:
                if claim.verdict == verdict:
                    note = f" {claim.erratum}" if claim.erratum else ""
                    parts.append(_item(f'**{TOLD[verdict]}** ({name}): "{claim.text}" {claim.told}{note}'))
        for name in names:
            for each in content["studies"][name]["claims"]:
                claim = claim_of(each)
                if claim.verdict == OPEN:
                    asked = each.get("trials needed")
                    more = f"About {asked:,} trials would tell" if asked else NO_NUMBER
                    parts.append(_item(f'**{TOLD[OPEN]}** ({name}): "{claim.text}" {claim.told} {more}.'))
        parts.append("")
    return "\n".join(parts).rstrip()


def _item(words: str) -> str:
    """Return a point of a list, in lines that people can read."""
    return "\n".join(textwrap.wrap(words, WIDTH, initial_indent="* ", subsequent_indent="  ", break_on_hyphens=False))


NO_NUMBER = "No number of trials tells: it is open for another reason than chance"


if __name__ == "__main__":
    sys.exit(main())
