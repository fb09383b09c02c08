"""What losses are counted in, and the rule that adds them: sequence adds, a partition charges its dearest part.

A *unit*, epsilon or rho with a delta, says what an amount that somebody writes is worth, what a mechanism loses, what
a person with several records loses, and which mechanisms questions use. All else is the same for both.

A *scope* is a set of rows that pays. Its losses add up. `divide` splits it into disjoint parts,
each a scope of its own; a record lies in one part only, so the scope pays the maximum over its
parts, not their sum. Parts can be divided again: a whole tree charges its dearest path (adaptive
parallel composition: which part is split how, and for how much, may depend on releases). Two
divisions of one scope add, even by the same column.

Parts are disjoint as long as the rows stay what they are. Where they may have changed, a record
may lie in another part than before: from one version of the rows to the next all losses add,
and only what parts pay within a version shares a maximum.

>>> root = Scopes()
>>> left, right = parts = root.divide(2)
>>> charge(parts, PerPart.of([Fraction(1, 10), Fraction(3, 10)]), print)
3/10
>>> charge(left, Fraction(2, 10), print)   # within what `right` has already paid
0
>>> charge(root, Fraction(1, 10), print)   # the parent after its parts: adds
1/10
>>> charge(left, Fraction(1, 10), print, version=1)   # the rows may be others: what `right` paid is of no use
1/10
>>> root.spent
Fraction(1, 2)
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import add, sub
from typing import ClassVar, TypeVar

import numpy as np

from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.kernel.mechanisms import (
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    ResidualGaussian,
    ResidualLaplace,
    SumAndCount,
)
from privet.kernel.public_values import GRAIN, PerPart, Positions, fraction_of, numbered
from privet.kernel.selections import (
    AboveThreshold,
    CheapestIntervals,
    Exponential,
    ExponentialOverRanges,
    IndexSelection,
    TopK,
    selection,
)
from privet.kernel.zcdp import SMALLEST_RHO, Rho, epsilon_of, rho_of
from privet.release import About
from privet.text import decimal_text, quoted, short_text

# Below this no answer is useful and noise would leave 64-bit integers; above it
# an answer is exact for all purposes and epsilon is no longer a promise.
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**9), Fraction(10**6)

_NOTHING = Fraction(0)

T = TypeVar("T")
Losses = PerPart[Fraction]


def as_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """Return an exact epsilon from what people write: 0.1 means one tenth, not its nearest float.

    Parameters
    ----------
    value : object
        A number or its text, as `limits.fraction_of` reads it.
    name : str, default "epsilon"
        What the error calls it.

    Returns
    -------
    Fraction
        Rounded down to a multiple of 1 / `GRAIN`.

    Raises
    ------
    QuestionError
        It is no number between `SMALLEST_EPSILON` and `LARGEST_EPSILON`.

    >>> as_epsilon(0.1), as_epsilon("1/3"), as_epsilon(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(2, 1))
    """
    number = fraction_of(value)
    if number is None or not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        bounds = f"{decimal_text(SMALLEST_EPSILON)} and {decimal_text(LARGEST_EPSILON)}"
        raise QuestionError(f"{name} must be a number between {bounds}, not {quoted(value)}; write it as 0.1 or 1/10.")
    return Fraction(math.floor(number * GRAIN), GRAIN)


def as_share(value: object, name: str) -> Fraction:
    """Return a number between 0 and 1 as a fraction with a small denominator."""
    number = fraction_of(value)
    exact = Fraction(0) if number is None else number.limit_denominator(10**6)
    if not 0 < exact < 1:
        raise QuestionError(f"{name} lies between 0 and 1, both left out, not at {quoted(value)}; write 0.8 or 4/5.")
    return exact


# -- units --------------------------------------------------------------------------------------

IntegerNoise = IntegerLaplace | IntegerGaussian
ResidualNoise = ResidualLaplace | ResidualGaussian

_DIGITS = 12  # of an epsilon that is a square root


@dataclass(frozen=True)
class Unit:
    """What a loss is counted in: epsilon, that is pure differential privacy, unless `Zcdp` says otherwise. Losses add.

    The methods that make mechanisms take the loss of one record.
    """

    name: ClassVar[str] = "epsilon"
    delta: Fraction | None = None
    selection: ClassVar[str] = "permute-and-flip"  # the one with the least error for what it loses
    smallest: ClassVar[Fraction] = SMALLEST_EPSILON  # that an answer, or a refinement of one, may cost
    power: ClassVar[int] = 1  # a person with k records loses k to this power times what one record loses

    def about(self, words: str, loss: Fraction, private: bool, entry: int | None) -> About:
        """Return what a release says about itself."""
        return About(words, loss, private, entry, None if self.delta is None else self)

    def of_person(self, loss: Fraction, records: int) -> Fraction:
        """Return what a person with so many records loses, where each record loses `loss`."""
        factor: Fraction = Fraction(records) ** self.power
        return loss * factor

    def of_record(self, loss: Fraction, records: int) -> Fraction:
        """Return what each record may lose so that a person with so many loses `loss`."""
        factor: Fraction = Fraction(records) ** self.power
        return loss / factor

    def amounts(self, value: object, parts: int, exchange: Fraction | None = None) -> PerPart[Fraction]:
        """Return the loss of each part from what people write: one amount for all, or one for each.

        Raises
        ------
        QuestionError
            One of them is no amount, or there are not as many as parts.
        """
        if not isinstance(value, list | tuple | np.ndarray | PerPart):
            return PerPart.same(self.amount(value, exchange=exchange), parts)
        if len(value) != parts:
            raise QuestionError(f"{len(value)} epsilons were given for {parts} parts; give one, or one for each.")
        try:
            written = PerPart.of((type(epsilon), epsilon) for epsilon in value)  # by type: True is no 1
        except TypeError:  # what has no hash is no number, and is refused below
            written = PerPart.of((type(epsilon), quoted(epsilon)) for epsilon in value)
        return written.map(lambda typed: self.amount(typed[1], exchange=exchange))

    def amount(self, value: object, name: str = "epsilon", exchange: Fraction | None = None) -> Fraction:
        """Return what asking for an amount charges a person.

        Parameters
        ----------
        value : number, str or Rho
            An epsilon or, where losses are counted in rho, a rho.
        name : str, default "epsilon"
            What the error calls it.
        exchange : Fraction, optional
            What an epsilon of 1 costs within a fit, where losses are counted in rho: see `Session.exchange`.

        Raises
        ------
        QuestionError
            It is no amount of this unit.
        """
        if isinstance(value, Rho):
            raise QuestionError(
                "this data set is counted in epsilon, which is asked for as a number such as 0.1; a rho is for data "
                "sets that are opened with a delta."
            )
        return as_epsilon(value, name)

    def loss(self, mechanism: Mechanism) -> Fraction:
        """Return what a record loses with a mechanism; a PrivacyError where that has no bound."""
        return mechanism.loss

    def epsilon(self, loss: Fraction) -> Fraction:
        """Return what a loss is alone as epsilon, with the delta of the unit; rounded up."""
        return loss

    def buys(self, loss: Fraction) -> Fraction:
        """Return the largest epsilon that one answer can be asked for where so much is left; rounded down."""
        return loss

    def text(self, loss: Fraction) -> str:
        """Return a loss in words."""
        return decimal_text(loss)

    def noise(self, loss: Fraction, sensitivity: int = 1, squared: int | None = None) -> IntegerNoise:
        """Return noise for integers that one record moves by `sensitivity`, and by `squared` in the squared L2 norm.

        By default a record moves one of them alone, and `squared` is the square of the sensitivity.
        """
        return IntegerLaplace(loss, sensitivity)

    def residual_noise(self, loss: Fraction, caps: tuple[int, ...]) -> ResidualNoise:
        """Return noise for sums of clipped residuals."""
        return ResidualLaplace(loss, caps)

    # What draws alike in every unit is made for an epsilon, which is the largest that `loss` pays for.

    def pure(self, loss: Fraction) -> Fraction:
        """Return the epsilon of a mechanism of which nothing but its epsilon is known."""
        return loss

    def exponential(self, loss: Fraction) -> Fraction:
        """Return the epsilon of an exponential mechanism."""
        return loss

    def choice(self, loss: Fraction, sensitivity: int, monotone: bool, name: str | None = None) -> IndexSelection:
        """Return a selection among candidates; the one with the least error unless it is named."""
        kind = selection(self.selection if name is None else name)
        epsilon = self.exponential(loss) if kind is Exponential else self.pure(loss)
        return kind(epsilon, sensitivity, monotone)

    def ranges(self, loss: Fraction, sensitivity: int, monotone: bool) -> ExponentialOverRanges:
        """Return a selection among the points of a line."""
        return ExponentialOverRanges(self.exponential(loss), sensitivity, monotone)

    def top(self, loss: Fraction, sensitivity: int, monotone: bool, k: int) -> TopK:
        """Return a selection of the best k candidates."""
        return TopK(self.exponential(loss / k), sensitivity, monotone, k)

    def intervals(self, loss: Fraction, sensitivity: int, cells: int, price: int) -> CheapestIntervals:
        """Return a selection of the cheapest division of a line of cells into intervals."""
        return CheapestIntervals(self.pure(loss), sensitivity, cells, price)

    def watch(self, loss: Fraction, sensitivity: int, spread: int) -> AboveThreshold:
        """Return what tells the first score that reaches a threshold."""
        return AboveThreshold(self.pure(loss), sensitivity, spread)

    def sum_and_count(self, loss: Fraction, reach: int) -> SumAndCount:
        """Return noise for a sum, which a record moves by `reach`, and a count: half of the loss for each."""
        return SumAndCount(self.noise(loss / 2, reach), self.noise(loss / 2))


@dataclass(frozen=True)
class Zcdp(Unit):
    """Zero-concentrated differential privacy (Bun and Steinke 2016): losses are rhos, and add.

    An epsilon stands for the rho that alone gives (epsilon, delta). A person with k records loses k^2 times what one
    loses (proposition 1.9 there). A mechanism that loses epsilon loses epsilon^2 / 2, the exponential mechanism
    epsilon^2 / 8; their epsilons are square roots, rounded down, so that they lose no more than what was asked for.
    """

    name = "rho"
    selection = "exponential"
    smallest = SMALLEST_RHO
    power = 2

    def amount(self, value: object, name: str = "epsilon", exchange: Fraction | None = None) -> Fraction:
        if isinstance(value, Rho):
            if value.value < SMALLEST_RHO:
                raise QuestionError("rho must be at least 1e-21 in a question; write it as 0.01 or 1/100.")
            return value.value
        epsilon = as_epsilon(value, name)
        assert self.delta is not None
        return rho_of(epsilon, self.delta) if exchange is None else Rho(epsilon * exchange).value

    def loss(self, mechanism: Mechanism) -> Fraction:
        return mechanism.rho

    def epsilon(self, loss: Fraction) -> Fraction:
        assert self.delta is not None
        return epsilon_of(loss, self.delta)

    def buys(self, loss: Fraction) -> Fraction:
        assert self.delta is not None
        if loss < rho_of(Fraction(1, 10**9), self.delta):
            return Fraction(0)
        epsilon = epsilon_of(loss, self.delta)
        while rho_of(epsilon, self.delta) > loss:  # it was rounded up
            epsilon = root_below((epsilon * (1 - Fraction(1, 10**6))) ** 2, digits=6)
        return epsilon

    def text(self, loss: Fraction) -> str:
        return f"rho {short_text(loss)}"

    def noise(self, loss: Fraction, sensitivity: int = 1, squared: int | None = None) -> IntegerGaussian:
        return IntegerGaussian(loss, sensitivity**2 if squared is None else squared)

    def residual_noise(self, loss: Fraction, caps: tuple[int, ...]) -> ResidualGaussian:
        return ResidualGaussian(loss, caps)

    def pure(self, loss: Fraction) -> Fraction:
        return root_below(2 * loss)

    def exponential(self, loss: Fraction) -> Fraction:
        return root_below(8 * loss)


PURE = Unit()


def unit_with(delta: Fraction | None) -> Unit:
    """Return what a data set with this delta is counted in."""
    return PURE if delta is None else Zcdp(delta)


def root_below(square: Fraction, digits: int = _DIGITS) -> Fraction:
    """Return the square root, rounded down to a decimal of about so many digits.

    >>> root_below(Fraction(2)), root_below(Fraction(1, 100))
    (Fraction(1414213562373, 1000000000000), Fraction(1, 10))
    """
    places = digits - (len(str(square.numerator)) - len(str(square.denominator))) // 2
    scaled = square * Fraction(10) ** (2 * places)
    return math.isqrt(scaled.numerator // scaled.denominator) / Fraction(10) ** places


# -- scopes -------------------------------------------------------------------------------------


class _Level:
    """The scopes that were made in one step, with what each has paid; the root is a level of one.

    A level consists of divisions, each of one scope of the level above. A scope's `spent` is all that it
    has paid. `earlier` is the part of it that was paid for earlier versions of the rows. A division's
    `dearest` is the most that one of its scopes has paid for the version of now.
    """

    def __init__(
        self, above: _Level | None, divided: Positions, division: Positions, cap: Fraction | None = None
    ) -> None:
        self.above = above
        self.divided = divided  # of each division, the scope above that it divides
        self.division = division  # of each scope, its division
        self.cap = cap
        self.spent = self.earlier = PerPart.same(_NOTHING, len(division))
        self.dearest = PerPart.same(_NOTHING, len(divided))
        self.version = 0
        self.root: _Level = self if above is None else above.root
        if above is None:
            # The scopes live in this process. A forked copy would let both processes
            # spend under one maximum, so a copy may not charge at all.
            self.process = os.getpid()
            self.lock = threading.RLock()

    def renew(self) -> None:
        """Begin a new version of the rows, for which nothing was paid yet; an interrupt leaves more to pay."""
        if self.version != self.root.version:
            self.earlier = self.spent
            self.dearest = PerPart.same(_NOTHING, len(self.divided))
            self.version = self.root.version

    def paid(self, scopes: Positions, spent: Losses) -> Losses:
        """Return what of `spent` was paid within the version."""
        return spent.combine(sub, self.earlier.take(scopes))

    def headroom(self, scopes: Positions, root_remaining: Fraction) -> Losses:
        """Return the largest loss that could be charged to each of these scopes now."""
        if self.above is None:
            return PerPart.same(root_remaining, len(scopes))
        divisions = self.division[scopes]
        room = self.above.headroom(self.divided[divisions], root_remaining)
        spent = self.spent.take(scopes)
        if self.version == self.root.version:
            # What a sibling has already made the parent pay, for the rows as they are, is free here.
            free = self.dearest.take(divisions).combine(sub, self.paid(scopes, spent))
            room = room.combine(add, free)
        if self.cap is not None:
            room = room.combine(min, spent.map(self.cap.__sub__))
        return room.map(lambda loss: max(_NOTHING, loss))

    def shares(self, scopes: Positions) -> bool:
        """Return whether any of these may share what it pays with other parts."""
        if self.above is None:
            return False
        divisions = self.division[scopes]
        several = np.bincount(self.division, minlength=len(self.divided))[divisions] > 1
        return bool(several.any()) or self.above.shares(self.divided[divisions])


class Scopes:
    """Sets of rows that pay for what is asked of them: a table, or all parts of a partition.

    Parameters
    ----------
    cap : Fraction, optional
        The most that may be spent in all. Without one, whoever commits a charge says how much that is.
    """

    __slots__ = ("_at", "_level")

    def __init__(self, cap: Fraction | None = None) -> None:
        none = np.zeros(0, dtype=np.intp)
        self._level = _Level(None, none, np.zeros(1, dtype=np.intp), cap)
        self._at = np.zeros(1, dtype=np.intp)

    @classmethod
    def _of(cls, level: _Level, at: Positions) -> Scopes:
        scopes = cls.__new__(cls)
        scopes._level, scopes._at = level, at
        return scopes

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[Scopes]:
        return (self.take([part]) for part in range(len(self)))

    def take(self, parts: Sequence[int] | Positions) -> Scopes:
        """Return some of them."""
        return Scopes._of(self._level, self._at[np.asarray(parts, dtype=np.intp)])

    def divide(self, children: int | Positions) -> Scopes:
        """Return scopes for disjoint parts: so many of each of these, or of each its own number."""
        counts = np.broadcast_to(np.asarray(children, dtype=np.intp), len(self))
        open_parts = np.flatnonzero(counts)
        division = np.repeat(np.arange(len(open_parts), dtype=np.intp), counts[open_parts])
        level = _Level(self._level, self._at[open_parts], division)
        return Scopes._of(level, np.arange(len(division), dtype=np.intp))

    def allot(self, cap: Fraction) -> Scopes:
        """Return a scope for the same rows that may spend at most `cap`."""
        if len(self) != 1:
            raise QuestionError("an allotment is for one set of rows; allot something to each part by itself.")
        one = np.zeros(1, dtype=np.intp)
        return Scopes._of(_Level(self._level, self._at, one, cap), one)

    @property
    def is_root(self) -> bool:
        return self._level.above is None

    @property
    def spent(self) -> Fraction:
        """What a single scope has paid."""
        (amount,) = self._level.spent.take(self._at)
        return amount

    @property
    def shares(self) -> bool:
        """Whether what they pay may be shared with other parts: then it is for these very rows."""
        return self._level.shares(self._at)

    @property
    def lock(self) -> threading.RLock:
        """Whoever holds it charges alone."""
        return self._level.root.lock

    def headroom(self, root_remaining: Fraction) -> PerPart[Fraction]:
        """Return the largest loss that could be charged to each now, with so much left for the table."""
        return self._level.headroom(self._at, root_remaining)

    def check_process(self) -> None:
        """Refuse a copy of the table in a forked process.

        Raises
        ------
        PrivacyError
        """
        if os.getpid() != self._level.root.process:
            raise PrivacyError(
                "this table was opened in another process, whose budget a copy may not spend; open it again in this "
                "one."
            )


@dataclass
class _Step:
    """What a charge will have changed once it is written down."""

    spent: dict[_Level, Losses]
    dearest: dict[_Level, Losses]

    def add(self, level: _Level, scopes: Positions, losses: Losses) -> Fraction:
        """Add losses to different scopes of a level and to all above; return what reaches the root."""
        level.renew()
        before = level.spent
        after = before.take(scopes).combine(add, losses)
        if level.cap is not None and after[0] > level.cap:  # a level with a cap has one scope
            raise _CapReached(level.cap - before[0], renewed=level.earlier[0] > 0)
        self.spent[level] = before.replaced(scopes, after)
        if level.above is None:
            return sum(losses, _NOTHING)
        divisions, own = numbered(level.division[scopes], len(level.divided))
        paid = level.paid(scopes, after).largest(own, len(divisions))
        more = paid.combine(sub, level.dearest.take(divisions))
        rising = np.flatnonzero(np.array([loss > 0 for loss in more.values])[more.which])
        if not len(rising):
            return _NOTHING
        self.dearest[level] = level.dearest.replaced(divisions[rising], paid.take(rising))
        return self.add(level.above, level.divided[divisions[rising]], more.take(rising))

    def apply(self) -> None:
        """Write what was spent, then what others may share: an interrupt between leaves more to pay, not less."""
        for level, spent in self.spent.items():
            level.spent = spent
        for level, dearest in self.dearest.items():
            level.dearest = dearest


class Refused(Exception):
    """Base of what `commit` raises when it is certain that nothing new was written."""


class _CapReached(Exception):
    def __init__(self, left: Fraction, renewed: bool) -> None:
        self.left, self.renewed = left, renewed


def _losses(scopes: Scopes, losses: Losses | Fraction) -> Losses:
    return PerPart.same(losses, len(scopes)) if isinstance(losses, Fraction) else losses


def alone(scopes: Scopes, losses: Losses | Fraction) -> Fraction:
    """Return what would reach the root if nothing had been paid before.

    >>> left, right = Scopes().divide(2)
    >>> charge(right, Fraction(1), print)
    1
    >>> alone(left, Fraction(1))
    Fraction(1, 1)
    """
    return _Step({}, {}).add(_unpaid(scopes._level), scopes._at, _losses(scopes, losses))


def _unpaid(level: _Level) -> _Level:
    above = None if level.above is None else _unpaid(level.above)
    return _Level(above, level.divided, level.division)


def quote(scopes: Scopes, losses: Losses | Fraction, version: int = 0, unit: str = "epsilon") -> Fraction:
    """Return what a charge would make the root pay now; no scope changes. Parameters as for `charge`.

    >>> left, right = Scopes().divide(2)
    >>> charge(right, Fraction(1), print)
    1
    >>> quote(left, Fraction(3)), quote(left, Fraction(1))
    (Fraction(2, 1), Fraction(0, 1))
    """
    scopes.check_process()
    with scopes.lock:
        scopes._level.root.version = version
        try:
            return _Step({}, {}).add(scopes._level, scopes._at, _losses(scopes, losses))
        except _CapReached as error:
            capped = error
    raise _beyond_allotment(_losses(scopes, losses), capped, unit)


def charge(
    scopes: Scopes,
    losses: Losses | Fraction,
    commit: Callable[[Fraction], T],
    version: int = 0,
    unit: str = "epsilon",
) -> T:
    """Charge different scopes of a table as one step, for answers about a version of its rows.

    `commit` receives the loss that reaches the table's root and writes it down; if
    a cap is reached or it refuses, no scope has changed. If anything else stops it, an
    interrupt say, the charge may or may not be on disk. Then the charged scopes keep
    the loss, while no sibling and no ancestor counts it as paid: at worst it is paid
    twice.

    Parameters
    ----------
    scopes : Scopes
    losses : PerPart of Fraction, or Fraction
        One for each of them, or one for all.
    commit : callable
    version : int, default 0
        Of the rows.
    unit : str, default "epsilon"
        What an error calls a loss.

    Returns
    -------
    What `commit` returns.

    Raises
    ------
    BudgetExceeded
        An allotment is used up.
    """
    scopes.check_process()
    level, own = scopes._level, _losses(scopes, losses)
    if any(loss < 0 for loss in own.values):
        raise PrivacyError("a loss below 0 would give back what was spent.")
    with scopes.lock:
        level.root.version = version
        step, capped = _Step({}, {}), None
        try:
            reached = step.add(level, scopes._at, own)
        except _CapReached as error:
            capped = error
        if capped is None:
            before = level.spent
            try:
                level.spent = step.spent[level]
                written = commit(reached)
            except (Refused, PrivacyError):
                level.spent = before
                raise
            step.apply()
            return written
    raise _beyond_allotment(own, capped, unit)


def _beyond_allotment(losses: Losses, capped: _CapReached, unit: str) -> BudgetExceeded:
    asked = max(losses.compact().values)
    what = f"the allotment of this part of the table has {decimal_text(capped.left)} left"
    if capped.renewed:
        what = f"the rows may have changed since the connection was lost, parts share nothing paid before, and {what}"
    mend = "Begin again" if capped.renewed else "Lower epsilon, or allot more"
    return BudgetExceeded(
        f"cannot charge {unit}={decimal_text(asked)}: {what}. {mend}.", requested=asked, remaining=capped.left
    )
