"""What a log says now: what charges mean, what was spent and may be, who reserves what, what stands under a key.

Nothing is added up here: a charge carries the totals after it, so the last one is looked up.

The *terms* of a data set say what its charges mean: what the budget is counted in, how many
rows a person may have, and the cells of every declared column. A table whose domain says
anything else is refused until the owner declares it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from privet.errors import BudgetExceeded, KeyReused, LedgerError, PrivacyError
from privet.kernel.domain import Domain
from privet.kernel.ledger.log import Line, Log, sha256
from privet.kernel.limits import Json, decimal_text, digest
from privet.version import __version__

EPSILON, RHO = "epsilon", "rho"  # units of a budget; only the first can be charged today


def cells_of(domain: Domain) -> dict[str, str]:
    """Return for every declared column a hash of all that decides which cell a value falls into.

    The target, `rows`, `max_rows`, whether values are `ordered` and how edges were written are not in it: no cell
    depends on them.

    >>> from privet.kernel.column import Nominal
    >>> plain, ordered = (Domain((Nominal("size", ("S", "M"), ordered=ordered),)) for ordered in (False, True))
    >>> cells_of(plain) == cells_of(ordered), cells_of(plain) == cells_of(Domain((Nominal("size", ("M", "S")),)))
    (True, False)
    """
    return {column.name: digest(column.cells()) for column in domain}


def terms_of(domain: Domain | None) -> dict[str, Json]:
    """Return the terms of tables with a domain, as a register line says them."""
    cells = {} if domain is None else cells_of(domain)
    return {
        "unit": EPSILON,
        "delta": None,
        "rows_per_person": 1 if domain is None else domain.rows_per_person,
        "person": None if domain is None else domain.person,
        "cells": cells,
        "domain": digest(cells),
    }


@dataclass(frozen=True)
class Terms:
    """What the charges of a data set mean: whom they protect, and which cells they are about."""

    serial: int  # of the register line
    dataset: str
    unit: str
    delta: str | None  # if the unit is rho
    rows_per_person: int
    person: str | None  # the column that says whose row it is
    cells: dict[str, str]  # by column
    domain: str  # the hash of the cells
    others: tuple[str, ...] = ()  # what else it pins

    @classmethod
    def read(cls, line: Line) -> Terms:
        """Return the terms that a register line has recorded."""
        body = line.body
        pins = {name: body[name] for name in ("unit", "delta", "rows_per_person", "person", "cells", "domain")}
        return cls(line.serial, str(line.dataset), **pins, others=tuple(sorted({*body} - {*pins, "sources"})))

    @cached_property
    def in_charges(self) -> dict[str, Json]:
        """What every charge repeats of the terms, so that it can be read alone."""
        repeated: dict[str, Json] = {
            "terms": self.serial,
            "unit": self.unit,
            "rows_per_person": self.rows_per_person,
            "domain": self.domain,
        }
        return repeated if self.delta is None else {**repeated, "delta": self.delta}

    def refuse_unknown(self) -> None:
        """Raise LedgerError if only a later version of privet can charge the data set."""
        if self.unit != EPSILON:
            what = f"its budget is counted in {self.unit}"
        elif self.others:
            what = f"it pins '{self.others[0]}'"
        else:
            return
        raise LedgerError(
            f"the data set '{self.dataset}' cannot be used: {what}, which this version of privet does not know; "
            "open it with the version that registered it."
        )

    def refuse_fewer(self, rows_per_person: int) -> None:
        """Raise PrivacyError if a domain allows a person fewer rows than the charges so far protect."""
        if rows_per_person < self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' protect persons with up to {self.rows_per_person} row(s), and the "
                f"domain says {rows_per_person}; write rows_per_person = {self.rows_per_person} or more in the domain "
                "file."
            )

    def refuse_other_persons(self, domain: Domain) -> None:
        """Raise PrivacyError if a domain says otherwise whose rows are whose: losses of other people do not add."""
        if domain.person != self.person:
            before, now = (
                f"by the column '{name}'" if name else "without a column" for name in (self.person, domain.person)
            )
            raise PrivacyError(
                f"the charges on '{self.dataset}' say {before} who a person is, and the domain says it {now}; open it "
                "with the domain as it was, or begin a new ledger."
            )

    def refuse_others(self, domain: Domain) -> None:
        """Raise PrivacyError if a domain says anything that only `Ledger.declare` may change, or nobody."""
        self.refuse_other_persons(domain)
        self.refuse_fewer(domain.rows_per_person)
        mend = "let its owner record the change with `privet budget declare`, or open it with the domain as it was."
        if domain.rows_per_person > self.rows_per_person:
            raise PrivacyError(
                f"the charges on '{self.dataset}' were made for persons with up to {self.rows_per_person} row(s), and "
                f"the domain says {domain.rows_per_person}: what was spent so far costs such a person "
                f"{decimal_text(Fraction(domain.rows_per_person, self.rows_per_person))} times as much; {mend}"
            )
        cells = cells_of(domain)
        for name in sorted({*self.cells, *cells}) if self.cells else ():  # none: it was registered without a domain
            if cells.get(name) != self.cells.get(name):
                what = "is new" if name not in self.cells else "is gone" if name not in cells else "has other cells"
                raise PrivacyError(
                    f"the domain of '{self.dataset}' is not the one in its ledger: the column '{name}' {what}; {mend}"
                )


@dataclass(frozen=True)
class Charge:
    """What the ledger writes before a question is asked."""

    question: str  # in words
    question_json: str  # canonical JSON
    fingerprint: str  # what makes it this question, on these rows, for this epsilon, and no other
    scope: str
    epsilon: str
    loss: Fraction  # what reaches the table
    key: str | None = None
    opening_token: str = ""  # see `Session.opening_token`
    terms: int | None = None  # the number that `Ledger.register` returned to its table


@dataclass(frozen=True)
class Entry:
    """A charge in the ledger, with its answer if one is stored."""

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
    """An open reservation: a part of a budget that is kept for one analyst."""

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
        """Raise BudgetExceeded if the room is too small for a loss."""
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


def terms_in(log: Log, dataset: str) -> Terms | None:
    """Return the terms of a data set, if it is registered."""
    line = log.last("register", dataset=dataset, analyst=None)
    return None if line is None else Terms.read(line)


def known_terms(log: Log, dataset: str) -> Terms:
    """Return the terms of a data set; LedgerError if it is not registered."""
    terms = terms_in(log, dataset)
    if terms is None:
        raise LedgerError(f"the ledger '{log.path}' has no data set '{dataset}'; `privet budget show` lists them.")
    return terms


def spent(log: Log, dataset: str, analyst: str | None = None) -> Fraction:
    """Return what was charged to a data set, by everybody or by one analyst."""
    columns = {} if analyst is None else {"analyst": log.analyst_id(analyst)}
    line = log.last("charge", dataset=dataset, **columns)
    return Fraction(0 if line is None else line.body["analyst_spent" if columns else "dataset_spent"])


def cap(log: Log, dataset: str, analyst: str | None = None) -> Fraction | None:
    """Return what may be spent on a data set in all, or by one analyst if that was set."""
    line = log.last("cap", dataset=dataset, analyst=None if analyst is None else log.analyst_id(analyst))
    return None if line is None else Fraction(line.body["cap"])


def accounts(log: Log, dataset: str, analyst: str) -> tuple[Account, Account]:
    """Return the account of a data set and an analyst's own on it; LedgerError if there is no such data set."""
    allowed = cap(log, dataset)
    if allowed is None:
        raise LedgerError(f"the ledger '{log.path}' has no data set '{dataset}'; open the table again.")
    everybody = Account(f"ledger '{dataset}'", spent(log, dataset), allowed)
    own = f"the budget of '{analyst}' on '{dataset}'"
    return everybody, Account(own, spent(log, dataset, analyst), cap(log, dataset, analyst))


def analysts(log: Log, dataset: str) -> list[str]:
    """Return the names of everyone with an entry, a reservation or a cap of their own."""
    query = "SELECT 1 FROM lines WHERE dataset = ? AND analyst = ? AND kind IN ('charge', 'hold', 'cap') LIMIT 1"
    return sorted(name for identity, name in log.analysts().items() if log.run(query, dataset, identity).fetchone())


def open_holds(log: Log, dataset: str) -> dict[int, Hold]:
    """Return the holds that have not ended, by their numbers."""
    holds = {}
    for (number,) in log.run("SELECT hold FROM open_holds WHERE dataset = ? ORDER BY hold", dataset).fetchall():
        line, paid = log.last("hold", serial=number), log.last("charge", reference=number)
        assert line is not None
        used = Fraction(0 if paid is None else paid.body["reservation_spent"])
        name = log.analyst_name(line.analyst)
        holds[number] = Hold(number, name, Fraction(line.body["held"]), used, line.note["at"])
    return holds


def keyed(log: Log, dataset: str, analyst: str, key: str) -> Line | None:
    """Return the charge under an analyst's key, if there is one."""
    return log.last("charge", dataset=dataset, analyst=log.analyst_id(analyst), key=key)


def standing(log: Log, dataset: str, analyst: str, key: str | None, fingerprint: str) -> Entry | None:
    """Return the entry under an analyst's key, if there is one; KeyReused if it is for something else."""
    line = None if key is None else keyed(log, dataset, analyst, key)
    if line is None:
        return None
    if line.body["fingerprint"] != fingerprint:
        raise KeyReused(f"the key '{key}' stands for another scope, question or epsilon; use a new key for this.")
    stored = answer(log, line.serial)
    return entry_of(line, analyst, None if stored is None else stored.text)


def answer(log: Log, entry: int) -> Answer | None:
    """Return the stored answer of an entry, if there is one."""
    line = log.last("answer", reference=entry)
    return None if line is None else Answer(_released(line), line.note["opening"])


def entries(log: Log, dataset: str, analyst: str | None) -> list[Entry]:
    """Return all charges to a data set, or those of one analyst, with their answers."""
    names = log.analysts()
    condition, values = "kind = 'charge' AND dataset = ?", [dataset]
    if analyst is not None:
        condition, values = f"{condition} AND analyst = ?", [dataset, log.analyst_id(analyst)]
    answered = f"kind = 'answer' AND reference IN (SELECT serial FROM lines WHERE {condition})"
    answers = {line.body["entry"]: _released(line) for line in log.lines(answered, *values)}
    charges = log.lines(f"{condition} ORDER BY number", *values)
    return [entry_of(line, names[str(line.analyst)], answers.get(line.serial)) for line in charges]


def entry_of(line: Line, analyst: str, answer: str | None) -> Entry:
    """Return the entry that the line of a charge is."""
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


def write_charge(
    log: Log, analyst: str, charge: Charge, terms: Terms, accounts: Sequence[Account], held: Hold | None = None
) -> Line:
    """Write the line of a charge; `accounts` and `held` are those before it."""
    everybody, own = accounts
    body = {
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
    body = {name: value for name, value in body.items() if value is not None}
    note = {"opening": charge.opening_token, "question": charge.question_json}
    return log.append("charge", terms.dataset, log.new_analyst_id(analyst), body, note)


def _released(line: Line) -> str:
    """Return the text of an answer; ValueError if the line was written for another."""
    answer: str = line.note["answer"]
    if sha256(answer) != line.body["sha256"]:
        raise ValueError(f"the answer in line {line.number} is another")
    return answer


def open_hold(holds: Mapping[int, Hold], dataset: str, analyst: str, hold: int, loss: Fraction, asked: str) -> Hold:
    """Return an analyst's open hold; BudgetExceeded if it has ended."""
    held = holds.get(hold)
    if held is None or held.analyst != analyst:
        raise BudgetExceeded(
            f"cannot {asked}: reservation {hold} of '{analyst}' on '{dataset}' has ended. Reserve again, or ask the "
            "table itself.",
            requested=loss,
            remaining=Fraction(0),
        )
    return held


def rooms(
    accounts: Sequence[Account], holds: Mapping[int, Hold], analyst: str, limit: Fraction | None, held: Hold | None
) -> Iterator[Room]:
    """Return what the cap of the data set, and the analyst's own if there is one, leave to a charge.

    Write `open` for what the open holds have left: for the data set everybody's, for
    an analyst their own. A new hold, and a charge outside, need `spent + open + loss <=
    cap`. A charge that its hold can pay needs `spent + loss <= cap`; one that goes
    beyond needs room for what the other holds have left, too.

    So `spent <= cap` after every charge, whatever the holds say. And `spent + open <=
    cap` while no cap is lowered: what a hold pays moves from `open` to `spent`, all
    else was checked against the sum, and an end only lowers it. Hence a charge that
    its hold can pay is never refused: `spent + loss <= spent + open`.

    Parameters
    ----------
    accounts : sequence of Account
        The data set's, and the analyst's own.
    holds : mapping
        All open holds of the data set.
    analyst : str
    limit : Fraction or None
        A cap of this opening of the data; a hold had to pass it when it was made.
    held : Hold or None
        The hold that pays.
    """
    for account, who in zip(accounts, (None, analyst), strict=True):
        if account.cap is None:
            continue
        cap, spent = account.cap, account.spent
        lower = cap if who is not None or limit is None else min(cap, limit)
        others = (hold.left for hold in holds.values() if who in (None, hold.analyst) and hold != held)
        reserved = sum(others, Fraction(0))
        inside = min(held.left, cap - spent) if held else min(Fraction(0), lower - spent)
        yield Room(account.whose, lower, max(inside, lower - spent - reserved), reserved)
