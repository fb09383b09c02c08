"""The OpenAPI document is true: requests drawn from it get the replies that it lists, and never a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import sizes
from hypothesis import HealthCheck, given, settings
from kernel.people import DOMAIN, FRAME

from privet.question_json import QUESTIONS, READERS
from privet.service.openapi import FORMS, document
from privet.service.routes import OPERATIONS
from privet.service.seeded_server import Served, serve_seeded
from privet.service.tokens import ANALYST

schemathesis = pytest.importorskip("schemathesis")
checks = schemathesis.checks
ALWAYS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serve_seeded(FRAME, DOMAIN, 1000, seed=3) as found:
        yield found


def test_every_route_form_and_question_is_in_the_document(served: Served) -> None:
    content = httpx2.get(f"{served.url}/v1/openapi.json").json()
    assert content == document(OPERATIONS) and content["openapi"] == "3.1.0"
    listed = {(method.upper(), path) for path, methods in content["paths"].items() for method in methods}
    assert listed == {(operation.method, operation.path) for operation in OPERATIONS}
    assert set(FORMS) == {form.what for form in READERS.values()}
    assert {f"Question.{kind}" for kind in QUESTIONS} <= set(content["components"]["schemas"])


@sizes.sized
@pytest.mark.parametrize("positive", [True, False], ids=["valid", "invalid"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_requests_drawn_from_the_document_get_what_it_lists(served: Served, operation: Any, positive: bool) -> None:
    """No failure, no reply that is not listed or not of its schema, and nothing charged for what is refused."""
    if not positive and operation.body is None:
        return  # without a body there is little to be wrong: tests/service/test_boundary.py
    schema = schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")
    name = f"{operation.name} {positive}"
    headers = {"Authorization": f"Bearer {served.token(name, operation.role or ANALYST)}"}
    mode = schemathesis.GenerationMode.POSITIVE if positive else schemathesis.GenerationMode.NEGATIVE
    cases = schema[operation.path][operation.method].as_strategy(generation_mode=mode)
    ledger = served.service.ledger

    @settings(
        max_examples=sizes.size("requests of a route"),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def check(case: Any) -> None:
        wrong = case.meta.components.get("body") if case.meta else None
        if "{table}" in operation.path:
            case.path_parameters["table"] = "people"
        before = ledger.spent("people")
        reply = case.call(headers=headers)
        rejects = [checks.negative_data_rejection] if wrong is not None and wrong.mode == mode else []
        case.validate_response(reply, checks=[*ALWAYS, *([] if positive else rejects)])
        if reply.status_code >= 400:
            assert ledger.spent("people") == before and reply.json()["charged"] is False

    check()
