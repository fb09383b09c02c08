"""The scikit-learn classes: every preset behind fit, predict and predict_proba.

`fit` takes a ProtectedTable, or rows as scikit-learn does; rows go to the kernel on the
first line and nothing here sees them again. Choosing parameters by trying them on private
rows (GridSearchCV, cross_val_score) is itself a release: every try costs its epsilon, and
what the search reports about the rows is not noisy at all. Tune on public or generated rows.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from privet.domain import Domain
from privet.errors import DataError, NotPrivate, PrivacyLeakWarning, QuestionError
from privet.kernel import ProtectedTable, PublicTable, as_epsilon, open_public, open_table
from privet.trees.grow import grow, refill
from privet.trees.inference import infer
from privet.trees.model import Ensemble
from privet.trees.plan import Plan
from privet.trees.presets import Preset, preset
from privet.trees.record import Privacy

Self = TypeVar("Self", bound="TreeClassifier")

# parameters that are not choices of a plan
_COMMON = ("epsilon", "domain", "variant", "unsafe", "random_state", "verbose")

INFERRED = "its domain was read from the rows"


# A dataclass writes the constructor whose signature scikit-learn reads; comparison and repr stay scikit-learn's.
@dataclass(eq=False, repr=False, kw_only=True)
class TreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all classes share.

    `epsilon` is the budget of the whole fit, per person. `domain` is needed for fit(X, y) and
    comes with a ProtectedTable. `variant="published"` follows the paper to the letter; where
    that is not private it needs `unsafe=True` and public rows. `random_state` seeds public
    coins alone, never noise. After `fit`: `model_`, `privacy_`, `classes_`, `domain_`.
    """

    epsilon: Any = field(default=None, kw_only=False)
    domain: Domain | str | Path | None = None
    variant: str = "corrected"
    unsafe: bool = False
    max_leaves: int = 100_000
    random_state: Any = None
    verbose: Any = 0  # a true value prints progress on standard error, a function is called with it

    algorithm: ClassVar[str]
    model_: Ensemble = field(init=False)
    domain_: Domain = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)

    # -- fitting ----------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any = None, **unsupported: Any) -> Self:
        """Grow the trees on a ProtectedTable, or on rows X and their classes y."""
        _refuse(unsupported)
        table, plan, inferred = self._opened(X, y)
        try:
            self.model_ = grow(
                table,
                plan,
                self._charged(),
                self._coins(),
                variant=self.variant,
                reasons=[INFERRED] if inferred else [],
                progress=self._say,
            )
        finally:
            if table is not X:
                table.close()
        self._plan = plan
        self.domain_ = self.model_.domain
        if not inferred:
            self.classes_ = self.model_.class_values
        return self

    @property
    def privacy_(self) -> Privacy:
        """What was promised and spent, per level."""
        check_is_fitted(self, "model_")
        return self.model_.privacy

    def _opened(self, X: Any, y: Any, domain: Domain | None = None) -> tuple[ProtectedTable, Plan, bool]:
        """The table, its plan, and whether its domain was read from it. Nothing is charged yet."""
        found = preset(self.algorithm)
        epsilon = self._charged()
        given = domain or _domain(self.domain)
        if isinstance(X, ProtectedTable):
            return self._protected(found, X, y, given)
        frame, inferred, declared = self._frame(X, y, given)
        plan = self._plan_for(found, declared)
        if plan.errata or plan.is_exact:
            opened: ProtectedTable = open_public(
                frame, declared, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges
            )
            return opened, plan, inferred and not plan.is_exact
        if inferred:
            warnings.warn(
                "no domain was given, so values, bounds and classes are read from the rows and become public with the "
                "model; pass domain=... to keep the promise.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        return open_table(frame, declared, budget=epsilon), plan, inferred

    def _protected(
        self, found: Preset, table: ProtectedTable, y: Any, given: Domain | None
    ) -> tuple[ProtectedTable, Plan, bool]:
        if y is not None:
            raise QuestionError("a ProtectedTable holds its target itself; leave out y.")
        if given is not None and given.fingerprint != table.domain.fingerprint:
            raise QuestionError("the table was opened with another domain than the estimator's; leave out domain.")
        plan = self._plan_for(found, table.domain)
        if (plan.errata or plan.is_exact) and not isinstance(table, PublicTable):
            why = "; ".join(plan.errata) or "it reads rows without noise"
            raise NotPrivate(
                f"{found.name} in this form is not private ({why}) and a protected table does not answer it; fit it on "
                "public rows with fit(X, y)."
            )
        names = np.array(table.domain.attributes, dtype=object)
        self.n_features_in_, self.feature_names_in_, self._by_name = len(names), names, True
        return table, plan, False

    def choices(self) -> dict[str, Any]:
        """The parameters that are choices of the plan."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in _COMMON}

    def _plan_for(self, found: Preset, domain: Domain) -> Plan:
        plan = found.plan(domain, self.variant, **self.choices())
        if plan.errata and not self.unsafe:
            raise NotPrivate(
                f"{found.name} as published is not differentially private ({'; '.join(plan.errata)}); use "
                "variant='corrected', or unsafe=True on rows that are public."
            )
        return plan

    def _frame(self, X: Any, y: Any, given: Domain | None) -> tuple[pd.DataFrame, bool, Domain]:
        """X and y as one frame, and the domain that describes it."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs the class of each row."
            )
        X = _checked(X)
        validate_data(self, X, skip_check_array=True)
        labels = column_or_1d(_plain_labels(y), warn=True)
        check_consistent_length(X, labels)
        if labels.dtype.kind not in "biu":  # whole numbers are classes: no need to look at each
            check_classification_targets(labels)
        self._by_name = False
        if given is None:
            frame = _named(X, [f"x{i}" for i in range(X.shape[1])])
            name = "target"
            while name in frame.columns:
                name += "_"
            self.classes_ = np.unique(labels)
            frame[name] = labels
            return frame, True, infer(frame, name, self.classes_.tolist())
        target = given.target_column.name
        frame = _named(X, list(given.attributes))
        frame[target] = labels
        return frame, False, given

    @property
    def _names(self) -> list[str]:
        """The columns of an array: those of the rows of the fit, which may have other columns, in another order."""
        return [str(name) for name in getattr(self, "feature_names_in_", self.domain_.attributes)]

    def _charged(self) -> Fraction:
        """The epsilon of the whole fit."""
        epsilon = self.epsilon
        if epsilon is None:
            raise QuestionError(
                f"{type(self).__name__} needs an epsilon, the privacy budget of the whole fit, as epsilon=0.5."
            )
        return as_epsilon(epsilon)

    def _coins(self) -> np.random.Generator:
        return np.random.default_rng(int(check_random_state(self.random_state).randint(2**31)))

    def _say(self, text: str) -> None:
        if callable(self.verbose):
            self.verbose(text)
        elif self.verbose:
            print(text, file=sys.stderr, flush=True)

    # -- predicting -------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        check_is_fitted(self, "model_")
        return np.asarray(self.classes_[self.model_.predict_codes(self._rows(X))])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class for each row, in the order of `classes_`."""
        check_is_fitted(self, "model_")
        return self.model_.predict_proba(self._rows(X))

    def _rows(self, X: Any) -> pd.DataFrame:
        """Rows to predict, as a frame with the columns of the domain."""
        X = _checked(X)
        if not (self._by_name and hasattr(X, "columns")):  # by name other columns may be there, the target say
            validate_data(self, X, reset=False, skip_check_array=True)
        return _named(X, self._names)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class _Fillable(TreeClassifier):
    """Classifiers whose structure is drawn without looking: new rows can be counted into its leaves later."""

    def partial_fit(self: Any, X: Any, y: Any = None, classes: Any = None) -> Any:
        """Count new rows into the leaves: `epsilon` is charged to them, and nothing to the rows seen before.

        `classes` is accepted as scikit-learn passes it; the classes of the domain hold.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        if classes is not None and not np.array_equal(np.asarray(classes), self.classes_):
            raise QuestionError("classes differ from those of the first fit.")
        if not isinstance(X, ProtectedTable):
            X_checked = _checked(X)
            if not self._by_name:
                validate_data(self, X_checked, reset=False, skip_check_array=True)
            known = (self.n_features_in_, getattr(self, "feature_names_in_", None), self._by_name, self.classes_)
            try:
                table, plan, _ = self._opened(_named(X_checked, self._names), y, self.domain_)
            finally:  # what the first fit found out about its rows holds, also where these are refused
                self.n_features_in_, names, self._by_name, self.classes_ = known
                if names is None:
                    self.__dict__.pop("feature_names_in_", None)
                else:
                    self.feature_names_in_ = names
        else:
            table, plan, _ = self._opened(X, y, self.domain_)
        try:
            self.model_ = refill(table, self.model_, plan, self._charged(), self._say)
        finally:
            if table is not X:
                table.close()
        return self


class _ScoreMethod:
    """`score` is a parameter of MaxTree and a method of every classifier: reading it gives the method."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        return ClassifierMixin.score if estimator is None else partial(ClassifierMixin.score, estimator)

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

    Without `max_depth` the depth follows from rows times epsilon: `rows` of the domain, or noisy class
    counts for a twentieth of the budget. `criterion` is "max", "gini", "infogain" or "weighted-max",
    `numeric` is "thresholds" or "bins".
    """

    algorithm = "id3plus"
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
    score: str = "sum"
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
    """ID3 on public rows, multiway and without noise: NOT PRIVATE. A baseline, and a raw tree to audit."""

    algorithm = "id3"


@dataclass(eq=False, repr=False, kw_only=True)
class C45Classifier(_Public):
    """C4.5 on public rows: gain ratio, thresholds for numbers, error-based pruning. NOT PRIVATE.

    Missing values have a branch of their own where the domain declares them.
    """

    algorithm = "c45"
    certainty: float = 0.25


CLASSIFIERS: dict[str, type[TreeClassifier]] = {
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
    )
}


def _refuse(unsupported: dict[str, Any]) -> None:
    if unsupported.pop("sample_weight", None) is not None:
        raise QuestionError(
            "sample_weight is refused: a row of weight w counts w times, so its person would lose w times epsilon."
        )
    if unsupported:
        raise TypeError(f"fit takes no argument '{min(unsupported)}'.")


def _domain(given: Domain | str | Path | None) -> Domain | None:
    if given is None or isinstance(given, Domain):
        return given
    if isinstance(given, str | Path):
        return Domain.load(given)
    raise QuestionError(f"domain must be a Domain or the path of a domain file, not a {type(given).__name__}.")


def _checked(X: Any) -> Any:
    """Frames stay as they are; anything else becomes a two-dimensional array."""
    if isinstance(X, pd.DataFrame):
        if len(X) == 0 or X.shape[1] == 0:
            raise ValueError(
                f"Found array with {len(X)} sample(s) and {X.shape[1]} feature(s); at least 1 is required."
            )
        return X
    if hasattr(X, "to_pandas"):
        return _checked(X.to_pandas())
    return check_array(X, dtype=None, ensure_all_finite=False)


def _named(X: Any, names: list[str]) -> pd.DataFrame:
    """Rows as a new frame: a frame keeps its column names, an array takes these."""
    if isinstance(X, pd.DataFrame):
        frame = X.copy(deep=False)
        frame.columns = pd.Index([str(name) for name in frame.columns])
        return frame
    if X.shape[1] != len(names):
        raise DataError(f"the rows have {X.shape[1]} columns, the domain declares {len(names)} besides the target.")
    return pd.DataFrame(X, columns=pd.Index(names))


def _plain_labels(y: Any) -> Any:
    if isinstance(y, pd.DataFrame | pd.Series):
        return y.to_numpy()
    return y.to_numpy() if hasattr(y, "to_numpy") else y
