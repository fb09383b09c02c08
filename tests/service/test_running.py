"""The life of a server: listeners, TLS, ticks, replies that are lost, grants read again, and a clean end."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kernel.people import DOMAIN, FRAME
from service.server_process import serving
from service.test_boundary import COUNT, bearer, connected

import privet
from privet import ledger_lines
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.service.api import AnswerBody, HoldBody, QuoteBody, RowsBody
from privet.service.boundary import Call, Gate
from privet.service.client import connect
from privet.service.config import Limits
from privet.service.handlers import entries
from privet.service.permissions import Caller
from privet.service.routes import OPERATIONS
from privet.service.running import default_tick
from privet.service.seeded_server import UNLIMITED, serve_seeded, serve_sessions

CONFIG = """\
[server]
address = "127.0.0.1:0"
{more}
[tables.people]
data = "people.csv"
domain = "people.toml"
budget = 1
tick = 0

[analysts.{analyst}]
tables = ["people"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    DOMAIN.save(tmp_path / "people.toml")
    return tmp_path


def token(folder: Path, name: str, role: str = "--analyst") -> str:
    from command import run

    made = run("token", "create", "privet.toml", role, name, cwd=folder)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_health_readiness_and_counts_have_a_listener_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    with serve_sessions({"people": session}, operations=("127.0.0.1", 0)) as served:
        there = served.running.operations_url
        assert httpx2.get(f"{there}/healthz").text == "ok\n"
        assert httpx2.get(f"{there}/readyz").text == "ready\n"
        with served.connect("somebody") as connection:
            connection.table("people").count(1)
        counts = httpx2.get(f"{there}/metrics").text
        assert 'privet_requests_total{status="2xx"} 4' in counts and "privet_late_answers_total 0" in counts
        assert not any(word in counts for word in ("people", "somebody", "seconds", "bytes"))
        for path in ("/healthz", "/readyz", "/metrics"):
            assert httpx2.get(f"{served.url}{path}").status_code == 404
        assert httpx2.get(f"{there}/v1/tables").status_code == 404

        def fails(*words: Any) -> Any:
            raise privet.errors.LedgerError("out of reach")

        monkeypatch.setattr(ledger_lines, "events", fails)
        assert httpx2.get(f"{there}/readyz").status_code == 503


def test_a_server_speaks_tls_and_its_client_checks_it(folder: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(["openssl", *words.split(), *names], cwd=folder, check=True, capture_output=True)
    more = 'certificate = "cert.pem"\nprivate_key = "key.pem"'
    (folder / "privet.toml").write_text(CONFIG.format(more=more, analyst="ada"))
    secret = token(folder, "ada")
    with serving("privet.toml", cwd=folder) as server:
        assert server.url.startswith("https://")
        with pytest.raises(privet.errors.ServerError, match="cannot be reached"):
            connect(server.url, secret, tries=1)  # nobody vouches for the certificate
        with connect(server.url, secret, verify=str(folder / "cert.pem")) as connection:
            assert connection.table("people").count("0.1") is not None
            reply = connection._client.get("/v1/tables")
            assert "max-age" in reply.headers["strict-transport-security"]
        assert server.stop() == 0


def test_grants_are_read_again_at_a_signal_and_a_mistake_changes_nothing(folder: Path) -> None:
    (folder / "privet.toml").write_text(CONFIG.format(more="", analyst="ada"))
    secret, other = token(folder, "ada"), token(folder, "grace")
    with serving("privet.toml", cwd=folder) as server:
        with connect(server.url, secret) as connection, pytest.raises(privet.errors.ServerError):
            assert connection.tables() == ["people"]
            connect(server.url, other, tries=1)
        (folder / "privet.toml").write_text("[server]\nadress = 1\n")
        server.process.send_signal(signal.SIGHUP)
        assert "line 2" in server._until("grants stay as they were")
        with connect(server.url, secret) as connection:
            assert connection.tables() == ["people"]
        (folder / "privet.toml").write_text(CONFIG.format(more="", analyst="grace"))
        server.process.send_signal(signal.SIGHUP)
        server._until("grants were read again")
        with connect(server.url, other) as connection:
            assert connection.tables() == ["people"]
        with pytest.raises(privet.errors.ServerError, match="token"):
            connect(server.url, secret)
        assert server.stop() == 0


def test_an_owner_who_reads_grants_again_is_told_nothing_of_the_file(folder: Path) -> None:
    """A table that is new in it waits for a restart, and what else is new holds at once."""
    (folder / "privet.toml").write_text(CONFIG.format(more='owners = ["lise"]', analyst="ada"))
    new = '\n[tables.secret]\ndata = "people.csv"\ndomain = "people.toml"\n'
    new += '[analysts.bob]\ntables = {people = "0.25", secret = "0.5"}\n'
    secret = token(folder, "lise", "--owner")
    with serving(str(folder / "privet.toml"), cwd=folder) as server:
        with connect(server.url, secret) as connection:
            (folder / "privet.toml").write_text(CONFIG.format(more='owners = ["lise"]', analyst="ada") + new)
            connection.owner.reload()
            server._until("grants were read again; served after a restart: secret")
            assert ("bob", "people", "1/4") in [
                (own["analyst"], own["table"], own["cap"]) for own in connection.owner.grants()
            ]
            (folder / "privet.toml").write_text("[analysts.ada]\ntables = ['hidden']\n")
            with pytest.raises(privet.errors.QuestionError, match="the server's own output") as refused:
                connection.owner.reload()
            assert "hidden" not in str(refused.value) and str(folder) not in str(refused.value)
            server._until("grants stay as they were")
        assert server.stop() == 0 and not any("Traceback" in line for line in server.said)


def test_a_stop_finishes_what_was_charged_and_ends_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go_on = threading.Event(), threading.Event()
    counts = MemoryEngine.exact_counts

    def paused(self: Any, query: Any) -> Any:
        asked.set()
        assert go_on.wait(60)
        return counts(self, query)

    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    answers: list[Any] = []
    with serve_sessions({"people": session}) as served:
        connection = served.connect()
        table = connection.table("people")
        held = table.reserve(2)
        held.__enter__()
        assert len(session.ledger.holds("people")) == 1
        monkeypatch.setattr(MemoryEngine, "exact_counts", paused)
        thread = threading.Thread(target=lambda: answers.append(table.count(1)))
        thread.start()
        assert asked.wait(60)
        served.running.stop()
        go_on.set()
        thread.join()
    assert len(answers) == 1 and session.ledger.entries("people")[0].answer is not None
    assert session.ledger.holds("people") == [] and session.engine.closed
    connection.close()


class Lossy(httpx2.BaseTransport):
    """A network that loses every second reply, after the server has answered."""

    def __init__(self, real: httpx2.BaseTransport) -> None:
        self._real, self._number, self.sent = real, 0, 0

    def close(self) -> None:
        self._real.close()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        reply = self._real.handle_request(request)
        reply.read()
        self._number += 1
        self.sent += 1
        if self._number % 2:
            raise httpx2.ReadError("the reply was lost")
        return reply


def test_a_question_whose_reply_was_lost_is_sent_again_and_paid_once() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=1) as served, served.connect() as connection:
        table = connection.table("people")
        connection._sleep = lambda seconds: None
        lossy = connection._client._transport = Lossy(connection._client._transport)
        parts = table.partition("sex")
        assert len(parts.count(1)) == 4 and lossy.sent == 2
        with table.reserve(1) as scope:
            scope.monitor("0.5", 1)
        parts.count(1)[0].refine(2)
        lossy._number = 1  # what follows is not lost
        assert table.budget.spent == Fraction(4) and served.service.ledger.holds("people") == []
        assert [entry.question for entry in table.budget.entries] == [
            "count",
            "monitor(0.5)",
            "count",
            "refine count to 2",
        ]


def test_a_sitting_that_is_gone_begins_anew_where_the_client_stands() -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    with serve_sessions({"people": session}) as served, served.connect() as connection:
        parts = connection.table("people").partition("income")
        parts["low"].count(1)
        served.service.sittings.sweep(all_of_them=True)
        parts["high"].count(1)  # its steps are sent again, in full
        assert session.ledger.spent("people") == 2  # dearer: parts share nothing with the sitting before


# -- ticks ------------------------------------------------------------------------------------------


def test_an_answer_leaves_at_a_tick_whatever_it_took() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=1) as served:
        service, now = served.service, [0.0]
        service.clock = lambda: now[0]
        gate, left = Gate(service), []
        for taken in (0.0, 0.001, 0.0999, 0.1):
            now[0] = 5 + taken
            left.append(gate._leaves(5.0, 0.1, False))
        assert set(left) == {5.1} and service.counts["late", ""] == 0
        late = []
        for taken in (0.11, 3.0, 9.99, 10.5):
            now[0] = 5 + taken
            late.append(gate._leaves(5.0, 0.1, False))
        assert late == [15.0, 15.0, 15.0, 25.0] and service.counts["late", ""] == 4


@pytest.mark.parametrize(("tick", "under_way"), [(3600.0, True), (0.0, False)])
def test_a_question_is_under_way_until_its_answer_leaves(tick: float, under_way: bool) -> None:
    """Else a second request under its key, or one too many, would tell before the tick that the engine is done."""
    with serve_seeded(FRAME, DOMAIN, 10, seed=1, tick=tick) as served:
        service = served.service
        served.token()
        service.access.refresh()
        (token,) = service.access.tokens.all()
        ask = next(operation for operation in OPERATIONS if operation.name == "ask")
        whose, session = Caller("ada", "analyst", token), service.sessions["people"]
        service.sleep = lambda seconds: True
        question = {"question": "count", "version": 1}
        body = AnswerBody(sitting="a-sitting", rows=[], question=question, epsilon={"all": "1", "parts": 1}, key="a")
        call = Call(whose, "people", session, body, {}, {})

        async def asked() -> tuple[object, ...]:
            await Gate(service)._run(ask, call, service.clock())
            await asyncio.sleep(0)  # what is called when the work is done
            (entry,) = entries(service, call).entries
            return service.keys, service.asking["ada"], entry.answered

        assert session.ledger.spent("people") == 0
        assert asyncio.run(asked()) == ({("ada", "people", "a")} if under_way else set(), int(under_way), not under_way)
        assert session.ledger.spent("people") == 1


@pytest.mark.parametrize("changing", [True, False])
def test_a_quote_leaves_at_a_tick_where_it_may_wait_for_an_answer(changing: bool) -> None:
    """Where rows may change a question keeps its sitting until it is answered: a quote would tell when that is."""
    with serve_seeded(FRAME, DOMAIN, 10, seed=1, tick=3600.0) as served:
        service = served.service
        assert service.changing == set()  # rows in memory do not change
        service.changing = {"people"} if changing else set()
        served.token()
        service.access.refresh()
        (token,) = service.access.tokens.all()
        rows: dict[str, Any] = {"sitting": "a-sitting", "rows": [], "hold": None}
        question, epsilon = {"question": "count", "version": 1}, {"all": "1", "parts": 1}
        bodies = {
            "quote": QuoteBody(**rows, question=question, epsilon=epsilon),
            "remaining": RowsBody(**rows),
            "hold": HoldBody(**rows, id="a-reservation", epsilon="1"),
        }

        async def asked(name: str) -> int:
            operation = next(operation for operation in OPERATIONS if operation.name == name)
            call = Call(Caller("ada", "analyst", token), "people", service.sessions["people"], bodies[name], {}, {})
            await Gate(service)._run(operation, call, service.clock())
            await asyncio.sleep(0)
            return service.asking["ada"]

        assert [asyncio.run(asked(name)) for name in bodies] == ([1, 2, 3] if changing else [0, 0, 0])


def test_ticks_follow_from_the_public_bound_of_the_rows() -> None:
    assert default_tick(DOMAIN) == pytest.approx(0.021) and default_tick(DOMAIN.with_rows(None, 10**6)) == 0.52
    limits = Limits(rate=1e9, burst=10**6, refresh=0)
    with serve_seeded(FRAME, DOMAIN, 10, seed=1, limits=limits, tick=0.01) as served, served.connect() as connection:
        assert connection.table("people")._backend.described["tick"] == 0.01
        connection.table("people").count(1)
        assert served.service.limits == limits != UNLIMITED


# -- connections that keep a server waiting --------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /v1/tables HTTP/1.1\r\nHost: local", b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"],
)
def test_a_connection_without_a_request_is_closed_and_one_that_waits_for_its_answer_is_not(sent: bytes) -> None:
    limits = Limits(rate=1e9, burst=10**6, refresh=0, header_seconds=0.02)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits, tick=0.2) as served, connected(served) as connection:
        connection.sendall(sent)
        while piece := connection.recv(65536):
            assert piece and sent.endswith(b"\r\n\r\n")
        reply = httpx2.post(f"{served.url}/v1/tables/people/answers", headers=bearer(served.token()), json=COUNT)
        assert reply.status_code == 200  # after ten times as long


def assert_closed(connection: socket.socket, piece: bytes, read: bool) -> None:
    """The server hangs up on a client that goes on sending, within half a minute."""
    connection.settimeout(0.001)
    with pytest.raises(ConnectionError):
        for _ in range(30_000):
            with suppress(TimeoutError):
                connection.sendall(piece)
                if read and not connection.recv(65536):
                    raise ConnectionError


@pytest.mark.parametrize("line", ["GET /v1/openapi.json", "POST /v1/tables/people/answers", "PUT /nowhere"])
def test_a_connection_is_closed_whose_body_goes_on_after_the_reply(line: str) -> None:
    limits = Limits(rate=1e9, burst=10**6, refresh=0, header_seconds=0.02)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits) as served, connected(served) as connection:
        connection.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {10**9}\r\n\r\n".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 ")
        assert_closed(connection, b"x", read=True)


def test_a_connection_is_closed_whose_replies_nobody_reads() -> None:
    limits = Limits(rate=1e9, burst=10**6, refresh=0, header_seconds=0.02)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits) as served, connected(served) as connection:
        assert_closed(connection, b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)


def test_a_body_that_goes_wrong_after_the_reply_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """And writes no traceback: whoever has no token would fill the log."""
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as served, connected(served) as connection:
        connection.sendall(b"POST /v1/tables HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        reply = connection.recv(65536)
        while not reply.endswith(b"}"):  # headers and body may come apart
            reply += connection.recv(65536)
        assert reply.startswith(b"HTTP/1.1 405")
        connection.sendall(b"no length\r\n")
        assert connection.recv(65536) == b""
    assert caplog.records == []
