"""`privet study`: repeat the experiments of papers, compare learners and train policies, on public rows alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from privet.cli.common import STYLE, JsonOption, print_json, say
from privet.errors import QuestionError

if TYPE_CHECKING:
    from privet.studies import Outcome
    from privet.studies.study import Study

app = typer.Typer(help="Run the papers' experiments again, and compare learners.", **STYLE)

SEVERAL = 3  # up to this many studies are printed with all numbers; more with a line each

CHOICE = "choice"
CHOICE_LINE = "which learner wins where; trains the policies that AutoClassifier chooses by"

OutputOption = Annotated[
    Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where results and pages go; a run goes on from there.")
]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="How many processes work at once; as many as there are cores.")
]
SizeOption = Annotated[
    bool,
    typer.Option("--full/--quick", help="The paper's own size, or one that ends in minutes.", show_default=False),
]
MediumOption = Annotated[
    bool, typer.Option("--medium", help="A size in between, with more repeats: what is published.")
]


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """List the studies: every figure and table that is run again.

    Example: privet study list
    """
    from privet.studies.catalog import STUDIES

    known = [(study.name, study.title, study.source) for study in STUDIES.values()]
    known.append((CHOICE, CHOICE_LINE, "privet, after Imola and Yang 2018"))
    if as_json:
        print_json([{"name": name, "title": title, "source": source} for name, title, source in known])
        return
    width = max(len(name) for name, _, _ in known)
    for name, title, _ in known:
        print(f"{name:<{width}}  {title}")


@app.command()
def run(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Studies that `privet study list` names; or all.")
    ],
    full: SizeOption = False,
    medium: MediumOption = False,
    output: OutputOption = Path("study"),
    jobs: JobsOption = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what the folder has results of.")] = False,
    seconds: Annotated[
        float | None, typer.Option(min=1, help="choice: stop gathering after so long; 600 without --sets.")
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, help="choice: how many generated tables in the end.")] = None,
    caution: Annotated[
        float, typer.Option(min=0, help="choice: how sure a policy must be before it leaves the default learner.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="choice: the seed of the trees of a policy.")] = 0,
    public: Annotated[
        bool, typer.Option("--public/--no-public", help="choice: measure regret on the UCI tables too.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Run studies, print the numbers of the papers beside ours, and write a page for each.

    Results are lines of FOLDER/results.jsonl. A run that was stopped continues where it was, and studies share the
    trials that they have in common. Pages are made from that file: NAME.html for each study, index.html for all.
    `all` leaves out studies whose public tables are not installed, and names them. It takes about 5 minutes of CPU
    time with --quick and about 40 with --medium, and half as long on two cores.

    The study "choice" runs every learner on generated tables to learn which one to choose when. It writes
    history.db, the policies accuracy.json and auc.json, and report.json. A policy is used with
    `privet fit --policy FILE`, or in Python with AutoClassifier(policy=FILE).

    \b
    Examples:
      privet study run all --quick
      privet study run friedman-schuster-table-1 --full --jobs 8
      privet study run choice --seconds 600 --jobs 2 -o policies
    """
    if names == [CHOICE]:
        _run_choice(output, seconds, sets, jobs or 1, caution, seed, public, as_json)
        return
    from privet.studies import folder, forget
    from privet.studies.catalog import work
    from privet.studies.cost import cost
    from privet.studies.processes import processes
    from privet.studies.trial import cpu_seconds

    size = _size(full, medium)
    chosen = _chosen(names)
    path = folder.ready(output) / folder.RESULTS
    trials = [trial for study in chosen for trial in study.trials(size)]
    if fresh:
        forget(trials, path)
    count = jobs or os.cpu_count() or 1
    with _bar("trials") as report, processes(count) if count > 1 else nullcontext() as executor:
        outcomes = folder.gather(output, trials, work, executor, report, cpu_seconds)
    if spent := cost(trials, {outcome.trial.key: outcome for outcome in outcomes}):
        say(str(spent))
    _report(chosen, output, size, as_json)
    _report_failures(outcomes)


@app.command()
def compare(
    domain: Annotated[Path, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file.")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="PUBLIC rows, .csv or .parquet; without it rows are invented."),
    ] = None,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="A range such as 0.01:10, or a list.")] = "0.01:10",
    accuracy: Annotated[
        float | None, typer.Option(min=0, max=100, help="In percent: how many rows does it take to reach it?")
    ] = None,
    rows: Annotated[int, typer.Option(min=200, help="How many rows to invent.")] = 20_000,
    peers: Annotated[
        Path | None,
        typer.Option(metavar="PYTHON", help="An interpreter that has privet, diffprivlib and interpret-core."),
    ] = None,
    full: SizeOption = False,
    medium: MediumOption = False,
    output: OutputOption = Path("compare"),
    jobs: JobsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every algorithm, and the peers that are installed, on public rows.

    It shows accuracy and AUROC against epsilon, with intervals, beside the most frequent class and learners without
    privacy; which learner is best at which epsilon; and how many rows an accuracy takes. Never give it private
    rows: what it prints is exact. Before you open a private table, let it invent rows from the public domain.

    \b
    Examples:
      privet study compare census_2011.csv -d people.toml --epsilon 0.01:10
      privet study compare -d people.toml --accuracy 80
    """
    from concurrent.futures import ThreadPoolExecutor

    from privet.kernel import Domain
    from privet.lab.invented import invent
    from privet.studies import folder
    from privet.studies.compare import PEERS, PLAIN, Comparison, available, epsilons, table
    from privet.studies.worker_pool import WorkerPool, problems

    levels, declared = epsilons(epsilon), Domain.load(domain)
    folder.ready(output)
    if data is None:
        data = output / f"invented-{rows}.csv"
        if not data.exists():
            invent(declared, rows).to_csv(data, index=False)
    table(data, domain)  # refuse wrong rows before anything else
    interpreter = peers or Path(sys.executable)
    learners, left_out = available(declared, problems([*PEERS, *PLAIN], interpreter))
    for sentence in left_out:
        say(sentence)
    comparison = Comparison(data, domain, tuple(learners), levels, accuracy)
    size, count = _size(full, medium), jobs or os.cpu_count() or 1
    study = comparison.study()
    trials = study.trials(size)
    workers = WorkerPool(
        "privet.studies.compare:measure", str(data.resolve()), str(domain.resolve()), peers=interpreter
    )
    with _bar("trials") as report, workers, ThreadPoolExecutor(count) as executor:
        outcomes = folder.gather(output, trials, workers, executor, report)
    _report([study], output, size, as_json)
    _report_failures(outcomes)


def _chosen(names: Sequence[str]) -> list[Study]:
    """Return the studies of these names; of `all` those whose public tables are installed."""
    from privet.datasets import load
    from privet.errors import DataError
    from privet.studies.catalog import STUDIES
    from privet.studies.catalog import study as by_name

    if CHOICE in names:
        raise QuestionError("the study 'choice' runs by itself, as `privet study run choice -o policies`.")
    if "all" not in names:
        studies = [by_name(name) for name in dict.fromkeys(names)]
        for table in {table for study in studies for table in study.data}:
            load(table)
        return studies
    missing = {}
    for table in {table for study in STUDIES.values() for table in study.data}:
        try:
            load(table)
        except DataError as error:
            missing[table] = str(error)
    for table, why in missing.items():
        out = [study.name for study in STUDIES.values() if table in study.data]
        say(f"left out: {', '.join(out)}; {why}")
    return [study for study in STUDIES.values() if not {*study.data} & {*missing}]


def _size(full: bool, medium: bool) -> str:
    if full and medium:
        raise QuestionError("a study has one size: --quick, --medium or --full.")
    return "full" if full else "medium" if medium else "quick"


def _report(studies: Sequence[Study], output: Path, size: str, as_json: bool) -> None:
    """Print the findings of studies, and write their pages."""
    from privet.studies import folder
    from privet.studies.pages.terminal import lines, summary

    names = "all" if len(studies) > SEVERAL else " ".join(study.name for study in studies)
    findings = folder.write(output, studies, size, f"privet study run {names} --{size}")
    if as_json:
        print_json({name: asdict(content) for name, content in findings.items()})
    elif len(studies) > SEVERAL:
        for study in studies:
            print("\n".join(summary(study, findings[study.name])))
    else:
        for study in studies:
            print("\n".join(lines(study, findings[study.name])), end="\n\n")
    say(f"wrote {output / (f'{studies[0].name}.html' if len(studies) == 1 else 'index.html')}")


def _report_failures(outcomes: Sequence[Outcome]) -> None:
    """Print trials that failed, and exit with 1 if there are any."""
    failed = [outcome for outcome in outcomes if outcome.result is None]
    for outcome in failed[:5]:
        say(f"failed: {outcome.trial.json}: {outcome.error}")
    if failed:
        say(f"{len(failed)} of {len(outcomes)} trials failed; another run tries them again")
        raise typer.Exit(1)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int, float | None], None]]:
    """Show a bar with the time that is left, if standard error is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, of, left: progress.update(task, completed=done, total=of)


def _run_choice(
    output: Path,
    seconds: float | None,
    sets: int | None,
    jobs: int,
    caution: float,
    seed: int,
    public: bool,
    as_json: bool,
) -> None:
    """Train the policies that AutoClassifier chooses by."""
    from privet.studies.choice import run as run_choice

    if seconds is None and sets is None:
        seconds = 600.0
    with Console(stderr=True).status("starting") as status:
        reports = run_choice(
            output,
            seconds=seconds,
            sets=sets,
            jobs=jobs,
            caution=caution,
            seed=seed,
            public=public,
            progress=status.update,
        )
    if as_json:
        print_json(reports)
        return
    for objective, content in reports.items():
        _print_choice(objective, content)
    pictures = [name for name in ("where.svg", "where-auc.svg", "regret.svg") if (output / name).exists()]
    say(f"wrote {output / 'history.db'}, accuracy.json, auc.json, report.json and the pictures {', '.join(pictures)}")


def _print_choice(objective: str, content: dict[str, Any]) -> None:
    """Print how much a policy gains."""
    gain = content["gain over the default"]
    print(f"objective {objective}: {content['origins'][0]}")
    print(f"  ahead of always boosted on tables not seen: {gain['points']:+.2f} points ± {gain['standard error']:.2f}")
    public = content.get("public tables, regret in points")
    if public is None:
        return
    print(f"  regret on public tables   mean  >=0.05  worst   at {'  '.join(public['epsilons'])}")
    for way, row in sorted(public["ways"].items(), key=lambda item: float(item[1]["mean"])):
        cells = "  ".join(f"{regret:.1f}" for regret in row["by epsilon"])
        print(f"  {way:<24} {row['mean']:>6.2f} {row['mean from 0.05']:>7.2f} {row['worst cell']:>6.1f}   {cells}")
