"""`privet fit`, `predict` and `show`: models and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import privet
from privet.choice.catalog import ALGORITHMS
from privet.choice.catalog import algorithm as algorithm_of
from privet.cli.common import (
    AccessOption,
    AnalystOption,
    BudgetOption,
    DataArgument,
    DomainOption,
    IgnoreSpendingOption,
    JsonOption,
    LedgerOption,
    LimitOption,
    NameOption,
    lasting,
    output_of,
    print_json,
    progress_shown,
    say,
)
from privet.errors import QuestionError
from privet.kernel import Domain, decimal_text, refuse_spent

_ALGORITHMS = "\n".join(f"      {each.name:<15} {each.line}\n{'':22}{each.citation}" for each in ALGORITHMS.values())

FIT_HELP = f"""Fit a private model and write it as a file.

    Without --algorithm the one that suits the table is chosen, from noisy class counts that are part of
    epsilon; --explain says why. The fit is charged to the ledger of the data, epsilon in all; what cannot be fitted
    is refused before anything is charged. With --variant published an algorithm follows its paper to the letter.

    \b
    Algorithms:
{_ALGORITHMS}

    \b
    Examples:
      privet fit adult.csv -d adult.toml -b 1.0 -e 0.5 --explain -o model.json
      privet fit adult.csv -d adult.toml -e 0.5 --objective auc -o model.json
      privet fit adult.csv -d adult.toml -e 0.1 --algorithm maxforest --trees 5 --html model.html -o model.json
      privet fit adult.csv -d adult.toml -e 0.5 --algorithm boosted --html model.html -o model.json
      privet fit public.csv -d adult.toml --algorithm c45 --unsafe -o raw.json
    """


def fit(
    data: DataArgument,
    domain: DomainOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="What the whole fit may cost, as 0.5 or 1/2.")
    ] = None,
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help="One of the names above.")] = "auto",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which learner auto chose, which access was taken, and why.")
    ] = False,
    objective: Annotated[
        str | None, typer.Option(help="What auto aims at: accuracy, or auc where classes are unbalanced.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A policy of your own for auto, from `privet study run choice`.")
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", help="The largest depth; else the algorithm's.")] = None,
    criterion: Annotated[
        str | None,
        typer.Option(help="max, gini or infogain, where splits are chosen; id3plus also has weighted-max."),
    ] = None,
    trees: Annotated[int | None, typer.Option(help="How many trees a forest has.")] = None,
    vote: Annotated[str | None, typer.Option(help="majority, average or weighted.")] = None,
    numeric: Annotated[str | None, typer.Option(help="thresholds or bins, for diffpc45 and id3plus.")] = None,
    score: Annotated[str | None, typer.Option(help="sum or literal, for maxtree and maxforest.")] = None,
    pairs: Annotated[
        bool | None, typer.Option("--pairs/--no-pairs", help="Tables of two attributes too, for boosted.")
    ] = None,
    variant: Annotated[str, typer.Option(help="corrected or published.")] = "corrected",
    random_state: Annotated[int | None, typer.Option(help="The seed of public coins; noise has none.")] = None,
    max_leaves: Annotated[int | None, typer.Option(help="The most leaves that a tree may have.")] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="The rows are public: run what is not private, and charge nothing.")
    ] = False,
    budget: BudgetOption = None,
    analyst: AnalystOption = "local",
    ledger: LedgerOption = None,
    ignore_spending: IgnoreSpendingOption = False,
    name: NameOption = None,
    access: AccessOption = "auto",
    snapshot_limit: LimitOption = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also draw the model here.")] = None,
    as_json: JsonOption = False,
) -> None:
    from privet.choice.auto import CLASSIFIERS, AutoClassifier

    found = algorithm_of(algorithm)
    if not found.private and not unsafe:
        raise QuestionError(f"{algorithm} is not private; if the rows are public, say so with --unsafe.")
    if epsilon is None and found.private:
        raise QuestionError("fit needs --epsilon, what the whole fit may cost, as --epsilon 0.5.")
    kind = CLASSIFIERS[found.name]
    declared = Domain.load(domain)
    for file in (output, html):
        if file is not None and not file.parent.is_dir():
            raise QuestionError(f"there is no folder '{file.parent}' to write '{file.name}' to; make it first.")
    if unsafe and (access != "auto" or snapshot_limit is not None):
        raise QuestionError("rows that are public are read as they are; leave out --access and --snapshot-limit.")
    wanted = {
        "max_depth": depth,
        "criterion": criterion,
        "n_estimators": trees,
        "vote": vote,
        "numeric": numeric,
        "score": score,
        "pairs": pairs,
        "max_leaves": max_leaves,
        "objective": objective,
        "policy": policy,
    }
    known = kind().get_params()
    options = {"max_depth": "depth", "n_estimators": "trees", "max_leaves": "max-leaves"}
    for choice, value in wanted.items():
        if value is not None and choice not in known:
            raise QuestionError(f"{algorithm} has no choice --{options.get(choice, choice)}; leave it out.")
    chosen: dict[str, Any] = {choice: value for choice, value in wanted.items() if value is not None}
    classifier = kind(epsilon, variant=variant, unsafe=unsafe, random_state=random_state, **chosen)
    with progress_shown(f"opening {data}", quiet=as_json) as tell:
        classifier.set_params(verbose=tell)
        ledger_file: str | None = None
        if unsafe:
            if not ignore_spending:
                refuse_spent(data)
            model = _fit_public(classifier, data, declared)
        else:
            with privet.open(
                data,
                declared,
                budget=budget,
                ledger=lasting(ledger, ignore_spending),
                name=name,
                analyst=analyst,
                access=access,
                snapshot_limit=snapshot_limit,
                ignore_spending=ignore_spending,
            ) as table:
                model = classifier.fit(table).model_
                left, ledger_file, way = decimal_text(table.budget.remaining), table.budget.ledger_path, table.explain()
    model.save(output)
    if html is not None:
        model.to_html(html)
    if as_json:
        facts = {"model": str(output), **model.facts(), **model.privacy.to_dict()}
        print_json(facts if ledger_file is None else {**facts, "remaining": left, "ledger": ledger_file, "access": way})
        return
    print(model)
    if getattr(model, "note", ""):
        print(model.note)
    print(model.privacy)
    if explain and isinstance(classifier, AutoClassifier):
        print(f"\n{classifier.choice_.explain()}")
    say(
        f"wrote {output}"
        + (f" and {html}" if html else "")
        + (f"; {left} left in {ledger_file}" if ledger_file else "")
    )
    if explain and ledger_file:
        say(way)


def _fit_public(classifier: Any, data: str, declared: Domain) -> Any:
    import pandas as pd

    from privet.rows import read

    if classifier.private_on(declared):
        raise QuestionError(f"{classifier.algorithm} in this form is private; leave out --unsafe.")
    frame = pd.concat(list(read(data)), ignore_index=True)
    target = declared.target_column.name
    if target not in frame.columns:
        raise QuestionError(f"'{data}' has no column '{target}', the target of the domain.")
    classifier.set_params(domain=declared)
    return classifier.fit(frame.drop(columns=target), frame[target]).model_


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="The rows to predict, a .csv or .parquet file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
    shares: Annotated[bool, typer.Option("--shares", help="Also the share of each class.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of a sum of tables: what each table adds to the log odds of each class.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of CSV.")] = False,
) -> None:
    """Predict the class of every row with a model file. The rows are not protected: they are yours.

    Rows keep their order. A row that fits no cell of a tree takes the last node that it fits, and
    one that fits no cell of a table goes without it.

    \b
    Examples:
      privet predict model.json new.csv -o predictions.csv
      privet predict model.json new.csv --shares --json
      privet predict boosted.json new.csv --explain
    """
    from privet.models.model import Model
    from privet.models.tables import Tables
    from privet.rows import read

    loaded = Model.load(model)
    texts = loaded.domain.target_column.texts
    if explain and not isinstance(loaded, Tables):
        raise QuestionError("the model consists of trees, whose predictions are no sums; leave out --explain.")
    done = 0
    with output_of(output) as out:
        for chunk in read(data):
            if explain and isinstance(loaded, Tables):
                found = loaded.explain(chunk).round(4)
                found["row"] += done
            else:
                found = _predictions(loaded.predict_proba(chunk), texts, shares)
            if as_json:
                found.to_json(out, orient="records", lines=True)
            else:
                found.to_csv(out, index=False, header=done == 0, lineterminator="\n")
            done += len(chunk)
            if output is not None:
                say(f"{done} row{'s' * (done != 1)} predicted")


def _predictions(probabilities: Any, texts: tuple[str, ...], shares: bool) -> Any:
    """Predictions as a frame: the class, and with `shares` a column for each."""
    import pandas as pd

    frame = pd.DataFrame({"prediction": [texts[code] for code in probabilities.argmax(axis=1)]})
    for code, text in enumerate(texts if shares else ()):
        frame[f"share of {text}"] = probabilities[:, code].round(6)
    return frame


def show(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Draw it as a page instead.")] = None,
    depth: Annotated[int | None, typer.Option(min=0, help="Show trees no deeper than this.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Every leaf or cell as a sentence.")] = False,
    trees: Annotated[
        Path | None, typer.Option("--trees", metavar="FILE", help="Write a sum of tables as plain trees here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a model: its trees or tables, what it promises and what it cost.

    \b
    Examples:
      privet show model.json
      privet show model.json --html model.html
      privet show model.json --rules
      privet show boosted.json --trees trees.json
    """
    from privet.models.model import Model
    from privet.models.tables import Tables

    loaded = Model.load(model)
    if trees is not None:
        if not isinstance(loaded, Tables):
            raise QuestionError("the model consists of trees already; leave out --trees.")
        loaded.to_trees().save(trees)
        say(f"wrote {trees}")
    if html is not None:
        loaded.to_html(html)
        say(f"wrote {html}")
    if trees is not None or html is not None:
        return
    if as_json:
        facts = {"target": loaded.domain.target, "privacy": loaded.privacy.to_dict()}
        print_json({**facts, **loaded.details()})
    elif rules:
        print("\n".join(loaded.rules()))
    else:
        print(loaded.text(depth))
        print()
        print(loaded.privacy)
