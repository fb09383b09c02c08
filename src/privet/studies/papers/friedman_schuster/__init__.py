"""Friedman and Schuster, Data mining with differential privacy, KDD 2010: sections 4 and 5."""

from __future__ import annotations

from privet.studies.papers.friedman_schuster import adult, asked_next, deep_trees, numeric_split, single_split
from privet.studies.papers.friedman_schuster.claims import SOURCE
from privet.studies.papers.friedman_schuster.closed_form import single_split as run_single_split
from privet.studies.study import Study
from privet.studies.trial import Work

STUDIES: tuple[Study, ...] = (
    Study(
        "friedman-schuster-table-1",
        "A single split: accuracy and deviation",
        f"{SOURCE}, table 1",
        single_split.table_1_trials,
        single_split.read_table_1,
        about="The class is one of ten binary attributes, and a tenth of all values is replaced by coins. B = 0.1 buys "
        "a tree of one split from 1,000 to 5,000 rows, 200 times each.",
    ),
    Study(
        "friedman-schuster-figure-2",
        "A Pareto frontier: accuracy against privacy",
        f"{SOURCE}, figure 2",
        deep_trees.figure_2_trials,
        deep_trees.read_figure_2,
        about="Given 50,000 rows, which algorithm should be taken at which epsilon? The paper draws an example with "
        "three that do not exist; here are those of its section 5, and ID3+ beside them.",
    ),
    Study(
        "friedman-schuster-figure-3",
        "A single split by a binary attribute",
        f"{SOURCE}, figure 3",
        single_split.figure_3_trials,
        single_split.read_figure_3,
        about="As table 1, from 100 to 5,000 rows; and SuLQ-based ID3 up to where it finds the split.",
    ),
    Study(
        "friedman-schuster-figure-4",
        "A single split of a number",
        f"{SOURCE}, figure 4",
        numeric_split.figure_4_trials,
        numeric_split.read_figure_4,
        about="As figure 3, with three numbers from 0 to 100 among the ten attributes: the class changes where one of "
        "them passes 35.",
    ),
    Study(
        "friedman-schuster-figure-5",
        "Numbers cut at a threshold or put into bins",
        f"{SOURCE}, figure 5",
        numeric_split.figure_5_trials,
        numeric_split.read_figure_5,
        about="The rows of figure 4 without noise: DiffPC4.5 buys thresholds, DiffPID3 saves that and has ten bins, of "
        "which one is cut in two by 35. B = 0.2.",
    ),
    Study(
        "friedman-schuster-figure-6",
        "Trees of depth 5, nominal attributes",
        f"{SOURCE}, figure 6",
        deep_trees.figure_6_trials,
        deep_trees.read_figure_6,
        about="Ten random trees over ten binary attributes, 20 training sets from each, 1,000 to 50,000 rows, B = 1.",
    ),
    Study(
        "friedman-schuster-figure-7",
        "Trees of depth 5, nominal and numeric attributes",
        f"{SOURCE}, figure 7",
        deep_trees.figure_7_trials,
        deep_trees.read_figure_7,
        about="As figure 6, with three numbers among the ten attributes, so by DiffPC4.5.",
    ),
    Study(
        "friedman-schuster-figure-8",
        "Adult: accuracy against the budget",
        f"{SOURCE}, figure 8",
        adult.figure_8_trials,
        adult.read_figure_8,
        data=("adult",),
        about="DiffPC4.5 to depth 5 on the 45,222 complete rows of Adult with its 14 attributes, ten times ten-fold "
        "cross-validation, scorers compared by a corrected paired t-test.",
    ),
    Study(
        "friedman-schuster-grid",
        "Depths 3, 5 and 10, attributes and classes of 2, 3 and 5 values",
        f"{SOURCE}, section 5.1.2",
        asked_next.grid_trials,
        asked_next.read_grid,
        about="The paper learned trees of all these shapes, B = 1, and printed those of depth 5 with two values.",
    ),
    Study(
        "friedman-schuster-tactics",
        "Where the budget goes, when to stop, and what can be relied upon",
        f"{SOURCE}, section 6",
        asked_next.tactics_trials,
        asked_next.read_tactics,
        about="The conclusion asks for other tactics to distribute the budget, other stopping rules, and accuracy that "
        "is guaranteed and not just obtained on average. Each way is run several times on each of several trees.",
    ),
)
TASKS: dict[str, Work] = {"single-split": run_single_split}
