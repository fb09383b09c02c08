"""What the wheel holds, and what is written about the package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import privet

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src" / "privet"
    files = {
        str(path.relative_to(ROOT / "src"))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    content = set(zipfile.ZipFile(wheel).namelist())
    assert files <= content
    assert {"privet/py.typed", "privet/domains/adult.toml"} <= content
    assert {name.split("/")[0] for name in content} == {"privet", f"privet-{privet.__version__}.dist-info"}


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["version"] == citation["version"] == privet.__version__


def test_the_container_file_is_that_of_the_page_but_for_where_privet_comes_from() -> None:
    """`tests/service/test_tutorial.py` runs the commands of the page's."""
    page = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8")
    shown = page.split("```dockerfile\n")[1].split("```")[0].splitlines()
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("/privet[server", "privet[server").splitlines()
    assert [line for line in lines if not line.startswith(("#", "COPY"))] == shown
    for line in lines:
        if line.startswith("COPY"):
            assert all((ROOT / name).exists() for name in line.split()[1:-1])
