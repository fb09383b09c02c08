"""Frames of the Spark that the tests share, and what it says of its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from kernel.engines.comparison import PEOPLE, PEOPLE_TYPES
from spark_session import frame

import privet
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import spark_frame

CENSUS = privet.datasets.census_domain()


def cached(session: Any) -> int:
    return int(session.sparkContext._jsc.getPersistentRDDs().size())


NUMBERS = Domain((Numeric("x", Fraction(0), Fraction(9), Fraction(1), missing=True),))


def engine_over(rows: Any, domain: Domain = PEOPLE, types: Any = PEOPLE_TYPES) -> Any:
    data, _ = frame(domain.names, types, rows)
    return spark_frame(data).open(domain)


def census(rows: int = 600) -> Any:
    found = privet.datasets.census(rows, seed=3)
    kinds = [{"i": "BIGINT", "f": "DOUBLE"}.get(getattr(each, "kind", ""), "VARCHAR") for each in found.dtypes]
    data, _ = frame(list(found.columns), kinds, found.astype(object).where(found.notna(), None).to_numpy().tolist())
    return found, data


def jobs(session: Any, group: str) -> set[int]:
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # a listener tells the tracker, and may be late
    return set(session.sparkContext.statusTracker().getJobIdsForGroup(group))


@contextmanager
def cache(session: Any, level: str) -> Iterator[None]:
    session.conf.set("spark.privet.cache", level)
    try:
        yield
    finally:
        session.conf.unset("spark.privet.cache")


EXACT = 10_000  # at this epsilon no noise is to be seen

ONE = Domain((Nominal("n", ("a", "b"), other=True, missing=True),))
