"""Which path is which function, for whom: the table of routes, and the application made of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from privet.service import api, handlers, owner, owner_ledger, proofs
from privet.service.boundary import Boundary, Gate, Operation, Refusal, json_response, problem
from privet.service.openapi import document
from privet.service.server import Service
from privet.service.tokens import OWNER

_T = "/v1/tables/{table}"
OPERATIONS = (
    Operation("GET", "/v1/tables", "tables", "The caller's tables", None, api.TablesReply, handlers.tables, role=None),
    Operation("GET", _T, "describe", "What is public about a table", None, api.TableReply, handlers.describe),
    Operation("GET", f"{_T}/budget", "budget", "Spent and left, exactly", None, api.BudgetReply, handlers.budget),
    Operation(
        "GET",
        f"{_T}/entries",
        "entries",
        "The caller's charges",
        None,
        api.EntriesReply,
        handlers.entries,
        query=("after",),
    ),
    Operation(
        "GET",
        f"{_T}/entries/{{entry}}/receipt",
        "entry_receipt",
        "The receipt of an answer",
        None,
        api.ReceiptReply,
        proofs.entry_receipt,
        query=("since",),
    ),
    Operation(
        "GET",
        f"{_T}/models/{{model}}/receipt",
        "model_receipt",
        "The receipt of a model",
        None,
        api.ReceiptReply,
        proofs.model_receipt,
        query=("since",),
    ),
    Operation(
        "GET",
        "/v1/checkpoint",
        "checkpoint",
        "How many lines the ledger has, signed",
        None,
        api.CheckpointReply,
        proofs.checkpoint,
        role=None,
        query=("since",),
    ),
    Operation(
        "POST",
        f"{_T}/quotes",
        "quote",
        "What a question would cost: free, reads no row",
        api.QuoteBody,
        api.QuoteReply,
        handlers.quote,
        waits=True,
    ),
    Operation(
        "POST",
        f"{_T}/remaining",
        "remaining",
        "What parts may still be charged",
        api.RowsBody,
        api.RemainingReply,
        handlers.remaining,
        waits=True,
    ),
    Operation(
        "POST",
        f"{_T}/answers",
        "ask",
        "Ask a question of all parts at once",
        api.AnswerBody,
        api.AnswerReply,
        handlers.answer,
        asks=True,
    ),
    Operation(
        "POST",
        f"{_T}/refinements",
        "refine",
        "Refine an answer for the difference",
        api.RefineBody,
        api.RefineReply,
        handlers.refine,
        asks=True,
    ),
    Operation(
        "POST",
        f"{_T}/holds",
        "hold",
        "Reserve budget",
        api.HoldBody,
        api.DoneReply,
        handlers.hold,
        waits=True,
        status=201,
    ),
    Operation(
        "POST",
        f"{_T}/holds/{{hold}}/end",
        "end_hold",
        "End a reservation",
        api.SittingBody,
        api.DoneReply,
        handlers.end_hold,
    ),
    Operation(
        "POST",
        f"{_T}/monitors",
        "monitor",
        "Begin a monitor",
        api.MonitorBody,
        api.MonitorReply,
        handlers.monitor,
        asks=True,
        status=201,
    ),
    Operation(
        "POST",
        f"{_T}/monitors/{{monitor}}/checks",
        "check",
        "Ask a monitor about a model",
        api.CheckBody,
        api.CheckReply,
        handlers.check,
        asks=True,
    ),
    Operation(
        "POST",
        f"{_T}/sittings/close",
        "close_sitting",
        "End a sitting",
        api.SittingBody,
        api.DoneReply,
        handlers.close_sitting,
    ),
    Operation(
        "POST",
        f"{_T}/requests",
        "request_budget",
        "Ask the owner for more budget",
        api.RequestBody,
        api.RequestReply,
        owner.request_budget,
        status=201,
    ),
    Operation(
        "GET",
        f"{_T}/requests",
        "own_requests",
        "The caller's requests for more budget",
        None,
        api.RequestsReply,
        owner.own_requests,
    ),
    Operation(
        "POST", f"{_T}/fits", "fit", "Fit a model on the server", api.FitBody, api.JobReply, handlers.fit, status=202
    ),
    Operation("GET", "/v1/jobs/{job}", "job", "How far a fit is", None, api.JobReply, handlers.job),
    Operation(
        "GET",
        "/v1/jobs/{job}/events",
        "job_events",
        "The same, as server-sent events",
        None,
        api.JobReply,
        handlers.job,
        stream=handlers.job_events,
    ),
    Operation(
        "DELETE",
        "/v1/jobs/{job}",
        "cancel",
        "Cancel a fit; what was charged stands",
        None,
        api.JobReply,
        handlers.cancel,
    ),
    Operation(
        "GET",
        f"{_T}/models",
        "models",
        "The caller's models",
        None,
        api.ModelsReply,
        handlers.models,
        query=("after",),
    ),
    Operation("GET", f"{_T}/models/{{model}}", "model", "A model", None, api.ModelReply, handlers.model),
    Operation(
        "GET",
        "/v1/owner/requests",
        "all_requests",
        "Requests for more budget",
        None,
        api.RequestsReply,
        owner.all_requests,
        role=OWNER,
    ),
    Operation(
        "POST",
        "/v1/owner/requests/{request}",
        "decide",
        "Grant or deny a request",
        api.DecisionBody,
        api.RequestReply,
        owner.decide,
        role=OWNER,
    ),
    Operation(
        "GET",
        "/v1/owner/events",
        "events",
        "What happened on the server",
        None,
        api.EventsReply,
        owner.events,
        role=OWNER,
        query=("after",),
    ),
    Operation("GET", "/v1/permits", "permits", "Data permits", None, api.PermitsReply, owner.permits, role=None),
    Operation("GET", "/v1/owner/grants", "grants", "Who may use what", None, api.GrantsReply, owner.grants, role=OWNER),
    Operation(
        "POST",
        "/v1/owner/grants",
        "grant",
        "Grant a table to an analyst",
        api.GrantBody,
        api.GrantReply,
        owner.grant,
        role=OWNER,
        status=201,
    ),
    Operation(
        "POST",
        "/v1/owner/withdrawals",
        "withdraw",
        "Take a table from an analyst",
        api.WithdrawalBody,
        api.DoneReply,
        owner.withdraw,
        role=OWNER,
    ),
    Operation(
        "POST",
        "/v1/owner/raises",
        "raise_cap",
        "Raise the cap of an analyst or of a table",
        api.RaiseBody,
        api.DoneReply,
        owner.raise_cap,
        role=OWNER,
    ),
    Operation(
        "GET", "/v1/owner/tokens", "tokens", "Tokens that are live", None, api.TokensReply, owner.tokens, role=OWNER
    ),
    Operation(
        "POST",
        "/v1/owner/tokens",
        "create_token",
        "Make a token for an analyst, shown once",
        api.TokenBody,
        api.NewTokenReply,
        owner.create_token,
        role=OWNER,
        status=201,
    ),
    Operation(
        "DELETE",
        "/v1/owner/tokens/{token}",
        "revoke_token",
        "End a token at once",
        None,
        api.DoneReply,
        owner.revoke_token,
        role=OWNER,
    ),
    Operation(
        "GET",
        "/v1/owner/budgets",
        "budgets",
        "What is spent and left of the owner's tables",
        None,
        api.TableBudgetsReply,
        owner_ledger.budgets,
        role=OWNER,
    ),
    Operation(
        "GET",
        "/v1/owner/lines",
        "lines",
        "The log, newest first",
        None,
        api.LinesReply,
        owner_ledger.lines,
        role=OWNER,
        query=("before", "most"),
    ),
    Operation(
        "GET",
        "/v1/owner/tables/{table}/audit",
        "audit",
        "What the ledger says about a table, for an audit",
        None,
        api.AuditReply,
        owner_ledger.audit,
        role=OWNER,
        names=("analyst", "permit"),
    ),
    Operation(
        "GET",
        "/v1/owner/tables/{table}/registry",
        "registry",
        "An entry for the registry of deployments",
        None,
        api.RegistryReply,
        owner_ledger.registry,
        role=OWNER,
    ),
    Operation(
        "POST",
        "/v1/owner/reload",
        "reload",
        "Read the grants again",
        None,
        api.DoneReply,
        owner.reload_grants,
        role=OWNER,
    ),
)


def application(service: Service) -> ASGIApp:
    """Return the server as an ASGI application."""
    gate, content = Gate(service), json.dumps(document(OPERATIONS)).encode()

    async def openapi(request: Request) -> Response:
        return json_response(content, 200)

    async def not_found(request: Request, error: Exception) -> Response:
        return problem(Refusal("not-found", "there is nothing at this path."))

    async def method(request: Request, error: Exception) -> Response:
        allowed = (error.headers or {}) if isinstance(error, HTTPException) else {}
        return problem(Refusal("method", "this path has other methods.", dict(allowed)))

    def endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await gate.serve(operation, request)

        return answer

    paths: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = operation
    routes = [Route("/v1/openapi.json", openapi, methods=["GET"])]
    for path, methods in paths.items():
        routes.append(
            Route(path, _by_method({name: endpoint(own) for name, own in methods.items()}), methods=[*methods])
        )
    from privet.service import console  # which is made of this module's operations

    routes += console.routes(gate, OPERATIONS)
    app = Starlette(routes=routes, exception_handlers={404: not_found, 405: method})
    app.router.redirect_slashes = False
    return Boundary(app, service)


def _by_method(endpoints: Mapping[str, Callable[[Request], Awaitable[Response]]]) -> Any:
    async def answer(request: Request) -> Response:
        own = endpoints.get("GET" if request.method == "HEAD" else request.method)
        assert own is not None
        return await own(request)

    return answer
