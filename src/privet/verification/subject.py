"""Something that claims an epsilon: a name, what it is, and how to look for a larger loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from threadpoolctl import threadpool_limits

from privet.verification.checks import Check
from privet.verification.verdict import Finding, Verdict

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much to try: `times` the default runs, and tables drawn with this seed beside the known ones."""

    times: float = 1.0
    seed: int = 0

    def of(self, runs: int) -> int:
        return max(6, round(self.times * runs))


DEFAULT = Effort()

Checks = Callable[[Fraction, Effort], Sequence[Check]]  # for noise of this epsilon


@dataclass(frozen=True)
class Subject:
    """What can be verified by name; of a known-bad one the claim is what its paper or its vendor says."""

    name: str
    kind: str  # mechanism, question, preset, estimator, function, peer or known-bad
    line: str
    checks: Checks
    must_fail: bool = False
    delta: Fraction | None = None  # of the claim; None: pure epsilon
    in_rho: Callable[[Fraction, Effort, Fraction], Sequence[Check]] | None = None  # its checks with a delta, if it has

    def verify(
        self,
        claim: Fraction,
        alpha: float,
        effort: Effort = DEFAULT,
        progress: Progress = lambda text: None,
    ) -> Verdict:
        """Hold the claim against every check; together they are wrong with probability `alpha` at most."""
        checks = self.checks(claim, effort)
        sampled = sum(check.sampled for check in checks)
        findings: list[Finding] = []
        with threadpool_limits(1):  # a distinguisher is small: threads would only wait for each other
            for place, check in enumerate(checks):
                progress(f"{self.name}: check {place + 1} of {len(checks)}")
                findings.append(check.find(float(claim), alpha / sampled if check.sampled else 0.0))
        return Verdict(self.name, self.kind, self.line, claim, tuple(findings), self.must_fail, self.delta)
