"""`python -m evidence.walk`: every public name, command and option, with a page, a test and an error test that name it.

An error test is one that expects a refusal. That each option refuses what it cannot use is tried for all of them alike
(tests/test_walk.py). What no test names may still be used by one through a fixture: the table says where to look, not
what is proved.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer

import privet
from privet.cli import app

ROOT = Path(__file__).parents[1]
EVERY_OPTION = "tests/test_walk.py::test_options_of_a_command_refuse_what_they_cannot_use"
WORD = re.compile(r"--[\w-]+|(?<![\w-])-\w\b|\w+")


@dataclass(frozen=True)
class Item:
    """A public name, a command or an option of a command."""

    kind: str
    name: str
    words: frozenset[str]  # all of them stand where it is named
    spellings: tuple[str, ...] = ()  # or one of these
    takes_value: bool = True

    def named_by(self, words: frozenset[str]) -> bool:
        return self.words <= words and (not self.spellings or any(one in words for one in self.spellings))


def items() -> Iterator[Item]:
    """Yield all that the package and its command offer."""
    for name in privet.__all__:
        yield Item("name", name, frozenset({name}))
    yield from _commands(typer.main.get_command(app), ())


def _commands(group: Any, path: tuple[str, ...]) -> Iterator[Item]:
    for name, command in sorted(group.commands.items()):
        own = (*path, name)
        if hasattr(command, "commands"):
            yield from _commands(command, own)
            continue
        yield Item("command", " ".join(own), frozenset(own))
        for option in command.params:
            long = max(option.opts, key=len)
            if long.startswith("--") and long != "--help":
                valued = not getattr(option, "is_flag", False)
                spelled = (*option.opts, *option.secondary_opts)
                yield Item("option", f"{' '.join(own)} {long}", frozenset(), spelled, valued)


@cache
def pages() -> dict[str, frozenset[str]]:
    """Return the words of each page; last the one of all options, which says least about each."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"), key=lambda path: (path.name == "cli.md", path))]
    return {path.relative_to(ROOT).as_posix(): _words(path.read_text(encoding="utf-8")) for path in paths}


@cache
def tests() -> dict[str, frozenset[str]]:
    """Return the words of each test function, and of what else is in its file."""
    return _tests(re.compile(""))


@cache
def error_tests() -> dict[str, frozenset[str]]:
    """Return the words of each test that expects a refusal."""
    return _tests(re.compile(r"pytest\.raises|returncode (?:!=|== [1-9])|\.stderr"))


def _tests(kept: re.Pattern[str]) -> dict[str, frozenset[str]]:
    """Return the words of what matches, with those of the constants that it names."""
    found: dict[str, frozenset[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.name == "test_walk.py":
            continue
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), ast.parse(text).body
        constants = {
            target.id: _words(ast.get_source_segment(text, node) or "")
            for node in body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in body:
            start = min((one.lineno for one in getattr(node, "decorator_list", [])), default=node.lineno)
            place = f"{path.relative_to(ROOT).as_posix()}::{getattr(node, 'name', 'data')}"
            own = "\n".join(lines[start - 1 : node.end_lineno])
            if kept.search(own):
                words = _words(own)
                found[place] = found.get(place, frozenset()).union(words, *(constants.get(name, ()) for name in words))
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text))


def where(item: Item) -> tuple[str, str, str]:
    """Return a page, a test and an error test that name an item; "" where there is none."""
    page, test, error = (
        next((place for place, words in found.items() if item.named_by(words)), "")
        for found in (pages(), tests(), error_tests())
    )
    return page, test, EVERY_OPTION if item.kind == "option" else error


if __name__ == "__main__":
    for item in items():
        print("\t".join((item.kind, item.name, *(cell or "-" for cell in where(item)))))
