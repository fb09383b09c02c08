"""Every algorithm of the papers as a Plan, as published and corrected.

To add one, write a function of a few lines and list it in `PRESETS`; the grower knows no algorithm by
name. A published plan that is not differentially private names the errata that say why
(docs/explanation/trees-errata.md). It runs on public rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privet.errors import QuestionError
from privet.kernel import Domain
from privet.learners.additive import LEARNERS
from privet.learners.algorithm import Algorithm
from privet.learners.plan import (
    BY_SIGNAL,
    Plan,
    above_noise,
    by_signal,
    even,
    exact,
    fixed,
    half_or_log,
    halves,
    harmonic,
    harmonic_squared,
    leaves_only,
    with_points,
)

# The share of the budget that buys class counts, if the number of rows is needed and not public.
PRIOR = Fraction(1, 20)

E1 = "E-1: a bootstrap counts a record more than once, so a tree loses more than its share"
E4 = "E-4: ranges are weighted without the sensitivity, which loses 2 epsilon for gini and some 17 epsilon for infogain"
E8 = "E-8: the noise is rounded and bounded, so that some outputs occur for one table alone"
E9 = "E-9: the depth depends on the exact number of rows; declare `rows` in the domain to make it public"


@dataclass(frozen=True)
class Preset(Algorithm):
    """An algorithm that grows trees by a plan.

    Parameters
    ----------
    name, line, citation, private
        As in `Algorithm`.
    corrected : callable
        ``corrected(domain, **choices)`` returns the plan that privet recommends.
    published : callable, optional
        The same for the plan that follows the paper to the letter; None if there is no paper.
    """

    corrected: Callable[..., Plan]
    published: Callable[..., Plan] | None = None

    @property
    def variants(self) -> tuple[str, ...]:
        """The values that `variant` may have."""
        return ("corrected",) if self.private and self.published is None else ("corrected", "published")

    def plan(self, domain: Domain, variant: str = "corrected", **choices: Any) -> Plan:
        """Return the plan for a domain.

        Parameters
        ----------
        domain : Domain
        variant : {"corrected", "published"}, default "corrected"
        **choices
            Parameters of the algorithm, such as `max_depth`.

        Returns
        -------
        Plan

        Raises
        ------
        QuestionError
            The algorithm has no such variant, or a choice has a value that it cannot have.
        """
        self.check_variant(variant)
        make = self.corrected if variant == "corrected" or self.published is None else self.published
        return replace(make(domain, **choices), name=self.name)


def _diffpid3(domain: Domain, max_depth: int = 3, criterion: Any = "max", **more: Any) -> Plan:
    """DiffPID3: one private selection for each split."""
    return Plan("", even, depth=max_depth, criterion=criterion, stop="noise", **more)


def _diffpid3_published(domain: Domain, **choices: Any) -> Plan:
    """DiffPID3 as printed: the exponential mechanism, and leaves without the remainder."""
    return replace(_diffpid3(domain, **choices), mechanism="exponential", monotone=False, remainder=False)


def _sulq(domain: Domain, max_depth: int = 3, **more: Any) -> Plan:
    """SuLQ-ID3: splits by noisy counts."""
    return Plan("", even, depth=max_depth, split="noisy-counts", criterion="infogain", stop="noise", **more)


def _sulq_published(domain: Domain, **choices: Any) -> Plan:
    """SuLQ-ID3 as printed: marginal counts are bought too."""
    return replace(_sulq(domain, **choices), marginals=True, remainder=False)


def _diffpc45(
    domain: Domain,
    max_depth: int = 3,
    criterion: Any = "max",
    numeric: str = "thresholds",
    certainty: float = 0.25,
    **more: Any,
) -> Plan:
    """DiffPC4.5: thresholds for numbers, consistent counts, pruning."""
    return Plan(
        "",
        even,
        depth=max_depth,
        criterion=criterion,
        numeric=_numeric(numeric, "joint"),
        stop="noise",
        consistency="least-squares",
        prune="error",
        certainty=certainty,
        **more,
    )


def _diffpc45_published(domain: Domain, criterion: Any = "max", numeric: str = "thresholds", **choices: Any) -> Plan:
    """DiffPC4.5 as printed: thresholds are bought before the choice, by weights without the sensitivity."""
    wrong = numeric == "thresholds" and criterion not in ("max", "largest-cell")
    return replace(
        _diffpc45(domain, criterion=criterion, numeric=numeric, **choices),
        budget=with_points,
        numeric=_numeric(numeric, "separate"),
        mechanism="exponential",
        monotone=False,
        remainder=False,
        consistency="rescale",
        printed_ranges=True,
        errata=(E4,) if wrong else (),
    )


def _numeric(choice: str, thresholds: str) -> str:
    """Return how a plan splits numbers: at `thresholds`, or into bins."""
    if choice not in ("thresholds", "bins"):
        raise QuestionError(f"numeric is 'thresholds' or 'bins', not {choice!r}.")
    return thresholds if choice == "thresholds" else "bins"


def _mohammed(domain: Domain, max_depth: int = 3, criterion: Any = "infogain", **more: Any) -> Plan:
    """Mohammed et al.: fixed depth, no sizes."""
    return Plan("", fixed, depth=max_depth, criterion=criterion, **more)


def _mohammed_published(domain: Domain, **choices: Any) -> Plan:
    """Mohammed et al. as printed: the exponential mechanism."""
    return replace(_mohammed(domain, **choices), mechanism="exponential", monotone=False, remainder=False)


def _jagannathan(
    domain: Domain, max_depth: int | None = None, n_estimators: int = 10, vote: str = "average", **more: Any
) -> Plan:
    """Jagannathan et al.: random trees."""
    return Plan(
        "",
        leaves_only,
        depth=half_or_log if max_depth is None else max_depth,
        split="random",
        trees=n_estimators,
        vote=vote,
        prior=PRIOR,
        **more,
    )


def _jagannathan_published(domain: Domain, max_depth: int | None = None, **choices: Any) -> Plan:
    """Jagannathan et al. as printed: the depth follows from the exact number of rows."""
    return _reads_size(_jagannathan(domain, max_depth=max_depth, **choices), domain, max_depth)


def _reads_size(plan: Plan, domain: Domain, max_depth: int | None) -> Plan:
    """Return a plan whose depth follows from the exact number of rows, unless it is given or rows are public."""
    leaks = max_depth is None and domain.rows is None
    return replace(plan, remainder=False, prior=Fraction(0), errata=(E9,) if leaks else ())


def _snr(
    domain: Domain,
    max_depth: int | None = None,
    n_estimators: int | None = None,
    vote: str = "average",
    **more: Any,
) -> Plan:
    """Fletcher and Islam: random trees, pruned by signal to noise."""
    return Plan(
        "",
        leaves_only,
        depth=above_noise if max_depth is None else max_depth,
        split="random",
        prune="signal",
        trees=max(1, len(domain.attributes)) if n_estimators is None else n_estimators,
        vote=vote,
        prior=PRIOR,
        **more,
    )


def _snr_published(domain: Domain, max_depth: int | None = None, **choices: Any) -> Plan:
    """Fletcher and Islam as printed: the depth follows from the exact number of rows."""
    return _reads_size(_snr(domain, max_depth=max_depth, **choices), domain, max_depth)


def _patil_singh(
    domain: Domain, criterion: Any = "infogain", n_estimators: int = 10, vote: str = "majority", **choices: Any
) -> Plan:
    """Patil and Singh: a forest of DiffPC4.5 trees on bins."""
    tree = _diffpc45(domain, criterion=criterion, numeric="bins", **choices)
    return replace(tree, trees=n_estimators, vote=vote)


def _patil_singh_published(domain: Domain, **choices: Any) -> Plan:
    """Patil and Singh as printed: each tree sees a bootstrap."""
    return replace(
        _patil_singh(domain, **choices),
        mechanism="exponential",
        monotone=False,
        remainder=False,
        consistency="rescale",
        rows="bootstrap",
        errata=(E1,),
    )


def _maxtree(domain: Domain, max_depth: int = 3, score: str = "sum", **more: Any) -> Plan:
    """MaxTree: harmonic budgets."""
    if score not in ("sum", "literal"):
        raise QuestionError(f"score is 'sum' or 'literal', not {score!r}.")
    return Plan("", harmonic, depth=max_depth, criterion="max" if score == "sum" else "largest-cell", **more)


def _maxtree_published(domain: Domain, **choices: Any) -> Plan:
    """MaxTree as printed: noisy maximum, and each level divided once more."""
    return replace(
        _maxtree(domain, **choices), budget=harmonic_squared, mechanism="noisy-max", monotone=True, remainder=False
    )


def _maxforest(domain: Domain, n_estimators: int = 10, vote: str = "majority", **choices: Any) -> Plan:
    """MaxForest: MaxTrees that vote."""
    return replace(_maxtree(domain, **choices), trees=n_estimators, vote=vote)


def _maxforest_published(domain: Domain, n_estimators: int = 10, vote: str = "majority", **choices: Any) -> Plan:
    """MaxForest as printed: each tree sees a bootstrap."""
    return replace(_maxtree_published(domain, **choices), trees=n_estimators, vote=vote, rows="bootstrap", errata=(E1,))


def _hanisch(domain: Domain, max_depth: int = 3, **more: Any) -> Plan:
    """Hanisch's tree: random, with class counts of the whole table as a fallback."""
    return Plan("", leaves_only, depth=max_depth, split="random", prior=PRIOR, fallback=True, **more)


def _hanisch_published(domain: Domain, **choices: Any) -> Plan:
    """Hanisch's tree as printed: rounded noise."""
    return replace(_hanisch(domain, **choices), prior=Fraction(0), remainder=False, rounded_noise=True, errata=(E8,))


def _hanisch_forest(domain: Domain, n_estimators: int = 10, vote: str = "majority", **choices: Any) -> Plan:
    """Hanisch's trees that vote."""
    return replace(_hanisch(domain, **choices), trees=n_estimators, vote=vote)


def _hanisch_forest_published(domain: Domain, n_estimators: int = 10, vote: str = "majority", **choices: Any) -> Plan:
    """Hanisch's trees that vote, as printed."""
    return replace(_hanisch_published(domain, **choices), trees=n_estimators, vote=vote)


def _id3plus(
    domain: Domain,
    max_depth: int | None = None,
    criterion: Any = None,
    numeric: str = "thresholds",
    **more: Any,
) -> Plan:
    """ID3+: every known saving of budget."""
    return Plan(
        "",
        halves,
        depth=by_signal if max_depth is None else max_depth,
        criterion=BY_SIGNAL if criterion is None else criterion,
        numeric=_numeric(numeric, "joint"),
        stop="estimate",
        prior=PRIOR,
        **more,
    )


def _id3(domain: Domain, max_depth: int = 10, criterion: Any = "infogain", **more: Any) -> Plan:
    """ID3 on public rows."""
    return Plan("", exact, depth=max_depth, criterion=criterion, stop="pure", **more)


def _c45(
    domain: Domain, max_depth: int = 10, certainty: float = 0.25, subtree_raising: bool = False, **more: Any
) -> Plan:
    """C4.5 on public rows. Subtrees are raised, and pruned, when the rows are at hand (`C45Classifier`)."""
    return Plan(
        "",
        exact,
        depth=max_depth,
        criterion="gain-ratio",
        numeric="separate",
        stop="pure",
        prune="none" if subtree_raising else "error",
        certainty=certainty,
        **more,
    )


_FS = "Friedman and Schuster 2010"

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "sulq-id3",
            "ID3 that adds noise to every count it looks at",
            f"Blum et al. 2005; {_FS}, algorithm 1",
            _sulq,
            _sulq_published,
        ),
        Preset(
            "diffpid3",
            "ID3 whose splits are chosen by one private selection each",
            f"{_FS}, algorithm 2",
            _diffpid3,
            _diffpid3_published,
        ),
        Preset(
            "diffpc45",
            "DiffPID3 with thresholds for numbers and pruning on noisy counts",
            f"{_FS}, 4.2 and 4.3",
            _diffpc45,
            _diffpc45_published,
        ),
        Preset(
            "mohammed",
            "a tree of fixed depth that never asks for sizes",
            "Mohammed et al. 2015",
            _mohammed,
            _mohammed_published,
        ),
        Preset(
            "jagannathan",
            "random trees, the whole budget for their leaves",
            "Jagannathan, Pillaipakkamnatt and Wright 2009",
            _jagannathan,
            _jagannathan_published,
        ),
        Preset(
            "patil-singh",
            "a forest of DiffPID3 trees with pruning",
            "Patil and Singh 2014",
            _patil_singh,
            _patil_singh_published,
        ),
        Preset(
            "snr-forest",
            "random trees as deep as the signal is above the noise, pruned by it",
            "Fletcher and Islam 2015",
            _snr,
            _snr_published,
        ),
        Preset(
            "maxtree",
            "a tree by noisy maximal votes, more budget for deeper levels",
            "Liu, Li, Li and Chen 2018, algorithm 2",
            _maxtree,
            _maxtree_published,
        ),
        Preset(
            "maxforest",
            "a majority vote of MaxTrees",
            "Liu, Li, Li and Chen 2018, algorithm 3",
            _maxforest,
            _maxforest_published,
        ),
        Preset(
            "hanisch-tree",
            "a random tree filled by counting queries to a database",
            "Hanisch, private decision trees on databases",
            _hanisch,
            _hanisch_published,
        ),
        Preset(
            "hanisch-forest",
            "a majority vote of Hanisch's trees",
            "Hanisch, private decision trees on databases",
            _hanisch_forest,
            _hanisch_forest_published,
        ),
        Preset(
            "id3plus",
            "ID3 with every saving there is: monotone selections, no sizes, joint thresholds",
            "privet, after Friedman and Schuster 2010",
            _id3plus,
        ),
        Preset("id3", "ID3 on public rows, without noise: NOT PRIVATE", "Quinlan 1986", _id3, private=False),
        Preset("c45", "C4.5 on public rows, without noise: NOT PRIVATE", "Quinlan 1993", _c45, private=False),
    )
}

# Every learning algorithm: trees and forests first, then sums of tables.
ALGORITHMS: dict[str, Algorithm] = {**PRESETS, **LEARNERS}


def preset(name: str) -> Preset:
    """Return a preset by its name.

    Raises
    ------
    QuestionError
        There is no preset of this name.
    """
    known = PRESETS.get(name)
    if known is None:
        raise QuestionError(f"there is no algorithm '{name}'; choose one of {', '.join(PRESETS)}.")
    return known
