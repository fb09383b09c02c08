"""A domain that is read from the rows themselves: convenient, and a leak.

scikit-learn users call `fit(X, y)` without a domain. Then the values, bounds and classes of the rows
become public without a charge. The estimator warns about it, and the model records it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from privet.calendar_cells import iso_text
from privet.errors import DataError
from privet.kernel import Column, Date, Domain, Nominal, Numeric, day_of, text_of

FEW = 20  # a column of whole numbers with at most this many different values is read as codes
BINS = 10  # of other numeric columns


def infer(frame: pd.DataFrame, target: str, classes: list[Any]) -> Domain:
    """Read the domain of a frame from its rows.

    Parameters
    ----------
    frame : pandas.DataFrame
        Attributes and target.
    target : str
        The column of the classes.
    classes : list
        The classes, in order.

    Returns
    -------
    Domain
        With `max_rows` as the next power of two.

    Raises
    ------
    DataError
        A column holds complex numbers.
    """
    columns = [_column(name, frame[name]) for name in frame.columns if name != target]
    bound = 2 ** math.ceil(math.log2(max(len(frame), 2)))
    return Domain((*columns, Nominal(target, tuple(classes))), target=target, max_rows=bound)


def _column(name: str, values: pd.Series[Any]) -> Column:
    """Return the declaration of one column."""
    missing = bool(values.isna().any())
    if getattr(values.dtype, "kind", "") == "M":
        return _dates(name, values, missing)
    numbers = _numbers(values)
    if numbers is None:
        texts = {text_of(value) for value in values.dropna().unique()} - {None}
        missing = missing or "" in texts  # an empty text is a missing value
        texts.discard("")
        if not texts:
            return Nominal(name, ("",), other=True, missing=True)
        return Nominal(name, tuple(sorted(str(text) for text in texts)), other=True, missing=missing)
    finite = numbers[np.isfinite(numbers)]
    whole = bool((finite == np.floor(finite)).all())
    distinct = np.unique(finite)
    if whole and 0 < len(distinct) <= FEW and np.abs(distinct).max() < 2**53:
        return Nominal(name, tuple(int(value) for value in distinct), ordered=True, other=True, missing=missing)
    low, high = (float(distinct[0]), float(distinct[-1])) if len(distinct) else (0.0, 1.0)
    return _numeric(name, low, high, whole, missing)


def _dates(name: str, values: pd.Series[Any], missing: bool) -> Date:
    """Return a column of dates between the first and the last."""
    days = [day for value in values if (day := day_of(value)) is not None] or [0]
    return Date(name, iso_text(min(days)), iso_text(max(max(days), min(days) + 1)), missing=missing)


def _numbers(values: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return a column as numbers; None if it has anything else."""
    if values.dtype.kind == "c":
        raise DataError("Complex data not supported; privet reads texts, numbers and booleans.")
    if values.dtype.kind in "iuf":
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype == object and all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values.dropna()
    ):
        return pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan)
    return None


def _numeric(name: str, low: float, high: float, whole: bool, missing: bool) -> Numeric:
    """Return a numeric column on a grid of whole numbers, or of about a thousand points."""
    size = max(abs(low), abs(high))
    if whole and high - low < 2**20 and size < 2**52:
        return Numeric(
            name, Fraction(low), Fraction(high), Fraction(1), bins=min(BINS, int(high - low) + 1), missing=missing
        )
    # not finer than floats of this size can distinguish, or than a domain file can write
    span = max(min(high - low, 1e308) or size, size * 1e-5, 1e-12)
    step = Fraction(10) ** (math.floor(math.log10(span)) - 3)
    first, last = math.floor(Fraction(low) / step), math.ceil(Fraction(high) / step)
    last = max(last, first + BINS)
    return Numeric(name, first * step, last * step, step, bins=BINS, missing=missing)
