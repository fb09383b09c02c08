"""Run the notebooks and keep what they show: `python -m evidence.notebooks [NAME ...]`."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"


def run(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with what its cells show when they are run now.

    Raises
    ------
    CellExecutionError
        A cell fails.
    """
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3", record_timing=False).execute()
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": {"name": "python"}}  # no versions
    return book


if __name__ == "__main__":
    for path in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(f"ran {path.name}")
