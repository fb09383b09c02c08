"""`python -m evidence.audit_page`: the demo's page about two trees as a picture, today's and one of before.

Writes docs/audit.png. With `--at REVISION PICTURE` the package of a commit makes the page instead: evidence/
audit_before.png is of 0af19b4, where own rows were not told from what holds of many people. Needs Chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "audit.png"
SIZE = {"width": 1280, "height": 1180}


def drawn(source: Path, picture: Path) -> None:
    """Run the demo of the package in `source`, and take a picture of the page about its two trees."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        told = f"import sys; sys.path.insert(0, {str(source)!r}); from privet.cli import main; main()"
        words = [sys.executable, "-c", told, "demo", "--folder", folder, "--rows", "5000"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(source)})
        page = next(Path(folder).rglob("audit.html"))
        with sync_playwright() as running:
            browser = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            seen = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
            seen.goto(page.as_uri())
            seen.screenshot(path=picture)
            browser.close()


def main(words: list[str]) -> int:
    if words[:1] != ["--at"]:
        drawn(ROOT / "src", PICTURE)
        return 0
    revision, picture = words[1:]
    with tempfile.TemporaryDirectory() as folder:
        kept = subprocess.run(["git", "archive", revision, "src"], check=True, capture_output=True, cwd=ROOT).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=kept, check=True)
        drawn(Path(folder) / "src", ROOT / picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
