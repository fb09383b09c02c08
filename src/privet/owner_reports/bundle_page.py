"""The audit bundle as a page: one file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from privet.owner_reports.bundle import ACCESS, amount
from privet.text import short_text
from privet.trees.layout import safe
from privet.trees.notebook import table
from privet.trees.page_parts import document

# Where on the page a part of the bundle is.
_SECTIONS = {
    "budget": "Budget",
    "composition": "Promise",
    "criteria": "Criteria",
    "events": "Access",
    "ledger": "Ledger",
    "models": "Models",
    "permits": "Permits",
    "promise": "Promise",
    "releases": "Releases",
    "side_channels": "Side channels",
    "unprotected": "Unprotected",
}
ROWS = 500  # of a list, at most; the JSON has all

_STYLE = """
.facts { display: grid; grid-template-columns: 11rem 1fr; gap: .3rem 1.2rem; margin: 0; }
.facts dt { color: var(--soft); } .facts dd { margin: 0; } ul { margin: .4rem 0; padding-left: 1.2rem; }
code, .facts dd.hash { font: .85rem/1.5 ui-monospace, monospace; } .broken { color: var(--alarm); font-weight: 600; }
td { min-width: 4rem; } td:first-child { white-space: normal; } h3 { font-size: .95rem; margin: 1rem 0 .3rem; }
.bar { margin-top: .2rem; } nav { margin: .8rem 0 0; font-size: .9rem; }
nav a { color: var(--leaf); margin-right: 1rem; display: inline-block; }
@media (max-width: 44rem) { .facts { display: block; } .facts dd { margin-bottom: .5rem; }
  body { margin: 1.2rem auto; } section { padding: .9rem 1rem; }
  .scroll table:has(th:nth-child(6)) { min-width: 46rem; } }
@media print { nav { display: none; } section { break-inside: avoid; } }
"""


def bundle_page(bundle: dict[str, Any]) -> str:
    """Return a page about an audit bundle.

    Parameters
    ----------
    bundle : dict
        What `audit_bundle` returned.

    Returns
    -------
    str
        HTML; every text of the ledger is escaped.
    """
    only = [f"{name} {value}" for name, value in bundle["only"].items() if value is not None]
    title = f"Audit of {bundle['dataset']}" + (f", {', '.join(only)}" if only else "")
    parts = {
        "Promise": _promise(bundle),
        "Budget": _budget(bundle),
        "Permits": _permits(bundle["permits"]),
        "Unprotected": _unprotected(bundle["unprotected"]),
        "Criteria": _criteria(bundle),
        "Releases": _releases(bundle["releases"], bundle["promise"]["unit"]),
        "Models": _models(bundle["models"]),
        "Access": _events(bundle["events"]),
        "Side channels": _channels(bundle["side_channels"]),
        "Ledger": _ledger(bundle),
        "Five Safes": _five_safes(bundle["five_safes"]),
    }
    links = "".join(f'<a href="#{_id(name)}">{name}</a>' for name in parts)
    head = f'<h1>{safe(title, 200)}</h1><p class="soft">For the owner, and whoever examines it.</p><nav>{links}</nav>'
    sections = [f'<section id="{_id(name)}"><h2>{name}</h2>{content}</section>' for name, content in parts.items()]
    return document(title, [head, *sections], _STYLE)


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    return (
        '<dl class="facts">'
        + "".join(f"<dt>{safe(name)}</dt><dd>{safe(value, 600)}</dd>" for name, value in pairs)
        + "</dl>"
    )


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{safe(item, 400)}</li>" for item in items) + "</ul>"


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> str:
    if not rows:
        return f'<p class="soft">{safe(none)}</p>'
    shown = rows[-ROWS:]
    more = f'<p class="soft">The last {ROWS} of {len(rows)}; the JSON has all.</p>' if len(rows) > ROWS else ""
    return table(heads, shown) + more


def _five_safes(safes: Sequence[dict[str, Any]]) -> str:
    rows = []
    for one in safes:
        links = ", ".join(f'<a href="#{_id(_SECTIONS[name])}">{_SECTIONS[name]}</a>' for name in one["here"])
        rows.append(f"<dt>safe {safe(one['safe'])}</dt><dd>{safe(one['asks'])} {links}</dd>")
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _promise(bundle: dict[str, Any]) -> str:
    promise, composition = bundle["promise"], bundle["composition"]
    counted = "epsilon, pure" if promise["delta"] is None else f"rho, with delta {float(Fraction(promise['delta'])):g}"
    return _facts(
        [
            ("whom it protects", promise["protects"]),
            ("neighbours", promise["neighbours"]),
            ("counted in", counted),
            ("how losses add", composition["rule"]),
            ("why it holds", f"{composition['proof']}, in privet's documentation"),
        ]
    )


def _budget(bundle: dict[str, Any]) -> str:
    budget, unit = bundle["budget"], bundle["promise"]["unit"]
    spent, cap, left = (Fraction(budget[name]) for name in ("spent", "cap", "left"))
    share = min(float(spent / cap), 1.0) if cap else 1.0
    shares = f'<i style="flex:{1000 * share:.0f}"></i><i class="left" style="flex:{1000 * (1 - share):.0f}"></i>'
    bar = f'<div class="bar">{shares}</div>'
    words = f'<p class="big">{safe(unit)} {short_text(spent)} of {short_text(cap)} spent, {short_text(left)} left</p>'
    buys = ""
    if bundle["promise"]["delta"] is not None:
        buys = f"<p>One answer of epsilon {short_text(Fraction(budget['left_as_epsilon']))} is left.</p>"
    analysts = [
        (
            line["analyst"],
            amount(line["spent"]),
            "-" if line["cap"] is None else amount(line["cap"]),
            amount(line["left"]),
        )
        for line in budget["analysts"]
    ]
    caps = [
        (
            line["day"],
            line["analyst"] or ("all under the permit" if line.get("permit") else "everybody"),
            amount(line["cap"]),
            str(line.get("permit") or ""),
        )
        for line in budget["caps"]
    ]
    under = any(row[3] for row in caps)
    last_head = "left, permits aside" if under else "left to them"
    heads = ("day", "for", "cap", "permit")[: 3 + under]
    return (
        f"{words}{bar}{buys}<p>It is never refreshed. All amounts are exact fractions in the JSON.</p>"
        f"<h3>Analysts</h3>{_rows(('analyst', 'spent', 'own cap', last_head), analysts, 'Nobody has asked yet.')}"
        f"<h3>What was allowed, and when</h3>{_rows(heads, [row[: 3 + under] for row in caps], 'Nothing.')}"
    )


def _permits(permits: Sequence[dict[str, Any]]) -> str:
    """Return what each permit allows, and what was spent under it."""
    rows = []
    for own in permits:
        policy = own["policy"]
        rows.append(
            (
                own["permit"],
                f"{amount(own['spent'])} of {amount(own['cap'])}" if own["cap"] else amount(own["spent"]),
                policy.get("expires") or "no last day",
                ", ".join(policy.get("spenders", ())),
                "; ".join(policy.get("purposes", ())) or "anything",
                ", ".join(policy.get("release", ())),
                str(policy.get("approvals", "")),
            )
        )
    heads = ("permit", "spent", "until", "who may spend", "for", "may leave", "owners for a raise")
    return _rows(heads, rows, "None: analysts use grants of their own.")


def _unprotected(unprotected: dict[str, Any]) -> str:
    declared = [(line["day"], str(line["rows_per_person"]), line["domain"]) for line in unprotected["declared"]]
    return (
        _facts(
            [
                ("what is public", unprotected["what"]),
                ("columns", ", ".join(unprotected["columns"]) or "none were declared"),
                ("written by", unprotected["written_by"]),
            ]
        )
        + f"<h3>Declared</h3>{_rows(('day', 'rows per person', 'SHA-256 of the cells'), declared, 'Nothing.')}"
    )


def _criteria(bundle: dict[str, Any]) -> str:
    kept = {True: "kept", False: '<span class="broken">BROKEN</span>'}
    rows = "".join(
        f"<tr><td>{kept[line['kept']]}</td><td>{safe(line['rule'], 300)}</td></tr>" for line in bundle["criteria"]
    )
    return f"<table><tbody>{rows}</tbody></table><p>{safe(bundle['checked_by'], 400)}</p>"


def _releases(releases: list[dict[str, Any]], unit: str) -> str:
    rows = [
        (
            str(line["entry"]),
            line["at"][:16].replace("T", " "),
            str(line["analyst"]),
            f"{line['question']} on {line['scope']}",
            line["epsilon"],
            short_text(Fraction(line["loss"])),
            "not released" if not line["released"] else "released" if line["private"] else "NOT PRIVATE: seeded",
            ": ".join(text for text in (line["permit"], line["purpose"]) if text),
        )
        for line in releases
    ]
    heads = ("entry", "when (UTC)", "analyst", "what was asked", "epsilon", f"charged ({unit})", "answer", "permit")
    kept = [index for index, _ in enumerate(heads) if index < 7 or any(row[7] for row in rows)]
    return _rows([heads[i] for i in kept], [[row[i] for i in kept] for row in rows], "Nothing was asked yet.")


def _models(models: dict[str, Any]) -> str:
    rows = [
        (
            str(line["model"]),
            line["day"],
            str(line["analyst"]),
            str(line.get("algorithm", "")),
            amount(line["epsilon"]) if "epsilon" in line else "",
            ", ".join(map(str, line["entries"][:12])) + (", …" if len(line["entries"]) > 12 else ""),
            line["sha256"],
        )
        for line in models["released"]
    ]
    heads = ("model", "day", "analyst", "algorithm", "epsilon", "entries", "SHA-256 of the file")
    return f"<p>{safe(models['policy'], 300)}</p>{_rows(heads, rows, 'No model was written down.')}"


def _events(events: list[dict[str, Any]]) -> str:
    def rows(of_access: bool) -> list[tuple[str, ...]]:
        return [
            (
                line["at"][:16].replace("T", " "),
                str(line["event"]),
                line["analyst"] or "",
                ", ".join(f"{name}: {value}" for name, value in line["facts"].items()),
            )
            for line in events
            if (line["event"] in ACCESS) == of_access
        ]

    heads = ("when (UTC)", "what", "who", "facts")
    none = "None: no server has served this ledger."
    return (
        f"<h3>Logins and refusals</h3>{_rows(heads, rows(True), none)}"
        f"<h3>Grants, tokens and changes of the configuration</h3>{_rows(heads, rows(False), none)}"
    )


def _channels(channels: dict[str, Any]) -> str:
    return f"<h3>Covered</h3>{_list(channels['covered'])}<h3>Not covered</h3>{_list(channels['not_covered'])}"


def _ledger(bundle: dict[str, Any]) -> str:
    ledger = bundle["ledger"]
    signed = (
        f"<h3>Checkpoint</h3><pre class='scroll'><code>{safe_lines(ledger['checkpoint'])}</code></pre>"
        if ledger["checkpoint"]
        else f'<p class="soft">No checkpoint: {safe(str(ledger["unsigned"]), 300)}</p>'
    )
    return (
        _facts(
            [
                ("id", ledger["id"]),
                ("lines", str(ledger["lines"])),
                ("keys", ", ".join(ledger["keys"]) or "none"),
                ("second keys", ", ".join(ledger["second_keys"]) or "none"),
                ("written by", f"privet {ledger['version']}"),
            ]
        )
        + signed
        + f"<p>{safe(bundle['limits'], 600)}</p>"
    )


def safe_lines(text: str) -> str:
    """Return a text of several lines for a page."""
    return "\n".join(safe(line, 400) for line in text.rstrip("\n").split("\n"))
