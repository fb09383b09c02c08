"""The compiler from queries to SQL, for every SQL engine.

Statements are built as syntax trees (sqlglot), never as text: identifiers are
quoted, values are literals of the tree, and no word of an analyst reaches it. After
the coding step all columns are integers named by position: `c3` is the code of
column 3, `g3` its grid index, `node` the part of a row. Every expression is total:
it has a value, or NULL, for any row, so that no row can make a statement fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from privet.kernel.additive import EXP_BITS, EXP_ONE, RESIDUAL_GRID, AdditiveModel, exp_factors
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines import contract
from privet.kernel.engines.contract import LARGEST_SUM, Counts, index_count
from privet.kernel.person import WHOLE
from privet.kernel.rows import COIN_PRIME, Condition, Divide, Keep, Scatter

Sql = exp.Expr

YEARS = ("0001-01-01", "9999-12-31")  # the first and the last day that is a date
_FEW = 8  # cases: more are looked up in a list


@dataclass(frozen=True)
class Dialect:
    """Where engines differ: these functions build the trees, sqlglot writes the rest."""

    name: str
    is_nan: Callable[[Sql], Sql]
    read_number: Callable[[Sql], Sql]  # the number of a text as `column.number_of` reads it, or NULL; it never fails
    look_up: Callable[[Sequence[int], Sql], Sql]  # the i-th of a list of integers, i from 0
    length: Callable[[Sql], Sql]  # of a text, in bytes: as many as characters where it may be a number
    is_date: Callable[
        [Sql], Sql
    ]  # is a text a date, as `date.DATE` says? A cast of its ten letters to DATE may be NULL
    # the days from 1970-01-01 to a stored date or time, of UTC if it has a zone; NULL outside the years 0001 to 9999
    day: Callable[[Sql, bool], Sql]
    same_text: Callable[[Sql, str], Sql] = lambda value, declared: value.eq(exp.Literal.string(declared))
    as_double: Callable[[Sql], Sql] = lambda value: double(value)  # of a stored number; it never fails
    as_text: Callable[[Sql], Sql] = lambda value: text(value)  # of a stored text or whole number
    without_zeros: Callable[[Sql], Sql] = lambda value: _trimmed(_trimmed(value, "0"), ".")  # of a text with one point
    # is a text a whole number, as `person.WHOLE` says? And the SHA-256 of a text, in hexadecimal digits
    is_whole: Callable[[Sql], Sql] = lambda value: matches(value, rf"\A({WHOLE})\z")
    sha256: Callable[[Sql], Sql] = lambda value: exp.SHA2(this=value, length=num(256))
    contains: Callable[[Sql, str], Sql] = lambda value, letter: exp.Like(
        this=value.copy(), expression=exp.Literal.string(f"%{letter}%")
    )
    join_values: bool = True  # long lists of declared values are joined; without it they are cases

    def sql(self, tree: Sql) -> str:
        return tree.sql(dialect=self.name)


def _trimmed(value: Sql, letter: str) -> Sql:
    return exp.Trim(this=value, expression=exp.Literal.string(letter), position="TRAILING")


def matches(value: Sql, pattern: str) -> Sql:
    """Does a regular expression match a part of a text?"""
    return exp.RegexpLike(this=value.copy(), expression=exp.Literal.string(pattern))


def col(name: str) -> Sql:
    return exp.column(name, quoted=True)


def num(value: int | float) -> Sql:
    return exp.Neg(this=exp.Literal.number(repr(-value))) if value < 0 else exp.Literal.number(repr(value))


def case(branches: Sequence[tuple[Sql, Sql]], default: Sql | None = None) -> Sql:
    if not branches:
        return default or exp.Null()
    # not with `when`, which copies all branches before each: there may be thousands
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in branches], default=default)


def numbers(values: Sequence[int]) -> Sql:
    """A list of whole numbers."""
    return exp.Array(expressions=[num(value) for value in values])


def number_where(matches: Sql, value: Sql) -> Sql:
    """The number that a text spells where a condition says that it spells one, else NULL."""
    return case([(matches, exp.TryCast(this=value.copy(), to=exp.DataType.build("DOUBLE"), safe=True))])


def add(*terms: Sql) -> Sql:
    return _fold(exp.Add, terms)


def joined(*terms: Sql) -> Sql:
    """Texts, one after the other."""
    return _fold(exp.DPipe, terms)


def conjunction(*terms: Sql) -> Sql:
    return _fold(exp.And, terms) if terms else exp.true()


def _fold(kind: type[exp.Binary], terms: Sequence[Sql]) -> Sql:
    """A balanced tree: hundreds of terms must not nest hundreds deep."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return kind(this=_group(_fold(kind, terms[:half])), expression=_group(_fold(kind, terms[half:])))


def _group(tree: Sql) -> Sql:
    return exp.Paren(this=tree) if isinstance(tree, exp.Binary) else tree


def times(left: Sql, right: Sql) -> Sql:
    return exp.Mul(this=_group(left), expression=_group(right))


def quotient(left: Sql, right: Sql) -> Sql:
    """Whole division of numbers at or above 0."""
    return exp.IntDiv(this=_group(left), expression=_group(right))


def remainder(left: Sql, divisor: int) -> Sql:
    return exp.Mod(this=_group(left), expression=num(divisor))


def big(tree: Sql) -> Sql:
    return exp.cast(tree, exp.DataType.Type.BIGINT)


def double(tree: Sql) -> Sql:
    return exp.cast(tree, exp.DataType.Type.DOUBLE)


def text(tree: Sql) -> Sql:
    return exp.cast(tree, exp.DataType.Type.VARCHAR)


def days_since_epoch(value: Sql, zoned: bool) -> Sql:
    """`Dialect.day` where dates can be subtracted, but for the infinite ones that some engines have."""
    day = exp.cast(in_utc(value) if zoned else value, "DATE")
    first, last, epoch = (exp.cast(exp.Literal.string(each), "DATE") for each in (*YEARS, "1970-01-01"))
    inside = exp.Between(this=day, low=first, high=last)
    return case([(inside, exp.Sub(this=day.copy(), expression=epoch))])


def in_utc(value: Sql) -> Sql:
    """The time without a zone that a time with one is in UTC."""
    return exp.AtTimeZone(this=value, zone=exp.Literal.string("UTC"))


def columns(domain: Domain) -> list[str]:
    """The names of all codes, then of all grid indices."""
    grids = [f"g{i}" for i, column in enumerate(domain) if isinstance(column, Numeric)]
    return [*(f"c{i}" for i in range(len(domain.columns))), *grids]


# -- parts: which row lies where ----------------------------------------------------------------


def node(step: Keep | Divide | Scatter, parent: Sql, domain: Domain, dialect: Dialect) -> Sql:
    """The part of a row after a step, from its part before it; NULL where it is in none."""
    position = {name: i for i, name in enumerate(domain.names)}
    if isinstance(step, Scatter):
        return add(times(big(parent), num(step.parts)), _coin(step, domain))
    if isinstance(step, Keep):
        if any(condition.codes == () for condition in step.conditions):
            return exp.cast(exp.Null(), exp.DataType.Type.INT)
        conditions = [_holds(condition, position[condition.column]) for condition in step.conditions]
        return case([(conjunction(*conditions), _kept(step.parts, parent, dialect))])
    children = step.children(domain)
    branches = []
    for split, parts in step.splits.groups():
        if split is None:
            continue
        i = position[split.column]
        if split.thresholds is None:
            child = col(f"c{i}")
        else:
            grid = col(f"g{i}")
            cuts = [(exp.LT(this=grid, expression=num(t)), num(k)) for k, t in enumerate(split.thresholds)]
            beyond = len(split.thresholds)
            child = case([(exp.LT(this=grid.copy(), expression=num(0)), num(beyond + 1)), *cuts], num(beyond))
        branches.append((parent.isin(*map(num, parts.tolist())), child))
    return add(dialect.look_up((np.cumsum(children) - children).tolist(), parent), case(branches))


def _holds(condition: Condition, at: int) -> Sql:
    """The condition in SQL, on the column at this position."""
    if condition.codes is not None:
        return col(f"c{at}").isin(*map(num, condition.codes))
    low, high = (num(bound) for bound in (condition.low, condition.high))
    return conjunction(exp.GTE(this=col(f"g{at}"), expression=low), exp.LT(this=col(f"g{at}"), expression=high))


def in_a_part() -> Sql:
    """The condition that a row lies in a part."""
    return col("node").is_(exp.Null()).not_()


def _kept(parts: Sequence[int], parent: Sql, dialect: Dialect) -> Sql:
    """The new number of a part that is kept, NULL of any other: a few by cases, many by their place in a list."""
    if len(parts) <= _FEW:
        return case([(parent.eq(num(old)), num(new)) for new, old in enumerate(parts)])
    places = [-1] * (max(parts) + 1)
    for new, old in enumerate(parts):
        places[old] = new
    inside = exp.LT(this=parent.copy(), expression=num(len(places)))
    return case([(inside, exp.Nullif(this=dialect.look_up(places, parent), expression=num(-1)))])


def _coin(step: Scatter, domain: Domain) -> Sql:
    """The hash of `Scatter` in whole numbers below 2^63."""
    *columns, square, last = step.coefficients(domain)
    terms = []
    for i, (factor, constant) in enumerate(columns):
        cell = big(col(f"g{i}" if isinstance(domain.columns[i], Numeric) else f"c{i}"))
        terms.append(remainder(add(times(add(cell, num(1)), num(factor)), num(constant)), COIN_PRIME))
    hashed = _squared(_squared(remainder(add(*terms), COIN_PRIME), *square), *last)
    return quotient(times(hashed, num(step.parts)), num(COIN_PRIME))


def _squared(value: Sql, factor: int, constant: int) -> Sql:
    square = remainder(times(value, value.copy()), COIN_PRIME)
    return remainder(add(times(square, num(factor)), num(constant)), COIN_PRIME)


# -- queries: one statement each, and how to read its answer ------------------------------------

Answer = Mapping[str, Any]  # column name -> array of integers


def counts(query: contract.CountQuery, rows: exp.From, domain: Domain) -> exp.Query:
    """One GROUP BY on a packed key per group of columns, all in one statement."""
    return _union(
        [
            _grouped(rows, number, _pack(col("node"), group, domain)).select(exp.Count(this=exp.Star()).as_("n"))
            for number, group in enumerate(query.groups)
        ]
    )


def read_counts(answer: Answer, query: contract.CountQuery, domain: Domain) -> list[Counts]:
    exact = []
    for number, group in enumerate(query.groups):
        mine = answer["q"] == number
        table = np.zeros(query.rows.parts * domain.cell_count(group), dtype=np.int64)
        table[answer["k"][mine]] = answer["n"][mine]
        exact.append(table.reshape(query.rows.parts, *(domain[name].size for name in group)))
    return exact


def grid(query: contract.GridQuery, rows: exp.From, domain: Domain) -> exp.Query:
    branches = []
    for number, name in enumerate(query.columns):
        points = index_count(domain[name]) + 1
        letter = "g" if isinstance(domain[name], Numeric) else "c"
        index = add(big(col(f"{letter}{domain.names.index(name)}")), num(1))  # the last of 2^31 points is a row's
        pair = add(times(big(col("node")), num(points)), index)
        key = pair if query.target is None else _extend(pair, query.target, domain)
        branches.append(_grouped(rows, number, key).select(exp.Count(this=exp.Star()).as_("n")))
    return _union(branches)


def read_grid(answer: Answer, query: contract.GridQuery, domain: Domain) -> list[contract.GridCounts]:
    classes = 1 if query.target is None else domain[query.target].size
    exact = []
    for number, name in enumerate(query.columns):
        points = index_count(domain[name]) + 1
        mine = answer["q"] == number
        keys = answer["k"][mine]
        distinct, position = np.unique(keys // classes, return_inverse=True)
        table = np.zeros((len(distinct), classes), dtype=np.int64)
        table[position, keys % classes] = answer["n"][mine]
        exact.append(contract.GridCounts(distinct // points, distinct % points - 1, table))
    return exact


def sums(query: contract.SumQuery, rows: exp.From, domain: Domain) -> exp.Select:
    index = col(f"g{domain.names.index(query.column)}")
    # before the cast, which would fail for a larger one; engines add up numbers of 64 bits in wider ones
    limited = exp.Least(ignore_nulls=True, this=exp.Sum(this=big(index)), expressions=[num(LARGEST_SUM)])
    total = big(limited)
    tree = _grouped(rows, 0, big(col("node"))).select(exp.Count(this=exp.Star()).as_("n"), total.as_("s"))
    return tree.where(exp.GTE(this=index.copy(), expression=num(0)))


def read_sums(answer: Answer, query: contract.SumQuery) -> tuple[Counts, Counts]:
    exact = np.zeros((2, query.rows.parts), dtype=np.int64)
    exact[0, answer["k"]] = answer["n"]
    exact[1, answer["k"]] = answer["s"]
    return exact[0], exact[1]


def owned(query: contract.ResidualQuery, rows: exp.From, domain: Domain, dialect: Dialect) -> exp.Select:
    """Each row's part, codes and clipped residual: the integer arithmetic of `ResidualQuery`, a layer for each step."""
    classes = range(len(query.caps))
    position = {name: i for i, name in enumerate(domain.names)}
    target = col(f"c{position[query.target]}")
    used = sorted({position[name] for table in query.tables for name in table} | {position[query.target]})
    carried = [col("node"), *(col(f"c{i}") for i in used)]
    exponentials = [col(f"e{c}") for c in classes]

    scored = _scored(query.model, carried, rows, domain, dialect)
    best = exp.Greatest(ignore_nulls=True, this=col("z0"), expressions=[col(f"z{c}") for c in classes[1:]])
    distances = [exp.Sub(this=best.copy(), expression=col(f"z{c}")).as_(f"d{c}") for c in classes]
    far = _layer(scored, [*carried, *distances])
    near = _layer(far, [*carried, *(_exponential(col(f"d{c}")).as_(f"e{c}") for c in classes)])
    chosen = case([(target.eq(num(c)), col(f"e{c}")) for c in classes], num(0)).as_("e")
    total = _layer(near, [*carried, *exponentials, add(*(e.copy() for e in exponentials)).as_("t"), chosen])
    wrong = _layer(total, [*carried, *exponentials, col("t"), exp.Sub(this=col("t"), expression=col("e")).as_("w")])
    cap = case([(target.copy().eq(num(c)), num(limit)) for c, limit in enumerate(query.caps)], num(0))
    own = exp.Least(ignore_nulls=True, this=quotient(times(num(RESIDUAL_GRID), col("w")), col("t")), expressions=[cap])
    return _layer(wrong, [*carried, *exponentials, col("w"), own.as_("o")])


def residuals(query: contract.ResidualQuery, owned_rows: str, domain: Domain) -> exp.Query:
    """One GROUP BY per table over the rows of `owned`."""
    target = col(f"c{domain.names.index(query.target)}")
    sums: list[Sql] = []
    for c in range(len(query.caps)):
        mine = case([(target.copy().eq(num(c)), col("o"))], num(0))
        sums.append(big(exp.Sum(this=mine)).as_(f"a{c}"))
        if len(query.caps) > 2:
            theirs = conjunction(
                exp.NEQ(this=target.copy(), expression=num(c)), exp.GT(this=col("w"), expression=num(0))
            )
            # NULLIF: an engine may evaluate a branch that CASE does not take.
            divisor = exp.Nullif(this=col("w"), expression=num(0))
            share = case([(theirs, quotient(times(col("o"), col(f"e{c}")), divisor))], num(0))
            sums.append(big(exp.Sum(this=share)).as_(f"b{c}"))
    rows = exp.From(this=exp.to_table(owned_rows))
    return _union(
        [
            _grouped(rows, number, _pack(col("node"), table, domain), filtered=True).select(*(s.copy() for s in sums))
            for number, table in enumerate(query.tables)
        ]
    )


def read_residuals(answer: Answer, query: contract.ResidualQuery, domain: Domain) -> list[contract.Residuals]:
    exact = []
    classes = len(query.caps)
    for number, table in enumerate(query.tables):
        mine = answer["q"] == number
        shape = (query.rows.parts, domain.cell_count(table), classes)
        filled = []
        for letter in "ab"[: 1 + (classes > 2)]:
            flat = np.zeros((shape[0] * shape[1], classes), dtype=np.int64)
            for c in range(classes):
                flat[answer["k"][mine], c] = answer[f"{letter}{c}"][mine]
            filled.append(flat.reshape(shape))
        exact.append(contract.Residuals(filled[0], filled[1] if classes > 2 else None))
    return exact


def correct(query: contract.CorrectQuery, rows: exp.From, domain: Domain, dialect: Dialect) -> exp.Select:
    """The rows of each part whose own class has the largest logit, of equals the class declared first."""
    classes = range(len(query.model.intercept))
    target = col(f"c{domain.names.index(query.target)}")
    scored = _scored(query.model, [col("node"), target], rows, domain, dialect)
    wins = [
        conjunction(
            *(exp.GT(this=col(f"z{c}"), expression=col(f"z{earlier}")) for earlier in classes[:c]),
            *(exp.GTE(this=col(f"z{c}"), expression=col(f"z{later}")) for later in classes[c + 1 :]),
        )
        for c in classes
    ]
    right = _fold(exp.Or, [conjunction(target.copy().eq(num(c)), won) for c, won in enumerate(wins)])
    counted = _grouped(exp.From(this=scored.subquery("layer")), 0, big(col("node")), filtered=True)
    return counted.select(exp.Count(this=exp.Star()).as_("n")).where(right)


def snapshot(rows: exp.From, domain: Domain) -> exp.Select:
    """Distinct coded rows with their number."""
    names = columns(domain)
    tree = exp.select(*(col(name) for name in names), exp.Count(this=exp.Star()).as_("n")).from_(rows.this.copy())
    return tree.group_by(*(col(name) for name in names))


# -- pieces of these ----------------------------------------------------------------------------


def _selected(values: Sequence[Sql], rows: exp.From) -> exp.Select:
    tree = exp.select(*(value.copy() for value in values)).from_(rows.this.copy())
    for join in rows.args.get("joins", []):
        tree = tree.join(join.copy())
    return tree


def _grouped(rows: exp.From, number: int, key: Sql, filtered: bool = False) -> exp.Select:
    tree = _selected([num(number).as_("q"), key.as_("k")], rows).group_by(key.copy())
    return tree if filtered else tree.where(in_a_part())


def _scored(
    model: AdditiveModel, carried: Sequence[Sql], rows: exp.From, domain: Domain, dialect: Dialect
) -> exp.Select:
    """The rows that lie in a part, with the logit `z` of each class."""
    classes = len(model.intercept)
    scored = _selected(carried, rows).where(in_a_part())
    for c in range(classes):
        terms = [num(model.intercept[c])]
        for columns, values in model.terms:
            cell = _cell(columns, domain)
            terms.append(dialect.look_up([int(v) for v in values.reshape(-1, classes)[:, c]], cell))
        scored = scored.select(big(add(*terms)).as_(f"z{c}"), copy=False)
    return scored


def _union(branches: Sequence[exp.Query]) -> exp.Query:
    if len(branches) == 1:
        return branches[0]
    half = len(branches) // 2
    return exp.union(_union(branches[:half]), _union(branches[half:]), distinct=False, copy=False)


def branches(tree: Sql) -> list[exp.Select]:
    """What a UNION ALL is made of."""
    if isinstance(tree, exp.Union):
        return [*branches(tree.left), *branches(tree.right)]
    assert isinstance(tree, exp.Select)
    return [tree]


def _cell(columns: Sequence[str], domain: Domain) -> Sql:
    cell: Sql | None = None
    for name in columns:
        code = big(col(f"c{domain.names.index(name)}"))
        cell = code if cell is None else add(times(cell, num(domain[name].size)), code)
    return cell if cell is not None else num(0)


def _extend(key: Sql, name: str, domain: Domain) -> Sql:
    return add(times(key, num(domain[name].size)), col(f"c{domain.names.index(name)}"))


def _pack(key: Sql, columns: Sequence[str], domain: Domain) -> Sql:
    """Part and cell as one number, in row-major order."""
    key = big(key)
    for name in columns:
        key = _extend(key, name, domain)
    return key


def _layer(inner: exp.Select, carried: Sequence[Sql]) -> exp.Select:
    return exp.select(*(c.copy() for c in carried)).from_(inner.subquery("layer"))


def _exponential(distance: Sql) -> Sql:
    """`exp_table` in SQL: a factor for each bit of the distance."""
    value = big(num(EXP_ONE))
    for bit, factor in enumerate(exp_factors()):
        is_set = exp.BitwiseAnd(this=distance.copy(), expression=num(2**bit)).eq(num(2**bit))
        value = quotient(times(value, case([(is_set, num(factor))], num(EXP_ONE))), num(EXP_ONE))
    return case([(exp.LT(this=distance.copy(), expression=num(2**EXP_BITS)), value)], num(0))
