"""`python -m evidence.studies [SIZE=]FINDINGS...`: what came of the papers' claims, in evidence/studies.json and docs.

FINDINGS are files findings.json that `privet study run` writes: of `all`, or of some studies that were run again; the
size is quick unless it is named, as in medium=study/findings.json. What trials cost is read from results.jsonl beside
it; of that file itself, as in medium=study/results.jsonl, the cost alone is written. What docs/reference/studies.md has
between its marks is made from evidence/studies.json and from nothing else.
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
from privet.studies.cost import Cost, cost
from privet.studies.findings import DEPENDS, FAILS, HOLDS, INCOMPARABLE, OPEN, VERDICTS, Claim, ClaimReading
from privet.studies.folder import RESULTS
from privet.studies.papers.hanisch import jagannathan, plain
from privet.studies.trial import Trial, recorded

RESULT = Path(__file__).with_name("studies.json")
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "studies.md"
MARKED = re.compile(r"<!-- (claims|cost) -->\n.*?<!-- /\1 -->", re.DOTALL)
COMMAND = "privet study run all --medium"
DIFFERENCE = re.compile(r"([+-]\d+\.\d+) ± (\d+\.\d+) points")
WITH_ERROR = re.compile(r"([+-]\d+\.\d+) points \(standard error (\d+\.\d+)")
BELOW_ONE = re.compile(r"is (\d+\.\d+) points \((-?\d+\.\d+) to (-?\d+\.\d+)\)")  # a regret, held against 1
P_VALUE = re.compile(r"\bp =? ?(\d[\d.e-]*)")
TOO_LITTLE = "below 1 point for certain"  # a claim that also fails if what it says is surely little
ENOUGH = 2.576 + 0.842  # standard errors: found at the 1% level in four of five runs
WIDTH = 118
TOLD = {FAILS: "Does not hold", DEPENDS: "Depends on the reading", INCOMPARABLE: "Not comparable", OPEN: "Open"}


def main() -> int:
    content = json.loads(RESULT.read_text(encoding="utf-8"))
    for argument in sys.argv[1:]:
        size, _, path = argument.rpartition("=")
        _publish(content, Path(path), size or "quick")
    content["privet"], content["command"] = privet.__version__, COMMAND
    content["studies"] = {name: content["studies"][name] for name in STUDIES if name in content["studies"]}
    content["counts"] = {name: counts(study["claims"]) for name, study in content["studies"].items()}
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(content), encoding="utf-8")
    print(duration(content), table(content), sep="\n\n")
    return 0


def _publish(content: dict[str, Any], path: Path, size: str) -> None:
    """Write the claims that a file of findings judges, and what the trials beside it cost."""
    known = recorded(path.with_name(RESULTS))
    judged = {} if path.name == RESULTS else json.loads(path.read_text(encoding="utf-8"))
    for study, findings in judged.items():
        trials = len(STUDIES[study].trials(size))
        content["studies"][study] = {
            "source": STUDIES[study].source,
            "size": size,
            "trials": trials,
            "claims": [_written(claim_of(each), trials, study, size) for each in findings["claims"]],
        }
    for name, study in STUDIES.items():
        spent = cost(study.trials(size), known)
        if spent and content["studies"].get(name, {}).get("size") == size:
            content["studies"][name]["cost"] = _cost_written(spent)
    whole = {each: cost(all_trials(each), known) for each in dict.fromkeys(("quick", size))}
    if whole[size]:
        content["cost"] = {each: _cost_written(spent) for each, spent in whole.items() if spent}


def all_trials(size: str) -> list[Trial]:
    """The trials of all studies; those that studies share stand in it more than once."""
    return [trial for study in STUDIES.values() for trial in study.trials(size)]


def _cost_written(found: Cost) -> dict[str, Any]:
    return {"trials": found.trials, "measured": found.measured, "CPU seconds": round(found.seconds, 1)}


def _cost_of(content: Mapping[str, Any]) -> Cost:
    return Cost(content["trials"], content["measured"], content["CPU seconds"])


def claim_of(content: Mapping[str, Any]) -> Claim:
    """A claim as it was recorded."""
    readings = tuple(ClaimReading(**each) for each in content.get("readings", ()))
    texts = {name: content.get(name, "") for name in ("erratum", "incomparable")}
    return Claim(content["text"], content["holds"], content.get("evidence", ""), readings=readings, **texts)


def _written(claim: Claim, trials: int, study: str, size: str) -> dict[str, Any]:
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
        found["trials needed"] = needed(claim, trials, SPLITS_SHARE_ROWS.get(study, {}).get(size))
    return {name: value for name, value in found.items() if value not in ("", [])}


def needed(claim: Claim, trials: int, splits: int | None = None) -> int | None:
    """Return about how many trials would decide an open claim, from the numbers that left it open; None: no number can.

    A difference d with standard error s, of n repeats, is told from 0 at the 1% level in four of five runs if it is
    2.58 + 0.84 standard errors large: with (3.42 s / d)^2 times as many. A p-value says d / s. Of several that are too
    small the largest factor counts; a difference that is nothing at all needs more than can be run. Where a test knows
    that `splits` share rows (`corrected_t_test`), a part of s is left however many there are, and often too much of it.
    """
    text = " ".join([claim.evidence, *(reading.evidence for reading in claim.readings if reading.holds is None)])
    differences = [*DIFFERENCE.findall(text), *WITH_ERROR.findall(text)]
    bounds = (0.0, 1.0) if TOO_LITTLE in text else (0.0,)
    sizes = [max(abs(float(mean) - bound) for bound in bounds) / max(float(error), 1e-9) for mean, error in differences]
    sizes += [abs(1 - float(mean)) / ((float(high) - float(low)) / 3.92) for mean, low, high in BELOW_ONE.findall(text)]
    sizes += [float(norm.isf(float(p) / 2)) for p in P_VALUE.findall(text)]
    unclear = [size for size in sizes if size < ENOUGH]
    if not unclear:
        return None
    factor = (ENOUGH / max(min(unclear), 0.01)) ** 2
    if splits:
        left = (1 / splits + SHARED) / factor - SHARED
        if left <= 0:
            return None
        factor = 1 / (splits * left)
    return int(round(trials * factor, 1 - len(str(int(trials * factor)))))


def counts(claims: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many claims have each verdict."""
    verdicts = [claim_of(claim).verdict for claim in claims]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def table(content: Mapping[str, Any]) -> str:
    """A row for each study: how many of its claims have each verdict."""
    lines = [
        "| study | size | trials | CPU seconds | hold | do not | open | depend on the reading | not comparable |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, study in content["studies"].items():
        numbers = " | ".join(str(number) for number in counts(study["claims"]).values())
        lines.append(f"| {name} | {study['size']} | {study['trials']:,} | {_took(study.get('cost'))} | {numbers} |")
    return "\n".join(lines)


def _took(spent: Mapping[str, Any] | None) -> str:
    if spent is None:
        return "not measured"
    return f"{'' if spent['measured'] == spent['trials'] else 'about '}{spent['CPU seconds']:,.0f}"


def duration(content: Mapping[str, Any]) -> str:
    """What all studies cost at each size, in a sentence each."""
    sentences = []
    for size, each in content["cost"].items():
        spent = _cost_of(each)
        sentences.append(f"`--{size}`: {spent}, so about {spent.seconds / 120:,.0f} minutes on two cores.")
    return "\n".join(_wrapped(f"* {sentence}") for sentence in sentences)


def page(content: Mapping[str, Any]) -> str:
    """Return docs/reference/studies.md with what this content says of the papers."""
    texts = {"claims": f"{_papers(content)}\n\n{table(content)}\n", "cost": f"{duration(content)}\n"}
    return MARKED.sub(
        lambda found: f"<!-- {found[1]} -->\n{texts[found[1]]}<!-- /{found[1]} -->", PAGE.read_text(encoding="utf-8")
    )


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
                    parts.append(_item(TOLD[verdict], name, claim, claim.erratum))
        for name in names:
            for each in content["studies"][name]["claims"]:
                claim = claim_of(each)
                if claim.verdict == OPEN:
                    asked = each.get("trials needed")
                    more = f"About {asked:,} trials would tell." if asked else _why_open(name, claim)
                    parts.append(_item(TOLD[OPEN], name, claim, more))
        parts.append("")
    return "\n".join(parts).rstrip()


def _item(verdict: str, name: str, claim: Claim, more: str) -> str:
    """Return a point of a list, with a point for each reading, in lines that people can read."""
    said = claim.text if name in IN_OUR_WORDS else f'"{claim.text}"'
    facts = " ".join(words for words in (claim.evidence, claim.incomparable) if words)
    lines = [f"* **{verdict}** ({name}): {said} {facts}".rstrip()]
    lines += [f"  * {each}" for each in claim.readings]
    if claim.readings and more:
        lines += [f"  * {more}"]
    elif more:
        lines[0] += f"{'' if lines[0].endswith('.') else '.'} {more}"
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False))


# Studies that are judged by a test which knows that splits share rows, and how many splits each size has.
SPLITS_SHARE_ROWS = {"hanisch-figure-7": jagannathan.MUSHROOM_FOLDS, "hanisch-figure-10": plain.SPLITS}
SHARED = 1 / 9  # of the variance of a difference, where a tenth of the rows is held out
IN_OUR_WORDS = ("dpcomp-histograms",)

_NEAR = (
    "No mean of the reading that stays open is surely more than a point from print, counting the error of the printed "
    "ones, which more trials of ours do not make smaller."
)
# Claims that stay open for another reason than the number of trials: by study, and how the claim begins.
OPEN_FOR = {
    ("hanisch-figure-7", "The random trees"): "No number of folds tells: they share the rows of one table, and the "
    "difference is smaller than what that leaves uncertain.",
    ("hanisch-figure-10", "Accuracy decreases"): "No number of splits tells: they share the rows of one table, and the "
    "difference is smaller than what that leaves uncertain.",
    ("liu-table-2", "The eight"): f"{_NEAR} With 1,000 folds it stays so: at epsilon 0.1, where 90.68% is printed, "
    "MaxForest has 88.83 ± 0.11% with growth stopped at depth 4 (a test repeats this).",
    ("liu-table-3", "The eight"): f"{_NEAR} With 1,000 folds it stays so: at epsilon 0.25, where 80.13% is printed, "
    "MaxTree has 81.27 ± 0.02% with Weka's bins, and 81.43 ± 0.02% with both files of Adult (a test repeats this). No "
    "reading that was tried has all sixteen printed means of this table within a point.",
    ("liu-table-3", "On adult both show"): "Deviations are smaller at some budgets and larger at others; more trials "
    "do not make them agree.",
    ("dpcomp-histograms", "Where there are many"): "It takes more public tables, not more trials on these four.",
    ("dpcomp-histograms", "Levels of counts"): "It takes more public tables, not more trials on these four.",
}


def _why_open(name: str, claim: Claim) -> str:
    """Return why no number of trials is named for an open claim."""
    return next(why for (study, start), why in OPEN_FOR.items() if study == name and claim.text.startswith(start))


if __name__ == "__main__":
    sys.exit(main())
