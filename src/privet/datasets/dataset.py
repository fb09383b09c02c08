"""Rows and the public domain that describes them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from privet.kernel import Domain

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Dataset:
    """Rows and the public domain that describes them; the rows may have columns that the domain does not declare."""

    frame: pd.DataFrame
    domain: Domain


def packaged(name: str) -> Domain:
    """A domain that comes with the package."""
    return Domain.parse(resources.files("privet").joinpath("domains", f"{name}.toml").read_text(encoding="utf-8"))
