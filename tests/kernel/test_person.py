"""Who a person is: the promise holds for a person with all their rows, through domain, table, ledger and learners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import DataError, DomainError, PrivacyError
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.memory.engine import MemoryEngine
from privet.kernel.engines.reference import ReferenceEngine
from privet.kernel.person import counted, person_text

VISITS = Domain(
    (
        Nominal("ward", ("a", "b", "c")),
        Numeric("days", Fraction(0), Fraction(30), Fraction(1), bins=3),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
    rows_per_person=2,
    person="patient",
)

EXACT = 500  # an epsilon at which an answer is as good as exact

rows = st.tuples(st.sampled_from("abcx"), st.integers(0, 30), st.sampled_from(["no", "yes"]))
owned = st.tuples(rows, st.sampled_from(["me", "you", "they", "7", "7.0", "", None]))


def kept(domain: Domain, table: list[tuple[Any, Any]]) -> Counter[Any]:
    """The codes that count, of whomsoever."""
    engine = ReferenceEngine(domain, [(*row, person) for row, person in table])
    return Counter(tuple(row.codes.values()) + tuple(row.indices.values()) for row in engine.rows)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(owned, max_size=30), st.lists(rows, max_size=40), st.integers(1, 4))
def test_a_person_adds_at_most_so_many_rows_and_takes_none_away(
    others: list[tuple[Any, Any]], mine: list[Any], most: int
) -> None:
    """The neighbour test, exactly: with or without a person, however many rows they have."""
    domain = replace(VISITS, rows_per_person=most)
    without = kept(domain, others)
    with_me = kept(domain, [*others, *((row, "a new person") for row in mine)])
    assert not without - with_me
    assert (with_me - without).total() <= most


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(owned, max_size=40), st.randoms(use_true_random=False))
def test_arrays_count_the_rows_that_the_reference_counts(table: list[tuple[Any, Any]], order: Any) -> None:
    expected = kept(VISITS, table)
    order.shuffle(table)
    frame = pd.DataFrame([(*row, person) for row, person in table], columns=[*VISITS.names, "patient"], dtype=object)
    engine = MemoryEngine.from_frame(frame, VISITS)
    found = Counter(zip(*engine._codes.tolist(), *engine._grids.tolist(), strict=True))
    assert found == Counter((*codes[:3], codes[4]) for codes in expected.elements())


@pytest.mark.parametrize(
    "persons",
    [
        np.array([3, 3, 3, 4]),
        np.array([3.0, 3.0, 3.0, np.nan]),
        pd.Series([3, 3, 3, None], dtype="Int64"),
        pd.Series(["3", "3", "3.0", "4"], dtype="string"),
        pd.Series(["3", 3, 3.0, b"x"], dtype=object),
        pd.Series(["a", "a", "a", None], dtype="category"),
    ],
)
def test_every_kind_of_column_can_name_persons(persons: Any) -> None:
    mask = counted(persons, [np.array([0, 1, 2, 3])], 2)
    assert mask[:3].sum() == 2 and mask[3] == (person_text(list(persons)[3]) is not None)


def test_the_domain_file_names_the_person_column() -> None:
    text = VISITS.to_toml()
    assert text.startswith('target = "ill"\nperson = "patient"\nrows_per_person = 2\n')
    assert Domain.parse(text) == VISITS and "2 rows per person counted, by 'patient'" in str(VISITS)
    assert VISITS.fingerprint != replace(VISITS, person=None).fingerprint
    assert "patient" not in VISITS.attributes and "patient" not in VISITS


@pytest.mark.parametrize(
    ("person", "sentence"),
    [
        ("ward", "the person column 'ward' is declared as a column, too"),
        ("", "person is the name of a column, not ''"),
        (7, "person must be a text"),
    ],
)
def test_what_cannot_name_persons_is_refused(person: Any, sentence: str) -> None:
    content = {"person": person, "columns": {"ward": {"kind": "nominal", "values": ["a"]}}}
    with pytest.raises(DomainError, match=sentence):
        Domain.from_dict(content)


def visits(size: int = 300, patients: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    ward = rng.choice(list("abc"), size)
    return pd.DataFrame(
        {
            "ward": ward,
            "days": rng.integers(0, 31, size),
            "ill": np.where((ward == "a") ^ (rng.random(size) < 0.1), "yes", "no"),
            "patient": rng.integers(0, patients, size),
        }
    )


def test_at_most_so_many_rows_of_a_person_are_in_every_answer(tmp_path: Path) -> None:
    """Ten thousand rows of one person, in every part: they count as two, before any condition or part."""
    crowd = visits(10_000, patients=1)
    crowd.to_csv(tmp_path / "crowd.csv", index=False)
    for data in (crowd, tmp_path / "crowd.csv"):
        with privet.open(data, VISITS, budget=10**6) as table:
            assert table.count(EXACT).value == 2
            assert sum(table.partition("ward").partition("days").count(EXACT).array()) == 2
            assert sum(table.where(ward=ward).count(EXACT).value for ward in "abc") == 2
            assert sum(table.scatter(5, random_state=0).count(EXACT).array()) == 2
            assert table.explain().endswith("epsilon is per person, whom 'patient' names, with all their rows")


def test_the_person_column_is_in_no_question() -> None:
    with privet.open(visits(), VISITS, budget=10**6) as table:
        asks: list[Callable[[], object]] = [
            lambda: table.histogram("patient", epsilon=1),
            lambda: table.where(patient=3),
            lambda: table.partition("patient"),
            lambda: table.sum("patient", 1),
            lambda: table.select("max", 1, attributes=["patient"]),
        ]
        for ask in asks:
            with pytest.raises(privet.errors.UndeclaredDomain, match="'patient' says whose row it is, and no question"):
                ask()
        assert table.budget.spent == 0


def test_fit_needs_the_person_column_and_predict_does_not() -> None:
    frame = visits()
    X, y = frame.drop(columns="ill"), frame["ill"]
    tree = privet.MaxTreeClassifier(epsilon=20, domain=VISITS, random_state=0).fit(X, y)
    assert list(tree.feature_names_in_) == ["ward", "days"] and tree.n_features_in_ == 2
    predicted = tree.predict(X.drop(columns="patient"))
    assert (tree.predict(X) == predicted).all() and tree.score(X.drop(columns="patient"), y) > 0.8
    assert "per person, whom 'patient' names, with all their rows" in str(tree.privacy_)
    assert privet.models.privacy_record.Privacy.from_dict(tree.privacy_.to_dict()) == tree.privacy_
    for wrong in (X.drop(columns="patient"), X.to_numpy()):
        with pytest.raises(DataError, match="the domain says by the column 'patient' whose row it is"):
            privet.MaxTreeClassifier(epsilon=20, domain=VISITS).fit(wrong, y)


def test_rows_are_added_by_person_too() -> None:
    frame = visits()
    X, y = frame.drop(columns="ill"), frame["ill"]
    forest = privet.JagannathanForestClassifier(epsilon=20, domain=VISITS, random_state=0, n_estimators=2)
    forest.partial_fit(X, y).partial_fit(X, y)
    assert "with all their rows, in each of 2 tables" in str(forest.privacy_)


@pytest.mark.parametrize("value", [object(), memoryview(b"a"), frozenset({0, 8}), {"a": 1}, [1], "J\ufffdrgen"])
def test_what_has_no_text_of_its_own_names_nobody(value: object) -> None:
    assert person_text(value) is None


def test_without_a_person_column_the_promise_says_what_it_takes_for_granted() -> None:
    frame = visits().drop(columns="patient")
    domain = replace(VISITS, person=None)
    tree = privet.MaxTreeClassifier(epsilon=20, domain=domain).fit(frame.drop(columns="ill"), frame["ill"])
    assert "per person, if no person has more than 2 rows" in str(tree.privacy_)
    assert "if no person has more than 2 rows" in tree.model_.page()


def test_a_ledger_keeps_who_a_person_is(tmp_path: Path) -> None:
    """Losses of other people do not add: neither an opening nor the owner can change whom the charges protect."""
    file = tmp_path / "visits.csv"
    visits().to_csv(file, index=False)
    with privet.open(file, VISITS, budget=10) as table:
        table.count(1)
    other_column = replace(VISITS, person="days", columns=(VISITS["ward"], VISITS["ill"]))
    for other in (replace(VISITS, person=None), other_column):
        with pytest.raises(PrivacyError, match="by the column 'patient' who a person is"):
            privet.open(file, other)
    with privet.open(file, VISITS) as table:
        assert table.budget.spent == 1
