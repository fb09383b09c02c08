"""An entry for the OpenDP deployments registry, from a ledger and the words of its owner.

The schema is pinned beside this file. What the ledger knows is filled in; what only the owner can say is taken from
`OwnerWords`, or left as a sentence that says so.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.errors import QuestionError, did_you_mean
from privet.kernel import Ledger, unit_with
from privet.owner_reports.bundle import NOT_COVERED, amount, audit_bundle
from privet.text import clean, read_text

SCHEMA = Path(__file__).parent / "registry-schema.yaml"
SAY = "To be said by the owner."
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_LONGEST = 2**16  # characters of the owner's words


@dataclass(frozen=True)
class OwnerWords:
    """What only the owner of the data can say; a file of `name = "text"` lines (TOML) may have them."""

    curator: str = SAY
    name: str = ""
    description: str = ""
    use: str = SAY
    region: str = SAY
    sector: str = ""
    preprocessing: str = SAY
    justification: str = SAY
    sources: str = ""
    author: str = SAY

    @classmethod
    def load(cls, path: Path) -> OwnerWords:
        """Read the words from a file.

        Raises
        ------
        QuestionError
            It cannot be read, or says something that is not asked.
        """
        try:
            content = tomllib.loads(read_text(path, _LONGEST) or "")
        except OSError as error:
            raise QuestionError(f"cannot read '{path}' ({error.strerror}); check the path.") from None
        except ValueError:
            raise QuestionError(
                f"'{path}' is no TOML file; write lines such as curator = \"Example Hospital\"."
            ) from None
        known = [own.name for own in fields(cls)]
        for name, value in content.items():
            if name not in known or not isinstance(value, str):
                what = f"says '{name}'{did_you_mean(name, known)}" if name not in known else f"has no text for '{name}'"
                raise QuestionError(f"'{path}' {what}; it may have {', '.join(known)}.")
        words = cls(**content)
        if words.sector and words.sector not in SECTORS:
            raise QuestionError(f"the sector is one of {', '.join(SECTORS)}, not '{words.sector}'.")
        return words


def registry_entry(ledger: Ledger, dataset: str, words: OwnerWords | None = None) -> dict[str, Any]:
    """Return an entry of tier 3 about a data set, valid against the pinned schema.

    Parameters
    ----------
    ledger : Ledger
    dataset : str
    words : OwnerWords, optional

    Raises
    ------
    LedgerError
        The ledger has no such data set.
    """
    own, bundle = words or OwnerWords(), audit_bundle(ledger, dataset)
    budget, promise, releases = bundle["budget"], bundle["promise"], bundle["releases"]
    delta = promise["delta"]
    unit = unit_with(None if delta is None else Fraction(delta))
    cap, served = Fraction(budget["cap"]), bundle["ledger"]["served"]
    days = [line["at"][:10] for line in releases if line["released"]]
    day = min(days, default=datetime.now(UTC).date().isoformat())
    name = own.name or f"Differentially private answers about {dataset}"
    curator = own.curator if own.curator != SAY else "owner"
    versions = sorted({str(line.body["version"]) for line in ledger.lines(0, 10**6) if line.kind == "charge"})
    parameters: dict[str, Any] = {"epsilon": float(cap)}
    if delta is not None:
        parameters = {"epsilon": float(unit.buys(cap)), "delta": float(Fraction(delta)), "rho": float(cap)}
    counted = "epsilon" if delta is None else "rho"
    noise = "two-sided geometric noise" if delta is None else "discrete Gaussian noise"
    choice = "permute-and-flip, or report noisy max" if delta is None else "the exponential mechanism"
    answered, models = sum(line["released"] for line in releases), len(bundle["models"]["released"])
    keys, lines = bundle["ledger"]["keys"], bundle["ledger"]["lines"]
    signed = f"Its keys: {', '.join(keys)}." if keys else "It is not signed."
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", f"{dataset} {curator} {day[:4]}".lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [own.curator],
                "intended_use": own.use,
                "data_product_type": "Interactive API" if served else _product(bundle),
                "data_product_region": own.region,
                "description": own.description
                or f"{_many(answered, 'answer')} and {_many(models, 'model')} about one table, made by privet.",
                "publication_date": day,
                **({"data_product_sector": own.sector} if own.sector else {}),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if delta is None else "Zero-concentrated DP",
                "data_domain": "All tables whose rows fit the public domain, of any number of rows. SHA-256 of its "
                f"cells: {bundle['unprotected']['domain_sha256']}.",
                "unprotected_quantities": bundle["unprotected"]["what"],
            },
            "privacy_loss": {
                "privacy_unit": "Person",
                "privacy_unit_details": f"{promise['neighbours']} Losses are {promise['protects']}.",
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"The cap is {counted} {amount(budget['cap'])} for all analysts "
                f"together, and never refreshed. Spent so far: {amount(budget['spent'])}, exactly.",
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": "The owner holds the rows; "
                + ("analysts reach a server over HTTPS." if served else "answers are made where the rows are."),
                "actors": "The owner is trusted with the rows. Analysts are not trusted and may collude: the cap holds "
                "for all of them together. Whoever sees a release is no better off than they.",
                "release_type": "Many releases" if answered > 1 else "One release",
                "release_type_details": "The budget does not reset. When it is spent, nothing more is answered, unless "
                "the owner raises the cap, which the ledger records.",
                "data_source_type": "Static",
                "data_source_type_details": "One version of the rows for each opening of the table.",
                "access_type": "Interactive" if served else "Non-interactive",
                "access_type_details": "One cap for the data set, and one for each analyst who was given one; that "
                "analysts do not collude is not assumed.",
            },
            "accounting": {
                "post_processing": "None by the kernel; models are computed from releases alone.",
                "composition": bundle["composition"]["rule"],
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": own.preprocessing,
                "mechanisms": f"Numbers get {noise}, choices {choice}; exact integer samplers, no floating point. "
                f"privet {', '.join(versions) or bundle['ledger']['version']}. Not covered: {' '.join(NOT_COVERED)}",
                "justification": own.justification,
            },
            "administrative": {
                "sources": own.sources,
                "notes": f"Written by privet from ledger {bundle['ledger']['id']} of {lines} lines. {signed}",
                "registry_authors": [own.author],
            },
        },
    }


def _product(bundle: dict[str, Any]) -> str:
    return "Machine learning model" if bundle["models"]["released"] else "Summary statistics"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def to_yaml(value: Any, indent: int = 0) -> str:
    """Return JSON values as YAML: mappings and lists in blocks, texts in double quotes.

    >>> print(to_yaml({"name": "a: b", "tiers": [1], "of": {"x": 0.5}}), end="")
    name: "a: b"
    tiers:
      - 1
    of:
      x: 0.5
    """
    pad = " " * indent
    if isinstance(value, dict):
        parts = []
        for name, own in value.items():
            nested = isinstance(own, dict | list) and own
            parts.append(f"{pad}{name}:" + (f"\n{to_yaml(own, indent + 2)}" if nested else f" {_scalar(own)}\n"))
        return "".join(parts)
    return "".join(f"{pad}- {_scalar(own)}\n" for own in value)


def _scalar(value: Any) -> str:
    """Return a JSON value as YAML reads it: there 1e-06 is a text, and \\ud83d half a letter."""
    if isinstance(value, float):
        return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value))
    return json.dumps(clean(value) if isinstance(value, str) else value, ensure_ascii=False)
