"""`privet fit`, `predict` and `show`: models and their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.choice.catalog import ALGORITHMS
from privet.choice.catalog import algorithm as algorithm_of
from privet.cli.common import (
    AccessOption,
    AnalystOption,
    BudgetOption,
    DataArgument,
    DeltaOption,
    IgnoreSpendingOption,
    JsonOption,
    LedgerOption,
    LimitOption,
    NameOption,
    OptionalDomainOption,
    PermitOption,
    PurposeOption,
    ServerOption,
    TableOptions,
    print_json,
    progress_shown,
    say,
    warn_if_large,
)
from privet.cli.outputs import (
    check_model_output,
    check_output,
    write_paid_model,
    write_receipt,
    write_text,
    written_whole,
)
from privet.errors import LedgerError, QuestionError, ReceiptError, did_you_mean
from privet.kernel import Domain, refuse_spent
from privet.receipts import vkeys
from privet.table import ProtectedTable

if TYPE_CHECKING:
    from privet.models.model import Model

_ALGORITHMS = "\n".join(
    fill(line, 82, initial_indent=f"      {name:<16}", subsequent_indent=" " * 22)  # typer takes 4 of the indent away
    for algorithm in ALGORITHMS.values()
    for name, line in ((algorithm.name, algorithm.line), ("", algorithm.citation))
)

FIT_HELP = f"""Fit a private model and write it as a file.

    Without --algorithm the one that suits the table is chosen, from noisy class counts that are part of epsilon;
    --explain says why. The whole fit is charged epsilon, to the ledger of the data. What cannot be fitted is
    refused before anything is charged. With --variant published an algorithm follows its paper to the letter.

    The ledger keeps the hash of the model. If it has a signing key (`privet receipt key new`), a receipt that
    anybody can check is written beside the model, as model.json.receipt.

    With --key the whole epsilon is charged at once, and the ledger keeps the model. The same command with the
    same key then costs nothing: it finishes a fit that a crash has ended, or writes the model again.

    \b
    Algorithms:
{_ALGORITHMS}

    \b
    Examples:
      privet fit adult.csv -d adult.toml -b 1.0 -e 0.5 --explain -o model.json
      privet fit adult.csv -d adult.toml -e 0.5 --objective auc -o model.json
      privet fit adult.csv -d adult.toml -e 0.1 -a maxforest --trees 5 -o m.json
      privet fit adult.csv -d adult.toml -e 0.5 -a boosted --html m.html -o m.json
      privet fit adult.csv -d adult.toml -e 0.5 --key monday -o model.json
      privet fit public.csv -d adult.toml -a c45 --unsafe -o raw.json
      privet fit patients -e 0.5 --server https://host:8000 -o model.json
    """


def fit(
    data: DataArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model goes.")],
    domain: OptionalDomainOption = None,
    server: ServerOption = None,
    permit: PermitOption = None,
    purpose: PurposeOption = None,
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
        bool | None, typer.Option("--pairs/--no-pairs", help="Tables of several attributes too, for boosted.")
    ] = None,
    variant: Annotated[str, typer.Option(help="corrected or published.")] = "corrected",
    random_state: Annotated[int | None, typer.Option(help="The seed of public coins; noise has none.")] = None,
    max_leaves: Annotated[int | None, typer.Option(help="The most leaves that a tree may have.")] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="The rows are public: run what is not private, and charge nothing.")
    ] = False,
    budget: BudgetOption = None,
    delta: DeltaOption = None,
    analyst: AnalystOption = "local",
    ledger: LedgerOption = None,
    ignore_spending: IgnoreSpendingOption = False,
    name: NameOption = None,
    access: AccessOption = "auto",
    snapshot_limit: LimitOption = None,
    key: Annotated[
        str | None,
        typer.Option(help="Pay once under this key: the same command with it resumes, or finds the model."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the model file if there is one.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also draw the model here.")] = None,
    as_json: JsonOption = False,
) -> None:
    request = _FitRequest(
        algorithm,
        epsilon,
        variant,
        random_state,
        unsafe,
        choices={
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
        },
        table=TableOptions(
            data, budget, analyst, ledger, ignore_spending, name, access, snapshot_limit, server, delta, permit, purpose
        ),
        output=output,
        html=html,
        key=key,
    )
    check_model_output(output, force=force, reads=(data, domain, policy))
    check_output(html, reads=(data, domain, policy))
    if html is not None and html.resolve() == output.resolve():
        raise QuestionError(f"'{output}' cannot be the model and its picture; name two files with -o and --html.")
    fitted = _fit(request, domain, quiet=as_json)
    write_paid_model(output, fitted.model.to_json(), key)
    receipt = write_receipt(output, fitted.receipt)
    if html is not None:
        write_text(html, fitted.model.to_html())
    if as_json:
        print_json({"model": str(output), **fitted.to_dict(), **({"receipt": str(receipt)} if receipt else {})})
    else:
        _print_fitted(fitted, request, explain)


@dataclass(frozen=True)
class _FitRequest:
    """What `privet fit` was asked to do. A choice that is None was not given."""

    algorithm: str
    epsilon: str | None
    variant: str
    random_state: int | None
    unsafe: bool
    choices: dict[str, int | str | bool | Path | None]
    table: TableOptions
    output: Path
    html: Path | None
    key: str | None


@dataclass(frozen=True)
class _Spending:
    """What a fit left of the budget, in which ledger, and how the table was accessed."""

    remaining: str
    ledger: str
    access: str


@dataclass(frozen=True)
class _Fitted:
    """A model, the classifier that learned it, and the spending; None for public rows."""

    classifier: Any
    model: Model
    spending: _Spending | None
    receipt: str | None = None  # if the ledger has a signing key

    def to_dict(self) -> dict[str, Any]:
        """Return what a fit prints, as a dict for JSON."""
        content = {**self.model.facts(), **self.model.privacy.to_dict()}
        if self.spending is None:
            return content
        spending = self.spending
        access = spending.access.splitlines()[0]
        return {**content, "remaining": spending.remaining, "ledger": spending.ledger, "access": access}


# The parameters of classifiers whose options have other names.
_OPTIONS = {"max_depth": "depth", "n_estimators": "trees", "max_leaves": "max-leaves"}


def _fit(request: _FitRequest, domain: Path | None, *, quiet: bool) -> _Fitted:
    """Check a request, open its table and fit."""
    algorithm = algorithm_of(request.algorithm)
    if not algorithm.private and not request.unsafe:
        raise QuestionError(f"{request.algorithm} is not private; if the rows are public, say so with --unsafe.")
    if request.epsilon is None and algorithm.private:
        raise QuestionError("fit needs --epsilon, what the whole fit may cost, as --epsilon 0.5.")
    table = request.table
    declared = table.load_domain(domain)
    if request.unsafe and table.server is not None:
        raise QuestionError("the rows of a server are private; leave out --unsafe.")
    if request.unsafe and request.key is not None:
        raise QuestionError("rows that are public cost nothing; leave out --key.")
    if request.unsafe and (table.access != "auto" or table.snapshot_limit is not None):
        raise QuestionError("rows that are public are read as they are; leave out --access and --snapshot-limit.")
    classifier = _classifier(request, algorithm.name)
    if not request.unsafe and declared is not None:
        classifier.check(declared)  # before a table is opened, which makes a ledger
    with progress_shown(f"opening {table.data}", quiet=quiet) as report:
        return _fit_table(classifier, request, declared, report)


def _classifier(request: _FitRequest, name: str) -> Any:
    """Return the classifier of a request, or refuse a choice that it does not have."""
    from privet.choice.auto import CLASSIFIERS

    kind = CLASSIFIERS[name]
    known = kind().get_params()
    given = {choice: value for choice, value in request.choices.items() if value is not None}
    for choice in given:
        if choice not in known:
            option = _OPTIONS.get(choice, choice)
            raise QuestionError(f"{request.algorithm} has no choice --{option}; leave it out.")
    chosen: dict[str, Any] = given
    return kind(
        request.epsilon, variant=request.variant, unsafe=request.unsafe, random_state=request.random_state, **chosen
    )


def _fit_table(
    classifier: Any, request: _FitRequest, declared: Domain | None, report: Callable[[object], None]
) -> _Fitted:
    """Fit a classifier to the table of a request."""
    classifier.set_params(verbose=report)
    options = request.table
    if request.unsafe:
        assert declared is not None
        if not options.ignore_spending:
            refuse_spent(options.data)
        return _Fitted(classifier, _fit_public(classifier, options.data, declared), None)
    with options.open(declared) as table:
        warn_if_large(epsilon=request.epsilon, budget=options.budget)
        report(f"fitting {request.algorithm}")
        model = classifier.fit(table, key=request.key).model_
        spending = _Spending(table.unit.text(table.budget.remaining), table.budget.ledger_path, table.explain())
        receipt = _receipt(table, model) if options.server is None else None
    return _Fitted(classifier, model, spending, receipt)


def _receipt(table: ProtectedTable, model: Model) -> str | None:
    """Write a model down in the ledger of its table; return its receipt if the ledger has a signing key."""
    try:
        table.write_down(model)
        return table.receipt(model) if vkeys(table._session.ledger) else None
    except (ReceiptError, LedgerError) as error:  # the model is paid for, and leaves all the same
        say(f"there is no receipt: {error}")
        return None


def _fit_public(classifier: Any, data: str, declared: Domain) -> Model:
    """Fit a classifier that is not private to a file of public rows."""
    import pandas as pd

    from privet.rows import read

    if classifier.private_on(declared):
        raise QuestionError(f"{classifier.algorithm} in this form is private; leave out --unsafe.")
    frame = pd.concat(list(read(data)), ignore_index=True)
    target = declared.target_column.name
    if target not in frame.columns:
        raise QuestionError(f"'{data}' has no column '{target}', the target of the domain.")
    classifier.set_params(domain=declared)
    model: Model = classifier.fit(frame.drop(columns=target), frame[target]).model_
    return model


def _print_fitted(fitted: _Fitted, request: _FitRequest, explain: bool) -> None:
    """Print a model, its privacy record, and with `explain` why it was learned this way."""
    from privet.choice.auto import AutoClassifier

    model, spending = fitted.model, fitted.spending
    print(model)
    if note := getattr(model, "note", ""):
        print(note)
    print(model.privacy)
    if explain and isinstance(fitted.classifier, AutoClassifier) and hasattr(fitted.classifier, "choice_"):
        print(f"\n{fitted.classifier.choice_.explain()}")
    say(
        f"wrote {request.output}"
        + (f" and {request.html}" if request.html else "")
        + (f"; {spending.remaining} left in {spending.ledger}" if spending else "")
    )
    if explain and spending:
        say(spending.access)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file that fit wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="The rows to predict, a .csv or .parquet file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Copy this column of the rows, by which to join them.")
    ] = None,
    shares: Annotated[bool, typer.Option("--shares", help="Also the share of each class.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Of a sum of tables: what each table adds to the log odds of each class.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line instead of CSV.")] = False,
) -> None:
    """Predict the class of every row with a model file. The rows are not protected: they are yours.

    Rows keep their order. A row that fits no cell of a tree gets the prediction of the last node that it
    fits; a table in which it fits no cell adds nothing.

    \b
    Examples:
      privet predict model.json new.csv --id patient -o predictions.csv
      privet predict model.json new.csv --shares --json
      privet predict boosted.json new.csv --explain
    """
    from privet.models.model import Model
    from privet.models.tables import Tables
    from privet.rows import read

    check_output(output, reads=(model, data))
    loaded = Model.load(model)
    texts = loaded.domain.target_column.texts
    if explain and not isinstance(loaded, Tables):
        raise QuestionError("the model consists of trees, whose predictions are no sums; leave out --explain.")
    if explain and row_id is not None:
        raise QuestionError("--explain numbers the rows itself; leave out --id.")
    done = 0
    with written_whole(output) as out:
        for chunk in read(data):
            if explain and isinstance(loaded, Tables):
                lines = loaded.explain(chunk).round(4)
                lines["row"] += done
            else:
                lines = _predictions(loaded.predict_proba(chunk), texts, shares)
                if row_id is not None:
                    lines.insert(0, row_id, _ids(chunk, row_id), allow_duplicates=True)
            if as_json:
                lines.to_json(out, orient="records", lines=True)
            else:
                lines.to_csv(out, index=False, header=done == 0, lineterminator="\n")
            done += len(chunk)
            if output is not None:
                say(f"{done} row{'s' * (done != 1)} predicted")


def _ids(rows: Any, name: str) -> Any:
    """Return the column of the rows to predict that identifies them."""
    if name not in rows.columns:
        raise QuestionError(f"the rows have no column '{name}'{did_you_mean(name, rows.columns)}, which --id names.")
    return rows[name].to_numpy()


def _predictions(probabilities: Any, texts: tuple[str, ...], shares: bool) -> Any:
    """Return predictions as a frame: the class of each row, and with `shares` the share of every class."""
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

    for file in (trees, html):
        check_output(file, reads=(model,))
    loaded = Model.load(model)
    if trees is not None:
        if not isinstance(loaded, Tables):
            raise QuestionError("the model consists of trees already; leave out --trees.")
        write_text(trees, loaded.to_trees().to_json())
        say(f"wrote {trees}")
    if html is not None:
        write_text(html, loaded.to_html())
        say(f"wrote {html}")
    if trees is not None or html is not None:
        return
    if as_json:
        print_json({"target": loaded.domain.target, "privacy": loaded.privacy.to_dict(), **loaded.details()})
    elif rules:
        print("\n".join(loaded.rules()))
    else:
        print(loaded.text(depth))
        print()
        print(loaded.privacy)
