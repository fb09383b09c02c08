"""`privet.audit`: a published model, the quasi-identifiers of everybody, and what follows for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privet.errors import DataError, ModelError
from privet.kernel import number_of, text_of
from privet.models.epsilon import belief, factor, percent
from privet.models.model import Model
from privet.risk.constraints import Counted, choices_of, closed_form, silence, tilt_of
from privet.risk.disclosure import OwnRow, own_rows, predicted_rows
from privet.risk.findings import ALONE, DISCLOSURE, MAXIMUM, POSTERIOR, WORLDS, Audit, but_for
from privet.risk.maximum_entropy import maximum_entropy
from privet.risk.measures import exposures, measure
from privet.risk.people import Belief, People, marginal_only, uniform
from privet.risk.publication import COUNTS, LABELS, RATES, Publication, marginal_of
from privet.risk.readers import criterion_of, read_published, stopping_of
from privet.risk.readers.many_trees import Boosted, Forest
from privet.risk.remedies import Refit, remedies_for, withhold
from privet.risk.several import ADVERSARY, View, counts_of, together
from privet.risk.statements import Statements, exposed, follow, of_tree, tallied
from privet.risk.tallies import Tally
from privet.risk.tree import Floats, Mask, PublishedTree
from privet.risk.worlds import possible_worlds
from privet.rows import read

UNKNOWN = "unknown"
THRESHOLDS = {DISCLOSURE: 0.1, POSTERIOR: 0.8}

Progress = Callable[[str], None]


@dataclass(frozen=True)
class AuditOptions:
    """What was published, what the adversary knows, and what is measured.

    Parameters
    ----------
    measure : {"disclosure", "posterior"}
        What headlines, thresholds and remedies follow: what a person's own row added, or the largest posterior of an
        adversary (Zhu and Du 2010).
    threshold : float, optional
        From where on a person counts; 0.1 of disclosure, 0.8 of a posterior.
    values : sequence, optional
        The public values of the sensitive attribute; else those that the model knows.
    published : {"auto", "labels", "rates", "counts"}
        Which numbers of leaves went out with the tree; "auto" is all that it has.
    marginal : mapping of value to share, optional
        The shares of the values, where they were published too.
    baseline : mapping of value to share, optional
        How frequent each value is to somebody who has not seen the model; else as the model or the truth has it.
    criterion : {"gini", "entropy", "gain-ratio", "none"}, optional
        What chose the splits; known of privet's and scikit-learn's own trees.
    stopping : {"full", "none"}, optional
        Was a text of scikit-learn grown until its leaves were pure?
    columns : sequence of str, optional
        The quasi-identifiers; else all columns but the sensitive one.
    training : str or sequence, optional
        The column that says which rows the tree was grown on, or those marks, or "unknown"; else all rows.
    share : float, optional
        With training "unknown": the share of the people whose rows were drawn, each as likely as any other. Leaves that
        say how many rows they have are taken at their word.
    worlds, remedies : bool, default True
        Count possible worlds; try what would help.
    names : bool, default False
        Show quasi-identifiers of the people concerned in reports, and not only the leaves they are in.
    top : int, default 20
        How many of the most exposed to list.
    seed : int, default 0
    """

    measure: str = DISCLOSURE
    threshold: float | None = None
    values: Sequence[Any] | None = None
    published: str = "auto"
    marginal: Mapping[str, float] | None = None
    baseline: Mapping[str, float] | None = None
    criterion: str | None = None
    stopping: str | None = None
    columns: Sequence[str] | None = None
    training: Any = None
    share: float | None = None
    worlds: bool = True
    remedies: bool = True
    names: bool = False
    top: int = 20
    seed: int = 0

    def checked(self) -> float:
        """Refuse what is no option, and return the threshold."""
        if self.measure not in THRESHOLDS:
            raise DataError(f"the measure is {' or '.join(THRESHOLDS)}, not '{self.measure}'.")
        number = THRESHOLDS[self.measure] if self.threshold is None else number_of(self.threshold)
        if number is None or not 0 < number <= 1:
            raise DataError(f"the threshold is a probability above 0 and at most 1, not {self.threshold}.")
        if self.top < 0:
            raise DataError(f"top is how many of the most exposed to name, 0 or more, not {self.top}.")
        if self.share is not None:
            part = number_of(self.share)
            if part is None or not 0 < part <= 1 or not _is_unknown(self.training):
                raise DataError("share is the part of people, above 0 and at most 1, of training that is unknown.")
        return number


def audit(
    tree: Any,
    qi: Any,
    *,
    sensitive: str,
    truth: Any = None,
    refit: Refit | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    options: AuditOptions | None = None,
    **changes: Any,
) -> Audit:
    """Return what a published model tells about the people of a table.

    Parameters
    ----------
    tree : model, classifier, str or Path
        A privet model or its file, a fitted scikit-learn tree, or the text of one: `export_text`, or Weka's J48.
    qi : frame, str or Path
        What an adversary knows of everybody: a frame, or a .csv or .parquet file.
    sensitive : str
        The column that the model predicts.
    truth : frame, str, Path or sequence, optional
        The true values, for the owner: a frame or file with the sensitive column, or the values row by row.
    refit : callable, optional
        Grows a private model with a given epsilon, to try remedies with.
    name : str, optional
        What reports call the model.
    progress : callable, optional
        Is told what is being done.
    options : AuditOptions, optional
    **changes
        Fields of the options, each by its name: `audit(tree, qi, sensitive="income", measure="posterior")`.

    Returns
    -------
    Audit

    Raises
    ------
    DataError
        If the table, the truth or an option cannot be used.
    ModelError
        If the model cannot be read or audited.
    """
    try:
        asked = replace(options or AuditOptions(), **changes)
    except TypeError:
        known = {each.name for each in fields(AuditOptions)}
        odd = next(name for name in changes if name not in known)
        raise DataError(f"audit has no option '{odd}'; it has {', '.join(sorted(known))}.") from None
    say = progress or (lambda text: None)
    threshold = asked.checked()
    say("reading")
    frame = _frame(qi, "the table of quasi-identifiers")
    if isinstance(tree, list | tuple):
        return _audit_together(tree, frame, sensitive, truth, name, asked, threshold)
    found = read_published(tree, frame, sensitive, asked.values)
    if isinstance(found, Statements):
        return _audit_statements([found], frame, sensitive, truth, name or _name(tree), asked, threshold)
    if isinstance(found, Forest | Boosted):
        return _audit_many(found, frame, sensitive, truth, name or _name(tree), asked, threshold)
    answers = _truth(truth, frame, sensitive)
    frame, answers, outside = _trained(frame, answers, asked.training)
    columns = _columns(frame, asked.columns, sensitive, asked.training)
    publication: Publication | None = None
    if isinstance(found, Model):
        _same_target(found, sensitive)
        people = People.of(frame, columns)
        texts = found.domain.target_column.texts
        predicted = predictions(found, frame.iloc[_first(people)])
    else:
        _same_target(found.model, sensitive)
        found = stopping_of(criterion_of(found, asked.criterion), asked.stopping)
        frame = _named(found, frame, columns)
        people = People.of(frame, columns)
        texts = found.values
        given = None if asked.marginal is None else marginal_of(asked.marginal, texts)
        unknown = _is_unknown(asked.training)
        publication = Publication.of(found, people, asked.published, given, unknown, asked.share)
        found = publication.tree
    counts = _counts(people, answers, texts, sensitive)
    beliefs: dict[str, Belief] = {"uniform": uniform(people, len(texts))}
    shares = _marginal(publication, asked.baseline or asked.marginal, texts, counts)
    if shares is not None:
        beliefs["marginal"] = marginal_only(people, shares)
    choices = () if publication is None else choices_of(publication)
    if publication is None:
        beliefs["prediction"] = predicted
        base = shares if shares is not None else people.sizes @ predicted.shares / people.total
        own = predicted_rows(predicted, people.sizes.astype(np.float64), base, _epsilon(found) or 0.0, counts)
        notes: tuple[str, ...] = predicted.notes
    else:
        say(f"maximum entropy over {len(people)} profiles")
        beliefs[MAXIMUM] = maximum_entropy(publication, choices, seed=asked.seed, progress=say)
        alone = closed_form(publication, tilt_of(publication))
        if beliefs[MAXIMUM].facts.get("active"):
            beliefs[ALONE] = Belief(ALONE, alone)
        if asked.worlds:
            say("counting possible worlds")
            beliefs[WORLDS] = possible_worlds(publication, choices, seed=asked.seed, progress=say)
        seen = {each: beliefs[each] for each in (MAXIMUM, WORLDS) if each in beliefs}
        base = shares if shares is not None else _told_shares(publication)
        own = own_rows(publication, seen, base, counts)
        notes = _notes(publication, Counted.of(publication, choices), outside, sensitive, frame, truth)
    certain = threshold if asked.measure == POSTERIOR else THRESHOLDS[POSTERIOR]
    overall = {
        each: measure(people, belief, threshold=certain, truth=counts, marginal=shares)
        for each, belief in beliefs.items()
    }
    result = Audit(
        name=name or _name(tree),
        sensitive=sensitive,
        values=texts,
        people=people,
        beliefs=beliefs,
        overall=overall,
        own=own,
        measure=asked.measure,
        threshold=threshold,
        assumptions=_assumptions(publication, found, columns, asked.training),
        notes=(*_note_on_rows(found), *notes),
        names=asked.names,
        counted=None if publication is None else Counted.of(publication, choices),
        publication=publication,
        truth=counts,
        epsilon=_epsilon(found),
        delta=_delta(found),
    )
    if publication is not None:
        listed = exposures(publication, seen, alone, result.ranked, choices, asked.top)
        result = replace(result, exposures=listed)
    if not asked.remedies or publication is None:
        return result
    say("looking for remedies")
    return remedies_for(result, refit=refit, seed=asked.seed, progress=say)


def _audit_many(
    found: Forest | Boosted,
    frame: pd.DataFrame,
    sensitive: str,
    truth: Any,
    name: str,
    asked: AuditOptions,
    threshold: float,
) -> Audit:
    """The audit of a forest or of boosted trees: every tree is a view of the same people."""
    answers = _truth(truth, frame, sensitive)
    frame, answers, _ = _trained(frame, answers, asked.training)
    columns = _columns(frame, asked.columns, sensitive, asked.training)
    people = People.of(frame, columns).one_by_one()
    views = found.views(frame)
    counts = _counts(people, answers, found.values, sensitive)
    base = _baseline(views, asked, found.values, counts)
    return _seen(
        found.values, people, views, found.without(frame, views, base), base, counts, sensitive, name, asked, threshold
    )


def _audit_together(
    trees: Sequence[Any],
    frame: pd.DataFrame,
    sensitive: str,
    truth: Any,
    name: str | None,
    asked: AuditOptions,
    threshold: float,
) -> Audit:
    """The audit of several publications about the same people; of trees `training` then has an entry for each."""
    if not trees:
        raise DataError("no tree was given; give at least one.")
    published = [read_published(tree, frame, sensitive, asked.values) for tree in trees]
    if any(isinstance(each, Statements) for each in published):
        some = _as_statements(published, frame, sensitive, asked)
        names = name or f"{len(some)} publications together"
        return _audit_statements(some, frame, sensitive, truth, names, asked, threshold)
    answers = _truth(truth, frame, sensitive)
    marks = asked.training if isinstance(asked.training, list | tuple) else [asked.training] * len(trees)
    if len(marks) != len(trees):
        raise DataError(
            f"training has {len(marks)} entries for {len(trees)} trees; it has one for each, None for all rows."
        )
    if any(_is_unknown(each) for each in marks):
        raise DataError("trees are held against each other where it is known which rows each was grown on.")
    own = [each for each in marks if isinstance(each, str)]
    hidden = [name for name in frame.columns if name not in own]
    columns = _columns(frame[hidden], asked.columns, sensitive, None)
    views, texts = [], None
    for each, mark in zip(published, marks, strict=True):
        if not isinstance(each, PublishedTree):
            raise ModelError("of several models, single trees are held against each other.")
        if texts is not None and each.values != texts:
            raise ModelError("the trees have different values; list the public values of the sensitive attribute.")
        texts = each.values
        inside = np.ones(len(frame), dtype=np.bool_) if mark is None else _marked(frame, mark)
        views.append(_view(each, frame, columns, inside))
    assert texts is not None
    people = People.of(frame, columns).one_by_one()
    counts = _counts(people, answers, texts, sensitive)
    base = _baseline(views, asked, texts, counts)
    names = name or f"{len(trees)} trees together"
    tallies = [
        Tally(inside, len(inside), totals, totals)
        for view in views
        for leaf in np.unique(view.group[view.group >= 0]).tolist()
        for inside, totals in [(np.flatnonzero(view.group == leaf), view.totals[leaf].astype(np.int64))]
    ]
    found = follow(tallies, ("",) * len(tallies), people, base, counts, asked.seed)
    belief = replace(found.belief, adversary=ADVERSARY)
    return _together(texts, people, belief, found.own, base, counts, sensitive, names, asked, threshold)


def _as_statements(
    published: Sequence[Any], frame: pd.DataFrame, sensitive: str, asked: AuditOptions
) -> list[Statements]:
    """Tables, rules and trees as statements about the same people."""
    if asked.training is not None:
        raise DataError("tables and rules are about everybody in the table; leave training out.")
    people = People.of(frame, _columns(frame, asked.columns, sensitive, None))
    found = []
    for each in published:
        if isinstance(each, PublishedTree):
            found.append(of_tree(Publication.of(each, people)))
        elif isinstance(each, Statements):
            found.append(each)
        else:
            raise ModelError("tables and rules are held against each other and against single trees, not more.")
    if len({each.values for each in found}) > 1:
        raise ModelError(
            "the publications have different values; list the public values of the sensitive attribute (values)."
        )
    return found


def _audit_statements(
    several: Sequence[Statements],
    frame: pd.DataFrame,
    sensitive: str,
    truth: Any,
    name: str,
    asked: AuditOptions,
    threshold: float,
) -> Audit:
    """The audit of published tables and rules, alone or together."""
    if asked.training is not None:
        raise DataError("tables and rules are about everybody in the table; leave training out.")
    people = People.of(frame, _columns(frame, asked.columns, sensitive, None))
    texts = several[0].values
    counts = _counts(people, _truth(truth, frame, sensitive), texts, sensitive)
    given = asked.baseline or asked.marginal
    base = None if given is None else marginal_of(given, texts)
    found = follow(*tallied(several, people), people, base, counts, asked.seed)
    shares = found.own.baseline[0]
    beliefs = {
        "uniform": uniform(people, len(texts)),
        "marginal": marginal_only(people, shares),
        WORLDS: found.belief,
    }
    certain = threshold if asked.measure == POSTERIOR else THRESHOLDS[POSTERIOR]
    known = ", ".join(people.names[:12]) + ", …" * (len(people.names) > 12)
    many = sum(len(each.said) for each in several)
    result = Audit(
        name=name,
        sensitive=sensitive,
        values=texts,
        people=people,
        beliefs=beliefs,
        overall={
            each: measure(people, some, threshold=certain, truth=counts, marginal=shares)
            for each, some in beliefs.items()
        },
        own=found.own,
        measure=asked.measure,
        threshold=threshold,
        assumptions=(
            f"The adversary knows {known} of everybody in the table, and that these are the people it is about.",
            "The sensitive attribute has the public values listed here, and no others.",
            f"Published: {' and '.join(dict.fromkeys(each.source for each in several))}, {many:,} groups of people.",
        ),
        notes=tuple(note for each in several for note in each.notes),
        names=asked.names,
        truth=counts,
    )
    result = replace(result, exposures=exposed(found, people, texts, result.scores, asked.top))
    return withhold(result, several, found, asked.seed) if asked.remedies else result


def _view(tree: PublishedTree, frame: pd.DataFrame, columns: Sequence[str], inside: Any) -> View:
    """What a tree without noise says of the people it was grown on: how many of a leaf have each value."""
    people = People.of(frame[inside], columns)
    publication = Publication.of(tree, people)
    totals = counts_of(publication)
    group = np.full(len(frame), -1, dtype=np.int64)
    group[inside] = publication.leaf[people.profile]
    return View(group, totals)


def _baseline(views: Sequence[View], asked: AuditOptions, texts: tuple[str, ...], counts: Floats | None) -> Floats:
    """The shares of the values: as they were given, or as the view of most people has them."""
    given = asked.baseline or asked.marginal
    if given is not None:
        return marginal_of(given, texts)
    if counts is not None:
        return np.asarray(counts.sum(axis=0) / counts.sum())
    widest = max(views, key=lambda view: int((view.group >= 0).sum()))
    used = np.unique(widest.group[widest.group >= 0])
    total = widest.totals[used].sum(axis=0)
    return np.asarray(total / total.sum())


def _seen(
    texts: tuple[str, ...],
    people: People,
    views: Sequence[View],
    without: Floats,
    base: Floats,
    counts: Floats | None,
    sensitive: str,
    name: str,
    asked: AuditOptions,
    threshold: float,
) -> Audit:
    """The audit of several views of the same people, in which a row may count more than once."""
    belief = together(views, len(people), len(texts))
    own = OwnRow(
        np.tile(base, (len(people), 1)),
        without,
        np.maximum(belief.shares - without, 0.0),
        belief.shares * people.sizes[:, None] if counts is None else counts,
        counts is not None,
    )
    note = (
        "Without the own row, too, several trees together tell more than each alone; what own rows add is told from "
        "the tree that says most of their value without them."
    )
    return _together(texts, people, belief, own, base, counts, sensitive, name, asked, threshold, (note,))


def _together(
    texts: tuple[str, ...],
    people: People,
    belief: Belief,
    own: OwnRow,
    base: Floats,
    counts: Floats | None,
    sensitive: str,
    name: str,
    asked: AuditOptions,
    threshold: float,
    notes: tuple[str, ...] = (),
) -> Audit:
    """The audit of somebody who holds several trees of the same people against each other."""
    beliefs = {
        "uniform": uniform(people, len(texts)),
        "marginal": marginal_only(people, base),
        belief.adversary: belief,
    }
    certain = threshold if asked.measure == POSTERIOR else THRESHOLDS[POSTERIOR]
    known = ", ".join(people.names[:12]) + ", …" * (len(people.names) > 12)
    return Audit(
        name=name,
        sensitive=sensitive,
        values=texts,
        people=people,
        beliefs=beliefs,
        overall={
            each: measure(people, some, threshold=certain, truth=counts, marginal=base)
            for each, some in beliefs.items()
        },
        own=own,
        measure=asked.measure,
        threshold=threshold,
        assumptions=(
            f"The adversary knows {known} of everybody in the table, and on which rows each part was grown.",
            "The sensitive attribute has the public values listed here, and no others.",
        ),
        notes=notes,
        names=asked.names,
        truth=counts,
    )


def _told_shares(publication: Publication) -> Floats:
    """The shares of the values as noisy counts have them; even ones where the leaves say labels alone."""
    counts = [publication.tree.nodes[leaf].counts for leaf in publication.tree.leaves]
    if publication.level == COUNTS and all(each is not None for each in counts):
        total = np.maximum(np.sum([each for each in counts if each is not None], axis=0), 0.0)
        if total.sum() > 0:
            return np.asarray(total / total.sum())
    if publication.level == RATES and publication.classes == 2 and not publication.noisy:  # rates of two are counts
        found = np.zeros(2)
        for leaf in publication.leaves:
            right = publication.share(leaf) * int(publication.sizes[leaf])
            found[publication.label(leaf)] += right
            found[1 - publication.label(leaf)] += int(publication.sizes[leaf]) - right
        return np.asarray(found / found.sum())
    return np.full(publication.classes, 1 / publication.classes)


def predictions(model: Model, profiles: Any) -> Belief:
    """What an adversary believes of each profile who takes the model at its word, one row of the frame for each.

    Of a private model no more is certain: its numbers are noisy and each draws on many people. The counts of a forest
    or of tables without noise are several views of the same rows, which together may determine them.
    """
    if not model.private:
        raise ModelError(
            f"the model consists of {model.summary} and is not private: its parts are several views of the same rows, "
            "and what they determine together is not computed; audit one tree, or a private model."
        )
    note = (
        f"The model consists of {model.summary}: it is audited by what it predicts for each profile, which is what an "
        "adversary believes who takes it at its word."
    )
    return Belief("prediction", np.asarray(model.predict_proba(profiles)), False, (note,))


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
    mask = _marked(frame, training)
    kept = None if answers is None else answers[mask].reset_index(drop=True)
    return frame[mask].reset_index(drop=True), kept, int((~mask).sum())


def _marked(frame: pd.DataFrame, training: Any) -> Mask:
    """Which rows a column, or marks row by row, say a tree was grown on."""
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
    return mask


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


def _delta(found: PublishedTree | Model) -> float | None:
    delta = getattr(getattr(found if isinstance(found, Model) else found.model, "privacy", None), "delta", None)
    return None if delta is None else float(delta)


def _name(tree: Any) -> str:
    if isinstance(tree, Path) or (isinstance(tree, str) and "\n" not in tree):
        return Path(tree).name
    if isinstance(tree, Model):
        return "the model"
    if isinstance(tree, pd.DataFrame):
        return "the table"
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
    if publication.sampled and publication.level == LABELS and publication.drawn_share is None:
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
    elif _is_unknown(training) and publication is not None and publication.drawn_share is not None:
        part = f"{publication.drawn_share:.3g}"
        said.append(f"The model was grown on an unknown {part} of these people; any part is as likely as any other.")
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
            f"50% to at most about {percent(belief(0.5, 2 * epsilon))}{but_for(_delta(found))}. What is shown beyond "
            "that he would believe of this person without their row too."
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
