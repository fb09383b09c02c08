"""The `privet` command in this process: starting a process for each test takes longer than the tests."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from privet.cli import main


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a command prints, and its exit code."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["privet", *words]),
    ):
        try:
            main()
        except SystemExit as done:
            code = int(done.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
