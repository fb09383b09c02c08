"""`privet demo`: the whole story on generated data, with a report to open.

Questions with their truth beside them, two models, what a tree gives away; then an owner and an analyst on two sides of
a wire, and two attacks that fail. The people are made up, so the truth is known and can be shown beside each answer;
with real data nobody but the owner ever sees it. The folder also gets the files that the commands in README run on.
"""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from privet import datasets
from privet.errors import PrivetError, QuestionError
from privet.kernel import Domain, Entry
from privet.models.epsilon import PAGE, sentence
from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.open_table import open_table
from privet.release import Count, Mean
from privet.risk import Audit, audit
from privet.table import Budget, ProtectedTable
from privet.text import decimal_text, short_text
from privet.trees.drawing import svg
from privet.trees.table_drawing import STYLE as TABLES_STYLE
from privet.trees.table_drawing import panels, picture

_BUDGET = "2.5"
_TREE = "1.0"
_AUTO = "0.5"


@dataclass(frozen=True)
class Bar:
    """One number of an answer: its label, value, error bar and the truth."""

    label: str
    value: float
    low: float
    high: float
    truth: float


@dataclass(frozen=True)
class DemoStep:
    """One question of the story."""

    question: str
    code: str
    epsilon: str
    bars: tuple[Bar, ...]
    answer: str
    error: str


@dataclass(frozen=True)
class Act:
    """What somebody does in the part of the story that crosses a wire, and what comes of it."""

    who: str
    does: str
    code: str
    outcome: str


@dataclass(frozen=True)
class Grown:
    """The models of the story, and how often they and their rivals are right about people they never saw."""

    tree: Ensemble
    accuracy: float
    chosen: Model
    choice: str
    chosen_accuracy: float
    without_noise: float
    majority: float
    plain_audit: Audit  # what C4.5's tree tells about the people
    audit: Audit  # what the private tree does


# What README's commands run on: the people, a sample of others that is public, and people to predict.
PEOPLE, DOMAIN, SAMPLE, NEW = "people.csv", "people.toml", "public_sample.csv", "new.csv"
_TABLE = "census.duckdb"


def run(folder: Path, rows: int) -> None:
    """Generate people, open their table, ask five questions, learn two models, audit one, write report.html."""
    console = Console(stderr=True)
    people, domain, address = _generate(folder, rows, console)
    with open_table(address, domain, budget=_BUDGET) as table:
        steps = _ask(table, people)
        grown = _grow(table, people)
        acts = _serve(folder)
        _print(steps, grown, acts, table.budget)
        report = folder / "report.html"
        report.write_text(_report(steps, grown, acts, table, rows), encoding="utf-8")
    grown.tree.save(folder / "tree.json")
    grown.chosen.save(folder / "auto.json")
    grown.chosen.to_html(folder / "auto.html")
    grown.plain_audit.to_html(folder / "audit.html", beside=grown.audit)
    console.print(f"models: {folder / 'tree.json'}, {folder / 'auto.json'}")
    console.print(f"files for README's commands: {', '.join((PEOPLE, DOMAIN, SAMPLE, NEW))} in {folder}")
    console.print(f"report: {report}")


def _generate(folder: Path, rows: int, console: Console) -> tuple[pd.DataFrame, Domain, str]:
    """A fresh table and no ledger: the demo owns its folder's files and starts over each time."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _TABLE).exists():
        for name in (PEOPLE, DOMAIN, SAMPLE, NEW):
            if (folder / name).exists():
                raise QuestionError(f"'{folder / name}' is of no demo; name another folder with --folder.")
    console.print(f"generating {rows} people into {folder / _TABLE} and {folder / PEOPLE}")
    for old in (*folder.glob(f"{_TABLE}*"), *folder.glob(f"{PEOPLE}*")):
        old.unlink()
    people = write_files(folder, rows)
    connection = duckdb.connect(str(folder / _TABLE))
    connection.register("generated", people)
    connection.execute("CREATE TABLE people AS SELECT * FROM generated")
    connection.close()
    return people, Domain.load(folder / DOMAIN), f"duckdb:///{(folder / _TABLE).as_posix()}?table=people"


def write_files(folder: Path, rows: int) -> pd.DataFrame:
    """Write the files that README's commands run on.

    Parameters
    ----------
    folder : Path
    rows : int
        How many people there are.

    Returns
    -------
    DataFrame
        The people.
    """
    people = datasets.census(rows, seed=0)
    people.to_csv(folder / PEOPLE, index=False)
    replace(datasets.census_domain(), rows=rows, max_rows=2 * rows).save(folder / DOMAIN)
    datasets.census(2_000, seed=2).to_csv(folder / SAMPLE, index=False)
    datasets.census(1_000, seed=3).drop(columns="income").to_csv(folder / NEW, index=False)
    return people


def _ask(table: ProtectedTable, people: pd.DataFrame) -> list[DemoStep]:
    count = table.count(epsilon="0.1")
    women = table.where(sex="Female", age=(30, 40)).count(epsilon="0.1")
    truly_women = int(((people["sex"] == "Female") & (people["age"] >= 30) & (people["age"] < 40)).sum())
    parts = table.partition("sex")
    means = dict(zip(parts.labels, parts.mean("wage", epsilon="0.2"), strict=True))
    histogram = table.histogram("education", "income", epsilon="0.2")
    best = table.select("gini", epsilon="0.2")
    return [
        DemoStep(
            "How many people are there?",
            "table.count(epsilon=0.1)",
            "0.1",
            (_bar("people", count, len(people)),),
            f"{count}",
            f"± {count.noise.error(0.95)}",
        ),
        DemoStep(
            "How many are women in their thirties?",
            'table.where(sex="Female", age=(30, 40)).count(epsilon=0.1)',
            "0.1",
            (_bar("women 30 to 39", women, truly_women),),
            f"{women}",
            f"± {women.noise.error(0.95)}",
        ),
        DemoStep(
            "What do women and men earn per hour, on average?",
            'table.partition("sex").mean("wage", epsilon=0.2)',
            "0.2",
            tuple(
                _bar(label, mean, people.loc[people["sex"] == label, "wage"].mean()) for label, mean in means.items()
            ),
            ", ".join(f"{label} {mean:.2f}" for label, mean in means.items()),
            " and ".join("{:.2f} to {:.2f}".format(*mean.interval(0.95)) for mean in means.values()),
        ),
        DemoStep(
            "How do education and income go together?",
            'table.histogram("education", "income", epsilon=0.2)',
            "0.2",
            tuple(
                _bar(
                    f"{education}, {income}",
                    histogram[education, income],
                    int(((people["education"] == education) & (people["income"] == income)).sum()),
                )
                for education, income in itertools.product(*histogram.labels)
            ),
            f"{histogram.values.size} cells",
            f"± {histogram.noise.error(0.95)} in each",
        ),
        DemoStep(
            "Which attribute tells most about income?",
            'table.select("gini", epsilon=0.2)',
            "0.2",
            (),
            str(best),
            f"score within {best.shortfall(0.95):.0f} of the best",
        ),
    ]


def _grow(table: ProtectedTable, people: pd.DataFrame) -> Grown:
    """A private tree, the learner that suits the table, and C4.5 on the rows themselves, for their owner alone."""
    from privet.choice.auto import AutoClassifier
    from privet.learners.estimators import C45Classifier, DiffPC45Classifier

    target = table.domain.target_column.name
    tree = DiffPC45Classifier(epsilon=_TREE, criterion="gini").fit(table)
    auto = AutoClassifier(epsilon=_AUTO).fit(table)
    for classifier in (tree, auto):
        table.write_down(classifier.model_)  # so that the ledger can give a receipt of it
    plain = C45Classifier(domain=table.domain).fit(people.drop(columns=target), people[target])
    others = datasets.census(20_000, seed=1)
    truth = others[target]
    attributes = others.drop(columns=target)
    shares = {str(value): float(share) for value, share in people[target].value_counts(normalize=True).items()}
    return Grown(
        tree.model_,
        float((tree.predict(attributes) == truth).mean()),
        auto.model_,
        f"chose {auto.choice_.branch}: {auto.choice_.outcome.why}",
        float((auto.predict(attributes) == truth).mean()),
        float((plain.predict(attributes) == truth).mean()),
        float(truth.value_counts(normalize=True).max()),
        audit(plain, people, sensitive=target, baseline=shares, name="C4.5 without privacy"),
        audit(tree, people, sensitive=target, baseline=shares, remedies=False, name="the private tree"),
    )


# -- an owner and an analyst, on two sides of a wire ----------------------------------------------------

_SURVEY, _DRAFT = "survey.csv", "draft.toml"
_SURVEY_ROWS = 20_000


def _serve(folder: Path) -> tuple[Act, ...]:
    """Draft a domain, serve a table, mine it over the wire up to its cap, and attack it twice.

    Returns
    -------
    tuple of Act
        None without the packages of `privet[server]`.
    """
    if any(importlib.util.find_spec(name) is None for name in ("uvicorn", "starlette", "msgspec", "httpx2")):
        return ()
    from privet.choice.auto import AutoClassifier
    from privet.draft import draft_domain
    from privet.service import running
    from privet.service.client import connect
    from privet.service.config import Config, TableConfig

    for old in folder.glob(f"{_SURVEY}*"):
        old.unlink()
    datasets.census(_SURVEY_ROWS, seed=6).to_csv(folder / _SURVEY, index=False)
    drafted = draft_domain(datasets.census(2_000, seed=2), target="income")
    drafted.save(folder / _DRAFT)
    config = Config((TableConfig("survey", str(folder / _SURVEY), str(folder / _DRAFT), "1", tick=0.02),), None, port=0)
    with contextlib.redirect_stderr(io.StringIO()):  # that no receipts are signed, which this story is not about
        service = running.service_of(config.check())
    token = running.first_token(service)
    assert token is not None
    with running.in_thread(service) as server, connect(server.url, token) as connection:
        names = connection.tables()
        table = connection.table(names[0])
        count = table.where(sex="Female").count(epsilon="0.1")
        auto = AutoClassifier(epsilon="0.5").fit(table)
        later = datasets.census(5_000, seed=8)
        right = float((auto.predict(later.drop(columns="income")) == later["income"]).mean())
        refused = _refusal(lambda: table.count(epsilon="0.5"))
        injected = _refusal(lambda: table.where(sex="x' OR '1'='1").count(epsilon="0.1"))
        before = table.budget.remaining
        repeated = [table.count(epsilon="0.1") for _ in range(int(before / Fraction(1, 10)))]
        ended = _refusal(lambda: table.count(epsilon="0.1"))
    return (
        Act(
            "The owner",
            "drafts a domain from a public sample",
            "privet domain draft public_sample.csv --target income -o draft.toml",
            f"{len(drafted.columns)} columns declared; no private row was read",
        ),
        Act("The owner", "serves the table", "privet serve survey.csv -d draft.toml --budget 1", "a token, shown once"),
        Act("The analyst", "connects", "privet.connect(url, token).tables()", ", ".join(names)),
        Act("The analyst", "asks", 'table.where(sex="Female").count(epsilon=0.1)', repr(count)),
        Act(
            "The analyst",
            "lets the software choose a model",
            "AutoClassifier(epsilon=0.5).fit(table)",
            f"{auto.choice_.branch}: {right:.1%} right about people it never saw",
        ),
        Act("The analyst", "asks for more than is left", "table.count(epsilon=0.5)", f"refused: {refused}"),
        Act(
            "An attacker",
            "slips in SQL to get all rows",
            "table.where(sex=\"x' OR '1'='1\").count(epsilon=0.1)",
            f"refused, nothing charged: {injected}",
        ),
        Act(
            "An attacker",
            "asks the same again and again, to average the noise away",
            "[table.count(epsilon=0.1) for _ in range(1000)]",
            f"{len(repeated)} answers ({', '.join(str(int(each)) for each in repeated)}), then refused: {ended}",
        ),
    )


def _refusal(ask: Callable[[], object]) -> str:
    """Return the sentence with which something is refused."""
    try:
        ask()
    except PrivetError as error:
        return str(error)
    raise AssertionError("the demo expected a refusal")


def _bar(label: str, release: Count | Mean, truth: float) -> Bar:
    low, high = release.interval(0.95)
    return Bar(label, float(release), low, high, float(truth))


def _print(steps: list[DemoStep], grown: Grown, acts: tuple[Act, ...], budget: Budget) -> None:
    console = Console(highlight=False)
    console.print("Five questions to a table nobody may see, and two models; errors with 95% confidence")
    for number, step in enumerate(steps, start=1):
        console.print(f"\n[bold]{number}. {step.question}[/bold]")
        console.print(f"   [dim]{step.code}[/dim]")
        console.print(f"   [green]{step.answer}[/green]  ({step.error})")
        if len(step.bars) > 2:
            for bar in step.bars:
                console.print(f"     {bar.label:<20} {bar.value:>9.0f}   {bar.low:.0f} to {bar.high:.0f}")
    console.print("\n[bold]6. Who earns more? A tree[/bold]")
    console.print(f"   [dim]{_TREE_CODE}[/dim]")
    console.print(f"   [green]{grown.accuracy:.1%} right[/green]  ({_beside(grown)})")
    print("\n".join(f"   {line}" for line in grown.tree.text().splitlines()[1:]))
    console.print("\n[bold]7. Who earns more? Let the software choose[/bold]")
    console.print(f"   [dim]{_AUTO_CODE}[/dim]")
    console.print(f"   [green]{grown.chosen_accuracy:.1%} right[/green]  (of the same people; auto.html draws it)")
    console.print(f"   {grown.choice}")
    console.print("\n[bold]8. What does a published tree give away?[/bold]")
    console.print(f"   [dim]{_AUDIT_CODE}[/dim]")
    console.print(f"   {_given_away(grown)}  (audit.html says who, and why)")
    console.print("\n[bold]9. An owner, an analyst and an attacker, on two sides of a wire[/bold]")
    for act in acts:
        console.print(f"   {act.who} {act.does}: [dim]{escape(act.code)}[/dim]")
        console.print(f"     [green]{escape(act.outcome)}[/green]")
    if not acts:
        console.print("   [dim]this part needs pip install 'privet\\[server]'[/dim]")
    title = f"\nThe ledger: {decimal_text(budget.spent)} of {_BUDGET} spent"
    ledger = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    for heading in ("entry", "epsilon", "charged", "question"):
        ledger.add_column(heading, no_wrap=heading != "question")
    for entry in budget.entries:
        ledger.add_row(str(entry.id), entry.epsilon, short_text(entry.loss), f"{entry.question} on {entry.scope}")
    console.print(ledger)


_AUTO_CODE = f"AutoClassifier(epsilon={_AUTO}).fit(table)"
_TREE_CODE = f'DiffPC45Classifier(epsilon={_TREE}, criterion="gini").fit(table)'


_AUDIT_CODE = 'audit(tree, people, sensitive="income")'


def _given_away(grown: Grown) -> str:
    """How many people's own rows add much to what is believed of their income, in both trees."""
    plain, private = grown.plain_audit, grown.audit
    return (
        f"The own row of {plain.known:,} people adds {plain.threshold:g} or more to the probability of their income in "
        f"the tree of C4.5 without privacy, and of {private.known:,} in the private one"
    )


def _beside(grown: Grown) -> str:
    return (
        f"of 20,000 people it never saw; always the larger class: {grown.majority:.1%}, C4.5 on the rows themselves, "
        f"without privacy: {grown.without_noise:.1%}"
    )


# -- the report: one self-contained page ----------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2a22; --soft: #5d6b62; --line: #d8ded9; --leaf: #2f7d4f; --truth: #b4541a;
        --paper: #fbfcfa; --card: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ece7; --soft: #9aa89f; --line: #33403a; --leaf: #66c08a;
        --truth: #f0975a; --paper: #141a17; --card: #1b2320; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 54rem;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.1rem; margin: 0; } p { margin: .4rem 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem 1.2rem;
          margin: 1rem 0; }
code { font: .85rem ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
.answer { font-size: 1.3rem; font-weight: 600; } .error { color: var(--soft); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; overflow-wrap: break-word; }
th { text-align: left; color: var(--soft); }
td, th { padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
@media (max-width: 30rem) { section { padding: 1rem .7rem; } table { font-size: .75rem; }
        td, th { padding-right: .3rem; } }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.truth { color: var(--truth); } pre { font-size: .75rem; overflow-x: auto; }
.charts { display: flex; flex-wrap: wrap; gap: 1.4rem 1.2rem; align-items: flex-start; margin: .8rem 0; }
.charts > div { max-width: 100%; overflow-x: auto; }
.bars { display: grid; grid-template-columns: minmax(4.5rem, max-content) 1fr max-content; gap: .25rem .6rem;
        font-size: .8rem; align-items: center; margin: .6rem 0; }
.bars .name { text-align: right; } .bars .lane { position: relative; height: 1.2rem; }
.bars .scale { color: var(--soft); display: flex;
        justify-content: space-between; border-top: 1px solid var(--line); grid-column: 2; }
.lane i { position: absolute; top: 0; height: 100%; } .lane .bar { background: var(--leaf); opacity: .7; top: 15%;
        height: 70%; } .lane .point { width: .6rem; height: .6rem; border-radius: 50%; background: var(--leaf);
        top: .3rem; margin-left: -.3rem; } .lane .error { border: 1.5px solid var(--ink); border-width: 0 1.5px;
        box-sizing: border-box; top: 25%; height: 50%; } .lane .error::after { content: ""; position: absolute;
        left: 0; right: 0; top: 50%; margin-top: -.75px; border-top: 1.5px solid var(--ink); }
.lane .mark { width: 2px; margin-left: -1px; background: var(--truth); }
"""


def _report(steps: list[DemoStep], grown: Grown, acts: tuple[Act, ...], table: ProtectedTable, rows: int) -> str:
    sections = "".join(
        f"<section><h2>{html.escape(step.question)}</h2><p><code>{html.escape(step.code)}</code></p>"
        f'<p><span class="answer">{html.escape(step.answer)}</span> '
        f'<span class="error">{html.escape(step.error)} · epsilon {step.epsilon}</span></p>{_bars(step.bars)}</section>'
        for step in steps
    )
    entries = "".join(
        f"<tr><td>{entry.id}</td><td>{html.escape(entry.question)} on {html.escape(entry.scope)}</td>"
        f'<td class="number">{_charged(entry)}</td></tr>'
        for entry in table.budget.entries
    )
    tree = (
        f"<section><h2>Who earns more? A tree</h2><p><code>{html.escape(_TREE_CODE)}</code></p>"
        f'<p><span class="answer">{grown.accuracy:.1%} right</span> '
        f'<span class="error">{html.escape(_beside(grown))} · epsilon {_TREE}</span></p>'
        f'<div class="scroll">{svg(grown.tree.tree)}</div><p>Blue and orange are the shares of low and high incomes '
        "in a leaf, the numbers how many people of each it counted, with noise.</p>"
        f"<details><summary>The tree as text</summary><pre>{html.escape(grown.tree.text())}</pre></details></section>"
    )
    chosen = (
        f"<section><h2>Who earns more? Let the software choose</h2><p><code>{html.escape(_AUTO_CODE)}</code></p>"
        f'<p><span class="answer">{grown.chosen_accuracy:.1%} right</span> '
        f'<span class="error">of the same people · epsilon {_AUTO}</span></p><p>From noisy class counts it '
        f"{html.escape(grown.choice)}. The choice is made of releases and costs nothing.</p><p>What the {_AUTO} of "
        f"this model alone means for a person: {html.escape(sentence(float(_AUTO)))}</p>{_picture(grown.chosen)}"
        "<p>auto.html, beside this file, has every number.</p></section>"
    )
    told = (
        f"<section><h2>What does a published tree give away?</h2><p><code>{html.escape(_AUDIT_CODE)}</code></p>"
        f"<p>{html.escape(_given_away(grown))}. audit.html, beside this file, says who and why.</p></section>"
    )
    crossed = "".join(
        f"<p>{html.escape(act.who)} {html.escape(act.does)}:<br><code>{html.escape(act.code)}</code><br>"
        f"<strong>{html.escape(act.outcome)}</strong></p>"
        for act in acts
    )
    served = (
        "<section><h2>An owner, an analyst and an attacker, on two sides of a wire</h2><p>Another table, on a server "
        f"of its own: {_SURVEY_ROWS:,} people, and a budget of 1 that holds for everybody together.</p>"
        f"{crossed}</section>"
        if acts
        else ""
    )
    spent, left = decimal_text(table.budget.spent), decimal_text(table.budget.remaining)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>privet: five questions to a private table, and two models</title>
<style>{_STYLE}{TABLES_STYLE}</style></head><body>
<h1>Five questions to a table nobody may see, and two models</h1>
<p>{rows:,} generated people lie in a DuckDB table. An analyst may spend epsilon = {_BUDGET} on it and never sees a row:
every answer carries noise, and says how much. Each chart shows the noisy answer with its 95% interval;
<span class="truth">the mark is the true value</span>, known here only because the people are made up.</p>
<p>What the whole budget of {_BUDGET} means for a person: {html.escape(sentence(float(_BUDGET)))}</p>
<p class="error">What others use, and what to tell the people: {html.escape(PAGE)}, in privet's documentation.</p>
{sections}{tree}{chosen}{told}{served}
<section><h2>The ledger</h2><p>{spent} spent, {left} left. Entries are on disk before the table is asked, and cannot be
changed. Asking women and men at once costs what one of them costs: their rows are disjoint. Where an epsilon stands
below a charge, other parts of the table had paid the rest already.</p>
<div class="scroll"><table><tr><th>entry</th><th>question</th><th class="number">epsilon
charged</th></tr>{entries}</table></div></section>
<p class="error">Written by <code>privet demo</code>.</p></body></html>
"""


def _charged(entry: Entry) -> str:
    """What an entry charged, and its epsilon where that is more: one narrow column, as wide as a phone."""
    charged = short_text(entry.loss)
    return charged if charged == entry.epsilon else f'{charged}<br><span class="error">of {entry.epsilon}</span>'


def _picture(model: Model) -> str:
    """The model that was chosen: tables, a tree, or nothing to draw."""
    if isinstance(model, Tables) and model.tables:
        charts = "".join(f"<div>{picture(chart)}</div>" for chart in panels(model)[0])
        return (
            f'<div class="charts">{charts}</div><p>What each cell adds to the log odds of a high income; '
            "faint is what cannot be told from no effect.</p>"
        )
    return f'<div class="scroll">{svg(model.tree)}</div>' if isinstance(model, Ensemble) else ""


def _bars(bars: tuple[Bar, ...]) -> str:
    """The numbers of an answer with their error bars: many as bars from 0, one or two as points on a close-up axis.

    Labels and numbers keep their size and the lane between them takes what is left, so that a phone shows both.
    """
    if not bars:
        return ""
    low, high = min(min(bar.low, bar.truth) for bar in bars), max(max(bar.high, bar.truth) for bar in bars)
    close_up = len(bars) <= 2
    start, end = (low - 0.4 * (high - low), high + 0.4 * (high - low)) if close_up else (0.0, high)

    def at(value: float) -> float:
        return 100 * (max(value, start) - start) / ((end - start) or 1.0)

    lines = []
    for bar in bars:
        shape = f"left:{at(bar.value):.2f}%" if close_up else f"left:0;width:{at(bar.value):.2f}%"
        lines.append(
            f'<span class="name">{html.escape(bar.label)}</span><span class="lane">'
            f'<i class="{"point" if close_up else "bar"}" style="{shape}"></i>'
            f'<i class="error" style="left:{at(bar.low):.2f}%;width:{at(bar.high) - at(bar.low):.2f}%"></i>'
            f'<i class="mark" style="left:{at(bar.truth):.2f}%"></i></span>'
            f'<span class="number">{_number(bar.value)}</span>'
        )
    scale = f'<span class="scale"><span>{_number(start)}</span><span>{_number(end)}</span></span>'
    label = html.escape("; ".join(f"{bar.label}: {bar.value:g}, {bar.low:g} to {bar.high:g}" for bar in bars))
    return f'<div class="bars" role="img" aria-label="{label}">{"".join(lines)}{scale}</div>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.2f}"
