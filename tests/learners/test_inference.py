"""Domains read from rows: every column gets one, every value a cell, and a domain file can hold them."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import DataError, DomainError, PrivacyLeakWarning
from privet.kernel.column import Column, Nominal, Numeric
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.learners.inference import infer

NAN, INF = math.nan, math.inf


def _column(values: Any, dtype: Any = None) -> Column:
    """The column that is inferred; it has a cell for every value, and a domain file can hold it."""
    series = pd.Series(values, dtype=dtype)
    frame = pd.DataFrame({"x": series, "y": [0] * len(series)})
    domain = infer(frame, "y", [0, 1])
    assert domain.target == "y" and domain.classes == (0, 1) and domain.attributes == ("x",)
    assert Domain.parse(domain.to_toml()) == domain
    found = domain["x"]
    assert (found.encode(series) >= 0).all()
    return found


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([3, 1, 2, 1], None, (1, 2, 3)),
        ([3, 1, 2], "uint8", (1, 2, 3)),
        ([1.0, 2.0], None, (1, 2)),  # whole floats are codes too
        ([-1.0, 0.0, -0.0], None, (-1, 0)),
        ([7, 7, 7], None, (7,)),  # a constant is one cell
        ([1, 2, 2**52], None, (1, 2, 2**52)),
        ([1, 0], "Int64", (0, 1)),
        (list(range(20)), None, tuple(range(20))),
        ([1, 2], object, (1, 2)),
        ([np.int64(4), 2.0], object, (2, 4)),
    ],
)
def test_few_whole_numbers_are_codes(values: Any, dtype: Any, expected: tuple[int, ...]) -> None:
    assert _column(values, dtype) == Nominal("x", expected, ordered=True, other=True)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (["b", "a", "b"], None, ("a", "b")),
        (["b", "a"], object, ("a", "b")),
        (["b", "a"], "category", ("a", "b")),
        ([2, 1], "category", ("1", "2")),
        ([True, False], None, ("false", "true")),
        ([True, True], None, ("true",)),
        ([1, "1", "b"], object, ("1", "b")),  # the same, though not equal
        (["1.5", "2"], None, ("1.5", "2")),  # texts are texts
        ([1.5, "x"], object, ("1.5", "x")),
    ],
)
def test_texts_and_booleans_are_categories(values: Any, dtype: Any, expected: tuple[str, ...]) -> None:
    assert _column(values, dtype) == Nominal("x", expected, other=True)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["a", None], object),
        (["a", NAN], object),
        (["a", None], "str"),
        (["a", ""], None),  # an empty text is a missing value
        ([True, None], object),
        ([True, None], "boolean"),
        ([1, None], "Int64"),
        ([1, NAN], None),
        ([1.5, NAN], None),
        ([1, None], object),
        (["a", None], "category"),
    ],
)
def test_missing_values_have_a_cell_where_there_are_some(values: Any, dtype: Any) -> None:
    found = _column(values, dtype)
    assert found.missing
    assert found.encode(pd.Series(values, dtype=dtype))[1] == found.missing_code
    present = pd.Series(values, dtype=dtype)[:1]
    assert not _column(present.tolist(), dtype).missing


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        (list(range(100)), 0, 99, 1),
        (list(range(-50, 50)), -50, 49, 1),
        (list(range(0, 2**20, 2**15)), 0, 2**20 - 2**15, 1),
        ([0.25, 0.5], "0.25", "0.5", "0.0001"),
        ([1.5, INF, -INF, 2.25], "1.5", "2.25", "0.0001"),  # infinities are clamped
        ([0.5, 0.5], "0.5", "0.501", "0.0001"),  # a constant: room for its bins
        ([-0.5], "-0.5", "-0.499", "0.0001"),
        ([INF, -INF], 0, 1, 1),
        ([0.5, 1e15, 3e15], 0, 3 * 10**15, 10**12),
        ([1e9 + 0.25, 1e9 + 0.5], 10**9, 10**9 + 100, 10),  # no finer than its size allows
        ([1e-30, 2e-30], 0, "1e-14", "1e-15"),  # no finer than a domain file allows
        ([5e-324, 0.0, 1.5], 0, "1.5", "0.001"),
    ],
)
def test_other_numbers_have_bounds_on_a_grid(values: Any, low: Any, high: Any, step: Any) -> None:
    found = _column(values)
    assert isinstance(found, Numeric)
    assert (found.low, found.high, found.step) == (Fraction(low), Fraction(high), Fraction(step))
    assert found.bin_count == min(10, found.grid_size)


@pytest.mark.parametrize("dtype", ["datetime64[us, Europe/Berlin]", "timestamp[s, tz=UTC][pyarrow]"])
def test_days_are_dates_between_the_first_and_the_last(dtype: str) -> None:
    days = pd.Series(["2021-06-30 12:00", "2020-02-29 12:00", None], dtype="datetime64[s, UTC]").astype(dtype)
    column = _column(days)
    assert column == Date("x", "2020-02-29", "2021-06-30", missing=True)
    assert column.encode(days).tolist() == [16, 0, 17]
    assert _column(days.dt.tz_localize(None)) == column
    assert _column(days[:1]).grid_size == _column(days[2:]).grid_size == 2


def test_the_bounds_hold_all_finite_values() -> None:
    for values in (np.random.default_rng(0).normal(3, 50, 500), np.geomspace(1e-6, 1e6, 50), np.float32([0.1, 0.2])):
        found = _column(values)
        assert isinstance(found, Numeric)
        assert found.low <= Fraction(float(values.min())) and Fraction(float(values.max())) <= found.high
        assert 1000 <= found.grid_size <= 11_000


@settings(derandomize=True, deadline=None, max_examples=200)
@given(
    st.lists(
        st.floats(-1e17, 1e17) | st.sampled_from([NAN, INF, -INF, 0.0, 1.0]) | st.integers(-(10**9), 10**9),
        min_size=1,
        max_size=30,
    )
)
def test_any_numbers_of_a_reasonable_size_have_a_domain(values: list[float]) -> None:
    found = _column(np.array(values, dtype=np.float64))
    assert found.missing == any(math.isnan(value) for value in values)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.none() | st.text(max_size=4) | st.booleans() | st.integers() | st.floats(), min_size=1, max_size=20))
def test_any_objects_have_a_domain(values: list[Any]) -> None:
    try:
        _column(np.array([*values, None], dtype=object)[:-1], object)
    except DomainError as error:  # a number that no domain file can say, or a reserved text
        assert "column 'x'" in str(error)


@pytest.mark.parametrize("values", [[NAN, NAN], [None, None]], ids=["floats", "objects"])
def test_a_column_of_missing_values_is_a_column(values: Any) -> None:
    found = _column(values)
    assert found.missing and set(found.encode(pd.Series(values))) == {found.missing_code}
    assert _column(["", ""], object).missing


@pytest.mark.parametrize("values", [[1e300, -1e300, 0.5], [1.7e308, -1.7e308], [10**30, 1], [2.0**60, 2.0**61]])
def test_numbers_too_large_for_a_domain_file_are_named(values: Any) -> None:
    with pytest.raises(DomainError, match=r"column 'x' .*round it, or use another unit"):
        _column(values, None if isinstance(values[0], float) else object)


def test_reserved_texts_and_complex_numbers_are_refused() -> None:
    with pytest.raises(DomainError, match="column 'x' declares a value that is reserved"):
        _column(["<other>", "a"])
    with pytest.raises(DataError, match="Complex data not supported"):
        _column([1j, 2j])


@pytest.mark.parametrize(("rows", "bound"), [(1, 2), (2, 2), (3, 4), (1000, 1024), (1024, 1024), (1025, 2048)])
def test_the_bound_of_rows_is_a_power_of_two(rows: int, bound: int) -> None:
    frame = pd.DataFrame({"x": [1] * rows, "y": [0] * rows})
    domain = infer(frame, "y", [0, 1])
    assert domain.max_rows == bound and domain.rows is None and domain.rows_per_person == 1


def test_columns_keep_their_names_and_order_and_the_target_another() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"target": rng.integers(0, 2, 50), "b": rng.random(50), "a": ["p", "q"] * 25})
    labels = np.where(frame["target"] == 1, "yes", "no")
    with pytest.warns(PrivacyLeakWarning):
        fitted = privet.MaxTreeClassifier(epsilon=1000).fit(frame, labels)
    assert fitted.domain_.attributes == ("target", "b", "a")
    assert fitted.domain_.target == "target_"
    assert fitted.score(frame, labels) == 1.0
    with pytest.warns(PrivacyLeakWarning):
        array = privet.MaxTreeClassifier(epsilon=1000).fit(frame[["target", "b"]].to_numpy(), labels)
    assert array.domain_.attributes == ("x0", "x1")


def test_every_kind_of_column_is_learned_from() -> None:
    rng = np.random.default_rng(0)
    flag = rng.random(300) < 0.5
    informative = {
        "bool": flag,
        "text": np.where(flag, "p", "q"),
        "number": np.where(flag, 0.25, -3.5) + rng.random(300) / 100,
        "code": np.where(flag, 3, 9),
        "missing": np.where(flag, 1.5, NAN),
        "infinite": np.where(flag, INF, -INF),
        "category": pd.Categorical(np.where(flag, "p", "q")),
    }
    for name, values in informative.items():
        frame = pd.DataFrame({"noise": rng.random(300), name: values})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            fitted = privet.DiffPC45Classifier(epsilon=1000, max_depth=2).fit(frame, flag)
        assert fitted.score(frame, flag) == 1.0, name
