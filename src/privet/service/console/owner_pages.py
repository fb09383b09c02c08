"""What an owner sees: tables and their budgets, analysts, requests, the ledger, keys and exports."""

from __future__ import annotations

from starlette.responses import Response

from privet.service.boundary import Refusal
from privet.service.console.visits import Page, PageVisit, sentence
from privet.service.tokens import OWNER


async def tables(visit: PageVisit) -> Response:
    return await _requests(visit)


async def _requests(visit: PageVisit, problem: str = "", status: int = 200) -> Response:
    reply = await visit.call("all_requests")
    return visit.show("owner_home.html", status, requests=reply.requests, problem=problem)


async def decide(visit: PageVisit) -> Response:
    try:
        await visit.call("decide", {"granted": visit.form.text("granted") == "yes"})
    except Refusal as refusal:
        if refusal.kind != "refused":
            raise
        return await _requests(visit, sentence(refusal.detail), 422)
    return visit.go("/console/")


PAGES: tuple[Page, ...] = (Page("POST", "/console/requests/{request}", decide, OWNER),)
