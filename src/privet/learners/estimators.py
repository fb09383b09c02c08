"""The scikit-learn classes, one for each algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from privet.errors import NotPrivate, QuestionError
from privet.kernel import Domain, ProtectedTable
from privet.lab import open_public
from privet.learners.additive import LEARNERS, learn
from privet.learners.estimator import PrivateClassifier, checked, named
from privet.learners.grow import grow, refill
from privet.learners.own_rows import table_of
from privet.learners.plan import Plan
from privet.learners.presets import preset
from privet.models.tables import Tables
from privet.models.tree import Ensemble


@dataclass(eq=False, repr=False, kw_only=True)
class TreeClassifier(PrivateClassifier):
    """Trees and forests: the grower follows the plan of a preset."""

    max_leaves: int = 100_000
    model_: Ensemble = field(init=False)

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Ensemble:
        return grow(
            table,
            self._plan_for(table.domain),
            self._charged(),
            self._coins(),
            variant=self.variant,
            reasons=reasons,
            progress=self._say,
        )

    def _plan_for(self, domain: Domain) -> Plan:
        return preset(self.algorithm).plan(domain, self.variant, **self.choices())

    def private_on(self, domain: Domain) -> bool:
        return self._plan_for(domain).is_private

    def _check(self, domain: Domain, protected: bool) -> None:
        plan = self._plan_for(domain)
        if plan.errata and not self.unsafe:
            raise NotPrivate(
                f"{self.algorithm} as published is not differentially private ({'; '.join(plan.errata)}); use "
                "variant='corrected', or unsafe=True on rows that are public."
            )
        if protected and not plan.is_private:
            why = "; ".join(plan.errata) or "it reads rows without noise"
            raise NotPrivate(
                f"{self.algorithm} in this form is not private ({why}) and a protected table does not answer it; fit "
                "it on public rows with fit(X, y)."
            )

    def _open(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        plan = self._plan_for(domain)
        if plan.is_private:
            return super()._open(frame, domain, inferred)
        opened = open_public(frame, domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges)
        return opened, inferred and not plan.is_exact


@dataclass(eq=False, repr=False, kw_only=True)
class TablesClassifier(PrivateClassifier):
    """Sums of tables: `model_` can be drawn, edited, and told as a sum for each prediction."""

    model_: Tables = field(init=False)

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Tables:
        learner = LEARNERS[self.algorithm]
        return learn(
            table, learner, self._charged(), self._coins(), reasons=reasons, progress=self._say, **self.choices()
        )

    def _check(self, domain: Domain, protected: bool) -> None:
        LEARNERS[self.algorithm].check_variant(self.variant)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Log odds of the second class of two; of more classes, those of each, up to a constant of the row."""
        check_is_fitted(self, "model_")
        logits = self.model_.logits(self._rows(X))[:, self._class_order]
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each column moves predictions, from released values alone; they add up to 1, or are all 0."""
        check_is_fitted(self, "model_")
        found = self.model_.importance
        weights = np.array([found.get(name, 0.0) for name in self._names])  # the domain may leave columns out
        return np.asarray(weights / weights.sum()) if weights.any() else weights


@dataclass(eq=False, repr=False, kw_only=True)
class _Fillable(TreeClassifier):
    """Classifiers whose structure is drawn without looking: new rows can be counted into its leaves later."""

    def partial_fit(self: Any, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Count new rows into the leaves: `epsilon` is charged to them, and nothing to the rows seen before.

        `classes` is accepted as scikit-learn passes it; the classes of the domain hold.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        if classes is not None and set(np.asarray(classes).tolist()) != set(self.classes_.tolist()):
            raise QuestionError("classes differ from those of the first fit.")
        if not isinstance(X, ProtectedTable):
            X_checked = checked(X) if self._domain_inferred else table_of(X, len(self._names))
            if not self._by_name:
                validate_data(self, X_checked, reset=False, skip_check_array=True)
            names = getattr(self, "feature_names_in_", None)
            known = (self.n_features_in_, self._columns, self._by_name, self.classes_)
            try:
                table, _ = self._opened(named(X_checked, self._names), y, self.domain_)
            finally:  # what the first fit found out about its rows holds, also where these are refused
                self.n_features_in_, self._columns, self._by_name, self.classes_ = known
                if names is None:
                    self.__dict__.pop("feature_names_in_", None)
                else:
                    self.feature_names_in_ = names
        else:
            table, _ = self._opened(X, y, self.domain_)
        try:
            self.model_ = refill(table, self.model_, self._plan_for(self.domain_), self._charged(), self._say)
        finally:
            if table is not X:
                table.close()
        return self


class _ScoreMethod:
    """`score` is a parameter of MaxTree and a method of every classifier: reading it gives the method."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        return PrivateClassifier.score if estimator is None else partial(PrivateClassifier.score, estimator)

    def __set__(self, estimator: Any, value: Any) -> None:
        estimator.__dict__["score"] = value


@dataclass(eq=False, repr=False, kw_only=True)
class _Public(TreeClassifier):
    """Plain trees on public rows: `epsilon`, `variant` and `unsafe` mean nothing to them."""

    max_depth: int = 10

    def _charged(self) -> Fraction:
        return Fraction(1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SuLQID3Classifier(TreeClassifier):
    """ID3 that adds noise to every count it looks at (Blum et al. 2005).

    Half of each level is divided among all attributes: `DiffPID3Classifier` does better with the same budget.
    """

    algorithm = "sulq-id3"
    max_depth: int = 3


@dataclass(eq=False, repr=False, kw_only=True)
class DiffPID3Classifier(TreeClassifier):
    """ID3 whose splits are chosen by one private selection each (Friedman and Schuster 2010).

    `criterion` is "max", "gini" or "infogain", which needs max_rows in the domain.

    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> tree = DiffPID3Classifier(epsilon=1, criterion="gini", max_depth=2).fit(table)
    >>> tree.privacy_.spent, table.budget.remaining
    (Fraction(1, 1), Fraction(0, 1))
    """

    algorithm = "diffpid3"
    criterion: Any = "max"
    max_depth: int = 3


@dataclass(eq=False, repr=False, kw_only=True)
class DiffPC45Classifier(DiffPID3Classifier):
    """DiffPID3 with thresholds for numbers and error-based pruning on noisy counts (Friedman and Schuster 2010).

    `numeric` is "thresholds" or "bins"; `certainty` is C4.5's certainty factor.
    """

    algorithm = "diffpc45"
    numeric: str = "thresholds"
    certainty: float = 0.25


@dataclass(eq=False, repr=False, kw_only=True)
class ID3PlusClassifier(DiffPID3Classifier):
    """ID3 with every saving there is: monotone selections, no size queries, joint thresholds, the rest for the leaves.

    Without `max_depth` and `criterion` both follow from rows times epsilon: `rows` of the domain, or noisy class
    counts for a twentieth of the budget. `criterion` is "max", "gini", "infogain" or "weighted-max",
    `numeric` is "thresholds" or "bins".
    """

    algorithm = "id3plus"
    criterion: Any = None
    max_depth: int | None = None  # type: ignore[assignment]
    numeric: str = "thresholds"


@dataclass(eq=False, repr=False, kw_only=True)
class MohammedTreeClassifier(DiffPID3Classifier):
    """A tree of fixed depth that never asks for sizes (Mohammed et al. 2015)."""

    algorithm = "mohammed"
    criterion: Any = "infogain"


@dataclass(eq=False, repr=False, kw_only=True)
class JagannathanForestClassifier(_Fillable):
    """Random trees, the whole budget for their leaves (Jagannathan et al. 2009).

    Without `max_depth` the depth follows from the number of rows: `rows` of the domain, or a
    noisy count for a twentieth of the budget. `vote` is "average", "majority" or "weighted".
    """

    algorithm = "jagannathan"
    n_estimators: int = 10
    max_depth: int | None = None
    vote: str = "average"


@dataclass(eq=False, repr=False, kw_only=True)
class SNRForestClassifier(_Fillable):
    """Random trees as deep as the signal is above the noise, pruned by it (Fletcher and Islam 2015).

    Without `n_estimators` there is a tree for each attribute.
    """

    algorithm = "snr-forest"
    n_estimators: int | None = None
    max_depth: int | None = None
    vote: str = "average"


@dataclass(eq=False, repr=False, kw_only=True)
class PatilSinghForestClassifier(DiffPID3Classifier):
    """A forest of DiffPID3 trees with pruning (Patil and Singh 2014)."""

    algorithm = "patil-singh"
    criterion: Any = "infogain"
    n_estimators: int = 10
    certainty: float = 0.25
    vote: str = "majority"


@dataclass(eq=False, repr=False, kw_only=True)
class MaxTreeClassifier(TreeClassifier):
    """A tree by noisy maximal votes, more budget for deeper levels (Liu et al. 2018).

    `score="sum"` adds the votes of all cells; "literal" takes the largest single one, which
    prefers attributes that divide nothing (erratum E-3).
    """

    algorithm = "maxtree"
    score: str = "sum"  # type: ignore[assignment]
    max_depth: int = 3

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, `score` among them."""
        return {**super().get_params(deep), "score": self.__dict__["score"]}


MaxTreeClassifier.score = _ScoreMethod()  # type: ignore[assignment]


@dataclass(eq=False, repr=False, kw_only=True)
class MaxForestClassifier(MaxTreeClassifier):
    """A majority vote of MaxTrees (Liu et al. 2018): every tree sees all rows and pays its share."""

    algorithm = "maxforest"
    n_estimators: int = 10
    vote: str = "majority"


@dataclass(eq=False, repr=False, kw_only=True)
class HanischTreeClassifier(_Fillable):
    """A random tree filled by counting queries, with a fallback to the classes of the whole table (Hanisch)."""

    algorithm = "hanisch-tree"
    max_depth: int = 3


@dataclass(eq=False, repr=False, kw_only=True)
class HanischForestClassifier(HanischTreeClassifier):
    """A majority vote of Hanisch's trees."""

    algorithm = "hanisch-forest"
    n_estimators: int = 10
    vote: str = "majority"


@dataclass(eq=False, repr=False, kw_only=True)
class ID3Classifier(_Public):
    """ID3 on public rows, multiway and without noise: NOT PRIVATE. A baseline, and a raw tree to audit.

    `criterion` is "infogain", "gini" or "max"; a node with fewer than `min_rows` rows is a leaf.
    """

    algorithm = "id3"
    criterion: str = "infogain"
    min_rows: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class C45Classifier(_Public):
    """C4.5 on public rows: gain ratio, thresholds for numbers, error-based pruning. NOT PRIVATE.

    Missing values have a branch of their own where the domain declares them.
    """

    algorithm = "c45"
    certainty: float = 0.25


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedTablesClassifier(TablesClassifier):
    """A sum of small tables of one or two attributes, each bought where those before err most: the flagship.

    `pairs=False` keeps to tables of one attribute. Declare `rows` in the domain, a public order of magnitude, and
    the plan is better. Too little signal returns the class shares, and `model_.note` says so.

    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> boosted = BoostedTablesClassifier(epsilon=1).fit(table)
    >>> boosted.privacy_.spent, table.budget.remaining
    (Fraction(1, 1), Fraction(0, 1))
    """

    algorithm = "boosted"
    pairs: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayesClassifier(TablesClassifier):
    """A noisy histogram of each attribute with the class: good where attributes are few and independent."""

    algorithm = "naive-bayes"


@dataclass(eq=False, repr=False, kw_only=True)
class PriorClassifier(TablesClassifier):
    """The class shares alone: what every learner has to beat, and with very few rows the best there is."""

    algorithm = "prior"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


CLASSIFIERS: dict[str, type[PrivateClassifier]] = {
    each.algorithm: each
    for each in (
        SuLQID3Classifier,
        DiffPID3Classifier,
        DiffPC45Classifier,
        MohammedTreeClassifier,
        JagannathanForestClassifier,
        PatilSinghForestClassifier,
        SNRForestClassifier,
        MaxTreeClassifier,
        MaxForestClassifier,
        HanischTreeClassifier,
        HanischForestClassifier,
        ID3PlusClassifier,
        ID3Classifier,
        C45Classifier,
        BoostedTablesClassifier,
        NaiveBayesClassifier,
        PriorClassifier,
    )
}
