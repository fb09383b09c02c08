"""The code a privacy reviewer reads line by line.

Exact values of private rows exist only in here, under names that start with
`exact_`. Everything that leaves is a release, a public value or an error whose text
depends on no row. In-process Python cannot stop a hostile caller: for untrusted
analysts the boundary is a server that holds this package on its side.
"""

from privet.kernel.accounting import SMALLEST_EPSILON, Scope, as_epsilon, charge
from privet.kernel.criteria import Criterion, GainRatio, Gini, InfoGain, LargestCell, Max, WeightedMax, criterion
from privet.kernel.enumeration import WorstLoss, worst_loss
from privet.kernel.inspection import print_outside
from privet.kernel.ledger import Charge, Entry, Ledger
from privet.kernel.mechanisms import (
    Exponential,
    ExponentialOverRanges,
    IntegerLaplace,
    NoisyMax,
    PermuteAndFlip,
    ResidualLaplace,
    noise_is_private,
    seeded_noise,
)
from privet.kernel.opening import ledger_path, open_public, open_table, source_of
from privet.kernel.query import LOGIT_GRID, RESIDUAL_GRID, AdditiveModel
from privet.kernel.release import Choice, Count, Histogram, Mean, Quantile, Release, Releases, ResidualSums, Sum
from privet.kernel.session import Budget
from privet.kernel.table import MAX_CELLS, Parts, ProtectedTable, PublicTable

__all__ = [
    "LOGIT_GRID",
    "MAX_CELLS",
    "RESIDUAL_GRID",
    "SMALLEST_EPSILON",
    "AdditiveModel",
    "Budget",
    "Charge",
    "Choice",
    "Count",
    "Criterion",
    "Entry",
    "Exponential",
    "ExponentialOverRanges",
    "GainRatio",
    "Gini",
    "Histogram",
    "InfoGain",
    "IntegerLaplace",
    "LargestCell",
    "Ledger",
    "Max",
    "Mean",
    "NoisyMax",
    "Parts",
    "PermuteAndFlip",
    "ProtectedTable",
    "PublicTable",
    "Quantile",
    "Release",
    "Releases",
    "ResidualLaplace",
    "ResidualSums",
    "Scope",
    "Sum",
    "WeightedMax",
    "WorstLoss",
    "as_epsilon",
    "charge",
    "criterion",
    "ledger_path",
    "noise_is_private",
    "open_public",
    "open_table",
    "print_outside",
    "seeded_noise",
    "source_of",
    "worst_loss",
]
