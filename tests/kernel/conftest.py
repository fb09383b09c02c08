"""Places for ledgers that many tests of the kernel share."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import shared_server


@pytest.fixture(params=["sqlite", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger is to be, in every store."""
    return tmp_path / "people.ledger" if request.param == "sqlite" else shared_server().ledger()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"
