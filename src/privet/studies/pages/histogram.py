"""A specimen on a page: the model as text, and its histogram before and after the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from privet.report.chart import Axis
from privet.report.svg import MINUS


class ClassCount(NamedTuple):
    """A class in a leaf: its bars before and after the noise, in percent, and its numbers."""

    name: str
    poles: Sequence[tuple[str, str, str]]  # a class of the stylesheet, where it begins, and how wide it is
    zero: str
    said: str


class Example(NamedTuple):
    """What `study_parts.html` shows of a specimen."""

    text: str
    what: str
    leaves: Sequence[tuple[str, Sequence[ClassCount]]]
    left: int  # not shown


def example(specimen: Mapping[str, Any]) -> Example:
    """Return every bar twice: an outlined box as counted, a solid bar within it as released."""
    bars, classes = specimen.get("bars", ()), [str(name) for name in specimen.get("classes", ())]
    text = "\n".join(str(specimen.get("text", "")).split("\n")[:60])
    numbers = [float(value) for _, before, after in bars for value in (*before, *after)]
    low, high = min(0.0, *numbers, 0.0), max(0.0, *numbers, 0.0)
    axis = Axis(low, high if high > low else low + 1.0, 0.0, 100.0)
    leaves = [(str(label), _counts(classes, before, after, axis)) for label, before, after in bars]
    return Example(text, str(specimen.get("what", "")), leaves, int(specimen.get("left", 0)))


def _counts(classes: Sequence[str], before: Sequence[float], after: Sequence[float], axis: Axis) -> list[ClassCount]:
    zero, counts = axis.at(0.0), []
    for name, counted, released in zip(classes, before, after, strict=False):
        ends = (("before", axis.at(float(counted))), ("after", axis.at(float(released))))
        poles = [(kind, f"{min(zero, end):.1f}", f"{abs(end - zero):.1f}") for kind, end in ends]
        said = f"{counted:,} → {released:,}".replace("-", MINUS)
        counts.append(ClassCount(name, poles, f"{zero:.1f}", said))
    return counts
