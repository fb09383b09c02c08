"""Attacks on what passes the boundary: words that become code, parts that overlap, groups that exist, noise again."""

from __future__ import annotations

import copy
import pickle
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from privet.errors import PrivetError
from privet.kernel import Column, Domain, race, seeded_noise
from privet.lab import worst_loss
from privet.question_text import TextQuestion
from privet.release import Public
from privet.verification.attacks.planted import (
    CANARY,
    EXACT,
    LARGE,
    LITTLE,
    SMALL,
    Ask,
    cost,
    joined,
    narrowest,
    numbers,
    refused,
    rows,
)
from privet.verification.attacks.steps import Say, in_child
from privet.verification.layer import Layer

# -- 6 ------------------------------------------------------------------------------------------

WORDS = (
    "(select count(*) from coded)",
    "1); DROP TABLE coded; --",
    "' OR 1=1 --",
    'x" OR "1"="1',
    "\\'; ATTACH 'x'",
    "1 in (select 1)",
)


def subqueries(layer: Layer) -> list[str]:
    """Write SQL where a value, a bound or a name is expected: an engine would answer it without noise."""
    table = layer.live(budget=LARGE)
    column, ordered = narrowest(table.domain), numbers(table.domain)
    before = table.budget.spent
    found = []
    for word in WORDS:
        if word in column.labels or word in table.domain.names:
            continue  # the owner declared it: here it is data
        asks = _as_value(column.name, word) | _as_name(word)
        for number in ordered[:1]:
            asks |= _as_bound(number.name, word)
        found += [f"SQL text is taken as {what}." for what, ask in asks.items() if not refused(table, ask)]
    if table.budget.spent != before:
        found.append("a refused question is charged.")
    return list(dict.fromkeys(found))


def _as_value(column: str, word: str) -> dict[str, Ask]:
    quoted = word.replace("\\", "\\\\").replace('"', '\\"')
    text = f'count where "{column}" = "{quoted}"'
    return {
        "a value": lambda table: table.where({column: word}),
        "a set of values": lambda table: table.where({column: {word}}),
        "a list of values": lambda table: table.where({column: [word]}),
        "a condition": lambda table: table.where(word),
        "an epsilon": lambda table: table.count(word),
        "a value in a question": lambda table: TextQuestion.parse(text).ask(table, str(LITTLE)),
        "a question": lambda table: TextQuestion.parse(word).ask(table, str(LITTLE)),
    }


def _as_bound(column: str, word: str) -> dict[str, Ask]:
    return {
        "a lower bound": lambda table: table.where({column: (word, None)}),
        "an upper bound": lambda table: table.where({column: (None, word)}),
        "a threshold": lambda table: table.partition((column, word)),
        "edges": lambda table: table.partition(column, edges=[word]),
        "a rank": lambda table: table.quantile(column, word, LITTLE),
    }


def _as_name(word: str) -> dict[str, Ask]:
    return {
        "a column of a condition": lambda table: table.where({word: 1}),
        "a column to split by": lambda table: table.partition(word),
        "a column to count": lambda table: table.histogram(word, epsilon=LITTLE),
        "a column to add up": lambda table: table.sum(word, LITTLE),
        "a criterion": lambda table: table.select(word, LITTLE),
        "an attribute": lambda table: table.select("max", LITTLE, attributes=[word]),
    }


# -- 9 ------------------------------------------------------------------------------------------


def partitions(layer: Layer) -> list[str]:
    """Ask parts that share records and pay as if they did not; find rows without a key in two parts or in none."""
    table = layer.live(budget=LARGE)
    found = [f"{what} cost other than what their records lose." for what in _wrong_prices(table)]
    if any(table.partition(column.name).labels != list(column.labels) for column in _some(table.domain)):
        found.append("parts are not those of the public domain.")
    frame = rows(SMALL)
    frame.loc[:9, "wage"] = None
    frame.loc[5:14, "job"] = None
    with layer.open(joined(frame, [CANARY, CANARY, "no"]), SMALL, budget=LARGE) as planted:
        splits = [
            planted.partition("wage"),
            planted.partition(("wage", 30)),
            planted.partition("job"),
            planted.partition("job").partition("wage"),
            planted.partition("wage", edges=[10, 90]).partition("job"),
        ]
        total = planted.count(EXACT)
        if any(sum(parts.count(EXACT)) != total for parts in splits):
            found.append("a row without a key lies in several parts, or in none.")
        if planted.partition("job").labels != list(SMALL["job"].labels):
            found.append("parts are named after values of rows.")
    return found


def _wrong_prices(table: Any) -> list[str]:
    """Ways to see a record more than once, each with the number of times it must be paid."""
    column, label = narrowest(table.domain).name, narrowest(table.domain).labels[0]

    def overlapping(each: Any) -> None:
        for _ in range(2):
            each.where({column: label}).count(LITTLE)

    def part_then_table(each: Any) -> None:
        each.partition(column)[0].count(LITTLE)
        each.count(LITTLE)

    def table_then_part(each: Any) -> None:
        each.count(LITTLE)
        each.partition(column)[0].count(LITTLE)

    def two_partitions(each: Any) -> None:
        for part in (0, -1):
            each.partition(column)[part].count(LITTLE)

    def nested(each: Any) -> None:
        parts = each.partition(column)
        parts.count(LITTLE)
        parts[0].partition(column).count(2 * LITTLE)

    def siblings(each: Any) -> None:
        parts = each.partition(column)
        parts.count([LITTLE] * (len(parts) - 1) + [3 * LITTLE])

    prices: dict[str, tuple[int, Ask]] = {
        "conditions that overlap": (2, overlapping),
        "a part and then its table": (2, part_then_table),
        "a table and then a part of it": (2, table_then_part),
        "parts of two partitions": (2, two_partitions),
        "parts of a part": (3, nested),
        "parts with different epsilons": (3, siblings),
    }
    return [what for what, (times, ask) in prices.items() if cost(table, ask) != times * LITTLE]


def _some(domain: Domain) -> list[Column]:
    """The narrowest columns: enough of them, and quick on any domain."""
    return sorted(domain, key=lambda column: column.size)[:8]


# -- 10 -----------------------------------------------------------------------------------------

_run: list[str] = []


def _spring() -> bool:
    """What hidden code would do: leave a trace."""
    _run.append("code")
    return True


class Trap:
    """Code in disguise: it runs when it is called, or when it is read as a pickle."""

    def __call__(self, *_: object) -> bool:
        return _spring()

    def __reduce__(self) -> Any:
        return _spring, ()


def foreign_code(layer: Layer) -> list[str]:
    """Send a function, a pickle or a mask where words are expected, and try to take the table itself along."""
    table = layer.live(budget=LARGE)
    before = table.budget.spent
    _run.clear()
    found = []
    for what, thing in (
        ("a function", Trap()),
        ("a pickle", pickle.dumps(Trap())),
        ("a mask", np.array([True, False])),
        ("a generator", (each for each in (True, False))),
    ):
        asks = _as_anything(narrowest(table.domain).name, thing)
        found += [f"{what} is taken as {where}." for where, ask in asks.items() if not refused(table, ask)]
    if _run:
        found.append("code that an analyst sent was run.")
    if table.budget.spent != before:
        found.append("a refused question is charged.")
    return found + _taken_along(layer)


def _as_anything(column: str, thing: Any) -> dict[str, Ask]:
    return {
        "a condition": lambda table: table.where(thing),
        "a value": lambda table: table.where({column: thing}),
        "a split": lambda table: table.partition(thing),
        "a column": lambda table: table.histogram(thing, epsilon=LITTLE),
        "a criterion": lambda table: table.select(thing, LITTLE),
        "an epsilon": lambda table: table.count(thing),
        "a key": lambda table: table.count(LITTLE, key=thing),
    }


def _taken_along(layer: Layer) -> list[str]:
    """A pickle or a listing with rows in it, or a copy with a budget of its own."""
    carry: dict[str, Callable[[Any], bytes]] = {
        "pickled": pickle.dumps,
        "listed": lambda each: repr(list(each)).encode(),
    }
    copies: tuple[Callable[[Any], Any], ...] = (copy.copy, copy.deepcopy)
    found = []
    with layer.open(joined(rows(SMALL), [CANARY, 7, "no"]), SMALL, budget=LARGE) as table:
        for what, take in carry.items():
            with suppress(Exception):  # in whatever way it is refused
                if CANARY.encode() in take(table):
                    found.append(f"rows leave with a table that is {what}.")
        for twin_of in copies:
            with suppress(Exception):
                before = table.budget.spent
                twin_of(table).count(LITTLE)
                if table.budget.spent == before:
                    found.append("a copy of a table has a budget of its own.")
    return found


# -- 13 -----------------------------------------------------------------------------------------


def group_existence(layer: Layer) -> list[str]:
    """Look for cells that appear only where somebody is in them."""
    live = layer.live(budget=LARGE)
    found = _missing_cells(live, live.domain)
    for frame in (rows(SMALL).iloc[:0], rows(SMALL).assign(job="clerk", ill="no")):
        with layer.open(frame, SMALL, budget=LARGE) as table:
            found += _missing_cells(table, SMALL)
            cells = np.concatenate(
                [np.asarray(table.histogram("job", "ill", epsilon=LITTLE)).ravel() for _ in range(8)]
            )
            if np.count_nonzero(cells) < len(cells) / 2:
                found.append("empty cells have no noise.")
    return list(dict.fromkeys(found))


def _missing_cells(table: Any, domain: Domain) -> list[str]:
    found = []
    for column in _some(domain):
        cells = table.histogram(column.name, epsilon=LITTLE)
        if tuple(cells.labels) != (column.labels,) or np.asarray(cells).shape != (column.size,):
            found.append("a histogram has other cells than the public domain.")
        if len(table.partition(column.name).count(LITTLE)) != column.size:
            found.append("a partition has other parts than the public domain.")
    return found


# -- 14 -----------------------------------------------------------------------------------------


def randomness(layer: Layer) -> list[str]:
    """Make noise come again: by a seed, or in two copies of one process. Two answers with it show the exact one."""
    found = _seeded_by_anyone(layer) + _seeded_for_tests(layer)
    return found or _forked(layer)


def _seeded_by_anyone(layer: Layer) -> list[str]:
    table = layer.live(budget=LARGE)
    mine, numpys = random.getstate(), np.random.get_state()
    drawn = []
    try:
        for _ in range(2):
            random.seed(1)
            np.random.seed(1)
            drawn.append(_draws(table))
    finally:
        random.setstate(mine)
        np.random.set_state(numpys)
    return ["whoever sets a seed gets the same noise again."] if drawn[0] == drawn[1] else []


def _draws(table: Any) -> list[int]:
    return [int(table.count(LITTLE)) for _ in range(6)]


def _seeded_for_tests(layer: Layer) -> list[str]:
    """Noise that can be repeated is for tables that tests open: it must reach no other, and its answers must say so."""
    found = []
    with layer.open(rows(SMALL), SMALL, budget=LARGE) as table:
        drawn = []
        for _ in range(2):
            with seeded_noise(1):
                drawn.append(_draws(table))
        if drawn[0] == drawn[1]:
            found.append("a seed for tests gives the noise of a table that was opened before it.")
    again, passing = [], []
    for _ in range(2):
        with layer.open(rows(SMALL), SMALL, budget=LARGE, seed=1) as table:
            again.append(_draws(table))
            answers = [table.count(LITTLE, key="seeded") for _ in range(2)]  # the second is read from the ledger
            passing += [getattr(each, "private", True) for each in answers]
    if again[0] == again[1] and any(passing):
        found.append("an answer with noise from a seed passes for a private one.")
    return found


# -- 18 -----------------------------------------------------------------------------------------


def hatches(layer: Layer) -> list[str]:
    """Turn what is made for tests on a table with a durable ledger: noise from a seed, and the list of all outcomes."""
    found = []
    with tempfile.TemporaryDirectory(prefix="privet-attacks-") as folder:
        with layer.open(rows(SMALL), SMALL, budget=LARGE, ledger=Path(folder, "ledger")) as table:
            if _repeats(lambda: _draws(table)):
                found.append("a seed for tests reaches a table that was opened before it.")
            if _enumerates(table):
                found.append("the outcomes of an open table can be listed, and with them its exact counts.")
            if _enumerates_in_a_race(table):
                found.append("a candidate of a race can list the outcomes of its table, and with them exact counts.")

        def opened() -> list[int]:
            with layer.open(rows(SMALL), SMALL, budget=LARGE, ledger=Path(folder, "seeded")) as table:
                return _draws(table)

        if _repeats(opened):
            found.append("a table with a durable ledger can be opened with a seed for tests.")
    return found


def _repeats(draw: Callable[[], list[int]]) -> bool:
    """Whether a seed for tests gives the same answers twice; where it is refused it does not."""
    drawn = []
    for _ in range(2):
        with suppress(PrivetError), seeded_noise(1):
            drawn.append(draw())
    return len(drawn) == 2 and drawn[0] == drawn[1]


def _enumerates(table: Any) -> bool:
    """Whether `worst_loss` takes a table that is open, in the place of rows that the caller made."""
    enumerate_outcomes: Any = worst_loss
    for domain in ((), (SMALL,)):
        with suppress(Exception):  # in whatever way it is refused
            return bool(enumerate_outcomes(lambda each: int(each.count("1e-9")), table, table, *domain).outcomes)
    return False


def _enumerates_in_a_race(table: Any) -> bool:
    told = []

    def candidate(shadow: Any) -> tuple[int, Any]:
        told.append(_enumerates(shadow))
        return 0, Public(0)

    with suppress(Exception):  # a table on the other side of a server runs no race
        race(table, [candidate], LITTLE)
    return any(told)


def _forked(layer: Layer) -> list[str]:
    """Copies of a process start with the same memory: noise that is drawn from it is the same in both."""
    frame = rows(SMALL)
    found = []
    with tempfile.TemporaryDirectory(prefix="privet-attacks-") as folder:

        def anew(say: Say) -> None:
            with layer.open(frame, SMALL, budget=LARGE) as own:
                say(_draws(own))

        drawn = [in_child(anew, Path(folder)) for _ in range(2)]
        if not all(drawn):
            found.append("a forked process cannot open a table.")
        elif drawn[0] == drawn[1]:
            found.append("two forked processes draw the same noise.")
        with layer.open(frame, SMALL, budget=LARGE, ledger=Path(folder, "ledger")) as table:

            def inherited(say: Say) -> None:
                with suppress(Exception):  # a copy may be refused, in whatever way
                    say(_draws(table))

            answered = [each for each in (in_child(inherited, Path(folder)) for _ in range(2)) if each]
            if len(answered) == 2 and answered[0] == answered[1]:
                found.append("two copies of an open table draw the same noise.")
            if table.budget.spent < 6 * len(answered) * LITTLE:
                found.append("a forked copy of an open table answers for nothing.")
    return found
