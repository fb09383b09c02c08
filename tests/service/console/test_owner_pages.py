"""What owners do on pages: grant, raise, take back, decide, read and export the ledger; each is a line of it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from html import unescape

import pytest
from kernel.people import DOMAIN, FRAME
from service.console.visitor import Visitor, words

import privet
from privet import ledger_lines
from privet.service.config import Grant
from privet.service.console import owner_pages
from privet.service.permits import Permit
from privet.service.seeded_server import Served, serve_seeded, serve_sessions
from privet.service.tokens import ANALYST, OWNER

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"


@pytest.fixture
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 1, seed=3) as found:
        yield found


@pytest.fixture
def grace(served: Served) -> Visitor:
    return Visitor(served, "grace", OWNER)


def secret_on(page: str) -> str:
    found = re.search(r"pvt_a_[0-9A-Za-z]{36}", page)
    assert found is not None
    return found[0]


def test_an_owner_grants_raises_and_takes_back(served: Served, grace: Visitor) -> None:
    path = "/console/owned/people"
    assert "Nobody yet" in grace.words(path) and "No analyst has a table yet" in grace.words("/console/analysts")
    granted = grace.post(path, what="grant", analyst="ada", epsilon="0.5", expires="2099-12-31")
    assert granted.headers["location"] == f"{path}?done=grant"
    page = grace.words(granted.headers["location"])
    assert "The table is granted." in page and "2099-12-31" in page and "0.5" in page
    made = grace.post("/console/tokens", analyst="ada", days="30")
    token = secret_on(made.text)
    assert "shown this once" in words(made) and token not in grace.get("/console/analysts").text
    with privet.connect(served.url, token) as connection:
        table = connection.table("people")
        table.count("0.45")
        assert "ada has spent 0.45 of their cap of 0.5" in grace.words("/console/")  # 80% and more
        with pytest.raises(privet.errors.BudgetExceeded):
            table.count("0.1")
        for _ in range(2):  # a form that is sent twice raises once
            raised = grace.post(path, what="raise", analyst="ada", epsilon="0.2", key="k" * 8)
            assert raised.status_code == 303, words(raised)
            assert raised.headers["location"] == f"{path}?done=raise"
        assert served.service.ledger.cap("people", "ada") == Fraction(7, 10)
        table.count("0.1")
        assert grace.post(path, what="raise", epsilon="1", key="l" * 8).status_code == 303
        assert served.service.ledger.cap("people") == 2
        assert grace.post(path, what="withdraw", analyst="ada").status_code == 303
        with pytest.raises(privet.errors.PrivetError, match=r"not yours|this token"):
            table.count("0.1")
    assert "taken back or ended" in grace.words(path)
    identity = next(token.id for token in served.service.access.tokens.all() if token.name == "ada")
    assert grace.post(f"/console/tokens/{identity}").headers["location"] == "/console/analysts?done=revoke"
    assert "No live token: ada cannot sign in" in grace.words("/console/analysts")


@pytest.mark.parametrize(
    "fields",
    [
        {"what": "grant", "analyst": ""},
        {"what": "grant", "analyst": "ada", "epsilon": "much"},
        {"what": "grant", "analyst": "ada", "expires": "tomorrow"},
        {"what": "raise", "epsilon": ""},
        {"what": "raise", "epsilon": "0"},
        {"what": "raise", "analyst": "ada", "epsilon": "1"},
        {"what": "drop"},
        {},
    ],
    ids=str,
)
def test_what_cannot_be_done_is_told_in_a_sentence(served: Served, grace: Visitor, fields: dict[str, str]) -> None:
    before = len(served.service.ledger.lines())
    reply = grace.post("/console/owned/people", key="k" * 8, **fields)
    assert reply.status_code == 422 and 'role="alert"' in reply.text
    assert len(served.service.ledger.lines()) == before


def test_requests_are_decided_once(served: Served, grace: Visitor) -> None:
    ada = Visitor(served, "ada")
    ada.post("/console/tables/people/request", epsilon="0.5", purpose=EVIL, key="abcdefgh")
    ada.post("/console/tables/people/request", epsilon="0.25", purpose="Second", key="ijklmnop")
    assert "2 requests for more budget wait" in grace.words("/console/")
    page = grace.get("/console/requests")
    assert EVIL in words(page).replace(" & ", "&") or "alert(1)" in page.text
    assert "<script>alert" not in page.text and "<img" not in page.text and "49" not in words(page)
    numbers = re.findall(r'action="/console/requests/(\d+)"', page.text)
    hedy = Visitor(served, "hedy", OWNER)
    assert hedy.post(f"/console/requests/{numbers[0]}", granted="yes").status_code == 303
    late = grace.post(f"/console/requests/{numbers[0]}", granted="no")
    assert late.status_code == 422 and "decided before" in words(late)
    assert grace.post(f"/console/requests/{numbers[1]}", granted="no").status_code == 303
    assert served.service.ledger.cap("people") == Fraction(1)  # 1 was left, more than what was asked for
    shown = ada.words("/console/tables/people/request")
    assert "granted" in shown and "refused" in shown


def test_the_ledger_is_a_timeline_that_filters_and_exports(served: Served, grace: Visitor) -> None:
    ada, lise = Visitor(served, "ada"), Visitor(served, "lise")
    for visitor, epsilon in ((ada, "0.1"), (lise, "0.2"), (lise, "5")):
        visitor.post("/console/tables/people/ask", kind="count", by="sex", epsilon=epsilon, key=f"key of {epsilon}")
    everything = grace.words("/console/ledger")
    for line in ("ada asked count", "lise asked count", "lise was refused", "ada signed in to the console"):
        assert line in everything
    charges = grace.words("/console/ledger?group=charge&analyst=ada")
    assert "ada asked count" in charges and "lise asked" not in charges and "signed in" not in charges
    assert "No line here is like that" in grace.words("/console/ledger?until=2001-01-01")
    assert "lise was refused" in grace.words("/console/ledger?text=does+not+have+that+much")
    assert 'name="since" type="date" value=""' in grace.get("/console/ledger?before=x&since=%27--").text
    rows = list(csv.DictReader(io.StringIO(grace.get("/console/ledger.csv?group=charge").text.lstrip("\ufeff"))))
    assert [(row["analyst"], row["charged"], row["entry"]) for row in rows] == [
        ("lise", "1/5", "2"),
        ("ada", "1/10", "1"),
    ]
    lines = [json.loads(line) for line in grace.get("/console/ledger.jsonl").text.splitlines()]
    assert [line["number"] for line in lines] == sorted((line["number"] for line in lines), reverse=True)
    text = grace.get("/console/ledger.jsonl").text
    assert "sha256" not in text and "fingerprint" not in text and "answer" not in text
    assert "attachment" in grace.get("/console/ledger.csv").headers["content-disposition"]
    assert grace.get("/console/ledger.exe").status_code == 404


def test_no_cell_of_an_export_is_a_formula(served: Served, grace: Visitor) -> None:
    grace.post("/console/owned/people", what="grant", analyst="=cmd|' /C calc'!A0")
    rows = csv.reader(io.StringIO(grace.get("/console/ledger.csv").text.lstrip("\ufeff")))
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)


def test_no_part_of_a_cell_is_a_formula_where_semicolons_divide(served: Served, grace: Visitor) -> None:
    ada, evil = Visitor(served, "ada"), "why;=HYPERLINK(A1)"
    ada.post("/console/tables/people/request", epsilon="0.1", purpose=evil, key="k" * 8)
    grace.post("/console/owned/people", what="grant", analyst="eve; @SUM(A1)")
    text = grace.get("/console/ledger.csv").text.lstrip("\ufeff")
    assert not re.search(r";\s*[=+@-]", text)
    facts = [json.loads(row["facts"]) for row in csv.DictReader(io.StringIO(text))]
    assert evil in [own.get("purpose") for own in facts]


def test_pages_say_that_it_is_the_cap_of_a_permit_and_who_has_agreed() -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    heart = Permit("heart", {"people": Fraction(1, 2)}, ("ada",), ("ada",), approvals=2)
    settings = {"permits": {"heart": heart}, "analysts": {}, "owners": ("grace", "heidi")}
    with serve_sessions({"people": session}, **settings) as served:
        secret = served.service.access.tokens.create("ada", ANALYST)[0]
        with privet.connect(served.url, secret, tries=1) as connection:
            connection.request_budget("people", "1/4", "more", permit="heart")
        first, second = (Visitor(served, name, OWNER) for name in ("grace", "heidi"))
        assert "raises the cap of the permit heart, which its analysts share" in first.words("/console/requests")
        number = served.service.access.decisions.requests
        first.post(f"/console/requests/{next(iter(number))}", granted="yes")
        assert "2 owners must agree; grace has agreed" in second.words("/console/requests")
        second.post(f"/console/requests/{next(iter(number))}", granted="yes")
        told = second.words("/console/ledger")
        for line in ("The cap of the permit heart is 0.75 now", "allows the permit heart 0.5", "grace agreed to"):
            assert line in told
        assert "The cap of the table is 0.75" not in told


def test_an_owner_of_one_table_sees_no_permit_of_another() -> None:
    first = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="first")._session
    first.ledger.register("second", source="second", budget=Fraction(1), domain=DOMAIN)
    permits = {name: Permit(f"of-{name}", {name: None}, ("ada",), ("ada",)) for name in ("first", "second")}
    sessions = {"first": first, "second": replace(first, dataset="second")}
    with serve_sessions(sessions, permits=permits, analysts={}, owners=("grace",)) as served:
        owner = Visitor(served, "grace", OWNER, tables=("first",))
        text = owner.get("/console/ledger.jsonl").text
        assert "of-first" in text and "of-second" not in text


def test_an_owner_of_one_table_sees_that_table_alone() -> None:
    first = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="first")._session
    first.ledger.register("zweite", source="zweite", budget=Fraction(1), domain=DOMAIN)
    with serve_sessions({"first": first, "zweite": replace(first, dataset="zweite")}) as served:
        Visitor(served, "ada").post(
            "/console/tables/zweite/ask", kind="count", epsilon="0.1", aim="epsilon", key="k" * 8
        )
        owner = Visitor(served, "grace", OWNER, tables=("first",))
        for path in ("/console/", "/console/ledger", "/console/analysts", "/console/requests"):
            assert "zweite" not in owner.words(path), path
        assert "zweite" not in owner.get("/console/ledger.jsonl").text
        assert "zweite" not in owner.get("/console/owned/first/audit.json").text
        assert owner.get("/console/owned/zweite").text == owner.get("/console/owned/nowhere").text


def test_an_owner_of_one_table_reads_no_names_of_those_who_use_others() -> None:
    """Neither in the ledger, nor in the events, nor in an audit bundle; and makes no token for them."""
    first = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="first")._session
    first.ledger.register("zweite", source="zweite", budget=Fraction(1), domain=DOMAIN)
    sessions = {"first": first, "zweite": replace(first, dataset="zweite")}
    grants = {"bob": Grant({"zweite": None}), "ada": Grant({"first": None, "zweite": None})}
    with serve_sessions(sessions, analysts=grants, owners=("grace",)) as served:
        tokens = served.service.access.tokens
        bob, ada, owner = (Visitor(served, "") for _ in range(3))
        for visitor, name in ((bob, "bob"), (ada, "ada")):
            visitor.sign_in(tokens.create(name, ANALYST, None if name == "ada" else ("zweite",))[0])
            visitor.post("/console/tables/zweite/ask", kind="count", epsilon="0.1", key="k" * 8)
        bob.get("/console/tables/first")  # refused, and written down
        secret = tokens.create("grace", OWNER, ("first",))[0]
        owner.sign_in(secret)
        events = json.dumps(privet.connect(served.url, secret).owner.events())
        files = [owner.get(f"/console/{path}").text for path in ("ledger.jsonl", "owned/first/audit.json")]
        for text in (owner.words("/console/ledger"), events, *files):
            assert "bob" not in text and "zweite" not in text
            assert "ada" in text  # who has to do with this table is told
        stranger, nobody = (owner.get(f"/console/owned/first/audit.json?analyst={name}") for name in ("bob", "zoe"))
        assert stranger.status_code == 404 and stranger.text == nobody.text
        refused = [owner.post("/console/tokens", analyst=name, days="3") for name in ("bob", "zoe")]
        assert [reply.status_code for reply in refused] == [422, 422] and refused[0].text == refused[1].text


def test_a_search_says_how_far_it_looked(served: Served, grace: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is older than the lines that one page looks through is not said to be absent."""
    monkeypatch.setattr(owner_pages, "_READ", 5)
    monkeypatch.setattr(owner_pages, "_SCANNED", 10)
    grace.post("/console/owned/people", what="grant", analyst="ada")
    for _ in range(20):
        ledger_lines.record(served.service.ledger, "test")
    page = grace.get("/console/ledger?text=granted+the+table")
    for _ in range(10):
        if "granted the table to" in words(page):
            break
        assert "No line here is like that" in words(page) and "Older ones may be like that" in words(page)
        older = re.search(r'href="(\?[^"]*before=[^"]*)"', page.text)
        assert older is not None
        page = grace.get(f"/console/ledger{unescape(older[1])}")
    assert "granted the table to ada" in words(page)
    assert "granted the table to ada" not in grace.words("/console/ledger")
    monkeypatch.setattr(owner_pages, "_EXPORTED", 10)
    assert "at most; choose days" in words(grace.get("/console/ledger.csv"))  # and no file that is cut off


def test_the_charges_of_a_fit_are_one_line(served: Served, grace: Visitor) -> None:
    served.connect("ada").fit("people", privet.DiffPID3Classifier(epsilon="0.5", max_depth=2))
    page = grace.words("/console/ledger")
    number = len([line for line in served.service.ledger.lines() if line.kind == "charge"])
    assert f"ada asked {number} questions" in page and "Each of them" in page and "ada asked count" in page


def test_hostile_names_are_words_and_nothing_else(served: Served, grace: Visitor) -> None:
    assert grace.post("/console/owned/people", what="grant", analyst=EVIL[:100]).status_code == 303
    for path in ("/console/", "/console/owned/people", "/console/analysts", "/console/ledger"):
        page = grace.get(path)
        words(page)  # which refuses scripts, handlers and addresses elsewhere
        assert "<script>alert" not in page.text and "<img" not in page.text, path
    made = grace.post("/console/tokens", analyst=EVIL[:100], days="3")
    visitor = Visitor(served, name="")
    visitor.sign_in(secret_on(made.text))
    for path in ("/console/", "/console/tables/people", "/console/tables/people/ask"):
        page = visitor.get(path)
        words(page)
        assert "<script>alert" not in page.text and "alert(1)" in page.text


def test_what_auditors_and_registries_ask_is_a_file(served: Served, grace: Visitor) -> None:
    Visitor(served, "ada").post("/console/tables/people/ask", kind="count", epsilon="0.1", key="k" * 8)
    page = grace.words("/console/keys")
    assert "signs no receipts" in page and "Audit bundle as a page" in page  # the ledger of this test is in memory
    bundle = json.loads(grace.get("/console/owned/people/audit.json").text)
    assert [release["analyst"] for release in bundle["releases"]] == ["ada"] and bundle["budget"]["spent"] == "1/10"
    assert "epsilon" in grace.get("/console/owned/people/registry.yaml").text
    for name in ("audit.html", "audit.json", "registry.yaml"):
        reply = grace.get(f"/console/owned/people/{name}")
        assert "attachment" in reply.headers["content-disposition"]
    assert grace.get("/console/owned/people/audit.exe").status_code == 404
    assert 'formaction="/console/owned/people/audit.json"' in grace.get("/console/keys").text
    own = json.loads(grace.get("/console/owned/people/audit.json?analyst=ada&permit=").text)
    assert own["only"] == {"analyst": "ada", "permit": None} and len(own["releases"]) == 1
    for absent in ("analyst=nobody", "permit=none"):
        reply = grace.get(f"/console/owned/people/audit.json?{absent}")
        assert reply.status_code == 404 and "ada" not in reply.text


def test_two_owners_raise_the_cap_of_a_permit() -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    permit = Permit("study", {"people": Fraction(1, 10)}, ("ada",), ("ada",), (EVIL, "ages"), None, 2)
    with serve_sessions(
        {"people": session}, permits={"study": permit}, analysts={"ada": Grant({})}, owners=("grace", "hedy")
    ) as served:
        ada, grace, hedy = (Visitor(served, name, role) for name, role in WHO)
        page = ada.words("/console/tables/people")
        assert "My data permits" in page and "0 of 0.1 spent by all of its analysts" in page
        under = json.dumps(["study", "ages"])
        fields = {"kind": "count", "epsilon": "0.1", "under": under}
        # she has the table under the permit alone: what is left is the permit's, and the form names no other grant
        assert "about 1 more count at" in page and "about 1 more count at" in ada.words("/console/")
        first = ada.words("/console/tables/people/ask")
        assert "study: ages" in first and "my own grant" not in first and "Enough is left for about 1 such" in first
        linked = ada.words("/console/tables/people/ask?kind=histogram&column=sex")  # says neither epsilon nor permit
        assert "± 30 rows in each cell" in linked and "Enough is left for about 1 such" in linked
        assert "What it is for" not in ada.words("/console/tables/people/request")  # the permit says it
        assert "1 analyst may use it" in grace.words("/console/")
        assert "Under the permit study : people" in grace.words("/console/analysts")
        owned = grace.words("/console/owned/people")
        assert "Nobody yet" not in owned and "Under data permits" in owned
        paid = words(ada.post("/console/tables/people/ask", key="k" * 8, **fields))
        assert (
            "Paid: epsilon 0.1" in paid and "The permit study, which its analysts share, has nothing left (0)." in paid
        )
        refused = ada.post("/console/tables/people/ask", key="l" * 8, **fields)
        assert refused.status_code == 403 and "Nothing was charged" in words(refused)
        other = ada.post("/console/tables/people/ask", key="m" * 8, **{**fields, "under": json.dumps(["no", "x"])})
        assert other.status_code == 404
        assert ada.post("/console/tables/people/ask", key="n" * 8, **{**fields, "under": "x"}).status_code == 422
        assert "The permit study has spent 0.1 of its cap of 0.1" in grace.words("/console/")
        assert "people (0.1 spent by ada)" in grace.words("/console/analysts")
        assert f"for ada; may spend: ada; purposes: {EVIL}; ages; until" in grace.words("/console/ledger?text=study")
        ada.post("/console/tables/people/request", epsilon="0.1", under=under, key="o" * 8)
        page = grace.get("/console/requests")
        assert "2 owners must agree" in words(page)
        (number,) = re.findall(r'action="/console/requests/(\d+)"', page.text)
        agreed = grace.post(f"/console/requests/{number}", granted="yes")
        assert agreed.headers["location"] == "/console/requests?done=open"
        page = grace.words(agreed.headers["location"])
        assert "You have agreed. Another owner must agree, too." in page and "You have agreed to ada" in page
        assert "grace has agreed" in hedy.words("/console/requests")
        assert grace.post(f"/console/requests/{number}", granted="yes").status_code == 422  # alone, and twice
        assert ada.post("/console/tables/people/ask", key="l" * 8, **fields).status_code == 403
        granted = hedy.post(f"/console/requests/{number}", granted="yes").headers["location"]
        assert "The request is granted." in hedy.words(granted)
        assert ada.post("/console/tables/people/ask", key="l" * 8, **fields).status_code == 200
        assert "grace agreed to request" in hedy.words("/console/ledger")
        ledger = hedy.get("/console/ledger")
        assert "The cap of the permit study is 0.2 now" in words(ledger) and "The cap of the table is" in words(ledger)
        assert "<option>ada" in ledger.text
        assert "under study: ages" in hedy.words("/console/ledger")
        home = hedy.words("/console/")
        assert "Data permits" in home and "0.2" in home


WHO = (("ada", ANALYST), ("grace", OWNER), ("hedy", OWNER))
