"""Trees as R prints them: rpart's text, and that of partykit (`ctree`, or `as.party` of an rpart)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privet.errors import ModelError
from privet.kernel import MOST_ROWS, number_of
from privet.risk.readers.text_lines import UNSAID, Line, numbered, parents
from privet.risk.tree import Above, AtLeast, AtMost, Below, Condition, Node, OneOf, PublishedTree, Values, rising

_HEAD = re.compile(r"node\), split, n, loss, yval, \(yprob\)")
_NODE = re.compile(r"(?P<number>[0-9]{1,18})\) (?P<rest>.*)")
_SAID = re.compile(
    r"(?P<split>.*\S) +(?P<n>[0-9]+) +(?P<loss>[0-9.]+(?:e[+-]?[0-9]+)?) (?P<label>.*\S) "
    r"\((?P<shares>[-+.e0-9 ]+)\) *(?P<end>\*)?"
)
_PARTY = re.compile(r"(?P<bars>(?:\| +)*)\[[0-9]+\] (?P<rest>.*)")
_LEAF = re.compile(r"(?P<test>.*?): (?P<label>.*\S) \(n = (?P<n>[0-9.]+)(?:, err = (?P<err>[0-9.]+)%)?\)")
_SIGNS: dict[str, Callable[[str, float], Condition]] = {"<=": AtMost, ">=": AtLeast, "<": Below, ">": Above}
_TEST = re.compile(r"(?P<name>.*?\S) *(?P<sign><=|>=|<|>) *(?P<number>[-+0-9.eE]+)")


def is_rpart(text: str) -> bool:
    """Does a text look like R printed a tree?"""
    return any(_HEAD.fullmatch(line) or _PARTY.fullmatch(line) for _, line in numbered(text[:100_000]))


def parse(text: str, values: Sequence[object] | None = None) -> PublishedTree:
    """The tree of a text that rpart or partykit printed; what is wrong with it is said with its line.

    >>> tree = parse('''node), split, n, loss, yval, (yprob)
    ... 1) root 5 2 no (0.6 0.4)
    ...   2) age< 30 3 0 no (1.0 0.0) *
    ...   3) age>=30 2 0 yes (0.0 1.0) *''')
    >>> [(tree.where(leaf), tree.nodes[leaf].counts) for leaf in tree.leaves]
    [('age < 30', (3.0, 0.0)), ('age >= 30', (0.0, 2.0))]
    """
    lines = list(numbered(text))
    start = next((at for at, (_, line) in enumerate(lines) if _HEAD.fullmatch(line)), None)
    return _party(lines, values) if start is None else _rpart(lines[start + 1 :], values)


# -- rpart --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Said:
    line: Line
    number: int  # the children of node k are 2k and 2k + 1
    condition: Condition | None
    size: float
    loss: float
    label: str
    shares: tuple[float, ...]
    is_leaf: bool


def _rpart(lines: Sequence[tuple[int, str]], values: Sequence[object] | None) -> PublishedTree:
    said = []
    for number, text in lines:
        if not text.startswith("*"):  # the legend
            said.append(_said(Line(number, 0, text)))
    if not said or said[0].number != 1:
        raise ModelError("the text contains no tree of rpart; it may be cut short.")
    leaves = [each for each in said if each.is_leaf]
    public = Values.seen(each.label for each in leaves) if values is None else Values.of(values)
    order = _order(said, public)
    place: dict[int, int] = {}
    nodes: list[Node] = []
    for each in said:
        above = each.number // 2
        if each.number in place or (above not in place) != (each.number == 1):
            raise each.line.fault("its node stands twice, or the one above it is missing.")
        place[each.number] = len(nodes)
        label = public.find(each.label)
        if label is None:
            raise each.line.fault(public.unknown(each.label))
        node = Node(place.get(above, -1), each.condition, line=each.line.number)
        nodes.append(_leaf(node, each, label, order, len(public)) if each.is_leaf else node)
    return PublishedTree(tuple(nodes), public.texts, "rpart", silent="rpart prunes, so that its choices order nothing")


def _said(line: Line) -> _Said:
    node = _NODE.fullmatch(line.text)
    said = _SAID.fullmatch(node["rest"]) if node else None
    if node is None or said is None:
        raise line.fault("expected a node of rpart, like '2) age< 30 10 2 yes (0.8 0.2) *'.")
    size, loss = float(said["n"]), number_of(said["loss"])
    shares = [number_of(each) for each in said["shares"].split()]
    known = [share for share in shares if share is not None and 0 <= share <= 1]
    if loss is None or not 0 <= loss <= size < MOST_ROWS or len(known) != len(shares) or not known:
        raise line.fault("expected rows, wrong rows and shares between 0 and 1.")
    is_root = node["number"] == "1"
    condition = None if is_root else _test(line, said["split"])
    return _Said(line, int(node["number"]), condition, size, loss, said["label"], tuple(known), bool(said["end"]))


def _test(line: Line, text: str) -> Condition:
    """age< 30, age>=30, or sex=f,m."""
    found = _TEST.fullmatch(text)
    threshold = number_of(found["number"]) if found else None
    if found and threshold is not None and math.isfinite(threshold):
        kind = _SIGNS[found["sign"]]
        return kind(found["name"], threshold)
    name, sign, some = text.partition(" in ") if " in " in text else text.partition("=")
    if not sign or not name.strip() or not some.strip():
        raise line.fault("expected a test like 'age< 30', 'age>=30' or 'sex=f,m'.")
    return OneOf(name.strip(), tuple(each.strip() for each in some.split(",")))


def _order(said: Sequence[_Said], public: Values) -> list[int]:
    """The number of the value of each share: R sorts them; where labels disagree, as they were listed."""
    width = len(said[0].shares)
    if any(len(each.shares) != width for each in said) or width != len(public):
        raise said[0].line.fault(
            f"it has {width} shares, and {len(public)} values are known ({public}); list them all with values."
        )
    place = {text: number for number, text in enumerate(public.texts)}
    for labels in (rising(place), list(place)):
        order = [place[label] for label in labels]
        fits = [
            each.shares[order.index(number)] >= max(each.shares) - 1e-6
            for each in said
            if (number := public.find(each.label)) is not None
        ]
        if all(fits):
            return order
    raise said[0].line.fault("its labels have not the largest shares; list the values in the order of the shares.")


def _leaf(node: Node, said: _Said, label: int, order: Sequence[int], values: int) -> Node:
    counts = np.zeros(values)
    counts[list(order)] = np.array(said.shares) * said.size
    whole = np.rint(counts)
    if np.abs(counts - whole).max() < 0.02 + 1e-5 * said.size and whole.sum() == said.size:
        return Node(node.parent, node.condition, label, counts=tuple(whole.tolist()), line=node.line)
    return Node(node.parent, node.condition, label, said.size, said.loss, line=node.line)  # priors or losses weigh


# -- partykit -----------------------------------------------------------------------------------


def _party(lines: Sequence[tuple[int, str]], values: Sequence[object] | None) -> PublishedTree:
    found = []
    for number, text in lines:
        node = _PARTY.fullmatch(text)
        if node is not None:
            found.append(Line(number, node["bars"].count("|"), node["rest"]))
    if not found or found[0].depth:
        raise ModelError("the text contains no tree of partykit; it may be cut short.")
    above = parents(found)
    splits = set(above)
    leaves = {at: _LEAF.fullmatch(line.text) for at, line in enumerate(found) if at not in splits}
    for at, leaf in leaves.items():
        if leaf is None:
            raise found[at].fault("expected a leaf like 'age <= 30: yes (n = 10, err = 20.0%)'.")
    labels = [leaf["label"] for leaf in leaves.values() if leaf is not None]
    public = Values.seen(labels) if values is None else Values.of(values)
    nodes = []
    for at, line in enumerate(found):
        leaf = leaves.get(at)
        text = line.text if leaf is None else leaf["test"]
        condition = None if at == 0 else _test(line, text)
        if leaf is None:
            nodes.append(Node(above[at], condition, line=line.number))
            continue
        label, size = public.find(leaf["label"]), number_of(leaf["n"])
        if label is None:
            raise line.fault(public.unknown(leaf["label"]))
        if size is None or not 0 <= size < MOST_ROWS:
            raise line.fault("expected how many rows the leaf has.")
        share = number_of(leaf["err"] or "nan")
        wrong = None if share is None or math.isnan(share) else float(round(size * min(share, 100.0) / 100))
        nodes.append(Node(above[at], condition, label, size, wrong, line=line.number))
    silent = "ctree chooses by tests of independence, which do not order impurities"
    return PublishedTree(tuple(nodes), public.texts, "partykit", silent=silent or UNSAID)
