"""Drawings of panels: every number is in them, they need no colour, and no text can become more than words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from privet.report.chart import looks
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Claim, Findings, Number, Panel
from privet.studies.pages.frontier import best, best_where, frontier
from privet.studies.pages.listing import largest_difference, listing
from privet.studies.pages.plot import drawing, key, leading, looks_of, picture, shared_span, tradeoff
from privet.studies.pages.terminal import lines
from privet.studies.pages.words import ours_text
from privet.studies.study import Study

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '</style><script x="1">&\x00\u202e'
EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
METHODS = ("max", "gini", "infogain", "sulq")


def estimate(mean: float, sd: float = 1.0, n: int = 10) -> Estimate:
    return Estimate(mean, sd, n)


def panel(kind: str = "lines", names: Sequence[str] = METHODS, n: int = 10, **more: object) -> Panel:
    """Each method is a little below the one before it, and all rise; the first was published and has a closed form."""
    cells = [
        Cell(
            name,
            epsilon,
            estimate(75.0 + place - 0.7 * i, n=n),
            Number(75.5 + place, reading=0.4) if i == 0 else None,
            Number(75.2 + place) if i == 0 else None,
        )
        for i, name in enumerate(names)
        for place, epsilon in enumerate(EPSILONS)
    ]
    return replace(Panel("Adult", "epsilon", tuple(cells), kind=kind, log=True), **more)  # type: ignore[arg-type]


def parsed(drawn: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)


def told(drawn: str) -> str:
    return " ".join("".join(each.itertext()) for each in parsed(drawn).iter() if each.tag != f"{SVG}style")


@pytest.mark.parametrize("kind", ["lines", "heat", "bars", "table"])
def test_a_picture_stands_alone_on_light_and_dark_paper(kind: str) -> None:
    drawn = picture(panel(kind))
    root = parsed(drawn)
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and "Adult" in (root.get("aria-label") or "")
    assert "prefers-color-scheme: dark" in drawn
    assert not re.search(r"<script|href|url\(|@import|<image|\son\w+=", drawn)
    assert drawn.count("http") == 1  # the namespace
    assert not re.search(r"\b(nan|inf)\b", drawn)
    assert drawn == picture(panel(kind))


@pytest.mark.parametrize("kind", ["lines", "heat", "bars", "table"])
def test_every_number_can_be_read_by_pointing_at_it(kind: str) -> None:
    titles = " ".join(each.text or "" for each in parsed(picture(panel(kind))).iter(f"{SVG}title"))
    for cell in panel(kind).cells:
        assert f"{cell.ours.mean:.3g}" in titles or f"{cell.ours.mean:.2f}" in titles
    assert ("75.5" in titles) and (kind == "heat" or "75.2" in titles)


@pytest.mark.parametrize("kind", ["lines", "heat", "bars", "table"])
@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0], [0.0, 0.0], [-3.0, 4.0], [1e-9, 1e9], [0.001]])
def test_any_numbers_can_be_drawn(kind: str, values: list[float]) -> None:
    """One value has no range, and zero has no logarithm."""
    for at in ([float(i) for i in range(len(values))], [f"a {i}" for i in range(len(values))], [7.0] * len(values)):
        cells = tuple(
            Cell(f"s{i}", place, estimate(v, n=1 + i)) for i, (place, v) in enumerate(zip(at, values, strict=True))
        )
        for log in (False, True):
            assert parsed(picture(Panel("t", "x", cells, "y", kind, log))) is not None


@pytest.mark.parametrize("kind", ["lines", "heat", "bars", "table"])
def test_hostile_names_are_words_and_nothing_else(kind: str) -> None:
    plain = panel(kind, ["a", "b"])
    evil = panel(kind, [HOSTILE + "a", HOSTILE + "b"], title=HOSTILE, x=HOSTILE, y=HOSTILE)
    tags = [[each.tag for each in parsed(picture(each)).iter()] for each in (plain, evil)]
    assert tags[0] == tags[1]
    styles = [next(parsed(picture(each)).iter(f"{SVG}style")).text for each in (plain, evil)]
    assert styles[0] == styles[1]


def test_series_differ_in_more_than_their_colour() -> None:
    found = looks(str(i) for i in range(50))
    assert len({(look.mark, look.dash) for look in found.values()}) == 50


def test_published_numbers_are_hollow_and_show_how_far_they_may_be_misread() -> None:
    drawn = picture(panel(names=["max"]))
    assert drawn.count('<g class="paper"') == 2 * len(EPSILONS)  # published, and closed forms
    assert drawn.count('class="whisker"') == len(EPSILONS)
    assert {title for _, title in key(panel(), looks_of([panel()]))} >= {"hollow: published", "cross: closed form"}
    assert "published" not in picture(replace(panel(names=["max"]), cells=panel().line("gini")))


def test_few_repeats_have_no_band() -> None:
    assert 'class="band' in picture(panel(n=3)) and 'class="band' not in picture(panel(n=2))


def test_heat_maps_print_their_numbers_and_share_a_ramp() -> None:
    low, high = panel("heat"), panel("heat", title="other")
    high = replace(high, cells=tuple(replace(c, ours=estimate(c.ours.mean + 20)) for c in high.cells))
    assert shared_span(low, [low, high]) == (72.9, 102.0)
    assert {"75.0", "72.9", "82.0"} <= set(told(picture(low)).split())
    alone, shared = (drawing(low, span=span).inline for span in (None, shared_span(low, [low, high])))
    assert 'fill-opacity="1"' in alone and 'fill-opacity="1"' not in shared


# -- trade-off ----------------------------------------------------------------------------------


def crossing() -> Panel:
    """One is better for little, the other for much; in the middle they cannot be told apart."""
    cells = [Cell("steady", e, estimate(80.0)) for e in (0.1, 1.0, 10.0)]
    cells += [Cell("greedy", e, estimate(m)) for e, m in ((0.1, 60.0), (1.0, 80.1), (10.0, 90.0))]
    return Panel("Adult", "epsilon", tuple(cells), log=True, levels=(("majority class", estimate(75.0)),))


def test_the_frontier_is_what_nothing_beats() -> None:
    assert [(cell.series, clear) for cell, clear in best(crossing())] == [
        ("steady", True),
        ("greedy", False),
        ("greedy", True),
    ]
    assert [cell.ours.mean for cell in frontier(crossing())] == [80.0, 80.1, 90.0]
    falling = replace(crossing(), cells=tuple(Cell("a", e, estimate(-e)) for e in (1.0, 2.0, 3.0)))
    assert [cell.at for cell in frontier(falling)] == [1.0]
    assert list(best_where(crossing())) == ["epsilon 0.1: steady", "epsilon 1 to 10: greedy (others come close)"]


def test_a_trade_off_shows_levels_and_who_is_best() -> None:
    drawn = tradeoff([crossing(), replace(crossing(), y="AUROC in percent")], "Costs", "of privacy", "privet study")
    words = told(drawn)
    for each in ("Costs", "of privacy", "privet study", "majority class", "steady", "greedy", "AUROC in percent"):
        assert each in words
    assert drawn.count('class="line round"') == 2
    assert drawn == tradeoff(
        [crossing(), replace(crossing(), y="AUROC in percent")], "Costs", "of privacy", "privet study"
    )
    assert tradeoff([], "nothing") == ""


def test_of_eighteen_lines_seven_have_a_look_and_the_others_are_grey_with_their_numbers() -> None:
    """The lines of `study compare`: those that lead are told apart, all can be pointed at, and the key says so."""
    names = [f"learner {number}" for number in range(18)]
    crowd = panel(names=names, frontier=True)
    assert leading(crowd) == tuple(names[:7])  # each is a little below the one before it
    entries = [title for _, title in key(crowd, looks_of([crowd]))]
    assert entries[:8] == [*names[:7], "11 others: point at them, or read the table"]
    drawn = picture(crowd)
    assert len(re.findall(r'<g class="crowd" stroke-width="1"><path class="line"', drawn)) == 12  # and the key
    assert all(f"{name}, epsilon 0.5" in drawn for name in names)
    late = Cell("learner 17", 10.0, estimate(99.0))
    winner = replace(
        crowd, cells=(*(cell for cell in crowd.cells if (cell.series, cell.at) != (late.series, late.at)), late)
    )
    assert "learner 17" in leading(winner) and len(leading(winner)) == 7
    assert leading(panel(names=names)) == tuple(names)  # without a frontier every line is as good as another


# -- numbers ------------------------------------------------------------------------------------


def test_a_listing_says_how_far_apart_numbers_are() -> None:
    found = listing(panel(names=["max", "gini"]))
    assert found.heads == ("series", "epsilon", "paper", "closed form", "ours ± se (n)", "\u2212 paper", "\u2212 form")
    # 75 less 75.5 within 0.4, in standard errors of 1 / sqrt(10)
    assert found.rows[0] == ("max", "0.05", "75.5 (±0.4)", "75.2", "75.00 ± 0.32 (10)", "\u22120.3", "\u22120.6")
    assert found.rows[8] == ("gini", "0.05", "", "", "74.30 ± 0.32 (10)", "", "")
    assert listing(replace(panel(), cells=panel().line("gini"))).heads == ("series", "epsilon", "ours ± se (n)")


def test_the_largest_difference_is_that_to_a_published_number() -> None:
    far = Cell("x", 1.0, estimate(70.0), Number(75.0), Number(1000.0))
    assert largest_difference(Findings((replace(panel(), cells=(*panel().cells, far)),))) == pytest.approx(-5 * 10**0.5)
    assert largest_difference(Findings(())) is None


def test_an_estimate_without_spread_is_not_sold_as_certain() -> None:
    assert ours_text(Estimate(83.0, 0.0, 1)) == "83 (1)"
    assert ours_text(Estimate(83.0, 0.001, 4), places=2) == "83.00 ± <0.01 (4)"


def test_a_terminal_shows_everything_within_a_hundred_columns() -> None:
    long = "word " * 60
    study = Study("paper-figure-1", "title " * 30, long, lambda size: (), lambda outcomes: Findings(()), about=long)
    named = panel(
        names=["a splitting criterion with a very long name indeed, longer than any", "b\x1b[31m"], x="x" * 60
    )
    claims = (
        Claim(f"one {long}", True, "seen"),
        Claim("two", False, "not seen", "the erratum"),
        Claim("3", None, "few"),
    )
    shown = list(lines(study, Findings((named, panel("heat")), claims, ("a note", "n" * 300))))
    assert max(len(line) for line in shown) <= 100
    text = "\n".join(shown)
    for each in ("paper-figure-1", "75.5 (±0.4)", "75.00 ± 0.32 (10)", "\u22120.3", "✓ one", "✗ two", "? 3"):
        assert each in text
    for each in ("Does not hold: not seen", "Why: the erratum", "Open at this size: few", "- a note"):
        assert each in text
    assert "\x1b" not in text
