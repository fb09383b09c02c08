"""The boundary around each route: what every request passes before anything is charged, and what may leave.

A request's host, its token, its table, its rate, its size and its shape are checked in this order. Work on rows runs in
threads. What leaves is a reply, or a problem that says whether something was charged; no exception, and no text that
depends on a row, passes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privet.errors import (
    BudgetExceeded,
    DataError,
    EngineFailed,
    KeyReused,
    LedgerError,
    PrivacyError,
    PrivetError,
    ReceiptError,
)
from privet.kernel import Session, is_name
from privet.service import api, pacing
from privet.service.config import is_loopback
from privet.service.jobs import FitLost
from privet.service.permissions import Caller
from privet.service.permits import NoSuchPermit, NotPermitted
from privet.service.server import Service
from privet.service.sittings import UnknownRows
from privet.service.tokens import ANALYST, OWNER
from privet.text import clean

_NO_MARKS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_DEPTHS = np.zeros(256, dtype=np.int8)  # how much deeper a byte leads
_DEPTHS[list(b"[{")], _DEPTHS[list(b"]}")] = 1, -1
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Privet-Api": str(api.VERSION),
}

_NO_LEDGER = "the ledger of this server could not be used."

# refusals that the ledger keeps
_WRITTEN = ("unauthenticated", "not-allowed", "not-permitted", "not-found", "budget-exceeded", "too-many")


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
    role: str | None = ANALYST  # None: for analysts and owners
    asks: bool = False  # whether it asks engines: it then counts against `concurrent`, and leaves at a tick
    waits: bool = False  # whether it waits for questions of its sitting where rows may change: there it asks, too
    status: int = 200
    query: tuple[str, ...] = ()  # whole numbers that it takes
    names: tuple[str, ...] = ()  # names that its query takes besides
    stream: Callable[[Service, Call, str], AsyncIterator[bytes]] | None = None  # events after the one with this number


LONGEST_QUERY_NAME = 200  # characters


class Gate:
    """Lets a caller do what they may, and nothing else.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._logged_in: set[str] = set()

    async def serve(self, operation: Operation, request: Request) -> Response:
        """Answer a request that presents a token."""
        try:
            caller = await self.caller(request)
            call, reply = await self.perform(
                operation,
                caller,
                request.path_params,
                request.query_params.multi_items(),
                lambda: self._body(operation, request, caller.name),
            )
            if operation.stream is not None:
                events = operation.stream(self.service, call, request.headers.get("last-event-id", ""))
                return StreamingResponse(events, media_type="text/event-stream")
            response = json_response(encoded(reply), operation.status)
            if operation.status == 202 and isinstance(reply, api.JobReply):
                response.headers["Location"] = f"/v1/jobs/{reply.id}"
            return response
        except Refusal as refusal:
            return problem(refusal)

    async def perform(
        self,
        operation: Operation,
        caller: Caller,
        path: Mapping[str, str],
        query: Sequence[tuple[str, str]],
        read: Callable[[], Awaitable[Any]],
        counted: bool = True,
    ) -> tuple[Call, api.Reply]:
        """Do what a caller asks, if they may; the reply, as a refusal, leaves at a tick of the table.

        Parameters
        ----------
        operation : Operation
        caller : Caller
            Who has proved to be who they are.
        path : mapping of str to str
            The values of the operation's path: its table, and others.
        query : sequence of pairs of str
        read : callable
            Reads and checks the body, a value of `operation.body`. It is called when the caller may use the table.
        counted : bool, default True
            Whether it counts against the caller's rate. A page counts once, whatever it is made of.

        Raises
        ------
        Refusal
        """
        start, table = self.service.clock(), ""
        outcome: api.Reply | Refusal
        try:
            if counted:
                self._check_rate(caller)
            self._session(operation, path, caller)  # nobody else's body is read
            table = path.get("table", "")
            body = await read()
            start = self.service.clock()  # nobody is told how long a body took
            if self.service.access.caller_of(caller.token.id) is None:  # it may have ended while the body came
                raise _unauthenticated()
            if not is_name(getattr(body, "key", "none")):  # a ledger may not keep it, and a fit would be paid in vain
                raise Refusal("bad-question", "key must be a text of 1 to 200 printable characters.")
            session = self._session(operation, path, caller)
            call = Call(caller, table, session, body, path, _query(operation, query))
            outcome, paced = await self._run(operation, call, start)
        except Refusal as refusal:
            outcome, paced = refusal, False
            await self._note_refusal(refusal, table, caller.name)
        if self._asks(operation, table) and (tick := self.service.ticks.get(table, 0.0)):
            await asyncio.sleep(max(0.0, self._leaves(start, tick, paced) - self.service.clock()))
        if isinstance(outcome, Refusal):
            raise outcome
        return call, outcome

    def _asks(self, operation: Operation, table: str) -> bool:
        """Whether an operation asks an engine, or may wait for one."""
        return operation.asks or (operation.waits and table in self.service.changing)

    def _leaves(self, start: float, tick: float, paced: bool) -> float:
        """Return when an answer leaves: after one tick, or after as many long ones, of 100 ticks, as it takes."""
        leaves = _tick_after(start, self.service.clock(), tick, paced)
        self.service.counts["late", ""] += leaves > start + tick
        return leaves

    async def caller(self, request: Request) -> Caller:
        """Return who a request comes from, by its token; Refusal, which is written down, if that is nobody."""
        try:
            return await self._caller(request)
        except Refusal as refusal:
            await self._note_refusal(refusal, "", None)
            raise

    async def _caller(self, request: Request) -> Caller:
        if self.service.stopping:
            raise Refusal("unavailable", "the server is stopping; try again later.", {"Retry-After": "5"})
        if self.service.access.stale:
            await self._refresh()
        headers = request.headers.getlist("authorization")
        caller = await self.caller_with(headers[0] if len(headers) == 1 else None, request)
        if caller is None:
            raise _unauthenticated()
        if caller.token.id not in self._logged_in:
            self._logged_in.add(caller.token.id)
            await self.note("login", None, caller.name)
        return caller

    async def caller_with(self, header: str | None, request: Request) -> Caller | None:
        """Return whose token a header is, as Authorization has it; None for nobody. Refusal after too many failures."""
        access = self.service.access
        caller = access.caller(header)
        if caller is None:
            client = request.client.host if request.client else ""
            if wait := self.service.failures.wait(client):
                raise Refusal(
                    "too-many", "too many requests without a valid token.", {"Retry-After": str(int(wait) + 1)}
                )
            await self._refresh()  # it may have been made a moment ago
            caller = access.caller(header)
        return caller

    async def _refresh(self) -> None:
        """Read again who may do what; Refusal if the ledger cannot be read."""
        try:
            await self.in_thread(self.service.access.refresh)
        except LedgerError as error:
            self.service.log(None, error)
            raise Refusal("ledger-unavailable", _NO_LEDGER) from None

    def _check_rate(self, caller: Caller) -> None:
        if wait := self.service.rates.wait(caller.name):
            raise Refusal("too-many", "too many requests; slow down.", {"Retry-After": str(int(wait) + 1)})

    def _session(self, operation: Operation, path: Mapping[str, str], caller: Caller) -> Session | None:
        if operation.role == OWNER and caller.role != OWNER:
            raise Refusal("not-allowed", "this is for owners of the data.")
        if operation.role == ANALYST and caller.role != ANALYST:
            raise Refusal("not-allowed", "this is for analysts: an owner's token asks no questions.")
        table = path.get("table")
        if table is None:
            return None
        if table not in self.service.access.tables(caller):  # the same for a table that is not there
            raise Refusal("not-found", "there is no such table, or it is not yours.")
        return self.service.sessions[table]

    async def _body(self, operation: Operation, request: Request, name: str) -> Any:
        if operation.body is None:
            return None
        types = request.headers.getlist("content-type")
        if len(types) != 1 or types[0].partition(";")[0].strip().lower() != api.MEDIA_TYPE:
            raise Refusal("media-type", "send the body as application/json.")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refusal("media-type", "send the body as it is, without a content encoding.")
        most = 2 * self.service.limits.concurrent  # as many requests of an analyst may be under way
        if self.service.coming[name] >= most:
            close = {"Retry-After": "1", "Connection": "close"}
            raise Refusal("too-many", f"the bodies of {most} requests of yours are on their way.", close)
        self.service.coming[name] += 1
        try:
            content = await self.read(request, self.service.limits.body)
        finally:
            self.service.coming[name] -= 1
        deepest = self.service.limits.nesting
        if nesting(content) > deepest:
            raise Refusal("bad-question", f"the body has more than {deepest} levels of lists and objects.")
        try:
            return _decoded(content, operation.body)
        except msgspec.ValidationError as error:
            raise Refusal("bad-question", f"{clean(str(error))[:300]}.") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Refusal("bad-json", "the body is not JSON in UTF-8.") from None

    async def read(self, request: Request, most: int) -> bytes:
        """Return a body of at most so many bytes that comes in time; Refusal for any other."""

        async def pieces() -> bytes:
            content = bytearray()
            async for piece in request.stream():
                content += piece
                if len(content) > most:
                    raise Refusal("too-large", f"a body has at most {most} bytes.", {"Connection": "close"})
            return bytes(content)

        try:
            return await asyncio.wait_for(pieces(), self.service.limits.body_seconds)
        except TimeoutError:
            raise Refusal("slow-body", "the body did not come in time.", {"Connection": "close"}) from None

    async def _run(self, operation: Operation, call: Call, start: float) -> tuple[api.Reply, bool]:
        """Run an operation in a thread, and turn what it raises into a problem; say whether its answer kept its time.

        Until its answer leaves, a question is under way: whoever asks again under its key, or for one more at a time,
        would else be told before the tick that the engine is done.
        """
        name = call.caller.name
        key = getattr(call.body, "key", None)
        taken = (name, call.table, key) if isinstance(key, str) else None
        if taken is not None and taken in self.service.keys:
            waits = {"Retry-After": "1"}
            raise Refusal("key-in-flight", "a request with this key is under way.", waits, charged="unknown")
        asks, most = self._asks(operation, call.table), self.service.limits.concurrent
        under_way = self.service.asking if asks else self.service.reading
        if under_way[name] >= most:
            what = "questions" if asks else "requests"
            raise Refusal("too-many", f"{most} {what} of yours are under way.", {"Retry-After": "1"})
        self.service.keys |= {taken} if taken is not None else set()
        under_way[name] += 1
        loop, tick = asyncio.get_running_loop(), self.service.ticks.get(call.table, 0.0) if asks else 0.0
        work = loop.run_in_executor(
            self.service.workers if asks else self.service.clerks, self._guarded, operation, call
        )

        def over() -> None:
            under_way[name] -= 1
            if taken is not None:
                self.service.keys.discard(taken)

        def finished(done: asyncio.Future[tuple[api.Reply | Refusal, bool]]) -> None:
            # when the work ends, and not when its client goes away
            now = self.service.clock()
            if tick:
                paced = not done.cancelled() and done.result()[1]
                loop.call_later(max(0.0, _tick_after(start, now, tick, paced) - now), over)
            else:
                over()

        work.add_done_callback(finished)
        outcome, paced = await asyncio.shield(work)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome, paced

    def _guarded(self, operation: Operation, call: Call) -> tuple[api.Reply | Refusal, bool]:
        """Run an operation. No exception leaves: it would carry a traceback, and that values of rows."""
        try:
            pacing.begin()
            return operation.run(self.service, call), pacing.paced()
        except Refusal as refusal:
            return refusal, False
        except PrivetError as error:
            return self._refusal(error, call), False
        except Exception as error:
            self.service.log(operation.name, error)
            charged = self._charged(call)[0]
            return Refusal("internal", "the server failed; its owner is told.", charged=charged), False

    def _refusal(self, error: PrivetError, call: Call) -> Refusal:
        detail = clean(str(error))
        if isinstance(error, BudgetExceeded):
            amounts = str(error.requested), str(error.remaining)
            return Refusal("budget-exceeded", detail, requested=amounts[0], remaining=amounts[1])
        if isinstance(error, NoSuchPermit | NotPermitted):
            return Refusal("not-found" if isinstance(error, NoSuchPermit) else "not-permitted", detail)
        if isinstance(error, UnknownRows):
            return Refusal("unknown-rows", detail)
        if isinstance(error, FitLost):
            return Refusal("refused", detail, charged="unknown")
        if isinstance(error, KeyReused):
            return Refusal("key-reused", detail)
        if isinstance(error, ReceiptError):  # its words name the file of a key
            return Refusal("not-found", "this server signs no receipts now; tell its owner.")
        charged, entry = self._charged(call)
        facts: dict[str, Any] = {"charged": charged, "entry": entry}
        if isinstance(error, EngineFailed):
            retry = getattr(call.body, "key", None)
            return Refusal("engine-failed", detail, retry_with_key=retry, **{**facts, "charged": charged or True})
        if isinstance(error, LedgerError):  # its words name a file or an address of this server
            return Refusal("ledger-unavailable", _NO_LEDGER, **facts)
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

    async def _note_refusal(self, refusal: Refusal, table: str, name: str | None) -> None:
        if refusal.kind in _WRITTEN:
            await self.note(refusal.kind, table if table in self.service.sessions else None, name)

    async def note(self, event: str, table: str | None, analyst: str | None) -> None:
        """Write an event to the audit trail."""
        await self.in_thread(lambda: self._noted(event, table, analyst))

    def _noted(self, event: str, table: str | None, analyst: str | None) -> None:
        try:
            dataset = None if table is None else self.service.sessions[table].dataset
            self.service.audit.note(event, dataset, analyst)
        except LedgerError as error:
            self.service.log(None, error)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Return what some work of the boundary's own returns, done in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.service.guards, work)


def _unauthenticated() -> Refusal:
    return Refusal(
        "unauthenticated",
        "this needs a token that is valid now, in the header Authorization: Bearer.",
        {"WWW-Authenticate": 'Bearer error="invalid_token"'},
    )


def _decoded(content: bytes, body: type[api.Body]) -> api.Body:
    """Return a body as its type; millions of lists in it are made in a third of the time if nobody looks for cycles."""
    looks = gc.isenabled()
    gc.disable()
    try:
        return msgspec.json.decode(content, type=body)
    finally:
        if looks:
            gc.enable()


def nesting(content: bytes) -> int:
    """Return how deep lists and objects stand in one another.

    >>> nesting(b'{"a": ["[[[", []]}'), nesting(b"3")
    (3, 0)
    """
    # no regular expression, which would try each quote of a text that never ends: a body takes time by its length alone
    unescaped = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(unescaped.translate(None, _NO_MARKS), dtype=np.uint8)
    inside = np.logical_xor.accumulate(marks == ord('"'))  # of a text
    return int(np.cumsum(_DEPTHS[marks] * ~inside, dtype=np.int32).max(initial=0))


def _tick_after(start: float, now: float, tick: float, paced: bool) -> float:
    """Return when an answer that is there now leaves; one that was written at its time waits for no long tick."""
    return max(start + tick, now) if paced else pacing.slot_after(start, now, tick, 0)


def _query(operation: Operation, query: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the whole numbers and the names of a query; anything else in it is refused."""
    values: dict[str, str] = {}
    for name, value in query:
        number = name in operation.query and re.fullmatch(r"[0-9]{1,15}", value)
        named = name in operation.names and 0 < len(value) <= LONGEST_QUERY_NAME
        if name in values or not (number or named):
            takes = [f"{', '.join(operation.query)}, a whole number"] if operation.query else []
            takes += [f"{' and '.join(operation.names)}, a name"] if operation.names else []
            raise Refusal("bad-question", f"this takes {', and '.join(takes) or 'no query'}.")
        values[name] = value
    return values


def encoded(reply: Any) -> bytes:
    try:
        return msgspec.json.encode(reply)
    except OverflowError:  # a number that 64 bits do not hold
        return json.dumps(msgspec.structs.asdict(reply), separators=(",", ":")).encode()


def json_response(content: bytes, status: int, media_type: str = api.MEDIA_TYPE) -> Response:
    return Response(content, status, media_type=media_type)


def problem(refusal: Refusal) -> Response:
    """Return a problem as RFC 9457 has it."""
    status, title = api.TITLES[refusal.kind]
    content = api.Problem(
        type=api.URN + refusal.kind, title=title, status=status, detail=refusal.detail, **refusal.fields
    )
    response = json_response(msgspec.json.encode(content), status, api.PROBLEM_TYPE)
    response.headers.update(refusal.headers)
    return response


class Boundary:
    """The outermost layer: hosts, headers, counts, and no exception beyond it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        config = service.config
        self._hosts = (
            {name.lower() for name in (*config.hosts, config.host, "localhost", "127.0.0.1", "::1")}
            if config.hosts or is_loopback(config.host)
            else None
        )
        self._headers = dict(HEADERS)
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
            self._service.log(None, error)
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
    """Return the host that a request names, in small letters, without its port; "" if it names none, or several."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    parts = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return "" if parts is None else str(parts[1] or parts[2]).lower()
