"""A specimen on a page: the model as text, and its histogram before and after the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privet.report.chart import Axis
from privet.studies.pages.words import MINUS
from privet.trees.layout import clean, safe

STYLE = """
.leaves { columns: 19rem; column-gap: 2rem; font-size: .85rem; }
.leaves > div { break-inside: avoid; padding: .25rem 0; } .leaves p { margin: 0; line-height: 1.3; }
.count { display: grid; grid-template-columns: 4.6rem 1fr 7.4rem; gap: .5rem; align-items: center; }
.count span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; color: var(--soft); }
.count span:last-child { text-align: right; font-variant-numeric: tabular-nums; color: var(--ink); }
.pole { position: relative; height: .85rem; } .pole i { position: absolute; box-sizing: border-box; top: 0; bottom: 0; }
.pole .before, .legend .before { border: 1.5px solid var(--ink); } .pole .after { top: 30%; bottom: 30%; }
.pole .after, .legend .after { background: var(--leaf); } .pole .zero { border-left: 1px solid var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .85rem; color: var(--soft); }
.legend i { display: inline-block; width: 1.6rem; height: .8rem; margin-right: .4rem; vertical-align: -1px; }
.legend .after { height: .35rem; vertical-align: 3px; }
pre { font: .8rem/1.4 ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; overflow-x: auto; margin: .4rem 0; }
"""


def text_of(specimen: Mapping[str, Any]) -> str:
    told = "\n".join(safe(line, 200) for line in str(specimen.get("text", "")).split("\n")[:60])
    return f"<pre>{told}</pre>" if told else ""


def histogram(specimen: Mapping[str, Any]) -> str:
    """Every bar twice: an outlined box as counted, a solid bar within it as released."""
    bars, classes = specimen.get("bars", ()), [str(name) for name in specimen.get("classes", ())]
    if not bars:
        return ""
    values = [float(value) for _, before, after in bars for value in (*before, *after)]
    low, high = min(0.0, *values), max(0.0, *values)
    axis = Axis(low, high if high > low else low + 1.0, 0.0, 100.0, 100.0)
    leaves = "".join(
        f"<div><p>{safe(str(label), 120)}</p>{_counts(classes, before, after, axis)}</div>"
        for label, before, after in bars
    )
    left = int(specimen.get("left", 0))
    more = f'<p class="soft">{left:,} smaller ones are not shown.</p>' if left > 0 else ""
    return (
        f'<p>{safe(str(specimen.get("what", "")), 300)}.</p><p class="legend"><span><i class="before"></i>before</span>'
        f'<span><i class="after"></i>after</span></p><div class="leaves">{leaves}</div>{more}'
    )


def _counts(classes: Sequence[str], before: Sequence[float], after: Sequence[float], axis: Axis) -> str:
    zero, drawn = axis.at(0.0), ""
    for name, counted, released in zip(classes, before, after, strict=False):
        ends = (("before", axis.at(float(counted))), ("after", axis.at(float(released))))
        poles = "".join(
            f'<i class="{kind}" style="left:{min(zero, end):.1f}%;width:{abs(end - zero):.1f}%"></i>'
            for kind, end in ends
        )
        told = f"{counted:,} → {released:,}".replace("-", MINUS)
        drawn += (
            f'<div class="count"><span>{safe(clean(name), 40)}</span><div class="pole">{poles}'
            f'<i class="zero" style="left:{zero:.1f}%"></i></div><span>{safe(told)}</span></div>'
        )
    return drawn
