"""Pages: one file each, which loads nothing, made of a template that escapes every value and knows no missing name."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from privet.models.epsilon import PAGE, factor, sentence
from privet.report.svg import MINUS, style
from privet.text import LONG, clean, decimal_text, short_text, shortened

TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, title: str, *, script: str = "", folder: Path = TEMPLATES, **values: Any) -> str:
    """Return a whole page.

    Parameters
    ----------
    template : str
        The name of a template that extends base.html.
    title : str
        What the browser calls the page.
    script : str, optional
        What the page runs. Its policy forbids the browser to run anything else, and to load anything.
    folder : Path, optional
        Where the template lies, if not among those of privet.
    **values
        What the template shows. Every text is cleaned of control characters, shortened and escaped.
    """
    allowed = ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed = f"; script-src 'sha256-{digest}'"
    found = _environment(folder).get_template(template)
    return found.render(title=title, script=Markup(script), allowed=Markup(allowed), **values) + "\n"


def fragment(template: str, name: str, *values: Any) -> str:
    """Return what a macro of a template makes: a piece of a page, or the cell of a notebook."""
    return str(getattr(_environment(TEMPLATES).get_template(template).module, name)(*values))


@lru_cache
def _environment(folder: Path) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        cut=cut,
        decimal=decimal_text,
        kind=lambda value: type(value).__name__.lower(),
        lines=lines,
        minus=lambda words: str(words).replace("-", MINUS),
        percent="{:.1%}".format,
        plural=plural,
        short=short_text,
        whole="{:,}".format,
    )
    made.globals.update(style=style, sentence=sentence, factor=factor, guide=PAGE)
    return made


def _shown(value: object) -> object:
    """What a template shows of a value; `Markup` was escaped where it was made."""
    return value if isinstance(value, Markup) else cut(value)


def cut(value: object, most: int = LONG) -> str:
    """Return a text as a page can bear it: without control characters, of so many letters at most."""
    return shortened(clean(str(value)), most)


def lines(text: object, most: int = LONG) -> str:
    """Return a text of several lines."""
    return Markup("\n").join(cut(line, most) for line in str(text).rstrip("\n").split("\n"))


def plural(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> plural(1, "leaf", "leaves"), plural(2000, "row")
    ('1 leaf', '2,000 rows')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
