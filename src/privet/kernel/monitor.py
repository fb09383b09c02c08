"""A monitor: is this released model accurate enough? Asked of one model after the other, paid for once.

The rule "release the cheapest model that is at least this accurate" tries models until
one will do. Every trial looks at the rows, but all the trials together cost one epsilon:
only the first yes says much, and the sparse vector technique (`AboveThreshold`) charges
for that alone.

The hidden threshold lives in the monitor and nowhere else: no ledger, file or text holds
it, a monitor cannot be copied, and it dies with its process. In-process Python cannot
stop a hostile caller who reads private attributes.
"""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from typing import NoReturn

import numpy as np

from privet.errors import EngineFailed, PrivacyError, QuestionError
from privet.kernel.accounting import Unit
from privet.kernel.additive import AdditiveModel, check_model
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import CorrectQuery, CountQuery, Engine
from privet.kernel.public_values import Json
from privet.kernel.selections import AboveThreshold, Watch
from privet.kernel.session import RowSets, Session
from privet.text import decimal_text


def exact_lead(engine: Engine, query: CorrectQuery, accuracy: Fraction) -> int:
    """Return by how much the rows that a model classifies right exceed a share of all rows, times its denominator.

    For p / q it is q * right - p * rows: a record raises it by q - p or lowers it by p.
    """
    (exact_right,) = engine.exact_correct(query).tolist()
    ((exact_rows,),) = (exact.tolist() for exact in engine.exact_counts(CountQuery(query.rows, ((),))))
    return int(accuracy.denominator * exact_right - accuracy.numerator * exact_rows)


def monitor_mechanism(domain: Domain, accuracy: Fraction, loss: Fraction, unit: Unit) -> AboveThreshold:
    """Return the mechanism of a monitor for a loss of a person; QuestionError if the domain has no classes."""
    if len(domain.classes) < 2:
        raise QuestionError("a monitor needs a target with at least two classes.")
    rise, fall = accuracy.denominator - accuracy.numerator, accuracy.numerator  # of the score, for one record
    return unit.watch(unit.of_record(loss, domain.rows_per_person), max(rise, fall), rise + fall)


class Monitor:
    """Answers whether released models classify at least a share of the rows right, up to its first yes.

    With the share p / q a model has the score q * right - p * rows, which is at or above 0
    where it is accurate enough. A record raises a score by q - p or lowers it by p, so one
    moves against another by at most q: the `sensitivity` and `spread` of `AboveThreshold`,
    whose proof this is.
    """

    def __init__(self, session: Session, sets: RowSets, accuracy: Fraction, epsilon: object) -> None:
        """Charge `epsilon`, of a person, for a monitor of one set of rows."""
        self._session, self._rows, self._accuracy = session, sets.rows, accuracy
        (amount,) = session.amounts(epsilon, 1)
        self._mechanism = monitor_mechanism(session.domain, accuracy, amount, session.unit)
        # the version of the rows, where other parts share what it pays
        self._paid_for = session.engine.version if sets.scopes.shares else None
        loss = session.loss_of(self._mechanism)
        identity: Json = {"monitor": str(accuracy), "version": 1}
        self._about = session.begin(f"monitor({decimal_text(accuracy)})", identity, sets, loss)
        self._checks = 0
        self._watch = Watch(self._mechanism, session.entropy)
        self._process = os.getpid()
        self._lock = threading.RLock()

    @property
    def accuracy(self) -> Fraction:
        """The share of the rows that a model has to classify right."""
        return self._accuracy

    @property
    def epsilon(self) -> Fraction:
        """What was charged for it, once and for all."""
        return self._about.epsilon

    @property
    def checks(self) -> int:
        """How many models were asked about so far."""
        return self._checks

    @property
    def closed(self) -> bool:
        """True after the first yes, and after an answer that was interrupted."""
        return self._watch.closed

    @property
    def private(self) -> bool:
        """False where its noise is seeded, or the rows are public."""
        return self._about.private

    def reached(self, model: AdditiveModel) -> bool:
        """Return whether a model is accurate enough, noisily.

        Raises
        ------
        QuestionError
            The monitor is closed, or the model does not fit the table: it is not counted then.
        """
        check_model(model)
        model.check(self._session.domain)
        if os.getpid() != self._process:
            # two processes with one threshold could hear two yeses
            raise PrivacyError("this monitor was begun in another process and died with it; begin another here.")
        with self._lock:
            if self._watch.closed:
                raise QuestionError(
                    f"this monitor is closed after {self._checks} checks: it answers up to its first yes; begin "
                    "another with table.monitor."
                )
            exact_score, version = self._exact_score(model)
            if self._paid_for not in (None, version):
                raise QuestionError(
                    "this monitor was begun for rows that may have changed since the connection was lost; begin "
                    "another with table.monitor."
                )
            self._checks += 1
            return self._watch.reached(exact_score)

    def margin(self, confidence: float = 0.95) -> int:
        """Return how many rows a model that it accepts is at most below the accuracy, with this confidence.

        It grows slowly with the number of checks, and counts those up to now; before the
        first it is that of the first. The bounds of all checks hold together.
        """
        if not 0 < confidence < 1:
            raise QuestionError(f"confidence must lie between 0 and 1, not {confidence}.")
        return math.ceil(self._mechanism.shortfall(max(self._checks, 1), confidence) / self._accuracy.denominator)

    def _exact_score(self, model: AdditiveModel) -> tuple[int, int]:
        """Return the score, and the version of the rows that it is about."""
        engine = self._session.engine
        query = CorrectQuery(self._rows, model, self._session.domain.target_column.name)
        self._session.check_open()
        result = None
        try:
            with np.errstate(all="ignore"):  # else a caller's settings could make a number of a row an error
                result = self._session.run_on_one_version(lambda: exact_lead(engine, query, self._accuracy))
        except Exception:  # what went wrong may quote a row: the error below is raised outside this block
            pass
        if result is not None:
            return result
        raise EngineFailed(
            f"the {engine.name} engine could not count the rows that a model classifies right on "
            f"'{self._session.dataset}'; the monitor is as it was before, ask it again."
        )

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return (
            f"<monitor of '{self._session.dataset}': accuracy {decimal_text(self.accuracy)}, {self.checks} checks, "
            f"{state}, {self._about.words}>"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError("a monitor cannot be copied or pickled: its threshold stays where it is.")
