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
from privet.models.tree import Ensemble
from privet.risk.constraints import Counted
from privet.risk.measures import SAME, Disclosure, Exposure, individual, strongest
from privet.risk.people import Belief, People
from privet.risk.publication import Publication
from privet.risk.tree import Floats, PublishedTree

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


BASELINES = ("uniform", "marginal")
MAXIMUM, ALONE, WORLDS = "maximum entropy", "leaves alone", "possible worlds"


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
    threshold: float
    exposures: tuple[Exposure, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    remedies: tuple[Remedy, ...] = ()
    counted: Counted | None = None
    publication: Publication | None = field(default=None, repr=False)  # None where a model is audited by predictions
    truth: Floats | None = field(default=None, repr=False)  # true values [profile, value]
    epsilon: float | None = None

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
    def worst(self) -> float:
        """The largest probability with which some adversary knows the value of somebody."""
        return max(self.overall[name].worst for name in self.adversaries)

    @property
    def known(self) -> int:
        """How many people have a value that some adversary knows with the threshold's probability."""
        return int(self.people.sizes[self.posterior.max(axis=1) >= self.threshold - SAME].sum())

    @property
    def undecided(self) -> int:
        """How many people are in leaves of which nothing follows either way: a value may be as frequent as the
        threshold behind weights, or everybody may have the label, if the tree was grown until its leaves were pure."""
        publication = self.publication
        if publication is None:
            return 0
        weighted = {
            leaf
            for leaf in publication.leaves
            if publication.unclear(leaf) and publication.most_alike(leaf) >= self.threshold - SAME
        }
        return sum(int(publication.sizes[leaf]) for leaf in weighted | publication.perhaps_undivided)

    @property
    def safe(self) -> bool:
        """Is every posterior below the threshold, and is that known?"""
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
        return pd.DataFrame(columns)

    def probabilities(self, adversary: str = "maximum entropy") -> pd.DataFrame:
        """P(value | profile) of one adversary, a row for each profile in the order of `individuals`."""
        return pd.DataFrame(self.beliefs[adversary].shares, columns=list(self.values))

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
            "threshold": self.threshold,
            "worst": self.worst,
            "known": self.known,
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
            "most exposed": [asdict(exposure) for exposure in self.exposures],
            "remedies": [remedy.to_dict() for remedy in self.remedies],
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The audit as JSON; written to a file if one is named."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_html(self, path: str | Path | None = None, beside: Audit | None = None) -> str:
        """The report a privacy officer reads, in one file that loads nothing; `beside` is a second audit to compare."""
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
        return f"<Audit of {self.name}: {people} known with {self.threshold:g}, worst posterior {self.worst:.3g}>"
