"""Gradual release: what a refinement costs, and what stands in its way."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.refined_table import DOMAIN, FRAME, HALF, ONE, TENTH, one_sentence, spent, table_of

import privet
from privet.errors import BudgetExceeded, DataError, PrivetError, QuestionError
from privet.kernel import IntegerLaplace
from privet.kernel.public_values import PerPart
from privet.kernel.questions.counts import HistogramQuestion
from privet.kernel.refinement import Chain
from privet.lab import open_public
from privet.release import Count, Histogram, Releases, Sum

# -- what it costs ------------------------------------------------------------------------------


def test_a_prefix_costs_exactly_its_last_epsilon() -> None:
    table = table_of()
    count = table.count("0.1")
    paid = [TENTH]
    for level in ("0.3", "1/3", "0.7", "2"):
        finer = count.refine(level)
        paid.append(Fraction(level) - sum(paid))
        assert isinstance(finer, Count) and finer.epsilon == Fraction(level) == table.budget.spent
        assert finer.noise == IntegerLaplace(Fraction(level)) and finer.private
        assert finer.interval(0.95) == (max(0, finer - finer.noise.error(0.95)), finer + finer.noise.error(0.95))
        count = finer
    assert spent(table) == paid
    entry = table.budget.entries[-1]
    assert (entry.question, entry.scope, entry.epsilon) == ("refine count to 2", "all rows", "1.3")
    assert count.about.entry == entry.id and count.about.question == "count"
    assert json.loads(entry.answer or "") == {"answer": [int(count)], "private": True}
    assert table._session.ledger.answer(entry.id).opening_token == table._session.opening_token(0)


def test_histograms_and_sums_are_refined_too() -> None:
    table = table_of()
    cells = table.histogram("sex", "old", epsilon=TENTH).refine(50)
    assert isinstance(cells, Histogram) and cells.columns == ("sex", "old") and cells["m", "yes"] == 20
    assert cells.values.tolist() == [[10, 10], [20, 20]] and cells.epsilon == 50
    total = table.sum("wage", TENTH).refine(40)
    assert isinstance(total, Sum) and total.unit == Fraction(1, 2) and abs(total - 45) < 20
    assert total.noise == IntegerLaplace(Fraction(40), 40)
    assert table.budget.spent == 90


def test_a_person_with_several_rows_pays_for_all_of_them() -> None:
    table = table_of(rows_per_person=4)
    finer = table.count(TENTH).refine(HALF)
    assert (finer.epsilon, finer.noise.epsilon, table.budget.spent) == (HALF, HALF / 4, HALF)


def test_parts_are_refined_in_one_charge_and_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    counts = table.partition("sex").count([TENTH, Fraction(2, 10)])
    engine = table._session.engine
    asked: list[Any] = []
    exact_counts = engine.exact_counts
    monkeypatch.setattr(engine, "exact_counts", lambda query: asked.append(query) or exact_counts(query))
    finer = counts.refine(HALF)
    assert isinstance(finer, Releases) and [each.epsilon for each in finer] == [HALF, HALF]
    assert len(asked) == 1 and spent(table) == [Fraction(2, 10), Fraction(3, 10)]
    entry = table.budget.entries[-1]
    assert (entry.scope, entry.epsilon) == ("2 parts, first all rows / sex = f", "0.3 to 0.4")
    mixed = counts.refine(["0.4", 60])  # the first is known better than that
    assert [each.epsilon for each in mixed] == [HALF, 60] and mixed[0] == finer[0] and mixed[1] == 40
    assert table.budget.entries[-1].scope == "all rows / sex = m" and table.budget.spent == 60


def test_a_part_within_what_its_sibling_has_paid_costs_nothing_at_the_root() -> None:
    table = table_of()
    counts = table.partition("sex").count(TENTH)
    counts[0].refine(ONE)
    assert table.budget.spent == ONE
    finer = counts[1].refine("0.9")
    assert finer.epsilon == Fraction(9, 10) and spent(table) == [TENTH, Fraction(9, 10), 0]
    counts[1].refine("1.5")
    assert table.budget.spent == Fraction(3, 2)
    alone = table.partition("sex")["f"]
    first = alone.count(TENTH)
    first.refine(HALF)
    assert alone.budget.spent == HALF


def test_a_refusal_changes_nothing() -> None:
    table = table_of(budget=1)
    little = table.allot(HALF)
    count, capped = table.count("0.2"), little.count(TENTH)
    for release in (count, capped):
        with pytest.raises(BudgetExceeded):
            release.refine(3)
    with pytest.raises(BudgetExceeded, match=r"for refine count to 3 on all rows: 2\.8 of it reaches"):
        count.refine(3)
    assert table.budget.spent == Fraction(3, 10) and len(table.budget.entries) == 2
    assert capped.refine(HALF).epsilon == HALF and count.refine(HALF).epsilon == HALF
    assert table.budget.remaining == 0


LEVELS = st.integers(1, 40).map(lambda n: Fraction(n, 20))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.tuples(LEVELS, LEVELS),
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7), LEVELS) | st.tuples(LEVELS, LEVELS), max_size=8),
)
def test_any_sequence_of_refinements_costs_the_last_epsilon(
    first: tuple[Fraction, Fraction], sequence: list[tuple[Any, ...]]
) -> None:
    """Of any copy, in any order, one part or both: every part has paid its finest level, the table the dearest."""
    table = table_of()
    parts = table.partition("sex")
    counts = parts.count(list(first))
    held: list[list[Count]] = [[count] for count in counts]
    finest = list(first)
    values = {(part, epsilon): int(counts[part]) for part, epsilon in enumerate(first)}
    for step in sequence:
        if len(step) == 2:
            found = list(enumerate(counts.refine(list(step))))
            finest = [max(before, now) for before, now in zip(finest, step, strict=True)]
        else:
            part, old, level = step
            found = [(part, held[part][old % len(held[part])].refine(level))]
            finest[part] = max(finest[part], level)
        for part, release in found:
            assert release.epsilon == finest[part]
            assert values.setdefault((part, release.epsilon), int(release)) == release
            held[part].append(release)
        assert [part.budget.spent for part in parts] == finest
        assert table.budget.spent == max(finest)


# -- what stands in the way ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0, -1, "much", None, True, math.inf, math.nan, [1], 10**7], ids=repr)
def test_an_epsilon_is_a_number(epsilon: Any) -> None:
    table = table_of()
    for release in (table.count(TENTH), table.parts().count(TENTH)):
        if not (isinstance(release, Releases) and epsilon == [1]):
            with pytest.raises(QuestionError) as refused:
                release.refine(epsilon)
            one_sentence(refused.value)
    assert len(table.budget.entries) == 2


def test_releases_of_one_question_are_refined_together() -> None:
    table = table_of()
    parts = table.partition("sex")
    one, other = parts.count(TENTH), parts.count(TENTH)
    with pytest.raises(QuestionError, match="3 epsilons were given for 2 parts"):
        one.refine([1, 2, 3])
    with pytest.raises(QuestionError, match="several questions") as refused:
        Releases([one[0], other[1]]).refine(ONE)
    one_sentence(refused.value)
    assert Releases[Count]().refine(ONE) == ()
    twice = Releases([one[1], one[1]]).refine([HALF, ONE])
    assert twice[0] == twice[1] and [each.epsilon for each in twice] == [ONE, ONE]


def test_public_answers_without_noise_cannot_be_refined() -> None:
    table = open_public(FRAME, DOMAIN)
    for release in (
        table.count(math.inf),
        table.histogram("sex", epsilon=math.inf),
        open_public(FRAME, DOMAIN, rounded_noise=True).count(ONE),
    ):
        with pytest.raises(QuestionError, match="is of public rows") as refused:
            release.refine(2)
        one_sentence(refused.value)
    finer = table.count(TENTH).refine(50)
    assert finer == 60 and not finer.private


def test_a_closed_table_refines_nothing() -> None:
    table = table_of()
    count = table.count(TENTH)
    count.refine(HALF)
    table.close()
    with pytest.raises(DataError, match="was closed"):
        count.refine(ONE)
    assert count.refine(HALF).epsilon == HALF  # that is in the ledger


def test_seeded_noise_is_repeatable_and_says_so() -> None:
    def levels() -> list[int]:
        with privet.testing.seeded_noise(5):
            count = table_of().count("0.01")
            return [int(count), int(count.refine("0.02")), int(count.refine("0.05"))]

    assert levels() == levels()
    before = table_of()
    count = before.count(TENTH)
    with privet.testing.seeded_noise(5):
        assert count.refine("0.2").private  # a table that was opened before keeps its noise
        finer = table_of().count(TENTH).refine("0.2")
    assert not finer.private and "NOT PRIVATE" in repr(finer)
    assert not finer.refine("0.3").private  # and one that was opened inside has it afterwards
    assert before.partition("sex").count(TENTH).refine("0.2")[0].private


# -- neighbours ---------------------------------------------------------------------------------


def test_every_error_is_one_of_privets() -> None:
    """Whatever is asked of a release: an answer, or an error raised on purpose."""
    table = table_of(budget=1)
    for release in (table.count("0.3"), table.partition("sex").histogram("old", epsilon="0.3")):
        for asked in (object(), [], {}, "1/0", 1, 5, -1, b"1"):
            try:
                release.refine(asked)
            except PrivetError:
                pass
    assert table.budget.spent <= 1


def test_an_answer_is_refined_as_the_answer_to_its_own_question() -> None:
    """What was released less an exact answer to something else is no noise: whoever calls the kernel, it looks."""
    table = table_of()
    cells = table.histogram("sex", epsilon=TENTH)
    finer = table.histogram("sex", epsilon=HALF)
    finer.about = replace(finer.about, entry=cells.about.entry)  # as if it had less to pay to the next level
    wrong: list[tuple[Any, Any, Any]] = [
        (HistogramQuestion(("old",)), table._sets, cells),
        (HistogramQuestion(("sex",)), table.where(old="yes")._sets, cells),
        (HistogramQuestion(("sex",)), table._sets, finer),
    ]
    for question, sets, release in wrong:
        with pytest.raises(QuestionError, match="ledger entry 1 is of another question"):
            Chain(table._session, question, sets, [release]).levels([0], PerPart.same(ONE, 1))
    assert table.budget.spent == TENTH + HALF
    assert Chain(table._session, HistogramQuestion(("sex",)), table._sets, [cells]).levels([0], PerPart.same(ONE, 1))
