"""One way to publish less: what it does to the worst posterior, and the accuracy that it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from privet.errors import ModelError
from privet.models.tree import Ensemble
from privet.risk.tree import PublishedTree


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
        from privet.risk.weka import write

        Path(path).write_text(write(self.tree), encoding="utf-8")
