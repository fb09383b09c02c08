"""Four tables of the UCI repository, checked against their published checksums."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privet.datasets.dataset import Dataset, packaged
from privet.errors import DataError
from privet.kernel import Domain

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class _Source:
    """Where a table comes from: the folder at UCI, the checksum of each file, the names of the columns in order."""

    folder: str
    files: Mapping[str, str]
    columns: tuple[str, ...]
    numbers: tuple[str, ...] = ()


_SOURCES = {
    "adult": _Source(
        "adult",
        {
            "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
        (
            *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
            *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
            "income",
        ),
        ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
    ),
    "mushroom": _Source(
        "mushroom",
        {"agaricus-lepiota.data": "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"},
        (
            *("class", "cap-shape", "cap-surface", "cap-color", "bruises", "odor", "gill-attachment"),
            *("gill-spacing", "gill-size", "gill-color", "stalk-shape", "stalk-root", "stalk-surface-above-ring"),
            *("stalk-surface-below-ring", "stalk-color-above-ring", "stalk-color-below-ring", "veil-type"),
            *("veil-color", "ring-number", "ring-type", "spore-print-color", "population", "habitat"),
        ),
    ),
    "nursery": _Source(
        "nursery",
        {"nursery.data": "8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"},
        ("parents", "has_nurs", "form", "children", "housing", "finance", "social", "health", "class"),
    ),
    "house-votes": _Source(
        "voting-records",
        {"house-votes-84.data": "c87c14110a5ba91d4a1e313ec7392824458152bf071fa5f5452340488337936e"},
        (
            *("class", "handicapped-infants", "water-project-cost-sharing", "adoption-of-the-budget-resolution"),
            *("physician-fee-freeze", "el-salvador-aid", "religious-groups-in-schools", "anti-satellite-test-ban"),
            *("aid-to-nicaraguan-contras", "mx-missile", "immigration", "synfuels-corporation-cutback"),
            *("education-spending", "superfund-right-to-sue", "crime", "duty-free-exports"),
            "export-administration-act-south-africa",
        ),
    ),
}


def domain(name: str) -> Domain:
    """The packaged public domain of a UCI table, after its code book; no data is needed.

    >>> nursery = domain("nursery")
    >>> nursery.target, nursery["finance"].labels
    ('class', ('convenient', 'inconv'))
    """
    _source(name)
    return packaged(name)


def load(name: str) -> Dataset:
    """A UCI table with its domain: adult (its two files in one, 48842 rows), mushroom, nursery or house-votes.

    Texts are stripped and "?" stays the text it is: the domain says what it means.
    """
    import pandas as pd

    source = _source(name)
    parts = [
        pd.read_csv(
            io.BytesIO(_content(source.folder, file, checksum)),
            header=None,
            names=list(source.columns),
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            comment="|",
        )
        for file, checksum in source.files.items()
    ]
    frame = pd.concat(parts, ignore_index=True).apply(lambda column: column.str.strip())
    if name == "adult":
        frame["income"] = frame["income"].str.removesuffix(".")  # adult.test writes "<=50K."
    for column in source.numbers:
        frame[column] = pd.to_numeric(frame[column])
    return Dataset(frame, packaged(name))


def _source(name: str) -> _Source:
    if name not in _SOURCES:
        raise DataError(f"there is no data set '{name}'; known are {', '.join(_SOURCES)}.")
    return _SOURCES[name]


def _content(folder: str, name: str, checksum: str) -> bytes:
    """The checked content of a UCI file, downloaded into the cache where nobody named a folder."""
    remedy = f"set PRIVET_DATA to a folder with the file {name}"
    own = os.environ.get("PRIVET_DATA")
    path = (Path(own) if own else _cache()) / name
    try:
        if not own and not path.exists():
            _download(f"{_UCI}/{folder}/{name}", path, checksum, remedy)
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise DataError(f"cannot read or write '{path}' ({reason}); {remedy}.") from None
    if hashlib.sha256(content).hexdigest() != checksum:
        raise DataError(f"'{path}' is not the published file, its checksum differs; delete it or {remedy}.")
    return content


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "privet"


def _download(url: str, path: Path, checksum: str, remedy: str) -> None:
    import http.client  # with the first download: both take long to import
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException):  # no network, no such page, a broken connection
        raise DataError(f"cannot download {url}; {remedy}.") from None
    if hashlib.sha256(content).hexdigest() != checksum:
        raise DataError(f"{url} is not the published file, its checksum differs; {remedy}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    # A file under its own name is always whole: it is written elsewhere, then moved.
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        whole = Path(scratch) / path.name
        whole.write_bytes(content)
        os.replace(whole, path)
