"""The lines of a tree that was published as text: how deep each stands, and which is below which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from privet.errors import ModelError
from privet.kernel import DEEPEST_TREE, LONGEST_TEXT
from privet.text import SHOWN, clean, shortened

UNSAID = "the text does not say which criterion chose its splits"
MOST_LINES = 10**6  # some 600 bytes each while a tree is read
LONGEST_LINE = 4 * LONGEST_TEXT  # a name, a value, a label and its counts


@dataclass(frozen=True)
class Line:
    """One line of a text, without its indentation."""

    number: int  # in the text, from 1
    depth: int
    text: str

    def fault(self, problem: str) -> ModelError:
        """An error that shows where it is."""
        return ModelError(f"line {self.number} ('{shortened(clean(self.text[:LONGEST_LINE]), SHOWN)}'): {problem}")


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not blank, numbered from 1, whichever system wrote it.

    >>> list(numbered("a\\r\\n\\r\\n  b \\n"))
    [(1, 'a'), (3, 'b')]
    """
    if text.count("\n") + text.count("\r") > MOST_LINES:
        raise ModelError(f"the tree has more than {MOST_LINES} lines; publish a smaller one.")
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if line.strip():
            yield number, line.strip()


def parents(lines: Sequence[Line]) -> list[int]:
    """The position of the line above each, -1 for those at the top; a line stands at most one level below another."""
    above: list[int] = []  # the last line of each level
    found = []
    for position, line in enumerate(lines):
        if line.depth > DEEPEST_TREE or len(line.text) > LONGEST_LINE:
            raise line.fault(
                f"a tree has at most {DEEPEST_TREE} levels and lines of at most {LONGEST_LINE} characters; publish a "
                "smaller one."
            )
        if line.depth > len(above):
            raise line.fault("it stands too deep, so a line above it is missing; publish the whole tree.")
        found.append(above[line.depth - 1] if line.depth else -1)
        above[line.depth :] = [position]
    return found
