"""What analysts ask of a server: one function for each route, which runs in a thread behind the boundary."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privet import ledger_lines
from privet.errors import LedgerError, PrivetError
from privet.kernel import PerPart, Question, Rho, Session, Under, as_share
from privet.ledger_lines import StoredModel
from privet.question_json import (
    QUESTIONS,
    amount_from_json,
    amounts_from_json,
    model_from_json,
    question_from_json,
)
from privet.service import api
from privet.service.boundary import Call, Refusal, encoded
from privet.service.jobs import TICKS, Job
from privet.service.permits import ANSWERS
from privet.service.permits import MODELS as MODELS_LEAVE
from privet.service.server import Service
from privet.service.sittings import Scope, Sitting
from privet.version import __version__

PAGE = 200  # entries of one reply
MODELS = 20  # of one reply: each is read whole, to be compared with its hash


# -- what is asked ----------------------------------------------------------------------


def permit_of(service: Service, call: Call, release: str | None = None, spends: bool = True) -> Under | None:
    """Return the permit that a request is made under, if it allows the request; None for the caller's own grant.

    `release` is what would leave, and `spends` whether something is charged or reserved.
    """
    named = call.body.under
    names = (None, None) if named is None else (named.permit, named.purpose)
    permit = service.access.under(call.caller.name, call.table, *names)
    if permit is None:
        return None
    if spends:
        permit.check_spending(call.caller.name)
    if release is not None:
        permit.check_release(release)
    return Under(permit.name, names[1])


def _sitting(service: Service, call: Call, release: str | None = ANSWERS, spends: bool = True) -> Sitting:
    """Return the caller's sitting at the table."""
    assert call.session is not None
    under = permit_of(service, call, release, spends)
    return service.sittings.of(call.table, call.session, call.caller.name, call.body.sitting, under)


def _scope(service: Service, call: Call, release: str | None = ANSWERS, spends: bool = True) -> tuple[Sitting, Scope]:
    """Return the caller's sitting, and the rows that they ask about."""
    sitting = _sitting(service, call, release, spends)
    scope = sitting.scope(call.body.rows, call.body.hold)
    return sitting, scope._replace(session=replace(scope.session, limit=service.limit(call.table)))


def answer(service: Service, call: Call) -> api.AnswerReply:
    sitting, scope = _scope(service, call)
    question = _question(call.body.question)
    epsilons = _asked(scope.session, amounts_from_json(call.body.epsilon, len(scope.sets)))
    answers = scope.session.answers(question, scope.sets, epsilons, call.body.key)
    sitting.keep_refinable(scope, question, answers)
    unit, delta = service.unit(scope.session)
    return api.AnswerReply(
        answer=list(answers.noisy), private=answers.private, entry=answers.entry, unit=unit, delta=delta
    )


def quote(service: Service, call: Call) -> api.QuoteReply:
    _, scope = _scope(service, call, None, spends=False)
    epsilons = _asked(scope.session, amounts_from_json(call.body.epsilon, len(scope.sets)))
    question = _question(call.body.question)
    loss = scope.session.quote(question, scope.sets, epsilons) if len(scope.sets) else Fraction(0)
    left = scope.session.remaining()
    unit, delta = service.unit(scope.session)
    return api.QuoteReply(loss=str(loss), remaining=str(left), fits=loss <= left, unit=unit, delta=delta)


def remaining(service: Service, call: Call) -> api.RemainingReply:
    _, scope = _scope(service, call, None, spends=False)
    left = scope.session.headroom(scope.sets)
    single = len(scope.sets) == 1
    return api.RemainingReply(
        remaining=_amounts(left), spent=str(_spent(scope.session, scope.sets)) if single else None
    )


def refine(service: Service, call: Call) -> api.RefineReply:
    assert call.session is not None
    epsilons = _asked(call.session, amounts_from_json(call.body.epsilon, len(call.body.parts)))
    losses = call.session.amounts(epsilons, len(call.body.parts))
    levels = _sitting(service, call).refined(call.body.entry, call.body.parts, losses)
    return api.RefineReply(
        levels=[
            api.LevelReply(epsilon=str(level.loss), value=level.value, entry=level.entry, private=level.private)
            for level in levels
        ]
    )


def hold(service: Service, call: Call) -> api.DoneReply:
    sitting, scope = _scope(service, call, None)
    amount = _asked(scope.session, PerPart.same(amount_from_json(call.body.epsilon), 1))
    sitting.hold(call.body.id, scope, scope.session.amounts(amount, 1)[0])
    return api.DoneReply()


def end_hold(service: Service, call: Call) -> api.DoneReply:
    service.sittings.end_hold(call.table, call.caller.name, call.body.sitting, call.path["hold"])
    return api.DoneReply()


def monitor(service: Service, call: Call) -> api.MonitorReply:
    sitting, scope = _scope(service, call)
    accuracy = as_share(amount_from_json(call.body.accuracy), "an accuracy")
    amount = _asked(scope.session, PerPart.same(amount_from_json(call.body.epsilon), 1))[0]
    monitor = sitting.monitor(call.body.id, scope, accuracy, amount)
    return api.MonitorReply(id=call.body.id, epsilon=str(monitor.epsilon), private=monitor.private)


def check(service: Service, call: Call) -> api.CheckReply:
    model = model_from_json(call.body.model)
    return api.CheckReply(reached=_sitting(service, call).check(call.path["monitor"], call.body.check, model))


def close_sitting(service: Service, call: Call) -> api.DoneReply:
    service.sittings.close(call.table, call.caller.name, call.body.sitting)
    return api.DoneReply()


# -- what there is ----------------------------------------------------------------------


def tables(service: Service, call: Call) -> api.TablesReply:
    return api.TablesReply(tables=service.access.tables(call.caller))


def describe(service: Service, call: Call) -> api.TableReply:
    session = call.session
    assert session is not None
    unit, delta = service.unit(session)
    return api.TableReply(
        table=call.table,
        analyst=call.caller.name,
        domain=session.domain.to_toml(),
        fingerprint=session.domain.fingerprint,
        unit=unit,
        delta=delta,
        private=session.entropy.private,
        access=f"{session.engine.name} engine, {session.access or 'in memory'}",
        questions=sorted(QUESTIONS),
        api=api.VERSION,
        version=__version__,
        tick=service.ticks.get(call.table, 0.0),
    )


def budget(service: Service, call: Call) -> api.BudgetReply:
    session, name = call.session, call.caller.name
    assert session is not None
    ledger, dataset = session.ledger, session.dataset
    unit, delta = service.unit(session)
    cap = ledger.cap(dataset, name)
    holds = [hold for hold in ledger.holds(dataset) if hold.analyst == name]
    granted = service.access.source(name, call.table) is not None
    permits = [own for own in service.access.permits_of(name) if call.table in own.tables]
    spending = [own.name for own in permits if name in own.spenders] or [own.name for own in permits]
    left = [
        ledger.remaining(dataset, name, service.limit(call.table), permit=permit)
        for permit in ([None] if granted else spending)
    ]
    return api.BudgetReply(
        unit=unit,
        delta=delta,
        spent=str(ledger.spent(dataset, name)),
        remaining=str(max(left, default=Fraction(0))),
        cap=None if cap is None else str(cap),
        granted=granted,
        dataset_cap=str(ledger.cap(dataset)),
        dataset_spent=str(ledger.spent(dataset)),
        holds=[api.HoldReply(id=hold.id, epsilon=str(hold.epsilon), spent=str(hold.spent)) for hold in holds],
    )


def entries(service: Service, call: Call) -> api.EntriesReply:
    session = call.session
    assert session is not None
    after = int(call.query.get("after", "0"))
    entries = session.ledger.page(session.dataset, call.caller.name, after, PAGE + 1)
    page = entries[:PAGE]
    return api.EntriesReply(
        entries=[
            api.EntryReply(
                id=entry.id,
                scope=entry.scope,
                question=entry.question,
                epsilon=entry.epsilon,
                loss=str(entry.loss),
                key=entry.key,
                at=entry.at,
                # an answer that has not left yet is none: see `_run`
                answered=answered and (call.caller.name, call.table, entry.key) not in service.keys,
            )
            for entry, answered in page
        ],
        next=page[-1][0].id if len(entries) > len(page) else None,
    )


# -- fits -------------------------------------------------------------------------------


def fit(service: Service, call: Call) -> api.JobReply:
    assert call.session is not None
    under, name, table = permit_of(service, call, MODELS_LEAVE), call.caller.name, call.table
    tick, session = service.ticks.get(table, 0.0), replace(call.session, limit=service.limit(table), under=under)

    def permitted() -> bool:
        service.access.refresh_stale()  # another server of the ledger may know more
        try:
            service.access.under(name, table, *(under or (None, None)))
        except PrivetError:
            return False
        return not service.access.tokens.revoked(call.caller.token.id)

    return service.jobs.start(name, table, session, call.body, tick, permitted).reply()


def job(service: Service, call: Call) -> api.JobReply:
    return _job(service, call).reply()


def cancel(service: Service, call: Call) -> api.JobReply:
    job = _job(service, call)
    job.cancelled = True
    return job.reply()


def _job(service: Service, call: Call) -> Job:
    job = service.jobs.find(call.path["job"], call.caller.name)
    if job is None or job.table not in service.access.tables(call.caller):
        raise Refusal("not-found", "there is no such job, or it is not yours.")
    return job


def _may_follow(service: Service, call: Call, job: Job) -> bool:
    """Return whether the token that a stream was opened with is live, and the table still the caller's."""
    try:
        service.access.refresh_stale()
    except LedgerError:
        return False
    caller = service.access.caller_of(call.caller.token.id)
    return caller is not None and job.table in service.access.tables(caller)


def job_events(service: Service, call: Call, last: str) -> AsyncIterator[bytes]:
    """Send what is told of a job as server-sent events, after the last that was seen, until it has ended."""
    job, name = _job(service, call), call.caller.name
    if service.streams[name] >= 2 * service.limits.jobs:
        raise Refusal("too-many", "you follow as many jobs as one may; poll them.", {"Retry-After": "10"})
    after = int(last) if re.fullmatch(r"[0-9]{1,9}", last) else -1

    async def events() -> AsyncIterator[bytes]:
        sent = after
        service.streams[name] += 1
        try:
            loop = asyncio.get_running_loop()
            while not service.stopping and await loop.run_in_executor(service.guards, _may_follow, service, call, job):
                number, seen = job.visible()
                if number > sent:
                    yield b"id: %d\ndata: %s\n\n" % (number, encoded(job.reply()))
                    sent = number
                if seen.ended:
                    return
                await asyncio.sleep(max(0.05, TICKS * job.tick))
        finally:
            service.streams[name] -= 1

    return events()


def models(service: Service, call: Call) -> api.ModelsReply:
    session = call.session
    assert session is not None
    after = int(call.query.get("after", "0"))
    models = ledger_lines.models(session.ledger, session.dataset, call.caller.name, after, MODELS + 1)
    facts = [api.ModelFacts(id=model.id, key=model.key, facts=model.facts) for model in models[:MODELS]]
    return api.ModelsReply(models=facts, next=facts[-1].id if len(models) > MODELS else None)


def own_model(service: Service, call: Call) -> StoredModel:
    """Return the caller's model that a path names, if it may leave now."""
    session, wanted = call.session, number_of(call.path["model"])
    assert session is not None
    models = ledger_lines.models(session.ledger, session.dataset, call.caller.name, wanted - 1, 1) if wanted else []
    if not models or models[0].id != wanted:
        raise Refusal("not-found", "there is no such model, or it is not yours.")
    service.access.check_release(call.caller.name, call.table, models[0].facts.get("permit"), MODELS_LEAVE)
    return models[0]


def number_of(text: str) -> int:
    """Return the number of a thing that a path names; 0, which nothing has, if it is none."""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,14}", text) else 0


def model(service: Service, call: Call) -> api.ModelReply:
    model = own_model(service, call)
    return api.ModelReply(id=model.id, key=model.key, facts=model.facts, model=json.loads(model.text))


def _asked(session: Session, amounts: PerPart[Fraction]) -> PerPart[Any]:
    """Return what is asked for: amounts on the wire are losses, in the unit of the table."""
    return amounts if session.unit.delta is None else amounts.map(Rho)


def _question(content: Mapping[str, Any]) -> Question[Any]:
    return question_from_json(content)


def _amounts(amounts: PerPart[Fraction]) -> dict[str, Any]:
    content = amounts.to_json(str)
    assert isinstance(content, dict)
    return content


def _spent(session: Session, sets: Any) -> Fraction:
    if sets.scopes.is_root:
        return session.ledger.spent(session.dataset, session.analyst)
    spent: Fraction = sets.scopes.spent
    return spent
