"""The most memory that a piece of work held; on Linux alone, where a process can forget its peak."""

from __future__ import annotations

from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> bool:
    """Start anew from what this process holds now, so that its peak is not that of what ran before.

    False if it cannot, which is so wherever there is no Linux.
    """
    try:
        CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def peak() -> float | None:
    """The most that this process held, in GB; what getrusage says of a child would include its parent's."""
    return _said("VmHWM")


def held() -> float | None:
    """What this process holds now, in GB."""
    return _said("VmRSS")


def _said(name: str) -> float | None:
    try:
        lines = STATUS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith(name)), None)
