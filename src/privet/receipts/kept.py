"""What a client remembers of a server's ledger: its key and its newest checkpoint, so that it notices a step back.

One file for each server, in the user's state folder. The first key that a server shows is trusted from then on, and
what it was rotated to. Another ledger at the same address is refused too, but on this machine, where one port serves
many: there each ledger is remembered apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from privet.errors import ReceiptError
from privet.receipts.keys import state_folder
from privet.receipts.receipt import Checkpoint, trusted_keys
from privet.receipts.verifier import read_key


class Remembered(NamedTuple):
    """What is remembered of one ledger."""

    vkey: str  # the key that is trusted
    checkpoint: Checkpoint


class KeptCheckpoints:
    """The newest checkpoints of the ledgers at one address; threads and processes may share them.

    Parameters
    ----------
    url : str
        The address of the server.
    several : bool
        Whether ledgers at this address may change, as on a port of this machine.
    """

    def __init__(self, url: str, several: bool) -> None:
        self._url, self._several, self._lock = url, several, threading.Lock()
        self._ledgers: dict[str, Remembered] = {}
        self._refresh()

    @property
    def path(self) -> Path:
        """The file."""
        return state_folder() / "servers" / f"{hashlib.sha256(self._url.encode()).hexdigest()[:32]}.json"

    @property
    def newest(self) -> Remembered | None:
        """What is remembered of the ledger that was seen last."""
        with self._lock:
            return next(reversed(self._ledgers.values()), None)

    def of(self, origin: str) -> Remembered | None:
        """Return what is remembered of a ledger."""
        with self._lock:
            return self._ledgers.get(origin)

    def take(
        self, checkpoint: Checkpoint, keys: Sequence[str], rotations: Sequence[str], old: Remembered | None
    ) -> None:
        """Remember a checkpoint if it continues what was remembered when it was asked for.

        Parameters
        ----------
        checkpoint : Checkpoint
            With the proof that it continues that of `old`.
        keys : sequence of str
            The public keys that have signed it, the one of the log first.
        rotations : sequence of str
            The notes by which keys name the next ones.
        old : Remembered or None
            What `of` returned for its ledger before the server was asked.

        Raises
        ------
        ReceiptError
            If it does not, or is signed by another key, or is of another ledger.
        """
        origin, size, _ = checkpoint.body
        signers = checkpoint.signers(keys)
        if read_key(signers[0])[0] != origin:
            raise ReceiptError(f"the ledger of {self._url} is signed by a key that is not named after it.")
        if old is not None:
            # the key that is remembered from now on: others may have signed what they have seen, too
            if signers[0] not in trusted_keys([old.vkey], rotations):
                raise ReceiptError(
                    f"the ledger of {self._url} is signed by another key than the one that is remembered, which does "
                    f"not vouch for it; ask its owner. {self._mend}"
                )
            try:
                checkpoint.require_continues(old.checkpoint)
            except ReceiptError as error:
                raise ReceiptError(f"{self._url}: {error} {self._mend}") from None
        with self._lock:
            self._refresh()
            known = self._ledgers.get(origin)
            if known is None and self._ledgers and not self._several:
                raise ReceiptError(
                    f"the server at {self._url} has another ledger than the one that is remembered of it, so what was "
                    f"spent may be forgotten; ask its owner. {self._mend}"
                )
            if known is None or known == old:
                known = Remembered(signers[0], Checkpoint(checkpoint.note))
            elif known.checkpoint.size == size:
                # Another thread or process was shown its own checkpoint meanwhile. No proof leads from there to this
                # one, so that one stays, and is what the next proof must begin with.
                checkpoint.require_continues(known.checkpoint)
            self._ledgers.pop(origin, None)
            self._ledgers[origin] = known  # the last one is the one that was seen last
            self._save()

    def forget(self) -> None:
        """Forget everything about the server."""
        with self._lock:
            self._ledgers = {}
            self.path.unlink(missing_ok=True)

    @property
    def _mend(self) -> str:
        return f"If that is as it should be, `privet receipt forget {self._url}` begins anew."

    def _refresh(self) -> None:
        """Read the file, if it can be read."""
        with suppress(OSError, ValueError, TypeError, AttributeError, LookupError, ReceiptError):
            content = json.loads(self.path.read_text(encoding="utf-8"))
            self._ledgers = {
                origin: Remembered(str(own["vkey"]), Checkpoint.read(own["checkpoint"]))
                for origin, own in content["ledgers"].items()
            }

    def _save(self) -> None:
        """Write the file as a whole; where that cannot be done, this process alone remembers."""
        ledgers = {
            origin: {"vkey": own.vkey, "checkpoint": own.checkpoint.note} for origin, own in self._ledgers.items()
        }
        content: Mapping[str, object] = {"server": self._url, "ledgers": ledgers}
        with suppress(OSError, ReceiptError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
            try:
                draft.write_text(json.dumps(content, indent=1), encoding="utf-8")
                os.replace(draft, self.path)
            finally:
                draft.unlink(missing_ok=True)
