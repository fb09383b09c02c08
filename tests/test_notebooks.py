"""Notebooks run from the first cell to the last, and are kept with what they show."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # evidence/ lies beside tests/ and is not installed
evidence: Any = importlib.import_module("evidence.notebooks")
NOTEBOOKS = sorted(evidence.FOLDER.glob("*.ipynb"))
QUICK = "mine-and-read.ipynb"


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.name == QUICK else pytest.mark.long) for path in NOTEBOOKS],
)
def test_a_notebook_runs(path: Path) -> None:
    evidence.run(path)  # raises where a cell fails


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_what_it_shows(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert sum(bool(cell.outputs) for cell in code) >= len(code) // 2
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    assert str(Path.home()) not in path.read_text(encoding="utf-8")
