"""`privet.audit`, end to end: what comes in, what is refused, what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from published import EXAMPLE, FIRST, LOW, example_tree, id3, posterior_audit, random_rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, export_text

import privet
from privet.errors import DataError, ModelError, PrivetError

QI = EXAMPLE[["age", "education"]]
WEKA = "age = Youth: <=50K (2.0)\nage = Senior: <=50K (2.0/1.0)\nage = MiddleAge: >50K (2.0)\n"


def example(**more: object) -> privet.Audit:
    return posterior_audit(example_tree(), QI, sensitive="salary", **more)


def test_the_example_is_disclosed_by_possible_worlds_and_not_by_maximum_entropy() -> None:
    found = example(truth=EXAMPLE["salary"])
    assert found.overall["possible worlds"].known == 6
    assert found.overall["maximum entropy"].known == 4
    assert found.overall["maximum entropy"].overall == pytest.approx(0.2310, abs=5e-5)
    assert found.overall["possible worlds"].overall == pytest.approx(0, abs=1e-9)
    assert not found.safe and found.worst == 1 and found.known == 6


def test_it_says_who_is_exposed_and_why() -> None:
    because = {each.who: each.because for each in example().exposures}
    assert because["age = Youth, education = Doctorate"] == f"the leaf says that all of its 2 people are {LOW}"
    assert because["age = Senior, education = Masters"] == "'age' was chosen at 'all rows' and not education"


def test_counts_of_a_leaf_are_the_reason_only_of_what_they_can_tell() -> None:
    """A row adds at most 1 / n by the counts of a leaf of n people; where it adds more, a choice above says so."""
    people = pd.concat([privet.datasets.census(600, seed=1).dropna()] * 5, ignore_index=True)
    rng = np.random.default_rng(0)
    anew = np.where(rng.random(len(people)) < 0.1, rng.choice(["low", "high"], len(people)), people["income"])
    known = people[["age", "hours"]]
    tree = DecisionTreeClassifier(random_state=0, max_depth=6).fit(known, anew)
    found = privet.audit(tree, known, sensitive="income", remedies=False)
    assert max(each.disclosure for each in found.exposures) > 0.1
    for each in found.exposures:
        if each.because.startswith("the counts of the leaf, where "):
            there = int(each.because.removeprefix("the counts of the leaf, where ").split()[0])
            assert each.disclosure <= 1 / there + 1e-6


def test_the_same_tree_as_text_and_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "tree.txt").write_text(WEKA)
    QI.to_csv(tmp_path / "qi.csv", index=False)
    for tree in (WEKA, tmp_path / "tree.txt", str(tmp_path / "tree.txt")):
        found = posterior_audit(tree, tmp_path / "qi.csv", sensitive="salary", criterion="entropy")
        assert found.overall["possible worlds"].known == 6
    assert posterior_audit(WEKA, QI, sensitive="salary").overall["possible worlds"].known == 4


def test_individuals_has_a_row_for_each_profile() -> None:
    frame = example(truth=EXAMPLE).individuals
    assert list(frame["people"]) == [1, 2, 2, 1] or frame["people"].sum() == 6
    assert {"age", "education", "leaf", "possible worlds: posterior", "maximum entropy: divergence"} <= set(frame)
    assert len(example().probabilities("possible worlds")) == len(frame)


def test_json_and_repr() -> None:
    content = json.loads(example().to_json())
    assert content["known"] == 6 and content["constraints"]["internal"] == 1
    assert repr(example()) == "<Audit of PublishedTree: 6 of 6 people known with 0.8, worst posterior 1>"


def census(rows: int = 600) -> tuple[pd.DataFrame, privet.Domain]:
    return privet.datasets.census(rows), privet.datasets.census_domain()


def test_a_private_tree_is_audited_by_its_noisy_counts() -> None:
    frame, domain = census()
    target = domain.target_column.name
    raw = privet.ID3Classifier(max_depth=3, domain=domain).fit(frame.drop(columns=target), frame[target])
    private = privet.DiffPID3Classifier(epsilon=1, max_depth=3, domain=domain).fit(
        frame.drop(columns=target), frame[target]
    )
    exact, noisy = (posterior_audit(each, frame, sensitive=target, truth=frame) for each in (raw, private))
    assert exact.worst == pytest.approx(1) and exact.epsilon is None
    assert noisy.epsilon == 1 and noisy.worst < exact.worst and noisy.counted is not None
    assert noisy.counted.internal == 0 and "noise" in noisy.counted.silence
    assert any("e^2" in each for each in noisy.assumptions)


def test_the_own_row_of_a_person_moves_a_private_audit_little() -> None:
    """Among worlds, which weigh data sets by the likelihood of the noise, odds stay within e^(2 epsilon) of even."""
    frame, domain = census(300)
    target = domain.target_column.name
    private = privet.DiffPID3Classifier(epsilon=0.5, max_depth=2, domain=domain).fit(
        frame.drop(columns=target), frame[target]
    )
    shares = posterior_audit(private, frame, sensitive=target).beliefs["possible worlds"].shares
    assert (shares.max(axis=1) / shares.min(axis=1)).max() <= np.exp(2 * 0.5) * (1 + 1e-9)


def test_sums_of_tables_and_forests_are_audited_by_their_predictions() -> None:
    frame, domain = census()
    target = domain.target_column.name
    X, y = frame.drop(columns=target), frame[target]
    for kind in (privet.BoostedTablesClassifier, privet.JagannathanForestClassifier):
        found = posterior_audit(kind(epsilon=1, domain=domain).fit(X, y), frame, sensitive=target, truth=frame)
        assert found.overall["prediction"].worst < 1 and found.publication is None
    with privet.testing.seeded_noise(1):
        seeded = privet.BoostedTablesClassifier(epsilon=1, domain=domain).fit(X, y)
    with pytest.raises(ModelError, match="not private"):
        posterior_audit(seeded, frame, sensitive=target)


@pytest.mark.parametrize("kind", [privet.DiffPC45Classifier, privet.NaiveBayesClassifier])
def test_rows_of_one_person_are_said_to_be_counted_as_people(kind: type[privet.DiffPC45Classifier]) -> None:
    frame, domain = census()
    for person in ("", "who"):
        visits = pd.concat([frame, frame], ignore_index=True).assign(who=[*range(len(frame))] * 2)
        declared = domain.with_person("who", rows_per_person=2) if person else domain
        model = kind(epsilon=1).fit(privet.open(visits, declared, budget="1")).model_
        notes = " ".join(posterior_audit(model, visits, sensitive="income", worlds=False, remedies=False).notes)
        assert ("whose 'who' says whose row it is, and at most 2 rows of a person counted" in notes) == bool(person)


def test_a_tree_of_scikit_learn_as_object_and_as_text() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 9, 200), "z": rng.normal(size=200).round(1)})
    y = np.where(frame["x"] + frame["z"] > 4, "yes", "no")
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, y)
    found = posterior_audit(tree, frame, sensitive="y", truth=y)
    assert found.counted is not None and found.counted.internal > 50
    text = export_text(tree, feature_names=["x", "z"], show_weights=True, decimals=6)
    again = posterior_audit(text, frame, sensitive="y", truth=y, criterion="gini")
    assert again.beliefs["maximum entropy"].shares == pytest.approx(found.beliefs["maximum entropy"].shares, abs=1e-3)
    forest = posterior_audit(RandomForestClassifier(3, random_state=0).fit(frame, y), frame, sensitive="y", truth=y)
    assert forest.overall["all together"].guessed > found.overall["maximum entropy"].guessed


def test_training_rows_known_and_unknown() -> None:
    frame = random_rows(np.random.default_rng(4), 80, 3, 2)
    tree = id3(frame.iloc[:50], "s")
    qi = frame.drop(columns="s").assign(used=["yes"] * 50 + ["no"] * 30)
    known = posterior_audit(tree, qi, sensitive="s", training="used", remedies=False)
    unknown = posterior_audit(tree, qi.drop(columns="used"), sensitive="s", training="unknown", remedies=False)
    assert known.people.total == 50 and unknown.people.total == 80
    assert unknown.overall["maximum entropy"].mean < known.overall["maximum entropy"].mean
    assert "unknown part" in " ".join(unknown.assumptions)
    by_marks = posterior_audit(
        tree, frame.drop(columns="s"), sensitive="s", training=np.arange(80) < 50, remedies=False
    )
    assert by_marks.worst == known.worst
    with pytest.raises(DataError, match=r"says it has .* rows, but .* people of the table are there"):
        posterior_audit(tree, frame.drop(columns="s"), sensitive="s")


def test_merging_makes_a_tree_whose_worst_posterior_is_below_the_threshold(tmp_path: Path) -> None:
    frame, domain = census(2000)
    target = domain.target_column.name
    raw = privet.ID3Classifier(max_depth=4, domain=domain).fit(frame.drop(columns=target), frame[target])
    found = posterior_audit(raw, frame, sensitive=target, truth=frame, threshold=0.9)
    merge = found.remedies[0]
    assert merge.kind == "merge leaves" and merge.enough and merge.worst < 0.9
    assert merge.accuracy is not None and merge.cost is not None and merge.cost >= 0
    merge.save(tmp_path / "safe.json")
    again = posterior_audit(tmp_path / "safe.json", frame, sensitive=target, truth=frame, threshold=0.9)
    assert again.safe and again.worst == pytest.approx(merge.worst) and again.remedies == ()


def test_a_merged_text_can_be_audited_again(tmp_path: Path) -> None:
    frame = random_rows(np.random.default_rng(9), 60, 3, 2)
    tree = replace(id3(frame, "s"), criterion=None)
    asked: dict[str, Any] = {"sensitive": "s", "threshold": 0.7, "values": ["0", "1"]}
    assert not posterior_audit(tree, frame, **asked, truth=frame).remedies[0].enough  # a rule chose that is not known
    merge = posterior_audit(tree, frame, **asked, truth=frame, criterion="none").remedies[0]
    merge.save(tmp_path / "safe.txt")
    assert posterior_audit(tmp_path / "safe.txt", frame, **asked, criterion="none").safe
    assert not posterior_audit(tmp_path / "safe.txt", frame, **asked).safe


def test_saying_less_and_a_private_model_are_tried() -> None:
    frame, domain = census(500)
    target = domain.target_column.name
    X, y = frame.drop(columns=target), frame[target]
    raw = privet.ID3Classifier(max_depth=3, domain=domain).fit(X, y)
    tried = []

    def refit(epsilon: float) -> object:
        tried.append(epsilon)
        return privet.DiffPID3Classifier(epsilon=epsilon, max_depth=3, domain=domain).fit(X, y)

    found = posterior_audit(raw, frame, sensitive=target, truth=frame, refit=refit, threshold=0.95)
    kinds = [each.kind for each in found.remedies]
    assert kinds[0] == "merge leaves" and "withhold rates" in kinds and kinds[-1] == "epsilon"
    assert tried[0] == 10 and found.remedies[-1].worst is not None and found.remedies[-1].accuracy is not None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"qi": QI.drop(columns="age")}, "the tree looks at 'age', which is not among the columns of the table"),
        ({"values": ["low", "high"]}, "not among the public values"),
        ({"qi": QI.iloc[:0]}, "has no rows, so there is nobody to audit"),
        ({"qi": QI.iloc[:5]}, "the leaf 'age = MiddleAge' says it has 2 rows, but 1 people of the table are there"),
        ({"qi": "nowhere.csv"}, "there is no file 'nowhere.csv'"),
        ({"tree": "nowhere.txt"}, "nowhere.txt"),
        ({"tree": "age = Youth\n"}, "line 1"),
        ({"truth": ["x"] * 6}, "which is not among the public values"),
        ({"truth": [LOW]}, "there are 1 true values for 6 people"),
        ({"threshold": 0.0}, "a probability above 0"),
        ({"published": "counts"}, "publishes rates, not counts"),
        ({"published": "all"}, "published is auto, labels, rates, counts"),
        ({"criterion": "chi-square"}, "chi-square"),
        ({"columns": ["age", "shoe size"]}, "no column 'shoe size'"),
        ({"training": "used"}, "not a column of the table"),
        ({"marginal": {"<=50K": 0.9, ">50K": 0.1}}, "marginal"),
        ({"marginal": {"5": 1.0}}, "marginal names '5'"),
        ({"qi": FIRST}, "the tree looks at 'age'"),
        ({"qi": 7}, "not a int"),
    ],
)
def test_bad_input_is_one_sentence(asked: dict[str, object], words: str) -> None:
    given = {"tree": WEKA, "qi": QI, "sensitive": "salary", **asked}
    with pytest.raises(PrivetError) as raised:
        posterior_audit(given.pop("tree"), given.pop("qi"), **given)
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_model_of_another_attribute_is_refused() -> None:
    frame, domain = census(200)
    target = domain.target_column.name
    raw = privet.ID3Classifier(max_depth=1, domain=domain).fit(frame.drop(columns=target), frame[target])
    with pytest.raises(ModelError, match=f"the model predicts '{target}'"):
        posterior_audit(raw, frame, sensitive="sex")
