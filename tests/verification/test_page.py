"""The page of a verification: it tells everything, believes no text it is given and loads nothing."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.verification.attacks import ATTACKS, AttackResult
from privet.verification.page import page
from privet.verification.verdict import Finding, Report, Verdict, number

EVIL = "</td></svg><script>alert(1)</script><img src=x onerror='alert(2)'>\" onclick=\"alert(3)&amp;"
VOID = {"meta", "br", "img", "input", "link", "hr"}
EXACT = Finding("every outcome", "[0] and [1]", "the mechanisms release [-1]", 1.0, 8, 0.0, 1.0, "all 8 outcomes")
SAMPLED = Finding("neighbours", "a pair", "output is at most 0", 0.8125, 16_000, 1e-8, 1.295, "seen in 72% of runs")
NOBODY = Finding("canaries", "600 canaries", "guess nobody", -math.inf, 15, 5e-9)


def verdict(subject: str, *findings: Finding, kind: str = "mechanism", claim: str = "1", bad: bool = False) -> Verdict:
    return Verdict(subject, kind, f"what {subject} is", Fraction(claim), findings or (EXACT, SAMPLED), bad)


def shows(bound: float, event: str = "output is at least 3", power: float = 1.295) -> Finding:
    return replace(SAMPLED, bound=bound, event=event, power=power)


def all_attacks(**others: AttackResult) -> tuple[AttackResult, ...]:
    held = [AttackResult(each.number, each.name, each.leak, True) for each in ATTACKS]
    return tuple(others.get(f"n{each.number}", each) for each in held)


def membership(right: float = 0.68) -> dict[str, Any]:
    ceilings = {epsilon: 1 / (1 + math.exp(-epsilon)) for epsilon in (0.1, 1.0, 10.0)}
    points = [
        {"epsilon": e, "accuracy": min(right, top), "ceiling": top, "guesses": 27_000, "low": 0.5, "high": 1.0}
        for e, top in ceilings.items()
    ]
    points[1] |= {"accuracy": right, "low": right - 0.02, "high": right + 0.02}
    return {"curve": "membership", "subject": "a forest & its leaves", "points": points}


def reconstruction(*epsilons: float | None) -> dict[str, Any]:
    known = {"mismatch": 0.31, "informed": 0.172, "blind": 0.181, "gap": 0.0, "inference": 0.625, "margin": 0.05}
    points = [{"epsilon": e, **known, "ceiling": 1.0 if e is None else 1 / (1 + math.exp(-2 * e))} for e in epsilons]
    return {"curve": "reconstruction", "subject": "thirty trees", "points": points}


HONEST = (
    verdict("integer-laplace"),
    verdict("median", shows(0.654), NOBODY, kind="question"),
    verdict("maxtree", shows(0.1, power=0.4), kind="preset", claim="1/3"),
    verdict("peer.Forest", shows(0.25, power=0.8), kind="estimator", claim="0.5"),
    verdict("my-function", kind="function"),
)
BAD = (
    verdict("float-noise", shows(math.inf), kind="known-bad", bad=True),
    verdict("half-noise", shows(1.93), NOBODY, kind="known-bad", bad=True),
)
POWERLESS = verdict("rounded", shows(0.0, power=math.inf), kind="function")
TIMING = AttackResult(11, "timing", "Work shows in time.", None, ("no clock was asked.",))
BROKEN = AttackResult(
    5, "errors that only some rows cause", "An error tells.", False, ("a count raises.", "it quotes.")
)
WHOLE = Report(
    (*HONEST, *BAD), all_attacks(n11=TIMING), "a table in memory", (membership(), reconstruction(0.3, 1.0, 30.0, None))
)


class Tags(HTMLParser):
    """The tags of a page; it fails where one is not closed, and keeps every attribute and all visible text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Iterable[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def read(report: Report) -> Tags:
    return Tags(page(report))


def headings(report: Report) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page(report))


# -- what it tells ----------------------------------------------------------------------------


def test_every_verdict_is_told_with_its_evidence() -> None:
    words = read(WHOLE).words
    for each in WHOLE.verdicts:
        assert each.subject in words and each.line in words
        assert number(each.lower_bound) in words
        for finding in each.findings:
            for told in (finding.method, finding.tables, finding.event, finding.note, f"{finding.runs:,}"):
                assert told in words
    assert "1/3" in words and "infinity" in words and "may miss a mechanism of any epsilon" in words
    assert "a mechanism of epsilon 1.295, sold as 1, would have been found" in words
    assert words.count(" holds ") >= 2 * len(HONEST) and words.count("caught") >= 2 * len(BAD)
    assert "BROKEN" not in words and "UNDECIDED" not in words and "-inf" not in words and "nan" not in words.split()


def test_the_headline_of_a_report_that_is_as_it_should_be() -> None:
    words, content = read(WHOLE).words, page(WHOLE)
    assert "Everything honest holds as far as tested, everything known to be bad was caught" in words
    assert '<section class="good">' in content and 'class="alarm"' not in content
    assert "5 subjects tested" in words and "2 known to be bad, all caught" in words
    assert f"{len(ATTACKS) - 1} of {len(ATTACKS)} attacks held off, 1 not decided" in words
    runs = sum(finding.runs for each in WHOLE.verdicts for finding in each.findings)
    assert f"{runs:,} runs" in words
    assert WHOLE.to_dict()["alpha"] == pytest.approx(5.5e-8)  # 1 in 18,181,818
    assert "1 in 18,000,000 chance of any false alarm" in words


def test_the_headline_says_what_is_wrong() -> None:
    loose = verdict("my-laplace", shows(1.31, "output is 7"), kind="function")
    missed = verdict("missed", shows(0.93), kind="known-bad", bad=True)
    report = Report((HONEST[0], loose, BAD[0], missed), all_attacks(n5=BROKEN), "duckdb")
    words, content = read(report).words, page(report)
    assert not report.passed and '<section class="alarm">' in content
    said = "Broken: 1 subject loses more than it says, 1 known-bad fixture was not caught, 1 attack got through"
    assert said in words
    assert "my-laplace claims epsilon 1 and loses at least 1.310: output is 7 (neighbours on a pair)" in words
    assert "missed claims epsilon 1 and loses at least 0.930: it is known to be bad and was not caught" in words
    assert "Attack 5, errors that only some rows cause, got through: a count raises. it quotes." in words
    assert "BROKEN" in words and "NOT CAUGHT" in words and "GOT THROUGH" in words
    assert "2 subjects lose more than they say" in read(Report((loose, loose))).words


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (Report(), "Nothing was tested"),
        (Report(HONEST), "Everything holds as far as tested"),
        (Report(BAD), "Everything known to be bad was caught"),
        (Report(HONEST[:1]), "It holds as far as tested"),
        (Report((POWERLESS,)), "Undecided: no power is no pass"),
        (Report((*HONEST, POWERLESS)), "Undecided about 1 subject: no power is no pass"),
        (Report(BAD[:1]), "Known to be bad, and caught"),
        (Report(attacks=all_attacks()), "Everything holds as far as tested"),
        (Report(attacks=(TIMING,)), "Nothing was decided"),
        (Report(curves=(membership(),)), "No claim was tested"),
    ],
)
def test_no_more_is_said_than_was_tested(report: Report, said: str) -> None:
    assert f'<p class="big">{said}</p>' in page(report)


def test_what_no_test_with_power_was_held_against_is_no_pass() -> None:
    """Would catch a green page over a test that would miss anything."""
    report = Report((*HONEST, POWERLESS, *BAD))
    words, content = read(report).words, page(report)
    assert report.outcome == "undecided" and not report.passed
    assert '<section class="unsure">' in content and 'class="good"' not in content and 'class="alarm"' not in content
    assert "rounded claims epsilon 1 and no more than 0.000 was shown, by a test that would miss 2 times the" in words
    assert "UNDECIDED" in words


def test_a_bound_just_above_its_claim_is_told_with_enough_digits() -> None:
    words = read(Report((verdict("a", shows(1.00002)), verdict("b", shows(1.0000021))))).words
    assert "1.00002" in words and "1.00000210" in words
    assert "1.0000000" not in read(Report((verdict("honest", shows(1 + 1e-9)),))).words


def test_a_single_verdict_is_a_page(tmp_path: Path) -> None:
    file = tmp_path / "verdict.html"
    content = HONEST[1].to_html(file)
    assert file.read_text(encoding="utf-8") == content
    assert "Does median leak more than it says?" in Tags(content).words
    assert "0.654" in content and "guess nobody" in content


def test_it_says_how_to_read_it() -> None:
    words = read(Report(HONEST[:1])).words
    for told in ("Claim", "Lower bound", "Power", "Alpha", "not a proof", "docs/explanation/privacy.md", "disproof"):
        assert told in words
    assert "Known to be bad" not in words and "Known to be bad" in read(WHOLE).words


def test_sections_without_content_are_left_out() -> None:
    assert headings(WHOLE) == [
        "What is claimed, and what was found",
        "The evidence",
        f"{len(ATTACKS)} attacks on a table in memory",
        "How far attacks get",
        "How to read this",
    ]
    assert headings(Report()) == ["How to read this"]
    assert headings(Report(HONEST)) == ["What is claimed, and what was found", "The evidence", "How to read this"]
    assert headings(Report(attacks=(TIMING,))) == ["1 attack", "How to read this"]
    unknown = ({"curve": "of a kind to come"}, {**membership(), "points": []})
    assert headings(Report(curves=unknown)) == ["How to read this"]


# -- the picture of all claims ----------------------------------------------------------------


def places(report: Report) -> dict[str, tuple[float, float]]:
    """Where the claim and the bound of each subject are drawn, in percent."""
    found = {}
    for row in page(report).split('<div class="row">')[1:]:
        name = re.search(r'<a class="name"[^>]*>(.*?)</a>', row)
        claim = re.search(r'class="claim" x1="([\d.]+)%"', row)
        bound = re.search(r'<svg x="([\d.]+)%"', row)
        assert name and claim and bound
        found[name[1]] = float(claim[1]), float(bound[1])
    return found


def test_a_bound_is_drawn_on_its_side_of_the_claim() -> None:
    drawn = places(WHOLE)
    assert list(drawn) == [each.subject for each in WHOLE.verdicts]
    for each in WHOLE.verdicts:
        claim, bound = drawn[each.subject]
        assert (bound > claim) == (each.outcome == "broken")
        assert 0 <= bound <= 100 and 0 <= claim <= 100
    assert drawn["integer-laplace"][0] == pytest.approx(drawn["integer-laplace"][1])
    assert drawn["float-noise"][1] == 100 and drawn["half-noise"][1] < 93 and "∞" in page(WHOLE)


def test_shapes_and_words_say_what_colours_say() -> None:
    report = Report((HONEST[0], verdict("loose", shows(1.3)), BAD[0], POWERLESS))
    rows = page(report).split('<div class="row">')[1:]
    shapes = [re.findall(r'<g class="marks"[^>]*>(.*?)</g>', row)[0] for row in rows]
    assert len(set(shapes)) == 4
    told = {"integer-laplace": "holds", "rounded": "UNDECIDED", "loose": "BROKEN", "float-noise": "caught"}
    for name, word in told.items():
        (row,) = (row for row in rows if f">{name}</a>" in row)
        assert f"{word}</span>" in row


@pytest.mark.parametrize(("bounds", "log"), [((1.0, 2.5), False), ((0.0, 8.7), True), ((math.inf,), False)])
def test_far_bounds_make_the_scale_logarithmic(bounds: tuple[float, ...], log: bool) -> None:
    content = page(Report(tuple(verdict(str(bound), shows(bound)) for bound in bounds)))
    assert ("a logarithmic scale" in content, "≤ 0.1" in content) == (log, log)


@given(
    st.lists(
        st.tuples(
            st.fractions(Fraction(1, 10**6), 10**6),
            st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -math.inf]),
            st.floats(0, 1e6) | st.just(math.inf),
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_any_claim_and_bound_can_be_drawn(numbers: list[tuple[Fraction, float, float]]) -> None:
    verdicts = [
        replace(verdict(f"s{i}", replace(SAMPLED, bound=bound, power=power)), claim=claim)
        for i, (claim, bound, power) in enumerate(numbers)
    ]
    content = page(Report(tuple(verdicts)))
    assert not re.search(r"[\"\s(](nan|-?inf)[\"%\s)]", content.split("</style>")[1])
    assert not re.search(r'width="-', content)
    Tags(content)


# -- attacks and curves -----------------------------------------------------------------------


def test_every_attack_is_told() -> None:
    words = read(Report(attacks=all_attacks(n5=BROKEN, n11=TIMING), layer="duckdb at the hospital")).words
    assert f"{len(ATTACKS)} attacks on duckdb at the hospital" in words
    for each in ATTACKS:
        assert each.name in words
    assert words.count(" held ") >= 13 and "GOT THROUGH a count raises. it quotes." in words
    assert "not decided no clock was asked." in words


def test_a_membership_curve_has_axes_a_legend_and_a_caption() -> None:
    words = read(Report(curves=(membership(),))).words
    assert "a forest & its leaves" in words and "epsilon" in words and "guesses that are right" in words
    assert "at epsilon 1, 68.0% of 27,000 guesses are right" in words and "the promise allows 73.1%" in words
    assert "the most that the promise allows" in words and "a coin" in words and "ABOVE" not in words


def test_an_attack_above_its_ceiling_is_not_hidden() -> None:
    for curve in (membership(0.8), reconstruction(0.1, 0.2)):
        words, content = read(Report(HONEST, curves=(curve,))).words, page(Report(HONEST, curves=(curve,)))
        assert "ABOVE what the promise allows" in words and "Look at the curves:" in words
        assert '<section class="good">' not in content


def test_an_attack_at_its_ceiling_is_no_alarm() -> None:
    at_most = 1 / (1 + math.exp(-1))
    content = page(Report(HONEST, curves=(membership(at_most + 0.003),)))  # one standard error of 27,000 guesses
    assert '<section class="good">' in content and "ABOVE" not in content


def test_a_reconstruction_curve_has_both_pictures() -> None:
    words = read(Report(curves=(reconstruction(0.1, 1.0, 30.0, None),))).words
    assert "thirty trees" in words and "no noise" in words
    assert "values that are wrong" in words and "classes guessed right" in words
    assert "without noise 17.2% and at epsilon 1, 17.2% of the values are wrong, and 18.1% for somebody" in words
    assert "at epsilon 1, 62.5% of the guesses are right" in words and "the promise allows 88.1%" in words


@pytest.mark.parametrize("epsilons", [(1.0,), (None,), (1e-3, 1e4), (0.5, None), (2.0, 2.0)])
def test_curves_of_few_points_are_drawn(epsilons: tuple[float | None, ...]) -> None:
    content = page(Report(curves=(reconstruction(*epsilons),)))
    Tags(content)
    assert not re.search(r"\bnan\b", content)
    assert ("no noise</text>" in content) == (None in epsilons)


def test_a_ceiling_is_a_smooth_curve_through_its_points() -> None:
    content = page(Report(curves=(membership(),)))
    drawn = re.search(r'<g class="ink"[^>]*><path class="line" d="M([^"]*)"', content.split("<figure>")[1])
    assert drawn
    points = [tuple(map(float, point.split())) for point in drawn[1].split("L")]
    assert len(points) == 25
    (left, _), (right, _) = points[0], points[-1]
    for x, y in points:
        epsilon = 0.1 * 100 ** ((x - left) / (right - left))
        assert y == pytest.approx(262 - (1 / (1 + math.exp(-epsilon)) - 0.45) / 0.55 * 228, abs=0.5)


# -- safety -----------------------------------------------------------------------------------


def evil() -> Report:
    finding = Finding(EVIL, EVIL, EVIL, 1.5, 10, 1e-9, math.inf, EVIL)
    verdicts = tuple(
        Verdict(EVIL, kind, EVIL, Fraction(1), (finding,), kind == "known-bad") for kind in (EVIL, "known-bad")
    )
    attack = AttackResult(1, EVIL, EVIL, False, (EVIL,))
    curves = ({**membership(0.8), "subject": EVIL}, {**reconstruction(0.1, None), "subject": EVIL})
    return Report(verdicts, (attack,), EVIL, curves)


def test_nothing_that_is_told_can_be_more_than_text() -> None:
    for report in (evil(), Report(evil().verdicts[:1])):
        tags = read(report)
        assert not {"script", "img"} & set(tags.tags)
        assert not [name for name, _ in tags.attributes if name.startswith("on")]
        assert "<script>alert(1)</script>" in tags.words  # as text


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    for report in (WHOLE, evil(), Report(), Report(HONEST[:1])):
        content, tags = page(report), read(report)
        assert content.startswith("<!doctype html>") and not {"script", "img", "link", "iframe"} & set(tags.tags)
        assert not [pair for pair in tags.attributes if pair[0] in ("src", "srcset", "xlink:href", "data")]
        assert all(value.startswith("#") for name, value in tags.attributes if name == "href")
        style = content.split("<style>")[1].split("</style>")[0]
        assert "url(" not in style and "@import" not in style and "://" not in page(WHOLE)
        assert "default-src 'none'" in content


def test_links_lead_to_places_that_exist_once() -> None:
    attributes = read(WHOLE).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids)) == len(WHOLE.verdicts)
    assert {value[1:] for name, value in attributes if name == "href"} <= set(ids)


def test_a_report_that_was_stored_makes_the_same_page() -> None:
    stored = json.loads(WHOLE.to_json())
    again = replace(WHOLE, verdicts=tuple(map(Verdict.from_dict, stored["verdicts"])), curves=tuple(stored["curves"]))
    assert page(again) == page(WHOLE)
