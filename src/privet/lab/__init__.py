"""What is not private: public rows, the errors of papers, and the enumeration of all outcomes of a run."""

from privet.lab.criteria import GainRatio, Unrounded
from privet.lab.distributions import probabilities
from privet.lab.enumeration import WorstLoss, worst_loss, worst_loss_of_draws
from privet.lab.public import PublicRows, PublicTable, open_public

__all__ = [
    "GainRatio",
    "PublicRows",
    "PublicTable",
    "Unrounded",
    "WorstLoss",
    "open_public",
    "probabilities",
    "worst_loss",
    "worst_loss_of_draws",
]
