"""The report of an audit: it tells everything, believes no text it is given and loads nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labels import EVIL
from markupsafe import escape
from published import posterior_audit as audit

import privet
from privet.risk import Audit
from privet.risk.disclosure import own_rows
from privet.risk.exposed_tree import LEAVES, exposed_tree, key, level, parts_of, posteriors, spots_of
from privet.risk.findings import Remedy
from privet.risk.measures import measure
from privet.risk.page import page
from privet.risk.people import Belief, People, uniform
from privet.risk.publication import Publication
from privet.risk.tree import Equals, Node, PublishedTree

TREE = """sex = f: flu (3.0/1.0)
sex = m
|   age = old: ulcer (2.0)
|   age = young: flu (2.0/1.0)
"""
CALM = "sex = f: flu (3.0/1.0)\nsex = m: ulcer (4.0/1.0)\n"
PEOPLE = pd.DataFrame(
    [["f", "old"], ["f", "young"], ["f", "young"], ["m", "old"], ["m", "old"], ["m", "young"], ["m", "young"]],
    columns=["sex", "age"],
)
TRUTH = ["flu", "flu", "ulcer", "ulcer", "ulcer", "flu", "ulcer"]
VOID = {"meta", "br"}
SECTIONS = [
    "Three numbers",
    "What to do about it",
    "Who is concerned",
    "How surely people are known",
    "Where they are in",
    "What this is about",
    "What can be inferred",
    "What is assumed",
    "Notes of the adversaries",
    "How to read this",
]


def made(tree: str = TREE, **options: object) -> Audit:
    """The two old men are known: their leaf says so."""
    asked = {"sensitive": "illness", "values": ["flu", "ulcer"], "name": "j48.txt", **options}
    return audit(tree, PEOPLE, **asked)  # type: ignore[arg-type]


class Tags(HTMLParser):
    """The tags of a page; it fails where one is not closed."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pictures(content: str) -> list[ElementTree.Element]:
    return [
        ElementTree.fromstring(found)
        for found in re.findall(r'<svg class="[^"]*" viewBox[^>]* role="img".*?</svg>', content, re.DOTALL)
    ]


def test_a_report_tells_everything_in_order_and_loads_nothing() -> None:
    found = made(truth=TRUTH)
    content = page(found)
    tags = Tags(content)
    places = [content.index(f"<h2>{title}") for title in SECTIONS]
    assert places == sorted(places)
    assert "script" not in tags.tags and "img" not in tags.tags and "link" not in tags.tags
    assert not [name for name in tags.attributes if name.startswith("on") or name in ("src", "href")]
    assert "http" not in content.replace("http-equiv", "")
    assert "default-src 'none'" in content
    assert 'class="alarm"' in content and "of 2 of 7 people is known" in content
    assert str(found.counted) in content
    for words in ("D floored", "sex = m, age = old", "all of its 2 people are ulcer", *found.assumptions):
        assert str(escape(words)) in content


def test_a_report_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    found = made(remedies=False)
    assert found.to_html(tmp_path / "report.html") == (tmp_path / "report.html").read_text(encoding="utf-8")


def test_every_column_explains_itself() -> None:
    content = page(made(truth=TRUTH))
    heads = re.findall(r'<th class="number" title="([^"]+)">([^<]+)</th>', content)
    expected = ["worst", "mean", "known", "entropy loss", "D", "D floored", "right", "l", "alpha, k", "t"]
    assert [name for _, name in heads] == expected
    for means, name in heads:
        assert f"<dt>{name}</dt><dd>{means}</dd>" in content
    assert "D floored" not in page(made())  # nobody can tell without the truth


def test_nobody_exposed_is_calm_and_needs_nothing() -> None:
    content = page(made(CALM, criterion="none"))
    assert 'class="alarm"' not in content and 'class="good"' in content
    assert '<p class="big">Publish</p>' in content and "What to do about" not in content


def test_two_audits_stand_side_by_side() -> None:
    raw, calm = made(truth=TRUTH), made(CALM, truth=TRUTH, name="calm.txt")
    content = page(raw, calm)
    Tags(content)
    assert content.count('class="big"') == 2
    assert "j48.txt makes 2 people known and calm.txt 0, 2 fewer; the worst posterior is 1.000 and 0.750." in content
    assert len(pictures(content)) == 4  # two histograms, two trees
    table = content[content.index("What can be inferred") : content.index("Who they are")]
    assert table.count("maximum entropy<small>j48.txt") == table.count("maximum entropy<small>calm.txt") == 1
    assert content.count("The sensitive attribute has the public values listed here") == 1  # said of both


def test_a_model_without_leaves_has_no_tree() -> None:
    frame = privet.datasets.census(200, seed=5)[["sex", "education", "income"]]
    domain = privet.datasets.census_domain()
    domain = replace(domain, columns=tuple(column for column in domain if column.name in frame.columns))
    model = privet.NaiveBayesClassifier(1, domain=domain).fit(frame.drop(columns="income"), frame["income"]).model_
    content = page(audit(model, frame, sensitive="income"))
    Tags(content)
    assert "Where they are" not in content and "Who is concerned" not in content
    assert "prediction" in content and "noise for epsilon 1" in content
    assert "<b>Prediction</b>" in content
    assert "maximum entropy" not in content.lower() and "possible worlds" not in content.lower()


def test_a_private_model_is_told_in_computed_numbers() -> None:
    content = page(replace(made(), epsilon=1.0))
    assert "a yes-or-no fact of that person goes from 50% to at most about 88%" in content  # as on all pages
    assert not re.search(r"\bsafe\b", content)


def test_the_best_remedy_is_marked() -> None:
    remedies = (
        Remedy("merge leaves", "Merge them.", True, 0.6, 0, 0.7, 0.9),
        Remedy("withhold counts", "Say less.", True, 0.7, 0, 0.9, 0.9),
        Remedy("withhold rates", "Say nothing.", False, 1.0, 2, 0.9, 0.9),
        Remedy("withhold weights", "Say labels.", False, 0.7, 0, 0.9, 0.9),
    )
    content = page(replace(made(), remedies=remedies))
    assert re.findall(r'data-head="enough\?">(?:<span class="chip">)?([^<]+)', content) == [
        "yes",
        "yes, the best",
        "no",
        "not known",
    ]
    assert re.findall(r'<tr class="best"><td>([^<]+)', content) == ["Say less."]
    assert "90.0% → 70.0%" in content


@pytest.mark.parametrize("evil", EVIL, ids=lambda words: repr(words)[:20])
def test_no_label_is_more_than_text(evil: str) -> None:
    """Would catch a value, a column or a name of a model that becomes a tag or an attribute of the report."""
    name, evil = evil, evil.replace("\ud800", "")  # no table holds half a letter
    tree = PublishedTree(
        (
            Node(),
            Node(0, Equals(evil, "x"), label=0, size=2, wrong=0),
            Node(0, Equals(evil, evil), label=1, size=1, wrong=0),
        ),
        (evil, "other"),
        "Weka",
    )
    found = audit(tree, pd.DataFrame({evil: ["x", "x", evil]}), sensitive=evil + "?", name=name)
    for content in (page(found), page(found, found)):
        tags = Tags(content)
        assert "script" not in tags.tags and "img" not in tags.tags
        assert not [name for name in tags.attributes if name.startswith("on")]
        assert not set("\x00\x07\x1b\u202e\ufffe\ud800") & set(content)
        assert len(content) < 200_000
        assert pictures(content)


# -- pictures -----------------------------------------------------------------------------------


def drawn(sure: list[float], people: list[int] | None = None, threshold: float = 0.8) -> Audit:
    """An audit of a tree with a leaf for each profile, by an adversary who is as sure as that of one of two values."""
    names = [f"v{number}" for number in range(len(sure))]
    frame = pd.DataFrame({"x": np.repeat(names, people or [1] * len(sure))})
    table = People.of(frame, ["x"])
    nodes = (Node(), *(Node(0, Equals("x", name), label=0) for name in names))
    publication = Publication.of(PublishedTree(nodes, ("yes", "no"), "Weka"), table)
    order = [names.index(str(value)) for value in table.attributes[0].texts]
    shares = np.array([[sure[at], 1 - sure[at]] for at in order])
    beliefs = {"uniform": uniform(table, 2), "possible worlds": Belief("possible worlds", shares)}
    return Audit(
        name="made.txt",
        sensitive="y",
        values=("yes", "no"),
        people=table,
        beliefs=beliefs,
        overall={name: measure(table, belief, threshold=threshold) for name, belief in beliefs.items()},
        own=own_rows(publication, {}, np.array([0.5, 0.5])),
        measure="posterior",
        threshold=threshold,
        exposures=(),
        assumptions=(),
        notes=(),
        publication=publication,
    )


def test_the_histogram_counts_everybody_once() -> None:
    picture = ElementTree.fromstring(posteriors(drawn([0.5, 0.62, 0.97, 1.0], [5, 20, 3, 2])).inline)
    titles = [each.text for each in picture.iter("title")]
    assert titles == [
        "0.50 to 0.55: 5 people",
        "0.60 to 0.65: 20 people",
        "0.95 to 1.00: 5 people, 2 of them certain",
    ]
    said = picture.get("aria-label")
    assert said is not None and "0.95 to 1.00: 5; 0.60 to 0.65: 20; 0.50 to 0.55: 5" in said
    assert "at most 0.500; the threshold is 0.8" in said
    assert "0.8" in [each.text for each in picture.iter("text") if each.get("class") == "alarmed"]


@given(st.lists(st.floats(0.5, 1.0), min_size=2, max_size=30), st.floats(0.05, 1.0))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_bars_and_numbers_stay_on_their_paper(sure: list[float], threshold: float) -> None:
    found = drawn(sure, threshold=threshold)
    picture = ElementTree.fromstring(posteriors(found).inline)
    _, _, wide, high = map(float, str(picture.get("viewBox")).split())
    for each in picture.iter("rect"):
        assert 0 <= float(str(each.get("x"))) and float(str(each.get("x"))) + float(str(each.get("width"))) <= wide
        assert 0 <= float(str(each.get("y"))) <= high
    counted = sum(int(str(each.text).split(": ")[1].split()[0]) for each in picture.iter("title"))
    assert counted == found.people.total
    ElementTree.fromstring(exposed_tree(found).inline)
    assert [shade for shade, _ in key(found)] == sorted(shade for shade, _ in key(found))


def test_colours_rise_with_the_posterior_and_alarm_begins_at_the_threshold() -> None:
    for threshold in (0.3, 0.8, 0.95, 1.0):
        levels = [level(posterior, threshold, 4) for posterior in np.linspace(0.25, 1, 76)]
        assert levels == sorted(levels) and levels[-1] == 4
        assert level(threshold, threshold, 4) >= 3 > level(threshold - 0.01, threshold, 4)
    assert level(0.25, 0.2, 4) == 3  # an even share reaches such a threshold


def test_a_leaf_says_in_words_what_its_colour_says() -> None:
    picture = exposed_tree(drawn([0.9, 0.6], [4, 1])).inline
    assert "0.900" in picture and "4 people, all concerned" in picture
    assert "0.600" in picture and "1 person<" in picture
    assert 'class="e3"' in picture and 'class="e1"' in picture
    assert "x = v0: 4 people, 4 known with 0.8 or more, worst posterior 0.900" in picture


def deep(levels: int) -> tuple[PublishedTree, pd.DataFrame]:
    """A tree of two branches a node; everybody has a leaf of their own."""
    nodes, level = [Node()], [(0, 0)]
    while level:
        parent, depth = level.pop(0)
        if depth < levels:
            for value in "ab":
                last = depth == levels - 1
                nodes.append(Node(parent, Equals(f"c{depth}", value), label=0 if last else None))
                level.append((len(nodes) - 1, depth + 1))
    rows = [[("a", "b")[row >> each & 1] for each in range(levels)] for row in range(2**levels)]
    return PublishedTree(tuple(nodes), ("yes", "no"), "Weka"), pd.DataFrame(
        rows, columns=[f"c{i}" for i in range(levels)]
    )


def test_a_large_tree_is_folded_and_nobody_is_left_out() -> None:
    """Would catch rows that are dropped where a picture ends, and a fold that hides who is known."""
    tree, frame = deep(10)
    table = People.of(frame, list(frame.columns))
    shares = np.full((len(table), 2), 0.5)
    shares[7] = [1.0, 0.0]
    publication = Publication.of(tree, table)
    found = replace(
        drawn([0.5, 0.5]),
        people=table,
        publication=publication,
        beliefs={"uniform": uniform(table, 2), "possible worlds": Belief("possible worlds", shares)},
    )
    spots = spots_of(tree, parts_of(publication, found))
    ends = [spot for spot in spots if not spot.is_split]
    assert 150 < len(ends) <= LEAVES
    assert sum(spot.part.people for spot in ends) == 1024 and sum(spot.part.leaves for spot in ends) == 1024
    (known,) = [spot for spot in ends if spot.part.known]
    assert known.part.people == 1  # unfolded down to the one leaf that gives somebody away
    picture = exposed_tree(found).inline
    ElementTree.fromstring(picture)
    assert "… 8 leaves" in picture or "… 4 leaves" in picture


def test_a_root_with_too_many_children_shows_the_known_and_sums_up_the_others() -> None:
    sure = [0.5] * 700 + [1.0] * 3 + [0.5] * 300
    found = drawn(sure)
    assert found.publication is not None
    spots = spots_of(found.publication.tree, parts_of(found.publication, found))
    assert len(spots) <= LEAVES + 1
    assert sum(spot.part.people for spot in spots if not spot.is_split) == len(sure)
    assert sum(spot.part.known for spot in spots if len(spot.nodes) == 1 and not spot.is_split) == 3
    assert f"{len(sure) - LEAVES + 1:,} people" in exposed_tree(found).inline


def test_leaves_without_people_are_left_out() -> None:
    found = audit(TREE, PEOPLE[PEOPLE.sex == "f"], sensitive="illness", published="labels", values=["flu", "ulcer"])
    content = page(found)
    assert "2 leaves that nobody is in are left out" in content


def test_what_is_audited_is_called_by_what_it_is() -> None:
    table = privet.open(privet.datasets.census(500), privet.datasets.census_domain(), budget=1)
    model = privet.PriorClassifier(epsilon="1").fit(table).model_
    people = privet.datasets.census(500).drop(columns="income")
    published = people.groupby("sex", observed=True).size().rename("count").reset_index().assign(income="low")
    assert (
        "<h1>What <em>the model</em> tells about income</h1>"
        in privet.audit(model, people, sensitive="income").to_html()
    )
    found = privet.audit(published, people[["sex"]], sensitive="income", values=["low", "high"])
    assert "<h1>What <em>the table</em> tells about income</h1>" in found.to_html()
