"""`python -m bench [kernel|engines|accuracy|growth ...]`: measure, print every number beside its bound, write a page.

`python -m bench walks` counts the files and functions that a count, a tree level, a boosted fit and an audit cross, and
writes build/bench/walks.json. `python -m bench server` asks a server on loopback, writes build/bench/server.json.
`python -m bench fits` measures what a fit takes, ours beside DP-EBM, and writes build/bench/fits.json.

With nothing it runs all parts. `kernel` is the speed of the kernel and of one tree, `engines` a tree on every engine,
`accuracy` every learner on every data set at every epsilon, `growth` more and more rows. Results are lines of
build/bench/results.jsonl, and a run goes on where another stopped; `--fresh` measures again what was asked for. Beside
it are written bench.json, index.html and frontier.svg, functions of that file. `publish` copies what there is to
evidence/bench.json, evidence/engines.json and docs/frontier.svg.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import PEERS, ROOT, bounds, data, trials
from bench.frontier import frontier
from bench.page import facts, page
from bench.result import Result
from bench.split import GROWTH
from bench.summary import Summary
from privet.errors import DataError
from privet.studies import Outcome, Trial, forget, recorded, run
from privet.studies.learners import BENCHED as LEARNERS
from privet.studies.learners import Learner
from privet.studies.worker_pool import WorkerPool, problems

PARTS = ("kernel", "engines", "accuracy", "growth")
COMMAND = "make bench"
WORK = "bench.measure:measure"


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _asked(arguments)
    folder: Path = asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    if asked.parts == ["publish"]:
        return _publish(folder)
    if asked.parts == ["walks"]:
        return _walks(folder)
    if asked.parts == ["server"]:
        return _server(folder)
    if asked.parts == ["fits"]:
        return _fits(folder)
    parts = asked.parts or PARTS
    if "kernel" in parts:
        _kernel(folder)
    if "engines" in parts:
        _engines(folder, asked.quick)
    if "accuracy" in parts or "growth" in parts:
        _study(asked, parts)
    results = _write(folder, asked.rows)
    Console().print(_table(results))
    Console().print(f"written to {folder}/bench.json, index.html and frontier.svg")
    return 1 if any(not result.holds for result in results) else 0


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=str(__doc__).split("\n", 1)[0])
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} (all of them); publish; walks; server; fits"
    )
    parser.add_argument("--repeats", type=int, help=f"splits of each data set ({trials.REPEATS})")
    parser.add_argument("--data", nargs="+", metavar="NAME", help=f"of {', '.join(data.names())}")
    parser.add_argument("--learners", nargs="+", metavar="NAME", help=f"of {', '.join(LEARNERS)}")
    parser.add_argument("--epsilons", nargs="+", metavar="EPSILON", help=f"of {', '.join(trials.EPSILONS)}")
    parser.add_argument("--rows", type=int, help="of each data set at most")
    parser.add_argument("--quick", action="store_true", help="two repeats, two epsilons, fewer rows")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured before")
    parser.add_argument("--jobs", type=int, default=1, help="trials at once, for accuracy; their times then disturb")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    asked = parser.parse_args(arguments)
    for names, known in (
        (asked.parts, (*PARTS, "publish", "walks", "server", "fits")),
        (asked.data, data.names()),
        (asked.learners, LEARNERS),
        (asked.epsilons, trials.EPSILONS),
    ):
        for name in names or ():
            if name not in known:
                parser.error(f"'{name}' is none of {', '.join(known)}")
    asked.repeats = asked.repeats or (trials.QUICK_REPEATS if asked.quick else trials.REPEATS)
    asked.epsilons = asked.epsilons or (trials.QUICK_EPSILONS if asked.quick else trials.EPSILONS)
    return asked


# -- measuring --------------------------------------------------------------------------------


def _kernel(folder: Path) -> None:
    from bench import kernel, trees

    _keep(folder / "kernel.json", [*trees.measure(say), *kernel.measure(say)])


def _engines(folder: Path, quick: bool) -> None:
    from bench import engines

    _keep(folder / "engines.json", engines.measure(say, engines.QUICK_ROWS if quick else engines.ROWS))


def _walks(folder: Path) -> int:
    from bench import walks

    found = walks.measure(say)
    walks.write(found, folder / "walks.json")
    Console().print(walks.shown(found))
    say(f"written to {folder / 'walks.json'}")
    return 0


def _fits(folder: Path) -> int:
    from bench import fits

    found = fits.measure(say)
    (folder / "fits.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    Console().print(fits.shown(found))
    say(f"written to {folder / 'fits.json'}")
    return 0


def _server(folder: Path) -> int:
    from bench import server

    found = server.measure()
    text = json.dumps(found, indent=2)
    (folder / "server.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    say(f"written to {folder / 'server.json'}")
    return 1 if found["added to a count at the median"] > server.MOST_ADDED else 0


def _keep(path: Path, results: Iterable[Result]) -> None:
    text = json.dumps([asdict(result) for result in results], indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def _study(asked: argparse.Namespace, parts: Sequence[str]) -> None:
    path = asked.folder / "results.jsonl"
    learners = _available(asked.learners or list(LEARNERS))
    with WorkerPool(WORK, peers=PEERS, home=ROOT) as workers:
        if "accuracy" in parts:
            wanted = list(_accuracy(asked, learners))
            if asked.fresh:
                forget(wanted, path)
            if asked.jobs > 1:
                with ThreadPoolExecutor(asked.jobs) as executor:
                    _report(run(wanted, workers, path, _Clock(), executor))
            else:
                _report(run(wanted, workers, path, _Clock()))
    if "growth" in parts:
        sizes = trials.QUICK_ROWS if asked.quick else trials.ROWS
        wanted = list(trials.growth(learners, sizes, asked.repeats))
        if asked.fresh:
            forget(wanted, path)
        with WorkerPool(WORK, peers=PEERS, home=ROOT, fresh=True) as workers:
            _report(run(wanted, workers, path, _Clock()))


def _available(names: Sequence[str]) -> list[Learner]:
    found = problems(names, PEERS)
    for problem in filter(None, found.values()):
        say(problem)
    return [LEARNERS[name] for name in names if not found[name]]


def _accuracy(asked: argparse.Namespace, learners: Sequence[Learner]) -> list[Trial]:
    found: list[Trial] = []
    for name in asked.data or data.names():
        try:
            classes = len(data.load(name).domain.classes)
        except DataError as error:
            say(f"{name} is left out: {error}")
            continue
        for learner in learners:
            if learner.binary and classes > 2:
                say(f"{learner.title} is left out on {name}: it knows two classes only")
        fit = [learner for learner in learners if not learner.binary or classes == 2]
        found += trials.accuracy([name], fit, asked.epsilons, asked.repeats, asked.rows)
    return found


def _report(outcomes: Sequence[Outcome]) -> None:
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in failed[:10]:
        say(f"failed: {outcome.trial.json}: {outcome.error}")
    if failed:
        say(f"{len(failed)} of {len(outcomes)} trials failed; another run tries them again")


# -- telling ----------------------------------------------------------------------------------


def _write(folder: Path, rows: int | None) -> list[Result]:
    """Everything that is written is a function of what was recorded."""
    shown = [
        outcome
        for outcome in recorded(folder / "results.jsonl").values()
        if trials.current(outcome.trial) and (outcome.trial.data == GROWTH or outcome.trial.rows == rows)
    ]
    summary = Summary(shown)
    speed = [path for path in (folder / "kernel.json", folder / "engines.json") if path.exists()]
    measured = [Result(**each) for path in speed for each in json.loads(path.read_text(encoding="utf-8"))]
    results = [*measured, *bounds.held(summary)]
    content = {
        "command": COMMAND,
        "python": platform.python_version(),
        "versions": summary.versions(),
        "interval": "mean, standard deviation and 95% interval (Student) over n repeats",
        "data": facts(summary),
        "accuracy": summary.cells(lambda place: place.data != GROWTH),
        "growth": summary.cells(lambda place: place.data == GROWTH),
        "bounds": [{**asdict(result), "holds": result.holds} for result in results],
    }
    (folder / "bench.json").write_text(_lines(content) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(page(summary, results, COMMAND), encoding="utf-8")
    (folder / "frontier.svg").write_text(frontier(summary), encoding="utf-8")
    return results


def _table(results: Sequence[Result]) -> Table:
    table = Table(title="privet bench", title_justify="left")
    for heading in ("measurement", "value", "bound", "aim", ""):
        table.add_column(heading, justify="left" if heading == "measurement" else "right")
    for result in results:
        table.add_row(result.name, result.shown(), *result.limits(), result.verdict)
    return table


def _lines(content: Mapping[str, Any]) -> str:
    """JSON with a line for each entry of a list: small, and a change shows where it is."""
    parts = []
    for name, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(each) for each in value) + "\n]"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


def _publish(folder: Path) -> int:
    """What was measured: `engines` has a file of its own, the other parts have one together."""
    places = {"engines.json": ROOT / "evidence"}
    if (folder / "results.jsonl").exists():
        places |= {"bench.json": ROOT / "evidence", "frontier.svg": ROOT / "docs"}
    there = [name for name in places if (folder / name).exists()]
    for name in there:
        shutil.copy(folder / name, places[name] / name)
        say(f"written to {places[name] / name}")
    if not there:
        say(f"there is nothing in {folder}; run `{COMMAND}` first")
    return 0 if there else 2


class _Clock:
    """Progress on standard error with the time since the start; on a terminal it is one line."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, text: str) -> None:
        told = f"{time.monotonic() - self._start:6.0f} s  {text}"
        line = f"\r{told[:118]:118}" if sys.stderr.isatty() else f"{told}\n"
        print(line, end="", file=sys.stderr, flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
