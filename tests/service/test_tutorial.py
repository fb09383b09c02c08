"""The tutorial of docs/how-to/server.md, typed as it stands: from a CSV to an analyst's model in another process."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest
import sizes
from service.server_process import ServerProcess, serving

import privet
from privet.service.config import load
from privet.service.routes import OPERATIONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8")
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
            assert f"`{name}`" in PAGE and value is not None, f"docs/how-to/server.md does not name the limit {name}"


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


@sizes.long
def test_the_commands_of_the_container_file_install_and_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `pip install` and its `CMD`, in an environment that has the dependencies alone; no engine builds it here."""
    (block,) = re.findall(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL)
    (install,) = re.findall(r"^RUN (pip install .*?) &&", block, re.MULTILINE)
    command = json.loads(re.findall(r"^CMD (.*)$", block, re.MULTILINE)[0])
    assert command == ["privet", "serve", "/data/privet.toml"] and "VOLUME /data" in block
    monkeypatch.delenv("PYTHONPATH", raising=False)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    (tmp_path / "dependencies").mkdir()
    folders = [Path(name) for name in sys.path if Path(name).name == "site-packages"]
    for name, path in {path.name: path for folder in folders for path in folder.iterdir()}.items():
        if "privet" not in name.lower() and path.suffix != ".pth":
            (tmp_path / "dependencies" / name).symlink_to(path)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "prefix")], check=True)
    (packages,) = (tmp_path / "prefix" / "lib").glob("python3*/site-packages")
    (packages / "dependencies.pth").write_text(str(tmp_path / "dependencies"))
    words = [
        f"{wheel}[server,postgres]" if word == "privet[server,postgres]" else word for word in shlex.split(install)
    ]
    assert any(word.startswith(str(wheel)) for word in words)
    pip = [str(tmp_path / "prefix" / "bin" / words[0]), *words[1:], "--no-index"]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    data = tmp_path / "data"
    data.mkdir()
    privet.datasets.census(500, seed=2).to_csv(data / "people.csv", index=False)
    (data / "people.toml").write_text(privet.datasets.census_domain().to_toml())
    table = '[tables.people]\ndata = "people.csv"\ndomain = "people.toml"\nbudget = "1"\n'
    (data / "privet.toml").write_text(f'[server]\naddress = "127.0.0.1:0"\n{table}')
    binary = str(tmp_path / "prefix" / "bin" / command[0])
    server = ServerProcess(str(data / "privet.toml"), cwd=data, command=(binary,))
    try:
        assert httpx2.get(f"{server.url}/v1/openapi.json").status_code == 200
    finally:
        assert server.stop() == 0
