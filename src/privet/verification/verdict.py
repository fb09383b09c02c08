"""What a verification found: evidence, and what follows from it about a claim."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.column import decimal_text

# Probabilities that are computed and not sampled are floats: what they say of a loss is less exact than this.
FLOAT_ERROR = 1e-6


@dataclass(frozen=True)
class Finding:
    """One piece of evidence: two tables, an event, and the loss it shows."""

    method: str
    tables: str
    event: str
    bound: float  # the loss is at least this
    runs: int
    alpha: float = 0.0  # the probability that the bound is wrong; 0 where nothing was sampled
    # the smallest epsilon whose noise, sold as the claim, would have been found with probability 99%
    power: float = math.inf
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Verdict:
    """A claim of epsilon, held against everything that was tried."""

    subject: str
    kind: str
    line: str
    claim: Fraction
    findings: tuple[Finding, ...]
    must_fail: bool = False  # a known-bad fixture: the bench works if this is caught

    @property
    def worst(self) -> Finding:
        """The evidence with the largest bound."""
        return max(self.findings, key=lambda finding: finding.bound)

    @property
    def lower_bound(self) -> float:
        """The loss is at least this; 0 where nothing was found."""
        return max(0.0, self.worst.bound)

    @property
    def alpha(self) -> float:
        """The probability that `lower_bound` is wrong."""
        return sum(finding.alpha for finding in self.findings)

    @property
    def power(self) -> float:
        """The smallest epsilon whose noise, sold as the claim, would have been found: by sampling, where there is any.

        Computed probabilities find any excess, but only what is drawn shows that they are those of the product.
        """
        sampled = [finding.power for finding in self.findings if finding.alpha]
        return min(sampled or [finding.power for finding in self.findings])

    @property
    def passed(self) -> bool:
        """True where no more than the claim was shown."""
        return self.lower_bound <= float(self.claim) * (1 + FLOAT_ERROR) + FLOAT_ERROR

    @property
    def as_expected(self) -> bool:
        """An honest subject passed, or a known-bad one was caught."""
        return self.passed != self.must_fail

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "kind": self.kind,
            "line": self.line,
            "claim": decimal_text(self.claim),
            "lower_bound": _plain(self.lower_bound),
            "passed": self.passed,
            "must_fail": self.must_fail,
            "alpha": self.alpha,
            "power": _plain(self.power),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Verdict:
        findings = tuple(
            Finding(**{**each, "bound": float(each["bound"]), "power": float(each["power"])})
            for each in facts["findings"]
        )
        return cls(
            facts["subject"], facts["kind"], facts["line"], Fraction(facts["claim"]), findings, facts["must_fail"]
        )

    def __str__(self) -> str:
        claim = decimal_text(self.claim)
        said = "no more than that was found" if self.passed else "IT LOSES MORE THAN IT SAYS"
        lines = [f"{self.subject}: claims epsilon {claim}, loses at least {number(self.lower_bound)}: {said}"]
        for each in sorted(self.findings, key=lambda finding: -finding.bound):
            lines.append(
                f"  {number(max(0.0, each.bound)):>8}  {each.method} ({each.runs} runs), {each.tables}: {each.event}"
            )
        if self.alpha:
            lines.append(f"  wrong with probability {self.alpha:.1g} at most")
        if self.passed and math.isfinite(self.power):
            lines.append(
                f"  noise for {number(self.power)}, sold as {claim}, would have been found in 99 of 100 such runs"
            )
        return "\n".join(lines)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with all evidence; written to a file if one is named."""
        return Report((self,)).to_html(path)


@dataclass(frozen=True)
class Report:
    """Verdicts, attacks on a layer and attack curves: what `privet verify` prints and writes."""

    verdicts: tuple[Verdict, ...] = ()
    attacks: tuple[Any, ...] = ()
    layer: str = ""
    curves: tuple[dict[str, Any], ...] = ()

    @property
    def passed(self) -> bool:
        """Everything honest held and everything known to be bad was caught."""
        held = all(result.held is not False for result in self.attacks)
        return held and all(verdict.as_expected for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "alpha": sum(verdict.alpha for verdict in self.verdicts if not verdict.must_fail),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "layer": self.layer,
            "attacks": [result.to_dict() for result in self.attacks],
            "curves": list(self.curves),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that can be read by itself; written to a file if one is named."""
        from privet.verification.page import page

        content = page(self)
        if path is not None:
            Path(path).write_text(content, encoding="utf-8")
        return content


def number(value: float, digits: int = 3) -> str:
    """A bound as people read it."""
    return "infinity" if value == math.inf else f"{value:.{digits}f}"


def _plain(value: Any) -> Any:
    """JSON has no infinity: it is written as text, and read back by `float`."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
