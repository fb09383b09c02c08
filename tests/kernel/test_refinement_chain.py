"""Gradual release: one chain of refinements whatever copies, threads, processes and failures do."""

from __future__ import annotations

import copy
import json
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

import pandas as pd
import pytest
from kernel.refined_table import FRAME, HALF, ONE, TENTH, one_sentence, spent, table_of

from privet.errors import EngineFailed, PrivetError, QuestionError
from privet.kernel import IntegerLaplace, Paired, Refinement
from privet.release import Count, Releases


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


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
    with pytest.raises(ValueError, match="read-only"):
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
    for release in (mean.count, mean.deviation, cells["f"], Count(3, IntegerLaplace(ONE), mean.about)):
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
from refined_table import table_of
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
