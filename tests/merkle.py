"""The Merkle tree of RFC 6962 over the leaves of a ledger's log: its root, and proofs about it.

An oracle for `privet.receipts.merkle`: it hashes everything anew.
Whoever has a root can be shown that a line is in the log (inclusion), and that a longer log
begins with the one they knew (consistency), by hashes alone. Hashes are texts of 64 hex
digits, as the log stores them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

# The tree of the reference implementation of RFC 6962: what its leaves hold, and its roots by size.
DATA = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def root(leaves: Sequence[str]) -> str:
    """The root of a tree over so many leaves.

    >>> root([])[:8], root(["6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"])[:8]
    ('e3b0c442', '6e340b9c')
    """
    if not leaves:
        return hashlib.sha256(b"").hexdigest()
    hashes = [bytes.fromhex(leaf) for leaf in leaves]
    while len(hashes) > 1:  # level by level; whoever has no neighbour goes up as it is
        pairs = [_node(*hashes[i : i + 2]) for i in range(0, len(hashes) - 1, 2)]
        hashes = pairs + hashes[len(pairs) * 2 :]
    return hashes[0].hex()


def inclusion_proof(leaves: Sequence[str], index: int) -> list[str]:
    """The hashes that, with the leaf at an index (from 0), make the root; those next to the leaf first."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"a tree of {len(leaves)} leaves has no leaf {index}")
    if len(leaves) == 1:
        return []
    left = _left(len(leaves))
    if index < left:
        return [*inclusion_proof(leaves[:left], index), root(leaves[left:])]
    return [*inclusion_proof(leaves[left:], index - left), root(leaves[:left])]


def consistency_proof(leaves: Sequence[str], size: int) -> list[str]:
    """The hashes that show that the tree over the first `size` leaves is the beginning of this one."""
    if not 0 < size <= len(leaves):
        raise IndexError(f"a tree of {len(leaves)} leaves has no beginning of {size}")
    return _consistency(leaves, size, whole=True)


def _consistency(leaves: Sequence[str], size: int, whole: bool) -> list[str]:
    """Of a subtree; `whole` while the smaller tree is all of it, whose root the verifier knows."""
    if size == len(leaves):
        return [] if whole else [root(leaves)]
    left = _left(len(leaves))
    if size <= left:
        return [*_consistency(leaves[:left], size, whole), root(leaves[left:])]
    return [*_consistency(leaves[left:], size - left, False), root(leaves[:left])]


def _left(size: int) -> int:
    """The leaves of the left subtree: the largest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
