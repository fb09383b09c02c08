"""Releases: noisy values that left the kernel and know how far off they may be.

The kernel makes them of public values alone: what was asked, what it cost, the noisy value and the mechanism that
made it. Confidence is about the noise alone: the true answer of the table lies in `interval(0.95)` in at least 95% of
runs.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from privet.calendar_cells import iso_text
from privet.errors import PrivacyError, QuestionError, did_you_mean
from privet.text import decimal_text, quoted

if TYPE_CHECKING:
    import pandas as pd


class Rated(Protocol):
    """What a unit says of losses that are no epsilons."""

    @property
    def delta(self) -> Fraction | None: ...

    def epsilon(self, loss: Fraction) -> Fraction: ...


@dataclass(frozen=True)
class About:
    """What a release answers, what was charged for it, and whether its noise was real.

    Parameters
    ----------
    question : str
    loss : Fraction
        What was charged: an epsilon or, with a delta, a rho.
    private : bool, default True
    entry : int, optional
        Of the ledger.
    unit : Unit, optional
        What the data set is counted in, where that is rho with a delta.
    """

    question: str
    loss: Fraction
    private: bool = True
    entry: int | None = None
    unit: Rated | None = None

    @property
    def delta(self) -> Fraction | None:
        """The delta of a data set that is counted in rho."""
        return None if self.unit is None else self.unit.delta

    @property
    def epsilon(self) -> Fraction:
        """What was charged; of a rho what it is alone as epsilon, with delta, rounded up."""
        return self.loss if self.unit is None else self.unit.epsilon(self.loss)

    @property
    def words(self) -> str:
        """Epsilon, and delta where there is one."""
        delta = "" if self.delta is None else f", delta {float(self.delta):g}"
        return f"epsilon {decimal_text(self.epsilon)}{delta}{'' if self.private else ', NOT PRIVATE'}"

    def share(self, releases: int) -> About:
        """Return the same for one of so many releases that share what was charged."""
        return replace(self, loss=self.loss / releases)


class Noise(Protocol):
    """What a mechanism says of the noise in numbers."""

    @property
    def scale(self) -> float: ...

    @property
    def deviation(self) -> float: ...

    def error(self, confidence: float) -> int: ...


class ResidualNoise(Protocol):
    """What a mechanism says of the noise in sums of residuals: of a row's own class, and of the others."""

    @property
    def own(self) -> Sequence[Noise]: ...

    @property
    def others(self) -> Noise: ...


class Chooser(Protocol):
    """What a mechanism says of a choice: how far below the best it may be."""

    def shortfall(self, candidates: int, confidence: float) -> float: ...


class Bounds(Protocol):
    """What a release says of its numeric column."""

    @property
    def low(self) -> Fraction: ...

    @property
    def middle(self) -> Fraction: ...

    @property
    def top(self) -> Fraction: ...


_COMPLETE = False  # from the end of this module on every class that is derived from a release is somebody else's


class Release:
    """Base of all releases."""

    about: About
    _clean: bool = True

    @property
    def clean(self) -> bool:
        """False if code that nobody vouches for had a hand in the value; nobody can say otherwise afterwards."""
        return self._clean

    def __init_subclass__(cls, **more: Any) -> None:
        """Mark what others derive from a release: its value is whatever their code returns."""
        super().__init_subclass__(**more)
        if _COMPLETE:
            cls.clean = property(lambda self: False)  # type: ignore[assignment, method-assign]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take on the state of another one: numbers that cannot be changed, in a copy too."""
        self.__dict__.update(
            {name: _frozen(own) if isinstance(own, np.ndarray) else own for name, own in state.items()}
        )

    @property
    def epsilon(self) -> Fraction:
        """What this part of the table was charged for it; of a rho what it is alone as epsilon, with `delta`."""
        return self.about.epsilon

    @property
    def rho(self) -> Fraction | None:
        """What this part was charged, where the data set is counted in rho."""
        return None if self.about.delta is None else self.about.loss

    @property
    def delta(self) -> Fraction | None:
        """The delta of a data set that is counted in rho."""
        return self.about.delta

    @property
    def private(self) -> bool:
        """False for a value made with seeded noise."""
        return self.about.private

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain JSON values."""
        low, high = self.interval(0.95)
        return {"value": self.value, "low": low, "high": high}

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return bounds for the true answer, which hold with this confidence.

        Parameters
        ----------
        confidence : float, default 0.95
            Between 0 and 1.

        Raises
        ------
        QuestionError
            The release has no interval, or the confidence is none.
        """
        raise QuestionError(f"a {type(self).__name__} has no interval.")

    @property
    def value(self) -> Any:
        """The noisy value alone: a plain number, text or array."""
        return int(self) if isinstance(self, int) else float(self)  # type: ignore[arg-type]

    def map(self, function: Callable[..., Any], *others: Release | Public) -> Derived:
        """Return what a function makes of this value, and of others.

        Nobody can tell what a function has seen besides its arguments. So the result is marked, unless the function is
        a `derivation`, and refused where it would be taken for a release: in the context of a choice, as a reward.

        Parameters
        ----------
        function : callable
            Takes the plain values.
        *others : Release or Public
            Its further arguments.

        Returns
        -------
        Derived

        Examples
        --------
        >>> from privet.kernel import IntegerLaplace
        >>> rows = Count(40, IntegerLaplace(Fraction(1)), About("count", Fraction(1)))
        >>> rows.map(lambda n, share: n * share, Public(0.5))
        20.0 (made of count by unknown code)
        >>> rows.map(math.sqrt)
        6.324555320336759 (made of count)
        """
        made = Derived(function(self.value, *(known(other) for other in others)), (self, *others))
        made._clean = any(function is one for one in _DERIVATIONS) and all(
            source.clean for source in (self, *others) if isinstance(source, Release)
        )
        return made

    def _note(self, error: str) -> str:
        return f"({error}, {self.about.words})"


class Derived(Release):
    """A value made of releases and public constants: post-processing, which costs nothing."""

    _clean = False  # `Release.map` says otherwise where it knows the function

    def __init__(self, value: Any, sources: tuple[Release | Public, ...]) -> None:
        self._value = value
        own = [source.about for source in sources if isinstance(source, Release)]
        # of several answers the record cannot name one entry, and what they cost together depends on their parts
        entries = {about.entry for about in own}
        self.about = About(
            ", ".join(dict.fromkeys(about.question for about in own)),
            max(about.loss for about in own),
            all(about.private for about in own),
            entries.pop() if len(entries) == 1 else None,
            next((about.unit for about in own if about.unit is not None), None),
        )

    @property
    def value(self) -> Any:
        return self._value

    def to_dict(self) -> dict[str, Any]:
        return {"value": self._value, "made of": self.about.question}

    def __repr__(self) -> str:
        code = "" if self.clean else " by unknown code"
        return f"{self._value!r} (made of {self.about.question}{code}{'' if self.private else ', NOT PRIVATE'})"


@dataclass(frozen=True)
class Public:
    """A value that its writer declares public: a constant, or one computed from public rows alone.

    Whoever writes `Public(x)` vouches for x. It is the one place where that is said, so it can be searched for.

    Parameters
    ----------
    value : object
    origin : str, default ""
        Where it comes from.

    Raises
    ------
    PrivacyError
        The value is a release, which says itself where it comes from.

    >>> Public(0.83, origin="adult, UCI")
    Public(value=0.83, origin='adult, UCI')
    """

    value: Any
    origin: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.value, Release):
            raise PrivacyError("a release says itself where it comes from: give it as it is, without Public(...).")

    def __init_subclass__(cls, **more: Any) -> None:
        raise PrivacyError("nothing is derived from Public: whoever vouches for a value writes Public(value).")


def known(value: object) -> Any:
    """Return the plain value of a release or a public constant.

    Raises
    ------
    PrivacyError
        It is anything else, which may come from a private row.
    """
    if isinstance(value, Release | Public):
        return value.value
    raise PrivacyError(
        f"a bare {type(value).__name__} says nothing about where it comes from: give the release itself, "
        "release.map(...), or Public(value) for what was public before."
    )


def clean_value(value: object) -> Any:
    """Return the plain value of a release or a public constant that no unknown code had a hand in.

    Raises
    ------
    PrivacyError
        It is anything else, or was made by a function that may have seen a private row.
    """
    plain = known(value)
    if isinstance(value, Release) and not value.clean:
        raise PrivacyError(
            "a value made by map(...) with code of your own may hold more than its release does: use the functions of "
            "privet.choice.derive, or vouch for it with Public(value, origin=...)."
        )
    return plain


# What these make of a release holds nothing but the release: they read their arguments alone.
_DERIVATIONS: list[Callable[..., Any]] = [
    *(abs, float, int),
    *(math.exp, math.log, math.log1p, math.log2, math.log10, math.sqrt),
    *(np.exp, np.log, np.log1p, np.sqrt),
]

F = TypeVar("F", bound=Callable[..., Any])


def derivation(function: F) -> F:
    """Declare a function of privet that reads its arguments alone: what it makes of releases is clean.

    Raises
    ------
    PrivacyError
        The function is not one of privet's modules, which reviewers read: others are vouched for by `Public(...)`.
    """
    module = str(getattr(function, "__module__", ""))
    own = isinstance(function, FunctionType) and module.startswith("privet.") and module in sys.modules
    # it sees its module and its arguments: nothing is bound to it, and it lies in the module that it names
    alone = own and function.__globals__ is vars(sys.modules[module]) and function.__closure__ is None
    if not alone or function.__defaults__ or function.__kwdefaults__:
        raise PrivacyError("only functions of privet's modules are derivations; write Public(value, origin=...).")
    _DERIVATIONS.append(function)
    return function


Scalar = TypeVar("Scalar", bound=np.generic)


def _frozen(numbers: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a view that cannot be made writeable: what was changed afterwards would pass for released."""
    own = numbers.copy()
    own.flags.writeable = False
    return own.view()


def _share(confidence: float) -> float:
    if isinstance(confidence, str) or not 0 < confidence < 1:
        raise QuestionError(f"confidence must lie between 0 and 1, as 0.95, not {quoted(confidence)}.")
    return confidence


class Refiner(Protocol):
    """What a release can be refined by: the record of all that was released from one question (see `refining`)."""

    def refined(self, parts: Sequence[int], epsilon: object) -> list[Any]: ...


class Refinable(Release):
    """A release whose noise can be made smaller later, for the difference in epsilon, or in rho.

    It holds its noisy value and a way to ask for more. Noise is nowhere in it, and a copy
    cannot ask: of one answer there is one chain of refinements.
    """

    noise: Noise
    _refiner: Refiner | None = None  # the way to the one record of refinements
    _part: int = 0

    def refine(self, epsilon: object) -> Self:
        """Return the same with the noise of a larger epsilon, for the difference; what is released already is free.

        All that was released from one question costs together what its finest level costs.
        An answer is refined in the opening of the table in which it was drawn, and nowhere else.
        """
        (finer,) = self._way().refined([self._part], [epsilon])
        assert isinstance(finer, type(self))
        return finer

    def _way(self) -> Refiner:
        if self._refiner is not None:
            return self._refiner
        kind = type(self).__name__
        if not hasattr(self.noise, "share"):  # a paper's noise, or none
            raise QuestionError(f"this {kind} is of public rows, without noise that could be refined; ask anew.")
        raise QuestionError(
            f"this {kind} cannot be refined, as it is a copy or a part of another answer; refine what the table's own "
            "count, histogram or sum gave."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has: all but the way to the chain."""
        return {name: None if name == "_refiner" else value for name, value in self.__dict__.items()}


def refined_by(refiner: Refiner, parts: Iterable[int], releases: Iterable[Refinable]) -> None:
    """Let the releases of these parts be refined."""
    for part, release in zip(parts, releases, strict=True):
        release._refiner, release._part = refiner, part


class Count(Refinable, int):
    """A noisy number of rows: an int that knows its interval.

    >>> from privet.kernel import IntegerLaplace
    >>> count = Count(40, IntegerLaplace(Fraction(1)), About("count", Fraction(1)))
    >>> count + 2, count.interval(0.95), count
    (42, (37, 43), 40 (± 3 at 95%, epsilon 1))
    """

    def __new__(cls, value: int, *_: object) -> Self:
        return super().__new__(cls, value)

    def __init__(self, value: int, noise: Noise, about: About) -> None:
        self.noise, self.about, self._refiner, self._part = noise, about, None, 0

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """Return bounds for the true count, which is never below 0."""
        error = self.noise.error(_share(confidence))
        return max(0, self - error), max(0, self + error)

    def __repr__(self) -> str:
        return f"{int(self)} {self._note(f'± {self.noise.error(0.95)} at 95%')}"

    def __str__(self) -> str:
        return str(int(self))


class _Number(Release, float):
    """Base of the releases that are floats."""

    def __new__(cls, value: float, *_: object) -> Self:
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return str(float(self))


class Sum(Refinable, _Number):
    """A noisy sum of bounded values."""

    def __init__(self, value: float, noise: Noise, unit: Fraction, about: About) -> None:
        self.noise, self.unit, self.about = noise, unit, about

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds for the true sum."""
        error = float(self.noise.error(_share(confidence)) * self.unit)
        return float(self) - error, float(self) + error

    def __repr__(self) -> str:
        return f"{float(self):g} {self._note(f'± {float(self.noise.error(0.95) * self.unit):g} at 95%')}"


class Mean(_Number):
    """A noisy mean: a noisy sum of deviations from the middle of the bounds over a noisy count."""

    def __init__(self, value: float, deviation: Sum, count: Count, column: Bounds) -> None:
        self.deviation, self.count, self.column = deviation, count, column
        self.about = replace(deviation.about, loss=deviation.about.loss + count.about.loss)

    @classmethod
    def of(cls, deviation: Sum, count: Count, column: Bounds) -> Mean:
        value = float(column.middle) + float(deviation) / max(int(count), 1)
        return cls(min(max(value, float(column.low)), float(column.top)), deviation, count, column)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds for the true mean: both parts hold at once with this confidence (union bound)."""
        of_part = (1 + _share(confidence)) / 2
        low, middle, high = float(self.column.low), float(self.column.middle), float(self.column.top)
        fewest, most = self.count.interval(of_part)
        if fewest < 1:
            return low, high
        quotients = [total / rows for total in self.deviation.interval(of_part) for rows in (fewest, most)]
        return max(low, middle + min(quotients)), min(high, middle + max(quotients))

    def __repr__(self) -> str:
        low, high = self.interval(0.95)
        return f"{float(self):g} {self._note(f'{low:g} to {high:g} at 95%')}"


class _Ranked(Release):
    """Base of the quantiles: a grid point close in rank to the true one."""

    def __init__(self, value: object, rank: Fraction, mechanism: Chooser, candidates: int, about: About) -> None:
        self.rank, self.mechanism, self.candidates, self.about = rank, mechanism, candidates, about

    def rank_error(self, confidence: float = 0.95) -> float:
        """Return how many rows at most lie between the answer and the true quantile, with this confidence."""
        # the score counts rows in units of 1 / rank.denominator and adds both sides
        return self.mechanism.shortfall(self.candidates, _share(confidence)) / self.rank.denominator

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        raise QuestionError(
            "how far a quantile is off is known in rows, not in values: use rank_error(); for bounds on the value ask "
            "for a lower and a higher quantile."
        )

    def to_dict(self) -> dict[str, Any]:
        value = self.value if isinstance(self, float) else str(self.value)
        return {"value": value, "rank": float(self.rank), "rank_error": self.rank_error(0.95)}

    def __repr__(self) -> str:
        value = f"{self:g}" if isinstance(self, float) else str(self.value)
        return f"{value} {self._note(f'within {self.rank_error(0.95):.0f} rows at 95%')}"


class Quantile(_Ranked, _Number):
    """A noisy quantile of numbers: a float."""


class DateQuantile(_Ranked):
    """A noisy quantile of dates: `value` is a `datetime.date`."""

    def __init__(self, value: str, rank: Fraction, mechanism: Chooser, candidates: int, about: About) -> None:
        super().__init__(value, rank, mechanism, candidates, about)
        self._date = date.fromisoformat(value)

    @property
    def value(self) -> date:
        return self._date

    def __str__(self) -> str:
        return str(self._date)


class Histogram(Refinable):
    """Noisy counts over all cells of some columns, empty ones included."""

    _values: NDArray[np.int64]
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def values(self) -> NDArray[np.int64]:
        """The counts, with an axis for each column; they cannot be changed."""
        return self._values

    @property
    def value(self) -> NDArray[np.int64]:
        return self.values.copy()

    def __init__(
        self,
        values: NDArray[np.int64],
        columns: tuple[str, ...],
        labels: tuple[tuple[str, ...], ...],
        noise: Noise,
        about: About,
    ) -> None:
        self._have(_frozen(values), columns, labels, noise, about)

    def _have(self, values: NDArray[np.int64], *rest: Any) -> None:
        self._values, (self.columns, self.labels, self.noise, self.about) = values, rest
        self._refiner, self._part = None, 0

    @classmethod
    def of_parts(
        cls,
        values: NDArray[np.int64],
        columns: tuple[str, ...],
        labels: tuple[tuple[str, ...], ...],
        noises: Iterable[Noise],
        abouts: Iterable[About],
    ) -> list[Self]:
        """Return a histogram for each part, of one array of theirs: the leaves of a tree are thousands."""
        histograms = []
        for own, noise, about in zip(_frozen(values), noises, abouts, strict=True):
            histogram = cls.__new__(cls)
            histogram._have(own, columns, labels, noise, about)
            histograms.append(histogram)
        return histograms

    def __getitem__(self, cell: str | tuple[str, ...]) -> Count:
        """Return the count of a cell, named by its labels."""
        names = (cell,) if isinstance(cell, str) else cell
        if len(names) != len(self.columns):
            raise QuestionError(
                f"name a cell by {len(self.columns)} labels, one for each of {', '.join(self.columns)}."
            )
        index = []
        for name, labels, column in zip(names, self.labels, self.columns, strict=True):
            if name not in labels:
                meant = did_you_mean(name, labels)
                raise QuestionError(
                    f"column '{column}' has no cell {quoted(name)}{meant}; it has {', '.join(labels[:20])}."
                )
            index.append(labels.index(name))
        return Count(int(self.values[tuple(index)]), self.noise, self.about)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype)

    def interval(self, confidence: float = 0.95) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return bounds for each cell by itself."""
        error = self.noise.error(_share(confidence))
        return np.maximum(self.values - error, 0), np.maximum(self.values + error, 0)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each cell: its labels, count and 95% bounds."""
        import pandas as pd

        low, high = self.interval(0.95)
        index = np.indices(self.values.shape).reshape(len(self.columns), -1)
        labelled = {
            column: np.array(labels, dtype=object)[position]
            for column, labels, position in zip(self.columns, self.labels, index, strict=True)
        }
        return pd.DataFrame({**labelled, "count": self.values.ravel(), "low": low.ravel(), "high": high.ravel()})

    def to_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "cells": self.to_frame().to_dict(orient="records")}

    def __repr__(self) -> str:
        frame = self.to_frame()
        shown = frame.head(30).to_string(index=False)
        more = f"\n... {len(frame) - 30} more cells" if len(frame) > 30 else ""
        return f"{shown}{more}\n{self._note(f'± {self.noise.error(0.95)} at 95% in each cell')}"


class CellGroups(Release):
    """Groups of neighbouring cells whose counts are nearly equal: a noisy choice among all ways to group them.

    Parameters
    ----------
    groups : array of int
        The number of each cell's group, with an axis for each column; groups are numbered along the line of cells.
    columns : tuple of str
    about : About
    """

    def __init__(self, groups: NDArray[np.int64], columns: tuple[str, ...], about: About) -> None:
        self._groups, self.columns, self.about = _frozen(groups), columns, about

    @property
    def groups(self) -> NDArray[np.int64]:
        """The number of each cell's group; they cannot be changed."""
        return self._groups

    @property
    def value(self) -> NDArray[np.int64]:
        return self.groups.copy()

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1

    def to_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "groups": self.groups.tolist()}

    def __repr__(self) -> str:
        cells = f"{self.groups.size} cells of {', '.join(self.columns)}"
        return f"{cells} in {self.count} groups ({self.about.words})"


class Choice(Release, str):
    """A noisy choice of an attribute, or of an attribute and a threshold: rows with value <= threshold go left."""

    def __new__(cls, attribute: str, *_: object) -> Self:
        return super().__new__(cls, attribute)

    def __init__(
        self,
        attribute: str,
        point: Fraction | None,
        mechanism: Chooser,
        candidates: int,
        grid: int,
        about: About,
        date: bool = False,
    ) -> None:
        self.point, self.mechanism, self.candidates, self.grid = point, mechanism, candidates, grid
        self.about, self._dates = about, date

    @property
    def value(self) -> str:
        return str(self)

    @property
    def threshold(self) -> int | float | str | None:
        """The threshold for people, a date as YYYY-MM-DD; `point` is exact."""
        if self.point is None:
            return None
        if self._dates:
            return iso_text(int(self.point))
        return int(self.point) if self.point.denominator == 1 else float(self.point)

    def __eq__(self, other: object) -> bool:
        return str(self) == other and (not isinstance(other, Choice) or self.point == other.point)

    def __hash__(self) -> int:
        return hash(str(self))

    def shortfall(self, confidence: float = 0.95) -> float:
        """Return how far the score of the choice is at most below the best, with this confidence."""
        return self.mechanism.shortfall(self.candidates, _share(confidence)) / self.grid

    def to_dict(self) -> dict[str, Any]:
        return {"attribute": str(self), "threshold": self.threshold, "shortfall": self.shortfall(0.95)}

    def __repr__(self) -> str:
        test = "" if self.point is None else f" <= {self.threshold if self._dates else decimal_text(self.point)}"
        return f"{str(self)!r}{test} {self._note(f'score within {self.shortfall(0.95):.1f} of the best at 95%')}"


class ResidualSums(Release):
    """Noisy sums of clipped residuals: [cells..., class], in multiples of 1 / RESIDUAL_GRID."""

    def __init__(
        self, own: NDArray[np.int64], others: NDArray[np.int64] | None, noise: ResidualNoise, about: About
    ) -> None:
        self._own, self._others = _frozen(own), None if others is None else _frozen(others)
        self.noise, self.about = noise, about

    @property
    def own(self) -> NDArray[np.int64]:
        """The sums over the rows of each class, of that class; they cannot be changed."""
        return self._own

    @property
    def others(self) -> NDArray[np.int64] | None:
        """The sums over the rows of other classes, where they are apart."""
        return self._others

    @property
    def value(self) -> NDArray[np.int64]:
        return self.own.copy()

    def to_dict(self) -> dict[str, Any]:
        return {"own": self.own.tolist(), "others": None if self.others is None else self.others.tolist()}

    def __repr__(self) -> str:
        return f"residual sums over {self.own.shape[:-1]} cells {self._note('noise scales in .noise')}"


@dataclass(frozen=True, eq=False)
class ResidualTable:
    """Noisy residual sums of one table, in multiples of 1 / RESIDUAL_GRID.

    Parameters
    ----------
    positive : array
        [cells..., number]; signed sums where signs are not apart. One number with two classes, else one a class.
    negative : array, optional
        The sums of what is negative, where signs are apart.
    noise : Noise
        Of every number.
    """

    positive: NDArray[np.int64]
    negative: NDArray[np.int64] | None
    noise: Noise

    @property
    def sums(self) -> NDArray[np.int64]:
        """The signed sums."""
        return self.positive if self.negative is None else self.positive - self.negative

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of every number that was drawn."""
        return self.noise.deviation


class ResidualTables(Release):
    """Noisy residual sums of several tables.

    Parameters
    ----------
    positive : array
        [cell, number] of all tables, one after the other; as `ResidualTable` has them.
    negative : array, optional
    shapes : sequence of tuples of int
        How many cells each table has along its columns.
    noises : sequence of Noise
        Of the numbers of each table.
    about : About
    """

    def __init__(
        self,
        positive: NDArray[np.int64],
        negative: NDArray[np.int64] | None,
        shapes: Sequence[tuple[int, ...]],
        noises: Sequence[Noise],
        about: About,
    ) -> None:
        self.positive, self.negative = _frozen(positive), None if negative is None else _frozen(negative)
        self.shapes, self.noises, self.about = shapes, noises, about

    @property
    def tables(self) -> tuple[ResidualTable, ...]:
        """The sums of each table."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        positive = np.split(self.positive, ends)
        negative = [None] * len(positive) if self.negative is None else np.split(self.negative, ends)
        tables = []
        for above, below, shape, noise in zip(positive, negative, self.shapes, self.noises, strict=True):
            whole = (*shape, -1)
            tables.append(ResidualTable(above.reshape(whole), None if below is None else below.reshape(whole), noise))
        return tuple(tables)

    @property
    def value(self) -> list[NDArray[np.int64]]:
        return [table.sums for table in self.tables]

    def to_dict(self) -> dict[str, Any]:
        return {"tables": [table.sums.tolist() for table in self.tables]}

    def __repr__(self) -> str:
        return f"residual sums of {len(self.tables)} tables {self._note('noise in .tables')}"


class TopTables(Release):
    """Tables that were chosen one after the other: `indices` among those that were offered, in the order drawn."""

    def __init__(self, indices: tuple[int, ...], names: tuple[str, ...], mechanism: Chooser, about: About) -> None:
        self._indices, self.names = indices, tuple(names[index] for index in indices)
        self.mechanism, self.candidates, self.about = mechanism, len(names), about

    @property
    def indices(self) -> tuple[int, ...]:
        """The places of the chosen tables among those that were offered."""
        return self._indices

    @property
    def value(self) -> list[int]:
        return list(self.indices)

    def to_dict(self) -> dict[str, Any]:
        return {"indices": list(self.indices), "tables": list(self.names)}

    def __repr__(self) -> str:
        return f"{'; '.join(self.names)} {self._note(f'the best {len(self.names)} of {self.candidates} tables')}"


class AccuracyMonitor(ABC):
    """What a monitor says about itself: public values, wherever its threshold is."""

    _accuracy: Fraction
    _dataset: str
    _about: About
    _mechanism: Chooser
    _checks: int

    @property
    def accuracy(self) -> Fraction:
        """The share of the rows that a model has to classify right."""
        return self._accuracy

    @property
    @abstractmethod
    def closed(self) -> bool:
        """True after the first yes, and after an answer that was interrupted."""

    @abstractmethod
    def reached(self, model: Any) -> bool:
        """Return whether a released model is accurate enough, noisily.

        Raises
        ------
        QuestionError
            The monitor is closed, or the model does not fit the table: it is not counted then.
        """

    @property
    def checks(self) -> int:
        """How many models were asked about so far."""
        return self._checks

    @property
    def epsilon(self) -> Fraction:
        """What was charged for it, once and for all."""
        return self._about.epsilon

    @property
    def private(self) -> bool:
        """False where its noise is seeded, or the rows are public."""
        return self._about.private

    def margin(self, confidence: float = 0.95) -> int:
        """Return how many rows a model that it accepts is at most below the accuracy, with this confidence.

        It grows slowly with the number of checks, and counts those up to now; before the
        first it is that of the first. The bounds of all checks hold together.
        """
        if not 0 < confidence < 1:
            raise QuestionError(f"confidence must lie between 0 and 1, not {confidence}.")
        return math.ceil(self._mechanism.shortfall(max(self._checks, 1), confidence) / self._accuracy.denominator)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return (
            f"<monitor of '{self._dataset}': accuracy {decimal_text(self.accuracy)}, {self.checks} checks, {state}, "
            f"{self._about.words}>"
        )


R = TypeVar("R")


class Releases(tuple[R, ...], Generic[R]):
    """Releases of all parts of a partition, in their order."""

    def array(self) -> NDArray[Any]:
        """Return the plain values as an array."""
        if self and isinstance(self[0], Histogram):  # answers to one question are of one kind
            return np.array([own.values for own in self if isinstance(own, Histogram)])
        return np.array([own.value if isinstance(own, DateQuantile) else own for own in self])

    def interval(self, confidence: float = 0.95) -> list[tuple[Any, Any]]:
        """Return the interval of each."""
        return [release.interval(confidence) for release in self if isinstance(release, Release)]

    def refine(self, epsilon: object) -> Releases[R]:
        """Refine every part, to one epsilon or each to its own: one charge, one query to the engine."""
        parts: dict[Refiner, list[int]] = {}
        for release in self:
            if not isinstance(release, Refinable):
                raise QuestionError(f"a {type(release).__name__} cannot be refined; counts, histograms and sums can.")
            parts.setdefault(release._way(), []).append(release._part)
        if len(parts) > 1:
            raise QuestionError("these are answers to several questions; refine those of each question by themselves.")
        return Releases(finer for refiner, own in parts.items() for finer in refiner.refined(own, epsilon))


_COMPLETE = True
