"""Loops are compiled wherever privet is installed."""

from __future__ import annotations

import pytest
from numba.core.caching import CacheImpl

from privet.compiled import compiled


def test_a_loop_is_compiled_where_no_folder_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service without a home has none, and its package is of another user: numba then refuses to begin."""

    def double(number: int) -> int:
        return 2 * number

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert compiled(double)(21) == 42
