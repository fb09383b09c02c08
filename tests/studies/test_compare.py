"""`privet study compare`: every learner on the same public rows, and what a reader takes from it."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sizes import long

from privet.datasets import census_domain
from privet.errors import DataError, QuestionError, UndeclaredDomain
from privet.kernel import Domain, Nominal
from privet.lab.invented import invent
from privet.studies import Outcome, Trial
from privet.studies.compare import Comparison, available, epsilons, rows_needed, table
from privet.studies.findings import Findings
from privet.studies.folder import gather
from privet.studies.learners import LEARNERS
from privet.studies.pages.explorer import explorer
from privet.studies.worker_pool import WorkerPool, problems

DOMAIN = """
target = "ill"
[columns.age]
kind = "numeric"
low = 0
high = 99
step = 1
bins = 4
[columns.sex]
kind = "nominal"
values = ["f", "m"]
[columns.ill]
kind = "nominal"
values = ["no", "yes"]
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """400 invented rows and their domain."""
    domain = tmp_path / "people.toml"
    domain.write_text(DOMAIN)
    data = tmp_path / "people.csv"
    invent(Domain.load(domain), 400, seed=3).to_csv(data, index=False)
    return data, domain


def test_a_comparison_on_invented_rows_says_so_on_its_page(files: tuple[Path, Path]) -> None:
    data, domain = files
    made = data.rename(data.with_name("invented-400.csv"))
    study = Comparison(made, domain, ("prior",), ("1",)).study()
    shown = explorer(study, Findings(()), [], "quick")
    assert "Which learner for invented rows?" in shown and "The rows are INVENTED from the domain: nobody" in shown
    given = Comparison(made.rename(data), domain, ("prior",), ("1",)).study()
    assert "INVENTED" not in explorer(given, Findings(()), [], "quick") and "people.csv" in given.title


@long
def test_ours_and_others_are_compared_on_the_same_rows(files: tuple[Path, Path], tmp_path: Path) -> None:
    data, domain = files
    comparison = Comparison(data, domain, ("prior", "diffpid3", "sklearn-tree"), ("0.1", "10"))
    study = comparison.study()
    workers = WorkerPool("privet.studies.compare:measure", str(data), str(domain), peers=Path(sys.executable))
    with workers, ThreadPoolExecutor(2) as executor:
        outcomes = gather(tmp_path / "out", study.trials("tiny"), workers, executor)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    majorities = {
        (outcome.trial.seed, outcome.trial.rows is None): outcome.result["majority"]
        for outcome in outcomes
        if outcome.result is not None and outcome.trial.rows is None
    }
    for outcome in outcomes:  # in every process the same rows are held out
        if outcome.trial.rows is None:
            assert outcome.result is not None
            assert outcome.result["majority"] == majorities[outcome.trial.seed, True]

    found = study.read(outcomes)
    accuracy, auroc = found.panels[:2]
    assert accuracy.series == ("class counts alone", "DiffPID3")
    assert [title for title, _ in accuracy.levels] == ["scikit-learn tree", "always the most frequent class"]
    assert accuracy.frontier
    assert {cell.at for cell in accuracy.cells} == {0.1, 10.0}
    assert all(cell.ours.n == 2 for cell in accuracy.cells)
    assert auroc.y == "AUROC in percent"
    assert "public rows" in found.notes[0]


def test_other_rows_under_the_same_name_are_other_trials(files: tuple[Path, Path]) -> None:
    data, domain = files
    comparison = Comparison(data, domain, ("prior",), ("1",))
    before = {trial.key for trial in comparison.trials("tiny")}
    data.write_text(data.read_text() + "1.0,f,yes\n")
    table.cache_clear()
    assert before.isdisjoint(trial.key for trial in comparison.trials("tiny"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.1:1", ("0.1", "0.2", "0.5", "1")),
        ("0.03:0.7", ("0.03", "0.05", "0.1", "0.2", "0.5", "0.7")),
        ("1:1", ("1",)),
        ("1/4,2", ("0.25", "2")),
    ],
)
def test_ranges_and_lists_of_epsilon(text: str, expected: tuple[str, ...]) -> None:
    assert epsilons(text) == expected


@pytest.mark.parametrize("text", ["10:0.01", "0:1", "a:b", "-1:1", "0.1,nan", ":", ""])
def test_what_is_no_range_is_one_sentence(text: str) -> None:
    with pytest.raises(QuestionError) as caught:
        epsilons(text)
    assert "\n" not in str(caught.value)
    if text == "10:0.01":
        assert str(caught.value) == "the range 10:0.01 of epsilon is upside down; write 0.01:10."


def test_invented_rows_fit_the_domain_and_say_something() -> None:
    domain = census_domain()
    rows = invent(domain, 3000, seed=1)
    assert rows.equals(invent(domain, 3000, seed=1))
    assert not rows.equals(invent(domain, 3000, seed=2))
    assert all((column.encode(rows[column.name]) >= 0).all() for column in domain)
    assert rows["income"].nunique() == 2
    best = max(
        rows.groupby(name, observed=True)["income"].agg(lambda own: (own == "high").mean()).std()
        for name in ("sex", "region", "education")
    )
    assert best > 0.02  # classes depend on attributes


def _made_up(rows: int | None, accuracy: float, learner: str = "boosted") -> Outcome:
    return Outcome(Trial("t", learner, "1", 0, rows), {"accuracy": accuracy, "majority": 60.0})


def test_rows_needed_are_read_between_those_that_were_tried() -> None:
    found = rows_needed([_made_up(100, 70.0), _made_up(1000, 80.0), _made_up(None, 90.0)], 75.0, 10_000)
    (cell,) = found
    assert cell.series == LEARNERS["boosted"].title
    assert cell.ours.mean == pytest.approx(10**2.5, abs=10)
    assert rows_needed([_made_up(100, 70.0), _made_up(None, 74.0)], 75.0, 10_000) == []
    (at_most,) = rows_needed([_made_up(100, 80.0), _made_up(None, 90.0)], 75.0, 10_000)
    assert at_most.ours.mean == 100
    # a lucky small table does not count where a larger one falls below again
    (late,) = rows_needed([_made_up(100, 80.0), _made_up(1000, 70.0), _made_up(None, 80.0)], 75.0, 10_000)
    assert 1000 < late.ours.mean < 10_000


def test_learners_that_cannot_run_are_said_and_left_out(tmp_path: Path) -> None:
    domain = Domain((Nominal("ill", ("yes", "no", "unknown")),), target="ill", max_rows=1000)
    names, said = available(domain, problems(["dp-ebm", "sklearn-tree"], Path(sys.executable)))
    assert "sklearn-tree" in names and "auto" in names and "id3" not in names
    assert "dp-ebm" not in names and any(sentence.startswith("DP-EBM is left out: ") for sentence in said)
    assert np.all([LEARNERS[name].private or name.startswith("sklearn") for name in names])
    fewer, more = available(replace(domain, max_rows=None), {})
    assert "mohammed" in names and not {"mohammed", "patil-singh"} & {*fewer}
    assert sum("it needs max_rows in the domain file" in sentence for sentence in more) == 2


def test_rows_that_do_not_fit_are_one_sentence(files: tuple[Path, Path]) -> None:
    data, domain = files
    data.write_text("age,sex\n1,f\n")
    with pytest.raises(DataError, match="has no column 'ill', which the domain declares"):
        table(data, domain)
    data.write_text("age,sex,ill\n" + "1,f,perhaps\n" * 500)
    table.cache_clear()
    with pytest.raises(DataError, match=r"0 rows of '.*' fit the domain; comparing takes 100 or more"):
        table(data, domain)
    domain.write_text(DOMAIN.replace('target = "ill"\n', ""))
    table.cache_clear()
    with pytest.raises(UndeclaredDomain, match="declares no target"):
        table(data, domain)
