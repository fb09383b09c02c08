"""Data permits: a shared cap, a last day, purposes, who may spend, what may leave, and two owners for a raise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kernel.people import DOMAIN, FRAME
from service.test_boundary import COUNT, assert_problem, bearer
from typer.testing import CliRunner

import privet
from privet import ledger_lines
from privet.cli import app
from privet.cli import budget as budget_command
from privet.errors import BudgetExceeded, PrivetError, QuestionError
from privet.kernel import Session
from privet.service.config import Grant, load
from privet.service.permits import Permit
from privet.service.seeded_server import Served, serve_sessions
from privet.service.tokens import ANALYST, OWNER

HALF = Fraction(1, 2)
WHY = "survival after surgery"
HEART = Permit("heart", {"people": HALF}, ("ada", "bob", "eve"), ("ada", "bob"), (WHY,), date(2999, 1, 1), 2)
MODELS = Permit("models", {"people": None}, ("ada",), ("ada",), release=("models",))
ANSWERS = Permit("answers", {"people": HALF}, ("ada",), ("ada",), release=("answers",))
UNDER = {"permit": "heart", "purpose": WHY}


def people(budget: str | int = 10) -> Session:
    return privet.testing.open(FRAME, DOMAIN, budget, seed=1, name="people")._session


@contextmanager
def server(session: Session, *permits: Permit, grants: dict[str, Grant] | None = None) -> Iterator[Served]:
    """Serve a table under permits; the same ledger again is a second server, or one that was restarted."""
    opened = replace(session, engine=people().engine)
    settings = {
        "analysts": grants or {},
        "owners": ("grace", "heidi", "ada"),
        "permits": {own.name: own for own in permits},
    }
    with serve_sessions({"people": opened}, **settings) as served:
        yield served


def headers(served: Served, name: str, role: str = ANALYST) -> dict[str, str]:
    for token in [own for own in served.service.access.tokens.all() if (own.name, own.role) == (name, role)]:
        served.service.access.tokens.revoke(token.id)
    return bearer(served.service.access.tokens.create(name, role)[0])


def ask(served: Served, who: dict[str, str], key: str = "k", **changes: Any) -> httpx2.Response:
    path = f"{served.url}/v1/tables/people/answers"
    return httpx2.post(path, headers=who, json={**COUNT, "under": UNDER, "key": key, **changes})


def test_analysts_share_the_cap_of_their_permit_on_all_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = people()
    with server(session, HEART) as first, server(session, HEART) as second:
        ada, bob = headers(first, "ada"), headers(first, "bob")
        quarter = {"all": "1/4", "parts": 1}
        assert ask(first, ada, epsilon=quarter).status_code == 200
        assert ask(second, bob, epsilon=quarter).status_code == 200
        content = assert_problem(ask(second, ada, "l", epsilon=quarter), 403, "budget-exceeded")
        assert "permit 'heart'" in content["detail"]
        budget = httpx2.get(f"{first.url}/v1/tables/people/budget", headers=ada).json()
        assert (budget["granted"], budget["remaining"], budget["dataset_cap"]) == (False, "0", "10")
        (own,) = httpx2.get(f"{second.url}/v1/permits", headers=ada).json()["permits"]
        assert (own["tables"][0]["spent"], own["tables"][0]["cap"], own["spends"]) == ("1/2", "1/2", True)
        assert own["analysts"] is None and own["approvals"] == 2
        grace = headers(first, "grace", OWNER)
        (whole,) = httpx2.get(f"{first.url}/v1/permits", headers=grace).json()["permits"]
        assert whole["analysts"] == ["ada", "bob", "eve"] and whole["spenders"] == ["ada", "bob"]
    charges = [line.body for line in session.ledger.lines() if line.kind == "charge"]
    assert [(body["permit"], body["purpose"]) for body in charges] == [("heart", WHY)] * 2
    assert "permit" in {event.what for event in ledger_lines.events(session.ledger)}
    monkeypatch.setattr(budget_command, "open_book", lambda target: session.ledger)
    budget_command.show("people.csv")
    shown = capsys.readouterr().out
    assert "permit heart: 0.5 of 0.5 spent" in shown and "permits aside" in shown


def test_what_a_permit_does_not_allow_is_refused_before_anything_is_charged() -> None:
    session = people()
    with server(session, HEART) as served:
        ada, eve = headers(served, "ada"), headers(served, "eve")
        absent, not_hers = ask(served, ada, under={"permit": "nothing"}), None
        with server(session, HEART, replace(HEART, name="lung", analysts=("bob",), spenders=("bob",))) as other:
            not_hers = ask(other, ada, under={"permit": "lung", "purpose": WHY})
        assert_problem(absent, 404, "not-found")
        assert absent.content == not_hers.content and absent.status_code == not_hers.status_code
        for wrong in ({"permit": "heart"}, {"permit": "heart", "purpose": "curiosity"}):
            assert_problem(ask(served, ada, under=wrong), 403, "not-permitted")
        assert "under a permit alone" in assert_problem(ask(served, ada, under=None), 403, "not-permitted")["detail"]
        assert "not spend" in assert_problem(ask(served, eve), 403, "not-permitted")["detail"]
        quote = {name: value for name, value in COUNT.items() if name != "key"}
        path = f"{served.url}/v1/tables/people"
        seen = httpx2.post(f"{path}/quotes", headers=eve, json={**quote, "under": UNDER}).json()
        assert (seen["remaining"], seen["fits"]) == ("1/2", True)  # who may not spend may look
        hold = {"sitting": COUNT["sitting"], "rows": [], "id": "a-reservation", "epsilon": "1/4", "under": UNDER}
        assert_problem(httpx2.post(f"{path}/holds", headers=eve, json=hold), 403, "not-permitted")
        fit = {"algorithm": "prior", "epsilon": "1/4", "key": "f", "under": UNDER}
        assert_problem(httpx2.post(f"{path}/fits", headers=eve, json=fit), 403, "not-permitted")
        served.service.access._now = lambda: datetime(2999, 1, 2)
        assert_problem(ask(served, ada), 404, "not-found")  # the table is no longer hers at all
        with pytest.raises(PrivetError, match="ended with 2999-01-01"):
            served.service.access.under("ada", "people", "heart", WHY)
    assert session.ledger.spent("people") == 0


def test_a_sitting_stays_under_its_permit_and_purpose() -> None:
    session = people()
    two = replace(HEART, purposes=(WHY, "costs"))
    with server(session, two, grants={"ada": Grant({"people": None})}) as served:
        ada = headers(served, "ada")
        assert ask(served, ada).status_code == 200
        for other in (None, {"permit": "heart", "purpose": "costs"}):
            assert_problem(ask(served, ada, "l", under=other), 422, "bad-question")
        assert ask(served, ada, "l", under=None, sitting="another-sitting").status_code == 200
        assert session.ledger.permit_spent("people", "heart") == Fraction(1, 10)
        assert session.ledger.spent("people", "ada") == Fraction(1, 5)


def test_two_permits_of_one_analyst_do_not_add_up_beyond_the_table() -> None:
    session = people("1/2")
    other = replace(HEART, name="lung")
    with server(session, HEART, other) as served:
        ada, half = headers(served, "ada"), {"all": "1/2", "parts": 1}
        assert ask(served, ada, epsilon=half).status_code == 200
        lung = {"permit": "lung", "purpose": WHY}
        reply = ask(served, ada, "l", under=lung, sitting="another-sitting")
        assert "ledger 'people'" in assert_problem(reply, 403, "budget-exceeded")["detail"]


def test_models_leave_without_answers_and_answers_without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    session = people()
    with server(session, MODELS, ANSWERS) as served:
        ada, path = headers(served, "ada"), f"{served.url}/v1/tables/people"
        fit = {"algorithm": "prior", "epsilon": "1/4", "key": "f", "under": {"permit": "answers"}}
        assert_problem(httpx2.post(f"{path}/fits", headers=ada, json=fit), 403, "not-permitted")
        assert_problem(ask(served, ada, under={"permit": "models"}), 403, "not-permitted")
        refine = {"sitting": COUNT["sitting"], "entry": 1, "parts": [0], "epsilon": COUNT["epsilon"]}
        refused = httpx2.post(f"{path}/refinements", headers=ada, json={**refine, "under": {"permit": "models"}})
        assert_problem(refused, 403, "not-permitted")
        assert session.ledger.spent("people") == 0
        with privet.connect(served.url, ada["Authorization"].split()[1], tries=1) as connection:
            prior = privet.PriorClassifier(epsilon="1/4")
            with pytest.raises(PrivetError, match="no models"):
                connection.fit("people", prior, permit="answers")
            with pytest.raises(PrivetError, match="no answers"):
                prior.fit(connection.table("people", permit="models"))
            model = connection.fit("people", prior, permit="models", key="mine")
            with monkeypatch.context() as patched:
                patched.setattr("privet.service.proofs._receipts", lambda service: None)  # as of a ledger with a key
                for number, kind in ((1, "not-permitted"), (99, "not-found")):
                    receipt = httpx2.get(f"{path}/entries/{number}/receipt", headers=ada)
                    assert receipt.json()["type"].endswith(kind)  # a receipt shows the answer that it is of
            prior.fit(connection.table("people", permit="models"), key="once")
            table = connection.table("people", permit="answers")
            assert table.budget.remaining == HALF
            table.count("1/4")
            with pytest.raises(BudgetExceeded, match="permit 'answers'"):
                table.count("1/2")
            with table.reserve("1/4") as reserved:
                reserved.count("1/8")
            assert model.privacy.spent == Fraction(1, 4)
    with server(session, replace(MODELS, expires=date(2020, 1, 1)), ANSWERS) as served:
        ended = httpx2.get(f"{served.url}/v1/tables/people/models/1", headers=headers(served, "ada"))
        assert_problem(ended, 403, "not-permitted")  # nothing leaves when its last day is over
    others = replace(MODELS, analysts=("bob",), spenders=("bob",))
    with server(session, others, ANSWERS) as served:
        gone = httpx2.get(f"{served.url}/v1/tables/people/models/1", headers=headers(served, "ada"))
        assert_problem(gone, 404, "not-found")


def test_what_was_paid_under_a_permit_is_not_found_under_another() -> None:
    session = people()
    with server(session, HEART, grants={"ada": Grant({"people": None})}) as served:
        ada = headers(served, "ada")
        assert ask(served, ada).status_code == 200
        assert_problem(ask(served, ada, under=None, sitting="another-sitting"), 422, "key-reused")


def test_two_owners_approve_a_raise_and_never_an_analyst_of_the_permit() -> None:
    session = people()
    with server(session, HEART) as first, server(session, HEART) as second:
        ada, grace = headers(first, "ada"), headers(first, "grace", OWNER)
        heidi, herself = headers(first, "heidi", OWNER), headers(first, "ada", OWNER)
        path, owner = f"{first.url}/v1/tables/people/requests", f"{first.url}/v1/owner"
        body = {"epsilon": "1/4", "purpose": "curiosity", "permit": "heart", "key": "r"}
        assert_problem(httpx2.post(path, headers=ada, json=body), 403, "not-permitted")
        made = httpx2.post(path, headers=ada, json={**body, "purpose": WHY}).json()
        assert (made["permit"], made["approvals"], made["state"]) == ("heart", 2, "open")
        where, yes = f"{owner}/requests/{made['id']}", {"granted": True}
        alone = {"table": "people", "permit": "heart", "epsilon": "1", "key": "k"}
        assert_problem(httpx2.post(f"{owner}/raises", headers=grace, json=alone), 422, "refused")
        assert_problem(httpx2.post(where, headers=herself, json=yes), 422, "refused")
        once = httpx2.post(where, headers=grace, json=yes).json()
        assert (once["state"], once["approved"]) == ("open", ["grace"])
        assert_problem(httpx2.post(where, headers=grace, json=yes), 422, "refused")
        assert_problem(httpx2.post(where.replace(first.url, second.url), headers=grace, json=yes), 422, "refused")
        assert session.ledger.cap("people", permit="heart") == HALF
        assert httpx2.get(path, headers=ada).json()["requests"][0]["approved"] == []  # not the analyst's to know
        twice = httpx2.post(where.replace(first.url, second.url), headers=heidi, json=yes).json()
        assert (twice["state"], twice["approved"]) == ("granted", ["grace", "heidi"])
        assert session.ledger.cap("people", permit="heart") == 3 * HALF / 2
    with server(session, HEART):
        assert session.ledger.cap("people", permit="heart") == 3 * HALF / 2
    with server(session, replace(HEART, tables={"people": Fraction(1, 8)})):
        assert session.ledger.cap("people", permit="heart") == Fraction(3, 8)


def test_who_is_no_owner_any_more_has_not_agreed() -> None:
    """One token was stolen, agreed, and lost its owner's name: two of those who are left must agree."""
    session = people()
    with server(session, HEART) as served:
        grace, heidi = headers(served, "grace", OWNER), headers(served, "heidi", OWNER)
        body = {"epsilon": "1/4", "purpose": WHY, "permit": "heart", "key": "r"}
        path = f"{served.url}/v1/tables/people/requests"
        number = httpx2.post(path, headers=headers(served, "ada"), json=body).json()["id"]
        where, yes = f"{served.url}/v1/owner/requests/{number}", {"granted": True}
        assert httpx2.post(where, headers=grace, json=yes).json()["approved"] == ["grace"]
        served.service.reload({}, ("heidi", "ivy"), served.service.access.permits)
        once = httpx2.post(where, headers=heidi, json=yes).json()
        assert (once["state"], once["approved"]) == ("open", ["heidi"])
        twice = httpx2.post(where, headers=headers(served, "ivy", OWNER), json=yes).json()
        assert twice["state"] == "granted" and session.ledger.cap("people", permit="heart") == 3 * HALF / 2


def test_a_race_for_the_last_of_a_permit_is_won_by_as_many_as_it_has_room_for() -> None:
    session = people()
    names = tuple(f"analyst {number}" for number in range(6))
    permit = replace(HEART, analysts=names, spenders=names)
    with server(session, permit) as first, server(session, permit) as second:
        tokens, replies = [headers(first, name) for name in names], []

        def spend(number: int) -> None:
            served = (first, second)[number % 2]
            for turn in range(3):
                replies.append(ask(served, tokens[number], f"{turn}", epsilon={"all": "1/16", "parts": 1}).status_code)

        threads = [threading.Thread(target=spend, args=(number,)) for number in range(len(names))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(replies) == [200] * 8 + [403] * 10
        assert session.ledger.permit_spent("people", "heart") == HALF
    session.ledger.check()


def test_a_fit_stops_at_its_next_question_when_its_permit_is_gone() -> None:
    session = people()
    with server(session, replace(HEART, release=("models",))) as served:
        jobs, calls = served.service.jobs, []
        start = jobs.start

        def watched(*given: Any) -> Any:
            *others, permitted = given

            def still() -> bool:
                calls.append(permitted())
                served.service.reload({}, ("grace",), {})
                return permitted()

            return start(*others, still)

        jobs.start = watched  # type: ignore[method-assign]
        token = headers(served, "ada")["Authorization"].split()[1]
        with privet.connect(served.url, token, tries=1) as connection:
            with pytest.raises(PrivetError):
                connection.fit("people", privet.PriorClassifier(epsilon="1/4"), permit="heart", purpose=WHY)
        (job,) = jobs._jobs.values()
        while not job.now.ended:
            threading.Event().wait(0.01)
        assert calls[0] and job.now.state == "cancelled"


def test_a_fit_that_waited_past_the_last_day_asks_nothing() -> None:
    session = people()
    with server(session, replace(HEART, release=("models",))) as served:
        ada, jobs, waiting = headers(served, "ada"), served.service.jobs, []
        jobs._workers.submit = lambda *work: waiting.append(work)  # type: ignore[assignment, method-assign]
        fit = {"algorithm": "prior", "epsilon": "1/4", "key": "f", "under": UNDER, "once": True}
        assert httpx2.post(f"{served.url}/v1/tables/people/fits", headers=ada, json=fit).status_code == 202
        served.service.access._now = lambda: datetime(2999, 1, 2)
        ((work, job, *others),) = waiting
        work(job, *others)
        assert job.now.state == "cancelled" and job.now.charged is False
    assert session.ledger.spent("people") == 0


def test_an_owner_takes_a_table_from_whoever_has_it_by_a_permit_alone() -> None:
    with server(people(), HEART) as served:
        ada, grace = headers(served, "ada"), headers(served, "grace", OWNER)
        assert ask(served, ada).status_code == 200
        path = f"{served.url}/v1/owner/withdrawals"
        assert httpx2.post(path, headers=grace, json={"analyst": "ada", "table": "people"}).status_code == 200
        assert_problem(ask(served, ada, "l"), 404, "not-found")
        assert ask(served, headers(served, "bob")).status_code == 200
        nobody = httpx2.post(path, headers=grace, json={"analyst": "zoe", "table": "people"})
        assert_problem(nobody, 404, "not-found")


def test_a_new_permit_is_never_without_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    session = people()
    with server(session) as served:
        access, seen = served.service.access, []
        take = access.grant

        def taken(*given: Any) -> set[str]:
            seen.append(session.ledger.cap("people", permit="heart"))
            return take(*given)

        monkeypatch.setattr(access, "grant", taken)
        served.service.reload({}, ("grace",), {"heart": HEART})
        assert seen == [HALF]


def test_what_a_permit_has_paid_stays_when_it_loses_the_table() -> None:
    session, grants = people(), {"ada": Grant({"people": None})}
    with server(session, MODELS, grants=grants) as served:
        token = headers(served, "ada")["Authorization"].split()[1]
        with privet.connect(served.url, token, tries=1) as connection:
            connection.fit("people", privet.PriorClassifier(epsilon="1/4"), permit="models", key="mine")
        path = f"{served.url}/v1/tables/people/models/1"
        assert httpx2.get(path, headers=bearer(token)).status_code == 200
        served.service.reload(grants, ("grace",), {"models": replace(MODELS, tables={})})
        assert_problem(httpx2.get(path, headers=bearer(token)), 404, "not-found")


def test_what_a_grant_has_paid_stays_when_only_a_permit_is_left() -> None:
    grants = {"ada": Grant({"people": None})}
    with server(people(), ANSWERS, grants=grants) as served:
        token = headers(served, "ada")["Authorization"].split()[1]
        with privet.connect(served.url, token, tries=1) as connection:
            connection.fit("people", privet.PriorClassifier(epsilon="1/4"), key="mine")
        path = f"{served.url}/v1/tables/people/models/1"
        assert httpx2.get(path, headers=bearer(token)).status_code == 200
        served.service.reload({}, ("grace",))
        assert_problem(httpx2.get(path, headers=bearer(token)), 403, "not-permitted")


def test_a_purpose_is_a_plain_text() -> None:
    with server(people(), ANSWERS) as served:
        ada = headers(served, "ada")
        for purpose in ("\x1b]0;title\x07", "a\nb", "\u202egnp.exe"):
            assert_problem(ask(served, ada, under={"permit": "answers", "purpose": purpose}), 403, "not-permitted")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('tables = ["patient"]', "there is no table 'patient'"),
        ("analysts = []", "has analysts"),
        ('spend = ["zoe"]', "none of its analysts"),
        ("approvals = 3", "1 or 2"),
        ('release = ["rows"]', "what may leave"),
        ('expires = "2027-01-01"', "without quotes"),
        ("cap = 1", "has no 'cap'"),
    ],
)
def test_a_mistake_in_a_permit_is_told_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    name = line.partition(" ")[0]
    sound = {"tables": 'tables = {people = "0.5"}', "analysts": 'analysts = ["ada"]'}
    lines = [text for own, text in sound.items() if own != name] + [line]
    table = '[tables.people]\ndata = "people.csv"\ndomain = "people.toml"\n'
    text = f'[server]\nowners = ["grace"]\n{table}[permits.heart]\n' + "\n".join(lines)
    (tmp_path / "privet.toml").write_text(text)
    with pytest.raises(QuestionError, match=words) as error:
        load(tmp_path / "privet.toml")
    assert f"line {len(text.splitlines())}" in str(error.value)


def test_the_commands_ask_under_a_permit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    session, runner = people(), CliRunner()
    with server(session, HEART) as served:
        secret = headers(served, "ada")["Authorization"].removeprefix("Bearer ")
        monkeypatch.setenv("PRIVET_TOKEN", secret)
        here = ["--server", served.url, "--permit", "heart", "--purpose", WHY]
        asked = runner.invoke(app, ["query", "people", "count", "-e", "0.1", *here])
        out = str(tmp_path / "m.json")
        fitted = runner.invoke(app, ["fit", "people", "-e", "0.1", "-a", "prior", "-o", out, *here])
        assert asked.exit_code == fitted.exit_code == 0, (asked.output, fitted.output)
        assert session.ledger.permit_spent("people", "heart") == Fraction(1, 5)
        assert "permit" in repr(privet.connect(served.url, secret).table("people"))
        without = runner.invoke(app, ["query", "people", "count", "-e", "0.1", *here[:2]])
        assert isinstance(without.exception, PrivetError) and "permit" in str(without.exception)
    local = runner.invoke(app, ["query", "x.csv", "count", "-e", "1", "--permit", "heart"])
    assert isinstance(local.exception, QuestionError) and "--server" in str(local.exception)
