"""Numbers of a study as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from privet.report.chart import ChartPoint, Other
from privet.report.svg import MINUS
from privet.studies.estimate import Estimate
from privet.studies.findings import At, Number

FEW = 3  # repeats below which an interval says nothing and is not drawn


def amount(value: At) -> str:
    """A place on a scale, or a heading.

    >>> [amount(each) for each in (0.1, 30162.0, 2.5e-07, "leaves")]
    ['0.1', '30,162', '2.5e-07', 'leaves']
    """
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.5g}"


def decimals(se: float) -> int:
    """As many as two digits of a standard error take."""
    return min(max(1 - math.floor(math.log10(se)), 0), 6)


def places(estimates: Iterable[Estimate]) -> int | None:
    """As many decimals as let numbers stand below each other: two digits for the standard error in the middle."""
    errors = sorted(each.se for each in estimates if each.se)
    return decimals(errors[len(errors) // 2]) if errors else None


def mean_text(each: Estimate, places: int | None = None) -> str:
    """A mean with as many places as its standard error has.

    >>> mean_text(Estimate(83.21234, 0.5, 10))
    '83.21'
    """
    if places is None:
        places = decimals(each.se) if each.se else None
    told = amount(float(f"{each.mean:.5g}")) if places is None else f"{each.mean:,.{places}f}"
    return told.replace("-", MINUS)


def ours_text(each: Estimate, places: int | None = None) -> str:
    """A mean, its standard error and over how many repeats it was taken.

    >>> ours_text(Estimate(83.21234, 0.5, 10))
    '83.21 ± 0.16 (10)'
    """
    if not each.se:
        return f"{mean_text(each, places)} ({each.n})"
    shown = decimals(each.se) if places is None else places
    least = 10.0**-shown
    se = f"{each.se:,.{shown}f}" if each.se >= least / 2 else f"<{least:.{shown}f}"
    return f"{mean_text(each, places)} ± {se} ({each.n})"


def number_text(number: Number | None) -> str:
    """A number of somebody else, with its deviation and, in brackets, how far it may be misread.

    >>> number_text(Number(82.5, reading=0.5))
    '82.5 (±0.5)'
    """
    if number is None:
        return ""
    spread = "" if number.sd is None else f" ± {number.sd:g}"
    reading = f" (±{number.reading:g})" if number.reading else ""
    return f"{number.value:.5g}{spread}{reading}".replace("-", MINUS)


def errors_text(difference: float | None) -> str:
    """A difference in standard errors, with its sign."""
    if difference is None:
        return ""
    told = f"{difference:+.1f}" if abs(difference) < 100 else f"{difference:+.0f}"
    return "0" if float(told) == 0 else told.replace("-", MINUS)


def point_of(x: float, each: Estimate) -> ChartPoint:
    """An estimate as a point of a chart."""
    told = f"{each.mean:.4g} ± {each.half:.2g} ({each.n} repeats)"
    return ChartPoint(x, each.mean, each.low, each.high, told, each.n >= FEW)


def other_of(x: float, number: Number, mark: str, told: str) -> Other:
    """A number of somebody else as it stands beside ours."""
    return Other(x, number.value, number.reading + 1.96 * number.se, mark, told)
