"""The data sets of the benchmark: one small file each, found by its name.

A new public data set is a file NAME.py in this folder, and nothing else. Its docstring is what the
page says about it, and its `load()` returns the rows and their public domain. All of a file
for rows that lie in the folder PRIVET_DATA as bank.csv, with a domain beside them:

    '''Bank: does a customer subscribe?'''

    import pandas as pd

    from bench.data import folder
    from privet.datasets import Dataset
    from privet import Domain


    def load() -> Dataset:
        return Dataset(pd.read_csv(folder() / "bank.csv"), Domain.load(folder() / "bank.toml"))

The domain names the target and every column that may be used, with values and bounds from a code
book, never from the rows. Rows that do not fit it are left out for all learners alike. A generator
takes the seed of the repeat, `load(seed)`, and draws a new set for each.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.datasets import Dataset
from privet.errors import DataError
from privet.kernel import Domain, Nominal

Integers = NDArray[np.int64]

ORDER = ("adult", "mushroom", "nursery", "nursery2", "house-votes")  # these first, then the others by name


def names() -> list[str]:
    found = {module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)}
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def about(name: str) -> str:
    """What the file says about itself: its docstring in one line."""
    return " ".join((_module(name).__doc__ or name).split())


def drawn(name: str) -> bool:
    """Is the set generated, anew for each seed?"""
    return bool(inspect.signature(_module(name).load).parameters)


@lru_cache(maxsize=2)
def load(name: str, seed: int = 0, rows: int | None = None) -> Dataset:
    """The rows of a data set that fit its domain, `rows` of them at most, and the domain."""
    found: Dataset = _module(name).load(seed) if drawn(name) else _module(name).load()
    fits = np.all([column.encode(found.frame[column.name]) >= 0 for column in found.domain], axis=0)
    frame = found.frame.loc[fits, list(found.domain.names)]
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=seed)
    return Dataset(frame.reset_index(drop=True), found.domain)


def generated(codes: Integers, sizes: tuple[int, ...], label: Integers) -> Dataset:
    """Rows of generated codes and their classes 0 and 1, with the domain that describes them."""
    attributes = [Nominal(f"a{at}", tuple(range(size))) for at, size in enumerate(sizes)]
    domain = Domain((*attributes, Nominal("y", (0, 1))), target="y", rows=len(label), max_rows=2 * len(label))
    frame = pd.DataFrame({**{f"a{at}": codes[:, at].copy() for at in range(len(sizes))}, "y": label})
    return Dataset(frame, domain)


def folder() -> Path:
    """Where data files lie that nobody can download: the folder PRIVET_DATA."""
    own = os.environ.get("PRIVET_DATA")
    if not own:
        raise DataError("the files of this data set are looked for in the folder PRIVET_DATA; set it.")
    return Path(own)


def _module(name: str) -> ModuleType:
    if name not in names():
        raise DataError(f"there is no data set '{name}'; known are {', '.join(names())}.")
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
