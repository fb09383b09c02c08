"""The rule that adds losses: sequence adds, a partition charges its dearest part.

A `Scope` is a set of rows that pays. Its losses add up. `divide` splits it into
disjoint parts, each a scope of its own; a record lies in one part only, so the
parent pays the maximum over the parts, not their sum. Parts can be divided again:
a whole tree charges its dearest path (adaptive parallel
composition: which part is split how, and for how much, may depend on releases).
Two divisions of one scope add, even by the same column.

Parts are disjoint as long as the rows stay what they are. Where they may have changed, a record
may lie in another part than before: from one version of the rows to the next all losses add,
and only what parts pay within a version shares a maximum.

>>> root = Scope()
>>> left, right = root.divide(2)
>>> charge([(left, Fraction(1, 10)), (right, Fraction(3, 10))], print)
3/10
>>> charge([(left, Fraction(2, 10))], print)   # within what `right` has already paid
0
>>> charge([(root, Fraction(1, 10))], print)   # the parent after its parts: adds
1/10
>>> charge([(left, Fraction(1, 10))], print, version=1)   # the rows may be others: what `right` paid is of no use
1/10
>>> root.spent
Fraction(1, 2)
"""

from __future__ import annotations

import math
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from privet.errors import BudgetExceeded, PrivacyError, QuestionError
from privet.kernel.column import decimal_text
from privet.kernel.limits import fraction_of, quoted

# Below this no answer is useful and noise would leave 64-bit integers; above it
# an answer is exact for all purposes and epsilon is no longer a promise.
SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 10**9), Fraction(10**6)

# Every loss is a multiple of 1 / GRAIN: decimals of 20 places and all fractions with
# denominators to 100 are, others are rounded down to one. So sums of any number of
# them stay short, and no choice of epsilons can make a ledger unreadable.
GRAIN = math.lcm(*range(1, 101)) * 10**20

T = TypeVar("T")


def as_epsilon(value: object, name: str = "epsilon") -> Fraction:
    """Return an exact epsilon from what people write: 0.1 means one tenth, not its nearest float.

    Parameters
    ----------
    value : object
        A number or its text, as `privet.kernel.limits.fraction_of` reads it.
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
    problem = f"{name} must be a number between {decimal_text(SMALLEST_EPSILON)} and {decimal_text(LARGEST_EPSILON)}"
    number = fraction_of(value)
    if number is None or not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise QuestionError(f"{problem}, not {quoted(value)}; write it as 0.1 or 1/10.")
    return Fraction(math.floor(number * GRAIN), GRAIN)


_NOTHING = Fraction(0)


class Scope:
    """A set of rows that pays for what is asked of it."""

    __slots__ = ("_cap", "_division", "_earlier", "_lock", "_process", "_root", "_version", "spent")

    def __init__(self, cap: Fraction | None = None, division: _Division | None = None) -> None:
        self.spent = _NOTHING
        self._earlier = _NOTHING  # of that, before the rows were of this version
        self._version = 0
        self._cap = cap
        self._division = division
        root = division.parent._root if division else None
        self._root: Scope = root or self
        if root is None:
            # The scopes live in this process. A forked copy would let both processes
            # spend under one maximum, so a copy may not charge at all.
            self._process = os.getpid()
            self._lock = threading.RLock()

    @property
    def is_root(self) -> bool:
        return self._division is None

    @property
    def shares(self) -> bool:
        """Whether what it pays may be shared with other parts: then it is for these very rows."""
        return self._division is not None and (self._division.parts > 1 or self._division.parent.shares)

    @property
    def lock(self) -> threading.RLock:
        """Whoever holds it charges alone."""
        return self._root._lock

    def divide(self, parts: int) -> list[Scope]:
        """Scopes for disjoint parts of these rows."""
        division = _Division(self, parts)
        return [Scope(division=division) for _ in range(parts)]

    def allot(self, cap: Fraction) -> Scope:
        """A scope for the same rows that may spend at most `cap`."""
        return Scope(cap=cap, division=_Division(self, parts=1))

    def headroom(self, root_remaining: Fraction) -> Fraction:
        """The largest loss that could be charged here now."""
        division, version = self._division, self._root._version
        if division is None:
            return root_remaining
        # What a sibling has already made the parent pay, for the rows as they are, is free here.
        dearest = division.dearest if division.version == version else _NOTHING
        paid = self.spent - self._earlier if self._version == version else _NOTHING
        above = dearest - paid + division.parent.headroom(root_remaining)
        return max(Fraction(0), above if self._cap is None else min(self._cap - self.spent, above))

    def check_process(self) -> None:
        if os.getpid() != self._root._process:
            raise PrivacyError(
                "this table was opened in another process, whose budget a copy may not spend; open it again in this "
                "one."
            )

    def _renew(self) -> None:
        """Where the rows are of another version, nothing was paid for them yet; an interrupt leaves more to pay."""
        version = self._root._version
        if self._version != version:
            self._earlier = self.spent
            self._version = version
        if self._division is not None and self._division.version != version:
            self._division.dearest = _NOTHING
            self._division.version = version


class _Step:
    """What a charge will have changed once it is written down."""

    def __init__(self) -> None:
        self.spent: dict[Scope, Fraction] = {}
        self.dearest: dict[_Division, Fraction] = {}
        # sums of two fractions by their identities; the fractions are kept, so that no other takes the identity of one
        self._sums: dict[tuple[int, int], tuple[Fraction, Fraction, Fraction]] = {}

    def add(self, scope: Scope, loss: Fraction) -> Fraction:
        """Add a loss to a scope and all its ancestors; the part of it that reaches the root."""
        scope._renew()
        before = self.spent.get(scope, scope.spent)
        # thousands of siblings have spent the same and lose the same: one addition serves them all
        known = self._sums.get((id(before), id(loss)))
        after = before + loss if known is None else known[2]
        if known is None:
            self._sums[id(before), id(loss)] = before, loss, after
        if scope._cap is not None and after > scope._cap:
            raise _CapReached(scope._cap - before, renewed=scope._earlier > 0)
        self.spent[scope] = after
        division = scope._division
        if division is None:
            return loss
        dearest = self.dearest.get(division, division.dearest)
        paid = after if scope._earlier is _NOTHING else after - scope._earlier
        if paid is dearest or paid <= dearest:
            return _NOTHING
        self.dearest[division] = paid
        return self.add(division.parent, paid - dearest)

    def apply(self) -> None:
        """First what was spent, then what others may share: an interrupt between leaves more to pay, not less."""
        for scope, spent in self.spent.items():
            scope.spent = spent
        for division, dearest in self.dearest.items():
            division.dearest = dearest


class _Division:
    """Disjoint parts of one scope."""

    __slots__ = ("dearest", "parent", "parts", "version")

    def __init__(self, parent: Scope, parts: int) -> None:
        self.parent = parent
        self.parts = parts
        self.dearest = _NOTHING
        self.version = 0


class Refused(Exception):
    """Base of what `commit` raises when it is certain that nothing new was written."""


class _CapReached(Exception):
    def __init__(self, left: Fraction, renewed: bool) -> None:
        self.left, self.renewed = left, renewed


def alone(charges: Sequence[tuple[Scope, Fraction]]) -> Fraction:
    """What would reach the root if nothing had been paid before.

    >>> left, right = Scope().divide(2)
    >>> charge([(right, Fraction(1))], print)
    1
    >>> alone([(left, Fraction(1))])
    Fraction(1, 1)
    """
    spent: dict[Scope, Fraction] = defaultdict(Fraction)
    dearest: dict[_Division, Fraction] = defaultdict(Fraction)

    def add(scope: Scope, loss: Fraction) -> Fraction:
        spent[scope] += loss
        division = scope._division
        if division is None:
            return loss
        more = spent[scope] - dearest[division]
        if more <= 0:
            return _NOTHING
        dearest[division] = spent[scope]
        return add(division.parent, more)

    return sum((add(scope, loss) for scope, loss in charges), _NOTHING)


def charge(charges: Sequence[tuple[Scope, Fraction]], commit: Callable[[Fraction], T], version: int = 0) -> T:
    """Charge several scopes of one table as one step, for answers about a version of its rows.

    `commit` receives the loss that reaches the table's root and writes it down; if
    a cap is reached or it refuses, no scope has changed. If anything else stops it, an
    interrupt say, the charge may or may not be on disk. Then the charged scopes keep
    the loss, while no sibling and no ancestor counts it as paid: at worst it is paid
    twice.
    """
    root = charges[0][0]._root
    charges[0][0].check_process()
    with root._lock:
        root._version = version
        step, capped = _Step(), None
        try:
            reached = [step.add(scope, loss) for scope, loss in charges]
        except _CapReached as error:
            capped = error
        if capped is None:
            before = {scope: scope.spent for scope, _ in charges}
            try:
                for scope in before:
                    scope.spent = step.spent[scope]
                written = commit(sum((loss for loss in reached if loss), _NOTHING))
            except (Refused, PrivacyError):
                for scope, spent in before.items():
                    scope.spent = spent
                raise
            step.apply()
            return written
    asked = max(loss for _, loss in charges)
    what = f"the allotment of this part of the table has {decimal_text(capped.left)} left"
    if capped.renewed:
        what = f"the rows may have changed since the connection was lost, parts share nothing paid before, and {what}"
    mend = "Begin again" if capped.renewed else "Lower epsilon, or allot more"
    raise BudgetExceeded(
        f"cannot charge epsilon={decimal_text(asked)}: {what}. {mend}.",
        requested=asked,
        remaining=capped.left,
    )
