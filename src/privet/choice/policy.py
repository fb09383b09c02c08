"""Policies: from a public context to a branch, the same for the same context every time.

A policy says by how many points each branch is ahead of the default one. It is small and needs nothing but
Python, so a choice takes no time and no import; what it was learned from stays in its header.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from privet.errors import ModelError, QuestionError

FORMAT = 1
_LONGEST = 2**25  # characters of a policy
_LARGEST = 10**12  # of its numbers, whose sums and products stay far from what a float can hold
ADVICE_ROWS = 5.0  # what advice weighs, in rows of a history
ADVICE_BONUS = 3.0  # points that a branch is ahead if it is advised

Context = Mapping[str, Any]
Weights = Mapping[str, float]  # of advised branches, from 0 to 1


def as_number(value: object) -> float | None:
    """Return a finite number of Python or numpy, a fraction among them, as a float; None for anything else.

    >>> as_number(True), as_number("0.25"), as_number(10**400), as_number(math.nan)
    (1.0, None, None, None)
    """
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Policy(ABC):
    """How a NoisyIf chooses."""

    kind: ClassVar[str]

    @abstractmethod
    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        """By how many points each branch is ahead of the default, which is at 0."""

    def rule(self, context: Context) -> tuple[str, str] | None:
        """A branch that is taken whatever the margins are, and why; mostly there is none."""
        return None

    def deciding(self, context: Context) -> tuple[str, ...]:
        """The names in the context that decided, the most frequent first."""
        return ()

    def evidence(self, context: Context) -> Evidence | None:
        """What its histories say about contexts like this one; None where they say nothing."""
        return None

    @property
    def name(self) -> str:
        """What a model says about the policy that chose it."""
        return self.kind

    @property
    def learned(self) -> tuple[str, ...]:
        """Where the rewards come from that it learned from."""
        return ()


@dataclass(frozen=True)
class Fixed(Policy):
    """Always the same branch."""

    branch: str
    kind = "fixed"

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        if self.branch not in branches:
            raise QuestionError(f"the policy takes '{self.branch}', which is none of {', '.join(branches)}.")
        return {branch: float(branch == self.branch) - float(default == self.branch) for branch in branches}


@dataclass(frozen=True)
class Ruled(Policy):
    """Always the same branch, for a reason that is told; nothing is said about points."""

    branch: str
    why: str
    kind = "rule"

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        return dict.fromkeys(branches, 0.0)

    def rule(self, context: Context) -> tuple[str, str] | None:
        return self.branch, self.why


@dataclass(frozen=True)
class Advised(Policy):
    """What is advised, and the default where nothing is: the policy without any history."""

    kind = "advice"

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        own = advised.get(default, 0.0)
        return {branch: ADVICE_BONUS * (advised.get(branch, 0.0) - own) for branch in branches}


@dataclass(frozen=True)
class PolicyTree:
    """One tree of a forest, as flat lists: a node asks `feature <= threshold`, its children are `left` and the next.

    Leaves have no left child; `rows` says how many runs they are made of, `ahead` by how many tenths of a
    point each branch was ahead of the default in them.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    rows: tuple[int, ...]
    ahead: tuple[tuple[int, ...], ...]

    def path(self, values: Sequence[float]) -> list[int]:
        """The nodes from the root to the leaf of these values."""
        path = [0]
        while (child := self.left[path[-1]]) > 0:
            path.append(child + (values[self.feature[path[-1]]] > self.threshold[path[-1]]))
        return path


@dataclass(frozen=True)
class Floor:
    """Below this value of a feature a branch is taken without asking anybody: there is too little to choose by."""

    feature: str
    below: float
    branch: str


@dataclass(frozen=True)
class Evidence:
    """What the histories of a forest say about contexts like one: in each tree, those that reach the same leaf.

    Parameters
    ----------
    runs : float
        How many runs are like it, in the mean over the trees.
    all_runs : float
        How many there are.
    ahead : mapping of str to (float, float)
        By how many points each branch was ahead of the default in them, and how much the trees differ in that
        (a standard deviation).
    """

    runs: float
    all_runs: float
    ahead: Mapping[str, tuple[float, float]]

    @property
    def telling(self) -> bool:
        """Whether at most a quarter of all runs are like it: what holds for most contexts says nothing about one."""
        return 4 * self.runs <= self.all_runs


@dataclass(frozen=True)
class CautiousForest(Policy):
    """Trees that were grown to choose well, and a branch that leaves the default only where they agree.

    A branch is ahead by the mean over the trees minus `caution` standard deviations: the more the histories are
    distrusted, the higher. Below the floor its branch is taken, whatever the trees say.
    """

    site: str
    branches: Mapping[str, str]  # and the fingerprint of each
    default: str
    features: tuple[str, ...]
    trees: tuple[PolicyTree, ...]
    caution: float = 1.0
    floor: Floor | None = None
    header: Mapping[str, Any] = field(default_factory=dict)  # what it was learned from

    kind = "cautious-forest"

    def margins(self, context: Context, branches: Sequence[str], default: str, advised: Weights) -> dict[str, float]:
        if set(branches) != set(self.branches) or default != self.default:
            raise QuestionError(
                f"the policy chooses between {', '.join(self.branches)} with the default '{self.default}', not between "
                f"{', '.join(branches)} with '{default}'; train one for these branches."
            )
        values = self._values(context)
        if values is None:  # a context it was not made for
            return dict.fromkeys(branches, 0.0)
        ahead = self._ahead(values, default, advised)
        return {
            branch: 0.0 if branch == default else mean - self.caution * spread
            for branch, (mean, spread) in ((branch, ahead[branch]) for branch in branches)
        }

    def evidence(self, context: Context) -> Evidence | None:
        """Return what the histories say about contexts like this one; None for one that the policy was not made for."""
        values = self._values(context)
        if values is None:
            return None
        like = [tree.rows[tree.path(values)[-1]] for tree in self.trees]
        every = [sum(rows for rows, left in zip(tree.rows, tree.left, strict=True) if left <= 0) for tree in self.trees]
        count = len(self.trees)
        return Evidence(sum(like) / count, sum(every) / count, self._ahead(values, self.default, {}))

    def _ahead(self, values: Sequence[float], default: str, advised: Weights) -> dict[str, tuple[float, float]]:
        """By how many points each branch is ahead of the default: mean and standard deviation over the trees."""
        leaves = [(tree, tree.path(values)[-1]) for tree in self.trees]
        weight = ADVICE_ROWS if advised else 0.0
        ahead = {}
        for index, branch in enumerate(self.branches):
            bonus = ADVICE_BONUS * (advised.get(branch, 0.0) - advised.get(default, 0.0))
            points = [
                (tree.rows[leaf] * tree.ahead[leaf][index] / 10 + weight * bonus) / (tree.rows[leaf] + weight)
                for tree, leaf in leaves
            ]
            mean = sum(points) / len(points)
            ahead[branch] = mean, math.sqrt(sum((point - mean) ** 2 for point in points) / len(points))
        return ahead

    def rule(self, context: Context) -> tuple[str, str] | None:
        floor, values = self.floor, self._values(context)
        if floor is None or values is None or values[self.features.index(floor.feature)] >= floor.below:
            return None
        return floor.branch, f"{floor.feature} below {floor.below:.3g}: too little to choose by"

    def deciding(self, context: Context) -> tuple[str, ...]:
        if self.floor is not None and self.rule(context) is not None:
            return (self.floor.feature,)  # no tree was asked
        values = self._values(context)
        asked = [0] * len(self.features)
        for tree in self.trees if values is not None else ():
            for node in tree.path(values or ())[:-1]:
                asked[tree.feature[node]] += 1
        order = sorted(range(len(asked)), key=lambda place: -asked[place])
        return tuple(self.features[place] for place in order[:3] if asked[place])

    @property
    def name(self) -> str:
        return f"{self.kind} {self.fingerprint}"

    def _values(self, context: Context) -> list[float] | None:
        values = [as_number(context.get(name)) for name in self.features]
        found = [value for value in values if value is not None]
        return found if len(found) == len(values) else None

    # -- as a file --------------------------------------------------------------------------

    def to_json(self) -> str:
        lists = ("feature", "threshold", "left", "rows", "ahead")
        content = {
            "format": FORMAT,
            "kind": self.kind,
            "site": self.site,
            "branches": dict(self.branches),
            "default": self.default,
            "features": list(self.features),
            "caution": self.caution,
            "floor": None if self.floor is None else asdict(self.floor),
            **self.header,
            "trees": [{name: getattr(tree, name) for name in lists} for tree in self.trees],
        }
        return json.dumps(content, separators=(",", ":"), allow_nan=False)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    @classmethod
    def parse(cls, text: str) -> CautiousForest:
        """A policy from its file; anything else is a `ModelError`."""
        try:
            content = json.loads(text)
            if content.pop("format") != FORMAT or content.pop("kind") != cls.kind:
                raise ValueError
            branches, features = dict(content.pop("branches")), tuple(content.pop("features"))
            trees = tuple(_tree(each, len(features), len(branches)) for each in content.pop("trees"))
            low = content.pop("floor")
            floor = None if low is None else Floor(str(low["feature"]), _small(low["below"]), str(low["branch"]))
            site, default, caution = (content.pop(name) for name in ("site", "default", "caution"))
            if default not in branches or not trees or not 0 <= _small(caution):
                raise ValueError
            if floor is not None and (floor.feature not in features or floor.branch not in branches):
                raise ValueError
            found = cls(str(site), branches, default, features, trees, float(caution), floor, content)
            found.to_json()  # a number that is not finite cannot be written again: better refused now than in a fit
            return found
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
            raise ModelError("this is no policy that privet wrote, or one of another version.") from None

    @classmethod
    def load(cls, path: str | Path) -> CautiousForest:
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_LONGEST)  # of a longer one the end is missing, so that it is no policy
        except (OSError, ValueError):  # also of a name that no file can have
            raise ModelError(f"cannot read the policy '{path}'; check the path.") from None
        return cls.parse(text)

    def check(self, fingerprints: Mapping[str, str], features: Sequence[str]) -> None:
        """Refuse a policy that was trained for other branches than those at hand."""
        other = sorted(
            name for name in {*fingerprints, *self.branches} if fingerprints.get(name) != self.branches.get(name)
        )
        if other or tuple(features) != self.features:
            what = f"other versions of {', '.join(other)}" if other else "other features"
            raise ModelError(
                f"the policy {self.fingerprint} was trained for {what}; train it again with `privet study run choice`."
            )


def _small(value: Any) -> float:
    """Return a number of a file, if arithmetic with it cannot overflow."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST <= value <= _LARGEST:
        raise ValueError
    return float(value)


def _tree(content: Mapping[str, Any], features: int, branches: int) -> PolicyTree:
    """A tree from its lists, whose every walk ends: children come after their parents."""
    whole = {name: tuple(int(_small(value)) for value in content[name]) for name in ("feature", "left", "rows")}
    threshold = tuple(float(_small(value)) for value in content["threshold"])
    ahead = tuple(tuple(int(_small(value)) for value in leaf) for leaf in content["ahead"])
    size = len(threshold)
    if not size or any(len(each) != size for each in (*whole.values(), ahead)):
        raise ValueError
    for node, left in enumerate(whole["left"]):
        inner = left > 0
        if inner and not (node < left < size - 1 and 0 <= whole["feature"][node] < features):
            raise ValueError
        if not inner and (len(ahead[node]) != branches or whole["rows"][node] < 1):
            raise ValueError
    return PolicyTree(whole["feature"], threshold, whole["left"], whole["rows"], ahead)
