"""Empirical privacy: do not believe a claim of epsilon, test it.

`verify` takes a mechanism, an estimator or a name and a claimed epsilon, and looks for two
neighbouring tables and an event that show a larger loss. What it reports is a lower
bound with a stated probability of being wrong. A bound below the claim proves nothing:
proofs are in docs/explanation/privacy.md; a bound above it is a disproof.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from privet.errors import QuestionError
from privet.kernel import Domain, as_delta, as_epsilon
from privet.learners.estimator import PrivateClassifier
from privet.verification import estimators, functions, mechanisms, membership, reconstruction, with_delta
from privet.verification.attacks import AttackResult, attack, attack_by_paths
from privet.verification.checks import Check
from privet.verification.layer import Layer, LocalLayer
from privet.verification.registry import FALSE_ALARM, registry, trials
from privet.verification.search import search
from privet.verification.subject import Effort, Progress, Subject
from privet.verification.verdict import Finding, Report, Verdict

__all__ = [
    "AttackResult",
    "Finding",
    "Layer",
    "LocalLayer",
    "Report",
    "Verdict",
    "attack_server",
    "attack_table",
    "registry",
    "search",
    "verify",
    "verify_all",
]

TAKES_PAIRS = ("function", "peer")


def verify(
    subject: Any,
    epsilon: Any = 1.0,
    *,
    delta: Any = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    alpha: float = 1e-8,
    effort: float = 1.0,
    progress: Progress = lambda text: None,
) -> Verdict:
    """Hold a claim of `epsilon` against runs, and say how much is lost at least.

    Parameters
    ----------
    subject : str, classifier, mechanism or function
        A name (`privet verify --list` shows them), a classifier of privet, any estimator with scikit-learn's fit and
        predict, a mechanism of the kernel, or a function of a table.
    epsilon : number or str, default 1
        The claim.
    delta : number or str, optional
        With one the claim is (epsilon, delta).
    pairs : sequence of pairs, optional
        Neighbouring tables. A function needs them, and may take whatever it is a function of; an estimator takes them
        if its default tables do not suit it: (X, y), and the same with one row more, its last.
    alpha : float, default 1e-8
        The probability that the bound is wrong, at most.
    effort : float, default 1
        Multiplies the runs.
    progress : callable, optional
        Is called with a line of text now and then.

    Returns
    -------
    Verdict
        The bound, and whether the claim holds.

    Raises
    ------
    QuestionError
        The subject, or another argument, is none of these.

    >>> import random
    >>> verify(lambda count: count + random.gauss(0, 1), epsilon=1, pairs=[(0, 9)]).passed
    False
    """
    claim = as_epsilon(epsilon)
    if not isinstance(alpha, int | float) or not 0 < alpha <= 0.1:
        raise QuestionError(f"alpha is the probability of a wrong bound, above 0 and at most 0.1, not {alpha}.")
    if pairs is not None and not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
        raise QuestionError("pairs are pairs of neighbouring tables, as pairs=[(table, neighbour)].")
    found = _subject(subject, pairs)
    if pairs is not None and found.kind not in TAKES_PAIRS:
        raise QuestionError(f"{found.name} brings its own tables; leave out pairs.")
    if delta is not None:
        found = _with_delta(found, as_delta(delta))
    return found.verify(claim, alpha, _effort(effort), progress)


def _with_delta(subject: Subject, delta: Fraction) -> Subject:
    """Return a subject whose claim is (epsilon, delta)."""
    if subject.delta is not None:
        if delta != subject.delta:
            raise QuestionError(f"{subject.name} is verified with delta {float(subject.delta):g}; leave out delta.")
        return subject

    def checks(claim: Fraction, effort: Effort) -> Sequence[Check]:
        if subject.in_rho is not None:
            return subject.in_rho(claim, effort, delta)
        found = [with_delta.approximate(check, delta) for check in subject.checks(claim, effort)]
        kept = [check for check in found if check is not None]
        if not kept:
            raise QuestionError(f"{subject.name} claims a pure epsilon, which arithmetic holds it to; leave out delta.")
        return kept

    return replace(subject, checks=checks, delta=delta)


def _effort(times: float) -> Effort:
    if not isinstance(times, int | float) or not 0 < times <= 1000:
        raise QuestionError(f"effort multiplies the runs by more than 0 and at most 1000, not {times}.")
    return Effort(times)


def _subject(subject: Any, pairs: Sequence[tuple[Any, Any]] | None) -> Subject:
    if isinstance(subject, Subject):
        return subject
    if isinstance(subject, str):
        return _named(subject)
    name = getattr(subject, "__name__", type(subject).__name__)
    if isinstance(subject, type):
        raise QuestionError(f"{name} is a class; pass one of it, as {name}(...).")
    if isinstance(subject, PrivateClassifier):
        run = partial(_classifier, subject)
        return Subject(name, "estimator", "one of privet's classifiers", run, in_rho=run)
    if hasattr(subject, "loss") and hasattr(subject, "release"):
        return Subject(name, "mechanism", "a mechanism", lambda claim, effort: mechanisms.checks(subject, effort))
    if hasattr(subject, "fit") and hasattr(subject, "predict"):
        return Subject(
            name, "peer", "a classifier", lambda claim, effort: estimators.peer_checks(subject, effort, pairs)
        )
    if callable(subject):
        return Subject(name, "function", "a function", lambda claim, effort: functions.checks(subject, effort, pairs))
    raise QuestionError(
        f"cannot verify a {type(subject).__name__}; pass a name, a classifier, a mechanism or a function of a table."
    )


def _named(name: str) -> Subject:
    known = registry()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "`privet verify --list` shows the names."
        raise QuestionError(f"there is nothing to verify called '{name}'; {hint}")
    return known[name]


def _classifier(
    classifier: PrivateClassifier, claim: Any, effort: Effort, delta: Fraction | None = None
) -> list[Check]:
    """A classifier on the tables of the bench, whatever its own domain is; one without an epsilon gets the claim."""
    parameters = {**classifier.get_params(deep=False), "domain": None}
    if parameters["epsilon"] is None:
        parameters["epsilon"] = claim
    if "delta" in parameters:  # a table has its own
        parameters["delta"] = None
    return estimators.checks(type(classifier)(**parameters), effort, delta)


def verify_all(*, effort: float = 1.0, curves: bool = True, progress: Progress = lambda text: None) -> Report:
    """Everything in the registry; a false alarm has probability 1e-6 at most in all."""
    planned = trials()
    verdicts = []
    for number, (subject, epsilon, own) in enumerate(planned):
        progress(f"{number + 1} of {len(planned)}: {subject.name} at epsilon {float(epsilon):g}")
        verdicts.append(subject.verify(epsilon, FALSE_ALARM / len(planned), _effort(own.times * effort)))
    return Report(tuple(verdicts), curves=attack_curves(progress) if curves else ())


def attack_curves(progress: Progress = lambda text: None) -> tuple[dict[str, Any], ...]:
    """What attacks on published trees achieve at each epsilon, beside what epsilon allows."""
    import numpy as np

    found = [
        membership.curve("hanisch-tree", max_depth=2, progress=progress),
        membership.curve("diffpid3", max_depth=1, progress=progress),
    ]
    points = reconstruction.curve(
        (0.1, 1.0, 3.0, 10.0, 30.0), repeats=2, persons=1_000, rng=np.random.default_rng(), progress=progress
    )
    return *found, {"curve": "reconstruction", "subject": "jagannathan", "points": points}


PATHS = {"by the default path": "auto", "by push-down": "push-down"}


def attack_server(url: str, token: str, table: str, *, progress: Progress = lambda text: None) -> Report:
    """The attacks on a privacy layer, against a table that somebody serves: its answers are charged to the caller.

    Rows that an attack needs are made here and served on this machine, by a server of this version.
    """
    import pandas as pd

    from privet.service.client import connect
    from privet.verification.served_layer import ServedLayer

    with connect(url, token) as connection:
        domain = connection.table(table).domain
        frame = pd.DataFrame({name: [] for name in domain.stored_names})
        with ServedLayer(frame, domain, connection=connection, table=table) as layer:
            return Report(attacks=tuple(attack(layer, progress)), layer=layer.name)


def attack_table(data: Any, domain: Domain | str | Path, *, progress: Progress = lambda text: None) -> Report:
    """The attacks on a privacy layer, against a table; nothing is charged to its ledger and no answer is kept.

    A file is attacked by the path that `privet.open` chooses and by push-down, a frame in memory once.
    """
    with ExitStack() as stack:
        layers = {name: stack.enter_context(LocalLayer(data, domain, access=access)) for name, access in PATHS.items()}
        first = next(iter(layers.values()))
        if first.in_memory:
            return Report(attacks=tuple(attack(first, progress)), layer=first.name)
        results = attack_by_paths(layers, progress)
        return Report(attacks=tuple(results), layer=f"{first.name}, {' and '.join(layers)}")
