"""Attacks on the record of what was spent: races, kills, retries, odd epsilons, answers asked for again."""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.errors import BudgetExceeded, PrivetError
from privet.verification.attacks.planted import LARGE, LITTLE, SMALL, Ask, cost, narrowest, questions, refused, rows
from privet.verification.attacks.steps import Changes, Say, in_child, kill, stopped_late
from privet.verification.layer import Layer

TENTH = Fraction(1, 10)
# No prices: nothing, less than nothing, no number, no end, and what rounds to nothing.
NO_PRICES: tuple[Any, ...] = (0, 0.0, -1, "-0.1", "0", math.nan, "nan", math.inf, -math.inf, "inf", 1e-320, "1e-320")
NO_PRICES += (Decimal("NaN"), Decimal("Infinity"), 10**400, True, None, b"1")
_RACERS = 8


# -- 8 ------------------------------------------------------------------------------------------


def double_spending(layer: Layer) -> list[str]:
    """Spend the same unit twice: at once, by dying, by asking again, in pieces, for nothing, or with a friend."""
    found = []
    with layer.open(rows(SMALL), SMALL, budget=1) as table:
        found += _no_prices(table) + _ten_tenths(table)
    with tempfile.TemporaryDirectory(prefix="privet-attacks-") as folder:
        with _friends(layer, Path(folder, "friends")) as friends:
            found += _colluding(*friends) + _racing(friends)
        return found or _killed(layer, Path(folder))


def _no_prices(table: Any) -> list[str]:
    asks = [_count(price) for price in NO_PRICES]
    if not all(refused(table, ask) for ask in asks):
        return ["an epsilon that is no price is answered."]
    return ["an epsilon that is no price is charged."] if table.budget.spent else []


def _count(epsilon: Any, key: str | None = None) -> Ask:
    return lambda table: table.count(epsilon, key=key)


def _ten_tenths(table: Any) -> list[str]:
    """0.1 ten times is 1: with floats it is a little less, and one question more would be free."""
    try:
        for _ in range(10):
            table.count(0.1)
    except BudgetExceeded:
        return ["ten times 0.1 is more than 1."]
    if table.budget.spent != 1 or table.budget.remaining != 0 or not refused(table, _count("1e-9")):
        return ["ten times 0.1 is less than 1."]
    return []


@contextmanager
def _friends(layer: Layer, path: Path) -> Iterator[tuple[Any, Any]]:
    """Two analysts at the same rows, whose spending is written into one ledger with a budget of 1."""
    frame = rows(SMALL)
    with (
        layer.open(frame, SMALL, budget=1, analyst="ada", ledger=path) as ada,
        layer.open(frame, SMALL, budget=1, analyst="eve", ledger=path) as eve,
    ):
        yield ada, eve


def _colluding(ada: Any, eve: Any) -> list[str]:
    """Each of two analysts has spent less than the budget of the data, together they would have spent more."""
    ada.count("0.6")
    past = not refused(eve, _count("0.6"))
    return ["two analysts together spend more than the budget of the data set."] if past else []


def _racing(friends: tuple[Any, Any]) -> list[str]:
    """Many at once ask for the last unit, through two openings of the table: one may have it."""
    refused(friends[0], _count("0.3"))  # 0.6 is spent: a tenth is left
    answered: list[object] = []
    surprises: list[Exception] = []
    start = threading.Barrier(_RACERS)

    def race(table: Any) -> None:
        start.wait()
        try:
            answered.extend([table] * (not refused(table, _count(TENTH))))
        except Exception as error:
            surprises.append(error)

    racers = [threading.Thread(target=race, args=(friends[i % 2],)) for i in range(_RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    if surprises:
        raise surprises[0]
    return ["a race for the last unit has more than one winner."] if len(answered) > 1 else []


def _killed(layer: Layer, folder: Path) -> list[str]:
    """Die at every change of the ledger's files, and after the answer is out: what was answered must be charged."""
    frame = rows(SMALL)
    record = folder / "killed"
    record.mkdir()
    path = record / "ledger"

    def victim(key: str, at: int | None) -> list[Any]:
        def work(say: Say) -> None:
            with layer.open(frame, SMALL, budget=LARGE, ledger=path) as table:
                changes = Changes(record, at)
                say(int(changes.during(lambda: table.count(LITTLE, key=key))))
                say(changes.seen)
                kill()

        return in_child(work, folder)

    with layer.open(frame, SMALL, budget=LARGE, ledger=path):
        pass  # the ledger is there before the first one dies
    said = {"0": victim("0", None)}
    if len(said["0"]) != 2:
        return ["a process of its own is not answered."]
    for change in range(1, said["0"][1] + 1):
        said[str(change)] = victim(str(change), change)
    released = {key: words[0] for key, words in said.items() if words}
    found = []
    with layer.open(frame, SMALL, budget=LARGE, ledger=path) as table:
        if table.budget.spent < len(released) * LITTLE:
            found.append("what a killed process was answered is not in the ledger.")
        again = {key: int(table.count(LITTLE, key=key)) for key in said}
        if any(again[key] != answer for key, answer in released.items()):
            found.append("the same key brings another answer after a kill.")
        if table.budget.spent != len(said) * LITTLE:
            found.append("a retry under the same key is charged again, or not at all.")
    return found


# -- 19 -----------------------------------------------------------------------------------------

TEN = 10  # rows of one person


def forgotten_spending(layer: Layer) -> list[str]:
    """Change what charges mean after they were made, or open a spent file so that nobody knows that it is spent."""
    with tempfile.TemporaryDirectory(prefix="privet-attacks-") as folder:
        return _repriced(layer, Path(folder)) + _uncounted(layer, Path(folder))


def _repriced(layer: Layer, folder: Path) -> list[str]:
    """Declare that a person has one row, pay, declare ten: what was paid for one row is lost ten times over."""
    frame = rows(SMALL)
    for number, declared in enumerate(((1, TEN), (TEN, 1, TEN))):
        path, lost = folder / f"declared{number}", Fraction(0)
        try:
            for rows_per_person in declared:
                domain = replace(SMALL, rows_per_person=rows_per_person)
                with layer.open(frame, domain, budget=1, ledger=path) as table:
                    table.count("0.3")
                    lost += Fraction(3, 10) * TEN / rows_per_person  # of a person with ten rows
        except PrivetError:
            continue
        if lost > 1:
            return ["a person's rows can be declared anew: one with ten rows has lost more than the budget."]
    return []


def _uncounted(layer: Layer, folder: Path) -> list[str]:
    """A file whose budget is spent: open it with another ledger, with none, or by another name."""
    file = layer.store(rows(SMALL), folder)
    if file is None:
        return []
    link = folder / "links" / file.name
    link.parent.mkdir()
    with layer.reopen(file, SMALL, budget=1) as table:
        table.count(1)
    try:
        os.link(file, link)
    except OSError:
        links: dict[str, tuple[Path, dict[str, Any]]] = {}
    else:
        links = {"by a hard link": (link, {}), "by a hard link beside it": (_beside(file), {})}
    ways: dict[str, tuple[Path, dict[str, Any]]] = {
        "with another ledger": (file, {"ledger": folder / "other.ledger"}),
        "with a ledger in memory": (file, {"ledger": ":memory:"}),
        "under another name of the data set": (file, {"name": "another"}),
        **links,
    }
    return [
        f"a file whose budget is spent is opened {what}, and nothing is spent there."
        for what, (path, settings) in ways.items()
        if _afresh(layer, path, settings)
    ]


def _beside(file: Path) -> Path:
    link = file.with_name(f"link{file.suffix}")
    os.link(file, link)
    return link


def _afresh(layer: Layer, file: Path, settings: dict[str, Any]) -> bool:
    """Whether a question about the file is answered."""
    try:
        with layer.reopen(file, SMALL, budget=1, **settings) as table:
            return not refused(table, _count(TENTH))
    except PrivetError:
        return False


# -- 12 -----------------------------------------------------------------------------------------


def retry_until_good(layer: Layer) -> list[str]:
    """Throw answers away until one is good: every try has its price, and so has the one after a failure."""
    table = layer.live(budget=LARGE)
    asks = questions(table.domain)
    found = []
    for what in ("count", "histogram", "parts"):
        if [cost(table, asks[what]) for _ in range(4)] != [LITTLE] * 4:
            found.append(f"the question '{what}' is not charged again when it is asked again.")
    small = table.allot(4 * LITTLE)
    if [refused(small, asks["count"]) for _ in range(5)] != [False] * 4 + [True]:
        found.append("an allotment does not end the tries.")
    failed = stopped_late(table, asks["count"], 80)
    if cost(table, failed) + cost(table, asks["count"]) != 2 * LITTLE:
        found.append("a try that failed, or the one after it, is not charged.")
    return found


# -- 15 -----------------------------------------------------------------------------------------


def result_cache(layer: Layer) -> list[str]:
    """Repeat a question: fresh noise for nothing averages away, and a stored answer is for who paid for it."""
    table = layer.live(budget=LARGE)
    column, key = narrowest(table.domain), "privet attack: result cache"
    found = []
    for ask in (_count(LITTLE), _count(LITTLE, key)):
        before = table.budget.spent
        answers = {int(ask(table)) for _ in range(10)}  # type: ignore[call-overload]
        if len(answers) > 1 and table.budget.spent - before < 10 * LITTLE:
            found.append("fresh noise can be had for nothing.")
    others: dict[str, Ask] = {
        "a larger epsilon": _count(2 * LITTLE, key),
        "other rows": lambda each: each.where({column.name: column.labels[0]}).count(LITTLE, key=key),
        "another question": lambda each: each.histogram(column.name, epsilon=LITTLE, key=key),
    }
    found += [f"a key that was paid for also opens {what}." for what, ask in others.items() if _free(table, ask)]
    return found + _stolen_key(layer)


def _free(table: Any, ask: Ask) -> bool:
    """Is a question answered without a charge?"""
    before = table.budget.spent
    return not refused(table, ask) and table.budget.spent == before


def _stolen_key(layer: Layer) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="privet-attacks-") as folder:
        with _friends(layer, Path(folder, "ledger")) as (ada, eve):
            ada.count(LITTLE, key="hers")
            stolen = _free(eve, _count(LITTLE, "hers"))
    return ["an answer can be had with someone else's key."] if stolen else []
