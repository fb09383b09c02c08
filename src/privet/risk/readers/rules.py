"""Decision lists and association rules: read as statements about groups of people.

Decision lists are those that Weka's PART and JRip print. Association rules are those of Weka's Apriori, of R's arules
(`write(rules)`, or `inspect`ed as text), and of mlxtend (`association_rules(...).to_csv()`). An association rule tells
how many people meet both of its sides, and its left side alone; where either names the sensitive attribute, that is a
count of people with a value. Shares are printed rounded, so that counts are known up to a range.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace

from privet.errors import ModelError
from privet.kernel import MOST_ROWS, number_of
from privet.risk.readers.text_lines import Line, numbered
from privet.risk.statements import Statement, Statements
from privet.risk.tree import Above, AtLeast, AtMost, Below, Condition, Equals, NotEquals, Values

_PART = re.compile(r"PART decision list")
_JRIP = re.compile(r"JRIP rules:|JRip rules:")
_APRIORI = re.compile(r"Best rules found:")
_ARULES = re.compile(r'"?\{.*\}\s*=>\s*\{.*\}"?.*')
_RULE = re.compile(r"[-=]{3,}")
_COUNT = r"([0-9]+(?:\.[0-9]+)?)"
_LABEL = re.compile(rf":\s*(?P<label>.*?\S)(?:\s*\({_COUNT}(?:/{_COUNT})?\))?$")
_TEST = re.compile(r"(?P<name>.*?\S)\s*(?P<sign><=|>=|!=|=|<|>)\s*(?P<value>\S.*?|)\s*")
_ITEM = re.compile(r"(?P<name>[^={}]+)=(?P<value>.+)")
_LIFT = re.compile(r"<?(?:conf|lift|lev|conv|support|confidence)\b.*")
ROUNDED = 5e-3  # counts of lists are printed with two digits


def is_list(text: str) -> bool:
    """Does a text look like Weka printed a decision list?"""
    return any(_PART.fullmatch(line) or _JRIP.fullmatch(line) for _, line in numbered(text[:100_000]))


def is_rules(text: str) -> bool:
    """Does a text look like association rules?"""
    lines = [line for _, line in numbered(text[:100_000])]
    head = lines[0].lower() if lines else ""
    return (
        ("antecedents" in head and "consequents" in head)
        or head.replace('"', "").startswith(("rules,", "rules\t", "lhs"))
        or any(_APRIORI.fullmatch(line) or _ARULES.fullmatch(line) for line in lines)
    )


# -- decision lists -------------------------------------------------------------------------------


def parse_list(text: str, values: Sequence[object] | None = None) -> Statements:
    """The decision list of a text; what is wrong with it is said with its line.

    >>> found = parse_list('''PART decision list
    ... ------------------
    ...
    ... age <= 30 AND
    ... sex = f: no (5.0/1.0)
    ...
    ... : yes (20.0)''')
    >>> [(each.where, each.low) for each in found.said]
    [('age <= 30 and sex = f', (4.0, 1.0)), ('everybody else', (0.0, 20.0))]
    """
    lines = list(numbered(text))
    start = next(at for at, (_, line) in enumerate(lines) if _PART.fullmatch(line) or _JRIP.fullmatch(line))
    read = _part if _PART.fullmatch(lines[start][1]) else _jrip
    rules = read(lines[start + 1 :])
    if not rules or rules[-1][1]:
        raise ModelError("the decision list has no last rule for everybody else; it may be cut short.")
    labels = [label for _, _, label, _, _ in rules]
    public = Values.seen(labels) if values is None else Values.of(values)
    said: list[Statement] = []
    for line, conditions, label, size, wrong in rules:
        at = public.find(label)
        if at is None:
            raise line.fault(public.unknown(label))
        counted = _counted(line, conditions, at, size, wrong, len(public))
        said.append(replace(counted, after=bool(said)))
    return Statements(tuple(said), public.texts, "the decision list", is_list=True)


_Rule = tuple[Line, tuple[Condition, ...], str, float | None, float]


def _part(lines: Sequence[tuple[int, str]]) -> list[_Rule]:
    """`age <= 30 AND`, then `sex = f: no (5.0/1.0)`; the last is `: yes (2.0)`."""
    found: list[_Rule] = []
    tests: list[Condition] = []
    for number, text in lines:
        line = Line(number, 0, text)
        if _RULE.fullmatch(text):
            continue
        if text.startswith(("Number of Rules", "===")):
            break
        if text.endswith(" AND"):
            tests.append(_test(line, text.removesuffix(" AND")))
            continue
        colon = text.rfind(": ") if not text.startswith(":") else 0
        said = _LABEL.fullmatch(text[colon:]) if colon >= 0 else None
        if said is None:
            raise line.fault("expected a rule of PART, like 'age <= 30: no (5.0/1.0)'.")
        if text[:colon].strip():
            tests.append(_test(line, text[:colon].strip()))
        found.append((line, tuple(tests), said["label"], *_numbers(line, said[2], said[3])))
        tests = []
    if tests:
        raise ModelError("the decision list ends within a rule; it may be cut short.")
    return found


def _jrip(lines: Sequence[tuple[int, str]]) -> list[_Rule]:
    """`(age <= 30) and (sex = f) => income=high (5.0/1.0)`; the last has no conditions."""
    found: list[_Rule] = []
    for number, text in lines:
        line = Line(number, 0, text)
        if _RULE.fullmatch(text):
            continue
        if text.startswith(("Number of Rules", "===")):
            break
        left, arrow, right = text.rpartition("=>")
        said = re.fullmatch(rf"\s*[^=]+=(?P<label>.*?\S)\s*\({_COUNT}(?:/{_COUNT})?\)", right)
        if not arrow or said is None:
            raise line.fault("expected a rule of JRip, like '(age <= 30) and (sex = f) => income=high (5.0/1.0)'.")
        tests = [each.strip() for each in left.split(" and ")] if left.strip() else []
        if any(not (each.startswith("(") and each.endswith(")")) for each in tests):
            raise line.fault("expected conditions in brackets, like '(age <= 30) and (sex = f)'.")
        conditions = tuple(_test(line, each[1:-1]) for each in tests)
        found.append((line, conditions, said["label"], *_numbers(line, said[2], said[3])))
    return found


def _test(line: Line, text: str) -> Condition:
    found = _TEST.fullmatch(text)
    if found is None:
        raise line.fault("expected a test like 'age <= 30' or 'sex = f'.")
    name, sign, value = found["name"], found["sign"], found["value"]
    if sign == "=":
        return Equals(name, value)
    if sign == "!=":
        return NotEquals(name, value)
    number = number_of(value)
    if number is None or not math.isfinite(number):
        raise line.fault(f"expected a number after '{sign}'.")
    kinds: dict[str, type[AtMost] | type[AtLeast] | type[Below] | type[Above]]
    kinds = {"<=": AtMost, ">=": AtLeast, "<": Below, ">": Above}
    return kinds[sign](name, number)


def _numbers(line: Line, size: str | None, wrong: str | None) -> tuple[float | None, float]:
    many, others = number_of(size), number_of(wrong) or 0.0
    if many is None:
        return None, 0.0
    if not 0 <= others <= many < MOST_ROWS:
        raise line.fault("expected rows, and of these no more wrong ones.")
    return many, others


def _counted(
    line: Line, conditions: tuple[Condition, ...], label: int, size: float | None, wrong: float, values: int
) -> Statement:
    """A rule: so many of whoever comes to it have its label. Parts of rows, of missing values, widen what is known."""
    if size is None:
        return Statement(conditions, (0.0,) * values, (math.inf,) * values, label=label, line=line.number)
    low, high = [0.0] * values, [wrong] * values
    low[label] = high[label] = size - wrong
    whole = size.is_integer() and wrong.is_integer()
    if not whole:  # of rows that miss a value a part alone came here: nobody counts more than once
        low[label], high[label] = 0.0, math.inf
        high = [math.inf] * values
    elif values == 2:
        low[1 - label] = wrong
    size = size if whole else None
    return Statement(conditions, tuple(low), tuple(high), size, None if whole else label, line=line.number)


# -- association rules ----------------------------------------------------------------------------


def parse_rules(text: str, sensitive: str, people: int, values: Sequence[object] | None = None) -> Statements:
    """The association rules of a text, of so many people; what is wrong with them is said with the line.

    >>> found = parse_rules('"rules","support","confidence","count"\\n"{sex=f} => {state=ill}",0.2,0.5,2', "state", 10)
    >>> [(each.where, each.low, each.high) for each in found.said]
    [('sex = f', (2.0,), (2.0,))]
    """
    rows = _apriori(text) if any(_APRIORI.fullmatch(line) for _, line in numbered(text)) else _table(text)
    counted: list[tuple[Line, dict[str, str], tuple[float, float]]] = []
    sure: dict[int, tuple[float, float]] = {}  # by line, of rules about the sensitive value alone: its share
    silent = 0
    for line, left, right, figures in rows:
        items = {**left, **right}
        told = _both(line, figures, people)
        if sensitive in items:
            counted.append((line, items, told))
            confidence = _share(figures.get("confidence"))
            if set(right) == {sensitive} and confidence is not None:
                sure[len(counted) - 1] = (confidence[0] - confidence[1], confidence[0] + confidence[1])
        else:
            silent += 1
        if sensitive in left and (before := _left(line, figures, told, people)) is not None:
            counted.append((line, left, before))
        if sensitive in right and (after := _right(figures, people)) is not None:
            counted.append((line, right, after))
    public = Values.seen(items[sensitive] for _, items, _ in counted) if values is None else Values.of(values)
    said = []
    for number, (line, items, (low, high)) in enumerate(counted):
        at = public.find(items[sensitive])
        if at is None:
            raise line.fault(public.unknown(items[sensitive]))
        conditions = tuple(_item(name, value) for name, value in items.items() if name != sensitive)
        least, most = [0.0] * len(public), [math.inf] * len(public)
        least[at], most[at] = low, high
        share = None if number not in sure else (at, *sure[number])
        said.append(Statement(conditions, tuple(least), tuple(most), line=line.number, share=share))
    notes = ["That other rules were not frequent or sure enough to be listed tells something too; it is not computed."]
    if silent:
        notes.append(f"{silent} of {len(rows)} rules do not speak of '{sensitive}'; they are left out.")
    return Statements(tuple(said), public.texts, "the list of rules", notes=tuple(notes))


def _item(name: str, value: str) -> Condition:
    from privet.risk.readers.count_tables import condition

    return condition(name, value) or Equals(name, value)


_Row = tuple[Line, dict[str, str], dict[str, str], dict[str, str]]


def _table(text: str) -> list[_Row]:
    """Rules of arules or mlxtend, with a head that names their figures."""
    lines = list(numbered(text))
    first = lines[0][1]
    sign = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    if not first.lower().replace('"', "").startswith(("rules", "lhs", sign)) and "antecedents" not in first:
        raise ModelError("the rules have no head that names support, confidence or count.")
    head = [each.strip().lower() for each in next(csv.reader([first], delimiter=sign))]
    found = []
    for number, row in lines[1:]:
        line = Line(number, 0, row)
        cells = next(csv.reader(io.StringIO(row), delimiter=sign))
        if len(cells) == len(head) + 1:  # R numbers rows without a name for that column
            cells = cells[1:]
        if len(cells) != len(head):
            raise line.fault(f"expected {len(head)} fields, as the first line names.")
        figures = dict(zip(head, (cell.strip() for cell in cells), strict=True))
        if "antecedents" in figures and "consequents" in figures:
            left, right = figures["antecedents"], figures["consequents"]
        elif "rules" in figures:
            left, _, right = figures["rules"].partition("=>")
        else:
            left, right = figures.get("lhs", ""), figures.get("rhs", "")
        found.append((line, _items(line, left), _items(line, right), figures))
    return found


def _items(line: Line, text: str) -> dict[str, str]:
    """{sex=f,age=3}, or frozenset({'sex=f', 'age=3'})."""
    inside = text.strip().removeprefix("frozenset(").removesuffix(")").strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise line.fault("expected items in braces, like {sex=f,age=30}.")
    inside = inside[1:-1].strip()
    if not inside or inside == "}":
        return {}
    items = re.findall(r"'([^']*)'|\"([^\"]*)\"", inside)
    listed = [one or other for one, other in items] if items else re.split(r",(?=[^,={}]+=)", inside)
    found = {}
    for each in listed:
        item = _ITEM.fullmatch(each.strip())
        if item is None:
            raise line.fault("expected items like sex=f.")
        found[item["name"].strip()] = item["value"].strip()
    return found


def _apriori(text: str) -> list[_Row]:
    """` 1. age=young sex=f 20 ==> income=high 18    <conf:(0.9)> ...`; counts are exact."""
    lines = list(numbered(text))
    start = next(at for at, (_, line) in enumerate(lines) if _APRIORI.fullmatch(line))
    found = []
    for number, row in lines[start + 1 :]:
        line = Line(number, 0, row)
        said = re.fullmatch(r"[0-9]+\.\s+(.*?)\s+([0-9]+)\s+==>\s+(.*?)\s+([0-9]+)(?:\s+<?\(?conf.*)?", row)
        if said is None:
            if not re.match(r"[0-9]+\.", row):
                break
            raise line.fault("expected a rule of Apriori, like '1. sex=f 20 ==> income=high 18 <conf:(0.9)>'.")
        sides = [_words(line, each) for each in (said[1], said[3])]
        found.append((line, sides[0], sides[1], {"count": said[4], "left": said[2]}))
    return found


def _words(line: Line, text: str) -> dict[str, str]:
    """sex=f age='(30-inf)', in which a value may have blanks."""
    found = {}
    for each in re.split(r"\s+(?=[^\s=]+=)", text.strip()):
        item = _ITEM.fullmatch(each)
        if item is None:
            raise line.fault("expected items like sex=f.")
        value = item["value"].strip().strip("'")
        interval = re.fullmatch(r"\(([-+.0-9einf]+)-([-+.0-9einf]+)([\])])", value)  # as Weka's Discretize writes it
        found[item["name"].strip()] = f"({interval[1]}, {interval[2]}{interval[3]}" if interval else value
    return found


def _share(text: str | None) -> tuple[float, float] | None:
    """A printed share, and how far it may have been rounded."""
    number = number_of(text) if text else None
    if text is None or number is None or not 0 <= number <= 1 + 1e-9:
        return None
    mantissa, _, power = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    return number, 0.5 * 10.0**-digits


def _both(line: Line, figures: dict[str, str], people: int) -> tuple[float, float]:
    """How many people meet both sides."""
    count = number_of(figures.get("count"))
    if count is not None and 0 <= count <= people:
        return count, count
    share = _share(figures.get("support"))
    if share is None:
        raise line.fault("expected the support or the count of each rule; no more people than there are.")
    return max((share[0] - share[1]) * people, 0.0), min((share[0] + share[1]) * people, float(people))


def _left(line: Line, figures: dict[str, str], both: tuple[float, float], people: int) -> tuple[float, float] | None:
    """How many meet the left side."""
    count = number_of(figures.get("left"))
    if count is not None:
        return count, count
    for name in ("antecedent support", "coverage"):
        if share := _share(figures.get(name)):
            return max((share[0] - share[1]) * people, 0.0), (share[0] + share[1]) * people
    confidence = _share(figures.get("confidence"))
    if confidence is None or confidence[0] <= confidence[1]:
        return None
    return both[0] / min(confidence[0] + confidence[1], 1.0), min(both[1] / (confidence[0] - confidence[1]), people)


def _right(figures: dict[str, str], people: int) -> tuple[float, float] | None:
    """How many meet the right side."""
    share = _share(figures.get("consequent support"))
    if share is not None:
        return max((share[0] - share[1]) * people, 0.0), (share[0] + share[1]) * people
    confidence, lift = _share(figures.get("confidence")), number_of(figures.get("lift"))
    if confidence is None or lift is None or lift <= 0:
        return None
    text = figures["lift"]
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    if lift <= half or "e" in text.lower():
        return None
    low = (confidence[0] - confidence[1]) / (lift + half) * people
    return max(low, 0.0), (confidence[0] + confidence[1]) / (lift - half) * people
