"""Commands on a data set with a delta: what they print, record and refuse."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from command import run

import privet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    privet.datasets.census(300, seed=1).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.toml").write_text(privet.datasets.census_domain().to_toml())
    return tmp_path


def test_a_data_set_with_a_delta_from_the_command_line(folder: Path) -> None:
    opened = ("people.csv", "-d", "people.toml", "--delta", "1e-6")
    asked = run("query", *opened, "count", "-b", "1.0", "-e", "0.25", cwd=folder)
    assert "epsilon 0.25, delta 1e-06" in asked.stdout and "one answer of epsilon 0.9" in asked.stderr
    refused = run("query", "people.csv", "count", "-d", "people.toml", "-e", "0.25", cwd=folder)
    assert refused.returncode == 1 and "counted in rho, with delta 1e-06" in refused.stderr
    shown = run("budget", "show", "people.csv", "--json", cwd=folder)
    facts = json.loads(shown.stdout)["people"]
    assert (facts["unit"], facts["delta"], facts["spent"]) == ("rho", "1e-06", "0.00180154835")
    granted = run("budget", "grant", "people.csv", "2.0", cwd=folder)
    assert "may now spend rho 0.0881527 in all" in granted.stderr
    for algorithm in ("diffpid3", "auto"):
        fitted = run("fit", *opened, "-a", algorithm, "-e", "0.1", "-o", f"{algorithm}.json", cwd=folder)
        assert fitted.returncode == 0, fitted.stderr
        assert privet.Model.load(folder / f"{algorithm}.json").privacy.promise == "epsilon 0.1, delta 1e-06"
    spent = json.loads(run("budget", "show", "people.csv", "--json", cwd=folder).stdout)["people"]["spent"]
    assert float(Fraction(spent)) == pytest.approx(0.00180154835 + 2 * 0.0003210476903, rel=1e-6)
