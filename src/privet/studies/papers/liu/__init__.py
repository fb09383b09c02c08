"""Liu, Li, Li and Chen, Differentially private classification with decision tree ensemble, Applied Soft Computing 2018.

Section 4: how many counts trees ask for. Section 6: MaxTree and MaxForest by budget (tables 2 and 3, figures 7 and 8)
and by the number k of attributes on a path (figures 9 and 10), beside two forests of random trees. The paper leaves
open how an attribute is scored, by its largest cell or by the sum over its cells: both are run, with the paper's k for
each budget and with 3 throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from privet.studies.papers.liu import query_analysis
from privet.studies.papers.liu.read import BUDGET, read_by_k, read_figure, read_table
from privet.studies.papers.liu.runs import EPSILONS, MAXIMAL, OTHERS, PAPER, PRINTED_K, RANDOM, READINGS, SMALL_K
from privet.studies.papers.liu.walk import walked
from privet.studies.published import printed
from privet.studies.study import Study
from privet.studies.trial import Pairs, Trial, Work

SOURCE = "Liu, Li, Li and Chen, Differentially private classification with decision tree ensemble, ASOC 62 (2018)"
FOLDS, TREES = 10, int(printed(PAPER)["setup"]["trees"])
# a bootstrap is not private: public rows alone
UNSAFE: dict[str, Pairs] = {"maxtree": (), "maxforest": (("unsafe", True),)}
DEEP = 8  # attributes on a path from which trees take long


@dataclass(frozen=True)
class Extent:
    """How much of the paper's runs is repeated: folds, and how many of them with deep trees and with random ones."""

    folds: int
    deep: int
    random: int
    epsilons: tuple[str, ...]
    ks: tuple[int, ...]
    rows: int | None = None

    def folds_for(self, k: int) -> range:
        return range(self.deep if k >= DEEP else self.folds)


TINY = Extent(2, 2, 2, ("0.01", "0.1", "0.5"), (1, 3, 6), rows=500)
FULL = Extent(1000, 1000, 1000, EPSILONS, tuple(range(1, 11)))  # ten folds, a hundred times
SOME_KS = (1, 2, 3, 4, 5, 7, 10)
MUSHROOM, ADULT = Extent(100, 30, 30, EPSILONS, SOME_KS), Extent(60, 20, 60, EPSILONS, SOME_KS)  # an hour
EXTENTS: dict[str, dict[str, Extent]] = {
    "mushroom": {"tiny": TINY, "quick": Extent(12, 4, 5, EPSILONS, SOME_KS), "medium": MUSHROOM, "full": FULL},
    "adult": {"tiny": TINY, "quick": Extent(5, 3, 4, EPSILONS, SOME_KS), "medium": ADULT, "full": FULL},
}


def _maximal(data: str, extent: Extent, k: int, epsilon: str) -> list[Trial]:
    """MaxTree and MaxForest in both readings, as published."""
    return [
        Trial(
            f"{data}/liu",
            learner,
            epsilon,
            fold,
            extent.rows,
            (("max_depth", k), ("score", score), ("variant", "published"), *UNSAFE[learner]),
            (("folds", FOLDS), ("task", "walk")),
        )
        for fold in extent.folds_for(k)
        for learner in MAXIMAL
        for score in READINGS
    ]


def _other(data: str, extent: Extent) -> list[Trial]:
    """The readings of a table that are not those of score and k."""
    return [
        Trial(
            f"{data}/{way.form}",
            learner,
            epsilon,
            fold,
            extent.rows,
            (
                *(("max_depth", PRINTED_K[epsilon] if way.k is None else way.k), ("score", way.score)),
                *(("variant", "published"), *UNSAFE[learner]),
                *((("cut", way.cut),) if way.cut else ()),
            ),
            (("folds", FOLDS), ("task", "walk")),
        )
        for way in OTHERS[data]
        for epsilon in extent.epsilons
        for fold in range(extent.folds)
        for learner in MAXIMAL
    ]


def _random(data: str, extent: Extent, epsilon: str) -> list[Trial]:
    options = (("n_estimators", TREES), ("variant", "published"))
    return [
        Trial(f"{data}/liu", learner, epsilon, fold, extent.rows, options, (("folds", FOLDS),))
        for fold in range(extent.random)
        for learner in RANDOM
    ]


def _by_budget(data: str, size: str) -> list[Trial]:
    extent = EXTENTS[data][size]
    pairs = [(k, epsilon) for epsilon in extent.epsilons for k in dict.fromkeys((PRINTED_K[epsilon], SMALL_K))]
    return [*(trial for k, epsilon in pairs for trial in _maximal(data, extent, k, epsilon)), *_other(data, extent)]


def _beside_random(data: str, size: str) -> list[Trial]:
    extent = EXTENTS[data][size]
    beside = [trial for epsilon in extent.epsilons for trial in _random(data, extent, epsilon)]
    return [*_by_budget(data, size), *beside]


def _by_k(data: str, size: str) -> list[Trial]:
    extent = EXTENTS[data][size]
    return [*(t for k in extent.ks for t in _maximal(data, extent, k, BUDGET)), *_random(data, extent, BUDGET)]


BY_BUDGET = (
    "Ten-fold cross-validation, 100 times: one MaxTree, and MaxForest, ten on bootstraps that share the budget, as "
    "published. k attributes on a path, chosen for each budget."
)
BY_K = (
    "Ten-fold cross-validation at epsilon 0.1, by the number k of attributes on a path. JDPForest and SNRForest use "
    "all of them and are horizontal lines."
)


def _studies(data: str, table: int, figure: int, by_k: int) -> tuple[Study, ...]:
    tabled, drawn, varied = f"table-{table}", f"figure-{figure}", f"figure-{by_k}"
    return (
        Study(
            f"{PAPER}-{tabled}",
            f"MaxTree and MaxForest by budget, {data}",
            f"{SOURCE}, table {table}",
            partial(_by_budget, data),
            partial(read_table, data, tabled),
            (data,),
            BY_BUDGET,
        ),
        Study(
            f"{PAPER}-{drawn}",
            f"MaxTree and MaxForest beside random forests by budget, {data}",
            f"{SOURCE}, figure {figure}",
            partial(_beside_random, data),
            partial(read_figure, data, drawn, tabled),
            (data,),
            BY_BUDGET,
        ),
        Study(
            f"{PAPER}-{varied}",
            f"MaxTree and MaxForest by the number of attributes, {data}",
            f"{SOURCE}, figure {by_k}",
            partial(_by_k, data),
            partial(read_by_k, data, varied),
            (data,),
            BY_K,
        ),
    )


STUDIES: tuple[Study, ...] = (
    Study(
        f"{PAPER}-{query_analysis.PLACE}",
        "How many counts a tree asks for, and what fewer are worth",
        f"{SOURCE}, section 4",
        query_analysis.trials,
        query_analysis.read,
        query_analysis.TABLES,
        "Section 4 counts the queries of a tree and their errors, to say why InfoGain by noisy counts is not accurate "
        "and why counts are not added up from the leaves.",
    ),
    *_studies("mushroom", 2, 7, 9),
    *_studies("adult", 3, 8, 10),
)
TASKS: dict[str, Work] = {"walk": walked, **query_analysis.TASKS}
