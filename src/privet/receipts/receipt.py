"""Checkpoints and receipts of a ledger, and what they show.

A *checkpoint* is a signed note (c2sp.org/tlog-checkpoint): whose log, how many lines, the root of the tree over them. A
*receipt* is JSON about one answer or model: its line in the log and those of the charges that paid for it, for each the
hashes that lead to the root, and the checkpoint. `verifier.py` checks one with the standard library alone.

Nothing in either depends on rows, but for the release that it is about. Lines have days and no times; the salts in them
keep those who see the hashes beside a proof from guessing what other people's lines say.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet import ledger_lines
from privet.errors import ReceiptError
from privet.kernel import Ledger, Line
from privet.receipts import verifier
from privet.receipts.keys import SigningKey, load_key, rotations, vkeys
from privet.receipts.merkle import MerkleTree, continues
from privet.receipts.verifier import LIMITS, Unproved

VERSION = 1
LONGEST = 2**26  # characters of a receipt that is read
_PAGE = 100_000  # leaves that are read at a time
_LOSS = re.compile(r"[0-9]{1,300}(/0*[1-9][0-9]{0,299})?")
_DAMAGED = "the ledger is damaged: line {} is not the one that its tree was made of; restore it from a backup."


@dataclass(frozen=True)
class Checkpoint:
    """What a log says of itself, signed; with the hashes that show that it continues an older one.

    Parameters
    ----------
    note : str
        The signed note.
    since : int, default 0
        The size of the older one.
    path : tuple of bytes, default ()
    """

    note: str
    since: int = 0
    path: tuple[bytes, ...] = ()

    @property
    def body(self) -> tuple[str, int, bytes]:
        """Origin, size and root, as it states them; ReceiptError if it is no checkpoint."""
        try:
            return verifier.read_checkpoint(self.note[: self.note.rindex("\n\n") + 1])
        except (Unproved, ValueError):
            raise ReceiptError("this is no checkpoint of a ledger.") from None

    @property
    def size(self) -> int:
        """How many lines the log had."""
        return self.body[1]

    def to_text(self) -> str:
        """Return it as a file has it; a proof stands before the note, as witnesses are sent one (tlog-witness)."""
        if not self.since:
            return self.note
        hashes = "".join(f"{_text(step)}\n" for step in self.path)
        return f"old {self.since}\n{hashes}\n{self.note}"

    @classmethod
    def read(cls, text: str) -> Checkpoint:
        """Read what `to_text` wrote; its signatures are not checked.

        Raises
        ------
        ReceiptError
        """
        since, path = 0, []
        try:
            if text.startswith("old "):
                head, _, text = text.partition("\n\n")
                first, *steps = head.split("\n")
                since, path = int(first.removeprefix("old ")), [verifier.decoded(step, 32) for step in steps]
        except (Unproved, ValueError):
            raise ReceiptError("the proof before the checkpoint cannot be read.") from None
        checkpoint = cls(text, since, tuple(path))
        assert checkpoint.body
        return checkpoint

    def signers(self, known: Sequence[str]) -> list[str]:
        """Return which of some public keys have signed it.

        Raises
        ------
        ReceiptError
            If a signature is of none of them, or does not hold.
        """
        try:
            return verifier.open_note(self.note, list(dict.fromkeys(known)))[1]
        except (Unproved, ValueError, LookupError) as error:
            why = str(error) if isinstance(error, Unproved) else "it is no signed note"
            raise ReceiptError(f"the checkpoint does not hold: {why}.") from None

    def require_continues(self, old: Checkpoint) -> None:
        """Refuse a log that does not begin with an older one.

        Raises
        ------
        ReceiptError
            If it is shorter, has another root, or brings no proof.
        """
        (origin, size, root), (old_origin, old_size, old_root) = self.body, old.body
        if origin != old_origin:
            raise ReceiptError("the ledger is another one than that of the checkpoint that was kept.")
        if size < old_size:
            raise ReceiptError(
                f"the ledger went back: it has {size} lines, and the checkpoint that was kept has {old_size}. It was "
                "restored from an old backup, or lines were removed; what was spent since then is not counted."
            )
        if size == old_size and root != old_root:
            raise ReceiptError(
                f"there are two ledgers of {size} lines under one name, both signed: this one is not the one of the "
                "checkpoint that was kept. Keep both checkpoints: they prove it."
            )
        if size > old_size and self.since != old_size:
            raise ReceiptError(
                f"it brings no proof that it continues the checkpoint of {old_size} lines; ask for one since that."
            )
        try:
            shown = size == old_size or continues(old_size, old_root, size, root, list(self.path))
        except Unproved:
            shown = False
        if not shown:
            raise ReceiptError(
                f"the ledger was changed: its {size} lines do not begin with the {old_size} of the checkpoint that was "
                "kept. It was restored from an old backup and went on, or lines were rewritten."
            )


class Receipts:
    """Makes checkpoints and receipts of one ledger; threads may share it.

    Parameters
    ----------
    ledger : Ledger
    key : SigningKey, optional
        The key of the log; else that of its file.
    others : sequence of SigningKey, default ()
        Keys that sign every checkpoint too.
    """

    def __init__(self, ledger: Ledger, key: SigningKey | None = None, others: Sequence[SigningKey] = ()) -> None:
        self._ledger, self._others, self._given = ledger, tuple(others), key
        self._key = key or load_key(ledger)
        self._tree, self._lock = MerkleTree(), threading.Lock()
        self._last: Checkpoint | None = None  # the last one that was signed here

    @property
    def signers(self) -> list[str]:
        """The public keys that sign new checkpoints, the one of the log first."""
        return [self._current().vkey, *(key.vkey for key in self._others)]

    # -- checkpoints ------------------------------------------------------------------------

    def checkpoint(self, since: int = 0) -> Checkpoint:
        """Return a checkpoint of all lines that are there now, with a proof that it continues an older one.

        Parameters
        ----------
        since : int, default 0
            The size of the older one; a proof that is asked for more lines than there are is left out.
        """
        with self._lock:
            self._last = self._signed(self._grown(), since)
            return self._last

    def root(self, size: int) -> bytes | None:
        """Return the root of the first lines; None if there are fewer."""
        with self._lock:
            return self._tree.root(size) if size <= self._grown() else None

    def _grown(self) -> int:
        """Read the lines that are new since the last time, whoever has written them; return how many there are."""
        return tree_of(self._ledger, self._tree).size

    def _signed(self, size: int, since: int = 0) -> Checkpoint:
        keys = (self._current(), *self._others)
        text = f"{keys[0].name}\n{size}\n{_text(self._tree.root(size))}\n"
        note = f"{text}\n{''.join(key.signature(text) for key in keys)}"
        proof = self._tree.consistency(since, size) if 0 < since <= size else []
        return Checkpoint(note, since if 0 < since <= size else 0, tuple(proof))

    def _current(self) -> SigningKey:
        """Return the key in force: its owner may have rotated it since."""
        known = vkeys(self._ledger)
        if known and known[-1] != self._key.vkey:
            if self._given is not None:
                raise ReceiptError("the signing key of this ledger was rotated; start again with the new one.")
            self._key = load_key(self._ledger)
        return self._key

    # -- receipts ---------------------------------------------------------------------------

    def of_entry(self, entry: int, under: Checkpoint | None = None) -> str:
        """Return the receipt of the answer to an entry, as JSON.

        Parameters
        ----------
        entry : int
        under : Checkpoint, optional
            One that was signed before, by a second key say; else a new one.

        Raises
        ------
        ReceiptError
            If there is no such entry, or it has no answer.
        """
        charge, answer = ledger_lines.charge_line(self._ledger, entry), ledger_lines.answer_line(self._ledger, entry)
        if charge is None or answer is None:
            missing = f"has no entry {entry}" if charge is None else f"has no answer to entry {entry}"
            raise ReceiptError(f"the ledger {missing}; `privet budget show --entries` lists them.")
        return self._receipt([charge, answer], under, str(answer.note["answer"]))

    def of_model(self, text: str, under: Checkpoint | None = None, number: int | None = None) -> str:
        """Return the receipt of a model, as JSON.

        Parameters
        ----------
        text : str
            The file of the model.
        under : Checkpoint, optional
            One that was signed before; else a new one.
        number : int, optional
            The serial number of its line; else the first one with the hash of the text.

        Raises
        ------
        ReceiptError
            If the ledger has no line about it.
        """
        lines = ledger_lines.model_lines(self._ledger, hashlib.sha256(text.encode()).hexdigest())
        line = next((line for line in lines if number in (None, line.serial)), None)
        if line is None:
            raise ReceiptError(
                "the ledger has no model with these bytes: it was fitted elsewhere, changed since, or never written "
                "down; `privet fit` writes one down."
            )
        charges = [ledger_lines.charge_line(self._ledger, entry) for entry in line.body["entries"]]
        return self._receipt([*(charge for charge in charges if charge is not None), line], under)

    def _receipt(self, lines: Sequence[Line], under: Checkpoint | None, released: str | None = None) -> str:
        with self._lock:
            size = self._grown()
            if under is None:
                self._last = self._signed(size)
            checkpoint = under or self._last
            assert checkpoint is not None
            signers = self._signers(checkpoint, size)
            shown: list[Any] = []
            for line in lines:
                if line.number > checkpoint.size:
                    raise ReceiptError(
                        f"line {line.number} is newer than the checkpoint of {checkpoint.size} lines; take a newer one."
                    )
                if self._tree.leaf(line.number - 1).hex() != line.leaf:
                    raise ReceiptError(_DAMAGED.format(line.number))
                path = self._tree.inclusion(line.number - 1, checkpoint.size)
                shown.append([json.loads(line.text), [_text(step) for step in path]])
        content = {
            "privet-receipt": VERSION,
            "limits": LIMITS,
            "checkpoint": checkpoint.note,
            "keys": signers,
            "rotations": rotations(self._ledger),
            "lines": shown,
            **({} if released is None else {"released": released}),
        }
        return json.dumps(content, indent=1, sort_keys=True) + "\n"

    def _signers(self, checkpoint: Checkpoint, size: int) -> list[str]:
        """Return who has signed a checkpoint; refuse one that is not of this log."""
        if checkpoint is self._last:
            return [self._key.vkey, *(key.vkey for key in self._others)]
        known = [str(line.body["vkey"]) for line in ledger_lines.key_lines(self._ledger)]
        signers = checkpoint.signers([*known, self._key.vkey, *(key.vkey for key in self._others)])
        _, stated, root = checkpoint.body
        if stated > size or self._tree.root(stated) != root:
            raise ReceiptError("the checkpoint is not one of this ledger as it is now.")
        return signers


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def trusted_keys(pins: Sequence[str], rotations: Sequence[str]) -> set[str]:
    """Return keys that are trusted, and those that they were rotated to.

    Raises
    ------
    ReceiptError
        If a rotation is none, or is not signed by the key that it is about.
    """
    trusted = set(pins)
    try:
        for note in rotations:
            _, old, new, _ = verifier.open_note(note, note.split("\n")[1:2])[0].split("\n")
            alike = verifier.read_key(old)[0] == verifier.read_key(new)[0]
            trusted |= {new} if old in trusted and alike else set()
    except (Unproved, ValueError, LookupError):
        raise ReceiptError("a rotation of keys does not hold.") from None
    return trusted


def tree_of(ledger: Ledger, tree: MerkleTree | None = None) -> MerkleTree:
    """Return the tree over all lines of a ledger; one that is given grows by those that are new."""
    tree = MerkleTree() if tree is None else tree
    while True:
        leaves = ledger.leaves(tree.size, _PAGE)
        for leaf in leaves:
            tree.append(bytes.fromhex(leaf))
        if len(leaves) < _PAGE:
            return tree


def require_ledger_continues(ledger: Ledger, old: Checkpoint | None) -> int:
    """Refuse a ledger that does not begin with an older checkpoint of it; return how many lines it has.

    Raises
    ------
    ReceiptError
        If it is another ledger, has fewer lines, or other ones.
    """
    tree = tree_of(ledger)
    if old is not None:
        origin, size, _ = old.body
        if not f"/{origin}".endswith(f"/{ledger.id}"):
            raise ReceiptError("the checkpoint that was kept is of another ledger.")
        text = f"{origin}\n{tree.size}\n{_text(tree.root())}\n\n"
        proof = tree.consistency(size) if size <= tree.size else []
        Checkpoint(text, size, tuple(proof)).require_continues(old)
    return tree.size


# -- what a receipt shows -----------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """What a receipt that holds shows.

    Parameters
    ----------
    kind : str
        `answer` or `model`.
    line : dict
        Its line of the log.
    charges : list of dict
        The lines of what paid for it.
    checkpoint : Checkpoint
    signers : list of str
        The public keys that signed.
    released : str or None
        Of an answer, the JSON that was released.
    trusted : bool
        Whether a key was named that must have signed it.
    """

    kind: str
    line: dict[str, Any]
    charges: list[dict[str, Any]]
    checkpoint: Checkpoint
    signers: list[str]
    released: str | None
    trusted: bool

    @property
    def private(self) -> bool:
        """Whether the ledger says that its noise was real; of a model, which says so itself, always true."""
        return bool(self.line["body"].get("private", True))

    @property
    def loss(self) -> Fraction:
        """What was charged for it in all."""
        return sum((loss_of(line["body"]["loss"]) for line in self.charges), Fraction(0))


def loss_of(text: str) -> Fraction:
    """Return a loss as a line states it, which anybody may have written.

    >>> loss_of("2/5")
    Fraction(2, 5)
    """
    if not _LOSS.fullmatch(text):
        raise ValueError("this is no loss")
    return Fraction(text)


def _require_plain(lines: Sequence[dict[str, Any]]) -> None:
    """Refuse lines that no ledger writes, whoever has signed them: what is shown of them is what they say."""
    for line in lines:
        body = line["body"]
        texts = [line["dataset"], line["day"], *([body["question"], body["scope"]] if line["kind"] == "charge" else ())]
        if not all(isinstance(text, str) for text in texts) or type(line["serial"]) is not int:
            raise ValueError("this is no line of a ledger")
        for name in ("loss", "dataset_spent", "dataset_cap") if line["kind"] == "charge" else ():
            loss_of(body[name])


def check(
    text: str,
    document: bytes | None = None,
    pins: Sequence[str] = (),
    since: Checkpoint | None = None,
    proof: Checkpoint | None = None,
) -> Shown:
    """Check a receipt, offline.

    Parameters
    ----------
    text : str
        The receipt.
    document : bytes, optional
        The file that it is about; an answer stands in its receipt.
    pins : sequence of str, default ()
        Public keys. Each of them, or one that it was rotated to, must have signed.
    since : Checkpoint, optional
        An older one, which the log of the receipt must continue.
    proof : Checkpoint, optional
        The one that the receipt was made under, with the proof that it continues `since`; not needed for one of the
        same size.

    Returns
    -------
    Shown

    Raises
    ------
    ReceiptError
        If it does not hold; the sentence says why.
    """
    why: str | None = None
    try:
        verifier.check(text, document, list(pins))
        _require_plain([line for line, _ in json.loads(text)["lines"]])
    except Unproved as refused:
        why = str(refused)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        why = "it cannot be read as a receipt of privet"
    if why is not None:
        raise ReceiptError(f"the receipt does not hold: {why}.")
    content = json.loads(text)
    lines = [line for line, _ in content["lines"]]
    checkpoint = Checkpoint(content["checkpoint"])
    if since is not None:
        known = [*content["keys"], *(vkey for note in content["rotations"] for vkey in note.split("\n")[1:3])]
        since.signers(known)
        if checkpoint.size < since.size:
            raise ReceiptError(
                f"the receipt is of a log of {checkpoint.size} lines, and the checkpoint that was kept has "
                f"{since.size}: the ledger went back, or the receipt was made before that checkpoint."
            )
        same = proof is not None and proof.note == checkpoint.note
        (proof if proof is not None and same else checkpoint).require_continues(since)
    *charges, line = lines
    released = content["released"] if line["kind"] == "answer" else None  # beside a model anybody can write one
    return Shown(line["kind"], line, charges, checkpoint, content["keys"], released, bool(pins))
