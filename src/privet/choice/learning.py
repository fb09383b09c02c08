"""How a NoisyIf learns from its own executions: which of them count, by how much, and what their rewards are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.choice.derive import percent
from privet.choice.history import History, HistoryRow
from privet.choice.linear import HIGHEST, LOWEST, BayesianLinear
from privet.errors import QuestionError
from privet.kernel import as_epsilon, digest
from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble, Split, Tree
from privet.release import Histogram, Public, Release, derivation
from privet.table import Parts, ProtectedTable


@dataclass(frozen=True)
class Learning:
    """A history and how it is read.

    Parameters
    ----------
    history : History
    features : sequence of str, optional
        The names in the context that rewards may depend on; by default every number that all executions have.
    half_life : float, optional
        After so many executions one counts half. By default nothing is forgotten.
    cap : float, optional
        As how many executions all those on one data set count at most. By default there is no cap.
    explore : bool, default True
        Whether to draw a branch as often as it may be the best, so that a wrong choice is found out. The coins follow
        from the site, the number of rewards and the context: the same question has the same answer until a
        reward comes in.
    best : {"highest", "lowest"}, default "highest"
        Which rewards are the best.
    """

    history: History
    features: Sequence[str] | None = None
    half_life: float | None = None
    cap: float | None = None
    explore: bool = True
    best: str = HIGHEST
    _fitted: dict[str, tuple[int, BayesianLinear]] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.history, History):
            raise QuestionError("a NoisyIf learns from a History, or from Learning(History(...), ...).")
        if self.best not in (HIGHEST, LOWEST):
            raise QuestionError(f"best is '{HIGHEST}' or '{LOWEST}', not {self.best!r}.")
        for name in ("half_life", "cap"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value < float("inf")):
                raise QuestionError(f"{name} is a number of executions above 0, not {value!r}.")

    def policy(self, site: str) -> BayesianLinear | None:
        """Return what the executions of a site teach by now; None before the first."""
        last = self.history.last(site)
        known = self._fitted.get(site)
        if known is None or known[0] != last:
            rows = self.history.rows(site)
            if not rows:
                return None
            features = _shared_numbers(rows) if self.features is None else tuple(self.features)
            coins = f"{site}, {last} rewards" if self.explore else None
            known = last, BayesianLinear.fit(rows, features, coins, best=self.best, weights=self.weights(rows))
            self._fitted[site] = known
        return known[1]

    def weights(self, rows: Sequence[HistoryRow]) -> list[float]:
        """Return how much each row counts: less with its age, and less if its data set has many."""
        order = {run: place for place, run in enumerate(dict.fromkeys(row.run for row in rows))}
        data = {row.run: row.data for row in rows}
        counts = {run: 0.5 ** ((len(order) - 1 - place) / (self.half_life or np.inf)) for run, place in order.items()}
        totals: dict[str, float] = {}
        for run, count in counts.items():
            totals[data[run]] = totals.get(data[run], 0.0) + count
        shares = {name: 1.0 if self.cap is None else min(1.0, self.cap / total) for name, total in totals.items()}
        return [counts[row.run] * shares[row.data] for row in rows]


def _shared_numbers(rows: Sequence[HistoryRow]) -> tuple[str, ...]:
    """The names that are numbers in every context."""
    contexts = [context for row in rows for _, _, context in row.choices]
    first = contexts[0] if contexts else {}
    return tuple(
        name for name in sorted(first) if all(isinstance(context.get(name), int | float) for context in contexts)
    )


@dataclass(frozen=True)
class Reward:
    """What an execution is judged by: a charged question about what came of it.

    Parameters
    ----------
    ask : callable
        Gets a table that can be charged `epsilon`, and the value of the branch; returns a release, or a public value
        with an origin.
    epsilon : number
        What it costs, on top of the branch.
    """

    ask: Callable[[ProtectedTable, Any], Release | Public]
    epsilon: Any

    def __post_init__(self) -> None:
        if not callable(self.ask):
            raise QuestionError("the question of a reward is a function of a table and of what came of the branch.")
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))

    @classmethod
    def percent_right(cls, epsilon: Any) -> Reward:
        """Return a reward for models: the percentage of the rows that they classify right, noisily."""
        return cls(lambda table, model: percent_right(table, model, epsilon), epsilon)


def percent_right(table: ProtectedTable, model: Model, epsilon: Any) -> Release:
    """Return the percentage of the rows that a released model classifies right, noisily.

    A tree is asked for the class counts of its leaves anew, with noise of their own: leaves are disjoint, so that
    all of them cost epsilon together. A sum of tables is asked for the number of right rows, and for the number of rows
    with a fifth of epsilon unless it is public.

    Parameters
    ----------
    table : ProtectedTable
    model : Model
        One tree, or `Tables`.
    epsilon : number

    Returns
    -------
    Release
        From 0 to 100.

    Raises
    ------
    QuestionError
        The model has several trees or another domain. Nothing was charged.
    """
    whole = as_epsilon(epsilon)
    if model.domain.fingerprint != table.domain.fingerprint:
        raise QuestionError("the model has another domain than the table; nothing was charged.")
    scope = table.allot(whole)
    if isinstance(model, Tables):
        if table.domain.rows is not None:
            return percent(scope.count_correct(model.additive, whole), Public(table.domain.rows))
        some = as_epsilon(whole / 5)
        return percent(scope.count_correct(model.additive, whole - some), scope.count(some))
    if not isinstance(model, Ensemble) or len(model.trees) != 1:
        raise QuestionError("how many rows are right is asked of one tree or of tables; nothing was charged.")
    leaves, labels = _leaves(scope, model.tree, whole)
    return leaves[0].map(_percent_right, Public(labels), *leaves[1:])


def _leaves(table: ProtectedTable, tree: Tree, epsilon: Any) -> tuple[list[Histogram], list[int]]:
    """Class counts of the leaves, level by level, and the class that each of them predicts."""
    target = table.domain.target_column.name
    counts: list[Histogram] = []
    labels: list[int] = []
    parts: Parts = table.parts()
    nodes = np.array([0])
    while len(nodes):
        ends = np.flatnonzero(tree.column[nodes] < 0)
        if len(ends):
            counts += parts.take(ends.tolist()).histogram(target, epsilon=epsilon)
            labels += tree.labels[nodes[ends]].tolist()
        inner = np.flatnonzero(tree.column[nodes] >= 0)
        if not len(inner):
            break
        splits = [split for split in (tree.node(int(node)) for node in nodes[inner]) if isinstance(split, Split)]
        by: list[Any] = [
            split.attribute if split.threshold is None else (split.attribute, split.threshold) for split in splits
        ]
        parts = parts.take(inner.tolist()).partition(by)
        nodes = np.array([child for split in splits for child in split.children])
    return counts, labels


@derivation
def _percent_right(first: NDArray[np.int64], labels: list[int], *others: NDArray[np.int64]) -> float:
    leaves = np.stack([first, *others])
    right = float(leaves[np.arange(len(leaves)), labels].sum())
    return min(max(100 * right / max(float(leaves.sum()), 1.0), 0.0), 100.0)


def data_name(table: ProtectedTable, run: str) -> str:
    """Return a name for the rows of a table: the same whenever its ledger is opened, else that of the run."""
    path = table.budget.ledger_path
    return run if path == ":memory:" else digest({"ledger": path, "table": table.name})[:16]
