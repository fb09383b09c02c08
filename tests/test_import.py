"""Importing privet is quick: what takes long to import waits until it is needed."""

from __future__ import annotations

import subprocess
import sys

import grimp
import pytest

SLOW = {"IPython", "duckdb", "jinja2", "matplotlib", "numba", "pandas", "scipy", "sklearn", "sqlglot", "starlette"}


@pytest.mark.parametrize("module", ["privet", "privet.cli"])
def test_an_import_loads_no_engine_and_no_learner(module: str) -> None:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(result.stdout.split())


def test_no_two_modules_of_kernel_models_or_learners_import_each_other() -> None:
    """Neither when they are loaded, nor later inside a function, nor for their types."""
    graph = grimp.build_graph("privet", cache_dir=None)
    for package in ("privet.kernel", "privet.models", "privet.learners"):
        modules = {package, *graph.find_descendants(package)}
        above = {name: graph.find_upstream_modules(name) & modules for name in modules}
        assert not [(one, other) for one in modules for other in above[one] if one in above[other]]
