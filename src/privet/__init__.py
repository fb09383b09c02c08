"""privet: private decision trees for people who must not see the data."""

from privet import datasets, errors, testing
from privet.domain import Domain
from privet.errors import BudgetExceeded, NotPrivate, PrivacyError, UndeclaredDomain
from privet.kernel import AdditiveModel, ProtectedTable, Release, WeightedMax
from privet.kernel import open_table as open

__version__ = "0.1.0"

__all__ = [
    "AdditiveModel",
    "BudgetExceeded",
    "Domain",
    "NotPrivate",
    "PrivacyError",
    "ProtectedTable",
    "Release",
    "UndeclaredDomain",
    "WeightedMax",
    "datasets",
    "errors",
    "open",
    "testing",
]
