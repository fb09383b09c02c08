"""The summary of an audit: what a person reads on a terminal, whatever somebody wrote into the data."""

from __future__ import annotations

import io
from dataclasses import replace

import pandas as pd
import pytest
from labels import EVIL
from published import posterior_audit as audit
from rich.console import Console
from rich.text import Text

from privet.risk import Audit
from privet.risk.findings import Remedy, probability
from privet.risk.summary import show, summary
from privet.risk.words import difference, measures, notes, verdict
from privet.text import width_of

TREE = """sex = f: flu (3.0/1.0)
sex = m
|   age = old: ulcer (2.0)
|   age = young: flu (2.0/1.0)
"""
PEOPLE = pd.DataFrame(
    [["f", "old"], ["f", "young"], ["f", "young"], ["m", "old"], ["m", "old"], ["m", "young"], ["m", "young"]],
    columns=["sex", "age"],
)
TRUTH = ["flu", "flu", "ulcer", "ulcer", "ulcer", "flu", "ulcer"]


def made(tree: str = TREE, **options: object) -> Audit:
    """The two old men are known: their leaf says so."""
    asked = {"sensitive": "illness", "values": ["flu", "ulcer"], "name": "j48.txt", "remedies": False, **options}
    return audit(tree, PEOPLE, **asked)  # type: ignore[arg-type]


def shown(*audits: Audit, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    with console.capture() as printed:
        show(audits[0], console, *audits[1:])
    return printed.get()


def uncoloured(line: str) -> str:
    return Text.from_ansi(line).plain


def test_the_verdict_counts_the_known_and_names_who_knows_them() -> None:
    found = made()
    assert verdict(found) == (
        "Do not publish: The 'illness' of 2 of 7 people is known with probability 0.8 or more: the worst posterior is "
        "1, which is certainty. As it is, do not publish it; no remedy was looked for."
    )
    calm = made("sex = f: flu (3.0/1.0)\nsex = m: ulcer (4.0/1.0)\n", criterion="none")
    said = "Publish: Nobody's 'illness' is known with probability 0.8: the worst posterior is 0.750."
    assert verdict(calm) == said


def test_the_summary_has_all_that_was_found() -> None:
    found = made(truth=TRUTH, remedies=True)
    text = str(found)
    assert text == summary(found)
    assert verdict(found) in " ".join(text.split())
    for words in ("uniform", "marginal", "maximum entropy", "possible worlds", "D floored", "sex = m, age = old"):
        assert words in text
    assert "the leaf says that all of its 2 people are ulcer" in " ".join(text.split())
    assert "What would help" in text and "Notes" in text
    assert "\x1b" not in text and not any(line != line.rstrip() for line in text.splitlines())


def test_numbers_need_the_truth_only_where_they_compare_with_it() -> None:
    heads = [each.head for each in measures(made())]
    assert heads == ["worst", "mean", "known", "entropy loss", "l", "alpha, k", "t"]
    assert [each.head for each in measures(made(truth=TRUTH))][4:7] == ["D", "D floored", "right"]


def test_it_fits_a_terminal_of_eighty_columns_and_numbers_end_in_one_column() -> None:
    found = made(truth=TRUTH, remedies=True)
    lines = [line.rstrip() for line in shown(found, replace(found, name="another.txt")).splitlines()]
    plain = [uncoloured(line) for line in lines]
    assert max(width_of(line) for line in plain) <= 80
    rows = [line for line in plain if line.startswith(("uniform", "marginal", "maximum entropy", "possible worlds"))]
    assert len(rows) == 8 and len({len(line) for line in rows}) == 1


@pytest.mark.parametrize("evil", [*EVIL, "[bold red]loud[/bold red]", "[/]", "\\[link=http://x]"], ids=repr)
def test_no_label_is_more_than_text(evil: str) -> None:
    """Would catch labels that are read as markup, or that move the cursor of a terminal."""
    found = made(truth=TRUTH)
    exposure = replace(found.exposures[0], who=evil, value=evil, path=evil, because=evil)
    remedy = Remedy("merge leaves", evil, True, 0.5, 0, 0.9, 0.9)
    odd = replace(found, name=evil, sensitive=evil, exposures=(exposure,), remedies=(remedy,), notes=(evil,))
    for text in (shown(odd), shown(odd, odd), summary(odd)):
        lines = [uncoloured(line) for line in text.splitlines()]
        assert not set("\x00\x07\x1b\r\u202e") & set("".join(lines))
    if evil.startswith("["):
        assert evil in summary(odd)


def test_two_audits_are_compared_in_a_sentence() -> None:
    raw, calm = made(), made("sex = f: flu (3.0/1.0)\nsex = m: ulcer (4.0/1.0)\n", name="calm.txt")
    told = difference(raw, calm)
    assert told == "j48.txt makes 2 people known and calm.txt 0, 2 fewer; the worst posterior is 1.000 and 0.750."
    assert difference(calm, raw).startswith("calm.txt makes 0 people known and j48.txt 2, 2 more;")
    assert difference(raw, raw).startswith("j48.txt and j48.txt both make 2 people known;")
    assert told in " ".join(uncoloured(line) for line in shown(raw, calm, width=200).splitlines())


def test_a_private_model_is_not_called_safe() -> None:
    """Its numbers are computed: the promise is told beside them, in the words of all pages."""
    text = " ".join(str(replace(made(), epsilon=0.5)).split())
    assert "a yes-or-no fact of that person goes from 50% to at most about 73%" in text
    assert "safe" not in text


def test_the_best_remedy_is_enough_and_cheapest() -> None:
    dear = Remedy("merge leaves", "a", True, 0.5, 0, 0.7, 0.9)
    cheap = Remedy("withhold counts", "b", True, 0.5, 0, 0.9, 0.9)
    vain = Remedy("withhold rates", "c", False, 1.0, 9, 0.95, 0.9)
    vague = Remedy("epsilon", "d", True)
    assert replace(made(), remedies=(vague, dear, vain, cheap)).best is cheap
    assert replace(made(), remedies=(vague, vain)).best is vague
    assert replace(made(), remedies=(vain,)).best is None


def test_notes_are_said_once() -> None:
    found = made()
    said = found.beliefs["possible worlds"]
    beliefs = {**found.beliefs, "possible worlds": replace(said, notes=("once.", "twice."))}
    assert notes(replace(found, beliefs=beliefs, notes=("once.",)))[:1] == ["once."]
    assert "possible worlds: twice." in notes(replace(found, beliefs=beliefs, notes=("once.",)))
    assert "possible worlds: once." not in notes(replace(found, beliefs=beliefs, notes=("once.",)))


def test_what_is_not_certain_does_not_look_certain() -> None:
    assert [probability(share) for share in (1 - 1e-12, 0.99996, 0.9994)] == ["1.000", ">.999", "0.999"]
