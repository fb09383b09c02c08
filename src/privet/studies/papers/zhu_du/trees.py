"""The trees that Zhu and Du's figures are about, two at a time, and claims judged by the results of their audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privet.studies.estimate import Estimate
from privet.studies.findings import At, Cell, Claim, Number, Panel
from privet.studies.published import numbers, printed
from privet.studies.trial import Outcome, Pairs, Trial

PAPER = "zhu_du"
GINI, GAIN = MEASURES = ("Gini", "information gain")
ALL, PLAIN, UNRATED = "All Included", "NoImplicit", "NoErrorRate"  # as figure 9 names them
CASES: dict[str, Pairs] = {ALL: (), PLAIN: (("internal", False),), UNRATED: (("rates", False),)}

Result = Mapping[str, Any]
Verdict = tuple[bool | None, str]  # does it hold, and what the runs say


@dataclass(frozen=True)
class Tree:
    """When a tree stops growing."""

    depth: int
    rows: int = 0  # a node with fewer is a leaf

    def options(self, measure: str) -> Pairs:
        least = (("min_rows", self.rows),) if self.rows else ()
        return (("criterion", "gini" if measure == GINI else "infogain"), ("max_depth", self.depth), *least)

    def __str__(self) -> str:
        return f"depth {self.depth}" + (f", {self.rows} rows" if self.rows else "")


@dataclass(frozen=True)
class Two:
    """Two trees of one table, by Gini and by information gain."""

    title: str
    gini: Tree
    gain: Tree
    sizes: tuple[str, ...]  # at which they are audited
    data: str = "adult"
    rows: int | None = None

    def tree(self, measure: str) -> Tree:
        return self.gini if measure == GINI else self.gain

    def trial(self, measure: str, case: str) -> Trial:
        options, settings = self.tree(measure).options(measure), (("task", "audit"), *CASES[case])
        return Trial(self.data, "id3", rows=self.rows, options=options, settings=settings)

    def __str__(self) -> str:
        if self.gini == self.gain:
            return f"{self.title} ({self.gini})"
        return f"{self.title} (Gini {self.gini}; information gain {self.gain})"


# The first that have results decide about a claim. The paper does not say when its trees stop: it prints 518 leaves and
# 1097 internal constraints for Gini, 2983 and 3307 for information gain.
TWOS = (
    Two("as many leaves as in the paper", Tree(3, 20), Tree(7, 7), ("medium", "full")),  # 526 and 2921
    Two("as many internal constraints as in the paper", Tree(3), Tree(7, 7), ("medium", "full")),  # 1191 and 3273
    Two("about as many internal constraints as in the paper", Tree(3), Tree(4), ("quick",)),  # 1191 and 3087
    Two("one depth for both", Tree(3), Tree(3), ("quick", "medium", "full")),
    Two("fully grown", Tree(8), Tree(8), ("full",)),
    Two("a generated census", Tree(2), Tree(3), ("tiny",), "census", 300),
)


def trials(size: str, cases: Sequence[str], measures: Sequence[str] = MEASURES) -> tuple[Trial, ...]:
    """The audits of these cases at a size, each once."""
    twos = [two for two in TWOS if size in two.sizes]
    return tuple(dict.fromkeys(two.trial(measure, case) for two in twos for measure in measures for case in cases))


@dataclass(frozen=True)
class Seen:
    """The results of two trees by measure and case."""

    two: Two
    results: Mapping[tuple[str, str], Result]

    def of(self, key: str, measure: str, case: str = ALL) -> float:
        return float(self.results[measure, case][key])

    def paper(self, section: str) -> Mapping[tuple[str, At], Number]:
        """What the paper prints, which is of Adult."""
        return numbers(PAPER, section) if self.two.data == "adult" else {}

    @property
    def title(self) -> str:
        said = str(self.two)
        return said[0].upper() + said[1:]


def seen(outcomes: Sequence[Outcome], *cases: str, measures: Sequence[str] = MEASURES) -> list[Seen]:
    """The trees of which all these cases have a result, those most like the paper's first."""
    known = results(outcomes)
    found = []
    for two in TWOS:
        keys = {(measure, case): two.trial(measure, case).key for measure in measures for case in cases}
        if all(key in known for key in keys.values()):
            found.append(Seen(two, {at: known[key] for at, key in keys.items()}))
    return found


def once(every: Sequence[Seen], measure: str) -> list[Seen]:
    """Each tree by one measure once."""
    found: dict[tuple[str, Tree], Seen] = {}
    for each in every:
        found.setdefault((each.two.data, each.two.tree(measure)), each)
    return list(found.values())


def results(outcomes: Sequence[Outcome]) -> dict[str, Result]:
    """The results by the key of their trial."""
    return {outcome.trial.key: outcome.result for outcome in outcomes if outcome.result is not None}


def claimed(claim: str) -> str:
    """What the paper says."""
    return str(printed(PAPER)["claims"][claim])


def judged(
    claim: str, every: Sequence[Seen], judge: Callable[[Seen], Verdict], erratum: str = "", measure: str = ""
) -> Claim:
    """A claim by the trees that are most like the paper's; what others say is told, and explained where they disagree.

    A claim about one measure is judged by its trees, each once.
    """
    every = once(every, measure) if measure else every
    if not every:
        return Claim(claimed(claim), None, "there is no result yet")
    verdicts = [judge(each) for each in every]
    named = [str(each.two.tree(measure) if measure else each.two) for each in every]
    evidence = "; ".join(f"{name}: {said}" for name, (_, said) in zip(named, verdicts, strict=True))
    agreed = all(holds is True for holds, _ in verdicts)
    return Claim(claimed(claim), verdicts[0][0], evidence, "" if agreed else erratum)


def number(value: float) -> Estimate:
    """The only value that an audit can have: there is no noise in it."""
    return Estimate.of([value])


def bars(each: Seen, series: Mapping[str, tuple[str, str]], y: str = "overall divergence") -> Panel:
    """For each measure a bar of every series, which names a part of a result and a case."""
    cells = [
        Cell(name, measure, number(each.of(key, measure, case)))
        for name, (key, case) in series.items()
        for measure in MEASURES
    ]
    return Panel(each.title, "selection measure", tuple(cells), y=y, kind="bars")


def constraints(each: Seen) -> Panel:
    """How many constraints of each kind there are."""
    paper = each.paper("constraints")
    cells = [
        Cell(measure, kind, number(each.of(kind, measure)), paper.get((measure, kind)))
        for measure in MEASURES
        for kind in ("profiles", "rates", "labels", "internal")
    ]
    return Panel(f"Constraints: {each.two}", "kind", tuple(cells), y="constraints", kind="table")
