"""What the pages about models share: one file that loads nothing, its style, the promise and the public domain."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from fractions import Fraction

from privet.kernel import Column, Domain, Nominal
from privet.models.epsilon import PAGE, factor, sentence
from privet.models.privacy_record import Privacy
from privet.text import decimal_text, short_text
from privet.trees.drawing import CLASSES
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


def promise(privacy: Privacy) -> str:
    """What the model promises to a person; or, loudly, why it promises nothing."""
    if not privacy.private:
        reasons = "".join(f"<li>{safe(reason)}</li>" for reason in privacy.reasons)
        content = f'<p class="big">NOT PRIVATE</p><ul>{reasons}</ul><p>Do not publish it.</p>'
        return f'<section class="alarm">{content}</section>'
    if privacy.delta is not None:
        return _approximate_promise(privacy)
    epsilon = short_text(privacy.epsilon)
    several = f"In each of the {1 + len(privacy.added)} tables: " * bool(privacy.added)
    return (
        f'<section><p class="big">epsilon {epsilon} per person</p><p>{several}{safe(sentence(float(privacy.epsilon)))}'
        f"</p><p>Pure differential privacy {safe(privacy.protected)}: with or without them, no set of possible models "
        f"becomes more than {safe(factor(float(privacy.epsilon)))} times as likely. Whatever is computed from this "
        f'page keeps that promise.</p><p class="soft">What others use, and what to tell the people: {safe(PAGE)}, in '
        "privet's documentation.</p></section>"
    )


def decided(privacy: Privacy) -> str:
    """What was chosen on the way, from releases alone: each choice, and by how many points branches were ahead."""
    if not privacy.decisions:
        return ""
    items = []
    for decision in privacy.decisions[:ROWS]:
        ranked = sorted(decision.margins, key=lambda pair: -pair[1])[:CLASSES]
        points = "; ".join(f"{name} {ahead:+.2f}" for name, ahead in ranked)
        told = f'<br><span class="soft">points ahead: {safe(points, 400)}</span>' if points else ""
        items.append(f"<p>{safe(str(decision), 300)}{told}</p>")
    return f"<section><h2>What was chosen</h2>{''.join(items)}<p>Made of releases, so it cost nothing.</p></section>"


def budget_bar(pieces: Sequence[tuple[str, Fraction, str]], left: Fraction) -> str:
    """What was paid, piece by piece: its kind, its loss and what to say of it; and what is left."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in pieces))
    tint = {kind: f"opacity:{1 - 0.75 * i / max(len(kinds), 3):.2f}" for i, kind in enumerate(kinds)}
    whole = sum((paid for _, paid, _ in pieces), max(left, Fraction(0))) or Fraction(1)

    def wide(part: Fraction) -> str:
        """Shares below 1 in all would leave a part of the bar empty."""
        return f"{float(1000 * part / whole):.3f}"

    bar = "".join(
        f'<i style="flex:{wide(paid)};{tint[kind]}" title="{safe(told)}"></i>' for kind, paid, told in pieces[:ROWS]
    )
    if left > 0:
        bar += f'<i class="left" style="flex:{wide(left)}" title="not spent: {short_text(left)}"></i>'
    key = "".join(f'<span><i style="{tint[kind]}"></i>{safe(kind, 60)}</span>' for kind in kinds[:CLASSES])
    return f'<div class="bar">{bar}</div><p class="key">{key}</p>'


def domain_table(domain: Domain) -> str:
    """The columns of a domain: kind, cells, bounds and values."""
    rows = "".join(
        f"<tr><td>{safe(column.name, 60)}{' (target)' * (column.name == domain.target)}</td>"
        f"<td>{'nominal' if isinstance(column, Nominal) else 'numeric'}</td>"
        f"<td>{column.size}</td><td>{safe(_values(column), 300)}</td></tr>"
        for column in domain.columns[:ROWS]
    )
    heads = "<tr><th>column</th><th>kind</th><th>cells</th><th>values</th></tr>"
    more = f"<p>… {len(domain.columns) - ROWS} more columns</p>" if len(domain.columns) > ROWS else ""
    return f'<div class="scroll"><table>{heads}{rows}</table></div>{more}'


def _values(column: Column) -> str:
    labels = ", ".join(column.labels[:100])
    if isinstance(column, Nominal):
        return labels
    low, high, step = (decimal_text(number) for number in (column.low, column.high, column.step))
    return f"{low} to {high}, step {step}: {labels}"


def details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _approximate_promise(privacy: Privacy) -> str:
    """What a model with a delta promises to a person."""
    assert privacy.rho is not None and privacy.delta is not None
    delta = f"{float(privacy.delta):g}"
    return (
        f'<section><p class="big">{safe(privacy.promise)} per person</p><p>{safe(sentence(float(privacy.epsilon)))}</p>'
        f"<p>Approximate differential privacy {safe(privacy.protected)}: with or without them, the probability of no "
        f"set of possible models becomes more than {safe(factor(float(privacy.epsilon)))} times as large, plus "
        f"{delta}. "
        f"Spending was counted in rho (zCDP), {short_text(privacy.rho)} in all. Whatever is computed from this page "
        f'keeps that promise.</p><p class="soft">What others use, and what to tell the people: {safe(PAGE)}, in '
        "privet's documentation.</p></section>"
    )
