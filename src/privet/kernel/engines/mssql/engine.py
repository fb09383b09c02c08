"""The SQL Server engine: one statement a question, in T-SQL, with the right to read alone.

Hanisch's procedure `laplacianCount` takes a table, an attribute and a condition as texts from the caller, glues
them into a statement and adds noise from `rand()` in floating point. Here the statement is compiled from a value, the
charge is written before it runs, exact counts go to the kernel alone, and the kernel draws the noise.

T-SQL has no truth values outside conditions, no arrays, no regular expressions, and compares texts without regard to
case and trailing blanks: the dialect below says each of these in other words. Not a row leaves the server.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
from sqlglot import exp

from privet.errors import DataError
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import FIXED, LARGEST_SUM, reworded
from privet.kernel.engines.sql import coding, sql
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.engines.sql.sql import Answer, Sql
from privet.kernel.engines.sql.statement import Source, StatementEngine, Storage

_BYTES = "Latin1_General_100_BIN2"  # a collation that compares code units, so that "A" is not "a"
_UTF8 = "Latin1_General_100_BIN2_UTF8"
_END = "|"  # after a text: trailing blanks do not count in a comparison
_LARGEST = 1.7e308
_ALL = sql.num(2**31 - 1)  # letters
_DIGIT = "%[0-9]%"
_SEVERAL = 32  # more values than this are looked up in a JSON list
_LONGEST = 2**20  # letters of a text that are read: a longer one is no number, and no declared value
# What an owner's server or user may be told otherwise, and what a number of rows would meet: the cost that the server
# expects of a statement, the time it waits, the length of its answer.
_UNLIMITED = "SET QUERY_GOVERNOR_COST_LIMIT 0; SET LOCK_TIMEOUT -1; SET ROWCOUNT 0"
_SETTINGS = {"Encrypt": ("yes", "no", "strict"), "TrustServerCertificate": ("yes", "no")}
_HOST = re.compile(r"[\w.:%\\-]+")  # a sign that ends a setting of the driver is none of a host
_UNREACHABLE = "cannot reach SQL Server; check host, database, user and password, and that it runs."

_KINDS = {
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "sysname"), Kind.TEXT),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    "real": Kind.SINGLE,
    "float": Kind.FLOAT,
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney"), Kind.DECIMAL),
    "bit": Kind.BOOLEAN,
    **dict.fromkeys(("date", "datetime", "datetime2", "smalldatetime"), Kind.DAY),
}

# -- the dialect --------------------------------------------------------------------------------


def _call(name: str, *arguments: Sql) -> Sql:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _words(text: str) -> Sql:
    return exp.National(this=text)


def _as_text(value: Sql) -> Sql:
    # 2 GB of letters have no room for two bytes each, nor for the sign at their end: such a row would stop a statement
    first = _call("LEFT", value, sql.num(_LONGEST + 1))
    stored = exp.cast(first, exp.DataType.build("NVARCHAR(MAX)", dialect="tsql"))
    return exp.Collate(this=stored, expression=exp.Var(this=_BYTES))


def _same_text(value: Sql, declared: str) -> Sql:
    return exp.Add(this=value, expression=_words(_END)).eq(_words(declared + _END))


def _like(value: Sql, pattern: str) -> Sql:
    return exp.Like(this=value.copy(), expression=_words(pattern))


def _read_number(value: Sql) -> Sql:
    """`column.number_of` without regular expressions: the text without blanks around it is a mantissa and, after an E,
    an exponent. One that fits and cannot be cast is too large, or so close to 0 that it is 0."""
    blank = _call("REPLACE", value, _call("NCHAR", sql.num(9)), _words(" "))
    number = _call("LTRIM", _call("RTRIM", blank))
    marked = exp.Add(this=_call("UPPER", number), expression=_words("E"))
    at = _call("CHARINDEX", _words("E"), marked)
    mantissa = _unsigned(_call("LEFT", number, exp.Sub(this=at, expression=sql.num(1))))
    exponent = _call("SUBSTRING", number, exp.Add(this=at.copy(), expression=sql.num(1)), _ALL)
    without = at.copy().eq(_call("LEN", marked))
    fits = sql.conjunction(
        _only(mantissa, "0-9."),
        _like(mantissa, _DIGIT),
        exp.not_(_like(mantissa, "%.%.%")),
        exp.Paren(this=exp.or_(without, sql.conjunction(_only(_unsigned(exponent), "0-9"), _like(exponent, _DIGIT)))),
    )
    large = [(_like(exponent, "-%"), sql.num(0)), (_like(number, "-%"), sql.num(-_LARGEST))]
    beyond = sql.case([(condition, sql.double(end)) for condition, end in large], sql.double(sql.num(_LARGEST)))
    read = exp.TryCast(this=number.copy(), to=exp.DataType.build("DOUBLE"))
    return sql.case([(fits, exp.Coalesce(this=read, expressions=[beyond]))])


def _is_date(value: Sql) -> Sql:
    """The form of `date.DATE` without regular expressions: whether there is such a day, the cast says."""
    trimmed = _call("LTRIM", _call("RTRIM", value))
    day = "-".join("[0-9]" * digits for digits in (4, 2, 2))
    timed = exp.or_(_like(trimmed, day), _like(trimmed, f"{day}[T ][0-9][0-9]:[0-9][0-9]%"))
    return sql.conjunction(exp.Paren(this=timed), _only(trimmed, " -~"), exp.not_(_like(trimmed, "0000%")))


def _day(value: Sql, zoned: bool) -> Sql:
    """Its dates have years from 0001 to 9999; times with a zone are not read."""
    epoch = exp.cast(exp.Literal.string("1970-01-01"), "DATE")
    return _call("DATEDIFF", exp.Var(this="DAY"), epoch, exp.cast(value, "DATE"))


def _without_zeros(value: Sql) -> Sql:
    """A text with one point loses zeros at its end as another loses blanks, then a point; with blanks it is no
    numeral."""
    zeros = _call("RTRIM", _call("REPLACE", value, _words("0"), _words(" ")))
    short = _call("REPLACE", zeros, _words(" "), _words("0"))
    pointless = _call("REPLACE", short, _words("."), _words(""))
    return sql.case([(_like(value, "% %"), value.copy()), (_like(short, "%."), pointless)], short)


def _unsigned(number: Sql) -> Sql:
    """A text without the sign it may begin with."""
    rest = _call("SUBSTRING", number, sql.num(2), _ALL)
    return sql.case([(_like(number, "[+-]%"), rest)], number.copy())


def _only(value: Sql, letters: str) -> Sql:
    return exp.not_(_like(value, f"%[^{letters}]%"))


def _look_up(values: Sequence[int], index: Sql) -> Sql:
    if len(values) <= _SEVERAL:
        cases = [exp.If(this=sql.num(i), true=sql.num(value)) for i, value in enumerate(values)]
        return exp.Case(this=index, ifs=cases)
    position = exp.cast(index, exp.DataType.build("NVARCHAR(20)", dialect="tsql"))
    path = exp.Add(this=exp.Add(this=_words("$["), expression=position), expression=_words("]"))
    listed = _words("[" + ",".join(map(str, values)) + "]")
    return sql.big(_call("JSON_VALUE", listed, path))


def _is_whole(value: Sql) -> Sql:
    """`person.WHOLE` without regular expressions."""
    digits = sql.case([(_like(value, "-%"), _call("SUBSTRING", value, sql.num(2), _ALL))], value.copy())
    return sql.conjunction(
        _only(digits, "0-9"), exp.Paren(this=exp.or_(_same_text(digits.copy(), "0"), _like(digits, "[1-9]%")))
    )


def _sha256(value: Sql) -> Sql:
    """Of the bytes of UTF-8, which texts have in this collation."""
    written = exp.Collate(this=exp.Paren(this=value), expression=exp.Var(this=_UTF8))
    stored = exp.cast(written, exp.DataType.build("VARCHAR(MAX)", dialect="tsql"))
    digest = _call("HASHBYTES", exp.Literal.string("SHA2_256"), stored)
    return _call("LOWER", _call("CONVERT", exp.Var(this="VARCHAR(64)"), digest, sql.num(2)))


class _Tsql(sql.Dialect):
    """What sqlglot writes otherwise than T-SQL reads, or than whole numbers need."""

    def sql(self, tree: Sql) -> str:
        return _rewritten(tree.copy()).sql(dialect="tsql")


def _rewritten(tree: Sql) -> Sql:
    """From the leaves up, so that what is rewritten may hold what was."""
    whole = exp.Paren(this=tree)
    for node in reversed(list(whole.walk(bfs=True))):
        if isinstance(node, exp.IntDiv):  # whole numbers divide without a detour through floats
            node.replace(exp.Div(this=sql.big(node.this), expression=node.expression, typed=True, safe=False))
        elif isinstance(node, exp.Count):  # COUNT ends at 2^31
            node.replace(exp.Anonymous(this="COUNT_BIG", expressions=[node.this]))
        elif isinstance(node, exp.Sum):  # SUM ends a statement at 2^63; here it stops there
            total = exp.Sum(this=exp.cast(node.this, exp.DataType.build("DECIMAL(38, 0)")))
            beyond = exp.GT(this=total, expression=sql.num(LARGEST_SUM))
            node.replace(sql.case([(beyond, sql.num(LARGEST_SUM))], total.copy()))
        elif isinstance(node, exp.Least | exp.Greatest):  # functions of the newest versions alone
            kind = exp.LT if isinstance(node, exp.Least) else exp.GT
            best: Sql = node.this.copy()
            for other in node.expressions:
                first = exp.or_(other.copy().is_(exp.Null()), kind(this=best.copy(), expression=other.copy()))
                best = sql.case([(first, best)], other.copy())
            node.replace(best)
    rewritten: Sql = whole.this
    return rewritten


DIALECT = _Tsql(
    name="tsql",
    is_nan=lambda number: sql.num(1).eq(sql.num(0)),  # its floats are numbers
    read_number=_read_number,
    look_up=_look_up,
    # two bytes a letter; LEN would not count blanks at the end
    length=lambda value: sql.quotient(_call("DATALENGTH", value), sql.num(2)),
    is_date=_is_date,
    day=_day,
    same_text=_same_text,
    as_text=_as_text,
    without_zeros=_without_zeros,
    is_whole=_is_whole,
    contains=lambda value, letter: _like(value, f"%{letter}%"),
    sha256=_sha256,
    join_values=False,
)


# -- the engine ---------------------------------------------------------------------------------


class MssqlEngine(StatementEngine):
    """Push-down to SQL Server through ODBC, in one connection that can only read."""

    name = "mssql"
    dialect = DIALECT
    _link: _Link

    def __init__(
        self, connect: Callable[[], Any], table: tuple[str, ...], domain: Domain, *, shortcuts: bool = True
    ) -> None:
        """`connect` opens a connection of the Python database interface; `table` is its name, with its schema."""
        self._table = table
        super().__init__(_Link(connect), f"table '{'.'.join(table)}'", domain, shortcuts=shortcuts)

    def _described(self) -> Storage:
        """By the catalogue."""
        *schema, name = self._table
        asked = "SELECT COLUMN_NAME, DATA_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE FROM INFORMATION_SCHEMA.COLUMNS "
        asked += "WHERE TABLE_NAME = ?" + " AND TABLE_SCHEMA = ?" * len(schema[-1:])
        values = [name, *schema[-1:]]
        rows = reworded(lambda: self._link.rows(asked, values), ConnectionError, lambda _: _UNREACHABLE)
        if not rows:
            raise DataError(f"there is no {self._title} that this user may read; check the name, or GRANT SELECT.")
        types = {str(row[0]): _type(*row[1:]) for row in rows}
        columns = {}
        for column in self._declared.stored_names:
            kind = coding.kind_of(self._declared, column, types.get(column), _KINDS, "bits")
            columns[column] = Held(column, kind, types[column])
        return Storage(exp.table_(name, db=schema[-1] if schema else None, quoted=True), columns)


class _Link:
    """One connection, whose statements belong to one transaction, which sees the rows as they were when it began."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect, self._lock, self._process = connect, threading.RLock(), os.getpid()
        self._connection: Any = None
        self._version = FIXED

    @property
    def version(self) -> int:
        with self._lock:
            reworded(self._connected, Exception, lambda _: _UNREACHABLE)
        return self._version

    def numbers(self, statement: str, names: Sequence[str], pause: bool = False) -> Answer:
        rows = self.rows(statement, [])
        return {name: np.array([row[at] for row in rows], np.int64) for at, name in enumerate(names)}

    def rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """The rows of a statement."""
        with self._lock:
            try:
                cursor = self._connected().cursor()
                try:
                    return list(cursor.execute(statement, *values).fetchall())
                finally:
                    with suppress(Exception):  # an interrupt stays one
                        cursor.close()
            except DataError:
                raise
            except Exception:  # the server's words may quote a row: raised anew outside this block
                self._connection = None
        raise ConnectionError("SQL Server did not answer")  # the session tells the analyst, without these words

    def _connected(self) -> Any:
        if os.getpid() != self._process:
            raise DataError(
                "a forked process cannot use the connection of the one it came from; open the table in its own."
            )
        if self._connection is None:
            connection = self._connect()
            _isolate(connection)
            self._version += 1
            self._connection = connection  # last: an interrupt must not leave other rows under the number of before
        return self._connection

    def close(self) -> None:
        if self._connection is not None and os.getpid() == self._process:  # a forked copy leaves it to its parent
            self._connection.close()
            self._connection = None


def _isolate(connection: Any) -> None:
    """Rows must stay as they were while they are read: one that moves meanwhile could be counted twice.

    And no number of them may end a statement.
    """
    connection.execute(_UNLIMITED)
    asked = "SELECT name, snapshot_isolation_state FROM sys.databases WHERE database_id = DB_ID()"
    ((database, isolated),) = connection.execute(asked).fetchall()
    if isolated != 1:
        name = exp.to_identifier(str(database), quoted=True).sql(dialect="tsql")
        raise DataError(
            f"database '{database}' does not keep rows as they were for whoever reads them, so that one that moves "
            f"could be counted twice; its owner lets it with ALTER DATABASE {name} SET ALLOW_SNAPSHOT_ISOLATION ON."
        )
    connection.commit()  # the next transaction is the one
    connection.execute("SET TRANSACTION ISOLATION LEVEL SNAPSHOT")


@dataclass(frozen=True)
class MssqlSource(Source):
    """A table of a SQL Server: mssql://user:password@host:1433/database?table=schema.name."""

    host: str
    port: int | None
    database: str
    table: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    settings: tuple[tuple[str, str], ...] = ()  # of the driver

    kind = "mssql"

    @classmethod
    def parse(cls, text: str) -> MssqlSource:
        """Read an address; what is wrong with it is told without its words, one of which is a password."""
        how = "write mssql://user:password@host:1433/database?table=schema.name"
        try:
            parts = urlsplit(text, allow_fragments=False)
            settings = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            table = tuple(part for part in settings.pop("table", "").split(".") if part)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, table, settings = None, None, (), {}
        database = "" if host is None else unquote(parts.path.strip("/"))
        if not host or not _HOST.fullmatch(host) or not database or not 1 <= len(table) <= 2:
            raise DataError(f"the address of the SQL Server table is incomplete; {how}.")
        if not all(name in _SETTINGS and value in _SETTINGS[name] for name, value in settings.items()):
            allowed = ", ".join(f"{name}={'|'.join(values)}" for name, values in _SETTINGS.items())
            raise DataError(f"beside table= the address of a SQL Server table takes {allowed}, and nothing else.")
        user, password = (None if word is None else unquote(word) for word in (parts.username, parts.password))
        return cls(host, port, database, table, user, password, tuple(settings.items()))

    @property
    def name(self) -> str:
        return self.table[-1]

    @property
    def address(self) -> str:
        return f"mssql://{self.host}:{self.port or 1433}/{self.database}?table={'.'.join(self.table)}"

    @property
    def title(self) -> str:
        return f"table '{'.'.join(self.table)}' of database '{self.database}'"

    @property
    def ledger(self) -> Path:
        raise DataError("a table on a server has no ledger beside it; name one, as ledger='patients.ledger'.")

    def open(self, domain: Domain) -> MssqlEngine:
        return MssqlEngine(connector(self), self.table, domain)


def _type(stored: str, precision: int | None = None, scale: int | None = None) -> str:
    """How a column is stored; of decimals with their digits, all and after the point."""
    return f"decimal({precision}, {scale or 0})" if _KINDS.get(stored) is Kind.DECIMAL and precision else str(stored)


def connector(source: MssqlSource) -> Callable[[], Any]:
    """Opens connections through the ODBC driver of this machine, which promise to read only."""

    def quoted(value: str) -> str:
        return "{" + value.replace("}", "}}") + "}"

    def connect() -> Any:
        try:
            import pyodbc
        except ImportError:
            raise DataError('SQL Server needs pyodbc; install it with pip install "privet[mssql]".') from None
        driver = next((name for name in reversed(pyodbc.drivers()) if "SQL Server" in name), None)
        if driver is None:
            raise DataError("this machine has no ODBC driver for SQL Server; install Microsoft's msodbcsql18.")
        server = f"{source.host},{source.port or 1433}"
        parts = {"DRIVER": quoted(driver), "SERVER": server, "DATABASE": quoted(source.database)}
        who = {"UID": quoted(source.user or ""), "PWD": quoted(source.password or "")}
        parts |= who if source.user else {"Trusted_Connection": "yes"}
        parts |= {**dict(source.settings), "ApplicationIntent": "ReadOnly", "APP": "privet"}
        connection = pyodbc.connect(";".join(f"{key}={value}" for key, value in parts.items()), readonly=True)
        connection.timeout = 0  # none: how long a statement takes depends on the number of rows
        return connection

    return connect
