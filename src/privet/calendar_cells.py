"""Cells of the calendar: days, months and years between two dates, as lists and in words.

Dates are numbers here, the days since 1970-01-01. Nothing here sees a row: a date of a row is read by `kernel/date.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from fractions import Fraction

import numpy as np

EPOCH = date(1970, 1, 1).toordinal()
FIRST, LAST = date.min.toordinal() - EPOCH, date.max.toordinal() - EPOCH  # the years 0001 to 9999
_UNITS = ("days", "months", "years")
_step = re.compile(r"(?:([1-9][0-9]{0,4}) )?(day|month|year)s?")
_MOST = 20  # cells where no step is declared
_STEPS = ((1, "days"), (1, "months"), (3, "months"), (6, "months"))
_STEPS += tuple((digit * 10**power, "years") for power in range(4) for digit in (1, 2, 5))


def starts(low: int, high: int, step: str | None, most: int) -> list[int] | None:
    """Return the days on which cells but the first begin, at most so many; None where that is no step.

    Parameters
    ----------
    low, high : int
        The first and the last day.
    step : str or None
        How long a cell is, as "days", "3 months" or "year"; None for the finest round step that makes few cells.
    most : int

    >>> [iso_text(day) for day in starts(10, 125, "2 months", 9)]
    ['1970-03-01', '1970-05-01']
    """
    if step is None:
        ends = {unit: (_period(low, unit), _period(high, unit)) for unit in _UNITS}
        size, unit = next((size, unit) for size, unit in _STEPS if (ends[unit][1] - ends[unit][0]) // size < _MOST)
    elif parts := _step.fullmatch(step):
        size, unit = int(parts[1] or 1), f"{parts[2]}s"
    else:
        return None
    return _first_days(low, high, size, unit, most)


def step_of(low: int, high: int, edges: Sequence[Fraction]) -> str | None:
    """Return the step that makes cells which begin on these days; None where there is none."""
    for unit in reversed(_UNITS) if edges else ():
        size = _period(int(edges[0]), unit) - _period(low, unit)
        if size and list(edges) == _first_days(low, high, size, unit, len(edges) + 1):
            return unit if size == 1 else f"{size} {unit}"
    return None


def iso_text(day: int) -> str:
    """Return a day as YYYY-MM-DD, also beyond the years that have four digits."""
    return str(np.datetime64(day, "D"))


def span(first: int, last: int) -> str:
    """Return a range of days in words: of whole years or months where it is one.

    >>> span(0, 364), span(0, 30), span(0, 58), span(5, 5), span(5, 58)
    ('1970', '1970-01', '1970-01 to 1970-02', '1970-01-06', '1970-01-06 to 1970-02-28')
    """
    begin, end = iso_text(first), iso_text(last)
    after = iso_text(last + 1)
    for letters, rest in ((4, "-01-01"), (7, "-01")):
        if begin.endswith(rest) and after.endswith(rest):
            begin, end = begin[:letters], end[:letters]
            break
    return begin if begin == end else f"{begin} to {end}"


def _first_days(low: int, high: int, size: int, unit: str, most: int) -> list[int]:
    """Return the first day of every `size`-th day, month or year after that of `low`, up to `high`."""
    periods = range(_period(low, unit) + size, _period(high, unit) + 1, size)[:most]
    return [_first_day(period, unit) for period in periods]


def _period(day: int, unit: str) -> int:
    """Return the number of the day, month or year in which a day lies."""
    if unit == "days":
        return day
    when = date.fromordinal(day + EPOCH)
    return when.year if unit == "years" else 12 * when.year + when.month - 1


def _first_day(period: int, unit: str) -> int:
    """Return the first day of a day, month or year."""
    year, month = (period, 0) if unit == "years" else divmod(period, 12)
    return period if unit == "days" else date(year, month + 1, 1).toordinal() - EPOCH
