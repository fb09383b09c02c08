"""The documentation says what the software does: examples run, names and commands are covered.

`PRIVET_UPDATE_DOCS=1 pytest tests/test_docs.py` writes what the examples and `--help` print into the pages.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import privet
from privet.cli import app
from privet.table import Parts, Questions, asks

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
readability: Any = importlib.import_module("evidence.readability")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = re.compile(r"-?\d+(\.\d*)?(e[+-]?\d+)?")
UPDATE = bool(os.environ.get("PRIVET_UPDATE_DOCS"))


def normal(output: str) -> str:
    """Noise changes numbers and with them the spacing; everything else must match."""
    return "".join(NUMBER.sub("#", output).split())


def run(text: str, name: str) -> Iterator[tuple[doctest.Example, str]]:
    """Each example of a page with what it prints; comments and fences hide nothing from it."""
    plain = re.sub(r"^(<!--|-->|```\w*)$", "", text, flags=re.MULTILINE)
    scope: dict[str, object] = {"privet": privet}
    for example in doctest.DocTestParser().get_examples(plain):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(example.source, name, "single"), scope)  # prints values as a prompt does
            except privet.errors.PrivetError as error:
                kind = type(error)
                print(f"Traceback (most recent call last):\n{kind.__module__}.{kind.__name__}: {error}")
        yield example, printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_print_what_it_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if UPDATE:
        lines = text.split("\n")
        for example, printed in reversed(list(run(text, page.name))):
            start = example.lineno + example.source.count("\n")
            lines[start : start + example.want.count("\n")] = printed.splitlines()
        page.write_text("\n".join(lines), encoding="utf-8")
        return
    for example, printed in run(text, page.name):
        assert normal(printed) == normal(example.want), f"{page.name}: {example.source}"


def commands(group: typer.core.TyperGroup, prefix: str = "privet") -> dict[str, typer.core.TyperCommand]:
    found = {}
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            found.update(commands(command, f"{prefix} {name}"))
        else:
            found[f"{prefix} {name}"] = command
    return found


def reference() -> str:
    """docs/reference/cli.md, generated from the help texts."""
    pages = ["# Command line", "", "Generated from `--help`; a test holds it to that.", ""]
    runner = CliRunner(env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})
    for name in commands(typer.main.get_command(app)):
        shown = runner.invoke(app, [*name.split()[1:], "--help"], prog_name="privet").output
        pages += [f"## {name}", "", "```text", *(line.rstrip() for line in shown.strip().splitlines()), "```", ""]
    return "\n".join(pages)


def test_the_command_line_reference_is_what_help_prints() -> None:
    path = ROOT / "docs" / "reference" / "cli.md"
    if UPDATE:
        path.write_text(reference(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == reference()


def test_every_command_shows_an_example() -> None:
    for name, command in commands(typer.main.get_command(app)).items():
        assert "Example" in (command.help or ""), f"{name} --help shows no example"


def test_every_public_name_is_documented() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [name for name in privet.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing, f"no page mentions {missing}"


def test_every_question_that_is_asked_of_tables_has_a_row_on_its_page() -> None:
    page = (ROOT / "docs" / "how-to" / "questions.md").read_text(encoding="utf-8")
    methods = [name for kind in (Questions, Parts) for name, method in vars(kind).items() if isinstance(method, asks)]
    missing = [name for name in methods if f"`{name}(" not in page and f".{name}(" not in page]
    assert len(methods) > 10 and not missing, f"docs/how-to/questions.md does not show {missing}"


LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
PROSE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)  # what is no prose: code
CODE = [path for folder in ("src", "tests", "bench", "evidence") for path in (ROOT / folder).rglob("*.py")]


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name: headings, as GitHub and the site spell them, and ids."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(PROSE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), f"{page.name} links to #{anchor}, which {found.name} does not have"


def test_pages_that_code_names_are_there() -> None:
    for path in CODE:
        for name in re.findall(r"docs/[\w/.-]+\.(?:md|svg|png|json)\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}, which is not there"


def test_every_page_is_of_one_kind() -> None:
    """Tutorials teach, how-to guides help at work, explanations say why, references say what: no page is all four."""
    kinds = {page.parent.name for page in (ROOT / "docs").rglob("*.md") if page.parent != ROOT / "docs"}
    assert kinds == {"tutorials", "how-to", "explanation", "reference"}
    assert [page.name for page in (ROOT / "docs").glob("*.md")] == ["index.md"]


def test_prose_is_wrapped_and_its_words_are_explained() -> None:
    """`python -m evidence.readability` prints more; lines are wrapped so that a change of them can be read."""
    assert readability.undefined(ROOT) == []
    for page in PAGES:
        if page.name not in readability.MADE | {"CONTRIBUTING.md"}:
            lines = readability.CODE.sub("", page.read_text(encoding="utf-8")).splitlines()
            assert not [line for line in lines if len(line) > 120], page.name


def test_no_page_names_a_path_of_some_machine() -> None:
    for page in PAGES:
        assert not re.search(r"/(home|root|work|tmp)/", page.read_text(encoding="utf-8")), page
