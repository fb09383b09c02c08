"""Questions about released models: where one errs, how many rows it classifies right, which candidate is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np

from privet.errors import QuestionError
from privet.kernel.accounting import IntegerNoise, ResidualNoise, Unit
from privet.kernel.additive import RESIDUAL_GRID, AdditiveModel
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import (
    CorrectQuery,
    CountQuery,
    Counts,
    Engine,
    ResidualQuery,
    Residuals,
)
from privet.kernel.limits import MAX_CELLS, MAX_RELEASED, Json, is_name
from privet.kernel.mechanisms import IndexSelection, Mechanism
from privet.kernel.per_part import PerPart
from privet.kernel.rows import Condition, Rows
from privet.kernel.session import GROUPS, MODEL, TEXTS, WHOLES, JsonField, Question, cell_sum, check_cells
from privet.release import About, Choice, Count, ResidualSums

Tables = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ResidualChoiceQuestion(Question[Choice]):
    """Of several tables of one or two columns, the one in which a released model errs most.

    `caps` bounds what a record of each class may add, in multiples of 1 / RESIDUAL_GRID. Scores only rise: by at
    most a record's own clipped residual, twice that with more than two classes.
    """

    model: Annotated[AdditiveModel, MODEL]
    tables: Annotated[Tables, GROUPS]
    caps: Annotated[tuple[int, ...], WHOLES]

    kind = "residual-choice"

    @property
    def words(self) -> str:
        return f"select_residuals({len(self.tables)} tables)"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_residuals(self.model, self.tables, self.caps, domain)
        target = domain.target_column.name
        check_cells(rows.parts * cell_sum(domain, [(*columns, target) for columns in self.tables]), MAX_CELLS)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        reach = max(self.caps) * (2 if len(self.caps) > 2 else 1)
        return losses.map(lambda loss: unit.choice(loss, reach, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        query = ResidualQuery(rows, self.model, self.tables, domain.target_column.name, self.caps)
        return np.stack([residual_scores(exact) for exact in engine.exact_residuals(query)], axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(", ".join(self.tables[noisy]), None, mechanism, len(self.tables), RESIDUAL_GRID, about)


def check_residuals(model: AdditiveModel, tables: Tables, caps: Sequence[int], domain: Domain) -> None:
    """Refuse a question about the residuals of a model whose shapes, caps or columns do not fit the domain."""
    classes = len(domain.classes)
    if len(caps) != classes:
        raise QuestionError(f"caps need one entry for each of the {classes} classes.")
    if not all(isinstance(cap, int | np.integer) and 1 <= cap <= RESIDUAL_GRID for cap in caps):
        raise QuestionError(f"caps are whole numbers from 1 to {RESIDUAL_GRID}, which stands for 1.")
    if not tables:
        raise QuestionError("name at least one table of columns.")
    for columns in tables:
        if isinstance(columns, str) or not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
            raise QuestionError("a table is a tuple of one or two different columns.")
        if domain.target in columns:
            raise QuestionError("a table may not look at the target.")
    model.check(domain)


def residual_scores(exact: Residuals) -> Counts:
    """Return the score of each part.

    Two classes: sum over cells of the larger class. More: sum over cells and classes of own or others.

    A record adds to the entries it touches, so scores only rise: by at most its own
    clipped residual, twice that with more than two classes.
    """
    exact_own = roomy(exact.exact_own, 2)
    if exact.exact_others is None:
        return np.asarray(exact_own.max(axis=-1).sum(axis=-1))
    return np.asarray(np.maximum(exact_own, roomy(exact.exact_others, 2)).sum(axis=(-1, -2)))


@dataclass(frozen=True)
class ResidualSumsQuestion(Question[ResidualSums]):
    """Sums of the clipped residuals of a released model in every cell of one table of columns.

    A record of class c adds at most `caps[c]` to one entry and, with more than two classes, at most as much in all to
    entries of the others.
    """

    model: Annotated[AdditiveModel, MODEL]
    table: Annotated[tuple[str, ...], TEXTS]
    caps: Annotated[tuple[int, ...], WHOLES]

    kind = "residual-sums"

    @property
    def words(self) -> str:
        return f"residual_sums({', '.join(self.table)})"

    def check(self, domain: Domain, rows: Rows) -> None:
        check_residuals(self.model, (self.table,), self.caps, domain)
        check_cells(rows.parts * cell_sum(domain, [(*self.table, domain.target_column.name)]), MAX_RELEASED)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.residual_noise(loss, self.caps))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterator[tuple[Counts, Counts | None]]:
        query = ResidualQuery(rows, self.model, (self.table,), domain.target_column.name, self.caps)
        (exact,) = engine.exact_residuals(query)
        for part in range(rows.parts):
            yield exact.exact_own[part], None if exact.exact_others is None else exact.exact_others[part]

    def release(self, noisy: Any, mechanism: ResidualNoise, about: About, domain: Domain, part: int) -> ResidualSums:
        shape = (*(domain[name].size for name in self.table), len(self.caps))
        own, others = (None if sums is None else np.array(sums, dtype=np.int64).reshape(shape) for sums in noisy)
        assert own is not None
        return ResidualSums(own, others, mechanism, about)


@dataclass(frozen=True)
class CountCorrectQuestion(Question[Count]):
    """Number of rows of each part whose own class has the largest logit of a released model.

    Of equal logits the class declared first counts. Sensitivity 1: a record adds at most one.
    """

    model: Annotated[AdditiveModel, MODEL]

    kind = "count-correct"
    words: ClassVar[str] = "count_correct"
    refinable = True

    def check(self, domain: Domain, rows: Rows) -> None:
        self.model.check(domain)

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(unit.noise)

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        return engine.exact_correct(CorrectQuery(rows, self.model, domain.target_column.name))

    def release(self, noisy: int, mechanism: IntegerNoise, about: About, domain: Domain, part: int) -> Count:
        return Count(noisy, mechanism, about)


Competitor = AdditiveModel | tuple[Condition, ...]


def _write_competitors(candidates: Sequence[tuple[str, Competitor]], brief: bool) -> Json:
    def content(candidate: Competitor) -> Json:
        if isinstance(candidate, AdditiveModel):
            return {"model": candidate.to_json(brief)}
        return {"where": [condition.to_json() for condition in candidate]}

    return [[name, content(candidate)] for name, candidate in candidates]


_COMPETITORS = JsonField("a list of names with models or conditions", _write_competitors)


@dataclass(frozen=True)
class BestQuestion(Question[Choice]):
    """Of several candidates the name of the one with the most rows, for each part.

    A candidate is a released model, for the rows that it classifies right, or conditions, for the
    rows that meet them. One record adds at most one to each of these numbers, so the exponent is monotone.
    """

    candidates: Annotated[tuple[tuple[str, Competitor], ...], _COMPETITORS]

    kind = "best"

    @property
    def words(self) -> str:
        return f"best({len(self.candidates)} candidates)"

    def check(self, domain: Domain, rows: Rows) -> None:
        names = [name for name, _ in self.candidates]
        if len(names) < 2 or len(set(names)) < len(names):
            raise QuestionError("candidates are a mapping of at least two names to models or conditions.")
        for name, candidate in self.candidates:
            if not is_name(name):
                raise QuestionError("the name of a candidate is a text of 1 to 200 printable characters.")
            if isinstance(candidate, AdditiveModel):
                candidate.check(domain)
            else:
                for condition in candidate:
                    condition.check(domain)
                rows.keep(range(rows.parts), candidate)  # too many steps from the table are refused here

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, 1, monotone=True))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Counts:
        exact_scores = []
        for _, candidate in self.candidates:
            if isinstance(candidate, AdditiveModel):
                exact = engine.exact_correct(CorrectQuery(rows, candidate, domain.target_column.name))
            else:
                (exact,) = engine.exact_counts(CountQuery(rows.keep(range(rows.parts), candidate), ((),)))
            exact_scores.append(exact)
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(self.candidates[noisy][0], None, mechanism, len(self.candidates), 1, about)
