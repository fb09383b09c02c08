"""How values are shown: what draws them stands above them, so `privet` hands it in, and a value need not know it.

It is imported with the first picture: templates take a while, and questions do not need them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Draws(Protocol):
    """What can show values: `privet.report`."""

    def text(self, model: Any, max_depth: int | None = None) -> str:
        """Return a model as text."""

    def page(self, model: Any) -> str:
        """Return a page about a model."""

    def picture(self, value: Any) -> str:
        """Return what a notebook shows of a value."""


_found: list[Callable[[], Draws]] = []


def draw_with(find: Callable[[], Draws]) -> None:
    """Say what draws. `find` is called at every picture, so it may import."""
    _found[:] = [find]


def text(model: object, max_depth: int | None = None) -> str:
    """Return a model as text, of trees no deeper than `max_depth`."""
    return _found[0]().text(model, max_depth)


def page(model: object) -> str:
    """Return an HTML page about a model."""
    return _found[0]().page(model)


def picture(value: object) -> str:
    """Return what a notebook shows of a value."""
    return _found[0]().picture(value)
