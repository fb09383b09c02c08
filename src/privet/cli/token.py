"""`privet token`: who may ask a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.budget import open_book
from privet.cli.common import STYLE, JsonOption, print_json, say
from privet.errors import QuestionError
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
        scope = ", ".join(tables) if isinstance(tables, list) else "all tables"
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
