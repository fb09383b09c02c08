"""The analyst's side: `privet.connect(url, token).table("patients")` is a table like any other, over HTTP.

Which rows are meant (`where`, `partition`, `scatter`, `allot`) is described here and sent with a question; only
questions, reservations and refinements are requests. Every request carries a key or an id of its own, so that one whose
reply was lost can be sent again: it is paid once.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import random
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx2 as http

from privet.errors import (
    BudgetExceeded,
    EngineFailed,
    KeyReused,
    LedgerError,
    PrivacyError,
    PrivetError,
    QuestionError,
    ReceiptError,
    ServerError,
)
from privet.kernel import (
    AdditiveModel,
    Answers,
    Cells,
    ChainLevel,
    Domain,
    Entry,
    Json,
    Paths,
    PerPart,
    Question,
    Rho,
    Rows,
    RowSets,
    Scopes,
    Session,
    Step,
    Unit,
    as_epsilon,
    cells_for,
    check_model,
    digest,
    monitor_mechanism,
    unit_with,
)
from privet.question_json import amounts_from_json, step_to_json
from privet.receipts import Checkpoint, KeptCheckpoints, Remembered, check
from privet.refining import Refining
from privet.release import About, AccuracyMonitor, Refinable, Releases, refined_by
from privet.service.config import is_loopback
from privet.service.owner_client import OwnerDesk
from privet.table import ProtectedTable
from privet.version import __version__

if TYPE_CHECKING:
    from privet.models.model import Model

R = TypeVar("R")
API = 1
_ERRORS: dict[str, type[PrivetError]] = {
    "key-reused": KeyReused,
    "bad-question": QuestionError,
    "refused": PrivacyError,
    "not-permitted": PrivacyError,
    "engine-failed": EngineFailed,
    "ledger-unavailable": LedgerError,
}
_AGAIN = {408, 409, 429, 502, 503, 504}  # replies after which the same request is sent again
_UNSENT = ("epsilon", "domain", "unsafe", "verbose", "n_jobs")  # parameters of classifiers
_OWN_KEY = "request "  # how keys begin that the client makes where an analyst gives none
_LONGEST_WAIT = 20.0  # seconds between two tries


def connect(
    url: str, token: str, *, timeout: float = 300, tries: int = 5, verify: str | bool = True, sleep: Any = time.sleep
) -> Connection:
    """Connect to a server that `privet serve` has started.

    Parameters
    ----------
    url : str
        Its address, `https://host:port`; `http://` for this machine alone.
    token : str
        What its owner has handed out.
    timeout : float, default 300
        Seconds to wait for an answer.
    tries : int, default 5
        How often a request is sent whose reply does not come. It is paid once.
    verify : str or bool, default True
        A file of certificates to trust instead of the system's.
    sleep : callable, optional
        Waits for so many seconds before a request is sent again.

    Returns
    -------
    Connection
        Its `tables()` are the names, its `table(name)` is a table.

    Raises
    ------
    QuestionError
        The address is none, or the token would cross a network in the clear.
    ServerError
        The server cannot be reached, or speaks another version.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise QuestionError("the address of a server is https://host:port.")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise QuestionError("the token would cross the network in the clear; use https:// for another machine.")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
        raise QuestionError("a token is what the owner of the server has handed out, as pvt_a_...")
    if verify is True:
        import ssl

        context: Any = ssl.create_default_context()
    else:
        import ssl

        if not isinstance(verify, str):
            raise QuestionError("verify is True, or a file of certificates: without a check anybody could answer.")
        context = ssl.create_default_context(cafile=verify)
    client = http.Client(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {token.strip()}", "User-Agent": f"privet/{__version__}"},
        timeout=http.Timeout(timeout, connect=10),
        verify=context,
        follow_redirects=False,
        trust_env=False,
    )
    connection = Connection(client, tries, sleep)
    connection.tables()
    connection.check_ledger()
    return connection


class Connection:
    """A connection to a server, made by `privet.connect`."""

    def __init__(self, client: http.Client, tries: int, sleep: Callable[[float], None]) -> None:
        self._client, self._tries, self._sleep = client, max(1, tries), sleep
        self._tables: dict[str, str] = {}  # that are open, by the sitting of each
        weakref.finalize(self, client.close)
        self.requests = 0  # that were sent, tries included
        self._kept = KeptCheckpoints(self.url, is_loopback(client.base_url.host))

    @property
    def url(self) -> str:
        """Where the server is."""
        return str(self._client.base_url).rstrip("/")

    def tables(self) -> list[str]:
        """Return the names of the tables that the token is for."""
        names: list[str] = self.get("/v1/tables")["tables"]
        return names

    def permits(self) -> list[dict[str, Any]]:
        """Return the data permits of the caller, with what was spent under them."""
        permits: list[dict[str, Any]] = self.get("/v1/permits")["permits"]
        return permits

    def table(self, name: str, *, permit: str | None = None, purpose: str | None = None) -> ProtectedTable:
        """Return a table, which is opened for this use of it: a sitting of its own.

        Parameters
        ----------
        name : str
        permit : str, optional
            The data permit under which everything is asked; `permits()` lists them.
        purpose : str, optional
            One of the permit's purposes.

        Returns
        -------
        ProtectedTable

        Raises
        ------
        QuestionError
            There is no such table, or it is not yours.
        """
        if not isinstance(name, str) or not name:
            raise QuestionError("a table is named by a text; tables() lists them.")
        described = self.get(f"/v1/tables/{quote(name, safe='')}")
        if described["api"] != API:
            raise ServerError(
                f"the server speaks version {described['api']} of the API and privet {described['version']}, this is "
                f"privet {__version__} with version {API}; install one that fits."
            )
        domain = Domain.parse(described["domain"])
        if domain.fingerprint != described["fingerprint"]:
            raise ServerError("the domain of the table is not read here as on the server; install its version.")
        under: dict[str, Json] | None = None if permit is None else {"permit": permit, "purpose": purpose}
        backend = RemoteBackend(self, name, domain, described, sitting=_new_id(), under=under)
        self._tables[backend.sitting] = name
        return ProtectedTable(backend, backend.whole_table())

    def check_ledger(self) -> int | None:
        """Ask for a signed checkpoint of the server's ledger, and compare it with the one that was kept.

        `privet.connect` does so by itself. The first key that a server shows is trusted from then on.

        Returns
        -------
        int or None
            How many lines the ledger has; None if the server signs nothing.

        Raises
        ------
        ReceiptError
            The ledger went back, as one that was restored from an old backup; or it is another one, or is signed by
            another key, or no longer.
        """
        old = self._kept.newest
        reply = self._checkpoint(old)
        if reply is None:
            if old is not None and not is_loopback(self._client.base_url.host):
                raise ReceiptError(
                    f"the server at {self.url} has signed its ledger before, and does so no longer; ask its owner. If "
                    f"that is as it should be, `privet receipt forget {self.url}` begins anew."
                )
            return None
        checkpoint, keys, rotations = reply
        own = self._kept.of(checkpoint.body[0])
        if own is not None and own != old and (again := self._checkpoint(own)) is not None:
            checkpoint, keys, rotations = again  # another ledger than the last one, which was met before
        self._kept.take(checkpoint, keys, rotations, own)
        return checkpoint.size

    def _checkpoint(self, old: Remembered | None) -> tuple[Checkpoint, list[str], list[str]] | None:
        try:
            reply = self.get("/v1/checkpoint", since=0 if old is None else old.checkpoint.size)
        except QuestionError:  # no such path, or no key
            return None
        return _checkpoint_of(reply, reply.get("checkpoint")), _texts_of(reply, "keys"), _texts_of(reply, "rotations")

    def receipt(self, path: str, document: bytes | None) -> str:
        """Return a receipt that the server has at a path, checked: against the key and the checkpoint that were kept.

        `table.receipt(release)` and `table.receipt(model)` call it.

        Raises
        ------
        ReceiptError
            It does not hold, or the server has none.
        """
        old = self._kept.newest
        try:
            reply = self.get(path, since=0 if old is None else old.checkpoint.size)
        except QuestionError:
            raise ReceiptError("the server has no receipt of this: it is not yours, or it signs none.") from None
        text = str(reply.get("receipt"))
        shown = check(text, document)
        own = self._kept.of(shown.checkpoint.body[0])
        if own is not None and own != old:
            self.check_ledger()
            return self.receipt(path, document)
        rotations = list(json.loads(text)["rotations"])
        self._kept.take(_checkpoint_of(reply, shown.checkpoint.note), shown.signers, rotations, own)
        return text

    @property
    def owner(self) -> OwnerDesk:
        """What an owner can do; the token must be an owner's."""
        return OwnerDesk(self)

    def request_budget(
        self,
        table: str,
        epsilon: int | float | str | Fraction,
        purpose: str,
        *,
        permit: str | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        """Ask the owner of a table for more budget.

        Parameters
        ----------
        table : str
        epsilon : number or str
            How much more.
        purpose : str
            What for, in a sentence that the owner reads; under a permit one of its purposes.
        permit : str, optional
            The data permit whose cap is to be raised.
        key : str, optional
            The same key finds the request again.

        Returns
        -------
        dict
            The request: its `id`, and its `state`, which is open, granted or denied.
        """
        key = _new_id() if key is None else key
        body: dict[str, Json] = {"epsilon": str(as_epsilon(epsilon)), "purpose": purpose, "key": key, "permit": permit}
        return self.post(f"/v1/tables/{quote(table, safe='')}/requests", body)

    def budget_requests(self, table: str) -> list[dict[str, Any]]:
        """Return the requests for more budget that were made with tokens of this name."""
        requests: list[dict[str, Any]] = self.get(f"/v1/tables/{quote(table, safe='')}/requests")["requests"]
        return requests

    def fit(
        self,
        table: str,
        classifier: Any,
        *,
        key: str | None = None,
        report: Callable[[str], None] | None = None,
        permit: str | None = None,
        purpose: str | None = None,
    ) -> Model:
        """Let the server fit a model: one request, and no row or question crosses the wire.

        Parameters
        ----------
        table : str
        classifier : classifier of privet
            Its algorithm, its epsilon and its choices are sent; a function or a file among them is refused.
        key : str, optional
            The same key finds the fit again, and its model; else one is made.
        report : callable, optional
            Called with a line for each step.
        permit, purpose : str, optional
            The data permit under which it is fitted, and one of its purposes.

        Returns
        -------
        Model

        Raises
        ------
        PrivetError
            The server refuses, or the fit has failed; `charged` says whether something was charged.
        """
        from privet.models.model import Model

        given = {name: value for name, value in classifier.get_params(deep=False).items() if name not in _UNSENT}
        choices = {name: value for name, value in given.items() if value != getattr(type(classifier)(), name)}
        for name, value in choices.items():
            if not isinstance(value, str | int | bool):
                raise QuestionError(f"{name} is a {type(value).__name__}, and only texts and whole numbers are sent.")
        body: dict[str, Json] = {
            "algorithm": classifier.algorithm,
            "epsilon": str(as_epsilon(classifier.epsilon)),
            "key": _new_id() if key is None else key,
            "choices": choices,
        }
        if permit is not None:
            body["under"] = {"permit": permit, "purpose": purpose}
        return Model.from_json(json.dumps(self._fitted(table, body, report)["model"]))

    def _fitted(self, table: str, body: Mapping[str, Json], report: Callable[[str], None] | None) -> dict[str, Any]:
        """Return a model that the server has fitted, with what is known of it."""
        path = f"/v1/tables/{quote(table, safe='')}"
        # a fit belongs to one server, as a sitting does, and its key finds it there again
        sitting = digest([table, body["key"]])[:32]
        job = self._watched(self.post(f"{path}/fits", body, sitting), report, sitting)
        if job["state"] != "done":
            error = ServerError(f"the fit was {job['state']}: {job['problem']}")
            error.charged = job["charged"]
            raise error
        return self.get(f"{path}/models/{job['model']}")

    def _watched(self, job: dict[str, Any], report: Callable[[str], None] | None, sitting: str = "") -> dict[str, Any]:
        """Return a job that has ended: by its events, or by asking again and again."""
        told, headers = "", {"Privet-Sitting": sitting}

        def tell(seen: Mapping[str, Any]) -> None:
            nonlocal told
            line = f"{seen['state']} {seen['step']}".strip()
            if report is not None and line != told:
                report(line)
            told = line

        with contextlib.suppress(http.TransportError):
            with self._client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=headers) as stream:
                for line in stream.iter_lines() if stream.is_success else ():
                    if line.startswith("data: "):
                        job = json.loads(line.removeprefix("data: "))
                        tell(job)
        while job["state"] not in ("done", "failed", "cancelled"):
            self._sleep(0.5)
            job = self._sent("GET", f"/v1/jobs/{job['id']}", None, {}, headers)
            tell(job)
        return job

    def close(self) -> None:
        """Close the connection, and the tables that are open."""
        with contextlib.suppress(PrivetError):  # a server that is gone has ended their sittings
            while self._tables and not self._client.is_closed:
                self.close_table(next(iter(self._tables)), once=True)
        self._client.close()

    def close_table(self, sitting: str, once: bool = False) -> None:
        """End a sitting of this connection; ending it again does nothing."""
        table = self._tables.pop(sitting, None)
        if table is not None:
            path = f"/v1/tables/{quote(table, safe='')}/sittings/close"
            self.post(path, {"sitting": sitting}, sitting, once=once)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<connection to {self.url}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError("a connection holds a token and cannot be copied or pickled; connect again.")

    # -- requests ---------------------------------------------------------------------------

    def get(self, path: str, **query: int) -> dict[str, Any]:
        """Return the reply to a request that changes nothing."""
        return self._sent("GET", path, None, query)

    def post(
        self, path: str, body: Mapping[str, Json], sitting: str | None = None, *, once: bool = False
    ) -> dict[str, Any]:
        """Return the reply to a request that has a key or an id, or is to be sent but once: it does nothing twice."""
        return self._sent("POST", path, body, {}, {"Privet-Sitting": sitting} if sitting else {}, once)

    def delete(self, path: str) -> dict[str, Any]:
        """Return the reply to a request that ends something."""
        return self._sent("DELETE", path, None, {})

    def _sent(
        self,
        method: str,
        path: str,
        body: Mapping[str, Json] | None,
        query: Mapping[str, int],
        headers: Mapping[str, str] | None = None,
        once: bool = False,
    ) -> dict[str, Any]:
        if self._client.is_closed:
            raise ServerError("this connection was closed; connect again.")
        pause, lost, tries = 0.1, False, 1 if once else self._tries
        for number in range(tries):
            last = number == tries - 1
            self.requests += 1
            try:
                reply = self._client.request(method, path, json=body, params=query, headers=headers)
            except http.TransportError as error:
                lost = True
                if last:
                    raise ServerError(_unreachable(self.url, error, body)) from None
                self._sleep(pause * (1 + random.random()))
                pause = min(2 * pause, _LONGEST_WAIT)
                continue
            if reply.is_success:
                return _content(reply)
            problem = _problem(reply)
            if problem.get("type", "").endswith(":unknown-rows"):
                raise RowsUnknownThere
            if last or reply.status_code not in _AGAIN:
                raise _error(problem, reply.status_code, lost)
            wait = reply.headers.get("retry-after", "")
            self._sleep(min(float(wait), _LONGEST_WAIT) if wait.isdigit() else pause)
            pause = min(2 * pause, _LONGEST_WAIT)
        raise AssertionError("the last try returns or raises")


_UNREADABLE = "what the server says about its ledger cannot be read."


def _checkpoint_of(reply: Mapping[str, Any], note: object) -> Checkpoint:
    """Return a checkpoint with the proof that a reply brings."""
    try:
        path = tuple(base64.b64decode(step, validate=True) for step in _texts_of(reply, "proof"))
    except ValueError:
        raise ReceiptError(_UNREADABLE) from None
    since = reply.get("since")
    if not isinstance(note, str) or type(since) is not int:
        raise ReceiptError(_UNREADABLE)
    return Checkpoint(note, since, path)


def _texts_of(reply: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of texts of a reply, which anybody may have written."""
    texts = reply.get(name)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ReceiptError(_UNREADABLE)
    return texts


class RowsUnknownThere(Exception):
    """The server does not know rows by their id: its sitting is new."""


def _content(reply: http.Response) -> dict[str, Any]:
    try:
        content = reply.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ServerError("what answers at this address is no privet server; check the address.")
    return content


def _problem(reply: http.Response) -> dict[str, Any]:
    try:
        content = reply.json()
    except ValueError:
        content = {}
    return content if isinstance(content, dict) else {}


def _unreachable(url: str, error: Exception, body: Mapping[str, Json] | None) -> str:
    charged = ""
    if body is not None and "key" in body:
        charged = f" It may be charged: the same question with key='{body['key']}' finds its answer, paid once."
    why = "gave no answer in time" if isinstance(error, http.TimeoutException) else "cannot be reached"
    return f"the server at {url} {why}; check the address, and that it runs.{charged}"


def _error(problem: Mapping[str, Any], status: int, lost: bool) -> PrivetError:
    kind, detail = str(problem.get("type", "")).rpartition(":")[2], str(problem.get("detail", ""))
    error: PrivetError
    if kind == "budget-exceeded" and "requested" in problem and "remaining" in problem:
        amounts = {name: Fraction(problem[name]) for name in ("requested", "remaining")}
        error = BudgetExceeded(detail, **amounts)
    elif kind == "not-found":
        hint = "; tables() and permits() list those that are" if "table," in detail or "permit," in detail else ""
        error = QuestionError(f"{detail.rstrip('.')}{hint}.")
    elif kind in _ERRORS:
        error = _ERRORS[kind](detail)
    elif kind == "unauthenticated":
        error = ServerError(
            "the server does not take this token: it is wrong, has expired or was revoked, or is for somebody whom "
            "the server does not know."
        )
    else:
        error = ServerError(f"the server refuses with status {status}{f': {detail}' if detail else ''}")
    error.charged = problem.get("charged", "unknown" if lost else False)
    return error


# -- rows -------------------------------------------------------------------------------------------


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True)
class RemoteSets(RowSets):
    """Rows that a server has: the steps to them, each under an id."""

    chain: tuple[Mapping[str, Json], ...] = ()

    def after(self, sets: RowSets, step: Mapping[str, Json]) -> RemoteSets:
        """Return the rows that a step leads to."""
        chain = (*self.chain, {"id": _new_id(), **step})
        return RemoteSets(sets.rows, sets.scopes, sets.paths, sets.cells, chain)


def _remote(sets: RowSets) -> RemoteSets:
    if not isinstance(sets, RemoteSets):
        raise QuestionError("these rows are of a table in this process; ask that table.")
    return sets


@dataclass(frozen=True)
class RemoteBackend:
    """Answers what is asked of a table by asking a server."""

    connection: Connection
    name: str
    domain: Domain
    described: Mapping[str, Any]
    sitting: str
    held: str | None = None  # the reservation that pays
    exchange: Fraction | None = None  # within a fit, what an epsilon of 1 costs as rho
    copies: Mapping[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # ids of steps that the server has
    under: Mapping[str, Json] | None = None  # the data permit, and the purpose

    @property
    def session(self) -> Session:
        raise QuestionError("this runs where the rows are, on the server, and takes no function from outside.")

    @property
    def dataset(self) -> str:
        return self.name

    @property
    def unit(self) -> Unit:
        """What the data set is counted in: amounts on the wire are losses in this unit."""
        delta = self.described.get("delta")
        return unit_with(None if delta is None else Fraction(delta))

    def amount(self, epsilon: object) -> Fraction:
        """Return what one set of rows is charged for an epsilon."""
        return self.unit.amount(epsilon, exchange=self.exchange)

    def apart(self) -> RemoteBackend:
        """Return the same: a server draws its own noise."""
        return self

    def exchanging(self, epsilon: object) -> RemoteBackend:
        """Return the same for a fit that divides `epsilon`; see `Session.exchanging`."""
        if self.unit.delta is None or isinstance(epsilon, Rho):
            return self
        return replace(self, exchange=self.amount(epsilon) / as_epsilon(epsilon))

    @property
    def ledger_path(self) -> str:
        return f"the ledger of {self.connection.url}"

    def describe(self) -> tuple[str, str]:
        """Return who asks, and where the spending is written down."""
        return f"analyst '{self.described['analyst']}'", f"server {self.connection.url}"

    def explain(self) -> str:
        """Return how questions reach the rows."""
        return f"server {self.connection.url}: {self.described['access']}"

    def whole_table(self) -> RemoteSets:
        """Return all rows as one set."""
        return RemoteSets(Rows(), Scopes(), Paths.of("all rows"), Cells(self.domain, self.copies))

    # -- requests ---------------------------------------------------------------------------

    def _post(self, path: str, body: Mapping[str, Json]) -> dict[str, Any]:
        return self.connection.post(f"/v1/tables/{quote(self.name, safe='')}/{path}", body, self.sitting)

    def _permit(self) -> dict[str, Json]:
        return {} if self.under is None else {"under": dict(self.under)}

    def _about(self, sets: RowSets, path: str, body: Mapping[str, Json]) -> dict[str, Any]:
        """Ask about some rows. Steps that the server has are named by their ids alone."""
        chain = _remote(sets).chain
        new = next((at for at in range(len(chain), 0, -1) if chain[at - 1]["id"] in self.known), 0)
        short: list[Json] = [{"id": chain[new - 1]["id"]}, *chain[new:]] if new else list(chain)
        own: dict[str, Json] = {**body, **self._permit(), "sitting": self.sitting, "hold": self.held}
        try:
            reply = self._post(path, {**own, "rows": short})
        except RowsUnknownThere:  # the server was started anew, or the sitting has ended
            self.known.clear()
            reply = self._post(path, {**own, "rows": list(chain)})
        self.known.update(str(step["id"]) for step in chain)
        return reply

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None) -> Releases[R]:
        """Ask a question of disjoint sets of rows."""
        amounts = self.unit.amounts(epsilon, len(sets), self.exchange)
        self._check_cells(sets)
        question.check(self.domain, sets.rows)
        if not len(sets):
            return Releases(())
        records = self.domain.rows_per_person
        unit = self.unit
        mechanisms = question.mechanisms(self.domain, amounts.map(lambda own: unit.of_record(own, records)), unit)
        losses = mechanisms.map(lambda mechanism: unit.of_person(unit.loss(mechanism), records))
        body: dict[str, Json] = {
            "question": question.to_json(),
            "epsilon": amounts.to_json(str),
            "key": _OWN_KEY + _new_id() if key is None else key,
        }
        reply = self._about(sets, "answers", body)
        answers = Answers(reply["answer"], mechanisms, losses, reply["private"], reply["entry"], unit)
        return answers.releases(question, self.domain)

    def _check_cells(self, sets: RowSets) -> None:
        if sets.cells != Cells(self.domain, self.copies):
            raise QuestionError("these rows were chosen in other cells; ask the table that they are parts of.")

    def divide(self, sets: RowSets, step: Step, paths: Paths | None = None) -> RowSets:
        """Return the sets of rows that a step makes of these; nothing is sent."""
        return _remote(sets).after(sets.divide(step, paths), step_to_json(step))

    def in_cells(self, sets: RowSets, domain: Domain, copies: Mapping[str, str]) -> tuple[RemoteBackend, RowSets]:
        """Return what answers about the same rows in other cells, and these rows; nothing is sent."""
        self._check_cells(sets)
        cells = cells_for(sets.rows, self.domain, domain, copies)
        before = Cells(self.domain, self.copies)
        sources = {copy: before.source(source) for copy, source in cells.copies.items()}
        backend = replace(self, domain=cells.domain, copies={**self.copies, **sources})
        step: dict[str, Json] = {"cells": domain.to_toml(), "copies": dict(copies)}
        same = replace(sets, cells=Cells(backend.domain, backend.copies))
        return backend, _remote(sets).after(same, step)

    def remaining(self, sets: RowSets) -> PerPart[Fraction]:
        """Return the largest epsilon that can be charged to each set now."""
        return amounts_from_json(self._about(sets, "remaining", {})["remaining"], len(sets))

    def spent(self, sets: RowSets) -> Fraction:
        """Return what the analyst has charged to the table, now and before; of a part, what it has cost."""
        return Fraction(self._about(sets, "remaining", {})["spent"])

    def entries(self) -> list[Entry]:
        """Return the analyst's charges to the table; their answers stay in the ledger."""
        entries, after = [], 0
        while True:
            page = self.connection.get(f"/v1/tables/{quote(self.name, safe='')}/entries", after=after)
            for line in page["entries"]:
                texts = (line["scope"], line["question"], line["epsilon"], Fraction(line["loss"]))
                key = None if str(line["key"]).startswith(_OWN_KEY) else line["key"]  # nobody has given one
                entries.append(Entry(line["id"], self.described["analyst"], *texts, key, line["at"], None))
            if page["next"] is None:
                return entries
            after = page["next"]

    @contextmanager
    def hold(self, sets: RowSets, epsilon: Fraction) -> Iterator[RemoteBackend]:
        """Reserve budget for a set until the block ends."""
        identity = _new_id()
        self._about(sets, "holds", {"id": identity, "epsilon": str(epsilon)})
        try:
            yield replace(self, held=identity)
        finally:
            with contextlib.suppress(ServerError):  # a server that is gone has ended it
                self._post(f"holds/{identity}/end", {"sitting": self.sitting})

    def refine(self, question: Question[Any], sets: RowSets, releases: Sequence[Refinable]) -> None:
        """Let the releases of a question be refined."""
        if releases and (entry := releases[0].about.entry) is not None:

            def levels(parts: Sequence[int], epsilons: PerPart[Fraction]) -> list[ChainLevel]:
                return self._refined(entry, parts, epsilons)

            refiner = Refining(question, self.domain, self.unit, releases[0], self.unit.amounts, levels)
            refined_by(refiner, range(len(releases)), releases)

    def _refined(self, entry: int, parts: Sequence[int], epsilons: PerPart[Fraction]) -> list[ChainLevel]:
        """Refine some parts of an answer."""
        body: dict[str, Json] = {
            **self._permit(),
            "sitting": self.sitting,
            "entry": entry,
            "parts": list(parts),
            "epsilon": epsilons.to_json(str),
        }
        return [
            ChainLevel(Fraction(level["epsilon"]), level["value"], level["entry"], level["private"])
            for level in self._post("refinements", body)["levels"]
        ]

    def monitor(self, sets: RowSets, accuracy: Fraction, epsilon: object) -> AccuracyMonitor:
        """Begin to ask of one released model after the other whether it is so accurate."""
        return RemoteMonitor(self, sets, accuracy, epsilon)

    def keyed_run(
        self,
        table: Any,
        run: Callable[[Any], str],
        epsilon: Fraction,
        key: str,
        words: str,
        identity: Json,
        coins: Json,
    ) -> tuple[str, int | None, bool]:
        """Let the server run a fit under one charge: the function stays here, its name and choices are sent."""
        if table._sets.chain or self.held is not None or self.copies:
            raise QuestionError("a fit under a key is for the whole table; leave out the key to fit a part from here.")
        assert isinstance(identity, dict) and isinstance(identity["choices"], dict)
        given = {**identity["choices"], "variant": identity["variant"], "random_state": coins}
        choices = {name: value for name, value in given.items() if name != "policy" or value is not None}
        body: dict[str, Json] = {"algorithm": identity["fit"], "epsilon": str(epsilon), "key": key, "choices": choices}
        model = self.connection._fitted(self.name, {**body, **self._permit(), "once": True}, None)
        return json.dumps(model["model"]), model["facts"]["entries"][0], False

    def write_model(self, text: str, facts: Mapping[str, Json]) -> None:
        """Do nothing: a server writes down the models that it has fitted itself."""

    def receipt(self, entry: int | None, text: str | None) -> str:
        """Return the receipt of the answer to an entry, or of a model that the server has fitted."""
        path = f"/v1/tables/{quote(self.name, safe='')}"
        if entry is not None:
            return self.connection.receipt(f"{path}/entries/{entry}/receipt", None)
        assert text is not None
        own = hashlib.sha256(text.encode()).hexdigest()
        models = self.connection.get(f"{path}/models")["models"]
        model = next((model for model in models if model["facts"].get("sha256") == own), None)
        if model is None:
            raise ReceiptError(
                "the server has not fitted this model, so it has no receipt of it; let it fit one with connection.fit, "
                "or ask for receipts of the answers that it was made of."
            )
        return self.connection.receipt(f"{path}/models/{model['id']}/receipt", text.encode())

    def close(self) -> None:
        """End the sitting; the ledger stays."""
        self.connection.close_table(self.sitting)


class RemoteMonitor(AccuracyMonitor):
    """A monitor whose hidden threshold is on the server."""

    def __init__(self, backend: RemoteBackend, sets: RowSets, accuracy: Fraction, epsilon: object) -> None:
        self._backend, self._accuracy, self._dataset, self._id = backend, accuracy, backend.name, _new_id()
        amount = backend.amount(epsilon)
        self._mechanism = monitor_mechanism(backend.domain, accuracy, amount, backend.unit)
        body: dict[str, Json] = {"id": self._id, "accuracy": str(accuracy), "epsilon": str(amount)}
        reply = backend._about(sets, "monitors", body)
        self._about = About("monitor", Fraction(reply["epsilon"]), bool(reply["private"]))
        self._checks, self._reached = 0, False

    @property
    def closed(self) -> bool:
        return self._reached

    def reached(self, model: AdditiveModel) -> bool:
        """Return whether a model is accurate enough, noisily."""
        check_model(model)
        model.check(self._backend.domain)
        if self._reached:
            raise QuestionError(
                f"this monitor is closed after {self._checks} checks: it answers up to its first yes; begin another "
                "with table.monitor."
            )
        body: dict[str, Json] = {
            **self._backend._permit(),
            "sitting": self._backend.sitting,
            "check": self._checks + 1,
            "model": model.to_json(),
        }
        self._reached = bool(self._backend._post(f"monitors/{self._id}/checks", body)["reached"])
        self._checks += 1
        return self._reached

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError("a monitor cannot be copied or pickled: its threshold stays where it is.")
