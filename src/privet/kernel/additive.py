"""A released model that is a sum of tables, and the integer arithmetic of its logits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privet.errors import QuestionError
from privet.kernel.domain import Domain
from privet.kernel.public_values import MAX_CELLS, Json, digest

LOGIT_GRID = 2**10  # logits of a released model are multiples of 1 / LOGIT_GRID
RESIDUAL_GRID = 2**10  # residuals are rounded down to multiples of 1 / RESIDUAL_GRID
EXP_BITS = 14  # exp(-d / LOGIT_GRID) is 0 for d >= 2^EXP_BITS
EXP_ONE = 2**20
LARGEST_LOGIT = 2**24


@dataclass(frozen=True)
class AdditiveModel:
    """A released model: logits are an intercept plus a table look-up per term, all multiples of 1 / LOGIT_GRID.

    Parameters
    ----------
    intercept : sequence of int
        For each class.
    terms : sequence of (columns, table)
        A table has an axis for each of its columns and a last one for the classes.

    Raises
    ------
    QuestionError
        They are no whole numbers, or too large.
    """

    intercept: tuple[int, ...]
    terms: tuple[tuple[tuple[str, ...], NDArray[np.int32]], ...] = ()

    version: ClassVar[int] = 1  # of the JSON form

    def __post_init__(self) -> None:
        """Keep copies that nobody can change, of whole numbers that cannot overflow."""
        intercept = np.asarray(self.intercept)
        tables = [(tuple(columns), np.asarray(table)) for columns, table in self.terms]
        arrays = [intercept, *(table for _, table in tables)]
        for numbers in arrays:
            if numbers.ndim < 1 or not np.issubdtype(numbers.dtype, np.integer):
                raise QuestionError("a model consists of arrays of whole numbers, multiples of 1 / 1024.")
        # Python's integers: the absolute value of the smallest int64 overflows
        reach = sum(max(int(numbers.max(initial=0)), -int(numbers.min(initial=0))) for numbers in arrays)
        if reach > LARGEST_LOGIT:
            raise QuestionError("the model's logits are too large; scale its tables down.")
        frozen = []
        for columns, table in tables:
            copy = table.astype(np.int32)
            copy.flags.writeable = False
            frozen.append((columns, copy))
        object.__setattr__(self, "intercept", tuple(int(value) for value in intercept))
        object.__setattr__(self, "terms", tuple(frozen))

    def check(self, domain: Domain) -> None:
        """Refuse a model whose classes, columns or shapes do not fit the domain. A term may look at any columns.

        Raises
        ------
        QuestionError
        """
        classes = len(domain.classes)
        if classes < 2:
            raise QuestionError("a model needs a target with at least two classes.")
        if len(self.intercept) != classes:
            raise QuestionError(f"the intercept of a model needs one entry for each of the {classes} classes.")
        cells = sum(table.size for _, table in self.terms)
        if cells > MAX_CELLS:
            raise QuestionError(f"this model has {cells} cells, at most {MAX_CELLS} are possible; use smaller tables.")
        for columns, table in self.terms:
            if domain.target in columns:
                raise QuestionError("a model may not look at the target.")
            shape = (*(domain[name].size for name in columns), classes)
            if tuple(table.shape) != shape:
                raise QuestionError(f"the table over {', '.join(columns)} must have the shape {shape}.")

    def to_json(self, brief: bool = False) -> Json:
        """Return the model as JSON; a brief form names it by its hash."""
        if brief:
            return {"sha256": self.fingerprint}
        terms = [
            {"columns": columns, "shape": table.shape, "table": table.ravel().tolist()} for columns, table in self.terms
        ]
        return {"model": "additive", "version": self.version, "intercept": self.intercept, "terms": terms}

    @cached_property
    def fingerprint(self) -> str:
        """The hash of its JSON form with every table as the hash of its 32-bit words: the same in every process."""
        hashes = [hashlib.sha256(np.ascontiguousarray(table, dtype="<i4").tobytes()) for _, table in self.terms]
        terms = [
            {"columns": columns, "shape": table.shape, "sha256": words.hexdigest()}
            for (columns, table), words in zip(self.terms, hashes, strict=True)
        ]
        return digest({"model": "additive", "version": self.version, "intercept": self.intercept, "terms": terms})


def check_model(model: object) -> None:
    """Raise a QuestionError for what is no model."""
    if not isinstance(model, AdditiveModel):
        raise QuestionError(f"a released model is an AdditiveModel, not a {type(model).__name__}.")


def exp_factors() -> list[int]:
    """Return exp(-2^bit / LOGIT_GRID) in units of 1 / EXP_ONE: the factor of each bit of d in exp(-d / LOGIT_GRID)."""
    return [round(EXP_ONE * float(np.exp(-(2**bit) / LOGIT_GRID))) for bit in range(EXP_BITS)]


def exp_table() -> NDArray[np.int64]:
    """Return exp(-d / LOGIT_GRID) in units of 1 / EXP_ONE for d below 2^EXP_BITS; SQL multiplies the same factors."""
    d = np.arange(2**EXP_BITS, dtype=np.int64)
    value = np.full(d.shape, EXP_ONE, dtype=np.int64)
    for bit, factor in enumerate(exp_factors()):
        value = value * np.where(d >> bit & 1, factor, EXP_ONE) // EXP_ONE
    return value
