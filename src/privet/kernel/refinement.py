"""Gradual release: an answer that is refined later, for the difference in epsilon.

All that was released from one question forms a chain of levels for each part, every level
drawn from the one before it (`Refinement`): together they lose what the last one loses. That
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privet.errors import KeyReused
from privet.kernel.accounting import Scope
from privet.kernel.mechanisms import IntegerLaplace, Refinement
from privet.kernel.release import About, Refinable
from privet.kernel.rows import Rows
from privet.kernel.sampling import Entropy, Integers
from privet.kernel.session import Asked, Session, listed


class Level(NamedTuple):
    """What a part has at one epsilon: a value as it is stored, its entry, and whether all noise so far was real."""

    epsilon: Fraction
    value: Any
    entry: int
    private: bool


@dataclass(frozen=True)
class Question:
    """What is needed to ask a question once more of some of its parts."""

    text: str
    rows: Rows
    scopes: Sequence[Scope]
    paths: Sequence[str]
    sensitivity: int
    answer: Callable[[Rows, Sequence[Any]], list[Any]]  # noisy values of rows, by one mechanism for each part
    release: Callable[[Any, IntegerLaplace, About], Any]  # what an analyst gets: a value, its noise, what it is about

    def keep(self, parts: Sequence[int]) -> Question:
        """The same of some parts."""
        if list(parts) == list(range(len(self.scopes))):
            return self
        scopes, paths = [self.scopes[part] for part in parts], [self.paths[part] for part in parts]
        return replace(self, rows=self.rows.keep(parts), scopes=scopes, paths=paths)


class Gradual:
    """All that was released from one question: for each part a chain of levels, of which the last is kept."""

    def __init__(self, session: Session, question: Question, entry: int, epsilons: Sequence[Fraction]) -> None:
        self._session = session
        self._question = question
        self._entry = entry
        self._epsilons = epsilons
        self._lock = threading.Lock()
        self._drawn: str | None = None  # where: in the opening that its record names
        # what was read of the record: the last level of each part, after so many refinements
        self._known: tuple[list[Level], int] | None = None

    def attach(self, releases: Sequence[Refinable]) -> None:
        """Let these releases, one for each part, be refined."""
        for part, release in enumerate(releases):
            release._refiner, release._part = self, part

    def refined(self, parts: Sequence[int], epsilons: Sequence[Fraction]) -> list[Any]:
        """Releases of some parts, each with at least this epsilon."""
        with self._lock:
            levels = self._read()
            while wanted := _missing(levels, parts, epsilons):
                try:
                    levels = self._step(_written(wanted))
                except KeyReused:  # another refinement came between
                    levels = self._read()
        notes: dict[tuple[int, int, bool], tuple[IntegerLaplace, About]] = {}
        releases = []
        for part in parts:
            level = levels[part]
            name = id(level.epsilon), level.entry, level.private
            if name not in notes:
                notes[name] = self._note(level)
            release = self._question.release(level.value, *notes[name])
            release._refiner, release._part = self, part
            releases.append(release)
        return releases

    def _note(self, level: Level) -> tuple[IntegerLaplace, About]:
        noise = IntegerLaplace(level.epsilon / self._session.domain.rows_per_person, self._question.sensitivity)
        return noise, About(self._question.text, level.epsilon, level.private, level.entry)

    # -- the record in the ledger -------------------------------------------------------------

    def _key(self, step: int) -> str:
        """Of a refinement. Analysts write printable keys only, so it is none of theirs."""
        return f"\x1frefinement {step} of {self._entry}"

    def _read(self) -> list[Level]:
        """Take in all refinements in the ledger; one without an answer is finished, for it is paid.

        Only where the first answer was drawn: the rows are the same, and nobody else has added to the record.
        """
        ledger = self._session.ledger
        if self._known is None:
            first = json.loads(ledger.answer(self._entry))
            private = bool(first["private"]) and self._session.public is None
            values = zip(self._epsilons, first["answer"], strict=True)
            self._drawn = first.get("opening")
            self._known = [Level(epsilon, value, self._entry, private) for epsilon, value in values], 0
        self._session.check_drawn(f"refine {self._question.text}", self._drawn, self._session.engine.version)
        dataset, analyst = self._session.dataset, self._session.analyst
        while (content := ledger.fingerprint(dataset, analyst, self._key(self._known[1] + 1))) is not None:
            self._step(content)
        return self._known[0]

    def _step(self, content: str) -> list[Level]:
        """Write the next refinement, or take in the one that stands there with the same content."""
        assert self._known is not None
        levels, steps = self._known
        wanted = _parsed(content)
        question = self._question.keep(list(wanted))
        before = [levels[part] for part in wanted]
        together = _Together(before, list(wanted.values()), question.sensitivity, self._session.domain.rows_per_person)
        scope = question.paths[0] if len(wanted) == 1 else f"{len(wanted)} parts, first {question.paths[0]}"
        asked = Asked(
            f"refine {question.text} to {listed(wanted.values())}",
            (),
            question.rows,
            question.scopes,
            scope,
            together.losses,
            self._key(steps + 1),
            content,
            self._drawn,
        )
        values, private, entry = self._session.ask(
            asked, lambda: question.answer(question.rows, [together] * len(wanted))
        )
        after = list(levels)
        for (part, epsilon), value in zip(wanted.items(), values, strict=True):
            after[part] = Level(epsilon, value, entry, private and levels[part].private)
        self._known = after, steps + 1  # at once: an interrupt must not leave half a step
        return after


class _Together:
    """The refinements of several parts as one mechanism: parts that take the same step are drawn in one batch."""

    def __init__(
        self, before: Sequence[Level], epsilons: Sequence[Fraction], sensitivity: int, rows_per_person: int
    ) -> None:
        self._released = np.array([level.value for level in before], dtype=np.int64)
        self.losses: list[Fraction] = []  # of a person: each record of theirs loses what its mechanism says
        # by the identity of fractions: equal ones mostly are one
        self._batches: dict[tuple[int, int], tuple[Refinement, Fraction, list[int]]] = {}
        for place, (level, epsilon) in enumerate(zip(before, epsilons, strict=True)):
            name = id(level.epsilon), id(epsilon)
            if name not in self._batches:
                step = Refinement(level.epsilon / rows_per_person, epsilon / rows_per_person, sensitivity)
                self._batches[name] = step, step.loss * rows_per_person, []
            _, loss, places = self._batches[name]
            places.append(place)
            self.losses.append(loss)

    def release(self, exact_values: NDArray[Any], entropy: Entropy) -> Integers:
        exact = np.asarray(exact_values)
        refined = np.empty(exact.shape, dtype=np.int64)
        for step, _, places in self._batches.values():
            refined[places] = step.release(exact[places], self._released[places], entropy)
        return refined


def _missing(levels: Sequence[Level], parts: Sequence[int], epsilons: Sequence[Fraction]) -> dict[int, Fraction]:
    """The parts that are not known so finely yet."""
    missing: dict[int, Fraction] = {}
    finer: dict[tuple[int, int], bool] = {}  # by identity: comparing fractions of all parts is most of the time
    for part, epsilon in zip(parts, epsilons, strict=True):
        now = missing.get(part, levels[part].epsilon)
        name = id(epsilon), id(now)
        if name not in finer:
            finer[name] = epsilon > now
        if finer[name]:
            missing[part] = epsilon
    return missing


def _written(wanted: Mapping[int, Fraction]) -> str:
    """Which parts are refined, and how far: all that it takes to finish a refinement that was begun."""
    parts: dict[str, list[int]] = {}
    distinct = {id(epsilon): epsilon for epsilon in wanted.values()}
    texts = {each: str(epsilon) for each, epsilon in distinct.items()}
    for part, epsilon in sorted(wanted.items()):
        parts.setdefault(texts[id(epsilon)], []).append(part)
    return json.dumps({"refined": parts}, separators=(",", ":"))


def _parsed(content: str) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for text, parts in json.loads(content)["refined"].items():
        found.update(dict.fromkeys(parts, Fraction(text)))
    return dict(sorted(found.items()))
