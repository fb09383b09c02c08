"""Drafts load as they are, hold their sample, and leave out what no model should see."""

from __future__ import annotations

import csv
import random
import re
import tempfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.delimited import convert
from privet.draft import draft, draft_domain
from privet.errors import DataError
from privet.kernel.column import Nominal, Numeric, number_of
from privet.kernel.date import Date
from privet.kernel.domain import Domain

PROPERTY = settings(derandomize=True, deadline=None)


def _write(folder: Path, header: list[str], rows: list[list[object]], name: str = "sample.csv") -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def _text(folder: Path, values: list[object], name: str = "x", **options: Any) -> str:
    """The draft of one column, beside another that always can be drafted."""
    return draft(_write(folder, [name, "fixed"], [[value, "ab"[k % 2]] for k, value in enumerate(values)]), **options)


def _drafted(folder: Path, values: list[object], name: str = "x", **options: Any) -> Nominal | Numeric:
    return Domain.parse(_text(folder, values, name, **options))[name]


def _left_out(text: str, name: str) -> str:
    """Why a column was left out."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"# left out: {name!r}")]
    return line.removeprefix(f"# left out: {name!r} ")


def _shuffled(values: Sequence[object]) -> list[object]:
    """Values in another order, with repeats: a column that rises from row to row is an identifier."""
    return random.Random(1).sample([*values, *values], 2 * len(values))


# --- from a sample ----------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
CELLS = TEXTS | st.sampled_from(["", "?", "NA", "<other>", '"', "#", "\u2028", "1e999", "-1e300", "1e-300", "0.1"])
NUMBERS = st.integers(-(10**20), 10**20).map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
NAMES = TEXTS.filter(lambda name: bool(name.strip()) and "\0" not in name and number_of(name) is None)


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    header = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    count = draw(st.integers(2, 30))
    kinds = [draw(st.sampled_from([CELLS, NUMBERS, st.integers(0, 99).map(str)])) for _ in header]
    columns = [draw(st.lists(kind, min_size=count, max_size=count)) for kind in kinds]
    return [*header, "fixed column"], [[*row, "ab"[k % 2]] for k, row in enumerate(zip(*columns, strict=True))]


@PROPERTY
@given(samples())
def test_the_draft_of_a_sample_loads_and_holds_every_row(sample: tuple[list[str], list[list[str]]]) -> None:
    header, rows = sample
    with tempfile.TemporaryDirectory() as folder:
        path = _write(Path(folder), header, rows)  # type: ignore[arg-type]
        try:
            domain = Domain.parse(draft(path, delimiter=","))
        except DataError as error:
            no_text = any("\0" in cell for row in [header, *rows] for cell in row)
            assert ("is not a CSV file" if no_text else "has no header") in str(error)
            return
    assert set(domain.names) <= set(header)
    for position, name in enumerate(header):
        for row in rows if name in domain else []:
            column, value = domain[name], row[position]
            if value not in ("<other>", "<missing>", "<unwritable>"):  # reserved: the owner has to decide
                assert column.code(value) is not None
            number = number_of(value)
            if isinstance(column, Numeric) and number is not None and abs(number) < 1e300:
                assert column.low <= Fraction(Decimal(value.strip())) <= column.high or abs(number) < 1e-15


def test_the_draft_warns_and_leaves_the_public_facts_to_the_owner(tmp_path: Path) -> None:
    text = draft(_write(tmp_path, ["sex", "note"], [["f", "x"], ["m", "y"]]))
    comment = text.split("\n\n")[0]
    assert all(line.startswith("# ") for line in comment.splitlines())
    for word in ("DRAFT", "public sample 'sample.csv'", "line by line", "never be made from the private rows"):
        assert word in comment
    for setting in ("target", "rows", "max_rows", "person", "rows_per_person"):
        assert f"\n# {setting} = " in text
    assert str(tmp_path) not in text
    domain = Domain.parse(text)
    assert (domain.target, domain.rows, domain.max_rows) == (None, None, None)


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        (range(17, 91), "15", "90", "1"),
        (range(1, 100), "0", "100", "1"),
        (range(1995, 2021), "1994", "2020", "1"),
        (range(8), "0", "8", "1"),
        (range(1, 13), "1", "15", "1"),
        ([f"{k}.5" for k in range(20)], "0", "20", "0.1"),
        ([f"0.{k:02}" for k in range(1, 20)], "0", "0.2", "0.01"),
        ([f"{10**8 + k}.5" for k in range(20)], "100000000", "100000020", "1"),
    ],
)
def test_bounds_are_tidy_and_outside(tmp_path: Path, values: Sequence[object], low: str, high: str, step: str) -> None:
    column = _drafted(tmp_path, _shuffled(values))
    assert isinstance(column, Numeric)
    assert (column.low, column.high, column.step) == (Fraction(low), Fraction(high), Fraction(step))


@pytest.mark.parametrize("unit", [1, 1000, Fraction(1, 100)])
def test_skewed_amounts_get_round_edges_that_quote_no_row(tmp_path: Path, unit: Fraction) -> None:
    coins = np.random.default_rng(3)
    amounts = [float(Fraction(int(x)) * unit) for x in np.exp(coins.normal(6, 1.5, 3000))]
    column = _drafted(tmp_path, list(amounts), "amount")
    assert isinstance(column, Numeric) and column.edges is not None
    shares = np.bincount(column.encode(pd.Series(amounts)), minlength=column.size) / 3000
    assert shares.max() < 0.25  # even bins would have nearly all rows in one
    for edge in (column.low, *column.edges, column.high):
        digits = str(int(edge * 10**6)).strip("0-")
        assert len(digits) <= 2, edge
    wider = _drafted(tmp_path, [*amounts[1:], float(Fraction(max(amounts)).limit_denominator(100) + unit)], "amount")
    assert wider == column  # the bounds do not follow a row


def test_quantiles_are_used_only_when_they_are_asked_for(tmp_path: Path) -> None:
    amounts = [int(x) for x in np.exp(np.random.default_rng(3).normal(6, 1.5, 3000))]
    column = _drafted(tmp_path, list(amounts), "amount", quantiles=True)
    shares = np.bincount(column.encode(pd.Series(amounts)), minlength=column.size) / 3000
    assert shares.max() < 0.08
    assert "quantiles of the sample: they show it" in _text(tmp_path, list(amounts), "amount", quantiles=True)


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", "NULL", " "])
def test_numbers_with_gaps_are_numbers_with_a_missing_cell(tmp_path: Path, mark: str) -> None:
    column = _drafted(tmp_path, [*_shuffled(range(20)), mark])
    assert isinstance(column, Numeric)
    assert column.missing
    assert column.code(mark) == column.missing_code


def test_counts_are_numeric_without_holes_and_codes_are_nominal(tmp_path: Path) -> None:
    children = _drafted(tmp_path, [0, 0, 1, 2, 5, 2, 1, 0] * 50, "children")
    assert isinstance(children, Numeric)
    assert len({children.code(k) for k in range(6)}) == 6  # 3 and 4 are in no row of the sample
    assert isinstance(_drafted(tmp_path, [0, 1] * 50), Nominal)
    assert isinstance(_drafted(tmp_path, [1, 2, 3, 4, 5] * 50, "precinct"), Nominal)
    assert isinstance(_drafted(tmp_path, ["012", "007", "100"] * 50), Nominal)
    assert isinstance(_drafted(tmp_path, [10115, 50667, 80331] * 50, "zip"), Nominal)


def test_cells_for_others_are_left_away_only_where_a_sample_shows_all(tmp_path: Path) -> None:
    small, large = _drafted(tmp_path, ["f", "m"] * 50), _drafted(tmp_path, ["f", "m"] * 500)
    assert small.labels == ("f", "m", "<other>", "<missing>")
    assert large.labels == ("f", "m")
    assert _drafted(tmp_path, [*["f", "m"] * 500, "u"]).labels == ("f", "m", "u", "<other>")  # who knows which follow
    assert _drafted(tmp_path, [*["f", "m"] * 500, "", ""]).labels == ("f", "m", "<missing>")


def test_values_that_differ_in_capitals_or_blanks_alone_are_pointed_at(tmp_path: Path) -> None:
    text = _text(tmp_path, ["F", "f", "m", "m "] * 100, "sex")
    assert "# 'F', 'f' differ in capitals or blanks alone: 2 cells; if they mean the same" in text
    assert "# 'm', 'm ' differ in capitals" in text
    assert Domain.parse(text)["sex"].labels[:4] == ("F", "f", "m", "m ")
    assert "capitals" not in _text(tmp_path, ["f", "m"] * 200, "sex")
    classes = draft(_write(tmp_path, ["age", "ill"], [[k % 60, "yYn"[k % 3]] for k in range(300)]), target="ill")
    assert "# 'Y', 'y' differ in capitals" in classes and Domain.parse(classes).classes == ("Y", "n", "y")


def test_long_lists_keep_their_frequent_values(tmp_path: Path) -> None:
    towns = [f"town {k}" for k in range(10)] * 90 + [f"hamlet {k}" for k in range(100)]
    column = _drafted(tmp_path, list(towns))
    assert isinstance(column, Nominal) and column.other
    assert set(column.values) == {f"town {k}" for k in range(10)}


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("case_no", [f"A-{k:05}" for k in range(300)], "a different value in nearly every row: an identifier"),
        ("row", list(range(300)), "a different value in nearly every row: an identifier"),
        ("number", random.Random(1).sample(range(10**6, 10**6 + 900), 300), "an identifier"),
        ("phone", random.Random(1).sample(range(10**9, 10**10), 300), "an identifier"),
        ("patient_id", [k % 100 for k in range(300)], "draft again with it as the person"),
        ("note", [f"came at {k} with a cough" for k in range(300)], "free text"),
        ("name", [f"n{k % 200}" for k in range(300)], "too many to list"),
        ("day", [f"{k % 28 + 1}.{k % 12 + 1}.2024" for k in range(300)], "not written as YYYY-MM-DD: write them so"),
        ("day", [f"{k % 28 + 1}/{k % 12 + 1}/2024 10:15" for k in range(300)], "dates"),
        ("day", ["2024-03-31", "31.3.2024"] * 150, "dates"),
        ("month", ["2018-03", "2018-04", ""] * 100, "dates"),
        ("day", ["2024-03-31"] * 300, "the same value in every row"),
        ("day", [f"2024{k % 12 + 1:02}{k % 28 + 1:02}" for k in range(300)], "dates"),
        ("month", ["Mar-2018", "Apr-2018", ""] * 100, "dates"),
        ("empty", [""] * 300, "empty in every row"),
        ("same", ["a"] * 300, "the same value in every row"),
        ("huge", [f"{k}e200" for k in range(2, 22)] * 10, "cannot be declared"),
    ],
)
def test_what_no_model_should_see_is_left_out_with_the_reason(
    tmp_path: Path, name: str, values: list[object], why: str
) -> None:
    text = _text(tmp_path, values, name)
    assert why in _left_out(text, name)
    assert Domain.parse(text).names == ("fixed",)


@pytest.mark.parametrize(
    ("years", "step"),
    [((2024, 2024), "months"), ((2020, 2024), "3 months"), ((2015, 2024), "6 months"), ((1930, 2020), "5 years")],
)
def test_dates_of_a_sample_get_bounds_of_years_and_few_cells_of_the_calendar(
    tmp_path: Path, years: tuple[int, int], step: str
) -> None:
    span = years[1] - years[0] + 1
    days = [f"{years[0] + k % span}-{k % 12 + 1:02}-{k % 28 + 1:02}" for k in range(600)]
    for values in (days, [f"{day}T10:15:00Z" for day in days], [*days, "", "NA", "9999-12-31"]):
        column = _drafted(tmp_path, list(values), "day")
        assert isinstance(column, Date) and column.declared_step() == step and column.size <= 21
        assert (column.text(column.low), column.text(column.high)) == (f"{years[0]}-01-01", f"{years[1]}-12-31")
        assert column.missing == ("NA" in values)
        assert all(column.code(day) is not None for day in days)
    frame = pd.DataFrame({"day": pd.to_datetime(days), "fixed": ["a", "b", "c"] * 200})
    assert draft_domain(frame)["day"] == _drafted(tmp_path, list(days), "day")


def test_whole_amounts_that_differ_are_not_taken_for_identifiers(tmp_path: Path) -> None:
    incomes = [int(x) for x in np.exp(np.random.default_rng(5).normal(10.5, 0.8, 200))]
    assert isinstance(_drafted(tmp_path, list(incomes), "income"), Numeric)


# --- target and person ------------------------------------------------------------------------------------------------

VISITS = [[f"p{k // 3}", k % 7, "yn"[k % 2]] for k in range(600)]


def test_a_target_has_classes_and_no_other_cells(tmp_path: Path) -> None:
    path = _write(tmp_path, ["id", "visits", "ill"], [*VISITS, ["p1", 1, ""]])
    text = draft(path, target="ill")
    domain = Domain.parse(text)
    assert (domain.target, domain.classes, domain.names) == ("ill", ("n", "y"), ("visits", "ill"))
    assert "rows without a class are left out" in text


def test_the_person_is_a_setting_above_rows_per_person_and_no_column(tmp_path: Path) -> None:
    path = _write(tmp_path, ["id", "visits", "ill"], VISITS)
    text = draft(path, target="ill", person="id")
    assert text.index('\nperson = "id"') < text.index("\nrows_per_person = 1") < text.index("[columns")
    assert "up to 3 rows: of those, 1 count" in text
    assert '[columns."id"]' not in text
    assert "\nrows_per_person = 3\n" in draft(path, target="ill", person="id", rows_per_person=3)


@pytest.mark.skipif("person" not in Domain.__dataclass_fields__, reason="domains do not have the setting person yet")
def test_a_draft_with_a_person_loads(tmp_path: Path) -> None:
    domain = draft_domain(_write(tmp_path, ["id", "visits", "ill"], VISITS), target="ill", person="id")
    assert (domain.person, domain.names) == ("id", ("visits", "ill"))  # type: ignore[attr-defined, unused-ignore]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "il"}, "did you mean 'ill'?"),
        ({"target": "Visits"}, "did you mean 'visits'?"),
        ({"person": "zzzzz"}, "its columns are 'id', 'visits', 'ill'"),
        ({"target": "id"}, "has 200 different values in the sample, at most 100 can be classes"),
        ({"target": "ill", "person": "ill"}, "cannot be both the target and the person"),
        ({"person": "id", "rows_per_person": 0}, "a whole number from 1"),
    ],
)
def test_a_wrong_target_or_person_gets_one_sentence(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    path = _write(tmp_path, ["id", "visits", "ill"], VISITS)
    with pytest.raises(DataError, match=re.escape(sentence)):
        draft(path, **options)


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, lambda columns: pl.DataFrame(columns).to_arrow()])
def test_a_frame_is_drafted_as_its_file_is(tmp_path: Path, container: Callable[[Any], Any]) -> None:
    path = _write(tmp_path, ["id", "visits", "ill"], VISITS)
    columns = {name: [row[place] for row in VISITS] for place, name in enumerate(("id", "visits", "ill"))}
    assert privet.draft_domain(container(columns), target="ill") == draft_domain(path, target="ill")


def test_a_draft_is_a_method_of_the_class_and_its_text_says_what_was_left_out(tmp_path: Path) -> None:
    path = _write(tmp_path, ["id", "visits", "ill"], VISITS)
    domain = privet.Domain.draft(path, target="ill")
    assert domain == draft_domain(path, target="ill") and domain.names == ("visits", "ill")
    text = domain.with_rows(500).to_toml()
    assert text.startswith("# DRAFT of a domain") and "\n# left out: 'id' " in text
    assert Domain.parse(text) == domain.with_rows(500) and Domain.parse(text).notes == domain.notes


# --- forms of files ---------------------------------------------------------------------------------------------------

PEOPLE = [["fm"[k % 2], str(20 + k * 7 % 50), ["K\u00f6ln", "Bonn"][k % 3 % 2], f"{k % 9}.25"] for k in range(400)]


def _form(path: Path, delimiter: str, encoding: str, comma: bool = False) -> Path:
    rows = [["sex", "age", "town", "dose"], *PEOPLE]
    lines = [delimiter.join(cell.replace(".", ",") if comma else cell for cell in row) for row in rows]
    path.write_bytes("".join(line + "\n" for line in lines).encode(encoding))
    return path


@pytest.mark.parametrize(
    ("delimiter", "encoding", "comma"),
    [
        (";", "utf-8", False),
        (";", "latin-1", True),
        ("\t", "utf-8", False),
        (" ", "utf-8", False),
        ("   ", "utf-8", False),
        ("|", "utf-8", False),
        (",", "latin-1", False),
        (",", "utf-16", False),
    ],
)
def test_other_forms_are_drafted_alike_and_converted_to_what_tables_are_opened_from(
    tmp_path: Path, delimiter: str, encoding: str, comma: bool
) -> None:
    plain = _form(tmp_path / "plain.csv", ",", "utf-8-sig")
    other = _form(tmp_path / "other.csv", delimiter, encoding, comma)
    said = None if encoding == "utf-8" else encoding
    text = draft(other, target="sex", encoding=said)
    assert Domain.parse(text) == draft_domain(plain, target="sex")
    assert "privet domain convert FILE.csv -o NEW.csv" in text
    assert "privet domain convert" not in draft(plain)
    convert(other, tmp_path / "new.csv", encoding=said)
    with privet.open(tmp_path / "new.csv", Domain.parse(text), budget=1000, ledger=":memory:") as table:
        assert table.count(900).value == 400


def test_a_file_without_a_header_takes_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("".join(",".join(row) + "\n" for row in PEOPLE), encoding="utf-8")
    names = ["sex", "age", "town", "dose"]
    assert draft_domain(path, target="sex", names=names) == draft_domain(
        _form(tmp_path / "a.csv", ",", "utf-8"), target="sex"
    )
    with pytest.raises(DataError, match="has 4 columns and 2 names were given"):
        draft(path, names=["a", "b"])
    with pytest.raises(DataError, match="must be different"):
        draft(path, names=["a", "b", "a", "c"])


def test_repeated_names_are_numbered_and_copies_left_out(tmp_path: Path) -> None:
    rows: list[list[object]] = [[*row, row[0], "xy"[k % 5 % 2]] for k, row in enumerate(PEOPLE)]
    path = _write(tmp_path, ["sex", "age", "town", "dose", "sex", "town"], rows)
    text = draft(path, target="sex")
    assert "names the column 'sex' twice" in text
    assert _left_out(text, "sex.1") == "repeats 'sex' in every row"  # it would give the target away
    assert Domain.parse(text)["town.1"].labels[:2] == ("x", "y")
    convert(path, tmp_path / "new.csv")
    with privet.open(tmp_path / "new.csv", Domain.parse(text), budget=1000, ledger=":memory:") as table:
        assert table.count(900).value == 400


def test_a_conversion_says_nothing_about_private_rows(tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    path.write_text('sex;age\nf;20\nm;30;40\nm;"5"0\n', encoding="utf-8")
    convert(path, tmp_path / "new.csv", delimiter=";")
    with (tmp_path / "new.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["sex", "age"], ["f", "20"], ["m", "30", "40"], ["m", "50"]]


def test_a_column_name_cannot_write_settings(tmp_path: Path) -> None:
    """A sample comes from elsewhere: its header must stay a name, in comments too."""
    name = 'x"]\nrows = 5\n[columns."y'
    domain = Domain.parse(draft(_write(tmp_path, [name, "fixed"], [["", "a"], ["", "b"]])))
    assert (domain.names, domain.rows) == (("fixed",), None)
    domain = Domain.parse(draft(_write(tmp_path, [name, "fixed"], [["b", "a"], ["c", "b"]]), target=name))
    assert (domain.names, domain.rows, domain.target) == ((name, "fixed"), None, name)


def test_parquet_and_csv_give_the_same_domain(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": [20 + k % 50 for k in range(200)],
            "wage": [None if k == 7 else k / 4 for k in range(200)],
            "sex": pd.Categorical(["f", "m"] * 100),
            "smokes": [bool(k % 3) for k in range(200)],
            "name": [f"p{k % 9}" for k in range(200)],
        }
    )
    frame.to_parquet(tmp_path / "sample.parquet")
    frame["smokes"] = frame["smokes"].map({True: "true", False: "false"})
    frame.to_csv(tmp_path / "sample.csv", index=False)
    domain = Domain.parse(draft(tmp_path / "sample.parquet"))
    assert domain == Domain.parse(draft(str(tmp_path / "sample.csv")))
    assert domain.numeric("wage").missing
    assert domain["smokes"].labels == ("false", "true", "<missing>")


# --- from a codebook --------------------------------------------------------------------------------------------------

CODEBOOK = """\
| Census income: a comment with a colon.
>50K, <=50K.   | the classes

age: continuous.
workclass: Private, Self-emp-not-inc,
    State-gov.
children: 1, 2, 3.5, more.
weight: ignore.
"""


def test_a_codebook_is_drafted_and_loads_without_the_bounds_that_it_does_not_give(tmp_path: Path) -> None:
    path = tmp_path / "adult.names"
    path.write_text(CODEBOOK, encoding="utf-8")
    text = draft(path)
    assert "public codebook 'adult.names'" in text
    domain = Domain.parse(text)
    assert (domain.target, domain.classes, domain.attributes) == ("class", (">50K", "<=50K"), ("workclass", "children"))
    assert domain["workclass"].labels == ("Private", "Self-emp-not-inc", "State-gov", "<other>", "<missing>")
    assert "gives no bounds" in _left_out(text, "age")
    assert "ignored" in _left_out(text, "weight")
    start = text.index("# left out: 'age'")
    section = text[start : text.index("\n\n", start)]
    filled = "\n".join(line.removeprefix("# ") for line in section.splitlines()[1:])
    filled = filled.replace("low =", "low = 17").replace("high =", "high = 90")
    assert Domain.parse(text.replace(section, filled)).numeric("age").high == 90
    assert Domain.parse(draft(path, target="income")).target == "income"


def test_a_codebook_may_name_its_target_and_leave_values_open(tmp_path: Path) -> None:
    path = tmp_path / "new.names"
    path.write_text("play.\nplay: yes, no.\nwind: discrete 3.\nsky: sun, rain", encoding="utf-8")
    text = draft(path)
    domain = Domain.parse(text)
    assert (domain.target, domain.classes, domain.attributes) == ("play", ("yes", "no"), ("sky",))
    assert "does not list" in _left_out(text, "wind")


# --- bad input --------------------------------------------------------------------------------------------------------

BAD = {
    "empty.csv": b"",
    "blank.csv": b"\n\n",
    "header-only.csv": b"a,b\n",
    "no-header.csv": b"39, State-gov, 77516\n50, Private, 83311\n",
    "letters.csv": b"p,x,s,n,t,p\ne,x,s,y,t,a\n",
    "ragged.csv": b"a,b\n1,2\n1,2,3\n",
    "quote.csv": b'a,b\n"1,2\n',
    "latin.csv": "name,é\nx,y\n".encode("latin-1"),
    "picture.csv": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe",
    "zeros.csv": b"\0" * 100,
    "identifiers.csv": b"id\n" + b"".join(b"p%d\n" % k for k in range(2000)),
    "junk.parquet": b"PAR1 but not really",
    "empty.parquet": b"",
    "empty.names": b"| nothing but a comment\n",
    "prose.names": b"1. Title: United States Voting Records\n2. Source: Congress\n",
    "classes.names": b"yes, no.\n",
    "nameless.names": b"yes, no.\n: a, b.\n",
    "twice.names": b"yes, no.\na: 1, 2.\na: 3.\n",
    "loose.names": b"yes, no.\na: 1, 2.\nwords without a colon.\n",
    "same-value.names": b"yes, no.\na: 1, 1.\n",
    "zeros.names": b"\0" * 100,
    "latin.names": "né, no.\na: 1.\n".encode("latin-1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BAD[name])
    with pytest.raises(DataError) as refusal:
        draft(path)
    message = str(refusal.value)
    assert name in message
    assert "\n" not in message
    assert message.endswith((".", ".'"))
    assert len(message.replace(str(tmp_path), "")) < 300


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.parquet", "nowhere.names", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read '.*' \(.+\); check the path\.$"):
        draft(tmp_path / name)
