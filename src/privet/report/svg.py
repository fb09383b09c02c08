"""Elements of SVG, and drawings made of them: every text is cleaned, shortened and escaped as it enters an element.

`Markup` is what was made here. Whatever else is put into an element is a text that somebody may have written into a
domain, a table or a model file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from markupsafe import Markup, escape

from privet.text import LONG, clean, shortened, width_of

ROW, LETTER, BOLD, GAP = 18, 6.9, 7.8, 12.0  # pixels
LABEL, NAME = 24, 20  # letters
MINUS = "\u2212"


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """Return an element; attributes without a value are left out.

    >>> tag("text", "a < b", class_="name", x=1.50, title=None)
    Markup('<text class="name" x="1.5">a &lt; b</text>')
    """
    told = "".join(f' {_name(key)}="{_text(value)}"' for key, value in attributes.items() if value is not None)
    content = "".join(map(_text, inside))
    return Markup(f"<{name}{told}>{content}</{name}>" if content else f"<{name}{told}/>")


def join(parts: Iterable[Markup]) -> Markup:
    """Return elements one after the other."""
    return Markup("").join(parts)


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _text(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return Markup(number(value))
    return escape(shortened(clean(str(value)), LONG))


def number(value: float) -> str:
    """Return a length with as many decimals as can be seen."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:g}"


def text(
    x: float, y: float, words: object, kind: str | None = None, most: int = 140, title: str = "", **more: object
) -> Markup:
    """Return a text of at most so many letters; whoever points at it reads `title`."""
    told = [tag("title", title)] if title else []
    if not isinstance(words, Markup):
        words = shortened(clean(str(words)), most)
    return tag("text", *told, words, class_=kind or None, x=x, y=y, **more)


def path(d: str, kind: str | None = None, *inside: object, **more: object) -> Markup:
    """Return a path, however long it is."""
    return tag("path", *inside, class_=kind, d=escape(d), **more)


def rect(
    x: float, y: float, width: float, height: float, kind: str | None = None, *inside: object, **more: object
) -> Markup:
    """Return a rectangle."""
    return tag("rect", *inside, class_=kind, x=x, y=y, width=width, height=height, **more)


def moved(x: float, y: float, *inside: object, kind: str | None = None, more: str = "") -> Markup:
    """Return elements that stand elsewhere."""
    return tag("g", *inside, class_=kind, transform=f"translate({number(x)} {number(y)}){more}")


def room(labels: Iterable[str], most: int) -> float:
    """Return how many pixels the widest of some labels takes."""
    return LETTER * max(width_of(shortened(label, most)) for label in labels)


@lru_cache
def style(*sections: str) -> Markup:
    """Return the stylesheet, or sections of it: "colours", "classes", "page", "charts", "trees", "tables", "cards"."""
    sheet = resources.files("privet.report").joinpath("style.css").read_text(encoding="utf-8")
    found = dict(re.findall(r"/\* == (\w+)[^*]*\*/\n(.*?)(?=/\* == |\Z)", sheet, re.DOTALL))
    return Markup("".join(found[name] for name in sections or found))


@dataclass(frozen=True)
class Drawing:
    """Shapes on paper of known size."""

    width: float
    height: float
    shapes: Markup
    said: str  # for whoever cannot see them
    kind: str = "chart"  # its class in the stylesheet

    @property
    def inline(self) -> Markup:
        """The drawing for a page that has the stylesheet."""
        return self._drawn(self.shapes)

    def file(self, *sections: str) -> str:
        """Return the drawing as a file of its own, with these sections of the stylesheet."""
        shapes = tag("style", style(*sections)) + self.shapes
        return str(self._drawn(shapes, xmlns="http://www.w3.org/2000/svg"))

    def _drawn(self, shapes: Markup, **more: object) -> Markup:
        width, height = round(self.width), round(self.height)
        return tag(
            "svg",
            shapes,
            **more,
            class_=self.kind,
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_label=shortened(clean(self.said), LONG),
        )
