"""Who wins where, and what a choice is worth, in points of accuracy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np

from privet.studies.estimate import Estimate
from privet.studies.findings import At, Cell, Claim, Findings, Panel
from privet.studies.published import printed
from privet.studies.trial import Outcome, Pairs
from privet.studies.verdict import CERTAIN, all_of, any_of, below, positive

PAPER = "jostle"
EQUAL = 0.05  # points: who is ahead by less has not won
LITTLE = 1.0  # points: a regret that a practitioner would not mind

Way = tuple[str, Pairs]  # an algorithm and its choices

# those of the paper's table
WORKS: dict[str, Way] = {
    "DiffPID3, max": ("diffpid3", (("criterion", "max"),)),
    "DiffPID3, gini": ("diffpid3", (("criterion", "gini"),)),
    "DiffPID3, entropy": ("diffpid3", (("criterion", "infogain"),)),
    "Mohammed": ("mohammed", ()),
    "Jagannathan": ("jagannathan", ()),
    "Patil-Singh": ("patil-singh", ()),
    "Fletcher-Islam": ("snr-forest", ()),
}
ALGORITHMS: dict[str, Way] = {
    **WORKS,
    "ID3+": ("id3plus", ()),
    "boosted": ("boosted", ()),
    "naive Bayes": ("naive-bayes", ()),
    "class shares": ("prior", ()),
}
AUTO: dict[str, Way] = {"AutoClassifier": ("auto", ())}
RANDOM = "a random one"

CONSTANT: dict[str, Way] = {
    f"{criterion} throughout": ("id3plus", (("criterion", criterion), ("max_depth", 3)))
    for criterion in ("max", "gini")
}
BY_NODE: dict[str, Way] = {"chosen at every node": ("id3plus", (("max_depth", 3),))}

Place = tuple[str, float]  # a kind of tables, and rows times epsilon
Scores = Mapping[str, float]  # percent right by algorithm, on one table
Lead = tuple[str, str, str]  # of one over another, on a group of tables
Leads = Mapping[Lead, Sequence[float]]


def _scores(outcomes: Iterable[Outcome], ways: Mapping[str, Way]) -> dict[Place, list[Scores]]:
    """What each way came to on the tables of each place; a table on which one is missing is left out."""
    names = {way: name for name, way in ways.items()}
    found: dict[tuple[str, int, float, int], dict[str, float]] = {}
    for outcome in outcomes:
        trial = outcome.trial
        name = names.get((trial.learner, trial.options))
        if name is not None and outcome.result is not None and trial.rows is not None:
            on = (trial.data.rpartition("/")[2], trial.rows, float(trial.epsilon), trial.seed)
            found.setdefault(on, {})[name] = float(outcome.result["accuracy"])
    places: dict[Place, list[Scores]] = {}
    for (kind, rows, epsilon, _), scores in found.items():
        if len(scores) == len(ways):
            places.setdefault((kind, round(rows * epsilon, 6)), []).append(scores)
    return places


# -- which wins -----------------------------------------------------------------------------------


def regrets(scores: Sequence[Scores]) -> list[Scores]:
    """By table: how far each way stays below the algorithm that is best on the other tables of the place."""
    found: list[Scores] = []
    for at, own in enumerate(scores):
        others = [each for place, each in enumerate(scores) if place != at]
        if others:
            best = max(ALGORITHMS, key=lambda name: float(np.mean([each[name] for each in others])))
            known = {**own, RANDOM: float(np.mean([own[name] for name in ALGORITHMS]))}
            found.append({way: own[best] - value for way, value in known.items()})
    return found


def read_wins(outcomes: Sequence[Outcome]) -> Findings:
    """The map of winners, and the regret of every way to choose."""
    places = _scores(outcomes, {**ALGORITHMS, **AUTO})
    regret = {place: regrets(scores) for place, scores in places.items()}
    everywhere = [each for found in regret.values() for each in found]
    notes = tuple(printed(PAPER)["notes"].values())
    if not everywhere:
        return Findings((), (), notes)
    order = sorted(everywhere[0], key=lambda way: float(np.mean([each[way] for each in everywhere])))
    fixed = [way for way in order if way in ALGORITHMS]
    shown = {"AutoClassifier": "AutoClassifier", f"always {fixed[0]}": fixed[0], RANDOM: RANDOM}
    panels = (
        Panel(
            "Regret by rows times epsilon",
            "rows times epsilon",
            _cells(order, regret, place=1),
            "points below the winner on other tables",
            "heat",
        ),
        Panel(
            "Regret by the kind of table",
            "kind",
            _cells(order, regret, place=0),
            "points below the winner on other tables",
            "heat",
        ),
        Panel(
            "By how much the winner is ahead of the second",
            "rows times epsilon",
            tuple(
                Cell(kind, signal, Estimate.of([each[first] - each[second] for each in places[kind, signal]]))
                for (kind, signal), (first, second) in _winners(places).items()
            ),
            "points",
            "heat",
        ),
        Panel(
            "What a choice is worth",
            "rows times epsilon",
            tuple(
                Cell(title, signal, Estimate.of([each[way] for each in found]))
                for title, way in shown.items()
                for signal, found in _grouped(regret, 1).items()
            ),
            "points below the winner on other tables",
            log=True,
        ),
    )
    return Findings(panels, tuple(_win_claims(places, everywhere, fixed[0])), (*_map(places), *notes))


def _cells(order: Sequence[str], regret: Mapping[Place, Sequence[Scores]], place: int) -> tuple[Cell, ...]:
    grouped = _grouped(regret, place)
    return tuple(
        Cell(way, at, Estimate.of([each[way] for each in found])) for way in order for at, found in grouped.items()
    )


def _grouped(places: Mapping[Place, Sequence[Scores]], by: int) -> dict[At, list[Scores]]:
    """All tables of a kind (0), or of as many rows times epsilon (1)."""
    found: dict[At, list[Scores]] = {}
    for place in sorted(places, key=lambda place: place[by]) if by else places:
        found.setdefault(place[by], []).extend(places[place])
    return {at: scores for at, scores in found.items() if scores}


def _winners(places: Mapping[Place, Sequence[Scores]]) -> dict[Place, tuple[str, str]]:
    """The first and the second of each place."""
    found = {}
    for place, scores in places.items():
        first, second, *_ = sorted(ALGORITHMS, key=lambda name: -float(np.mean([each[name] for each in scores])))
        found[place] = first, second
    return found


def _map(places: Mapping[Place, Sequence[Scores]]) -> list[str]:
    """The winners in words, a line for each number of rows times epsilon."""
    lines: dict[float, list[str]] = {}
    for (kind, signal), (first, second) in sorted(_winners(places).items(), key=lambda item: item[0][1]):
        lead = _lead(places[kind, signal], first, second)
        lines.setdefault(signal, []).append(f"{kind}: {first} by {lead:.1f}" if lead >= EQUAL else f"{kind}: several")
    return [f"Winners at {signal:g} rows times epsilon: {'; '.join(told)}." for signal, told in lines.items()]


def _lead(scores: Sequence[Scores], first: str, second: str) -> float:
    return float(np.mean([each[first] - each[second] for each in scores]))


# -- claims ---------------------------------------------------------------------------------------


def _win_claims(places: Mapping[Place, Sequence[Scores]], everywhere: Sequence[Scores], best: str) -> list[Claim]:
    tables = [each for scores in places.values() for each in scores]
    cheap = {name: [each[name] - each["DiffPID3, entropy"] for each in tables] for name in list(WORKS)[:2]}
    chance = [each[RANDOM] - each["AutoClassifier"] for each in everywhere]
    auto, fixed = ([each[way] for each in everywhere] for way in ("AutoClassifier", best))
    # what is looked for on one half of the tables is tested on the other: the best of many flatters itself
    looked, tested = (_leads({place: scores[half::2] for place, scores in places.items()}) for half in (0, 1))
    works = max(WORKS, key=lambda name: float(np.mean([each[name] for each in tables])))
    counted = ", ".join(f"{name} {often}" for name, often in _counted(places).items())
    return [
        _wildly(looked, tested),
        _dominates("Of the works in the paper's table.", works, WORKS, looked, tested),
        _dominates("Of all algorithms here.", best, ALGORITHMS, looked, tested, f" Places won: {counted}."),
        _claim(
            *("which-wins", "entropy", "", any_of(positive(each) for each in cheap.values())),
            "Less DiffPID3 by entropy: " + ", ".join(f"{name} {_points(each)}" for name, each in cheap.items()) + ".",
        ),
        _claim(
            *("which-wins", "lost", "", positive(chance)),
            f"A random choice has a regret of {_interval([each[RANDOM] for each in everywhere])}, "
            f"{_points(chance)} more than AutoClassifier.",
        ),
        _claim(
            *("which-wins", "runtime", "", below(auto, LITTLE)),
            f"The regret of AutoClassifier is {_interval(auto)}, that of always {best} {_interval(fixed)}. "
            f"It holds if the first is below {LITTLE:g} for certain.",
        ),
    ]


def _leads(places: Mapping[Place, Sequence[Scores]]) -> Leads:
    groups = {
        **{f"{kind} tables": scores for kind, scores in _grouped(places, 0).items()},
        **{f"{float(signal):g} rows times epsilon": scores for signal, scores in _grouped(places, 1).items()},
    }
    return {
        (one, other, group): [each[one] - each[other] for each in scores]
        for one, other in permutations(ALGORITHMS, 2)
        for group, scores in groups.items()
    }


def _wildly(looked: Leads, tested: Leads) -> Claim:
    """Whether of two algorithms each is ahead somewhere."""
    clear = {key: _least(found) for key, found in looked.items() if key in tested}
    somewhere: dict[tuple[str, str], Lead] = {}
    for key in sorted(clear, key=lambda key: clear[key]):
        somewhere[key[0], key[1]] = key
    if not somewhere:
        return _claim("which-wins", "wildly", "", None, "Too few tables to look at some and test on others.")
    one, other = max(somewhere, key=lambda pair: min(clear[somewhere[pair]], clear[somewhere[pair[1], pair[0]]]))
    here, there = somewhere[one, other], somewhere[other, one]
    return _claim(
        *("which-wins", "wildly", "", all_of(positive(tested[key]) for key in (here, there))),
        f"{one} less {other} on {here[2]}: {_points(tested[here])}; {other} less {one} on {there[2]}: "
        f"{_points(tested[there])}.",
    )


def _dominates(who: str, best: str, among: Iterable[str], looked: Leads, tested: Leads, more: str = "") -> Claim:
    """Whether the best on average is beaten somewhere."""
    rivals = [key for key in tested if key[1] == best and key[0] in among and key in looked]
    if not rivals:
        return _claim("which-wins", "dominates", who, None, "Too few tables to look at some and test on others.")
    key = max(rivals, key=lambda key: _least(looked[key]))
    nowhere = all(below(tested[key], LITTLE, CERTAIN / len(rivals)) for key in rivals)
    holds = True if positive(tested[key]) else False if nowhere else None
    evidence = f"The best on average is {best}. {key[0]} less {best} on {key[2]}: {_points(tested[key])}.{more}"
    return _claim("which-wins", "dominates", who, holds, evidence)


def _least(differences: Sequence[float]) -> float:
    """A mean that is at least so high, going by what was looked at."""
    found = Estimate.of(differences)
    return found.mean - 2 * found.se if found.n > 1 else -np.inf


def _counted(places: Mapping[Place, Sequence[Scores]]) -> dict[str, int]:
    found = _winners(places).items()
    firsts = [pair[0] if _lead(places[place], *pair) >= EQUAL else "several" for place, pair in found]
    return {name: firsts.count(name) for name in sorted(set(firsts), key=lambda name: -firsts.count(name))}


def _points(differences: Sequence[float]) -> str:
    found = Estimate.of(differences)
    return f"{found.mean:+.2f} points (standard error {found.se:.2f}, {found.n} tables)"


def _interval(values: Sequence[float]) -> str:
    found = Estimate.of(values)
    return f"{found.mean:.2f} points ({found.low:.2f} to {found.high:.2f})"


def _claim(section: str, name: str, who: str, holds: bool | None, evidence: str) -> Claim:
    said = printed(PAPER)[section]
    text = f"{said['claims'][name]} {who}".strip()
    return Claim(text, holds, evidence, said["errata"][name] if holds is False else "")


# -- per node -------------------------------------------------------------------------------------


def read_nodes(outcomes: Sequence[Outcome]) -> Findings:
    """A choice at every node beside one criterion throughout."""
    (chosen,) = BY_NODE
    places = _scores(outcomes, {**CONSTANT, **BY_NODE})
    notes = tuple(printed(PAPER)["notes"][name] for name in ("empty", "tables", "variants"))
    tables = [each for scores in places.values() for each in scores]
    if not tables:
        return Findings((), (), notes)
    best = max(CONSTANT, key=lambda name: float(np.mean([each[name] for each in tables])))
    cells = tuple(
        Cell(way, signal, Estimate.of([each[way] for each in scores]))
        for way in tables[0]
        for signal, scores in _grouped(places, 1).items()
    )
    gains = [each[chosen] - each[best] for each in tables]
    by_signal = ", ".join(
        f"{np.mean([each[chosen] - each[best] for each in scores]):+.2f} at {signal:g}"
        for signal, scores in _grouped(places, 1).items()
    )
    holds = positive(gains) or (False if below(gains, LITTLE) else None)
    claim = _claim(
        *("per-node", "node", "", holds),
        f"Less {best}: {_points(gains)}; by rows times epsilon {by_signal}. It holds if the gain is above 0 for "
        f"certain, and does not if it is below {LITTLE:g} point for certain.",
    )
    panel = Panel("ID3+ of depth 3 on all kinds of tables", "rows times epsilon", cells, log=True)
    return Findings((panel,), (claim,), notes)
