"""One model to look at: its text, and a histogram of the rows before and after the noise.

Rows are public or generated: what stands before the noise is counted from them, not taken from a kernel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.kernel import Domain
from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble, Leaf, cell_text
from privet.text import clean, shortened

LINES, COLUMNS, BARS, CLASSES, LABEL = 40, 100, 24, 6, 60  # at most, of each
LIMIT = 4096  # bytes of JSON

LEAVES = "Rows of each class in the leaves of the tree: counted, and as released"
NO_NOISE = ", which is the same, as it is not private"
EXPECTED = "Rows of each class{}: counted, and as the released model expects them, noise and what it cannot say alike"

Counts = NDArray[np.float64]


def model_example(model: Model, rows: pd.DataFrame) -> dict[str, Any]:
    """Plain values for a page: the model as text, and what is known of its bars before and after the noise."""
    labels, before, after, what = _leaves(model, rows) if _has_counts(model) else _expected(model, rows)
    names, before, after = _few_classes(model.domain, before, after)
    size = before.sum(axis=1)  # not what was released: of many leaves that would pick those with most noise
    there = (size > 0) | (np.abs(after).max(axis=1) > 0.05)
    largest = [int(i) for i in np.sort(np.argsort(-size, kind="stable")[:BARS]) if there[i]]
    lines = _text(model)
    found: dict[str, Any] = {
        "text": "\n".join(lines),
        "what": what,
        "classes": names,
        "bars": [[shortened(clean(labels[i]), LABEL), _plain(before[i]), _plain(after[i])] for i in largest],
        "left": int(there.sum()) - len(largest),
    }
    while len(json.dumps(found)) > LIMIT and len(lines) > 2:
        lines = [*lines[:-2], "..."]
        found["text"] = "\n".join(lines)
    return found


def _text(model: Model) -> list[str]:
    """As many levels of the first tree, or tables, as fit; that the noise of a trial is seeded is told elsewhere."""
    shown: Model = model
    if isinstance(model, Ensemble) and len(model.trees) > 1:
        shown = replace(model, trees=model.trees[:1])
    head = [model.summary] + ["tree 1:"] * (shown is not model)
    lines: list[str] = []
    for depth in (None, 4, 3, 2, 1) if isinstance(model, Ensemble) else (None,):
        lines = [line for line in shown.text(depth).splitlines()[1:] if not line.startswith("not private: ")]
        if len(head) + len(lines) <= LINES:
            break
    else:
        lines = [*lines[: LINES - len(head) - 1], "..."]
    return [shortened(clean(line), COLUMNS) for line in (*head, *lines)]


# -- before and after ---------------------------------------------------------------------------


def _has_counts(model: Model) -> bool:
    """Do the leaves of the first tree count all rows, each once? Those of a share of the rows or a bootstrap do not."""
    again = any(reason.startswith("E-1:") for reason in model.privacy.reasons)
    return isinstance(model, Ensemble) and not model.privacy.disjoint and not again and model.vote != "product"


def _leaves(model: Model, rows: pd.DataFrame) -> tuple[list[str], Counts, Counts, str]:
    assert isinstance(model, Ensemble)
    tree, codes = model.trees[0], _classes(model.domain, rows)
    ends = replace(model, trees=(tree,)).apply(rows)[:, 0]
    visits = [visit for visit in tree.walk() if isinstance(visit.node, Leaf)]
    numbers = [visit.number for visit in visits]
    counts = _counted(ends, codes, len(tree), len(model.domain.classes))
    labels = [", ".join(visit.path) or "all rows" for visit in visits]
    what = LEAVES + (" with noise" if tree.deviation.any() else NO_NOISE)
    return labels, counts[numbers], np.asarray(tree.counts[numbers]), what


def _expected(model: Model, rows: pd.DataFrame) -> tuple[list[str], Counts, Counts, str]:
    """By the cells of the attribute that moves predictions most: a row counts as the shares it is given."""
    name, codes = _strongest(model), _classes(model.domain, rows)
    shares = model.predict_proba(rows)
    if name is None:
        labels, cells = ["all rows"], np.zeros(len(rows), dtype=np.int64)
    else:
        column = model.domain[name]
        labels, cells = [cell_text(name, label) for label in column.labels], np.asarray(column.encode(rows[name]))
    before = _counted(cells, codes, len(labels), shares.shape[1])
    after = np.zeros_like(before)
    np.add.at(after, cells[cells >= 0], shares[cells >= 0])
    return labels, before, after, EXPECTED.format(f" by {shortened(clean(name), LABEL)}" if name else "")


def _strongest(model: Model) -> str | None:
    if isinstance(model, Ensemble):
        root = model.trees[0].root
        return None if isinstance(root, Leaf) else root.attribute
    if isinstance(model, Tables) and model.tables:
        return max(model.importance.items(), key=lambda found: found[1])[0]
    return None


def _classes(domain: Domain, rows: pd.DataFrame) -> NDArray[Any]:
    return np.asarray(domain.target_column.encode(rows[domain.target_column.name]))


def _counted(cells: NDArray[Any], codes: NDArray[Any], many: int, classes: int) -> Counts:
    inside = (cells >= 0) & (codes >= 0)
    flat = np.bincount(cells[inside] * classes + codes[inside], minlength=many * classes)
    return np.asarray(flat.reshape(many, classes), dtype=np.float64)


def _few_classes(domain: Domain, before: Counts, after: Counts) -> tuple[list[str], Counts, Counts]:
    """Of many classes the largest, and the others as one."""
    names = [shortened(clean(text), 24) for text in domain.target_column.texts]
    if len(names) <= CLASSES:
        return names, before, after
    order = np.argsort(-before.sum(axis=0), kind="stable")
    first, others = order[: CLASSES - 1], order[CLASSES - 1 :]

    def folded(counts: Counts) -> Counts:
        return np.column_stack([counts[:, first], counts[:, others].sum(axis=1)])

    return [*(names[i] for i in first), f"{len(others)} others"], folded(before), folded(after)


def _plain(counts: Sequence[float] | Counts) -> list[int | float]:
    rounded = [round(float(count), 1 if abs(count) < 100 else 0) + 0.0 for count in counts]
    return [int(count) if count.is_integer() else count for count in rounded]
