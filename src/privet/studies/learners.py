"""The learners that are compared: ours, what a user would take instead, and some without privacy.

Peers get what favours them: codes in the order of the public value lists (one-hot codes cost
diffprivlib up to ten points), numbers as they are, bounds and classes from the public domain,
labels 0, 1, ... (diffprivlib's forest is wrong for others), a depth and a learning rate that were picked on
test accuracy. DP-EBM is told which attributes are nominal, and gets a delta of 1e-6 besides epsilon; it
reads the values of a nominal attribute from the rows for nothing. Two more of ours stand on the other side: noisy
gradient descent, which is what a delta buys with a few lines of numpy, and XGBoost on the bins of the domain, which
says how much of what is missing to the best is missing because of the bins.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from privet.choice.auto import CLASSIFIERS
from privet.choice.catalog import algorithm
from privet.kernel import Domain, Nominal
from privet.studies.trial import Trial

DELTA = 1e-6


@dataclass(frozen=True)
class Learner:
    """A class of some package, and the options it is given."""

    name: str
    title: str
    package: str  # as pip knows it
    factory: str  # module:class
    options: tuple[tuple[str, str | int | float | bool | None], ...] = ()
    private: bool = True
    delta: bool = False  # promises less than pure epsilon: epsilon, and the delta of all of these
    binned: bool = False  # reads numbers in the bins of the domain
    binary: bool = False  # knows two classes only
    grows: bool = True  # is measured on a growing number of rows

    @property
    def ours(self) -> bool:
        return self.package == "privet"

    def build(self, trial: Trial, domain: Domain) -> Any:
        """The estimator of a trial, not yet fitted."""
        arguments = _ARGUMENTS[self.package](domain)
        if self.private:
            arguments["epsilon"] = trial.epsilon if self.ours else float(trial.epsilon)
        return self._class()(**arguments, **dict(trial.options), random_state=int(trial.key[:7], 16))

    @property
    def needs_max_rows(self) -> bool:
        """Whether it scores splits by information gain, whose sensitivity grows with the rows."""
        own = getattr(self._class(), "criterion", None)
        return dict(self.options).get("criterion", own) == "infogain"

    def problem(self) -> str:
        """Why it cannot be measured in this interpreter, or nothing."""
        try:
            self._class()
            self.version()
        except PackageNotFoundError:
            return f"{self.title} is left out: pip could not install {self.package}"
        except (ImportError, AttributeError) as error:
            return f"{self.title} is left out: {error}"
        return ""

    def version(self) -> str:
        return f"{self.package} {version(self.package)}"

    def _class(self) -> Any:
        module, name = self.factory.split(":")
        return getattr(importlib.import_module(module), name)


_SELECTED = (
    Learner("boosted", "boosted tables", "privet", "privet:BoostedTablesClassifier"),
    Learner(
        "boosted-delta",
        "boosted tables with a delta",
        "privet",
        "privet:BoostedTablesClassifier",
        (("delta", "1e-6"),),
        delta=True,
    ),
    Learner("id3plus", "ID3+", "privet", "privet:ID3PlusClassifier"),
    Learner("naive-bayes", "naive Bayes", "privet", "privet:NaiveBayesClassifier", grows=False),
    Learner("diffpid3", "DiffPID3", "privet", "privet:DiffPID3Classifier", grows=False),
    Learner("prior", "class counts alone", "privet", "privet:PriorClassifier", grows=False),
    Learner(
        "noisy-gd",
        "noisy gradient descent",
        "privet",
        "privet.studies.noisy_gd:NoisyGradientDescent",
        (("delta", "1e-6"),),
        delta=True,
        grows=False,
    ),
    Learner(
        "dp-ebm-05",
        "DP-EBM at rate 0.05",
        "interpret-core",
        "interpret.privacy:DPExplainableBoostingClassifier",
        (("delta", DELTA), ("learning_rate", 0.05)),
        delta=True,
        binary=True,
    ),
    Learner(
        "dp-ebm",
        "DP-EBM",
        "interpret-core",
        "interpret.privacy:DPExplainableBoostingClassifier",
        (("delta", DELTA),),
        delta=True,
        binary=True,
        grows=False,
    ),
    Learner(
        "diffprivlib-forest",
        "diffprivlib forest",
        "diffprivlib",
        "diffprivlib.models:RandomForestClassifier",
        (("max_depth", 10), ("n_estimators", 10)),
    ),
    Learner(
        "diffprivlib-tree",
        "diffprivlib tree",
        "diffprivlib",
        "diffprivlib.models:DecisionTreeClassifier",
        (("max_depth", 12),),
    ),
    Learner(
        "sklearn-tree",
        "scikit-learn tree",
        "scikit-learn",
        "sklearn.tree:DecisionTreeClassifier",
        (("max_depth", 10),),
        private=False,
    ),
    Learner(
        "sklearn-forest",
        "scikit-learn forest",
        "scikit-learn",
        "sklearn.ensemble:RandomForestClassifier",
        (("n_estimators", 100), ("n_jobs", 1)),
        private=False,
        grows=False,
    ),
    Learner("xgboost", "XGBoost", "xgboost", "xgboost:XGBClassifier", (("n_jobs", 1),), private=False),
    Learner(
        "xgboost-bins",
        "XGBoost on the bins",
        "xgboost",
        "xgboost:XGBClassifier",
        (("n_jobs", 1),),
        private=False,
        binned=True,
        grows=False,
    ),
)

BENCHED: Mapping[str, Learner] = {learner.name: learner for learner in _SELECTED}  # what `make bench` compares

# every algorithm of ours, and the peers
LEARNERS: Mapping[str, Learner] = {
    name: Learner(name, name, "privet", f"privet:{kind.__name__}", private=algorithm(name).private)
    for name, kind in CLASSIFIERS.items()
} | dict(BENCHED)


def _of_privet(domain: Domain) -> dict[str, Any]:
    return {"domain": domain}


def _of_diffprivlib(domain: Domain) -> dict[str, Any]:
    low, high = zip(*(bounds(domain, name) for name in domain.attributes), strict=True)
    return {"bounds": (list(low), list(high)), "classes": list(range(len(domain.classes)))}


def _of_interpret(domain: Domain) -> dict[str, Any]:
    nominal = [isinstance(domain[name], Nominal) for name in domain.attributes]
    return {
        "feature_types": ["nominal" if each else "continuous" for each in nominal],
        "privacy_bounds": {at: bounds(domain, domain.attributes[at]) for at, each in enumerate(nominal) if not each},
        "n_jobs": 1,
    }


def bounds(domain: Domain, name: str) -> tuple[float, float]:
    """The least and the largest number that stands for a value of an attribute."""
    column = domain[name]
    return (0.0, column.size - 1.0) if isinstance(column, Nominal) else (float(column.low), float(column.high))


_ARGUMENTS: Mapping[str, Callable[[Domain], dict[str, Any]]] = {
    "privet": _of_privet,
    "diffprivlib": _of_diffprivlib,
    "interpret-core": _of_interpret,
    "scikit-learn": lambda domain: {},
    "xgboost": lambda domain: {},
}
