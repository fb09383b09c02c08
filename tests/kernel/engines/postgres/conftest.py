"""PostgreSQL servers for the tests of the engine: one that all share, and one to kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import Server, shared_server


@pytest.fixture(scope="module")
def server() -> Server:
    return shared_server()


@pytest.fixture(scope="session")
def mortal() -> Iterator[Server]:
    """A server to be killed."""
    own = Server()
    yield own
    own._server.cleanup()
