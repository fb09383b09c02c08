"""Whatever comes from outside costs a bounded amount of work, and is refused in one sentence or answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty_inputs import CASES, DOMAIN, FRAME
from sizes import sized

import privet
from privet.errors import PrivetError
from privet.kernel import as_epsilon, column, rows, source_of
from privet.kernel import public_values as limits
from privet.kernel.column import Nominal
from privet.kernel.domain import Domain
from privet.kernel.public_values import fraction_of
from privet.question_text import TextQuestion
from privet.risk.readers import read_tree
from privet.text import LONGEST_ADDRESS, SHOWN, is_host, is_path, quoted, read_text, shown

FUZZ = settings(derandomize=True, deadline=None, max_examples=300)
LONGEST_SENTENCE = 2500  # characters: of quoted names there may be two


def refused(call: Any) -> None:
    """Run a call; the only thing it may raise is an error with one sentence."""
    try:
        call()
    except PrivetError as error:
        sentence(str(error))


def sentence(text: str) -> None:
    assert text.endswith(".") and "\n" not in text and 0 < len(text) < LONGEST_SENTENCE


# -- the list -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, str]]:
    """What became of each input, in a process that may use 1 GB and two minutes of a processor."""
    script = Path(__file__).parents[1] / "nasty_inputs.py"
    path = os.pathsep.join(sys.path)
    run = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == len(CASES), f"it ended (code {run.returncode}) after {lines[-1:]}: {run.stderr[-500:]}"
    return {name: (kind, text) for name, kind, text in lines}


@sized
@pytest.mark.xdist_group("nasty inputs")  # one process runs them all, once
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize("name", CASES)
def test_an_input_made_to_stop_a_program_is_refused_in_a_sentence(
    outcomes: dict[str, tuple[str, str]], name: str
) -> None:
    kind, text = outcomes[name]
    assert kind == "refused"
    sentence(text)


def test_nothing_of_the_list_is_charged() -> None:
    table = privet.open(FRAME, DOMAIN, budget=1)
    for text in ("count where age < 1e100000000", "count where age in 50..20", "quantile age 1e-9999999"):
        with pytest.raises(PrivetError):
            TextQuestion.parse(text).ask(table, "0.1")
    assert table.budget.spent == 0 and table.budget.entries == []


# -- numbers ------------------------------------------------------------------------------------


@given(st.one_of(st.floats(), st.integers(), st.decimals(), st.fractions(), st.text(max_size=100)))
@FUZZ
def test_a_number_is_exact_or_none(value: Any) -> None:
    number = fraction_of(value)
    if number is not None:
        float(number)
        assert number == Fraction(value.strip() if isinstance(value, str) else str(value))


@pytest.mark.parametrize(
    "number", [5e-324, 1.7976931348623157e308, np.float32(0.5), "1e308", 10**300, Decimal("1e-300")]
)
def test_every_float_is_a_number(number: Any) -> None:
    exact = fraction_of(number)
    assert exact is not None and float(exact) == float(number)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.binary(), st.lists))
@FUZZ
def test_what_an_error_quotes_is_short_and_on_one_line(value: Any) -> None:
    assert len(quoted(value)) <= 62 and len(quoted(value).splitlines()) == 1


def test_texts_names_and_files_are_cut_and_checked(tmp_path: Path) -> None:
    assert shown("a" * 100) == "a" * 59 + "…"
    assert is_path("a/b.csv") and not is_path("\0") and not is_path("x" * 256) and not is_path("")
    assert is_host("localhost") and is_host("::1") and is_host("/tmp/" + "x" * 100) and is_host("a.b.")
    assert not is_host("a..b") and not is_host("x" * 64)
    (tmp_path / "a").write_text("12345")
    assert read_text(tmp_path / "a", 5) == "12345" and read_text(tmp_path / "a", 4) is None


# -- fuzz ---------------------------------------------------------------------------------------

WORDS = ("count", "sum", "mean", "quantile", "histogram", "select", "by", "where", "and", "in", "age", "sex", "y", "f")
SIGNS = (
    "=",
    "<",
    "<=",
    ">",
    "{",
    "}",
    ",",
    "..",
    "0..9",
    "9..0",
    '"',
    "\\",
    "1e9999",
    "-1",
    "0.5",
    "gini",
    "1/3",
    "nan",
)
ODD = st.text(max_size=20)


@given(st.lists(st.sampled_from(WORDS + SIGNS) | ODD, max_size=20).map(" ".join))
@FUZZ
def test_any_question_is_answered_or_refused(text: str) -> None:
    table = privet.open(FRAME, DOMAIN, budget=10)
    refused(lambda: TextQuestion.parse(text).ask(table, "0.01"))


@given(st.dictionaries(st.sampled_from(("age", "sex", "y")) | ODD, st.deferred(lambda: CONDITION), max_size=3))
@FUZZ
def test_any_condition_is_a_scope_or_refused(wanted: dict[str, Any]) -> None:
    refused(lambda: privet.open(FRAME, DOMAIN, budget=10).where(wanted).count(0.1))


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.fractions() | ODD | st.binary()
HASHED = SCALAR.filter(lambda value: not (isinstance(value, Decimal) and value.is_snan()))  # that one has no hash
CONDITION = SCALAR | st.tuples(SCALAR, SCALAR) | st.lists(SCALAR, max_size=3) | st.frozensets(HASHED, max_size=3)

SETTINGS = st.sampled_from(("kind", "values", "low", "high", "step", "bins", "edges", "missing", "other", "ordered"))
KINDS = st.sampled_from(("nominal", "numeric"))
ENTRY = st.dictionaries(SETTINGS | ODD, SCALAR | KINDS | st.lists(SCALAR, max_size=4), max_size=6)


@given(
    st.fixed_dictionaries(
        {
            "columns": st.dictionaries(
                ODD, st.fixed_dictionaries({"kind": KINDS}).flatmap(lambda kind: ENTRY.map(kind.__or__)), max_size=3
            )
        },
        optional={name: SCALAR for name in ("target", "rows", "max_rows", "rows_per_person", "more")},
    )
)
@FUZZ
def test_any_content_of_a_domain_is_a_domain_or_refused(content: dict[str, Any]) -> None:
    refused(lambda: Domain.parse(Domain.from_dict(content).to_toml()))


@given(st.text(alphabet="[]{}.=\"'#\\\n abc019-+e_", max_size=80))
@FUZZ
def test_any_text_of_a_domain_is_a_domain_or_refused(text: str) -> None:
    refused(lambda: Domain.parse(text))


@pytest.fixture(scope="module")
def models() -> list[Any]:
    rows, labels = FRAME[["age", "sex"]], FRAME["y"]
    fitted = [
        privet.DiffPID3Classifier(epsilon=1, domain=DOMAIN, max_depth=1).fit(rows, labels),
        privet.NaiveBayesClassifier(epsilon=1, domain=DOMAIN).fit(rows, labels),
    ]
    return [json.loads(each.model_.to_json()) for each in fitted]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ODD
    | st.sampled_from((10**400, -1, "1/0", "1/3", "9" * 500)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
@FUZZ
def test_a_model_with_any_part_changed_is_a_model_or_refused(models: list[Any], data: st.DataObject) -> None:
    content = json.loads(json.dumps(data.draw(st.sampled_from(models))))
    inside = content
    while True:  # down to some part of it
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(inside[key], dict | list) and inside[key]) or data.draw(st.booleans()):
            break
        inside = inside[key]
    inside[key] = data.draw(JSON)
    text = json.dumps(content)
    refused(lambda: privet.Model.from_json(text).predict(FRAME))
    refused(lambda: read_tree("\n" + text))


LINES = st.sampled_from(
    ("a <= 1", "a > 1", "a = b", ": x", ": x (2.0/1.0)", "|   ", "|--- ", "a <= 1.00", "class: x", "'", "1e999")
)


@given(st.lists(st.lists(LINES | ODD, max_size=4).map("".join), min_size=2, max_size=8).map("\n".join))
@FUZZ
def test_any_text_of_a_tree_is_a_tree_or_refused(text: str) -> None:
    refused(lambda: read_tree(text))


PLACES = st.sampled_from(
    ("duckdb://", "spark://", "mssql://", "/", "[", "]", "@", ":", "?", "table=", "%00", "..", ".csv", "#")
)


@given(st.lists(PLACES | ODD, max_size=8).map("".join))
@FUZZ
def test_any_address_is_a_source_or_refused(text: str) -> None:
    refused(lambda: source_of(text))


@given(st.text(max_size=300), st.text(max_size=300))
@FUZZ
def test_any_key_and_analyst_is_one_or_refused(key: str, analyst: str) -> None:
    refused(lambda: privet.open(FRAME, DOMAIN, budget=10, analyst=analyst, name=key).count(0.1, key=key))


@given(SCALAR)
@FUZZ
def test_any_epsilon_is_one_or_refused(value: Any) -> None:
    refused(lambda: as_epsilon(value))


def test_a_file_whose_ledger_could_have_no_name_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 250 + ".csv")
    FRAME.to_csv(file, index=False)
    with pytest.raises(PrivetError, match="no ledger can be at") as caught:
        privet.open(file, DOMAIN, budget=1)
    sentence(str(caught.value))
    with privet.open(file, DOMAIN, budget=1, ledger=tmp_path / "a.ledger") as table:
        assert table.count(1).epsilon == 1


def test_a_scope_of_many_values_has_a_short_text() -> None:
    """It is written to the ledger with every question."""
    domain = Domain((Nominal("a", tuple(range(6_000))),))
    table = privet.open(pd.DataFrame({"a": [1, 2]}), domain, budget=1)
    for _ in range(30):
        table = table.where(a=set(range(5_000)))
    table.count(1)
    assert len(table.budget.entries[0].scope) < 1_100


def test_the_page_of_limits_has_the_figures_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    names = [name for name in vars(limits) if name.startswith(("LONGEST_", "LARGEST_", "MOST_", "DEEPEST_"))]
    figures = {name: getattr(limits, name) for name in names}
    figures |= {
        "SHOWN": SHOWN,
        "LONGEST_ADDRESS": LONGEST_ADDRESS,
        "MAX_CELLS": limits.MAX_CELLS,
        "MAX_RELEASED": limits.MAX_RELEASED,
    }
    figures |= {"MAX_PARTS": rows.MAX_PARTS, "MAX_CELLS of a column": column.MAX_COLUMN_CELLS}
    assert len(figures) > 15
    assert [name for name, figure in figures.items() if f" {figure:,}" not in page] == []
