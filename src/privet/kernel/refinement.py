"""Gradual release: an answer that is refined later, for the difference in epsilon.

All that was released from one question forms a chain of levels for each part, every level
drawn from the one before it (`mechanisms.Refinement`): together they lose what the last one loses. That
holds for one chain only. A second draw from an earlier level would lose far more than the
difference, so of every answer there is one record of refinements, in the ledger: the k-th
refinement of entry N is the entry under a key that no analyst can write and that exists once.
Of the threads that share a table, whoever comes second reads what the first one wrote,
finishes it where its answer is missing, and goes on from there.

The noise of an answer is kept nowhere. It is the released value minus the exact one, which
is asked of the engine again: it is the noise that was drawn only if the rows are those of
the first answer. Within one opening of a table they are. After another one they may have
changed: a person in both versions could lose up to e2 + 2 e1 from an answer refined from e1
to e2, where e2 is charged. So an answer is refined only in the opening, and the process, in
which it was drawn. Everywhere else, where it was found again by its key, `refine` is refused
whatever the level. A refinement whose process died is never finished: budget is wasted, not
leaked.

In a data set that is counted in rho a refinement is a fresh draw of Gaussian noise, which costs the difference of the
two rhos as any other answer does, and the mean of all draws, weighted by their rhos, is released: its variance is that
of the sum of the rhos. Nothing is drawn from the noise before, so no more than composition is needed for the proof.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from privet.errors import KeyReused, QuestionError
from privet.kernel.mechanisms import IntegerGaussian, IntegerLaplace, Mechanism, Paired, Refinement, release_all
from privet.kernel.public_values import PerPart
from privet.kernel.rows import Keep
from privet.kernel.session import Question, Request, RowSets, Session, listed
from privet.release import Refinable


class ChainLevel(NamedTuple):
    """What a part has for one loss: a value as it is stored, its entry, and whether all noise so far was real.

    In rho it is the mean of all answers so far, as a float.
    """

    loss: Fraction
    value: Any
    entry: int
    private: bool


class Chain:
    """All that was released from one question: for each part a chain of levels, of which the last is kept.

    Parameters
    ----------
    session : Session
    question : Question
        Its mechanism is integer Laplace noise on one vector for each part.
    sets : RowSets
    releases : sequence of Refinable
        The first level, one for each part.
    """

    def __init__(self, session: Session, question: Question[Any], sets: RowSets, releases: Sequence[Refinable]) -> None:
        entry = releases[0].about.entry
        assert entry is not None
        self._session, self._question, self._sets, self._entry = session, question, sets, entry
        self._releases = releases
        self._lock = threading.Lock()
        self._drawn: str | None = None  # the opening that its record names
        # what was read of the record: the last level of each part, after so many refinements
        self._known: tuple[list[ChainLevel], int] | None = None

    def levels(self, parts: Sequence[int], losses: PerPart[Fraction]) -> list[ChainLevel]:
        """Refine some parts to at least these losses; return what each then has, in plain values."""
        with self._lock:
            levels = self._read()
            while wanted := _missing(levels, parts, losses):
                if any(loss - levels[part].loss < self._session.unit.smallest for part, loss in wanted.items()):
                    raise QuestionError(
                        f"cannot refine {self._question.words} by so little: an answer costs at least "
                        f"{self._session.unit.text(self._session.unit.smallest)} more; ask for a larger epsilon."
                    )
                try:
                    levels = self._step(_written(wanted))
                except KeyReused:  # another refinement came between
                    levels = self._read()
        return [levels[part] for part in parts]

    def _finer(self, before: Fraction, after: Fraction) -> Mechanism:
        """Return what a person with one record less or more sees between two levels."""
        noise, session = self._releases[0].noise, self._session
        records = session.domain.rows_per_person
        if isinstance(noise, IntegerLaplace):
            return Refinement(before / records, after / records, noise.sensitivity)
        assert isinstance(noise, IntegerGaussian)
        return IntegerGaussian(session.unit.of_record(after - before, records), noise.squared)

    # -- the record in the ledger -------------------------------------------------------------

    def _key(self, step: int) -> str:
        """Return the key of a refinement. Analysts write printable keys only, so it is none of theirs."""
        return f"\x1frefinement {step} of {self._entry}"

    def _read(self) -> list[ChainLevel]:
        """Take in all refinements in the ledger; one without an answer is finished, for it is paid.

        Only where the first answer was drawn: the rows are the same, and nobody else has added to the record.
        """
        session, ledger = self._session, self._session.ledger
        if self._known is None:
            self._check_pairing()
            stored = ledger.answer(self._entry)
            first = json.loads(stored.text)
            private = bool(first["private"]) and session.private_rows
            values = zip(self._releases, first["answer"], strict=True)
            self._drawn = stored.opening_token
            self._known = [ChainLevel(release.about.loss, value, self._entry, private) for release, value in values], 0
        session.check_drawn(f"refine {self._question.words}", self._drawn, session.engine.version)
        while (content := self._content(self._known[1] + 1)) is not None:
            self._step(content)
        return self._known[0]

    def _check_pairing(self) -> None:
        """Refuse what is not the question, the rows and the epsilons of the entry: their difference is no noise."""
        session, losses = self._session, PerPart.of(release.about.loss for release in self._releases)
        request = Request(self._question.words, self._question.identity_text(), self._sets, losses)
        if session.fingerprint(request) != session.ledger.fingerprint(self._entry):
            raise QuestionError(
                f"cannot refine {self._question.words}: ledger entry {self._entry} is of another question."
            )

    def _content(self, step: int) -> str | None:
        """Return what the refinement of this number was written for, if there is one."""
        return self._session.ledger.question_json(self._session.dataset, self._session.analyst, self._key(step))

    def _step(self, content: str) -> list[ChainLevel]:
        """Write the next refinement, or take in the one that stands there with the same content."""
        assert self._known is not None
        session, question = self._session, self._question
        levels, steps = self._known
        wanted = _parsed(content)
        parts = list(wanted)
        every = len(parts) == len(self._sets)  # in rising order, as `_parsed` has them
        sets = self._sets if every else self._sets.divide(Keep(tuple(parts)))
        records = session.domain.rows_per_person
        after, before = PerPart.of(wanted.values()), PerPart.of(levels[part].loss for part in parts)
        mechanisms = before.combine(self._finer, after)
        fresh = isinstance(mechanisms[0], IntegerGaussian)
        released = np.array([levels[part].value for part in parts])
        request = Request(
            f"refine {question.words} to {listed(after.map(session.unit.epsilon))}",
            content,  # the key is the kernel's own: this is all there is to know to finish it
            sets,
            mechanisms.map(lambda mechanism: session.unit.of_person(session.unit.loss(mechanism), records)),
            self._key(steps + 1),
            self._drawn,
        )

        def noisy_answer() -> list[Any]:
            exact_values = np.asarray(question.exact(session.engine, sets.rows, session.domain))
            return release_all(mechanisms, exact_values if fresh else Paired(exact_values, released), session.entropy)

        values, private, entry = session.answer(request, noisy_answer)
        assert entry is not None
        known = list(levels)
        for (part, loss), value in zip(wanted.items(), values, strict=True):
            if fresh:
                share = float(levels[part].loss / loss)
                value = (share * np.asarray(levels[part].value) + (1 - share) * np.asarray(value)).tolist()
            known[part] = ChainLevel(loss, value, entry, private and levels[part].private)
        self._known = known, steps + 1  # at once: an interrupt must not leave half a step
        return known


def _missing(levels: Sequence[ChainLevel], parts: Sequence[int], losses: PerPart[Fraction]) -> dict[int, Fraction]:
    """Return the parts that were not released for this loss yet."""
    missing: dict[int, Fraction] = {}
    known = PerPart.of(levels[part].loss for part in parts)
    finer = losses.combine(lambda wanted, now: wanted if wanted > now else None, known)
    for part, loss in zip(parts, finer, strict=True):
        if loss is not None and loss > missing.get(part, Fraction(0)):
            missing[part] = loss
    return missing


def _written(wanted: Mapping[int, Fraction]) -> str:
    """Return which parts are refined, and how far, as text: all that it takes to finish what was begun."""
    parts: dict[str, list[int]] = {}
    texts = PerPart.of(wanted.values()).map(str)
    for part, text in sorted(zip(wanted, texts, strict=True)):
        parts.setdefault(text, []).append(part)
    return json.dumps({"refined": parts}, separators=(",", ":"))


def _parsed(content: str) -> dict[int, Fraction]:
    wanted: dict[int, Fraction] = {}
    for text, parts in json.loads(content)["refined"].items():
        wanted.update(dict.fromkeys(parts, Fraction(text)))
    return dict(sorted(wanted.items()))
