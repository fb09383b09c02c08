"""docs/reference/papers.md names, for every section of every paper, files and studies that are there."""

from __future__ import annotations

import re
from pathlib import Path

from privet.studies.catalog import STUDIES

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "reference" / "papers.md"
PAGE = PATH.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| section", "|---"))
]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_section_has_a_module_a_test_and_a_study_or_page() -> None:
    assert len(ROWS) >= 50
    for section, module, test, shown in ROWS:
        assert quoted(module), section
        assert quoted(test), section
        assert quoted(shown) or "](" in shown, section


def test_the_files_and_studies_exist() -> None:
    for _, module, test, shown in ROWS:
        assert all((ROOT / "src" / "privet" / name).is_file() for name in quoted(module)), module
        assert all((ROOT / "tests" / name).is_file() for name in quoted(test)), test
        assert set(quoted(shown)) <= {*STUDIES, "choice"}, shown
        assert all((PATH.parent / name).is_file() for name in re.findall(r"\]\(([\w/.-]+\.md)", shown)), shown


def test_every_study_of_a_paper_is_named() -> None:
    named = {name for *_, shown in ROWS for name in quoted(shown)}
    assert not set(STUDIES) - named
