"""What the auditor imports of the kernel: columns, domains and limits, and nothing that opens or asks a table."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import privet

FILES = sorted((Path(privet.__file__).parent / "risk").rglob("*.py"))
ALLOWED = {
    *("Column", "Date", "Nominal", "Numeric", "Domain"),
    *("canonical_text", "decimal_text", "number_of", "short_text", "text_of"),
    *("DEEPEST_TREE", "LONGEST_MODEL", "LONGEST_TEXT", "MOST_ROWS", "SHOWN"),
    *("clean", "quoted", "read_text", "shown"),
}


def imported(source: str) -> set[str]:
    """The names that a file imports from the kernel; a name of the package itself counts as what it is."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] == ["privet", "kernel"]:
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "privet":
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            names |= {name.name for name in node.names if name.name.split(".")[0] == "privet"}
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_auditor_takes_columns_domains_and_limits_alone(file: Path) -> None:
    assert imported(file.read_text(encoding="utf-8")) <= ALLOWED


def test_other_names_would_be_noticed() -> None:
    source = "import privet\nfrom privet import open\ndef f():\n    from privet.kernel import Domain, open_table\n"
    assert imported(source) - ALLOWED == {"privet", "open", "open_table"}
