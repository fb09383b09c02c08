"""Published tables, decision lists and association rules: what is read of them, and what attackers learn from them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import DataError, ModelError, PrivetError
from privet.risk.people import People
from privet.risk.readers import count_tables, read_published, rules
from privet.risk.statements import Statements, follow

FUZZ = settings(max_examples=150, deadline=None, derandomize=True)
CELLS = [("476", 25, 20, 5), ("476", 45, 3, 1), ("479", 25, 30, 10), ("479", 45, 40, 39)]
PEOPLE = pd.DataFrame(
    [(area, age, "ill" if at < ill else "well") for area, age, many, ill in CELLS for at in range(many)],
    columns=["zip", "age", "state"],
)
KNOWN = PEOPLE[["zip", "age"]]


def table(*lines: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(lines, columns=["zip", "age", "ill", "well"])


WHOLE = table(("476", "<30", 5, 15), ("476", "30+", 1, 2), ("479", "20-29", 10, 20), ("479", "4*", 39, 1))
MARGINS = table(("476", "total", 6, 17), ("479", "*", 49, 21), ("", "", 55, 38))


def audit(published: Any, **options: Any) -> Any:
    return privet.audit(published, KNOWN, sensitive="state", **options)


# -- what an attacker finds -----------------------------------------------------------------------


def test_a_cell_of_three_is_flagged_and_one_of_twenty_is_not() -> None:
    found = audit(WHOLE)
    assert found.verdict.kind == "publish after these changes"
    assert found.known == 3 and found.worst == pytest.approx((1 - 38 / 93) / 3)  # one of the two who are well
    assert audit(WHOLE.iloc[[0, 2, 3]]).verdict.kind == "publish"


def test_a_suppressed_cell_that_margins_give_back_is_flagged_and_complementary_cells_are_withheld() -> None:
    hidden = WHOLE.astype(object).copy()
    hidden.loc[1, ["ill", "well"]] = "x"
    assert audit(hidden).verdict.kind == "publish"  # nothing else tells
    found = audit(pd.concat([hidden, MARGINS]))
    assert found.verdict.kind == "publish after these changes" and found.known == 3
    assert "difference" in found.exposures[0].because
    assert "Withhold the numbers of" in found.verdict.reason
    assert found.verdict.remedy.worst < 0.1


def test_a_range_that_leaves_one_number_is_no_range() -> None:
    hidden = WHOLE.astype(object).copy()
    hidden.loc[1, ["ill", "well"]] = ["<2", "<3"]  # three people: one and two
    assert audit(hidden).known == 3


def test_two_tables_that_differ_by_one_person_give_that_person_away() -> None:
    """Each table alone has groups of many: the border between them moved over one person."""
    ages = [*range(20, 40), *range(41, 71)]
    people = pd.DataFrame({"age": [40, *ages]})
    one = pd.DataFrame({"age": ["<=40", ">40"], "ill": [8, 12], "well": [13, 18]})
    two = pd.DataFrame({"age": ["<40", ">=40"], "ill": [7, 13], "well": [13, 18]})
    for alone in (one, two):
        assert privet.audit(alone, people, sensitive="state").verdict.kind == "publish"
    found = privet.audit([one, two], people, sensitive="state")
    assert found.known == 1 and found.worst == pytest.approx(1 - 20 / 51)  # all but the baseline
    assert found.ranked.value[found.scores.argmax()] == 0


def test_two_trees_whose_border_moved_over_one_person_give_that_person_away_among_thousands() -> None:
    people = pd.DataFrame({"age": [40, *[30] * 4000, *[50] * 4000]})
    one = "age <= 40: well (4001.0/1201.0)\nage > 40: well (4000.0/1500.0)\n"
    two = "age <= 39: well (4000.0/1200.0)\nage > 39: well (4001.0/1501.0)\n"
    found = privet.audit([one, two], people, sensitive="state", values=["ill", "well"])
    assert found.known == 1 and found.verdict.kind == "do not publish"
    assert found.own.disclosure[0, 0] > 0.6 and found.probabilities("all together").to_numpy()[0, 0] == 1


def test_what_large_groups_say_of_somebody_excuses_nothing_that_a_small_one_contradicts() -> None:
    """One tree has her among the few who are well, the other among the many who are ill: together they settle it."""
    people = pd.DataFrame({"age": [31, *[35] * 19, *[20] * 1000]})
    one = "age <= 30: ill (1000.0/50.0)\nage > 30: well (20.0/1.0)\n"
    two = "age <= 33: ill (1001.0/50.0)\nage > 33: well (19.0)\n"
    found = privet.audit(
        [one, two], people, sensitive="state", values=["ill", "well"], baseline={"ill": 0.5, "well": 0.5}
    )
    assert found.own.disclosure[0, 0] == pytest.approx(0.5) and found.known == 1


def test_margins_that_cross_tell_what_is_learnt_from_others() -> None:
    """Half of the old are ill and nobody of the young: that margin, not her own row, tells of an old woman."""
    people = pd.DataFrame({"age": ["old"] * 200 + ["young"] * 200, "sex": ["f", "m"] * 200})
    margins = pd.DataFrame(
        {
            "age": ["old", "young", "*", "*"],
            "sex": ["*", "*", "f", "m"],
            "ill": [110, 10, 58, 62],
            "well": [90, 190, 142, 138],
        }
    )
    found = privet.audit(margins, people, sensitive="state")
    assert found.verdict.kind == "publish" and found.worst < 0.01
    assert found.probabilities("possible worlds")["ill"].max() > 0.5


def test_a_promise_with_a_delta_names_it() -> None:
    frame = pd.DataFrame({"x": ["a", "b"] * 200, "y": ["u", "v"] * 200})
    model = privet.BoostedTablesClassifier(epsilon=1.0, delta=1e-6, domain=privet.Domain.draft(frame, target="y"))
    found = privet.audit(model.fit(frame[["x"]], frame["y"]), frame, sensitive="y")
    assert "delta 1e-06" in found.verdict.reason and any("delta 1e-06" in said for said in found.assumptions)


def test_a_tree_beside_a_table_gives_away_whom_neither_does() -> None:
    people = pd.DataFrame({"age": [*range(20, 71)]})
    grown = "age <= 40: well (21.0/8.0)\nage > 40: well (30.0/12.0)\n"
    counted = pd.DataFrame({"age": ["<40", ">=40"], "ill": [7, 13], "well": [13, 18]})
    asked: dict[str, Any] = {"sensitive": "state", "values": ["ill", "well"]}
    assert privet.audit(grown, people, **asked, criterion="none").verdict.kind == "publish"
    assert privet.audit([grown, counted], people, **asked).known == 1


def test_overlapping_rules_give_away_whom_they_leave() -> None:
    listed = (
        '"rules","support","confidence","count"\n'
        '"{zip=476} => {state=ill}",0.0645,0.26,6\n"{zip=476,age=25} => {state=ill}",0.0538,0.25,5\n'
    )
    found = audit(listed, values=["ill", "well"])
    assert found.known == 3 and found.verdict.kind == "publish after these changes"
    assert any("not frequent or sure enough" in note for note in found.notes)


def test_a_rule_whose_rounded_figures_determine_its_count_is_as_good_as_the_count() -> None:
    listed = (
        "antecedents,consequents,support,confidence\n"
        "\"frozenset({'zip=476', 'age=45'})\",frozenset({'state=ill'}),0.01,0.33\n"
    )
    found = audit(listed, values=["ill", "well"])
    assert found.known == 3


def test_a_small_rule_of_a_list_with_a_label_alone_is_flagged() -> None:
    listed = "PART decision list\n\nzip = 476 AND\nage > 30: well\n\n: ill\n"
    found = audit(listed)
    assert found.known == 3 and found.worst > 0.1


def test_the_rest_of_a_decision_list_is_a_group_too() -> None:
    listed = "PART decision list\n\nzip = 479: ill (70.0/21.0)\n\nage <= 30: well (20.0/5.0)\n\n: well (3.0/1.0)\n"
    assert audit(listed).known == 3
    printed = (
        "JRIP rules:\n===========\n\n(zip = 479) => state=ill (70.0/21.0)\n(age <= 30) => state=well (20.0/5.0)\n"
        " => state=well (3.0/1.0)\n"
    )
    assert audit(printed).own.disclosure.tolist() == audit(listed).own.disclosure.tolist()


def test_k_anonymous_rows_that_are_alike_are_inferred_and_small_classes_disclosed() -> None:
    people = pd.DataFrame({"zip": [f"4{at % 10}" for at in range(24)], "age": [20 + at for at in range(24)]})
    rows = pd.DataFrame(
        {"zip": ["4*"] * 24, "age": ["20-31"] * 12 + ["32-43"] * 12, "state": ["ill"] * 12 + ["ill", "well"] * 6}
    )
    found = privet.audit(rows, people, sensitive="state")
    assert found.overall["possible worlds"].distinct == 1  # all twelve of a class are ill: known, by posteriors
    assert found.verdict.kind == "publish"  # and no one row adds 0.1 to that
    assert privet.audit(rows, people, sensitive="state", measure="posterior").known == 12


def test_rows_of_overlapping_classes_say_how_many_at_least() -> None:
    people = pd.DataFrame({"zip": ["47", "47", "48", "48"]})
    rows = pd.DataFrame({"zip": ["4*", "4*", "48", "47"], "state": ["ill", "ill", "well", "ill"]})
    found = privet.audit(rows, people, sensitive="state")
    assert found.probabilities("possible worlds").to_numpy()[0].tolist() == [1.0, 0.0]  # one well, and he is in 48


def test_a_table_of_other_people_is_refused_with_its_line() -> None:
    with pytest.raises(DataError, match=r"\(line 3\) that they are 4 people, but 3 people"):
        audit(table(("476", "<30", 5, 15), ("476", "30+", 2, 2)))
    with pytest.raises(DataError, match="contradict"):
        audit(pd.concat([WHOLE, table(("476", "total", 7, 16))]))
    with pytest.raises(ModelError, match="neither one of the people's, nor the sensitive one"):
        audit(pd.DataFrame({"zip": ["476"], "state": ["ill"], "count": [6], "colour": ["red"]}))
    with pytest.raises(ModelError, match=r"line 2 of the table has the count 'many'"):
        audit(table(("476", "total", "many", 2)))
    with pytest.raises(ModelError, match="no line with a value of 'state'; it may be cut short"):
        audit(table(("476", "total", 1, 2))[["zip", "age"]].assign(state="", count=1))
    for endless in ("1e400", "1" + "0" * 400, "2.5"):
        with pytest.raises(ModelError, match=r"line 2 of the table has the count "):
            audit(table(("476", "total", endless, 2)))
    with pytest.raises(DataError, match="leave training out"):
        audit(WHOLE, training="unknown")


def test_reports_of_tables_name_groups_and_not_people() -> None:
    found = audit(WHOLE)
    page = found.to_html()
    assert (
        "zip = 476 and age &gt;= 30" in page and "Possible worlds" in page and "takes the model at its word" not in page
    )
    assert "age = 45" not in page and "age = 45" in audit(WHOLE, names=True).to_html()
    assert found.to_dict()["most exposed"][0]["people"] == 3


# -- against every assignment ---------------------------------------------------------------------


@st.composite
def published(draw: st.DrawFn) -> tuple[pd.DataFrame, np.ndarray, list[pd.DataFrame]]:
    """Up to ten people, and one or two tables of them in which cells may be suppressed and margins are printed."""
    many = draw(st.integers(2, 10))
    columns = {name: draw(st.lists(st.sampled_from("ab"), min_size=many, max_size=many)) for name in ("x", "y")}
    people = pd.DataFrame(columns)
    values = np.array(draw(st.lists(st.integers(0, 1), min_size=many, max_size=many)))
    found = []
    for _ in range(draw(st.integers(1, 2))):
        lines = []
        for x, y in draw(
            st.lists(st.tuples(st.sampled_from(["a", "b", "total"]), st.sampled_from("ab*")), min_size=1, unique=True)
        ):
            inside = ((people["x"] == x) | (x == "total")) & ((people["y"] == y) | (y == "*"))
            counts: list[object] = [int((values[inside] == value).sum()) for value in (0, 1)]
            if draw(st.booleans()):
                counts[draw(st.integers(0, 1))] = draw(st.sampled_from(["x", "<11", "0-10"]))
            lines.append((x, y, *counts))
        found.append(pd.DataFrame(lines, columns=["x", "y", "no", "yes"]))
    return people, values, found


@FUZZ
@given(published())
def test_tables_agree_with_every_assignment(made: tuple[pd.DataFrame, np.ndarray, list[pd.DataFrame]]) -> None:
    frame, values, some = made
    said = [count_tables.parse(each, ["x", "y"], "state", ["no", "yes"]) for each in some]
    people = People.of(frame, ["x", "y"])
    tallies = [tally for each in said for tally in each.tallies(people)]
    worlds = []
    for world in itertools.product((0, 1), repeat=len(frame)):
        counts = np.zeros((len(people), 2), dtype=np.int64)
        np.add.at(counts, (people.profile, np.array(world)), 1)
        sums = [counts[tally.profiles].sum(axis=0) for tally in tallies]
        if all(((t.low <= s) & (s <= t.high)).all() for t, s in zip(tallies, sums, strict=True)):
            worlds.append(counts)
    found = follow(tallies, ("",) * len(tallies), people, np.array([0.5, 0.5]), None)
    about = found.known.smallest >= 0
    assert np.allclose(found.belief.shares[about], (np.mean(worlds, axis=0) / people.sizes[:, None])[about])
    own = found.own
    assert (own.disclosure <= found.belief.shares + 1e-9).all() and (own.disclosure >= 0).all()
    truth = np.zeros((len(people), 2))
    np.add.at(truth, (people.profile, values), 1)
    for profile in np.flatnonzero(people.sizes == 1).tolist():  # whoever follows alone with certainty is disclosed
        if found.known.settled[profile] and found.known.group_sizes[found.known.smallest[profile]] == 1:
            assert own.disclosure[profile, truth[profile].argmax()] == pytest.approx(0.5)


# -- readers --------------------------------------------------------------------------------------


@FUZZ
@given(st.text(alphabet="{}=>,\"'() abAND:.0123456789\n\t;/<-[]*x", max_size=120), st.sampled_from([0, 1, 2, 3]))
def test_no_text_makes_a_reader_fall(text: str, kind: int) -> None:
    heads = ["PART decision list\n", "JRIP rules:\n", '"rules","support","confidence"\n', "Best rules found:\n"]
    try:
        read_published(heads[kind] + text + "\n", PEOPLE, "state")
    except PrivetError as error:
        assert str(error)


@FUZZ
@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8)), min_size=1, max_size=5))
def test_no_table_makes_a_reader_fall(lines: list[tuple[str, str, str]]) -> None:
    frame = pd.DataFrame(lines, columns=["zip", "state", "count"])
    try:
        assert isinstance(read_published(frame, PEOPLE, "state"), Statements)
    except PrivetError as error:
        assert str(error)


def test_rules_of_apriori_and_arules_and_mlxtend_say_the_same() -> None:
    weka = "Best rules found:\n\n 1. zip=476 age=25 20 ==> state=well 15    <conf:(0.75)> lift:(1.84)\n"
    arules = '"rules","support","confidence","count"\n"1","{zip=476,age=25} => {state=well}",0.16129,0.75,15\n'
    mlxtend = (
        "antecedents,consequents,support,confidence\n"
        "\"frozenset({'zip=476', 'age=25'})\",\"frozenset({'state=well'})\",0.16129032258,0.75\n"
    )
    shares = [audit(each, values=["ill", "well"]).probabilities("possible worlds") for each in (weka, arules, mlxtend)]
    assert shares[0].equals(shares[1]) and np.allclose(shares[0], shares[2])
    assert shares[0].to_numpy()[0].tolist() == [0.25, 0.75]


def test_rules_that_name_the_sensitive_value_on_the_left_count_it_too() -> None:
    said = rules.parse_rules(
        'rules,support,confidence\n"{state=ill,age=45} => {zip=479}",0.419355,0.975\n', "state", 93, ["ill", "well"]
    )
    assert [each.where for each in said.said] == ["age = 45 and zip = 479", "age = 45"]
    assert said.said[1].low[0] <= 40 <= said.said[1].high[0]
