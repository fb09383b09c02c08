"""`python -m bench server`: questions over HTTP beside the same ones in process, and beside the bare framework.

All in one process and one run, ticks off, on Adult: a count, and a level of 64 parts. What is told is the median and
the 99th percentile of one request after the other, and requests a second of several clients at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import privet
from privet.service.seeded_server import serve_seeded

WARM, ASKED, CLIENTS = 30, 300, 4
TIMED, TICK = 100, 0.1  # requests that are timed, and seconds after which answers leave
MOST_ADDED = 5.0  # milliseconds that a server may add to a count at the median


def measure(asked: int = ASKED) -> dict[str, Any]:
    """Return milliseconds and requests a second, by what was asked."""
    adult = privet.datasets.load("adult")
    results: dict[str, Any] = {"asked": asked, "unit": "milliseconds; requests a second of 4 clients at once"}
    table = privet.testing.open(adult.frame, adult.domain, 10**6, seed=1, name="adult")
    for what, ask in _questions(table).items():
        results[f"in process: {what}"] = _figures(_times(ask, asked))
    with serve_seeded(adult.frame, adult.domain, 10**6, seed=1, name="adult") as served:
        with served.connect() as connection:
            remote = connection.table("adult")
            for what, ask in _questions(remote).items():
                results[f"server: {what}"] = _figures(_times(ask, asked))
        connections = [served.connect(f"analyst {number}") for number in range(CLIENTS)]
        for what in _questions(table):
            asks = [_questions(connection.table("adult"))[what] for connection in connections]
            results[f"server: {what}"]["requests a second"] = _rate(asks, asked)
        for connection in connections:
            connection.close()
    with _bare() as url, httpx2.Client(base_url=url) as client:
        ask = lambda: client.post("/", json={"question": {"question": "count", "version": 1}}).json()  # noqa: E731
        results["bare framework: a constant"] = _figures(_times(ask, asked))
    results["told apart by time"] = _timing(adult.frame, adult.domain)
    added = results["server: count"]["p50"] - results["in process: count"]["p50"]
    results["added to a count at the median"] = round(added, 2)
    return results


def _questions(table: Any) -> dict[str, Callable[[], object]]:
    parts = table.partition("occupation").partition("workclass").take(range(64))
    assert len(parts) == 64
    return {
        "count": lambda: table.count("0.001"),
        "level of 64 parts": lambda: parts.histogram("race", epsilon="0.001"),
    }


def _times(ask: Callable[[], object], asked: int, warm: int = WARM) -> list[float]:
    for _ in range(warm):
        ask()
    times = []
    for _ in range(asked):
        start = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - start))
    return times


def _figures(times: list[float]) -> dict[str, Any]:
    return {"p50": round(float(np.quantile(times, 0.5)), 2), "p99": round(float(np.quantile(times, 0.99)), 2)}


def _timing(frame: Any, domain: Any) -> dict[str, Any]:
    """How well times tell a table from a tenth of it, and answers from refusals: 0.5 is not at all, 1 always.

    The share of pairs in which the first took longer (the area under the curve of a test by the time of one request).
    """
    shares: dict[str, Any] = {"requests of each": TIMED, "tick, seconds": TICK}
    order = np.random.default_rng(0)
    for tick in (0.0, TICK):
        with (
            serve_seeded(frame, domain, 10**6, seed=1, tick=tick) as large,
            serve_seeded(frame.iloc[::10], domain, 10**6, seed=1, tick=tick) as small,
            large.connect() as one,
            small.connect() as two,
        ):
            tables = one.table("people"), two.table("people")
            level, tenth = (_questions(table)["level of 64 parts"] for table in tables)
            spent = tables[0].allot("0.001")
            spent.count("0.001")
            asks: dict[str, Callable[[], object]] = {
                "whole": level,
                "tenth": tenth,
                "refused": functools.partial(_refused, functools.partial(spent.count, "0.001")),
                "not yours": functools.partial(_refused, functools.partial(one.get, "/v1/tables/other")),
            }
            times: dict[str, list[float]] = {name: [] for name in asks}
            for _ in range(TIMED):
                for name in order.permutation(list(asks)).tolist():  # what was asked before has an effect of its own
                    times[name] += _times(asks[name], 1, warm=0)
        words = "with ticks" if tick else "without ticks"
        shares[f"a table from a tenth of it, {words}"] = _share(times["whole"][5:], times["tenth"][5:])
        shares[f"an answer from a refusal, {words}"] = _share(times["whole"][5:], times["refused"][5:])
        shares[f"milliseconds, {words}"] = {name: _figures(own[5:]) for name, own in times.items()}
    return shares


def _refused(ask: Callable[[], object]) -> None:
    with contextlib.suppress(privet.errors.PrivetError):
        ask()


def _share(first: list[float], second: list[float]) -> float:
    longer = np.subtract.outer(first, second)
    return round(float((longer > 0).mean() + (longer == 0).mean() / 2), 3)


def _rate(asks: list[Callable[[], object]], asked: int) -> float:
    counter = itertools.count()

    def work(ask: Callable[[], object]) -> None:
        while next(counter) < asked:
            ask()

    threads = [threading.Thread(target=work, args=(ask,)) for ask in asks]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(asked / (time.perf_counter() - start), 1)


@contextmanager
def _bare() -> Iterator[str]:
    """Starlette and uvicorn alone: a body is read, and a constant is sent back."""

    async def constant(request: Request) -> Response:
        await request.body()
        return Response(b'{"answer":[3]}', media_type="application/json")

    app = Starlette(routes=[Route("/", constant, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
