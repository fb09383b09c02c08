"""The report of an audit, for whoever decides about publishing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privet.report import rendering
from privet.report.notebook import finding_card
from privet.risk.exposed_tree import OUTLINED, baselines, exposed_tree_on_page, key, posteriors
from privet.risk.findings import WORLDS, Audit, probability
from privet.risk.measures import SAME, Exposure
from privet.risk.words import (
    ADVERSARIES,
    UNKNOWN,
    accuracy,
    before,
    difference,
    measures,
    notes,
    ordered,
    promise,
    verdict,
)

NUMBERS = {
    "baseline": "from the shares of the values among all people alone",
    "inference": "from the model, about anybody with these attributes, by the rows of the others",
    "disclosure": "what a person's own row adds to that: the part that publishing is responsible for",
}
EXPOSED = 5  # people who are listed in a notebook
VALUES = 30  # of the sensitive attribute, that are listed
GROUPS = 200  # that a remedy lists


def page(audit: Audit, beside: Audit | None = None) -> str:
    """Return a whole page about an audit, or about two side by side."""
    both = [audit] if beside is None else [audit, beside]
    columns = measures(max(both, key=lambda each: each.truth is not None))
    names = dict.fromkeys(name for each in both for name in ordered(each))
    return rendering.page(
        "audit.html",
        f"{' and '.join(each.name for each in both)}: what is told about {audit.sensitive}",
        audits=both,
        tells="tell" if beside is not None or audit.name.endswith(" together") else "tells",
        before=before,
        promise=promise,
        difference=difference,
        three=[(name, means, [(each.name, _three(name, each)) for each in both]) for name, means in NUMBERS.items()],
        accuracy=accuracy,
        probability=probability,
        unknown=UNKNOWN,
        exposed=_exposed,
        numbers=_numbers,
        reached=_reached,
        key_of=key,
        baselines=[name for name in reversed(baselines(audit)) if any(name in each.beliefs for each in both)],
        posteriors=posteriors,
        exposed_tree=exposed_tree_on_page,
        outlined=OUTLINED,
        groups=GROUPS,
        facts=_facts,
        columns=columns,
        adversaries=[(name, [each for each in both if name in each.beliefs]) for name in names],
        who=[(name, means) for name, means in ADVERSARIES.items() if name in names],
        assumed=_shared([(each.name, each.assumptions) for each in both]),
        noted=_shared([(each.name, notes(each)) for each in both]),
        reads={
            "prediction": "prediction" in names,
            "groups": any(each.publication is None and WORLDS in each.beliefs for each in both),
            "tree": any(each.publication is not None for each in both),
        },
    )


def notebook_card(audit: Audit) -> str:
    """Return what a notebook shows of an audit: the verdict, the adversaries and the most exposed."""
    columns = measures(audit)
    overall = [(name, *(column.told(audit.overall[name]) for column in columns)) for name in ordered(audit)]
    exposed = [
        (
            *map(probability, (each.baseline, each.inference, each.disclosure, each.posterior)),
            f"{each.people:,}",
            each.value,
            each.who if audit.names else each.path,
        )
        for each in audit.exposures[:EXPOSED]
    ]
    who = "who" if audit.names else "where"
    heads = ("baseline", "inference", "disclosure", "posterior", "people", "value", who)
    return finding_card(
        f"Audit of {audit.name}",
        verdict(audit),
        not audit.safe,
        [sentence for sentence in (before(audit), promise(audit)) if sentence],
        ("adversary", *(column.head for column in columns)),
        overall,
        about=f"what {audit.name[:100]} tells about {audit.sensitive[:100]}",
        second=("Who is concerned", heads, exposed),
    )


def _three(name: str, audit: Audit) -> list[str]:
    """On average, the most, and the people concerned."""
    numbers = audit.summary[name]
    bound = name == "disclosure" and not audit.own.is_computed
    cells = [probability(numbers["mean"]), probability(numbers["most"])]
    cells = ["at most " + cell for cell in cells] if bound else cells
    return [*cells, f"{audit.known:,}" if name == "disclosure" and audit.by_own_row and not bound else UNKNOWN]


def _facts(audit: Audit) -> Iterable[tuple[str, str]]:
    private = "not private" if audit.epsilon is None else f"noise for epsilon {audit.epsilon:g}"
    yield "model", f"{audit.name}, {private}"
    more = f", … {len(audit.values) - VALUES} more" if len(audit.values) > VALUES else ""
    yield "sensitive attribute", f"{audit.sensitive[:100]}: {', '.join(v[:60] for v in audit.values[:VALUES])}{more}"
    yield "people", f"{audit.people.total:,}"
    yield "profiles", f"{len(audit.people):,} different combinations of {', '.join(audit.people.names)[:400]}"
    if audit.publication is not None:
        noisy, leaves = "noisy " * audit.publication.noisy, len(audit.publication.leaves)
        yield "published", f"the tree with the {noisy}{audit.publication.level} of its {leaves:,} leaves with people"
    if audit.counted is not None:
        yield "constraints", str(audit.counted)
    if audit.by_own_row:
        yield "threshold", f"a person is concerned if their own row adds {audit.threshold:g} or more"
    else:
        yield "threshold", f"a value counts as known from probability {audit.threshold:g} on"


def _exposed(audit: Audit) -> Sequence[Exposure]:
    """The people whom it concerns; where it concerns nobody, the three most exposed."""
    return [each for each in audit.exposures if _reached(audit, each)] or audit.exposures[:3]


def _reached(audit: Audit, each: Exposure) -> bool:
    return (each.disclosure if audit.by_own_row else each.posterior) >= audit.threshold - SAME


def _numbers(audit: Audit, each: Exposure) -> list[tuple[str, float]]:
    if audit.by_own_row:
        return [("baseline", each.baseline), ("inference", each.inference), ("disclosure", each.disclosure)]
    return [("posterior", each.posterior), ("before", each.baseline)]


def _shared(said: Sequence[tuple[str, Sequence[str]]]) -> list[tuple[str, list[str]]]:
    """Sentences of each audit under its name; those that all share stand once, under none."""
    shared = [words for words in said[0][1] if all(words in sentences for _, sentences in said)]
    own = [(name, [words for words in sentences if words not in shared]) for name, sentences in said]
    return [(name, sentences) for name, sentences in [("", shared), *own] if sentences]
