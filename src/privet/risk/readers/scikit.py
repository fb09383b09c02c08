"""Trees of scikit-learn: fitted ones, and what `export_text` printed of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from privet.errors import ModelError
from privet.kernel import MOST_ROWS, number_of, text_of
from privet.risk.readers.text_lines import UNSAID, Line, numbered, parents
from privet.risk.tree import (
    ENTROPY,
    GINI,
    SCIKIT,
    Above,
    AtMost,
    Condition,
    Mask,
    Node,
    PublishedTree,
    Stopping,
    Values,
    rising,
)

WEIGHTED = "its rows were weighted, so its numbers are no counts and its choices compare weights"

CRITERIA = {"gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY}


@dataclass(frozen=True)
class AtMostOrMissing(AtMost):
    """Rows whose number is at most a threshold, and those that have none."""

    def holds(self, values: Sequence[object]) -> Mask:
        return super().holds(values) | _missing(values)


@dataclass(frozen=True)
class AboveOrMissing(Above):
    """Rows whose number is above a threshold, and those that have none."""

    def holds(self, values: Sequence[object]) -> Mask:
        return super().holds(values) | _missing(values)


def _missing(values: Sequence[object]) -> Mask:
    return np.array([text_of(value) is None for value in values], dtype=np.bool_)


# -- a fitted tree ----------------------------------------------------------------------------


def published(estimator: Any, values: Sequence[object] | None = None) -> PublishedTree:
    """A fitted DecisionTreeClassifier as whoever gets the object sees it: counts in every leaf.

    Rows without a number go where the tree sends them. Of weighted rows the leaves say weights; which counts follow
    from them is found when the people are known.
    """
    if not hasattr(estimator, "tree_"):
        raise ModelError(f"the {type(estimator).__name__} is not fitted; fit it before it is audited.")
    tree = estimator.tree_
    if tree.n_outputs > 1:
        raise ModelError("the tree predicts several columns at once; fit it on the sensitive one alone.")
    classes = [value.item() if isinstance(value, np.generic) else value for value in estimator.classes_]
    public = Values.of(classes if values is None else values)
    places = [public.number(value) for value in classes]
    is_weighted = estimator.class_weight is not None or (tree.weighted_n_node_samples != tree.n_node_samples).any()
    counts = np.zeros((tree.node_count, len(public)))
    counts[:, places] = np.rint(tree.value[:, 0, :] * tree.n_node_samples[:, None])
    names = _names(estimator)
    nodes = [Node()] * tree.node_count
    for number, condition, parent in _conditions(tree, names):
        nodes[number] = Node(parent, condition)
    for leaf in np.flatnonzero(tree.children_left < 0).tolist():
        label = places[int(np.argmax(tree.value[leaf, 0]))]
        if is_weighted:
            weights = np.zeros(len(public))
            weights[places] = tree.value[leaf, 0] * tree.weighted_n_node_samples[leaf]
            rows = float(tree.n_node_samples[leaf])
            nodes[leaf] = replace(nodes[leaf], label=label, size=rows, weights=tuple(weights.tolist()))
        else:
            nodes[leaf] = replace(nodes[leaf], label=label, counts=tuple(counts[leaf].tolist()))
    silent = WEIGHTED if is_weighted else _why_silent(estimator)
    return PublishedTree(
        tuple(nodes),
        public.texts,
        SCIKIT,
        criterion=None if silent else CRITERIA[estimator.criterion],
        silent=silent,
        features=names,
        order=_order_of(places, len(public)),
        stopping=_stopping(estimator, is_weighted),
        pruned=_why_pruned(estimator, is_weighted),
        model=estimator,
    )


def _order_of(places: Sequence[int], values: int) -> tuple[int, ...]:
    """The rank of each public value among the classes; those that the tree does not know come last."""
    rank = {place: at for at, place in enumerate(places)}
    return tuple(rank.get(value, len(places) + value) for value in range(values))


def _why_pruned(estimator: Any, is_weighted: bool) -> str:
    """Why rows that were not divided tell something of their values besides; empty if they do not."""
    unset: dict[str, str | int | None] = {
        "min_impurity_decrease": 0,
        "ccp_alpha": 0,
        "max_leaf_nodes": None,
        "monotonic_cst": None,
    }
    if not _tries_all(estimator):
        unset |= {"min_samples_leaf": 1, "min_weight_fraction_leaf": 0, "splitter": "best"}
    if is_weighted:
        unset["min_weight_fraction_leaf"] = 0
    name = next((name for name, default in unset.items() if getattr(estimator, name) != default), None)
    if name is None:
        return ""
    setting = shown if isinstance(shown := getattr(estimator, name), str | int | float) else "set"
    return f"with {name} = {setting} rows that were not divided tell something of their values"


def _tries_all(estimator: Any) -> bool:
    """Is every threshold of every column tried? Else one with enough rows on either side may be missed."""
    return _BEST["splitter"](estimator) and _BEST["max_features"](estimator)


def _stopping(estimator: Any, is_weighted: bool) -> Stopping | None:
    """Where it stops dividing rows of several values; None where other settings stop it, or prune."""
    unset = {"min_impurity_decrease": 0, "ccp_alpha": 0, **({"min_weight_fraction_leaf": 0} if is_weighted else {})}
    if any(getattr(estimator, name) != default for name, default in unset.items()):
        return None
    if estimator.max_leaf_nodes is not None or estimator.monotonic_cst is not None:
        return None
    rows, fewest, least = (
        int(estimator.tree_.n_node_samples[0]),
        estimator.min_samples_split,
        estimator.min_samples_leaf,
    )
    if not isinstance(fewest, Integral):  # of numpy too, as searches over settings give them
        fewest = max(2, math.ceil(fewest * rows))
    if not isinstance(least, Integral):
        least = math.ceil(least * rows)
    least = max(least, math.ceil(estimator.min_weight_fraction_leaf * rows))
    if least > 1 and not _tries_all(estimator):
        return None
    return Stopping(estimator.max_depth, fewest, least, not _BEST["splitter"](estimator))


def _names(estimator: Any) -> tuple[str, ...]:
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return tuple(f"feature_{number}" for number in range(estimator.n_features_in_))
    return tuple(map(str, known))


def _conditions(tree: Any, names: Sequence[str]) -> Iterator[tuple[int, Condition, int]]:
    """Every node but the root, the condition under which rows come to it, and its parent."""
    for parent in np.flatnonzero(tree.children_left >= 0).tolist():
        name, threshold = names[int(tree.feature[parent])], float(tree.threshold[parent])
        missing_left = bool(tree.missing_go_to_left[parent])
        below = AtMostOrMissing if missing_left else AtMost
        above = Above if missing_left else AboveOrMissing
        yield int(tree.children_left[parent]), below(name, threshold, single=True), parent
        yield int(tree.children_right[parent]), above(name, threshold, single=True), parent


# what each setting must be for every split to be the best of its node
_BEST: dict[str, Callable[[Any], bool]] = {
    "criterion": lambda e: isinstance(e.criterion, str) and e.criterion in CRITERIA,
    "splitter": lambda e: e.splitter == "best",
    "max_features": lambda e: e.max_features_ == e.n_features_in_,
    "min_samples_leaf": lambda e: e.min_samples_leaf == 1,
    "min_weight_fraction_leaf": lambda e: e.min_weight_fraction_leaf == 0,
    "min_impurity_decrease": lambda e: e.min_impurity_decrease == 0,
    "ccp_alpha": lambda e: e.ccp_alpha == 0,
    "monotonic_cst": lambda e: e.monotonic_cst is None,
}


def _why_silent(estimator: Any) -> str:
    """Why its choices are not known to be the best ones by gini or entropy; empty if they are."""
    for name, is_best in _BEST.items():
        if not is_best(estimator):
            setting = shown if isinstance(shown := getattr(estimator, name), str | int | float) else "set"
            return f"with {name} = {setting} a split need not be the best of its node by gini or entropy"
    return ""


# -- a text -----------------------------------------------------------------------------------

_LINE = re.compile(r"(?P<bars>(?:\|[ \t]+)*)\|-+ (?P<text>.*)")
_TEST = re.compile(r"(?P<name>.*) (?P<sign><=|> ) (?P<threshold>[^ ]+)")
_LEAF = re.compile(r"(?:weights: \[(?P<weights>[-+.,eE0-9 ]*)\] )?class: (?P<label>.*)")
_CUT = re.compile(r"truncated branch of depth [0-9]+")


def is_export(text: str) -> bool:
    """Does a text look like `export_text` wrote it?"""
    return any(_LINE.fullmatch(line) for _, line in numbered(text))


@dataclass(frozen=True)
class _Leaf:
    line: Line
    label: str
    weights: tuple[float, ...] | None


def parse(text: str, values: Sequence[object] | None = None) -> PublishedTree:
    """The tree of a text by `export_text`; what is wrong with it is said with its line.

    The text rounds thresholds, to two decimals unless told otherwise: a row on the edge may be in another leaf than
    the tree put it. Weights are of the classes as scikit-learn sorts them, and are counts where all of them are whole.
    Without `values` those are taken that some leaf predicts, which may not be all.

    >>> tree = parse("|--- age <= 30.50\\n|   |--- class: no\\n|--- age >  30.50\\n|   |--- class: yes")
    >>> [(tree.where(leaf), tree.values[tree.nodes[leaf].label]) for leaf in tree.leaves]
    [('age <= 30.5', 'no'), ('age > 30.5', 'yes')]
    """
    lines = [_line(number, line) for number, line in numbered(text)]
    if not lines:
        raise ModelError("the text contains no tree; it may be cut short.")
    above = parents(lines)
    splits = set(above)
    said = [_condition(line) if position in splits else _leaf(line) for position, line in enumerate(lines)]
    _check_families(lines, above, said)
    nodes, leaves = [Node(line=lines[0].number)], {}
    number_at = {-1: 0}  # the node of each line
    for position, (line, content) in enumerate(zip(lines, said, strict=True)):
        parent = number_at[above[position]]
        if isinstance(content, _Leaf):
            leaves[parent] = content
        else:
            number_at[position] = len(nodes)
            nodes.append(Node(parent, content, line=line.number))
    public = Values.seen(leaf.label for leaf in leaves.values()) if values is None else Values.of(values)
    for leaf in leaves.values():
        if public.find(leaf.label) is None:
            raise leaf.line.fault(public.unknown(leaf.label))
    numbers, is_weighted, order = _weights(list(leaves.values()), public)
    for number, leaf, own in zip(leaves, leaves.values(), numbers, strict=True):
        nodes[number] = replace(
            nodes[number],
            label=public.number(leaf.label),
            counts=None if is_weighted else own,
            weights=own if is_weighted else None,
        )
    tree = PublishedTree(
        tuple(nodes),
        public.texts,
        SCIKIT,
        silent=WEIGHTED if is_weighted else UNSAID,
        order=_order_of(order, len(public)),
    )
    # the text does not say how it was grown: as scikit-learn does unless told otherwise, but perhaps for a depth
    return replace(tree, stopping=Stopping(tree.depth, is_assumed=True))


def _line(number: int, text: str) -> Line:
    found = _LINE.fullmatch(text)
    if found is None:
        raise Line(number, 0, text).fault("expected a line of export_text, like '|--- age <= 30.50'.")
    return Line(number, found["bars"].count("|"), found["text"])


def _condition(line: Line) -> Condition:
    found = _TEST.fullmatch(line.text)
    threshold = None if found is None else number_of(found["threshold"])
    if found is not None and found["threshold"] in ("inf", "-inf"):
        raise line.fault("it divides by missing values, and a text does not say where they go; give the fitted tree.")
    if found is None or threshold is None or not math.isfinite(threshold):
        raise line.fault("expected a test like 'age <= 30.50' or 'age >  30.50'.")
    return (AtMost if found["sign"] == "<=" else Above)(found["name"], threshold)


def _leaf(line: Line) -> _Leaf:
    if _CUT.fullmatch(line.text):
        raise line.fault("the text leaves out what is below; export it with a larger max_depth.")
    found = _LEAF.fullmatch(line.text)
    if found is None:
        if line.text.startswith("value: "):
            raise line.fault("the tree predicts numbers, not the values of a sensitive attribute.")
        raise line.fault("expected a leaf like 'class: yes' or 'weights: [3.00, 1.00] class: yes', or lines below it.")
    if found["weights"] is None:
        return _Leaf(line, found["label"], None)
    weights = [number_of(weight) for weight in found["weights"].split(",")]
    if any(weight is None or not 0 <= weight < MOST_ROWS for weight in weights):
        raise line.fault(f"expected weights that are numbers of at least 0 and below {MOST_ROWS}.")
    return _Leaf(line, found["label"], tuple(weight for weight in weights if weight is not None))


def _check_families(lines: Sequence[Line], above: Sequence[int], said: Sequence[Condition | _Leaf]) -> None:
    """Below each line stand the two sides of one threshold, or a leaf alone."""
    families: dict[int, list[int]] = {}
    for position, parent in enumerate(above):
        families.setdefault(parent, []).append(position)
    for family in families.values():
        first, *others = (said[position] for position in family)
        is_leaf = isinstance(first, _Leaf) and not others
        is_split = isinstance(first, AtMost) and others == [Above(first.column, first.threshold)]
        if not is_leaf and not is_split:
            raise lines[family[-1]].fault(
                "expected one leaf, or '<=' and then '>' with the same threshold; the text may be cut short."
            )


def _weights(leaves: Sequence[_Leaf], public: Values) -> tuple[list[tuple[float, ...] | None], bool, Sequence[int]]:
    """The weights of each value in each leaf, None where the text has none; whether some are no whole numbers, so that
    they are no counts; and the number of the value of each weight, in the order in which ties are broken."""
    first = leaves[0]
    for leaf in leaves:
        if len(leaf.weights or ()) != len(first.weights or ()):
            raise leaf.line.fault(f"expected as many weights as on line {first.line.number}.")
    if not first.weights:
        place = {text: number for number, text in enumerate(public.texts)}
        return [None] * len(leaves), False, [place[text] for text in rising(place)]
    order = _order(leaves, public, len(first.weights))
    weights = np.zeros((len(leaves), len(public)))
    weights[:, order] = [leaf.weights for leaf in leaves]
    is_weighted = not all(weight.is_integer() for leaf in leaves for weight in leaf.weights or ())
    return [tuple(own) for own in weights.tolist()], is_weighted, order


def _order(leaves: Sequence[_Leaf], public: Values, width: int) -> list[int]:
    """The number of the value that each weight counts: sorted as learners sort them, or else as they were listed."""
    seen = sorted({public.number(leaf.label) for leaf in leaves})
    if width not in (len(public), len(seen)):
        raise leaves[0].line.fault(
            f"it has {width} weights, which are not those of the known values ({public}); list the values that the "
            "tree was fitted on."
        )
    pool = list(range(len(public))) if width == len(public) else seen
    place = {public.texts[number]: number for number in pool}
    for labels in (rising(place), sorted(place), list(place)):
        order = [place[label] for label in labels]
        wrong = [leaf for leaf in leaves if leaf.weights and not _is_largest(leaf.weights, order, public, leaf.label)]
        if not wrong:
            return order
    raise wrong[0].line.fault("its label has not the largest weight; list the values in the order of the weights.")


def _is_largest(weights: Sequence[float], order: Sequence[int], public: Values, label: str) -> bool:
    return weights[order.index(public.number(label))] == max(weights)
