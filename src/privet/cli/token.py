"""`privet token`: who may ask a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.budget import open_book
from privet.cli.common import STYLE, JsonOption, print_json, say
from privet.errors import QuestionError, did_you_mean
from privet.kernel import Ledger

if TYPE_CHECKING:
    from privet.service.tokens import Token, Tokens

app = typer.Typer(help="Tokens, by which analysts and owners prove to a server who they are.", **STYLE)

TargetArgument = Annotated[
    str, typer.Argument(metavar="CONFIG|DATA|LEDGER", help="What is served: its configuration, its data or its ledger.")
]


def _tokens(target: str) -> Tokens:
    from privet.service.tokens import Tokens

    if target.lower().endswith(".toml"):
        from privet.service.config import load

        ledger = load(Path(target)).ledger
        assert ledger is not None
        return Tokens(Ledger.open(ledger))  # made here if the server was never started
    return Tokens(open_book(target))


def _check_name(path: Path, role: str, name: str, tables: Sequence[str]) -> None:
    """Refuse a table that a configuration does not have, and say so where it does not name who the token is for."""
    from privet.service.config import load
    from privet.service.tokens import OWNER

    config = load(path)
    known = [table.name for table in config.tables]
    for table in tables:
        if table not in known:
            raise QuestionError(
                f"'{path}' has no table '{table}'{did_you_mean(table, known)}; it has {', '.join(known)}."
            )
    if role == OWNER:
        if name not in config.owners:
            say(f"note: '{path}' names no owner '{name}': the server takes the token when `owners` has the name")
        return
    if config.analysts is None:  # whoever has a token may use what it is for
        return
    permitted = {analyst for permit in config.permits.values() for analyst in permit.analysts}
    if name not in {*config.analysts, *permitted}:
        say(f"note: '{path}' names no analyst '{name}': the server takes the token when an owner grants them a table")


def _facts(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "tables": None if token.tables is None else list(token.tables),
        "expires": token.expires.isoformat(timespec="minutes"),
    }


@app.command("create")
def create(
    target: TargetArgument,
    analyst: Annotated[str | None, typer.Option(help="For this analyst.")] = None,
    owner: Annotated[str | None, typer.Option(help="For this owner, who decides on requests and reads events.")] = None,
    table: Annotated[list[str] | None, typer.Option(help="For this table alone; may be repeated.")] = None,
    days: Annotated[int, typer.Option(help="How long it lives.")] = 90,
) -> None:
    """Make a token and print it, once. The ledger keeps its hash alone.

    Two may be live at a time, so that one can be replaced without a pause.

    \b
    Examples:
      privet token create privet.toml --analyst ada --table patients
      privet token create people.csv --owner grace --days 30
    """
    from privet.service.tokens import ANALYST, OWNER

    if (analyst is None) == (owner is None):
        raise QuestionError("a token is for an analyst or for an owner; give --analyst NAME or --owner NAME.")
    role, name = (ANALYST, analyst) if analyst is not None else (OWNER, owner)
    assert name is not None
    if target.lower().endswith(".toml"):
        _check_name(Path(target), role, name, table or ())
    secret, token = _tokens(target).create(name, role, tuple(table) if table else None, days)
    say(f"token {token.id} of {role} '{name}', shown once, until {token.expires:%Y-%m-%d}:")
    print(secret)


@app.command("list")
def list_tokens(target: TargetArgument, as_json: JsonOption = False) -> None:
    """List the tokens that were not revoked: whose they are, what for and until when.

    Example: privet token list privet.toml
    """
    tokens = [_facts(token) for token in _tokens(target).all()]
    if as_json:
        print_json(tokens)
        return
    for token in tokens:
        tables = token["tables"]
        scope = ", ".join(tables) if isinstance(tables, list) else "all tables that are theirs"
        print(f"{token['id']}  {token['role']} {token['name']}  {scope}  until {token['expires']}")
    if not tokens:
        say("there are no tokens yet")


@app.command("revoke")
def revoke(
    target: TargetArgument, token: Annotated[str, typer.Argument(metavar="ID", help="As `privet token list` shows it.")]
) -> None:
    """End a token at once, on all servers of its ledger.

    Example: privet token revoke privet.toml 3f2a90c1b7de
    """
    ended = _tokens(target).revoke(token)
    say(f"token {ended.id} of {ended.role} '{ended.name}' is no longer valid")
