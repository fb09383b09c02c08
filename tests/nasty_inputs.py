"""Inputs made to stop a program: each is a call that must end in one sentence, soon, and within 1 GB.

Run as a script, it tries all of them under limits of the operating system on memory and processor time, and prints a
line of JSON for each: its name, the class of the error and its text.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sizes import part_of

import privet
from privet.access import size_of
from privet.errors import PrivetError
from privet.kernel import Ledger, as_epsilon, race, source_of
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.question_text import TextQuestion
from privet.risk.readers import read_tree

MEMORY = 2**30  # bytes beyond what the imports take
SECONDS = 120  # of the processor, for all of them together

DOMAIN = Domain(
    (
        Numeric("age", Fraction(0), Fraction(100), Fraction(1), bins=4),
        Nominal("sex", ("f", "m")),
        Nominal("y", ("no", "yes")),
    ),
    target="y",
)
FRAME = pd.DataFrame({"age": [10, 20, 30, 40] * 5, "sex": ["f", "m"] * 10, "y": ["no", "yes", "yes", "no"] * 5})
HUGE = 10**1_000_000
FILLED = "longest texts of a model"


@cache
def table() -> privet.ProtectedTable:
    return privet.open(FRAME, DOMAIN, budget=1000)


@cache
def model() -> dict[str, Any]:
    fitted = privet.DiffPID3Classifier(epsilon=1, domain=DOMAIN, max_depth=1).fit(FRAME[["age", "sex"]], FRAME["y"])
    content: dict[str, Any] = json.loads(fitted.model_.to_json())
    return content


def changed(**parts: Any) -> str:
    """The text of a model in which some parts are others."""
    return json.dumps({**model(), **parts})


def recorded(**parts: Any) -> str:
    return changed(privacy={**model()["privacy"], **parts})


def chain(levels: int) -> str:
    """A tree whose every right child splits again."""
    leaf = {"counts": [1, 2], "deviation": 0.0}
    node = {"split": "age", "at": 1, **leaf}
    return changed(trees=[[node] + [leaf, node] * (levels - 1) + [leaf, leaf]])


def numeric(**settings: str) -> str:
    """A domain with one numeric column."""
    lines = {"kind": '"numeric"', "low": "0", "high": "10", **settings}
    return "[columns.a]\n" + "\n".join(f"{name} = {value}" for name, value in lines.items())


def nominal(values: str) -> str:
    return f'[columns.a]\nkind = "nominal"\nvalues = {values}'


def wide(columns: int, values: int) -> Domain:
    return Domain(tuple(Nominal(f"c{i}", tuple(range(values))) for i in range(columns)))


MANY_COLUMNS = 'target = "y"\n[columns.y]\nkind = "nominal"\nvalues = [0, 1]\n' + "".join(
    f'[columns.c{i}]\nkind = "nominal"\nvalues = [1]\n' for i in range(9_999)
)
STEP = {"tree": 0, "level": 0, "question": "class counts", "parts": 1, "epsilon": "1/4", "entry": 1}
DECISION = {"site": "s", "branch": "b", "nodes": 1, "context": {}, "policy": "", "why": ""}

QUESTIONS = {
    "an exponent": "count where age < 1e100000000",
    "an exponent in quotes": 'count where age < "1e100000000"',
    "a negative exponent": "count where age = 1e-100000000",
    "an exponent of many digits": "count where age >= 1e" + "9" * 50,
    "a range to an exponent": "count where age in 0..1e100000000",
    "a rank": "quantile age 1e-100000000",
    "digits": "count where age < " + "9" * 5_000,
    "a million letters": "count where sex = " + "x" * 1_000_000,
    "a long word": "count where sex = " + "x" * 9_000,
    "a long column": "sum " + "x" * 9_000,
    "many conditions": "count where " + " and ".join(["age = 1"] * 900),
    "many values": "count where sex in {" + "x, " * 3_000 + "x}",
    "open quotes": '"' * 9_999,
    "backslashes": 'count where sex = "' + "\\" * 9_000,
    "a reversed range": "count where age in 50..20",
    "a fraction without an end": "count where age < 1/" + "0" * 50,
    "control characters": "count where sex = \x1b[31m\x00",
    "half a surrogate pair": "count where sex = \ud800",
}

DOMAINS = {
    "lists in lists": "target = " + "[" * 100_000,
    "tables in tables": "target = " + "{a = " * 100_000,
    "a name of a million parts": "a." * 1_000_000 + "b = 1",
    "a name of a million quoted parts": '"a". ' * 500_000 + "b = 1",
    "a long word": "a" * 4_000_000 + " = 1",
    "a long text": "a" * 5_000_000,
    "a whole number of many digits": "rows = " + "9" * 100_000,
    "a hexadecimal number": "rows = 0x" + "f" * 1_000_000,
    "rows beyond 64 bits": "rows_per_person = 0xffffffffffffffffff\n" + nominal("[1]"),
    "a hexadecimal bound": numeric(low="-0x" + "f" * 1_000_000),
    "a hexadecimal high": numeric(high="0x" + "f" * 1_000_000),
    "an exponent": numeric(high="1e100000000"),
    "an exponent of many digits": numeric(high="1e" + "9" * 50),
    "a negative exponent": numeric(step="1e-100000000"),
    "bins without an end": numeric(bins="0x" + "f" * 1_000_000),
    "negative bins without an end": numeric(bins="-0x" + "f" * 1_000_000),
    "more bins than points": numeric(bins="65536"),
    "many edges": numeric(high="1000000", edges=str(list(range(70_000)))),
    "many values": nominal(str(list(range(70_000)))),
    "a value too large": nominal("[1e100000000]"),
    "a value with an exponent of many digits": nominal("[1e" + "9" * 50 + "]"),
    "a value of many digits": nominal("[0x" + "f" * 1_000_000 + "]"),
    "a value of many letters": nominal('["' + "x" * 2_000 + '"]'),
    "a column of many letters": f'[columns.{"x" * 2_000}]\nkind = "nominal"\nvalues = [1]',
    "a setting of many letters": "x" * 100_000 + " = 1",
    "a duplicate name of many letters": ("x" * 100_000 + " = 1\n") * 2,
    "many columns": "".join(f'[columns.c{i}]\nkind = "nominal"\nvalues = [1]\n' for i in range(10_001)),
    "a step finer than floats": numeric(step="0.000000000000001"),
    "not a number": numeric(low="nan"),
    "infinite": numeric(high="inf"),
    "a date": numeric(low="1979-05-27"),
    "control characters": "\x1b[31m\x00 = 1",
}

MODELS: dict[str, Callable[[], str]] = {
    "lists in lists": lambda: "[" * 1_000_000,
    "objects in objects": lambda: '{"format":' * 1_000_000,
    "too long": lambda: " " * 40_000_000 + "{}",
    "empty lists": lambda: "[" + "[]," * part_of(11_000_000, FILLED) + "[]]",
    "names": lambda: "{" + ",".join(f'"{i:x}":0' for i in range(part_of(2_500_000, FILLED))) + "}",
    "a number too large": lambda: changed(prior=[1, 2]).replace('"prior": [1, 2]', '"prior": [1, 1e400]'),
    "not a number": lambda: changed(prior=[1, 2]).replace('"prior": [1, 2]', '"prior": [1, NaN]'),
    "a whole number of many digits": lambda: changed(prior=[1, 2]).replace("[1, 2]", f"[1, {'9' * 4_000}]"),
    "more digits than Python reads": lambda: changed(prior=[1, 2]).replace("[1, 2]", f"[1, {'9' * 40_000}]"),
    "a version of many digits": lambda: changed(version=10**4000),
    "a tree of a hundred thousand levels": lambda: chain(part_of(100_000, FILLED)),
    "a tree of a thousand levels more": lambda: chain(1_002),
    "a threshold of many digits": lambda: changed(
        trees=[[{"split": "age", "at": 10**4000, "counts": [1, 2], "deviation": 0.0}]]
    ),
    "a node that is all its children": lambda: changed(trees=[[{"split": "sex", "counts": [1, 2], "deviation": 0.0}]]),
    "a hundred thousand steps of one level": lambda: recorded(steps=[STEP] * part_of(100_000, FILLED)),
    "losses that cannot be added": lambda: recorded(
        steps=[{**STEP, "epsilon": f"1/{10**390 + i}"} for i in range(1000)]
    ),
    "a loss of many digits": lambda: recorded(epsilon="9" * 10_000),
    "a margin of many digits": lambda: recorded(decisions=[{**DECISION, "margins": {"a": 10**4000}}]),
    "a margin too large": lambda: recorded(decisions=[{**DECISION, "margins": {"a": 1}}]).replace(
        '{"a": 1}', '{"a": 1e999}'
    ),
    "a reason of many letters": lambda: recorded(private=False, reasons=["x" * 100_000]),
    "rows of a person of many digits": lambda: recorded(rows_per_person=10**4000),
    "a domain of lists in lists": lambda: changed(domain="a = " + "[" * 100_000),
    "a domain too long": lambda: changed(domain="a" * 5_000_000),
    "a domain that is no text": lambda: changed(domain=[[]]),
    "many trees over many columns": lambda: changed(
        domain=MANY_COLUMNS, trees=[[{"counts": [1, 2], "deviation": 0.0}]] * 9_999 + [[]]
    ),
    "tables without an end": lambda: changed(tables=[[]] * part_of(200_000, FILLED)),
    "a table of lists in lists": lambda: changed(
        tables=[{"columns": ["age"], "epsilon": "1", "values": [[[[]]]] * 4, "deviation": []}]
    ),
}

TREES: dict[str, Callable[[], str]] = {
    "a line of blanks": lambda: "a" + " " * 1_000_000 + "\nb",
    "lines of blanks": lambda: "a\n" + ("a" + " " * 3_900 + "b\n") * 5_000,
    "a line of colons": lambda: "a = b" + ": " * 1_900 + "\nb",
    "blanks before a bracket": lambda: "a = b: c" + " " * 3_900 + "(\nb",
    "brackets": lambda: "a = b: c" + " (1" * 1_000 + "\nb",
    "levels": lambda: "\n".join("|" * level + " a <= 1" for level in range(5_000)),
    "more levels than bars": lambda: "a <= 1\n" + "|" * 1_000_000 + " b <= 2: x",
    "as many leaves as have many digits": lambda: f"a <= 1: x\na > 1: y\nNumber of Leaves : {'9' * 5_000}\n",
    "more rows than there are": lambda: "a <= 1: x (1e400)\na > 1: y (2)",
    "a threshold too large": lambda: "a <= 1e400: x\na > 1e400: y",
    "lines without an end": lambda: "a\n" * 4_000_000,
    "bars alone": lambda: "|\n" * 4_000_000,
    "a long label": lambda: "a <= 1: " + "x" * 3_000 + "\na > 1: y (1/2)",
    "a quote that stays open": lambda: "'" + "\\" * 3_001 + " = 1: x\nb",
    "levels of export_text": lambda: "\n".join("|   " * level + "|--- a <= 1.00" for level in range(2_000)),
    "weights too large": lambda: "|--- weights: [1e300, 1e400] class: x\n",
    "weights without an end": lambda: "|--- weights: [" + "1, " * 1_000 + "1] class: x\n",
    "a threshold of export_text too large": lambda: (
        "|--- a <= 1e999\n|   |--- class: x\n|--- a >  1e999\n|   |--- class: y"
    ),
    "not a text": lambda: "\x00\n\x1b[31m",
}

LONG_NAME = "x" * 300
ADDRESSES = {
    "a bracket": "spark://[/?table=x",
    "a bracket in a DuckDB address": "duckdb://[/?table=x",
    "a bracket in an address of SQL Server": "mssql://[/db?table=x",
    "a NUL character": "\0.csv",
    "a NUL character in an address": "duckdb:///%00?table=x",
    "a NUL character in a table": "postgresql://localhost:1/db?table=%00",
    "a name too long": LONG_NAME + ".csv",
    "a folder too long": f"{LONG_NAME}/a.csv",
    "a database too long": f"duckdb:///{LONG_NAME}.db?table=x",
    "an address without an end": "a" * 10_000_000 + ".csv",
    "a host with two dots": "postgresql://127.0.0..1/db?table=x",
    "a host of many letters": f"postgresql://{'a' * 70}/db?table=x",
    "one host of two": "postgresql://localhost,a..b:1/db?table=x",
    "a host with a NUL character": "postgresql://a%00b/db?table=x",
    "settings without an end": "duckdb:///a.db?" + "a=1&" * 1_000,
    "a port": "postgresql://localhost:99999999999999999999/db?table=x",
    "a port of SQL Server": "mssql://localhost:99999999999999999999/db?table=x",
    "a time": "postgresql://localhost:1/db?table=x&statement_timeout=" + "9" * 100,
    "half a surrogate pair": "\ud800.csv",
    "signs that look like others": "spark://a\u2100/?table=x",
    "no name": "",
    "a dot": ".",
}

LEDGERS = {
    "a NUL character": "\0",
    "a name too long": LONG_NAME,
    "a path too long": "x/" * 4_000,
    "half a surrogate pair": "\ud800",
    "a host with two dots": "postgresql://127.0.0..1/db",
    "a bracket": "postgresql://[/db",
}

NUMBERS: dict[str, Any] = {
    "digits": HUGE,
    "an exponent": "1e100000000",
    "a negative exponent": "1e-100000000",
    "digits in words": "9" * 10_000_000,
    "a Decimal": Decimal("1e100000000"),
    "a small Decimal": Decimal("1e-100000000"),
    "a Decimal of many digits": Decimal("1" * 100_000),
    "a signalling NaN": Decimal("sNaN"),
    "a denominator": Fraction(1, HUGE + 1),
    "a numerator": Fraction(HUGE, 3),
    "a long double": np.longdouble("1e4000"),
    "not a number": np.float32("nan"),
    "infinite": np.float16("inf"),
    "negative": -HUGE,
    "a ratio": "1/" + "9" * 100_000,
    "a ratio by zero": "1/0",
    "a truth value": np.True_,
    "a list in lists": [[[[]]]],
    "bytes": b"1" * 1_000_000,
    "complex": 1j,
}


@lru_cache(maxsize=1)  # making a long text takes longer than refusing it, and many would fill the memory
def _text_of_model(name: str) -> str:
    return MODELS[name]()


def _cases() -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {}
    for name, text in QUESTIONS.items():
        found[f"question: {name}"] = lambda text=text: TextQuestion.parse(text).ask(table(), "0.1")
    for name, text in DOMAINS.items():
        found[f"domain: {name}"] = lambda text=text: Domain.parse(text)
    found["domain: more cells than can be held"] = lambda: wide(17, 65_536)
    for name in MODELS:
        found[f"model: {name}"] = lambda name=name: privet.Model.from_json(_text_of_model(name))
        found[f"tree: model, {name}"] = lambda name=name: read_tree("\n" + _text_of_model(name))
    for name, make in TREES.items():
        found[f"tree: {name}"] = lambda make=make: read_tree(make())
    for name, text in ADDRESSES.items():
        found[f"address: {name}"] = lambda text=text: source_of(text).open(DOMAIN)
    for name, text in LEDGERS.items():
        found[f"ledger: {name}"] = lambda text=text: Ledger.open(text)
        found[f"ledger of a table: {name}"] = lambda text=text: privet.open(FRAME, DOMAIN, budget=1, ledger=text)
        found[f"ledger without a budget: {name}"] = lambda text=text: privet.open(FRAME, DOMAIN, ledger=text)
    for name, number in NUMBERS.items():
        calls: dict[str, Callable[[Any], object]] = {
            "epsilon": as_epsilon,
            "budget": lambda number: privet.open(FRAME, DOMAIN, budget=number),
            "count": lambda number: table().count(number),
            "reservation": lambda number: table().reserve(number).__enter__(),
            "rank": lambda number: table().quantile("age", number, 0.1),
            "accuracy": lambda number: table().monitor(number, 0.1),
            "condition": lambda number: table().where(age=number),
            "lower bound": lambda number: table().where(age=(number, None)),
            "upper bound": lambda number: table().where(age=(0, number)),
            "value": lambda number: table().where(sex=number),
            "edges": lambda number: table().partition("age", edges=[number]),
            "threshold": lambda number: table().partition(("age", number)),
            "stop of a race": lambda number: race(table(), [lambda shadow: (1, shadow.count(0.1))], 0.1, stop=number),
            "target of a race": lambda number: race(
                table(), [lambda shadow: (1, shadow.count(0.1))], 0.1, target=number
            ),
            "size of a snapshot": size_of,
            "seed": lambda number: table().parts().scatter(2, number),
            "rows": lambda number: Domain(DOMAIN.columns, rows=number),
            "rows of a person": lambda number: Domain(DOMAIN.columns, rows_per_person=number),
        }
        for call, ask in calls.items():
            found[f"{call}: {name}"] = lambda ask=ask, number=number: ask(number)
    for name, text in {"too long": "x" * 10_000_000, "a line": "a\nb", "nothing": "", "a number": 5}.items():
        found[f"key: {name}"] = lambda text=text: table().count(0.1, key=text)  # type: ignore[arg-type]
        found[f"analyst: {name}"] = lambda text=text: privet.open(FRAME, DOMAIN, budget=1, analyst=text)
    found["name: too long"] = lambda: privet.open(FRAME, DOMAIN, budget=1, name="x" * 1_000)
    found["histogram: too many cells"] = lambda: _of_wide(2, 4_000).histogram("c0", "c1", epsilon=1)
    found["histograms: too many cells together"] = lambda: (
        _of_wide(2, 2_000).parts().histograms([[("c0", "c1")] * 2], 1)
    )
    found["histogram: more cells than have a name"] = lambda: _of_wide(2_000, 200).histogram(
        *(f"c{i}" for i in range(2_000)), epsilon=1
    )
    found["domain: the last value twice"] = lambda: Nominal("a", (*range(65_535), 65_534))
    found["domain: a bound of many digits"] = lambda: Numeric("a", Fraction(0), Fraction(HUGE), Fraction(1))
    found["domain: a step of many digits"] = lambda: Numeric("a", Fraction(0), Fraction(1), Fraction(1, HUGE))
    found["partition: too many parts"] = lambda: _of_wide(2, 1_000).partition("c0").partition("c1")
    found["file of a domain: a name too long"] = lambda: Domain.load(LONG_NAME)
    found["file of a domain: a NUL character"] = lambda: Domain.load("\0")
    found["file of a domain: without an end"] = lambda: Domain.load("/dev/zero")
    found["file of a model: a name too long"] = lambda: privet.Model.load(LONG_NAME)
    found["file of a model: a NUL character"] = lambda: privet.Model.load("\0")
    found["file of a model: without an end"] = lambda: privet.Model.load("/dev/zero")
    found["file of a tree: a name too long"] = lambda: read_tree(Path(LONG_NAME))
    found["file of a tree: without an end"] = lambda: read_tree(Path("/dev/zero"))
    return found


@cache
def _of_wide(columns: int, values: int) -> privet.ProtectedTable:
    return privet.open(pd.DataFrame({f"c{i}": [0] for i in range(columns)}), wide(columns, values), budget=10)


CASES = _cases()


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def main() -> None:
    table(), model()  # compiled and imported, before memory is bounded
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _limit(resource.RLIMIT_AS, used + MEMORY)
    _limit(resource.RLIMIT_CPU, SECONDS)
    for name, ask in CASES.items():
        try:
            ask()
            kind, text = "answered", ""
        except PrivetError as error:
            kind, text = "refused", str(error)
        except BaseException as error:
            kind, text = type(error).__name__, str(error)[:200]
        print(json.dumps([name, kind, text[:5_000]]), flush=True)


if __name__ == "__main__":
    sys.set_int_max_str_digits(4300)
    main()
