"""Hanisch's census: coarse values as the paper prints them, and as good as as many rich as poor."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privet import datasets
from privet.datasets import Dataset
from privet.datasets.rebalanced import rebalanced
from privet.errors import DataError


def adult(rows: int = 2000) -> Dataset:
    """Made-up rows in the columns of Adult, a quarter of them with a high income."""
    rng = np.random.default_rng(1)
    domain = datasets.domain("adult")
    return Dataset(
        pd.DataFrame(
            {
                "age": rng.integers(17, 91, rows),
                "workclass": rng.choice(["Private", "State-gov", "?"], rows),
                "education-num": rng.integers(1, 17, rows),
                "relationship": rng.choice(["Wife", "Husband", "Own-child"], rows),
                "race": rng.choice(["White", "Black"], rows),
                "sex": rng.choice(["Female", "Male"], rows),
                "hours-per-week": rng.integers(1, 100, rows),
                "income": rng.choice(["<=50K", ">50K"], rows, p=[0.75, 0.25]),
            }
        ),
        domain,
    )


def test_the_larger_class_has_its_share_and_no_rich_row_is_lost() -> None:
    found = rebalanced(adult())
    complete = adult().frame.query("workclass != '?'")
    assert (found.frame["income"] == 1).sum() == (complete["income"] == ">50K").sum()
    assert abs((found.frame["income"] == 0).mean() - 0.526) < 1e-3
    assert all((column.encode(found.frame[column.name]) >= 0).all() for column in found.domain)


@pytest.mark.parametrize(
    ("column", "value", "into", "label"),
    [
        ("age", 37, "age", "<=37"),
        ("age", 38, "age", ">=38"),
        ("hours-per-week", 36, "hours_per_week", "<=36"),
        ("hours-per-week", 37, "hours_per_week", "37-50"),
        ("hours-per-week", 50, "hours_per_week", "37-50"),
        ("hours-per-week", 51, "hours_per_week", ">=51"),
        ("education-num", 9, "education_level", "HS_or_below"),
        ("education-num", 10, "education_level", "Some_college"),
        ("education-num", 11, "education_level", "Associate"),
        ("education-num", 12, "education_level", "Associate"),
        ("education-num", 13, "education_level", "Bachelors"),
        ("education-num", 14, "education_level", "Masters"),
        ("education-num", 16, "education_level", "Prof_or_Doctorate"),
    ],
)
def test_values_are_grouped_as_printed(column: str, value: int, into: str, label: str) -> None:
    source = adult(50)
    found = rebalanced(Dataset(source.frame.assign(**{column: value}), source.domain))
    assert set(found.frame[into]) == {label}


def test_the_same_rows_are_chosen_every_time_and_from_complete_rows() -> None:
    source = adult()
    complete = source.frame[source.frame["workclass"] != "?"].reset_index(drop=True)
    assert rebalanced(source).frame.equals(rebalanced(Dataset(complete, source.domain)).frame)


def test_without_adult_it_says_where_to_put_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRIVET_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"set PRIVET_DATA to a folder with the file adult\.data"):
        datasets.rebalanced_census()


@pytest.mark.skipif(not os.environ.get("PRIVET_DATA"), reason="PRIVET_DATA names no folder with the UCI files (adult)")
def test_the_published_rows_give_the_papers_share() -> None:
    found = datasets.rebalanced_census()
    assert found.frame["income"].value_counts().to_dict() == {0: 12438, 1: 11208}
    assert all((column.encode(found.frame[column.name]) >= 0).all() for column in found.domain)
