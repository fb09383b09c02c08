"""A released model that is a sum of tables, and the integer arithmetic of its logits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError

LOGIT_GRID = 2**10  # logits of a released model are multiples of 1 / LOGIT_GRID
RESIDUAL_GRID = 2**10  # residuals are rounded down to multiples of 1 / RESIDUAL_GRID
EXP_BITS = 14  # exp(-d / LOGIT_GRID) is 0 for d >= 2^EXP_BITS
EXP_ONE = 2**20
LARGEST_LOGIT = 2**24


@dataclass(frozen=True)
class AdditiveModel:
    """A released model: logits are an intercept plus a table look-up per term, all multiples of 1 / LOGIT_GRID.

    `terms` holds (columns, table) pairs; a table has an axis for each column and a last one for the classes.
    """

    intercept: tuple[int, ...]
    terms: tuple[tuple[tuple[str, ...], NDArray[np.int32]], ...] = ()

    def __post_init__(self) -> None:
        """Keep copies that nobody can change, of whole numbers that cannot overflow."""
        intercept = np.asarray(self.intercept)
        tables = [(tuple(columns), np.asarray(table)) for columns, table in self.terms]
        for numbers in (intercept, *(table for _, table in tables)):
            if numbers.ndim < 1 or not np.issubdtype(numbers.dtype, np.integer):
                raise QuestionError("a model consists of arrays of whole numbers, multiples of 1 / 1024.")
        # Python's integers: the absolute value of the smallest int64 overflows
        reach = sum(
            max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
            for numbers in (intercept, *(table for _, table in tables))
        )
        if reach > LARGEST_LOGIT:
            raise QuestionError("the model's logits are too large; scale its tables down.")
        frozen = []
        for columns, table in tables:
            copy = table.astype(np.int32)
            copy.flags.writeable = False
            frozen.append((columns, copy))
        object.__setattr__(self, "intercept", tuple(int(value) for value in intercept))
        object.__setattr__(self, "terms", tuple(frozen))

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.intercept).encode())
        for columns, table in self.terms:
            digest.update(repr((columns, table.shape)).encode() + np.ascontiguousarray(table, dtype="<i4").tobytes())
        return digest.hexdigest()


def exp_factors() -> list[int]:
    """exp(-2^bit / LOGIT_GRID) in units of 1 / EXP_ONE: what each bit of d multiplies into exp(-d / LOGIT_GRID)."""
    return [round(EXP_ONE * float(np.exp(-(2**bit) / LOGIT_GRID))) for bit in range(EXP_BITS)]


def exp_table() -> NDArray[np.int64]:
    """exp(-d / LOGIT_GRID) in units of 1 / EXP_ONE, for d below 2^EXP_BITS; SQL multiplies the same factors."""
    d = np.arange(2**EXP_BITS, dtype=np.int64)
    value = np.full(d.shape, EXP_ONE, dtype=np.int64)
    for bit, factor in enumerate(exp_factors()):
        value = value * np.where(d >> bit & 1, factor, EXP_ONE) // EXP_ONE
    return value
