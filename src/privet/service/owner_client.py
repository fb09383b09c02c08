"""The owner's side over HTTP: `privet.connect(url, owner_token).owner` grants, raises, withdraws and decides.

Replies are what the API answers, as `GET /v1/openapi.json` describes it: amounts are fractions in texts, in the unit of
the table.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any, Protocol
from urllib.parse import quote

from privet.kernel import Json, as_epsilon

Reply = dict[str, Any]
Epsilon = int | float | str | Fraction


class Transport(Protocol):
    """What sends requests: a connection."""

    def get(self, path: str, **query: int) -> Reply: ...

    def post(self, path: str, body: Mapping[str, Json], *, once: bool = False) -> Reply: ...

    def delete(self, path: str) -> Reply: ...


class OwnerDesk:
    """What an owner can do about their tables while the server runs."""

    def __init__(self, connection: Transport) -> None:
        self._connection = connection

    # -- requests for more budget -----------------------------------------------------------

    def requests(self) -> list[Reply]:
        """Return all requests for more budget."""
        requests: list[Reply] = self._connection.get("/v1/owner/requests")["requests"]
        return requests

    def decide(self, request: int, granted: bool) -> Reply:
        """Grant or deny a request; QuestionError if it was decided before."""
        return self._connection.post(f"/v1/owner/requests/{int(request)}", {"granted": bool(granted)})

    # -- grants and caps --------------------------------------------------------------------

    def grants(self) -> list[Reply]:
        """Return who may use which table, by whose word, with cap, raises and spending."""
        grants: list[Reply] = self._connection.get("/v1/owner/grants")["grants"]
        return grants

    def grant(
        self, analyst: str, table: str, *, epsilon: Epsilon | None = None, expires: date | str | None = None
    ) -> Reply:
        """Grant a table to an analyst.

        Parameters
        ----------
        analyst, table : str
        epsilon : number or str, optional
            A cap of their own; else that of the table is all there is.
        expires : date or str, optional
            The last day.

        Returns
        -------
        dict

        Raises
        ------
        QuestionError
            The configuration grants it, or a value is none.
        """
        cap = None if epsilon is None else _amount(epsilon)
        body: dict[str, Json] = {"analyst": analyst, "table": table, "epsilon": cap}
        return self._connection.post("/v1/owner/grants", {**body, "expires": None if expires is None else str(expires)})

    def withdraw(self, analyst: str, table: str) -> None:
        """Take a table from an analyst, until an owner grants it again, whatever the configuration says."""
        self._connection.post("/v1/owner/withdrawals", {"analyst": analyst, "table": table})

    def raise_cap(
        self,
        table: str,
        epsilon: Epsilon,
        *,
        analyst: str | None = None,
        permit: str | None = None,
        key: str | None = None,
    ) -> None:
        """Raise the cap of an analyst or of a permit by an epsilon, or of the table; the same key raises once."""
        key = uuid.uuid4().hex if key is None else key
        body: dict[str, Json] = {"table": table, "analyst": analyst, "permit": permit, "key": key}
        self._connection.post("/v1/owner/raises", {**body, "epsilon": _amount(epsilon)})

    # -- tokens -----------------------------------------------------------------------------

    def tokens(self) -> list[Reply]:
        """Return what the ledger knows of the tokens that are live."""
        tokens: list[Reply] = self._connection.get("/v1/owner/tokens")["tokens"]
        return tokens

    def create_token(self, analyst: str, *, tables: Sequence[str] | None = None, days: int = 90) -> str:
        """Return a new token for an analyst, which is kept nowhere. A lost reply is not asked for again."""
        listed: list[Json] | None = None if tables is None else list(tables)
        body: dict[str, Json] = {"analyst": analyst, "tables": listed, "days": days}
        secret: str = self._connection.post("/v1/owner/tokens", body, once=True)["secret"]
        return secret

    def revoke_token(self, token: str) -> None:
        """End a token, by its id, at once on all servers of the ledger."""
        self._connection.delete(f"/v1/owner/tokens/{quote(token, safe='')}")

    # -- what happened ----------------------------------------------------------------------

    def events(self, after: int = 0) -> list[Reply]:
        """Return what servers have written down after a line of the ledger."""
        events: list[Reply] = []
        last: int | None = after
        while last is not None:
            page = self._connection.get("/v1/owner/events", after=last)
            events += page["events"]
            last = page["next"]
        return events

    def reload(self) -> None:
        """Let the server read analysts and owners from its configuration again."""
        self._connection.post("/v1/owner/reload", {})


def _amount(epsilon: Epsilon) -> str:
    return str(as_epsilon(epsilon))
