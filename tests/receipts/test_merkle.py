"""The tree of RFC 6962: vectors that others have published, an oracle that hashes everything anew, and its work."""

from __future__ import annotations

import hashlib

import merkle as oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merkle import DATA, ROOTS

from privet.receipts import merkle
from privet.receipts.merkle import MerkleTree, continues
from privet.receipts.verifier import Unproved, follow

PAIR, FOUR = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e", ROOTS[4]
SECOND_FOUR = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4"
FIRST_LEAF = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7"


def leaf(content: bytes) -> bytes:
    return hashlib.sha256(b"\0" + content).digest()


def tree_of(leaves: list[bytes]) -> MerkleTree:
    tree = MerkleTree()
    for own in leaves:
        tree.append(own)
    return tree


def hexes(hashes: list[bytes]) -> list[str]:
    return [own.hex() for own in hashes]


def test_roots_and_proofs_are_those_of_certificate_transparency() -> None:
    tree = tree_of([leaf(bytes.fromhex(text)) for text in DATA])
    assert [tree.root(size).hex() for size in range(9)] == ROOTS and tree.root().hex() == ROOTS[-1]
    assert hexes(tree.inclusion(0)) == [FIRST_LEAF, PAIR, SECOND_FOUR]
    assert tree.inclusion(0, 1) == []
    assert hexes(tree.consistency(1)) == [FIRST_LEAF, PAIR, SECOND_FOUR]
    fifth_and_sixth = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a"
    last_two = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
    assert hexes(tree.consistency(6)) == [fifth_and_sixth, last_two, FOUR]
    assert hexes(tree.consistency(2, 5)) == [PAIR, "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"]


def test_every_root_and_proof_of_a_small_log_is_that_of_the_oracle() -> None:
    leaves = [leaf(str(number).encode()) for number in range(40)]
    tree, texts = tree_of(leaves), hexes(leaves)
    for size in range(1, 41):
        root = tree.root(size)
        assert root.hex() == oracle.root(texts[:size])
        for index in range(size):
            path = tree.inclusion(index, size)
            assert hexes(path) == oracle.inclusion_proof(texts[:size], index)
            assert follow(leaves[index], leaves[index], index, size - 1, path)[1] == root
        for old in range(1, size + 1):
            path = tree.consistency(old, size)
            assert hexes(path) == oracle.consistency_proof(texts[:size], old)
            assert continues(old, tree.root(old), size, root, path)
    assert continues(0, tree.root(0), 40, tree.root(), []) and not continues(0, tree.root(1), 40, tree.root(), [])
    for number in (-1, 41):
        with pytest.raises(IndexError):
            tree.root(number)
    with pytest.raises(IndexError):
        tree.inclusion(40)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(2, 300), st.data())
def test_a_log_that_does_not_begin_with_the_older_one_has_no_proof(size: int, data: st.DataObject) -> None:
    """Whatever one line of the old log is changed to, and whichever hash of a proof."""
    leaves = [leaf(str(number).encode()) for number in range(size)]
    old = data.draw(st.integers(1, size - 1))
    tree = tree_of(leaves)
    path = tree.consistency(old)
    changed = data.draw(st.integers(0, old - 1))
    other = tree_of([*leaves[:changed], leaf(b"forged"), *leaves[changed + 1 :]])
    assert not holds(old, other.root(old), size, tree.root(), path)
    assert not holds(old, tree.root(old), size, other.root(), other.consistency(old))
    assert not holds(old, tree.root(old), size, tree.root(), path[:-1])
    assert not holds(old, tree.root(old), size, tree.root(), [*path, leaf(b"more")])
    place = data.draw(st.integers(0, len(path) - 1))
    assert not holds(old, tree.root(old), size, tree.root(), [*path[:place], leaf(b"x"), *path[place + 1 :]])


def holds(*proof: object) -> bool:
    try:
        return continues(*proof)  # type: ignore[arg-type]
    except Unproved:
        return False


def test_ten_thousand_lines_are_hashed_once_and_a_proof_takes_a_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = 0
    node = merkle._node

    def counted(left: bytes, right: bytes) -> bytes:
        nonlocal hashed
        hashed += 1
        return node(left, right)

    monkeypatch.setattr(merkle, "_node", counted)
    tree = tree_of([leaf(str(number).encode()) for number in range(10_000)])
    assert hashed < 10_000
    for work in (
        lambda: tree.root(),
        lambda: tree.inclusion(7389),
        lambda: tree.consistency(6789),
        lambda: tree.append(leaf(b"new")),
    ):
        hashed = 0
        work()
        assert hashed <= 4 * 14
