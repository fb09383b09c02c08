"""`privet query`: one noisy question to a private table."""

from __future__ import annotations

from typing import Annotated

import typer

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
    say,
    warn_if_large,
)
from privet.kernel import as_epsilon
from privet.question_text import TextQuestion
from privet.text import decimal_text


def query(
    data: DataArgument,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask; see above.")],
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="What the answer may cost, as 0.1 or 1/10.")],
    domain: OptionalDomainOption = None,
    server: ServerOption = None,
    permit: PermitOption = None,
    purpose: PurposeOption = None,
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
        typer.Option(help="An idempotency key: the same question with it returns the same answer and is paid once."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say which access was taken, and why.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a private table one noisy question.

    \b
    A question is
      count | sum COLUMN | mean COLUMN | median COLUMN | quantile COLUMN RANK
      histogram COLUMN, COLUMN, ... | select max|gini|infogain [thresholds]
    followed, if you like, by
      by COLUMN                 for each of its values or bins, at the price of one
      where CONDITION and ...   COLUMN = VALUE, COLUMN in {A, B}, COLUMN in 30..40, COLUMN < 40
    with "quotes" around names and values that have spaces or signs.

    \b
    Examples:
      privet query adult.csv "count where sex = Female" -d adult.toml -b 1.0 -e 0.1
      privet query adult.csv "mean age by sex where hours-per-week in 30..40" -d adult.toml -e 0.1
      privet query adult.csv "histogram sex, income" -d adult.toml -e 0.1 --json
      privet query stays.csv "count where admitted in 2020-01-01..2020-07-01" -d stays.toml -e 0.1
      privet query "duckdb:///census.db?table=people" "quantile wage 0.9" -d census.toml -e 0.1
      privet query adult.csv "mean age" -d adult.toml -b 1.0 --delta 1e-6 -e 0.25
      privet query patients "mean age by sex" -e 0.1 --server https://host:8000
    """
    parsed = TextQuestion.parse(question)
    as_epsilon(epsilon)
    options = TableOptions(
        data, budget, analyst, ledger, ignore_spending, name, access, snapshot_limit, server, delta, permit, purpose
    )
    declared = options.load_domain(domain)
    with options.open(declared) as table:
        warn_if_large(epsilon=epsilon, budget=budget)
        answers = parsed.ask(table, epsilon, key)
        remaining, left = decimal_text(table.budget.remaining), table.budget.left
        entry, own_delta = answers[0][1].about.entry, table.unit.delta
        counted = {} if own_delta is None else {"unit": "rho", "delta": f"{float(own_delta):g}", "left": left}
        ledger_file, access_text = table.budget.ledger_path, table.explain()
    if as_json:
        print_json(
            {
                "question": question,
                "epsilon": decimal_text(as_epsilon(epsilon)),
                "answers": [{"part": label, **release.to_dict()} for label, release in answers],
                "private": all(release.private for _, release in answers),
                "remaining": remaining,
                **counted,
                "entry": entry,
                "ledger": ledger_file,
                "access": access_text.splitlines()[0],
            }
        )
        return
    for label, release in answers:
        print(f"{label}: {release!r}" if label is not None else repr(release))
    say(f"ledger entry {entry} in {ledger_file}; {left}")
    if explain:
        say(access_text)
