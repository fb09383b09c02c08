"""Runs of many questions on a shadow of a table: the same rows, behind a ledger of their own.

A **race** returns the best of several private runs, without paying for each (Liu and Talwar 2019, arXiv 1811.07971).
A run is a function of a table that loses at most e1 and says how well it did. Running all of them and publishing
the best would cost the sum of their losses. A race runs a random number of them, each drawn at random, publishes the
best and forgets the others: that loses 3 e1, however many candidates there are.

A **keyed run** is paid once under a key, and can be repeated until its result is stored. `privet fit --key` and
`classifier.fit(table, key=...)` use it: a fit that a crash has ended is finished by the same call, without another
charge, and a model that was lost is written again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np

from privet.errors import EngineFailed, LedgerError, PrivacyError, PrivetError, QuestionError
from privet.kernel.accounting import PURE, Scopes, Unit, as_epsilon, as_share
from privet.kernel.engines.contract import Borrowed, Cells, Engine
from privet.kernel.ledger import MEMORY, Entry, Ledger
from privet.kernel.public_values import Json, PerPart, canonical, fraction_of
from privet.kernel.session import LastEntry, OpenTable, Request, Session
from privet.release import Public, Release, clean_value

Score = Release | Public
T = TypeVar("T", bound=OpenTable)


def shadow_table(table: T, lease: Lease, budget: Fraction, unit: Unit) -> T:
    """Return the same rows behind a ledger of their own, in memory: what is asked there costs at most `budget`."""
    session = table._session
    ledger = Ledger.open(MEMORY)
    ledger.register(session.dataset, source=session.source, budget=budget, delta=unit.delta)
    shadow = replace(
        session,
        engine=cast(Engine, lease),
        ledger=ledger,
        limit=None,
        hold=None,
        terms=None,
        last_entry=LastEntry(),
        writes=False,
        unit=unit,
        exchange=None,
    )
    return table._with(shadow, replace(table._sets, scopes=Scopes()))


class Lease(Borrowed):
    """An engine for as long as a run lasts; a candidate that closes it closes the lease alone."""

    def close(self) -> None:
        self._opened = None

    def in_cells(self, cells: Cells) -> Engine:
        """Return the rows in other cells, for a table that asks this lease whether it is closed."""
        if self._opened is None:
            raise QuestionError("the run that this table was for is over.")
        return self._opened.in_cells(cells)


# -- a race -------------------------------------------------------------------------------------

LEAST_STOP = Fraction(1, 1000)  # a race has 1 / stop runs on average


@dataclass(frozen=True)
class Raced:
    """The run that won: which candidate it was of, what it made, its score, and what the race was charged.

    How many runs there were is not told: with a target it depends on the rows, and no charge covers that.
    """

    index: int
    output: Any
    score: Score
    epsilon: Fraction


def race(
    table: T,
    candidates: Sequence[Callable[[T], tuple[Any, Score]]],
    epsilon: int | float | str | Fraction,
    *,
    stop: Fraction | float | str = Fraction(1, 4),
    target: int | float | Fraction | None = None,
) -> Raced | None:
    """Run candidates drawn at random, stop after each with probability `stop`, and return the best run.

    A candidate takes a table and returns (output, score), the score a release or made of
    releases with `map`. Its table is a shadow of this one: the same rows, and `epsilon` to
    spend that nobody else can, so that a run loses at most `epsilon` whatever it does. The
    race is charged three times that, once, before the first run. With a `target`, a public
    number, it returns the first run whose score reaches it, or None where the coin says stop
    before: that is charged twice `epsilon`.

    In a data set that is counted in rho a run is pure, too: its shadow is counted in epsilon, and whatever
    loses three times `epsilon` loses half of the square of that as rho.

    Proof. Write g for `stop`. One run, of a candidate drawn at random, is an experiment that
    loses e1 = `epsilon`; runs are independent, and of equal scores the first wins. Let a be the
    chance that a run makes the outcome o, B that it scores worse than o, and E that it scores
    the same. Summing over the number of runs, K = k with chance g (1-g)^(k-1), and over which
    of them wins, o is returned with probability

        g a / ((g + (1-g)(1-B)) (g + (1-g)(1-B-E))).

    a, 1-B and 1-B-E are chances of events of one run: between neighbours each moves by a factor
    of at most exp(e1), and so do the three factors of the formula. With a target, which a run
    reaches with chance p, o is returned with probability a / (g + (1-g) p), and None with
    probability g (1-p) / (g + (1-g) p): two such factors each.

    A run that raises ends the race with its error. Count the error as an outcome that beats every
    score and reaches every target: its chance is then a part of 1-B-E and of p. The error itself
    is returned with probability a / (g + (1-g) x), where x is the chance that a run raises, or
    reaches the target: two such factors. So the same charge covers it. An error of privet is
    raised as it is, any other as EngineFailed without its words.

    What is promised is about what the race returns. A candidate is Python code in this process, which
    cannot be stopped from reading private attributes; one that prints, keeps or sends what it
    learns in a run that does not win tells e1 more with every run; and how long a race takes
    tells the number of runs. What it keeps of its table answers no longer when the run is over.

    >>> import pandas as pd
    >>> import privet
    >>> from privet import Domain, Nominal
    >>> people = privet.open(pd.DataFrame({"sex": ["f"] * 900}), Domain((Nominal("sex", ("f", "m")),)), budget=30)
    >>> women, men = (lambda shadow, sex=sex: (sex, shadow.where(sex=sex).count(5)) for sex in "fm")
    >>> won = race(people, [men, women], epsilon=5, target=500, stop="0.001")   # None in one of a thousand
    >>> won is None or won.output == "f", people.budget.spent
    (True, Fraction(10, 1))
    """
    if not isinstance(table, OpenTable):
        raise QuestionError(f"a race is run on a protected table, not on a {type(table).__name__}.")
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise QuestionError("candidates are a list of at least one function of a table.")
    if not all(callable(candidate) for candidate in candidates):
        raise QuestionError("a candidate is a function that takes a table and returns an output and its score.")
    share, chance = as_epsilon(epsilon), as_share(stop, "stop")
    if chance < LEAST_STOP:
        raise QuestionError("stop is at least 1/1000: a race has 1 / stop runs on average.")
    goal = None if target is None else _number(target, "a target")
    if table._session.entropy.script is not None:
        raise PrivacyError("a race has no end of outcomes, so they cannot be enumerated; sample it instead.")
    unit, whole = table._session.unit, share * (3 if goal is None else 2)
    # A run is pure in every data set, and so is the race: what loses epsilon loses epsilon^2 / 2 as rho.
    charged = whole if unit is PURE else whole**2 / 2
    version = table._session.engine.version
    # One entry for the whole race: it says that there was one, and nothing of any run.
    identity: Json = {
        "race": len(candidates),
        "version": 1,
        "epsilon": str(share),
        "stop": str(chance),
        "target": None if goal is None else str(goal),
    }
    table._session.begin(f"race({len(candidates)} candidates)", identity, table._sets, charged)
    ended = _run(table, list(candidates), share, chance, goal, unit.epsilon(charged))
    if table._session.engine.version != version:  # runs on different rows are not alike, as the proof has them
        ended = EngineFailed("the rows may have changed during the race; its charge stands, a new race is a new one.")
    if isinstance(ended, PrivetError):
        raise ended
    return ended


def _run(
    table: T,
    candidates: Sequence[Callable[[T], tuple[Any, Score]]],
    epsilon: Fraction,
    stop: Fraction,
    target: Fraction | None,
    charged: Fraction,
) -> Raced | PrivetError | None:
    """Run the race after its charge. Errors are returned, so that no traceback holds the runs before them."""
    best: tuple[Fraction, Raced] | None = None
    coins = table._session.entropy
    while True:
        index = coins.below(len(candidates))
        ended = _one(table, candidates[index], epsilon)
        if isinstance(ended, PrivetError):
            return ended
        output, score, number = ended
        if target is not None and number >= target:
            return Raced(index, output, score, charged)
        if target is None and (best is None or number > best[0]):
            best = number, Raced(index, output, score, charged)
        if coins.below(stop.denominator) < stop.numerator:
            return None if best is None else best[1]


def _one(
    table: T, candidate: Callable[[T], tuple[Any, Score]], epsilon: Fraction
) -> tuple[Any, Score, Fraction] | PrivetError:
    """Run one candidate on a shadow of the table, which answers no longer when the run is over."""
    lease = Lease(table._session.engine)
    problem: PrivetError = EngineFailed("a candidate of the race failed; the charge of the race stands.")
    try:
        result = candidate(shadow_table(table, lease, epsilon, PURE))
        if not isinstance(result, tuple) or len(result) != 2:
            raise QuestionError("a candidate of a race returns an output and its score.")
        output, score = result
        return output, score, _number(clean_value(score), "the score of a run")
    except PrivetError as error:
        problem = error
    except Exception:
        pass  # its words may be about a row
    finally:
        lease.close()
    # what it came from stays here
    problem.__cause__, problem.__context__, problem.__traceback__ = None, None, None
    return problem


def _number(value: object, what: str) -> Fraction:
    """Return a number that can be compared with every other: exact and finite."""
    plain = value.item() if isinstance(value, np.generic) else value
    number = None if isinstance(plain, str) else fraction_of(plain)
    if number is not None and isinstance(plain, float):
        return Fraction(plain)  # what it is and not what it reads as: scores are compared exactly
    if number is None:
        raise QuestionError(f"{what} must be a finite number of at most 300 digits.")
    return number


# -- a run under a key --------------------------------------------------------------------------


def keyed_run(
    table: T,
    run: Callable[[T], str],
    epsilon: Fraction,
    key: str,
    words: str,
    identity: Json,
) -> tuple[str, int | None, bool]:
    """Run a function of a table under one charge, and keep what it returns in the ledger.

    The function gets a shadow of the table: the same rows, and `epsilon` to spend that nobody else can. The whole of
    `epsilon` is charged under the key before its first question is answered. If the process ends before the result is
    stored, the same call runs the function again under the standing charge. If a result is stored, it is returned.

    Proof. A run loses at most `epsilon`, because its shadow pays no more. Of all runs under the key, the result of one
    leaves: the one that is stored first. The function must print, keep and send nothing: learners run no code of the
    caller's in it and switch progress off. Then a run that ended before has told nobody anything. A run that raises
    after its charge has a result, too: its sentence is stored, so that it cannot be tried again until it comes out
    differently. The exceptions are interrupts and failures of an engine, a ledger or the machine, which may be
    repeated; what made them happen, time, memory and a full disk, is not covered (docs/explanation/privacy.md).

    Parameters
    ----------
    table : ProtectedTable
        A whole table, or rows of it that meet conditions; not a part of a partition.
    run : callable
        Takes a table, and returns what is stored.
    epsilon : Fraction
        What is charged, per person.
    key : str
    words : str
        What the ledger calls the run.
    identity : Json
        What makes it this run and no other, besides the rows and `epsilon`.

    Returns
    -------
    result : str
    entry : int or None
        The ledger entry that paid for it.
    own : bool
        Whether this call's run made the result; whatever else that run made may be used only then.

    Raises
    ------
    KeyReused
        The key stands for another run.
    BudgetExceeded
        The table has less than `epsilon` left. Nothing was charged.
    EngineFailed
        The run failed after its charge.
    PrivetError
        What `run` refused before its first question. Nothing was charged.
    """
    session, sets = table._session, table._sets
    if not session.private_rows:
        raise QuestionError("public rows cost nothing, so there is nothing to pay once; leave out the key.")
    if sets.scopes.shares:
        raise QuestionError("a key is for a fit of a whole table, not of a part of a partition; leave it out.")
    (loss,) = session.amounts(epsilon, 1)
    request = Request(words, canonical(identity), sets, PerPart.same(loss, len(sets)), key)
    payment = _Payment(session, request, session._standing(request))
    stored, text = payment.entry.answer if payment.entry is not None else None, None
    if stored is None:
        outcome = _outcome(table, run, loss, payment)
        entry, private = payment.pay(), session.entropy.private
        text = json.dumps({"answer": outcome, "private": private}, separators=(",", ":"))
        token = session.opening_token(session.engine.version)
        try:
            stored = session.ledger.store(entry.id, text, private=private, opening_token=token)
        except LedgerError as error:
            raise LedgerError(f"{error} {payment.stands}") from None
    assert payment.entry is not None
    result, sentence = json.loads(stored)["answer"]
    if result is None:
        raise EngineFailed(
            f"{words} under the key '{key}' came to an end without a result: {sentence} Ledger entry "
            f"{payment.entry.id} stands; a new try needs a new key, and is a new charge."
        )
    return str(result), payment.entry.id if session.writes else None, stored == text


@dataclass
class _Payment:
    """The charge of a run, made once, before its first question."""

    session: Session
    request: Request
    entry: Entry | None

    def pay(self) -> Entry:
        """Charge the run unless that is done."""
        if self.entry is None:
            self.entry = self.session._charge(self.request)
        return self.entry

    @property
    def stands(self) -> str:
        """The sentence that says how to go on after the charge."""
        assert self.entry is not None
        return (
            f"Ledger entry {self.entry.id} (epsilon={self.entry.epsilon}) stands: retry with the key "
            f"'{self.request.key}' to finish under it."
        )


def _outcome(table: T, run: Callable[[T], str], loss: Fraction, payment: _Payment) -> list[Json]:
    """Return [result, None], or [None, why there is none]; raise what may be tried again."""
    lease = Lease(table._session.engine)
    problem: str | None = None
    stopped: type[BaseException] | None = None
    try:
        shadow = shadow_table(table, lease, loss, table._session.unit)
        return [run(table._with(replace(shadow._session, pay_first=payment.pay), shadow._sets)), None]
    except (EngineFailed, LedgerError, MemoryError, OSError):
        if payment.entry is None:
            raise
    except PrivetError as error:
        if payment.entry is None:
            raise
        problem = str(error)
    except Exception:  # its words may be about a row
        if payment.entry is None:
            raise
        problem = "an unexpected error stopped it."
    except BaseException as error:  # an interrupt
        if payment.entry is None:
            raise
        stopped = type(error)
    finally:
        lease.close()
    # Raised outside the block, so that no traceback holds what the run learned.
    if stopped is not None:
        raise stopped
    if problem is None:
        raise EngineFailed(f"{payment.request.words} on '{payment.session.dataset}' failed. {payment.stands}")
    return [None, problem]
