"""privet: private decision trees for people who must not see the data."""

import importlib
from typing import TYPE_CHECKING, Any

from privet import datasets, errors, testing
from privet.domain_file import METHODS
from privet.draft import draft_domain
from privet.errors import BudgetExceeded, NotPrivate, PrivacyError, UndeclaredDomain
from privet.kernel import AdditiveModel, Date, Domain, Nominal, Numeric, Quality, Rho, WeightedMax
from privet.open_table import open_table as open
from privet.pictures import draw_with, picture
from privet.release import Public, Release, Releases
from privet.table import Budget, Parts, ProtectedTable
from privet.version import __version__ as __version__

if TYPE_CHECKING:
    from privet.choice import Branch, History, NoisyIf
    from privet.choice.auto import AutoClassifier
    from privet.learners.estimators import (
        BoostedTablesClassifier,
        C45Classifier,
        DiffPC45Classifier,
        DiffPID3Classifier,
        HanischForestClassifier,
        HanischTreeClassifier,
        ID3Classifier,
        ID3PlusClassifier,
        JagannathanForestClassifier,
        MaxForestClassifier,
        MaxTreeClassifier,
        MohammedTreeClassifier,
        NaiveBayesClassifier,
        PatilSinghForestClassifier,
        PriorClassifier,
        SNRForestClassifier,
        SuLQID3Classifier,
    )
    from privet.models.model import Model
    from privet.models.tables import Tables
    from privet.models.tree import Ensemble
    from privet.pictures import Draws
    from privet.risk import Audit, audit
    from privet.service.client import connect
    from privet.verification import verify

__all__ = [
    "AdditiveModel",
    "Audit",
    "AutoClassifier",
    "BoostedTablesClassifier",
    "Branch",
    "BudgetExceeded",
    "C45Classifier",
    "Date",
    "DiffPC45Classifier",
    "DiffPID3Classifier",
    "Domain",
    "Ensemble",
    "HanischForestClassifier",
    "HanischTreeClassifier",
    "History",
    "ID3Classifier",
    "ID3PlusClassifier",
    "JagannathanForestClassifier",
    "MaxForestClassifier",
    "MaxTreeClassifier",
    "Model",
    "MohammedTreeClassifier",
    "NaiveBayesClassifier",
    "NoisyIf",
    "Nominal",
    "NotPrivate",
    "Numeric",
    "PatilSinghForestClassifier",
    "PriorClassifier",
    "PrivacyError",
    "ProtectedTable",
    "Public",
    "Quality",
    "Release",
    "Rho",
    "SNRForestClassifier",
    "SuLQID3Classifier",
    "Tables",
    "UndeclaredDomain",
    "WeightedMax",
    "audit",
    "connect",
    "datasets",
    "draft_domain",
    "errors",
    "open",
    "testing",
    "verify",
]


def _report() -> "Draws":
    """Return what draws."""
    from privet import report  # with the first picture: templates take a while, and questions do not need them

    return report


draw_with(_report)
_NOTEBOOK_METHOD = "_repr_html_"
for _kind in (Budget, Domain, Parts, Release, Releases):  # the kernel's values draw nothing themselves
    setattr(_kind, _NOTEBOOK_METHOD, picture)
for _name, _method in {**METHODS, "draft": staticmethod(draft_domain)}.items():
    setattr(Domain, _name, _method)


_MODULES = {
    "Audit": "privet.risk",
    "AutoClassifier": "privet.choice.auto",
    "Branch": "privet.choice",
    "Ensemble": "privet.models.tree",
    "History": "privet.choice",
    "Model": "privet.models.model",
    "NoisyIf": "privet.choice",
    "Tables": "privet.models.tables",
    "audit": "privet.risk",
    "connect": "privet.service.client",
    "verify": "privet.verification",
}


def __getattr__(name: str) -> Any:
    """Import models and classifiers on first use: scikit-learn takes a second, and questions do not need it."""
    module = _MODULES.get(name)
    if module is None and name.endswith("Classifier") and name in __all__:
        module = "privet.learners.estimators"
    if module is None:
        raise AttributeError(f"module 'privet' has no attribute '{name}'{errors.did_you_mean(name, __all__)}")
    globals()[name] = value = getattr(importlib.import_module(module), name)  # found without this function next time
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
