"""What `make site` adds to docs/: hooks of MkDocs (mkdocs.yml).

The reference of Python is made of docstrings, that of the HTTP API of the server's own document, notebooks of what they
show, and CONTRIBUTING, CHANGELOG and SECURITY are pages, too. Links that lead out of docs/ lead to those pages.
"""

from __future__ import annotations

import html
import importlib
import inspect
import itertools
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat

import privet

ROOT = Path(__file__).parents[1]
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")

# -- Python, from docstrings ------------------------------------------------------------------------

ERRORS = privet.errors.__name__
API: dict[str, tuple[str, list[str]]] = {
    "tables": (
        "Tables and questions",
        ["open", "ProtectedTable", "Parts", "Release", "Rho", "Public", "Quality", "WeightedMax", "AdditiveModel"],
    ),
    "domains": ("Domains", ["Domain", "Numeric", "Nominal", "Date", "draft_domain"]),
    "learners": (
        "Learners",
        [name for name in privet.__all__ if name.endswith("Classifier") and name != "AutoClassifier"],
    ),
    "models": ("Models", ["Model", "Ensemble", "Tables"]),
    "choosing": ("Choosing", ["AutoClassifier", "NoisyIf", "Branch", "History"]),
    "other": ("Audit, verify, connect", ["audit", "Audit", "verify", "connect", "datasets", "testing"]),
    "errors": (
        "Errors",
        ["errors", *(name for name, kind in vars(privet.errors).items() if getattr(kind, "__module__", "") == ERRORS)],
    ),
}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def docstring(text: str) -> str:
    """Return a numpydoc docstring as Markdown."""
    parts = SECTION.split(inspect.cleandoc(text))
    lines = [examples(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines.append(f"**{title}**\n")
        lines.append(examples(body) if title in {"Examples", "Notes", "References"} else fields(body))
    return "\n".join(lines)


def fields(body: str) -> str:
    """Return what numpydoc lists as `name : type`, and indented below it what it is, as a list."""
    found: list[list[str]] = []
    for line in body.splitlines():
        if line and not line.startswith(" "):
            found.append([line])
        elif line.strip() and found:
            found[-1].append(line.strip())
    items = []
    for head, *told in found:
        name, _, kind = head.partition(" : ")
        words = f"`{name}`" + (f" *({escaped(kind)})*" if kind else "")
        items.append(f"- {words}{': ' if told else ''}{' '.join(told)}")
    return "\n".join(items) + "\n"


def escaped(text: str) -> str:
    """Return a type as text: its brackets are no link, its stars no emphasis."""
    return re.sub(r"([\[\]*_<])", r"\\\1", text)


def examples(text: str) -> str:
    """Return text whose sessions are blocks of code, and whose drawings keep their shape."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{inspect.cleandoc(paragraph)}\n```")
        elif paragraph.startswith("    "):
            parts.append(f"```text\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(paragraph)
    return "\n\n".join(parts) + "\n"


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties of a class that say what they do, its own and privet's bases'."""
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("privet"):
            continue
        for name, member in vars(base).items():
            plain = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            call = plain.fget if isinstance(plain, property) else getattr(plain, "_build", plain)
            if name.startswith("_") or name in seen or not inspect.isfunction(call) or not call.__doc__:
                continue
            seen.add(name)
            yield name, plain if isinstance(plain, property) else call


def signature(name: str, call: Callable[..., Any]) -> str:
    """Return how a callable is called."""
    try:
        found = inspect.signature(call)
    except (TypeError, ValueError):
        return name
    given = [str(one.replace(annotation=one.empty)) for one in found.parameters.values() if one.name != "self"]
    plain = f"{name}({', '.join(given)})"
    return plain if len(plain) <= 90 else f"{name}(\n    " + ",\n    ".join(given) + ",\n)"


def entry(name: str, value: Any, shared: Sequence[tuple[str, Any]] = ()) -> str:
    """Return the section of a public name, without the methods that are described elsewhere."""
    lines = [f"## {name}\n"]
    if not inspect.ismodule(value):
        if not (inspect.isclass(value) and issubclass(value, BaseException)):
            lines.append(f"```python\n{signature(f'privet.{name}', value)}\n```\n")
    lines.append(docstring(value.__doc__ or ""))
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for own, member in members(value):
            if (own, member) in shared:
                continue
            lines.append(f"### .{own} {{ #{name.lower()}.{own} }}\n")
            if not isinstance(member, property):
                lines.append(f"```python\n{signature(own, member)}\n```\n")
            lines.append(docstring(inspect.getdoc(member) or ""))
    if inspect.ismodule(value) and value is not privet.errors:
        for own, member in vars(value).items():
            if inspect.isfunction(member) and not own.startswith("_") and member.__doc__:
                if member.__module__.startswith(value.__name__):
                    lines.append(f"### {name}.{own}\n\n```python\n{signature(own, member)}\n```\n")
                    lines.append(docstring(member.__doc__))
    return "\n".join(lines)


def api(group: str) -> str:
    """Return a page of the reference of Python."""
    title, names = API[group]
    found = [(name, getattr(privet, name, None) or getattr(privet.errors, name)) for name in names]
    lines = [f"# {title}\n\nMade of the docstrings.\n"]
    shared: Sequence[tuple[str, Any]] = ()
    if group == "learners":  # what all of them have is described once
        base = importlib.import_module("privet.learners.estimator").PrivateClassifier
        lines.append(entry(base.__name__, base).replace(f"privet.{base.__name__}(", f"{base.__name__}("))
        shared = list(members(base))
    return "\n".join((*lines, *(entry(name, value, shared) for name, value in found)))


# -- the HTTP API, from the server's own document -----------------------------------------------------


def http() -> str:
    """Return the operations of the server with their parameters and bodies."""
    document = importlib.import_module("privet.service.openapi").document(
        importlib.import_module("privet.service.routes").OPERATIONS
    )
    lines = [
        "# HTTP API\n",
        "Made of what a server sends at `GET /v1/openapi.json`. A token goes into `Authorization: Bearer`. "
        "What a sitting, a key and a problem are: [the server](../how-to/server.md#the-api).\n",
    ]
    for path, methods in document["paths"].items():
        for method, own in methods.items():
            lines.append(f"## {method.upper()} {path}\n\n{own['summary']}\n")
            lines += [
                f"- `{one['name']}`, in the {one['in']}{'' if one.get('required') else ', optional'}"
                for one in own.get("parameters", [])
            ]
            body = own.get("requestBody")
            if body is not None:
                (content,) = body["content"].values()
                name = content["schema"]["$ref"].rpartition("/")[2]
                lines += ["", f"Body: {typed(name)}\n", *properties(document["components"]["schemas"][name])]
            good = next(status for status in own["responses"] if status < "300")
            (content,) = own["responses"][good]["content"].items()
            reply = content[1]["schema"].get("$ref", "events").rpartition("/")[2]
            lines += ["", f"Answers {good} with {'events' if reply == 'events' else typed(reply)}.\n"]
    lines.append("## Types\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        if schema.get("properties"):
            lines += [f"### {name}\n", f"{schema.get('description', '')}\n", *properties(schema), ""]
    return "\n".join(lines)


def properties(schema: dict[str, Any]) -> list[str]:
    """Return the fields of a body or an answer."""
    needed = schema.get("required", [])
    return [
        f"- `{name}`: {kind(found)}{'' if name in needed else ', optional'}"
        for name, found in schema.get("properties", {}).items()
    ]


def typed(name: str) -> str:
    """Return the name of a type, which leads to its fields further down."""
    return f"[`{name}`](#{name.lower()})"


def kind(schema: dict[str, Any]) -> str:
    """Return the type of a field in a few words."""
    if "$ref" in schema:
        return typed(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {kind(schema['items'])}" if isinstance(schema.get("items"), dict) else "list"
    return str(schema.get("type", "any"))


# -- notebooks ------------------------------------------------------------------------------------------


def notebook(path: Path) -> str:
    """Return a notebook with what its cells show."""
    lines = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            lines.append(cell.source)
            continue
        lines.append(f"```python\n{cell.source}\n```")
        lines += [shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(lines) + "\n"


def shown(output: Any) -> str:
    """Return what a cell shows: a picture, HTML or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="what the cell draws" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/html" in data:
        lines = (line.strip() for line in data["text/html"].splitlines())  # an empty or indented line would end it
        return f'<div class="output">{"".join(f"{line} " for line in lines if line)}</div>'
    text = data.get("text/plain", output.get("text", ""))
    return f'<pre class="output">{html.escape(text).replace(chr(10), "&#10;")}</pre>'


# -- hooks ------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """Return the pages that no file of docs/ holds, by their place on the site."""
    found = {f"reference/api/{group}.md": api(group) for group in API}
    found["reference/http.md"] = http()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        found[f"notebooks/{path.stem}.md"] = notebook(path)
    for name in ROOT_PAGES:
        found[name] = (ROOT / name).read_text(encoding="utf-8")
    return found


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    file = importlib.import_module("mkdocs.structure.files").File
    for place, text in pages().items():
        files.append(file.generated(config, place, content=text))
    return files


LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links that leave docs/ to the page of what they name, or make them plain text."""
    place = page.file.src_uri
    at_root = place in ROOT_PAGES
    folder = "" if at_root else posixpath.dirname(f"docs/{place}")

    def lead(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target:
            return link[0]
        to = posixpath.normpath(posixpath.join(folder, target))
        if to.startswith("notebooks/") and to.endswith(".ipynb"):
            to = to.replace(".ipynb", ".md")
        elif to.startswith("docs/") and not to.endswith(".json"):
            to = to.removeprefix("docs/")
        elif to not in ROOT_PAGES:
            return f"{text} (`{to}`)"
        return f"[{text}]({posixpath.relpath(to, posixpath.dirname(place) or '.')}{anchor})"

    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if piece.startswith("```") else LINK.sub(lead, piece) for piece in pieces)


TABLE = re.compile(r"<table>\s*<thead>.*?</table>", re.DOTALL)
CELLS = re.compile(r"<(th|td)([^>]*)>(.*?)</\1>", re.DOTALL)


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Write the heading of its column on each cell of a table: on a phone a row with many cells becomes a list."""
    return TABLE.sub(labelled, content)


def labelled(table: re.Match[str]) -> str:
    """Return a table whose cells name their columns."""
    heads = [re.sub(r"<[^>]*>", "", text) for tag, _, text in CELLS.findall(table[0]) if tag == "th"]
    if len(heads) < 4:
        return table[0]
    columns = itertools.cycle(heads)
    return CELLS.sub(
        lambda cell: cell[0] if cell[1] == "th" else f'<td{cell[2]} data-column="{next(columns)}">{cell[3]}</td>',
        table[0],
    )


SHIM = "https://unpkg.com/iframe-worker/shim"  # what Material would load; docs/offline-search.js does the same
LOADS = re.compile(
    r'<(?:script|img|iframe)[^>]* src="(https?:[^"]*)"|<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]*)"'
)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that would load something from a network."""
    output = output.replace(SHIM, posixpath.relpath("offline-search.js", posixpath.dirname(page.url) or "."))
    if loads := LOADS.findall(output):
        raise ValueError(f"{page.file.src_uri} would load {loads}")
    return output


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Do the same for the page of what is not found."""
    return output_content.replace(SHIM, "/offline-search.js")
