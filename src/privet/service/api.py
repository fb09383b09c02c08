"""What crosses the wire, as types: the bodies of requests and replies, and the kinds of problems (RFC 9457).

The document that `GET /v1/openapi.json` returns is made of these types and of the list of routes, so it cannot say
anything else than what is read and written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

VERSION = 1  # of the API
MEDIA_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
URN = "urn:privet:problem:"

Id = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{8,64}$", description="made by the client, new for each")]
Key = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        description="the same request under the same key is paid once, and answered alike",
    ),
]
Amount = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[0-9]{1,70}(/[1-9][0-9]{0,69})?$", max_length=141, description="exact: a fraction in lowest terms"
    ),
]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
PartNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**19)]
EntryNumber = Annotated[int, msgspec.Meta(ge=1, lt=2**53)]
Chain = Annotated[list[dict[str, Any]], msgspec.Meta(max_length=400)]


class Body(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Base of what a client sends: nothing else than what is listed."""


class Reply(msgspec.Struct, kw_only=True, frozen=True):
    """Base of what a server answers."""


# -- asking ---------------------------------------------------------------------------------------


Purpose = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class UnderBody(Body, kw_only=True, frozen=True):
    """The data permit that something is done under, and the purpose."""

    permit: Name
    purpose: Purpose | None = None


class RowsBody(Body, kw_only=True, frozen=True):
    """Which rows: a sitting, the steps to them, and the reservation that pays."""

    sitting: Id
    under: UnderBody | None = None
    rows: Chain
    hold: Id | None = None


class AnswerBody(RowsBody, kw_only=True, frozen=True):
    """A question of some rows."""

    question: dict[str, Any]
    epsilon: dict[str, Any]
    key: Key


class AnswerReply(Reply, kw_only=True, frozen=True):
    """Plain noisy values, one for each part, as the ledger keeps them."""

    answer: list[Any]
    private: bool  # false where noise is seeded, for tests
    entry: int | None  # in the ledger; None for no parts
    unit: str
    delta: str | None


class QuoteBody(RowsBody, kw_only=True, frozen=True):
    """What a question would cost."""

    question: dict[str, Any]
    epsilon: dict[str, Any]


class QuoteReply(Reply, kw_only=True, frozen=True):
    """What would be charged to the table now, and whether that is left."""

    loss: str
    remaining: str
    fits: bool
    unit: str
    delta: str | None


class RemainingReply(Reply, kw_only=True, frozen=True):
    """What each part may still be charged; of a single part also what it has cost."""

    remaining: dict[str, Any]
    spent: str | None


class RefineBody(Body, kw_only=True, frozen=True):
    """Which parts of an answer are to be refined, and how far."""

    sitting: Id
    under: UnderBody | None = None
    entry: EntryNumber
    parts: Annotated[list[PartNumber], msgspec.Meta(min_length=1, max_length=2**19)]
    epsilon: dict[str, Any]


class LevelReply(Reply, kw_only=True, frozen=True):
    """What a part has after a refinement."""

    epsilon: str
    value: Any
    entry: int
    private: bool


class RefineReply(Reply, kw_only=True, frozen=True):
    """What each of the parts has."""

    levels: list[LevelReply]


class HoldBody(RowsBody, kw_only=True, frozen=True):
    """A reservation for some rows, under an id that the client has made."""

    id: Id
    epsilon: Amount


class MonitorBody(RowsBody, kw_only=True, frozen=True):
    """A monitor of some rows, under an id that the client has made."""

    id: Id
    accuracy: Amount
    epsilon: Amount


class MonitorReply(Reply, kw_only=True, frozen=True):
    """What was charged for a monitor."""

    id: str
    epsilon: str
    private: bool


class CheckBody(Body, kw_only=True, frozen=True):
    """A model, and the number of this check."""

    sitting: Id
    under: UnderBody | None = None
    check: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    model: dict[str, Any]


class CheckReply(Reply, kw_only=True, frozen=True):
    """Whether the model is accurate enough, noisily."""

    reached: bool


class SittingBody(Body, kw_only=True, frozen=True):
    """A sitting."""

    sitting: Id


class DoneReply(Reply, kw_only=True, frozen=True):
    """It is done."""

    done: bool = True


# -- fits -----------------------------------------------------------------------------------------


Choice = Annotated[str, msgspec.Meta(max_length=1000)]


class FitBody(Body, kw_only=True, frozen=True):
    """A model to be fitted on the server, by the name of its algorithm."""

    algorithm: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,40}$")]
    epsilon: Amount
    key: Key
    choices: Annotated[dict[str, Choice | int | bool | None], msgspec.Meta(max_length=20)] = {}
    under: UnderBody | None = None
    once: bool = False  # one charge of the whole epsilon, under which the same request finishes what a crash ended


JobState = Literal["queued", "running", "done", "failed", "cancelled"]


class JobReply(Reply, kw_only=True, frozen=True):
    """How far a fit is."""

    id: str
    table: str
    algorithm: str
    state: JobState
    step: str
    done: int
    total: int | None
    charged: bool | Literal["unknown"]
    problem: str | None = None
    model: int | None = None  # its number in /models


class ModelFacts(Reply, kw_only=True, frozen=True):
    """A model that was fitted here."""

    id: int
    key: str
    facts: dict[str, Any]


class ModelsReply(Reply, kw_only=True, frozen=True):
    """The caller's models, after the one that was asked for."""

    models: list[ModelFacts]
    next: int | None  # for `after`


class ModelReply(Reply, kw_only=True, frozen=True):
    """A model whole."""

    id: int
    key: str
    facts: dict[str, Any]
    model: dict[str, Any]


# -- receipts -------------------------------------------------------------------------------------


class ReceiptReply(Reply, kw_only=True, frozen=True):
    """A receipt, and the proof that its log continues an older checkpoint."""

    receipt: str  # to the byte as it is checked
    since: int  # lines of the older one; 0 for none
    proof: list[str]  # hashes (RFC 9162, 2.1.4)


class CheckpointReply(Reply, kw_only=True, frozen=True):
    """What the log says of itself, signed, and the proof that it continues an older checkpoint."""

    checkpoint: str
    since: int
    proof: list[str]
    keys: list[str]  # that have signed it
    rotations: list[str]  # notes by which each key names the next one


# -- what there is --------------------------------------------------------------------------------


class TablesReply(Reply, kw_only=True, frozen=True):
    """The caller's tables."""

    tables: list[str]


class TableReply(Reply, kw_only=True, frozen=True):
    """What is public about a table."""

    table: str
    analyst: str
    domain: str  # the text of its domain file
    fingerprint: str
    unit: str
    delta: str | None
    private: bool
    access: str
    questions: list[str]
    api: int
    version: str
    tick: float


class HoldReply(Reply, kw_only=True, frozen=True):
    """An open reservation of the caller's."""

    id: int
    epsilon: str
    spent: str


class BudgetReply(Reply, kw_only=True, frozen=True):
    """What was spent and what is left, exactly."""

    unit: str
    delta: str | None
    spent: str  # by the caller
    remaining: str  # to the caller
    cap: str | None  # of the caller
    granted: bool  # whether without a permit; else `remaining` is what the best of the caller's permits leaves
    dataset_cap: str
    dataset_spent: str
    holds: list[HoldReply]


class EntryReply(Reply, kw_only=True, frozen=True):
    """A charge of the caller's."""

    id: int
    scope: str
    question: str
    epsilon: str
    loss: str
    key: str | None
    at: str
    answered: bool


class EntriesReply(Reply, kw_only=True, frozen=True):
    """Charges of the caller's, after the one that was asked for."""

    entries: list[EntryReply]
    next: int | None  # for `after`


class RequestBody(Body, kw_only=True, frozen=True):
    """More budget, and what for."""

    epsilon: Amount
    purpose: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    permit: Name | None = None  # whose cap is to be raised; the purpose is then one of its own
    key: Key


class RequestReply(Reply, kw_only=True, frozen=True):
    """A request for more budget."""

    id: int
    analyst: str
    table: str
    epsilon: str
    purpose: str
    state: Literal["open", "granted", "denied"]
    permit: str | None
    approved: list[str]  # owners who have agreed so far; for owners to see
    approvals: int  # how many must


class RequestsReply(Reply, kw_only=True, frozen=True):
    """Requests for more budget."""

    requests: list[RequestReply]


class DecisionBody(Body, kw_only=True, frozen=True):
    """An owner's word on a request for more budget."""

    granted: bool


# -- grants, caps and tokens ------------------------------------------------------------------------


class GrantBody(Body, kw_only=True, frozen=True):
    """A table for an analyst: with a cap of their own, and until a day, if these are given."""

    analyst: Name
    table: Name
    epsilon: Amount | None = None
    expires: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] | None = None


class WithdrawalBody(Body, kw_only=True, frozen=True):
    """A table that is taken from an analyst."""

    analyst: Name
    table: Name


class RaiseBody(Body, kw_only=True, frozen=True):
    """What a cap is raised by: an analyst's, a permit's, or the table's own."""

    table: Name
    analyst: Name | None = None
    permit: Name | None = None
    epsilon: Amount
    key: Key


class GrantReply(Reply, kw_only=True, frozen=True):
    """What an analyst may use of a table, and by whose word."""

    analyst: str
    table: str
    source: Literal["configuration", "owner", "token"] | None  # None: it is withdrawn, or has ended
    expires: str | None
    cap: str | None  # their own, raises included
    raised: str
    spent: str
    unit: str
    delta: str | None


class GrantsReply(Reply, kw_only=True, frozen=True):
    """Who may use what."""

    grants: list[GrantReply]


class TokenBody(Body, kw_only=True, frozen=True):
    """A token for an analyst, for some tables or for all of theirs."""

    analyst: Name
    tables: Annotated[list[Name], msgspec.Meta(min_length=1, max_length=1000)] | None = None
    days: Annotated[int, msgspec.Meta(ge=1, le=400)] = 90


class TokenReply(Reply, kw_only=True, frozen=True):
    """What the ledger knows of a token."""

    id: str
    name: str
    role: Literal["analyst", "owner"]
    tables: list[str] | None
    expires: str


class TokensReply(Reply, kw_only=True, frozen=True):
    """Tokens that are live."""

    tokens: list[TokenReply]


class NewTokenReply(Reply, kw_only=True, frozen=True):
    """A token that was made; its secret is shown this once."""

    secret: str
    token: TokenReply


class TableBudgetReply(Reply, kw_only=True, frozen=True):
    """What everybody together may spend of a table, and has; and whom it protects."""

    table: str
    unit: str
    delta: str | None
    cap: str
    spent: str
    held: str  # by reservations that are open
    spent_by: dict[str, str]  # analyst: what was charged to them, under whatever grant or permit
    rows_per_person: int
    person: str | None
    fingerprint: str  # of the domain


class TableBudgetsReply(Reply, kw_only=True, frozen=True):
    """The budgets of the owner's tables."""

    tables: list[TableBudgetReply]


class LineReply(Reply, kw_only=True, frozen=True):
    """A line of the log: a charge, a cap, a model, a grant, a refusal."""

    number: int
    at: str
    kind: str
    serial: int  # among the lines of its kind: a charge of serial 5 is entry 5
    table: str | None
    analyst: str | None
    facts: dict[str, Any]


class LinesReply(Reply, kw_only=True, frozen=True):
    """Lines of the log, newest first."""

    lines: list[LineReply]
    next: int | None  # for `before`


class AuditReply(Reply, kw_only=True, frozen=True):
    """What the ledger says about a table, for whoever audits it."""

    bundle: dict[str, Any]


class RegistryReply(Reply, kw_only=True, frozen=True):
    """An entry about a table for a registry of deployments."""

    entry: dict[str, Any]
    text: str  # the same as YAML


# -- permits --------------------------------------------------------------------------------------


class PermitTable(Reply, kw_only=True, frozen=True):
    """What a permit's analysts have spent on a table together, and what they may."""

    table: str
    cap: str | None
    raised: str
    spent: str
    unit: str
    delta: str | None


class PermitReply(Reply, kw_only=True, frozen=True):
    """A data permit: to its analysts what it means for them, to owners whole."""

    permit: str
    tables: list[PermitTable]
    expires: str | None
    ended: bool
    purposes: list[str]
    release: list[Literal["answers", "models"]]
    approvals: int
    spends: bool | None  # whether the caller may spend; None for owners
    analysts: list[str] | None  # for owners
    spenders: list[str] | None


class PermitsReply(Reply, kw_only=True, frozen=True):
    """The caller's data permits."""

    permits: list[PermitReply]


class EventReply(Reply, kw_only=True, frozen=True):
    """Something that happened on the server."""

    number: int
    at: str
    event: str
    table: str | None
    analyst: str | None
    facts: dict[str, Any]


class EventsReply(Reply, kw_only=True, frozen=True):
    """What happened, after the line that was asked for."""

    events: list[EventReply]
    next: int | None


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Why there is no answer, and whether it was charged."""

    type: str
    title: str
    status: int
    detail: str
    charged: bool | Literal["unknown"]
    requested: str | None = None
    remaining: str | None = None
    entry: int | None = None
    retry_with_key: str | None = None


TITLES = {
    "unauthenticated": (401, "No valid token."),
    "not-allowed": (403, "Not for this role."),
    "not-permitted": (403, "The permit does not allow that."),
    "budget-exceeded": (403, "The budget does not have that much left."),
    "not-found": (404, "There is no such thing, or it is not yours."),
    "method": (405, "The method is not possible here."),
    "slow-body": (408, "The body did not come in time."),
    "key-in-flight": (409, "A request with this key is under way."),
    "unknown-rows": (409, "The sitting does not know these rows."),
    "too-large": (413, "The body is too large."),
    "media-type": (415, "The body is not application/json."),
    "wrong-host": (421, "This server does not answer under that name."),
    "bad-request": (400, "The request is not one of HTTP as it should be."),
    "bad-json": (400, "The body is not JSON."),
    "bad-question": (422, "The request is not well formed."),
    "key-reused": (422, "The key stands for another request."),
    "refused": (422, "The privacy promise would be broken."),
    "too-many": (429, "Too many requests."),
    "engine-failed": (500, "The engine could not answer."),
    "internal": (500, "The server failed."),
    "unavailable": (503, "The table is not available."),
    "ledger-unavailable": (503, "The ledger cannot be used."),
}
