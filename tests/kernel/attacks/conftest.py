"""The table that is attacked."""

from __future__ import annotations

import pytest
from kernel.attacks.attacked import DOMAIN, people

import privet


@pytest.fixture
def table() -> privet.ProtectedTable:
    return privet.open(people(), DOMAIN, budget=100)
