"""`python -m evidence.audit_models`: six models of Adult, and what own rows give away in each.

Income is the sensitive attribute, all rows of adult.data are known by their other columns; the owner's true values
count people. Forest and boosting see categories as numbers. Needs the `bench` extra for XGBoost. The random forest and
XGBoost are audited by all of their trees together.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import privet
from privet.datasets import load
from privet.errors import DataError

RESULT = Path(__file__).with_name("audit_models.json")
TARGET = "income"


def models(frame: pd.DataFrame, folder: Path) -> dict[str, Callable[[], tuple[Any, pd.DataFrame, float]]]:
    """For each model how it is grown: what is published, the table of its columns, and the share that it gets right."""
    domain = load("adult").domain
    answers = frame[TARGET]
    rows = frame.drop(columns=TARGET)
    numbers = rows.apply(lambda column: column if column.dtype.kind in "if" else pd.Series(pd.factorize(column)[0]))

    def own(classifier: Any) -> tuple[Any, pd.DataFrame, float]:
        fitted = classifier.fit(rows, answers)
        return fitted, frame, float((fitted.predict(rows) == answers).mean())

    def forest() -> tuple[Any, pd.DataFrame, float]:
        from sklearn.ensemble import RandomForestClassifier

        fitted = RandomForestClassifier(100, random_state=0).fit(numbers, answers)
        return fitted, numbers, float((fitted.predict(numbers) == answers).mean())

    def boosted() -> tuple[Any, pd.DataFrame, float]:
        from xgboost import XGBClassifier

        fitted = XGBClassifier(n_estimators=100, max_depth=6, random_state=0, n_jobs=1)
        labels = pd.factorize(answers, sort=True)[0]
        fitted.fit(numbers, labels)
        fitted.save_model(folder / "xgboost.json")
        return folder / "xgboost.json", numbers, float((fitted.predict(numbers) == labels).mean())

    return {
        "C4.5 full": lambda: own(privet.C45Classifier(domain=domain, max_depth=30, certainty=0.999)),
        "C4.5 pruned": lambda: own(privet.C45Classifier(domain=domain)),
        "random forest": forest,
        "XGBoost": boosted,
        "private tree, epsilon 1": lambda: own(privet.DiffPC45Classifier(1, criterion="gini", domain=domain)),
        "boosted tables, epsilon 1": lambda: own(privet.BoostedTablesClassifier(1, domain=domain)),
    }


def measured(model: Any, table: pd.DataFrame, answers: pd.Series[Any]) -> dict[str, Any]:
    """An audit by own rows, the verdict and the three numbers."""
    start = time.process_time()
    values = sorted(answers.unique())
    found = privet.audit(
        model,
        table,
        sensitive=TARGET,
        truth=list(answers),
        values=values,
        baseline={str(value): float(share) for value, share in answers.value_counts(normalize=True).items()},
        worlds=False,
    )
    remedy = found.verdict.remedy
    return {
        "verdict": found.verdict.kind,
        "remedy": None if remedy is None else remedy.short,
        "right before and after": None if remedy is None else [remedy.accuracy_before, remedy.accuracy],
        **{name: {key: round(number, 4) for key, number in each.items()} for name, each in found.summary.items()},
        "computed": found.own.is_computed,
        "bound": found.own.bound,
        "people": found.people.total,
        "people above the threshold": found.known if found.own.is_computed else None,
        "threshold": found.threshold,
        "settled by all trees together": dict(found.beliefs.get("all together", found.baseline).facts).get("settled"),
        "CPU seconds": round(time.process_time() - start, 1),
    }


def table(found: dict[str, Any]) -> str:
    """What docs/how-to/audit.md shows of it."""
    lines = [
        "| model | right | baseline | inference | disclosure, mean | most | people at 0.1 or more | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in found.items():
        limit = "" if row["computed"] else "at most "
        people = f"{row['people above the threshold']:,}" if row["computed"] else "bounded"
        lines.append(
            f"| {name} | {row['right']:.1%} | {row['baseline']['mean']:.3f} | {row['inference']['mean']:.3f} "
            f"| {limit}{row['disclosure']['mean']:.4f} | {limit}{row['disclosure']['most']:.3f} | {people} "
            f"| {row['verdict']}{_after(row)} |"
        )
    return "\n".join(lines)


def _after(row: dict[str, Any]) -> str:
    both = row["right before and after"]
    if both is None or None in both:
        return ""
    return f": {row['remedy'].rstrip('.')}, {both[0]:.1%} right before, {both[1]:.1%} after"


def main() -> int:
    try:
        frame = load("adult").frame.iloc[:32561].reset_index(drop=True)
    except DataError as error:
        print(error, file=sys.stderr)
        return 2
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, grow in models(frame, Path(folder)).items():
            model, people, right = grow()
            found[name] = {"right": round(right, 4), **measured(model, people, frame[TARGET])}
            print(f"{name}: {found[name]['verdict']}, {found[name]['CPU seconds']} s", file=sys.stderr)
            RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(table(found))
    print(f"wrote {RESULT}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
