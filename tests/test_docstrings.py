"""Public callables say what they take: a list of parameters (numpydoc), or a sentence with each of their names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import privet
from privet import table
from privet.kernel import Monitor

# What people get from a call, and do not make themselves.
GIVEN = (table.ProtectedTable, table.Parts, Monitor, privet.Audit)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public callable with its name: functions, classes, and methods that privet writes."""
    named = {name: getattr(privet, name) for name in privet.__all__}
    for name, thing in {**named, **{own.__name__: own for own in GIVEN}}.items():
        if callable(thing) and thing not in GIVEN and not (inspect.isclass(thing) and issubclass(thing, Exception)):
            yield name, thing
        if not inspect.isclass(thing):
            continue
        for method, function in inspect.getmembers(thing, callable):
            own = str(getattr(function, "__module__", "")).startswith("privet")
            if own and not method.startswith("_") and not inspect.isclass(function):
                yield f"{name}.{method}", function


CALLABLES = dict(public())


def lacking(function: Callable[..., Any]) -> list[str]:
    """The parameters of a callable that its docstring does not name, if it takes several."""
    taken = [name for name in inspect.signature(function).parameters if name not in ("self", "cls", "domain")]
    text = inspect.getdoc(function) or ""
    if len(taken) < 2 or re.search(r"(see|as|as for) `[\w.]+`", text):
        return []
    listed = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", text.partition("Parameters\n---")[2], re.MULTILINE)
    named = {name.strip("* ") for line in listed for name in line.split(",")} | set(re.findall(r"`(\w+)`", text))
    return [name for name in taken if name not in named]


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_a_callable_names_what_it_takes(name: str) -> None:
    assert lacking(CALLABLES[name]) == [], name


def test_one_that_does_not_is_noticed() -> None:
    def ask(column: str, epsilon: float) -> None:
        """Ask about a `column`."""

    assert lacking(ask) == ["epsilon"]
