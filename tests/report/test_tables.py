"""Drawings of tables: readable at any size, true to the model, and no label can be more than text in them."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labels import EVIL

from privet.kernel.column import Column, Nominal, Numeric
from privet.kernel.date import Date
from privet.kernel.domain import Domain
from privet.models.privacy_record import Privacy, Step
from privet.models.tables import Table, Tables
from privet.report import page, text
from privet.report.effects import percent, signed
from privet.report.model_page import likely
from privet.report.svg import LETTER
from privet.report.table_picture import svg

PROPERTY = settings(derandomize=True, deadline=None, max_examples=25)
NS = "{http://www.w3.org/2000/svg}"
AGE = Numeric("age", Fraction(17), Fraction(90), Fraction(1), bins=4, missing=True)
JOB = Nominal("job", ("crafts", "sales", "none"), other=True)
SEX = Nominal("sex", ("F", "M"))
STEPS = (
    Step(-1, 0, "class counts", 1, Fraction(1, 20)),
    Step(-1, 1, "choice of a table", 1, Fraction(1, 20)),
    Step(-1, 1, "table of age", 1, Fraction(1, 5)),
    Step(-1, 2, "table of job and age", 1, Fraction(1, 5)),
)
RECORD = Privacy("boosted", "corrected", Fraction(1), 2, STEPS)


def domain(classes: int = 2, *columns: Column) -> Domain:
    target = Nominal("income", ("low", "high") if classes == 2 else tuple(f"c{number}" for number in range(classes)))
    return Domain((target, *(columns or (AGE, JOB, SEX))), target="income")


def table(of: Domain, *columns: str, seed: int = 0, deviation: float = 0.2, epsilon: str = "0.25") -> Table:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(*(of[name].size for name in columns), len(of.classes)))
    values -= values.mean(axis=-1, keepdims=True)
    return Table(columns, values, deviation * (1 + rng.random(values.shape)), Fraction(epsilon))


def model(classes: int = 2, privacy: Privacy = RECORD, note: str = "") -> Tables:
    of = domain(classes)
    tables = (table(of, "age"), table(of, "job", "age", seed=1), table(of, "job", seed=2), table(of, "age", seed=3))
    return Tables(of, tuple(np.linspace(0.5, -0.5, classes)), tables, privacy, note)


def only(of: Domain, *tables: Table) -> Tables:
    return Tables(of, (0.0,) * len(of.classes), tables, RECORD)


def titles(drawn: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(drawn).iter(f"{NS}title")]


def parsed(whole: str) -> ElementTree.Element:
    """A page as a tree: it only parses if every tag is closed, so no label opened one."""
    return ElementTree.fromstring(re.sub(r"<meta[^>]*>|<!doctype html>", "", whole))


# -- text ---------------------------------------------------------------------------------------


def test_text_of_two_classes_shows_log_odds_errors_and_bars() -> None:
    of = domain()
    values = np.array([[0.5, -0.5], [-0.1, 0.1], [-1.0, 1.0], [0.0, 0.0]])
    pair = np.zeros((2, 4, 2))
    pair[1, 2] = [0.3, -0.3]
    tables = (
        Table(("job",), values, np.full((4, 2), 0.1), Fraction(1, 4)),
        Table(("sex", "job"), pair, np.full((2, 4, 2), 0.05), Fraction(1, 8)),
    )
    assert text(Tables(of, (1.0, -1.0), tables, RECORD, note="a note")).splitlines() == [
        "<boosted: 2 tables for 'income', epsilon 1>",
        "a note",
        "to begin with: low 88.1%, high 11.9%",
        "",
        "Each cell adds to the log odds of high against low; +0.69 doubles its odds, -0.69 halves them.",
        "± is about 95%. What stands in parentheses or has a bar of ░ cannot be told from no effect.",
        "",
        "job: weight 0.541, epsilon 0.25",
        "  none     +2.00 ± 0.39              │████████████",
        "  sales    +0.20 ± 0.39              │░",
        "  <other>  +0.00 ± 0.39              │",
        "  crafts   -1.00 ± 0.39        ██████│",
        "",
        "sex and job: weight 0.0992, epsilon 0.125, ± 0.20",
        "                 F        M",
        "  crafts   (+0.00)  (+0.00)",
        "  sales    (+0.00)  (+0.00)",
        "  none     (+0.00)   -0.60",
        "  <other>  (+0.00)  (+0.00)",
    ]


def test_text_of_five_classes_names_the_one_that_gains_most() -> None:
    published = model(5)
    lines = text(published).splitlines()
    job = published.tables[2].values
    for row, label in enumerate(JOB.labels):
        line = next(line for line in lines if line.startswith(f"  {label} ") and "," not in line)
        assert re.findall(r"[+-]\d\.\d\d", line) == [signed(value) for value in job[row]]
        assert line.split()[-1].strip("()") == f"c{np.argmax(job[row])}"
    assert sum("gains most" in line for line in lines) == 3
    assert any(line.startswith("  crafts, [17, 36)") for line in lines)


def test_text_of_many_classes_shows_one_for_each_cell() -> None:
    of = domain(300)
    drawn = text(only(of, table(of, "job")))
    assert max(map(len, drawn.splitlines())) < 120 and len(drawn.splitlines()) == 11
    best = int(np.argmax(table(of, "job").values[1]))
    assert re.search(rf"  sales +c{best} +\+{table(of, 'job').values[1, best]:.2f} ± ", drawn)


def test_text_gives_reasons_and_orders_tables_by_weight() -> None:
    drawn = text(model(privacy=Privacy("a", "b", Fraction(1), reasons=("seeded\x1b[2J noise",))))
    assert "NOT PRIVATE" in drawn.splitlines()[0]
    assert drawn.splitlines()[1] == "not private: seeded␛[2J noise"
    weights = [float(found) for found in re.findall(r"weight ([\d.]+)", drawn)]
    assert len(weights) == 3 and weights == sorted(weights, reverse=True)  # the two of age are one


# -- true to the model --------------------------------------------------------------------------


def told_by(published: Tables) -> set[str]:
    """Every number that a drawing of the model may show, with its error."""
    found = set()
    for each in published.merged().tables:
        values, error = each.values, 1.96 * each.deviation
        if values.shape[-1] == 2:
            values, error = values[..., 1:] - values[..., :1], error.sum(axis=-1, keepdims=True)
        for value, half in zip(values.ravel(), error.ravel(), strict=True):
            found |= {signed(value), f"{signed(value)} ± {half:.2f}"}
    return found


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_every_number_drawn_is_in_the_model(classes: int) -> None:
    published = model(classes)
    known = told_by(published)
    drawn = svg(published)
    shown = [re.search(r": \S+ ([+-][\d.]+(?: ± [\d.]+)?)", title) for title in titles(drawn)]
    numbers = {found[1] for found in shown if found}
    assert numbers <= known and len(numbers) > 20
    fields = [node.text or "" for node in ElementTree.fromstring(drawn).iter(f"{NS}text")]
    exact = {words.replace("\u2212", "-") for words in fields if re.fullmatch("[+\u2212]\\d+\\.\\d\\d( ± .*)?", words)}
    assert exact and exact <= known
    body = text(published).partition("no effect.")[2]
    written = set(re.findall(r"[+-]\d+\.\d\d(?: ± \d+\.\d\d)?", body))
    assert written <= known and len(written) > 20


def test_a_number_that_may_be_none_is_faint() -> None:
    of = domain()
    values = np.array([[0.0, 0.0], [-1.0, 1.0], [-0.1, 0.1], [0.2, -0.2]])
    bars = svg(only(of, Table(("job",), values, np.full((4, 2), 0.15), Fraction(1, 4))))
    assert re.findall(r'<rect class="((?:more|less)[^"]*)"', bars) == ["more", "more faint", "less faint", "less faint"]
    exact = svg(only(of, Table(("job",), values, np.zeros((4, 2)), Fraction(0))))  # what somebody wrote has no error
    assert "±" not in "".join(titles(exact)) and 'class="more faint"' not in exact


def test_a_bar_is_as_long_as_its_number() -> None:
    of = domain()
    values = np.array([[0.0, 0.0], [-1.0, 1.0], [-0.5, 0.5], [0.25, -0.25]])
    drawn = svg(only(of, Table(("job",), values, np.zeros((4, 2)), Fraction(0))))
    widths = [float(width) for width in re.findall(r'class="(?:more|less)[^>]*? width="([\d.]+)" height="10"', drawn)]
    assert widths[1] / widths[0] == pytest.approx(0.5, abs=0.02)
    assert widths[3] / widths[0] == pytest.approx(0.25, abs=0.02)


def test_a_numeric_attribute_is_a_line_with_a_band_and_its_missing_cell_stands_beside_it() -> None:
    of = domain()
    found = table(of, "age")
    drawn = svg(only(of, found))
    assert drawn.count('class="band"') == drawn.count('class="line"') == 1
    value = signed(found.values[-1, 1] - found.values[-1, 0])
    assert any(title.startswith(f"age = <missing>: high {value} ±") for title in titles(drawn))
    assert any(title.startswith("age in [17, 36): high ") for title in titles(drawn))
    words = [node.text for node in ElementTree.fromstring(drawn).iter(f"{NS}text")]
    assert "missing" in words and "17" in words and "90" in words
    several = svg(only(domain(5), table(domain(5), "age")))
    assert several.count('class="band"') == 5 and several.count(">missing<") == 5


def test_the_labels_of_an_axis_of_dates_stay_on_their_paper() -> None:
    of = domain(2, Date("admitted", "2019-01-01", "2023-12-31"))
    drawn = ElementTree.fromstring(svg(only(of, table(of, "admitted"))))
    dates = {node.text: float(node.get("x", "nan")) for node in drawn.iter(f"{NS}text") if "-" in (node.text or "")}
    width = float(drawn.get("viewBox", "").split()[2])
    assert {"2019-01-01", "2023-12-31"} <= set(dates)
    assert dates["2023-12-31"] + len("2023-12-31") * LETTER / 2 <= width


def test_a_pair_is_a_heat_map_for_each_class() -> None:
    for classes, maps in ((2, 1), (5, 5)):
        of = domain(classes)
        drawn = svg(only(of, table(of, "job", "age")))
        assert drawn.count('class="frame"') == maps and drawn.count("fill-opacity") == maps * 4 * 5


def test_captions_tell_cost_and_weight_and_the_note_is_shown() -> None:
    published = model(note="too little <signal>")
    for content in (svg(published), page(published)):
        assert "epsilon 0.5<" in content  # two tables of age
        assert "too little &lt;signal&gt;" in content
    assert "too little <signal>" in text(published)


# -- the page -----------------------------------------------------------------------------------


def test_the_page_tells_promise_cost_tables_sums_and_domain(tmp_path: Path) -> None:
    published = model()
    drawn = page(published)
    assert (
        "epsilon 1 per person" in drawn and "if no person has more than 2 rows" in drawn and "NOT PRIVATE" not in drawn
    )
    assert "a sum of 4 tables, drawn as 3" in drawn
    assert "crafts, sales, none, &lt;other&gt;" in drawn
    assert "In no table: sex." in drawn
    parsed(drawn)
    published.to_html(tmp_path / "model.html")
    assert (tmp_path / "model.html").read_text(encoding="utf-8") == drawn


def test_the_budget_bar_shows_every_question_and_what_is_left() -> None:
    drawn = page(model())
    bar = re.findall(r'flex:([\d.]+);opacity[^"]*" title="([^"]*)"', drawn)
    assert bar == [
        ("50.000", "class counts, 0.05"),
        ("50.000", "table 1: choice of a table, 0.05"),
        ("200.000", "table 1: table of age, 0.2"),
        ("200.000", "table 2: table of job and age, 0.2"),
    ]
    assert "not spent: 0.5" in drawn
    for told in ("class counts 0.05<", "choices of tables 0.05<", "tables 0.4<"):
        assert told in drawn


def test_a_model_that_is_not_private_says_so_loudly() -> None:
    drawn = page(model(privacy=Privacy("a", "b", Fraction(1), reasons=("its noise was <b>seeded</b>",))))
    assert "NOT PRIVATE" in drawn and "<li>its noise was &lt;b&gt;seeded&lt;/b&gt;</li>" in drawn


@pytest.mark.parametrize("classes", [1, 2, 3, 5])
def test_a_model_without_tables_is_its_class_shares(classes: int) -> None:
    prior = Tables(domain(classes), (0.0,) * classes, (), RECORD, note="too little signal")
    ElementTree.fromstring(svg(prior))
    assert "too little signal" in page(prior) and "What each table adds" not in page(prior)
    assert percent(1 / classes) in page(prior) and percent(1 / classes) in text(prior)
    parsed(page(prior))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_worked_example_is_a_prediction(classes: int) -> None:
    of = domain(classes, SEX, JOB, Nominal("city", tuple("abc")))
    published = only(of, table(of, "sex", "job"), table(of, "job", "city", seed=1), table(of, "city", seed=2))
    drawn = page(published)
    for number, name in enumerate(of.target_column.texts):
        cells = likely(published, number)
        labels = {column: of[column].labels[cell] for column, cell in cells.items()}
        share = published.predict_proba(pd.DataFrame([labels]))[0, number]
        assert f"Likely {name}: {percent(share)}" in drawn
        for column in cells:  # no other cell of one attribute makes the class likelier
            others = pd.DataFrame([{**labels, column: label} for label in of[column].labels])
            assert published.predict_proba(others)[:, number].max() <= share + 1e-9


def test_pictures_follow_the_text_colour_and_fetch_nothing() -> None:
    assert "currentColor" in svg(model())
    assert "default-src 'none'" in page(model())
    for content in (svg(model()), svg(model(5)), page(model()), page(model(5))):
        assert not re.search(r"(href|src)\s*=|url\(|@import|<script", content)
        assert set(re.findall(r"https?://[^\"' <]+", content)) <= {"http://www.w3.org/2000/svg"}


def test_no_share_is_written_as_certain() -> None:
    assert [percent(share) for share in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0)] == [
        "0.0%",
        "under 0.1%",
        "50.0%",
        "over 99.9%",
        "100.0%",
    ]


# -- size ---------------------------------------------------------------------------------------


def check_size(published: Tables) -> None:
    drawn, whole = svg(published), page(published)
    assert len(text(published).splitlines()) <= 402
    assert len(drawn) < 1_000_000 and len(whole) < 1_300_000
    ElementTree.fromstring(drawn)
    parsed(whole)


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_neighbouring_bins_that_say_the_same_are_one_line_and_what_is_missing_stays_apart(classes: int) -> None:
    fine = Numeric("x", 0, 100, bins=100, missing=True)
    of = domain(classes, fine, SEX)
    shape = (4, 2, classes)  # learned in three bins, from 0, 30 and 60, and the cell of missing values
    coarse = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    declared = np.repeat(coarse, [30, 30, 40, 1], axis=0)
    published = only(of, Table(("x", "sex"), declared, np.full(declared.shape, 0.01)))
    for shown in (text(published), svg(published)):
        assert all(label in shown for label in ("[0, 30)", "[30, 60)", "[60, 100]"))
        assert "[1, 2)" not in shown and "more cell" not in shown and "missing" in shown


@pytest.mark.parametrize("classes", [2, 5, 40])
@pytest.mark.parametrize(
    "column", [Nominal("x", tuple(range(1000))), Numeric("x", Fraction(0), Fraction(1), Fraction(1, 1000), bins=1000)]
)
def test_an_attribute_of_a_thousand_cells_is_cut_and_says_by_how_much(classes: int, column: Column) -> None:
    of = domain(classes, column, SEX)
    published = only(of, table(of, "x"), table(of, "x", "sex"))
    check_size(published)
    assert "... 976 more cells" in text(published)
    assert "… 976 more cells" in svg(published) if isinstance(column, Nominal) else "… 800 more cells" in svg(published)
    strongest = np.abs(published.tables[0].values[:, -1]).argmax()
    if classes == 2 and isinstance(column, Nominal):
        assert f"  {strongest} " in text(published)


@pytest.mark.parametrize("classes", [2, 7])
def test_of_three_hundred_tables_the_heaviest_are_drawn(classes: int) -> None:
    of = domain(classes, *(Nominal(f"x{number}", tuple(range(9))) for number in range(30)))
    pairs = [(f"x{a}", f"x{b}") for a in range(30) for b in range(a)][:300]
    published = only(of, *(table(of, *pair, seed=number) for number, pair in enumerate(pairs)))
    check_size(published)
    drawn = svg(published)
    hidden = re.search(r"… (\d+) more tables", drawn)
    assert hidden and int(hidden[1]) + drawn.count("weight ") == 300 and drawn.count("weight ") >= 4
    hidden = re.search(r"\.\.\. (\d+) more tables", text(published))
    assert hidden and int(hidden[1]) + text(published).count("weight ") == 300
    assert "… 260 more tables" in page(published)  # of a sum


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e18])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_numbers_of_any_size_are_drawn(scale: float, classes: int) -> None:
    """Whatever a model file may hold, tables of three attributes among it."""
    of = domain(classes)
    tables = [table(of, *columns, seed=1) for columns in (("age",), ("job",), ("job", "age"), ("job", "age", "sex"))]
    published = only(of, *(replace(each, values=scale * (each.values + 1)) for each in tables))
    check_size(published)
    assert "nan" not in text(published) + page(published).replace("finance", "")


# -- hostile labels -----------------------------------------------------------------------------

TAGS = set(
    "html head meta title style body main h1 h2 h3 p section sup div i table tr th td span details summary pre svg "
    "path text rect g".split()
)


def hostile(labels: list[str], classes: int) -> Tables:
    of = Domain(
        (Nominal("t" + labels[0], tuple(labels[:classes])), *(Nominal(name, tuple(labels)) for name in labels[1:4])),
        target="t" + labels[0],
    )
    names = of.attributes
    tables = (table(of, names[0]), table(of, names[1]), table(of, names[0], names[2]), table(of, *names))
    steps = tuple(Step(-1, level, f"table of {label[:900]}", 1, Fraction(1, 90)) for level, label in enumerate(labels))
    record = Privacy(labels[2][:1000], labels[3][:1000], Fraction(1), 1, steps)
    return Tables(of, (0.0,) * classes, tables, record, labels[1][:1000])


def check_hostile(published: Tables) -> None:
    drawn, whole, lines = svg(published), page(published), text(published)
    ElementTree.fromstring(drawn)
    parsed(whole)
    tags = {tag.strip("/") for tag in re.findall(r"<([a-zA-Z!?/][^\s>/]*)", whole)} - {"!doctype"}
    assert tags <= TAGS
    assert len(whole) < 2_000_000 and len(lines.splitlines()) <= 402
    assert all(letter >= " " or letter == "\n" for letter in drawn + whole + lines)
    assert not re.search("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", drawn + whole + lines)
    assert max(map(len, lines.splitlines())) < 1200
    (drawn + whole).encode()


@pytest.mark.parametrize("classes", [2, 5, 10])
def test_no_label_is_more_than_text(classes: int) -> None:
    for start in (0, 3, 8):
        check_hostile(hostile(EVIL[start:] + EVIL[:start], classes))


@PROPERTY
@given(st.lists(st.text(st.characters(), max_size=30), min_size=5, max_size=6, unique=True), st.sampled_from([2, 4]))
def test_any_label_is_only_text(labels: list[str], classes: int) -> None:
    check_hostile(hostile(["t" + label for label in labels], classes))


def test_a_long_label_is_short_in_the_picture_and_whole_in_its_tooltip() -> None:
    long = "Married to somebody who serves in the armed forces"
    of = domain(2, Nominal("x", (long, "no")))
    drawn = svg(only(of, table(of, "x")))
    labels = [node for node in ElementTree.fromstring(drawn).iter(f"{NS}text") if "Married" in "".join(node.itertext())]
    title = labels[0].find(f"{NS}title")
    assert title is not None and title.text == long
    assert len(title.tail or "") <= 24 and (title.tail or "").endswith("…")
