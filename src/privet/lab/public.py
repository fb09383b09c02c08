"""Public rows behind the methods of a protected table: exact answers, and what papers did wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError
from privet.kernel import (
    LARGEST_EPSILON,
    About,
    CountCorrectQuestion,
    CountQuestion,
    Criterion,
    Domain,
    Engine,
    Entropy,
    ExponentialOverRanges,
    HistogramQuestion,
    InProcess,
    IntegerLaplace,
    Max,
    Mechanism,
    Parts,
    PerPart,
    ProtectedTable,
    Question,
    Releases,
    Rows,
    RowSets,
    SelectQuestion,
    SelectThresholdQuestion,
    Session,
    criterion,
    release_all,
    session_in_memory,
)
from privet.lab.criteria import GainRatio, Unrounded
from privet.lab.paper_noise import ExactChoice, ExactValues, RoundedLaplace

R = TypeVar("R")


@dataclass(frozen=True)
class PublicRows:
    """Which errors of papers are repeated on public rows."""

    rounded_noise: bool = False  # noise with holes (erratum E-8)
    printed_ranges: bool = False  # range weights without the sensitivity (erratum E-4)


@dataclass(frozen=True)
class PublicSession(Session):
    """A session about public rows: its releases say that they are not private."""

    errors: PublicRows = PublicRows()

    private_rows: ClassVar[bool] = False

    def mechanisms(self, question: Question[R], epsilons: PerPart[Fraction]) -> PerPart[Mechanism]:
        """Return the mechanisms of a question, with the errors of papers where they are asked for."""
        mechanisms = super().mechanisms(question, epsilons)
        if self.errors.rounded_noise and isinstance(question, CountQuestion | HistogramQuestion | CountCorrectQuestion):
            return mechanisms.map(_rounded)
        if self.errors.printed_ranges and isinstance(question, SelectThresholdQuestion):
            # printed without the sensitivity (erratum E-4): a unit of score is worth epsilon whatever the criterion
            return mechanisms.map(lambda mechanism: _without_sensitivity(mechanism, question.criterion.grid))
        return mechanisms


def _rounded(mechanism: Mechanism) -> Mechanism:
    assert isinstance(mechanism, IntegerLaplace)
    return RoundedLaplace(mechanism.epsilon)


def _without_sensitivity(mechanism: Mechanism, grid: int) -> Mechanism:
    assert isinstance(mechanism, ExponentialOverRanges)
    return replace(mechanism, sensitivity=grid)


# What has an exact answer: counts, and choices by them.
_EXACT = (CountQuestion, HistogramQuestion, CountCorrectQuestion, SelectQuestion, SelectThresholdQuestion)


@dataclass(frozen=True)
class PublicBackend(InProcess):
    """Answers exactly where epsilon is infinite, and charges nothing for it."""

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None) -> Releases[R]:
        if not isinstance(epsilon, float) or epsilon != math.inf or type(question) not in _EXACT:
            return super().ask(question, sets, epsilon, key)
        session = self.session
        _check(question, session.domain, sets.rows)
        if isinstance(question, SelectQuestion) and isinstance(question.criterion, GainRatio):
            question = _GainRatioQuestion(question.criterion, question.candidates)  # type: ignore[assignment]
        if session.engine.closed:
            raise DataError(f"the table '{session.dataset}' was closed; open it again.")
        exact = ExactChoice() if isinstance(question, SelectQuestion | SelectThresholdQuestion) else ExactValues()
        mechanisms: PerPart[Mechanism] = PerPart.same(exact, len(sets))
        values = release_all(mechanisms, question.exact(session.engine, sets.rows, session.domain), session.entropy)
        about = PerPart.same(About(question.words, Fraction(0), private=False), len(sets))
        return Releases(question.releases(values, mechanisms, about, session.domain))

    def refine(self, question: Question[Any], sets: RowSets, releases: Sequence[Any]) -> None:
        """Let releases be refined whose noise is that of a private table; no other noise has a finer one."""
        if releases and isinstance(releases[0].noise, IntegerLaplace):
            super().refine(question, sets, releases)


def _check(question: Question[Any], domain: Domain, rows: Rows) -> None:
    """Refuse what a private table refuses, but no criterion: without noise it needs no sensitivity."""
    if isinstance(question, SelectQuestion | SelectThresholdQuestion):
        question = replace(question, criterion=Max())
    question.check(domain, rows)


class _GainRatioQuestion(SelectQuestion):
    """Quinlan's choice: the best gain ratio among candidates of at least average gain."""

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[NDArray[Any]]:
        rule = self.criterion
        assert isinstance(rule, GainRatio)
        tables = self.exact_tables(engine, rows, domain)
        scores = {name: rule.exact_scores(table) for name, table in tables.items()}
        gains = {name: rule.exact_gains(table) for name, table in tables.items()}
        for part, sides in enumerate(self.exact_sides(engine, rows, domain)):
            pairs = [
                (scores[each][part], gains[each][part])
                if isinstance(each, str)
                else (rule.exact_scores(sides[each][None])[0], rule.exact_gains(sides[each][None])[0])
                for each in self.candidates[part]
            ]
            average = np.mean([gain for _, gain in pairs])
            yield np.array([score if gain >= average - 1e-12 else -1.0 for score, gain in pairs])


class _PublicCriteria:
    """Criteria without a bounded sensitivity are allowed, too."""

    domain: Domain

    def _criterion(self, choice: str | Criterion) -> Criterion:
        if isinstance(choice, GainRatio | Unrounded):
            return choice
        return GainRatio() if choice == GainRatio.name else criterion(choice, self.domain)


class PublicParts(_PublicCriteria, Parts):
    """Disjoint parts of a table of public rows."""

    def _table(self, sets: RowSets) -> PublicTable:
        return PublicTable(self._backend, sets)


class PublicTable(_PublicCriteria, ProtectedTable):
    """Public rows behind the methods of a protected table; `epsilon=inf` answers exactly."""

    def parts(self) -> PublicParts:
        return PublicParts(self._backend, self._sets, PerPart.same(self._sets.paths[0], 1))

    def bootstrap(self, seed: int) -> PublicTable:
        """Return as many rows drawn with replacement, as MaxForest and bagging do: a row may count many times."""
        own = self._session
        name = f"bootstrap {seed}"
        engine = own.engine.resampled(seed)  # type: ignore[attr-defined]
        session = replace(own, engine=engine, source=f"{own.source} {name}", opening=f"{own.opening} {name}")
        whole = session.whole_table()
        return PublicTable(PublicBackend(session), RowSets(whole.rows, self._sets.scopes, whole.paths))


def open_public(
    frame: Any,
    domain: Domain,
    *,
    rounded_noise: bool = False,
    printed_ranges: bool = False,
    entropy: Entropy | None = None,
) -> PublicTable:
    """Open a frame of public rows: plain trees, and published algorithms that are not private, run on it.

    Parameters
    ----------
    frame : frame
    domain : Domain
    rounded_noise : bool, default False
        Draw Hanisch's noise, which has holes.
    printed_ranges : bool, default False
        Weigh ranges of thresholds without the sensitivity, as Friedman and Schuster print it.
    entropy : Entropy, optional

    Returns
    -------
    PublicTable
    """
    session = session_in_memory(frame, domain, LARGEST_EPSILON, entropy, name="public")
    own = {field.name: getattr(session, field.name) for field in fields(session)}
    public = PublicSession(**{**own, "errors": PublicRows(rounded_noise, printed_ranges)})
    return PublicTable(PublicBackend(public), public.whole_table())
