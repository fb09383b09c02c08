"""The PostgreSQL engine: one statement a question, with the right to read alone.

Nothing is written on the server: statements run in a transaction that can only read, and counts are all that comes
back. The source is not read when it is opened, so every expression has a value for every row that the
server can hold: PostgreSQL ends a statement at the first text that is no number, number that fits no double, and
quotient too close to 0. What it says then may quote the row, and is never shown.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import sqlglot
from psycopg import conninfo
from sqlglot import exp

from privet.address_text import postgres_table
from privet.errors import DataError, LedgerError
from privet.kernel.column import NUMBER, Column, Nominal, Numeric
from privet.kernel.date import DATE
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import reworded
from privet.kernel.engines.postgres.link import Link, quoted, with_defaults
from privet.kernel.engines.sql import coding, sql
from privet.kernel.engines.sql.coding import Held, Kind
from privet.kernel.engines.sql.sql import Sql
from privet.kernel.engines.sql.statement import Source, StatementEngine, Storage
from privet.kernel.person import WHOLE

_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_KEYS = 500  # of one aggregation: PostgreSQL takes 4096 of them, and 1664 columns
_COMPARED = 32  # declared values: more are joined
_STORED_APART = 2**13  # bytes of a text: longer ones do not lie in the row
_AT_HAND = 2**15  # cells: their hash tables take some 2 MB
_DIGITS = 300  # numbers with more digits before or after the point lie beyond all bounds, or are as good as 0
_TINY = f"1e-{_DIGITS}"
_TOO_LARGE = "1.797693134862315807e308"  # for a double: it would be an error

# -- the dialect --------------------------------------------------------------------------------

_BLANK_SIGN = r"^[ \t]*[+-]?"
_PLAIN = _BLANK_SIGN + r"([0-9]{1,15}[.]?[0-9]{0,15}|[.][0-9]{1,15})[ \t]*$"


def _literal(number: str) -> Sql:
    return exp.Literal.number(number)


def _double_of(text: str) -> Sql:
    return sql.double(exp.Literal.string(text))


def _first_match(value: Sql, pattern: str) -> Sql:
    return exp.Anonymous(this="SUBSTRING", expressions=[value.copy(), exp.Literal.string(pattern)])


def _length(value: Sql) -> Sql:
    return exp.Anonymous(this="LENGTH", expressions=[value])


def _read_number(value: Sql) -> Sql:
    """`column.number_of` up to what clamping makes of it: a cast of a text beyond the doubles would fail."""
    cast = sql.double(value.copy())
    large = sql.case([(sql.matches(value, r"^[ \t]*-"), _double_of("-Infinity"))], _double_of("Infinity"))
    digits = _digits(value)
    in_range = sql.case(
        [
            (sql.matches(value, "^[^1-9eE]*([eE]|$)"), sql.double(sql.num(0))),
            (exp.GT(this=digits, expression=sql.num(_DIGITS)), large),
            (exp.LT(this=digits.copy(), expression=sql.num(-_DIGITS)), sql.double(sql.num(0))),
        ],
        cast,
    )
    # CASE inside CASE: the terms of an AND are evaluated in any order
    return sql.case([(sql.matches(value, _PLAIN), cast.copy()), (sql.matches(value, f"^({NUMBER})$"), in_range)])


def _digits(value: Sql) -> Sql:
    """How many digits before the point a number above 0 has; below 0.1, as many zeros after it, negative."""
    whole = _length(_first_match(value, _BLANK_SIGN + "0*([0-9]*)"))
    zeros = exp.Neg(this=_length(_first_match(value, "^[^.]*[.](0*)")))
    mantissa = sql.case([(exp.GT(this=whole, expression=sql.num(0)), whole.copy())], zeros)
    power = _first_match(value, r"[eE][+-]?0*([0-9]*)")
    huge = exp.GT(this=_length(power), expression=sql.num(9))  # more than any text has digits
    read = sql.case([(huge, sql.num(10**9)), (power.copy().neq(exp.Literal.string("")), sql.big(power.copy()))])
    exponent = exp.Coalesce(this=read, expressions=[sql.num(0)])
    signed = sql.case([(sql.matches(value, "[eE]-"), exp.Neg(this=exponent))], exponent.copy())
    return sql.add(signed, mantissa)


def _look_up(values: Sequence[int], index: Sql) -> Sql:
    if not values:
        return sql.big(exp.Null())
    listed = exp.Paren(this=sql.numbers(values))
    return exp.Bracket(this=listed, expressions=[sql.add(index, sql.num(1))], offset=1)  # arrays count from 1


def _sha256(value: Sql) -> Sql:
    """Of the bytes that the database has for a text: to write them in another encoding might fail."""
    written = exp.Anonymous(this="CONVERT_TO", expressions=[value, exp.Anonymous(this="GETDATABASEENCODING")])
    digest = exp.Anonymous(this="SHA256", expressions=[written])
    digits = exp.Anonymous(this="ENCODE", expressions=[digest, exp.Literal.string("hex")])
    return exp.Collate(this=digits, expression=exp.to_identifier("C", quoted=True))


class _Postgres(sql.Dialect):
    """What PostgreSQL needs said otherwise than sqlglot writes it."""

    def sql(self, tree: Sql) -> str:
        tree = tree.copy()
        for whole in list(tree.find_all(exp.IntDiv)):  # whole numbers divide without a detour through decimals
            whole.replace(exp.Div(this=whole.this, expression=whole.expression, typed=True, safe=False))
        for total in list(tree.find_all(exp.Sum)):  # a decimal, which may be larger than every whole number
            total.replace(exp.Least(this=total.copy(), expressions=[_literal(str(2**63 - 1))]))
        for inner in tree.find_all(exp.Subquery, exp.CTE):
            if isinstance(inner.this, exp.Var) or (inner.parent is not None and inner.parent.args.get("recursive")):
                continue
            _fence(inner.this)
        return tree.sql(dialect=self.name)


def _fence(inner: Sql) -> Sql:
    """An inner query whose expressions are computed once for a row.

    The planner would write them out wherever their values are used, and again one layer further out: OFFSET keeps it
    from that. A 0 that is no text would forbid parallel workers.
    """
    inner.set("offset", exp.Offset(expression=exp.Literal.string("0")))
    return inner


DIALECT = _Postgres(
    name="postgres",
    is_nan=lambda number: number.eq(_double_of("NaN")),
    read_number=_read_number,
    look_up=_look_up,
    length=lambda value: exp.Anonymous(this="OCTET_LENGTH", expressions=[value]),
    is_date=lambda value: sql.matches(value, f"^({DATE})$"),
    day=sql.days_since_epoch,
    as_text=lambda value: exp.cast(value, exp.DataType.Type.TEXT),
    is_whole=lambda value: sql.matches(value, f"^({WHOLE})$"),
    sha256=_sha256,
)

# -- one pass -----------------------------------------------------------------------------------


def in_few_passes(tree: exp.Query, cells: int) -> exp.Query:
    """A UNION ALL of GROUP BYs over the same rows as aggregations by several keys at once, each of so many cells.

    The branches must count or sum the same, each by a key that no row lacks. As GROUPING SETS of keys they read
    the rows once, and need no copy of them. Where their cells together are more than the processor has at hand, every
    row would wait for memory once for each key. Then fewer keys at a time are faster, although the server writes
    the numbered rows down, because several aggregations read them: a third less for 4096 parts of 16 cells.
    """
    branches = sql.branches(tree)
    if len(branches) == 1:
        return tree
    keys = max(1, min(_KEYS, _AT_HAND // cells))
    passes: list[exp.Query] = [_pass(branches[i : i + keys]) for i in range(0, len(branches), keys)]
    return functools.reduce(lambda one, other: exp.union(one, other, distinct=False), passes)


def _pass(branches: Sequence[exp.Select]) -> exp.Select:
    first = branches[0]
    aggregates = [value for value in first.selects if value.alias not in ("q", "k")]
    needed = sorted({column.name for value in aggregates for column in value.find_all(exp.Column)})
    values = [{value.alias: value.this for value in branch.selects} for branch in branches]
    keys = [sql.col(f"k{i}") for i in range(len(branches))]
    inner = exp.select(*(own["k"].as_(key.name) for own, key in zip(values, keys, strict=True)))
    inner = inner.select(*(sql.col(name) for name in needed)).from_(first.args["from_"].this.copy())
    if where := first.args.get("where"):
        inner = inner.where(where.this.copy())
    number = sql.case([(key.is_(exp.Null()).not_(), own["q"]) for own, key in zip(values, keys, strict=True)])
    key = exp.Coalesce(this=keys[0].copy(), expressions=[key.copy() for key in keys[1:]])
    tree = exp.select(number.as_("q"), key.as_("k"), *(value.copy() for value in aggregates))
    sets = exp.GroupingSets(expressions=[exp.Paren(this=key.copy()) for key in keys])
    tree = tree.from_(inner.subquery("keyed"))
    tree.set("group", exp.Group(expressions=[sets]))
    return tree


# -- stored columns -----------------------------------------------------------------------------

_KINDS = {
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext"), Kind.TEXT),
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    "numeric": Kind.DECIMAL,
    "float4": Kind.SINGLE,
    "float8": Kind.FLOAT,
    "bool": Kind.BOOLEAN,
    **dict.fromkeys(("date", "timestamp"), Kind.DAY),
    "timestamptz": Kind.INSTANT,
}


def stored(source: Sql, where: Sql | None, domain: Domain, columns: Mapping[str, Held]) -> exp.Select:
    """The declared columns alone, so that the right to read these is enough, in types that no row can break."""
    declared: list[Column | None] = [*domain, *([] if domain.person is None else [None])]
    values = [
        _readable(name, column, columns[name]).as_(name, quoted=True)
        for name, column in zip(domain.stored_names, declared, strict=True)
    ]
    tree = exp.select(*values).from_(source)
    return tree if where is None else tree.where(where)


def _readable(name: str, column: Column | None, held: Held) -> Sql:
    """A stored column as it is read; None is that of persons."""
    value = sql.col(name)
    if held.kind is Kind.TEXT:
        # Equal means equal in every byte, whatever the column's collation says; blanks that pad a char(n) go.
        as_text: Sql = exp.cast(value, exp.DataType.Type.TEXT)
        if isinstance(column, Nominal) and len(column.values) > _COMPARED:
            as_text = _short(as_text, 1 + max(len(declared) for declared in column.texts))
        return exp.Collate(this=as_text, expression=exp.to_identifier("C", quoted=True))
    if held.type == "numeric":
        nan = exp.cast(exp.Literal.string("NaN"), exp.DataType.Type.DECIMAL)
        if not isinstance(column, Numeric):
            return exp.Nullif(this=value, expression=nan)
        branches: list[tuple[Sql, Sql]] = [
            (value.copy().eq(nan), _double_of("NaN")),  # first: it is larger than every number
            (exp.GTE(this=value.copy(), expression=_literal(_TOO_LARGE)), _double_of("Infinity")),
            (exp.LTE(this=value.copy(), expression=exp.Neg(this=_literal(_TOO_LARGE))), _double_of("-Infinity")),
            (_below(value, _literal(_TINY)), sql.double(sql.num(0))),
        ]
        return sql.case(branches, sql.double(value))
    if held.type == "float8" and isinstance(column, Numeric):
        # a step of the grid divides it, and a quotient too close to 0 would be an error
        return sql.case([(_below(value, sql.double(_literal(_TINY))), sql.double(sql.num(0)))], value)
    return value


def _short(value: Sql, letters: int) -> Sql:
    """A text, or its first letters where they are enough to know that it is no declared one.

    Many declared values are joined by a hash, for which the server would load all of a text: up to 1 GB.
    """
    first = exp.Anonymous(this="LEFT", expressions=[value.copy(), sql.num(letters)])
    bytes_of = exp.Anonymous(this="OCTET_LENGTH", expressions=[value.copy()])
    return sql.case([(exp.GT(this=bytes_of, expression=sql.num(max(_STORED_APART, 4 * letters))), first)], value)


def _below(value: Sql, bound: Sql) -> Sql:
    return exp.LT(this=exp.Abs(this=value.copy()), expression=bound)


# -- the engine ---------------------------------------------------------------------------------


class PostgresEngine(StatementEngine):
    """Push-down to PostgreSQL, through one connection that can only read."""

    name = "postgres"
    dialect = DIALECT
    _link: Link

    def __init__(self, source: PostgresSource, domain: Domain, *, shortcuts: bool = True) -> None:
        """Open the table and check that it can be read as the domain says; no row is read."""
        self._source, self._link = source, Link(source.parameters)
        try:
            super().__init__(self._link, source.title, domain, shortcuts=shortcuts)
            nobody = self._stored.rows.this.where(exp.false()).subquery("stored")
            _rehearse(self._link, source, domain, self._fits(nobody))
        except BaseException:
            self._link.close()  # nothing else is there yet
            raise

    def _described(self) -> Storage:
        there, table, known = _listed(self._link, self._source)
        columns = described(self._link, self._source, self._declared, there)
        declared = stored(table, known, self._declared, columns)
        return Storage(declared.subquery("stored"), columns)

    def _in_passes(self, tree: exp.Query, cells: int) -> exp.Query:
        return in_few_passes(tree, cells) if self._shortcuts else tree

    def _written(self, query: exp.Select) -> Sql:
        # as text: to write 200 columns anew takes longer than to count some thousand rows of them
        return exp.Var(this=DIALECT.sql(_fence(query.copy())))

    # -- for the owner's inspection alone ---------------------------------------------------

    def exact_fit(self) -> tuple[int, int]:
        both = [self._stored.rows.copy(), self._coded.subquery("coded")]
        counted = [self._fetch(exp.select(exp.Count(this=exp.Star()).as_("n")).from_(rows)) for rows in both]
        everything, fitting = (int(answer["n"][0]) for answer in counted)
        return everything, fitting

    def exact_values(self, column: str) -> Iterator[tuple[Any, int]]:
        value, value_of = coding.inspected(sql.col(column), self._stored.columns[column].kind, DIALECT)
        tree = exp.select(value, exp.Count(this=exp.Star())).from_(self._stored.rows.copy())
        answer = self._link.run(DIALECT.sql(tree.group_by(value.copy())), lambda cursor: cursor.fetchall())
        yield from ((value_of(stored), rows) for stored, rows in answer)


# -- what may stand in the way, told to whoever opens the table -----------------------------------


def _listed(link: Link, source: PostgresSource) -> tuple[set[str], Sql, Sql | None]:
    """The names of the columns, the table as a FROM item, and a condition for the rows of one that has parts.

    A part that is attached, or loaded into a new file, shows at once even in a transaction that began before, and
    people who were moved into it would be seen twice. So what the transaction sees of the catalogue decides: parts that
    it does not know, or knows by another file, are left out.
    """
    rows = link.rows(
        "SELECT a.attname::text, c.oid::int8, c.relkind IN ('r', 'p'), "
        "c.relkind = 'p' OR EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid) "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "LEFT JOIN pg_catalog.pg_attribute a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE n.nspname::text = %s AND c.relname::text = %s",
        (source.schema, source.table),
    )
    if not rows:
        raise DataError(f"there is no {source.title} any more; it was dropped, renamed or moved since it was opened.")
    _, number, is_table, divided = rows[0]
    table, known = source.tree, None
    if is_table and divided:
        known = sqlglot.parse_one(_KNOWN.format(number), read="postgres")
    elif is_table:
        table.set("only", True)
    return {name for name, *_ in rows}, table, known


def described(link: Link, source: PostgresSource, domain: Domain, there: set[str]) -> dict[str, Held]:
    """How the declared columns are stored, of those that are there; no row is read."""
    for name in domain.stored_names:
        if name not in there:
            raise DataError(
                f"{source.title} has no column '{name}', which the domain declares; check the domain file (upper and "
                "lower case differ)."
            )
    # The answer to a question about no rows says which types a domain (in the sense of SQL) or a view stands for.
    tree = exp.select(*(sql.col(name) for name in domain.stored_names)).from_(source.tree).where(exp.false())
    numbers = reworded(
        lambda: link.run(DIALECT.sql(tree), lambda cursor: [column.type_code for column in cursor.description or ()]),
        psycopg.Error,
        lambda error: _refused(error, source, link),
    )
    listed = link.rows(
        "SELECT oid::int8, typname::text, typtype::text, pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type "
        "WHERE oid = ANY(%s::oid[])",
        (sorted(set(numbers)),),
    )
    types = {number: of for number, *of in listed}
    columns = {}
    for name, number in zip(domain.stored_names, numbers, strict=True):
        of, kind, title = types[number]
        held = Kind.TEXT if kind == "e" else _KINDS.get(of)
        words = coding.unread(domain, name, held)
        if held is None or words is not None:
            raise DataError(
                f"column '{name}' has type {title}; {words}: cast it in a view, or take it out of the domain file."
            )
        columns[name] = Held(name, held, of)
    return columns


_KNOWN = (
    "tableoid IN (WITH RECURSIVE parts(part) AS (SELECT {}::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i "
    "JOIN parts ON i.inhparent = parts.part) SELECT c.oid FROM pg_catalog.pg_class c JOIN parts ON c.oid = parts.part "
    "WHERE c.relfilenode = pg_catalog.pg_relation_filenode(c.oid))"
)


def _refused(error: psycopg.Error, source: PostgresSource, link: Link) -> str:
    if error.sqlstate == "42501":
        return (
            f"user '{link.user}' may not read the declared columns of {source.title}; their owner lets it with "
            f"GRANT SELECT ON {source.quoted} TO {quoted(link.user)}."
        )
    return f"cannot read {source.title}; check that it can be selected from."


def _rehearse(link: Link, source: PostgresSource, domain: Domain, tree: Sql) -> None:
    """Ask for the codes of no rows: a statement that the server does not take is found before anyone pays."""
    for column in domain:
        if any(_UNWRITABLE.search(value) for value in getattr(column, "texts", ())):
            raise DataError(f"column '{column.name}' declares a value that no PostgreSQL text can have; take it out.")

    def problem(error: psycopg.Error) -> str:
        if error.sqlstate == "42501":  # of a table with parts it asks in which a row lies, which is no declared column
            return _refused(error, source, link)
        return (
            f"the server does not take the statement that codes {source.title} (SQLSTATE {error.sqlstate or '08000'}); "
            "declare fewer columns, and only values that the database's encoding can write."
        )

    reworded(lambda: link.run(DIALECT.sql(tree), lambda cursor: None), psycopg.Error, problem)


# -- what PostgreSQL reads: a table or view, by its address -------------------------------------

# An address may say otherwise: machine code for a statement that is used once costs more than it saves, a row with its
# keys costs four times what PostgreSQL thinks to be passed on by a parallel worker, the groups of some thousand parts
# need no file, and rows are not kept as they were for an analyst who is gone.
_DEFAULTS = "-c jit=off -c parallel_tuple_cost=0.4 -c work_mem=64MB -c idle_in_transaction_session_timeout=5min"
_PARAMETERS = {
    "application_name": "privet",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}


@dataclass(frozen=True)
class PostgresSource(Source):
    """A table or view of a PostgreSQL database."""

    parameters: Mapping[str, str] = field(repr=False)  # of the connection, the password among them
    table: str
    schema: str = ""

    kind = "postgres"

    @classmethod
    def parse(cls, text: str) -> PostgresSource:
        """From postgresql://user@host:5432/db?table=schema.t; all parameters but `table` are those of libpq.

        >>> PostgresSource.parse("postgresql://ann:secret@db.example/hospital?table=care.stays")
        PostgresSource(table='stays', schema='care')
        """
        server, schema, table = postgres_table(text)
        parameters = reworded(
            lambda: conninfo.conninfo_to_dict(server),
            psycopg.Error,
            lambda _: (
                "the address is not one that PostgreSQL knows; write postgresql://USER@HOST:5432/DATABASE?"
                "table=NAME, with % codes for the signs : / ? # [ ] @ & = % in names and passwords."
            ),
        )
        given = {name: str(value) for name, value in parameters.items() if value is not None}
        options = f"{_DEFAULTS} {given.get('options', '')}"
        return cls({**_PARAMETERS, **given, "options": options, "client_encoding": "utf8"}, table, schema)

    @property
    def name(self) -> str:
        return self.table

    @property
    def title(self) -> str:
        schema = f"{self.schema}." if self.schema else ""
        database = with_defaults(self.parameters)["dbname"]
        return f"table '{schema}{self.table}' of database '{database}'"

    @property
    def quoted(self) -> str:
        return ".".join(quoted(name) for name in (self.schema, self.table) if name)

    @property
    def tree(self) -> exp.Expr:
        """The table as a FROM item."""
        return exp.table_(self.table, db=self.schema or None, quoted=True)

    @property
    def address(self) -> str:
        of = with_defaults(self.parameters)
        server = f"{quote(of['host'], safe='[]:,')}:{of['port']}"
        table = ".".join(name if name.isidentifier() else quoted(name) for name in (self.schema, self.table) if name)
        return f"postgresql://{server}/{quote(of['dbname'], safe='')}?table={quote(table, safe='.')}"

    @property
    def ledger(self) -> Path:
        raise LedgerError(
            f'there is no place for a ledger beside {self.title}; say where it is, as ledger="{self.table}.ledger".'
        )

    def open(self, domain: Domain) -> PostgresEngine:
        return PostgresEngine(self, domain)


def canonical(source: PostgresSource) -> PostgresSource:
    """The source under the schema that holds its table."""
    link = Link(source.parameters)
    try:
        schemas = link.rows(
            "SELECT n.nspname::text, pg_catalog.has_schema_privilege(n.oid, 'USAGE') FROM pg_catalog.pg_class c "
            "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname::text = %s "
            "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') "
            "AND CASE WHEN %s::text = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname::text = %s END",
            (source.table, source.schema, source.schema),
        )
        if not schemas:
            raise DataError(
                f"there is no {source.title} for user '{link.user}'; check both names (upper and lower case differ), "
                "and write table=SCHEMA.NAME unless its schema is searched."
            )
        ((schema, usable),) = schemas
        if not usable:
            raise DataError(
                f"user '{link.user}' may not enter the schema '{schema}'; its owner lets it with "
                f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(link.user)}."
            )
    finally:
        link.close()
    return PostgresSource(source.parameters, source.table, schema)
