"""What a notebook shows: pictures of public values alone, in which no label is more than text."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from labels import EVIL

import privet
from privet.kernel import Domain, Nominal, Numeric
from privet.models.privacy_record import Privacy, Step
from privet.report.notebook import CELLS, ENTRIES, PARTS
from privet.text import clean
from privet.verification import Finding, Verdict

TAGS = set("b br details div g h2 i li p path rect section small span style summary sup svg table".split())
TAGS |= set("tbody td text th thead title tr ul".split())


class Parsed(HTMLParser):
    """The tags, attributes and texts of some HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("br", "path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


def shown(value: Any) -> Parsed:
    """What a notebook shows of a value: well-formed, only tags that draw, nothing that runs or loads."""
    source = value._repr_html_()
    parsed = Parsed(source)
    assert set(parsed.tags) <= TAGS and not parsed.open
    assert not any(name.startswith("on") or name in ("href", "src") for name in parsed.attributes)
    assert source.startswith('<div class="privet-card" role="group" aria-label=') and "http" not in source.replace(
        "http://www.w3.org/2000/svg", ""
    )
    return parsed


@pytest.fixture
def table() -> Iterator[privet.ProtectedTable]:
    domain = Domain((Nominal("sex", ["f", "m"]), Numeric("age", 0, 99), Nominal("ill", ["no", "yes"])), target="ill")
    rows = pd.DataFrame({"sex": ["f", "m", "m"] * 40, "age": range(120), "ill": ["no", "no", "yes"] * 40})
    with privet.testing.open(rows, domain, budget=10, seed=5) as opened:
        yield opened


# -- what each card says --------------------------------------------------------------------------


def test_a_domain_is_shown_with_kinds_cells_bounds_person_and_notes(table: privet.ProtectedTable) -> None:
    domain = Domain(table.domain.columns, "ill", rows=45_000, person="id", rows_per_person=5, notes=("made by hand",))
    text = shown(domain).text
    for words in (
        "about 45,000 rows",
        "'id'",
        "at most 5 of them",
        "numeric",
        "0 to 99, step 1: [0, 10)",
        "made by hand",
    ):
        assert words in text, words


def test_a_release_is_shown_with_its_error_its_epsilon_and_whether_it_is_private(table: privet.ProtectedTable) -> None:
    count = table.count(1)
    assert f"{int(count)} ± 3 at 95%, epsilon 1 · count NOT PRIVATE" in shown(count).text
    assert "sum(age)" in shown(table.sum("age", 1)).text
    assert "within " in shown(table.median("age", 1)).text
    assert "of the best at 95%" in shown(table.select("gini", 1)).text
    assert "made of count" in shown(count.map(lambda rows: rows / 2)).text


def test_a_histogram_is_a_chart_with_whiskers_that_can_be_heard(table: privet.ProtectedTable) -> None:
    answer = table.histogram("sex", "ill", epsilon=1)
    parsed = shown(answer)
    assert parsed.tags.count("rect") == 4 and parsed.tags.count("svg") == 1
    low, high = answer.interval(0.95)
    heard = re.search(r'role="img" aria-label="([^"]*)"', answer._repr_html_())
    assert heard is not None
    assert f"f, no {answer.values[0, 0]}, {low[0, 0]} to {high[0, 0]};" in heard[1]
    whisker = re.search(r'class="error" d="M([\d.]+) \d+H([\d.]+)', answer._repr_html_())
    assert whisker is not None and float(whisker[1]) < float(whisker[2])


def test_parts_and_their_answers_are_tables(table: privet.ProtectedTable) -> None:
    parts = table.partition("sex")
    assert "2 disjoint parts" in shown(parts).text and "all rows / sex = m" in shown(parts).text
    answers = parts.count(1)
    assert all(str(int(answer)) in shown(answers).text for answer in answers)
    assert shown(parts.histogram("ill", epsilon=1)).tags.count("svg") == 2


def test_a_budget_is_a_bar_and_the_last_entries(table: privet.ProtectedTable) -> None:
    for _ in range(ENTRIES + 2):
        table.count("0.1")
    text = shown(table.budget).text
    assert "2.2 spent, 7.8 left" in text and "2 more charges" in text
    assert "all rows" in text and shown(table.partition("sex")["f"].budget).text


def test_a_privacy_record_says_what_was_promised_and_spent(table: privet.ProtectedTable) -> None:
    fitted = privet.MaxTreeClassifier(1, max_depth=1).fit(table)
    text = shown(fitted.privacy_).text
    assert "maxtree" in text and "What was spent" in text and "NOT PRIVATE" in text
    steps = (Step(-1, 0, "size", 1, Fraction(1, 2)), Step(-1, 1, "table", 1, Fraction(1, 2)))
    assert "epsilon 1 per person" in shown(Privacy("boosted", "corrected", Fraction(1), 1, steps)).text


def test_an_audit_and_a_verdict_begin_with_what_follows(table: privet.ProtectedTable) -> None:
    fitted = privet.MaxTreeClassifier(1, max_depth=1).fit(table)
    people = pd.DataFrame({"sex": ["f", "m"], "age": [1, 2]})
    audit = privet.audit(fitted.model_, people, sensitive="ill", remedies=False)
    assert "own row adds 0.1 or more" in shown(audit).text and "adversary" in shown(audit).text
    broken = Verdict("mine", "function", "", Fraction(1), (Finding("runs", "two tables", "n > 3", 2.5, 1000, 1e-8),))
    assert "mine: BROKEN" in shown(broken).text and "loses at least 2.500" in shown(broken).text


# -- what must not happen -------------------------------------------------------------------------


@pytest.mark.parametrize("label", EVIL)
def test_labels_that_somebody_wrote_are_text(label: str) -> None:
    start = clean(label)[:10]
    domain = Domain((Nominal(label, [label, "x"]), Nominal("y", ["a", "b"])), target="y", notes=(label,))
    record = Privacy(label, label, Fraction(1), 1, (Step(0, 0, label, 1, Fraction(1)),), (label,), person=label)
    verdict = Verdict(label, label, label, Fraction(1), (Finding(label, label, label, 0.1, 9),))
    for value in (domain, record, verdict):
        assert start in shown(value).text


@pytest.mark.parametrize("label", [label for label in EVIL if "\ud800" not in label])  # pandas has no such names
def test_answers_about_such_columns_are_text(label: str) -> None:
    start, other = clean(label)[:10], "o" + label[:500]
    domain = Domain((Nominal(label, [label, "x"]), Nominal(other, ["a", "b"])), target=other)
    rows = pd.DataFrame({label: ["x"] * 9, other: ["a"] * 9}, dtype=object)
    with privet.open(rows, domain, budget=5) as table:
        parts, histogram = table.partition(label), table.histogram(label, epsilon=1)
        fitted = privet.MaxTreeClassifier(1, max_depth=1).fit(table)
        audited = privet.audit(fitted.model_, rows[[label]], sensitive=other, remedies=False)
        for value in (histogram, parts, table.budget, audited):
            assert start in shown(value).text
        for value in (table.majority(label, 1), parts.count(1), fitted.privacy_):
            shown(value)


def test_pictures_are_made_of_releases_alone(table: privet.ProtectedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the answers are there, the rows and the ledger of the table can be gone: nothing is asked or charged."""
    parts = table.partition("sex")
    values = [table.count(1), table.histogram("age", epsilon=1), table.mean("age", 1), parts.count(1)]
    spent, entries = table.budget.spent, len(table.budget.entries)
    table.close()
    engine = type(table._session.engine)
    for name in [name for name in dir(engine) if name.startswith("exact_")]:
        monkeypatch.setattr(engine, name, lambda *_, **__: pytest.fail("a picture asked the engine"))
    for value in [*values, parts, table.budget, table.domain]:
        shown(value)
    assert (table.budget.spent, len(table.budget.entries)) == (spent, entries)
    numbers = set(re.findall(r"[\d,]+(?=</text>)", values[1]._repr_html_()))
    assert {f"{value:,}" for value in values[1].values if value >= 0} <= numbers


def test_large_answers_are_cut(table: privet.ProtectedTable) -> None:
    domain = Domain((Nominal("x", range(500)), Nominal("y", ["a", "b"])), target="y")
    with privet.open(pd.DataFrame({"x": [1], "y": ["a"]}), domain, budget=5) as opened:
        answer = opened.histogram("x", epsilon=1)
        assert shown(answer).tags.count("rect") == CELLS and f"{500 - CELLS} more cells" in shown(answer).text
        parts = opened.partition("x")
        assert (
            f"{500 - PARTS} more parts" in shown(parts).text
            and f"{500 - PARTS} more parts" in shown(parts.count(1)).text
        )
    assert len(domain._repr_html_()) < 10_000 and np.size(answer.values) == 500


def test_ipython_finds_the_pictures_and_a_text_beside_them(table: privet.ProtectedTable) -> None:
    """IPython asks the class of a value for `_repr_html_`; a release stays a number, and the module has no picture."""
    count = table.count(1)
    for value in (count, table.domain, table.budget, table.partition("sex"), table.partition("sex").count(1)):
        method = getattr(type(value), "_repr_html_", None)
        assert callable(method) and method(value) == value._repr_html_() and repr(value)
    assert count + 1 == int(count) + 1
    assert not hasattr(privet, "_repr_html_")


def test_nothing_that_draws_is_imported_before_the_first_picture() -> None:
    drawing = ("privet.report", "jinja2", "markupsafe", "IPython")
    code = f"import privet, sys; print([name for name in sys.modules if name.startswith({drawing})])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"
