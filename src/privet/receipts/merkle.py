"""The Merkle tree of RFC 6962 over the leaves of a log, as it grows.

Whoever has a root can be shown by hashes alone that a line is in the log (inclusion), and that a longer log begins
with the one they knew (consistency). The hashes of all complete subtrees are kept, 64 bytes a leaf: a new leaf makes
one more on average. A root or a proof needs only the right-hand edge besides, so that its work grows with the logarithm
of the size.
"""

from __future__ import annotations

import hashlib

from privet.receipts.verifier import follow

_HASH = 32  # bytes
EMPTY = hashlib.sha256(b"").digest()


class MerkleTree:
    """Leaves in order, and the roots and proofs of every beginning of them.

    >>> tree = MerkleTree()
    >>> for text in (b"", b"a", b"b"):
    ...     tree.append(hashlib.sha256(b"\\0" + text).digest())
    >>> tree.size, tree.root(1) == hashlib.sha256(b"\\0").digest(), len(tree.inclusion(0)), len(tree.consistency(2))
    (3, True, 2, 1)
    """

    def __init__(self) -> None:
        self._levels = [bytearray()]  # level k has the roots of complete subtrees of 2^k leaves, one after the other

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self._levels[0]) // _HASH

    def append(self, leaf: bytes) -> None:
        """Add the hash of a leaf."""
        assert len(leaf) == _HASH
        height, own = 0, leaf
        self._levels[0] += own
        while self._count(height) % 2 == 0:  # it completes a pair
            own = _node(self._at(height, self._count(height) - 2), own)
            height += 1
            if height == len(self._levels):
                self._levels.append(bytearray())
            self._levels[height] += own

    def leaf(self, index: int) -> bytes:
        """Return the hash of a leaf, counted from 0."""
        self._check(index, self.size - 1)
        return self._at(0, index)

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first `size` leaves, or of all."""
        size = self.size if size is None else size
        self._check(size, self.size)
        return self._range(0, size) if size else EMPTY

    def inclusion(self, index: int, size: int | None = None) -> list[bytes]:
        """Return the hashes that lead from a leaf, counted from 0, to the root of the first `size` leaves."""
        size = self.size if size is None else size
        self._check(size, self.size)
        self._check(index, size - 1)
        first, end, path = 0, size, []
        while end - first > 1:
            middle = first + _left(end - first)
            if index < middle:
                path.append(self._range(middle, end))
                end = middle
            else:
                path.append(self._range(first, middle))
                first = middle
        return path[::-1]

    def consistency(self, old: int, size: int | None = None) -> list[bytes]:
        """Return the hashes that show that the first `size` leaves begin with the first `old` ones."""
        size = self.size if size is None else size
        self._check(size, self.size)
        self._check(old, size)
        first, end, path, known = 0, size, [], True
        if old in (0, size):
            return []
        while old != end:
            middle = first + _left(end - first)
            if old <= middle:
                path.append(self._range(middle, end))
                end = middle
            else:
                path.append(self._range(first, middle))
                first, known = middle, False
        return [*([] if known else [self._range(first, end)]), *path[::-1]]  # of a whole left subtree the root is known

    def _check(self, number: int, most: int) -> None:
        if not 0 <= number <= most:
            raise IndexError(f"a log of {self.size} lines has no {number}")

    def _count(self, height: int) -> int:
        return len(self._levels[height]) // _HASH

    def _at(self, height: int, index: int) -> bytes:
        return bytes(self._levels[height][index * _HASH : (index + 1) * _HASH])

    def _range(self, first: int, end: int) -> bytes:
        """Return the root of the leaves from `first` to before `end`, a subtree of some beginning."""
        width = end - first
        if width & width - 1 == 0 and first % width == 0:
            return self._at(width.bit_length() - 1, first // width)
        middle = first + _left(width)
        return _node(self._range(first, middle), self._range(middle, end))


def continues(old_size: int, old_root: bytes, size: int, root: bytes, path: list[bytes]) -> bool:
    """Return whether a proof shows that a log begins with an older one (RFC 9162, 2.1.4.2).

    Parameters
    ----------
    old_size : int
    old_root : bytes
    size : int
    root : bytes
    path : list of bytes
        What `MerkleTree.consistency` returned.

    Returns
    -------
    bool

    Raises
    ------
    Unproved
        If the proof is too long or too short.
    """
    if old_size == size or old_size == 0:
        return not path and old_root == (root if old_size else EMPTY)
    if old_size > size or not path:
        return False
    if old_size & old_size - 1 == 0:
        path = [old_root, *path]  # a complete subtree, whose root the reader has
    position, last = old_size - 1, size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    return follow(path[0], path[0], position, last, path[1:]) == (old_root, root)


def _left(size: int) -> int:
    """Return the leaves of the left subtree: the largest power of two below the size."""
    return 1 << (size - 1).bit_length() - 1


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
