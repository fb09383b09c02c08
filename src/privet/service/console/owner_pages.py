"""What an owner sees: tables and their budgets, analysts, requests, the ledger, keys and exports."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import Response

from privet.errors import PrivetError, QuestionError
from privet.kernel import Unit, as_epsilon, unit_with
from privet.owner_reports import bundle_page
from privet.receipts import LIMITS
from privet.service import api
from privet.service.boundary import Refusal
from privet.service.console.asking import USUAL_EPSILON, in_counts
from privet.service.console.timeline import GROUPS, MOST_SHOWN, Filters, as_csv, as_lines, entry_of, folded
from privet.service.console.visits import Page, PageVisit, download, level, sentence
from privet.service.tokens import OWNER
from privet.text import short_text

_READ = 2000  # lines of the log that one request reads
_SCANNED = 20_000  # lines that a page looks through for what a filter finds
_EXPORTED = 500_000  # lines of an export


@dataclass(frozen=True)
class OwnedTable:
    """A table, its budget, and who may use it."""

    budget: api.TableBudgetReply
    grants: list[api.GrantReply] = field(default_factory=list)
    permits: list[api.PermitReply] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.budget.table

    @property
    def spent(self) -> Fraction:
        return Fraction(self.budget.spent)

    @property
    def cap(self) -> Fraction:
        return Fraction(self.budget.cap)

    @property
    def left(self) -> Fraction:
        return max(self.cap - self.spent, Fraction(0))

    @property
    def unit(self) -> Unit:
        return unit_with(None if self.budget.delta is None else Fraction(self.budget.delta))

    @property
    def worth(self) -> str:
        """What is left, in words: how many more counts, and how far off each is."""
        return in_counts(self.left, self.unit, self.budget.rows_per_person)

    @property
    def one_count(self) -> str:
        """What the epsilon that pages write about pays, in words."""
        return in_counts(self.unit.amount(USUAL_EPSILON), self.unit, self.budget.rows_per_person, "")

    def told(self, amount: str) -> str:
        """Return an amount as owners read it: what it is worth, and then the epsilon of one answer that it pays."""
        counts = in_counts(Fraction(amount), self.unit, self.budget.rows_per_person, "")
        return f"{counts} (epsilon {short_text(self.unit.buys(Fraction(amount)))})"

    @property
    def live(self) -> list[api.GrantReply]:
        """Grants that hold now."""
        return [grant for grant in self.grants if grant.source is not None]

    @property
    def people(self) -> list[str]:
        """All who may use it or might once, in order."""
        under = {name for permit in self.permits for name in permit.analysts or ()}
        return sorted({grant.analyst for grant in self.grants} | under)

    @property
    def users(self) -> set[str]:
        """Who may use it now, by a grant of their own or under a permit."""
        under = {name for permit in self.permits if not permit.ended for name in permit.analysts or ()}
        return {grant.analyst for grant in self.live} | under


async def _tables(visit: PageVisit) -> list[OwnedTable]:
    budgets, grants = await visit.call("budgets"), await visit.call("grants")
    permits = (await visit.call("permits")).permits
    return [
        OwnedTable(
            budget,
            [grant for grant in grants.grants if grant.table == budget.table],
            [permit for permit in permits if any(own.table == budget.table for own in permit.tables)],
        )
        for budget in budgets.tables
    ]


async def tables(visit: PageVisit) -> Response:
    owned, requests = await _tables(visit), await visit.call("all_requests")
    waiting = [request for request in requests.requests if request.state == "open"]
    near = [
        grant
        for table in owned
        for grant in table.live
        if grant.cap is not None and level(grant.spent, grant.cap) != "low"
    ]
    permits = (await visit.call("permits")).permits
    return visit.show("owner_tables.html", tables=owned, waiting=waiting, near=near, permits=permits)


async def table(visit: PageVisit) -> Response:
    return await _table(visit)


async def _table(visit: PageVisit, problem: str = "", status: int = 200) -> Response:
    found = next((own for own in await _tables(visit) if own.name == visit.table), None)
    if found is None:
        raise Refusal("not-found", "there is no such table, or it is not yours.")
    entries = []
    async for line in _Search(visit, Filters(table=visit.table), 0, _SCANNED).lines():
        entries.append(entry_of(line))
        if len(entries) == MOST_SHOWN:
            break
    return visit.show(
        "owner_table.html",
        status,
        own=found,
        entries=folded(entries)[:10],
        problem=problem,
        done=_done(visit),
        key=uuid.uuid4().hex,
        form=visit.form,
    )


_DONE = {
    "grant": "The table is granted.",
    "raise": "The cap is raised.",
    "withdraw": "The table was taken back: what they had open has ended.",
    "revoke": "The token was revoked.",
    "granted": "The request is granted.",
    "denied": "The request is refused.",
    "open": "You have agreed. Another owner must agree, too.",
}


def _done(visit: PageVisit) -> str:
    """Return what was done just before the page was opened, in words."""
    return _DONE.get(visit.form.text("done"), "") if visit.request.method == "GET" else ""


async def change(visit: PageVisit) -> Response:
    """Grant a table, raise a cap, or take a table back."""
    form, what = visit.form, visit.form.text("what")
    try:
        epsilon = _epsilon(visit)
        body: dict[str, Any] = {"table": visit.table}
        if form.text("analyst") or what != "raise":
            body["analyst"] = form.text("analyst")
        if what == "grant":
            await visit.call("grant", {**body, "epsilon": epsilon, "expires": form.text("expires") or None})
        elif what == "raise":
            if epsilon is None:
                raise QuestionError("say by how much the cap is raised.")
            await visit.call("raise_cap", {**body, "epsilon": epsilon, "key": f"console {form.text('key')}"})
        elif what == "withdraw":
            await visit.call("withdraw", body)
        else:
            raise QuestionError("choose what to do from the page.")
    except PrivetError as error:
        return await _table(visit, sentence(str(error)), 422)
    except Refusal as refusal:
        if refusal.kind not in ("bad-question", "refused", "key-reused"):
            raise
        return await _table(visit, sentence(refusal.detail), 422)
    return visit.go(f"/console/owned/{quote(visit.table, safe='')}?done={what}")


def _epsilon(visit: PageVisit) -> str | None:
    if not visit.form.text("epsilon"):
        return None
    return str(as_epsilon(visit.form.number("epsilon", "epsilon")))


# -- analysts and their tokens ----------------------------------------------------------------------


async def analysts(visit: PageVisit) -> Response:
    return await _analysts(visit)


async def _analysts(
    visit: PageVisit, problem: str = "", status: int = 200, made: api.NewTokenReply | None = None
) -> Response:
    grants = (await visit.call("grants")).grants
    tokens = (await visit.call("tokens")).tokens
    budgets = (await visit.call("budgets")).tables
    people: dict[str, dict[str, list[Any]]] = {}

    def add(name: str, what: str, one: object) -> None:
        people.setdefault(name, {"grants": [], "permits": [], "tokens": []})[what].append(one)

    for grant in grants:
        add(grant.analyst, "grants", grant)
    for permit in (await visit.call("permits")).permits:
        for name in permit.analysts or ():
            add(name, "permits", permit)
    for token in tokens:
        if token.role != OWNER:
            add(token.name, "tokens", token)
    return visit.show(
        "owner_analysts.html",
        status,
        people=dict(sorted(people.items())),
        caps={budget.table: budget.cap for budget in budgets},
        spent={budget.table: budget.spent_by for budget in budgets},
        owners=[token for token in tokens if token.role == OWNER],
        problem=problem,
        made=made,
        done=_done(visit),
        form=visit.form,
    )


async def make_token(visit: PageVisit) -> Response:
    """Make a token, and show its secret this once: the page is the reply itself, which nothing keeps."""
    try:
        days = int(visit.form.number("days", "the number of days"))
        made = await visit.call("create_token", {"analyst": visit.form.text("analyst"), "days": days})
    except PrivetError as error:
        return await _analysts(visit, sentence(str(error)), 422)
    except Refusal as refusal:
        if refusal.kind not in ("bad-question", "refused"):
            raise
        return await _analysts(visit, sentence(refusal.detail), 422)
    return await _analysts(visit, made=made)


async def revoke_token(visit: PageVisit) -> Response:
    await visit.call("revoke_token")
    return visit.go("/console/analysts?done=revoke")


# -- requests ---------------------------------------------------------------------------------------


async def requests(visit: PageVisit) -> Response:
    return await _requests(visit)


async def _requests(visit: PageVisit, problem: str = "", status: int = 200) -> Response:
    reply, owned = await visit.call("all_requests"), {own.name: own for own in await _tables(visit)}
    waiting = [request for request in reply.requests if request.state == "open"]
    decided = [request for request in reply.requests if request.state != "open"][::-1][:100]
    return visit.show(
        "owner_requests.html",
        status,
        waiting=waiting,
        decided=decided,
        tables=owned,
        problem=problem,
        done=_done(visit),
    )


async def decide(visit: PageVisit) -> Response:
    try:
        decided = await visit.call("decide", {"granted": visit.form.text("granted") == "yes"})
    except Refusal as refusal:
        if refusal.kind not in ("refused", "bad-question"):
            raise
        return await _requests(visit, sentence(refusal.detail), 422)
    return visit.go(f"/console/requests?done={decided.state}")


# -- the ledger -------------------------------------------------------------------------------------


@dataclass
class _Search:
    """Looks through the log, newest first, for lines that filters find.

    Parameters
    ----------
    visit : PageVisit
    filters : Filters
    before : int
        Only lines before this one; 0 for all.
    most : int
        Lines to look through.
    """

    visit: PageVisit
    filters: Filters
    before: int
    most: int

    async def lines(self) -> AsyncIterator[api.LineReply]:
        """Return the lines that are found; `before` is then where the search has stopped, or 0 at the beginning."""
        for _ in range(0, self.most, _READ):
            query = {"most": str(_READ), **({"before": str(self.before)} if self.before else {})}
            page = await self.visit.call("lines", query=query)
            for line in page.lines:
                if self.filters.finds(line):
                    yield line
            self.before = page.next or 0
            if not self.before:
                return


def _before(form_text: str) -> int:
    return int(form_text) if form_text.isascii() and form_text.isdigit() and len(form_text) < 16 else 0


async def ledger(visit: PageVisit) -> Response:
    filters, before = Filters.of(visit.form), _before(visit.form.text("before"))
    names = {grant.analyst for grant in (await visit.call("grants")).grants}
    names.update(name for permit in (await visit.call("permits")).permits for name in permit.analysts or ())
    search, entries = _Search(visit, filters, before, _SCANNED), []
    async for line in search.lines():
        entries.append(entry_of(line))
        if len(entries) == MOST_SHOWN:
            break
    # where older lines begin: after the last that is shown, or where the search has stopped; 0 where there are none
    older = entries[-1].number if len(entries) == MOST_SHOWN else search.before
    words = {name: value for name, value in vars(filters).items() if value}
    return visit.show(
        "owner_ledger.html",
        entries=folded(entries),
        looked=len(entries) < MOST_SHOWN and search.before,
        scanned=_SCANNED,
        groups=GROUPS,
        filters=filters,
        tables=[budget.table for budget in (await visit.call("budgets")).tables],
        analysts=sorted(names),
        older=f"?{urlencode({**words, 'before': older})}" if older else "",
        export=urlencode(words),
        any_filter=bool(words) or bool(before),
    )


async def export(visit: PageVisit) -> Response:
    """Return all lines that filters find, as a file."""
    search = _Search(visit, Filters.of(visit.form), 0, _EXPORTED)
    lines = [line async for line in search.lines()]
    if search.before:
        raise Refusal("too-large", f"a file has {_EXPORTED:,} lines of the ledger at most; choose days from and to.")
    if visit.path["form"] == "csv":
        return download("\ufeff" + as_csv(lines), "ledger.csv", "text/csv; charset=utf-8")
    if visit.path["form"] == "jsonl":
        return download(as_lines(lines), "ledger.jsonl", "application/jsonl")
    raise Refusal("not-found", "there is no such page, or it is not yours.")


# -- keys and checkpoints ---------------------------------------------------------------------------


async def keys(visit: PageVisit) -> Response:
    """Show what the ledger says of itself, signed, and by whom."""
    signed = await visit.call("checkpoint") if visit.signs else None
    size = int(signed.checkpoint.splitlines()[1]) if signed is not None else 0
    return visit.show("owner_keys.html", signed=signed, size=size, limits=sentence(LIMITS), tables=await _tables(visit))


async def checkpoint(visit: PageVisit) -> Response:
    return download((await visit.call("checkpoint")).checkpoint, "checkpoint.txt", "text/plain; charset=utf-8")


async def audit(visit: PageVisit) -> Response:
    """Return what the ledger says about a table as a file: for programs, or a page to print."""
    only = {name: text for name in ("analyst", "permit") if (text := visit.form.text(name))}
    bundle = (await visit.call("audit", query=only)).bundle
    if visit.path["form"] == "html":
        return download(bundle_page(bundle), f"{visit.table}-audit.html", "text/html; charset=utf-8")
    if visit.path["form"] == "json":
        text = json.dumps(bundle, indent=1, ensure_ascii=False)
        return download(text, f"{visit.table}-audit.json", "application/json")
    raise Refusal("not-found", "there is no such page, or it is not yours.")


async def registry(visit: PageVisit) -> Response:
    return download((await visit.call("registry")).text, f"{visit.table}-registry.yaml", "application/yaml")


PAGES: tuple[Page, ...] = (
    Page("GET", "/console/owned/{table}/audit.{form}", audit, OWNER),
    Page("GET", "/console/owned/{table}/registry.yaml", registry, OWNER),
    Page("GET", "/console/keys", keys, OWNER),
    Page("GET", "/console/checkpoint.txt", checkpoint, OWNER),
    Page("GET", "/console/owned/{table}", table, OWNER),
    Page("POST", "/console/owned/{table}", change, OWNER),
    Page("GET", "/console/analysts", analysts, OWNER),
    Page("POST", "/console/tokens", make_token, OWNER),
    Page("POST", "/console/tokens/{token}", revoke_token, OWNER),
    Page("GET", "/console/requests", requests, OWNER),
    Page("POST", "/console/requests/{request}", decide, OWNER),
    Page("GET", "/console/ledger", ledger, OWNER),
    Page("GET", "/console/ledger.{form}", export, OWNER),
)
