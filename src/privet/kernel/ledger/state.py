"""What a log says now: what was spent and may be, who holds what, what stands under a key.

Everything here is found by its columns, so that nothing is added up: a charge carries the
totals after it, and the holds that have ended are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from privet.errors import BudgetExceeded, KeyReused, LedgerError
from privet.kernel.canonical import Json
from privet.kernel.ledger.log import Line, Log, sha256
from privet.kernel.ledger.terms import Terms
from privet.kernel.limits import decimal_text
from privet.version import __version__


@dataclass(frozen=True)
class Charge:
    """What is to be written down before a question is asked."""

    question: str  # in words
    question_json: str  # canonical JSON
    fingerprint: str  # what makes it this question, on these rows, for this epsilon, and no other
    scope: str
    epsilon: str
    loss: Fraction  # what reaches the table
    key: str | None = None
    opening_token: str = ""  # see `Session.opening_token`
    terms: int | None = None  # those that its table was opened with: see `Ledger.register`


@dataclass(frozen=True)
class Entry:
    """A charge in the ledger, and its answer where one is stored."""

    id: int
    analyst: str
    scope: str
    question: str
    epsilon: str
    loss: Fraction
    key: str | None
    at: str
    answer: str | None
    opening_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class Answer:
    """A stored answer."""

    text: str  # what was released, as JSON
    opening_token: str  # of the opening of the table in which it was drawn


@dataclass(frozen=True)
class Hold:
    """An open reservation: so much of a budget is kept for one analyst."""

    id: int
    analyst: str
    epsilon: Fraction
    spent: Fraction
    at: str

    @property
    def left(self) -> Fraction:
        return max(self.epsilon - self.spent, Fraction(0))  # so that no hold can add to a budget


@dataclass(frozen=True)
class Account:
    """What was spent on a data set, by everybody or by one analyst, and what may be."""

    whose: str
    spent: Fraction
    cap: Fraction | None


@dataclass(frozen=True)
class Room:
    """What a cap, or a hold, leaves to a charge."""

    whose: str
    cap: Fraction
    left: Fraction
    reserved: Fraction = Fraction(0)  # by others

    def refuse_beyond(self, loss: Fraction, asked: str) -> None:
        if loss > self.left:
            left = max(self.left, Fraction(0))
            reserved = f" beside {decimal_text(self.reserved)} in reservations" if self.reserved else ""
            mend = "Lower epsilon, or ask" if left else "Ask"
            raise BudgetExceeded(
                f"cannot {asked}: {decimal_text(loss)} of it reaches {self.whose}, which has {decimal_text(left)} left "
                f"of {decimal_text(self.cap)}{reserved}. {mend} the data owner for more.",
                requested=loss,
                remaining=left,
            )


def no_budget(dataset: str) -> LedgerError:
    """Return the error of a data set that is opened for the first time without a budget."""
    return LedgerError(
        f"the data set '{dataset}' has no budget yet; give one the first time, with --budget 1.0 (in Python "
        'budget="1.0").'
    )


def terms(log: Log, dataset: str) -> Terms | None:
    """The terms of a data set that is registered."""
    line = log.last_of("register", dataset, None)
    return None if line is None else Terms.read(line)


def spent(log: Log, dataset: str, analyst: str | None) -> Fraction:
    """What was charged to a data set, by everybody or by the analyst of an id."""
    if analyst is None:
        line, total = log.last("charge", "dataset = ?", dataset), "dataset_spent"
    else:
        line, total = log.last_of("charge", dataset, analyst), "analyst_spent"
    return Fraction(0) if line is None else Fraction(line.body[total])


def cap(log: Log, dataset: str, analyst: str | None) -> Fraction | None:
    """What may be spent on a data set in all, or by the analyst of an id, where that was set."""
    line = log.last_of("cap", dataset, analyst)
    return None if line is None else Fraction(line.body["cap"])


def accounts(log: Log, dataset: str, analyst: str) -> tuple[Account, Account] | None:
    """The account of a data set, and an analyst's own on it; None if there is no such data set."""
    allowed, who = cap(log, dataset, None), log.analyst_id(analyst)
    if allowed is None:
        return None
    own = f"the budget of '{analyst}' on '{dataset}'"
    return (
        Account(f"ledger '{dataset}'", spent(log, dataset, None), allowed),
        Account(own, spent(log, dataset, who), cap(log, dataset, who)),
    )


def analysts(log: Log, dataset: str) -> list[str]:
    """The names of everyone with an entry, a reservation or a cap of their own."""
    query = "SELECT 1 FROM lines WHERE dataset = ? AND analyst = ? AND kind IN ('charge', 'hold', 'cap') LIMIT 1"
    return sorted(name for identity, name in log.analysts().items() if log.run(query, dataset, identity).fetchone())


def open_holds(log: Log, dataset: str) -> list[Hold]:
    """The holds that have not ended."""
    holds = []
    for hold in log.open_holds(dataset):
        line, paid = log.find("hold", hold), log.last("charge", "reference = ?", hold)
        assert line is not None
        used = Fraction(0 if paid is None else paid.body["reservation_spent"])
        name = log.analyst_name(str(line.analyst))
        holds.append(Hold(hold, name, Fraction(line.body["held"]), used, line.note["at"]))
    return holds


def keyed(log: Log, dataset: str, analyst: str, key: str) -> Line | None:
    """The charge under an analyst's key, if there is one."""
    return log.last("charge", "dataset = ? AND analyst = ? AND key = ?", dataset, log.analyst_id(analyst), key)


def standing(log: Log, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
    """The entry under an analyst's key, if there is one; KeyReused if it is for something else."""
    line = None if key is None else keyed(log, dataset, analyst, key)
    if line is None:
        return None
    if line.body["fingerprint"] != fingerprint:
        raise KeyReused(f"the key '{key}' stands for another scope, question or epsilon; use a new key for this.")
    stored = answer(log, line.serial)
    return entry_of(line, analyst, None if stored is None else stored.text)


def answer(log: Log, entry: int) -> Answer | None:
    """The answer to an entry that is stored, if there is one."""
    line = log.last("answer", "reference = ?", entry)
    return None if line is None else Answer(_released(line), line.note["opening"])


def entries(log: Log, dataset: str, analyst: str | None) -> list[Entry]:
    """All charges to a data set, or those of one analyst, with their answers."""
    names = log.analysts()
    condition, values = "kind = 'charge' AND dataset = ?", [dataset]
    if analyst is not None:
        condition, values = f"{condition} AND analyst = ?", [dataset, log.analyst_id(analyst)]
    charges = log.lines(f"{condition} ORDER BY number", *values)
    answered = f"kind = 'answer' AND reference IN (SELECT serial FROM lines WHERE {condition})"
    answers = {line.body["entry"]: _released(line) for line in log.lines(answered, *values)}
    return [entry_of(line, names[str(line.analyst)], answers.get(line.serial)) for line in charges]


def entry_of(line: Line, analyst: str, answer: str | None) -> Entry:
    body, note = line.body, line.note
    return Entry(
        id=line.serial,
        analyst=analyst,
        scope=body["scope"],
        question=body["question"],
        epsilon=body["epsilon"],
        loss=Fraction(body["loss"]),
        key=body.get("key"),
        at=note["at"],
        answer=answer,
        opening_token=note["opening"],
    )


def charge_body(charge: Charge, terms: Terms, accounts: Sequence[Account], held: Hold | None) -> dict[str, Json]:
    """What the line of a charge says; `accounts` are those before it."""
    everybody, own = accounts
    said = {
        "key": charge.key,
        "question": charge.question,
        "fingerprint": charge.fingerprint,
        "scope": charge.scope,
        "epsilon": charge.epsilon,
        "loss": str(charge.loss),
        "dataset_spent": str(everybody.spent + charge.loss),
        "dataset_cap": str(everybody.cap),
        "analyst_spent": str(own.spent + charge.loss),
        "analyst_cap": None if own.cap is None else str(own.cap),
        "reservation": None if held is None else held.id,
        "reservation_spent": None if held is None else str(min(held.epsilon, held.spent + charge.loss)),
        "version": __version__,
        **terms.in_charges,
    }
    return {name: value for name, value in said.items() if value is not None}


def _released(line: Line) -> str:
    """The text of an answer; ValueError where the line was written for another."""
    answer: str = line.note["answer"]
    if sha256(answer) != line.body["sha256"]:
        raise ValueError(f"the answer in line {line.number} is another")
    return answer


def open_hold(holds: Sequence[Hold], dataset: str, analyst: str, hold: int, loss: Fraction, asked: str) -> Hold:
    for each in holds:
        if (each.id, each.analyst) == (hold, analyst):
            return each
    raise BudgetExceeded(
        f"cannot {asked}: reservation {hold} of '{analyst}' on '{dataset}' has ended. Reserve again, or ask the "
        "table itself.",
        requested=loss,
        remaining=Fraction(0),
    )


def rooms(
    accounts: Sequence[Account], holds: Sequence[Hold], analyst: str, limit: Fraction | None, held: Hold | None
) -> Iterator[Room]:
    """What the cap of the data set, and the analyst's own where there is one, leave to a charge.

    Write `open` for what the open holds have left: for the data set everybody's, for
    an analyst their own. A new hold, and a charge outside, need `spent + open + loss <=
    cap`. A charge that its hold can pay needs `spent + loss <= cap`; one that goes
    beyond needs room for what the other holds have left, too.

    So `spent <= cap` after every charge, whatever the holds say. And `spent + open <=
    cap` while no cap is lowered: what a hold pays moves from `open` to `spent`, all
    else was checked against the sum, and an end only lowers it. Hence a charge that
    its hold can pay is never refused: `spent + loss <= spent + open`.

    `limit` belongs to one opening of the data; a hold had to pass it when it was made.
    """
    for account, who in zip(accounts, (None, analyst), strict=True):
        if account.cap is None:
            continue
        cap, spent = account.cap, account.spent
        lower = cap if who is not None or limit is None else min(cap, limit)
        others = (each.left for each in holds if who in (None, each.analyst) and (not held or each.id != held.id))
        reserved = sum(others, Fraction(0))
        inside = min(held.left, cap - spent) if held else min(Fraction(0), lower - spent)
        yield Room(account.whose, lower, max(inside, lower - spent - reserved), reserved)
