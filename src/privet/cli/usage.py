"""What is wrong with the words of a command, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from privet.errors import did_you_mean

_UNKNOWN_COMMAND = re.compile(r"No such command '(.*?)'", re.DOTALL)
_EXTRA = re.compile(r"Got unexpected extra arguments? ?\(?s?\)? ?\((.*)\)", re.DOTALL)


def usage_sentence(error: Any) -> str:
    """Return a usage error of typer as one sentence.

    Parameters
    ----------
    error : Exception
        With a `format_message` method, as all of typer's usage errors have.

    Returns
    -------
    str
    """
    words: str = error.format_message().strip()
    context, kind = getattr(error, "ctx", None), type(error).__name__
    if context is None:
        return f"{words[:1].lower()}{words[1:].rstrip('.')}; see `privet --help`."
    see, command = f"see `{context.command_path} --help`", context.command_path.removeprefix("privet ")
    if unknown := _UNKNOWN_COMMAND.match(words):
        commands = context.command.commands
        return f"there is no command '{unknown[1]}'{did_you_mean(unknown[1], commands)}; there are {_listed(commands)}."
    if kind == "NoSuchOption":
        meant = did_you_mean(error.option_name, [option for param in context.command.params for option in param.opts])
        return f"{command} has no option {error.option_name}{meant}; {see}."
    if kind == "MissingParameter":
        return f"{command} needs {_name(error.param)}{_example(context)}; {see}."
    if extra := _EXTRA.match(words):
        return f"{command} has no use for '{extra[1]}'; put \"quotes\" around words with spaces, and {see}."
    if kind == "BadParameter" and error.param is not None:
        return f"{_name(error.param)} takes {_expected(error.message)}; {see}."
    return f"{words[:1].lower()}{words[1:].rstrip('.')}; {see}."


def _listed(names: Iterable[str]) -> str:
    """Return names as a list in words."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _name(param: Any) -> str:
    """Return what people call an argument or option."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper()).strip("[]{}")
    return str(max(param.opts, key=len))


def _expected(message: str) -> str:
    """Return what an option takes, from what typer says of a value that it does not take.

    >>> _expected("Input should be a valid integer, unable to parse string as an integer")
    'a whole number'
    >>> _expected("Input should be greater than or equal to 100")
    'a number of at least 100'
    """
    bounds = dict(re.findall(r"(greater|less) than or equal to ([-0-9.e+_]+)", message))
    if bounds:
        return "a number of " + " and ".join(
            f"at {'least' if side == 'greater' else 'most'} {bound}" for side, bound in bounds.items()
        )
    if "integer" in message:
        return "a whole number"
    return "a number" if "number" in message or "float" in message else f"another value: {message.rstrip('.')}"


def _example(context: Any) -> str:
    """Return the first example of a command's help."""
    lines = (context.command.help or "").splitlines()
    examples = [line.strip().removeprefix("Example: ") for line in lines]
    return next((f", as in `{example}`" for example in examples if example.startswith("privet ")), "")
