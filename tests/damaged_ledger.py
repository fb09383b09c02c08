"""Ledger files that somebody has had in their hands: what only they can do to them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privet.kernel.ledger.log import canonical, leaf_hash, sha256


@contextmanager
def unprotected(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger file without its triggers; they are there again afterwards."""
    raw = sqlite3.connect(path)
    triggers = raw.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _, _ in triggers:
        raw.execute(f"DROP TRIGGER {name}")
    yield raw
    tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for _, table, sql in triggers:
        if table in tables:
            raw.execute(sql)
    raw.commit()
    raw.close()


def damage(path: Path, statement: str) -> None:
    """Run a statement that the triggers refuse."""
    with unprotected(path) as raw:
        raw.execute(statement)


def forge(path: Path, kind: str, serial: int, /, *, note: dict[str, Any] | None = None, **changes: Any) -> None:
    """Change what a line says, and make its hashes and columns agree with it: only the others can tell.

    Changes are made to the body, or to the line itself where it has such a member; those that are None are left out.
    """
    with unprotected(path) as raw:
        query = "SELECT number, line, note FROM lines WHERE kind = ? AND serial = ?"
        number, text, note_text = raw.execute(query, (kind, serial)).fetchone()
        line = json.loads(text)
        for name, value in changes.items():
            (line if name in line else line["body"])[name] = value
        line["body"] = {name: value for name, value in line["body"].items() if value is not None or name not in changes}
        if note is not None:
            note_text = canonical({**json.loads(note_text), **note})
            line["note"] = sha256(note_text)
        body = line["body"]
        found_by = (
            (None, None, None, body["entry"])
            if kind == "answer"
            else (line["dataset"], line["analyst"], body.get("key"), body.get("reservation"))
        )
        raw.execute(
            "UPDATE lines SET dataset = ?, analyst = ?, key = ?, reference = ?, line = ?, note = ?, leaf = ? "
            "WHERE number = ?",
            (*found_by, canonical(line), note_text, leaf_hash(canonical(line)), number),
        )
