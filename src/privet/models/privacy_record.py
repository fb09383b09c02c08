"""What a model promises and what it cost: written into every model, printed as `clf.privacy_`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet.errors import ModelError
from privet.kernel import LONGEST_TEXT, decimal_text, finite_of, short_text, whole_of


@dataclass(frozen=True)
class Step:
    """One question of the grower: what it asked of how many nodes of one level, and what each of them paid.

    `path` is there where nodes of one level have paid different sums: what the paths of these leaves paid in all.
    """

    tree: int
    level: int
    question: str
    parts: int
    epsilon: Fraction
    entry: int | None = None
    path: Fraction | None = None

    def to_dict(self) -> dict[str, Any]:
        content = {
            "tree": self.tree,
            "level": self.level,
            "question": self.question,
            "parts": self.parts,
            "epsilon": str(self.epsilon),
            "entry": self.entry,
        }
        return content if self.path is None else {**content, "path": str(self.path)}

    @classmethod
    def from_dict(cls, content: Any) -> Step:
        epsilon = loss_of(content["epsilon"])
        path = None if content.get("path") is None else loss_of(content["path"])
        if path is not None and path < epsilon:  # a path has paid what its leaf paid, and more
            raise TypeError
        return cls(
            _whole(content["tree"]),
            _whole(content["level"]),
            text_of(content["question"]),
            _whole(content["parts"]),
            epsilon,
            None if content.get("entry") is None else _whole(content["entry"]),
            path,
        )


class Record:
    """The steps of a fit as they are taken, and why it is not private if it is not."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reasons: list[str] = []

    def add(self, tree: int, level: int, question: str, releases: Sequence[Any], path: Fraction | None = None) -> None:
        first = releases[0]
        self.steps.append(Step(tree, level, question, len(releases), first.epsilon, first.about.entry, path))
        if not first.private:
            self.reasons.append("its noise was seeded, or its rows are public")


@dataclass(frozen=True)
class Decision:
    """A choice that was made on the way, from what is public or released: it cost nothing and is published.

    `margins` says by how much each branch was ahead of the default, `context` what the choice was made from,
    `policy` which policy made it, and `why` says it for people.
    """

    site: str
    branch: str
    nodes: int = 1
    margins: tuple[tuple[str, float], ...] = ()
    context: tuple[tuple[str, float | str], ...] = ()
    policy: str = ""
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "site": self.site,
            "branch": self.branch,
            "nodes": self.nodes,
            "margins": dict(self.margins),
            "context": dict(self.context),
            "policy": self.policy,
            "why": self.why,
        }

    @classmethod
    def from_dict(cls, content: Any) -> Decision:
        return cls(
            text_of(content["site"]),
            text_of(content["branch"]),
            _whole(content["nodes"]),
            tuple((text_of(name), _number(value)) for name, value in content["margins"].items()),
            tuple(
                (text_of(name), text_of(value) if isinstance(value, str) else _number(value))
                for name, value in content["context"].items()
            ),
            text_of(content["policy"]),
            text_of(content["why"]),
        )

    def __str__(self) -> str:
        many = f" at {self.nodes} nodes" if self.nodes > 1 else ""
        return f"{self.site}: {self.branch}{many}{f', {self.why}' if self.why else ''}"


@dataclass(frozen=True)
class Privacy:
    """The promise of a model: `epsilon` per person, pure, if `private`; otherwise `reasons` say why not."""

    algorithm: str
    variant: str
    epsilon: Fraction
    rows_per_person: int = 1
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    disjoint: bool = False  # the trees saw disjoint rows: their losses share a maximum
    added: tuple[Fraction, ...] = ()  # what each table of rows added later was charged
    decisions: tuple[Decision, ...] = ()  # choices that were made on the way, free of charge
    criterion: str = ""  # what a tree without noise chose its splits by: an auditor takes its choices at their word

    @property
    def private(self) -> bool:
        return not self.reasons

    @property
    def spent(self) -> Fraction:
        """What the dearest path through the trees was charged."""
        shared = sum((step.epsilon for step in self.steps if step.tree < 0), Fraction(0))
        by_tree: dict[int, list[Step]] = {}
        for step in self.steps:
            by_tree.setdefault(step.tree, []).append(step)
        trees = [max(_paths(steps), default=Fraction(0)) for tree, steps in by_tree.items() if tree >= 0]
        return shared + (max(trees, default=Fraction(0)) if self.disjoint else sum(trees, Fraction(0)))

    def paths(self, tree: int) -> list[Fraction]:
        """What each kind of path of a tree paid: one for each level that has leaves, or more where they differ."""
        return _paths([step for step in self.steps if step.tree == tree])

    def __str__(self) -> str:
        promise = f"epsilon {decimal_text(self.epsilon)} per person ({_rows(self.rows_per_person)}), pure"
        if not self.private:
            promise = "NOT PRIVATE: " + "; ".join(self.reasons)
        lines = [f"{self.algorithm}, {self.variant} variant", promise]
        growing = any(step.tree >= 0 for step in self.steps)
        lines.append(f"spent {short_text(self.spent)}{' on the dearest path' * growing}")
        lines += [f"chosen {decision}" for decision in self.decisions]
        if self.added:
            amounts = ", ".join(decimal_text(epsilon) for epsilon in self.added)
            lines.append(f"rows added later lost {amounts}; a person in several of these tables loses the sum")
        trees = sorted({step.tree for step in self.steps if step.tree >= 0})
        if self.disjoint:
            lines.append("trees on disjoint rows, so one of them stands for all:")
        elif len(trees) > 1:
            lines.append(f"{len(trees)} trees, whose losses add; the first of them:")
        shown = [step for step in self.steps if step.tree <= 0]
        if shown:
            table: list[tuple[str, ...]] = [("level", "question", "nodes", "epsilon")]
            table += [
                (
                    "all" if step.tree < 0 else str(step.level),
                    step.question,
                    str(step.parts),
                    short_text(step.epsilon),
                )
                for step in shown
            ]
            if not growing:
                table = [("table", "question", "epsilon")]
                table += [(str(step.level or "-"), step.question, short_text(step.epsilon)) for step in shown]
            widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
            for row in table:
                lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "variant": self.variant,
            "private": self.private,
            "reasons": list(self.reasons),
            "epsilon": str(self.epsilon),
            "spent": str(self.spent),
            "rows_per_person": self.rows_per_person,
            "disjoint": self.disjoint,
            "added": [str(epsilon) for epsilon in self.added],
            **({"decisions": [decision.to_dict() for decision in self.decisions]} if self.decisions else {}),
            **({"criterion": self.criterion} if self.criterion else {}),
            "steps": [step.to_dict() for step in self.steps],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Privacy:
        """Read what `to_dict` wrote; anything else is a `ModelError`."""
        incomplete = ModelError("the model's privacy record is incomplete; it was not written by privet.")
        try:
            steps = tuple(Step.from_dict(step) for step in _list(content["steps"]))
            privacy = cls(
                text_of(content["algorithm"]),
                text_of(content["variant"]),
                loss_of(content["epsilon"]),
                _whole(content["rows_per_person"]),
                steps,
                tuple(text_of(reason) for reason in _list(content["reasons"])),
                content["disjoint"] is True,
                tuple(loss_of(epsilon) for epsilon in _list(content["added"])),
                tuple(Decision.from_dict(decision) for decision in _list(content.get("decisions", []))),
                text_of(content.get("criterion", "")),
            )
            claimed = content["private"]
        except (KeyError, TypeError, AttributeError):
            raise incomplete from None
        if privacy.rows_per_person < 1 or claimed is not privacy.private:
            raise incomplete
        paths = [step.path for step in privacy.steps if step.path is not None]
        check_losses((privacy.epsilon, *privacy.added, *(step.epsilon for step in privacy.steps), *paths))
        if privacy.private and privacy.spent > privacy.epsilon:
            raise ModelError("the model's privacy record spends more than it promises; it was not written by privet.")
        return privacy


def _paths(steps: list[Step]) -> list[Fraction]:
    """A leaf paid what its level asks of leaves, and what all levels above ask of nodes that split.

    Where nodes of one level were asked different questions, the leaves below say what their paths have paid.
    """
    along, found = Fraction(0), []
    levels: dict[int, list[Step]] = {}
    for step in steps:
        levels.setdefault(step.level, []).append(step)
    for _, here in sorted(levels.items()):
        leaves = [step for step in here if step.question in LEAF_QUESTIONS]
        ends = sum((step.epsilon for step in leaves if step.path is None), Fraction(0))
        sizes = sum((step.epsilon for step in here if step.question == "size"), Fraction(0))
        if ends:
            found.append(along + sizes + ends)
        found += [step.path for step in leaves if step.path is not None]
        along += sum((step.epsilon for step in here if step.question not in LEAF_QUESTIONS), Fraction(0))
    return found or ([along] if levels else [])


# the questions that end a path
LEAF_QUESTIONS = ("class counts", "label")


def check_losses(losses: Iterable[Fraction]) -> None:
    """Losses of a foreign record must not be so long that adding or printing them fails."""
    shared = 1
    for loss in losses:
        shared = math.lcm(shared, loss.denominator)
        if shared > 10**400 or loss > 10**9:
            raise ModelError("the model's privacy record has losses too large or too long to add up.")


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"at most {number} rows"


def text_of(value: object) -> str:
    """A text that can be printed and written; anything else is a TypeError."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or any(0xD800 <= ord(char) < 0xE000 for char in value):
        raise TypeError
    return value


def _whole(value: object) -> int:
    whole = whole_of(value, -(2**62), 2**62)
    if whole is None:
        raise TypeError
    return whole


def _number(value: object) -> float:
    number = finite_of(value)
    if number is None:
        raise TypeError
    return number


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def loss_of(value: object) -> Fraction:
    """An exact loss as it stands in a file; anything else is a TypeError."""
    text = text_of(value)
    numerator, _, denominator = text.partition("/")
    if not numerator.isascii() or not numerator.isdigit() or len(text) > 400:
        raise TypeError
    if denominator and not (denominator.isascii() and denominator.isdigit() and int(denominator)):
        raise TypeError
    return Fraction(int(numerator), int(denominator or 1))
