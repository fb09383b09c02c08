"""`python -m evidence.noisyif`: how a NoisyIf learns from its own executions, as numbers, tables and a picture.

Three experiments on generated rows. Two branches that were run unequally often, with rewards of any origin and unit.
Seventy executions that choose between private trees of depth 1 and 4, with advice that is wrong on purpose and only the
reward of the tree that was grown. Fifty tables whose trees choose at every node (Jostle 2018, figure 7). Noise is
seeded, so that the same command writes the same numbers: nothing fitted here is private.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import privet
from privet import Branch, History, NoisyIf, Public
from privet.choice import BayesianLinear, Learning, percent_right
from privet.kernel import as_epsilon
from privet.learners.growth import grow
from privet.learners.presets import preset
from privet.models.tree import Ensemble
from privet.report.chart import sheet
from privet.studies.estimate import Estimate
from privet.studies.findings import Cell, Panel
from privet.studies.pages.plot import drawing, key, looks_of

RESULT = Path(__file__).with_name("noisyif.json")
DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "explanation" / "choice.md", DOCS / "noisyif.svg"
DOMAIN = privet.datasets.census_domain()
UNSEEN = privet.datasets.census(4000, seed=999)

WORLDS, COINS, RUNS, MOMENTS = 12, 5, 70, (10, 30, 70)
PHASES = {"1-10": slice(0, 10), "11-40": slice(10, 40), "41-70": slice(40, 70)}
DEPTHS = {"shallow": 1, "deep": 4}
REPEATS = 8  # of the fifty tables
EDGES = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)  # of log(rows x epsilon), between which the better branch is told apart

Run = tuple[float, dict[str, float]]  # log(rows x epsilon), accuracy of each branch
Choose = Callable[[NoisyIf, Run], str]


# -- one branch a run -----------------------------------------------------------------------------


def lock() -> dict[str, int]:
    """In how many settings the better of two branches is taken: a reaches 80, b 90, and a was run more often."""
    settings = wrong = 0
    for runs_a, runs_b in ((20, 5), (20, 10), (40, 20), (100, 30)):
        for advised in (None, "a", "b"):
            for origin, unit in ((0, 1), (-80, 1), (0, 0.01), (1000, 10)):
                rng = np.random.default_rng(0)
                rewards = [
                    (name, mean + rng.normal())
                    for name, mean, count in (("a", 80, runs_a), ("b", 90, runs_b))
                    for _ in range(count)
                ]
                history = History()
                for run, (branch, reward) in enumerate(rewards):
                    kept = Public(origin + unit * reward, origin="synthetic: two branches")
                    history.append("s", {"x": Public(rng.normal())}, branch, kept, run=f"{run}")
                weights: dict[str, float] = {} if advised is None else {advised: 1.0}
                learned = BayesianLinear.fit(history.rows("s"), ("x",))
                margins = learned.margins({"x": 0.0}, ("a", "b"), "a", weights)
                settings += 1
                wrong += margins["b"] <= 0
    return {"settings": settings, "wrong": wrong}


# -- a bandit -------------------------------------------------------------------------------------


def world(seed: int, runs: int = RUNS) -> list[Run]:
    """Runs at random numbers of rows and epsilons, and the accuracy that each depth of a private tree reaches."""
    rng = np.random.default_rng(seed)
    found = []
    for run in range(runs):
        rows = int(np.exp(rng.uniform(np.log(300), np.log(20_000))))
        epsilon = float(f"{np.exp(rng.uniform(np.log(0.02), np.log(2))):.3g}")
        people = privet.datasets.census(rows, seed=1000 + run)
        reached = {}
        for name, depth in DEPTHS.items():
            with privet.testing.seeded_noise(run + 1000 * seed), privet.open(people, DOMAIN, budget=epsilon) as table:
                tree = privet.ID3PlusClassifier(epsilon=epsilon, max_depth=depth, criterion="max", random_state=run)
                reached[name] = accuracy(tree.fit(table).model_)
        found.append((float(np.log(rows * epsilon)), reached))
    return found


def accuracy(model: Any) -> float:
    """In percent of unseen rows."""
    labels = np.array(model.domain.classes, dtype=object)[model.predict_codes(UNSEEN)]
    return 100 * float(np.mean(labels == UNSEEN[DOMAIN.target_column.name].astype(str).to_numpy()))


def wrong_advice(known: Any) -> str:
    """The wrong way round: deep trees for little signal."""
    return "deep" if known["log signal"] < 6 else "shallow"


def bandit(runs: Sequence[Run], name: str, explore: bool = True) -> tuple[list[str], dict[int, dict[float, str]]]:
    """The branches taken, each after learning from those before; and what is chosen after some executions, by signal.

    `name` is part of the coins.
    """
    history, taken, chosen = History(), [], {}
    for run, (signal, reached) in enumerate(runs):
        choice = _choice(name, signal, Learning(history, explore=explore))
        taken.append(choice.pick().branch)
        reward = Public(reached[taken[-1]], origin=f"synthetic: census {1000 + run}")
        history.append(name, choice.context, taken[-1], reward, run=f"run {run}")
        if run + 1 in MOMENTS:
            learned = Learning(history, explore=False)
            chosen[run + 1] = {place: _choice(name, place, learned).pick().branch for place in np.arange(3, 10.5, 0.5)}
    return taken, chosen


def _choice(name: str, signal: float, learning: Learning) -> NoisyIf:
    branches = {depth: Branch.of(depth) for depth in DEPTHS}
    context = {"log signal": Public(signal)}
    return NoisyIf(name, branches, "shallow", context=context, advice=wrong_advice, history=learning)


def regret(runs: Sequence[Run], taken: Sequence[str], better: Callable[[float], float]) -> tuple[list[float], Any]:
    """What each run loses to the better tree in hindsight, and to the depth that is better at its signal on average."""
    hindsight = [max(reached.values()) - reached[branch] for branch, (_, reached) in zip(taken, runs, strict=True)]
    gaps = np.array([better(signal) for signal, _ in runs])  # of the deep one
    deep = np.array(taken) == "deep"
    return hindsight, np.where(deep, np.maximum(-gaps, 0), np.maximum(gaps, 0))


def gap_by_signal(worlds: Sequence[Sequence[Run]]) -> Callable[[float], float]:
    """By how many points deep trees are ahead, on average over runs of about the same signal."""
    runs = [run for own in worlds for run in own]
    places = np.digitize([signal for signal, _ in runs], EDGES)
    ahead = np.array([reached["deep"] - reached["shallow"] for _, reached in runs])
    means = [float(ahead[places == place].mean()) for place in range(len(EDGES) + 1)]
    return lambda signal: means[int(np.digitize(signal, EDGES))]


def bandits() -> dict[str, Any]:
    worlds = [world(seed) for seed in range(WORLDS)]
    gap = gap_by_signal(worlds)
    ways: dict[str, Callable[[Sequence[Run], int], list[str]]] = {
        "the advice alone": lambda runs, coins: [wrong_advice({"log signal": signal}) for signal, _ in runs],
        "learning, without coins": lambda runs, coins: bandit(runs, "depth", explore=False)[0],
        "learning": lambda runs, coins: bandit(runs, f"depth {coins}")[0],
        "the better depth on average": lambda runs, coins: ["deep" if gap(s) > 0 else "shallow" for s, _ in runs],
    }
    found: dict[str, Any] = {"ways": {}, "by run": {}}
    for name, way in ways.items():
        repeats = COINS if name == "learning" else 1
        both = [regret(runs, way(runs, coins), gap) for runs in worlds for coins in range(repeats)]
        for kind, place in (("in hindsight", 0), ("on average", 1)):
            points = np.array([one[place] for one in both])
            phases = {phase: round(float(points[:, own].mean()), 2) for phase, own in PHASES.items()}
            found["ways"].setdefault(name, {})[kind] = phases
            if place and name == "learning":
                late = points[:, PHASES["41-70"]].mean(axis=1)
                found["sequences"] = {"all": len(late), "above half a point in 41-70": int((late > 0.5).sum())}
            if place:
                found["by run"][name] = [round(float(points[:, at : at + 10].mean()), 3) for at in range(0, RUNS, 10)]
    shares: dict[int, dict[str, float]] = {moment: {} for moment in MOMENTS}
    chosen = [bandit(runs, f"depth {coins}")[1] for runs in worlds for coins in range(COINS)]
    for moment in MOMENTS:
        for signal in chosen[0][moment]:
            deep = [own[moment][signal] == "deep" for own in chosen]
            shares[moment][f"{signal:g}"] = round(100 * float(np.mean(deep)), 1)
    found["deep, percent, after executions"] = shares
    found["deep ahead, points"] = {f"{place:g}": round(gap(place), 2) for place in np.arange(2.5, 10)}
    return found


# -- trees that choose at every node --------------------------------------------------------------


def figure_7(seed: int, tables: int = 50) -> Iterator[dict[str, float]]:
    """Fifty tables, each with a tree whose nodes choose their kind of split and criterion, and with constant ones."""
    learning = Learning(History(), features=("signal", "depth"))
    kinds = {"by coins": Branch.of("random"), "by rows": Branch.of("select")}
    split = NoisyIf("split", kinds, "by coins", history=learning)
    rules = {name: Branch.of(name) for name in ("infogain", "gini", "max")}
    criterion = NoisyIf("criterion", rules, "infogain", history=learning)
    ways: dict[str, dict[str, Any]] = {
        "learning": {"split": split, "criterion": criterion},
        "by coins": {"split": "random"},
        **{name: {"criterion": name} for name in rules},
    }
    rng = np.random.default_rng(seed)
    for number in range(tables):
        rows = int(np.exp(rng.uniform(np.log(500), np.log(20_000))))
        people = privet.datasets.census(rows, seed=10_000 * seed + number)
        found = {}
        for name, fields in ways.items():
            with privet.testing.seeded_noise(1000 * seed + number), privet.open(people, DOMAIN, budget=1) as table:
                plan = replace(preset("id3plus").plan(DOMAIN, max_depth=3), **fields)
                tree: Ensemble = grow(table, plan, as_epsilon("0.5"), np.random.default_rng(number))
                if name == "learning":
                    right = Public(percent_right(table, tree, "0.5").value, origin=f"synthetic: census {seed} {number}")
            found[name] = accuracy(tree)
            for choice in (split, criterion) if name == "learning" else ():
                if any(decision.site == choice.site for decision in tree.privacy.decisions):
                    choice.learn(tree, right)
        yield found


def figures() -> dict[str, dict[str, float]]:
    runs = [list(figure_7(seed)) for seed in range(REPEATS)]
    phases = {"tables 1-10": slice(0, 10), "tables 11-30": slice(10, 30), "tables 31-50": slice(30, 50)}
    return {
        name: {
            phase: round(float(np.mean([one[name] for run in runs for one in run[own]])), 2)
            for phase, own in phases.items()
        }
        for name in runs[0][0]
    }


# -- the page -------------------------------------------------------------------------------------


def picture(content: dict[str, Any]) -> str:
    """Return regret against executions, and what is chosen after 10, 30 and 70 of them."""
    found = content["bandit"]
    panels = [
        Panel(
            "regret",
            "executions",
            tuple(
                Cell(name, 10 * place + 5, Estimate(points, 0.0, 1))
                for name, own in found["by run"].items()
                for place, points in enumerate(own)
            ),
            "points of accuracy lost in an execution",
        ),
        Panel(
            "choice",
            "log(rows x epsilon)",
            tuple(
                Cell(f"after {moment} executions", float(place), Estimate(share, 0.0, 1))
                for moment, own in found["deep, percent, after executions"].items()
                for place, share in own.items()
            ),
            f"percent of {WORLDS * COINS} histories that take the deep tree",
        ),
    ]
    looks = looks_of(panels)
    return sheet(
        "A choice with wrong advice learns from its own executions",
        "private trees of depth 1 and 4; the advice takes deep ones below 6, they are better above 9",
        [drawing(panel, looks) for panel in panels],
        key(panels[0], looks) + key(panels[1], looks),
        "python -m evidence.noisyif",
    )


def page(content: dict[str, Any]) -> str:
    """Return docs/explanation/choice.md with the tables of this content between their marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("bandit", _bandit_table(content)), ("figure 7", _figure_table(content))):
        marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        text = marked.sub(table.replace("\\", r"\\"), text)
    return text


def _bandit_table(content: dict[str, Any]) -> str:
    lines = [f"| points lost in an execution | {' | '.join(PHASES)} |", "|---|---|---|---|"]
    for name in ("the advice alone", "learning", "learning, without coins"):
        points = content["bandit"]["ways"][name]["on average"]
        lines.append(f"| {name} | {' | '.join(f'{points[phase]:.2f}' for phase in PHASES)} |")
    lock, single = content["lock"], content["bandit"]["sequences"]
    lines += [
        "",
        "Points are lost to the depth that is better on average at about the same rows times epsilon; means of "
        f"{WORLDS} sequences of",
        f"tables, with {COINS} draws of coins each. Single sequences can be worse: "
        f"{single['above half a point in 41-70']} of {single['all']} still lose more than half a",
        "point in executions 41 to 70. The lines on the right of the picture are the choice after 10, 30 and 70",
        "executions.",
        "",
        "Two branches that were run unequally often (20 to 100 runs at 80 points, 5 to 30 at 90), with right, wrong",
        f"and no advice and rewards of four origins and units: the worse one is taken in {lock['wrong']} of "
        f"{lock['settings']} settings.",
    ]
    return "\n".join(lines) + "\n"


def _figure_table(content: dict[str, Any]) -> str:
    names = {
        "learning": "nodes that learn",
        "by coins": "all splits by coins",
        **{name: f"all splits by {name}" for name in ("infogain", "gini", "max")},
    }
    found = content["figure 7"]
    phases = list(found["learning"])
    lines = [f"| percent right on unseen rows | {' | '.join(phases)} |", "|---|---|---|---|"]
    for name, words in names.items():
        lines.append(f"| {words} | {' | '.join(f'{found[name][phase]:.1f}' for phase in phases)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    content = {"lock": lock(), "bandit": bandits(), "figure 7": figures()}
    content = json.loads(json.dumps(content))
    RESULT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    PICTURE.write_text(picture(content), encoding="utf-8")
    PAGE.write_text(page(content), encoding="utf-8")
    print(json.dumps(content, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
