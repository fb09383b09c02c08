"""A published model that is a sum of small tables: log odds for the cells of one or two attributes each.

Every number is a release or made from releases, so the model can be printed, edited and
merged at no cost: what it predicts for a row is an intercept plus one entry of each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import ModelError
from privet.kernel import LOGIT_GRID, AdditiveModel, Domain
from privet.models.model import Floats, Integers, Model, column_of, softmax
from privet.models.privacy_record import Privacy
from privet.models.tree import Ensemble, Tree, told

if TYPE_CHECKING:
    import pandas as pd


LARGEST = 100.0  # log odds of a cell: e^100 is beyond any odds
ALIKE = 0.1  # cells whose deviations are below this count alike


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
    def sureness(self) -> Floats:
        """How much each cell counts in an average: those with few rows are hardly known, and count little."""
        return np.asarray(1 / (self.deviation.mean(axis=-1) ** 2 + ALIKE**2))

    @property
    def weight(self) -> float:
        """How much the table moves predictions: the standard deviation of its log odds over its cells."""
        return _deviation(self.values, self.sureness)


@dataclass(frozen=True, eq=False, repr=False)
class Tables(Model):
    """A published model: an intercept and tables over one domain, and what they promise.

    `note` is what the fit has to say about itself: that there was too little signal for a table, for one.
    """

    domain: Domain
    intercept: tuple[float, ...]
    tables: tuple[Table, ...]
    privacy: Privacy
    note: str = ""

    def __post_init__(self) -> None:
        classes = len(self.domain.classes)
        if len(self.intercept) != classes:
            raise ModelError(f"the intercept of the model needs {classes} numbers, one for each class.")
        for table in self.tables:
            shape = (*(self.domain[name].size for name in table.columns), classes)
            if table.values.shape != shape or table.deviation.shape != shape:
                raise ModelError(f"the table of {table.name} does not have the cells of its columns.")

    # -- prediction -------------------------------------------------------------------------

    def logits(self, frame: Any) -> Floats:
        """Log odds of each class for the rows of a frame, up to a constant of the row; columns are found by name."""
        found = np.tile(np.array(self.intercept), (len(frame), 1))
        for part in self.contributions(frame):
            found += part
        return found

    def contributions(self, frame: Any) -> Iterator[Floats]:
        """What each table adds for each row [row, class]; nothing for a row that fits none of its cells."""
        codes: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys(name for table in self.tables for name in table.columns):
            codes[name] = self.domain[name].encode(column_of(frame, name))
        for table in self.tables:
            inside = np.all([codes[name] >= 0 for name in table.columns], axis=0)
            cells = tuple(np.where(inside, codes[name], 0) for name in table.columns)
            yield np.where(inside[:, None], table.values[cells], 0.0)

    def predict_proba(self, frame: Any) -> Floats:
        """The share of each class for the rows of a frame."""
        return softmax(self.logits(frame))

    def predict_codes(self, frame: Any) -> Integers:
        """The number of the class of each row: the largest share, the first of equals."""
        return np.asarray(np.argmax(self.logits(frame), axis=1))

    @property
    def additive(self) -> AdditiveModel:
        """The model for questions of a table, log odds on a grid: `table.count_correct(model.additive, 0.1)`."""

        def on_grid(values: Any) -> NDArray[np.int32]:
            return np.asarray(np.rint(np.asarray(values) * LOGIT_GRID), dtype=np.int32)

        terms = tuple((table.columns, on_grid(table.values)) for table in self.tables)
        return AdditiveModel(tuple(on_grid(self.intercept).tolist()), terms)

    # -- looking at it, and changing it -----------------------------------------------------

    def explain(self, frame: Any) -> pd.DataFrame:
        """A prediction as a sum: for each row the log odds that each table adds to each class, the intercept first."""
        import pandas as pd

        texts = self.domain.target_column.texts
        parts = [np.tile(np.array(self.intercept), (len(frame), 1)), *self.contributions(frame)]
        names = ["intercept", *(table.name for table in self.tables)]
        odds = pd.DataFrame(np.concatenate(parts), columns=[f"log odds of {text}" for text in texts])
        odds.insert(0, "row", np.tile(np.arange(len(frame)), len(parts)))
        odds.insert(1, "table", np.repeat(names, len(frame)))
        return odds.sort_values("row", kind="stable", ignore_index=True)

    @property
    def importance(self) -> dict[str, float]:
        """How much each attribute moves predictions: the deviation over its cells of what it adds by itself in all
        tables, and half of that of what only it and another add together.
        """
        alone = {name: np.zeros((self.domain[name].size, len(self.intercept))) for name in self.domain.attributes}
        sure = {name: np.zeros(self.domain[name].size) for name in self.domain.attributes}
        found = dict.fromkeys(self.domain.attributes, 0.0)
        for table in self.merged().tables:
            together, weights = table.values, table.sureness
            for axis, name in enumerate(table.columns):
                others = tuple(each for each in range(len(table.columns)) if each != axis)
                total = weights.sum(axis=others, keepdims=True)[..., None]
                effect = (together * weights[..., None]).sum(axis=others, keepdims=True) / total
                alone[name] += effect.reshape(alone[name].shape)
                sure[name] += weights.sum(axis=others)
                together = together - effect
            for name in table.columns if len(table.columns) > 1 else ():
                found[name] += _deviation(together, weights) / 2
        return {name: found[name] + _deviation(alone[name], sure[name]) for name in found}

    def merged(self) -> Tables:
        """The same predictions with one table for each set of columns."""
        by_columns: dict[frozenset[str], Table] = {}
        for table in self.tables:
            known = by_columns.get(frozenset(table.columns))
            if known is not None:
                axes = [*map(table.columns.index, known.columns), len(known.columns)]
                values, deviation = table.values.transpose(axes), table.deviation.transpose(axes)
                both = np.sqrt(known.deviation**2 + deviation**2)
                table = Table(known.columns, known.values + values, both, known.epsilon + table.epsilon)
            by_columns[frozenset(table.columns)] = table
        return replace(self, tables=tuple(by_columns.values()))

    def without(self, *columns: str) -> Tables:
        """The model without the tables of these columns: one name, or two for the tables of both."""
        kept = tuple(table for table in self.tables if set(table.columns) != set(map(str, columns)))
        if len(kept) == len(self.tables):
            known = ", ".join(table.name for table in self.merged().tables) or "none"
            raise ModelError(
                f"the model has no table of {' and '.join(map(str, columns)) or 'nothing'}; it has {known}."
            )
        return self._edited(kept, f"without the table of {' and '.join(columns)}")

    def with_values(self, columns: str | Sequence[str], values: Any) -> Tables:
        """The model in which the table of these columns says something else: what a person knows better."""
        names = (columns,) if isinstance(columns, str) else tuple(columns)
        kept = self.without(*names).tables
        shape = (*(self.domain[name].size for name in names), len(self.intercept))
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError("the values of a table are numbers, log odds for each cell and class.") from None
        if numbers.shape != shape or not (np.abs(numbers) <= LARGEST).all():
            raise ModelError(f"the table of {' and '.join(names)} has shape {shape}, of numbers up to {LARGEST:g}.")
        return self._edited((*kept, Table(names, numbers, np.zeros(shape))), f"other values for {' and '.join(names)}")

    def _edited(self, tables: tuple[Table, ...], how: str) -> Tables:
        note = "; ".join(filter(None, [self.note, f"edited by hand: {how}"]))
        return replace(self, tables=tables, note=note[:1000])

    def to_trees(self) -> Ensemble:
        """The same predictions as plain trees that multiply shares: one level for each column of a table."""
        attributes = self.domain.attributes
        # an intercept is a tree of one leaf
        intercept = Table((), np.array(self.intercept), np.zeros(len(self.intercept)))
        trees = []
        for table in (intercept, *self.merged().tables):
            splits = [attributes.index(name) for name in table.columns]
            # nodes above the leaves say nothing: a row that fits no cell of a table ends there
            levels = np.cumprod([1, *table.values.shape[:-1]])
            column = np.repeat([*splits, -1], levels).astype(np.int64)
            shares = softmax(table.values.reshape(-1, len(self.intercept)))
            spread = shares * (1 - shares) * table.deviation.reshape(shares.shape)
            above = len(column) - len(shares)
            counts = np.concatenate([np.full((above, len(self.intercept)), 1 / len(self.intercept)), shares])
            nothing = np.full(len(column), -1, dtype=np.int64)
            deviation = np.concatenate([np.zeros(above), spread.max(axis=1)])
            trees.append(Tree(self.domain, column, nothing, counts, deviation, np.full(len(column), np.nan)))
        return Ensemble(self.domain, tuple(trees), self.privacy, "product")

    @property
    def summary(self) -> str:
        return "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"

    def facts(self) -> dict[str, Any]:
        return {"tables": len(self.tables), **({"note": self.note} if self.note else {})}

    def details(self) -> dict[str, Any]:
        return {
            "note": self.note,
            "intercept": list(self.intercept),
            "importance": self.importance,
            "tables": [
                {"columns": list(table.columns), "epsilon": str(table.epsilon), "values": table.values.tolist()}
                for table in self.tables
            ],
        }

    def rules(self) -> list[str]:
        """Every cell as a sentence: the factor by which it multiplies the odds of each class."""
        texts = self.domain.target_column.texts
        shares = zip(texts, softmax(np.array(self.intercept)), strict=True)
        found = ["to begin with: " + ", ".join(f"{text} {share:.0%}" for text, share in shares)]
        for table in self.merged().tables:
            labels = [self.domain[name].labels for name in table.columns]
            for cell in np.ndindex(*table.values.shape[:-1]):
                where = zip(table.columns, labels, cell, strict=True)
                conditions = " and ".join(told(name, words[code]) for name, words, code in where)
                odds = zip(texts, np.exp(np.minimum(table.values[cell], 700)), strict=True)  # below the largest float
                factors = ", ".join(f"{text} x {factor:.2f}" for text, factor in odds)
                found.append(f"if {conditions} then {factors}")
        return found

    def text(self, max_depth: int | None = None) -> str:
        """The tables as text, the one that moves predictions most first; `max_depth` is for trees."""
        from privet.trees.table_text import text

        return text(self)

    def page(self) -> str:
        from privet.trees.table_page import page

        return page(self)

    def _repr_html_(self) -> str:
        from privet.trees.table_drawing import svg

        return svg(self)


def _deviation(values: Floats, weights: Floats) -> float:
    """The standard deviation of log odds over weighted cells, classes alike."""
    if not weights.any():
        return 0.0
    shares = (weights / weights.sum())[..., None]
    cells = tuple(range(values.ndim - 1))
    centred = values - (shares * values).sum(axis=cells)
    return float(np.sqrt((shares * centred**2).sum(axis=cells).mean()))
