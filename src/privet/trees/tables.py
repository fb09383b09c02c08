"""A published model that is a sum of small tables: log odds for the cells of one or two attributes each.

Every number is a release or made from releases, so the model can be printed, edited and
merged at no cost: what it predicts for a row is an intercept plus one entry of each table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privet.column import decimal_text
from privet.domain import Domain
from privet.errors import ModelError
from privet.trees.model import class_values, column_of
from privet.trees.record import Privacy

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Log odds [cells..., class] that the cells of some attributes add, how unsure each is, and what they cost."""

    columns: tuple[str, ...]
    values: Floats
    deviation: Floats
    epsilon: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name in ("values", "deviation"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def name(self) -> str:
        return " and ".join(self.columns)

    @property
    def weight(self) -> float:
        """How much the table moves predictions: the standard deviation of its log odds over its cells."""
        return float(np.sqrt(((self.values - self.values.mean(axis=tuple(range(len(self.columns))))) ** 2).mean()))


@dataclass(frozen=True, eq=False)
class Tables:
    """An intercept and tables over one domain, and what they promise."""

    domain: Domain
    intercept: tuple[float, ...]
    tables: tuple[Table, ...]
    privacy: Privacy
    note: str = field(default="")  # what the fit has to say: too little signal, for one

    def __post_init__(self) -> None:
        classes = len(self.domain.classes)
        if len(self.intercept) != classes:
            raise ModelError(f"the intercept of the model needs {classes} numbers, one for each class.")
        for table in self.tables:
            shape = (*(self.domain[name].size for name in table.columns), classes)
            if table.values.shape != shape or table.deviation.shape != shape:
                raise ModelError(f"the table of {table.name} does not have the cells of its columns.")

    @property
    def private(self) -> bool:
        return self.privacy.private

    # -- prediction -------------------------------------------------------------------------

    def logits(self, frame: Any) -> Floats:
        """Log odds of each class for the rows of a frame, up to a constant of the row; columns are found by name."""
        return np.asarray(np.array(self.intercept) + sum(self.contributions(frame), np.zeros(1)))

    def contributions(self, frame: Any) -> list[Floats]:
        """What each table adds for each row [row, class]; nothing for a row that fits none of its cells."""
        codes: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys(name for table in self.tables for name in table.columns):
            codes[name] = self.domain[name].encode(column_of(frame, name))
        found = []
        for table in self.tables:
            inside = np.all([codes[name] >= 0 for name in table.columns], axis=0)
            cells = tuple(np.where(inside, codes[name], 0) for name in table.columns)
            found.append(np.where(inside[:, None], table.values[cells], 0.0))
        return found or [np.zeros((len(frame), len(self.intercept)))]

    def predict_proba(self, frame: Any) -> Floats:
        """The share of each class for the rows of a frame."""
        logits = self.logits(frame)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def predict_codes(self, frame: Any) -> Integers:
        """The number of the class of each row: the largest share, the first of equals."""
        return np.asarray(np.argmax(self.logits(frame), axis=1))

    def predict(self, frame: Any) -> NDArray[Any]:
        """The class of each row of a frame."""
        return np.asarray(self.class_values[self.predict_codes(frame)])

    @cached_property
    def class_values(self) -> NDArray[Any]:
        return class_values(self.domain)

    # -- looking at it, and changing it -----------------------------------------------------

    def explain(self, frame: Any) -> pd.DataFrame:
        """A prediction as a sum: for each row the log odds that each table adds to each class, the intercept first."""
        import pandas as pd

        texts = self.domain.target_column.texts
        parts = [
            np.tile(np.array(self.intercept), (len(frame), 1)),
            *(self.contributions(frame) if self.tables else []),
        ]
        names = ["intercept", *(table.name for table in self.tables)]
        return pd.concat(
            [
                pd.DataFrame(part, columns=list(texts)).assign(row=range(len(part)), table=name)
                for name, part in zip(names, parts, strict=True)
            ],
            ignore_index=True,
        )[["row", "table", *texts]]

    @property
    def importance(self) -> dict[str, float]:
        """How much each attribute moves predictions; two attributes share what a table of both does."""
        found = dict.fromkeys(self.domain.attributes, 0.0)
        for table in self.merged().tables:
            for name in table.columns:
                found[name] += table.weight / len(table.columns)
        return found

    def merged(self) -> Tables:
        """The same predictions with one table for each set of columns."""
        by_columns: dict[tuple[str, ...], Table] = {}
        for table in self.tables:
            known = by_columns.get(table.columns)
            if known is not None:
                deviation = np.sqrt(known.deviation**2 + table.deviation**2)
                table = Table(table.columns, known.values + table.values, deviation, known.epsilon + table.epsilon)
            by_columns[table.columns] = table
        return replace(self, tables=tuple(by_columns.values()))

    def without(self, *columns: str) -> Tables:
        """The model without the tables of these columns, one name, or two for a table of both."""
        kept = tuple(table for table in self.tables if set(table.columns) != set(columns))
        if len(kept) == len(self.tables):
            known = ", ".join(table.name for table in self.merged().tables) or "none"
            raise ModelError(f"the model has no table of {' and '.join(columns)}; it has {known}.")
        return replace(self, tables=kept)

    def with_values(self, columns: Sequence[str], values: Any) -> Tables:
        """The model in which the table of these columns says something else: what a person knows better."""
        names = tuple(columns)
        edited = Table(names, np.asarray(values, dtype=np.float64), np.zeros(np.shape(values)))
        rest = self.without(*names)
        return replace(rest, tables=(*rest.tables, edited))

    def __repr__(self) -> str:
        promise = f"epsilon {decimal_text(self.privacy.epsilon)}" if self.private else "NOT PRIVATE"
        several = "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"
        return f"<{self.privacy.algorithm}: {several} for '{self.domain.target}', {promise}>"
