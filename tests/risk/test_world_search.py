"""Which pieces people fall into: what is joined, what stays apart, and what is counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from privet.risk.people import People
from privet.risk.publication import Publication
from privet.risk.tree import GINI, Equals, Integers, Node, PublishedTree
from privet.risk.world_pieces import Leaf, Part
from privet.risk.worlds import Search


@dataclass(frozen=True, eq=False)
class Split:
    node: int
    chosen: Integers
    others: list[Integers]
    measure: str = GINI

    @property
    def candidates(self) -> Sequence[object]:
        return range(len(self.others))


def publication(copies: int) -> Publication:
    """Two attributes and a third that nothing looks at; the left child of the root is divided once more."""
    rows = [(a, b, c) for a in "01" for b in "01" for c in "01" for _ in range(copies)]
    nodes = (
        Node(),
        Node(0, Equals("a", "0")),
        Node(0, Equals("a", "1"), 0, 4 * copies, copies),
        Node(1, Equals("b", "0"), 0, 2 * copies, copies // 2),
        Node(1, Equals("b", "1"), 1, 2 * copies, copies // 2),
    )
    people = People.of(pd.DataFrame(rows, columns=list("abc")), list("abc"))
    return Publication.of(PublishedTree(nodes, ("x", "y"), "privet"), people)


def choices(of: Publication, instead: str) -> list[Split]:
    """The root divides by a and not by b; its left child by b and not by another column."""
    codes = of.people.codes
    root, left = of.profiles[0], of.profiles[1]
    return [
        Split(0, codes[root, 0], [codes[root, 1]]),
        Split(1, codes[left, 1], [codes[left, "abc".index(instead)]]),
    ]


def search(of: Publication, limit: int, tries: int) -> Search:
    return Search(of, limit, tries, 0, lambda text: None)


def test_without_choices_every_leaf_is_a_piece_and_a_cell() -> None:
    one = search(publication(2), 1000, 1000)
    pieces = list(one.pieces([]))
    assert all(isinstance(piece, Leaf) for piece in pieces) and len(pieces) == one.cells == 3


def test_profiles_that_no_split_tells_apart_are_one_cell() -> None:
    of = publication(2)
    one = search(of, 100_000, 0)
    [piece] = one.pieces(choices(of, "a"))
    assert isinstance(piece, Part) and piece.logs is not None
    assert one.cells == 4 and piece.sizes.tolist() == [4] * 4  # c divides nobody
    assert (one.used, one.unused) == (2, 0)


def test_a_node_that_is_too_large_leaves_the_pieces_below_it() -> None:
    of = publication(2)
    one = search(of, 10, 0)
    pieces = list(one.pieces(choices(of, "c")))
    assert (one.used, one.unused) == (1, 1)
    assert sorted(type(piece).__name__ for piece in pieces) == ["Leaf", "Part"]
    assert sorted(np.concatenate([piece.cells for piece in pieces]).tolist()) == list(range(one.cells))


def test_worlds_are_drawn_where_they_cannot_be_listed() -> None:
    of = publication(40)
    one = search(of, 10, 20_000)
    [piece] = one.pieces(choices(of, "c"))
    assert isinstance(piece, Part) and piece.logs is None and piece.number >= 1000
    assert (piece.tables.sum(axis=2) == piece.sizes[:, None]).all()
    [again] = search(of, 10, 20_000).pieces(choices(of, "c"))
    assert isinstance(again, Part) and (again.tables == piece.tables).all()  # the same seed, the same worlds


def test_too_few_tries_use_nothing_and_nodes_above_stay_unused() -> None:
    of = publication(40)
    one = search(of, 10, 999)
    assert len(list(one.pieces(choices(of, "c")))) == 3
    assert (one.used, one.unused) == (0, 2)
