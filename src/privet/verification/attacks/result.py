"""What an attack is, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privet.verification.layer import Layer


class Undecided(Exception):
    """An attack found nothing, and part of it cannot be decided on this layer; the text says why."""


class AsFarAsTested(Exception):
    """An attack found nothing, by a test whose power the text says."""


@dataclass(frozen=True)
class AttackResult:
    """Whether a layer held against an attack.

    `held` is None where that cannot be decided. `found` says what got through, one sentence each, or why
    nothing could be decided, or how much a test would have found. No sentence depends on a private row.
    """

    number: int
    name: str
    leak: str
    held: bool | None
    found: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "number": self.number,
            "name": self.name,
            "leak": self.leak,
            "held": self.held,
            "found": list(self.found),
        }


@dataclass(frozen=True)
class Attack:
    """One way to learn more than was paid for. `run` returns what got through; nothing where the layer held."""

    number: int
    name: str
    leak: str  # what it would have leaked
    run: Callable[[Layer], list[str]]

    def against(self, layer: Layer) -> AttackResult:
        """Run the attack. An error nobody expected is told by its type alone: its words may quote a row."""
        held: bool | None
        try:
            found = self.run(layer)
            held = not found
        except Undecided as reason:
            held, found = None, [str(reason)]
        except AsFarAsTested as power:
            held, found = True, [str(power)]
        except Exception as error:
            held, found = False, [f"the layer raised {type(error).__name__} where it should have answered."]
        return AttackResult(self.number, self.name, self.leak, held, tuple(found))
