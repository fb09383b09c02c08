"""Typical mistakes, on the command line and in Python: one sentence each, the right cause, and nothing is charged."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import run

import privet
from privet import AutoClassifier, BoostedTablesClassifier, DiffPID3Classifier, MaxForestClassifier
from privet.choice import Branch, NoisyIf
from privet.errors import (
    BudgetExceeded,
    DataError,
    DomainError,
    KeyReused,
    LedgerError,
    ModelError,
    NotPrivate,
    PrivacyError,
    PrivetError,
    QuestionError,
    UndeclaredDomain,
)
from privet.kernel import Domain, Ledger, Nominal, Numeric, source_of
from privet.models.model import Model

DOMAIN = """
target = "ill"

[columns.age]
kind = "numeric"
low = 0
high = 99
bins = 10

[columns.sex]
kind = "nominal"
values = ["Female", "Male"]

[columns."blood group"]
kind = "nominal"
values = ["0", "A", "B", "AB"]

[columns."größe"]
kind = "numeric"
low = 100
high = 220
bins = 4

[columns.ill]
kind = "nominal"
values = ["no", "yes"]
"""


def rows() -> pd.DataFrame:
    """Two hundred people that nobody is."""
    number = np.arange(200)
    return pd.DataFrame(
        {
            "age": number % 100,
            "sex": np.where(number % 2, "Male", "Female"),
            "blood group": np.array(["0", "A", "B", "AB"])[number % 4],
            "größe": 150 + number % 50,
            "ill": np.where(number % 100 > 60, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with its domain, ledger and model, and files that are wrong in one way each."""
    path, people = tmp_path_factory.mktemp("mistakes"), rows()
    text = people.to_csv(index=False)
    (path / "people.toml").write_text(DOMAIN, encoding="utf-8")
    for name, content in {
        "people.csv": text,
        "new.csv": text,
        "semicolons.csv": people.to_csv(index=False, sep=";"),
        "tabs.csv": people.to_csv(index=False, sep="\t"),
        "spaces.csv": people.to_csv(index=False, sep=" "),
        "headless.csv": people.to_csv(index=False, header=False),
        "blanks.csv": text.replace(",", ", "),
        "upper.csv": people.rename(columns=str.upper).to_csv(index=False),
        "lacking.csv": people.drop(columns="sex").to_csv(index=False),
        "twice.csv": people.rename(columns={"age": "sex"}).to_csv(index=False),
        "open.csv": text + '"open',
        "empty.csv": "",
        "lines.csv": "\n\n",
        "notes.txt": "hello",
        "rows.parquet": "no parquet",
        "notarget.toml": DOMAIN.replace('target = "ill"', ""),
        "end.toml": DOMAIN.replace('target = "ill"', "") + 'target = "ill"\n',
        "target.toml": DOMAIN.replace('target = "ill"', 'target = "il"'),
        "numeric.toml": DOMAIN.replace('target = "ill"', 'target = "age"'),
        "kind.toml": DOMAIN.replace('kind = "nominal"', 'kind = "nominl"', 1),
        "setting.toml": DOMAIN.replace("values =", "valeus =", 1),
        "bound.toml": DOMAIN.replace("low = 0\n", ""),
        "reversed.toml": DOMAIN.replace("low = 0\n", "low = 200\n"),
        "again.toml": DOMAIN.replace('"Female", "Male"', '"Female", "Female"'),
        "syntax.toml": "[columns",
        "quotes.toml": DOMAIN.replace('"blood group"', "blood group"),
        "no.toml": "",
        "person.toml": "rows_per_person = 0\n" + DOMAIN,
        "other.toml": DOMAIN.replace('"Female", "Male"', '"f", "m"'),
        "cut.json": '{"format": "privet-model", "trees": [',
        "other.json": "{}",
        "damaged.ledger": "this is no database" * 100,
    }.items():
        (path / name).write_text(content, encoding="utf-8")
    (path / "latin.csv").write_text(text, encoding="latin-1")
    (path / "utf16.csv").write_text(text, encoding="utf-16")
    (path / "book.csv").write_bytes(b"PK\x03\x04" + bytes(500))
    (path / "packed.csv").write_bytes(b"\x1f\x8b" + bytes(500))
    (path / "folder").mkdir()
    (path / "folder.csv").mkdir()
    domain = Domain.load(path / "people.toml")
    with privet.open(path / "people.csv", domain, budget=1) as table:
        table.count("0.1", key="paid")
    with privet.open(people, domain, budget=2) as table:
        DiffPID3Classifier(epsilon=1, max_depth=1).fit(table).model_.save(path / "model.json")
        BoostedTablesClassifier(epsilon=1).fit(table).model_.save(path / "sum.json")
    return path


ASK = "-d people.toml -e 0.1"
FIT = "-d people.toml -e 0.1 -o m.json"
AUDIT = "audit model.json --qi new.csv -s ill"

# what is typed after `privet`, a part of the sentence, and the exit code
COMMANDS: list[tuple[str, str, int]] = [
    # the words of a command
    ("fti people.csv", "there is no command 'fti' (did you mean 'fit'?)", 2),
    ("qurey people.csv count", "there is no command 'qurey' (did you mean 'query'?)", 2),
    ("budget shwo people.csv", "there is no command 'shwo' (did you mean 'show'?)", 2),
    ("domain chekc people.csv -d people.toml", "there is no command 'chekc' (did you mean 'check'?)", 2),
    ("study lsit", "there is no command 'lsit' (did you mean 'list'?)", 2),
    ("fit", "fit needs DATA, as in `privet fit adult.csv -d adult.toml", 2),
    ("query people.csv", "query needs QUESTION, as in `privet query", 2),
    ("query people.csv count -d people.toml", "query needs --epsilon, as in `privet query", 2),
    ("query people.csv count -e 0.1", "give --domain FILE, or --server URL", 1),
    ("fit people.csv -d people.toml -e 0.1", "fit needs --output, as in `privet fit", 2),
    ("predict model.json", "predict needs DATA, as in `privet predict", 2),
    ("audit model.json --qi new.csv", "audit needs --sensitive, as in `privet audit", 2),
    ("budget grant people.csv", "budget grant needs EPSILON, as in `privet budget grant adult.csv 2.0`", 2),
    ("study run", "study run needs NAME", 2),
    (f"query people.csv count {ASK} --budjet 1", "query has no option --budjet (did you mean '--budget'?)", 2),
    (f"fit people.csv {FIT} --epsylon 1", "fit has no option --epsylon (did you mean '--epsilon'?)", 2),
    (f"fit people.csv {FIT} --verbose", "fit has no option --verbose", 2),
    ("predict model.json new.csv --explian", "predict has no option --explian (did you mean '--explain'?)", 2),
    (f"query people.csv count where sex = Female {ASK}", "query has no use for 'where sex = Female'", 2),
    (f"fit people.csv people.toml {FIT}", "fit has no use for 'people.toml'", 2),
    ("query people.csv count -e 0.1 -d", "option '-d' requires an argument", 2),
    (f"fit people.csv {FIT} -a maxforest --trees five", "--trees takes a whole number; see `privet fit --help`", 2),
    (f"fit people.csv {FIT} -a diffpid3 --depth 2.5", "--depth takes a whole number", 2),
    ("show model.json --depth -1", "--depth takes a number of at least 0", 2),
    ("verify --hours soon", "--hours takes a number", 2),
    ("verify --hours -1", "--hours takes a number of at least 0", 2),
    ("demo --rows 5", "--rows takes a number of at least 100", 2),
    ("budget release people.csv first", "ID takes a whole number", 2),
    ("study compare -d people.toml --accuracy 200", "--accuracy takes a number of at most 100", 2),
    # epsilon, budget and ledger
    ("query people.csv count -d people.toml -e 0", "--epsilon must be a number between 0.000000001 and 1000000", 1),
    ("query people.csv count -d people.toml -e=-1", "--epsilon must be a number", 1),
    ("query people.csv count -d people.toml -e 50%", "not '50%'; write it as 0.1 or 1/10", 1),
    ("query people.csv count -d people.toml -e 0,1", "not '0,1'; write it as 0.1 or 1/10", 1),
    ("query people.csv count -d people.toml -e nan", "--epsilon must be a number", 1),
    ("fit people.csv -d people.toml -e one -o m.json", "--epsilon must be a number", 1),
    (f"query people.csv count {ASK} -b none", "--budget must be a number", 1),
    (f"query people.csv count {ASK} -b 2", "let its owner raise it with `privet budget grant`", 1),
    (
        f"query new.csv count {ASK}",
        "the data set 'new' has no budget yet; give one the first time, with --budget 1.0.",
        1,
    ),
    (f"fit new.csv {FIT}", "the data set 'new' has no budget yet; give one the first time, with --budget 1.0.", 1),
    ("query people.csv count -d people.toml -e 2", "which has 0.9 left of 1. Lower epsilon, or ask the data owner", 1),
    ("fit people.csv -d people.toml -e 2 -o m.json -a boosted", "the table has 0.9 left", 1),
    ("fit people.csv -d people.toml -e 2 -o m.json", "which has 0.9 left of 1", 1),
    ("fit people.csv -d people.toml -e 2 -o m.json --key k", "which has 0.9 left of 1", 1),
    (f"query people.csv count {ASK} --ledger :memory:", "would be forgotten; name a file", 1),
    (f"query people.csv count {ASK} --ledger other.ledger -b 1", "would not be counted; use that ledger", 1),
    (f"query new.csv count {ASK} --ledger damaged.ledger", "damaged.ledger", 1),
    (f"query new.csv count {ASK} -b 1 --ledger none/x.ledger", "cannot be written", 1),
    (f"query people.csv count {ASK} --analyst ''", "--analyst must be a printable text", 1),
    (f"query people.csv count {ASK} --key ''", "--key must be a text of 1 to 200", 1),
    (f"query people.csv count {ASK} --name ''", "--name must be a printable text", 1),
    ("query people.csv count -d people.toml -e 0.2 --key paid", "the key 'paid' stands for another scope", 1),
    ("budget show none.csv", "there is no file 'none.csv'", 1),
    ("budget show new.csv", "there is no ledger at", 1),
    ("budget show none.ledger", "there is no ledger at", 1),
    ("budget grant people.csv ten", "the budget must be a number", 1),
    ("budget grant people.csv 1 --analyst ''", "--analyst needs a name, as --analyst ada", 1),
    ("budget grant people.csv 1 --name poeple", "no data set 'poeple' (did you mean 'people'?); it has people", 1),
    ("budget revoke people.csv --analyst nobody", "there is no analyst 'nobody' on 'people'; known are local", 1),
    ("budget revoke people.csv --analyst locla", "there is no analyst 'locla' on 'people' (did you mean 'local'?)", 1),
    ("budget release people.csv 7", "has no reservation 7", 1),
    ("budget declare people.csv -d none.toml", "cannot read the domain file 'none.toml'", 1),
    ("query people.csv count -d other.toml -e 0.1", "domain", 1),
    # data
    (f"query pepole.csv count {ASK} -b 1", "there is no file 'pepole.csv'; check the path", 1),
    (f"query folder count {ASK} -b 1", "'folder' is a folder; name a .csv or .parquet file in it", 1),
    (f"query folder.csv count {ASK} -b 1", "'folder.csv' is a folder", 1),
    (f"query notes.txt count {ASK} -b 1", "cannot open 'notes.txt'; privet opens .csv and .parquet files", 1),
    (f"query people.xlsx count {ASK} -b 1", "cannot open 'people.xlsx'", 1),
    (f"query semicolons.csv count {ASK} -b 1", "'semicolons.csv' separates its columns by semicolons; save it with", 1),
    (f"query tabs.csv count {ASK} -b 1", "separates its columns by tabs", 1),
    (f"query spaces.csv count {ASK} -b 1", "separates its columns by spaces", 1),
    (f"query headless.csv count {ASK} -b 1", "names none of the columns that the domain declares; add a header", 1),
    (f"query blanks.csv count {ASK} -b 1", "differs in spaces around the name or in upper and lower case", 1),
    (f"query upper.csv count {ASK} -b 1", "differs in spaces around the name or in upper and lower case", 1),
    (f"query lacking.csv count {ASK} -b 1", "has no column 'sex', which the domain declares; check the domain", 1),
    (f"query twice.csv count {ASK} -b 1", "has several columns named 'sex'; rename them", 1),
    (
        f"query latin.csv count {ASK} -b 1",
        "is not a list of column names in UTF-8; save the file as UTF-8",
        1,
    ),
    (f"query utf16.csv count {ASK} -b 1", "'utf16.csv' is UTF-16 text; save it as UTF-8", 1),
    (f"query book.csv count {ASK} -b 1", "'book.csv' is a workbook or a zip archive", 1),
    (f"query packed.csv count {ASK} -b 1", "'packed.csv' is compressed by gzip; unpack it", 1),
    (f"query empty.csv count {ASK} -b 1", "'empty.csv' is empty", 1),
    (f"query lines.csv count {ASK} -b 1", "the first line of 'lines.csv' is not a list of column names", 1),
    (f"query open.csv count {ASK} -b 1", "ends inside quotes", 1),
    (f"query rows.parquet count {ASK} -b 1", "cannot open 'rows.parquet'; check that it is what its name says", 1),
    (f"query duckdb:///people.db count {ASK} -b 1", "names no table; write duckdb:///file.db?table=NAME", 1),
    (f"query mysql://host/db?table=t count {ASK} -b 1", "cannot open 'mysql://...'; privet opens files and", 1),
    (f"query postgresql://127.0.0.1:1/db?table=t count {ASK} -b 1", "cannot reach the server at 127.0.0.1:1", 1),
    # domain files
    ("query people.csv count -e 0.1 -d none.toml", "cannot read the domain file 'none.toml' (No such file", 1),
    ("query people.csv count -e 0.1 -d people.csv", "'people.csv' is a table, not the domain file", 1),
    ("query people.csv count -e 0.1 -d folder", "cannot read the domain file 'folder' (Is a directory)", 1),
    ("domain show syntax.toml", "not valid TOML", 1),
    ("domain show quotes.toml", 'stand in quotes, as [columns."blood group"]', 1),
    ("domain show no.toml", "declares no columns; add a [columns.NAME] section", 1),
    ("domain show end.toml", "target stands in the section of", 1),
    ("domain show target.toml", "the target 'il' is not among the declared columns (did you mean 'ill'?)", 1),
    ("domain show numeric.toml", "the target 'age' is numeric; a target is nominal", 1),
    ("domain show kind.toml", 'needs kind = "nominal", kind = "numeric" or kind = "date"', 1),
    ("domain show setting.toml", "has an unknown setting 'valeus' (did you mean 'values'?)", 1),
    ("domain show bound.toml", "needs low = ..., a public bound", 1),
    ("domain show reversed.toml", "age", 1),
    ("domain show again.toml", "sex", 1),
    ("domain show person.toml", "rows_per_person = 0 is not possible", 1),
    ("domain check people.csv -d people.toml", "writes to a terminal only", 1),
    # questions
    (f"query people.csv '' {ASK}", "a question begins with count, sum, mean", 1),
    (f"query people.csv cuont {ASK}", "(did you mean 'count'?)", 1),
    (f"query people.csv COUNT {ASK}", "(did you mean 'count'?)", 1),
    (f"query people.csv 'average age' {ASK}", "a question begins with count, sum, mean", 1),
    (f"query people.csv mean {ASK}", "'mean' takes 1 word, as in: mean age", 1),
    (f"query people.csv 'mean agee' {ASK}", "column 'agee' has no declared domain (did you mean 'age'?)", 1),
    (f"query people.csv 'mean Age' {ASK}", "column 'Age' has no declared domain (did you mean 'age'?)", 1),
    (f"query people.csv 'mean sex' {ASK}", "column 'sex' is nominal", 1),
    (f"query people.csv 'mean blood group' {ASK}", "'mean' takes 1 word, as in: mean age; put \"quotes\" around", 1),
    (f"query people.csv 'count for sex' {ASK}", "'count' is followed by nothing, 'by' or 'where'", 1),
    (f"query people.csv 'count by sexx' {ASK}", "column 'sexx' has no declared domain (did you mean 'sex'?)", 1),
    (f"query people.csv 'count by sex, ill' {ASK}", "'by' is followed by one column", 1),
    (f"query people.csv 'count where' {ASK}", "cannot read the condition ''; write COLUMN = VALUE", 1),
    (
        f"query people.csv 'count where sex = female' {ASK}",
        "has no declared value 'female' (did you mean 'Female'?)",
        1,
    ),
    (f"query people.csv 'count where sex = woman' {ASK}", "no declared value 'woman'; it has Female, Male", 1),
    (f"query people.csv 'count where sex == Female' {ASK}", "cannot read the condition", 1),
    (f"query people.csv 'count where sex > Female' {ASK}", "column 'sex' is nominal and has no ranges", 1),
    (f"query people.csv 'count where age > forty' {ASK}", "column 'age' is compared with numbers", 1),
    (f"query people.csv 'count where age in 40..30' {ASK}", "from 40 to 30 is reversed", 1),
    (f"query people.csv 'count where age in 40..40' {ASK}", "no declared value of 'age' lies in this range", 1),
    (
        f"query people.csv 'count where age > 200' {ASK}",
        "no declared value of 'age' lies in this range: it has 0 to",
        1,
    ),
    (f"query people.csv 'count where age in 40-50' {ASK}", "COLUMN in 30..40", 1),
    (f"query people.csv 'count where age = 200' {ASK}", "column 'age' has no value 200", 1),
    (f"query people.csv 'count where age > 30 and age < 40' {ASK}", "each column stands in one condition only", 1),
    (f"query people.csv 'quantile age 90' {ASK}", "the rank of a quantile lies between 0 and 1", 1),
    (f"query people.csv 'quantile age' {ASK}", "'quantile' takes 2 words, as in: quantile age 0.9", 1),
    (f"query people.csv 'select ginni' {ASK}", "there is no criterion 'ginni' (did you mean 'gini'?)", 1),
    (f"query people.csv 'select gini threshold' {ASK}", "'select' takes a criterion", 1),
    (f"query people.csv 'select infogain' {ASK}", "declare max_rows in the domain file", 1),
    ("query people.csv 'select gini' -e 0.1 -d notarget.toml", "domain", 1),
    (f"query people.csv histogram {ASK}", "a histogram needs at least one column", 1),
    (f"query people.csv 'histogram sex, sex' {ASK}", "the names of different columns", 1),
    (f"query people.csv count {ASK} --access fast", "there is no access 'fast'; choose one of auto", 1),
    (f"query people.csv count {ASK} --access steam", "there is no access 'steam' (did you mean 'stream'?)", 1),
    (f"query people.csv count {ASK} --snapshot-limit big", "--snapshot-limit must be a size such as '200MB'", 1),
    # fits
    (f"fit people.csv {FIT} -a bosted", "there is no algorithm 'bosted' (did you mean 'boosted'?)", 1),
    (f"fit people.csv {FIT} -a forest", "there is no algorithm 'forest'", 1),
    (f"fit people.csv {FIT} -a c45", "c45 is not private; if the rows are public, say so with --unsafe", 1),
    (f"fit people.csv {FIT} -a c45 --unsafe", "would not be counted; leave out --unsafe", 1),
    (f"fit new.csv {FIT} -a boosted --unsafe", "is private; leave out --unsafe", 1),
    ("fit people.csv -d people.toml -o m.json", "fit needs --epsilon", 1),
    ("fit new.csv -b 1 -e 1 -o m.json -d notarget.toml", 'the domain declares no target; add target = "COLUMN"', 1),
    (f"fit people.csv {FIT} -a diffpid3 --criterion ginni", "there is no criterion 'ginni' (did you mean 'gini'?)", 1),
    (f"fit people.csv {FIT} -a diffpid3 --depth 1000", "--depth must be a whole number from 0 to 100", 1),
    (f"fit people.csv {FIT} -a diffpid3 --max-leaves 1", "at most --max-leaves 1 are allowed: lower --depth", 1),
    (f"fit people.csv {FIT} -a maxforest --trees 0", "--trees must be a whole number from 1 to 10000", 1),
    (f"fit people.csv {FIT} -a maxforest --vote all", "--vote is one of majority, average, weighted", 1),
    (f"fit people.csv {FIT} -a maxtree --score x", "--score is 'sum' or 'literal'", 1),
    (f"fit people.csv {FIT} -a diffpc45 --numeric x", "--numeric is 'thresholds' or 'bins'", 1),
    (f"fit people.csv {FIT} -a diffpid3 --variant publishd", "--variant is 'corrected' or 'published'", 1),
    (f"fit people.csv {FIT} -a maxforest --variant published", "use --variant corrected, or --unsafe on rows", 1),
    (f"fit people.csv {FIT} --random-state -1", "--random-state must be a whole number from 0 to", 1),
    (f"fit people.csv {FIT} -a boosted --depth 3", "boosted has no choice --depth; leave it out", 1),
    (f"fit people.csv {FIT} --objective acc", "--objective is one of accuracy, auc", 1),
    (f"fit people.csv {FIT} --policy none.json", "cannot read the policy 'none.json'", 1),
    (f"fit people.csv {FIT} --key ''", "--key must be a text of 1 to 200", 1),
    (f"fit people.csv {FIT} --key paid", "the key 'paid' stands for another scope", 1),
    ("fit new.csv -d people.toml -a c45 --unsafe --key k -o m.json", "leave out --key", 1),
    ("fit people.csv -d people.toml -e 0.1 -o folder", "'folder' is a folder; name a file in it", 1),
    ("fit people.csv -d people.toml -e 0.1 -o none/m.json", "there is no folder 'none'", 1),
    ("fit people.csv -d people.toml -e 0.1 -o model.json", "'model.json' exists already; name another file", 1),
    ("fit people.csv -d people.toml -e 0.1 -o people.csv --force", "'people.csv' is no model", 1),
    # models
    ("predict none.json new.csv", "cannot read the model 'none.json' (No such file", 1),
    ("predict cut.json new.csv", "not valid JSON", 1),
    ("predict other.json new.csv", "this JSON is not a privet model", 1),
    ("predict new.csv model.json", "no model that privet wrote", 1),
    ("predict model.json none.csv", "there is no file 'none.csv'", 1),
    ("predict model.json folder", "'folder' is a folder", 1),
    ("predict model.json semicolons.csv", "'semicolons.csv' separates its columns by semicolons", 1),
    ("predict sum.json upper.csv", "which the model looks at (did you mean '", 1),
    ("predict model.json empty.csv", "'empty.csv' is empty", 1),
    ("predict model.json new.csv --id patient", "the rows have no column 'patient', which --id names", 1),
    ("predict model.json new.csv --explain", "leave out --explain", 1),
    ("show folder", "cannot read the model 'folder' (Is a directory)", 1),
    ("show model.json --trees t.json", "leave out --trees", 1),
    # audits, verification and studies
    ("audit none.json --qi new.csv -s ill", "cannot read the tree 'none.json'", 1),
    ("audit model.json --qi none.csv -s ill", "there is no file 'none.csv'", 1),
    ("audit model.json --qi new.csv -s il", "il", 1),
    (f"{AUDIT} --columns agee", "agee", 1),
    (f"{AUDIT} --threshold 2", "the threshold is a probability above 0 and at most 1", 1),
    (f"{AUDIT} --published leaf", "leaf", 1),
    (f"{AUDIT} --criterion ginni", "ginni", 1),
    (f"{AUDIT} --marginal yes", "gives no shares of values; write it as v=0.3,w=0.7", 1),
    (f"{AUDIT} -o report.pdf", "cannot tell what to write to 'report.pdf'", 1),
    (f"{AUDIT} --fix", "--fix needs a file for the safer tree", 1),
    (f"{AUDIT} -o none/report.html", "there is no folder 'none'", 1),
    ("verify difpid3", "did you mean diffpid3", 1),
    ("verify diffpid3 --all", "verify takes one of NAME, --all", 1),
    ("verify diffpid3 -e 0", "--epsilon must be a number", 1),
    ("verify --attacks people.csv -d none.toml", "cannot read the domain file 'none.toml'", 1),
    ("study run chioce", "there is no study 'chioce' (did you mean 'choice'?)", 1),
    ("study compare -d people.toml -e 10:1 -o study", "upside down; write 1:10", 1),
    ("study compare -d people.toml -o people.csv", "'people.csv' is a file; name a folder", 1),
    ("demo --folder people.csv", "'people.csv' is a file; name a folder with --folder", 1),
]


def state(folder: Path) -> tuple[list[str], Fraction, int]:
    """What a mistake must not change: the files, what was spent, and how often."""
    book = Ledger.open(source_of(folder / "people.csv").ledger, create=False)
    entries = book.entries("people")
    return sorted(path.name for path in folder.iterdir()), book.spent("people"), len(entries)


@pytest.mark.parametrize(("words", "sentence", "code"), COMMANDS, ids=[words for words, _, _ in COMMANDS])
def test_a_mistake_on_the_command_line_is_one_sentence_and_costs_nothing(
    folder: Path, words: str, sentence: str, code: int
) -> None:
    before = state(folder)
    done = run(*shlex.split(words), cwd=folder)
    assert done.stderr.startswith("privet: ") and done.stderr.count("\n") == 1, done.stderr
    assert sentence in done.stderr, done.stderr
    assert (done.returncode, done.stdout) == (code, "")
    assert not re.search(r"Traceback|\w=True|\bpass \w+=|[a-z]_[a-z]+=", done.stderr), done.stderr  # no Python
    assert state(folder) == before


def test_the_tables_hold_what_was_promised() -> None:
    assert len(COMMANDS) + len(CALLS) >= 120 and len(COMMANDS) >= 90
    assert len({words for words, _, _ in COMMANDS}) == len(COMMANDS)


# -- Python ---------------------------------------------------------------------------------------

SMALL = Domain(
    (
        Numeric("age", Fraction(0), Fraction(99), Fraction(1), bins=10),
        Nominal("sex", ("Female", "Male")),
        Nominal("ill", ("no", "yes")),
    ),
    target="ill",
)


def frame() -> pd.DataFrame:
    return rows()[["age", "sex", "ill"]]


Call = Callable[[privet.ProtectedTable], Any]

# what is called with a table of budget 1, the error, and a part of its sentence
CALLS: list[tuple[str, Call, type[PrivetError], str]] = [
    ("a column of another name", lambda t: t.mean("agee", 0.1), UndeclaredDomain, "did you mean 'age'"),
    ("a column in capitals", lambda t: t.histogram("Sex", epsilon=0.1), UndeclaredDomain, "did you mean 'sex'"),
    ("a mean of words", lambda t: t.mean("sex", 0.1), QuestionError, "column 'sex' is nominal"),
    ("a value in small letters", lambda t: t.where(sex="female").count(0.1), QuestionError, "did you mean 'Female'"),
    ("a number for a word", lambda t: t.where(sex=1).count(0.1), QuestionError, "has no declared value 1"),
    ("a reversed range", lambda t: t.where(age=(40, 30)).count(0.1), QuestionError, "reversed"),
    ("a range of three", lambda t: t.where(age=(1, 2, 3)).count(0.1), QuestionError, "a pair (low, high)"),
    ("a word for a number", lambda t: t.where(age="forty").count(0.1), QuestionError, "no declared value 'forty'"),
    ("a number beyond the bounds", lambda t: t.where(age=200).count(0.1), QuestionError, "has no value 200"),
    ("a condition as a text", lambda t: t.where("age > 3"), QuestionError, "column=value conditions"),
    ("epsilon 0", lambda t: t.count(0), QuestionError, "epsilon must be a number"),
    ("a negative epsilon", lambda t: t.count(-1), QuestionError, "epsilon must be a number"),
    ("an epsilon in words", lambda t: t.count("much"), QuestionError, "not 'much'; write it as 0.1 or 1/10"),
    ("no epsilon", lambda t: t.count(None), QuestionError, "epsilon must be a number"),
    ("a true epsilon", lambda t: t.count(True), QuestionError, "epsilon must be a number"),
    ("more than the budget", lambda t: t.count(2), BudgetExceeded, "which has 1 left of 1"),
    ("a rank in percent", lambda t: t.quantile("age", 90, 0.1), QuestionError, "between 0 and 1"),
    ("a criterion of another name", lambda t: t.select("ginni", 0.1), QuestionError, "did you mean 'gini'"),
    ("information gain without a size", lambda t: t.select("infogain", 0.1), PrivacyError, "declare max_rows"),
    ("an unknown mechanism", lambda t: t.select("gini", 0.1, mechanism="best"), QuestionError, "no selection 'best'"),
    ("too many epsilons", lambda t: t.partition("sex").count([0.1] * 3), QuestionError, "3 epsilons were given for 2"),
    ("an unknown part", lambda t: t.partition("sex")["female"], QuestionError, "0 parts are called 'female'"),
    ("a partition by nothing", lambda t: t.partition("race"), UndeclaredDomain, "column 'race' has no declared domain"),
    ("an empty key", lambda t: t.count(0.1, key=""), QuestionError, "key must be a text"),
    ("a key that is a number", lambda t: t.count(0.1, key=7), QuestionError, "key must be a text"),
    ("no epsilon for a fit", lambda t: BoostedTablesClassifier().fit(t), QuestionError, "needs an epsilon"),
    ("a table and labels", lambda t: AutoClassifier(1).fit(t, [1]), QuestionError, "leave out y"),
    ("weights", lambda t: AutoClassifier(1).fit(t, sample_weight=[1]), QuestionError, "sample_weight is refused"),
    ("a fit beyond the budget", lambda t: DiffPID3Classifier(2).fit(t), BudgetExceeded, "the table has 1 left"),
    ("a choice beyond the budget", lambda t: AutoClassifier(2).fit(t), BudgetExceeded, "cannot reserve epsilon=2"),
    ("too deep", lambda t: DiffPID3Classifier(1, max_depth=-1).fit(t), QuestionError, "max_depth must be a whole"),
    ("no trees", lambda t: MaxForestClassifier(1, n_estimators=0).fit(t), QuestionError, "trees must be a whole"),
    (
        "a wrong seed",
        lambda t: AutoClassifier(1, random_state="x").fit(t),
        QuestionError,
        "random_state must be a whole",
    ),
    ("a wrong objective", lambda t: AutoClassifier(1, objective="f1").fit(t), QuestionError, "objective is one of"),
    (
        "a paper's error",
        lambda t: MaxForestClassifier(1, variant="published").fit(t),
        NotPrivate,
        "unsafe=True on rows",
    ),
    (
        "another domain",
        lambda t: AutoClassifier(1, domain=Domain(SMALL.columns)).fit(t),
        QuestionError,
        "leave out domain",
    ),
    ("rows instead of a frame", lambda t: privet.open([1, 2], SMALL, budget=1), DataError, "cannot open a list"),
    (
        "a file that is not there",
        lambda t: privet.open("no.csv", SMALL, budget=1),
        DataError,
        "there is no file 'no.csv'",
    ),
    ("no domain", lambda t: privet.open(frame(), None, budget=1), UndeclaredDomain, "opened with a public domain"),
    ("no budget", lambda t: privet.open(frame(), SMALL), LedgerError, "has no budget yet"),
    (
        "a frame without a column",
        lambda t: privet.open(frame()[["age"]], SMALL, budget=1),
        DataError,
        "no column 'sex'",
    ),
    (
        "a wrong access",
        lambda t: privet.open(frame(), SMALL, budget=1, access="quick"),
        QuestionError,
        "no access 'quick'",
    ),
    (
        "an analyst without a name",
        lambda t: privet.open(frame(), SMALL, 1, analyst=""),
        QuestionError,
        "analyst must be",
    ),
    ("a domain with one class", lambda t: Domain((Nominal("ill", ()),), target="ill"), DomainError, "ill"),
    ("a target of another name", lambda t: Domain(SMALL.columns, target="il"), DomainError, "did you mean 'ill'"),
    ("a model that is not there", lambda t: Model.load("none.json"), ModelError, "cannot read the model 'none.json'"),
    ("a text that is no model", lambda t: Model.from_json("x"), ModelError, "not valid JSON"),
    ("a branch of another name", lambda t: NoisyIf("s", {"a": Branch.of(1)}, "b"), QuestionError, "the default 'b'"),
    ("an algorithm of another name", lambda t: privet.verify("bosted"), QuestionError, "did you mean boosted"),
    (
        "labels of another length",
        lambda t: AutoClassifier(1, domain=SMALL).fit(frame()[["age", "sex"]], ["no"]),
        DataError,
        "different numbers of rows",
    ),
    (
        "a key without a ledger",
        lambda t: AutoClassifier(1, domain=SMALL).fit(frame()[["age", "sex"]], frame()["ill"], key="k"),
        QuestionError,
        "open it with privet.open",
    ),
]


@pytest.mark.parametrize(("name", "call", "kind", "sentence"), CALLS, ids=[name for name, *_ in CALLS])
def test_a_mistake_in_python_is_one_sentence_and_costs_nothing(
    name: str, call: Call, kind: type[PrivetError], sentence: str
) -> None:
    with privet.open(frame(), SMALL, budget=1) as table:
        with pytest.raises(kind) as raised:
            call(table)
        assert sentence in str(raised.value) and "\n" not in str(raised.value)
        assert table.budget.spent == 0 and not table.budget.entries


def test_a_key_for_two_questions_is_refused_and_the_second_costs_nothing() -> None:
    with privet.open(frame(), SMALL, budget=1) as table:
        table.count(0.1, key="k")
        with pytest.raises(KeyReused, match="the key 'k' stands for another scope, question or epsilon"):
            table.count(0.2, key="k")
        assert table.budget.spent == Fraction(1, 10)


# -- what is said beside an answer ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "factor"),
    [
        ("query wide.csv count -d people.toml -b 10 -e 10", None),
        (
            "query wide.csv count -d people.toml -b 100 -e 1",
            "budget 100 is above 10: with it, what is published may be e^100",
        ),
        (
            "query wide.csv count -d people.toml -b 100 -e 11",
            "epsilon 11 is above 10: with it, what is published may be e^11, about 60,000, times",
        ),
        ("fit wide.csv -d people.toml -b 100 -e 20 -a prior -o wide.json", "epsilon 20 is above 10"),
    ],
)
def test_an_epsilon_or_a_budget_above_ten_is_warned_of_once(
    folder: Path, tmp_path: Path, words: str, factor: str | None
) -> None:
    for name in ("people.toml", "new.csv"):
        (tmp_path / name.replace("new", "wide")).write_bytes((folder / name).read_bytes())
    done = run(*shlex.split(words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("warning") == (factor is not None)
    assert factor is None or factor in done.stderr


def test_a_grant_above_ten_is_warned_of(folder: Path, tmp_path: Path) -> None:
    for name in ("people.toml", "new.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert run(*shlex.split("query new.csv count -d people.toml -b 1 -e 0.1"), cwd=tmp_path).returncode == 0
    assert "budget 1000 is above 10" in run("budget", "grant", "new.csv", "1000", cwd=tmp_path).stderr


def test_predictions_can_be_joined_by_a_column_of_the_rows(folder: Path) -> None:
    rows().assign(patient=np.arange(1000, 1200)).to_csv(folder / "ids.csv", index=False)
    lines = run("predict", "model.json", "ids.csv", "--id", "patient", cwd=folder).stdout.splitlines()
    assert lines[0] == "patient,prediction" and lines[1].startswith("1000,") and len(lines) == 201
    (folder / "ids.csv").unlink()


def test_an_interrupted_command_that_charges_nothing_does_not_speak_of_charges(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privet.verification.verify", interrupt)
    done = run("verify", "prior", cwd=folder)
    assert (done.returncode, done.stderr) == (130, "privet: interrupted\n")


def test_the_ledger_of_a_terminal_of_eighty_columns_splits_no_word(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("budget", "show", "people.csv", "--entries", cwd=folder).stdout
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d\b", shown) and "all rows" in shown


def test_entries_of_a_fit_are_listed_in_whole_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of questions and of columns are longer than a column of a table of eighty letters."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "people.toml").write_text(DOMAIN, encoding="utf-8")
    rows().to_csv(tmp_path / "people.csv", index=False)
    asked = 'count by ill where sex = Female and "blood group" = A and age in 30..60'
    for words in (
        "fit people.csv -d people.toml -b 2 -e 1 -a boosted -o m.json",
        f"query people.csv '{asked}' -d people.toml -e .1",
    ):
        assert run(*shlex.split(words), cwd=tmp_path).returncode == 0
    shown = run("budget", "show", "people.csv", "--entries", cwd=tmp_path).stdout
    listed = json.loads(run("budget", "show", "people.csv", "--entries", "--json", cwd=tmp_path).stdout)
    for entry in listed["people"]["entries"]:
        assert set(f"{entry['question']} on {entry['scope']}".split()) <= set(shown.split())
        assert entry["epsilon"] in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_words_that_nobody_meant_suggest_nothing_of_the_rows(folder: Path) -> None:
    """A suggestion comes from the domain alone: a value that occurs in the rows and is not declared is not known."""
    secret = rows().assign(sex="Femal")
    with privet.open(secret, SMALL, budget=1) as table, pytest.raises(QuestionError) as raised:
        table.where(sex="Femals").count(0.1)
    assert "Female" in str(raised.value) and "'Femal'" not in str(raised.value)
