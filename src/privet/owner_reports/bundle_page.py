"""The audit bundle as a page."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from privet.owner_reports.bundle import ACCESS
from privet.report import rendering
from privet.text import plain_words, rows_in_words, short_text

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
_ORDER = (
    *("Promise", "Budget", "Permits", "Unprotected", "Criteria", "Releases"),
    *("Models", "Access", "Side channels", "Ledger", "Five Safes"),
)


class LedgerTable(NamedTuple):
    """A table of texts."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


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
    promise, ledger = bundle["promise"], bundle["ledger"]
    counted = "epsilon, pure" if promise["delta"] is None else f"rho, with delta {float(Fraction(promise['delta'])):g}"
    unprotected = bundle["unprotected"]
    return rendering.page(
        "bundle.html",
        f"Audit of {bundle['dataset']}" + (f", {', '.join(only)}" if only else ""),
        bundle=bundle,
        sections=[(_id(name), name) for name in _ORDER],
        unit=promise["unit"],
        promise=[
            ("whom it protects", promise["protects"]),
            ("neighbours", promise["neighbours"]),
            ("counted in", counted),
            ("how losses add", bundle["composition"]["rule"]),
            ("why it holds", f"{bundle['composition']['proof']}, in privet's documentation"),
        ],
        budget=_budget(bundle),
        analysts=_analysts(bundle["budget"]),
        caps=_caps(bundle["budget"]),
        permits=_permits(bundle["permits"]),
        unprotected=[
            ("what is public", unprotected["what"]),
            ("columns", ", ".join(unprotected["columns"]) or "none were declared"),
            ("written by", unprotected["written_by"]),
        ],
        declared=LedgerTable(
            ("day", "rows per person", "SHA-256 of the cells"),
            [(line["day"], str(line["rows_per_person"]), line["domain"]) for line in unprotected["declared"]],
        ),
        releases=_releases(bundle["releases"], promise["unit"]),
        models=_models(bundle["models"]["released"]),
        logins=_events(bundle["events"], True),
        grants=_events(bundle["events"], False),
        ledger=[
            ("id", ledger["id"]),
            ("lines", str(ledger["lines"])),
            ("keys", ", ".join(ledger["keys"]) or "none"),
            ("second keys", ", ".join(ledger["second_keys"]) or "none"),
            ("written by", f"privet {ledger['version']}"),
        ],
        safes=[
            (one, [(_id(_SECTIONS[name]), _SECTIONS[name]) for name in one["here"]]) for one in bundle["five_safes"]
        ],
    )


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")


class BudgetFacts(NamedTuple):
    """What was spent and what is left."""

    spent: Fraction
    cap: Fraction
    left: Fraction
    share: int  # thousandths
    buys: str


def _budget(bundle: dict[str, Any]) -> BudgetFacts:
    budget = bundle["budget"]
    spent, cap, left = (Fraction(budget[name]) for name in ("spent", "cap", "left"))
    buys = ""
    if bundle["promise"]["delta"] is not None:
        buys = f"One answer of epsilon {short_text(Fraction(budget['left_as_epsilon']))} is left."
    share = round(1000 * min(float(spent / cap), 1.0)) if cap else 1000
    return BudgetFacts(spent, cap, left, share, buys)


def _short(exact: str) -> str:
    """Return an amount of the bundle as people read it; the JSON has it in full."""
    return short_text(Fraction(exact))


def _analysts(budget: dict[str, Any]) -> LedgerTable:
    rows = [
        (
            line["analyst"],
            _short(line["spent"]),
            "-" if line["cap"] is None else _short(line["cap"]),
            _short(line["left"]),
        )
        for line in budget["analysts"]
    ]
    last = "left, permits aside" if any(line.get("permit") for line in budget["caps"]) else "left to them"
    return LedgerTable(("analyst", "spent", "own cap", last), rows)


def _caps(budget: dict[str, Any]) -> LedgerTable:
    rows = [
        (
            line["day"],
            line["analyst"] or ("all under the permit" if line.get("permit") else "everybody"),
            _short(line["cap"]),
            str(line.get("permit") or ""),
        )
        for line in budget["caps"]
    ]
    columns = 4 if any(row[3] for row in rows) else 3
    return LedgerTable(("day", "for", "cap", "permit")[:columns], [row[:columns] for row in rows])


def _permits(permits: Sequence[dict[str, Any]]) -> LedgerTable:
    """Return what each permit allows, and what was spent under it."""
    rows = []
    for own in permits:
        policy = own["policy"]
        rows.append(
            (
                own["permit"],
                f"{_short(own['spent'])} of {_short(own['cap'])}" if own["cap"] else _short(own["spent"]),
                policy.get("expires") or "no last day",
                ", ".join(policy.get("spenders", ())),
                "; ".join(policy.get("purposes", ())) or "anything",
                ", ".join(policy.get("release", ())),
                str(policy.get("approvals", "")),
            )
        )
    heads = ("permit", "spent", "until", "who may spend", "for", "may leave", "owners for a raise")
    return LedgerTable(heads, rows)


def _releases(releases: list[dict[str, Any]], unit: str) -> LedgerTable:
    rows = [
        (
            str(line["entry"]),
            line["at"][:16].replace("T", " "),
            str(line["analyst"]),
            f"{line['question']} on {rows_in_words(line['scope'])}",
            line["epsilon"],
            short_text(Fraction(line["loss"])),
            "not released" if not line["released"] else "released" if line["private"] else "NOT PRIVATE: seeded",
            ": ".join(text for text in (line["permit"], line["purpose"]) if text),
        )
        for line in releases
    ]
    heads = ("entry", "when (UTC)", "analyst", "what was asked", "epsilon", f"charged ({unit})", "answer", "permit")
    kept = [index for index, _ in enumerate(heads) if index < 7 or any(row[7] for row in rows)]
    return LedgerTable([heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _models(released: list[dict[str, Any]]) -> LedgerTable:
    rows = [
        (
            str(line["model"]),
            line["day"],
            str(line["analyst"]),
            str(line.get("algorithm", "")),
            _short(line["epsilon"]) if "epsilon" in line else "",
            ", ".join(map(str, line["entries"][:12])) + (", …" if len(line["entries"]) > 12 else ""),
            line["sha256"],
        )
        for line in released
    ]
    return LedgerTable(("model", "day", "analyst", "algorithm", "epsilon", "entries", "SHA-256 of the file"), rows)


def _events(events: list[dict[str, Any]], of_access: bool) -> LedgerTable:
    rows = [
        (
            line["at"][:16].replace("T", " "),
            str(line["event"]),
            line["analyst"] or "",
            plain_words(line["facts"]),
        )
        for line in events
        if (line["event"] in ACCESS) == of_access
    ]
    return LedgerTable(("when (UTC)", "what", "who", "facts"), rows)
