"""Data sets: the published rows or a clear refusal, and a census in which everybody fits the domain."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privet import datasets
from privet.column import Numeric
from privet.errors import DataError

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
    source = replace(datasets._SOURCES["nursery"], files={"nursery.data": hashlib.sha256(ROW).hexdigest()})
    monkeypatch.setitem(datasets._SOURCES, "nursery", source)
    monkeypatch.setattr(datasets, "_UCI", (tmp_path / "archive").as_uri())
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
