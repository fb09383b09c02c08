"""Loops over rows, compiled when they are used first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(loop: F, nogil: bool = False) -> F:
    """Return a loop that is compiled, and kept on disk for the next process where there is a folder for it.

    A service that runs as a user without a home, from a package that root has installed, has none.
    """
    try:
        made: F = njit(cache=True, nogil=nogil)(loop)
    except RuntimeError:  # numba's word for that
        made = njit(nogil=nogil)(loop)
    return made
