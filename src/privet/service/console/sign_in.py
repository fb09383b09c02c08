"""Who looks at a page: a token is shown once, a cookie stands for it until the person signs out.

The cookie holds 256 random bits, of which the server keeps the hash, in memory alone: after a restart people sign in
again. Behind it stands the id of a token. Every request looks that token up, so one that was revoked, has ended or lost
its grant ends the sign-in at once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# The prefix tells a browser to take the cookie from this host alone, over a connection that nobody can read: TLS, or
# this very machine. A browser that takes no such cookie on loopback without TLS is told so (`Console.signed_in`).
COOKIE = "__Host-privet"
IDLE = 1800  # seconds after which a sign-in ends that nobody uses
LONGEST = 12 * 3600  # seconds after which any sign-in ends
MOST = 10  # sign-ins of one token at a time; the oldest ends


@dataclass
class SignIn:
    """A person who has shown a token: which one, and when they were last here."""

    token: str  # its id
    begun: float
    used: float


class SignIns:
    """All who have signed in to a server.

    Parameters
    ----------
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_hash: dict[str, SignIn] = {}

    def __len__(self) -> int:
        return len(self._by_hash)

    def begin(self, token: str) -> str:
        """Return the secret of a new sign-in with a token, given by its id."""
        own = [name for name, one in self._by_hash.items() if one.token == token]
        for name in own[: max(0, len(own) - MOST + 1)]:
            del self._by_hash[name]
        secret, now = secrets.token_urlsafe(32), self._clock()
        self._by_hash[_hash(secret)] = SignIn(token, now, now)
        return secret

    def find(self, secret: str | None) -> SignIn | None:
        """Return the sign-in of a cookie, which is used now; None if it has ended, or never was."""
        if not self.lives(secret):
            return None
        found = self._by_hash[_hash(str(secret))]
        found.used = self._clock()
        return found

    def lives(self, secret: str | None) -> bool:
        """Return whether a cookie stands for a sign-in that has not ended; this does not use it."""
        self._sweep()
        return secret is not None and _hash(secret) in self._by_hash

    def end(self, secret: str | None) -> None:
        """End a sign-in, if it is one."""
        if secret is not None:
            self._by_hash.pop(_hash(secret), None)

    def _sweep(self) -> None:
        """Forget those that have ended by themselves."""
        now = self._clock()
        for name, one in list(self._by_hash.items()):
            if now - one.used > IDLE or now - one.begun > LONGEST:
                del self._by_hash[name]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def cookie(secret: str | None) -> str:
    """Return the header that sets the cookie, or with None removes it."""
    life = f"Max-Age={LONGEST}" if secret else "Max-Age=0"
    return f"{COOKIE}={secret or ''}; Path=/; {life}; Secure; HttpOnly; SameSite=Strict"


def from_elsewhere(headers: Mapping[str, str], scheme: str) -> bool:
    """Return whether a request that changes something may come from a page of another site.

    A browser says where a request comes from in headers that no page can set: Sec-Fetch-Site, and Origin, which is
    "null" on pages that send no referrer, as ours are. What says neither is no browser of today and is refused as well,
    so a form elsewhere never acts for whoever is signed in here.

    >>> from_elsewhere({"sec-fetch-site": "same-origin", "origin": "https://a.org", "host": "a.org"}, "https")
    False
    >>> from_elsewhere({"sec-fetch-site": "cross-site", "origin": "https://b.org", "host": "a.org"}, "https")
    True
    >>> from_elsewhere({"host": "a.org"}, "https"), from_elsewhere({"host": "a.org", "origin": "null"}, "https")
    (True, True)
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = f"{scheme}://{headers.get('host', '')}"
    return origin != own if site is None else site != "same-origin" or origin not in (None, "null", own)
