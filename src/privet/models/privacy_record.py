"""The privacy record of a model: what it promises and what it cost, step by step (`clf.privacy_`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet import pictures
from privet.errors import ModelError
from privet.kernel import LONGEST_TEXT, whole_of
from privet.text import decimal_text, protected, short_text


@dataclass(frozen=True)
class Step:
    """One question of a fit.

    Parameters
    ----------
    tree : int
        The number of the tree; -1 for a question about the whole table.
    level : int
        The level of the nodes; of a sum of tables, the number of the table.
    question : str
        What was asked, in words.
    parts : int
        How many nodes were asked.
    epsilon : Fraction
        What each of them paid.
    entry : int, optional
        The ledger entry of the charge.
    path : Fraction, optional
        What the paths of these leaves paid in all. It is given if nodes of one level have paid different amounts.
    """

    tree: int
    level: int
    question: str
    parts: int
    epsilon: Fraction
    entry: int | None = None
    path: Fraction | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a dict for JSON."""
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
        """Read what `to_dict` wrote; anything else raises KeyError, TypeError or AttributeError."""
        epsilon = loss_of(content["epsilon"])
        path = None if content.get("path") is None else loss_of(content["path"])
        if path is not None and path < epsilon:  # a path pays at least what its leaf pays
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


MOST_CONTEXTS = 1000  # nodes of a decision whose contexts are recorded


@dataclass(frozen=True)
class Decision:
    """A choice that was made during a fit. It follows from public facts and releases, so it cost nothing.

    Parameters
    ----------
    site : str
        What was chosen.
    branch : str
        The choice.
    nodes : int, default 1
        At how many nodes it was chosen.
    margins : tuple of (str, float), default ()
        By how much each branch was ahead of the default.
    context : tuple of (str, float or str), default ()
        What the choice was made from.
    policy : str, default ""
        The policy that made it.
    why : str, default ""
        The reason, for people.
    learned : tuple of str, default ()
        Where the rewards come from that the policy learned from.
    varying : tuple of str, default ()
        The names in the contexts of nodes that differ between them.
    contexts : tuple of tuple of float, default ()
        Their values at each node, those of the first `MOST_CONTEXTS`, from the root on.
    """

    site: str
    branch: str
    nodes: int = 1
    margins: tuple[tuple[str, float], ...] = ()
    context: tuple[tuple[str, float | str], ...] = ()
    policy: str = ""
    why: str = ""
    learned: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    contexts: tuple[tuple[float, ...], ...] = ()

    def at_nodes(self) -> list[dict[str, float | str]]:
        """Return the context of each node that is recorded; of a choice for a whole run, its one context."""
        shared = dict(self.context)
        if not self.contexts:
            return [shared] * min(self.nodes, MOST_CONTEXTS)
        return [{**shared, **dict(zip(self.varying, values, strict=True))} for values in self.contexts]

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as a dict for JSON."""
        nodes = {"varying": list(self.varying), "contexts": [list(values) for values in self.contexts]}
        return {
            "site": self.site,
            "branch": self.branch,
            "nodes": self.nodes,
            "margins": dict(self.margins),
            "context": dict(self.context),
            "policy": self.policy,
            "why": self.why,
            **({"learned": list(self.learned)} if self.learned else {}),
            **(nodes if self.contexts else {}),
        }

    @classmethod
    def from_dict(cls, content: Any) -> Decision:
        """Read what `to_dict` wrote; anything else raises KeyError, TypeError or AttributeError."""
        varying = tuple(text_of(name) for name in _list(content.get("varying", [])))
        contexts = tuple(
            tuple(_number(value) for value in _list(values)) for values in _list(content.get("contexts", []))
        )
        if len(contexts) > MOST_CONTEXTS or any(len(values) != len(varying) for values in contexts):
            raise TypeError
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
            tuple(text_of(origin) for origin in _list(content.get("learned", []))),
            varying,
            contexts,
        )

    def __str__(self) -> str:
        many = f" at {self.nodes} nodes" if self.nodes > 1 else ""
        return f"{self.site}: {self.branch}{many}{f', {self.why}' if self.why else ''}"


@dataclass(frozen=True)
class Privacy:
    """The privacy record of a model: pure `epsilon` per person, unless `reasons` say why not.

    Parameters
    ----------
    algorithm, variant : str
        How the model was fitted.
    epsilon : Fraction
        The promised loss of a person.
    rows_per_person : int, default 1
        How many rows of a person count at most.
    steps : tuple of Step, default ()
        Every question that was asked.
    reasons : tuple of str, default ()
        Why the model is not private; empty if it is.
    disjoint : bool, default False
        Whether the trees saw disjoint rows, so that their losses share a maximum.
    added : tuple of Fraction, default ()
        What each table of rows that were added later was charged.
    decisions : tuple of Decision, default ()
        Choices that were made during the fit, free of charge.
    criterion : str, default ""
        How a tree without noise chose its splits; an audit relies on it.
    person : str, default ""
        The column by which surplus rows of a person were left out. Without it the promise is for those who have no
        more than `rows_per_person` rows.
    delta : Fraction, optional
        With one, the promise is (epsilon, delta), and what steps paid is counted in rho.
    rho : Fraction, optional
        With a delta, what all steps may cost together.
    """

    algorithm: str
    variant: str
    epsilon: Fraction
    rows_per_person: int = 1
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    disjoint: bool = False
    added: tuple[Fraction, ...] = ()
    decisions: tuple[Decision, ...] = ()
    criterion: str = ""
    person: str = ""
    delta: Fraction | None = None
    rho: Fraction | None = None

    @property
    def budget(self) -> Fraction:
        """What may be spent in all: epsilon or, with a delta, rho."""
        return self.epsilon if self.rho is None else self.rho

    @property
    def unit(self) -> str:
        """What steps are counted in."""
        return "epsilon" if self.rho is None else "rho"

    @property
    def promise(self) -> str:
        """Epsilon, and delta if there is one."""
        delta = "" if self.delta is None else f", delta {float(self.delta):g}"
        return f"epsilon {decimal_text(self.epsilon)}{delta}"

    @property
    def protected(self) -> str:
        """Whom the promise is for, in words."""
        whom = protected(self.person, self.rows_per_person)
        return f"{whom}, in each of {1 + len(self.added)} tables" if self.added else whom

    @property
    def private(self) -> bool:
        """Whether the model is differentially private."""
        return not self.reasons

    @property
    def spent(self) -> Fraction:
        """What was charged in all.

        These are the questions about the whole table, and the most expensive path of each tree. Trees add up, or
        share their maximum on disjoint rows.
        """
        shared = sum((step.epsilon for step in self.steps if step.tree < 0), Fraction(0))
        by_tree: dict[int, list[Step]] = {}
        for step in self.steps:
            by_tree.setdefault(step.tree, []).append(step)
        trees = [max(_paths(steps), default=Fraction(0)) for tree, steps in by_tree.items() if tree >= 0]
        return shared + (max(trees, default=Fraction(0)) if self.disjoint else sum(trees, Fraction(0)))

    @property
    def entries(self) -> list[int]:
        """The ledger entries that paid for it, in order."""
        return sorted({step.entry for step in self.steps if step.entry is not None})

    def paths(self, tree: int) -> list[Fraction]:
        """Return what the paths of a tree paid.

        Parameters
        ----------
        tree : int

        Returns
        -------
        list of Fraction
            One for each level that has leaves, or more if paths of a level paid different amounts.
        """
        return _paths([step for step in self.steps if step.tree == tree])

    def __str__(self) -> str:
        promise = f"{'pure ' if self.delta is None else ''}{self.promise} {self.protected}"
        if not self.private:
            promise = "NOT PRIVATE: " + "; ".join(self.reasons)
        lines = [f"{self.algorithm}, {self.variant} variant", promise]
        growing = any(step.tree >= 0 for step in self.steps)
        unit = "" if self.rho is None else "rho "
        lines.append(f"spent {unit}{short_text(self.spent)}{' on the dearest path' * growing}")
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
            table: list[tuple[str, ...]] = [("level", "question", "nodes", self.unit)]
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
                table = [("table", "question", self.unit)]
                table += [(str(step.level or "-"), step.question, short_text(step.epsilon)) for step in shown]
            widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
            for row in table:
                lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return pictures.picture(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict for JSON."""
        return {
            "algorithm": self.algorithm,
            "variant": self.variant,
            "private": self.private,
            "reasons": list(self.reasons),
            "epsilon": str(self.epsilon),
            **({} if self.delta is None else {"delta": str(self.delta), "rho": str(self.rho)}),
            "spent": str(self.spent),
            "rows_per_person": self.rows_per_person,
            "disjoint": self.disjoint,
            "added": [str(epsilon) for epsilon in self.added],
            **({"decisions": [decision.to_dict() for decision in self.decisions]} if self.decisions else {}),
            **({"criterion": self.criterion} if self.criterion else {}),
            **({"person": self.person} if self.person else {}),
            "steps": [step.to_dict() for step in self.steps],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Privacy:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        content : dict
            From a file that anybody may have written.

        Returns
        -------
        Privacy

        Raises
        ------
        ModelError
            The record is incomplete, contradicts itself, or spends more than it promises.
        """
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
                text_of(content.get("person", "")),
                *((loss_of(content["delta"]), loss_of(content["rho"])) if "delta" in content else ()),
            )
            claimed = content["private"]
        except (KeyError, TypeError, AttributeError):
            raise incomplete from None
        if privacy.rows_per_person < 1 or claimed is not privacy.private:
            raise incomplete
        paths = [step.path for step in privacy.steps if step.path is not None]
        check_losses((privacy.epsilon, *privacy.added, *(step.epsilon for step in privacy.steps), *paths))
        if privacy.private and privacy.spent > privacy.budget:
            raise ModelError("the model's privacy record spends more than it promises; it was not written by privet.")
        return privacy


def _paths(steps: list[Step]) -> list[Fraction]:
    """Return what the paths of one tree paid.

    A leaf paid what its level asks of leaves, and what all levels above ask of nodes that split. If nodes of one
    level were asked different questions, the steps of the leaves below record what their paths paid.
    """
    above, paths = Fraction(0), []
    levels: dict[int, list[Step]] = {}
    for step in steps:
        levels.setdefault(step.level, []).append(step)
    for _, of_level in sorted(levels.items()):
        leaves = [step for step in of_level if step.question in LEAF_QUESTIONS]
        leaf = sum((step.epsilon for step in leaves if step.path is None), Fraction(0))
        size = sum((step.epsilon for step in of_level if step.question == "size"), Fraction(0))
        if leaf:
            paths.append(above + size + leaf)
        paths += [step.path for step in leaves if step.path is not None]
        above += sum((step.epsilon for step in of_level if step.question not in LEAF_QUESTIONS), Fraction(0))
    return paths or ([above] if levels else [])


# The questions that end a path.
LEAF_QUESTIONS = ("class counts", "label")


def check_losses(losses: Iterable[Fraction]) -> None:
    """Refuse losses of a file that are too long to be added or printed.

    Parameters
    ----------
    losses : iterable of Fraction

    Raises
    ------
    ModelError
    """
    shared = 1
    for loss in losses:
        shared = math.lcm(shared, loss.denominator)
        if shared > 10**400 or loss > 10**9:
            raise ModelError("the model's privacy record has losses too large or too long to add up.")


def text_of(value: object) -> str:
    """Return a text of a file that can be printed and written.

    Parameters
    ----------
    value : object

    Returns
    -------
    str

    Raises
    ------
    TypeError
        It is not a text, too long, or has half a surrogate pair.
    """
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or any(0xD800 <= ord(char) < 0xE000 for char in value):
        raise TypeError
    return value


def _whole(value: object) -> int:
    """Return a whole number of a file; anything else is a TypeError."""
    whole = whole_of(value, -(2**62), 2**62)
    if whole is None:
        raise TypeError
    return whole


def finite_of(value: object) -> float | None:
    """Return a number of JSON as a float; None for anything else, and for what is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def numbers_of(values: Any, length: int, where: str) -> Sequence[float]:
    """Return a list of so many finite numbers."""
    if not isinstance(values, list) or len(values) != length:
        raise ModelError(f"{where} of the model needs {length} numbers, one for each class.")
    numbers = [number for value in values if (number := finite_of(value)) is not None and abs(number) < 2**63]
    if len(numbers) < length:
        raise ModelError(f"{where} of the model has a number that is none, or too large.")
    return numbers


def _number(value: object) -> float:
    """Return a finite number of a file; anything else is a TypeError."""
    number = finite_of(value)
    if number is None:
        raise TypeError
    return number


def _list(value: object) -> list[Any]:
    """Return a list of a file; anything else is a TypeError."""
    if not isinstance(value, list):
        raise TypeError
    return value


def loss_of(value: object) -> Fraction:
    """Return an exact loss of a file, such as "1/2".

    Parameters
    ----------
    value : object

    Returns
    -------
    Fraction

    Raises
    ------
    TypeError
        It is not a fraction of whole numbers that are not negative.
    """
    text = text_of(value)
    numerator, _, denominator = text.partition("/")
    if not numerator.isascii() or not numerator.isdigit() or len(text) > 400:
        raise TypeError
    if denominator and not (denominator.isascii() and denominator.isdigit() and int(denominator)):
        raise TypeError
    return Fraction(int(numerator), int(denominator or 1))
