"""Parts of a protected table: every question works on all of them at once.

One charge, one query to the engine, one release for each part. A table is a partition with one part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from privet.errors import DataError, NotPrivate, PrivacyError, QuestionError
from privet.kernel import answers, conditions
from privet.kernel.accounting import Scope, as_epsilon
from privet.kernel.additive import RESIDUAL_GRID, AdditiveModel
from privet.kernel.column import Nominal, decimal_text
from privet.kernel.criteria import Criterion, GainRatio
from privet.kernel.criteria import criterion as named_criterion
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import MAX_CELLS, MAX_RELEASED, CorrectQuery, ResidualQuery, cell_count
from privet.kernel.limits import whole_of
from privet.kernel.mechanisms import (
    SELECTIONS,
    ExponentialOverRanges,
    IntegerLaplace,
    PermuteAndFlip,
    ResidualLaplace,
)
from privet.kernel.published import ExactChoice, ExactValues, RoundedLaplace
from privet.kernel.refinement import Gradual, Question
from privet.kernel.release import (
    About,
    Choice,
    Count,
    Histogram,
    Mean,
    Quantile,
    Refinable,
    Releases,
    ResidualSums,
    Sum,
)
from privet.kernel.rows import MAX_PARTS, Rows
from privet.kernel.sampling import Entropy
from privet.kernel.session import Asked, Session

if TYPE_CHECKING:
    from privet.kernel.table import ProtectedTable

Epsilon = int | float | str | Fraction
Epsilons = Epsilon | Sequence[Epsilon]
SplitLike = str | Choice | tuple[str, int | float | Fraction] | None
Candidate = str | tuple[str, int | float | Fraction]
Competitor = AdditiveModel | Mapping[str, object]

_LONGEST_PATH = 1000  # characters: every part has one

T = TypeVar("T")
G = TypeVar("G", bound=Refinable)


class Parts:
    """Disjoint parts of a protected table: a partition, or a level of a tree."""

    def __init__(
        self, session: Session, rows: Rows, scopes: Sequence[Scope], labels: Sequence[str], paths: Sequence[str]
    ) -> None:
        self._session = session
        self._rows = rows
        self._scopes = list(scopes)
        self._labels = list(labels)
        self._paths = list(paths)

    # -- as a collection of tables ----------------------------------------------------------

    @property
    def domain(self) -> Domain:
        return self._session.domain

    @property
    def labels(self) -> list[str]:
        """The cell each part stands for."""
        return list(self._labels)

    @property
    def paths(self) -> list[str]:
        """Where each part lies in the table."""
        return list(self._paths)

    def __len__(self) -> int:
        return len(self._scopes)

    def __iter__(self) -> Iterator[ProtectedTable]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, part: int | str) -> ProtectedTable:
        """A part by its number, label or path, as a table of its own; it pays within the partition."""
        if isinstance(part, str):
            names = self._labels if part in self._labels else self._paths
            if names.count(part) != 1:
                raise QuestionError(
                    f"{names.count(part)} parts are called '{part}'; name one of {', '.join(self._labels[:20])}, or "
                    "use its number or its path."
                )
            part = names.index(part)
        if not -len(self) <= part < len(self):
            raise IndexError(f"there are {len(self)} parts.")
        from privet.kernel.table import ProtectedTable  # which is made of parts itself

        part %= len(self)
        return ProtectedTable(self._session, self._rows.keep([part]), self._scopes[part], self._paths[part])

    def items(self) -> Iterator[tuple[str, ProtectedTable]]:
        return zip(self._labels, self, strict=True)

    def __repr__(self) -> str:
        shown = ", ".join(self._labels[:8]) + ", ..." * (len(self) > 8)
        return f"<{len(self)} parts of '{self._session.dataset}': {shown}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        refuse_copy()

    @property
    def remaining(self) -> list[Fraction]:
        """What each part may still be charged: a part may use what its siblings have already made the table pay."""
        left = self._session.remaining()
        return [scope.headroom(left) for scope in self._scopes]

    # -- dividing ---------------------------------------------------------------------------

    def take(self, parts: Sequence[int]) -> Parts:
        """Some of the parts, in the order given."""
        whole = all(isinstance(part, int | np.integer) and not isinstance(part, bool) for part in parts)
        if not whole or len(set(parts)) < len(parts) or not all(0 <= part < len(self) for part in parts):
            raise QuestionError(f"take different parts by their numbers, 0 to {len(self) - 1}.")
        parts = [int(part) for part in parts]  # numpy's would be written and compared as something else
        if parts == list(range(len(self))):
            return self
        return Parts(
            self._session,
            self._rows.keep(parts),
            [self._scopes[part] for part in parts],
            [self._labels[part] for part in parts],
            [self._paths[part] for part in parts],
        )

    def scatter(self, parts: int, random_state: int) -> Parts:
        """Divide every part into `parts` by coins that each row tosses for itself, from a public seed.

        A coin is a hash of the row's own cells: a public function of the row, so the
        new parts are disjoint like any others and share one charge.
        """
        if isinstance(parts, bool) or not isinstance(parts, int | np.integer) or not 1 <= parts <= 10_000:
            raise QuestionError("scatter takes a whole number of parts, 1 to 10000.")
        if whole_of(random_state, 0, 2**64 - 1) is None:
            raise QuestionError("random_state must be a whole number from 0 to 2**64 - 1.")
        _check_parts(parts * len(self))
        labels = [f"coin {coin + 1} of {parts}" for coin in range(parts)]
        return Parts(
            self._session,
            self._rows.scatter(int(parts), int(random_state)),
            [part for scope in self._scopes for part in scope.divide(parts)],
            labels * len(self),
            [_below(path, f" / {label}") for path in self._paths for label in labels],
        )

    def where(self, given: Mapping[str, object] | None = None, /, **more: object) -> Parts:
        """The rows of each part that meet all conditions; they pay as the parts they come from."""
        if given is not None and not isinstance(given, Mapping):
            raise QuestionError("where takes column=value conditions, or a mapping of them.")
        twice = set(given or {}) & set(more)
        if twice:
            raise QuestionError(f"column '{min(twice)}' stands in two conditions; join them into one.")
        parsed, text = conditions.conditions({**(given or {}), **more}, self.domain)
        rows = self._rows.keep(range(len(self)), parsed)
        paths = [_below(path, f" where {text}") if text else path for path in self._paths]
        return Parts(self._session, rows, self._scopes, self._labels, paths)

    def partition(
        self, by: SplitLike | list[SplitLike] | Releases[Choice], edges: Sequence[int | float] | None = None
    ) -> Parts:
        """Divide every part: all by one column, or each by its own from a list; None closes a part.

        `by` is a column (its values or bins; with `edges` other bins), a (column,
        threshold) pair for `column <= threshold`, or what `select` released.
        """
        splits: list[SplitLike] = list(by) if isinstance(by, list | Releases) else [by] * len(self)
        if len(splits) != len(self):
            raise QuestionError(f"{len(splits)} splits were given for {len(self)} parts; give one for each.")
        parsed = [conditions.split(each, edges, self.domain) for each in splits]
        children = sum(split.children(self.domain) for split in parsed if split is not None)
        _check_parts(children)
        scopes: list[Scope] = []
        labels: list[str] = []
        paths: list[str] = []
        for part, split in enumerate(parsed):
            if split is None:
                continue
            own = conditions.split_labels(split, self.domain)
            scopes += self._scopes[part].divide(len(own))
            labels += own
            paths += [_below(self._paths[part], f" / {path}") for path in conditions.split_paths(split, self.domain)]
        return Parts(self._session, self._rows.divide(parsed, self.domain), scopes, labels, paths)

    # -- counting ---------------------------------------------------------------------------

    def count(self, epsilon: Epsilons, *, key: str | None = None) -> Releases[Count]:
        """How many rows each part has."""
        return self._refinable("count", (), self._count_noises(epsilon), self._histogram(()), Count, key)

    def histogram(self, *columns: str, epsilon: Epsilons, key: str | None = None) -> Releases[Histogram]:
        """Counts over all cells of some columns, from the public domain: empty cells are released like the others."""
        if not columns:
            raise QuestionError("a histogram needs at least one column; for the number of rows use count.")
        if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
            raise QuestionError("a histogram takes the names of different columns, one after the other.")
        labels = tuple(self.domain[name].labels for name in columns)
        _check_cells(len(self) * cell_count(self.domain, columns), MAX_RELEASED)

        def release(values: Any, noise: Any, about: About) -> Histogram:
            return Histogram(np.array(values, dtype=np.int64), columns, labels, noise, about)

        question, noises = f"histogram({', '.join(columns)})", self._count_noises(epsilon)
        return self._refinable(question, columns, noises, self._histogram(columns), release, key)

    def histograms(
        self, groups: Sequence[Sequence[tuple[str, ...]]], epsilon: Epsilons, *, key: str | None = None
    ) -> list[tuple[Histogram, ...]]:
        """Several histograms of each part, of its own groups of columns; together they cost epsilon, each the same."""
        if len(groups) != len(self) or not all(own and all(own) for own in groups):
            raise QuestionError(f"give each of the {len(self)} parts at least one group of columns.")
        if not all(isinstance(group, tuple) and len(set(group)) == len(group) for own in groups for group in own):
            raise QuestionError("a group is a tuple of the names of different columns.")
        labels = {group: tuple(self.domain[name].labels for name in group) for own in groups for group in own}
        sizes = {group: cell_count(self.domain, group) for group in labels}
        _check_cells(sum(sizes[group] for own in groups for group in own), MAX_RELEASED)
        noises = [IntegerLaplace(e / len(own)) for e, own in zip(self._shares(epsilon), groups, strict=True)]
        found, about = self._ask(
            f"histograms({len(labels)} tables)",
            tuple(tuple(own) for own in groups),
            [(noise,) * len(own) for noise, own in zip(noises, groups, strict=True)],
            lambda: answers.histograms(self._engine, self._rows, groups, noises, self._entropy),
            key,
        )
        return [
            tuple(
                Histogram(
                    np.array(values, dtype=np.int64),
                    group,
                    labels[group],
                    noise,
                    replace(note, epsilon=note.epsilon / len(own)),
                )
                for values, group in zip(mine, own, strict=True)
            )
            for mine, own, noise, note in zip(found, groups, noises, about, strict=True)
        ]

    def majority(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Releases[Choice]:
        """The most frequent cell of a column; one record adds one to one count, so the exponent is monotone."""
        labels = self.domain[column].labels
        _check_cells(len(self) * len(labels), MAX_CELLS)
        mechanisms = _each(lambda share: PermuteAndFlip(share, 1, monotone=True), self._shares(epsilon))
        found, about = self._ask(
            f"majority({column})",
            (),
            mechanisms,
            lambda: answers.majority(self._engine, self._rows, column, mechanisms, self._entropy),
            key,
        )
        return Releases(
            Choice(labels[code], None, mechanism, len(labels), 1, note)
            for code, mechanism, note in zip(found, mechanisms, about, strict=True)
        )

    # -- numbers ----------------------------------------------------------------------------

    def sum(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Releases[Sum]:
        """The sum of a numeric column over the rows that have a value; values are clamped to the bounds."""
        numeric = self.domain.numeric(column)
        # one record adds at most the larger bound
        reach = int(max(abs(numeric.low), abs(numeric.top)) / numeric.unit)
        noises = _each(lambda share: IntegerLaplace(share, reach), self._shares(epsilon))

        def answer(rows: Rows, mechanisms: Sequence[Any]) -> list[Any]:
            return answers.total(self._engine, rows, numeric, mechanisms, self._entropy)

        def release(value: int, noise: IntegerLaplace, about: About) -> Sum:
            return Sum(float(value * numeric.unit), noise, numeric.unit, about)

        return self._refinable(f"sum({column})", (), noises, answer, release, key)

    def mean(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Releases[Mean]:
        """The mean of a numeric column over the rows that have a value; half of epsilon each for sum and count."""
        numeric = self.domain.numeric(column)
        shares = _each(lambda share: share / 2, self._shares(epsilon))
        sums = _each(lambda share: IntegerLaplace(share, numeric.grid_size - 1), shares)
        counts = _each(IntegerLaplace, shares)
        found, about = self._ask(
            f"mean({column})",
            (),
            list(zip(sums, counts, strict=True)),
            lambda: answers.deviation(self._engine, self._rows, numeric, sums, counts, self._entropy),
            key,
        )
        releases = []
        for (total, rows), sum_noise, count_noise, note in zip(found, sums, counts, about, strict=True):
            half = About(note.question, note.epsilon / 2, note.private, note.entry)
            deviation = Sum(float(total * numeric.step / 2), sum_noise, numeric.step / 2, half)
            releases.append(Mean.of(deviation, Count(rows, count_noise, half), numeric))
        return Releases(releases)

    def median(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Releases[Quantile]:
        """The median of a numeric column over the rows that have a value."""
        return self.quantile(column, Fraction(1, 2), epsilon, key=key)

    def quantile(
        self, column: str, rank: float | Fraction, epsilon: Epsilons, *, key: str | None = None
    ) -> Releases[Quantile]:
        """A grid point below which about a share `rank` of the rows that have a value lies."""
        numeric = self.domain.numeric(column)
        exact_rank = conditions.rank(rank)
        reach = max(exact_rank.numerator, exact_rank.denominator - exact_rank.numerator)
        mechanisms = [ExponentialOverRanges(share, reach, monotone=False) for share in self._shares(epsilon)]
        found, about = self._ask(
            f"quantile({column}, {decimal_text(exact_rank)})",
            (),
            mechanisms,
            lambda: answers.quantile(
                self._engine, self._rows, numeric, exact_rank, self.domain, mechanisms, self._entropy
            ),
            key,
        )
        return Releases(
            Quantile(float(numeric.value_at(index)), exact_rank, mechanism, numeric.grid_size, note)
            for index, mechanism, note in zip(found, mechanisms, about, strict=True)
        )

    # -- choosing ---------------------------------------------------------------------------

    def select(
        self,
        criterion: str | Criterion,
        epsilon: Epsilons,
        *,
        attributes: Sequence[Candidate] | Sequence[Sequence[Candidate]] | None = None,
        thresholds: bool = False,
        mechanism: str = "permute-and-flip",
        monotone: bool = True,
        key: str | None = None,
    ) -> Releases[Choice]:
        """The best attribute to split each part by, for predicting the target.

        `attributes` limits the choice, for all parts or for each by itself; a pair
        (column, threshold) stands for `column <= threshold`. With `thresholds` numeric
        attributes compete with every threshold of their grid instead of their bins.
        The other mechanisms are "exponential" and "noisy-max"; with `monotone=False` they are
        twice as noisy as need be. Both are there to run published algorithms as they are.
        """
        rule = named_criterion(criterion, self.domain)
        own = conditions.attributes(attributes, len(self), self.domain)
        if not isinstance(mechanism, str) or mechanism not in SELECTIONS:
            raise QuestionError(f"there is no selection '{mechanism}'; choose one of {', '.join(SELECTIONS)}.")
        kind = ExponentialOverRanges if thresholds else SELECTIONS[mechanism]
        mechanisms = self._selections(rule, epsilon, kind, monotone)
        if thresholds:
            names = [conditions.plain(candidates) for candidates in own]
            details: object = (rule, own, True, monotone)
            # keys of points, too, fit 64 bits then
            _check_cells(len(self) * self.domain.target_column.size, MAX_CELLS)
        else:
            details = (rule, own, mechanism, monotone)
            plain = {name: None for names in own for name in names if isinstance(name, str)}
            cells = sum(self.domain[name].size for name in plain) * self.domain.target_column.size
            _check_cells(len(self) * cells, MAX_CELLS)

        def noisy_answer() -> list[Any]:
            if thresholds:
                return answers.threshold(self._engine, self._rows, names, self.domain, rule, mechanisms, self._entropy)
            return answers.attribute(self._engine, self._rows, own, self.domain, rule, mechanisms, self._entropy)

        found, about = self._ask(f"select({rule.name})", details, mechanisms, noisy_answer, key)
        choices = []
        for (name, index), mine, used, note in zip(found, own, mechanisms, about, strict=True):
            point = None if index is None else self.domain.numeric(name).value_at(index)
            # every attribute has base measure 1, so the best candidate has at least that over its grid points
            spread = max(_points(self.domain, str(each)) for each in mine) if thresholds else 1
            choices.append(Choice(name, point, used, len(mine) * spread, rule.grid, note))
        return Releases(choices)

    def select_residuals(
        self,
        model: AdditiveModel,
        tables: Sequence[tuple[str, ...]],
        caps: Sequence[int],
        epsilon: Epsilons,
        *,
        key: str | None = None,
    ) -> Releases[Choice]:
        """Of several tables of one or two columns, the one in which a released model errs most.

        `caps` bounds what a record of each class may add, in multiples of 1 / RESIDUAL_GRID.
        """
        query = self._residual_query(model, tables, caps, MAX_CELLS)
        several = len(query.caps) > 2
        reach = max(query.caps) * (2 if several else 1)
        mechanisms = [PermuteAndFlip(share, reach, monotone=True) for share in self._shares(epsilon)]
        found, about = self._ask(
            f"select_residuals({len(query.tables)} tables)",
            (query.tables, query.caps, model.fingerprint),
            mechanisms,
            lambda: answers.residual_choice(self._engine, query, mechanisms, self._entropy),
            key,
        )
        return Releases(
            Choice(", ".join(query.tables[index]), None, mechanism, len(query.tables), RESIDUAL_GRID, note)
            for index, mechanism, note in zip(found, mechanisms, about, strict=True)
        )

    def residual_sums(
        self,
        model: AdditiveModel,
        table: tuple[str, ...],
        caps: Sequence[int],
        epsilon: Epsilons,
        *,
        key: str | None = None,
    ) -> Releases[ResidualSums]:
        """Sums of the clipped residuals of a released model in every cell of one table of columns."""
        query = self._residual_query(model, [table], caps, MAX_RELEASED)
        noises = [ResidualLaplace(share, query.caps) for share in self._shares(epsilon)]
        found, about = self._ask(
            f"residual_sums({', '.join(query.tables[0])})",
            (query.tables, query.caps, model.fingerprint),
            noises,
            lambda: answers.residual_sums(self._engine, query, noises, self._entropy),
            key,
        )
        shape = (*(self.domain[name].size for name in query.tables[0]), len(query.caps))
        return Releases(
            ResidualSums(
                np.array(own, dtype=np.int64).reshape(shape),
                None if others is None else np.array(others, dtype=np.int64).reshape(shape),
                noise,
                note,
            )
            for (own, others), noise, note in zip(found, noises, about, strict=True)
        )

    # -- released models --------------------------------------------------------------------

    def count_correct(self, model: AdditiveModel, epsilon: Epsilons, *, key: str | None = None) -> Releases[Count]:
        """How many rows of each part a released model classifies right: their own class has the largest logit.

        Of equal logits the class declared first counts. One record adds at most one.
        """
        conditions.released_model(model, self.domain)
        target = self.domain.target_column.name

        def answer(rows: Rows, noises: Sequence[Any]) -> list[Any]:
            return answers.correct(self._engine, CorrectQuery(rows, model, target), noises, self._entropy)

        return self._refinable("correct", (model.fingerprint,), self._count_noises(epsilon), answer, Count, key)

    def best(
        self, candidates: Mapping[str, Competitor], epsilon: Epsilons, *, key: str | None = None
    ) -> Releases[Choice]:
        """Of several candidates the name of the one with the most rows, for each part.

        A candidate is a released model, for the rows that it classifies right, or a mapping
        of conditions as `where` takes them, for the rows that meet them. One record adds at
        most one to each of these numbers, so the exponent is monotone.
        """
        parsed = conditions.competitors(candidates, self.domain)
        every = range(len(self))
        asked = [each if isinstance(each, AdditiveModel) else self._rows.keep(every, each) for each in parsed.values()]
        mechanisms = _each(lambda share: PermuteAndFlip(share, 1, monotone=True), self._shares(epsilon))
        details = [
            (name, each.fingerprint if isinstance(each, AdditiveModel) else each) for name, each in parsed.items()
        ]
        found, about = self._ask(
            f"best({len(asked)} candidates)",
            details,
            mechanisms,
            lambda: answers.best(self._engine, self._rows, asked, self.domain.target, mechanisms, self._entropy),
            key,
        )
        names = list(parsed)
        return Releases(
            Choice(names[index], None, mechanism, len(names), 1, note)
            for index, mechanism, note in zip(found, mechanisms, about, strict=True)
        )

    # -- what these share -------------------------------------------------------------------

    @property
    def _engine(self) -> Any:
        return self._session.engine

    @property
    def _entropy(self) -> Entropy:
        return self._session.entropy

    def _count_noises(self, epsilon: Epsilons) -> list[Any]:
        """The noise of a count for each part; on public rows also none, or that of a paper."""
        if self._exactly(epsilon):
            return [ExactValues()] * len(self)
        noise = RoundedLaplace if self._session.public and self._session.public.rounded_noise else IntegerLaplace
        return _each(noise, self._shares(epsilon))

    def _selections(self, rule: Criterion, epsilon: Epsilons, kind: type[Any], monotone: bool) -> list[Any]:
        if self._exactly(epsilon):
            return [ExactChoice()] * len(self)
        if isinstance(rule, GainRatio):
            raise NotPrivate("the gain ratio of a split has no bounded sensitivity; choose max, gini or infogain.")
        printed = self._session.public is not None and self._session.public.printed_ranges
        # printed without the sensitivity (erratum E-4): a unit of score is worth epsilon whatever the criterion
        reach = rule.grid if printed and kind is ExponentialOverRanges else rule.sensitivity
        return _each(lambda share: kind(share, reach, monotone), self._shares(epsilon))

    def _exactly(self, epsilon: Epsilons) -> bool:
        """Is an exact answer asked for? Only a table of public rows gives one."""
        return self._session.public is not None and isinstance(epsilon, float) and epsilon == math.inf

    def _shares(self, epsilon: Epsilons) -> list[Fraction]:
        """The epsilon of each part, per record: a person may own several."""
        if isinstance(epsilon, list | tuple | np.ndarray):
            if len(epsilon) != len(self):
                raise QuestionError(
                    f"{len(epsilon)} epsilons were given for {len(self)} parts; give one, or one for each."
                )
            return [as_epsilon(each) / self.domain.rows_per_person for each in epsilon]
        return [as_epsilon(epsilon) / self.domain.rows_per_person] * len(self)

    def _histogram(self, columns: tuple[str, ...]) -> Callable[[Rows, Sequence[Any]], list[Any]]:
        """How counts of rows become noisy answers."""
        return lambda rows, mechanisms: answers.histogram(self._engine, rows, columns, mechanisms, self._entropy)

    def _refinable(
        self,
        question: str,
        details: object,
        noises: Sequence[Any],
        answer: Callable[[Rows, Sequence[Any]], list[Any]],
        release: Callable[[Any, Any, About], G],
        key: str | None,
    ) -> Releases[G]:
        """Releases that can be refined later: each part has one vector with integer Laplace noise."""
        found, about = self._ask(question, details, noises, lambda: answer(self._rows, noises), key)
        releases = Releases(release(*each) for each in zip(found, noises, about, strict=True))
        if about and about[0].entry is not None and isinstance(noises[0], IntegerLaplace):
            asked = Question(question, self._rows, self._scopes, self._paths, noises[0].sensitivity, answer, release)
            Gradual(self._session, asked, about[0].entry, [each.epsilon for each in about]).attach(releases)
        return releases

    def _ask(
        self, question: str, details: object, mechanisms: Sequence[Any], noisy_answer: Any, key: str | None
    ) -> tuple[list[Any], list[About]]:
        if not mechanisms:
            return [], []
        losses = _each(self._loss, mechanisms)
        name = self._paths[0] if len(self) == 1 else f"{len(self)} parts, first {self._paths[0]}"
        asked = Asked(question, details, self._rows, self._scopes, name, losses, key)
        if self._session.public is not None and not any(losses):  # exact answers about public rows
            if self._engine.closed:
                raise DataError(f"the table '{self._session.dataset}' was closed; open it again.")
            return noisy_answer(), [About(question, Fraction(0), private=False)] * len(self)
        found, private, entry = self._session.ask(asked, noisy_answer)
        private = private and self._session.public is None
        return found, _each(lambda loss: About(question, loss, private, entry), losses)

    def _loss(self, mechanism: Any) -> Fraction:
        """What a person loses: every record of theirs loses what the mechanism says."""
        if isinstance(mechanism, tuple):
            return sum((each.loss for each in mechanism), Fraction(0)) * self.domain.rows_per_person
        loss: Fraction = mechanism.loss
        return loss * self.domain.rows_per_person

    def _residual_query(
        self, model: AdditiveModel, tables: Sequence[tuple[str, ...]], caps: Sequence[int], most: int
    ) -> ResidualQuery:
        target = self.domain.target_column.name
        conditions.residuals(model, tables, caps, self.domain)
        _check_cells(len(self) * sum(cell_count(self.domain, [*columns, target]) for columns in tables), most)
        named = tuple(tuple(str(name) for name in columns) for columns in tables)
        return ResidualQuery(self._rows, model, named, target, tuple(int(cap) for cap in caps))


def _each(make: Callable[[Any], T], values: Sequence[Any]) -> list[T]:
    """`make` of every value, once for those that are one object: the parts of a level mostly pay the same."""
    made: dict[int, T] = {}
    for value in values:
        if id(value) not in made:
            made[id(value)] = make(value)
    return [made[id(value)] for value in values]


def _check_cells(cells: int, most: int) -> None:
    if cells > most:
        number = str(cells) if cells < 10**15 else "more than 10**15"  # of many columns it has thousands of digits
        raise QuestionError(f"this needs {number} cells, at most {most} are possible; use fewer columns or parts.")


def _check_parts(parts: int) -> None:
    if parts > MAX_PARTS:
        raise QuestionError(f"this makes {parts} parts, at most {MAX_PARTS} are possible; split by fewer values.")


def _below(path: str, step: str) -> str:
    """The path of a part with one more step; of a long one the end, which says most."""
    path += step
    return path if len(path) <= _LONGEST_PATH else "... " + path[-_LONGEST_PATH:]


def refuse_copy() -> NoReturn:
    raise PrivacyError("a protected table cannot be copied or pickled: its rows and its budget stay where they are.")


def _points(domain: Domain, name: str) -> int:
    column = domain[name]
    return 1 if isinstance(column, Nominal) else column.grid_size - 1
