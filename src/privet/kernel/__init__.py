"""The code a privacy reviewer reads line by line.

Exact values of private rows exist only in here, under names that start with
`exact_`. Everything that leaves is a release, a public value or an error whose text
depends on no row. In-process Python cannot stop a hostile caller: for untrusted
analysts the boundary is a server that holds this package on its side.
"""

from privet.kernel.accounting import LARGEST_EPSILON, SMALLEST_EPSILON, Scopes, as_epsilon, charge
from privet.kernel.additive import LOGIT_GRID, RESIDUAL_GRID, AdditiveModel
from privet.kernel.addresses import ledger_path, source_of
from privet.kernel.canonical import Json, canonical, digest
from privet.kernel.column import (
    MAX_GRID,
    MISSING,
    OTHER,
    UNWRITABLE,
    Column,
    Nominal,
    Numeric,
    as_series,
    canonical_text,
    number_of,
    text_of,
)
from privet.kernel.criteria import (
    Criterion,
    Gini,
    InfoGain,
    LargestCell,
    Max,
    WeightedMax,
    criterion,
    install,
    public_scores,
)
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Engine
from privet.kernel.inspection import print_outside
from privet.kernel.ledger import Charge, Entry, Ledger
from privet.kernel.limits import (
    DEEPEST_TREE,
    LONGEST_DOMAIN,
    LONGEST_MODEL,
    LONGEST_QUESTION,
    LONGEST_TEXT,
    MAX_CELLS,
    MAX_RELEASED,
    MOST_ROWS,
    SHOWN,
    clean,
    decimal_text,
    finite_of,
    fraction_of,
    quoted,
    read_text,
    short_text,
    shown,
    whole_of,
)
from privet.kernel.mechanisms import (
    AboveThreshold,
    Exponential,
    ExponentialOverRanges,
    IntegerLaplace,
    Mechanism,
    NoisyMax,
    Paired,
    PermuteAndFlip,
    Ranges,
    Refinement,
    ResidualLaplace,
    SumAndCount,
    release_all,
)
from privet.kernel.monitor import Monitor
from privet.kernel.opening import open_seeded, open_table, refuse_spent, seeded_noise, session_in_memory
from privet.kernel.per_part import PerPart
from privet.kernel.questions import (
    QUESTIONS,
    CountCorrectQuestion,
    CountQuestion,
    HistogramQuestion,
    Quality,
    Question,
    SelectQuestion,
    SelectThresholdQuestion,
    question_from_json,
)
from privet.kernel.racing import Raced, race
from privet.kernel.release import (
    About,
    Choice,
    Count,
    Derived,
    Histogram,
    Mean,
    Public,
    Quantile,
    Release,
    Releases,
    ResidualSums,
    Sum,
    known,
)
from privet.kernel.rows import Rows
from privet.kernel.sampling import SYSTEM, Entropy, SeededEntropy, SystemEntropy
from privet.kernel.session import Budget, RowSets, Session
from privet.kernel.table import InProcess, Parts, ProtectedTable

__all__ = [
    "LOGIT_GRID",
    "MAX_CELLS",
    "MAX_RELEASED",
    "RESIDUAL_GRID",
    "SMALLEST_EPSILON",
    "SYSTEM",
    "AboveThreshold",
    "AdditiveModel",
    "Budget",
    "Charge",
    "Choice",
    "Count",
    "Criterion",
    "Derived",
    "Entropy",
    "Entry",
    "Exponential",
    "ExponentialOverRanges",
    "Gini",
    "Histogram",
    "InfoGain",
    "IntegerLaplace",
    "LargestCell",
    "Ledger",
    "Max",
    "Mean",
    "Monitor",
    "NoisyMax",
    "Parts",
    "PermuteAndFlip",
    "ProtectedTable",
    "Public",
    "Quantile",
    "Raced",
    "Refinement",
    "Release",
    "Releases",
    "ResidualLaplace",
    "ResidualSums",
    "Scopes",
    "SeededEntropy",
    "Sum",
    "SumAndCount",
    "SystemEntropy",
    "WeightedMax",
    "as_epsilon",
    "charge",
    "criterion",
    "known",
    "ledger_path",
    "open_seeded",
    "open_table",
    "print_outside",
    "public_scores",
    "race",
    "refuse_spent",
    "seeded_noise",
    "source_of",
]

# columns
__all__ += [
    "MAX_GRID",
    "MISSING",
    "OTHER",
    "UNWRITABLE",
    "Column",
    "Nominal",
    "Numeric",
    "as_series",
    "canonical_text",
    "decimal_text",
    "number_of",
    "short_text",
    "text_of",
]

# domains
__all__ += ["Domain"]

# limits of what comes from outside, and its texts
__all__ += [
    "DEEPEST_TREE",
    "LONGEST_DOMAIN",
    "LONGEST_MODEL",
    "LONGEST_QUESTION",
    "LONGEST_TEXT",
    "MOST_ROWS",
    "SHOWN",
    "clean",
    "finite_of",
    "fraction_of",
    "quoted",
    "read_text",
    "shown",
    "whole_of",
]

# for privet.lab
__all__ += [
    "LARGEST_EPSILON",
    "About",
    "CountCorrectQuestion",
    "CountQuestion",
    "Engine",
    "HistogramQuestion",
    "InProcess",
    "Mechanism",
    "Paired",
    "Ranges",
    "RowSets",
    "Rows",
    "SelectQuestion",
    "SelectThresholdQuestion",
    "Session",
    "release_all",
    "session_in_memory",
]

# questions as values
__all__ += [
    "QUESTIONS",
    "Json",
    "PerPart",
    "Quality",
    "Question",
    "canonical",
    "digest",
    "install",
    "question_from_json",
]
