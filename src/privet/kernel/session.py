"""One analyst's sitting at one table: charge first, ask second, store the answer, release it."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

import numpy as np

from privet.errors import DataError, EngineFailed, LedgerError, QuestionError
from privet.kernel import accounting
from privet.kernel.access import Way
from privet.kernel.accounting import Scope
from privet.kernel.column import decimal_text
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import FIXED, Engine, Lost
from privet.kernel.ledger import Charge, Entry, Ledger
from privet.kernel.limits import LONGEST_NAME, is_name
from privet.kernel.rows import Rows
from privet.kernel.sampling import Entropy

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """One question to some parts of a table, as it is charged and recorded."""

    question: str
    details: object  # what else makes it this question and no other
    rows: Rows
    scopes: Sequence[Scope]
    scope_name: str
    losses: Sequence[Fraction]
    key: str | None
    content: str | None = None  # of a refinement, whose key is the kernel's own: all there is to know to finish it
    drawn: str | None = None  # and the place where the noise was drawn that it goes on from


@dataclass(frozen=True)
class PublicRows:
    """The rows are public: exact answers are allowed, and these errors of papers are repeated where asked for."""

    rounded_noise: bool = False  # noise with holes (erratum E-8)
    printed_ranges: bool = False  # range weights without the sensitivity (erratum E-4)


@dataclass
class Newest:
    """The entry that was charged last in one opening of a table, if nobody has tried to charge another since."""

    entry: int | None = None


@dataclass(frozen=True)
class Session:
    """Everything a question needs besides itself."""

    domain: Domain
    engine: Engine
    ledger: Ledger
    dataset: str
    source: str
    analyst: str
    entropy: Entropy  # what all its noise and coins are drawn from, as long as the table is open
    limit: Fraction | None = None  # what the table was opened with, where less than the ledger allows
    public: PublicRows | None = None
    hold: int | None = None  # the reservation that pays
    access: Way | None = None  # how questions reach the rows
    # within an opening the engine knows of changes, between two of them the rows may have become others
    opening: str = field(default_factory=lambda: secrets.token_hex(8))
    newest: Newest = field(default_factory=Newest)
    terms: int | None = None  # of the ledger, when the table was opened: see `Ledger.register`

    def place(self, version: int) -> str:
        """What marks a charge as made for these rows, and an answer as drawn from them, in this process."""
        return f"{self.opening} {version} {os.getpid()}"

    def steady(self, exact_work: Callable[[], T]) -> tuple[T, int] | None:
        """What work finds out about one version of the rows, and which; None where they changed under it, twice."""
        for last in (False, True):
            version = self.engine.version
            try:
                found = exact_work()
            except Lost:
                if last:
                    raise
                continue
            if self.engine.version == version:
                return found, version
        return None

    def check_drawn(self, question: str, drawn: str | None, version: int) -> None:
        """Refuse to go on from noise that was drawn for rows which may have been others."""
        if drawn != self.place(version):
            raise QuestionError(
                f"cannot {question}: this answer was drawn in another opening of the table '{self.dataset}', whose "
                "rows may have been others; ask a new question at the epsilon wanted."
            )

    def remaining(self) -> Fraction:
        """What this analyst may still charge to the ledger."""
        return self.ledger.remaining(self.dataset, self.analyst, self.limit, self.hold)

    @contextmanager
    def reserved(self, scope: Scope, epsilon: Fraction) -> Iterator[Session]:
        """This session with a hold, until the block ends, on what `epsilon` in a scope would make the ledger pay.

        What reaches the root grows with what the scope spends and shrinks as its siblings
        pay. So charges of `epsilon` in all need no more than is held, whatever the
        siblings do meanwhile. Only the analyst's own charges to these very rows, or to
        rows around them, made outside the block, can use up what siblings had paid or an
        allotment around: what the hold then lacks is charged as without one, or refused.
        Each charge still writes all that reaches the root; the hold decides only who may
        spend.
        """

        def write(reaches_root: Fraction) -> NoReturn:
            book = self.ledger
            raise _Held(
                book.hold(self.dataset, self.analyst, reaches_root, self.limit, asked=epsilon, within=self.hold)
            )

        try:
            # A rehearsal in an allotment of its own: nothing is paid, and an interrupt marks no other scope.
            accounting.charge([(scope.allot(epsilon), epsilon)], write, self.engine.version)
        except _Held as held:
            hold = held.hold
        process = os.getpid()
        try:
            yield replace(self, hold=hold)
        finally:
            # An inner reservation is a part of the outer one; a forked copy leaves its end to the process that made it.
            if self.hold is None and os.getpid() == process:
                self.ledger.end(hold)

    def ask(self, asked: Asked, noisy_answer: Callable[[], Any]) -> tuple[Any, bool, int]:
        """Charge a question, then let `noisy_answer` ask the engine; the answer as stored.

        Returns the answer (plain JSON values), whether its noise was real, and the ledger entry.
        """
        entry = self._standing(asked)
        stored = None if entry is None else entry.answer
        if entry is None or stored is None:
            asked.scopes[0].check_process()  # a forked copy must not wait for a lock that its parent held
            version = self.engine.version
            # Where rows may change nobody else charges meanwhile: what is paid is not shared before it is answered.
            with nullcontext() if version == FIXED else asked.scopes[0].lock:
                if entry is None:
                    entry = self._charge(asked)
                elif not self._pays(entry, asked, version):
                    raise QuestionError(
                        f"cannot finish ledger entry {entry.id}: it was charged for rows that may have changed since, "
                        "in parts that share what they pay. Ask under another key."
                    )
                stored = entry.answer or self._finished(entry, asked, noisy_answer)
        found = json.loads(stored)
        return found["answer"], bool(found["private"]), entry.id

    def _finished(self, entry: Entry, asked: Asked, noisy_answer: Callable[[], Any]) -> str:
        """The answer to a question that is paid, as it is stored."""
        answer, version, failed = None, 0, False
        try:
            with np.errstate(all="ignore"):  # else a caller's settings could make a number of a row an error
                answer, version = self.steady(noisy_answer) or (None, 0)
        except Exception:
            # What went wrong may quote a row. The error below is raised outside this
            # block so that not even its context refers to it.
            failed = True
        not_stored = None
        if answer is not None and self._pays(entry, asked, version):
            text = {"answer": answer, "private": self.entropy.private, "opening": self.place(version)}
            try:
                return self.ledger.store(entry.id, json.dumps(text, separators=(",", ":")))
            except LedgerError as error:
                not_stored = str(error)
        finish = "a new try is a new charge"
        if not failed and not_stored is None:
            finish = f"the rows may have changed meanwhile, so that {finish}"
        elif asked.key is not None and asked.drawn is None:
            finish = f"retry with the key '{asked.key}' to finish under it"
        elif asked.drawn == self.place(FIXED):
            finish = "refine again to finish under it"
        stands = f"Ledger entry {entry.id} (epsilon={entry.epsilon}) stands: {finish}."
        if not_stored is not None:
            raise LedgerError(f"{not_stored} {stands}")
        raise EngineFailed(
            f"the {self.engine.name} engine could not answer {asked.question} on '{self.dataset}'. {stands}"
        )

    def _pays(self, entry: Entry, asked: Asked, version: int) -> bool:
        """Whether a charge pays for an answer about a version of the rows.

        It does for the one that it was made for, and for any where parts do not share what they pay. Else it does if it
        reached the root in full, as if nothing had been paid before, and no other part has used what it paid: nobody
        has tried to charge anything since. A refinement goes on from noise that only the same rows show.
        """
        if asked.drawn is not None:
            return asked.drawn == self.place(version)
        if entry.place == self.place(version) or not any(scope.shares for scope in asked.scopes):
            return True
        charges = list(zip(asked.scopes, asked.losses, strict=True))
        return entry.id == self.newest.entry and entry.loss >= accounting.alone(charges)

    def _standing(self, asked: Asked) -> Entry | None:
        """The charge that stands under the key of a question; whatever is wrong with the question is told here."""
        if self.engine.closed:
            raise DataError(f"the table '{self.dataset}' was closed; open it again.")
        key = asked.key
        if key is None:
            return None
        if asked.drawn is None and not is_name(key):
            raise QuestionError(f"key must be a text of 1 to {LONGEST_NAME} printable characters.")
        return self.ledger.standing(self.dataset, self.analyst, key, self._fingerprint(asked))

    def _fingerprint(self, asked: Asked) -> str:
        if asked.content is not None:
            return asked.content
        identity = [self.source, self.domain.fingerprint, asked.rows.fingerprint, asked.question, repr(asked.details)]
        texts = {each: str(loss) for each, loss in {id(loss): loss for loss in asked.losses}.items()}
        losses = [texts[id(loss)] for loss in asked.losses]
        return hashlib.sha256(json.dumps([identity, losses]).encode()).hexdigest()

    def _charge(self, asked: Asked) -> Entry:
        fingerprint = self._fingerprint(asked)

        def write(reaches_root: Fraction) -> Entry:
            charge = Charge(
                asked.question,
                asked.scope_name,
                listed(asked.losses),
                reaches_root,
                fingerprint,
                asked.key,
                self.place(version),
                self.terms,
            )
            entry, new = self.ledger.charge(self.dataset, self.analyst, charge, self.limit, self.hold)
            if not new:
                raise _Stands(entry)
            return entry

        version = self.engine.version
        if asked.drawn is not None:
            self.check_drawn(asked.question, asked.drawn, version)
        self.newest.entry = None
        try:
            entry = accounting.charge(list(zip(asked.scopes, asked.losses, strict=True)), write, version)
        except _Stands as stands:
            return stands.entry
        self.newest.entry = entry.id
        return entry


@dataclass(frozen=True)
class Budget:
    """What was spent and what is left, read from the ledger."""

    _session: Session
    _scope: Scope

    @property
    def spent(self) -> Fraction:
        """What this analyst has charged to the table, now and before; on a part of it, what the part has cost."""
        if self._scope.is_root:
            return self._session.ledger.spent(self._session.dataset, self._session.analyst)
        return self._scope.spent

    @property
    def remaining(self) -> Fraction:
        """The largest epsilon that can be charged here now."""
        return self._scope.headroom(self._session.remaining())

    @property
    def ledger_path(self) -> str:
        """Where the spending is written down."""
        return self._session.ledger.path

    @property
    def entries(self) -> list[Entry]:
        """This analyst's lines of the ledger."""
        return self._session.ledger.entries(self._session.dataset, self._session.analyst)

    def __repr__(self) -> str:
        return f"<budget: {decimal_text(self.spent)} spent, {decimal_text(self.remaining)} left>"


class _Stands(accounting.Refused):
    """The charge was written before, under the same key: the scopes must not pay again."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


class _Held(accounting.Refused):
    """Budget is held, and nothing is charged yet."""

    def __init__(self, hold: int) -> None:
        self.hold = hold


def listed(losses: Iterable[Fraction]) -> str:
    """One number, or the least and the greatest."""
    distinct = {id(loss): loss for loss in losses}.values()
    lowest, highest = decimal_text(min(distinct)), decimal_text(max(distinct))
    return lowest if lowest == highest else f"{lowest} to {highest}"
