"""Check that a log follows from itself: nothing is missing, and no line says what those before it rule out.

The hashes of the lines hold against accidents and careless edits. This holds against lines
that somebody has written with hashes that fit: totals are added up again, and so are serial
numbers, caps, reservations, answers and the tables beside the log.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from functools import cache

from privet.kernel.ledger.log import EPSILON, RHO, Line, Log, Terms


def check(log: Log) -> None:
    """Read the whole log.

    Raises
    ------
    ValueError, or another error of reading
        If a line does not follow from those before it.
    """
    replay = _Replay()
    for line in log.every_line():
        replay.take(line)
    _require(replay.analysts == set(log.analyst_names()))
    sources = log.sources()
    _require(replay.sources == {identity: dataset for identity, dataset, _ in sources})
    _require(len(sources) == len({source for *_, source in sources}))
    open_holds = {hold: dataset for hold, (dataset, *_) in replay.open_holds.items()}
    _require(open_holds == dict(log.run("SELECT hold, dataset FROM open_holds").fetchall()))


def _require(sound: bool) -> None:
    if not sound:
        raise ValueError("the ledger does not add up")


class _Replay:
    """What the lines so far say."""

    def __init__(self) -> None:
        self.analysts: set[str] = set()
        self.sources: dict[str, str] = {}  # data sets by the ids of their sources
        self.open_holds: dict[int, tuple[str, str, Fraction, str | None]] = {}  # data set, analyst, held, permit
        self._lines = 0
        self._serials: defaultdict[str, int] = defaultdict(int)
        self._terms: dict[str, Terms] = {}
        self._caps: dict[tuple[str, str | None, str | None], str] = {}  # by data set, and analyst or permit
        self._totals: defaultdict[tuple[str, str | None, str | None], Fraction] = defaultdict(Fraction)
        self._entries: list[tuple[str, str]] = []  # data set and analyst of each
        self._answered: set[int] = set()
        self._paid: defaultdict[int, Fraction] = defaultdict(Fraction)  # by holds
        self._fraction = cache(Fraction)  # losses repeat, and to read one takes longer than to add it

    def take(self, line: Line) -> None:
        """Check the next line and remember what it says."""
        self._lines += 1
        self._serials[line.kind] += 1
        _require(line.number == self._lines and line.serial == self._serials[line.kind])
        if line.analyst is not None:
            self.analysts.add(line.analyst)
        served = line.kind in ("key", "config")
        _require(line.dataset in self._terms or line.kind == "register" or (served and line.dataset is None))
        body, dataset, analyst = line.body, line.dataset or "", line.analyst or ""
        match line.kind:
            case "register" | "source":
                if line.kind == "register":
                    self._register(Terms.read(line), dataset)
                for source in body["sources"]:
                    _require(source not in self.sources)
                    self.sources[source] = dataset
            case "cap":
                _require(self._fraction(body["cap"]) >= 0)
                _require(line.analyst is None or "permit" not in body)
                self._caps[dataset, line.analyst, body.get("permit")] = body["cap"]
            case "charge":
                self._charge(line, dataset, analyst)
            case "answer":
                _require(body["entry"] not in self._answered and self._belongs(body["entry"], dataset, analyst))
                self._answered.add(body["entry"])
            case "model":
                _require(all(self._belongs(entry, dataset, analyst) for entry in body["entries"]))
            case "hold":
                held = self._fraction(body["held"])
                _require(held >= 0 and analyst != "")
                self.open_holds[line.serial] = dataset, analyst, held, body.get("permit")
            case "end":
                _require(self.open_holds.pop(body["reservation"])[:2] == (dataset, analyst))
            case _:
                _require(served)

    def _register(self, terms: Terms, dataset: str) -> None:
        before = self._terms.get(dataset, terms)
        _require((terms.unit, terms.delta is None) in ((EPSILON, True), (RHO, False)))
        _require((terms.unit, terms.delta, terms.person) == (before.unit, before.delta, before.person))
        _require(terms.rows_per_person >= max(1, before.rows_per_person))
        self._terms[dataset] = terms

    def _charge(self, line: Line, dataset: str, analyst: str) -> None:
        body, loss = line.body, self._fraction(line.body["loss"])
        everybody, own, permit = (dataset, None, None), (dataset, analyst, None), (dataset, None, body.get("permit"))
        self._totals[everybody] += loss
        self._totals[own] += loss
        if "permit" in body:
            self._totals[permit] += loss
            _require(body["permit_spent"] == str(self._totals[permit]))
            _require(body.get("permit_cap") == self._caps.get(permit))
        _require(
            body["dataset_spent"] == str(self._totals[everybody])
            and body["analyst_spent"] == str(self._totals[own])
            and body["dataset_cap"] == self._caps[everybody]
            and body.get("analyst_cap") == self._caps.get(own)
            and loss >= 0
            and analyst != ""
            and self._terms[dataset].in_charges.items() <= body.items()
        )
        hold, paid = body.get("reservation"), None
        if hold is not None:
            *owners, held, under = self.open_holds[hold]
            _require((owners, under) == ([dataset, analyst], body.get("permit")))
            self._paid[hold] = min(self._paid[hold] + loss, held)
            paid = str(self._paid[hold])
        _require(body.get("reservation_spent") == paid)
        self._entries.append((dataset, analyst))

    def _belongs(self, entry: int, dataset: str, analyst: str) -> bool:
        """Return whether an entry is of the data set and analyst whose line refers to it."""
        return 1 <= entry <= len(self._entries) and self._entries[entry - 1] == (dataset, analyst)
