"""Signing keys: made, kept in files that only their owner can read, named by lines of the ledger, and rotated.

A key signs notes (c2sp.org/signed-note) with Ed25519. Its file has the text that other tools for signed notes use:
`PRIVATE+KEY+name+id+base64`. The ledger knows the public half from a line of the kind `key`. A later key is signed by
the one before it, so that whoever trusts the first one can follow; that stands in the line and in every receipt.

To sign needs `cryptography`; to check a signature needs the standard library alone.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import LedgerError, ReceiptError
from privet.kernel import Ledger
from privet.ledger_lines import key_lines, write_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROLES = LOG, SECOND = "log", "second"  # roles: the key of the log itself, and the owner's second one, kept elsewhere
ROTATION = "privet key rotation"  # the first line of the note by which an old key names the new one
_START = "PRIVATE+KEY+"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.:-]{0,98}[A-Za-z0-9])?")
_NEEDS = "receipts are signed with cryptography: pip install 'privet[receipts]'; checking them needs nothing."


def _ed25519() -> type[Ed25519PrivateKey]:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise ReceiptError(_NEEDS) from None
    return Ed25519PrivateKey


@dataclass(frozen=True)
class SigningKey:
    """A key that signs: its name, and the secret, which no repr shows."""

    name: str
    secret: bytes = field(repr=False)

    @classmethod
    def new(cls, name: str) -> SigningKey:
        """Return a new random key."""
        return cls(name, _ed25519().generate().private_bytes_raw())

    @property
    def public(self) -> bytes:
        """The public half."""
        return _ed25519().from_private_bytes(self.secret).public_key().public_bytes_raw()

    @property
    def id(self) -> bytes:
        """The four bytes by which a signature names its key."""
        return hashlib.sha256(f"{self.name}\n\1".encode() + self.public).digest()[:4]

    @property
    def vkey(self) -> str:
        """The public half as a text: what an owner publishes, and what `privet receipt check --key` takes."""
        return f"{self.name}+{self.id.hex()}+{_encoded(self.public)}"

    def signature(self, text: str) -> str:
        """Return the line that signs a text, which ends with a newline."""
        mark = self.id + _ed25519().from_private_bytes(self.secret).sign(text.encode())
        return f"\u2014 {self.name} {base64.b64encode(mark).decode()}\n"

    # -- its file ---------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write the key to a new file that only its owner can read.

        Raises
        ------
        ReceiptError
            If there is a file of this name, or it cannot be written.
        """
        text = f"{_START}{self.name}+{self.id.hex()}+{_encoded(self.secret)}\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise ReceiptError(f"there is a key at '{path}' already, which would be lost; name another file.") from None
        except OSError as error:
            raise ReceiptError(f"cannot write the key '{path}' ({error.strerror}); name another file.") from None

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read a key from its file.

        Raises
        ------
        ReceiptError
            If it is not there, is no key, or others can read it.
        """
        try:
            mode, text = path.stat().st_mode, path.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise ReceiptError(f"cannot read the signing key '{path}' ({why}).") from None
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise ReceiptError(f"others can read the signing key '{path}'; run `chmod 600` on it, or make a new one.")
        try:
            name, identity, data = text.strip().removeprefix(_START).split("+", 2)
            secret = base64.b64decode(data, validate=True)
            key = cls(name, secret[1:])
            if not text.startswith(_START) or secret[:1] != b"\1" or key.id.hex() != identity:
                raise ValueError
        except ValueError:
            raise ReceiptError(f"'{path}' is no signing key of privet, or it is damaged.") from None
        return key


def _encoded(key: bytes) -> str:
    return base64.b64encode(b"\1" + key).decode()  # 1 stands for Ed25519


# -- the keys of a ledger -----------------------------------------------------------------------


def state_folder() -> Path:
    """Return where this user's programs keep what they remember."""
    home = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(home) if home else Path.home() / ".local" / "state") / "privet"
    except RuntimeError:
        raise ReceiptError("this user has no home folder; name one for such files with XDG_STATE_HOME.") from None


def key_file(ledger: Ledger) -> Path:
    """Return where the key of a ledger is: beside its file, or of one on a server in the user's state folder."""
    if Ledger.on_server(ledger.path):
        return state_folder() / "keys" / f"{ledger.id}.key"
    return Path(f"{os.path.realpath(ledger.path)}.key")


def vkeys(ledger: Ledger, role: str = LOG) -> list[str]:
    """Return the public keys of a role in the order in which they were made; the last one counts."""
    return [str(line.body["vkey"]) for line in key_lines(ledger) if line.body.get("role", LOG) == role]


def rotations(ledger: Ledger) -> list[str]:
    """Return the notes by which each key of the log names the next one."""
    return [str(line.body["rotation"]) for line in key_lines(ledger) if "rotation" in line.body]


def new_key(ledger: Ledger, host: str | None = None, path: Path | None = None, second: bool = False) -> SigningKey:
    """Make the signing key of a ledger, or the owner's second one, and write a line about it.

    Parameters
    ----------
    ledger : Ledger
    host : str, optional
        Who signs, as hospital.example; else whom the first key names, or "privet". The id of the ledger follows it in
        the name of the key.
    path : Path, optional
        The file, other than `key_file`; needed for a second key, which is best kept on another machine.
    second : bool, default False

    Returns
    -------
    SigningKey

    Raises
    ------
    ReceiptError
        If there is one already, or the file cannot be written.
    """
    if not ledger.durable:
        raise ReceiptError(
            "a ledger in memory is gone with its process, so nothing about it can be signed; name a file."
        )
    host = host or next((vkey.partition("/")[0] for vkey in vkeys(ledger)), "privet")
    if not _HOST.fullmatch(host):
        raise ReceiptError("a key is named after who signs, as hospital.example: letters, digits, dots and hyphens.")
    role = SECOND if second else LOG
    if vkeys(ledger, role):
        which = "a second key" if second else "a signing key"
        raise ReceiptError(
            f"this ledger has {which} already; `privet receipt key show` shows it, `rotate` replaces it."
        )
    known = key_lines(ledger)
    key = SigningKey.new(f"{host}/{ledger.id}" if not second else f"{host}/{ledger.id}/second")
    path = path or key_file(ledger)
    orphan = _loaded_if_there(path)
    made = orphan is None or orphan.name != key.name
    if orphan is not None and not made:
        key = orphan  # of a process that was killed before it wrote the line, or that is about to
    else:
        key.save(path)
    try:
        write_key(ledger, {"vkey": key.vkey, "role": role}, known)
    except LedgerError:
        if key.vkey not in vkeys(ledger, role):  # else another process has written the line for the same file
            if made:
                path.unlink(missing_ok=True)
            raise
    return key


def _loaded_if_there(path: Path) -> SigningKey | None:
    """Return the key of a file, if there is one."""
    try:
        return SigningKey.load(path) if path.exists() else None
    except ReceiptError:
        return None


def rotate(ledger: Ledger, path: Path | None = None, second: bool = False) -> SigningKey:
    """Replace a key by a new one, which the old one signs; the old secret is deleted.

    Raises
    ------
    ReceiptError
        If there is no key, or the file is not that of the key in force.
    """
    path, role = path or key_file(ledger), SECOND if second else LOG
    old = load_key(ledger, path, second)
    new, known = SigningKey.new(old.name), key_lines(ledger)
    text = f"{ROTATION}\n{old.vkey}\n{new.vkey}\n"
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)  # of a rotation that never reached the ledger: `load_key` has looked
    new.save(unfinished)
    write_key(ledger, {"vkey": new.vkey, "role": role, "rotation": f"{text}\n{old.signature(text)}"}, known)
    os.replace(unfinished, path)
    return new


def load_key(ledger: Ledger, path: Path | None = None, second: bool = False) -> SigningKey:
    """Return the key in force, from its file.

    Raises
    ------
    ReceiptError
        If the ledger has none, or the file has another.
    """
    path = path or key_file(ledger)
    known = vkeys(ledger, SECOND if second else LOG)
    if not known:
        raise ReceiptError("this ledger has no signing key; its owner makes one with `privet receipt key new`.")
    unfinished = path.with_name(path.name + ".new")
    if unfinished.exists() and SigningKey.load(unfinished).vkey == known[-1]:
        os.replace(unfinished, path)  # a rotation that was interrupted after its line was written
    key = SigningKey.load(path)
    if key.vkey != known[-1]:
        raise ReceiptError(f"the key '{path}' is not the one in force; copy that from the machine where it was made.")
    return key


def key_of_server(ledger: Ledger) -> SigningKey | None:
    """Return the key that a server signs with; make one for a ledger that has none. None if it cannot be had here."""
    try:
        return load_key(ledger) if vkeys(ledger) else new_key(ledger)
    except (ReceiptError, LedgerError):
        return None
