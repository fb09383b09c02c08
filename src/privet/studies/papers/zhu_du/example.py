"""Zhu and Du's example 1 and its figure 5: six people, a tree of one split, and what it tells about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.optimize import brentq

from privet.studies.findings import Cell, Claim, Findings, Number, Panel
from privet.studies.papers.zhu_du.trees import CASES, GAIN, PAPER, PLAIN, Result, Tree, claimed, number, results
from privet.studies.published import numbers
from privet.studies.trial import Outcome, Trial

WORLDS = "possible worlds"
TREE = Trial("example 1", "id3", options=Tree(1).options(GAIN), settings=(("task", "audit"),))
EXAMPLES = {
    "SA": replace(TREE, settings=(*TREE.settings, *CASES[PLAIN])),
    "SB": TREE,
    WORLDS: replace(TREE, settings=(*TREE.settings, ("worlds", True))),
}
PROFILES = {
    1: "age = Youth, education = Doctorate",
    2: "age = Senior, education = Masters",
    3: "age = Senior, education = Doctorate",
    4: "age = MiddleAge, education = Masters",
}
# of the printed model: the choice of the split does not bind, so that SB is SA
CLOSED = {
    **dict.fromkeys(("x20", "x21", "x30", "x31"), 0.5),
    "Do": math.log(2) / 3,
    **dict.fromkeys(("Dq2", "Dq3"), math.log(2)),
}


def read_example(outcomes: Sequence[Outcome]) -> Findings:
    """The paper's table beside ours, and beside what the printed numbers are."""
    known = results(outcomes)
    found = {name: known[trial.key] for name, trial in EXAMPLES.items() if trial.key in known}
    cells: list[Cell] = []
    if found:
        cells += _row("SO", next(iter(found.values())), "truth")
    for name, result in found.items():
        cells += _row(name, result, WORLDS if name == WORLDS else "maximum entropy")
    if "SB" in found:
        cells += _reversed()
    return Findings(
        panels=(Panel("Example 1", "variable", tuple(cells), y="probability or divergence", kind="table"),),
        claims=(_example(found), _confidence(found)),
        notes=(
            "xi0 is the probability of <=50K for the profile qi, xi1 that of >50K; Do is the overall divergence, Dqi "
            "that of a profile.",
            "'SB, reversed' is the optimum for the inequality the wrong way round, with q2 and q3 exchanged.",
            "The printed row SB gives q3 .815 for <=50K, which with .815 for q2 breaks the error rate of their leaf, "
            "and is not what its own Dq3 = .205 says: x30 and x31 are exchanged in print.",
        ),
    )


def reversed_boundary() -> float:
    """Where the constraint of example 1, the wrong way round, would bind: 1 - t, H2(t / 3) = 1/3 bit.

    >>> round(reversed_boundary(), 6)
    0.815529
    """

    def bits(p: float) -> float:
        return -p * math.log2(p) - (1 - p) * math.log2(1 - p)

    return 1 - 3 * float(brentq(lambda p: bits(p) - 1 / 3, 1e-9, 0.5))


def _row(series: str, result: Result, adversary: str) -> list[Cell]:
    paper = numbers(PAPER, "figure-5")
    shares, divergences = result["shares"][adversary], result["divergences"][adversary]
    values = {f"x{i}{j}": shares[PROFILES[i]][j] for i in PROFILES for j in (0, 1)}
    if series != "SO":
        values |= {"Do": result["overall"][adversary], **{f"Dq{i}": divergences[PROFILES[i]] for i in (2, 3)}}
    closed = {at: Number(value) for at, value in CLOSED.items()} if series in ("SA", "SB") else {}
    return [Cell(series, at, number(value), paper.get((series, at)), closed.get(at)) for at, value in values.items()]


def _reversed() -> list[Cell]:
    """SB as it must have come about."""
    paper, right = numbers(PAPER, "figure-5"), reversed_boundary()
    far = -math.log(right)
    values = {"x20": right, "x21": 1 - right, "x30": 1 - right, "x31": right, "Do": far / 3, "Dq2": far, "Dq3": far}
    return [Cell("SB, reversed", at, number(value), paper["SB", at]) for at, value in values.items()]


def _example(found: Mapping[str, Result]) -> Claim:
    if not {"SA", "SB"} <= set(found):
        return Claim(claimed("example"), None, "there is no result yet")
    without, having = (float(found[name]["D"]) for name in ("SA", "SB"))
    return Claim(
        claimed("example"),
        having < without - 1e-6,
        f"overall divergence {without:.4f} without, {having:.4f} with implicit information",
        "The printed inequality does not bind: with x20 = t it asks H2(t / 3) >= 1/3 bit, which excludes t < .1845 "
        "alone, so that t = .5 stays the optimum and SB is SA. The printed .815 is the boundary 1 - .1845 of the "
        "inequality the wrong way round, with q2 and q3 exchanged.",
    )


def _confidence(found: Mapping[str, Result]) -> Claim:
    if WORLDS not in found:
        return Claim(claimed("confidence"), None, "there is no result yet")
    result = found[WORLDS]
    surest = min(max(shares) for shares in result["shares"][WORLDS].values())
    known = result["known"]
    return Claim(
        claimed("confidence"),
        surest > 1 - 1e-9,
        f"of {result['people']} people {known[WORLDS]} are known by data sets in whole people, "
        f"{known['maximum entropy']} by maximum entropy",
        "It is right of data sets in whole people, of which exactly one agrees with the tree. Maximum entropy, the "
        "paper's own method, loses this.",
    )
