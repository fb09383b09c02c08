"""The pages that still draw themselves."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from privet.report.effects import more
from privet.trees.layout import safe

ROWS = 500  # of a table, at most

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2a22; --soft: #5d6b62; --line: #d8ded9; --leaf: #2f7d4f;
  --paper: #fbfcfa; --card: #ffffff; --alarm: #b3261e; --alarmed: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #33403a; --leaf: #66c08a;
  --paper: #141a17; --card: #1b2320; --alarm: #ff8a80; --alarmed: #3b1d1b; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 76rem;
  margin: 2.5rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.1rem; margin: 0 0 .6rem; }
p { margin: .4rem 0; } sup { line-height: 0; } ol { font-size: .9rem; padding-left: 3rem; } li { margin: .15rem 0; }
section, details { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: 1.1rem 0;
  padding: 1.1rem 1.4rem; } details { padding: .7rem 1.4rem; } summary { cursor: pointer; font-weight: 600; }
.wide { position: relative; left: 50%; transform: translateX(-50%); box-sizing: border-box; width: max-content;
  min-width: 100%; max-width: calc(100vw - 3rem); }
"""

# What pages and the cells of a notebook (`notebook.py`) share.
PART_STYLE = """
.soft { color: var(--soft); } .paid { font-weight: 600; } .big { font-size: 1.5rem; font-weight: 600; margin: 0; }
.alarm { border: 2px solid var(--alarm); background: var(--alarmed); } .alarm .big { color: var(--alarm); }
.scroll { overflow-x: auto; padding: .4rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left;
  font-variant-numeric: tabular-nums; } th { color: var(--soft); } td:first-child { white-space: nowrap; }
.bar { display: flex; height: 1.5rem; gap: 1px; border-radius: .3rem; overflow: hidden; margin: .7rem 0 .3rem; }
.bar i, .key i { background: var(--leaf); } .bar .left { background: var(--line); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .9rem; margin: .2rem 0 .8rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; border-radius: .15rem; margin-right: .4rem; }
"""


def document(title: str, parts: Sequence[str], style: str = "", script: str = "") -> str:
    """A whole page; its policy forbids the browser to load anything, and to run anything but one script of ours."""
    content, allowed = "\n".join(parts), ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        content, allowed = f"{content}\n<script>{script}</script>", f"; script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'{allowed}">
<title>{safe(title, 200)}</title><style>{_STYLE}{PART_STYLE}{style}</style></head><body>
{content}
</body></html>
"""


# Nested, so that nothing outside the card is styled. The pages' rules, with colours made of the colour of the text.
_STYLE = f""".privet-card {{ font: 14px/1.5 system-ui, sans-serif; max-width: 62rem; overflow-wrap: break-word;
  --soft: color-mix(in srgb, currentColor 68%, transparent); --line: color-mix(in srgb, currentColor 24%, transparent);
  --leaf: #3f90da; --alarm: #e76300; --alarmed: transparent;
  {PART_STYLE}
  p {{ margin: .2rem 0; }} h2 {{ font-size: 1em; margin: .7rem 0 .2rem; }} sup {{ line-height: 0; }}
  .big {{ font-size: 1.25em; }} .alarm {{ border-radius: .4rem; padding: .4rem .8rem; }}
  .warn {{ color: var(--alarm); }}
  table {{ width: auto; margin: 0; }} th {{ font-weight: 600; white-space: nowrap; }}
  summary {{ cursor: pointer; color: var(--soft); }}
  svg text {{ font: 12px system-ui, sans-serif; fill: currentColor; font-variant-numeric: tabular-nums; }}
  svg .aside {{ opacity: .72; }} svg .end {{ text-anchor: end; }} svg .middle {{ text-anchor: middle; opacity: .72; }}
  svg .grid {{ stroke: currentColor; opacity: .2; }}
  svg .error {{ stroke: currentColor; stroke-width: 1.5; fill: none; }}
  svg rect {{ fill: var(--leaf); opacity: .75; }} }}"""


def card(label: str, *parts: str) -> str:
    """Return a cell's HTML.

    Parameters
    ----------
    label : str
        What the card is, for whoever hears it.
    *parts : str
        HTML; every text in it is escaped.
    """
    return (
        f'<div class="privet-card" role="group" aria-label="{safe(label)}"><style>{_STYLE}</style>'
        f"{''.join(parts)}</div>"
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], hidden: int = 0, what: str = "row") -> str:
    """Return an HTML table of plain texts, and how many rows are not shown."""
    head = "".join(f"<th>{safe(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{safe(text, 300)}</td>' for text in row)}</tr>" for row in rows)
    drawn = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return drawn + _more(hidden, what)


def _more(hidden: int, what: str) -> str:
    return "".join(f'<p class="soft">{words}</p>' for words in more(hidden, what, "…"))
