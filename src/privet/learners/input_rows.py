"""The rows that a caller hands to `fit(X, y)`: how they become a frame, and what may be said about them.

With a declared domain, nothing that is said may depend on a cell, a label or the number of rows. But
rows that fit no cell are left out. So a caller whose column has 0 and 1 where the domain declares no
and yes would learn from nothing without noticing. For this reason `mismatches` compares the *dtypes*
of the columns with the declared values, and `fit` warns by that alone.

A dtype belongs to the schema of a frame, which the caller chose, or which pandas inferred from the
rows. An inferred dtype may change with one row. So all dtypes that one row can change into each other
form one family, and only families are compared:

* Whole numbers, floats and their nullable and Arrow kinds are `numbers`: a missing value turns
  integers into floats.
* Booleans, nullable or not, are `truth values`.
* Everything else, above all `object`, texts and `category`, has no family and never warns. Texts may
  hold numbers, and the categories of a `category` are read from rows, so they are not looked at.

What remains: one text among numbers makes a column `object`, and then there is no warning. The warning
tells the maker of the frame what `X.dtypes` tells them too; it is in no model, ledger or file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_array

from privet.errors import DataError
from privet.kernel import LONGEST_TEXT, Column, Date, Domain, Numeric, as_series, number_of, text_of
from privet.table import ProtectedTable
from privet.text import quoted, shown

NUMBERS, TRUTH_VALUES = "numbers", "truth values"
_LISTED = 5  # a warning names at most this many columns, and values of a column


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a polars or Arrow frame as a pandas frame with the same elements.

    Their own `to_pandas` turns whole numbers into floats if one is missing, so that one row would change others.

    Parameters
    ----------
    frame : polars or Arrow frame

    Returns
    -------
    pandas.DataFrame
    """
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return pd.DataFrame({name: as_series(frame[name]) for name in names})


def rows_of(X: Any, width: int) -> Any:
    """Return rows as a frame or a two-dimensional array, such that no row changes how another is read.

    Elements of lists keep their types: numpy would turn all numbers into texts if one row has a text.

    Parameters
    ----------
    X : frame, array or sequence of rows
    width : int
        How many cells each row of a sequence must have. Columns of frames and arrays are not checked.

    Returns
    -------
    pandas.DataFrame or array

    Raises
    ------
    DataError
        `X` is not a table. The message quotes no row.
    """
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas") and hasattr(X, "columns"):
        return as_pandas(X)
    array = _filled(X, width) if _is_sequence(X) else _array(X)
    if array is None or array.ndim != 2:
        raise DataError(
            f"X is a {type(X).__name__} that is no table of texts, numbers and booleans; pass a frame, or an array "
            "with a row for each record and a column for each attribute."
        )
    return array


def labels_of(y: Any) -> pd.Series[Any]:
    """Return the classes as one column, such that no row changes how another is read.

    Parameters
    ----------
    y : array-like
        The class of each row.

    Returns
    -------
    pandas.Series

    Raises
    ------
    DataError
        `y` is not one column. The message quotes no class and does not say how many there are.
    """
    if type(y).__module__.partition(".")[0] in ("polars", "pyarrow"):  # to numpy, a missing value makes floats of all
        y = as_pandas(y) if hasattr(y, "columns") else as_series(y)
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if isinstance(y, pd.Index) and not isinstance(y, pd.MultiIndex):
        y = y.array
    if isinstance(y, pd.Series | pd.api.extensions.ExtensionArray):
        return as_series(pd.Series(y, dtype=y.dtype))
    if _is_sequence(y):
        column = np.empty(len(y), dtype=object)
        for position, label in enumerate(y):
            column[position] = label
        return pd.Series(column, dtype=object)
    labels = _array(y)
    if labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels is None or labels.ndim != 1:
        raise DataError(
            "y is not one class for each row, a text, a number or a boolean; pass a column, a list or an array of one "
            "dimension."
        )
    return as_series(labels)


def name_of(y: Any) -> str:
    """Return the name of the classes: of a column, or of the one column of a frame; "" if they have none.

    Parameters
    ----------
    y : array-like

    Returns
    -------
    str

    >>> name_of(pd.Series(["low"], name="Salary")), name_of(["low"])
    ('Salary', '')
    """
    if hasattr(y, "columns"):  # Arrow's `columns` are not names
        names = list(getattr(y, "column_names", y.columns))
        name = names[0] if len(names) == 1 else None
    else:
        name = getattr(y, "name", None)
    return name if isinstance(name, str) and len(name) <= LONGEST_TEXT else ""


def refuse_no_rows(X: Any) -> NoReturn:
    """Refuse what is passed for rows and has none that can be read.

    Raises
    ------
    DataError
    """
    if isinstance(X, ProtectedTable):
        raise DataError("the rows of a protected table cannot be predicted, as nobody may read them; pass other rows.")
    if isinstance(X, str | Path):
        raise DataError(
            f"X is {quoted(str(X))}, a text; pass rows, as pandas.read_csv returns them, or a table of privet.open."
        )
    raise DataError(f"X is {quoted(X)}; pass a frame, or an array with a row for each record.")


def checked_rows(X: Any) -> Any:
    """Return rows to predict, or rows without a declared domain: a pandas frame, else a two-dimensional array.

    Parameters
    ----------
    X : frame or array-like

    Returns
    -------
    pandas.DataFrame or array

    Raises
    ------
    ValueError
        There are no rows or no columns, they cannot be read, or scikit-learn cannot read them as an array.
    """
    if X is None or isinstance(X, ProtectedTable | str | Path):
        refuse_no_rows(X)
    if isinstance(X, pd.DataFrame):
        if len(X) == 0 or X.shape[1] == 0:
            raise ValueError(
                f"Found array with {len(X)} sample(s) and {X.shape[1]} feature(s); at least 1 is required."
            )
        return X
    if hasattr(X, "to_pandas"):
        return checked_rows(as_pandas(X))
    return check_array(X, dtype=None, ensure_all_finite=False)


def named_frame(X: Any, names: list[str]) -> pd.DataFrame:
    """Return rows as a new frame. A frame keeps its column names; an array gets those that are given.

    Parameters
    ----------
    X : pandas.DataFrame or array
    names : list of str

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        An array has another number of columns.
    """
    if isinstance(X, pd.DataFrame):
        frame = X.copy(deep=False)
        frame.columns = pd.Index([str(name) for name in frame.columns])
        return frame
    if X.shape[1] != len(names):
        raise DataError(f"the rows have {X.shape[1]} columns, the domain declares {len(names)} besides the target.")
    if X.dtype.kind in "OUST":  # without a dtype pandas guesses one: a single row would decide it, or raise
        return pd.DataFrame(X.astype(object), columns=pd.Index(names), dtype=object)
    return pd.DataFrame(X, columns=pd.Index(names))


def without_person(X: Any, person: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return rows without the person column, and that column.

    Parameters
    ----------
    X : pandas.DataFrame or array
    person : str
        The column that says whose row it is.

    Returns
    -------
    tuple of pandas.DataFrame and pandas.Series

    Raises
    ------
    DataError
        `X` is no frame, or has no such column, or several.
    """
    columns = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else []
    if columns.count(person) != 1:
        raise DataError(
            f"the domain says by the column '{shown(person)}' whose row it is; pass X as a frame that has it, once."
        )
    at = columns.index(person)
    return X.drop(columns=X.columns[at]), X.iloc[:, at]


def plain_labels(y: Any) -> Any:
    """Return classes as an array if they come in a frame or column, else as they are."""
    if hasattr(y, "columns") and hasattr(y, "to_pandas"):
        y = as_pandas(y)
    if isinstance(y, pd.DataFrame | pd.Series):
        return y.to_numpy().ravel() if y.ndim == 2 and y.shape[1] == 1 else y.to_numpy()
    return y.to_numpy() if hasattr(y, "to_numpy") else y


def _is_sequence(values: Any) -> bool:
    """Return whether it is a list, a tuple or the like, whose elements may have different types."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


def _array(values: Any) -> NDArray[Any] | None:
    """Return an array of texts, numbers, booleans or objects; None if numpy makes no such array."""
    try:
        array = np.asarray(values)
    except Exception:  # the message of numpy may quote a row
        return None
    if array.dtype.kind in "UST":  # pandas would raise for a text that is not UTF-8
        return array.astype(object)
    return array if array.dtype.kind in "biufO" else None


def _filled(rows: Sequence[Any], width: int) -> NDArray[Any]:
    """Return an array of objects from sequences, each row read by itself."""
    # The length of a row is private: an error or a warning would tell that such a row exists. Since it is unknown
    # which cell is lacking, all cells of the row count as missing.
    array = np.full((len(rows), width), None, dtype=object)
    for index, row in enumerate(rows):
        cells = _cells(row)
        if len(cells) == width:
            for position, cell in enumerate(cells):
                array[index, position] = cell
    return array


def _cells(row: Any) -> list[Any]:
    """Return the cells of a row; none if it is not a sequence of them."""
    try:
        return [] if isinstance(row, str | bytes | bytearray | Mapping | Set) else list(row)
    except Exception:  # an error would tell that such a row exists
        return []


def mismatches(frame: pd.DataFrame, domain: Domain) -> list[str]:
    """Return a phrase for each column whose dtype can hold none of its declared values. No row is read.

    Parameters
    ----------
    frame : pandas.DataFrame
    domain : Domain

    Returns
    -------
    list of str
        For example "'x' holds numbers and declares no, yes".
    """
    phrases = []
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if name in domain and not _may_match(domain[name], family := _family(dtype)):
            values = ", ".join(shown(label) for label in domain[name].labels[:_LISTED])
            more = ", ..." * (len(domain[name].labels) > _LISTED)
            phrases.append(f"'{shown(name)}' holds {family} and declares {values}{more}")
    return phrases


def mismatch_warning(phrases: Sequence[str]) -> str:
    """Return the warning of `fit` about columns that cannot match their declarations.

    Parameters
    ----------
    phrases : sequence of str
        What `mismatches` returned.

    Returns
    -------
    str
    """
    more = f"; and {len(phrases) - _LISTED} more columns" if len(phrases) > _LISTED else ""
    return (
        f"by their dtypes, columns hold values that the domain does not declare: {'; '.join(phrases[:_LISTED])}{more}. "
        "Such rows are left out, or counted as <other> where that is declared; mend the frame or the domain. "
        "`privet domain check` counts on a terminal what falls out."
    )


def _family(dtype: Any) -> str:
    """Return the family of a dtype; empty if it may hold anything."""
    kind = getattr(dtype, "kind", "O")  # nullable and Arrow dtypes of pandas have one too
    return TRUTH_VALUES if kind == "b" else NUMBERS if kind in "iuf" else ""


def _may_match(column: Column, family: str) -> bool:
    """Return whether a dtype of this family can hold a declared value of the column."""
    if isinstance(column, Date) and family:
        return False
    if isinstance(column, Numeric) or not family:
        return True  # numeric columns read truth values as 0 and 1
    if family == TRUTH_VALUES:
        return any(text_of(value) in column.texts for value in (True, False))
    return any(text_of(number_of(text)) == text for text in column.texts)
