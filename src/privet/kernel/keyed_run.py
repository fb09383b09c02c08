"""A run of many questions that is paid once under a key, and can be repeated until its result is stored.

`privet fit --key` and `classifier.fit(table, key=...)` use it: a fit that a crash has ended is finished by the same
call, without another charge, and a model that was lost is written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from privet.errors import EngineFailed, LedgerError, PrivetError, QuestionError
from privet.kernel.ledger import Entry
from privet.kernel.limits import Json
from privet.kernel.per_part import PerPart
from privet.kernel.racing import Lease, T, shadow_table
from privet.kernel.session import Request, Session


def keyed_run(
    table: T,
    run: Callable[[T], str],
    epsilon: Fraction,
    key: str,
    words: str,
    identity: Json,
) -> tuple[str, int | None, bool]:
    """Run a function of a table under one charge, and keep what it returns in the ledger.

    The function gets a shadow of the table: the same rows, and `epsilon` to spend that nobody else can. The whole of
    `epsilon` is charged under the key before its first question is answered. If the process ends before the result is
    stored, the same call runs the function again under the standing charge. If a result is stored, it is returned.

    Proof. A run loses at most `epsilon`, because its shadow pays no more. Of all runs under the key, the result of one
    leaves: the one that is stored first. The function must print, keep and send nothing: learners run no code of the
    caller's in it and switch progress off. Then a run that ended before has told nobody anything. A run that raises
    after its charge has a result, too: its sentence is stored, so that it cannot be tried again until it comes out
    differently. The exceptions are interrupts and failures of an engine, a ledger or the machine, which may be
    repeated; what made them happen, time, memory and a full disk, is not covered (docs/privacy.md).

    Parameters
    ----------
    table : ProtectedTable
        A whole table, or rows of it that meet conditions; not a part of a partition.
    run : callable
        Takes a table, and returns what is stored.
    epsilon : Fraction
        What is charged, per person.
    key : str
    words : str
        What the ledger calls the run.
    identity : Json
        What makes it this run and no other, besides the rows and `epsilon`.

    Returns
    -------
    result : str
    entry : int or None
        The ledger entry that paid for it.
    own : bool
        Whether this call's run made the result; whatever else that run made may be used only then.

    Raises
    ------
    KeyReused
        The key stands for another run.
    BudgetExceeded
        The table has less than `epsilon` left. Nothing was charged.
    EngineFailed
        The run failed after its charge.
    PrivetError
        What `run` refused before its first question. Nothing was charged.
    """
    session, sets = table._session, table._sets
    if not session.private_rows:
        raise QuestionError("public rows cost nothing, so there is nothing to pay once; leave out the key.")
    if sets.scopes.shares:
        raise QuestionError("a key is for a fit of a whole table, not of a part of a partition; leave it out.")
    request = Request(words, identity, sets, PerPart.same(epsilon, len(sets)), key)
    payment = _Payment(session, request, session._standing(request))
    stored, text = payment.entry.answer if payment.entry is not None else None, None
    if stored is None:
        outcome = _outcome(table, run, epsilon, payment)
        entry, private = payment.pay(), session.entropy.private
        text = json.dumps({"answer": outcome, "private": private}, separators=(",", ":"))
        token = session.opening_token(session.engine.version)
        try:
            stored = session.ledger.store(entry.id, text, private=private, opening_token=token)
        except LedgerError as error:
            raise LedgerError(f"{error} {payment.stands}") from None
    assert payment.entry is not None
    result, sentence = json.loads(stored)["answer"]
    if result is None:
        raise EngineFailed(
            f"{words} under the key '{key}' came to an end without a result: {sentence} Ledger entry "
            f"{payment.entry.id} stands; a new try needs a new key, and is a new charge."
        )
    return str(result), payment.entry.id if session.writes else None, stored == text


@dataclass
class _Payment:
    """The charge of a run, made once, before its first question."""

    session: Session
    request: Request
    entry: Entry | None

    def pay(self) -> Entry:
        """Charge the run unless that is done."""
        if self.entry is None:
            self.entry = self.session._charge(self.request)
        return self.entry

    @property
    def stands(self) -> str:
        """The sentence that says how to go on after the charge."""
        assert self.entry is not None
        return (
            f"Ledger entry {self.entry.id} (epsilon={self.entry.epsilon}) stands: retry with the key "
            f"'{self.request.key}' to finish under it."
        )


@dataclass(frozen=True)
class _ShadowSession(Session):
    """The session of a shadow: its first charge makes the real one."""

    payment: _Payment | None = None

    def _charge(self, request: Request) -> Entry:
        assert self.payment is not None
        self.payment.pay()
        return super()._charge(request)


def _outcome(table: T, run: Callable[[T], str], epsilon: Fraction, payment: _Payment) -> list[Json]:
    """Return [result, None], or [None, why there is none]; raise what may be tried again."""
    lease = Lease(table._session.engine)
    problem: str | None = None
    stopped: type[BaseException] | None = None
    try:
        shadow = shadow_table(table, lease, epsilon)
        values: dict[str, Any] = {field.name: getattr(shadow._session, field.name) for field in fields(Session)}
        session = _ShadowSession(**values, payment=payment)
        return [run(table._with(session, shadow._sets)), None]
    except (EngineFailed, LedgerError, MemoryError, OSError):
        if payment.entry is None:
            raise
    except PrivetError as error:
        if payment.entry is None:
            raise
        problem = str(error)
    except Exception:  # its words may be about a row
        if payment.entry is None:
            raise
        problem = "an unexpected error stopped it."
    except BaseException as error:  # an interrupt
        if payment.entry is None:
            raise
        stopped = type(error)
    finally:
        lease.close()
    # Raised outside the block, so that no traceback holds what the run learned.
    if stopped is not None:
        raise stopped
    if problem is None:
        raise EngineFailed(f"{payment.request.words} on '{payment.session.dataset}' failed. {payment.stands}")
    return [None, problem]
