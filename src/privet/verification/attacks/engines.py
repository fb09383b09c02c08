"""Attacks on how an engine copes with rows: how many there are, how long they are, which types they come in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.errors import PrivetError
from privet.kernel import Column, Domain, Nominal, Numeric
from privet.verification.attacks.planted import EXACT, LARGE, SMALL, joined, rows
from privet.verification.attacks.result import Undecided
from privet.verification.layer import Layer

TINY = Fraction(1, 10**9)  # what a question costs whose answer is thrown away

# -- 16 -----------------------------------------------------------------------------------------

MANY = 200_000  # rows, each with a number of its own
LARGEST = 16_000_000  # of these numbers
MEMORY = (3_500_000, 4_000_000)  # bytes, for an engine that is asked about them
LONG = 64_000_000  # letters of one text
SHARES = (0.001, 0.25, 0.5, 1.0)  # of the rows that a question is about

_DISTINCT = Domain((Numeric("w", Fraction(0), Fraction(LARGEST), Fraction(1)), Nominal("y", ("a", "b"))), target="y")


def memory_as_a_channel(layer: Layer) -> list[str]:
    """Ask about more and more rows where memory is short, for almost nothing: whether it answers is how many there are.

    The work of a median grows with the distinct values among the rows that match. The engine gets little memory, so
    that some hundred thousand rows show in seconds what millions do otherwise. Then one row brings a long text.
    """
    return _answers_by_rows(layer) + _long_text(layer)


def _answers_by_rows(layer: Layer) -> list[str]:
    spread = LARGEST // MANY
    frame = pd.DataFrame({"w": np.arange(MANY, dtype=np.int64) * spread, "y": np.where(np.arange(MANY) % 3, "a", "b")})
    answered = []
    for memory in MEMORY:
        with layer.open(frame, _DISTINCT, budget=1, memory=memory) as table:
            answered.append({_answered(table, int(share * MANY) * spread) for share in SHARES})
    if {True, False} in answered:
        return ["whether a question is answered depends on how many rows match, for an epsilon of 1e-9."]
    if {True} not in answered:
        raise Undecided("no question is answered in so little memory, whatever the rows are.")
    return []


def _answered(table: Any, below: int) -> bool:
    try:
        table.where(w=(None, below)).median("w", TINY)
    except PrivetError:
        return False
    return True


def _long_text(layer: Layer) -> list[str]:
    """One row with a text longer than the memory that an engine gives a few columns: the table must still open."""
    frame = joined(rows(SMALL), ["z" * LONG, 7, "no"])
    try:
        with layer.open(frame, SMALL, budget=LARGE) as table:
            held = table.count(EXACT) == len(frame)
    except PrivetError:
        held = False
    return [] if held else ["one row with a long text makes the table refuse, or takes other rows with it."]


# -- 17 -----------------------------------------------------------------------------------------

TYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "Int8", "Int16", "UInt8"),
    *("float16", "float32", "float64", "Float32", "category", "object", "Sparse[int8]", "int8[pyarrow]"),
)
_CODES = (1, 2, 99)  # 99: "does not know"
_REFUSED = -99  # "does not say", for types that go below zero


def recoded_rows(layer: Layer) -> list[str]:
    """Add one person with an extreme value, in every type a column may have: all other rows must stay in their cells.

    Code that subtracts in the type of a column wraps around, and one value far from the others moves them all.
    """
    plain = [code for code in _CODES for _ in range(10)]
    people = [_typed([plain] * len(TYPES))]
    for which in range(3):
        people.append(_typed([[*plain, _extremes(name)[which]] for name in TYPES]))
    domain = Domain(tuple(_column(name) for name in people[0].columns))
    before, *after = (_cells(layer, frame, domain) for frame in people)
    moved = {
        TYPES[int(name[1:])]
        for name in before
        for cells in after
        if int(np.abs(cells[name] - before[name]).sum()) > 1  # the person who is new lies in one cell
    }
    return [
        f"one person more moves others to other cells, in a column of type {name}." for name in TYPES if name in moved
    ]


def _extremes(name: str) -> list[int]:
    """The smallest and the largest number of a type, and a number between them far from the codes."""
    plain = name.lower().removeprefix("sparse[").removesuffix("]").removesuffix("[pyarrow")
    limits = np.iinfo(plain) if "int" in plain else np.iinfo(np.int8)
    return [int(limits.min), max(_REFUSED, int(limits.min) + 1), int(limits.max)]


def _typed(columns: Sequence[list[int]]) -> pd.DataFrame:
    """A frame with a column of each type, for codes and for numbers; without types that pandas does not know here."""
    typed = {}
    for place, (name, values) in enumerate(zip(TYPES, columns, strict=True)):
        with suppress(ImportError, TypeError, ValueError):
            typed[f"c{place}"] = typed[f"n{place}"] = pd.Series(values, dtype=name)
    return pd.DataFrame(typed)


def _column(name: str) -> Column:
    if name.startswith("c"):
        return Nominal(name, _CODES, other=True)
    return Numeric(name, Fraction(0), Fraction(100), Fraction(1), bins=4)


def _cells(layer: Layer, frame: pd.DataFrame, domain: Domain) -> dict[str, NDArray[np.int64]]:
    """How many rows lie in each cell of each column."""
    with layer.open(frame, domain, budget=LARGE) as table:
        return {
            column.name: np.asarray(table.histogram(column.name, epsilon=EXACT)).astype(np.int64) for column in domain
        }
