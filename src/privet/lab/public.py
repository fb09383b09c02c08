"""Public rows with the methods of a protected table: exact answers, and the errors of papers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.conditions import criterion
from privet.errors import DataError
from privet.kernel import (
    LARGEST_EPSILON,
    CountCorrectQuestion,
    CountQuestion,
    Criterion,
    Domain,
    Engine,
    Entropy,
    ExponentialOverRanges,
    HistogramQuestion,
    IntegerLaplace,
    Max,
    Mechanism,
    PerPart,
    Question,
    Rows,
    RowSets,
    SelectQuestion,
    SelectThresholdQuestion,
    Session,
    release_all,
    session_in_memory,
)
from privet.lab.criteria import GainRatio, Unrounded
from privet.lab.paper_noise import ExactChoice, ExactValues, RoundedLaplace
from privet.release import About, Releases
from privet.table import InProcess, Parts, ProtectedTable

R = TypeVar("R")


@dataclass(frozen=True)
class PublicRows:
    """The errors of papers that are repeated on public rows.

    Parameters
    ----------
    rounded_noise : bool, default False
        Draw noise that has holes (erratum E-8).
    printed_ranges : bool, default False
        Weigh ranges of thresholds without the sensitivity (erratum E-4).
    """

    rounded_noise: bool = False
    printed_ranges: bool = False


@dataclass(frozen=True)
class PublicSession(Session):
    """A session on public rows. Its releases are marked as not private."""

    errors: PublicRows = PublicRows()

    private_rows: ClassVar[bool] = False

    def mechanisms(self, question: Question[R], losses: PerPart[Fraction]) -> PerPart[Mechanism]:
        """Return the mechanisms of a question, with the errors of papers that this session repeats.

        Parameters
        ----------
        question : Question
        losses : PerPart of Fraction
            What each part pays.

        Returns
        -------
        PerPart of Mechanism
        """
        mechanisms = super().mechanisms(question, losses)
        if self.errors.rounded_noise and isinstance(question, CountQuestion | HistogramQuestion | CountCorrectQuestion):
            return mechanisms.map(_rounded)
        if self.errors.printed_ranges and isinstance(question, SelectThresholdQuestion):
            # the weights are printed without the sensitivity (erratum E-4), as if it were 1 for every criterion
            return mechanisms.map(lambda mechanism: _without_sensitivity(mechanism, question.criterion.grid))
        return mechanisms


def _rounded(mechanism: Mechanism) -> Mechanism:
    """Return Hanisch's noise in place of exact integer noise."""
    assert isinstance(mechanism, IntegerLaplace)
    return RoundedLaplace(mechanism.epsilon)


def _without_sensitivity(mechanism: Mechanism, grid: int) -> Mechanism:
    """Return a selection that takes the sensitivity of a score for 1; scores are multiples of 1 / grid."""
    assert isinstance(mechanism, ExponentialOverRanges)
    return replace(mechanism, sensitivity=grid)


# The questions that have an exact answer: counts, and choices by counts.
_EXACT = (CountQuestion, HistogramQuestion, CountCorrectQuestion, SelectQuestion, SelectThresholdQuestion)


@dataclass(frozen=True)
class PublicBackend(InProcess):
    """Answers exactly if epsilon is infinite, and charges nothing for it."""

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None) -> Releases[R]:
        """Ask a question of disjoint sets of rows.

        Parameters
        ----------
        question : Question
        sets : RowSets
        epsilon : object
            What each set pays; ``math.inf`` for an exact answer.
        key : str or None
            An idempotency key, which exact answers ignore.

        Returns
        -------
        Releases

        Raises
        ------
        DataError
            The table was closed.
        QuestionError
            The question does not suit the domain.
        """
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
        """Let releases be refined if their noise is that of a private table; no other noise can be refined.

        Parameters
        ----------
        question : Question
        sets : RowSets
        releases : sequence of Release
        """
        if releases and isinstance(releases[0].noise, IntegerLaplace):
            super().refine(question, sets, releases)


def _check(question: Question[Any], domain: Domain, rows: Rows) -> None:
    """Refuse what a private table refuses, except a criterion: exact choices need no sensitivity."""
    if isinstance(question, SelectQuestion | SelectThresholdQuestion):
        question = replace(question, criterion=Max())
    question.check(domain, rows)


class _GainRatioQuestion(SelectQuestion):
    """Selects as Quinlan does: the best gain ratio among candidates with at least the average gain."""

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[NDArray[Any]]:
        """Yield the scores of the candidates of each part; -1 for those below the average gain."""
        rule = self.criterion
        assert isinstance(rule, GainRatio)
        tables = self.exact_tables(engine, rows, domain)
        scores = {name: rule.exact_scores(table) for name, table in tables.items()}
        gains = {name: rule.exact_gains(table) for name, table in tables.items()}
        for part, sides in enumerate(self.exact_sides(engine, rows, domain)):
            pairs = [
                (scores[candidate][part], gains[candidate][part])
                if isinstance(candidate, str)
                else (rule.exact_scores(sides[candidate][None])[0], rule.exact_gains(sides[candidate][None])[0])
                for candidate in self.candidates[part]
            ]
            average = np.mean([gain for _, gain in pairs])
            yield np.array([score if gain >= average - 1e-12 else -1.0 for score, gain in pairs])


class _PublicCriteria:
    """Also allows criteria without a bounded sensitivity."""

    domain: Domain

    def _criterion(self, choice: str | Criterion) -> Criterion:
        """Return a criterion by its name, or as it is."""
        if isinstance(choice, GainRatio | Unrounded):
            return choice
        return GainRatio() if choice == GainRatio.name else criterion(choice, self.domain)


class PublicParts(_PublicCriteria, Parts):
    """Disjoint parts of a table of public rows."""

    def _table(self, sets: RowSets) -> PublicTable:
        """Return one part as a table."""
        return PublicTable(self._backend, sets)


class PublicTable(_PublicCriteria, ProtectedTable):
    """Public rows with the methods of a protected table. With an infinite epsilon they answer exactly."""

    def parts(self) -> PublicParts:
        """Return the table as its only part."""
        return PublicParts(self._backend, self._sets, PerPart.same(self._sets.paths[0], 1))

    def bootstrap(self, seed: int) -> PublicTable:
        """Return a table of as many rows, drawn with replacement. A row may be in it several times.

        Parameters
        ----------
        seed : int

        Returns
        -------
        PublicTable
        """
        given = self._session
        name = f"bootstrap {seed}"
        engine = given.engine.resampled(seed)  # type: ignore[attr-defined]
        session = replace(given, engine=engine, source=f"{given.source} {name}", opening=f"{given.opening} {name}")
        whole = session.whole_table()
        return PublicTable(PublicBackend(session), replace(whole, scopes=self._sets.scopes))


def open_public(
    frame: Any,
    domain: Domain,
    *,
    rounded_noise: bool = False,
    printed_ranges: bool = False,
    entropy: Entropy | None = None,
) -> PublicTable:
    """Open a frame of public rows, for plain trees and for published algorithms that are not private.

    Parameters
    ----------
    frame : frame
        Rows that anybody may see.
    domain : Domain
    rounded_noise : bool, default False
        Draw Hanisch's noise, which has holes.
    printed_ranges : bool, default False
        Weigh ranges of thresholds without the sensitivity, as Friedman and Schuster print it.
    entropy : Entropy, optional
        Where noise comes from; by default from the operating system.

    Returns
    -------
    PublicTable
    """
    session = session_in_memory(frame, domain, LARGEST_EPSILON, entropy, name="public")
    values = {field.name: getattr(session, field.name) for field in fields(session)}
    public = PublicSession(**{**values, "errors": PublicRows(rounded_noise, printed_ranges)})
    return PublicTable(PublicBackend(public), public.whole_table())
