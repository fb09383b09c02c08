"""What every classifier of privet shares: scikit-learn's way in, a protected table inside, releases out.

`fit` takes a ProtectedTable, or rows as scikit-learn does; rows go to the kernel on the
first line and nothing here sees them again. Choosing parameters by trying them on private
rows (GridSearchCV, cross_val_score) is itself a release: every try costs its epsilon, and
what the search reports about the rows is not noisy at all. Tune on public or generated rows.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from privet.errors import DataError, DtypeMismatchWarning, PrivacyLeakWarning, QuestionError
from privet.kernel import Domain, ProtectedTable, as_epsilon, open_table
from privet.lab import PublicTable
from privet.learners.inference import infer
from privet.learners.own_rows import as_pandas, labels_of, mismatches, table_of, warning_about
from privet.learners.progress import Progress
from privet.models.model import Model
from privet.models.privacy_record import Privacy

Self = TypeVar("Self", bound="PrivateClassifier")

# parameters that are not choices of an algorithm
_COMMON = ("epsilon", "domain", "variant", "unsafe", "random_state", "verbose")

INFERRED = "its domain was read from the rows"


# A dataclass writes the constructor whose signature scikit-learn reads; comparison and repr stay scikit-learn's.
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
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
    random_state: Any = None
    verbose: Any = 0  # a true value prints each Progress on standard error, a function is called with it

    algorithm: ClassVar[str]
    domain_: Domain = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)

    # -- what an algorithm adds -------------------------------------------------------------

    model_: Any = field(init=False)

    @abstractmethod
    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Model:
        """Spend the whole epsilon on a table. `reasons` say why the model is not private, if it is not."""

    def private_on(self, domain: Domain) -> bool:
        """Does the classifier, with the choices it has, keep the promise on tables of this domain?"""
        return True

    def _check(self, domain: Domain, protected: bool) -> None:
        """Refuse what cannot be learned, before a row is touched; `protected` rows answer nothing exactly."""

    def _open(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        """The rows behind the kernel, and whether their domain was read from rows that are private."""
        return open_table(frame, domain, budget=self._charged()), inferred

    # -- fitting ----------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any = None, **unsupported: Any) -> Self:
        """Learn from a ProtectedTable, or from rows X and their classes y."""
        _refuse(unsupported)
        table, inferred = self._opened(X, y)
        try:
            self.model_ = self._learn(table, [INFERRED] if inferred else [])
        finally:
            if table is not X:
                table.close()
        self.domain_ = self.model_.domain
        self._domain_inferred = self.domain is None and not isinstance(X, ProtectedTable)
        # scikit-learn takes sorted classes for granted; the model keeps the order of its domain
        self._class_order = _sorted(self.model_.class_values)
        if not inferred:
            self.classes_ = self.model_.class_values[self._class_order]
        return self

    @property
    def privacy_(self) -> Privacy:
        """What was promised and spent, step by step."""
        check_is_fitted(self, "model_")
        found: Privacy = self.model_.privacy
        return found

    def choices(self) -> dict[str, Any]:
        """The parameters that are choices of the algorithm."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in _COMMON}

    def _opened(self, X: Any, y: Any, domain: Domain | None = None) -> tuple[ProtectedTable, bool]:
        """The table, and whether its domain was read from it. Nothing is charged yet."""
        self._charged()
        given = domain or _domain(self.domain)
        if isinstance(X, ProtectedTable):
            return self._protected(X, y, given), False
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs the class of each row."
            )
        inferred = given is None
        frame, declared = self._inferred(X, y) if given is None else (self._declared(X, y, given), given)
        self._check(declared, protected=False)
        if inferred and self.private_on(declared):
            warnings.warn(
                "no domain was given, so values, bounds and classes are read from the rows and become public with the "
                "model; pass domain=... to keep the promise.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        table, inferred = self._open(frame, declared, inferred)
        if given is not None and (phrases := mismatches(frame, given)):
            warnings.warn(warning_about(phrases), DtypeMismatchWarning, stacklevel=3)
        return table, inferred

    def _protected(self, table: ProtectedTable, y: Any, given: Domain | None) -> ProtectedTable:
        if y is not None:
            raise QuestionError("a ProtectedTable holds its target itself; leave out y.")
        if given is not None and given.fingerprint != table.domain.fingerprint:
            raise QuestionError("the table was opened with another domain than the estimator's; leave out domain.")
        self._check(table.domain, protected=not isinstance(table, PublicTable))
        names = np.array(table.domain.attributes, dtype=object)
        self.n_features_in_, self.feature_names_in_, self._by_name = len(names), names, True
        self._columns = list(table.domain.attributes)
        return table

    def _declared(self, X: Any, y: Any, domain: Domain) -> pd.DataFrame:
        """X and y as one frame. No error, warning or way through depends on a cell, a label or how many there are."""
        X, labels = table_of(X, len(domain.attributes)), labels_of(y)
        self._note_columns(X)
        if len(X) != len(labels):
            raise DataError("X and y have different numbers of rows; pass one class for each row.")
        frame = named(X, list(domain.attributes))
        frame[domain.target_column.name] = labels.set_axis(frame.index)  # a column: of arrays pandas guesses the type
        return frame

    def _inferred(self, X: Any, y: Any) -> tuple[pd.DataFrame, Domain]:
        """X and y as one frame, and a domain that is read from them: what is wrong with a row may be said."""
        X = checked(X)
        self._note_columns(X)
        labels = column_or_1d(_plain_labels(y), warn=True)
        check_consistent_length(X, labels)
        # whole numbers and texts are classes: no need to look at each
        if labels.dtype.kind not in "biuU" and not isinstance(labels.flat[0], str):
            check_classification_targets(labels)
        frame = named(X, [f"x{i}" for i in range(X.shape[1])])
        name = "target"
        while name in frame.columns:
            name += "_"
        self.classes_ = np.unique(labels)
        frame[name] = labels
        return frame, infer(frame, name, self.classes_.tolist())

    def _note_columns(self, X: Any) -> None:
        validate_data(self, X, skip_check_array=True)
        self._columns = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else []
        self._by_name = False

    @property
    def _names(self) -> list[str]:
        """The columns of an array: those of the rows of the fit, which may have other columns, in another order."""
        return self._columns or list(self.domain_.attributes)

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

    def _say(self, told: Progress) -> None:
        if callable(self.verbose):
            self.verbose(told)
        elif self.verbose:
            print(told, file=sys.stderr, flush=True)

    # -- predicting -------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        check_is_fitted(self, "model_")
        place = np.argsort(self._class_order)  # of each class of the domain in classes_
        return np.asarray(self.classes_[place[self.model_.predict_codes(self._rows(X))]])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right.

        Classes are compared as the domain compares values: 1, 1.0 and "1" are one class, so are True and "True".

        Parameters
        ----------
        X : frame or array
            Rows to predict.
        y : array-like
            Their classes; one that the domain does not declare is never right.
        sample_weight : array-like, optional
            What each row counts.

        Returns
        -------
        float
        """
        check_is_fitted(self, "model_")
        right = self.model_.predict_codes(self._rows(X)) == self.domain_.target_column.encode(_plain_labels(y))
        return float(np.average(right, weights=sample_weight))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class for each row, in the order of `classes_`."""
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict_proba(self._rows(X))[:, self._class_order])

    def _rows(self, X: Any) -> pd.DataFrame:
        """Rows to predict, as a frame with the columns of the domain."""
        X = checked(X)
        if not (self._by_name and hasattr(X, "columns")):  # by name other columns may be there, the target say
            validate_data(self, X, reset=False, skip_check_array=True)
        return named(X, self._names)

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


def _sorted(classes: NDArray[Any]) -> NDArray[np.int64]:
    """The order that sorts the classes; that of the domain where they cannot be compared."""
    try:
        return np.argsort(classes, kind="stable")
    except TypeError:
        return np.arange(len(classes))


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


def checked(X: Any) -> Any:
    """Frames stay as they are; anything else becomes a two-dimensional array."""
    if isinstance(X, pd.DataFrame):
        if len(X) == 0 or X.shape[1] == 0:
            raise ValueError(
                f"Found array with {len(X)} sample(s) and {X.shape[1]} feature(s); at least 1 is required."
            )
        return X
    if hasattr(X, "to_pandas"):
        return checked(as_pandas(X))
    return check_array(X, dtype=None, ensure_all_finite=False)


def named(X: Any, names: list[str]) -> pd.DataFrame:
    """Rows as a new frame: a frame keeps its column names, an array takes these."""
    if isinstance(X, pd.DataFrame):
        frame = X.copy(deep=False)
        frame.columns = pd.Index([str(name) for name in frame.columns])
        return frame
    if X.shape[1] != len(names):
        raise DataError(f"the rows have {X.shape[1]} columns, the domain declares {len(names)} besides the target.")
    if X.dtype.kind in "OUST":  # with a dtype, pandas guesses none: one row would decide it, or be an error
        return pd.DataFrame(X.astype(object), columns=pd.Index(names), dtype=object)
    return pd.DataFrame(X, columns=pd.Index(names))


def _plain_labels(y: Any) -> Any:
    if isinstance(y, pd.DataFrame | pd.Series):
        return y.to_numpy()
    return y.to_numpy() if hasattr(y, "to_numpy") else y
