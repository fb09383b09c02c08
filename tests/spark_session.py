"""One small Spark for the tests of a process, started when a test first asks for it."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

TYPES = {
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "UTINYINT": pa.int16(),  # Spark has no unsigned numbers
    "BIGINT": pa.int64(),
    "UBIGINT": pa.decimal128(20, 0),
    "HUGEINT": pa.decimal128(38, 0),
    "UHUGEINT": pa.decimal128(38, 0),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECIMAL(12,3)": pa.decimal128(12, 3),
    "DECIMAL(38,20)": pa.decimal128(38, 20),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "OFF",
    "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "privet-spark-warehouse"),  # empty; else made here
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # quick to start, for small tables
}


def require() -> None:
    """Skip the test where there is no Java, which pip does not install. PySpark must be there in CI."""
    if importlib.util.find_spec("pyspark") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Spark: PySpark is not installed")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("no Spark: Java is not installed")


def start() -> Any:
    """A session on two cores."""
    require()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("privet tests")
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()


@cache
def shared() -> Any:
    session = start()
    atexit.register(session.stop)
    return session


def frame(names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[Any, list[list[Any]]]:
    """A Spark frame, and the rows as it holds them. Rows reach Spark by way of Arrow: no Python process is started."""
    kinds = [TYPES[each] for each in types]
    held = [
        [
            Decimal(value) if pa.types.is_decimal(kind) and value is not None else value
            for value, kind in zip(row, kinds, strict=True)
        ]
        for row in rows
    ]
    columns = [pa.array([row[i] for row in held], kind) for i, kind in enumerate(kinds)]
    table = pa.Table.from_arrays(columns, names=[f"f{i}" for i in range(len(names))])
    return shared().createDataFrame(table).toDF(*names), held
