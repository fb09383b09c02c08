"""Attacks through the rows: values that would poison a sum or make a question fail."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kernel.attacks.attacked import CANARY, DOMAIN, EXACT, LARGE, QUESTIONS, each_source, neighbours, opened, people

import privet
from privet.errors import DataError

# --- 4: numbers that are none ----------------------------------------------------------------------------------------


@each_source
@pytest.mark.parametrize("poison", [math.nan, None, math.inf, -math.inf, 1e308, -0.0], ids=str)
def test_nan_inf_and_null_poisoning(kind: str, tmp_path: Path, poison: float | None) -> None:
    """One NaN makes a SUM NaN, or is clamped to the upper bound: either tells that its row is there."""
    _, frame = neighbours(["clerk", poison, "no"])
    # A CSV file holds texts, and 'inf' is no number there.
    absent = poison is None or math.isnan(poison) or (math.isinf(poison) and kind in ("csv", "snapshot"))
    wages = [float(wage) for wage in frame["wage"][:-1]] + ([] if absent else [min(max(poison or 0.0, 0.0), 1000.0)])
    with opened(frame, kind, tmp_path, {"wage": "DOUBLE"}) as table:
        assert table.sum("wage", 300_000) == sum(wages)
        assert table.mean("wage", 600_000) == pytest.approx(sum(wages) / len(wages), abs=1e-9)
        assert sorted(wages)[18] <= table.median("wage", EXACT) <= sorted(wages)[22]
        assert table.count(EXACT) == 41
        assert table.where(wage="<missing>").count(EXACT) == absent


# --- 5: errors that only some rows cause -----------------------------------------------------------------------------


NASTY: dict[str, list[Any]] = {
    "text where a number is": ["clerk", "CANARY", "yes"],
    "a number beyond all types": ["clerk", "9" * 5000, "yes"],
    "an exponent beyond all types": ["clerk", "1e99999999999999999999", "yes"],
    "nothing at all": [None, None, None],
    "empty texts": ["", "", ""],
    "a quote": ['"', '"', '"'],
    "line breaks": ["a\nb", "1\n2", "yes\n"],
    "carriage returns": ["a\r\nb", "\r", "\r"],
    "separators": ["a,b", "1,5", ",,,"],
    "a zero byte": ["a\0b", "1\0", "yes"],
    "a very long text": ["x" * 300_000, "1" * 300_000, "yes"],
    "unprintable characters": ["\x01\x1a\x1b\x7f\u202e\ufeff", "\u00a05", "yes"],
    "sql": ["'); DROP TABLE coded; --", "(SELECT 1)", "yes' OR '1'='1"],
    "arabic digits": ["clerk", "\u0661\u0662", "yes"],
    "hexadecimal": ["clerk", "0x10", "yes"],
}


@each_source
@pytest.mark.parametrize("nasty", NASTY)
def test_data_dependent_errors(kind: str, tmp_path: Path, nasty: str) -> None:
    """A row that makes a cast, an overflow or the reader fail turns every answer into one about that row."""
    _, frame = neighbours(NASTY[nasty])
    with opened(frame, kind, tmp_path) as table:
        assert table.count(EXACT) in (40, 41)
        table.sum("wage", 1)
        table.partition("job").median("wage", 1)


@each_source
def test_every_question_is_answered_whatever_the_rows_are(kind: str, tmp_path: Path) -> None:
    """The same for all questions: each is one statement, and every expression in it must be total."""
    frame = pd.concat([people(), pd.DataFrame(NASTY.values(), columns=people().columns)], ignore_index=True)
    with opened(frame, kind, tmp_path) as table:
        for ask in QUESTIONS.values():
            ask(table)
        assert len(table.budget.entries) == len(QUESTIONS)


@each_source
@pytest.mark.parametrize(
    ("sql_type", "value"),
    [("HUGEINT", 10**38), ("HUGEINT", -(10**38)), ("DOUBLE", 1.7e308), ("DECIMAL(38,0)", 10**37), ("BOOLEAN", True)],
)
def test_data_dependent_errors_of_wide_types(kind: str, tmp_path: Path, sql_type: str, value: Any) -> None:
    """An overflow in the largest types of an engine would be an error that depends on one row."""
    frame = people().assign(wage=[1] * 39 + [value])
    with opened(frame, kind, tmp_path, {"wage": sql_type}) as table:
        assert table.count(EXACT) == 40
        table.sum("wage", 1)
        table.partition("job").median("wage", 1)


STRANGE = [b"\xff\xfe\x80,1,no", b"clerk", b"clerk,1,no,4,5,6", b"\x00" * 50, b'clerk"s,1,no', b'"two\nlines",1,no']


@pytest.mark.parametrize("line", STRANGE, ids=repr)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_data_dependent_errors_of_the_csv_reader(tmp_path: Path, line: bytes, first: bool) -> None:
    """A line that is no record must be left out like any row that does not fit: an error would tell it is there."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(1 if first else len(body), line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE) as table:
        assert table.count(EXACT) in (40, 41)


@pytest.mark.parametrize("line", [b'clerk,"1,no', b'"', b'"clerk'])
@pytest.mark.parametrize("at", [1, 20, 40])
def test_an_open_quote_is_refused_before_anyone_pays(tmp_path: Path, line: bytes, at: int) -> None:
    """Everything after an open quote is one field: a single line would make all rows behind it vanish."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(at, line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    with pytest.raises(DataError, match="ends inside quotes"):
        privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE)
    assert not (tmp_path / "people.csv.ledger").exists()


QUOTED = [b' "', b'clerk, "1,no', b'clerk,"1"x"2,no', b'"clerk" "x,1,no', b'"cl"erk,1,no', b'"clerk"",1,no"']


@pytest.mark.parametrize("line", QUOTED, ids=repr)
def test_a_line_with_quotes_is_refused_at_once_or_harms_no_other(tmp_path: Path, line: bytes) -> None:
    """A quote after a space, or after a field that was closed, opens one too: all rows behind it would vanish."""
    body = people().to_csv(index=False).encode().splitlines()
    body.insert(20, line)
    (tmp_path / "people.csv").write_bytes(b"\n".join(body) + b"\n")
    try:
        table = privet.open(tmp_path / "people.csv", DOMAIN, budget=LARGE)
    except DataError as refused:
        assert "\n" not in str(refused)
        return
    assert table.count(EXACT) in (40, 41)
    table.close()


# --- what a review found ----------------------------------------------------------------------------------------------


class Secret:
    """A value that tells its row when it is looked at."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)

    __hash__ = __str__  # type: ignore[assignment]


def test_a_value_that_cannot_be_read_fits_no_cell() -> None:
    """An error from inside a frame would tell that the value is there, and quote it."""
    frame = people().assign(job=pd.Series([Secret(), *["clerk"] * 39], dtype=object))
    table = privet.open(frame, DOMAIN, budget=LARGE)
    assert table.count(EXACT) in (39, 40)
    assert table.where(job="clerk").count(EXACT) == 39
