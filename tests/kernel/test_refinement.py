"""Gradual release: the mathematics exactly, the price exactly, and one chain of refinements whatever happens.

Probabilities are computed: nothing here is sampled. Draws are held to them in tests/statistical/test_gradual.py.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import BudgetExceeded, DataError, EngineFailed, PrivetError, QuestionError
from privet.kernel import (
    Count,
    Entropy,
    Histogram,
    IntegerLaplace,
    Paired,
    ProtectedTable,
    Refinement,
    Releases,
    SeededEntropy,
    Sum,
    mechanisms,
)
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.kernel.refinement import Chain
from privet.lab import open_public, worst_loss, worst_loss_of_draws

TENTH, HALF, ONE = Fraction(1, 10), Fraction(1, 2), Fraction(1)
DOMAIN = Domain(
    (
        Nominal("sex", ("f", "m")),
        Numeric("wage", Fraction(-5), Fraction(20), Fraction(1, 2)),
        Nominal("old", ("no", "yes")),
    ),
    target="old",
)
FRAME = pd.DataFrame({"sex": ["f", "m", "m"] * 20, "wage": [3.5, -2.0] * 30, "old": ["no", "yes"] * 30})


def table_of(
    ledger: object = None, budget: object = 100, rows: pd.DataFrame = FRAME, rows_per_person: int = 1
) -> ProtectedTable:
    domain = Domain(DOMAIN.columns, target="old", rows_per_person=rows_per_person)
    return privet.open(rows, domain, budget=budget, ledger=ledger, name="people")  # type: ignore[arg-type]


def one_sentence(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text and text.endswith(".") and text.count(". ") == 0 and len(text) < 300
    assert error.__cause__ is None
    return text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


# -- the mathematics ----------------------------------------------------------------------------

STEPS = [
    Refinement(TENTH, HALF),
    Refinement(HALF, ONE),
    Refinement(ONE, Fraction(101, 100)),
    Refinement(Fraction(1, 3), Fraction(4), 5),
]
WIDE = np.arange(-700, 701)


def chances(epsilon: Fraction, sensitivity: int = 1, at: Any = WIDE) -> Any:
    """Two-sided geometric probabilities, written down again."""
    p = math.exp(-epsilon / sensitivity)
    return (1 - p) / (1 + p) * p ** np.abs(at).astype(np.float64)


def stays(step: Refinement) -> float:
    """The probability that coarse noise is the finer one itself."""
    p, q = math.exp(-step.before / step.sensitivity), math.exp(-step.epsilon / step.sensitivity)
    return q / p * ((1 - p) / (1 - q)) ** 2


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_noise_made_coarser_is_the_coarser_noise(step: Refinement) -> None:
    """By characteristic functions: the finer one times that of the added noise is the coarser one."""

    def characteristic(p: float, t: Any) -> Any:
        return (1 - p) ** 2 / (1 - 2 * p * np.cos(t) + p**2)

    t, keep = np.linspace(0, math.pi, 1001), stays(step)
    coarse, fine = (characteristic(math.exp(-e / step.sensitivity), t) for e in (step.before, step.epsilon))
    assert 0 < keep < 1
    assert np.abs(fine * (keep + (1 - keep) * coarse) - coarse).max() < 1e-12


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_the_refinement_is_the_conditional_of_the_chain(step: Refinement) -> None:
    """The joint probability of both, fine to coarse, over that of the coarse noise: to 1e-12, tails included."""
    keep = stays(step)
    for noise in (-9, -1, 0, 1, 2, 30):
        added = keep * (noise == WIDE) + (1 - keep) * chances(step.before, step.sensitivity, noise - WIDE)
        joint = chances(step.epsilon, step.sensitivity) * added
        expected = joint / chances(step.before, step.sensitivity, np.array(noise))
        found = step.probabilities(noise, WIDE)
        assert np.abs(found - expected).max() < 1e-12
        assert found.sum() == pytest.approx(1, abs=1e-12)


def test_the_sampler_has_these_probabilities_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every outcome of the geometric numbers that are drawn, weighted: the code of production, without a sample."""
    step, reach = Refinement(ONE, Fraction(3)), 22
    numbers = np.stack(np.meshgrid(*[np.arange(reach)] * 3, indexing="ij")).reshape(3, -1)
    for noise in (-4, -1, 0, 1, 3):
        weights, drawn = np.ones(numbers.shape[1]), iter(numbers)

        def geometric(rate: Fraction, count: int, _: Any, weights: Any = weights, drawn: Any = drawn) -> Any:
            found = next(drawn)
            assert count == found.size
            weights *= -math.expm1(-rate) * np.exp(-float(rate) * found)
            return found

        monkeypatch.setattr(mechanisms, "geometric", geometric)
        exact = np.full(numbers.shape[1], 40)
        refined = step.release(Paired(exact, exact + noise)) - exact
        assert next(drawn, None) is None
        for value in range(-8, 9):
            expected = step.probabilities(noise, value)
            assert weights[refined == value].sum() == pytest.approx(expected, abs=1e-9), (noise, value)


def test_refining_twice_is_refining_once() -> None:
    """The exact distribution of the last level given the first, by way of one between; and of the one between."""
    levels = Fraction(1, 4), HALF, ONE
    first, second = Refinement(*levels[:2]), Refinement(*levels[1:])
    once = Refinement(levels[0], levels[2])
    for noise in (-7, 0, 1, 4):
        between = first.probabilities(noise, WIDE)
        for value in range(-12, 13):
            twice = float(between @ second.probabilities(WIDE, value))
            assert twice == pytest.approx(float(once.probabilities(noise, value)), abs=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_the_refined_noise_is_that_of_its_epsilon(step: Refinement) -> None:
    coarse = chances(step.before, step.sensitivity)
    for value in (-6, 0, 2):
        found = float(coarse @ step.probabilities(WIDE, value))
        # what lies beyond the grid has no more than the probability of the coarse noise there
        assert found == pytest.approx(float(chances(step.epsilon, step.sensitivity, np.array(value))), abs=1e-12)


def test_a_step_loses_the_difference_and_leads_upwards() -> None:
    assert STEPS[0].loss == Fraction(2, 5) and STEPS[3].loss == Fraction(11, 3)
    for before, after in ((HALF, HALF), (HALF, TENTH), (Fraction(0), HALF)):
        with pytest.raises(AssertionError):
            Refinement(before, after)


def test_values_at_the_ends_of_64_bits_are_refined_without_an_overflow() -> None:
    """What cannot be told apart from a released value stays; everything else lies near the exact one."""
    least, most = -(2**63), 2**63 - 1
    released = np.array([least, most, least, most, 2**62, 0, -(2**61) - 1])
    exact = np.array([10**30, -(10**30), -(10**30), 10**30, -(10**30), 2**62, 2**62], dtype=object)
    for step in (Refinement(HALF, ONE), Refinement(Fraction(1, 10**15), Fraction(2, 10**15))):  # of ints, of objects
        for _ in range(20):
            refined = step.release(Paired(exact, released))
            assert refined.dtype == np.int64
            clamped = np.array([max(-(2**62), min(2**62, each)) for each in exact], dtype=object)
            near = np.abs(refined.astype(object) - clamped) <= 100 * int(1 / step.loss)
            assert (near | (refined == released)).all()


def test_an_array_of_any_shape_is_refined_cell_by_cell() -> None:
    exact = np.arange(24).reshape(2, 3, 4)
    refined = Refinement(TENTH, Fraction(500)).release(Paired(exact, exact + 40), SeededEntropy(3))
    assert refined.shape == exact.shape and (refined == exact).all()
    assert Refinement(TENTH, HALF).release(Paired(exact[:0], exact[:0])).shape == (0, 3, 4)


# -- what it costs ------------------------------------------------------------------------------


def spent(table: ProtectedTable) -> list[Fraction]:
    return [entry.loss for entry in table.budget.entries]


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


# -- one chain ----------------------------------------------------------------------------------


def test_an_old_copy_gives_what_is_stored_and_goes_on_from_the_finest(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    first = table.count(TENTH)
    finer = first.refine("0.8")
    drawn: list[Any] = []
    release = Refinement.release

    def noted(self: Refinement, exact: Paired, entropy: Any) -> Any:
        drawn.append((self.before, exact.released.tolist()))
        return release(self, exact, entropy)

    monkeypatch.setattr(Refinement, "release", noted)
    for level in ("0.05", TENTH, "0.4", "0.8"):
        again = first.refine(level)
        assert (int(again), again.epsilon, again.about) == (int(finer), Fraction(4, 5), finer.about)
    assert drawn == [] and table.budget.spent == Fraction(4, 5)
    assert first.refine(ONE).epsilon == ONE
    assert drawn == [(Fraction(4, 5), [int(finer)])] and table.budget.spent == ONE
    assert finer.refine(HALF).epsilon == ONE


def test_what_is_done_to_a_release_does_not_reach_its_refinement(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    cells, count = table.histogram("sex", epsilon=TENTH), table.count(TENTH)
    values = cells.values.tolist()
    cells.values[:] = 10**6
    count.noise = IntegerLaplace(Fraction(1, 1000))
    seen: list[Any] = []
    monkeypatch.setattr(
        Refinement, "release", lambda self, exact, _: seen.append((self, exact.released.tolist())) or exact.released
    )
    cells.refine(HALF)
    count.refine(HALF)
    assert seen == [(Refinement(TENTH, HALF), [values]), (Refinement(TENTH, HALF), [int(count)])]


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda release: pickle.loads(pickle.dumps(release)),
    "old pickle": lambda release: pickle.loads(pickle.dumps(release, protocol=0)),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_has_its_value_and_cannot_be_refined(kind: str) -> None:
    table = table_of()
    for release in (table.count(TENTH), table.histogram("sex", epsilon=TENTH), table.sum("wage", TENTH)):
        copied = COPIES[kind](release)
        assert type(copied) is type(release) and repr(copied) == repr(release) and copied.about == release.about
        with pytest.raises(QuestionError, match="is a copy or a part of another answer") as refused:
            copied.refine(HALF)
        one_sentence(refused.value)
        assert release.refine(HALF).epsilon == HALF  # the original still can


def test_a_part_of_another_answer_cannot_be_refined() -> None:
    table = table_of()
    mean, cells = table.mean("wage", ONE), table.histogram("sex", epsilon=ONE)
    for release in (mean.count, mean.deviation, cells["f"], Count(3, IntegerLaplace(ONE), mean.about), Count(3)):
        with pytest.raises(QuestionError, match="part of another answer"):
            release.refine(2)
    with pytest.raises(QuestionError, match="a Mean cannot be refined"):
        table.parts().mean("wage", ONE).refine(2)


def test_threads_share_one_chain() -> None:
    """Eight threads, half of them with a release of their own under the same key, each with a level of its own."""
    table = table_of()
    count = table.count(TENTH, key="k")
    gate = threading.Barrier(8)
    found: list[Count] = []
    failed: list[BaseException] = []

    def work(number: int) -> None:
        mine = count if number % 2 else table.count(TENTH, key="k")
        gate.wait()
        try:
            for level in (number % 4 + 2, number % 4 + 6, 10):
                found.append(mine.refine(Fraction(level, 10)))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(found) == 24
    assert table.budget.spent == ONE == sum(spent(table))
    assert len({(each.epsilon, int(each), each.about.entry) for each in found}) == len({each.epsilon for each in found})


class Killed(BaseException):
    """The process dies here."""


def dies(*args: object, **settings: object) -> None:
    raise Killed


SCRIPT = """
import json, sys
sys.path.insert(0, {tests!r})
from test_refinement import table_of
from privet.errors import QuestionError
table = table_of({path!r})
print("ready", flush=True)
sys.stdin.readline()
count = table.count("0.1", key="k")
for tenths in {levels}:
    try:
        finer = count.refine(f"{{tenths / 10}}")
        print(json.dumps([str(finer.epsilon), int(finer), finer.about.entry]), flush=True)
    except QuestionError as refused:
        print(json.dumps(str(refused)), flush=True)
"""


def test_of_two_processes_the_one_that_drew_it_refines(path: Path) -> None:
    """Two processes with one key and one ledger ask and refine at the same time."""
    table_of(path)  # the ledger
    workers = []
    levels = list(range(1, 41, 2))
    for _ in range(2):
        text = SCRIPT.format(tests=str(Path(__file__).parent), path=str(path), levels=levels)
        workers.append(
            subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said: list[list[Any]] = []
    for worker in workers:
        out, _ = worker.communicate()
        assert worker.returncode == 0
        said.append([json.loads(line) for line in out.splitlines()])
    drew, other = said if isinstance(said[0][0], list) else reversed(said)
    assert len(other) == len(levels) and len(set(other)) == 1 and "drawn in another opening" in other[0]
    assert [Fraction(epsilon) for epsilon, _, _ in drew] == [Fraction(level, 10) for level in levels]
    table = table_of(path)
    assert spent(table) == [TENTH] + [Fraction(2, 10)] * 19
    stored = {entry.id: json.loads(entry.answer or "")["answer"] for entry in table.budget.entries}
    assert all(stored[entry] == [value] for _, value, entry in drew)


@pytest.mark.parametrize("rows", [FRAME, FRAME.head(30)], ids=["same", "other"])
def test_a_table_opened_again_refines_nothing_of_before(path: Path, rows: pd.DataFrame) -> None:
    """Whatever the level: stored, paid by nobody yet, or that of the answer itself; and whatever the rows are."""
    first = table_of(path)
    finer = first.count(TENTH, key="k").refine(HALF)
    first.close()
    again = table_of(path, rows=rows)
    asked: list[Any] = []
    again._session.engine.exact_counts = asked.append  # type: ignore[method-assign,assignment]
    count = again.count(TENTH, key="k")
    for level in ("0.05", TENTH, HALF, ONE):
        for refine in (count.refine, Releases([count]).refine):
            with pytest.raises(QuestionError) as refused:
                refine(level)
            assert one_sentence(refused.value) == (
                "cannot refine count: this answer was drawn in another opening of the table 'people', whose rows may "
                "have been others; ask a new question at the epsilon wanted."
            )
    assert asked == [] and spent(again) == [TENTH, Fraction(4, 10)] and count.epsilon == TENTH
    assert finer.refine(HALF) == finer  # in the opening that drew it, and from its ledger


def test_an_answer_that_names_no_opening_is_not_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    ledger = table._session.ledger
    store = ledger.store
    with monkeypatch.context() as old:
        old.setattr(ledger, "store", lambda entry, text, **more: store(entry, text))
        count = table.count(TENTH)
    with pytest.raises(QuestionError, match="another opening"):
        count.refine(HALF)
    assert spent(table) == [TENTH]


def test_within_an_opening_an_answer_is_refined_through_its_key_from_everywhere() -> None:
    table = table_of()
    first = table.count(ONE, key="k")
    with table.reserve(5) as reserved:
        found = [first.refine(2), reserved.count(ONE, key="k").refine(3), table.allot(9).count(ONE, key="k").refine(4)]
    assert [each.epsilon for each in found] == [2, 3, 4] and first.refine(2) == found[-1]
    assert spent(table) == [1, 1, 1, 1]


def test_who_loses_the_race_for_an_answer_cannot_refine_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both draw the same number under one charge. That they did must not show: it would be a second answer."""
    table, other = table_of(path), table_of(path)
    engine = table._session.engine
    exact_counts = engine.exact_counts
    theirs: list[Count] = []

    def slow(query: Any) -> Any:
        theirs.append(other.count(60, key="k"))
        return exact_counts(query)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "exact_counts", slow)
        mine = table.count(60, key="k")
    assert mine == theirs[0] == 60
    with pytest.raises(QuestionError, match="another opening"):
        mine.refine(70)
    assert theirs[0].refine(70).epsilon == 70 and spent(table) == [60, 10]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("state", ["asked", "refined", "charged"])
def test_a_forked_copy_refines_nothing(durable: bool, state: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even to a level that is stored, nor under a charge that its parent has left without an answer."""
    table = table_of(path if durable else None)
    count = table.count(TENTH, key="k")
    if state == "refined":
        count.refine(HALF)
    elif state == "charged":
        with monkeypatch.context() as patch:
            patch.setattr(table._session.ledger, "store", dies)
            with pytest.raises(Killed):
                count.refine(HALF)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, where the process has threads
        child = os.fork()
    if child == 0:
        for level in (TENTH, HALF, ONE):
            try:
                count.refine(level)
                os.write(writer, b"refined;")
            except PrivetError as refusal:
                os.write(writer, type(refusal).__name__.encode() + b";")
            except BaseException:
                os.write(writer, b"failed;")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        # who cannot read the record is refused too
        expected = "QuestionError" if durable or state != "asked" else "PrivacyError"
        assert said.read() == f"{expected};" * 3
    os.waitpid(child, 0)
    assert len(spent(table)) == (1 if state == "asked" else 2)
    assert count.refine(ONE).epsilon == ONE == table.budget.spent


def test_who_is_overtaken_goes_on_from_the_other_ones_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread refines between the look at the record and the charge: the difference to its level is paid."""
    table = table_of()
    mine, theirs = (table.count(TENTH, key="k") for _ in range(2))
    for level, asked, paid in ((Fraction(3, 10), HALF, Fraction(2, 10)), (Fraction(2), Fraction(3, 2), Fraction(0))):
        ledger = table._session.ledger
        standing = ledger.standing
        levels, before = iter([level]), []

        def overtaken(*args: Any, standing: Any = standing, levels: Any = levels, before: Any = before) -> Any:
            for level in levels:
                before.append(theirs.refine(level))
            return standing(*args)

        with monkeypatch.context() as patch:
            patch.setattr(ledger, "standing", overtaken)
            found = mine.refine(asked)
        assert before[0].epsilon == level and found.epsilon == max(level, asked)
        assert table.budget.spent == max(level, asked) and table.budget.entries[-1].loss == (paid or level - HALF)


def test_the_refinement_stored_first_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread finishes the charge of this one while its engine is at work."""
    table = table_of()
    mine, theirs = (table.count(TENTH, key="k") for _ in range(2))
    engine = table._session.engine
    exact_counts = engine.exact_counts
    levels, finished = iter(["0.2"]), []

    def slow(query: Any) -> Any:
        for level in levels:
            finished.append(theirs.refine(level))  # whatever they ask for: what was begun comes first
        return exact_counts(query)

    monkeypatch.setattr(engine, "exact_counts", slow)
    found = mine.refine("0.2001")
    assert [int(found)] == finished and finished[0].epsilon == found.epsilon == Fraction(2001, 10_000)
    assert table.budget.spent == found.epsilon and len(table.budget.entries) == 2


@pytest.mark.parametrize("durable", [True, False])
def test_a_charge_without_an_answer_is_finished(durable: bool, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after the charge and before the answer is stored: this opening finishes under it, no other can."""
    table = table_of(path if durable else None)
    parts = table.partition("sex")
    counts = parts.count(TENTH, key="k")
    counts[1].refine("0.2")
    with monkeypatch.context() as patch:
        patch.setattr(table._session.ledger, "store", dies)
        with pytest.raises(Killed):
            counts.refine(["0.5", "0.7"])
    charged = spent(table)
    assert charged == [TENTH, TENTH, HALF] and table.budget.entries[-1].answer is None
    if durable:  # had the process died, the charge would be wasted
        other = table_of(path).partition("sex").count(TENTH, key="k")
        for level in ("0.3", "0.5", "0.7", 1):
            with pytest.raises(QuestionError, match="another opening"):
                other.refine(level)
        assert spent(table) == charged and table.budget.entries[-1].answer is None
    counts = table.partition("sex").count(TENTH, key="k")
    finer = counts[0].refine("0.3")  # the level that was paid, not the one asked for
    assert finer.epsilon == HALF and spent(table) == charged
    assert [each.epsilon for each in counts.refine("0.3")] == [HALF, Fraction(7, 10)]
    stored = json.loads(table.budget.entries[-1].answer or "")["answer"]
    assert stored == [int(each) for each in counts.refine("0.3")] and stored[0] == finer


def test_an_engine_that_fails_after_the_charge_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of()
    count = table.count(TENTH)

    def fails(query: object) -> None:
        raise RuntimeError("row 17 is 'Smith'")

    with monkeypatch.context() as broken:
        broken.setattr(table._session.engine, "exact_counts", fails)
        for _ in range(2):
            with pytest.raises(EngineFailed, match="refine again to finish under it") as failed:
                count.refine(HALF)
            assert "Smith" not in str(failed.value) and failed.value.__context__ is None
    assert table.budget.spent == HALF
    assert count.refine(HALF).epsilon == HALF and spent(table) == [TENTH, Fraction(2, 5)]


def test_no_key_of_an_analyst_is_one_of_a_refinement() -> None:
    table = table_of()
    table.count(TENTH).refine(HALF)
    key = table.budget.entries[-1].key
    assert key is not None and not key.isprintable()
    with pytest.raises(QuestionError, match="printable"):
        table.count(TENTH, key=key)


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

PERSON = pd.DataFrame({"sex": ["m"], "wage": [20.0], "old": ["no"]})


def neighbours(rows_per_person: int = 1) -> tuple[pd.DataFrame, pd.DataFrame, Domain]:
    """The rows of two neighbours, and their domain."""
    few = FRAME.head(3)
    more = pd.concat([few] + [PERSON] * rows_per_person)
    return few, more, Domain(DOMAIN.columns, target="old", rows_per_person=rows_per_person)


def levels(release: Any, *epsilons: Fraction) -> tuple[bytes, ...]:
    """All that is published of a release and of what it is refined to."""
    found = [release, *(release := release.refine(epsilon) for epsilon in epsilons)]
    return tuple(np.asarray([np.asarray(part) for part in each]).tobytes() for each in found)


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.parts().count("0.2"),
        lambda table: table.partition("sex").count("0.2"),
        lambda table: table.parts().histogram("sex", epsilon="0.2"),
        lambda table: table.parts().sum("wage", "0.2"),
    ],
    ids=["count", "parts", "histogram", "sum"],
)
def test_a_chain_loses_exactly_its_last_epsilon(ask: Callable[[Any], Any]) -> None:
    """Every level is published. Would catch a step that loses more than its charge on any outcome that is extreme."""
    for last in (HALF, Fraction(3)):
        found = worst_loss(lambda table, last=last: levels(ask(table), Fraction(2, 5), last), *neighbours())
        assert found.complete and found.loss == pytest.approx(float(last), abs=1e-9)


def test_a_person_with_two_rows_loses_no_more() -> None:
    found = worst_loss(lambda table: levels(table.parts().count(TENTH), HALF, ONE), *neighbours(2))
    assert found.loss == pytest.approx(1, abs=1e-9)


def test_more_than_the_difference_is_known_to_whoever_sees_the_last_step_alone() -> None:
    """Why a chain is charged as a whole: the step by itself may lose the sum of both, and the pair does not."""
    step, first = Refinement(TENTH, HALF), IntegerLaplace(TENTH)
    # released were f + 2 and f - 1, or with one person more than f what is f' + 1 and f' - 2
    alone = step.log_probabilities(2, -1) - step.log_probabilities(1, -2)
    assert alone == pytest.approx(0.6, abs=1e-12)
    assert alone + math.log(first.probability(2) / first.probability(1)) == pytest.approx(0.5, abs=1e-12)


def independently(values: int, entropy: Entropy) -> tuple[int, int, int]:
    """The mutant: an old copy is refined again by a draw of its own."""
    exact = np.array([values])
    first = IntegerLaplace(TENTH).release(exact, entropy)
    one, other = (Refinement(TENTH, HALF).release(Paired(exact, first), entropy) for _ in range(2))
    return int(first[0]), int(one[0]), int(other[0])


def test_a_second_draw_from_an_old_copy_is_caught() -> None:
    """It loses 1.1 where 0.5, or at two differences 0.9, was charged."""
    found = worst_loss_of_draws(independently, 3, 4)
    assert found.loss == pytest.approx(1.1, abs=1e-9)


def after_a_change(rows: tuple[int, int], entropy: Entropy) -> tuple[int, int]:
    """The mutant: an answer about the rows of one opening is refined with those of another."""
    first = IntegerLaplace(TENTH).release(np.array([rows[0]]), entropy)
    finer = Refinement(TENTH, HALF).release(Paired(np.array([rows[1]]), first), entropy)
    return int(first[0]), int(finer[0])


def test_why_rows_must_not_change_between_an_answer_and_its_refinement() -> None:
    """Ten other rows are gone, one person is in both versions or in none: 0.7 is lost where 0.5 is charged."""
    assert worst_loss_of_draws(after_a_change, (13, 13), (14, 14)).loss == pytest.approx(0.5, abs=1e-9)
    assert worst_loss_of_draws(after_a_change, (13, 3), (14, 4)).loss == pytest.approx(0.7, abs=1e-9)


def test_two_handles_of_one_answer_lose_what_one_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same through a table: two releases under one key. Without the record in the ledger the mutant is caught."""
    numbers = itertools.count()

    def run(table: ProtectedTable) -> tuple[int, ...]:
        key = f"run {next(numbers)}"
        one, other = table.count(TENTH, key=key), table.count(TENTH, key=key)
        return int(one), int(one.refine(HALF)), int(other.refine(HALF))

    honest = worst_loss(run, *neighbours())
    assert honest.loss == pytest.approx(0.5, abs=1e-9) and honest.complete

    def own_key(self: Any, step: int) -> str:
        return f"\x1f{self.__dict__.setdefault('number', next(numbers))} {step}"

    monkeypatch.setattr(Chain, "_key", own_key)
    assert worst_loss(run, *neighbours()).loss == pytest.approx(1.1, abs=1e-9)


@pytest.mark.parametrize("mutant", [Refinement(Fraction(1, 4), Fraction(5, 4)), Refinement(HALF, Fraction(5, 4), 3)])
def test_a_refinement_to_more_than_it_is_sold_for_is_caught_by_the_bench(mutant: Refinement) -> None:
    """Refined to 1.25, sold as 1."""
    verdict = privet.verify(mutant, 1, effort=0.02)
    assert not verdict.passed and verdict.lower_bound <= 1.25 + 1e-6


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
