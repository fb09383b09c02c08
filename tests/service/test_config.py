"""A configuration is read whole, and a mistake in it is told with its line."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest

from privet.errors import QuestionError
from privet.service.config import Grant, load

WHOLE = """\
[server]
address = "127.0.0.1:8443"
operations = "127.0.0.1:9000"
ledger = "postgresql://privet@db/ledgers"
hosts = ["privet.example.org"]
proxies = ["10.0.0.1"]
owners = ["grace"]

[limits]
rate = 20
idle = 600

[tables.patients]
data = "patients.csv"
domain = "patients.toml"
budget = "1.5"
tick = 0.25

[tables.stays]
data = "postgresql://reader@db/hospital?table=stays"
domain = "stays.toml"

[analysts.ada]
tables = {patients = "0.5"}
expires = 2027-12-31

[analysts."Grace Hopper"]
tables = ["patients", "stays"]
"""


def test_a_configuration_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "privet.toml"
    path.write_text(WHOLE)
    config = load(path)
    assert (config.host, config.port, config.operations) == ("127.0.0.1", 8443, ("127.0.0.1", 9000))
    assert config.ledger == "postgresql://privet@db/ledgers" and config.owners == ("grace",)
    patients, stays = config.tables
    assert (patients.data, patients.budget, patients.tick) == (str(tmp_path / "patients.csv"), "1.5", 0.25)
    assert stays.data.startswith("postgresql://") and stays.domain == str(tmp_path / "stays.toml")
    assert (config.limits.rate, config.limits.idle, config.limits.burst) == (20, 600, 200)
    assert config.analysts == {
        "ada": Grant({"patients": Fraction(1, 2)}, date(2027, 12, 31)),
        "Grace Hopper": Grant({"patients": None, "stays": None}),
    }


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ('address = "127', 'adress = "127', 2, "did you mean 'address'"),
        ('"127.0.0.1:8443"', '"8443"', 2, "a host and a port"),
        ('"127.0.0.1:8443"', '"127.0.0.1:99999"', 2, "a host and a port"),
        ('hosts = ["privet.example.org"]', "hosts = 3", 5, "list of texts"),
        ("rate = 20", "rate = -1", 10, "must be a number"),
        ("idle = 600", "idle = true", 11, "must be a number"),
        ("idle = 600", "refresh = 0", 11, "a number above 0"),
        ("rate = 20", "burst = 2.5", 10, "a whole number of at least 1"),
        ('budget = "1.5"', "budget = -1", 16, "budget must be a number between"),
        ('data = "patients.csv"', "data = 3", 14, "data must be a text"),
        ("tick = 0.25", 'tick = "soon"', 17, "must be a number"),
        ("[tables.stays]", '[tables."../stays"]', 19, "letters and digits"),
        ('{patients = "0.5"}', '{patient = "0.5"}', 24, "did you mean 'patients'"),
        ('{patients = "0.5"}', '{patients = "all"}', 24, "a cap must be a number"),
        ("2027-12-31", '"2027-12-31"', 25, "without quotes"),
        ("[analysts.ada]", "[analysts.ada", 23, "not valid TOML"),
        ("[limits]", "[limit]", 9, "did you mean 'limits'"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, before: str, after: str, line: int, message: str) -> None:
    path = tmp_path / "privet.toml"
    assert WHOLE.count(before) >= 1
    path.write_text(WHOLE.replace(before, after, 1))
    with pytest.raises(QuestionError) as refused:
        load(path)
    assert f"line {line}" in str(refused.value) and message in str(refused.value), refused.value


def test_no_token_crosses_a_network_in_the_clear(tmp_path: Path) -> None:
    path = tmp_path / "privet.toml"
    path.write_text(WHOLE.replace('proxies = ["10.0.0.1"]\n', "").replace("127.0.0.1:8443", "0.0.0.0:8443"))
    with pytest.raises(QuestionError, match=r"line 2: .*in the clear"):
        load(path)
    path.write_text(WHOLE.replace('hosts = ["privet.example.org"]\n', "").replace("127.0.0.1:8443", "0.0.0.0:8443"))
    with pytest.raises(QuestionError, match=r"line 2: .*name the hosts"):
        load(path)
    path.write_text("")
    with pytest.raises(QuestionError, match="at least one table"):
        load(path)
