"""What a verification found: evidence, and what follows from it about a claim."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.text import decimal_text

# Probabilities that are computed are floats; a loss found from them is exact to this.
FLOAT_ERROR = 1e-6

# A test that would miss twice the claim decides nothing: the usual mistakes cost a factor of two (two answers for the
# price of one, a person who is in two counts, the half that is forgotten in the exponential mechanism).
POOR = 2

BROKEN, HOLDS, UNDECIDED = "broken", "holds", "undecided"


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
    # the smallest probability of an event of one table alone that would have been found with probability 99%
    rarity: float = math.inf

    def to_dict(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in asdict(self).items()}


HEADLINES = {
    BROKEN: "BROKEN, it loses more than it says",
    HOLDS: "holds as far as tested",
    UNDECIDED: "UNDECIDED, no power is no pass",
}
WIDTH = 80  # of a line of text
WHAT_TO_DO = "raise the effort, or bring pairs of tables that differ more"


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
        """The smallest epsilon whose noise, sold as the claim, would have been found, by whatever was tried."""
        return min(finding.power for finding in self.findings)

    @property
    def drawn_power(self) -> float:
        """The same by samples alone: what is computed shows what the code does if its draws follow their formulas."""
        return min((finding.power for finding in self.findings if finding.alpha), default=math.inf)

    @property
    def rarity(self) -> float:
        """The smallest probability of an event of one table alone that samples would have found."""
        return min(finding.rarity for finding in self.findings)

    @property
    def outcome(self) -> str:
        """One of "broken" (more than the claim was shown), "holds" (as far as tested) and "undecided" (no power)."""
        if self.lower_bound > float(self.claim) * (1 + FLOAT_ERROR) + FLOAT_ERROR:
            return BROKEN
        return HOLDS if self.power <= POOR * float(self.claim) * (1 + FLOAT_ERROR) else UNDECIDED

    @property
    def passed(self) -> bool:
        """True where no more than the claim was shown by a test that would have shown more."""
        return self.outcome == HOLDS

    @property
    def as_expected(self) -> bool:
        """An honest subject passed, or a known-bad one was caught."""
        return self.outcome == (BROKEN if self.must_fail else HOLDS)

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "kind": self.kind,
            "line": self.line,
            "claim": decimal_text(self.claim),
            "lower_bound": _plain(self.lower_bound),
            "outcome": self.outcome,
            "passed": self.passed,
            "must_fail": self.must_fail,
            "alpha": self.alpha,
            "power": _plain(self.power),
            "drawn_power": _plain(self.drawn_power),
            "rarity": _plain(self.rarity),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Verdict:
        findings = tuple(
            Finding(**{**finding, **{name: float(finding[name]) for name in ("bound", "power", "rarity")}})
            for finding in facts["findings"]
        )
        return cls(
            facts["subject"], facts["kind"], facts["line"], Fraction(facts["claim"]), findings, facts["must_fail"]
        )

    def __str__(self) -> str:
        claim = decimal_text(self.claim)
        lines = [f"{self.subject}: {HEADLINES[self.outcome]}"]
        lines.append(f"  claims epsilon {claim}, loses at least {number(self.lower_bound)}")
        for finding in sorted(self.findings, key=lambda finding: -finding.bound):
            shown = number(max(0.0, finding.bound))
            lines.append(f"  {shown:>8}  {finding.method} ({finding.runs} runs), {finding.tables}: {finding.event}")
        if self.alpha:
            lines.append(f"  each bound above is right but for a probability of at most {self.alpha:.1g} in all")
        if self.outcome != BROKEN:
            lines += [f"  {sentence}" for sentence in self.power_sentences]
        return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent=" " * 12) for line in lines)

    @property
    def power_sentences(self) -> list[str]:
        """What would have been found, had it been there, in 99 of 100 such tests."""
        claim = decimal_text(self.claim)
        computed = min((finding.power for finding in self.findings if not finding.alpha), default=math.inf)
        if math.isinf(self.power):
            sentences = ["no output told the tables apart, so this test may miss a mechanism of any epsilon"]
        elif computed <= float(self.claim) * (1 + 1e-3):
            sentences = ["any loss above the claim on these tables is found by arithmetic"]
        else:
            sentences = [
                f"a mechanism of epsilon {number(self.power)}, sold as {claim}, is found in 99 of 100 such tests"
            ]
        if self.alpha and self.drawn_power > self.power * (1 + FLOAT_ERROR):
            never = math.isinf(self.drawn_power)
            drawn = "nothing is sure to be found" if never else f"epsilon {number(self.drawn_power)} is found"
            sentences[0] += f"; by samples alone {drawn}"
        if math.isfinite(self.rarity) and self.rarity < 1:
            often = f"1 of {math.floor(1 / self.rarity)} runs"
            sentences.append(f"an output that only one of the tables can give is found if it comes in {often}")
        if self.outcome == UNDECIDED:
            sentences.append(f"this test would miss {POOR} times the claim, so it decides nothing: {WHAT_TO_DO}")
        return sentences

    def _repr_html_(self) -> str:
        """What a notebook shows: the outcome, the evidence and what would have been found."""
        from privet.verification.page import notebook_card

        return notebook_card(self)

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
    def outcome(self) -> str:
        """Return "broken" if an honest subject is broken, a known-bad one is missed or an attack got through.

        Else what the verdicts say. An attack that cannot be decided on a layer says so itself and does not count here.
        """
        if any(result.held is False for result in self.attacks):
            return BROKEN
        if any(v.outcome == BROKEN or v.must_fail for v in self.verdicts if not v.as_expected):
            return BROKEN
        return HOLDS if all(verdict.as_expected for verdict in self.verdicts) else UNDECIDED

    @property
    def passed(self) -> bool:
        """Everything honest held, with power, and everything known to be bad was caught."""
        return self.outcome == HOLDS

    def to_dict(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome,
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
