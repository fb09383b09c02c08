"""A released tree as a sum of tables: what questions about released models, and monitors, take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privet.kernel import LOGIT_GRID, MAX_CELLS, AdditiveModel, Column, Domain, Numeric
from privet.models.tree import Tree

Path = dict[str, NDArray[np.bool_]]  # of each attribute that was asked, the cells that lead on


def tree_as_tables(tree: Tree) -> tuple[Domain, AdditiveModel]:
    """Return a tree as a sum of tables, and the domain whose cells these tables have.

    Leaves that ask the same attributes share a table over them. In the cells of the returned domain, whose numbers are
    cut where the tree cuts them, every row lies in one leaf, and its label alone has the logit 1: the sum says what the
    tree says.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    domain : Domain
        For ``table.with_cells(domain)``.
    model : AdditiveModel

    Examples
    --------
    >>> import privet
    >>> people, domain = privet.datasets.census(2000), privet.datasets.census_domain()
    >>> table = privet.open(people, domain, budget=100)
    >>> tree = privet.ID3PlusClassifier(epsilon=10, max_depth=3, random_state=0).fit(table)
    >>> cells, model = tree_as_tables(tree.model_.tree)
    >>> right = table.with_cells(cells).count_correct(model, epsilon=80)
    >>> abs(right / 20 - 100 * tree.score(people.drop(columns="income"), people.income)) < 0.1
    True
    """
    domain = _cut_as(tree)
    classes = len(domain.classes)
    tables: dict[tuple[str, ...], NDArray[np.int32]] = {}
    intercept = [0] * classes
    for label, path in _leaves(tree, domain):
        names = tuple(name for name in domain.attributes if name in path)
        if not names:
            intercept[label] = LOGIT_GRID
            continue
        shape = (*(domain[name].size for name in names), classes)
        cells = np.ix_(*(np.flatnonzero(path[name]) for name in names), np.array([label]))
        tables.setdefault(names, np.zeros(shape, dtype=np.int32))[cells] = LOGIT_GRID
    return domain, AdditiveModel(tuple(intercept), tuple(tables.items()))


def cut_to_fit(tree: Tree, most: int = MAX_CELLS) -> Tree:
    """Return the tree, or as many of its levels as have no more than `most` cells as a sum of tables."""
    while tree.depth > 1 and _cells(tree) > most:
        tree = tree.cut(tree.depths == tree.depth - 1)
    return tree


def _cells(tree: Tree) -> int:
    """Return how many cells the tables of a tree have."""
    domain = _cut_as(tree)
    groups = {frozenset(path) for _, path in _leaves(tree, domain)}
    return len(domain.classes) * sum(math.prod(domain[name].size for name in names) for names in groups)


def _cut_as(tree: Tree) -> Domain:
    """Return the domain with every number cut where the tree cuts it, and where it is split by its bins there too."""
    domain = tree.domain

    def column(declared: Column) -> Column:
        if not isinstance(declared, Numeric) or declared.name not in domain.attributes:
            return declared
        mine = tree.column == domain.attributes.index(declared.name)
        cuts = {int(at) for at in tree.at[mine] if at >= 0}
        if not cuts:
            return declared
        cuts |= set(declared.thresholds) if (tree.at[mine] < 0).any() else set()
        return replace(declared, bins=None, edges=tuple(declared.value_at(at) for at in sorted(cuts)))

    return replace(domain, columns=tuple(column(declared) for declared in domain))


def _leaves(tree: Tree, domain: Domain) -> Iterator[tuple[int, Path]]:
    """Yield the label of each leaf, and the cells that lead to it."""
    waiting: list[tuple[int, Path]] = [(0, {})]
    while waiting:
        node, path = waiting.pop()
        if tree.column[node] < 0:
            yield int(tree.labels[node]), path
            continue
        name = domain.attributes[int(tree.column[node])]
        for child, cells in enumerate(_children(tree, node, domain[name])):
            both = path[name] & cells if name in path else cells
            waiting.append((int(tree.first[node]) + child, {**path, name: both}))


def _children(tree: Tree, node: int, column: Column) -> list[NDArray[np.bool_]]:
    """Return the cells of a column that lead to each child of a node."""
    own = np.arange(column.size)
    if tree.at[node] < 0:
        declared = tree.domain[column.name]
        if not isinstance(column, Numeric) or column == declared:
            return [own == cell for cell in own.tolist()]
        assert isinstance(declared, Numeric)  # it is cut more finely: each declared bin is several cells
        inner = np.searchsorted(declared.thresholds, (0, *column.thresholds), side="right")
        within = np.append(inner, declared.bin_count) if column.missing else inner
        return [within == cell for cell in range(declared.size)]
    assert isinstance(column, Numeric)
    below = own <= column.thresholds.index(int(tree.at[node]))
    if not column.missing:
        return [below, ~below]
    absent = own == column.size - 1
    return [below & ~absent, ~below & ~absent, absent]
