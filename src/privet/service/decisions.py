"""What owners were asked and have decided, as the ledger has it: requests, raises, grants and withdrawals.

All of it are events of the ledger, so it outlives a server and holds on all servers of one ledger. A decision is
written together with the caps that follow from it, and only by whoever has seen everything that was decided before:
of two at once one is taken again.

An analyst's cap is what the configuration, or an owner's grant, says (its *base*), and what owners have raised it by.
The base is written down when it changes. So a server that starts with the same configuration changes nothing, two that
start at once raise nothing twice, and a lower base lowers the cap by the difference.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Literal, NamedTuple

from privet import ledger_lines
from privet.errors import QuestionError
from privet.kernel import CapChange, Json, Ledger
from privet.ledger_lines import ServerEvent

MOST_OPEN = 20  # requests of an analyst on a table that wait for an owner


class Follower(ABC):
    """Something that follows from the events of a ledger, and is kept up as they are written."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.seen = 0  # the number of the last event that was taken in
        self._reading = threading.Lock()

    def refresh(self) -> int:
        """Take in what was written since; return the number of the last event that is taken in."""
        with self._reading:
            while events := ledger_lines.events(self.ledger, self.seen):
                for event in events:
                    self._take(event)
                self.seen = events[-1].number
            return self.seen

    @abstractmethod
    def _take(self, event: ServerEvent) -> None:
        """Take in an event."""


class Whose(NamedTuple):
    """Whose cap it is: an analyst's or a permit's on a data set, or that of the data set itself."""

    dataset: str
    analyst: str | None = None
    permit: str | None = None


class BudgetRequest(NamedTuple):
    """A request for more budget, as the ledger has it."""

    id: int
    analyst: str
    dataset: str
    epsilon: str  # in the unit of the data set
    purpose: str
    key: str
    permit: str | None = None
    state: Literal["open", "granted", "denied"] = "open"
    approved: tuple[str, ...] = ()  # owners who have agreed

    @property
    def whose(self) -> Whose:
        """Whose cap it would raise."""
        return Whose(self.dataset, permit=self.permit) if self.permit else Whose(self.dataset, self.analyst)


class OwnerGrant(NamedTuple):
    """A table that an owner has granted to an analyst while a server ran."""

    cap: Fraction | None  # in the unit of the table; without what it was raised by
    expires: date | None
    by: str


class OwnersWord(Follower):
    """What owners were asked and have decided.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.requests: dict[int, BudgetRequest] = {}
        self.bases: dict[Whose, Fraction] = {}
        self.raised: defaultdict[Whose, Fraction] = defaultdict(Fraction)
        # what was written last of each permit, of what the configuration grants each analyst, and of who is an owner
        self.permits: dict[str, Mapping[str, Json]] = {}
        self.configured: dict[str, Mapping[str, Json]] = {}
        self.owners: list[Json] = []
        self.grants: dict[tuple[str, str], OwnerGrant] = {}  # by analyst and data set
        self.withdrawn: set[tuple[str, str]] = set()
        self._raises: dict[tuple[str, str], tuple[Whose, str]] = {}  # what was raised, by owner and key
        self.refresh()

    def _take(self, event: ServerEvent) -> None:
        facts, dataset, analyst = event.facts, str(event.dataset), str(event.analyst)
        match event.what:
            case "request":
                words = facts["epsilon"], facts["purpose"], facts["key"], facts.get("permit")
                self.requests[event.number] = BudgetRequest(event.number, analyst, dataset, *words)
            case "approval" | "decision":
                request = self.requests[facts["request"]]
                if event.what == "approval" or facts["granted"]:
                    request = request._replace(approved=(*request.approved, facts["by"]))
                if event.what == "decision":
                    request = request._replace(state="granted" if facts["granted"] else "denied")
                self.requests[request.id] = request
                self._raise(request.whose, facts)
            case "raise":
                whose = Whose(dataset, event.analyst, facts.get("permit"))
                self._raises[facts["by"], facts["key"]] = whose, facts["amount"]
                self._raise(whose, facts)
            case "configured-cap":
                self.bases[Whose(dataset, event.analyst, facts.get("permit"))] = Fraction(facts["cap"])
            case "owner-grant":
                cap = None if facts["cap"] is None else Fraction(facts["cap"])
                expires = None if facts["expires"] is None else date.fromisoformat(facts["expires"])
                self.grants[analyst, dataset] = OwnerGrant(cap, expires, facts["by"])
                self.withdrawn.discard((analyst, dataset))
                if cap is not None:
                    self.bases[Whose(dataset, analyst)] = cap
            case "withdrawal":
                self.grants.pop((analyst, dataset), None)
                self.withdrawn.add((analyst, dataset))
            case "permit":
                self.permits[facts["permit"]] = facts
            case "grant":
                self.configured[analyst] = facts
            case "owners":
                self.owners = facts["owners"]

    def _raise(self, whose: Whose, facts: Mapping[str, str]) -> None:
        for name, own in (("own_raise", whose), ("dataset_raise", Whose(whose.dataset))):
            if name in facts:
                self.raised[own] += Fraction(facts[name])

    # -- writing ----------------------------------------------------------------------------

    def set_base(self, whose: Whose, base: Fraction) -> None:
        """Write down what a configuration allows, if that is new, and set the cap that follows from it."""
        while True:
            seen = self.refresh()
            if self.bases.get(whose) == base:
                return
            caps = [CapChange(whose.dataset, whose.analyst, base, self.raised[whose], whose.permit)]
            facts: dict[str, Json] = {"cap": str(base)}
            facts |= {} if whose.permit is None else {"permit": whose.permit}
            if self._write(seen, "configured-cap", whose.dataset, whose.analyst, facts, caps):
                return

    def announce_permit(self, name: str, content: Mapping[str, Json]) -> None:
        """Write down what a configuration says of a permit, if that is new."""
        while True:
            seen = self.refresh()
            if self.permits.get(name) == content or self._write(seen, "permit", None, None, content):
                return

    def announce_grant(self, analyst: str, content: Mapping[str, Json]) -> None:
        """Write down what a configuration grants an analyst, if that is new."""
        while True:
            seen = self.refresh()
            if self.configured.get(analyst) == content or self._write(seen, "grant", None, analyst, content):
                return

    def announce_owners(self, owners: Sequence[str]) -> None:
        """Write down whom a configuration names as owners, if that is new."""
        names: list[Json] = [*sorted(set(owners))]
        while True:
            seen = self.refresh()
            if self.owners == names or self._write(seen, "owners", None, None, {"owners": names}):
                return

    def request(
        self, dataset: str, analyst: str, epsilon: Fraction, purpose: str, key: str, permit: str | None
    ) -> BudgetRequest:
        """Write a request down; return it, or the one that was written under the key.

        Raises
        ------
        QuestionError
            So many wait for an owner that nobody would read one more.
        """
        while True:
            seen = self.refresh()
            own = [
                known for known in list(self.requests.values()) if (known.dataset, known.analyst) == (dataset, analyst)
            ]
            for known in own:
                if known.key == key:
                    return known
            if sum(known.state == "open" for known in own) >= MOST_OPEN:
                raise QuestionError(f"{MOST_OPEN} requests of yours wait for an owner; ask again when one is decided.")
            facts: dict[str, Json] = {"epsilon": str(epsilon), "purpose": purpose, "key": key}
            facts |= {} if permit is None else {"permit": permit}
            number = self._write(seen, "request", dataset, analyst, facts)
            if number is not None:
                return self.requests[number]

    def decide(self, request: int, granted: bool, by: str, approvals: int = 1) -> BudgetRequest | None:
        """Grant or deny a request; return it, or None if it was decided, or approved by this owner, before.

        So many different owners must grant it; the last of them raises the cap, and the data set's if that is in its
        way. One of them denies it.
        """
        while True:
            seen = self.refresh()
            found = self.requests[request]
            if found.state != "open" or (granted and by in found.approved):
                return None
            facts: dict[str, Json] = {"request": found.id, "by": by}
            caps: list[CapChange] = []
            event = "approval" if granted and len(found.approved) + 1 < approvals else "decision"
            if event == "decision":
                facts["granted"] = granted
                if granted:
                    more, caps = self._raises_of(found.whose, Fraction(found.epsilon))
                    facts |= more
            if self._write(seen, event, found.dataset, found.analyst, facts, caps):
                return self.requests[request]

    def raise_cap(self, whose: Whose, amount: Fraction, by: str, key: str) -> bool:
        """Raise a cap by an amount, once for each key of an owner. False if the key stands for another raise.

        The data set's is raised as well if it is in the way.
        """
        while True:
            seen = self.refresh()
            known = self._raises.get((by, key))
            if known is not None:
                return known == (whose, str(amount))
            more, caps = self._raises_of(whose, amount)
            facts: dict[str, Json] = {"by": by, "key": key, "amount": str(amount), **more}
            facts |= {} if whose.permit is None else {"permit": whose.permit}
            if self._write(seen, "raise", whose.dataset, whose.analyst, facts, caps):
                return True

    def _raises_of(self, whose: Whose, amount: Fraction) -> tuple[dict[str, Json], list[CapChange]]:
        """Return what is raised so that an analyst, a permit or everybody together has this much more."""
        ledger, facts, caps, lacking = self.ledger, dict[str, Json](), list[CapChange](), amount
        dataset, analyst, permit = whose
        if analyst is not None or permit is not None:
            room = (ledger.cap(dataset) or 0) - ledger.spent(dataset)
            lacking = amount - (room - sum(hold.left for hold in ledger.holds(dataset)))
            if ledger.cap(*whose) is not None:
                facts["own_raise"] = str(amount)
                caps.append(CapChange(dataset, analyst, None, amount, permit))
        if lacking > 0:
            facts["dataset_raise"] = str(lacking)
            caps.append(CapChange(dataset, None, None, lacking))
        return facts, caps

    def grant(self, dataset: str, analyst: str, granted: OwnerGrant) -> None:
        """Grant a table to an analyst, or change the terms of such a grant."""
        expires = None if granted.expires is None else granted.expires.isoformat()
        cap = None if granted.cap is None else str(granted.cap)
        facts: dict[str, Json] = {"cap": cap, "expires": expires, "by": granted.by}
        while True:
            seen = self.refresh()
            if self.grants.get((analyst, dataset)) == granted:
                return
            more, caps = self.raised[Whose(dataset, analyst)], []
            if granted.cap is not None:
                caps = [CapChange(dataset, analyst, granted.cap, more)]
            if self._write(seen, "owner-grant", dataset, analyst, facts, caps):
                return

    def withdraw(self, dataset: str, analyst: str, by: str) -> None:
        """Take a table from an analyst, until an owner grants it again, whatever a configuration says."""
        while True:
            seen = self.refresh()
            if (analyst, dataset) in self.withdrawn or self._write(seen, "withdrawal", dataset, analyst, {"by": by}):
                return

    def _write(
        self,
        seen: int,
        event: str,
        dataset: str | None,
        analyst: str | None,
        facts: Mapping[str, Json],
        caps: Sequence[CapChange] = (),
    ) -> int | None:
        """Write an event and its caps, and take it in; None if something was written after `seen`."""
        number = ledger_lines.change(self.ledger, seen, event, dataset=dataset, analyst=analyst, facts=facts, caps=caps)
        self.refresh()
        return number
