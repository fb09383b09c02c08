"""Where a ledger is: in a file, on a server, or in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from privet.errors import LedgerError
from privet.kernel.ledger.sqlite import MEMORY, SQLiteStore
from privet.kernel.ledger.store import Store
from privet.kernel.limits import is_path, shown

if TYPE_CHECKING:
    from privet.kernel.ledger.postgres import PostgresStore


def on_server(path: str | Path) -> bool:
    """Whether a path is the address of a ledger on a server and no file."""
    return str(path).startswith(("postgresql:", "postgres:"))  # of two slashes a Path would keep one


def identity_of(path: str | Path) -> str:
    """The same text for every path to the same ledger, without opening it; of a server, whoever connects."""
    target = _followed(str(path))
    if on_server(target):
        return _postgres().identity_at(target)
    return os.path.realpath(target) if target != MEMORY and is_path(target) else target


def open_store(path: str | Path, create: bool, new_id: str) -> Store:
    """Open the store at a path; where there is none, and `create` allows it, make one with the id `new_id`."""
    target = _followed(str(path))
    if on_server(target):
        return _postgres().open(target, create, new_id)
    if not is_path(target):
        raise LedgerError(f"no ledger can be at '{shown(target)}': no file can have this name; choose another.")
    return SQLiteStore.open(target, create, new_id)


def _followed(path: str) -> str:
    """Where a link leads that stands beside data whose ledger is on a server; every other path as it is."""
    try:
        target = os.readlink(path)
    except (OSError, ValueError):
        return path
    return target if on_server(target) else path


def _postgres() -> type[PostgresStore]:
    try:
        from privet.kernel.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError("a ledger on PostgreSQL needs psycopg: pip install 'privet[postgres]'.") from None
    return PostgresStore
