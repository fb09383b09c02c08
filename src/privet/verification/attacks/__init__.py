"""The attacks known on privacy layers, run against a live one.

The table under attack is asked on a ledger that is thrown away, its answers are thrown away too, and
all that is told is whether an attack got through. Rows that an attack needs are made from the
public domain and stored as the table is.

>>> import privet
>>> from privet.verification.layer import LocalLayer
>>> people, domain = privet.datasets.census(100), privet.datasets.census_domain()
>>> with LocalLayer(people, domain) as layer:
...     result = ATTACKS[12].against(layer)
>>> result.name, result.held, result.found
('groups that exist', True, ())
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from privet.verification.attacks import boundary, engines, errors, ledger, numbers
from privet.verification.attacks.planted import LARGE
from privet.verification.attacks.result import Attack, AttackResult, Undecided
from privet.verification.layer import Layer

__all__ = ["ATTACKS", "Attack", "AttackResult", "Undecided", "attack", "attack_by_paths"]

ATTACKS = (
    Attack(
        1,
        "low-order bits of float noise",
        "Float noise lands on different grids for different true values, so one odd bit tells which table it was.",
        numbers.low_order_bits,
    ),
    Attack(
        2,
        "large values that swallow noise",
        "Small float noise rounds away where the true value is large, and the exact answer is released.",
        numbers.swallowed_noise,
    ),
    Attack(
        3,
        "sums of floats",
        "A sum of floats depends on the order of rows and on huge ones, far more than its noise allows for.",
        numbers.float_sums,
    ),
    Attack(
        4,
        "NaN, infinities and nulls",
        "One value that is no number turns a whole sum into itself and tells that its row is there.",
        numbers.poison,
    ),
    Attack(
        5,
        "errors that only some rows cause",
        "An error that one row causes tells that it is there, and its text may quote the row.",
        errors.data_dependent_errors,
    ),
    Attack(
        6,
        "subqueries in a condition",
        "SQL in a value or a name asks the engine something that no noise is added to.",
        boundary.subqueries,
    ),
    Attack(
        7,
        "the budget as a channel",
        "A price that depends on the rows, or a failure that costs nothing, is an answer without noise.",
        errors.budget_as_a_channel,
    ),
    Attack(
        8,
        "spending the same unit twice",
        "A race, a kill, a retry or an odd epsilon buys more answers than the budget allows.",
        ledger.double_spending,
    ),
    Attack(
        9,
        "parts that overlap",
        "Parts that share records, charged as if they did not, lose more than is written down.",
        boundary.partitions,
    ),
    Attack(
        10,
        "code across the boundary",
        "A function or a pickle that runs beside the rows can read them all.",
        boundary.foreign_code,
    ),
    Attack(
        11,
        "timing",
        "Work that only one row causes shows in the time an answer takes.",
        errors.timing,
    ),
    Attack(
        12,
        "retry until good",
        "Whoever may throw answers away for nothing keeps the one they like.",
        ledger.retry_until_good,
    ),
    Attack(
        13,
        "groups that exist",
        "A cell that appears only where someone is in it tells that someone is.",
        boundary.group_existence,
    ),
    Attack(
        14,
        "noise that comes again",
        "Noise from a seed or from a copied process can be drawn again and taken off the answer.",
        boundary.randomness,
    ),
    Attack(
        15,
        "answers from a cache",
        "Fresh noise for nothing averages away, and a stored answer may be someone else's.",
        ledger.result_cache,
    ),
    Attack(
        16,
        "memory as a channel",
        "An engine that gives up where its memory ends tells how many rows match, or that one of them is long.",
        engines.memory_as_a_channel,
    ),
    Attack(
        17,
        "one row recodes others",
        "Arithmetic in the type of a column wraps around: one person more moves everybody to other cells.",
        engines.recoded_rows,
    ),
    Attack(
        18,
        "hatches for tests",
        "Noise from a seed and lists of all outcomes are for tests: on a private table they give exact counts.",
        boundary.hatches,
    ),
    Attack(
        19,
        "spending that is forgotten",
        "Other rows per person, another ledger or another name of a file: what was lost before is not counted.",
        ledger.forgotten_spending,
    ),
)


def _silent(_: str) -> None:
    pass


def attack(layer: Layer, progress: Callable[[str], None] = _silent) -> list[AttackResult]:
    """Run every attack against a layer; `progress` is told the name of each before it runs.

    A table that cannot be opened is its owner's mistake and no finding: the error is raised.
    """
    layer.live(budget=LARGE)
    results = []
    for each in ATTACKS:
        progress(f"attack {each.number} of {len(ATTACKS)}: {each.name}")
        results.append(each.against(layer))
    return results


def attack_by_paths(layers: Mapping[str, Layer], progress: Callable[[str], None] = _silent) -> list[AttackResult]:
    """Every attack against the same table opened in several ways, each of which has a name; one result for each."""

    def told(path: str) -> Callable[[str], None]:
        return lambda text: progress(f"{text}, {path}")

    results = [attack(layer, told(path)) for path, layer in layers.items()]
    return [_together(dict(zip(layers, several, strict=True))) for several in zip(*results, strict=True)]


def _together(results: Mapping[str, AttackResult]) -> AttackResult:
    """One result: held where all held; what not every way has shown says in which way it was."""
    kinds = {result.held for result in results.values()}
    held = False if False in kinds else None if None in kinds else True
    sentences: dict[str, list[str]] = {}
    for path, result in results.items():
        for sentence in result.found:
            sentences.setdefault(sentence, []).append(path)
    found = (
        sentence if len(paths) == len(results) else f"{' and '.join(paths)}: {sentence}"
        for sentence, paths in sentences.items()
    )
    return replace(next(iter(results.values())), held=held, found=tuple(found))
