"""Columns of dates: numeric columns whose grid is whole days, read and written as YYYY-MM-DD.

A date is a number, the days since 1970-01-01. So questions, mechanisms and sensitivities are those of a `Numeric`
column with step 1; what differs is how values are read, and how thresholds and cells are written.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privet import calendar_cells
from privet.calendar_cells import EPOCH, FIRST, LAST, iso_text
from privet.errors import DomainError
from privet.kernel.column import MAX_COLUMN_CELLS, Numeric
from privet.text import quoted

if TYPE_CHECKING:
    import pandas as pd

# A date as a text (docs/reference/domain.md#dates): a day that exists, in the years 0001 to 9999. A time of day may
# follow and is not looked at. No cast of the day to a date can fail, in any engine.
_LEAP = "[0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00"
_YEAR = "[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000"
_MONTH_DAY = "(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
DATE = rf"[ ]*(({_YEAR})-({_MONTH_DAY})|({_LEAP})-02-29)([T ][0-9]{{2}}:[0-9]{{2}}[ -~]*|[ ]*)"
LONGEST_DATE = 64  # characters: a longer text is no date
_date = re.compile(DATE)


def day_of(value: object) -> int | None:
    """Return the days from 1970-01-01 to the date that a value is or spells; None if there is none.

    >>> day_of("1970-01-02"), day_of(" 1970-01-02 23:59:59.9+02:00 "), day_of(date(1969, 12, 31)), day_of("1970-02-30")
    (1, 1, -1, None)
    >>> day_of(datetime.fromisoformat("1970-01-01T23:00:00-05:00")), day_of(0), day_of("1.1.1970")
    (1, None, None)
    """
    try:
        if isinstance(value, str):
            if len(value) > LONGEST_DATE or not _date.fullmatch(value):
                return None
            return date.fromisoformat(value.strip(" ")[:10]).toordinal() - EPOCH
        if isinstance(value, np.datetime64):
            day = int(value.astype("datetime64[D]").astype(np.int64))  # of no time: the least number
            return day if FIRST <= day <= LAST else None
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC)
        return value.toordinal() - EPOCH if isinstance(value, date) else None
    except Exception:  # of 30 February, of no time, of foreign objects: it would tell that such a row exists
        return None


def date_at(day: int | None) -> date | None:
    """Return a day that `day_of` gave as a date; None for none."""
    return None if day is None else date.fromordinal(int(day) + EPOCH)


class Date(Numeric):
    """A column of dates in declared bounds, read by the day and counted in cells of the calendar.

    Dates outside the bounds are clamped to them. Thresholds of trees, quantiles and ranges are days.

    Parameters
    ----------
    name : str
    low, high : date or str
        Public bounds, as `2015-01-31`.
    step : str, optional
        How long a cell is: "days", "months", "years", or several, as "3 months". The first cell begins at `low`, each
        other one on the first day of a month or year. Default: the finest of a few round steps that makes at most 20
        cells.
    edges : sequence of date or str, optional
        Where cells begin, rising, in place of `step`.
    bins : int, optional
        The number of cells of equal length in days, in place of `step`.
    missing : bool, default False
        Whether values that are no date have a cell. Without it a row that has one is left out.

    Raises
    ------
    DomainError
        What is declared is no date or no step, contradicts itself, or makes too many cells.

    >>> admitted = Date("admitted", "2019-11-15", "2020-12-31", "3 months", missing=True)
    >>> admitted.labels[:3], admitted.code("2020-02-01"), admitted.code("soon")
    (('2019-11-15 to 2020-01-31', '2020-02 to 2020-04', '2020-05 to 2020-07'), 1, 5)
    >>> Date("born", "1990-01-01", "2009-12-31").labels[-1]
    '2009'
    """

    kind = "date"

    def __init__(
        self,
        name: str,
        low: date | str | Fraction,
        high: date | str | Fraction,
        step: str | Fraction | None = None,
        edges: Sequence[date | str | Fraction] | None = None,
        bins: int | None = None,
        missing: bool = False,
    ) -> None:
        # what is stored are days as fractions, with a step of one: `dataclasses.replace` passes these
        first, last = _declared(name, "low", low), _declared(name, "high", high)
        days = None if edges is None else tuple(_declared(name, "edges", edge) for edge in edges)
        if isinstance(step, str) and (days is not None or bins is not None):
            raise DomainError(f"column '{name}' declares a step and edges or bins; keep one of them.")
        if days is None and bins is None and first < last:
            if isinstance(step, Fraction) and step == 1:
                step = "days"
            written = step if step is None or isinstance(step, str) else ""
            starts = calendar_cells.starts(int(first), int(last), written, MAX_COLUMN_CELLS)
            if starts is None:
                raise DomainError(
                    f'column \'{name}\' needs a step of days, months or years, such as "months" or "3 months", not '
                    f"{quoted(step)}."
                )
            if len(starts) == MAX_COLUMN_CELLS:
                raise DomainError(f"column '{name}' has more than {MAX_COLUMN_CELLS} cells; declare a longer step.")
            days = tuple(map(Fraction, starts))
        super().__init__(name, first, last, Fraction(1), days, bins, missing)

    def __repr__(self) -> str:
        return f"Date({self.name!r}, '{self.text(self.low)}', '{self.text(self.high)}', {len(self.labels)} cells)"

    def declared_step(self) -> str | None:
        """Return the step that makes these cells; None where there is none."""
        return calendar_cells.step_of(int(self.low), int(self.high), self.edges or ())

    def number(self, value: Fraction) -> str:
        """Return a day as people, and models, write it."""
        return self.text(value)

    def text(self, value: Fraction) -> str:
        return iso_text(int(value))

    def read(self, value: object) -> float | None:
        return day_of(value)

    def plain_numbers(self, series: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        import pandas as pd

        dtype: Any = series.dtype
        if isinstance(dtype, pd.DatetimeTZDtype):
            series = series.dt.tz_convert(None)  # as UTC
        elif getattr(dtype, "kind", "O") != "M":
            return None
        if isinstance(dtype, pd.ArrowDtype):
            days = _arrow_days(series.array.__arrow_array__())
        else:
            days = series.to_numpy().astype("datetime64[D]").astype(np.int64)
        return days, (days < FIRST) | (days > LAST) | series.isna().to_numpy(dtype=np.bool_)

    def spans(self, thresholds: Sequence[int]) -> list[str]:
        """Return labels of ranges: a day, a month or a year, or from one to another, both included."""
        starts = [0, *thresholds, self.grid_size]
        return [
            calendar_cells.span(int(self.value_at(first)), int(self.value_at(end)) - 1)
            for first, end in itertools.pairwise(starts)
        ]


def _arrow_days(array: Any) -> NDArray[np.int64]:
    """Return the days of an Arrow array of dates or times, which are of UTC if they have a zone; of a missing one 0."""
    if str(array.type) == "date32[day]":
        return np.asarray(array.cast("int32").fill_null(0), dtype=np.int64)
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[getattr(array.type, "unit", "ms")]  # date64 has none
    days: NDArray[np.int64] = np.asarray(array.cast("int64").fill_null(0), dtype=np.int64) // (86400 * 10**digits)
    return days


def _declared(name: str, setting: str, value: object) -> Fraction:
    day = value if isinstance(value, Fraction) else day_of(value)
    if day is None or day != int(day) or not FIRST <= day <= LAST:
        raise DomainError(f"column '{name}' needs a date for {setting}, as 2020-12-31, not {quoted(value)}.")
    return Fraction(day)
