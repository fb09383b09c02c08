"""What Spark reads: a frame of a session, or a table by its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from privet.errors import DataError, LedgerError
from privet.kernel.domain import Domain
from privet.kernel.engines.spark.engine import SparkEngine


@dataclass(frozen=True)
class SparkSource:
    """A frame of a Spark session, and the table that it is where it has a name."""

    frame: Any
    table: str | None = None

    kind = "spark"
    remote = True
    streams = False

    @property
    def name(self) -> str:
        """The name of the data set unless it is given another."""
        return self.table or "frame"

    @property
    def title(self) -> str:
        return "the Spark frame" if self.table is None else f"the Spark table '{self.table}'"

    @property
    def label(self) -> str:
        return "a Spark frame" if self.table is None else f"Spark table {self.table}"

    @property
    def address(self) -> str:
        """Where the data are, as the ledger remembers them."""
        return "a Spark frame" if self.table is None else f"spark:///?table={quote(self.table)}"

    @property
    def ledger(self) -> Path:
        """A frame's lives in memory; a table may be opened again, and what was spent must be known then."""
        if self.table is None:
            return Path(":memory:")
        raise LedgerError(f'there is no place for a ledger beside {self.title}; say where it is, as ledger="FILE".')

    def open(self, domain: Domain) -> SparkEngine:
        return SparkEngine(self, domain)


def source_of(data: Any) -> SparkSource:
    """A frame that was passed as it is, or the table that an address names."""
    return _table(data) if isinstance(data, str) else _frame(data)


def _frame(frame: Any) -> SparkSource:
    module = type(frame).__module__
    if module.startswith("pyspark.pandas"):
        raise DataError("cannot open a pandas-on-Spark frame; pass frame.to_spark().")
    if module.startswith("pyspark.sql.connect"):
        raise DataError(
            "cannot open a frame of Spark Connect: privet runs on the driver; open the table there, with spark-submit."
        )
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise DataError(f"this is PySpark {pyspark.__version__}; privet needs 4.0 or newer.")
    return SparkSource(frame)


def _table(text: str) -> SparkSource:
    """A table or view of the active session."""
    address = urlsplit(text, allow_fragments=False)
    table = parse_qs(address.query).get("table", [""])[0]
    if not table or address.netloc or address.path not in ("", "/"):
        raise DataError(f"'{text}' names no table of the active Spark session; write spark:///?table=NAME.")
    session = SparkSession.getActiveSession()
    if session is None and SparkContext._active_spark_context is not None:
        session = SparkSession.builder.getOrCreate()  # an active session belongs to a thread, the default to all
    if session is None:
        raise DataError(f"no Spark session is active, so there is no table '{table}'; start one, or use spark-submit.")
    try:
        found = session.catalog.getTable(table)
        names = [found.catalog, *(found.namespace or []), found.name]
        return replace(_frame(session.table(table)), table=".".join(name for name in names if name))
    except DataError:
        raise
    except Exception:  # raised anew below, without Spark's words
        pass
    raise DataError(f"the Spark session has no table '{table}' that it may read; check the name and the grants.")
