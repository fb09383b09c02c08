"""What owners ask of a server, and what analysts ask of owners: one function for each route.

An owner's token may be for some tables alone: nothing is shown or done about others, and a thing of another table is
answered as one that is not there.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from privet import ledger_lines
from privet.errors import QuestionError
from privet.kernel import is_name
from privet.question_json import amount_from_json
from privet.service import api
from privet.service.boundary import Call, Refusal
from privet.service.decisions import BudgetRequest, OwnerGrant, Whose
from privet.service.owner_ledger import OwnersView
from privet.service.permits import MODELS, Permit
from privet.service.server import Service
from privet.service.tokens import ANALYST, Token
from privet.text import clean

PAGE = 200  # events of one reply

# -- requests for more budget -----------------------------------------------------------------------


def request_budget(service: Service, call: Call) -> api.RequestReply:
    """Write a request down; the same key finds the one that was written."""
    session, body = call.session, call.body
    assert session is not None
    amount, purpose = session.unit.amount(amount_from_json(body.epsilon)), clean(body.purpose)
    permit = service.access.under(call.caller.name, call.table, body.permit, body.purpose)
    if permit is not None:
        permit.check_spending(call.caller.name)
        if session.ledger.cap(session.dataset, permit=permit.name) is None:
            raise Refusal("refused", "this permit has no cap of its own on the table; ask for more without it.")
    made = service.access.decisions.request(session.dataset, call.caller.name, amount, purpose, body.key, body.permit)
    if (made.epsilon, made.purpose, made.permit) != (str(amount), purpose, body.permit):
        raise Refusal("key-reused", "the key stands for another request.")
    return _reply(service, made, call.table, owner=False)


def own_requests(service: Service, call: Call) -> api.RequestsReply:
    assert call.session is not None
    whose = call.caller.name, call.session.dataset
    own = [request for request in _requests(service) if (request.analyst, request.dataset) == whose]
    return api.RequestsReply(requests=[_reply(service, request, call.table, owner=False) for request in own])


def all_requests(service: Service, call: Call) -> api.RequestsReply:
    tables = _datasets(service, call)
    seen = [request for request in _requests(service) if request.dataset in tables]
    return api.RequestsReply(requests=[_reply(service, request, tables[request.dataset]) for request in seen])


def decide(service: Service, call: Call) -> api.RequestReply:
    """Grant or deny a request: a grant raises the analyst's cap, and the data set's if that is in its way."""
    number, tables = call.path["request"], _datasets(service, call)
    found = next((request for request in _requests(service) if str(request.id) == number), None)
    if found is None or found.dataset not in tables:
        raise Refusal("not-found", "there is no such request.")
    permit = None if found.permit is None else service.access.permits.get(found.permit)
    if call.body.granted and found.permit is not None:
        if permit is None or permit.ended(service.access.today):
            raise Refusal("refused", "the permit of this request has ended; deny it.")
        if call.caller.name in (*permit.analysts, found.analyst):
            raise Refusal("refused", "nobody approves a raise for themselves: you are an analyst of this permit.")
    approvals = 1 if permit is None else permit.approvals
    void = len(found.approved) - len(_agreed(service, found))
    decided = service.access.decisions.decide(found.id, call.body.granted, call.caller.name, approvals + void)
    if decided is None:
        raise Refusal("refused", "this request was decided before, or you have approved it: another owner must.")
    return _reply(service, decided, tables[decided.dataset])


def _requests(service: Service) -> list[BudgetRequest]:
    service.access.decisions.refresh()
    return list(service.access.decisions.requests.values())


def _agreed(service: Service, request: BudgetRequest) -> list[str]:
    """Return who has agreed to a request, without those who are no owners any more, or analysts of its permit now."""
    permit = None if request.permit is None else service.access.permits.get(request.permit)
    analysts = () if permit is None else permit.analysts
    return [name for name in request.approved if service.access.is_owner(name) and name not in analysts]


def _reply(service: Service, request: BudgetRequest, table: str, owner: bool = True) -> api.RequestReply:
    permit = None if request.permit is None else service.access.permits.get(request.permit)
    return api.RequestReply(
        id=request.id,
        analyst=request.analyst,
        table=table,
        epsilon=request.epsilon,
        purpose=request.purpose,
        state=request.state,
        permit=request.permit,
        approved=list(request.approved if request.state != "open" else _agreed(service, request)) if owner else [],
        approvals=1 if permit is None else permit.approvals,
    )


def _datasets(service: Service, call: Call) -> dict[str, str]:
    """Return the tables that an owner's token is for, by their names in the ledger."""
    return {service.sessions[table].dataset: table for table in service.access.tables(call.caller)}


# -- grants, caps and tokens ------------------------------------------------------------------------


def grants(service: Service, call: Call) -> api.GrantsReply:
    """Return who may use which table, by whose word, and what they have spent."""
    service.access.refresh()
    named = {token.name for token in service.access.tokens.all() if token.role == ANALYST}
    names = sorted({*service.access.analysts(), *named})
    listed = [_grant(service, name, table) for name in names for table in service.access.tables(call.caller)]
    return api.GrantsReply(grants=[grant for grant in listed if grant is not None])


def _grant(service: Service, analyst: str, table: str) -> api.GrantReply | None:
    access, session = service.access, service.sessions[table]
    dataset, ledger, pair = session.dataset, session.ledger, (analyst, session.dataset)
    source = access.source(analyst, table)
    configured, own = access.configured(analyst), access.decisions.grants.get(pair)
    if source is None and pair not in access.decisions.withdrawn and own is None:
        if configured is None or table not in configured.tables:
            return None
    expires = own.expires if own is not None else configured.expires if configured is not None else None
    cap, (unit, delta) = ledger.cap(dataset, analyst), service.unit(session)
    return api.GrantReply(
        analyst=analyst,
        table=table,
        source=source,
        expires=None if expires is None else expires.isoformat(),
        cap=None if cap is None else str(cap),
        raised=str(access.decisions.raised[Whose(dataset, analyst)]),
        spent=str(ledger.spent(dataset, analyst)),
        unit=unit,
        delta=delta,
    )


def grant(service: Service, call: Call) -> api.GrantReply:
    """Grant a table to an analyst, until a day and with a cap of their own if the owner says so."""
    body = call.body
    name, session = _analyst(body.analyst), service.sessions[_table(service, call, body.table)]
    configured = service.access.configured(name)
    if service.config.analysts is None:
        raise Refusal("refused", "this server has no configuration, so a token is a grant: make one for the analyst.")
    if configured is not None and body.table in configured.tables:
        if (name, session.dataset) not in service.access.decisions.withdrawn:
            raise Refusal("refused", "the configuration grants this table; raise the cap, or change the configuration.")
        if body.epsilon is not None or body.expires is not None:
            raise Refusal("refused", "the configuration says the cap and the last day; grant it again without them.")
    cap = None if body.epsilon is None else session.unit.amount(amount_from_json(body.epsilon))
    granted = OwnerGrant(cap, _day(body.expires), call.caller.name)
    service.access.decisions.grant(session.dataset, name, granted)
    made = _grant(service, name, body.table)
    assert made is not None
    return made


def withdraw(service: Service, call: Call) -> api.DoneReply:
    """Take a table from an analyst: what they have open ends, and it stays so until an owner grants it again."""
    body = call.body
    name, session = _analyst(body.analyst), service.sessions[_table(service, call, body.table)]
    service.access.refresh()
    permits = service.access.permits.values()
    permitted = any(name in permit.analysts and body.table in permit.tables for permit in permits)
    if not permitted and _grant(service, name, body.table) is None:
        raise Refusal("not-found", "there is no such grant.")
    service.access.decisions.withdraw(session.dataset, name, call.caller.name)
    service.end_of(name, body.table)
    return api.DoneReply()


def raise_cap(service: Service, call: Call) -> api.DoneReply:
    """Raise the cap of an analyst, or of a data set, by an amount; once for each key."""
    body = call.body
    name = None if body.analyst is None else _analyst(body.analyst)
    session = service.sessions[_table(service, call, body.table)]
    if body.permit is not None:
        _check_raise(service, call)
    if (name or body.permit) and session.ledger.cap(session.dataset, name, body.permit) is None:
        named = f"'{name}' has" if name is not None else f"the permit '{body.permit}' has"
        raise Refusal("refused", f"{named} no cap of its own on this table; raise that of the table, or of a permit.")
    amount = session.unit.amount(amount_from_json(body.epsilon))
    whose = Whose(session.dataset, name, body.permit)
    if not service.access.decisions.raise_cap(whose, amount, call.caller.name, body.key):
        raise Refusal("key-reused", "the key stands for another raise.")
    return api.DoneReply()


def _check_raise(service: Service, call: Call) -> None:
    """Refuse a raise of a permit's cap that is not one owner's to make."""
    permit = service.access.permits.get(call.body.permit)
    if permit is None or call.body.table not in permit.tables:
        raise Refusal("not-found", "there is no such permit.")
    if call.body.analyst is not None:
        raise Refusal("bad-question", "raise the cap of an analyst or of a permit, not both.")
    if permit.approvals > 1 or call.caller.name in permit.analysts:
        raise Refusal("refused", "an analyst requests a raise under this permit, and other owners approve it.")


def permits(service: Service, call: Call) -> api.PermitsReply:
    """Return the permits of an analyst, or those about an owner's tables, with what was spent under them."""
    service.access.refresh()
    tables, owner = set(service.access.tables(call.caller)), call.caller.role != ANALYST
    seen = list(service.access.permits.values()) if owner else service.access.permits_of(call.caller.name)
    listed = [_permit(service, call, own, tables, owner) for own in seen if tables & set(own.tables)]
    return api.PermitsReply(permits=listed)


def _permit(service: Service, call: Call, permit: Permit, tables: set[str], owner: bool) -> api.PermitReply:
    return api.PermitReply(
        permit=permit.name,
        tables=[_permit_table(service, permit, table) for table in permit.tables if table in tables],
        expires=None if permit.expires is None else permit.expires.isoformat(),
        ended=permit.ended(service.access.today),
        purposes=list(permit.purposes),
        release=["models" if what == MODELS else "answers" for what in permit.release],
        approvals=permit.approvals,
        spends=None if owner else call.caller.name in permit.spenders,
        analysts=list(permit.analysts) if owner else None,
        spenders=list(permit.spenders) if owner else None,
    )


def _permit_table(service: Service, permit: Permit, table: str) -> api.PermitTable:
    session = service.sessions[table]
    cap, (unit, delta) = session.ledger.cap(session.dataset, permit=permit.name), service.unit(session)
    return api.PermitTable(
        table=table,
        cap=None if cap is None else str(cap),
        raised=str(service.access.decisions.raised[Whose(session.dataset, None, permit.name)]),
        spent=str(session.ledger.permit_spent(session.dataset, permit.name)),
        unit=unit,
        delta=delta,
    )


def tokens(service: Service, call: Call) -> api.TokensReply:
    """Return what the ledger knows of all tokens for the owner's tables; no secret is kept anywhere."""
    service.access.refresh()
    now = datetime.now(UTC)
    seen = [token for token in service.access.tokens.all() if _sees(call, token) and token.live(now)]
    return api.TokensReply(tokens=[_token(token) for token in seen])


def create_token(service: Service, call: Call) -> api.NewTokenReply:
    """Make a token for an analyst and return its secret, which is kept nowhere. No token makes one for an owner."""
    body = call.body
    tables = call.caller.token.tables if body.tables is None else tuple(body.tables)
    for table in tables or ():
        _table(service, call, table)
    name = _analyst(body.analyst)
    service.access.refresh()
    known = name in service.access.analysts() and OwnersView(service, call.caller).knows(name)
    if service.config.analysts is not None and not known:
        raise Refusal("refused", "this analyst is granted nothing; grant a table first.")
    secret, token = service.access.tokens.create(name, ANALYST, tables, body.days)
    return api.NewTokenReply(secret=secret, token=_token(token))


def revoke_token(service: Service, call: Call) -> api.DoneReply:
    """End a token at once, on all servers of the ledger."""
    service.access.refresh()
    found = next((token for token in service.access.tokens.all() if token.id == call.path["token"]), None)
    if found is None or not _sees(call, found):
        raise Refusal("not-found", "there is no such token.")
    service.access.tokens.revoke(found.id)
    return api.DoneReply()


def _sees(call: Call, token: Token) -> bool:
    """Whether a token is for nothing but the tables of the owner who asks."""
    own = call.caller.token.tables
    return own is None or (token.tables is not None and set(token.tables) <= set(own))


def _token(token: Token) -> api.TokenReply:
    return api.TokenReply(
        id=token.id,
        name=token.name,
        role="owner" if token.role != ANALYST else "analyst",
        tables=None if token.tables is None else list(token.tables),
        expires=token.expires.isoformat(timespec="seconds"),
    )


def _table(service: Service, call: Call, table: str) -> str:
    if table not in service.access.tables(call.caller):
        raise Refusal("not-found", "there is no such table, or it is not yours.")
    return table


def _analyst(name: str) -> str:
    if not is_name(name):
        raise QuestionError("an analyst has a printable name of 1 to 200 characters.")
    return name


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise QuestionError("a day is written as 2027-12-31.") from None


# -- what happened ----------------------------------------------------------------------------------


def events(service: Service, call: Call) -> api.EventsReply:
    """Return what happened, on the tables that the owner's token is for."""
    page = ledger_lines.events(service.ledger, int(call.query.get("after", "0")), PAGE)
    view = OwnersView(service, call.caller)
    replies = [
        api.EventReply(
            number=event.number,
            at=event.at,
            event=event.what,
            table=event.dataset,
            analyst=event.analyst,
            facts=view.facts(event.facts),
        )
        for event in page
        if view.shows(event.dataset, event.analyst, event.facts)
    ]
    return api.EventsReply(events=replies, next=page[-1].number if len(page) == PAGE else None)


def reload_grants(service: Service, call: Call) -> api.DoneReply:
    """Read the configuration again; what is wrong with it is told where the server runs, as it may name any table."""
    service.reread()
    return api.DoneReply()
