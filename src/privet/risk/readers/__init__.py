"""Published trees, wherever they came from: told apart, read, and what cannot be read said in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from privet.errors import ModelError
from privet.kernel import LONGEST_MODEL, LONGEST_TEXT
from privet.models.model import Model
from privet.models.tree import Ensemble
from privet.risk.readers import count_tables, many_trees, pmml, privet_model, rpart, rules, scikit, weka
from privet.risk.readers.many_trees import ManyTrees
from privet.risk.statements import Statements
from privet.risk.tree import ENTROPY, GINI, SCIKIT, PublishedTree, Stopping
from privet.rows import read
from privet.text import read_text, shown

FORMATS = (
    "a privet model (JSON), a fitted tree, forest, extra trees or gradient boosting of scikit-learn, its export_text, "
    "a Weka J48 text, XGBoost's save_model or LightGBM's dump_model (JSON), an rpart or partykit text, PMML, a PART or "
    "JRip decision list, association rules (Apriori, arules, mlxtend), or a table of counts (.csv, .parquet)"
)
PICKLES = (".pkl", ".pickle", ".joblib", ".sav", ".skops")
CRITERIA = {
    "gini": GINI,
    "entropy": ENTROPY,
    "infogain": ENTROPY,
    "gain-ratio": None,
    "none": None,
}
SILENT = {
    "gain-ratio": "it chose by gain ratio, which does not order impurities",
    "none": "nothing is concluded from the choice of its splits, as was asked",
}


def read_published(
    source: Any, people: pd.DataFrame, sensitive: str, values: Sequence[object] | None = None
) -> PublishedTree | Model | ManyTrees | Statements:
    """A publication about some people: what `read_tree` reads, a table of counts, a decision list, or rules.

    A table is a frame, or a .csv or .parquet file, whose attributes are named like the columns of the people.
    """
    known = [str(name) for name in people.columns]
    if isinstance(source, Statements):
        return source
    if isinstance(source, str) and "\n" in source:
        return _from_words(source, len(people), sensitive, values)
    if isinstance(source, str | Path):
        path = Path(source)
        ending = path.suffix.lower()
        if ending in (".json", ".pmml", ".xml"):
            return _from_file(path, values)
        if ending == ".parquet":
            return count_tables.parse(pd.concat(list(read(path)), ignore_index=True), known, sensitive, values)
        text = _text(path)
        try:
            if ending == ".csv" and not rules.is_rules(text):
                return count_tables.parse(pd.concat(list(read(path)), ignore_index=True), known, sensitive, values)
            return _from_words(text, len(people), sensitive, values)
        except ModelError as error:
            raise ModelError(f"{shown(str(path), LONGEST_TEXT)}: {error}") from None
    if hasattr(source, "to_pandas") and hasattr(source, "columns"):
        source = source.to_pandas()
    if isinstance(source, pd.DataFrame):
        if {"antecedents", "consequents"} <= set(map(str, source.columns)):
            return _from_words(source.to_csv(index=False), len(people), sensitive, values)
        return count_tables.parse(source, known, sensitive, values)
    return read_tree(source, values)


def _from_words(
    text: str, people: int, sensitive: str, values: Sequence[object] | None
) -> PublishedTree | Model | ManyTrees | Statements:
    if rules.is_list(text):
        return rules.parse_list(text, values)
    if rules.is_rules(text):
        return rules.parse_rules(text, sensitive, people, values)
    return _from_text(text, values)


def read_tree(source: Any, values: Sequence[object] | None = None) -> PublishedTree | Model | ManyTrees:
    """A published tree: a file, a text, a fitted classifier, a privet model, or one that was read before.

    `values` are the public values of the sensitive attribute, in order; without them those are taken that the tree
    knows, and of a text those that some leaf predicts. A privet model of several trees or of tables is returned as it
    is: it has no leaves in which people could be.
    """
    if isinstance(source, PublishedTree | many_trees.Forest | many_trees.Boosted):
        return source
    if isinstance(source, str) and "\n" in source:
        return _from_text(source, values)
    if isinstance(source, str | Path):
        return _from_file(Path(source), values)
    if isinstance(source, Model):
        return _from_model(source, values)
    if isinstance(model := getattr(source, "model_", None), Model):
        return _from_model(model, values)
    return _from_scikit(source, values)


def _from_file(path: Path, values: Sequence[object] | None) -> PublishedTree | Model | ManyTrees:
    text = _text(path)
    try:
        return _from_text(text, values)
    except ModelError as error:
        raise ModelError(f"{shown(str(path), LONGEST_TEXT)}: {error}") from None


def _text(path: Path) -> str:
    where = shown(str(path), LONGEST_TEXT)
    try:
        text = read_text(path, LONGEST_MODEL, "utf-8-sig")
    except UnicodeDecodeError:
        if path.suffix.lower() in PICKLES:
            raise ModelError(
                f"'{where}' is not opened: a pickle runs code when it is read. Where you trust it, load it in Python "
                "and give privet.audit the classifier, or publish the text that export_text writes."
            ) from None
        raise ModelError(f"'{where}' is not UTF-8 text; a tree is {FORMATS}.") from None
    except OSError as error:
        raise ModelError(f"cannot read the tree '{where}' ({error.strerror}); check the path.") from None
    if text is None:
        raise ModelError(f"'{where}' has more than {LONGEST_MODEL} characters; publish a smaller tree.")
    return text


def _from_text(text: str, values: Sequence[object] | None) -> PublishedTree | Model | ManyTrees:
    if len(text) > LONGEST_MODEL:
        raise ModelError(f"the tree has more than {LONGEST_MODEL} characters; publish a smaller one.")
    if text.lstrip().startswith("{"):
        boosted = many_trees.from_json(text, values)
        return _from_model(Model.from_json(text), values) if boosted is None else boosted
    if pmml.is_pmml(text):
        return pmml.parse(text, values)
    if rpart.is_rpart(text):
        return rpart.parse(text, values)
    if scikit.is_export(text):
        return scikit.parse(text, values)
    if not weka.is_tree(text):
        raise ModelError(f"it is no model that is read; that is {FORMATS}.")
    return weka.parse(text, values)


def _from_model(model: Model, values: Sequence[object] | None) -> PublishedTree | Model:
    if isinstance(model, Ensemble) and len(model.trees) == 1:
        return privet_model.published(model, values)
    return model


def _from_scikit(source: Any, values: Sequence[object] | None) -> PublishedTree | ManyTrees:
    from sklearn.base import is_regressor
    from sklearn.ensemble import BaseEnsemble, ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.tree import DecisionTreeClassifier

    name = type(source).__name__
    if isinstance(source, DecisionTreeClassifier):
        return scikit.published(source, values)
    if isinstance(source, RandomForestClassifier | ExtraTreesClassifier):
        return many_trees.forest(source, values)
    if isinstance(source, GradientBoostingClassifier):
        return many_trees.gradient_boosting(source, values)
    if isinstance(source, Pipeline):
        raise ModelError("a Pipeline changes columns before its tree sees them; audit its last step on what it sees.")
    if hasattr(source, "_estimator_type") or hasattr(source, "__sklearn_tags__"):
        if is_regressor(source):
            raise ModelError(f"a {name} predicts numbers, not the values of a sensitive attribute; audit a classifier.")
        if isinstance(source, BaseEnsemble) or "Boosting" in name:
            raise ModelError(
                f"a {name} has many trees that are not read; those of RandomForestClassifier, ExtraTreesClassifier and "
                "GradientBoostingClassifier are."
            )
        if type(source).__module__.startswith("privet."):
            raise ModelError(f"the {name} is not fitted; fit it before it is audited.")
    raise ModelError(f"a {name} is no tree that can be audited; a tree is {FORMATS}.")


def criterion_of(tree: PublishedTree, asked: str | None) -> PublishedTree:
    """The tree with the criterion that chose its splits, as whoever asks for the audit knows it.

    >>> tree = weka.parse("age <= 30: no\\nage > 30: yes")
    >>> criterion_of(tree, None).criterion, criterion_of(tree, "infogain").criterion
    (None, 'entropy')
    """
    if asked is None:
        return tree
    if asked not in CRITERIA:
        raise ModelError(f"the criterion is one of {', '.join(CRITERIA)}, not '{asked}'.")
    criterion = CRITERIA[asked]
    recorded = tree.model.privacy.criterion if isinstance(tree.model, Ensemble) else ""
    if tree.epsilon is None and criterion and recorded and privet_model.CRITERIA.get(recorded) != criterion:
        raise ModelError(f"the model says that it chose its splits by {recorded}, not {asked}; leave that out.")
    if tree.epsilon is None:
        return replace(tree, criterion=criterion, silent=SILENT.get(asked, ""), is_set_aside=asked == "none")
    if criterion is None:
        return tree
    raise ModelError(f"the tree chose its splits with noise, so {asked} excludes nothing; leave the criterion out.")


def stopping_of(tree: PublishedTree, asked: str | None) -> PublishedTree:
    """The tree with what is known of where it stopped dividing: until leaves were pure, or nothing."""
    if asked is None:
        return tree
    if asked not in ("full", "none"):
        raise ModelError(f"stopping is full (grown until its leaves were pure) or none, not '{asked}'.")
    if asked == "full" and tree.source != SCIKIT:
        raise ModelError("stopping is about trees of scikit-learn; leave it out.")
    return replace(tree, stopping=Stopping() if asked == "full" else None)
