"""What owners read of a ledger: the budget of each of their tables, and the lines of the log, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from privet import ledger_lines
from privet.errors import LedgerError
from privet.owner_reports import audit_bundle, registry_entry, to_yaml
from privet.service import api
from privet.service.boundary import Call, Refusal
from privet.service.permissions import Caller
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
        spent_by={name: str(ledger.spent(dataset, name)) for name in ledger.analysts(dataset)},
        rows_per_person=session.domain.rows_per_person,
        person=session.domain.person,
        fingerprint=session.domain.fingerprint,
    )


def lines(service: Service, call: Call) -> api.LinesReply:
    """Return lines of the log on the owner's tables, newest first, without answers and models themselves."""
    before = int(call.query.get("before", "0")) or 2**53
    most = min(int(call.query.get("most", "0")) or PAGE, MOST)
    page = ledger_lines.latest(service.ledger, before, most)
    view = OwnersView(service, call.caller)
    replies = [
        api.LineReply(
            number=line.number,
            at=line.note["at"],
            kind=line.kind,
            serial=line.serial,
            table=None if line.dataset is None else view.tables[line.dataset],
            analyst=name,
            facts=view.facts(line.body),
        )
        for line, name in page
        if view.shows(line.dataset, name, line.body)
    ]
    return api.LinesReply(lines=replies, next=page[-1][0].number if len(page) == most else None)


def audit(service: Service, call: Call) -> api.AuditReply:
    """Return what the ledger says about a table, about one analyst or permit on it, for whoever audits it."""
    assert call.session is not None
    view, analyst, permit = OwnersView(service, call.caller), call.query.get("analyst"), call.query.get("permit")
    unknown = Refusal("not-found", "nobody of this name asked this table, or it has no such permit.")
    if analyst is not None and not view.knows(analyst):
        raise unknown
    try:
        bundle = audit_bundle(service.ledger, call.session.dataset, analyst=analyst, permit=permit)
    except LedgerError:  # its words list names, some of them from other tables
        raise unknown from None
    seen = [event for event in bundle["events"] if view.shows(event["dataset"], event["analyst"], event["facts"])]
    bundle["events"] = [{**event, "facts": view.facts(event["facts"])} for event in seen]
    if bundle["ledger"]["unsigned"] is not None:  # its words may name a file of this server
        bundle["ledger"]["unsigned"] = "This server has no key of its ledger."
    return api.AuditReply(bundle=bundle)


def registry(service: Service, call: Call) -> api.RegistryReply:
    """Return an entry about a table for the registry of deployments, as its schema wants it."""
    assert call.session is not None
    entry = registry_entry(service.ledger, call.session.dataset)
    return api.RegistryReply(entry=entry, text=to_yaml(entry))


class OwnersView:
    """What an owner may know of the ledger: an owner whose token is for some tables knows nothing of the others.

    A line of no one table, such as a sign-in, is shown if it is about one of their tables, or about somebody who has,
    or had, to do with one of them.

    Parameters
    ----------
    service : Service
    caller : Caller
        The owner.
    """

    def __init__(self, service: Service, caller: Caller) -> None:
        own = caller.token.tables
        self._only = None if own is None else frozenset(own)
        self.tables = {service.sessions[table].dataset: table for table in service.access.tables(caller)}
        self._people = _people(service, self.tables) | {caller.name, *service.config.owners}

    def knows(self, analyst: str) -> bool:
        """Return whether somebody has, or had, to do with a table of theirs."""
        return self._only is None or analyst in self._people

    def shows(self, dataset: str | None, analyst: str | None, facts: Mapping[str, Any]) -> bool:
        """Return whether they may see a line."""
        if dataset is not None:
            return dataset in self.tables
        named = facts.get("tables")
        if self._only is not None and isinstance(named, dict | list) and named:
            return not self._only.isdisjoint(named)
        return analyst is None or self.knows(analyst)

    def facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what they may know of a line: lists of tables and analysts name theirs alone."""
        told = {name: value for name, value in facts.items() if name not in _NOT_TOLD}
        named = told.get("tables")
        if self._only is not None and isinstance(named, dict):
            told["tables"] = {name: value for name, value in named.items() if name in self._only}
        elif self._only is not None and isinstance(named, list):
            told["tables"] = [name for name in named if name in self._only]
        for people in ("analysts", "spenders"):
            if isinstance(told.get(people), list):
                told[people] = [name for name in told[people] if self.knows(name)]
        return told


def _people(service: Service, tables: Mapping[str, str]) -> set[str]:
    """Return all who have, or had, one of some tables by a grant, a permit or a token, or have asked it."""
    access, names = service.access, set(tables.values())
    configured = {name for name in access.analysts() if (grant := access.configured(name)) and names & {*grant.tables}}
    decided = {name for name, dataset in (*access.decisions.grants, *access.decisions.withdrawn) if dataset in tables}
    permitted = {name for permit in access.permits.values() if names & {*permit.tables} for name in permit.analysts}
    tokens = access.tokens.all() if service.config.analysts is None else ()  # there a token is a grant
    with_token = {token.name for token in tokens if token.tables is None or names & {*token.tables}}
    asked = {name for dataset in tables for name in service.ledger.analysts(dataset)}
    return configured | decided | permitted | with_token | asked
