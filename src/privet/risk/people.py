"""The people of a table of quasi-identifiers, and what an adversary believes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import DataError
from privet.kernel import number_of, text_of
from privet.risk.tree import Floats, Integers

# -- The people of a table of quasi-identifiers: those with the same values are one profile, which nobody can divide.

MISSING = "<missing>"


@dataclass(frozen=True, eq=False)
class Attribute:
    """A quasi-identifier: its distinct values, rising, as they are and as people read them."""

    name: str
    values: tuple[object, ...]
    texts: tuple[str, ...]
    numbers: Floats | None  # where all values are numbers


@dataclass(frozen=True, eq=False)
class People:
    """Profiles: the codes of their values [profile, attribute], how many people have them, and whose row is whose.

    >>> people = People.of(pd.DataFrame({"sex": ["f", "m", "f"], "age": ["30", "9", "30"]}), ["sex", "age"])
    >>> people.sizes.tolist(), people.profile.tolist(), people.told(0)
    ([2, 1], [0, 1, 0], 'sex = f, age = 30')
    >>> people.attributes[1].texts
    ('9', '30')
    """

    attributes: tuple[Attribute, ...]
    codes: Integers
    sizes: Integers
    profile: Integers  # of each row

    @classmethod
    def of(cls, frame: pd.DataFrame, columns: Sequence[str]) -> People:
        """The profiles of the rows of a frame by some of its columns."""
        if len(frame) == 0:
            raise DataError("the table of quasi-identifiers has no rows, so there is nobody to audit.")
        if not columns:
            raise DataError("the table has no column besides the sensitive one, so nobody can be recognised.")
        attributes, codes = zip(*(_coded(name, frame[name]) for name in columns), strict=True)
        profile = np.zeros(len(frame), dtype=np.int64)
        for column, attribute in zip(codes, attributes, strict=True):
            # after each column profiles are numbered anew, so that no product of sizes overflows
            profile = np.unique(profile * len(attribute.values) + column, return_inverse=True)[1].ravel()
        _, first, sizes = np.unique(profile, return_index=True, return_counts=True)
        return cls(tuple(attributes), np.stack(codes, axis=1)[first], sizes.astype(np.int64), profile)

    def one_by_one(self) -> People:
        """The same people, each a profile of their own: what is known of them may differ where attributes do not."""
        rows = np.arange(len(self.profile))
        return People(self.attributes, self.codes[self.profile], np.ones(len(rows), dtype=np.int64), rows)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def total(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    def told(self, profile: int) -> str:
        """A profile as people read it."""
        pairs = zip(self.attributes, self.codes[profile].tolist(), strict=True)
        return ", ".join(f"{attribute.name} = {attribute.texts[code]}" for attribute, code in pairs)


def _coded(name: str, column: Any) -> tuple[Attribute, Integers]:
    """The distinct values of a column in rising order, and the position of each row's value among them."""
    try:
        codes, distinct = pd.factorize(column, use_na_sentinel=False)
    except TypeError:  # lists and such
        raise DataError(f"the column '{name}' has values that are neither texts nor numbers; leave it out.") from None
    known: dict[str | None, object] = {}  # values that read the same are the same
    for value in distinct.tolist():
        known.setdefault(text_of(value), value)
    position = {text: at for at, text in enumerate(known)}
    codes = np.array([position[text_of(value)] for value in distinct.tolist()], dtype=np.int64)[codes]
    values = [None if text is None else value for text, value in known.items()]
    numbers = [number_of(value) for value in values]
    numeric = all(number is not None for number in numbers)
    keys: list[Any] = numbers if numeric else [(value is None, str(text_of(value))) for value in values]
    order = sorted(range(len(values)), key=keys.__getitem__)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    texts = tuple(MISSING if values[i] is None else str(text_of(values[i])) for i in order)
    found = np.array([numbers[i] for i in order], dtype=np.float64) if numeric else None
    return Attribute(name, tuple(values[i] for i in order), texts, found), rank[codes]


# -- What an adversary believes of everybody after looking: how likely each sensitive value is, profile by profile.


@dataclass(frozen=True, eq=False)
class Belief:
    """P(value | profile) of one adversary, and how it was found.

    `notes` are sentences for the report; `facts` numbers for programs: what was solved, and how well.
    """

    adversary: str
    shares: Floats  # [profile, value]
    exact: bool = True  # False: sampled or solved to a tolerance, and `notes` say how well
    notes: tuple[str, ...] = ()
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
    binding: tuple[tuple[int, str], ...] = ()  # nodes whose choice binds, and the column they were preferred to


def entropy(shares: Floats) -> Floats:
    """The entropy of each row of shares, in nats."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logs).sum(axis=-1))


def mean_entropy(people: People, shares: Floats) -> float:
    """H(value | profile): what an adversary does not know of an average person, in nats."""
    return float(people.sizes @ entropy(shares) / people.total)


def uniform(people: People, classes: int) -> Belief:
    """Whoever knows nothing: all values alike."""
    return Belief("uniform", np.full((len(people), classes), 1 / classes))


def marginal_only(people: People, marginal: Floats) -> Belief:
    """Whoever knows how frequent each value is among all people, and nothing else."""
    return Belief("marginal", np.tile(marginal, (len(people), 1)))
