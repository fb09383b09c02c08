"""The tutorial of docs/server.md, typed as it stands: from a CSV to an analyst's model in another process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from service.server_process import serving

import privet
from privet.service.config import load
from privet.service.routes import OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.*)", PAGE, re.MULTILINE)


def run(command: str, folder: Path, token: str) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    assert words[0] == "privet"
    return subprocess.run(
        [sys.executable, "-m", "privet", *words[1:]],
        cwd=folder,
        env={**os.environ, "PRIVET_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_commands_of_the_tutorial_lead_to_a_model(tmp_path: Path) -> None:
    assert len(COMMANDS) <= 6
    draft, serve, export, *asks = COMMANDS
    privet.datasets.census(2000, seed=1).to_csv(tmp_path / "public_sample.csv", index=False)
    privet.datasets.census(3000, seed=2).to_csv(tmp_path / "people.csv", index=False)
    drafted = run(draft, tmp_path, "")
    assert drafted.returncode == 0, drafted.stderr
    assert export.startswith("export PRIVET_TOKEN=pvt_a_")
    with serving(*shlex.split(serve)[2:], "--address", "127.0.0.1:0", cwd=tmp_path) as server:
        for ask in asks:
            done = run(ask.replace("http://127.0.0.1:8000", server.url), tmp_path, server.first_token())
            assert done.returncode == 0, done.stderr
        model = privet.Model.load(tmp_path / "model.json")
        assert model.privacy.private and str(model.privacy.spent) == "1/2"
        assert server.stop() == 0


def test_the_configuration_of_the_page_loads(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    for name in ("server.pem", "server.key"):
        (tmp_path / name).touch()
    (tmp_path / "privet.toml").write_text(block)
    config = load(tmp_path / "privet.toml")
    assert config.owners == ("grace",) and config.tables[0].delta == "1e-6" and tomllib.loads(block)
    for name, value in vars(type(config.limits)).items():
        if not name.startswith("_"):
            assert f"`{name}`" in PAGE and value is not None, f"docs/server.md does not name the limit {name}"


def test_the_page_has_every_route() -> None:
    for operation in OPERATIONS:
        tail = operation.path.removeprefix("/v1/tables/{table}").removeprefix("/v1")
        first = tail.strip("/").split("/")[0].split("{")[0]
        assert first in PAGE, operation.path


def test_the_request_of_the_page_is_answered() -> None:
    import httpx2

    from privet.service.seeded_server import serve_seeded

    blocks = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    body = json.loads(
        blocks[0].replace("6f1c...", "6f1c0000").replace("9a0b...", "9a0b0000").replace("c77d...", "c77d0000")
    )
    domain = privet.Domain.parse(
        '[columns.sex]\nkind = "nominal"\nvalues = ["f", "m"]\n'
        '[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 100\nbins = 4\n'
    )
    frame = privet.datasets.census(100).assign(sex="f")[["sex", "age"]]
    with serve_seeded(frame, domain, 1, seed=1) as served:
        headers = {"Authorization": f"Bearer {served.token()}"}
        reply = httpx2.post(f"{served.url}/v1/tables/people/answers", headers=headers, json=body)
        assert reply.status_code == 200 and len(reply.json()["answer"]) == 4, reply.text


@pytest.mark.parametrize("word", ["nginx", "systemd", "dockerfile", "Backup"])
def test_the_page_has_its_recipes(word: str) -> None:
    assert word in PAGE
