"""The sizes of long tests, and the power that a run states for them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from power import miss_of_divergence, miss_of_neighbours, stated
from scipy.stats import beta
from sizes import SIZES, Size, fewer_examples

HERE = Path(__file__).parent
FILES = {path: path.read_text(encoding="utf-8") for path in HERE.rglob("*.py")}
ASKS = re.compile(r"^from sizes import .*\b(?:draws|examples|part_of|size|FULL)\b", re.MULTILINE)


def test_every_size_is_asked_for_and_small() -> None:
    texts = [text for path, text in FILES.items() if path.name != Path(__file__).name]
    for name, found in SIZES.items():
        assert sum(text.count(f'"{name}"') for text in texts) > 1, f"nobody asks for '{name}'"
        assert found.small < found.full


@pytest.mark.parametrize(
    "path", [path for path, text in FILES.items() if ASKS.search(text)], ids=lambda path: path.name
)
def test_whoever_asks_for_a_size_has_the_mark_that_runs_it_in_full(path: Path) -> None:
    """Would catch a test that `make test-long` leaves at its small size."""
    assert re.search(r"@sized|= sized|sized\(|@examples\(", FILES[path]) or path.name in (
        "conftest.py",
        "nasty_inputs.py",  # the mark is in test_limits.py
        "test_sizes.py",
    )


def test_a_size_says_what_it_finds() -> None:
    assert str(Size(2, 8, "kills", cases=True)).endswith(
        "of 8 kills; what shows in one of four is found with probability 0.4375"
    )


def test_the_power_of_a_divergence_is_the_share_of_samples_that_are_rejected() -> None:
    """Of 2,000 samples of 900 draws about half are rejected; the stated power is within 0.06 of that share."""
    rng = np.random.default_rng(0)
    honest, mutant, n, alpha = np.array([0.5, 0.3, 0.2]), np.array([0.37, 0.36, 0.27]), 900, 1e-9
    cells = dict(enumerate(honest))
    seen = rng.multinomial(n, mutant, 2_000)
    divergence = (seen * np.log(seen / n / honest)).sum(axis=1)
    rejected = float((-divergence + 2 * (1 + np.log(divergence / 2)) < math.log(alpha)).mean())
    typical = np.repeat(range(3), np.round(n * mutant).astype(int)).tolist()
    assert 0.2 < rejected < 0.8
    assert 1 - miss_of_divergence(typical, {k: v for k, v in cells.items() if k < 2}, alpha) == pytest.approx(
        rejected, abs=0.06
    )
    assert miss_of_divergence([7], {0: 1.0}, alpha) == 0  # what cannot happen


def test_the_power_of_neighbours_is_the_share_of_runs_that_are_caught() -> None:
    """Of 4,000 pairs of 2,000 runs; the stated power is within 0.03 of the share of bounds above the claim."""
    rng = np.random.default_rng(1)
    n, likely, unlikely, claimed, alpha = 2_000, 0.6, 0.17, 1.0, 1e-6
    first, second = rng.binomial(n, likely, 4_000), rng.binomial(n, unlikely, 4_000)
    lowest = beta.ppf(alpha / 2, first, n - first + 1)
    highest = beta.ppf(1 - alpha / 2, second + 1, n - second)
    caught = float((np.log(lowest / highest) > claimed).mean())
    assert 0.05 < caught < 0.95
    miss = miss_of_neighbours(int(n * likely), int(n * unlikely), n, claimed, alpha)
    assert 1 - miss == pytest.approx(caught, abs=0.03)


def test_a_power_is_stated_as_far_as_it_is_from_one() -> None:
    assert [stated(miss) for miss in (0.25, 0.0021, 3e-7)] == ["0.7500", "0.9979", "1 - 3e-07"]


@pytest.mark.xdist_group("one process")
def test_tests_of_a_group_go_to_one_process(request: pytest.FixtureRequest) -> None:
    """Would catch a pytest that overlooks what pytest-xdist writes behind an id."""
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@one process")


def test_fewer_examples_are_drawn_for_a_property() -> None:
    seen = []

    @given(st.integers())
    @settings(max_examples=200, database=None)
    def test(number: int) -> None:
        seen.append(number)

    fewer_examples(test)
    test()
    assert 40 <= len(seen) <= 70
