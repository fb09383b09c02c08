"""The Spark session of the tests, held to be left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kernel.engines.spark.frames import cached
from spark_session import shared


@pytest.fixture
def spark() -> Iterator[Any]:
    """The session; nothing of privet's may be left in it."""
    session = shared()
    settings, views = session.conf.getAll, session.catalog.listTables()
    yield session
    assert cached(session) == 0
    assert session.catalog.listTables() == views and session.conf.getAll == settings
    assert not session.catalog.listTables("global_temp")
