"""Trees as Weka's J48 prints them, the format in which papers publish trees: read and written.

    outlook = sunny
    |   humidity <= 75: yes (2.0)
    |   humidity > 75: no (3.0/1.0)
    outlook = overcast: yes (4.0)

A leaf says how many rows reached it and how many of them are of another class: 3 and 1. Weka never quotes; here
a name, value or label may stand in quotes, 'like this', so that it can contain ` = `, `: ` or brackets.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from privet.errors import ModelError
from privet.kernel import MOST_ROWS, Date, number_of
from privet.risk.readers.text_lines import UNSAID, Line, numbered, parents
from privet.risk.tree import (
    WEKA,
    Above,
    AtMost,
    Condition,
    Equals,
    InCell,
    Node,
    NotEquals,
    OnSide,
    PublishedTree,
    Values,
)

GAIN_RATIO = "J48 chooses by gain ratio"

_HEADER = re.compile(r"J48\w* (un)?pruned tree")
_RULE = re.compile(r"[-=]{3,}")
_END = re.compile(r"(Number of Leaves|Size of the tree)\s*:\s*([0-9]*)|=== .* ===")
_BARS = re.compile(r"(?:\|\s*)*")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")
# A run of blanks is taken as a whole: tried at each of its places, a line of blanks would take minutes.
_TEST = re.compile(r"(?P<name>.*?\S)\s++(?P<sign><=|>|=|!=)(?:\s+(?P<rest>.*))?")
_COLON = re.compile(r"(?<!\s)\s*+:(?:\s++|$)")
_MOST_COLONS = 50  # in what follows a sign
_COUNT = r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)"
_COUNTS = re.compile(rf"(?<!\s)\s*+\({_COUNT}(?:/{_COUNT})?\)(?:\s*\[{_COUNT}(?:/{_COUNT})?\])?$")
_NO_COUNTS = re.compile(r"\((?:-[0-9.]+|[-+]?nan|[-+]?inf\w*)(?:/[^()]*)?\)$", re.IGNORECASE)
_PLAIN = re.compile(r"\w[\w.+/-]*(?: [\w.+/-]+)*")
_ESCAPES = {"\n": "n", "\r": "r", "\t": "t", "\\": "\\", "'": "'"}
_EXPECTED = "expected a test of a Weka tree, like 'age <= 30' or 'sex = f: yes (5.0/1.0)'."
_QUOTE = "put the name, value or label that contains ': ' into quotes, 'like this'."


@dataclass(frozen=True)
class _Leaf:
    label: str
    size: float | None
    wrong: float | None


def is_tree(text: str) -> bool:
    """Does a text have a line that could be one of a Weka tree?"""
    lines = [line for _, line in numbered(text[:100_000])]
    return any(_HEADER.fullmatch(line) or line.startswith(":") or _TEST.fullmatch(line) for line in lines)


# -- reading ----------------------------------------------------------------------------------


def parse(text: str, values: Sequence[object] | None = None) -> PublishedTree:
    """The tree of a J48 text, alone or inside all that Weka printed; what is wrong with it is said with its line.

    Without `values` those are taken that some leaf predicts, which may not be all.

    >>> tree = parse("age <= 30: no (5.0/1.0)\\nage > 30: yes (2.0)")
    >>> tree.values, [(tree.where(leaf), tree.nodes[leaf].size, tree.nodes[leaf].wrong) for leaf in tree.leaves]
    (('no', 'yes'), [('age <= 30', 5.0, 1.0), ('age > 30', 2.0, 0.0)])
    """
    lines, has_header, promised = _lines(text)
    public = None if values is None else Values.of(values)
    if not lines:
        raise ModelError("the text contains no tree; it may be cut short.")
    above = parents(lines)
    nodes: list[tuple[Line, int, Condition | None, _Leaf | None]] = []
    if lines[0].text.startswith(":"):
        if len(lines) > 1:
            raise lines[1].fault("nothing may follow a tree that is one leaf.")
        nodes.append((lines[0], -1, None, _leaf(lines[0], lines[0].text[1:].strip())))
    else:
        nodes.append((lines[0], -1, None, None))
        splits = set(above)
        for position, line in enumerate(lines):
            nodes.append((line, above[position] + 1, *_branch(line, position in splits, public)))
        _check_siblings(nodes)
    leaves = [leaf for _, _, _, leaf in nodes if leaf is not None]
    if promised is not None and promised != len(leaves):
        raise ModelError(f"the text says that the tree has {promised} leaves, but shows {len(leaves)}; it may be cut.")
    known = public or Values.seen(leaf.label for leaf in leaves)
    return PublishedTree(
        tuple(_node(*each, known) for each in nodes),
        known.texts,
        WEKA,
        silent=GAIN_RATIO if has_header else UNSAID,
    )


def _lines(text: str) -> tuple[list[Line], bool, int | None]:
    """The lines of the tree, whether J48 says that it grew it, and how many leaves it says there are."""
    found = list(numbered(text))
    start = next((position for position, (_, line) in enumerate(found, start=1) if _HEADER.fullmatch(line)), 0)
    lines: list[Line] = []
    for number, line in found[start:]:
        if end := _END.fullmatch(line):
            leaves = end[2][:20] if end[1] == "Number of Leaves" else None  # of more digits there are none
            return lines, start > 0, int(leaves) if leaves else None
        if not _RULE.fullmatch(line):
            bars = _BARS.match(line)
            assert bars is not None
            lines.append(Line(number, bars[0].count("|"), line[bars.end() :]))
    return lines, start > 0, None


def _branch(line: Line, splits: bool, public: Values | None) -> tuple[Condition, _Leaf | None]:
    """What a line says: under which condition rows come here and, unless lines stand below it, its leaf."""
    column, sign, rest = _test(line)
    value, label = _divided(line, sign, rest, splits, public)
    leaf = None if label is None else _leaf(line, label)
    if sign in ("=", "!="):
        return (Equals if sign == "=" else NotEquals)(column, value), leaf
    threshold = number_of(value)
    if threshold is None or not math.isfinite(threshold):
        raise line.fault(f"expected a number after '{sign}'; put names that contain ' {sign} ' into quotes.")
    return (AtMost if sign == "<=" else Above)(column, threshold), leaf


def _test(line: Line) -> tuple[str, str, str]:
    """The column, the sign and what follows it."""
    quoted = _QUOTED.match(line.text)
    if quoted and (test := _TEST.fullmatch("_" + line.text[quoted.end() :])) and test["name"] == "_":
        return _unquoted(quoted), test["sign"], test["rest"] or ""
    test = _TEST.fullmatch(line.text)
    if test is None:
        raise line.fault(_EXPECTED)
    return test["name"], test["sign"], test["rest"] or ""


def _divided(line: Line, sign: str, rest: str, splits: bool, public: Values | None) -> tuple[str, str | None]:
    """The value of the test, and the label of the leaf unless lines stand below this one."""
    quoted = _QUOTED.match(rest) if sign in ("=", "!=") else None
    if quoted:
        if splits and quoted.end() == len(rest):
            return _unquoted(quoted), None
        colon = _COLON.match(rest, quoted.end())
        if colon and not splits:
            return _unquoted(quoted), rest[colon.end() :]
    colons = list(itertools.islice(_COLON.finditer(rest), _MOST_COLONS))
    if len(colons) == _MOST_COLONS:
        raise line.fault(f"it can be read in several ways; {_QUOTE}")
    ways = [(rest[: colon.start()], rest[colon.end() :]) for colon in colons]
    if splits:
        if ways:
            raise line.fault(f"it is a leaf, but lines stand below it; mend the text, or {_QUOTE}")
        return rest, None
    if not ways:
        raise line.fault("expected ': ' and a label, or lines below it that begin with one more '|   '.")
    if sign in ("<=", ">"):  # a number ends at the first colon
        return ways[0]
    ways = [way for way in ways if _QUOTED.fullmatch(_COUNTS.sub("", way[1]))][:1] or ways
    if len(ways) > 1 and public is not None:
        ways = [way for way in ways if public.find(_leaf(line, way[1]).label) is not None] or ways
    if len(ways) > 1:
        raise line.fault(f"it can be read in several ways; {_QUOTE}")
    return ways[0]


def _leaf(line: Line, text: str) -> _Leaf:
    """A label and, in brackets, the rows of the leaf and how many of them are wrong."""
    size = wrong = None
    counts = _COUNTS.search(text)
    if counts:
        text = text[: counts.start()]
        # reduced-error pruning prints two groups: the rows it grew on, and in square brackets those it pruned by
        size, wrong = (sum(float(counts[group] or 0) for group in some) for some in ((1, 3), (2, 4)))
        if not size < MOST_ROWS:
            raise line.fault(f"a leaf has at most {MOST_ROWS} rows.")
        if wrong > size:
            raise line.fault(f"the leaf has more rows wrong ({wrong:g}) than it has rows ({size:g}).")
    elif _NO_COUNTS.search(text):
        raise line.fault("its rows in brackets are no numbers of 0 or more; a label that ends so goes into quotes.")
    quoted = _QUOTED.fullmatch(text)
    if not text:
        raise line.fault("expected a label after ':'.")
    return _Leaf(_unquoted(quoted) if quoted else text, size, wrong)


def _node(line: Line, parent: int, condition: Condition | None, leaf: _Leaf | None, values: Values) -> Node:
    if leaf is None:
        return Node(parent, condition, line=line.number)
    label = values.find(leaf.label)
    if label is None:
        raise line.fault(values.unknown(leaf.label))
    return Node(parent, condition, label, leaf.size, leaf.wrong, line=line.number)


def _check_siblings(nodes: Sequence[tuple[Line, int, Condition | None, _Leaf | None]]) -> None:
    """Branches of one split test one column, no two of them the same, and a threshold has both of its sides."""
    families: dict[int, list[tuple[Line, Condition]]] = {}
    for line, parent, condition, _ in nodes:
        if condition is not None:
            families.setdefault(parent, []).append((line, condition))
    for family in families.values():
        column = family[0][1].column
        seen: set[Condition] = set()
        for line, condition in family:
            if condition.column != column:
                raise line.fault(f"expected a test of '{column}', as on line {family[0][0].number}.")
            if condition in seen:
                raise line.fault("the same test stands twice under one split.")
            seen.add(condition)
        for line, condition in family:
            other = _other_side(condition)
            if other is not None and other not in seen:
                raise line.fault(f"its other side, '{other}', is missing; the text may be cut short.")


def _other_side(condition: Condition) -> Condition | None:
    if isinstance(condition, AtMost):
        return Above(condition.column, condition.threshold)
    if isinstance(condition, Above):
        return AtMost(condition.column, condition.threshold)
    return Equals(condition.column, condition.value) if isinstance(condition, NotEquals) else None


def _unquoted(quoted: re.Match[str]) -> str:
    letters = {name: letter for letter, name in _ESCAPES.items()}
    return re.sub(r"\\(.)", lambda found: letters.get(found[1], found[1]), quoted[1])


# -- writing ----------------------------------------------------------------------------------


def write(tree: PublishedTree) -> str:
    """The text of a tree, which `parse` reads: labels, and the rows of each leaf and the wrong ones where known.

    Cells of a privet domain are written by their labels, for people; a threshold of scikit-learn is written as it is,
    without the rounding of the numbers that are compared with it.
    """
    lines = []
    for number in tree.below(0):
        node = tree.nodes[number]
        label = "" if node.label is None else f": {_quoted(tree.values[node.label])}{_counts(node)}"
        if node.condition is not None:
            bars = "|   " * (len(tree.ancestors(number)) - 1)
            lines.append(bars + _written(node.condition) + label)
        elif label:
            lines.append(label)
    footer = ["", f"Number of Leaves  : \t{len(tree.leaves)}", "", f"Size of the tree : \t{len(tree.nodes)}"]
    return "\n".join(lines + footer) + "\n"


def _written(condition: Condition) -> str:
    column = _quoted(condition.column)
    if isinstance(condition, AtMost | Above):
        return f"{column} {'<=' if isinstance(condition, AtMost) else '>'} {_number(condition.threshold)}"
    if isinstance(condition, Equals | NotEquals):
        return f"{column} {'=' if isinstance(condition, Equals) else '!='} {_quoted(condition.value)}"
    if isinstance(condition, InCell):
        return f"{column} = {_quoted(condition.declared.labels[condition.code])}"
    if isinstance(condition, OnSide) and condition.side < 2 and not isinstance(condition.declared, Date):
        point = float(condition.declared.value_at(condition.at - 1))
        return f"{column} {'>' if condition.side else '<='} {_number(point)}"
    if isinstance(condition, OnSide) and condition.side == 2:
        return f"{column} = {_quoted('<missing>')}"
    raise ModelError(f"the test '{condition}' cannot be written as a Weka tree.")


def _counts(node: Node) -> str:
    size, wrong = node.size, node.wrong
    if node.counts is not None and node.label is not None:
        size = sum(node.counts)
        wrong = size - node.counts[node.label]
    if size is None or wrong is None or not 0 <= wrong <= size:  # noise can make a count negative
        return ""
    return f" ({abs(float(size))!r}{f'/{float(wrong)!r}' if wrong else ''})"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return "'" + "".join("\\" + _ESCAPES[letter] if letter in _ESCAPES else letter for letter in text) + "'"


def _number(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
