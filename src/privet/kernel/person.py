"""Who a person is: which rows of a table count where the domain names a person column.

The promise is for a person with all their rows, however many they have. So at most `rows_per_person` rows of each
person count, and the others are left out once, of the whole table, before any condition or part. A person then
changes at most `rows_per_person` rows of what is asked about, whatever the data (docs/explanation/privacy.md#person).

Which rows count must not depend on other people, on the order of the rows, or on the engine. So the rows of a person
are ordered by a hash of the person and of the row's own codes, and the first ones count. Rows that are still equal
have equal codes: no question can tell them apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.kernel.column import LONGEST_NUMERAL, UNWRITABLE, as_series, elements, text_of

WHOLE = r"-?(0|[1-9][0-9]*)"  # a text that is a whole number
WHOLE_FLOATS = 2**63  # floats from here on name nobody: engines have no such whole numbers
BROKEN = "\ufffd"  # what readers put in the place of bytes that are no text: two names may become one by it
_NAMES = (str, int, np.integer, bool, np.bool_, Decimal, bytes, date, np.datetime64)  # of others the text may vary
_whole_with_point = re.compile(rf"({WHOLE})[.]0*")


def person_text(value: object) -> str | None:
    """Return the text that names a person; None where a value names nobody.

    Two rows belong to one person if these texts are equal in every byte. A whole number and the texts that programs
    write for it are one person. No value, an empty text, a text with bytes that were not UTF-8, a float that is not
    whole, and objects other than texts, numbers, booleans, bytes and dates name nobody.

    >>> [person_text(value) for value in (12, 12.0, "12", "12.0", "a", "A ", "", None, 1.5, True)]
    ['12', '12', '12', '12', 'a', 'A ', None, None, None, 'true']
    """
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if abs(number) < WHOLE_FLOATS and number.is_integer() else None
    if not isinstance(value, _NAMES):
        return None
    text = str.__str__(value) if isinstance(value, str) else text_of(value)
    if text is None or text in ("", UNWRITABLE) or BROKEN in text:
        return None
    match = _whole_with_point.fullmatch(text) if len(text) <= LONGEST_NUMERAL else None
    return match[1] if match else text


def digest(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def order(person: str, codes: Sequence[int]) -> str:
    """Return what the rows of a person are ordered by: a hash of the person and of the codes of a row.

    `codes` are the codes of all columns, then the grid indices of the numeric ones.
    """
    return digest(",".join([digest(person), *map(str, codes)]))


def counted(persons: Any, codes: Sequence[NDArray[Any]], most: int) -> NDArray[np.bool_]:
    """Return which rows count: at most so many of each person, none of nobody.

    Parameters
    ----------
    persons : column of values
        Whose each row is.
    codes : sequence of arrays
        The codes of all columns, then the grid indices of the numeric ones: a number for each row.
    most : int
        How many rows of a person count.

    Returns
    -------
    array of bool
    """
    numbers, names = _numbered(persons)
    rows_of = np.bincount(numbers[numbers >= 0], minlength=len(names))
    mask = numbers >= 0
    surplus = np.flatnonzero(np.append(rows_of > most, False)[numbers])  # the last one is nobody
    table = np.stack([np.asarray(array)[surplus] for array in codes], axis=1).tolist()
    keys = [(number, order(names[number], row)) for number, row in zip(numbers[surplus].tolist(), table, strict=True)]
    mask[surplus] = False
    taken, last = 0, -1
    for position in sorted(range(len(keys)), key=keys.__getitem__):
        number = keys[position][0]
        taken = 1 if number != last else taken + 1
        last = number
        mask[surplus[position]] = taken <= most
    return mask


def _numbered(persons: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Return for each row the number of its person, -1 for nobody, and the text that names each."""
    import pandas as pd

    series = as_series(persons)
    positions: NDArray[Any] = np.arange(len(series))
    if getattr(series.dtype, "kind", "O") in "iuf" and isinstance(series.dtype, np.dtype):
        positions, distinct = pd.factorize(series.to_numpy())  # equal numbers of one type have one text
        values: Sequence[object] = list(distinct)
    else:
        values = elements(series.array)
    numbers: dict[str, int] = {}
    texts = [person_text(value) for value in values]
    table = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
    return np.array([*table, -1], dtype=np.int64)[positions], list(numbers)
