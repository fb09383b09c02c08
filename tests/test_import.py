"""Importing privet is quick: what takes long to import waits until it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"IPython", "duckdb", "jinja2", "matplotlib", "numba", "pandas", "scipy", "sklearn", "sqlglot", "starlette"}


@pytest.mark.parametrize("module", ["privet", "privet.cli"])
def test_an_import_loads_no_engine_and_no_learner(module: str) -> None:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(result.stdout.split())
