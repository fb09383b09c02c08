"""Lines of a ledger that no charge rests on: what servers did, models that were fitted, and keys that sign.

The kernel writes them with `Ledger.annotate` and finds them with `Ledger.find`; what they say, and what is read out of
them, stands here. Nothing in them is un-noised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from privet.errors import LedgerError
from privet.kernel import CapChange, Json, Ledger, Line

Facts = Mapping[str, Json]


class ServerEvent(NamedTuple):
    """Something that a server did besides answering: a grant, a refusal, a login, a change of its configuration."""

    number: int  # of the line in the log
    at: str
    what: str
    dataset: str | None
    analyst: str | None  # a name
    facts: dict[str, Any]  # public values
    held_back: dict[str, Any]  # what no receipt shows, as the hash of a token


class StoredModel(NamedTuple):
    """A model that a server has fitted for an analyst."""

    id: int
    analyst: str
    facts: dict[str, Any]  # entries, epsilon, spent, sha256 of the text
    text: str  # the model, as JSON
    key: str


# -- what servers did ---------------------------------------------------------------------------


def record(
    ledger: Ledger,
    event: str,
    *,
    dataset: str | None = None,
    analyst: str | None = None,
    facts: Facts | None = None,
    held_back: Facts | None = None,
) -> int:
    """Write down something that a server did besides answering. Return the number of its line.

    Parameters
    ----------
    ledger : Ledger
    event : str
        What it was, in a word.
    dataset, analyst : str, optional
        Whom it concerns.
    facts : mapping, optional
        What else is to be known about it: public values.
    held_back : mapping, optional
        What the ledger keeps beside the line, under its hash, and no receipt shows.
    """
    note: Facts = {"held_back": dict(held_back)} if held_back else {}
    line = ledger.annotate("config", dataset, analyst, {**(facts or {}), "event": event}, note)
    assert line is not None
    return line.number


def change(
    ledger: Ledger,
    seen: int,
    event: str,
    *,
    dataset: str | None = None,
    analyst: str | None = None,
    facts: Facts | None = None,
    caps: Sequence[CapChange] = (),
) -> int | None:
    """Write an event and the caps that follow from it in one transaction, if nothing was overlooked.

    Whoever decides by what servers have written so far calls this with the last event they have seen: of several
    decisions at once, on any server of the ledger, one is written, and the others are taken again.

    Parameters
    ----------
    ledger : Ledger
    seen : int
        The number of the last event that the caller knows.
    event, dataset, analyst, facts
        As for `record`.
    caps : sequence of CapChange

    Returns
    -------
    int or None
        The number of the line; None, and nothing is written, if there are events after `seen`.
    """
    body = {**(facts or {}), "event": event}
    line = ledger.annotate("config", dataset, analyst, body, seen=seen, caps=caps)
    return None if line is None else line.number


def events(ledger: Ledger, after: int = 0, most: int = 1000) -> list[ServerEvent]:
    """Return what servers have written down after a line of the log, in order, at most so much."""
    lines = ledger.find("kind = 'config' AND number > ? ORDER BY number LIMIT ?", after, most)
    names = ledger.analyst_names() if lines else {}
    return [_event(line, None if line.analyst is None else names[line.analyst]) for line in lines]


def _event(line: Line, analyst: str | None) -> ServerEvent:
    facts, note = dict(line.body), line.note
    what = facts.pop("event")
    return ServerEvent(line.number, note["at"], what, line.dataset, analyst, facts, dict(note.get("held_back", {})))


def latest(ledger: Ledger, before: int, most: int) -> list[tuple[Line, str | None]]:
    """Return lines of the log before a number, newest first, at most so many; answers are left out.

    Beside each is the name of the analyst whom it concerns, if it does.
    """
    lines = ledger.find("kind <> 'answer' AND number < ? ORDER BY number DESC LIMIT ?", before, most)
    names = ledger.analyst_names() if lines else {}
    return [(line, None if line.analyst is None else names[line.analyst]) for line in lines]


# -- models that were fitted --------------------------------------------------------------------


def store_model(
    ledger: Ledger, dataset: str, analyst: str, key: str | None, text: str, facts: Facts, *, keep: bool = True
) -> int:
    """Write down a model, which is made of releases. Return its number.

    Parameters
    ----------
    ledger : Ledger
    dataset, analyst : str
        Whose it is.
    key : str or None
        Under which key it was asked for.
    text : str
        The model, as JSON.
    facts : mapping
        `entries`, the numbers of the charges that paid for it, and what else is to be known.
    keep : bool, default True
        Keep the model itself, and not its hash alone. A model whose hash is there already is not written again.
    """
    own = _sha256(text)
    for line in () if keep else model_lines(ledger, own):
        if line.dataset == dataset and ledger.analyst_names().get(str(line.analyst)) == analyst:
            return line.serial
    note: Facts = {"model": text, "key": key} if keep else {}
    written = ledger.annotate("model", dataset, analyst, {**facts, "sha256": own}, note)
    assert written is not None
    return written.serial


def models(ledger: Ledger, dataset: str, analyst: str, after: int = 0, most: int = 1000) -> list[StoredModel]:
    """Return the models of an analyst on a data set after a number, in order, at most so many."""
    kept = "kind = 'model' AND dataset = ? AND analyst = ? AND serial > ? AND note LIKE ? ORDER BY number LIMIT ?"
    identity = next((identity for identity, name in ledger.analyst_names().items() if name == analyst), "")
    lines = ledger.find(kept, dataset, identity, after, '%"model":%', most)
    return [model for model in (_model(line, analyst) for line in lines) if model is not None]


def _model(line: Line, analyst: str) -> StoredModel | None:
    """Return the model in a line, or None if it has its hash alone."""
    note = line.note
    if "model" not in note:
        return None
    if _sha256(note["model"]) != line.body["sha256"]:
        raise LedgerError(f"the model in line {line.number} of the ledger is another; restore it from a backup.")
    return StoredModel(line.serial, analyst, dict(line.body), note["model"], note["key"])


def model_lines(ledger: Ledger, hash_of_text: str) -> list[Line]:
    """Return the lines of models with this SHA-256 hash."""
    lines = ledger.find("kind = 'model' AND line LIKE ? ORDER BY number", f'%"sha256":"{hash_of_text}"%')
    return [line for line in lines if line.body["sha256"] == hash_of_text]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- charges, as receipts show them; and keys that sign -----------------------------------------


def charge_line(ledger: Ledger, entry: int) -> Line | None:
    """Return the line of a charge, if there is one."""
    return next(iter(ledger.find("kind = 'charge' AND serial = ?", entry)), None)


def answer_line(ledger: Ledger, entry: int) -> Line | None:
    """Return the line of the answer to a charge, if there is one."""
    return next(iter(ledger.find("kind = 'answer' AND reference = ?", entry)), None)


def key_lines(ledger: Ledger) -> list[Line]:
    """Return the lines of signing keys, in order."""
    return ledger.find("kind = 'key' ORDER BY number")


def write_key(ledger: Ledger, body: Facts, known: Sequence[Line]) -> None:
    """Write the line of a signing key; LedgerError if there are others by now than the `known` ones."""
    if ledger.annotate("key", None, None, body, seen=known[-1].number if known else 0) is None:
        raise LedgerError("somebody else has written a signing key to the ledger meanwhile; look, and try again.")
