"""Opening a table: `privet.open`, and the same with noise that repeats, for tests."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from privet.domain_file import load
from privet.kernel import Domain, Ledger, open_session
from privet.table import InProcess, ProtectedTable


def open_table(
    data: Any,
    domain: Domain | str | Path,
    budget: int | float | str | Fraction | None = None,
    ledger: str | Path | Ledger | None = None,
    name: str | None = None,
    analyst: str = "local",
    access: str = "auto",
    snapshot_limit: int | str | None = None,
    ignore_spending: bool = False,
    delta: int | float | str | Fraction | None = None,
) -> ProtectedTable:
    """Open a private table to an analyst.

    A file is read and coded here, and a table on a server checked, so that whatever is
    wrong with it is told to whoever opens it and not to an analyst who pays for a question.

    Parameters
    ----------
    data : str, Path or frame
        A .csv or .parquet file, `duckdb:///file.db?table=t`, `postgresql://user@host/database?table=t`, `mssql://...`,
        `spark:///?table=t`, or a pandas, polars, Arrow or Spark frame.
    domain : Domain, str or Path
        The public description of the table, or its file.
    budget : number or str, optional
        What may be spent on the data set in all. It is needed at the first opening, and recorded.
    ledger : str, Path or Ledger, optional
        Where charges are written. Default: beside a file or a DuckDB table, in memory for a frame; a table on a server
        or on Spark needs one. If it is elsewhere than beside a file, a link to it is left there.
    name : str, optional
        The data set's name in the ledger. Default: the recorded one, else the name of the file or table.
    analyst : str, default "local"
    access : {"auto", "snapshot", "stream", "push-down"}, default "auto"
        How questions reach the rows; `table.explain()` says which was taken and why.
    snapshot_limit : int or str, optional
        With "auto", merge a table that the domain bounds by this, "200MB" or a number of bytes, into memory. Default:
        64 MB for a file, nothing for a table on a server.
    ignore_spending : bool, default False
        Open although another ledger records spending on the data, which is then not counted. For the owner.
    delta : number or str, optional
        With one, far below one over the number of rows, the budget is (epsilon, delta): spending is counted in rho
        (zero-concentrated differential privacy), numbers get discrete Gaussian noise, and an epsilon that is asked for
        means what that answer alone would cost with this delta. The ledger records it at the first opening.

    Returns
    -------
    ProtectedTable

    Raises
    ------
    DataError
        If the data cannot be read, or lack a declared column.
    LedgerError
        If there is no budget yet, or the ledger cannot be used.
    PrivacyError
        If spending would not be counted, the domain or the delta is not the recorded one, or the budget is above the
        recorded one.

    >>> import pandas as pd
    >>> from privet.kernel import Nominal
    >>> frame = pd.DataFrame({"sex": ["Female"] * 60 + ["Male"] * 40})
    >>> table = open_table(frame, Domain((Nominal("sex", ("Female", "Male")),)), budget="1.0")
    >>> table.where(sex="Female").count(0.5).interval(0.999)[1] > 40
    True
    >>> table.budget.remaining
    Fraction(1, 2)
    >>> smooth = open_table(frame, table.domain, budget="1.0", delta="1e-6")
    >>> smooth.count(0.5).delta, smooth.budget
    (Fraction(1, 1000000), <budget: rho 0.00664152 spent, rho 0.0177144 left: one answer of epsilon 0.843417 with \
delta 1e-06>)
    """
    declared = load(domain) if isinstance(domain, str | Path) else domain
    session = open_session(
        data,
        declared,
        budget,
        ledger,
        name,
        analyst,
        access,
        snapshot_limit,
        ignore_spending=ignore_spending,
        delta=delta,
    )
    return ProtectedTable(InProcess(session), session.whole_table())


def open_seeded(
    data: Any,
    domain: Domain | str | Path,
    budget: int | float | str | Fraction | None = None,
    *,
    seed: int,
    name: str | None = None,
    analyst: str = "local",
    access: str = "auto",
    snapshot_limit: int | str | None = None,
    delta: int | float | str | Fraction | None = None,
) -> ProtectedTable:
    """Open a table with noise that a seed repeats, its ledger in memory. For tests: nothing made with it is private.

    Parameters
    ----------
    data, domain, budget, name, analyst, access, snapshot_limit, delta
        As for `privet.open`.
    seed : int
        At or above 0.

    Returns
    -------
    ProtectedTable

    Raises
    ------
    PrivacyError
        Where a ledger lies beside the data: its rows are somebody's, and seeded noise hides nothing of them.
    """
    declared = load(domain) if isinstance(domain, str | Path) else domain
    session = open_session(data, declared, budget, None, name, analyst, access, snapshot_limit, seed, delta=delta)
    return ProtectedTable(InProcess(session), session.whole_table())
