"""The Spark engine: a frame or table of a Spark session, coded once into a cached table of small integers.

privet runs on the driver and never collects a row: a question is one statement, and counts come back. Statements
run in a session of their own, which shares the cluster and the cache with the one the frame came from, and nothing
else: no setting of that session can change what they mean, and no view of theirs shows in it.

A level of a tree is one job. A UNION of one GROUP BY per attribute, as other engines run it, is one job as well, but
reads the cached rows once per attribute. Here every row is exploded into one packed number per attribute and
these are counted by a single GROUP BY, which Spark combines before it shuffles. 4 million rows with 14 attributes of
8 values in 64 parts, two cores: 2.0 s, against 9.8 s for the UNION, 8.6 s for `stack` into two columns, 4.7 s into one,
and 13.1 s for GROUPING SETS.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyspark import RDD, SparkContext, StorageLevel
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from sqlglot import exp

from privet.calendar_cells import FIRST, LAST
from privet.errors import DataError, EngineFailed, LedgerError
from privet.kernel.column import NUMBER, Numeric
from privet.kernel.date import DATE
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Cells, Query, ResidualQuery, SumQuery, reworded
from privet.kernel.engines.memory.engine import Recall
from privet.kernel.engines.sql import coding, sql
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.engines.sql.statement import OWNED, Compiled, Source, SqlEngine
from privet.kernel.rows import Rows

T = TypeVar("T")

_DAY = 86_400_000_000  # microseconds
_BEFORE = FIRST - 1  # the day before the first that is a date
_NUMBER = rf"\A{NUMBER}\z"  # RLIKE finds a match anywhere; these are the very ends of a text


def _day(value: sql.Sql, zoned: bool) -> sql.Sql:
    """Counted in microseconds where there is a zone: as a date, it would be one of the session's zone."""
    if zoned:
        # from the year 0 on, for a quotient is cut towards 0
        micros = exp.Anonymous(this="UNIX_MICROS", expressions=[value])
        day: sql.Sql = exp.Sub(
            this=sql.quotient(sql.add(micros, sql.num(-_BEFORE * _DAY)), sql.num(_DAY)), expression=sql.num(-_BEFORE)
        )
    else:
        day = exp.Anonymous(this="UNIX_DATE", expressions=[exp.cast(value, "DATE")])
    return sql.case([(exp.Between(this=day, low=sql.num(FIRST), high=sql.num(LAST)), day.copy())])


DIALECT = sql.Dialect(
    name="spark",
    is_nan=lambda number: exp.IsNan(this=number),
    # Spark reads '1d' and 'Infinity' as numbers too
    read_number=lambda value: sql.number_where(sql.matches(value, _NUMBER), value),
    # GET counts from 0 and is NULL outside the list
    look_up=lambda values, index: exp.Anonymous(this="GET", expressions=[sql.numbers(values), index]),
    length=lambda value: exp.Anonymous(this="OCTET_LENGTH", expressions=[value]),
    is_date=lambda value: sql.matches(value, rf"\A{DATE}\z"),
    day=_day,
)

_KINDS = {
    **dict.fromkeys(("string", "char", "varchar"), Kind.TEXT),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    "float": Kind.SINGLE,
    "double": Kind.FLOAT,
    "decimal": Kind.DECIMAL,
    "boolean": Kind.BOOLEAN,
    **dict.fromkeys(("date", "timestamp_ntz"), Kind.DAY),
    "timestamp": Kind.INSTANT,
}

CACHE = "spark.privet.cache"  # the setting that names the storage level of coded rows, or NONE
_KEPT = 3  # levels of a tree whose node ids are cached; others are computed again from these
_STEPS = 8  # from one level to the next
_AT_ONCE = 2**25  # bytes of an answer that come to the driver in one job
_REDUCERS = 16  # answers are small: they have no use for the 200 tasks that Spark would sum them in

# What statements mean is decided here. Without ANSI mode no arithmetic and no cast can fail; ours do not with it.
_MEANING = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",  # ${...} in a declared value is a value
    "spark.sql.caseSensitive": "true",
    "spark.sql.broadcastTimeout": "-1",  # never: how long a broadcast takes depends on the number of rows
}
# How levels are computed from the cached codes. Adaptive execution would run every shuffle as a job of its own; and
# conditions pushed down through the steps to a level would be written out anew, several times over, at each of them.
_LEVELS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates",
    "spark.sql.constraintPropagation.enabled": "false",
}
_MOST = "spark.driver.maxResultSize"
_LARGEST = 2**63 - 1
_THREAD = "privet-spark"


@dataclass
class _Kept:
    """What an engine holds in Spark: views, and caches behind them."""

    session: Any = None
    views: dict[str, Callable[[], object]] = field(default_factory=dict)  # and what releases each

    def add(self, name: str, frame: Any, release: Callable[[], object]) -> None:
        frame.createOrReplaceTempView(name)
        self.views[name] = release

    def drop(self, name: str) -> None:
        self.session.catalog.dropTempView(name)
        self.views.pop(name)()

    def release(self) -> None:
        for name in list(self.views):
            self.drop(name)


# A forgotten engine cannot call Spark while Python collects it: a call might be under way in the same thread. What it
# held is released by the next engine, or goes with the session.
_forgotten: deque[_Kept] = deque()


class SparkEngine(SqlEngine):
    """Push-down: every question is one Spark job over the cached codes."""

    name = "spark"
    dialect = DIALECT

    def __init__(self, source: SparkSource, domain: Domain, *, shortcuts: bool = True) -> None:
        """Read and code the source: what is wrong with it is told here, and not to whoever asks first."""
        super().__init__(domain, shortcuts=shortcuts)
        self._closed = False
        self._process = os.getpid()
        self._numbered = 0
        self._levels: OrderedDict[Rows, str] = OrderedDict()
        self._coded, self._name = exp.select(exp.Star()).from_("coded"), "nodes"
        self._kept = _Kept()
        self._forget = weakref.finalize(self, _forgotten.append, self._kept)
        self._forget.atexit = False
        self.group = f"privet-{secrets.token_hex(8)}"  # of every job
        # One thread of our own runs everything: its job group is not the caller's, and an interrupt, which comes to
        # the main thread, finds no call to Spark half done.
        self._worker = ThreadPoolExecutor(1, _THREAD)
        _leave_to_spark()
        problem: str | None = f"the Spark session of {source.title} was stopped; start one and read the table again."
        with suppress(Exception):
            self._context = source.frame.sparkSession.sparkContext
            pool = self._context.getLocalProperty("spark.scheduler.pool")  # a thread's own
            problem = None if _runs(self._context) else problem
        if problem is None:
            try:
                problem = self._run(lambda: self._read(source, pool))
            except EngineFailed:
                problem = f"cannot read {source.title} to its end; look into Spark's log for the reason."
            except BaseException:
                self.close()
                raise
        if problem is not None:
            self.close()
            raise DataError(problem)

    def _read(self, source: SparkSource, pool: str | None) -> str | None:
        """Code the source into the cache; what stands in the way, without the engine's words."""
        frame, spark = source.frame, source.frame.sparkSession
        self._context.setJobGroup(self.group, "privet")
        self._context.setLocalProperty("spark.scheduler.pool", pool)
        while _forgotten:
            with suppress(Exception):  # of a session that is gone, and its cache with it
                _forgotten.popleft().release()
        if frame.isStreaming:
            return f"{source.title} is a stream, without an end; open a table."
        level = str(spark.conf.get(CACHE, "MEMORY_AND_DISK")).upper()
        self._storage = None if level == "NONE" else getattr(StorageLevel, level, None)
        if self._storage is None and level != "NONE":
            return f"there is no storage level '{level}'; set {CACHE} to NONE or a level such as MEMORY_AND_DISK."
        if self._storage is not None and not self._storage.useDisk:
            return (
                f"the storage level {level} forgets rows where they are too many for the memory of the executors; set "
                f"{CACHE} to one with disk, such as MEMORY_AND_DISK."
            )
        most = self._context._jsc.sc().conf().getSizeAsBytes(_MOST, "1g")
        if 0 < most < 2 * _AT_ONCE:
            return (
                f"Spark ends every job whose answer is larger than {_MOST}={most}b, so that the number of rows would "
                f"decide which questions are answered; start it with --conf {_MOST}={2 * _AT_ONCE // 2**20}m or more."
            )
        self._held = _held(frame, self._domain, spark.conf.get("spark.sql.caseSensitive") == "true")
        # Columns by position: a name in the source may be anything, and that of another one
        plain = frame.toDF(*(f"f{i}" for i in range(len(frame.columns))))
        self._source = plain = plain.select(*(column.field for column in self._held.values()))
        if not plain._jdf.queryExecution().withCachedData().deterministic():
            return f"{source.title} is drawn at random whenever Spark computes it; write it to a table and open that."

        self._session = self._kept.session = _session_beside(spark)
        passed = f"privet_{secrets.token_hex(8)}"
        plain.createGlobalTempView(passed)
        try:
            shared = spark.conf.get("spark.sql.globalTempDatabase")
            self._session.table(f"{shared}.{passed}").createOrReplaceTempView("source")
        finally:
            spark.catalog.dropGlobalTempView(passed)
        fitting = coding.coded(exp.to_table("source"), self._domain, self._held, DIALECT)
        coded = self._frame(fitting)
        if self._domain.person is not None:
            self._persons = self._frame(coding.rows_of_persons(fitting.subquery("fitting")))
            coded = self._frame(coding.bounded(fitting.subquery("fitting"), self._domain, DIALECT))
        self._session.catalog.dropTempView("source")
        # Spark caches by what is computed: the token keeps apart the caches of two engines over the same rows.
        coded = coded.where(f"'{passed}' = '{passed}'")
        self._keep("coded", coded)
        if self._storage is None:  # a count would not read the columns that leave no row out
            coded.selectExpr("max(hash(*))").collect()
        else:
            coded.count()
            # the source, which may be a join of large tables, was read with the settings of its own session
            reducers = min(_REDUCERS, int(spark.conf.get("spark.sql.shuffle.partitions")))
            for setting, value in {**_LEVELS, "spark.sql.shuffle.partitions": str(reducers)}.items():
                self._session.conf.set(setting, value)
        return None

    @property
    def closed(self) -> bool:
        """Also where the Spark session was stopped: nobody is charged for a question that cannot be asked."""
        if os.getpid() != self._process:
            raise DataError(
                "a forked process cannot use the Spark session of the one it came from; open the table in its own."
            )
        return self._closed or not _runs(self._context)

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._closed = closed

    def close(self) -> None:
        if not self._closed and os.getpid() == self._process:
            with suppress(EngineFailed):
                self._run(self._kept.release)
            self._worker.shutdown(wait=False)
            self._forget.detach()
        self._recall.forget()
        self._closed = True

    def in_cells(self, cells: Cells) -> SparkEngine:
        engine = copy(self)
        engine._domain, engine._recall = cells.domain, Recall(cells.domain, self._shortcuts)
        engine._coded = coding.recut(exp.to_table("coded"), self._domain, cells)
        # views of its own, which are released with those of this engine
        engine._levels, engine._name = OrderedDict(), f"nodes_{secrets.token_hex(8)}_"
        return engine

    def _merged(self) -> sql.Answer:
        tree = sql.snapshot(exp.From(this=exp.to_table("coded")), self._domain)
        return self._run(lambda: self._fetch(tree, _LARGEST))

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        return self._run(lambda: (self._source.count(), self._session.table("coded").count()))

    def exact_persons(self) -> dict[int, int]:
        return self._run(lambda: {n: m for n, m in self._persons.collect()})

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        held = self._held[column]
        field, value_of = coding.inspected(sql.col(held.field), held.kind, DIALECT)
        values = self._source.selectExpr(f"{DIALECT.sql(field)} AS v")
        answer = self._run(lambda: values.groupBy("v").count().toArrow())
        for batch in answer.to_batches():
            yield from zip(map(value_of, batch.column(0).to_pylist()), batch.column(1).to_pylist(), strict=True)

    # -- jobs -------------------------------------------------------------------------------

    def _run(self, work: Callable[[], T]) -> T:
        """Do something in the thread that talks to Spark; when interrupted, cancel its jobs."""
        if os.getpid() == self._process:
            try:
                future = self._worker.submit(work)
                return self._result(future)
            except DataError:
                raise
            except Exception:  # Spark's words may quote a row: raised anew outside this block
                pass
        raise EngineFailed("Spark could not finish a job; look into its log for the reason.")

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except BaseException:
            while not future.done():  # an interrupt: a job that is not submitted yet cannot be cancelled yet
                with suppress(Exception):
                    self._context.cancelJobGroup(self.group)
                wait([future], timeout=0.2)
            raise

    def _ask(self, query: Query, compiled: Compiled, cells: Sequence[int] = (1,)) -> sql.Answer:
        def answered() -> dict[str, NDArray[Any]]:
            if not self._shortcuts:
                self._drop_levels(keep=0)
            rows = self._relation(query.rows)
            tree = compiled(rows)
            if self._shortcuts:
                tree = _once(tree, query.rows.parts * max(cells))
            if isinstance(query, ResidualQuery):
                tree = tree.with_(OWNED, as_=sql.owned(query, rows, self._domain, DIALECT))
            return self._fetch(
                _saturating(tree) if isinstance(query, SumQuery) else tree, query.rows.parts * sum(cells)
            )

        answer = self._run(answered)
        return {name: values.astype(np.int64) for name, values in answer.items()}

    def _fetch(self, tree: exp.Expr, most: int) -> dict[str, NDArray[Any]]:
        """The answer of a statement, which has so many rows at the most.

        Spark ends a job whose answer is too large, for the setting of the driver, a buffer of Kryo's or the driver's
        memory. So what may be large comes in slices: the answer is kept on the executors until all of them are here.
        A slice is a function of the keys, so that one which is computed again has the same rows.
        """
        frame = self._frame(tree)
        width = 8 * len(frame.columns)
        if most * width <= _AT_ONCE:
            return _arrays([frame.toArrow()])
        kept = frame.persist(self._storage or StorageLevel.DISK_ONLY)
        try:
            slices = 1 + kept.count() * width // (_AT_ONCE // 2)  # which are not all of one size
            return _arrays([kept.where(f"pmod(xxhash64(*), {slices}) = {i}").toArrow() for i in range(slices)])
        finally:
            kept.unpersist()

    def _frame(self, tree: exp.Expr) -> Any:
        return self._session.sql(DIALECT.sql(tree))

    # -- what is cached ---------------------------------------------------------------------

    def _keep(self, name: str, frame: Any) -> None:
        if self._storage is not None:
            frame.persist(self._storage)
        self._kept.add(name, frame, frame.unpersist)

    def _relation(self, rows: Rows) -> exp.From:
        """The coded rows with their `node`, as a FROM clause."""
        if rows.parent is not None:
            return exp.From(this=exp.to_table(self._level(rows)))
        everything = self._coded.select(sql.num(0).as_("node"))
        return exp.From(this=everything.subquery("everything"))

    def _level(self, rows: Rows, rest: bool = False) -> str:
        """The view of the rows that lie in a part, with its number: computed from the nearest level that is cached.

        Nothing is computed here, unless to `rest`: the job that first asks for a level also fills its cache.
        """
        if rows in self._levels:
            self._levels.move_to_end(rows)
            return self._levels[rows]
        steps, above = [rows], rows.parent
        while above is not None and above.parent is not None and above not in self._levels:
            steps.append(above)
            above = above.parent
        if len(steps) > _STEPS:  # Spark plans hundreds of steps, one in the other, for hours: rest on the way
            self._level(steps[-_STEPS], rest=True)
            return self._level(rows)
        assert above is not None
        letters = [("c", "g") if isinstance(column, Numeric) else ("c",) for column in self._domain]
        columns = [sql.col(f"{letter}{i}") for i, own in enumerate(letters) for letter in own]
        relation = self._relation(above).this
        for divided in reversed(steps):
            assert divided.step is not None
            node = sql.node(divided.step, sql.col("node"), self._domain, DIALECT)
            numbered = exp.select(*(column.copy() for column in columns), node.as_("node")).from_(relation)
            inside = exp.select(exp.Star()).from_(numbered.subquery("inside"))
            relation = inside.where(sql.in_a_part()).subquery("above")
        name = f"{self._name}{self._numbered}"
        self._numbered += 1
        frame = self._frame(relation.this)
        if rest and self._storage is not None:
            frame = frame.localCheckpoint(storageLevel=self._storage)  # a job of its own; its plan forgets the steps
            self._kept.add(name, frame, lambda: frame._jdf.queryExecution().analyzed().rdd().unpersist(False))
        else:
            self._keep(name, frame)
        self._levels[rows] = name
        self._drop_levels(keep=_KEPT)
        return name

    def _drop_levels(self, keep: int) -> None:
        """Drop all levels but those that were used last."""
        while len(self._levels) > keep:
            _, old = self._levels.popitem(last=False)
            self._kept.drop(old)


def _arrays(tables: Sequence[pyarrow.Table]) -> dict[str, NDArray[Any]]:
    table = pyarrow.concat_tables(tables)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _leave_to_spark() -> None:
    """What Spark says when a job fails may quote a row; PySpark would repeat ours on the caller's screen."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_is_callers)


def _is_callers(record: logging.LogRecord) -> bool:
    return not threading.current_thread().name.startswith(_THREAD)


def _runs(context: Any) -> bool:
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # stopped from Python, or the process of Spark is gone
        return False


def _session_beside(spark: Any) -> Any:
    """A session that reads what `spark` reads, and whose statements mean what they mean to privet."""
    to_frame = RDD.toDF
    try:
        session = spark.newSession()
    finally:
        RDD.toDF = to_frame  # a new session takes this over, and it is the caller's
    for setting, value in {**spark.conf.getAll, **_MEANING}.items():
        if not setting.startswith("spark.sql.legacy."):
            with suppress(Exception):  # of settings that hold for the whole cluster
                session.conf.set(setting, value)
    return session


def _held(frame: Any, domain: Domain, case_matters: bool) -> dict[str, Held]:
    """How the frame holds each declared column, in fields that are named by position."""
    held = {}
    stored = {column.name: column.dataType.simpleString() for column in frame.schema.fields}
    for name in domain.stored_names:
        folded = [(other == name, other.lower() == name.lower()) for other in frame.columns]
        same, alike = sum(exact for exact, _ in folded), sum(close for _, close in folded)
        if same > 1 or (same and alike > 1 and not case_matters):
            how = "the same name" if same == alike else "names that Spark does not tell apart"
            raise DataError(f"the table has several columns with {how}, '{name}'; rename them.")
        kind = coding.kind_of(domain, name, stored.get(name), _KINDS)
        held[name] = Held(f"f{frame.columns.index(name)}", kind, stored[name])
    return held


def _once(tree: exp.Query, cells: int) -> exp.Query:
    """One pass over the rows in the place of a GROUP BY for each group: a number for each of them is made of every row.

    The key of a row in group q of g becomes key * g + q, and a single GROUP BY counts all of them.
    """
    branches = sql.branches(tree)
    groups, first = len(branches), branches[0]
    if groups == 1 or cells * groups > _LARGEST:
        return tree
    packed = [
        sql.add(sql.times(branch.expressions[1].this, sql.num(groups)), branch.expressions[0].this)
        for branch in branches
    ]
    values = first.expressions[2:]
    used = sorted({column.name for value in values for column in value.find_all(exp.Column)})
    exploded = exp.select(exp.Explode(this=exp.Array(expressions=packed)).as_("p"), *(sql.col(name) for name in used))
    exploded = exploded.from_(first.args["from_"].this)
    if first.args.get("where"):
        exploded = exploded.where(first.args["where"].this)
    number, key = sql.remainder(sql.col("p"), groups), sql.quotient(sql.col("p"), sql.num(groups))
    counted = exp.select(number.as_("q"), key.as_("k"), *values).from_(exploded.subquery("exploded"))
    return counted.group_by(sql.col("p"))


def _saturating(tree: exp.Expr) -> exp.Expr:
    """Sums of numbers at or above 0 that stop at the largest whole number: no row may make one fail."""

    def stop(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Sum):
            return part
        tried = exp.Anonymous(this="TRY_SUM", expressions=[part.this])
        return exp.Coalesce(this=tried, expressions=[sql.num(_LARGEST)])

    return tree.transform(stop)


# -- what Spark reads: a frame of a session, or a table by its name ----------------------------


@dataclass(frozen=True)
class SparkSource(Source):
    """A frame of a Spark session, and the table that it is where it has a name."""

    frame: Any
    table: str | None = None

    kind = "spark"

    @property
    def name(self) -> str:
        return self.table or "frame"

    @property
    def title(self) -> str:
        return "the Spark frame" if self.table is None else f"the Spark table '{self.table}'"

    @property
    def address(self) -> str:
        return "a Spark frame" if self.table is None else f"spark:///?table={quote(self.table)}"

    @property
    def ledger(self) -> Path:
        """A frame's lives in memory; a table may be opened again, and what was spent must be known then."""
        if self.table is None:
            return Path(":memory:")
        raise LedgerError(f'there is no place for a ledger beside {self.title}; say where it is, as ledger="FILE".')

    def open(self, domain: Domain) -> SparkEngine:
        return SparkEngine(self, domain)


def frame_of(frame: Any) -> SparkSource:
    """A frame that was passed as it is."""
    module = type(frame).__module__
    if module.startswith("pyspark.pandas"):
        raise DataError("cannot open a pandas-on-Spark frame; pass frame.to_spark().")
    if module.startswith("pyspark.sql.connect"):
        raise DataError(
            "cannot open a frame of Spark Connect: privet runs on the driver; open the table there, with spark-submit."
        )
    return SparkSource(frame)


def table_of(table: str) -> SparkSource:
    """A table or view of the active session."""
    session = SparkSession.getActiveSession()
    if session is None and SparkContext._active_spark_context is not None:
        session = SparkSession.builder.getOrCreate()  # an active session belongs to a thread, the default to all
    if session is None:
        raise DataError(f"no Spark session is active, so there is no table '{table}'; start one, or use spark-submit.")

    def listed() -> SparkSource:
        entry = session.catalog.getTable(table)
        names = [entry.catalog, *(entry.namespace or []), entry.name]
        return replace(frame_of(session.table(table)), table=".".join(name for name in names if name))

    problem = f"the Spark session has no table '{table}' that it may read; check the name and the grants."
    return reworded(listed, Exception, lambda _: problem)
