"""ProtectedTable: what an analyst holds instead of the rows. Its questions are those of a partition with one part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn, Self

from privet.errors import QuestionError
from privet.kernel import conditions
from privet.kernel.accounting import Scope, as_epsilon
from privet.kernel.additive import AdditiveModel
from privet.kernel.column import decimal_text
from privet.kernel.criteria import Criterion
from privet.kernel.domain import Domain
from privet.kernel.mechanisms import AboveThreshold
from privet.kernel.monitor import Monitor
from privet.kernel.parts import Candidate, Competitor, Epsilon, Parts, SplitLike, refuse_copy
from privet.kernel.release import Choice, Count, Histogram, Mean, Quantile, ResidualSums, Sum
from privet.kernel.rows import Rows
from privet.kernel.session import Budget, Session


class ProtectedTable:
    """A private table that answers noisy questions within a budget and shows nothing else."""

    def __init__(self, session: Session, rows: Rows, scope: Scope, path: str = "all rows") -> None:
        self._session = session
        self._rows = rows
        self._scope = scope
        self._path = path

    @property
    def domain(self) -> Domain:
        return self._session.domain

    @property
    def budget(self) -> Budget:
        """What was spent on this table, or on this part of it, and what is left."""
        return Budget(self._session, self._scope)

    def explain(self) -> str:
        """How questions reach the rows, and why so: from the domain and the address alone, no row is looked at."""
        access = self._session.access
        return f"{self._session.engine.name} engine, {access or 'in memory'}"

    def allot(self, epsilon: Epsilon) -> ProtectedTable:
        """The same table with at most `epsilon` to spend, in all its parts together."""
        return ProtectedTable(self._session, self._rows, self._scope.allot(as_epsilon(epsilon)), self._path)

    @contextmanager
    def reserve(self, epsilon: Epsilon) -> Iterator[Self]:
        """The same table with `epsilon` to spend, held for it until the block ends: nobody else can spend it.

        What was not spent then returns to everybody. An algorithm that chooses between
        branches knows before it starts that the dearest fits.
        """
        held = as_epsilon(epsilon)
        with self._session.reserved(self._scope, held) as session:
            yield type(self)(session, self._rows, self._scope.allot(held), self._path)

    def where(self, conditions: Mapping[str, object] | None = None, /, **more: object) -> ProtectedTable:
        """The rows that meet all conditions; what is asked of them is charged to this table.

        A condition is a value, a set of values, or for numbers a half-open range
        `(low, high)`, either end None for open. Columns whose names are no Python
        names go into a mapping: `where({"marital-status": "Divorced"}, sex="Male")`.
        """
        (kept,) = self._alone.where(conditions, **more)
        return ProtectedTable(self._session, kept._rows, self._scope, kept._path)

    def partition(self, by: SplitLike, edges: Sequence[int | float] | None = None) -> Parts:
        """Disjoint parts by the values or bins of a column; together they cost what the dearest costs."""
        return self._alone.partition(by, edges)

    def parts(self) -> Parts:
        """The table as a partition with one part: where a tree starts to grow."""
        return self._alone

    def scatter(self, parts: int, random_state: int) -> Parts:
        """Disjoint parts by coins that each row tosses for itself, from a public seed."""
        return self._alone.scatter(parts, random_state)

    def count(self, epsilon: Epsilon, *, key: str | None = None) -> Count:
        """How many rows there are."""
        return self._alone.count(epsilon, key=key)[0]

    def histogram(self, *columns: str, epsilon: Epsilon, key: str | None = None) -> Histogram:
        """Counts over all cells of some columns, empty ones included."""
        return self._alone.histogram(*columns, epsilon=epsilon, key=key)[0]

    def majority(self, column: str, epsilon: Epsilon, *, key: str | None = None) -> Choice:
        """The most frequent cell of a column."""
        return self._alone.majority(column, epsilon, key=key)[0]

    def sum(self, column: str, epsilon: Epsilon, *, key: str | None = None) -> Sum:
        """The sum of a numeric column over the rows that have a value; values are clamped to the bounds."""
        return self._alone.sum(column, epsilon, key=key)[0]

    def mean(self, column: str, epsilon: Epsilon, *, key: str | None = None) -> Mean:
        """The mean of a numeric column over the rows that have a value."""
        return self._alone.mean(column, epsilon, key=key)[0]

    def median(self, column: str, epsilon: Epsilon, *, key: str | None = None) -> Quantile:
        """The median of a numeric column over the rows that have a value."""
        return self._alone.median(column, epsilon, key=key)[0]

    def quantile(self, column: str, rank: float | Fraction, epsilon: Epsilon, *, key: str | None = None) -> Quantile:
        """A value below which about a share `rank` of the rows that have a value lies."""
        return self._alone.quantile(column, rank, epsilon, key=key)[0]

    def select(
        self,
        criterion: str | Criterion,
        epsilon: Epsilon,
        *,
        attributes: Sequence[Candidate] | None = None,
        thresholds: bool = False,
        mechanism: str = "permute-and-flip",
        monotone: bool = True,
        key: str | None = None,
    ) -> Choice:
        """The best attribute for predicting the target; with `thresholds` jointly with a threshold for numbers."""
        return self._alone.select(
            criterion,
            epsilon,
            attributes=attributes,
            thresholds=thresholds,
            mechanism=mechanism,
            monotone=monotone,
            key=key,
        )[0]

    def select_residuals(
        self,
        model: AdditiveModel,
        tables: Sequence[tuple[str, ...]],
        caps: Sequence[int],
        epsilon: Epsilon,
        *,
        key: str | None = None,
    ) -> Choice:
        """Of several tables of one or two columns, the one in which a released model errs most."""
        return self._alone.select_residuals(model, tables, caps, epsilon, key=key)[0]

    def residual_sums(
        self,
        model: AdditiveModel,
        table: tuple[str, ...],
        caps: Sequence[int],
        epsilon: Epsilon,
        *,
        key: str | None = None,
    ) -> ResidualSums:
        """Sums of the clipped residuals of a released model in every cell of one table of columns."""
        return self._alone.residual_sums(model, table, caps, epsilon, key=key)[0]

    def count_correct(self, model: AdditiveModel, epsilon: Epsilon, *, key: str | None = None) -> Count:
        """How many rows a released model classifies right; of equal logits the class declared first counts."""
        return self._alone.count_correct(model, epsilon, key=key)[0]

    def best(self, candidates: Mapping[str, Competitor], epsilon: Epsilon, *, key: str | None = None) -> Choice:
        """Of several candidates the name of the one with the most rows: those that a released model classifies
        right, or those that meet conditions as `where` takes them.
        """
        return self._alone.best(candidates, epsilon, key=key)[0]

    def monitor(self, accuracy: float | str | Fraction, epsilon: Epsilon) -> Monitor:
        """Ask of one released model after the other whether it classifies this share of the rows right.

        Charged once, here, however many models are tried; it answers up to its first yes.
        """
        if len(self.domain.classes) < 2:
            raise QuestionError("a monitor needs a target with at least two classes.")
        share = conditions.share(accuracy, "an accuracy")
        rise, fall = share.denominator - share.numerator, share.numerator  # of `exact_lead`, for one record
        parts = self._alone
        (each,) = parts._shares(epsilon)
        mechanism = AboveThreshold(each, max(rise, fall), rise + fall)
        paid_for = self._session.engine.version if self._scope.shares else None
        _, (about,) = parts._ask(f"monitor({decimal_text(share)})", (), [mechanism], lambda: ["begun"], None)
        return Monitor(self._session, self._rows, share, mechanism, about, paid_for)

    def close(self) -> None:
        """Let go of the engine and its scratch files; the ledger stays."""
        self._session.engine.close()

    def __enter__(self) -> ProtectedTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        raise TypeError("the size of a private table is itself private; ask table.count(epsilon).")

    def __iter__(self) -> NoReturn:
        raise TypeError("the rows of a private table cannot be read; ask questions, or table.partition(column).")

    def __bool__(self) -> bool:
        return True

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        refuse_copy()

    def __repr__(self) -> str:
        session = self._session
        ledger = (
            f"ledger '{session.ledger.path}'" if session.ledger.durable else "ledger in memory, gone with the process"
        )
        return (
            f"<ProtectedTable '{session.dataset}' ({self._path}), {len(self.domain.columns)} columns, analyst "
            f"'{session.analyst}', {decimal_text(self.budget.remaining)} left, {ledger}>"
        )

    @property
    def _alone(self) -> Parts:
        return Parts(self._session, self._rows, [self._scope], [self._path], [self._path])


class PublicTable(ProtectedTable):
    """Public rows behind the same methods: `epsilon=inf` answers exactly, and what papers did wrong can be shown."""

    def bootstrap(self, seed: int) -> PublicTable:
        """As many rows drawn with replacement, as MaxForest and bagging do: a row may count many times."""
        engine = self._session.engine.resampled(seed)  # type: ignore[attr-defined]
        name, own = f"bootstrap {seed}", self._session
        session = replace(own, engine=engine, source=f"{own.source} {name}", opening=f"{own.opening} {name}")
        return PublicTable(session, Rows(), self._scope, name)

    def allot(self, epsilon: Epsilon) -> PublicTable:
        return PublicTable(self._session, self._rows, self._scope.allot(as_epsilon(epsilon)), self._path)
