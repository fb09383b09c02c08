"""Typical mistakes in Python: one sentence each that says the cause, and nothing is charged.

More of them, and those on the command line, are in `tests/cli/test_mistakes.py`; those of edits of a domain in
`tests/kernel/test_domain.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import privet
from privet import Domain, MaxTreeClassifier, Nominal, Numeric
from privet.errors import (
    BudgetExceeded,
    DataError,
    DomainError,
    ModelError,
    NotPrivate,
    PrivacyError,
    QuestionError,
    UndeclaredDomain,
)

SMALL = Domain((Numeric("age", 0, 99), Nominal("sex", ["Female", "Male"]), Nominal("ill", ["no", "yes"])), target="ill")
OWNED = SMALL.with_person("id")
NUMBER = np.arange(200)
ROWS = pd.DataFrame(
    {
        "age": NUMBER % 100,
        "sex": np.where(NUMBER % 2, "Male", "Female"),
        "ill": np.where(NUMBER % 100 > 60, "yes", "no"),
    }
)
X, Y = ROWS[["age", "sex"]], ROWS["ill"]
RENAMED = ROWS.rename(columns={"age": "Age"})


def tree(**more: Any) -> MaxTreeClassifier:
    return MaxTreeClassifier(**{"epsilon": 1, "domain": SMALL, "max_depth": 1, **more})


def model() -> Any:
    return tree(epsilon=100).fit(X, Y).model_


Call = Callable[[privet.ProtectedTable], Any]

# what is called with a table of budget 1, the error, and a part of its sentence
QUESTIONS: list[tuple[str, Call, type[Exception], str]] = [
    ("no epsilon", lambda t: t.count(), TypeError, "count() missing 1 required positional argument: 'epsilon'"),
    ("epsilon by place", lambda t: t.histogram("sex", 0.1), TypeError, "histogram() missing 1 required keyword-only"),
    ("eps", lambda t: t.count(eps=0.1), TypeError, "count() got an unexpected keyword argument 'eps'"),
    ("epsilon not a number", lambda t: t.count(float("nan")), QuestionError, "epsilon must be a number"),
    ("epsilon without end", lambda t: t.count(float("inf")), QuestionError, "not inf"),
    ("a decimal comma", lambda t: t.count("0,1"), QuestionError, "not '0,1'; write it as 0.1 or 1/10"),
    ("epsilon in percent", lambda t: t.count("10%"), QuestionError, "not '10%'"),
    ("columns as a list", lambda t: t.histogram(["sex", "ill"], epsilon=0.1), QuestionError, "one after the other"),
    ("no column", lambda t: t.histogram(epsilon=0.1), QuestionError, "needs at least one column"),
    ("a column twice", lambda t: t.histogram("sex", "sex", epsilon=0.1), QuestionError, "different columns"),
    ("the sum of nothing", lambda t: t.sum(epsilon=0.1), TypeError, "missing 1 required positional argument: 'column'"),
    ("arguments swapped", lambda t: t.sum(0.1, "age"), QuestionError, "epsilon must be a number"),
    ("rank and column swapped", lambda t: t.quantile(0.5, "age", 0.1), QuestionError, "between 0 and 1, not at 'age'"),
    ("a median of words", lambda t: t.median("sex", 0.1), QuestionError, "column 'sex' is nominal"),
    ("a column like a frame's", lambda t: t["age"], TypeError, "no column of a private table can be read"),
    ("a method of frames", lambda t: t.groupby("sex"), AttributeError, "no attribute 'groupby'"),
    ("the number of rows", lambda t: len(t), TypeError, "the size of a private table is itself private"),
    ("the rows", lambda t: list(t), TypeError, "the rows of a private table cannot be read"),
    ("a frame of it", lambda t: pd.DataFrame(t), TypeError, "the rows of a private table cannot be read"),
    ("a pickle of it", lambda t: pickle.dumps(t), PrivacyError, "cannot be copied or pickled"),
    ("a function as a condition", lambda t: t.where(lambda row: row.age > 3), QuestionError, "column=value conditions"),
    ("a mask as a condition", lambda t: t.where(ROWS["age"] > 3), QuestionError, "column=value conditions"),
    ("a condition on nothing", lambda t: t.where(sexx="Male"), UndeclaredDomain, "did you mean 'sex'"),
    ("a range as a list", lambda t: t.where(age=[30, 40]).count(0.1), QuestionError, "a range (low, high)"),
    ("a comparison as a text", lambda t: t.where(age=">30").count(0.1), QuestionError, "a range (low, high)"),
    ("None as a value", lambda t: t.where(sex=None).count(0.1), QuestionError, "no declared value None"),
    ("edges of words", lambda t: t.partition("sex", edges=[1]), QuestionError, "column 'sex' is nominal"),
    ("one edge", lambda t: t.partition("age", edges=30), QuestionError, "edges must be a list"),
    ("a part too far", lambda t: t.partition("sex")[7], IndexError, "there is no part 7"),
    ("half a part", lambda t: t.partition("sex")[1.5], QuestionError, "not by 1.5"),  # type: ignore[index]
    ("parts that are not there", lambda t: t.partition("sex").take([5]), QuestionError, "by their numbers, 0 to 1"),
    ("no parts", lambda t: t.scatter(0, 1), QuestionError, "a whole number of parts"),
    ("an accuracy in percent", lambda t: t.monitor(95, 0.1), QuestionError, "lies between 0 and 1"),
    ("more than there is", lambda t: t.reserve(5).__enter__(), BudgetExceeded, "which has 1 left of 1"),
    ("a closed table", lambda t: (t.close(), t.count(0.1)), DataError, "was closed; open it again"),
    ("a budget set by hand", lambda t: setattr(t.budget, "spent", 0), FrozenInstanceError, "cannot assign"),
]
OPENINGS: list[tuple[str, Call, type[Exception], str]] = [
    ("a negative budget", lambda t: privet.open(ROWS, SMALL, budget=-1), QuestionError, "budget must be a number"),
    ("no budget at all", lambda t: privet.open(ROWS, SMALL, budget=0), QuestionError, "not 0; write it as"),
    ("a budget in words", lambda t: privet.open(ROWS, SMALL, budget="much"), QuestionError, "not 'much'"),
    ("rows and domain swapped", lambda t: privet.open(SMALL, ROWS, budget=1), UndeclaredDomain, "pass a Domain or"),
    ("a domain as a dict", lambda t: privet.open(ROWS, {"age": 1}, budget=1), UndeclaredDomain, "pass a Domain or"),
    ("a domain that is not there", lambda t: privet.open(ROWS, "no.toml", budget=1), DomainError, "check the path"),
    ("an array", lambda t: privet.open(ROWS.to_numpy(), SMALL, budget=1), DataError, "cannot open a ndarray"),
    ("a dict of columns", lambda t: privet.open({"age": [1]}, SMALL, budget=1), DataError, "cannot open a dict"),
    ("nothing", lambda t: privet.open(None, SMALL, budget=1), DataError, "pass a file name"),
    ("a column in capitals", lambda t: privet.open(RENAMED, SMALL, budget=1), DataError, "(did you mean 'Age'?)"),
    ("no person column", lambda t: privet.open(ROWS, OWNED, budget=1), DataError, "the table has no column 'id'"),
    ("a ledger by number", lambda t: privet.open(ROWS, SMALL, budget=1, ledger=3), QuestionError, "ledger is the path"),
    ("another opn", lambda t: privet.opn(ROWS), AttributeError, "(did you mean 'open'?)"),
    ("a bosted class", lambda t: privet.BostedTablesClassifier(1), AttributeError, "'BoostedTablesClassifier'?"),
    ("a data set", lambda t: privet.datasets.load("adlt"), DataError, "known are adult"),
]
DECLARATIONS: list[tuple[str, Call, type[Exception], str]] = [
    ("one column", lambda t: Domain(Nominal("a", ["x"])), DomainError, "columns are a list of"),
    ("names for columns", lambda t: Domain(("age", "sex")), DomainError, "privet.Nominal or privet.Numeric, not 'age'"),
    ("a path that is parsed", lambda t: Domain.parse("people.toml"), DomainError, "for a file use Domain.load"),
    ("a column by another name", lambda t: SMALL["Age"], UndeclaredDomain, "did you mean 'age'"),
    ("a domain changed in place", lambda t: setattr(SMALL, "target", "sex"), FrozenInstanceError, "cannot assign"),
    ("a value None", lambda t: Nominal("sex", ["f", None]), DomainError, "missing = true"),
    ("a draft of a private table", lambda t: Domain.draft(t, target="ill"), DataError, "frame of public rows"),
    ("a draft of a dict", lambda t: Domain.draft({"a": [1]}), DataError, "a draft needs a path, or a pandas"),
    ("a draft of no file", lambda t: Domain.draft("no.csv"), DataError, "cannot read 'no.csv'"),
    ("a draft for no column", lambda t: Domain.draft(ROWS, target="il"), DataError, "did you mean 'ill'?"),
    (
        "rows of a person in words",
        lambda t: Domain.draft(ROWS, person="sex", rows_per_person="five"),
        DataError,
        "not 'five'",
    ),
]
MODELS: list[tuple[str, Call, type[Exception], str]] = [
    ("a prediction before the fit", lambda t: tree().predict(X), NotFittedError, "is not fitted yet"),
    ("a score before the fit", lambda t: tree().score(X, Y), NotFittedError, "is not fitted yet"),
    ("a record before the fit", lambda t: tree().privacy_, NotFittedError, "is not fitted yet"),
    ("eps of a class", lambda t: MaxTreeClassifier(eps=1), TypeError, "unexpected keyword argument 'eps'"),  # type: ignore[call-arg]
    ("a negative epsilon", lambda t: tree(epsilon=-1).fit(X, Y), QuestionError, "epsilon must be a number"),
    ("a depth in words", lambda t: tree(max_depth="3").fit(X, Y), QuestionError, "max_depth must be a whole number"),
    ("half a level", lambda t: tree(max_depth=2.5).fit(X, Y), QuestionError, "not 2.5"),
    ("a variant of another name", lambda t: tree(variant="publised").fit(X, Y), QuestionError, "not 'publised'"),
    ("no classes", lambda t: tree().fit(X), ValueError, "needs the class of each row"),
    ("the name of the classes", lambda t: tree().fit(ROWS, "ill"), DataError, "y is not one class for each row"),
    ("two columns of classes", lambda t: tree().fit(X, ROWS[["ill", "sex"]]), DataError, "y is not one class"),
    ("one column of rows", lambda t: tree().fit(X["age"], Y), DataError, "X is a Series that is no table"),
    ("a file of rows", lambda t: tree().fit("people.csv"), DataError, "X is 'people.csv', a text; pass rows"),
    ("a column short", lambda t: tree().fit(X[["age"]], Y), DataError, "the table has no column 'sex'"),
    ("a column misspelt", lambda t: tree().fit(X.set_axis(["age", "Sex"], axis=1), Y), DataError, "mean 'Sex'"),
    ("nobody's rows", lambda t: tree(domain=OWNED).fit(X, Y), DataError, "by the column 'id' whose row it is"),
    ("a domain as a dict", lambda t: tree(domain={"age": 1}).fit(X, Y), QuestionError, "domain must be a Domain"),
    ("no target", lambda t: tree(domain=SMALL.with_target(None)).fit(X, Y), UndeclaredDomain, "declares no target"),
    ("plain C4.5 of a table", lambda t: privet.C45Classifier().fit(t), NotPrivate, "it reads rows without noise"),
    ("predictions of a file", lambda t: tree().fit(X, Y).predict("people.csv"), DataError, "pass rows, as pandas"),
    ("predictions of a table", lambda t: tree().fit(X, Y).predict(t), DataError, "nobody may read them"),
    ("predictions of nothing", lambda t: tree().fit(X, Y).predict(None), DataError, "X is None; pass a frame"),
    ("rows without names", lambda t: model().predict([[1, 2]]), DataError, "a frame with named columns, not of a list"),
    ("a column that is missed", lambda t: model().predict(X[["sex"]]), DataError, "have no column 'age'"),
    ("an audit of another target", lambda t: privet.audit(model(), X, sensitive="il"), ModelError, "predicts 'ill'"),
    ("an audit before the fit", lambda t: privet.audit(tree(), X, sensitive="ill"), ModelError, "is not fitted"),
    ("an audit of a table", lambda t: privet.audit(model(), t, sensitive="ill"), DataError, "not a ProtectedTable"),
    ("an audit of nobody", lambda t: privet.audit(model(), X[["sex"]], sensitive="ill"), DataError, "looks at 'age'"),
    ("a class to verify", lambda t: privet.verify(MaxTreeClassifier), QuestionError, "is a class; pass one of it"),
    ("a number to verify", lambda t: privet.verify(3), QuestionError, "cannot verify a int"),
    ("effort in words", lambda t: privet.verify("prior", effort="much"), QuestionError, "effort multiplies the runs"),  # type: ignore[arg-type]
]
CALLS = [*QUESTIONS, *OPENINGS, *DECLARATIONS, *MODELS]


@pytest.mark.parametrize(("name", "call", "kind", "sentence"), CALLS, ids=[name for name, *_ in CALLS])
def test_a_mistake_is_one_sentence_and_costs_nothing(
    name: str, call: Call, kind: type[Exception], sentence: str
) -> None:
    with privet.open(ROWS, SMALL, budget=1) as table:
        with pytest.raises(kind) as raised:
            call(table)
        assert sentence in str(raised.value) and "\n" not in str(raised.value)
        assert type(raised.value) is kind
        assert raised.value.__cause__ is None, "a reader would take the cause for the mistake"
        assert raised.value.__context__ is None or raised.value.__suppress_context__
        assert table.budget.spent == 0 and not table.budget.entries


# -- after an answer that was paid ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda t: t.count(0.1).interval(95), "between 0 and 1, as 0.95, not 95"),
        (lambda t: t.count(0.1).interval("95%"), "not '95%'"),
        (lambda t: t.median("age", 0.1).interval(), "use rank_error()"),
        (lambda t: t.histogram("sex", epsilon=0.1)["female"], "(did you mean 'Female'?)"),
        (lambda t: t.histogram("sex", epsilon=0.1)["Male", "no"], "name a cell by 1 labels"),
        (lambda t: t.mean("age", 0.1).refine(0.2), ""),
        (lambda t: t.histogram("sex", epsilon=0.1)["Male"].refine(0.2), "cannot be refined"),
    ],
)
def test_a_mistake_about_an_answer_costs_no_more_than_the_answer(call: Call, sentence: str) -> None:
    with privet.open(ROWS, SMALL, budget=1) as table:
        with pytest.raises((QuestionError, AttributeError)) as raised:
            call(table)
        assert sentence in str(raised.value) and "\n" not in str(raised.value)
        assert len(table.budget.entries) == 1
