"""`python -m evidence.kernel_lines`: how much a privacy reviewer reads, file by file.

CONTRIBUTING.md lists the modules of the kernel in reading order, with what each must guarantee. This prints the
list with the lines of each file, all of them and those of code: without docstrings, comments and blank lines.
`--write` brings the numbers in CONTRIBUTING.md up to date; `--at REVISION` counts the kernel of a commit as a whole.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "src" / "privet" / "kernel"
PAGE = ROOT / "CONTRIBUTING.md"

ROW = re.compile(r"^\| `([\w/]+\.py)` \| *([\d,]*) *\| *([\d,]*) *\| (.*) \|$", re.MULTILINE)
TOTAL = re.compile(r"^\| all of these \| *([\d,]*) *\| *([\d,]*) *\| *\|$", re.MULTILINE)
ENGINES = re.compile("/engines/|addresses.py$")
SMALLEST = 10  # lines of a module that is listed: an `__init__.py` may only say what its folder is for


class Lines(NamedTuple):
    """The lines of a file, and those of code among them."""

    total: int
    code: int


def lines_of(source: str) -> Lines:
    """Count the lines of a module.

    >>> lines_of('"Says what it does."' + chr(10) + chr(10) + "x = 1  # one" + chr(10))
    Lines(total=3, code=1)
    """
    used: set[int] = set()
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in empty:
            used.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                docstring = node.body[0]
                used -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return Lines(len(source.splitlines()), len(used))


def modules() -> dict[str, Lines]:
    """Return the lines of every module of the kernel that has more than a few, by its path."""
    found = {str(path.relative_to(KERNEL)): lines_of(path.read_text(encoding="utf-8")) for path in KERNEL.rglob("*.py")}
    return {path: lines for path, lines in sorted(found.items()) if lines.total >= SMALLEST}


def at(revision: str) -> dict[str, Lines]:
    """Return the lines of the kernel of a commit: of its engines, of where its ledger is stored, and of all else.

    The reference engine, which only tests run, is left out.
    """
    sums = {"core": Lines(0, 0), "storage": Lines(0, 0), "engines": Lines(0, 0)}
    for path in _git("ls-tree", "-r", "--name-only", revision, "src/privet/kernel").splitlines():
        if path.endswith(".py") and not path.endswith("/reference.py"):
            stored = "/ledger/" in path and path.endswith(("store.py", "sqlite.py", "postgres.py"))
            part = "engines" if ENGINES.search(path) else "storage" if stored else "core"
            lines = lines_of(_git("show", f"{revision}:{path}"))
            sums[part] = Lines(*map(sum, zip(sums[part], lines, strict=True)))
    return sums


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def listed(text: str) -> Iterator[tuple[str, Lines, str]]:
    """The rows of CONTRIBUTING.md: a module, its lines as they are written there, and what it must guarantee."""
    for path, total, code, guarantee in ROW.findall(text):
        yield path, Lines(_number(total), _number(code)), guarantee


def updated(text: str) -> str:
    """Return CONTRIBUTING.md with the numbers of today; a table ends with the sum of its rows."""
    now, total, code = modules(), 0, 0
    written = []
    for line in text.splitlines():
        if (row := ROW.match(line)) and row[1] in now:
            lines = now[row[1]]
            total, code = total + lines.total, code + lines.code
            line = f"| `{row[1]}` | {lines.total} | {lines.code} | {row[4]} |"
        elif TOTAL.match(line):
            line = f"| all of these | {total:,} | {code:,} | |"
            total = code = 0
        written.append(line)
    return "\n".join(written) + "\n"


def _number(text: str) -> int:
    return int(text.replace(",", "") or 0)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--at"]:
        sums = at(arguments[1])
        for part, lines in sums.items():
            print(f"{part}: {lines.total:,} lines, {lines.code:,} of code")
        print(f"together: {sum(lines.code for lines in sums.values()):,} of code")
        return 0
    text = updated(PAGE.read_text(encoding="utf-8"))
    if arguments == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    for line in text.splitlines():
        if ROW.match(line) or TOTAL.match(line):
            print(line)
    missing = set(modules()) - {path for path, _, _ in listed(text)}
    for path in sorted(missing):
        print(f"CONTRIBUTING.md does not list {path}: add a row that says what it must guarantee.", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
