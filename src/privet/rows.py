"""Reading rows that are not private: those to predict, and those that a plain tree is grown on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 200_000  # rows of a CSV file that are read at a time
# Types of a Parquet file that pandas reads exactly. All others are read as texts, not as floats or times.
_KEPT = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE"})


def read(path: str | Path) -> Iterator[pd.DataFrame]:
    """Yield the rows of a file.

    Parameters
    ----------
    path : str or Path
        A .csv file, which is read as texts and in chunks, or a .parquet file.

    Yields
    ------
    pandas.DataFrame

    Raises
    ------
    DataError
        The file is missing, empty or malformed, or has another ending.
    """
    import duckdb
    import pandas as pd

    path = Path(path)
    if path.is_dir():
        raise DataError(f"'{path}' is a folder; name a .csv or .parquet file in it.")
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(f"cannot read '{path}'; rows come as a .csv or .parquet file.")
    if not path.is_file():
        raise DataError(f"there is no file '{path}'; check the path.")
    try:
        if path.suffix.lower() == ".parquet":
            table = duckdb.read_parquet(str(path))
            columns = [
                duckdb.ColumnExpression(name) if str(kind) in _KEPT else _text(name)
                for name, kind in zip(table.columns, table.types, strict=True)
            ]
            yield table.select(*columns).df()
            return
        with pd.read_csv(path, dtype=str, keep_default_na=False, chunksize=CHUNK, encoding="utf-8-sig") as chunks:
            for chunk in chunks:
                _check_delimiter(path, list(chunk.columns))
                yield chunk
    except pd.errors.EmptyDataError:
        raise DataError(f"'{path}' is empty; it needs a first line with the names of the columns.") from None
    except (pd.errors.ParserError, UnicodeDecodeError, duckdb.Error):
        raise DataError(
            f"'{path}' is not a well-formed {path.suffix[1:]} file in UTF-8; save it as UTF-8, close its quotes, and "
            "give every line as many fields as the header."
        ) from None


def _check_delimiter(path: Path, names: list[str]) -> None:
    """Refuse a file of one column whose name has another sign between names."""
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if len(names) == 1 and sign in names[0]:
            raise DataError(f"'{path}' separates its columns by {word}; save it with commas between them.")


def _text(name: str) -> Any:
    """Return a column as text, for DuckDB."""
    import duckdb

    return duckdb.ColumnExpression(name).cast("VARCHAR").alias(name)
