"""What a run of the tests says at its end: how much every known-bad fixture was shown to lose."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Whoever reads the log sees that the bench caught what it must, and by how much."""
    reports = terminalreporter.stats.get("passed", [])
    caught = [text for report in reports for name, text in report.user_properties if name == "caught"]
    if caught:
        terminalreporter.write_sep("=", "known to be bad, and caught")
        for text in sorted(caught):
            terminalreporter.write_line(text)
