"""The numbers that papers printed, as data: a TOML file beside each paper's module.

A table is a section with `at` (its columns) and `series`, a list for each row whose entries are a value, or a value
and its standard deviation; "" is a number that is not there. `runs` says over how many runs, and `reading`, where a
plot was read with a ruler, how far it may be misread.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from privet.studies.findings import At, Number


@cache
def printed(paper: str) -> dict[str, Any]:
    """The whole file of a paper."""
    file = resources.files("privet.studies.papers").joinpath(f"{paper}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def numbers(paper: str, section: str) -> dict[tuple[str, At], Number]:
    """The numbers of a section by series and column."""
    found = printed(paper)[section]
    return {
        (series, at): _number(entry, found)
        for series, entries in found["series"].items()
        for at, entry in zip(found["at"], entries, strict=True)
        if entry != ""
    }


def _number(entry: Any, section: dict[str, Any]) -> Number:
    value, sd = (*entry, None)[:2] if isinstance(entry, list) else (entry, None)
    return Number(float(value), sd, section.get("runs"), float(section.get("reading", 0)))
