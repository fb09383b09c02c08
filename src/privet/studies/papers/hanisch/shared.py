"""What the studies of Hanisch's paper have in common: its table, its words, and how a claim is decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from privet.studies.findings import Claim, ClaimReading, Number
from privet.studies.published import numbers, printed

PAPER = "hanisch"
SOURCE = "Hanisch, Differential Privacy for Decision Trees, seminar paper, TU Braunschweig"
DATA = "adult/rebalanced"
NEEDS = ("adult",)
TINY_ROWS = 400  # to learn from, in tests

TABLE = (
    "The table is Adult as section IV.D describes it. The paper does not print how values were grouped beyond a "
    "sample, which rows were deleted, or how rows were held out. Here: the complete rows of both files; age up to 37 "
    "or from 38, schooling in six levels, hours up to 36, to 50 or more, the other columns as they are; all 11,208 "
    "rows with a high income and 12,438 with a low one, drawn once, which makes 52.6%; a tenth held out at random."
)
NO_PLOT = "The numbers of the plot are not printed in the paper: only what its text states stands beside ours."


def number(figure: str, series: str, at: str) -> Number:
    return numbers(PAPER, figure)[series, at]


def claim(figure: str, name: str, holds: bool | None, evidence: str, erratum: str = "", remark: str = "") -> Claim:
    """A sentence of the paper and what came of it; an erratum stands where it does not hold, a remark in any case."""
    text = printed(PAPER)[figure]["claims"][name]
    return Claim(text, holds, evidence, erratum if holds is False else remark)


def read_claim(figure: str, name: str, readings: Sequence[ClaimReading], note: str) -> Claim:
    """A sentence of the paper that can be read in several ways."""
    return Claim.read(printed(PAPER)[figure]["claims"][name], readings, erratum=note)


def agreed(verdicts: Iterable[bool]) -> bool | None:
    """What every split of the rows says; None where they disagree, or there is only one."""
    found = [bool(each) for each in verdicts]
    return found[0] if len(found) > 1 and len(set(found)) == 1 else None


def luck(truth: float, published: float) -> int:
    """The most tested rows of which a rule that is right in `truth` percent has `published` percent right by chance.

    Once in a thousand tests, by the normal distribution.

    >>> luck(81, 86.6)
    468
    """
    share = truth / 100
    return math.floor((3.0902 * math.sqrt(share * (1 - share)) / ((published - truth) / 100)) ** 2)


def beyond(ceiling: float, published: float) -> str:
    """Whether a published accuracy is possible on this table, or what luck it takes."""
    if ceiling >= published:
        return f"The best rule there is has {ceiling:.2f}% on this table."
    return (
        f"No rule is right in more than {ceiling:.2f}% of this table. Even the best shows {published:g}% by chance, "
        f"once in a thousand tests, only with {luck(ceiling, published):,} tested rows or fewer; the paper does not "
        "say how many were tested."
    )
