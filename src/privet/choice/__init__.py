"""Choosing between private algorithms: NoisyIf, its modes, policies, histories (docs/explanation/choice.md)."""

from privet.choice.branch import Advice, Branch
from privet.choice.history import History
from privet.choice.learning import Learning, Reward, percent_right
from privet.choice.linear import BayesianLinear
from privet.choice.modes import AccuracyFirst, Free, Probe, Race, Score
from privet.choice.noisy_if import NoisyIf
from privet.choice.outcome import Outcome
from privet.choice.policy import Advised, CautiousForest, Fixed, Floor, Policy

__all__ = [
    "AccuracyFirst",
    "Advice",
    "Advised",
    "BayesianLinear",
    "Branch",
    "CautiousForest",
    "Fixed",
    "Floor",
    "Free",
    "History",
    "Learning",
    "NoisyIf",
    "Outcome",
    "Policy",
    "Probe",
    "Race",
    "Reward",
    "Score",
    "percent_right",
]
