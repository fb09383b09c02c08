"""The server: routes, and the boundary around each of them.

Every request passes the same steps: its host, its token, its table, its rate, its size and its shape are checked
before anything is charged. Work on rows runs in threads. What leaves is a reply, or a problem that says whether
something was charged; no exception, and no text that depends on a row, passes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    KeyReused,
    LedgerError,
    PrivacyError,
    PrivetError,
    QuestionError,
)
from privet.kernel import Ledger, PerPart, Question, Rho, Session, as_share
from privet.question_json import (
    QUESTIONS,
    amount_from_json,
    amounts_from_json,
    model_from_json,
    question_from_json,
)
from privet.service import api
from privet.service.config import Config, Grant, Limits, is_loopback
from privet.service.jobs import TICKS, FitLost, Job, Jobs
from privet.service.permissions import AuditTrail, Buckets, Caller, Permissions
from privet.service.sittings import Sitting, Sittings, UnknownRows, check_id
from privet.service.tokens import ANALYST, OWNER
from privet.text import clean
from privet.version import __version__

_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Privet-Api": str(api.VERSION),
}
PAGE = 200  # entries and events of one reply


class Refusal(Exception):
    """A request that gets a problem for an answer."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None, **fields: Any) -> None:
        self.kind, self.detail, self.headers = kind, detail, dict(headers or {})
        self.fields = {"charged": False, **fields}


@dataclass(frozen=True)
class Call:
    """A request whose caller may do what it asks."""

    caller: Caller
    table: str
    session: Session | None
    body: Any
    path: Mapping[str, str]
    query: Mapping[str, str]


class Operation(NamedTuple):
    """A route: what it takes, what it returns, and for whom."""

    method: str
    path: str
    name: str
    summary: str
    body: type[api.Body] | None
    reply: type[api.Reply]
    run: Callable[[Service, Call], api.Reply]
    role: str = ANALYST
    asks: bool = False  # whether it asks engines: it then counts against `concurrent`, and leaves at a tick
    status: int = 200
    query: tuple[str, ...] = ()  # whole numbers that it takes
    stream: bool = False  # whether it sends events until there are no more


@dataclass
class Service:
    """What a server knows while it runs.

    Parameters
    ----------
    sessions : mapping of str to Session
        One for each table; every sitting has its own copy.
    ledger : Ledger
        Where tokens and events are; that of the tables.
    config : Config
    ticks : mapping of str to float
        For each table the seconds after which answers leave; 0 for at once.
    clock : callable, optional
        Returns seconds that only grow, for tests.
    """

    sessions: Mapping[str, Session]
    ledger: Ledger
    config: Config
    ticks: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic
    access: Permissions = field(init=False)
    sittings: Sittings = field(init=False)
    audit: AuditTrail = field(init=False)
    counts: Counter[tuple[str, str]] = field(init=False, default_factory=Counter)
    stopping: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        limits, names = self.limits, tuple(self.sessions)
        self.access = Permissions(
            self.ledger, self.config.analysts, self.config.owners, names, self.clock, limits.refresh
        )
        self.access.announce(self._amount)
        self.sittings = Sittings(self.clock, limits.idle, limits.sittings)
        self.audit = AuditTrail(self.ledger)
        self.rates = Buckets(limits.rate, limits.burst, self.clock)
        self.failures = Buckets(1, 20, self.clock)
        self.workers = ThreadPoolExecutor(limits.workers, "privet-question")
        self.clerks = ThreadPoolExecutor(2, "privet-ledger")  # what asks no engine waits for no engine
        self.jobs = Jobs(self.clock, limits.jobs)
        self._asking: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._keys: set[tuple[str, str, str]] = set()
        self._logged_in: set[str] = set()

    def _amount(self, table: str, epsilon: Fraction) -> Fraction:
        return self.sessions[table].unit.amount(epsilon)

    @property
    def limits(self) -> Limits:
        return self.config.limits

    def unit(self, session: Session) -> tuple[str, str | None]:
        """Return what the budget of a table is counted in, and its delta."""
        unit = session.unit
        return unit.name, None if unit.delta is None else str(unit.delta)

    # -- the boundary -----------------------------------------------------------------------

    async def serve(self, operation: Operation, request: Request) -> Response:
        """Answer a request."""
        start, table, name = self.clock(), "", None
        try:
            caller = await self._caller(request)
            name = caller.name
            self._check_rate(caller)
            session = self._session(operation, request, caller)
            table = request.path_params.get("table", "")
            body = await self._body(operation, request)
            start = self.clock()  # nobody is told how long a body took
            call = Call(caller, table, session, body, request.path_params, _query(operation, request))
            reply = await self._run(operation, call, start)
            if operation.stream:
                return self._events_of(call, request)
            response = _json(_encoded(reply), operation.status)
            if operation.status == 202 and isinstance(reply, api.JobReply):
                response.headers["Location"] = f"/v1/jobs/{reply.id}"
        except Refusal as refusal:
            response = problem(refusal)
            if refusal.kind in ("unauthenticated", "not-allowed", "not-found", "budget-exceeded", "too-many"):
                await self._note(refusal.kind, table if table in self.sessions else None, name)
        if operation.asks and (tick := self.ticks.get(table, 0.0)):
            await asyncio.sleep(max(0.0, self._leaves(start, tick) - self.clock()))
        return response

    def _leaves(self, start: float, tick: float) -> float:
        """Return when an answer leaves: after one tick, or after as many long ones, of 100 ticks, as it takes."""
        leaves = _tick_after(start, self.clock(), tick)
        self.counts["late", ""] += leaves > start + tick
        return leaves

    async def _caller(self, request: Request) -> Caller:
        if self.stopping:
            raise Refusal("unavailable", "the server is stopping; try again later.", {"Retry-After": "5"})
        if self.access.stale:
            await self._in_thread(self.access.refresh)
        headers = request.headers.getlist("authorization")
        caller = self.access.caller(headers[0]) if len(headers) == 1 else None
        if caller is None:
            client = request.client.host if request.client else ""
            if wait := self.failures.wait(client):
                raise Refusal(
                    "too-many", "too many requests without a valid token.", {"Retry-After": str(int(wait) + 1)}
                )
            await self._in_thread(self.access.refresh)  # it may have been made a moment ago
            caller = self.access.caller(headers[0]) if len(headers) == 1 else None
        if caller is None:
            raise Refusal(
                "unauthenticated",
                "this needs a token that is valid now, in the header Authorization: Bearer.",
                {"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        if caller.token.id not in self._logged_in:
            self._logged_in.add(caller.token.id)
            await self._note("login", None, caller.name)
        return caller

    def _check_rate(self, caller: Caller) -> None:
        if wait := self.rates.wait(caller.name):
            raise Refusal("too-many", "too many requests; slow down.", {"Retry-After": str(int(wait) + 1)})

    def _session(self, operation: Operation, request: Request, caller: Caller) -> Session | None:
        if operation.role == OWNER and caller.role != OWNER:
            raise Refusal("not-allowed", "this is for owners of the data.")
        if operation.role == ANALYST and caller.role != ANALYST:
            raise Refusal("not-allowed", "this is for analysts: an owner's token asks no questions.")
        table = request.path_params.get("table")
        if table is None:
            return None
        if table not in self.access.tables(caller):  # the same for a table that is not there
            raise Refusal("not-found", "there is no such table, or it is not yours.")
        return self.sessions[table]

    async def _body(self, operation: Operation, request: Request) -> Any:
        if operation.body is None:
            return None
        types = request.headers.getlist("content-type")
        if len(types) != 1 or types[0].partition(";")[0].strip().lower() != api.MEDIA_TYPE:
            raise Refusal("media-type", "send the body as application/json.")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refusal("media-type", "send the body as it is, without a content encoding.")
        try:
            content = await asyncio.wait_for(self._read(request), self.limits.body_seconds)
        except TimeoutError:
            raise Refusal("slow-body", "the body did not come in time.", {"Connection": "close"}) from None
        if nesting(content) > self.limits.nesting:
            raise Refusal("bad-question", f"the body has more than {self.limits.nesting} levels of lists and objects.")
        try:
            return msgspec.json.decode(content, type=operation.body)
        except msgspec.ValidationError as error:
            raise Refusal("bad-question", f"{clean(str(error))[:300]}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Refusal("bad-json", "the body is not JSON in UTF-8.") from None

    async def _read(self, request: Request) -> bytes:
        content = bytearray()
        async for piece in request.stream():
            content += piece
            if len(content) > self.limits.body:
                raise Refusal("too-large", f"a body has at most {self.limits.body} bytes.", {"Connection": "close"})
        return bytes(content)

    async def _run(self, operation: Operation, call: Call, start: float) -> api.Reply:
        """Run an operation in a thread, and turn what it raises into a problem.

        Until its answer leaves, a question is under way: whoever asks again under its key, or for one more at a time,
        would else be told before the tick that the engine is done.
        """
        name = call.caller.name
        key = getattr(call.body, "key", None)
        taken = (name, call.table, key) if isinstance(key, str) else None
        if taken is not None and taken in self._keys:
            raise Refusal("key-in-flight", "a request with this key is under way.", {"Retry-After": "1"})
        if operation.asks and self._asking[name] >= self.limits.concurrent:
            raise Refusal(
                "too-many", f"{self.limits.concurrent} questions of yours are under way.", {"Retry-After": "1"}
            )
        self._keys |= {taken} if taken is not None else set()
        self._asking[name] += operation.asks
        loop, tick = asyncio.get_running_loop(), self.ticks.get(call.table, 0.0) if operation.asks else 0.0
        work = loop.run_in_executor(self.workers if operation.asks else self.clerks, self._guarded, operation, call)

        def over() -> None:
            self._asking[name] -= operation.asks
            if taken is not None:
                self._keys.discard(taken)

        def finished(_: object) -> None:
            # when the work ends, and not when its client goes away
            now = self.clock()
            if tick:
                loop.call_later(max(0.0, _tick_after(start, now, tick) - now), over)
            else:
                over()

        work.add_done_callback(finished)
        outcome = await asyncio.shield(work)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    def _guarded(self, operation: Operation, call: Call) -> api.Reply | Refusal:
        """Run an operation. No exception leaves: it would carry a traceback, and that values of rows."""
        try:
            return operation.run(self, call)
        except Refusal as refusal:
            return refusal
        except PrivetError as error:
            return self._refusal(error, call)
        except Exception as error:
            self._log(operation, error)
            return Refusal("internal", "the server failed; its owner is told.", charged=self._charged(call)[0])

    def _refusal(self, error: PrivetError, call: Call) -> Refusal:
        detail = clean(str(error))
        if isinstance(error, BudgetExceeded):
            amounts = str(error.requested), str(error.remaining)
            return Refusal("budget-exceeded", detail, requested=amounts[0], remaining=amounts[1])
        if isinstance(error, UnknownRows):
            return Refusal("unknown-rows", detail)
        if isinstance(error, FitLost):
            return Refusal("refused", detail, charged="unknown")
        if isinstance(error, KeyReused):
            return Refusal("key-reused", detail)
        charged, entry = self._charged(call)
        facts: dict[str, Any] = {"charged": charged, "entry": entry}
        if isinstance(error, EngineFailed):
            retry = getattr(call.body, "key", None)
            return Refusal("engine-failed", detail, retry_with_key=retry, **{**facts, "charged": charged or True})
        if isinstance(error, LedgerError):  # its words name a file or an address of this server
            return Refusal("ledger-unavailable", "the ledger of this server could not be used.", **facts)
        if isinstance(error, DataError):
            return Refusal("unavailable", "the table is not available.", **facts)
        if isinstance(error, PrivacyError):
            return Refusal("refused", detail, **facts)
        return Refusal("bad-question", detail, **facts)

    def _charged(self, call: Call) -> tuple[bool | str, int | None]:
        """Return whether a request that failed was charged, by its key: what the ledger says now."""
        key = getattr(call.body, "key", None)
        if key is None or call.session is None:
            return False, None
        try:
            entry = call.session.ledger.entry_of(call.session.dataset, call.caller.name, key)
        except PrivetError:
            return "unknown", None
        return entry is not None, entry

    async def _note(self, event: str, table: str | None, analyst: str | None) -> None:
        await self._in_thread(lambda: self._noted(event, table, analyst))

    def _noted(self, event: str, table: str | None, analyst: str | None) -> None:
        try:
            dataset = None if table is None else self.sessions[table].dataset
            self.audit.note(event, dataset, analyst)
        except LedgerError as error:
            self._log(None, error)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.clerks, work)

    def _log(self, operation: Operation | None, error: BaseException) -> None:
        """Tell the owner what kind of error it was: its words may quote a row or a secret."""
        where = "" if operation is None else f" in {operation.name}"
        print(f"privet: {type(error).__name__}{where}", file=sys.stderr, flush=True)

    # -- the life of a server ---------------------------------------------------------------

    def reload(self, grants: Mapping[str, Grant] | None, owners: tuple[str, ...]) -> None:
        """Take new grants without a restart; whoever has lost a table loses their sittings."""
        lost = self.access.grant(grants, owners)
        self.access.announce(self._amount)
        for name in lost:
            self.sittings.close_of(name)
            self.jobs.cancel_of(name)

    def close(self) -> None:
        """Finish what was charged, end all sittings, and let go of the engines."""
        self.stopping = True
        self.jobs.close()
        self.workers.shutdown(wait=True)
        self.clerks.shutdown(wait=True)
        self.sittings.sweep(all_of_them=True)
        try:
            self.audit.flush()
        except LedgerError as error:
            self._log(None, error)
        for session in self.sessions.values():
            session.engine.close()

    def ready(self) -> bool:
        """Return whether the ledger can be read and no engine is closed."""
        try:
            self.ledger.events(2**53, 1)
        except LedgerError:
            return False
        return not self.stopping and not any(session.engine.closed for session in self.sessions.values())

    # -- what is asked ----------------------------------------------------------------------

    def sitting(self, call: Call) -> Sitting:
        """Return the caller's sitting at the table."""
        assert call.session is not None
        return self.sittings.of(call.table, call.session, call.caller.name, call.body.sitting)

    def answer(self, call: Call) -> api.AnswerReply:
        sitting = self.sitting(call)
        scope = sitting.scope(call.body.rows, call.body.hold)
        question = _question(call.body.question)
        epsilons = _asked(scope.session, amounts_from_json(call.body.epsilon, len(scope.sets)))
        answers = scope.session.answers(question, scope.sets, epsilons, call.body.key)
        sitting.keep_refinable(scope, question, answers)
        unit, delta = self.unit(scope.session)
        return api.AnswerReply(
            answer=list(answers.noisy), private=answers.private, entry=answers.entry, unit=unit, delta=delta
        )

    def quote(self, call: Call) -> api.QuoteReply:
        scope = self.sitting(call).scope(call.body.rows, call.body.hold)
        epsilons = _asked(scope.session, amounts_from_json(call.body.epsilon, len(scope.sets)))
        question = _question(call.body.question)
        loss = scope.session.quote(question, scope.sets, epsilons) if len(scope.sets) else Fraction(0)
        left = scope.session.remaining()
        unit, delta = self.unit(scope.session)
        return api.QuoteReply(loss=str(loss), remaining=str(left), fits=loss <= left, unit=unit, delta=delta)

    def remaining(self, call: Call) -> api.RemainingReply:
        scope = self.sitting(call).scope(call.body.rows, call.body.hold)
        left = scope.session.headroom(scope.sets)
        single = len(scope.sets) == 1
        return api.RemainingReply(
            remaining=_amounts(left), spent=str(_spent(scope.session, scope.sets)) if single else None
        )

    def refine(self, call: Call) -> api.RefineReply:
        assert call.session is not None
        epsilons = _asked(call.session, amounts_from_json(call.body.epsilon, len(call.body.parts)))
        losses = call.session.amounts(epsilons, len(call.body.parts))
        levels = self.sitting(call).refined(call.body.entry, call.body.parts, losses)
        return api.RefineReply(
            levels=[
                api.LevelReply(epsilon=str(level.loss), value=level.value, entry=level.entry, private=level.private)
                for level in levels
            ]
        )

    def hold(self, call: Call) -> api.DoneReply:
        sitting = self.sitting(call)
        scope = sitting.scope(call.body.rows, call.body.hold)
        amount = _asked(scope.session, PerPart.same(amount_from_json(call.body.epsilon), 1))
        sitting.hold(call.body.id, scope, scope.session.amounts(amount, 1)[0])
        return api.DoneReply()

    def end_hold(self, call: Call) -> api.DoneReply:
        self.sitting(call).end_hold(check_id(call.path["hold"], "a reservation"))
        return api.DoneReply()

    def monitor(self, call: Call) -> api.MonitorReply:
        sitting = self.sitting(call)
        scope = sitting.scope(call.body.rows, call.body.hold)
        accuracy = as_share(amount_from_json(call.body.accuracy), "an accuracy")
        amount = _asked(scope.session, PerPart.same(amount_from_json(call.body.epsilon), 1))[0]
        monitor = sitting.monitor(call.body.id, scope, accuracy, amount)
        return api.MonitorReply(id=call.body.id, epsilon=str(monitor.epsilon), private=monitor.private)

    def check(self, call: Call) -> api.CheckReply:
        model = model_from_json(call.body.model)
        return api.CheckReply(reached=self.sitting(call).check(call.path["monitor"], call.body.check, model))

    def close_sitting(self, call: Call) -> api.DoneReply:
        self.sittings.close(call.table, call.caller.name, call.body.sitting)
        return api.DoneReply()

    # -- what there is ----------------------------------------------------------------------

    def tables(self, call: Call) -> api.TablesReply:
        return api.TablesReply(tables=self.access.tables(call.caller))

    def describe(self, call: Call) -> api.TableReply:
        session = call.session
        assert session is not None
        unit, delta = self.unit(session)
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
            tick=self.ticks.get(call.table, 0.0),
        )

    def budget(self, call: Call) -> api.BudgetReply:
        session, name = call.session, call.caller.name
        assert session is not None
        ledger, dataset = session.ledger, session.dataset
        unit, delta = self.unit(session)
        cap = ledger.cap(dataset, name)
        holds = [hold for hold in ledger.holds(dataset) if hold.analyst == name]
        return api.BudgetReply(
            unit=unit,
            delta=delta,
            spent=str(ledger.spent(dataset, name)),
            remaining=str(ledger.remaining(dataset, name, session.limit)),
            cap=None if cap is None else str(cap),
            dataset_cap=str(ledger.cap(dataset)),
            dataset_spent=str(ledger.spent(dataset)),
            holds=[api.HoldReply(id=hold.id, epsilon=str(hold.epsilon), spent=str(hold.spent)) for hold in holds],
        )

    def entries(self, call: Call) -> api.EntriesReply:
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
                    answered=answered and (call.caller.name, call.table, entry.key) not in self._keys,
                )
                for entry, answered in page
            ],
            next=page[-1][0].id if len(entries) > len(page) else None,
        )

    # -- fits -------------------------------------------------------------------------------

    def fit(self, call: Call) -> api.JobReply:
        assert call.session is not None
        tick = self.ticks.get(call.table, 0.0)
        return self.jobs.start(call.caller.name, call.table, call.session, call.body, tick).reply()

    def job(self, call: Call) -> api.JobReply:
        return self._job(call).reply()

    def cancel(self, call: Call) -> api.JobReply:
        job = self._job(call)
        job.cancelled = True
        return job.reply()

    def _job(self, call: Call) -> Job:
        job = self.jobs.find(call.path["job"], call.caller.name)
        if job is None or job.table not in self.access.tables(call.caller):
            raise Refusal("not-found", "there is no such job, or it is not yours.")
        return job

    def _events_of(self, call: Call, request: Request) -> Response:
        """Send what is told of a job as server-sent events, until it has ended."""
        job, last, name = self._job(call), request.headers.get("last-event-id", ""), call.caller.name
        if self._streams[name] >= 2 * self.limits.jobs:
            raise Refusal("too-many", "you follow as many jobs as one may; poll them.", {"Retry-After": "10"})
        after = int(last) if re.fullmatch(r"[0-9]{1,9}", last) else -1

        async def events() -> AsyncIterator[bytes]:
            sent = after
            self._streams[name] += 1
            try:
                while not self.stopping:
                    number, seen = job.visible()
                    if number > sent:
                        yield b"id: %d\ndata: %s\n\n" % (number, _encoded(job.reply()))
                        sent = number
                    if seen.ended:
                        return
                    await asyncio.sleep(max(0.05, TICKS * job.tick))
            finally:
                self._streams[name] -= 1

        return StreamingResponse(events(), media_type="text/event-stream")

    def models(self, call: Call) -> api.ModelsReply:
        session = call.session
        assert session is not None
        models = session.ledger.models(session.dataset, call.caller.name)
        facts = [api.ModelFacts(id=model.id, key=model.key, facts=model.facts) for model in models]
        return api.ModelsReply(models=facts)

    def model(self, call: Call) -> api.ModelReply:
        session, number = call.session, call.path["model"]
        assert session is not None
        models = session.ledger.models(session.dataset, call.caller.name)
        model = next((model for model in models if str(model.id) == number), None)
        if model is None:
            raise Refusal("not-found", "there is no such model, or it is not yours.")
        return api.ModelReply(id=model.id, key=model.key, facts=model.facts, model=json.loads(model.text))

    # -- more budget ------------------------------------------------------------------------

    def request_budget(self, call: Call) -> api.RequestReply:
        """Write a request down; the same key finds the one that was written."""
        session, body = call.session, call.body
        assert session is not None
        amount = session.unit.amount(amount_from_json(body.epsilon))
        facts = {"epsilon": str(amount), "purpose": clean(body.purpose), "key": body.key}
        for request in self._requests():
            if (request.table, request.analyst) == (call.table, call.caller.name) and request.key == body.key:
                if (request.epsilon, request.purpose) != (facts["epsilon"], facts["purpose"]):
                    raise Refusal("key-reused", "the key stands for another request.")
                return request.reply()
        number = self.ledger.record("request", dataset=session.dataset, analyst=call.caller.name, facts=facts)
        return next(request for request in self._requests() if request.id == number).reply()

    def own_requests(self, call: Call) -> api.RequestsReply:
        own = [request for request in self._requests() if request.analyst == call.caller.name]
        return api.RequestsReply(requests=[request.reply() for request in own if request.table == call.table])

    def all_requests(self, call: Call) -> api.RequestsReply:
        visible = self.access.tables(call.caller)
        return api.RequestsReply(requests=[request.reply() for request in self._requests() if request.table in visible])

    def decide(self, call: Call) -> api.RequestReply:
        """Grant or deny a request: a grant raises the analyst's cap, and the data set's if that is in its way.

        The decision is written first, and of several at once, on any server of the ledger, the first one counts: no
        request raises a cap twice.
        """
        number, visible = call.path["request"], self.access.tables(call.caller)
        found = next((request for request in self._requests() if str(request.id) == number), None)
        if found is None or found.table not in visible:
            raise Refusal("not-found", "there is no such request.")
        decided = Refusal("refused", "this request was decided before.")
        if found.state != "open":
            raise decided
        dataset = self.sessions[found.table].dataset
        facts = {"request": found.id, "granted": call.body.granted, "by": call.caller.name}
        own_number = self.ledger.record("decision", dataset=dataset, analyst=found.analyst, facts=facts)
        decisions = (event for event in self._events() if event.what == "decision")
        if next(event.number for event in decisions if event.facts["request"] == found.id) != own_number:
            raise decided
        if call.body.granted:
            amount = Fraction(found.epsilon)
            own = self.ledger.cap(dataset, found.analyst)
            if own is not None:
                self.ledger.set_cap(dataset, found.analyst, own + amount)
            left = self.ledger.remaining(dataset, found.analyst)
            if left < amount:
                cap = self.ledger.cap(dataset)
                assert cap is not None
                self.ledger.set_cap(dataset, None, cap + amount - left)
        return next(request for request in self._requests() if request.id == found.id).reply()

    def _requests(self) -> list[BudgetRequest]:
        tables = {session.dataset: table for table, session in self.sessions.items()}
        requests: dict[int, BudgetRequest] = {}
        for event in self._events():
            if event.what == "request" and event.dataset in tables:
                facts = event.facts
                requests[event.number] = BudgetRequest(
                    event.number,
                    str(event.analyst),
                    tables[event.dataset],
                    facts["epsilon"],
                    facts["purpose"],
                    facts["key"],
                )
            elif event.what == "decision" and event.facts["request"] in requests:
                number = event.facts["request"]
                if requests[number].state == "open":
                    state = "granted" if event.facts["granted"] else "denied"
                    requests[number] = requests[number]._replace(state=state)
        return list(requests.values())

    def _events(self) -> list[Any]:
        events: list[Any] = []
        while page := self.ledger.events(events[-1].number if events else 0):
            events += page
        return events

    def events(self, call: Call) -> api.EventsReply:
        """Return what happened, on the tables that the owner's token is for."""
        page = self.ledger.events(int(call.query.get("after", "0")), PAGE)
        visible = {None, *(self.sessions[table].dataset for table in self.access.tables(call.caller))}
        replies = [
            api.EventReply(
                number=event.number,
                at=event.at,
                event=event.what,
                table=event.dataset,
                analyst=event.analyst,
                facts=event.facts,
            )
            for event in page
            if event.dataset in visible
        ]
        return api.EventsReply(events=replies, next=page[-1].number if len(page) == PAGE else None)

    def reload_grants(self, call: Call) -> api.DoneReply:
        from privet.service.config import load

        if self.config.path is None:
            raise QuestionError("this server was started without a configuration file, so there is none to read.")
        fresh = load(self.config.path)
        self.reload(fresh.analysts, fresh.owners)
        return api.DoneReply()


class BudgetRequest(NamedTuple):
    """A request for more budget, as the ledger has it."""

    id: int
    analyst: str
    table: str
    epsilon: str
    purpose: str
    key: str
    state: Any = "open"

    def reply(self) -> api.RequestReply:
        """Return it as it crosses the wire."""
        return api.RequestReply(
            id=self.id,
            analyst=self.analyst,
            table=self.table,
            epsilon=self.epsilon,
            purpose=self.purpose,
            state=self.state,
        )


# -- small things -----------------------------------------------------------------------------------


def nesting(content: bytes) -> int:
    """Return how deep lists and objects stand in one another.

    >>> nesting(b'{"a": ["[[[", []]}'), nesting(b"3")
    (3, 0)
    """
    brackets = np.frombuffer(_STRINGS.sub(b"", content).translate(None, _BRACKETS), dtype=np.uint8)
    opens = (brackets == ord("[")) | (brackets == ord("{"))
    return int(np.cumsum(np.where(opens, 1, -1)).max(initial=0))


def _tick_after(start: float, now: float, tick: float) -> float:
    """Return when an answer that is there now leaves."""
    taken = now - start
    return start + (tick if taken <= tick else 100 * tick * -(-taken // (100 * tick)))


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


def _query(operation: Operation, request: Request) -> dict[str, str]:
    """Return the whole numbers of a query; anything else in it is refused."""
    numbers = {}
    for name, value in request.query_params.multi_items():
        if name not in operation.query or name in numbers or not re.fullmatch(r"[0-9]{1,15}", value):
            takes = f"takes {', '.join(operation.query)}, a whole number" if operation.query else "takes no query"
            raise Refusal("bad-question", f"this {takes}.")
        numbers[name] = value
    return numbers


def _encoded(reply: Any) -> bytes:
    try:
        return msgspec.json.encode(reply)
    except OverflowError:  # a number that 64 bits do not hold
        return json.dumps(msgspec.structs.asdict(reply), separators=(",", ":")).encode()


def _json(content: bytes, status: int, media_type: str = api.MEDIA_TYPE) -> Response:
    return Response(content, status, media_type=media_type)


def problem(refusal: Refusal) -> Response:
    """Return a problem as RFC 9457 has it."""
    status, title = api.TITLES[refusal.kind]
    content = api.Problem(
        type=api.URN + refusal.kind, title=title, status=status, detail=refusal.detail, **refusal.fields
    )
    response = _json(msgspec.json.encode(content), status, api.PROBLEM_TYPE)
    response.headers.update(refusal.headers)
    return response


# -- the routes -------------------------------------------------------------------------------------

_T = "/v1/tables/{table}"
OPERATIONS = (
    Operation("GET", "/v1/tables", "tables", "The caller's tables", None, api.TablesReply, Service.tables),
    Operation("GET", _T, "describe", "What is public about a table", None, api.TableReply, Service.describe),
    Operation("GET", f"{_T}/budget", "budget", "Spent and left, exactly", None, api.BudgetReply, Service.budget),
    Operation(
        "GET",
        f"{_T}/entries",
        "entries",
        "The caller's charges",
        None,
        api.EntriesReply,
        Service.entries,
        query=("after",),
    ),
    Operation(
        "POST",
        f"{_T}/quotes",
        "quote",
        "What a question would cost: free, reads no row",
        api.QuoteBody,
        api.QuoteReply,
        Service.quote,
    ),
    Operation(
        "POST",
        f"{_T}/remaining",
        "remaining",
        "What parts may still be charged",
        api.RowsBody,
        api.RemainingReply,
        Service.remaining,
    ),
    Operation(
        "POST",
        f"{_T}/answers",
        "ask",
        "Ask a question of all parts at once",
        api.AnswerBody,
        api.AnswerReply,
        Service.answer,
        asks=True,
    ),
    Operation(
        "POST",
        f"{_T}/refinements",
        "refine",
        "Refine an answer for the difference",
        api.RefineBody,
        api.RefineReply,
        Service.refine,
        asks=True,
    ),
    Operation("POST", f"{_T}/holds", "hold", "Reserve budget", api.HoldBody, api.DoneReply, Service.hold, status=201),
    Operation(
        "POST",
        f"{_T}/holds/{{hold}}/end",
        "end_hold",
        "End a reservation",
        api.SittingBody,
        api.DoneReply,
        Service.end_hold,
    ),
    Operation(
        "POST",
        f"{_T}/monitors",
        "monitor",
        "Begin a monitor",
        api.MonitorBody,
        api.MonitorReply,
        Service.monitor,
        asks=True,
        status=201,
    ),
    Operation(
        "POST",
        f"{_T}/monitors/{{monitor}}/checks",
        "check",
        "Ask a monitor about a model",
        api.CheckBody,
        api.CheckReply,
        Service.check,
        asks=True,
    ),
    Operation(
        "POST",
        f"{_T}/sittings/close",
        "close_sitting",
        "End a sitting",
        api.SittingBody,
        api.DoneReply,
        Service.close_sitting,
    ),
    Operation(
        "POST",
        f"{_T}/requests",
        "request_budget",
        "Ask the owner for more budget",
        api.RequestBody,
        api.RequestReply,
        Service.request_budget,
        status=201,
    ),
    Operation(
        "GET",
        f"{_T}/requests",
        "own_requests",
        "The caller's requests for more budget",
        None,
        api.RequestsReply,
        Service.own_requests,
    ),
    Operation(
        "POST", f"{_T}/fits", "fit", "Fit a model on the server", api.FitBody, api.JobReply, Service.fit, status=202
    ),
    Operation("GET", "/v1/jobs/{job}", "job", "How far a fit is", None, api.JobReply, Service.job),
    Operation(
        "GET",
        "/v1/jobs/{job}/events",
        "job_events",
        "The same, as server-sent events",
        None,
        api.JobReply,
        Service.job,
        stream=True,
    ),
    Operation(
        "DELETE",
        "/v1/jobs/{job}",
        "cancel",
        "Cancel a fit; what was charged stands",
        None,
        api.JobReply,
        Service.cancel,
    ),
    Operation("GET", f"{_T}/models", "models", "The caller's models", None, api.ModelsReply, Service.models),
    Operation("GET", f"{_T}/models/{{model}}", "model", "A model", None, api.ModelReply, Service.model),
    Operation(
        "GET",
        "/v1/owner/requests",
        "all_requests",
        "Requests for more budget",
        None,
        api.RequestsReply,
        Service.all_requests,
        role=OWNER,
    ),
    Operation(
        "POST",
        "/v1/owner/requests/{request}",
        "decide",
        "Grant or deny a request",
        api.DecisionBody,
        api.RequestReply,
        Service.decide,
        role=OWNER,
    ),
    Operation(
        "GET",
        "/v1/owner/events",
        "events",
        "What happened on the server",
        None,
        api.EventsReply,
        Service.events,
        role=OWNER,
        query=("after",),
    ),
    Operation(
        "POST",
        "/v1/owner/reload",
        "reload",
        "Read the grants again",
        None,
        api.DoneReply,
        Service.reload_grants,
        role=OWNER,
    ),
)


def application(service: Service) -> ASGIApp:
    """Return the server as an ASGI application."""
    from privet.service.openapi import document

    content = json.dumps(document(OPERATIONS)).encode()

    async def openapi(request: Request) -> Response:
        return _json(content, 200)

    async def not_found(request: Request, error: Exception) -> Response:
        return problem(Refusal("not-found", "there is nothing at this path."))

    async def method(request: Request, error: Exception) -> Response:
        allowed = (error.headers or {}) if isinstance(error, HTTPException) else {}
        return problem(Refusal("method", "this path has other methods.", dict(allowed)))

    def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await service.serve(operation, request)

        return answer

    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation
    routes = [Route("/v1/openapi.json", openapi, methods=["GET"])]
    for path, methods in paths.items():
        routes.append(
            Route(path, _by_method({name: endpoint(own) for name, own in methods.items()}), methods=[*methods])
        )
    app = Starlette(routes=routes, exception_handlers={404: not_found, 405: method})
    app.router.redirect_slashes = False
    return Boundary(app, service)


def _by_method(endpoints: Mapping[str, Callable[[Request], Awaitable[Response]]]) -> Any:
    async def answer(request: Request) -> Response:
        own = endpoints.get("GET" if request.method == "HEAD" else request.method)
        assert own is not None
        return await own(request)

    return answer


class Boundary:
    """The outermost layer: hosts, headers, counts, and no exception beyond it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        config = service.config
        self._hosts = (
            {*config.hosts, config.host, "localhost", "127.0.0.1", "::1"}
            if config.hosts or is_loopback(config.host)
            else None
        )
        self._headers = dict(_HEADERS)
        if config.certificate is not None or config.proxies:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        status, began = 500, False

        async def sent(message: Message) -> None:
            nonlocal status, began
            if message["type"] == "http.response.start":
                status, began = message["status"], True
                own = {name.lower() for name, _ in message["headers"]}
                extra = [
                    (name.lower().encode(), value.encode())
                    for name, value in self._headers.items()
                    if name.lower().encode() not in own
                ]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            refusal = self._refusal(scope)
            await (self._app if refusal is None else problem(refusal))(scope, receive, sent)
        except ClientDisconnect:
            pass
        except Exception as error:
            self._service._log(None, error)
            if not began:
                await problem(Refusal("internal", "the server failed; its owner is told.", charged="unknown"))(
                    scope, receive, sent
                )
        finally:
            self._service.counts["requests", f"{status // 100}xx"] += 1

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is refused before its path is looked at, if it is."""
        names = [name for name, _ in scope["headers"]]
        if b"transfer-encoding" in names and b"content-length" in names:  # two servers could read two requests in it
            return Refusal(
                "bad-request", "a body has a length or is sent in chunks, not both.", {"Connection": "close"}
            )
        if _ENCODED.search(scope.get("raw_path") or b""):
            return Refusal("not-found", "there is nothing at this path.")
        if self._hosts is not None and _host(scope) not in self._hosts:
            return Refusal("wrong-host", "use the name that this server was set up for.")
        return None


_ENCODED = re.compile(rb"%2f|%5c|%00|%25", re.IGNORECASE)  # what a proxy may read otherwise than this server
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def _host(scope: Scope) -> str:
    """Return the host that a request names, without its port; "" if it names none, or several."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    parts = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return "" if parts is None else str(parts[1] or parts[2])
