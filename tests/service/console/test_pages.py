"""Pages: for whom they are, what they show, what they refuse; nothing else than the API would tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kernel.people import DOMAIN, FRAME
from service.console.visitor import Visitor, words

import privet
from privet import ledger_lines
from privet.kernel import cells_of, digest, unit_with
from privet.models.model import Model
from privet.service.boundary import Gate, Operation, Refusal
from privet.service.console import PAGES
from privet.service.console.asking import asked_before
from privet.service.console.visits import POLICY, Page
from privet.service.permits import Permit
from privet.service.seeded_server import UNLIMITED, Served, serve_seeded, serve_sessions
from privet.service.tokens import ANALYST, OWNER


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 10, seed=3) as found:
        yield found


@pytest.fixture
def ada(served: Served) -> Visitor:
    return Visitor(served, "ada")


def filled(page: Page, table: str = "people") -> str:
    path = page.path.replace("{table}", table)
    return re.sub(r"\{\w+\}", "12345678", path)


def visited(visitor: Visitor, page: Page, table: str = "people"):  # type: ignore[no-untyped-def]
    path = filled(page, table)
    return visitor.get(path) if page.method == "GET" else visitor.post(path, key="k" * 8)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.method} {page.path}")
def test_every_page_refuses_whoever_may_not_see_it(served: Served, page: Page) -> None:
    spent, lines = (
        served.service.ledger.spent("people"),
        len(ledger_lines.models(served.service.ledger, "people", "ada")),
    )
    stranger = visited(Visitor(served, name=""), page)
    assert stranger.status_code == (303 if page.method == "GET" else 401)
    assert stranger.headers.get("location", "/console/sign-in") == "/console/sign-in"
    if page.role is not None:
        other = Visitor(served, "grace", OWNER) if page.role == ANALYST else Visitor(served, "ada")
        wrong, absent = visited(other, page), other.get("/console/nothing-is-here")
        assert wrong.status_code == 404 and wrong.text == absent.text
    if "{table}" in page.path:
        name = "ida" if page.role == ANALYST else "hedy"
        visitor = Visitor(served, name, page.role or ANALYST, tables=("elsewhere",))
        absent, not_yours = visited(visitor, page, "nowhere"), visited(visitor, page)
        assert absent.status_code == not_yours.status_code == 404 and absent.text == not_yours.text
    assert served.service.ledger.spent("people") == spent
    assert len(ledger_lines.models(served.service.ledger, "people", "ada")) == lines


def test_every_reply_has_the_headers(served: Served, ada: Visitor) -> None:
    stranger = Visitor(served, name="")
    for reply in (
        *(stranger.get(path) for path in ("/", "/console/", "/console/sign-in", "/console/static/console.css")),
        *(ada.get(path) for path in ("/console/", "/console/nowhere", "/console/tables/people/preview")),
        ada.post("/console/tables/people/ask"),
    ):
        headers = reply.headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "no-store" in headers["cache-control"] or "/static/" in str(reply.url)
    for part in ("default-src 'none'", "frame-ancestors 'none'", "trusted-types 'none'", "form-action 'self'"):
        assert part in POLICY
    assert "unsafe" not in POLICY
    assert stranger.get("/console/static/nothing.js").status_code == 404
    assert stranger.get("/console/static/..%2fvisits.py").status_code == 404


def test_a_table_is_shown_with_its_budget_and_domain(ada: Visitor) -> None:
    home = ada.words("/console/")
    assert "people" in home and "0 of 10 spent (epsilon)" in home and "more counts at ± 30 rows" in home
    page = ada.words("/console/tables/people")
    for name in DOMAIN.names:
        assert name in page
    assert "no person has more than 1 row" in page
    file = ada.get("/console/tables/people/domain.toml")
    assert privet.Domain.parse(file.text) == DOMAIN and "attachment" in file.headers["content-disposition"]


QUESTION = {"kind": "count", "epsilon": "1/10", "aim": "epsilon"}


def test_a_question_is_priced_asked_and_paid_once() -> None:
    with serve_seeded(FRAME, DOMAIN, 1, seed=3) as served:
        ada = Visitor(served, "ada")
        made = json.loads(ada.get("/console/tables/people/preview?kind=count&epsilon=0.1&aim=epsilon").text)
        assert made["accuracy"] == "±\N{NO-BREAK SPACE}30\N{NO-BREAK SPACE}rows" and made["cost"] == "costs epsilon 0.1"
        assert made["more"] == "Enough is left for about 10 such questions." and not made["problem"]
        assert served.service.ledger.spent("people") == 0 and served.service.sittings.sweep() == 0
        pages = [words(ada.post("/console/tables/people/ask", key="abcdefgh", **QUESTION)) for _ in range(2)]
        assert served.service.ledger.spent("people") == Fraction(1, 10)
        assert pages[0] == pages[1] and "± 30 rows at 95%" in pages[0]
        assert "You have about 9 more counts at ± 30 rows (0.9)." in pages[0]
        assert "NOT PRIVATE" in pages[0]  # a server for tests
        assert served.service.sittings.sweep() == 0
        other = ada.post("/console/tables/people/ask", key="abcdefgh", **{**QUESTION, "epsilon": "0.2"})
        assert other.status_code == 422 and "Nothing was charged" in words(other)
        assert "count" in ada.words("/console/tables/people/answers")


def test_what_is_paid_is_shown_whatever_fails_after_it(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget cannot be read after the answer, and the sitting cannot be closed: it is not said to be unpaid."""
    ada, perform, asked = Visitor(served, "ada"), Gate.perform, []

    async def failing(self: Gate, operation: Operation, *rest: Any) -> Any:
        if asked and operation.name in ("budget", "close_sitting"):
            raise Refusal("ledger-unavailable", "the ledger of this server could not be used.")
        asked.extend([operation] * (operation.name == "ask"))
        return await perform(self, operation, *rest)

    monkeypatch.setattr(Gate, "perform", failing)
    reply = ada.post("/console/tables/people/ask", key="abcdefgh", **QUESTION)
    assert reply.status_code == 200 and "Paid: epsilon 0.1" in words(reply) and len(asked) == 1


def test_a_page_that_fails_says_so_and_no_more(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def failing(self: Gate, *rest: Any) -> Any:
        raise KeyError("a value of a row")

    ada = Visitor(served, "ada")
    monkeypatch.setattr(Gate, "perform", failing)
    for reply, said in (
        (ada.get("/console/"), "Nothing was charged."),
        (ada.post("/console/tables/people/ask", key="abcdefgh", **QUESTION), "look at your answers"),
    ):
        assert reply.status_code == 500 and reply.headers["content-security-policy"] == POLICY
        assert "The server failed; its owner is told." in words(reply) and said in words(reply)
        assert "a value of a row" not in reply.text
    assert "privet: KeyError in /console/" in capfd.readouterr().err


def test_a_page_counts_once_against_the_rate() -> None:
    with serve_seeded(FRAME, DOMAIN, 1, seed=3, limits=replace(UNLIMITED, rate=1e-9, burst=3)) as served:
        ada = Visitor(served, "ada")
        assert [ada.get("/console/tables/people").status_code for _ in range(4)] == [200, 200, 200, 429]


ASKED = (
    {"kind": "count", "in0": "Female"},
    {"kind": "count", "by": "age", "in0": "Female"},
    {"kind": "histogram", "column": "sex", "column2": "income"},
    {"kind": "histogram", "column": "age", "by": "income"},
    {"kind": "mean", "column": "body height", "by": "sex"},
    {"kind": "sum", "column": "age"},
    {"kind": "quantile", "column": "age", "rank": "0.25"},
    {"kind": "majority", "column": "income"},
)


SHOWN = {1: "How many rows where sex = Female", 2: "where sex = Female, for each age", 3: "in the whole table"}
SHOWN |= {7: "of the true one at 95%", 8: "behind the most frequent at 95%"}


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_an_answer_of_before_is_shown_again(tmp_path: Path, delta: str | None) -> None:
    """As it was: with its labels and bounds, at no cost, to nobody else."""

    def told(page: str) -> str:
        return page.partition('<h2 id="answer">')[2].partition('<p class="big">±')[0].partition("<p>")[0].strip()

    table = privet.open(FRAME, DOMAIN, budget=5, delta=delta, ledger=tmp_path / "people.ledger", name="people")
    with serve_sessions({"people": table._session}) as served:
        ada, lise = Visitor(served, "ada"), Visitor(served, "lise")
        path = "/console/tables/people"
        for number, fields in enumerate(ASKED, 1):
            once = ada.post(f"{path}/ask", key=f"{number}" * 8, epsilon="0.2", **fields)
            assert SHOWN.get(number, "") in words(once)
            assert f'href="{path}/entries/{number}"' in ada.get(f"{path}/answers").text
            spent = served.service.ledger.spent("people")
            again = ada.get(f"{path}/entries/{number}")
            assert told(once.text) == told(again.text) != "" and "costs nothing" in words(again)
            assert served.service.ledger.spent("people") == spent
            assert lise.get(f"{path}/entries/{number}").text == lise.get(f"{path}/entries/99").text


def test_an_answer_to_a_question_of_no_form_is_shown_as_it_was_released(tmp_path: Path) -> None:
    """Parts are named where a form has made them: a program divides otherwise, and a domain may change."""
    table = privet.open(FRAME, DOMAIN, budget=5, ledger=tmp_path / "people.ledger", name="people")
    with serve_sessions({"people": table._session}) as served, served.connect() as connection:
        ada = Visitor(served, "ada")
        connection.table("people").partition("sex").count("0.1")
        page = ada.get("/console/tables/people/entries/1").text
        assert page.count("<li>") == len(DOMAIN["sex"].labels) and "in the order of the public domain" in page
        connection.fit("people", privet.DiffPID3Classifier(epsilon="0.4", max_depth=1))  # whose questions have no keys
        entries = [entry.id for entry in served.service.ledger.entries("people")]
        assert len(entries) > 3
        for entry in entries:
            assert "costs nothing" in ada.words(f"/console/tables/people/entries/{entry}")
    charge = {"question": "count", "scope": "all rows", "unit": "epsilon", "rows_per_person": 1, "key": "console k"}
    for cells, known in (("other", False), (digest(cells_of(DOMAIN)), True)):
        found = asked_before({**charge, "domain": cells}, 1, DOMAIN, unit_with(None))
        assert (found is not None) is known


def test_who_may_only_look_is_told_before_asking() -> None:
    session = privet.testing.open(FRAME, DOMAIN, 10, seed=1, name="people")._session
    heart = Permit("heart", {"people": Fraction(1, 2)}, ("ada", "eve"), ("ada",))
    with serve_sessions({"people": session}, permits={"heart": heart}, analysts={}, owners=()) as served:
        eve = Visitor(served, "")
        eve.sign_in(served.service.access.tokens.create("eve", ANALYST)[0])
        for epsilon in ("0.1", "2"):  # what is left is another matter
            page = eve.words(f"/console/tables/people/ask?epsilon={epsilon}&under=%5B%22heart%22,%20null%5D")
            assert "look at prices, and not spend" in page and "±" in page
        refused = eve.post("/console/tables/people/ask", key="k" * 8, under='["heart", null]', **QUESTION)
        assert refused.status_code == 422 and "Nothing was charged" in words(refused)
        assert session.ledger.spent("people") == 0


def test_an_accuracy_finds_its_epsilon(served: Served, ada: Visitor) -> None:
    def preview(query: str) -> dict[str, str]:
        return dict(json.loads(ada.get(f"/console/tables/people/preview?{query}").text))

    made = preview("kind=count&aim=accuracy&within=30")
    assert made["accuracy"] == "±\N{NO-BREAK SPACE}30\N{NO-BREAK SPACE}rows" and made["epsilon"] == "491/5000"  # 0.0982
    assert "must be a number greater than 0" in preview("kind=count&aim=accuracy&within=much")["problem"]
    assert "must be a number greater than 0" in preview("kind=count&aim=epsilon&epsilon=-1")["problem"]
    assert "more than is left" in preview("kind=count&aim=epsilon&epsilon=100")["problem"]
    for query in ("kind=drop", "kind=histogram&epsilon=1", "kind=mean&column=sex&epsilon=1", "kind=mean&column=x"):
        assert preview(query)["problem"]


def test_a_budget_that_is_used_up_refuses_and_says_what_to_do() -> None:
    with serve_seeded(FRAME, DOMAIN, 1, seed=3) as served:
        ada = Visitor(served, "ada")
        ada.post("/console/tables/people/ask", key="abcdefgh", **{**QUESTION, "epsilon": "0.95"})
        assert "95% used" in ada.words("/console/")
        reply = ada.post("/console/tables/people/ask", key="ijklmnop", **{**QUESTION, "epsilon": "0.5"})
        assert reply.status_code == 403 and "Nothing was charged" in words(reply)
        assert served.service.ledger.spent("people") == Fraction(19, 20)
        ada.post("/console/tables/people/ask", key="qrstuvwx", **{**QUESTION, "epsilon": "0.05"})
        assert "used up" in ada.words("/console/") and "nothing left" in ada.words("/console/tables/people")


def test_a_request_for_more_is_sent_and_listed(served: Served, ada: Visitor) -> None:
    path = "/console/tables/people/request"
    assert "You have made none" in ada.words(path)
    reply = ada.post(path, epsilon="0.5", purpose="A second look at ages.", key="abcdefgh")
    assert reply.headers["location"] == f"{path}?sent=1"
    again = ada.post(path, epsilon="0.5", purpose="A second look at ages.", key="abcdefgh")
    assert again.status_code == 303
    page = ada.words(f"{path}?sent=1")
    assert "with the owner" in page and page.count("A second look at ages.") == 1 and "waits" in page
    ada.post(path, epsilon="0.5", purpose="A line.\r\n\r\nAnother \u202eline.\x1b", key="mnopqrst")
    assert "A line. Another \ufffdline.\u241b" in ada.words(path)
    for fields in (
        {"epsilon": "0", "purpose": "x"},
        {"epsilon": "1", "purpose": ""},
        {"epsilon": "1", "purpose": "x" * 1001},
    ):
        refused = ada.post(path, key="ijklmnop", **fields)
        assert refused.status_code == 422, fields


def test_a_fit_is_followed_to_its_model(served: Served, ada: Visitor) -> None:
    assert "ID3 whose splits" in ada.words("/console/tables/people/fit?algorithm=diffpid3")
    for fields in ({"algorithm": "diffpid3", "epsilon": "x"}, {"algorithm": "magic", "epsilon": "1"}):
        refused = ada.post("/console/tables/people/fit", key="abcdefgh", **fields)
        assert refused.status_code == 422, fields
    fields = {"algorithm": "diffpid3", "epsilon": "1", "choice-max_depth": "1", "key": "abcdefgh"}
    there = ada.post("/console/tables/people/fit", **fields).headers["location"]
    assert ada.post("/console/tables/people/fit", **fields).headers["location"] == there
    with httpx2.stream("GET", f"{ada.url}{there}/events", headers=ada.headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
    assert events[-1]["state"] == "done"
    state = json.loads(ada.get(f"{there}/state").text)
    model = f"/console/tables/people/models/{state['model']}"
    assert state["state"] == "done" and ada.get(there).headers["location"] == model
    page = ada.get(model)
    assert (
        "epsilon 1 per person" in words(page)
        and '<svg xmlns="http://www.w3.org/2000/svg" class="privet-tree"' in page.text
    )
    assert "<style" not in page.text
    file = ada.get(f"{model}/model.json")
    assert Model.from_json(file.text).privacy.epsilon == 1
    for name in ("model.json", "page.html", "drawing.svg"):
        assert "attachment" in ada.get(f"{model}/{name}").headers["content-disposition"]
    assert f"Model {state['model']}: diffpid3" in ada.words("/console/tables/people")
    other = Visitor(served, "lise")
    assert other.get(model).text == other.get("/console/tables/people/models/999").text
    assert other.get(there).status_code == 404


def test_what_an_epsilon_buys_is_tried_on_invented_rows(served: Served, ada: Visitor) -> None:
    spent = served.service.ledger.spent("people")
    page = ada.words("/console/tables/people/buys")
    assert "A count, within" in page and "± 30 rows" in page and "Choose an algorithm" in page
    page = ada.words("/console/tables/people/buys?algorithm=naive-bayes")
    assert "Invented rows." in page and "rows that nobody has" in page and page.count("%") >= 18
    assert "Choose an algorithm" in ada.words("/console/tables/people/buys?algorithm=magic")
    assert served.service.ledger.spent("people") == spent
