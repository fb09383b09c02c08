"""What a penetration tester tries: tokens, routes, bodies, headers. Nothing is charged, nothing of the rows is told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from kernel.people import DOMAIN, FRAME

import privet
from privet import ledger_lines
from privet.errors import QuestionError
from privet.kernel import Ledger
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.service import sittings
from privet.service.boundary import Operation, nesting
from privet.service.config import Grant, Limits
from privet.service.decisions import MOST_OPEN
from privet.service.permissions import Buckets
from privet.service.routes import OPERATIONS
from privet.service.seeded_server import UNLIMITED, Served, serve_seeded, serve_sessions
from privet.service.tokens import ANALYST, OWNER, Tokens, new_secret

ID = "0123456789abcdef"
COUNT = {
    "sitting": ID,
    "rows": [],
    "question": {"question": "count", "version": 1},
    "epsilon": {"all": "1/10", "parts": 1},
    "key": "k",
}


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def send(served: Served, operation: Operation, headers: dict[str, str], table: str = "people") -> httpx2.Response:
    path = operation.path.replace("{table}", table)
    for name in ("hold", "monitor", "job", "model", "request", "token"):
        path = path.replace(f"{{{name}}}", "12345678")
    body = COUNT if operation.method == "POST" else None
    return httpx2.request(operation.method, served.url + path, headers=headers, json=body)


def assert_problem(reply: httpx2.Response, status: int, kind: str) -> dict[str, Any]:
    content: dict[str, Any] = reply.json()
    assert (reply.status_code, content["type"]) == (status, f"urn:privet:problem:{kind}"), content
    assert reply.headers["content-type"] == "application/problem+json"
    assert content["status"] == status and content["charged"] in (False, True, "unknown")
    assert reply.headers["cache-control"] == "no-store" and reply.headers["x-content-type-options"] == "nosniff"
    assert "server" not in reply.headers
    return content


def spent(served: Served) -> Fraction:
    return served.service.ledger.spent("people")


# -- tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_route_refuses_whoever_may_not_use_it(served: Served, operation: Operation) -> None:
    """Without a token, with one that is wrong, of another kind, expired, revoked, or of an analyst without a grant."""
    service = served.service
    live = served.token("ada")
    served.token("grace", OWNER)
    tokens = service.access.tokens
    revoked, record = tokens.create("ada", ANALYST)
    tokens.revoke(record.id)
    last_year = Tokens(service.ledger, lambda: datetime.now(UTC) - timedelta(days=365))
    expired, _ = last_year.create("ada", ANALYST, days=30)
    tokens.refresh()
    stranger, _ = tokens.create("eve", ANALYST)
    flipped = live[:-1] + ("0" if live[-1] != "0" else "1")
    for headers in (
        {},
        bearer(new_secret(ANALYST)),
        bearer(flipped),
        bearer(live + "x"),
        bearer(revoked),
        bearer(expired),
        bearer(stranger),
        {"Authorization": f"Basic {live}"},
        {"Authorization": live},
    ):
        reply = send(served, operation, headers)
        assert_problem(reply, 401, "unauthenticated")
        assert reply.headers["www-authenticate"].startswith("Bearer")
    wrong = served.token("lise", ANALYST) if operation.role == OWNER else tokens.create("grace", OWNER)[0]
    if operation.role is not None:
        assert_problem(send(served, operation, bearer(wrong)), 403, "not-allowed")
    if "{table}" in operation.path:
        token = bearer(served.token("ida", operation.role or ANALYST, ("elsewhere",)))
        absent, not_yours = send(served, operation, token, "nowhere"), send(served, operation, token)
        assert_problem(absent, 404, "not-found")
        assert absent.content == not_yours.content and not_yours.status_code == 404
    assert spent(served) == 0


def test_a_token_ends_on_its_day_and_is_revoked_at_once(served: Served) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    tokens = Tokens(served.service.ledger, lambda: now[0])
    secret, token = tokens.create("ada", days=30)
    assert tokens.find(secret) == token
    now[0] += timedelta(days=30)
    assert tokens.find(secret) is None
    now[0] -= timedelta(days=1)
    other = Tokens(served.service.ledger, lambda: now[0])  # another server of the ledger
    other.revoke(token.id)
    tokens.refresh()
    assert tokens.find(secret) is None
    with pytest.raises(privet.errors.QuestionError, match="1 to 400 days"):
        tokens.create("ada", days=401)


def test_a_token_is_kept_as_its_hash_alone(served: Served) -> None:
    secret = served.token()
    lines = [line.text + line.note_text for line in served.service.ledger.lines()]
    assert not any(secret in line or secret[6:20] in line for line in lines)
    owner = bearer(served.token("grace", OWNER))
    events = httpx2.get(f"{served.url}/v1/owner/events", headers=owner)
    assert "sha256" not in events.text and '"event":"token"' in events.text


def test_a_grant_that_ends_closes_the_door_and_the_sitting(served: Served) -> None:
    token = served.token("ada")
    with privet.connect(served.url, token) as connection:
        table = connection.table("people")
        table.count("0.1")
        served.service.reload({"ada": Grant({})}, ())
        with pytest.raises(privet.errors.QuestionError, match="not yours"):
            table.count("0.1")
        assert served.service.sittings.sweep() == 0
        served.service.reload({}, ())
        with pytest.raises(privet.errors.ServerError, match="token"):
            table.count("0.1")
    events = [
        (event.what, event.analyst, event.facts.get("tables")) for event in ledger_lines.events(served.service.ledger)
    ]
    assert [event for event in events if event[0] == "grant"] == [
        ("grant", "ada", {"people": None}),
        ("grant", "ada", {}),
        ("grant", "ada", None),
    ]
    assert spent(served) == Fraction(1, 10)


def test_a_grant_with_a_cap_is_a_cap_in_the_ledger(served: Served) -> None:
    served.service.reload({"ada": Grant({"people": Fraction(1, 4)})}, ())
    secret, _ = served.service.access.tokens.create("ada")
    with privet.connect(served.url, secret) as connection:
        table = connection.table("people")
        assert table.budget.remaining == Fraction(1, 4)
        with pytest.raises(privet.BudgetExceeded) as refused:
            table.count("0.3")
        assert (refused.value.requested, refused.value.remaining) == (Fraction(3, 10), Fraction(1, 4))
        assert refused.value.charged is False


def test_logins_and_refusals_are_in_the_ledger_and_cannot_fill_it(served: Served) -> None:
    token = bearer(served.token("ada"))
    for _ in range(5):
        httpx2.get(f"{served.url}/v1/tables", headers=token)
        httpx2.get(f"{served.url}/v1/tables/other", headers=token)
        httpx2.get(f"{served.url}/v1/tables")
    served.service.audit.flush()
    events = [(event.what, event.analyst, event.facts) for event in ledger_lines.events(served.service.ledger)]
    assert ("login", "ada", {}) in events and events.count(("login", "ada", {})) == 1
    assert ("not-found", "ada", {}) in events and ("not-found", "ada", {"repeated": 4}) in events
    assert ("unauthenticated", None, {}) in events and ("unauthenticated", None, {"repeated": 4}) in events
    served.service.ledger.check()


# -- bodies ---------------------------------------------------------------------------------------

TERM = {"columns": ["sex"], "shape": [1] * 65, "table": [5]}  # of more axes than an array has
LONG_SHAPE = {"columns": ["sex"], "shape": [2**62] * 200_000, "table": [5]}  # whose product takes minutes
DEEP = b'{"sitting": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BODIES = [
    (b"", 400, "bad-json"),
    (b"{", 400, "bad-json"),
    (b"\xff\xfe", 400, "bad-json"),
    (b"[1]", 422, "bad-question"),
    (b"{}", 422, "bad-question"),
    (b"null", 422, "bad-question"),
    (b"NaN", 400, "bad-json"),
    (DEEP, 422, "bad-question"),
    (b"[" * 5000, 422, "bad-question"),
    (json.dumps({**COUNT, "more": 1}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "sitting": "../../etc"}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "key": ""}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "key": "a\nb"}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID}]}).encode(), 409, "unknown-rows"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "sql": "drop table people"}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "keep": [0, 0], "where": []}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "keep": [-1], "where": []}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "cells": "x", "copies": {}}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "allot": "-1"}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "rows": [{"id": ID, "scatter": 10**9, "seed": "1"}]}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "hold": "not-there-1"}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "question": {"question": "race", "version": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "question": {"question": "count", "version": 2}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "0", "parts": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "-1/10", "parts": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "1e-3", "parts": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": 0.1, "parts": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "1/10", "parts": 2}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "2/20", "parts": 1}}).encode(), 422, "bad-question"),
    (json.dumps({**COUNT, "epsilon": {"all": "11", "parts": 1}}).encode(), 403, "budget-exceeded"),
]


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_a_body_is_checked_before_anything_is_charged(served: Served, number: int) -> None:
    body, status, kind = BODIES[number]
    headers = {**bearer(served.token()), "Content-Type": "application/json"}
    reply = httpx2.post(f"{served.url}/v1/tables/people/answers", headers=headers, content=body)
    content = assert_problem(reply, status, kind)
    assert content["charged"] is False and spent(served) == 0 and len(reply.content) < 2000


def with_term(term: dict[str, Any]) -> dict[str, Any]:
    model = {"model": "additive", "version": 1, "intercept": [0, 0], "terms": [term]}
    return {**COUNT, "question": {"question": "count-correct", "version": 1, "model": model}}


def with_quality(term: dict[str, Any]) -> dict[str, Any]:
    qualities = [{"name": name, **term} for name in ("a", "b")]
    question = {"question": "choose", "version": 1, "candidates": qualities, "bound": 1, "mechanism": "permute"}
    return {**COUNT, "question": question}


@pytest.mark.parametrize("asked", [with_term, with_quality])
@pytest.mark.parametrize("term", [TERM, LONG_SHAPE], ids=["many axes", "a long product"])
def test_the_shape_of_a_table_is_short(served: Served, asked: Any, term: dict[str, Any]) -> None:
    """The product of a long shape would stop all threads of the server: the next question is answered."""
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people"
    assert_problem(httpx2.post(f"{path}/answers", headers=token, json=asked(term)), 422, "bad-question")
    assert httpx2.post(f"{path}/answers", headers=token, json=COUNT).status_code == 200


def test_an_analyst_has_so_many_bodies_on_their_way() -> None:
    """As many as requests may be under way: else one token fills the memory of the server with what it never ends."""
    limits = Limits(rate=1e9, burst=10**6, refresh=0, concurrent=2)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits) as served:
        token, path = served.token(), f"{served.url}/v1/tables/people/answers"
        head = f"POST /v1/tables/people/answers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n"
        with ExitStack() as stack:
            for _ in range(4):
                connection = stack.enter_context(connected(served))
                connection.sendall(head.encode())
                assert connection.recv(65536).startswith(b"HTTP/1.1 100")  # its body is awaited
            fifth = httpx2.post(path, headers=bearer(token), json=COUNT)
            assert "bodies of 4" in assert_problem(fifth, 429, "too-many")["detail"]
            other = httpx2.post(path, headers=bearer(served.token("bob")), json=COUNT)
            assert other.status_code == 200


def test_a_body_has_a_type_a_size_and_an_end() -> None:
    limits = Limits(rate=1e9, burst=10**6, refresh=0, body=2000, body_seconds=0.2)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits) as served:
        token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"
        plain = httpx2.post(path, headers={**token, "Content-Type": "text/plain"}, content=b"{}")
        assert_problem(plain, 415, "media-type")
        zipped = httpx2.post(path, headers={**token, "Content-Encoding": "gzip"}, json=COUNT)
        assert_problem(zipped, 415, "media-type")
        long = httpx2.post(path, headers=token, json={**COUNT, "key": "k" * 3000})
        assert_problem(long, 413, "too-large")
        chunks = httpx2.post(
            path, headers={**token, "Content-Type": "application/json"}, content=(b"x" * 500 for _ in range(10))
        )
        assert_problem(chunks, 413, "too-large")
        slow = raw(served, token, b"Content-Type: application/json\r\nContent-Length: 100\r\n", b'{"sitting"')
        assert slow.startswith(b"HTTP/1.1 408") and b"urn:privet:problem:slow-body" in slow
        assert spent(served) == 0


def connected(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_what_is_no_http_is_answered_as_a_problem(served: Served) -> None:
    with connected(served) as connection:
        connection.sendall(b"\x16\x03\x01 what\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400") and b"nosniff" in head and json.loads(body)["charged"] is False


def test_a_token_that_is_revoked_while_a_body_comes_is_refused(served: Served) -> None:
    secret, tokens, body = served.token(), served.service.access.tokens, json.dumps(COUNT).encode()
    found = tokens.find(secret)
    assert found is not None
    head = f"POST /v1/tables/people/answers HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    with connected(served) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 100")  # the token was good, and the body is read
        tokens.revoke(found.id)
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 401")
    assert spent(served) == 0


@pytest.mark.parametrize("key", ["\0", "a\nb", "k\u202e"])
def test_a_key_that_a_ledger_may_not_keep_is_refused_before_a_charge(served: Served, key: str) -> None:
    """PostgreSQL keeps no zero character: a fit under such a key would be paid and its model lost."""
    path, token = f"{served.url}/v1/tables/people", bearer(served.token())
    fit = {"algorithm": "prior", "epsilon": "1", "key": key}
    more = {"epsilon": "1", "purpose": "a tree", "key": key}
    for name, body in (("answers", {**COUNT, "key": key}), ("fits", fit), ("requests", more)):
        content = assert_problem(httpx2.post(f"{path}/{name}", headers=token, json=body), 422, "bad-question")
        assert content["charged"] is False and "key" in content["detail"]
    assert spent(served) == 0


def raw(served: Served, token: dict[str, str], headers: bytes, body: bytes = b"", path: bytes = b"") -> bytes:
    """What comes back for bytes that no client library would send."""
    path = path or b"/v1/tables/people/answers"
    lines = b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers
    lines += b"Authorization: " + token["Authorization"].encode() + b"\r\n\r\n" + body
    with connected(served) as connection:
        connection.sendall(lines)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
            if b"\r\n\r\n" in answer and b'"charged"' in answer:
                break
    return answer


HEADERS = [
    (b"Content-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n", b"{}"),
    (b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n", b"{}"),
    (b"Content-Type: application/json\r\nAuthorization: Bearer x\r\nContent-Length: 2\r\n", b"{}"),
    (b"Content-Type: application/json\r\nHost: evil.example\r\nContent-Length: 2\r\n", b"{}"),
    (b"Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n", b"{}"),
    (b"X: " + b"y" * 100_000 + b"\r\n", b""),
]


@pytest.mark.parametrize("number", range(len(HEADERS)))
def test_tricks_with_headers_get_no_further(served: Served, number: int) -> None:
    headers, body = HEADERS[number]
    reply = raw(served, bearer(served.token()), headers, body)
    assert reply[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 401", b"HTTP/1.1 415", b"HTTP/1.1 421"), reply[:200]
    assert spent(served) == 0


def test_a_server_answers_under_its_own_names_alone(served: Served) -> None:
    token = bearer(served.token())
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost:80@evil.example"):
        reply = httpx2.get(f"{served.url}/v1/tables", headers={**token, "Host": host})
        assert_problem(reply, 421, "wrong-host")
    assert httpx2.get(f"{served.url}/v1/tables", headers={**token, "Host": "LocalHost:99"}).status_code == 200
    forwarded = {**token, "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https", "X-Original-URL": "/metrics"}
    assert httpx2.get(f"{served.url}/v1/tables", headers=forwarded).json() == {"tables": ["people"]}


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/tables/",
        "/v1/tables/../owner/events",
        "/v1/tables/..%2f..%2fetc%2fpasswd",
        "/v1/tables/people%00",
        "/v1/tables/people/../people",
        "/v1//tables",
        "/metrics",
        "/healthz",
        "/docs",
        "/v1/tables/people/answers/x",
        "/v1/tables/%70eople%2fbudget",
        "/v1/tables/people;x=1",
    ],
)
def test_paths_lead_nowhere_but_to_routes(served: Served, path: str) -> None:
    token = bearer(served.token())
    with connected(served) as connection:
        line = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        connection.sendall(f"{line}Authorization: {token['Authorization']}\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 404") and b"urn:privet:problem:not-found" in answer, answer[:200]


def test_methods_and_queries_that_are_none_are_refused(served: Served) -> None:
    token = bearer(served.token())
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        assert_problem(httpx2.request(method, f"{served.url}/v1/tables", headers=token), 405, "method")
    for query in ("?after=1", "?x=1"):
        assert_problem(httpx2.get(f"{served.url}/v1/tables{query}", headers=token), 422, "bad-question")
    for query in ("?after=-1", "?after=1&after=2", "?after=1e3", "?after=" + "9" * 99):
        reply = httpx2.get(f"{served.url}/v1/tables/people/entries{query}", headers=token)
        assert_problem(reply, 422, "bad-question")


# -- limits ---------------------------------------------------------------------------------------


def test_an_analyst_who_asks_too_fast_waits_and_others_do_not() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=Limits(rate=0.001, burst=3, refresh=0)) as served:
        token, other = bearer(served.token("ada")), bearer(served.token("grace"))
        replies = [httpx2.get(f"{served.url}/v1/tables", headers=token) for _ in range(5)]
        assert [reply.status_code for reply in replies] == [200] * 3 + [429] * 2
        assert int(replies[-1].headers["retry-after"]) >= 1
        assert httpx2.get(f"{served.url}/v1/tables", headers=other).status_code == 200
        served.service.failures = Buckets(1, 20, lambda: 0.0)  # however slow the machine is
        failed = [httpx2.get(f"{served.url}/v1/tables").status_code for _ in range(25)]
        assert failed[:20] == [401] * 20 and failed[-1] == 429


def test_a_bucket_fills_with_time() -> None:
    now = [0.0]
    bucket = Buckets(2, 2, lambda: now[0])
    assert [bucket.wait("a") for _ in range(3)] == [0, 0, 0.5]
    now[0] = 0.5
    assert [bucket.wait("a"), bucket.wait("b")] == [0, 0] and bucket.wait("a") == 0.5


def test_an_analyst_has_so_many_questions_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fifth is refused while four are under way, and a second request under one key waits for the first."""
    import threading

    asked, go_on = threading.Semaphore(0), threading.Event()
    counts = MemoryEngine.exact_counts

    def paused(self: Any, query: Any) -> Any:
        asked.release()
        assert go_on.wait(60)
        return counts(self, query)

    monkeypatch.setattr(MemoryEngine, "exact_counts", paused)
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"
    replies: list[httpx2.Response] = []

    def ask(number: int) -> None:
        replies.append(httpx2.post(path, headers=token, json={**COUNT, "key": str(number)}, timeout=60))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            assert asked.acquire(timeout=60)
        again = httpx2.post(path, headers=token, json={**COUNT, "key": "0"})
        assert assert_problem(again, 409, "key-in-flight")["charged"] == "unknown"
        assert_problem(httpx2.post(path, headers=token, json={**COUNT, "key": "5"}), 429, "too-many")
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert [reply.status_code for reply in replies] == [200] * 4 and spent(served) == Fraction(4, 10)


def test_sittings_are_few_and_end_when_nobody_uses_them(served: Served) -> None:
    token = bearer(served.token())
    now = [0.0]
    served.service.sittings._clock = lambda: now[0]
    path = f"{served.url}/v1/tables/people/remaining"
    for number in range(20):
        body = {"sitting": f"sitting-{number:04}", "rows": []}
        assert httpx2.post(path, headers=token, json=body).status_code == 200
    body = {"sitting": "one-too-many", "rows": []}
    assert_problem(httpx2.post(path, headers=token, json=body), 422, "bad-question")
    now[0] = 3000.0
    httpx2.post(path, headers=token, json={"sitting": "sitting-0003", "rows": []})
    now[0] = 3601.0
    assert served.service.sittings.sweep() == 1
    assert httpx2.post(path, headers=token, json=body).status_code == 200


# -- what leaves ----------------------------------------------------------------------------------


class RowError(ValueError):
    """An error of an engine that quotes a row."""


def test_no_text_of_an_exception_leaves_and_the_charge_is_told(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(self: Any, query: Any) -> Any:
        raise RowError("person 17 earns 12,345")

    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"
    with monkeypatch.context() as patched:
        patched.setattr(MemoryEngine, "exact_counts", fails)
        failed = httpx2.post(path, headers=token, json=COUNT)
    content = assert_problem(failed, 500, "engine-failed")
    assert "17" not in failed.text and "12,345" not in failed.text
    assert (content["charged"], content["retry_with_key"], content["entry"]) == (True, "k", 1)
    again = httpx2.post(path, headers=token, json=COUNT)
    assert again.status_code == 200 and again.json()["entry"] == 1 and spent(served) == Fraction(1, 10)
    with monkeypatch.context() as patched:
        patched.setattr("privet.service.handlers.question_from_json", fails)
        unexpected = httpx2.post(path, headers=token, json={**COUNT, "key": "new"})
    assert_problem(unexpected, 500, "internal")
    said = capfd.readouterr()
    assert "17" not in unexpected.text + said.out + said.err and "Traceback" not in said.err


def test_a_ledger_that_cannot_be_used_is_told_without_its_address(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*words: Any, **more: Any) -> Any:
        raise privet.errors.LedgerError("cannot charge the ledger '/srv/secret.ledger': no space left on device")

    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"
    httpx2.get(f"{served.url}/v1/tables", headers=token)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge", fails)
        reply = httpx2.post(path, headers=token, json=COUNT)
    content = assert_problem(reply, 503, "ledger-unavailable")
    assert "secret" not in reply.text and content["charged"] is False
    with monkeypatch.context() as patched:  # nor can be read who may do what
        patched.setattr(Ledger, "find", fails)
        reply = httpx2.post(path, headers=token, json=COUNT)
    content = assert_problem(reply, 503, "ledger-unavailable")
    assert "secret" not in reply.text and content["charged"] is False


def test_the_same_id_is_the_same_rows_or_refused(served: Served) -> None:
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"

    def ask(rows: list[Any], parts: int, key: str) -> httpx2.Response:
        body = {**COUNT, "rows": rows, "epsilon": {"all": "1/10", "parts": parts}, "key": key}
        return httpx2.post(path, headers=token, json=body)

    divide = {"id": ID, "divide": {"all": {"column": "income", "thresholds": None}, "parts": 1}}
    first = {"id": "first-part", "keep": [0], "where": []}
    second = {"id": "second-part", "keep": [1], "where": []}
    assert ask([divide, first], 1, "1").status_code == 200
    assert ask([{"id": ID}, second], 1, "2").status_code == 200
    assert spent(served) == Fraction(1, 10)  # two parts of one division
    other = {**divide, "id": "another-division"}
    assert ask([other, {**first, "id": "its-first-part"}], 1, "3").status_code == 200
    assert spent(served) == Fraction(2, 10)  # of another, by the same column: it adds
    changed = {**divide, "divide": {"all": {"column": "sex", "thresholds": None}, "parts": 1}}
    assert_problem(ask([changed], 4, "4"), 422, "bad-question")
    assert_problem(ask([other, first], 1, "5"), 422, "bad-question")  # the id of a part of the other division
    assert spent(served) == Fraction(2, 10)


def test_names_of_parts_are_made_by_the_server(served: Served) -> None:
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/answers"
    keep = {"id": ID, "keep": [0], "where": [{"column": "sex", "codes": [1]}, {"column": "age", "low": 20, "high": 40}]}
    assert httpx2.post(path, headers=token, json={**COUNT, "rows": [keep]}).status_code == 200
    (entry,) = served.service.ledger.entries("people")
    assert entry.scope == "all rows where sex = Male and age in [20, 40)"


def test_a_quote_costs_nothing_and_reads_no_row(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any, query: Any) -> Any:
        raise AssertionError("a row was read")

    monkeypatch.setattr(MemoryEngine, "exact_counts", fails)
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/quotes"
    body = {name: value for name, value in COUNT.items() if name != "key"}
    told = httpx2.post(path, headers=token, json=body).json()
    assert told == {"loss": "1/10", "remaining": "10", "fits": True, "unit": "epsilon", "delta": None}
    dear = httpx2.post(path, headers=token, json={**body, "epsilon": {"all": "12", "parts": 1}}).json()
    assert (dear["loss"], dear["fits"]) == ("12", False)
    assert served.service.ledger.entries("people") == []


def test_requests_for_more_budget_are_decided_by_an_owner(served: Served) -> None:
    served.service.reload({"ada": Grant({"people": Fraction(1)})}, ("grace",))
    ada = bearer(served.service.access.tokens.create("ada")[0])
    grace = bearer(served.service.access.tokens.create("grace", OWNER)[0])
    path, owner = f"{served.url}/v1/tables/people/requests", f"{served.url}/v1/owner/requests"
    body = {"epsilon": "1/2", "purpose": "a second tree", "key": "r1"}
    made = httpx2.post(path, headers=ada, json=body)
    assert made.status_code == 201 and made.json()["state"] == "open"
    assert httpx2.post(path, headers=ada, json=body).json() == made.json()
    assert_problem(httpx2.post(path, headers=ada, json={**body, "epsilon": "1"}), 422, "key-reused")
    number = made.json()["id"]
    assert_problem(httpx2.post(f"{owner}/{number}", headers=ada, json={"granted": True}), 403, "not-allowed")
    assert httpx2.post(f"{owner}/{number}", headers=grace, json={"granted": True}).json()["state"] == "granted"
    assert_problem(httpx2.post(f"{owner}/{number}", headers=grace, json={"granted": True}), 422, "refused")
    assert served.service.ledger.cap("people", "ada") == Fraction(3, 2)
    assert httpx2.get(path, headers=ada).json()["requests"][0]["state"] == "granted"
    assert httpx2.get(owner, headers=grace).json()["requests"][0]["purpose"] == "a second tree"


def test_the_list_of_entries_comes_in_pages_and_reads_no_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers of an analyst may be larger than the memory of a server."""
    monkeypatch.setattr("privet.service.handlers.PAGE", 2)
    with served.connect("ada") as mine, served.connect("eve") as others:
        for number in range(5):
            mine.table("people").count("1/100", key=f"k{number}")
            others.table("people").count("1/100")
    token, path = bearer(served.token()), f"{served.url}/v1/tables/people/entries"
    monkeypatch.setattr("privet.kernel.ledger.log.Answer.read", None)
    listed, after = [], 0
    while after is not None:
        reply = httpx2.get(path, headers=token, params={"after": after}).json()
        listed.append([(entry["key"], entry["answered"]) for entry in reply["entries"]])
        after = reply["next"]
    assert listed == [[("k0", True), ("k1", True)], [("k2", True), ("k3", True)], [("k4", True)]]


def test_a_request_that_is_granted_twice_at_once_raises_the_cap_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clicks of an owner, or of two: both find the request open, and the first decision in the ledger counts."""
    import threading

    served.service.reload({"ada": Grant({"people": Fraction(1)})}, ("grace",))
    ada = bearer(served.service.access.tokens.create("ada")[0])
    grace = bearer(served.service.access.tokens.create("grace", OWNER)[0])
    body = {"epsilon": "1/2", "purpose": "a second tree", "key": "r1"}
    made = httpx2.post(f"{served.url}/v1/tables/people/requests", headers=ada, json=body).json()
    both, change = threading.Barrier(2), ledger_lines.change

    def together(ledger: Ledger, seen: int, event: str, **facts: Any) -> int | None:
        if event == "decision":
            both.wait(60)
        return change(ledger, seen, event, **facts)

    monkeypatch.setattr(ledger_lines, "change", together)
    replies: list[httpx2.Response] = []

    def grant() -> None:
        path = f"{served.url}/v1/owner/requests/{made['id']}"
        replies.append(httpx2.post(path, headers=grace, json={"granted": True}, timeout=60))

    threads = [threading.Thread(target=grant) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.status_code for reply in replies) == [200, 422]
    assert served.service.ledger.cap("people", "ada") == Fraction(3, 2)


def test_an_owner_of_one_table_reads_no_events_of_another() -> None:
    first = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    first.ledger.register("others", source="others", budget=Fraction(1), domain=DOMAIN)
    sessions = {"people": first, "others": replace(first, dataset="others")}
    with serve_sessions(sessions, limits=UNLIMITED) as served:
        body = {"epsilon": "1/2", "purpose": "why", "key": "r"}
        for table in sessions:
            path = f"{served.url}/v1/tables/{table}/requests"
            assert httpx2.post(path, headers=bearer(served.token("ada")), json=body).status_code == 201
        for tables, seen in ((("people",), {"people"}), (None, {"people", "others"})):
            owner = bearer(served.token("grace", OWNER, tables))
            events = httpx2.get(f"{served.url}/v1/owner/events", headers=owner).json()["events"]
            assert {event["table"] for event in events if event["event"] == "request"} == seen


def test_one_analyst_sees_nothing_of_another() -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    with serve_sessions({"people": session}, limits=UNLIMITED) as served:
        with served.connect("ada") as one, served.connect("grace") as two:
            first, second = one.table("people"), two.table("people")
            first.count(1, key="k")
            assert second.budget.spent == 0 and second.budget.entries == []
            assert "ada" not in json.dumps(two.get("/v1/tables/people/budget"))
            step = first.where(sex="Male")
            step.count(1)
            stolen = {**COUNT, "sitting": first._backend.sitting, "rows": [{"id": step._sets.chain[-1]["id"]}]}
            reply = httpx2.post(
                f"{served.url}/v1/tables/people/answers", headers=dict(two._client.headers), json=stolen
            )
            assert_problem(reply, 409, "unknown-rows")


def test_how_deep_a_body_is() -> None:
    assert nesting(b"[[]]") == 2 and nesting(b'"[[["') == 0 and nesting(b'["\\"[", [[{}]]]') == 4


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        (b'"' + b'\\"' * 4_000_000, 0),  # a text that never ends, full of quotes
        (b'\\"' * 4_000_000, 0),
        (b'{"a": "' + b"[" * 10_000_000, 1),
        (b'["\\\\", [[]], "\\\\\\"[", "\\u0022["]', 3),
    ],
)
def test_the_depth_of_a_body_takes_time_by_its_length_alone(body: bytes, depth: int) -> None:
    """A regular expression that tried each quote as a beginning would be at work here for days, and nobody served."""
    assert nesting(body) == depth


def test_what_one_analyst_asks_for_free_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes are so many at a time, and who may enter is found out beside them."""
    limits = Limits(rate=1e9, burst=10**9, refresh=0, concurrent=2, workers=4)
    with serve_seeded(FRAME, DOMAIN, 10, seed=3, limits=limits) as served:
        ada, bob = bearer(served.token("ada")), bearer(served.token("bob"))
        begun, over = threading.Semaphore(0), threading.Event()

        def slow(content: object) -> Any:
            begun.release()
            assert over.wait(60)
            raise QuestionError("no step.")

        with monkeypatch.context() as patched:
            patched.setattr(sittings, "step_from_json", slow)
            body = {"sitting": ID, "rows": [{"id": ID, "scatter": 2, "seed": "1"}]}
            sittings_of_hers = [{**body, "sitting": f"sitting-{number}"} for number in range(2)]
            with ThreadPoolExecutor(2) as pool:
                asked = [
                    pool.submit(httpx2.post, f"{served.url}/v1/tables/people/remaining", headers=ada, json=one)
                    for one in sittings_of_hers
                ]
                for _ in asked:
                    assert begun.acquire(timeout=60)
                third = httpx2.get(f"{served.url}/v1/tables", headers=ada)
                others = httpx2.get(f"{served.url}/v1/tables", headers=bob)
                over.set()
                assert {one.result().status_code for one in asked} == {422}
        assert "requests of yours are under way" in assert_problem(third, 429, "too-many")["detail"]
        assert others.json() == {"tables": ["people"]}


def test_the_sittings_of_an_analyst_have_so_many_parts_together(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts, and domains that a step brings, take memory: as much as anybody may have, in however many sittings."""
    monkeypatch.setattr(sittings, "MOST_PARTS", 1000)
    ada, bob, path = bearer(served.token("ada")), bearer(served.token("bob")), f"{served.url}/v1/tables/people"

    def divided(who: dict[str, str], sitting: str, step: dict[str, Any]) -> httpx2.Response:
        return httpx2.post(f"{path}/remaining", headers=who, json={"sitting": sitting, "rows": [{"id": ID, **step}]})

    scatter = {"scatter": 600, "seed": "1"}
    assert divided(ada, "sitting-1", scatter).status_code == 200
    assert "600" not in assert_problem(divided(ada, "sitting-2", scatter), 422, "bad-question")["detail"]
    assert divided(bob, "sitting-1", scatter).status_code == 200
    assert httpx2.post(f"{path}/sittings/close", headers=ada, json={"sitting": "sitting-1"}).status_code == 200
    assert divided(ada, "sitting-2", scatter).status_code == 200
    cells = {"cells": DOMAIN.to_toml() + "#" * 1000, "copies": {}}
    assert_problem(divided(bob, "sitting-2", cells), 422, "bad-question")


def test_an_analyst_has_so_many_requests_that_wait_for_an_owner(served: Served) -> None:
    token, path = bearer(served.token("ada")), f"{served.url}/v1/tables/people/requests"
    body = {"epsilon": "1", "purpose": "more"}
    for number in range(MOST_OPEN):
        assert httpx2.post(path, headers=token, json={**body, "key": f"k{number}"}).status_code == 201
    assert_problem(httpx2.post(path, headers=token, json={**body, "key": "one more"}), 422, "bad-question")
    assert httpx2.post(path, headers=token, json={**body, "key": "k0"}).status_code == 201  # that is written
    owner = bearer(served.token("grace", OWNER))
    (first, *_) = httpx2.get(path, headers=token).json()["requests"]
    httpx2.post(f"{served.url}/v1/owner/requests/{first['id']}", headers=owner, json={"granted": False})
    assert httpx2.post(path, headers=token, json={**body, "key": "one more"}).status_code == 201
