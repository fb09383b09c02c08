"""The console: pages of a server for people with a browser, made of replies of its API.

An owner grants, watches and approves; an analyst sees what an epsilon buys before paying, asks, fits, and looks at
models.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response
from starlette.routing import Route

from privet.service.boundary import Gate, Operation
from privet.service.console import analyst_pages, owner_pages
from privet.service.console.visits import Console, Page, PageVisit
from privet.service.tokens import OWNER


async def _home(visit: PageVisit) -> Response:
    return await (owner_pages.tables if visit.caller.role == OWNER else analyst_pages.tables)(visit)


PAGES = (Page("GET", "/console/", _home, None), *analyst_pages.PAGES, *owner_pages.PAGES)


def routes(gate: Gate, operations: Sequence[Operation]) -> list[Route]:
    """Return the routes of the console.

    Parameters
    ----------
    gate : Gate
        Of the server.
    operations : sequence of Operation
        Those of its API, of which pages are made.
    """
    return Console(gate, operations, PAGES).routes()
