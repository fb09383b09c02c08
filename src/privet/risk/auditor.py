"""`privet.audit`: a published model, the quasi-identifiers of everybody, and what follows for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import DataError, ModelError
from privet.kernel import number_of, text_of
from privet.models.epsilon import belief, factor, percent
from privet.models.model import Model
from privet.risk.constraints import Counted, choices_of, silence
from privet.risk.findings import ALONE, MAXIMUM, WORLDS, Audit
from privet.risk.leaf_shares import closed_form, tilt_of
from privet.risk.maximum_entropy import maximum_entropy
from privet.risk.measures import exposures, measure
from privet.risk.people import Belief, People, marginal_only, uniform
from privet.risk.predictions import predictions
from privet.risk.publication import COUNTS, LABELS, Publication, marginal_of
from privet.risk.readers import criterion_of, read_tree, stopping_of
from privet.risk.remedies import Refit, remedies_for
from privet.risk.tree import Floats, PublishedTree
from privet.risk.worlds import possible_worlds
from privet.rows import read

UNKNOWN = "unknown"

Progress = Callable[[str], None]


def audit(
    tree: Any,
    qi: Any,
    *,
    sensitive: str,
    values: Sequence[Any] | None = None,
    published: str = "auto",
    criterion: str | None = None,
    stopping: str | None = None,
    truth: Any = None,
    threshold: float = 0.8,
    columns: Sequence[str] | None = None,
    marginal: Mapping[str, float] | None = None,
    training: Any = None,
    worlds: bool = True,
    remedies: bool = True,
    refit: Refit | None = None,
    top: int = 20,
    seed: int = 0,
    name: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """What a published model tells about the people of a table.

    `tree` is a privet model or its file, a fitted scikit-learn tree, or the text of one: `export_text`, or Weka's J48.
    `qi` is what an adversary knows of everybody: a frame, or a .csv or .parquet file; `columns` picks the
    quasi-identifiers, else all but the sensitive column.

    `published` says which numbers went out with the tree: "labels", "rates" (the error of each leaf), "counts" or
    "auto", all that it has; `marginal` the shares of the values, if they were published. `criterion` is what chose the
    splits: "gini", "entropy" or "none"; it is known of privet's and scikit-learn's own. `stopping` says of a text of
    scikit-learn whether it was grown until its leaves were pure ("full") or not ("none"). `values` lists the public
    values of the sensitive attribute. `training` is None if the tree was grown on the whole table, the name of the
    column that says which rows, or "unknown". `truth` holds the true values, for the owner: a frame or file with the
    sensitive column, or the values themselves, row by row. `refit(epsilon)` grows a private model to try remedies with;
    `worlds=False` leaves out possible worlds, `remedies=False` the remedies.
    """
    say = progress or (lambda text: None)
    number = number_of(threshold)
    if number is None or not 0 < number <= 1:
        raise DataError(f"the threshold is a probability above 0 and at most 1, not {threshold}.")
    threshold = number
    if top < 0:
        raise DataError(f"top is how many of the most exposed to name, 0 or more, not {top}.")
    say("reading")
    found = read_tree(tree, values)
    frame = _frame(qi, "the table of quasi-identifiers")
    answers = _truth(truth, frame, sensitive)
    frame, answers, outside = _trained(frame, answers, training)
    known = _columns(frame, columns, sensitive, training)
    if isinstance(found, Model):
        _same_target(found, sensitive)
        people = People.of(frame, known)
        texts = found.domain.target_column.texts
        belief = predictions(found, frame.iloc[_first(people)])
        publication, counted = None, None
        counts = _counts(people, answers, texts, sensitive)
    else:
        _same_target(found.model, sensitive)
        found = stopping_of(criterion_of(found, criterion), stopping)
        frame = _named(found, frame, known)
        people = People.of(frame, known)
        texts = found.values
        counts = _counts(people, answers, texts, sensitive)
        given = None if marginal is None else marginal_of(marginal, texts)
        publication = Publication.of(found, people, published, given, _is_unknown(training))
    beliefs: dict[str, Belief] = {"uniform": uniform(people, len(texts))}
    shares = _marginal(publication, marginal, texts, counts)
    if shares is not None:
        beliefs["marginal"] = marginal_only(people, shares)
    named = name or _name(tree)
    if publication is None:
        beliefs["prediction"] = belief
        exposed: tuple[Any, ...] = ()
        notes: tuple[str, ...] = belief.notes
    else:
        choices = choices_of(publication)
        counted = Counted.of(publication, choices)
        alone = Belief(ALONE, closed_form(publication, tilt_of(publication)))
        say(f"maximum entropy over {len(people)} profiles")
        beliefs[MAXIMUM] = maximum_entropy(publication, choices, seed=seed, progress=say)
        if beliefs[MAXIMUM].facts.get("active"):
            beliefs[ALONE] = alone
        if worlds:
            say("counting possible worlds")
            beliefs[WORLDS] = possible_worlds(publication, choices, seed=seed, progress=say)
        notes = _notes(publication, counted, outside, sensitive, frame, truth)
    overall = {
        each: measure(people, belief, threshold=threshold, truth=counts, marginal=shares)
        for each, belief in beliefs.items()
    }
    if publication is not None:
        seen = {each: beliefs[each] for each in (MAXIMUM, WORLDS) if each in beliefs}
        base = beliefs.get("marginal", beliefs["uniform"]).shares
        exposed = exposures(publication, seen, alone.shares, base, choices, top)
    result = Audit(
        name=named,
        sensitive=sensitive,
        values=texts,
        people=people,
        beliefs=beliefs,
        overall=overall,
        threshold=threshold,
        exposures=exposed,
        assumptions=_assumptions(publication, found, known, training),
        notes=(*_note_on_rows(found), *notes),
        counted=counted,
        publication=publication,
        truth=counts,
        epsilon=_epsilon(found),
    )
    if not remedies or publication is None:
        return result
    say("looking for remedies")
    return remedies_for(result, refit=refit, seed=seed, progress=say)


# -- what comes in ------------------------------------------------------------------------------


def _frame(source: Any, what: str) -> pd.DataFrame:
    if isinstance(source, str | Path):
        source = pd.concat(list(read(source)), ignore_index=True)
    elif hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if not isinstance(source, pd.DataFrame):
        raise DataError(f"{what} is a frame, or a .csv or .parquet file, not a {type(source).__name__}.")
    names = pd.Index([str(name) for name in source.columns])
    twice = names[names.duplicated()]
    if len(twice):
        raise DataError(f"{what} has several columns '{twice[0]}'; keep one.")
    if not len(source):
        raise DataError(f"{what} has no rows, so there is nobody to audit.")
    return source.set_axis(names, axis=1).reset_index(drop=True)


def _truth(truth: Any, frame: pd.DataFrame, sensitive: str) -> pd.Series[Any] | None:
    """The true values, a row each."""
    if truth is None:
        return None
    if isinstance(truth, str | Path | pd.DataFrame) or (hasattr(truth, "to_pandas") and hasattr(truth, "columns")):
        table = _frame(truth, "the table of true values")
        if sensitive not in table.columns:
            raise DataError(f"the table of true values has no column '{sensitive}'.")
        truth = table[sensitive]
    if not isinstance(truth, Iterable):
        raise DataError(f"the truth is a frame, a file or the true values row by row, not a {type(truth).__name__}.")
    series = pd.Series(list(truth), dtype=object)
    if len(series) != len(frame):
        raise DataError(f"there are {len(series)} true values for {len(frame)} people; both are in the same order.")
    return series


def _trained(
    frame: pd.DataFrame, answers: pd.Series[Any] | None, training: Any
) -> tuple[pd.DataFrame, pd.Series[Any] | None, int]:
    """The rows that the tree was grown on, where that is known, and how many others there are."""
    if training is None or _is_unknown(training):
        return frame, answers, 0
    if isinstance(training, str):
        if training not in frame.columns:
            raise DataError(f"training names '{training}', which is not a column of the table; or it is 'unknown'.")
        what, said = f"the column '{training}'", frame[training]
    else:
        what, said = "training", training
    marks = [str(text_of(value)).strip().lower() for value in said]
    odd = next((mark for mark in marks if mark not in _MARKS), None)
    if odd is not None:
        raise DataError(f"{what} says '{odd}' of a row; it says yes or no, true or false, 1 or 0.")
    mask = np.array([_MARKS[mark] for mark in marks])
    if len(mask) != len(frame):
        raise DataError(f"training has {len(mask)} marks for {len(frame)} people; it has one for each.")
    if not mask.any():
        raise DataError("training leaves nobody: the tree was grown on no row of the table.")
    kept = None if answers is None else answers[mask].reset_index(drop=True)
    return frame[mask].reset_index(drop=True), kept, int((~mask).sum())


def _is_unknown(training: Any) -> bool:
    return isinstance(training, str) and training == UNKNOWN


_MARKS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _columns(frame: pd.DataFrame, columns: Sequence[str] | None, sensitive: str, training: Any) -> list[str]:
    if columns is None:
        marks = training if isinstance(training, str) else None
        return [str(name) for name in frame.columns if name not in (sensitive, marks)]
    columns = [columns] if isinstance(columns, str) else columns
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(f"the table has no column '{missing[0]}'.")
    if sensitive in columns:
        raise DataError(f"'{sensitive}' is the sensitive column; it cannot be a quasi-identifier too.")
    return list(dict.fromkeys(columns))


def _named(tree: PublishedTree, frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table for a tree that knows its columns by number alone."""
    names = tree.features or tree.columns
    if names and all(name.startswith("feature_") for name in names) and not set(names) & set(columns):
        raise DataError(
            f"the tree calls its columns {names[0]}, …: grow it on a frame with named columns, export it with "
            "feature_names, or name the columns of the table so."
        )
    return frame


def _first(people: People) -> Any:
    """A row for each profile."""
    return np.unique(people.profile, return_index=True)[1]


def _counts(people: People, answers: pd.Series[Any] | None, texts: tuple[str, ...], sensitive: str) -> Floats | None:
    """The true values counted [profile, value]."""
    if answers is None:
        return None
    position = {text: at for at, text in enumerate(texts)}
    codes = [position.get(str(text_of(value)), -1) for value in answers]
    if -1 in codes:
        odd = answers[codes.index(-1)]
        raise DataError(f"a true value is '{odd}', which is not among the public values of '{sensitive}'.")
    counts = np.zeros((len(people), len(texts)))
    np.add.at(counts, (people.profile, np.array(codes)), 1)
    return counts


def _same_target(model: Any, sensitive: str) -> None:
    target = getattr(getattr(model, "domain", None), "target", None)
    if target is not None and target != sensitive:
        raise ModelError(
            f"the model predicts '{target}', and the audit asks about '{sensitive}'; a model tells about its target."
        )


# -- what is said with it -----------------------------------------------------------------------


def _marginal(
    publication: Publication | None, given: Mapping[str, float] | None, texts: tuple[str, ...], counts: Floats | None
) -> Floats | None:
    """The shares of the values among all people: published, or implied by counts, or the owner's."""
    if given is not None:
        return marginal_of(given, texts)
    if publication is not None and publication.level == COUNTS and not publication.noisy:
        total = np.sum([publication.tree.nodes[leaf].counts or () for leaf in publication.tree.leaves], axis=0)
        if total.sum() > 0:
            return np.asarray(total / total.sum(), dtype=np.float64)
    return None if counts is None else np.asarray(counts.sum(axis=0) / counts.sum())


def _epsilon(found: PublishedTree | Model) -> float | None:
    if isinstance(found, Model):
        return float(found.privacy.epsilon)
    return None if found.epsilon is None else float(found.epsilon)


def _name(tree: Any) -> str:
    if isinstance(tree, Path) or (isinstance(tree, str) and "\n" not in tree):
        return Path(tree).name
    return type(tree).__name__ if not isinstance(tree, str) else "the tree"


def _notes(
    publication: Publication,
    counted: Counted,
    outside: int,
    sensitive: str,
    frame: pd.DataFrame,
    truth: Any,
) -> tuple[str, ...]:
    notes = []
    lost = int(publication.people.sizes[publication.leaf < 0].sum())
    if lost:
        notes.append(f"{lost} people have values for which the tree has no leaf; it tells nothing about them.")
    if outside:
        notes.append(f"{outside} people of the table were not among the rows the tree was grown on; they are left out.")
    if counted.silence:
        notes.append(f"Internal nodes say nothing: {counted.silence}.")
    if publication.fractional:
        notes.append("Leaves have fractional sizes: rates are used, sizes cannot be compared with the table.")
    if publication.noisy and publication.level != COUNTS:
        notes.append(
            "The leaves have a label alone, chosen with noise: it excludes nothing, and how likely it makes a value is "
            "not computed; whoever does that knows more than the adversaries here."
        )
    if publication.sampled and publication.level == LABELS:
        notes.append("Labels do not say how many rows there were: everybody is taken to be among them.")
    if sensitive in frame.columns and truth is None:
        notes.append(
            f"The table has the column '{sensitive}'; nobody looked at it. To compare, give it as the truth (--truth "
            "on the command line)."
        )
    return tuple(notes)


def _note_on_rows(found: PublishedTree | Model) -> tuple[str, ...]:
    """Of a model whose domain names a person: that the audit counts rows, which are not persons there."""
    privacy = getattr(found if isinstance(found, Model) else found.model, "privacy", None)
    if privacy is None or not privacy.person:
        return ()
    most = privacy.rows_per_person
    return (
        f"Every row counts as one of the people here. The model was grown on a table whose '{privacy.person}' says "
        f"whose row it is, and at most {most} row{'s' * (most != 1)} of a person counted: whoever has several rows in "
        "the table that is audited is counted once for each.",
    )


def _assumptions(
    publication: Publication | None, found: PublishedTree | Model, columns: Sequence[str], training: Any
) -> tuple[str, ...]:
    """What the adversary is taken to know: the report is about this adversary and no stronger one."""
    said = [f"The adversary knows {', '.join(columns[:12])}{', …' * (len(columns) > 12)} of everybody in the table."]
    if training is None:
        said.append("The model was grown on exactly these people, and the adversary knows that.")
    elif _is_unknown(training):
        said.append("The model was grown on an unknown part of these people; any part is as likely as any other.")
    else:
        said.append("The adversary knows which of these people the model was grown on.")
    said.append("The sensitive attribute has the public values listed here, and no others.")
    epsilon = _epsilon(found)
    if epsilon is not None:
        said.append(
            f"The model is private with epsilon {epsilon:g}: whatever the adversary knows besides, one person's own "
            f"row changes his odds of one value of theirs against another by at most {factor(2 * epsilon)} times, from "
            f"50% to at most about {percent(belief(0.5, 2 * epsilon))}. What is shown beyond that he would believe of "
            "this person without their row too."
        )
    if publication is not None:
        what = {"labels": "labels", "rates": "labels and error rates", "counts": "class counts"}[publication.level]
        noisy = "noisy " if publication.noisy else ""
        said.append(f"Published: the tree, and the {noisy}{what} of its leaves{_also(publication)}.")
        if publication.tree.features is None and not silence(publication):
            said.append("Every split could have been by any of these columns, and was the best of them.")
        said.append(
            "More information can bring maximum entropy further from the truth: it is not monotone in what is known."
        )
    return tuple(said)


def _also(publication: Publication) -> str:
    return "" if publication.marginal is None else ", and the shares of the values among all people"
