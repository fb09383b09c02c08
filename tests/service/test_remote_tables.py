"""A table behind a server is a table: the same answers under one seed, the same charges, the same refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sizes
from kernel.people import DOMAIN, FRAME
from learners.classifiers import DOMAIN as TOWN
from learners.classifiers import PRIVATE, X, Y, _new

import privet
from privet.choice import Branch, NoisyIf, Probe, Race
from privet.kernel import AdditiveModel
from privet.service.config import Grant
from privet.service.seeded_server import Served, serve_seeded
from privet.verification import observe, questions
from privet.verification.tables import DOMAIN as SMALL
from privet.verification.tables import ROW

SEED = 11
BUDGET = 1_000_000
EPSILON = Fraction(1, 3)
TOWNSPEOPLE = X.assign(ill=Y)


def rows_of_the_bench() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame([ROW] * 40)
    for name in ("a", "b", "y"):
        frame[name] = rng.choice(["0", "1"], len(frame))
    frame["x"] = rng.integers(0, 10, len(frame))
    return frame


@contextmanager
def both(
    frame: Any, domain: privet.Domain, budget: Any = BUDGET, delta: Any = None
) -> Iterator[tuple[Any, Any, Served]]:
    """The same table here and behind a server, with the same noise in the same order."""
    with serve_seeded(frame, domain, budget, seed=SEED, delta=delta) as served, served.connect() as connection:
        here = privet.testing.open(frame, domain, budget, seed=SEED, name="people", analyst="ada", delta=delta)
        yield here, connection.table("people"), served


def charges(table: Any) -> list[Any]:
    """What the ledger says of each charge, but for keys, which the client makes, and times."""
    return [(line.id, line.scope, line.question, line.epsilon, line.loss) for line in table.budget.entries]


def assert_alike(here: Any, there: Any) -> None:
    assert charges(there) == charges(here) != []
    assert there.budget.spent == here.budget.spent
    assert there.budget.remaining == here.budget.remaining


# -- every question -------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_every_question_is_answered_and_charged_as_here(delta: str | None) -> None:
    """Of a table, and where it can be asked of parts, of parts that were left by conditions and partitions."""
    with both(rows_of_the_bench(), SMALL, 100, delta) as (here, there, _):
        for case in questions.QUESTIONS:
            answers = [observe.seen(case.ask(table, EPSILON)) for table in (here, there)]
            assert answers[0] == answers[1], case.name
            if case.copied and case.name not in ("refined-count", "where-count"):
                parts = [table.where(x=(1, 9)).partition("b").take([1, 0]) for table in (here, there)]
                told = [[observe.seen(part) for part in case.ask(own, EPSILON)] for own in parts]
                assert told[0] == told[1], case.name
        assert_alike(here, there)


def test_parts_share_one_charge_and_know_what_is_left_to_each() -> None:
    with both(FRAME, DOMAIN, 10) as (here, there, _):
        for table in (here, there):
            parts = table.partition("sex")
            assert parts["Female"].count(1) is not None
            assert parts.take([1, 2]).count([Fraction(1, 2), Fraction(3, 2)]) is not None
            assert parts.remaining == [9, Fraction(19, 2), Fraction(17, 2), 10]
            allotted = table.where(age=(20, 60)).allot("1/2")
            assert allotted.partition("income").count("1/4") is not None
            assert (allotted.budget.spent, allotted.budget.remaining) == (Fraction(1, 4), Fraction(1, 4))
            with pytest.raises(privet.BudgetExceeded, match="allotment"):
                allotted.count("0.3")
        assert_alike(here, there)
        assert "all rows where age in [20, 60) / income = low" in charges(there)[-1][1]


def test_two_divisions_of_one_table_add_as_they_do_here() -> None:
    with both(FRAME, DOMAIN, 10) as (here, there, _):
        for table in (here, there):
            first, second = table.partition("sex"), table.partition("sex")
            first.count(1), second.count(1), first["Male"].count(1), first["Female"].count(1)
            assert table.budget.spent == 3
        assert_alike(here, there)


def test_answers_are_refined_for_the_difference() -> None:
    with both(FRAME, DOMAIN, 10) as (here, there, _):
        finer = []
        for table in (here, there):
            parts = table.partition("income").histogram("sex", epsilon="0.1")
            again = parts.refine("0.5")
            total = table.sum("age", "0.1")
            finer.append(
                ([cell.value.tolist() for cell in again], total.refine(1).value, again[0].refine("0.2").epsilon)
            )
            with pytest.raises(privet.errors.QuestionError, match="cannot be refined"):
                table.mean("age", 1).count.refine(2)
        assert finer[0] == finer[1]
        assert_alike(here, there)


def test_reserved_budget_is_there_for_its_block_alone() -> None:
    with both(FRAME, DOMAIN, 2) as (here, there, served):
        for table in (here, there):
            with table.reserve(1) as scope:
                assert table.budget.remaining == 1 and scope.budget.remaining == 1
                with pytest.raises(privet.BudgetExceeded):
                    table.count("1.5")
                with scope.reserve("0.5") as inner:
                    assert inner.count("0.5") is not None
                assert scope.budget.remaining == Fraction(1, 2)
            assert table.budget.remaining == Fraction(3, 2)
        assert_alike(here, there)
        assert served.service.ledger.holds("people") == []


def test_a_monitor_answers_up_to_its_first_yes() -> None:
    sure = AdditiveModel((2**15, 0))
    with both(FRAME, DOMAIN, 10**6) as (here, there, _):
        told = []
        for table in (here, there):
            monitor = table.monitor("0.4", 1000)
            told.append((monitor.reached(sure), monitor.checks, monitor.closed, monitor.margin(), monitor.epsilon))
            with pytest.raises(privet.errors.QuestionError, match="closed"):
                monitor.reached(sure)
            assert "1 checks, closed, epsilon 1000" in repr(monitor)
        assert told[0] == told[1] and told[0][0] is True
        assert_alike(here, there)


def test_a_key_finds_its_answer_again_and_stands_for_nothing_else() -> None:
    with both(FRAME, DOMAIN, 10) as (_, there, served):
        first = there.where(sex="Male").count(1, key="men, 2026")
        again = served.connect("ada").table("people")
        assert again.where(sex="Male").count(1, key="men, 2026") == first
        assert again.budget.spent == 1
        with pytest.raises(privet.errors.KeyReused) as reused:
            again.count(1, key="men, 2026")
        assert reused.value.charged is False
        other = served.connect("grace").table("people")
        assert other.count(1, key="men, 2026") is not None  # keys of one analyst tell nothing to another
        assert other.budget.spent == 1


# -- refusals ---------------------------------------------------------------------------------------

REFUSED = [
    lambda table: table.count(-1),
    lambda table: table.count("nan"),
    lambda table: table.count(11),
    lambda table: table.histogram("zip", epsilon=1),
    lambda table: table.where(sex="female"),
    lambda table: table.partition("sex").count([1, 2]),
    lambda table: table.select("max", 1, attributes=["nothing"]),
    lambda table: table.sum("sex", 1),
    lambda table: table.count(1, key="\n"),
    lambda table: table.scatter(0, 1),
    lambda table: table.monitor(2, 1),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_refusal_reads_as_here_and_costs_nothing(number: int) -> None:
    with both(FRAME, DOMAIN, 10) as (here, there, _):
        errors = []
        for table in (here, there):
            with pytest.raises(privet.errors.PrivetError) as refused:
                REFUSED[number](table)
            errors.append((type(refused.value), str(refused.value)))
            assert table.budget.spent == 0
        assert errors[0] == errors[1]


def test_what_runs_where_the_rows_are_takes_no_function_from_outside() -> None:
    with (
        both(FRAME, DOMAIN, 10) as (_, there, _),
        pytest.raises(privet.errors.QuestionError, match="where the rows are"),
    ):
        privet.kernel.race(there, [lambda table: ("", table.count(1))], 1)


def test_rows_of_one_table_are_none_of_another() -> None:
    with both(FRAME, DOMAIN, 10) as (here, there, _):
        there._sets = here._sets
        with pytest.raises(privet.errors.QuestionError, match="in this process"):
            there.count(1)


# -- learners -----------------------------------------------------------------------------------------

REPRESENTATIVE = {"diffpid3", "jagannathan", "maxtree", "boosted", "naive-bayes"}


def fits(make: Any, served: Served, here: Any, there: Any) -> None:
    models = [_new(make, domain=None, epsilon=2).fit(table).model_.to_json() for table in (here, there)]
    assert models[0] == models[1]
    assert_alike(here, there)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=make.algorithm, marks=() if make.algorithm in REPRESENTATIVE else sizes.long)
        for make in PRIVATE
    ],
)
def test_an_estimator_grows_the_same_model_for_the_same_charges(make: Any) -> None:
    with both(TOWNSPEOPLE, TOWN, 10) as (here, there, served):
        fits(make, served, here, there)


def test_the_representatives_are_there() -> None:
    assert {make.algorithm for make in PRIVATE} >= REPRESENTATIVE


def test_a_data_set_with_a_delta_is_counted_in_rho_on_both_sides() -> None:
    with both(TOWNSPEOPLE, TOWN, 4, "1e-6") as (here, there, served):
        assert there.unit == here.unit and there.unit.name == "rho"
        counts = [table.partition("town").count("0.5") for table in (here, there)]
        assert [counts[0].array().tolist(), counts[0][0].rho] == [counts[1].array().tolist(), counts[1][0].rho]
        finer = [own.refine(1)[0] for own in counts]
        assert (int(finer[0]), finer[0].epsilon) == (int(finer[1]), finer[1].epsilon)
        for table in (here, there):
            with table.reserve(privet.Rho("0.01")) as scope:
                scope.spending("0.1").count("0.05")
        assert_alike(here, there)
        served.service.reload({"ada": Grant({"people": Fraction(1, 2)})}, ())
        assert served.service.ledger.cap("people", "ada") == here.unit.amount("0.5")


def test_a_tree_of_depth_5_takes_at_most_two_requests_a_level() -> None:
    names = [f"bit {number}" for number in range(7)]
    bits = privet.Domain(tuple(privet.Nominal(name, ("0", "1")) for name in names), target="bit 0", max_rows=1000)
    frame = pd.DataFrame(np.random.default_rng(0).choice(["0", "1"], (1000, 7)), columns=names)
    with both(frame, bits, 100) as (_, there, _):
        connection = there._backend.connection
        before = connection.requests
        tree = privet.DiffPID3Classifier(epsilon=50, max_depth=5).fit(there)
        levels = max(step.level for step in tree.privacy_.steps) + 1
        assert levels == 6 and connection.requests - before <= 2 * levels


def test_auto_chooses_and_learns_as_here() -> None:
    with both(TOWNSPEOPLE, TOWN, 10) as (here, there, _):
        told = []
        for table in (here, there):
            auto = privet.AutoClassifier(epsilon=1, random_state=0).fit(table)
            told.append((auto.choice_.branch, auto.model_.to_json()))
        assert told[0] == told[1]
        assert_alike(here, there)


def test_noisy_if_runs_its_modes_on_a_server_but_for_races() -> None:
    branches = {
        "few": Branch(lambda scope, *bought: int(scope.count("0.1")), cost="0.1"),
        "many": Branch(lambda scope, *bought: int(scope.count("0.2")), cost="0.2"),
    }
    probe = Probe(lambda table: table.count("0.1"), "0.1", lambda count: {"rows": count})

    def advice(values: Any) -> str:
        return "many" if values["rows"] > 100 else "few"

    with both(FRAME, DOMAIN, 10) as (here, there, _):
        told = []
        for table in (here, there):
            outcome = NoisyIf("size", branches, "few", mode=probe, advice=advice).run(table)
            told.append((outcome.branch, outcome.value, outcome.spent))
        assert told[0] == told[1] and told[0][0] == "many"
        assert_alike(here, there)
        race = Race(lambda table, value: table.count("0.1"), "0.1")
        with pytest.raises(privet.errors.QuestionError, match="where the rows are"):
            NoisyIf("size", branches, "few", mode=race).run(there)


def test_a_fit_under_a_key_is_one_charge_and_runs_on_the_server() -> None:
    tree = privet.DiffPID3Classifier(epsilon=1, max_depth=2, random_state=3)
    with both(TOWNSPEOPLE, TOWN, 10) as (here, there, _):
        model = tree.fit(there, key="tree").model_
        assert model.to_json() == tree.fit(here, key="tree").model_.to_json()
        assert_alike(here, there)
        assert [(entry.question, entry.loss) for entry in there.budget.entries] == [("fit(diffpid3)", 1)]
        assert tree.fit(there, key="tree").model_.to_json() == model.to_json()
        with pytest.raises(privet.errors.KeyReused):
            privet.DiffPID3Classifier(epsilon=1, max_depth=3).fit(there, key="tree")
        with pytest.raises(privet.errors.QuestionError, match="whole table"):
            tree.fit(there.where(sex="m"), key="men")
        assert there.budget.spent == 1


# -- the connection -----------------------------------------------------------------------------------


def test_a_connection_says_what_it_is_and_shows_no_token() -> None:
    with serve_seeded(FRAME, DOMAIN, 1, seed=1) as served:
        token = served.token()
        with privet.connect(served.url, token) as connection:
            assert connection.tables() == ["people"]
            table = connection.table("people")
            assert served.url in repr(connection) and token not in repr(connection) + repr(table) + str(vars(table))
            assert "analyst 'ada', 1 left, server" in repr(table)
            assert "NOT PRIVATE" in repr(table.count("0.1"))
            assert "memory engine" in table.explain()
            assert "0.1 spent, 0.9 left" in table.budget._repr_html_()
            with pytest.raises(privet.PrivacyError, match="token"):
                connection.__reduce_ex__(4)
            with pytest.raises(privet.errors.QuestionError, match="no such table"):
                connection.table("patients")
            table.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://example.org:8000", "in the clear"),
        ("ftp://127.0.0.1", "https://host:port"),
        ("127.0.0.1:8000", "https://host:port"),
        ("http://user:secret@127.0.0.1:1", "https://host:port"),
        (None, "https://host:port"),
    ],
)
def test_an_address_that_is_none_is_refused_before_a_token_leaves(url: Any, message: str) -> None:
    with pytest.raises(privet.errors.QuestionError, match=message):
        privet.connect(url, "pvt_a_x")


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    pauses: list[float] = []
    with pytest.raises(privet.errors.ServerError, match="cannot be reached"):
        privet.connect("http://127.0.0.1:9", "pvt_a_x", tries=3, sleep=pauses.append)
    assert len(pauses) == 2


def test_a_wrong_token_is_told_in_one_sentence() -> None:
    with serve_seeded(FRAME, DOMAIN, 1, seed=1) as served, pytest.raises(privet.errors.ServerError, match="token"):
        privet.connect(served.url, "pvt_a_" + "0" * 36)


def test_a_table_that_is_counted_in_rho_answers_as_here() -> None:
    """Counts, refinements, choices, parts, residual tables, reservations and monitors, for the same charges."""
    model = AdditiveModel((0, 0))

    def asked(table: Any) -> list[str]:
        count = table.count("0.5")
        told = [repr(count), repr(count.refine("1.0")), repr(table.count(privet.Rho("0.01")))]
        told.append(repr(table.partition("sex").count("0.1")))
        told.append(str(table.residual_tables(model, [(), ("sex",)], ["0.01", Fraction(1, 307)]).to_dict()))
        told.append(str(table.allot("0.0001").budget.remaining))  # a rho below the smallest epsilon
        told.append(repr(table.top_residual_tables(model, [("sex",), ("age",)], 1, "0.3")))
        with table.reserve("0.5") as scope:
            told.append(repr(scope.count("0.2")))
        return [*told, str(table.monitor(0.5, "0.2").epsilon), repr(table.budget)]

    frame, domain = privet.datasets.census(200, seed=1), privet.datasets.census_domain()
    here = privet.testing.open(frame, domain, 5, seed=4, delta="1e-6", name="people")
    with serve_seeded(frame, domain, 5, seed=4, delta="1e-6") as served:
        there = served.connect().table("people")
        assert asked(there) == asked(here) and there.budget.spent == here.budget.spent
        with pytest.raises(privet.BudgetExceeded, match="rho"):
            there.count(50)


def test_a_connection_that_is_closed_leaves_no_sitting_behind() -> None:
    with serve_seeded(FRAME, DOMAIN, 10, seed=1) as served:
        with served.connect() as connection:
            for _ in range(3):
                connection.table("people").partition("income").count("0.1")
            assert served.service.sittings.sweep() == 3
            table = connection.table("people")
            table.count("0.1")
            table.close()
            table.close()
            assert served.service.sittings.sweep() == 3
        assert served.service.sittings.sweep() == 0
        served.connect().close()
