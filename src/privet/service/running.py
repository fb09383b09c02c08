"""Starting and stopping: tables are opened, listeners begin, signals are heard, and what was charged is finished."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from privet import ledger_lines
from privet.errors import LedgerError, QuestionError
from privet.kernel import Domain, Ledger, Session
from privet.open_table import open_table
from privet.service.boundary import HEADERS, Refusal, problem
from privet.service.config import Config, TableConfig
from privet.service.routes import application
from privet.service.server import Service
from privet.service.tokens import ANALYST

_SWEEP = 60  # seconds between looks at what is idle
FIRST_ANALYST = "analyst"  # to whom a server that was started without a configuration gives its first token


def default_tick(domain: Domain) -> float:
    """Return after how many seconds answers leave, from the public bound of the rows alone.

    >>> default_tick(Domain.parse('[columns.sex]\\nkind = "nominal"\\nvalues = ["f", "m"]\\n'))
    0.1
    """
    bound = domain.max_rows or domain.rows
    return 0.1 if bound is None else 0.02 + round(bound / 2_000_000, 3)


def open_tables(config: Config) -> tuple[dict[str, Session], Ledger]:
    """Open all tables of a configuration in one ledger.

    Returns
    -------
    sessions : dict of str to Session
    ledger : Ledger

    Raises
    ------
    PrivetError
        One of them cannot be opened; those before it are closed.
    """
    ledger = None if config.ledger is None else Ledger.open(config.ledger)
    sessions: dict[str, Session] = {}
    try:
        for table in config.tables:
            session = _opened(table, ledger)
            sessions[table.name or session.dataset] = session
            ledger = ledger or session.ledger
    except BaseException:
        for session in sessions.values():
            session.engine.close()
        raise
    assert ledger is not None
    if not ledger.durable and all(session.entropy.private for session in sessions.values()):
        raise LedgerError("a server needs a ledger that outlives it; name a file or a postgresql:// address.")
    return sessions, ledger


def _opened(table: TableConfig, ledger: Ledger | None) -> Session:
    opened = open_table(
        table.data,
        table.domain,
        budget=table.budget,
        delta=table.delta,
        ledger=ledger,
        name=table.name or None,
        access=table.access,
        snapshot_limit=table.snapshot_limit,
    )
    return opened._session


def service_of(config: Config) -> Service:
    """Open what a configuration names, and return the service that answers about it."""
    sessions, ledger = open_tables(config)
    ticks = {
        name: default_tick(session.domain) if table.tick is None else table.tick
        for table, (name, session) in zip(config.tables, sessions.items(), strict=True)
    }
    service = Service(sessions, ledger, config, ticks)
    ledger_lines.record(ledger, "start", facts={"tables": sorted(sessions), "analysts": sorted(config.analysts or {})})
    if service.receipts is None:
        print("privet: there is no key of the ledger here, so no receipts are signed", file=sys.stderr, flush=True)
    return service


def first_token(service: Service) -> str | None:
    """Return a token for the only analyst of a server without a configuration, if they have none that is live."""
    if service.config.path is not None or service.access.tokens.all():
        return None
    secret, _ = service.access.tokens.create(FIRST_ANALYST, ANALYST)
    return secret


# -- listeners --------------------------------------------------------------------------------------


def operations(service: Service) -> ASGIApp:
    """Return what is served beside the API, at an address of its own: health, readiness and counts.

    No count depends on a row, and none is told by table or analyst: no durations, no sizes.
    """

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(request: Request) -> Response:
        fine = await asyncio.get_running_loop().run_in_executor(service.guards, service.ready)
        return PlainTextResponse("ready\n" if fine else "not ready\n", 200 if fine else 503)

    async def metrics(request: Request) -> Response:
        lines = ["# TYPE privet_requests_total counter"]
        lines += [
            f'privet_requests_total{{status="{status}"}} {count}'
            for (what, status), count in sorted(service.counts.items())
            if what == "requests"
        ]
        lines += ["# TYPE privet_late_answers_total counter", f"privet_late_answers_total {service.counts['late', '']}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    routes = [Route("/healthz", health), Route("/readyz", ready), Route("/metrics", metrics)]
    return Starlette(routes=routes)


class WatchedConnection(H11Protocol):
    """A connection that is closed where its client keeps it waiting: in so many seconds, or twice as many.

    It waits for a request's headers, for what is left of a body after the reply, or for somebody to read a reply. Else
    whoever opens a thousand connections and then does nothing, or next to nothing, keeps all others out.
    """

    def __init__(self, seconds: float, **given: Any) -> None:
        super().__init__(**given)
        self._seconds = seconds

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._look(None, 0)

    def _look(self, waited_after: object, unread: int) -> None:
        """Close the connection if it has waited for the same thing since it was looked at last."""
        if (still_unread := self.transport.get_write_buffer_size()) and still_unread == unread:
            self.transport.abort()
            return
        body_is_left = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        waits_after = (self.cycle,) if self.conn.their_state is h11.IDLE or body_is_left else None
        if waits_after is not None and waits_after == waited_after:
            self.timeout_keep_alive_handler()
        if still_unread or not self.transport.is_closing():
            self.loop.call_later(self._seconds, self._look, waits_after, still_unread)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as everything else is answered, or hang up where a reply has begun."""
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        headers = {**HEADERS, "Connection": "close"}
        refusal = problem(Refusal("bad-request", "this is no request of HTTP/1.1.", headers))
        head = h11.Response(status_code=refusal.status_code, headers=refusal.raw_headers)
        for event in (head, h11.Data(data=bytes(refusal.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def _uvicorn(app: ASGIApp, host: str, port: int, config: Config, tls: bool) -> uvicorn.Server:
    files: dict[str, Any] = {}
    if tls and config.certificate is not None:
        files = {
            "ssl_certfile": config.certificate,
            "ssl_keyfile": config.private_key,
            "ssl_version": ssl.PROTOCOL_TLS_SERVER,
        }
    settings = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,  # paths and queries are the analysts'
        log_level="error",  # a warning for each request that is none would fill a log
        lifespan="off",
        server_header=False,
        proxy_headers=bool(config.proxies),
        forwarded_allow_ips=list(config.proxies) or None,
        timeout_graceful_shutdown=int(config.limits.grace),
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=16_384,  # bytes of a request's headers
        http=functools.partial(WatchedConnection, config.limits.header_seconds),  # type: ignore[arg-type]
        ws="none",
        limit_concurrency=1000,
        **files,
    )
    server = uvicorn.Server(settings)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    return server


class Running:
    """A server with its listeners.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        config = service.config
        self._servers = [_uvicorn(application(service), config.host, config.port, config, tls=True)]
        if config.operations is not None:
            self._servers.append(_uvicorn(operations(service), *config.operations, config, tls=False))
        self.started = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self.failed: BaseException | None = None

    @property
    def url(self) -> str:
        """Where the API is."""
        return self._url(0, "http" if self.service.config.certificate is None else "https")

    @property
    def operations_url(self) -> str:
        """Where health and metrics are."""
        return self._url(1, "http")

    def _url(self, number: int, scheme: str) -> str:
        host, port = self._servers[number].servers[0].sockets[0].getsockname()[:2]
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def run(self, ready: Callable[[], None] = lambda: None, signals: bool = False) -> None:
        """Serve until `stop`; then finish what runs."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def stop() -> None:
            loop.call_soon_threadsafe(done.set)

        self._stop = stop
        if signals:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, done.set)
            loop.add_signal_handler(signal.SIGHUP, lambda: asyncio.ensure_future(self._reload()))
        tasks = [asyncio.create_task(server.serve()) for server in self._servers]
        try:
            while not all(server.started for server in self._servers):
                if any(task.done() for task in tasks):
                    raise QuestionError("the server cannot listen there: the address is taken, or not of this machine.")
                await asyncio.sleep(0.005)
            ready()
            self.started.set()
            while not done.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(done.wait(), _SWEEP)
                if not done.is_set():
                    await loop.run_in_executor(self.service.guards, self._tidy)
        finally:
            self.service.stopping = True
            for server in self._servers:
                server.should_exit = True
            await asyncio.gather(*tasks, return_exceptions=True)
            await loop.run_in_executor(None, self.service.close)

    def _tidy(self) -> None:
        with contextlib.suppress(LedgerError):
            self.service.sittings.sweep()
            self.service.audit.flush()

    async def _reload(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self.service.guards, self.service.reread)
        except LedgerError as error:
            self.service.log("reload", error)
        except QuestionError:
            pass  # it was told

    def stop(self) -> None:
        """Let `run` end, from any thread."""
        self._stop()


@contextlib.contextmanager
def in_thread(service: Service) -> Iterator[Running]:
    """Run a server in a thread of its own until the block ends."""
    running = Running(service)

    def work() -> None:
        try:
            asyncio.run(running.run())
        except BaseException as error:
            running.failed = error
        finally:
            running.started.set()

    thread = threading.Thread(target=work, name="privet-server", daemon=True)
    thread.start()
    running.started.wait()
    if running.failed is not None:
        raise running.failed
    try:
        yield running
    finally:
        running.stop()
        thread.join()


def serve(config: Config, ready: Callable[[Running, str | None], None]) -> None:
    """Open the tables of a configuration and serve them until a signal says stop.

    Parameters
    ----------
    config : Config
    ready : callable
        Called with the server, and its first token if one was made, when it listens.
    """
    service = service_of(config)
    running = Running(service)
    asyncio.run(running.run(lambda: ready(running, first_token(service)), signals=True))
