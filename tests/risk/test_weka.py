"""Weka trees: read as J48 prints them, written so that they are read again, and every fault said with its line."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import ModelError
from privet.kernel.column import canonical_text
from privet.risk.people import People
from privet.risk.publication import Publication
from privet.risk.readers.text_lines import UNSAID
from privet.risk.readers.weka import GAIN_RATIO, NotEquals, parse, write
from privet.risk.tree import Above, AtMost, Condition, Equals, Node, PublishedTree

PROPERTY = settings(derandomize=True, deadline=None, max_examples=300)

WEATHER = """
=== Run information ===

Scheme:       weka.classifiers.trees.J48 -C 0.25 -M 2
Attributes:   5
              outlook

=== Classifier model (full training set) ===

J48 pruned tree
------------------

outlook = sunny
|   humidity <= 75: yes (2.0)
|   humidity > 75: no (3.0)
outlook = overcast: yes (4.0)
outlook = rainy
|   windy = TRUE: no (2.0)
|   windy = FALSE: yes (5.0/2.0)

Number of Leaves  : \t5

Size of the tree : \t8


Time taken to build model: 0 seconds

=== Stratified cross-validation ===
Correctly Classified Instances           9               64.2857 %
"""

LENSES = """J48 pruned tree
------------------

tear-prod-rate = reduced: none (12.0)
tear-prod-rate = normal
|   astigmatism = no: soft (6.0/1.0)
|   astigmatism = yes
|   |   spectacle-prescrip = myope: hard (3.0)
|   |   spectacle-prescrip = hypermetrope: none (3.0/1.0)

Number of Leaves  : \t4

Size of the tree : \t7
"""


def leaves(tree: PublishedTree) -> list[tuple[str, str, float | None, float | None]]:
    nodes = [(tree.where(leaf), tree.nodes[leaf]) for leaf in tree.leaves]
    return [(where, tree.values[node.label or 0], node.size, node.wrong) for where, node in nodes]


def test_the_weather_tree_is_found_in_all_that_weka_printed() -> None:
    tree = parse(WEATHER)
    assert tree.values == ("no", "yes") and tree.source == "Weka"
    assert tree.criterion is None and tree.silent == GAIN_RATIO
    assert leaves(tree) == [
        ("outlook = sunny and humidity <= 75", "yes", 2, 0),
        ("outlook = sunny and humidity > 75", "no", 3, 0),
        ("outlook = overcast", "yes", 4, 0),
        ("outlook = rainy and windy = TRUE", "no", 2, 0),
        ("outlook = rainy and windy = FALSE", "yes", 5, 2),
    ]
    assert [tree.nodes[leaf].line for leaf in tree.leaves] == [14, 15, 16, 18, 19]
    assert len(tree.nodes) == 8 and tree.depth == 2


@pytest.mark.parametrize("changed", [LENSES, LENSES.replace("\n", "\r\n"), LENSES.replace("|   ", "|\t")])
def test_contact_lenses(changed: str) -> None:
    tree = parse(changed, ["soft", "hard", "none"])
    assert tree.values == ("soft", "hard", "none")
    assert [(label, size, wrong) for _, label, size, wrong in leaves(tree)] == [
        ("none", 12, 0),
        ("soft", 6, 1),
        ("hard", 3, 0),
        ("none", 3, 1),
    ]


def test_rows_are_in_the_leaves_that_the_tests_lead_to() -> None:
    frame = pd.DataFrame(
        {
            "outlook": ["sunny", "sunny", "overcast", "rainy", "rainy", "hail"],
            "humidity": ["75", "76", "1", "1", "1", "1"],
            "windy": ["TRUE", "TRUE", "TRUE", "TRUE", "FALSE", "TRUE"],
        }
    )
    tree = parse(WEATHER)
    people = People.of(frame, list(frame))
    found = Publication.of(tree, people, "labels").leaf[people.profile]
    assert [tree.nodes[leaf].line if leaf >= 0 else None for leaf in found] == [14, 15, 16, 18, 19, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (": yes (14.0/5.0)", [("all rows", "yes", 14, 5)]),
        (": yes", [("all rows", "yes", None, None)]),
        ("a = x: 1 (2.5/0.25)\na = y: 2", [("a = x", "1", 2.5, 0.25), ("a = y", "2", None, None)]),
        ("a = x: p (5.0/1.0) [3.0/2.0]\na = y: n (1.0E7)", [("a = x", "p", 8, 3), ("a = y", "n", 1e7, 0)]),
        (
            "pay = '>50K': '<=50K' (2.0)\npay = <=50K: >50K (1.0)",
            [("pay = >50K", "<=50K", 2, 0), ("pay = <=50K", ">50K", 1, 0)],
        ),
        ("a b = x = (y) z: l m (n) (2.0)", [("a b = x = (y) z", "l m (n)", 2, 0)]),
        ("at = 12:30: yes (1.0)\nat = : no (1.0)", [("at = 12:30", "yes", 1, 0), ("at = ", "no", 1, 0)]),
        (
            "a <= -1.5e-3: x: y (1.0)\na > -1.5e-3: z",
            [("a <= -0.0015", "x: y", 1, 0), ("a > -0.0015", "z", None, None)],
        ),
        ("'a = b' = 'c: d': 'it\\'s' (3.0)", [("a = b = c: d", "it's", 3, 0)]),
        ("a = 'tis: yes (1.0)\na = 'x' y: no (1.0)", [("a = 'tis", "yes", 1, 0), ("a = 'x' y", "no", 1, 0)]),
        ("a = x : yes (1)\na = y : no (2)", [("a = x", "yes", 1, 0), ("a = y", "no", 2, 0)]),
        ("sex = f: yes (1.0)\nsex != f: no (2.0)", [("sex = f", "yes", 1, 0), ("sex != f", "no", 2, 0)]),
    ],
)
def test_forms_of_leaves_and_values(text: str, expected: list[tuple[Any, ...]]) -> None:
    tree = parse(text)
    assert leaves(tree) == expected
    assert tree.silent == UNSAID


def test_every_other_value_is_on_the_other_side() -> None:
    assert NotEquals("sex", "f").holds(["f", "m", None, "x"]).tolist() == [False, True, False, True]


def test_public_values_decide_how_a_line_with_two_colons_is_read() -> None:
    text = "kind = a: b: c (3.0)"
    assert leaves(parse(text, ["b: c", "d"]))[0][:2] == ("kind = a", "b: c")
    assert leaves(parse(text, ["c", "d"]))[0][:2] == ("kind = a: b", "c")
    with pytest.raises(ModelError, match=r"^line 1 \('kind = a: b: c \(3.0\)'\): it can be read in several ways"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("", None, "the text contains no tree"),
        ("J48 pruned tree\n------------------\n\n", None, "the text contains no tree"),
        ("a <= 1: x\n\na > 1", None, "line 3 ('a > 1'): expected ': ' and a label"),
        ("a <= 1: x", None, "line 1 ('a <= 1: x'): its other side, 'a > 1', is missing"),
        ("a <= 1: x\na > 2: y", None, "its other side, 'a > 1', is missing"),
        ("a != 1: x", None, "its other side, 'a = 1', is missing"),
        ("a = 1: x\na = 1: y", None, "line 2 ('a = 1: y'): the same test stands twice"),
        ("a = 1: x\nb = 1: y", None, "line 2 ('b = 1: y'): expected a test of 'a', as on line 1"),
        ("a = 1: x\n|   b = 1: y", None, "line 1 ('a = 1: x'): it is a leaf, but lines stand below it"),
        ("a = 1\n|   |   b = 1: y", None, "line 2 ('b = 1: y'): it stands too deep"),
        ("|   b = 1: y", None, "line 1 ('b = 1: y'): it stands too deep"),
        ("a <= one: x\na > one: y", None, "line 1 ('a <= one: x'): expected a number after '<='"),
        ("age,sex\n30,f", None, "line 1 ('age,sex'): expected a test of a Weka tree"),
        ("a < 3: x\na >= 3: y", None, "line 1 ('a < 3: x'): expected a test of a Weka tree"),
        ("a = 1: (3.0)", None, "expected a label after ':'"),
        ("a = 1: x (3.0/4.0)", None, "the leaf has more rows wrong (4) than it has rows (3)"),
        (": x (3.0)\na = 1: x", None, "line 2 ('a = 1: x'): nothing may follow"),
        (
            "a = 1: x\na = 2: maybe",
            ["x", "y"],
            "line 2 ('a = 2: maybe'): the tree says 'maybe', which is not among the public",
        ),
        ("a = 1: x\nNumber of Leaves  : 2", None, "the text says that the tree has 2 leaves, but shows 1"),
        ("a = " + "x" * 500, None, "x…'): expected"),
        ("a = 1: x", ["x", "x"], "name 'x' twice"),
        ("a = 1: x", [], "needs at least one value"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, values: list[str] | None, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(text, values)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


NASTY = st.one_of(
    st.text(max_size=6),
    st.text(alphabet=" :='\\|()<>!1a/\n\r\t.[]", max_size=8),
    st.sampled_from(
        ["", "a b", "'q'", ">50K", "a: b (3.0)", "J48 pruned tree", "|   a", "x = y", "1.0", "\u2028", "----"]
    ),
)
COUNTS = st.floats(0, 1e9, allow_nan=False)


@st.composite
def trees(draw: st.DrawFn) -> PublishedTree:
    """A tree in the order of its text: each split is by cells, by one value, or by a threshold."""
    values = tuple(draw(st.lists(NASTY.map(canonical_text), min_size=1, max_size=4, unique=True)))
    nodes: list[Node] = []

    def grow(parent: int, condition: Condition | None, depth: int) -> None:
        number = len(nodes)
        if depth == 0 or draw(st.booleans()):
            size = draw(st.none() | COUNTS)
            wrong = None if size is None else draw(st.floats(0, size))
            nodes.append(Node(parent, condition, draw(st.integers(0, len(values) - 1)), size, wrong))
            return
        nodes.append(Node(parent, condition))
        column = draw(NASTY)
        threshold = draw(st.floats(allow_nan=False, allow_infinity=False))
        cells = draw(st.lists(NASTY, min_size=1, max_size=3, unique=True))
        kinds: list[list[Condition]] = [
            [Equals(column, cell) for cell in cells],
            [Equals(column, cells[0]), NotEquals(column, cells[0])],
            [AtMost(column, threshold), Above(column, threshold)],
        ]
        for side in draw(st.sampled_from(kinds)):
            grow(number, side, depth - 1)

    grow(-1, None, 3)
    return PublishedTree(tuple(nodes), values, "Weka")


def plain(node: Node) -> tuple[Any, ...]:
    return node.parent, node.condition, node.label, node.size, node.wrong


@PROPERTY
@given(trees())
def test_what_is_written_is_read_again(tree: PublishedTree) -> None:
    found = parse(write(tree), tree.values)
    assert found.values == tree.values
    assert list(map(plain, found.nodes)) == list(map(plain, tree.nodes))
    assert write(found) == write(tree)


@PROPERTY
@given(st.text(alphabet="ab=<>!:|'\\ (1.0/2)\n", max_size=60))
def test_any_text_is_a_tree_or_one_sentence(text: str) -> None:
    try:
        parse(text)
    except ModelError as error:
        assert "\n" not in str(error)


def test_counts_are_written_as_rows_and_wrong_rows() -> None:
    nodes = (Node(), Node(0, Equals("a", "x"), 0, counts=(3.0, 1.0)), Node(0, Equals("a", "y"), 1, counts=(-1.0, 2.0)))
    text = write(PublishedTree(nodes, ("no", "yes"), "scikit-learn"))
    assert text.splitlines()[:2] == ["a = x: no (4.0/1.0)", "a = y: yes"]  # noise made a count negative


@pytest.mark.parametrize("rows", ["-5.0", "nan/1", "NaN", "-inf/2"])
def test_rows_that_are_no_numbers_are_no_part_of_a_label(rows: str) -> None:
    with pytest.raises(ModelError, match="its rows in brackets are no numbers of 0 or more"):
        parse(f"x <= 1.5: a ({rows})\nx > 1.5: b (5.0)\n")
    assert parse("x <= 1.5: 'a (-5.0)' (3.0)\nx > 1.5: b (5.0)\n").values == ("a (-5.0)", "b")
