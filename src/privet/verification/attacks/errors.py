"""Attacks on everything that is said beside the answers: errors, refusals, prices and the time it takes."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pandas as pd

from privet.errors import PrivetError
from privet.kernel import Domain
from privet.verification.attacks.planted import (
    CANARY,
    EXACT,
    LARGE,
    LITTLE,
    SMALL,
    Ask,
    cost,
    joined,
    lines,
    narrowest,
    questions,
    refused,
    rows,
)
from privet.verification.attacks.result import AsFarAsTested, Undecided
from privet.verification.attacks.steps import steps, stopped_late
from privet.verification.layer import SURE, Layer

# Values that some engine, reader or cast has stumbled over.
NASTY: tuple[object, ...] = (
    CANARY,
    "",
    None,
    "9" * 5000,
    "1e99999999999999999999",
    '"',
    "a\nb",
    "\r",
    "1,5",
    "a\0b",
    "1" * 20_000,
    "\x01\x1a\x1b\x7f\u202e\ufeff",
    "\u00a05",
    "'); DROP TABLE coded; --",
    "\u0661\u0662",
    "0x10",
    "1/0",
    "-1",
    "inf",
    "NaN",
)
HIDDEN = "undeclared-93b1"  # a column that the domain does not know
WIDE = (10**30, -(10**30), 2**63, 0)  # beyond the usual types of an engine


# -- 5 ------------------------------------------------------------------------------------------


def data_dependent_errors(layer: Layer) -> list[str]:
    """Put rows into the table that no cast can read: an error that only they cause tells that they are there."""
    found = []
    for domain in (SMALL, layer.live(budget=LARGE).domain):
        nasty = joined(rows(domain), *([value] * len(domain.columns) for value in NASTY))
        with layer.open(nasty.assign(**{HIDDEN: CANARY}), domain, budget=LARGE) as table:
            for name, ask in questions(domain).items():
                found += _fails(name, ask, table)
            found += _speaks(table)
    wide = joined(rows(SMALL, 5), *(["clerk", value, "no"] for value in WIDE))
    with layer.open(wide, SMALL, budget=LARGE) as table:
        if not 5 <= table.count(EXACT) <= len(wide):
            found.append("a number beyond all types takes other rows with it.")
        found += _fails("sum", lambda each: each.sum("wage", LITTLE), table)
    return list(dict.fromkeys(found))


def _fails(name: str, ask: Ask, table: Any) -> list[str]:
    """Whether rows that cannot be read make a question fail, and whether its error quotes them."""
    try:
        ask(table)
    except Exception as error:
        quotes = " and quotes the row" if CANARY in _everything_of(error) else ""
        return [f"a row that cannot be read makes {name} fail with {type(error).__name__}{quotes}."]
    return []


def _everything_of(error: BaseException) -> str:
    """All that a person could read from an exception."""
    notes = getattr(error, "__notes__", "")
    return f"{error!r} {vars(error)} {notes} {''.join(traceback.format_exception(error))}"


def _speaks(table: Any) -> list[str]:
    """Whether a column that nobody declared is answered, or refused in other words than one that is not there."""
    found, words = [], []
    for name in (HIDDEN, "nowhere-93b1"):
        for ask in _ABOUT_COLUMN:
            try:
                ask(table, name)
                found.append("a column that nobody declared is answered.")
            except Exception as error:
                words.append(f"{type(error).__name__}: {error}".replace(name, "*"))
                if error.__cause__ is not None or error.__context__ is not None:
                    found.append("a refusal carries another error with it.")
    if words[: len(words) // 2] != words[len(words) // 2 :]:
        found.append("a column that is there is refused in other words than one that is not.")
    return found


_ABOUT_COLUMN: tuple[Callable[[Any, str], object], ...] = (
    lambda table, name: table.histogram(name, epsilon=LITTLE),
    lambda table, name: table.where({name: "x"}),
    lambda table, name: table.partition(name),
    lambda table, name: table.sum(name, LITTLE),
)


# -- 7 ------------------------------------------------------------------------------------------


_REFUSED: tuple[Ask, ...] = (  # too dear, and not well formed
    lambda table: table.allot(LITTLE).count(2 * LITTLE),
    lambda table: table.sum(CANARY, LITTLE),
)


def budget_as_a_channel(layer: Layer) -> list[str]:
    """Compare what the same questions cost on different rows (Haeberlen), and what refusals and failures cost."""
    live = layer.live(budget=LARGE)
    domain = live.domain
    seen = [_spending(live, domain)]
    refusals = []
    for frame in _neighbours(domain):
        with layer.open(frame, domain, budget=LARGE) as table:
            seen.append(_spending(table, domain))
            refusals.append(_refusals(table, domain))
    found = []
    if any(each != seen[0] for each in seen):
        found.append("what questions cost depends on the rows.")
    if any(each != refusals[0] for each in refusals):
        found.append("the words of a refusal depend on the rows.")
    with layer.open(rows(SMALL), SMALL, budget=1) as table:
        found += _free_refusals(table) + _free_failures(table)
    return found


def _neighbours(domain: Domain) -> list[pd.DataFrame]:
    """Rows, two more of which one fits no cell, and none."""
    plain = rows(domain)
    return [plain, joined(plain, plain.iloc[0].tolist(), [CANARY] * len(domain.columns)), plain.iloc[:0]]


def _spending(table: Any, domain: Domain) -> list[tuple[Any, ...]]:
    before = len(table.budget.entries)
    for ask in questions(domain).values():
        ask(table)
    return lines(table, before)


def _refusals(table: Any, domain: Domain) -> list[tuple[str, str]]:
    column = narrowest(domain)
    asks: list[Ask] = [
        *_REFUSED,
        lambda each: each.allot(LITTLE).where({column.name: column.labels[0]}).count(1),
        lambda each: each.allot(LITTLE).partition(column.name).count(1),
        lambda each: each.where({column.name: CANARY}),
    ]
    said = []
    for ask in asks:
        try:
            ask(table)
        except PrivetError as error:
            said.append((type(error).__name__, str(error)))
        else:
            said.append(("answered", ""))
    return said


def _free_refusals(table: Any) -> list[str]:
    """A refused question must be as if it had never been asked."""
    before = table.budget.spent
    taken = [refused(table, ask) for ask in _REFUSED]
    return (
        []
        if all(taken) and table.budget.spent == before
        else ["a question that must be refused is answered or charged."]
    )


def _free_failures(table: Any) -> list[str]:
    """A question that is stopped when its answer is nearly there must be paid: else failing is a free bit."""
    paid = [cost(table, stopped_late(table, lambda each: each.count(LITTLE), share)) for share in (90, 99)]
    return [] if min(paid) >= LITTLE else ["a question that was interrupted costs nothing."]


# -- 11 -----------------------------------------------------------------------------------------


def timing(layer: Layer) -> list[str]:
    """Ask about neighbours, one with a row that is much work, and compare the times of answers.

    Where nothing hides these the steps of questions are counted, and what the steps take is not looked at.
    """
    domain = layer.live(budget=LARGE).domain
    plain = rows(domain)
    heavy = ["9" * 20_000] * len(domain.columns)
    neighbour = joined(plain, plain.iloc[0].tolist(), heavy)
    if (clocked := layer.clock(plain, neighbour, domain)) is not None:
        if clocked.unlike < SURE:
            return ["how long an answer takes depends on one row."]
        if clocked.shown >= clocked.tick:
            raise Undecided("this machine is too busy to see what is shorter than a tick; run it again.")
        raise AsFarAsTested(
            "answers leave at ticks, and those about neighbours by one heavy row are not told apart by their times "
            f"(Mann-Whitney p = {clocked.unlike:.2g}), where {clocked.shown * 1000:.1f} ms between them would have "
            f"been; ticks here are {clocked.tick * 1000:.0f} ms. What takes longer than one leaves at a later one."
        )
    seen = []
    for frame in (plain, neighbour):
        seen.append([_course(layer, frame, domain, ask) for ask in _steady(domain)])
    if seen[0] != seen[1]:
        return ["how much is done for an answer, or a refusal, depends on one row."]
    raise Undecided(
        "every count, sum, histogram and refusal takes the same steps and the same charges whatever the rows are; how "
        "long a step takes, and how many a choice or a quantile takes, is not hidden."
    )


def _steady(domain: Domain) -> list[Ask]:
    """Questions whose course should depend on nothing; how often a choice flips its coin depends on the scores."""
    asks = questions(domain)
    steady = ("count", "where", "histogram", "parts", "sum", "mean", "threshold")
    return [*(asks[name] for name in steady if name in asks), *_REFUSED]


def _course(layer: Layer, frame: pd.DataFrame, domain: Domain, ask: Ask) -> tuple[int, int]:
    """The steps and the entries of a question; the second time, when everything it needs once is there."""
    with layer.open(frame, domain, budget=LARGE, seed=1) as table:  # the same noise takes the same steps
        for _ in range(2):
            taken = steps(table, lambda each: refused(each, ask))
        return taken, len(table.budget.entries)
