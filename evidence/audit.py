"""`python -m evidence.audit`: Zhu and Du's experiment on Adult again, tree by tree, with what it takes.

Education is the sensitive attribute, 30162 complete rows of adult.data, 4480 profiles of eight quasi-identifiers. Each
tree is audited in a process of its own, on one thread; constraints are evaluated once more on the whole table.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import privet
from privet.errors import DataError
from privet.studies.memory import peak

RESULT = Path(__file__).with_name("audit.json")


def measured(tree: str, qi: str, sensitive: str) -> dict[str, Any]:
    """One audit: what it found, how well constraints are met on the whole table, and what it took."""
    from privet.risk.constraints import choices_of

    asked: dict[str, Any] = {"sensitive": sensitive, "truth": qi, "published": "rates", "measure": "posterior"}
    start = time.process_time()
    alone = privet.audit(tree, qi, criterion="none", remedies=False, worlds=False, **asked).overall["maximum entropy"]
    between = time.process_time()
    found = privet.audit(tree, qi, remedies=False, worlds=False, **asked)
    end = time.process_time()
    publication, belief = found.publication, found.beliefs["maximum entropy"]
    assert publication is not None and found.counted is not None
    masses = belief.shares * found.people.sizes[:, None]
    gaps = [gap for choice in choices_of(publication) for _, gap in choice.gaps(masses)]
    rates = [
        abs(masses[publication.profiles[leaf], publication.label(leaf)].sum() / publication.sizes[leaf] - share)
        for leaf in publication.leaves
        for share in [publication.share(leaf)]
    ]
    disclosed = found.overall["maximum entropy"]
    return {
        "leaves": len(publication.leaves),
        "internal constraints": found.counted.internal,
        "uniform": found.overall["uniform"].overall,
        "marginal": found.overall["marginal"].overall,
        "D without internal constraints": alone.overall,
        "D": disclosed.overall,
        "D floored": disclosed.overall_floored,
        "entropy": disclosed.entropy,
        "worst violation": max(0.0, -min(gaps)),
        "worst rate": float(max(rates)),
        "worst sum": float(np.abs(belief.shares.sum(axis=1) - 1).max()),
        "facts": dict(belief.facts),
        "CPU seconds without internal constraints": between - start,
        "CPU seconds": end - between,
        "peak GB": peak(),
    }


def table(found: dict[str, Any]) -> str:
    """What docs/how-to/audit.md shows of it."""
    first = next(iter(found.values()))
    lines = [
        "| tree | leaves | internal constraints | D without them | D | D, floor 1e-4 | entropy | worst broken "
        "| CPU s | GB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        lines.append(
            f"| {name} | {row['leaves']} | {row['internal constraints']} | {row['D without internal constraints']:.4f} "
            f"| {row['D']:.4f} | {row['D floored']:.4f} | {row['entropy']:.4f} | {row['worst violation']:.1e} "
            f"| {row['CPU seconds']:.1f} | {row['peak GB']:.2f} |"
        )
    lines += ["", f"Uniform {first['uniform']:.4f}, marginal alone {first['marginal']:.4f}."]
    return "\n".join(lines)


def main() -> int:
    from privet.studies.adult_trees import SENSITIVE, TREES, grown, rows  # no audit loads what grows trees

    try:
        frame = rows()
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    found: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        qi = Path(folder) / "adult.csv"
        frame.to_csv(qi, index=False)
        for name, choices in TREES.items():
            tree = Path(folder) / "tree.json"
            grown(frame, choices).save(tree)
            with ProcessPoolExecutor(1, mp_context=context) as alone:
                found[name] = alone.submit(measured, str(tree), str(qi), SENSITIVE).result()
            print(f"{name}: {found[name]['CPU seconds']:.1f} s, D {found[name]['D']:.4f}", file=sys.stderr)
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(table(found))
    print(f"wrote {RESULT}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
