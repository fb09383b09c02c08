"""Canonical JSON: one text for one value, and its hash.

What a question, a set of rows, a criterion, a model or a domain *is* does not depend on the
names of Python classes. Each has a JSON form with a version number; its fingerprint is the
SHA-256 hash of that form, written canonically: keys sorted, no blanks, ASCII only. Numbers are
whole; fractions are texts such as "1/3". The forms are held by golden files in the tests.

>>> canonical({"b": [1, None], "a": "é"})
'{"a":"\\\\u00e9","b":[1,null]}'
>>> digest({"question": "count", "version": 1})[:16]
'62658fab3e540da8'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | bool | None


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical(value: Json) -> str:
    """Return the one text of a JSON value."""
    return _encode(value)


def digest(value: Json) -> str:
    """Return the SHA-256 hash of a JSON value's canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
