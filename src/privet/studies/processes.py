"""Processes for trials, of one thread each: as many as are asked for are busy, and no more."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """So many processes."""
    start = multiprocessing.get_context("spawn")  # a fork would share the threads of numba
    with ProcessPoolExecutor(jobs, mp_context=start, initializer=_one_thread) as pool:
        yield pool


def _one_thread() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
