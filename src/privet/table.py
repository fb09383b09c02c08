"""Tables and their parts: what an analyst holds instead of the rows. Not trusted: the kernel checks what they ask.

Every question is a method that is written once, here, and works on a table and on all parts of a
partition at once. A table calls its backend and knows nothing of what is behind it: a session in
this process (`InProcess`), or a server (`privet.service.client`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar, overload, runtime_checkable

import numpy as np

from privet import conditions as syntax
from privet import ledger_lines
from privet.errors import PrivacyError, PrivetError, QuestionError, ReceiptError
from privet.kernel import (
    AdditiveModel,
    Allot,
    Chain,
    ChainLevel,
    Criterion,
    Divide,
    Domain,
    Entry,
    Json,
    Keep,
    Monitor,
    OpenTable,
    Paths,
    PerPart,
    Positions,
    Quality,
    Question,
    Rho,
    RowSets,
    Scatter,
    Session,
    Split,
    Step,
    Unit,
    as_share,
    check_model,
    keyed_run,
    selection,
    whole_of,
)
from privet.kernel.questions import counts, numbers, released_models, splits
from privet.kernel.questions.counts import ChooseQuestion
from privet.receipts import Receipts
from privet.refining import Refining
from privet.release import (
    About,
    AccuracyMonitor,
    CellGroups,
    Choice,
    Count,
    DateQuantile,
    Histogram,
    Mean,
    Quantile,
    Refinable,
    Releases,
    ResidualSums,
    ResidualTables,
    Sum,
    TopTables,
    refined_by,
)
from privet.text import protected, quoted, short_text

Epsilon = int | float | str | Fraction | Rho
Epsilons = Epsilon | Sequence[Epsilon]
SplitLike = str | Choice | tuple[str, int | float | Fraction] | None
Candidate = str | tuple[str, int | float | Fraction]
TableLike = Sequence[str | tuple[str, Sequence[int]] | released_models.MergedColumn]
Competitor = AdditiveModel | Mapping[str, object]

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class Released(Protocol):
    """A release: it says what it is about."""

    @property
    def about(self) -> About: ...


class _Record(Protocol):
    """The privacy record of a model, as far as a ledger writes it down."""

    @property
    def entries(self) -> list[int]: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def epsilon(self) -> Fraction: ...
    @property
    def spent(self) -> Fraction: ...


@runtime_checkable
class FittedModel(Protocol):
    """A model: what `privet.models` makes, which stands above tables."""

    @property
    def privacy(self) -> _Record: ...
    def to_json(self) -> str: ...


class Backend(Protocol):
    """What is behind a table: whatever answers, charges and divides."""

    @property
    def session(self) -> Session:
        """The session, where it is in this process; QuestionError elsewhere."""

    @property
    def domain(self) -> Domain:
        """The public description of the table."""

    @property
    def dataset(self) -> str:
        """The name of the data set."""

    @property
    def ledger_path(self) -> str:
        """Where the spending is written down."""

    @property
    def unit(self) -> Unit:
        """What the data set is counted in."""

    def amount(self, epsilon: object) -> Fraction:
        """Return what one set of rows is charged for an epsilon."""

    def exchanging(self, epsilon: object) -> Backend:
        """Return the same for a fit that divides `epsilon`; see `Session.exchanging`."""

    def apart(self) -> Backend:
        """Return the same for work beside other work; see `Session.apart`."""

    def describe(self) -> tuple[str, str]:
        """Return who asks, and where the spending is written down, for a repr."""

    def explain(self) -> str:
        """Return how questions reach the rows."""

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None) -> Releases[R]:
        """Ask a question of disjoint sets of rows."""

    def divide(self, sets: RowSets, step: Step, paths: Paths | None = None) -> RowSets:
        """Return the sets of rows that a step makes of these; `paths` names them where names change."""

    def in_cells(self, sets: RowSets, domain: Domain, copies: Mapping[str, str]) -> tuple[Backend, RowSets]:
        """Return what answers about the same rows in other cells, and these rows."""

    def remaining(self, sets: RowSets) -> PerPart[Fraction]:
        """Return the largest epsilon that can be charged to each set now."""

    def spent(self, sets: RowSets) -> Fraction:
        """Return what the analyst has charged to the table, now and before; of a part, what it has cost."""

    def entries(self) -> list[Entry]:
        """Return the analyst's charges to the table."""

    def hold(self, sets: RowSets, epsilon: Fraction) -> AbstractContextManager[Backend]:
        """Reserve budget for a set until the block ends."""

    def refine(self, question: Question[Any], sets: RowSets, releases: Sequence[Refinable]) -> None:
        """Let the releases of a question be refined."""

    def monitor(self, sets: RowSets, accuracy: Fraction, epsilon: object) -> AccuracyMonitor:
        """Begin to ask of one released model after the other whether it is so accurate."""

    def keyed_run(
        self,
        table: Any,
        run: Callable[[Any], str],
        epsilon: Fraction,
        key: str,
        words: str,
        identity: Json,
        coins: Json,
    ) -> tuple[str, int | None, bool]:
        """Run a function of a table under one charge; see `privet.kernel.keyed_run`; `coins` are public."""

    def write_model(self, text: str, facts: Mapping[str, Json]) -> None:
        """Write the hash of a model that was fitted to the table into its ledger."""

    def receipt(self, entry: int | None, text: str | None) -> str:
        """Return the receipt of the answer to an entry, or of a model."""

    def close(self) -> None:
        """Let go of what answers."""


@dataclass(frozen=True)
class InProcess:
    """Answers what is asked of a table in this process, by a session."""

    session: Session

    @property
    def domain(self) -> Domain:
        return self.session.domain

    @property
    def unit(self) -> Unit:
        """What the data set is counted in."""
        return self.session.unit

    def amount(self, epsilon: object) -> Fraction:
        """Return what one set of rows is charged for an epsilon."""
        return self.session.amounts(epsilon, 1)[0]

    def exchanging(self, epsilon: object) -> InProcess:
        """Return the same for a fit that divides `epsilon`; see `Session.exchanging`."""
        return type(self)(self.session.exchanging(epsilon))

    def apart(self) -> InProcess:
        """Return the same for work beside other work; see `Session.apart`."""
        return type(self)(self.session.apart())

    @property
    def dataset(self) -> str:
        return self.session.dataset

    @property
    def ledger_path(self) -> str:
        return self.session.ledger.path

    def describe(self) -> tuple[str, str]:
        """Return who asks, and where the spending is written down."""
        ledger = self.session.ledger
        where = f"ledger '{ledger.path}'" if ledger.durable else "ledger in memory, gone with the process"
        return f"analyst '{self.session.analyst}'", where

    def explain(self) -> str:
        """Return how questions reach the rows."""
        return f"{self.session.engine.name} engine, {self.session.access or 'in memory'}"

    def ask(self, question: Question[R], sets: RowSets, epsilon: object, key: str | None) -> Releases[R]:
        """Ask a question of disjoint sets of rows."""
        return self.session.ask(question, sets, epsilon, key)

    def divide(self, sets: RowSets, step: Step, paths: Paths | None = None) -> RowSets:
        """Return the sets of rows that a step makes of these; `paths` names them where names change."""
        return sets.divide(step, paths)

    def in_cells(self, sets: RowSets, domain: Domain, copies: Mapping[str, str]) -> tuple[InProcess, RowSets]:
        """Return what answers about the same rows in other cells, and these rows."""
        session, same = self.session.in_cells(sets, domain, copies)
        return type(self)(session), same

    def remaining(self, sets: RowSets) -> PerPart[Fraction]:
        """Return the largest epsilon that can be charged to each set now."""
        return self.session.headroom(sets)

    def spent(self, sets: RowSets) -> Fraction:
        """Return what the analyst has charged to the table, now and before; of a part, what it has cost."""
        if sets.scopes.is_root:
            return self.session.ledger.spent(self.session.dataset, self.session.analyst)
        return sets.scopes.spent

    def entries(self) -> list[Entry]:
        """Return the analyst's charges to the table."""
        return self.session.ledger.entries(self.session.dataset, self.session.analyst)

    @contextmanager
    def hold(self, sets: RowSets, epsilon: Fraction) -> Iterator[InProcess]:
        """Reserve budget for a set until the block ends."""
        with self.session.reserved(sets, epsilon) as session:
            yield type(self)(session)

    def refine(self, question: Question[Any], sets: RowSets, releases: Sequence[Refinable]) -> None:
        """Let the releases of a question be refined."""
        if releases and releases[0].about.entry is not None:
            session = self.session
            chain = functools.cache(lambda: Chain(session, question, sets, releases))  # nearly nobody refines

            def levels(parts: Sequence[int], losses: PerPart[Fraction]) -> list[ChainLevel]:
                return chain().levels(parts, losses)

            refiner = Refining(question, session.domain, session.unit, releases[0], session.amounts, levels)
            refined_by(refiner, range(len(releases)), releases)

    def monitor(self, sets: RowSets, accuracy: Fraction, epsilon: object) -> AccuracyMonitor:
        """Begin to ask of one released model after the other whether it is so accurate."""
        return Monitor(self.session, sets, accuracy, epsilon)

    def keyed_run(
        self,
        table: Any,
        run: Callable[[Any], str],
        epsilon: Fraction,
        key: str,
        words: str,
        identity: Json,
        coins: Json,
    ) -> tuple[str, int | None, bool]:
        """Run a function of a table under one charge; see `privet.kernel.keyed_run`; `coins` are public."""
        return keyed_run(table, run, epsilon, key, words, identity)

    def write_model(self, text: str, facts: Mapping[str, Json]) -> None:
        """Write the hash of a model that was fitted to the table into its ledger."""
        session = self.session
        ledger_lines.store_model(session.ledger, session.dataset, session.analyst, None, text, facts, keep=False)

    def receipt(self, entry: int | None, text: str | None) -> str:
        """Return the receipt of the answer to an entry, or of a model."""
        receipts = Receipts(self.session.ledger)
        if entry is not None:
            return receipts.of_entry(entry)
        assert text is not None
        return receipts.of_model(text)

    def close(self) -> None:
        """Let go of the engine and its scratch files."""
        self.session.engine.close()


@dataclass(frozen=True)
class Asked(Generic[R]):
    """What a method asks: a question, at which epsilon, under which key."""

    question: Question[R]
    epsilon: object
    key: str | None


class asks(Generic[P, R]):
    """Make a method that builds a question one that asks it: of a table for a release, of parts for one of each."""

    def __init__(self, build: Callable[Concatenate[Any, P], Asked[R]]) -> None:
        build.__qualname__ = build.__name__  # Python's errors about arguments name it: count(), as it was called
        self._build = build
        functools.update_wrapper(self, build)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: ProtectedTable, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, instance: Parts, owner: type) -> Callable[P, Releases[R]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self

        @functools.wraps(self._build)
        def ask(*words: P.args, **named: P.kwargs) -> Any:
            return instance._answer(self._build(instance, *words, **named))

        return ask


class Questions:
    """The questions that tables and parts answer."""

    _backend: Backend
    _sets: RowSets

    @property
    def domain(self) -> Domain:
        """The public description of the table."""
        return self._backend.domain

    @property
    def unit(self) -> Unit:
        """What the data set is counted in: epsilon, or rho with a delta."""
        return self._backend.unit

    # -- counting ---------------------------------------------------------------------------

    @asks
    def count(self, epsilon: Epsilons, *, key: str | None = None) -> Asked[Count]:
        """Return the noisy number of rows.

        Parameters
        ----------
        epsilon : number, str or Rho
            What is paid for it; of parts also a list with one for each. In a data set with a delta it is what this
            answer alone would cost with that delta, or a `Rho`.
        key : str, optional
            The same question under the same key is answered once and paid once.
        """
        return Asked(counts.CountQuestion(), epsilon, key)

    @asks
    def histogram(self, *columns: str, epsilon: Epsilons, key: str | None = None) -> Asked[Histogram]:
        """Return noisy counts over all cells of some columns, empty ones included.

        Parameters
        ----------
        *columns : str
            Different columns, one after the other.
        epsilon, key
            As for `count`.
        """
        return Asked(counts.HistogramQuestion(columns), epsilon, key)

    @asks
    def majority(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Asked[Choice]:
        """Return the most frequent cell of a column, noisily."""
        return Asked(counts.MajorityQuestion(column), epsilon, key)

    @asks
    def group_cells(
        self,
        *columns: str,
        epsilon: Epsilons,
        price: float | str | Fraction,
        order: Sequence[int] | None = None,
        key: str | None = None,
    ) -> Asked[CellGroups]:
        """Return groups of neighbouring cells whose counts are nearly equal, chosen noisily.

        Parameters
        ----------
        *columns : str
            Different columns, one after the other.
        epsilon, key
            As for `count`.
        price : number or str
            What a group costs, in rows: the error that the noise of its count will have, 1 / epsilon for a count that
            is then bought for epsilon. A higher price makes fewer groups.
        order : sequence of int, optional
            The cells along a line, each by its number in row-major order; neighbours on it may share a group. By
            default in row-major order.
        """
        cells = math.prod(self.domain[name].size for name in columns if isinstance(name, str))
        line = (
            tuple(range(min(cells, counts.MOST_GROUPED)))
            if order is None
            else syntax.cell_numbers(order, "the positions of cells on a line")
        )
        return Asked(counts.GroupCellsQuestion(columns, line, syntax.price(price)), epsilon, key)

    @asks
    def grouped_histogram(
        self, *columns: str, groups: Any, epsilon: Epsilons, key: str | None = None
    ) -> Asked[Histogram]:
        """Return noisy counts of groups of cells.

        Parameters
        ----------
        *columns : str
            Different columns, one after the other.
        groups : CellGroups or array of int
            The number of each cell's group, in row-major order: what `group_cells` returned, or public numbers.
        epsilon, key
            As for `count`.
        """
        own = syntax.cell_numbers(groups.value if isinstance(groups, CellGroups) else groups, "groups of cells")
        return Asked(counts.GroupedHistogramQuestion(columns, own), epsilon, key)

    # -- numbers ----------------------------------------------------------------------------

    @asks
    def sum(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Asked[Sum]:
        """Return the noisy sum of a numeric column over the rows that have a value, clamped to the bounds."""
        return Asked(numbers.SumQuestion(column), epsilon, key)

    @asks
    def mean(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Asked[Mean]:
        """Return the noisy mean of a numeric column over the rows that have a value."""
        return Asked(numbers.MeanQuestion(column), epsilon, key)

    @asks
    def median(self, column: str, epsilon: Epsilons, *, key: str | None = None) -> Asked[Quantile | DateQuantile]:
        """Return the noisy median of a column of numbers or dates over the rows that have a value."""
        return Asked(numbers.QuantileQuestion(column, Fraction(1, 2)), epsilon, key)

    @asks
    def quantile(
        self, column: str, rank: float | str | Fraction, epsilon: Epsilons, *, key: str | None = None
    ) -> Asked[Quantile | DateQuantile]:
        """Return a grid point below which about a share `rank` of the rows that have a value lies."""
        return Asked(numbers.QuantileQuestion(column, syntax.rank(rank)), epsilon, key)

    # -- choosing ---------------------------------------------------------------------------

    @asks
    def select(
        self,
        criterion: str | Criterion,
        epsilon: Epsilons,
        *,
        attributes: Sequence[Candidate] | Sequence[Sequence[Candidate]] | None = None,
        thresholds: bool = False,
        mechanism: str | None = None,
        monotone: bool = True,
        key: str | None = None,
    ) -> Asked[Choice]:
        """Return the best attribute to split by, for predicting the target.

        Parameters
        ----------
        criterion : str or Criterion
            "max", "gini", "infogain" or "largest-cell", a `WeightedMax`, or one that was installed.
        epsilon, key
            As for `count`.
        attributes : sequence, optional
            What to choose from, for all parts or for each by itself; a pair (column, threshold) stands for
            `column <= threshold`. Default: all attributes.
        thresholds : bool, default False
            Let numeric attributes compete with every threshold of their grid instead of their bins.
        mechanism : {"permute-and-flip", "exponential", "noisy-max"}, optional
            Default: "permute-and-flip", and in a data set that is counted in rho "exponential", which loses a quarter.
        monotone : bool, default True
            With False the choice is twice as noisy as need be, as some published algorithms have it.
        """
        rule = self._criterion(criterion)
        candidates = syntax.attributes(attributes, len(self._sets), self.domain)
        mechanism = self.unit.selection if mechanism is None else mechanism
        if thresholds:
            selection(mechanism)  # it decides nothing, but must be one
            return Asked(splits.SelectThresholdQuestion(rule, candidates.map(syntax.plain), monotone), epsilon, key)
        return Asked(splits.SelectQuestion(rule, candidates, mechanism, monotone), epsilon, key)

    @asks
    def choose(
        self,
        candidates: Mapping[str, Quality],
        epsilon: Epsilons,
        *,
        bound: int,
        mechanism: str = "exponential",
        key: str | None = None,
    ) -> Asked[Choice]:
        """Return the name of the candidate of the highest score, by a quality function of one's own, noisily.

        Parameters
        ----------
        candidates : mapping of str to Quality
            What each row adds to the score of each: a whole number for each of its public cells.
        epsilon, key
            As for `count`.
        bound : int
            What a row adds at most, up or down. Tables are clipped to it, and the noise is made for it.
        mechanism : {"exponential", "permute-and-flip", "noisy-max"}
        """
        if not isinstance(candidates, Mapping) or not all(
            isinstance(quality, Quality) for quality in candidates.values()
        ):
            raise QuestionError("candidates are a mapping of at least two names, printable texts, to Quality tables.")
        return Asked(ChooseQuestion(tuple(candidates.items()), bound, mechanism), epsilon, key)

    @asks
    def select_residuals(
        self,
        model: AdditiveModel,
        tables: Sequence[tuple[str, ...]],
        caps: Sequence[int],
        epsilon: Epsilons,
        *,
        key: str | None = None,
    ) -> Asked[Choice]:
        """Return the table of one or two columns in which a released model errs most, noisily.

        Parameters
        ----------
        model : AdditiveModel
        tables : sequence of tuples of columns
            What to choose from.
        caps : sequence of int
            What a record of each class may add, in multiples of 1 / `RESIDUAL_GRID`.
        epsilon, key
            As for `count`.
        """
        check_model(model)
        return Asked(
            released_models.ResidualChoiceQuestion(model, syntax.tables(tables), syntax.caps(caps)), epsilon, key
        )

    @asks
    def residual_sums(
        self,
        model: AdditiveModel,
        table: tuple[str, ...],
        caps: Sequence[int],
        epsilon: Epsilons,
        *,
        key: str | None = None,
    ) -> Asked[ResidualSums]:
        """Return noisy sums of the clipped residuals of a released model in every cell of a table of columns."""
        check_model(model)
        return Asked(
            released_models.ResidualSumsQuestion(model, syntax.tables([table])[0], syntax.caps(caps)), epsilon, key
        )

    # -- released models --------------------------------------------------------------------

    @asks
    def residual_tables(
        self,
        model: AdditiveModel,
        tables: Sequence[TableLike],
        rhos: Sequence[Epsilon],
        *,
        cap: int = 512,
        signs_apart: bool = False,
        key: str | None = None,
    ) -> Asked[ResidualTables]:
        """Return noisy residual sums of a released model for several tables at once, in a data set with a delta.

        Parameters
        ----------
        model : AdditiveModel
        tables : sequence of tuples
            Each of at most four columns, where () stands for all rows. A column is its name, or a pair of its name and
            a list with the merged cell of each of its cells.
        rhos : sequence of numbers
            What each table costs, as rho; the answer costs their sum.
        cap : int, default 512
            What bounds a record's residual of its own class, in multiples of 1 / `RESIDUAL_GRID`.
        signs_apart : bool, default False
            Whether to sum positive and negative residuals apart.
        key : str, optional
            As for `count`.
        """
        check_model(model)
        own = tuple(Rho(rho).value for rho in rhos)
        question = released_models.ResidualTablesQuestion(model, syntax.merged_tables(tables), own, cap, signs_apart)
        return Asked(question, Rho(sum(own, Fraction(0))) if own else "rhos", key)

    @asks
    def top_residual_tables(
        self,
        model: AdditiveModel,
        tables: Sequence[TableLike],
        k: int,
        epsilon: Epsilons,
        *,
        cap: int = 512,
        penalties: Sequence[int] | None = None,
        key: str | None = None,
    ) -> Asked[TopTables]:
        """Return the k tables of one to four columns in which a released model errs most, noisily.

        The score of a table is the sum over its cells of the length of its residual sums, minus its penalty.

        Parameters
        ----------
        model, tables, cap
            As for `residual_tables`.
        k : int
            How many are chosen, one after the other.
        epsilon : number, str or Rho
            What all of them cost together.
        penalties : sequence of int, optional
            Public, in multiples of 1 / `RESIDUAL_GRID`. Default: none.
        key : str, optional
            As for `count`.
        """
        check_model(model)
        offered = syntax.merged_tables(tables)
        own = (0,) * len(offered) if penalties is None else syntax.wholes(penalties)
        return Asked(released_models.TopTablesQuestion(model, offered, k, cap, own), epsilon, key)

    @asks
    def count_correct(self, model: AdditiveModel, epsilon: Epsilons, *, key: str | None = None) -> Asked[Count]:
        """Return how many rows a released model classifies right, noisily; of equal logits the first class counts."""
        check_model(model)
        return Asked(released_models.CountCorrectQuestion(model), epsilon, key)

    @asks
    def best(self, candidates: Mapping[str, Competitor], epsilon: Epsilons, *, key: str | None = None) -> Asked[Choice]:
        """Return the name of the candidate with the most rows, noisily.

        Parameters
        ----------
        candidates : mapping
            A released model stands for the rows that it classifies right, a mapping of conditions, as `where` takes
            them, for the rows that meet them.
        epsilon, key
            As for `count`.
        """
        return Asked(released_models.BestQuestion(syntax.competitors(candidates, self.domain)), epsilon, key)

    # -- what these share -------------------------------------------------------------------

    def _criterion(self, choice: str | Criterion) -> Criterion:
        """Return a criterion by its name; tables of public rows have more of them."""
        return syntax.criterion(choice, self.domain)

    def _ask(self, asked: Asked[R]) -> Releases[R]:
        releases = self._backend.ask(asked.question, self._sets, asked.epsilon, asked.key)
        if asked.question.refinable:
            self._backend.refine(asked.question, self._sets, releases)  # type: ignore[arg-type]
        return releases

    @property
    def _session(self) -> Session:
        return self._backend.session

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise PrivacyError(
            "a protected table cannot be copied or pickled: its rows and its budget stay where they are."
        )


class Parts(Questions):
    """Disjoint parts of a protected table: a partition, or a level of a tree."""

    def __init__(self, backend: Backend, sets: RowSets, labels: PerPart[str]) -> None:
        self._backend, self._sets, self._labels = backend, sets, labels

    def _answer(self, asked: Asked[R]) -> Releases[R]:
        return self._ask(asked)

    # -- as a collection of tables ----------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """The cell each part stands for."""
        return list(self._labels)

    @property
    def paths(self) -> list[str]:
        """Where each part lies in the table."""
        return list(self._sets.paths)

    def __len__(self) -> int:
        return len(self._sets)

    def __iter__(self) -> Iterator[ProtectedTable]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, part: int | str) -> ProtectedTable:
        """Return a part by its number, label or path, as a table of its own; it pays within the partition."""
        if isinstance(part, str):
            labels = self.labels
            names = labels if part in labels else self.paths
            if names.count(part) != 1:
                raise QuestionError(
                    f"{names.count(part)} parts are called '{part}'; name one of {', '.join(labels[:20])}, or "
                    "use its number or its path."
                )
            part = names.index(part)
        if whole_of(part, -(2**62), 2**62) is None:
            raise QuestionError(f"a part is named by its number, its label or its path, not by {quoted(part)}.")
        if not -len(self) <= part < len(self):
            raise IndexError(f"there are {len(self)} parts, numbered from 0 on; there is no part {part}.")
        part %= len(self)
        return self._table(self._kept([part]))

    def items(self) -> Iterator[tuple[str, ProtectedTable]]:
        """Return every label with its part."""
        return zip(self._labels, self, strict=True)

    def __repr__(self) -> str:
        shown = ", ".join(self._labels[:8]) + ", ..." * (len(self) > 8)
        return f"<{len(self)} parts of '{self._backend.dataset}': {shown}>"

    @property
    def remaining(self) -> list[Fraction]:
        """What each part may still be charged, in the unit of the data set.

        A part may use what its siblings have already made the table pay.
        """
        return list(self._backend.remaining(self._sets))

    def histograms(
        self, groups: Sequence[Sequence[tuple[str, ...]]], epsilon: Epsilons, *, key: str | None = None
    ) -> Releases[tuple[Histogram, ...]]:
        """Return several histograms of each part, of its own groups of columns; together they cost epsilon.

        Parameters
        ----------
        groups : sequence
            For each part a list of tuples of columns.
        epsilon, key
            As for `count`.
        """
        own = groups if isinstance(groups, PerPart) else PerPart.of(syntax.column_groups(listed) for listed in groups)
        return self._ask(Asked(counts.HistogramsQuestion(own), epsilon, key))

    # -- dividing ---------------------------------------------------------------------------

    def take(self, parts: Sequence[int] | Positions) -> Self:
        """Return some of the parts, in the order given."""
        numbers = np.asarray(parts) if len(parts) else np.zeros(0, dtype=np.intp)
        whole = numbers.ndim == 1 and np.issubdtype(numbers.dtype, np.integer)
        if not whole:
            raise QuestionError(f"take different parts by their numbers, 0 to {len(self) - 1}.")
        if np.array_equal(numbers, np.arange(len(self))):
            return self
        return self._parts(self._kept(numbers.tolist()), self._labels.take(numbers))

    def scatter(self, parts: int, random_state: int) -> Self:
        """Divide every part into `parts` by coins that each row tosses for itself, from a public seed.

        A coin is a hash of the row's own cells: a public function of the row, so the
        new parts are disjoint like any others and share one charge.

        Parameters
        ----------
        parts : int
            How many each part is divided into, 1 to 10000.
        random_state : int
            The public seed, from 0 to 2**64 - 1.

        Raises
        ------
        QuestionError
            One of them is out of bounds, or there would be too many parts.
        """
        step = Scatter(parts, random_state)
        step.check(self.domain, len(self))
        return self._divided(Scatter(int(parts), int(random_state)))

    def where(self, conditions: Mapping[str, object] | None = None, /, **more: object) -> Self:
        """Return the rows of each part that meet all conditions; they pay as the parts they come from.

        Parameters
        ----------
        conditions : mapping, optional
        **more
            A value, a set of values, or for numbers a half-open range `(low, high)`, either end None for open.
        """
        if conditions is not None and not isinstance(conditions, Mapping):
            raise QuestionError("where takes column=value conditions, or a mapping of them.")
        twice = set(conditions or {}) & set(more)
        if twice:
            raise QuestionError(f"column '{min(twice)}' stands in two conditions; join them into one.")
        parsed, text = syntax.conditions({**(conditions or {}), **more}, self.domain)
        every = np.arange(len(self))
        paths = self._sets.paths.below(every, PerPart.same(f" where {text}", len(self))) if text else self._sets.paths
        step = Keep(tuple(every.tolist()), parsed)
        return self._parts(self._backend.divide(self._sets, step, paths), self._labels)

    def partition(
        self,
        by: SplitLike | list[SplitLike] | Releases[Choice] | PerPart[Split | None],
        edges: Sequence[int | float] | None = None,
    ) -> Self:
        """Divide every part: all by one column, or each by its own from a list; None closes a part.

        Parameters
        ----------
        by : str, pair, Choice, a list of them, or PerPart of Split
            A column (its values or bins), a (column, threshold) pair for `column <= threshold`, or what `select`
            released. Of many parts a learner gives the kernel's own splits.
        edges : sequence of numbers, optional
            Other bins for a numeric column.
        """
        if isinstance(by, PerPart):
            step = Divide(by.compact())
        else:
            wanted = syntax.splits(by, len(self))
            step = Divide(wanted.map(lambda split: syntax.split(split, edges, self.domain)).compact())
        step.check(self.domain, len(self))
        return self._divided(step)

    # -- what these share -------------------------------------------------------------------

    def _divided(self, step: Divide | Scatter) -> Self:
        parents, labels, texts = syntax.step_names(step, len(self), self.domain)
        return self._parts(self._backend.divide(self._sets, step, self._sets.paths.below(parents, texts)), labels)

    def _kept(self, parts: list[int]) -> RowSets:
        """Return some of the sets of rows."""
        return self._backend.divide(self._sets, Keep(tuple(parts)))

    def _parts(self, sets: RowSets, labels: PerPart[str]) -> Self:
        return type(self)(self._backend, sets, labels)

    def _table(self, sets: RowSets) -> ProtectedTable:
        return ProtectedTable(self._backend, sets)


@dataclass(frozen=True)
class Budget:
    """What was spent and what is left, read from the ledger."""

    _backend: Backend
    _sets: RowSets

    @property
    def unit(self) -> Unit:
        """What these are counted in: epsilon, or rho with a delta."""
        return self._backend.unit

    @property
    def buys(self) -> Fraction:
        """The largest epsilon that one answer can be asked for now."""
        return self.unit.buys(self.remaining)

    @property
    def spent(self) -> Fraction:
        """What this analyst has charged to the table, now and before; on a part of it, what the part has cost."""
        return self._backend.spent(self._sets)

    @property
    def remaining(self) -> Fraction:
        """The largest loss that can be charged here now: an epsilon, or in a data set with a delta a rho."""
        return self._backend.remaining(self._sets)[0]

    @property
    def ledger_path(self) -> str:
        """Where the spending is written down."""
        return self._backend.ledger_path

    @property
    def entries(self) -> list[Entry]:
        """This analyst's lines of the ledger."""
        return self._backend.entries()

    def __repr__(self) -> str:
        return f"<budget: {self.unit.text(self.spent)} spent, {self.left}>"

    @property
    def left(self) -> str:
        """What is left, in words."""
        left = f"{self.unit.text(self.remaining)} left"
        if self.unit.delta is None:
            return left
        return f"{left}: one answer of epsilon {short_text(self.buys)} with delta {float(self.unit.delta):g}"


class ProtectedTable(Questions, OpenTable):
    """A private table that answers noisy questions within a budget and shows nothing else."""

    def __init__(self, backend: Backend, sets: RowSets) -> None:
        self._backend, self._sets = backend, sets

    def _with(self, session: Session, sets: RowSets) -> Self:
        assert isinstance(self._backend, InProcess)
        return type(self)(type(self._backend)(session), sets)

    def _answer(self, asked: Asked[R]) -> R:
        return self._ask(asked)[0]

    @property
    def name(self) -> str:
        """The name by which the ledger knows the table."""
        return self._backend.dataset

    @property
    def budget(self) -> Budget:
        """What was spent on this table, or on this part of it, and what is left."""
        return Budget(self._backend, self._sets)

    def explain(self) -> str:
        """Return how questions reach the rows and why so, and whom epsilon protects: no row is looked at."""
        whom = protected(self.domain.person, self.domain.rows_per_person)
        counted = "" if self.unit.delta is None else f", with delta {float(self.unit.delta):g},"
        return f"{self._backend.explain()}\nepsilon{counted} is {whom}"

    def allot(self, epsilon: Epsilon) -> Self:
        """Return the same table with at most `epsilon` to spend, in all its parts together.

        Parameters
        ----------
        epsilon : number, str or Rho
            What an answer may cost in all; nothing is reserved: see `reserve`.
        """
        step = Allot(self._backend.amount(epsilon))
        return type(self)(self._backend, self._backend.divide(self._sets, step))

    def apart(self) -> Self:
        """Return the same table for work that runs beside other work: its noise does not depend on who asks first.

        Where noise is real that changes nothing. Where it is seeded, the draws of each such table repeat.
        """
        return type(self)(self._backend.apart(), self._sets)

    def amount(self, epsilon: Epsilon) -> Fraction:
        """Return what `epsilon` charges here: itself or, in a data set that is counted in rho, a rho."""
        return self._backend.amount(epsilon)

    def spending(self, epsilon: Epsilon) -> Self:
        """Return the same table for a fit that divides `epsilon` among its questions.

        In a data set that is counted in rho, an epsilon e that is asked for inside costs the share e / `epsilon` of the
        rho of `epsilon`. So what adds up to `epsilon` along every path of the fit adds up to that rho. Elsewhere it is
        `allot`.
        """
        scope = self.allot(epsilon)
        return type(self)(self._backend.exchanging(epsilon), scope._sets)

    @contextmanager
    def reserve(self, epsilon: Epsilon) -> Iterator[Self]:
        """Hold `epsilon` for this table until the block ends: nobody else can spend it.

        What was not spent then returns to everybody. An algorithm that chooses between
        branches knows before it starts that the dearest fits.

        Parameters
        ----------
        epsilon : number, str or Rho

        Yields
        ------
        ProtectedTable
            The same rows, with `epsilon` to spend.

        Raises
        ------
        BudgetExceeded
            The table has less than `epsilon` left.
        """
        held = self._backend.amount(epsilon)
        with self._backend.hold(self._sets, held) as backend:
            yield type(self)(backend, backend.divide(self._sets, Allot(held)))

    def where(self, conditions: Mapping[str, object] | None = None, /, **more: object) -> Self:
        """Return the rows that meet all conditions; what is asked of them is charged to this table.

        Parameters
        ----------
        conditions : mapping, optional
            For columns whose names are no Python names: `where({"marital-status": "Divorced"}, sex="Male")`.
        **more
            A value, a set of values, or for numbers a half-open range `(low, high)`, either end None for open.

        Raises
        ------
        QuestionError, UndeclaredDomain
            A condition is none, or its column is not declared.
        """
        return type(self)(self._backend, self.parts().where(conditions, **more)._sets)

    def with_cells(self, domain: Domain, copies: Mapping[str, str] | None = None) -> Self:
        """Return the same rows, with the bins of another domain; what is asked of them is charged to this table.

        A row's bin follows from its place on the declared grid, so other bins ask nothing new of the rows, and every
        question about them is noisy and charged as before. A model over other bins is asked about with its own:
        ``table.with_cells(model.domain).count_correct(model.additive, 0.1)``.

        Parameters
        ----------
        domain : Domain
            This table's domain but for the bins or edges of numeric columns. Columns by whose bins these rows were
            chosen, as a part of a partition, keep theirs.
        copies : mapping of str to str, optional
            Names of further columns at the end of `domain`, and which numeric column each of them reads again, in bins
            of its own. There are none if these rows were chosen by coins, which are a hash of all columns.

        Raises
        ------
        QuestionError
            The domains differ in something else.

        >>> import pandas as pd, privet
        >>> from privet.kernel import Domain, Numeric
        >>> wages = [Domain((Numeric("wage", Fraction(0), Fraction(200), Fraction(1), bins=n),)) for n in (10, 40)]
        >>> table = privet.open(pd.DataFrame({"wage": range(200)}), wages[0], budget=1)
        >>> finer = table.with_cells(wages[1])
        >>> table.histogram("wage", epsilon=0.5).value.shape, finer.histogram("wage", epsilon=0.5).value.shape
        ((10,), (40,))
        >>> table.budget.remaining
        Fraction(0, 1)
        """
        return type(self)(*self._backend.in_cells(self._sets, domain, copies or {}))

    def partition(self, by: SplitLike, edges: Sequence[int | float] | None = None) -> Parts:
        """Return disjoint parts by the values or bins of a column; together they cost what the dearest costs.

        Parameters
        ----------
        by : str, pair or Choice
            A column (its values or bins), a (column, threshold) pair for `column <= threshold`, or what `select`
            released.
        edges : sequence of numbers, optional
            Other bins for a numeric column.

        Raises
        ------
        QuestionError, UndeclaredDomain
            The column is not declared, or cannot be divided so.
        """
        return self.parts().partition(by, edges)

    def parts(self) -> Parts:
        """Return the table as a partition with one part: where a tree starts to grow."""
        return Parts(self._backend, self._sets, PerPart.same(self._sets.paths[0], 1))

    def scatter(self, parts: int, random_state: int) -> Parts:
        """Return disjoint parts by coins that each row tosses for itself, from a public seed.

        Parameters
        ----------
        parts : int
            How many, 1 to 10000.
        random_state : int
            The public seed, from 0 to 2**64 - 1.

        Raises
        ------
        QuestionError
            One of them is out of bounds.
        """
        return self.parts().scatter(parts, random_state)

    def monitor(self, accuracy: float | str | Fraction, epsilon: Epsilon) -> AccuracyMonitor:
        """Ask of one released model after the other whether it classifies this share of the rows right.

        Charged once, here, however many models are tried; it answers up to its first yes.

        Parameters
        ----------
        accuracy : float, str or Fraction
            The share, between 0 and 1.
        epsilon : number, str or Rho
            What the monitor costs.

        Raises
        ------
        BudgetExceeded
            The table has less than `epsilon` left.
        QuestionError
            The share is none, or the domain has no target.
        """
        return self._backend.monitor(self._sets, as_share(accuracy, "an accuracy"), epsilon)

    def receipt(self, released: object) -> str:
        """Return the receipt of a release or a model of this table: what anybody can check offline.

        Parameters
        ----------
        released : release or model
            A model is written down in the ledger first, by its hash, if that was not done yet.

        Returns
        -------
        str
            JSON, for a file such as `answer.json` or `model.json.receipt`: see docs/how-to/receipts.md.

        Raises
        ------
        ReceiptError
            The ledger has no signing key or is in memory, or what is given was not made of its entries.
        QuestionError
            It is neither a release nor a model.
        """
        if isinstance(released, Released):
            if released.about.entry is None:
                raise ReceiptError("it was made of several answers, or of none; ask for the receipt of each.")
            return self._backend.receipt(released.about.entry, None)
        if not isinstance(released, FittedModel):
            raise QuestionError(f"a receipt is of a release or a model, not of {quoted(released)}.")
        text, privacy = released.to_json(), released.privacy
        self.write_down(released)
        assert privacy.entries
        return self._backend.receipt(None, text)

    def write_down(self, model: FittedModel) -> None:
        """Write the hash of a model, and which entries paid for it, into the ledger; a second time does nothing.

        Raises
        ------
        ReceiptError
            The model was not made of entries of a ledger.
        """
        privacy = model.privacy
        if not privacy.entries:
            raise ReceiptError("the model names no entries of a ledger, so there is no receipt of it.")
        facts: dict[str, Json] = {
            "entries": privacy.entries,
            "algorithm": privacy.algorithm,
            "epsilon": str(privacy.epsilon),
            "spent": str(privacy.spent),
        }
        self._backend.write_model(model.to_json(), facts)

    def close(self) -> None:
        """Let go of the engine and its scratch files; the ledger stays."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        raise TypeError("the size of a private table is itself private; ask table.count(epsilon).")

    def __iter__(self) -> NoReturn:
        raise TypeError("the rows of a private table cannot be read; ask questions, or table.partition(column).")

    def __getitem__(self, name: object) -> NoReturn:
        raise TypeError("no column of a private table can be read; ask questions, as table.mean(column, epsilon).")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        who, where = self._backend.describe()
        try:
            left = self.budget.left
        except PrivetError as error:  # a server may refuse to say, as without a permit; a repr never fails
            left = str(error).rstrip(".")
        return (
            f"<ProtectedTable '{self._backend.dataset}' ({self._sets.name}), {len(self.domain.columns)} columns, "
            f"{who}, {left}, {where}>"
        )
