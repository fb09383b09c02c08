"""What a belief discloses: how sure an adversary is of people's values, in the numbers of several schools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice

import numpy as np

from privet.errors import DataError
from privet.risk.constraints import Choice
from privet.risk.people import Belief, People, entropy
from privet.risk.publication import COUNTS, Publication
from privet.risk.tree import Floats, Integers, Mask

FLOOR = 1e-4  # of every belief in `overall_floored`, shared evenly by all values
TINY = 1e-300  # stands for a belief of 0 in something true, whose divergence would be infinite
SAME = 1e-9  # posteriors that differ by less are equal: solvers and sums do not come closer


@dataclass(frozen=True)
class Disclosure:
    """What one belief tells about people; logarithms are natural, and the last four need the true values."""

    threshold: float  # a posterior that counts as knowing
    people: int  # how many people are measured
    worst: float  # the largest posterior of any value for any person
    mean: float  # the mean over people of the largest posterior
    known: int  # people with a value whose posterior reaches the threshold
    entropy: float  # H(value | profile): what is not known of an average person
    entropy_loss: float  # log K minus that: what is known more than by someone who knows nothing
    entropy_loss_from_marginal: float | None  # the same against someone who knows how frequent each value is
    diversity: float  # entropy l-diversity: l = exp of the smallest entropy of a profile
    distinct: int  # distinct l-diversity: the fewest values that a profile may have
    alpha: float  # (alpha, k)-anonymity: no value is likelier than alpha for anybody
    k: int  # (alpha, k)-anonymity: the fewest people who share a profile
    closeness: float  # t-closeness: the largest total variation distance of a profile from all people together
    overall: float | None = None  # mean divergence of the belief from the truth: 0 for who knows the shares by profile
    overall_floored: float | None = None  # the same after mixing the belief with FLOOR of the uniform one
    guessed: float | None = None  # the share of people whose value the likeliest guess gets right, ties split evenly
    true_mean: float | None = None  # the mean posterior of the true value

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain numbers by name."""
        return asdict(self)


def measure(
    people: People,
    belief: Belief,
    *,
    threshold: float = 0.8,
    truth: Floats | None = None,
    marginal: Floats | None = None,
    placed: Mask | None = None,
) -> Disclosure:
    """What a belief discloses of the people, or of those in profiles that are `placed`.

    `truth` counts the true values [profile, value]; `marginal` is the share of each value among all people. Nobody
    is hidden in an average: `worst`, `diversity`, `distinct`, `alpha` and `closeness` are those of the worst profile.

    >>> import pandas as pd
    >>> people = People.of(pd.DataFrame({"zip": [1, 1, 1, 2]}), ["zip"])
    >>> found = measure(people, Belief("example", np.array([[0.5, 0.5], [0.9, 0.1]])), truth=np.array([[2, 1], [1, 0]]))
    >>> found.worst, round(found.mean, 9), found.known, found.k
    (0.9, 0.6, 1, 1)
    >>> round(found.guessed, 9), round(found.true_mean, 9)  # half of three by a coin, and the fourth
    (0.625, 0.6)
    """
    chosen = np.ones(len(people), dtype=np.bool_) if placed is None else placed
    if not chosen.any():
        raise DataError("the tree has no leaf for anybody in the table, so there is nothing to measure.")
    sizes, shares = people.sizes[chosen], belief.shares[chosen]
    total, classes = int(sizes.sum()), shares.shape[1]
    largest, entropies = shares.max(axis=1), entropy(shares)
    unknown = float(sizes @ entropies / total)
    together = sizes @ shares / total
    worst = float(largest.max())
    found = Disclosure(
        threshold=float(threshold),
        people=total,
        worst=worst,
        mean=float(sizes @ largest / total),
        known=int(sizes[largest >= threshold - SAME].sum()),
        entropy=unknown,
        entropy_loss=math.log(classes) - unknown,
        entropy_loss_from_marginal=None if marginal is None else float(entropy(marginal)) - unknown,
        diversity=math.exp(float(entropies.min())),
        distinct=int((shares > SAME).sum(axis=1).min()),
        alpha=worst,
        k=int(sizes.min()),
        closeness=float(np.abs(shares - together).sum(axis=1).max() / 2),
    )
    return found if truth is None else _compared(found, people, belief.shares, truth, chosen)


def _compared(found: Disclosure, people: People, shares: Floats, truth: Floats, chosen: Mask) -> Disclosure:
    """The same with what only the owner of the true values can tell."""
    raw, floored = (individual(people, shares, truth, floor) for floor in (0.0, FLOOR))
    weights = np.where(chosen, people.sizes, 0) / found.people
    true, shares = truth[chosen], shares[chosen]
    guesses = likeliest(shares)
    hits = (true * guesses).sum(axis=1) / guesses.sum(axis=1)
    return replace(
        found,
        overall=float(weights @ raw),
        overall_floored=float(weights @ floored),
        guessed=float(hits.sum() / found.people),
        true_mean=float((true * shares).sum() / found.people),
    )


def individual(people: People, shares: Floats, truth: Floats, floor: float = 0.0) -> Floats:
    """The divergence KL(P || P*) of the true shares P of each profile from those believed, (1 - floor) P* + floor / K.

    Where P* is 0 and P is not, the divergence is infinite; `TINY` stands for that 0, so that it is finite and large.

    >>> import pandas as pd
    >>> people = People.of(pd.DataFrame({"zip": [1, 2]}), ["zip"])
    >>> individual(people, np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1, 0], [1, 0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    if truth.shape != shares.shape or not np.allclose(truth.sum(axis=1), people.sizes):
        raise DataError("the true values must count everybody of the table once, by profile and value.")
    true = truth / truth.sum(axis=1, keepdims=True)
    believed = np.maximum((1 - floor) * shares + floor / shares.shape[1], TINY)
    ratio = np.where(true > 0, true, 1.0) / np.where(true > 0, believed, 1.0)
    return np.asarray(np.maximum((true * np.log(ratio)).sum(axis=1), 0.0))  # rounding may leave less than nothing


def likeliest(shares: Floats) -> Mask:
    """The likeliest values of each profile [profile, value]: more than one where they are equal."""
    return np.asarray(shares >= shares.max(axis=1, keepdims=True) - SAME)


def histogram(people: People, shares: Floats, edges: Sequence[float] | Floats) -> Integers:
    """How many people have their largest posterior between two edges, the lower one included; beyond the outer edges
    they count in the outer bins.

    >>> import pandas as pd
    >>> people = People.of(pd.DataFrame({"zip": [1, 1, 2]}), ["zip"])
    >>> histogram(people, np.array([[0.5, 0.5], [0.0, 1.0]]), [0, 0.5, 0.8, 1]).tolist()
    [0, 2, 1]
    """
    inner = np.asarray(edges, dtype=np.float64)[1:-1]
    bins = np.searchsorted(inner - SAME, shares.max(axis=1), side="right")
    counts = np.zeros(len(inner) + 1, dtype=np.int64)
    np.add.at(counts, bins, people.sizes)
    return counts


def most_exposed(people: People, belief: Belief, baseline_shares: Floats, count: int) -> list[int]:
    """The profiles of largest posterior; of equals those first that gain most over the baseline's posterior of the
    same value, then those of fewer people, then those that come first.

    >>> import pandas as pd
    >>> people = People.of(pd.DataFrame({"zip": [1, 1, 2, 3]}), ["zip"])
    >>> sure = Belief("example", np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    >>> most_exposed(people, sure, np.tile([0.7, 0.3], (3, 1)), 2)
    [1, 2]
    """
    largest = belief.shares.max(axis=1)
    before = np.where(likeliest(belief.shares), baseline_shares, np.inf).min(axis=1)
    posterior, gain = (np.round(each / SAME) for each in (largest, largest - before))
    order = np.lexsort((people.sizes, -gain, -posterior))  # stable: equals stay in their order
    return [int(profile) for profile in order[:count]]


# -- Who is exposed most, by which path of the tree, and by what it says there.

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
    inference: float = 0.0  # what would be believed without their own row
    disclosure: float = 0.0  # what that row adds
    everybody: int = 0  # the people of all these profiles


def strongest(beliefs: Mapping[str, Belief]) -> tuple[Floats, list[str]]:
    """For each profile the shares of the adversary who is surest, and who that is."""
    names = list(beliefs)
    sure = np.stack([beliefs[name].shares.max(axis=1) for name in names])
    best = np.argmax(sure > sure.max(axis=0) - 1e-9, axis=0)  # the first of equals
    shares = np.stack([beliefs[name].shares for name in names])[best, np.arange(sure.shape[1])]
    return np.asarray(shares), [names[each] for each in best.tolist()]


@dataclass(frozen=True, eq=False)
class Ranking:
    """How exposed each profile is, by which value, and the three numbers of whoever has it [profile]."""

    score: Floats
    value: Integers
    posterior: Floats
    baseline: Floats
    inference: Floats
    disclosure: Floats


def exposures(
    publication: Publication,
    beliefs: Mapping[str, Belief],
    alone: Floats,
    ranking: Ranking,
    choices: tuple[Choice, ...],
    count: int,
) -> tuple[Exposure, ...]:
    """The most exposed profiles, one for all of a leaf of which the same is known; of equals those first that gain most
    over the baseline, then those of fewer people. `alone` is what leaves give without internal constraints."""
    shares, who = strongest(beliefs)
    people, values = publication.people, publication.tree.values
    score, gain = (np.round(each / SAME) for each in (ranking.score, ranking.posterior - ranking.baseline))
    alike: dict[tuple[int, int, int], list[int]] = {}  # the first stands for all
    for profile in np.lexsort((people.sizes, -gain, -score)).tolist():
        value = int(ranking.value[profile])
        key = (int(publication.leaf[profile]), value, round(float(ranking.score[profile]) / MORE))
        alike.setdefault(key, []).append(profile)
    found = []
    for (leaf, value, _), (profile, *others) in islice(alike.items(), count):
        adversary, believed = who[profile], float(shares[profile, value])
        for name, belief in beliefs.items():  # the surest of all may be sure of another value
            if belief.shares[profile, value] > believed + MORE:
                adversary, believed = name, float(belief.shares[profile, value])
        more = choices and leaf >= 0 and believed > alone[profile, value] + MORE
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
                float(ranking.posterior[profile]),
                float(ranking.baseline[profile]),
                adversary,
                publication.tree.where(leaf) if leaf >= 0 else "no leaf",
                because,
                len(others),
                float(ranking.inference[profile]),
                float(ranking.disclosure[profile]),
                int(people.sizes[[profile, *others]].sum()),
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
