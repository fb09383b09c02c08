"""A table with dates on the command line, from a public sample to an audited model."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from pathlib import Path

import pandas as pd
import pytest
from command import run

import privet
from privet.kernel import OTHER

TURN = date(2020, 3, 15)  # from then on people are ill


def stays(rows: int, seed: int) -> list[tuple[str, str, str, str]]:
    coins = random.Random(seed)
    days = [date(2015, 1, 1) + timedelta(days=coins.randrange(3650)) for _ in range(rows)]
    return [
        ("" if coins.random() < 0.02 else day.isoformat(), f"{day:%d/%m/%Y}", coins.choice("fm"), "ny"[day >= TURN])
        for day in days
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows, seed in (("sample", 1500, 1), ("stays", 2500, 2), ("new", 300, 3)):
        frame = pd.DataFrame(stays(rows, seed), columns=["admitted", "left", "sex", "ill"])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


def test_from_a_sample_with_dates_to_an_audited_model(folder: Path) -> None:
    def ok(*words: str) -> str:
        done = run(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    ok("domain", "draft", "sample.csv", "--target", "ill", "-o", "stays.toml")
    drafted = (folder / "stays.toml").read_text()
    assert 'kind = "date"\nlow = 2015-01-01\nhigh = 2024-12-31\nstep = "6 months"\n' in drafted
    assert "# left out: 'left' holds dates that are not written as YYYY-MM-DD" in drafted

    ok("fit", "stays.csv", "-d", "stays.toml", "-b", "50", "-e", "5", "-a", "diffpc45", "-o", "tree.json")
    shown = ok("show", "tree.json")
    assert "admitted <= 2020-03-" in shown and OTHER not in shown
    again = privet.Model.load(folder / "tree.json")
    again.save(folder / "again.json")
    assert (folder / "again.json").read_text() == (folder / "tree.json").read_text()
    rules = ok("show", "tree.json", "--rules")
    assert "admitted > 2020-03-" in rules
    threshold = again.trees[0].root.threshold
    assert isinstance(threshold, str) and "2020-03-01" < threshold < "2020-04-01"

    new = pd.read_csv(folder / "new.csv", keep_default_na=False)
    predicted = ok("predict", "tree.json", "new.csv").split()[1:]
    assert sum(p == t for p, t in zip(predicted, new["ill"], strict=True)) > 0.95 * len(new)
    days = pd.to_datetime(new["admitted"].replace("", None))
    for column in (new["admitted"], days, days.dt.tz_localize("UTC"), days.astype("datetime64[s]"), days.dt.date):
        assert again.predict(new.assign(admitted=column)).tolist() == predicted

    ok("fit", "stays.csv", "-d", "stays.toml", "-e", "5", "-a", "boosted", "-o", "sum.json")
    for model in ("tree", "sum"):
        ok("show", f"{model}.json", "--html", f"{model}.html")
    assert ">2015-01-01<" in (folder / "sum.html").read_text()
    report = ok("audit", "tree.json", "--qi", "stays.csv", "--sensitive", "ill", "-o", "report.html")
    assert "Traceback" not in report and (folder / "report.html").exists()

    asked = ("-d", "stays.toml", "-e", "5", "--json")
    answer = json.loads(ok("query", "stays.csv", "median admitted by ill", *asked))
    assert all(date(2015, 1, 1) < date.fromisoformat(part["value"]) < date(2024, 12, 31) for part in answer["answers"])
    answer = json.loads(ok("query", "stays.csv", "histogram admitted", *asked))
    assert [cell["admitted"] for cell in answer["answers"][0]["cells"]][:2] == [
        "2015-01 to 2015-06",
        "2015-07 to 2015-12",
    ]
    counted = json.loads(ok("query", "stays.csv", "count where admitted in 2020-01-01..2020-07-01", *asked))
    rows = pd.read_csv(folder / "stays.csv", keep_default_na=False)["admitted"]
    assert abs(counted["answers"][0]["value"] - sum("2020-01" <= day < "2020-07" for day in rows)) < 20
    assert "no sum and no mean" in run("query", "stays.csv", "mean admitted", *asked, cwd=folder).stderr


def test_a_weka_tree_has_no_dates() -> None:
    from privet.risk.readers.weka import _written
    from privet.risk.tree import OnSide

    column = privet.Date("day", "2020-01-01", "2020-12-31")
    with pytest.raises(privet.errors.ModelError, match="the test 'day <= 2020-01-31' cannot be written as a Weka tree"):
        _written(OnSide(column, 31, 0))
