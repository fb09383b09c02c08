"""A measurement beside the bound it is held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """One number; a bound is a ceiling, or with `above` a floor."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    aim: float | None = None
    above: bool = False

    @property
    def holds(self) -> bool:
        return self.bound is None or (self.value >= self.bound if self.above else self.value <= self.bound)

    @property
    def verdict(self) -> str:
        return "" if self.bound is None else "ok" if self.holds else "MISSED"

    def shown(self) -> str:
        return f"{self.value:.3g} {self.unit}".rstrip()

    def limits(self) -> tuple[str, str]:
        """The bound and the aim in words."""
        sign = ">=" if self.above else "<="
        bound, aim = ("" if each is None else f"{sign} {each:.3g}" for each in (self.bound, self.aim))
        return bound, aim
