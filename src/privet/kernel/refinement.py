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
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from privet.errors import KeyReused, QuestionError
from privet.kernel.accounting import as_epsilons
from privet.kernel.domain import Domain
from privet.kernel.mechanisms import IntegerLaplace, Paired, Refinement, release_all
from privet.kernel.per_part import PerPart
from privet.kernel.rows import Keep
from privet.kernel.session import Question, Request, RowSets, Session, listed
from privet.release import About, Refinable


class ChainLevel(NamedTuple):
    """What a part has at one epsilon: a value as it is stored, its entry, and whether all noise so far was real."""

    epsilon: Fraction
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
        self._own = releases[0]._chain  # what refined releases are refined by
        self._lock = threading.Lock()
        self._drawn: str | None = None  # the opening that its record names
        # what was read of the record: the last level of each part, after so many refinements
        self._known: tuple[list[ChainLevel], int] | None = None

    def refined(self, parts: Sequence[int], epsilon: object) -> list[Any]:
        """Return releases of some parts, each with at least this epsilon: one for all, or one for each."""
        levels = self.levels(parts, as_epsilons(epsilon, len(parts)))
        releases = refined_releases(self._question, self._session.domain, self._sensitivity, parts, levels)
        for part, release in zip(parts, releases, strict=True):
            release._chain, release._part = self._own, part
        return releases

    def levels(self, parts: Sequence[int], epsilons: PerPart[Fraction]) -> list[ChainLevel]:
        """Refine some parts to at least these epsilons; return what each then has, in plain values."""
        with self._lock:
            levels = self._read()
            while wanted := _missing(levels, parts, epsilons):
                try:
                    levels = self._step(_written(wanted))
                except KeyReused:  # another refinement came between
                    levels = self._read()
        return [levels[part] for part in parts]

    @property
    def _sensitivity(self) -> int:
        return self._releases[0].noise.sensitivity

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
            self._known = [ChainLevel(release.epsilon, value, self._entry, private) for release, value in values], 0
        session.check_drawn(f"refine {self._question.words}", self._drawn, session.engine.version)
        while (content := self._content(self._known[1] + 1)) is not None:
            self._step(content)
        return self._known[0]

    def _check_pairing(self) -> None:
        """Refuse what is not the question, the rows and the epsilons of the entry: their difference is no noise."""
        session, losses = self._session, PerPart.of(release.epsilon for release in self._releases)
        request = Request(self._question.words, self._question.identity(), self._sets, losses)
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
        after, before = PerPart.of(wanted.values()), PerPart.of(levels[part].epsilon for part in parts)
        mechanisms = before.combine(
            lambda low, high: Refinement(low / records, high / records, self._sensitivity), after
        )
        released = np.array([levels[part].value for part in parts], dtype=np.int64)
        request = Request(
            f"refine {question.words} to {listed(after)}",
            {"refinement": steps + 1, "of": self._entry},
            sets,
            mechanisms.map(lambda mechanism: mechanism.loss * records),
            self._key(steps + 1),
            content,
            self._drawn,
        )

        def noisy_answer() -> list[Any]:
            exact_values = np.asarray(question.exact(session.engine, sets.rows, session.domain))
            return release_all(mechanisms, Paired(exact_values, released), session.entropy)

        values, private, entry = session.answer(request, noisy_answer)
        assert entry is not None
        known = list(levels)
        for (part, epsilon), value in zip(wanted.items(), values, strict=True):
            known[part] = ChainLevel(epsilon, value, entry, private and levels[part].private)
        self._known = known, steps + 1  # at once: an interrupt must not leave half a step
        return known


def refined_releases(
    question: Question[Any], domain: Domain, sensitivity: int, parts: Sequence[int], levels: Sequence[ChainLevel]
) -> list[Any]:
    """Return the releases of some parts from what each has: public values alone."""

    def note(epsilon: Fraction, entry: int, private: bool) -> tuple[IntegerLaplace, About]:
        noise = IntegerLaplace(epsilon / domain.rows_per_person, sensitivity)
        return noise, About(question.words, epsilon, private, entry)

    notes = PerPart.of((level.epsilon, level.entry, level.private) for level in levels).map(lambda own: note(*own))
    return [
        question.release(level.value, noise, about, domain, part)
        for part, level, (noise, about) in zip(parts, levels, notes, strict=True)
    ]


def _missing(levels: Sequence[ChainLevel], parts: Sequence[int], epsilons: PerPart[Fraction]) -> dict[int, Fraction]:
    """Return the parts that were not released at this epsilon yet."""
    missing: dict[int, Fraction] = {}
    known = PerPart.of(levels[part].epsilon for part in parts)
    finer = epsilons.combine(lambda wanted, now: wanted if wanted > now else None, known)
    for part, epsilon in zip(parts, finer, strict=True):
        if epsilon is not None and epsilon > missing.get(part, Fraction(0)):
            missing[part] = epsilon
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
