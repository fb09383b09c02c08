"""PostgreSQL servers for the tests of the ledger: one that all share, and one to kill."""

from __future__ import annotations

import pytest
from postgres_server import Server, shared_server


@pytest.fixture
def server() -> Server:
    return shared_server()


@pytest.fixture
def address(server: Server) -> str:
    return server.ledger()


@pytest.fixture(scope="session")
def mortal() -> Server:
    return Server()


@pytest.fixture
def own(mortal: Server) -> Server:
    """A server to kill and to reconfigure."""
    mortal.restart()
    return mortal
