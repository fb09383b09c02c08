"""`privet serve`: the rows stay here, and analysts ask over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.common import (
    AccessOption,
    BudgetOption,
    LedgerOption,
    LimitOption,
    NameOption,
    OptionalDomainOption,
    lasting_ledger,
    say,
    warn_if_large,
)
from privet.errors import QuestionError
from privet.kernel import source_of
from privet.text import shown

if TYPE_CHECKING:
    from privet.service.running import Running


def serve(
    target: Annotated[
        str, typer.Argument(metavar="CONFIG|DATA", help="A configuration, privet.toml; or one table, with --domain.")
    ],
    domain: OptionalDomainOption = None,
    budget: BudgetOption = None,
    delta: Annotated[
        str | None, typer.Option(help="Count the budget with this delta, as 1e-6: far below one over the rows.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")
    ] = None,
    tick: Annotated[
        float | None,
        typer.Option(min=0, max=60, help="Seconds after which answers leave; else by max_rows of the domain."),
    ] = None,
    ledger: LedgerOption = None,
    name: NameOption = None,
    access: AccessOption = "auto",
    snapshot_limit: LimitOption = None,
) -> None:
    """Serve private tables to analysts, who ask and fit from other machines and never see a row.

    A configuration names tables, analysts, TLS and limits (docs/how-to/server.md). Without one, a single table is
    served to this machine alone, and the first token is printed once. SIGTERM or Ctrl-C finishes what was charged and
    stops; SIGHUP reads the grants of the configuration again.

    \b
    Examples:
      privet serve people.csv --domain people.toml --budget 1
      privet serve privet.toml
    """
    try:
        from privet.service import config as configuration
        from privet.service.running import serve as run
    except ModuleNotFoundError as error:
        raise QuestionError(f"a server needs {error.name}: pip install 'privet[server]'.") from None
    if domain is None and target.lower().endswith(".toml"):
        given: dict[str, object] = {"--budget": budget, "--ledger": ledger, "--name": name}
        given |= {"--snapshot-limit": snapshot_limit, "--delta": delta}
        given |= {"--address": address, "--access": None if access == "auto" else access, "--tick": tick}
        for option, value in given.items():
            if value is not None:
                raise QuestionError(f"a configuration says all there is to say; leave out {option}.")
        settings = configuration.load(Path(target))
    else:
        if domain is None:
            raise QuestionError("a table is served with its public domain; give --domain FILE, or a configuration.")
        warn_if_large(budget=budget)
        served = name or source_of(target).name
        if served in (".", "..") or any(sign in served for sign in "/\\%\0"):
            raise QuestionError(
                f"a server has a path for each table, and '{shown(served)}' can stand in none; give it a --name "
                "without the signs / \\ %."
            )
        table = configuration.TableConfig(name or "", target, str(domain), budget, delta, access, snapshot_limit, tick)
        host, port = configuration.address_of(address or "127.0.0.1:8000", "--address")
        settings = configuration.Config((table,), lasting_ledger(ledger, False), host, port).check()
    run(settings, _ready)


def _ready(running: Running, token: str | None) -> None:
    """Say where the server is; the first token is a result, and goes to standard output."""
    for name in running.service.sessions:
        say(f"serving '{name}' at {running.url}")
    say(f"console for a browser: {running.url}/console/")
    if running.service.config.operations is not None:
        say(f"health and metrics at {running.operations_url}")
    if token is not None:
        say("the token of 'analyst', shown once:")
        print(token, flush=True)
    elif running.service.config.path is None:
        say("tokens were made before; `privet token create` makes another")
