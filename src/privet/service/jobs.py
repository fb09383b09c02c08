"""Fits that run on the server: an analyst names an algorithm, and watches or cancels the job.

A job asks its own questions in a sitting of its own, each charged as any other; what was charged stands when it is
cancelled or fails. Its model is made of releases, and the ledger keeps it under the job's key. What is told of a job on
its way is what a local fit tells, without times, and changes at ticks alone.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from privet import ledger_lines
from privet.errors import EngineFailed, LedgerError, PrivetError, QuestionError
from privet.kernel import Json, Ledger, Session, as_epsilon, digest
from privet.ledger_lines import ServerEvent
from privet.question_json import amount_from_json
from privet.service import api
from privet.service.decisions import Follower
from privet.table import InProcess, ProtectedTable
from privet.text import clean

# a path, a callable, or the owner's to say: how many threads a fit takes
_NOT_CHOICES = {"epsilon", "domain", "unsafe", "verbose", "policy", "n_jobs"}
_PUBLIC = {"id3", "c45"}  # for rows that are public, without noise: no server fits them
_KEPT = 1000  # jobs that have ended
_PAGE = 20  # models that are read at a time
TICKS = 10  # of a table's ticks, between two looks at a job


class _Cancelled(Exception):
    """The analyst has cancelled the job; raised between two questions."""


@dataclass(frozen=True)
class Snapshot:
    """How far a job is."""

    state: api.JobState = "queued"
    step: str = ""
    done: int = 0
    total: int | None = None
    charged: bool | Literal["unknown"] = False
    problem: str | None = None
    model: int | None = None

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass
class Job:
    """One fit."""

    id: str
    analyst: str
    table: str
    body: api.FitBody
    session: Session
    tick: float
    clock: Callable[[], float]
    permitted: Callable[[], bool] = lambda: True
    cancelled: bool = False
    _log: list[tuple[float, Snapshot]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._log.append((self._begun, Snapshot()))

    @property
    def now(self) -> Snapshot:
        """What is true now; for the server alone."""
        return self._log[-1][1]

    def tell(self, **changes: Any) -> None:
        """Write down a step."""
        with self._lock:
            self._log.append((self.clock(), replace(self.now, **changes)))

    def visible(self) -> tuple[int, Snapshot]:
        """Return the number of the last step that may be told, and the step: only ticks show when one ended."""
        pause = TICKS * self.tick
        elapsed = self.clock() - self._begun
        until = self._begun + (elapsed // pause * pause if pause else elapsed)
        with self._lock:
            told = [number for number, (at, _) in enumerate(self._log) if at <= until]
            number = told[-1] if told else 0
            return number, self._log[number][1]

    def reply(self) -> api.JobReply:
        """Return it as it crosses the wire."""
        _, seen = self.visible()
        return api.JobReply(
            id=self.id,
            table=self.table,
            algorithm=self.body.algorithm,
            state=seen.state,
            step=seen.step,
            done=seen.done,
            total=seen.total,
            charged=seen.charged,
            problem=seen.problem,
            model=seen.model,
        )


class Jobs:
    """The fits of a server.

    Parameters
    ----------
    clock : callable
        Returns seconds.
    most : int
        Jobs of an analyst that wait or run.
    workers : int
        Jobs that run at a time.
    """

    def __init__(self, clock: Callable[[], float], most: int, workers: int) -> None:
        self._clock, self._most = clock, most
        self._workers = ThreadPoolExecutor(workers, "privet-fit")
        self._jobs: dict[str, Job] = {}
        self._fits: _Fits | None = None
        self._lock = threading.Lock()

    def start(
        self,
        analyst: str,
        table: str,
        session: Session,
        body: api.FitBody,
        tick: float,
        permitted: Callable[[], bool] = lambda: True,
    ) -> Job:
        """Begin a fit, or find the one under the same key; between two questions it must be permitted still.

        Raises
        ------
        QuestionError, or what else the learner refuses before a charge
        """
        identity = digest([analyst, table, body.key])[:32]
        fits = self._fits_of(session.ledger)
        fits.refresh()
        with self._lock:
            job = self._jobs.get(identity)
            if job is None:
                own = session.sitting(analyst, session.under)
                job = Job(identity, analyst, table, body, own, tick, self._clock, permitted)
                self._resume(job, fits)
                self._jobs[identity] = job
            elif _content(job.body) != _content(body):
                raise _key_reused()
        return job

    def _fits_of(self, ledger: Ledger) -> _Fits:
        with self._lock:
            if self._fits is None or self._fits.ledger is not ledger:
                self._fits = _Fits(ledger)
            return self._fits

    def _resume(self, job: Job, fits: _Fits) -> None:
        """Begin a job, unless the ledger knows how it went in another process."""
        session, body = job.session, job.body
        whose = session.dataset, job.analyst, body.key
        begun = fits.begun.get(whose)
        if begun is not None and begun != digest(_content(body)):
            raise _key_reused()
        stored = None if begun is None else self._stored(job)
        if stored is not None:
            job.tell(state="done", charged=True, model=stored)
            return
        if begun is not None and not body.once:
            raise FitLost(
                "the fit under this key ended with its server, and what it had charged stands; use a new key."
            )
        running = sum(not other.now.ended for other in self._jobs.values() if other.analyst == job.analyst)
        if running >= self._most:
            raise QuestionError(f"{self._most} fits of yours wait or run, the most that one may have.")
        classifier = _classifier(body)
        classifier.check(session.domain)
        if begun is None:  # a line of the ledger is for who can pay: else it is filled for nothing
            from privet.learners.algorithm import check_budget  # scikit-learn takes a second

            check_budget(_table(session), body.algorithm, classifier.epsilon)
            fits.write(job)
        self._forget()
        self._workers.submit(self._run, job, classifier)

    @staticmethod
    def _stored(job: Job) -> int | None:
        """Return the number of the model under the key of a fit that was begun, if it was finished."""
        ledger, dataset, after = job.session.ledger, job.session.dataset, 0
        while page := ledger_lines.models(ledger, dataset, job.analyst, after, _PAGE):
            for model in page:
                if model.key == job.body.key:
                    return model.id
            after = page[-1].id
        return None

    def _forget(self) -> None:
        ended = [name for name, job in self._jobs.items() if job.now.ended]
        for name in ended[: max(0, len(ended) - _KEPT)]:
            del self._jobs[name]

    def find(self, identity: str, analyst: str) -> Job | None:
        """Return an analyst's job; None for one of another, as for none."""
        job = self._jobs.get(identity)
        return job if job is not None and job.analyst == analyst else None

    def cancel_of(self, analyst: str, table: str | None = None) -> None:
        """Cancel every fit of an analyst, whose grant has ended: to one table, or with None to all."""
        for job in list(self._jobs.values()):
            job.cancelled |= job.analyst == analyst and table in (None, job.table)

    def close(self) -> None:
        """Cancel what waits, let what runs stop at its next question, and wait for it."""
        for job in list(self._jobs.values()):
            job.cancelled = True
        self._workers.shutdown(wait=True)

    # -- in a thread ------------------------------------------------------------------------

    def _run(self, job: Job, classifier: Any) -> None:
        """Fit. No exception leaves the thread, and no words of one that may quote a row."""
        session = job.session
        before = session.ledger.spent(session.dataset, job.analyst)

        def report(progress: Any) -> None:
            if job.cancelled or not job.permitted():
                raise _Cancelled
            job.tell(state="running", step=clean(progress.what)[:200], done=progress.done, total=progress.total)

        problem: str | None = None
        try:
            if job.cancelled or not job.permitted():  # it may have waited past the last day
                raise _Cancelled
            job.tell(state="running")
            table = _table(session)
            if job.body.once:
                model = classifier.fit(table, key=job.body.key).model_
            else:
                model = classifier.set_params(verbose=report).fit(table).model_
            text = model.to_json()
            entries = model.privacy.entries
            facts: dict[str, Json] = {
                "entries": entries,
                "algorithm": job.body.algorithm,
                "epsilon": str(model.privacy.epsilon),
                "spent": str(model.privacy.spent),
                **({} if session.under is None else {"permit": session.under.permit}),
            }
            number = ledger_lines.store_model(session.ledger, session.dataset, job.analyst, job.body.key, text, facts)
            job.tell(state="done", charged=True, model=number)
            return
        except _Cancelled:
            job.tell(state="cancelled", charged=self._charged(job, before), problem="what was charged stands.")
            return
        except LedgerError:
            problem = "the ledger of this server could not be used."
        except EngineFailed:
            problem = "the engine could not answer."
        except PrivetError as error:
            problem = clean(str(error))
        except Exception as error:
            problem = "an unexpected error stopped it."
            print(f"privet: {type(error).__name__} in a fit", file=sys.stderr, flush=True)
        job.tell(state="failed", charged=self._charged(job, before), problem=problem)

    @staticmethod
    def _charged(job: Job, before: Fraction) -> bool | str:
        try:
            return job.session.ledger.spent(job.session.dataset, job.analyst) > before
        except LedgerError:
            return "unknown"


def _table(session: Session) -> ProtectedTable:
    return ProtectedTable(InProcess(session), session.whole_table())


def _content(body: api.FitBody) -> Json:
    """Return what makes a fit this one and no other, under its key."""
    under = [] if body.under is None else [body.under.permit, body.under.purpose]
    return [body.algorithm, body.epsilon, dict(body.choices), *(["once"] if body.once else []), *under]


class _Fits(Follower):
    """All fits that were begun, on any server of a ledger: a hash of what was asked, by data set, analyst and key."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.begun: dict[tuple[str, str, str], str] = {}

    def _take(self, event: ServerEvent) -> None:
        if event.what == "fit":
            facts = event.facts
            self.begun.setdefault((str(event.dataset), str(event.analyst), facts["key"]), facts["content"])

    def write(self, job: Job) -> None:
        """Write down that a fit begins; FitLost if another server has begun it meanwhile."""
        body, dataset = job.body, job.session.dataset
        facts: dict[str, Json] = {"key": body.key, "algorithm": body.algorithm, "content": digest(_content(body))}
        while True:
            seen = self.refresh()
            if (dataset, job.analyst, body.key) in self.begun:
                raise FitLost("a fit under this key was begun on another server; look there, or use a new key.")
            if ledger_lines.change(self.ledger, seen, "fit", dataset=dataset, analyst=job.analyst, facts=facts):
                return


class FitLost(PrivetError):
    """A fit that another process has begun and not finished."""


def _key_reused() -> PrivetError:
    from privet.errors import KeyReused

    return KeyReused("the key stands for another fit; use a new key for this.")


class Choices(NamedTuple):
    """What is to be known about an algorithm before it is fitted: in words, and the usual value of each choice."""

    words: str
    choices: dict[str, str | int | bool | None]


@lru_cache
def classifier_choices() -> dict[str, Choices]:
    """Return all algorithms that can be fitted on a server."""
    from privet.choice.auto import CLASSIFIERS  # scikit-learn takes a second

    made = {}
    for name, kind in CLASSIFIERS.items():
        if name in _PUBLIC:
            continue
        given = kind().get_params().items()
        plain = {key: value for key, value in given if key not in _NOT_CHOICES}
        choices = {key: value for key, value in plain.items() if value is None or isinstance(value, str | int)}
        made[name] = Choices((kind.__doc__ or "").strip().partition("\n")[0], choices)
    return made


def _classifier(body: api.FitBody) -> Any:
    """Return the classifier of a request: of a list, with plain choices, and nothing that is a file or a function."""
    from privet.choice.auto import CLASSIFIERS  # scikit-learn takes a second

    kind = CLASSIFIERS.get(body.algorithm)
    if kind is None:
        known_names = ", ".join(name for name in CLASSIFIERS if name not in _PUBLIC)
        raise QuestionError(f"there is no algorithm '{clean(body.algorithm)}'; choose one of {known_names}.")
    choices: Mapping[str, Any] = body.choices
    known = set(kind().get_params()) - _NOT_CHOICES
    for name in choices:
        if name not in known:
            raise QuestionError(
                f"{body.algorithm} has no choice '{clean(name)[:60]}'; it has {', '.join(sorted(known))}."
            )
    return kind(as_epsilon(amount_from_json(body.epsilon)), **choices)
