"""What is not private: every outcome of a run, computed on rows that the caller made."""

from privet.lab.enumeration import WorstLoss, worst_loss, worst_loss_of_draws

__all__ = ["WorstLoss", "worst_loss", "worst_loss_of_draws"]
