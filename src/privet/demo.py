"""`privet demo`: the whole story on generated data, with a report to open.

Questions with their truth beside them, two models, what a tree gives away; then an owner and an analyst on two sides of
a wire, and two attacks that fail. The people are made up, so the truth is known and can be shown beside each answer;
with real data nobody but the owner ever sees it. The folder also gets the files that the commands in README run on.
"""

from __future__ import annotations

import contextlib
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
from privet.kernel import Domain
from privet.models.model import Model
from privet.models.tables import Tables
from privet.models.tree import Ensemble
from privet.open_table import open_table
from privet.release import Count, Mean
from privet.report.chart import Bar, row_chart
from privet.report.rendering import page
from privet.report.table_picture import panels
from privet.report.tree_picture import class_colour, drawing
from privet.risk import Audit, audit
from privet.table import Budget, ProtectedTable
from privet.text import decimal_text, short_text

_BUDGET = "2.5"
_TREE = "1.0"
_AUTO = "0.5"


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
            f"{int(count):,}",
            f"± {count.noise.error(0.95)}",
        ),
        DemoStep(
            "How many are women in their thirties?",
            'table.where(sex="Female", age=(30, 40)).count(epsilon=0.1)',
            "0.1",
            (_bar("women 30 to 39", women, truly_women),),
            f"{int(women):,}",
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

_SURVEY, _DRAFT = "survey.csv", "survey.toml"
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
            "privet domain draft public_sample.csv --target income -o survey.toml",
            f"{len(drafted.columns)} columns declared; no private row was read",
        ),
        Act("The owner", "serves it", "privet serve survey.csv -d survey.toml --budget 1", "a token, shown once"),
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
    console.print("Mining a table that nobody may see; errors with 95% confidence")
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


def _right(grown: Grown) -> list[tuple[str, float]]:
    """Return how many percent of new people each model is right about, the worst first."""
    shares = {
        "always the larger class": grown.majority,
        f"private tree, epsilon {_TREE}": grown.accuracy,
        f"chosen by privet, epsilon {_AUTO}": grown.chosen_accuracy,
        "C4.5, not private": grown.without_noise,
    }
    return [(label, 100 * share) for label, share in shares.items()]


def _beside(grown: Grown) -> str:
    return (
        f"of 20,000 people it never saw; always the larger class: {grown.majority:.1%}, C4.5 on the rows themselves, "
        f"without privacy: {grown.without_noise:.1%}"
    )


# -- the report: one self-contained page ----------------------------------------------------------


def _report(steps: list[DemoStep], grown: Grown, acts: tuple[Act, ...], table: ProtectedTable, rows: int) -> str:
    chosen = grown.chosen
    charts = panels(chosen)[0] if isinstance(chosen, Tables) and chosen.tables else []
    classes = grown.tree.domain.target_column.texts
    return page(
        "demo.html",
        "privet: mining a table that nobody may see",
        rows=rows,
        budget=_BUDGET,
        table=table,
        steps=[(step, row_chart(step.bars) if step.bars else None) for step in steps],
        grown=grown,
        right=row_chart([Bar(label, percent, percent, percent) for label, percent in _right(grown)]),
        beside=_beside(grown),
        acts=acts,
        survey_rows=_SURVEY_ROWS,
        tree_code=_TREE_CODE,
        tree_epsilon=_TREE,
        tree_drawing=drawing(grown.tree.tree).inline,
        classes=[(class_colour(code), name) for code, name in enumerate(classes)],
        auto_code=_AUTO_CODE,
        auto_epsilon=_AUTO,
        audit_code=_AUDIT_CODE,
        charts=[chart.drawing.inline for chart in charts],
        chosen_drawing=drawing(chosen.tree).inline if isinstance(chosen, Ensemble) else None,
    )
