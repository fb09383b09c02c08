"""The audit bundle: all that somebody who examines a data set may ask of its ledger, as JSON.

It is made of the lines of the ledger alone: what was declared, allowed, asked and charged, and what was released, by
its hash. It has names of analysts and times, so it is for the owner and whoever examines it. No answer stands in it,
and nothing that depends on a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from privet.errors import LedgerError, ReceiptError, did_you_mean
from privet.kernel import Ledger, Line, unit_with
from privet.receipts import LIMITS, Receipts, rotations, vkeys
from privet.text import decimal_text, protected, short_text
from privet.version import __version__

VERSION = 1
_PAGE = 1000
# Events of a server that say who came, who was turned away, and who changed what.
ACCESS = (
    *("login", "console-sign-in", "console-sign-out", "console-refused", "unauthenticated"),
    *("not-allowed", "not-permitted", "not-found", "too-many", "budget-exceeded"),
)

COVERED = (
    "Values of rows: every answer is drawn by a mechanism whose loss is charged before rows are asked.",
    "The low bits of floating-point noise: all noise is drawn by exact integer samplers.",
    "Errors: no text depends on a row, and engines' messages are reduced to what failed.",
    "The ledger: no line depends on a row but by the hash of what was released; lines have salts.",
    "Memory and refusals: what a question needs is bounded by the public domain before it is charged.",
)
COVERED_BY_SERVERS = (
    "Time on a server, in part: replies leave and answers are written at ticks that follow from public bounds.",
)
NOT_COVERED = (
    "Time in the owner's own process, and on a server beyond one tick.",
    "Who controls the machine, its memory, its disks or its backups.",
    "Copies of the rows that are asked elsewhere, and other tables about the same people: losses add.",
    "Loads of the machine that other users of it can measure.",
)

# The five questions that research data centres ask of a use of data, and the parts of a bundle that answer each.
FIVE_SAFES = (
    {"safe": "projects", "asks": "Is this use appropriate?", "here": ["permits", "releases", "budget"]},
    {"safe": "people", "asks": "Who may use the data, and what have they done?", "here": ["budget", "events"]},
    {"safe": "data", "asks": "What could be disclosed, and about whom?", "here": ["promise", "unprotected"]},
    {"safe": "settings", "asks": "Does access limit misuse?", "here": ["events", "side_channels", "ledger"]},
    {"safe": "outputs", "asks": "Is what leaves safe?", "here": ["criteria", "releases", "models", "composition"]},
)


def audit_bundle(
    ledger: Ledger,
    dataset: str,
    *,
    analyst: str | None = None,
    permit: str | None = None,
    checked_by: str | None = None,
    domain_by: str | None = None,
) -> dict[str, Any]:
    """Return what a ledger says about a data set.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    analyst : str, optional
        Only what this analyst asked, got and did; no other analyst is named then.
    permit : str, optional
        Only what was charged under this permit, and what those did who asked under it.
    checked_by, domain_by : str, optional
        The owner's word: who checks what leaves, and who wrote the domain.

    Returns
    -------
    dict
        JSON values; amounts are exact fractions as texts.

    Raises
    ------
    LedgerError
        The ledger has no such data set, analyst or permit.
    """
    known = ledger.datasets()
    if dataset not in known:
        raise LedgerError(
            f"the ledger has no data set '{dataset}'{did_you_mean(dataset, known)}; it has "
            f"{', '.join(known) or 'none'}."
        )
    ledger.check()  # what the criteria say of it
    book = _Book(ledger, dataset)
    if analyst is not None and analyst not in book.names.values():
        names = sorted(book.names.values())
        raise LedgerError(
            f"nobody of the name '{analyst}' stands in the ledger{did_you_mean(analyst, names)}; it has "
            f"{', '.join(names) or 'none'}."
        )
    permits = book.permits()
    if permit is not None and permit not in permits:
        raise LedgerError(f"the data set has no permit '{permit}'; it has {', '.join(permits) or 'none'}.")

    def wanted(line: Line) -> bool:
        own = analyst is None or book.name(line) == analyst
        return own and (permit is None or line.body.get("permit") == permit)

    people = book.under(permit, analyst)
    charges = [line for line in book.of("charge") if wanted(line)]
    entries = {line.serial for line in charges}
    answers = {line.body["entry"]: line for line in book.of("answer")}
    models = [line for line in book.of("model") if wanted(line) or entries >= {*line.body["entries"]} != set()]
    models = [line for line in models if analyst is None or book.name(line) == analyst]
    if permit is not None:
        models = [line for line in models if entries & {*line.body["entries"]}]
    return {
        "privet-audit-bundle": VERSION,
        "dataset": dataset,
        "only": {"analyst": analyst, "permit": permit},
        "ledger": _ledger(ledger, book),
        "promise": _promise(book),
        "budget": _budget(ledger, book, people, permit),
        "permits": [
            _permit(ledger, book, name, analyst)
            for name in permits
            if (permit is None or name == permit) and (analyst is None or book.spent_under(name, analyst))
        ],
        "unprotected": _unprotected(book, domain_by),
        "releases": [_release(line, answers.get(line.serial), book) for line in charges],
        "criteria": _criteria(charges, answers, models),
        "models": {
            "policy": "A model leaves as a file with its hash in the ledger, made of releases alone, with a receipt.",
            "released": [_model(line, book) for line in models],
        },
        "checked_by": checked_by or "By program, against the criteria above. Who else looks is for the owner to say.",
        "events": [_event(line, book) for line in book.of("config") if _concerns(line, book, people, permit)],
        "side_channels": {
            "covered": [*COVERED, *(COVERED_BY_SERVERS if book.served else ())],
            "not_covered": list(NOT_COVERED),
        },
        "composition": {
            "rule": "Losses add; disjoint parts of one division share their maximum. Exact fractions, never rounded.",
            "proof": "docs/explanation/privacy.md",
        },
        "five_safes": FIVE_SAFES,
        "limits": LIMITS,
    }


class _Book:
    """The lines of a ledger that are about a data set, or about no data set, in order."""

    def __init__(self, ledger: Ledger, dataset: str) -> None:
        self.lines = [line for line in _every(ledger) if line.dataset in (None, dataset)]
        names = ledger.analyst_names()
        self.names = {line.analyst: names[line.analyst] for line in self.lines if line.analyst is not None}
        self.terms = next(line for line in reversed(self.lines) if line.kind == "register")
        asked = [line for line in self.of("config") if line.body.get("event") == "request" and "permit" in line.body]
        self.requested_under = {line.number: str(line.body["permit"]) for line in asked}  # the permit of each request
        self.served = any(line.kind == "config" and line.body.get("event") == "start" for line in self.lines)

    def under(self, permit: str | None, analyst: str | None) -> set[str | None] | None:
        """Return whom a bundle is about: one analyst, all who asked under a permit, or with None everybody."""
        if analyst is not None:
            return {analyst}
        if permit is None:
            return None
        return {self.name(line) for line in self.of("charge", "cap", "hold") if line.body.get("permit") == permit} - {
            None
        }

    def permits(self) -> list[str]:
        """Return the names of all permits that were announced for the data set, or asked under."""
        said = {line.body["permit"] for line in self.of("charge", "cap", "hold") if "permit" in line.body}
        announced = {name for name, line in self.policies().items() if self.terms.dataset in line.body["tables"]}
        return sorted({*map(str, said), *announced})

    def policies(self) -> dict[str, Line]:
        """Return the line that says last what each permit allows, by its name."""
        return {str(line.body["permit"]): line for line in self.of("config") if line.body.get("event") == "permit"}

    def spent_under(self, permit: str, analyst: str) -> bool:
        """Return whether an analyst was charged, or reserved, under a permit."""
        lines = (line for line in self.of("charge", "hold") if line.body.get("permit") == permit)
        return any(self.name(line) == analyst for line in lines)

    def of(self, *kinds: str) -> list[Line]:
        """Return the lines of some kinds."""
        return [line for line in self.lines if line.kind in kinds]

    def name(self, line: Line) -> str | None:
        """Return the name of the analyst whom a line is about."""
        return None if line.analyst is None else self.names[line.analyst]


def _every(ledger: Ledger) -> Iterator[Line]:
    after = 0
    while page := ledger.lines(after, _PAGE):
        yield from page
        after = page[-1].number


def _ledger(ledger: Ledger, book: _Book) -> dict[str, Any]:
    """Say which ledger it is, and sign how many lines it has, if that can be done here."""
    signed, why = None, None
    try:
        signed = Receipts(ledger).checkpoint()
    except (ReceiptError, LedgerError) as error:
        why = str(error)
    return {
        "id": ledger.id,
        "lines": len(ledger.leaves(0, 10**9)) if signed is None else signed.size,
        "version": __version__,
        "checkpoint": None if signed is None else signed.note,
        "unsigned": why,
        "keys": vkeys(ledger),
        "second_keys": vkeys(ledger, "second"),
        "rotations": len(rotations(ledger)),
        "served": book.served,
    }


def _promise(book: _Book) -> dict[str, Any]:
    terms = book.terms.body
    return {
        "protects": protected(terms["person"], terms["rows_per_person"]),
        "neighbours": "Two tables that differ in all rows of one person, who is added or removed.",
        "rows_per_person": terms["rows_per_person"],
        "person": terms["person"],
        "unit": terms["unit"],
        "delta": terms["delta"],
    }


def _budget(ledger: Ledger, book: _Book, people: set[str | None] | None, permit: str | None) -> dict[str, Any]:
    dataset = str(book.terms.dataset)
    cap, spent = ledger.cap(dataset) or Fraction(0), ledger.spent(dataset)
    delta = book.terms.body["delta"]
    unit = unit_with(None if delta is None else Fraction(delta))
    names = [str(name) for name in (ledger.analysts(dataset) if people is None else sorted(map(str, people)))]
    caps = [line for line in book.of("cap") if people is None or line.analyst is None or book.name(line) in people]
    if permit is not None:
        caps = [line for line in caps if line.body.get("permit") in (None, permit)]
    left = max(cap - spent, Fraction(0))
    return {
        "cap": str(cap),
        "spent": str(spent),
        "left": str(left),
        "left_as_epsilon": str(left if delta is None else unit.buys(left)),
        "refresh": "never",
        "analysts": [
            {
                "analyst": name,
                "cap": None if (own := ledger.cap(dataset, name)) is None else str(own),
                "spent": str(ledger.spent(dataset, name)),
                "left": str(ledger.remaining(dataset, name)),
            }
            for name in names
        ],
        "caps": [
            {
                "day": line.day,
                "analyst": book.name(line),
                "cap": line.body["cap"],
                **({"permit": line.body["permit"]} if "permit" in line.body else {}),
            }
            for line in caps
        ],
        "reservations": [
            {"id": hold.id, "analyst": hold.analyst, "held": str(hold.epsilon), "spent": str(hold.spent)}
            for hold in ledger.holds(dataset)
            if people is None or hold.analyst in people
        ],
    }


def _permit(ledger: Ledger, book: _Book, permit: str, analyst: str | None) -> dict[str, Any]:
    """Return what a permit may spend on the data set, has spent, and what its owner has said of it last."""
    dataset = str(book.terms.dataset)
    cap, line = ledger.cap(dataset, None, permit), book.policies().get(permit)
    known = ("analysts", "spenders", "purposes", "expires", "approvals", "release")
    policy = {} if line is None else {name: line.body[name] for name in known}
    if analyst is not None:  # such a bundle names nobody else
        policy |= {name: [own for own in policy.get(name, ()) if own == analyst] for name in ("analysts", "spenders")}
    return {
        "permit": permit,
        "cap": None if cap is None else str(cap),
        "spent": str(ledger.permit_spent(dataset, permit)),
        "since": None if line is None else line.day,
        "policy": policy,
    }


def _concerns(line: Line, book: _Book, people: set[str | None] | None, permit: str | None) -> bool:
    """Return whether an event is about the people, or the permit, of a bundle."""
    if people is None or book.name(line) in people:
        return True
    if permit is None:
        return False
    return permit in (line.body.get("permit"), book.requested_under.get(int(line.body.get("request", 0))))


def _unprotected(book: _Book, domain_by: str | None) -> dict[str, Any]:
    declared = [
        {"day": line.day, "domain": line.body["domain"], "rows_per_person": line.body["rows_per_person"]}
        for line in book.of("register")
    ]
    return {
        "what": "The domain: columns, values, bounds and how many rows a person may have. No statistic is released "
        "without noise.",
        "domain_sha256": book.terms.body["domain"],
        "columns": sorted(book.terms.body["cells"]),
        "declared": declared,
        "written_by": domain_by or "For the owner to say.",
    }


def _release(line: Line, answer: Line | None, book: _Book) -> dict[str, Any]:
    body = line.body
    return {
        "entry": line.serial,
        "line": line.number,
        "at": line.note["at"],
        "analyst": book.name(line),
        "question": body["question"],
        "scope": body["scope"],
        "epsilon": body["epsilon"],
        "loss": body["loss"],
        "spent_then": body["dataset_spent"],
        "cap_then": body["dataset_cap"],
        "permit": body.get("permit"),
        "purpose": body.get("purpose"),
        "released": answer is not None,
        "sha256": None if answer is None else answer.body["sha256"],
        "private": None if answer is None else answer.body["private"],
    }


def _model(line: Line, book: _Book) -> dict[str, Any]:
    known = ("algorithm", "epsilon", "spent", "entries", "sha256")
    facts: dict[str, Any] = {name: line.body[name] for name in known if name in line.body}
    return {"model": line.serial, "line": line.number, "day": line.day, "analyst": book.name(line), **facts}


def _event(line: Line, book: _Book) -> dict[str, Any]:
    facts = {name: value for name, value in line.body.items() if name != "event"}
    return {
        "line": line.number,
        "at": line.note["at"],
        "event": line.body.get("event"),
        "dataset": line.dataset,
        "analyst": book.name(line),
        "facts": facts,
    }


def _criteria(charges: list[Line], answers: dict[int, Line], models: list[Line]) -> list[dict[str, Any]]:
    """Return rules that a program can decide, and whether what is listed keeps them."""
    entries = {line.serial: line for line in charges}

    def within_cap(line: Line) -> bool:
        within = Fraction(line.body["dataset_spent"]) <= Fraction(line.body["dataset_cap"])
        return within or str(line.body["question"]).startswith("re-price ")  # what was spent before costs more since

    own = [answer for entry, answer in answers.items() if entry in entries]
    rules = {
        "Every charge was within the cap of the data set when it was made, but for re-pricing.": all(
            within_cap(line) for line in charges
        ),
        "Every answer stands after the charge that paid for it.": all(
            entries[answer.body["entry"]].number < answer.number for answer in own
        ),
        "The noise of every answer was real: none was drawn from a seed.": all(
            answer.body["private"] is True for answer in own
        ),
        "Every model was made of entries that are listed here.": all(
            {*line.body["entries"]} <= {*entries} for line in models
        ),
        "Numbers, totals, caps and hashes of all lines of the ledger were computed again, and agree.": True,
    }
    return [{"rule": rule, "kept": kept} for rule, kept in rules.items()]


def amount(text: str) -> str:
    """Return an exact amount as people read it: where it takes long to write in full, about how much it is, too."""
    exact, short = decimal_text(Fraction(text)), short_text(Fraction(text))
    return exact if len(exact) < 40 else f"about {short}, which is {exact}"
