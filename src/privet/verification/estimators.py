"""Classifiers as subjects: privet's presets by name, and anything that fits as scikit-learn's do.

A privet classifier is fitted on protected tables, so that the whole way from the plan to the
ledger is on the bench; a peer is fitted on arrays. Three things are tried: every outcome of a
small tree (privet's only: the kernel can be scripted), many fits on neighbouring tables with a
distinguisher that sees the whole model, and canaries in every leaf.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from privet.choice.auto import CLASSIFIERS, AutoClassifier
from privet.choice.catalog import ALGORITHMS
from privet.errors import QuestionError
from privet.kernel import Domain, Nominal
from privet.lab import PublicRows, WorstLoss, open_public, worst_loss
from privet.lab.concentrated import concentrated_loss
from privet.learners.estimator import PrivateClassifier, TablesClassifier, TreeClassifier
from privet.learners.estimators import PriorClassifier
from privet.learners.presets import PRESETS, preset
from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.open_table import open_table
from privet.verification import observe
from privet.verification.checks import CanaryCheck, Check, ExactCheck, NeighbourCheck, Neighbours, Sampler
from privet.verification.events import Observations
from privet.verification.subject import Effort, Subject
from privet.verification.tables import BINARY, DOMAIN, ROW, Pair, boundary_pairs, known_pairs, random_pair
from privet.verification.with_delta import ConcentratedCheck, DeltaCanaryCheck, DeltaNeighbourCheck

FITS = 240  # on each table of the worst pair: canaries and every outcome show more
PEER_FITS = 900  # of somebody else's estimator, on which this is all there is
PILOT = 30  # on each table of every pair
CANARY_FITS = 75
OUTCOMES = 50  # of each pair
REOPEN = 100  # fits on one opened table: a ledger in memory grows with every charge
UNLIMITED = 10**6
ROWS_IN_RHO = (None, 5, 300, 10**6)  # noisy rows; class shares alone; a first table; fine cells and pairs


def subjects() -> Iterator[Subject]:
    """The corrected form of every algorithm that is private."""
    for name, found in ALGORITHMS.items():
        if found.private:
            run = partial(_preset, name)
            yield Subject(name, "preset", found.line, run, in_rho=run)


def _preset(name: str, epsilon: Fraction, effort: Effort, delta: Fraction | None = None) -> list[Check]:
    kind = CLASSIFIERS[name]
    if kind is AutoClassifier:  # its arms are here by themselves: what is new is the choice
        return checks(kind(epsilon), replace(effort, times=effort.times / 3), delta)
    if name not in PRESETS:
        return checks(kind(epsilon), effort, delta)
    known = kind().get_params()
    # a structure that is drawn without looking has few outcomes, one that is chosen many
    drawn = PRESETS[name].plan(DOMAIN).split == "random"
    small: dict[str, Any] = {"max_depth": 2 if drawn else 1, **({"n_estimators": 2} if "n_estimators" in known else {})}
    return checks(kind(epsilon, **small), effort, delta)


def checks(classifier: PrivateClassifier, effort: Effort, delta: Fraction | None = None) -> list[Check]:
    """What is tried on one of privet's classifiers; with a delta, on tables that are counted in rho."""
    pairs = _pairs(effort.seed)
    computed = (*pairs, *boundary_pairs()[1:3])  # ties that are made and broken, at places where counts are rounded
    fitted = [
        Neighbours(pair.name, *(_fits(classifier, rows, pair.probe, delta) for rows in (pair.left, pair.right)))
        for pair in (*pairs[:3], *pairs[4:][: effort.seed])  # further ones are tried in a long search
    ]
    if delta is not None:
        if not classifier.private_on(DOMAIN):
            raise QuestionError(f"{classifier.algorithm} is not private in this form; leave out delta.")
        return [
            ConcentratedCheck([case for pair in computed for case in _cases_in_rho(classifier, pair, delta)], delta),
            DeltaNeighbourCheck(fitted[0], effort.of(FITS) // 2, float(delta), concentrated=True),
            DeltaCanaryCheck(canaries(classifier, effort.of(CANARY_FITS) // 2, delta), float(delta)),
        ]
    return [
        ExactCheck([case for pair in computed for case in _cases(classifier, pair)], limit=effort.of(OUTCOMES)),
        NeighbourCheck(fitted, effort.of(FITS), max(PILOT, effort.of(FITS) // 20)),
        canaries(classifier, effort.of(CANARY_FITS)),
    ]


def _pairs(seed: int) -> tuple[Pair, ...]:
    """The worst cases of the criteria, and a table large enough for trees that stop where noise drowns the rows."""
    rng = np.random.default_rng(seed)
    many = tuple(row for _ in range(4) for row in random_pair(rng, most=15).rows)
    return (*known_pairs(), Pair(f"{len(many)} random rows and a person", many, {**ROW, "a": "1", "y": "1"}))


def _fits(
    classifier: PrivateClassifier, rows: pd.DataFrame, probe: pd.DataFrame, delta: Fraction | None = None
) -> Sampler:
    """Fits on one private table."""

    def sample(runs: int) -> Observations:
        frames = []
        for start in range(0, runs, REOPEN):
            with opened(classifier, delta)(rows, _domain(classifier)) as table:
                fit = partial(classifier.fit, table)
                frames.append(observe.runs(fit, min(REOPEN, runs - start), probe))
        return pd.concat(frames, ignore_index=True)

    return sample


def _cases(classifier: PrivateClassifier, pair: Pair) -> Iterator[tuple[str, Callable[..., WorstLoss]]]:
    """The same public coins on both tables: what remains is what mechanisms release."""
    seeded = clone(classifier).set_params(random_state=0)

    def publish(table: Any) -> Hashable:
        return content(seeded.fit(table).model_)

    for name, domain in _domains(classifier, pair).items():
        yield name, partial(worst_loss, publish, pair.left, pair.right, domain, public=public_rows(classifier))


def _domains(classifier: PrivateClassifier, pair: Pair) -> dict[str, Domain]:
    """The domains of a pair; with a third class learners of tables ask other questions."""
    domains = {pair.name: _domain(classifier)}
    if isinstance(classifier, TablesClassifier):
        third = Nominal(DOMAIN.target_column.name, (*BINARY, "2"))
        columns = tuple(third if column.name == third.name else column for column in DOMAIN)
        domains[f"{pair.name}, three classes"] = replace(_domain(classifier), columns=columns)
    return domains


def _cases_in_rho(classifier: PrivateClassifier, pair: Pair, delta: Fraction) -> Iterator[tuple[str, Any]]:
    """Whole fits on tables that are counted in rho: all branches that declared rows lead to, and some transcripts."""
    seeded = clone(classifier).set_params(random_state=0)

    def publish(table: Any) -> Hashable:
        return content(seeded.fit(table).model_)

    by_rows = isinstance(classifier, AutoClassifier | TablesClassifier)
    for name, domain in _domains(classifier, pair).items():
        for rows in ROWS_IN_RHO if by_rows else (domain.rows,):
            sized = replace(domain, rows=rows, max_rows=rows)
            for seed in (None, 0):
                title = f"{name}, rows {rows}, {'exact values' if seed is None else 'drawn values'}"
                yield title, partial(concentrated_loss, publish, pair.left, pair.right, sized, delta, seed)


def opened(classifier: PrivateClassifier, delta: Fraction | None = None) -> Callable[[pd.DataFrame, Domain], Any]:
    """How a table is opened for a classifier: a protected one does not answer what is known not to be private."""
    public = public_rows(classifier)
    if public is None:
        return partial(open_table, budget=UNLIMITED, delta=delta)
    return partial(open_public, rounded_noise=public.rounded_noise, printed_ranges=public.printed_ranges)


def public_rows(classifier: PrivateClassifier) -> PublicRows | None:
    """What a classifier that is known not to be private asks of public rows; None for all others."""
    if not isinstance(classifier, TreeClassifier) or classifier.private_on(DOMAIN):
        return None
    plan = preset(classifier.algorithm).plan(DOMAIN, classifier.variant, **classifier.choices())
    return PublicRows(plan.rounded_noise, plan.printed_ranges)


def _domain(classifier: PrivateClassifier) -> Domain:
    """Learners of tables get a public number of rows for which they buy two at epsilon 1, whatever the rows are."""
    tables = isinstance(classifier, AutoClassifier | TablesClassifier)
    return replace(DOMAIN, rows=300, max_rows=300) if tables else DOMAIN


def content(model: Model) -> Hashable:
    """Everything a model publishes, to compare it with another."""
    if isinstance(model, Tables):
        return (
            model.privacy.decisions,
            model.intercept,
            tuple((table.columns, table.values.tobytes(), table.deviation.tobytes()) for table in model.tables),
            model.note,
        )
    assert isinstance(model, Ensemble)
    trees = (
        (tree.column.tobytes(), tree.at.tobytes(), tree.counts.tobytes(), tree.size.tobytes()) for tree in model.trees
    )
    return model.privacy.decisions, tuple(trees), model.prior


# -- canaries ---------------------------------------------------------------------------------

CANARIES = 600

# One class for each canary: whatever leaf their rows end in, it publishes a count of each of them alone.
_CLASSES = Domain(
    (Nominal("a", BINARY), Nominal("b", BINARY), Nominal("y", tuple(range(CANARIES)))),
    target="y",
    rows=CANARIES,
    max_rows=CANARIES,
)
# One cell for each canary: a table of their attribute says something about each of them alone.
_CELLS = Domain(
    (Nominal("a", tuple(range(CANARIES))), Nominal("y", BINARY)), target="y", rows=CANARIES, max_rows=CANARIES
)


def canaries(classifier: PrivateClassifier, runs: int, delta: Fraction | None = None) -> CanaryCheck:
    """People of whom each is alone in their class or cell; who is there is guessed from what is said about it."""
    in_cells = isinstance(classifier, AutoClassifier | TablesClassifier) and not isinstance(classifier, PriorClassifier)
    everyone = np.arange(CANARIES)
    domain, people = _CLASSES, pd.DataFrame({"a": "0", "b": "0", "y": everyone})
    if in_cells:
        domain, people = _CELLS, pd.DataFrame({"a": everyone, "y": "1"})
    rng = np.random.default_rng()

    def run() -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        there = rng.random(CANARIES) < 0.5
        with opened(classifier, delta)(people[there], domain) as table:
            model = classifier.fit(table).model_
        return there, _odds(model, people) if in_cells else _said(model, people[:1])

    return CanaryCheck(f"{CANARIES} canaries, each there by a coin", run, runs)


def _odds(model: Model, rows: pd.DataFrame) -> NDArray[np.float64]:
    """How likely the second class is for each row."""
    shares: NDArray[np.float64] = model.logits(rows) if isinstance(model, Tables) else model.predict_proba(rows)
    return np.asarray(shares[:, 1])


def _said(model: Model, row: pd.DataFrame) -> NDArray[np.float64]:
    """What a model says about each class where a row ends."""
    if isinstance(model, Tables):
        return np.array(model.intercept)
    assert isinstance(model, Ensemble)
    ends = model.apply(row)[0]
    return np.asarray(np.sum([tree.counts[end] for end, tree in zip(ends, model.trees, strict=True)], axis=0))


# -- other people's estimators ----------------------------------------------------------------

Rows = tuple[NDArray[Any], NDArray[Any]]


def peer_checks(estimator: Any, effort: Effort, pairs: Sequence[tuple[Rows, Rows]] | None = None) -> list[Check]:
    """What is tried on an estimator that is fitted on arrays X and y."""
    given = [_given(number, left, right) for number, (left, right) in enumerate(pairs)] if pairs else _peer_pairs()
    fitted = [Neighbours(name, *_peer_fits(estimator, left, right, probes)) for name, left, right, probes in given]
    fits = effort.of(PEER_FITS)
    return [NeighbourCheck(fitted, fits, max(PILOT, fits // 20))]


def _given(number: int, left: Rows, right: Rows) -> tuple[str, Rows, Rows, NDArray[Any]]:
    """A pair of tables of which one has a row more, its last; that row is the one in question."""
    smaller, larger = sorted((left, right), key=lambda rows: len(rows[1]))
    if len(larger[1]) - len(smaller[1]) != 1:
        raise QuestionError(
            f"pair {number + 1} has tables of {len(left[1])} and {len(right[1])} rows; neighbours differ by one row."
        )
    frames = [[pd.DataFrame(np.asarray(part)) for part in rows] for rows in (smaller, larger)]
    if not all(few.equals(many[:-1]) for few, many in zip(*frames, strict=True)):
        raise QuestionError(
            f"the tables of pair {number + 1} differ in more than a row: the larger one is the smaller and a last row."
        )
    return f"given pair {number + 1}", left, right, np.asarray(larger[0])[-1:]


def _peer_pairs() -> list[tuple[str, Rows, Rows, NDArray[Any]]]:
    """The pairs as numbers in [0, 1]; with two rows more, one of each class, since peers need them."""
    found = []
    for pair in _pairs(0):
        X, y = _numbers(pair.right)
        X, y = np.concatenate([[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], X]), np.concatenate([[0, 1], y])
        found.append((pair.name, (X[:-1], y[:-1]), (X, y), X[-1:]))
    return found


def _numbers(rows: pd.DataFrame) -> Rows:
    X = np.stack([rows["a"].astype(float), rows["b"].astype(float), rows["x"].astype(float) / 7], axis=1)
    return X, rows["y"].astype(int).to_numpy()


def _peer_fits(estimator: Any, left: Rows, right: Rows, probes: NDArray[Any]) -> tuple[Sampler, Sampler]:
    """Fits on either table; what is seen includes whether a seed that a model keeps gives it again on the first."""

    def fit(rows: Rows) -> Any:
        fitted = clone(estimator).fit(*rows)
        return {**observe.estimator(fitted, probes), "its seed gives it again": _replays(fitted, estimator, left)}

    def sampler(rows: Rows) -> Sampler:
        def sample(runs: int) -> Observations:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a peer's warnings are not about this bench
                return observe.runs(lambda: fit(rows), runs)

        return sample

    return sampler(left), sampler(right)


def _replays(fitted: Any, estimator: Any, rows: Rows) -> bool | None:
    """Whether a fit on these rows, with a seed that the model keeps, is the same; None where it keeps none."""
    known = [
        int(value)
        for name, value in vars(fitted).items()
        if ("seed" in name or "random_state" in name) and isinstance(value, int | np.integer)
    ]
    again = [
        (clone(estimator).set_params(random_state=seed), fitted) for seed in known if hasattr(estimator, "random_state")
    ]
    # the trees of a forest keep seeds of their own
    again += [(clone(part), part) for part in getattr(fitted, "estimators_", []) if isinstance(part.random_state, int)]
    if not again:
        return None
    return any(observe.estimator(retry.fit(*rows)) == observe.estimator(part) for retry, part in again)
