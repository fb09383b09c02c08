"""Ledgers that are damaged or out of reach are refused in one sentence and left as they are."""

from __future__ import annotations

import gc
import json
import random
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command import run as run_command
from damaged_ledger import damage, forge
from kernel.ledger.small_ledger import DATASET, DOMAIN, TENTH, close, new_ledger, one_sentence, stored, table_at, tenth

import privet
from privet.errors import LedgerError
from privet.kernel import Ledger


@pytest.fixture
def written(file: Path) -> Path:
    """A closed ledger of forty entries."""
    ledger = new_ledger(file, Fraction(10))
    for i in range(40):
        entry, _ = ledger.charge(DATASET, "ada", tenth(f"k{i}", "f" * 64))
        ledger.store(entry.id, json.dumps({"answer": [i], "private": True}))
    close(ledger)
    return file


def refused(path: Path) -> None:
    """The ledger is refused, both alone and under a table, and stays as it is."""
    before = path.read_bytes()
    for opening in (lambda: Ledger.open(path), lambda: table_at(path, budget=10)):
        with pytest.raises(LedgerError) as caught:
            opening()
        assert str(path) in one_sentence(caught.value)
    gc.collect()
    assert path.read_bytes() == before


def test_random_bytes_are_no_ledger(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(20_000))
    refused(file)
    file.write_text("a text\n" * 100)
    refused(file)


@pytest.mark.parametrize("kept", [1, 6, 100, 512, 4096, 0.3, 0.5, 0.9, 0.97, 0.9999])
def test_a_ledger_cut_short_is_refused(written: Path, kept: float) -> None:
    content = written.read_bytes()
    written.write_bytes(content[: int(kept if kept >= 1 else len(content) * kept)])
    refused(written)


def test_a_database_of_something_else_is_refused_and_left_alone(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE customers (name TEXT)")
    other.commit()
    other.close()
    refused(file)


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE lines SET line = replace(line, '"loss":"1/10"', '"loss":"1/90"') WHERE number = 5""",
        "UPDATE lines SET line = 'abc' WHERE number = 5",
        "UPDATE lines SET line = '[]' WHERE number = 5",
        "UPDATE lines SET line = x'00ff' WHERE number = 5",
        "UPDATE lines SET line = line || ' ' WHERE number = 5",
        "UPDATE lines SET note = x'00ff' WHERE number = 5",
        "UPDATE lines SET note = replace(note, 'salt', 'Salt') WHERE number = 5",
        "UPDATE lines SET note = (SELECT note FROM lines WHERE number = 7) WHERE number = 5",
        "UPDATE lines SET leaf = (SELECT leaf FROM lines WHERE number = 7) WHERE number = 5",
        "UPDATE lines SET analyst = 'bob' WHERE kind = 'charge' AND serial = 3",
        "UPDATE lines SET analyst = 'bob' WHERE kind = 'cap'",
        "UPDATE lines SET dataset = 'others' WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET dataset = NULL WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET key = 'k' WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET key = NULL WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET reference = 41 WHERE kind = 'answer' AND serial = 40",
        "UPDATE lines SET reference = 1 WHERE kind = 'charge' AND serial = 4",
        "UPDATE lines SET kind = 'config' WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET serial = 41 WHERE kind = 'charge' AND serial = 40",
        "UPDATE lines SET number = 100 WHERE number = 82",
        "UPDATE lines SET (line, note, leaf) = (SELECT line, note, leaf FROM lines WHERE number = 5) WHERE number = 7",
        "DELETE FROM lines WHERE number = 1",
        "DELETE FROM lines WHERE number = 5",
        "DELETE FROM lines WHERE number = 82",
        "DELETE FROM lines WHERE number > 40",
        "DELETE FROM lines",
        "UPDATE analysts SET name = 'bob'",
        "UPDATE analysts SET secret = ''",
        "UPDATE analysts SET name = x'00ff'",
        "DELETE FROM analysts",
        "INSERT INTO analysts VALUES ('a', 'bob', 's')",
        "UPDATE sources SET source = 'there'",
        "UPDATE sources SET dataset = 'others'",
        "DELETE FROM sources",
        "UPDATE format SET version = 99",
        "UPDATE format SET ledger = 'another'",
        "DELETE FROM format",
        "DROP TABLE analysts",
        "DROP TABLE lines",
        "DROP INDEX by_key",
        "DROP INDEX one_answer",
    ],
)
def test_a_ledger_that_does_not_add_up_is_refused(written: Path, statement: str) -> None:
    damage(written, statement)
    refused(written)


@pytest.mark.parametrize(
    ("kind", "serial", "changes"),
    [
        ("charge", 40, {"dataset_spent": "1/10"}),
        ("charge", 7, {"analyst_spent": "0"}),
        ("charge", 7, {"dataset_spent": "14/20"}),
        ("charge", 1, {"loss": "1/1000"}),
        ("charge", 1, {"loss": "1/0"}),
        ("charge", 1, {"loss": "abc"}),
        ("charge", 1, {"loss": 1}),
        ("charge", 1, {"loss": "-1/10", "dataset_spent": "-1/10", "analyst_spent": "-1/10"}),
        ("charge", 4, {"dataset_cap": "20"}),
        ("charge", 4, {"analyst_cap": "20"}),
        ("charge", 4, {"rows_per_person": 2}),
        ("charge", 4, {"terms": 2}),
        ("charge", 4, {"domain": "0" * 64}),
        ("charge", 4, {"unit": "rho"}),
        ("charge", 4, {"reservation": 1, "reservation_spent": "1/10"}),
        ("charge", 4, {"reservation_spent": "1/10"}),
        ("charge", 4, {"analyst": "nobody"}),
        ("charge", 4, {"analyst": None}),
        ("charge", 4, {"dataset": "others"}),
        ("charge", 4, {"number": 11}),
        ("charge", 4, {"serial": 5}),
        ("charge", 4, {"ledger": "another"}),
        ("charge", 4, {"kind": "config"}),
        ("cap", 1, {"cap": "30"}),
        ("cap", 1, {"cap": "-1"}),
        ("cap", 1, {"dataset": "others"}),
        ("register", 1, {"rows_per_person": 2}),
        ("register", 1, {"rows_per_person": 0}),
        ("register", 1, {"unit": "rho"}),
        ("register", 1, {"unit": "gold"}),
        ("register", 1, {"delta": "1/1000000"}),
        ("register", 1, {"sources": []}),
        ("register", 1, {"sources": ["another"]}),
        ("answer", 7, {"entry": 41}),
        ("answer", 7, {"entry": 0}),
        ("answer", 7, {"analyst": "nobody"}),
    ],
)
def test_a_line_whose_hashes_are_right_must_still_follow_from_the_others(
    written: Path, kind: str, serial: int, changes: dict[str, Any]
) -> None:
    forge(written, kind, serial)
    Ledger.open(written).close()  # the forger changes nothing else
    forge(written, kind, serial, **changes)
    refused(written)


def test_a_flipped_bit_never_forgets_a_charge_nor_changes_a_cap_or_an_answer(written: Path) -> None:
    """The ledger is refused, or nothing is missing. A third of the bits are in pages of indices, a third in the cap."""
    content, page = written.read_bytes(), 4096
    indices = [start for start in range(page, len(content), page) if content[start] in (2, 10)]
    cap = content.index(b'"cap":"10"')
    entries = Ledger.open(written).entries(DATASET)
    coins = random.Random(1)
    for i in range(450):
        places = (
            coins.randrange(len(content)),
            coins.choice(indices) + coins.randrange(page),
            cap + coins.randrange(10),
        )
        place = places[i % 3]
        damaged = bytearray(content)
        damaged[place] ^= 1 << coins.randrange(8)
        copy = written.with_name(f"copy {i}")
        copy.write_bytes(damaged)
        try:
            ledger = Ledger.open(copy)
        except LedgerError:
            continue
        assert (ledger.spent(DATASET), ledger.cap(DATASET)) == (4, 10), f"byte {place}"
        assert ledger.entries(DATASET) == entries, f"byte {place}"
        close(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET note = replace(note, ':[', ':[9') WHERE kind = 'answer'",
        """UPDATE lines SET line = replace(line, '"cap":"1"', '"cap":"3/2"') WHERE kind = 'cap'""",
    ],
)
def test_damage_to_an_open_ledger_is_noticed_where_it_is_read(file: Path, statement: str) -> None:
    table = table_at(file)
    table.count("0.1", key="k")
    damage(file, statement)
    for ask in (lambda: table.count("0.1", key="k"), lambda: table.count("0.1")):
        try:
            ask()
        except LedgerError as error:
            assert "is damaged" in one_sentence(error)
            break
    else:
        pytest.fail("nobody has noticed it")


@pytest.mark.parametrize("version", [1, 2, 3, 99])
def test_a_ledger_of_another_format_is_refused_in_one_sentence(written: Path, version: int) -> None:
    damage(written, f"UPDATE format SET version = {version}")
    with pytest.raises(LedgerError, match=f"is of format {version}, .* go on with the version that wrote it") as other:
        Ledger.open(written)
    one_sentence(other.value)
    refused(written)


@pytest.mark.parametrize(
    "name",
    [
        "\0",
        "a\0b",
        "x" * 256,
        "x" * 5000,
        "",
        "postgresql://ada@127.0.0..1/base",
        "postgresql://[/base",
        "spark://[/?t=x",
    ],
    ids=["nul", "nul inside", "long", "very long", "empty", "two dots", "bracket", "spark"],
)
def test_what_can_be_no_ledger_is_told_in_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for opening in (
        lambda: Ledger.open(name),
        lambda: Ledger.open(name, create=False),
        lambda: table_at(name),
        lambda: table_at(name, budget=None),
        lambda: privet.open(stored(tmp_path), DOMAIN, budget=1, ledger=name),
    ):
        with pytest.raises(LedgerError) as refused:
            opening()
        text = one_sentence(refused.value)
        assert "damaged" not in text and "\0" not in text


def test_a_file_name_that_is_too_long_for_a_ledger_beside_it_is_told(tmp_path: Path) -> None:
    data = stored(tmp_path, "x" * 248 + ".csv")
    with pytest.raises(LedgerError) as refused:
        privet.open(data, DOMAIN, budget=1)
    assert "File name" not in str(refused.value)
    privet.open(data, DOMAIN, budget=1, ledger=tmp_path / "people.ledger").count("0.1")
    with privet.open(stored(tmp_path, "x" * 236 + ".csv"), DOMAIN, budget=1) as table:  # 255 with its journal
        table.count("0.1")


def test_an_analyst_who_is_not_there_cannot_be_stopped(tmp_path: Path) -> None:
    data = stored(tmp_path)
    privet.open(data, DOMAIN, budget=1, analyst="ada").count("0.1")
    done = run_command("budget", "revoke", "people.csv", "--analyst", "nobody", cwd=tmp_path)
    assert done.returncode != 0 and "there is no analyst 'nobody' on 'people'; known are ada." in done.stderr
    assert run_command("budget", "revoke", "people.csv", "--analyst", "ada", cwd=tmp_path).returncode == 0


def test_a_ledger_whose_own_words_are_damaged_is_refused(written: Path) -> None:
    content = written.read_bytes()
    assert b"triggerlines_UPDATE" in content  # perhaps more than once: a page may keep what was moved to another
    written.write_bytes(content.replace(b"triggerlines_UPDATE", b"triggerline\xf3_UPDATE"))
    refused(written)


@pytest.mark.parametrize("place", ["/proc/privet.ledger", "{file}/ledger", "{folder}", "{folder}/none/ledger"])
def test_a_ledger_that_cannot_be_written_is_told_in_one_sentence(place: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    path = place.format(file=file, folder=tmp_path)
    for opening in (lambda: Ledger.open(path), lambda: table_at(path)):
        with pytest.raises(LedgerError, match="cannot") as refused:
            opening()
        assert path in one_sentence(refused.value)


def test_a_charge_that_cannot_be_written_is_not_answered(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_at(file)
    table.count("0.1")
    raw = sqlite3.connect(file, isolation_level=None)
    raw.execute("CREATE TRIGGER disk_full BEFORE INSERT ON lines BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    monkeypatch.setattr(table._session.engine, "exact_counts", lambda query: pytest.fail("the engine was asked"))
    with pytest.raises(LedgerError, match="full") as refused:
        table.count("0.1")
    one_sentence(refused.value)
    raw.execute("DROP TRIGGER disk_full")
    raw.close()
    monkeypatch.undo()
    assert table.budget.spent == TENTH and table.budget.remaining == 9 * TENTH
    table.count("0.9")
