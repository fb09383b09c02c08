"""Signing in: the cookie, who may, how it ends, and what a page of another site cannot do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernel.people import DOMAIN, FRAME
from service.console.visitor import SAME_ORIGIN, Visitor, words

from privet import ledger_lines
from privet.service.config import Grant
from privet.service.console.sign_in import COOKIE, IDLE, LONGEST, MOST, SignIns
from privet.service.permissions import Buckets
from privet.service.seeded_server import Served, serve_seeded
from privet.service.tokens import ANALYST, OWNER, new_secret


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as found:
        yield found


def events(served: Served, what: str) -> list[str | None]:
    return [event.analyst for event in ledger_lines.events(served.service.ledger) if event.what == what]


def test_a_token_opens_the_console_and_a_cookie_keeps_it_open(served: Served) -> None:
    visitor = Visitor(served, name="")
    assert visitor.get("/").headers["location"] == "/console/"
    assert visitor.get("/console/").headers["location"] == "/console/sign-in"
    reply = visitor.sign_in(served.token("ada"))
    assert (reply.status_code, reply.headers["location"]) == (303, "/console/?began")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=") and COOKIE.startswith("__Host-")
    assert cookie.split("; ")[1:] == ["Path=/", f"Max-Age={LONGEST}", "Secure", "HttpOnly", "SameSite=Strict"]
    assert "people" in visitor.words("/console/")
    assert events(served, "console-sign-in")[-1] == "ada"
    secret = visitor.headers["Cookie"].partition("=")[2]
    lines = [line.text + line.note_text for line in served.service.ledger.lines()]
    assert not any(secret in line for line in lines)


def test_a_browser_that_keeps_no_cookie_is_told_so(served: Served) -> None:
    visitor = Visitor(served, name="")
    there = visitor.get("/console/?began").headers["location"]
    assert there == "/console/sign-in?began" and "did not keep the cookie" in visitor.words(there)


def test_signing_out_ends_it_on_the_server(served: Served) -> None:
    visitor = Visitor(served, "lise")
    reply = visitor.post("/console/sign-out")
    assert "Max-Age=0" in reply.headers["set-cookie"] and reply.headers["location"] == "/console/sign-in"
    assert visitor.get("/console/").status_code == 303  # the old cookie is worth nothing
    assert events(served, "console-sign-out")[-1] == "lise"


def test_a_new_sign_in_replaces_the_one_before(served: Served) -> None:
    visitor = Visitor(served, "lise")
    old = dict(visitor.headers)
    visitor.sign_in(served.token("ada"))
    visitor.headers, new = old, visitor.headers
    assert visitor.get("/console/").status_code == 303
    visitor.headers = new
    assert visitor.get("/console/").status_code == 200


def test_wrong_tokens_get_one_reply_and_are_written_down_and_limited() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as served:
        visitor = Visitor(served, name="")
        tokens = served.service.access.tokens
        revoked, record = tokens.create("ada", ANALYST)
        tokens.revoke(record.id)
        wrong = [new_secret(ANALYST), new_secret(OWNER), "", "x" * 10_000, revoked, tokens.create("eve")[0]]
        replies = [visitor.post("/console/sign-in", token=token) for token in wrong]
        assert {reply.status_code for reply in replies} == {401} and len({reply.text for reply in replies}) == 1
        assert not any("set-cookie" in reply.headers for reply in replies)
        assert events(served, "console-refused") == [None]  # repetitions are counted: nobody fills the ledger
        served.service.failures = Buckets(0, 5, lambda: 0.0)  # however long the requests take
        statuses = [visitor.post("/console/sign-in", token="x").status_code for _ in range(6)]
        assert statuses[:5] == [401] * 5
        assert statuses[-1] == 429
        good = served.token("ada")
        assert visitor.sign_in(good).status_code == 303  # whoever has a token is not locked out


def test_a_revoked_token_and_a_lost_grant_end_a_sign_in() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as served:
        tokens, visitor, other = served.service.access.tokens, Visitor(served, "ada"), Visitor(served, "lise")
        owner = Visitor(served, "grace", OWNER)
        tokens.revoke(next(token.id for token in tokens.all() if token.name == "ada"))
        assert visitor.get("/console/").status_code == 303
        served.service.reload({"lise": Grant({})}, ("grace",))
        assert "No table is open to you" in other.words("/console/")
        assert other.get("/console/tables/people").status_code == 404
        served.service.reload({}, ())
        assert other.get("/console/").status_code == 303 and owner.get("/console/").status_code == 303


def test_sign_ins_end_by_themselves() -> None:
    now = [0.0]
    sign_ins = SignIns(lambda: now[0])
    secret = sign_ins.begin("t")
    now[0] = IDLE - 1
    assert sign_ins.find(secret) is not None
    now[0] += IDLE + 1
    assert sign_ins.find(secret) is None
    secret, start = sign_ins.begin("t"), now[0]
    while now[0] < start + LONGEST:
        assert sign_ins.find(secret) is not None
        now[0] += IDLE
    now[0] = start + LONGEST + 1
    assert sign_ins.find(secret) is None and sign_ins.find("") is None and sign_ins.find(None) is None
    secrets = [sign_ins.begin("t") for _ in range(MOST + 1)]
    assert sign_ins.find(secrets[0]) is None and sign_ins.find(secrets[1]) is not None
    assert len(sign_ins) == MOST
    now[0] += LONGEST
    assert not sign_ins.lives(secrets[-1]) and len(sign_ins) == 0  # nothing is kept of those that have ended


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "null"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_posts_from_elsewhere_do_nothing(served: Served, headers: dict[str, str]) -> None:
    visitor = Visitor(served, "ada")
    spent = served.service.ledger.spent("people")
    for path in ("/console/tables/people/ask", "/console/tables/people/request", "/console/sign-out"):
        fields = {"kind": "count", "epsilon": "1", "key": "abcdefgh", "purpose": "x"}
        reply = visitor.send(path, fields, headers)
        assert reply.status_code == 403 and "came from another site" in words(reply)
    reply = visitor.send("/console/sign-in", {"token": served.token("ada")}, headers)
    assert reply.status_code == 403 and "set-cookie" not in reply.headers
    assert served.service.ledger.spent("people") == spent and visitor.get("/console/").status_code == 200
    assert visitor.send("/console/sign-out", {}, {"Origin": served.url}).status_code == 303


def test_forms_are_bounded_and_of_one_type(served: Served) -> None:
    visitor = Visitor(served, "ada")

    def sent(content: bytes, kind: str = "application/x-www-form-urlencoded") -> int:
        headers = {**SAME_ORIGIN, "Content-Type": kind}
        return visitor.send("/console/tables/people/ask", content, headers).status_code

    assert sent(b"kind=count", "application/json") == 415 and sent(b"kind=count", "multipart/form-data") == 415
    assert sent(b"a=" + b"x" * 300_000) == 413 and sent(b"a=1&" * 5000) == 400 and sent(b"kind=%ff") == 400
