"""CONTRIBUTING.md says what one piece of work crosses, as `python -m bench walks` measures it."""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
sys.path.insert(0, str(ROOT))  # bench/ lies beside tests/ and is not installed
walks: Any = importlib.import_module("bench.walks")

NAMES = {"count": "count", "tree level": "tree level", "boosted fit": "boosted fit", "audit": "audit with its page"}
MORE_OR_LESS = 2  # files: a small change needs no new table


def test_work_crosses_the_files_that_are_listed() -> None:
    """With PRIVET_UPDATE_DOCS=1 the table is written anew."""
    found = walks.measure(lambda words: None)
    text = PAGE.read_text(encoding="utf-8")
    for name, row in NAMES.items():
        files, lines, functions, calls = found[name].numbers
        written = re.search(rf"^\| {row} \| (\d+) \| .*\|$", text, re.MULTILINE)
        assert written, row
        if os.environ.get("PRIVET_UPDATE_DOCS"):
            text = text.replace(written[0], f"| {row} | {files} | {lines:,} | {functions} | {calls:,} |")
            PAGE.write_text(text, encoding="utf-8")
        else:
            assert abs(files - int(written[1])) <= MORE_OR_LESS, (row, found[name].files)
