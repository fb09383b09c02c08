"""The console in a real Chromium: a whole story, without a message of the browser, and fit for all who read it.

Skips by name where there is no Chromium; what needs none is in the other files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import privet
from privet.receipts import check
from privet.service.config import load
from privet.service.running import Running, in_thread, service_of
from privet.service.tokens import OWNER

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
CONFIG = """
[server]
address = "127.0.0.1:0"
ledger = "privet.ledger"
owners = ["grace", "hedy"]

[tables.people]
data = "people.csv"
domain = "people.toml"
budget = "1"
tick = 0

[analysts]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with real noise, as an owner starts it; values of its domain are hostile."""
    folder = tmp_path_factory.mktemp("console")
    rows = privet.datasets.census(3000)[["age", "sex", "hours", "income"]]
    rows["sex"] = rows["sex"].astype(str).replace({"Male": EVIL})
    rows.to_csv(folder / "people.csv", index=False)
    kept = privet.datasets.census_domain()
    sex = privet.Nominal("sex", ("Female", EVIL))
    domain = kept.without(*(set(kept.names) - set(rows.columns))).with_column(sex)
    domain.save(folder / "people.toml")
    (folder / "privet.toml").write_text(CONFIG, encoding="utf-8")
    with in_thread(service_of(load(folder / "privet.toml"))) as running:
        yield running


@dataclass
class Person:
    """Somebody at a browser. Every message, error and dialog of it is kept, and fails the test."""

    page: Any
    url: str
    width: int
    messages: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.messages.append(dialog.message), dialog.dismiss()))

    def sign_in(self, token: str) -> None:
        self.page.goto(self.url)  # the address alone leads to the console
        self.check("sign in")
        self.page.fill("#token", token)
        self.page.click("main button")
        self.check("home")

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)
        self.check(path)

    def check(self, what: str, refused: bool = False) -> None:
        """Hold the page that is shown against what every page must be."""
        self.page.wait_for_load_state()
        if refused:  # the browser itself tells of the status of a page
            self.messages = [text for text in self.messages if "the server responded with a status of 4" not in text]
        assert not self.messages, (what, self.messages)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width, f"{what} is too wide"
        assert self.page.evaluate("document.querySelectorAll('main h1').length") == 1
        name = re.sub(r"[0-9a-f]{8,}|\d+", "N", self.page.url.removeprefix(self.url).partition("?")[0])
        if name not in self.seen:
            self.seen.add(name)
            assert not serious(self.page), (what, serious(self.page))


def serious(page: Any) -> list[str]:
    """What axe finds on a page that is serious or worse."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    grave = [violation for violation in found if violation["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in grave]


def test_axe_would_find_what_is_missing(browser: Any) -> None:
    page = browser.new_page()
    page.set_content("<html lang=en><title>t</title><main><h1>t</h1><input><p style='color:#ccc'>pale</p></main>")
    assert {problem.partition(":")[0] for problem in serious(page)} == {"label", "color-contrast"}
    page.close()


@contextmanager
def person(browser: Any, server: Running, width: int = 1280, scheme: str = "light") -> Iterator[Person]:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    try:
        yield Person(context.new_page(), server.url, width)
    finally:
        context.close()


def token(server: Running, name: str) -> str:
    tokens = server.service.access.tokens
    for old in [old for old in tokens.all() if old.name == name][:-1]:
        tokens.revoke(old.id)
    return tokens.create(name, OWNER)[0]


def shown(page: Any) -> str:
    return str(page.inner_text("main"))


def test_a_grant_a_question_a_model_a_refusal_and_more_budget(browser: Any, server: Running) -> None:
    with person(browser, server) as grace, person(browser, server) as ada:
        # the owner grants the table to somebody with a hostile name, and makes a token
        grace.sign_in(token(server, "grace"))
        grace.page.click("text=people")
        grace.page.fill("#grant-analyst", f"Ada {EVIL}")
        grace.page.fill("#grant-epsilon", "0.5")
        grace.page.click("text=Grant >> nth=-1")
        grace.check("granted")
        assert "The table is granted." in shown(grace.page) and f"Ada {EVIL}" in shown(grace.page)
        grace.go("/console/analysts")
        grace.page.click("text=Make a token for")
        grace.page.click("text=Make it")
        grace.check("token")
        secret = grace.page.inner_text(".secret")

        # the analyst sees what a question buys before paying, and pays
        ada.sign_in(secret)
        ada.page.click("main h2 a")
        ada.check("table")
        assert EVIL in shown(ada.page)
        ada.page.click(".tabs >> text=Ask")
        ada.check("ask")
        preview = ada.page.locator("#preview [data-slot=accuracy]")
        ada.page.fill("#within", "100")
        preview.filter(has_text="±\N{NO-BREAK SPACE}100\N{NO-BREAK SPACE}rows").wait_for()
        ada.page.select_option("#by", "sex")
        preview.filter(has_text="in each group").wait_for()
        assert "Enough is left for about" in ada.page.inner_text("#preview")
        ada.page.click("text=Ask and pay")
        ada.check("answer")
        assert EVIL in shown(ada.page) and "entry 1 of the ledger" in shown(ada.page)
        assert "NOT PRIVATE" not in shown(ada.page)

        # fits a model, watches it grow, and sees the tree and what is left
        ada.page.click(".tabs >> text=Fit a model")
        ada.page.select_option("#algorithm", "diffpid3")
        ada.page.wait_for_url("**/fit?**")
        ada.check("fit")
        ada.page.fill("#epsilon", "0.2")
        ada.page.click("text=Fit and pay")
        ada.page.wait_for_url("**/models/1")
        ada.check("model")
        assert ada.page.locator("svg.privet-tree").count() == 1 and "epsilon 0.2 per person" in shown(ada.page)
        files = {}
        for name in ("Download the model", "Receipt"):
            with ada.page.expect_download() as started:
                ada.page.click(f"main >> text={name}")
            files[name] = Path(started.value.path()).read_text(encoding="utf-8")
        assert privet.Ensemble.from_json(files["Download the model"]).privacy.private
        check(files["Receipt"], files["Download the model"].encode())  # without the server, to the byte

        # sees again what the fit was told: many lines, which the keyboard reaches
        ada.go("/console/tables/people/answers")
        ada.page.click("text=show answer >> nth=-1")
        ada.check("released to a program")
        assert "released to a program" in shown(ada.page) and ada.page.locator("ol.values[tabindex='0']").count() == 1

        # is refused at the cap, and asks for more
        ada.go("/console/tables/people/ask")
        ada.page.fill("#epsilon", "0.5")
        ada.page.locator("#preview [data-slot=problem]").filter(has_text="more than is left").wait_for()
        ada.page.click("text=Ask and pay")
        ada.check("refused", refused=True)
        assert "Nothing was charged" in shown(ada.page)
        ada.page.click(".tabs >> text=More budget")
        ada.page.fill("#epsilon", "0.5")
        ada.page.fill("#purpose", f"For the report. {EVIL}")
        ada.page.click("text=Send the request")
        ada.check("requested")

        # another owner approves, and the question is answered
        with person(browser, server) as hedy:
            hedy.sign_in(token(server, "hedy"))
            assert "1 request for more budget waits" in shown(hedy.page)
            hedy.page.click("text=Requests")
            hedy.check("requests")
            assert f"For the report. {EVIL}" in shown(hedy.page)
            hedy.page.click("text=Grant it")
            hedy.check("decided")
            hedy.page.click("text=Ledger")
            hedy.check("ledger")
            assert "hedy granted request" in shown(hedy.page)
        ada.go("/console/tables/people/ask")
        ada.page.fill("#epsilon", "0.5")
        ada.page.click("text=Ask and pay")
        ada.check("answer after all")
        assert "Paid: epsilon 0.5" in shown(ada.page)

        # signed out, the way back is closed
        ada.go("/console/tables/people")
        ada.page.click("text=Sign out")
        ada.check("signed out")
        ada.page.go_back()
        ada.page.wait_for_url("**/sign-in*")


ANALYSTS_PAGES = [
    f"/console/tables/people{page}"
    for page in ("", "/ask?kind=mean&column=age", "/fit", "/buys?algorithm=prior", "/answers", "/request")
]
OWNERS_PAGES = [f"/console/{page}" for page in ("owned/people", "analysts", "requests", "ledger", "keys")]


@contextmanager
def an_analyst(browser: Any, server: Running, width: int = 1280, scheme: str = "light") -> Iterator[Any]:
    """Somebody who may ask about the table, signed in with a token of today."""
    from privet.service.decisions import OwnerGrant

    access = server.service.access
    if "lise" not in access.analysts():
        access.decisions.grant("people", "lise", OwnerGrant(None, None, "grace"))
    for old in [old for old in access.tokens.all() if old.name == "lise"]:
        access.tokens.revoke(old.id)
    with person(browser, server, width, scheme) as lise:
        lise.sign_in(access.tokens.create("lise")[0])
        yield lise


@pytest.mark.parametrize(
    "width, scheme", [(400, "light"), (1280, "dark"), pytest.param(400, "dark", marks=pytest.mark.long)]
)
def test_every_page_fits_its_screen_and_is_readable(browser: Any, server: Running, width: int, scheme: str) -> None:
    with an_analyst(browser, server, width, scheme) as lise:
        for page in ANALYSTS_PAGES:
            lise.go(page)
    with person(browser, server, width, scheme) as grace:
        grace.sign_in(token(server, "grace"))
        for page in OWNERS_PAGES:
            grace.go(page)


CONTROLS = """() => {
    const controls = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"
    const reached = [...document.querySelectorAll(controls)].filter(
        (one) => one.checkVisibility() && !one.disabled && (one.type !== "radio" || one.checked))
    reached.forEach((one, number) => { one.dataset.number = number })
    return reached.length
}"""
FOCUSED = """() => {
    const style = getComputedStyle(document.activeElement)
    return [document.activeElement.dataset.number, style.outlineStyle !== "none" || style.boxShadow !== "none"]
}"""


@pytest.mark.long
def test_every_control_is_reached_by_the_tab_key_and_shows_that_it_is(browser: Any, server: Running) -> None:
    def walk(page: Any) -> None:
        controls, reached = page.evaluate(CONTROLS), set()
        for _ in range(2 * controls + 5):
            page.keyboard.press("Tab")
            number, seen = page.evaluate(FOCUSED)
            if number is not None:
                reached.add(int(number))
                assert seen, page.locator(f"[data-number='{number}']").evaluate("one => one.outerHTML")
        missed = set(range(controls)) - reached
        assert not missed, [page.locator(f"[data-number='{one}']").evaluate("one => one.outerHTML") for one in missed]

    with an_analyst(browser, server) as lise:
        for page in ANALYSTS_PAGES:
            lise.go(page)
            walk(lise.page)
    with person(browser, server) as grace:
        grace.sign_in(token(server, "grace"))
        for page in OWNERS_PAGES:
            grace.go(page)
            walk(grace.page)


def test_forms_work_without_scripts_and_with_the_keyboard_alone(browser: Any, server: Running) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.url}/console/sign-in")
    assert page.locator(":focus").get_attribute("id") in ("token", None)
    page.fill("#token", token(server, "grace"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/?began")
    page.goto(f"{server.url}/console/ledger")
    page.focus("#f-text")
    page.keyboard.type("granted the table")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=granted**")
    assert "granted the table to" in shown(page)
    context.close()


WATCH = """() => new MutationObserver(() => {
    const words = document.getElementById("trying").textContent
    if (words) sessionStorage.setItem("seen", `${words} ${document.getElementById("choose").disabled}`)
}).observe(document.getElementById("trying"), { childList: true })"""


def test_waiting_is_said_and_a_choice_keeps_the_keyboard(browser: Any, server: Running) -> None:
    with an_analyst(browser, server) as lise:
        lise.go("/console/tables/people/buys")
        lise.page.evaluate(WATCH)
        lise.page.select_option("#algorithm", "prior")
        assert (
            "algorithm=" not in lise.page.url
        )  # the arrow keys pass by algorithms: none is tried until it is asked for
        lise.page.click("text=Try it")
        lise.page.wait_for_url("**algorithm=prior")
        assert lise.page.evaluate("sessionStorage.getItem('seen')") == "Fitting models to invented rows … true"
        lise.check("tried")
        lise.go("/console/tables/people/fit")
        lise.page.focus("#algorithm")
        lise.page.keyboard.press("ArrowDown")
        lise.page.wait_for_url("**/fit?**")
        lise.page.locator("#algorithm:focus").wait_for()


def test_a_page_of_another_site_can_do_nothing(browser: Any, server: Running, tmp_path: Path) -> None:
    """A real browser, a real form elsewhere, and somebody who is signed in."""
    import http.server
    import threading

    form = f"<form method=post action='{server.url}/console/sign-out'><button>win</button></form>"

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(form.encode())

        def log_message(self, *words: object) -> None:
            pass

    elsewhere = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    try:
        with person(browser, server) as grace:
            grace.sign_in(token(server, "grace"))
            for host in ("localhost", "127.0.0.1"):  # another site, and another port of this one
                grace.page.goto(f"http://{host}:{elsewhere.server_port}/")
                grace.page.click("text=win")
                grace.page.wait_for_load_state()
                assert "came from another site" in shown(grace.page)
            grace.page.goto(f"{server.url}/console/")
            assert "Tables" in shown(grace.page)
    finally:
        elsewhere.shutdown()
        elsewhere.server_close()
