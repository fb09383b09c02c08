"""Drawings: readable at any size, and no label of a domain can be more than text in them."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labels import EVIL

from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.models.privacy_record import Privacy, Step
from privet.models.tree import Ensemble, Tree
from privet.report import page, text
from privet.report.tree_picture import svg

PROPERTY = settings(derandomize=True, deadline=None)
PEOPLE = Domain(
    (
        Nominal("income", ("<=50K", ">50K")),
        Numeric("age", Fraction(17), Fraction(90), Fraction(1), bins=3),
        Nominal("marital-status", ("Divorced", "Never-married"), missing=True),
    ),
    target="income",
)
STEPS = (
    Step(0, 0, "attribute", 1, Fraction(1, 10)),
    Step(0, 0, "label", 1, Fraction(1, 2)),
    Step(0, 1, "attribute", 3, Fraction(1, 10)),
    Step(0, 1, "label", 3, Fraction(1, 5)),
    Step(0, 2, "class counts", 4, Fraction(1, 5)),
)
RECORD = Privacy("blum-2005", "classic", Fraction(1), 2, STEPS)
NS = "{http://www.w3.org/2000/svg}"


def small(domain: Domain = PEOPLE, deviation: float = 12.0) -> Tree:
    """marital-status; the divorced by age."""
    counts = [[0, 0], [0, 0], [40, 60], [-3, 7], [1203, 88], [5, 5.25]]
    column = np.array([1, 0, -1, -1, -1, -1])
    at = np.array([-1, 24, -1, -1, -1, -1])
    return Tree.grown(domain, column, at, np.array(counts, float), np.full(6, deviation), np.full(6, np.nan))


def wide(leaves: int, arity: int) -> Tree:
    """A tree as bushy as its nodes are wide, with no fewer leaves than asked for."""
    domain = Domain((Nominal("t", ("a", "b", "c")), Nominal("x", tuple(range(arity)))), target="t")
    splits = -(-(leaves - 1) // (arity - 1))
    nodes = 1 + splits * arity
    column = np.where(np.arange(nodes) < splits, 0, -1)
    counts = np.ones((nodes, 3)) * np.arange(nodes)[:, None]
    return Tree.grown(domain, column, np.full(nodes, -1), counts, np.ones(nodes), np.full(nodes, np.nan))


def chain(depth: int) -> Tree:
    """A tree in which only the last of the children is ever split."""
    column = np.concatenate([[0], *[[-1, 0]] * (depth - 1), [-1, -1]])
    at = np.where(column >= 0, 1 + np.arange(len(column)) % 70, -1)
    shape = len(column)
    return Tree.grown(PEOPLE, column, at, np.ones((shape, 2)), np.ones(shape), np.full(shape, np.nan))


def model(*trees: Tree, privacy: Privacy = RECORD) -> Ensemble:
    return Ensemble(trees[0].domain, trees, privacy)


def rows_of(picture: str) -> int:
    """How many lines of leaves a picture has."""
    height = ElementTree.fromstring(picture).get("height")
    assert height is not None
    return (int(height) - 8) // 18


def hidden_in(drawing: str, unit: str) -> int:
    return sum(int(number) for number in re.findall(rf"(\d+) more {unit}", drawing))


# -- text ---------------------------------------------------------------------------------------


def test_text_shows_every_edge_and_every_leaf() -> None:
    assert text(model(small())) == "\n".join(
        [
            "<blum-2005: a tree with 4 leaves for 'income', epsilon 1>",
            "├── marital-status = Divorced",
            "│   ├── age <= 40: <=50K (<=50K 1203 ± 24, >50K 88 ± 24)",
            "│   └── age > 40: >50K (<=50K 5 ± 24, >50K 5.2 ± 24)",
            "├── marital-status = Never-married: >50K (<=50K 40 ± 24, >50K 60 ± 24)",
            "└── marital-status = <missing>: >50K (<=50K -3 ± 24, >50K 7 ± 24)",
        ]
    )


def test_text_without_noise_has_no_error_and_stops_at_a_depth() -> None:
    exact = model(small(deviation=0))
    assert "age <= 40: <=50K (<=50K 1203, >50K 88)" in text(exact) and "±" not in text(exact)
    assert "├── marital-status = Divorced: <=50K (<=50K 1208, >50K 93) ... 2 more nodes" in text(exact, max_depth=1)
    assert text(exact, max_depth=0).splitlines()[1:] == ["all rows: <=50K (<=50K 1245, >50K 160) ... 5 more nodes"]
    assert text(exact, max_depth=2) == text(exact) == exact.text()


def test_text_numbers_several_trees_and_gives_reasons() -> None:
    drawn = text(model(small(), small(), privacy=Privacy("a", "b", Fraction(1), reasons=("seeded\x1b[2J noise",))))
    assert "NOT PRIVATE" in drawn.splitlines()[0]
    assert drawn.splitlines()[1] == "not private: seeded␛[2J noise"
    assert "tree 1 of 2" in drawn and "tree 2 of 2" in drawn


@pytest.mark.parametrize("tree", [wide(5000, 2), wide(5000, 7), wide(5000, 5000), chain(3000)], ids=len)
def test_text_of_a_large_tree_is_cut_and_says_by_how_much(tree: Tree) -> None:
    lines = text(model(tree)).splitlines()[1:]
    assert 300 < len(lines) <= 400
    ends = sum("more node" in line and ":" not in line for line in lines)  # a line of its own is no node
    assert len(lines) - ends + hidden_in("\n".join(lines), "node") == len(tree) - 1


# -- SVG ----------------------------------------------------------------------------------------


def test_a_picture_names_attributes_edges_classes_and_errors() -> None:
    drawn = ElementTree.fromstring(svg(small()))
    words = ["".join(node.itertext()) for node in drawn.iter(f"{NS}text")]
    assert rows_of(svg(small())) == 4
    for told in ("marital-status", "age", "Divorced", "<= 40", "> 40", "<missing>", "<=50K", ">50K"):
        assert any(told in word for word in words), told
    assert any("1203 ·" in word and "88 ± 24" in word for word in words)
    titles = [node.text for node in drawn.iter(f"{NS}title")]
    assert "marital-status = Divorced and age <= 40: <=50K 1203 ± 24, >50K 88 ± 24" in titles


def test_every_node_but_the_root_has_an_edge_however_large_the_tree_is() -> None:
    """Would catch a path that is cut where texts are."""
    for tree in (small(), wide(180, 2)):
        drawn = ElementTree.fromstring(svg(tree))
        edges = next(path.get("d", "") for path in drawn.iter(f"{NS}path") if path.get("class") == "edge")
        splits = len(tree) - tree.leaves
        assert re.fullmatch(r"[MVHq\d. -]+", edges) and edges.count("M") == len(tree) - 1 + splits


def test_bars_show_the_shares_of_the_classes() -> None:
    bars = [float(bar.get("width", 0)) for bar in ElementTree.fromstring(svg(small())).iter(f"{NS}rect")]
    assert sum(bars[:2]) == pytest.approx(64, abs=0.2)
    assert bars[0] / bars[1] == pytest.approx(1203 / 88, rel=0.05)
    assert len(bars) == 7  # the negative count has none


def test_an_empty_leaf_is_drawn_as_it_predicts() -> None:
    counts = np.array([[0, 0], [0, 9], [0, 0]], float)
    empty = Tree.grown(PEOPLE, np.array([0, -1, -1]), np.array([9, -1, -1]), counts, np.zeros(3), np.full(3, np.nan))
    assert text(model(empty)).count(": >50K (") == 2  # its parent's class


@pytest.mark.parametrize("arity", [2, 3, 200])
def test_two_hundred_leaves_are_all_drawn(arity: int) -> None:
    tree = wide(199 if arity == 3 else 200, arity)
    assert "more lea" not in svg(tree) and rows_of(svg(tree)) == tree.leaves


@pytest.mark.parametrize("tree", [wide(5000, 2), wide(5000, 7), wide(5000, 5000), chain(3000)], ids=len)
def test_a_large_tree_loses_its_deepest_levels(tree: Tree) -> None:
    drawn = svg(tree)
    assert len(drawn) < 1_000_000 and len(page(model(tree))) < 1_000_000
    assert 150 < rows_of(drawn) <= 200
    shown = [node.text or "" for node in ElementTree.fromstring(drawn).iter(f"{NS}title")]
    assert hidden_in(drawn, "lea") > 0
    stubs = drawn.count("more lea")
    assert rows_of(drawn) - stubs + hidden_in(drawn, "lea") == tree.leaves
    if tree.leaves == 5000 and len(tree) == 9999:  # balanced: every path is drawn about as deep
        depths = {title.count(" and ") for title in shown if ":" in title and " and " in title}
        assert max(depths) - min(depths) <= 1


def test_nothing_is_drawn_below_a_level_that_is_not_drawn_whole() -> None:
    """A split too wide for the room does not hand it to the grandchildren of its neighbours."""
    domain = Domain((Nominal("t", ("a", "b")), Nominal("w", tuple(range(10))), Nominal("n", (0, 1))), target="t")
    column = np.array([1, 0, 1, *[-1] * 10, 1, -1, 1, -1, -1, -1])  # left 10 leaves, right a chain
    shape = len(column)
    tree = Tree.grown(domain, column, np.full(shape, -1), np.ones((shape, 2)), np.ones(shape), np.full(shape, np.nan))
    drawn = svg(tree, 6)
    assert rows_of(drawn) == 3 and "… 10 more leaves" in drawn and "… 3 more leaves" in drawn


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_a_picture_keeps_to_the_leaves_asked_for(most: int) -> None:
    for tree in (wide(100, 2), wide(100, 9), chain(60), small()):
        assert rows_of(svg(tree, most)) <= most


def test_pictures_follow_the_text_colour_and_fetch_nothing() -> None:
    drawn = svg(small())
    assert "currentColor" in drawn
    for content in (drawn, page(model(small()))):
        assert not re.search(r"(href|src)\s*=|url\(|@import", content)
        assert set(re.findall(r"https?://[^\"' <]+", content)) <= {"http://www.w3.org/2000/svg"}


# -- the page -----------------------------------------------------------------------------------


def test_the_page_tells_promise_cost_trees_rules_and_domain(tmp_path: Path) -> None:
    drawn = page(model(small()))
    assert "epsilon 1 per person" in drawn and "if no person has more than 2 rows" in drawn and "2.72" in drawn
    assert "NOT PRIVATE" not in drawn
    assert "if marital-status = Divorced and age &lt;= 40 then &lt;=50K" in drawn
    assert "Divorced, Never-married, &lt;missing&gt;" in drawn
    model(small()).to_html(tmp_path / "model.html")
    assert (tmp_path / "model.html").read_text(encoding="utf-8") == drawn


def test_the_budget_bar_follows_the_dearest_path() -> None:
    """The label at the root (1/2) is dearer than any path below it (1/10 + 1/5 or 1/10 + 1/10 + 1/5)."""
    assert re.findall(r'flex:([\d.]+);opacity[^"]*" title="([^"]*)"', page(model(small()))) == [
        ("500.000", "level 0: label, 0.5")
    ]
    cheaper = Privacy("a", "b", Fraction(1), 1, (Step(-1, 0, "budget", 1, Fraction(1, 20)), STEPS[0], *STEPS[2:]))
    bar = re.findall(r'title="([^"]*), ([\d.]+)"', page(model(small(), privacy=cheaper)))
    assert [name for name, _ in bar] == [
        "all trees: budget",
        "level 0: attribute",
        "level 1: attribute",
        "level 2: class counts",
    ]
    assert "not spent: 0.55" in page(model(small(), privacy=cheaper))
    assert sum(Fraction(loss) for _, loss in bar) == cheaper.spent


def test_the_budget_bar_of_a_forest_is_as_wide_as_its_budget() -> None:
    """Two trees of 3/10 each on all rows: the first takes 3/10 of the bar. On disjoint rows one stands for both."""
    steps = tuple(Step(tree, 0, "class counts", 1, Fraction(3, 10)) for tree in (0, 1))
    added = page(model(small(), small(), privacy=Privacy("a", "b", Fraction(1), 1, steps)))
    assert re.findall(r'flex:([\d.]+);opacity[^"]*" title="([^"]*)"', added) == [
        ("300.000", "level 0: class counts, 0.3"),
        ("300.000", "the other trees: 0.3"),
    ]
    assert "not spent: 0.4" in added
    disjoint = page(model(small(), small(), privacy=Privacy("a", "b", Fraction(1), 1, steps, disjoint=True)))
    assert re.findall(r"flex:([\d.]+);opacity", disjoint) == ["300.000"] and "not spent: 0.7" in disjoint


def test_a_model_that_is_not_private_says_so_loudly() -> None:
    drawn = page(
        model(small(), privacy=Privacy("a", "b", Fraction(1), reasons=("its noise was <b>seeded</b>", "no ledger")))
    )
    assert "NOT PRIVATE" in drawn and "per person</p>" not in drawn
    assert "<li>its noise was &lt;b&gt;seeded&lt;/b&gt;</li><li>no ledger</li>" in drawn


def test_of_many_trees_twenty_are_drawn() -> None:
    drawn = page(model(*[small()] * 25))
    assert drawn.count("<svg ") == 20 and "… 5 more trees" in drawn and "Tree 20 of 25" in drawn


# -- hostile labels -----------------------------------------------------------------------------


def hostile(labels: list[str]) -> Ensemble:
    domain = Domain((Nominal(labels[0], tuple(labels)), Nominal(labels[1], tuple(labels))), target=labels[0])
    nodes = 1 + len(labels)
    counts = np.arange(nodes * len(labels), dtype=float).reshape(nodes, -1)
    column = np.where(np.arange(nodes) == 0, 0, -1)
    tree = Tree.grown(domain, column, np.full(nodes, -1), counts, np.ones(nodes), np.full(nodes, np.nan))
    steps = tuple(Step(0, level, label[:1000], 1, Fraction(1, 9)) for level, label in enumerate(labels))
    return Ensemble(domain, (tree, tree), Privacy(labels[2][:1000], labels[3][:1000], Fraction(1), 1, steps))


def check_hostile(published: Ensemble) -> None:
    drawn, whole, lines = svg(published.trees[0]), page(published), text(published)
    ElementTree.fromstring(drawn)
    ElementTree.fromstring(re.sub(r"<meta[^>]*>|<!doctype html>", "", whole))  # tags balance: no label opened one
    tags = set(re.findall(r"<([a-zA-Z!?/][^\s>/]*)", whole)) - {"!doctype"}
    assert {tag.strip("/") for tag in tags} <= {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "h1",
            "h2",
            "p",
            "section",
            "sup",
            "div",
            "i",
            "table",
            "tr",
        ),
        *("th", "td", "span", "small", "details", "summary", "ol", "li", "svg", "path", "text", "circle", "rect", "g"),
    }
    assert len(whole) < 1_000_000
    assert all(letter >= " " or letter == "\n" for letter in drawn + whole + lines)
    assert not re.search("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", drawn + whole + lines)
    assert len(lines.splitlines()) == 1 + 2 * len(published.trees[0])
    (drawn + whole).encode()


def test_no_label_is_more_than_text() -> None:
    check_hostile(hostile(EVIL))
    published = hostile(EVIL[1:] + EVIL[:1])
    check_hostile(published)
    for content in (page(published), svg(published.trees[0]), published._repr_html_()):
        assert "<script" not in content and "<img" not in content and "\x1b" not in content
    assert "␛[31m" in text(published)


@PROPERTY
@given(st.lists(st.text(st.characters(), max_size=30), min_size=4, max_size=6, unique=True))
def test_any_label_is_only_text(labels: list[str]) -> None:
    check_hostile(hostile(["t" + label for label in labels]))


def test_a_long_label_is_short_in_the_picture_and_whole_in_its_tooltip() -> None:
    long = "Married to somebody who serves in the armed forces"
    domain = Domain((Nominal("t", ("a", "b")), Nominal("x", (long, "no"))), target="t")
    tree = Tree.grown(domain, np.array([0, -1, -1]), np.full(3, -1), np.ones((3, 2)), np.ones(3), np.full(3, np.nan))
    label = next(
        node
        for node in ElementTree.fromstring(svg(tree)).iter(f"{NS}text")
        if node.find(f"{NS}title") is not None and "Married" in "".join(node.itertext())
    )
    title = label.find(f"{NS}title")
    assert title is not None and title.text == f"x = {long}" and (title.tail or "").endswith("…")
    assert len(title.tail or "") <= 24


def test_many_classes_are_told_by_the_largest() -> None:
    domain = Domain((Nominal("t", tuple(range(300))), Nominal("x", (1, 2))), target="t")
    counts = np.tile(np.arange(300.0), (3, 1))
    tree = Tree.grown(domain, np.array([0, -1, -1]), np.full(3, -1), counts, np.ones(3), np.full(3, np.nan))
    drawn = text(model(tree))
    assert "x = 1: 299 (299 299 ± 2, 298 298 ± 2," in drawn and drawn.splitlines()[1].endswith(", ...)")
    assert "… 270 more classes" in page(model(tree))
