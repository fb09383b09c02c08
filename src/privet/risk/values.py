"""The public values of the sensitive attribute, and how the labels of a published tree are found among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from privet.errors import ModelError
from privet.kernel import number_of, text_of
from privet.text import quoted, shown


@dataclass(frozen=True)
class Values:
    """The values in their public order, as they were given.

    Trees are written by programs with different habits: a class that is 1 in the table may be 1.0 in the tree, and
    true may be True. A label is looked up as it is compared everywhere, then as Python prints it, then as a number.

    >>> values = Values.of([True, False])
    >>> values.texts, values.find("False"), values.find("maybe")
    (('true', 'false'), 1, None)
    >>> Values.of(["1", "2"]).find("2.0")
    1
    """

    given: tuple[object, ...]

    @classmethod
    def of(cls, values: Iterable[object]) -> Values:
        """The values as the caller lists them."""
        given = tuple(values)
        texts = [text_of(value) for value in given]
        if not texts or None in texts:
            raise ModelError("the sensitive attribute needs at least one value, and none of them may be missing.")
        if len(set(texts)) < len(texts):
            twice = next(text for text, times in Counter(texts).items() if times > 1)
            raise ModelError(
                f"the public values of the sensitive attribute name {quoted(twice)} twice; list each once."
            )
        return cls(given)

    @classmethod
    def seen(cls, labels: Iterable[str]) -> Values:
        """The labels that occur in a text, sorted."""
        return cls(tuple(rising(dict.fromkeys(labels))))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(str(text_of(value)) for value in self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __str__(self) -> str:
        return ", ".join(shown(text) for text in self.texts[:10]) + ", …" * (len(self) > 10)

    @cached_property
    def _numbers_by_text(self) -> dict[str, int]:
        found = {text: number for number, text in enumerate(self.texts)}
        for number, value in enumerate(self.given):
            found.setdefault(str(value), number)
        return found

    def find(self, label: object) -> int | None:
        """The number of the value that a label means; None where it means none, or no single one."""
        for text in (str(text_of(label)), str(label)):
            if text in self._numbers_by_text:
                return self._numbers_by_text[text]
        wanted = number_of(label)
        alike = [] if wanted is None else [i for i, value in enumerate(self.given) if number_of(value) == wanted]
        return alike[0] if len(alike) == 1 else None

    def number(self, label: object) -> int:
        """The number of the value that a label of a tree means; one sentence where there is none."""
        found = self.find(label)
        if found is None:
            raise ModelError(self.unknown(str(text_of(label))))
        return found

    def unknown(self, label: str) -> str:
        return f"the tree says {quoted(label)}, which is not among the public values ({self}); list it or mend them."


def rising(labels: Iterable[str]) -> Sequence[str]:
    """Labels in the order in which a learner would number them: by size if all are numbers, else by letters."""
    found = list(labels)
    numbers = {label: number_of(label) for label in found}
    if None in numbers.values():
        return sorted(found)
    return sorted(found, key=lambda label: (numbers[label], label))
