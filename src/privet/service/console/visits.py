"""A visit: one request of a browser, its sign-in checked, its page made of replies of the API.

A page asks for what it shows through the same gate as a program with a token: the caller's rate, role, tables and ticks
hold, refusals are written down, and nothing is shown that the API would not tell. Every page is listed with the role
that may see it; whoever may not, gets the reply of a page that is not there.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib import resources
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote

import jinja2
import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from privet.kernel import Domain, Unit, unit_with
from privet.report.svg import style
from privet.service import api
from privet.service.boundary import Gate, Operation, Refusal
from privet.service.console.asking import Form, in_counts
from privet.service.console.sign_in import COOKIE, SignIns, cookie, from_elsewhere
from privet.service.permissions import Caller
from privet.service.server import Service
from privet.service.tokens import OWNER
from privet.text import clean, rows_in_words, short_text
from privet.version import __version__

T = TypeVar("T")
HOME = "/console/"
MOST_FORM = 2**18  # bytes of a form
MOST_FIELDS = 3000
ALERT = Fraction(4, 5)  # of a budget: from here on pages warn

# Scripts and styles come from files of this server alone, and no text becomes code: neither by a tag nor by innerHTML.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}
STATIC = {
    "console.css": "text/css",
    "drawings.css": "text/css",
    "icon.svg": "image/svg+xml",
    "ask.js": "text/javascript",
    "watch.js": "text/javascript",
}


class Page(NamedTuple):
    """A page, or something that a page does: its path, and who may see it."""

    method: str
    path: str
    run: Callable[[PageVisit], Awaitable[Response]]
    role: str | None  # None: whoever is signed in


@dataclass
class PageVisit:
    """One request of somebody who is signed in."""

    console: Console
    request: Request
    caller: Caller
    form: Form
    _counted: bool = False  # whether this visit has counted against the caller's rate

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    @property
    def table(self) -> str:
        """The table that the path names."""
        return str(self.request.path_params["table"])

    async def call(
        self, operation: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None, **path: str
    ) -> Any:
        """Return the reply of an operation of the API, for whoever is signed in.

        Raises
        ------
        Refusal
        """
        _, reply = await self._performed(self.console.operations[operation], body, query or {}, path)
        return reply

    async def events(self, operation: str, **path: str) -> Response:
        """Return the events of an operation, as the API sends them."""
        own = self.console.operations[operation]
        call, _ = await self._performed(own, None, {}, path)
        assert own.stream is not None
        events = own.stream(self.console.service, call, self.request.headers.get("last-event-id", ""))
        return StreamingResponse(self._while_signed_in(events), media_type="text/event-stream")

    async def _while_signed_in(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in events:
            if not self.console.sign_ins.lives(self.request.cookies.get(COOKIE)):
                return
            yield event

    async def _performed(
        self, operation: Operation, body: Mapping[str, Any] | None, query: Mapping[str, str], path: Mapping[str, str]
    ) -> Any:
        async def read() -> Any:
            if operation.body is None:
                return None
            try:
                return msgspec.convert(dict(body or {}), operation.body)
            except msgspec.ValidationError as error:
                raise Refusal("bad-question", f"{clean(str(error))[:300]}.") from None

        here = {name: value for name, value in self.path.items() if f"{{{name}}}" in operation.path}
        counted, self._counted = not self._counted, True
        return await self.console.gate.perform(
            operation, self.caller, {**here, **path}, [*query.items()], read, counted
        )

    @property
    def signs(self) -> bool:
        """Whether this server signs receipts: it has a key of its ledger."""
        return self.console.service.receipts is not None

    async def about_table(self) -> TableFacts:
        """Return what is public about the table of the path, and what its budget is for the caller."""
        return TableFacts(await self.call("describe"), await self.call("budget"))

    def show(self, template: str, status: int = 200, **facts: Any) -> Response:
        """Return a page."""
        text = _templates().get_template(template).render(caller=self.caller, here=self.request.url.path, **facts)
        return html(text, status)

    def go(self, path: str) -> Response:
        """Send the browser to another page, after something was done."""
        return RedirectResponse(path, 303, headers=HEADERS)


@dataclass(frozen=True)
class TableFacts:
    """What the API says about a table to an analyst."""

    described: api.TableReply
    budget: api.BudgetReply

    @property
    def name(self) -> str:
        return self.described.table

    @cached_property
    def domain(self) -> Domain:
        return Domain.parse(self.described.domain)

    @property
    def unit(self) -> Unit:
        return unit_with(None if self.described.delta is None else Fraction(self.described.delta))

    @property
    def left(self) -> Fraction:
        """What the analyst may still spend, in the unit of the table."""
        return Fraction(self.budget.remaining)

    @property
    def spent(self) -> Fraction:
        return Fraction(self.budget.spent)

    @property
    def most(self) -> Fraction:
        """What the analyst may spend in all, as things are."""
        return self.spent + self.left

    @property
    def held(self) -> Fraction:
        """What reservations of the analyst hold back."""
        holds = self.budget.holds
        return sum((Fraction(hold.epsilon) - Fraction(hold.spent) for hold in holds), Fraction(0))

    @property
    def worth(self) -> str:
        """What is left, in words: how many more counts, and how far off each is."""
        return in_counts(self.left, self.unit, self.domain.rows_per_person)

    @property
    def buys(self) -> str:
        """The epsilon of one answer that all that is left would buy."""
        return short_text(self.unit.buys(self.left)) if self.left else "0"


@dataclass
class Console:
    """The pages of a server.

    Parameters
    ----------
    gate : Gate
    operations : sequence of Operation
        Those of the API.
    """

    gate: Gate
    all_operations: Sequence[Operation]
    pages: Sequence[Page]
    sign_ins: SignIns = field(init=False)

    def __post_init__(self) -> None:
        self.operations = {operation.name: operation for operation in self.all_operations}
        self.sign_ins = SignIns(self.service.clock)
        self._trials = ThreadPoolExecutor(1, "privet-trial")  # fits to invented rows wait for each other alone
        self._trying: set[str] = set()

    @property
    def service(self) -> Service:
        return self.gate.service

    async def tried(self, name: str, work: Callable[[], T]) -> T:
        """Return what some work on invented rows returns; one at a time for each person. Refusal for a second one."""
        if name in self._trying:
            raise Refusal("too-many", "a trial of yours is under way; wait for it.", {"Retry-After": "5"})
        self._trying.add(name)
        future = asyncio.get_running_loop().run_in_executor(self._trials, work)
        future.add_done_callback(lambda _: self._trying.discard(name))
        return await asyncio.shield(future)

    def routes(self) -> list[Route]:
        """Return the routes of all pages."""
        by_path: dict[str, dict[str, Page]] = {}
        for page in self.pages:
            by_path.setdefault(page.path, {})[page.method] = page
        return [
            Route("/", self.home, methods=["GET"]),
            Route("/console", self.home, methods=["GET"]),
            Route("/console/static/{file}", self.static, methods=["GET"]),
            Route("/console/sign-in", self.sign_in_page, methods=["GET"]),
            Route("/console/sign-in", self.sign_in, methods=["POST"]),
            Route("/console/sign-out", self.sign_out, methods=["POST"]),
            *(Route(path, self._endpoint(own), methods=[*own]) for path, own in by_path.items()),
            Route("/console/{rest:path}", self.absent, methods=["GET", "POST"]),
        ]

    def _endpoint(self, own: Mapping[str, Page]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await self.visit(own["GET" if request.method == "HEAD" else request.method], request)

        return answer

    # -- without a sign-in ------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        """Send whoever opens the address of the server to the console."""
        return RedirectResponse(HOME, 303, headers=HEADERS)

    async def static(self, request: Request) -> Response:
        """Return a style sheet or a script, of a short list."""
        name = request.path_params["file"]
        if name not in STATIC:
            return self._absent(None)
        headers = {**HEADERS, "Cache-Control": "private, max-age=300"}
        return Response(_static(name), media_type=STATIC[name], headers=headers)

    async def sign_in_page(self, request: Request) -> Response:
        """Show where to sign in."""
        return self._sign_in_page(request)

    def _sign_in_page(self, request: Request, problem: str = "", status: int = 200) -> Response:
        if not problem and "began" in request.query_params:
            problem = (
                "Your browser did not keep the cookie of this sign-in. Over plain HTTP on this machine Chromium, Edge "
                "and Firefox keep it; other browsers need the server to have a certificate. Cookies must be allowed."
            )
        return html(_templates().get_template("sign_in.html").render(problem=problem), status)

    async def sign_in(self, request: Request) -> Response:
        """Begin a sign-in with a token; wrong ones are limited as the API's, and written down."""
        try:
            form = await self._form(request)
            if self.service.access.stale:
                await self.gate.in_thread(self.service.access.refresh)
            caller = await self.gate.caller_with(f"Bearer {form.text('token')}", request)
            if caller is None:
                raise Refusal("unauthenticated", "this token is wrong, has ended or was revoked.")
        except Refusal as refusal:
            await self.gate.note("console-refused", None, None)
            response = self._sign_in_page(request, sentence(refusal.detail), api.TITLES[refusal.kind][0])
            response.headers.update(refusal.headers)
            return response
        await self.gate.note("console-sign-in", None, caller.name)
        self.sign_ins.end(request.cookies.get(COOKIE))
        secret = self.sign_ins.begin(caller.token.id)
        return RedirectResponse(f"{HOME}?began", 303, headers={**HEADERS, "Set-Cookie": cookie(secret)})

    async def sign_out(self, request: Request) -> Response:
        """End a sign-in."""
        if from_elsewhere(request.headers, request.url.scheme):
            return self._refused(None, Refusal("not-allowed", ELSEWHERE))
        caller = await self._caller(request)
        self.sign_ins.end(request.cookies.get(COOKIE))
        if caller is not None:
            await self.gate.note("console-sign-out", None, caller.name)
        headers = {**HEADERS, "Set-Cookie": cookie(None)}
        return RedirectResponse("/console/sign-in", 303, headers=headers)

    async def absent(self, request: Request) -> Response:
        """Say that there is no such page."""
        return self._absent(await self._caller(request))

    # -- with one ---------------------------------------------------------------------------

    async def _caller(self, request: Request) -> Caller | None:
        """Return who is signed in; None where the sign-in, its token or its grant has ended."""
        found = self.sign_ins.find(request.cookies.get(COOKIE))
        if found is None:
            return None
        access = self.service.access
        if access.stale:
            await self.gate.in_thread(access.refresh)
        caller = access.caller_of(found.token)
        if caller is None:
            self.sign_ins.end(request.cookies.get(COOKIE))
        return caller

    async def visit(self, page: Page, request: Request) -> Response:
        """Show a page to whoever may see it."""
        caller: Caller | None = None
        try:
            if self.service.stopping:
                raise Refusal("unavailable", "the server is stopping; try again later.")
            if page.method != "GET" and from_elsewhere(request.headers, request.url.scheme):
                raise Refusal("not-allowed", ELSEWHERE)
            caller = await self._caller(request)
            if caller is None:
                return self._must_sign_in(page, request)
            if page.role is not None and page.role != caller.role:
                return self._absent(caller)
            return await page.run(PageVisit(self, request, caller, await self._form(request)))
        except Refusal as refusal:
            if refusal.kind == "not-found":
                return self._absent(caller)
            return self._refused(caller, refusal)
        except Exception as error:  # its words may quote a row: the owner is told its kind, and nobody more
            self.service.log(page.path, error)
            charged = False if page.method == "GET" else "unknown"
            return self._refused(caller, Refusal("internal", "the server failed; its owner is told.", charged=charged))

    def _must_sign_in(self, page: Page, request: Request) -> Response:
        if page.method == "GET" and "text/html" in request.headers.get("accept", "text/html"):
            again = "?began" if "began" in request.query_params else ""
            return RedirectResponse(f"/console/sign-in{again}", 303, headers=HEADERS)
        return self._sign_in_page(request, "Your sign-in has ended. Nothing was done; sign in again.", 401)

    async def _form(self, request: Request) -> Form:
        """Return the fields of a form: of the query, or of the body where there is one."""
        if request.method == "POST":
            if from_elsewhere(request.headers, request.url.scheme):
                raise Refusal("not-allowed", ELSEWHERE)
            types = request.headers.getlist("content-type")
            if len(types) != 1 or types[0].partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
                raise Refusal("media-type", "send the form as a browser does.")
            content = await self.gate.read(request, MOST_FORM)
        else:
            content = request.scope["query_string"]
        try:
            pairs = parse_qsl(content.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
        except ValueError:
            raise Refusal("bad-request", "this is not a form in UTF-8.") from None
        fields: dict[str, list[str]] = {}
        for name, value in pairs:
            fields.setdefault(name, []).append(clean(re.sub("[\r\n]+", " ", value)))  # a purpose of several lines
        return Form(fields)

    def _absent(self, caller: Caller | None) -> Response:
        return self._refused(caller, Refusal("not-found", "there is no such page, or it is not yours."))

    def _refused(self, caller: Caller | None, refusal: Refusal) -> Response:
        status, title = api.TITLES[refusal.kind]
        title = "Not found" if refusal.kind == "not-found" else title
        text = (
            _templates()
            .get_template("problem.html")
            .render(
                caller=caller,
                here="",
                title=title,
                detail=sentence(refusal.detail),
                charged=refusal.fields["charged"],
                status=status,
            )
        )
        response = html(text, status)
        response.headers.update(refusal.headers)
        return response


ELSEWHERE = "this came from another site, or from no page at all. Nothing was done; use the page itself."


def html(text: str, status: int = 200) -> Response:
    """Return a page with the policy of all pages."""
    return Response(text, status, media_type="text/html; charset=utf-8", headers=HEADERS)


def as_json(content: object) -> Response:
    """Return what a script of a page reads."""
    return Response(json.dumps(content), media_type="application/json", headers=HEADERS)


def download(content: str | bytes, name: str, media_type: str) -> Response:
    """Return a file that a browser keeps and never shows as a page."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type=media_type, headers=headers)


def sentence(words: str) -> str:
    """Return words with a capital at their beginning.

    >>> sentence("nothing was charged.")
    'Nothing was charged.'
    """
    return words[:1].upper() + words[1:]


# -- templates --------------------------------------------------------------------------------------


@lru_cache
def _static(name: str) -> bytes:
    if name == "drawings.css":  # the policy forbids drawings to bring it along
        return style("classes", "trees", "tables").encode()
    if name == "console.css":
        return style("colours").encode() + _file(name)
    return _file(name)


def _file(name: str) -> bytes:
    return resources.files("privet.service.console").joinpath("static", name).read_bytes()


@lru_cache
def _templates() -> jinja2.Environment:
    """Return the templates: every value is escaped, and a name that is not there is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("privet.service.console"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        amount=amount,
        day=day,
        delta=delta_text,
        seconds=lambda number: "a second" if number == 1 else f"{number:.3g} seconds",
        part=lambda name: quote(str(name), safe=""),
        rows=rows_in_words,
        whole=lambda number: f"{number:,}",
    )
    made.globals.update(version=__version__, share=share, level=level, OWNER=OWNER)
    return made


def amount(value: Fraction | str | int | None) -> str:
    """Return an amount of budget for people.

    >>> amount("1/8"), amount(None)
    ('0.125', '—')
    """
    return "—" if value is None else short_text(Fraction(value))


def delta_text(text: str) -> str:
    """Return a delta for people, which no line ends in the middle of.

    >>> delta_text("1/1000000")
    '1e\N{NON-BREAKING HYPHEN}6'
    """
    return re.sub("e-0?", "e\N{NON-BREAKING HYPHEN}", f"{float(Fraction(text)):g}")


def day(at: str) -> str:
    """Return a time of the ledger, to the minute.

    >>> day("2026-11-18T16:02:11+00:00")
    '2026-11-18 16:02'
    """
    return at[:16].replace("T", " ")


def share(part: Fraction | str, whole: Fraction | str) -> float:
    """Return a part of a whole in percent, between 0 and 100; of nothing all is gone."""
    all_of_it = Fraction(whole)
    return 100.0 if all_of_it <= 0 else round(min(max(float(100 * Fraction(part) / all_of_it), 0.0), 100.0), 2)


def level(part: Fraction | str, whole: Fraction | str) -> str:
    """Return how full a budget is, in a word: "full", "high" from 80% on, "low".

    >>> level("0.5", "1"), level("0.8", "1"), level("1", "1")
    ('low', 'high', 'full')
    """
    part, all_of_it = Fraction(part), Fraction(whole)
    return "full" if part >= all_of_it else "high" if part >= ALERT * all_of_it else "low"
