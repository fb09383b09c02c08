"""What is attacked: something that answers questions about rows to people who must not see them.

An attack knows a layer by four verbs. `live` is the table under attack; `open` stores
rows that the attack made up the way the table under attack is stored and opens them, for attacks
that need particular rows. `store` leaves such rows in a file of an owner who is made up too, and
`reopen` opens that file as anybody would. Nothing here looks at a private row.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote

from privet.errors import QuestionError
from privet.kernel import Domain, source_of, text_of
from privet.open_table import open_seeded, open_table

if TYPE_CHECKING:
    import pandas as pd

MEMORY = ":memory:"  # a ledger that is thrown away with its table
_PLANTED = "planted"
_SLICE = 50_000  # rows that are written at once
_TYPES = {
    **{f"int{bits}": name for bits, name in ((8, "TINYINT"), (16, "SMALLINT"), (32, "INTEGER"), (64, "BIGINT"))},
    **{f"uint{bits}": name for bits, name in ((8, "UTINYINT"), (16, "USMALLINT"), (32, "UINTEGER"), (64, "UBIGINT"))},
    **{"float16": "FLOAT", "float32": "FLOAT", "float64": "DOUBLE", "bool": "BOOLEAN"},
}
_READ = {"snapshot": ", read into memory", "stream": ", read in batches"}


SURE = 1e-6  # times that are alike are told apart with this probability


class Clocked(NamedTuple):
    """How well answers about two tables were told apart by their times."""

    unlike: float  # how likely times that are alike would differ so (Mann-Whitney)
    shown: float  # seconds between them that would have been found, beyond `SURE`
    tick: float  # seconds after which answers left


class Layer(Protocol):
    """Something that answers questions about rows to people who must not see them: local tables now, a server later.

    What `live` and `open` return answers like a `ProtectedTable`. The layer closes what `live` returned, an
    attack what `open` returned to it, with `with`.
    """

    @property
    def name(self) -> str:
        """What is attacked, for the report."""
        ...

    def live(self, *, budget: int | str | Fraction) -> Any:
        """The table under attack, with a ledger of its own that is thrown away: never its owner's."""
        ...

    def open(
        self,
        rows: pd.DataFrame,
        domain: Domain,
        *,
        budget: int | str | Fraction,
        analyst: str = "local",
        ledger: Path | None = None,
        seed: int | None = None,
        memory: int | None = None,
    ) -> Any:
        """Rows that an attack made, stored as the table under attack is; with `ledger` their spending goes on there.

        With a `seed` they are opened as a test opens them: the ledger is in memory, and noise can be repeated. With
        `memory` the engine that answers gets so many bytes: how a layer behaves on many rows shows on few.
        """
        ...

    def store(self, rows: pd.DataFrame, folder: Path) -> Path | None:
        """A file of these rows in a folder, of the kind under attack; None where a layer keeps no files."""
        ...

    def reopen(self, file: Path, domain: Domain, **settings: Any) -> Any:
        """A file that `store` made, opened with the settings of `privet.open`; its ledger lies beside it."""
        ...

    def clock(self, plain: pd.DataFrame, neighbour: pd.DataFrame, domain: Domain) -> Clocked | None:
        """How well answers about two tables are told apart by their times; None where nothing hides these."""
        ...


class LocalLayer:
    """A frame, a .csv or .parquet file or a duckdb:/// address, opened in this process.

    Ledgers are in memory or in a temporary folder that goes when the layer is closed, and so are
    the tables of attacks: nothing is written beside the owner's data.

    >>> import pandas as pd
    >>> from privet import Nominal
    >>> domain = Domain((Nominal("sex", ("f", "m")),))
    >>> with LocalLayer(pd.DataFrame({"sex": ["f", "m", "m"]}), domain) as layer:
    ...     layer.name, layer.live(budget=1).budget
    ('a frame', <budget: 0 spent, 1 left>)
    """

    def __init__(self, source: Any, domain: Domain | str | Path, *, access: str = "push-down") -> None:
        self.source = source
        self.domain = domain if isinstance(domain, Domain) else Domain.load(domain)
        self.access = access
        self._kind, self.name = _described(source, access)
        self._scratch = tempfile.TemporaryDirectory(prefix="privet-attacks-")
        self._live: dict[object, Any] = {}

    @property
    def in_memory(self) -> bool:
        """True of a frame: there is one path to its rows."""
        return self._kind == "frame"

    def live(self, *, budget: int | str | Fraction) -> Any:
        """The table under attack; opened once for each budget, because opening reads every row."""
        if budget not in self._live:
            self._live[budget] = open_table(
                self.source, self.domain, budget=budget, ledger=MEMORY, access=self.access, ignore_spending=True
            )
        return self._live[budget]

    def open(
        self,
        rows: pd.DataFrame,
        domain: Domain,
        *,
        budget: int | str | Fraction,
        analyst: str = "local",
        ledger: Path | None = None,
        seed: int | None = None,
        memory: int | None = None,
    ) -> Any:
        """Rows of an attack, stored and opened as the table under attack; with a `seed`, as a test opens it."""
        if seed is not None:
            stored = self._stored_apart(rows)
            return open_seeded(stored, domain, budget, seed=seed, name=_PLANTED, analyst=analyst, access=self.access)
        stored = self._stored(rows)
        table = open_table(
            stored,
            domain,
            budget=budget,
            ledger=ledger or MEMORY,
            name=_PLANTED,
            analyst=analyst,
            access=self.access,
            ignore_spending=True,  # the rows are the attack's own
        )
        if memory is not None:
            limit_memory(table, memory)
        return table

    def store(self, rows: pd.DataFrame, folder: Path) -> Path | None:
        """A file of these rows; None where the table under attack is a frame."""
        if self._kind == "frame":
            return None
        file = folder / f"{_PLANTED}.{self._kind}"
        _write(rows, file)
        return file

    def reopen(self, file: Path, domain: Domain, **settings: Any) -> Any:
        """A file that `store` made, by its address."""
        return open_table(self._address(file), domain, access=self.access, **settings)

    def clock(self, plain: pd.DataFrame, neighbour: pd.DataFrame, domain: Domain) -> Clocked | None:
        """None: here nothing hides how long an answer takes, and steps are counted instead."""
        return None

    def close(self) -> None:
        """Close the table under attack and remove all that was written."""
        for table in self._live.values():
            table.close()
        self._live.clear()
        self._scratch.cleanup()

    def __enter__(self) -> LocalLayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored(self, rows: pd.DataFrame) -> Any:
        """Where the rows are now; the same rows are at the same place, so that a ledger knows them again."""
        if self._kind == "frame":
            return rows
        content = repr((_columns(rows), rows.dtypes.tolist()))
        place = Path(self._scratch.name, hashlib.sha256(content.encode(errors="backslashreplace")).hexdigest())
        if not place.exists():
            place.mkdir()
            self.store(rows, place)
        return self._address(place / f"{_PLANTED}.{self._kind}")

    def _stored_apart(self, rows: pd.DataFrame) -> Any:
        """The rows in a file that nobody has spent on: a seed is refused where a ledger lies beside the rows."""
        file = self.store(rows, Path(tempfile.mkdtemp(dir=self._scratch.name)))
        return self._stored(rows) if file is None else self._address(file)

    def _address(self, file: Path) -> Any:
        return f"duckdb:///{quote(str(file))}?table={_PLANTED}" if self._kind == "duckdb" else file


def _described(source: Any, access: str) -> tuple[str, str]:
    """How a table is stored, and what to call it in a report."""
    if isinstance(source, str | Path):
        found = source_of(source)
        if not found.remote:
            return found.kind, f"{found.label}{_READ.get(access, '')}"
    elif not any(each.__module__.startswith("pyspark.") for each in type(source).__mro__):
        return "frame", "a frame"
    raise QuestionError(
        "attacks store rows of their own as the table is stored, and privet writes to no server and to no Spark: run "
        "them on a file, a DuckDB table or a frame in memory."
    )


def limit_memory(table: Any, size: int) -> None:
    """Let the DuckDB that answers for an open table have so many bytes; a table of another engine stays as it is.

    For attacks and tests on tables that they made: what a table needs where memory is short must not depend on it.
    """
    engine = table._session.engine
    owner = getattr(getattr(engine, "_close", None), "__self__", engine)  # of an engine that reads it in batches
    connection: Any = getattr(owner, "_connection", None)
    if type(connection).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        connection.execute(f"SET memory_limit = '{size // 1000}KB'")


def _columns(rows: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): rows[name].astype(object).tolist() for name in rows.columns}


def _write(rows: pd.DataFrame, file: Path) -> None:
    """Rows as a CSV file, a DuckDB table or a Parquet file, each column in the narrowest type that holds its values."""
    import duckdb

    if file.suffix == ".csv":
        rows.to_csv(file, index=False)
        return
    columns = _columns(rows)
    types = {name: _declared(rows[name]) or _type(values) for name, values in columns.items()}
    declared = ", ".join(f"{_quoted(name)} {each}" for name, each in types.items())
    cells = {
        name: [text_of(value) for value in values] if types[name] == "VARCHAR" else values
        for name, values in columns.items()
    }
    with duckdb.connect(str(file) if file.suffix == ".duckdb" else MEMORY) as connection:
        connection.execute(f"CREATE TABLE {_PLANTED} ({declared})")
        for start in range(0, len(rows), _SLICE):
            block = [cells[name][start : start + _SLICE] for name in types]
            slots = ", ".join(f"unnest(CAST(? AS {each}[]))" for each in types.values())
            connection.execute(f"INSERT INTO {_PLANTED} SELECT {slots}", block)
        if file.suffix == ".parquet":
            place = str(file).replace("'", "''")
            connection.execute(f"COPY {_PLANTED} TO '{place}' (FORMAT parquet)")


def _declared(column: pd.Series) -> str | None:
    """The type of a column that has one of its own, as a narrow integer."""
    return _TYPES.get(str(column.dtype).lower())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        largest = max(abs(value) for value in values if value is not None)
        return "BIGINT" if largest < 2**63 else "HUGEINT" if largest < 2**127 else "VARCHAR"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"
