"""`privet study`: long experiments on generated and public rows, which write files and can be stopped at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from privet.cli.common import STYLE, JsonOption, print_json, say
from privet.errors import QuestionError

app = typer.Typer(help="Run an experiment on generated and public rows.", **STYLE)

STUDIES = {
    "choice": "which learner wins where; trains the policies that AutoClassifier chooses by",
}


@app.command("list")
def list_studies(as_json: JsonOption = False) -> None:
    """List the studies.

    Example: privet study list
    """
    if as_json:
        print_json(STUDIES)
        return
    for name, line in STUDIES.items():
        print(f"{name:<10} {line}")


@app.command()
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A study that `privet study list` names.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files of the study go.")
    ] = Path("study"),
    seconds: Annotated[
        float | None, typer.Option(min=1, help="Stop gathering after so many seconds; ten minutes without --sets.")
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, help="How many generated tables there are in the end.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes work at once.")] = 1,
    caution: Annotated[
        float, typer.Option(min=0, help="How sure a policy must be before it leaves the default learner.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the trees of a policy.")] = 0,
    public: Annotated[
        bool, typer.Option("--public/--no-public", help="Measure regret on the UCI tables too, where they are.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Run a study. It goes on where an earlier run with the same folder stopped.

    The study "choice" runs every learner on generated tables, learns from them when to take which, and writes
    history.db, the policies accuracy.json and auc.json, and report.json. A policy is used with
    `privet fit --policy FILE`, or in Python with AutoClassifier(policy=FILE).

    \b
    Examples:
      privet study run choice --seconds 600 --jobs 2 -o policies
      privet study run choice --sets 200 --no-public -o policies
    """
    if name not in STUDIES:
        raise QuestionError(f"there is no study '{name}'; choose one of {', '.join(STUDIES)}.")
    from privet.studies.choice import run as run_choice

    if seconds is None and sets is None:
        seconds = 600.0
    with Console(stderr=True).status("starting") as status:
        found = run_choice(
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
        print_json(found)
        return
    for objective, content in found.items():
        _print_report(objective, content)
    pictures = [name for name in ("where.svg", "where-auc.svg", "regret.svg") if (output / name).exists()]
    say(f"wrote {output / 'history.db'}, accuracy.json, auc.json, report.json and the pictures {', '.join(pictures)}")


def _print_report(objective: str, content: dict[str, Any]) -> None:
    gain = content["gain over the default"]
    print(f"objective {objective}: {content['origins'][0]}")
    print(f"  ahead of always boosted on tables not seen: {gain['points']:+.2f} points ± {gain['standard error']:.2f}")
    public = content.get("public tables, regret in points")
    if public is None:
        return
    print(f"  regret on public tables   mean  >=0.05  worst   at {'  '.join(public['epsilons'])}")
    for way, row in sorted(public["ways"].items(), key=lambda item: float(item[1]["mean"])):
        cells = "  ".join(f"{each:.1f}" for each in row["by epsilon"])
        print(f"  {way:<24} {row['mean']:>6.2f} {row['mean from 0.05']:>7.2f} {row['worst cell']:>6.1f}   {cells}")
