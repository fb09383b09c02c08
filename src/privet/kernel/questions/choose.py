"""The best of several candidates by a quality function of one's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.accounting import Unit
from privet.kernel.criteria import roomy
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CountQuery, Engine
from privet.kernel.limits import MAX_CELLS, Json, is_name
from privet.kernel.mechanisms import IndexSelection, Mechanism, selection
from privet.kernel.per_part import PerPart
from privet.kernel.rows import Rows
from privet.kernel.session import TEXT, WHOLE, JsonField, Question, cell_sum, check_cells
from privet.release import About, Choice

LARGEST_BOUND = 2**31


@dataclass(frozen=True)
class Quality:
    """What each row adds to a candidate's score: a look-up table of the cells of some columns.

    Parameters
    ----------
    columns : sequence of str
        Whose cells are looked up.
    table : nested sequence or array of int
        A whole number for each cell: an axis for each column, in the order of its labels.
    """

    columns: tuple[str, ...]
    table: tuple[int, ...]  # in row-major order
    shape: tuple[int, ...]

    def __init__(self, columns: Sequence[str], table: Any) -> None:
        if not isinstance(columns, list | tuple) or not all(isinstance(name, str) for name in columns):
            raise QuestionError("a quality looks at the columns of a list, by their names.")
        try:
            numbers = np.asarray(table)
        except ValueError:  # of nested lists
            raise QuestionError("a quality's table has an axis for each column: its rows are of one length.") from None
        values = numbers.ravel().tolist()
        listed = np.issubdtype(numbers.dtype, np.integer) or numbers.dtype == object
        if not listed or not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise QuestionError("a quality's table consists of whole numbers; choose a unit in which they are whole.")
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "table", tuple(values))
        object.__setattr__(self, "shape", tuple(numbers.shape))

    def clipped(self, bound: int) -> NDArray[np.int64]:
        """Return the table with every number cut to [-bound, bound]."""
        return np.array([min(max(value, -bound), bound) for value in self.table], dtype=np.int64)


def _write_candidates(candidates: Sequence[tuple[str, Quality]], brief: bool) -> Json:
    return [
        {"name": name, "columns": quality.columns, "shape": quality.shape, "table": quality.table}
        for name, quality in candidates
    ]


_CANDIDATES = JsonField("a list of qualities", _write_candidates)


@dataclass(frozen=True)
class ChooseQuestion(Question[Choice]):
    """Of several candidates the one of the highest score: a sum over rows of a look-up table of public cells.

    The kernel clips every table to [-bound, bound], so one record moves each score by at most `bound`: a bound that is
    too small costs accuracy and never privacy. Where no clipped number is negative, or none is positive, scores
    move in one direction alone and the selection is monotone.
    """

    candidates: Annotated[tuple[tuple[str, Quality], ...], _CANDIDATES]
    bound: Annotated[int, WHOLE]
    mechanism: Annotated[str, TEXT] = "exponential"

    kind = "choose"

    @property
    def words(self) -> str:
        return f"choose({len(self.candidates)} candidates)"

    def check(self, domain: Domain, rows: Rows) -> None:
        selection(self.mechanism)
        if type(self.bound) is not int or not 1 <= self.bound <= LARGEST_BOUND:
            raise QuestionError(f"a bound is a whole number from 1 to {LARGEST_BOUND}.")
        names = [name for name, _ in self.candidates]
        if len(names) < 2 or len(set(names)) < len(names) or not all(is_name(name) for name in names):
            raise QuestionError("candidates are a mapping of at least two names, printable texts, to Quality tables.")
        for name, quality in self.candidates:
            shape = tuple(domain[column].size for column in quality.columns)
            if len(set(quality.columns)) < len(shape) or quality.shape != shape:
                raise QuestionError(
                    f"the table of candidate '{name}' must have the shape {shape}: an axis for each of its columns, "
                    "which are different."
                )
        groups = {quality.columns for _, quality in self.candidates}
        check_cells(rows.parts * cell_sum(domain, groups), MAX_CELLS)

    @property
    def monotone(self) -> bool:
        """Whether a record can move scores in one direction alone."""
        numbers = [value for _, quality in self.candidates for value in quality.table]
        return min(numbers) >= 0 or max(numbers) <= 0

    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        return losses.map(lambda loss: unit.choice(loss, self.bound, self.monotone, self.mechanism))

    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> NDArray[Any]:
        groups = tuple(dict.fromkeys(quality.columns for _, quality in self.candidates))
        exact_tables = dict(zip(groups, engine.exact_counts(CountQuery(rows, groups)), strict=True))
        exact_scores = []
        for _, quality in self.candidates:
            exact = exact_tables[quality.columns].reshape(rows.parts, math.prod(quality.shape))
            exact_scores.append(roomy(exact, self.bound, axes=(-1,)) @ quality.clipped(self.bound))
        return np.stack(exact_scores, axis=1)

    def release(self, noisy: int, mechanism: IndexSelection, about: About, domain: Domain, part: int) -> Choice:
        return Choice(self.candidates[noisy][0], None, mechanism, len(self.candidates), 1, about)
