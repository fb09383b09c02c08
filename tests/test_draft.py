"""Drafts: a sample's draft loads and holds the sample, a codebook's asks for what it cannot know."""

from __future__ import annotations

import csv
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.draft import draft
from privet.errors import DataError, DomainError
from privet.kernel.column import Nominal, Numeric, number_of
from privet.kernel.domain import Domain

PROPERTY = settings(derandomize=True, deadline=None)


def _write(folder: Path, header: list[str], rows: list[list[object]], name: str = "sample.csv") -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def _column(folder: Path, values: list[object], name: str = "x") -> str:
    """The draft of one column, beside another that always can be drafted."""
    text = draft(_write(folder, [name, "fixed"], [[value, "a"] for value in values]))
    return text[text.index("[columns") if f'"{name}"]' in text else text.index("# column") :]


def _drafted(folder: Path, values: list[object]) -> Nominal | Numeric:
    return Domain.parse(draft(_write(folder, ["x", "fixed"], [[value, "a"] for value in values])))["x"]


# --- from a sample ----------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
CELLS = TEXTS | st.sampled_from(["", "?", "NA", "<other>", '"', "#", "\u2028", "1e999", "-1e300", "1e-300", "0.1"])
NUMBERS = st.integers(-(10**20), 10**20).map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
NAMES = TEXTS.filter(lambda name: bool(name.strip()) and "\0" not in name and number_of(name) is None)


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    header = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    count = draw(st.integers(1, 30))
    kinds = [draw(st.sampled_from([CELLS, NUMBERS, st.integers(0, 99).map(str)])) for _ in header]
    columns = [draw(st.lists(kind, min_size=count, max_size=count)) for kind in kinds]
    return [*header, "fixed column"], [[*row, "a"] for row in zip(*columns, strict=True)]


@PROPERTY
@given(samples())
def test_the_draft_of_a_sample_loads_and_holds_every_row(sample: tuple[list[str], list[list[str]]]) -> None:
    header, rows = sample
    with tempfile.TemporaryDirectory() as folder:
        domain = Domain.parse(draft(_write(Path(folder), header, rows)))  # type: ignore[arg-type]
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
    for word in (
        "DRAFT",
        "public sample 'sample.csv'",
        "line by line",
        "never be made from the private rows",
        "on purpose",
    ):
        assert word in comment
    for setting in ("target", "rows", "max_rows", "rows_per_person"):
        assert f"\n# {setting} = " in text
    assert "# rows =               # public order of magnitude, fill in or leave out\n" in text
    assert str(tmp_path) not in text
    domain = Domain.parse(text)
    assert (domain.target, domain.rows, domain.max_rows) == (None, None, None)


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        (range(17, 91), "10", "90", "1"),
        (range(1, 100), "0", "100", "1"),
        (range(1995, 2021), "1990", "2020", "1"),
        (range(-7, 8), "-10", "10", "1"),
        ([f"{k}.5" for k in range(20)], "0", "20", "0.1"),
        ([f"{k}.0" for k in range(20)], "0", "20", "1"),
        ([f"0.{k:02}" for k in range(1, 20)], "0", "0.2", "0.01"),
        ([f"{k}e3" for k in range(20)], "0", "20000", "1"),
        ([10.0**-k for k in range(60)], "0", "1", "0.0000001"),  # p-values: the grid stops somewhere
        ([f"{10**8 + k}.5" for k in range(20)], "100000000", "100000020", "1"),
        ([k / 7 for k in range(20)], "0", "3", "0.000001"),
        ([1_600_000_000_000 + k for k in range(50)], "1600000000000", "1600000000050", "1"),  # milliseconds
    ],
)
def test_bounds_are_tidy_and_outside(tmp_path: Path, values: list[object], low: str, high: str, step: str) -> None:
    column = _drafted(tmp_path, list(values))
    assert isinstance(column, Numeric)
    assert (column.low, column.high, column.step) == (Fraction(low), Fraction(high), Fraction(step))
    assert "must come from knowledge of the quantity, not from the sample" in _column(tmp_path, list(values))


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", "NULL", " "])
def test_numbers_with_gaps_are_numbers_with_a_missing_cell(tmp_path: Path, mark: str) -> None:
    column = _drafted(tmp_path, [*range(20), mark])
    assert isinstance(column, Numeric)
    assert column.missing
    assert column.code(mark) == column.missing_code


def test_few_numbers_are_a_list_of_values_in_their_order(tmp_path: Path) -> None:
    column = _drafted(tmp_path, [10, 9, 2, 1, 2])
    assert isinstance(column, Nominal)
    assert column.values == ("1", "2", "9", "10")
    assert 'kind = "numeric"' in _column(tmp_path, [10, 9, 2, 1]).split("\n\n")[0]  # a hint for quantities


def test_texts_are_sorted_and_offered_a_cell_for_others(tmp_path: Path) -> None:
    text = _column(tmp_path, ["b", "a", "", "b"])
    assert 'values = ["a", "b"]\nmissing = true\n# other = true ' in text
    assert text.count("# other = true") == 2  # every nominal column


def test_identifiers_and_empty_columns_are_left_out_with_a_reason(tmp_path: Path) -> None:
    kept = _column(tmp_path, [f"p{k}" for k in range(1000)])
    assert kept.startswith('[columns."x"]')
    assert _column(tmp_path, [f"p{k}" for k in range(1001)]).startswith(
        "# column 'x' is left out: more than 1000 texts, probably an identifier."
    )
    assert "is left out" in _column(tmp_path, ["", ""])
    assert "is left out" in _column(tmp_path, [f"{k}e200" for k in range(20)])


def test_a_column_name_cannot_write_settings(tmp_path: Path) -> None:
    """A sample comes from elsewhere: its header must stay a name, in comments too."""
    name = 'x"]\nrows = 5\n[columns."y'
    domain = Domain.parse(draft(_write(tmp_path, [name, "fixed"], [["", "a"]])))
    assert (domain.names, domain.rows) == (("fixed",), None)
    domain = Domain.parse(draft(_write(tmp_path, [name, "fixed"], [["b", "a"]])))
    assert (domain.names, domain.rows) == ((name, "fixed"), None)


def test_parquet_and_csv_give_the_same_domain(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": [20 + k % 50 for k in range(200)],
            "wage": [None if k == 7 else k / 4 for k in range(200)],
            "sex": pd.Categorical(["f", "m"] * 100),
            "smokes": [bool(k % 3) for k in range(200)],
            "name": [f"p{k}" for k in range(200)],
        }
    )
    frame.to_parquet(tmp_path / "sample.parquet")
    frame["smokes"] = frame["smokes"].map({True: "true", False: "false"})
    frame.to_csv(tmp_path / "sample.csv", index=False)
    domain = Domain.parse(draft(tmp_path / "sample.parquet"))
    assert domain == Domain.parse(draft(str(tmp_path / "sample.csv")))
    assert domain.numeric("wage").missing
    assert domain["smokes"].labels == ("false", "true")


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


def test_a_codebook_is_drafted_and_asks_for_bounds(tmp_path: Path) -> None:
    path = tmp_path / "adult.names"
    path.write_text(CODEBOOK, encoding="utf-8")
    text = draft(path)
    assert "public codebook 'adult.names'" in text
    assert "does not load without" in text
    with pytest.raises(DomainError, match="column 'age' needs low"):
        Domain.parse(text)
    filled = text.replace("# low = ", "low = 17").replace("# high =", "high = 90").replace("# step = ", "step = 1")
    domain = Domain.parse(filled)
    assert domain.target == "class"
    assert domain.classes == (">50K", "<=50K")
    assert domain.attributes == ("age", "workclass", "children")
    assert domain["workclass"].labels == ("Private", "Self-emp-not-inc", "State-gov")
    assert domain["children"].labels == ("1", "2", "3.5", "more")
    assert "# column 'weight' is left out" in text
    assert "# other" not in text[text.index('[columns."class"]') :]
    assert text.count("# other = true") == 2


def test_a_codebook_may_name_its_target_and_leave_values_open(tmp_path: Path) -> None:
    path = tmp_path / "new.names"
    path.write_text("play.\nplay: yes, no.\nwind: discrete 3.\nsky: sun, rain", encoding="utf-8")
    text = draft(path)
    with pytest.raises(DomainError, match="column 'wind' needs values"):
        Domain.parse(text)
    domain = Domain.parse(text.replace("# values = []", 'values = ["n", "s", "e"]'))
    assert (domain.target, domain.classes) == ("play", ("yes", "no"))
    assert domain.attributes == ("wind", "sky")


# --- bad input --------------------------------------------------------------------------------------------------------

BAD = {
    "empty.csv": b"",
    "blank.csv": b"\n\n",
    "header-only.csv": b"a,b\n",
    "no-header.csv": b"39, State-gov, 77516\n50, Private, 83311\n",
    "letters.csv": b"p,x,s,n,t,p\ne,x,s,y,t,a\n",
    "gap.csv": b"a,,c\n1,2,3\n",
    "ragged.csv": b"a,b\n1,2\n1,2,3\n",
    "semicolons.csv": b"a;b\n1;2\n",
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
    assert len(message.replace(str(tmp_path), "")) < 250


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.parquet", "nowhere.names", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read '.*' \(.+\); check the path\.$"):
        draft(tmp_path / name)
