"""The site has every page, loads nothing from a network, and its search works from a folder."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sizes import long

import privet

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # evidence/ lies beside tests/ and is not installed
site: Any = importlib.import_module("evidence.site")
NAVIGATION = set(re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))


def test_every_page_is_in_the_navigation() -> None:
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert NAVIGATION == written | set(site.pages())


def test_every_public_name_is_in_the_reference_with_what_it_does() -> None:
    text = "".join(site.api(group) for group in site.API)
    for name in privet.__all__:
        assert re.search(rf"^## {name}\n\n(```python\n[^`]*```\n\n)?[\w`]", text, re.MULTILINE), name


def test_the_reference_of_the_server_has_every_operation() -> None:
    from privet.service.routes import OPERATIONS

    page = site.http()
    for operation in OPERATIONS:
        assert f"## {operation.method.upper()} {operation.path}\n" in page, operation.path


@long
def test_the_site_is_built_and_searched_without_a_network(tmp_path: Path) -> None:
    """MkDocs is strict: a link or an anchor that leads nowhere, or a page that is in no menu, fails the build."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        assert not site.LOADS.search(page.read_text(encoding="utf-8")), page
    if chromium is None:
        pytest.skip("there is no Chromium to search in")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_context(offline=True).new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "how-to" / "audit.html").as_uri())
        page.click(".md-search__input")
        page.keyboard.type("neighbours")
        page.wait_for_selector(".md-search-result__link", timeout=60_000)
        found = [link.get_attribute("href") or "" for link in page.query_selector_all(".md-search-result__link")]
        browser.close()
    assert any("explanation/neighbours.html" in link for link in found)
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
