"""Zhu and Du, Understanding privacy risk of publishing decision trees, DBSec 2010: figures 3 to 9.

An adversary who knows everybody's quasi-identifiers sees a tree, and believes of all distributions that agree with it
the one of largest entropy. The nearer that comes to the truth, the more was disclosed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from privet.studies.findings import Cell, Findings, Number, Panel
from privet.studies.papers.zhu_du.example import EXAMPLES, read_example
from privet.studies.papers.zhu_du.trees import (
    ALL,
    CASES,
    GAIN,
    GINI,
    MEASURES,
    PAPER,
    PLAIN,
    UNRATED,
    Seen,
    Verdict,
    bars,
    constraints,
    judged,
    number,
    once,
    seen,
    trials,
)
from privet.studies.published import numbers, printed
from privet.studies.study import Study
from privet.studies.tree_audit import audit
from privet.studies.trial import Outcome, Trial, Work

SOURCE = "Zhu and Du, Understanding privacy risk of publishing decision trees, DBSec 2010"
TASKS: dict[str, Work] = {"audit": audit}

MAJOR = 0.02  # of an overall divergence: a smaller change is no major one
SIGNIFICANT = 1 / 3  # of the divergences of ten profiles together
LARGER = 1.5  # times: the CPU time of one run differs by a quarter from that of the next on a machine that is shared

STOPPING = (
    "The paper does not say when its trees stop growing. It prints 518 leaves and 1097 internal constraints for Gini, "
    "2983 and 3307 for information gain, which no depth and least number of rows that was tried gives; trees with "
    "about these numbers, and trees with one rule for both measures, are audited instead."
)
UNPRINTED = "The bars of this figure have no printed numbers, so ours stand alone."
UNIFORM = (
    "Without error rates even shares meet every label and every choice of a split, with equality: the overall "
    "divergence is that of somebody who knows nothing, whatever the tree."
)
FLOORED = (
    "A belief in something true can come down to 0, where the divergence has no limit. For information gain the solver "
    "decides how near to 0 it comes, so that the raw divergence is not a stable number: claims are judged by the "
    "divergence of beliefs that are mixed with 1e-4 of even shares."
)
SIZES = (
    "Trees that stop by one rule for both measures say otherwise. The paper's tree by information gain has almost six "
    "times as many leaves as its tree by Gini, and more leaves tell more: the number of leaves decides."
)
SOLVER = (
    "The paper solved for all 71,680 variables at once with KNITRO. Here leaves have a closed form, and only the parts "
    "of the tree where it breaks the choice of a split are solved, each by itself, by a convex-concave procedure."
)


# -- figure 3: error rates ---------------------------------------------------------------------


def read_rates(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, ALL, UNRATED)
    series = {
        "without error rates": ("D", UNRATED),
        "with error rates": ("D", ALL),
        "with error rates, floor 1e-4": ("D floored", ALL),
        "no tree, frequencies known": ("marginal", ALL),
    }
    return Findings(
        panels=tuple(bars(each, series) for each in every),
        claims=(judged("rates", every, _rates), judged("severe", every, _severe, SIZES)),
        notes=(
            UNPRINTED,
            STOPPING,
            f"{UNIFORM} So the bars without error rates cannot differ by measure.",
            FLOORED,
            "Who knows how frequent each value is, and has seen no tree, can be nearer to the truth than who sees a "
            "tree with its error rates and knows no frequencies.",
        ),
    )


def _lost(each: Seen, measure: str) -> float:
    return each.of("D floored", measure, UNRATED) - each.of("D floored", measure)


def _rates(each: Seen) -> Verdict:
    told = [
        f"{measure} {each.of('D floored', measure, UNRATED):.4f} without and {each.of('D floored', measure):.4f} with"
        for measure in MEASURES
    ]
    return all(_lost(each, measure) > 0 for measure in MEASURES), ", ".join(told)


def _severe(each: Seen) -> Verdict:
    gini, gain = _lost(each, GINI), _lost(each, GAIN)
    return gain > gini, f"error rates take {gain:.4f} from information gain and {gini:.4f} from Gini"


# -- figure 4: the selection measure -----------------------------------------------------------


def read_measures(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, ALL)
    series = {"raw": ("D", ALL), "floor 1e-4": ("D floored", ALL)}
    return Findings(
        panels=(*(bars(each, series) for each in every), *(constraints(each) for each in every)),
        claims=(judged("measure", every, _measure, SIZES),),
        notes=(UNPRINTED, STOPPING, FLOORED),
    )


def _measure(each: Seen) -> Verdict:
    told = [
        f"{measure} {each.of('D floored', measure):.4f} with {int(each.of('leaves', measure)):,} leaves"
        for measure in MEASURES
    ]
    return each.of("D floored", GINI) > each.of("D floored", GAIN), ", ".join(told)


# -- figure 6: implicit information ------------------------------------------------------------


def read_implicit(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, ALL, PLAIN)
    series = {
        "without implicit information": ("D", PLAIN),
        "with implicit information": ("D", ALL),
        "with implicit information, floor 1e-4": ("D floored", ALL),
    }
    return Findings(
        panels=tuple(bars(each, series) for each in every),
        claims=(
            judged(
                "gini",
                every,
                partial(_implicit, measure=GINI, obvious=True),
                "Where what the leaves say breaks no choice of a split, inner nodes tell nothing more.",
                GINI,
            ),
            judged(
                "infogain",
                every,
                partial(_implicit, measure=GAIN, obvious=False),
                "How much the choice of splits tells depends on when the tree stops, and for trees of the paper's size "
                "on the floor: the raw divergence changes by more than the floored one.",
                GAIN,
            ),
        ),
        notes=(
            UNPRINTED,
            STOPPING,
            FLOORED,
            f"A change of {100 * MAJOR:g} percent is taken as major.",
            "More constraints never raise the largest entropy, but they can raise the divergence: who knows more can "
            "be further from the truth.",
        ),
    )


def _implicit(each: Seen, measure: str, obvious: bool) -> Verdict:
    changes = {key: (each.of(key, measure, PLAIN), each.of(key, measure)) for key in ("D floored", "D")}
    told = [
        f"{before:.4f} to {after:.4f}, {100 * (after - before) / before:+.1f} percent"
        for before, after in changes.values()
    ]
    before, after = changes["D floored"]
    large = abs(after - before) >= MAJOR * before
    return large is obvious, f"{told[0]} (raw {told[1]})"


# -- figures 7 and 8: individual divergences ---------------------------------------------------


def read_top(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, ALL, measures=(GAIN,))
    return Findings(
        panels=tuple(_top(each) for each in once(every, GAIN)),
        claims=(
            judged(
                "individual",
                every,
                _individual,
                "The choices of a small tree do not tell enough about as many as ten profiles.",
                GAIN,
            ),
        ),
        notes=(
            STOPPING,
            f"Significant is taken as a fall of {100 * SIGNIFICANT:.0f} percent of the ten together; the paper's "
            "fall by 52 percent.",
            "The ten are chosen for their fall, so that they must fall; others rise, and by more. Where values are "
            "interchangeable in all that was published, which of them is which is arbitrary, and so are the "
            "divergences of these people.",
        ),
    )


def _top(each: Seen) -> Panel:
    paper = each.paper("figure-7")
    cells = [
        Cell(str(rank), name, number(value), paper.get((str(rank), name)))
        for rank, row in enumerate(each.results[GAIN, ALL]["falls"], 1)
        for name, value in zip(("difference", "KL1", "KL2"), row, strict=True)
    ]
    return Panel(f"Information gain, {each.two.gain}", "divergence", tuple(cells), y="divergence", kind="table")


def _individual(each: Seen) -> Verdict:
    result = each.results[GAIN, ALL]
    falls, before = (sum(row[at] for row in result["falls"]) for at in (0, 2))
    share = falls / before if before else 0.0
    told = (
        f"KL1 is {100 * share:.0f} percent smaller; of {result['profiles']:,} profiles {result['fell']:,} fall and "
        f"{result['rose']:,} rise, the ten that fall most by {falls / max(len(result['falls']), 1):.2f} on average and "
        f"the ten that rise most by {result['mean of the largest rises']:.2f} (floor 1e-4)"
    )
    return share >= SIGNIFICANT, told


def read_averages(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, ALL, measures=(GAIN,))
    cells = [cell for first, each in enumerate(once(every, GAIN)) for cell in _averages(each, first == 0)]
    read = printed(PAPER)["figure-8"]
    return Findings(
        panels=(Panel("The average of the K largest differences", "K", tuple(cells), y="KL2 - KL1"),),
        claims=(judged("decreasing", every, _decreasing, "No divergence fell.", GAIN),),
        notes=(
            STOPPING,
            f"The curve has no printed numbers. Up to K = 10 they follow from figure 7; up to K = {read['K'][1]} all "
            f"that can be read is that it lies within the axis, {read['axis'][0]} to {read['axis'][1]}.",
            "The average of the K largest of any numbers decreases with K: that it does says nothing of trees. Over "
            "all people it can be below 0, for who knows more can be further from the truth.",
        ),
    )


def paper_averages() -> dict[int, Number]:
    """The averages of the K largest differences that figure 7 implies for figure 8.

    >>> {k: round(number.value, 3) for k, number in paper_averages().items() if k in (1, 10)}
    {1: 1.492, 10: 1.271}
    """
    fell = [found.value for (_, column), found in numbers(PAPER, "figure-7").items() if column == "difference"]
    return {k: Number(sum(fell[:k]) / k) for k in range(1, len(fell) + 1)}


def _averages(each: Seen, first: bool) -> list[Cell]:
    paper = paper_averages() if first and each.two.data == "adult" else {}
    name = f"information gain, {each.two.gain}"
    return [Cell(name, k, number(mean), paper.get(k)) for k, mean in each.results[GAIN, ALL]["mean falls"]]


def _decreasing(each: Seen) -> Verdict:
    means = each.results[GAIN, ALL]["mean falls"]
    told = ", ".join(f"{mean:.3f} of {k}" for k, mean in means if k in (1, 10, 100, 500))
    overall = each.of("D of leaves", GAIN) - each.of("D", GAIN)
    decreasing = all(later[1] <= earlier[1] + 1e-9 for earlier, later in pairwise(means))
    return decreasing and means[0][1] > means[-1][1], f"{told}; over all people {overall:+.4f}"


HELD = "What is held here is the table, and one part at a time; a solver of all at once holds all."

# -- figure 9: time and memory -----------------------------------------------------------------


def read_costs(outcomes: Sequence[Outcome]) -> Findings:
    every = seen(outcomes, *CASES)
    return Findings(
        panels=(
            *(_times(each) for each in every),
            *(_memory(each) for each in every if _weighed(each)),
            *(constraints(each) for each in every),
        ),
        claims=(
            judged("slower", every, _slower, f"{SOLVER} Time follows the size and the shape of these parts."),
            replace(judged("memory", every, _needed, ""), incomparable=f"{SOLVER} {HELD}"),
            replace(
                judged("unrated", every, partial(_dearer, large=UNRATED, small=ALL), ""),
                incomparable=f"{SOLVER} {UNIFORM} Nothing is searched for here; a general solver searches.",
            ),
            judged("implicit", every, partial(_dearer, large=ALL, small=PLAIN), SOLVER),
        ),
        notes=(
            "The bars of time have no printed numbers. The paper ran C++ and KNITRO on a Pentium D of 3 GHz; ours are "
            "CPU seconds of one audit on one thread, reading the tree and measuring everybody included.",
            f"Each was run once: costs that differ by less than {LARGER:g} times are not told apart.",
            "Memory is the most that the process held, of which what it held before are libraries, the table, and what "
            "earlier trials left behind.",
            STOPPING,
        ),
    )


def _times(each: Seen) -> Panel:
    cells = [Cell(measure, case, number(each.of("cpu", measure, case))) for measure in MEASURES for case in CASES]
    return Panel(each.title, "constraints", tuple(cells), y="CPU seconds", kind="bars")


def _weighed(each: Seen) -> bool:
    return all(each.results[measure, ALL]["gb"] is not None for measure in MEASURES)


def _memory(each: Seen) -> Panel:
    paper = each.paper("memory")
    cells = [
        Cell(series, measure, number(each.of(key, measure)), paper.get((series, measure)))
        for series, key in ((ALL, "gb"), ("before the audit", "gb before"))
        for measure in MEASURES
    ]
    return Panel(f"Memory: {each.two}", "selection measure", tuple(cells), y="GB", kind="bars")


def _larger(one: float, other: float) -> bool | None:
    """Is one cost larger than another? One run of each cannot tell where they are near."""
    return None if max(one, other) < LARGER * min(one, other) else one > other


def _slower(each: Seen) -> Verdict:
    told = [
        f"{measure} {each.of('cpu', measure):.2f} s and {int(each.of('steps', measure)):,} steps"
        for measure in MEASURES
    ]
    return _larger(each.of("cpu", GAIN), each.of("cpu", GINI)), ", ".join(told)


def _needed(each: Seen) -> Verdict:
    if not _weighed(each):
        return None, "the peak of a process can be read on Linux alone"
    told = [
        f"{measure} {each.of('gb', measure):.2f} GB, {each.of('gb before', measure):.2f} of it before the audit"
        for measure in MEASURES
    ]
    return each.of("gb", GAIN) >= LARGER * each.of("gb", GINI), ", ".join(told)


def _dearer(each: Seen, large: str, small: str) -> Verdict:
    verdicts = [_larger(each.of("cpu", measure, large), each.of("cpu", measure, small)) for measure in MEASURES]
    told = [
        f"{measure} {each.of('cpu', measure, large):.2f} s against {each.of('cpu', measure, small):.2f} s"
        for measure in MEASURES
    ]
    return None if None in verdicts else all(verdicts), f"{large} against {small}: {', '.join(told)}"


# -- the studies -------------------------------------------------------------------------------


def _study(
    figure: int,
    title: str,
    about: str,
    read: Callable[[Sequence[Outcome]], Findings],
    wanted: Callable[[str], Sequence[Trial]],
    data: tuple[str, ...] = ("adult",),
) -> Study:
    return Study(f"zhu-du-figure-{figure}", title, f"{SOURCE}, figure {figure}", wanted, read, data, about)


STUDIES: tuple[Study, ...] = (
    _study(
        3,
        "What publishing error rates discloses",
        "A tree of Adult predicts education. How far from the truth is an adversary who knows the other attributes of "
        "everybody and sees the tree, with and without the error rate of each leaf?",
        read_rates,
        partial(trials, cases=(ALL, UNRATED)),
    ),
    _study(
        4,
        "What trees by Gini and by information gain disclose",
        "The same with error rates, for trees by both selection measures.",
        read_measures,
        partial(trials, cases=(ALL,)),
    ),
    _study(
        5,
        "What the inner node of example 1 discloses",
        "Six people and a tree of one split: what follows from its leaves (SA), and from the choice of the split (SB)?",
        read_example,
        lambda size: tuple(EXAMPLES.values()),
        (),
    ),
    _study(
        6,
        "What the choice of splits discloses",
        "Every inner node says that its split was the best: is an adversary who uses that nearer to the truth?",
        read_implicit,
        partial(trials, cases=(ALL, PLAIN)),
    ),
    _study(
        7,
        "The ten profiles about which the choice of splits tells most",
        "The divergence of single profiles with (KL1) and without (KL2) implicit information, for information gain.",
        read_top,
        partial(trials, cases=(ALL,), measures=(GAIN,)),
    ),
    _study(
        8,
        "The average over the profiles about which the choice of splits tells most",
        "The mean of the K largest differences KL2 - KL1, for K up to 500.",
        read_averages,
        partial(trials, cases=(ALL,), measures=(GAIN,)),
    ),
    _study(
        9,
        "Time and memory of an audit",
        "With all constraints, without implicit information, and without error rates.",
        read_costs,
        partial(trials, cases=tuple(CASES)),
    ),
)
