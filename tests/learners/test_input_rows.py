"""What `fit(X, y)` says about the rows of its caller: with a declared domain nothing that depends on a row."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import DataError, DtypeMismatchWarning, PrivacyLeakWarning, TargetNameWarning
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.learners.input_rows import as_pandas, labels_of, mismatches, rows_of

DIGITS = Domain((Nominal("x", (0, 1)), Nominal("y", (0, 1))), target="y")
WORDS = Domain((Nominal("x", (0, 1)), Nominal("y", ("no", "yes"))), target="y")
X = pd.DataFrame({"x": [0, 1] * 50})


def counted(domain: Domain, rows: Any, labels: Any) -> list[int]:
    """How many rows of each class a fit counts: with so much epsilon the noise is 0 in all but one of 10^40 fits."""
    fitted = privet.DiffPID3Classifier(epsilon=1000, domain=domain, max_depth=0).fit(rows, labels)
    (leaf,) = fitted.model_.tree.counts.tolist()
    return [round(count) for count in leaf]


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [1.0, 2.0, 0.5, np.nan, np.inf], ids=str)
def test_no_label_makes_a_fit_raise(last: float) -> None:
    """`check_classification_targets` did, for a single fraction among the labels."""
    assert counted(DIGITS, X, np.array([0.0, 1.0] * 49 + [0.0, last])) == [50, 49 + (last == 1)]


@pytest.mark.parametrize(
    "last", [1, "x", None, 0.5, True, [1], object(), b"1", 10**400], ids=lambda value: str(value)[:10]
)
@pytest.mark.parametrize("pack", [list, tuple, lambda labels: pd.Series(labels, dtype=object)])
def test_one_label_of_another_kind_changes_no_other_row(last: Any, pack: Callable[[list[Any]], Any]) -> None:
    """numpy makes the texts 0.0 and 1.0 of all labels where one of a list is a text, and none of them is declared."""
    assert counted(DIGITS, X, pack([0.0, 1.0] * 49 + [0.0, last])) == [50, 49 + (last == 1 and last is not True)]


@pytest.mark.parametrize("last", [1, 0.0, "x", None, True])
def test_one_cell_of_another_kind_changes_no_other_row(last: Any) -> None:
    domain = Domain((Nominal("x", (True, False)), Nominal("y", ("no", "yes"))), target="y")
    rows = [[True], [False]] * 49 + [[True], [last]]
    assert counted(domain, rows, ["no", "yes"] * 50) == [50, 49 + (last is True)]


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (X, [0] * 99),
        (X, np.zeros((100, 2))),
        (X.to_numpy()[:, 0], [0] * 100),
        (np.full((100, 1), 1j), [0] * 100),
        (X.assign(more=1).to_numpy(), [0] * 100),
    ],
    ids=["lengths", "two columns", "one dimension", "complex", "another width"],
)
def test_what_is_no_table_is_refused_without_a_word_about_its_rows(rows: Any, labels: Any) -> None:
    with pytest.raises(DataError) as caught:
        privet.DiffPID3Classifier(epsilon=1, domain=DIGITS).fit(rows, labels)
    assert not any(word in str(caught.value) for word in ("secret", "99", "100", "1j"))
    assert "\n" not in str(caught.value)


def test_no_rows_are_fitted_like_any_others() -> None:
    """An error would tell that the last person has left."""
    for rows, labels in ((X[:0], []), (np.empty((0, 1)), np.empty(0)), ([], [])):
        fitted = privet.DiffPID3Classifier(epsilon=1, domain=DIGITS).fit(rows, labels)
        assert fitted.privacy_.spent == 1 and fitted.privacy_.private


@pytest.mark.parametrize("last", [[], [0, 1], None, 0, "0", {0: 0}, np.zeros((2, 2))], ids=str)
def test_a_row_of_another_length_is_missing_and_changes_no_other(last: Any) -> None:
    """To refuse it would tell that it is there."""
    missing = Domain((Nominal("x", (0, 1), missing=True), Nominal("y", (0, 1))), target="y")
    rows = [[0], (1,), np.array([0]), last]
    assert counted(DIGITS, rows, [0, 0, 0, 1]) == [3, 0] and counted(missing, rows, [0, 0, 0, 1]) == [3, 1]
    assert counted(DIGITS, [last, last], [0, 1]) == [0, 0]


@pytest.mark.parametrize("odd", ["\ud800", datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01"), [1]], ids=ascii)
def test_pandas_guesses_no_type_of_objects(odd: Any) -> None:
    """A text that is no UTF-8 was an error that quoted it, and times were refused only where all rows were times."""
    for rows in ([0, odd], [odd, odd]):
        column = np.empty(2, dtype=object)
        for position, cell in enumerate(rows):
            column[position] = cell
        for form in ([[cell] for cell in rows], column[:, None]):
            assert counted(DIGITS, form, [0, 1]) == [int(rows[0] == 0), 0]
        for labels in (rows, column, pd.Series(column, dtype=object)):
            assert counted(DIGITS, X[:2], labels) == [int(rows[0] == 0), 0]


def test_an_array_of_texts_may_hold_one_that_is_no_utf8() -> None:
    texts = np.array(["0", "\ud800", "1"])
    assert counted(DIGITS, texts[:, None], [0, 0, 1]) == [1, 1]
    assert counted(DIGITS, X[:3], texts) == [1, 1]


def test_settings_of_numpy_make_no_cell_an_error() -> None:
    domain = Domain((Numeric("x", 0, 10, 3), Nominal("y", (0, 1))), target="y")  # type: ignore[arg-type]
    with np.errstate(all="raise"):
        for dtype in ("float64", "Float64", "object"):
            assert counted(domain, pd.DataFrame({"x": [1, 5e-324]}, dtype=dtype), [0, 1]) == [1, 1]


def test_labels_come_as_frames_columns_lists_and_arrays() -> None:
    labels = [0, 1] * 50
    columns = pd.DataFrame({"y": labels})
    for form in (labels, columns, columns["y"], columns["y"].astype("Int64"), columns["y"].astype("category")):
        assert counted(DIGITS, X, form) == [50, 50]
    for form in (np.array(labels), np.array(labels)[:, None], pl.Series(labels), pd.Index(labels)):
        assert counted(DIGITS, X, form) == [50, 50]


def test_without_a_domain_the_model_says_that_it_is_not_private() -> None:
    with pytest.warns(PrivacyLeakWarning):
        fitted = privet.DiffPID3Classifier(epsilon=1).fit(X, [0, 1] * 50)
    assert not fitted.privacy_.private and "its domain was read from the rows" in str(fitted.privacy_)
    with pytest.raises(ValueError, match="Unknown label type"), warnings.catch_warnings():
        privet.DiffPID3Classifier(epsilon=1).fit(X, np.linspace(0, 1, 100))


# -- the warning ----------------------------------------------------------------------------------

NUMBERS = ("int8", "int64", "uint16", "float32", "float64", "Int64", "Float64", "int64[pyarrow]", "Sparse[float64]")
TRUTHS = ("bool", "boolean", "bool[pyarrow]")
ANYTHING = ("object", "str", "string", "category", "string[pyarrow]")


def told(dtype: str, column: Nominal | Numeric) -> list[str]:
    return mismatches(pd.DataFrame({"x": pd.Series([], dtype=dtype)}), Domain((column,)))


@pytest.mark.parametrize(
    ("values", "numbers", "truths"),
    [
        (("no", "yes"), True, True),
        (("no", "7"), False, True),
        ((0, 1), False, True),
        (("0", "0.5"), False, True),
        (("007", "1e3", " 1"), True, True),  # a number is never written so
        ((True, False), True, False),
        (("true", "maybe"), True, False),
    ],
)
def test_dtypes_of_a_family_warn_alike_and_others_never(values: tuple[Any, ...], numbers: bool, truths: bool) -> None:
    column = Nominal("x", values)
    by_number, by_truth = ({tuple(told(dtype, column)) for dtype in family} for family in (NUMBERS, TRUTHS))
    assert len(by_number) == len(by_truth) == 1
    assert (bool(min(by_number)), bool(min(by_truth))) == (numbers, truths)
    assert not any(told(dtype, column) for dtype in ANYTHING)


def test_a_numeric_column_takes_numbers_truth_values_and_texts() -> None:
    column = Numeric("x", 0, 9, 1)  # type: ignore[arg-type]
    assert not any(told(dtype, column) for dtype in (*NUMBERS, *TRUTHS, *ANYTHING))


def test_numbers_and_truth_values_are_no_dates() -> None:
    column = privet.Date("x", "2020-01-01", "2021-12-31", "years")
    assert told("int64", column) == ["'x' holds numbers and declares 2020, 2021"] and told("bool", column)
    times = ("datetime64[ns]", "datetime64[us, UTC]", "timestamp[s][pyarrow]")
    assert not any(told(dtype, column) for dtype in (*ANYTHING, *times))


def test_labels_that_a_domain_cannot_mean_are_warned_of_once() -> None:
    wrong = Domain((Nominal("x", ("a", "b"), other=True), Nominal("y", ("no", "yes"))), target="y")
    with pytest.warns(DtypeMismatchWarning) as caught:
        privet.DiffPID3Classifier(epsilon=1, domain=wrong).fit(X, np.array([0, 1] * 50))
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert "'x' holds numbers and declares a, b, <other>; 'y' holds numbers and declares no, yes." in text
    assert "privet domain check" in text and "\n" not in text


def test_many_columns_are_one_short_warning() -> None:
    names = [f"column {i}" for i in range(300)]
    domain = Domain((*(Nominal(name, ("a" * 900, "b")) for name in names), Nominal("y", (0, 1))), target="y")
    rows = pd.DataFrame(np.zeros((4, 300), dtype=int), columns=pd.Index(names))
    with pytest.warns(DtypeMismatchWarning, match="and 295 more columns") as caught:
        privet.PriorClassifier(epsilon=1, domain=domain).fit(rows, [0, 1, 0, 1])
    assert len(caught) == 1 and len(str(caught[0].message)) < 1500


@given(
    st.lists(st.none() | st.integers(-9, 9) | st.floats(allow_nan=True), min_size=1, max_size=6),
    st.lists(st.integers(-9, 9), min_size=1, max_size=6),
)
@settings(derandomize=True, deadline=None, max_examples=50)
def test_one_number_more_or_less_changes_no_warning(numbers: list[Any], labels: list[int]) -> None:
    """Among numbers, whole or not, with or without missing ones, the rows say nothing."""

    def said(rows: list[Any]) -> list[str]:
        frame = pd.DataFrame({"x": pd.Series(rows, dtype=None if any(row is not None for row in rows) else "float64")})
        return mismatches(frame.assign(y=(labels * 9)[: len(rows)]), WORDS)

    assert said([*numbers, 1]) == said([*numbers, 0.5]) == said([*numbers, None, 3])


def test_a_table_that_was_opened_warns_of_nothing() -> None:
    frame = X.assign(y=[0, 1] * 50)
    with privet.open(frame, WORDS, budget=2) as table:
        privet.DiffPID3Classifier(epsilon=1).fit(table)


def test_elements_keep_their_types() -> None:
    assert [type(label) for label in labels_of([0.0, True, "x", 1])] == [float, bool, str, int]
    assert [type(cell) for cell in rows_of([[0.0, True], ["x", 1]], 2).ravel()] == [float, bool, str, int]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_missing_value_changes_no_whole_number_beside_it(library: str) -> None:
    """pandas alone would read both columns of numbers as floats, in which 2^53 and 2^53 + 1 are one."""
    module = pytest.importorskip(library)
    make = module.DataFrame if library == "polars" else module.table
    frame = as_pandas(make({"id": [2**53 + 1, None, 7], "word": ["a", None, "b"]}))
    assert Nominal("id", (2**53, 2**53 + 1), other=True, missing=True).encode(frame["id"]).tolist() == [1, 3, 2]
    assert Nominal("word", ("a", "b"), missing=True).encode(frame["word"]).tolist() == [0, 2, 1]


CLASSES = ["polars", "polars frame", "pandas", "index", "arrow", "chunks", "arrow table"]


def classes(kind: str, labels: list[Any], dtype: str) -> Any:
    """A column of classes of a library; `dtype` is Arrow's name of its type."""
    pa = pytest.importorskip("pyarrow")
    array = pa.array(labels, type=pa.type_for_alias(dtype))
    nullable = pd.array(labels, dtype={"int64": "Int64", "bool": "boolean"}.get(dtype, "string"))
    return {
        "polars": lambda: pl.Series("y", array),
        "polars frame": lambda: pl.DataFrame({"y": array}),
        "pandas": lambda: nullable,
        "index": lambda: pd.Index(nullable),
        "arrow": lambda: array,
        "chunks": lambda: pa.chunked_array([array]),
        "arrow table": lambda: pa.table({"y": array}),
    }[kind]()


@pytest.mark.parametrize("kind", CLASSES)
def test_a_missing_class_changes_no_other(kind: str) -> None:
    """A null would turn whole numbers into floats, in which 2^53 + 1 is another class."""
    labels = labels_of(classes(kind, [0, 2**53 + 1, None], "int64"))
    assert Nominal("y", (0, 2**53 + 1)).encode(labels).tolist() == [0, 1, -1]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_missing_class_changes_no_warning(kind: str) -> None:
    """An array of booleans and a null would be one of objects, which never warn."""
    for last in (True, None):
        with pytest.warns(DtypeMismatchWarning, match="'y' holds truth values and declares no, yes"):
            privet.PriorClassifier(epsilon=1, domain=WORDS).fit(X[:3], classes(kind, [True, False, last], "bool"))


@pytest.mark.parametrize("kind", CLASSES)
def test_texts_are_classes_with_and_without_a_missing_one(kind: str) -> None:
    for last in ("no", None):
        assert counted(WORDS, X[:3], classes(kind, ["no", "yes", last], "string")) == [1 + (last == "no"), 1]


def test_classes_come_as_a_dictionary_of_arrow_and_as_wide_numbers_of_polars() -> None:
    pa = pytest.importorskip("pyarrow")
    for last in ("no", None):
        assert counted(WORDS, X[:3], pa.array(["no", "yes", last]).dictionary_encode()) == [1 + (last == "no"), 1]
    for number in (1, None):
        assert counted(DIGITS, X[:3], pl.Series([0, 1, number], dtype=pl.Int128)) == [1, 1 + (number == 1)]


# -- the name of the target ---------------------------------------------------------------------

PAY = pd.DataFrame({"age": [20, 30, 40, 50] * 30, "Salary": ["low", "low", "high", "high"] * 30})


def named(y: Any) -> Any:
    """A classifier that was fitted without a domain to ages and these classes."""
    with pytest.warns(PrivacyLeakWarning):
        return privet.MaxTreeClassifier(epsilon=1000, max_depth=1).fit(PAY[["age"]], y)


@pytest.mark.parametrize(
    "y",
    [
        PAY["Salary"],
        PAY[["Salary"]],
        pd.Index(PAY["Salary"]),
        pl.Series("Salary", PAY["Salary"].tolist()),
        pl.DataFrame({"Salary": PAY["Salary"].tolist()}),
        pl.DataFrame({"Salary": PAY["Salary"].tolist()}).to_arrow(),
    ],
    ids=["pandas column", "pandas frame", "pandas index", "polars column", "polars frame", "arrow table"],
)
def test_the_target_of_a_model_has_the_name_of_y(y: Any) -> None:
    fitted = named(y)
    assert fitted.model_.domain.target == "Salary" and "Salary" in fitted.model_.to_html()
    assert privet.audit(fitted.model_, PAY[["age"]], sensitive="Salary", remedies=False).sensitive == "Salary"


@pytest.mark.parametrize("y", [PAY["Salary"].tolist(), PAY["Salary"].rename(None), PAY["Salary"].rename(3)])
def test_a_target_without_a_name_is_called_target(y: Any) -> None:
    assert named(y).domain_.target == "target"


def test_a_column_of_x_with_the_name_of_y_stays_an_attribute_and_is_warned_of() -> None:
    with pytest.warns(TargetNameWarning, match="X has a column 'age' too") as caught:
        fitted = named(PAY["age"] > 35)
    assert fitted.domain_.attributes == ("age",) and fitted.domain_.target == "target"
    assert {warning.filename for warning in caught} == {__file__}


def test_the_target_of_a_domain_is_the_domains_whatever_y_is_called() -> None:
    domain = privet.Domain(
        (Numeric("age", 0, 99), Nominal("sex", ("f", "m")), Nominal("pay", ("low", "high"))), target="pay", person="id"
    )
    rows = PAY[["age"]].assign(sex="f", id=range(len(PAY)))
    learner = privet.MaxTreeClassifier(epsilon=1, domain=domain, max_depth=1)
    assert learner.fit(rows, PAY["Salary"]).domain_.target == "pay"
    for name in ("sex", "id"):
        with pytest.warns(TargetNameWarning, match=f"y is called '{name}', and the target of the domain is 'pay'"):
            assert learner.fit(rows, PAY["Salary"].rename(name)).domain_.target == "pay"
