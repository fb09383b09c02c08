"""The command line: one verb each, results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.table import Table

import privet
from privet.column import decimal_text
from privet.domain import Domain
from privet.errors import LedgerError, PrivetError, QuestionError
from privet.kernel import Ledger, as_epsilon, ledger_path, print_outside
from privet.question import Question
from privet.trees.presets import PRESETS, preset

_STYLE: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

app = typer.Typer(
    help="Mine a table you are not allowed to see.",
    add_completion=False,
    pretty_exceptions_enable=False,
    **_STYLE,
)
budget_app = typer.Typer(help="What was spent and who may spend how much.", **_STYLE)
domain_app = typer.Typer(help="The public description of a table.", **_STYLE)
app.add_typer(budget_app, name="budget")
app.add_typer(domain_app, name="domain")

DataArgument = Annotated[
    str, typer.Argument(metavar="DATA", help="A .csv or .parquet file, or duckdb:///file.db?table=NAME.")
]
DomainOption = Annotated[Path, typer.Option("--domain", "-d", metavar="FILE", help="The public domain file.")]
LedgerArgument = Annotated[str, typer.Argument(metavar="DATA|LEDGER", help="The data, or its .ledger file.")]
DatasetOption = Annotated[str | None, typer.Option("--name", help="The data set, where the ledger holds several.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(privet.__version__)
        raise typer.Exit


@app.command()
def query(
    data: DataArgument,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; see above.")],
    domain: DomainOption,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What the answer may cost, as 0.1 or 1/10.")],
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", help="What the data set may spend in all; needed the first time.")
    ] = None,
    analyst: Annotated[str, typer.Option(help="Who asks.")] = "local",
    ledger: Annotated[Path | None, typer.Option(help="A ledger other than the one beside the data.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name in the ledger.")] = None,
    key: Annotated[
        str | None, typer.Option(help="An idempotency key: the same question with it gives the same answer, once paid.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a private table one noisy question.

    \b
    A question is
      count | sum COLUMN | mean COLUMN | median COLUMN | quantile COLUMN RANK
      histogram COLUMN, COLUMN, ... | select max|gini|infogain [thresholds]
    followed, if you like, by
      by COLUMN                 for each of its values or bins, for the price of one
      where CONDITION and ...   COLUMN = VALUE, COLUMN in {A, B}, COLUMN in 30..40, COLUMN < 40
    with "quotes" around names and values that have spaces or signs.

    \b
    Examples:
      privet query adult.csv "count where sex = Female" -d adult.toml -b 1.0 -e 0.1
      privet query adult.csv "mean age by sex where hours-per-week in 30..40" -d adult.toml -e 0.1
      privet query adult.csv "histogram sex, income" -d adult.toml -e 0.1 --json
      privet query "duckdb:///census.db?table=people" "quantile wage 0.9" -d census.toml -e 0.1
    """
    asked = Question.parse(question)
    with privet.open(data, Domain.load(domain), budget=budget, ledger=ledger, name=name, analyst=analyst) as table:
        answers = asked.ask(table, epsilon, key)
        left, entry = table.budget.remaining, answers[0][1].about.entry
        path = table.budget.ledger_path
    if as_json:
        _print_json(
            {
                "question": question,
                "epsilon": decimal_text(as_epsilon(epsilon)),
                "answers": [{"part": label, **release.to_dict()} for label, release in answers],
                "private": all(release.private for _, release in answers),
                "remaining": decimal_text(left),
                "entry": entry,
                "ledger": path,
            }
        )
        return
    for label, release in answers:
        print(f"{label}: {release!r}" if label is not None else repr(release))
    _say(f"ledger entry {entry} in {path}; {decimal_text(left)} left")


_ALGORITHMS = "\n".join(f"      {each.name:<15} {each.line}\n{'':22}{each.citation}" for each in PRESETS.values())


@app.command(
    help=f"""Fit a private tree or forest and write it as a model file.

    The algorithm is charged to the ledger of the data, epsilon in all; what cannot be fitted is
    refused before anything is charged. With --variant published it follows its paper to the letter.

    \b
    Algorithms:
{_ALGORITHMS}

    \b
    Examples:
      privet fit adult.csv -d adult.toml -b 1.0 -e 0.5 -o model.json
      privet fit adult.csv -d adult.toml -e 0.1 --algorithm maxforest --trees 5 --html model.html -o model.json
      privet fit public.csv -d adult.toml --algorithm c45 --unsafe -o raw.json
    """
)
def fit(
    data: DataArgument,
    domain: DomainOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="What the whole fit may cost, as 0.5 or 1/2.")
    ] = None,
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help="One of the names above.")] = "diffpid3",
    depth: Annotated[int | None, typer.Option("--depth", help="The largest depth; else the algorithm's.")] = None,
    criterion: Annotated[
        str | None, typer.Option(help="max, gini or infogain, where the algorithm chooses splits.")
    ] = None,
    trees: Annotated[int | None, typer.Option(help="How many trees a forest has.")] = None,
    vote: Annotated[str | None, typer.Option(help="majority, average or weighted.")] = None,
    numeric: Annotated[str | None, typer.Option(help="thresholds or bins, for diffpc45.")] = None,
    score: Annotated[str | None, typer.Option(help="sum or literal, for maxtree and maxforest.")] = None,
    variant: Annotated[str, typer.Option(help="corrected or published.")] = "corrected",
    random_state: Annotated[int | None, typer.Option(help="The seed of public coins; noise has none.")] = None,
    max_leaves: Annotated[int | None, typer.Option(help="The most leaves that a tree may have.")] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="The rows are public: run what is not private, and charge nothing.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option("--budget", "-b", help="What the data set may spend in all; needed the first time.")
    ] = None,
    analyst: Annotated[str, typer.Option(help="Who asks.")] = "local",
    ledger: Annotated[Path | None, typer.Option(help="A ledger other than the one beside the data.")] = None,
    name: Annotated[str | None, typer.Option(help="The data set's name in the ledger.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also draw the model here.")] = None,
    as_json: JsonOption = False,
) -> None:
    from privet.trees.estimators import CLASSIFIERS

    found = preset(algorithm)
    if found.published is None and not unsafe:
        raise QuestionError(f"{algorithm} is not private; if the rows are public, say so with --unsafe.")
    if epsilon is None and found.published is not None:
        raise QuestionError("fit needs --epsilon, what the whole fit may cost, as --epsilon 0.5.")
    kind = CLASSIFIERS[found.name]
    declared = Domain.load(domain)
    for path in (output, html):
        if path is not None and not path.parent.is_dir():
            raise QuestionError(f"there is no folder '{path.parent}' to write '{path.name}' to; make it first.")
    wanted = {
        "max_depth": depth,
        "criterion": criterion,
        "n_estimators": trees,
        "vote": vote,
        "numeric": numeric,
        "score": score,
        "max_leaves": max_leaves,
    }
    known = kind().get_params()
    options = {"max_depth": "depth", "n_estimators": "trees", "max_leaves": "max-leaves"}
    for choice, value in wanted.items():
        if value is not None and choice not in known:
            raise QuestionError(f"{algorithm} has no choice --{options.get(choice, choice)}; leave it out.")
    chosen: dict[str, Any] = {choice: value for choice, value in wanted.items() if value is not None}
    classifier = kind(epsilon, variant=variant, unsafe=unsafe, random_state=random_state, **chosen)
    with Console(stderr=True).status(f"fitting {algorithm}") as status:
        classifier.set_params(verbose=status.update)
        ledger_file: str | None = None
        if unsafe:
            model = _fit_public(classifier, data, declared)
        else:
            opened = privet.open(data, declared, budget=budget, ledger=ledger, name=name, analyst=analyst)
            with opened as table:
                model = classifier.fit(table).model_
                left, ledger_file = decimal_text(table.budget.remaining), table.budget.ledger_path
    model.save(output)
    if html is not None:
        model.to_html(html)
    if as_json:
        leaves = sum(tree.leaves for tree in model.trees)
        facts = {"model": str(output), "trees": len(model.trees), "leaves": leaves, **model.privacy.to_dict()}
        _print_json(facts if ledger_file is None else {**facts, "remaining": left, "ledger": ledger_file})
        return
    print(model)
    print(model.privacy)
    _say(
        f"wrote {output}"
        + (f" and {html}" if html else "")
        + (f"; {left} left in {ledger_file}" if ledger_file else "")
    )


def _fit_public(classifier: Any, data: str, declared: Domain) -> Any:
    import pandas as pd

    from privet.rows import read

    plan = preset(classifier.algorithm).plan(declared, classifier.variant)
    if not (plan.errata or plan.is_exact):
        raise QuestionError(f"{classifier.algorithm} in this form is private; leave out --unsafe.")
    frame = pd.concat(list(read(data)), ignore_index=True)
    target = declared.target_column.name
    if target not in frame.columns:
        raise QuestionError(f"'{data}' has no column '{target}', the target of the domain.")
    classifier.set_params(domain=declared)
    return classifier.fit(frame.drop(columns=target), frame[target]).model_


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="The rows to predict, a .csv or .parquet file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
    shares: Annotated[bool, typer.Option("--shares", help="Also the share of each class.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of CSV.")] = False,
) -> None:
    """Predict the class of every row with a model file. The rows are not protected: they are yours.

    Rows keep their order. A row that fits no cell of the model takes the last node that it fits.

    \b
    Examples:
      privet predict model.json new.csv -o predictions.csv
      privet predict model.json new.csv --shares --json
    """
    from privet.rows import read
    from privet.trees.model import Ensemble

    loaded = Ensemble.load(model)
    texts = loaded.domain.target_column.texts
    done = 0
    with _output(output) as out:
        for chunk in read(data):
            probabilities = loaded.predict_proba(chunk)
            found = _predictions(probabilities, texts, shares)
            if as_json:
                found.to_json(out, orient="records", lines=True)
            else:
                found.to_csv(out, index=False, header=done == 0, lineterminator="\n")
            done += len(chunk)
            if output is not None:
                _say(f"{done} rows predicted")


def _predictions(probabilities: Any, texts: tuple[str, ...], shares: bool) -> Any:
    """Predictions as a frame: the class, and with `shares` a column for each."""
    import pandas as pd

    frame = pd.DataFrame({"prediction": [texts[code] for code in probabilities.argmax(axis=1)]})
    for code, text in enumerate(texts if shares else ()):
        frame[f"share of {text}"] = probabilities[:, code].round(6)
    return frame


@app.command()
def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Draw it as a page instead.")] = None,
    depth: Annotated[int | None, typer.Option(min=0, help="Show no deeper than this.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Every leaf as a sentence.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a model: its trees with noisy counts, what it promises and what it cost.

    \b
    Examples:
      privet show model.json
      privet show model.json --html model.html
      privet show model.json --rules
    """
    from privet.trees.model import Ensemble

    loaded = Ensemble.load(model)
    if html is not None:
        loaded.to_html(html)
        _say(f"wrote {html}")
    elif as_json:
        trees = [{"leaves": tree.leaves, "depth": tree.depth, "rules": tree.rules()} for tree in loaded.trees]
        _print_json({"target": loaded.domain.target, "privacy": loaded.privacy.to_dict(), "trees": trees})
    elif rules:
        for number, tree in enumerate(loaded.trees):
            if len(loaded.trees) > 1:
                print(f"tree {number + 1} of {len(loaded.trees)}")
            print("\n".join(tree.rules()))
    else:
        print(loaded.text(depth))
        print()
        print(loaded.privacy)


@budget_app.command("show")
def budget_show(
    ledger: LedgerArgument,
    entries: Annotated[bool, typer.Option("--entries", help="List every charge.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what was spent on each data set, by whom, and what is left.

    Example: privet budget show adult.csv --entries
    """
    book = _ledger(ledger)
    state = {name: _state(book, name, entries) for name in book.datasets()}
    if as_json:
        _print_json(state)
        return
    console = Console()
    for name, facts in state.items():
        table = Table(title=f"{name}: {facts['spent']} of {facts['budget']} spent", title_justify="left")
        for heading in ("analyst", "spent", "own budget", "left"):
            table.add_column(heading, justify="left" if heading == "analyst" else "right")
        for row in facts["analysts"]:
            table.add_row(row["analyst"], row["spent"], row["budget"] or "-", row["left"])
        console.print(table)
        if entries:
            lines = Table(show_edge=False)
            for heading in ("entry", "analyst", "question", "on", "epsilon", "charged", "when"):
                lines.add_column(heading, overflow="fold")
            for line in facts["entries"]:
                lines.add_row(
                    *(str(line[field]) for field in ("id", "analyst", "question", "scope", "epsilon", "loss", "at"))
                )
            console.print(lines)
    if not state:
        _say("the ledger holds no data set yet")


@budget_app.command("grant")
def budget_grant(
    ledger: LedgerArgument,
    epsilon: Annotated[
        str, typer.Argument(metavar="EPSILON", help="What may be spent in all, spending so far included.")
    ],
    analyst: Annotated[
        str | None, typer.Option(help="Give this analyst a budget of their own; without it, the data set.")
    ] = None,
    name: DatasetOption = None,
) -> None:
    """Set what a data set, or one analyst on it, may spend in all.

    \b
    Examples:
      privet budget grant adult.csv 2.0
      privet budget grant adult.csv 0.5 --analyst ada
    """
    book = _ledger(ledger)
    dataset = _dataset(book, name)
    cap = as_epsilon(epsilon, "the budget")
    book.set_cap(dataset, analyst, cap)
    whose = f"'{analyst}' on '{dataset}'" if analyst else f"the data set '{dataset}'"
    _say(f"{whose} may now spend {decimal_text(cap)} in all; {decimal_text(book.spent(dataset, analyst))} is spent")


@budget_app.command("revoke")
def budget_revoke(
    ledger: LedgerArgument,
    analyst: Annotated[str | None, typer.Option(help="Stop this analyst; without it, everyone.")] = None,
    name: DatasetOption = None,
) -> None:
    """Stop all further spending, by one analyst or by everyone. What was spent stays recorded.

    Example: privet budget revoke adult.csv --analyst ada
    """
    book = _ledger(ledger)
    dataset = _dataset(book, name)
    book.set_cap(dataset, analyst, Fraction(0))
    _say(f"{f'{analyst!r} may' if analyst else 'nobody may'} {'not ' if analyst else ''}spend any more on '{dataset}'")


@domain_app.command("draft")
def domain_draft(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A public sample (.csv, .parquet) or a codebook (.names).")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
) -> None:
    """Draft a domain file from a PUBLIC sample or codebook. The draft must be reviewed.

    Never run this on the private rows: what a domain lists becomes public.

    Example: privet domain draft public_sample.csv -o adult.toml
    """
    from privet.draft import draft

    text = draft(file)
    if output is None:
        print(text, end="")
    elif output.exists():
        raise QuestionError(f"'{output}' exists already; name another file, or remove it first.")
    else:
        output.write_text(text, encoding="utf-8")
        _say(f"wrote {output}: review it line by line before you open a table with it")


@domain_app.command("check")
def domain_check(data: DataArgument, domain: DomainOption) -> None:
    """Show the data owner what falls outside a domain: exact facts, on the terminal only, not a release.

    Example: privet domain check adult.csv -d adult.toml
    """
    print_outside(data, Domain.load(domain))


@domain_app.command("show")
def domain_show(domain: Annotated[Path, typer.Argument(metavar="FILE", help="A domain file.")]) -> None:
    """Print a domain file as an aligned table.

    Example: privet domain show adult.toml
    """
    print(Domain.load(domain))


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the generated data, the ledger and the report go.")] = Path(
        "privet-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, max=20_000_000, help="How many people to generate.")] = 5_000,
) -> None:
    """Show the whole story on generated data and write a report.

    Five questions to a private table, their answers with error bars, a tree, and the ledger.

    Example: privet demo --folder privet-demo
    """
    from privet.demo import run

    run(folder, rows)


def _ledger(target: str) -> Ledger:
    path = Path(target) if target.endswith(".ledger") else ledger_path(target)
    return Ledger.open(path, create=False)


def _dataset(book: Ledger, name: str | None) -> str:
    known = book.datasets()
    if name is not None:
        return name
    if len(known) != 1:
        raise LedgerError(f"the ledger holds {len(known)} data sets ({', '.join(known)}); choose one with --name.")
    return known[0]


def _state(book: Ledger, dataset: str, entries: bool) -> dict[str, Any]:
    cap = book.cap(dataset) or Fraction(0)
    facts: dict[str, Any] = {"budget": decimal_text(cap), "spent": decimal_text(book.spent(dataset))}
    facts["analysts"] = [
        {
            "analyst": analyst,
            "spent": decimal_text(book.spent(dataset, analyst)),
            "budget": None if (own := book.cap(dataset, analyst)) is None else decimal_text(own),
            "left": decimal_text(book.remaining(dataset, analyst)),
        }
        for analyst in book.analysts(dataset)
    ]
    if entries:
        facts["entries"] = [
            {
                **{
                    name: getattr(entry, name)
                    for name in ("id", "at", "analyst", "question", "scope", "epsilon", "key")
                },
                "loss": decimal_text(entry.loss),
                "answered": entry.answer is not None,
            }
            for entry in book.entries(dataset)
        ]
    return facts


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """The `privet` command: one sentence and a code that is not 0 where something stands in the way."""
    try:
        app()
    except PrivetError as error:
        _say(f"privet: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        _say("privet: interrupted; what was charged stands in the ledger")
        sys.exit(130)
    except OSError as error:
        _say(f"privet: {error.strerror or 'the system refused'}: {error.filename or 'a file'}")
        sys.exit(1)
    except Exception as error:
        # Its text may quote a row, so only its kind is shown.
        _say(f"privet: an unexpected {type(error).__name__} stopped this command; please report it")
        sys.exit(70)
