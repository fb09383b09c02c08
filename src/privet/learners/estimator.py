"""What every classifier of privet shares: the methods of scikit-learn, on a protected table.

`PrivateClassifier` has all but the learning. `TreeClassifier` grows the plan of a preset, and
`TablesClassifier` learns a sum of tables; `estimators.py` has a class for each algorithm.

`fit` takes a ProtectedTable, or rows as scikit-learn does. Rows go straight to the kernel, and nothing
here sees them again. To choose parameters by trying them on private rows (GridSearchCV,
cross_val_score) is itself a release: every trial costs its epsilon, and the scores that the search
reports have no noise at all. Tune on public or generated rows.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from privet.errors import (
    DataError,
    DtypeMismatchWarning,
    NotPrivate,
    PrivacyLeakWarning,
    QuestionError,
    TargetNameWarning,
)
from privet.kernel import Domain, Json, as_epsilon
from privet.lab import PublicTable, open_public
from privet.learners.additive import LEARNERS, learn
from privet.learners.algorithm import Progress, ProgressBar, check_target
from privet.learners.growth import grow
from privet.learners.inference import infer
from privet.learners.input_rows import (
    checked_rows,
    labels_of,
    mismatch_warning,
    mismatches,
    name_of,
    named_frame,
    plain_labels,
    refuse_no_rows,
    rows_of,
    without_person,
)
from privet.learners.plan import Plan
from privet.learners.presets import preset
from privet.models.model import Model
from privet.models.privacy_record import Privacy
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.open_table import open_table
from privet.table import ProtectedTable
from privet.text import quoted, shown

Self = TypeVar("Self", bound="PrivateClassifier")

# parameters that are not choices of an algorithm
_COMMON = ("epsilon", "delta", "domain", "variant", "unsafe", "random_state", "verbose", "n_jobs")

INFERRED = "its domain was read from the rows"


# A dataclass writes the constructor whose signature scikit-learn reads; comparison and repr stay scikit-learn's.
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all private classifiers.

    Parameters
    ----------
    epsilon : int, float, str or Fraction
        The privacy budget of the whole fit, per person.
    domain : Domain, str or Path, optional
        The public domain of the rows, or the path of its file. `fit(X, y)` needs it: without one, values, bounds
        and classes are read from the rows and become public. A ProtectedTable has its own.
    variant : {"corrected", "published"}, default "corrected"
        "published" follows the paper to the letter. If that is not private, it needs public rows and `unsafe=True`.
    unsafe : bool, default False
        Run a published variant that is not private. The rows must be public.
    random_state : int, RandomState or None, default None
        The seed of public coins. It never seeds noise.
    verbose : bool or callable, default 0
        True shows a bar while the fit runs: in a notebook below its cell, on a terminal as one line of standard error,
        elsewhere as a line for each step. A function is called with a `Progress` instead.

    Attributes
    ----------
    model_ : Model
        The published model.
    privacy_ : Privacy
        What was promised and spent, step by step.
    classes_ : array
        The classes, sorted.
    domain_ : Domain
        The domain of the table, as declared. `model_.domain` may have finer bins: boosted tables divide coarse ones.
    n_features_in_ : int
        The number of columns of the rows that were fitted.
    feature_names_in_ : array of str
        Their names, if they had any.
    """

    epsilon: Any = field(default=None, kw_only=False)
    domain: Domain | str | Path | None = None
    variant: str = "corrected"
    unsafe: bool = False
    random_state: Any = None
    verbose: Any = 0

    algorithm: ClassVar[str]
    domain_: Domain = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)
    _bar: ProgressBar | None = field(init=False)  # of a fit that runs; else not there

    # -- what an algorithm adds -------------------------------------------------------------

    model_: Any = field(init=False)

    @abstractmethod
    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Model:
        """Spend the whole epsilon on a table, and return the model.

        `reasons` say why the model is not private, if it is not.
        """

    def private_on(self, domain: Domain) -> bool:
        """Return whether the classifier, with its parameters, is private on tables of a domain.

        Parameters
        ----------
        domain : Domain

        Returns
        -------
        bool
        """
        return True

    def check(self, domain: Domain) -> None:
        """Refuse parameters that cannot be used on private tables of a domain; no table is needed.

        Parameters
        ----------
        domain : Domain

        Raises
        ------
        PrivetError
            As `fit` would. Nothing was charged.
        """
        self._checked_epsilon()
        self._check_random_state()
        check_target(domain)
        self._check(domain, protected=True)

    def _check(self, domain: Domain, protected: bool) -> None:
        """Refuse what cannot be learned, before any row is read. `protected` rows give no exact answers."""

    def _open_rows(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        """Return the rows as a table, and whether their domain was read from rows that are private."""
        return open_table(frame, domain, budget=self._checked_epsilon()), inferred

    # -- fitting ----------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any = None, *, key: str | None = None, **unsupported: Any) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : ProtectedTable, frame or array-like
            A table, which is charged; or rows, which are opened with the domain of the classifier.
        y : array-like, optional
            The classes of the rows; left out for a ProtectedTable, which holds its target. Without a domain, the
            target of the model has the name of `y`, if it has one that is not among the columns of `X`.
        key : str, optional
            For a ProtectedTable. The whole epsilon is charged at once, and the ledger keeps the model under the key:
            the same call finds it, or finishes the fit after a crash, without another charge. No progress is
            reported, and a classifier that finds its model has no other fitted attributes, such as `choice_`.
        **unsupported
            `sample_weight` and anything else is refused.

        Returns
        -------
        self

        Raises
        ------
        QuestionError
            A parameter cannot be used. Nothing was charged.
        DataError
            `X` or `y` is not a table or a column. The message does not depend on a row.
        BudgetExceeded
            The table has less than `epsilon` left. Nothing was charged.
        KeyReused
            The key stands for another fit.
        NotPrivate
            The algorithm is not private in this form, and the rows are not declared public.
        """
        _refuse(unsupported)
        if key is not None and not isinstance(X, ProtectedTable):
            raise QuestionError("a key is for a table with a ledger, which keeps the model; open it with privet.open.")
        table, inferred = self._open_table(X, y)
        reasons = [INFERRED] if inferred else []
        try:
            with self._progress_shown():
                self.model_ = self._learn(table, reasons) if key is None else self._learn_once(table, key)
        finally:
            if table is not X:
                table.close()
        self.domain_ = table.domain  # as declared: a model may have finer bins
        self._domain_inferred = self.domain is None and not isinstance(X, ProtectedTable)
        # scikit-learn takes sorted classes for granted; the model keeps the order of its domain
        self._class_order = _sorted(self.model_.class_values)
        if not inferred:
            self.classes_ = self.model_.class_values[self._class_order]
        return self

    def _learn_once(self, table: ProtectedTable, key: str) -> Model:
        """Return the model that the ledger keeps under a key; learn it if there is none."""
        silent = copy(self).set_params(verbose=0)  # a run that ends before its model is stored may tell nobody anything
        chosen = {name: _plain(name, value) for name, value in self.choices().items()}
        coins = _plain("random_state", self.random_state)
        identity: Json = {"fit": self.algorithm, "version": 1, "variant": self.variant, "choices": chosen}
        text, entry, own = table._backend.keyed_run(
            table,
            lambda scope: silent._learn(scope, []).to_json(),
            self._checked_epsilon(),
            key,
            f"fit({self.algorithm})",
            identity,
            coins,
        )
        if own:  # of all runs under the key one may leave
            self.__dict__.update({name: value for name, value in vars(silent).items() if name != "verbose"})
        model: Any = Model.from_json(text)
        steps = tuple(replace(step, entry=entry) for step in model.privacy.steps)
        found: Model = replace(model, privacy=replace(model.privacy, steps=steps))
        return found

    @property
    def privacy_(self) -> Privacy:
        """What was promised and spent, step by step."""
        check_is_fitted(self, "model_")
        privacy: Privacy = self.model_.privacy
        return privacy

    def choices(self) -> dict[str, Any]:
        """Return the parameters that belong to the algorithm alone, as a dict."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in _COMMON}

    def _open_table(self, X: Any, y: Any, domain: Domain | None = None) -> tuple[ProtectedTable, bool]:
        """Return the table to fit, and whether its domain was read from its rows. Nothing is charged yet."""
        self._checked_epsilon()
        self._check_random_state()
        given = domain or _domain(self.domain)
        if isinstance(X, ProtectedTable):
            return self._checked_table(X, y, given), False
        if X is None or isinstance(X, str | Path):
            refuse_no_rows(X)
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs the class of each row."
            )
        inferred = given is None
        frame, declared = self._inferred_frame(X, y) if given is None else (self._declared_frame(X, y, given), given)
        self._check(declared, protected=False)
        if inferred and self.private_on(declared):
            warnings.warn(
                "no domain was given, so values, bounds and classes are read from the rows and become public with the "
                "model; pass domain=... to keep the promise.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        table, inferred = self._open_rows(frame, declared, inferred)
        if given is not None and (phrases := mismatches(frame, given)):
            warnings.warn(mismatch_warning(phrases), DtypeMismatchWarning, stacklevel=3)
        return table, inferred

    def _checked_table(self, table: ProtectedTable, y: Any, given: Domain | None) -> ProtectedTable:
        """Check a table against the classifier, and note its columns."""
        if y is not None:
            raise QuestionError("a ProtectedTable holds its target itself; leave out y.")
        if given is not None and given.fingerprint != table.domain.fingerprint:
            raise QuestionError("the table was opened with another domain than the estimator's; leave out domain.")
        self._check(table.domain, protected=not isinstance(table, PublicTable))
        names = np.array(table.domain.attributes, dtype=object)
        self.n_features_in_, self.feature_names_in_, self._by_name = len(names), names, True
        self._columns = list(table.domain.attributes)
        return table

    def _declared_frame(self, X: Any, y: Any, domain: Domain) -> pd.DataFrame:
        """Return X and y as one frame. No error or warning depends on a cell, a class or the number of rows."""
        X, labels = rows_of(X, len(domain.attributes)), labels_of(y)
        if domain.person is not None:
            X, persons = without_person(X, domain.person)
        self._note_columns(X)
        if len(X) != len(labels):
            raise DataError("X and y have different numbers of rows; pass one class for each row.")
        frame = named_frame(X, list(domain.attributes))
        target, name = domain.target_column.name, name_of(y)
        if name != target and name in domain.stored_names:  # other names are no sign of a mistake
            warnings.warn(_another_target(name, target), TargetNameWarning, stacklevel=4)
        frame[target] = labels.set_axis(frame.index)  # of an array, pandas would guess the type
        if domain.person is not None:
            frame[domain.person] = persons
        return frame

    def _inferred_frame(self, X: Any, y: Any) -> tuple[pd.DataFrame, Domain]:
        """Return X and y as one frame, and a domain read from them. Here errors may depend on rows."""
        X = checked_rows(X)
        self._note_columns(X)
        labels = column_or_1d(plain_labels(y), warn=True)
        check_consistent_length(X, labels)
        # whole numbers and texts are always classes
        if labels.dtype.kind not in "biuU" and not isinstance(labels.flat[0], str):
            check_classification_targets(labels)
        frame = named_frame(X, [f"x{i}" for i in range(X.shape[1])])
        name = name_of(y) or "target"
        if name_of(y) in frame.columns:
            warnings.warn(_same_name(name), TargetNameWarning, stacklevel=4)
            name = "target"
        while name in frame.columns:
            name += "_"
        self.classes_ = np.unique(labels)
        frame[name] = labels
        return frame, infer(frame, name, self.classes_.tolist())

    def _note_columns(self, X: Any) -> None:
        """Keep the names and the number of columns, as scikit-learn does."""
        validate_data(self, X, skip_check_array=True)
        self._columns = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else []
        self._by_name = False

    @property
    def _names(self) -> list[str]:
        """The names of the columns of an array: those of the rows that were fitted, else those of the domain."""
        return self._columns or list(self.domain_.attributes)

    def _checked_epsilon(self) -> Fraction:
        """Return the epsilon of the whole fit, or refuse what is none."""
        epsilon = self.epsilon
        if epsilon is None:
            raise QuestionError(
                f"{type(self).__name__} needs an epsilon, the privacy budget of the whole fit, as epsilon=0.5."
            )
        return as_epsilon(epsilon)

    def _check_random_state(self) -> None:
        """Refuse a seed of public coins that is none, before anything is charged."""
        try:
            check_random_state(self.random_state)
        except ValueError:
            raise QuestionError(
                f"random_state must be a whole number from 0 to {2**32 - 1}, not {quoted(self.random_state)}."
            ) from None

    def _public_coins(self) -> np.random.Generator:
        """Return the public coins that `random_state` seeds."""
        return np.random.default_rng(int(check_random_state(self.random_state).randint(2**31)))

    def _report(self, progress: Progress) -> None:
        """Report progress as `verbose` says."""
        if callable(self.verbose):
            self.verbose(progress)
        elif self.verbose and (bar := getattr(self, "_bar", None)) is not None:  # a silent copy has the bar, too
            bar(progress)

    @contextmanager
    def _progress_shown(self) -> Iterator[None]:
        """Show a bar while a block runs, if `verbose` says so."""
        bar = self._bar = ProgressBar() if self.verbose and not callable(self.verbose) else None
        finished = False
        try:
            yield
            finished = True
        finally:
            del self._bar
            if bar is not None:
                bar.close(finished)

    # -- predicting -------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : frame or array-like
            Rows, which are not protected.

        Returns
        -------
        array

        Raises
        ------
        DataError
            A column that the model looks at is missing.
        """
        check_is_fitted(self, "model_")
        position = np.argsort(self._class_order)  # of each class of the domain in classes_
        return np.asarray(self.classes_[position[self.model_.predict_codes(self._rows(X))]])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted correctly.

        Classes are compared as the domain compares values: 1, 1.0 and "1" are one class, as are True and "True".

        Parameters
        ----------
        X : frame or array
            Rows to predict.
        y : array-like
            Their classes. A class that the domain does not declare is never predicted correctly.
        sample_weight : array-like, optional
            The weight of each row.

        Returns
        -------
        float
        """
        check_is_fitted(self, "model_")
        right = self.model_.predict_codes(self._rows(X)) == self.domain_.target_column.encode(plain_labels(y))
        return float(np.average(right, weights=sample_weight))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the share of each class for each row.

        Parameters
        ----------
        X : frame or array-like
            Rows, which are not protected.

        Returns
        -------
        array of float
            [row, class], with classes in the order of `classes_`.

        Raises
        ------
        DataError
            A column that the model looks at is missing.
        """
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.predict_proba(self._rows(X))[:, self._class_order])

    def _rows(self, X: Any) -> pd.DataFrame:
        """Return rows to predict as a frame with the columns of the domain."""
        X = checked_rows(X)
        if isinstance(X, pd.DataFrame) and self.domain_.person is not None:
            X = X.drop(columns=self.domain_.person, errors="ignore")  # it is no attribute
        if not (self._by_name and hasattr(X, "columns")):  # a frame may have other columns, such as the target
            validate_data(self, X, reset=False, skip_check_array=True)
        return named_frame(X, self._names)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : frame or array-like

        Returns
        -------
        array of float
            [row, class]; minus infinity for a share of 0.
        """
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
class TreeClassifier(PrivateClassifier):
    """Base class of trees and forests, which grow by the plan of a preset.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`.
    max_leaves : int, default 100000
        The most leaves that a tree may have. A fit that may need more is refused before anything is charged.

    Attributes
    ----------
    model_ : Ensemble
        The published trees.
    """

    max_leaves: int = 100_000
    model_: Ensemble = field(init=False)

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Ensemble:
        """Grow the plan of the preset."""
        return grow(
            table,
            self._plan_for(table.domain),
            self._checked_epsilon(),
            self._public_coins(),
            variant=self.variant,
            reasons=reasons,
            progress=self._report,
            jobs=self._jobs(),
        )

    def _jobs(self) -> int | None:
        """Return how many trees may grow at once."""
        jobs = getattr(self, "n_jobs", None)
        if jobs is None:
            return None
        if isinstance(jobs, bool) or not isinstance(jobs, int | np.integer) or (jobs < 1 and jobs != -1):
            raise QuestionError(f"n_jobs must be a whole number from 1, or -1 for all cores, not {quoted(jobs)}.")
        return (os.cpu_count() or 1) if jobs == -1 else int(jobs)

    def _plan_for(self, domain: Domain) -> Plan:
        """Return the plan of the preset, with the choices of this classifier."""
        return preset(self.algorithm).plan(domain, self.variant, **self.choices())

    def private_on(self, domain: Domain) -> bool:
        """Return whether the plan of this classifier is private on tables of a domain."""
        return self._plan_for(domain).is_private

    def _check(self, domain: Domain, protected: bool) -> None:
        """Refuse a plan that is not private, unless the rows are declared public."""
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

    def _open_rows(self, frame: pd.DataFrame, domain: Domain, inferred: bool) -> tuple[ProtectedTable, bool]:
        """Open the rows; as public ones if the plan is not private."""
        plan = self._plan_for(domain)
        if plan.is_private:
            return super()._open_rows(frame, domain, inferred)
        opened = open_public(frame, domain, rounded_noise=plan.rounded_noise, printed_ranges=plan.printed_ranges)
        return opened, inferred and not plan.is_exact


@dataclass(eq=False, repr=False, kw_only=True)
class TablesClassifier(PrivateClassifier):
    """Base class of sums of tables, whose predictions can be read as sums.

    Parameters
    ----------
    epsilon, domain, variant, unsafe, random_state, verbose
        As in `PrivateClassifier`. There is no published variant.

    Attributes
    ----------
    model_ : Tables
        The published tables, which can be drawn, explained and edited.
    """

    model_: Tables = field(init=False)

    def _learn(self, table: ProtectedTable, reasons: list[str]) -> Tables:
        """Learn tables."""
        learner = LEARNERS[self.algorithm]
        return learn(
            table,
            learner,
            self._checked_epsilon(),
            self._public_coins(),
            reasons=reasons,
            progress=self._report,
            **self.choices(),
        )

    def _check(self, domain: Domain, protected: bool) -> None:
        """Refuse a variant that there is not."""
        LEARNERS[self.algorithm].check_variant(self.variant)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return log odds.

        Parameters
        ----------
        X : frame or array-like
            Rows, which are not protected.

        Returns
        -------
        array of float
            With two classes those of the second, one for each row; with more, [row, class] up to a constant of the
            row.
        """
        check_is_fitted(self, "model_")
        logits = self.model_.logits(self._rows(X))[:, self._class_order]
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much each column moves predictions. The values add up to 1, or are all 0; they cost nothing."""
        check_is_fitted(self, "model_")
        importance = self.model_.importance
        weights = np.array([importance.get(name, 0.0) for name in self._names])  # the domain may leave columns out
        return np.asarray(weights / weights.sum()) if weights.any() else weights


def _sorted(classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order that sorts the classes, or that of the domain if they cannot be compared."""
    try:
        return np.argsort(classes, kind="stable")
    except TypeError:
        return np.arange(len(classes))


def _same_name(name: str) -> str:
    """Return the warning that X has a column of y's name."""
    return (
        f"X has a column '{shown(name)}' too, which is the name of y; it counts as an attribute, and the target gets "
        "another name. If it is the target, leave it out of X; else rename y."
    )


def _another_target(name: str, target: str) -> str:
    """Return the warning that y has the name of a column that is not the target of the domain."""
    return (
        f"y is called '{shown(name)}', and the target of the domain is '{shown(target)}': y is taken for the latter. "
        f"If you mean '{shown(name)}', declare it by domain.with_target; else rename y."
    )


def _plain(name: str, value: Any) -> Json:
    """Return a parameter as JSON, by which a key tells one fit from another.

    Anything else is refused: code of the caller's would see answers of runs that leave nothing.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float | Path):
        return str(value)
    raise QuestionError(
        f"a fit under a key takes plain parameters, and {name} is a {type(value).__name__}; leave out the key, or give "
        "a text, a number, or nothing."
    )


def _refuse(unsupported: dict[str, Any]) -> None:
    """Refuse arguments of `fit` that scikit-learn's classifiers have and private ones cannot."""
    if unsupported.pop("sample_weight", None) is not None:
        raise QuestionError(
            "sample_weight is refused: a row of weight w counts w times, so its person would lose w times epsilon."
        )
    if unsupported:
        raise TypeError(f"fit takes no argument '{min(unsupported)}'.")


def _domain(given: Domain | str | Path | None) -> Domain | None:
    """Return a domain, read from its file if a path is given."""
    if given is None or isinstance(given, Domain):
        return given
    if isinstance(given, str | Path):
        return Domain.load(given)
    raise QuestionError(f"domain must be a Domain or the path of a domain file, not a {type(given).__name__}.")
