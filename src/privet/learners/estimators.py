"""The scikit-learn classes, one for each algorithm: its parameters, and what it does besides its base class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from privet.errors import QuestionError
from privet.kernel import Domain, Numeric, as_delta, rho_of
from privet.learners.estimator import PrivateClassifier, TablesClassifier, TreeClassifier
from privet.learners.growth import refill
from privet.learners.input_rows import checked_rows, named_frame, rows_of, without_person
from privet.learners.joint_tables import enough_signal, joint_signal
from privet.learners.prune import TrainingRows, raise_subtrees
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.open_table import open_table
from privet.table import ProtectedTable


@dataclass(eq=False, repr=False, kw_only=True)
class _Fillable(TreeClassifier):
    """Base class of trees that are drawn without a look at any row: new rows can be counted into their leaves."""

    def partial_fit(self: Any, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Count new rows into the leaves; the first call fits the classifier.

        The new rows are charged `epsilon`, the rows that were seen before nothing.

        Parameters
        ----------
        X : ProtectedTable, frame or array-like
            New rows, with the domain of the first fit.
        y : array-like, optional
            Their classes; left out for a ProtectedTable.
        classes : array-like, optional
            Accepted because scikit-learn passes it. It must name the classes of the first fit.

        Returns
        -------
        self

        Raises
        ------
        QuestionError
            `classes` or the domain of the table differ from the first fit. Nothing was charged.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        if classes is not None and set(np.asarray(classes).tolist()) != set(self.classes_.tolist()):
            raise QuestionError("classes differ from those of the first fit.")
        if not isinstance(X, ProtectedTable):
            X_checked = checked_rows(X) if self._domain_inferred else rows_of(X, len(self._names))
            persons = None
            if self.domain_.person is not None:
                X_checked, persons = without_person(X_checked, self.domain_.person)
            if not self._by_name:
                validate_data(self, X_checked, reset=False, skip_check_array=True)
            names = getattr(self, "feature_names_in_", None)
            kept = (self.n_features_in_, self._columns, self._by_name, self.classes_)
            try:
                frame = named_frame(X_checked, self._names)
                if persons is not None:
                    frame[self.domain_.person] = persons
                table, _ = self._open_table(frame, y, self.domain_)
            finally:  # the attributes of the first fit stay, also if the new rows are refused
                self.n_features_in_, self._columns, self._by_name, self.classes_ = kept
                if names is None:
                    self.__dict__.pop("feature_names_in_", None)
                else:
                    self.feature_names_in_ = names
        else:
            table, _ = self._open_table(X, y, self.domain_)
        try:
            with self._progress_shown():
                plan = self._plan_for(self.domain_)
                self.model_ = refill(table, self.model_, plan, self._checked_epsilon(), self._report)
        finally:
            if table is not X:
                table.close()
        return self


class _ScoreMethod:
    """Lets `score` be both a parameter of MaxTree and the method of every classifier: reading it gives the method."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        return PrivateClassifier.score if estimator is None else partial(PrivateClassifier.score, estimator)

    def __set__(self, estimator: Any, value: Any) -> None:
        estimator.__dict__["score"] = value


@dataclass(eq=False, repr=False, kw_only=True)
class _Public(TreeClassifier):
    """Base class of plain trees on public rows, to which `epsilon`, `variant` and `unsafe` mean nothing."""

    max_depth: int = 10

    def _checked_epsilon(self) -> Fraction:
        return Fraction(1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SuLQID3Classifier(TreeClassifier):
    """ID3 that adds noise to every count it looks at (Blum et al. 2005).

    Half of the budget of each level is divided among all attributes, so `DiffPID3Classifier` does better with the
    same epsilon.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    max_depth : int, default 3
    """

    algorithm = "sulq-id3"
    max_depth: int = 3


@dataclass(eq=False, repr=False, kw_only=True)
class DiffPID3Classifier(TreeClassifier):
    """ID3 whose splits are chosen by one private selection each (Friedman and Schuster 2010).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    criterion : {"max", "gini", "infogain"} or Criterion, default "max"
        How splits are scored. "infogain" needs `max_rows` in the domain.
    max_depth : int, default 3

    Examples
    --------
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

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    criterion, max_depth
        As in `DiffPID3Classifier`.
    numeric : {"thresholds", "bins"}, default "thresholds"
        Where numbers are split.
    certainty : float, default 0.25
        The certainty factor of C4.5, between 0 and 1. Smaller values prune more.
    """

    algorithm = "diffpc45"
    numeric: str = "thresholds"
    certainty: float = 0.25


@dataclass(eq=False, repr=False, kw_only=True)
class ID3PlusClassifier(DiffPID3Classifier):
    """ID3 with every known saving of budget.

    Selections use monotone scores, no sizes are bought, a threshold is selected together with its attribute, and the
    leaves get all that is left.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    criterion : {"max", "gini", "infogain", "weighted-max"} or Criterion, optional
        How splits are scored. By default it follows from rows times epsilon.
    max_depth : int, optional
        By default it follows from rows times epsilon. The rows are `rows` of the domain, else noisy class counts for
        a twentieth of the budget.
    numeric : {"thresholds", "bins"}, default "thresholds"
        Where numbers are split.
    """

    algorithm = "id3plus"
    criterion: Any = None
    max_depth: int | None = None  # type: ignore[assignment]
    numeric: str = "thresholds"


@dataclass(eq=False, repr=False, kw_only=True)
class MohammedTreeClassifier(DiffPID3Classifier):
    """A tree of fixed depth that buys no sizes (Mohammed et al. 2015).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    criterion : {"infogain", "max", "gini"} or Criterion, default "infogain"
        How splits are scored. "infogain" needs `max_rows` in the domain.
    max_depth : int, default 3
    """

    algorithm = "mohammed"
    criterion: Any = "infogain"


@dataclass(eq=False, repr=False, kw_only=True)
class JagannathanForestClassifier(_Fillable):
    """Random trees that spend the whole budget on their leaves (Jagannathan et al. 2009).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    n_estimators : int, default 10
        The number of trees.
    max_depth : int, optional
        By default it follows from the number of rows: `rows` of the domain, else noisy class counts for a twentieth
        of the budget.
    vote : {"average", "majority", "weighted"}, default "average"
        How trees are combined.
    n_jobs : int, optional
        How many trees grow at once, in threads; -1 for as many as there are cores. The trees are the same whatever
        the number; ledger entries have the order in which questions were charged.
    """

    algorithm = "jagannathan"
    n_estimators: int = 10
    max_depth: int | None = None
    vote: str = "average"
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class SNRForestClassifier(_Fillable):
    """Random trees that are as deep as counts exceed their noise, and pruned by it (Fletcher and Islam 2015).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    n_estimators : int, optional
        The number of trees; by default one for each attribute.
    max_depth : int, optional
        By default it follows from the number of rows: `rows` of the domain, else noisy class counts for a twentieth
        of the budget.
    vote : {"average", "majority", "weighted"}, default "average"
        How trees are combined.
    n_jobs : int, optional
        How many trees grow at once, in threads; -1 for as many as there are cores. The trees are the same whatever
        the number; ledger entries have the order in which questions were charged.
    """

    algorithm = "snr-forest"
    n_estimators: int | None = None
    max_depth: int | None = None
    vote: str = "average"
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class PatilSinghForestClassifier(DiffPID3Classifier):
    """A forest of DiffPID3 trees with pruning (Patil and Singh 2014).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    criterion : {"infogain", "max", "gini"} or Criterion, default "infogain"
        How splits are scored. "infogain" needs `max_rows` in the domain.
    max_depth : int, default 3
    n_estimators : int, default 10
        The number of trees.
    certainty : float, default 0.25
        The certainty factor of pruning.
    vote : {"majority", "average", "weighted"}, default "majority"
        How trees are combined.
    n_jobs : int, optional
        How many trees grow at once, in threads; -1 for as many as there are cores. The trees are the same whatever
        the number; ledger entries have the order in which questions were charged.
    """

    algorithm = "patil-singh"
    criterion: Any = "infogain"
    n_estimators: int = 10
    certainty: float = 0.25
    vote: str = "majority"
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class MaxTreeClassifier(TreeClassifier):
    """A tree by noisy maximal votes, with more budget for deeper levels (Liu et al. 2018).

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    score : {"sum", "literal"}, default "sum"
        "sum" adds the majorities of all cells. "literal" takes the largest single one, as printed, which prefers
        attributes that divide nothing (erratum E-3).
    max_depth : int, default 3
    """

    algorithm = "maxtree"
    score: str = "sum"  # type: ignore[assignment]
    max_depth: int = 3

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with `score` among them.

        Parameters
        ----------
        deep : bool, default True

        Returns
        -------
        dict
        """
        return {**super().get_params(deep), "score": self.__dict__["score"]}


MaxTreeClassifier.score = _ScoreMethod()  # type: ignore[assignment]


@dataclass(eq=False, repr=False, kw_only=True)
class MaxForestClassifier(MaxTreeClassifier):
    """A majority vote of MaxTrees (Liu et al. 2018). Every tree sees all rows and pays its share.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    score, max_depth
        As in `MaxTreeClassifier`.
    n_estimators : int, default 10
        The number of trees.
    vote : {"majority", "average", "weighted"}, default "majority"
        How trees are combined.
    n_jobs : int, optional
        How many trees grow at once, in threads; -1 for as many as there are cores. The trees are the same whatever
        the number; ledger entries have the order in which questions were charged.
    """

    algorithm = "maxforest"
    n_estimators: int = 10
    vote: str = "majority"
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class HanischTreeClassifier(_Fillable):
    """A random tree that is filled by counting queries (Hanisch).

    Rows that fit no cell of the tree get the most frequent class of the whole table.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    max_depth : int, default 3
    """

    algorithm = "hanisch-tree"
    max_depth: int = 3


@dataclass(eq=False, repr=False, kw_only=True)
class HanischForestClassifier(HanischTreeClassifier):
    """A majority vote of Hanisch's trees.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose, max_leaves
        As in `TreeClassifier`.
    max_depth : int, default 3
    n_estimators : int, default 10
        The number of trees.
    vote : {"majority", "average", "weighted"}, default "majority"
        How trees are combined.
    n_jobs : int, optional
        How many trees grow at once, in threads; -1 for as many as there are cores. The trees are the same whatever
        the number; ledger entries have the order in which questions were charged.
    """

    algorithm = "hanisch-forest"
    n_estimators: int = 10
    vote: str = "majority"
    n_jobs: int | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ID3Classifier(_Public):
    """ID3 on public rows, multiway and without noise: NOT PRIVATE. A baseline, and a raw tree to audit.

    Parameters
    ----------
    domain, random_state, verbose, max_leaves
        As in `TreeClassifier`; `epsilon`, `variant` and `unsafe` mean nothing here.
    criterion : {"infogain", "gini", "max"}, default "infogain"
        How splits are scored.
    max_depth : int, default 10
    min_rows : int, default 0
        A node with fewer rows is a leaf.
    """

    algorithm = "id3"
    criterion: str = "infogain"
    min_rows: int = 0


@dataclass(eq=False, repr=False, kw_only=True)
class C45Classifier(_Public):
    """C4.5 on public rows: gain ratio, thresholds for numbers, error-based pruning. NOT PRIVATE.

    Missing values have a branch of their own if the domain declares them.

    Parameters
    ----------
    domain, random_state, verbose, max_leaves
        As in `TreeClassifier`; `epsilon`, `variant` and `unsafe` mean nothing here.
    max_depth : int, default 10
    certainty : float, default 0.25
        The certainty factor of pruning, between 0 and 1. Smaller values prune more.
    subtree_raising : bool, default False
        Let the largest child take the place of its parent where that is not expected to err more, as C4.5 and J48 do.
    """

    algorithm = "c45"
    certainty: float = 0.25
    subtree_raising: bool = False

    def _open_rows(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        """Open the rows, and keep them until the tree is grown."""
        if self.subtree_raising:
            self._rows_to_raise = frame
        return super()._open_rows(frame, domain, inferred)

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Ensemble:
        """Grow the tree and, if wanted, prune it with subtree raising."""
        frame = self.__dict__.pop("_rows_to_raise", None)
        model = super()._learn(table, reasons)
        if frame is None:
            return model
        rows = _training_rows(frame, table.domain)
        return replace(model, trees=tuple(raise_subtrees(tree, rows, self.certainty) for tree in model.trees))


def _training_rows(frame: pd.DataFrame, domain: Domain) -> TrainingRows:
    """Return the rows that fit a domain, as trees read them."""
    fits = np.all([column.encode(frame[column.name]) >= 0 for column in domain], axis=0)
    kept = frame[fits]
    columns = [domain[name] for name in domain.attributes]
    grids = [
        column.to_grid(kept[column.name]) if isinstance(column, Numeric) else np.zeros(len(kept), dtype=np.int32)
        for column in columns
    ]
    target = domain.target_column
    return TrainingRows(
        np.array([column.encode(kept[column.name]) for column in columns], dtype=np.int32),
        np.array(grids, dtype=np.int32),
        target.encode(kept[target.name]).astype(np.int64),
        np.array([column.missing for column in columns], dtype=np.bool_),
    )


UNUSED_DELTA = "with so little signal pure epsilon gives more, so no delta was used: the promise is epsilon alone"


@dataclass(eq=False, repr=False, kw_only=True)
class BoostedTablesClassifier(TablesClassifier):
    """A sum of small tables of a few attributes, bought where the model so far errs most.

    With a delta, all tables are learned together, which is more accurate (docs/explanation/boosted.md). Declare
    `rows` in the domain, a public order of magnitude, to improve its plan. If there is too little signal, the model is
    the class shares alone, and `model_.note` says so.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`.
    delta : int, float, str or Fraction, optional
        With one, the promise of a fit on rows is (epsilon, delta). A ProtectedTable has its own, from `privet.open`.
    pairs : bool, default True
        Use tables of several attributes too.

    Examples
    --------
    >>> import privet
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1)
    >>> boosted = BoostedTablesClassifier(epsilon=1).fit(table)
    >>> boosted.privacy_.spent, table.budget.remaining
    (Fraction(1, 1), Fraction(0, 1))
    >>> table = privet.open(privet.datasets.census(5000), privet.datasets.census_domain(), budget=1, delta="1e-6")
    >>> BoostedTablesClassifier(epsilon=1).fit(table).model_  # doctest: +ELLIPSIS
    <boosted: ... tables for 'income', epsilon 1, delta 1e-06>
    """

    algorithm = "boosted"
    delta: Any = None
    pairs: bool = True

    def _checked_delta(self) -> Fraction | None:
        return None if self.delta is None else as_delta(self.delta)

    def _check(self, domain: Domain, protected: bool) -> None:
        super()._check(domain, protected)
        self._checked_delta()

    def _checked_table(self, table: ProtectedTable, y: Any, given: Domain | None) -> ProtectedTable:
        """Check a table against the classifier: a delta is that of the table."""
        if self.delta is not None and self._checked_delta() != table.unit.delta:
            has = "none" if table.unit.delta is None else f"{float(table.unit.delta):g}"
            raise QuestionError(f"a table has the delta it was opened with, and this one has {has}; leave out delta.")
        return super()._checked_table(table, y, given)

    def _open_rows(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        """Return the rows as a table, with a delta where all tables can be learned together.

        Where the public number of rows says that they cannot, pure epsilon buys more, and keeps the promise too.
        """
        delta, epsilon = self._checked_delta(), self._checked_epsilon()
        if delta is not None and domain.rows is not None:
            signal = joint_signal(domain, domain.rows, rho_of(epsilon, delta))
            delta = delta if enough_signal(domain, signal) else None
        return open_table(frame, domain, budget=epsilon, delta=delta), inferred

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Tables:
        """Learn tables; say so where a delta was accepted and not used."""
        model = super()._learn(table, reasons)
        if self.delta is None or table.unit.delta is not None:
            return model
        return replace(model, note=f"{model.note}; {UNUSED_DELTA}" if model.note else UNUSED_DELTA)


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayesClassifier(TablesClassifier):
    """Naive Bayes on a noisy histogram of each attribute: good if attributes are few and independent.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`.
    """

    algorithm = "naive-bayes"


@dataclass(eq=False, repr=False, kw_only=True)
class PriorClassifier(TablesClassifier):
    """The class shares alone: the baseline of every learner, and the best model for very few rows.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`.
    """

    algorithm = "prior"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


CLASSIFIERS: dict[str, type[PrivateClassifier]] = {
    classifier.algorithm: classifier
    for classifier in (
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
