"""`python -m evidence`: measure on all cores, go on where a run was interrupted, and write evidence/trees.json."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

from evidence import trees
from privet.errors import DataError

RESULT = Path(__file__).with_name("trees.json")
JOURNAL = Path("build/evidence-trees.jsonl")  # what an interrupted run had done


def main() -> int:
    os.environ["OMP_NUM_THREADS"] = "1"  # one process for each core is parallel enough
    try:
        trees.load_all()
    except DataError as error:
        _say(str(error))
        return 2
    wanted = {cell.key: cell for cell in trees.cells()}
    found = {key: values for key, values in _done().items() if key in wanted}
    waiting = [cell for key, cell in wanted.items() if key not in found]
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ctrl-C does: end the processes below
    with (
        multiprocessing.get_context("spawn").Pool() as pool,
        JOURNAL.open("a", encoding="utf-8") as journal,
    ):
        for cell, values in zip(waiting, pool.imap(trees.measure, waiting), strict=True):
            found[cell.key] = values
            print(json.dumps({"key": cell.key, "values": values}), file=journal, flush=True)
            _say(f"{len(found):4} of {len(wanted)}  {time.monotonic() - start:5.0f} s  {cell.key}")
    content = trees.report({wanted[key]: found[key] for key in wanted})
    RESULT.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    JOURNAL.unlink()
    for line in trees.lines(content):
        print(line)
    _say(f"written to {RESULT}")
    return 0


def _done() -> dict[str, dict[str, list[float]]]:
    JOURNAL.parent.mkdir(exist_ok=True)
    if not JOURNAL.exists():
        return {}
    _say(f"going on with {JOURNAL}; delete it to begin again")
    whole, newline, _ = JOURNAL.read_text(encoding="utf-8").rpartition("\n")  # a last line may be cut short
    JOURNAL.write_text(whole + newline, encoding="utf-8")
    entries = [json.loads(line) for line in whole.splitlines()]
    return {entry["key"]: entry["values"] for entry in entries}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
