"""Everything that `privet verify --all` holds to its claim, by name.

A mechanism or preset that is not here fails the tests: what cannot be verified is not
released.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from privet.verification import estimators, fixtures, mechanisms, questions, with_delta
from privet.verification.subject import Effort, Subject

ONE = Fraction(1)
EPSILONS = (Fraction(1, 10), ONE, Fraction(4))  # of mechanisms and questions
FALSE_ALARM = 1e-6  # of everything honest together


@lru_cache
def registry() -> dict[str, Subject]:
    """Every subject by name: mechanisms, questions, presets, and what is known to be bad."""
    rooms = (mechanisms, questions, estimators, fixtures, with_delta)
    found = [subject for room in rooms for subject in room.subjects()]
    names = [subject.name for subject in found]
    assert len(set(names)) == len(names), "two subjects have one name"
    return dict(zip(names, found, strict=True))


def trials() -> list[tuple[Subject, Fraction, Effort]]:
    """What `--all` runs: mechanisms and questions at three epsilons, presets and known-bad fixtures at 1.

    Away from 1 a fifth of the runs is enough: what changes is a number in a formula that is
    computed for every outcome.
    """
    return [
        (subject, epsilon, Effort(1.0 if epsilon == ONE else 0.2))
        for subject in registry().values()
        for epsilon in (EPSILONS if subject.kind in ("mechanism", "question") else (ONE,))
    ]
