"""`python -m bench fits` shows each learner beside DP-EBM, and does without it where it is not installed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # bench/ lies beside tests/ and is not installed
fits: Any = importlib.import_module("bench.fits")

OURS = {"boosted": {"0.1": 0.05, "1": 0.1}}
PEER = {"dp-ebm-05": {"0.1": 0.5, "1": 0.4}}


@pytest.mark.parametrize(("found", "ratios"), [(OURS | PEER, ["0.10", "0.25"]), (OURS, ["", ""])])
def test_times_stand_beside_their_share_of_dp_ebm(found: Any, ratios: list[str]) -> None:
    columns = [[*column.cells] for column in fits.shown(found).columns]
    assert [column[0] for column in columns] == ["boosted tables", "0.050", "0.100", *ratios]
