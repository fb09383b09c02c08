"""What a question is: a frozen, public value. One class in one file says everything about one kind of question.

`Session.ask` checks a question, builds its mechanisms, charges what these mechanisms lose, asks the
engine for the exact values, and applies the same mechanisms to them. After that nothing sees an exact value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, get_type_hints

from privet.errors import QuestionError
from privet.kernel.additive import AdditiveModel
from privet.kernel.criteria import criterion_from_json
from privet.kernel.domain import Domain
from privet.kernel.engines.contract import Engine
from privet.kernel.limits import Json, digest, fraction_of
from privet.kernel.mechanisms import Mechanism
from privet.kernel.per_part import PerPart
from privet.kernel.release import About
from privet.kernel.rows import MAX_PARTS, Rows

R = TypeVar("R")

VERSION = 1  # of the JSON form of all questions


class Question(ABC, Generic[R]):
    """A question about every part of a table, answered with one release of type R for each."""

    kind: ClassVar[str]  # its name in JSON, which never changes
    refinable: ClassVar[bool] = False  # whether answers can be refined: one vector with integer Laplace noise

    @property
    @abstractmethod
    def words(self) -> str:
        """How ledgers, releases and errors name the question."""

    @abstractmethod
    def check(self, domain: Domain, rows: Rows) -> None:
        """Refuse a question that does not fit the domain, or is too large, before anything is charged.

        Raises
        ------
        QuestionError, UndeclaredDomain, PrivacyError
        """

    @abstractmethod
    def mechanisms(self, domain: Domain, epsilons: PerPart[Fraction]) -> PerPart[Mechanism]:
        """Return the mechanism of each part, for its epsilon per record."""

    @abstractmethod
    def exact(self, engine: Engine, rows: Rows, domain: Domain) -> Iterable[Any]:
        """Return what the mechanism of each part is applied to: an array with an axis for the parts, or one by one."""

    @abstractmethod
    def release(self, noisy: Any, mechanism: Any, about: About, domain: Domain, part: int) -> R:
        """Return the release of one part, from public values alone: the output of its mechanism, as JSON holds it."""

    def releases(
        self, noisy: Sequence[Any], mechanisms: PerPart[Mechanism], about: PerPart[About], domain: Domain
    ) -> Iterable[R]:
        """Return the releases of all parts."""
        parts = zip(noisy, mechanisms, about, strict=True)
        return (
            self.release(value, mechanism, note, domain, part) for part, (value, mechanism, note) in enumerate(parts)
        )

    def to_json(self, brief: bool = False) -> Json:
        """Return the question as JSON: what a request consists of; in a brief form a model is its hash."""
        content = {name: form.write(getattr(self, name), brief) for name, form in json_forms(type(self)).items()}
        return {"question": self.kind, "version": VERSION, **content}

    def identity(self) -> Json:
        """Return the JSON form with every model replaced by its hash: what the ledger keeps."""
        return self.to_json(brief=True)

    @property
    def fingerprint(self) -> str:
        """The hash of the identity: the same for the same question, in every process and version of privet."""
        return digest(self.identity())


class JsonField(NamedTuple):
    """How a field of a question is written as JSON, and read from JSON that somebody sent."""

    what: str  # what an error says that it must be
    read: Callable[[object], Any]  # None refuses it
    write: Callable[[Any, bool], Json] = lambda value, brief: value


@cache
def json_forms(question: type[Question[Any]]) -> dict[str, JsonField]:
    """Return the form of each field of a question: what its annotation is annotated with."""
    hints = get_type_hints(question, include_extras=True)
    return {each.name: hints[each.name].__metadata__[0] for each in fields(question)}  # type: ignore[arg-type]


def list_of(read: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...] | None]:
    """Return a function that reads a list, or gives None where `read` refuses an item."""

    def read_all(value: object) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(read(item) for item in value)
        return None if any(item is None for item in items) else items

    return read_all


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _fraction(value: object) -> Fraction | None:
    number = fraction_of(value) if isinstance(value, str) and value.isascii() else None
    return number if number is not None and str(number) == value else None  # one text for one number


def per_part(read: Callable[[object], Any], what: str) -> JsonField:
    """Return the form of a field with a value for each part."""

    def read_all(value: object) -> PerPart[Any] | None:
        if not isinstance(value, Mapping):
            return None
        if set(value) == {"all", "parts"}:
            count, item = _whole(value["parts"]), read(value["all"])
            return None if count is None or not 1 <= count <= MAX_PARTS or item is None else PerPart.same(item, count)
        if set(value) != {"values", "index"}:
            return None
        values, numbers = list_of(read)(value["values"]), list_of(_whole)(value["index"])
        if values is None or numbers is None or not all(0 <= number < len(values) for number in numbers):
            return None
        return PerPart.of(values[number] for number in numbers)

    return JsonField(f"{what} for each part", read_all, lambda values, brief: values.to_json(lambda value: value))


read_texts = list_of(_text)
read_groups = list_of(read_texts)
TEXT = JsonField("a text", _text)
TEXTS = JsonField("a list of texts", read_texts)
GROUPS = JsonField("a list of lists of texts", read_groups)
FLAG = JsonField("true or false", lambda value: value if isinstance(value, bool) else None)
WHOLE = JsonField("a whole number", _whole)
WHOLES = JsonField("a list of whole numbers", list_of(_whole))
FRACTION = JsonField("a fraction in a text, such as 1/3", _fraction, lambda value, brief: str(value))
MODEL = JsonField("a model", AdditiveModel.from_json, AdditiveModel.to_json)
CRITERION = JsonField("a criterion", criterion_from_json, lambda rule, brief: rule.to_json())


def check_cells(cells: int, most: int) -> None:
    """Refuse a question that needs more cells than one may."""
    if cells > most:
        number = str(cells) if cells < 10**15 else "more than 10**15"  # of many columns it has thousands of digits
        raise QuestionError(f"this needs {number} cells, at most {most} are possible; use fewer columns or parts.")
