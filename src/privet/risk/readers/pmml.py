"""Trees in PMML (TreeModel): simple predicates and sets, record counts and score distributions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from xml.etree import ElementTree

from privet.errors import ModelError
from privet.kernel import DEEPEST_TREE, MOST_ROWS, number_of
from privet.risk.tree import (
    Above,
    AtLeast,
    AtMost,
    Below,
    Condition,
    Equals,
    Node,
    NotEquals,
    OneOf,
    PublishedTree,
    Values,
)

_NUMBERS: dict[str, Callable[[str, float], Condition]] = {
    "lessThan": Below,
    "lessOrEqual": AtMost,
    "greaterThan": Above,
    "greaterOrEqual": AtLeast,
}
_TEXTS: dict[str, Callable[[str, str], Condition]] = {"equal": Equals, "notEqual": NotEquals}


def is_pmml(text: str) -> bool:
    """Does a text look like PMML?"""
    return "<PMML" in text[:5000]


def parse(text: str, values: Sequence[object] | None = None) -> PublishedTree:
    """The tree of the only TreeModel of a PMML file.

    >>> tree = parse('''<PMML><TreeModel><Node><True/>
    ... <Node score="no" recordCount="3"><SimplePredicate field="age" operator="lessThan" value="30"/></Node>
    ... <Node score="yes" recordCount="2"><SimplePredicate field="age" operator="greaterOrEqual" value="30"/></Node>
    ... </Node></TreeModel></PMML>''')
    >>> [(tree.where(leaf), tree.values[tree.nodes[leaf].label]) for leaf in tree.leaves]
    [('age < 30', 'no'), ('age >= 30', 'yes')]
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ModelError("the PMML declares entities, which are not read; write it without.")
    try:
        root = ElementTree.fromstring(text.strip())
    except ElementTree.ParseError as error:
        raise ModelError(f"the PMML is no well-formed XML (line {error.position[0]}).") from None
    for element in root.iter():
        element.tag = str(element.tag).rsplit("}", 1)[-1]
    trees = list(root.iter("TreeModel"))
    if len(trees) != 1:
        raise ModelError(f"of PMML a single TreeModel is read; this one has {len(trees)}.")
    first = trees[0].find("Node")
    if first is None:
        raise ModelError("the TreeModel has no nodes; it may be cut short.")
    rows: list[tuple[int, ElementTree.Element]] = []
    waiting = [(first, -1, 0)]
    while waiting:
        element, parent, depth = waiting.pop()
        if depth > DEEPEST_TREE:
            raise ModelError(f"a tree has at most {DEEPEST_TREE} levels; publish a smaller one.")
        rows.append((parent, element))
        here = len(rows) - 1
        waiting += [(child, here, depth + 1) for child in reversed(element.findall("Node"))]
    leaves = [element for _, element in rows if element.find("Node") is None]
    public = Values.seen(_named(leaves)) if values is None else Values.of(values)
    nodes = [_node(parent, element, public) for parent, element in rows]
    silent = "PMML does not say which criterion chose its splits"
    return PublishedTree(tuple(nodes), public.texts, "PMML", silent=silent)


def _named(leaves: Sequence[ElementTree.Element]) -> Iterator[str]:
    """The values that leaves speak of: those they predict, and those they count."""
    for leaf in leaves:
        yield str(leaf.get("score"))
        yield from (str(each.get("value")) for each in leaf.findall("ScoreDistribution"))


def _node(parent: int, element: ElementTree.Element, public: Values) -> Node:
    condition = None if parent < 0 else _condition(element)
    if element.find("Node") is not None:
        return Node(parent, condition)
    label = public.number(str(element.get("score")))
    counts = [0.0] * len(public)
    said = element.findall("ScoreDistribution")
    for each in said:
        counts[public.number(str(each.get("value")))] = _count(each)
    if said and all(count.is_integer() for count in counts):
        return Node(parent, condition, label, counts=tuple(counts))
    return Node(parent, condition, label)


def _count(element: ElementTree.Element) -> float:
    number = number_of(element.get("recordCount"))
    if number is None or not 0 <= number < MOST_ROWS:
        raise ModelError(
            f"a recordCount of the PMML is '{str(element.get('recordCount'))[:40]}', which counts no rows."
        )
    return float(number)


def _condition(element: ElementTree.Element) -> Condition:
    simple, some = element.find("SimplePredicate"), element.find("SimpleSetPredicate")
    if simple is not None:
        name, sign, value = (str(simple.get(key, "")) for key in ("field", "operator", "value"))
        number = number_of(value)
        if sign in _NUMBERS and number is not None:
            return _NUMBERS[sign](name, number)
        if sign in _TEXTS and name:
            return _TEXTS[sign](name, value)
    if some is not None and some.get("booleanOperator") == "isIn":
        array = some.find("Array")
        try:
            listed = tuple(shlex.split((array.text or "") if array is not None else ""))
        except ValueError:
            listed = ()
        if listed:
            return OneOf(str(some.get("field", "")), listed)
    raise ModelError("a node of the PMML has a predicate that is not read: only simple ones and sets (isIn) are.")
