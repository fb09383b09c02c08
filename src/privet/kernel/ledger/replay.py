"""Holds a ledger against itself: every line must follow from those before it.

The log is read once, at the opening of a ledger. A charge looks at the last totals alone,
which is right only if each total is the one before it plus a loss: that is checked here, and
with it numbers, caps, reservations, answers, and the tables beside the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import gcd

from privet.kernel.canonical import Json
from privet.kernel.ledger.log import Line, Log
from privet.kernel.ledger.terms import EPSILON, RHO, Terms


def check(log: Log) -> None:
    """Read the whole log. ValueError, or another error of reading, where anything does not follow."""
    replay = _Replay()
    for line in log.every_line():
        replay.take(line)
    names, sources = log.analysts(), log.sources()
    _require(replay.analysts == set(names))
    _require(replay.sources == {identity: dataset for identity, dataset, _ in sources})
    _require(len(sources) == len({source for *_, source in sources}))
    open_holds = {hold: dataset for hold, (dataset, _, _) in replay.holds.items() if hold not in replay.ended}
    _require(open_holds == log.every_open_hold())


def _require(sound: bool) -> None:
    if not sound:
        raise ValueError("the ledger does not add up")


class _Total:
    """A sum of losses. Fractions would do, but take four times as long."""

    __slots__ = ("denominator", "numerator")

    def __init__(self) -> None:
        self.numerator, self.denominator = 0, 1

    def add(self, loss: Fraction) -> str:
        """Add a loss; the sum as a charge says it."""
        numerator = self.numerator * loss.denominator + loss.numerator * self.denominator
        denominator = self.denominator * loss.denominator
        common = gcd(numerator, denominator)
        self.numerator, self.denominator = numerator // common, denominator // common
        return str(self.numerator) if self.denominator == 1 else f"{self.numerator}/{self.denominator}"


class _Replay:
    """What the lines so far say."""

    def __init__(self) -> None:
        self.analysts: set[str] = set()
        self.sources: dict[str, str] = {}  # data sets by the ids of their sources
        self.holds: dict[int, tuple[str, str, Fraction]] = {}  # data set, analyst, what is held
        self.ended: set[int] = set()
        self._lines = 0
        self._serials: dict[str, int] = {}
        self._terms: dict[str, Terms] = {}
        self._in_charges: dict[str, dict[str, Json]] = {}  # what charges repeat of the terms
        self._caps: dict[tuple[str, str | None], str] = {}
        self._totals: defaultdict[tuple[str, str | None], _Total] = defaultdict(_Total)
        self._entries: list[tuple[str, str]] = []  # data set and analyst of each
        self._answered: set[int] = set()
        self._paid: dict[int, Fraction] = {}  # by holds
        self._fraction = cache(Fraction)  # losses repeat, and to read one takes longer than to add it
        self._kinds: dict[str, Callable[[Line, str, str], None]] = {
            "register": self._register,
            "source": self._source,
            "cap": self._cap,
            "charge": self._charge,
            "answer": self._answer,
            "model": self._model,
            "hold": self._hold,
            "end": self._end,
        }

    def take(self, line: Line) -> None:
        """Take in the next line."""
        kind, dataset, analyst = line.kind, line.dataset, line.analyst
        self._lines += 1
        serial = self._serials[kind] = self._serials.get(kind, 0) + 1
        _require(line.number == self._lines and line.serial == serial)
        if analyst is not None:
            self.analysts.add(analyst)
        if kind in ("key", "config"):
            _require(dataset is None or dataset in self._terms)
        else:
            _require(dataset in self._terms or kind == "register")
            self._kinds[kind](line, dataset or "", analyst or "")

    def _register(self, line: Line, dataset: str, analyst: str) -> None:
        terms, before = Terms.read(line), self._terms.get(dataset)
        _require((terms.unit == EPSILON and terms.delta is None) or (terms.unit == RHO and terms.delta is not None))
        _require(terms.rows_per_person >= 1)
        if before is not None:
            _require((terms.unit, terms.delta, terms.person) == (before.unit, before.delta, before.person))
            _require(terms.rows_per_person >= before.rows_per_person)
        self._terms[dataset], self._in_charges[dataset] = terms, terms.in_charges
        self._source(line, dataset, analyst)

    def _source(self, line: Line, dataset: str, analyst: str) -> None:
        for source in line.body["sources"]:
            _require(source not in self.sources)
            self.sources[source] = dataset

    def _cap(self, line: Line, dataset: str, analyst: str) -> None:
        _require(self._fraction(line.body["cap"]) >= 0)
        self._caps[dataset, line.analyst] = line.body["cap"]

    def _charge(self, line: Line, dataset: str, analyst: str) -> None:
        body = line.body
        loss, hold = self._fraction(body["loss"]), body.get("reservation")
        _require(
            body["dataset_spent"] == self._totals[dataset, None].add(loss)
            and body["analyst_spent"] == self._totals[dataset, analyst].add(loss)
            and body["dataset_cap"] == self._caps[dataset, None]
            and body.get("analyst_cap") == self._caps.get((dataset, analyst))
            and loss >= 0
            and analyst != ""
            and self._in_charges[dataset].items() <= body.items()
        )
        if hold is None:
            _require("reservation_spent" not in body)
        else:
            *owners, held = self.holds[hold]
            self._paid[hold] = min(self._paid.get(hold, Fraction(0)) + loss, held)
            _require(hold not in self.ended and owners == [dataset, analyst])
            _require(body["reservation_spent"] == str(self._paid[hold]))
        self._entries.append((dataset, analyst))

    def _answer(self, line: Line, dataset: str, analyst: str) -> None:
        entry = line.body["entry"]
        _require(entry not in self._answered)
        self._belongs(entry, dataset, analyst)
        self._answered.add(entry)

    def _model(self, line: Line, dataset: str, analyst: str) -> None:
        for entry in line.body["entries"]:
            self._belongs(entry, dataset, analyst)

    def _belongs(self, entry: int, dataset: str, analyst: str) -> None:
        """An entry must be the one's whose line refers to it."""
        _require(1 <= entry <= len(self._entries) and self._entries[entry - 1] == (dataset, analyst))

    def _hold(self, line: Line, dataset: str, analyst: str) -> None:
        held = self._fraction(line.body["held"])
        _require(held >= 0 and analyst != "")
        self.holds[line.serial] = dataset, analyst, held

    def _end(self, line: Line, dataset: str, analyst: str) -> None:
        hold = line.body["reservation"]
        _require(hold not in self.ended and self.holds[hold][:2] == (dataset, analyst))
        self.ended.add(hold)
