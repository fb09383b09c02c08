"""The log of a ledger as people read it: each line in words, found by filters, exported as it is."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

from privet.service.api import LineReply
from privet.service.console.asking import Form
from privet.text import plain_words, rows_in_words, short_text

# Kinds that a filter offers, and what they are called.
GROUPS = {
    "charge": "Charges",
    "model": "Models",
    "decision": "Owners' decisions",
    "request": "Requests",
    "refusal": "Refusals",
    "access": "Sign-ins and tokens",
    "server": "Server and ledger",
}
_EVENTS = {
    "request": "request",
    **dict.fromkeys(("decision", "owner-grant", "withdrawal", "raise", "grant", "configured-cap"), "decision"),
    **dict.fromkeys(("owners", "permit", "permit-grant", "approval", "permit-withdrawal"), "decision"),
    **dict.fromkeys(("unauthenticated", "not-allowed", "not-found", "budget-exceeded", "too-many"), "refusal"),
    **dict.fromkeys(("not-permitted", "console-refused"), "refusal"),
    **dict.fromkeys(("login", "console-sign-in", "console-sign-out", "token", "revoke"), "access"),
}
_PLAIN = {
    "start": "The server was started",
    "login": "{analyst} used a token for the first time",
    "console-sign-in": "{analyst} signed in to the console",
    "console-sign-out": "{analyst} signed out of the console",
    "console-refused": "A sign-in to the console was refused",
    "unauthenticated": "A request without a valid token was refused",
    "not-allowed": "{analyst} was refused what is not for their role",
    "not-permitted": "{analyst} was refused what a permit does not allow",
    "not-found": "{analyst} was refused what is not there, or not theirs",
    "budget-exceeded": "{analyst} was refused: the budget does not have that much left",
    "too-many": "{analyst} was refused: too many requests",
    "token": "A token was made for {analyst}",
    "revoke": "A token of {analyst} was revoked",
    "fit": "{analyst} began a fit of {algorithm}",
    "request": "{analyst} asks for {epsilon} more: {purpose}",
    "approval": "{by} agreed to request {request} of {analyst}; another owner must agree, too",
    "withdrawal": "{by} took the table from {analyst}",
    "grant": "The configuration says what {analyst} may use",
    "owners": "The configuration says who the owners are",
    "permit": "The configuration says what the permit {permit} allows",
}
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LONGEST = 300  # characters of what a line says
_FEW = 4  # charges in a row that are shown one by one are fewer
MOST_SHOWN = 100  # lines of a page
COLUMNS = (
    "number",
    "at",
    "kind",
    "event",
    "table",
    "analyst",
    "entry",
    "question",
    "rows",
    "epsilon",
    "charged",
    "spent",
    "facts",
)


@dataclass(frozen=True)
class TimelineEntry:
    """A line of the log, in words; or several charges of one analyst in a row, as a fit makes them."""

    number: int
    at: str
    group: str
    words: str
    detail: str
    amount: str
    table: str | None
    analyst: str | None
    loss: Fraction = Fraction(0)
    rest: tuple[TimelineEntry, ...] = ()  # of several charges, each of them


def group_of(line: LineReply) -> str:
    """Return which filter finds a line."""
    if line.kind == "config":
        return _EVENTS.get(line.facts.get("event", ""), "server")
    return line.kind if line.kind in ("charge", "model") else "decision" if line.kind == "cap" else "server"


def entry_of(line: LineReply) -> TimelineEntry:
    """Return a line in words."""
    words, detail, amount = _told(line)
    texts, whose = (words[:_LONGEST], detail[:_LONGEST], amount), (line.table, line.analyst)
    loss = Fraction(line.facts["loss"]) if line.kind == "charge" else Fraction(0)
    return TimelineEntry(line.number, line.at, group_of(line), *texts, *whose, loss)


def folded(entries: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """Return entries with charges of one analyst to one table that follow each other as one entry."""
    told: list[TimelineEntry] = []
    for (group, *_), run in groupby(entries, lambda entry: (entry.group, entry.table, entry.analyst)):
        several = tuple(run)
        if group != "charge" or len(several) < _FEW:
            told += several
            continue
        last, total = several[0], sum((entry.loss for entry in several), Fraction(0))
        words = f"{last.analyst or 'everybody'} asked {len(several):,} questions"
        told.append(replace(last, words=words[:_LONGEST], detail="", amount=_amount(total), rest=several))
    return told


def _told(line: LineReply) -> tuple[str, str, str]:
    facts, who = line.facts, line.analyst or "everybody"
    match line.kind:
        case "charge":
            spent = f"with it {_amount(facts.get('dataset_spent'))} is spent in all"
            permit = f"; under {facts['permit']}: {facts.get('purpose') or 'no purpose'}" if facts.get("permit") else ""
            return (
                f"{who} asked {facts['question']}",
                f"on {rows_in_words(facts['scope'])}; {spent}{permit}",
                _amount(facts["loss"]),
            )
        case "cap":
            return f"The cap of {_whose(line)} is {_amount(facts['cap'])} now", "", ""
        case "model":
            what = f"{who} has model {line.serial}: {facts.get('algorithm', '')}"
            return what, f"made of {len(facts.get('entries', []))} charges, epsilon {_amount(facts.get('epsilon'))}", ""
        case "hold":
            return f"{who} reserved {_amount(facts.get('held'))}", f"reservation {line.serial}", ""
        case "end":
            return f"Reservation {facts.get('reservation')} of {who} ended", "", ""
        case "register" | "source":
            return (
                "The data set was registered" if line.kind == "register" else "The data set has another source",
                "",
                "",
            )
        case "key":
            return "A key signs checkpoints", str(facts.get("vkey", "")), ""
        case _:
            return _event(line, who)


def _whose(line: LineReply) -> str:
    """Return whose cap a line is about."""
    permit = line.facts.get("permit")
    return line.analyst or (f"the permit {permit}" if permit else "the table")


def _event(line: LineReply, who: str) -> tuple[str, str, str]:
    facts = line.facts
    event = str(facts.get("event", line.kind))
    by = str(facts.get("by", "An owner"))
    times = facts.get("repeated")
    repeated = "" if not isinstance(times, int) else "and once more" if times == 1 else f"and {times:,} times more"
    if event == "decision":
        what = "granted" if facts.get("granted") else "refused"
        amount = _amount(facts.get("own_raise"))
        return f"{by} {what} request {facts.get('request')} of {who}", repeated, f"+{amount}" if amount else ""
    if event == "configured-cap":
        return f"The configuration allows {_whose(line)} {_amount(facts.get('cap'))}", repeated, ""
    if event == "owner-grant":
        until = f"until {facts['expires']}" if facts.get("expires") else ""
        cap = f"with a cap of {_amount(facts['cap'])}" if facts.get("cap") else "without a cap of their own"
        return f"{by} granted the table to {who}", f"{cap} {until}".strip(), ""
    if event == "raise":
        return f"{by} raised the cap of {_whose(line)}", repeated, f"+{_amount(facts.get('amount'))}"
    if event in _PLAIN:
        values = {"algorithm": "a model", "by": by, **facts, "analyst": line.analyst or "somebody"}
        values["epsilon"] = _amount(values.get("epsilon"))
        return _PLAIN[event].format_map(_Known(values)), repeated or _allowed(facts), ""
    plain = {name: value for name, value in facts.items() if name != "event"}
    return (
        f"{event.replace('-', ' ').capitalize()}{f' of {line.analyst}' if line.analyst else ''}",
        plain_words(plain),
        "",
    )


def _allowed(facts: Mapping[str, Any]) -> str:
    """Return what a line says that a permit allows, in words; of other lines nothing."""
    if facts.get("event") != "permit":
        return ""
    lists = {name: ", ".join(map(str, facts.get(name) or ())) for name in ("analysts", "spenders", "release")}
    return "; ".join(
        (
            f"for {lists['analysts'] or 'nobody'}",
            f"may spend: {lists['spenders'] or 'nobody'}",
            f"purposes: {'; '.join(map(str, facts.get('purposes') or ())) or 'any'}",
            f"until {facts.get('expires') or 'the table is taken back'}",
            f"may leave: {lists['release']}",
            f"owners who must agree to a raise: {facts.get('approvals')}",
        )
    )


class _Known(dict[str, Any]):
    """Values for a sentence; what is not known is "?"."""

    def __missing__(self, key: str) -> str:
        return "?"


def _amount(value: object) -> str:
    try:
        return short_text(Fraction(str(value)))
    except (ValueError, ZeroDivisionError):
        return "" if value is None else str(value)


@dataclass(frozen=True)
class Filters:
    """What somebody looks for in the log."""

    table: str = ""
    analyst: str = ""
    group: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    @classmethod
    def of(cls, form: Form) -> Filters:
        """Return the filters of a form."""
        table, analyst, group, since, until, text = (form.text(field.name) for field in fields(cls))
        days = [day if _DAY.fullmatch(day) else "" for day in (since, until)]  # what no browser sends is no filter
        return cls(table, analyst, group, days[0], days[1], text)

    def finds(self, line: LineReply) -> bool:
        """Return whether a line is looked for."""
        if (self.table and line.table != self.table) or (self.analyst and line.analyst != self.analyst):
            return False
        if self.group and group_of(line) != self.group:
            return False
        if (self.since and line.at[:10] < self.since) or (self.until and line.at[:10] > self.until):
            return False
        if not self.text:
            return True
        words, detail, _ = _told(line)
        return self.text.casefold() in f"{words} {detail}".casefold()


def as_csv(lines: Iterable[LineReply]) -> str:
    """Return lines as a table. No cell begins with a sign that a spreadsheet takes for a formula."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for line in lines:
        facts, charge = line.facts, line.kind == "charge"
        cells = (
            *(line.number, line.at, line.kind, facts.get("event", ""), line.table or "", line.analyst or ""),
            line.serial if charge else "",
            *((facts["question"], facts["scope"], facts["epsilon"], facts["loss"]) if charge else ("", "", "", "")),
            facts.get("dataset_spent", ""),
            json.dumps(facts, ensure_ascii=False, sort_keys=True).replace(";", "\\u003b"),
        )
        writer.writerow([_plain_cell(str(cell)) for cell in cells])
    return file.getvalue()


def _plain_cell(text: str) -> str:
    """Return a cell that is no formula, nor two of which one is: half of Europe's spreadsheets divide at semicolons."""
    return re.sub(r"(^|;)(?=\s*[=+\-@\t\r])", r"\1'", text)


def as_lines(lines: Iterable[LineReply]) -> str:
    """Return lines as JSON, one for each line of the file."""
    names = ("number", "at", "kind", "serial", "table", "analyst", "facts")
    content = ({name: getattr(line, name) for name in names} for line in lines)
    return "".join(f"{json.dumps(line, ensure_ascii=False, sort_keys=True)}\n" for line in content)
