"""What a question is, and how one is asked of an open table: charge first, ask second, store the answer, release it.

A question is a frozen, public value. One class in one file says everything about one kind of question.
`Session.ask` checks a question, builds its mechanisms, charges what these mechanisms lose, asks the engine for the
exact values, and applies the same mechanisms to them. After that nothing sees an exact value.
"""

from __future__ import annotations

import json
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, NamedTuple, NoReturn, Self, TypeVar, cast

import numpy as np

from privet.access import Access
from privet.errors import DataError, EngineFailed, LedgerError, QuestionError
from privet.kernel import accounting
from privet.kernel.accounting import PURE, Scopes, Unit
from privet.kernel.additive import AdditiveModel
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import FIXED, Cells, Engine, Lost, OtherCells, cells_for
from privet.kernel.ledger import Charge, Entry, Ledger, Under
from privet.kernel.mechanisms import Entropy, Mechanism, release_all
from privet.kernel.public_values import LONGEST_NAME, Json, PerPart, Positions, canonical, hash_of, is_name, joined
from privet.kernel.rows import Divide, Keep, Rows, Scatter
from privet.kernel.zcdp import Rho
from privet.release import About, Releases
from privet.text import decimal_text

T = TypeVar("T")
R = TypeVar("R")

_LONGEST_PATH = 1000  # characters: every part has a path


class Question(ABC, Generic[R]):
    """A question about every part of a table, answered with one release of type R for each."""

    kind: ClassVar[str]  # its name in JSON, which never changes
    version: ClassVar[int] = 1  # of the JSON form of all questions
    refinable: ClassVar[bool] = False  # whether answers can be refined: one vector with noise of one kind

    @property
    @abstractmethod
    def words(self) -> str:
        """How ledgers, releases and errors name the question."""

    @abstractmethod
    def check(self, domain: Domain, rows: Rows) -> None:
        """Refuse a question that does not fit the domain, or is too large, before anything is charged.

        Raises
        ------
        QuestionError, UndeclaredDomain, PrivacyError
        """

    @abstractmethod
    def mechanisms(self, domain: Domain, losses: PerPart[Fraction], unit: Unit) -> PerPart[Mechanism]:
        """Return the mechanism of each part, for what each record loses, in the unit of the data set."""

    @abstractmethod
    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterable[Any]:
        """Return what the mechanism of each part is applied to: an array with an axis for the parts, or one by one."""

    @abstractmethod
    def release(self, noisy: Any, mechanism: Any, about: About, domain: Domain, part: int) -> R:
        """Return the release of one part, from public values alone: the output of its mechanism, as JSON holds it."""

    def releases(
        self, noisy: Sequence[Any], mechanisms: PerPart[Mechanism], about: PerPart[About], domain: Domain
    ) -> Iterable[R]:
        """Return the releases of all parts."""
        parts = zip(noisy, mechanisms, about, strict=True)
        return (
            self.release(value, mechanism, note, domain, part) for part, (value, mechanism, note) in enumerate(parts)
        )

    def to_json(self, brief: bool = False) -> Json:
        """Return the question as JSON: what a request consists of; in a brief form a model is its hash."""
        names = [own.name for own in fields(self)]  # type: ignore[arg-type]
        return {
            "question": self.kind,
            "version": self.version,
            **{name: self.field_json(name, brief) for name in names},
        }

    def field_json(self, name: str, brief: bool) -> Json:
        """Return the JSON form of a field; `privet.question_json` says for each type of fields how it is read."""
        return json_of(getattr(self, name), brief)

    def field_text(self, name: str) -> str:
        """Return the canonical text of a field in its brief form."""
        return canonical(self.field_json(name, True))

    def identity(self) -> Json:
        """Return the JSON form with every model replaced by its hash: what the ledger keeps."""
        return self.to_json(brief=True)

    def identity_text(self) -> str:
        """Return the canonical text of the identity."""
        texts = {"question": canonical(self.kind), "version": canonical(self.version)}
        names = [own.name for own in fields(self)]  # type: ignore[arg-type]
        return joined({**texts, **{name: self.field_text(name) for name in names}})

    @property
    def fingerprint(self) -> str:
        """The hash of the identity: the same for the same question, in every process and version of privet."""
        return hash_of(self.identity_text())


def json_of(value: Any, brief: bool) -> Json:
    """Return the JSON form of a field, which its type decides."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, AdditiveModel):
        return value.to_json(brief)
    if isinstance(value, PerPart):
        return value.to_json(lambda own: own)
    if hasattr(value, "to_json"):  # a criterion, a condition, a column of a table
        form: Json = value.to_json()
        return form
    return [json_of(own, brief) for own in value] if isinstance(value, tuple) else value


def cell_sum(domain: Domain, tables: Iterable[Sequence[str]]) -> int:
    """Return how many cells tables of columns have together."""
    return sum(domain.cell_count(columns) for columns in tables)


def check_cells(cells: int, most: int) -> None:
    """Refuse a question that needs more cells than one may."""
    if cells > most:
        number = str(cells) if cells < 10**15 else "more than 10**15"  # of many columns it has thousands of digits
        raise QuestionError(f"this needs {number} cells, at most {most} are possible; use fewer columns or parts.")


@dataclass(frozen=True, eq=False)
class Paths:
    """For each part what it is called: the path of the part that it was made from, and one more step.

    >>> paths = Paths.of("all rows").below(np.array([0, 0]), PerPart.of([" / sex = f", " / sex = m"]))
    >>> list(paths)
    ['all rows / sex = f', 'all rows / sex = m']
    """

    above: Paths | None
    parents: Positions
    steps: PerPart[str]

    @classmethod
    def of(cls, text: str) -> Paths:
        """Return the path of a single part."""
        return cls(None, np.zeros(1, dtype=np.intp), PerPart.same(text, 1))

    def __iter__(self) -> Iterator[str]:
        return (self[part] for part in range(len(self.steps)))

    def __getitem__(self, part: int) -> str:
        path = self.steps[part]
        if self.above is not None:
            path = self.above[int(self.parents[part])] + path
        return path if len(path) <= _LONGEST_PATH else "... " + path[-_LONGEST_PATH:]  # the end says most

    def take(self, parts: Positions) -> Paths:
        """Return the paths of some parts."""
        return Paths(self.above, self.parents[parts], self.steps.take(parts))

    def below(self, parents: Positions, steps: PerPart[str]) -> Paths:
        """Return the paths of parts that lie one step below their parents."""
        return Paths(self, parents, steps)


@dataclass(frozen=True)
class Allot:
    """Let a table spend at most `cap`, in all its parts together."""

    cap: Fraction


Step = Keep | Divide | Scatter | Allot


@dataclass(frozen=True)
class RowSets:
    """Disjoint sets of rows: which rows lie in which set, what they have paid, and how they are called."""

    rows: Rows
    scopes: Scopes
    paths: Paths
    cells: Cells  # those that the steps of `rows` name: in others they would be other rows

    def __len__(self) -> int:
        return len(self.scopes)

    def divide(self, step: Step, paths: Paths | None = None) -> RowSets:
        """Return the sets that a step makes of these, disjoint as they are; `paths` names them where names change."""
        rows, scopes, domain = self.rows, self.scopes, self.cells.domain
        if isinstance(step, Allot):
            return replace(self, scopes=scopes.allot(step.cap))
        step.check(domain, len(self))
        if isinstance(step, Keep):
            kept = np.asarray(step.parts, dtype=np.intp)
            names = paths or self.paths.take(kept)
            return RowSets(rows.keep(step.parts, step.conditions), scopes.take(kept), names, self.cells)
        assert paths is not None
        if isinstance(step, Scatter):
            return RowSets(rows.scatter(step.parts, step.seed), scopes.divide(step.parts), paths, self.cells)
        children = scopes.divide(step.children(domain))
        return RowSets(rows.divide(step.splits, domain), children, paths, self.cells)

    @property
    def name(self) -> str:
        """What a ledger calls them."""
        return self.paths[0] if len(self) == 1 else f"{len(self)} parts, first {self.paths[0]}"


@dataclass(frozen=True)
class Request:
    """Something to be charged and answered: a question, a refinement, or the beginning of a monitor or a race."""

    words: str
    identity: str  # JSON: what makes it this request and no other, besides the rows and the losses
    sets: RowSets
    losses: PerPart[Fraction]  # of a person, for each set
    key: str | None = None
    drawn: str | None = None  # of a refinement: the opening in which the noise was drawn that it goes on from


class Answers(NamedTuple):
    """Plain answers to a question, one for each part, and all else that their releases are made of: public values."""

    noisy: Sequence[Any]
    mechanisms: PerPart[Mechanism]
    losses: PerPart[Fraction]  # of a person, for each part
    private: bool  # whether the noise was real, and the rows private
    entry: int | None  # in the ledger, where releases name it
    unit: Unit = PURE  # of the losses

    def releases(self, question: Question[R], domain: Domain) -> Releases[R]:
        """Return the releases of all parts."""
        about = self.losses.map(lambda loss: self.unit.about(question.words, loss, self.private, self.entry))
        return Releases(question.releases(self.noisy, self.mechanisms, about, domain))


@dataclass
class LastEntry:
    """The entry that was charged last in one opening of a table, if nobody has tried to charge another since."""

    entry: int | None = None


@dataclass(frozen=True)
class Session:
    """Everything a question needs besides itself."""

    domain: Domain
    engine: Engine
    ledger: Ledger
    dataset: str
    source: str
    analyst: str
    entropy: Entropy  # what all its noise and coins are drawn from, as long as the table is open
    limit: Fraction | None = None  # what the table was opened with, where less than the ledger allows
    hold: int | None = None  # the reservation that pays
    access: Access | None = None  # how questions reach the rows
    # within an opening the engine knows of changes, between two of them the rows may have become others
    opening: str = field(default_factory=lambda: secrets.token_hex(8))
    last_entry: LastEntry = field(default_factory=LastEntry)
    terms: int | None = None  # of the ledger, when the table was opened: see `Ledger.register`
    copies: Mapping[str, str] = field(default_factory=dict)  # columns of the domain that read another one: see `Cells`

    # Whether releases name their ledger entry. In a race they do not: its ledger is gone when the run is over, and a
    # release that a race has chosen cannot be refined, because that would lose more than the difference.
    writes: bool = True

    under: Under | None = None  # the data permit that it is charged under

    unit: Unit = PURE  # what losses are counted in
    # Within a fit, where losses are counted in rho: what an epsilon of 1 costs. A plan that divides epsilon then
    # divides the rho of the whole fit in the same proportions.
    exchange: Fraction | None = None

    # Called before each charge: in the session of a run under a key it charges the run to the table's session, once.
    pay_first: Callable[[], object] | None = None

    private_rows: ClassVar[bool] = True

    def sitting(self, analyst: str, under: Under | None = None) -> Session:
        """Return another opening of the same rows, for an analyst of a server: it shares the engine and the ledger.

        Nothing that is paid is shared with other openings, and no answer or charge of another one is continued: that
        is what `opening` stands for, and `whole_table` begins scopes of its own.
        """
        opening = secrets.token_hex(8)
        return replace(self, analyst=analyst, under=under, opening=opening, last_entry=LastEntry(), hold=None)

    def apart(self) -> Session:
        """Return the same session for work beside other work: what a seed repeats does not depend on who is first."""
        return replace(self, entropy=self.entropy.stream())

    def opening_token(self, version: int) -> str:
        """Return what marks a charge as made for these rows, and an answer as drawn from them, in this process."""
        return f"{self.opening} {version} {os.getpid()}"

    def whole_table(self) -> RowSets:
        """Return all rows as one set, which has paid nothing yet."""
        return RowSets(Rows(), Scopes(), Paths.of("all rows"), self.cells)

    @property
    def cells(self) -> Cells:
        """What its questions and rows are about."""
        return Cells(self.domain, self.copies)

    def in_cells(self, sets: RowSets, domain: Domain, copies: Mapping[str, str]) -> tuple[Session, RowSets]:
        """Return a session that counts these rows in other cells, and charges the same ledger; see `cells_for`."""
        self._check_cells(sets)
        cells = cells_for(sets.rows, self.domain, domain, copies)
        engine = cast(Engine, OtherCells(self.engine, cells))
        sources = {copy: self.cells.source(source) for copy, source in cells.copies.items()}
        session = replace(self, domain=cells.domain, engine=engine, copies={**self.copies, **sources})
        return session, replace(sets, cells=session.cells)

    def _check_cells(self, sets: RowSets) -> None:
        """Refuse rows that were chosen in other cells: the same steps would choose others here, which have not paid."""
        if sets.cells != self.cells:
            raise QuestionError("these rows were chosen in other cells; ask the table that they are parts of.")

    def run_on_one_version(self, exact_work: Callable[[], T]) -> tuple[T, int] | None:
        """Run `exact_work`; retry once if the rows change. Return (result, version), or None if they changed again."""
        for last in (False, True):
            version = self.engine.version
            try:
                result = exact_work()
            except Lost:
                if last:
                    raise
                continue
            if self.engine.version == version:
                return result, version
        return None

    def check_open(self) -> None:
        """Refuse a table that was closed."""
        if self.engine.closed:
            raise DataError(f"the table '{self.dataset}' was closed; open it again.")

    def check_drawn(self, question: str, drawn: str | None, version: int) -> None:
        """Refuse to go on from noise that was drawn for rows which may have been others."""
        if drawn != self.opening_token(version):
            raise QuestionError(
                f"cannot {question}: this answer was drawn in another opening of the table '{self.dataset}', whose "
                "rows may have been others; ask a new question at the epsilon wanted."
            )

    def remaining(self) -> Fraction:
        """Return what this analyst may still charge to the ledger."""
        return self.ledger.remaining(self.dataset, self.analyst, self.limit, self.hold, self._permit)

    @property
    def _permit(self) -> str | None:
        return None if self.under is None else self.under.permit

    def amounts(self, epsilon: object, parts: int) -> PerPart[Fraction]:
        """Return what each part is charged for an epsilon, or for one of each; see `Unit.amount`."""
        return self.unit.amounts(epsilon, parts, self.exchange)

    def exchanging(self, epsilon: object) -> Session:
        """Return a session for a fit that divides `epsilon`: where losses are counted in rho it divides that rho."""
        (amount,) = self.amounts(epsilon, 1)
        if self.unit.delta is None or isinstance(epsilon, Rho):
            return self
        return replace(self, exchange=amount / accounting.as_epsilon(epsilon))

    def headroom(self, sets: RowSets) -> PerPart[Fraction]:
        """Return the largest loss that can be charged to each set now."""
        return sets.scopes.headroom(self.remaining())

    @contextmanager
    def reserved(self, sets: RowSets, loss: Fraction) -> Iterator[Session]:
        """Hold what `loss` in a scope would make the ledger pay, until the block ends; yield a session that has it.

        What reaches the root grows with what the scope spends and shrinks as its siblings
        pay. So charges of `loss` in all need no more than is held, whatever the
        siblings do meanwhile. There is one exception: the analyst may charge these rows, or
        rows that contain them, outside the block. That may use up what the siblings had paid,
        or an allotment. What the hold then lacks is charged as without a hold, or refused.
        Each charge still writes all that reaches the root; the hold decides only who may
        spend.
        """

        def write(reaches_root: Fraction) -> NoReturn:
            whose, within, permit = (self.dataset, self.analyst), self.hold, self._permit
            raise _Held(self.ledger.hold(*whose, reaches_root, self.limit, asked=loss, within=within, permit=permit))

        try:
            # A rehearsal in an allotment of its own: nothing is paid, and an interrupt marks no other scope.
            accounting.charge(sets.scopes.allot(loss), loss, write, self.engine.version, self.unit.name)
        except _Held as held:
            hold = held.hold
        process = os.getpid()
        try:
            yield replace(self, hold=hold)
        finally:
            # An inner reservation is a part of the outer one; a forked copy leaves its end to the process that made it.
            if self.hold is None and os.getpid() == process:
                self.ledger.end(hold)

    # -- asking -----------------------------------------------------------------------------

    def mechanisms(self, question: Question[R], losses: PerPart[Fraction]) -> PerPart[Mechanism]:
        """Return the mechanism of each part, for losses of a person: of their records each gets its share."""
        records = self.domain.rows_per_person
        return question.mechanisms(self.domain, losses.map(lambda loss: self.unit.of_record(loss, records)), self.unit)

    def loss_of(self, mechanism: Mechanism) -> Fraction:
        """Return what a person loses with a mechanism: with every record what it says."""
        return self.unit.of_person(self.unit.loss(mechanism), self.domain.rows_per_person)

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None = None) -> Releases[R]:
        """Ask a question of disjoint sets of rows: one charge, one query to the engine, one release for each.

        The mechanisms are built once. These objects say what is charged, and these objects are applied.

        Parameters
        ----------
        question : Question
        sets : RowSets
        epsilon : number, str, Rho, or one for each set
            What each set pays, for a person: see `Unit.amount`.
        key : str, optional
            The same key with the same question finds the stored answer, or finishes under the standing charge.

        Raises
        ------
        PrivetError
            In every case in one sentence that depends on no row; `errors` lists them.
        """
        return self.answers(question, sets, epsilon, key).releases(question, self.domain)

    def answers(self, question: Question[Any], sets: RowSets, epsilon: object, key: str | None = None) -> Answers:
        """Ask a question as `ask` does, and return plain values: what crosses a wire."""
        mechanisms, losses = self.priced(question, sets, epsilon)
        if not len(sets):
            return Answers((), mechanisms, losses, self.entropy.private, None, self.unit)
        request = Request(question.words, question.identity_text(), sets, losses, key)

        def noisy_answer() -> list[Any]:
            exact_values = question.exact(self.engine, sets.rows, self.domain)
            return release_all(mechanisms, exact_values, self.entropy)

        noisy, private, entry = self.answer(request, noisy_answer)
        return Answers(noisy, mechanisms, losses, private, entry, self.unit)

    def priced(
        self, question: Question[Any], sets: RowSets, epsilon: object
    ) -> tuple[PerPart[Mechanism], PerPart[Fraction]]:
        """Check a question; return the mechanism of each set, and what a person there loses by it."""
        amounts = self.amounts(epsilon, len(sets))
        question.check(self.domain, sets.rows)
        mechanisms = self.mechanisms(question, amounts)
        return mechanisms, mechanisms.map(self.loss_of)

    def quote(self, question: Question[Any], sets: RowSets, epsilon: object) -> Fraction:
        """Return what a question would make the ledger pay now. No row is read, and nothing is charged."""
        self._check_cells(sets)
        return accounting.quote(
            sets.scopes, self.priced(question, sets, epsilon)[1], self.engine.version, self.unit.name
        )

    def begin(self, words: str, identity: Json, sets: RowSets, loss: Fraction) -> About:
        """Charge for something that is opened here and answers later: a monitor, a race."""
        request = Request(words, canonical(identity), sets, PerPart.same(loss, len(sets)))
        _, private, entry = self.answer(request, lambda: ["begun"])
        return self.unit.about(words, loss, private, entry)

    def answer(self, request: Request, noisy_answer: Callable[[], list[Any]]) -> tuple[list[Any], bool, int | None]:
        """Charge a request, then let `noisy_answer` ask the engine; return the answer as stored.

        Returns
        -------
        answer : list
            Plain JSON values.
        private : bool
            Whether its noise was real, and its rows private.
        entry : int or None
            The ledger entry, where releases name it.
        """
        scopes = request.sets.scopes
        entry, content = self._standing(request), None
        if entry is None or entry.answer is None:
            scopes.check_process()  # a forked copy must not wait for a lock that its parent held
            version = self.engine.version
            # Where rows may change nobody else charges meanwhile: what is paid is not shared before it is answered.
            with nullcontext() if version == FIXED else scopes.lock:
                if entry is None:
                    entry = self._charge(request)
                elif not self._pays(entry, request, version):
                    raise QuestionError(
                        f"cannot finish ledger entry {entry.id}: it was charged for rows that may have changed since, "
                        "in parts that share what they pay. Ask under another key."
                    )
                if entry.answer is None:
                    content = self._finished(entry, request, noisy_answer)
        if content is None:
            assert entry.answer is not None
            content = json.loads(entry.answer)
        return content["answer"], bool(content["private"]) and self.private_rows, entry.id if self.writes else None

    def _finished(self, entry: Entry, request: Request, noisy_answer: Callable[[], Any]) -> dict[str, Any]:
        """Answer a question that is paid for; return what is stored: the answer, and whether its noise was real."""
        answer, version, failed = None, 0, False
        try:
            with np.errstate(all="ignore"):  # else a caller's settings could make a number of a row an error
                answer, version = self.run_on_one_version(noisy_answer) or (None, 0)
        except Exception:
            # What went wrong may quote a row. The error below is raised outside this
            # block so that not even its context refers to it.
            failed = True
        not_stored = None
        if answer is not None and self._pays(entry, request, version):
            private, token = self.entropy.private, self.opening_token(version)
            content = {"answer": answer, "private": private}
            text = json.dumps(content, separators=(",", ":"))
            try:
                stored = self.ledger.store(entry.id, text, private=private, opening_token=token)
                return content if stored == text else json.loads(stored)  # another one may have been faster
            except LedgerError as error:
                not_stored = str(error)
        finish = "a new try is a new charge"
        if not failed and not_stored is None:
            finish = f"the rows may have changed meanwhile, so that {finish}"
        elif request.key is not None and request.drawn is None:
            finish = f"retry with the key '{request.key}' to finish under it"
        elif request.drawn == self.opening_token(FIXED):
            finish = "refine again to finish under it"
        stands = f"Ledger entry {entry.id} (epsilon={entry.epsilon}) stands: {finish}."
        if not_stored is not None:
            raise LedgerError(f"{not_stored} {stands}")
        raise EngineFailed(
            f"the {self.engine.name} engine could not answer {request.words} on '{self.dataset}'. {stands}"
        )

    def _pays(self, entry: Entry, request: Request, version: int) -> bool:
        """Return whether a charge pays for an answer about a version of the rows.

        A refinement goes on from noise that only the same rows show, so its rows must be those of the first answer.
        Any other charge pays for the version that it was made for, and for every version if its parts share nothing
        with others. If they do share, it pays for another version only if it reached the root in full, as if nothing
        had been paid before, and nobody has tried to charge anything since: then no other part has used what it paid.
        """
        if request.drawn is not None:
            return request.drawn == self.opening_token(version)
        if entry.opening_token == self.opening_token(version) or not request.sets.scopes.shares:
            return True
        last = entry.id == self.last_entry.entry
        return last and entry.loss >= accounting.alone(request.sets.scopes, request.losses)

    def _standing(self, request: Request) -> Entry | None:
        """Return the charge under the key of a question, if there is one; refuse a closed table and a wrong key."""
        self._check_cells(request.sets)
        self.check_open()
        key = request.key
        if key is None:
            return None
        if request.drawn is None and not is_name(key):
            raise QuestionError(f"key must be a text of 1 to {LONGEST_NAME} printable characters.")
        return self.ledger.standing(self.dataset, self.analyst, key, self.fingerprint(request))

    def fingerprint(self, request: Request) -> str:
        """Return a hash of the request, its rows, their source and the losses."""
        content: dict[str, Json] = {
            "source": self.source,
            "domain": self.domain.fingerprint,
            "rows": request.sets.rows.fingerprint,
            "losses": request.losses.to_json(str),
        }
        if self.copies:
            content["copies"] = dict(self.copies)
        if self._permit is not None:  # what was paid under one is not found under another
            content["permit"] = self._permit
        texts = {name: canonical(value) for name, value in content.items()}
        # the ledger keeps the text of a refinement as it was written: it is read, and written in canonical form
        identity = request.identity if request.drawn is None else canonical(json.loads(request.identity))
        return hash_of(joined({**texts, "request": identity}))

    def _charge(self, request: Request) -> Entry:
        if self.pay_first is not None:
            self.pay_first()
        fingerprint = self.fingerprint(request)

        def write(reaches_root: Fraction) -> Entry:
            charge = Charge(
                question=request.words,
                question_json=request.identity,
                fingerprint=fingerprint,
                scope=request.sets.name,
                epsilon=listed(request.losses.map(self.unit.epsilon)),
                loss=reaches_root,
                key=request.key,
                opening_token=self.opening_token(version),
                terms=self.terms,
                under=self.under,
            )
            entry, new = self.ledger.charge(self.dataset, self.analyst, charge, self.limit, self.hold)
            if not new:
                raise _Stands(entry)
            return entry

        version = self.engine.version
        if request.drawn is not None:
            self.check_drawn(request.words, request.drawn, version)
        self.last_entry.entry = None
        try:
            entry = accounting.charge(request.sets.scopes, request.losses, write, version, self.unit.name)
        except _Stands as stands:
            return stands.entry
        self.last_entry.entry = entry.id
        return entry


class _Stands(accounting.Refused):
    """The charge was written before, under the same key: the scopes must not pay again."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry


class _Held(accounting.Refused):
    """Budget is held, and nothing is charged yet."""

    def __init__(self, hold: int) -> None:
        self.hold = hold


def listed(losses: PerPart[Fraction]) -> str:
    """Return the losses as text: one number, or the least and the greatest."""
    values = losses.compact().values
    lowest, highest = decimal_text(min(values)), decimal_text(max(values))
    return lowest if lowest == highest else f"{lowest} to {highest}"


class OpenTable(ABC):
    """A set of rows of an open table: what a race or a keyed run is given. `privet.table` has the methods that ask."""

    _sets: RowSets

    @property
    @abstractmethod
    def _session(self) -> Session:
        """What answers questions about it."""

    @abstractmethod
    def _with(self, session: Session, sets: RowSets) -> Self:
        """Return such a table of other rows, or in another session."""
