"""What owners decide while servers run: caps, grants and tokens that outlive a server and hold on all of a ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from kernel.people import DOMAIN, FRAME
from service.test_boundary import COUNT, assert_problem, bearer

import privet
from privet import ledger_lines
from privet.kernel import Ledger, Session
from privet.service.config import Grant
from privet.service.decisions import OwnersWord, Whose
from privet.service.seeded_server import Served, serve_sessions
from privet.service.tokens import ANALYST, OWNER

HALF = Fraction(1, 2)
ONE = {"ada": Grant({"people": Fraction(1)})}


def people(delta: str | None = None, budget: str | int = 10) -> Session:
    return privet.testing.open(FRAME, DOMAIN, budget, seed=1, name="people", delta=delta)._session


@contextmanager
def server(session: Session, grants: dict[str, Grant] | None = None) -> Iterator[Served]:
    """Serve a table; started again with the same ledger it is a server that was restarted, or a second one."""
    settings = {"analysts": ONE if grants is None else grants, "owners": ("grace", "heidi")}
    opened = replace(session, engine=people().engine)  # a server that ends closes its own
    with serve_sessions({"people": opened}, **settings) as served:
        yield served


def headers(served: Served, name: str, role: str = ANALYST, tables: tuple[str, ...] | None = None) -> dict[str, str]:
    return bearer(served.service.access.tokens.create(name, role, tables)[0])


def granted_half(served: Served, key: str = "r") -> None:
    """Let ada ask for a half, and grace grant it."""
    ada, grace = headers(served, "ada"), headers(served, "grace", OWNER)
    body = {"epsilon": "1/2", "purpose": "a tree", "key": key}
    made = httpx2.post(f"{served.url}/v1/tables/people/requests", headers=ada, json=body).json()
    reply = httpx2.post(f"{served.url}/v1/owner/requests/{made['id']}", headers=grace, json={"granted": True})
    assert reply.json()["state"] == "granted"
    for token in served.service.access.tokens.all():
        served.service.access.tokens.revoke(token.id)


# -- caps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [None, "1/1000000"])
def test_what_an_owner_granted_outlives_reloads_and_servers(delta: str | None) -> None:
    session = people(delta)
    unit, ledger = session.unit, session.ledger
    with server(session) as first, server(session) as second:
        assert ledger.cap("people", "ada") == unit.amount(1)
        granted_half(first)
        raised = unit.amount(1) + unit.amount(HALF)
        assert ledger.cap("people", "ada") == raised
        for served in (first, second):
            served.service.reload(ONE, ("grace", "heidi"))
            assert ledger.cap("people", "ada") == raised
    with server(session):
        assert ledger.cap("people", "ada") == raised
    lower = {"ada": Grant({"people": HALF})}
    with server(session, lower) as served:
        assert ledger.cap("people", "ada") == 2 * unit.amount(HALF)
        granted_half(served, "r2")
        assert ledger.cap("people", "ada") == 3 * unit.amount(HALF)
    with server(session, lower):
        assert ledger.cap("people", "ada") == 3 * unit.amount(HALF)


def test_servers_that_start_at_once_raise_nothing_twice() -> None:
    session = people()
    with server(session) as served:
        granted_half(served)
    start, count = threading.Barrier(8), 8
    lines = len(session.ledger.lines())

    def announce() -> None:
        decisions = OwnersWord(session.ledger)
        start.wait(60)
        decisions.set_base(Whose("people", "ada"), Fraction(2))

    threads = [threading.Thread(target=announce) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.ledger.cap("people", "ada") == 2 + HALF
    assert len(session.ledger.lines()) == lines + 2  # one event, and the cap that follows from it


def test_a_decision_that_a_restart_overtakes_is_neither_lost_nor_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what a server has read and what it writes, another one decides."""
    session = people()
    with server(session) as served:
        body = {"epsilon": "1/2", "purpose": "a tree", "key": "r"}
        path = f"{served.url}/v1/tables/people/requests"
        made = httpx2.post(path, headers=headers(served, "ada"), json=body).json()
    restarted, other = OwnersWord(session.ledger), OwnersWord(session.ledger)
    change, overtaken = ledger_lines.change, []

    def late(ledger: Ledger, seen: int, event: str, **facts: Any) -> int | None:
        if event == "configured-cap" and not overtaken:
            overtaken.append(other.decide(made["id"], True, "grace"))
        return change(ledger, seen, event, **facts)

    monkeypatch.setattr(ledger_lines, "change", late)
    restarted.set_base(Whose("people", "ada"), Fraction(2))
    assert overtaken and session.ledger.cap("people", "ada") == 2 + HALF
    assert restarted.decide(made["id"], True, "heidi") is None


def test_a_cap_that_an_owner_set_beside_the_server_stays_until_the_configuration_changes() -> None:
    session = people()
    with server(session):
        session.ledger.set_cap("people", "ada", Fraction(0))  # privet budget revoke
    with server(session) as served:
        assert session.ledger.cap("people", "ada") == 0
        reply = httpx2.post(f"{served.url}/v1/tables/people/answers", headers=headers(served, "ada"), json=COUNT)
        assert_problem(reply, 403, "budget-exceeded")
    with server(session, {"ada": Grant({"people": HALF})}):
        assert session.ledger.cap("people", "ada") == HALF
    with server(session, {"ada": Grant({"people": None})}):
        assert session.ledger.cap("people", "ada") == HALF  # no cap is lifted by leaving it out
    with server(session, {"ada": Grant({"people": Fraction(9)})}):
        assert session.ledger.cap("people", "ada") == 9


def test_a_raised_table_may_spend_the_raise_after_a_restart_with_its_old_budget() -> None:
    """A table that is opened with less than its ledger has may spend that; a raise comes on top, as in the ledger."""
    session = people(budget="1")
    grants = {"ada": Grant({"people": None})}
    with server(session, grants) as served:
        granted_half(served)
        assert session.ledger.cap("people") == 1  # there was room for it
        path, body = f"{served.url}/v1/owner/raises", {"table": "people", "epsilon": "1/2", "key": "k"}
        reply = httpx2.post(path, headers=headers(served, "grace", OWNER), json=body)
        assert reply.status_code == 200 and session.ledger.cap("people") == 1 + HALF
    reopened = replace(session, limit=Fraction(1))  # what opening it with budget = "1" makes of it now
    with server(reopened, grants) as served:
        path, ada = f"{served.url}/v1/tables/people", headers(served, "ada")
        assert httpx2.get(f"{path}/budget", headers=ada).json()["remaining"] == "3/2"
        body = {**COUNT, "epsilon": {"all": "3/2", "parts": 1}}
        assert httpx2.post(f"{path}/answers", headers=ada, json=body).status_code == 200
    with server(replace(session, limit=HALF), grants) as served:
        reply = httpx2.get(f"{served.url}/v1/tables/people/budget", headers=headers(served, "ada")).json()
        assert reply["remaining"] == "0"  # a lower budget lowers: 1/2 and the raise, 3/2 are spent


def test_caps_are_set_under_the_name_that_the_ledger_has() -> None:
    session = people()
    grants = {"ada": Grant({"patients": Fraction(1)})}
    with serve_sessions({"patients": session}, analysts=grants, owners=("grace",)) as served:
        assert session.ledger.cap("people", "ada") == 1
        body = {"epsilon": "1/2", "purpose": "a tree", "key": "r"}
        made = httpx2.post(f"{served.url}/v1/tables/patients/requests", headers=headers(served, "ada"), json=body)
        assert made.json()["table"] == "patients"


# -- grants and tokens ------------------------------------------------------------------------------


def test_an_owner_grants_a_table_and_hands_out_a_token() -> None:
    session = people()
    with server(session) as first, server(session) as second:
        grace = headers(first, "grace", OWNER)
        grant = {"analyst": "eve", "table": "people", "epsilon": "1/2", "expires": "2999-12-31"}
        assert_problem(
            httpx2.post(f"{first.url}/v1/owner/tokens", headers=grace, json={"analyst": "eve"}), 422, "refused"
        )
        made = httpx2.post(f"{first.url}/v1/owner/grants", headers=grace, json=grant)
        assert made.status_code == 201 and (made.json()["source"], made.json()["cap"]) == ("owner", "1/2")
        secret = httpx2.post(f"{first.url}/v1/owner/tokens", headers=grace, json={"analyst": "eve"}).json()["secret"]
        with privet.connect(second.url, secret) as connection:  # on the other server of the ledger
            assert connection.tables() == ["people"]
            connection.table("people").count("1/4")
        listed = httpx2.get(f"{second.url}/v1/owner/grants", headers=grace).json()["grants"]
        words = [(own["analyst"], own["source"], own["cap"], own["spent"], own["expires"]) for own in listed]
        assert words == [("ada", "configuration", "1", "0", None), ("eve", "owner", "1/2", "1/4", "2999-12-31")]
        raised = {"table": "people", "analyst": "eve", "epsilon": "1/4", "key": "k"}
        for _ in range(2):  # sent again it raises nothing
            assert httpx2.post(f"{first.url}/v1/owner/raises", headers=grace, json=raised).status_code == 200
        again = {**raised, "epsilon": "1/3"}
        assert_problem(httpx2.post(f"{second.url}/v1/owner/raises", headers=grace, json=again), 422, "key-reused")
        assert session.ledger.cap("people", "eve") == Fraction(3, 4)
    text = "".join(line.text + line.note_text for line in session.ledger.lines())
    assert secret not in text
    with server(session) as restarted, privet.connect(restarted.url, secret) as connection:
        assert connection.table("people").budget.remaining == HALF


def test_a_withdrawal_stands_on_all_servers_whatever_the_configuration_says() -> None:
    session = people()
    with server(session) as first, server(session) as second:
        grace, ada = headers(first, "grace", OWNER), headers(first, "ada")
        path = "/v1/tables/people/answers"
        assert httpx2.post(second.url + path, headers=ada, json=COUNT).status_code == 200
        body = {"analyst": "ada", "table": "people"}
        assert httpx2.post(f"{first.url}/v1/owner/withdrawals", headers=grace, json=body).status_code == 200
        assert first.service.sittings.sweep() == 0
        for served in (first, second):
            assert_problem(httpx2.post(served.url + path, headers=ada, json={**COUNT, "key": "l"}), 404, "not-found")
            served.service.reload(ONE, ("grace",))
            assert_problem(httpx2.post(served.url + path, headers=ada, json={**COUNT, "key": "l"}), 404, "not-found")
    with server(session) as served:
        assert httpx2.get(f"{served.url}/v1/tables", headers=ada).json() == {"tables": []}
        (own,) = httpx2.get(f"{served.url}/v1/owner/grants", headers=grace).json()["grants"]
        assert own["source"] is None
        grant = f"{served.url}/v1/owner/grants"
        assert_problem(httpx2.post(grant, headers=grace, json={**body, "epsilon": "5"}), 422, "refused")
        assert httpx2.post(grant, headers=grace, json=body).json()["source"] == "configuration"
        assert_problem(httpx2.post(grant, headers=grace, json=body), 422, "refused")
        assert httpx2.get(f"{served.url}/v1/tables", headers=ada).json() == {"tables": ["people"]}


def test_a_grant_of_an_owner_ends_with_its_day() -> None:
    session = people()
    with server(session) as served:
        grace, access = headers(served, "grace", OWNER), served.service.access
        body = {"analyst": "eve", "table": "people", "expires": "2030-06-30"}
        assert httpx2.post(f"{served.url}/v1/owner/grants", headers=grace, json=body).status_code == 201
        wrong = {**body, "expires": "2030-02-31"}
        assert_problem(httpx2.post(f"{served.url}/v1/owner/grants", headers=grace, json=wrong), 422, "bad-question")
        now = access._now()
        access._now = lambda: now.replace(year=2030, month=6, day=30)
        assert access.allowed("eve") == ["people"] and date(2030, 6, 30) == access._now().date()
        access._now = lambda: now.replace(year=2030, month=7, day=1)
        assert access.allowed("eve") == []


def test_an_owner_of_one_table_does_nothing_about_another() -> None:
    first = people()
    first.ledger.register("others", source="others", budget=Fraction(1), domain=DOMAIN)
    sessions = {"people": first, "others": replace(first, dataset="others")}
    both = {"ada": Grant({"people": Fraction(1), "others": Fraction(1)})}
    with serve_sessions(sessions, analysts=both, owners=("grace",)) as served:
        grace, path = headers(served, "grace", OWNER, ("people",)), f"{served.url}/v1/owner"
        everywhere = served.service.access.tokens.create("ada")[1]
        before = len(first.ledger.lines())
        attempts = [
            ("grants", {"analyst": "eve", "table": "others"}),
            ("withdrawals", {"analyst": "ada", "table": "others"}),
            ("raises", {"analyst": "ada", "table": "others", "epsilon": "1", "key": "k"}),
            ("raises", {"table": "others", "epsilon": "1", "key": "k"}),
            ("tokens", {"analyst": "ada", "tables": ["people", "others"]}),
        ]
        absent = [(name, {**body, "table": "nowhere"}) for name, body in attempts[:4]]
        replies = [httpx2.post(f"{path}/{name}", headers=grace, json=body) for name, body in [*attempts, *absent]]
        for reply in replies:
            assert_problem(reply, 404, "not-found")
        assert len({reply.text for reply in replies}) == 1
        reply = httpx2.delete(f"{path}/tokens/{everywhere.id}", headers=grace)
        assert reply.text == httpx2.delete(f"{path}/tokens/0123", headers=grace).text
        changes = {"token", "revoke", "owner-grant", "withdrawal", "raise"}
        assert not changes & {line.body.get("event") for line in first.ledger.lines(before)}
        (seen,) = httpx2.get(f"{path}/grants", headers=grace).json()["grants"]
        assert seen["table"] == "people"
        made = httpx2.post(f"{path}/tokens", headers=grace, json={"analyst": "ada"}).json()
        assert made["token"]["tables"] == ["people"]  # of an owner of one table for that table
        listed = httpx2.get(f"{path}/tokens", headers=grace).json()["tokens"]
        assert {token["name"] for token in listed} == {"ada", "grace"} and everywhere.id not in str(listed)
        assert httpx2.delete(f"{path}/tokens/{made['token']['id']}", headers=grace).status_code == 200
        gone = httpx2.get(f"{served.url}/v1/tables", headers=bearer(made["secret"]))
        assert_problem(gone, 401, "unauthenticated")


def test_what_a_configuration_grants_is_written_down_when_it_changes() -> None:
    """At a reload and at a restart, once for all servers; an owner of one table reads no name of another."""
    first = people()
    first.ledger.register("others", source="others", budget=Fraction(1), domain=DOMAIN)
    sessions = {"people": first, "others": replace(first, dataset="others")}
    grants = {"ada": Grant({"people": None}), "eve": Grant({"others": None}, date(2030, 1, 1))}

    def written() -> list[tuple[str, str | None, Any]]:
        lines = [line for line in ledger_lines.events(first.ledger, 0, 1000) if line.what in ("grant", "owners")]
        return [(line.what, line.analyst, line.facts) for line in lines]

    for _ in range(2):
        opened = {name: replace(own, engine=people().engine) for name, own in sessions.items()}
        with serve_sessions(opened, analysts=grants, owners=("grace",)) as served:
            served.service.reload(grants, ("grace",))
    assert written() == [
        ("owners", None, {"owners": ["grace"]}),
        ("grant", "ada", {"tables": {"people": None}, "expires": None}),
        ("grant", "eve", {"tables": {"others": None}, "expires": "2030-01-01"}),
    ]
    with serve_sessions(sessions, analysts=grants, owners=("heidi", "grace")) as served:
        assert written()[3:] == [("owners", None, {"owners": ["grace", "heidi"]})]
        ledger_lines.record(
            served.service.ledger, "start", facts={"tables": ["others", "people"], "analysts": ["ada", "eve"]}
        )
        grace = headers(served, "grace", OWNER, ("people",))
        told = httpx2.get(f"{served.url}/v1/owner/events", headers=grace).text
        assert '"analysts":["ada"]' in told and '"eve"' not in told
        served.service.reload({"ada": grants["ada"]}, ("heidi", "grace"))
        assert written()[4:] == [("grant", "eve", {"tables": None, "expires": None})]


def test_an_owner_and_an_analyst_do_all_of_it_in_python() -> None:
    session = people()
    with server(session) as served:
        secret = served.service.access.tokens.create("grace", OWNER)[0]
        with privet.connect(served.url, secret, tries=1) as connection:
            grace = connection.owner
            granted = grace.grant("eve", "people", epsilon="0.5", expires=date(2999, 1, 1))
            assert (granted["source"], granted["expires"]) == ("owner", "2999-01-01")
            with privet.connect(served.url, grace.create_token("eve"), tries=1) as eve:
                asked = eve.request_budget("people", "0.25", "a second tree", key="r")
                assert grace.requests() == [asked] and grace.decide(asked["id"], True)["state"] == "granted"
                grace.raise_cap("people", "0.25", analyst="eve")
                assert eve.budget_requests("people")[0]["state"] == "granted"
                assert eve.table("people").budget.remaining == 1
                (token,) = [own for own in grace.tokens() if own["name"] == "eve"]
                grace.withdraw("eve", "people")
                assert [own["source"] for own in grace.grants() if own["analyst"] == "eve"] == [None]
                grace.revoke_token(token["id"])
                with pytest.raises(privet.errors.ServerError, match="token"):
                    eve.tables()
            assert [event["event"] for event in grace.events()][-2:] == ["revoke", "unauthenticated"]
            with pytest.raises(privet.errors.QuestionError, match="without a configuration file"):
                grace.reload()
