"""What a run published, as named observations: the distinguisher's only view of it.

Whatever a mechanism returns is taken apart: numbers, texts, arrays, releases, whole trees
with their structure, labels and counts, and any fitted scikit-learn estimator. A run that
raises is observed as well, and so is a shape that differs from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble, Tree
from privet.release import CellGroups, Choice, Histogram, Mean, Release, ResidualSums
from privet.verification.checks import RAISED
from privet.verification.events import Observations

OUTPUT = "output"
FORM = "form"  # the column that says how an output is built: its types, its lengths, its names and their order
MESSAGE = "message"  # of the error a run ended with
MOST_NUMBERS = 48  # of one array: a longer one is observed by its length and its first numbers


def runs(run: Callable[[], Any], count: int, probe: Any = None) -> Observations:
    """Observations of `count` runs; `probe` is the row that two tables differ by, if it is known."""
    return pd.DataFrame([_one(run, probe) for _ in range(count)])


def _one(run: Callable[[], Any], probe: Any) -> dict[str, Any]:
    try:
        published = run()
    except Exception as error:  # what a mechanism raises is an output like any other
        return {RAISED: type(error).__name__, MESSAGE: str(error)[:200]}
    return {**seen(published, probe=probe), FORM: form(published)}


def form(published: Any, depth: int = 3) -> str:
    """How an output is built, without its numbers: types, lengths, names and the order of names.

    >>> form({"b": 2, "a": [1.5, 2.5]})
    'dict(b: int, a: list(float, float))'
    """
    kind = type(published).__name__
    if depth == 0 or isinstance(published, Release | Model):
        return kind
    if isinstance(published, Mapping):
        parts = [f"{name}: {form(published[name], depth - 1)}" for name in islice(published, MOST_NUMBERS)]
    elif isinstance(published, pd.DataFrame):
        parts = [f"{name}: {dtype}" for name, dtype in published.dtypes.items()][:MOST_NUMBERS]
        parts += [str(label) for label in published.index[:MOST_NUMBERS]]
    elif isinstance(published, pd.Series):
        parts = [str(published.dtype), *(str(label) for label in published.index[:MOST_NUMBERS])]
    elif isinstance(published, np.ndarray):
        parts = [str(published.dtype), str(published.shape)]
    elif isinstance(published, list | tuple):
        parts = [form(part, depth - 1) for part in published[:MOST_NUMBERS]]
    else:
        return kind
    return f"{kind}({', '.join(parts)})"


def seen(published: Any, name: str = OUTPUT, probe: Any = None) -> dict[str, Any]:
    """One publication as named numbers and texts.

    >>> seen((3, "yes"))
    {'output[0]': 3, 'output[1]': 'yes', 'length of output': 2}
    """
    if isinstance(published, Release | Model) or hasattr(published, "predict"):
        found = _of_privet(published, probe)
        if found is not None:
            return found if name == OUTPUT else {f"{key} of {name}": value for key, value in found.items()}
    if isinstance(published, Mapping):
        inside = "" if name == OUTPUT else f"{name}."
        return {key: value for word in published for key, value in seen(published[word], f"{inside}{word}").items()}
    if isinstance(published, bool | str | None):
        return {name: published}
    if isinstance(published, Real | Decimal | np.bool_):
        return {name: int(published) if isinstance(published, Integral) else float(published)}
    if isinstance(published, pd.DataFrame) and published.columns.is_unique:
        columns = [seen(published[word], f"{name}.{word}") for word in published.columns[:MOST_NUMBERS]]
        return {key: value for column in columns for key, value in column.items()}
    if isinstance(published, pd.Series) and published.index.is_unique:  # by label: the order is part of the form
        labelled = zip(published.index[:MOST_NUMBERS], published[:MOST_NUMBERS].tolist(), strict=True)
        parts = [seen(value, f"{name}[{label}]") for label, value in labelled]
        return {**{key: value for part in parts for key, value in part.items()}, f"length of {name}": len(published)}
    if isinstance(published, np.ndarray | pd.Series | pd.DataFrame):
        values = np.asarray(published)
        return seen(values.ravel().tolist(), name) if values.dtype == object else _array(values, name)
    if isinstance(published, list | tuple):
        parts = [seen(each, f"{name}[{i}]") for i, each in enumerate(published[:MOST_NUMBERS])]
        flat = islice(((key, value) for part in parts for key, value in part.items()), MOST_NUMBERS)
        return {**dict(flat), f"length of {name}": len(published)}
    return {name: repr(published)}


def _of_privet(published: Any, probe: Any) -> dict[str, Any] | None:
    """A release, a model or an estimator; None for a release that is a number."""
    if isinstance(published, Histogram):
        return _array(np.asarray(published.values), "cell")
    if isinstance(published, CellGroups):
        return {"groups": published.count, **_array(published.value, "group")}
    if isinstance(published, ResidualSums):
        own = _array(published.own, "own")
        return own if published.others is None else {**own, **_array(published.others, "others")}
    if isinstance(published, Choice):
        return {"choice": str(published), "point": None if published.point is None else float(published.point)}
    if isinstance(published, Mean):  # it publishes both parts of its quotient
        return {"deviation": float(published.deviation), "count": int(published.count)}
    published = published.model_ if isinstance(getattr(published, "model_", None), Model) else published
    if isinstance(published, Ensemble):
        return trees(published, probe)
    if isinstance(published, Tables):
        return tables(published, probe)
    if hasattr(published, "predict") and hasattr(published, "fit"):
        return estimator(published, probe)
    return None


def _array(values: NDArray[Any], name: str) -> dict[str, Any]:
    flat = values.ravel()[:MOST_NUMBERS].tolist()
    found = {f"{name}[{i}]": each for i, each in enumerate(flat)}
    return {**found, f"length of {name}": int(values.size)}


def with_low_bits(frame: Observations) -> Observations:
    """Observations with the low bits of every real number: where noise is a float, they tell what it was added to."""
    extra = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind == "f" and column.nunique() > len(column) / 5 and (column % 1 != 0).any():
            extra[f"finest bit of {name}"] = _finest_bit(column.to_numpy())
    return frame.assign(**extra)


def _finest_bit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The smallest power of two that a number is a multiple of."""
    fractions, exponents = np.frexp(np.where(np.isfinite(values), values, 0))
    whole = np.abs(fractions * 2.0**53).astype(np.int64)
    lowest = np.where(whole > 0, whole & -whole, 1)
    return np.asarray(exponents - 53 + np.log2(lowest))


# -- models -----------------------------------------------------------------------------------


def tables(published: Tables, person: Any = None) -> dict[str, Any]:
    """Which tables there are, what they begin with, and what they say about the person in question."""
    found: dict[str, Any] = {"tables": "; ".join(table.name for table in published.tables)}
    found.update({"note": published.note, **_array(np.array(published.intercept), "intercept")})
    if person is not None:
        found.update(_array(published.logits(person)[0], "their log odds"))
        for number, part in enumerate(published.contributions(person), start=1):
            found.update(_array(part[0], f"their part in table {number}"))
    return found


def trees(published: Ensemble, person: Any = None) -> dict[str, Any]:
    """Structure, labels, sizes and counts of every tree, and the path of the person in question."""
    found: dict[str, Any] = {}
    ends = published.apply(person) if person is not None else None
    for number, tree in enumerate(published.trees):
        of = f" of tree {number + 1}" if len(published.trees) > 1 else ""
        found[f"structure{of}"] = _structure(tree)
        found[f"label{of}"] = int(tree.labels[0])
        for code, count in enumerate(tree.counts[0].tolist()):
            found[f"all rows of class {code}{of}"] = count
        if ends is not None:
            found.update(_path(tree, int(ends[0, number]), of))
    for code, count in enumerate(published.prior or ()):
        found[f"prior of class {code}"] = count
    return found


def _structure(tree: Tree) -> str:
    """The splits of a tree in the order of its nodes."""
    return " ".join(
        f"{column}" if at < 0 else f"{column}<{at}" for column, at in zip(tree.column, tree.at, strict=True)
    )


def _path(tree: Tree, end: int, of: str) -> dict[str, Any]:
    """What is published about the nodes a person passes, from the last to the root."""
    found: dict[str, Any] = {f"their label{of}": int(tree.labels[end]), f"their depth{of}": int(tree.depths[end])}
    for code, count in enumerate(tree.counts[end].tolist()):
        found[f"their leaf's class {code}{of}"] = count
    node = end
    while node >= 0:
        if not np.isnan(tree.size[node]):
            found[f"their size at depth {tree.depths[node]}{of}"] = float(tree.size[node])
        node = int(tree.parents[node])
    return found


# -- other people's estimators ----------------------------------------------------------------


def estimator(fitted: Any, probes: Any = None) -> dict[str, Any]:
    """What a fitted scikit-learn estimator shows: its public numbers, and what it predicts for the rows in question."""
    found: dict[str, Any] = {}
    for name in sorted(vars(fitted)):
        value = vars(fitted)[name]
        if name.endswith("_") and not name.startswith("_"):
            found.update(_public(name, value))
    if probes is not None:
        for word in ("predict", "predict_proba"):
            if hasattr(fitted, word):
                found.update(_array(np.asarray(getattr(fitted, word)(probes)), word))
    return found


def _public(name: str, value: Any) -> dict[str, Any]:
    """Numbers of an attribute; of a tree, the arrays over its nodes; of a list of estimators, those of each."""
    if isinstance(value, bool | int | float | str | np.number):
        return {name: value}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return _array(value, name)
    if hasattr(value, "node_count"):  # a tree, scikit-learn's or one that looks like it
        arrays = {word: getattr(value, word, None) for word in ("feature", "threshold", "value")}
        known = {word: _array(np.asarray(each), f"{name}.{word}") for word, each in arrays.items() if each is not None}
        return {key: number for each in known.values() for key, number in each.items()}
    if isinstance(value, Sequence) and value and hasattr(value[0], "predict"):
        return {
            f"{name}[{i}].{key}": number for i, each in enumerate(value[:10]) for key, number in estimator(each).items()
        }
    return {}
