"""What an AutoClassifier says about its choice: only what follows from this table's releases and its domain.

A policy is a forest that was learned from runs on generated tables. Where it does not tell a table from most of them,
the points it expects are the same for every such table and say nothing about this one: then none are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from privet.choice.arms import ARMS, DEFAULT
from privet.choice.branch import Branch
from privet.choice.features import context
from privet.choice.noisy_if import NoisyIf
from privet.choice.outcome import Outcome
from privet.choice.policy import CautiousForest, Evidence, Policy
from privet.kernel import Domain, Numeric, as_epsilon
from privet.learners.cells import cells_for_learning, coarse_columns
from privet.learners.plan import signal
from privet.release import Histogram
from privet.text import decimal_text, short_text

ELSEWHERE = ("0.01", "0.05", "0.1", "0.25", "0.5", "1", "2", "4")  # epsilons at which a choice is told as well
LISTED = 6  # classes, or columns, that are listed by name
SILENT = "nothing about this table spoke for another learner"


def without_empty_margins(outcome: Outcome, policy: CautiousForest) -> Outcome:
    """Return the outcome without points that are the same for most tables, or that did not decide.

    Parameters
    ----------
    outcome : Outcome
        Of a choice by `policy`.
    policy : CautiousForest

    Returns
    -------
    Outcome
        With the margins it has if the policy tells this table from most of those that it learned from, and no rule
        decided; else without any, and a default that was only taken for want of a reason says so.
    """
    evidence = policy.evidence(outcome.context)
    ruled = policy.rule(outcome.context) is not None
    if evidence is not None and evidence.telling and not ruled:
        return outcome
    if ruled:
        return replace(outcome, margins={})
    why = f"the default: {SILENT}" if outcome.branch == policy.default else f"as on most tables: {SILENT}"
    return replace(outcome, margins={}, why=why, deciding=())


@dataclass(frozen=True)
class Chosen:
    """Which learner was chosen, what spoke for it, and what it would have been elsewhere: all of it public.

    Parameters
    ----------
    outcome : Outcome
    """

    outcome: Outcome
    _policy: Policy
    _domain: Domain
    _epsilon: Fraction
    _counts: Histogram

    @property
    def branch(self) -> str:
        """The learner."""
        return self.outcome.branch

    @property
    def margins(self) -> Mapping[str, float]:
        """By how many points each learner is expected to be ahead of the default, less what the policy is unsure of.

        Empty where the policy does not tell this table from most others, or where a rule decided.
        """
        return self.outcome.margins

    @property
    def context(self) -> Mapping[str, Any]:
        """What the policy was asked with."""
        return self.outcome.context

    @property
    def evidence(self) -> Evidence | None:
        """What the policy's histories say about tables like this one; None where they say nothing."""
        return self._policy.evidence(self.context) if self.margins else None

    @property
    def elsewhere(self) -> dict[str, str]:
        """The learner at other epsilons, by the same counts: as if the noise were the same."""
        return {epsilon: self.at(epsilon) for epsilon in ELSEWHERE}

    def at(self, epsilon: Any) -> str:
        """Return the learner at another epsilon."""
        choice = NoisyIf("learner", {name: Branch.of(name) for name in ARMS}, DEFAULT, policy=self._policy)
        return choice.pick(context(self._domain, as_epsilon(epsilon), self._counts)).branch

    def explain(self) -> str:
        """Return the choice for people: what was taken, what was released and declared, and what spoke for it."""
        spent = self.outcome.spent
        lines = [
            f"{self.outcome.site}: {self.branch}, {self.outcome.why}",
            f"spent {decimal_text(spent) if self._counts.delta is None else f'rho {short_text(spent)}'}",
        ]
        if self.outcome.deciding:
            known = ((name, self.context[name]) for name in self.outcome.deciding if name in self.context)
            lines.append("decided mostly by " + ", ".join(f"{name} {value:.2g}" for name, value in known))
        lines += [*self._lead(), self._class_counts(), self._signal(), self._shape(), *self._bins(), self._others()]
        return "\n".join(lines)

    def _lead(self) -> list[str]:
        """By how much the learner leads on generated tables like this one, and how sure that is."""
        evidence = self.evidence
        if evidence is None:
            return []
        others = {name: points for name, points in evidence.ahead.items() if name != self.branch}
        rival = max(others, key=lambda name: others[name][0]) if self.branch == DEFAULT else DEFAULT
        lead = evidence.ahead[self.branch][0] - others[rival][0]
        spread = max(evidence.ahead[self.branch][1], others[rival][1])  # the default's is 0: points are against it
        like = f"(about {_rounded(evidence.runs)} of {_rounded(evidence.all_runs)} runs)"
        points = f"by {abs(lead):.1f} points, ± {spread:.1f} between the policy's trees"
        if lead < 0:
            result = f"{rival} was ahead {points}: too unsure to leave the default"
        else:
            result = f"{self.branch} was ahead of {rival}, {self._rank}, {points}"
        return [f"on generated tables like this one {like} {result}"]

    @property
    def _rank(self) -> str:
        return "the next best" if self.branch == DEFAULT else "the default"

    def _class_counts(self) -> str:
        """The noisy class counts and their error."""
        counts, labels = self._counts.values.tolist(), self._counts.labels[0]
        shown = ", ".join(f"{label} {count:,}" for label, count in list(zip(labels, counts, strict=True))[:LISTED])
        more = f" and {len(counts) - LISTED} more classes" if len(counts) > LISTED else ""
        error = self._counts.noise.error(0.95)
        return f"noisy class counts: {shown}{more} (each ± {error:,} at 95%)"

    def _rows(self) -> float:
        clipped = float(np.maximum(self._counts.values, 0).sum())
        return max(float(self._domain.rows or clipped), 1.0)

    def _signal(self) -> str:
        """Rows times epsilon, on which everything depends that can be learned."""
        rows, classes = self._rows(), len(self._domain.classes)
        total = signal(self._domain, rows, self._epsilon)
        origin = "declared" if self._domain.rows is not None else "noisy"
        shared = f", shared by {self._domain.rows_per_person} rows of a person" * (self._domain.rows_per_person > 1)
        return (
            f"rows x epsilon: about {_rounded(total)}, {_rounded(total / classes)} for each class "
            f"({origin} rows {_rounded(rows)}{shared})"
        )

    def _shape(self) -> str:
        """What the domain declares."""
        columns = [self._domain[name] for name in self._domain.attributes]
        numeric = sum(isinstance(column, Numeric) for column in columns)
        cells = sum(column.size for column in columns)
        return f"domain: {len(columns)} attributes, {numeric} of them numeric; {cells:,} cells"

    def _bins(self) -> list[str]:
        """The columns whose bins are coarse against their grid, and what the learner makes of them."""
        if self._counts.delta is not None:  # there all numbers have fine cells from some signal on
            return []
        coarse = coarse_columns(self._domain)
        finer = cells_for_learning(self._domain, signal(self._domain, self._rows(), min(self._epsilon, Fraction(1))))
        lines = []
        for column in coarse[:LISTED]:
            bins = f"'{column.name}' has {column.bin_count} bins for {column.grid_size:,} values"
            lines.append(f"coarse bins: {bins}; {self._use(column.bin_count, finer.numeric(column.name).bin_count)}")
        return [*lines, f"coarse bins: {len(coarse) - LISTED} more columns"] if len(coarse) > LISTED else lines

    def _use(self, declared: int, finer: int) -> str:
        """What the learner makes of a column with coarse bins."""
        algorithm = ARMS[self.branch].algorithm
        if algorithm == "boosted" and finer > declared:
            return f"boosted tables of it alone have {finer}"
        if algorithm == "boosted":
            return "rows x epsilon are too few for finer ones"
        return {"id3plus": "a tree cuts at any value", "prior": "class shares look at no column"}.get(
            algorithm, "they are used as they are"
        )

    def _others(self) -> str:
        """The learners at other epsilons."""
        others: dict[str, list[str]] = {}
        for epsilon, branch in self.elsewhere.items():
            others.setdefault(branch, []).append(epsilon)
        return "at other epsilons: " + "; ".join(f"{name} at {', '.join(at)}" for name, at in others.items())

    def __repr__(self) -> str:
        return f"<{self.outcome.site}: {self.branch}, {self.outcome.why}>"


def _rounded(number: float) -> str:
    """Return a number with two digits that count: more would be made up."""
    return f"{float(f'{number:.2g}'):,.6g}" if number < 10**15 else f"{number:.2g}"
