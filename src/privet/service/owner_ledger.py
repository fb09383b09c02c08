"""What owners read of a ledger: the budget of each of their tables, and the lines of the log, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privet.errors import LedgerError
from privet.owner_reports import audit_bundle, registry_entry, to_yaml
from privet.service import api
from privet.service.boundary import Call, Refusal
from privet.service.server import Service

PAGE, MOST = 200, 2000  # lines of one reply: where nothing is said, and at most
_NOT_TOLD = ("fingerprint",)  # hashes what names the rows


def budgets(service: Service, call: Call) -> api.TableBudgetsReply:
    """Return what everybody together has spent of each table, and may spend."""
    return api.TableBudgetsReply(tables=[_budget(service, table) for table in service.access.tables(call.caller)])


def _budget(service: Service, table: str) -> api.TableBudgetReply:
    session = service.sessions[table]
    ledger, dataset, (unit, delta) = session.ledger, session.dataset, service.unit(session)
    held = sum((hold.epsilon - hold.spent for hold in ledger.holds(dataset)), Fraction(0))
    return api.TableBudgetReply(
        table=table,
        unit=unit,
        delta=delta,
        cap=str(ledger.cap(dataset)),
        spent=str(ledger.spent(dataset)),
        held=str(max(held, Fraction(0))),
        rows_per_person=session.domain.rows_per_person,
        person=session.domain.person,
        fingerprint=session.domain.fingerprint,
    )


def lines(service: Service, call: Call) -> api.LinesReply:
    """Return lines of the log on the owner's tables, newest first, without answers and models themselves."""
    before = int(call.query.get("before", "0")) or 2**53
    most = min(int(call.query.get("most", "0")) or PAGE, MOST)
    page = service.ledger.latest(before, most)
    tables = {service.sessions[table].dataset: table for table in service.access.tables(call.caller)}
    replies = [
        api.LineReply(
            number=line.number,
            at=line.note["at"],
            kind=line.kind,
            serial=line.serial,
            table=None if line.dataset is None else tables[line.dataset],
            analyst=name,
            facts=visible_facts(line.body, call.caller.token.tables),
        )
        for line, name in page
        if line.dataset in tables or (line.dataset is None and concerns(line.body, call.caller.token.tables))
    ]
    return api.LinesReply(lines=replies, next=page[-1][0].number if len(page) == most else None)


def audit(service: Service, call: Call) -> api.AuditReply:
    """Return what the ledger says about a table, about one analyst or permit on it, for whoever audits it."""
    assert call.session is not None
    own, analyst, permit = call.caller.token.tables, call.query.get("analyst"), call.query.get("permit")
    try:
        bundle = audit_bundle(service.ledger, call.session.dataset, analyst=analyst, permit=permit)
    except LedgerError:  # its words list names, some of them from other tables
        raise Refusal("not-found", "nobody of this name asked this table, or it has no such permit.") from None
    seen = [event for event in bundle["events"] if concerns(event["facts"], own)]
    bundle["events"] = [{**event, "facts": visible_facts(event["facts"], own)} for event in seen]
    if bundle["ledger"]["unsigned"] is not None:  # its words may name a file of this server
        bundle["ledger"]["unsigned"] = "This server has no key of its ledger."
    return api.AuditReply(bundle=bundle)


def registry(service: Service, call: Call) -> api.RegistryReply:
    """Return an entry about a table for the registry of deployments, as its schema wants it."""
    assert call.session is not None
    entry = registry_entry(service.ledger, call.session.dataset)
    return api.RegistryReply(entry=entry, text=to_yaml(entry))


def concerns(facts: Mapping[str, Any], tables: tuple[str, ...] | None) -> bool:
    """Return whether a line of no one table, about a permit or a grant of several, is about one of an owner's token.

    >>> concerns({"permit": "p", "tables": {"b": None}}, ("a",)), concerns({"tables": ["a", "b"]}, ("a",))
    (False, True)
    """
    named = facts.get("tables")
    return tables is None or not isinstance(named, dict) or not named or any(name in tables for name in named)


def visible_facts(facts: Mapping[str, Any], tables: tuple[str, ...] | None) -> dict[str, Any]:
    """Return what an owner may know of a line: lists of tables name those of their token alone.

    >>> visible_facts({"event": "grant", "tables": {"a": "1", "b": None}, "fingerprint": "f3"}, ("a",))
    {'event': 'grant', 'tables': {'a': '1'}}
    """
    told = {name: value for name, value in facts.items() if name not in _NOT_TOLD}
    named = told.get("tables")
    if tables is not None and isinstance(named, dict):
        told["tables"] = {name: value for name, value in named.items() if name in tables}
    elif tables is not None and isinstance(named, list):
        told["tables"] = [name for name in named if name in tables]
    return told
