"""The reconstruction attack finds what is there to be found, and nothing that epsilon hides.

Where noise must repeat it is seeded: what a solver makes of it is not the question there. The guesses about one person
use real noise; a false alarm has probability below 1e-6 (Hoeffding), and so has a miss of the cheat.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import privet
from privet.kernel import IntegerLaplace, as_epsilon
from privet.kernel.column import Nominal, Numeric
from privet.kernel.domain import Domain
from privet.learners.estimator import TreeClassifier
from privet.learners.growth import grow
from privet.learners.plan import Plan, leaves_only
from privet.models.tree import Ensemble
from privet.testing import seeded_noise
from privet.verification.reconstruction import (
    SILENT,
    Reconstruction,
    ceiling,
    curve,
    forest,
    inference,
    mismatch,
    reconstruct,
)

MIXED = Domain(
    (
        Nominal("sex", ("f", "m"), other=True),
        Numeric("age", Fraction(0), Fraction(9), Fraction(1), bins=2, missing=True),
        Nominal("grade", (3, 1, 2)),
        Nominal("member", (True, False), missing=True),
    ),
    target="grade",
)


def binary(attributes: int) -> Domain:
    return Domain((*(Nominal(f"a{i}", (0, 1)) for i in range(attributes)), Nominal("y", ("no", "yes"))), target="y")


def table(domain: Domain, rows: int, seed: int) -> pd.DataFrame:
    """Independent, uniform cells, as values."""
    rng, content = np.random.default_rng(seed), {}
    for column in domain:
        if isinstance(column, Nominal):
            values = [*column.values, *["<other>"] * column.other, *[None] * column.missing]
        else:
            values = [*range(int(column.low), int(column.high) + 1), *[None] * column.missing]
        content[column.name] = [values[code] for code in rng.integers(len(values), size=rows)]
    return pd.DataFrame(content, dtype=object).infer_objects()


def fitted(classifier: TreeClassifier, rows: pd.DataFrame) -> Ensemble:
    """The published model, through its file."""
    domain = classifier.domain
    assert isinstance(domain, Domain)
    model = classifier.fit(rows[list(domain.attributes)], rows[domain.target].to_numpy()).model_
    return Ensemble.from_json(model.to_json())


def blind(domain: Domain, truth: pd.DataFrame) -> float:
    return float(np.mean([mismatch(table(domain, len(truth), 100 + seed), truth) for seed in range(20)]))


# -- reconstruction ---------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_without_noise_the_rows_are_found(seed: int, known: bool) -> None:
    domain = binary(6)
    truth = table(domain, 30, seed)
    found = reconstruct(fitted(forest(SILENT, domain, seed), truth), rows=30 if known else None)
    assert mismatch(found.rows, truth) == 0
    assert list(found.rows.columns) == list(domain.names)
    assert found.gap == 0
    assert found.likelihood == pytest.approx(0, abs=1e-6)


def test_other_forests_too() -> None:
    domain = binary(5)
    truth = table(domain, 25, 1)
    hanisch = privet.HanischForestClassifier(epsilon=SILENT, domain=domain, n_estimators=25, random_state=1)
    assert mismatch(reconstruct(fitted(hanisch, truth)).rows, truth) == 0


def test_a_cell_may_hold_many_rows() -> None:
    domain = binary(3)
    truth = pd.concat([table(domain, 3, 0)] * 9)
    model = fitted(forest(SILENT, domain, 0), truth)
    for uniform in (False, True):
        assert mismatch(reconstruct(model, rows=27, uniform=uniform).rows, truth) == 0


def test_numbers_and_every_kind_of_cell() -> None:
    plan = Plan("random-thresholds", leaves_only, depth=3, split="random", numeric="joint", trees=3)

    def grown(rows: pd.DataFrame) -> Ensemble:
        with privet.open(rows, MIXED, budget=SILENT) as opened:
            return grow(opened, plan, SILENT, np.random.default_rng(0))

    model = grown(table(MIXED, 40, 2))
    assert any((tree.at >= 0).any() for tree in model.trees)
    found = reconstruct(model, rows=40)
    for tree, again in zip(model.trees, grown(found.rows).trees, strict=True):
        assert (tree.counts == again.counts).all()


def test_a_tree_of_public_rows_gives_away_what_it_counts() -> None:
    truth = table(MIXED, 40, 2)
    model = fitted(privet.C45Classifier(domain=MIXED, max_depth=3), truth)
    found = reconstruct(model)
    assert (len(found.rows), found.gap) == (40, 0)
    assert found.likelihood == pytest.approx(0, abs=1e-6)  # every count is right


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", ["nothing", "rows", "uniform"])
def test_nothing_is_more_likely(seed: int, known: str) -> None:
    """Beside all tables of a domain with four cells."""
    domain, rows = binary(1), 7
    maker = privet.JagannathanForestClassifier(epsilon=2, domain=domain, n_estimators=3, max_depth=1)
    with seeded_noise(seed):
        model = fitted(maker, table(domain, rows, seed))
    noise = IntegerLaplace(Fraction(2, 3))
    logs = np.log([noise.probability(each) for each in range(200)])

    tables = np.array(list(itertools.product(range(14), repeat=4)))
    if known != "nothing":
        tables = tables[tables.sum(axis=1) == rows]
    counts = [tree.counts[tree.is_leaf].ravel() for tree in model.trees]
    likelihood = sum(logs[np.abs(each - tables).astype(int)].sum(axis=1) for each in counts)
    worth = likelihood - (gammaln(tables + 1).sum(axis=1) if known == "uniform" else 0)
    found = reconstruct(model, rows=None if known == "nothing" else rows, uniform=known == "uniform")
    numbers = found.rows.value_counts().reindex([*itertools.product((0, 1), ("no", "yes"))], fill_value=0).to_numpy()
    (chosen,) = np.flatnonzero((tables == numbers).all(axis=1))
    assert found.likelihood == pytest.approx(likelihood[chosen])
    assert worth[chosen] == pytest.approx(worth.max())
    assert found.gap == 0


def test_at_a_small_epsilon_it_is_no_better_than_a_blind_guess() -> None:
    domain = binary(6)
    likeliest, informed, guessed = [], [], []
    for seed in range(5):
        truth = table(domain, 30, seed)
        with seeded_noise(seed):
            model = fitted(forest(as_epsilon("0.1"), domain, seed), truth)
        likeliest.append(mismatch(reconstruct(model, rows=30).rows, truth))
        informed.append(mismatch(reconstruct(model, rows=30, uniform=True).rows, truth))
        guessed.append(blind(domain, truth))
    assert np.mean(likeliest) > np.mean(guessed)  # it trusts the noise
    assert np.mean(informed) == pytest.approx(np.mean(guessed), abs=0.06)


def test_what_is_not_proved_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without branch and bound the rounded relaxation is the answer, and the gap says what it may lack."""
    domain = binary(6)
    with seeded_noise(0):
        model = fitted(forest(as_epsilon(20), domain, 0), table(domain, 30, 0))
    best = reconstruct(model, rows=30)
    monkeypatch.setattr("scipy.optimize.milp", lambda *given, **more: SimpleNamespace(x=None, mip_dual_bound=None))
    quick = reconstruct(model, rows=30)
    assert len(quick.rows) == 30
    assert quick.gap > best.gap
    assert quick.likelihood < best.likelihood <= quick.likelihood + quick.gap + 1e-6


@pytest.mark.parametrize(
    ("found", "truth", "share"),
    [
        ([(0, "a"), (1, "b")], [(1, "b"), (0, "a")], 0),
        ([(0, "a"), (0, "a")], [(1, "b"), (0, "a")], 0.5),
        ([(0, "b"), (1, "b")], [(1, "b"), (0, "a")], 0.25),
        ([(0, "a")], [(1, "b"), (0, "a")], 0.5),
        ([(0, "a"), (1, "b"), (1, "b"), (1, "b")], [(0, "a")], 0.75),
        ([], [(0, "a")], 1),
        ([], [], 0),
        ([(None, "a")], [(float("nan"), "a")], 0),
        ([(True, 1)], [("true", 1.0)], 0),
    ],
)
def test_mismatch(found: list[tuple[object, ...]], truth: list[tuple[object, ...]], share: float) -> None:
    frames = (pd.DataFrame(rows, columns=["x", "y"], dtype=object) for rows in (found, truth))
    assert mismatch(*frames) == share


# -- one person -------------------------------------------------------------------------------


def guesses(epsilon: object, trees: int, persons: int = 3000) -> float:
    """How many classes are guessed right, each person in a leaf of their own."""
    domain = Domain((Nominal("person", tuple(range(persons))), Nominal("y", ("no", "yes"))), target="y")
    people = table(domain, persons, 0).assign(person=np.arange(persons))
    maker = privet.JagannathanForestClassifier(epsilon=epsilon, domain=domain, n_estimators=trees, max_depth=1)
    right = inference(fitted(maker, people), people)
    assert len(right) == persons and set(right) <= {0, 0.5, 1}
    return float(right.mean())


MARGIN = math.sqrt(math.log(2e6) / (2 * 3000))  # for both sides


@pytest.mark.parametrize("trees", [1, 5])
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "2"])
def test_a_person_is_safe(epsilon: str, trees: int) -> None:
    right = guesses(epsilon, trees)
    assert right - MARGIN <= ceiling(float(epsilon))
    # in one tree each of two counts says the truth with probability e^epsilon / (1 + e^epsilon)
    if trees == 1:
        truth = 1 / (1 + math.exp(-float(epsilon)))
        assert right == pytest.approx(truth, abs=MARGIN)


@pytest.mark.parametrize("trees", [1, 5])
def test_too_little_noise_is_seen(trees: int) -> None:
    """Noise for 5, sold as 0.5."""
    assert guesses(5, trees) - MARGIN > ceiling(0.5)


def test_a_guess_uses_all_the_rest() -> None:
    """Without noise everybody's class follows, however many rows share their leaves."""
    truth = table(MIXED, 50, 3)
    model = fitted(privet.HanischForestClassifier(epsilon=SILENT, domain=MIXED, max_depth=1), truth)
    assert (inference(model, truth) == 1).all()


def test_the_ceiling_for_more_classes() -> None:
    assert ceiling(0) == 0.5
    assert ceiling(0, classes=4) == 0.25
    assert ceiling(as_epsilon("0.5")) == pytest.approx(math.e / (1 + math.e))


# -- both -------------------------------------------------------------------------------------


def test_the_curve() -> None:
    def small(epsilon: Fraction, domain: Domain, seed: int) -> TreeClassifier:
        return privet.JagannathanForestClassifier(
            epsilon, domain=domain, n_estimators=8, max_depth=3, random_state=seed
        )

    said: list[str] = []
    points = curve(
        ["0.1", 1],
        make=small,
        rows=10,
        attributes=3,
        repeats=2,
        persons=500,
        rng=np.random.default_rng(0),
        progress=said.append,
    )
    assert [point["epsilon"] for point in points] == [0.1, 1, None]
    assert len(said) == 3
    assert points[-1]["mismatch"] == points[-1]["informed"] == 0
    assert points[-1]["inference"] == points[-1]["ceiling"] == 1
    for point in points:
        assert point["inference"] - point["margin"] <= point["ceiling"]
        assert all(0 <= point[name] <= 1 for name in ("mismatch", "informed", "blind"))


# -- what is refused --------------------------------------------------------------------------


def attacked(model: Ensemble, **known: object) -> Reconstruction:
    return reconstruct(model, **known)  # type: ignore[arg-type]


def test_bad_questions() -> None:
    domain = binary(2)
    truth = table(domain, 5, 0)
    model = fitted(forest(as_epsilon(1), domain, 0), truth)
    for known, message in (
        ({"rows": -1}, "rows must be a whole number from 0, not -1."),
        ({"rows": 2.5}, "rows must be a whole number from 0, not 2.5."),
        ({"seconds": 0}, "seconds must be a number above 0, not 0."),
        ({"seconds": math.nan}, "seconds must be a number above 0, not nan."),
        ({"uniform": True}, "how probable uniform rows are depends on their number; give rows."),
    ):
        with pytest.raises(privet.errors.QuestionError, match=f"^{message}$"):
            attacked(model, **known)
    with pytest.raises(privet.errors.QuestionError, match=r"^the two tables have different columns"):
        mismatch(truth, truth.rename(columns={"a0": "b0"}))
    with pytest.raises(privet.errors.QuestionError, match=r"^some rows fit no cell"):
        inference(model, truth.assign(a0=7))
    with pytest.raises(privet.errors.QuestionError, match=r"^some rows have no class of the target 'y'"):
        inference(model, truth.assign(y="perhaps"))
    with pytest.raises(privet.errors.QuestionError, match=r"^repeats must be at least 1, not 0\.$"):
        curve([1], repeats=0, rng=np.random.default_rng(0))


def test_a_large_domain_is_refused() -> None:
    domain = binary(12)
    model = fitted(forest(as_epsilon(1), domain, 0), table(domain, 5, 0))
    with pytest.raises(privet.errors.QuestionError, match=r"^the domain has 8192 cells, at most 5000 can be searched"):
        reconstruct(model)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"leaf": "label"}, r"^the leaves of the model carry labels and no counts"),
        ({"rows": "disjoint"}, r"^the trees of the model saw different rows"),
    ],
)
def test_a_model_without_usable_counts_is_refused(choice: dict[str, str], message: str) -> None:
    domain = binary(3)
    truth = table(domain, 20, 0)
    plan = Plan("odd", leaves_only, depth=1, split="random", trees=2, **choice)  # type: ignore[arg-type]
    with privet.open(truth, domain, budget=1) as opened:
        model = grow(opened, plan, as_epsilon(1), np.random.default_rng(0))
    for attack in (reconstruct, lambda each: inference(each, truth)):
        with pytest.raises(privet.errors.QuestionError, match=message):
            attack(model)


def test_too_little_time_is_said() -> None:
    domain = binary(8)
    model = fitted(forest(as_epsilon(10), domain, 0), table(domain, 50, 0))
    with pytest.raises(privet.errors.QuestionError, match=r"^no rows were found in 1e-09 seconds; allow more"):
        reconstruct(model, seconds=1e-9)
