"""Domains: what is written is what is read, and a bad file is told in one sentence."""

from __future__ import annotations

import itertools
import pickle
import tempfile
from dataclasses import FrozenInstanceError
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.errors import DomainError, QuestionError, UndeclaredDomain
from privet.kernel import print_outside
from privet.kernel.column import Column, Nominal, Numeric, text_of
from privet.kernel.date import Date
from privet.kernel.domain import Domain

PROPERTY = settings(derandomize=True, deadline=None)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    [
        '"',
        "\\",
        "\\u0041",
        "'''",
        '"""',
        "a.b",
        "a b",
        "[x]",
        "#",
        "=",
        "\n",
        "\r\n",
        "\x00",
        "\x7f",
        "\x85",
        "\u2028",
        "é",
    ]
)
SCALARS = (
    TEXTS.filter(lambda text: text not in ("<other>", "<missing>", "<unwritable>"))
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
)
DECIMALS = st.builds(
    lambda digits, places: Fraction(digits, 10**places), st.integers(-(10**6), 10**6), st.integers(0, 6)
)


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    if draw(st.booleans()):
        values = draw(st.lists(SCALARS, min_size=1, max_size=6, unique_by=text_of))
        return Nominal(name, tuple(values), draw(st.booleans()), draw(st.booleans()), draw(st.booleans()))
    if draw(st.booleans()):
        first = draw(st.dates(max_value=date(9980, 1, 1)))
        last = first + timedelta(days=draw(st.integers(1, 7000)))
        inner = st.sets(st.dates(first + timedelta(days=1), last), max_size=5).map(sorted)
        cells: dict[str, Any] = draw(
            st.fixed_dictionaries({"step": st.sampled_from(["days", "2 months", "month", "3 years", "400 days", None])})
            | st.fixed_dictionaries({"edges": inner})
            | st.just({"bins": 1})
        )
        return Date(name, first, last, missing=draw(st.booleans()), **cells)
    low, step = draw(DECIMALS), abs(draw(DECIMALS)) or Fraction("0.1")
    last = draw(st.integers(1, 1000))
    edges = draw(st.none() | st.sets(st.integers(1, last), max_size=5).map(sorted))
    points = None if edges is None else tuple(low + index * step for index in edges)
    bins = draw(st.none() | st.integers(1, min(last, 20))) if points is None else None
    return Numeric(name, low, low + last * step, step, points, bins, draw(st.booleans()))


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    names = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    parts = tuple(draw(columns(name)) for name in names)
    classes = [part.name for part in parts if isinstance(part, Nominal) and not part.other and not part.missing]
    most = draw(st.none() | st.integers(1, 10**9))
    return Domain(
        parts,
        target=draw(st.none() | st.sampled_from(classes)) if classes else None,
        rows=draw(st.none() | st.integers(0, most or 10**9)),
        max_rows=most,
        rows_per_person=draw(st.integers(1, 50)),
    )


@PROPERTY
@given(domains())
@example(Domain((Numeric("x", Fraction("0.1"), Fraction("0.7"), Fraction("0.3")),)))
@example(Domain((Nominal("", ("", "\x00", '"', 0.1, 1e22, -0.0, True, 1)),), target=""))
def test_a_domain_survives_its_file(domain: Domain) -> None:
    again = Domain.parse(domain.to_toml())
    assert again == domain
    assert [column.labels for column in again] == [column.labels for column in domain]
    assert again.to_toml() == domain.to_toml()
    assert pickle.loads(pickle.dumps(domain)) == domain


@PROPERTY
@given(domains())
def test_saving_and_loading_is_the_same_as_writing_and_parsing(domain: Domain) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "domain.toml"
        domain.save(path)
        assert Domain.load(path) == domain


def test_numpy_scalars_are_written_as_plain_numbers() -> None:
    domain = Domain((Nominal("n", (np.float64(0.5), 2, "a")),))
    assert Domain.parse(domain.to_toml()) == domain


# --- bad domains ------------------------------------------------------------------------------------------------------


def _numeric(**settings: str) -> str:
    given = {"kind": '"numeric"', "low": "0", "high": "10"} | settings
    return "[columns.age]\n" + "\n".join(f"{name} = {value}" for name, value in given.items() if value)


def _nominal(**settings: str) -> str:
    given = {"kind": '"nominal"', "values": '["a", "b"]'} | settings
    return "[columns.age]\n" + "\n".join(f"{name} = {value}" for name, value in given.items() if value)


BAD_COLUMNS = {
    "no kind": _numeric(kind=""),
    "unknown kind": _numeric(kind='"text"'),
    "unknown setting": _numeric(lowest="1"),
    "no low": _numeric(low=""),
    "no high": _numeric(high=""),
    "low above high": _numeric(low="11"),
    "low equals high": _numeric(low="10"),
    "low is a text": _numeric(low='"0"'),
    "low is true": _numeric(low="true"),
    "low is a day": _numeric(low="2020-01-01"),
    "low is nan": _numeric(low="nan"),
    "high is infinite": _numeric(high="inf"),
    "high overflows": _numeric(high="1e400"),
    "high has 400 digits": _numeric(high="1" + "0" * 400),
    "high is too long": _numeric(high="0." + "1" * 50, step="0.1"),
    "high is too long once written out": _numeric(
        low="0", high="1.2345678901234567890123456789012345E-14", step="1e-15"
    ),
    "low is too small": _numeric(low="1e-400", step="1"),
    "no step for decimals": _numeric(low="0.5"),
    "step of 0": _numeric(step="0"),
    "step below 0": _numeric(step="-1"),
    "step above high - low": _numeric(step="11"),
    "grid too fine": _numeric(step="1e-12"),
    "bounds too large for the step": _numeric(low="1000000000000", high="1000000000100", step="0.01"),
    "whole bounds too large for the step": _numeric(low="900000000000000001", high="900000000000000100", step="1"),
    "no bins": _numeric(bins="0"),
    "bins below 0": _numeric(bins="-3"),
    "bins is a text": _numeric(bins='"many"'),
    "bins is a decimal": _numeric(bins="2.5"),
    "bins is true": _numeric(bins="true"),
    "more bins than grid points": _numeric(bins="12"),
    "a billion bins": _numeric(bins="1000000000"),
    "bins and edges": _numeric(bins="2", edges="[5]"),
    "edges is a number": _numeric(edges="5"),
    "edges of texts": _numeric(edges='["5"]'),
    "edge outside": _numeric(edges="[5, 11]"),
    "edges fall": _numeric(edges="[7, 5]"),
    "edges fall from high": _numeric(edges="[10, 5]"),
    "edge twice": _numeric(edges="[5, 5]"),
    "edges closer than a step": _numeric(edges="[5.1, 5.2]", step="1"),
    "numeric with values": _numeric(values='["a"]'),
    "numeric with other": _numeric(other="true"),
    "missing is a number": _numeric(missing="1"),
    "no values": _nominal(values=""),
    "empty values": _nominal(values="[]"),
    "values is a text": _nominal(values='"ab"'),
    "a list among the values": _nominal(values='["a", ["b"]]'),
    "a day among the values": _nominal(values="[2020-01-01]"),
    "value twice": _nominal(values='["a", "a"]'),
    "value twice, as number and text": _nominal(values='[1, "1"]'),
    "value twice, as whole and decimal": _nominal(values="[1, 1.0]"),
    "value is nan": _nominal(values="[nan]"),
    "value is infinite": _nominal(values="[-inf]"),
    "value overflows": _nominal(values="[1e400]"),
    "reserved value other": _nominal(values='["<other>"]'),
    "reserved value missing": _nominal(values='["<missing>"]'),
    "reserved value infinite": _nominal(values='["<unwritable>"]'),
    "ordered is a text": _nominal(ordered='"yes"'),
    "other is a number": _nominal(other="1"),
    "nominal with bins": _nominal(bins="2"),
    "unknown target": 'target = "sex"\n' + _nominal().replace("age", "sex2"),
    "numeric target": 'target = "age"\n' + _numeric(),
    "target with other": 'target = "age"\n' + _nominal(other="true"),
    "target with missing": 'target = "age"\n' + _nominal(missing="true"),
}
BAD_FILES = {
    "empty": "",
    "no columns": "rows = 5",
    "not TOML": "target: income",
    "half a line": "target =",
    "a section twice": _numeric() + "\n" + _numeric(),
    "deeply nested": "rows = " + "[" * 100_000,
    "columns is a number": "columns = 5",
    "a column is a number": "[columns]\nage = 5",
    "unknown setting": "row = 5\n" + _numeric(),
    "target is a number": "target = 5\n" + _numeric(),
    "rows is a decimal": "rows = 1e3\n" + _numeric(),
    "rows is true": "rows = true\n" + _numeric(),
    "rows below 0": "rows = -1\n" + _numeric(),
    "no rows at most": "max_rows = 0\n" + _numeric(),
    "nobody": "rows_per_person = 0\n" + _numeric(),
    "rows above max_rows": "rows = 6\nmax_rows = 5\n" + _numeric(),
    "a number of 5000 digits": "rows = 1" + "0" * 5000,
}


def _assert_one_sentence(message: str) -> None:
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 300


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_a_bad_column_is_named_in_one_sentence(case: str) -> None:
    with pytest.raises(DomainError) as refusal:
        Domain.parse(BAD_COLUMNS[case])
    message = str(refusal.value)
    _assert_one_sentence(message)
    assert f"'{'sex' if case == 'unknown target' else 'age'}'" in message


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence(case: str) -> None:
    with pytest.raises(DomainError) as refusal:
        Domain.parse(BAD_FILES[case])
    _assert_one_sentence(str(refusal.value))


@pytest.mark.parametrize(
    "bad",
    [
        {"step": Fraction(1, 3)},
        {"low": Fraction(0.1)},
        {"high": Fraction(10**30), "step": Fraction(10**25)},
        {"edges": (Fraction(10, 3),)},
    ],
    ids=["third", "float", "huge", "edge"],
)
def test_numbers_that_no_file_could_hold_are_refused_in_python_too(bad: dict[str, Any]) -> None:
    with pytest.raises(DomainError, match="column 'x'"):
        Numeric("x", **({"low": Fraction(0), "high": Fraction(10), "step": Fraction(1)} | bad))


def test_a_column_declared_twice_is_refused() -> None:
    with pytest.raises(DomainError, match="'sex' twice"):
        Domain((Nominal("sex", ("f",)), Nominal("age", ("1",)), Nominal("sex", ("m",))))


def test_unreadable_files_are_told_with_their_path(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'target = "\xe9"')
    broken = tmp_path / "broken.toml"
    broken.write_text(BAD_COLUMNS["low above high"], encoding="utf-8")
    for path in (tmp_path / "nowhere.toml", tmp_path, latin, broken):
        with pytest.raises(DomainError) as refusal:
            Domain.load(path)
        _assert_one_sentence(str(refusal.value).replace(str(path), ""))
        assert str(path) in str(refusal.value)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "domain.toml"
    path.write_text(_numeric(), encoding="utf-8-sig")
    assert Domain.load(path).names == ("age",)


# --- a good domain ----------------------------------------------------------------------------------------------------

GOOD = Domain.parse("""
target = "income"
rows = 45000
[columns.age]
kind = "numeric"
low = 17
high = 90
[columns.sex]
kind = "nominal"
values = ["Female", "Male"]
other = true
[columns.income]
kind = "nominal"
values = ["low", "high"]
""")


def test_what_a_domain_says() -> None:
    assert GOOD.names == ("age", "sex", "income")
    assert GOOD.attributes == ("age", "sex")
    assert GOOD.classes == ("low", "high")
    assert [column.name for column in GOOD] == list(GOOD.names)
    assert "sex" in GOOD
    assert "zip" not in GOOD
    assert GOOD.rows_per_person == 1
    assert GOOD.with_target("income") == GOOD
    assert GOOD.numeric("age").step == 1  # whole bounds need no step
    assert GOOD["age"].size == 10  # ten bins where nothing is said


def test_columns_that_are_not_declared_do_not_exist() -> None:
    with pytest.raises(UndeclaredDomain, match="column 'zip' has no declared domain") as refusal:
        GOOD["zip"]
    assert refusal.value.column == "zip"
    with pytest.raises(UndeclaredDomain, match="'zip'"):
        GOOD.numeric("zip")


def test_questions_that_need_numbers_or_a_target_say_so() -> None:
    with pytest.raises(QuestionError, match="'sex' is nominal"):
        GOOD.numeric("sex")
    with pytest.raises(UndeclaredDomain, match="declares no target"):
        _ = Domain.parse(_nominal()).classes
    with pytest.raises(DomainError, match="'sex' may not have other"):
        GOOD.with_target("sex")


def test_a_domain_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        GOOD.rows = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        GOOD["age"].low = Fraction(0)  # type: ignore[misc, union-attr]
    assert hash(GOOD) == hash(Domain.parse(GOOD.to_toml()))


def test_printing_shows_every_column_on_its_own_line() -> None:
    lines = str(GOOD).splitlines()
    assert lines[0] == "target income, about 45000 rows, 1 row per person"
    assert [line.split()[0] for line in lines[1:]] == ["column", *GOOD.names]
    assert all(len(a) <= 140 for a, _ in itertools.pairwise(lines))


def test_the_owner_is_told_which_column_loses_how_many_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values are cut: a text of a row may be as long as a book."""
    domain = Domain((Nominal("a", ("x", "y")), Nominal("b", (0, 1))))
    rows = ["x,0", "y,1", "z,1", "z,1", "w,7", "x," + "9" * 5000]
    (tmp_path / "rows.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_outside(tmp_path / "rows.csv", domain)
    told = capsys.readouterr().out
    assert "2 of 6 rows fit the domain, 4 are left out" in told
    assert "  a: leaves out 3 rows, 'z' (2), 'w' (1)\n" in told
    assert "  b: leaves out 2 rows, " in told and "'7' (1)" in told and "9" * 200 not in told
    assert "a row that several columns leave out is counted with each of them" in told


def test_the_owner_is_told_which_dates_are_none_or_clamped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Domain((Date("day", "2020-01-01", "2020-12-31"),))
    rows = ["2020-02-29", "2020-12-31 23:59", "2019-12-31", "31.12.2020", "2021-02-29", "31.12.2020"]
    (tmp_path / "rows.csv").write_text("day\n" + "\n".join(rows) + "\n")
    days = pd.DataFrame({"day": pd.to_datetime(["2020-02-29", None, "2021-01-01"])})
    days.to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_outside(tmp_path / "rows.csv", domain)
    told = capsys.readouterr().out
    assert "3 of 6 rows fit the domain, 3 are left out" in told
    assert "  day: leaves out 3 rows, '31.12.2020' (2), '2021-02-29' (1)\n" in told
    assert "  day: clamps 1 row, '2019-12-31' (1)\n" in told
    print_outside(tmp_path / "rows.parquet", domain)
    told = capsys.readouterr().out
    assert "  day: leaves out 1 row, None (1)\n" in told
    assert "  day: clamps 1 row, datetime.date(2021, 1, 1) (1)\n" in told


def test_the_owner_is_told_how_many_rows_persons_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Domain((Nominal("a", ("x", "y")),), rows_per_person=2, person="whose")
    rows = ["x,ann"] * 3 + ["y,ann", "x,bob", "z,bob", "x,", "y,cy"]
    (tmp_path / "rows.csv").write_text("a,whose\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_outside(tmp_path / "rows.csv", domain)
    assert capsys.readouterr().out.splitlines()[1:6] == [
        "6 of 8 rows fit the domain and name a person, 2 are left out",
        "  these are of 3 persons, up to 4 of each",
        "  rows_per_person = 1 leaves out 3 rows of 1 person",
        "  rows_per_person = 2, as declared, leaves out 2 rows of 1 person",
        "  rows_per_person = 4 leaves out none",
    ]


# -- edits ----------------------------------------------------------------------------------------

SEX, AGE, ILL = Nominal("sex", ["f", "m"]), Numeric("age", 0, 99), Nominal("ill", ["no", "yes"])
SMALL = Domain((SEX, AGE, ILL), target="ill")


def test_columns_are_declared_with_plain_numbers_and_lists() -> None:
    assert AGE == Numeric("age", Fraction(0), Fraction(99), Fraction(1)) and SEX == Nominal("sex", ("f", "m"))
    tenth = Numeric("x", 0, 0.3, "0.1", edges=[0.1, "0.2"])
    assert (tenth.high, tenth.step, tenth.edges) == (
        Fraction(3, 10),
        Fraction(1, 10),
        (Fraction(1, 10), Fraction(1, 5)),
    )
    assert hash(SMALL) and SMALL == Domain.parse(SMALL.to_toml())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Nominal("sex", "female"), "needs values as a list of texts, numbers or true/false, not 'female'"),
        (lambda: Nominal("sex", 2), "needs values as a list"),
        (lambda: Numeric("age", "young", 99), "needs a finite number for low, not 'young'"),
        (lambda: Numeric("age", 0, float("inf")), "needs a finite number for high, not inf"),
        (lambda: Numeric("age", True, 99), "needs a finite number for low, not True"),
        (lambda: Numeric("age", 99, 0), "needs low < high, not 99 and 0"),
        (lambda: Numeric("age", 0, 0.5), "needs step = ..."),
        (lambda: Numeric("age", 0, 9, edges=5), "needs edges as a rising list of numbers, not 5"),
        (lambda: Numeric("age", 0, 9, edges=["x"]), "needs a finite number for edges, not 'x'"),
        (lambda: Numeric("age", 0, 9, bins=2.5), "needs a whole number of bins, not 2.5"),
        (lambda: SMALL.without("agee"), "has no column 'agee' (did you mean 'age'?)"),
        (lambda: SMALL.without(3), "has no column 3"),
        (lambda: SMALL.without("ill"), "'ill' is the target; name another one by with_target first"),
        (lambda: SMALL.with_target("il"), "did you mean 'ill'"),
        (lambda: SMALL.with_target("age"), "a target is nominal"),
        (lambda: SMALL.with_column("sex"), "a column is a privet.Nominal or privet.Numeric, not 'sex'"),
        (lambda: SMALL.with_column(Numeric("ill", 0, 1)), "the target 'ill' is numeric"),
        (lambda: SMALL.with_person("ill"), "'ill' is the target"),
        (lambda: SMALL.with_person("id", rows_per_person=0), "rows_per_person = 0 is not possible"),
        (lambda: SMALL.with_person(7), "person is the name of a column, not 7"),
        (lambda: SMALL.with_rows(10, max_rows=5), "rows = 10 is above max_rows = 5"),
        (lambda: SMALL.with_rows("many"), "rows = 'many' is not possible"),
        (lambda: Domain((SEX,)).without("sex"), "declares no columns"),
    ],
)
def test_an_edit_that_cannot_be_made_is_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(DomainError) as raised:
        make()
    assert sentence in str(raised.value) and "\n" not in str(raised.value)


def test_edits_return_new_domains_and_leave_the_old_one() -> None:
    before = SMALL.to_toml()
    older = SMALL.with_column(Numeric("age", 18, 90, bins=4), Nominal("zip", [1, 2]))
    assert older.names == ("sex", "age", "ill", "zip") and older["age"].size == 4
    assert older.without("zip", "sex").names == ("age", "ill")
    assert older.with_target("sex").target == "sex" and older.with_target(None).target is None
    sized = older.with_rows(45_000).with_rows(max_rows=50_000)
    assert (sized.rows, sized.max_rows) == (45_000, 50_000)
    owned = sized.with_person("zip", rows_per_person=5)
    assert (owned.person, owned.rows_per_person, owned.names) == ("zip", 5, ("sex", "age", "ill"))
    assert owned.with_person("id").rows_per_person == 5 and owned.with_person(None).person is None
    assert SMALL.to_toml() == before


@PROPERTY
@given(st.lists(TEXTS, max_size=4))
def test_notes_are_comments_of_the_file_and_mean_nothing(notes: list[str]) -> None:
    noted = Domain(SMALL.columns, target="ill", notes=tuple(notes))
    again = Domain.parse(noted.to_toml())
    assert again == noted == SMALL and noted.fingerprint == SMALL.fingerprint
    assert len(again.notes) == len(notes) and Domain.parse(again.to_toml()).notes == again.notes
    assert Domain.parse("# one\n#two\n\n# no note\n" + SMALL.to_toml()).notes == ("one", "two")
