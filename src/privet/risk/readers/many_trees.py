"""Forests and boosted trees of scikit-learn, XGBoost (`save_model` as JSON) and LightGBM (`dump_model`).

Every tree of a forest counts its rows. A boosted tree prints weights, and they count too: a leaf's weight is
-G / (H + lambda), with G the sum over its rows of p - y. Whoever has the model and everybody's attributes knows each p
from the trees before, so that each leaf of each tree tells how many of its people have y = 1. Whole numbers confirm it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import ModelError
from privet.kernel import DEEPEST_TREE, number_of
from privet.risk.several import View, left_out
from privet.risk.tree import Floats, Integers, Mask, Values

SAMPLED = "its rows were sampled or weighted, or its settings are other than usual, so that its leaves tell no counts"
WHOLE = 0.05  # how far a count may be from a whole number: weights are printed with 32 bits
MOST_TREES = 10_000
FARTHEST = float(np.finfo(np.float32).max)  # of a threshold
LARGEST = 1e6  # of a weight: odds of e to that are beyond all floating numbers
DAMAGED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


# -- forests ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted forest: every tree counts rows, each as often as it was drawn for it.

    Which rows were drawn follows from the seeds that the fitted object holds, if its rows are in the order of the
    table; that is taken to be known.
    """

    estimator: Any = field(repr=False)
    values: tuple[str, ...]
    columns: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def summary(self) -> str:
        """What it consists of."""
        return f"{len(self.estimator.estimators_)} trees"

    def views(self, frame: pd.DataFrame) -> list[View]:
        """The counts of every tree."""
        rows = np.column_stack([_numbers(frame, name) for name in self.columns]).astype(np.float32)
        drawn = self.estimator.estimators_samples_ if self.estimator.bootstrap else None
        found = []
        for number, grown in enumerate(self.estimator.estimators_):
            tree = grown.tree_
            times = None if drawn is None else np.bincount(drawn[number], minlength=len(frame)).astype(np.float64)
            if times is not None and len(times) > len(frame):
                raise ModelError("the forest was grown on more rows than the table has; give the rows it was grown on.")
            weights = tree.value[:, 0, :] * tree.weighted_n_node_samples[:, None]
            totals = np.zeros((tree.node_count, len(self.values)))
            totals[:, self.places] = weights
            view = View(tree.apply(rows).astype(np.int64), totals, times)
            leaf = tree.children_left < 0
            people = np.bincount(view.at, view.weight, minlength=tree.node_count)
            if (np.abs(totals - np.rint(totals)) > WHOLE)[leaf].any() or (np.abs(totals.sum(axis=1) - people) > WHOLE)[
                leaf
            ].any():
                raise ModelError(f"tree {number} of the forest does not fit the table: {SAMPLED}.")
            found.append(View(view.group, np.where(leaf[:, None], np.rint(totals), 0.0), times))
        return found

    def without(self, frame: pd.DataFrame, views: Sequence[View], baseline: Floats) -> Floats:
        """What the trees say without the own row [person, value]."""
        return left_out(views, baseline)


def forest(estimator: Any, values: Sequence[object] | None) -> Forest:
    """A fitted RandomForestClassifier or ExtraTreesClassifier."""
    if not hasattr(estimator, "estimators_"):
        raise ModelError(f"the {type(estimator).__name__} is not fitted; fit it before it is audited.")
    if estimator.n_outputs_ > 1:
        raise ModelError("the forest predicts several columns at once; fit it on the sensitive one alone.")
    if estimator.class_weight is not None:
        raise ModelError(f"the forest cannot be audited: {SAMPLED}.")
    classes = [value.item() if isinstance(value, np.generic) else value for value in estimator.classes_]
    public = Values.of(classes if values is None else values)
    return Forest(estimator, public.texts, _names(estimator), tuple(public.number(value) for value in classes))


# -- boosting -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoostingStep:
    """A tree of boosting: the leaf of each row, and what a leaf adds to log odds, its weight times the rate."""

    leaf: Callable[[Floats], Integers]  # of rows [row, column]
    added: Floats


@dataclass(frozen=True, eq=False)
class Boosted:
    """Boosted trees for two values by the logistic loss, every tree grown on all rows."""

    steps: tuple[BoostingStep, ...]
    starts: tuple[float, ...]  # log odds that boosting may have begun with
    settings: tuple[tuple[float, float], ...]  # lambdas that it may have been grown with, and the learning rates then
    values: tuple[str, ...]
    columns: tuple[str, ...]
    source: str

    @property
    def summary(self) -> str:
        """What it consists of."""
        return f"{len(self.steps)} boosted trees of {self.source}"

    def views(self, frame: pd.DataFrame) -> list[View]:
        """How many people of each leaf of each tree have the second value."""
        return self._grown(self._rows(frame))[0]

    def _grown(self, rows: Floats) -> tuple[list[View], float, float, float]:
        """The views, and the start, lambda and learning rate by which leaves count whole people."""
        for start in self.starts:
            for ridge, rate in self.settings:
                found = self._counted(rows, start, ridge, rate)
                if found is not None:
                    return found, start, ridge, rate
        raise ModelError(f"the leaves of {self.source} do not count the people of the table: {SAMPLED}.")

    def _rows(self, frame: pd.DataFrame) -> Floats:
        return np.column_stack([_numbers(frame, name) for name in self.columns])

    def _chances(self, rows: Floats, start: float) -> Iterator[tuple[BoostingStep, Integers, Floats]]:
        """Step by step the leaf of each row, and how likely the second value was to the steps before."""
        margin = np.full(len(rows), start)
        for step in self.steps:
            leaf = step.leaf(rows)
            yield step, leaf, 1 / (1 + np.exp(-np.clip(margin, -700, 700)))
            margin = margin + step.added[leaf]

    def _counted(self, rows: Floats, start: float, ridge: float, rate: float) -> list[View] | None:
        found = []
        for step, leaf, p in self._chances(rows, start):
            many = len(step.added)
            size = np.bincount(leaf, minlength=many)
            curvature = np.bincount(leaf, p * (1 - p), minlength=many)
            positive = np.bincount(leaf, p, minlength=many) + step.added / rate * (curvature + ridge)
            whole = np.rint(positive)
            loose = WHOLE + 1e-5 * size  # 32 bits of a sum of so many
            if ((np.abs(positive - whole) > loose) | (whole < 0) | (whole > size))[size > 0].any():
                return None
            found.append(View(leaf, np.stack([size - whole, whole], axis=1).astype(np.float64)))
        return found

    def without(self, frame: pd.DataFrame, views: Sequence[View], baseline: Floats) -> Floats:
        """What the leaves say without the own row, or what the model then predicts, if that is more [person, value].

        What a row changed in other people's later gradients is left as it is: an influence of second order.
        """
        rows = self._rows(frame)
        _, start, ridge, rate = self._grown(rows)
        less = np.full((2, len(rows)), start)
        for step, leaf, p in self._chances(rows, start):
            own = p * (1 - p)
            curvature = np.bincount(leaf, own, minlength=len(step.added))[leaf] + ridge
            for value in (0, 1):
                pull = step.added[leaf] / rate * curvature - (value - p)
                less[value] += rate * pull / np.maximum(curvature - own, 1e-9)
        chance = 1 / (1 + np.exp(-np.clip(less, -60, 60)))
        return np.asarray(np.maximum(left_out(views, baseline), np.stack([1 - chance[0], chance[1]], axis=1)))


def gradient_boosting(estimator: Any, values: Sequence[object] | None) -> Boosted:
    """A fitted GradientBoostingClassifier of scikit-learn with two classes."""
    if not hasattr(estimator, "estimators_"):
        raise ModelError(f"the {type(estimator).__name__} is not fitted; fit it before it is audited.")
    if len(estimator.classes_) != 2 or estimator.loss != "log_loss" or estimator.subsample != 1.0:
        raise ModelError("boosted trees are audited with two classes, the logistic loss and all rows in every tree.")
    public = Values.of([_item(value) for value in estimator.classes_] if values is None else values)
    steps = []
    for (grown,) in estimator.estimators_:
        tree = grown.tree_
        added = np.where(tree.children_left < 0, tree.value[:, 0, 0], 0.0) * estimator.learning_rate
        leaf = lambda rows, tree=tree: tree.apply(rows.astype(np.float32)).astype(np.int64)  # noqa: E731
        steps.append(BoostingStep(leaf, added))
    prior = float(estimator.init_.class_prior_[1]) if hasattr(estimator.init_, "class_prior_") else 0.5
    ordered = _ordered(public, [_item(value) for value in estimator.classes_])
    names = _names(estimator)
    settings = ((0.0, float(estimator.learning_rate)),)
    return Boosted(tuple(steps), (_logit(prior),), settings, ordered, names, "scikit-learn")


def xgboost(model: Any, values: Sequence[object] | None) -> Boosted:
    """What `save_model` of XGBoost wrote as JSON; `values` are the public values of labels 0 and 1."""
    try:
        learner = model["learner"]
        objective = learner["objective"]["name"]
        if objective not in ("binary:logistic", "binary:logitraw") or learner["gradient_booster"]["name"] != "gbtree":
            raise ModelError(f"of XGBoost, trees by binary:logistic are audited, not '{str(objective)[:60]}'.")
        columns = tuple(map(str, learner.get("feature_names") or ()))
        columns = columns or tuple(f"feature_{at}" for at in range(int(learner["learner_model_param"]["num_feature"])))
        base = float(str(learner["learner_model_param"]["base_score"]).strip("[]"))
        trees = learner["gradient_booster"]["model"]["trees"]
        steps = tuple(_xgboost_step(tree, len(columns)) for tree in trees[:MOST_TREES])
        settings = tuple((ridge, rate) for ridge in (1.0, 0.0) if (rate := _rate(trees, ridge)) is not None)
    except ModelError:
        raise
    except DAMAGED as error:
        raise ModelError(
            f"the JSON is no model of XGBoost ({type(error).__name__}); write it with save_model."
        ) from None
    if not steps:
        raise ModelError("the model of XGBoost has no trees.")
    public = Values.of(["0", "1"] if values is None else values)
    if len(public) != 2:
        raise ModelError("the model of XGBoost predicts two values; list two, that of label 0 first.")
    base = min(max(base, 1e-7), 1 - 1e-7) if math.isfinite(base) else 0.5
    return Boosted(steps, (_logit(base), 0.0), settings or ((1.0, 0.3),), public.texts, columns, "XGBoost")


def _rate(trees: Sequence[Any], ridge: float) -> float | None:
    """The learning rate, which the file does not hold: a split's gain is that of weights, and leaves print less.

    Of a node with two leaves a, b: gain = (a^2 A + b^2 B - (a A + b B)^2 / (C + lambda)) / rate^2, where A, B are their
    curvatures plus lambda and C is the node's.
    """
    found = []
    for tree in trees[:20]:
        left, right, printed = tree["left_children"], tree["right_children"], tree["split_conditions"]
        curvature, gains = tree["sum_hessian"], tree["loss_changes"]
        for node, (one, other) in enumerate(zip(left, right, strict=True)):
            if one < 0 or left[one] >= 0 or left[other] >= 0 or gains[node] <= 1e-3:
                continue
            a, b = float(printed[one]), float(printed[other])
            whole, first, second = (float(curvature[each]) + ridge for each in (node, one, other))
            square = (a * a * first + b * b * second - (a * first + b * second) ** 2 / whole) / float(gains[node])
            if square > 0:
                found.append(math.sqrt(square))
    return round(float(np.median(found)), 6) if found else None


def _xgboost_step(tree: dict[str, Any], columns: int) -> BoostingStep:
    left, right = (np.array(tree[name], dtype=np.int64) for name in ("left_children", "right_children"))
    column = np.array(tree["split_indices"], dtype=np.int64)
    cut = np.array(tree["split_conditions"], dtype=np.float64)
    missing_left = np.array(tree["default_left"], dtype=bool)
    if any(tree.get("split_type", ())):
        raise ModelError("the model divides categories, which is not read; encode them as numbers before fitting.")
    is_leaf = left < 0
    _check_arrays(left, right, column, columns, cut, missing_left, np.where(is_leaf, cut, 0.0))
    cut = cut.astype(np.float32)

    def below(rows: Floats, node: Integers) -> Integers:
        numbers = rows[np.arange(len(rows)), column[node]].astype(np.float32)
        goes = np.where(np.isnan(numbers), missing_left[node], numbers < cut[node])
        return np.where(goes, left[node], right[node])

    return BoostingStep(_walk(below, is_leaf), np.where(is_leaf, cut, 0.0).astype(np.float64))


def lightgbm(model: Any, values: Sequence[object] | None) -> Boosted:
    """What `dump_model` of LightGBM gives; `values` are the public values of labels 0 and 1."""
    try:
        if not str(model["objective"]).startswith("binary"):
            raise ModelError(f"of LightGBM, trees of the objective binary are audited, not '{model['objective']}'.")
        columns = tuple(map(str, model["feature_names"]))
        trees = model["tree_info"]
        rates = [float(tree["shrinkage"]) for tree in trees]
        start = float(trees[0]["tree_structure"]["internal_value"])
        rate = rates[1] if len(rates) > 1 else 0.1  # the first tree holds the start too, and its rate is lost
        steps = [
            _lightgbm_step(tree["tree_structure"], 0.0 if at else start, len(columns))
            for at, tree in enumerate(trees[:MOST_TREES])
        ]
    except ModelError:
        raise
    except DAMAGED as error:
        raise ModelError(f"the JSON is no model of LightGBM ({type(error).__name__}); write dump_model's.") from None
    public = Values.of(["0", "1"] if values is None else values)
    if len(public) != 2:
        raise ModelError("the model of LightGBM predicts two values; list two, that of label 0 first.")
    settings = ((0.0, rate), (1.0, rate))
    return Boosted(tuple(steps), (start,), settings, public.texts, columns, "LightGBM")


def _lightgbm_step(root: dict[str, Any], start: float, columns: int) -> BoostingStep:
    left: list[int] = []
    right: list[int] = []
    column, cuts, added, missing = [], [], [], []
    waiting: list[tuple[dict[str, Any], int, bool]] = [(root, -1, False)]
    while waiting:
        node, above, is_left = waiting.pop()
        here = len(left)
        if above >= 0:
            (left if is_left else right)[above] = here
        is_leaf = "leaf_value" in node
        if not is_leaf and node["decision_type"] != "<=":
            raise ModelError("the model divides categories, which is not read; encode them as numbers before fitting.")
        left.append(-1)
        right.append(-1)
        column.append(0 if is_leaf else int(node["split_feature"]))
        cuts.append(0.0 if is_leaf else float(node["threshold"]))
        missing.append(bool(node.get("default_left", True)))
        added.append(float(node["leaf_value"]) - start if is_leaf else 0.0)
        if not is_leaf:
            waiting += [(node["right_child"], here, False), (node["left_child"], here, True)]
    lefts, rights, at = (np.array(each, dtype=np.int64) for each in (left, right, column))
    cut, goes_left, values = np.array(cuts), np.array(missing), np.array(added)
    _check_arrays(lefts, rights, at, columns, cut, goes_left, values)

    def below(rows: Floats, node: Integers) -> Integers:
        numbers = rows[np.arange(len(rows)), at[node]]
        goes = np.where(np.isnan(numbers), goes_left[node], numbers <= cut[node])
        return np.where(goes, lefts[node], rights[node])

    return BoostingStep(_walk(below, lefts < 0), values)


def _walk(below: Callable[[Floats, Integers], Integers], is_leaf: Any) -> Callable[[Floats], Integers]:
    """From the root to the leaf of each row."""

    def leaf(rows: Floats) -> Integers:
        node = np.zeros(len(rows), dtype=np.int64)
        for _ in range(DEEPEST_TREE):
            inner = np.flatnonzero(~is_leaf[node])
            if not len(inner):
                return node
            node[inner] = below(rows[inner], node[inner])
        raise ModelError(f"a tree has more than {DEEPEST_TREE} levels, or its nodes do not form a tree.")

    return leaf


def _check_arrays(
    left: Integers, right: Integers, column: Integers, columns: int, cut: Floats, missing: Mask, added: Floats
) -> None:
    """Refuse children that are no later nodes, columns that there are not, and weights that are none."""
    size, inner = len(left), left >= 0
    here = np.arange(size)
    arrays = (left, right, column, cut, missing, added)
    if not size or any(each.shape != (size,) for each in arrays) or ((right >= 0) != inner).any():
        raise ModelError("the nodes of a boosted tree do not form a tree; the file may be cut short.")
    for child in (left, right):
        if ((child >= size) | (child <= here))[inner].any():
            raise ModelError("the nodes of a boosted tree do not form a tree; the file may be cut short.")
    if ((column < 0) | (column >= columns))[inner].any():
        raise ModelError("a boosted tree looks at a column that it does not name; the file may be cut short.")
    if not (np.abs(added) < LARGEST).all() or not (np.abs(cut) < FARTHEST).all():
        raise ModelError("a boosted tree has weights or thresholds that are no numbers of their kind.")


ManyTrees = Forest | Boosted  # a model of several trees: what each tells, and what follows without an own row


def from_json(text: str, values: Sequence[object] | None) -> Boosted | None:
    """A model of XGBoost or LightGBM; None if the JSON is of something else."""
    try:
        model = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(model, dict) and isinstance(model.get("learner"), dict):
        return xgboost(model, values)
    if isinstance(model, dict) and isinstance(model.get("tree_info"), list):
        return lightgbm(model, values)
    return None


def _numbers(frame: pd.DataFrame, name: str) -> Floats:
    if name not in frame.columns:
        raise ModelError(f"the model looks at '{name}', which is not among the columns of the table.")
    return np.array([math.nan if (number := number_of(value)) is None else number for value in frame[name]])


def _names(estimator: Any) -> tuple[str, ...]:
    known = getattr(estimator, "feature_names_in_", None)
    return (
        tuple(map(str, known)) if known is not None else tuple(f"feature_{i}" for i in range(estimator.n_features_in_))
    )


def _ordered(public: Values, classes: Sequence[object]) -> tuple[str, ...]:
    """The two values in the order of the classes."""
    places = [public.number(value) for value in classes]
    return tuple(public.texts[place] for place in places)


def _item(value: Any) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _logit(p: float) -> float:
    return math.log(p / (1 - p))
