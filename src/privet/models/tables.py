"""A published model that is a sum of small tables of log odds, for the cells of a few attributes each.

The log odds of a row are an intercept plus one entry of each table. Every number is a release or made
from releases, so the model can be printed, edited and merged at no cost.
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
from privet.models.privacy_record import Privacy, check_losses, loss_of, numbers_of, text_of
from privet.models.tree import Ensemble, Tree, cell_text

if TYPE_CHECKING:
    import pandas as pd

MOST_TABLES = 100_000
MOST_COLUMNS = 4  # of a table
LARGEST = 100.0  # the largest log odds of a cell: e^100 is beyond any odds
ALIKE = 0.1  # cells with a standard deviation below this have nearly equal weights


@dataclass(frozen=True, eq=False)
class Table:
    """The log odds that the cells of one to four attributes add.

    Parameters
    ----------
    columns : tuple of str
        The attributes.
    values : array of float
        Log odds, [cells..., class].
    deviation : array of float
        Their standard deviations, of the same shape.
    epsilon : Fraction, default 0
        What the table cost.
    """

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
        """The attributes in words."""
        return " and ".join(self.columns)

    @property
    def cell_weights(self) -> Floats:
        """The weight of each cell in an average. Cells with few rows are less certain and weigh less."""
        return np.asarray(1 / (self.deviation.mean(axis=-1) ** 2 + ALIKE**2))

    @property
    def weight(self) -> float:
        """How much the table moves predictions: the weighted standard deviation of its log odds over its cells."""
        return _deviation(self.values, self.cell_weights)


@dataclass(frozen=True, eq=False, repr=False)
class Tables(Model, key="tables"):
    """A published model that is a sum of tables.

    Parameters
    ----------
    domain : Domain
        The public domain of the rows.
    intercept : tuple of float
        Log odds of each class before any table.
    tables : tuple of Table
    privacy : Privacy
        What the model promises and what it cost.
    note : str, default ""
        A remark about the fit for people, such as that there was too little signal for a table.

    Raises
    ------
    ModelError
        The intercept or a table does not have the shape that the domain requires.
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

    # -- JSON: tables have the cells of their columns, in the order of the domain --------------------

    def _content(self) -> dict[str, Any]:
        tables = [
            {
                "columns": list(table.columns),
                "epsilon": str(table.epsilon),
                "values": table.values.tolist(),
                "deviation": table.deviation.tolist(),
            }
            for table in self.tables
        ]
        return {"note": self.note, "intercept": list(self.intercept), "tables": tables}

    @classmethod
    def _read(cls, content: dict[str, Any], domain: Domain) -> Tables:
        tables, note = content["tables"], content.get("note", "")
        if not isinstance(tables, list) or len(tables) > MOST_TABLES:
            raise ModelError("the model has no list of tables; it was not written by privet.")
        try:
            text_of(note)
        except TypeError:
            raise ModelError("the model's note is not a text.") from None
        checked = tuple(_table(table, domain, number) for number, table in enumerate(tables, start=1))
        check_losses([table.epsilon for table in checked])
        return cls(
            domain,
            tuple(numbers_of(content.get("intercept"), len(domain.classes), "the intercept")),
            checked,
            Privacy.from_dict(content.get("privacy")),
            note,
        )

    # -- prediction -------------------------------------------------------------------------

    def logits(self, frame: Any) -> Floats:
        """Return the log odds of each class, up to a constant of the row.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Returns
        -------
        array of float
            [row, class]

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """
        logits = np.tile(np.array(self.intercept), (len(frame), 1))
        for contribution in self.contributions(frame):
            logits += contribution
        return logits

    def contributions(self, frame: Any) -> Iterator[Floats]:
        """Yield what each table adds to the log odds of each row.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Yields
        ------
        array of float
            [row, class]; 0 for a row that fits no cell of the table.

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """
        codes: dict[str, NDArray[Any]] = {}
        for name in dict.fromkeys(name for table in self.tables for name in table.columns):
            codes[name] = self.domain[name].encode(column_of(frame, name))
        for table in self.tables:
            inside = np.all([codes[name] >= 0 for name in table.columns], axis=0)
            cells = tuple(np.where(inside, codes[name], 0) for name in table.columns)
            yield np.where(inside[:, None], table.values[cells], 0.0)

    def predict_proba(self, frame: Any) -> Floats:
        """Predict the share of each class; see `Model.predict_proba`."""
        return softmax(self.logits(frame))

    def predict_codes(self, frame: Any) -> Integers:
        """Predict the number of the class of each row; see `Model.predict_codes`."""
        return np.asarray(np.argmax(self.logits(frame), axis=1))

    @property
    def additive(self) -> AdditiveModel:
        """The model on a grid of log odds, for questions: ``table.count_correct(model.additive, 0.1)``."""

        def on_grid(values: Any) -> NDArray[np.int32]:
            """Round log odds to the grid."""
            return np.asarray(np.rint(np.asarray(values) * LOGIT_GRID), dtype=np.int32)

        terms = tuple((table.columns, on_grid(table.values)) for table in self.tables)
        return AdditiveModel(tuple(on_grid(self.intercept).tolist()), terms)

    # -- description, and changed copies ----------------------------------------------------

    def explain(self, frame: Any) -> pd.DataFrame:
        """Return predictions as sums.

        Parameters
        ----------
        frame : frame
            Rows with named columns.

        Returns
        -------
        pandas.DataFrame
            For each row a line for the intercept and one for each table, with the log odds that it adds to each class.

        Raises
        ------
        DataError
            A column that the model looks at is missing, or is there twice.
        """
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
        """How much each attribute moves predictions.

        It is the standard deviation, over the cells of the attribute, of what it adds by itself in all tables. The
        part of a table of several attributes that none of them adds by itself is divided evenly among them.
        """
        alone = {name: np.zeros((self.domain[name].size, len(self.intercept))) for name in self.domain.attributes}
        cell_weights = {name: np.zeros(self.domain[name].size) for name in self.domain.attributes}
        importance = dict.fromkeys(self.domain.attributes, 0.0)
        for table in self.merged().tables:
            together, weights = table.values, table.cell_weights
            for axis, name in enumerate(table.columns):
                others = tuple(other for other in range(len(table.columns)) if other != axis)
                total = weights.sum(axis=others, keepdims=True)[..., None]
                effect = (together * weights[..., None]).sum(axis=others, keepdims=True) / total
                alone[name] += effect.reshape(alone[name].shape)
                cell_weights[name] += weights.sum(axis=others)
                together = together - effect
            for name in table.columns if len(table.columns) > 1 else ():
                importance[name] += _deviation(together, weights) / len(table.columns)
        return {name: importance[name] + _deviation(alone[name], cell_weights[name]) for name in importance}

    def merged(self) -> Tables:
        """Return a model of the same predictions with one table for each set of columns."""
        by_columns: dict[frozenset[str], Table] = {}
        for table in self.tables:
            earlier = by_columns.get(frozenset(table.columns))
            if earlier is not None:
                axes = [*map(table.columns.index, earlier.columns), len(earlier.columns)]
                values, deviation = table.values.transpose(axes), table.deviation.transpose(axes)
                deviation = np.sqrt(earlier.deviation**2 + deviation**2)
                table = Table(earlier.columns, earlier.values + values, deviation, earlier.epsilon + table.epsilon)
            by_columns[frozenset(table.columns)] = table
        return replace(self, tables=tuple(by_columns.values()))

    def without(self, *columns: str) -> Tables:
        """Return the model without the tables of some columns.

        Parameters
        ----------
        *columns : str
            One attribute, or several for the tables of all of them together.

        Returns
        -------
        Tables
            With a note that it was edited.

        Raises
        ------
        ModelError
            There is no such table.
        """
        kept = tuple(table for table in self.tables if set(table.columns) != set(map(str, columns)))
        if len(kept) == len(self.tables):
            known = ", ".join(table.name for table in self.merged().tables) or "none"
            raise ModelError(
                f"the model has no table of {' and '.join(map(str, columns)) or 'nothing'}; it has {known}."
            )
        return self._edited(kept, f"without the table of {' and '.join(columns)}")

    def with_values(self, columns: str | Sequence[str], values: Any) -> Tables:
        """Return the model with other values in the table of some columns, such as those that an expert knows.

        Parameters
        ----------
        columns : str or sequence of str
            One attribute, or several.
        values : array-like of float
            Log odds, [cells..., class].

        Returns
        -------
        Tables
            With a note that it was edited.

        Raises
        ------
        ModelError
            There is no such table, or the values do not have its shape.
        """
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
        """Return the model with other tables and a note about the edit."""
        note = "; ".join(filter(None, [self.note, f"edited by hand: {how}"]))
        return replace(self, tables=tables, note=note[:1000])

    def to_trees(self) -> Ensemble:
        """Return a model of trees with the same predictions.

        Returns
        -------
        Ensemble
            A tree for the intercept and one for each table, with a level for each of its columns. Their shares are
            multiplied.
        """
        attributes = self.domain.attributes
        # an intercept is a tree of one leaf
        intercept = Table((), np.array(self.intercept), np.zeros(len(self.intercept)))
        trees = []
        for table in (intercept, *self.merged().tables):
            splits = [attributes.index(name) for name in table.columns]
            # inner nodes have even shares: a row that fits no cell of a table ends there
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
        """How many tables there are, in words."""
        return "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"

    def facts(self) -> dict[str, Any]:
        """Return how many tables there are, and the note."""
        return {"tables": len(self.tables), **({"note": self.note} if self.note else {})}

    def details(self) -> dict[str, Any]:
        """Return the intercept, the importance of each attribute, and the tables."""
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
        """Return a sentence for each cell: the factor by which it multiplies the odds of each class."""
        texts = self.domain.target_column.texts
        shares = zip(texts, softmax(np.array(self.intercept)), strict=True)
        rules = ["to begin with: " + ", ".join(f"{text} {share:.0%}" for text, share in shares)]
        for table in self.merged().tables:
            labels = [self.domain[name].labels for name in table.columns]
            for cell in np.ndindex(*table.values.shape[:-1]):
                where = zip(table.columns, labels, cell, strict=True)
                conditions = " and ".join(cell_text(name, words[code]) for name, words, code in where)
                odds = zip(texts, np.exp(np.minimum(table.values[cell], 700)), strict=True)  # below the largest float
                factors = ", ".join(f"{text} x {factor:.2f}" for text, factor in odds)
                rules.append(f"if {conditions} then {factors}")
        return rules


def _deviation(values: Floats, weights: Floats) -> float:
    """Return the standard deviation of log odds over weighted cells, averaged over classes as root mean square."""
    if not weights.any():
        return 0.0
    shares = (weights / weights.sum())[..., None]
    cells = tuple(range(values.ndim - 1))
    centred = values - (shares * values).sum(axis=cells)
    return float(np.sqrt((shares * centred**2).sum(axis=cells).mean()))


def _table(content: Any, domain: Domain, number: int) -> Table:
    """Read one table."""
    where = f"table {number}"
    if not isinstance(content, dict) or set(content) != {"columns", "epsilon", "values", "deviation"}:
        raise ModelError(f"{where} of the model is not a table; it was not written by privet.")
    columns = content["columns"]
    several = isinstance(columns, list) and 1 <= len(columns) <= MOST_COLUMNS
    if not several or len(set(map(str, columns))) < len(columns):
        raise ModelError(f"{where} of the model has columns other than one to four different ones.")
    for name in columns:
        if not isinstance(name, str) or name not in domain or name == domain.target:
            raise ModelError(f"{where} of the model has a column that its domain does not declare.")
    try:
        epsilon = loss_of(content["epsilon"])
    except TypeError:
        raise ModelError(f"{where} of the model has no cost.") from None
    shape = (*(domain[name].size for name in columns), len(domain.classes))
    values, deviation = (_array(content[key], shape, where) for key in ("values", "deviation"))
    if (deviation < 0).any():
        raise ModelError(f"{where} of the model has a negative deviation.")
    if (np.abs(values) > LARGEST).any():
        raise ModelError(f"{where} of the model has log odds beyond {LARGEST:g}.")
    return Table(tuple(columns), values, deviation, epsilon)


def _array(values: Any, shape: tuple[int, ...], where: str) -> Floats:
    """Return nested lists as an array of exactly this shape."""
    flat = [values]
    for length in shape:
        if not all(isinstance(part, list) and len(part) == length for part in flat):
            raise ModelError(f"{where} of the model does not have the cells of its columns.")
        flat = [item for part in flat for item in part]
    return np.array(numbers_of(flat, len(flat), where), dtype=np.float64).reshape(shape)
