"""One value has one text on every path: from a draft to a domain file, a question, a model file and a prediction."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from command import run

import privet
from privet.draft import draft
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.models.model import Model
from privet.rows import read

# what a row may hold, and its text
VALUES: list[tuple[Any, str]] = [
    (True, "true"),
    ("True", "true"),
    ("TRUE", "true"),
    (np.bool_(False), "false"),
    ("False", "false"),
    (0, "0"),
    (0.0, "0"),
    (-0.0, "0"),
    ("0.0", "0"),
    ("-0", "0"),
    ("1.00", "1"),
    (1.5, "1.5"),
    ("1.50", "1.5"),
    (1e-05, "0.00001"),
    ("1e-05", "0.00001"),
    ("0.000010", "0.00001"),
    (np.float32(0.1), "0.1"),
    ("007", "007"),
    ("1e5", "1e5"),
    (" 1", " 1"),
]
TEXTS = tuple(dict.fromkeys(text for _, text in VALUES))


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_a_domain_file_a_condition_and_a_cell_take_any_spelling(value: Any, text: str) -> None:
    plain = value.item() if isinstance(value, np.generic) and not isinstance(value, np.float32) else value
    if not isinstance(plain, np.float32):
        written = Domain((Nominal("x", (plain, "z")),)).to_toml()
        assert Domain.parse(written)["x"].labels == (text, "z")
    domain = Domain((Nominal("x", TEXTS, other=True),))
    assert domain["x"].code(value) == TEXTS.index(text)
    with privet.open(pd.DataFrame({"x": pd.Series([value] * 30, dtype=object)}), domain, budget=1000) as table:
        assert table.where(x=value).count(500).value == 30  # noise: below 10^-200
        assert table.where(x=text).count(400).value == 30


def people(size: int = 600) -> pd.DataFrame:
    """Booleans and whole floats as pandas makes them, where a value is missing elsewhere in the column."""
    coins = np.random.default_rng(4)
    smoker, stage = coins.random(size) < 0.5, coins.integers(0, 3, size).astype(float)
    dose = np.where(coins.random(size) < 0.5, 1e-05, 0.5)
    return pd.DataFrame({"smoker": smoker, "stage": stage, "dose": dose, "ill": (smoker ^ (stage == 1)) | (dose < 0.1)})


STORAGES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "single.parquet": lambda frame, path: frame.astype({"stage": "float32", "dose": "float32"}).to_parquet(path),
    "decimal.parquet": lambda frame, path: (
        pl.from_pandas(frame).with_columns(pl.col("dose").cast(pl.Decimal(38, 7))).write_parquet(path)
    ),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("people")
    paths = {name: folder / f"people.{name}" for name in STORAGES}
    for name, path in paths.items():
        STORAGES[name](people(), path)
    return paths


@pytest.fixture(scope="module")
def domain(stored: dict[str, Path]) -> Domain:
    return Domain.parse(draft(stored["csv"], target="ill"))


@pytest.mark.parametrize("storage", STORAGES)
def test_a_draft_lists_the_same_values_from_every_storage(
    stored: dict[str, Path], domain: Domain, storage: str
) -> None:
    drafted = Domain.parse(draft(stored[storage], target="ill"))
    assert [column.labels for column in drafted] == [column.labels for column in domain]
    assert domain["smoker"].labels == ("false", "true") and domain["stage"].labels == ("[0, 1)", "[1, 2)", "[2, 2]")


@pytest.mark.parametrize("storage", ["frame", "polars", "arrow", *STORAGES])
def test_a_domain_drafted_from_one_storage_counts_every_row_of_another(
    stored: dict[str, Path], domain: Domain, storage: str
) -> None:
    frames = {"frame": people(), "polars": pl.from_pandas(people()), "arrow": pl.from_pandas(people()).to_arrow()}
    with privet.open(frames.get(storage, stored.get(storage)), domain, budget=1000, ledger=":memory:") as table:
        assert table.count(500).value == 600
        assert sum(table.histogram("stage", "ill", epsilon=400).values.ravel().tolist()) == 600


@pytest.fixture(scope="module")
def fitted(stored: dict[str, Path], domain: Domain) -> Any:
    with privet.open(stored["csv"], domain, budget=1000, ledger=":memory:") as table:
        return privet.DiffPID3Classifier(900, max_depth=4, random_state=0).fit(table)


def test_a_saved_model_scores_the_same_by_command_and_by_call(
    stored: dict[str, Path], fitted: Any, tmp_path: Path
) -> None:
    fitted.model_.save(tmp_path / "model.json")
    model = Model.load(tmp_path / "model.json")
    frame, right = people(), people()["ill"].map({True: "true", False: "false"}).to_numpy()
    assert fitted.score(frame, frame["ill"]) == fitted.score(frame, frame["ill"].astype(str)) == 1.0
    for storage, path in stored.items():
        done = run("predict", "model.json", str(path), cwd=tmp_path)
        predicted = pd.read_csv(io.StringIO(done.stdout), dtype=str)["prediction"]
        assert (predicted == right).all(), storage
        (chunk,) = read(path)
        assert fitted.score(chunk, chunk["ill"]) == 1.0, storage
    for other in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow(), frame.astype(object), frame.astype(str)):
        assert (model.predict(other) == right).all()


@pytest.mark.parametrize("declared", [(False, True), ("False", "True"), ("false", "true")])
def test_classes_come_back_as_they_were_declared(domain: Domain, declared: tuple[Any, Any]) -> None:
    columns = tuple(column for column in domain if column.name != "ill")
    own = Domain((*columns, Nominal("ill", declared)), target="ill")
    frame = people()
    rows = frame.drop(columns="ill")
    made = privet.DiffPID3Classifier(900, domain=own, max_depth=4, random_state=0).fit(rows, frame.ill)
    assert made.classes_.tolist() == list(declared)
    assert made.score(rows, frame.ill) == made.score(rows, frame.ill.astype(str)) == 1.0
    assert made.score(rows, np.where(frame.ill, "ill", "well")) == 0.0  # no class of the domain
