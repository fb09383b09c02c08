"""Nobody escapes by hand: markup is made of templates and of `report/svg.py`, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "src" / "privet").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
MARKUP = re.compile(
    r"(?<![?]P)</?(svg|g|path|rect|text|circle|line|div|span|p|section|table|tr|td|th|h[1-3]|li|ul|style|a|b)[ >]"
)
# What reads a page that somebody else wrote, or takes a piece out of one that was made of a template.
READS = {"privet/service/console/analyst_pages.py": "<style>.*?</style>"}


def pieces(path: Path) -> list[str]:
    """The texts in a module but for docstrings, f-strings piece by piece."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_writes_markup(path: Path) -> None:
    name = str(path.relative_to(ROOT)).removeprefix("src/")
    if name == "privet/report/svg.py":
        return
    found = [piece for piece in pieces(path) if MARKUP.search(piece) and piece != READS.get(name)]
    assert found == []
    assert not re.search(
        r"^import html$|^from html import|html\.escape", path.read_text(encoding="utf-8"), re.MULTILINE
    )


def test_a_piece_of_markup_would_be_found() -> None:
    assert MARKUP.search('<td class="number">') and MARKUP.search("</section>") and not MARKUP.search("1 < p and q > 2")


def test_templates_switch_no_escaping_off() -> None:
    """`|safe` and `Markup(...)` in a template would let a label through."""
    templates = [*(ROOT / "src").rglob("templates/*.html"), *(ROOT / "bench").rglob("*.html")]
    assert len(templates) > 30
    for template in templates:
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", template.read_text(encoding="utf-8")), template
