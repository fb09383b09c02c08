"""Tokens: how an analyst or an owner proves to a server who they are.

A token is made where the ledger is, shown once, and kept as its hash alone, in an event of the ledger. Servers on one
ledger so know the same tokens, and a revocation is a line that stays. A token names its role, the tables it is for and
the day it ends. Who has two that are live must revoke one before they get another: two are enough to rotate.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from privet import ledger_lines
from privet.errors import QuestionError
from privet.kernel import Ledger, is_name
from privet.ledger_lines import ServerEvent
from privet.service.decisions import Follower

ANALYST, OWNER = "analyst", "owner"
_PREFIXES = {ANALYST: "pvt_a_", OWNER: "pvt_o_"}
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM = 30  # characters of base 62: 178 bits
_CHECK = 6  # characters of a CRC-32
_SHAPE = re.compile(r"pvt_[ao]_[0-9A-Za-z]{36}")
_LIVE = 2  # tokens of one name and role
LONGEST_LIFE = 400  # days


@dataclass(frozen=True)
class Token:
    """What the ledger knows of a token."""

    id: str  # names it in lists and in logs; tells nothing about it
    name: str  # whose it is
    role: str
    tables: tuple[str, ...] | None  # those that it is for; None for all of its analyst
    expires: datetime

    def live(self, now: datetime) -> bool:
        return now < self.expires


def _encoded(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def new_secret(role: str) -> str:
    """Return a new token: a prefix, 178 random bits, and a checksum by which a scanner tells it from other texts."""
    body = _PREFIXES[role] + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return body + _encoded(zlib.crc32(body.encode()), _CHECK)


def is_token(text: str) -> bool:
    """Is it written as a token is, with its checksum?

    >>> is_token(new_secret(ANALYST)), is_token("pvt_a_" + "0" * 36)
    (True, False)
    """
    return bool(_SHAPE.fullmatch(text)) and text[-_CHECK:] == _encoded(zlib.crc32(text[:-_CHECK].encode()), _CHECK)


def hash_of(secret: str) -> str:
    """Return what is kept of a token. It needs no salt and no slow hash: nobody can try 178 bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)


class Tokens(Follower):
    """The tokens in a ledger.

    Parameters
    ----------
    ledger : Ledger
    clock : callable, optional
        Returns the time, for tests.
    """

    def __init__(self, ledger: Ledger, clock: Callable[[], datetime] = _now) -> None:
        super().__init__(ledger)
        self._clock = clock
        self._by_hash: dict[str, Token] = {}
        self._hashes: dict[str, str] = {}  # by id
        self.refresh()

    def _take(self, event: ServerEvent) -> None:
        if event.what == "token":
            facts = event.facts
            tables = None if facts["tables"] is None else tuple(facts["tables"])
            expires = datetime.fromisoformat(facts["expires"])
            token = Token(facts["token"], str(event.analyst), facts["role"], tables, expires)
            secret_hash = event.held_back["sha256"]
            self._by_hash[secret_hash], self._hashes[token.id] = token, secret_hash
        elif event.what == "revoke":
            self._by_hash.pop(self._hashes.pop(event.facts["token"], ""), None)

    def find(self, secret: str) -> Token | None:
        """Return the live token that was presented, if it is one."""
        token = self._by_hash.get(hash_of(secret)) if is_token(secret) else None
        return token if token is not None and token.live(self._clock()) else None

    def live(self, identity: str) -> Token | None:
        """Return the live token of this id, if there is one."""
        token = self._by_hash.get(self._hashes.get(identity, ""))
        return token if token is not None and token.live(self._clock()) else None

    def revoked(self, identity: str) -> bool:
        """Return whether a token was revoked; one that has ended with its day was not."""
        return identity not in self._hashes

    def all(self) -> list[Token]:
        """Return all that were not revoked."""
        return sorted(self._by_hash.values(), key=lambda token: (token.name, token.expires))

    def create(
        self, name: str, role: str = ANALYST, tables: tuple[str, ...] | None = None, days: int = 90
    ) -> tuple[str, Token]:
        """Make a token; return its secret, which is kept nowhere, and what the ledger knows of it.

        Raises
        ------
        QuestionError
            The name is none, its life is too long, or two are live.
        """
        if not is_name(name):
            raise QuestionError("a token is for a printable name of 1 to 200 characters.")
        if not 0 < days <= LONGEST_LIFE:
            raise QuestionError(f"a token lives 1 to {LONGEST_LIFE} days.")
        self.refresh()
        now = self._clock()
        live = [token for token in self.all() if (token.name, token.role) == (name, role) and token.live(now)]
        if len(live) >= _LIVE:
            raise QuestionError(f"'{name}' has {_LIVE} live tokens; revoke one with `privet token revoke` first.")
        secret, identity = new_secret(role), secrets.token_hex(6)
        token = Token(identity, name, role, tables, now + timedelta(days=days))
        ledger_lines.record(
            self.ledger,
            "token",
            analyst=name,
            facts={
                "token": identity,
                "role": role,
                "tables": None if tables is None else list(tables),
                "expires": token.expires.isoformat(timespec="seconds"),
            },
            held_back={"sha256": hash_of(secret)},
        )
        self.refresh()
        return secret, token

    def revoke(self, identity: str) -> Token:
        """End a token at once, on all servers of the ledger. QuestionError if there is none of this id."""
        self.refresh()
        token = next((token for token in self.all() if token.id == identity), None)
        if token is None:
            raise QuestionError(f"the ledger has no token '{identity}'; `privet token list` shows those it has.")
        ledger_lines.record(self.ledger, "revoke", analyst=token.name, facts={"token": identity})
        self.refresh()
        return token
