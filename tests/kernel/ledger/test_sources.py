"""One record of the spending on a file: links, names and moves of the file start no second budget."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command import run as run_command
from kernel.ledger.small_ledger import DATASET, DOMAIN, FRAME, TENTH, close, new_ledger, one_sentence, stored

import privet
from privet.errors import BudgetExceeded, LedgerError, PrivacyError
from privet.kernel import Ledger


def uncounted(opening: Callable[[], object], *words: str) -> None:
    with pytest.raises(PrivacyError, match="--ignore-spending, in Python ignore_spending=True") as refused:
        opening()
    text = one_sentence(refused.value)
    assert all(word in text for word in words), text


def test_a_spent_file_cannot_be_opened_with_another_ledger(path: Path | str, tmp_path: Path) -> None:
    data = stored(tmp_path)
    privet.open(data, DOMAIN, budget=1).count(1)
    for other in (":memory:", path, Ledger.open(":memory:")):
        uncounted(lambda: privet.open(data, DOMAIN, budget=1000, ledger=other), "people.csv.ledger'")  # noqa: B023
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(path, create=False)  # nor was one made
    with pytest.raises(BudgetExceeded):
        privet.open(data, DOMAIN, ledger=f"{data}.ledger").count("0.1")
    privet.open(data, DOMAIN, budget=1, ledger=path, ignore_spending=True).count(1)
    assert Ledger.open(path).spent(DATASET) == 1


def test_a_file_whose_ledger_is_elsewhere_has_a_link_to_it(path: Path | str, tmp_path: Path) -> None:
    """Whoever opens it without naming a ledger, or with another, goes on there or is refused."""
    folder = tmp_path / "data"
    folder.mkdir()
    data = stored(folder)
    privet.open(data, DOMAIN, budget=1, ledger=path).count("0.4")
    for other in (":memory:", tmp_path / "other.ledger"):
        uncounted(lambda: privet.open(data, DOMAIN, budget=1, ledger=other))  # noqa: B023
    assert not (tmp_path / "other.ledger").exists()
    if isinstance(path, Path):
        assert privet.open(data, DOMAIN).budget.spent == Fraction(2, 5)
        done = run_command("budget", "show", "people.csv", "--json", cwd=folder)
        assert json.loads(done.stdout)["people"]["spent"] == "0.4"
        path.rename(tmp_path / "moved")
        with pytest.raises(LedgerError, match="was moved or removed"):
            privet.open(data, DOMAIN, budget=1)
    else:
        with_role = path.replace("postgres@", "somebody@")
        assert Ledger.identity_of(with_role) == Ledger.identity_of(path) == os.readlink(f"{data}.ledger")


def test_a_hard_link_does_not_start_afresh(tmp_path: Path) -> None:
    data, elsewhere = stored(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    privet.open(data, DOMAIN, budget=1).count(1)
    os.link(data, tmp_path / "copy.csv")
    uncounted(lambda: privet.open(tmp_path / "copy.csv", DOMAIN, budget=1), "is the same file as", "people.csv'")
    os.link(data, elsewhere / "people.csv")
    uncounted(lambda: privet.open(elsewhere / "people.csv", DOMAIN, budget=1), "a hard link")
    with pytest.raises(BudgetExceeded):
        privet.open(data, DOMAIN).count("0.1")
    with privet.open(elsewhere / "people.csv", DOMAIN, budget=1, ignore_spending=True) as table:
        table.count("0.1")
    assert privet.open(elsewhere / "people.csv", DOMAIN).budget.spent == TENTH  # has a ledger of its own from then on


def spent_file(folder: Path, name: str = "people.csv", **options: Any) -> Path:
    """A file with a budget of 1, which is spent."""
    data = stored(folder, name)
    with privet.open(data, DOMAIN, budget=1, **options) as table:
        table.count(1)
    return data


def has_no_fresh_budget(data: Path | str, known_as: str, **options: Any) -> None:
    """Its spending goes on where no name is given; another name is refused, whatever the budget."""
    with pytest.raises(PrivacyError, match=f"the budget 1000 asked for '{known_as}' is above the 1 in its ledger"):
        privet.open(data, DOMAIN, budget=1000, **options)
    with pytest.raises(LedgerError, match=f"knows this data as '{known_as}', not as 'fresh'") as refused:
        privet.open(data, DOMAIN, budget=1000, name="fresh", **options)
    one_sentence(refused.value)
    with privet.open(data, DOMAIN, **options) as table:
        assert (table.budget.spent, table.budget.remaining) == (1, 0)


def tables_in(folder: Path, *names: str) -> str:
    """The address of a DuckDB file with such tables, without a name at its end."""
    with duckdb.connect(str(folder / "people.db")) as connection:
        connection.register("frame", FRAME)
        for name in names:
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    return f"duckdb:///{folder}/people.db?table="


def test_a_file_that_was_renamed_with_its_ledger_goes_on(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").rename(f"{renamed}.ledger")
    has_no_fresh_budget(renamed, "people")


def test_a_file_that_was_moved_with_its_folder_goes_on(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    spent_file(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    has_no_fresh_budget(tmp_path / "after" / "people.csv", "people")


def test_a_database_that_was_moved_with_its_ledger_goes_on(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    address = tables_in(tmp_path / "before", "one", "two")
    for name in ("one", "two"):
        with privet.open(address + name, DOMAIN, budget=1) as table:
            table.count(1)
    (tmp_path / "before").rename(tmp_path / "after")
    for name in ("two", "one"):
        has_no_fresh_budget(address.replace("before", "after") + name, name)


def test_a_file_that_was_renamed_with_the_link_to_its_ledger_is_refused(path: Path | str, tmp_path: Path) -> None:
    """The ledger may have many data sets: which of them the file is, only its owner can say."""
    data = spent_file(tmp_path, ledger=path)
    stored(tmp_path, "large.csv")
    privet.open(tmp_path / "large.csv", DOMAIN, budget=1000, ledger=path).close()
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").rename(f"{renamed}.ledger")
    for name in (None, "others", "large", "people"):
        with pytest.raises(PrivacyError, match="does not know this file") as refused:
            privet.open(renamed, DOMAIN, budget=1000, ledger=path, name=name)
        one_sentence(refused.value)
    with privet.open(renamed, DOMAIN, ledger=path, name="people", ignore_spending=True) as table:
        assert table.budget.remaining == 0
    has_no_fresh_budget(renamed, "people", ledger=path)


def test_a_ledger_begun_for_another_file_does_not_pay(tmp_path: Path) -> None:
    data = spent_file(tmp_path, ledger=tmp_path / "all.ledger")
    renamed = data.rename(tmp_path / "others.csv")
    Path(f"{data}.ledger").unlink()
    (tmp_path / "all.ledger").rename(f"{renamed}.ledger")
    for name in (None, "fresh"):
        with pytest.raises(PrivacyError, match="does not know this file"):
            privet.open(renamed, DOMAIN, budget=1000, name=name)


def test_the_spending_under_a_shared_name_is_not_left_behind(path: Path | str, tmp_path: Path) -> None:
    one, two = stored(tmp_path, "one.csv"), stored(tmp_path, "two.csv")
    privet.open(one, DOMAIN, budget=1, ledger=path, name="both").close()
    with privet.open(two, DOMAIN, budget=1, ledger=path, name="both") as table:
        table.count(1)
    for data in (one, two):
        has_no_fresh_budget(data, "both", ledger=path)


def test_the_spending_of_two_tables_under_one_name_is_not_left_behind(tmp_path: Path) -> None:
    address = tables_in(tmp_path, "one", "two", "three")
    privet.open(address + "one", DOMAIN, budget=1, name="both").close()
    with privet.open(address + "two", DOMAIN, budget=1, name="both") as table:
        table.count(1)
    has_no_fresh_budget(address + "two", "both")
    with privet.open(address + "three", DOMAIN, budget=1000) as table:  # a table of its own
        assert table.budget.remaining == 1000


def test_a_source_belongs_to_one_data_set(path: Path | str) -> None:
    ledger = new_ledger(path)
    ledger.register(DATASET, source="there", budget=None, aliases=("by another name",))
    ledger.register("others", source="elsewhere", budget=Fraction(1))
    for source in ("here", "there", "by another name"):
        for dataset in ("others", "fresh"):
            with pytest.raises(LedgerError, match=f"knows this data as 'people', not as '{dataset}'"):
                ledger.register(dataset, source="new", budget=Fraction(1), aliases=(source,))
    assert ledger.name_of(["new", "there"]) == DATASET and ledger.name_of(["new"]) is None
    assert ledger.datasets() == ["others", DATASET]
    close(ledger)
    assert Ledger.open(path).name_of(["elsewhere"]) == "others"


def test_a_hard_link_goes_on_in_the_same_ledger(path: Path | str, tmp_path: Path) -> None:
    data = spent_file(tmp_path, ledger=path)
    os.link(data, tmp_path / "copy.csv")
    has_no_fresh_budget(tmp_path / "copy.csv", "people", ledger=path)


def test_a_hard_link_goes_on_in_the_ledger_beside_the_first_name(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    os.link(data, tmp_path / "copy.csv")
    has_no_fresh_budget(tmp_path / "copy.csv", "people", ledger=f"{data}.ledger")


def test_a_hard_link_in_place_of_another_file_has_not_its_budget(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    data = spent_file(tmp_path)
    for other, words in ((tmp_path / "copy.csv", "is the same file as"), (elsewhere / "copy.csv", "a hard link")):
        stored(other.parent, other.name)
        privet.open(other, DOMAIN, budget=1000).close()
        other.unlink()
        os.link(data, other)
        uncounted(lambda: privet.open(other, DOMAIN), words)  # noqa: B023
        other.unlink()
        assert privet.open(data, DOMAIN).budget.remaining == 0


def test_a_file_that_was_replaced_goes_on(tmp_path: Path) -> None:
    data = spent_file(tmp_path)
    stored(tmp_path, "new.csv").replace(data)
    has_no_fresh_budget(data, "people")


def test_the_commands_count_what_was_spent(tmp_path: Path) -> None:
    data = stored(tmp_path)
    DOMAIN.with_target("old").save(tmp_path / "people.toml")
    ask = ("query", "people.csv", "count", "-d", "people.toml", "-b", "1000", "-e", "1000", "--ledger", ":memory:")
    fit = ("fit", "people.csv", "-d", "people.toml", "-a", "c45", "--unsafe", "-o", "tree.json")
    assert run_command(*fit, cwd=tmp_path).returncode == 0  # nothing is spent yet
    privet.open(data, DOMAIN, budget=1).count(1)
    (tmp_path / "tree.json").unlink()
    for words in (ask, fit):
        done = run_command(*words, cwd=tmp_path)
        assert done.returncode != 0 and "--ignore-spending" in done.stderr and done.stdout == ""
        assert not (tmp_path / "tree.json").exists()
        assert run_command(*words, "--ignore-spending", cwd=tmp_path).returncode == 0
