"""Published trees for tests of the auditor: the paper's, and a tiny ID3 of random rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privet.risk.people import People
from privet.risk.tree import ENTROPY, GINI, Equals, Node, PublishedTree

LOW, HIGH = "<=50K", ">50K"
COLUMNS = ["age", "education"]

# Zhu and Du, figure 2: every tuple is disclosed
EXAMPLE = pd.DataFrame(
    [
        ("Youth", "Doctorate", LOW),
        ("Youth", "Doctorate", LOW),
        ("Senior", "Masters", LOW),
        ("Senior", "Doctorate", HIGH),
        ("MiddleAge", "Masters", HIGH),
        ("MiddleAge", "Masters", HIGH),
    ],
    columns=[*COLUMNS, "salary"],
)

# figure 1
FIRST = pd.DataFrame(
    [
        ("Masters", "USA", "Female", LOW),
        ("Masters", "USA", "Male", HIGH),
        ("Masters", "Canada", "Male", LOW),
        ("Masters", "Canada", "Male", LOW),
        ("Masters", "Canada", "Female", LOW),
        ("Masters", "Canada", "Female", HIGH),
        ("Doctorate", "Canada", "Female", HIGH),
        ("Doctorate", "Canada", "Female", HIGH),
        ("Doctorate", "USA", "Male", LOW),
        ("Doctorate", "USA", "Male", HIGH),
        ("Doctorate", "USA", "Female", HIGH),
    ],
    columns=["education", "country", "gender", "salary"],
)


def example_tree(criterion: str | None = ENTROPY) -> PublishedTree:
    """The tree of figure 2: a split by age, rates published."""
    leaves = [("Youth", 0, 2.0, 0.0), ("Senior", 0, 2.0, 1.0), ("MiddleAge", 1, 2.0, 0.0)]
    nodes = [Node(), *(Node(0, Equals("age", age), label, size, wrong) for age, label, size, wrong in leaves)]
    return PublishedTree(tuple(nodes), (LOW, HIGH), "Weka", criterion)


def people_of(frame: pd.DataFrame, target: str) -> People:
    return People.of(frame, [name for name in frame.columns if name != target])


def truth_of(frame: pd.DataFrame, target: str, people: People, values: tuple[str, ...]) -> np.ndarray:
    """The true values counted [profile, value]."""
    counts = np.zeros((len(people), len(values)))
    np.add.at(counts, (people.profile, [values.index(value) for value in frame[target]]), 1)
    return counts


def id3(
    frame: pd.DataFrame, target: str, criterion: str = GINI, depth: int = 9, values: tuple[str, ...] | None = None
) -> PublishedTree:
    """A plain multiway ID3, written apart from the product's; leaves say rows of each value."""
    known = values or tuple(sorted(frame[target].unique()))
    nodes: list[Node] = []

    def impurity(rows: pd.DataFrame) -> float:
        shares = rows[target].value_counts().to_numpy() / len(rows)
        each = 1 - (shares**2).sum() if criterion == GINI else -(shares * np.log(shares)).sum()
        return float(len(rows) * each)

    def grow(rows: pd.DataFrame, left: list[str], parent: int, condition: Equals | None, deeper: int) -> None:
        counts = tuple(float((rows[target] == value).sum()) for value in known)
        number = len(nodes)
        if rows[target].nunique() < 2 or not left or not deeper:
            nodes.append(Node(parent, condition, int(np.argmax(counts)), counts=counts))
            return
        nodes.append(Node(parent, condition))
        scores = {name: sum(impurity(part) for _, part in rows.groupby(name)) for name in left}
        best = min(left, key=lambda name: scores[name])
        for value, part in rows.groupby(best):
            rest = [name for name in left if name != best]
            grow(part, rest, number, Equals(best, str(value)), deeper - 1)

    grow(frame, [name for name in frame.columns if name != target], -1, None, depth)
    return PublishedTree(tuple(nodes), known, "Weka", criterion)


def random_rows(rng: np.random.Generator, rows: int, attributes: int, values: int) -> pd.DataFrame:
    """Rows of a few small attributes and a sensitive value that leans on the first."""
    columns = {f"a{i}": rng.integers(0, rng.integers(2, 4), rows).astype(str) for i in range(attributes)}
    lean = (columns["a0"].astype(int) + (rng.random(rows) < 0.4)) % values
    columns["s"] = np.where(rng.random(rows) < 0.5, lean, rng.integers(0, values, rows)).astype(str)
    return pd.DataFrame(columns)
