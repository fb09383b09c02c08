"""Rows that are not private: what a model predicts for, and what a plain tree is grown on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 200_000
# Types of a Parquet file that pandas keeps to the last digit; it would make floats or times of others.
_KEPT = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE"})


def read(path: str | Path) -> Iterator[pd.DataFrame]:
    """The rows of a CSV file, as texts and in chunks, or of a Parquet file."""
    import duckdb
    import pandas as pd

    path = Path(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(f"cannot read '{path}'; rows come as a .csv or .parquet file.")
    if not path.is_file():
        raise DataError(f"there is no file '{path}'; check the path.")
    try:
        if path.suffix.lower() == ".parquet":
            found = duckdb.read_parquet(str(path))
            columns = [
                duckdb.ColumnExpression(name) if str(kind) in _KEPT else _text(name)
                for name, kind in zip(found.columns, found.types, strict=True)
            ]
            yield found.select(*columns).df()
            return
        with pd.read_csv(path, dtype=str, keep_default_na=False, chunksize=CHUNK, encoding="utf-8-sig") as chunks:
            yield from chunks
    except pd.errors.EmptyDataError:
        raise DataError(f"'{path}' is empty; it needs a first line with the names of the columns.") from None
    except (pd.errors.ParserError, UnicodeDecodeError, duckdb.Error):
        raise DataError(
            f"'{path}' is not a well-formed {path.suffix[1:]} file in UTF-8; save it as UTF-8, close its quotes, and "
            "give every line as many fields as the header."
        ) from None


def _text(name: str) -> Any:
    import duckdb

    return duckdb.ColumnExpression(name).cast("VARCHAR").alias(name)
