"""Receipts: proofs that an answer or a model stands in a ledger, which anybody can check offline.

`Receipts` makes them of an open ledger, `check` reads one, and `verifier` is the same check in a file of 150 lines that
needs the standard library alone.
"""

from privet.receipts.kept import KeptCheckpoints, Remembered
from privet.receipts.keys import ROLES, SigningKey, key_file, key_of_server, load_key, new_key, rotate, rotations, vkeys
from privet.receipts.receipt import Checkpoint, Receipts, Shown, check, require_ledger_continues
from privet.receipts.verifier import LIMITS

__all__ = [
    "LIMITS",
    "ROLES",
    "Checkpoint",
    "KeptCheckpoints",
    "Receipts",
    "Remembered",
    "Shown",
    "SigningKey",
    "check",
    "key_file",
    "key_of_server",
    "load_key",
    "new_key",
    "require_ledger_continues",
    "rotate",
    "rotations",
    "vkeys",
]
