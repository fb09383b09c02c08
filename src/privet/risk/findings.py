"""What an audit found: beliefs of adversaries, what they disclose, who is exposed, what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import ModelError
from privet.models.epsilon import factor
from privet.models.tree import Ensemble
from privet.risk.constraints import Counted
from privet.risk.disclosure import OwnRow
from privet.risk.measures import SAME, Disclosure, Exposure, Ranking, individual, strongest
from privet.risk.people import Belief, People
from privet.risk.publication import Publication
from privet.risk.tree import Floats, PublishedTree
from privet.text import clean, shortened

# -- One way to publish less: what it does to the worst posterior, and the accuracy that it costs.


@dataclass(frozen=True, eq=False)
class Remedy:
    """What to do, in a sentence, and what an audit of the result gives."""

    kind: str  # "merge leaves", "withhold counts", "withhold rates", "epsilon"
    told: str
    enough: bool  # is every posterior below the threshold then?
    worst: float | None = None
    known: int | None = None
    accuracy: float | None = None  # of the labels, for the people of the table
    accuracy_before: float | None = None
    merged: tuple[int, ...] = ()  # nodes of the published tree that become leaves
    tree: PublishedTree | None = field(default=None, repr=False)  # what to publish instead
    is_guess: bool = False  # are labels and numbers of merged leaves estimates?
    groups: tuple[str, ...] = ()  # of people, whose numbers are to be withheld, or parts of the tree to be merged

    @property
    def short(self) -> str:
        """What to do, without the list of nodes."""
        return self.told if not self.groups else f"{self.told.partition(': ')[0]}."

    @property
    def is_unknown(self) -> bool:
        """Was nobody found whom it leaves exposed, where not everything can be computed?"""
        return not self.enough and self.known == 0

    @property
    def cost(self) -> float | None:
        """How much accuracy it costs."""
        if self.accuracy is None or self.accuracy_before is None:
            return None
        return self.accuracy_before - self.accuracy

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "told": self.told,
            "enough": self.enough,
            "worst": self.worst,
            "known": self.known,
            "accuracy": self.accuracy,
            "accuracy before": self.accuracy_before,
            "groups": list(self.groups),
        }

    def save(self, path: str | Path) -> None:
        """Write the safer tree: a privet model as one, any other as the text of a tree that `audit` reads again.

        A privet model holds counts: where less is to be published it is written as a text too."""
        if self.tree is None:
            raise ModelError(f"the remedy '{self.kind}' makes no tree that could be written.")
        if self.is_guess:
            raise ModelError("what merged leaves say does not follow from what was published; give the truth as well.")
        if isinstance(self.tree.model, Ensemble):
            model = self.tree.model
            at = np.zeros(len(model.tree), dtype=np.bool_)
            at[list(self.merged)] = True
            Ensemble(model.domain, (model.tree.cut(at),), model.privacy, model.vote, model.prior).save(path)
            return
        from privet.risk.readers.weka import write

        Path(path).write_text(write(self.tree), encoding="utf-8")


SCHEMA = "privet-audit-2"  # docs/reference/audit.schema.json
DENIABLE = 0.5  # the most that a row may add by a promise, whatever the rows: epsilon 1.1
LOOSE = 0.1  # of a person: sums that are missed by more leave open what follows for one
FEW = 10  # people of a cell, below which statistical offices look twice
LETTERS = 300  # of a label
BASELINES = ("uniform", "marginal")
DISCLOSURE, POSTERIOR = "disclosure", "posterior"  # what headlines follow
MAXIMUM, ALONE, WORLDS = "maximum entropy", "leaves alone", "possible worlds"


PUBLISH, AFTER, NEVER = "publish", "publish after these changes", "do not publish"


@dataclass(frozen=True)
class Recommendation:
    """What to do about publishing a model, the reason in a sentence or two, and the remedy that it speaks of."""

    kind: str
    reason: str
    remedy: Remedy | None = None

    @property
    def title(self) -> str:
        """The verdict as a headline."""
        return f"{self.kind[0].upper()}{self.kind[1:]}"

    @property
    def sentence(self) -> str:
        """The reason as a sentence of its own."""
        return f"{self.reason[0].upper()}{self.reason[1:]}"

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Audit:
    """What one published model tells about the people of a table.

    `beliefs` and `overall` are by adversary: the baselines, who have not seen the model, and those who have.
    """

    name: str
    sensitive: str
    values: tuple[str, ...]
    people: People
    beliefs: Mapping[str, Belief]
    overall: Mapping[str, Disclosure]
    own: OwnRow = field(repr=False)  # baseline, inference and disclosure of everybody
    measure: str
    threshold: float
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    exposures: tuple[Exposure, ...] = ()
    names: bool = False  # may reports show quasi-identifiers of people?
    remedies: tuple[Remedy, ...] = ()
    counted: Counted | None = None
    publication: Publication | None = field(default=None, repr=False)  # None where a model is audited by predictions
    truth: Floats | None = field(default=None, repr=False)  # true values [profile, value]
    epsilon: float | None = None
    delta: float | None = None  # the chance that the promise of epsilon leaves out

    @property
    def adversaries(self) -> dict[str, Belief]:
        """Those who have seen the model; whoever looks at its leaves alone knows no more than they do."""
        return {name: belief for name, belief in self.beliefs.items() if name not in (*BASELINES, ALONE)}

    @property
    def baseline(self) -> Belief:
        """The best informed of those who have not seen the model."""
        return self.beliefs.get("marginal", self.beliefs["uniform"])

    @property
    def posterior(self) -> Floats:
        """For each profile the shares of the adversary who is surest of it."""
        return strongest(self.adversaries)[0]

    @property
    def by_own_row(self) -> bool:
        """Do headlines, thresholds and remedies follow what the own row adds?"""
        return self.measure == DISCLOSURE

    @property
    def worst(self) -> float:
        """The most that anybody's own row adds; or the largest posterior of anybody, where that is the measure."""
        if self.by_own_row:
            return self.own.largest
        return max(self.overall[name].worst for name in self.adversaries)

    @property
    def scores(self) -> Floats:
        """The same for somebody of each profile."""
        return self.own.by_profile if self.by_own_row else np.asarray(self.posterior.max(axis=1))

    @property
    def reached(self) -> Floats:
        """How many people of each profile reach the threshold."""
        if self.by_own_row:
            return self.own.concerned(self.threshold) if self.own.is_computed else np.zeros(len(self.people))
        return np.where(self.scores >= self.threshold - SAME, self.people.sizes, 0).astype(np.float64)

    @property
    def known(self) -> int:
        """How many people reach the threshold."""
        return round(float(self.reached.sum()))

    @property
    def ranked(self) -> Ranking:
        """For each profile the value by which it is exposed most, and its numbers."""
        own, shares = self.own, self.posterior
        if self.by_own_row:
            value = np.argmax(np.where(own.people > SAME, own.disclosure, -1.0), axis=1)
        else:
            value = np.argmax(shares, axis=1)
        at = (np.arange(len(self.people)), value)
        posterior = own.inference[at] + own.disclosure[at] if self.by_own_row else shares[at]
        base = own.baseline if self.by_own_row else self.baseline.shares
        return Ranking(self.scores, value, posterior, base[at], own.inference[at], own.disclosure[at])

    @property
    def undecided(self) -> int:
        """How many people are in leaves of which nothing follows either way."""
        if self.missed > LOOSE:
            return self.people.total
        return 0 if self.publication is None else undecided(self.publication, self.by_own_row, self.threshold)

    @property
    def missed(self) -> float:
        """By how much of a person the belief of who holds several trees misses what they say."""
        return max((float(belief.facts.get("missed", 0.0)) for belief in self.beliefs.values()), default=0.0)

    @property
    def safe(self) -> bool:
        """Does nobody reach the threshold, and is that known? Or can no row shift a probability by half, by epsilon?"""
        if self.by_own_row and self.own.bound is not None and self.own.bound <= DENIABLE:
            return True  # whatever the rows
        return self.worst < self.threshold - SAME and not self.undecided

    @property
    def individuals(self) -> pd.DataFrame:
        """A row for each profile: its people, its leaf, and for each adversary the likeliest value and how likely."""
        people = self.people
        columns: dict[str, Any] = {
            attribute.name: [attribute.texts[code] for code in people.codes[:, at].tolist()]
            for at, attribute in enumerate(people.attributes)
        }
        columns["people"] = people.sizes
        if self.publication is not None:
            tree = self.publication.tree
            paths = {leaf: tree.where(leaf) for leaf in self.publication.leaves}
            columns["leaf"] = [paths.get(leaf, "") for leaf in self.publication.leaf.tolist()]
        for name, belief in self.beliefs.items():
            columns[f"{name}: value"] = [self.values[at] for at in np.argmax(belief.shares, axis=1).tolist()]
            columns[f"{name}: posterior"] = belief.shares.max(axis=1)
            if self.truth is not None:
                columns[f"{name}: divergence"] = individual(people, belief.shares, self.truth)
        ranked = self.ranked
        columns["exposed value"] = [self.values[at] for at in ranked.value.tolist()]
        for head, numbers in (
            ("baseline", ranked.baseline),
            ("inference", ranked.inference),
            ("disclosure", ranked.disclosure),
        ):
            columns[head] = numbers
        return pd.DataFrame(columns)

    def probabilities(self, adversary: str = "maximum entropy") -> pd.DataFrame:
        """P(value | profile) of one adversary, a row for each profile in the order of `individuals`."""
        return pd.DataFrame(self.beliefs[adversary].shares, columns=list(self.values))

    @property
    def verdict(self) -> Recommendation:
        """What to do about publishing the model, and why."""
        if self.safe:
            return Recommendation(PUBLISH, _nobody(self))
        remedy = self.best
        if remedy is not None and remedy.worst is None:  # another model, which nobody has grown yet
            return Recommendation(NEVER, f"{_somebody(self)} No change that was tried is enough. {remedy.told}", remedy)
        if remedy is not None:
            return Recommendation(AFTER, f"{_somebody(self)} {plain(remedy.short)}{_accuracies(remedy)}", remedy)
        if self.remedies:
            return Recommendation(NEVER, f"{_somebody(self)} No remedy that was tried is enough.")
        why = "no remedy was looked for" if self.publication is not None else "it has no leaves that could be merged"
        return Recommendation(NEVER, f"{_somebody(self)} As it is, do not publish it; {why}.")

    @property
    def best(self) -> Remedy | None:
        """The remedy that is enough and costs the least accuracy; one that was tried comes before one that was not."""
        enough = [remedy for remedy in self.remedies if remedy.enough]
        return min(enough, key=lambda each: (each.worst is None, each.cost is None, each.cost or 0.0), default=None)

    @property
    def summary(self) -> dict[str, dict[str, float | int]]:
        """Baseline, inference and disclosure: of an average person, and the most of anybody."""
        own = self.own
        found: dict[str, dict[str, float | int]] = {}
        for name, numbers in (
            ("baseline", own.baseline),
            ("inference", own.inference),
            ("disclosure", own.disclosure),
        ):
            found[name] = {"mean": own.mean(numbers), "most": own.most(numbers)}
        if not own.is_counted:  # values as frequent as the baseline has them, whatever the model says
            found["baseline"]["mean"] = float((own.baseline[0] ** 2).sum())
        return found

    # -- telling it -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The audit for programs: numbers and sentences, no row for each profile."""
        return {
            "model": self.name,
            "sensitive": self.sensitive,
            "values": list(self.values),
            "people": self.people.total,
            "profiles": len(self.people),
            "epsilon": self.epsilon,
            "schema": SCHEMA,
            "verdict": {"kind": self.verdict.kind, "reason": self.verdict.reason},
            "measure": self.measure,
            "threshold": self.threshold,
            "worst": self.worst,
            "known": self.known,
            **self.summary,
            "bound": self.own.bound,
            "computed": self.own.is_computed,
            "constraints": None if self.counted is None else asdict(self.counted),
            "adversaries": {
                name: {
                    **self.overall[name].to_dict(),
                    "exact": belief.exact,
                    "facts": dict(belief.facts),
                    "notes": list(belief.notes),
                }
                for name, belief in self.beliefs.items()
            },
            "most exposed": [self._shown(exposure) for exposure in self.exposures],
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "sacro": self._output_check(),
        }

    def _shown(self, exposure: Exposure) -> dict[str, Any]:
        """An exposure as reports may show it: without quasi-identifiers, unless their readers may see them."""
        found = asdict(exposure)
        if not self.names:
            del found["who"], found["profile"]
        return found

    def _output_check(self) -> dict[str, Any]:
        """The audit as an entry of ACRO's results.json, which SACRO's viewer lists (docs/how-to/audit.md)."""
        status = {PUBLISH: "pass", AFTER: "review", NEVER: "fail"}[self.verdict.kind]
        publication = self.publication
        sizes = [] if publication is None else [int(publication.sizes[leaf]) for leaf in publication.leaves]
        pure = 0 if publication is None else sum(publication.pure(leaf) for leaf in publication.leaves)
        few = sum(size < FEW for size in sizes)
        checks: dict[str, int | bool] = {"suppressed": False, "negative": 0, "missing": 0, "threshold": few}
        checks |= {"p-ratio": 0, "nk-rule": 0, "all-values-are-same": pure}  # the rest is about sums of amounts
        return {
            "uid": self.name,
            "status": status,
            "type": "model",
            "properties": {"method": "privet audit", "measure": self.measure, "threshold": self.threshold},
            "files": [{"name": self.name, "sdc": {"summary": checks}}],
            "outcome": {"concerned": {self.name: self.known}, "most": {self.name: self.worst}},  # a frame's columns
            "command": "privet audit",
            "summary": f"{status}; {self.verdict!s}",
            "timestamp": "",  # the same audit is the same file
            "comments": [],
            "exception": "",
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The audit as JSON; written to a file if one is named."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None, beside: Audit | None = None) -> str:
        """Return the report a privacy officer reads: one file that loads nothing.

        Parameters
        ----------
        path : str or Path, optional
            Where it is written as well.
        beside : Audit, optional
            A second audit, to compare.
        """
        from privet.risk.page import page

        text = page(self, beside)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, the adversaries and the most exposed."""
        from privet.risk.page import notebook_card

        return notebook_card(self)

    def __str__(self) -> str:
        from privet.risk.summary import summary

        return summary(self)

    def __repr__(self) -> str:
        people = f"{self.known} of {self.people.total} people"
        if self.by_own_row:
            return f"<Audit of {self.name}: {self.verdict.kind}; {people} give away {self.threshold:g} or more>"
        return f"<Audit of {self.name}: {people} known with {self.threshold:g}, worst posterior {self.worst:.3g}>"


def undecided(publication: Publication, by_own_row: bool, threshold: float) -> int:
    """How many people are in leaves of which nothing follows either way.

    Behind weights a value may be as frequent as the threshold, and whoever knows the weight of each row can find whose
    rows make up a sum. By posteriors everybody may have the label, if leaves were divided until they were pure, or
    splits were chosen by a rule that excludes data sets and is not computed; what own rows add is bounded there.
    """
    leaves = publication.leaves
    unclear = {leaf for leaf in leaves if publication.unclear(leaf)}
    if not by_own_row:
        if publication.unused_choices:
            return sum(int(publication.sizes[leaf]) for leaf in leaves)
        unclear = {leaf for leaf in unclear if publication.most_alike(leaf) >= threshold - SAME}
        unclear |= publication.perhaps_undivided
    return sum(int(publication.sizes[leaf]) for leaf in unclear) + publication.unplaced


def _why_undecided(publication: Publication, by_own_row: bool) -> str:
    """Why nothing follows of some people either way."""
    if any(map(publication.unclear, publication.leaves)):
        if by_own_row:
            return (
                "their rows were weighted, and whoever knows each weight can find which rows make up the sum that a "
                "leaf shows"
            )
        return "the rows of the tree were weighted, so the shares in their leaves are not known"
    if publication.unplaced and (by_own_row or not publication.unused_choices):
        return (
            "a value that the tree asks for is missing, and what was published does not say where it led them (give "
            "the fitted tree, or leave them out with training)"
        )
    if publication.unused_choices:
        is_named = publication.tree.criterion is not None
        return (
            f"what the choice of splits tells is not computed, since {publication.unused_choices} (name the criterion"
            f"{' none' if is_named else ', or none,'} for an adversary who does not use it)"
        )
    return "their leaves are pure if the tree was grown without max_depth (say so with stopping, full or none)"


def _nobody(audit: Audit) -> str:
    """Why a model can be published: one sentence, and of a private one its promise."""
    what, threshold = f"'{plain(audit.sensitive)}'", f"{audit.threshold:g}"
    if not audit.by_own_row:
        return f"Nobody's {what} is known with probability {threshold}: the worst posterior is {spoken(audit.worst)}."
    said = ""
    if audit.own.is_computed:
        said = (
            f"nobody's own row adds {threshold} or more to the probability of their {what}; "
            f"the most is {probability(audit.worst)}."
            if not audit.known
            else f"the own row of {audit.known:,} of {audit.people.total:,} people adds {threshold} or more to the "
            f"probability of their {what}, {probability(audit.worst)} at most, and noise makes all of it deniable."
        )
    if audit.publication is not None and audit.publication.unused_choices:
        said += (
            f" What the choice of its splits tells besides is not computed, since {audit.publication.unused_choices}."
        )
    if audit.publication is None and WORLDS in audit.beliefs and not audit.beliefs[WORLDS].exact:
        said += " Parts were too large to be counted: there it is what was found, and more may follow (see the notes)."
    if audit.epsilon is None or audit.own.bound is None:
        return said
    promised = (
        f"With epsilon {audit.epsilon:g} a row changes odds between values by at most {factor(2 * audit.epsilon)} "
        f"times, whatever the rows: it adds at most {probability(audit.own.bound)} to a probability"
        f"{but_for(audit.delta)}."
    )
    return f"{said} {promised}".strip()


def but_for(delta: float | None) -> str:
    """What a delta takes from a promise, as the end of a sentence."""
    return "" if not delta else f", but for outcomes that happen with a chance of about delta {delta:g}"


def _somebody(audit: Audit) -> str:
    """Why a model cannot be published as it is."""
    what, people = f"'{plain(audit.sensitive)}'", f"{audit.known:,} of {audit.people.total:,} people"
    if audit.by_own_row and not audit.own.is_computed:
        return (
            f"with epsilon {audit.epsilon:g} a row may add up to {probability(audit.own.bound)} to the probability of "
            f"a person's {what}, and nothing smaller is known of this model."
        )
    if audit.missed > LOOSE and audit.worst < audit.threshold - SAME:
        return (
            f"No verdict about the {what} of anybody: what the trees tell together was not solved, their sums are "
            f"missed by {audit.missed:.2g} of a person, so that more may follow than was found."
        )
    if audit.undecided and audit.worst < audit.threshold - SAME:
        assert audit.publication is not None
        many = f"{audit.undecided:,} of {audit.people.total:,} people"
        return f"No verdict about the {what} of {many}: {_why_undecided(audit.publication, audit.by_own_row)}."
    if audit.by_own_row:
        return (
            f"the own row of {people} adds {audit.threshold:g} or more to the probability of their {what}; the most is "
            f"{probability(audit.worst)}."
        )
    return (
        f"The {what} of {people} is known with probability {audit.threshold:g} or more: the worst posterior is "
        f"{spoken(audit.worst)}."
    )


def _accuracies(remedy: Remedy) -> str:
    if remedy.accuracy is None or remedy.accuracy_before is None:
        return ""
    return f" The accuracy of its labels goes from {remedy.accuracy_before:.1%} to {remedy.accuracy:.1%}."


def plain(words: str) -> str:
    """Return a label that comes from data or from a file, as a terminal can bear it."""
    return shortened(clean(words), LETTERS)


def probability(share: float | None) -> str:
    """Return three digits; what is not certain never looks certain, and what is possible never impossible.

    >>> [probability(share) for share in (1.0, 0.99999, 0.8335, 0.00001, 0.0, None)]
    ['1.000', '>.999', '0.834', '<.001', '0.000', '—']
    """
    if share is None:
        return "—"
    if 0.9995 <= share < 1 - 1e-9:
        return ">.999"
    return "<.001" if 1e-9 < share < 0.0005 else f"{share:.3f}"


def spoken(share: float) -> str:
    """Return a posterior in words where it is certainty."""
    return "1, which is certainty" if share > 1 - 1e-9 else probability(share)
