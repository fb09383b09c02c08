"""Public tables to try things on: four from the UCI repository, and a synthetic census of any size.

`load` looks for the UCI files in the folder named by the environment variable
PRIVET_DATA; without it, in a cache folder, where it downloads them once. Every
file is checked against its published SHA-256 checksum, so that a study means
the same rows everywhere. The domains come with the package and need no file.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privet.column import Nominal
from privet.domain import Domain
from privet.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Dataset:
    """Rows and the public domain that describes them; the rows may have columns that the domain does not declare."""

    frame: pd.DataFrame
    domain: Domain


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
    return _packaged(name)


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
    return Dataset(frame, _packaged(name))


def _source(name: str) -> _Source:
    if name not in _SOURCES:
        raise DataError(f"there is no data set '{name}'; known are {', '.join(_SOURCES)}.")
    return _SOURCES[name]


def _packaged(name: str) -> Domain:
    return Domain.parse(resources.files("privet").joinpath("domains", f"{name}.toml").read_text(encoding="utf-8"))


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


def census_domain() -> Domain:
    """The public domain of the synthetic census.

    >>> census_domain().names
    ('age', 'sex', 'education', 'region', 'occupation', 'hours', 'wage', 'income')
    """
    return _packaged("census")


def census(rows: int, seed: int = 0) -> pd.DataFrame:
    """A synthetic working population of any size: nobody in it exists.

    The columns depend on each other as in life: schooling rose over the years, hours
    and occupation depend on sex and schooling, the wage on all of them, and income on
    wage and hours. Some people do not state their occupation or wage. The same seed
    gives the same rows.

    >>> people = census(1000, seed=7)
    >>> people.shape, people.equals(census(1000, seed=7))
    ((1000, 8), True)
    >>> print(people.loc[people.income == "high", "wage"].median() > people.wage.median())
    True
    """
    import pandas as pd

    if rows < 0:
        raise DataError(f"a census of {rows} rows is not possible; ask for 0 or more.")
    rng = np.random.default_rng(seed)
    ages = np.arange(17, 91)
    age = _draw(rng, np.interp(ages, [17, 25, 55, 68, 90], [0.5, 1.0, 1.0, 0.2, 0.01]), rows) + 17
    male = rng.random(rows) < 0.53 - 0.001 * (age - 40)
    region = _draw(rng, 1 / np.arange(2, 14), rows)

    # Schooling: a score that was lower in earlier generations, cut into levels; the young are not done.
    score = rng.normal(size=rows) - 0.015 * (age - 40) + 0.35 * (region < 2)
    education = np.searchsorted([-2.0, -1.1, 0.0, 0.7, 1.5, 2.4], score)
    education = np.minimum(education, 1 + np.searchsorted([17, 20, 23, 26, 30], age, side="right"))

    # Occupation: every level of schooling has its place in the list of jobs; some jobs draw men, some women.
    place = np.array([0.0, 1.5, 3.5, 5.0, 7.0, 8.0, 8.2])[:, None]
    women = np.exp(-((place - np.arange(10)) ** 2) / 9)
    men = women * [1.6, 0.4, 3.0, 4.0, 2.0, 0.6, 0.8, 0.4, 0.9, 1.6]
    odds = np.stack([women, men], axis=1).reshape(14, 10)
    cuts = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    group, coin = 2 * education + male, rng.random(rows)
    occupation = np.zeros(rows, dtype=np.int64)
    for cut in cuts.T:
        occupation += coin > cut[group]

    # Hours: forty for most, fewer for many women, the young and the old, more for managers.
    usual = (rng.random(rows) < np.where(male, 0.55, 0.4)) & (age < 65)
    drift = 42 - 6.0 * ~male - 0.25 * np.maximum(age - 60, 0) - 8.0 * (age < 22) + 4.0 * (occupation == 9)
    hours = np.where(usual, 40, np.rint(rng.normal(drift, 10))).clip(1, 99).astype(np.int64)

    # Wage: the textbook equation in schooling and experience, plus job, region, sex and luck.
    experience = np.minimum(age - 17, 40)
    log_wage = 2.0 + 0.16 * education + 0.035 * experience - 0.0005 * experience**2 + 0.12 * male - 0.015 * region
    log_wage += np.array([-0.25, -0.3, 0.0, 0.05, 0.05, -0.15, 0.0, 0.05, 0.15, 0.35])[occupation]
    wage = np.exp(rng.normal(log_wage, 0.4)).clip(0, 200).round(2)
    yearly = wage * hours * 48 * np.exp(rng.normal(0, 0.15, rows))  # and a little that no column tells

    unstated = rng.random(rows)
    return pd.DataFrame(
        {
            "age": age,
            "sex": _texts("sex", male.astype(np.int64)),
            "education": _texts("education", education),
            "region": _texts("region", region),
            "occupation": _texts("occupation", np.where(unstated < 0.04, -1, occupation)),
            "hours": hours,
            "wage": np.where(unstated > 1 - 0.05 - 0.1 * (occupation == 0), np.nan, wage),
            "income": _texts("income", (yearly > 55_000).astype(np.int64)),
        }
    )


def _draw(rng: np.random.Generator, weights: NDArray[np.float64], rows: int) -> NDArray[np.int64]:
    """Independent draws from weighted numbers 0, 1, 2, ..."""
    return rng.choice(len(weights), size=rows, p=weights / weights.sum())


def _texts(name: str, codes: NDArray[np.int64]) -> pd.Categorical[str]:
    """The declared values of a census column; a code of -1 is missing."""
    import pandas as pd

    column = census_domain()[name]
    assert isinstance(column, Nominal)
    return pd.Categorical.from_codes(codes, categories=pd.Index(column.texts), ordered=column.ordered)
