"""What an adversary believes of everybody after looking: how likely each sensitive value is, profile by profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from privet.risk.people import People
from privet.risk.tree import Floats


@dataclass(frozen=True, eq=False)
class Belief:
    """P(value | profile) of one adversary, and how it was found.

    `notes` are sentences for the report; `facts` numbers for programs: what was solved, and how well.
    """

    adversary: str
    shares: Floats  # [profile, value]
    exact: bool = True  # False: sampled or solved to a tolerance, and `notes` say how well
    notes: tuple[str, ...] = ()
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
    binding: tuple[tuple[int, str], ...] = ()  # nodes whose choice binds, and the column they were preferred to


def entropy(shares: Floats) -> Floats:
    """The entropy of each row of shares, in nats."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logs).sum(axis=-1))


def mean_entropy(people: People, shares: Floats) -> float:
    """H(value | profile): what an adversary does not know of an average person, in nats."""
    return float(people.sizes @ entropy(shares) / people.total)


def uniform(people: People, classes: int) -> Belief:
    """Whoever knows nothing: all values alike."""
    return Belief("uniform", np.full((len(people), classes), 1 / classes))


def marginal_only(people: People, marginal: Floats) -> Belief:
    """Whoever knows how frequent each value is among all people, and nothing else."""
    return Belief("marginal", np.tile(marginal, (len(people), 1)))
