"""Opening a table: where the rows are, which ledger pays, who asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.access import IN_MEMORY, SNAPSHOT, STREAM, Access, check, choose, size_of
from privet.errors import DataError, PrivacyError, QuestionError, UndeclaredDomain
from privet.kernel.accounting import unit_with
from privet.kernel.column import Numeric
from privet.kernel.domain import Domain
from privet.kernel.engines.addresses import source_of, spark_frame
from privet.kernel.engines.contract import Engine, reworded
from privet.kernel.ledger import MEMORY, Ledger
from privet.kernel.ledger.ledger import no_budget
from privet.kernel.mechanisms import SYSTEM, Entropy, SeededEntropy
from privet.kernel.public_values import LONGEST_NAME, is_name
from privet.kernel.session import Session
from privet.kernel.zcdp import as_delta
from privet.text import is_path, quoted

if TYPE_CHECKING:
    from privet.kernel.engines.sql.statement import Source

# Read when a frame is opened, and by nothing else: a table that is open keeps the source that it has.
_seeded: ContextVar[SeededEntropy | None] = ContextVar("seeded", default=None)


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Open frames inside with noise that the seed repeats. For tests: nothing made with these tables is private.

    One generator serves all tables that the block opens, and serves them also after it. A table that was opened
    before keeps the noise that it has. What is not a frame with its ledger in memory is refused inside.

    Parameters
    ----------
    seed : int
        At or above 0.
    """
    token = _seeded.set(SeededEntropy(seed))
    try:
        yield
    finally:
        _seeded.reset(token)


def open_session(
    data: Any,
    domain: Domain,
    budget: int | float | str | Fraction | None,
    ledger: str | Path | Ledger | None,
    name: str | None,
    analyst: str,
    access: str,
    snapshot_limit: int | str | None,
    seed: int | None = None,
    ignore_spending: bool = False,
    delta: int | float | str | Fraction | None = None,
) -> Session:
    """Open a private table to an analyst: `privet.open` lists the parameters, and what is refused.

    With a seed the noise repeats, and the ledger is in memory. Without one noise comes from the operating system, or
    from the block of a test.
    """
    if seed is not None:
        _refuse_owned(data)
        ledger = MEMORY
    if not isinstance(domain, Domain):
        raise UndeclaredDomain("a table is opened with a public domain; pass a Domain or the path of a domain file.")
    for word, text in (("analyst", analyst), ("name", name)):
        if text is not None and not is_name(text):
            raise QuestionError(f"{word} must be a printable text of 1 to {LONGEST_NAME} characters.")
    if ledger is not None and not isinstance(ledger, str | Path | Ledger):
        raise QuestionError(f"ledger is the path of a file or the address of a server, not {quoted(ledger)}.")
    unit = unit_with(None if delta is None else as_delta(delta))
    allowed = None if budget is None else unit.amount(budget, "budget")
    largest = None if snapshot_limit is None else size_of(snapshot_limit)
    source = source_of(data) if isinstance(data, str | Path) else spark_frame(data)
    if source is None:
        _check_frame(data)
    dataset = name or (source.name if source else "frame")
    chosen = ledger if ledger is not None else source.ledger if source else MEMORY
    entropy = _entropy_here(dataset, source, chosen) if seed is None else SeededEntropy(seed)
    beside = source.ledger if source and not source.remote else None
    continued = beside is not None and os.path.lexists(beside)
    if beside is not None and not ignore_spending:
        _refuse_uncounted(beside, chosen)
    if allowed is None and not (isinstance(chosen, Ledger) or Ledger.on_server(chosen) or _is_there(chosen)):
        raise no_budget(dataset)

    # The engine first: a ledger must not be made for a table that cannot be opened.
    engine, way = _engine(source, data, domain, access, largest)
    address = source.address if source else f"frame {dataset}"
    try:
        book = chosen if isinstance(chosen, Ledger) else Ledger.open(chosen, create=allowed is not None)
        aliases: list[str] = []
        if beside is not None:
            if continued and not ignore_spending:
                _refuse_unknown(beside, book)
            aliases = _aliases(beside, address, book, links=not ignore_spending)
        if name is None:
            dataset = book.name_of([address, *aliases]) or dataset
        terms = book.register(dataset, source=address, budget=allowed, domain=domain, aliases=aliases, delta=unit.delta)
        if beside is not None and book.durable:
            with suppress(OSError):  # a link for whoever opens the data again, where one can be made
                beside.symlink_to(Ledger.identity_of(book))
            if not ignore_spending:
                _refuse_uncounted(beside, book)  # somebody else may have been faster
    except BaseException:
        engine.close()
        raise
    recorded = book.cap(dataset)
    limit = allowed if allowed is not None and recorded is not None and allowed < recorded else None
    return Session(domain, engine, book, dataset, address, analyst, entropy, limit, access=way, terms=terms, unit=unit)


def _refuse_owned(data: Any) -> None:
    """Refuse data with a ledger beside them: their rows are somebody's, and seeded noise hides nothing of them."""
    source = source_of(data) if isinstance(data, str | Path) else None
    if source is not None and not source.remote and source.ledger.exists():
        raise PrivacyError(
            f"{source.title} has a ledger beside it, so its rows are somebody's: seeded noise would hide nothing of "
            "them. Test with rows that you made."
        )


def _is_there(ledger: str | Path) -> bool:
    """Is there a ledger, or a name that none can have? That is told by whoever opens it."""
    return not is_path(ledger) or os.path.lexists(ledger)


def session_in_memory(
    frame: Any,
    domain: Domain,
    budget: Fraction,
    entropy: Entropy | None = None,
    name: str = "frame",
    delta: Fraction | None = None,
) -> Session:
    """Return a session about a frame that the caller made, its ledger in memory. For `privet.lab` alone.

    Parameters
    ----------
    frame : frame
    domain : Domain
    budget : Fraction
    entropy : Entropy, optional
        Default: that of the block of a test, else the operating system's.
    name : str, default "frame"
        Of the data set.
    delta : Fraction, optional
        With one it is counted in rho, and so is `budget`.
    """
    if isinstance(frame, str | Path) or spark_frame(frame) is not None:
        raise QuestionError("this is for rows that you made; pass them as a frame.")
    _check_frame(frame)
    book = Ledger.open(MEMORY)
    terms = book.register(name, source=name, budget=budget, domain=domain, delta=delta)
    entropy, unit = entropy or _seeded.get() or SYSTEM, unit_with(delta)
    return Session(domain, _coded_frame(frame, domain), book, name, name, "local", entropy, terms=terms, unit=unit)


def _entropy_here(dataset: str, source: Source | None, ledger: str | Path | Ledger) -> Entropy:
    """The operating system; in the block of a test its generator, for a frame whose ledger is in memory."""
    seeded = _seeded.get()
    if seeded is None:
        return SYSTEM
    durable = ledger.durable if isinstance(ledger, Ledger) else str(ledger) != MEMORY
    if source is not None or durable:
        raise PrivacyError(
            f"cannot open '{dataset}' here: seeded_noise is for frames whose ledger is in memory. Open it outside the "
            "block, or with privet.testing.open(..., seed=)."
        )
    return seeded


def refuse_spent(data: str | Path) -> None:
    """Refuse to read a file as public rows where a ledger says that it is private.

    Parameters
    ----------
    data : str or Path
        A file or an address, as `open_table` takes it; tables on servers have no ledger beside them.

    Raises
    ------
    PrivacyError
        If its spending is recorded, or may be recorded under another name of the file.
    """
    source = source_of(data)
    if not source.remote:
        _refuse_uncounted(source.ledger, MEMORY, "leave out --unsafe")


_INSIST = "with `privet query` or `privet fit` and --ignore-spending, in Python ignore_spending=True"


def _refuse_uncounted(beside: Path, chosen: str | Path | Ledger, instead: str = "use that ledger") -> None:
    """Refuse a ledger that would not count what was spent on a file: its spending is recorded in one place.

    `beside` is the place for its ledger: the ledger itself, or a link to it. A file with several hard links has
    several such places.
    """
    file = _beside(beside)
    mend = f"as the owner of the data, go on without it {_INSIST}"
    continued = os.path.lexists(beside)
    if continued and Ledger.identity_of(chosen) != (recorded := Ledger.identity_of(beside)):
        raise PrivacyError(
            f"what was spent on '{file}' is recorded in '{recorded}', and would not be counted; {instead}, or, {mend}."
        )
    links, elsewhere = _hard_links(file)
    for other in links:
        recorded_there = other.with_name(other.name + ".ledger")
        if os.path.lexists(recorded_there) and Ledger.identity_of(chosen) != Ledger.identity_of(recorded_there):
            raise PrivacyError(
                f"'{file}' is the same file as '{other}', on which spending is recorded; open it by that name, or, "
                f"{mend}."
            )
    if elsewhere and not continued:  # a ledger that is there may know the file: see `_refuse_unknown`
        raise _linked_elsewhere(file)


def _refuse_unknown(beside: Path, book: Ledger) -> None:
    """Refuse a file whose ledger was begun for another one: under which name it was spent on, nobody can tell."""
    file = _beside(beside)
    if book.datasets() and not any(book.knows_file(name) for name in _names(beside, book)):
        raise PrivacyError(
            f"the ledger '{book.path}' beside '{file}' does not know this file, so one of them was moved or renamed "
            f"without the other; put it back, or, as the owner of the data, open it under its recorded name {_INSIST}."
        )
    if _hard_links(file)[1] and not any(book.knows_file(_inode(name, file)) for name in _names(beside, book)):
        raise _linked_elsewhere(file)


def _linked_elsewhere(file: Path) -> PrivacyError:
    return PrivacyError(
        f"'{file}' has another name (a hard link) in another folder, where its spending may be recorded. If it was "
        f"opened there, open it by that name; if it was never opened, as the owner of the data, go on without it "
        f"{_INSIST}: its ledger is then kept here."
    )


def _beside(ledger: Path) -> Path:
    """The file that a ledger lies beside."""
    return ledger.with_name(ledger.name.removesuffix(".ledger"))


def _names(beside: Path, book: Ledger) -> list[str]:
    """What a ledger calls a file: its path; and in the ledger beside it "its file", also after both were moved."""
    return [str(_beside(beside)), *(["its file"] if Ledger.identity_of(book) == str(beside) else [])]


def _inode(name: str, file: Path) -> str:
    """What a ledger calls a file until another is put in its place."""
    return f"inode {file.stat().st_ino} of {name}"


def _aliases(beside: Path, address: str, book: Ledger, links: bool) -> list[str]:
    """All that a ledger may know a file by, or a table in it, besides its address."""
    file = _beside(beside)
    names = [alias for name in _names(beside, book) for alias in (name, _inode(name, file))]
    if links:
        names += [str(other) for other in _hard_links(file)[0]]
    table = address.removeprefix(str(file))
    return [name + table for name in names]


def _hard_links(file: Path) -> tuple[list[Path], bool]:
    """The other names of a file in its folder, and whether it has more in other folders."""
    others = file.stat().st_nlink - 1
    links = []
    for name in sorted(os.listdir(file.parent)) if others else ():
        other = file.with_name(name)
        with suppress(OSError):
            if other != file and not other.is_symlink() and other.samefile(file):
                links.append(other)
    return links, others > len(links)


def _engine(source: Source | None, data: Any, domain: Domain, asked: str, limit: int | None) -> tuple[Engine, Access]:
    if source is None:
        check(asked, limit)
        return _coded_frame(data, domain), Access(IN_MEMORY, "a frame is in memory already")
    bound = largest_table(domain)
    way = choose(asked, bound, remote=source.remote, streams=source.streams, limit=limit, kind=source.kind)
    engine = source.open(domain)
    if way.how == STREAM:
        from privet.kernel.engines.duckdb.engine import DuckDBEngine

        assert isinstance(engine, DuckDBEngine)
        return engine.stream(), way
    if way.how != SNAPSHOT:
        return engine, way
    try:
        merged = engine.snapshot()
    except Exception:  # the engine's words may quote a row: the error below is raised outside this block
        merged = None
    engine.close()
    if merged is None:
        raise DataError(f"cannot read {source.title} into memory; check it, or open it with access='push-down'.")
    return merged, way


def largest_table(domain: Domain) -> float:
    """Return the most bytes that distinct coded rows may take, by what the domain declares."""
    width = 8  # the weight
    distinct = 1.0
    for column in domain:
        width += 1 if column.size <= 2**8 else 2 if column.size <= 2**16 else 4
        distinct *= column.size
        if isinstance(column, Numeric):
            width += 4
            distinct *= column.grid_size / column.bin_count + column.missing
    rows = [distinct]
    rows += [domain.max_rows] if domain.max_rows is not None else []
    rows += [2 * domain.rows] if domain.rows is not None else []  # a round number: twice as many are allowed for
    return width * min(rows)


def _check_frame(data: Any) -> None:
    if type(data).__name__ == "LazyFrame" or not hasattr(data, "columns"):
        raise DataError(f"cannot open a {type(data).__name__}; pass a file name, the address of a table or a frame.")


def _coded_frame(frame: Any, domain: Domain) -> Engine:
    from privet.kernel.engines.memory.engine import MemoryEngine  # with the first frame: numba takes long to import

    problem = "cannot read the frame; check that its declared columns hold texts, numbers and booleans."
    with np.errstate(all="ignore"):  # else a caller's settings could make a number of a row an error
        return reworded(lambda: MemoryEngine.from_frame(frame, domain), Exception, lambda _: problem)
