"""`python -m evidence.comparison`: README's table of other tools, from evidence/comparison.toml and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FACTS = Path(__file__).parent / "comparison.toml"
PAGE = ROOT / "README.md"
MARKS = re.compile(r"(<!-- comparison -->\n).*?(<!-- /comparison -->)", re.DOTALL)


def table() -> str:
    """Return the table in Markdown: a row for each tool, and the day when its facts were looked up."""
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    columns = facts["columns"]
    rows = [[f"{tool['name']} {tool['version']}", *(tool[column] for column in columns)] for tool in facts["tools"]]
    lines = [f"| {' | '.join(cells)} |" for cells in (["", *columns.values()], ["---"] * (len(columns) + 1), *rows)]
    day = f"{facts['looked_at']:%d %B %Y}"
    return "\n".join([*lines, "", f"Looked up on {day} in these versions; sources: `evidence/comparison.toml`.", ""])


def page() -> str:
    """Return README with the table of today between its marks."""
    return MARKS.sub(lambda marks: marks[1] + table() + marks[2], PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
