"""Sittings: what a server remembers of an analyst at work on a table.

A sitting is one opening of one table by one analyst in one process: scopes, reservations, monitors and chains of
refinement. It begins with the first request that names it, and ends when it is closed, when nobody has used it for a
while, or with the process. What reached the ledger stands; parts of the next sitting share nothing that was paid in
this one.

Each step to a set of rows has an id that the client made. The same id with the same content is the same scope, as two
uses of one Python object are; with other content it is refused. A scope that its sitting no longer has may be sent
again in full: it is a new one then, which has paid nothing, so a charge can only become dearer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from privet.conditions import step_names
from privet.errors import PrivetError, QuestionError
from privet.kernel import (
    Allot,
    Answers,
    Chain,
    ChainLevel,
    Domain,
    Keep,
    Monitor,
    PerPart,
    Question,
    Rho,
    RowSets,
    Session,
    Under,
    digest,
)
from privet.question_json import step_from_json

_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
MOST_STEPS = 20_000  # of a sitting
MOST_PARTS = 2**22  # of all steps of an analyst's sittings together; each takes some 50 bytes
MOST_HANDLES = 1000  # reservations that are open, monitors, and answers that can be refined
LONGEST_CHAIN = 400  # steps of one request: 200 conditions and partitions, each with an allotment


class UnknownRows(PrivetError):
    """A request names a step by its id alone, and this sitting does not have it: send the whole chain."""


def check_id(value: object, what: str) -> str:
    """Return an id that a client has made; QuestionError if it is none."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise QuestionError(f"the id of {what} is 8 to 64 letters, digits, hyphens and underscores.")
    return value


class Scope(NamedTuple):
    """Rows that a request is about, and the session that answers about them in their cells."""

    session: Session
    sets: RowSets


class _Step(NamedTuple):
    parent: str
    content: str  # its hash
    scope: Scope


class _Refinable(NamedTuple):
    """An answer that can be refined: all but its values, which the ledger keeps."""

    scope: Scope
    question: Question[Any]
    losses: PerPart[Fraction]


class _Check(NamedTuple):
    number: int
    model: str  # its hash
    reached: bool


@dataclass
class _Watched:
    """A monitor, and the last check that was asked of it: asked again, it is answered as before."""

    monitor: Monitor
    content: str  # the hash of what it was begun with
    last: _Check | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class Sitting:
    """One opening of a table by an analyst. Many threads may use it.

    Parameters
    ----------
    session : Session
        Made by `Session.sitting`: nobody else has it.
    others : callable, optional
        Returns how many parts the other sittings of its analyst have.
    """

    def __init__(self, session: Session, others: Callable[[], int] = lambda: 0) -> None:
        self.session, self._others = session, others
        self._whole = Scope(session, session.whole_table())
        self._steps: dict[str, _Step] = {}
        self.parts = 0  # of all steps, and the characters of the domains that some bring
        self._holds: dict[str, tuple[ExitStack, int, str]] = {}
        self._monitors: dict[str, _Watched] = {}
        self._refinable: dict[int, _Refinable] = {}
        self._chains: dict[int, Chain] = {}
        self._lock = threading.RLock()
        self.closed = False

    # -- rows -------------------------------------------------------------------------------

    def scope(self, chain: Sequence[Mapping[str, Any]], hold: str | None = None) -> Scope:
        """Return the rows that a chain of steps leads to, with the reservation that pays.

        Parameters
        ----------
        chain : sequence of mappings
            Each with an id and a step; the first may be an id alone.
        hold : str, optional
            The id of an open reservation.

        Raises
        ------
        UnknownRows
            The first step is an id that this sitting does not have.
        QuestionError
            A step is none, or its id stands for another one.
        """
        if len(chain) > LONGEST_CHAIN:
            raise QuestionError(f"a chain of rows has at most {LONGEST_CHAIN} steps.")
        scope, parent = self._whole, ""
        with self._lock:
            for number, item in enumerate(chain):
                identity = check_id(item.get("id"), "a step")
                content = {name: value for name, value in item.items() if name != "id"}
                known = self._steps.get(identity)
                if not content:
                    if number:
                        raise QuestionError("only the first step of a chain may be an id alone.")
                    if known is None:
                        raise UnknownRows("this sitting does not know these rows; send all steps that lead to them.")
                    scope, parent = known.scope, identity
                    continue
                text = digest(content)
                if known is None:
                    step = _Step(parent, text, _after(scope, content))
                    known = self._new_step(identity, step, len(content.get("cells", "")))
                elif (known.parent, known.content) != (parent, text):
                    raise QuestionError(f"the id '{identity}' stands for other rows; make a new one for each step.")
                scope, parent = known.scope, identity
            if hold is not None:
                scope = scope._replace(session=replace(scope.session, hold=self._hold(hold)))
        return scope

    def _new_step(self, identity: str, step: _Step, domain: int) -> _Step:
        """Remember a step that brings a domain of so many characters."""
        parts = len(step.scope.sets) + domain
        if len(self._steps) >= MOST_STEPS or self._others() + self.parts + parts > MOST_PARTS:
            raise QuestionError(
                f"a sitting has at most {MOST_STEPS} steps, and all of yours together at most {MOST_PARTS} parts; "
                "close tables that you no longer use, or this one and connect again."
            )
        self._steps[identity] = step
        self.parts += parts
        return step

    # -- reservations -----------------------------------------------------------------------

    def hold(self, identity: str, scope: Scope, epsilon: Fraction) -> None:
        """Reserve budget for some rows until `end_hold`; the same id with the same content does nothing more."""
        content = digest([scope.sets.rows.fingerprint, str(epsilon), scope.session.hold])
        with self._lock:
            known = self._holds.get(check_id(identity, "a reservation"))
            if known is not None:
                if known[2] != content:
                    raise QuestionError("the id of this reservation stands for another one; make a new id for each.")
                return
            self._refuse_closed(len(self._holds))
            stack = ExitStack()
            held = stack.enter_context(scope.session.reserved(scope.sets, epsilon))
            assert held.hold is not None
            self._holds[identity] = stack, held.hold, content

    def end_hold(self, identity: str) -> None:
        """End a reservation; ending it again does nothing."""
        with self._lock:
            known = self._holds.pop(identity, None)
        if known is not None:
            known[0].close()

    def _hold(self, identity: str) -> int:
        known = self._holds.get(identity)
        if known is None:
            raise QuestionError("this sitting has no such reservation, or it has ended; reserve again.")
        return known[1]

    # -- answers that go on -----------------------------------------------------------------

    def keep_refinable(self, scope: Scope, question: Question[Any], answers: Answers) -> None:
        """Remember an answer that can be refined; the oldest is forgotten where there are too many."""
        if not question.refinable or answers.entry is None:
            return
        with self._lock:
            self._refinable[answers.entry] = _Refinable(scope, question, answers.losses)
            while len(self._refinable) > MOST_HANDLES:
                oldest = next(iter(self._refinable))
                del self._refinable[oldest]
                self._chains.pop(oldest, None)

    def refined(self, entry: int, parts: Sequence[int], epsilons: PerPart[Fraction]) -> list[ChainLevel]:
        """Refine some parts of an answer to at least these epsilons."""
        with self._lock:
            known = self._refinable.get(entry)
            if known is None:
                raise QuestionError(
                    f"ledger entry {entry} has no answer of this sitting that can be refined; ask a new question at "
                    "the epsilon wanted."
                )
            if len(set(parts)) < len(parts) or not all(0 <= part < len(known.scope.sets) for part in parts):
                raise QuestionError(f"refine different parts by their numbers, 0 to {len(known.scope.sets) - 1}.")
            if entry not in self._chains:
                self._chains[entry] = _chain(known, entry)
            chain = self._chains[entry]
        return chain.levels(parts, epsilons)

    def monitor(self, identity: str, scope: Scope, accuracy: Fraction, epsilon: Fraction | Rho) -> Monitor:
        """Begin a monitor; the same id with the same content finds it."""
        content = digest([scope.sets.rows.fingerprint, str(accuracy), str(epsilon), scope.session.hold])
        with self._lock:
            known = self._monitors.get(check_id(identity, "a monitor"))
            if known is None:
                self._refuse_closed(len(self._monitors))
                if len(scope.sets) != 1:
                    raise QuestionError("a monitor is for one set of rows; begin one for each part.")
                known = _Watched(Monitor(scope.session, scope.sets, accuracy, epsilon), content)
                self._monitors[identity] = known
            if known.content != content:
                raise QuestionError("the id of this monitor stands for another one; make a new id for each.")
            return known.monitor

    def check(self, identity: str, number: int, model: Any) -> bool:
        """Ask a monitor about a model; the last check, asked again under its number, is answered as before."""
        with self._lock:
            known = self._monitors.get(identity)
        if known is None:
            raise QuestionError("this sitting has no such monitor: it died with its process; begin another.")
        text = digest(model.to_json())
        with known.lock:
            last = known.last
            if last is not None and number == last.number:
                if last.model != text:
                    raise QuestionError("this number stands for a check of another model; count checks from 1 on.")
                return last.reached
            if number != (1 if last is None else last.number + 1):
                raise QuestionError("checks of a monitor are numbered from 1 on, one after the other.")
            reached = known.monitor.reached(model)
            known.last = _Check(number, text, reached)
            return reached

    # -- the end ----------------------------------------------------------------------------

    def _refuse_closed(self, handles: int) -> None:
        if self.closed:
            raise QuestionError("this sitting was closed; connect again.")
        if handles >= MOST_HANDLES:
            raise QuestionError(f"this sitting has {MOST_HANDLES} of them, the most that one may have; connect again.")

    def close(self) -> None:
        """End every reservation and forget all scopes."""
        with self._lock:
            self.closed = True
            holds, self._holds = self._holds, {}
            self._steps, self._monitors, self._refinable, self._chains = {}, {}, {}, {}
        for stack, *_ in holds.values():
            stack.close()


def _after(scope: Scope, content: Mapping[str, Any]) -> Scope:
    """Return the rows after a step that somebody sent; names of parts are made here, of public values."""
    if set(content) == {"cells", "copies"}:
        return Scope(*scope.session.in_cells(scope.sets, *_cells(content)))
    step, (session, sets) = step_from_json(content), scope
    if isinstance(step, Allot):
        return Scope(session, sets.divide(step))
    step.check(session.domain, len(sets))
    parents, _, texts = step_names(step, len(sets), session.domain)
    plain = isinstance(step, Keep) and not step.conditions
    return Scope(session, sets.divide(step, None if plain else sets.paths.below(parents, texts)))


def _cells(content: Mapping[str, Any]) -> tuple[Domain, dict[str, str]]:
    text, copies = content["cells"], content["copies"]
    texts = isinstance(copies, Mapping) and all(isinstance(item, str) for pair in copies.items() for item in pair)
    if not isinstance(text, str) or not texts:
        raise QuestionError("other cells are the text of a domain file, and a mapping of copies to columns.")
    return Domain.parse(text), dict(copies)


def _chain(known: _Refinable, entry: int) -> Chain:
    """Return the record of refinements of an answer, whose values are read from the ledger."""
    import json

    (session, sets), question, losses = known.scope, known.question, known.losses
    stored = json.loads(session.ledger.answer(entry).text)
    mechanisms, _ = session.priced(question, sets, losses)
    answers = Answers(stored["answer"], mechanisms, losses, bool(stored["private"]), entry)
    return Chain(session, question, sets, answers.releases(question, session.domain))


class Sittings:
    """All sittings of a server, by table, analyst and the id that the client made.

    Parameters
    ----------
    clock : callable
        Returns a time in seconds.
    idle : float
        Seconds after which a sitting that nobody uses ends.
    most : int
        Sittings that an analyst may have at a time.
    """

    def __init__(self, clock: Callable[[], float], idle: float, most: int) -> None:
        self._clock, self._idle, self._most = clock, idle, most
        self._sittings: dict[tuple[str, str, str], Sitting] = {}
        self._used: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()

    def of(self, table: str, session: Session, analyst: str, identity: object, under: Under | None = None) -> Sitting:
        """Return an analyst's sitting at a table, under a permit if one is named; begin it if there is none."""
        name = table, analyst, check_id(identity, "a sitting")
        with self._lock:
            sitting = self._sittings.get(name)
            if sitting is None:
                if sum(1 for _, who, _ in self._sittings if who == analyst) >= self._most:
                    raise QuestionError(
                        f"you have {self._most} sittings, the most that one may have; close tables and connections "
                        "that you no longer use. What nobody uses for a while ends by itself."
                    )
                sitting = Sitting(session.sitting(analyst, under), lambda: self._parts_beside(name))
                self._sittings[name] = sitting
            if sitting.session.under != under:
                raise QuestionError("this sitting is under another permit or for another purpose; begin a new one.")
            self._used[name] = self._clock()
            return sitting

    def _parts_beside(self, name: tuple[str, str, str]) -> int:
        """Return how many parts the sittings of an analyst have beside one of them."""
        with self._lock:
            return sum(own.parts for other, own in self._sittings.items() if other[1] == name[1] and other != name)

    def end_hold(self, table: str, analyst: str, identity: object, hold: str) -> None:
        """End a reservation of a sitting, if there is one."""
        with self._lock:
            sitting = self._sittings.get((table, analyst, check_id(identity, "a sitting")))
        if sitting is not None:
            sitting.end_hold(check_id(hold, "a reservation"))

    def close(self, table: str, analyst: str, identity: object) -> None:
        """End a sitting, if there is one."""
        with self._lock:
            name = table, analyst, check_id(identity, "a sitting")
            sitting = self._sittings.pop(name, None)
            self._used.pop(name, None)
        if sitting is not None:
            sitting.close()

    def sweep(self, all_of_them: bool = False) -> int:
        """End the sittings that nobody has used for a while, or all; return how many are left."""
        now = self._clock()
        with self._lock:
            idle = [name for name, used in self._used.items() if all_of_them or now - used > self._idle]
            ended = [self._sittings.pop(name) for name in idle]
            for name in idle:
                del self._used[name]
            left = len(self._sittings)
        for sitting in ended:
            sitting.close()
        return left

    def close_of(self, analyst: str, table: str | None = None) -> None:
        """End every sitting of an analyst, whose grant has ended: at one table, or with None at all."""
        with self._lock:
            names = [name for name in self._sittings if name[1] == analyst and table in (None, name[0])]
        for place, who, identity in names:
            self.close(place, who, identity)
