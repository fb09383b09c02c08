"""What the paper says, in its own words, and the errata that more than one figure has."""

from __future__ import annotations

from privet.studies.findings import At, Number
from privet.studies.published import numbers, printed

PAPER = "friedman_schuster"
SOURCE = "Friedman and Schuster, Data mining with differential privacy, KDD 2010"

PLOT = "The numbers of this figure are drawn and not printed in the paper: ours stand alone."
RANGES = (
    "The chances of ranges of thresholds are printed as exp(epsilon c), without 2 S(q). For Max that is private all "
    "the same; for Gini it loses twice and for InfoGain 14 (5,000 rows) to 17 times (50,000) the epsilon that is "
    "charged. DiffPC4.5-Gini and DiffPC4.5-InfoGain follow the print: they are not private, and choose thresholds "
    "better than Definition 3 would let them."
)
AS_PRINTED = "printed, without 2 S(q) in the chances of ranges"
ON_THE_LEFT = "with 2 S(q), which stands on the left of the same equation"
JOINTLY = (
    "A threshold is bought for every numeric attribute and one of them is used. In the lines that are called corrected "
    "it is chosen together with the attribute in one selection, by all of the exponent that scores moving in one "
    "direction allow; these are private with every scorer."
)


def said(claim: str) -> str:
    """A sentence of the paper."""
    return str(printed(PAPER)["claims"][claim])


def table_1() -> dict[tuple[str, At], Number]:
    return numbers(PAPER, "table-1")
