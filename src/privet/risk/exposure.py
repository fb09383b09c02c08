"""Who is exposed most, by which path of the tree, and by what it says there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from privet.risk.beliefs import Belief
from privet.risk.constraints import Choice
from privet.risk.measures import most_exposed
from privet.risk.publication import COUNTS, Publication
from privet.risk.tree import Floats

MORE = 1e-6  # a posterior above what the leaf alone gives by this much has another cause


@dataclass(frozen=True)
class Exposure:
    """One profile: what an adversary now believes of its people, what a baseline believed, and why."""

    profile: int
    who: str
    people: int
    value: str
    posterior: float
    baseline: float
    adversary: str
    path: str
    because: str
    alike: int = 0  # other profiles of the same leaf of which the same is believed


def strongest(beliefs: Mapping[str, Belief]) -> tuple[Floats, list[str]]:
    """For each profile the shares of the adversary who is surest, and who that is."""
    names = list(beliefs)
    sure = np.stack([beliefs[name].shares.max(axis=1) for name in names])
    best = np.argmax(sure > sure.max(axis=0) - 1e-9, axis=0)  # the first of equals
    shares = np.stack([beliefs[name].shares for name in names])[best, np.arange(sure.shape[1])]
    return np.asarray(shares), [names[each] for each in best.tolist()]


def exposures(
    publication: Publication,
    beliefs: Mapping[str, Belief],
    alone: Floats,
    baseline: Floats,
    choices: tuple[Choice, ...],
    count: int,
) -> tuple[Exposure, ...]:
    """The profiles of largest posterior, one for all of a leaf of which the same is believed; `alone` is what leaves
    give without internal constraints."""
    shares, who = strongest(beliefs)
    people, values = publication.people, publication.tree.values
    alike: dict[tuple[int, int, int], list[int]] = {}  # the first stands for all
    for profile in most_exposed(people, Belief("strongest", shares), baseline, len(people)):
        value = int(np.argmax(shares[profile]))
        key = (int(publication.leaf[profile]), value, round(float(shares[profile, value]) / MORE))
        alike.setdefault(key, []).append(profile)
    found = []
    for (leaf, value, _), (profile, *others) in islice(alike.items(), count):
        adversary = who[profile]
        more = leaf >= 0 and shares[profile, value] > alone[profile, value] + MORE
        because = (
            _by_choice(publication, leaf, beliefs[adversary], choices)
            if more
            else _by_leaf(publication, leaf, values[value])
        )
        found.append(
            Exposure(
                profile,
                people.told(profile),
                int(people.sizes[profile]),
                values[value],
                float(shares[profile, value]),
                float(baseline[profile, value]),
                adversary,
                publication.tree.where(leaf) if leaf >= 0 else "no leaf",
                because,
                len(others),
            )
        )
    return tuple(found)


def _by_leaf(publication: Publication, leaf: int, value: str) -> str:
    if leaf < 0:
        return "the tree has no leaf for them"
    people = int(publication.sizes[leaf])
    there = "1 person is" if people == 1 else f"{people} people are"
    if publication.noisy:
        return f"the noisy counts of the leaf, where {there}"
    if publication.pure(leaf):
        return f"the leaf says that {f'all of its {people} people are' if people > 1 else 'its 1 person is'} {value}"
    what = "counts" if publication.level == COUNTS else "rate" if publication.level != "labels" else "label"
    return f"the {what} of the leaf, where {there}"


def _by_choice(publication: Publication, leaf: int, belief: Belief, choices: tuple[Choice, ...]) -> str:
    """The nearest node above whose choice binds; worlds hold all choices against each other."""
    tree = publication.tree
    preferred: dict[int, list[str]] = {}
    for node, column in belief.binding:
        preferred.setdefault(node, []).append(column)
    if not preferred:
        names = publication.people.names
        preferred = {each.node: [names[c.attribute] for c in each.candidates] for each in choices}
    for node in tree.ancestors(leaf):
        if node in preferred:
            others = list(dict.fromkeys(preferred[node]))
            told = " or ".join(others[:3]) + (" or others" if len(others) > 3 else "")
            return f"'{tree.split_column(node)}' was chosen at '{tree.where(node)}' and not {told}"
    return "the choice of splits above the leaf"
