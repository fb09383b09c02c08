"""Possible worlds against brute force over all data sets, and against the examples of Zhu and Du (2010)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privet.errors import DataError
from privet.risk.constraints import choices_of
from privet.risk.people import People
from privet.risk.publication import COUNTS, LABELS, LEVELS, RATES, Publication
from privet.risk.tree import ENTROPY, GINI, Equals, Integers, Node, PublishedTree
from privet.risk.worlds import possible_worlds


@dataclass(frozen=True, eq=False)
class Split:
    """A choice, as `possible_worlds` sees it."""

    node: int
    chosen: Integers
    others: list[Integers]
    measure: str

    @property
    def candidates(self) -> Sequence[object]:
        return range(len(self.others))


def impurity(values: np.ndarray, classes: int, measure: str) -> np.ndarray:
    """n I(shares) of the people of a group, in each data set [data set, person]."""
    n = values.shape[1]
    found = np.zeros(len(values))
    for value in range(classes):
        share = (values == value).mean(axis=1)
        if measure == GINI:
            found -= share**2
        else:
            found -= share * np.log2(share, where=share > 0, out=np.zeros_like(share))
    return n * (found + 1 if measure == GINI else found)


def divided(columns: np.ndarray, values: np.ndarray, classes: int, measure: str) -> np.ndarray:
    return sum(impurity(values[:, columns == each], classes, measure) for each in np.unique(columns))


@dataclass(frozen=True, eq=False)
class Grown:
    """A tree grown by ID3 on rows [row, attribute] with values, and all that was compared to grow it."""

    rows: np.ndarray
    values: np.ndarray
    classes: int
    measure: str
    tree: PublishedTree
    members: list[np.ndarray]  # of each node, its rows
    compared: dict[int, tuple[int, list[int]]]  # of each split, the attribute chosen and the others

    @property
    def people(self) -> People:
        frame = pd.DataFrame({f"a{i}": [f"v{code}" for code in column] for i, column in enumerate(self.rows.T)})
        return People.of(frame, list(frame.columns))

    def publication(self, level: str, marginal: bool = False) -> Publication:
        shares = np.bincount(self.values, minlength=self.classes) / len(self.values) if marginal else None
        return Publication.of(self.tree, self.people, level, shares)

    def choices(self, publication: Publication) -> list[Split]:
        codes = publication.people.codes
        return [
            Split(node, codes[at, chosen], [codes[at, other] for other in others], self.measure)
            for node, (chosen, others) in self.compared.items()
            if others
            for at in [publication.profiles[node]]
        ]

    def consistent(self, level: str, with_choices: bool = True, marginal: bool = False) -> np.ndarray:
        """Every data set [data set, person] that is consistent: brute force."""
        worlds = np.stack(np.meshgrid(*[np.arange(self.classes)] * len(self.rows), indexing="ij"), -1)
        worlds = worlds.reshape(-1, len(self.rows))
        for leaf in self.tree.leaves:
            here = self.members[leaf]
            counts = np.stack([(worlds[:, here] == value).sum(axis=1) for value in range(self.classes)], axis=1)
            true = np.bincount(self.values[here], minlength=self.classes)
            label = self.tree.nodes[leaf].label
            fine = counts[:, label] == counts.max(axis=1)
            if level == RATES:
                fine &= counts[:, label] == true[label]
            if level == COUNTS:
                fine &= (counts == true).all(axis=1)
            worlds = worlds[fine]
        for node, (chosen, others) in self.compared.items() if with_choices else ():
            here = self.members[node]
            for other in others:
                least = divided(self.rows[here, chosen], worlds[:, here], self.classes, self.measure)
                rival = divided(self.rows[here, other], worlds[:, here], self.classes, self.measure)
                worlds = worlds[least <= rival + 1e-9 * len(here)]
        if marginal:
            for value in range(self.classes):
                worlds = worlds[(worlds == value).sum(axis=1) == (self.values == value).sum()]
        return worlds

    def beliefs(self, worlds: np.ndarray, people: People) -> np.ndarray:
        """The mean share of each value among the people of each profile."""
        found = np.zeros((len(people), self.classes))
        for profile in range(len(people)):
            mine = worlds[:, people.profile == profile]
            for value in range(self.classes):
                found[profile, value] = (mine == value).mean()
        return found


def grow(rows: np.ndarray, values: np.ndarray, classes: int, measure: str, depth: int) -> Grown:
    nodes: list[Node] = []
    members: list[np.ndarray] = []
    compared: dict[int, tuple[int, list[int]]] = {}

    def add(here: np.ndarray, parent: int, condition: Equals | None, left: list[int], depth: int) -> None:
        number = len(nodes)
        counts = np.bincount(values[here], minlength=classes)
        members.append(here)
        if depth == 0 or not left or counts.max() == len(here):
            label = int(counts.argmax())
            told = tuple(map(float, counts))
            nodes.append(Node(parent, condition, label, float(len(here)), float(len(here) - counts[label]), told))
            return
        nodes.append(Node(parent, condition))
        scores = [float(divided(rows[here, each], values[None, here], classes, measure)[0]) for each in left]
        best = left[int(np.argmin(scores))]
        others = [each for each in left if each != best]
        compared[number] = (best, others)
        for code in np.unique(rows[here, best]):
            add(here[rows[here, best] == code], number, Equals(f"a{best}", f"v{code}"), others, depth - 1)

    add(np.arange(len(rows)), -1, None, list(range(rows.shape[1])), depth)
    names = tuple(f"x{value}" for value in range(classes))
    tree = PublishedTree(tuple(nodes), names, "privet", criterion=measure)
    return Grown(rows, values, classes, measure, tree, members, compared)


@st.composite
def grown(draw: st.DrawFn, most: dict[int, int] | None = None) -> Grown:
    classes = draw(st.integers(2, 3))
    count = draw(st.integers(3, (most or {2: 12, 3: 8})[classes]))
    attributes = draw(st.integers(2, 3))
    rows = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, 2), min_size=attributes, max_size=attributes), min_size=count, max_size=count
            )
        )
    )
    values = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count)))
    return grow(rows, values, classes, draw(st.sampled_from([GINI, ENTROPY])), draw(st.integers(0, 3)))


def number(worlds: object) -> int:
    return int(str(worlds))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(grown(), st.sampled_from(LEVELS), st.booleans(), st.booleans())
def test_equals_brute_force_over_all_data_sets(one: Grown, level: str, with_choices: bool, marginal: bool) -> None:
    publication = one.publication(level, marginal)
    belief = possible_worlds(publication, one.choices(publication) if with_choices else ())
    worlds = one.consistent(level, with_choices, marginal)
    assert (worlds == one.values).all(axis=1).any()  # the truth is among them
    assert number(belief.facts["worlds"]) == len(worlds)
    np.testing.assert_allclose(belief.shares, one.beliefs(worlds, publication.people), atol=1e-9)
    assert belief.exact and belief.facts["not used"] == 0 and not belief.notes


@settings(derandomize=True, deadline=None, max_examples=40)
@given(grown(), st.sampled_from(LEVELS))
def test_choices_of_the_tree_itself_are_the_same(one: Grown, level: str) -> None:
    publication = one.publication(level)
    theirs, mine = choices_of(publication), one.choices(publication)
    assert [choice.node for choice in theirs] == [choice.node for choice in mine]
    found, expected = possible_worlds(publication, theirs), possible_worlds(publication, mine)
    np.testing.assert_allclose(found.shares, expected.shares, atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(grown({2: 30, 3: 20}), st.sampled_from(LEVELS))
def test_drawing_agrees_with_counting(one: Grown, level: str) -> None:
    """At most 90 shares an example are each within 6 standard errors: a false alarm in less than 1e-5 of all runs."""
    publication = one.publication(level)
    choices = one.choices(publication)
    exact = possible_worlds(publication, choices, limit=20_000_000)
    drawn = possible_worlds(publication, choices, limit=0, tries=20_000)
    assume(choices and not exact.facts["not used"] and not drawn.facts["not used"])
    # a value that a person has in none of 1000 drawn worlds shows no error; it has a share below 0.014 (1 - 1e-6)
    assert np.abs(drawn.shares - exact.shares).max() <= max(6 * float(drawn.facts["standard error"]), 0.014)
    assert not drawn.exact or not drawn.facts["standard error"]


# -- Zhu and Du (2010) ---------------------------------------------------------------------------

VALUES = ("<=50K", ">50K")


def leaf(column: str, value: str, label: int, size: int, wrong: int, parent: int = 0) -> Node:
    return Node(parent, Equals(column, value), label, size, wrong)


def example() -> Publication:
    """Example 1: dataset D2 and its tree on Age."""
    people = [("Youth", "Doctorate")] * 2 + [("Senior", "Masters"), ("Senior", "Doctorate")]
    frame = pd.DataFrame(people + [("MiddleAge", "Masters")] * 2, columns=["Age", "Education"])
    nodes = (
        Node(),
        leaf("Age", "Youth", 0, 2, 0),
        leaf("Age", "MiddleAge", 1, 2, 0),
        leaf("Age", "Senior", 0, 2, 1),
    )
    tree = PublishedTree(nodes, VALUES, "Weka", criterion=ENTROPY)
    return Publication.of(tree, People.of(frame, ["Age", "Education"]))


def told(publication: Publication, shares: np.ndarray) -> dict[str, list[float]]:
    people = publication.people
    return {people.told(profile): shares[profile].tolist() for profile in range(len(people))}


def test_example_1_discloses_everybody() -> None:
    publication = example()
    belief = possible_worlds(publication, choices_of(publication))
    assert belief.facts["worlds"] == "1"
    assert told(publication, belief.shares) == {
        "Age = Youth, Education = Doctorate": [1, 0],
        "Age = Senior, Education = Masters": [1, 0],
        "Age = Senior, Education = Doctorate": [0, 1],
        "Age = MiddleAge, Education = Masters": [0, 1],
    }


def test_example_1_without_the_choice_of_the_split() -> None:
    publication = example()
    belief = possible_worlds(publication)
    assert belief.facts["worlds"] == "2"
    assert told(publication, belief.shares) == {
        "Age = Youth, Education = Doctorate": [1, 0],
        "Age = Senior, Education = Masters": [0.5, 0.5],
        "Age = Senior, Education = Doctorate": [0.5, 0.5],
        "Age = MiddleAge, Education = Masters": [0, 1],
    }


def test_figure_1_discloses_three_profiles_from_leaves_alone() -> None:
    rows = {
        "q1": ("Masters", "USA", "Female", 1),
        "q2": ("Masters", "USA", "Male", 1),
        "q3": ("Masters", "Canada", "Male", 2),
        "q4": ("Masters", "Canada", "Female", 2),
        "q5": ("Doctorate", "Canada", "Female", 2),
        "q6": ("Doctorate", "USA", "Male", 2),
        "q7": ("Doctorate", "USA", "Female", 1),
    }
    frame = pd.DataFrame([row[:3] for row in rows.values() for _ in range(row[3])], columns=["Ed", "Country", "Gender"])
    nodes = (
        Node(),
        Node(0, Equals("Ed", "Masters")),
        Node(0, Equals("Ed", "Doctorate")),
        Node(1, Equals("Country", "Canada")),
        leaf("Country", "USA", 0, 2, 1, parent=1),
        leaf("Gender", "Male", 0, 2, 0, parent=3),
        leaf("Gender", "Female", 0, 2, 1, parent=3),
        leaf("Gender", "Female", 1, 3, 0, parent=2),
        leaf("Gender", "Male", 1, 2, 1, parent=2),
    )
    people = People.of(frame, list(frame.columns))
    belief = possible_worlds(Publication.of(PublishedTree(nodes, VALUES, "Weka"), people))
    of_row = belief.shares[people.profile]
    first = np.cumsum([0] + [row[3] for row in rows.values()])[:-1]
    certain = {name for name, at in zip(rows, first, strict=True) if of_row[at].max() == 1}
    assert certain == {"q3", "q5", "q7"}
    assert belief.exact


# -- what cannot be counted, and what does not fit -----------------------------------------------


def flat(size: int, **of_node: object) -> PublishedTree:
    return PublishedTree((Node(label=0, size=size, **of_node),), ("a", "b", "c"), "privet", criterion=GINI)


def alone(size: int) -> People:
    return People.of(pd.DataFrame({"a": ["v"] * size}), ["a"])


def test_a_choice_that_can_be_neither_counted_nor_drawn_is_not_used_and_said_so() -> None:
    rng = np.random.default_rng(3)
    one = grow(rng.integers(3, size=(200, 3)), rng.integers(3, size=200), 3, GINI, 2)
    publication = one.publication(RATES)
    choices = one.choices(publication)
    belief = possible_worlds(publication, choices, limit=10, tries=10)
    assert belief.facts["not used"] == sum(len(choice.others) for choice in choices)
    assert any("not used" in note for note in belief.notes)
    np.testing.assert_allclose(belief.shares, possible_worlds(publication).shares)


def test_progress_names_the_nodes() -> None:
    seen: list[str] = []
    publication = example()
    possible_worlds(publication, choices_of(publication), progress=seen.append)
    assert seen == ["worlds of node 1 of 1: all rows"]


def test_a_tree_that_no_data_set_explains() -> None:
    publication = example()
    [choice] = choices_of(publication)
    # people are divided by Education alone, the other way round: the split would have to be worse than itself
    impossible = Split(0, np.zeros_like(choice.chosen), [choice.chosen], ENTROPY)
    with pytest.raises(DataError, match=r"no data set is consistent .*'all rows'.* not the one it was grown on"):
        possible_worlds(publication, [impossible])


def test_a_marginal_that_contradicts_the_leaves() -> None:
    publication = replace(example(), marginal=np.array([0.9, 0.1]))
    with pytest.raises(DataError, match=r"contradicts the leaves: it says that 5 of 6 people have '<=50K'.* say 3"):
        possible_worlds(publication)


def test_a_marginal_far_from_even_is_met_in_a_large_table() -> None:
    """Labels alone make 'b' rare or common by halves; the marginal says 20%. Exactly 400 of 2000 people have it."""
    frame = pd.DataFrame({"a": ["v0"] * 1500 + ["v1"] * 500})
    nodes = (Node(), Node(0, Equals("a", "v0"), 0), Node(0, Equals("a", "v1"), 1))
    tree = PublishedTree(nodes, ("a", "b"), "privet")
    people = People.of(frame, ["a"])
    belief = possible_worlds(Publication.of(tree, people, LABELS, np.array([0.8, 0.2])))
    assert belief.exact and belief.shares.sum(axis=1) == pytest.approx(1)
    assert people.sizes @ belief.shares == pytest.approx([1600, 400])
    assert belief.shares[1, 1] >= 0.5  # of the leaf whose label it is


def test_a_marginal_of_many_values_is_left_out_and_said_so() -> None:
    publication = Publication.of(flat(400), alone(400), LABELS, np.array([0.5, 0.3, 0.2]))
    belief = possible_worlds(publication, limit=100)
    assert "marginal is not used" in belief.notes[0]


def test_people_whom_the_tree_cannot_place_keep_the_marginal_or_even_shares() -> None:
    frame = pd.DataFrame({"a": ["v0", "v0", "v9"]})
    tree = PublishedTree((Node(), Node(0, Equals("a", "v0"), 0, 2, 0)), ("a", "b"), "privet")
    people = People.of(frame, ["a"])
    assert possible_worlds(Publication.of(tree, people)).shares.tolist() == [[1, 0], [0.5, 0.5]]
    belief = possible_worlds(Publication.of(tree, people, marginal=np.array([1.0, 0.0])))
    assert belief.shares.tolist() == [[1, 0], [1, 0]]
    strangers = People.of(pd.DataFrame({"a": ["v8", "v9"]}), ["a"])
    assert possible_worlds(Publication.of(tree, strangers, LABELS)).shares.tolist() == [[0.5, 0.5]] * 2
    marginal = np.array([0.75, 0.25])
    assert possible_worlds(Publication.of(tree, strangers, LABELS, marginal)).shares.tolist() == [[0.75, 0.25]] * 2


def test_the_rows_of_the_tree_may_be_a_part_of_the_table() -> None:
    tree = flat(4, wrong=1, counts=(3.0, 1.0, 0.0))
    publication = Publication.of(tree, alone(8), COUNTS, sampled=True)
    belief = possible_worlds(publication)
    np.testing.assert_allclose(belief.shares[0], 0.5 * np.array([0.75, 0.25, 0]) + 0.5 / 3)
    known = replace(publication, marginal=np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(possible_worlds(known).shares[0], [0.375, 0.125, 0.5])


def test_labels_of_a_private_tree_exclude_nothing_and_its_counts_little() -> None:
    tree = replace(flat(8, counts=(9.0, 1.0, -2.0), deviation=3.0), epsilon=Fraction(1, 2))
    publication = Publication.of(tree, alone(8), LABELS)
    even = possible_worlds(publication)
    assert even.shares.tolist() == [[1 / 3] * 3] and "all values are alike" in even.notes[0]
    noisy = possible_worlds(replace(publication, level=COUNTS))
    assert noisy.shares[0, 0] > noisy.shares[0, 1] > noisy.shares[0, 2] > 0
    assert noisy.shares[0, 0] < 0.9  # counts without noise would say 9 of 10


def test_a_private_tree_says_nothing_by_its_choices() -> None:
    publication = example()
    private = replace(publication, tree=replace(publication.tree, epsilon=Fraction(1)), level=LABELS)
    belief = possible_worlds(private, choices_of(publication))
    assert belief.facts["not used"] == 1 and "noise took part" in belief.notes[-1]


def test_a_sampled_tree_says_nothing_by_its_choices() -> None:
    publication = replace(example(), sampled=True)
    belief = possible_worlds(publication, choices_of(example()))
    assert belief.facts["not used"] == 1 and "not known" in belief.notes[-1]
