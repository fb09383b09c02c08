"""Data sets: the published rows or a clear refusal, a census in which everybody fits the domain, and random trees."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privet import datasets
from privet.datasets import uci
from privet.errors import DataError
from privet.kernel.column import Numeric

NAMES = ("adult", "mushroom", "nursery", "house-votes")

needs_data = pytest.mark.skipif(
    not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA does not name a folder with the UCI files"
)


def _fits(data: datasets.Dataset) -> np.ndarray:
    """Which rows have a cell in every column?"""
    return np.all([column.encode(data.frame[column.name]) >= 0 for column in data.domain], axis=0)


# --- the packaged domains ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_packaged_domain_needs_no_data(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRIVET_DATA", str(tmp_path))
    domain = datasets.domain(name)
    assert domain.target in ("income", "class")
    assert domain.max_rows is not None


@pytest.mark.parametrize("name", ["iris", "", "../adult", "census", "ADULT"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    for call in (datasets.domain, datasets.load):
        with pytest.raises(DataError) as refusal:
            call(name)
        assert str(refusal.value) == (
            f"there is no data set '{name}'; known are adult, mushroom, nursery, house-votes."
        )


# --- the UCI files ----------------------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("name", "rows", "fitting", "undeclared"),
    [
        ("adult", 48842, 45222, {"education", "fnlwgt"}),
        ("mushroom", 8124, 8124, set()),
        ("nursery", 12960, 12960, set()),
        ("house-votes", 435, 435, set()),
    ],
)
def test_a_loaded_table_fits_its_domain(name: str, rows: int, fitting: int, undeclared: set[str]) -> None:
    data = datasets.load(name)
    assert data.domain == datasets.domain(name)
    assert len(data.frame) == rows
    assert set(data.frame.columns) - set(data.domain.names) == undeclared
    assert set(data.domain.names) <= set(data.frame.columns)
    fits = _fits(data)
    assert fits.sum() == fitting
    # What does not fit is a missing value, written "?", and nothing else.
    assert data.frame[~fits].eq("?").any(axis=1).all()
    assert set(data.frame[data.domain.target]) == set(data.domain.classes)


@needs_data
def test_adult_is_both_files_with_clean_labels_and_numbers() -> None:
    frame = datasets.load("adult").frame
    assert frame.iloc[0].to_list()[:4] == [39, "State-gov", 77516, "Bachelors"]
    assert frame.iloc[32561].to_list()[:4] == [25, "Private", 226802, "11th"]  # the first row of adult.test
    assert frame["income"].value_counts().to_dict() == {"<=50K": 37155, ">50K": 11687}
    numbers = [name for name in frame if pd.api.types.is_integer_dtype(frame[name])]
    assert numbers == ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert not frame.isna().any().any()
    assert (frame["workclass"] == "?").sum() == 2799


@needs_data
def test_texts_that_look_like_numbers_stay_texts() -> None:
    assert set(datasets.load("nursery").frame["children"]) == {"1", "2", "3", "more"}


# --- where the files come from ----------------------------------------------------------------------------------------

ROW = b"usual,proper,complete,1,convenient,convenient,nonprob,recommended,recommend\n\n"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small archive in place of the real one, an empty cache, and no PRIVET_DATA; the path of its nursery file."""
    file = tmp_path / "archive" / "nursery" / "nursery.data"
    file.parent.mkdir(parents=True)
    file.write_bytes(ROW)
    source = replace(uci._SOURCES["nursery"], files={"nursery.data": hashlib.sha256(ROW).hexdigest()})
    monkeypatch.setitem(uci._SOURCES, "nursery", source)
    monkeypatch.setattr(uci, "_UCI", (tmp_path / "archive").as_uri())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PRIVET_DATA", raising=False)
    return file


def _refusal() -> str:
    with pytest.raises(DataError) as refusal:
        datasets.load("nursery")
    message = str(refusal.value)
    assert "\n" not in message
    assert message.endswith("set PRIVET_DATA to a folder with the file nursery.data.")
    return message


def test_a_file_is_downloaded_once(archive: Path, tmp_path: Path) -> None:
    assert len(datasets.load("nursery").frame) == 1
    assert [path.name for path in (tmp_path / "cache" / "privet").iterdir()] == ["nursery.data"]
    archive.unlink()
    assert len(datasets.load("nursery").frame) == 1


def test_without_a_cache_variable_the_home_folder_is_used(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    datasets.load("nursery")
    assert (tmp_path / ".cache" / "privet" / "nursery.data").read_bytes() == ROW


def test_without_a_network_the_way_out_is_named(archive: Path) -> None:
    archive.unlink()
    assert _refusal().startswith("cannot download file:")


def test_a_changed_download_is_refused_and_not_kept(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(ROW + b"one more row")
    assert "checksum differs" in _refusal()
    assert not list(tmp_path.glob("cache/**/*.data"))


def test_a_changed_file_in_the_cache_is_refused(archive: Path, tmp_path: Path) -> None:
    datasets.load("nursery")
    cached = tmp_path / "cache" / "privet" / "nursery.data"
    cached.write_bytes(b"")
    assert f"'{cached}' is not the published file" in _refusal()


def test_a_cache_that_cannot_be_written_is_told(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert "cannot read or write" in _refusal()


def test_a_folder_of_ones_own_is_never_filled(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("PRIVET_DATA", str(own))
    assert "No such file" in _refusal()
    assert not list(own.iterdir())
    (own / "nursery.data").write_bytes(b"other rows\n")
    assert "checksum differs" in _refusal()
    (own / "nursery.data").write_bytes(ROW)
    assert len(datasets.load("nursery").frame) == 1


# --- the synthetic census ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return datasets.census(50_000, seed=3)


def test_the_same_seed_gives_the_same_people() -> None:
    assert datasets.census(500, seed=1).equals(datasets.census(500, seed=1))
    assert not datasets.census(500, seed=1).equals(datasets.census(500, seed=2))


def test_everybody_fits_the_census_domain_and_every_value_occurs(people: pd.DataFrame) -> None:
    domain = datasets.census_domain()
    assert tuple(people.columns) == domain.names
    assert domain.rows is None
    for column in domain:
        codes = column.encode(people[column.name])
        assert codes.min() >= 0
        if isinstance(column, Numeric):
            assert people[column.name].dropna().between(float(column.low), float(column.high)).all()
            grid = column.to_grid(people[column.name])
            values = [float(column.value_at(index)) for index in grid[grid >= 0][:1000]]
            assert values == people[column.name].dropna()[:1000].to_list()  # nothing between the grid points
        else:
            assert len(np.unique(codes)) == column.size


def test_people_are_the_same_after_a_csv_file(people: pd.DataFrame, tmp_path: Path) -> None:
    people.head(1000).to_csv(tmp_path / "census.csv", index=False)
    texts = pd.read_csv(tmp_path / "census.csv", dtype=str, keep_default_na=False)
    for column in datasets.census_domain():
        assert (column.encode(texts[column.name]) == column.encode(people[column.name].head(1000))).all()


def test_income_depends_on_what_it_should(people: pd.DataFrame) -> None:
    high = people["income"] == "high"
    assert 0.1 < high.mean() < 0.4
    by_education = high.groupby(people["education"], observed=True).mean()
    assert by_education.is_monotonic_increasing
    assert by_education.iloc[-1] > 5 * by_education.iloc[0]
    assert high[people["sex"] == "Male"].mean() > 1.3 * high[people["sex"] == "Female"].mean()
    assert high[people["age"].between(40, 55)].mean() > 2 * high[people["age"] < 28].mean()
    assert high[people["hours"] > 45].mean() > 2 * high[people["hours"] < 35].mean()
    assert high[people["wage"] > 30].mean() > 10 * high[people["wage"] < 20].mean()
    assert people["occupation"].isna().mean() == pytest.approx(0.04, abs=0.01)
    assert people["wage"].isna().mean() == pytest.approx(0.055, abs=0.01)


def test_an_empty_census_is_possible_and_a_negative_one_is_not() -> None:
    empty = datasets.census(0)
    assert len(empty) == 0
    assert (empty.dtypes == datasets.census(5).dtypes).all()
    with pytest.raises(DataError, match="-1 rows is not possible"):
        datasets.census(-1)


# --- rows that a random tree classifies -------------------------------------------------------------------------------


def _points(tree_seed: int = 0, rows: int = 20_000, **choices: Any) -> pd.DataFrame:
    return datasets.random_tree(rows, tree_seed=tree_seed, **choices).frame


def test_the_same_seeds_give_the_same_tree_and_rows() -> None:
    one = datasets.random_tree(500, numeric=3, seed=1)
    assert one.frame.equals(_points(rows=500, numeric=3, seed=1))
    assert not one.frame.equals(_points(rows=500, numeric=3, seed=2))
    # another seed of the tree gives the same rows other classes
    other = _points(1, rows=500, numeric=3, seed=1)
    assert other.drop(columns="class").equals(one.frame.drop(columns="class"))
    assert not other["class"].equals(one.frame["class"])


@pytest.mark.parametrize(
    "choices",
    [{}, {"numeric": 3}, {"arity": 5, "classes": 3, "depth": 3}, {"attributes": 2, "numeric": 2, "depth": 8}],
)
def test_every_row_of_a_random_tree_fits_its_domain(choices: dict[str, Any]) -> None:
    data = datasets.random_tree(5000, p_noise=0.2, max_rows=5000, **choices)
    assert _fits(data).all()
    assert data.domain.max_rows == 5000 and data.domain.target == "class"
    assert tuple(data.frame.columns) == data.domain.names
    for column in data.domain:
        if isinstance(column, Numeric):
            assert (float(column.low), float(column.high), column.bin_count) == (0, 100, 10)
            codes = column.to_grid(data.frame[column.name])
            assert [float(column.value_at(code)) for code in codes[:1000]] == data.frame[column.name][:1000].to_list()
        else:
            assert len(np.unique(column.encode(data.frame[column.name]))) == column.size


def test_rows_are_uniform_and_the_class_of_a_point_is_a_function_of_it() -> None:
    """Twenty thousand rows: a share of a value is five standard deviations from a half with probability 6e-7."""
    frame = _points()
    assert (np.abs(frame.drop(columns="class").mean() - 0.5) < 5 * 0.5 / np.sqrt(len(frame))).all()
    assert (frame.groupby(list(frame.columns[:-1]))["class"].nunique() == 1).all()


def test_no_path_is_longer_than_the_depth_and_nodes_become_leaves_from_the_third_level_on() -> None:
    """A path of a tree that never stops fixes five attributes; one that stops where it can fixes two."""
    for p_leaf, depth, share in ((0.0, 5, 1 / 32), (1.0, 2, 1 / 4)):
        sizes = []
        for tree in range(5):
            frame = _points(tree, p_leaf=p_leaf, classes=1000)  # each leaf has a class of its own, or nearly so
            sizes += frame["class"].value_counts(normalize=True).tolist()
            fixed = frame.groupby("class").nunique().eq(1).sum(axis=1)
            assert fixed.max() == depth
        assert np.median(sizes) == pytest.approx(share, rel=0.1)


def test_a_leaf_is_random_from_the_third_level_on() -> None:
    """Of some 4 nodes on the third level 0.3 are leaves: of 800, five standard deviations are 65."""
    leaves = 0
    for tree in range(200):
        sizes = _points(tree, rows=800, depth=3, classes=10_000)["class"].value_counts(normalize=True)
        leaves += int((sizes > 3 / 16).sum())  # a quarter of the rows, and not an eighth
    assert abs(leaves - 240) < 65


def test_a_number_is_cut_where_the_path_has_something_left() -> None:
    for tree in range(20):
        frame = _points(tree, attributes=1, numeric=1, depth=4, p_leaf=0.0, classes=10_000)
        assert 14 <= frame["class"].nunique() <= 16  # a branch may be a hair wide, none is empty
        assert (frame.sort_values("n0")["class"].diff() != 0).sum() == frame["class"].nunique()  # each an interval


@pytest.mark.parametrize(
    ("choices", "rule"),
    [
        ({"attributes": 10}, lambda frame: frame["a0"]),
        ({"attributes": 10, "numeric": 3}, lambda frame: frame["n0"] >= 35),
        ({"attributes": 4, "arity": 3, "classes": 3}, lambda frame: frame["a0"]),
    ],
)
def test_a_single_split_tells_all_classes_apart(choices: dict[str, Any], rule: Any) -> None:
    frame = _points(depth=1, **choices)
    assert (frame["class"] == rule(frame)).all()


def test_noise_replaces_values_and_may_repeat_them() -> None:
    """A class becomes another with probability 0.1 / 2, and so does the value it follows from: 2 * 0.05 * 0.95."""
    frame, clean = _points(depth=1, p_noise=0.1, seed=4), _points(depth=1, seed=4)
    wrong = (frame["class"] != frame["a0"]).mean()
    assert wrong == pytest.approx(0.095, abs=5 * np.sqrt(0.095 * 0.905 / len(frame)))
    changed = (frame != clean).mean()
    assert (np.abs(changed - 0.05) < 5 * np.sqrt(0.05 * 0.95 / len(frame))).all()
    uniform = _points(depth=1, p_noise=1.0)
    assert abs((uniform["class"] == uniform["a0"]).mean() - 0.5) < 5 * 0.5 / np.sqrt(len(uniform))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rows": -1}, "a random tree with rows=-1 is not possible; ask for a whole number from 0."),
        ({"depth": 0}, "a random tree with depth=0 is not possible; ask for a whole number from 1."),
        ({"arity": 1}, "a random tree with arity=1 is not possible; ask for a whole number from 2."),
        ({"classes": 2.5}, "a random tree with classes=2.5 is not possible; ask for a whole number from 2."),
        ({"p_leaf": 1.5}, "p_leaf=1.5 is not a probability; give a number from 0 to 1."),
        ({"p_noise": float("nan")}, "p_noise=nan is not a probability; give a number from 0 to 1."),
        ({"numeric": 11}, "11 of 10 attributes cannot be numeric; ask for 10 at most."),
        (
            {"depth": 11},
            "a tree of depth 11 needs as many attributes, for none is used twice on a path, and there are 10; lower "
            "depth, or make one numeric.",
        ),
        ({"rows": 2000, "max_rows": 1000}, "2000 rows are more than max_rows=1000 allows; raise max_rows."),
        (
            {"arity": 9, "depth": 10, "p_leaf": 0.0},
            "a random tree of depth 10 has more than 2000000 nodes; lower depth or arity, or raise p_leaf.",
        ),
    ],
)
def test_a_random_tree_that_cannot_be_is_refused_in_a_sentence(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as refusal:
        datasets.random_tree(**{"rows": 10, **choices})
    assert str(refusal.value) == message


def test_a_random_tree_may_have_no_rows() -> None:
    assert len(_points(rows=0, numeric=2)) == 0
