"""Rows that a caller hands to `fit(X, y)`: how they become a frame, and what may be said about them.

With a declared domain nothing is said that depends on a cell, a label or the number of rows. But rows that fit no cell
are left out, and whoever has 0 and 1 where the domain declares no and yes would learn from nothing and not know it. So
`mismatches` compares *dtypes* with declared values, and `fit` warns by that alone.

A dtype is the schema of a frame, which its caller chose, or let pandas infer from the rows. Where it was inferred, one
row can change it, so dtypes that one row moves between are one family:

* whole numbers, floats and their nullable and Arrow kinds are `numbers`: a missing value makes floats of integers;
* booleans, nullable or not, are `truth values`;
* everything else, above all `object`, texts and `category`, has no family and never warns. Texts may be numbers, on
  every path; the categories of a `category` are read from rows, so they are not looked at.

What remains: one text among numbers makes a column `object`, and then nothing is said. The warning tells whoever made
the frame what `X.dtypes` tells them; it is in no model, ledger or file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.errors import DataError
from privet.kernel import Column, Domain, Numeric, as_series, number_of, shown, text_of

NUMBERS, TRUTH_VALUES = "numbers", "truth values"
_LISTED = 5  # columns, and values of a column, that a warning names


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a polars or Arrow frame as a pandas frame, every element as it is.

    Their own `to_pandas` reads whole numbers beside a missing one as floats: one row would change others.
    """
    names = frame.column_names if hasattr(frame, "column_names") else frame.columns
    return pd.DataFrame({name: as_series(frame[name]) for name in names})


def table_of(X: Any, width: int) -> Any:
    """Return rows as a frame or a two-dimensional array, in which no row changes how another is read.

    numpy makes texts of all numbers in a list where one row has a text, so elements of lists keep their types.

    Parameters
    ----------
    X : frame, array or sequence of rows
    width : int
        How many cells a row of a sequence has. The columns of frames and arrays are theirs, and not looked at here.

    Raises
    ------
    DataError
        They are no table. The text quotes none of them.
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
    """Return the classes as one column, in which no row changes how another is read.

    Raises
    ------
    DataError
        They are no column. The text quotes none of them, nor says how many there are.
    """
    if type(y).__module__.partition(".")[0] in ("polars", "pyarrow"):  # their arrays make floats beside a missing one
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


def _is_sequence(values: Any) -> bool:
    """Is it a list, a tuple or the like, whose elements have a type each?"""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


def _array(values: Any) -> NDArray[Any] | None:
    """Return texts, numbers, booleans or objects as an array; None where numpy has none of these for them."""
    try:
        array = np.asarray(values)
    except Exception:  # numpy's words may quote a row
        return None
    if array.dtype.kind in "UST":  # left to pandas, a text that is no UTF-8 would be an error
        return array.astype(object)
    return array if array.dtype.kind in "biufO" else None


def _filled(rows: Sequence[Any], width: int) -> NDArray[Any]:
    """Return rows that are sequences as an array of objects, each row read by itself."""
    # How many cells a row has is the content of that row: to refuse it, or to say a word, would tell that it is there.
    # Nobody knows which cell it lacks, so all of them are missing.
    array = np.full((len(rows), width), None, dtype=object)
    for position, row in enumerate(rows):
        cells = _cells(row)
        if len(cells) == width:
            for place, cell in enumerate(cells):
                array[position, place] = cell
    return array


def _cells(row: Any) -> list[Any]:
    """Return the cells of a row; none where it is not a sequence of them."""
    try:
        return [] if isinstance(row, str | bytes | bytearray | Mapping | Set) else list(row)
    except Exception:  # it would tell that such a row exists
        return []


def mismatches(frame: pd.DataFrame, domain: Domain) -> list[str]:
    """Return a phrase for each declared column whose dtype can hold none of its declared values; no row is read."""
    found = []
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if name in domain and not _may_match(domain[name], family := _family(dtype)):
            values = ", ".join(shown(label) for label in domain[name].labels[:_LISTED])
            more = ", ..." * (len(domain[name].labels) > _LISTED)
            found.append(f"'{shown(name)}' holds {family} and declares {values}{more}")
    return found


def warning_about(phrases: Sequence[str]) -> str:
    """Return what `fit` says of columns that cannot match their declarations."""
    more = f"; and {len(phrases) - _LISTED} more columns" if len(phrases) > _LISTED else ""
    return (
        f"by their dtypes, columns hold values that the domain does not declare: {'; '.join(phrases[:_LISTED])}{more}. "
        "Such rows are left out, or counted as <other> where that is declared; mend the frame or the domain. "
        "`privet domain check` counts on a terminal what falls out."
    )


def _family(dtype: Any) -> str:
    """The family of a dtype; empty for those that may hold anything."""
    kind = getattr(dtype, "kind", "O")  # of pandas' nullable and Arrow dtypes, too
    return TRUTH_VALUES if kind == "b" else NUMBERS if kind in "iuf" else ""


def _may_match(column: Column, family: str) -> bool:
    if isinstance(column, Numeric) or not family:
        return True  # a truth value is read as 0 or 1
    if family == TRUTH_VALUES:
        return any(text_of(value) in column.texts for value in (True, False))
    return any(text_of(number_of(text)) == text for text in column.texts)
