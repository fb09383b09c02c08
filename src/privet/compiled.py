"""Loops over rows, compiled when they are used first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(loop: Callable[..., Any], nogil: bool = False) -> Any:
    """Return a loop that is compiled, and kept on disk for the next process where there is a folder for it.

    A service that runs as a user without a home, from a package that root has installed, has none.
    """
    try:
        return njit(cache=True, nogil=nogil, no_cfunc_wrapper=True)(loop)
    except RuntimeError:  # numba's word for that
        return njit(nogil=nogil, no_cfunc_wrapper=True)(loop)
