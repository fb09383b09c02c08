"""Entropy belongs to the opening: no block, script or race changes the noise of a table that is open already.

Where a test compares draws of OS noise, its scale is at least 10^9: a false alarm has a probability below 1e-8.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privet
from privet import kernel
from privet.errors import DataError, NotPrivate, PrivacyError, QuestionError
from privet.kernel import AdditiveModel, IntegerLaplace, Ledger, SeededEntropy, SystemEntropy, as_epsilon, race
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.lab import worst_loss
from privet.release import Public
from privet.table import Parts, ProtectedTable
from privet.testing import seeded_noise

DOMAIN = Domain(
    (
        Nominal("sex", ("f", "m")),
        Nominal("job", ("clerk", "nurse", "smith")),
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=4),
        Nominal("y", ("no", "yes")),
    ),
    target="y",
    max_rows=1000,
)
FRAME = pd.DataFrame(
    {
        "sex": ["f", "m"] * 30,
        "job": ["clerk", "nurse", "smith"] * 20,
        "age": range(60),
        "y": ["no"] * 25 + ["yes"] * 35,
    }
)
LITTLE = "1e-9"
MODEL = AdditiveModel((0, 0))


@pytest.fixture
def durable(tmp_path: Path) -> Any:
    """Somebody's file, with its ledger beside it."""
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    with privet.open(tmp_path / "people.csv", DOMAIN, budget=10**5) as table:
        yield table


# -- exact values by a script, and by a seed -------------------------------------------------------


def test_a_script_in_a_race_tells_nothing_of_the_table(durable: ProtectedTable) -> None:
    """Outcomes of a script are exact values plus known numbers, for as little epsilon as one likes."""

    def candidate(shadow: Any) -> tuple[Any, Public]:
        with pytest.raises((QuestionError, DataError), match=r"cannot open a|pass them as a frame"):
            worst_loss(lambda table: int(table.count(LITTLE)), shadow, shadow, DOMAIN)
        noisy = set()

        def aside(_: Any) -> int:
            noisy.add(int(shadow.where(sex="f").count(LITTLE)))
            return 0

        found = worst_loss(aside, FRAME, FRAME, DOMAIN)
        assert len(noisy) == found.tried * 2  # drawn anew with every run: no script decided
        return found.outcomes, Public(0)

    assert race(durable, [candidate], epsilon="1e-7").output == ()


def test_a_seed_around_a_question_does_not_reach_its_noise(durable: ProtectedTable) -> None:
    with seeded_noise(7):
        answer = durable.where(sex="f").count(LITTLE)
    (known,) = IntegerLaplace(as_epsilon(LITTLE)).release(np.array([0]), SeededEntropy(7))
    assert int(answer) - int(known) != 30
    assert answer.private


@pytest.mark.parametrize("kind", ["file", "file, ledger in memory", "frame, ledger on disk", "ledger object"])
def test_nothing_durable_is_opened_with_a_seed(kind: str, tmp_path: Path) -> None:
    file, ledger = tmp_path / "people.csv", tmp_path / "ledger"
    FRAME.to_csv(file, index=False)
    book = Ledger.open(tmp_path / "book", create=True)
    data, place = {
        "file": (file, None),
        "file, ledger in memory": (file, ":memory:"),
        "frame, ledger on disk": (FRAME, ledger),
        "ledger object": (FRAME, book),
    }[kind]
    with seeded_noise(7), pytest.raises(PrivacyError, match=r"frames whose ledger is in memory.*testing\.open"):
        privet.open(data, DOMAIN, budget=1, ledger=place)
    assert not ledger.exists() and not (tmp_path / "people.csv.ledger").exists()
    privet.open(data, DOMAIN, budget=1, ledger=place).close()  # outside nothing stands in the way


# -- what a seed is for ---------------------------------------------------------------------------


def drawn(table: ProtectedTable) -> list[int]:
    return [int(table.count(LITTLE)) for _ in range(3)]


def test_a_frame_is_seeded_when_it_is_opened_and_stays_so() -> None:
    found = []
    for seed in (7, 7, 8):
        with seeded_noise(seed):
            table = privet.open(FRAME, DOMAIN, budget=1)
            first = drawn(table)
        found.append(first + drawn(table))
        assert not table.count(LITTLE).private
    assert found[0] == found[1] != found[2]


def test_tables_of_one_block_share_its_generator() -> None:
    """Equal noise on two tables would cancel in their difference."""
    with seeded_noise(7):
        one, other = (privet.open(FRAME, DOMAIN, budget=1) for _ in range(2))
    assert drawn(one) != drawn(other)


def test_a_block_ends_and_is_its_threads_own() -> None:
    opened: list[ProtectedTable] = []
    with suppress(KeyError), seeded_noise(1):
        with seeded_noise(2):
            pass
        opened.append(privet.open(FRAME, DOMAIN, budget=1))
        thread = threading.Thread(target=lambda: opened.append(privet.open(FRAME, DOMAIN, budget=1)))
        thread.start()
        thread.join()
        raise KeyError
    opened.append(privet.open(FRAME, DOMAIN, budget=1))
    assert [table.count(LITTLE).private for table in opened] == [False, True, True]


def test_a_shadow_has_the_entropy_of_its_table() -> None:
    def candidate(shadow: Any) -> tuple[Any, Public]:
        return shadow.count(LITTLE), Public(0)

    found = []
    for _ in range(2):
        with seeded_noise(3):
            seeded = privet.open(FRAME, DOMAIN, budget=1)
        found.append(race(seeded, [candidate] * 50, LITTLE))
    assert (found[0].index, int(found[0].output)) == (found[1].index, int(found[1].output))
    plain = privet.open(FRAME, DOMAIN, budget=1)
    with seeded_noise(3):
        raced = [race(plain, [candidate], LITTLE).output for _ in range(2)]
    assert not found[0].output.private and all(each.private for each in raced)
    assert int(raced[0]) != int(raced[1])


def test_a_file_is_opened_for_tests_with_a_seed_and_writes_nothing(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    found = []
    for path in ("snapshot", "push-down"):
        with privet.testing.open(tmp_path / "people.csv", DOMAIN, budget=1, seed=7, access=path) as table:
            found.append(drawn(table))
            assert not table.count(LITTLE).private and "ledger in memory" in repr(table)
    assert found[0] == found[1]
    assert [each.name for each in tmp_path.iterdir()] == ["people.csv"]


def test_a_file_with_a_ledger_beside_it_is_opened_for_no_test(durable: ProtectedTable, tmp_path: Path) -> None:
    with pytest.raises(PrivacyError, match="its rows are somebody's"):
        privet.testing.open(tmp_path / "people.csv", DOMAIN, budget=1, seed=7)


# -- every public callable, inside a seed, on a durable table --------------------------------------

ASKS: dict[str, Callable[[Any], Any]] = {
    "count": lambda asked: asked.count(1),
    "histogram": lambda asked: asked.histogram("sex", epsilon=1),
    "majority": lambda asked: asked.majority("job", 1),
    "sum": lambda asked: asked.sum("age", 1),
    "mean": lambda asked: asked.mean("age", 1),
    "median": lambda asked: asked.median("age", 1),
    "quantile": lambda asked: asked.quantile("age", 0.9, 1),
    "select": lambda asked: [
        *(asked.select(rule, 1) for rule in ("max", "gini", "infogain", "largest-cell")),
        *(asked.select("max", 1, mechanism=name) for name in ("exponential", "noisy-max")),
        asked.select("max", 1, thresholds=True),
    ],
    "select_residuals": lambda asked: asked.select_residuals(MODEL, [("sex",), ("job",)], (9, 9), 1),
    "residual_sums": lambda asked: asked.residual_sums(MODEL, ("sex",), (9, 9), 1),
    "correct": lambda asked: asked.count_correct(MODEL, 1),
    "best": lambda asked: asked.best({"model": MODEL, "women": {"sex": "f"}}, 1),
    "where": lambda asked: asked.where(sex="f").count(1),
    "partition": lambda asked: asked.partition("sex").count(1),
    "scatter": lambda asked: asked.scatter(2, 1).count(1),
}
OF_TABLES: dict[str, Callable[[Any], Any]] = {
    **ASKS,
    "parts": lambda table: table.parts().count(1),
    "allot": lambda table: table.allot(2).count(1),
    "reserve": lambda table: reserved(table),
    "monitor": lambda table: table.monitor(0.5, 1).reached(MODEL),
}
OF_PARTS: dict[str, Callable[[Any], Any]] = {
    **ASKS,
    "take": lambda parts: parts.take([1]).count(1),
    "items": lambda parts: [part.count(1) for _, part in parts.items()],
    "histograms": lambda parts: parts.histograms([[("sex",), ("job", "y")]] * len(parts), 1),
}


def reserved(table: ProtectedTable) -> Any:
    with table.reserve(1) as held:
        return held.count(1)


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each source of entropy was drawn from."""
    counts: Counter[str] = Counter()
    for source in (SystemEntropy, SeededEntropy):

        def take(self: Any, count: int, take: Any = source.take, name: str = source.__name__) -> bytes:
            counts[name] += 1
            return bytes(take(self, count))

        monkeypatch.setattr(source, "take", take)
    return counts


def test_every_method_of_a_table_draws_from_the_operating_system(
    durable: ProtectedTable, sources: Counter[str]
) -> None:
    parts = durable.partition("sex")
    for asked, kind, asks in ((durable, ProtectedTable, OF_TABLES), (parts, Parts, OF_PARTS)):
        for name in [name for name in dir(kind) if not name.startswith("_") and name != "close"]:
            sources.clear()
            with seeded_noise(7):
                if name in asks:
                    asks[name](asked)
                elif callable(method := getattr(asked, name)):  # one that is new here is tried as it may be
                    tried(method)
            assert (sources["SystemEntropy"] > 0) == (name in asks), name
            assert sources["SeededEntropy"] == 0, name


def test_refinements_draw_from_the_operating_system(durable: ProtectedTable, sources: Counter[str]) -> None:
    counts = durable.partition("sex").count(1)
    for refine in (lambda: counts.refine(2), lambda: counts[0].refine(3)):
        sources.clear()
        with seeded_noise(7):
            refine()
        assert sources.keys() == {"SystemEntropy"}


CLASSIFIERS = [name for name in privet.__all__ if name.endswith("Classifier")]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_draws_from_the_operating_system(
    name: str, durable: ProtectedTable, sources: Counter[str]
) -> None:
    with seeded_noise(7):
        try:
            model = getattr(privet, name)(epsilon=1).fit(durable).model_
        except (NotPrivate, TypeError):  # refused on private rows, or none that takes an epsilon
            assert not sources
            return
    assert sources["SystemEntropy"] > 0 and sources["SeededEntropy"] == 0
    assert model.private


def tried(function: Callable[..., Any], *first: Any) -> None:
    """Call it with whatever it may take."""
    for more in ((), (1,), (1, 1), (DOMAIN,), (DOMAIN, 1), ([lambda shadow: (shadow.count(1), Public(0))], 1)):
        with suppress(Exception):
            function(*first, *more)


def test_no_other_public_callable_seeds_an_open_table(durable: ProtectedTable, sources: Counter[str]) -> None:
    """Everything that the package and its kernel export is called on the table, and what it returns is asked."""
    names = {f"privet.{name}": getattr(privet, name) for name in privet.__all__ if name not in CLASSIFIERS}
    names |= {f"privet.kernel.{name}": value for name, value in vars(kernel).items() if not name.startswith("_")}
    names |= {f"privet.testing.{name}": getattr(privet.testing, name) for name in privet.testing.__all__}
    with seeded_noise(7):
        for name, function in names.items():
            if callable(function):
                tried(function, durable)
            assert sources["SeededEntropy"] == 0, name
        sources.clear()
        choice = privet.NoisyIf("n", {"a": privet.Branch(lambda part: part.count(1), cost=1)}, default="a")
        choice.run(durable)
    assert sources.keys() == {"SystemEntropy"}
